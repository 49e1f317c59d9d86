//! Checks of the names in a message against what this device knows, before the message is sent.

use crate::RunTask;
use crate::send_errors::SentRunError;
use agent::agent_definition::is_memory_agent;
use engine::{Command, Session};
use host::Handle;
use std::path::PathBuf;
use std::time::Duration;
use store::DocId;

/// Maximum time to read tools and agents.
const SETUP_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until the agents' setup and the user's tools have been read.
///
/// # Errors
/// Returns an error if they can't be read in a minute, or the program is closing.
pub fn wait_for_setup(handle: &Handle) -> Result<(), SentRunError> {
    handle.run_command(Command::ReadSetup)?;
    let ready = |session: &Session| {
        let agents = session.agents();
        (agents.setup().is_some() && !agents.is_reading() && session.user_tools().is_some()).then_some(())
    };
    handle.wait(Some(SETUP_TIMEOUT), ready)?.ok_or(SentRunError::Setup)
}

/// Rejects an agent that isn't available in a volume; no other agent replaces it.
///
/// # Errors
/// Returns an error if it isn't available.
pub fn ensure_agent_available(handle: &Handle, volume: DocId, name: &str) -> Result<(), SentRunError> {
    wait_for_setup(handle)?;
    let (root, elsewhere) = handle.read(move |session| {
        let root = session.volume(volume).and_then(|volume| volume.root.clone());
        (root, session.agent_volumes(volume))
    })?;
    let read = |root: PathBuf| host::agents::project_memory::read_callable_agents(&root, &elsewhere);
    let crew = root.map(read).unwrap_or_default();
    let name = name.trim_start_matches('@').to_owned();
    match handle.read(move |session| session.agent_unavailable_reason(&crew, &name))? {
        Some(why) => Err(SentRunError::Agent(why)),
        None => Ok(()),
    }
}

/// Checks the agent and the allowed tools of a message, and that the rules that go with it could be read.
pub(crate) fn check_names(handle: &Handle, volume: DocId, task: &RunTask) -> Result<(), SentRunError> {
    match &task.agent {
        Some(agent) if is_memory_agent(agent) => return Err(SentRunError::MemoryAgent),
        Some(agent) => ensure_agent_available(handle, volume, agent)?,
        None => wait_for_setup(handle)?,
    }
    let trouble = handle.read(|session| session.agents().setup().and_then(|setup| setup.trouble.clone()))?;
    if let Some(trouble) = trouble {
        return Err(SentRunError::Configuration(trouble));
    }
    let allow = task.allow.clone();
    let unknown = handle.read(move |session| {
        let why = session.unknown_tools(&allow).into_iter().next()?;
        let names = || session.agent_tools().into_iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ");
        // A sentence that already names similar ones needs no list.
        Some(if why.ends_with('?') { why } else { format!("{why} There are {}.", names()) })
    })?;
    match unknown {
        Some(why) => Err(SentRunError::Tool(why)),
        None => Ok(()),
    }
}
