//! The inside of a process that draws: what it does with each job. It reads what strangers wrote; the process that
//! started it limits its time and memory.

use super::job::{Job, Laid, Made, Question, Reply};
use host::renderer::{Asker, Message};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::OnceLock;
use typeset::failure::Failure;
use typeset::fonts::Fonts;
use typeset::formula::{self, Formula};
use typeset::html::{self, Around, Page};
use typeset::pdf::{self, Asked, Note};
use typeset::vector::{Drawing, Raster};

/// The way to the process that asked; none where the job is done in the same one.
type Way<'a> = Rc<RefCell<Option<&'a mut Asker>>>;

/// A whole message of a head.
pub(super) fn message(head: &impl serde::Serialize, body: Vec<u8>) -> Message {
    Message { head: serde_json::to_vec(head).unwrap_or_default(), body }
}

/// Does a job.
pub(super) fn perform(job: Message, asker: Option<&mut Asker>) -> Message {
    let Message { head, body } = job;
    let way: Way<'_> = Rc::new(RefCell::new(asker));
    let done = match serde_json::from_slice(&head) {
        Ok(job) => work(job, body, &way),
        Err(_) => Err(Failure::Wrong("The job was not understood.".to_owned())),
    };
    done.unwrap_or_else(|failure| message(&Made::Failed(failure), Vec::new()))
}

/// Our fonts and the system's; looked for when they are first needed, which is not the drawing's own time.
fn fonts(way: &Way<'_>) -> &'static Fonts {
    static FONTS: OnceLock<Fonts> = OnceLock::new();
    if let Some(fonts) = FONTS.get() {
        return fonts;
    }
    let fonts = FONTS.get_or_init(Fonts::with_system);
    ask(way, &Question::Ready, Vec::new());
    fonts
}

/// Asks, and waits. Nothing where nobody answers.
fn ask(way: &Way<'_>, question: &Question, body: Vec<u8>) -> Option<(Reply, Vec<u8>)> {
    let mut way = way.borrow_mut();
    let answer = way.as_mut()?.ask(&message(question, body)).ok()?;
    Some((serde_json::from_slice(&answer.head).ok()?, answer.body))
}

fn work(job: Job, body: Vec<u8>, way: &Way<'_>) -> Result<Message, Failure> {
    let text = |text: String| message(&Made::Text, text.into_bytes());
    Ok(match job {
        Job::Formula { source, display } => message(&Made::Formula(Formula::new(&source, display)?), Vec::new()),
        Job::FormulaPixels { formula, ink, width } => {
            let drawing = formula.drawing(ink, fonts(way))?;
            let scale = width / drawing.width;
            raster(&drawing, scale)?
        }
        Job::Mathml { source, display } => text(formula::mathml(&source, display)?),
        Job::Diagram { source, tints, document } => {
            let svg = typeset::diagram::svg(&source, &tints)?;
            checked(&read(&svg, way)?, document)?;
            text(svg)
        }
        Job::DiagramPixels { source, tints, scale } => {
            raster(&read(&typeset::diagram::svg(&source, &tints)?, way)?, scale)?
        }
        Job::Svg { document } => {
            checked(&read(utf8(&body)?, way)?, document)?;
            message(&Made::Fits { bytes: body.len() as u64 }, Vec::new())
        }
        Job::SvgPixels { scale, side } => {
            let drawing = read(utf8(&body)?, way)?;
            #[allow(clippy::cast_precision_loss, reason = "some thousand")]
            let scale = scale.min(side as f32 / drawing.width.max(drawing.height).max(1.0));
            raster(&drawing, scale)?
        }
        Job::Bitmap { side } => bitmap(body, side)?,
        Job::Image => message(&Made::Fits { bytes: pdf::try_image(&body)? }, Vec::new()),
        Job::Figure { document } => {
            let Some(svg) = figure(&body).and_then(|figure| plot::svg(&figure).ok()) else {
                return Ok(message(&Made::Nothing, Vec::new()));
            };
            checked(&read(&svg, way)?, document)?;
            text(svg)
        }
        Job::FigurePixels { scale } => match figure(&body).and_then(|figure| plot::png(&figure, scale).ok()) {
            Some(png) => message(&Made::Text, png),
            None => message(&Made::Nothing, Vec::new()),
        },
        Job::Colours { code, language } => {
            message(&Made::Colours(typeset::colour::colours(&code, &language)), Vec::new())
        }
        Job::Html => match typeset::paste::markdown(utf8(&body)?) {
            Some(markdown) => text(markdown),
            None => message(&Made::Nothing, Vec::new()),
        },
        Job::Page { note, light, dark, colours, alone } => {
            let Laid { title, path, text: source, outputs, .. } = note;
            let far = Far { way: way.clone(), note: 0, path, colours, alone };
            let (title, outputs, light, dark) = (title.as_str(), outputs.as_slice(), light.as_str(), dark.as_str());
            text(html::page(&Page { title, text: &source, outputs, light, dark, around: &far }))
        }
        Job::Document { title, paper, tints } => {
            let asked = Asked { title: &title, paper, tints, fonts: fonts(way) };
            let mut count = 0;
            let notes = std::iter::from_fn(|| {
                let (Reply::Note(laid), _) = ask(way, &Question::Next, Vec::new())? else { return None };
                let Laid { title, path, text, outputs, plain } = laid;
                let colours = String::new();
                let far = Far { way: way.clone(), note: count, path: path.clone(), colours, alone: false };
                count += 1;
                Some(Note { title, place: path, text, outputs, around: Rc::new(far), plain })
            });
            let mut go_on = |share| ask(way, &Question::GoOn(share), Vec::new()).is_some();
            let made = pdf::write(&asked, notes, &mut go_on).map_err(Failure::Wrong)?;
            message(&Made::Document { missing: made.missing }, made.bytes)
        }
    })
}

fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|_| Failure::Wrong("The picture is not UTF-8.".to_owned()))
}

fn read(svg: &str, way: &Way<'_>) -> Result<Drawing, Failure> {
    let limit = |why: String| Failure::Limit(format!("It cannot be drawn: {}.", why.trim_end_matches('.')));
    Drawing::read(svg, fonts(way)).map_err(limit)
}

/// Tries what a PDF makes of a drawing.
fn checked(drawing: &Drawing, document: bool) -> Result<(), Failure> {
    if document { pdf::try_drawing(drawing) } else { Ok(()) }
}

fn raster(drawing: &Drawing, scale: f32) -> Result<Message, Failure> {
    let size = [drawing.width, drawing.height];
    let too_large = || Failure::Limit("The drawing is too large.".to_owned());
    let Raster { width, height, bytes } = drawing.raster(scale).ok_or_else(too_large)?;
    Ok(message(&Made::Pixels { width, height, size, multiplied: true }, bytes))
}

fn figure(json: &[u8]) -> Option<plot::Figure> {
    plot::Figure::read(std::str::from_utf8(json).ok()?).ok()
}

/// No picture has a longer side, in pixels.
const MAX_SIDE: u32 = 20_000;

fn bitmap(bytes: Vec<u8>, side: u32) -> Result<Message, Failure> {
    let wrong = |_| Failure::Wrong("The picture cannot be read.".to_owned());
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
                Failure::Limit(format!("The picture is more than {MAX_SIDE} pixels wide or high."))
            }
            _ => Failure::Limit(format!("It needs more than {} MB of memory.", super::DRAWING.memory >> 20)),
        },
        _ => Failure::Wrong("The picture cannot be read.".to_owned()),
    })?;
    let image = if image.width().max(image.height()) > side { image.thumbnail(side, side) } else { image };
    let image = image.into_rgba8();
    let (width, height) = (image.width(), image.height());
    #[allow(clippy::cast_precision_loss, reason = "a picture's side is small")]
    let size = [width as f32, height as f32];
    Ok(message(&Made::Pixels { width, height, size, multiplied: false }, image.into_raw()))
}

/// What stands around a note, in another process.
struct Far<'a> {
    way: Way<'a>,
    /// Which note of a document it is.
    note: usize,
    path: String,
    colours: String,
    /// Nothing stands around it.
    alone: bool,
}

impl Far<'_> {
    fn ask(&self, question: &Question, body: Vec<u8>) -> Option<(Reply, Vec<u8>)> {
        if self.alone { None } else { ask(&self.way, question, body) }
    }

    /// What was drawn as SVG elsewhere, within its own limits.
    fn drawn(&self, question: &Question, body: Vec<u8>) -> Result<Option<Drawing>, Failure> {
        match self.ask(question, body) {
            Some((Reply::Bytes, svg)) => read(utf8(&svg)?, &self.way).map(Some),
            Some((Reply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Ok(None),
        }
    }
}

fn nowhere() -> Failure {
    Failure::Wrong("It is not drawn here.".to_owned())
}

impl Around for Far<'_> {
    fn own(&self) -> String {
        self.path.clone()
    }

    fn picture(&self, target: &str) -> Option<Vec<u8>> {
        match self.ask(&Question::Picture(self.note, target.to_owned()), Vec::new())? {
            (Reply::Bytes, bytes) => Some(bytes),
            _ => None,
        }
    }

    fn link(&self, target: &str) -> Option<String> {
        match self.ask(&Question::Link(self.note, target.to_owned()), Vec::new())? {
            (Reply::Text(link), _) => Some(link),
            _ => None,
        }
    }

    fn note(&self, target: &str) -> Option<String> {
        match self.ask(&Question::Note(self.note, target.to_owned()), Vec::new())? {
            (Reply::Text(path), _) => Some(path),
            _ => None,
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        match self.ask(&Question::Text(self.note, path.to_owned()), Vec::new())? {
            (Reply::Bytes, text) => String::from_utf8(text).ok(),
            _ => None,
        }
    }

    fn diagram(&self, source: &str) -> Result<Drawing, Failure> {
        self.drawn(&Question::Diagram(self.note, source.to_owned()), Vec::new())?.ok_or_else(nowhere)
    }

    fn figure(&self, media: &str, json: &str) -> Result<Option<Drawing>, Failure> {
        if media != plot::MIME {
            return Ok(None);
        }
        self.drawn(&Question::Figure(self.note), json.as_bytes().to_vec())
    }

    fn svg(&self, bytes: Vec<u8>) -> Result<Drawing, Failure> {
        match self.ask(&Question::Svg(self.note), bytes.clone()) {
            Some((Reply::Nothing, _)) => read(utf8(&bytes)?, &self.way),
            Some((Reply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(nowhere()),
        }
    }

    fn image(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self.ask(&Question::Image(self.note), bytes.to_vec()) {
            Some((Reply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Ok(()),
        }
    }

    fn formula(&self, source: &str, display: bool) -> Result<Formula, Failure> {
        if formula::is_short(source) {
            return Formula::new(source, display);
        }
        match ask(&self.way, &Question::Formula { source: source.to_owned(), display }, Vec::new()) {
            Some((Reply::Formula(formula), _)) => Ok(formula),
            Some((Reply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(nowhere()),
        }
    }

    fn mathml(&self, source: &str, display: bool) -> Result<String, Failure> {
        if formula::is_short(source) {
            return formula::mathml(source, display);
        }
        match ask(&self.way, &Question::Mathml { source: source.to_owned(), display }, Vec::new()) {
            Some((Reply::Text(mathml), _)) => Ok(mathml),
            Some((Reply::Failed(failure), _)) => Err(failure),
            Some(_) | None => Err(nowhere()),
        }
    }

    fn colours(&self) -> String {
        self.colours.clone()
    }
}
