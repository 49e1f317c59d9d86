//! The window's state, and the doors by which the program and its tests reach it.

use crate::overlays::window_overlay::WindowOverlay;
use crate::panels::tree::FileTree;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::clipboard::ClipboardContent;
use crate::shell::commands::{self, ShortcutTable};
use crate::shell::dock_state::DockState;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::shutdown::ShutdownState;
use crate::shell::window_state::WindowState;
use editor::note_editor::{EditContext, Editor};
use editor::{figure, spelling};
use eframe::egui;
use engine::commands::CommandId;
use host::Driver;
use host::desktop::{FileOpener, FolderChooser, PdfPrinter};
use host::logging::FrameLog;
use notebook::collection;
use notebook::page::NotePage;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use store::DocId;
use ui::text::shown_name;
use ui::theme;

/// Maximum time per frame spent on incoming events.
const MAX_EVENT_PUMP_TIME: Duration = Duration::from_millis(4);

/// The window of Tracebook.
pub struct AppWindow {
    pub(crate) host: HostLink,
    pub(crate) panes: PaneState,
    pub(crate) dock: DockState,
    pub(crate) overlay: WindowOverlay,
    pub(crate) input: InputState,
    pub(crate) notices: NoticeState,
    pub(crate) jobs: BackgroundJobs,
    pub(crate) prefs: WindowState,
    pub(crate) shutdown: ShutdownState,
    pub(crate) frame_log: FrameLog,
    /// The current title of the window.
    pub(crate) title: String,
}

impl AppWindow {
    /// A window on an open workspace.
    pub fn new(ctx: &egui::Context, mut driver: Driver) -> AppWindow {
        theme::install_theme(ctx);
        let unshown_scripts = ui::fallback_fonts::install_fallback_fonts(ctx);
        ctx.add_plugin(editor::input_order::InputOrder::default());
        ctx.add_plugin(spelling::SpellingPlugin::default());
        ctx.add_plugin(editor::assets::AssetCache::default());
        ctx.add_plugin(figure::FigureCache::default());
        ctx.add_plugin(collection::query_worker::QueryWorker::default());
        let wake = ctx.clone();
        driver.on_wake(move || wake.request_repaint());
        editor::assets::set_host(ctx, driver.handle());
        let settings = driver.session().settings();
        let prefs = WindowState::from_settings(settings);
        prefs.apply(ctx);
        let mut notices = NoticeState { unshown_scripts, ..NoticeState::default() };
        notices.show_crash_notice(&driver);
        AppWindow {
            panes: PaneState::from_settings(settings),
            dock: DockState { tree: FileTree::from_settings(settings), ..DockState::default() },
            overlay: WindowOverlay::None,
            input: InputState { shortcuts: ShortcutTable::from_settings(settings), ..InputState::default() },
            notices,
            jobs: BackgroundJobs::default(),
            prefs,
            shutdown: ShutdownState::No,
            frame_log: FrameLog::default(),
            title: String::new(),
            host: HostLink {
                driver,
                folder_chooser: None,
                file_opener: None,
                pdf_printer: None,
                setup_variables: Vec::new(),
                science: host::science_pack::SciencePack::of_running_program(),
                done_steps: Vec::new(),
            },
        }
    }

    /// The state behind the window, for tests.
    pub fn session(&self) -> &engine::Session {
        self.host.session()
    }

    /// Sends a command as a view would; for tests.
    pub fn send_command(&mut self, command: engine::Command) {
        self.host.send(command, &mut self.notices);
    }

    /// Performs a command of the table, as the palette does; for tests and pictures.
    pub fn perform_command(&mut self, ctx: &egui::Context, id: CommandId) {
        if let Some(what) = commands::window_command(id) {
            self.run_command(ctx, what);
        }
    }

    /// The commands that ran since this was asked last, at most the last eight; for tests.
    pub fn take_ran(&mut self) -> Vec<CommandId> {
        let id = |what: commands::WindowCommand| {
            commands::available_commands().find(|info| commands::window_command(info.id) == Some(what))
        };
        self.input.command_log.drain(..).filter_map(id).map(|info| info.id).collect()
    }

    /// Shows a note, as a click in the tree does; for tests.
    pub fn show(&mut self, note: DocId) {
        self.panes.open(&mut self.host, &mut self.notices, note);
    }

    /// Saves everything and ends; for windows that no event loop closes.
    ///
    /// # Errors
    /// What could not be saved.
    pub fn close(self) -> anyhow::Result<()> {
        self.host.driver.close()
    }

    /// Where the caret is, in bytes of the open note.
    pub fn caret(&self) -> Option<usize> {
        self.panes.active.editor.caret.map(|caret| caret.at)
    }

    /// All carets, from the top of the note: where each is, and where its selection begins; for tests.
    pub fn carets(&self) -> Vec<(usize, usize)> {
        self.panes.carets()
    }

    /// Puts carets there, with their selections; for tests.
    pub fn place_carets(&mut self, carets: &[(usize, usize)]) {
        self.panes.active.editor.end_editing();
        if let [(at, anchor), rest @ ..] = carets {
            self.panes.active.editor.select(*anchor, *at);
            self.panes.active.editor.more =
                rest.iter().map(|(at, anchor)| editor::note_editor::Caret { at: *at, anchor: *anchor }).collect();
        }
    }

    /// Puts the caret there, as a click would; for tests.
    pub fn place_caret(&mut self, at: usize) {
        self.panes.active.editor.place_caret(at);
    }

    /// The note that is shown.
    pub fn note(&self) -> Option<DocId> {
        self.panes.active.note
    }

    /// Says in the title which note is open.
    pub(crate) fn update_title(&mut self, ctx: &egui::Context) {
        let place = self.panes.active.note.and_then(|note| self.host.session().locate_file(note));
        let name = place.map(|(_, path)| shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned());
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

impl HostLink {
    /// Takes in what happened elsewhere.
    pub(crate) fn pump(&mut self, notices: &mut NoticeState, shutdown: &mut ShutdownState, ctx: &egui::Context) {
        self.driver.pump(MAX_EVENT_PUMP_TIME);
        if self.driver.is_closing() && matches!(shutdown, ShutdownState::No) {
            ctx.send_viewport_cmd(egui::ViewportCommand::Close);
        }
        if let Some(wake) = self.driver.next_wake() {
            ctx.request_repaint_after(wake.max(Duration::from_millis(1)));
        }
        notices.show_news(self.session());
    }
}

impl PaneState {
    /// Calls `with` on the active pane's note, once it's loaded.
    pub(crate) fn with_note<R>(
        &mut self,
        host: &HostLink,
        ctx: &egui::Context,
        dark: bool,
        look: impl FnOnce(&mut EditContext<'_>, &mut Editor, &mut NotePage) -> R,
    ) -> Option<R> {
        self.active.with_note(host.session(), ctx, dark, look)
    }
}

impl AppWindow {
    /// Returns the number of rows of the visible collection, once its table is ready.
    pub fn rows(&self) -> Option<usize> {
        self.panes
            .shows_collection(&self.host)
            .then(|| self.panes.active.collection.lined.as_ref().map(|table| table.rows.len()))
            .flatten()
    }

    /// From now on HTML is pasted as Markdown, as far as this clipboard has some.
    pub fn read_clipboard(&mut self, read: fn() -> Option<ClipboardContent>) {
        self.input.pasting.read = Some(read);
    }

    /// From now on **Browse…** shows this chooser.
    pub fn use_folder_chooser(&mut self, chooser: FolderChooser) {
        self.host.folder_chooser = Some(chooser);
    }

    /// From now on **Print…** calls this.
    pub fn use_pdf_printer(&mut self, printer: PdfPrinter) {
        self.host.pdf_printer = Some(printer);
    }

    /// From now on **Open in default app** and **Show in folder** call this.
    pub fn use_file_opener(&mut self, opener: FileOpener) {
        self.host.file_opener = Some(opener);
    }

    /// From now on **Set up Python…** starts its programs with these variables; for tests.
    pub fn use_setup_variables(&mut self, variables: Vec<(String, OsString)>) {
        self.host.setup_variables = variables;
    }

    /// From now on the science pack is this one; for tests.
    pub fn use_science_pack(&mut self, pack: host::science_pack::SciencePack) {
        self.host.science = pack;
    }

    /// Opens a folder as a volume, or the folder of a file and the file in it, as the command line asks for.
    pub fn open_path(&mut self, ctx: &egui::Context, path: PathBuf) {
        // Until it is open, no other note takes its place.
        self.panes.has_chosen_note = true;
        let (tell, wake) = (self.jobs.named_paths.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let _ = tell.send(host::desktop::inspect_path(&path)); // the window may be closed
            wake.request_repaint();
        });
    }

    /// How many figures of the note that is shown are drawn.
    pub fn figures(&self) -> usize {
        self.panes.active.page.cells.figures.drawn_count()
    }
}
