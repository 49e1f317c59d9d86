//! Reads the checkout's Rust files for tidy: what a file names, apart from its comments, strings and unit tests. It
//! isn't a full parser: it knows enough of the grammar to keep track of lines and braces.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the checkout: the folder above this package.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the checkout").to_path_buf()
}

/// One Rust file.
pub(super) struct Source {
    /// The path relative to the checkout, with `/`.
    pub(super) path: String,
    /// The file's text, unchanged.
    pub(super) text: String,
    /// The same lines with comments, strings and characters blanked.
    pub(super) code: String,
    /// `code` without items under `#[cfg(test)]`.
    pub(super) shipped: String,
}

impl Source {
    pub(super) fn new(path: String, text: String) -> Self {
        let code = without_words(&text);
        let shipped =
            if path.ends_with("/tests.rs") || path.contains("/tests/") { String::new() } else { without_tests(&code) };
        Self { path, text, code, shipped }
    }

    /// The number of lines without unit tests.
    pub(super) fn shipped_lines(&self) -> usize {
        if self.shipped.trim().is_empty() {
            return 0;
        }
        let tests: usize = test_spans(&self.code).into_iter().map(|span| self.code[span].lines().count()).sum();
        self.text.lines().count().saturating_sub(tests)
    }

    /// The lines (from 1) of its unit tests.
    pub(super) fn test_lines(&self) -> Vec<std::ops::RangeInclusive<usize>> {
        let line_at = |at: usize| self.code[..at].matches('\n').count() + 1;
        test_spans(&self.code).into_iter().map(|span| line_at(span.start)..=line_at(span.end)).collect()
    }

    /// The lines (from 1) outside its unit tests, with their strings and comments.
    pub(super) fn shipped_text(&self) -> Vec<(usize, &str)> {
        if self.shipped.trim().is_empty() {
            return Vec::new();
        }
        let tests = self.test_lines();
        let lines = (1..).zip(self.text.lines());
        lines.filter(|(number, _)| !tests.iter().any(|span| span.contains(number))).collect()
    }

    /// The lines (from 1) on which the shipped code names one of `words`, directly or in a `use` tree, with the word.
    pub(super) fn names<'w>(&self, words: &[&'w str]) -> Vec<(usize, &'w str)> {
        let mut found = Vec::new();
        let uses = uses(&self.shipped);
        for word in words {
            let inline =
                self.shipped.lines().zip(1..).filter(|(line, _)| has_word(line, word)).map(|(_, number)| number);
            let imported = uses.iter().filter(|(_, path)| has_word(path, word)).map(|(number, _)| *number);
            found.extend(inline.chain(imported).map(|number| (number, *word)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The files of the modules that it declares only for tests.
    fn test_modules(&self) -> Vec<String> {
        let base = match self.path.rsplit_once('/') {
            Some((folder, "lib.rs" | "main.rs")) => folder,
            _ => self.path.trim_end_matches(".rs"),
        };
        let declared = self.code.split("#[cfg(test)]").skip(1).filter_map(|rest| {
            let name = rest.trim_start().strip_prefix("mod ")?.split_once(';')?.0.trim();
            name.bytes().all(is_ident).then(|| format!("{base}/{name}.rs"))
        });
        declared.collect()
    }

    /// The lines of `match` expressions over one of `types` that have a catch-all arm.
    pub(super) fn catch_alls(&self, types: &[&str], marker: &str) -> Vec<usize> {
        let code = self.shipped.as_bytes();
        let mut found = Vec::new();
        let uses = uses(&self.shipped);
        // A bare `Event::` belongs to another crate if the file imports that crate's.
        let foreign = |name: &str| uses.iter().any(|(_, path)| path.ends_with(&format!("::{name}")) && !is_ours(path));
        let types: Vec<(&str, bool)> = types.iter().map(|name| (*name, !foreign(name))).collect();
        for start in word_starts(&self.shipped, "match") {
            let Some(body) = block_after(code, start) else { continue };
            let arms = patterns(&self.shipped, body);
            let ours =
                arms.iter().any(|(_, pattern)| types.iter().any(|(name, bare)| has_variant_of(pattern, name, *bare)));
            for (at, pattern) in arms {
                let line = line_of(&self.shipped, at);
                let marked = self.text.lines().nth(line - 1).is_some_and(|line| line.contains(marker));
                if ours && !marked && is_catch_all(pattern) {
                    found.push(line);
                }
            }
        }
        found
    }
}

/// Every Rust file of the checkout, sorted by path, without build output and hidden folders.
pub(super) fn sources() -> Vec<Source> {
    let root = root();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {}", path.display()));
        Source::new(relative(&path, &root), text)
    };
    let rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let mut sources: Vec<Source> = files(&root).into_iter().filter(rust).map(read).collect();
    let test_only: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in sources.iter_mut().filter(|source| test_only.contains(&source.path)) {
        source.shipped.clear();
    }
    sources
}

/// Every file below `folder`, sorted, without build output and hidden entries.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{error}: {}", folder.display()));
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("a readable entry")).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name.starts_with("target") {
            continue;
        }
        let path = entry.path();
        // Test data isn't checked; it may even contain Rust that is wrong on purpose.
        if path.ends_with("tests/data") {
            continue;
        }
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            found.extend(files(&path));
        } else if kind.is_file() {
            found.push(path);
        }
    }
    found
}

/// `path` relative to `base`, with `/`.
pub(super) fn relative(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).expect("below its base").to_string_lossy().replace('\\', "/")
}

fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The positions at which `word` stands alone in `text`.
pub(super) fn word_starts(text: &str, word: &str) -> Vec<usize> {
    let alone = |at: usize| {
        let before = at.checked_sub(1).map(|at| text.as_bytes()[at]);
        let after = text.as_bytes().get(at + word.len());
        let open_end = word.ends_with(|last: char| !last.is_alphanumeric());
        !before.is_some_and(is_ident) && (open_end || !after.copied().is_some_and(is_ident))
    };
    text.match_indices(word).map(|(at, _)| at).filter(|at| alone(*at)).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    !word_starts(text, word).is_empty()
}

/// Whether a path leads to the workspace's own enums.
fn is_ours(path: &str) -> bool {
    ["crate::", "engine::", "super::", "self::"].iter().any(|ours| path.starts_with(ours))
}

/// Whether a pattern has a variant of `name`, written with a path of ours, or bare if `bare` is set.
fn has_variant_of(pattern: &str, name: &str, bare: bool) -> bool {
    word_starts(pattern, name).into_iter().any(|at| {
        let before = pattern[..at].trim_end_matches(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let path = &pattern[before.len()..at];
        pattern[at + name.len()..].starts_with("::") && ((bare && path.is_empty()) || is_ours(path))
    })
}

/// Whether a pattern is `_` or a bare name, with or without a guard.
fn is_catch_all(pattern: &str) -> bool {
    let pattern = pattern.split(" if ").next().unwrap_or(pattern).trim();
    let name = pattern.trim_start_matches("ref ").trim_start_matches("mut ");
    name.starts_with(|first: char| first == '_' || first.is_ascii_lowercase()) && name.bytes().all(is_ident)
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The contents of the first `{…}` after `start` that isn't inside other brackets.
fn block_after(code: &[u8], start: usize) -> Option<std::ops::Range<usize>> {
    let mut depth = 0_i32;
    for at in start..code.len() {
        match code[at] {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(at + 1..closing(code, at)?),
            b';' if depth == 0 => return None,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// The position of the bracket that closes the one at `open`.
fn closing(code: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The patterns of a match body, each with its position.
fn patterns(code: &str, body: std::ops::Range<usize>) -> Vec<(usize, &str)> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut at = body.start;
    let mut start = at;
    while at < body.end {
        match bytes[at] {
            b'{' | b'(' | b'[' => at = closing(bytes, at).unwrap_or(body.end),
            b'=' if bytes.get(at + 1) == Some(&b'>') => {
                let pattern = &code[start..at];
                let trimmed = pattern.trim_start();
                found.push((start + pattern.len() - trimmed.len(), trimmed.trim_end()));
                at = arm_end(bytes, at + 2, body.end);
                start = at;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The position just past the arm whose expression starts at `at`.
fn arm_end(code: &[u8], mut at: usize, end: usize) -> usize {
    while at < end && code[at].is_ascii_whitespace() {
        at += 1;
    }
    if code.get(at) == Some(&b'{') {
        let close = closing(code, at).unwrap_or(end);
        let next = (close + 1..end).find(|at| !code[*at].is_ascii_whitespace());
        // `{ … }.method()` continues the expression; anything else starts the next arm.
        match next.map(|at| code[at]) {
            Some(b',') => return next.unwrap_or(end) + 1,
            Some(b'.' | b'?') => at = close + 1,
            Some(_) | None => return close + 1,
        }
    }
    while at < end {
        match code[at] {
            b'{' | b'(' | b'[' => at = closing(code, at).unwrap_or(end),
            b',' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    end
}

/// Every path named by `use` declarations, with its line.
pub(super) fn uses(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for start in word_starts(code, "use") {
        let rest = &code[start + 3..];
        if let Some(end) = rest.find(';').filter(|_| rest.starts_with(char::is_whitespace)) {
            let mut paths = Vec::new();
            flatten("", &rest[..end], &mut paths);
            found.extend(paths.into_iter().map(|path| (line_of(code, start), path)));
        }
    }
    found
}

/// Expands `a::{b, c::{d, self}}` to `a::b`, `a::c::d`, `a::c`.
fn flatten(before: &str, tree: &str, paths: &mut Vec<String>) {
    let mut depth = 0_i32;
    let parts = tree.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('{') {
            Some((head, inner)) => {
                flatten(&format!("{before}{}", head.trim()), inner.trim_end_matches([' ', '\n', '}']), paths);
            }
            None => {
                let path = part.split_whitespace().next().unwrap_or(part);
                paths.push(format!("{before}{path}").trim_end_matches("::self").to_owned());
            }
        }
    }
}

/// The ranges of items under `#[cfg(test)]`, including the attribute.
fn test_spans(code: &str) -> Vec<std::ops::Range<usize>> {
    let bytes = code.as_bytes();
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for (start, attribute) in code.match_indices("#[cfg(test)]") {
        let item = start + attribute.len();
        let Some(stop) = (item..bytes.len()).find(|at| matches!(bytes[*at], b'{' | b';')) else { continue };
        let end = if bytes[stop] == b'{' { closing(bytes, stop).unwrap_or(bytes.len() - 1) } else { stop };
        if found.last().is_none_or(|last| last.end <= start) {
            found.push(start..end + 1);
        }
    }
    found
}

/// Blanks the items under `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for span in test_spans(code) {
        blank(&mut bytes[span]);
    }
    String::from_utf8(bytes).expect("blanks are text")
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Blanks comments, strings and characters; lines and columns stay the same.
fn without_words(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let length = match rest {
            [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => comment_length(rest),
            [b'"', ..] => string_length(rest),
            [b'r', b'"' | b'#', ..] if at == 0 || !is_ident(bytes[at - 1]) || bytes[at - 1] == b'b' => raw_length(rest),
            [b'\'', ..] => character_length(&text[at..]),
            _ => 0,
        };
        blank(&mut bytes[at..at + length]);
        at += length.max(1);
    }
    String::from_utf8(bytes).expect("blanks are text")
}

fn comment_length(rest: &[u8]) -> usize {
    let mut depth = 0_i32;
    for at in 0..rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => depth += 1,
            [b'*', b'/', ..] => depth -= 1,
            _ => {}
        }
        if depth == 0 && at > 0 {
            return at + 2;
        }
    }
    rest.len()
}

fn string_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_length(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0; // `r#name`
    }
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = 2 + hashes;
    rest[body..].windows(end.len()).position(|window| window == end).map_or(rest.len(), |at| body + at + end.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((escaped, _))) => {
            rest[escaped + 1..].find('\'').map_or(0, |close| escaped + 1 + close + 1)
        }
        (Some((_, first)), Some((close, '\''))) if first != '\'' => close + 1,
        _ => 0,
    }
}

#[test]
fn comments_strings_and_characters_are_blanked_and_lines_kept() {
    let text = "a // std::fs\n/* x /* y */ z */ b \"std::fs \\\" \n\" 'c' '\\'' &'a r#\"std\"# é\n";
    let code = without_words(text);
    assert_eq!(code.len(), text.len());
    assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "b", "&'a", "é"]);
    assert_eq!(code.matches('\n').count(), text.matches('\n').count());
}

#[test]
fn use_trees_are_flattened_and_unit_tests_left_out() {
    let text =
        "use std::{fs::{self, File}, io};\n#[cfg(test)]\nmod tests { use std::net::TcpStream; }\nfn std_fs() {}\n";
    let source = Source::new("x.rs".into(), text.into());
    assert_eq!(source.names(&["std::fs", "std::net"]), [(1, "std::fs")]);
    assert_eq!(source.shipped_lines(), 2, "the two lines under `#[cfg(test)]` are not counted");
    let source = Source::new("store/src/disk.rs".into(), "mod a;\n#[cfg(test)]\nmod suite;\n".into());
    assert_eq!(source.test_modules(), ["store/src/disk/suite.rs"]);
}

#[test]
fn an_arm_for_everything_else_is_seen_only_over_our_enums() {
    let text = "fn f() { match command { Command::Run { cell } if cell > 0 => { match 1 { 1 => (), _ => () } }\n\
                Command::Stop => stop(),\n_ => {} } match x { egui::Event::Key { .. } => 1, _ => 2 };\n\
                match command { crate::Command::Run(_) => 1,\nother => 2 } }";
    let seen = |text: String| Source::new("x.rs".into(), text).catch_alls(&["Command", "Event"], "tidy: open");
    assert_eq!(seen(text.into()), [3, 5]);
    assert_eq!(seen(format!("use other::{{Command, Event}}; {text}")), [5]);
}
