//! Code on a page: coloured, what its cell printed and returned below it.

use super::super::look;
use super::super::text::{InlinePicture, ParagraphItem, PictureShape, WordStyle};
use super::{PdfBlock, PdfWalker, picture};
use crate::colour::{self, CodeHue};
use crate::printed;
use crate::tints::{Rgb, ThemeTints, mix};
use base64::Engine as _;
use std::ops::Range;
use std::rc::Rc;
use store::{Execution, ExecutionStatus, OutputBody};

impl PdfWalker<'_, '_> {
    pub(super) fn code_block(&mut self) {
        let Some((text, language, cell)) = self.code.take() else { return };
        let diagram = (language == "mermaid").then(|| self.around.diagram(&text));
        let failure = diagram.as_ref().and_then(|drawn| drawn.as_ref().err()).cloned();
        if let Some(Ok(drawing)) = diagram {
            let (width, height) = (drawing.width * 0.75, drawing.height * 0.75);
            let shape = Rc::new(PictureShape::Drawing(drawing));
            let alt = format!("Diagram: {}", text.trim());
            self.push(PdfBlock::Picture(InlinePicture {
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
        let lines = coloured(text.trim_end_matches('\n'), &language, self.reading.tints);
        self.push(PdfBlock::Code { lines, ground: true });
        if let Some(failure) = failure {
            self.reason(&failure);
            self.flush();
        }
        if let Some(Some(run)) = cell.and_then(|cell| self.runs.get(cell)) {
            self.outputs(run);
        }
    }

    fn printed(&mut self, text: &str, colour: Rgb) {
        let text = printed::plain(text);
        let text = text.trim_end();
        if !text.is_empty() {
            let style = WordStyle { colour, ..look::code() };
            let lines = text.lines().map(|line| vec![ParagraphItem::Text(line.to_owned(), style)]).collect();
            self.push(PdfBlock::Code { lines, ground: false });
        }
    }

    /// What a cell printed and returned.
    fn outputs(&mut self, run: &Execution) {
        let (ink, bad) = (self.reading.tints.ink, self.reading.tints.bad);
        for output in &run.outputs {
            match &output.body {
                OutputBody::Stream { name, text } => self.printed(text, if name == "stderr" { bad } else { ink }),
                OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
                    let alt = data.get("text/plain").map(printed::joined).unwrap_or_else(|| "Output".to_owned());
                    let figure = data.iter().find_map(|(mime, value)| {
                        let json = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        self.around.figure(mime, &json).transpose()
                    });
                    let mut failure = figure.as_ref().and_then(|drawn| drawn.as_ref().err()).cloned();
                    let figure = figure.and_then(Result::ok).map(|drawing| {
                        let (width, height) = (drawing.width * 0.75, drawing.height * 0.75);
                        let shape = Rc::new(PictureShape::Drawing(drawing));
                        InlinePicture { shape, width, height, depth: 0.0, pad: 0.0, alt: String::new(), formula: false }
                    });
                    let raster = ["image/png", "image/jpeg", "image/gif", "image/webp"];
                    let coded = raster.iter().find_map(|media| data.get(*media)).map(printed::joined);
                    let bytes = coded.and_then(|coded| {
                        base64::engine::general_purpose::STANDARD.decode(coded.replace(['\n', '\r', ' '], "")).ok()
                    });
                    let bytes =
                        bytes.or_else(|| data.get("image/svg+xml").map(|svg| printed::joined(svg).into_bytes()));
                    let object = figure.or_else(|| match picture(bytes?, self.around) {
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
                        Some(object) => self.push(PdfBlock::Picture(InlinePicture { alt, ..object })),
                        None => self.printed(&alt, ink),
                    }
                    if let Some(failure) = failure {
                        self.reason(&failure);
                        self.flush();
                    }
                }
                OutputBody::Error { ename, evalue, traceback } => {
                    let head = if evalue.is_empty() { ename.clone() } else { format!("{ename}: {evalue}") };
                    let trace = printed::plain(&traceback.join("\n"));
                    let whole = trace.trim_end().ends_with(head.trim_end());
                    self.printed(if whole { &trace } else { &head }, bad);
                }
            }
        }
        match run.status {
            ExecutionStatus::Interrupted => self.printed("Stopped before it was done.", bad),
            ExecutionStatus::Died => self.printed("The kernel ended in the middle of it.", bad),
            ExecutionStatus::Queued | ExecutionStatus::Running | ExecutionStatus::Ok | ExecutionStatus::Error => {}
        }
    }
}

/// The lines of code, with what stands out in its colour.
fn coloured(code: &str, language: &str, tints: &ThemeTints) -> Vec<Vec<ParagraphItem>> {
    let base = WordStyle { colour: tints.ink, ..look::code() };
    let mut items: Vec<(Range<usize>, WordStyle)> = Vec::new();
    let mut at = 0;
    for (range, hue) in colour::colours(code, language).unwrap_or_default() {
        let style = match hue {
            CodeHue::Keyword => WordStyle { colour: tints.thought, ..base },
            CodeHue::Text => WordStyle { colour: tints.ok, ..base },
            CodeHue::Comment => WordStyle { colour: mix(tints.muted, tints.paper, 0.1), italic: true, ..base },
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
