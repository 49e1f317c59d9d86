//! Slow rendering with limits: diagrams, SVG, formulas and images as pixels, code highlighting, whole notes as pages.
//! Each job runs in a process that is killed when it exceeds its time or memory. So a note's content can't hang or
//! crash the program, or exhaust the machine. Never call this on the thread that draws.

mod job;
mod worker;

pub(crate) use job::{LayoutNote, LayoutQuestion, LayoutReply};

use host::renderer::{self, RenderAnswer, RenderBudget, RenderMessage, RenderQueue};
use job::{DrawingJob, JobOutput};
use std::ops::Range;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use typeset::drawing::DrawingPixels;
use typeset::failure::DrawFailure;
use typeset::formula::{self, SetFormula};
use typeset::highlight::CodeHue;
use typeset::pdf::PaperSize;
use typeset::tints::{Rgb, ThemeTints};

/// Factor by which time limits are extended in unoptimized builds.
const DEBUG_BUILD_FACTOR: u32 = if cfg!(debug_assertions) { 5 } else { 1 };
/// Budget of one formula, diagram or image.
const DRAWING_BUDGET: RenderBudget =
    RenderBudget { time: Duration::from_secs(2).saturating_mul(DEBUG_BUILD_FACTOR), memory: 256 << 20 };
/// Maximum total time for the drawings of one note.
const MAX_NOTE_DRAWINGS_TIME: Duration = Duration::from_secs(20).saturating_mul(DEBUG_BUILD_FACTOR);
/// Layout budget of a very short note.
const MIN_NOTE_BUDGET: RenderBudget =
    RenderBudget { time: Duration::from_secs(2).saturating_mul(DEBUG_BUILD_FACTOR), memory: 256 << 20 };
/// Additional budget per byte of text and outputs.
const NOTE_TIME_PER_BYTE: Duration = Duration::from_nanos(6_000).saturating_mul(DEBUG_BUILD_FACTOR);
const NOTE_MEMORY_PER_BYTE: u64 = 400;
/// Maximum budget of a note, regardless of its length.
const MAX_NOTE_BUDGET: RenderBudget =
    RenderBudget { time: Duration::from_secs(60).saturating_mul(DEBUG_BUILD_FACTOR), memory: 2 << 30 };
/// Maximum memory of a document of several notes.
const MAX_DOCUMENT_MEMORY: u64 = 4 << 30;

/// Why a note or document wasn't laid out.
pub(crate) use host::renderer::RenderFailure as Unfinished;

/// Runs the rendering process.
pub fn serve_jobs() -> ExitCode {
    renderer::serve(|job, asker| worker::perform_job(job, Some(asker)))
}

/// Returns a limit as a sentence to show on a page.
pub(crate) fn limit_message(why: &Unfinished) -> String {
    let why = why.to_string();
    let mut letters = why.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Runs a single drawing job in a separate process.
fn run_drawing_job(job: &DrawingJob, body: Vec<u8>) -> Result<(JobOutput, Vec<u8>), DrawFailure> {
    let message = worker::encode_message(job, body);
    // In unit tests of this crate there's no program to start.
    let done = if cfg!(test) {
        worker::perform_job(message, None)
    } else {
        let mut answer = |question: RenderMessage| {
            let ready = matches!(serde_json::from_slice(&question.head), Ok(LayoutQuestion::Ready));
            let renew = ready.then_some(DRAWING_BUDGET.time);
            Some(RenderAnswer {
                message: worker::encode_message(&LayoutReply::Nothing, Vec::new()),
                renew,
                ..RenderAnswer::default()
            })
        };
        renderer::run_render_job(RenderQueue::Drawing, &message, DRAWING_BUDGET, &mut answer)
            .map_err(|failure| DrawFailure::Limit(limit_message(&failure)))?
    };
    decode_output(done)
}

fn decode_output(done: RenderMessage) -> Result<(JobOutput, Vec<u8>), DrawFailure> {
    match serde_json::from_slice(&done.head) {
        Ok(JobOutput::Failed(failure)) => Err(failure),
        Ok(made) => Ok((made, done.body)),
        Err(_) => Err(protocol_failure()),
    }
}

fn protocol_failure() -> DrawFailure {
    DrawFailure::Limit("The process that draws answered something else.".to_owned())
}

fn output_text((made, body): (JobOutput, Vec<u8>)) -> Result<String, DrawFailure> {
    match made {
        JobOutput::Text => String::from_utf8(body).map_err(|_| protocol_failure()),
        _ => Err(protocol_failure()),
    }
}

/// A rasterized drawing with its preferred size.
pub struct DrawnPixels {
    /// The pixels, row by row from the top.
    pub raster: DrawingPixels,
    /// The preferred width and height, in points.
    pub size: [f32; 2],
    /// Whether the colors are premultiplied by alpha.
    pub multiplied: bool,
}

fn output_pixels((made, bytes): (JobOutput, Vec<u8>)) -> Result<DrawnPixels, DrawFailure> {
    match made {
        JobOutput::Pixels { width, height, size, multiplied }
            if bytes.len() as u64 == u64::from(width) * u64::from(height) * 4 =>
        {
            Ok(DrawnPixels { raster: DrawingPixels { width, height, bytes }, size, multiplied })
        }
        _ => Err(protocol_failure()),
    }
}

/// Typesets a formula.
///
/// # Errors
/// Returns an error if the formula is invalid or exceeds the limits.
pub fn typeset_formula(source: &str, display: bool) -> Result<SetFormula, DrawFailure> {
    if formula::is_short(source) {
        return SetFormula::new(source, display);
    }
    match run_drawing_job(&DrawingJob::Formula { source: source.to_owned(), display }, Vec::new())? {
        (JobOutput::Formula(formula), _) => Ok(formula),
        _ => Err(protocol_failure()),
    }
}

/// Rasterizes a formula at this width.
///
/// # Errors
/// Returns an error if the formula can't be drawn within the limits.
pub fn rasterize_formula(formula: &SetFormula, ink: Rgb, width: f32) -> Result<DrawnPixels, DrawFailure> {
    output_pixels(run_drawing_job(&DrawingJob::FormulaPixels { formula: formula.clone(), ink, width }, Vec::new())?)
}

/// Rasterizes a mermaid diagram in a theme's colors at this scale.
///
/// # Errors
/// Returns an error if the diagram is invalid or exceeds the limits.
pub fn rasterize_diagram(source: &str, tints: ThemeTints, scale: f32) -> Result<DrawnPixels, DrawFailure> {
    output_pixels(run_drawing_job(&DrawingJob::DiagramPixels { source: source.to_owned(), tints, scale }, Vec::new())?)
}

/// Rasterizes an untrusted SVG; no side exceeds `side` pixels.
///
/// # Errors
/// Returns an error if the SVG is invalid or exceeds the limits.
pub fn rasterize_svg(bytes: Vec<u8>, scale: f32, side: u32) -> Result<DrawnPixels, DrawFailure> {
    output_pixels(run_drawing_job(&DrawingJob::SvgPixels { scale, side }, bytes)?)
}

/// Decodes a bitmap image; no side exceeds `side` pixels.
///
/// # Errors
/// Returns an error if the image can't be read or exceeds the limits.
pub fn decode_bitmap(bytes: Vec<u8>, side: u32) -> Result<DrawnPixels, DrawFailure> {
    output_pixels(run_drawing_job(&DrawingJob::Bitmap { side }, bytes)?)
}

/// Returns the highlighted ranges of code, or `None` if that takes too long.
pub fn highlight_code(code: &str, language: &str) -> Option<Vec<(Range<usize>, CodeHue)>> {
    match run_drawing_job(&DrawingJob::Colours { code: code.to_owned(), language: language.to_owned() }, Vec::new()) {
        // Ranges outside of character boundaries would be unusable for slicing the code.
        Ok((JobOutput::Colours(Some(hues)), _)) => {
            hues.iter().all(|(range, _)| code.get(range.clone()).is_some()).then_some(hues)
        }
        Ok(_) | Err(_) => None,
    }
}

/// Converts HTML to Markdown. Returns `None` if it's no more than its plain text, or takes too long.
pub fn html_to_markdown(html: &str) -> Option<String> {
    output_text(run_drawing_job(&DrawingJob::Html { lone: false }, html.as_bytes().to_vec()).ok()?).ok()
}

/// Converts HTML without a plain-text alternative to Markdown. Returns `None` if it has no words, or takes too long.
pub fn lone_html_to_markdown(html: &str) -> Option<String> {
    output_text(run_drawing_job(&DrawingJob::Html { lone: true }, html.as_bytes().to_vec()).ok()?).ok()
}

/// Renders a cell's figure as PNG at this scale, and as SVG.
pub fn render_figure(json: &str, scale: f64) -> (Option<Vec<u8>>, Option<String>) {
    let png = match run_drawing_job(&DrawingJob::FigurePixels { scale }, json.as_bytes().to_vec()) {
        Ok((JobOutput::Text, png)) => Some(png),
        Ok(_) | Err(_) => None,
    };
    let svg = run_drawing_job(&DrawingJob::Figure { document: false }, json.as_bytes().to_vec());
    (png, svg.ok().and_then(|made| output_text(made).ok()))
}

/// Returns the budget of a note of this size.
fn note_budget(bytes: usize) -> RenderBudget {
    let time = MIN_NOTE_BUDGET.time + NOTE_TIME_PER_BYTE.saturating_mul(u32::try_from(bytes).unwrap_or(u32::MAX));
    let memory = MIN_NOTE_BUDGET.memory.saturating_add(NOTE_MEMORY_PER_BYTE.saturating_mul(bytes as u64));
    RenderBudget { time: time.min(MAX_NOTE_BUDGET.time), memory: memory.min(MAX_NOTE_BUDGET.memory) }
}

/// Answers the questions of a layout: files, links and other notes, and the notes of a document one by one. Returning
/// `None` stops the layout.
pub(crate) type LayoutContext<'a> = dyn FnMut(LayoutQuestion) -> Option<(LayoutReply, Vec<u8>)> + 'a;

/// Renders a note as an HTML page. `alone`: without context.
///
/// # Errors
/// Returns an error if the layout exceeds its limits or is stopped.
pub(crate) fn render_page(
    note: LayoutNote,
    theme: &PageTheme<'_>,
    alone: bool,
    near: &mut LayoutContext<'_>,
) -> Result<String, Unfinished> {
    let bytes = note_bytes(&note);
    let (light, dark) = (theme.light.to_owned(), theme.dark.to_owned());
    let job = DrawingJob::Page { note, light, dark, colours: theme.drawn.css_variables(), alone };
    let made = lay_out(&job, note_budget(bytes), theme.drawn, false, near)?;
    output_text(made).map_err(|failure| Unfinished::Ended(failure.message().to_owned()))
}

/// Colors of a page.
pub(crate) struct PageTheme<'a> {
    /// CSS of the light theme.
    pub(crate) light: &'a str,
    /// CSS of the dark theme.
    pub(crate) dark: &'a str,
    /// Colors in which drawings are made.
    pub(crate) drawn: ThemeTints,
}

/// Renders notes as one PDF, and returns characters missing in all fonts. `near` provides the notes.
///
/// # Errors
/// Returns an error if the layout exceeds its limits or is stopped.
pub(crate) fn render_pdf(
    title: &str,
    paper: PaperSize,
    tints: ThemeTints,
    near: &mut LayoutContext<'_>,
) -> Result<(Vec<u8>, Vec<char>), Unfinished> {
    let job = DrawingJob::Document { title: title.to_owned(), paper, tints };
    match lay_out(&job, MIN_NOTE_BUDGET, tints, true, near)? {
        (JobOutput::Document { missing }, bytes) => Ok((bytes, missing)),
        _ => Err(Unfinished::Ended("it made something else".to_owned())),
    }
}

/// Returns the size of a note that determines its budget, in bytes.
fn note_bytes(note: &LayoutNote) -> usize {
    note.text.len() + serde_json::to_vec(&note.outputs).map_or(0, |json| json.len())
}

fn lay_out(
    job: &DrawingJob,
    budget: RenderBudget,
    tints: ThemeTints,
    document: bool,
    near: &mut LayoutContext<'_>,
) -> Result<(JobOutput, Vec<u8>), Unfinished> {
    let message = worker::encode_message(job, Vec::new());
    let mut desk = LayoutProgress {
        tints,
        document,
        budget,
        given: budget.memory,
        drawing: Duration::ZERO,
        notes: Duration::ZERO,
    };
    let mut answer = |question: RenderMessage| {
        let RenderMessage { head, body } = question;
        let question = serde_json::from_slice(&head).ok()?;
        desk.answer_question(question, body, near)
    };
    let done = renderer::run_render_job(RenderQueue::Note, &message, budget, &mut answer)?;
    decode_output(done).map_err(|failure| Unfinished::Ended(failure.message().to_owned()))
}

/// Progress of a layout.
struct LayoutProgress {
    tints: ThemeTints,
    document: bool,
    budget: RenderBudget,
    /// Memory granted so far, in bytes.
    given: u64,
    /// Time used by the current note's drawings.
    drawing: Duration,
    /// Total time budget of all notes so far.
    notes: Duration,
}

impl LayoutProgress {
    fn answer_question(
        &mut self,
        question: LayoutQuestion,
        body: Vec<u8>,
        near: &mut LayoutContext<'_>,
    ) -> Option<RenderAnswer> {
        let plain = |reply: &LayoutReply, body: Vec<u8>| RenderAnswer {
            message: worker::encode_message(reply, body),
            ..RenderAnswer::default()
        };
        Some(match question {
            LayoutQuestion::Ready => {
                RenderAnswer { renew: Some(self.budget.time), ..plain(&LayoutReply::Nothing, Vec::new()) }
            }
            LayoutQuestion::Next => {
                let (reply, body) = near(LayoutQuestion::Next)?;
                self.drawing = Duration::ZERO;
                let (renew, memory) = match &reply {
                    LayoutReply::Note(laid) => {
                        let budget = note_budget(note_bytes(laid));
                        self.notes += budget.time;
                        (budget.time, budget.memory - MIN_NOTE_BUDGET.memory)
                    }
                    // All notes were read: pages are being composed.
                    _ => (self.notes.max(MIN_NOTE_BUDGET.time), 0),
                };
                RenderAnswer { renew: Some(renew), memory: self.grant_memory(memory), ..plain(&reply, body) }
            }
            LayoutQuestion::Picture(note, target) => {
                let (reply, body) = near(LayoutQuestion::Picture(note, target))?;
                // An HTML page contains it as text, a PDF unpacked: the latter is counted once it has been tried.
                let memory = self.grant_memory(8 * body.len() as u64);
                let time = Duration::from_nanos(50 * body.len() as u64).saturating_mul(DEBUG_BUILD_FACTOR);
                RenderAnswer { memory, time, ..plain(&reply, body) }
            }
            LayoutQuestion::Diagram(_, source) => {
                let job = DrawingJob::Diagram { source, tints: self.tints, document: self.document };
                self.render_drawing(&job, Vec::new())
            }
            LayoutQuestion::Figure(_) => self.render_drawing(&DrawingJob::Figure { document: self.document }, body),
            LayoutQuestion::Svg(_) => self.render_drawing(&DrawingJob::Svg { document: self.document }, body),
            LayoutQuestion::Image(_) => self.render_drawing(&DrawingJob::Image, body),
            LayoutQuestion::Formula { source, display } => {
                self.render_drawing(&DrawingJob::Formula { source, display }, Vec::new())
            }
            LayoutQuestion::Mathml { source, display } => {
                self.render_drawing(&DrawingJob::Mathml { source, display }, Vec::new())
            }
            LayoutQuestion::GoOn(_)
            | LayoutQuestion::Link(..)
            | LayoutQuestion::Note(..)
            | LayoutQuestion::Text(..) => {
                let (reply, body) = near(question)?;
                plain(&reply, body)
            }
        })
    }

    /// Grants more memory, up to the total limit. Returns the granted bytes.
    fn grant_memory(&mut self, memory: u64) -> u64 {
        let most = if self.document { MAX_DOCUMENT_MEMORY } else { MAX_NOTE_BUDGET.memory };
        let memory = memory.min(most.saturating_sub(self.given));
        self.given += memory;
        memory
    }

    /// Runs a drawing job in a separate process, so that it doesn't use up the note's time.
    fn render_drawing(&mut self, job: &DrawingJob, body: Vec<u8>) -> RenderAnswer {
        let begun = Instant::now();
        let done = if self.drawing >= MAX_NOTE_DRAWINGS_TIME {
            let most = MAX_NOTE_DRAWINGS_TIME.as_secs();
            Err(DrawFailure::Limit(format!("The drawings of this note take longer than {most} s altogether.")))
        } else {
            run_drawing_job(job, body)
        };
        let took = begun.elapsed();
        self.drawing += took;
        let mut memory = 0;
        let (reply, body) = match done {
            Ok((JobOutput::Fits { bytes }, _)) => {
                memory = self.grant_memory(bytes.saturating_mul(3));
                (LayoutReply::Nothing, Vec::new())
            }
            Ok((JobOutput::Text, mathml)) if matches!(job, DrawingJob::Mathml { .. }) => {
                match String::from_utf8(mathml) {
                    Ok(mathml) => (LayoutReply::Text(mathml), Vec::new()),
                    Err(_) => (LayoutReply::Failed(protocol_failure()), Vec::new()),
                }
            }
            Ok((JobOutput::Text, svg)) => (LayoutReply::Bytes, svg),
            Ok((JobOutput::Formula(formula), _)) => (LayoutReply::Formula(formula), Vec::new()),
            Ok(_) => (LayoutReply::Nothing, Vec::new()),
            Err(failure) => (LayoutReply::Failed(failure), Vec::new()),
        };
        // A drawing that succeeded is drawn again in its place, which may take as long.
        RenderAnswer {
            message: worker::encode_message(&reply, body),
            time: took.min(DRAWING_BUDGET.time).saturating_mul(2),
            memory,
            is_free: true,
            renew: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawings_are_made_and_refused_in_words() {
        let drawn = rasterize_diagram("flowchart LR\n A-->B", typeset::tints::LIGHT_TINTS, 2.0).expect("a drawing");
        assert!(drawn.multiplied && drawn.raster.width as f32 >= drawn.size[0] * 1.9);
        let why = |drawn: Result<DrawnPixels, DrawFailure>| drawn.err().expect("refused").message().to_owned();
        assert!(why(rasterize_diagram("nonsense", typeset::tints::LIGHT_TINTS, 1.0)).ends_with('.'));
        assert!(why(rasterize_svg(b"<svg".to_vec(), 1.0, 100)).ends_with('.'));
        assert!(rasterize_svg(vec![0xff], 1.0, 100).is_err() && decode_bitmap(vec![1, 2, 3], 100).is_err());
        assert!(typeset_formula(&format!("\\def\\a{{x}}{}", "\\a ".repeat(20)), true).is_ok());
        assert_eq!(highlight_code("let x = 1;", "rust").map(|hues| hues.len()), Some(2));
        assert_eq!(limit_message(&Unfinished::Memory(256 << 20)), "It needs more than 256 MB of memory.");
    }

    #[test]
    fn a_longer_note_may_use_more_and_none_may_use_all() {
        assert_eq!(note_budget(0), MIN_NOTE_BUDGET);
        let long = note_budget(1_000_000);
        assert!(long.time > MIN_NOTE_BUDGET.time && long.memory > MIN_NOTE_BUDGET.memory);
        assert_eq!(note_budget(usize::MAX), MAX_NOTE_BUDGET);
    }
}
