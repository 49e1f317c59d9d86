//! Dialogs, such as for a new note, for opening a folder, or for failed saves at exit.
//!
//! Each reports the user's decision. None performs it.

use crate::overlays::export_form::ExportForm;
use crate::overlays::file_path_field::FilePathField;
use crate::overlays::interpreter_form::InterpreterForm;
use crate::overlays::kernel_permissions_form::KernelPermissionsForm;
use crate::overlays::note_packages_form::NotePackagesForm;
use crate::overlays::open_folder_form::OpenFolderForm;
use crate::overlays::open_repository_form::OpenRepositoryForm;
use crate::overlays::python_setup_form::PythonSetupForm;
use crate::overlays::science_pack_form::SciencePackForm;
use eframe::egui;
use egui::{Id, Ui};
use export::ExportScope;
use notebook::actions::ExportCommand;
use notebook::outputs::OutputFile;
use notebook::saved_states::{SavedStatesChange, SavedStatesDecision, SavedStatesForm};
use std::path::PathBuf;
use store::{BlockId, DocId};
use typeset::pdf::PaperSize;
use ui::dialog_parts::{buttons, exact_words, field, further, head, show_dialog, show_trouble, words};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{check_box, chip_button};

/// Width of dialogs that show two values side by side, in points.
const WIDE_DIALOG_WIDTH: f32 = 720.0;

pub(crate) enum Dialog {
    /// Asks for the name of a new note: the volumes to choose from, and the chosen one.
    NewNote { volumes: Vec<(DocId, String)>, chosen: usize, name: String, trouble: Option<String> },
    /// Asks for a file's new path.
    Rename { file: DocId, path: String, trouble: Option<String> },
    /// Asks for the new path of a folder in a volume.
    RenameFolder { volume: DocId, from: String, path: String, trouble: Option<String> },
    /// Asks for a folder to open as a volume.
    OpenFolder(Box<OpenFolderForm>),
    /// Asks for a Git repository to clone and open.
    OpenRepository(Box<OpenRepositoryForm>),
    /// Asks whether to delete files in the trash permanently; `what` describes them.
    Discard { files: Vec<DocId>, what: String },
    /// Asks for an item to add to today's note.
    QuickNote { text: String, trouble: Option<String> },
    /// Asks where to export notes to.
    Export { wanted: ExportForm, trouble: Option<String> },
    /// Asks where to save a cell's output.
    SaveOutput { save: OutputFile, dest: FilePathField, trouble: Option<String> },
    /// Asks what a note's cells may access.
    Grant { note: DocId, wish: KernelPermissionsForm, trouble: Option<String> },
    /// Asks whether a kernel that others can change may run a note's cells: its name, its fingerprint, and what it
    /// would start.
    Kernel { name: String, print: String, place: String, command: String, doubt: String },
    /// Sets up a full Python for a note.
    PythonSetup(Box<PythonSetupForm>),
    /// Installs, uses or removes the science pack.
    SciencePack(Box<SciencePackForm>),
    /// Chooses the Python of a note's environment kernel.
    Interpreter(Box<InterpreterForm>),
    /// Edits the packages of a note's cells.
    NotePackages(Box<NotePackagesForm>),
    /// Lists the saved states and forks of a note's variables, and shares them.
    SavedStates(Box<SavedStatesForm>),
    /// Asks which hub to share a volume over; `name` is the volume's name.
    Share { volume: DocId, name: String, hub: String, trouble: Option<String> },
    /// Asks for the address of a volume that another device shares, and the folder for it.
    Join { address: String, folder: String, trouble: Option<String> },
    /// Asks whether to close even though something can't be saved.
    Closing { why: String },
    /// Asks whether to stop running cells and runs, and close.
    ClosingWhileRunning { why: String },
    /// Asks whether to start in safe mode, since the last start failed.
    SafeStart,
    /// Shows where a bug report is.
    BugReport { path: PathBuf },
}

#[derive(Debug)]
pub(crate) enum DialogDecision {
    NewNote {
        volume: DocId,
        path: String,
    },
    Rename {
        file: DocId,
        path: String,
    },
    RenameFolder {
        volume: DocId,
        from: String,
        path: String,
    },
    /// Adds an item to today's note.
    QuickNote {
        text: String,
    },
    /// Opens an existing folder.
    OpenFolder {
        folder: PathBuf,
    },
    /// Checks what was typed into the dialog, and opens it.
    SubmitForm,
    /// Clones a repository instead of opening a folder.
    OpenRepository,
    Discard {
        files: Vec<DocId>,
    },
    Export {
        kind: ExportCommand,
        what: ExportScope,
        paper: PaperSize,
        dest: String,
    },
    SaveOutput {
        save: OutputFile,
        dest: String,
    },
    Grant {
        note: DocId,
        grant: engine::KernelGrant,
    },
    /// Runs a note's cells in a Python that was checked; `None`: in the one of its own environment.
    UseInterpreter {
        note: DocId,
        interpreter: Option<PathBuf>,
    },
    AllowKernel {
        name: String,
        print: String,
    },
    /// Uses an installed kernel; it may need approval first.
    ChooseKernel {
        name: String,
    },
    /// Makes the science pack the open note's kernel, and runs this cell.
    UseScience {
        cell: Option<BlockId>,
    },
    RunCell {
        note: DocId,
        cell: BlockId,
    },
    /// Runs a cell in a new kernel.
    RerunCell {
        note: DocId,
        cell: BlockId,
    },
    /// Adds the typed package to the list in the dialog.
    AddPackage,
    /// Changes the note's saved states. The dialog stays open.
    ChangeSavedStates {
        note: DocId,
        change: SavedStatesChange,
    },
    Share {
        volume: DocId,
        hub: String,
    },
    Join {
        address: String,
        folder: String,
    },
    CloseAnyway,
    /// Stops running cells and runs, and closes.
    StopAndClose,
    /// Starts in safe mode.
    StartSafely,
    /// Opens the folder of a file in the desktop's file manager.
    ShowInFolder {
        path: PathBuf,
    },
    /// Closes the dialog without another question.
    Never,
}

impl Dialog {
    /// Draws the dialog. Returns the decision once there is one.
    pub(crate) fn show(
        &mut self,
        ctx: &egui::Context,
        colours: &'static ThemeColors,
        dark: bool,
    ) -> Option<DialogDecision> {
        let name = match self {
            Dialog::NewNote { .. } => "new note",
            Dialog::Rename { .. } => "rename",
            Dialog::RenameFolder { .. } => "rename folder",
            Dialog::QuickNote { .. } => "quick note",
            Dialog::OpenFolder(_) => "open folder",
            Dialog::OpenRepository(_) => "open repository",
            Dialog::Discard { .. } => "discard",
            Dialog::Export { .. } => "export",
            Dialog::SaveOutput { .. } => "save output",
            Dialog::Grant { .. } => "grant",
            Dialog::Kernel { .. } => "kernel",
            Dialog::PythonSetup(_) => "python setup",
            Dialog::SciencePack(_) => "science pack",
            Dialog::Interpreter(_) => "interpreter",
            Dialog::NotePackages(_) => "note packages",
            Dialog::SavedStates(_) => "saved states",
            Dialog::Share { .. } => "share",
            Dialog::Join { .. } => "join",
            Dialog::Closing { .. } => "closing",
            Dialog::ClosingWhileRunning { .. } => "closing while running",
            Dialog::SafeStart => "safe start",
            Dialog::BugReport { .. } => "bug report",
        };
        let width = self.width();
        let (decision, is_left) = show_dialog(ctx, name, width, (colours, dark), |ui| match self {
            Dialog::NewNote { volumes, chosen, name, trouble } => {
                new_note(ui, volumes, chosen, name, trouble.as_deref())
            }
            Dialog::Rename { file, path, trouble } => {
                decide(rename(ui, path, trouble.as_deref()), || renamed(*file, path))
            }
            Dialog::RenameFolder { volume, from, path, trouble } => {
                decide(rename(ui, path, trouble.as_deref()), || moved(*volume, from, path))
            }
            Dialog::QuickNote { text, trouble } => quick_note(ui, text, trouble.as_deref()),
            Dialog::OpenFolder(form) => form.show(ui),
            Dialog::OpenRepository(form) => form.show(ui),
            Dialog::Discard { files, what } => discard(ui, files, what),
            Dialog::Export { wanted, trouble } => export(ui, wanted, trouble.as_deref()),
            Dialog::SaveOutput { save, dest, trouble } => save_output(ui, save, dest, trouble.as_deref()),
            Dialog::Grant { note, wish, trouble } => grant(ui, *note, wish, trouble),
            Dialog::Kernel { name, print, place, command, doubt } => {
                kernel(ui, name, print, [place.as_str(), command, doubt])
            }
            Dialog::PythonSetup(form) => form.show(ui),
            Dialog::SciencePack(form) => form.show(ui),
            Dialog::Interpreter(form) => form.show(ui),
            Dialog::NotePackages(form) => form.show(ui),
            Dialog::SavedStates(form) => form.show(ui).map(|decided| states_decision(form.note, decided)),
            Dialog::Share { volume, name, hub, trouble } => share(ui, *volume, name, hub, trouble.as_deref()),
            Dialog::Join { address, folder, trouble } => join(ui, address, folder, trouble.as_deref()),
            Dialog::Closing { why } => closing(ui, why),
            Dialog::ClosingWhileRunning { why } => closing_while_running(ui, why),
            Dialog::SafeStart => safe_start(ui),
            Dialog::BugReport { path } => bug_report(ui, path),
        });
        if decision.is_none() && is_left && !self.is_busy() {
            return Some(DialogDecision::Never);
        }
        decision
    }

    /// Returns the dialog's width if there's room, in points.
    fn width(&self) -> f32 {
        match self {
            // These show two values side by side, or long commands.
            Dialog::SavedStates(_) | Dialog::NotePackages(_) => WIDE_DIALOG_WIDTH,
            _ => size::DIALOG_WIDTH, // tidy: open because any other dialog is as wide as all are
        }
    }

    /// Returns whether the dialog must stay open until its work is finished or stopped.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Dialog::PythonSetup(form) => form.is_busy(),
            Dialog::NotePackages(form) => form.is_busy(),
            Dialog::OpenRepository(form) => form.is_busy(),
            _ => false, // tidy: open because any other dialog can be closed at any time
        }
    }

    /// Returns the decision for Enter.
    pub(crate) fn decision_on_enter(&self) -> Option<DialogDecision> {
        match self {
            Dialog::NewNote { volumes, chosen, name, .. } => made(volumes, *chosen, name),
            Dialog::Rename { file, path, .. } => renamed(*file, path),
            Dialog::RenameFolder { volume, from, path, .. } => moved(*volume, from, path),
            Dialog::QuickNote { text, .. } => captured(text),
            Dialog::OpenFolder(_) | Dialog::OpenRepository(_) | Dialog::Interpreter(_) => {
                Some(DialogDecision::SubmitForm)
            }
            Dialog::Export { wanted, .. } => exported(wanted),
            Dialog::SaveOutput { save, dest, .. } => saved(save, &dest.path),
            Dialog::Share { volume, hub, .. } => shared(*volume, hub),
            Dialog::Join { address, folder, .. } => joined(address, folder),
            Dialog::SavedStates(form) => form.new_fork().map(|decided| states_decision(form.note, decided)),
            Dialog::NotePackages(_) => Some(DialogDecision::AddPackage),
            Dialog::Grant { .. }
            | Dialog::Kernel { .. }
            | Dialog::PythonSetup(_)
            | Dialog::SciencePack(_)
            | Dialog::Discard { .. }
            | Dialog::Closing { .. }
            | Dialog::ClosingWhileRunning { .. }
            | Dialog::SafeStart
            | Dialog::BugReport { .. } => None,
        }
    }

    /// Shows why the decision couldn't be carried out.
    pub(crate) fn show_error(&mut self, why: String) {
        match self {
            Dialog::NewNote { trouble, .. }
            | Dialog::Rename { trouble, .. }
            | Dialog::RenameFolder { trouble, .. }
            | Dialog::QuickNote { trouble, .. }
            | Dialog::Export { trouble, .. }
            | Dialog::SaveOutput { trouble, .. }
            | Dialog::Share { trouble, .. }
            | Dialog::Join { trouble, .. }
            | Dialog::Grant { trouble, .. } => *trouble = Some(why),
            Dialog::Interpreter(form) => form.show_error(why),
            Dialog::SavedStates(form) => form.trouble = Some(why),
            Dialog::OpenFolder(form) => form.show_error(why),
            Dialog::OpenRepository(form) => form.show_error(why),
            Dialog::Kernel { .. }
            | Dialog::PythonSetup(_)
            | Dialog::SciencePack(_)
            | Dialog::NotePackages(_)
            | Dialog::Discard { .. }
            | Dialog::Closing { .. }
            | Dialog::ClosingWhileRunning { .. }
            | Dialog::SafeStart
            | Dialog::BugReport { .. } => {}
        }
    }
}

/// Returns what a decision in the dialog of saved states means for the window.
fn states_decision(note: DocId, decided: SavedStatesDecision) -> DialogDecision {
    match decided {
        SavedStatesDecision::Close => DialogDecision::Never,
        SavedStatesDecision::UseScience => DialogDecision::UseScience { cell: None },
        SavedStatesDecision::Change(change) => DialogDecision::ChangeSavedStates { note, change },
    }
}

fn made(volumes: &[(DocId, String)], chosen: usize, name: &str) -> Option<DialogDecision> {
    let (volume, _) = volumes.get(chosen)?;
    (!name.trim().is_empty()).then(|| DialogDecision::NewNote { volume: *volume, path: name.trim().to_owned() })
}

fn renamed(file: DocId, path: &str) -> Option<DialogDecision> {
    (!path.trim().is_empty()).then(|| DialogDecision::Rename { file, path: path.trim().to_owned() })
}

fn moved(volume: DocId, from: &str, path: &str) -> Option<DialogDecision> {
    let (from, path) = (from.to_owned(), path.trim().to_owned());
    (!path.is_empty()).then_some(DialogDecision::RenameFolder { volume, from, path })
}

fn captured(text: &str) -> Option<DialogDecision> {
    let text = text.trim().to_owned();
    (!text.is_empty()).then_some(DialogDecision::QuickNote { text })
}

/// Returns the decision once a button was clicked: that of the primary one, or to close for the other one.
fn decide(is_primary: Option<bool>, primary: impl FnOnce() -> Option<DialogDecision>) -> Option<DialogDecision> {
    if is_primary? { primary() } else { Some(DialogDecision::Never) }
}

fn quick_note(ui: &mut Ui, text: &mut String, trouble: Option<&str>) -> Option<DialogDecision> {
    head(ui, "Quick note");
    words(ui, "Added at the end of today's note. Start with [ ] for a task.");
    ui.add_space(space::M);
    field(ui, text, "Text of the item", "Call Ada");
    show_trouble(ui, trouble);
    decide(buttons(ui, "Add", "Cancel"), || captured(text))
}

/// Draws the rename dialog. Returns whether to rename, once the user decides.
fn rename(ui: &mut Ui, path: &mut String, trouble: Option<&str>) -> Option<bool> {
    head(ui, "Rename or move");
    words(ui, "Links to it are updated. Use / to put it into a folder.");
    ui.add_space(space::M);
    field(ui, path, "New path", "Name, or Folder/Name");
    show_trouble(ui, trouble);
    buttons(ui, "Rename", "Cancel")
}

fn new_note(
    ui: &mut Ui,
    volumes: &[(DocId, String)],
    chosen: &mut usize,
    name: &mut String,
    trouble: Option<&str>,
) -> Option<DialogDecision> {
    head(ui, "New note");
    field(ui, name, "Name of the note", "Name, or Folder/Name");
    if volumes.len() > 1 {
        ui.add_space(space::S);
        ui.horizontal_wrapped(|ui| {
            words(ui, "Volume");
            for (place, (_, volume)) in volumes.iter().enumerate() {
                if chip_button(ui, volume, &format!("In {volume}"), *chosen == place, &theme::small()) {
                    *chosen = place;
                }
            }
        });
    }
    show_trouble(ui, trouble);
    decide(buttons(ui, "Create note", "Cancel"), || made(volumes, *chosen, name))
}

fn discard(ui: &mut Ui, files: &[DocId], what: &str) -> Option<DialogDecision> {
    head(ui, &format!("Delete {what} permanently?"));
    words(ui, "Text, history and outputs are deleted, too. You can't undo this.");
    show_trouble(ui, None);
    decide(buttons(ui, "Delete permanently", "Cancel"), || Some(DialogDecision::Discard { files: files.to_vec() }))
}

/// Shows everything that the kernel would start, and asks for approval.
fn kernel(ui: &mut Ui, name: &str, print: &str, [place, command, doubt]: [&str; 3]) -> Option<DialogDecision> {
    head(ui, &format!("Run the kernel {name}?"));
    words(ui, &format!("It runs this note's cells with all your rights. {doubt}."));
    egui::ScrollArea::vertical().max_height(size::DIALOG_WIDTH / 2.0).show(ui, |ui| {
        exact_words(ui, &format!("File: {place}"));
        exact_words(ui, &format!("Command: {command}"));
    });
    show_trouble(ui, None);
    decide(buttons(ui, "Allow", "Cancel"), || {
        Some(DialogDecision::AllowKernel { name: name.to_owned(), print: print.to_owned() })
    })
}

fn exported(wanted: &ExportForm) -> Option<DialogDecision> {
    let dest = wanted.dest.path.trim().trim_matches(['"', '\'']).to_owned();
    let (what, _) = wanted.choices.get(wanted.chosen)?;
    (!dest.is_empty()).then(|| DialogDecision::Export {
        kind: wanted.kind,
        what: what.clone(),
        paper: wanted.paper,
        dest,
    })
}

fn export(ui: &mut Ui, wanted: &mut ExportForm, trouble: Option<&str>) -> Option<DialogDecision> {
    head(ui, wanted.title());
    if wanted.choices.len() > 1 {
        let mut chosen = None;
        ui.horizontal_wrapped(|ui| {
            for (place, (what, name)) in wanted.choices.iter().enumerate() {
                let kind = match what {
                    ExportScope::Note(_) => "Note",
                    ExportScope::Folder(_, below) if below.is_empty() => "All of",
                    ExportScope::Folder(..) => "Folder",
                };
                let text = format!("{kind} {name}");
                if chip_button(ui, &text, &text, wanted.chosen == place, &theme::small()) {
                    chosen = Some(place);
                }
            }
        });
        if let Some(chosen) = chosen {
            wanted.choose_note(chosen);
        }
        ui.add_space(space::S);
    }
    words(ui, wanted.summary());
    if wanted.kind == ExportCommand::Pdf {
        ui.add_space(space::S);
        ui.horizontal_wrapped(|ui| {
            words(ui, "Paper");
            for (paper, name) in [(PaperSize::A4, "A4"), (PaperSize::Letter, "Letter")] {
                if chip_button(ui, name, name, wanted.paper == paper, &theme::small()) {
                    wanted.paper = paper;
                }
            }
        });
    }
    ui.add_space(space::M);
    let is_chosen = wanted.dest.show(ui, "New file or folder", "/home/me/Documents/Name");
    show_trouble(ui, trouble);
    match buttons(ui, "Export", "Cancel") {
        _ if is_chosen => exported(wanted),
        Some(true) => exported(wanted),
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

fn saved(save: &OutputFile, dest: &str) -> Option<DialogDecision> {
    let dest = dest.trim().trim_matches(['"', '\'']).to_owned();
    (!dest.is_empty()).then(|| DialogDecision::SaveOutput { save: save.clone(), dest })
}

fn save_output(
    ui: &mut Ui,
    save: &OutputFile,
    dest: &mut FilePathField,
    trouble: Option<&str>,
) -> Option<DialogDecision> {
    head(ui, "Save output as…");
    let is_chosen = dest.show(ui, "New file", &format!("/home/me/Documents/Name.{}", save.ending));
    show_trouble(ui, trouble);
    match buttons(ui, "Save", "Cancel") {
        _ if is_chosen => saved(save, &dest.path),
        Some(true) => saved(save, &dest.path),
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

fn grant(
    ui: &mut Ui,
    note: DocId,
    wish: &mut KernelPermissionsForm,
    trouble: &mut Option<String>,
) -> Option<DialogDecision> {
    head(ui, "Cell permissions");
    words(
        ui,
        "Cells can always use the note’s folder. Grants apply on this device until you revoke them. Changing them \
         restarts the kernel.",
    );
    ui.add_space(space::M);
    lines(ui, &mut wish.read, "Folders to read", "a path in each line");
    ui.add_space(space::M);
    lines(ui, &mut wish.write, "Folders to read and write", "a path in each line");
    ui.add_space(space::M);
    check_box(ui, &mut wish.network, "The network");
    show_trouble(ui, trouble.as_deref());
    match buttons(ui, "Grant", "Cancel") {
        Some(true) => match wish.grant() {
            Ok(grant) => Some(DialogDecision::Grant { note, grant }),
            Err(why) => {
                *trouble = Some(why.to_string());
                None
            }
        },
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

fn shared(volume: DocId, hub: &str) -> Option<DialogDecision> {
    let hub = hub.trim().to_owned();
    (!hub.is_empty()).then_some(DialogDecision::Share { volume, hub })
}

fn share(ui: &mut Ui, volume: DocId, name: &str, hub: &mut String, trouble: Option<&str>) -> Option<DialogDecision> {
    head(ui, &format!("Share “{name}”"));
    words(
        ui,
        "A hub passes notes on to your other devices; `tracebook hub` runs one. Anyone who has the volume’s address \
         and can reach the hub can read and change it.",
    );
    ui.add_space(space::M);
    field(ui, hub, "Address of the hub", "wss://hub.example:7600");
    show_trouble(ui, trouble);
    decide(buttons(ui, "Share", "Cancel"), || shared(volume, hub))
}

fn joined(address: &str, folder: &str) -> Option<DialogDecision> {
    let (address, folder) = (address.trim().to_owned(), folder.trim().trim_matches(['"', '\'']).to_owned());
    (!address.is_empty() && !folder.is_empty()).then_some(DialogDecision::Join { address, folder })
}

fn join(ui: &mut Ui, address: &mut String, folder: &mut String, trouble: Option<&str>) -> Option<DialogDecision> {
    head(ui, "Join shared volume");
    words(ui, "On the other device, choose Sync and “Copy the address”. Its notes become files in the folder.");
    ui.add_space(space::M);
    field(ui, address, "Address of the volume", "wss://hub.example:7600#automerge:…");
    ui.add_space(space::S);
    further(ui, folder, "dialog folder", "Folder for it", "An empty or new folder: ~/notes");
    show_trouble(ui, trouble);
    decide(buttons(ui, "Join", "Cancel"), || joined(address, folder))
}

/// Draws a multi-line text field below its name.
fn lines(ui: &mut Ui, text: &mut String, name: &str, hint: &str) {
    let colours = ThemeColors::of(ui);
    let style = theme::body();
    words(ui, name);
    let field = egui::TextEdit::multiline(text)
        .id(Id::unique(name))
        .font(style.font.clone())
        .hint_text(egui::RichText::new(hint).font(style.font).color(colours.muted))
        .margin(egui::Margin::symmetric(12, 8))
        .desired_rows(2)
        .desired_width(f32::INFINITY);
    ui.add(field).accessible_name(format!("{name}, {hint}"));
}

fn closing(ui: &mut Ui, why: &str) -> Option<DialogDecision> {
    head(ui, "Not everything is saved");
    words(ui, why);
    show_trouble(ui, None);
    buttons(ui, "Keep open", "Close anyway")
        .map(|is_first| if is_first { DialogDecision::Never } else { DialogDecision::CloseAnyway })
}

fn closing_while_running(ui: &mut Ui, why: &str) -> Option<DialogDecision> {
    head(ui, "Stop and close?");
    words(ui, why);
    show_trouble(ui, None);
    buttons(ui, "Keep open", "Stop and close")
        .map(|is_first| if is_first { DialogDecision::Never } else { DialogDecision::StopAndClose })
}

fn safe_start(ui: &mut Ui) -> Option<DialogDecision> {
    head(ui, "Tracebook crashed right after its last start");
    words(ui, "Safe mode opens no tabs and starts no cells, runs or schedules. Your notes can be read and edited.");
    show_trouble(ui, None);
    decide(buttons(ui, "Start in safe mode", "Start normally"), || Some(DialogDecision::StartSafely))
}

fn bug_report(ui: &mut Ui, path: &std::path::Path) -> Option<DialogDecision> {
    head(ui, "Bug report");
    exact_words(ui, &format!("The report is in {}.", path.display()));
    words(ui, "It holds no note, prompt or key. Look through it, then attach it to your report.");
    show_trouble(ui, None);
    decide(buttons(ui, "Show in folder", "Close"), || Some(DialogDecision::ShowInFolder { path: path.to_owned() }))
}
