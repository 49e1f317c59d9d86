//! The window's state, and the doors by which the program and its tests reach it.

use crate::actions::PendingJump;
use crate::notebook::page::NotePage;
use crate::notebook::{collection, figure, remote_cursors, spelling};
use crate::overlays::export_form::ExportState;
use crate::overlays::hover::LinkHover;
use crate::overlays::link_completion::LinkCompletion;
use crate::overlays::window_overlay::WindowOverlay;
use crate::overlays::{code_completion, find_bar, slash_menu};
use crate::panels::backlinks_panel::BacklinksPanel;
use crate::panels::outline::OutlinePanel;
use crate::panels::tree::FileTree;
use crate::panels::variables;
use crate::shell::commands::{self, KeyShortcut};
use crate::shell::page_view::PageView;
use crate::shell::pane::EditorPane;
use crate::shell::panes::PaneLayout;
use crate::shell::pending_note_action::PendingNoteAction;
use crate::shell::shutdown::ShutdownState;
use crate::shell::status_bar::StatusBar;
use crate::shell::vim_adapter::vim_state::VimAdapter;
use crate::shell::window_state::WindowState;
use crate::shell::{clipboard, command_mode, file_drop};
use editor::note_editor::{EditContext, Editor};
use eframe::egui;
use engine::commands::CommandId;
use host::Driver;
use std::collections::{HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::DocId;
use ui::text::shown_name;
use ui::theme;
use ui::toasts::ToastStack;

/// Maximum time per frame spent on incoming events.
const MAX_EVENT_PUMP_TIME: Duration = Duration::from_millis(4);

/// The window of Tracebook.
pub struct AppWindow {
    pub(crate) driver: Option<Driver>,
    pub(crate) prefs: WindowState,
    pub(crate) shortcuts: Vec<KeyShortcut>,
    /// The pane that has the caret.
    pub(crate) active_pane: EditorPane,
    pub(crate) panes: PaneLayout,
    /// The note to be opened once it is known.
    pub(crate) pending_note: Option<DocId>,
    /// Whether the user has chosen a note yet; until then the window may.
    pub(crate) has_chosen_note: bool,
    /// Notes that the session keeps open, the newest first.
    pub(crate) background_notes: VecDeque<DocId>,
    pub(crate) tree: FileTree,
    /// Undo history of collections.
    pub(crate) collection_undo: collection::CollectionUndo,
    /// Collections that notes show.
    pub(crate) embedded: collection::HeldCollections,
    /// What waits for a note's text.
    pub(crate) pending_note_actions: Vec<PendingNoteAction>,
    pub(crate) outline: OutlinePanel,
    pub(crate) references: BacklinksPanel,
    pub(crate) completion: LinkCompletion,
    pub(crate) code_completion: code_completion::CodeCompletion,
    pub(crate) variables: variables::VariablesPanel,
    pub(crate) agent: agent_ui::agent::AgentPanel,
    /// Experiences and schedules that were forgotten, the last one at the end: they can be brought back.
    pub(crate) forgotten: Vec<agent_ui::memory::ForgottenItem>,
    pub(crate) hover: LinkHover,
    /// Carets last reported to the session, and the number of shared volumes at that time.
    pub(crate) last_reported_carets: Option<(remote_cursors::SharedCarets, usize)>,
    /// The page that is shown instead of notes.
    pub(crate) view: Option<PageView>,
    pub(crate) status: StatusBar,
    pub(crate) toasts: ToastStack,
    /// Number of the last notice that was read.
    pub(crate) last_seen_notice: u64,
    /// In how many notes links could follow renamed files, when that was said last.
    pub(crate) last_reported_renames: usize,
    /// The last clean run of each note that was reported.
    pub(crate) last_reported_runs: std::collections::BTreeMap<DocId, u64>,
    pub(crate) dropped: file_drop::FileDrops,
    pub(crate) exports: ExportState,
    /// Results of saving outputs.
    pub(crate) saved: (Sender<String>, Receiver<String>),
    pub(crate) pasting: clipboard::PasteState,
    pub(crate) overlay: WindowOverlay,
    /// Where a chosen hit leads, until its note can be read.
    pub(crate) pending_jump: Option<PendingJump>,
    /// Search in the open note, and the previous search.
    pub(crate) find: Option<find_bar::FindBar>,
    pub(crate) last_search: Option<find_bar::FindBar>,
    /// Modes of other editors.
    pub(crate) vim_adapter: VimAdapter,
    pub(crate) command_mode: command_mode::CommandMode,
    /// Number of kernel searches when the user asked for the list.
    pub(crate) kernels_asked: Option<u64>,
    /// The menu behind a slash.
    pub(crate) slash: Option<slash_menu::SlashMenu>,
    /// Commands by when they were used, newest first.
    pub(crate) recent: Vec<CommandId>,
    /// The last few that ran, oldest first.
    pub(crate) command_log: VecDeque<commands::WindowCommand>,
    /// Problems that were read and put away.
    pub(crate) dismissed_problems: HashSet<String>,
    pub(crate) shutdown: ShutdownState,
    pub(crate) title: String,
    pub(crate) first_frame: Option<Box<dyn FnOnce()>>,
    /// What could not be saved at the end.
    pub(crate) left_behind: Arc<Mutex<Option<String>>>,
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
            exports: ExportState::default(),
            saved: channel(),
            pasting: clipboard::PasteState::default(),
            overlay: WindowOverlay::None,
            pending_jump: None,
            find: None,
            last_search: None,
            vim_adapter: VimAdapter::default(),
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
    pub(crate) fn pump(&mut self, ctx: &egui::Context) {
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

    /// Calls `with` on the active pane's note, once it's loaded.
    pub(crate) fn with_note<R>(
        &mut self,
        ctx: &egui::Context,
        dark: bool,
        look: impl FnOnce(&mut EditContext<'_>, &mut Editor, &mut NotePage) -> R,
    ) -> Option<R> {
        self.active_pane.with_note(self.driver.as_ref()?.session(), ctx, dark, look)
    }

    /// Says in the title which note is open.
    pub(crate) fn update_title(&mut self, ctx: &egui::Context) {
        let name = self.driver.as_ref().and_then(|driver| {
            let (_, path) = driver.session().locate_file(self.active_pane.note?)?;
            Some(shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned())
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

impl AppWindow {
    /// How many figures of the note that is shown are drawn.
    pub fn figures(&self) -> usize {
        self.active_pane.page.cells.figures.drawn_count()
    }
}
