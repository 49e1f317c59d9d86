//! Consolidation of memory after the run of a command.

use super::{CliError, CommandContext};
use agent::agent_definition::is_memory_agent;
use agent::memory::MemoryMaintenance;
use engine::{Command, Session};
use std::time::Duration;
use store::DocId;

/// Maximum time to read memory and to change its notes.
const CONSOLIDATION_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until requested consolidations have changed their notes, and these are saved.
pub(crate) fn wait_until_consolidated(scene: &CommandContext<'_>) -> Result<(), CliError> {
    let done = |session: &Session| (!session.is_maintaining_memory() && session.pending_note_jobs() == 0).then_some(());
    scene.handle.wait(Some(CONSOLIDATION_TIMEOUT), done)?;
    export::open_note::wait_until_saved(scene.handle)?;
    Ok(())
}

/// Consolidates the memory of a run's volume if the configuration wants that after sessions. The run has ended.
pub(crate) fn consolidate_after_run(scene: &mut CommandContext<'_>, run: DocId) -> Result<(), CliError> {
    let volume = scene.handle.read(move |session| {
        let agents = session.agents();
        let is_wanted = agents.setup().is_some_and(|setup| setup.config.memory.consolidates_after_sessions());
        let about = &agents.run(run)?.about;
        (is_wanted && !is_memory_agent(&about.agent)).then_some(about.volume)
    })?;
    let Some(volume) = volume else { return Ok(()) };
    let what = MemoryMaintenance::Consolidate;
    if let Err(why) = scene.handle.run_command(Command::Upkeep { volume, what }) {
        writeln!(scene.errors, "tracebook: memory could not be consolidated: {why}")?;
        return Ok(());
    }
    wait_until_consolidated(scene)
}
