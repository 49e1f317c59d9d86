//! The window: tree, note, panel, status line, palette. It reads the session and sends commands; it opens no file, asks
//! no network, changes no state of its own accord, and never waits while it draws.

#![allow(
    missing_docs,
    reason = "what is public here is so for sibling crates of this program; fields say what they are"
)]

mod handlers;
mod notebook;
mod overlays;
mod pages;
mod panels;
mod shell;

pub use shell::clipboard;

use crate::handlers::exports;
use crate::handlers::note_actions;
use crate::notebook::collection;
use crate::notebook::figure;
use crate::notebook::page::NotePage;
use crate::notebook::remote_cursors;
use crate::notebook::spelling;
use crate::overlays::code_completion;
use crate::overlays::command_palette::CommandPalette;
use crate::overlays::dialogs::Dialog;
use crate::overlays::find_bar;
use crate::overlays::hover::LinkHover;
use crate::overlays::link_completion::LinkCompletion;
use crate::overlays::search;
use crate::overlays::settings;
use crate::overlays::slash_menu;
use crate::panels::backlinks_panel::BacklinksPanel;
use crate::panels::outline::OutlinePanel;
use crate::panels::tree;
use crate::panels::tree::FileTree;
use crate::panels::variables;
use crate::shell::command_mode;
use crate::shell::commands;
use crate::shell::commands::KeyShortcut;
use crate::shell::file_drop;
use crate::shell::page_view::PageView;
use crate::shell::pane::EditorPane;
use crate::shell::panes::PaneLayout;
use crate::shell::shutdown::ShutdownState;
use crate::shell::status_bar::StatusBar;
use crate::shell::vim_adapter;
use crate::shell::window_state::WindowState;
use editor::note_editor::{EditContext, Editor};
use eframe::egui;
use engine::commands::CommandId;
use host::Driver;
use std::collections::{HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::DocId;
use ui::theme;
use ui::toasts::ToastStack;

/// A frame spends at most this much on what came in.
const MAX_EVENT_PUMP_TIME: Duration = Duration::from_millis(4);

/// What floats above the rest.
enum WindowOverlay {
    None,
    Palette(CommandPalette),
    Search(Box<search::SearchOverlay>),
    Dialog(Dialog),
    Settings(Box<settings::SettingsPage>),
}

/// The window of Tracebook.
pub struct AppWindow {
    driver: Option<Driver>,
    prefs: WindowState,
    shortcuts: Vec<KeyShortcut>,
    /// The pane that has the caret.
    active_pane: EditorPane,
    panes: PaneLayout,
    /// The note to be opened once it is known.
    pending_note: Option<DocId>,
    /// Whether somebody has chosen a note yet; until then the window may.
    has_chosen_note: bool,
    /// Notes that the session keeps open, the newest first.
    background_notes: VecDeque<DocId>,
    tree: FileTree,
    /// What was done in collections.
    collection_undo: collection::CollectionUndo,
    /// Collections that notes show.
    embedded: collection::HeldCollections,
    /// What waits for a note's text.
    pending_note_actions: Vec<note_actions::PendingNoteAction>,
    outline: OutlinePanel,
    references: BacklinksPanel,
    completion: LinkCompletion,
    code_completion: code_completion::CodeCompletion,
    variables: variables::VariablesPanel,
    agent: agent_ui::agent::AgentPanel,
    /// Experiences and schedules that were forgotten, the last one at the end: they can be brought back.
    forgotten: Vec<agent_ui::memory::ForgottenItem>,
    hover: LinkHover,
    /// Where the session was told that the carets are, and of how many shared volumes that was.
    last_reported_carets: Option<(remote_cursors::SharedCarets, usize)>,
    /// The page that is shown instead of notes.
    view: Option<PageView>,
    status: StatusBar,
    toasts: ToastStack,
    /// The number of the last notice that was looked at.
    last_seen_notice: u64,
    /// In how many notes links could follow renamed files, when that was said last.
    last_reported_renames: usize,
    /// Of each note the last clean run that was told of.
    last_reported_runs: std::collections::BTreeMap<DocId, u64>,
    dropped: file_drop::FileDrops,
    exports: exports::ExportState,
    /// What is said once an output is saved.
    saved: (Sender<String>, Receiver<String>),
    pasting: clipboard::PasteState,
    overlay: WindowOverlay,
    /// Where a chosen hit leads, until its note can be read.
    pending_jump: Option<search::PendingJump>,
    /// What is looked for in the open note, and what was looked for before.
    find: Option<find_bar::FindBar>,
    last_search: Option<find_bar::FindBar>,
    /// Modes of other editors.
    vim_adapter: vim_adapter::VimAdapter,
    command_mode: command_mode::CommandMode,
    /// How often kernels had been looked for when the user asked which there are.
    kernels_asked: Option<u64>,
    /// The menu behind a slash.
    slash: Option<slash_menu::SlashMenu>,
    /// Commands by when they were used, newest first.
    recent: Vec<CommandId>,
    /// The last few that ran, oldest first.
    command_log: VecDeque<commands::WindowCommand>,
    /// Problems that were read and put away.
    dismissed_problems: HashSet<String>,
    shutdown: ShutdownState,
    title: String,
    first_frame: Option<Box<dyn FnOnce()>>,
    /// What could not be saved at the end.
    left_behind: Arc<Mutex<Option<String>>>,
}

impl AppWindow {
    /// A window on an open workspace.
    pub fn new(ctx: &egui::Context, mut driver: Driver) -> AppWindow {
        theme::install_theme(ctx);
        ctx.add_plugin(editor::input_order::InputOrder::default());
        ctx.add_plugin(spelling::SpellingPlugin::default());
        ctx.add_plugin(editor::assets::AssetCache::default());
        ctx.add_plugin(figure::FigureCache::default());
        ctx.add_plugin(collection::query_worker::QueryWorker::default());
        let wake = ctx.clone();
        driver.on_wake(move || wake.request_repaint());
        editor::assets::set_host(ctx, driver.handle());
        let prefs = WindowState::from_settings(driver.session().settings());
        prefs.apply(ctx);
        let settings = driver.session().settings();
        let shortcuts = commands::shortcuts(settings);
        let tree = FileTree::from_settings(settings);
        let (mut here, panes) = PaneLayout::restore_panes(settings.panes.as_ref(), settings.pane);
        let wanted = if settings.panes.is_some() { here.note } else { settings.last_note };
        let chose = settings.panes.is_some() && wanted.is_none();
        here.show_note(None);
        AppWindow {
            driver: Some(driver),
            prefs,
            shortcuts,
            active_pane: here,
            panes,
            pending_note: wanted,
            has_chosen_note: chose,
            background_notes: VecDeque::new(),
            tree,
            collection_undo: collection::CollectionUndo::default(),
            embedded: collection::HeldCollections::default(),
            pending_note_actions: Vec::new(),
            outline: OutlinePanel::default(),
            references: BacklinksPanel::default(),
            completion: LinkCompletion::default(),
            code_completion: code_completion::CodeCompletion::default(),
            variables: variables::VariablesPanel::default(),
            agent: agent_ui::agent::AgentPanel::default(),
            forgotten: Vec::new(),
            hover: LinkHover::default(),
            last_reported_carets: None,
            view: None,
            status: StatusBar::default(),
            toasts: ToastStack::default(),
            last_seen_notice: 0,
            last_reported_renames: 0,
            last_reported_runs: std::collections::BTreeMap::new(),
            dropped: file_drop::FileDrops::default(),
            exports: exports::ExportState::default(),
            saved: channel(),
            pasting: clipboard::PasteState::default(),
            overlay: WindowOverlay::None,
            pending_jump: None,
            find: None,
            last_search: None,
            vim_adapter: vim_adapter::VimAdapter::default(),
            command_mode: command_mode::CommandMode::default(),
            kernels_asked: None,
            slash: None,
            recent: Vec::new(),
            command_log: VecDeque::new(),
            dismissed_problems: HashSet::new(),
            shutdown: ShutdownState::No,
            title: String::new(),
            first_frame: None,
            left_behind: Arc::default(),
        }
    }

    /// The state behind the window, for tests.
    pub fn session(&self) -> Option<&engine::Session> {
        self.driver.as_ref().map(Driver::session)
    }

    /// Sends a command as a view would; for tests.
    pub fn send_command(&mut self, command: engine::Command) {
        self.send(command);
    }

    /// Performs a command of the table, by its id, as the palette does; for tests and pictures.
    pub fn perform_command(&mut self, ctx: &egui::Context, id: &str) {
        if let Some(what) = id.parse().ok().and_then(commands::window_command) {
            self.run_command(ctx, what);
        }
    }

    /// The ids of the commands that ran since this was asked last, at most the last eight; for tests.
    pub fn take_ran(&mut self) -> Vec<&'static str> {
        let id = |what: commands::WindowCommand| {
            commands::available_commands().find(|info| commands::window_command(info.id) == Some(what))
        };
        self.command_log.drain(..).filter_map(id).map(|info| info.id.as_str()).collect()
    }

    /// Shows a note, as a click in the tree does; for tests.
    pub fn show(&mut self, note: DocId) {
        self.open(note);
    }

    /// Saves everything and ends; for windows that no event loop closes.
    ///
    /// # Errors
    /// What could not be saved.
    pub fn close(mut self) -> Result<(), String> {
        self.driver.take().map_or(Ok(()), Driver::close)
    }

    /// Where the caret is, in bytes of the open note.
    pub fn caret(&self) -> Option<usize> {
        self.active_pane.editor.caret.map(|caret| caret.at)
    }

    /// All carets, from the top of the note: where each is, and where its selection begins; for tests.
    pub fn carets(&self) -> Vec<(usize, usize)> {
        let mut carets: Vec<(usize, usize)> =
            self.active_pane.editor.carets().map(|caret| (caret.at, caret.anchor)).collect();
        carets.sort_unstable();
        carets
    }

    /// Puts carets there, with their selections; for tests.
    pub fn place_carets(&mut self, carets: &[(usize, usize)]) {
        self.active_pane.editor.end_editing();
        if let [(at, anchor), rest @ ..] = carets {
            self.active_pane.editor.select(*anchor, *at);
            self.active_pane.editor.more =
                rest.iter().map(|(at, anchor)| editor::note_editor::Caret { at: *at, anchor: *anchor }).collect();
        }
    }

    /// Puts the caret there, as a click would; for tests.
    pub fn place_caret(&mut self, at: usize) {
        self.active_pane.editor.place_caret(at);
    }

    /// The note that is shown.
    pub fn note(&self) -> Option<DocId> {
        self.active_pane.note
    }

    /// Takes in what happened elsewhere.
    fn pump(&mut self, ctx: &egui::Context) {
        let Some(driver) = &mut self.driver else { return };
        driver.pump(MAX_EVENT_PUMP_TIME);
        if driver.is_closing() && matches!(self.shutdown, ShutdownState::No) {
            ctx.send_viewport_cmd(egui::ViewportCommand::Close);
        }
        if let Some(wake) = driver.next_wake() {
            ctx.request_repaint_after(wake.max(Duration::from_millis(1)));
        }
        let notices = driver.session().notices();
        for noticed in notices.notices_after(self.last_seen_notice).filter(|noticed| noticed.notice.is_news()) {
            let words = noticed.notice.describe();
            let mut letters = words.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            self.toasts.show_message(format!("{first}{}", letters.as_str()));
        }
        self.last_seen_notice = notices.last_number();
    }

    /// Looks at the note of the pane that has the caret, once it is there.
    fn with_note<R>(
        &mut self,
        ctx: &egui::Context,
        dark: bool,
        look: impl FnOnce(&mut EditContext<'_>, &mut Editor, &mut NotePage) -> R,
    ) -> Option<R> {
        self.active_pane.with_note(self.driver.as_ref()?.session(), ctx, dark, look)
    }

    /// Says in the title which note is open.
    fn update_title(&mut self, ctx: &egui::Context) {
        let name = self.driver.as_ref().and_then(|driver| {
            let (_, path) = driver.session().locate_file(self.active_pane.note?)?;
            Some(tree::shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned())
        });
        let title = name.map_or_else(
            || "Tracebook".to_owned(),
            |name| format!("Tracebook — {}", text::untrusted_text::escape_line(&name)),
        );
        if title != self.title {
            ctx.send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
    }
}

impl eframe::App for AppWindow {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        self.pump(ctx);
        self.close_step(ctx);
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        let ctx = ui.ctx().clone();
        self.prefs.blink(&ctx);
        self.choose_first(&ctx);
        self.update_spelling(&ctx);
        self.dispatch_keys(&ctx);
        self.follow_aim();
        self.save_panes();
        self.report_renamed_links();
        self.send_carets();
        self.run_pending_note_actions(&ctx);
        self.history_step(&ctx);
        self.sync_step();
        self.show_kernels();
        self.active_pane.editor.shape = self.caret_shape();
        let actions = self.show_layout(ui);
        self.open_embedded_collections();
        self.feed_views();
        if let Some(driver) = &self.driver {
            editor::assets::fetch_assets(&ctx, driver.session());
            figure::fetch_figures(&ctx, driver);
            collection::query_worker::sync_files(&ctx, driver.session());
        }
        self.perform_actions(&ctx, actions);
        self.show_link_completion(&ctx);
        self.code_help(&ctx);
        self.update_link_hover(&ctx);
        self.show_overlays(&ctx);
        self.handle_file_drops(&ctx);
        self.report_saved_output();
        self.report_clean_run();
        self.save_window_state(&ctx);
        // At the end, so that nothing of this frame is laid out with the glyphs of the next.
        self.prefs.apply(&ctx);
        self.update_title(&ctx);
        if let Some(told) = self.first_frame.take() {
            told();
        }
    }

    fn on_exit(&mut self, _: Option<&eframe::glow::Context>) {
        if let Some(driver) = self.driver.take()
            && let Err(why) = driver.close()
            && let Ok(mut left) = self.left_behind.lock()
        {
            *left = Some(why);
        }
    }
}

/// Opens the window and returns when it is closed and all is saved. `first_frame` is called once, after the first
/// frame.
///
/// # Errors
/// A sentence: there is no display, something that a window needs at run time is missing, or something could not be
/// saved at the end.
pub fn run(driver: Driver, first_frame: impl FnOnce() + 'static) -> Result<(), String> {
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].iter().any(|name| std::env::var_os(name).is_some());
    if cfg!(target_os = "linux") && !has_display {
        return Err("there is no display, so no window can be opened; the command line works without one: \
             try `tracebook ls`, and `tracebook help` for the rest"
            .to_owned());
    }
    let (width, height) = driver.session().settings().window;
    let viewport = egui::ViewportBuilder::default()
        .with_title("Tracebook")
        .with_app_id("tracebook")
        .with_icon(icon())
        .with_inner_size([width, height])
        .with_min_inner_size([480.0, 320.0]);
    let options = eframe::NativeOptions { viewport, ..Default::default() };
    let left_behind: Arc<Mutex<Option<String>>> = Arc::default();
    let left = left_behind.clone();
    let made = eframe::run_native(
        "tracebook",
        options,
        Box::new(move |creation| {
            let mut window = AppWindow::new(&creation.egui_ctx, driver);
            window.read_clipboard(clipboard::system_clipboard);
            window.first_frame = Some(Box::new(first_frame));
            window.left_behind = left;
            Ok(Box::new(window))
        }),
    );
    made.map_err(|error| {
        format!(
            "the window cannot be opened: {error}; on Debian it needs the packages libgl1 libegl1 libxkbcommon0 \
             libxkbcommon-x11-0 libx11-xcb1 libxcursor1 libxi6 libxrandr2 (and libgl1-mesa-dri where there is no other \
             driver); the command line works without a window: try `tracebook ls`"
        )
    })?;
    let left = left_behind.lock().ok().and_then(|mut left| left.take());
    left.map_or(Ok(()), Err)
}

/// The window's icon: a page with a trace on it.
fn icon() -> egui::IconData {
    const ICON_SIZE_PIXELS: u32 = 64;
    let mut rgba = Vec::new();
    for y in 0..ICON_SIZE_PIXELS {
        for x in 0..ICON_SIZE_PIXELS {
            let page = (10..54).contains(&x) && (6..58).contains(&y);
            // Three lines of text, the last one a trace that rises.
            let text = (18..46).contains(&x) && (matches!(y, 17..20) || (matches!(y, 27..30) && x < 38));
            let trace = (18..46).contains(&x) && (48 - (x - 18) / 3).abs_diff(y) < 3;
            let [r, g, b, a] = match (page, text, trace) {
                (false, _, _) => [0, 0, 0, 0],
                (true, _, true) => [0x3b, 0x5b, 0xdb, 255],
                (true, true, _) => [0x9a, 0xa0, 0xa8, 255],
                (true, false, false) => [0xfc, 0xfb, 0xf8, 255],
            };
            rgba.extend([r, g, b, a]);
        }
    }
    egui::IconData { rgba, width: ICON_SIZE_PIXELS, height: ICON_SIZE_PIXELS }
}
