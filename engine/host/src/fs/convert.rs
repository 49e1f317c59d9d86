//! Converts a text file of a volume to UTF-8, at the user's request. The original bytes stay next to it.

use crate::fs::atomic_write::{ReplaceOutcome, replace_file};
use crate::fs::confined_dir::ConfinedPath;
use anyhow::{Context as _, anyhow, bail};
use encoding_rs::{Encoding, WINDOWS_1252};
use store::BlobHash;

/// Maximum size of a file to convert, in bytes; no note is larger.
const MAX_CONVERTED_BYTES: u64 = 16 << 20;
/// Maximum number of kept copies of one file.
const MAX_KEPT_COPIES: usize = 1_000;

/// Rewrites a file as UTF-8: from UTF-16 if it's marked as such, otherwise from Windows-1252. Blocks on the disk.
/// Returns the name of the copy that keeps the original bytes.
///
/// # Errors
/// Returns a message if the file can't be converted; it's unchanged then.
pub fn convert_to_utf8(file: &ConfinedPath) -> anyhow::Result<String> {
    let shown = file.display();
    let bytes = file
        .read(MAX_CONVERTED_BYTES)
        .with_context(|| format!("it can't be read, or has more than {} MiB: {shown}", MAX_CONVERTED_BYTES >> 20))?;
    let (encoding, _) = Encoding::for_bom(&bytes).unwrap_or((WINDOWS_1252, 0));
    let (text, _, is_broken) = encoding.decode(&bytes);
    if is_broken || text.contains('\0') {
        bail!("it isn't text in an encoding that Tracebook knows: {shown}");
    }
    let (folder, name) = file.open_parent(false)?;
    let original = name.to_string_lossy();
    let mut copies = (1..MAX_KEPT_COPIES).map(|number| match number {
        1 => format!("{original}.original"),
        _ => format!("{original}.original {number}"),
    });
    let copy = copies.find(|copy| !folder.has_entry(copy.as_ref()));
    let copy = copy.with_context(|| format!("there are too many copies of it: {shown}"))?;
    let written = |outcome: Result<ReplaceOutcome, store::disk::DiskError>| match outcome {
        Ok(ReplaceOutcome::Done { .. }) => Ok(()),
        Ok(ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone) => {
            Err(anyhow!("another program changed it just now; try again: {shown}"))
        }
        Err(error) => Err(file.with_display_path(error).into()),
    };
    written(replace_file(&folder.join(copy.as_ref()), None, &bytes))?;
    written(replace_file(&folder.join(&name), Some(BlobHash::of(&bytes)), text.as_bytes()))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_other_encodings_becomes_utf8_and_its_bytes_stay() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (latin, wide) = (b"caf\xe9\n".to_vec(), b"\xff\xfeh\x00i\x00".to_vec());
        for (name, bytes, text) in [("a.md", &latin, "café\n"), ("b.md", &wide, "hi")] {
            std::fs::write(folder.path().join(name), bytes).expect("a file");
            let copy = convert_to_utf8(&ConfinedPath::new(folder.path(), name)).expect("converted");
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).expect("UTF-8"), text);
            assert_eq!(&std::fs::read(folder.path().join(copy)).expect("the copy"), bytes);
        }
        std::fs::write(folder.path().join("c.md"), [0, 1, 2, 255]).expect("a file");
        assert!(convert_to_utf8(&ConfinedPath::new(folder.path(), "c.md")).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 5, "nothing was written for it");
    }
}
