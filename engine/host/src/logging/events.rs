//! Log events of tools, kernels, connections, commands and frames.

use super::{content_field, millis};
use agent::tool_job::{GitJob, ToolJob, ToolOutcome};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use store::sync::LinkId;
use tracing::Span;
use tracing::span::EnteredSpan;

/// Maximum duration of a frame at 60 frames per second.
const MAX_FRAME_TIME: Duration = Duration::from_millis(16);
/// Minimum interval between slow frames logged at level info. Others are logged at level debug.
const SLOW_FRAME_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// The span of a running tool call, until dropped.
pub(crate) struct ToolCallLog {
    begun: Instant,
    _span: EnteredSpan,
}

impl ToolCallLog {
    pub(crate) fn begin(job: &ToolJob) -> ToolCallLog {
        let span = tracing::info_span!(target: "host::tools", "tool", name = tool_name(job)).entered();
        tracing::debug!(target: "host::tools", content = content_field(format_args!("{job:?}")), "tool call begins");
        ToolCallLog { begun: Instant::now(), _span: span }
    }

    /// Logs the outcome and duration, without arguments or results.
    pub(crate) fn end(&self, done: &anyhow::Result<ToolOutcome>) {
        let (outcome, text) = match done {
            Ok(done) if done.success => ("done", Cow::from(&done.text)),
            Ok(done) => ("failed", Cow::from(&done.text)),
            Err(why) => ("refused", Cow::from(why.to_string())),
        };
        let took_ms = millis(self.begun.elapsed());
        tracing::info!(target: "host::tools", outcome, took_ms, content = content_field(text), "tool call ended");
    }
}

fn tool_name(job: &ToolJob) -> String {
    let name = match job {
        ToolJob::Read { .. } => "read",
        ToolJob::MemoryLog { .. } => "memory log",
        ToolJob::List { .. } => "list",
        ToolJob::Replace { .. } => "replace",
        ToolJob::Amend { .. } => "amend",
        ToolJob::Remove { .. } => "remove",
        ToolJob::Restore { .. } => "restore",
        ToolJob::ProgramReport { .. } => "program report",
        ToolJob::Search { .. } => "search",
        ToolJob::Shell { .. } => "shell",
        ToolJob::Python { .. } => "python",
        ToolJob::JavaScript { .. } => "javascript",
        ToolJob::Limited { job, .. } => return tool_name(job),
        ToolJob::Git { what: GitJob::Commit { .. }, .. } => "git commit",
        ToolJob::Git { .. } => "git",
        ToolJob::GitProgram { .. } => "git program",
        ToolJob::Fetch { .. } => "fetch",
        ToolJob::Browser { tool, .. } | ToolJob::Container { tool, .. } => tool,
        ToolJob::Mcp { server, tool, .. } => return format!("mcp {server}/{tool}"),
    };
    name.to_owned()
}

/// The span of a kernel's process, from its start until dropped.
pub(crate) struct KernelLog {
    begun: Instant,
    _span: EnteredSpan,
}

impl KernelLog {
    pub(crate) fn start(number: u64, is_jupyter: bool) -> KernelLog {
        let span = tracing::info_span!(target: "host::kernel", "kernel", number, is_jupyter).entered();
        tracing::info!(target: "host::kernel", "kernel starts");
        KernelLog { begun: Instant::now(), _span: span }
    }

    /// Logs the kernel's end. `why` may contain its last output, which may quote a cell.
    pub(crate) fn end(&self, has_run: bool, why: &str) {
        let (took_ms, why) = (millis(self.begun.elapsed()), content_field(why));
        match has_run {
            true => tracing::info!(target: "host::kernel", took_ms, why, "kernel ended"),
            false => tracing::warn!(target: "host::kernel", took_ms, why, "kernel did not start"),
        }
    }
}

/// The open sync connections, each with its span.
#[derive(Default)]
pub(crate) struct ConnectionLog {
    open: HashMap<LinkId, (Span, Instant)>,
}

impl ConnectionLog {
    /// Logs that a connection was opened. The address is content, because it may contain a token and a host name.
    pub(crate) fn opened(&mut self, link: LinkId, address: &str) {
        let span = tracing::info_span!(target: "host::sync", parent: None, "sync_connection", link);
        let address = content_field(address);
        span.in_scope(|| tracing::info!(target: "host::sync", address, "sync connection opened"));
        self.open.insert(link, (span, Instant::now()));
    }

    /// Logs that a connection was lost or failed. The reason is content; only its kind is always logged.
    pub(crate) fn closed(&mut self, link: LinkId, why: &str) {
        let text = why.to_lowercase();
        let known =
            ["refused", "timed out", "reset", "dns", "certificate", "closed", "access", "version", "unreachable"];
        let kind = known.iter().find(|kind| text.contains(**kind)).copied().unwrap_or("other");
        let why = content_field(why);
        match self.open.remove(&link) {
            Some((span, begun)) => {
                let took_ms = millis(begun.elapsed());
                span.in_scope(|| tracing::info!(target: "host::sync", kind, took_ms, why, "sync connection closed"));
            }
            None => tracing::info!(target: "host::sync", link, kind, why, "sync connection failed"),
        }
    }
}

/// The span of a running command of the command line, until dropped.
pub struct CommandLog {
    begun: Instant,
    _span: EnteredSpan,
}

impl CommandLog {
    /// Starts the span of a command. Its arguments are content, because they may contain a prompt or names of notes.
    pub fn begin(name: &str, words: &[String]) -> CommandLog {
        let span = tracing::info_span!(target: "cli", "command", name).entered();
        tracing::debug!(target: "cli", content = content_field(format_args!("{words:?}")), "command begins");
        CommandLog { begun: Instant::now(), _span: span }
    }

    /// Logs the command's exit code and duration.
    pub fn end(&self, code: u8) {
        tracing::info!(target: "cli", code, took_ms = millis(self.begun.elapsed()), "command ended");
    }
}

impl std::fmt::Debug for CommandLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandLog").field("begun", &self.begun).finish_non_exhaustive()
    }
}

/// Measures the window's frames and logs slow ones.
#[derive(Debug, Default)]
pub struct FrameLog {
    begun: Option<Instant>,
    logged: Option<Instant>,
}

impl FrameLog {
    /// Starts a frame.
    pub fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    /// Ends a frame and logs it if it was too slow.
    pub fn end(&mut self) {
        let Some(took) = self.begun.take().map(|begun| begun.elapsed()).filter(|took| *took > MAX_FRAME_TIME) else {
            return;
        };
        let _span = tracing::info_span!(target: "window", "frame", took_ms = millis(took)).entered();
        if self.logged.is_some_and(|logged| logged.elapsed() < SLOW_FRAME_LOG_INTERVAL) {
            tracing::debug!(target: "window", "slow frame");
        } else {
            self.logged = Some(Instant::now());
            tracing::info!(target: "window", "slow frame");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;
    use std::sync::Arc;

    fn logged(what: impl FnOnce()) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let file = std::fs::File::create(&path).expect("made");
        let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(Arc::new(file)).finish();
        tracing::subscriber::with_default(lines, what);
        std::fs::read_to_string(path).expect("read")
    }

    #[test]
    fn a_slow_frame_is_logged_with_its_time_and_not_each_of_many() {
        let slow = Instant::now().checked_sub(Duration::from_millis(40)).expect("a time before");
        let log = logged(|| {
            let mut frames = FrameLog::default();
            frames.begin();
            frames.end();
            for _ in 0..3 {
                frames.begun = Some(slow);
                frames.end();
            }
        });
        assert_eq!(log.matches("slow frame").count(), 1, "{log}");
        assert!(log.contains("frame{took_ms=4"), "{log}");
    }

    #[test]
    fn a_lost_connection_and_a_tool_name_no_text_of_others() {
        let log = logged(|| {
            let mut connections = ConnectionLog::default();
            connections.opened(7, "wss://token@example.org");
            connections.closed(7, "Connection refused by wss://token@example.org");
            connections.closed(8, "private words");
            let job = ToolJob::Search { query: "private words".to_owned(), limit: 5, fork: None };
            ToolCallLog::begin(&job).end(&Err(anyhow!("private words")));
            KernelLog::start(3, false).end(true, "private words");
        });
        assert!(log.contains("sync_connection{link=7}"), "{log}");
        assert!(log.contains("kind=\"refused\"") && log.contains("link=8 kind=\"other\""), "{log}");
        assert!(log.contains("kernel{number=3 is_jupyter=false}") && log.contains("kernel ended"), "{log}");
        assert!(log.contains("tool{name=\"search\"}") && log.contains("outcome=\"refused\""), "{log}");
        assert!(!log.contains("token") && !log.contains("private"), "{log}");
    }
}
