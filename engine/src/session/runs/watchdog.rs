//! The watchdog: the only place that stops hanging work of a run, and reports it there. Components have their own
//! limits; these are the last resort in case those fail.
//!
//! | what | its own limit | the watchdog's |
//! |---|---|---|
//! | a silent model | 3 min until it starts, 15 on this machine, 5 in the middle | 20 min |
//! | a model's whole answer | 1 h | 65 min |
//! | `shell`, `run_python`, user tools, Python agents | the requested `seconds`, or 60 | 2 min more |
//! | tools of MCP servers | none | 10 min |
//! | `fetch_url` | 20 s | 2 min |
//! | other tools: files, notes, search, git | none | 2 min |
//! | cells | 30 s, or the note's limit; then interrupted, then killed | none: watched with the note's kernel |
//! | work delegated to another agent | that of its own run | none |

use crate::effect::Effect;
use crate::notice::Notice;
use crate::session::apply_context::ApplyContext;
use crate::session::runs::tool_outcomes::DEFAULT_TOOL_TIMEOUT_SECS;
use crate::session::state::FilesState;
use crate::session::state::agent_run::CallPhase;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::model_call::{ModelError, ModelErrorKind};
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::ToolOutcome;
use store::{DocId, ToolCall};
use text::time::UnixMillis;

/// Maximum time that a model may be silent, in milliseconds.
pub(super) const MODEL_SILENCE_TIMEOUT_MS: i64 = 20 * 60_000;
/// Maximum duration of a complete answer, in milliseconds.
const MODEL_ANSWER_TIMEOUT_MS: i64 = 65 * 60_000;
/// Time allowed beyond a component's own limit, in milliseconds.
const WATCHDOG_GRACE_MS: i64 = 120_000;
/// Maximum duration of a call to an MCP server's tool, in milliseconds.
const MCP_TOOL_TIMEOUT_MS: i64 = 600_000;

impl RunsState {
    /// Returns how long a call may run, in milliseconds; `None` for no limit.
    fn call_timeout_ms(&self, call: &ToolCall) -> Option<i64> {
        let asked =
            call.arguments.get("seconds").and_then(serde_json::Value::as_u64).unwrap_or(DEFAULT_TOOL_TIMEOUT_SECS);
        let asked = i64::try_from(asked).unwrap_or(0).saturating_mul(1_000).saturating_add(WATCHDOG_GRACE_MS);
        let served = || {
            let setup = self.setup();
            setup.is_some_and(|setup| setup.servers.iter().any(|(_, _, tool)| tool.name == call.name))
        };
        match BuiltInTool::from_name(&call.name) {
            Some(BuiltInTool::RunCell | BuiltInTool::NoteCommand | BuiltInTool::AskAgent) => None,
            Some(BuiltInTool::Shell | BuiltInTool::RunPython | BuiltInTool::RunAgent) => Some(asked),
            _ if self.approved_tool(&call.name).is_some() => Some(asked),
            _ if served() => Some(MCP_TOOL_TIMEOUT_MS),
            _ => Some(WATCHDOG_GRACE_MS),
        }
    }

    /// Requests a tick of the watchdog for when a call's time limit has passed.
    pub(super) fn watch_call(&self, turn: &mut ApplyContext<'_>, call: &ToolCall) {
        if let Some(patience) = self.call_timeout_ms(call) {
            turn.wake_at(turn.now.plus_ms(patience));
        }
    }

    /// Stops work that hangs, and requests the next tick for when other work would exceed its limit.
    pub(in crate::session) fn watch_runs(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
    ) {
        let mut next: Option<UnixMillis> = None;
        let mut models: Vec<(DocId, String)> = Vec::new();
        let mut tools: Vec<(DocId, String, String)> = Vec::new();
        for run in self.runs.values().filter(|run| run.about.ending.is_none()) {
            if let Some(live) = &run.live {
                let until =
                    live.heard.plus_ms(MODEL_SILENCE_TIMEOUT_MS).min(live.since.plus_ms(MODEL_ANSWER_TIMEOUT_MS));
                if turn.now < until {
                    next = Some(next.map_or(until, |next| next.min(until)));
                } else {
                    let minutes = turn.now.ms_since(live.since) / 60_000;
                    models.push((run.id, format!("{} did not come to an end in {minutes} min", live.route)));
                }
            }
            for pending in &run.calls {
                let CallPhase::Running { since } = pending.phase else { continue };
                let Some(patience) = self.call_timeout_ms(&pending.call) else { continue };
                let until = since.plus_ms(patience);
                if turn.now < until {
                    next = Some(next.map_or(until, |next| next.min(until)));
                } else {
                    let what = format!("{} did not come to an end in {} s", pending.call.name, patience / 1_000);
                    tools.push((run.id, pending.call.id.clone(), what));
                }
            }
        }
        for (id, what) in models {
            let Some(live) = self.runs.get_mut(&id).and_then(|run| run.live.take()) else { continue };
            turn.effects.push(Effect::CancelModel { call: live.call });
            let why = format!("The watchdog ended the call: {what}.");
            turn.notify(Notice::Stopped { run: id, what: why.clone() });
            // Another provider may answer.
            let failure = ModelError { kind: ModelErrorKind::Unreachable, why, partial: live.text.clone() };
            self.on_model_failed(turn, files, sync, workspace, id, (&failure, live));
        }
        for (id, call, what) in tools {
            let text = format!("The watchdog stopped the tool: {what}. Changes it already made may remain.");
            turn.notify(Notice::Stopped { run: id, what: text.clone() });
            self.stop_tool_call(turn, files, sync, id, &call);
            self.on_tool_done(
                turn,
                files,
                sync,
                workspace,
                (id, &call),
                ToolOutcome { text, ..ToolOutcome::default() },
            );
        }
        if let Some(next) = next {
            turn.wake_at(next);
        }
    }
}
