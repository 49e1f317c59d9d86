//! Edits that begin something in a note that lacks it: its first heading, its first cell.

use crate::note_editor::NoteEdit;
use text::outline::{byte_order_mark_len, front_matter_range};

fn line_ending(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Returns the edit that adds a heading above a note's text, with its words selected.
pub fn first_heading(text: &str, name: &str) -> NoteEdit {
    let newline = line_ending(text);
    let at = front_matter_range(text).map_or(byte_order_mark_len(text), |front| {
        text[front.end..].find('\n').map_or(text.len(), |end| front.end + end + 1)
    });
    let before = if text[..at].ends_with('\n') || at == byte_order_mark_len(text) { "" } else { newline };
    let anchor = at + before.len() + "# ".len();
    let insert = format!("{before}# {name}{newline}{newline}");
    NoteEdit { at, delete: 0, insert, caret: anchor + name.len(), anchor }
}

/// Returns the edit that adds an empty Python cell at the end of a note, with the caret in it.
pub fn last_cell(text: &str) -> NoteEdit {
    let newline = line_ending(text);
    let gap = match (text.is_empty(), text.ends_with('\n')) {
        (true, _) => String::new(),
        (false, true) => newline.to_owned(),
        (false, false) => newline.repeat(2),
    };
    let caret = text.len() + gap.len() + "```python".len() + newline.len();
    let insert = format!("{gap}```python{newline}{newline}```{newline}");
    NoteEdit { at: text.len(), delete: 0, insert, caret, anchor: caret }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text after an edit, with `|` at both ends of the selection.
    fn edited(text: &str, edit: &NoteEdit) -> String {
        let mut all = text.to_owned();
        all.insert_str(edit.at, &edit.insert);
        all.insert(edit.caret, '|');
        all.insert(edit.anchor, '|');
        all
    }

    #[test]
    fn a_heading_stands_below_the_properties() {
        let heading = |text: &str| edited(text, &first_heading(text, "Rain"));
        assert_eq!(heading(""), "# |Rain|\n\n");
        assert_eq!(heading("text\n"), "# |Rain|\n\ntext\n");
        assert_eq!(heading("---\na: 1\n---\ntext"), "---\na: 1\n---\n# |Rain|\n\ntext");
        assert_eq!(heading("---\na: 1\n---"), "---\na: 1\n---\n# |Rain|\n\n");
        assert_eq!(heading("\u{feff}text\r\n"), "\u{feff}# |Rain|\r\n\r\ntext\r\n");
    }

    #[test]
    fn a_cell_stands_at_the_end() {
        let cell = |text: &str| edited(text, &last_cell(text));
        assert_eq!(cell(""), "```python\n||\n```\n");
        assert_eq!(cell("text"), "text\n\n```python\n||\n```\n");
        assert_eq!(cell("text\n"), "text\n\n```python\n||\n```\n");
        assert_eq!(cell("text\r\n"), "text\r\n\r\n```python\r\n||\r\n```\r\n");
    }
}
