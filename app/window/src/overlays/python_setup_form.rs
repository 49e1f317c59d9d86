//! The dialog that sets up a full Python for a note: shows the commands, runs them if the user agrees, and shows their
//! output.
//!
//! Blocking work runs on threads of the host.

use crate::overlays::dialogs::DialogDecision;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Frame, Margin, RichText, ScrollArea, Ui};
use engine::KernelSpec;
use host::python_setup::{
    PythonSetup, RunningSetup, SetupError, SetupPlan, SetupProgress, package_of_module, shell_line,
};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::{BlockId, DocId};
use text::untrusted_text;
use ui::dialog_parts::{at_right, exact_words, field, head, words};
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{set_accessible_name, text_button};

/// Maximum number of kept lines of output.
const MAX_KEPT_LINES: usize = 500;
/// Maximum number of this machine's kernels that are offered.
const MAX_OFFERED_KERNELS: usize = 4;
const OUTPUT_HEIGHT: f32 = 180.0;

/// Packages as they were typed, and the commands for them.
type PackagesPlan = (String, Result<SetupPlan, SetupError>);

/// A Python setup, from the question to the chosen kernel.
pub(crate) struct PythonSetupForm {
    pub(crate) note: DocId,
    /// The cell that misses a module.
    cell: BlockId,
    module: String,
    setup: PythonSetup,
    packages: String,
    /// The commands for the typed packages.
    plan: Option<PackagesPlan>,
    is_planning: bool,
    plans: (Sender<PackagesPlan>, Receiver<PackagesPlan>),
    pub(crate) stage: SetupStage,
    output: Vec<String>,
    /// Kernels that are already installed.
    pub(crate) kernels: Vec<KernelSpec>,
    /// The number of kernel searches before this dialog requested one.
    pub(crate) kernels_asked: Option<u64>,
}

/// Progress of the setup.
pub(crate) enum SetupStage {
    Asking,
    Running(RunningSetup, PathBuf),
    /// The environment is installed. Its kernel has to be found and chosen.
    Installed(PathBuf),
    /// The environment is installed and the kernel search has started; the number of searches before.
    Choosing(PathBuf, u64),
    Failed(SetupError),
    /// The note's kernel is now the one with this title.
    Ready(String),
}

impl PythonSetupForm {
    pub(crate) fn new(note: DocId, cell: BlockId, module: String, setup: PythonSetup) -> PythonSetupForm {
        PythonSetupForm {
            note,
            cell,
            packages: package_of_module(&module).unwrap_or_default().to_owned(),
            module,
            setup,
            plan: None,
            is_planning: false,
            plans: channel(),
            stage: SetupStage::Asking,
            output: Vec::new(),
            kernels: Vec::new(),
            kernels_asked: None,
        }
    }

    /// Returns whether programs are running, which only their button stops.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.stage, SetupStage::Running(..) | SetupStage::Installed(_) | SetupStage::Choosing(..))
    }

    /// Draws the dialog. Returns a decision once there is one.
    pub(crate) fn show(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        self.follow(ui.ctx());
        head(ui, "Set up Python");
        match &self.stage {
            SetupStage::Asking => self.show_question(ui),
            SetupStage::Running(..) | SetupStage::Installed(_) | SetupStage::Choosing(..) => self.show_work(ui),
            SetupStage::Failed(_) => self.show_failure(ui),
            SetupStage::Ready(_) => self.show_result(ui),
        }
    }

    /// Processes results from threads.
    fn follow(&mut self, ctx: &egui::Context) {
        while let Ok(plan) = self.plans.1.try_recv() {
            self.is_planning = false;
            self.plan = Some(plan);
        }
        let is_current = self.plan.as_ref().is_some_and(|(packages, _)| *packages == self.packages);
        if matches!(self.stage, SetupStage::Asking) && !is_current && !self.is_planning {
            self.is_planning = true;
            let packages = self.packages.clone();
            let split = packages.split([' ', ',']).filter(|name| !name.is_empty()).map(str::to_owned);
            let setup = PythonSetup { packages: split.collect(), ..self.setup.clone() };
            let (tell, wake) = (self.plans.0.clone(), ctx.clone());
            std::thread::spawn(move || {
                let _ = tell.send((packages, setup.plan())); // the dialog may be closed
                wake.request_repaint();
            });
        }
        let SetupStage::Running(running, environment) = &self.stage else { return };
        self.stage = match take_output(running, &mut self.output) {
            Some(Ok(())) => SetupStage::Installed(environment.clone()),
            Some(Err(error)) => SetupStage::Failed(error),
            None => return,
        };
    }

    fn show_question(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        let module = &self.module;
        words(
            ui,
            &format!(
                "{module} needs a full Python. Tracebook makes an environment in the folder of your notes and installs \
                 packages into it. Nothing runs before you choose Set up."
            ),
        );
        if let Some(name) = self.show_kernels(ui) {
            return Some(DialogDecision::ChooseKernel { name });
        }
        ui.add_space(space::M);
        words(ui, "Packages");
        field(ui, &mut self.packages, "Packages", "pandas matplotlib");
        ui.add_space(space::M);
        let plan = self.plan.as_ref().filter(|(packages, _)| *packages == self.packages).map(|(_, plan)| plan);
        match plan {
            None => words(ui, "Looking for Python…"),
            Some(Err(error)) => show_error(ui, error),
            Some(Ok(plan)) => {
                if plan.is_existing {
                    let place = untrusted_text::escape_line(&plan.environment.to_string_lossy()).into_owned();
                    let text = format!(
                        "There's an environment already: {place}. Packages are added to it. Cells and agents could \
                         have changed it, so go on only if it's yours."
                    );
                    ui.label(RichText::new(text).font(theme::small().font).color(ThemeColors::of(ui).warn));
                    ui.add_space(space::S);
                }
                words(ui, "This runs:");
                let lines: Vec<String> = plan.commands.iter().map(|words| format!("$ {}", shell_line(words))).collect();
                show_lines(ui, "Commands", &lines);
                ui.add_space(space::S);
                words(
                    ui,
                    "The new kernel runs this note’s cells with all your rights: it can read and change every file of \
                     yours and use the network.",
                );
            }
        }
        let can_start = matches!(plan, Some(Ok(_)));
        let can_retry = matches!(plan, Some(Err(_)));
        ui.add_space(space::L);
        let (mut starts, mut retries, mut closes) = (false, false, false);
        at_right(ui, |ui| {
            starts = can_start && text_button(ui, "Set up", true).clicked();
            retries = can_retry && text_button(ui, "Look again", true).clicked();
            closes = text_button(ui, "Cancel", false).clicked();
        });
        if retries {
            self.plan = None;
        }
        if starts && let Some((_, Ok(plan))) = self.plan.take() {
            let wake = ui.ctx().clone();
            let environment = plan.environment.clone();
            self.output.clear();
            self.stage = SetupStage::Running(plan.start(move || wake.request_repaint()), environment);
        }
        closes.then_some(DialogDecision::Never)
    }

    /// Offers the kernels that are already installed. Returns the chosen one.
    fn show_kernels(&self, ui: &mut Ui) -> Option<String> {
        let mut chosen = None;
        if !self.kernels.is_empty() {
            ui.add_space(space::M);
            words(ui, "On this computer already:");
        }
        for spec in self.kernels.iter().take(MAX_OFFERED_KERNELS) {
            ui.horizontal(|ui| {
                let button = text_button(ui, "Use", false);
                set_accessible_name(&button, Role::Button, &format!("Use {}", spec.title));
                if button.clicked() {
                    chosen = Some(spec.name.clone());
                }
                let place = spec.path.ancestors().nth(5).unwrap_or(&spec.path);
                ui.label(RichText::new(untrusted_text::escape_line(&spec.title)).font(theme::small().font));
                exact_words(ui, &place.to_string_lossy());
            });
        }
        chosen
    }

    fn show_work(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        let does =
            if matches!(self.stage, SetupStage::Running(..)) { "Installing…" } else { "Choosing the kernel…" };
        let running = match &self.stage {
            SetupStage::Running(running, _) => Some((running, "Stop")),
            _ => None, // tidy: open because nothing runs any more
        };
        show_running(ui, does, &self.output, running);
        None
    }

    fn show_failure(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        let SetupStage::Failed(error) = &self.stage else { return None };
        let chosen = show_failed_setup(ui, error, &self.output)?;
        if chosen == AfterFailure::TryAgain {
            (self.stage, self.plan) = (SetupStage::Asking, None);
        }
        (chosen == AfterFailure::Close).then_some(DialogDecision::Never)
    }

    fn show_result(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        if let SetupStage::Ready(title) = &self.stage {
            words(ui, &format!("{title} now runs this note’s cells."));
        }
        ui.add_space(space::L);
        let mut decision = None;
        at_right(ui, |ui| {
            if text_button(ui, "Run the cell again", true).clicked() {
                decision = Some(DialogDecision::RunCell { note: self.note, cell: self.cell });
            }
            if text_button(ui, "Close", false).clicked() {
                decision = Some(DialogDecision::Never);
            }
        });
        decision
    }
}

/// Collects the programs' output. Returns how they ended, once they have.
pub(super) fn take_output(running: &RunningSetup, output: &mut Vec<String>) -> Option<Result<(), SetupError>> {
    let mut ended = None;
    while let Some(progress) = running.next_progress() {
        match progress {
            SetupProgress::Command(line) => output.push(format!("$ {line}")),
            SetupProgress::Line(line) => output.push(line),
            SetupProgress::Ended(end) => ended = Some(end),
        }
    }
    let over = output.len().saturating_sub(MAX_KEPT_LINES);
    output.drain(..over);
    ended
}

/// Draws the programs' output. `running`: the programs, and the text of the button that stops them; `None` once they
/// have ended.
pub(super) fn show_running(ui: &mut Ui, does: &str, output: &[String], running: Option<(&RunningSetup, &str)>) {
    words(ui, does);
    ui.add_space(space::S);
    show_lines(ui, "Output", output);
    ui.add_space(space::L);
    at_right(ui, |ui| {
        if let Some((running, stop)) = running
            && text_button(ui, stop, false).clicked()
        {
            running.stop();
        }
    });
}

/// The user's choice after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    TryAgain,
    Close,
}

/// Draws why programs failed and what they printed. Returns the user's choice.
pub(super) fn show_failed_setup(ui: &mut Ui, error: &SetupError, output: &[String]) -> Option<AfterFailure> {
    show_error(ui, error);
    if !output.is_empty() {
        ui.add_space(space::S);
        show_lines(ui, "Output", output);
    }
    ui.add_space(space::L);
    let mut chosen = None;
    at_right(ui, |ui| {
        if text_button(ui, "Try again", true).clicked() {
            chosen = Some(AfterFailure::TryAgain);
        }
        if text_button(ui, "Close", false).clicked() {
            chosen = Some(AfterFailure::Close);
        }
    });
    chosen
}

pub(super) fn show_error(ui: &mut Ui, error: &SetupError) {
    let small = theme::small();
    let colours = ThemeColors::of(ui);
    ui.label(RichText::new(untrusted_text::escape_block(&error.why)).font(small.font.clone()).color(colours.bad));
    ui.label(RichText::new(untrusted_text::escape_block(&error.advice)).font(small.font).color(colours.ink));
}

/// Draws lines of terminal output, scrolled to the end.
pub(super) fn show_lines(ui: &mut Ui, name: &str, lines: &[String]) {
    let colours = ThemeColors::of(ui);
    let frame = Frame::new().fill(colours.sunken).corner_radius(CONTROL_CORNER).inner_margin(Margin::same(8));
    let text = lines.join("\n");
    let response = frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ScrollArea::vertical().id_salt(name).max_height(OUTPUT_HEIGHT).stick_to_bottom(true).show(ui, |ui| {
            let shown = RichText::new(untrusted_text::escape_block(&text)).font(theme::code().font).color(colours.ink);
            ui.add(egui::Label::new(shown).wrap().selectable(true));
        });
    });
    set_accessible_name(&response.response, Role::Group, &format!("{name}: {text}"));
}
