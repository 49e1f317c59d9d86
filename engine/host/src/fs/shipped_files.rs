//! Installs files that ship with the program in a folder of the workspace. A newer program updates the ones that the
//! user hasn't changed. A user's changes are never overwritten.

use crate::fs::atomic_write::{self, ReplaceOutcome};
use crate::fs::confined_dir::ConfinedFolder;
use crate::fs::copy;
use anyhow::anyhow;
use std::collections::BTreeMap;
use std::path::Path;
use store::{BlobHash, disk::io_reason};

/// Maximum size of a shipped file in bytes; a larger file isn't one of ours.
const MAX_SHIPPED_FILE_BYTES: u64 = 16 << 20;

/// Writes `files` into a folder. The file `record` says what was written last: a file that differs from it was changed
/// by the user, and stays.
///
/// # Errors
/// Returns a message if a file can't be written.
pub fn refresh_shipped_files(folder: &Path, record: &Path, files: &[(&str, &[u8])]) -> anyhow::Result<()> {
    copy::create_folder(folder)?;
    let confined = ConfinedFolder::open_chosen(folder)?;
    let kept = copy::read(record, MAX_SHIPPED_FILE_BYTES);
    // Without a readable record, everything that differs counts as changed.
    let before: BTreeMap<String, String> =
        kept.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
    let now: BTreeMap<String, String> =
        files.iter().map(|(path, bytes)| ((*path).to_owned(), BlobHash::of(bytes).to_string())).collect();
    for (path, bytes) in files {
        let (above, name) = confined.open_parent(path, true)?;
        let place = above.join(&name);
        let there = copy::read(&place, MAX_SHIPPED_FILE_BYTES).map(|bytes| BlobHash::of(&bytes));
        let is_ours = match there {
            None => !copy::exists(&place),
            Some(there) => there != BlobHash::of(bytes) && before.get(*path) == Some(&there.to_string()),
        };
        if is_ours {
            // If another program writes at this moment, its content stays.
            let _: ReplaceOutcome = atomic_write::replace_file(&place, there, bytes)?;
        }
    }
    for (path, hash) in before.iter().filter(|(path, _)| !now.contains_key(*path)) {
        // The folder that contained it may be gone, too.
        let Ok((above, name)) = confined.open_parent(path, false) else { continue };
        let place = above.join(&name);
        let there = copy::read(&place, MAX_SHIPPED_FILE_BYTES).map(|bytes| BlobHash::of(&bytes).to_string());
        if there.as_ref() == Some(hash) {
            std::fs::remove_file(&place).map_err(|error| anyhow!("{path} can't be removed: {}", io_reason(&error)))?;
        }
    }
    if before != now {
        let bytes = serde_json::to_vec_pretty(&now)?;
        let expected = kept.as_deref().map(BlobHash::of);
        atomic_write::replace_file(record, expected, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_refreshed_unless_the_user_changed_them() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (folder, record) = (home.path().join("Help"), home.path().join("help.json"));
        let refresh = |files: &[(&str, &[u8])]| refresh_shipped_files(&folder, &record, files).expect("refreshed");
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        refresh(&[("a.md", b"a1"), ("b.md", b"b1"), ("c.md", b"c1"), ("d.md", b"d1")]);
        assert_eq!((text("a.md").as_deref(), text("d.md").as_deref()), (Some("a1"), Some("d1")));
        std::fs::write(folder.join("b.md"), "mine").expect("written");
        std::fs::write(folder.join("d.md"), "mine").expect("written");
        std::fs::write(folder.join("own.md"), "own").expect("written");
        std::fs::remove_file(folder.join("a.md")).expect("removed");
        // A newer version: a is the same, b has changed, c and d are gone.
        refresh(&[("a.md", b"a1"), ("b.md", b"b2"), ("e.md", b"e1")]);
        assert_eq!(text("a.md").as_deref(), Some("a1"), "what is missing is written again");
        assert_eq!(text("b.md").as_deref(), Some("mine"), "what the user changed stays");
        assert_eq!((text("c.md"), text("d.md").as_deref()), (None, Some("mine")));
        assert_eq!((text("e.md").as_deref(), text("own.md").as_deref()), (Some("e1"), Some("own")));
        // And an even newer version.
        refresh(&[("a.md", b"a3"), ("b.md", b"b3"), ("e.md", b"e3")]);
        assert_eq!([text("a.md"), text("b.md"), text("e.md")].map(|text| text.expect("there")), ["a3", "mine", "e3"]);
        // Without the record, no file is known to be ours.
        std::fs::write(&record, "{").expect("written");
        refresh(&[("a.md", b"a4"), ("b.md", b"b4"), ("e.md", b"e3")]);
        assert_eq!([text("a.md"), text("b.md"), text("e.md")].map(|text| text.expect("there")), ["a3", "mine", "e3"]);
    }
}
