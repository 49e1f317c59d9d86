//! The rendering process: performs jobs. It parses untrusted input; the parent process limits its time and memory.

use super::job::{DrawingJob, JobOutput, LayoutNote, LayoutQuestion, LayoutReply};
use host::renderer::{JobAsker, RenderMessage};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::OnceLock;
use typeset::clipboard_html;
use typeset::drawing::{DrawingPixels, VectorDrawing};
use typeset::failure::DrawFailure;
use typeset::fonts::FontSet;
use typeset::formula::{self, SetFormula};
use typeset::html::{self, HtmlNote, PageContext};
use typeset::pdf::{self, PdfNote, PdfRequest};

/// Connection to the requesting process; `None` if the job runs in the same process.
type ParentLink<'a> = Rc<RefCell<Option<&'a mut JobAsker>>>;

/// Encodes a message with a JSON header.
pub(super) fn encode_message(head: &impl serde::Serialize, body: Vec<u8>) -> RenderMessage {
    RenderMessage { head: serde_json::to_vec(head).unwrap_or_default(), body }
}

/// Performs a job and returns its result.
pub(super) fn perform_job(job: RenderMessage, asker: Option<&mut JobAsker>) -> RenderMessage {
    let RenderMessage { head, body } = job;
    let way: ParentLink<'_> = Rc::new(RefCell::new(asker));
    let done = match serde_json::from_slice(&head) {
        Ok(job) => run_job(job, body, &way),
        Err(_) => Err(DrawFailure::Wrong("The job was not understood.".to_owned())),
    };
    done.unwrap_or_else(|failure| encode_message(&JobOutput::Failed(failure), Vec::new()))
}

/// Returns bundled and system fonts; loaded on first use, outside the job's own time.
fn load_fonts(way: &ParentLink<'_>) -> &'static FontSet {
    static FONTS: OnceLock<FontSet> = OnceLock::new();
    if let Some(fonts) = FONTS.get() {
        return fonts;
    }
    let fonts = FONTS.get_or_init(FontSet::with_system);
    ask_parent(way, &LayoutQuestion::Ready, Vec::new());
    fonts
}

/// Sends a question and waits. Returns `None` if there's no answer.
fn ask_parent(way: &ParentLink<'_>, question: &LayoutQuestion, body: Vec<u8>) -> Option<(LayoutReply, Vec<u8>)> {
    let mut way = way.borrow_mut();
    let answer = way.as_mut()?.ask(&encode_message(question, body)).ok()?;
    Some((serde_json::from_slice(&answer.head).ok()?, answer.body))
}

fn run_job(job: DrawingJob, body: Vec<u8>, way: &ParentLink<'_>) -> Result<RenderMessage, DrawFailure> {
    let text = |text: String| encode_message(&JobOutput::Text, text.into_bytes());
    Ok(match job {
        DrawingJob::Formula { source, display } => {
            encode_message(&JobOutput::Formula(SetFormula::new(&source, display)?), Vec::new())
        }
        DrawingJob::FormulaPixels { formula, ink, width } => {
            let drawing = formula.to_drawing(ink, load_fonts(way))?;
            let scale = width / drawing.width;
            rasterize_drawing(&drawing, scale)?
        }
        DrawingJob::Mathml { source, display } => text(formula::to_mathml(&source, display)?),
        DrawingJob::Diagram { source, tints, document } => {
            let svg = typeset::diagram::diagram_svg(&source, &tints)?;
            check_drawing(&parse_svg(&svg, way)?, document)?;
            text(svg)
        }
        DrawingJob::DiagramPixels { source, tints, scale } => {
            rasterize_drawing(&parse_svg(&typeset::diagram::diagram_svg(&source, &tints)?, way)?, scale)?
        }
        DrawingJob::Svg { document } => {
            check_drawing(&parse_svg(parse_utf8(&body)?, way)?, document)?;
            encode_message(&JobOutput::Fits { bytes: body.len() as u64 }, Vec::new())
        }
        DrawingJob::SvgPixels { scale, side } => {
            let drawing = parse_svg(parse_utf8(&body)?, way)?;
            #[allow(clippy::cast_precision_loss, reason = "some thousand")]
            let scale = scale.min(side as f32 / drawing.width.max(drawing.height).max(1.0));
            rasterize_drawing(&drawing, scale)?
        }
        DrawingJob::Bitmap { side } => decode_bitmap_job(body, side)?,
        DrawingJob::Image => encode_message(&JobOutput::Fits { bytes: pdf::try_image(&body)? }, Vec::new()),
        DrawingJob::Figure { document } => {
            let Some(svg) = parse_figure(&body).and_then(|figure| plot::render_svg(&figure).ok()) else {
                return Ok(encode_message(&JobOutput::Nothing, Vec::new()));
            };
            check_drawing(&parse_svg(&svg, way)?, document)?;
            text(svg)
        }
        DrawingJob::FigurePixels { scale } => {
            match parse_figure(&body).and_then(|figure| plot::render_png(&figure, scale).ok()) {
                Some(png) => encode_message(&JobOutput::Text, png),
                None => encode_message(&JobOutput::Nothing, Vec::new()),
            }
        }
        DrawingJob::Colours { code, language } => {
            encode_message(&JobOutput::Colours(typeset::highlight::highlight_code(&code, &language)), Vec::new())
        }
        DrawingJob::Html { lone } => {
            let html = parse_utf8(&body)?;
            let convert = if lone { clipboard_html::lone_html_to_markdown } else { clipboard_html::html_to_markdown };
            match convert(html) {
                Some(markdown) => text(markdown),
                None => encode_message(&JobOutput::Nothing, Vec::new()),
            }
        }
        DrawingJob::Page { note, light, dark, colours, alone } => {
            let LayoutNote { title, path, text: source, outputs, .. } = note;
            let far = RemoteContext { way: way.clone(), note: 0, path, colours, alone };
            let (title, outputs, light, dark) = (title.as_str(), outputs.as_slice(), light.as_str(), dark.as_str());
            text(html::render_page(&HtmlNote { title, text: &source, outputs, light, dark, around: &far }))
        }
        DrawingJob::Document { title, paper, tints } => {
            let asked = PdfRequest { title: &title, paper, tints, fonts: load_fonts(way) };
            let mut count = 0;
            let notes = std::iter::from_fn(|| {
                let (LayoutReply::Note(laid), _) = ask_parent(way, &LayoutQuestion::Next, Vec::new())? else {
                    return None;
                };
                let LayoutNote { title, path, text, outputs, plain } = laid;
                let colours = String::new();
                let far = RemoteContext { way: way.clone(), note: count, path: path.clone(), colours, alone: false };
                count += 1;
                Some(PdfNote { title, place: path, text, outputs, around: Rc::new(far), plain })
            });
            let mut go_on = |share| ask_parent(way, &LayoutQuestion::GoOn(share), Vec::new()).is_some();
            let made = pdf::write_pdf(&asked, notes, &mut go_on).map_err(|why| DrawFailure::Wrong(why.to_string()))?;
            encode_message(&JobOutput::Document { missing: made.missing }, made.bytes)
        }
    })
}

fn parse_utf8(bytes: &[u8]) -> Result<&str, DrawFailure> {
    std::str::from_utf8(bytes).map_err(|_| DrawFailure::Wrong("The picture is not UTF-8.".to_owned()))
}

fn parse_svg(svg: &str, way: &ParentLink<'_>) -> Result<VectorDrawing, DrawFailure> {
    let limit = |why: String| DrawFailure::Limit(format!("It cannot be drawn: {}.", why.trim_end_matches('.')));
    VectorDrawing::from_svg(svg, load_fonts(way)).map_err(|why| limit(why.to_string()))
}

/// Checks whether a PDF can contain a drawing.
fn check_drawing(drawing: &VectorDrawing, document: bool) -> Result<(), DrawFailure> {
    if document { pdf::try_drawing(drawing) } else { Ok(()) }
}

fn rasterize_drawing(drawing: &VectorDrawing, scale: f32) -> Result<RenderMessage, DrawFailure> {
    let size = [drawing.width, drawing.height];
    let too_large = || DrawFailure::Limit("The drawing is too large.".to_owned());
    let DrawingPixels { width, height, bytes } = drawing.rasterize(scale).ok_or_else(too_large)?;
    Ok(encode_message(&JobOutput::Pixels { width, height, size, multiplied: true }, bytes))
}

fn parse_figure(json: &[u8]) -> Option<plot::Figure> {
    plot::Figure::from_json(std::str::from_utf8(json).ok()?).ok()
}

/// Maximum width and height of a decoded image, in pixels.
const MAX_DECODED_SIDE_PIXELS: u32 = 20_000;

fn decode_bitmap_job(bytes: Vec<u8>, side: u32) -> Result<RenderMessage, DrawFailure> {
    let wrong = |_| DrawFailure::Wrong("The picture cannot be read.".to_owned());
    let mut reader = image::ImageReader::new(std::io::Cursor::new(bytes));
    reader = reader.with_guessed_format().map_err(wrong)?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(MAX_DECODED_SIDE_PIXELS);
    limits.max_image_height = Some(MAX_DECODED_SIDE_PIXELS);
    limits.max_alloc = Some(super::DRAWING_BUDGET.memory);
    reader.limits(limits);
    let image = reader.decode().map_err(|error| match error {
        image::ImageError::Limits(limit) => match limit.kind() {
            image::error::LimitErrorKind::DimensionError => {
                DrawFailure::Limit(format!("The picture is more than {MAX_DECODED_SIDE_PIXELS} pixels wide or high."))
            }
            _ => DrawFailure::Limit(format!(
                "It needs more than {} MB of memory.",
                crate::render_jobs::DRAWING_BUDGET.memory >> 20
            )),
        },
        _ => DrawFailure::Wrong("The picture cannot be read.".to_owned()),
    })?;
    let image = if image.width().max(image.height()) > side { image.thumbnail(side, side) } else { image };
    let image = image.into_rgba8();
    let (width, height) = (image.width(), image.height());
    #[allow(clippy::cast_precision_loss, reason = "a picture's side is small")]
    let size = [width as f32, height as f32];
    Ok(encode_message(&JobOutput::Pixels { width, height, size, multiplied: false }, image.into_raw()))
}

/// Context of a note, requested from the parent process.
struct RemoteContext<'a> {
    way: ParentLink<'a>,
    /// Index of the note in the document.
    note: usize,
    path: String,
    colours: String,
    /// Whether there's no context.
    alone: bool,
}

impl RemoteContext<'_> {
    fn ask_question(&self, question: &LayoutQuestion, body: Vec<u8>) -> Option<(LayoutReply, Vec<u8>)> {
        if self.alone { None } else { ask_parent(&self.way, question, body) }
    }

    /// Requests a drawing as SVG, made in another process within its own limits.
    fn fetch_drawing(&self, question: &LayoutQuestion, body: Vec<u8>) -> Result<Option<VectorDrawing>, DrawFailure> {
        match self.ask_question(question, body) {
            Some((LayoutReply::Bytes, svg)) => parse_svg(parse_utf8(&svg)?, &self.way).map(Some),
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Ok(None),
        }
    }
}

fn no_answer_failure() -> DrawFailure {
    DrawFailure::Wrong("It is not drawn here.".to_owned())
}

impl PageContext for RemoteContext<'_> {
    fn note_path(&self) -> String {
        self.path.clone()
    }

    fn read_picture(&self, target: &str) -> Option<Vec<u8>> {
        match self.ask_question(&LayoutQuestion::Picture(self.note, target.to_owned()), Vec::new())? {
            (LayoutReply::Bytes, bytes) => Some(bytes),
            _ => None,
        }
    }

    fn resolve_link(&self, target: &str) -> Option<String> {
        match self.ask_question(&LayoutQuestion::Link(self.note, target.to_owned()), Vec::new())? {
            (LayoutReply::Text(link), _) => Some(link),
            _ => None,
        }
    }

    fn resolve_embed(&self, target: &str) -> Option<String> {
        match self.ask_question(&LayoutQuestion::Note(self.note, target.to_owned()), Vec::new())? {
            (LayoutReply::Text(path), _) => Some(path),
            _ => None,
        }
    }

    fn note_text(&self, path: &str) -> Option<String> {
        match self.ask_question(&LayoutQuestion::Text(self.note, path.to_owned()), Vec::new())? {
            (LayoutReply::Bytes, text) => String::from_utf8(text).ok(),
            _ => None,
        }
    }

    fn render_diagram(&self, source: &str) -> Result<VectorDrawing, DrawFailure> {
        self.fetch_drawing(&LayoutQuestion::Diagram(self.note, source.to_owned()), Vec::new())?
            .ok_or_else(no_answer_failure)
    }

    fn render_figure(&self, media: &str, json: &str) -> Result<Option<VectorDrawing>, DrawFailure> {
        if media != plot::FIGURE_MIME {
            return Ok(None);
        }
        self.fetch_drawing(&LayoutQuestion::Figure(self.note), json.as_bytes().to_vec())
    }

    fn read_svg(&self, bytes: Vec<u8>) -> Result<VectorDrawing, DrawFailure> {
        match self.ask_question(&LayoutQuestion::Svg(self.note), bytes.clone()) {
            Some((LayoutReply::Nothing, _)) => parse_svg(parse_utf8(&bytes)?, &self.way),
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(no_answer_failure()),
        }
    }

    fn check_image(&self, bytes: &[u8]) -> Result<(), DrawFailure> {
        match self.ask_question(&LayoutQuestion::Image(self.note), bytes.to_vec()) {
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Ok(()),
        }
    }

    fn typeset_formula(&self, source: &str, display: bool) -> Result<SetFormula, DrawFailure> {
        if formula::is_short(source) {
            return SetFormula::new(source, display);
        }
        match ask_parent(&self.way, &LayoutQuestion::Formula { source: source.to_owned(), display }, Vec::new()) {
            Some((LayoutReply::Formula(formula), _)) => Ok(formula),
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(no_answer_failure()),
        }
    }

    fn formula_mathml(&self, source: &str, display: bool) -> Result<String, DrawFailure> {
        if formula::is_short(source) {
            return formula::to_mathml(source, display);
        }
        match ask_parent(&self.way, &LayoutQuestion::Mathml { source: source.to_owned(), display }, Vec::new()) {
            Some((LayoutReply::Text(mathml), _)) => Ok(mathml),
            Some((LayoutReply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(no_answer_failure()),
        }
    }

    fn diagram_css(&self) -> String {
        self.colours.clone()
    }
}
