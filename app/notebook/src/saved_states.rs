//! The dialog for the saved states of a note's variables: their graph, forks, the comparison of two states, and sharing
//! them with other devices.
//!
//! It reads and compares states on threads. The kernel makes the moves.

mod fork_list;
mod state_comparison;
mod state_rows;

use eframe::egui;
use egui::accesskit::Role;
use egui::{RichText, Ui};
use engine::{KernelStateMove, Note};
use host::kernel_states::{NoteStates, StateBudget, StateGraphRow, list_states, state_graph, workspace_state_bytes};
use host::science_pack::{PACK_WHEEL_BYTES, megabytes};
use state_comparison::StateComparisonForm;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use store::DocId;
use text::untrusted_text;
use ui::dialog_parts::{at_right, field, head, show_trouble, words};
use ui::setting_rows::toggle_switch;
use ui::theme::{self, space};
use ui::widgets::{set_accessible_name, text_button};

/// Returns what becomes of a note's variables when its kernel is restarted.
pub fn restart_warning(note: &Note) -> &'static str {
    match note.saves_states() {
        true => "“Saved states…” brings variables back.",
        false => "Variables are lost. There’s no undo.",
    }
}

/// Height of the lists, in points, beyond which they scroll.
const LIST_HEIGHT: f32 = 280.0;

/// The shortest interval at which the states are read again.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// The interval is at least this many times as long as the last read, which takes longer in large folders.
const READ_PAUSE_FACTOR: u32 = 20;

/// What the dialog shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedStatesView {
    /// The graph of all states.
    Graph,
    /// The forks.
    Forks,
    /// Sharing with other devices.
    Sharing,
}

/// Whether a note's variables are saved, which forks require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkSupport {
    /// The variables are saved.
    Saved,
    /// The note's properties contain `state: off`.
    TurnedOff,
    /// The kernel saves no states. The science pack does.
    OtherKernel {
        /// Whether the science pack is installed.
        has_science: bool,
    },
}

/// What the user decided in the dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedStatesDecision {
    /// Close the dialog.
    Close,
    /// Make Science the note's kernel.
    UseScience,
    /// Change the states. The dialog stays open.
    Change(SavedStatesChange),
}

/// A change of a note's saved states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedStatesChange {
    /// Move to another state or fork.
    Move(KernelStateMove),
    /// Share them with other devices, or no longer.
    Share(bool),
    /// Turn saving of the note's variables on again.
    SaveVariables,
}

/// A note's states, the space of all notes' states, and how long it took to read them.
struct StatesRead {
    states: NoteStates,
    space: StateSpace,
    took: Duration,
    /// The number of changes that had ended when the read began.
    change_count: u64,
}

/// Disk space for saved states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateSpace {
    /// Size of all notes' states in bytes.
    all_notes_bytes: u64,
    budget: StateBudget,
}

/// The dialog for a note's saved states.
pub struct SavedStatesForm {
    /// The note.
    pub note: DocId,
    view: SavedStatesView,
    /// The program that compares states.
    program: PathBuf,
    workspace: PathBuf,
    /// Whether the note's variables are saved.
    pub support: ForkSupport,
    states: Option<NoteStates>,
    /// The number of changes that ended since the dialog opened.
    change_count: u64,
    /// Whether a change has ended since `states` were read.
    is_outdated: bool,
    space: Option<StateSpace>,
    /// The place of each state in the graph.
    graph: Vec<StateGraphRow>,
    is_reading: bool,
    /// When the states were last read.
    read_at: Option<Instant>,
    read_interval: Duration,
    read: (Sender<StatesRead>, Receiver<StatesRead>),
    /// The name typed for a new fork.
    name: String,
    /// The state that the new fork continues from; `None` is the current one.
    fork_from: Option<String>,
    /// What is searched in the graph.
    query: String,
    /// The number of earlier moves, and the move that the kernel is making.
    pub awaited: Option<(u64, KernelStateMove)>,
    /// The number of earlier jobs of sharing, and whether the states will be shared.
    pub awaited_share: Option<(u64, bool)>,
    /// Why the last change failed.
    pub trouble: Option<String>,
    /// The result of the last change.
    done: Option<String>,
    /// The fork that the user is asked about before it's discarded.
    asked_discard: Option<String>,
    comparison: Option<StateComparisonForm>,
}

impl SavedStatesForm {
    /// Creates the dialog for a note. `program` is Tracebook's own, which compares states in a process of its own.
    pub fn new(
        note: DocId,
        view: SavedStatesView,
        support: ForkSupport,
        (program, workspace): (PathBuf, PathBuf),
    ) -> SavedStatesForm {
        SavedStatesForm {
            note,
            view,
            program,
            workspace,
            support,
            states: None,
            change_count: 0,
            is_outdated: false,
            space: None,
            graph: Vec::new(),
            is_reading: false,
            read_at: None,
            read_interval: READ_INTERVAL,
            read: channel(),
            name: String::new(),
            fork_from: None,
            query: String::new(),
            awaited: None,
            awaited_share: None,
            trouble: None,
            done: None,
            asked_discard: None,
            comparison: None,
        }
    }

    /// Returns the decision that creates a fork with the typed name.
    pub fn new_fork(&self) -> Option<SavedStatesDecision> {
        let name = self.name.trim().to_owned();
        let is_ready = self.support == ForkSupport::Saved && self.is_free() && self.comparison.is_none();
        let is_asked = self.view == SavedStatesView::Forks || self.fork_from.is_some();
        let to = KernelStateMove::Fork { name, state: self.fork_from.clone() };
        (is_ready && is_asked && !self.name.trim().is_empty()).then(|| move_to(to))
    }

    /// Returns whether no change is under way.
    fn is_free(&self) -> bool {
        self.awaited.is_none() && self.awaited_share.is_none()
    }

    /// Returns whether what is shown can be acted on: no change is under way, and the last one is shown.
    fn is_up_to_date(&self) -> bool {
        self.is_free() && !self.is_outdated
    }

    /// Shows the result of the kernel's move, or of sharing.
    pub fn finish_change(&mut self, ended: anyhow::Result<String>) {
        (self.awaited, self.awaited_share) = (None, None);
        (self.done, self.trouble) = match ended {
            Ok(done) => (Some(done), None),
            Err(why) => (None, Some(why.to_string())),
        };
        if self.trouble.is_none() {
            self.name.clear();
            self.fork_from = None;
        }
        self.change_count += 1;
        self.is_outdated = true;
    }

    /// Draws the dialog. Returns a decision once there is one.
    pub fn show(&mut self, ui: &mut Ui) -> Option<SavedStatesDecision> {
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
        head(
            ui,
            match self.view {
                SavedStatesView::Graph => "Saved states",
                SavedStatesView::Forks => "Forks of variables",
                SavedStatesView::Sharing => "Share variables",
            },
        );
        match self.support {
            ForkSupport::Saved => {
                self.read_states(ui.ctx());
                self.show_view(ui)
            }
            ForkSupport::TurnedOff => {
                let why = match self.view {
                    SavedStatesView::Graph => {
                        "No saved states: this note’s properties say `state: off`, so its variables aren’t saved."
                    }
                    SavedStatesView::Forks => {
                        "Forks need saved variables. This note’s properties say `state: off`, so none are saved."
                    }
                    SavedStatesView::Sharing => {
                        "Only saved variables can be shared. This note’s properties say `state: off`, so none are \
                         saved."
                    }
                };
                show_need(ui, why, "Save variables", SavedStatesDecision::Change(SavedStatesChange::SaveVariables))
            }
            ForkSupport::OtherKernel { has_science } => {
                let why = match self.view {
                    SavedStatesView::Graph => {
                        "No saved states. The kernel Science saves a note’s variables after each run, so that you can \
                         go back to them."
                    }
                    SavedStatesView::Forks => {
                        "A fork is a second line of a note’s variables, to try something without spoiling the first. \
                         Forks need the kernel Science, which saves variables."
                    }
                    SavedStatesView::Sharing => {
                        "Your other devices can continue with a note’s variables. That needs the kernel Science, \
                         which saves variables."
                    }
                };
                let size = megabytes(PACK_WHEEL_BYTES);
                let button =
                    if has_science { "Use Science".to_owned() } else { format!("Use Science ({size} MB download)") };
                show_need(ui, why, &button, SavedStatesDecision::UseScience)
            }
        }
    }

    /// Reads the states on a thread, if they are missing or old.
    fn read_states(&mut self, ctx: &egui::Context) {
        while let Ok(StatesRead { states, space, took, change_count }) = self.read.1.try_recv() {
            self.is_reading = false;
            self.read_interval = READ_INTERVAL.max(took * READ_PAUSE_FACTOR);
            if change_count != self.change_count {
                continue; // Read while a change was under way.
            }
            self.is_outdated = false;
            if let Some(problem) = &states.problem {
                self.trouble = Some(ui::text::sentence(problem));
            }
            self.graph = state_graph(&states.states);
            (self.states, self.space) = (Some(states), Some(space));
        }
        // A state is saved after its cell's output arrives, so the list may be older than the last state.
        let is_old = self.read_at.is_none_or(|at| at.elapsed() >= self.read_interval);
        ctx.request_repaint_after(self.read_interval);
        if (self.states.is_none() || self.is_outdated || is_old) && !self.is_reading {
            (self.is_reading, self.read_at) = (true, Some(Instant::now()));
            let change_count = self.change_count;
            let (workspace, note, tell, wake) = (self.workspace.clone(), self.note, self.read.0.clone(), ctx.clone());
            std::thread::spawn(move || {
                let begun = Instant::now();
                let states = list_states(&workspace, note);
                let space = StateSpace {
                    all_notes_bytes: workspace_state_bytes(&workspace),
                    budget: StateBudget::of(&workspace),
                };
                let took = begun.elapsed();
                let _ = tell.send(StatesRead { states, space, took, change_count }); // The dialog may be closed.
                wake.request_repaint();
            });
        }
    }

    fn show_view(&mut self, ui: &mut Ui) -> Option<SavedStatesDecision> {
        let mut decision = None;
        match self.states.take() {
            None => words(ui, "Reading the saved states…"),
            Some(states) => {
                decision = match self.view {
                    SavedStatesView::Graph => self.show_graph(ui, &states),
                    SavedStatesView::Forks => self.show_forks(ui, &states),
                    SavedStatesView::Sharing => self.show_sharing(ui, &states),
                };
                // A comparison or an answer may have changed what is shown, but not the states.
                self.states = Some(states);
            }
        }
        ui.add_space(space::M);
        if let (SavedStatesView::Graph, Some(from)) = (self.view, &self.fork_from) {
            let state = self.states.as_ref().and_then(|states| states.states.iter().find(|one| one.state == *from));
            let cell = state.map_or("a cell", |state| state.cell.as_str());
            words(ui, &format!("The fork continues with the variables after {cell}. Other lines stay as they are."));
            ui.add_space(space::S);
        }
        if self.view == SavedStatesView::Forks || self.fork_from.is_some() {
            field(ui, &mut self.name, "Name of the new fork", "Name of a new fork");
        }
        self.show_progress(ui);
        show_trouble(ui, self.trouble.as_deref());
        self.show_buttons(ui).or(decision)
    }

    /// Draws what the kernel is doing, or the result of the last change.
    fn show_progress(&self, ui: &mut Ui) {
        let doing = match (&self.awaited, self.awaited_share) {
            (Some((_, to)), _) => Some(moving_text(to)),
            (None, Some((_, true))) => Some("Sharing the variables…"),
            (None, Some((_, false))) => Some("Ending the sharing…"),
            (None, None) => None,
        };
        if let Some(doing) = doing {
            ui.add_space(space::S);
            words(ui, doing);
        } else if let Some(done) = &self.done {
            ui.add_space(space::S);
            let shown = ui.label(RichText::new(untrusted_text::escape_line(done)).font(theme::small().font));
            set_accessible_name(&shown, Role::Status, done);
        }
    }

    fn show_buttons(&mut self, ui: &mut Ui) -> Option<SavedStatesDecision> {
        let mut decision = None;
        let is_free = self.is_free();
        at_right(ui, |ui| {
            let is_forking = self.view == SavedStatesView::Forks || self.fork_from.is_some();
            if is_forking && ui.add_enabled_ui(is_free, |ui| text_button(ui, "Fork", true)).inner.clicked() {
                decision = self.new_fork();
            }
            let choices = self.states.as_ref().map(StateComparisonForm::choices_of).unwrap_or_default();
            if self.view != SavedStatesView::Sharing
                && choices.len() > 1
                && text_button(ui, "Compare states…", false).clicked()
            {
                let form = self.states.as_ref().map(|states| StateComparisonForm::of_states(states, self.place()));
                self.compare(ui.ctx(), form);
            }
            let views = [
                (SavedStatesView::Sharing, "Share…"),
                (SavedStatesView::Forks, "Forks…"),
                (SavedStatesView::Graph, "All states…"),
            ];
            for (view, title) in views {
                if view != self.view && text_button(ui, title, false).clicked() {
                    (self.view, self.fork_from, self.done, self.trouble) = (view, None, None, None);
                    self.name.clear();
                }
            }
            if text_button(ui, "Close", false).clicked() {
                decision = Some(SavedStatesDecision::Close);
            }
        });
        decision
    }

    /// Draws whether the states are shared with other devices, and what that means.
    fn show_sharing(&mut self, ui: &mut Ui, states: &NoteStates) -> Option<SavedStatesDecision> {
        const SHARE: &str = "Share variables with my devices";
        let mut decision = None;
        let is_free = self.is_up_to_date();
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = space::M;
            if ui.add_enabled_ui(is_free, |ui| toggle_switch(ui, SHARE, states.is_shared)).inner {
                decision = Some(SavedStatesDecision::Change(SavedStatesChange::Share(!states.is_shared)));
            }
            ui.label(RichText::new(SHARE).font(theme::body().font));
        });
        ui.add_space(space::S);
        words(
            ui,
            "After each run, this note’s newest variables go to the hub and devices that have this note, up to 512 MB. \
             Variables can hold all that cells have read, so treat them like the note. Each device decides for itself. \
             When you turn this off, hubs and devices keep what they have.",
        );
        ui.add_space(space::L);
        words(
            ui,
            "If another device shares its variables, cells continue with them when those here are older. You can take \
             them over at any time: the variables of this device stay as the fork “here”.",
        );
        ui.add_space(space::S);
        let button = |ui: &mut Ui| text_button(ui, "Continue with the variables of another device", false);
        if ui.add_enabled_ui(is_free, button).inner.clicked() {
            decision = Some(move_to(KernelStateMove::Receive));
        }
        decision
    }

    fn place(&self) -> state_comparison::StatesPlace {
        (self.program.clone(), self.workspace.clone(), self.note)
    }

    /// Shows a comparison, and starts it.
    fn compare(&mut self, ctx: &egui::Context, form: Option<StateComparisonForm>) {
        self.comparison = form.map(|mut form| {
            form.start(ctx);
            form
        });
    }
}

fn move_to(to: KernelStateMove) -> SavedStatesDecision {
    SavedStatesDecision::Change(SavedStatesChange::Move(to))
}

/// Explains what is missing, with a button that provides it.
fn show_need(ui: &mut Ui, why: &str, button: &str, does: SavedStatesDecision) -> Option<SavedStatesDecision> {
    words(ui, why);
    ui.add_space(space::L);
    let mut decision = None;
    at_right(ui, |ui| {
        if text_button(ui, button, true).clicked() {
            decision = Some(does);
        }
        if text_button(ui, "Close", false).clicked() {
            decision = Some(SavedStatesDecision::Close);
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
        KernelStateMove::Pin { .. } | KernelStateMove::Unpin { .. } => "Saving the choice…",
        KernelStateMove::Take { .. } => "Adding the fork…",
        KernelStateMove::Receive => "Fetching the variables of the other device…",
        KernelStateMove::Switch { .. }
        | KernelStateMove::Undo
        | KernelStateMove::Redo
        | KernelStateMove::Fresh
        | KernelStateMove::To { .. } => "Restoring its variables…",
    }
}
