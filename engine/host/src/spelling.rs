//! Spell checking with the system's Hunspell dictionaries (crate `spellbook`).
//!
//! Loading and suggesting take longer than a frame and have separate threads. Looking up a word takes microseconds.

use anyhow::{Context, anyhow};
use spellbook::Dictionary;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use unicode_script::{Script, UnicodeScript};

/// Maximum size of a dictionary in bytes. The largest common ones have a few megabytes.
const MAX_DICTIONARY_BYTES: u64 = 64 << 20;
/// Maximum number of suggestions for a word.
const MAX_SUGGESTIONS: usize = 8;

/// A script counts as the dictionary's if at least one in this many of its words uses it.
const MAX_WORDS_PER_SCRIPT_WORD: usize = 100;

/// A spell checker whose dictionary loads in the background.
#[derive(Clone)]
pub struct HunspellChecker {
    loaded: Arc<OnceLock<anyhow::Result<LoadedDictionary>>>,
}

struct LoadedDictionary {
    name: String,
    words: Dictionary,
    /// Scripts of the dictionary's words.
    scripts: HashSet<Script>,
}

impl HunspellChecker {
    /// Finds the dictionary of a language such as `en_US` and loads it in the background; `done` is called afterwards,
    /// even on failure.
    pub fn start(language: String, done: impl FnOnce() + Send + 'static) -> HunspellChecker {
        HunspellChecker::from(dictionary_folders(), language, done)
    }

    fn from(folders: Vec<PathBuf>, language: String, done: impl FnOnce() + Send + 'static) -> HunspellChecker {
        let speller = HunspellChecker { loaded: Arc::default() };
        let loaded = speller.loaded.clone();
        std::thread::spawn(move || {
            // Each checker loads once.
            let _ = loaded.set(load_dictionary(&folders, &language));
            done();
        });
        speller
    }

    /// Returns whether a word is correct, or is in a script that the dictionary doesn't cover; `None` while the
    /// dictionary loads, or if there's none.
    pub fn check_word(&self, word: &str) -> Option<bool> {
        let dictionary = self.loaded.get()?.as_ref().ok()?;
        let foreign = scripts_of(word).any(|script| !dictionary.scripts.contains(&script));
        Some(foreign || dictionary.words.check(word))
    }

    /// Returns the name of the loaded dictionary, or why there's none; `None` while it loads.
    pub fn dictionary_state(&self) -> Option<Result<&str, &anyhow::Error>> {
        Some(self.loaded.get()?.as_ref().map(|dictionary| dictionary.name.as_str()))
    }

    /// Finds suggestions for a word in the background, the most likely first.
    pub fn suggest(&self, word: String, done: impl FnOnce(Vec<String>) + Send + 'static) {
        let loaded = self.loaded.clone();
        std::thread::spawn(move || {
            let mut found = Vec::new();
            if let Some(Ok(dictionary)) = loaded.get() {
                dictionary.words.suggest(&word, &mut found);
            }
            found.truncate(MAX_SUGGESTIONS);
            done(found);
        });
    }
}

/// Returns the system's language in the form of dictionary names, such as `en_US`, which is also the default.
pub fn system_language() -> String {
    let set =
        ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let set = set.unwrap_or_default();
    let name = set.split(['.', '@']).next().unwrap_or("");
    if matches!(name, "" | "C" | "POSIX") { "en_US".to_owned() } else { name.to_owned() }
}

/// Returns the folders of dictionaries, the user's first.
fn dictionary_folders() -> Vec<PathBuf> {
    let own = std::env::var_os("TRACEBOOK_DICTIONARIES").map(PathBuf::from);
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let user = data.or(home).map(|folder| folder.join("hunspell"));
    let system = ["/usr/share/hunspell", "/usr/share/myspell/dicts", "/usr/share/myspell"].map(PathBuf::from);
    own.into_iter().chain(user).chain(system).collect()
}

/// Returns the scripts of a text's letters, without marks and signs shared by all scripts.
fn scripts_of(text: &str) -> impl Iterator<Item = Script> {
    text.chars().map(|letter| letter.script()).filter(|script| !matches!(script, Script::Common | Script::Inherited))
}

/// Returns the scripts that many lines of a dictionary start with.
fn dictionary_scripts(dic: &str) -> HashSet<Script> {
    let (mut counts, mut all) = (HashMap::new(), 0);
    for script in dic.lines().filter_map(|line| scripts_of(line).next()) {
        *counts.entry(script).or_insert(0) += 1;
        all += 1;
    }
    counts.into_iter().filter(|(_, count)| count * MAX_WORDS_PER_SCRIPT_WORD >= all).map(|(script, _)| script).collect()
}

fn load_dictionary(folders: &[PathBuf], language: &str) -> anyhow::Result<LoadedDictionary> {
    let (name, aff, dic) = find_dictionary(folders, language).with_context(|| {
        format!("there is no dictionary for {language}; on Debian they are the packages hunspell-… (hunspell-en-us)")
    })?;
    let (aff, dic) = (read(&aff)?, read(&dic)?);
    let encoding = aff_encoding(&aff);
    let text = |bytes: &[u8]| encoding.decode(bytes).0.into_owned();
    // The library reads only UTF-8, and the decoded text is UTF-8 now.
    let aff: String =
        text(&aff).lines().filter(|line| !line.starts_with("SET ")).map(|line| format!("{line}\n")).collect();
    let dic = text(&dic);
    let words = Dictionary::new(&format!("SET UTF-8\n{aff}"), &dic)
        .map_err(|error| anyhow!("the dictionary {name} cannot be read ({error}); choose another"))?;
    Ok(LoadedDictionary { name, words, scripts: dictionary_scripts(&dic) })
}

/// Finds the dictionary of a language, or else of the same language in another country.
fn find_dictionary(folders: &[PathBuf], language: &str) -> Option<(String, PathBuf, PathBuf)> {
    let short = language.split('_').next().unwrap_or(language);
    let mut other = None;
    for folder in folders {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".aff")?.to_owned()))
            .collect();
        names.sort();
        for name in names {
            let (aff, dic) = (folder.join(format!("{name}.aff")), folder.join(format!("{name}.dic")));
            if !dic.is_file() {
                continue;
            }
            if name == language {
                return Some((name, aff, dic));
            }
            if other.is_none() && name.split('_').next() == Some(short) {
                other = Some((name, aff, dic));
            }
        }
    }
    other
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    crate::fs::copy::read(path, MAX_DICTIONARY_BYTES)
        .with_context(|| format!("the dictionary cannot be read, or is too large: {}", path.display()))
}

/// Returns the encoding of the `SET` line in an .aff file; Latin 1 if there's none (hunspell(5)).
fn aff_encoding(aff: &[u8]) -> &'static encoding_rs::Encoding {
    let set = aff.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"SET "));
    let label = set.map(|label| label.trim_ascii()).unwrap_or(b"ISO8859-1");
    // Hunspell has names such as `microsoft-cp1251` that aren't labels of web encodings.
    let label = label.strip_prefix(b"microsoft-").unwrap_or(label);
    encoding_rs::Encoding::for_label(label).unwrap_or(encoding_rs::WINDOWS_1252)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn loaded(folder: &Path, language: &str) -> HunspellChecker {
        let (tell, told) = channel();
        let done = move || _ = tell.send(());
        let speller = HunspellChecker::from(vec![folder.to_owned()], language.to_owned(), done);
        told.recv().expect("told");
        speller
    }

    #[test]
    fn words_are_known_missed_and_suggested() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("written");
        write("en_GB.aff", b"SET UTF-8\nTRY esianrtolcdugmphbyfvkwz\nSFX S Y 1\nSFX S 0 s .\n");
        write("en_GB.dic", b"2\nhouse/S\ngarden\n");
        write("de_DE.aff", b"SET ISO8859-1\nTRY en\n");
        write("de_DE.dic", b"1\nsch\xf6n\n");
        write("ru_RU.aff", "SET UTF-8\nTRY оеаи\n".as_bytes());
        write("ru_RU.dic", "1\nдом\n".as_bytes());
        write("xx.aff", b"SET UTF-8\nSFX broken\n");
        write("xx.dic", b"1\nx\n");
        let speller = loaded(folder.path(), "en_US");
        let state = speller.dictionary_state().expect("over");
        assert_eq!(state.expect("loaded"), "en_GB", "another country's form");
        assert_eq!([speller.check_word("houses"), speller.check_word("huose")], [Some(true), Some(false)]);
        let (tell, told) = channel();
        speller.suggest("huose".to_owned(), move |found| _ = tell.send(found));
        assert_eq!(told.recv().expect("told"), ["house"]);
        assert_eq!(loaded(folder.path(), "de_DE").check_word("schön"), Some(true));
        for foreign in ["日本語", "カタカナ", "한국어", "слово", "مرحبا", "שלום", "ελληνικά", "नमस्ते"]
        {
            assert_eq!(speller.check_word(foreign), Some(true), "{foreign}: not in an English dictionary's script");
        }
        assert_eq!(speller.check_word("hoûse"), Some(false), "Latin with a mark");
        let russian = loaded(folder.path(), "ru_RU");
        assert_eq!(["дом", "дмо", "huose"].map(|word| russian.check_word(word)), [Some(true), Some(false), Some(true)]);
        let none = loaded(folder.path(), "fr_FR");
        assert_eq!(none.check_word("mot"), None);
        assert!(none.dictionary_state().expect("over").expect_err("none").to_string().contains("hunspell"));
        assert!(loaded(folder.path(), "xx").dictionary_state().expect("over").is_err());
    }
}
