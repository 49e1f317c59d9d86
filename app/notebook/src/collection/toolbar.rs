//! The toolbar above a collection: its views, the number of notes, and controls for filters, sorting and groups.

use super::cell::tool_button;
use super::query_worker::CollectionAnswer;
use super::{CollectionContext, CollectionPage};
use crate::actions::{CollectionEdit, PageAction};
use collection::{CollectionCell, CollectionChange, strip_note_prefix};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Popup, PopupCloseBehavior, Rect, Sense, Stroke, Ui, WidgetInfo, pos2, vec2};
use std::collections::BTreeSet;
use text::untrusted_text;
use ui::icons;
use ui::menus::{MENU_WIDTH, menu_below, menu_choice, menu_item};
use ui::theme::{self, CONTROL_CORNER, InterCut, ThemeColors, size, space};
use ui::widgets::{check_box, icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name};

/// A filter condition being edited.
#[derive(Default)]
pub(super) struct FilterDraft {
    property: String,
    sign: usize,
    value: String,
    /// The condition being edited: its view or all, index, and text.
    edited: Option<(Option<usize>, usize, String)>,
    name: Option<String>,
}

/// Maximum height of a list in a menu, in points.
const MAX_MENU_HEIGHT: f32 = 420.0;

/// Comparison operators: label and syntax.
const FILTER_OPERATORS: [(&str, &str); 12] = [
    ("is", "{p} == {v}"),
    ("is not", "{p} != {v}"),
    ("contains", "{p}.contains({v})"),
    ("does not contain", "!{p}.contains({v})"),
    ("is empty", "{p}.isEmpty()"),
    ("is not empty", "!{p}.isEmpty()"),
    ("is more than", "{p} > {v}"),
    ("is at least", "{p} >= {v}"),
    ("is less than", "{p} < {v}"),
    ("is at most", "{p} <= {v}"),
    ("has the tag", "file.hasTag({v})"),
    ("is in the folder", "file.inFolder({v})"),
];

impl FilterDraft {
    fn condition(&self) -> Option<String> {
        let (_, form) = FILTER_OPERATORS.get(self.sign)?;
        let property = if self.property.is_empty() { "file.name" } else { &self.property };
        let simple = |name: &str| {
            let letters = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.');
            name.chars().all(letters) && !name.starts_with(|first: char| first.is_ascii_digit())
        };
        let property = if simple(property) { property.to_owned() } else { format!("note[{}]", quoted(property)) };
        let value = self.value.trim();
        if value.is_empty() && form.contains("{v}") {
            return None;
        }
        let number = value.parse::<f64>().is_ok() || matches!(value, "true" | "false");
        let link = value.strip_prefix("[[").and_then(|value| value.strip_suffix("]]"));
        let value = match link {
            Some(link) => format!("link({})", quoted(link)),
            None if number && !form.contains("contains") => value.to_owned(),
            None => quoted(value),
        };
        Some(form.replace("{p}", &property).replace("{v}", &value))
    }
}

/// Returns the condition that a property has this value, or none; `None` if that can't be a condition.
pub(super) fn value_condition(property: &str, value: &CollectionCell) -> Option<String> {
    let (sign, value) = match value {
        CollectionCell::Empty => (4, String::new()),
        CollectionCell::Check(is_set) => (0, is_set.to_string()),
        CollectionCell::Text(_) | CollectionCell::Date(_) | CollectionCell::Number(_) => (0, value.to_text()),
        CollectionCell::Link { .. } | CollectionCell::List(_) => return None,
    };
    FilterDraft { property: property.to_owned(), sign, value, ..FilterDraft::default() }.condition()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl CollectionPage {
    pub(super) fn show_toolbar(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>, answer: &CollectionAnswer) {
        let colours = ThemeColors::of(ui);
        let (rect, _) =
            ui.allocate_exact_size(vec2(ui.available_width(), size::TOOLBAR_HEIGHT + space::S), Sense::hover());
        let line = Stroke::new(1.0, colours.line);
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, line);
        // If there's little space, buttons show only icons.
        self.compact = rect.width() < 900.0;
        let tools = if self.compact { 300.0 } else { 580.0_f32 }.min(rect.width() * 0.7);
        let left = rect.with_max_x(rect.right() - tools);
        self.views(ui, scene, left);
        let right = Rect::from_min_max(pos2(rect.right() - tools, rect.top() + space::S), rect.max);
        let layout = egui::Layout::right_to_left(egui::Align::Min);
        let mut ui = ui.new_child(egui::UiBuilder::new().max_rect(right.shrink2(vec2(space::S, 0.0))).layout(layout));
        ui.set_clip_rect(rect.intersect(ui.clip_rect()));
        ui.spacing_mut().item_spacing.x = 2.0;
        self.new_button(&mut ui, scene);
        self.more(&mut ui, scene);
        self.columns_button(&mut ui, scene);
        self.group_button(&mut ui, scene);
        self.sort_button(&mut ui, scene);
        self.filter_button(&mut ui, scene);
        if let Some(table) = &answer.table {
            let (rows, all) = (table.rows.len(), table.all);
            let words = match rows {
                _ if rows < all => format!("{rows} of {all} results"),
                1 => "1 result".to_owned(),
                rows => format!("{rows} results"),
            };
            let galley = ui.painter().layout_no_wrap(words.clone(), theme::caption().font, colours.muted);
            let wanted = vec2(galley.size().x + 2.0 * space::S, size::MIN_CLICK_HEIGHT);
            if ui.available_width() >= wanted.x {
                let (at, response) = ui.allocate_exact_size(wanted, Sense::hover());
                ui.painter().galley(pos2(at.left() + space::S, at.center().y - 8.0), galley, colours.muted);
                set_accessible_name(&response, Role::Status, &words);
            }
        }
    }

    pub(super) fn said<'w>(&self, words: &'w str) -> &'w str {
        if self.compact { "" } else { words }
    }

    /// Draws the views as tabs.
    fn views(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>, rect: Rect) {
        let colours = ThemeColors::of(ui);
        let base = scene.base.clone();
        let mut x = rect.left() + space::S;
        let ui = &mut ui::layout::part(ui, "views", rect, rect);
        let rest = base.views.len();
        for (place, view) in base.views.iter().enumerate() {
            let active = place == self.view;
            let cut = if active { InterCut::SemiBold } else { InterCut::Regular };
            let style = theme::TypeStyle { font: theme::inter_font(cut, 13.0), line: 20.0 };
            let name = if view.name.is_empty() { "View" } else { view.name.as_str() };
            let galley = ui.painter().layout_no_wrap(
                untrusted_text::escape_line(name).into_owned(),
                style.font.clone(),
                colours.ink,
            );
            let wide = (galley.size().x + 20.0 + 2.0 * space::S).min(200.0);
            // Views that don't fit are listed in a menu.
            if x + wide + 72.0 > rect.right() && place + 1 < rest && !active {
                break;
            }
            let at = Rect::from_min_size(pos2(x, rect.top() + space::S), vec2(wide, rect.height() - space::S));
            let response = ui.interact(at, ui.scope_id().with(("view", place)), Sense::click());
            response.widget_info(|| WidgetInfo::selected(Role::Tab, true, active, untrusted_text::escape_line(name)));
            if response.hovered() && !active {
                ui.painter().rect_filled(
                    at.with_max_y(at.bottom() - space::S),
                    CONTROL_CORNER,
                    colours.hover_color(colours.paper),
                );
            }
            let colour = if active { colours.ink } else { colours.muted };
            let icon = match view.kind.as_str() {
                "cards" => icons::IMAGE,
                "list" => icons::LIST_BULLETS,
                _ => icons::TABLE,
            };
            let middle = at.top() + 14.0;
            ui.painter().text(
                pos2(x + space::S + 7.0, middle),
                Align2::CENTER_CENTER,
                icon,
                theme::icon_font(14.0),
                colour,
            );
            let text = pos2(x + space::S + 20.0, middle - 10.0);
            paint_clipped_text(ui, text, wide - 20.0 - 2.0 * space::S, name, &style, colour);
            if active {
                let mark = Rect::from_min_max(pos2(at.left(), at.bottom() - 2.0), at.max);
                ui.painter().rect_filled(mark, 0.0, colours.accent);
            }
            paint_focus_ring(ui, &response, CONTROL_CORNER);
            if response.clicked() {
                self.show_view(place);
            }
            x += wide + space::XS;
        }
        let at = Rect::from_min_size(pos2(x, rect.top() + space::S), vec2(72.0, size::MIN_CLICK_HEIGHT));
        let mut child =
            ui.new_child(egui::UiBuilder::new().max_rect(at).layout(egui::Layout::left_to_right(egui::Align::Min)));
        if rest > 1 {
            let more = tool_button(&mut child, icons::CARET_DOWN, "", "All views", false);
            menu_below(&more, "All views", |ui| {
                for (place, view) in base.views.iter().enumerate() {
                    if menu_choice(ui, &view.name, place == self.view) {
                        self.show_view(place);
                    }
                }
            });
        }
        if tool_button(&mut child, icons::PLUS, "", "New view", false).clicked() {
            scene.change(&CollectionChange::AddView(self.view));
            self.view = rest;
            self.show_view(rest);
        }
    }

    pub(super) fn show_view(&mut self, view: usize) {
        self.view = view;
        self.chosen = None;
        self.editing = None;
        self.stretched = None;
        self.draft = FilterDraft::default();
        self.folded.clear();
    }

    /// Returns all properties that could be a column; current columns come first.
    fn properties(scene: &CollectionContext<'_>, shown: &[String]) -> Vec<String> {
        let mut all: Vec<String> = shown.to_vec();
        let known =
            |all: &[String], name: &str| all.iter().any(|one| strip_note_prefix(one) == strip_note_prefix(name));
        let mut seen: BTreeSet<String> = BTreeSet::new();
        if let Some(volume) = scene.session.volume(scene.source.note.volume) {
            // Of a very large number of notes, a sample is enough.
            for (_, outline) in volume.links.outlines().take(2_000) {
                seen.extend(outline.properties.keys().cloned());
            }
        }
        let formulas = scene.base.formulas().map(|name| format!("formula.{name}"));
        let files = ["name", "folder", "tags", "links", "backlinks", "mtime", "size", "ext", "path"];
        let rest = formulas.chain(files.iter().map(|name| format!("file.{name}"))).chain(seen);
        for name in rest.collect::<Vec<_>>() {
            if !known(&all, &name) {
                all.push(name);
            }
        }
        all
    }

    fn columns_button(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>) {
        let button = tool_button(ui, icons::COLUMNS, self.said("Columns"), "Columns", false);
        let Some(shown) = scene.base.views.get(self.view).map(|view| view.columns.clone()) else { return };
        menu(&button, 240.0, |ui| {
            for name in CollectionPage::properties(scene, &shown) {
                let mut on = shown.contains(&name);
                if check_box(ui, &mut on, untrusted_text::escape_line(&scene.base.property_title(&name))).changed() {
                    let mut columns = shown.clone();
                    if on {
                        columns.push(name)
                    } else {
                        columns.retain(|one| *one != name)
                    }
                    scene.change(&CollectionChange::Columns(self.view, columns));
                }
            }
        });
    }

    fn group_button(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>) {
        let Some(view) = scene.base.views.get(self.view).cloned() else { return };
        let button = tool_button(ui, icons::LIST_BULLETS, self.said("Group"), "Group", view.group.is_some());
        menu_below(&button, "Group", |ui| {
            egui::ScrollArea::vertical().max_height(MAX_MENU_HEIGHT).show(ui, |ui| {
                if menu_choice(ui, "No groups", view.group.is_none()) {
                    scene.change(&CollectionChange::Group(self.view, None));
                }
                for name in CollectionPage::properties(scene, &view.columns) {
                    let group = view.group.as_ref();
                    let on = group.is_some_and(|(group, _)| strip_note_prefix(group) == strip_note_prefix(&name));
                    if menu_choice(ui, &scene.base.property_title(&name), on) {
                        let down = on && group.is_some_and(|(_, down)| !down);
                        scene.change(&CollectionChange::Group(self.view, Some((name, down))));
                    }
                }
            });
        });
    }

    fn sort_button(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>) {
        let Some(view) = scene.base.views.get(self.view).cloned() else { return };
        let button = tool_button(ui, icons::SORT, self.said("Sort"), "Sort", !view.sort.is_empty());
        menu(&button, 300.0, |ui| {
            let mut sort = view.sort.clone();
            let mut changed = false;
            for (place, (name, down)) in view.sort.iter().enumerate() {
                ui.horizontal(|ui| {
                    ui.label(untrusted_text::escape_line(&scene.base.property_title(name)).into_owned());
                    let words = if *down { "Descending" } else { "Ascending" };
                    let turn = ui.button(words);
                    let what = format!("Reverse the order of {}", scene.base.property_title(name));
                    set_accessible_name(&turn, Role::Button, &what);
                    if turn.clicked() {
                        sort[place].1 = !down;
                        changed = true;
                    }
                    let gone = format!("Don't sort by {}", scene.base.property_title(name));
                    if icon_button(ui, icons::X, &gone, None).clicked() {
                        sort.remove(place);
                        changed = true;
                    }
                });
                if changed {
                    break;
                }
            }
            if !view.sort.is_empty() {
                ui.separator();
            }
            ui.menu_button("Sort by…", |ui| {
                egui::ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
                    for name in CollectionPage::properties(scene, &view.columns) {
                        let known = sort.iter().any(|(one, _)| strip_note_prefix(one) == strip_note_prefix(&name));
                        if !known && ui.button(untrusted_text::escape_line(&scene.base.property_title(&name))).clicked()
                        {
                            sort.push((name, false));
                            changed = true;
                        }
                    }
                });
            });
            if changed {
                scene.change(&CollectionChange::Sort(self.view, sort));
            }
        });
    }

    fn filter_button(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>) {
        let own = scene.base.conditions(Some(self.view));
        let all = scene.base.conditions(None);
        let count = own.all.len() + all.all.len();
        let words = if count == 0 { "Filter".to_owned() } else { format!("Filter {count}") };
        let button = tool_button(ui, icons::FUNNEL, self.said(&words), "Filter", count > 0);
        menu(&button, 420.0, |ui| {
            for (title, view, conditions) in [("All views", None, all), ("This view", Some(self.view), own)] {
                ui.strong(title);
                let how = match conditions.word.as_str() {
                    "or" => "Any of these applies:",
                    "not" => "None of these apply:",
                    _ => "All of these apply:",
                };
                if conditions.all.is_empty() {
                    ui.weak("No conditions.");
                } else {
                    ui.weak(how);
                }
                for (place, (text, simple)) in conditions.all.iter().enumerate() {
                    self.condition(ui, scene, view, place, text, *simple);
                }
                ui.add_space(space::XS);
            }
            ui.separator();
            self.new_condition(ui, scene);
        });
    }

    fn condition(
        &mut self,
        ui: &mut Ui,
        scene: &mut CollectionContext<'_>,
        view: Option<usize>,
        place: usize,
        text: &str,
        simple: bool,
    ) {
        ui.horizontal(|ui| {
            let edited = self.draft.edited.as_ref().is_some_and(|(of, at, _)| (*of, *at) == (view, place));
            if edited && let Some((_, _, draft)) = &mut self.draft.edited {
                let field = egui::TextEdit::singleline(draft).id_salt(("condition", place)).font(theme::code().font);
                let response = ui.add(field.desired_width(340.0)).accessible_name("Condition");
                if response.lost_focus() {
                    if *draft != text && ui.input(|input| !input.key_pressed(egui::Key::Escape)) {
                        let change = CollectionChange::SetCondition(view, place, draft.clone());
                        scene.change(&change);
                    }
                    self.draft.edited = None;
                } else if !response.has_focus() {
                    response.request_focus();
                }
                return;
            }
            let words = egui::RichText::new(untrusted_text::escape_line(text)).font(theme::code().font);
            let label = ui.add_enabled(simple, egui::Button::new(words).frame(false).truncate());
            set_accessible_name(&label, Role::Button, &format!("Edit the condition {text}"));
            if label.clicked() {
                self.draft.edited = Some((view, place, text.to_owned()));
            }
            if icon_button(ui, icons::X, &format!("Remove the condition {text}"), None).clicked() {
                scene.change(&CollectionChange::RemoveCondition(view, place));
            }
        });
    }

    fn new_condition(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>) {
        let columns = scene.base.views.get(self.view).map(|view| view.columns.clone()).unwrap_or_default();
        let of_file = FILTER_OPERATORS.get(self.draft.sign).is_some_and(|(_, form)| !form.contains("{p}"));
        ui.horizontal(|ui| {
            if !of_file {
                let shown = if self.draft.property.is_empty() { "file.name" } else { &self.draft.property };
                let title = untrusted_text::escape_line(&scene.base.property_title(shown)).into_owned();
                let picked =
                    egui::ComboBox::from_id_salt("property").selected_text(title).width(120.0).show_ui(ui, |ui| {
                        for name in CollectionPage::properties(scene, &columns) {
                            let title = untrusted_text::escape_line(&scene.base.property_title(&name)).into_owned();
                            ui.selectable_value(&mut self.draft.property, name, title);
                        }
                    });
                set_accessible_name(&picked.response, Role::ComboBox, "Property");
            }
            let sign = FILTER_OPERATORS.get(self.draft.sign).map_or("is", |(words, _)| *words);
            let picked = egui::ComboBox::from_id_salt("sign").selected_text(sign).width(120.0).show_ui(ui, |ui| {
                for (place, (words, _)) in FILTER_OPERATORS.iter().enumerate() {
                    ui.selectable_value(&mut self.draft.sign, place, *words);
                }
            });
            set_accessible_name(&picked.response, Role::ComboBox, "Comparison");
            let wants = FILTER_OPERATORS.get(self.draft.sign).is_some_and(|(_, form)| form.contains("{v}"));
            let mut enter = false;
            if wants {
                let field = egui::TextEdit::singleline(&mut self.draft.value).id_salt("value").hint_text("value");
                let response = ui.add(field.desired_width(100.0)).accessible_name("Value");
                enter = response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
            }
            let condition = self.draft.condition();
            let add = ui.add_enabled(condition.is_some(), egui::Button::new("Add"));
            set_accessible_name(&add, Role::Button, "Add the condition");
            if let Some(condition) = condition.filter(|_| add.clicked() || enter) {
                scene.change(&CollectionChange::AddCondition(Some(self.view), condition));
                self.draft.value.clear();
            }
        });
    }

    fn more(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>) {
        let Some(view) = scene.base.views.get(self.view).cloned() else { return };
        let button = tool_button(ui, icons::MORE, "", "More of this view", false);
        let shown = menu(&button, MENU_WIDTH, |ui| {
            let name = self.draft.name.get_or_insert_with(|| view.name.clone());
            ui.weak("Name of the view");
            let response = ui.add(egui::TextEdit::singleline(name).id_salt("name")).accessible_name("Name of the view");
            if response.lost_focus() && *name != view.name && !name.trim().is_empty() {
                let change = CollectionChange::Name(self.view, name.trim().to_owned());
                scene.change(&change);
            }
            ui.separator();
            for (kind, words) in [("table", "Table"), ("cards", "Cards"), ("list", "List")] {
                if menu_choice(ui, words, view.kind == kind) {
                    scene.change(&CollectionChange::Kind(self.view, kind.to_owned()));
                }
            }
            ui.separator();
            for (limit, words) in [(None, "All results"), (Some(20), "First 20"), (Some(100), "First 100")] {
                if menu_choice(ui, words, view.limit == limit) {
                    scene.change(&CollectionChange::Limit(self.view, limit));
                }
            }
            ui.separator();
            if menu_item(ui, "Remove view", None, true) {
                scene.change(&CollectionChange::RemoveView(self.view));
            }
            let source = scene.source;
            let (words, action) = match (source.inside, source.part) {
                (None, _) => ("Show source", PageAction::Collection(source.this(), CollectionEdit::Text)),
                (Some(_), None) => ("Open collection", PageAction::Open(source.note.id)),
                (Some(_), Some((_, start))) => ("Edit source", PageAction::Place(start)),
            };
            if menu_item(ui, words, None, true) {
                scene.actions.push(action);
            }
        });
        if !shown {
            self.draft.name = None;
        }
    }
}

/// Draws a button's popup, which stays open until the user clicks elsewhere. Returns whether it's open.
fn menu(button: &egui::Response, width: f32, content: impl FnOnce(&mut Ui)) -> bool {
    let close = PopupCloseBehavior::CloseOnClickOutside;
    let shown = Popup::menu(button).close_behavior(close).width(width).show(|ui| {
        ui.set_min_width(width);
        egui::ScrollArea::vertical().max_height(MAX_MENU_HEIGHT).show(ui, content);
    });
    shown.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_as_it_is_meant() {
        let made = |property: &str, sign: usize, value: &str| {
            FilterDraft { property: property.to_owned(), sign, value: value.to_owned(), ..FilterDraft::default() }
                .condition()
        };
        assert_eq!(made("rating", 6, "7").as_deref(), Some("rating > 7"));
        assert_eq!(made("", 2, "a \"b\"").as_deref(), Some("file.name.contains(\"a \\\"b\\\"\")"));
        assert_eq!(made("my key", 4, "").as_deref(), Some("note[\"my key\"].isEmpty()"));
        assert_eq!(made("categories", 2, "[[Books]]").as_deref(), Some("categories.contains(link(\"Books\"))"));
        assert_eq!(made("x", 10, "#a").as_deref(), Some("file.hasTag(\"#a\")"));
        assert_eq!(made("x", 0, " "), None);
    }
}
