//! The page of an attachment: a preview of images, text and tables, and actions for other files. Files are read with a
//! size limit, and decoded, on another thread.

use crate::actions::{FileAction, PageAction};
use crate::outputs::hash;
use editor::assets::{self, Asset, AssetBytes, MAX_ASSET_BYTES};
use editor::output_table::{DataTable, TableFormat};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, RichText, Sense, Ui, vec2};
use engine::Session;
use std::path::Path;
use store::disk::FileRow;
use store::{DocId, FileKind};
use text::untrusted_text;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{set_accessible_name, text_button};

/// Maximum number of characters shown of a line.
const MAX_PREVIEW_LINE_CHARS: usize = 2_000;
/// A note up to this size is an attachment because of its encoding; a larger one, because of its size.
const MAX_NOTE_BYTES: u64 = 16 << 20;

/// The page that shows an attachment.
#[derive(Default)]
pub struct AttachmentPage {
    /// The attachment shown last, and whether the user has opened its text.
    shown: Option<(DocId, bool)>,
    /// The rows of a CSV file.
    table: Option<DataTable>,
}

/// Kind of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttachmentKind {
    Picture,
    Text,
    Table,
    Notebook,
    /// A file with the extension of a note that can't be edited as one.
    Note,
    Other,
}

impl AttachmentKind {
    fn of(path: &str) -> AttachmentKind {
        if FileKind::from_path(path).is_text() {
            return AttachmentKind::Note;
        }
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_lowercase();
        match ending.as_str() {
            "png" | "jpg" | "jpeg" | "gif" | "webp" | "svg" => AttachmentKind::Picture,
            "ipynb" => AttachmentKind::Notebook,
            "csv" => AttachmentKind::Table,
            "txt" | "tsv" | "json" | "jsonl" | "yaml" | "yml" | "toml" | "xml" | "html" | "css" | "js" | "ts"
            | "rs" | "c" | "h" | "cpp" | "java" | "go" | "sh" | "sql" | "r" | "jl" | "tex" | "bib" | "log" | "ini"
            | "cfg" | "conf" | "canvas" | "original" => AttachmentKind::Text,
            _ => AttachmentKind::Other,
        }
    }
}

impl AttachmentPage {
    /// Returns whether this file was shown as an attachment.
    pub fn has_shown(&self, file: DocId) -> bool {
        self.shown.is_some_and(|(shown, _)| shown == file)
    }

    /// Draws a file as an attachment.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, file: DocId, actions: &mut Vec<PageAction>) {
        let Some((volume, path)) = session.locate_file(file) else { return };
        let Some(volume) = session.volume(volume) else { return };
        let Some(row) = volume.files.get(path) else { return };
        if !self.has_shown(file) {
            (self.shown, self.table) = (Some((file, false)), None);
        }
        let kind = match AttachmentKind::of(path) {
            AttachmentKind::Table if row.size > MAX_ASSET_BYTES => AttachmentKind::Text,
            kind => kind,
        };
        let (column, margin) = crate::page::NotePage::column_metrics(ui.available_width());
        let area = ui.available_rect_before_wrap();
        let area = Rect::from_min_size(
            area.left_top() + vec2(margin, space::XL),
            vec2(column.max(area.width() - 2.0 * margin), (area.height() - space::XL).max(0.0)),
        );
        let mut ui = ui::layout::part(ui, "attachment", area, area);
        let ui = &mut ui;
        head(ui, path.rsplit('/').next().unwrap_or(path), row);
        let why = volume.demoted.iter().find(|skipped| skipped.path == *path).map(|skipped| skipped.why.as_str());
        if kind == AttachmentKind::Note {
            let why = why.unwrap_or(match row.size > MAX_NOTE_BYTES {
                true => "it has more than 16 MiB, too much to edit as a note",
                false => "it is not UTF-8 text, so it is kept as it is",
            });
            words(ui, &format!("This can't be opened as a note: {why}."));
        }
        ui.add_space(space::S);
        let as_text = self.shown.is_some_and(|(_, reads)| reads);
        let mut reads = as_text;
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::S, space::S);
            let mut offer = |ui: &mut Ui, name: &str, lead: bool, action: FileAction| {
                if text_button(ui, name, lead).clicked() {
                    actions.push(PageAction::File(file, action));
                }
            };
            match kind {
                AttachmentKind::Notebook => {
                    offer(ui, "Open as note", true, FileAction::OpenNotebook);
                    offer(ui, "Import a copy", false, FileAction::ImportNotebook);
                }
                AttachmentKind::Note => {
                    reads |= text_button(ui, "Open read-only", true).clicked();
                    if row.size <= MAX_NOTE_BYTES {
                        offer(ui, "Convert to UTF-8", false, FileAction::ConvertToUtf8);
                    }
                }
                AttachmentKind::Table => {
                    let label = if as_text { "Show as table" } else { "Show as text" };
                    reads ^= text_button(ui, label, false).clicked();
                }
                AttachmentKind::Picture | AttachmentKind::Text | AttachmentKind::Other => {}
            }
            offer(ui, "Open in default app", kind == AttachmentKind::Other, FileAction::OpenOutside);
            offer(ui, "Show in folder", false, FileAction::ShowInFolder);
        });
        self.shown = Some((file, reads));
        ui.add_space(space::L);
        match kind {
            AttachmentKind::Picture => preview(ui, assets::request_file(ui.ctx(), file, false)),
            AttachmentKind::Table if !reads => {
                if let Some(root) = &volume.root {
                    self.show_table(ui, root, row);
                }
            }
            AttachmentKind::Text | AttachmentKind::Table => preview(ui, assets::request_file(ui.ctx(), file, true)),
            AttachmentKind::Note if reads => preview(ui, assets::request_file(ui.ctx(), file, true)),
            AttachmentKind::Notebook | AttachmentKind::Note | AttachmentKind::Other => {}
        }
    }

    /// Draws a CSV file as a table.
    fn show_table(&mut self, ui: &mut Ui, root: &Path, row: &FileRow) {
        let bytes = AssetBytes::File(root.to_owned(), row.path.clone());
        let source = hash(&(&bytes, row.mtime, row.size));
        if self.table.as_ref().is_none_or(|table| table.source != source) {
            self.table = Some(DataTable::new(source, TableFormat::Csv, bytes, ui.ctx()));
        }
        let Some(table) = &mut self.table else { return };
        table.poll_results(ui.ctx());
        let name = format!("Table of {}", row.path.rsplit('/').next().unwrap_or(&row.path));
        let id = ui.scope_id().with("table");
        egui::ScrollArea::vertical().id_salt("attachment table").auto_shrink(false).show(ui, |ui| {
            let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), table.height()), Sense::hover());
            table.show(ui, id, &name, rect.min, rect.width());
        });
    }
}

fn head(ui: &mut Ui, name: &str, row: &FileRow) {
    let style = theme::heading(2);
    let response = ui.label(RichText::new(untrusted_text::escape_line(name)).font(style.font));
    set_accessible_name(&response, Role::Heading, name);
    words(ui, &format!("Attachment, {}", ui::text::amount(row.size)));
}

fn words(ui: &mut Ui, text: &str) {
    let small = theme::small();
    let text = untrusted_text::escape_block(text);
    ui.label(RichText::new(text).font(small.font).line_height(Some(small.line)).color(ThemeColors::of(ui).muted));
}

fn preview(ui: &mut Ui, asset: Asset) {
    match asset {
        Asset::Waiting => words(ui, "Loading…"),
        Asset::None => words(ui, "No preview: the file can't be read."),
        Asset::Remark(why) => words(ui, &why),
        Asset::Picture(texture, size) => {
            egui::ScrollArea::vertical().id_salt("attachment picture").auto_shrink(false).show(ui, |ui| {
                let scale = (ui.available_width() / size.x).min(1.0);
                let (rect, response) = ui.allocate_exact_size(size * scale, Sense::hover());
                let whole = Rect::from_min_max(egui::Pos2::ZERO, egui::pos2(1.0, 1.0));
                ui.painter().image(texture.id(), rect, whole, egui::Color32::WHITE);
                set_accessible_name(&response, Role::Image, "Preview of the picture");
            });
        }
        Asset::Text(text) => lines(ui, &text),
    }
}

/// Draws the visible lines of a text.
fn lines(ui: &mut Ui, text: &str) {
    let style = theme::code();
    let colours = ThemeColors::of(ui);
    let all: Vec<&str> = text.lines().collect();
    if text.len() >= assets::MAX_FILE_PREVIEW_BYTES {
        words(ui, "Only the first megabyte is shown.");
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    egui::ScrollArea::both().id_salt("attachment text").auto_shrink(false).show_rows(
        ui,
        style.line,
        all.len(),
        |ui, seen| {
            for line in all.get(seen).unwrap_or_default() {
                let end = line.char_indices().nth(MAX_PREVIEW_LINE_CHARS).map_or(line.len(), |(at, _)| at);
                let shown = RichText::new(untrusted_text::escape_line(&line[..end])).font(style.font.clone());
                let shown = egui::Label::new(shown.line_height(Some(style.line)).color(colours.ink)).extend();
                ui.add(shown);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_of_names() {
        for (path, kind) in [
            ("a/B.PNG", AttachmentKind::Picture),
            ("data.csv", AttachmentKind::Table),
            ("data.tsv", AttachmentKind::Text),
            ("Trip.ipynb", AttachmentKind::Notebook),
            ("Big.md", AttachmentKind::Note),
            ("song.mp3", AttachmentKind::Other),
            ("none", AttachmentKind::Other),
        ] {
            assert_eq!(AttachmentKind::of(path), kind, "{path}");
        }
    }
}
