//! A Podman of a test's own: images and containers are in a temporary folder, and its service ends with the test.

use crate::program::{is_root, processes_naming, strict, until};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The programs of the image `busy:1`, which is made of a static busybox.
const IMAGE_PROGRAMS: [&str; 10] = ["sh", "cat", "echo", "sleep", "id", "yes", "touch", "ls", "grep", "head"];
/// Where Debian's packages busybox-static and busybox have their program.
const BUSYBOX_PROGRAMS: [&str; 2] = ["/bin/busybox", "/usr/bin/busybox"];

/// A running engine with the image `busy:1`.
pub(crate) struct TestEngine {
    folder: tempfile::TempDir,
    service: Child,
}

impl TestEngine {
    /// Starts an engine. `None` if this machine has no Podman, which on the project's own machine is a failure.
    pub(crate) fn start() -> Option<TestEngine> {
        TestEngine::with_registry("")
    }

    /// The same for an engine that gets images from a registry at this address without TLS.
    pub(crate) fn with_registry(registry: &str) -> Option<TestEngine> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let on_path = |name: &str| std::env::split_paths(&folders).find(|folder| folder.join(name).is_file());
        let busybox = BUSYBOX_PROGRAMS.iter().map(Path::new).find(|program| program.is_file());
        // Without root, Podman needs much of the machine that tests can't give it.
        let there = on_path("podman").is_some() && on_path("runc").is_some() && is_root();
        let (true, Some(busybox)) = (there, busybox) else {
            assert!(!strict(), "TRACEBOOK_CI=1 and no Podman as root: `apt install podman runc busybox-static`");
            println!("left out: there is no Podman with runc and a static busybox for root");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let settings = "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n";
        std::fs::write(at("containers.conf"), settings).expect("written");
        let registries = format!("[[registry]]\nlocation = \"{registry}\"\ninsecure = true\n");
        std::fs::write(at("registries.conf"), if registry.is_empty() { "" } else { &registries }).expect("written");
        std::fs::create_dir_all(at("image/bin")).expect("made");
        std::fs::copy(busybox, at("image/bin/busybox")).expect("copied");
        for program in IMAGE_PROGRAMS {
            symlink("busybox", at("image/bin").join(program)).expect("linked");
        }
        for name in ["tmp", "proc", "sys", "dev", "etc"] {
            std::fs::create_dir_all(at("image").join(name)).expect("made");
        }
        let packed = Command::new("tar").arg("-C").arg(at("image")).arg("-cf").arg(at("image.tar")).arg(".").status();
        assert!(packed.expect("tar is there").success());
        let socket = at("podman.sock");
        let mut command = TestEngine::command(folder.path());
        command.args(["system", "service", "--time", "0"]).arg(format!("unix://{}", socket.display()));
        let service = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        let engine = TestEngine { service, folder };
        until("Podman listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        let image = engine.folder.path().join("image.tar");
        engine.podman(&["import", "--change", "CMD [\"echo\",\"of-the-image\"]", &image.to_string_lossy(), "busy:1"]);
        Some(engine)
    }

    fn command(folder: &Path) -> Command {
        let mut command = Command::new("podman");
        command.env("CONTAINERS_CONF", folder.join("containers.conf"));
        command.env("CONTAINERS_REGISTRIES_CONF", folder.join("registries.conf"));
        command.arg("--root").arg(folder.join("root")).arg("--runroot").arg(folder.join("run"));
        command.args(["--storage-driver", "vfs"]).stdin(Stdio::null());
        command
    }

    /// Runs a command of Podman's own, beside the service. Returns what it prints.
    #[track_caller]
    pub(crate) fn podman(&self, words: &[&str]) -> String {
        let done = TestEngine::command(self.folder.path()).args(words).output().expect("podman is there");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("podman.sock")
    }

    /// The names of all containers, whatever their state.
    pub(crate) fn containers(&self) -> Vec<String> {
        self.podman(&["ps", "--all", "--format", "{{.Names}}"]).lines().map(ToOwned::to_owned).collect()
    }

    /// What still runs of this engine's containers.
    pub(crate) fn processes(&self) -> Vec<String> {
        let all = processes_naming(&self.folder.path().join("root").to_string_lossy());
        // Podman keeps the guard of an ended command in a container for five minutes.
        all.into_iter().filter(|line| line.contains("conmon") && !line.contains("--exit-delay")).collect()
    }
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        // A test that failed may have left some.
        let _ = TestEngine::command(self.folder.path()).args(["rm", "--all", "--force", "--time", "0"]).output();
        let _ = self.service.kill();
        let _ = self.service.wait();
    }
}
