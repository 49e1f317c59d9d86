//! Tools as the agent loop calls them: jobs in, outcomes out. Files, shell, Python, git, the network.

#[cfg(target_os = "linux")]
mod browser;
mod fetch;
mod files;
mod git;
mod hostile;
mod mcp;
mod programs;
mod python;
mod shell;

use crate::program::{PROGRAM, strict};
use agent::tool_job::{ToolJob, ToolOutcome};
use host::tools::{ToolRunner, ToolWorkspace};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use store::BlobHash;
use store::disk::BlobStore;

/// The time limit of any job in these tests.
const PATIENCE: Duration = Duration::from_secs(90);

/// A volume, a workspace, and a home with a key in it, each a folder of its own.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    pub(crate) tools: ToolRunner,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut ToolWorkspace)) -> Bench {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in ["notes", "W", "home/.ssh"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("made");
        }
        std::fs::write(dir.path().join("home/.ssh/id_ed25519"), b"planted key").expect("written");
        std::fs::write(dir.path().join("home/letter.txt"), b"mine").expect("written");
        std::fs::write(dir.path().join("W/tracebook.db"), b"planted database").expect("written");
        let mut place = ToolWorkspace::new(PROGRAM.into(), &dir.path().join("W"));
        place.home = Some(dir.path().join("home"));
        change(&mut place);
        Bench { tools: ToolRunner::new(place), dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("there").join(name)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path("notes")
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder above")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{error}: {name}"))
    }

    pub(crate) fn blob(&self, hash: BlobHash) -> Vec<u8> {
        BlobStore::new(&self.path("W")).read(hash).expect("a blob")
    }

    pub(crate) fn start(&self, id: u64, job: ToolJob) -> Receiver<ToolOutcome> {
        let (tell, told) = channel();
        self.tools.start(id, job, move |outcome| tell.send(outcome).expect("waited for"));
        told
    }

    #[track_caller]
    pub(crate) fn done(&self, job: ToolJob) -> ToolOutcome {
        self.start(1, job).recv_timeout(PATIENCE).expect("a job ends")
    }

    pub(crate) fn shell(&self, command: &str) -> ToolOutcome {
        self.done(self.line(command, 20))
    }

    pub(crate) fn line(&self, command: &str, seconds: u64) -> ToolJob {
        let command = command.to_owned();
        ToolJob::Shell { root: self.root(), path: String::new(), command, seconds, network: false }
    }

    pub(crate) fn python(&self, code: &str, seconds: u64) -> ToolJob {
        ToolJob::Python {
            root: self.root(),
            code: code.to_owned(),
            seconds,
            web: None,
            grants: store::ToolGrants::default(),
            packages: None,
        }
    }

    /// Whether this machine has a sandbox. Without one, asserts that jobs that need it are refused.
    pub(crate) fn confined(&self) -> bool {
        let Err(why) = self.tools.check_confinement() else { return true };
        assert!(!strict(), "no sandbox on this machine, and it is asked for: {why}");
        let refused = self.shell("true");
        assert!(!refused.success && refused.text.contains("sandbox"), "{refused:?}");
        println!("left out: {why}");
        false
    }

    /// The number of processes whose working folder is in the volume.
    pub(crate) fn left(&self) -> usize {
        let root = self.root();
        let all = std::fs::read_dir("/proc").expect("listed").flatten();
        all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&root))).count()
    }
}
