//! The kernel of a note: which there are, and which one the user chooses.

use crate::app_window::AppWindow;
use crate::overlays::command_palette::CommandPalette;
use crate::overlays::dialogs::Dialog;
use crate::overlays::kernel_permissions_form::KernelPermissionsForm;
use crate::overlays::window_overlay::WindowOverlay;
use engine::{Command, KernelGrant};
use store::DocId;

impl AppWindow {
    /// Looks which kernels there are, to offer them.
    pub(crate) fn find_kernels(&mut self) {
        let Some(note) = self.panes.active.note else {
            self.notices.toasts.show_message("No note is open.");
            return;
        };
        let before = self.host.session().kernel_searches();
        if self.send(Command::FindKernels { note }) {
            self.jobs.kernels_asked = Some(before);
        }
    }

    /// Offers the kernels once they are known.
    pub(crate) fn show_kernels(&mut self) {
        let Some(before) = self.jobs.kernels_asked else { return };
        let session = self.host.session();
        if session.kernel_searches() == before {
            return;
        }
        self.jobs.kernels_asked = None;
        let note = self.panes.active.note.and_then(|note| session.note(note));
        if let (Some(note), WindowOverlay::None) = (note, &self.overlay) {
            self.overlay = WindowOverlay::Palette(CommandPalette::kernels(session.kernels(), note.kernel_name()));
            if session.kernels().is_empty() {
                self.notices.toasts.show_message(
                    "No Jupyter kernel found. Run `pip install ipykernel` in a Python environment, for example in \
                     .venv next to the note.",
                );
            }
        }
    }

    /// Asks what the cells of the open note may reach.
    pub(crate) fn ask_for_grant(&mut self) {
        let Some(note) = self.panes.active.note else {
            self.notices.toasts.show_message("No note is open.");
            return;
        };
        let wish = KernelPermissionsForm::of(&self.host.session().kernel_grant(note));
        self.overlay = WindowOverlay::Dialog(Dialog::Grant { note, wish, trouble: None });
    }

    pub(crate) fn grant(&mut self, note: DocId, grant: KernelGrant) -> Result<(), String> {
        let says = format!("The cells of this note reach {} from now on.", grant.describe());
        let says = if grant.is_none() { says } else { says.replacen(" reach ", " also reach ", 1) };
        self.host.command(Command::Grant { note, grant })?;
        self.notices.toasts.show_message(says);
        Ok(())
    }

    /// Takes the kernel that was chosen; says once what it may do. `seen`: the print of one that others can change, and
    /// that the user has allowed.
    pub(crate) fn use_kernel(&mut self, kernel: Option<String>, seen: Option<String>) {
        let Some(note) = self.panes.active.note else { return };
        let spec = self.host.session().kernels().iter().find(|spec| Some(&spec.name) == kernel.as_ref()).cloned();
        if let Some((spec, doubt)) = spec.as_ref().and_then(|spec| Some((spec, spec.doubt.as_ref()?)))
            && seen.as_ref() != Some(&spec.print)
        {
            let mut doubt = doubt.escape_debug().to_string();
            doubt.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
            self.overlay = WindowOverlay::Dialog(Dialog::Kernel {
                name: spec.name.clone(),
                print: spec.print.clone(),
                place: spec.path.to_string_lossy().escape_debug().to_string(),
                command: spec.command_line(),
                doubt,
            });
            return;
        }
        if self.send(Command::UseKernel { note, kernel, keep: true, seen })
            && let Some(spec) = spec
        {
            self.notices.toasts.show_message(format!(
                "{} runs the cells of this note from now on, with all your rights: it can read and change every file \
                 of yours and use the network.",
                spec.title
            ));
        }
    }
}
