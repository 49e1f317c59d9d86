//! The window of Tracebook: tree, note, panels, status bar and palette.
//!
//! It reads the session and sends commands. It opens no files, makes no network requests, changes no state on its own,
//! and never blocks while it draws.

mod app_window;
mod handlers;
mod overlays;
mod pages;
mod panels;
mod shell;
#[cfg(feature = "test-access")]
mod test_access;

use anyhow::{anyhow, bail};
pub use app_window::AppWindow;
use editor::figure;
use eframe::egui;
use host::Driver;
use notebook::collection;
pub use shell::clipboard;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

impl eframe::App for AppWindow {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        self.frame_log.begin();
        self.host.pump(&mut self.notices, &mut self.shutdown, ctx);
        self.notices.notify_desktop(&self.host, ctx);
        self.shutdown.close_step(&mut self.host, &mut self.panes, &mut self.overlay, ctx);
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        let ctx = ui.ctx().clone();
        self.prefs.blink(&ctx);
        self.panes.open_named_paths(&mut self.host, &mut self.notices, &self.prefs, &self.jobs);
        self.panes.choose_first(&mut self.host, &mut self.notices, &ctx);
        self.panes.update_spelling(&self.host, &mut self.overlay, &ctx);
        self.dispatch_keys(&ctx);
        self.panes.finish_openings(&mut self.host, &mut self.dock, &mut self.notices, &self.jobs, &ctx);
        self.jobs.take_obsidian_settings(&mut self.host, &self.prefs, &mut self.notices);
        self.jobs.replacement.step(&mut self.host, &mut self.notices);
        self.panes.open_converted_note(&mut self.host, &mut self.notices);
        self.panes.follow_aim(&self.host, &mut self.notices);
        self.panes.save_panes(&mut self.host, &mut self.notices);
        self.notices.report_renamed_links(&self.host);
        self.panes.send_carets(&mut self.host, &mut self.notices);
        self.panes.run_pending_note_actions(&mut self.host, &mut self.notices, &ctx);
        self.panes.history_step(&mut self.host, &mut self.notices, &ctx);
        self.panes.sync_step(&self.host);
        self.panes.report_source_control(&self.host, &mut self.notices);
        self.panes.follow_blame(&self.host);
        self.dock.ask_in_made_fork(&mut self.host, &mut self.notices);
        self.overlay.follow_python_setup(&mut self.host);
        self.overlay.follow_packages(&mut self.host);
        self.overlay.show_kernels(&self.host, &mut self.panes, &mut self.notices, &mut self.jobs);
        self.overlay.follow_saved_states(&self.host);
        self.jobs.report_state_moves(&self.host, &self.panes, &self.overlay, &mut self.notices);
        self.panes.active.editor.shape = self.panes.caret_shape(&self.host, &self.input);
        notebook::outputs::set_science_installed(&ctx, self.host.science.status().installed.is_some());
        let actions = self.show_layout(ui);
        self.panes.open_embedded_collections(&mut self.host);
        self.panes.feed_views(&mut self.host, &ctx);
        editor::assets::fetch_assets(&ctx, self.host.session());
        figure::fetch_figures(&ctx, &self.host.driver);
        collection::query_worker::sync_files(&ctx, self.host.session());
        self.perform_actions(&ctx, actions);
        self.follow_first_steps(&ctx);
        self.input.show_link_completion(&mut self.host, &mut self.panes, &mut self.overlay, &mut self.notices, &ctx);
        self.input.code_help(&mut self.host, &mut self.panes, &mut self.overlay, &mut self.notices, &ctx);
        self.input.update_link_hover(&mut self.host, &mut self.panes, &mut self.overlay, &ctx);
        self.show_overlays(&ctx);
        self.panes.handle_file_drops(&mut self.host, &mut self.input, &mut self.notices, &self.prefs, &ctx);
        self.jobs.report_saved_output(&mut self.notices, &ctx);
        self.jobs.show_bug_report(&mut self.overlay, &mut self.notices);
        self.notices.report_unshown_scripts(&mut self.host, &self.prefs);
        self.panes.report_clean_run(&self.host, &mut self.notices);
        self.prefs.save_window_state(&mut self.host, &mut self.panes, &mut self.dock, &mut self.notices, &ctx);
        // Applied last, so that nothing in this frame is laid out with the next frame's glyphs.
        if ctx.input(|input| input.events.contains(&egui::Event::WindowFocused(true))) {
            // The user may come from the terminal, where a package was installed.
            let wake = ctx.clone();
            self.host.texts.refresh(move || wake.request_repaint());
            self.host.look.refresh(&ctx);
        }
        self.prefs.apply(&ctx, &self.host.texts.last());
        self.update_title(&ctx);
        self.frame_log.end();
    }
}

/// A window in eframe's event loop, until it's closed.
struct RunningWindow<F> {
    window: Option<AppWindow>,
    /// Called after the first frame.
    first_frame: Option<F>,
    /// The error if something couldn't be saved when the window closed.
    left_behind: Arc<Mutex<Option<anyhow::Error>>>,
}

impl<F: FnOnce()> eframe::App for RunningWindow<F> {
    fn logic(&mut self, ctx: &egui::Context, frame: &mut eframe::Frame) {
        if let Some(window) = &mut self.window {
            window.logic(ctx, frame);
        }
    }

    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut eframe::Frame) {
        if let Some(window) = &mut self.window {
            window.ui(ui, frame);
        }
        if let Some(told) = self.first_frame.take() {
            told();
        }
    }

    fn on_exit(&mut self, _: Option<&eframe::glow::Context>) {
        if let Some(window) = self.window.take()
            && let Err(why) = window.close()
            && let Ok(mut left) = self.left_behind.lock()
        {
            *left = Some(why);
        }
    }
}

/// Opens the window, and returns when it's closed and everything is saved.
///
/// If `path` names a folder or file, the window opens with it. `is_safe`: in safe mode. Each of `requests` brings it to
/// the front, and may name another path. `first_frame` is called once, after the first frame.
///
/// # Errors
/// Returns an error with a message for the user if there's no display, if something that a window needs at run time is
/// missing, or if something couldn't be saved at the end.
pub fn run(
    driver: Driver,
    path: Option<PathBuf>,
    is_safe: bool,
    requests: Receiver<Option<PathBuf>>,
    first_frame: impl FnOnce() + 'static,
) -> anyhow::Result<()> {
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].iter().any(|name| std::env::var_os(name).is_some());
    if cfg!(target_os = "linux") && !has_display {
        bail!(
            "there is no display, so no window can be opened; the command line works without one: try `tracebook ls`, \
             and `tracebook help` for the rest"
        );
    }
    host::logging::record_window_start();
    let (width, height) = driver.session().settings().window;
    let place = driver.session().settings().window_place;
    let viewport = egui::ViewportBuilder::default()
        .with_title("Tracebook")
        .with_app_id("tracebook")
        .with_icon(window_icon())
        .with_inner_size([width, height])
        .with_min_inner_size([480.0, 320.0]);
    let options = eframe::NativeOptions { viewport, ..Default::default() };
    let left_behind: Arc<Mutex<Option<anyhow::Error>>> = Arc::default();
    let left = left_behind.clone();
    let made = eframe::run_native(
        "tracebook",
        options,
        Box::new(move |creation| {
            let mut window = AppWindow::new(&creation.egui_ctx, driver);
            window.read_clipboard(clipboard::system_clipboard);
            window.use_pdf_printer(Arc::new(host::desktop::print_pdf));
            window.use_file_opener(Arc::new(host::desktop::open_in_default_app));
            window.use_folder_chooser(Arc::new(host::desktop::choose_folder));
            window.use_new_file_chooser(Arc::new(host::desktop::choose_new_file));
            window.use_file_chooser(Arc::new(host::desktop::choose_file));
            window.use_notifier(Arc::new(host::desktop::show_notification));
            window.use_desktop_look(&creation.egui_ctx, Arc::new(host::desktop::read_look));
            if is_safe {
                window.start_safely();
            } else {
                window.start_normally();
            }
            place_window(creation, place);
            if let Some(path) = path {
                window.open_path(&creation.egui_ctx, path);
            }
            window.follow_requests(&creation.egui_ctx, requests);
            Ok(Box::new(RunningWindow { window: Some(window), first_frame: Some(first_frame), left_behind: left }))
        }),
    );
    made.map_err(|error| {
        anyhow!(
            "the window cannot be opened: {error}; on Debian it needs the packages libgl1 libegl1 libxkbcommon0 \
             libxkbcommon-x11-0 libx11-xcb1 libxcursor1 libxi6 libxrandr2 (and libgl1-mesa-dri where there is no other \
             driver); the command line works without a window: try `tracebook ls`"
        )
    })?;
    let left = left_behind.lock().ok().and_then(|mut left| left.take());
    left.map_or(Ok(()), Err)
}

/// Moves the window to where it was, unless that's outside of all screens. Wayland places windows itself.
fn place_window(creation: &eframe::CreationContext<'_>, place: Option<(f32, f32)>) {
    let (Some(window), Some((left, top))) = (creation.winit_window(), place) else { return };
    let screens: Vec<egui::Rect> = window
        .available_monitors()
        .map(|screen| {
            let (at, size) = (screen.position(), screen.size());
            egui::Rect::from_min_size(
                egui::pos2(at.x as f32, at.y as f32),
                egui::vec2(size.width as f32, size.height as f32),
            )
        })
        .collect();
    if shell::window_state::is_on_screen(egui::pos2(left, top), &screens)
        && let Some(mut corner) = window.available_monitors().next().map(|screen| screen.position())
    {
        (corner.x, corner.y) = (left as i32, top as i32);
        window.set_outer_position(corner);
    }
}

/// Returns the program's icon, the same one that packages install.
fn window_icon() -> egui::IconData {
    // The bytes are embedded, so a failure to decode them would be a mistake in the build, and no reason not to start.
    eframe::icon_data::from_png_bytes(include_bytes!("../../../assets/icon/tracebook-64.png")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_icon_is_a_picture() {
        let icon = window_icon();
        assert_eq!((icon.width, icon.height, icon.rgba.len()), (64, 64, 64 * 64 * 4));
        assert!(icon.rgba.chunks(4).any(|pixel| pixel == [0x3b, 0x5b, 0xdb, 255]), "the trace is drawn");
    }
}
