//! The platform that the program runs on, behind the interface of `mixos-go.md` (shared/reference): system, processor,
//! folders, memory, disk, and what is installed. All detection is here; tests pass what it reads.

use crate::maintenance::capabilities::MachineCapability;
use agent::tool_machine::ToolMachine;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use sysinfo::{Disks, System};

/// Folder that exists on Android with Termux.
const TERMUX_FOLDER: &str = "/data/data/com.termux";
/// File in which Linux states its version, and WSL names itself.
const LINUX_VERSION_FILE: &str = "/proc/version";
/// How long a program may take that is asked about the machine.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Sockets of container engines, as they stand by default.
const CONTAINER_SOCKETS: [&str; 3] = ["/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock"];
/// Environment variables that name the socket of a container engine.
const ENGINE_VARS: [&str; 2] = ["DOCKER_HOST", "CONTAINER_HOST"];
/// The shell that runs agents' commands (`sandbox.rs`).
const SHELL: &str = "/bin/sh";
/// Devices that only a machine with a GPU has: NVIDIA's, AMD's and WSL's.
const GPU_DEVICES: [&str; 3] = ["/proc/driver/nvidia/version", "/dev/kfd", "/dev/dxg"];

/// Kind of platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlatformKind {
    /// Android with Termux.
    Termux,
    /// Linux in Windows.
    Wsl,
    /// Linux.
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
    /// Another system.
    Generic,
}

impl PlatformKind {
    /// Returns the name that the reference uses.
    pub fn as_str(self) -> &'static str {
        match self {
            PlatformKind::Termux => "termux",
            PlatformKind::Wsl => "wsl",
            PlatformKind::Linux => "linux",
            PlatformKind::Macos => "macos",
            PlatformKind::Windows => "windows",
            PlatformKind::Generic => "generic",
        }
    }
}

/// What detection reads from the machine. Tests replace it.
pub trait PlatformFacts {
    /// Returns the operating system as Rust names it, such as `linux`.
    fn system(&self) -> String;
    /// Returns whether a file, folder or device exists.
    fn exists(&self, path: &Path) -> bool;
    /// Returns the beginning of a small text file; `None` if it can't be read.
    fn read(&self, path: &Path) -> Option<String>;
    /// Returns an environment variable that isn't empty.
    fn variable(&self, name: &str) -> Option<String>;
}

/// This machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThisMachine;

impl PlatformFacts for ThisMachine {
    fn system(&self) -> String {
        std::env::consts::OS.to_owned()
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn read(&self, path: &Path) -> Option<String> {
        crate::fs::copy::read(path, 4_096).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }
}

/// The interface of a platform.
pub trait PlatformRuntime {
    /// Returns the kind of platform.
    fn platform(&self) -> PlatformKind;
    /// Returns the processor architecture, such as `x86_64`.
    fn arch(&self) -> &'static str;
    /// Returns the folder below which programs are installed: `/`, or Termux's prefix, or the system drive.
    fn root_path(&self) -> PathBuf;
    /// Returns the folder for temporary files.
    fn temp_path(&self) -> PathBuf;
    /// Runs a program without input and a shell, for at most two seconds.
    ///
    /// # Errors
    /// Returns an error if the program isn't there, can't be started, or takes too long.
    fn execute(&self, program: &str, arguments: &[&str]) -> io::Result<Output>;
    /// Returns the memory that this process uses, in bytes; 0 where the system doesn't tell.
    fn memory_usage(&self) -> u64;
    /// Returns the load of all processors over the last minute, in processors; `None` where the system doesn't tell.
    fn cpu_usage(&self) -> Option<f64>;
    /// Returns the free and total space in bytes on the disk that holds a folder.
    fn disk_usage(&self, folder: &Path) -> Option<(u64, u64)>;
    /// Returns whether a container engine listens at its usual socket.
    fn has_docker(&self) -> bool;
    /// Returns whether there is a GPU that programs can compute on.
    fn has_gpu(&self) -> bool;
    /// Returns the memory that all processes together may use, in bytes; 0 where the system doesn't tell.
    fn max_memory(&self) -> u64;
}

/// The platform as detected from facts.
#[derive(Clone, Debug)]
pub struct DetectedPlatform<F> {
    kind: PlatformKind,
    facts: F,
}

/// Detects the platform of this machine.
pub fn detect_platform() -> DetectedPlatform<ThisMachine> {
    DetectedPlatform::from_facts(ThisMachine)
}

impl<F: PlatformFacts> DetectedPlatform<F> {
    /// Detects the platform from facts, in the order of the reference.
    pub fn from_facts(facts: F) -> DetectedPlatform<F> {
        let says_wsl = |text: String| text.to_lowercase().contains("microsoft") || text.contains("WSL");
        let kind = match facts.system().as_str() {
            "android" | "linux" if facts.exists(Path::new(TERMUX_FOLDER)) => PlatformKind::Termux,
            "linux" if facts.read(Path::new(LINUX_VERSION_FILE)).is_some_and(says_wsl) => PlatformKind::Wsl,
            "linux" => PlatformKind::Linux,
            "macos" => PlatformKind::Macos,
            "windows" => PlatformKind::Windows,
            _ => PlatformKind::Generic,
        };
        DetectedPlatform { kind, facts }
    }

    /// Returns the sockets at which a container engine may listen, for this user.
    fn container_sockets(&self) -> Vec<PathBuf> {
        let own = self.facts.variable("XDG_RUNTIME_DIR").into_iter();
        let own = own
            .flat_map(|folder| [Path::new(&folder).join("docker.sock"), Path::new(&folder).join("podman/podman.sock")]);
        let stated = ENGINE_VARS.iter().filter_map(|name| self.facts.variable(name));
        let stated = stated.map(|host| PathBuf::from(host.strip_prefix("unix://").unwrap_or(&host)));
        stated.chain(CONTAINER_SOCKETS.map(PathBuf::from)).chain(own).collect()
    }

    /// Returns what the tools of agents say about this machine. `socket` is the configured one of a container engine.
    pub fn tool_machine(&self, socket: Option<&str>) -> ToolMachine {
        let (system, arch) = (self.kind.as_str().to_owned(), self.arch().to_owned());
        let lacks_containers = socket.is_none() && !self.has_docker();
        ToolMachine { system, arch, shell: SHELL.to_owned(), lacks_containers }
    }
}

impl<F: PlatformFacts> PlatformRuntime for DetectedPlatform<F> {
    fn platform(&self) -> PlatformKind {
        self.kind
    }

    fn arch(&self) -> &'static str {
        std::env::consts::ARCH
    }

    fn root_path(&self) -> PathBuf {
        let variable = |name: &str| self.facts.variable(name).map(PathBuf::from);
        match self.kind {
            PlatformKind::Termux => {
                variable("PREFIX").unwrap_or_else(|| Path::new(TERMUX_FOLDER).join("files").join("usr"))
            }
            PlatformKind::Windows => {
                let drive = self.facts.variable("SystemDrive").unwrap_or_else(|| "C:".to_owned());
                PathBuf::from(format!("{drive}\\"))
            }
            PlatformKind::Wsl | PlatformKind::Linux | PlatformKind::Macos | PlatformKind::Generic => PathBuf::from("/"),
        }
    }

    fn temp_path(&self) -> PathBuf {
        match (self.kind, self.facts.variable("TMPDIR")) {
            (_, Some(folder)) => PathBuf::from(folder),
            (PlatformKind::Termux, None) => self.root_path().join("tmp"),
            (_, None) => std::env::temp_dir(),
        }
    }

    fn execute(&self, program: &str, arguments: &[&str]) -> io::Result<Output> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        while child.try_wait()?.is_none() {
            if begun.elapsed() > PROBE_TIMEOUT {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{program} doesn't answer")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        child.wait_with_output()
    }

    fn memory_usage(&self) -> u64 {
        let (Ok(own), Ok(mut system)) = (sysinfo::get_current_pid(), System::new()) else { return 0 };
        system.refresh_processes(sysinfo::ProcessesToUpdate::Some(&[own]), true);
        system.process(own).map_or(0, sysinfo::Process::memory)
    }

    fn cpu_usage(&self) -> Option<f64> {
        System::load_average().ok().map(|load| load.one)
    }

    fn disk_usage(&self, folder: &Path) -> Option<(u64, u64)> {
        let folder = std::path::absolute(folder).ok()?;
        let folder = folder.ancestors().find_map(|folder| folder.canonicalize().ok())?;
        let disks = Disks::new_with_refreshed_list().ok()?;
        let holding = disks.iter().filter(|disk| folder.starts_with(disk.mount_point()));
        let disk = holding.max_by_key(|disk| disk.mount_point().components().count())?;
        Some((disk.available_space(), disk.total_space()))
    }

    fn has_docker(&self) -> bool {
        self.container_sockets().iter().any(|socket| self.facts.exists(socket))
    }

    fn has_gpu(&self) -> bool {
        match self.kind {
            // Every Mac that runs a supported macOS computes on its GPU.
            PlatformKind::Macos => true,
            PlatformKind::Windows => self.execute("nvidia-smi", &["-L"]).is_ok_and(|output| output.status.success()),
            PlatformKind::Termux | PlatformKind::Wsl | PlatformKind::Linux | PlatformKind::Generic => {
                GPU_DEVICES.iter().any(|device| self.facts.exists(Path::new(device)))
            }
        }
    }

    fn max_memory(&self) -> u64 {
        let Ok(mut system) = System::new() else { return 0 };
        system.refresh_memory();
        let total = system.total_memory();
        // A container may have less than the machine.
        system.cgroup_limits().map_or(total, |limits| limits.total_memory.min(total))
    }
}

/// Returns the lines of `tracebook doctor` about the platform. `folder` is the workspace's.
pub(crate) fn platform_capabilities<F: PlatformFacts>(
    platform: &DetectedPlatform<F>,
    folder: &Path,
) -> Vec<MachineCapability> {
    let line = |name: &str, there: bool, note: String| MachineCapability {
        area: "platform",
        name: name.to_owned(),
        there,
        note,
    };
    let gigabytes = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let release = match (System::long_os_version(), System::kernel_version()) {
        (Ok(version), Ok(kernel)) => format!("{version}, kernel {kernel}"),
        (Ok(version), Err(_)) | (Err(_), Ok(version)) => version,
        (Err(_), Err(_)) => "version unknown".to_owned(),
    };
    let tried = matches!(platform.platform(), PlatformKind::Linux | PlatformKind::Wsl);
    let system = format!("{}, {}: {release}", platform.platform().as_str(), platform.arch());
    let system = if tried { system } else { format!("{system}; Tracebook has not been tried on this system") };
    let (root, temp) = (platform.root_path(), platform.temp_path());
    let (all, used) = (gigabytes(platform.max_memory()), gigabytes(platform.memory_usage()));
    let mut lines = vec![
        line("system", true, system),
        line("folders", true, format!("root {}, temporary files in {}", root.display(), temp.display())),
        line("memory", true, format!("{all:.1} GiB in all, {used:.2} GiB used by this process")),
    ];
    if let Some(load) = platform.cpu_usage() {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        lines.push(line("processors", true, format!("{count}, with a load of {load:.1} in the last minute")));
    }
    lines.push(match platform.disk_usage(folder) {
        Some((free, total)) => {
            let enough = free >= 1 << 30;
            let note = format!("{:.1} of {:.1} GiB free for the workspace", gigabytes(free), gigabytes(total));
            line("disk", enough, if enough { note } else { format!("{note}; make room before it is full") })
        }
        None => line("disk", false, "the free space can't be read".to_owned()),
    });
    let (docker, gpu) = (platform.has_docker(), platform.has_gpu());
    let engine = if docker { "Docker or Podman listens here" } else { "no Docker or Podman listens" };
    let computing = if gpu { "programs can compute on it" } else { "none is found; nothing here needs one" };
    lines.extend([line("containers", docker, engine.to_owned()), line("GPU", gpu, computing.to_owned())]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug, Default)]
    struct FakeMachine {
        system: &'static str,
        files: BTreeMap<&'static str, &'static str>,
        variables: BTreeMap<&'static str, &'static str>,
    }

    impl PlatformFacts for FakeMachine {
        fn system(&self) -> String {
            self.system.to_owned()
        }

        fn exists(&self, path: &Path) -> bool {
            path.to_str().is_some_and(|path| self.files.contains_key(path))
        }

        fn read(&self, path: &Path) -> Option<String> {
            self.files.get(path.to_str()?).map(|text| (*text).to_owned())
        }

        fn variable(&self, name: &str) -> Option<String> {
            self.variables.get(name).map(|value| (*value).to_owned())
        }
    }

    fn machine(system: &'static str, files: &[(&'static str, &'static str)]) -> DetectedPlatform<FakeMachine> {
        let files = files.iter().copied().collect();
        DetectedPlatform::from_facts(FakeMachine { system, files, variables: BTreeMap::new() })
    }

    #[test]
    fn each_platform_is_recognized() {
        let wsl = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) (gcc 11.2.0)";
        let plain = "Linux version 6.1.0-21-amd64 (debian-kernel@lists.debian.org)";
        type Machine<'a> = (&'static str, &'a [(&'static str, &'static str)], PlatformKind);
        let table: [Machine<'_>; 8] = [
            ("linux", &[(LINUX_VERSION_FILE, plain)], PlatformKind::Linux),
            ("linux", &[(LINUX_VERSION_FILE, wsl)], PlatformKind::Wsl),
            ("linux", &[], PlatformKind::Linux),
            ("linux", &[(TERMUX_FOLDER, ""), (LINUX_VERSION_FILE, plain)], PlatformKind::Termux),
            ("android", &[(TERMUX_FOLDER, "")], PlatformKind::Termux),
            ("macos", &[], PlatformKind::Macos),
            ("windows", &[], PlatformKind::Windows),
            ("freebsd", &[(LINUX_VERSION_FILE, wsl)], PlatformKind::Generic),
        ];
        for (system, files, kind) in table {
            assert_eq!(machine(system, files).platform(), kind, "{system} {files:?}");
        }
    }

    #[test]
    fn folders_follow_the_platform() {
        let mut termux = machine("linux", &[(TERMUX_FOLDER, "")]);
        assert_eq!(termux.root_path(), Path::new("/data/data/com.termux/files/usr"));
        assert_eq!(termux.temp_path(), Path::new("/data/data/com.termux/files/usr/tmp"));
        termux.facts.variables.extend([("PREFIX", "/p"), ("TMPDIR", "/t")]);
        assert_eq!((termux.root_path(), termux.temp_path()), (PathBuf::from("/p"), PathBuf::from("/t")));
        assert_eq!(machine("linux", &[]).root_path(), Path::new("/"));
    }

    #[test]
    fn containers_and_processors_for_computing_are_found() {
        assert!(!machine("linux", &[]).has_docker() && !machine("linux", &[]).has_gpu());
        assert!(machine("linux", &[("/var/run/docker.sock", "")]).has_docker());
        assert!(machine("linux", &[("/proc/driver/nvidia/version", "")]).has_gpu());
        let mut rootless = machine("linux", &[("/run/user/1000/podman/podman.sock", "")]);
        assert!(!rootless.has_docker());
        rootless.facts.variables.insert("XDG_RUNTIME_DIR", "/run/user/1000");
        assert!(rootless.has_docker());
        let mut stated = machine("linux", &[("/x/engine.sock", "")]);
        for name in ENGINE_VARS {
            stated.facts.variables = [(name, "unix:///x/engine.sock")].into();
            assert!(stated.has_docker(), "{name}");
        }
        stated.facts.variables = [("DOCKER_HOST", "tcp://192.0.2.1:2375")].into();
        assert!(!stated.has_docker());
    }

    #[test]
    fn tools_follow_the_platform() {
        let tools = |platform: &DetectedPlatform<FakeMachine>, socket: Option<&str>| {
            platform.tool_machine(socket).built_in_tools()
        };
        let has = |tools: &[agent::tool_spec::ToolSpec], name: &str| tools.iter().any(|tool| tool.name == name);
        let wsl = machine("linux", &[(LINUX_VERSION_FILE, "Linux version 5.15 microsoft WSL2")]);
        let bare = tools(&wsl, None);
        let shell = bare.iter().find(|tool| tool.name == "shell").expect("a shell");
        let said = format!("The system is wsl on {}, the shell /bin/sh.", std::env::consts::ARCH);
        assert!(shell.description.ends_with(&said), "{}", shell.description);
        assert!(!bare.iter().any(|tool| tool.name.starts_with("container_")));
        assert!(has(&bare, "browser_open") && has(&bare, "fetch_url"));
        assert!(has(&tools(&wsl, Some("/x/engine.sock")), "container_run"), "one that is configured may start later");
        let docker = machine("linux", &[("/var/run/docker.sock", "")]);
        assert!(has(&tools(&docker, None), "container_run") && has(&tools(&docker, None), "container_list"));
    }

    #[test]
    fn this_machine_tells_what_it_has() {
        let here = detect_platform();
        assert!(here.max_memory() > 100 << 20, "{}", here.max_memory());
        assert!(here.memory_usage() > 1 << 20, "{}", here.memory_usage());
        let (free, total) = here.disk_usage(&std::env::temp_dir().join("not/there/yet")).expect("a disk");
        assert!(free <= total && total > 100 << 20, "{free} of {total}");
        let lines = platform_capabilities(&here, Path::new("/"));
        assert!(lines.iter().any(|line| line.name == "system" && line.note.contains(std::env::consts::ARCH)));
        assert!(here.execute("no-such-program-here", &[]).is_err());
        #[cfg(unix)]
        {
            assert_eq!(here.execute("echo", &["a b"]).expect("ran").stdout, b"a b\n");
            let slow = here.execute("sleep", &["60"]).expect_err("too slow");
            assert_eq!(slow.kind(), io::ErrorKind::TimedOut);
        }
    }
}
