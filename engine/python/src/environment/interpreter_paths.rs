//! Finds the files that an interpreter needs without starting it: its own, its standard library, and its environment's
//! packages.

use std::path::{Path, PathBuf};

/// Maximum number of entries of a library folder that are examined.
const MAX_LIBRARY_ENTRIES: usize = 20_000;

/// Returns the files and folders that `python` reads to run. Of folders that hold more than a Python, such as a home
/// folder, only the library itself is opened. `home` stays closed in any case.
pub(super) fn interpreter_paths(python: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut found = vec![python.to_owned()];
    let own = environment_folder(python);
    if let Some(folder) = &own {
        add_prefix(folder, home, true, &mut found);
    }
    if let Ok(real) = python.canonicalize() {
        if let Some(prefix) = real.parent().and_then(Path::parent).filter(|prefix| Some(*prefix) != own.as_deref()) {
            add_prefix(prefix, home, false, &mut found);
        }
        found.push(real);
    }
    found
}

/// Returns the folder of the virtual environment that an interpreter belongs to, or `None` outside of one.
pub(super) fn environment_folder(python: &Path) -> Option<PathBuf> {
    let folder = python.parent()?.parent()?;
    folder.join("pyvenv.cfg").is_file().then(|| folder.to_owned())
}

/// Adds a prefix or its library folders. `is_own`: the folder holds an environment and nothing else.
fn add_prefix(prefix: &Path, home: Option<&Path>, is_own: bool, found: &mut Vec<PathBuf>) {
    let holds_home = home.is_some_and(|home| home.starts_with(prefix));
    let holds_more = holds_home
        || home.is_some_and(|home| home.join(".local") == prefix)
        || [Path::new("/"), Path::new("/usr"), Path::new("/usr/local")].contains(&prefix);
    if (is_own && !holds_home) || (!holds_more && library_entries(prefix).next().is_some()) {
        found.push(prefix.to_owned());
    } else {
        found.extend(library_entries(prefix));
    }
}

/// Returns the standard libraries below a prefix, and the libraries that an interpreter there is linked with.
fn library_entries(prefix: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = ["lib", "lib64"].map(|name| prefix.join(name)).into_iter().filter_map(|lib| lib.read_dir().ok());
    let entries = folders.flat_map(|entries| entries.flatten().take(MAX_LIBRARY_ENTRIES));
    entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("python3") || name.starts_with("libpython3")
        })
        .map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::interpreter_paths;
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_home_folder_stays_shut_and_an_environment_is_open() {
        let folder = std::env::temp_dir().join(format!("tracebook-paths-{}", std::process::id()));
        let home = folder.join("home");
        for path in ["home/bin", "home/lib/python3.12", "home/secret", "home/notes/env/bin", "home/apart/lib/python3.9"]
        {
            fs::create_dir_all(folder.join(path)).expect("made");
        }
        fs::create_dir_all(home.join("apart/bin")).expect("made");
        fs::write(home.join("bin/python"), "").expect("written");
        fs::write(home.join("apart/bin/python"), "").expect("written");
        fs::write(home.join("notes/env/pyvenv.cfg"), "").expect("written");
        let link = home.join("notes/env/bin/python");
        std::os::unix::fs::symlink(home.join("bin/python"), &link).expect("linked");
        let open = |python: &Path| interpreter_paths(python, Some(&home));
        let own = open(&link);
        assert!(own.contains(&home.join("notes/env")) && own.contains(&home.join("lib/python3.12")), "{own:?}");
        assert!(own.iter().all(|path| !home.starts_with(path)), "{own:?}");
        assert!(open(&home.join("apart/bin/python")).contains(&home.join("apart")));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
