//! The window without a screen, to be measured or to be pictured: the same frames, fed with the same events, up to the
//! triangles that a graphics card would be given.

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

/// How long anything may take before it is given up.
const HEADLESS_WAIT_TIMEOUT: Duration = Duration::from_secs(1_800);
/// The window's size in points.
const WINDOW_SIZE_POINTS: (f32, f32) = (1_280.0, 800.0);

/// What one frame took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameTimings {
    /// From its first event to the last triangle.
    pub(crate) wall: Duration,
    /// The same as CPU time of this thread.
    pub(crate) cpu: Duration,
    /// Of it, how long this thread waited for a core that others were on; zero where the system does not say.
    pub(crate) waited: Duration,
    /// How often this thread gave up its core meanwhile to wait for something.
    pub(crate) gave_way: u64,
    /// How often it read or wrote, or touched memory that had to come from the disk.
    pub(crate) transfers: u64,
    /// Of it, the taking in of what happened elsewhere.
    pub(crate) pump: Duration,
    /// The same as CPU time.
    pub(crate) pump_cpu: Duration,
    /// How far the session was on disk once that was taken in, and when that was.
    pub(crate) durable: Option<(u64, Instant)>,
}

/// A window that is drawn for nobody.
pub(crate) struct HeadlessWindow {
    context: egui::Context,
    window: AppWindow,
    frame: eframe::Frame,
    begun: Instant,
    repaints: Receiver<Duration>,
    /// When the window wants to be drawn again.
    due: Option<Instant>,
    /// Pixels a point.
    scale: f32,
    /// What a picture needs; measurements do without.
    canvas: Option<SoftwareCanvas>,
    triangles: Vec<ClippedPrimitive>,
    /// Where something is held.
    pointer: Pos2,
}

impl HeadlessWindow {
    /// Opens the window on a workspace, to be pictured.
    pub(crate) fn with_canvas(driver: Driver, scale: f32) -> HeadlessWindow {
        HeadlessWindow { scale, canvas: Some(SoftwareCanvas::default()), ..HeadlessWindow::new(driver) }
    }

    /// Opens the window on a workspace.
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

    /// The state behind the window.
    pub(crate) fn session(&self) -> &Session {
        self.window.session()
    }

    /// Sends a command as a view does.
    pub(crate) fn send_command(&mut self, command: Command) {
        self.window.send_command(command);
    }

    /// Draws a frame in which these events come in.
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
        // Looking is reading, too: what that adds is known from looking twice.
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

    /// The frame that was drawn last, as a picture.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of a window")]
    pub(crate) fn screenshot(&self) -> ColorImage {
        let size = [(WINDOW_SIZE_POINTS.0 * self.scale) as usize, (WINDOW_SIZE_POINTS.1 * self.scale) as usize];
        let canvas = self.canvas.as_ref();
        canvas.map_or_else(ColorImage::default, |canvas| {
            canvas.paint(size, egui::Color32::BLACK, self.scale, &self.triangles)
        })
    }

    /// Performs a command of the table.
    pub(crate) fn run_command(&mut self, id: CommandId) {
        self.window.perform_command(&self.context, id);
        self.draw_for(Duration::from_millis(60));
    }

    /// Asks for a command of the table, and draws nothing yet.
    pub(crate) fn request_command(&mut self, id: CommandId) {
        self.window.perform_command(&self.context, id);
    }

    /// Presses the button in the middle of the page, or lets it go.
    pub(crate) fn press_pointer(&mut self, pressed: bool) {
        let (pos, button, modifiers) = (self.pointer, PointerButton::Primary, Modifiers::NONE);
        self.draw_frame(vec![Event::PointerMoved(pos)]);
        self.draw_frame(vec![Event::PointerButton { pos, button, pressed, modifiers }]);
    }

    /// Moves the pointer, and what it holds.
    pub(crate) fn drag_pointer(&mut self, by: Vec2) -> FrameTimings {
        self.pointer += by;
        self.draw_frame(vec![Event::PointerMoved(self.pointer)])
    }

    /// Presses a key that is no letter.
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

    /// The note that is shown.
    pub(crate) fn shown_note(&self) -> Option<store::DocId> {
        self.window.note()
    }

    /// How many rows the collection that is shown has, once its table is there.
    pub(crate) fn collection_row_count(&self) -> Option<usize> {
        self.window.rows()
    }

    /// How many figures of the note are drawn.
    pub(crate) fn drawn_figure_count(&self) -> usize {
        self.window.figures()
    }

    /// Puts the caret there.
    pub(crate) fn place_caret(&mut self, at: usize) {
        self.window.place_caret(at);
        self.draw_frame(Vec::new());
    }

    /// Waits at most `limit`, as the system's loop does: until the window wants to be drawn. Whether it does.
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

    /// Draws whenever the window wants it, for a while.
    pub(crate) fn draw_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.wait_for_repaint(until.saturating_duration_since(Instant::now())) {
                self.draw_frame(Vec::new());
            }
        }
    }

    /// Draws until something is so.
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

    /// Puts the caret at a byte of the open note, and the page there.
    pub(crate) fn place_caret_and_scroll(&mut self, at: usize) {
        self.window.place_caret(at);
    }

    /// Turns the wheel by so many points; gives the CPU time of the costlier of the two frames that it takes.
    pub(crate) fn turn_wheel(&mut self, by: f32) -> Duration {
        let turn = Self::wheel_event(by);
        let first = self.draw_frame(vec![Event::PointerMoved(page_center(0.0)), turn]).cpu;
        first.max(self.draw_frame(Vec::new()).cpu)
    }

    /// Scrolls the page by so many points.
    pub(crate) fn scroll_page(&mut self, by: f32) {
        let turn = Self::wheel_event(by);
        self.draw_frame(vec![Event::PointerMoved(page_center(0.0)), turn]);
        self.draw_for(Duration::from_millis(600));
    }

    fn wheel_event(by: f32) -> Event {
        Event::MouseWheel {
            unit: egui::MouseWheelUnit::Point,
            delta: vec2(0.0, -by),
            phase: egui::TouchPhase::Move,
            source: egui::MouseWheelSource::Unknown,
            modifiers: Modifiers::NONE,
        }
    }

    /// Clicks into the middle of the page, `down` points below its centre.
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

    /// Ends the window and saves.
    pub(crate) fn close(self) {
        // What could not be saved is thrown away with the workspace.
        let _ = self.window.close();
    }
}

/// The centre of the page, the tree being at the left.
fn page_center(down: f32) -> Pos2 {
    pos2(WINDOW_SIZE_POINTS.0 / 2.0 + 100.0, WINDOW_SIZE_POINTS.1 / 2.0 + down)
}

/// A key going down, as a keyboard sends it.
pub(crate) fn key_events(letter: char) -> Vec<Event> {
    let key = Key::from_name(&letter.to_uppercase().to_string()).unwrap_or(Key::Space);
    let down = Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers: Modifiers::NONE };
    vec![down, Event::Text(letter.to_string())]
}
