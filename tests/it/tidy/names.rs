//! Type names of the workspace, for tidy: the share that is one word, and the share that is declared in several files.
//! Counted line by line, without tests and benches.

use super::source::{files, relative, root};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Type names, with the files in which each is declared.
pub(super) struct TypeNames(BTreeMap<String, BTreeSet<String>>);

impl TypeNames {
    /// Reads the type names of the whole checkout.
    pub(super) fn read() -> Self {
        let root = root();
        let shipped = |path: &str| {
            let left_out = |part: &str| ["tests", "benches", "fuzz", "tests.rs"].contains(&part);
            path.ends_with(".rs") && !path.split('/').any(left_out)
        };
        let paths = files(&root).into_iter().map(|path| relative(&path, &root)).filter(|path| shipped(path));
        let texts = paths.map(|path| {
            let text = fs::read_to_string(root.join(&path)).unwrap_or_else(|error| panic!("{error}: {path}"));
            (path, text)
        });
        Self::of(texts)
    }

    fn of(texts: impl Iterator<Item = (String, String)>) -> Self {
        let types = r"(?m)^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait|union|type)\s+([A-Z]\w*)";
        let types = Regex::new(types).expect("a pattern");
        let tests = Regex::new(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{").expect("a pattern");
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, text) in texts {
            let shipped = tests.find(&text).map_or(text.as_str(), |start| &text[..start.start()]);
            for found in types.captures_iter(shipped) {
                names.entry(found[1].to_owned()).or_default().insert(path.clone());
            }
        }
        Self(names)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The names that are one word.
    pub(super) fn one_word(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).filter(|name| word_count(name) == 1).collect()
    }

    /// The names declared in several files, with the number of files, the most repeated first.
    pub(super) fn repeated(&self) -> Vec<(&str, usize)> {
        let repeated = self.0.iter().filter(|(_, files)| files.len() > 1);
        let mut repeated: Vec<_> = repeated.map(|(name, files)| (name.as_str(), files.len())).collect();
        repeated.sort_by_key(|(_, files)| std::cmp::Reverse(*files));
        repeated
    }
}

/// The number of words: `NoteEditor` has two, `MimeBundle2D` three, `HTMLPage` two, `URL` one.
fn word_count(name: &str) -> usize {
    let letters = || name.chars().filter(|c| c.is_alphabetic());
    if name.contains('_') || letters().all(char::is_uppercase) || letters().all(char::is_lowercase) {
        return name.split('_').filter(|word| !word.is_empty()).count();
    }
    let words = Regex::new(r"[A-Z]+[a-z0-9]*").expect("a pattern");
    // The last capital of a run belongs to the lower-case letters that follow it.
    let split = |word: &str| {
        let capitals = word.bytes().take_while(u8::is_ascii_uppercase).count();
        let goes_on = word.as_bytes().get(capitals).is_some_and(u8::is_ascii_lowercase);
        if capitals > 1 && goes_on { 2 } else { 1 }
    };
    words.find_iter(name).map(|word| split(word.as_str())).sum()
}

#[test]
fn names_are_split_into_words_and_counted_by_file() {
    let counts = ["Note", "NoteEditor", "URL", "HTMLPage", "Sha256Hash", "A", "VCard"].map(word_count);
    assert_eq!(counts, [1, 2, 1, 2, 2, 1, 2]);
    let tests = "#[cfg(test)]\n#[allow(dead_code)]\nmod tests {\n    struct OnlyInTests;\n}\n";
    let first = format!("pub(crate) struct Line;\n    type Output = u8;\n// struct Comment\n{tests}");
    let texts = [("a.rs", first.as_str()), ("b.rs", "enum Line {}\npub trait LineReader {}\n")];
    let names = TypeNames::of(texts.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())));
    assert_eq!(names.one_word(), ["Line", "Output"]);
    assert_eq!(names.repeated(), [("Line", 2)]);
    assert_eq!(names.count(), 3);
}
