//! Sets up a full Python for a note whose cell misses a module, and makes it the note's kernel.

use crate::overlays::dialogs::Dialog;
use crate::overlays::python_setup_form::{PythonSetupForm, SetupStage};
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use anyhow::Context as _;
use engine::Command;
use host::python_setup::{PythonSetup, SetupError};
use std::path::Path;
use store::BlockId;

impl WindowOverlay {
    /// Opens the dialog that offers to set up a Python with a module.
    pub(crate) fn ask_python_setup(
        &mut self,
        host: &mut HostLink,
        panes: &PaneState,
        notices: &mut NoticeState,
        cell: BlockId,
        module: String,
    ) {
        let session = host.session();
        let Some(note) = panes.active.note else { return };
        let root = session.locate_file(note).and_then(|(volume, _)| session.volume(volume)?.root.clone());
        let Some(folder) = root else {
            notices.toasts.show_message("The note's volume has no folder on this device.");
            return;
        };
        let roots = session.volumes().filter_map(|volume| volume.root.clone());
        let shared = roots.chain([host.driver.folder().to_path_buf()]).collect();
        let setup = PythonSetup { folder, packages: Vec::new(), shared, variables: host.setup_variables.clone() };
        let mut form = PythonSetupForm::new(note, cell, module, setup);
        let before = session.kernel_searches();
        form.kernels_asked = host.send(Command::FindKernels { note }, notices).then_some(before);
        *self = WindowOverlay::Dialog(Dialog::PythonSetup(Box::new(form)));
    }

    /// Updates the dialog with the known kernels, and makes a new one the note's kernel.
    pub(crate) fn follow_python_setup(&mut self, host: &mut HostLink) {
        let WindowOverlay::Dialog(Dialog::PythonSetup(form)) = self else { return };
        let (note, searches) = (form.note, host.session().kernel_searches());
        if form.kernels_asked.is_some_and(|before| searches > before) {
            form.kernels_asked = None;
            let fitting = host.session().kernels().iter().filter(|spec| spec.language == "python");
            form.kernels = fitting.cloned().collect();
        }
        match &form.stage {
            SetupStage::Installed(environment) => {
                form.stage = match host.command(Command::FindKernels { note }) {
                    Ok(()) => SetupStage::Choosing(environment.clone(), searches),
                    Err(why) => not_chosen(&why),
                };
            }
            SetupStage::Choosing(environment, before) if searches > *before => {
                form.stage = match use_environment(host, note, environment) {
                    Ok(title) => SetupStage::Ready(title),
                    Err(why) => not_chosen(&why),
                };
            }
            SetupStage::Asking
            | SetupStage::Running(..)
            | SetupStage::Choosing(..)
            | SetupStage::Failed(_)
            | SetupStage::Ready(_) => {}
        }
    }
}

/// Makes the environment's kernel the note's kernel. The user has approved its commands, so there's no further
/// question.
fn use_environment(host: &mut HostLink, note: store::DocId, environment: &Path) -> anyhow::Result<String> {
    let spec = host.session().kernels().iter().find(|spec| spec.path.starts_with(environment)).cloned();
    let spec = spec.context("The environment has no kernel. Its output says more.")?;
    let (kernel, seen) = (Some(spec.name), Some(spec.print));
    host.command(Command::UseKernel { note, kernel, keep: true, seen })?;
    Ok(spec.title)
}

fn not_chosen(why: &anyhow::Error) -> SetupStage {
    let advice = "Python is installed. Choose its kernel for the note.".to_owned();
    SetupStage::Failed(SetupError { why: why.to_string(), advice })
}
