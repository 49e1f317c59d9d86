//! The sample volume that a first start brings along: ordinary notes, written into the workspace's folder.

use engine::Command;
use host::{Handle, fs::copy};
use std::path::Path;

/// Writes the sample below the workspace and makes a volume of it. Gives what went wrong, if anything.
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
