//! The packages dialog of a note: the Python version and packages its cells need, the installation's commands, and
//! their output.
//!
//! Nothing runs before **Install**, and then exactly what was shown. Blocking work runs on threads of the host.

use crate::overlays::dialogs::DialogDecision;
use crate::overlays::python_setup_form::{
    AfterFailure, show_error, show_failed_setup, show_lines, show_running, take_output,
};
use eframe::egui;
use egui::accesskit::Role;
use egui::{RichText, ScrollArea, Ui};
use engine::NotePackages;
use host::note_environment::{
    EnvironmentPlan, EnvironmentSetup, ReadyEnvironment, environments_folder, find_environment, python_versions,
};
use host::note_packages::{NotePlace, add_package, remove_package};
use host::python_setup::{RunningSetup, SetupError, shell_line};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::{BlockId, DocId};
use text::untrusted_text;
use ui::dialog_parts::{at_right, field, further, head, show_trouble, words};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{set_accessible_name, text_button};

/// Height of the list, in points, beyond which it scrolls.
const LIST_HEIGHT: f32 = 160.0;

/// Packages, and the commands that would install them.
type PlanOfPackages = (NotePackages, Result<EnvironmentPlan, SetupError>);

/// The packages dialog, from the list to the ready environment.
pub(crate) struct NotePackagesForm {
    pub(crate) note: DocId,
    /// The cell that misses a package.
    cell: Option<BlockId>,
    place: NotePlace,
    /// The folder that contains all environments.
    root: PathBuf,
    variables: Vec<(String, OsString)>,
    /// The packages in the note's properties.
    pub(crate) stated: NotePackages,
    dependencies: Vec<String>,
    python: String,
    /// The typed package that isn't added yet.
    new_package: String,
    trouble: Option<String>,
    plan: Option<PlanOfPackages>,
    is_planning: bool,
    plans: (Sender<PlanOfPackages>, Receiver<PlanOfPackages>),
    /// Delivers the environment that was created.
    found: (Sender<Option<ReadyEnvironment>>, Receiver<Option<ReadyEnvironment>>),
    pub(crate) stage: PackagesStage,
    output: Vec<String>,
}

/// Progress of the dialog.
pub(crate) enum PackagesStage {
    Editing,
    Running(RunningSetup, NotePackages),
    /// The packages are installed, and their environment is being found.
    Finding(NotePackages),
    /// The packages are installed, and the note has to list them.
    Installed(NotePackages, Option<ReadyEnvironment>),
    Failed(SetupError),
    /// The note lists the packages. `other_kernel`: a kernel other than the environment's still runs the note.
    Ready {
        environment: Option<ReadyEnvironment>,
        other_kernel: Option<String>,
    },
}

impl NotePackagesForm {
    /// Creates the dialog. `missing`: a cell, and the package that it misses.
    pub(crate) fn new(
        note: DocId,
        place: NotePlace,
        stated: NotePackages,
        missing: (Option<BlockId>, Option<&str>),
        variables: Vec<(String, OsString)>,
    ) -> NotePackagesForm {
        let mut wanted = stated.clone();
        let trouble = missing.1.and_then(|package| add_package(&mut wanted, package).err());
        NotePackagesForm {
            note,
            cell: missing.0,
            place,
            root: environments_folder(),
            variables,
            dependencies: wanted.dependencies,
            python: stated.requires_python.clone().unwrap_or_default(),
            stated,
            new_package: String::new(),
            trouble: trouble.map(|why| format!("{why}.")),
            plan: None,
            is_planning: false,
            plans: channel(),
            found: channel(),
            stage: PackagesStage::Editing,
            output: Vec::new(),
        }
    }

    /// Returns whether programs are running, which only their button stops.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.stage, PackagesStage::Running(..) | PackagesStage::Finding(_) | PackagesStage::Installed(..))
    }

    /// Returns the packages and Python version that the note should list.
    fn wanted(&self) -> NotePackages {
        let python = self.python.trim();
        let requires_python = (!python.is_empty()).then(|| python_versions(python));
        NotePackages { requires_python, dependencies: self.dependencies.clone() }
    }

    /// Adds the typed package to the list.
    pub(crate) fn add(&mut self) {
        let typed = self.new_package.trim().to_owned();
        if typed.is_empty() {
            return;
        }
        let mut wanted = self.wanted();
        match add_package(&mut wanted, &typed) {
            Ok(()) => {
                self.dependencies = wanted.dependencies;
                self.new_package.clear();
                self.trouble = None;
            }
            Err(why) => self.trouble = Some(format!("{why}.")),
        }
    }

    /// Draws the dialog. Returns a decision once there is one.
    pub(crate) fn show(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        if ui.input(|input| !input.events.is_empty()) {
            // Changes from a click or key are drawn in the next frame.
            ui.ctx().request_repaint();
        }
        self.follow(ui.ctx());
        head(ui, "Packages of this note");
        match &self.stage {
            PackagesStage::Editing => self.show_list(ui),
            PackagesStage::Running(..) | PackagesStage::Finding(_) | PackagesStage::Installed(..) => {
                self.show_work(ui);
                None
            }
            PackagesStage::Failed(_) => self.show_failure(ui),
            PackagesStage::Ready { .. } => self.show_result(ui),
        }
    }

    /// Processes results from threads.
    fn follow(&mut self, ctx: &egui::Context) {
        while let Ok(plan) = self.plans.1.try_recv() {
            self.is_planning = false;
            self.plan = Some(plan);
        }
        let wanted = self.wanted();
        let is_current = self.plan.as_ref().is_some_and(|(packages, _)| *packages == wanted);
        let is_needed = matches!(self.stage, PackagesStage::Editing) && wanted != NotePackages::default();
        if is_needed && !is_current && !self.is_planning {
            self.is_planning = true;
            let setup = EnvironmentSetup {
                note_file: self.place.file.clone(),
                packages: wanted.clone(),
                only_locked: false,
                root: self.root.clone(),
                shared: self.place.shared.clone(),
                variables: self.variables.clone(),
            };
            let (tell, wake) = (self.plans.0.clone(), ctx.clone());
            std::thread::spawn(move || {
                let _ = tell.send((wanted, setup.plan())); // the dialog may be closed
                wake.request_repaint();
            });
        }
        if let PackagesStage::Finding(packages) = &self.stage
            && let Ok(found) = self.found.1.try_recv()
        {
            self.stage = PackagesStage::Installed(packages.clone(), found);
        }
        let PackagesStage::Running(running, packages) = &self.stage else { return };
        self.stage = match take_output(running, &mut self.output) {
            Some(Ok(())) => {
                let installed = packages.clone();
                let (root, file, packages) = (self.root.clone(), self.place.file.clone(), packages.clone());
                let (tell, wake) = (self.found.0.clone(), ctx.clone());
                std::thread::spawn(move || {
                    let _ = tell.send(find_environment(&root, &file, &packages).ok()); // the window may be closed
                    wake.request_repaint();
                });
                PackagesStage::Finding(installed)
            }
            Some(Err(error)) => PackagesStage::Failed(error),
            None => return,
        };
    }

    fn show_list(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        words(
            ui,
            "The note lists the packages that its cells need. They run in a Python of this computer, as confined as \
             the built-in one.",
        );
        ui.add_space(space::M);
        words(ui, "Python");
        further(ui, &mut self.python, "packages python", "Python version", "3.12, or empty for any");
        ui.add_space(space::M);
        self.show_packages(ui);
        ui.add_space(space::S);
        let typed = self.new_package.clone();
        field(ui, &mut self.new_package, "Package to add", "Package to add, such as polars or pandas>=2");
        if self.new_package != typed {
            self.trouble = None; // it was about the other text
        }
        ui.add_space(space::S);
        at_right(ui, |ui| {
            if text_button(ui, "Add", false).clicked() {
                self.add();
            }
        });
        ui.add_space(space::S);
        self.show_plan(ui)
    }

    fn show_packages(&mut self, ui: &mut Ui) {
        if self.dependencies.is_empty() {
            words(ui, "It lists no packages yet. Add the first one.");
            return;
        }
        let mut removed = None;
        ScrollArea::vertical().id_salt("packages").max_height(LIST_HEIGHT).show(ui, |ui| {
            ui.set_width(ui.available_width() - space::M); // the buttons keep clear of the scroll bar
            for package in &self.dependencies {
                ui.horizontal(|ui| {
                    let shown = RichText::new(untrusted_text::escape_line(package)).font(theme::code().font);
                    let label = ui.add(egui::Label::new(shown.color(ThemeColors::of(ui).ink)).truncate());
                    set_accessible_name(&label, Role::Label, package);
                    let wanted = egui::vec2(ui.available_width(), size::MIN_CLICK_HEIGHT);
                    let layout = egui::Layout::right_to_left(egui::Align::Center);
                    ui.allocate_ui_with_layout(wanted, layout, |ui| {
                        let button = text_button(ui, "Remove", false);
                        set_accessible_name(&button, Role::Button, &format!("Remove {package}"));
                        if button.clicked() {
                            removed = Some(package.clone());
                        }
                    });
                });
            }
        });
        if let Some(package) = removed {
            let mut wanted = self.wanted();
            remove_package(&mut wanted, &package);
            self.dependencies = wanted.dependencies;
        }
    }

    /// Draws the commands that would run, and the buttons.
    fn show_plan(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        let wanted = self.wanted();
        let is_empty = wanted == NotePackages::default();
        let plan = self.plan.as_ref().filter(|(packages, _)| *packages == wanted && !is_empty).map(|(_, plan)| plan);
        match plan {
            _ if is_empty => {}
            None => words(ui, "Looking for Python…"),
            Some(Err(error)) => show_error(ui, error),
            Some(Ok(plan)) if plan.is_ready() => words(ui, "Everything is installed already."),
            Some(Ok(plan)) => {
                let asked = "This runs, and uses the network. Packages come from the Python Package Index, or from \
                             the index that pip or uv is set to use:";
                words(ui, asked);
                let named = plan.requirements();
                let commands = plan.commands().iter().map(|words| format!("$ {}", shell_line(words)));
                let mut lines: Vec<String> = commands.collect();
                if !named.is_empty() {
                    lines.push(format!("# requirements.txt: {}", named.join(", ")));
                }
                show_lines(ui, "Commands", &lines);
            }
        }
        show_trouble(ui, self.trouble.as_deref());
        let (is_ready, is_planned) = match plan {
            Some(Ok(plan)) => (plan.is_ready(), true),
            Some(Err(_)) | None => (false, false),
        };
        let is_failed = matches!(plan, Some(Err(_)));
        let saves = is_ready || (is_empty && self.stated != wanted);
        let (mut starts, mut retries, mut closes) = (false, false, false);
        at_right(ui, |ui| {
            let lead = if saves { "Save" } else { "Install" };
            starts = (saves || is_planned) && text_button(ui, lead, true).clicked();
            retries = is_failed && text_button(ui, "Look again", true).clicked();
            closes = text_button(ui, "Cancel", false).clicked();
        });
        if retries {
            self.plan = None;
        }
        if starts {
            self.start(ui.ctx(), wanted);
        }
        closes.then_some(DialogDecision::Never)
    }

    /// Runs the commands that were shown.
    fn start(&mut self, ctx: &egui::Context, wanted: NotePackages) {
        let typed = self.new_package.trim();
        if !typed.is_empty() {
            self.trouble = Some(format!("“{typed}” isn't added yet. Choose Add, or empty the field."));
            return;
        }
        self.trouble = None;
        self.output.clear();
        self.stage = match self.plan.take() {
            Some((packages, Ok(plan))) if packages == wanted => {
                let wake = ctx.clone();
                PackagesStage::Running(plan.start(move || wake.request_repaint()), wanted)
            }
            // There's nothing to install; the note then lists no packages.
            _ => PackagesStage::Installed(wanted, None),
        };
    }

    fn show_work(&mut self, ui: &mut Ui) {
        let running = match &self.stage {
            PackagesStage::Running(running, _) => Some((running, "Cancel")),
            _ => None, // tidy: open because nothing runs any more
        };
        show_running(ui, "Installing…", &self.output, running);
    }

    fn show_failure(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        let PackagesStage::Failed(error) = &self.stage else { return None };
        let chosen = show_failed_setup(ui, error, &self.output)?;
        if chosen == AfterFailure::TryAgain {
            (self.stage, self.plan) = (PackagesStage::Editing, None);
        }
        (chosen == AfterFailure::Close).then_some(DialogDecision::Never)
    }

    fn show_result(&self, ui: &mut Ui) -> Option<DialogDecision> {
        let PackagesStage::Ready { environment, other_kernel } = &self.stage else { return None };
        let said = match environment {
            None => "The note lists no packages now.".to_owned(),
            Some(ready) if ready.packages.is_empty() => format!("Python {} is ready.", ready.version),
            Some(ready) => format!("Python {} with {} is ready.", ready.version, ready.packages.join(", ")),
        };
        words(ui, &said);
        if let (Some(_), Some(other)) = (environment, other_kernel) {
            words(ui, &format!("The note’s properties choose the kernel {other}, which doesn’t have these packages."));
        }
        ui.add_space(space::L);
        let mut decision = None;
        at_right(ui, |ui| {
            if environment.is_some() && other_kernel.is_some() {
                if text_button(ui, "Use the environment", true).clicked() {
                    let name = engine::ENVIRONMENT_KERNEL.to_owned();
                    decision = Some(DialogDecision::ChooseKernel { name });
                }
            } else if let Some(cell) = self.cell
                && text_button(ui, "Run the cell again", true).clicked()
            {
                decision = Some(DialogDecision::RerunCell { note: self.note, cell });
            }
            if text_button(ui, "Close", false).clicked() {
                decision = Some(DialogDecision::Never);
            }
        });
        decision
    }
}
