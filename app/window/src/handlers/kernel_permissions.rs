//! Kernel choice for a note: finds kernels, offers them, and asks for permissions.

use crate::overlays::command_palette::CommandPalette;
use crate::overlays::dialogs::Dialog;
use crate::overlays::interpreter_form::InterpreterForm;
use crate::overlays::kernel_permissions_form::KernelPermissionsForm;
use crate::overlays::science_pack_form::SciencePackForm;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use engine::{Command, ENVIRONMENT_KERNEL, KernelGrant, SCIENCE_KERNEL};
use host::note_packages::NotePlace;
use std::path::PathBuf;
use store::{BlockId, DocId};

impl PaneState {
    /// Starts a search for kernels, to offer them for the open note.
    pub(crate) fn find_kernels(&mut self, host: &mut HostLink, notices: &mut NoticeState, jobs: &mut BackgroundJobs) {
        let Some(note) = self.active.note else {
            notices.toasts.show_message("No note is open.");
            return;
        };
        let before = host.session().kernel_searches();
        if host.send(Command::FindKernels { note }, notices) {
            jobs.kernels_asked = Some(before);
        }
    }

    /// Makes the science pack the kernel of the open note, and runs a cell if one is given.
    pub(crate) fn use_science(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        cell: Option<BlockId>,
    ) {
        let Some(note) = self.active.note else { return };
        self.use_kernel(host, overlay, notices, Some(SCIENCE_KERNEL.to_owned()), None);
        let is_chosen = host.note(Some(note)).is_some_and(|note| note.kernel_name() == Some(SCIENCE_KERNEL));
        if let Some(cell) = cell.filter(|_| is_chosen) {
            host.send(Command::Run { note, cell }, notices);
        }
    }

    /// Makes a kernel the open note's kernel, and shows once what it may do. `seen`: the fingerprint of a kernel that
    /// others can change, if the user has allowed it.
    pub(crate) fn use_kernel(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        kernel: Option<String>,
        seen: Option<String>,
    ) {
        let Some(note) = self.active.note else { return };
        let spec = host.session().kernels().iter().find(|spec| Some(&spec.name) == kernel.as_ref()).cloned();
        if let Some((spec, doubt)) = spec.as_ref().and_then(|spec| Some((spec, spec.doubt.as_ref()?)))
            && seen.as_ref() != Some(&spec.print)
        {
            let mut doubt = doubt.escape_debug().to_string();
            doubt.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
            *overlay = WindowOverlay::Dialog(Dialog::Kernel {
                name: spec.name.clone(),
                print: spec.print.clone(),
                place: spec.path.to_string_lossy().escape_debug().to_string(),
                command: spec.command_line(),
                doubt,
            });
            return;
        }
        if host.send(Command::UseKernel { note, kernel, keep: true, seen }, notices)
            && let Some(spec) = spec
        {
            notices.toasts.show_message(format!(
                "{} now runs this note's cells with all your rights: it can read and change all your files, and use \
                 the network.",
                spec.title
            ));
        }
    }
}

impl WindowOverlay {
    /// Opens the science pack dialog, to install, use or remove it. `cell`: the cell that misses `module`.
    pub(crate) fn show_science_pack(&mut self, host: &HostLink, cell: Option<BlockId>, module: Option<String>) {
        let form = SciencePackForm::new(host.science.clone(), cell, module);
        *self = WindowOverlay::Dialog(Dialog::SciencePack(Box::new(form)));
    }

    /// Opens the palette with the kernels, once the search is done.
    pub(crate) fn show_kernels(
        &mut self,
        host: &HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        jobs: &mut BackgroundJobs,
    ) {
        let Some(before) = jobs.kernels_asked else { return };
        let session = host.session();
        if session.kernel_searches() == before {
            return;
        }
        jobs.kernels_asked = None;
        let note = panes.active.note.and_then(|note| session.note(note));
        if let (Some(note), WindowOverlay::None) = (note, &*self) {
            *self = WindowOverlay::Palette(CommandPalette::kernels(
                session.kernels(),
                note.kernel_name(),
                session.kernel_grant(note.id).interpreter.as_deref(),
                &host.science.status(),
            ));
            if session.kernels().is_empty() {
                notices.toasts.show_message(
                    "No Jupyter kernel found. Run `pip install ipykernel` in a Python environment, for example in \
                     .venv next to the note.",
                );
            }
        }
    }

    /// Opens the dialog that chooses the Python of the open note's environment kernel.
    pub(crate) fn ask_interpreter(&mut self, host: &HostLink, panes: &PaneState, notices: &mut NoticeState) {
        let Some(note) = panes.active.note else {
            notices.toasts.show_message("No note is open.");
            return;
        };
        let session = host.session();
        let Some(place) = NotePlace::of(session, note, host.driver.folder()) else {
            notices.toasts.show_message("The note's volume has no folder on this device.");
            return;
        };
        let chosen = session.kernel_grant(note).interpreter;
        let form = InterpreterForm::new(note, chosen, place.shared, host.file_chooser.clone());
        *self = WindowOverlay::Dialog(Dialog::Interpreter(Box::new(form)));
    }

    /// Opens the dialog for what the open note's cells may access.
    pub(crate) fn ask_for_grant(&mut self, host: &HostLink, panes: &mut PaneState, notices: &mut NoticeState) {
        let Some(note) = panes.active.note else {
            notices.toasts.show_message("No note is open.");
            return;
        };
        let wish = KernelPermissionsForm::of(&host.session().kernel_grant(note));
        *self = WindowOverlay::Dialog(Dialog::Grant { note, wish, trouble: None });
    }
}

impl HostLink {
    pub(crate) fn grant(&mut self, notices: &mut NoticeState, note: DocId, grant: KernelGrant) -> anyhow::Result<()> {
        let says = format!("This note's cells can now reach {}.", grant.describe());
        let says = if grant.is_none() { says } else { says.replacen(" reach ", " also reach ", 1) };
        self.command(Command::Grant { note, grant })?;
        notices.toasts.show_message(says);
        Ok(())
    }

    /// Runs a note's cells in this Python, or in the one of its own environment, from now on.
    pub(crate) fn use_interpreter(
        &mut self,
        notices: &mut NoticeState,
        note: DocId,
        interpreter: Option<PathBuf>,
    ) -> anyhow::Result<()> {
        let says = match &interpreter {
            Some(python) => format!("{} now runs this note's cells.", python.display()),
            None => "The note's environment now runs its cells.".to_owned(),
        };
        let granted = self.session().kernel_grant(note);
        if granted.interpreter != interpreter {
            self.command(Command::Grant { note, grant: KernelGrant { interpreter, ..granted } })?;
        }
        let kernel = Some(ENVIRONMENT_KERNEL.to_owned());
        self.command(Command::UseKernel { note, kernel, keep: true, seen: None })?;
        notices.toasts.show_message(says);
        Ok(())
    }
}
