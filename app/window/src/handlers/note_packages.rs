//! Packages of a note: opens their dialog, and adds installed packages to the note's properties.

use crate::overlays::dialogs::Dialog;
use crate::overlays::note_packages_form::{NotePackagesForm, PackagesStage};
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use engine::{Command, KernelKind, KernelPhase};
use host::note_packages::{NotePlace, property_commands};
use host::python_setup::SetupError;
use store::{BlockId, DocId};

impl WindowOverlay {
    /// Opens the dialog with the open note's packages. `missing`: a cell, and the package that it misses.
    pub(crate) fn show_packages(
        &mut self,
        host: &HostLink,
        panes: &PaneState,
        notices: &mut NoticeState,
        missing: (Option<BlockId>, Option<&str>),
    ) {
        let session = host.session();
        let Some(note) = panes.active.note.and_then(|note| session.note(note)) else {
            notices.toasts.show_message("No note is open.");
            return;
        };
        let front = note.blocks().next().and_then(|block| text::properties::read(&block.text));
        if let Some(Err(why)) = front {
            notices.toasts.show_message(format!("The note's properties can't be read: {why}. Correct them first."));
            return;
        }
        let Some(place) = NotePlace::of(session, note.id, host.driver.folder()) else {
            notices.toasts.show_message("The note's volume has no folder on this device.");
            return;
        };
        let stated = note.packages().cloned().unwrap_or_default();
        let form = NotePackagesForm::new(note.id, place, stated, missing, host.setup_variables.clone());
        *self = WindowOverlay::Dialog(Dialog::NotePackages(Box::new(form)));
    }

    /// Writes the packages into the note's properties once they are installed.
    pub(crate) fn follow_packages(&mut self, host: &mut HostLink) {
        let WindowOverlay::Dialog(Dialog::NotePackages(form)) = self else { return };
        let PackagesStage::Installed(packages, environment) = &form.stage else { return };
        let written = property_commands(form.note, &form.stated, packages);
        let written = written.into_iter().try_for_each(|command| host.command(command));
        form.stage = match written {
            Err(why) => {
                let advice = "The packages are installed. Try again to let the note list them.".to_owned();
                PackagesStage::Failed(SetupError { why: why.to_string(), advice })
            }
            Ok(()) => {
                let note = host.session().note(form.note);
                let kernel = note.and_then(|note| note.kernel_name()).unwrap_or(engine::INSTANT_KERNEL);
                let is_other = KernelKind::of(Some(kernel)) != KernelKind::Environment;
                let stage = PackagesStage::Ready {
                    environment: environment.clone(),
                    other_kernel: is_other.then(|| kernel.to_owned()),
                };
                form.stated = packages.clone();
                stage
            }
        };
    }
}

impl HostLink {
    /// Runs a cell in a new kernel, which has the current packages.
    pub(crate) fn rerun_cell(&mut self, notices: &mut NoticeState, note: DocId, cell: BlockId) {
        let is_running = self.note(Some(note)).is_some_and(|note| note.kernel != KernelPhase::Off);
        if !is_running || self.send(Command::RestartKernel { note }, notices) {
            self.send(Command::Run { note, cell }, notices);
        }
    }
}
