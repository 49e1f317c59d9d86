//! The slash menu, which offers blocks and formatting on an empty line.

use crate::handlers::note_actions;
use editor::note_editor::{EditTarget, Editor};
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::{Align2, Rect, pos2};
use host::fs::user_texts::UserSnippet;
use std::borrow::Cow;
use ui::fuzzy::FuzzyCandidate;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};

/// Size of a row in the menu, in points.
pub(crate) const SLASH_ROW_HEIGHT: f32 = 32.0;
pub(crate) const SLASH_MENU_WIDTH: f32 = 280.0;
/// Maximum number of visible rows.
pub(crate) const MAX_VISIBLE_SLASH_ROWS: usize = 8;

/// An entry: title, keywords, and the inserted text with the caret at `|`.
#[derive(Clone)]
pub(crate) struct SlashEntry {
    icon: &'static str,
    pub(crate) title: Cow<'static, str>,
    hint: &'static str,
    text: Cow<'static, str>,
}

const fn entry(icon: &'static str, title: &'static str, hint: &'static str, text: &'static str) -> SlashEntry {
    SlashEntry { icon, title: Cow::Borrowed(title), hint, text: Cow::Borrowed(text) }
}

const SLASH_ENTRIES: &[SlashEntry] = &[
    entry("H1", "Heading 1", "#", "# |"),
    entry("H2", "Heading 2", "##", "## |"),
    entry("H3", "Heading 3", "###", "### |"),
    entry(icons::LIST_BULLETS, "List", "-", "- |"),
    entry(icons::LIST, "Numbered list", "1.", "1. |"),
    entry(icons::CHECK, "Task", "- [ ]", "- [ ] |"),
    entry(icons::CHAT, "Quote", ">", "> |"),
    entry(icons::INFO, "Callout", "> [!note]", "> [!note] |\n> "),
    entry(icons::PLAY, "Python cell", "```python", "```python\n|\n```"),
    entry(icons::CODE, "Code", "```", "```|\n\n```"),
    entry(icons::TABLE, "Table", "| |", "| |    |     |\n| --- | --- |\n|     |     |"),
    entry(
        icons::COLUMNS,
        "Collection",
        "```base",
        "```base\nfilters: file.inFolder(\"|\")\nviews:\n  - type: table\n    name: Table\n    order:\n      \
               - file.name\n```",
    ),
    entry(icons::LINK, "Link to a note", "[[ ]]", "[[|]]"),
    entry(icons::MINUS, "Rule", "---", "---\n\n|"),
    entry(icons::CLOCK, "Date of today", "", ""),
];

/// State of the open menu.
#[derive(Default)]
pub(crate) struct SlashMenu {
    pub(crate) chosen: usize,
    pub(crate) filter: String,
    /// The user's snippets, as entries.
    pub(crate) snippets: Vec<SlashEntry>,
}

/// Place in a snippet where the caret goes.
const CURSOR_PLACE: &str = "{{cursor}}";
/// Hint beside snippets.
const SNIPPET_HINT: &str = "snippet";

/// Id of the list's area.
pub(crate) fn slash_list() -> egui::Id {
    egui::Id::unique("slash")
}

impl SlashMenu {
    /// Creates the menu with the user's snippets beside its own entries.
    pub(crate) fn new(filter: String, snippets: &[UserSnippet]) -> SlashMenu {
        let entry = |snippet: &UserSnippet| SlashEntry {
            icon: icons::NOTE,
            title: Cow::Owned(snippet.name.clone()),
            hint: SNIPPET_HINT,
            text: Cow::Owned(snippet.text.clone()),
        };
        SlashMenu { chosen: 0, filter, snippets: snippets.iter().map(entry).collect() }
    }

    /// Returns the entries that match the text after the slash, best match first.
    pub(crate) fn entries(&self) -> Vec<&SlashEntry> {
        let query: Vec<char> = self.filter.to_lowercase().chars().filter(|letter| !letter.is_whitespace()).collect();
        let mut hits: Vec<(i32, &SlashEntry)> = SLASH_ENTRIES
            .iter()
            .chain(&self.snippets)
            .filter_map(|entry| Some((FuzzyCandidate::new(&entry.title).match_query(&query)?.score, entry)))
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

/// Returns the text of an entry, and the caret's offset in it. `title` is that of the note.
pub(crate) fn written(entry: &SlashEntry, title: &str) -> (String, usize) {
    if entry.hint == SNIPPET_HINT {
        let text = note_actions::filled(entry.text.trim_end_matches('\n'), title, &jiff::Zoned::now());
        let caret = text.find(CURSOR_PLACE).unwrap_or(text.len());
        return (text.replacen(CURSOR_PLACE, "", 1), caret);
    }
    if entry.text.is_empty() {
        let today = host::clock::today().to_string();
        let caret = today.len();
        return (today, caret);
    }
    // Tables contain `|` themselves. In a table entry, the caret is at the first one that stands alone.
    let at = if entry.text.starts_with("| |") { 2 } else { entry.text.find('|').unwrap_or(entry.text.len()) };
    let mut text = entry.text.to_string();
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
    painter.text(at, Align2::LEFT_CENTER, &entry.title, theme::small().font, colours.ink);
    let at = pos2(rect.right() - space::S, y);
    painter.text(at, Align2::RIGHT_CENTER, entry.hint, theme::code().font, colours.muted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_place_for_the_caret() {
        for entry in SLASH_ENTRIES {
            let (text, caret) = written(entry, "");
            assert!(text.is_char_boundary(caret), "{}", entry.title);
        }
        assert_eq!(written(&SLASH_ENTRIES[8], ""), ("```python\n\n```".to_owned(), 10));
        assert_eq!(written(&SLASH_ENTRIES[10], "").1, 2);
        let slash = SlashMenu::new("tab".to_owned(), &[]);
        assert_eq!(slash.entries()[0].title, "Table");
        let sign = UserSnippet { name: "Signature".to_owned(), text: "-- {{cursor}} in {{title}}\n".to_owned() };
        let slash = SlashMenu::new("signat".to_owned(), &[sign]);
        assert_eq!(written(slash.entries()[0], "Log"), ("--  in Log".to_owned(), 3));
    }
}
