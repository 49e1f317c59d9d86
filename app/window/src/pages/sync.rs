//! The sync page: what is shared over which hubs and its progress, changes from other devices, and the log.
//!
//! It also implements the sync commands of the command table.

mod merge_report;

use crate::shell::commands::SyncTab;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Color32, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{Command, HubConnection, Session, SyncStatus, UnixMillis};
use merge_report::MergesReport;
use notebook::actions::PageAction;
use store::DocId;
use text::untrusted_text;
use ui::empty_state;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::time::when;
use ui::widgets::{icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name, text_button};

const SYNC_ROW_HEIGHT: f32 = 52.0;
/// Height of a line in the log, in points.
const SYNC_LOG_ROW_HEIGHT: f32 = 28.0;

/// A row of the list of volumes.
struct VolumeRow {
    pub(crate) id: DocId,
    pub(crate) name: String,
    state: String,
    icon: &'static str,
    /// The hubs over which it's shared.
    hubs: Vec<String>,
}

/// A row of the list of hubs.
struct HubRow {
    pub(crate) url: String,
    state: String,
    icon: &'static str,
    online: bool,
}

/// A row of the list of devices.
struct DeviceRow {
    pub(crate) name: String,
    here: bool,
    state: String,
}

pub(crate) struct SyncPage {
    pub(crate) tab: SyncTab,
    /// The sync revision and number of volumes that the rows were made from.
    made: Option<(u64, usize)>,
    standing: SyncStatus,
    volumes: Vec<VolumeRow>,
    /// The volume that was shared last and no longer is, and its hubs.
    unshared: Option<(DocId, Vec<String>)>,
    hubs: Vec<HubRow>,
    devices: Vec<DeviceRow>,
    log: Vec<(String, String)>,
    pub(crate) merges: MergesReport,
}

impl SyncPage {
    pub(crate) fn new(tab: SyncTab) -> SyncPage {
        SyncPage {
            tab,
            made: None,
            standing: SyncStatus::NotShared,
            volumes: Vec::new(),
            unshared: None,
            hubs: Vec::new(),
            devices: Vec::new(),
            log: Vec::new(),
            merges: MergesReport::default(),
        }
    }

    fn refresh(&mut self, session: &Session) {
        let sync = session.sync();
        let now = (sync.revision, session.volumes().count());
        if self.made == Some(now) {
            return;
        }
        self.made = Some(now);
        self.standing = session.sync_status();
        let row = |volume| (session.is_guide(volume), volume_row(session, volume));
        let mut volumes: Vec<_> = session.volumes().collect();
        volumes.sort_by_key(|volume| volume.name.to_lowercase());
        let rows = volumes.into_iter().map(row).filter(|(is_guide, row)| !is_guide || !row.hubs.is_empty());
        self.volumes = rows.map(|(_, row)| row).collect();
        self.hubs = sync.shares.hubs.iter().map(|hub| hub_row(session, hub)).collect();
        self.devices = sync.devices().into_iter().map(|(seen, here)| device_row(seen, here)).collect();
        self.log = sync.log.iter().rev().map(|(at, line)| (when(at.as_seconds()), line.clone())).collect();
        self.merges.refresh(sync.merges.iter().rev());
    }

    pub(crate) fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) {
        self.refresh(session);
        self.head(ui, actions);
        match self.tab {
            SyncTab::State => self.state(ui, actions),
            SyncTab::Merges => self.merges.show(ui, session, actions),
            SyncTab::Log => self.log(ui),
        }
    }

    /// Draws status, actions and tabs of the page.
    fn head(&mut self, ui: &mut Ui, actions: &mut Vec<PageAction>) {
        let colours = ThemeColors::of(ui);
        let (left, width) = column(ui);
        ui.add_space(space::XL);
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), SYNC_ROW_HEIGHT), Sense::hover());
        let rect = Rect::from_min_size(pos2(left, rect.top()), vec2(width, SYNC_ROW_HEIGHT));
        let (icon, colour) = status_icon(&self.standing, colours);
        let (words, meaning) = (self.standing.describe(), self.standing.explanation());
        set_accessible_name(&response, Role::Status, &format!("{words}. {meaning}"));
        let mut tools =
            ui.new_child(UiBuilder::new().max_rect(rect).id_salt("tools").layout(Layout::right_to_left(Align::Center)));
        tools.spacing_mut().item_spacing.x = space::S;
        let shared = self.standing != SyncStatus::NotShared;
        let paused = self.standing == SyncStatus::Paused;
        if shared && text_button(&mut tools, if paused { "Resume" } else { "Pause" }, paused).clicked() {
            actions.push(PageAction::Run(CommandId::SyncPause));
        }
        let away = self.hubs.iter().any(|hub| !hub.online);
        if shared && !paused && away && text_button(&mut tools, "Try now", false).clicked() {
            actions.push(PageAction::Run(CommandId::SyncRetry));
        }
        let room = tools.min_rect().left() - rect.left() - 36.0 - space::L;
        let middle = pos2(rect.left() + 12.0, rect.center().y);
        ui.painter().text(middle, Align2::CENTER_CENTER, icon, theme::icon_font(22.0), colour);
        let title = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 18.0), line: 26.0 };
        let at = rect.left_top() + vec2(36.0, 3.0);
        paint_clipped_text(ui, at, room, &words, &title, colours.ink);
        paint_clipped_text(ui, at + vec2(0.0, 27.0), room, meaning, &theme::caption(), colours.muted);
        ui.add_space(space::M);
        let (line, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
        let line =
            Rect::from_min_size(pos2(left - space::S, line.top()), vec2(width + space::S, size::MIN_CLICK_HEIGHT));
        let mut parts =
            ui.new_child(UiBuilder::new().max_rect(line).id_salt("parts").layout(Layout::left_to_right(Align::Center)));
        parts.spacing_mut().item_spacing.x = space::XS;
        for (tab, name) in [(SyncTab::State, "Status"), (SyncTab::Merges, "Changes by others"), (SyncTab::Log, "Log")] {
            if part(&mut parts, name, self.tab == tab) {
                self.tab = tab;
            }
        }
        ui.add_space(space::S);
    }

    fn state(&mut self, ui: &mut Ui, actions: &mut Vec<PageAction>) {
        let mut stopped = None;
        egui::ScrollArea::vertical().id_salt("sync").auto_shrink(false).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            title(ui, "Volumes");
            for row in &self.volumes {
                let before = self.unshared.as_ref().filter(|(volume, _)| *volume == row.id);
                if show_volume(ui, row, before.map_or(&[][..], |(_, hubs)| hubs.as_slice()), actions) {
                    stopped = Some((row.id, row.hubs.clone()));
                }
            }
            if !self.hubs.is_empty() {
                title(ui, "Hubs");
                for row in &self.hubs {
                    let colours = ThemeColors::of(ui);
                    let colour = if row.online { colours.ok } else { colours.muted };
                    line(ui, &row.url, (row.icon, colour), &row.url, &row.state, |_| ());
                }
            }
            if !self.devices.is_empty() {
                title(ui, "Other devices");
                for (number, row) in self.devices.iter().enumerate() {
                    let colours = ThemeColors::of(ui);
                    let colour = if row.here { colours.ok } else { colours.muted };
                    line(ui, &format!("device {number}"), (icons::HARD_DRIVES, colour), &row.name, &row.state, |_| ());
                }
            }
            ui.add_space(space::L);
            let (left, width) = column(ui);
            let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
            let rect = Rect::from_min_size(pos2(left, rect.top()), vec2(width, size::MIN_CLICK_HEIGHT));
            let layout = Layout::left_to_right(Align::Center);
            let mut more = ui.new_child(UiBuilder::new().max_rect(rect).id_salt("more").layout(layout));
            more.spacing_mut().item_spacing.x = space::S;
            if text_button(&mut more, "Join shared volume…", false).clicked() {
                actions.push(PageAction::Run(CommandId::SyncJoin));
            }
            if text_button(&mut more, "Devices and pairing", false).clicked() {
                actions.push(PageAction::Run(CommandId::SyncDevices));
            }
            ui.add_space(space::XXL);
        });
        self.unshared = stopped.or(self.unshared.take());
    }

    fn log(&self, ui: &mut Ui) {
        if self.log.is_empty() {
            empty_state::show_message(ui, "No activity yet", None, "Sync activity appears here, newest first.");
            return;
        }
        ui.spacing_mut().item_spacing.y = 0.0;
        let rows = self.log.len();
        egui::ScrollArea::vertical().id_salt("log").auto_shrink(false).show_rows(
            ui,
            SYNC_LOG_ROW_HEIGHT,
            rows,
            |ui, range| {
                for (at, said) in self.log.iter().skip(range.start).take(range.len()) {
                    let colours = ThemeColors::of(ui);
                    let (left, width) = column(ui);
                    let (rect, response) =
                        ui.allocate_exact_size(vec2(ui.available_width(), SYNC_LOG_ROW_HEIGHT), Sense::hover());
                    set_accessible_name(&response, Role::ListItem, &format!("{at}: {said}"));
                    let top = rect.top() + 4.0;
                    let small = theme::small();
                    paint_clipped_text(ui, pos2(left, top), 132.0, at, &theme::caption(), colours.muted);
                    let used =
                        paint_clipped_text(ui, pos2(left + 140.0, top - 2.0), width - 140.0, said, &small, colours.ink);
                    if used >= width - 142.0 {
                        response.on_hover_text(untrusted_text::escape_block(said).into_owned()); // it may be cut short
                    }
                }
            },
        );
    }
}

fn volume_row(session: &Session, volume: &engine::Volume) -> VolumeRow {
    let spread = session.sync_progress(volume.id);
    let shares = &session.sync().shares;
    let hubs: Vec<&str> =
        shares.hubs.iter().filter(|hub| hub.volumes.contains(&volume.id)).map(|hub| hub.url.as_str()).collect();
    let icon = match spread.delivery {
        engine::DeliveryState::NotShared => icons::FLOPPY,
        engine::DeliveryState::SavedLocally => icons::HOURGLASS,
        engine::DeliveryState::Synced | engine::DeliveryState::SentToAwayHub => icons::CHECK,
    };
    let mut state = spread.describe();
    if let Some((who, at)) = spread.last_seen() {
        state += &format!(" · {who} last seen {}", time_label(at));
    }
    if let Some(at) = spread.last_received {
        state += &format!(" · received {}", time_label(at));
    }
    if !hubs.is_empty() {
        state += &format!(" · over {}", hubs.join(", "));
    }
    let hubs = hubs.into_iter().map(str::to_owned).collect();
    VolumeRow { id: volume.id, name: volume.name.clone(), state, icon, hubs }
}

fn hub_row(session: &Session, hub: &engine::SharedHub) -> HubRow {
    let state = session.sync().states.get(&hub.url);
    let seen =
        state.and_then(|state| state.seen).map(|at| format!(", last heard {}", time_label(at))).unwrap_or_default();
    let reach = state.map(|state| &state.reach);
    let (icon, words, online) = match reach {
        Some(HubConnection::Online) => {
            let behind = state.map_or(0, |state| state.behind.len());
            let documents = state.map_or(0, |state| state.documents);
            let mut far = match behind {
                0 => format!("{documents} documents, all the same"),
                some => format!("{documents} documents, {some} on their way"),
            };
            let files = state.map(|state| state.blobs.describe()).filter(|words| !words.is_empty());
            if let Some(files) = files {
                far += &format!(" · {files}");
            }
            (icons::PLUGS_CONNECTED, format!("Connected · {far}{seen}"), true)
        }
        Some(HubConnection::Offline { why }) => {
            (icons::OFFLINE, format!("Not connected{seen}: {why}. Tracebook tries again automatically."), false)
        }
        Some(HubConnection::Paused) => (icons::PLUG, "Not connected: sync is paused".to_owned(), false),
        Some(HubConnection::Connecting) | None => (icons::HOURGLASS, "Connecting…".to_owned(), false),
    };
    HubRow { url: hub.url.clone(), state: words, icon, online }
}

fn device_row(seen: &engine::SeenDevice, here: bool) -> DeviceRow {
    let state = if here { "Connected now".to_owned() } else { format!("Last seen {}", when(seen.at.as_seconds())) };
    DeviceRow { name: seen.name.clone(), here, state }
}

/// Describes the sync progress of a note.
pub(crate) fn of_note(session: &Session, note: DocId) -> String {
    let spread = session.sync_progress(note);
    let mut words = spread.describe();
    if let Some(at) = spread.last_synced.filter(|_| spread.delivery == engine::DeliveryState::Synced) {
        words += &format!(" {}", time_label(at));
    }
    if let Some((who, at)) = spread.last_seen() {
        words += &format!(" · {who} last seen {}", time_label(at));
    }
    if let Some(at) = spread.last_received {
        words += &format!(" · received {}", time_label(at));
    }
    words
}

/// Returns a short label for a time: the time of day if it's today, and otherwise the date.
pub(crate) fn time_label(at: UnixMillis) -> String {
    super::history::short_date_label(at.as_seconds())
}

/// Returns icon and color of the sync status; the text next to it says the same.
pub(crate) fn status_icon(standing: &SyncStatus, colours: &ThemeColors) -> (&'static str, Color32) {
    match standing {
        SyncStatus::NotShared => (icons::FLOPPY, colours.muted),
        SyncStatus::Paused => (icons::CLOCK, colours.muted),
        SyncStatus::Offline => (icons::OFFLINE, colours.muted),
        SyncStatus::Connecting | SyncStatus::Syncing(_) => (icons::HOURGLASS, colours.muted),
        SyncStatus::Synced { .. } => (icons::CHECK_CIRCLE, colours.ok),
    }
}

/// Returns the left edge and width of the page's column.
fn column(ui: &Ui) -> (f32, f32) {
    let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
    (ui.max_rect().left() + ((ui.available_width() - width) / 2.0).max(0.0), width)
}

fn title(ui: &mut Ui, text: &str) {
    ui.add_space(space::L);
    let (left, width) = column(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 24.0), Sense::hover());
    set_accessible_name(&response, Role::Heading, text);
    let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 12.0), line: 16.0 };
    paint_clipped_text(ui, pos2(left, rect.top() + 2.0), width, text, &style, ThemeColors::of(ui).muted);
}

/// Draws a list row: an icon, a name with its state, and buttons at the right.
fn line(
    ui: &mut Ui,
    salt: &str,
    (icon, colour): (&str, Color32),
    name: &str,
    state: &str,
    tools: impl FnOnce(&mut Ui),
) {
    let colours = ThemeColors::of(ui);
    let (left, width) = column(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), SYNC_ROW_HEIGHT), Sense::hover());
    let rect = Rect::from_min_size(pos2(left, rect.top()), vec2(width, SYNC_ROW_HEIGHT));
    set_accessible_name(&response, Role::ListItem, &format!("{name}: {state}"));
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let layout = Layout::right_to_left(Align::Center);
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(("line", salt)).layout(layout));
    child.spacing_mut().item_spacing.x = space::S;
    tools(&mut child);
    let right = child.min_rect().left() - space::L;
    let middle = pos2(rect.left() + 8.0, rect.center().y);
    ui.painter().text(middle, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    let at = rect.left_top() + vec2(28.0, 7.0);
    let room = right - at.x;
    paint_clipped_text(ui, at, room, name, &theme::small(), colours.ink);
    let used = paint_clipped_text(ui, at + vec2(0.0, 20.0), room, state, &theme::caption(), colours.muted);
    if used >= room - 1.0 {
        response.on_hover_text(untrusted_text::escape_block(state).into_owned());
    }
}

/// Draws a volume's row. `hubs_before`: those over which it was shared until the user stopped it. Returns whether
/// sharing was stopped.
fn show_volume(ui: &mut Ui, row: &VolumeRow, hubs_before: &[String], actions: &mut Vec<PageAction>) -> bool {
    let mut stopped = false;
    let colours = ThemeColors::of(ui);
    let colour = if row.icon == icons::CHECK { colours.ok } else { colours.muted };
    line(ui, &row.name, (row.icon, colour), &row.name, &row.state, |ui| {
        if row.hubs.is_empty() {
            let share = text_button(ui, "Share…", false);
            set_accessible_name(&share, Role::Button, &format!("Share {}", row.name));
            if share.clicked() {
                actions.push(PageAction::Share(row.id));
            }
            if !hubs_before.is_empty() {
                let again = text_button(ui, "Undo", false);
                set_accessible_name(&again, Role::Button, &format!("Share {} again", row.name));
                let share = |hub: &String| Command::ShareVolume { volume: row.id, hub: hub.clone() };
                actions.extend(hubs_before.iter().filter(|_| again.clicked()).map(share).map(PageAction::Do));
            }
            return;
        }
        if icon_button(ui, icons::X_CIRCLE, &format!("Stop sharing {}", row.name), None).clicked() {
            stopped = true;
            actions.push(PageAction::Do(Command::UnshareVolume { volume: row.id, hub: String::new() }));
            let text = format!("{} is no longer shared. Other devices keep their copies.", row.name);
            actions.push(PageAction::Say(text));
        }
        if icon_button(ui, icons::COPY, &format!("Copy the address of {}", row.name), None).clicked() {
            let addresses = row.hubs.iter().map(|hub| engine::volume_address(hub, row.id));
            ui.ctx().copy_text(addresses.collect::<Vec<_>>().join("\n"));
            actions.push(PageAction::Say("Copied the address. Another device joins the volume with it.".to_owned()));
        }
    });
    stopped
}

/// Draws a tab of the page. Returns whether it was clicked.
fn part(ui: &mut Ui, text: &str, on: bool) -> bool {
    let colours = ThemeColors::of(ui);
    let font = theme::inter_font(if on { theme::InterCut::SemiBold } else { theme::InterCut::Regular }, 13.0);
    let colour = if on { colours.ink } else { colours.muted };
    let galley = ui.painter().layout_no_wrap(text.to_owned(), font, colour);
    let (rect, response) =
        ui.allocate_exact_size(vec2(galley.size().x + 2.0 * space::S, size::MIN_CLICK_HEIGHT), Sense::click());
    if on {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.sunken);
    } else {
        ui::widgets::paint_hover_fill(ui, &response);
    }
    ui.painter().galley(Align2::CENTER_CENTER.align_size_within_rect(galley.size(), rect).min, galley, colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.widget_info(|| egui::WidgetInfo::selected(Role::RadioButton, true, on, text));
    response.clicked()
}
