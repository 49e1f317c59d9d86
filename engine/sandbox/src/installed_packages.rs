//! Lists the packages of a Python environment by their metadata. Its Python isn't started for that: packages could have
//! it run their code at every start, by `.pth` files, outside of the walls.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum number of entries of a folder of packages that are looked at.
const MAX_ENTRIES: usize = 20_000;
/// Maximum number of bytes that are read of a package's metadata, which begins with its name and version.
const MAX_METADATA_BYTES: u64 = 64 << 10;
/// Packages that install others, which `pip freeze` leaves out, too.
const INSTALLERS: [&str; 4] = ["distribute", "pip", "setuptools", "wheel"];

/// Returns the packages of an environment in lines such as `numpy==2.4.0`, sorted.
pub fn installed_packages(environment: &Path) -> Vec<String> {
    let libraries = ["lib", "lib64"].into_iter().flat_map(|name| entries_of(&environment.join(name)));
    let libraries = libraries.chain([environment.join("Lib")]);
    let entries = libraries.flat_map(|library| entries_of(&library.join("site-packages")));
    let is_metadata = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "dist-info");
    let found: BTreeSet<String> = entries.filter(is_metadata).filter_map(|path| locked_line(&path)).collect();
    found.into_iter().collect()
}

fn entries_of(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES);
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

/// Returns the line of the package with this metadata; `None` if it installs others, or has no name or version.
fn locked_line(folder: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(folder.join("METADATA")).ok()?.take(MAX_METADATA_BYTES).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let headers: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).collect();
    let value = |wanted: &str| {
        let found = headers.iter().filter_map(|line| line.split_once(':')).find(|(key, _)| *key == wanted);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    };
    let (name, version) = (value("Name")?, value("Version")?);
    (!INSTALLERS.contains(&name.to_lowercase().as_str())).then(|| format!("{name}=={version}"))
}

#[cfg(test)]
mod tests {
    use super::installed_packages;
    use std::fs;

    #[test]
    fn packages_are_read_from_their_metadata() {
        let folder = std::env::temp_dir().join(format!("tracebook-packages-{}", std::process::id()));
        let packages = folder.join("lib/python3.13/site-packages");
        for (name, text) in [
            ("six-1.17.0", "Metadata-Version: 2.1\nName: six\nVersion: 1.17.0\n\nName: other\n"),
            ("Ruamel.YAML-0.18", "Name: Ruamel.YAML\nVersion: 0.18\n"),
            ("pip-25.0", "Name: pip\nVersion: 25.0\n"),
            ("nameless-1", "Version: 1\n"),
        ] {
            fs::create_dir_all(packages.join(format!("{name}.dist-info"))).expect("made");
            fs::write(packages.join(format!("{name}.dist-info/METADATA")), text).expect("written");
        }
        fs::create_dir_all(packages.join("six")).expect("made");
        let found = installed_packages(&folder);
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(found, ["Ruamel.YAML==0.18", "six==1.17.0"]);
        assert!(installed_packages(&folder).is_empty());
    }
}
