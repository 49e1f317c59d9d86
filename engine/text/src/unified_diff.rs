//! Reads unified diffs as Git writes them: the files, and the hunks of each.

use store::TextHunk;

/// Maximum number of hunks of a file that are shown, and of their bytes.
const MAX_DIFF_HUNKS: usize = 200;
const MAX_DIFF_TEXT_BYTES: usize = 400_000;

/// A unified diff, file by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnifiedDiff {
    /// The files with their hunks.
    pub files: Vec<FileDiff>,
    /// Whether the diff is complete.
    pub is_complete: bool,
}

/// The diff of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// Path in the repository.
    pub path: String,
    /// Parts that differ, with their unchanged lines around.
    pub hunks: Vec<TextHunk>,
    /// The changed lines of each hunk, with `+` or `-`.
    pub changed_lines: Vec<Vec<String>>,
    /// Whether the file isn't text.
    pub is_binary: bool,
}

impl UnifiedDiff {
    /// Reads a diff, of which the text may be only the start. Each hunk holds its unchanged lines on both sides.
    pub fn parse(text: &str, is_complete: bool) -> UnifiedDiff {
        let mut reading = UnifiedDiff { files: Vec::new(), is_complete };
        let (mut hunks, mut bytes) = (0, 0);
        // Numbers of lines of the hunk that are still to come, on both sides.
        let mut left = (0_u32, 0_u32);
        for line in text.split_inclusive('\n') {
            if left == (0, 0) {
                if let Some(paths) = line.strip_prefix("diff --git a/") {
                    let path = paths.trim_end().rsplit_once(" b/").map_or("", |(_, path)| path).to_owned();
                    reading.files.push(FileDiff { path, ..FileDiff::default() });
                } else if line.starts_with("Binary files ")
                    && let Some(file) = reading.files.last_mut()
                {
                    file.is_binary = true;
                } else if let (Some((old, new)), Some(file)) = (hunk_lines(line), reading.files.last_mut()) {
                    hunks += 1;
                    if hunks > MAX_DIFF_HUNKS || bytes > MAX_DIFF_TEXT_BYTES {
                        reading.is_complete = false;
                        return reading;
                    }
                    left = (old.1, new.1);
                    file.hunks.push(TextHunk { lines: Some((old.0, new.0)), ..TextHunk::default() });
                    file.changed_lines.push(Vec::new());
                }
                continue;
            }
            let Some(file) = reading.files.last_mut() else { continue };
            let (Some(hunk), Some(changed)) = (file.hunks.last_mut(), file.changed_lines.last_mut()) else { continue };
            let Some(body) = line.get(1..) else { continue };
            bytes += body.len();
            if line.starts_with(['+', '-']) {
                changed.push(line.trim_end_matches(['\r', '\n']).to_owned());
            }
            if line.starts_with([' ', '-']) {
                hunk.removed.push_str(body);
                left.0 = left.0.saturating_sub(1);
            }
            if line.starts_with([' ', '+']) {
                hunk.inserted.push_str(body);
                left.1 = left.1.saturating_sub(1);
            }
        }
        reading
    }
}

/// Reads the numbers of `@@ -12,3 +12,4 @@`: the first line and the count, in the old and in the new text.
fn hunk_lines(line: &str) -> Option<((u32, u32), (u32, u32))> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| match text.split_once(',') {
        Some((first, count)) => Some((first.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_read_hunk_by_hunk() {
        let text = "diff --git a/a.md b/a.md\nindex 1..2 100644\n--- a/a.md\n+++ b/a.md\n@@ -1,3 +1,3 @@\n one\n-two\n\
                    +2\n three\n@@ -9 +9,2 @@ x\n nine\n+@@ -1 +1 @@\n\\ No newline at end of file\ndiff --git a/p.png \
                    b/p.png\nBinary files a/p.png and b/p.png differ\n";
        let reading = UnifiedDiff::parse(text, true);
        let [file, picture] = reading.files.as_slice() else { panic!("{reading:?}") };
        assert_eq!((file.path.as_str(), file.hunks.len(), picture.is_binary), ("a.md", 2, true));
        assert_eq!(file.changed_lines[0], ["-two", "+2"]);
        assert_eq!(file.hunks[0].removed, "one\ntwo\nthree\n");
        assert_eq!(file.hunks[0].inserted, "one\n2\nthree\n");
        assert_eq!((file.hunks[1].lines, file.hunks[1].inserted.as_str()), (Some((9, 9)), "nine\n@@ -1 +1 @@\n"));
    }
}
