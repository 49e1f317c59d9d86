//! The menu behind a slash: on an empty line it offers what can stand there, to those who do not know the marks.

use crate::AppWindow;
use editor::editor_keys::KeyOutcome;
use editor::note_editor::{EditTarget, Editor};
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Area, Id, Key, Modifiers, Order, Rect, Sense, pos2, vec2};
use ui::fuzzy::FuzzyCandidate;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{floating_frame, set_accessible_name};

/// How high and wide a line of the menu is.
const SLASH_ROW_HEIGHT: f32 = 32.0;
const SLASH_MENU_WIDTH: f32 = 280.0;
/// Lines that are shown at once.
const MAX_VISIBLE_SLASH_ROWS: usize = 8;

/// Something that can stand on a line: what it is called, its marks, and what is written, the caret at `|`.
struct SlashEntry {
    icon: &'static str,
    title: &'static str,
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

/// The menu while it is open.
#[derive(Default)]
pub(crate) struct SlashMenu {
    chosen: usize,
    filter: String,
}

impl SlashMenu {
    /// The entries that fit what is typed behind the slash.
    fn entries(&self) -> Vec<&'static SlashEntry> {
        let query: Vec<char> = self.filter.to_lowercase().chars().filter(|letter| !letter.is_whitespace()).collect();
        let mut hits: Vec<(i32, &SlashEntry)> = SLASH_ENTRIES
            .iter()
            .filter_map(|entry| Some((FuzzyCandidate::new(entry.title).match_query(&query)?.score, entry)))
            .collect();
        hits.sort_by_key(|(score, _)| -score);
        hits.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// What stands behind a slash that begins an otherwise empty line, with the caret behind it.
fn filter(editor: &Editor, target: &EditTarget) -> Option<String> {
    let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty())?;
    let fits = matches!(target.kind, RowKind::Paragraph | RowKind::Blank);
    let words = target.shown.strip_prefix('/').filter(|words| fits && !words.contains('\n') && words.len() < 24)?;
    (target.shown_byte(caret.at) == target.shown.len()).then(|| words.to_owned())
}

/// The text of an entry, and where in it the caret goes.
fn written(entry: &SlashEntry) -> (String, usize) {
    if entry.text.is_empty() {
        let today = host::clock::today().to_string();
        let caret = today.len();
        return (today, caret);
    }
    // A table has bars of its own; its caret is the first one that stands alone.
    let at = if entry.text.starts_with("| |") { 2 } else { entry.text.find('|').unwrap_or(entry.text.len()) };
    let mut text = entry.text.to_owned();
    if at < text.len() {
        text.remove(at);
    }
    (text, at)
}

impl AppWindow {
    /// Opens the menu behind a slash that was just typed, and closes it where it no longer fits.
    pub(crate) fn sync_slash(&mut self, ctx: &egui::Context, typed: bool) {
        if self.slash.is_none() && !typed {
            return;
        }
        let dark = ctx.global_style().visuals.dark_mode;
        let words = self.with_note(ctx, dark, |world, editor, _| {
            let target = editor.edit_target(world)?;
            filter(editor, &target)
        });
        match words.flatten() {
            Some(words) if typed || self.slash.is_some() => {
                let slash = self.slash.get_or_insert_default();
                if slash.filter != words {
                    *slash = SlashMenu { chosen: 0, filter: words };
                }
                if slash.entries().is_empty() {
                    self.slash = None;
                }
            }
            _ => self.slash = None,
        }
    }

    /// Keys while the menu is open.
    pub(crate) fn slash_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        // A key of this very frame may have changed what is typed.
        self.sync_slash(ctx, false);
        let Some(slash) = self.slash.as_mut().filter(|_| modifiers.is_none()) else { return false };
        let count = slash.entries().len().max(1);
        match key {
            Key::ArrowDown => slash.chosen = (slash.chosen + 1) % count,
            Key::ArrowUp => slash.chosen = (slash.chosen + count - 1) % count,
            Key::Escape => self.slash = None,
            Key::Enter | Key::Tab => self.write_entry(ctx),
            _ => return false,
        }
        ctx.request_repaint();
        true
    }

    /// Writes what is chosen in place of the slash and what is behind it.
    fn write_entry(&mut self, ctx: &egui::Context) {
        let Some(slash) = self.slash.take() else { return };
        let Some(entry) = slash.entries().get(slash.chosen).copied() else { return };
        let (text, caret) = written(entry);
        self.write(
            ctx,
            |editor, world| match editor.edit_target(world) {
                Some(target) => KeyOutcome::edit(target.replace(0..target.shown.len(), &text, caret)),
                None => KeyOutcome::Not,
            },
            false,
        );
    }

    /// Draws the menu below the caret.
    pub(crate) fn slash_menu(&mut self, ctx: &egui::Context) {
        self.sync_slash(ctx, false);
        let (Some(slash), Some(caret)) = (&mut self.slash, self.active_pane.editor.seen) else { return };
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ThemeColors::for_dark_mode(dark);
        let entries = slash.entries();
        #[allow(clippy::cast_precision_loss, reason = "a count of lines")]
        let height = entries.len().min(MAX_VISIBLE_SLASH_ROWS) as f32 * SLASH_ROW_HEIGHT + space::S;
        let below = caret.bottom() + space::XS;
        let top = if below + height > ctx.content_rect().bottom() { caret.top() - height - space::XS } else { below };
        let first = (slash.chosen + 1).saturating_sub(MAX_VISIBLE_SLASH_ROWS);
        let mut clicked = None;
        Area::new(Id::unique("slash")).order(Order::Foreground).fixed_pos(pos2(caret.left(), top)).show(ctx, |ui| {
            floating_frame(colours, dark).inner_margin(egui::Margin::same(4)).show(ui, |ui| {
                ui.set_width(SLASH_MENU_WIDTH);
                ui.spacing_mut().item_spacing.y = 0.0;
                for (index, entry) in entries.iter().enumerate().skip(first).take(MAX_VISIBLE_SLASH_ROWS) {
                    let (rect, response) = ui.allocate_exact_size(
                        vec2(SLASH_MENU_WIDTH, SLASH_ROW_HEIGHT),
                        Sense::click() - Sense::FOCUSABLE,
                    );
                    set_accessible_name(&response, Role::MenuItem, entry.title);
                    if index == slash.chosen {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                    } else if response.hovered() {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.raised));
                    }
                    line(ui, rect, entry, colours);
                    if response.clicked() {
                        clicked = Some(index);
                    }
                }
            });
        });
        if let Some(index) = clicked {
            slash.chosen = index;
            self.write_entry(ctx);
        }
    }
}

fn line(ui: &egui::Ui, rect: Rect, entry: &SlashEntry, colours: &ThemeColors) {
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
