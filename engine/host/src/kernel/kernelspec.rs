//! Finds Jupyter kernels on this machine: where Jupyter looks, and in environments next to a note or on the path.
//! Nothing is started here. For each kernel, this determines what exactly would be started, and whether anyone but the
//! user can change that. Such a kernel isn't started before the user has seen and approved it.

use engine::KernelSpec;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use store::BlobHash;
use store::disk::BlobHasher;

/// Maximum size of a `kernel.json` in bytes; larger ones are ignored.
const MAX_KERNEL_JSON_BYTES: u64 = 1 << 20;
/// Maximum number of listed kernels.
const MAX_LISTED_KERNELS: usize = 200;
/// Number of parent folders of a note that are searched for an environment.
const MAX_PARENT_FOLDERS: usize = 8;
/// Maximum number of files examined in an environment. A kernel in a larger one that others can change isn't offered.
const MAX_ENVIRONMENT_FILES: usize = 200_000;
/// Maximum size of an examined program in bytes.
const MAX_PROGRAM_BYTES: u64 = 1 << 30;

/// Lookup of the process's environment variables.
type KernelEnvironment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A kernel that was found.
pub(crate) struct FoundKernel {
    /// Description of the kernel.
    pub(crate) spec: KernelSpec,
    /// The command that may be started, as JSON for the bridge.
    pub(crate) allowed: String,
}

/// Returns the kernels that a note in this folder may use; if several have the same name, the first one found. `shared`
/// are the folders that cells and agents can write.
pub(crate) fn find_kernels(folder: &Path, shared: &[PathBuf]) -> Vec<FoundKernel> {
    find_kernels_with(folder, shared, &|name| std::env::var_os(name))
}

/// Returns the Jupyter kernels of this machine and of environments next to a folder that cells and agents may write.
pub fn find_jupyter_kernels(folder: &Path) -> Vec<KernelSpec> {
    find_kernels(folder, &[folder.to_owned()]).into_iter().map(|found| found.spec).collect()
}

/// Returns the folders that cells and agents can write, each also by its canonical path.
fn with_canonical_paths(shared: &[PathBuf]) -> Vec<PathBuf> {
    shared.iter().flat_map(|folder| [Some(folder.clone()), folder.canonicalize().ok()]).flatten().collect()
}

fn find_kernels_with(folder: &Path, shared: &[PathBuf], surroundings: KernelEnvironment<'_>) -> Vec<FoundKernel> {
    let (mut found, mut names) = (Vec::new(), BTreeSet::new());
    let look = KernelSearch { folder, shared: with_canonical_paths(shared), surroundings };
    for place in kernel_folders(folder, surroundings) {
        let Ok(entries) = std::fs::read_dir(place.join("kernels")) else { continue };
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(MAX_LISTED_KERNELS).collect();
        folders.sort();
        for kernel in folders.iter().filter_map(|folder| look.read_kernel_folder(folder)) {
            if found.len() < MAX_LISTED_KERNELS && names.insert(kernel.spec.name.clone()) {
                found.push(kernel);
            }
        }
    }
    found
}

/// Returns the folders that may contain a folder `kernels`, nearest first.
fn kernel_folders(folder: &Path, surroundings: KernelEnvironment<'_>) -> Vec<PathBuf> {
    let below = |prefix: &Path| prefix.join("share").join("jupyter");
    let beside = folder
        .ancestors()
        .take(MAX_PARENT_FOLDERS)
        .flat_map(|folder| [".venv", "venv"].map(|name| below(&folder.join(name))));
    let mut places: Vec<PathBuf> = beside.collect();
    let listed = |name: &str| surroundings(name).map(|list| std::env::split_paths(&list).collect::<Vec<_>>());
    places.extend(listed("JUPYTER_PATH").unwrap_or_default());
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        places.extend(surroundings(name).map(|prefix| below(Path::new(&prefix))));
    }
    let home = surroundings("HOME").map(PathBuf::from);
    if cfg!(target_os = "macos") {
        places.extend(home.map(|home| home.join("Library").join("Jupyter")));
    } else if cfg!(windows) {
        places.extend(
            ["APPDATA", "PROGRAMDATA"]
                .iter()
                .filter_map(|name| Some(PathBuf::from(surroundings(name)?).join("jupyter"))),
        );
    } else {
        let data = surroundings("XDG_DATA_HOME").map(PathBuf::from);
        places.extend(
            data.or_else(|| home.map(|home| home.join(".local").join("share"))).map(|data| data.join("jupyter")),
        );
    }
    // Python on the path has its kernels next to its `bin`.
    let programs = listed("PATH").unwrap_or_default();
    places.extend(programs.iter().filter_map(|programs| programs.parent()).map(below));
    places.extend(["/usr/local/share/jupyter", "/usr/share/jupyter"].map(PathBuf::from));
    places
}

/// Context of a search for kernels.
struct KernelSearch<'a> {
    /// The note's folder, in which a kernel would start.
    folder: &'a Path,
    /// Folders that cells and agents can write.
    shared: Vec<PathBuf>,
    surroundings: KernelEnvironment<'a>,
}

impl KernelSearch<'_> {
    /// Reads the kernel spec in a folder.
    fn read_kernel_folder(&self, folder: &Path) -> Option<FoundKernel> {
        let name = folder.file_name()?.to_str().filter(|name| is_kernel_name(name))?.to_owned();
        let path = folder.join("kernel.json");
        let bytes = crate::fs::copy::read(&path, MAX_KERNEL_JSON_BYTES)?;
        let spec: Value = serde_json::from_slice(&bytes).ok()?;
        let words: Vec<String> = spec["argv"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let words: Vec<String> =
            words.iter().map(|word| word.replace("{resource_dir}", &folder.to_string_lossy())).collect();
        let program = self.resolve_program(folder, words.first()?)?;
        let real = program.canonicalize().unwrap_or_else(|_| program.clone());
        let text = |key: &str| spec[key].as_str().map(|text| text.chars().take(200).collect::<String>());
        let doubt = self.approval_reason(&path, &program, &real, &words, &spec["env"]);
        let content = BlobHash::of(&bytes).to_string();
        let mut print = SpecFingerprint::default();
        for part in [path.as_path(), &path.canonicalize().ok()?, &program, &real] {
            print.add(part.as_os_str().as_encoded_bytes());
        }
        print.add(&bytes);
        let mut allowed = json!({"content": content, "program": program});
        if doubt.is_some() {
            let hash = hash_file(&real).unwrap_or_default();
            print.add(hash.as_bytes());
            allowed["real"] = real.to_string_lossy().into_owned().into();
            allowed["hash"] = hash.into();
            self.hash_changeable_files(&mut print, folder, &program, &words)?;
        }
        let command = std::iter::once(program.to_string_lossy().into_owned()).chain(words.into_iter().skip(1));
        Some(FoundKernel {
            spec: KernelSpec {
                title: text("display_name").unwrap_or_else(|| name.clone()),
                language: text("language").unwrap_or_default(),
                name,
                path,
                command: command.collect(),
                print: print.finish(),
                doubt,
            },
            allowed: allowed.to_string(),
        })
    }

    /// Resolves the program of a kernel's command. A bare name is looked up first in the environment in which the
    /// kernel is installed, then in the absolute folders of `PATH`. A path relative to the note's folder is refused.
    fn resolve_program(&self, folder: &Path, word: &str) -> Option<PathBuf> {
        if Path::new(word).components().count() != 1 || Path::new(word).is_absolute() {
            return Path::new(word).is_absolute().then(|| PathBuf::from(word));
        }
        let own = folder.ancestors().nth(4).into_iter(); // PREFIX/share/jupyter/kernels/NAME
        let own = own.flat_map(|prefix| [prefix.join("bin").join(word), prefix.join("Scripts").join(with_exe(word))]);
        let listed = (self.surroundings)("PATH").map(|list| std::env::split_paths(&list).collect::<Vec<_>>());
        let listed = listed.unwrap_or_default().into_iter().filter(|folder| folder.is_absolute());
        let mut all =
            own.chain(listed.map(|folder| folder.join(if cfg!(windows) { with_exe(word) } else { word.into() })));
        Some(all.find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("/nonexistent").join(word)))
    }

    fn is_shared(&self, path: &Path) -> bool {
        let inside = |path: &Path| self.shared.iter().any(|folder| path.starts_with(folder));
        inside(path) || path.canonicalize().is_ok_and(|path| inside(&path))
    }

    /// Returns the existing paths in an argument: the whole argument, and its parts separated by `=`, `:` or `;`.
    fn paths_in_word(&self, word: &str) -> Vec<PathBuf> {
        let parts = word.split(['=', ':', ';']).chain([word]).filter(|part| !part.is_empty() && !part.starts_with('-'));
        // This includes paths relative to the note's folder.
        parts.map(|part| self.folder.join(part)).filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    /// Returns why the kernel needs approval, if others can change what it starts.
    fn approval_reason(
        &self,
        path: &Path,
        program: &Path,
        real: &Path,
        words: &[String],
        env: &Value,
    ) -> Option<String> {
        let env = env.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
        let named = words.iter().skip(1).map(String::as_str).chain(env).flat_map(|word| self.paths_in_word(word));
        let prefix = program.parent().and_then(Path::parent).map(Path::to_owned);
        let mut all = [path.to_owned(), program.to_owned(), real.to_owned()].into_iter().chain(named).chain(prefix);
        if let Some(path) = all.find(|path| self.is_shared(path)) {
            return Some(format!("cells and agents can write to {}", path.display()));
        }
        [path, program, real]
            .into_iter()
            .find(|path| is_foreign(path))
            .map(|path| format!("another user owns {}", path.display()))
    }

    /// Adds everything to the fingerprint that would run and that others can change. `None` if there are too many
    /// files.
    fn hash_changeable_files(
        &self,
        print: &mut SpecFingerprint,
        folder: &Path,
        program: &Path,
        words: &[String],
    ) -> Option<()> {
        let mut room = MAX_ENVIRONMENT_FILES;
        let named = words.iter().skip(1).flat_map(|word| self.paths_in_word(word));
        for path in [folder.to_owned()].into_iter().chain(named) {
            print.add_tree(&path, &mut room)?;
        }
        // The environments that contain the kernel's packages.
        let prefixes = [program.parent().and_then(Path::parent), folder.ancestors().nth(4)];
        for prefix in prefixes.into_iter().flatten().filter(|prefix| self.is_shared(prefix)) {
            for part in ["pyvenv.cfg", "bin", "lib", "lib64", "Lib", "Scripts", "conda-meta"] {
                print.add_tree(&prefix.join(part), &mut room)?;
            }
        }
        Some(())
    }
}

fn with_exe(word: &str) -> String {
    format!("{word}.exe")
}

/// Returns whether a file belongs neither to the user nor to the system.
fn is_foreign(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let own = rustix::process::geteuid().as_raw();
        [path.symlink_metadata(), path.metadata()].into_iter().flatten().any(|meta| ![0, own].contains(&meta.uid()))
    }
    #[cfg(not(unix))]
    {
        // Used on Unix only.
        let _ = path;
        false
    }
}

fn hash_file(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    if file.metadata().ok().is_none_or(|meta| !meta.is_file() || meta.len() > MAX_PROGRAM_BYTES) {
        return None;
    }
    let (mut hasher, mut block) = (BlobHasher::default(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut block).ok()? {
            0 => return Some(hasher.finish().to_string()),
            count => hasher.update(&block[..count]),
        }
    }
}

/// Fingerprint of a kernel, which changes with its files.
#[derive(Default)]
struct SpecFingerprint {
    hasher: BlobHasher,
}

impl SpecFingerprint {
    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    /// Adds all files below a path: names, sizes, times, and symlink targets. `None` if there are too many.
    fn add_tree(&mut self, path: &Path, room: &mut usize) -> Option<()> {
        for entry in walkdir::WalkDir::new(path).sort_by_file_name().into_iter().flatten() {
            *room = room.checked_sub(1)?;
            let Ok(meta) = entry.metadata() else { continue };
            self.add(entry.path().as_os_str().as_encoded_bytes());
            if meta.is_symlink() {
                let target = std::fs::read_link(entry.path()).unwrap_or_default();
                self.add(target.as_os_str().as_encoded_bytes());
            } else if meta.is_file() {
                self.add(&metadata_stamp(&meta));
            }
        }
        Some(())
    }

    fn finish(self) -> String {
        self.hasher.finish().to_string()
    }
}

/// Returns bytes that change when the file does. On Unix they include the change time, which can't be set back.
fn metadata_stamp(meta: &Metadata) -> Vec<u8> {
    let mut stamp = format!("{} {}", meta.len(), crate::fs::read::mtime_nanos(meta)).into_bytes();
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        stamp.extend(format!(" {} {} {} {}", meta.ctime(), meta.ctime_nsec(), meta.ino(), meta.mode()).into_bytes());
    }
    stamp
}

/// Returns whether a name follows Jupyter's rule for kernels: ASCII letters, digits, `-`, `.` and `_`.
fn is_kernel_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::{FoundKernel, find_kernels_with};
    use std::path::{Path, PathBuf};

    #[test]
    fn the_nearest_kernel_of_a_name_is_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let put = |place: &str, name: &str, text: &str| {
            let folder = dir.path().join(place).join("kernels").join(name);
            std::fs::create_dir_all(&folder).expect("made");
            std::fs::write(folder.join("kernel.json"), text).expect("written");
        };
        let spec = |title: &str| format!(r#"{{"argv": ["python"], "display_name": "{title}", "language": "python"}}"#);
        put("project/.venv/share/jupyter", "python3", &spec("Project"));
        put("data/jupyter", "python3", &spec("User"));
        put("data/jupyter", "ir", r#"{"argv": ["R"], "display_name": "R", "language": "R"}"#);
        put("data/jupyter", "broken", "{");
        put("data/jupyter", "empty", r#"{"argv": []}"#);
        put("env/share/jupyter", "tool", r#"{"argv": ["tool"]}"#);
        let data = dir.path().join("data");
        let surroundings = |name: &str| match name {
            "XDG_DATA_HOME" => Some(data.clone().into_os_string()),
            "PATH" => Some(dir.path().join("env/bin").into_os_string()),
            _ => None,
        };
        let titles = |folder: &Path| {
            let found = find_kernels_with(folder, &[], &surroundings);
            let ours = found.into_iter().map(|found| found.spec).filter(|spec| spec.path.starts_with(dir.path()));
            ours.map(|spec| format!("{}: {}", spec.name, spec.title)).collect::<Vec<_>>()
        };
        if cfg!(all(unix, not(target_os = "macos"))) {
            assert_eq!(titles(&dir.path().join("project/deep")), ["python3: Project", "ir: R", "tool: tool"]);
            assert_eq!(titles(dir.path()), ["ir: R", "python3: User", "tool: tool"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_would_be_started_is_told_and_each_change_is_another_kernel() {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path().canonicalize().expect("there");
        let (volume, env) = (dir.join("volume"), dir.join("volume/.venv"));
        let write = |path: &str, text: &str| {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let spec = |more: &str| format!(r#"{{"argv": ["python", "-m", "k"{more}], "language": "python"}}"#);
        write("volume/.venv/share/jupyter/kernels/k/kernel.json", &spec(""));
        write("volume/.venv/bin/python", "one");
        write("data/jupyter/kernels/far/kernel.json", r#"{"argv": ["/bin/sh", "-c", "exit"]}"#);
        write("data/jupyter/kernels/script/kernel.json", r#"{"argv": ["/bin/sh", "run.sh"]}"#);
        write("data/jupyter/kernels/near/kernel.json", r#"{"argv": ["./sh"]}"#);
        write("data/jupyter/kernels/lost/kernel.json", r#"{"argv": ["k"]}"#);
        write("volume/run.sh", "exit");
        write("volume/k", "exit");
        let data = dir.join("data");
        let surroundings = |name: &str| match name {
            "XDG_DATA_HOME" => Some(data.clone().into_os_string()),
            // Relative folders in the path are skipped.
            "PATH" => Some(".::sub".into()),
            _ => None,
        };
        let kernel = |name: &str| -> Option<FoundKernel> {
            let shared: [PathBuf; 1] = [volume.clone()];
            find_kernels_with(&volume, &shared, &surroundings).into_iter().find(|found| found.spec.name == name)
        };
        let doubt = |name: &str| kernel(name).expect(name).spec.doubt;
        let first = kernel("k").expect("found").spec;
        assert_eq!(first.command[0], env.join("bin/python").to_string_lossy());
        assert!(first.doubt.expect("others can change it").contains("cells and agents can write"));
        assert!(doubt("script").is_some(), "its script lies beside the note");
        assert_eq!(doubt("far"), None);
        assert!(kernel("near").is_none(), "a program that is named from the note's folder on");
        assert!(!kernel("lost").expect("found").spec.command[0].starts_with(&*volume.to_string_lossy()));
        // Any change makes it another kernel.
        let mut prints = std::collections::BTreeSet::from([first.print]);
        let mut changed = |what: &str| assert!(prints.insert(kernel("k").expect("found").spec.print), "{what}");
        write("volume/.venv/bin/python", "two");
        changed("the program");
        write("volume/.venv/share/jupyter/kernels/k/kernel.json", &spec(r#", "x""#));
        changed("the command");
        write("volume/.venv/lib/site-packages/sitecustomize.py", "evil");
        changed("what Python imports when it starts");
        write("volume/.venv/pyvenv.cfg", "home = /tmp");
        changed("where its library lies");
        std::fs::remove_file(env.join("bin/python")).expect("removed");
        std::os::unix::fs::symlink("/bin/sh", env.join("bin/python")).expect("linked");
        changed("where the program's link leads");
        let same = (kernel("k").expect("found").spec.print, kernel("k").expect("found").spec.print);
        assert_eq!(same.0, same.1);
    }
}
