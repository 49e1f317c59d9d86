//! Leaves files out of diffs that agents read. It works on the text, so that it holds for every kind of comparison,
//! and whatever prefixes the repository's settings give to paths.

use super::RepositoryFolder;

/// How the part of a diff about one file begins.
const FILE_LINE: &str = "diff --git ";
/// Beginnings of other lines that name a file, before its changes.
const NAME_LINES: [&str; 6] = ["--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to "];

impl RepositoryFolder {
    /// Returns a unified diff without the files for which `is_hidden` is true, by their paths in the folder, and says
    /// how many they were.
    pub fn without_files(&self, diff: &str, is_hidden: &dyn Fn(&str) -> bool) -> String {
        let is_hidden_inside = |path: &str| match self.prefix.as_str() {
            "" => is_hidden(path),
            prefix => path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).is_some_and(is_hidden),
        };
        leave_out(diff, &is_hidden_inside)
    }
}

fn leave_out(diff: &str, is_hidden: &dyn Fn(&str) -> bool) -> String {
    let later = diff.match_indices('\n').map(|(at, _)| at + 1).filter(|at| diff[*at..].starts_with(FILE_LINE));
    let starts: Vec<usize> = std::iter::once(0).chain(later).collect();
    let ends = starts.iter().skip(1).copied().chain([diff.len()]);
    let (mut shown, mut count) = (String::with_capacity(diff.len()), 0_usize);
    for (start, end) in starts.iter().copied().zip(ends) {
        let part = &diff[start..end];
        if names_hidden_file(part, is_hidden) {
            count += 1;
        } else {
            shown.push_str(part);
        }
    }
    if count > 0 {
        let line_end = if shown.is_empty() || shown.ends_with('\n') { "" } else { "\n" };
        let files = if count == 1 { "file" } else { "files" };
        shown.push_str(&format!("{line_end}(left out: {count} hidden {files})\n"));
    }
    shown
}

/// Returns whether a part of a diff is about a hidden file. The line of its beginning doesn't say where one path ends
/// and the other begins, so each space is taken for that place.
fn names_hidden_file(part: &str, is_hidden: &dyn Fn(&str) -> bool) -> bool {
    let mut lines = part.lines();
    let Some(both) = lines.next().and_then(|line| line.strip_prefix(FILE_LINE)) else { return false };
    let is_in_first = both.match_indices(' ').any(|(at, _)| is_hidden_name(&both[..at], is_hidden))
        || both.match_indices(' ').any(|(at, _)| is_hidden_name(&both[at + 1..], is_hidden));
    let header = lines.take_while(|line| !line.starts_with("@@"));
    let mut named = header.filter_map(|line| NAME_LINES.iter().find_map(|start| line.strip_prefix(start)));
    is_in_first || named.any(|name| is_hidden_name(name, is_hidden))
}

/// Returns whether a name in a diff means a hidden file: as it stands, or behind a prefix such as `a/`.
fn is_hidden_name(name: &str, is_hidden: &dyn Fn(&str) -> bool) -> bool {
    let name = name.trim_end_matches('\t');
    if let Some(quoted) = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return is_hidden_path(&unquote(quoted), is_hidden);
    }
    is_hidden_path(name, is_hidden)
}

fn is_hidden_path(path: &str, is_hidden: &dyn Fn(&str) -> bool) -> bool {
    let behind = path.split_once('/').filter(|(prefix, _)| prefix.len() == 1).map(|(_, rest)| rest);
    is_hidden(path) || behind.is_some_and(is_hidden)
}

/// Returns a path that Git quotes because of its special characters.
fn unquote(quoted: &str) -> String {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|digit| (b'0'..=b'7').contains(digit)) else { break };
                    value = value.wrapping_mul(8).wrapping_add(digit - b'0');
                }
                bytes.push(value);
            }
            Some(b'a') => bytes.push(0x07),
            Some(b'b') => bytes.push(0x08),
            Some(b't') => bytes.push(b'\t'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'v') => bytes.push(0x0b),
            Some(b'f') => bytes.push(0x0c),
            Some(b'r') => bytes.push(b'\r'),
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_file_is_left_out_however_the_diff_names_it() {
        let open = "diff --git a/a.md b/a.md\nindex 1..2 100644\n--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n-diff --git \
                    a/keys/x b/keys/x\n+shown\n";
        let is_hidden = |path: &str| path == "keys" || path.starts_with("keys/");
        for hidden in [
            "diff --git a/keys/one.txt b/keys/one.txt\nindex 1..2 100644\n--- a/keys/one.txt\n+++ b/keys/one.txt\n",
            "diff --git keys/one.txt keys/one.txt\nindex 1..2 100644\n--- keys/one.txt\n+++ keys/one.txt\n",
            "diff --git a/keys/b b/c.bin b/keys/b b/c.bin\nBinary files a/keys/b b/c.bin and b/keys/b b/c.bin differ\n",
            "diff --git \"a/keys/\\303\\274 \\\".txt\" \"b/keys/\\303\\274 \\\".txt\"\nnew file mode 100644\n",
            "diff --git a/open.txt b/keys/two.txt\nsimilarity index 90%\nrename to keys/two.txt\n",
            "diff --git a/keys/three.txt b/other.txt\nsimilarity index 100%\nrename from keys/three.txt\n",
        ] {
            let both = format!("{hidden}@@ -1 +1 @@\n-planted\n+planted too\n{open}");
            assert_eq!(leave_out(&both, &is_hidden), format!("{open}(left out: 1 hidden file)\n"), "{hidden}");
        }
        assert_eq!(leave_out(open, &is_hidden), open);
        assert_eq!(leave_out("nothing differs", &is_hidden), "nothing differs");
        assert_eq!(unquote("\\303\\274\\t\\\\"), "ü\t\\");
    }
}
