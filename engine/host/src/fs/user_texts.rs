//! Snippets and themes of the user: text files in the workspace's folders `snippets` and `themes`. They are read in the
//! background, so that the window doesn't wait.

use crate::fs::atomic_write;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use text::theme_file::{MAX_THEME_BYTES, ThemeFile};

/// Folders in the workspace's folder.
const SNIPPETS_FOLDER: &str = "snippets";
const THEMES_FOLDER: &str = "themes";
/// Maximum number of files that are read in each folder.
const MAX_USER_TEXTS: usize = 500;
/// Maximum size of a snippet in bytes.
const MAX_SNIPPET_BYTES: u64 = 256 << 10;

/// A text that the slash menu inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSnippet {
    /// Its name: that of the file without its ending.
    pub name: String,
    /// The text, with places as templates have them, and `{{cursor}}` where the caret goes.
    pub text: String,
}

/// The snippets and themes as they were last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserTexts {
    /// The snippets by name.
    pub snippets: Vec<UserSnippet>,
    /// The themes by name.
    pub themes: BTreeMap<String, ThemeFile>,
    /// Names of files that aren't themes, and why.
    pub wrong_themes: BTreeMap<String, String>,
}

impl UserTexts {
    /// Reads the files of a workspace.
    pub fn read(workspace: &Path) -> UserTexts {
        let texts = |folder: &str, ending: &str, most: u64| read_texts(&workspace.join(folder), ending, most);
        let snippets = texts(SNIPPETS_FOLDER, "md", MAX_SNIPPET_BYTES);
        let theme_texts = texts(THEMES_FOLDER, "yaml", MAX_THEME_BYTES as u64);
        let (mut themes, mut wrong_themes) = (BTreeMap::new(), BTreeMap::new());
        for (name, text) in theme_texts {
            match ThemeFile::parse(&text) {
                Ok(theme) => _ = themes.insert(name, theme),
                Err(error) => _ = wrong_themes.insert(name, error.to_string()),
            }
        }
        let snippets = snippets.into_iter().map(|(name, text)| UserSnippet { name, text }).collect();
        UserTexts { snippets, themes, wrong_themes }
    }
}

/// Returns the names and texts of the files with this ending, by name.
fn read_texts(folder: &Path, ending: &str, most: u64) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeMap::new() }; // there are none
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    files.truncate(MAX_USER_TEXTS);
    let read = |file: &PathBuf| {
        let name = file.file_stem()?.to_str()?.to_owned();
        let mut text = String::new();
        atomic_write::open_regular_file(file).ok()?.take(most + 1).read_to_string(&mut text).ok()?;
        (text.len() as u64 <= most).then_some((name, text))
    };
    files.iter().filter_map(read).collect()
}

/// Keeps what was last read, and reads again on request.
#[derive(Clone, Debug)]
pub struct UserTextReader {
    workspace: PathBuf,
    last: Arc<Mutex<Arc<UserTexts>>>,
}

impl UserTextReader {
    /// Creates the reader of a workspace. Nothing is read yet.
    pub fn new(workspace: &Path) -> UserTextReader {
        UserTextReader { workspace: workspace.to_owned(), last: Arc::default() }
    }

    /// Returns what was last read.
    pub fn last(&self) -> Arc<UserTexts> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads in the background. `done` is called if something is different.
    pub fn refresh(&self, done: impl FnOnce() + Send + 'static) {
        let reader = self.clone();
        std::thread::spawn(move || {
            let now = Arc::new(UserTexts::read(&reader.workspace));
            let before =
                std::mem::replace(&mut *reader.last.lock().unwrap_or_else(PoisonError::into_inner), Arc::clone(&now));
            if before != now {
                done();
            }
        });
    }
}
