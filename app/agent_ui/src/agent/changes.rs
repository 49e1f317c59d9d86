//! What a run changed, as a page: each file with its hunks; a hunk is taken back or brought again, or all of it.

use super::{labels, markdown_view};
use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Id, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{AgentRun, Command, Session};
use store::{ChangeKind, DocId, RunChange};
use ui::empty_state;
use ui::icons;
use ui::theme::{self, CARD_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, set_accessible_name, text_button, word_button};

/// A part of a change.
struct ChangeHunk {
    number: u64,
    part: usize,
    text: String,
    undone: bool,
    height: f32,
}

/// A file, and what was changed in it.
struct ChangedFileView {
    title: String,
    about: String,
    file: Option<DocId>,
    pieces: Vec<ChangeHunk>,
}

/// The changes that a run made to files, as a page.
pub struct ChangesPage {
    run: DocId,
    made: Option<(u64, u32)>,
    files: Vec<ChangedFileView>,
}

/// A line in the panel that leads to the page.
pub(super) fn show_changes_link(ui: &mut Ui, run: &AgentRun, actions: &mut Vec<PanelAction>) {
    if run.changes.is_empty() {
        return;
    }
    let files: std::collections::BTreeSet<&str> = run.changes.iter().map(|change| change.path.as_str()).collect();
    let words = if files.len() == 1 {
        "Review what changed in 1 file".to_owned()
    } else {
        format!("Review what changed in {} files", files.len())
    };
    if text_button(ui, &words, false).clicked() {
        actions.push(PanelAction::Run(CommandId::AgentChanges));
    }
}

/// What a change did, in a word, and each of its parts as a diff.
fn describe_change(change: &RunChange) -> (&'static str, Vec<String>) {
    match &change.what {
        ChangeKind::Created { text } => ("made", vec![labels::diff_text("all of it", "", text)]),
        ChangeKind::Edited { hunks } => {
            let hunk = |hunk: &store::TextHunk| {
                let before = hunk.before.lines().last().unwrap_or("").trim();
                let place = if before.is_empty() { "at the start".to_owned() } else { format!("after “{before}”") };
                labels::diff_text(&place, &hunk.removed, &hunk.inserted)
            };
            ("changed", hunks.iter().map(hunk).collect())
        }
        ChangeKind::Deleted => ("in the trash", vec!["The file was put into the trash.".to_owned()]),
        ChangeKind::Bytes { before, after } => {
            let words = match (before, after) {
                (None, _) => "made",
                (Some(_), None) => "removed",
                (Some(_), Some(_)) => "changed",
            };
            (words, vec!["This file isn't a note. It's reverted as a whole.".to_owned()])
        }
    }
}

impl ChangesPage {
    /// The page of this run.
    pub fn new(run: DocId) -> ChangesPage {
        ChangesPage { run, made: None, files: Vec::new() }
    }

    fn make(&mut self, ui: &Ui, run: &AgentRun, width: f32) {
        let key = (run.revision, width.to_bits());
        if self.made == Some(key) {
            return;
        }
        self.files.clear();
        for change in &run.changes {
            let (about, texts) = describe_change(change);
            let pieces = texts.into_iter().enumerate().map(|(part, text)| {
                let height = markdown_view::height(ui, width, &text) + 2.0 * space::XS;
                ChangeHunk { number: change.number, part, text, undone: change.undone.contains(&part), height }
            });
            let about = format!("{about} at {}", labels::time_label(change.at));
            match self.files.iter_mut().find(|file| file.title == change.path) {
                Some(file) => {
                    file.about = about;
                    file.pieces.extend(pieces);
                }
                None => {
                    let (title, pieces) = (change.path.clone(), pieces.collect());
                    self.files.push(ChangedFileView { title, about, file: change.file, pieces });
                }
            }
        }
        self.made = Some(key);
    }

    /// Draws the page; the run may still be loading.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        let Some(run) = session.agents().run(self.run) else {
            empty_state::show_message(ui, "Reading the run…", None, "");
            return;
        };
        if run.changes.is_empty() {
            empty_state::show_message(ui, "This run has changed nothing.", None, "");
            return;
        }
        let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
        let margin = ((ui.available_width() - width) / 2.0).max(space::L);
        self.make(ui, run, width);
        let pieces = || self.files.iter().flat_map(|file| &file.pieces);
        let (made, undone) = (pieces().any(|piece| !piece.undone), pieces().any(|piece| piece.undone));
        let revert = |only, again| PanelAction::Do(Command::Revert { run: run.id, only, again });
        ui.add_space(space::L);
        ui.horizontal(|ui| {
            ui.add_space(margin);
            ui.spacing_mut().item_spacing.x = space::S;
            if made && text_button(ui, "Undo all", false).clicked() {
                actions.push(revert(None, false));
            }
            if undone && text_button(ui, "Redo all", false).clicked() {
                actions.push(revert(None, true));
            }
            if super::works(run) {
                let (rect, response) = ui.allocate_exact_size(vec2(260.0, size::MIN_CLICK_HEIGHT), Sense::hover());
                let words = "The run is active. Stop it first.";
                paint_clipped_text(
                    ui,
                    rect.left_center() - vec2(0.0, 8.0),
                    260.0,
                    words,
                    &theme::caption(),
                    ThemeColors::of(ui).muted,
                );
                set_accessible_name(&response, Role::Label, words);
            }
        });
        ui.add_space(space::S);
        let colours = ThemeColors::of(ui);
        egui::ScrollArea::vertical().id_salt("changes").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            let heights = |file: &ChangedFileView| {
                FILE_HEADER_HEIGHT
                    + file.pieces.iter().map(|piece| piece.height + FILE_FOOTER_HEIGHT).sum::<f32>()
                    + space::XL
            };
            ui.set_height(self.files.iter().map(heights).sum::<f32>() + space::XL);
            let page = ui.max_rect();
            let (left, mut y) = (page.left() + margin, page.top());
            let near = |top: f32, height: f32| {
                top + height >= page.top() + viewport.top() && top <= page.top() + viewport.bottom()
            };
            for file in &self.files {
                let head = Rect::from_min_size(pos2(left, y), vec2(width, FILE_HEADER_HEIGHT));
                if near(y, FILE_HEADER_HEIGHT) {
                    title(ui, head, file, actions);
                }
                y += FILE_HEADER_HEIGHT;
                for piece in &file.pieces {
                    if near(y, piece.height + FILE_FOOTER_HEIGHT) {
                        let rect = Rect::from_min_size(pos2(left, y), vec2(width, piece.height));
                        let ground = if piece.undone { colours.paper } else { colours.sunken };
                        ui.painter().rect(
                            rect,
                            CARD_CORNER,
                            ground,
                            Stroke::new(1.0, colours.line),
                            egui::StrokeKind::Inside,
                        );
                        markdown_view::paint_mono(ui, rect.min + vec2(0.0, space::XS), width, &piece.text);
                        let id = Id::unique(("hunk", piece.number, piece.part));
                        set_accessible_name(&ui.interact(rect, id, Sense::hover()), Role::Label, &piece.text);
                        let foot = Rect::from_min_size(pos2(left, rect.bottom()), vec2(width, size::MIN_CLICK_HEIGHT));
                        buttons(ui, foot, file, piece, &revert, actions);
                    }
                    y += piece.height + FILE_FOOTER_HEIGHT;
                }
                y += space::XL;
            }
        });
    }
}

const FILE_HEADER_HEIGHT: f32 = 36.0;
const FILE_FOOTER_HEIGHT: f32 = 36.0;

fn title(ui: &mut Ui, rect: Rect, file: &ChangedFileView, actions: &mut Vec<PanelAction>) {
    let colours = ThemeColors::of(ui);
    let id = Id::unique(("changed file", &file.title));
    let response = ui.interact(rect, id, if file.file.is_some() { Sense::click() } else { Sense::hover() });
    let at = rect.left_center() + vec2(8.0, 0.0);
    ui.painter().text(at, Align2::CENTER_CENTER, icons::NOTE, theme::icon_font(size::ICON_SIZE), colours.muted);
    let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 15.0), line: 24.0 };
    let room = rect.width() - 180.0;
    let ink = if response.hovered() && file.file.is_some() { colours.accent } else { colours.ink };
    paint_clipped_text(ui, rect.left_center() + vec2(24.0, -12.0), room, &file.title, &style, ink);
    ui.painter().text(
        rect.right_center(),
        Align2::RIGHT_CENTER,
        text::untrusted_text::escape_line(&file.about),
        theme::caption().font,
        colours.muted,
    );
    ui::widgets::paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
    set_accessible_name(&response, Role::Heading, &format!("{}: {}", file.title, file.about));
    if response.clicked() {
        actions.extend(file.file.map(PanelAction::Open));
    }
}

/// What can be done with a part of a change.
fn buttons(
    ui: &mut Ui,
    foot: Rect,
    file: &ChangedFileView,
    piece: &ChangeHunk,
    revert: &dyn Fn(Option<(u64, Option<usize>)>, bool) -> PanelAction,
    actions: &mut Vec<PanelAction>,
) {
    let colours = ThemeColors::of(ui);
    let (word, says) = if piece.undone { ("Bring it back", "Taken back") } else { ("Reject", "In the file") };
    let layout = Layout::right_to_left(Align::Center);
    let child =
        ui.new_child(UiBuilder::new().max_rect(foot).id_salt(("hunk's foot", piece.number, piece.part)).layout(layout));
    let wide = if piece.undone { 84.0 } else { 48.0 };
    let rect = Rect::from_min_max(pos2(foot.right() - wide, foot.top()), foot.max);
    let name = format!("{word}: {} part {}", file.title, piece.part + 1);
    let mut child = child;
    let id = Id::unique(("hunk's button", piece.number, piece.part));
    if word_button(&mut child, rect, id, word, &name).clicked() {
        actions.push(revert(Some((piece.number, Some(piece.part))), piece.undone));
    }
    let (icon, colour) = if piece.undone { (icons::UNDO, colours.muted) } else { (icons::CHECK, colours.ok) };
    ui.painter().text(foot.left_center() + vec2(8.0, 0.0), Align2::CENTER_CENTER, icon, theme::icon_font(13.0), colour);
    paint_clipped_text(ui, foot.left_center() + vec2(22.0, -8.0), 200.0, says, &theme::caption(), colours.muted);
}
