//! Where the next message is carried out: on this device, or by a worker that the hub of the volume knows; and what
//! happens with a run that was sent to one.

use super::approvals::line;
use super::connection::model_row;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Popup, RichText, Sense, Ui, vec2};
use engine::{AgentRun, Session};
use host::peers::DeviceId;
use sent_runs::sent_run_desk::{KnownDevices, SentRunsNews};
use store::DocId;
use text::untrusted_text;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, paint_hover_fill, set_accessible_name};

/// Width of the menu.
const MENU_WIDTH: f32 = 260.0;

/// The device that carries out the next message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunPlace {
    /// This one.
    #[default]
    Here,
    /// Whichever worker is free.
    AnyWorker,
    /// A worker.
    Worker {
        /// The device.
        id: DeviceId,
        /// Its name, as the hub knows it.
        name: String,
    },
}

impl RunPlace {
    fn label(&self) -> &str {
        match self {
            RunPlace::Here => "This device",
            RunPlace::AnyWorker => "Any worker",
            RunPlace::Worker { name, .. } => name,
        }
    }

    /// Returns the device to which a message is sent, if it's sent: `None` in it for any worker.
    pub fn receiver(&self) -> Option<Option<DeviceId>> {
        match self {
            RunPlace::Here => None,
            RunPlace::AnyWorker => Some(None),
            RunPlace::Worker { id, .. } => Some(Some(*id)),
        }
    }
}

/// The button with the chosen device, and its menu.
#[derive(Default)]
pub(super) struct RunPlacePicker {
    was_open: bool,
}

impl RunPlacePicker {
    /// Draws the button and, while it's open, the menu. Returns whether the devices are to be asked for.
    pub(super) fn show(&mut self, ui: &mut Ui, place: &mut RunPlace, devices: Option<&KnownDevices>) -> bool {
        let button = place_button(ui, place.label());
        let mut is_open = false;
        Popup::menu(&button).width(MENU_WIDTH).show(|ui| {
            is_open = true;
            ui.set_min_width(MENU_WIDTH);
            ui.spacing_mut().item_spacing.y = 0.0;
            if let Some(chosen) = show_menu(ui, place, devices) {
                *place = chosen;
                ui.close();
            }
        });
        let is_wanted = is_open && !self.was_open;
        self.was_open = is_open;
        is_wanted
    }
}

/// Draws the devices to choose from. Returns the chosen one.
fn show_menu(ui: &mut Ui, place: &RunPlace, devices: Option<&KnownDevices>) -> Option<RunPlace> {
    let colours = ThemeColors::of(ui);
    let mut choices = vec![RunPlace::Here, RunPlace::AnyWorker];
    let note = |ui: &mut Ui, words: &str, colour: egui::Color32| {
        let words = untrusted_text::escape_line(words).into_owned();
        ui.label(RichText::new(words).font(theme::caption().font).color(colour));
    };
    match devices {
        Some(Ok(known)) => {
            let workers = known.iter().map(|(id, name)| RunPlace::Worker { id: *id, name: name.clone() });
            choices.extend(workers);
        }
        Some(Err(why)) => note(ui, &why.0, colours.warn),
        None => note(ui, "Asking the hub for its devices…", colours.muted),
    }
    let mut chosen = None;
    for choice in choices {
        if model_row(ui, &untrusted_text::escape_line(choice.label()), "", choice == *place).clicked() {
            chosen = Some(choice);
        }
    }
    chosen
}

/// Draws the button that opens the menu.
fn place_button(ui: &mut Ui, name: &str) -> egui::Response {
    let words = format!("Run on: {}", untrusted_text::escape_line(name));
    let room = ui.available_width();
    let (rect, response) = ui.allocate_exact_size(vec2(room, size::MIN_CLICK_HEIGHT), Sense::click());
    let colours = ThemeColors::of(ui);
    paint_hover_fill(ui, &response);
    let at = rect.left_center() + vec2(space::XS, -8.0);
    let used = paint_clipped_text(ui, at, room - 2.0 * space::L, &words, &theme::caption(), colours.muted);
    let caret = rect.left_center() + vec2(space::XS + used + space::S, 0.0);
    ui.painter().text(caret, Align2::CENTER_CENTER, icons::CARET_DOWN, theme::icon_font(10.0), colours.muted);
    paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, &words);
    response
}

/// Returns what happens with a sent run in the queue, as a sentence; `None` if it isn't there.
pub(super) fn queue_sentence(news: &SentRunsNews, run: DocId) -> Option<String> {
    news.labels.get(&run).map(|label| format!("Sent run: {label}."))
}

/// Draws what happens with a sent run, and which decisions about calls of `runs` are on their way.
pub(super) fn show_sent_run(ui: &mut Ui, news: &SentRunsNews, sent: Option<DocId>, runs: &[&AgentRun]) {
    let muted = ThemeColors::of(ui).muted;
    if let Some(words) = sent.and_then(|run| queue_sentence(news, run)) {
        line(ui, &words, &theme::caption(), muted);
    }
    for ((of, _), worker) in &news.decisions {
        if runs.iter().any(|run| run.id == *of) {
            let words = match worker {
                Some(name) => format!("Your decision was sent to {name}."),
                None => "Sending your decision…".to_owned(),
            };
            line(ui, &words, &theme::caption(), muted);
        }
    }
}

/// Returns the open run of another device whose place in the queue is worth asking for: its volume and its id.
pub(super) fn run_elsewhere(session: &Session, run: Option<&AgentRun>) -> Option<(DocId, DocId)> {
    let run = run.filter(|run| run.about.ending.is_none())?;
    let root = session.agents().ancestors(run.id).last().copied().unwrap_or(run.id);
    let is_elsewhere = !session.is_own_device(run.device.as_ref());
    (is_elsewhere && sent_runs::is_shared_over_hub(session, run.about.volume)).then_some((run.about.volume, root))
}
