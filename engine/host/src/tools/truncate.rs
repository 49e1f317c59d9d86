//! Truncates tool results: shows a short result whole, and otherwise its beginning and end, with the whole result as a
//! blob.

use agent::secrets;
use agent::tool_job::{MAX_TOOL_RESULT_BYTES, truncate_middle};
use std::borrow::Cow;
use store::disk::BlobStore;
use store::{BlobHash, BlobRef};

/// Converts bytes to text of at most [`MAX_TOOL_RESULT_BYTES`] bytes, with secrets masked. If something is left out,
/// the whole text is stored as a blob.
///
/// # Errors
/// Returns a message for the user if the blob can't be stored.
pub(super) fn truncate_output(bytes: &[u8], blobs: &BlobStore) -> anyhow::Result<(String, Option<BlobRef>)> {
    let text = String::from_utf8_lossy(bytes);
    // Mask secrets before cutting, because a cut key wouldn't be recognized.
    let text = secrets::mask_known_secrets(&text);
    if text.len() <= MAX_TOOL_RESULT_BYTES {
        return Ok((text.into_owned(), None));
    }
    let bytes = if let Cow::Owned(masked) = &text { masked.as_bytes() } else { bytes };
    let blob = store_blob(bytes, blobs)?;
    Ok((truncate_middle(&text), Some(BlobRef { blob, mime: "text/plain".to_owned(), size: bytes.len() as u64 })))
}

/// Stores bytes as a blob.
pub(super) fn store_blob(bytes: &[u8], blobs: &BlobStore) -> anyhow::Result<BlobHash> {
    Ok(blobs.put(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_of_what_is_too_long() {
        let dir = tempfile::tempdir().expect("a folder");
        let blobs = BlobStore::new(dir.path());
        let (text, whole) = truncate_output("kurz ä".as_bytes(), &blobs).expect("shown");
        assert_eq!((text.as_str(), whole), ("kurz ä", None));
        let long: String = (0..10_000).map(|number| format!("line {number}\n")).collect();
        let (text, whole) = truncate_output(long.as_bytes(), &blobs).expect("shown");
        assert!(
            text.len() <= MAX_TOOL_RESULT_BYTES
                && text.starts_with("line 0\nline 1\n")
                && text.ends_with("\nline 9999\n")
        );
        let between = text.lines().find(|line| line.starts_with('…')).expect("a line between");
        let left_out: usize = between.split(' ').nth(1).expect("a number").parse().expect("a number");
        let kept: usize = text.len() - between.len() - 1;
        assert_eq!(left_out + kept, long.len(), "{between}");
        let whole = whole.expect("a blob");
        assert_eq!(blobs.read(whole.blob).expect("read"), long.as_bytes());
        for one in [
            "ä".repeat(MAX_TOOL_RESULT_BYTES),
            "\u{1f600}".repeat(MAX_TOOL_RESULT_BYTES),
            "\0".repeat(MAX_TOOL_RESULT_BYTES + 1),
        ] {
            let text = truncate_middle(&one);
            assert!(text.len() <= MAX_TOOL_RESULT_BYTES && text.contains("bytes are left out here"), "{}", text.len());
        }
        let (text, _) = truncate_output(&[0xff; MAX_TOOL_RESULT_BYTES], &blobs).expect("shown");
        assert!(text.len() <= MAX_TOOL_RESULT_BYTES && text.contains('\u{fffd}'));
    }
}
