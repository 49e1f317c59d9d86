//! The kernel of a note: which there are, and which one the user chooses.

use super::palette::Palette;
use super::{Overlay, Window};
use engine::Command;

impl Window {
    /// Looks which kernels there are, to offer them.
    pub(super) fn find_kernels(&mut self) {
        let Some(note) = self.here.note else {
            self.toasts.say("No note is open.");
            return;
        };
        let before = self.session().map_or(0, engine::Session::kernel_searches);
        if self.send(Command::FindKernels { note }) {
            self.kernels_asked = Some(before);
        }
    }

    /// Offers the kernels once they are known.
    pub(super) fn show_kernels(&mut self) {
        let Some(before) = self.kernels_asked else { return };
        let Some(session) = self.driver.as_ref().map(host::Driver::session) else { return };
        if session.kernel_searches() == before {
            return;
        }
        self.kernels_asked = None;
        let note = self.here.note.and_then(|note| session.note(note));
        if let (Some(note), Overlay::None) = (note, &self.overlay) {
            self.overlay = Overlay::Palette(Palette::kernels(session.kernels(), note.kernel_name()));
            if session.kernels().is_empty() {
                self.toasts.say(
                    "No Jupyter kernel was found. `pip install ipykernel` in a Python environment brings one, for \
                     instance in .venv beside the note.",
                );
            }
        }
    }

    /// Takes the kernel that was chosen; says once what it may do.
    pub(super) fn use_kernel(&mut self, kernel: Option<String>) {
        let Some(note) = self.here.note else { return };
        let title = self.session().and_then(|session| {
            let known = session.kernels().iter().find(|spec| Some(&spec.name) == kernel.as_ref())?;
            Some(known.title.clone())
        });
        if self.send(Command::UseKernel { note, kernel, keep: true })
            && let Some(title) = title
        {
            self.toasts.say(format!(
                "{title} runs the cells of this note from now on, with all your rights: it can read and change every \
                 file of yours and use the network."
            ));
        }
    }
}
