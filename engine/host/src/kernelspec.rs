//! Jupyter kernels of this machine: found where Jupyter looks, and in the environments that lie beside a note or on the
//! path. Only names are read; nothing is started here.

use engine::KernelSpec;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A longer `kernel.json` is none.
const LONGEST: u64 = 1 << 20;
/// Kernels that are listed.
const MOST: usize = 200;
/// So far up from a note's folder an environment is looked for.
const UP: usize = 8;

/// What the process was started with.
type Surroundings<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The kernels that a note in this folder may use; of those with one name the first that is found.
pub(crate) fn find(folder: &Path) -> Vec<KernelSpec> {
    find_with(folder, &|name| std::env::var_os(name))
}

fn find_with(folder: &Path, surroundings: Surroundings<'_>) -> Vec<KernelSpec> {
    let (mut found, mut names) = (Vec::new(), BTreeSet::new());
    for place in places(folder, surroundings) {
        let Ok(entries) = std::fs::read_dir(place.join("kernels")) else { continue };
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(MOST).collect();
        folders.sort();
        for spec in folders.iter().filter_map(|folder| read(folder)) {
            if found.len() < MOST && names.insert(spec.name.clone()) {
                found.push(spec);
            }
        }
    }
    found
}

/// The folders that may hold a folder `kernels`, the nearest first.
fn places(folder: &Path, surroundings: Surroundings<'_>) -> Vec<PathBuf> {
    let below = |prefix: &Path| prefix.join("share").join("jupyter");
    let beside = folder.ancestors().take(UP).flat_map(|folder| [".venv", "venv"].map(|name| below(&folder.join(name))));
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
    // The Python that a shell would start has its kernels beside its `bin`.
    let programs = listed("PATH").unwrap_or_default();
    places.extend(programs.iter().filter_map(|programs| programs.parent()).map(below));
    places.extend(["/usr/local/share/jupyter", "/usr/share/jupyter"].map(PathBuf::from));
    places
}

/// A kernel's folder.
fn read(folder: &Path) -> Option<KernelSpec> {
    let name = folder.file_name()?.to_str().filter(|name| is_name(name))?.to_owned();
    let path = folder.join("kernel.json");
    if std::fs::metadata(&path).ok().is_none_or(|about| !about.is_file() || about.len() > LONGEST) {
        return None;
    }
    let spec: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    let has_program = spec["argv"].as_array().is_some_and(|words| !words.is_empty());
    let text = |key: &str| spec[key].as_str().map(|text| text.chars().take(200).collect::<String>());
    has_program.then(|| KernelSpec {
        title: text("display_name").unwrap_or_else(|| name.clone()),
        language: text("language").unwrap_or_default(),
        name,
        path,
    })
}

/// Jupyter's rule for names of kernels: letters, digits, `-`, `.` and `_` of ASCII.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::find_with;
    use std::path::Path;

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
            let found = find_with(folder, &surroundings);
            let ours = found.into_iter().filter(|spec| spec.path.starts_with(dir.path()));
            ours.map(|spec| format!("{}: {}", spec.name, spec.title)).collect::<Vec<_>>()
        };
        if cfg!(all(unix, not(target_os = "macos"))) {
            assert_eq!(titles(&dir.path().join("project/deep")), ["python3: Project", "ir: R", "tool: tool"]);
            assert_eq!(titles(dir.path()), ["ir: R", "python3: User", "tool: tool"]);
        }
    }
}
