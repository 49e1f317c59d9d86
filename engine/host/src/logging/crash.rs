//! Crash reports: files that panics leave in the log folder.

use super::log_file::open_private_file;
use crate::fs::file_rights::create_private_folders;
use std::backtrace::Backtrace;
use std::collections::BTreeSet;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of reports per process. Panics caused by hostile notes are caught, and must not fill the disk.
const MAX_CRASH_REPORTS_PER_PROCESS: usize = 5;
/// Maximum number of reports kept in the folder; the newest are kept.
const MAX_CRASH_REPORTS: usize = 10;
/// Name of the file with the name of the newest report shown to the user.
const NOTICE_FILE: &str = "crash-told";
/// When the window opened, if this process has one.
static WINDOW_START: OnceLock<Instant> = OnceLock::new();
/// Start of the line with the time from then to the crash.
const UPTIME_LINE: &str = "seconds since the window opened: ";
/// A crash within this time means that the start failed, in seconds.
const FAILED_START_SECONDS: u64 = 60;
/// Prefixes of standard library panics whose quotes contain code, not data.
const CODE_QUOTES: [&str; 3] = [
    "called `Result::unwrap()` on an `Err` value: ",
    "called `Option::unwrap()` on a `None` value",
    "called `Result::expect_err()` on an `Ok` value: ",
];

/// Installs a hook that writes a report for each panic, after the previous hook has run.
pub(super) fn install_panic_hook() {
    let before = std::panic::take_hook();
    let reported: Mutex<BTreeSet<String>> = Mutex::default();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let number = {
            let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
            if reported.len() >= MAX_CRASH_REPORTS_PER_PROCESS || !reported.insert(place.clone()) {
                return;
            }
            reported.len()
        };
        tracing::error!(place, "panic");
        let folder = super::CRASH_FOLDER.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(path) = folder.and_then(|folder| write_report(&folder, number, &place, panic)) {
            // `eprintln` would panic if standard error is closed.
            let _ = writeln!(std::io::stderr(), "tracebook: a crash report is in {}", path.display());
        }
        super::flush();
    }));
}

fn write_report(folder: &Path, number: usize, place: &str, panic: &PanicHookInfo<'_>) -> Option<PathBuf> {
    create_private_folders(folder).ok()?;
    remove_oldest(folder);
    let path = folder.join(format!("crash-{:013}-{}-{number}.txt", millis_since_1970(), std::process::id()));
    let message = shown_message(panic.payload_as_str().unwrap_or("no message"), super::is_content_logged());
    let uptime = WINDOW_START.get().map(|start| format!("{UPTIME_LINE}{}\n", start.elapsed().as_secs()));
    let uptime = uptime.unwrap_or_default();
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    let report = format!(
        "Tracebook {} on {} {}\nthread: {thread}\nplace: {place}\nmessage: {message}\n{uptime}\n{}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        Backtrace::force_capture()
    );
    let mut file = open_private_file(&path).ok()?;
    file.write_all(report.as_bytes()).ok()?;
    Some(path)
}

fn millis_since_1970() -> u64 {
    super::millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns a panic's message without its quotes, which may be a note's text.
fn shown_message(message: &str, whole: bool) -> String {
    if whole {
        return message.to_owned();
    }
    let code = CODE_QUOTES.iter().find(|start| message.starts_with(**start)).map_or(0, |start| start.len());
    match message[code..].find(['`', '"', '\'', '“', '\n']) {
        Some(at) => format!("{}… (what it quotes is left out)", &message[..code + at]),
        None => message.to_owned(),
    }
}

/// Returns the names of the reports in a folder, oldest first.
fn crash_reports(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("crash-") && name.ends_with(".txt")).collect();
    names.sort();
    names
}

fn remove_oldest(folder: &Path) {
    let names = crash_reports(folder);
    let surplus = (names.len() + 1).saturating_sub(MAX_CRASH_REPORTS);
    for name in names.into_iter().take(surplus) {
        // A file that stays is removed after a later crash.
        let _ = std::fs::remove_file(folder.join(name));
    }
}

/// Returns the newest crash report of this workspace, once. Later calls and later processes get `None`.
pub fn take_crash_notice(workspace: &Path) -> Option<PathBuf> {
    let folder = workspace.join(super::LOG_FOLDER);
    let newest = crash_reports(&folder).pop()?;
    let notice = folder.join(NOTICE_FILE);
    if std::fs::read_to_string(&notice).is_ok_and(|told| told >= newest) {
        return None;
    }
    // If this can't be recorded, don't notify the user at every start.
    std::fs::write(notice, &newest).ok()?;
    Some(folder.join(newest))
}

/// Records that this process opens the window now, so that a crash soon afterwards counts as a failed start.
pub fn record_window_start() {
    WINDOW_START.get_or_init(Instant::now);
}

/// Returns whether the window crashed within a minute of its start, by the crash report.
pub fn crashed_at_start(report: &Path) -> bool {
    let text = std::fs::read_to_string(report).unwrap_or_default();
    let uptime = text.lines().find_map(|line| line.strip_prefix(UPTIME_LINE)?.parse::<u64>().ok());
    uptime.is_some_and(|seconds| seconds < FAILED_START_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_quotes_is_left_out() {
        let text = "byte index 1 is not a char boundary; it is inside 'ä' (bytes 0..2) of `älter`";
        assert_eq!(
            shown_message(text, false),
            "byte index 1 is not a char boundary; it is inside … (what it quotes is left out)"
        );
        assert_eq!(shown_message(text, true), text);
        let text = "called `Result::unwrap()` on an `Err` value: Missing(\"secret\")";
        let shown = shown_message(text, false);
        assert!(shown.contains("Missing(") && !shown.contains("secret"), "{shown}");
        assert_eq!(shown_message("index out of bounds", false), "index out of bounds");
    }

    #[test]
    fn a_panic_leaves_a_report_that_is_told_of_once_and_old_ones_go() {
        let workspace = tempfile::tempdir().expect("a folder");
        let folder = workspace.path().join(super::super::LOG_FOLDER);
        std::fs::create_dir(&folder).expect("made");
        for number in 0..MAX_CRASH_REPORTS + 3 {
            std::fs::write(folder.join(format!("crash-{number:013}-1-1.txt")), "old").expect("written");
        }
        super::super::set_crash_folder(folder.clone());
        install_panic_hook();
        let failed = std::thread::spawn(|| panic!("planned, in a note that says `private words`")).join();
        drop(std::panic::take_hook());
        assert!(failed.is_err());
        let reports = crash_reports(&folder);
        assert_eq!(reports.len(), MAX_CRASH_REPORTS);
        let newest = folder.join(reports.last().expect("a report"));
        let text = std::fs::read_to_string(&newest).expect("read");
        assert!(text.contains("message: planned, in a note that says …"), "{text}");
        assert!(text.contains("crash.rs") && text.contains("a_panic_leaves_a_report"), "{text}");
        assert!(!text.contains("private words"), "{text}");
        assert_eq!(take_crash_notice(workspace.path()), Some(newest));
        assert_eq!(take_crash_notice(workspace.path()), None);
    }
}
