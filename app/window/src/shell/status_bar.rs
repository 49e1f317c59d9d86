//! The status bar: save state, current page, kernel state.

use super::commands::ShortcutTable;
use crate::pages::sync;
use agent_ui::memory::ModelCostStatus;
use editor::remote_cursors;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, Galley, Rect, Sense, Ui, Vec2, pos2, vec2};
use engine::commands::CommandId;
use engine::{ColorTheme, KernelPhase, Note, NotePhase, ScanState, Session, SyncStatus};
use host::search::IndexFreshness;
use host::source_control::SourceControl;
use notebook::actions::PageAction;
use std::sync::Arc;
use store::DocId;
use ui::icons;
use ui::menus::{menu_below, menu_choice, menu_item, menu_note, menu_separator};
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{self, paint_clipped_text, set_accessible_name};

/// How long a save may take before the status bar shows it, in seconds.
const SLOW_EDIT_SECONDS: f64 = 0.25;

/// Maximum width that is always reserved for the save state, in points.
const MAX_RESERVED_SAVE_WIDTH: f32 = 200.0;
/// Minimum number of unindexed notes for which the backlog is shown.
const MIN_SHOWN_INDEX_BACKLOG: usize = 10;
/// Interval at which the index state is updated while it's shown.
const INDEX_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// State of the status bar between frames.
#[derive(Default)]
pub(crate) struct StatusBar {
    /// Time since which a write to disk is pending.
    since: Option<f64>,
    /// The displayed sync status, and the actual one with its start time.
    sync: Option<SyncIndicator>,
    caret: Option<CaretLabel>,
    model: ModelCostStatus,
}

/// What the status bar shows in one frame.
#[derive(Clone, Copy)]
pub(crate) struct StatusContext<'a> {
    pub(crate) session: &'a Session,
    /// Number of requests of other programs that wait.
    pub(crate) program_requests: usize,
    pub(crate) source: &'a SourceControl,
    pub(crate) shortcuts: &'a ShortcutTable,
    /// The open note.
    pub(crate) note: Option<&'a Note>,
    /// The number of words in the note.
    pub(crate) words: usize,
    /// The mode of an emulated editor.
    pub(crate) mode: Option<&'a str>,
    /// The carets in the open note, each as its offset and selection anchor.
    pub(crate) carets: &'a [(usize, usize)],
    /// The state of the search index.
    pub(crate) index: &'a IndexFreshness,
}

/// The sync status for the status bar.
struct SyncIndicator {
    revision: u64,
    standing: SyncStatus,
    since: f64,
    /// The displayed status, which is delayed so that keystrokes don't make it flicker.
    said: SyncStatus,
}

/// How long syncing or connecting must last before it's shown, in seconds.
const SYNC_STATUS_DELAY_SECONDS: f64 = 0.8;

/// Severity of a status text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusTone {
    /// Everything is saved.
    Saved,
    Calm,
    Warn,
    Bad,
}

/// Describes the save state. `slow`: a write has been pending for a while.
pub(crate) fn save_status(session: &Session, note: Option<&Note>, slow: bool) -> (String, StatusTone) {
    let saving = session.saving();
    if let Some(why) = &saving.trouble {
        return (format!("Not saved: {why}"), StatusTone::Bad);
    }
    if let Some(note) = note {
        if let Some(why) = &note.file.trouble {
            return (format!("Can't write the file: {why}"), StatusTone::Warn);
        }
        if note.file.gone {
            let says = "Another program deleted this file. Typing creates it again.";
            return (says.to_owned(), StatusTone::Warn);
        }
        if let Some(why) = note.read_only() {
            return (format!("Read-only: {why}"), StatusTone::Warn);
        }
        if let Some(why) = note.edit_refusal() {
            return (why, StatusTone::Warn);
        }
    }
    if let Some(other) = session.notes().find(|note| note.file.trouble.is_some()) {
        let path = session.locate_file(other.id).map_or("a note", |(_, path)| path);
        return (format!("Can't write {path}"), StatusTone::Warn);
    }
    if saving.last > saving.durable && slow {
        return ("Saving…".to_owned(), StatusTone::Calm);
    }
    if saving.last > saving.durable || !session.is_saved() {
        return ("On disk, writing file…".to_owned(), StatusTone::Calm);
    }
    ("All saved".to_owned(), StatusTone::Saved)
}

impl StatusBar {
    /// Shows a pending save without delay, since the user requested to save.
    pub(crate) fn on_save_requested(&mut self) {
        self.since = self.since.map(|since| since - SLOW_EDIT_SECONDS);
    }

    /// Draws the status bar.
    pub(crate) fn show(&mut self, ui: &mut Ui, context: &StatusContext<'_>, actions: &mut Vec<PageAction>) {
        let StatusContext { session, shortcuts, note, .. } = *context;
        let colours = ThemeColors::of(ui);
        let rect = ui.max_rect();
        let now = ui.input(|input| input.time);
        let on_the_way = session.saving().last > session.saving().durable;
        self.since = if on_the_way { self.since.or(Some(now)) } else { None };
        let slow = self.since.is_some_and(|since| now - since >= SLOW_EDIT_SECONDS);
        if on_the_way && !slow {
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(SLOW_EDIT_SECONDS));
        }
        let (text, tone) = save_status(session, note, slow);
        let mut right = rect.right() - space::M;
        right -= theme_button(ui, session.settings().theme, shortcuts, right, actions) + space::S;
        if let Some(note) = note.filter(|note| note.phase == NotePhase::Ready) {
            let company = remote_cursors::show_remote_users(ui, session, note, right);
            right -= if company > 0.0 { company + space::L } else { 0.0 };
        }
        let saved = ui.painter().layout_no_wrap(text.clone(), theme::caption().font, colours.muted).size().x;
        let room = right - rect.left() - space::L - 18.0 - saved.min(MAX_RESERVED_SAVE_WIDTH) - space::L;
        let items = self.items(ui, context, now);
        for item in fitting_items(ui, items, room) {
            right -= item.show(ui, context, right, actions) + space::L;
        }
        let (icon, colour) = match tone {
            StatusTone::Saved => (icons::CHECK, colours.muted),
            StatusTone::Calm => (icons::FLOPPY, colours.muted),
            StatusTone::Warn => (icons::WARNING, colours.warn),
            StatusTone::Bad => (icons::WARNING_CIRCLE, colours.bad),
        };
        let left = rect.left() + space::L;
        ui.painter().text(pos2(left, rect.center().y), Align2::LEFT_CENTER, icon, theme::icon_font(13.0), colour);
        let at = pos2(left + 18.0, rect.center().y - 8.0);
        let width = paint_clipped_text(ui, at, right - at.x, &text, &theme::caption(), colour);
        let area = vec2(width + 18.0 + 2.0 * space::XS, size::MIN_CLICK_HEIGHT);
        let area = Rect::from_min_size(pos2(left - space::XS, rect.center().y - area.y / 2.0), area);
        let response = ui.interact(area, ui.scope_id().with("saving"), Sense::click());
        widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
        set_accessible_name(&response, Role::Button, &text);
        menu_below(&response, "Saving", |ui| {
            for (id, enabled) in [(CommandId::NoteSave, true), (CommandId::NoteHistory, note.is_some())] {
                if menu_item(ui, id.title(), shortcuts.key_of(id), enabled) {
                    actions.push(PageAction::Run(id));
                }
            }
        });
        if matches!(tone, StatusTone::Warn | StatusTone::Bad) {
            response.on_hover_text(text::untrusted_text::escape_block(&text).into_owned());
        }
    }
}

impl StatusBar {
    /// Returns the sync status if anything is shared.
    fn visible_sync_status(&mut self, ui: &Ui, session: &Session, now: f64) -> Option<SyncStatus> {
        let revision = session.sync().revision;
        if self.sync.as_ref().is_none_or(|known| known.revision != revision) {
            let standing = session.sync_status();
            let (same, said) = match self.sync.take() {
                Some(known) if known.standing == standing => (Some(known.since), known.said),
                Some(known) => (None, known.said),
                None => (None, standing.clone()),
            };
            self.sync = Some(SyncIndicator { revision, standing, since: same.unwrap_or(now), said });
        }
        let known = self.sync.as_mut()?;
        let brief = matches!(known.standing, SyncStatus::Syncing(_) | SyncStatus::Connecting);
        if !brief || matches!(known.said, SyncStatus::NotShared) || now - known.since >= SYNC_STATUS_DELAY_SECONDS {
            known.said = known.standing.clone();
        } else if known.said != known.standing {
            let wait = known.since + SYNC_STATUS_DELAY_SECONDS - now;
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(wait));
        }
        Some(known.said.clone()).filter(|said| *said != SyncStatus::NotShared)
    }
}

impl StatusBar {
    /// Returns the items at the right of the status bar, from the right.
    fn items(&mut self, ui: &Ui, context: &StatusContext<'_>, now: f64) -> Vec<StatusItem> {
        let StatusContext { session, note, words, mode, carets, index, .. } = *context;
        let colours = ThemeColors::of(ui);
        let mut items = Vec::new();
        if let Some(note) = note.filter(|note| note.phase == NotePhase::Ready) {
            let text =
                if words == 1 { "1 word".to_owned() } else { format!("{} words", ui::text::format_thousands(words)) };
            let item = StatusItem::new(StatusPart::Words, text, colours.muted);
            items.push(StatusItem { hint: "Show the outline", ..item });
            items.push(StatusItem::new(StatusPart::Kernel, kernel_state(note), colours.muted));
            if let Some((text, name)) = self.caret_label(note, carets) {
                let item = StatusItem::new(StatusPart::Caret, text, colours.muted);
                items.push(StatusItem { name, ..item });
            }
        }
        if let Some(volume) = source_control::concerned_volume(session, context.source, note.map(|note| note.id))
            && let Some(status) = context.source.status(volume)
        {
            let text = source_control::branch_label(&status.branch);
            let item = StatusItem::new(StatusPart::Branch, text, colours.muted);
            let name = source_control::branch_name(&status.branch);
            items.push(StatusItem { name, hint: "Source control", icon: Some(icons::BRANCH), ..item });
        }
        if let Some(standing) = self.visible_sync_status(ui, session, now) {
            let text = standing.describe();
            let (icon, _) = sync::status_icon(&standing, colours);
            let name = format!("Sync: {text}");
            let item = StatusItem::new(StatusPart::Sync(standing), text, colours.muted);
            items.push(StatusItem { name, icon: Some(icon), ..item });
        }
        let waiting = agent_ui::agent::pending_decision_count(session.agents()) + context.program_requests;
        if waiting > 0 {
            let text = format!("{waiting} {} waiting", if waiting == 1 { "approval" } else { "approvals" });
            let item = StatusItem::new(StatusPart::Approvals, text, colours.warn);
            items.push(StatusItem { hint: "Show approvals", icon: Some(icons::WARNING), ..item });
        }
        let working = session.agents().open_runs().filter(|run| {
            session.is_own_device(run.device.as_ref()) && run.is_awake() && run.pending().next().is_none()
        });
        let text = match working.count() {
            0 => None,
            1 => Some("Agent is working".to_owned()),
            count => Some(format!("{count} agents are working")),
        };
        if let Some(text) = text {
            let item = StatusItem::new(StatusPart::Agent, text, colours.muted);
            items.push(StatusItem { hint: "Show the agent", icon: Some(icons::HOURGLASS), ..item });
        }
        let (text, name) = self.model.refresh(session);
        if !text.is_empty() {
            let item = StatusItem::new(StatusPart::Model, text.to_owned(), colours.muted);
            items.push(StatusItem { name: name.to_owned(), hint: "Show the budget", icon: Some(icons::ROBOT), ..item });
        }
        if let Some((text, is_bad)) = index_status(index) {
            let (colour, icon) =
                if is_bad { (colours.warn, icons::WARNING) } else { (colours.muted, icons::HOURGLASS) };
            let item = StatusItem::new(StatusPart::Index { is_bad }, text, colour);
            items.push(StatusItem { hint: "Search index status", icon: Some(icon), ..item });
            ui.ctx().request_repaint_after(INDEX_POLL_INTERVAL);
        }
        if let Some(mode) = mode {
            items.push(StatusItem::new(StatusPart::Mode, mode.to_owned(), colours.accent));
        }
        if let Some(text) = scanning(session) {
            items.push(StatusItem::new(StatusPart::Scan, text, colours.muted));
        }
        items
    }

    /// Returns the caret's position and the size of the selection: the displayed text, and the accessible name.
    fn caret_label(&mut self, note: &Note, carets: &[(usize, usize)]) -> Option<(String, String)> {
        let [(at, _), rest @ ..] = carets else { return None };
        let known =
            self.caret.as_ref().filter(|known| known.note == (note.id, note.revision()) && known.carets == carets);
        if known.is_none() {
            let (line, column) = line_and_column(note, *at);
            let selected =
                carets.iter().map(|(at, anchor)| chars_between(note, *at.min(anchor), *at.max(anchor))).sum();
            let (mut text, mut name) = if rest.is_empty() {
                (format!("Ln {line}, Col {column}"), format!("Line {line}, column {column}"))
            } else {
                let text = format!("{} carets", carets.len());
                (text.clone(), text)
            };
            if selected > 0 {
                let selected = ui::text::format_thousands(selected);
                text += &format!(" ({selected} selected)");
                name += &format!(", {selected} characters selected");
            }
            let note = (note.id, note.revision());
            self.caret = Some(CaretLabel { note, carets: carets.to_vec(), text, name });
        }
        self.caret.as_ref().map(|known| (known.text.clone(), known.name.clone()))
    }
}

/// The cached text of the caret's position, and what it was made from.
struct CaretLabel {
    note: (DocId, u64),
    carets: Vec<(usize, usize)>,
    text: String,
    name: String,
}

/// Returns line and column of a byte of a note, both counted from 1. Columns count characters.
fn line_and_column(note: &Note, at: usize) -> (usize, usize) {
    let (mut start, mut line, mut column) = (0, 1, 1);
    for block in note.blocks() {
        let before = block.text.get(..at.saturating_sub(start).min(block.text.len())).unwrap_or(&block.text);
        line += before.matches('\n').count();
        column = match before.rfind('\n') {
            Some(newline) => before[newline + 1..].chars().count() + 1,
            None => column + before.chars().count(),
        };
        start += block.text.len();
        if start >= at {
            break;
        }
    }
    (line, column)
}

fn chars_between(note: &Note, from: usize, to: usize) -> usize {
    let (mut start, mut count) = (0, 0);
    for block in note.blocks() {
        let inside = from.saturating_sub(start).min(block.text.len())..to.saturating_sub(start).min(block.text.len());
        count += block.text.get(inside).map_or(0, |text| text.chars().count());
        start += block.text.len();
    }
    count
}

/// Returns the text about the search index and whether it's a problem, or `None` if there's nothing to report.
fn index_status(index: &IndexFreshness) -> Option<(String, bool)> {
    if index.error.is_some() {
        return Some(("Search index has failed".to_owned(), true));
    }
    let waiting = index.waiting;
    // A few recently edited notes aren't worth showing.
    (waiting >= MIN_SHOWN_INDEX_BACKLOG)
        .then(|| (format!("Indexing {} notes", ui::text::format_thousands(waiting)), false))
}

/// An item at the right of the status bar.
struct StatusItem {
    part: StatusPart,
    text: String,
    /// Accessible name for screen readers.
    name: String,
    hint: &'static str,
    icon: Option<&'static str>,
    colour: Color32,
}

/// The kind of a status bar item.
#[derive(Clone, Debug, PartialEq)]
enum StatusPart {
    Words,
    Kernel,
    Caret,
    Branch,
    Sync(SyncStatus),
    Approvals,
    Agent,
    /// The agent's model and the month's cost.
    Model,
    Index {
        is_bad: bool,
    },
    Mode,
    Scan,
}

impl StatusPart {
    /// Returns the removal rank of an item. If there's too little room, the highest rank is removed first.
    fn fold_order(&self) -> u8 {
        match self {
            StatusPart::Approvals => 0,
            StatusPart::Mode => 1,
            StatusPart::Index { is_bad: true } => 2,
            StatusPart::Agent => 3,
            StatusPart::Kernel => 4,
            StatusPart::Sync(_) => 5,
            StatusPart::Scan => 6,
            StatusPart::Branch => 7,
            StatusPart::Model => 8,
            StatusPart::Index { is_bad: false } => 9,
            StatusPart::Caret => 10,
            StatusPart::Words => 11,
        }
    }

    fn is_button(&self) -> bool {
        !matches!(self, StatusPart::Caret | StatusPart::Mode | StatusPart::Scan)
    }
}

/// Returns the items that fit. The least important ones are removed first.
fn fitting_items(ui: &Ui, mut items: Vec<StatusItem>, room: f32) -> Vec<StatusItem> {
    let width = |items: &[StatusItem]| items.iter().map(|item| item.size(ui).x + space::L).sum::<f32>();
    while width(&items) > room {
        let least = (0..items.len()).max_by_key(|place| items[*place].part.fold_order());
        let Some(least) = least.filter(|place| items[*place].part != StatusPart::Approvals) else { break };
        items.remove(least);
    }
    items
}

impl StatusItem {
    fn new(part: StatusPart, text: String, colour: Color32) -> StatusItem {
        StatusItem { part, name: text.clone(), text, hint: "", icon: None, colour }
    }

    fn galley(&self, ui: &Ui, colour: Color32) -> Arc<Galley> {
        let text = text::untrusted_text::escape_line(&self.text).into_owned();
        ui.painter().layout_no_wrap(text, theme::tabular_font(12.0), colour)
    }

    /// Returns the width of the icons before and after the text, in points.
    fn margins(&self) -> (f32, f32) {
        (if self.icon.is_some() { 18.0 } else { 0.0 }, if self.part == StatusPart::Kernel { 14.0 } else { 0.0 })
    }

    fn size(&self, ui: &Ui) -> Vec2 {
        let (before, behind) = self.margins();
        self.galley(ui, self.colour).size() + vec2(before + behind, 0.0)
    }

    /// Draws the item with its right edge at `right`. Returns its width.
    fn show(self, ui: &Ui, context: &StatusContext<'_>, right: f32, actions: &mut Vec<PageAction>) -> f32 {
        let colours = ThemeColors::of(ui);
        let (size, middle) = (self.size(ui), ui.max_rect().center().y);
        let (before, behind) = self.margins();
        let is_button = self.part.is_button();
        let high = if is_button { size::MIN_CLICK_HEIGHT } else { size.y };
        let center = pos2(right - size.x / 2.0, middle);
        let rect = Rect::from_center_size(center, vec2(size.x + 2.0 * space::XS, high));
        let id = ui.scope_id().with(std::mem::discriminant(&self.part));
        let response = ui.interact(rect, id, if is_button { Sense::click() } else { Sense::hover() });
        let is_hot = is_button && (response.hovered() || response.has_focus());
        let colour = if is_hot && self.colour == colours.muted { colours.ink } else { self.colour };
        if is_hot {
            let fill = Rect::from_center_size(center, vec2(size.x + 2.0 * space::S, ui.max_rect().height() - 2.0));
            ui.painter().rect_filled(fill, CONTROL_CORNER, colours.hover_color(colours.paper));
        }
        if let Some(icon) = self.icon {
            let at = pos2(right - size.x + 7.0, middle);
            ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(13.0), colour);
        }
        if self.part == StatusPart::Kernel {
            let at = pos2(right - 5.0, middle);
            ui.painter().text(at, Align2::CENTER_CENTER, icons::CARET_UP, theme::icon_font(10.0), colour);
        }
        let galley = self.galley(ui, colour);
        let at = pos2(right - behind - galley.size().x, middle - size.y / 2.0);
        debug_assert!(at.x >= right - size.x + before - 0.5, "the text leaves room for the icon");
        ui.painter().galley(at, galley, colour);
        widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
        set_accessible_name(&response, if is_button { Role::Button } else { Role::Label }, &self.name);
        if response.clicked() {
            match self.part {
                StatusPart::Branch => actions.push(PageAction::Run(CommandId::ViewSourceControl)),
                StatusPart::Sync(_) => actions.push(PageAction::Run(CommandId::SyncStatus)),
                StatusPart::Approvals | StatusPart::Agent => actions.push(PageAction::ShowAgent),
                StatusPart::Model => actions.push(PageAction::Run(CommandId::ViewBudget)),
                StatusPart::Index { .. } => actions.push(PageAction::Run(CommandId::SearchOpen)),
                StatusPart::Words => actions.push(PageAction::ShowOutline),
                StatusPart::Kernel | StatusPart::Caret | StatusPart::Mode | StatusPart::Scan => {}
            }
        }
        match (&self.part, context.note) {
            (StatusPart::Kernel, Some(note)) => {
                menu_below(&response, "Kernel", |ui| kernel_menu_items(ui, note, context.shortcuts, actions));
                response.on_hover_text("The kernel that runs the cells, and its commands");
            }
            (StatusPart::Sync(standing), note) => {
                response.on_hover_ui(|ui| {
                    ui.label(text::untrusted_text::escape_block(standing.explanation()).into_owned());
                    if let Some(note) = note {
                        let words = sync::of_note(context.session, note.id);
                        ui.label(format!("This note: {}", text::untrusted_text::escape_block(&words)));
                    }
                });
            }
            (StatusPart::Index { is_bad: true }, _) => {
                let why = context.index.error.as_deref().unwrap_or_default();
                response.on_hover_text(text::untrusted_text::escape_block(why).into_owned());
            }
            _ if !self.hint.is_empty() => _ = response.on_hover_text(self.hint),
            _ => {}
        }
        size.x
    }
}

/// Adds a note's kernel commands to a menu.
pub(crate) fn kernel_menu_items(ui: &mut Ui, note: &Note, shortcuts: &ShortcutTable, actions: &mut Vec<PageAction>) {
    let busy = matches!(note.kernel, KernelPhase::Busy(_));
    // A kernel that is off has variables to lose only where they are saved.
    let is_fresh = note.kernel == KernelPhase::Off && !note.saves_states();
    let mut item = |ui: &mut Ui, name: &str, id: CommandId, enabled: bool| {
        if menu_item(ui, name, shortcuts.key_of(id), enabled) {
            actions.push(PageAction::Run(id));
        }
    };
    item(ui, "Run all", CommandId::NoteRunAll, true);
    item(ui, "Run stale", CommandId::NoteRunStale, true);
    item(ui, "Stop", CommandId::CellStop, busy);
    item(ui, "Restart", CommandId::KernelRestart, !is_fresh);
    let warning = notebook::saved_states::restart_warning(note);
    menu_note(ui, if is_fresh { "The kernel starts when a cell runs." } else { warning });
    if note.saves_states() {
        item(ui, "Undo run", CommandId::KernelUndo, !busy);
        item(ui, "Redo run", CommandId::KernelRedo, !busy);
        item(ui, "Saved states…", CommandId::KernelStates, true);
        item(ui, "Forks…", CommandId::KernelForks, true);
        item(ui, "Share variables…", CommandId::KernelShare, true);
        item(ui, "Continue from another device", CommandId::KernelReceive, !busy);
    }
    menu_separator(ui);
    item(ui, "Choose Python…", CommandId::KernelChoose, true);
    item(ui, "Packages…", CommandId::KernelPackages, true);
    item(ui, "Permissions…", CommandId::KernelGrant, true);
}

/// Draws the button with the theme menu. Returns its width.
fn theme_button(
    ui: &Ui,
    theme: ColorTheme,
    shortcuts: &ShortcutTable,
    right: f32,
    actions: &mut Vec<PageAction>,
) -> f32 {
    let colours = ThemeColors::of(ui);
    let (icon, name) = match theme {
        ColorTheme::System => (icons::CIRCLE_HALF, "Theme: system"),
        ColorTheme::Light => (icons::SUN, "Theme: light"),
        ColorTheme::Dark => (icons::MOON, "Theme: dark"),
    };
    let center = pos2(right - 14.0, ui.max_rect().center().y);
    let rect = Rect::from_center_size(center, Vec2::splat(size::MIN_CLICK_HEIGHT));
    let response = ui.interact(rect, ui.scope_id().with("theme"), Sense::click());
    let is_hot = response.hovered() || response.has_focus();
    if is_hot {
        let fill = Rect::from_center_size(center, Vec2::splat(ui.max_rect().height() - 2.0));
        ui.painter().rect_filled(fill, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    let colour = if is_hot { colours.ink } else { colours.muted };
    ui.painter().text(center, Align2::CENTER_CENTER, icon, theme::icon_font(14.0), colour);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, name);
    menu_below(&response, "Theme", |ui| {
        for (choice, name) in [(ColorTheme::System, "System"), (ColorTheme::Light, "Light"), (ColorTheme::Dark, "Dark")]
        {
            if menu_choice(ui, name, choice == theme) {
                actions.push(PageAction::SetTheme(choice));
            }
        }
    });
    response.on_hover_text(format!("{name}   {}", shortcuts.key_of(CommandId::ViewTheme).unwrap_or("")));
    size::MIN_CLICK_HEIGHT
}

/// Returns a short description of a note's kernel and its state.
pub(crate) fn kernel_state(note: &Note) -> String {
    let waiting = note
        .cells()
        .filter(|cell| note.latest_execution(*cell).is_some_and(|run| run.status == store::ExecutionStatus::Queued));
    let name = match note.kernel_name() {
        None => "Python",
        Some(engine::SCIENCE_KERNEL) => "Science",
        Some(engine::ENVIRONMENT_KERNEL) => "Environment",
        Some(jupyter) => jupyter,
    };
    if note.stdin_request().is_some() {
        return format!("{name} needs input");
    }
    match note.kernel {
        KernelPhase::Off => format!("{name} off"),
        KernelPhase::Idle => format!("{name} idle"),
        KernelPhase::Busy(_) => match waiting.count() {
            0 => format!("{name} running"),
            count => format!("{name} running, {count} waiting"),
        },
    }
}

fn scanning(session: &Session) -> Option<String> {
    let volume = session.volumes().find(|volume| matches!(volume.scanning, ScanState::Running { .. }))?;
    let ScanState::Running { seen, .. } = volume.scanning else { return None };
    let seen = usize::try_from(seen).unwrap_or(usize::MAX);
    (seen > 0).then(|| format!("Scanning {}: {} files", volume.name, ui::text::format_thousands(seen)))
}

#[cfg(test)]
mod tests {

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(ui::text::format_thousands(999), "999");
        assert_eq!(ui::text::format_thousands(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
