//! What a user set in this workspace on this device.

use crate::keymap::KeymapPreset;
use crate::pane_layout::TabArrangement;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::DocId;

/// As many searches are kept.
const MAX_SAVED_SEARCHES: usize = 200;
/// Bytes of a search that is kept.
const MAX_SAVED_SEARCH_BYTES: usize = 1_000;

/// Which colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColorTheme {
    /// As the system has it.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// Settings, kept in the workspace's database. Unknown fields of newer versions are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Colours.
    pub theme: ColorTheme,
    /// Scale of the whole window, 0.5 to 3.
    pub scale: f32,
    /// Whether colours stand out more.
    pub contrast: bool,
    /// Whether nothing moves by itself.
    pub calm: bool,
    /// Size of a note's text beside that of everything else, 0.7 to 2.
    pub text: f32,
    /// Whose keys.
    pub preset: KeymapPreset,
    /// Keys that the user set, by command.
    pub keys: BTreeMap<String, Vec<String>>,
    /// Width of the left panel in points, 180 to 400.
    pub left: f32,
    /// Whether the left panel is shown.
    pub left_open: bool,
    /// Width of the right panel in points, 280 to 560.
    pub right: f32,
    /// Whether the right panel is shown.
    pub right_open: bool,
    /// Width and height of the window in points.
    pub window: (f32, f32),
    /// The note that was open last.
    pub last_note: Option<DocId>,
    /// Notes by when they were opened, newest first; at most 50.
    pub recent: Vec<DocId>,
    /// Whether spelling is checked, where the system has a dictionary.
    pub spelling: bool,
    /// Whether a script runs by itself while one writes it.
    pub script_runs: bool,
    /// Words that are right although no dictionary has them.
    pub words: Vec<String>,
    /// Starred notes, as they are listed.
    pub starred: Vec<DocId>,
    /// Volumes that are folded in the tree.
    pub folded: Vec<DocId>,
    /// Folders that are unfolded in the tree, with a `/` at their end.
    pub unfolded: Vec<(DocId, String)>,
    /// Whether the tree lists recent notes.
    pub recent_open: bool,
    /// The folder for daily notes.
    pub daily_folder: String,
    /// How a daily note is called: a date as `strftime` writes it.
    pub daily_format: String,
    /// The note that a daily note is made of, if there is one: its path in the volume.
    pub daily_template: String,
    /// The folder of templates.
    pub templates: String,
    /// Tabs and splits; `None`: one note alone, the one that was open last.
    pub panes: Option<TabArrangement>,
    /// Notes whose cells may run in a Jupyter kernel, and in which: it has all rights of the user. Oldest first.
    pub kernels: Vec<(DocId, String)>,
    /// What exactly was allowed there: [`crate::KernelSpec::print`]. Oldest first.
    pub kernel_prints: Vec<(DocId, String)>,
    /// What cells of notes reach beyond their folder, on this device. Oldest first.
    pub grants: Vec<(DocId, crate::records::kernels::KernelGrant)>,
    /// Which of their tabs has the caret, counted in the order of reading.
    pub pane: usize,
    /// Which sentence model finds by meaning: `embedded`, `fastembed:NAME`, `folder:PATH` or `URL#MODEL`.
    pub embedder: String,
    /// Where the ONNX Runtime library lies, for models that need one; looked for where it is empty.
    pub onnx_runtime: String,
    /// Which model reads the best hits once more; none where it is empty.
    pub reranker: String,
    /// Whether no passage is made findable by its meaning for now.
    pub meaning_paused: bool,
    /// Folders whose notes are never searched: paths inside any volume, without a `/` at their ends.
    pub unsearched: Vec<String>,
    /// Searches that were kept: their names, and what was asked.
    pub searches: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            theme: ColorTheme::System,
            scale: 1.0,
            contrast: false,
            calm: false,
            text: 1.0,
            preset: KeymapPreset::default(),
            keys: BTreeMap::new(),
            left: 240.0,
            left_open: true,
            right: 360.0,
            right_open: false,
            window: (1280.0, 800.0),
            last_note: None,
            recent: Vec::new(),
            spelling: true,
            script_runs: true,
            words: Vec::new(),
            starred: Vec::new(),
            folded: Vec::new(),
            unfolded: Vec::new(),
            recent_open: false,
            daily_folder: "Journal".to_owned(),
            daily_format: "%Y-%m-%d".to_owned(),
            daily_template: "Templates/Daily.md".to_owned(),
            templates: "Templates".to_owned(),
            panes: None,
            kernels: Vec::new(),
            kernel_prints: Vec::new(),
            grants: Vec::new(),
            pane: 0,
            embedder: "embedded".to_owned(),
            onnx_runtime: String::new(),
            reranker: String::new(),
            meaning_paused: false,
            unsearched: Vec::new(),
            searches: Vec::new(),
        }
    }
}

impl Settings {
    /// Keeps a search by a name, in the place of one that had it.
    ///
    /// # Errors
    /// A sentence: nothing is asked, or there are too many.
    pub fn save_search(&mut self, name: &str, query: &str) -> Result<(), String> {
        let (name, query) = (name.trim().trim_start_matches('@'), query.trim());
        if name.is_empty() || query.is_empty() {
            return Err("a search is kept by a name and what is asked".to_owned());
        }
        if name.len() > MAX_SAVED_SEARCH_BYTES || query.len() > MAX_SAVED_SEARCH_BYTES {
            return Err(format!("the name of a search, and what it asks, have at most {MAX_SAVED_SEARCH_BYTES} bytes"));
        }
        self.searches.retain(|(known, _)| known != name);
        if self.searches.len() >= MAX_SAVED_SEARCHES {
            return Err(format!("{MAX_SAVED_SEARCHES} searches are kept already; forget one first"));
        }
        self.searches.push((name.to_owned(), query.to_owned()));
        Ok(())
    }

    /// Puts every number back into its range.
    pub fn clamped(mut self) -> Settings {
        let within = |value: f32, low: f32, high: f32, default: f32| {
            if value.is_finite() { value.clamp(low, high) } else { default }
        };
        self.scale = within(self.scale, 0.5, 3.0, 1.0);
        self.text = within(self.text, 0.7, 2.0, 1.0);
        self.left = within(self.left, 180.0, 400.0, 240.0);
        self.right = within(self.right, 280.0, 560.0, 360.0);
        self.window.0 = within(self.window.0, 480.0, 10_000.0, 1280.0);
        self.window.1 = within(self.window.1, 320.0, 10_000.0, 800.0);
        self.recent.truncate(50);
        self
    }
}
