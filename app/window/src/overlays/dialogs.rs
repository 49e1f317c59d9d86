//! Dialogs: a new note, a folder to open, what to do when the disk refuses at the end. Each says what
//! was decided; none does it.

use crate::overlays::export_form::ExportForm;
use crate::overlays::kernel_forks_form::KernelForksForm;
use crate::overlays::kernel_permissions_form::KernelPermissionsForm;
use crate::overlays::note_packages_form::NotePackagesForm;
use crate::overlays::open_folder_form::OpenFolderForm;
use crate::overlays::python_setup_form::PythonSetupForm;
use crate::overlays::science_pack_form::SciencePackForm;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Id, Modal, Ui, vec2};
use engine::KernelStateMove;
use export::ExportScope;
use notebook::actions::ExportCommand;
use notebook::outputs::OutputFile;
use std::path::PathBuf;
use store::{BlockId, DocId};
use text::untrusted_text;
use typeset::pdf::PaperSize;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{floating_frame, set_accessible_name, text_button};

/// Width of a dialog with values side by side, in points.
const WIDE_DIALOG_WIDTH: f32 = 720.0;

pub(crate) enum Dialog {
    /// The name of a new note: the volumes to choose from, and which.
    NewNote { volumes: Vec<(DocId, String)>, chosen: usize, name: String, trouble: Option<String> },
    /// The new path of a file.
    Rename { file: DocId, path: String, trouble: Option<String> },
    /// The new path of a folder of a volume.
    RenameFolder { volume: DocId, from: String, path: String, trouble: Option<String> },
    /// The folder that becomes a volume.
    OpenFolder(Box<OpenFolderForm>),
    /// Files of the trash are deleted for good: which, and what they are called.
    Discard { files: Vec<DocId>, what: String },
    /// Where notes are exported to.
    Export { wanted: ExportForm, trouble: Option<String> },
    /// Where what a cell printed is saved.
    SaveOutput { save: OutputFile, dest: String, trouble: Option<String> },
    /// What the cells of a note may reach.
    Grant { note: DocId, wish: KernelPermissionsForm, trouble: Option<String> },
    /// A kernel that others can change is allowed to run a note's cells: its name, its print, and what it would start.
    Kernel { name: String, print: String, place: String, command: String, doubt: String },
    /// A full Python is set up for a note.
    PythonSetup(Box<PythonSetupForm>),
    /// The science pack is installed, used or removed.
    SciencePack(Box<SciencePackForm>),
    /// The packages of a note's cells.
    NotePackages(Box<NotePackagesForm>),
    /// The lines of a note's saved variables.
    KernelForks(Box<KernelForksForm>),
    /// Share a volume over a hub: volume and name.
    Share { volume: DocId, name: String, hub: String, trouble: Option<String> },
    /// The address of a volume that another device shares, and the folder for it.
    Join { address: String, folder: String, trouble: Option<String> },
    /// It cannot be saved: close anyway?
    Closing { why: String },
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
    /// A folder that is there.
    OpenFolder {
        folder: PathBuf,
    },
    /// The typed path is looked at, and opened if it's a folder.
    CheckFolder,
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
    AllowKernel {
        name: String,
        print: String,
    },
    /// Use a kernel that is there; it may have to be allowed first.
    ChooseKernel {
        name: String,
    },
    /// The science pack runs the open note from now on, and this cell at once.
    UseScience {
        cell: Option<BlockId>,
    },
    RunCell {
        note: DocId,
        cell: BlockId,
    },
    /// Run it in a new kernel.
    RerunCell {
        note: DocId,
        cell: BlockId,
    },
    /// The typed package is listed, in the dialog.
    AddPackage,
    /// The note's kernel goes to another saved state or fork; the dialog stays.
    MoveKernelState {
        note: DocId,
        to: KernelStateMove,
    },
    /// The note's variables are saved again; the dialog stays.
    SaveVariables {
        note: DocId,
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
    /// The dialog is closed without asking again.
    Never,
}

impl Dialog {
    /// Draws it; gives a decision once there is one.
    pub(crate) fn show(
        &mut self,
        ctx: &egui::Context,
        colours: &'static ThemeColors,
        dark: bool,
    ) -> Option<DialogDecision> {
        let screen = ctx.content_rect();
        let width = self.width().min(screen.width() - 2.0 * space::L);
        let id = Id::unique(match self {
            Dialog::NewNote { .. } => "new note",
            Dialog::Rename { .. } => "rename",
            Dialog::RenameFolder { .. } => "rename folder",
            Dialog::OpenFolder(_) => "open folder",
            Dialog::Discard { .. } => "discard",
            Dialog::Export { .. } => "export",
            Dialog::SaveOutput { .. } => "save output",
            Dialog::Grant { .. } => "grant",
            Dialog::Kernel { .. } => "kernel",
            Dialog::PythonSetup(_) => "python setup",
            Dialog::SciencePack(_) => "science pack",
            Dialog::NotePackages(_) => "note packages",
            Dialog::KernelForks(_) => "kernel forks",
            Dialog::Share { .. } => "share",
            Dialog::Join { .. } => "join",
            Dialog::Closing { .. } => "closing",
        });
        let area = Modal::default_area(id).anchor(Align2::CENTER_TOP, vec2(0.0, (screen.height() / 5.0).round()));
        let mut decision = None;
        let response = Modal::new(id)
            .area(area)
            .backdrop_color(egui::Color32::from_black_alpha(if dark { 90 } else { 30 }))
            .frame(floating_frame(colours, dark).inner_margin(egui::Margin::same(24)))
            .show(ctx, |ui| {
                ui.set_width(width - 2.0 * space::XL);
                decision = match self {
                    Dialog::NewNote { volumes, chosen, name, trouble } => {
                        new_note(ui, volumes, chosen, name, trouble.as_deref())
                    }
                    Dialog::Rename { file, path, trouble } => {
                        let decided = rename(ui, path, trouble.as_deref());
                        decided.and_then(|is| if is { renamed(*file, path) } else { Some(DialogDecision::Never) })
                    }
                    Dialog::RenameFolder { volume, from, path, trouble } => {
                        let decided = rename(ui, path, trouble.as_deref());
                        decided.and_then(|is| if is { moved(*volume, from, path) } else { Some(DialogDecision::Never) })
                    }
                    Dialog::OpenFolder(form) => form.show(ui),
                    Dialog::Discard { files, what } => discard(ui, files, what),
                    Dialog::Export { wanted, trouble } => export(ui, wanted, trouble.as_deref()),
                    Dialog::SaveOutput { save, dest, trouble } => save_output(ui, save, dest, trouble.as_deref()),
                    Dialog::Grant { note, wish, trouble } => grant(ui, *note, wish, trouble),
                    Dialog::Kernel { name, print, place, command, doubt } => {
                        kernel(ui, name, print, [place.as_str(), command, doubt])
                    }
                    Dialog::PythonSetup(form) => form.show(ui),
                    Dialog::SciencePack(form) => form.show(ui),
                    Dialog::NotePackages(form) => form.show(ui),
                    Dialog::KernelForks(form) => form.show(ui),
                    Dialog::Share { volume, name, hub, trouble } => share(ui, *volume, name, hub, trouble.as_deref()),
                    Dialog::Join { address, folder, trouble } => join(ui, address, folder, trouble.as_deref()),
                    Dialog::Closing { why } => closing(ui, why),
                };
            });
        if decision.is_none() && response.backdrop_response.clicked() && !self.is_busy() {
            return Some(DialogDecision::Never);
        }
        decision
    }

    /// How wide it is where there's room, in points.
    fn width(&self) -> f32 {
        match self {
            // Two values stand side by side; commands are long.
            Dialog::KernelForks(_) | Dialog::NotePackages(_) => WIDE_DIALOG_WIDTH,
            _ => size::DIALOG_WIDTH, // tidy: open because any other dialog is as wide as all are
        }
    }

    /// Whether it has to stay until its work is done or stopped.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Dialog::PythonSetup(form) => form.is_busy(),
            Dialog::NotePackages(form) => form.is_busy(),
            _ => false, // tidy: open because any other dialog can be closed at any time
        }
    }

    /// Returns the decision that Enter stands for.
    pub(crate) fn decision_on_enter(&self) -> Option<DialogDecision> {
        match self {
            Dialog::NewNote { volumes, chosen, name, .. } => made(volumes, *chosen, name),
            Dialog::Rename { file, path, .. } => renamed(*file, path),
            Dialog::RenameFolder { volume, from, path, .. } => moved(*volume, from, path),
            Dialog::OpenFolder(_) => Some(DialogDecision::CheckFolder),
            Dialog::Export { wanted, .. } => exported(wanted),
            Dialog::SaveOutput { save, dest, .. } => saved(save, dest),
            Dialog::Share { volume, hub, .. } => shared(*volume, hub),
            Dialog::Join { address, folder, .. } => joined(address, folder),
            Dialog::KernelForks(form) => form.new_fork(),
            Dialog::NotePackages(_) => Some(DialogDecision::AddPackage),
            Dialog::Grant { .. }
            | Dialog::Kernel { .. }
            | Dialog::PythonSetup(_)
            | Dialog::SciencePack(_)
            | Dialog::Discard { .. }
            | Dialog::Closing { .. } => None,
        }
    }

    /// Says why it could not be done.
    pub(crate) fn show_error(&mut self, why: String) {
        match self {
            Dialog::NewNote { trouble, .. }
            | Dialog::Rename { trouble, .. }
            | Dialog::RenameFolder { trouble, .. }
            | Dialog::Export { trouble, .. }
            | Dialog::SaveOutput { trouble, .. }
            | Dialog::Share { trouble, .. }
            | Dialog::Join { trouble, .. }
            | Dialog::Grant { trouble, .. } => *trouble = Some(why),
            Dialog::KernelForks(form) => form.trouble = Some(why),
            Dialog::OpenFolder(form) => form.show_error(why),
            Dialog::Kernel { .. }
            | Dialog::PythonSetup(_)
            | Dialog::SciencePack(_)
            | Dialog::NotePackages(_)
            | Dialog::Discard { .. }
            | Dialog::Closing { .. } => {}
        }
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

/// Whether the path shall be taken, once that is decided.
fn rename(ui: &mut Ui, path: &mut String, trouble: Option<&str>) -> Option<bool> {
    head(ui, "Rename or move");
    words(ui, "Links to it follow. A / in the path puts it into a folder.");
    ui.add_space(space::M);
    field(ui, path, "New path", "Name, or Folder/Name");
    show_trouble(ui, trouble);
    buttons(ui, "Rename", "Cancel")
}

pub(super) fn head(ui: &mut Ui, text: &str) {
    let style = theme::heading(3);
    let response = ui.label(egui::RichText::new(untrusted_text::escape_block(text)).font(style.font));
    set_accessible_name(&response, Role::Heading, text);
    ui.add_space(space::M);
}

pub(super) fn words(ui: &mut Ui, text: &str) {
    let colours = ThemeColors::of(ui);
    let small = theme::small();
    let text = untrusted_text::escape_block(text);
    ui.label(egui::RichText::new(text).font(small.font).line_height(Some(small.line)).color(colours.muted));
}

pub(super) fn field(ui: &mut Ui, text: &mut String, name: &str, hint: &str) {
    let response = further(ui, text, "dialog field", name, hint);
    if !response.has_focus() && ui.memory(|memory| memory.focused().is_none()) {
        response.request_focus();
    }
}

/// A field that is not the first.
pub(super) fn further(ui: &mut Ui, text: &mut String, id: &str, name: &str, hint: &str) -> egui::Response {
    let colours = ThemeColors::of(ui);
    let style = theme::body();
    let field = egui::TextEdit::singleline(text)
        .id(Id::unique(id))
        .font(style.font.clone())
        .hint_text(egui::RichText::new(hint).font(style.font).color(colours.muted))
        .margin(egui::Margin::symmetric(12, 8))
        .desired_width(f32::INFINITY);
    ui.visuals_mut().selection.stroke.color = colours.accent;
    ui.add(field).accessible_name(name)
}

/// What went wrong, if something did, and the room before the buttons.
pub(super) fn show_trouble(ui: &mut Ui, trouble: Option<&str>) {
    let colours = ThemeColors::of(ui);
    if let Some(trouble) = trouble {
        ui.add_space(space::S);
        ui.label(
            egui::RichText::new(untrusted_text::escape_block(trouble)).font(theme::small().font).color(colours.bad),
        );
    }
    ui.add_space(space::L);
}

/// Two buttons at the right; `Some(true)` is the first, the lead.
fn buttons(ui: &mut Ui, lead: &str, other: &str) -> Option<bool> {
    let mut chosen = None;
    at_right(ui, |ui| {
        if text_button(ui, lead, true).clicked() {
            chosen = Some(true);
        }
        if text_button(ui, other, false).clicked() {
            chosen = Some(false);
        }
    });
    chosen
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
            words(ui, "in");
            for (place, (_, volume)) in volumes.iter().enumerate() {
                if ui.selectable_label(*chosen == place, untrusted_text::escape_line(volume)).clicked() {
                    *chosen = place;
                }
            }
        });
    }
    show_trouble(ui, trouble);
    match buttons(ui, "Create note", "Cancel") {
        Some(true) => made(volumes, *chosen, name),
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

fn discard(ui: &mut Ui, files: &[DocId], what: &str) -> Option<DialogDecision> {
    head(ui, &format!("Delete {what} for good?"));
    words(ui, "Text, history and outputs go with it. This cannot be undone.");
    show_trouble(ui, None);
    match buttons(ui, "Delete for good", "Cancel") {
        Some(true) => Some(DialogDecision::Discard { files: files.to_vec() }),
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

/// Shows all that would be started, and asks.
fn kernel(ui: &mut Ui, name: &str, print: &str, [place, command, doubt]: [&str; 3]) -> Option<DialogDecision> {
    head(ui, &format!("Run the kernel {name}?"));
    words(ui, &format!("It runs this note's cells with all your rights. {doubt}."));
    egui::ScrollArea::vertical().max_height(size::DIALOG_WIDTH / 2.0).show(ui, |ui| {
        words(ui, &format!("File: {place}"));
        words(ui, &format!("Command: {command}"));
    });
    show_trouble(ui, None);
    match buttons(ui, "Allow", "Cancel") {
        Some(true) => Some(DialogDecision::AllowKernel { name: name.to_owned(), print: print.to_owned() }),
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

fn exported(wanted: &ExportForm) -> Option<DialogDecision> {
    let dest = wanted.dest.trim().trim_matches(['"', '\'']).to_owned();
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
                if ui
                    .selectable_label(wanted.chosen == place, untrusted_text::escape_line(&format!("{kind} {name}")))
                    .clicked()
                {
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
                if ui.selectable_label(wanted.paper == paper, name).clicked() {
                    wanted.paper = paper;
                }
            }
        });
    }
    ui.add_space(space::M);
    field(ui, &mut wanted.dest, "New file or folder", "/home/me/Documents/Name");
    show_trouble(ui, trouble);
    match buttons(ui, "Export", "Cancel") {
        Some(true) => exported(wanted),
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

fn saved(save: &OutputFile, dest: &str) -> Option<DialogDecision> {
    let dest = dest.trim().trim_matches(['"', '\'']).to_owned();
    (!dest.is_empty()).then(|| DialogDecision::SaveOutput { save: save.clone(), dest })
}

fn save_output(ui: &mut Ui, save: &OutputFile, dest: &mut String, trouble: Option<&str>) -> Option<DialogDecision> {
    head(ui, "Save output as…");
    field(ui, dest, "New file", &format!("/home/me/Documents/Name.{}", save.ending));
    show_trouble(ui, trouble);
    match buttons(ui, "Save", "Cancel") {
        Some(true) => saved(save, dest),
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
    head(ui, "What this note’s cells may reach");
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
    ui.checkbox(&mut wish.network, "The network");
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
        "A hub hands its notes on to your other devices; `tracebook hub` runs one. Who has the volume’s address and \
         may speak to the hub can read and write it.",
    );
    ui.add_space(space::M);
    field(ui, hub, "Address of the hub", "wss://hub.example:7600");
    show_trouble(ui, trouble);
    match buttons(ui, "Share", "Cancel") {
        Some(true) => shared(volume, hub),
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

fn joined(address: &str, folder: &str) -> Option<DialogDecision> {
    let (address, folder) = (address.trim().to_owned(), folder.trim().trim_matches(['"', '\'']).to_owned());
    (!address.is_empty() && !folder.is_empty()).then_some(DialogDecision::Join { address, folder })
}

fn join(ui: &mut Ui, address: &mut String, folder: &mut String, trouble: Option<&str>) -> Option<DialogDecision> {
    head(ui, "Get a shared volume");
    words(ui, "The other device gives its address: Sync, then “Copy the address”. Its notes become files here.");
    ui.add_space(space::M);
    field(ui, address, "Address of the volume", "wss://hub.example:7600#automerge:…");
    ui.add_space(space::S);
    further(ui, folder, "dialog folder", "Folder for it", "An empty or new folder: ~/notes");
    show_trouble(ui, trouble);
    match buttons(ui, "Get it", "Cancel") {
        Some(true) => joined(address, folder),
        Some(false) => Some(DialogDecision::Never),
        None => None,
    }
}

/// Some lines of text below their name.
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
    ui.visuals_mut().selection.stroke.color = colours.accent;
    ui.add(field).accessible_name(format!("{name}, {hint}"));
}

fn closing(ui: &mut Ui, why: &str) -> Option<DialogDecision> {
    head(ui, "Not everything is saved");
    words(ui, why);
    show_trouble(ui, None);
    match buttons(ui, "Keep open", "Close anyway") {
        Some(true) => Some(DialogDecision::Never),
        Some(false) => Some(DialogDecision::CloseAnyway),
        None => None,
    }
}

/// A row that begins at the right.
pub(super) fn at_right<R>(ui: &mut Ui, buttons: impl FnOnce(&mut Ui) -> R) -> R {
    let wanted = vec2(ui.available_width(), size::MIN_CLICK_HEIGHT);
    ui.allocate_ui_with_layout(wanted, egui::Layout::right_to_left(egui::Align::Center), buttons).inner
}
