//! JSON outputs as a tree with collapsible branches.

use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Align2, Pos2, Rect, Sense, Ui, pos2, vec2};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use text::untrusted_text;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{format, paint_focus_ring, set_accessible_name};

/// Number of entries of a branch that are shown at first, and added each time.
const BRANCH_PAGE_ENTRIES: usize = 100;
/// Maximum number of values of a tree that is initially expanded.
const MAX_AUTO_OPEN_VALUES: usize = 40;
/// Maximum number of lines shown.
const MAX_JSON_TREE_ROWS: usize = 5_000;
/// Maximum number of characters shown of a value.
const MAX_JSON_VALUE_CHARS: usize = 300;

/// Height of a line.
const JSON_ROW_HEIGHT: f32 = theme::size::MIN_CLICK_HEIGHT;

/// A JSON tree, and its expanded branches.
pub(super) struct JsonTree {
    value: Value,
    lines: Vec<JsonTreeRow>,
    /// Expanded branches, as paths of indices from the root.
    open: HashSet<Vec<usize>>,
    /// Number of entries shown of long branches.
    shown: HashMap<Vec<usize>, usize>,
}

struct JsonTreeRow {
    place: Vec<usize>,
    key: Option<String>,
    text: String,
    what: JsonNodeKind,
}

#[derive(Clone, Copy, PartialEq)]
enum JsonNodeKind {
    Branch { open: bool },
    Text,
    Number,
    Word,
    More,
}

impl JsonTree {
    pub(super) fn new(value: Value) -> JsonTree {
        let mut tree = JsonTree { value, lines: Vec::new(), open: HashSet::new(), shown: HashMap::new() };
        tree.open.insert(Vec::new());
        if count(&tree.value, MAX_AUTO_OPEN_VALUES) < MAX_AUTO_OPEN_VALUES {
            let mut places = vec![Vec::new()];
            while let Some(place) = places.pop() {
                if let Some(branch) = at(&tree.value, &place) {
                    places.extend((0..length(branch)).map(|child| [place.as_slice(), &[child]].concat()));
                }
                tree.open.insert(place);
            }
        }
        tree.rebuild_rows();
        tree
    }

    #[allow(clippy::cast_precision_loss, reason = "at most some thousand lines")]
    pub(super) fn height(&self) -> f32 {
        self.lines.len() as f32 * JSON_ROW_HEIGHT
    }

    fn rebuild_rows(&mut self) {
        let mut lines = Vec::new();
        self.branch(None, &self.value, Vec::new(), &mut lines);
        self.lines = lines;
    }

    fn branch(&self, key: Option<String>, value: &Value, place: Vec<usize>, lines: &mut Vec<JsonTreeRow>) {
        if lines.len() >= MAX_JSON_TREE_ROWS {
            return;
        }
        let open = self.open.contains(&place);
        let (text, what) = match value {
            Value::Object(entries) => (counted(entries.len(), "key", "keys"), JsonNodeKind::Branch { open }),
            Value::Array(entries) => (counted(entries.len(), "item", "items"), JsonNodeKind::Branch { open }),
            Value::String(text) => {
                let cut: String = text.chars().take(MAX_JSON_VALUE_CHARS).collect();
                let more = if cut.len() < text.len() { "…" } else { "" };
                (format!("{}{more}", Value::from(cut)), JsonNodeKind::Text)
            }
            Value::Number(number) => (number.to_string(), JsonNodeKind::Number),
            Value::Bool(_) | Value::Null => (value.to_string(), JsonNodeKind::Word),
        };
        lines.push(JsonTreeRow { place: place.clone(), key, text, what });
        if !open {
            return;
        }
        let shown = self.shown.get(&place).copied().unwrap_or(BRANCH_PAGE_ENTRIES);
        let child = |number: usize| [place.as_slice(), &[number]].concat();
        match value {
            Value::Object(entries) => {
                for (number, (key, value)) in entries.iter().enumerate().take(shown) {
                    self.branch(Some(key.clone()), value, child(number), lines);
                }
            }
            Value::Array(entries) => {
                for (number, value) in entries.iter().enumerate().take(shown) {
                    self.branch(Some(number.to_string()), value, child(number), lines);
                }
            }
            _ => return,
        }
        let left = length(value).saturating_sub(shown);
        if left > 0 && lines.len() < MAX_JSON_TREE_ROWS {
            lines.push(JsonTreeRow {
                place: child(shown),
                key: None,
                text: format!("{left} more"),
                what: JsonNodeKind::More,
            });
        }
    }

    fn turn(&mut self, line: usize) {
        let Some(JsonTreeRow { place, what, .. }) = self.lines.get(line) else { return };
        let mut place = place.clone();
        match what {
            JsonNodeKind::Branch { open: true } => _ = self.open.remove(&place),
            JsonNodeKind::Branch { open: false } => _ = self.open.insert(place),
            JsonNodeKind::More => {
                place.pop();
                *self.shown.entry(place).or_insert(BRANCH_PAGE_ENTRIES) += 10 * BRANCH_PAGE_ENTRIES;
            }
            JsonNodeKind::Text | JsonNodeKind::Number | JsonNodeKind::Word => return,
        }
        self.rebuild_rows();
    }

    /// Draws the tree. Returns whether its height has changed.
    pub(super) fn show(&mut self, ui: &Ui, id: egui::Id, origin: Pos2, width: f32) -> bool {
        let colours = ThemeColors::of(ui);
        let style = theme::code();
        let mut turned = None;
        for (number, line) in self.lines.iter().enumerate() {
            #[allow(clippy::cast_precision_loss, reason = "at most some thousand lines")]
            let top = origin.y + number as f32 * JSON_ROW_HEIGHT;
            let rect = Rect::from_min_size(pos2(origin.x, top), vec2(width, JSON_ROW_HEIGHT));
            if !ui.is_rect_visible(rect) {
                continue;
            }
            #[allow(clippy::cast_precision_loss, reason = "a depth that JSON may have")]
            let left = rect.left() + line.place.len().min(40) as f32 * space::L;
            let turns = matches!(line.what, JsonNodeKind::Branch { .. } | JsonNodeKind::More);
            let mut job = LayoutJob::default();
            if let Some(key) = &line.key {
                job.append(
                    &untrusted_text::escape_line(&format!("{key}: ")),
                    0.0,
                    format(style.font.clone(), JSON_ROW_HEIGHT, colours.muted),
                );
            }
            let colour = match line.what {
                JsonNodeKind::Branch { .. } => colours.muted,
                JsonNodeKind::More => colours.accent,
                JsonNodeKind::Text => colours.ok,
                JsonNodeKind::Number => colours.tool,
                JsonNodeKind::Word => colours.thought,
            };
            job.append(
                &untrusted_text::escape_line(&line.text),
                0.0,
                format(style.font.clone(), JSON_ROW_HEIGHT, colour),
            );
            job.wrap = egui::text::TextWrapping::truncate_at_width((rect.right() - left - space::L).max(space::XL));
            let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
            let sense = if turns { Sense::click() } else { Sense::hover() };
            let response = ui.interact(rect, id.with(&line.place), sense);
            let said = line.key.as_ref().map_or_else(|| line.text.clone(), |key| format!("{key}: {}", line.text));
            set_accessible_name(&response, if turns { Role::Button } else { Role::Label }, &said);
            if turns && response.hovered() {
                ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
            }
            if let JsonNodeKind::Branch { open } = line.what {
                ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(open));
                let icon = if open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
                let at = pos2(left + space::S - 2.0, rect.center().y);
                ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(12.0), colours.muted);
            }
            ui.painter().galley(pos2(left + space::L, rect.top()), galley, colours.ink);
            paint_focus_ring(ui, &response, CONTROL_CORNER);
            if response.clicked() {
                turned = Some(number);
            }
        }
        turned.map(|line| self.turn(line)).is_some()
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

fn length(value: &Value) -> usize {
    match value {
        Value::Object(entries) => entries.len(),
        Value::Array(entries) => entries.len(),
        _ => 0,
    }
}

fn at<'a>(value: &'a Value, place: &[usize]) -> Option<&'a Value> {
    place.iter().try_fold(value, |value, child| match value {
        Value::Object(entries) => entries.values().nth(*child),
        Value::Array(entries) => entries.get(*child),
        _ => None,
    })
}

/// Counts values, up to `most`.
fn count(value: &Value, most: usize) -> usize {
    let mut found = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop().filter(|_| found < most) {
        found += 1;
        match value {
            Value::Object(entries) => open.extend(entries.values().take(most)),
            Value::Array(entries) => open.extend(entries.iter().take(most)),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::JsonTree;
    use serde_json::json;

    fn lines(tree: &JsonTree) -> Vec<String> {
        let key = |key: &Option<String>| key.as_ref().map_or_else(String::new, |key| format!("{key}: "));
        tree.lines
            .iter()
            .map(|line| format!("{}{}{}", "  ".repeat(line.place.len()), key(&line.key), line.text))
            .collect()
    }

    #[test]
    fn branches_are_opened_and_closed() {
        let mut tree = JsonTree::new(json!({"a": [1, null], "b": {"c": "x\n"}}));
        let all = ["2 keys", "  a: 2 items", "    0: 1", "    1: null", "  b: 1 key", "    c: \"x\\n\""];
        assert_eq!(lines(&tree), all);
        tree.turn(1);
        assert_eq!(lines(&tree), ["2 keys", "  a: 2 items", "  b: 1 key", "    c: \"x\\n\""]);
        tree.turn(1);
        assert_eq!(lines(&tree), all);
        tree.turn(2);
        assert_eq!(lines(&tree), all, "a number has nothing to open");
    }

    #[test]
    fn large_ones_begin_closed_and_come_in_parts() {
        let mut tree = JsonTree::new(json!({"many": (0..1_500).collect::<Vec<u32>>(), "long": "é".repeat(1_000)}));
        assert_eq!(tree.lines.len(), 3);
        assert!(lines(&tree).iter().any(|line| line.ends_with("é\"…")), "{:?}", lines(&tree));
        let many = tree.lines.iter().position(|line| line.key.as_deref() == Some("many")).expect("a branch");
        tree.turn(many);
        assert_eq!(tree.lines.iter().filter(|line| line.text.ends_with(" more")).count(), 1);
        let more = tree.lines.iter().position(|line| line.text == "1400 more").expect("a line");
        tree.turn(more);
        assert!(tree.lines.iter().any(|line| line.text == "400 more"));
    }
}
