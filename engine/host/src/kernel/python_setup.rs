//! Sets up a full Python next to the notes: finds an interpreter, creates an environment in the volume's folder, and
//! installs a Jupyter kernel and packages into it. The commands run only after the user has seen them. All steps wait
//! for disks, programs and the network, so they run on threads of their own.

use crate::maintenance::secrets::PASSPHRASE_VARIABLE;
use crate::process_group::{end_process_group, start_in_own_group};
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the environment's folder, which is searched for kernels.
const ENVIRONMENT_FOLDER: &str = ".venv";
/// Package that provides the Jupyter kernel.
const KERNEL_PACKAGE: &str = "ipykernel";
/// Oldest Python version, as major and minor, that current kernels support.
const OLDEST_PYTHON: (u32, u32) = (3, 9);
/// Maximum bytes of a program's output line; longer ones are cut.
const MAX_SETUP_LINE_BYTES: u64 = 2_000;
/// Number of last output lines that are searched for the reason of a failure.
const MAX_EXAMINED_LINES: usize = 60;
/// Maximum number of entries of an environment that are listed as modules.
const MAX_LISTED_MODULES: usize = 5_000;
/// Maximum number of packages installed at once.
const MAX_SETUP_PACKAGES: usize = 50;
/// Python code that prints an interpreter's version, and whether it can create environments.
const PROBE: &str = "import sys\nprint('%d.%d.%d' % sys.version_info[:3])\ntry:\n    import ensurepip, venv\n    \
                     print('venv')\nexcept ImportError:\n    pass\n";
/// Modules of the standard library that the built-in Python lacks, and that need no package.
const STANDARD_MODULES: &[&str] = &[
    "bz2",
    "cProfile",
    "crypt",
    "curses",
    "dbm",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "lzma",
    "nis",
    "profile",
    "pstats",
    "pty",
    "readline",
    "spwd",
    "sqlite3",
    "ssl",
    "tkinter",
    "tracemalloc",
    "tty",
    "turtle",
    "venv",
    "zipapp",
];
/// Packages whose names differ from those of their modules.
const RENAMED_PACKAGES: &[(&str, &str)] = &[
    ("Crypto", "pycryptodome"),
    ("PIL", "pillow"),
    ("bs4", "beautifulsoup4"),
    ("cv2", "opencv-python"),
    ("dateutil", "python-dateutil"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("fitz", "pymupdf"),
    ("pptx", "python-pptx"),
    ("serial", "pyserial"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("yaml", "pyyaml"),
];

/// Returns the package that contains a module; `None` if it's in the standard library.
pub fn package_of_module(module: &str) -> Option<&str> {
    let module = module.split('.').next().unwrap_or(module);
    let renamed = RENAMED_PACKAGES.iter().find(|(name, _)| *name == module).map(|(_, package)| *package);
    (!STANDARD_MODULES.contains(&module)).then(|| renamed.unwrap_or(module))
}

/// Settings of a Python setup.
#[derive(Clone, Debug, Default)]
pub struct PythonSetup {
    /// The folder in which the environment is created.
    pub folder: PathBuf,
    /// Packages besides the kernel, by their names in the package index.
    pub packages: Vec<String>,
    /// Folders that cells and agents can write: no interpreter is run from there.
    pub shared: Vec<PathBuf>,
    /// Environment variables that replace those of this process.
    pub variables: Vec<(String, OsString)>,
}

/// The commands of a setup, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupPlan {
    /// The environment's folder.
    pub environment: PathBuf,
    /// Whether the environment exists already, so that packages are only added.
    pub is_existing: bool,
    /// The programs with their arguments.
    pub commands: Vec<Vec<String>>,
    variables: Vec<(String, OsString)>,
}

/// Error of a Python setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError {
    /// The failure, as a sentence.
    pub why: String,
    /// What to do about it.
    pub advice: String,
}

impl SetupError {
    fn new(why: impl Into<String>, advice: impl Into<String>) -> SetupError {
        SetupError { why: why.into(), advice: advice.into() }
    }
}

impl Display for SetupError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.why, self.advice)
    }
}

/// Progress of a running setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupProgress {
    /// A command starts.
    Command(String),
    /// A program has printed a line.
    Line(String),
    /// The setup has ended.
    Ended(Result<(), SetupError>),
}

impl PythonSetup {
    /// Determines the commands to run. Starts interpreters to get their versions.
    ///
    /// # Errors
    /// Returns an error if no Python can create an environment, a package's name isn't valid, or something is in the
    /// way.
    pub fn plan(&self) -> Result<SetupPlan, SetupError> {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.[],=<>!~".contains(c))
        };
        if let Some(bad) = self.packages.iter().find(|name| !is_name(name)) {
            return Err(SetupError::new(format!("“{bad}” isn't the name of a package."), "Type names like pandas."));
        }
        let environment = self.folder.join(ENVIRONMENT_FOLDER);
        let own_python = if cfg!(windows) {
            environment.join("Scripts").join("python.exe")
        } else {
            environment.join("bin").join("python")
        };
        let is_existing = environment.symlink_metadata().is_ok();
        if is_existing && !(environment.join("pyvenv.cfg").is_file() && own_python.exists()) {
            return Err(SetupError::new(
                format!("{} is there, but it's no Python environment.", environment.display()),
                "Rename or remove it, then try again.",
            ));
        }
        let word = |path: &Path| path.to_string_lossy().into_owned();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut commands = Vec::new();
        let uv = self.find_program("uv");
        if !is_existing {
            let python = self.find_python(uv.is_some())?;
            commands.push(match &uv {
                Some(uv) => words(&[&word(uv), "venv", "--python", &word(&python), &word(&environment)]),
                None => words(&[&word(&python), "-I", "-m", "venv", &word(&environment)]),
            });
        } else if uv.is_none() && !has_pip(&environment) {
            commands.push(words(&[&word(&own_python), "-I", "-m", "ensurepip"]));
        }
        let mut install = match &uv {
            Some(uv) => words(&[&word(uv), "pip", "install", "--python", &word(&own_python)]),
            None => words(&[&word(&own_python), "-Im", "pip", "install", "--no-input", "--disable-pip-version-check"]),
        };
        install.push(KERNEL_PACKAGE.to_owned());
        install.extend(self.packages.iter().filter(|name| *name != KERNEL_PACKAGE).take(MAX_SETUP_PACKAGES).cloned());
        commands.push(install);
        Ok(SetupPlan { environment, is_existing, commands, variables: self.variables.clone() })
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        let own = self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        own.or_else(|| std::env::var_os(name))
    }

    /// Returns all programs with this name on the path, except those that cells or agents could have put there.
    pub(super) fn programs<'a>(&'a self, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        let listed = self.variable("PATH").map(|list| std::env::split_paths(&list).collect::<Vec<_>>());
        let name = if cfg!(windows) { format!("{name}.exe") } else { name.to_owned() };
        let found = listed.unwrap_or_default().into_iter().filter(|folder| folder.is_absolute());
        found.map(move |folder| folder.join(&name)).filter(|path| {
            let real = path.canonicalize();
            let is_shared = |path: &Path| self.shared.iter().any(|folder| path.starts_with(folder));
            path.is_file() && !is_shared(path) && real.is_ok_and(|real| !is_shared(&real))
        })
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.programs(name).next()
    }

    /// Returns the first interpreter that is new enough and can create environments; uv creates them by itself.
    fn find_python(&self, has_uv: bool) -> Result<PathBuf, SetupError> {
        let mut unfit = None;
        for path in self.programs("python3").chain(self.programs("python")) {
            let Some((version, has_venv)) = probe_python(&path, &self.variables) else { continue };
            let mut numbers = version.split('.').filter_map(|number| number.parse::<u32>().ok());
            let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else { continue };
            let has_venv = has_uv || has_venv;
            if (major, minor) >= OLDEST_PYTHON && has_venv {
                return Ok(path);
            }
            unfit.get_or_insert(if has_venv {
                format!("{} is Python {version}, which is too old.", path.display())
            } else {
                format!("{} (Python {version}) can't make environments: its module venv is missing.", path.display())
            });
        }
        let why = unfit.unwrap_or_else(|| "There's no Python on this computer.".to_owned());
        Err(SetupError::new(why, format!("{} Then try again.", install_advice())))
    }
}

/// Runs an interpreter for its version, and whether it can create environments; `None` if it doesn't run.
pub(super) fn probe_python(path: &Path, variables: &[(String, OsString)]) -> Option<(String, bool)> {
    let mut probe = Command::new(path);
    probe.args(["-I", "-c", PROBE]).stdin(Stdio::null()).stderr(Stdio::null());
    probe.envs(variables.iter().map(|(name, value)| (name, value)));
    let answer = String::from_utf8_lossy(&probe.output().ok()?.stdout).into_owned();
    let mut lines = answer.lines();
    Some((lines.next()?.to_owned(), lines.next() == Some("venv")))
}

/// Returns how to install a Python with venv on this system.
fn install_advice() -> String {
    if cfg!(target_os = "macos") {
        return "Install Python from python.org, or with `brew install python`.".to_owned();
    } else if cfg!(windows) {
        return "Install Python from python.org, or with `winget install Python.Python.3.13`.".to_owned();
    }
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let ids: Vec<&str> = release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|ids| ids.trim_matches('"').split_whitespace())
        .collect();
    let managers = [
        ("debian", "sudo apt install python3 python3-venv"),
        ("ubuntu", "sudo apt install python3 python3-venv"),
        ("fedora", "sudo dnf install python3"),
        ("rhel", "sudo dnf install python3"),
        ("arch", "sudo pacman -S python"),
        ("suse", "sudo zypper install python3"),
        ("alpine", "sudo apk add python3"),
    ];
    let fitting = managers.iter().find(|(id, _)| ids.contains(id));
    match fitting {
        Some((_, command)) => format!("Install it: `{command}`."),
        None => "Install Python 3.9 or newer with its module venv.".to_owned(),
    }
}

/// Returns whether an environment has pip; those created by uv have none.
fn has_pip(environment: &Path) -> bool {
    let libraries = std::fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let mut packages = libraries.map(|folder| folder.path().join("site-packages"));
    packages.any(|folder| folder.join("pip").is_dir()) || environment.join("Lib").join("site-packages/pip").is_dir()
}

/// Returns the names of the top-level modules in a kernel's environment.
pub fn environment_modules(kernel_json: &Path) -> Vec<String> {
    // The path is PREFIX/share/jupyter/kernels/NAME/kernel.json.
    let Some(prefix) = kernel_json.ancestors().nth(5) else { return Vec::new() };
    let libraries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    let versions = libraries.filter(|folder| folder.file_name().to_string_lossy().starts_with("python3"));
    let places = versions.map(|folder| folder.path().join("site-packages"));
    let entries = places.chain([prefix.join("Lib").join("site-packages")]).filter_map(|place| place.read_dir().ok());
    let mut found: Vec<String> = entries
        .flatten()
        .flatten()
        .take(MAX_LISTED_MODULES)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (stem, ending) = name.split_once('.').unwrap_or((&name, ""));
            let is_module = ending.is_empty() || ending == "py" || ending.ends_with("so") || ending.ends_with("pyd");
            let is_name = stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && stem.starts_with(|c: char| c.is_ascii_alphabetic());
            (is_module && is_name).then(|| stem.to_owned())
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Formats a command as a shell line.
pub fn shell_line(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:+@".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A running setup. Dropping it stops it.
pub struct RunningSetup {
    progress: Receiver<SetupProgress>,
    stop: Arc<SetupStop>,
}

/// Handle that stops the programs of a setup.
#[derive(Default)]
pub(super) struct SetupStop {
    is_stopped: AtomicBool,
    child: Mutex<Option<Child>>,
}

impl RunningSetup {
    /// Runs a job on a thread of its own. `wake` is called whenever there's progress.
    pub(super) fn start_job(
        job: impl FnOnce(&SetupStop, &dyn Fn(SetupProgress)) -> Result<(), SetupError> + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> RunningSetup {
        let (tell, progress) = channel();
        let stop = Arc::new(SetupStop::default());
        let stopped = stop.clone();
        std::thread::spawn(move || {
            let ended = job(&stopped, &|news| {
                let _ = tell.send(news); // nobody may listen any more
                wake();
            });
            let _ = tell.send(SetupProgress::Ended(ended)); // as above
            wake();
        });
        RunningSetup { progress, stop }
    }

    /// Returns the next progress event, if there is one, without waiting.
    pub fn next_progress(&self) -> Option<SetupProgress> {
        self.progress.try_recv().ok()
    }

    /// Waits for the next progress event; `None` once the setup has ended.
    pub fn wait_progress(&self) -> Option<SetupProgress> {
        self.progress.recv().ok()
    }

    /// Kills the running program and its children.
    pub fn stop(&self) {
        self.stop.is_stopped.store(true, Ordering::Release);
        if let Some(child) = self.stop.child.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            end_process_group(child);
        }
    }
}

impl Drop for RunningSetup {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SetupPlan {
    /// Runs the plan on a thread of its own. `wake` is called whenever there's progress.
    pub fn start(self, wake: impl Fn() + Send + 'static) -> RunningSetup {
        let job = move |stop: &SetupStop, tell: &dyn Fn(SetupProgress)| {
            let ended = self.run(stop, tell);
            if ended.is_err() && !self.is_existing {
                // A half-created environment would block the next attempt. It may not exist yet.
                let _ = std::fs::remove_dir_all(&self.environment);
            }
            ended
        };
        RunningSetup::start_job(job, wake)
    }

    /// Returns a plan of these commands, which create a new environment.
    pub(super) fn in_new_folder(
        environment: PathBuf,
        commands: Vec<Vec<String>>,
        variables: Vec<(String, OsString)>,
    ) -> SetupPlan {
        SetupPlan { environment, is_existing: false, commands, variables }
    }

    pub(super) fn run(&self, stop: &SetupStop, tell: &dyn Fn(SetupProgress)) -> Result<(), SetupError> {
        let left = if self.is_existing { "Some packages may be installed already." } else { "Nothing was installed." };
        for words in &self.commands {
            tell(SetupProgress::Command(shell_line(words)));
            let mut tail = Vec::new();
            let status = self.run_command(words, stop, &mut |line| {
                if tail.len() == MAX_EXAMINED_LINES {
                    tail.remove(0);
                }
                tail.push(line.clone());
                tell(SetupProgress::Line(line));
            });
            if stop.is_stopped.load(Ordering::Acquire) {
                return Err(SetupError::new("The setup was stopped.", left));
            }
            match status {
                Ok(status) if status.success() => {}
                Ok(status) => return Err(explain_failure(&tail.join("\n"), words, status)),
                Err(error) => {
                    let program = words.first().map_or("", String::as_str);
                    return Err(SetupError::new(format!("{program} can't be started: {error}."), "Try again."));
                }
            }
        }
        Ok(())
    }

    fn run_command(
        &self,
        words: &[String],
        stop: &SetupStop,
        line: &mut dyn FnMut(String),
    ) -> std::io::Result<ExitStatus> {
        let [program, arguments @ ..] = words else { return Err(std::io::ErrorKind::InvalidInput.into()) };
        let (output, into) = std::io::pipe()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(into.try_clone()?).stderr(into);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // Lines arrive when they're printed.
        command.env("PYTHONUNBUFFERED", "1").env("NO_COLOR", "1");
        // An activated environment isn't the one that is created here.
        command.env_remove("VIRTUAL_ENV").env_remove("PYTHONHOME").env_remove(PASSPHRASE_VARIABLE);
        start_in_own_group(&mut command);
        // Python would import modules that are in its folder, and uv obeys settings there: both could be the notes'.
        command.current_dir(if cfg!(windows) { std::env::temp_dir() } else { PathBuf::from("/") });
        {
            let mut running = stop.child.lock().unwrap_or_else(PoisonError::into_inner);
            if stop.is_stopped.load(Ordering::Acquire) {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            *running = Some(command.spawn()?);
        }
        drop(command); // and with it our end of the pipe
        let mut output = BufReader::new(output);
        let mut bytes = Vec::new();
        while output.by_ref().take(MAX_SETUP_LINE_BYTES).read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            let text = String::from_utf8_lossy(&bytes);
            // A progress bar overwrites its own line.
            let text = text.trim_end().rsplit('\r').next().unwrap_or_default();
            let text = text.trim_end();
            if !text.is_empty() {
                line(text.to_owned());
            }
            bytes.clear();
        }
        let child = stop.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        child.map_or(Err(std::io::ErrorKind::NotFound.into()), |mut child| child.wait())
    }
}

/// Explains the output of a failed command, with advice.
fn explain_failure(output: &str, words: &[String], status: ExitStatus) -> SetupError {
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| output.contains(phrase));
    let missing = output.lines().rev().find_map(|line| line.split("No matching distribution found for ").nth(1));
    let is_wheels_only = words.iter().any(|word| word == "--no-build" || word.starts_with("--only-binary"));
    let check =
        if is_wheels_only { "Check its name, and that it has a wheel." } else { "Check its name, then try again." };
    if has(&["No space left on device", "Disk quota exceeded", "not enough space on the disk"]) {
        return SetupError::new("The disk is full.", "Free some space, then try again.");
    }
    if has(&[
        "NewConnectionError",
        "ConnectTimeoutError",
        "Connection refused",
        "Temporary failure in name resolution",
        "Name or service not known",
        "Network is unreachable",
        "Failed to establish a new connection",
        "ProxyError",
        "Read timed out",
        "error sending request",
        "dns error",
    ]) {
        return SetupError::new(
            "The package index can't be reached.",
            "Check the network connection and the proxy, then try again.",
        );
    }
    if let Some(name) = missing {
        return SetupError::new(format!("There's no package {} for this Python.", name.trim()), check);
    }
    let unknown = output.lines().find_map(|line| {
        line.split(" was not found in the package registry").next().filter(|start| start.len() < line.len())
    });
    if let Some(name) = unknown.and_then(|start| start.split_whitespace().last()) {
        return SetupError::new(format!("There's no package {name}."), "Check the name, then try again.");
    }
    if has(&["No interpreter found for Python", "Failed to inspect Python interpreter", "No download found for"]) {
        return SetupError::new("That Python isn't on this computer.", "Install it, or choose another version.");
    }
    if has(&["No solution found", "was not found in the package registry"]) {
        return SetupError::new("A package can't be found for this Python.", check);
    }
    if has(&["No module named pip", "No module named 'pip'"]) {
        return SetupError::new("The environment has no pip.", "Remove the folder .venv, then try again.");
    }
    if has(&["ensurepip is not available", "No module named venv", "No module named ensurepip"]) {
        return SetupError::new(
            "This Python can't make environments: its module venv is missing.",
            format!("{} Then try again.", install_advice()),
        );
    }
    if has(&["Permission denied", "Read-only file system"]) {
        return SetupError::new("The folder can't be written.", "Check its permissions, then try again.");
    }
    let program = words.first().map_or("", String::as_str);
    SetupError::new(format!("{program} has failed ({status})."), "Its output above says why. Then try again.")
}

/// Forwards a setup's progress to a listener that may go away.
pub fn follow_setup(
    running: &RunningSetup,
    mut tell: impl FnMut(&str) -> std::io::Result<()>,
) -> Result<(), SetupError> {
    while let Some(progress) = running.wait_progress() {
        let told = match progress {
            SetupProgress::Command(line) => tell(&format!("$ {line}")),
            SetupProgress::Line(line) => tell(&line),
            SetupProgress::Ended(ended) => return ended,
        };
        if told.is_err() {
            running.stop();
        }
    }
    Err(SetupError::new("The setup has ended too early.", "Try again."))
}

#[cfg(test)]
mod tests {
    use super::{PythonSetup, environment_modules, explain_failure, package_of_module, shell_line};
    use std::process::ExitStatus;

    #[test]
    fn modules_have_packages() {
        assert_eq!(package_of_module("pandas"), Some("pandas"));
        assert_eq!(package_of_module("sklearn.linear_model"), Some("scikit-learn"));
        assert_eq!(package_of_module("ssl"), None);
    }

    #[test]
    fn names_of_packages_are_no_options() {
        for bad in ["--index-url=http://x", "a b", "", "../x", "x;y", "git+https://x"] {
            let setup = PythonSetup { packages: vec![bad.to_owned()], ..PythonSetup::default() };
            assert!(setup.plan().is_err_and(|error| error.why.contains("isn't the name of a package")), "{bad}");
        }
    }

    #[test]
    fn no_python_says_what_to_install() {
        let folder = tempfile::tempdir().expect("a folder");
        let variables = vec![("PATH".to_owned(), folder.path().into())];
        let setup = PythonSetup { folder: folder.path().to_owned(), variables, ..PythonSetup::default() };
        let error = setup.plan().expect_err("there is none");
        assert_eq!(error.why, "There's no Python on this computer.");
        assert!(error.advice.contains("nstall"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn failures_are_explained() {
        use std::os::unix::process::ExitStatusExt;
        let why = |output: &str| explain_failure(output, &[], ExitStatus::from_raw(256)).why;
        assert_eq!(why("OSError: [Errno 28] No space left on device"), "The disk is full.");
        assert_eq!(
            why("x\nERROR: No matching distribution found for nope"),
            "There's no package nope for this Python."
        );
        // A package that would have to be built looks the same to pip.
        for (option, advice) in [("--only-binary=:all:", "it has a wheel"), ("--no-deps", "try again")] {
            let output = "ERROR: No matching distribution found for nope";
            let error = explain_failure(output, &[option.to_owned()], ExitStatus::from_raw(256));
            assert!(error.advice.contains(advice), "{error}");
        }
        let offline = "NewConnectionError(…)\nERROR: No matching distribution found for pandas";
        assert_eq!(why(offline), "The package index can't be reached.");
        assert_eq!(why("/usr/bin/python3: No module named pip"), "The environment has no pip.");
    }

    #[test]
    fn modules_of_an_environment_are_listed() {
        let folder = tempfile::tempdir().expect("a folder");
        let packages = folder.path().join("lib/python3.12/site-packages");
        for name in ["pandas", "pandas-2.0.dist-info", "_private", "__pycache__"] {
            std::fs::create_dir_all(packages.join(name)).expect("made");
        }
        for name in ["six.py", "fast.cpython-312-x86_64-linux-gnu.so", "note.txt"] {
            std::fs::write(packages.join(name), "").expect("written");
        }
        let kernel = folder.path().join("share/jupyter/kernels/python3/kernel.json");
        assert_eq!(environment_modules(&kernel), ["fast", "pandas", "six"]);
    }

    #[test]
    fn commands_are_shown_as_a_shell_reads_them() {
        let words = ["/usr/bin/python3", "-m", "venv", "/home/me/My notes/.venv"].map(str::to_owned);
        assert_eq!(shell_line(&words), "/usr/bin/python3 -m venv '/home/me/My notes/.venv'");
    }
}
