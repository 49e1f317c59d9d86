//! Starts the window. If one has the workspace open already, that one is shown instead.

use crate::{
    CliError, EXIT_DONE, EXIT_FAILED, ProgramHooks, maintenance, make_sample, package_commands, program_path,
    sample_workspace, serve_request, served,
};
use host::WorkspaceOptions;
use host::fs::copy;
use host::socket::{self, SocketError, SocketRequest};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use store::disk::io_reason;

/// First word of a request to show the window. The path to open follows, if there is one.
const SHOW_WINDOW: &str = "--show-window";

/// Tells the window of this process which paths other starts of the program ask it to show.
static WINDOW_REQUESTS: Mutex<Option<Sender<Option<PathBuf>>>> = Mutex::new(None);

/// What the window opens with.
#[derive(Debug)]
pub struct WindowStart {
    /// A folder or file to open.
    pub path: Option<PathBuf>,
    /// Whether it opens in safe mode: no tabs are restored, and no cells, runs and schedules start.
    pub is_safe: bool,
    /// Receives what later starts of the program ask for: that the window comes to the front, and opens a path.
    pub requests: Receiver<Option<PathBuf>>,
}

/// Answers a request to show the window. Returns `None` for other requests.
pub(super) fn answer_request(words: &[String]) -> Option<u8> {
    let (_, path) = words.split_first().filter(|(first, _)| *first == SHOW_WINDOW)?;
    let window = WINDOW_REQUESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_shown = window.as_ref().is_some_and(|window| window.send(path.first().map(PathBuf::from)).is_ok());
    Some(if is_shown { EXIT_DONE } else { EXIT_FAILED })
}

/// Opens the window, with a folder or file if `path` names one. A window that has the workspace open comes to the front
/// and opens the path. Another owner of the workspace adds the folder as a volume.
pub(super) fn start_window(
    folder: &Path,
    path: Option<PathBuf>,
    (json, is_safe): (bool, bool),
    hooks: ProgramHooks,
) -> Result<u8, CliError> {
    let owner = host::workspace_exists(folder).then(|| host::owner_socket(folder).ok().flatten()).flatten();
    let Some(socket) = owner else { return open_window(folder, path, is_safe, hooks) };
    let whole = path.as_ref().map(|path| copy::absolute_path(Path::new("/"), &path.to_string_lossy()));
    // With `--json`, programs want to know what is in the volume. A window that is open isn't in safe mode.
    if !json && !is_safe && show_window(&socket, whole.as_deref()) {
        return Ok(EXIT_DONE);
    }
    let Some(whole) = whole else { return open_window(folder, None, is_safe, hooks) };
    let volume = if copy::is_folder(&whole) { whole.as_path() } else { whole.parent().unwrap_or(&whole) };
    let mut words = vec!["open".to_owned(), volume.display().to_string()];
    words.extend(json.then(|| "--json".to_owned()));
    let request = SocketRequest { words, folder: PathBuf::from("/"), terminal: io::stdout().is_terminal() };
    match socket::send_request(&socket, &request) {
        Ok(code) => Ok(code),
        // The owning process has ended.
        Err(SocketError::NotStarted(_)) => open_window(folder, path, is_safe, hooks),
        Err(SocketError::Interrupted(error)) => Err(CliError::workspace(format!(
            "the program that has the workspace open ended in the middle of this ({}); try again",
            io_reason(&error)
        ))),
    }
}

/// Asks the owner of the workspace to show its window. Returns whether it has one.
fn show_window(socket: &str, path: Option<&Path>) -> bool {
    let path = path.map(|path| path.display().to_string());
    let words = std::iter::once(SHOW_WINDOW.to_owned()).chain(path).collect();
    let request = SocketRequest { words, folder: PathBuf::from("/"), terminal: false };
    matches!(socket::exchange(socket, &request, &[], &mut io::sink(), &mut io::sink()), Ok(EXIT_DONE))
}

/// Opens the window. At the first start, creates the workspace with the sample.
fn open_window(folder: &Path, path: Option<PathBuf>, is_safe: bool, hooks: ProgramHooks) -> Result<u8, CliError> {
    if !host::has_display() {
        return Err(CliError::usage(
            "there is no display here, so no window; the command line does everything: see `tracebook --help`",
        ));
    }
    let begun = std::time::Instant::now();
    let first = !host::workspace_exists(folder);
    maintenance::refuse_notes_folder(folder)?;
    let driver = served::open_released(folder, WorkspaceOptions { program: program_path()?, create: true })?;
    let (window, requests) = channel();
    *WINDOW_REQUESTS.lock().unwrap_or_else(PoisonError::into_inner) = Some(window);
    if driver.serve_requests(serve_request).is_err() {
        tracing::warn!("there is no local socket; commands wait until the window is closed");
    }
    if first {
        let handle = driver.handle();
        let folder = driver.folder().to_owned();
        std::thread::spawn(move || {
            let made = make_sample(&handle, &folder).and_then(|()| sample_workspace::show_welcome(&handle));
            if made.is_err() {
                tracing::warn!("the sample or the welcome page could not be made");
            }
        });
    }
    let handle = driver.handle();
    std::thread::spawn(move || {
        if let Err(error) = package_commands::finish_interrupted(&handle) {
            let why = host::logging::content_field(&error.why);
            tracing::warn!(why, "a change of packages could not be finished");
        }
    });
    let tell = std::env::var_os("TRACEBOOK_FIRST_FRAME").is_some();
    let first_frame = move || {
        if tell {
            eprintln!("first frame after {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
        }
    };
    let start = WindowStart { path, is_safe, requests };
    (hooks.window)(driver, start, Box::new(first_frame)).map(|()| EXIT_DONE).map_err(CliError::workspace)
}
