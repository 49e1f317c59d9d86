//! How many rows printed text takes, so that a long line is folded like many short ones.

use editor::render::TextStyleContext;
use std::ops::ControlFlow;
use ui::theme;

/// Returns how many characters of code fit into a row of this width.
pub(super) fn characters_per_row(width: f32, pen: TextStyleContext<'_>) -> usize {
    let font = theme::code().font;
    let letter = pen.ctx.fonts_mut(|fonts| fonts.glyph_width(&font, '0'));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundreds at most")]
    let fitting = (width / letter.max(1.0)) as usize;
    fitting.max(20)
}

/// Returns how many rows a text takes if a row holds so many characters.
pub(super) fn row_count(text: &str, per_row: usize) -> usize {
    text.lines().map(|line| rows_of_line(line, per_row)).sum()
}

fn rows_of_line(line: &str, per_row: usize) -> usize {
    line.chars().count().div_ceil(per_row).max(1)
}

/// Returns the length of the first rows of a text, in bytes.
pub(super) fn first_rows_bytes(text: &str, rows: usize, per_row: usize) -> usize {
    let shown = text.split_inclusive('\n').try_fold((0, rows), |(bytes, left), line| {
        let taken = rows_of_line(line.trim_end_matches(['\n', '\r']), per_row);
        match taken <= left {
            true => ControlFlow::Continue((bytes + line.len(), left - taken)),
            false => {
                let held = line.char_indices().nth(left.saturating_mul(per_row)).map_or(line.len(), |(at, _)| at);
                ControlFlow::Break(bytes + held)
            }
        }
    });
    match shown {
        ControlFlow::Continue((bytes, _)) | ControlFlow::Break(bytes) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_long_lines_count() {
        let text = "abcdef\n\nöö\nabcde\n";
        assert_eq!(row_count(text, 4), 6);
        assert_eq!(row_count("", 4), 0);
        let first = |rows| &text[..first_rows_bytes(text, rows, 4)];
        assert_eq!(first(0), "");
        assert_eq!(first(1), "abcd");
        assert_eq!(first(2), "abcdef\n");
        assert_eq!(first(4), "abcdef\n\nöö\n");
        assert_eq!(first(5), "abcdef\n\nöö\nabcd");
        assert_eq!(first(usize::MAX), text);
    }
}
