//! The program's log: a file in the workspace's `logs/` folder, with crash reports beside it.
//!
//! Events name what was done, how long it took and how it ended. They hold no note text, prompt, key or path, unless
//! `TRACEBOOK_LOG_CONTENT=1`. Logging never fails and never waits for a disk: lines that can't be written are dropped.

mod crash;
mod effect_span;
mod events;
mod log_file;
mod log_queue;

use crate::fs::file_rights;
use log_file::RotatingLogFile;
use log_queue::LogQueue;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tracing::Metadata;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{EnvFilter, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};

pub use crash::{crashed_at_start, record_window_start, take_crash_notice};
pub(crate) use effect_span::EffectSpan;
pub use events::{CommandLog, FrameLog};
pub(crate) use events::{ConnectionLog, KernelLog, ToolCallLog};

/// A layer that exports spans in addition to the log file.
type ExportLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Name of the log folder inside a workspace or a hub's folder.
pub const LOG_FOLDER: &str = "logs";
/// Crates whose events are always logged. Libraries may quote requests, so their events are logged only with content.
const LOGGED_CRATES: [&str; 4] = ["cli", "host", "hub", "window"];
/// Default log directives if `TRACEBOOK_LOG` isn't set; the second set applies with `TRACEBOOK_LOG_CONTENT=1`.
const DEFAULT_DIRECTIVES: &str = "warn,cli=info,host=info,hub=info,window=info";
const DEFAULT_CONTENT_DIRECTIVES: &str = "warn,cli=debug,host=debug,hub=debug,window=debug";
/// Maximum length of content in one field, in bytes.
const MAX_CONTENT_BYTES: usize = 16 << 10;
/// Maximum time that closing the program waits for the log.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether this process keeps a log. Worker processes and in-process tests don't.
static IS_ENABLED: AtomicBool = AtomicBool::new(false);
/// The log of this process, once started; `None` inside if it keeps no log.
static LOG: OnceLock<Option<LogQueue>> = OnceLock::new();
/// The folder for crash reports.
static CRASH_FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Enables logging in this process, starting with the first workspace that it opens.
///
/// If a panic happens before that, its report goes into the folder `workspace`, if given and existing.
pub fn enable(workspace: Option<&Path>) {
    if is_switched_off(std::env::var_os("TRACEBOOK_LOG").as_deref()) || IS_ENABLED.swap(true, Ordering::AcqRel) {
        return;
    }
    if let Some(workspace) = workspace {
        set_crash_folder(workspace.join(LOG_FOLDER));
    }
    crash::install_panic_hook();
}

/// Returns whether note text, prompts, paths and reasons may be logged (`TRACEBOOK_LOG_CONTENT=1`).
pub fn is_content_logged() -> bool {
    static CONTENT: OnceLock<bool> = OnceLock::new();
    *CONTENT.get_or_init(|| std::env::var_os("TRACEBOOK_LOG_CONTENT").is_some_and(|value| value == "1"))
}

/// Returns the value of a field that may quote notes, prompts or paths; `None` unless `TRACEBOOK_LOG_CONTENT=1`.
///
/// Known secrets are masked even then.
pub fn content_field(text: impl std::fmt::Display) -> Option<String> {
    is_content_logged().then(|| {
        let mut text = agent::secrets::mask_known_secrets(&text.to_string()).into_owned();
        text.truncate(text.floor_char_boundary(MAX_CONTENT_BYTES));
        text
    })
}

/// Starts the log of this process in a folder of `parent`. Only the first call has an effect.
pub fn start(parent: &Path) {
    if IS_ENABLED.load(Ordering::Acquire) {
        LOG.get_or_init(|| begin(parent, std::env::var_os("TRACEBOOK_LOG").as_deref(), None));
    }
}

/// Like [`start`], for a hub. With the feature `otel`, spans also go to the collector named in the environment.
pub fn start_hub(folder: &Path) {
    #[cfg(feature = "otel")]
    let export = hub::otel::export_layer().unwrap_or_else(|error| {
        eprintln!("tracebook: can't send spans to the OpenTelemetry collector: {error}");
        None
    });
    #[cfg(feature = "otel")]
    let export = export.map(|layer| layer.with_filter(filter_fn(is_logged)).boxed());
    #[cfg(not(feature = "otel"))]
    let export = None;
    if IS_ENABLED.load(Ordering::Acquire) {
        LOG.get_or_init(|| begin(folder, std::env::var_os("TRACEBOOK_LOG").as_deref(), export));
    }
}

/// Ends the log: waits briefly until all lines are in the file.
pub fn finish() {
    #[cfg(feature = "otel")]
    hub::otel::shut_down();
    flush();
}

fn flush() {
    if let Some(Some(queue)) = LOG.get() {
        queue.flush(FLUSH_TIMEOUT);
    }
}

/// Returns a duration in milliseconds, for a log field.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn begin(parent: &Path, wanted: Option<&OsStr>, export: Option<ExportLayer>) -> Option<LogQueue> {
    let folder = parent.join(LOG_FOLDER);
    // Without the folder there is no log file. Other code that needs the disk reports the disk's error.
    let queue = file_rights::create_private_folders(&folder).ok().and_then(|()| {
        set_crash_folder(folder.clone());
        LogQueue::start(RotatingLogFile::new(&folder))
    });
    if queue.is_none() && export.is_none() {
        return None;
    }
    let lines = queue.clone().map(|queue| {
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).log_internal_errors(false).with_writer(queue);
        lines.with_filter(filter_fn(is_logged))
    });
    let subscriber = tracing_subscriber::registry().with(export).with(lines).with(log_filter(wanted));
    tracing::subscriber::set_global_default(subscriber).ok()?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), "opened");
    queue
}

fn set_crash_folder(folder: PathBuf) {
    *CRASH_FOLDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
}

fn is_switched_off(wanted: Option<&OsStr>) -> bool {
    wanted.is_some_and(|wanted| wanted.to_string_lossy().trim().eq_ignore_ascii_case("off"))
}

/// Returns the filter that `TRACEBOOK_LOG` asks for: a level, or directives such as `host=debug,window=info`.
fn log_filter(wanted: Option<&OsStr>) -> EnvFilter {
    let default = if is_content_logged() { DEFAULT_CONTENT_DIRECTIVES } else { DEFAULT_DIRECTIVES };
    let wanted = wanted.map(OsStr::to_string_lossy).unwrap_or_default();
    let wanted = if wanted.trim().is_empty() { default } else { wanted.trim() };
    let parsed = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).parse(wanted);
    parsed.unwrap_or_else(|_| {
        eprintln!("tracebook: TRACEBOOK_LOG is neither a level nor directives; logging at level info");
        EnvFilter::new(default)
    })
}

fn is_logged(event: &Metadata<'_>) -> bool {
    let crate_name = event.target().split("::").next().unwrap_or_default();
    LOGGED_CRATES.contains(&crate_name) || is_content_logged()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_level_becomes_a_filter() {
        let level = |wanted: Option<&str>| log_filter(wanted.map(OsStr::new)).max_level_hint();
        assert_eq!(level(None), Some(LevelFilter::INFO));
        assert_eq!(level(Some("debug")), Some(LevelFilter::DEBUG));
        assert_eq!(level(Some("host=trace,window=warn")), Some(LevelFilter::TRACE));
        assert_eq!(level(Some("=,=")), Some(LevelFilter::INFO));
        assert!(is_switched_off(Some(OsStr::new(" Off "))) && !is_switched_off(None));
    }
}
