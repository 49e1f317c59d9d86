//! The environment of a note whose properties list packages, as PEP 723 lists those of a script. It's resolved by uv or
//! pip, locked in a file next to the note, and stored in the user's cache under the hash of its lock. Notes with the
//! same lock share it. Installing needs the network, so only a command of the user does it; a run only checks that it
//! exists.

use super::python_setup::{PythonSetup, RunningSetup, SetupError, SetupPlan, SetupProgress, SetupStop, probe_python};
use engine::NotePackages;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use store::BlobHash;

/// Suffix of the lock file, after the name of the note's file.
pub(crate) const LOCK_ENDING: &str = ".lock";
/// Prefix of an environment's name while it's being created, followed by the process id.
const UNFINISHED_PREFIX: &str = ".new-";
/// Maximum size of a lock file in bytes; larger ones aren't read.
const MAX_LOCK_BYTES: u64 = 4 << 20;
/// Number of hash digits that name an environment.
const HASH_CHARS: usize = 40;
/// Newest minor version of Python 3 to search for by name.
const NEWEST_PYTHON_MINOR: u32 = 20;
/// Maximum number of packages that a note may list.
const MAX_DEPENDENCIES: usize = 200;

/// Prefixes of the lock file's header lines, which record what it was made from.
const PYTHON_LINE: &str = "# python = ";
const REQUIRES_PYTHON_LINE: &str = "# requires-python = ";
const DEPENDENCIES_LINE: &str = "# dependencies = ";

/// Counter that names the unfinished environments of this process.
static UNFINISHED_COUNT: AtomicU64 = AtomicU64::new(0);

/// An environment that is ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyEnvironment {
    /// The environment's folder.
    pub folder: PathBuf,
    /// Path of its interpreter.
    pub python: PathBuf,
    /// Python's major and minor version, such as `3.12`.
    pub version: String,
    /// The packages with their versions, such as `six==1.17.0`.
    pub packages: Vec<String>,
}

/// Reason why a note's environment can't be used yet, as shown to the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingEnvironment {
    /// There's no lock file.
    #[error("its packages ({0}) aren't installed")]
    NotLocked(String),
    /// The lock file was made from other properties.
    #[error("it lists other packages ({0}) than its lock file has")]
    OtherPackages(String),
    /// The lock file exists, but the environment doesn't.
    #[error("its packages ({0}) aren't installed on this computer")]
    NotInstalled(String),
    /// The lock file can't be used.
    #[error("its lock file {0} can't be used: {1}. Remove it")]
    UnusableLock(PathBuf, String),
}

/// Returns the folder of all notes' environments, next to the science pack's.
pub fn environments_folder() -> PathBuf {
    super::science_pack::PackFolder::of_user().path().with_file_name("environments")
}

/// Returns the path of a note's lock file.
pub fn lock_path(note_file: &Path) -> PathBuf {
    let mut name = OsString::from(note_file);
    name.push(LOCK_ENDING);
    name.into()
}

/// Returns the environment that the note in this file runs in.
///
/// # Errors
/// Returns the reason if the environment that the properties describe doesn't exist.
pub fn find_environment(
    root: &Path,
    note_file: &Path,
    packages: &NotePackages,
) -> Result<ReadyEnvironment, MissingEnvironment> {
    let named = describe(packages);
    let path = lock_path(note_file);
    let lock = match EnvironmentLock::read(&path) {
        Ok(Some(lock)) => lock,
        Ok(None) => return Err(MissingEnvironment::NotLocked(named)),
        Err(why) => return Err(MissingEnvironment::UnusableLock(path, why.to_string())),
    };
    if lock.made_of != *packages {
        return Err(MissingEnvironment::OtherPackages(named));
    }
    lock.find(root).ok_or(MissingEnvironment::NotInstalled(named))
}

/// Lists the packages in a short text.
fn describe(packages: &NotePackages) -> String {
    let python = packages.requires_python.iter().map(|versions| format!("Python {versions}"));
    python.chain(packages.dependencies.iter().cloned()).collect::<Vec<_>>().join(", ")
}

/// Reason why a lock file can't be used.
#[derive(Debug, thiserror::Error)]
enum LockReadError {
    #[error("{0}")]
    NotRead(#[from] std::io::Error),
    #[error("it's longer than 4 MB")]
    TooLong,
    #[error("its first lines don't say what it was made of")]
    NoHead,
    #[error("line {0} isn't a package with its version")]
    OtherLine(usize),
}

/// Content of a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EnvironmentLock {
    /// The properties that it was made from.
    made_of: NotePackages,
    /// Python's major and minor version.
    python: String,
    /// The other lines, as pip and uv read them.
    lines: Vec<String>,
}

impl EnvironmentLock {
    fn read(path: &Path) -> Result<Option<EnvironmentLock>, LockReadError> {
        match path.metadata() {
            Ok(found) if found.len() > MAX_LOCK_BYTES => return Err(LockReadError::TooLong),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        EnvironmentLock::parse(&std::fs::read_to_string(path)?).map(Some)
    }

    fn parse(text: &str) -> Result<EnvironmentLock, LockReadError> {
        let value = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).map(str::trim);
        let python = value(PYTHON_LINE).filter(|python| python.parse::<f32>().is_ok()).ok_or(LockReadError::NoHead)?;
        let listed = value(DEPENDENCIES_LINE).and_then(|list| serde_json::from_str(list).ok());
        let made_of = NotePackages {
            requires_python: value(REQUIRES_PYTHON_LINE).map(ToOwned::to_owned),
            dependencies: listed.ok_or(LockReadError::NoHead)?,
        };
        Ok(EnvironmentLock { made_of, python: python.to_owned(), lines: locked_lines(text)? })
    }

    fn to_text(&self) -> String {
        let mut text = "# Packages locked by Tracebook; pip and uv read this file, too.\n".to_owned();
        text.push_str(&format!("{PYTHON_LINE}{}\n", self.python));
        if let Some(versions) = &self.made_of.requires_python {
            text.push_str(&format!("{REQUIRES_PYTHON_LINE}{versions}\n"));
        }
        text.push_str(&format!("{DEPENDENCIES_LINE}{}\n", serde_json::json!(self.made_of.dependencies)));
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Returns the environment's folder. It depends only on what is installed, so notes can share it.
    fn folder(&self, root: &Path) -> PathBuf {
        let hash = BlobHash::of(format!("{}\n{}", self.python, self.lines.join("\n")).as_bytes()).to_string();
        root.join(hash.get(..HASH_CHARS).unwrap_or(&hash))
    }

    /// Returns the environment, if it exists.
    fn find(&self, root: &Path) -> Option<ReadyEnvironment> {
        let folder = self.folder(root);
        let python = own_python(&folder);
        let is_there = folder.join("pyvenv.cfg").is_file() && python.is_file();
        is_there.then(|| ReadyEnvironment { folder, python, version: self.python.clone(), packages: self.packages() })
    }

    fn packages(&self) -> Vec<String> {
        let named = self.lines.iter().filter(|line| !line.starts_with([' ', '\t']));
        named.map(|line| line.split([' ', ';', '\\']).next().unwrap_or_default().to_owned()).collect()
    }
}

/// Returns the lines of a requirements file that has only exact versions: no options, addresses or other files.
fn locked_lines(text: &str) -> Result<Vec<String>, LockReadError> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let plain = line.trim_end_matches('\\').trim();
        let is_fit = if line.starts_with([' ', '\t']) {
            let digits = plain.strip_prefix("--hash=sha256:");
            digits.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()))
        } else {
            let (requirement, marker) = plain.split_once(';').unwrap_or((plain, ""));
            let is_marker = |c: char| c.is_ascii_alphanumeric() || "_-. '\"<>=!()".contains(c);
            is_requirement(requirement.trim())
                && requirement.contains("==")
                && marker.chars().all(is_marker)
                && !marker.contains(" -")
        };
        if !is_fit {
            return Err(LockReadError::OtherLine(at + 1));
        }
        lines.push(line.to_owned());
    }
    Ok(lines)
}

/// Returns whether a text is a package's name, with optional extras and versions, and not an option or address.
pub fn is_requirement(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.[],=<>!~*+ ".contains(c))
        && !text.contains(" -")
}

/// Returns a required package's name, normalized as the package index compares names.
pub fn requirement_name(text: &str) -> String {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(text.len());
    text[..end].to_lowercase().replace(['_', '.'], "-")
}

/// Converts a typed Python version to the property `requires-python`: `3.12` means any 3.12.
pub fn python_versions(typed: &str) -> String {
    let is_version = typed.chars().all(|c| c.is_ascii_digit() || c == '.') && !typed.is_empty();
    match typed.matches('.').count() {
        _ if !is_version => typed.to_owned(),
        0 => format!(">={typed}"),
        1 => format!("=={typed}.*"),
        _ => format!("=={typed}"),
    }
}

/// Returns whether a Python version satisfies `requires-python`; `None` if that can't be parsed.
fn is_version_wanted(wanted: &str, version: &[u32]) -> Option<bool> {
    let mut fits = true;
    for clause in wanted.split(',').map(str::trim).filter(|clause| !clause.is_empty()) {
        let digits = clause.find(|c: char| c.is_ascii_digit())?;
        let (operator, stated) = clause.split_at(digits);
        let is_prefix = stated.ends_with(".*");
        let numbers = stated.trim_end_matches(".*").split('.').map(|number| number.parse::<u32>().ok());
        let numbers = numbers.collect::<Option<Vec<_>>>()?;
        let begins = version.starts_with(&numbers);
        let order = {
            let padded = |numbers: &[u32]| [0, 1, 2].map(|at| numbers.get(at).copied().unwrap_or(0));
            padded(version).cmp(&padded(&numbers))
        };
        fits &= match operator.trim() {
            "" => begins,
            "==" | "===" if is_prefix || numbers.len() < 3 => begins,
            "==" | "===" => order.is_eq(),
            "!=" if is_prefix => !begins,
            "!=" => order.is_ne(),
            ">=" => order.is_ge(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            "<" => order.is_lt(),
            "~=" => order.is_ge() && version.starts_with(numbers.get(..numbers.len().saturating_sub(1))?),
            _ => return None,
        };
    }
    Some(fits)
}

fn own_python(environment: &Path) -> PathBuf {
    if cfg!(windows) { environment.join("Scripts").join("python.exe") } else { environment.join("bin").join("python") }
}

/// Settings for installing a note's packages.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentSetup {
    /// The note's file; the lock file is written next to it.
    pub note_file: PathBuf,
    /// The packages that the note lists.
    pub packages: NotePackages,
    /// Whether to install exactly what the lock file says, or nothing.
    pub only_locked: bool,
    /// The folder of all environments.
    pub root: PathBuf,
    /// Folders that cells and agents can write: no program is run from there.
    pub shared: Vec<PathBuf>,
    /// Environment variables that replace those of this process.
    pub variables: Vec<(String, OsString)>,
}

/// A folder that is removed on drop.
struct UnfinishedFolder(PathBuf);

impl Drop for UnfinishedFolder {
    fn drop(&mut self) {
        // Leftovers are removed when the next environment is created.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn failed(why: impl Into<String>, advice: impl Into<String>) -> SetupError {
    SetupError { why: why.into(), advice: advice.into() }
}

impl EnvironmentSetup {
    /// Installs on a thread of its own. `wake` is called whenever there's progress. After success, [`find_environment`]
    /// finds the environment.
    pub fn start(self, wake: impl Fn() + Send + 'static) -> RunningSetup {
        RunningSetup::start_job(move |stop, tell| self.plan()?.run(stop, tell), wake)
    }

    /// Determines the commands to run. Starts interpreters to get their versions; writes nothing.
    ///
    /// # Errors
    /// Returns an error if a package's name isn't valid, the lock file can't be used, or there's no matching Python.
    pub fn plan(self) -> Result<EnvironmentPlan, SetupError> {
        self.check_packages()?;
        let path = lock_path(&self.note_file);
        let known = EnvironmentLock::read(&path)
            .map_err(|why| failed(format!("{} can't be used: {why}.", path.display()), "Remove it, then try again."))?;
        let known = known.filter(|lock| lock.made_of == self.packages);
        if self.only_locked && known.is_none() {
            let advice = "Leave --sync out to choose versions and lock them.";
            return Err(failed(format!("{} has no versions for these packages.", path.display()), advice));
        }
        let is_ready = known.as_ref().is_some_and(|lock| lock.find(&self.root).is_some());
        let requirements = known.as_ref().map_or(&self.packages.dependencies, |lock| &lock.lines).clone();
        let count = UNFINISHED_COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = self.root.join(format!("{UNFINISHED_PREFIX}{}-{count}", std::process::id()));
        let mut plan =
            EnvironmentPlan { setup: self, known, folder, requirements, commands: Vec::new(), is_ready, has_uv: false };
        if !is_ready {
            plan.choose_commands()?;
        }
        Ok(plan)
    }

    fn check_packages(&self) -> Result<(), SetupError> {
        let NotePackages { requires_python, dependencies } = &self.packages;
        if let Some(bad) = dependencies.iter().find(|name| !is_requirement(name)) {
            return Err(failed(
                format!("“{bad}” isn't the name of a package."),
                "Type names like pandas or pandas>=2; addresses and options can't be used.",
            ));
        }
        if dependencies.len() > MAX_DEPENDENCIES {
            return Err(failed(format!("There are more than {MAX_DEPENDENCIES} packages."), "Remove some."));
        }
        match requires_python {
            Some(wanted) if is_version_wanted(wanted, &[3, 9, 0]).is_none() => Err(failed(
                format!("“{wanted}” isn't a version of Python."),
                "Write requires-python as 3.12 or \">=3.11\".",
            )),
            _ => Ok(()),
        }
    }

    /// Chooses the interpreter for a new environment: its path, or a version for uv to find or download.
    fn choose_python(
        &self,
        programs: &PythonSetup,
        has_uv: bool,
        known: Option<&EnvironmentLock>,
    ) -> Result<String, SetupError> {
        let locked = known.map(|lock| format!("=={}.*", lock.python));
        let wanted = locked.or_else(|| self.packages.requires_python.clone()).unwrap_or_else(|| ">=3.9".to_owned());
        let names = ["python3".to_owned(), "python".to_owned()].into_iter();
        let names = names.chain((9..=NEWEST_PYTHON_MINOR).rev().map(|minor| format!("python3.{minor}")));
        let mut found = Vec::new();
        for name in names {
            for path in programs.programs(&name).collect::<Vec<_>>() {
                let Some((version, has_venv)) = probe_python(&path, &self.variables) else { continue };
                let numbers: Vec<u32> = version.split('.').filter_map(|number| number.parse().ok()).collect();
                if is_version_wanted(&wanted, &numbers) == Some(true) && (has_uv || has_venv) {
                    return Ok(path.to_string_lossy().into_owned());
                }
                let about = if has_venv { version } else { format!("{version} without venv") };
                if !found.contains(&about) {
                    found.push(about);
                }
            }
        }
        if has_uv {
            return Ok(wanted);
        }
        let there = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        Err(failed(
            format!("There's no Python {wanted} on this computer (found: {there})."),
            "Install that Python with its module venv, or uv, which brings it (`pip install uv`); or choose another \
             one with --python.",
        ))
    }
}

/// The commands that install a note's packages, and nothing else.
#[derive(Debug)]
pub struct EnvironmentPlan {
    setup: EnvironmentSetup,
    /// The lock of these packages, if it's current.
    known: Option<EnvironmentLock>,
    /// The folder in which the environment is created.
    folder: PathBuf,
    /// Lines of the requirements file for the programs.
    requirements: Vec<String>,
    commands: Vec<Vec<String>>,
    is_ready: bool,
    has_uv: bool,
}

impl EnvironmentPlan {
    /// Returns the commands with their arguments, in order; none if the environment exists already.
    pub fn commands(&self) -> &[Vec<String>] {
        &self.commands
    }

    /// Returns whether the environment exists already, so that nothing runs.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Returns the packages to install, as lines of the requirements file without hashes.
    pub fn requirements(&self) -> Vec<&str> {
        let named = self.requirements.iter().filter(|line| !line.starts_with([' ', '\t']));
        named.map(|line| line.trim_end_matches('\\').trim_end()).collect()
    }

    /// Runs the plan on a thread of its own. `wake` is called whenever there's progress. After success,
    /// [`find_environment`] finds the environment.
    pub fn start(self, wake: impl Fn() + Send + 'static) -> RunningSetup {
        RunningSetup::start_job(move |stop, tell| self.run(stop, tell), wake)
    }

    fn run(&self, stop: &SetupStop, tell: &dyn Fn(SetupProgress)) -> Result<(), SetupError> {
        let path = lock_path(&self.setup.note_file);
        let folder = path.parent().unwrap_or(Path::new("."));
        // Check this before downloading: an environment that can't be locked isn't used.
        let mut file = tempfile::Builder::new();
        #[cfg(unix)]
        file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
        let mut file =
            file.prefix(".tracebook-lock-").tempfile_in(folder).map_err(|error| unwritable(folder, &error))?;
        if self.is_ready {
            return Ok(());
        }
        let root = &self.setup.root;
        let unfinished = self.make_unfinished_folder()?;
        let lock = self.install(stop, tell)?;
        let target = lock.folder(root);
        if lock.find(root).is_none() {
            // The existing environment can't run, because its Python is gone.
            let _ = std::fs::remove_dir_all(&target);
            let moved = std::fs::rename(unfinished.0.join("env"), &target);
            if let Some(error) = moved.err().filter(|_| lock.find(root).is_none()) {
                return Err(unwritable(root, &error));
            }
        }
        let written = file.write_all(lock.to_text().as_bytes()).and_then(|()| file.as_file().sync_all());
        written.map_err(|error| unwritable(folder, &error))?;
        file.persist(&path).map(drop).map_err(|error| unwritable(folder, &error.error))
    }

    /// Creates the new folder, and removes those of processes that no longer run.
    fn make_unfinished_folder(&self) -> Result<UnfinishedFolder, SetupError> {
        let root = &self.setup.root;
        let refused = |error| unwritable(root, &error);
        std::fs::create_dir_all(root).map_err(refused)?;
        for entry in root.read_dir().map_err(refused)?.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED_PREFIX)?.split('-').next());
            if number.is_some_and(|number| !Path::new("/proc").join(number).exists())
                && Path::new("/proc/self").exists()
            {
                drop(UnfinishedFolder(entry.path()));
            }
        }
        std::fs::create_dir(&self.folder).map_err(refused)?;
        Ok(UnfinishedFolder(self.folder.clone()))
    }

    fn environment(&self) -> PathBuf {
        self.folder.join("env")
    }

    /// Returns the path of the requirements file.
    fn requirements_file(&self) -> PathBuf {
        self.folder.join("requirements.txt")
    }

    /// Returns the path of the file in which uv locks the versions.
    fn locked_file(&self) -> PathBuf {
        self.folder.join("locked.txt")
    }

    /// Chooses the programs that create the environment.
    fn choose_commands(&mut self) -> Result<(), SetupError> {
        let (shared, variables) = (self.setup.shared.clone(), self.setup.variables.clone());
        let programs = PythonSetup { shared, variables, ..Default::default() };
        let uv = programs.programs("uv").next();
        self.has_uv = uv.is_some();
        let python = self.setup.choose_python(&programs, self.has_uv, self.known.as_ref())?;
        let environment = self.environment();
        let word = |path: &Path| path.to_string_lossy().into_owned();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (own, file_word) = (word(&own_python(&environment)), word(&self.requirements_file()));
        let mut commands = vec![match &uv {
            Some(uv) => words(&[&word(uv), "venv", "--relocatable", "--python", &python, &word(&environment)]),
            None => words(&[&python, "-I", "-m", "venv", &word(&environment)]),
        }];
        if !self.requirements.is_empty() {
            let mut list = &file_word;
            let locked_word = word(&self.locked_file());
            if let (Some(uv), None) = (&uv, &self.known) {
                commands.push(words(&[
                    &word(uv),
                    "pip",
                    "compile",
                    "--python",
                    &own,
                    "--universal",
                    "--no-build",
                    "--generate-hashes",
                    "--no-annotate",
                    "--no-header",
                    "--quiet",
                    "--output-file",
                    &locked_word,
                    &file_word,
                ]));
                list = &locked_word;
            }
            commands.push(match &uv {
                Some(uv) => {
                    words(&[&word(uv), "pip", "install", "--python", &own, "--no-deps", "--no-build", "-r", list])
                }
                None => words(&[
                    &own,
                    "-Im",
                    "pip",
                    "install",
                    "--no-input",
                    "--disable-pip-version-check",
                    "--only-binary=:all:",
                    "-r",
                    list,
                ]),
            });
        }
        self.commands = commands;
        Ok(())
    }

    /// Creates the environment, and returns the lock of what is installed in it.
    fn install(&self, stop: &SetupStop, tell: &dyn Fn(SetupProgress)) -> Result<EnvironmentLock, SetupError> {
        let environment = self.environment();
        let file = self.requirements_file();
        std::fs::write(&file, self.requirements.join("\n") + "\n").map_err(|error| unwritable(&file, &error))?;
        let variables = &self.setup.variables;
        let own = own_python(&environment);
        // Once packages are in it, the new Python runs their code at each start: from then on only behind the walls.
        let mut probed = None;
        for command in &self.commands {
            SetupPlan::in_new_folder(environment.clone(), vec![command.clone()], variables.clone()).run(stop, tell)?;
            probed.get_or_insert_with(|| probe_python(&own, variables));
        }
        if let Some(lock) = &self.known {
            return Ok(lock.clone());
        }
        let broken = |why: String| failed(why, "Try again.");
        let (version, _) = probed.flatten().ok_or_else(|| broken("The new Python doesn't start.".into()))?;
        let text = if self.has_uv && !self.requirements.is_empty() {
            std::fs::read_to_string(self.locked_file()).map_err(|error| broken(format!("uv's lock: {error}.")))?
        } else {
            ::sandbox::installed_packages(&environment).join("\n")
        };
        let lines = locked_lines(&text).map_err(|why| broken(format!("The versions can't be locked: {why}.")))?;
        let python = version.split('.').take(2).collect::<Vec<_>>().join(".");
        Ok(EnvironmentLock { made_of: self.setup.packages.clone(), python, lines })
    }
}

fn unwritable(folder: &Path, error: &std::io::Error) -> SetupError {
    failed(format!("{} can't be written: {error}.", folder.display()), "Check it and its permissions, then try again.")
}

#[cfg(test)]
mod tests {
    use super::{EnvironmentLock, is_requirement, is_version_wanted, locked_lines, python_versions, requirement_name};
    use engine::NotePackages;

    #[test]
    fn versions_of_python_are_compared_as_packages_do() {
        let is = |wanted: &str, version: &[u32]| is_version_wanted(wanted, version);
        for fits in ["3.12", "==3.12.*", ">=3.11,<3.13", "~=3.10", "!=3.13.*", "==3.12", ">3.11", "<=3.12.4"] {
            assert_eq!(is(fits, &[3, 12, 4]), Some(true), "{fits}");
        }
        for other in ["3.11", "==3.1.*", ">=3.13", "~=3.12.5", "!=3.12.*", "<3.12", "==3.12.3"] {
            assert_eq!(is(other, &[3, 12, 4]), Some(false), "{other}");
        }
        for bad in ["new", "three", "=>3", "3.x", "--python"] {
            assert_eq!(is(bad, &[3, 12, 4]), None, "{bad}");
        }
        assert_eq!(python_versions("3.12"), "==3.12.*");
        assert_eq!(python_versions(">=3.11"), ">=3.11");
    }

    #[test]
    fn a_lock_is_read_as_it_was_written_and_holds_nothing_but_versions() {
        let lines = ["six==1.17.0 \\", "    --hash=sha256:00ff", "pywin32==306 ; sys_platform == 'win32'"];
        let lock = EnvironmentLock {
            made_of: NotePackages { requires_python: Some(">=3.11".into()), dependencies: vec!["six<2,>=1".into()] },
            python: "3.12".to_owned(),
            lines: lines.map(ToOwned::to_owned).to_vec(),
        };
        assert_eq!(EnvironmentLock::parse(&lock.to_text()).expect("a lock"), lock);
        assert_eq!(lock.packages(), ["six==1.17.0", "pywin32==306"]);
        for bad in
            ["--index-url http://x", "six", "six @ http://x/six.whl", "-e .", "six==1 --index-url=http://x", "  -r x"]
        {
            assert!(locked_lines(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_compared_as_the_index_does() {
        assert_eq!(requirement_name("Ruamel.YAML[extra] >= 1"), "ruamel-yaml");
        assert!(is_requirement("pandas[excel]>=2,<3") && !is_requirement("a -e b") && !is_requirement("-r x"));
    }
}
