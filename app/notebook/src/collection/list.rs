//! The list view of a collection: a line for each file, or one for each of its properties.

use super::{CollectionContext, CollectionPage, TableLine, cell};
use crate::actions::PageAction;
use collection::{CollectionCell, CollectionRow, CollectionTable};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, Sense, Ui, pos2, vec2};
use std::sync::Arc;
use ui::text::shown_name;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Height of a line.
const LIST_ROW_HEIGHT: f32 = 28.0;
/// Indentation of text after its bullet.
const LIST_TEXT_INDENT: f32 = space::XL;

impl CollectionPage {
    pub(super) fn show_list(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>, table: &Arc<CollectionTable>) {
        let area = ui.available_rect_before_wrap();
        let Some(view) = scene.base.views.get(self.view).cloned() else { return };
        let below = if view.nested { table.columns.len().saturating_sub(1) } else { 0 };
        #[allow(clippy::cast_precision_loss, reason = "a few columns")]
        let high = LIST_ROW_HEIGHT * (1 + below) as f32;
        let height =
            |line: &TableLine| if matches!(line, TableLine::Group(_)) { LIST_ROW_HEIGHT + space::S } else { high };
        let lines = self.lines.clone();
        let all: f32 = lines.iter().map(height).sum();
        (self.high, self.wide) = (area.top() - ui.max_rect().top() + all + space::L, 0.0);
        self.focused = false;
        let mut inner = ui::layout::part(ui, "list", area, area);
        let scroll = egui::ScrollArea::vertical().id_salt(("list", self.view)).auto_shrink(false);
        scroll.show_viewport(&mut inner, |ui, seen| {
            ui.set_min_size(vec2(area.width(), all + space::L));
            let origin = ui.max_rect().min + vec2(space::L, space::S);
            let (mut y, mut number) = (0.0, 0);
            for line in &lines {
                let top = y;
                y += height(line);
                number = if matches!(line, TableLine::Group(_)) { 0 } else { number + 1 };
                if y < seen.top() || top > seen.bottom() {
                    continue;
                }
                let size = vec2(area.width() - 2.0 * space::L, y - top);
                let rect = Rect::from_min_size(origin + vec2(0.0, top), size);
                match line {
                    TableLine::Group(group) => {
                        self.card_group(ui, table, rect.with_min_y(rect.bottom() - LIST_ROW_HEIGHT), *group)
                    }
                    TableLine::Row(row) => {
                        let Some(row) = table.rows.get(*row) else { continue };
                        let mark = match view.markers.as_str() {
                            "none" => String::new(),
                            "number" | "numbers" => format!("{number}."),
                            _ => "•".to_owned(),
                        };
                        item(ui, scene, table, row, rect, &mark, (view.nested, &view.separator));
                    }
                }
            }
        });
    }
}

fn item(
    ui: &Ui,
    scene: &mut CollectionContext<'_>,
    table: &CollectionTable,
    row: &CollectionRow,
    rect: Rect,
    mark: &str,
    (nested, separator): (bool, &str),
) {
    let colours = ThemeColors::of(ui);
    let id = ui.scope_id().with(("item", row.file));
    let response = ui.interact(rect, id, Sense::click());
    let name = shown_name(row.path.rsplit('/').next().unwrap_or(&row.path));
    set_accessible_name(&response, Role::Link, &format!("Item {name}"));
    if response.hovered() {
        ui.painter().rect_filled(rect.expand2(vec2(space::S, 0.0)), CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    let style = theme::small();
    let first = rect.with_max_y(rect.top() + LIST_ROW_HEIGHT);
    paint_clipped_text(
        ui,
        pos2(first.left() + space::XS, first.center().y - 10.0),
        LIST_TEXT_INDENT,
        mark,
        &style,
        colours.muted,
    );
    let left = if mark.is_empty() { rect.left() } else { rect.left() + LIST_TEXT_INDENT };
    let mut line = WordFlow { x: left, rect: first, id };
    let shown = table.columns.iter().zip(&row.cells);
    for (place, (column, cell)) in shown.enumerate() {
        if nested && place > 0 {
            #[allow(clippy::cast_precision_loss, reason = "a few columns")]
            let rect = first.translate(vec2(0.0, LIST_ROW_HEIGHT * place as f32));
            line = WordFlow { x: left + LIST_TEXT_INDENT, rect, id };
            line.words(ui, &format!("{}  ", column.title), colours.muted);
        } else if place > 0 && !cell.to_text().is_empty() {
            line.words(ui, separator, colours.muted);
        }
        line.cell(ui, scene, place, cell);
    }
    let words = |(column, cell): (&collection::CollectionColumn, &CollectionCell)| {
        let shown = cell.to_text();
        (!shown.is_empty() && column.name != "file.name").then(|| format!("{}: {shown}", column.title))
    };
    let all: Vec<String> = table.columns.iter().zip(&row.cells).filter_map(words).collect();
    if !all.is_empty() {
        let label = ui.interact(first.with_min_x(rect.right()), id.with("words"), Sense::hover());
        set_accessible_name(&label, Role::Label, &format!("{name}, {}", all.join(", ")));
    }
    let beside = response.middle_clicked() || ui.input(|input| input.modifiers.command);
    if response.clicked() || response.middle_clicked() {
        scene.actions.push(match (scene.is_note(row), beside) {
            (true, true) => PageAction::OpenBeside(row.file),
            (true, false) => PageAction::Open(row.file),
            (false, _) => PageAction::Follow(row.path.clone()),
        });
    }
}

/// Lays out words one after another on a line.
struct WordFlow {
    x: f32,
    rect: Rect,
    pub id: egui::Id,
}

impl WordFlow {
    fn words(&mut self, ui: &Ui, words: &str, colour: egui::Color32) {
        let room = self.rect.right() - self.x;
        if room > 0.0 {
            let at = pos2(self.x, self.rect.center().y - 10.0);
            self.x += paint_clipped_text(ui, at, room, words, &theme::small(), colour);
        }
    }

    fn cell(&mut self, ui: &Ui, scene: &mut CollectionContext<'_>, place: usize, cell: &CollectionCell) {
        let items = match cell {
            CollectionCell::Empty => &[],
            CollectionCell::List(items) => items.as_slice(),
            other => std::slice::from_ref(other),
        };
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.words(ui, ", ", ThemeColors::of(ui).muted);
            }
            if self.x + space::M < self.rect.right() {
                self.x += cell::link(ui, scene, self.x, self.rect, self.id.with((place, at)), item, false);
            }
        }
    }
}
