//! Output of cells as a terminal would show it: control codes are applied, and overwritten text is gone.

use serde_json::Value;
use std::ops::Range;

/// Media type of an output that shows a cell's progress: `{"title", "done", "total", "seconds"}`.
pub const PROGRESS_MIME_TYPE: &str = "application/vnd.tracebook.progress+json";
/// Media type of an output that is a table. Its first line names the columns.
pub const CSV_MIME: &str = "text/csv";

/// Maximum column that a control code can move the cursor to.
const MAX_TERMINAL_COLUMN: usize = 400;
/// Maximum number of spaces that fill lines up to the cursor. Without more, text is put at the end of its line.
const MAX_PADDING_CHARS: usize = 1 << 20;

/// A color in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalColor {
    /// One of the eight colors, from 0: black, red, green, yellow, blue, magenta, cyan, white.
    Named(u8),
    /// A 24-bit color: red, green, blue.
    Exact([u8; 3]),
}

/// Style of text in a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalStyle {
    /// Text color; `None` is the default.
    pub ink: Option<TerminalColor>,
    /// Background color; `None` is the default.
    pub ground: Option<TerminalColor>,
    /// Whether the text is bold.
    pub bold: bool,
    /// Whether the text is italic.
    pub italic: bool,
    /// Whether the text is underlined.
    pub underline: bool,
    /// Whether text and background colors are swapped.
    pub reverse: bool,
}

/// Removes terminal color codes; overwritten lines show their last content.
pub fn strip_codes(text: &str) -> String {
    parse_styled(text).0
}

/// Removes terminal codes and returns the text with its styled ranges (in bytes, ascending). Text in default style has
/// no range.
pub fn parse_styled(text: &str) -> (String, Vec<(Range<usize>, TerminalStyle)>) {
    if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return (text.to_owned(), Vec::new());
    }
    let (lines, padding_left) = (vec![Vec::new()], MAX_PADDING_CHARS);
    let mut screen = TerminalScreen { lines, padding_left, ..TerminalScreen::default() };
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => {
                    let mut code = String::new();
                    let end = chars.by_ref().find(|c| {
                        let ends = ('\u{40}'..='\u{7e}').contains(c);
                        if !ends && code.len() < 64 {
                            code.push(*c);
                        }
                        ends
                    });
                    screen.apply_control(&code, end.unwrap_or(' '));
                }
                Some(']') => while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
                _ => {}
            },
            '\r' => screen.column = 0,
            '\n' => screen.line_feed(),
            '\u{8}' => screen.column = screen.column.saturating_sub(1),
            c if c.is_control() && c != '\t' => {}
            c => screen.put_char(c),
        }
    }
    screen.into_text()
}

/// Content of a terminal with unlimited lines.
#[derive(Default)]
struct TerminalScreen {
    lines: Vec<Vec<(char, TerminalStyle)>>,
    line: usize,
    column: usize,
    style: TerminalStyle,
    /// Number of spaces that may still be added.
    padding_left: usize,
}

impl TerminalScreen {
    fn put_char(&mut self, c: char) {
        let Some(line) = self.lines.get_mut(self.line) else { return };
        if let Some(gap) = self.column.checked_sub(line.len()).filter(|gap| *gap > 0) {
            match self.padding_left.checked_sub(gap) {
                Some(left) => {
                    self.padding_left = left;
                    line.resize(self.column, (' ', TerminalStyle::default()));
                }
                None => self.column = line.len(),
            }
        }
        match line.get_mut(self.column) {
            Some(place) => *place = (c, self.style),
            None => line.push((c, self.style)),
        }
        self.column += 1;
    }

    fn line_feed(&mut self) {
        self.line += 1;
        self.column = 0;
        if self.line == self.lines.len() {
            self.lines.push(Vec::new());
        }
    }

    /// Applies a control sequence: its parameters, and its final character.
    fn apply_control(&mut self, code: &str, end: char) {
        let number = code.parse::<usize>().unwrap_or(0);
        let many = number.max(1);
        match end {
            'm' => self.style = apply_style_codes(self.style, code),
            'A' | 'F' => self.line = self.line.saturating_sub(many),
            'B' | 'E' => self.line = self.line.saturating_add(many).min(self.lines.len() - 1),
            'C' => self.column = self.column.saturating_add(many).min(MAX_TERMINAL_COLUMN.max(self.column)),
            'D' => self.column = self.column.saturating_sub(many),
            'G' => self.column = (many - 1).min(MAX_TERMINAL_COLUMN),
            'K' => {
                let Some(line) = self.lines.get_mut(self.line) else { return };
                match number {
                    0 => line.truncate(self.column),
                    1 => {
                        line.iter_mut().take(self.column + 1).for_each(|place| *place = (' ', TerminalStyle::default()))
                    }
                    _ => line.clear(),
                }
            }
            'J' if number >= 2 => {
                self.lines = vec![Vec::new()];
                (self.line, self.column) = (0, 0);
            }
            'J' if number == 0 => {
                self.lines.truncate(self.line + 1);
                let column = self.column;
                self.lines.iter_mut().skip(self.line).for_each(|line| line.truncate(column));
            }
            _ => {}
        }
        if matches!(end, 'E' | 'F') {
            self.column = 0;
        }
    }

    fn into_text(self) -> (String, Vec<(Range<usize>, TerminalStyle)>) {
        let (mut text, mut spans) = (String::new(), Vec::<(Range<usize>, TerminalStyle)>::new());
        for (at, line) in self.lines.into_iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            for (c, style) in line {
                let start = text.len();
                text.push(c);
                if style == TerminalStyle::default() {
                    continue;
                }
                match spans.last_mut() {
                    Some((range, last)) if range.end == start && *last == style => range.end = text.len(),
                    _ => spans.push((start..text.len(), style)),
                }
            }
        }
        (text, spans)
    }
}

/// Returns a style after applying the parameters of an SGR code.
fn apply_style_codes(mut style: TerminalStyle, code: &str) -> TerminalStyle {
    let mut numbers = code.split([';', ':']).map(|word| word.parse::<u16>().unwrap_or(0));
    #[allow(clippy::cast_possible_truncation, reason = "a number below ten")]
    while let Some(number) = numbers.next() {
        match number {
            0 => style = TerminalStyle::default(),
            1 => style.bold = true,
            3 => style.italic = true,
            4 => style.underline = true,
            7 => style.reverse = true,
            22 => style.bold = false,
            23 => style.italic = false,
            24 => style.underline = false,
            27 => style.reverse = false,
            30..=37 => style.ink = Some(TerminalColor::Named((number - 30) as u8)),
            90..=97 => style.ink = Some(TerminalColor::Named((number - 90) as u8)),
            39 => style.ink = None,
            40..=47 => style.ground = Some(TerminalColor::Named((number - 40) as u8)),
            100..=107 => style.ground = Some(TerminalColor::Named((number - 100) as u8)),
            49 => style.ground = None,
            38 => style.ink = parse_extended_color(&mut numbers).or(style.ink),
            48 => style.ground = parse_extended_color(&mut numbers).or(style.ground),
            _ => {}
        }
    }
    style
}

/// Parses a color from the palette of 256, or an RGB color.
#[allow(clippy::cast_possible_truncation, reason = "at most 255")]
fn parse_extended_color(numbers: &mut impl Iterator<Item = u16>) -> Option<TerminalColor> {
    let mut next = || numbers.next().map(|number| number.min(255) as u8);
    match next()? {
        2 => Some(TerminalColor::Exact([next()?, next()?, next()?])),
        5 => Some(match next()? {
            index @ 0..16 => TerminalColor::Named(index % 8),
            index @ 16..232 => {
                let step = |at: u8| if at == 0 { 0 } else { 55 + 40 * at };
                let index = index - 16;
                TerminalColor::Exact([step(index / 36), step(index / 6 % 6), step(index % 6)])
            }
            index => TerminalColor::Exact([8 + 10 * (index - 232); 3]),
        }),
        _ => None,
    }
}

/// Returns a text of nbformat, which is a string or a list of lines, as one string.
pub fn multiline_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(|line| line.as_str()).collect(),
        other => other.to_string(),
    }
}

/// Returns everything a cell printed and returned as plain text. Pictures and other media are only named.
pub fn outputs_text(outputs: &[store::CellOutput]) -> String {
    use store::OutputBody;
    let mut text = String::new();
    for output in outputs {
        match &output.body {
            OutputBody::Stream { text: more, .. } => text.push_str(&strip_codes(more)),
            OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
                match data.get("text/plain") {
                    Some(value) => text.push_str(&strip_codes(&multiline_text(value))),
                    None => text.push_str(&format!("[{}]", data.keys().cloned().collect::<Vec<_>>().join(", "))),
                }
                text.push('\n');
            }
            OutputBody::Error { ename, evalue, traceback } => {
                let trace = strip_codes(&traceback.join("\n"));
                let words = if trace.trim().is_empty() { format!("{ename}: {evalue}") } else { trace };
                text.push_str(&words);
                text.push('\n');
            }
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_read() {
        assert_eq!(strip_codes("\u{1b}[31;1mred\u{1b}[0m\n"), "red\n");
        assert_eq!(strip_codes("10 %\r20 %\r\nend"), "20 %\nend");
        assert_eq!(strip_codes("ab\u{8}c\u{7}\u{1b}]0;title\u{7}!"), "ac!");
        assert_eq!(strip_codes("one\n\ttwo\n"), "one\n\ttwo\n");
        let many = "\u{1b}[400Cx\n".repeat(20_000);
        assert!(strip_codes(&many).len() <= MAX_PADDING_CHARS + 2 * 20_000);
        for far in ["\u{1b}[18446744073709551615B", "\u{1b}[18446744073709551615E"] {
            assert_eq!(strip_codes(&format!("a\nb\r{far}c")), "a\nc");
        }
        assert_eq!(strip_codes("a\u{1b}[18446744073709551615Cb").trim_end_matches('b').len(), MAX_TERMINAL_COLUMN);
        assert_eq!(strip_codes("long line\r\u{1b}[Kend"), "end");
        assert_eq!(strip_codes("a: 1\nb: 1\n\u{1b}[2Aa: 2\n\u{1b}[1Bend"), "a: 2\nb: 1\nend", "bars below each other");
        assert_eq!(strip_codes("old\nlines\u{1b}[2Jnew"), "new");
        assert_eq!(strip_codes("a\u{1b}[9Cb\u{1b}[99999999999C\u{1b}[5Dc").len(), 396);
        assert_eq!(strip_codes("\u{1b}[\u{1b}["), "");
    }

    #[test]
    fn colours_are_kept() {
        let (text, spans) =
            parse_styled("a \u{1b}[1;31mred\u{1b}[39m b\u{1b}[0m \u{1b}[38;5;196mx\u{1b}[48;2;1;2;3my\u{1b}[m.");
        assert_eq!(text, "a red b xy.");
        let red = TerminalStyle { bold: true, ink: Some(TerminalColor::Named(1)), ..TerminalStyle::default() };
        let exact = TerminalStyle { ink: Some(TerminalColor::Exact([255, 0, 0])), ..TerminalStyle::default() };
        let both = TerminalStyle { ground: Some(TerminalColor::Exact([1, 2, 3])), ..exact };
        let bold = TerminalStyle { bold: true, ..TerminalStyle::default() };
        assert_eq!(spans, [(2..5, red), (5..7, bold), (8..9, exact), (9..10, both)]);
    }
}
