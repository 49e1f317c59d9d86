//! Layout of a row's source while it is edited. Markup is drawn in `muted` and text as rendered, so that little moves
//! when the caret enters or leaves the row.

use super::assets;
use super::python_highlighter::{self, PythonToken};
use super::render::{LIST_ITEM_INDENT, QUOTE_INDENT, TextStyleContext};
use super::row_splitter::RowKind;
use eframe::egui;
use egui::text::{LayoutJob, TextFormat};
use pulldown_cmark::{Event as Mark, Options, Tag, TagEnd};
use std::ops::Range;
use text::markdown::dialect::{self, DialectToken as Spoken};
use typeset::highlight::CodeHue;
use ui::theme::{self, InterCut};
use ui::widgets::format;

/// Returns the width of code in a column; its box extends beyond the column, so that code aligns with text.
pub fn code_width(column: f32) -> f32 {
    column
}

/// Returns the font and line height of a row's source.
pub(crate) fn type_of(kind: RowKind) -> theme::TypeStyle {
    match kind {
        RowKind::Heading(level) => theme::heading(level),
        RowKind::Footnote => theme::small(),
        kind if kind.is_mono() => theme::code(),
        _ => theme::body(),
    }
}

/// Returns the layout job of a row's source for the editor.
pub(crate) fn source_job(text: &str, kind: RowKind, width: f32, pen: TextStyleContext<'_>) -> LayoutJob {
    let mut job = match kind {
        RowKind::Cell => code_job(text, language(text), true, pen),
        RowKind::Fence { .. } | RowKind::Code { .. } => code_job(text, language(text), true, pen),
        kind if kind.is_mono() => {
            let style = type_of(kind);
            let colour = if kind == RowKind::Table { pen.colours.ink } else { pen.colours.muted };
            single(text, format(style.font, style.line, colour))
        }
        _ => prose(text, kind, pen),
    };
    job.wrap.max_width = width;
    job.keep_trailing_whitespace = true;
    job
}

fn single(text: &str, format: TextFormat) -> LayoutJob {
    let mut job = LayoutJob::default();
    job.append(text, 0.0, format);
    job
}

/// Returns the language of a code block whose text begins with its opening fence.
pub fn language(text: &str) -> &str {
    let opening = text.lines().next().unwrap_or("").trim_start();
    fence_language(opening.trim_start_matches(['`', '~']))
}

/// Returns the language in an opening fence's info string.
pub(crate) fn fence_language(info: &str) -> &str {
    info.trim().trim_start_matches('{').trim_start_matches('.').split([' ', '{', ',', '}']).next().unwrap_or("")
}

/// Returns the hint shown below a query of another program's plugin, which is shown as code here.
pub fn foreign_query_hint(language: &str) -> Option<&'static str> {
    match language.to_ascii_lowercase().as_str() {
        "dataview" | "dataviewjs" => Some(
            "Dataview queries aren't run here. A collection lists notes by their properties: see “New collection”.",
        ),
        "tasks" => Some("Queries of the Tasks plugin aren't run here. The agenda lists the tasks of all notes."),
        _ => None,
    }
}

/// Returns the layout job of code, highlighted as far as known. `fenced` says that its first line, and a closing one,
/// are fences.
pub fn code_job(text: &str, language: &str, fenced: bool, pen: TextStyleContext<'_>) -> LayoutJob {
    let colours = pen.colours;
    let style = theme::code();
    let plain = format(style.font, style.line, colours.ink);
    let mut job = LayoutJob::default();
    let (mut from, mut to) = (0, text.len());
    if fenced && text.trim_start().starts_with(['`', '~']) {
        from = text.find('\n').map_or(text.len(), |newline| newline + 1);
        let last = text.rfind('\n').map_or(0, |newline| newline + 1);
        if last >= from && text[last..].trim_start().starts_with(['`', '~']) {
            to = last;
        }
    }
    let muted = TextFormat { color: colours.muted, ..plain.clone() };
    append(&mut job, &text[..from.min(to)], &muted);
    let body = &text[from.min(to)..to];
    coloured(&mut job, body, hues(body, language, pen), &plain, colours);
    append(&mut job, &text[to..], &muted);
    if job.sections.is_empty() {
        job.append("", 0.0, plain);
    }
    job
}

/// Returns the layout job of code being edited; until new highlighting is known, characters keep their colors.
pub(crate) fn edited_code_job(text: &str, language: &str, pen: TextStyleContext<'_>) -> LayoutJob {
    if is_python(language) {
        return code_job(text, language, false, pen);
    }
    let style = theme::code();
    let plain = format(style.font, style.line, pen.colours.ink);
    let mut job = LayoutJob::default();
    coloured(&mut job, text, assets::edited_hues(pen.ctx, text, language), &plain, pen.colours);
    if job.sections.is_empty() {
        job.append("", 0.0, plain);
    }
    job
}

fn is_python(language: &str) -> bool {
    matches!(language.to_ascii_lowercase().as_str(), "python" | "python3" | "py")
}

/// Returns the layout job of a part that starts at byte `at` of the whole code, with the whole's highlighting.
pub fn code_part_job(text: &str, whole: &str, at: usize, language: &str, pen: TextStyleContext<'_>) -> LayoutJob {
    let style = theme::code();
    let plain = format(style.font, style.line, pen.colours.ink);
    let end = at + text.len();
    let hues = hues(whole, language, pen).into_iter().filter(|(range, _)| range.start < end && at < range.end);
    let hues = hues.map(|(range, hue)| (range.start.max(at) - at..range.end.min(end) - at, hue)).collect();
    let mut job = LayoutJob::default();
    coloured(&mut job, text, hues, &plain, pen.colours);
    if job.sections.is_empty() {
        job.append("", 0.0, plain);
    }
    job
}

/// Appends code with its highlighting to a layout job.
fn coloured(
    job: &mut LayoutJob,
    code: &str,
    hues: Vec<(Range<usize>, CodeHue)>,
    plain: &TextFormat,
    colours: &theme::ThemeColors,
) {
    let mut at = 0;
    for (range, hue) in hues {
        if range.start < at || code.get(range.clone()).is_none() {
            continue;
        }
        append(job, &code[at..range.start], plain);
        let mut format = plain.clone();
        format.color = colours.code_color(hue);
        if hue == CodeHue::Comment {
            format.font_id = theme::code_italic_font();
        }
        append(job, &code[range.clone()], &format);
        at = range.end;
    }
    append(job, &code[at..], plain);
}

/// Returns the highlighted ranges of code. Python is highlighted at once, because cells are edited most; other
/// languages are highlighted on a separate thread.
fn hues(code: &str, language: &str, pen: TextStyleContext<'_>) -> Vec<(Range<usize>, CodeHue)> {
    if !is_python(language) {
        return assets::code_hues(pen.ctx, code, language).map(|hues| hues.to_vec()).unwrap_or_default();
    }
    let hue = |token| match token {
        PythonToken::Keyword => CodeHue::Keyword,
        PythonToken::Text => CodeHue::Text,
        PythonToken::Comment => CodeHue::Comment,
        PythonToken::Number => CodeHue::Number,
        PythonToken::Name => CodeHue::Name,
    };
    python_highlighter::python_tokens(code).into_iter().map(|(range, token)| (range, hue(token))).collect()
}

fn append(job: &mut LayoutJob, text: &str, format: &TextFormat) {
    if !text.is_empty() {
        job.append(text, 0.0, format.clone());
    }
}

/// Returns the layout job of prose: text looks as it does when rendered, and markup is muted.
fn prose(text: &str, kind: RowKind, pen: TextStyleContext<'_>) -> LayoutJob {
    let style = type_of(kind);
    let colours = pen.colours;
    let mut shown: Vec<(Range<usize>, TextFormat)> = Vec::new();
    let (mut strong, mut emphasis, mut strike, mut link, mut lit) = (0_u32, 0_u32, 0_u32, 0_u32, false);
    let heading = matches!(kind, RowKind::Heading(_));
    let options = dialect::dialect_options() - Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    // An item is indented relative to its list; without this, Markdown would parse four spaces as code.
    let skip = match kind {
        RowKind::Item { .. } => text.len() - text.trim_start_matches([' ', '\t']).len(),
        _ => 0,
    };
    for (token, range) in dialect::tokenize(&text[skip..], options) {
        let range = range.start + skip..range.end + skip;
        let event = match token {
            Spoken::Mark(event) => event,
            Spoken::Highlight(on) => {
                lit = on;
                continue;
            }
            Spoken::Label(_) => {
                let format = format(theme::inter_font(InterCut::Regular, style.font.size), style.line, colours.accent);
                shown.push((range, format));
                continue;
            }
            Spoken::Anchor(_) | Spoken::State(_) | Spoken::Callout(_) => continue,
        };
        let code = matches!(event, Mark::Code(_) | Mark::InlineMath(_) | Mark::DisplayMath(_));
        match event {
            Mark::Start(Tag::Strong) => strong += 1,
            Mark::End(TagEnd::Strong) => strong = strong.saturating_sub(1),
            Mark::Start(Tag::Emphasis) => emphasis += 1,
            Mark::End(TagEnd::Emphasis) => emphasis = emphasis.saturating_sub(1),
            Mark::Start(Tag::Strikethrough) => strike += 1,
            Mark::End(TagEnd::Strikethrough) => strike = strike.saturating_sub(1),
            Mark::Start(Tag::Link { .. } | Tag::Image { .. }) => link += 1,
            Mark::End(TagEnd::Link | TagEnd::Image) => link = link.saturating_sub(1),
            Mark::Text(_)
            | Mark::Code(_)
            | Mark::InlineMath(_)
            | Mark::DisplayMath(_)
            | Mark::InlineHtml(_)
            | Mark::Html(_) => {
                let cut = match (strong > 0, emphasis > 0) {
                    (true, true) => InterCut::BoldItalic,
                    (true, false) => InterCut::Bold,
                    (false, true) => InterCut::Italic,
                    (false, false) if heading => InterCut::SemiBold,
                    (false, false) => InterCut::Regular,
                };
                let colour = match kind {
                    _ if link > 0 => colours.accent,
                    RowKind::Heading(4..) | RowKind::Quote => colours.muted,
                    _ => colours.ink,
                };
                let mut format = format(theme::inter_font(cut, style.font.size), style.line, colour);
                if code {
                    format.font_id = theme::code().font;
                    format.font_id.size = style.font.size * 0.9;
                }
                if lit {
                    format.background = colours.lit;
                }
                if strike > 0 {
                    format.strikethrough = egui::Stroke::new(1.0, colours.muted);
                }
                if shown.last().is_none_or(|(last, _)| last.end <= range.start) {
                    shown.push((range, format));
                }
            }
            _ => {}
        }
    }
    let mark = format(
        theme::inter_font(if heading { InterCut::SemiBold } else { InterCut::Regular }, style.font.size),
        style.line,
        colours.muted,
    );
    let mut job = LayoutJob::default();
    let mut at = 0;
    for (range, format) in shown {
        if text.get(range.clone()).is_none() || range.start < at {
            continue;
        }
        append(&mut job, &text[at..range.start], &mark);
        append(&mut job, &text[range.clone()], &format);
        at = range.end;
    }
    // Lines begun below a heading aren't part of it.
    let end = if heading && text.starts_with('#') {
        text[at..].find('\n').map_or(text.len(), |end| at + end)
    } else {
        text.len()
    };
    append(&mut job, &text[at..end], &mark);
    let body = theme::body();
    append(&mut job, &text[end..], &format(body.font, body.line, colours.muted));
    if job.sections.is_empty() {
        job.append("", 0.0, format(style.font, style.line, colours.ink));
    }
    job
}

/// Returns the markup before a row's text, which is drawn to the left of it.
pub fn row_marks(text: &str, kind: RowKind) -> &str {
    let bytes = text.as_bytes();
    let spaces = text.len() - text.trim_start_matches([' ', '\t']).len();
    let end = match kind {
        RowKind::Heading(_) if text.trim_start().starts_with('#') => {
            let marks = bytes[spaces..].iter().take_while(|byte| **byte == b'#').count();
            spaces + marks + usize::from(bytes.get(spaces + marks) == Some(&b' '))
        }
        RowKind::Item { tail: false, .. } => {
            let rest = &text[spaces..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let mark = digits + usize::from(rest[digits..].starts_with(['-', '*', '+', '.', ')']));
            let after = spaces + mark + usize::from(rest[mark..].starts_with(' '));
            let task = ["[ ] ", "[x] ", "[X] "].iter().any(|task| text[after..].starts_with(task));
            if task { after + 4 } else { after }
        }
        RowKind::Item { tail: true, .. } => spaces,
        RowKind::Quote => {
            spaces + usize::from(bytes.get(spaces) == Some(&b'>')) + usize::from(bytes.get(spaces + 1) == Some(&b' '))
        }
        _ => 0,
    };
    text.get(..end).unwrap_or("")
}

/// Returns the offset of a rendered row's text from the column's left edge.
pub(crate) fn words_at(kind: RowKind) -> f32 {
    match kind {
        RowKind::Item { depth, .. } => LIST_ITEM_INDENT * (f32::from(depth.min(12)) + 1.0),
        RowKind::Quote => QUOTE_INDENT,
        _ => 0.0,
    }
}

/// Returns the offset of a row's editor from the column's left edge, so that its text stays where it was rendered.
/// Negative values are to the left of the edge.
pub(crate) fn hanging_indent(text: &str, kind: RowKind, margin: f32, pen: TextStyleContext<'_>) -> f32 {
    let lead = row_marks(text, kind);
    if lead.is_empty() {
        return words_at(kind).min(0.0);
    }
    let mut job = source_job(lead, kind, f32::INFINITY, pen);
    // Markdown doesn't parse a marker on its own as one, so it is set in the row's style here.
    let style = type_of(kind);
    let cut = if matches!(kind, RowKind::Heading(_)) { InterCut::SemiBold } else { InterCut::Regular };
    job.sections.clear();
    job.text.clear();
    job.append(lead, 0.0, format(theme::inter_font(cut, style.font.size), style.line, pen.colours.muted));
    (words_at(kind) - pen.galley(job).size().x).max(-margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_front() {
        let item = RowKind::Item { depth: 0, number: None, tail: false };
        assert_eq!(row_marks("## a b", RowKind::Heading(2)), "## ");
        assert_eq!(row_marks("##", RowKind::Heading(2)), "##");
        assert_eq!(row_marks("a\n---", RowKind::Heading(2)), "");
        assert_eq!(row_marks("  - [x] a", item), "  - [x] ");
        assert_eq!(row_marks("12) a", item), "12) ");
        assert_eq!(row_marks("-", item), "-");
        assert_eq!(row_marks("> a", RowKind::Quote), "> ");
        assert_eq!(row_marks("a - b", RowKind::Paragraph), "");
    }
}
