//! Tools of MCP servers: users are informed when a tool that they allowed changes.

use crate::session::apply_context::ApplyContext;
use crate::session::state::runs::RunsState;
use agent::policy::Permission;
use agent::tool_spec::ToolSpec;

impl RunsState {
    /// Reports rules that no longer apply because a server's tool isn't the one that was allowed.
    pub(super) fn notify_changed_tools(&self, turn: &mut ApplyContext<'_>, servers: &[(String, String, ToolSpec)]) {
        let allowed =
            |spec: &ToolSpec| self.rules.iter().any(|rule| rule.word == Permission::Allow && rule.is_outdated(spec));
        let changed = servers.iter().filter(|(_, _, spec)| allowed(spec)).map(|(_, _, spec)| {
            format!("the tool {} has changed since you allowed it, so it is asked about again", spec.title())
        });
        let new: Vec<String> = changed.filter(|words| !turn.journal.problems.contains(words)).collect();
        turn.journal.problems.extend(new);
    }
}
