//! The inside of a process that draws: what it does with each job. It reads what strangers wrote; the process that
//! started it limits its time and memory.

use super::job::{DrawingJob, JobOutput, LayoutNote, LayoutQuestion, LayoutReply};
use host::renderer::{JobAsker, RenderMessage};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::OnceLock;
use typeset::failure::DrawFailure;
use typeset::fonts::FontSet;
use typeset::formula::{self, SetFormula};
use typeset::html::{self, HtmlNote, PageContext};
use typeset::pdf::{self, PdfNote, PdfRequest};
use typeset::vector::{DrawingPixels, VectorDrawing};

/// The way to the process that asked; none where the job is done in the same one.
type ParentLink<'a> = Rc<RefCell<Option<&'a mut JobAsker>>>;

/// A whole message of a head.
pub(super) fn message(head: &impl serde::Serialize, body: Vec<u8>) -> RenderMessage {
    RenderMessage { head: serde_json::to_vec(head).unwrap_or_default(), body }
}

/// Does a job.
pub(super) fn perform(job: RenderMessage, asker: Option<&mut JobAsker>) -> RenderMessage {
    let RenderMessage { head, body } = job;
    let way: ParentLink<'_> = Rc::new(RefCell::new(asker));
    let done = match serde_json::from_slice(&head) {
        Ok(job) => work(job, body, &way),
        Err(_) => Err(DrawFailure::Wrong("The job was not understood.".to_owned())),
    };
    done.unwrap_or_else(|failure| message(&JobOutput::Failed(failure), Vec::new()))
}

/// Our fonts and the system's; looked for when they are first needed, which is not the drawing's own time.
fn fonts(way: &ParentLink<'_>) -> &'static FontSet {
    static FONTS: OnceLock<FontSet> = OnceLock::new();
    if let Some(fonts) = FONTS.get() {
        return fonts;
    }
    let fonts = FONTS.get_or_init(FontSet::with_system);
    ask(way, &LayoutQuestion::Ready, Vec::new());
    fonts
}

/// Asks, and waits. Nothing where nobody answers.
fn ask(way: &ParentLink<'_>, question: &LayoutQuestion, body: Vec<u8>) -> Option<(LayoutReply, Vec<u8>)> {
    let mut way = way.borrow_mut();
    let answer = way.as_mut()?.ask(&message(question, body)).ok()?;
    Some((serde_json::from_slice(&answer.head).ok()?, answer.body))
}

fn work(job: DrawingJob, body: Vec<u8>, way: &ParentLink<'_>) -> Result<RenderMessage, DrawFailure> {
    let text = |text: String| message(&JobOutput::Text, text.into_bytes());
    Ok(match job {
        DrawingJob::Formula { source, display } => {
            message(&JobOutput::Formula(SetFormula::new(&source, display)?), Vec::new())
        }
        DrawingJob::FormulaPixels { formula, ink, width } => {
            let drawing = formula.drawing(ink, fonts(way))?;
            let scale = width / drawing.width;
            raster(&drawing, scale)?
        }
        DrawingJob::Mathml { source, display } => text(formula::mathml(&source, display)?),
        DrawingJob::Diagram { source, tints, document } => {
            let svg = typeset::diagram::svg(&source, &tints)?;
            checked(&read(&svg, way)?, document)?;
            text(svg)
        }
        DrawingJob::DiagramPixels { source, tints, scale } => {
            raster(&read(&typeset::diagram::svg(&source, &tints)?, way)?, scale)?
        }
        DrawingJob::Svg { document } => {
            checked(&read(utf8(&body)?, way)?, document)?;
            message(&JobOutput::Fits { bytes: body.len() as u64 }, Vec::new())
        }
        DrawingJob::SvgPixels { scale, side } => {
            let drawing = read(utf8(&body)?, way)?;
            #[allow(clippy::cast_precision_loss, reason = "some thousand")]
            let scale = scale.min(side as f32 / drawing.width.max(drawing.height).max(1.0));
            raster(&drawing, scale)?
        }
        DrawingJob::Bitmap { side } => bitmap(body, side)?,
        DrawingJob::Image => message(&JobOutput::Fits { bytes: pdf::try_image(&body)? }, Vec::new()),
        DrawingJob::Figure { document } => {
            let Some(svg) = figure(&body).and_then(|figure| plot::render_svg(&figure).ok()) else {
                return Ok(message(&JobOutput::Nothing, Vec::new()));
            };
            checked(&read(&svg, way)?, document)?;
            text(svg)
        }
        DrawingJob::FigurePixels { scale } => {
            match figure(&body).and_then(|figure| plot::render_png(&figure, scale).ok()) {
                Some(png) => message(&JobOutput::Text, png),
                None => message(&JobOutput::Nothing, Vec::new()),
            }
        }
        DrawingJob::Colours { code, language } => {
            message(&JobOutput::Colours(typeset::colour::colours(&code, &language)), Vec::new())
        }
        DrawingJob::Html => match typeset::paste::markdown(utf8(&body)?) {
            Some(markdown) => text(markdown),
            None => message(&JobOutput::Nothing, Vec::new()),
        },
        DrawingJob::Page { note, light, dark, colours, alone } => {
            let LayoutNote { title, path, text: source, outputs, .. } = note;
            let far = RemoteContext { way: way.clone(), note: 0, path, colours, alone };
            let (title, outputs, light, dark) = (title.as_str(), outputs.as_slice(), light.as_str(), dark.as_str());
            text(html::page(&HtmlNote { title, text: &source, outputs, light, dark, around: &far }))
        }
        DrawingJob::Document { title, paper, tints } => {
            let asked = PdfRequest { title: &title, paper, tints, fonts: fonts(way) };
            let mut count = 0;
            let notes = std::iter::from_fn(|| {
                let (LayoutReply::Note(laid), _) = ask(way, &LayoutQuestion::Next, Vec::new())? else { return None };
                let LayoutNote { title, path, text, outputs, plain } = laid;
                let colours = String::new();
                let far = RemoteContext { way: way.clone(), note: count, path: path.clone(), colours, alone: false };
                count += 1;
                Some(PdfNote { title, place: path, text, outputs, around: Rc::new(far), plain })
            });
            let mut go_on = |share| ask(way, &LayoutQuestion::GoOn(share), Vec::new()).is_some();
            let made = pdf::write(&asked, notes, &mut go_on).map_err(DrawFailure::Wrong)?;
            message(&JobOutput::Document { missing: made.missing }, made.bytes)
        }
    })
}

fn utf8(bytes: &[u8]) -> Result<&str, DrawFailure> {
    std::str::from_utf8(bytes).map_err(|_| DrawFailure::Wrong("The picture is not UTF-8.".to_owned()))
}

fn read(svg: &str, way: &ParentLink<'_>) -> Result<VectorDrawing, DrawFailure> {
    let limit = |why: String| DrawFailure::Limit(format!("It cannot be drawn: {}.", why.trim_end_matches('.')));
    VectorDrawing::read(svg, fonts(way)).map_err(limit)
}

/// Tries what a PDF makes of a drawing.
fn checked(drawing: &VectorDrawing, document: bool) -> Result<(), DrawFailure> {
    if document { pdf::try_drawing(drawing) } else { Ok(()) }
}

fn raster(drawing: &VectorDrawing, scale: f32) -> Result<RenderMessage, DrawFailure> {
    let size = [drawing.width, drawing.height];
    let too_large = || DrawFailure::Limit("The drawing is too large.".to_owned());
    let DrawingPixels { width, height, bytes } = drawing.raster(scale).ok_or_else(too_large)?;
    Ok(message(&JobOutput::Pixels { width, height, size, multiplied: true }, bytes))
}

fn figure(json: &[u8]) -> Option<plot::Figure> {
    plot::Figure::from_json(std::str::from_utf8(json).ok()?).ok()
}

/// No picture has a longer side, in pixels.
const MAX_SIDE: u32 = 20_000;

fn bitmap(bytes: Vec<u8>, side: u32) -> Result<RenderMessage, DrawFailure> {
    let wrong = |_| DrawFailure::Wrong("The picture cannot be read.".to_owned());
    let mut reader = image::ImageReader::new(std::io::Cursor::new(bytes));
    reader = reader.with_guessed_format().map_err(wrong)?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(super::DRAWING.memory);
    reader.limits(limits);
    let image = reader.decode().map_err(|error| match error {
        image::ImageError::Limits(limit) => match limit.kind() {
            image::error::LimitErrorKind::DimensionError => {
                DrawFailure::Limit(format!("The picture is more than {MAX_SIDE} pixels wide or high."))
            }
            _ => DrawFailure::Limit(format!("It needs more than {} MB of memory.", super::DRAWING.memory >> 20)),
        },
        _ => DrawFailure::Wrong("The picture cannot be read.".to_owned()),
    })?;
    let image = if image.width().max(image.height()) > side { image.thumbnail(side, side) } else { image };
    let image = image.into_rgba8();
    let (width, height) = (image.width(), image.height());
    #[allow(clippy::cast_precision_loss, reason = "a picture's side is small")]
    let size = [width as f32, height as f32];
    Ok(message(&JobOutput::Pixels { width, height, size, multiplied: false }, image.into_raw()))
}

/// What stands around a note, in another process.
struct RemoteContext<'a> {
    way: ParentLink<'a>,
    /// Which note of a document it is.
    note: usize,
    path: String,
    colours: String,
    /// Nothing stands around it.
    alone: bool,
}

impl RemoteContext<'_> {
    fn ask(&self, question: &LayoutQuestion, body: Vec<u8>) -> Option<(LayoutReply, Vec<u8>)> {
        if self.alone { None } else { ask(&self.way, question, body) }
    }

    /// What was drawn as SVG elsewhere, within its own limits.
    fn drawn(&self, question: &LayoutQuestion, body: Vec<u8>) -> Result<Option<VectorDrawing>, DrawFailure> {
        match self.ask(question, body) {
            Some((LayoutReply::Bytes, svg)) => read(utf8(&svg)?, &self.way).map(Some),
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Ok(None),
        }
    }
}

fn nowhere() -> DrawFailure {
    DrawFailure::Wrong("It is not drawn here.".to_owned())
}

impl PageContext for RemoteContext<'_> {
    fn own(&self) -> String {
        self.path.clone()
    }

    fn picture(&self, target: &str) -> Option<Vec<u8>> {
        match self.ask(&LayoutQuestion::Picture(self.note, target.to_owned()), Vec::new())? {
            (LayoutReply::Bytes, bytes) => Some(bytes),
            _ => None,
        }
    }

    fn link(&self, target: &str) -> Option<String> {
        match self.ask(&LayoutQuestion::Link(self.note, target.to_owned()), Vec::new())? {
            (LayoutReply::Text(link), _) => Some(link),
            _ => None,
        }
    }

    fn note(&self, target: &str) -> Option<String> {
        match self.ask(&LayoutQuestion::Note(self.note, target.to_owned()), Vec::new())? {
            (LayoutReply::Text(path), _) => Some(path),
            _ => None,
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        match self.ask(&LayoutQuestion::Text(self.note, path.to_owned()), Vec::new())? {
            (LayoutReply::Bytes, text) => String::from_utf8(text).ok(),
            _ => None,
        }
    }

    fn diagram(&self, source: &str) -> Result<VectorDrawing, DrawFailure> {
        self.drawn(&LayoutQuestion::Diagram(self.note, source.to_owned()), Vec::new())?.ok_or_else(nowhere)
    }

    fn figure(&self, media: &str, json: &str) -> Result<Option<VectorDrawing>, DrawFailure> {
        if media != plot::FIGURE_MIME {
            return Ok(None);
        }
        self.drawn(&LayoutQuestion::Figure(self.note), json.as_bytes().to_vec())
    }

    fn svg(&self, bytes: Vec<u8>) -> Result<VectorDrawing, DrawFailure> {
        match self.ask(&LayoutQuestion::Svg(self.note), bytes.clone()) {
            Some((LayoutReply::Nothing, _)) => read(utf8(&bytes)?, &self.way),
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(nowhere()),
        }
    }

    fn image(&self, bytes: &[u8]) -> Result<(), DrawFailure> {
        match self.ask(&LayoutQuestion::Image(self.note), bytes.to_vec()) {
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Ok(()),
        }
    }

    fn formula(&self, source: &str, display: bool) -> Result<SetFormula, DrawFailure> {
        if formula::is_short(source) {
            return SetFormula::new(source, display);
        }
        match ask(&self.way, &LayoutQuestion::Formula { source: source.to_owned(), display }, Vec::new()) {
            Some((LayoutReply::Formula(formula), _)) => Ok(formula),
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(nowhere()),
        }
    }

    fn mathml(&self, source: &str, display: bool) -> Result<String, DrawFailure> {
        if formula::is_short(source) {
            return formula::mathml(source, display);
        }
        match ask(&self.way, &LayoutQuestion::Mathml { source: source.to_owned(), display }, Vec::new()) {
            Some((LayoutReply::Text(mathml), _)) => Ok(mathml),
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(nowhere()),
        }
    }

    fn colours(&self) -> String {
        self.colours.clone()
    }
}
