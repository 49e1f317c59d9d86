//! A container engine of a test's own, Podman or Docker: images and containers are in a temporary folder, and its
//! service ends with the test.

use crate::program::{is_root, pass, processes_naming, strict, until};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The programs of the image `busy:1`, which is made of a static busybox.
const IMAGE_PROGRAMS: [&str; 10] = ["sh", "cat", "echo", "sleep", "id", "yes", "touch", "ls", "grep", "head"];
/// Where Debian's packages busybox-static and busybox have their program.
const BUSYBOX_PROGRAMS: [&str; 2] = ["/bin/busybox", "/usr/bin/busybox"];
/// Starts Docker's service in mounts of its own, where no containerd of the machine is seen, and nothing is left in the
/// folders of the system that it writes to whatever it's told.
const DOCKER_SCRIPT: &str = r#"for at in /run/containerd /run/docker /etc/docker; do
    mkdir -p "$at" && mount -t tmpfs none "$at" || exit 1
done
exec dockerd "$@""#;
/// Options of Docker's service without which it would change the network of the machine, or read its configuration.
const DOCKER_OPTIONS: [&str; 7] = [
    "--bridge=none",
    "--iptables=false",
    "--ip6tables=false",
    "--ip-forward=false",
    "--ip-masq=false",
    "--storage-driver=vfs",
    "--log-level=warn",
];
/// Maximum time for the processes of an engine that was killed to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Which engine a test uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineKind {
    Podman,
    Docker,
}

impl EngineKind {
    fn program(self) -> &'static str {
        match self {
            EngineKind::Podman => "podman",
            EngineKind::Docker => "docker",
        }
    }

    /// The programs that must be there.
    fn needed_programs(self) -> &'static [&'static str] {
        match self {
            EngineKind::Podman => &["podman", "runc"],
            EngineKind::Docker => &["dockerd", "docker", "containerd", "runc", "unshare"],
        }
    }

    /// What `apt install` needs to be told.
    fn packages(self) -> &'static str {
        match self {
            EngineKind::Podman => "podman runc busybox-static",
            EngineKind::Docker => "docker.io util-linux busybox-static",
        }
    }

    /// What the engine calls itself.
    pub(crate) fn title(self) -> &'static str {
        match self {
            EngineKind::Podman => "Podman Engine ",
            EngineKind::Docker => "Docker Engine ",
        }
    }

    /// Under which name the engine lists the image `busy:1`.
    pub(crate) fn listed_image(self) -> &'static str {
        match self {
            EngineKind::Podman => "localhost/busy:1",
            EngineKind::Docker => "busy:1",
        }
    }

    /// Under which whole name it finds that image.
    pub(crate) fn full_image(self) -> &'static str {
        match self {
            EngineKind::Podman => "localhost/busy:1",
            EngineKind::Docker => "docker.io/library/busy:1",
        }
    }
}

/// A running engine with the image `busy:1`.
pub(crate) struct TestEngine {
    kind: EngineKind,
    service: Child,
    folder: tempfile::TempDir,
}

impl TestEngine {
    /// Starts an engine. `None` if this machine hasn't got it, which on the project's own machine is a failure.
    pub(crate) fn start(kind: EngineKind) -> Option<TestEngine> {
        TestEngine::with_registry(kind, "")
    }

    /// The same for an engine that gets images from a registry at this address without TLS. Docker does so from all
    /// registries at addresses of this machine.
    pub(crate) fn with_registry(kind: EngineKind, registry: &str) -> Option<TestEngine> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let is_on_path = |name: &&str| std::env::split_paths(&folders).any(|folder| folder.join(name).is_file());
        let busybox = BUSYBOX_PROGRAMS.iter().map(Path::new).find(|program| program.is_file());
        let (program, packages) = (kind.program(), kind.packages());
        // Without root, an engine needs much of the machine that tests can't give it.
        let is_there = kind.needed_programs().iter().all(is_on_path) && is_root();
        let (true, Some(busybox)) = (is_there, busybox) else {
            assert!(!strict(), "TRACEBOOK_CI=1 and no {program} as root: `apt install {packages}`");
            println!("left out: there is no {program} with runc and a static busybox for root");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let settings = "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n";
        fs::write(at("containers.conf"), settings).expect("written");
        let registries = format!("[[registry]]\nlocation = \"{registry}\"\ninsecure = true\n");
        fs::write(at("registries.conf"), if registry.is_empty() { "" } else { &registries }).expect("written");
        fs::write(at("daemon.json"), "{}\n").expect("written");
        fs::create_dir_all(at("image/bin")).expect("made");
        fs::copy(busybox, at("image/bin/busybox")).expect("copied");
        for program in IMAGE_PROGRAMS {
            symlink("busybox", at("image/bin").join(program)).expect("linked");
        }
        for name in ["tmp", "proc", "sys", "dev", "etc"] {
            fs::create_dir_all(at("image").join(name)).expect("made");
        }
        let packed = Command::new("tar").arg("-C").arg(at("image")).arg("-cf").arg(at("image.tar")).arg(".").status();
        assert!(packed.expect("tar is there").success());
        let mut command = TestEngine::service(kind, folder.path());
        let log = fs::File::create(at("service.log")).expect("made");
        let service = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("started");
        let mut engine = TestEngine { kind, service, folder };
        let socket = engine.socket();
        let mut is_over = false;
        until("the engine listens", || {
            is_over = engine.service.try_wait().expect("a process").is_some();
            is_over || UnixStream::connect(&socket).is_ok()
        });
        if is_over {
            let why = fs::read_to_string(engine.folder.path().join("service.log")).unwrap_or_default();
            assert!(!strict(), "TRACEBOOK_CI=1 and {program} doesn't start: {why}");
            println!("left out: {program} doesn't start here: {why}");
            return None;
        }
        let image = engine.folder.path().join("image.tar");
        engine.call(&["import", "--change", "CMD [\"echo\",\"of-the-image\"]", &image.to_string_lossy(), "busy:1"]);
        Some(engine)
    }

    /// The command that serves the API.
    fn service(kind: EngineKind, folder: &Path) -> Command {
        let address = format!("unix://{}", folder.join("engine.sock").display());
        match kind {
            EngineKind::Podman => {
                let mut command = TestEngine::client(kind, folder);
                command.args(["system", "service", "--time", "0", &address]);
                command
            }
            EngineKind::Docker => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", DOCKER_SCRIPT, "dockerd", "--host", &address]);
                command.arg("--data-root").arg(folder.join("root")).arg("--exec-root").arg(folder.join("run"));
                command.arg("--pidfile").arg(folder.join("engine.pid"));
                command.arg("--config-file").arg(folder.join("daemon.json")).args(DOCKER_OPTIONS);
                command
            }
        }
    }

    /// The command of the engine's user, still without words.
    fn client(kind: EngineKind, folder: &Path) -> Command {
        let mut command = Command::new(kind.program());
        match kind {
            EngineKind::Podman => {
                command.env("CONTAINERS_CONF", folder.join("containers.conf"));
                command.env("CONTAINERS_REGISTRIES_CONF", folder.join("registries.conf"));
                command.arg("--root").arg(folder.join("root")).arg("--runroot").arg(folder.join("run"));
                command.args(["--storage-driver", "vfs"]);
            }
            EngineKind::Docker => {
                for name in ["DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY"] {
                    command.env_remove(name);
                }
                command.env("DOCKER_CONFIG", folder.join("client"));
                command.arg("--host").arg(format!("unix://{}", folder.join("engine.sock").display()));
            }
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command of the engine's own, beside the API. Returns what it prints.
    #[track_caller]
    pub(crate) fn call(&self, words: &[&str]) -> String {
        let done = TestEngine::client(self.kind, self.folder.path()).args(words).output().expect("it is there");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// The names of all containers, whatever their state.
    pub(crate) fn containers(&self) -> Vec<String> {
        self.call(&["ps", "--all", "--format", "{{.Names}}"]).lines().map(ToOwned::to_owned).collect()
    }

    /// What still runs of this engine's containers.
    pub(crate) fn processes(&self) -> Vec<String> {
        let guards = |line: &String| match self.kind {
            // Podman keeps the guard of an ended command in a container for five minutes.
            EngineKind::Podman => line.contains("conmon") && !line.contains("--exit-delay"),
            EngineKind::Docker => line.contains("containerd-shim"),
        };
        self.own_processes().into_iter().filter(guards).collect()
    }

    /// All processes that name the engine's folder.
    fn own_processes(&self) -> Vec<String> {
        let folder = self.folder.path().to_string_lossy().into_owned();
        // Those of the same process groups are the test's own.
        processes_naming(&folder).into_iter().filter(|line| line.contains(&folder)).collect()
    }

    /// Removes what a test that failed may have left.
    fn remove_containers(&self) {
        let command = || TestEngine::client(self.kind, self.folder.path());
        let _ = match self.kind {
            EngineKind::Podman => command().args(["rm", "--all", "--force", "--time", "0"]).output(),
            EngineKind::Docker => {
                let listed = command().args(["ps", "--all", "--quiet"]).output();
                let listed = listed.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).unwrap_or_default();
                let ids: Vec<&str> = listed.split_whitespace().collect();
                command().args(["rm", "--force"]).args(ids).output()
            }
        };
    }
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        self.remove_containers();
        let _ = self.service.kill();
        let _ = self.service.wait();
        // Docker's containerd is killed with it, and writes to the folder until then.
        let end = Instant::now() + END_TIMEOUT;
        while self.kind == EngineKind::Docker && !self.own_processes().is_empty() && Instant::now() < end {
            pass(Duration::from_millis(20));
        }
    }
}
