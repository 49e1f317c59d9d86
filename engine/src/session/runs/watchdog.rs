//! The watchdog: the only place that stops hanging work of a run, and reports it there. Components have their own
//! limits; these are the last resort in case those fail. `watchdog` in `config.yaml`, or in an agent's front matter,
//! sets the limits named in it.
//!
//! | what | its own limit | the watchdog's |
//! |---|---|---|
//! | a silent model | `first_byte` (3 min), `first_byte_local` (15 min), `silence` (5 min) in the middle | 5 min more |
//! | a model's whole answer | `call` (1 h) | 5 min more |
//! | `shell`, `run_python`, user tools, Python agents | the requested `seconds`, or 60; at most `tool` | 2 min more |
//! | tools of MCP servers | none | `tool` (10 min) |
//! | `fetch_url` | 20 s | 2 min, at most `tool` |
//! | browser tools | at most 30 s for each of start, answer and loading | 2 min, at most `tool` |
//! | `container_run`, `container_exec` | the requested `seconds`, or 60; at most `tool` | 2 min more |
//! | `container_pull`, `container_build` | 10 min | `tool`, and 2 min more |
//! | other tools: files, notes, search, git | none | 2 min, at most `tool` |
//! | a run's work without a pause; its deadline | none | `run` (none); `deadline` |
//! | cells | 30 s, or the note's limit; then interrupted, then killed | none: watched with the note's kernel |
//! | an answer of a model for a server | as any model's, `call` (1 h) | 5 min more; the server's tool waits meanwhile |
//! | work delegated to another agent | that of its own run | none |

use crate::effect::Effect;
use crate::session::apply_context::ApplyContext;
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, CallPhase};
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::config::{RunStop, WatchdogLimits};
use agent::model_call::{ModelCallLimits, ModelError, ModelErrorKind};
use agent::notice::Notice;
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::ToolOutcome;
use agent::tool_outcomes::DEFAULT_TOOL_TIMEOUT_SECS;
use store::{DocId, RunEnding, ToolCall};
use text::time::UnixMillis;

/// Time allowed beyond the limits of a model call, in milliseconds.
const MODEL_GRACE_MS: i64 = 5 * 60_000;
/// Time allowed beyond a component's own limit, in milliseconds.
const WATCHDOG_GRACE_MS: i64 = 120_000;

/// Returns the milliseconds for which a model may be silent, and those for its whole answer, before the watchdog acts.
pub(super) fn model_patience_ms(limits: ModelCallLimits) -> (i64, i64) {
    let more = |limit: u64| i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(MODEL_GRACE_MS);
    (more(limits.first_byte.max(limits.silence)), more(limits.whole))
}

impl RunsState {
    /// Returns the time limits of a run: its agent's, or else those of the configuration.
    pub(super) fn watchdog_limits(&self, run: &AgentRun) -> WatchdogLimits {
        let all = self.setup().map(|setup| setup.config.watchdog).unwrap_or_default();
        self.definition_of(run).watchdog_limits(&all)
    }

    /// Returns how long a call may run, in milliseconds; `None` for no limit.
    fn call_timeout_ms(&self, run: &AgentRun, call: &ToolCall) -> Option<i64> {
        let limits = run.limits.unwrap_or_else(|| self.watchdog_limits(run));
        let most = i64::try_from(limits.tool).unwrap_or(i64::MAX);
        let asked =
            call.arguments.get("seconds").and_then(serde_json::Value::as_u64).unwrap_or(DEFAULT_TOOL_TIMEOUT_SECS);
        let asked = i64::try_from(asked).unwrap_or(0).saturating_mul(1_000).min(most).saturating_add(WATCHDOG_GRACE_MS);
        let served = || {
            let setup = self.setup();
            setup.is_some_and(|setup| setup.servers.iter().any(|(_, _, tool)| tool.name == call.name))
        };
        match BuiltInTool::from_name(&call.name) {
            Some(BuiltInTool::RunCell | BuiltInTool::NoteCommand | BuiltInTool::AskAgent) => None,
            Some(BuiltInTool::McpSampling) => Some(model_patience_ms(limits.model_call(false)).1),
            Some(
                BuiltInTool::Shell
                | BuiltInTool::RunPython
                | BuiltInTool::RunAgent
                | BuiltInTool::ContainerRun
                | BuiltInTool::ContainerExec,
            ) => Some(asked),
            Some(BuiltInTool::ContainerPull | BuiltInTool::ContainerBuild) => {
                Some(most.saturating_add(WATCHDOG_GRACE_MS))
            }
            _ if self.approved_tool(&call.name).is_some() => Some(asked),
            _ if served() => Some(most),
            _ => Some(WATCHDOG_GRACE_MS.min(most)),
        }
    }

    /// Requests a tick of the watchdog for when a call's time limit has passed.
    pub(super) fn watch_call(&self, turn: &mut ApplyContext<'_>, id: DocId, call: &ToolCall) {
        if let Some(patience) = self.runs.get(&id).and_then(|run| self.call_timeout_ms(run, call)) {
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
        let mut over: Vec<(DocId, RunStop)> = Vec::new();
        for run in self.runs.values().filter(|run| run.about.ending.is_none()) {
            // A run that waits for the user isn't at work.
            let since = run.active_since.filter(|_| run.pending().count() == 0);
            let limits = run.limits.filter(|_| run.is_awake());
            if let Some((until, stop)) = limits.and_then(|limits| limits.first_stop(&run.about, since)) {
                if turn.now < until {
                    next = Some(next.map_or(until, |next| next.min(until)));
                } else {
                    over.push((run.id, stop));
                    continue;
                }
            }
            if let Some(live) = &run.live {
                let (silence, whole) = live.patience_ms;
                let until = live.heard.plus_ms(silence).min(live.since.plus_ms(whole));
                if turn.now < until {
                    next = Some(next.map_or(until, |next| next.min(until)));
                } else {
                    let minutes = turn.now.ms_since(live.since) / 60_000;
                    models.push((run.id, format!("{} did not come to an end in {minutes} min", live.route)));
                }
            }
            for pending in &run.calls {
                let CallPhase::Running { since } = pending.phase else { continue };
                if run.waits_for_reply(&pending.call.id) {
                    continue; // the user's time isn't the server's
                }
                let Some(patience) = self.call_timeout_ms(run, &pending.call) else { continue };
                let until = since.plus_ms(patience);
                if turn.now < until {
                    next = Some(next.map_or(until, |next| next.min(until)));
                } else {
                    let what = format!("{} did not come to an end in {} s", pending.call.name, patience / 1_000);
                    tools.push((run.id, pending.call.id.clone(), what));
                }
            }
        }
        for (id, stop) in over {
            let why = stop.to_string();
            turn.notify(Notice::Stopped { run: id, what: why.clone() });
            self.stop_run(turn, files, sync, workspace, id, (RunEnding::Limit, &why));
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
