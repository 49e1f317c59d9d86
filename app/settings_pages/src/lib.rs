//! Pages of the settings: each setting with its control, language models, rules, MCP servers, search, volumes, and
//! devices.
//!
//! A page shows the current values and returns changes. What blocks, such as the configuration and other programs, runs
//! on threads of its own.

mod agent_choices;
mod agent_limits;
mod agent_reach;
mod config_rows;
pub mod devices;
pub mod embeddings;
mod mcp_servers;
mod model_rules;
pub mod obsidian;
mod policy_rules;
pub mod providers;
mod search_model;
pub mod sections;
pub mod volumes;

use engine::commands::CommandId;
use engine::keymap::KeymapPreset;
use engine::{ColorTheme, EnterInsertion, FirstStep, ReducedMotion, Settings, TreeOrder};
use std::collections::BTreeMap;
use store::DocId;

/// A change of the settings, or an action on their pages.
#[derive(Clone, Debug)]
pub enum SettingsChange {
    /// The color theme.
    Theme(ColorTheme),
    /// Name of a theme of the user's own; empty for none.
    CustomTheme(String),
    /// Whether high contrast is on.
    Contrast(bool),
    /// Whether motion is reduced.
    ReduceMotion(ReducedMotion),
    /// Scale of the whole window.
    Scale(f32),
    /// Size of a note's text relative to the rest.
    Text(f32),
    /// Whether the left panel is shown.
    Left(bool),
    /// Width of the left panel in points.
    LeftWidth(f32),
    /// Whether the right panel is shown.
    Right(bool),
    /// Width of the right panel in points.
    RightWidth(f32),
    /// Restores the window's initial size.
    WindowSize,
    /// Whether the tree lists recent notes.
    RecentOpen(bool),
    /// Folds all folders of the tree.
    FoldTree,
    /// Closes all tabs except the active one.
    CloseTabs,
    /// Recently opened notes and the last one, cleared or restored.
    Recent(Vec<DocId>, Option<DocId>),
    /// Starred notes, cleared or restored.
    Starred(Vec<DocId>),
    /// Whether the desktop shows notifications.
    Notifications(bool),
    /// What Enter inserts in running text.
    Enter(EnterInsertion),
    /// Folder for daily notes.
    DailyFolder(String),
    /// Name of a daily note, as a date format.
    DailyFormat(String),
    /// Path of the template for daily notes.
    DailyTemplate(String),
    /// Folder for templates.
    Templates(String),
    /// Folder for pasted and dropped files.
    AttachmentFolder(String),
    /// The kernel for notes that name none.
    DefaultKernel(Option<String>),
    /// Whether the lines of code are numbered.
    LineNumbers(bool),
    /// Whether spelling is checked.
    Spelling(bool),
    /// The user's dictionary.
    Words(Vec<String>),
    /// Model for semantic search.
    Embedder(String),
    /// Path of the ONNX Runtime library.
    OnnxRuntime(String),
    /// Model that reranks the best hits.
    Reranker(String),
    /// Whether indexing for semantic search is paused.
    MeaningPaused(bool),
    /// Folders that search skips.
    Unsearched(Vec<String>),
    /// Saved searches, each with its name and query.
    Searches(Vec<(String, String)>),
    /// The set of default keys.
    Preset(KeymapPreset),
    /// Whether the welcome page is shown at the next start.
    Welcome(bool),
    /// Whether the first steps are shown below the tree.
    FirstSteps(bool),
    /// The sort order of the tree.
    TreeOrder(TreeOrder),
    /// Marks a first step as done.
    FirstStepDone(FirstStep),
    /// Whether the window runs the server for other programs.
    ServePrograms(bool),
    /// Address and port of that server.
    ServerAddress(String),
    /// Whether that server serves other devices on the network, too. It's switched on for that.
    ServeDevices(bool),
    /// The beginnings of the keys of devices whose runs the window carries out.
    CarryOutRunsOf(Vec<String>),
    /// Sets a command's keys; `None` restores those of the preset.
    Keys(CommandId, Option<Vec<String>>),
    /// The keys that the user has set, by command; none restores all keys of the preset.
    AllKeys(BTreeMap<String, Vec<String>>),
}

impl SettingsChange {
    /// Applies the change to the settings.
    pub fn apply_to(self, settings: &mut Settings) {
        match self {
            SettingsChange::Theme(theme) => settings.theme = theme,
            SettingsChange::CustomTheme(name) => settings.custom_theme = name,
            SettingsChange::Contrast(contrast) => settings.contrast = contrast,
            SettingsChange::ReduceMotion(choice) => settings.reduce_motion = choice,
            SettingsChange::Scale(scale) => settings.scale = scale,
            SettingsChange::Text(text) => settings.text_scale = text,
            SettingsChange::Left(open) => settings.left_open = open,
            SettingsChange::LeftWidth(width) => settings.left_panel_width = width,
            SettingsChange::Right(open) => settings.right_open = open,
            SettingsChange::RightWidth(width) => settings.right_panel_width = width,
            SettingsChange::WindowSize => settings.window = Settings::default().window,
            SettingsChange::RecentOpen(open) => settings.recent_open = open,
            SettingsChange::FoldTree => {
                settings.unfolded.clear();
                settings.folded.clear();
            }
            SettingsChange::CloseTabs => (settings.panes, settings.pane) = (None, 0),
            SettingsChange::Recent(notes, last) => (settings.recent, settings.last_note) = (notes, last),
            SettingsChange::Starred(notes) => settings.starred = notes,
            SettingsChange::Notifications(shown) => settings.notifications = shown,
            SettingsChange::Enter(insertion) => settings.enter = insertion,
            SettingsChange::DailyFolder(folder) => settings.daily_folder = folder,
            SettingsChange::DailyFormat(format) => settings.daily_format = format,
            SettingsChange::DailyTemplate(path) => settings.daily_template = path,
            SettingsChange::Templates(folder) => settings.templates = folder,
            SettingsChange::AttachmentFolder(folder) => settings.attachment_folder = folder,
            SettingsChange::DefaultKernel(kernel) => settings.default_kernel = kernel,
            SettingsChange::LineNumbers(shown) => settings.line_numbers = shown,
            SettingsChange::Spelling(checked) => settings.spelling = checked,
            SettingsChange::Words(words) => settings.spelling_dictionary = words,
            SettingsChange::Embedder(model) => settings.embedder = model,
            SettingsChange::OnnxRuntime(path) => settings.onnx_runtime = path,
            SettingsChange::Reranker(name) => settings.reranker = name,
            SettingsChange::MeaningPaused(paused) => settings.meaning_paused = paused,
            SettingsChange::Unsearched(folders) => settings.unsearched = folders,
            SettingsChange::Searches(searches) => settings.searches = searches,
            SettingsChange::Preset(preset) => settings.keymap_preset = preset,
            SettingsChange::Welcome(shown) => settings.show_welcome = shown,
            SettingsChange::FirstSteps(shown) => settings.show_first_steps = shown,
            SettingsChange::TreeOrder(order) => settings.tree_order = order,
            SettingsChange::FirstStepDone(step) => {
                if !settings.first_steps.contains(&step) {
                    settings.first_steps.push(step);
                }
            }
            SettingsChange::Keys(id, Some(keys)) => _ = settings.keys.insert(id.to_string(), keys),
            SettingsChange::Keys(id, None) => _ = settings.keys.remove(id.as_str()),
            SettingsChange::AllKeys(keys) => settings.keys = keys,
            SettingsChange::ServePrograms(on) => settings.serves_programs = on,
            SettingsChange::ServerAddress(address) => settings.server_address = address,
            SettingsChange::ServeDevices(on) => {
                settings.serves_devices = on;
                settings.serves_programs |= on;
            }
            SettingsChange::CarryOutRunsOf(keys) => settings.carries_out_runs_of = keys,
        }
    }
}
