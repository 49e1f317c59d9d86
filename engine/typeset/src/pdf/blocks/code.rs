//! Code blocks with syntax highlighting, followed by the output of their cell.

use super::super::metrics;
use super::super::text_layout::{InlinePicture, ParagraphItem, PictureShape, WordStyle};
use super::{PdfBlock, PdfWalker, decode_picture};
use crate::ansi;
use crate::highlight::{self, CodeHue};
use crate::tints::{Rgb, ThemeTints, mix_colors};
use base64::Engine as _;
use std::ops::Range;
use std::rc::Rc;
use store::{Execution, ExecutionStatus, OutputBody};

impl PdfWalker<'_, '_> {
    pub(super) fn end_code_block(&mut self) {
        let Some((text, language, cell)) = self.code.take() else { return };
        let diagram = (language == "mermaid").then(|| self.around.render_diagram(&text));
        let failure = diagram.as_ref().and_then(|drawn| drawn.as_ref().err()).cloned();
        if let Some(Ok(drawing)) = diagram {
            let (width, height) = (drawing.width * 0.75, drawing.height * 0.75);
            let shape = Rc::new(PictureShape::Drawing(drawing));
            let alt = format!("Diagram: {}", text.trim());
            self.push_block(PdfBlock::Picture(InlinePicture {
                shape,
                width,
                height,
                depth: 0.0,
                pad: 0.0,
                alt,
                formula: false,
            }));
            return;
        }
        let lines = highlighted_lines(text.trim_end_matches('\n'), &language, self.reading.tints);
        self.push_block(PdfBlock::Code { lines, ground: true });
        if let Some(failure) = failure {
            self.push_failure(&failure);
            self.end_paragraph();
        }
        if let Some(Some(run)) = cell.and_then(|cell| self.runs.get(cell)) {
            self.push_outputs(run);
        }
    }

    fn push_printed(&mut self, text: &str, colour: Rgb) {
        let text = ansi::strip_codes(text);
        let text = text.trim_end();
        if !text.is_empty() {
            let style = WordStyle { colour, ..metrics::code_style() };
            let lines = text.lines().map(|line| vec![ParagraphItem::Text(line.to_owned(), style)]).collect();
            self.push_block(PdfBlock::Code { lines, ground: false });
        }
    }

    /// Adds what a cell printed and returned.
    fn push_outputs(&mut self, run: &Execution) {
        let (ink, bad) = (self.reading.tints.ink, self.reading.tints.bad);
        for output in &run.outputs {
            match &output.body {
                OutputBody::Stream { name, text } => self.push_printed(text, if name == "stderr" { bad } else { ink }),
                OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
                    let alt = data.get("text/plain").map(ansi::multiline_text).unwrap_or_else(|| "Output".to_owned());
                    let figure = data.iter().find_map(|(mime, value)| {
                        let json = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        self.around.render_figure(mime, &json).transpose()
                    });
                    let mut failure = figure.as_ref().and_then(|drawn| drawn.as_ref().err()).cloned();
                    let figure = figure.and_then(Result::ok).map(|drawing| {
                        let (width, height) = (drawing.width * 0.75, drawing.height * 0.75);
                        let shape = Rc::new(PictureShape::Drawing(drawing));
                        InlinePicture { shape, width, height, depth: 0.0, pad: 0.0, alt: String::new(), formula: false }
                    });
                    let raster = ["image/png", "image/jpeg", "image/gif", "image/webp"];
                    let coded = raster.iter().find_map(|media| data.get(*media)).map(ansi::multiline_text);
                    let bytes = coded.and_then(|coded| {
                        base64::engine::general_purpose::STANDARD.decode(coded.replace(['\n', '\r', ' '], "")).ok()
                    });
                    let bytes =
                        bytes.or_else(|| data.get("image/svg+xml").map(|svg| ansi::multiline_text(svg).into_bytes()));
                    let object = figure.or_else(|| match decode_picture(bytes?, self.around) {
                        Ok(object) => {
                            let mut object = object?;
                            (object.width, object.height) = (object.width * 0.75, object.height * 0.75);
                            Some(object)
                        }
                        Err(limit) => {
                            failure = Some(limit);
                            None
                        }
                    });
                    match object {
                        Some(object) => self.push_block(PdfBlock::Picture(InlinePicture { alt, ..object })),
                        None => self.push_printed(&alt, ink),
                    }
                    if let Some(failure) = failure {
                        self.push_failure(&failure);
                        self.end_paragraph();
                    }
                }
                OutputBody::Error { ename, evalue, traceback } => {
                    let head = if evalue.is_empty() { ename.clone() } else { format!("{ename}: {evalue}") };
                    let trace = ansi::strip_codes(&traceback.join("\n"));
                    let whole = trace.trim_end().ends_with(head.trim_end());
                    self.push_printed(if whole { &trace } else { &head }, bad);
                }
            }
        }
        match run.status {
            ExecutionStatus::Interrupted if run.is_canceled_in_queue() => self.push_printed("Not run.", bad),
            ExecutionStatus::Interrupted => self.push_printed("Stopped before it was done.", bad),
            ExecutionStatus::Died => self.push_printed("The kernel ended in the middle of it.", bad),
            ExecutionStatus::Queued | ExecutionStatus::Running | ExecutionStatus::Ok | ExecutionStatus::Error => {}
        }
    }
}

/// Returns the lines of code with syntax highlighting.
fn highlighted_lines(code: &str, language: &str, tints: &ThemeTints) -> Vec<Vec<ParagraphItem>> {
    let base = WordStyle { colour: tints.ink, ..metrics::code_style() };
    let mut items: Vec<(Range<usize>, WordStyle)> = Vec::new();
    let mut at = 0;
    for (range, hue) in highlight::highlight_code(code, language).unwrap_or_default() {
        let style = match hue {
            CodeHue::Keyword => WordStyle { colour: tints.thought, ..base },
            CodeHue::Text => WordStyle { colour: tints.ok, ..base },
            CodeHue::Comment => WordStyle { colour: mix_colors(tints.muted, tints.paper, 0.1), italic: true, ..base },
            CodeHue::Number => WordStyle { colour: tints.tool, ..base },
            CodeHue::Name => WordStyle { colour: tints.accent, ..base },
        };
        items.push((at..range.start, base));
        items.push((range.clone(), style));
        at = range.end;
    }
    items.push((at..code.len(), base));
    let mut lines: Vec<Vec<ParagraphItem>> = vec![Vec::new()];
    for (range, style) in items {
        for (index, part) in code.get(range).unwrap_or("").split('\n').enumerate() {
            if index > 0 {
                lines.push(Vec::new());
            }
            if let Some(line) = lines.last_mut().filter(|_| !part.is_empty()) {
                line.push(ParagraphItem::Text(part.trim_end_matches('\r').to_owned(), style));
            }
        }
    }
    lines
}
