//! Three-way merges of texts, by Git's own algorithm and without a repository.

use crate::errors::VcsError;
use git2::{FileFavor, MergeFileInput, MergeFileOptions};

/// Number of characters of a conflict marker: so many that no text has such a line.
const MARKER_CHARS: u16 = 61;

/// Whose lines a merge takes where both sides have changed the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeSide {
    /// The first side's.
    Ours,
    /// The second side's.
    Theirs,
}

/// Lines that both sides have changed differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TextConflict {
    /// The first side's lines.
    pub ours: String,
    /// The second side's lines.
    pub theirs: String,
}

/// Merges what two sides have made of a text, and returns the result. Where both have changed the same lines, `take`
/// decides; without it, the conflicts are returned.
///
/// # Errors
/// Returns libgit2's error.
pub fn merge_texts(
    base: &str,
    ours: &str,
    theirs: &str,
    take: Option<MergeSide>,
) -> Result<Result<String, Vec<TextConflict>>, VcsError> {
    // The merge alone doesn't initialize libgit2, and then its memory allocator fails.
    git2::Config::new()?;
    let [mut before, mut first, mut second] = [(); 3].map(|()| MergeFileInput::new());
    before.content(base.as_bytes());
    first.content(ours.as_bytes());
    second.content(theirs.as_bytes());
    let mut options = MergeFileOptions::new();
    options.marker_size(MARKER_CHARS).style_standard(true);
    match take {
        Some(MergeSide::Ours) => _ = options.favor(FileFavor::Ours),
        Some(MergeSide::Theirs) => _ = options.favor(FileFavor::Theirs),
        None => {}
    }
    let merged = git2::merge_file(&before, &first, &second, Some(&mut options))?;
    // All three are valid UTF-8 and are only divided at line ends.
    let text = String::from_utf8_lossy(merged.content()).into_owned();
    Ok(if merged.is_automergeable() { Ok(text) } else { Err(marked_conflicts(&text)) })
}

fn marked_conflicts(text: &str) -> Vec<TextConflict> {
    let is_marker =
        |line: &str, sign: char| line.chars().take_while(|c| *c == sign).count() == usize::from(MARKER_CHARS);
    let mut conflicts: Vec<TextConflict> = Vec::new();
    let mut side = None;
    for line in text.split_inclusive('\n') {
        if is_marker(line, '<') {
            conflicts.push(TextConflict::default());
            side = Some(MergeSide::Ours);
        } else if is_marker(line, '=') && side.is_some() {
            side = Some(MergeSide::Theirs);
        } else if is_marker(line, '>') {
            side = None;
        } else if let (Some(side), Some(last)) = (side, conflicts.last_mut()) {
            match side {
                MergeSide::Ours => last.ours.push_str(line),
                MergeSide::Theirs => last.theirs.push_str(line),
            }
        }
    }
    conflicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_kept_and_conflicts_are_found() {
        let base = "one\ntwo\nthree\nfour\nfive\n";
        let merged = merge_texts(base, "1\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\n5\n", None);
        assert_eq!(merged.expect("merged"), Ok("1\ntwo\nthree\nfour\n5\n".to_owned()));
        let (ours, theirs) = ("one\nzwei\nthree\nfour\nfive\n", "one\n2\nthree\nfour\nfive\nsix\n");
        let conflicts = merge_texts(base, ours, theirs, None).expect("merged").expect_err("a conflict");
        assert_eq!(conflicts, [TextConflict { ours: "zwei\n".to_owned(), theirs: "2\n".to_owned() }]);
        let taken = |side| merge_texts(base, ours, theirs, Some(side)).expect("merged").expect("taken");
        assert_eq!(taken(MergeSide::Ours), "one\nzwei\nthree\nfour\nfive\nsix\n");
        assert_eq!(taken(MergeSide::Theirs), "one\n2\nthree\nfour\nfive\nsix\n");
        // Nothing in common, no line end, and a text that looks like markers.
        let marks = "<<<<<<< a\n=======\n>>>>>>> b";
        let conflicts = merge_texts("", marks, "x", None).expect("merged").expect_err("a conflict");
        assert_eq!(conflicts.len(), 1, "{conflicts:?}");
        assert_eq!(conflicts[0].ours.trim_end(), marks);
    }
}
