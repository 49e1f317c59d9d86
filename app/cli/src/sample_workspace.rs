//! The sample volume of a first start: ordinary notes, written into the workspace's folder.

use engine::{Command, Settings};
use host::{Handle, fs::copy};
use std::path::Path;

/// Writes the sample into the workspace and opens it as a volume.
pub(crate) fn make_sample(handle: &Handle, workspace: &Path) -> anyhow::Result<()> {
    let folder = workspace.join("Sample");
    for (path, bytes) in system::SAMPLE_FILES {
        copy::write_new_inside(&folder, path, bytes)?;
    }
    let opened = |session: &engine::Session| session.is_open().then_some(());
    handle.wait(None, opened)?;
    let name = Some("Sample".to_owned());
    handle.run_command(Command::OpenFolder { folder, name })?;
    Ok(())
}

/// Makes the window show the welcome page and the first steps.
pub(crate) fn show_welcome(handle: &Handle) -> anyhow::Result<()> {
    let settings = handle.read(|session| session.settings().clone())?;
    let settings = Settings { show_welcome: true, show_first_steps: true, ..settings };
    let set = Command::Set { settings: Box::new(settings) };
    handle.run_command(set)?;
    Ok(())
}
