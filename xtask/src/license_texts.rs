//! Collects the licenses of all linked crates, fonts and models into one text.
//!
//! It starts with a table of names and licenses. Each license text follows once, with the names of all that use it.

use crate::linked_crates::{LinkedCrate, LinkedCrates};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Starts of the names of files with a license or a notice, in upper case.
const LICENSE_FILE_NAMES: [&str; 8] =
    ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE", "PSF-LICENSE", "AUTHORS"];
/// Allowed file extensions; other files are code and data about licenses.
const LICENSE_FILE_ENDINGS: [&str; 4] = ["", "md", "txt", "rst"];
/// Folders in which every file is a license, whatever its name.
const LICENSE_FOLDERS: [&str; 2] = ["LICENSES", "licenses"];
/// Maximum depth of the search in a crate's source. Bundled C sources have their license in subfolders.
const MAX_SOURCE_DEPTH: usize = 6;
/// Maximum size of a license file in bytes.
const MAX_LICENSE_BYTES: u64 = 512 << 10;

const RULE: &str = "================================================================================\n";

/// Collects the licenses as one text.
pub(crate) fn collect(crates: &LinkedCrates, checkout: &Path) -> Result<String> {
    let mut owners_by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut table = String::new();
    for ((name, version), found) in crates.foreign() {
        let title = format!("{name} {version}");
        table.push_str(&format!("{title}: {}\n", found.license));
        let mut texts = read_license_files(&found.folder)?;
        if texts.is_empty() {
            texts = standard_texts(found).with_context(|| format!("{title} has no license that can be printed"))?;
        }
        for text in texts {
            owners_by_text.entry(text).or_default().push(title.clone());
        }
    }
    for (folder, title) in [("assets/fonts", "fonts"), ("assets/embedding", "sentence model MiniLM-L6 v2")] {
        for text in read_license_files(&checkout.join(folder))? {
            owners_by_text.entry(text).or_default().push(title.to_owned());
        }
    }
    let mut sections: Vec<(Vec<String>, String)> = owners_by_text
        .into_iter()
        .map(|(text, mut owners)| {
            owners.dedup();
            (owners, text)
        })
        .collect();
    sections.sort();
    let mut all = format!(
        "Tracebook is under the MIT license or the Apache License 2.0, as you like. It is linked with these crates, \
         and carries\nfonts and a model; each is under the license beside it. The texts follow.\n\n{table}"
    );
    for (owners, text) in sections {
        all.push_str(&format!("\n{RULE}{}\n{RULE}\n{text}\n", owners.join("\n")));
    }
    Ok(all)
}

/// Reads the license files in a folder and its subfolders, ordered by path.
fn read_license_files(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    find_license_files(folder, 0, &mut files)?;
    files.sort();
    let mut texts: Vec<String> = Vec::new();
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("can't read {}", file.display()))?;
        let text = clean_text(&String::from_utf8_lossy(&bytes));
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    Ok(texts)
}

fn find_license_files(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    let is_license_folder = folder.file_name().is_some_and(|name| LICENSE_FOLDERS.iter().any(|known| name == *known));
    for entry in entries {
        let path = entry?.path();
        // Symbolic links are skipped, because they may point anywhere.
        let Ok(about) = path.symlink_metadata() else { continue };
        if about.is_dir() && depth < MAX_SOURCE_DEPTH {
            find_license_files(&path, depth + 1, found)?;
        } else if about.is_file() && about.len() <= MAX_LICENSE_BYTES && (is_license_folder || is_license_file(&path)) {
            found.push(path);
        }
    }
    Ok(())
}

fn is_license_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_uppercase();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    // `LICENSE-2.0` and `COPYING.LESSER` have no extension in this sense; sources have lowercase extensions.
    let plain = LICENSE_FILE_ENDINGS.contains(&ending.as_str())
        || path
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| ending.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()));
    // Fonts have it after their name: `Inter-LICENSE.txt`.
    plain && LICENSE_FILE_NAMES.iter().any(|start| name.starts_with(start) || name.contains("-LICENSE"))
}

/// Returns the standard texts of the licenses that a crate names without including their files, and its authors.
fn standard_texts(found: &LinkedCrate) -> Result<Vec<String>> {
    let expression = spdx::Expression::parse_mode(&found.license, spdx::ParseMode::LAX)
        .map_err(|error| anyhow::anyhow!("{}: {}", found.license, error.reason))?;
    let ids = expression.requirements().filter_map(|one| one.req.license.id());
    let mut texts: Vec<String> = ids.map(|id| format!("{}\n\n{}", id.full_name, clean_text(id.text()))).collect();
    anyhow::ensure!(!texts.is_empty(), "{} names no known license", found.license);
    if !found.authors.is_empty() {
        texts.push(format!("Copyright: {}", found.authors.join(", ")));
    }
    Ok(texts)
}

/// Normalizes line ends and removes trailing space, so that equal texts are recognized.
fn clean_text(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches(['\n', '\u{feff}']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn license_files_are_told_from_code_about_licenses() {
        let is = |name: &str| is_license_file(Path::new(name));
        let good = ["LICENSE", "License.md", "LICENSE-MIT", "COPYING.LESSER", "LICENSE-APACHE-2.0", "NOTICE.txt"];
        assert!(good.iter().all(|name| is(name)), "{good:?}");
        assert!(is("Inter-LICENSE.txt"));
        assert!(!["license.rs", "licenses.json", "README.md", "copying.py"].iter().any(|name| is(name)));
    }

    #[test]
    fn a_text_is_found_below_and_listed_once() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("libx/src")).expect("made");
        fs::write(folder.path().join("LICENSE"), "One \r\ntwo\r\n").expect("written");
        fs::write(folder.path().join("libx/COPYING"), "One\ntwo\n\n").expect("written");
        fs::write(folder.path().join("libx/src/license.c"), "no").expect("written");
        assert_eq!(read_license_files(folder.path()).expect("readable"), ["One\ntwo"]);
    }

    #[test]
    fn a_crate_without_a_file_gets_the_standard_text() {
        let found = LinkedCrate {
            license: "MIT OR Apache-2.0".into(),
            authors: vec!["A Person".into()],
            repository: None,
            description: None,
            folder: PathBuf::new(),
            checksum: None,
            uses: Default::default(),
        };
        let texts = standard_texts(&found).expect("known licenses");
        assert!(texts[0].starts_with("MIT License") && texts[1].contains("Apache License"), "{texts:?}");
        assert_eq!(texts[2], "Copyright: A Person");
    }
}
