//! A window without a screen, for measurements and screenshots: the same frames and events as the real one, up to the
//! triangles that a graphics card would get.

use super::screenshots::canvas::SoftwareCanvas;
use eframe::App;
use eframe::egui::epaint::ClippedPrimitive;
use eframe::egui::{
    self, ColorImage, Event, Key, Modifiers, PointerButton, Pos2, RawInput, Rect, Vec2, ViewportInfo, pos2, vec2,
};
use engine::commands::CommandId;
use engine::{Command, Session};
use host::Driver;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::measure;
use window::AppWindow;

/// Maximum time to wait for anything.
const HEADLESS_WAIT_TIMEOUT: Duration = Duration::from_secs(1_800);
/// The window's size in points.
const WINDOW_SIZE_POINTS: (f32, f32) = (1_280.0, 800.0);

/// Timings of one frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameTimings {
    /// Time from the first event to the last triangle.
    pub(crate) wall: Duration,
    /// CPU time of this thread in the same period.
    pub(crate) cpu: Duration,
    /// Part of `wall` in which this thread waited for a busy core; zero if the system doesn't report it.
    pub(crate) waited: Duration,
    /// Number of voluntary context switches of this thread, which mean that it waited for something.
    pub(crate) gave_way: u64,
    /// Number of reads, writes, and page faults served from disk.
    pub(crate) transfers: u64,
    /// Part of `wall` spent on processing events from elsewhere.
    pub(crate) pump: Duration,
    /// CPU time of `pump`.
    pub(crate) pump_cpu: Duration,
    /// The last durable change after processing these events, and the time of that observation.
    pub(crate) durable: Option<(u64, Instant)>,
}

/// A window that's drawn without a screen.
pub(crate) struct HeadlessWindow {
    context: egui::Context,
    window: AppWindow,
    frame: eframe::Frame,
    begun: Instant,
    repaints: Receiver<Duration>,
    /// When the window needs its next frame.
    due: Option<Instant>,
    /// Pixels per point.
    scale: f32,
    /// The canvas for screenshots; measurements do without it.
    canvas: Option<SoftwareCanvas>,
    triangles: Vec<ClippedPrimitive>,
    /// Position of the pointer.
    pointer: Pos2,
}

impl HeadlessWindow {
    /// Opens a window on a workspace for screenshots.
    pub(crate) fn with_canvas(driver: Driver, scale: f32) -> HeadlessWindow {
        HeadlessWindow { scale, canvas: Some(SoftwareCanvas::default()), ..HeadlessWindow::new(driver) }
    }

    /// Opens a window on a workspace.
    pub(crate) fn new(driver: Driver) -> HeadlessWindow {
        let context = egui::Context::default();
        let (tell, repaints) = channel();
        context.set_request_repaint_callback(move |info| _ = tell.send(info.delay));
        let window = AppWindow::new(&context, driver);
        let frame = eframe::Frame::_new_kittest();
        HeadlessWindow {
            context,
            window,
            frame,
            begun: Instant::now(),
            repaints,
            due: None,
            scale: 1.0,
            canvas: None,
            triangles: Vec::new(),
            pointer: page_center(0.0),
        }
    }

    /// Returns the session behind the window.
    pub(crate) fn session(&self) -> &Session {
        self.window.session()
    }

    /// Sends a command as a view would.
    pub(crate) fn send_command(&mut self, command: Command) {
        self.window.send_command(command);
    }

    /// Draws a frame with input events.
    pub(crate) fn draw_frame(&mut self, events: Vec<Event>) -> FrameTimings {
        let viewport = ViewportInfo { native_pixels_per_point: Some(self.scale), ..ViewportInfo::default() };
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, vec2(WINDOW_SIZE_POINTS.0, WINDOW_SIZE_POINTS.1))),
            time: Some(self.begun.elapsed().as_secs_f64()),
            focused: true,
            events,
            viewports: [(egui::ViewportId::ROOT, viewport)].into_iter().collect(),
            ..RawInput::default()
        };
        let (HeadlessWindow { context, window, frame, canvas, .. }, mut drawn) = (&mut *self, FrameTimings::default());
        let (waited, gave_way) = (measure::thread_run_queue_wait(), measure::thread_voluntary_switches());
        // Reading the counter is itself a read; a second call measures its cost.
        let (looked, transfers) = (measure::thread_io_count(), measure::thread_io_count());
        let (begun, cpu) = (Instant::now(), measure::thread_cpu());
        let mut output = context.run_ui(input, |ui| {
            let (begun, cpu) = (Instant::now(), measure::thread_cpu());
            window.logic(ui.ctx(), frame);
            drawn.pump += begun.elapsed();
            drawn.pump_cpu += measure::thread_cpu().saturating_sub(cpu);
            drawn.durable = Some((window.session().saving().durable, Instant::now()));
            window.ui(ui, frame);
        });
        let triangles = context.tessellate(output.shapes, output.pixels_per_point);
        drawn.wall = begun.elapsed();
        drawn.cpu = measure::thread_cpu().saturating_sub(cpu);
        if let (Some(looked), Some(before), Some(after)) = (looked, transfers, measure::thread_io_count()) {
            drawn.transfers = after.saturating_sub(before).saturating_sub(before - looked);
        }
        if let (Some(before), Some(after)) = (gave_way, measure::thread_voluntary_switches()) {
            drawn.gave_way = after.saturating_sub(before);
        }
        if let Some(canvas) = canvas {
            canvas.update_textures(&output.textures_delta);
        }
        output.textures_delta.clear();
        if let (Some(before), Some(after)) = (waited, measure::thread_run_queue_wait()) {
            drawn.waited = after.saturating_sub(before);
        }
        self.triangles = std::hint::black_box(triangles);
        drawn
    }

    /// Returns the last frame as an image.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of a window")]
    pub(crate) fn screenshot(&self) -> ColorImage {
        let size = [(WINDOW_SIZE_POINTS.0 * self.scale) as usize, (WINDOW_SIZE_POINTS.1 * self.scale) as usize];
        let canvas = self.canvas.as_ref();
        canvas.map_or_else(ColorImage::default, |canvas| {
            canvas.paint(size, egui::Color32::BLACK, self.scale, &self.triangles)
        })
    }

    /// Performs a command of the command table.
    pub(crate) fn run_command(&mut self, id: CommandId) {
        self.window.perform_command(&self.context, id);
        self.draw_for(Duration::from_millis(60));
    }

    /// Requests a command of the command table without drawing a frame.
    pub(crate) fn request_command(&mut self, id: CommandId) {
        self.window.perform_command(&self.context, id);
    }

    /// Presses or releases the mouse button at the pointer.
    pub(crate) fn press_pointer(&mut self, pressed: bool) {
        let (pos, button, modifiers) = (self.pointer, PointerButton::Primary, Modifiers::NONE);
        self.draw_frame(vec![Event::PointerMoved(pos)]);
        self.draw_frame(vec![Event::PointerButton { pos, button, pressed, modifiers }]);
    }

    /// Moves the pointer, dragging if the button is pressed.
    pub(crate) fn drag_pointer(&mut self, by: Vec2) -> FrameTimings {
        self.pointer += by;
        self.draw_frame(vec![Event::PointerMoved(self.pointer)])
    }

    /// Presses a key that isn't a letter.
    pub(crate) fn press_key(&mut self, key: &str) {
        let (modifiers, key) = match key.strip_prefix("Shift+") {
            Some(key) => (Modifiers::SHIFT, key),
            None => (Modifiers::NONE, key),
        };
        let key = Key::from_name(key).unwrap_or(Key::Escape);
        let event = |pressed| Event::Key { key, physical_key: None, pressed, repeat: false, modifiers };
        self.draw_frame(vec![event(true)]);
        self.draw_frame(vec![event(false)]);
    }

    /// Types a text.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.draw_for(Duration::from_millis(60));
        self.draw_frame(vec![Event::Text(text.to_owned())]);
    }

    /// Shows a note.
    pub(crate) fn show_note(&mut self, note: store::DocId) {
        self.window.show(note);
    }

    /// Returns the visible note.
    pub(crate) fn shown_note(&self) -> Option<store::DocId> {
        self.window.note()
    }

    /// Returns the number of rows of the visible collection, once its table is there.
    pub(crate) fn collection_row_count(&self) -> Option<usize> {
        self.window.rows()
    }

    /// Returns the number of drawn figures in the note.
    pub(crate) fn drawn_figure_count(&self) -> usize {
        self.window.figures()
    }

    /// Places the caret at a byte offset.
    pub(crate) fn place_caret(&mut self, at: usize) {
        self.window.place_caret(at);
        self.draw_frame(Vec::new());
    }

    /// Waits until the window needs a frame, at most `limit`, as the system's event loop does. Returns whether it does.
    pub(crate) fn wait_for_repaint(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            while let Ok(delay) = self.repaints.try_recv() {
                self.repaint_after(delay);
            }
            let now = Instant::now();
            if self.due.is_some_and(|due| due <= now) {
                self.due = None;
                return true;
            }
            if now >= until {
                return false;
            }
            let next = self.due.map_or(until, |due| due.min(until));
            if let Ok(delay) = self.repaints.recv_timeout(next - now) {
                self.repaint_after(delay);
            }
        }
    }

    fn repaint_after(&mut self, delay: Duration) {
        let at = Instant::now().checked_add(delay);
        self.due = [self.due, at].into_iter().flatten().min();
    }

    /// Draws frames on request for some time.
    pub(crate) fn draw_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.wait_for_repaint(until.saturating_duration_since(Instant::now())) {
                self.draw_frame(Vec::new());
            }
        }
    }

    /// Draws frames until a condition holds.
    pub(crate) fn draw_until(&mut self, what: &str, so: impl Fn(&Session) -> bool) -> Result<(), String> {
        let begun = Instant::now();
        while !so(self.session()) {
            if begun.elapsed() > HEADLESS_WAIT_TIMEOUT {
                return Err(format!("given up waiting until {what}"));
            }
            self.wait_for_repaint(Duration::from_millis(20));
            self.draw_frame(Vec::new());
        }
        Ok(())
    }

    /// Places the caret at a byte of the open note and scrolls there.
    pub(crate) fn place_caret_and_scroll(&mut self, at: usize) {
        self.window.place_caret(at);
    }

    /// Scrolls by a number of points. Returns the CPU time of the costlier of the two frames that it takes.
    pub(crate) fn turn_wheel(&mut self, by: f32) -> Duration {
        let turn = Self::wheel_event(by);
        let first = self.draw_frame(vec![Event::PointerMoved(page_center(0.0)), turn]).cpu;
        first.max(self.draw_frame(Vec::new()).cpu)
    }

    /// Scrolls the page by a number of points.
    pub(crate) fn scroll_page(&mut self, by: f32) {
        let turn = Self::wheel_event(by);
        self.draw_frame(vec![Event::PointerMoved(page_center(0.0)), turn]);
        self.draw_for(Duration::from_millis(600));
    }

    /// Returns the event of a turn of the wheel by a number of points.
    pub(crate) fn wheel_event(by: f32) -> Event {
        Event::MouseWheel {
            unit: egui::MouseWheelUnit::Point,
            delta: vec2(0.0, -by),
            phase: egui::TouchPhase::Move,
            source: egui::MouseWheelSource::Unknown,
            modifiers: Modifiers::NONE,
        }
    }

    /// Clicks `down` points below the center of the page.
    pub(crate) fn click_page(&mut self, down: f32) {
        let button = |pressed| Event::PointerButton {
            pos: page_center(down),
            button: PointerButton::Primary,
            pressed,
            modifiers: Modifiers::NONE,
        };
        self.draw_frame(vec![Event::PointerMoved(page_center(down))]);
        self.draw_frame(vec![button(true)]);
        self.draw_frame(vec![button(false)]);
        self.draw_for(Duration::from_millis(100));
    }

    /// Closes the window and saves.
    pub(crate) fn close(self) {
        // Changes that couldn't be saved are deleted with the workspace anyway.
        let _ = self.window.close();
    }
}

/// Returns the center of the page, taking into account the file tree on the left.
fn page_center(down: f32) -> Pos2 {
    pos2(WINDOW_SIZE_POINTS.0 / 2.0 + 100.0, WINDOW_SIZE_POINTS.1 / 2.0 + down)
}

/// Returns the events of a key press, as a keyboard sends them.
pub(crate) fn key_events(letter: char) -> Vec<Event> {
    let key = Key::from_name(&letter.to_uppercase().to_string()).unwrap_or(Key::Space);
    let down = Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers: Modifiers::NONE };
    vec![down, Event::Text(letter.to_string())]
}
