//! Window state, and the methods through which the program uses it.

use crate::overlays::dialogs::Dialog;
use crate::overlays::settings::server_options;
use crate::overlays::window_overlay::WindowOverlay;
use crate::panels::tree::FileTree;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::clipboard::ClipboardContent;
use crate::shell::commands::ShortcutTable;
use crate::shell::desktop_look::DesktopLookWatch;
use crate::shell::dock_state::DockState;
use crate::shell::host_link::{HostLink, SafeMode};
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::shutdown::ShutdownState;
use crate::shell::window_state::WindowState;
use editor::note_editor::{EditContext, Editor};
use editor::{figure, spelling};
use eframe::egui;
use host::Driver;
use host::desktop::{DesktopLookReader, DesktopNotifier, FileChooser, FileOpener, FolderChooser, PdfPrinter};
use host::fs::user_texts::UserTextReader;
use host::logging::FrameLog;
use notebook::collection;
use notebook::page::NotePage;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use ui::theme;

/// Maximum time per frame spent on incoming events.
const MAX_EVENT_PUMP_TIME: Duration = Duration::from_millis(4);

/// The main window of Tracebook.
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
    /// Creates a window on an open workspace.
    pub fn new(ctx: &egui::Context, mut driver: Driver) -> AppWindow {
        theme::install_theme(ctx);
        let unshown_scripts = ui::fallback_fonts::install_fallback_fonts(ctx);
        ctx.add_plugin(editor::input_order::InputOrder::default());
        ctx.add_plugin(ui::focus_in_sight::FocusInSight::default());
        ctx.add_plugin(spelling::SpellingPlugin::default());
        ctx.add_plugin(editor::assets::AssetCache::default());
        ctx.add_plugin(figure::FigureCache::default());
        ctx.add_plugin(collection::query_worker::QueryWorker::default());
        let wake = ctx.clone();
        driver.on_wake(move || wake.request_repaint());
        editor::assets::set_host(ctx, driver.handle());
        let wake = ctx.clone();
        let workspace = driver.handle().workspace_folder().to_owned();
        let source = host::source_control::SourceControl::start(&workspace, move || wake.request_repaint());
        let wake = ctx.clone();
        let forks =
            source_control::forks_page::fork_desk::ForkDesk::start(driver.handle(), move || wake.request_repaint());
        let wake = ctx.clone();
        let packages = package_page::package_desk::PackageDesk::new(driver.handle(), move || wake.request_repaint());
        let wake = ctx.clone();
        let server = program_server::ProgramServer::new(driver.program(), driver.folder(), move || {
            wake.request_repaint();
        });
        let wake = ctx.clone();
        let approvals = program_approvals::ApprovalWatch::start(driver.folder(), move || wake.request_repaint());
        let wake = ctx.clone();
        let sent_runs = sent_runs::sent_run_desk::SentRunDesk::new(driver.handle(), move || wake.request_repaint());
        let wake = ctx.clone();
        let run_worker =
            sent_runs::run_worker_desk::RunWorkerDesk::new(driver.handle(), move || wake.request_repaint());
        let settings = driver.session().settings();
        let prefs = WindowState::from_settings(settings);
        let texts = UserTextReader::new(driver.folder());
        prefs.apply(ctx, &texts.last());
        let wake = ctx.clone();
        texts.refresh(move || wake.request_repaint());
        let mut notices = NoticeState { unshown_scripts, ..NoticeState::default() };
        let has_failed = notices.show_crash_notice(&driver);
        let (overlay, safe_mode) = match has_failed {
            true => (WindowOverlay::Dialog(Dialog::SafeStart), SafeMode::Asked),
            false => (WindowOverlay::None, SafeMode::Off),
        };
        AppWindow {
            panes: if has_failed { PaneState::without_notes() } else { PaneState::from_settings(settings) },
            dock: DockState { tree: FileTree::from_settings(settings), ..DockState::default() },
            overlay,
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
                new_file_chooser: None,
                file_chooser: None,
                file_opener: None,
                notifier: None,
                look: DesktopLookWatch::default(),
                safe_mode,
                pdf_printer: None,
                setup_variables: Vec::new(),
                science: host::science_pack::SciencePack::of_running_program(),
                source,
                forks,
                packages,
                server,
                approvals,
                sent_runs,
                run_worker,
                texts,
                done_steps: Vec::new(),
            },
        }
    }

    /// Saves everything and closes the workspace, for windows that no event loop closes.
    ///
    /// # Errors
    /// Returns an error that names what couldn't be saved.
    pub fn close(self) -> anyhow::Result<()> {
        self.host.driver.close()
    }

    /// Updates the window title with the name of the open note.
    pub(crate) fn update_title(&mut self, ctx: &egui::Context) {
        let title = self.panes.active.title(self.host.session()).map_or_else(
            || "Tracebook".to_owned(),
            |(name, _)| format!("Tracebook — {}", text::untrusted_text::escape_line(&name)),
        );
        if title != self.title {
            ctx.send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
    }
}

impl HostLink {
    /// Processes incoming engine events, and follows a requested close.
    pub(crate) fn pump(&mut self, notices: &mut NoticeState, shutdown: &mut ShutdownState, ctx: &egui::Context) {
        self.driver.pump(MAX_EVENT_PUMP_TIME);
        if self.driver.is_closing() && matches!(shutdown, ShutdownState::No) {
            ctx.send_viewport_cmd(egui::ViewportCommand::Close);
        }
        if let Some(wake) = self.driver.next_wake() {
            ctx.request_repaint_after(wake.max(Duration::from_millis(1)));
        }
        self.source.follow(self.driver.session());
        let settings = self.driver.session().settings();
        self.server.follow(settings.serves_programs, &server_options(settings));
        let owners: &[String] = match self.safe_mode {
            SafeMode::Off => &settings.carries_out_runs_of,
            SafeMode::Asked | SafeMode::On => &[],
        };
        self.run_worker.follow(owners);
        for news in self.run_worker.take_news() {
            notices.toasts.show_message(news);
        }
        if let Some(why) = self.approvals.take_trouble() {
            notices.toasts.show_message(why);
        }
        for why in self.sent_runs.take_troubles() {
            notices.toasts.show_message(ui::text::sentence(&why));
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
    /// Sets how the clipboard is read; its HTML, if any, is then pasted as Markdown.
    pub fn read_clipboard(&mut self, read: fn() -> Option<ClipboardContent>) {
        self.input.pasting.read = Some(read);
    }

    /// Sets the folder chooser that **Browse…** shows.
    pub fn use_folder_chooser(&mut self, chooser: FolderChooser) {
        self.host.folder_chooser = Some(chooser);
    }

    /// Sets the dialog for a new file that **Browse…** shows.
    pub fn use_new_file_chooser(&mut self, chooser: FileChooser) {
        self.host.new_file_chooser = Some(chooser);
    }

    /// Sets the dialog for an existing file that **Browse…** shows.
    pub fn use_file_chooser(&mut self, chooser: FileChooser) {
        self.host.file_chooser = Some(chooser);
    }

    /// Sets the function that **Print…** calls.
    pub fn use_pdf_printer(&mut self, printer: PdfPrinter) {
        self.host.pdf_printer = Some(printer);
    }

    /// Sets the function that **Open in default app** and **Show in folder** call.
    pub fn use_file_opener(&mut self, opener: FileOpener) {
        self.host.file_opener = Some(opener);
    }

    /// Sets the function that shows notifications of the desktop.
    pub fn use_notifier(&mut self, notifier: DesktopNotifier) {
        self.host.notifier = Some(notifier);
    }

    /// Sets how the look of the desktop is read: now, and whenever the window gets the focus.
    pub fn use_desktop_look(&mut self, ctx: &egui::Context, reader: DesktopLookReader) {
        self.host.look.reader = Some(reader);
        self.host.look.refresh(ctx);
    }

    /// Starts in safe mode: no tabs are restored, and no cells, runs or schedules start.
    pub fn start_safely(&mut self) {
        self.host.safe_mode = SafeMode::On;
        self.panes = PaneState::without_notes();
        self.panes.close_overlay(&mut self.overlay);
    }

    /// Starts as usual: restores tabs, and starts schedules when they are due. Waits if the user is asked about safe
    /// mode.
    pub fn start_normally(&mut self) {
        if self.host.safe_mode == SafeMode::Off {
            self.host.start_schedules(&mut self.notices);
        }
    }

    /// Opens a path from the command line: a folder as a volume, or a file's folder as a volume and the file in it.
    pub fn open_path(&mut self, ctx: &egui::Context, path: PathBuf) {
        // Keeps other notes from being shown until the path is open.
        self.panes.has_chosen_note = true;
        let (tell, wake) = (self.jobs.named_paths.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let _ = tell.send(host::desktop::inspect_path(&path)); // the window may be closed
            wake.request_repaint();
        });
    }

    /// Comes to the front for each request of a later start of the program, and opens the path that it names.
    pub fn follow_requests(&self, ctx: &egui::Context, requests: Receiver<Option<PathBuf>>) {
        let (tell, ctx) = (self.jobs.named_paths.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            for path in requests {
                if let Some(path) = path {
                    let _ = tell.send(host::desktop::inspect_path(&path)); // the window may be closed
                }
                for command in [egui::ViewportCommand::Minimized(false), egui::ViewportCommand::Focus] {
                    ctx.send_viewport_cmd_to(egui::ViewportId::ROOT, command);
                }
            }
        });
    }
}
