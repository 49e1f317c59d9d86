//! The forks dialog: lists the forks of a note's saved variables, moves between them, and compares two states.
//!
//! It reads and compares states on threads. The kernel makes the moves.

use crate::overlays::dialog_parts::{at_right, field, head, show_trouble, words};
use crate::overlays::dialogs::DialogDecision;
use crate::overlays::state_comparison::StateComparisonForm;
use eframe::egui;
use egui::accesskit::Role;
use egui::{RichText, ScrollArea, Ui};
use engine::KernelStateMove;
use host::kernel_states::{NoteStates, list_states};
use host::science_pack::{PACK_WHEEL_BYTES, megabytes};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use store::DocId;
use text::untrusted_text;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{set_accessible_name, text_button};

/// Height of the list, in points, beyond which it scrolls.
const LIST_HEIGHT: f32 = 260.0;

/// The shortest interval at which the states are read again.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// The interval is at least this many times as long as the last read, which takes longer in large folders.
const READ_PAUSE_FACTOR: u32 = 20;

/// Whether a note's variables are saved, which forks require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForkSupport {
    /// The variables are saved.
    Saved,
    /// The note's properties contain `state: off`.
    TurnedOff,
    /// The kernel saves no states. The science pack does; this says whether it's installed.
    OtherKernel { has_science: bool },
}

/// A note's states, and how long it took to read them.
struct StatesRead {
    states: NoteStates,
    took: Duration,
}

/// The dialog for a note's forks.
pub(crate) struct KernelForksForm {
    pub(crate) note: DocId,
    /// The program that compares states.
    program: PathBuf,
    workspace: PathBuf,
    pub(crate) support: ForkSupport,
    states: Option<NoteStates>,
    is_reading: bool,
    /// When the states were last read.
    read_at: Option<Instant>,
    read_interval: Duration,
    read: (Sender<StatesRead>, Receiver<StatesRead>),
    /// The name typed for a new fork.
    name: String,
    /// The number of earlier moves, and the move that the kernel is making.
    pub(crate) awaited: Option<(u64, KernelStateMove)>,
    pub(crate) trouble: Option<String>,
    /// The result of the last move.
    done: Option<String>,
    /// The fork that the user is asked about before it's discarded.
    asked_discard: Option<String>,
    comparison: Option<StateComparisonForm>,
}

impl KernelForksForm {
    pub(crate) fn new(note: DocId, support: ForkSupport, program: PathBuf, workspace: PathBuf) -> KernelForksForm {
        KernelForksForm {
            note,
            program,
            workspace,
            support,
            states: None,
            is_reading: false,
            read_at: None,
            read_interval: READ_INTERVAL,
            read: channel(),
            name: String::new(),
            awaited: None,
            trouble: None,
            done: None,
            asked_discard: None,
            comparison: None,
        }
    }

    /// Returns the decision that creates a fork with the typed name.
    pub(crate) fn new_fork(&self) -> Option<DialogDecision> {
        let name = self.name.trim().to_owned();
        let is_ready = self.support == ForkSupport::Saved && self.awaited.is_none() && self.comparison.is_none();
        (is_ready && !name.is_empty()).then(|| self.decide(KernelStateMove::Fork { name, state: None }))
    }

    fn decide(&self, to: KernelStateMove) -> DialogDecision {
        DialogDecision::MoveKernelState { note: self.note, to }
    }

    /// Shows the result of the kernel's move.
    pub(crate) fn finish_move(&mut self, ended: anyhow::Result<String>) {
        self.awaited = None;
        (self.done, self.trouble) = match ended {
            Ok(done) => (Some(done), None),
            Err(why) => (None, Some(why.to_string())),
        };
        if self.trouble.is_none() {
            self.name.clear();
        }
        self.states = None;
    }

    /// Draws the dialog. Returns a decision once there is one.
    pub(crate) fn show(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        if ui.input(|input| !input.events.is_empty()) {
            // Changes from a click or key are drawn in the next frame.
            ui.ctx().request_repaint();
        }
        if let Some(comparison) = &mut self.comparison {
            if comparison.show(ui) {
                self.comparison = None;
            }
            return None;
        }
        head(ui, "Forks of variables");
        match self.support {
            ForkSupport::Saved => {
                self.read_states(ui.ctx());
                self.show_forks(ui)
            }
            ForkSupport::TurnedOff => {
                let why = "Forks need saved variables. This note’s properties say `state: off`, so none are saved.";
                let save = DialogDecision::SaveVariables { note: self.note };
                show_need(ui, why, "Save variables", save)
            }
            ForkSupport::OtherKernel { has_science } => {
                let why = "A fork is a second line of a note’s variables, to try something without spoiling the first. \
                           Forks need the kernel Science, which saves variables.";
                let size = megabytes(PACK_WHEEL_BYTES);
                let button =
                    if has_science { "Use Science".to_owned() } else { format!("Use Science ({size} MB download)") };
                show_need(ui, why, &button, DialogDecision::UseScience { cell: None })
            }
        }
    }

    /// Reads the states on a thread, if they are missing or old.
    fn read_states(&mut self, ctx: &egui::Context) {
        while let Ok(StatesRead { states, took }) = self.read.1.try_recv() {
            self.is_reading = false;
            self.read_interval = READ_INTERVAL.max(took * READ_PAUSE_FACTOR);
            if let Some(problem) = &states.problem {
                self.trouble = Some(ui::text::sentence(problem));
            }
            self.states = Some(states);
        }
        // A state is saved after its cell's output arrives, so the list may be older than the last state.
        let is_old = self.read_at.is_none_or(|at| at.elapsed() >= self.read_interval);
        ctx.request_repaint_after(self.read_interval);
        if (self.states.is_none() || is_old) && !self.is_reading {
            (self.is_reading, self.read_at) = (true, Some(Instant::now()));
            let (workspace, note, tell, wake) = (self.workspace.clone(), self.note, self.read.0.clone(), ctx.clone());
            std::thread::spawn(move || {
                let begun = Instant::now();
                let states = list_states(&workspace, note);
                let _ = tell.send(StatesRead { states, took: begun.elapsed() }); // the dialog may be closed
                wake.request_repaint();
            });
        }
    }

    fn show_forks(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        words(
            ui,
            "A fork continues with the variables as they are now, in a line of its own. What cells do there doesn’t \
             change the other lines.",
        );
        ui.add_space(space::M);
        let mut decision = None;
        match self.states.take() {
            None => words(ui, "Reading the saved states…"),
            Some(states) => {
                decision = self.show_list(ui, &states);
                // A comparison or an answer may have changed what is shown, but not the states.
                self.states = Some(states);
            }
        }
        ui.add_space(space::M);
        field(ui, &mut self.name, "Name of the new fork", "Name of a new fork");
        if let Some((_, to)) = &self.awaited {
            ui.add_space(space::S);
            words(ui, moving_text(to));
        } else if let Some(done) = &self.done {
            ui.add_space(space::S);
            let done = ui.label(RichText::new(untrusted_text::escape_line(done)).font(theme::small().font));
            set_accessible_name(&done, Role::Status, self.done.as_deref().unwrap_or_default());
        }
        show_trouble(ui, self.trouble.as_deref());
        let is_free = self.awaited.is_none();
        at_right(ui, |ui| {
            if ui.add_enabled_ui(is_free, |ui| text_button(ui, "Fork", true)).inner.clicked() {
                decision = self.new_fork();
            }
            let choices = self.states.as_ref().map(StateComparisonForm::choices_of).unwrap_or_default();
            if choices.len() > 1 && text_button(ui, "Compare states…", false).clicked() {
                self.compare(ui.ctx(), None);
            }
            if text_button(ui, "Close", false).clicked() {
                decision = Some(DialogDecision::Never);
            }
        });
        decision
    }

    fn show_list(&mut self, ui: &mut Ui, states: &NoteStates) -> Option<DialogDecision> {
        let mut decision = None;
        // A note in which nothing has run has no forks yet and is on the first.
        let none = None;
        let first = (&states.branch, &none);
        let branches = states.branches.iter().chain(states.branches.is_empty().then_some(first));
        ScrollArea::vertical().id_salt("forks").max_height(LIST_HEIGHT).show(ui, |ui| {
            ui.set_width(ui.available_width());
            for (name, state) in branches {
                ui.push_id(name, |ui| {
                    decision = self.show_fork(ui, states, name, state.as_deref()).or(decision.take());
                });
            }
        });
        decision
    }

    fn show_fork(
        &mut self,
        ui: &mut Ui,
        states: &NoteStates,
        name: &str,
        state: Option<&str>,
    ) -> Option<DialogDecision> {
        let colours = ThemeColors::of(ui);
        let is_current = *name == states.branch;
        let saved = state.and_then(|id| states.states.iter().find(|saved| saved.state == id));
        let about = match (state, saved) {
            (None, _) => "no variables".to_owned(),
            (Some(_), Some(saved)) => format!("after {}", saved.cell),
            (Some(_), None) => "after a run whose state was thinned".to_owned(),
        };
        let about = if is_current { format!("current, {about}") } else { about };
        let is_free = self.awaited.is_none();
        let mut decision = None;
        if self.asked_discard.as_deref() == Some(name) {
            words(ui, &format!("Discard {name}? Its variables are deleted permanently."));
            at_right(ui, |ui| {
                if text_button(ui, "Discard permanently", true).clicked() {
                    self.asked_discard = None;
                    decision = Some(self.decide(KernelStateMove::Discard { name: name.to_owned() }));
                }
                if text_button(ui, "Keep", false).clicked() {
                    self.asked_discard = None;
                }
            });
            return decision;
        }
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = space::S;
            let shown = untrusted_text::escape_line(name);
            let mut text = RichText::new(shown).font(theme::body().font).color(colours.ink);
            if is_current {
                text = text.color(colours.accent);
            }
            let label = ui.add(egui::Label::new(text).truncate());
            set_accessible_name(&label, Role::Label, &format!("Fork {name}: {about}"));
            words(ui, &about);
            let wanted = egui::vec2(ui.available_width(), theme::size::MIN_CLICK_HEIGHT);
            let layout = egui::Layout::right_to_left(egui::Align::Center);
            ui.allocate_ui_with_layout(wanted, layout, |ui| {
                let button = |ui: &mut Ui, text: &str, spoken: &str| {
                    let response = ui.add_enabled_ui(is_free, |ui| text_button(ui, text, false)).inner;
                    set_accessible_name(&response, Role::Button, spoken);
                    response.clicked()
                };
                if is_current {
                    return;
                }
                if button(ui, "Discard", &format!("Discard {name}")) {
                    self.asked_discard = Some(name.to_owned());
                }
                if state.is_some()
                    && states.current.is_some()
                    && button(ui, "Compare", &format!("Compare {} with {name}", states.branch))
                {
                    self.compare(ui.ctx(), Some((states, name)));
                }
                if button(ui, "Adopt", &format!("Adopt {name}: {} takes its variables over", states.branch)) {
                    decision = Some(self.decide(KernelStateMove::Adopt { name: name.to_owned() }));
                }
                if button(ui, "Switch", &format!("Switch to {name}")) {
                    decision = Some(self.decide(KernelStateMove::Switch { name: name.to_owned() }));
                }
            });
        });
        decision
    }

    /// Compares the current fork with another one, or any two states.
    fn compare(&mut self, ctx: &egui::Context, forks: Option<(&NoteStates, &str)>) {
        let place = (self.program.clone(), self.workspace.clone(), self.note);
        let form = match forks {
            Some((states, other)) => StateComparisonForm::of_forks(states, &states.branch, other, place),
            None => self.states.as_ref().map(|states| StateComparisonForm::of_states(states, place)),
        };
        self.comparison = form.map(|mut form| {
            form.start(ctx);
            form
        });
    }
}

/// Explains what is missing, with a button that provides it.
fn show_need(ui: &mut Ui, why: &str, button: &str, does: DialogDecision) -> Option<DialogDecision> {
    words(ui, why);
    ui.add_space(space::L);
    let mut decision = None;
    at_right(ui, |ui| {
        if text_button(ui, button, true).clicked() {
            decision = Some(does);
        }
        if text_button(ui, "Close", false).clicked() {
            decision = Some(DialogDecision::Never);
        }
    });
    decision
}

/// Describes the kernel's current move, which takes a second if the kernel has to start.
fn moving_text(to: &KernelStateMove) -> &'static str {
    match to {
        KernelStateMove::Fork { .. } => "Making the fork…",
        KernelStateMove::Adopt { .. } => "Taking its variables over…",
        KernelStateMove::Discard { .. } => "Discarding the fork…",
        KernelStateMove::Switch { .. }
        | KernelStateMove::Undo
        | KernelStateMove::Redo
        | KernelStateMove::Fresh
        | KernelStateMove::To { .. }
        | KernelStateMove::Pin { .. }
        | KernelStateMove::Unpin { .. }
        | KernelStateMove::Receive => "Restoring its variables…",
    }
}
