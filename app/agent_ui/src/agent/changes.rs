//! The page of changes made by a session's runs: each run with its files and their hunks. A hunk, or a whole run, can
//! be kept, reverted or restored.

use super::diff_view::DiffView;
use super::labels;
use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Id, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::{AgentRun, Command, RunsState, Session};
use std::collections::BTreeSet;
use store::{ChangeKind, DocId, RunChange};
use ui::empty_state;
use ui::icons;
use ui::theme::{self, CARD_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, set_accessible_name, text_button, word_button};

/// Height of a run's header, a file's header, and the buttons below a hunk.
const RUN_HEADER_HEIGHT: f32 = 40.0;
const FILE_HEADER_HEIGHT: f32 = 36.0;
const HUNK_FOOTER_HEIGHT: f32 = 36.0;
/// Maximum number of a session's runs that are read for the page, newest first.
const MAX_LISTED_RUNS: usize = 50;

/// A hunk of a change.
struct ChangeHunk {
    number: u64,
    part: usize,
    body: HunkBody,
    undone: bool,
    height: f32,
}

/// Displayed content of a hunk.
enum HunkBody {
    Diff(DiffView),
    /// A description of a change that isn't text.
    Words(&'static str),
}

/// A changed file with its hunks.
struct ChangedFileView {
    title: String,
    about: String,
    file: Option<DocId>,
    pieces: Vec<ChangeHunk>,
}

/// A run with the files that it changed.
struct ChangedRunView {
    id: DocId,
    title: String,
    works: bool,
    files: Vec<ChangedFileView>,
}

/// What the page was built for: the runs with their revisions, the width, and the number of kept hunks.
type ChangesKey = (Vec<(DocId, u64)>, u32, usize);

/// The page that lists the changes made by a session's runs.
pub struct ChangesPage {
    run: DocId,
    made: Option<ChangesKey>,
    runs: Vec<ChangedRunView>,
    /// Hunks that the user has reviewed and keeps.
    kept: BTreeSet<(DocId, u64, usize)>,
    /// Runs that were already requested.
    read: BTreeSet<DocId>,
}

/// Returns how many files a run changed as a label, or `None` if none.
pub(super) fn changed_files_label(run: &AgentRun) -> Option<String> {
    let files: BTreeSet<&str> = run.changes.iter().map(|change| change.path.as_str()).collect();
    match files.len() {
        0 => None,
        1 => Some("1 file changed".to_owned()),
        count => Some(format!("{count} files changed")),
    }
}

/// Returns a change's kind as a word, and its hunks.
fn describe_change(change: &RunChange) -> (&'static str, Vec<HunkBody>) {
    match &change.what {
        ChangeKind::Created { text } => ("made", vec![HunkBody::Diff(DiffView::of_new_text(text))]),
        ChangeKind::Edited { hunks } => {
            ("changed", hunks.iter().map(|hunk| HunkBody::Diff(DiffView::of_hunk(hunk))).collect())
        }
        ChangeKind::Deleted => ("in the trash", vec![HunkBody::Words("The file was put into the trash.")]),
        ChangeKind::Bytes { before, after } => {
            let words = match (before, after) {
                (None, _) => "made",
                (Some(_), None) => "removed",
                (Some(_), Some(_)) => "changed",
            };
            (words, vec![HunkBody::Words("This file isn't a note. It's reverted as a whole.")])
        }
    }
}

impl ChangedRunView {
    fn of(ui: &Ui, run: &AgentRun, width: f32, kept: &BTreeSet<(DocId, u64, usize)>) -> ChangedRunView {
        let mut files: Vec<ChangedFileView> = Vec::new();
        for change in &run.changes {
            let (about, bodies) = describe_change(change);
            let pieces = bodies.into_iter().enumerate().map(|(part, body)| {
                let height = match &body {
                    _ if kept.contains(&(run.id, change.number, part)) => 0.0,
                    HunkBody::Diff(view) => view.height(ui, width) + 2.0 * space::XS,
                    HunkBody::Words(_) => size::MIN_CLICK_HEIGHT,
                };
                ChangeHunk { number: change.number, part, body, undone: change.undone.contains(&part), height }
            });
            let about = format!("{about} at {}", labels::time_label(change.at));
            match files.iter_mut().find(|file| file.title == change.path) {
                Some(file) => {
                    file.about = about;
                    file.pieces.extend(pieces);
                }
                None => {
                    let (title, pieces) = (change.path.clone(), pieces.collect());
                    files.push(ChangedFileView { title, about, file: change.file, pieces });
                }
            }
        }
        let title = run.about.prompt.lines().next().unwrap_or_default().to_owned();
        ChangedRunView { id: run.id, title, works: super::works(run), files }
    }

    fn height(&self) -> f32 {
        let pieces =
            |file: &ChangedFileView| -> f32 { file.pieces.iter().map(|piece| piece.height + HUNK_FOOTER_HEIGHT).sum() };
        let files = self.files.iter().map(|file| FILE_HEADER_HEIGHT + pieces(file) + space::XL);
        RUN_HEADER_HEIGHT + files.sum::<f32>()
    }
}

impl ChangesPage {
    /// Creates the page for this run's session.
    pub fn new(run: DocId) -> ChangesPage {
        ChangesPage { run, made: None, runs: Vec::new(), kept: BTreeSet::new(), read: BTreeSet::new() }
    }

    /// Returns the changed runs of the same session, newest first. Runs that aren't open yet are requested.
    fn session_runs<'a>(&mut self, agents: &'a RunsState, actions: &mut Vec<PanelAction>) -> Vec<&'a AgentRun> {
        let session = agents.runs().find(|(id, _)| *id == self.run).map(|(_, line)| line.session);
        let mut ids: Vec<(i64, DocId)> = agents
            .runs()
            .filter(|(id, line)| *id == self.run || Some(line.session) == session)
            .map(|(id, line)| (line.start_time, id))
            .collect();
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids.truncate(MAX_LISTED_RUNS);
        for (_, run) in &ids {
            if agents.run(*run).is_none() && self.read.insert(*run) {
                actions.push(PanelAction::Do(Command::OpenRun { run: *run }));
            }
        }
        ids.into_iter().filter_map(|(_, id)| agents.run(id)).filter(|run| !run.changes.is_empty()).collect()
    }

    /// Draws the page; the run may still be loading.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        let agents = session.agents();
        let runs = self.session_runs(agents, actions);
        if runs.is_empty() {
            let is_read = agents.run(self.run).is_some();
            let words = if is_read { "This session has changed nothing." } else { "Reading the run…" };
            empty_state::show_message(ui, words, None, "");
            return;
        }
        let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
        let margin = ((ui.available_width() - width) / 2.0).max(space::L);
        let states = runs.iter().map(|run| (run.id, run.revision)).collect();
        let key = (states, width.to_bits(), self.kept.len());
        if self.made.as_ref() != Some(&key) {
            self.runs = runs.iter().map(|run| ChangedRunView::of(ui, run, width, &self.kept)).collect();
            self.made = Some(key);
        }
        let mut kept = None;
        ui.add_space(space::S);
        egui::ScrollArea::vertical().id_salt("changes").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            ui.set_height(self.runs.iter().map(ChangedRunView::height).sum::<f32>() + space::XL);
            let page = ui.max_rect();
            let (left, mut y) = (page.left() + margin, page.top());
            let near = |top: f32, height: f32| {
                top + height >= page.top() + viewport.top() && top <= page.top() + viewport.bottom()
            };
            for run in &self.runs {
                if near(y, RUN_HEADER_HEIGHT) {
                    let head = Rect::from_min_size(pos2(left, y), vec2(width, RUN_HEADER_HEIGHT));
                    show_run_header(ui, head, run, actions);
                }
                y += RUN_HEADER_HEIGHT;
                for file in &run.files {
                    if near(y, FILE_HEADER_HEIGHT) {
                        let head = Rect::from_min_size(pos2(left, y), vec2(width, FILE_HEADER_HEIGHT));
                        show_file_header(ui, head, run.id, file, actions);
                    }
                    y += FILE_HEADER_HEIGHT;
                    for piece in &file.pieces {
                        if near(y, piece.height + HUNK_FOOTER_HEIGHT) {
                            let rect = Rect::from_min_size(pos2(left, y), vec2(width, piece.height));
                            show_hunk(ui, rect, run.id, piece);
                            let foot = Rect::from_min_size(rect.left_bottom(), vec2(width, size::MIN_CLICK_HEIGHT));
                            let is_kept = self.kept.contains(&(run.id, piece.number, piece.part));
                            if show_hunk_buttons(ui, foot, run.id, file, (piece, is_kept), actions) {
                                kept = Some((run.id, piece.number, piece.part));
                            }
                        }
                        y += piece.height + HUNK_FOOTER_HEIGHT;
                    }
                    y += space::XL;
                }
            }
        });
        self.kept.extend(kept);
    }
}

/// Draws a run's prompt, and the buttons for all its changes.
fn show_run_header(ui: &mut Ui, rect: Rect, run: &ChangedRunView, actions: &mut Vec<PanelAction>) {
    let colours = ThemeColors::of(ui);
    let pieces = || run.files.iter().flat_map(|file| &file.pieces);
    let (made, undone) = (pieces().any(|piece| !piece.undone), pieces().any(|piece| piece.undone));
    let layout = egui::Layout::right_to_left(egui::Align::Center);
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(("run", run.id)).layout(layout));
    child.spacing_mut().item_spacing.x = space::S;
    for (shown, words, again) in [(undone, "Redo all", true), (made, "Undo all", false)] {
        if shown && text_button(&mut child, words, false).clicked() {
            actions.push(PanelAction::Do(Command::Revert { run: run.id, only: None, again }));
        }
    }
    let room = child.min_rect().left() - rect.left() - space::S;
    let words = if run.works { "The run is active. Stop it first." } else { run.title.as_str() };
    let style = theme::small();
    paint_clipped_text(ui, rect.left_center() - vec2(0.0, 10.0), room, words, &style, colours.muted);
    let id = Id::unique(("changes of", run.id));
    let response = ui.interact(rect.with_max_x(rect.left() + room.max(0.0)), id, Sense::hover());
    set_accessible_name(&response, Role::Heading, words);
}

fn show_file_header(ui: &mut Ui, rect: Rect, run: DocId, file: &ChangedFileView, actions: &mut Vec<PanelAction>) {
    let colours = ThemeColors::of(ui);
    let id = Id::unique(("changed file", run, &file.title));
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

fn show_hunk(ui: &mut Ui, rect: Rect, run: DocId, piece: &ChangeHunk) {
    if piece.height == 0.0 {
        return;
    }
    let colours = ThemeColors::of(ui);
    let ground = if piece.undone { colours.paper } else { colours.sunken };
    ui.painter().rect(rect, CARD_CORNER, ground, Stroke::new(1.0, colours.line), egui::StrokeKind::Inside);
    let id = Id::unique(("hunk", run, piece.number, piece.part));
    let response = ui.interact(rect, id, Sense::hover());
    match &piece.body {
        HunkBody::Diff(view) => {
            view.paint(ui, rect.min + vec2(0.0, space::XS), rect.width());
            set_accessible_name(&response, Role::Label, &view.text());
        }
        HunkBody::Words(words) => {
            let at = rect.left_center() + vec2(space::S, -10.0);
            paint_clipped_text(ui, at, rect.width() - space::L, words, &theme::small(), colours.muted);
            set_accessible_name(&response, Role::Label, words);
        }
    }
}

/// Draws the buttons of a hunk. Returns whether the user keeps it.
fn show_hunk_buttons(
    ui: &mut Ui,
    foot: Rect,
    run: DocId,
    file: &ChangedFileView,
    (piece, is_kept): (&ChangeHunk, bool),
    actions: &mut Vec<PanelAction>,
) -> bool {
    let colours = ThemeColors::of(ui);
    let mut right = foot.right();
    let mut button = |ui: &mut Ui, word: &str, width: f32| {
        let rect = Rect::from_min_max(pos2(right - width, foot.top()), pos2(right, foot.bottom()));
        right = rect.left() - space::S;
        let name = format!("{word}: {} part {}", file.title, piece.part + 1);
        let id = Id::unique(("hunk's button", run, piece.number, piece.part, word));
        word_button(ui, rect, id, word, &name).clicked()
    };
    let mut keeps = false;
    let reverts;
    let says = match (piece.undone, is_kept) {
        (true, _) => {
            reverts = button(ui, "Bring it back", 84.0);
            "Reverted"
        }
        (false, true) => {
            reverts = button(ui, "Revert", 48.0);
            "Kept"
        }
        (false, false) => {
            reverts = button(ui, "Revert", 48.0);
            keeps = button(ui, "Keep", 36.0);
            ""
        }
    };
    if reverts {
        let only = Some((piece.number, Some(piece.part)));
        actions.push(PanelAction::Do(Command::Revert { run, only, again: piece.undone }));
    }
    if !says.is_empty() {
        let (icon, colour) = if piece.undone { (icons::UNDO, colours.muted) } else { (icons::CHECK, colours.ok) };
        let at = foot.left_center() + vec2(8.0, 0.0);
        ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(13.0), colour);
        paint_clipped_text(ui, foot.left_center() + vec2(22.0, -8.0), 200.0, says, &theme::caption(), colours.muted);
    }
    keeps
}
