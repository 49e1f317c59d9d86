//! The user's settings for a workspace on this device.

use crate::kernel_access::KernelGrant;
use crate::keymap::KeymapPreset;
use crate::pane_layout::{NotePosition, TabArrangement};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::DocId;
use text::kernel_properties::KernelKind;

/// Maximum number of saved searches.
const MAX_SAVED_SEARCHES: usize = 200;
/// Maximum length of a saved search in bytes.
const MAX_SAVED_SEARCH_BYTES: usize = 1_000;

/// Color theme of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColorTheme {
    /// Follows the system's theme.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

/// Whether motion is reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReducedMotion {
    /// As the system has it.
    #[default]
    System,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Reads a choice. Until version 0.2, it was a switch, which was off by default.
fn saved_motion<'de, D: Deserializer<'de>>(from: D) -> Result<ReducedMotion, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum SavedMotion {
        Switch(bool),
        Choice(ReducedMotion),
    }
    Ok(match SavedMotion::deserialize(from)? {
        SavedMotion::Switch(true) => ReducedMotion::On,
        SavedMotion::Switch(false) => ReducedMotion::System,
        SavedMotion::Choice(choice) => choice,
    })
}

/// A first step for new users, listed on the welcome page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstStep {
    /// A cell was run.
    RunCell,
    /// A link to another note was written.
    LinkNotes,
    /// A search result was opened.
    FindByMeaning,
    /// A message was sent to an agent.
    AskAgent,
    /// A change of a run was reverted.
    UndoAgent,
}

impl FirstStep {
    /// All first steps, in display order.
    pub const ALL: [FirstStep; 5] =
        [FirstStep::RunCell, FirstStep::LinkNotes, FirstStep::FindByMeaning, FirstStep::AskAgent, FirstStep::UndoAgent];
}

/// What Enter inserts in running text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnterInsertion {
    /// One line break; a second Enter on the empty line starts a paragraph.
    #[default]
    Line,
    /// An empty line, which starts a new paragraph.
    Paragraph,
}

/// Sort order of files in the tree; folders are sorted by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeOrder {
    /// By name, A to Z.
    #[default]
    Name,
    /// By name, Z to A.
    NameReversed,
    /// By time of the last edit, newest first.
    Edited,
    /// By the property `created`, or else by time of the last edit, newest first.
    Created,
}

/// Settings, kept in the workspace's database. Unknown fields of newer versions are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The color theme.
    pub theme: ColorTheme,
    /// Name of the theme of the user whose colors are used; empty for Tracebook's own.
    pub custom_theme: String,
    /// Scale of the whole window, 0.5 to 3.
    pub scale: f32,
    /// Whether high contrast is on.
    pub contrast: bool,
    /// Whether motion is reduced.
    #[serde(alias = "calm", deserialize_with = "saved_motion")]
    pub reduce_motion: ReducedMotion,
    /// Size of a note's text relative to the rest, 0.7 to 2.
    #[serde(alias = "text")]
    pub text_scale: f32,
    /// The set of default keys.
    #[serde(alias = "preset")]
    pub keymap_preset: KeymapPreset,
    /// Keys set by the user, by command.
    pub keys: BTreeMap<String, Vec<String>>,
    /// Width of the left panel in points, 180 to 400.
    #[serde(alias = "left")]
    pub left_panel_width: f32,
    /// Whether the left panel is shown.
    pub left_open: bool,
    /// Width of the right panel in points, 280 to 560.
    #[serde(alias = "right")]
    pub right_panel_width: f32,
    /// Whether the right panel is shown.
    pub right_open: bool,
    /// Width and height of the window in points.
    pub window: (f32, f32),
    /// Left and top edge of the window in pixels of the screen; `None` if the system places it.
    pub window_place: Option<(f32, f32)>,
    /// The note that was last open.
    pub last_note: Option<DocId>,
    /// Recently opened notes, newest first; at most 50.
    pub recent: Vec<DocId>,
    /// Folders that were opened as volumes, newest first; at most 10.
    pub recent_folders: Vec<PathBuf>,
    /// Fonts that were named as missing, by package.
    pub named_fonts: Vec<String>,
    /// What Enter inserts in running text.
    pub enter: EnterInsertion,
    /// Whether the lines of code in cells and scripts are numbered.
    pub line_numbers: bool,
    /// Whether spelling is checked, if the system has a dictionary.
    pub spelling: bool,
    /// Whether a script runs automatically while it's edited.
    pub script_runs: bool,
    /// Words that count as correct although they aren't in a dictionary.
    #[serde(alias = "words")]
    pub spelling_dictionary: Vec<String>,
    /// Starred notes, in list order.
    pub starred: Vec<DocId>,
    /// Collapsed volumes in the tree.
    pub folded: Vec<DocId>,
    /// Expanded folders in the tree, with a trailing `/`.
    pub unfolded: Vec<(DocId, String)>,
    /// Whether the tree lists recent notes.
    pub recent_open: bool,
    /// Sort order of the tree.
    pub tree_order: TreeOrder,
    /// Folder for daily notes.
    pub daily_folder: String,
    /// Name of a daily note, as a `strftime` date format.
    pub daily_format: String,
    /// Path in the volume of the template for daily notes; empty for none.
    pub daily_template: String,
    /// Folder for templates.
    pub templates: String,
    /// Tabs and split panes; `None` for a single tab with the last note.
    pub panes: Option<TabArrangement>,
    /// Notes and the Jupyter kernels that are allowed to run them, with all rights of the user. Oldest first.
    pub kernels: Vec<(DocId, String)>,
    /// Fingerprints of those kernels at the time they were allowed, oldest first:
    /// [`crate::kernel_access::KernelSpec::print`].
    pub kernel_prints: Vec<(DocId, String)>,
    /// Kernel for notes that don't name one. Must be confined, such as `science`; `None` for the built-in kernel.
    pub default_kernel: Option<String>,
    /// What cells of notes may access beyond their folder, on this device. Oldest first.
    pub grants: Vec<(DocId, KernelGrant)>,
    /// Fingerprints of traces that the user pinned as trusted, oldest first; at most [`MAX_PINNED_TRACES`].
    pub pinned_traces: Vec<String>,
    /// Volumes whose instruction files (`AGENTS.md` and the like) agents follow, on this device.
    pub trusted_volumes: Vec<DocId>,
    /// Index of the active pane in `panes`, in reading order.
    pub pane: usize,
    /// Where notes were left, most recently added first; at most 50.
    pub positions: Vec<(DocId, NotePosition)>,
    /// Whether the desktop shows a notification when a long cell or run ends, or a run asks, in the background.
    pub notifications: bool,
    /// Model for semantic search: `embedded`, `fastembed:NAME`, `folder:PATH` or `URL#MODEL`.
    pub embedder: String,
    /// Path of the ONNX Runtime library for models that need it; empty to search for it.
    pub onnx_runtime: String,
    /// Model that reranks the best hits; empty for none.
    pub reranker: String,
    /// Whether indexing for semantic search is paused.
    pub meaning_paused: bool,
    /// Folders that search skips, as paths in any volume without a trailing `/`.
    pub unsearched: Vec<String>,
    /// Saved searches: name and query.
    pub searches: Vec<(String, String)>,
    /// Folder for images and files that are pasted or dropped into a note: empty for the note's own folder, a name for
    /// a subfolder of it, `/name` for a folder of the volume.
    pub attachment_folder: String,
    /// Whether the next start shows the welcome page.
    pub show_welcome: bool,
    /// Whether first steps are counted and shown below the tree.
    pub show_first_steps: bool,
    /// The first steps that were done.
    pub first_steps: Vec<FirstStep>,
    /// Whether the window runs the server for other programs.
    pub serves_programs: bool,
    /// Address and port of that server.
    pub server_address: String,
    /// Whether that server serves other devices on the network, too, over TLS.
    pub serves_devices: bool,
    /// The beginnings of the keys of devices whose runs the window carries out.
    pub carries_out_runs_of: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            theme: ColorTheme::System,
            custom_theme: String::new(),
            scale: 1.0,
            contrast: false,
            reduce_motion: ReducedMotion::System,
            text_scale: 1.0,
            keymap_preset: KeymapPreset::default(),
            keys: BTreeMap::new(),
            left_panel_width: 240.0,
            left_open: true,
            right_panel_width: 360.0,
            right_open: false,
            window: (1280.0, 800.0),
            window_place: None,
            last_note: None,
            recent: Vec::new(),
            recent_folders: Vec::new(),
            named_fonts: Vec::new(),
            enter: EnterInsertion::Line,
            line_numbers: false,
            spelling: true,
            script_runs: true,
            spelling_dictionary: Vec::new(),
            starred: Vec::new(),
            folded: Vec::new(),
            unfolded: Vec::new(),
            recent_open: false,
            tree_order: TreeOrder::Name,
            daily_folder: "Journal".to_owned(),
            daily_format: "%Y-%m-%d".to_owned(),
            daily_template: "Templates/Daily.md".to_owned(),
            templates: "Templates".to_owned(),
            panes: None,
            kernels: Vec::new(),
            kernel_prints: Vec::new(),
            default_kernel: None,
            grants: Vec::new(),
            pinned_traces: Vec::new(),
            trusted_volumes: Vec::new(),
            pane: 0,
            positions: Vec::new(),
            notifications: true,
            embedder: "embedded".to_owned(),
            onnx_runtime: String::new(),
            reranker: String::new(),
            meaning_paused: false,
            unsearched: Vec::new(),
            searches: Vec::new(),
            attachment_folder: String::new(),
            show_welcome: false,
            show_first_steps: false,
            first_steps: Vec::new(),
            serves_programs: false,
            server_address: "127.0.0.1:7610".to_owned(),
            serves_devices: false,
            carries_out_runs_of: Vec::new(),
        }
    }
}

/// Why a search can't be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedSearchError {
    /// The name or the query is empty.
    #[error("a saved search needs a name and a query")]
    Empty,
    /// The name or the query is too long.
    #[error("the name and the query of a saved search have at most {MAX_SAVED_SEARCH_BYTES} bytes")]
    TooLong,
    /// There are too many saved searches.
    #[error("{MAX_SAVED_SEARCHES} searches are saved already; delete one first")]
    TooMany,
}

/// Maximum number of pinned traces; the oldest pins are dropped.
const MAX_PINNED_TRACES: usize = 10_000;

impl Settings {
    /// Pins a trace as trusted by its fingerprint, or unpins it.
    pub fn pin_trace(&mut self, fingerprint: &str, pinned: bool) {
        self.pinned_traces.retain(|known| known != fingerprint);
        if pinned {
            self.pinned_traces.push(fingerprint.to_owned());
        }
    }

    /// Trusts a volume, so that agents follow its instruction files, or takes that back.
    pub fn trust_volume(&mut self, volume: DocId, is_trusted: bool) {
        self.trusted_volumes.retain(|known| *known != volume);
        if is_trusted {
            self.trusted_volumes.push(volume);
        }
    }

    /// Saves a search under a name, replacing one with the same name.
    ///
    /// # Errors
    /// Returns an error if the name or the query is empty or too long, or if there are too many saved searches.
    pub fn save_search(&mut self, name: &str, query: &str) -> Result<(), SavedSearchError> {
        let (name, query) = (name.trim().trim_start_matches('@'), query.trim());
        if name.is_empty() || query.is_empty() {
            return Err(SavedSearchError::Empty);
        }
        if name.len() > MAX_SAVED_SEARCH_BYTES || query.len() > MAX_SAVED_SEARCH_BYTES {
            return Err(SavedSearchError::TooLong);
        }
        self.searches.retain(|(known, _)| known != name);
        if self.searches.len() >= MAX_SAVED_SEARCHES {
            return Err(SavedSearchError::TooMany);
        }
        self.searches.push((name.to_owned(), query.to_owned()));
        Ok(())
    }

    /// Returns the settings with numbers and lists within their limits, and without a default kernel that isn't
    /// confined.
    pub fn clamped(mut self) -> Settings {
        let within = |value: f32, low: f32, high: f32, default: f32| {
            if value.is_finite() { value.clamp(low, high) } else { default }
        };
        self.scale = within(self.scale, 0.5, 3.0, 1.0);
        self.text_scale = within(self.text_scale, 0.7, 2.0, 1.0);
        self.left_panel_width = within(self.left_panel_width, 180.0, 400.0, 240.0);
        self.right_panel_width = within(self.right_panel_width, 280.0, 560.0, 360.0);
        self.window.0 = within(self.window.0, 480.0, 10_000.0, 1280.0);
        self.window.1 = within(self.window.1, 320.0, 10_000.0, 800.0);
        // A kernel with all rights of the user must be selected for each note.
        let kind = KernelKind::of(self.default_kernel.as_deref());
        self.default_kernel = self.default_kernel.filter(|_| kind.is_confined() && kind != KernelKind::BuiltIn);
        self.window_place = self.window_place.filter(|(x, y)| x.is_finite() && y.is_finite());
        self.recent.truncate(50);
        self.positions.truncate(50);
        self.recent_folders.truncate(10);
        self.pinned_traces.drain(..self.pinned_traces.len().saturating_sub(MAX_PINNED_TRACES));
        self
    }
}
