//! The status bar: save state, current page, kernel state.

use super::commands::ShortcutTable;
use crate::pages::sync;
use editor::remote_cursors;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, Rect, Sense, Ui, pos2, vec2};
use engine::commands::CommandId;
use engine::{ColorTheme, KernelPhase, Note, NotePhase, ScanState, Session, SyncStatus};
use notebook::actions::PageAction;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{self, paint_clipped_text, set_accessible_name};

/// For this long, in seconds, a keystroke may be on its way before the line says so.
const SLOW_EDIT_SECONDS: f64 = 0.25;

/// What the line needs to know from frame to frame.
#[derive(Default)]
pub(crate) struct StatusBar {
    /// Since when something is on its way to the disk.
    since: Option<f64>,
    /// The sync status as text, and the state it was made from; since when, and the text before.
    sync: Option<SyncIndicator>,
}

/// What the line tells of in a frame.
#[derive(Clone, Copy)]
pub(crate) struct StatusContext<'a> {
    pub(crate) session: &'a Session,
    pub(crate) shortcuts: &'a ShortcutTable,
    /// The open note.
    pub(crate) note: Option<&'a Note>,
    /// The number of its words.
    pub(crate) words: usize,
    /// The mode of an emulated editor.
    pub(crate) mode: Option<&'a str>,
}

/// What the line says of sync.
struct SyncIndicator {
    revision: u64,
    standing: SyncStatus,
    since: f64,
    /// The displayed text, which lags behind so that keystrokes don't make it flicker.
    said: SyncStatus,
}

/// Something that is on its way for less than this, in seconds, is not said.
const SYNC_STATUS_DELAY_SECONDS: f64 = 0.8;

/// How serious a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusTone {
    /// All is saved.
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
            return (format!("File cannot be written: {why}"), StatusTone::Warn);
        }
        if note.file.gone {
            let says = "The file was removed by another program; typing makes it again";
            return (says.to_owned(), StatusTone::Warn);
        }
        if let Some(why) = note.read_only() {
            return (format!("Can only be read: {why}"), StatusTone::Warn);
        }
    }
    if let Some(other) = session.notes().find(|note| note.file.trouble.is_some()) {
        let path = session.locate_file(other.id).map_or("a note", |(_, path)| path);
        return (format!("Its file cannot be written: {path}"), StatusTone::Warn);
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
    /// Everything was asked to be saved: from now on waiting is worth a word.
    pub(crate) fn on_save_requested(&mut self) {
        self.since = self.since.map(|since| since - SLOW_EDIT_SECONDS);
    }

    /// Draws the line.
    pub(crate) fn show(&mut self, ui: &mut Ui, context: &StatusContext<'_>, actions: &mut Vec<PageAction>) {
        let StatusContext { session, shortcuts, note, words, mode } = *context;
        let colours = ThemeColors::of(ui);
        let rect = ui.max_rect();
        let now = ui.input(|input| input.time);
        let on_the_way = session.saving().last > session.saving().durable;
        self.since = if on_the_way { self.since.or(Some(now)) } else { None };
        let slow = self.since.is_some_and(|since| now - since >= SLOW_EDIT_SECONDS);
        if on_the_way && !slow {
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(SLOW_EDIT_SECONDS));
        }
        let mut right = rect.right() - space::M;
        right -= button(ui, icons::GEAR, "Settings", CommandId::AppSettings, shortcuts, right, actions);
        let (icon, name) = match session.settings().theme {
            ColorTheme::System => (icons::CIRCLE_HALF, "Colours: as the system"),
            ColorTheme::Light => (icons::SUN, "Colours: light"),
            ColorTheme::Dark => (icons::MOON, "Colours: dark"),
        };
        right -= button(ui, icon, name, CommandId::ViewTheme, shortcuts, right, actions) + space::S;
        if let Some(note) = note.filter(|note| note.phase == NotePhase::Ready) {
            let text =
                if words == 1 { "1 word".to_owned() } else { format!("{} words", ui::text::format_thousands(words)) };
            right -= put(ui, right, &text, colours.muted) + space::L;
            right -= word(ui, &kernel_state(note), CommandId::KernelChoose, right, actions) + space::L;
            let company = remote_cursors::show_remote_users(ui, session, note, right);
            right -= if company > 0.0 { company + space::L } else { 0.0 };
        }
        if let Some(standing) = self.visible_sync_status(ui, session, now) {
            right -= synced(ui, session, note, &standing, right, actions) + space::L;
        }
        let waiting = agent_ui::agent::pending_decision_count(session.agents());
        if waiting > 0 {
            right -= show_pending_decisions(ui, waiting, right, actions) + space::L;
        }
        if let Some(mode) = mode {
            right -= put(ui, right, mode, colours.accent) + space::L;
        }
        if let Some(text) = scanning(session) {
            right -= put(ui, right, &text, colours.muted) + space::L;
        }
        let (text, tone) = save_status(session, note, slow);
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
        let area = Rect::from_min_size(pos2(left, rect.top()), vec2(width + 18.0, rect.height()));
        let response = ui.interact(area, ui.scope_id().with("saving"), Sense::hover());
        set_accessible_name(&response, Role::Label, &text);
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

/// Draws the sync status as a button that opens the sync page.
fn synced(
    ui: &Ui,
    session: &Session,
    note: Option<&Note>,
    standing: &SyncStatus,
    right: f32,
    actions: &mut Vec<PageAction>,
) -> f32 {
    let colours = ThemeColors::of(ui);
    let text = standing.describe();
    let galley = ui.painter().layout_no_wrap(
        text::untrusted_text::escape_line(&text).into_owned(),
        theme::tabular_font(12.0),
        colours.muted,
    );
    let size = galley.size() + vec2(18.0, 0.0);
    let middle = ui.max_rect().center().y;
    let rect = Rect::from_center_size(
        pos2(right - size.x / 2.0, middle),
        vec2(size.x + 2.0 * space::XS, size::MIN_CLICK_HEIGHT),
    );
    let response = ui.interact(rect, ui.scope_id().with("sync"), Sense::click());
    let colour = if response.hovered() || response.has_focus() { colours.ink } else { colours.muted };
    let (icon, _) = sync::status_icon(standing, colours);
    ui.painter().text(pos2(right - size.x + 7.0, middle), Align2::CENTER_CENTER, icon, theme::icon_font(13.0), colour);
    let at = pos2(right - size.x + 18.0, middle - size.y / 2.0);
    ui.painter().galley_with_override_text_color(at, galley, colour);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, &format!("Sync: {text}"));
    if response.clicked() {
        actions.push(PageAction::Run(CommandId::SyncStatus));
    }
    response.on_hover_ui(|ui| {
        ui.label(text::untrusted_text::escape_block(standing.explanation()).into_owned());
        if let Some(note) = note {
            let words = sync::of_note(session, note.id);
            ui.label(format!("This note: {}", text::untrusted_text::escape_block(&words)));
        }
    });
    size.x
}

fn put(ui: &Ui, right: f32, text: &str, colour: Color32) -> f32 {
    let mut job = egui::text::LayoutJob::default();
    job.append(
        &text::untrusted_text::escape_line(text),
        0.0,
        ui::widgets::format(theme::tabular_font(12.0), 16.0, colour),
    );
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let rect = Rect::from_min_size(pos2(right - galley.size().x, ui.max_rect().center().y - 8.0), galley.size());
    ui.painter().galley(rect.min, galley, colour);
    set_accessible_name(&ui.interact(rect, ui.scope_id().with(text), Sense::hover()), Role::Label, text);
    rect.width()
}

/// How many decisions agents wait for, with a dot: a button that leads to them.
fn show_pending_decisions(ui: &Ui, count: usize, right: f32, actions: &mut Vec<PageAction>) -> f32 {
    let colours = ThemeColors::of(ui);
    let text = if count == 1 { "1 approval waits".to_owned() } else { format!("{count} approvals wait") };
    let galley = ui.painter().layout_no_wrap(text.clone(), theme::tabular_font(12.0), colours.warn);
    let size = galley.size() + vec2(space::M, 0.0);
    let middle = ui.max_rect().center().y;
    let rect = Rect::from_center_size(
        pos2(right - size.x / 2.0, middle),
        vec2(size.x + 2.0 * space::XS, size::MIN_CLICK_HEIGHT),
    );
    let response = ui.interact(rect, ui.scope_id().with("approvals"), Sense::click());
    ui.painter().circle_filled(pos2(right - size.x + 3.0, middle), 3.5, colours.warn);
    let at = pos2(right - size.x + space::M, middle - size.y / 2.0);
    ui.painter().galley(at, galley, colours.warn);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, &text);
    if response.clicked() {
        actions.push(PageAction::ShowAgent);
    }
    response.on_hover_text("Show what the agent asks");
    size.x
}

/// Words that are a button for a command of the table.
fn word(ui: &Ui, text: &str, id: CommandId, right: f32, actions: &mut Vec<PageAction>) -> f32 {
    let colours = ThemeColors::of(ui);
    let galley = ui.painter().layout_no_wrap(
        text::untrusted_text::escape_line(text).into_owned(),
        theme::tabular_font(12.0),
        colours.muted,
    );
    let size = galley.size();
    let middle = ui.max_rect().center().y;
    let rect = Rect::from_center_size(
        pos2(right - size.x / 2.0, middle),
        vec2(size.x + 2.0 * space::XS, size::MIN_CLICK_HEIGHT),
    );
    let response = ui.interact(rect, ui.scope_id().with(id), Sense::click());
    let colour = if response.hovered() || response.has_focus() { colours.ink } else { colours.muted };
    ui.painter().galley_with_override_text_color(pos2(right - size.x, middle - size.y / 2.0), galley, colour);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, text);
    if response.clicked() {
        actions.push(PageAction::Run(id));
    }
    response.on_hover_text("Choose kernel");
    size.x
}

/// A button at the right of the line for a command of the table.
fn button(
    ui: &Ui,
    icon: &str,
    name: &str,
    id: CommandId,
    shortcuts: &ShortcutTable,
    right: f32,
    actions: &mut Vec<PageAction>,
) -> f32 {
    let colours = ThemeColors::of(ui);
    // The line is less high than a finger; the button reaches out of it.
    let rect = Rect::from_center_size(
        pos2(right - 14.0, ui.max_rect().center().y),
        vec2(size::MIN_CLICK_HEIGHT, size::MIN_CLICK_HEIGHT),
    );
    let response = ui.interact(rect, ui.scope_id().with(id), Sense::click());
    let colour = if response.hovered() { colours.ink } else { colours.muted };
    ui.painter().text(rect.center(), Align2::CENTER_CENTER, icon, theme::icon_font(14.0), colour);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, name);
    if response.clicked() {
        actions.push(PageAction::Run(id));
    }
    response.on_hover_text(format!("{name}   {}", shortcuts.key_of(id).unwrap_or("")));
    size::MIN_CLICK_HEIGHT
}

/// The kernel of a note and what it does, in a few words.
pub(crate) fn kernel_state(note: &Note) -> String {
    let waiting = note
        .cells()
        .filter(|cell| note.latest_execution(*cell).is_some_and(|run| run.status == store::ExecutionStatus::Queued));
    let name = note.kernel_name().unwrap_or("Python");
    if note.stdin_request().is_some() {
        return format!("{name} asks");
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
    (seen > 0).then(|| format!("Looking at {}: {} files", volume.name, ui::text::format_thousands(seen)))
}

#[cfg(test)]
mod tests {

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(ui::text::format_thousands(999), "999");
        assert_eq!(ui::text::format_thousands(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
