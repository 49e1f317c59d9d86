//! What a cell printed and returned: plain text, laid out once per change, folded past some lines.

use super::figure::Drawn;
use super::render::{Pen, format};
use crate::tokens::{self, FOLD, space};
use eframe::egui;
use egui::text::LayoutJob;
use egui::{Color32, Galley};
use std::sync::Arc;
use store::{Execution, ExecutionId, Output, OutputBody, Status};
use typeset::printed::{joined, plain};

/// Laid-out output of one execution.
pub(super) struct Outputs {
    key: Key,
    pub(super) galleys: Vec<(f32, Arc<Galley>)>,
    pub(super) figures: Vec<Drawn>,
    pub(super) height: f32,
    /// Lines in all, when some are folded away or could be.
    pub(super) lines: usize,
    /// All of it, for the clipboard.
    pub(super) text: String,
}

/// What an output's layout depends on.
#[derive(Clone, Copy, PartialEq)]
struct Key {
    execution: ExecutionId,
    outputs: usize,
    bytes: usize,
    status: Status,
    open: bool,
    width: f32,
    paper: Color32,
    scale: f32,
    letters: u64,
}

impl Outputs {
    /// The layout of an execution's outputs, made anew only when something changed.
    pub(super) fn of(old: Option<Outputs>, run: &Execution, open: bool, width: f32, pen: Pen<'_>) -> Outputs {
        let key = Key {
            execution: run.id,
            outputs: run.outputs.len(),
            bytes: run.outputs.iter().map(bytes).sum(),
            status: run.status,
            open,
            width,
            paper: pen.colours.paper,
            scale: pen.ctx.pixels_per_point() * tokens::text(),
            letters: super::sights::version(pen.ctx),
        };
        match old {
            Some(old) if old.key == key => old,
            _ => lay(key, run, pen),
        }
    }
}

fn bytes(output: &Output) -> usize {
    match &output.body {
        OutputBody::Stream { text, .. } => text.len(),
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => data.len(),
        OutputBody::Error { traceback, .. } => traceback.len(),
    }
}

/// A piece of output: text in one colour.
struct Piece {
    text: String,
    colour: Color32,
    small: bool,
}

fn lay(key: Key, run: &Execution, pen: Pen<'_>) -> Outputs {
    let pieces = pieces(run, pen);
    let lines: usize = pieces.iter().map(|piece| piece.text.lines().count()).sum();
    let text =
        pieces.iter().filter(|piece| !piece.small).map(|piece| piece.text.as_str()).collect::<Vec<_>>().join("\n");
    let mut left = if key.open || lines <= FOLD { usize::MAX } else { FOLD };
    let (mut galleys, mut y) = (Vec::new(), 0.0);
    for piece in pieces {
        if left == 0 && !piece.small {
            continue;
        }
        let shown: Vec<&str> = piece.text.lines().take(left.max(usize::from(piece.small))).collect();
        left = left.saturating_sub(shown.len());
        let style = if piece.small { tokens::caption() } else { tokens::code() };
        let mut job = LayoutJob::default();
        job.wrap.max_width = key.width;
        job.append(&shown.join("\n"), 0.0, format(style.font, style.line, piece.colour));
        let galley = pen.galley(job);
        if piece.small && !galleys.is_empty() {
            y += space::XS;
        }
        let height = galley.size().y;
        galleys.push((y, galley));
        y += height;
    }
    let figures = figures(run, key.width, &mut y, pen);
    Outputs { key, galleys, figures, height: y, lines: if lines > FOLD { lines } else { 0 }, text }
}

/// The figures of an execution, below its words.
fn figures(run: &Execution, width: f32, y: &mut f32, pen: Pen<'_>) -> Vec<Drawn> {
    let mut figures = Vec::new();
    for output in &run.outputs {
        let (OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }) = &output.body else {
            continue;
        };
        if let Some(Ok(mut drawn)) = data.get(plot::MIME).map(|value| Drawn::new(value, width, pen)) {
            drawn.y = *y;
            *y += drawn.size.y;
            figures.push(drawn);
        }
    }
    figures
}

fn pieces(run: &Execution, pen: Pen<'_>) -> Vec<Piece> {
    let colours = pen.colours;
    let mut pieces = Vec::new();
    let mut code = |text: &str, colour: Color32| {
        let text = plain(text);
        let text = text.trim_end_matches('\n');
        if !text.is_empty() {
            pieces.push(Piece { text: text.to_owned(), colour, small: false });
        }
    };
    let mut notes: Vec<String> = Vec::new();
    for output in &run.outputs {
        match &output.body {
            OutputBody::Stream { name, text } if name == "stderr" => {
                code(text, colours.muted.lerp_to_gamma(colours.bad, 0.5))
            }
            OutputBody::Stream { text, .. } => code(text, colours.ink),
            OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }
                if data.contains_key(plot::MIME) => {}
            OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => match data
                .get("text/plain")
            {
                Some(value) => code(&joined(value), colours.ink),
                None => code(&data.keys().map(|mime| format!("[{mime}]")).collect::<Vec<_>>().join(" "), colours.muted),
            },
            OutputBody::Error { ename, evalue, traceback } => {
                let head = if evalue.is_empty() { ename.clone() } else { format!("{ename}: {evalue}") };
                let trace = plain(&traceback.join("\n"));
                let before = trace.trim_end().strip_suffix(head.trim_end()).unwrap_or(&trace);
                code(before.trim_end(), colours.muted);
                code(&head, colours.bad);
            }
        }
        if let Some(whole) = &output.whole {
            notes.push(format!("Only its beginning is kept in the note; all of it is {}.", amount(whole.size)));
        }
    }
    let says = match run.status {
        Status::Interrupted => Some("Stopped before it was done."),
        Status::Died => Some("The kernel ended in the middle of it; text and outputs stay, variables are gone."),
        Status::Queued | Status::Running | Status::Ok | Status::Error => None,
    };
    notes.extend(says.map(str::to_owned));
    pieces.extend(notes.into_iter().map(|text| Piece { text, colour: colours.muted, small: true }));
    pieces
}

#[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
pub(super) fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
