//! Figures in outputs, with their visible range and series. A figure is parsed once, in the background if large. It is
//! redrawn when its range or size changes, so it stays sharp.

mod interaction;
mod kernel_redraw;
mod shape_backend;

use crate::render::TextStyleContext;
use anyhow::anyhow;
use eframe::egui;
use egui::emath::GuiRounding;
use egui::{Color32, ColorImage, Context, Pos2, Shape, TextureHandle, Vec2, vec2};
pub use interaction::FigureCommand;
use kernel_redraw::{FigureRedraws, PendingRedraw};
use plot::{PlacedAxes, PlotTheme, PlotView, PreparedFigure};
use shape_backend::{MAX_CORNER_TESTS, STEPS_PER_POINT, ShapeBackend};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::{BlobHash, CellOutput, ExecutionId, OutputBody};
use ui::theme::{self, ThemeColors};

/// Number of frames after which unseen figures are evicted.
const FIGURE_EVICTION_FRAMES: u64 = 900;
/// Size of a figure before it is parsed, in points.
const PLACEHOLDER_FIGURE_SIZE: Vec2 = vec2(640.0, 400.0);

/// Maximum length of the ID by which a kernel knows a figure.
const MAX_FIGURE_ID_BYTES: usize = 64;

/// Identifies a figure: its execution and the index of its output.
pub type FigureId = (ExecutionId, usize);

/// Where a figure's data is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FigureSource {
    /// In the note's outputs; contains a hash of the data.
    Here(u64),
    Blob(BlobHash),
}

/// A figure in a cell's outputs: its position, and what is known before it's parsed.
pub struct FigureSlot {
    name: FigureId,
    data: FigureSource,
    /// The parsed figure, if it is small enough to be in the note's outputs.
    made: Option<FigureResult>,
    /// Offset from the top of the outputs.
    pub y: f32,
    /// Size on the page, in points.
    pub size: Vec2,
    scale: f32,
    /// Text alternative for screen readers.
    pub words: String,
    /// ID by which the kernel that drew the figure knows it.
    kernel_id: Option<String>,
}

impl FigureSlot {
    /// Returns the figure of an output, at most `width` wide; `None` if the output isn't a figure.
    pub fn from_output(
        name: FigureId,
        output: &CellOutput,
        width: f32,
        pen: TextStyleContext<'_>,
    ) -> Option<FigureSlot> {
        let (OutputBody::ExecuteResult { data, metadata, .. } | OutputBody::DisplayData { data, metadata }) =
            &output.body
        else {
            return None;
        };
        let about = metadata.get(plot::FIGURE_MIME);
        #[allow(clippy::cast_possible_truncation, reason = "points")]
        let side = |name: &str, else_: f32| {
            let said = about.and_then(|about| about[name].as_f64());
            said.filter(|said| (16.0..=10_000.0).contains(said)).map_or(else_, |said| said as f32)
        };
        let mut size = vec2(side("width", PLACEHOLDER_FIGURE_SIZE.x), side("height", PLACEHOLDER_FIGURE_SIZE.y));
        let title = about.and_then(|about| about["title"].as_str()).unwrap_or("");
        let mut words = if title.is_empty() { "Figure".to_owned() } else { format!("Figure: {title}") };
        let (data, made) = if let Some(value) = data.get(plot::FIGURE_MIME) {
            let json = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let mut hasher = DefaultHasher::new();
            json.hash(&mut hasher);
            let data = FigureSource::Here(hasher.finish());
            // Data in the note's outputs is small enough to be parsed at once.
            let made = with(pen.ctx, |shelf| shelf.cached_figure(data)).flatten().unwrap_or_else(|| {
                let made = prepare_figure(&json).map_err(Arc::new);
                with(pen.ctx, |shelf| shelf.keep(data, made.clone()));
                made
            });
            if let Ok(ready) = &made {
                #[allow(clippy::cast_possible_truncation, reason = "points")]
                let own = vec2(ready.figure.width as f32, ready.figure.height as f32);
                (size, words) = (own, ready.describe());
            }
            (data, Some(made))
        } else {
            (FigureSource::Blob(output.whole.as_ref().filter(|whole| whole.mime == plot::FIGURE_MIME)?.blob), None)
        };
        // A figure that is too wide is scaled as a whole, so its text stays in proportion.
        let scale = (width / size.x).min(1.0);
        let kernel_id = about.and_then(|about| about["figure"].as_str()).map(ToOwned::to_owned);
        let kernel_id = kernel_id.filter(|id| id.len() <= MAX_FIGURE_ID_BYTES);
        Some(FigureSlot { name, data, made, y: 0.0, size: size * scale, scale, words, kernel_id })
    }
}

/// Everything that a drawing depends on besides the figure and the view.
#[derive(Clone, Copy, PartialEq)]
struct FigureKey {
    data: FigureSource,
    scale: f32,
    paper: Color32,
    pixels: f32,
    letters: u64,
}

/// A painted figure.
struct PaintedFigure {
    ready: Arc<PreparedFigure>,
    key: FigureKey,
    view: PlotView,
    shapes: Vec<Shape>,
    /// Textures that some of the shapes use; held to keep them alive.
    _textures: Vec<TextureHandle>,
    places: Vec<PlacedAxes>,
}

impl PaintedFigure {
    pub(crate) fn new(
        ready: &Arc<PreparedFigure>,
        view: &PlotView,
        key: FigureKey,
        pen: TextStyleContext<'_>,
    ) -> anyhow::Result<PaintedFigure> {
        let look = if pen.colours.paper == ThemeColors::for_dark_mode(true).paper {
            PlotTheme::DARK
        } else {
            PlotTheme::LIGHT.without_paper()
        };
        #[allow(clippy::cast_possible_truncation, reason = "points")]
        let size = vec2(ready.figure.width as f32, ready.figure.height as f32);
        let mut backend = ShapeBackend {
            ctx: pen.ctx,
            size,
            scale: key.scale,
            shapes: Vec::new(),
            textures: Vec::new(),
            corner_tests: MAX_CORNER_TESTS,
        };
        let places = plot::draw_figure(ready, view, &mut backend, f64::from(STEPS_PER_POINT), &look)?;
        let ShapeBackend { shapes, textures, .. } = backend;
        Ok(PaintedFigure { ready: ready.clone(), key, view: view.clone(), shapes, _textures: textures, places })
    }

    /// Paints the figure at a position.
    fn paint(&self, painter: &egui::Painter, at: Pos2) {
        // Images drawn at screen resolution stay sharp only on whole pixels.
        let at = at.round_to_pixels(painter.pixels_per_point());
        let moved = self.shapes.iter().cloned().map(|mut shape| {
            shape.translate(at.to_vec2());
            shape
        });
        painter.extend(moved);
    }
}

/// A drawing that failed. It isn't tried again in each frame, because it can take long until it's known to be too much.
struct FailedDrawing {
    ready: Arc<PreparedFigure>,
    key: FigureKey,
    view: PlotView,
    why: Arc<anyhow::Error>,
}

/// View state of a figure.
#[derive(Default)]
struct FigureView {
    view: PlotView,
    drawn: Option<PaintedFigure>,
    failed: Option<FailedDrawing>,
    /// Frame in which it was last visible; `top` is its position then.
    seen: u64,
    top: f32,
    focused: bool,
    /// Time at which loading began, in seconds.
    since: Option<f64>,
    redraws: FigureRedraws,
}

/// View state and drawings of a page's figures.
#[derive(Default)]
pub struct PageFigures {
    looked: HashMap<FigureId, FigureView>,
    frame: u64,
    pass: u64,
    /// Receives the figure that is copied as an image.
    copy: Option<Receiver<ColorImage>>,
    /// The figure that the kernel is drawing again.
    redraw: Option<PendingRedraw>,
}

impl PageFigures {
    /// Redraws a figure if something has changed.
    fn draw(&mut self, slot: &FigureSlot, pen: TextStyleContext<'_>) -> Option<FigureResult> {
        let made = slot.made.clone().or_else(|| with(pen.ctx, |shelf| shelf.ask(slot.data)).flatten());
        let ready = match made? {
            Ok(ready) => ready,
            Err(why) => return Some(Err(why)),
        };
        let key = FigureKey {
            data: slot.data,
            scale: slot.scale,
            paper: pen.colours.paper,
            pixels: pen.ctx.pixels_per_point() * theme::text_scale(),
            letters: crate::assets::version(pen.ctx),
        };
        let looked = self.looked.entry(slot.name).or_default();
        looked.redraws.follow(slot, &ready);
        let stored = || (ready.clone(), looked.view.clone());
        let (shown, view) = looked.redraws.drawing_for(&looked.view).unwrap_or_else(stored);
        let is_drawn =
            |drawn: &PaintedFigure| drawn.key == key && drawn.view == view && Arc::ptr_eq(&drawn.ready, &shown);
        if !looked.drawn.as_ref().is_some_and(is_drawn) {
            let has_failed = |failed: &&FailedDrawing| {
                failed.key == key && failed.view == view && Arc::ptr_eq(&failed.ready, &shown)
            };
            if let Some(failed) = looked.failed.as_ref().filter(has_failed) {
                return Some(Err(failed.why.clone()));
            }
            match PaintedFigure::new(&shown, &view, key, pen) {
                Ok(drawn) => looked.drawn = Some(drawn),
                Err(_) if !Arc::ptr_eq(&shown, &ready) => {
                    looked.redraws.discard_drawing();
                    return self.draw(slot, pen);
                }
                Err(why) => {
                    let why = Arc::new(why);
                    looked.failed = Some(FailedDrawing { ready: shown, key, view, why: why.clone() });
                    return Some(Err(why));
                }
            }
        }
        Some(Ok(ready))
    }

    /// Drops the drawing but keeps the view state.
    pub fn relayout(&mut self) {
        self.looked.values_mut().for_each(|looked| looked.drawn = None);
    }

    /// Counts frames, and evicts drawings that haven't been visible for a long time.
    fn begin(&mut self, ctx: &Context) {
        let pass = ctx.cumulative_pass_nr();
        if self.pass != pass {
            (self.pass, self.frame) = (pass, self.frame + 1);
            let frame = self.frame;
            for looked in self.looked.values_mut().filter(|looked| looked.seen + FIGURE_EVICTION_FRAMES < frame) {
                looked.drawn = None;
                looked.redraws = FigureRedraws::default();
            }
        }
    }
}

/// A parsed figure or the parse error, shared because each of its views shows one of them.
type FigureResult = Result<Arc<PreparedFigure>, Arc<anyhow::Error>>;

fn prepare_figure(json: &str) -> anyhow::Result<Arc<PreparedFigure>> {
    Ok(Arc::new(PreparedFigure::from_json(json)?))
}

/// Channel that delivers figures parsed on other threads.
type FigureChannel = (Sender<(FigureSource, FigureResult)>, Mutex<Receiver<(FigureSource, FigureResult)>>);

/// Cache of parsed figures, shared by all pages.
#[derive(Default)]
pub struct FigureCache {
    known: HashMap<FigureSource, (Option<FigureResult>, u64)>,
    wishes: Vec<BlobHash>,
    frame: u64,
    way: Option<FigureChannel>,
}

impl egui::Plugin for FigureCache {
    fn debug_name(&self) -> &'static str {
        "figures"
    }
}

fn with<R>(ctx: &Context, what: impl FnOnce(&mut FigureCache) -> R) -> Option<R> {
    ctx.with_plugin(what)
}

impl FigureCache {
    fn cached_figure(&mut self, data: FigureSource) -> Option<FigureResult> {
        let (made, seen) = self.known.get_mut(&data)?;
        *seen = self.frame;
        made.clone()
    }

    fn keep(&mut self, data: FigureSource, made: FigureResult) {
        self.known.insert(data, (Some(made), self.frame));
    }

    /// Returns a figure if it's cached; requests it if it is a blob that hasn't been requested yet.
    fn ask(&mut self, data: FigureSource) -> Option<FigureResult> {
        if let FigureSource::Blob(blob) = data
            && !self.known.contains_key(&data)
        {
            self.known.insert(data, (None, self.frame));
            self.wishes.push(blob);
        }
        self.cached_figure(data)
    }
}

/// Requests figures needed since the last frame, and stores those that arrived.
pub fn fetch_figures(ctx: &Context, driver: &host::Driver) {
    let wishes = with(ctx, |shelf| {
        shelf.frame += 1;
        let come: Vec<(FigureSource, FigureResult)> = match shelf.way.as_mut().and_then(|(_, come)| come.get_mut().ok())
        {
            Some(come) => come.try_iter().collect(),
            None => Vec::new(),
        };
        come.into_iter().for_each(|(data, made)| shelf.keep(data, made));
        let frame = shelf.frame;
        // Requested figures stay; unseen ones are evicted.
        shelf.known.retain(|_, (made, seen)| made.is_none() || *seen + FIGURE_EVICTION_FRAMES > frame);
        std::mem::take(&mut shelf.wishes)
    });
    for blob in wishes.unwrap_or_default() {
        let Some(done) = with(ctx, |shelf| {
            shelf
                .way
                .get_or_insert_with(|| {
                    let (done, come) = channel();
                    (done, Mutex::new(come))
                })
                .0
                .clone()
        }) else {
            continue;
        };
        let (bytes, ctx) = (driver.fetch_blob(blob), ctx.clone());
        std::thread::spawn(move || {
            let read = || -> anyhow::Result<_> {
                let bytes = bytes.recv().map_err(|_| anyhow!("the program is closing"))??;
                let json = String::from_utf8(bytes).map_err(|_| anyhow!("it is not UTF-8"))?;
                prepare_figure(&json)
            };
            // A failed send is ignored: the window may have been closed.
            let _ = done.send((FigureSource::Blob(blob), read().map_err(Arc::new)));
            ctx.request_repaint();
        });
    }
}
