//! The slash menu, which offers blocks and formatting on an empty line.

use editor::note_editor::{EditTarget, Editor};
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::{Align2, Rect, pos2};
use ui::fuzzy::FuzzyCandidate;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};

/// Size of a row in the menu, in points.
pub(crate) const SLASH_ROW_HEIGHT: f32 = 32.0;
pub(crate) const SLASH_MENU_WIDTH: f32 = 280.0;
/// Maximum number of visible rows.
pub(crate) const MAX_VISIBLE_SLASH_ROWS: usize = 8;

/// An entry: title, keywords, and the inserted text with the caret at `|`.
pub(crate) struct SlashEntry {
    icon: &'static str,
    pub(crate) title: &'static str,
    hint: &'static str,
    text: &'static str,
}

const SLASH_ENTRIES: &[SlashEntry] = &[
    SlashEntry { icon: "H1", title: "Heading 1", hint: "#", text: "# |" },
    SlashEntry { icon: "H2", title: "Heading 2", hint: "##", text: "## |" },
    SlashEntry { icon: "H3", title: "Heading 3", hint: "###", text: "### |" },
    SlashEntry { icon: icons::LIST_BULLETS, title: "List", hint: "-", text: "- |" },
    SlashEntry { icon: icons::LIST, title: "Numbered list", hint: "1.", text: "1. |" },
    SlashEntry { icon: icons::CHECK, title: "Task", hint: "- [ ]", text: "- [ ] |" },
    SlashEntry { icon: icons::CHAT, title: "Quote", hint: ">", text: "> |" },
    SlashEntry { icon: icons::INFO, title: "Callout", hint: "> [!note]", text: "> [!note] |\n> " },
    SlashEntry { icon: icons::PLAY, title: "Python cell", hint: "```python", text: "```python\n|\n```" },
    SlashEntry { icon: icons::CODE, title: "Code", hint: "```", text: "```|\n\n```" },
    SlashEntry {
        icon: icons::TABLE,
        title: "Table",
        hint: "| |",
        text: "| |    |     |\n| --- | --- |\n|     |     |",
    },
    SlashEntry {
        icon: icons::COLUMNS,
        title: "Collection",
        hint: "```base",
        text: "```base\nfilters: file.inFolder(\"|\")\nviews:\n  - type: table\n    name: Table\n    order:\n      \
               - file.name\n```",
    },
    SlashEntry { icon: icons::LINK, title: "Link to a note", hint: "[[ ]]", text: "[[|]]" },
    SlashEntry { icon: icons::MINUS, title: "Rule", hint: "---", text: "---\n\n|" },
    SlashEntry { icon: icons::CLOCK, title: "Date of today", hint: "", text: "" },
];

/// State of the open menu.
#[derive(Default)]
pub(crate) struct SlashMenu {
    pub(crate) chosen: usize,
    pub(crate) filter: String,
}

/// Id of the list's area.
pub(crate) fn slash_list() -> egui::Id {
    egui::Id::unique("slash")
}

impl SlashMenu {
    /// Returns the entries that match the text after the slash, best match first.
    pub(crate) fn entries(&self) -> Vec<&'static SlashEntry> {
        let query: Vec<char> = self.filter.to_lowercase().chars().filter(|letter| !letter.is_whitespace()).collect();
        let mut hits: Vec<(i32, &SlashEntry)> = SLASH_ENTRIES
            .iter()
            .filter_map(|entry| Some((FuzzyCandidate::new(entry.title).match_query(&query)?.score, entry)))
            .collect();
        hits.sort_by_key(|(score, _)| -score);
        hits.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// Returns the text after a slash that starts an otherwise empty line, if the caret is at its end.
pub(crate) fn filter(editor: &Editor, target: &EditTarget) -> Option<String> {
    let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty())?;
    let fits = matches!(target.kind, RowKind::Paragraph | RowKind::Blank);
    let words = target.shown[line_start(target)..].strip_prefix('/').filter(|words| fits && words.len() < 24)?;
    (target.shown_byte(caret.at) == target.shown.len()).then(|| words.to_owned())
}

/// Returns the start of a row's last line, which contains the slash.
pub(crate) fn line_start(target: &EditTarget) -> usize {
    target.shown.rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the text of an entry, and the caret's offset in it.
pub(crate) fn written(entry: &SlashEntry) -> (String, usize) {
    if entry.text.is_empty() {
        let today = host::clock::today().to_string();
        let caret = today.len();
        return (today, caret);
    }
    // Tables contain `|` themselves. In a table entry, the caret is at the first one that stands alone.
    let at = if entry.text.starts_with("| |") { 2 } else { entry.text.find('|').unwrap_or(entry.text.len()) };
    let mut text = entry.text.to_owned();
    if at < text.len() {
        text.remove(at);
    }
    (text, at)
}

pub(crate) fn line(ui: &egui::Ui, rect: Rect, entry: &SlashEntry, colours: &ThemeColors) {
    let y = rect.center().y;
    let font = if entry.icon.is_ascii() {
        theme::inter_font(theme::InterCut::SemiBold, 12.0)
    } else {
        theme::icon_font(size::ICON_SIZE)
    };
    let painter = ui.painter();
    painter.text(pos2(rect.left() + space::L, y), Align2::CENTER_CENTER, entry.icon, font, colours.muted);
    let at = pos2(rect.left() + space::XXL, y);
    painter.text(at, Align2::LEFT_CENTER, entry.title, theme::small().font, colours.ink);
    let at = pos2(rect.right() - space::S, y);
    painter.text(at, Align2::RIGHT_CENTER, entry.hint, theme::code().font, colours.muted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_place_for_the_caret() {
        for entry in SLASH_ENTRIES {
            let (text, caret) = written(entry);
            assert!(text.is_char_boundary(caret), "{}", entry.title);
        }
        assert_eq!(written(&SLASH_ENTRIES[8]), ("```python\n\n```".to_owned(), 10));
        assert_eq!(written(&SLASH_ENTRIES[10]).1, 2);
        let slash = SlashMenu { chosen: 0, filter: "tab".to_owned() };
        assert_eq!(slash.entries()[0].title, "Table");
    }
}
