//! Checks the interpreter that the user chooses for a note's cells: one of conda or pyenv, or an environment elsewhere.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Oldest version of Python, as major and minor, in which cells run.
const OLDEST_PYTHON: (u32, u32) = (3, 9);
/// Time that the interpreter has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval at which an answer is awaited.
const ANSWER_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum size of the answer in bytes.
const MAX_ANSWER_BYTES: u64 = 16 << 10;
/// Program that prints the version and the interpreter itself, because a shim of pyenv starts another one.
const PROBE_SOURCE: &str = "import sys; print('', 'tracebook', *sys.version_info[:2], sys.executable, sep='\\t')";

/// Why an interpreter can't be chosen.
#[derive(Debug, thiserror::Error)]
pub enum InterpreterError {
    /// There's no file.
    #[error("{0}: there's no such program; name the Python itself, such as ~/miniconda3/envs/data/bin/python")]
    Missing(String),
    /// It's a folder.
    #[error("{0} is a folder; name the Python in it, such as {0}/bin/python")]
    Folder(String),
    /// Code that isn't the user's could have changed it.
    #[error("{0} is in a folder that cells and agents can write; choose a Python elsewhere")]
    Shared(String),
    /// It can't be started.
    #[error("{path} can't be started ({source}); name a Python that can be executed")]
    NotStarted {
        /// Path of the program.
        path: String,
        /// The I/O error.
        source: std::io::Error,
    },
    /// It's another program, or doesn't answer.
    #[error("{0} isn't a Python that answers; name one of version 3.9 or newer")]
    NoPython(String),
    /// It's too old.
    #[error("{path} is Python {version}; cells need 3.9 or newer")]
    TooOld {
        /// Path of the program.
        path: String,
        /// Its version.
        version: String,
    },
}

/// Returns the whole path of the interpreter that `path` names. Starts it once, with the user's rights, so it must not
/// be in `shared`, the folders that cells and agents can write.
///
/// # Errors
/// Returns an error if cells can't run in it.
pub fn check_interpreter(path: &Path, shared: &[PathBuf]) -> Result<PathBuf, InterpreterError> {
    let named = path.display().to_string();
    let about = path.metadata().map_err(|_| InterpreterError::Missing(named.clone()))?;
    if about.is_dir() {
        return Err(InterpreterError::Folder(named));
    }
    refuse_shared(path, shared)?;
    let answer = ask_interpreter(path)?;
    let fields = answer.lines().rev().find_map(|line| line.strip_prefix("\ttracebook\t"));
    let fields: Vec<&str> = fields.map(|fields| fields.splitn(3, '\t').collect()).unwrap_or_default();
    let [major, minor, executable] = fields[..] else { return Err(InterpreterError::NoPython(named)) };
    let version = major.parse::<u32>().ok().zip(minor.parse::<u32>().ok());
    let executable = PathBuf::from(executable);
    match version {
        Some(version) if version < OLDEST_PYTHON => {
            Err(InterpreterError::TooOld { path: named, version: format!("{major}.{minor}") })
        }
        Some(_) if executable.is_absolute() && executable.is_file() => {
            refuse_shared(&executable, shared)?;
            Ok(executable)
        }
        Some(_) | None => Err(InterpreterError::NoPython(named)),
    }
}

/// Returns an error if a program, or what its links lead to, is in one of these folders.
fn refuse_shared(path: &Path, shared: &[PathBuf]) -> Result<(), InterpreterError> {
    let real = path.canonicalize();
    let places = [Some(path), real.as_deref().ok()];
    let is_inside = |folder: &PathBuf| {
        let real = folder.canonicalize();
        places
            .iter()
            .flatten()
            .any(|path| path.starts_with(folder) || real.as_ref().is_ok_and(|real| path.starts_with(real)))
    };
    match shared.iter().any(is_inside) {
        true => Err(InterpreterError::Shared(path.display().to_string())),
        false => Ok(()),
    }
}

/// Returns what the interpreter prints about itself.
fn ask_interpreter(path: &Path) -> Result<String, InterpreterError> {
    let failed = |source| InterpreterError::NotStarted { path: path.display().to_string(), source };
    let mut command = Command::new(path);
    command.args(["-I", "-c", PROBE_SOURCE]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    if !ends_in_time(&mut child).map_err(failed)? {
        return Err(InterpreterError::NoPython(path.display().to_string()));
    }
    let Some(output) = child.stdout.take() else { return Ok(String::new()) };
    let (tell, told) = std::sync::mpsc::channel();
    // Processes that the program has left may hold its output for as long as they like.
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        let read = output.take(MAX_ANSWER_BYTES).read_to_end(&mut answer);
        let _ = tell.send(read.map(|_| answer)); // nobody waits any more
    });
    let answer = told.recv_timeout(ANSWER_TIMEOUT);
    let answer = answer.map_err(|_| InterpreterError::NoPython(path.display().to_string()))?.map_err(failed)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Waits for the end of a process. Kills it and returns `false` if it takes too long.
fn ends_in_time(child: &mut Child) -> std::io::Result<bool> {
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() > ANSWER_TIMEOUT {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(ANSWER_CHECK_INTERVAL);
    }
    Ok(true)
}
