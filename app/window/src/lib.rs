//! The window: tree, note, panel, status line, palette. It reads the session and sends commands; it opens no file, asks
//! no network, changes no state of its own accord, and never waits while it draws.

#![allow(
    missing_docs,
    reason = "what is public here is so for sibling crates of this program; fields say what they are"
)]

mod act;
mod agenda;
mod agent_commands;
mod cells;
mod closing;
mod codehelp;
mod collection;
mod commands;
mod complete;
mod dialogs;
mod dropped;
mod empty_note;
mod exports;
mod field;
mod figure;
mod filing;
mod find;
mod folding;
mod follow;
mod generated;
mod graph;
mod history;
mod hover;
mod jupyter;
mod kernels;
mod keyboard;
mod layout;
mod memory_commands;
mod modal;
mod outline;
mod outputs;
mod page;
mod palette;
mod pane;
mod panes;
pub mod pasting;
mod prefs;
mod presence;
mod queries;
mod references;
mod related;
mod script;
mod search;
mod settings;
mod slash;
mod spelling;
mod status;
mod sync;
mod tabs;
mod trash;
mod tree;
mod variables;
mod views;
mod writing;

use closing::Closing;
use commands::Shortcut;
use complete::Completion;
use dialogs::Dialog;
use editor::note_editor::{Editor, World};
use eframe::egui;
use host::Driver;
use hover::Hover;
use outline::Outline;
use page::Page;
use palette::Palette;
use pane::Pane;
use panes::Panes;
use prefs::Prefs;
use references::References;
use status::Status;
use std::collections::{HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::DocId;
use tree::Tree;
use ui::toasts::Toasts;
use ui::tokens;
use views::View;

/// A frame spends at most this much on what came in.
const PUMP: Duration = Duration::from_millis(4);

/// What floats above the rest.
enum Overlay {
    None,
    Palette(Palette),
    Search(Box<search::Seek>),
    Dialog(Dialog),
    Settings(Box<settings::Page>),
}

/// The window of Tracebook.
pub struct Window {
    driver: Option<Driver>,
    prefs: Prefs,
    shortcuts: Vec<Shortcut>,
    /// The pane that has the caret.
    here: Pane,
    panes: Panes,
    /// The note to be opened once it is known.
    wanted: Option<DocId>,
    /// Whether somebody has chosen a note yet; until then the window may.
    chose: bool,
    /// Notes that the session keeps open, the newest first.
    kept: VecDeque<DocId>,
    tree: Tree,
    /// What was done in collections.
    deeds: collection::Deeds,
    /// Collections that notes show.
    embedded: collection::Held,
    /// What waits for a note's text.
    errands: Vec<filing::Errand>,
    outline: Outline,
    references: References,
    completion: Completion,
    code_help: codehelp::CodeHelp,
    variables: variables::Variables,
    agent: agent_ui::agent::Agent,
    /// Experiences and schedules that were forgotten, the last one at the end: they can be brought back.
    forgotten: Vec<agent_ui::memory::Forgotten>,
    hover: Hover,
    /// Where the session was told that the carets are, and of how many shared volumes that was.
    told_carets: Option<(presence::Place, usize)>,
    /// The page that is shown instead of notes.
    view: Option<View>,
    status: Status,
    toasts: Toasts,
    /// The number of the last notice that was looked at.
    noticed: u64,
    /// In how many notes links could follow renamed files, when that was said last.
    told_renamed: usize,
    /// Of each note the last clean run that was told of.
    verdicts: std::collections::BTreeMap<DocId, u64>,
    dropped: dropped::Dropped,
    exports: exports::Exports,
    /// What is said once an output is saved.
    saved: (Sender<String>, Receiver<String>),
    pasting: pasting::Pasting,
    overlay: Overlay,
    /// Where a chosen hit leads, until its note can be read.
    aim: Option<search::Aim>,
    /// What is looked for in the open note, and what was looked for before.
    find: Option<find::Find>,
    sought: Option<find::Find>,
    /// Modes of other editors.
    modal: modal::Modal,
    jupyter: jupyter::Jupyter,
    /// How often kernels had been looked for when the user asked which there are.
    kernels_asked: Option<u64>,
    /// The menu behind a slash.
    slash: Option<slash::Slash>,
    /// Commands by when they were used, newest first.
    recent: Vec<&'static str>,
    /// The last few that ran, oldest first.
    ran: VecDeque<commands::What>,
    /// Problems that were read and put away.
    dismissed: HashSet<String>,
    closing: Closing,
    title: String,
    first_frame: Option<Box<dyn FnOnce()>>,
    /// What could not be saved at the end.
    left_behind: Arc<Mutex<Option<String>>>,
}

impl Window {
    /// A window on an open workspace.
    pub fn new(ctx: &egui::Context, mut driver: Driver) -> Window {
        tokens::install(ctx);
        ctx.add_plugin(editor::turns::Turns::default());
        ctx.add_plugin(spelling::SpellingPlugin::default());
        ctx.add_plugin(editor::sights::Sights::default());
        ctx.add_plugin(figure::Shelf::default());
        ctx.add_plugin(collection::desk::Desk::default());
        let wake = ctx.clone();
        driver.on_wake(move || wake.request_repaint());
        editor::sights::know(ctx, driver.handle());
        let prefs = Prefs::of(driver.session().settings());
        prefs.apply(ctx);
        let settings = driver.session().settings();
        let shortcuts = commands::shortcuts(settings);
        let tree = Tree::of(settings);
        let (mut here, panes) = Panes::of(settings.panes.as_ref(), settings.pane);
        let wanted = if settings.panes.is_some() { here.note } else { settings.last_note };
        let chose = settings.panes.is_some() && wanted.is_none();
        here.turn(None);
        Window {
            driver: Some(driver),
            prefs,
            shortcuts,
            here,
            panes,
            wanted,
            chose,
            kept: VecDeque::new(),
            tree,
            deeds: collection::Deeds::default(),
            embedded: collection::Held::default(),
            errands: Vec::new(),
            outline: Outline::default(),
            references: References::default(),
            completion: Completion::default(),
            code_help: codehelp::CodeHelp::default(),
            variables: variables::Variables::default(),
            agent: agent_ui::agent::Agent::default(),
            forgotten: Vec::new(),
            hover: Hover::default(),
            told_carets: None,
            view: None,
            status: Status::default(),
            toasts: Toasts::default(),
            noticed: 0,
            told_renamed: 0,
            verdicts: std::collections::BTreeMap::new(),
            dropped: dropped::Dropped::default(),
            exports: exports::Exports::default(),
            saved: channel(),
            pasting: pasting::Pasting::default(),
            overlay: Overlay::None,
            aim: None,
            find: None,
            sought: None,
            modal: modal::Modal::default(),
            jupyter: jupyter::Jupyter::default(),
            kernels_asked: None,
            slash: None,
            recent: Vec::new(),
            ran: VecDeque::new(),
            dismissed: HashSet::new(),
            closing: Closing::No,
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
    pub fn wish(&mut self, command: engine::Command) {
        self.send(command);
    }

    /// Performs a command of the table, by its id, as the palette does; for tests and pictures.
    pub fn perform_command(&mut self, ctx: &egui::Context, id: &str) {
        if let Some(what) = commands::what(id) {
            self.run(ctx, what);
        }
    }

    /// The ids of the commands that ran since this was asked last, at most the last eight; for tests.
    pub fn take_ran(&mut self) -> Vec<&'static str> {
        let id = |what: commands::What| commands::offered().find(|info| commands::what(info.id) == Some(what));
        self.ran.drain(..).filter_map(id).map(|info| info.id).collect()
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
        self.here.editor.caret.map(|caret| caret.at)
    }

    /// All carets, from the top of the note: where each is, and where its selection begins; for tests.
    pub fn carets(&self) -> Vec<(usize, usize)> {
        let mut carets: Vec<(usize, usize)> = self.here.editor.carets().map(|caret| (caret.at, caret.anchor)).collect();
        carets.sort_unstable();
        carets
    }

    /// Puts carets there, with their selections; for tests.
    pub fn place_carets(&mut self, carets: &[(usize, usize)]) {
        self.here.editor.leave();
        if let [(at, anchor), rest @ ..] = carets {
            self.here.editor.select(*anchor, *at);
            self.here.editor.more =
                rest.iter().map(|(at, anchor)| editor::note_editor::Caret { at: *at, anchor: *anchor }).collect();
        }
    }

    /// Puts the caret there, as a click would; for tests.
    pub fn place_caret(&mut self, at: usize) {
        self.here.editor.place(at);
    }

    /// The note that is shown.
    pub fn note(&self) -> Option<DocId> {
        self.here.note
    }

    /// Takes in what happened elsewhere.
    fn pump(&mut self, ctx: &egui::Context) {
        let Some(driver) = &mut self.driver else { return };
        driver.pump(PUMP);
        if driver.is_closing() && matches!(self.closing, Closing::No) {
            ctx.send_viewport_cmd(egui::ViewportCommand::Close);
        }
        if let Some(wake) = driver.next_wake() {
            ctx.request_repaint_after(wake.max(Duration::from_millis(1)));
        }
        let notices = driver.session().notices();
        for noticed in notices.after(self.noticed).filter(|noticed| noticed.notice.is_news()) {
            let words = noticed.notice.words();
            let mut letters = words.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            self.toasts.say(format!("{first}{}", letters.as_str()));
        }
        self.noticed = notices.last();
    }

    /// Looks at the note of the pane that has the caret, once it is there.
    fn with_note<R>(
        &mut self,
        ctx: &egui::Context,
        dark: bool,
        look: impl FnOnce(&mut World<'_>, &mut Editor, &mut Page) -> R,
    ) -> Option<R> {
        self.here.with_note(self.driver.as_ref()?.session(), ctx, dark, look)
    }

    /// Says in the title which note is open.
    fn entitle(&mut self, ctx: &egui::Context) {
        let name = self.driver.as_ref().and_then(|driver| {
            let (_, path) = driver.session().place(self.here.note?)?;
            Some(tree::shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned())
        });
        let title =
            name.map_or_else(|| "Tracebook".to_owned(), |name| format!("Tracebook — {}", text::visible::line(&name)));
        if title != self.title {
            ctx.send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
    }
}

impl eframe::App for Window {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        self.pump(ctx);
        self.close_step(ctx);
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        let ctx = ui.ctx().clone();
        self.prefs.blink(&ctx);
        self.choose_first(&ctx);
        self.spelling(&ctx);
        self.keyboard(&ctx);
        self.follow_aim();
        self.keep_panes();
        self.tell_renamed();
        self.tell_carets();
        self.run_errands(&ctx);
        self.history_step(&ctx);
        self.sync_step();
        self.show_kernels();
        self.here.editor.shape = self.caret_shape();
        let actions = self.layout(ui);
        self.hold_embedded();
        self.feed_views();
        if let Some(driver) = &self.driver {
            editor::sights::fetch(&ctx, driver.session());
            figure::fetch(&ctx, driver);
            collection::desk::feed(&ctx, driver.session());
        }
        self.perform(&ctx, actions);
        self.complete(&ctx);
        self.code_help(&ctx);
        self.hover(&ctx);
        self.overlays(&ctx);
        self.dropped(&ctx);
        self.tell_saved();
        self.say_verdict();
        self.keep_prefs(&ctx);
        // At the end, so that nothing of this frame is laid out with the glyphs of the next.
        self.prefs.apply(&ctx);
        self.entitle(&ctx);
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
            let mut window = Window::new(&creation.egui_ctx, driver);
            window.read_clipboard(pasting::system);
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
    const SIDE: u32 = 64;
    let mut rgba = Vec::new();
    for y in 0..SIDE {
        for x in 0..SIDE {
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
    egui::IconData { rgba, width: SIDE, height: SIDE }
}
