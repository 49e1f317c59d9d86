//! The right panel: outline of the open note and information about it.

use editor::note_editor::EditContext;
use editor::note_starters::first_heading;
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Ui, pos2, vec2};
use engine::commands::CommandId;
use engine::{KernelPhase, Session};
use notebook::actions::PageAction;
use pulldown_cmark::Event as Mark;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use store::{DocId, FileKind};
use ui::empty_state::show_panel_message;
use ui::text::{amount, format_thousands, shown_name};
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{self, paint_clipped_text, set_accessible_name};

/// Time per frame spent on rows that haven't been measured.
const OUTLINE_FRAME_BUDGET: Duration = Duration::from_millis(4);

/// Maximum number of cached heading texts beyond the displayed ones.
const MAX_CACHED_HEADINGS: usize = 500;

struct OutlineHeading {
    pub(crate) at: usize,
    level: u8,
    text: Rc<str>,
}

/// The outline panel, with its headings cached until the note changes.
#[derive(Default)]
pub(crate) struct OutlinePanel {
    made: Option<(DocId, u64)>,
    headings: Vec<OutlineHeading>,
    /// Heading texts by their row's hash, so that edits elsewhere need no work here.
    known: HashMap<u64, Rc<str>>,
    /// Number of characters of the note in this state.
    characters: Option<((DocId, u64), usize)>,
}

impl OutlinePanel {
    fn refresh(&mut self, ui: &Ui, world: &mut EditContext<'_>) {
        let key = (world.note.id, world.note.revision());
        if self.made == Some(key) {
            return;
        }
        let begun = Instant::now();
        let mut headings = Vec::new();
        for block in 0..world.sheet.len() {
            match world.sheet.has_headings(block) {
                Some(false) => continue,
                None if begun.elapsed() > OUTLINE_FRAME_BUDGET => {
                    // Measured rows are cached, so the next frame gets further.
                    ui.ctx().request_repaint();
                    return;
                }
                Some(true) | None => {}
            }
            let start = world.sheet.start(block);
            let texts = world.texts;
            for row in world.rows(block) {
                if let RowKind::Heading(level) = row.kind {
                    let source = &texts[block].text[row.content.clone()];
                    let text = self.known.entry(row.hash).or_insert_with(|| words(source).into()).clone();
                    headings.push(OutlineHeading { at: start + row.content.start, level, text });
                }
            }
        }
        if self.known.len() > 2 * headings.len() + MAX_CACHED_HEADINGS {
            self.known.clear();
        }
        self.headings = headings;
        self.made = Some(key);
    }

    /// Returns the number of characters of the note, counted once after each change.
    fn count_characters(&mut self, world: &EditContext<'_>) -> usize {
        let key = (world.note.id, world.note.revision());
        match self.characters {
            Some((known, count)) if known == key => count,
            _ => {
                let count = world.texts.iter().map(|block| block.text.chars().count()).sum();
                self.characters = Some((key, count));
                count
            }
        }
    }

    /// Draws the panel. Returns the byte to jump to.
    pub(crate) fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        world: Option<&mut EditContext<'_>>,
        actions: &mut Vec<PageAction>,
    ) -> Option<usize> {
        let colours = ThemeColors::of(ui);
        let Some(world) = world else {
            title(ui, "Outline");
            if show_panel_message(ui, "The outline lists the headings of the open note.", Some("Go to note")) {
                actions.push(PageAction::Run(CommandId::SwitcherOpen));
            }
            return None;
        };
        self.refresh(ui, world);
        let mut chosen = None;
        egui::ScrollArea::vertical().id_salt("outline").auto_shrink(false).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            title(ui, "Outline");
            if self.headings.is_empty() {
                let path = session.locate_file(world.note.id).map_or("", |(_, path)| path);
                let can_add = FileKind::from_path(path) == FileKind::Note && world.note.edit_refusal().is_none();
                let text = "The outline lists the headings of the note. A line that begins with # is one.";
                if show_panel_message(ui, text, can_add.then_some("Add a heading")) {
                    let name = shown_name(path.rsplit('/').next().unwrap_or(path));
                    actions.push(PageAction::Edit(first_heading(&world.note.text(), name)));
                }
            }
            let top = self.headings.iter().map(|heading| heading.level).min().unwrap_or(1);
            for heading in &self.headings {
                let (rect, response) =
                    ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::click());
                if !ui.is_rect_visible(rect) {
                    continue;
                }
                let rect = rect.shrink2(vec2(space::S, 0.0));
                if response.hovered() {
                    ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
                }
                let inset = space::S + space::L * f32::from(heading.level - top);
                let at = pos2(rect.left() + inset, rect.center().y - 10.0);
                paint_clipped_text(ui, at, rect.right() - at.x - space::S, &heading.text, &theme::small(), colours.ink);
                widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
                set_accessible_name(&response, Role::Link, &heading.text);
                if response.clicked() {
                    chosen = Some(heading.at);
                }
            }
            ui.add_space(space::L);
            title(ui, "About this note");
            let characters = self.count_characters(world);
            facts(ui, session, world, characters);
            ui.add_space(space::XL);
        });
        chosen
    }
}

fn facts(ui: &mut Ui, session: &Session, world: &EditContext<'_>, characters: usize) {
    let note = world.note;
    let place = session.locate_file(note.id);
    let volume = place.and_then(|(volume, _)| session.volume(volume));
    fact(ui, "Words", &format_thousands(world.sheet.words()));
    fact(ui, "Characters", &format_thousands(characters));
    fact(ui, "Size", &amount(note.length() as u64));
    fact(ui, "Path", place.map_or("", |(_, path)| path));
    fact(ui, "Volume", volume.map_or("", |volume| volume.name.as_str()));
    fact(ui, "Cells", &format_thousands(world.sheet.cells()));
    ui.add_space(space::L);
    title(ui, "Details");
    let outline = volume.and_then(|volume| volume.links.outline(note.id));
    if let Some(created) = outline.and_then(|outline| outline.properties.get("created")?.as_str()) {
        fact(ui, "Created", created);
    }
    let row = volume.zip(place).and_then(|(volume, (_, path))| volume.files.get(path));
    if let Some(row) = row.filter(|row| row.mtime > 0) {
        fact(ui, "Modified", &ui::time::when(row.mtime / 1_000_000_000));
    }
    fact(ui, "Blocks", &format_thousands(world.texts.len()));
    fact(ui, "Unsaved changes", if note.is_ahead_of_file() { "being written to the file" } else { "none" });
    fact(
        ui,
        "Kernel",
        &format!(
            "{}, {}",
            note.kernel_name().unwrap_or("built in"),
            match note.kernel {
                KernelPhase::Off => "off; the next cell starts it",
                KernelPhase::Idle => "idle",
                KernelPhase::Busy(_) => "running",
            }
        ),
    );
}

fn title(ui: &mut Ui, text: &str) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::TOOLBAR_HEIGHT), Sense::hover());
    let font = theme::inter_font(theme::InterCut::SemiBold, 13.0);
    ui.painter().text(
        rect.left_center() + vec2(space::L, 0.0),
        Align2::LEFT_CENTER,
        text,
        font,
        ThemeColors::of(ui).ink,
    );
    set_accessible_name(&response, Role::Heading, text);
}

fn fact(ui: &mut Ui, name: &str, value: &str) {
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 24.0), Sense::hover());
    set_accessible_name(&response, Role::Label, &format!("{name}: {value}"));
    let y = rect.center().y - 10.0;
    let left = rect.left() + space::L;
    paint_clipped_text(ui, pos2(left, y), 120.0, name, &theme::small(), colours.muted);
    let right = Rect::from_min_max(pos2(left + 128.0, y), pos2(rect.right() - space::L, y));
    let style = theme::TypeStyle { font: theme::tabular_font(13.0), line: 20.0 };
    paint_clipped_text(ui, right.min, right.width(), value, &style, colours.ink);
    response.on_hover_text(text::untrusted_text::escape_block(value).into_owned());
}

/// Returns a heading's text without Markdown syntax.
fn words(source: &str) -> String {
    let read = text::markdown::parse(source, text::markdown::parser_options(), |parser| {
        let mut text = String::new();
        for mark in parser {
            match mark {
                Mark::Text(part) | Mark::Code(part) => text.push_str(&part),
                Mark::SoftBreak | Mark::HardBreak => text.push(' '),
                _ => {}
            }
        }
        text
    });
    let text = read.unwrap_or_else(|_| source.trim().to_owned());
    if text.is_empty() { "(empty heading)".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn headings_without_marks() {
        assert_eq!(words("## A `b` *c* [d](e) ##"), "A b c d");
        assert_eq!(words("#"), "(empty heading)");
    }
}
