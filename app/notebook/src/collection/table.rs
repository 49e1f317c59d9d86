//! The table view of a collection: visible rows, a fixed header, resizable columns, and a cell selection that is moved
//! with the keyboard.

use super::cell::{self, CellEditOutcome, text_of};
use super::toolbar::value_condition;
use super::{CellEditor, CollectionContext, CollectionPage, TableLine};
use crate::actions::PageAction;
use collection::{CollectionCell, CollectionChange, CollectionColumn, CollectionRow, CollectionTable, SUMMARY_NAMES};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, CursorIcon, EventFilter, Id, Key, Modifiers, Rect, Sense, Stroke, Ui, pos2, vec2};
use std::sync::Arc;
use text::properties::PropertyKind;
use text::untrusted_text;
use ui::icons;
use ui::menus::{context_menu, menu_item, menu_separator};
use ui::text::shown_name;
use ui::theme::{self, CONTROL_CORNER, InterCut, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Height of a row.
const TABLE_ROW_HEIGHT: f32 = 32.0;
/// Width of a column's resize handle.
const COLUMN_RESIZE_HANDLE_WIDTH: f32 = 8.0;
/// Minimum width of a column.
const MIN_COLLECTION_COLUMN_WIDTH: f32 = 48.0;

fn width(column: &CollectionColumn, first: bool) -> f32 {
    column.width.unwrap_or(match column.kind {
        _ if first => 240.0,
        PropertyKind::Number => 104.0,
        PropertyKind::Date => 120.0,
        PropertyKind::Check(_) => 88.0,
        PropertyKind::List => 200.0,
        PropertyKind::Text | PropertyKind::Link | PropertyKind::Nested => 176.0,
    })
}

/// Returns how far a key moves the selection to the right and down: arrows, pages, ends.
fn step(key: Key, page: isize) -> Option<(isize, isize)> {
    Some(match key {
        Key::ArrowLeft => (-1, 0),
        Key::ArrowRight => (1, 0),
        Key::ArrowUp => (0, -1),
        Key::ArrowDown => (0, 1),
        Key::PageUp => (0, -page),
        Key::PageDown => (0, page),
        Key::Home => (isize::MIN, 0),
        Key::End => (isize::MAX, 0),
        _ => return None,
    })
}

impl CollectionPage {
    pub(super) fn show_table(&mut self, ui: &mut Ui, scene: &mut CollectionContext<'_>, table: &Arc<CollectionTable>) {
        let colours = ThemeColors::of(ui);
        let area = ui.available_rect_before_wrap();
        let summed = table.columns.iter().any(|column| column.summary.is_some());
        let head = area.with_max_y(area.top() + TABLE_ROW_HEIGHT);
        let foot = if summed { TABLE_ROW_HEIGHT } else { 0.0 };
        let body = Rect::from_min_max(pos2(area.left(), head.bottom()), pos2(area.right(), area.bottom() - foot));
        let mut x = 0.0;
        let spans: Vec<(f32, f32)> = table
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| {
                let stretched = self.stretched.as_ref().filter(|(name, _)| *name == column.name);
                let wide = stretched.map_or_else(|| width(column, place == 0), |(_, wide)| *wide);
                let span = (x, wide);
                x += wide;
                span
            })
            .collect();
        let wide = x + 2.0 * space::L;
        // A page leaves space below the last row; a note has its own.
        let tail = if scene.source.inside.is_some() { 0.0 } else { space::XL };
        #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
        let lines = self.lines.len() as f32 * TABLE_ROW_HEIGHT + tail;
        let bar = if wide > area.width() + 0.5 { space::M } else { 0.0 };
        (self.high, self.wide) = (body.top() - ui.max_rect().top() + lines + foot + bar, wide);
        let grid = ui.scope_id().with("grid");
        // Placed behind the cells: a click next to them also takes the focus.
        let ground = ui.interact(body, grid, Sense::click());
        self.keys(ui, scene, table, grid, body);
        let mut scroll = egui::ScrollArea::both().id_salt(("rows", self.view)).auto_shrink(false);
        if std::mem::take(&mut self.reveal)
            && let Some((line, column)) = self.chosen
        {
            let offset = self.offset;
            #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
            let top = line as f32 * TABLE_ROW_HEIGHT;
            let y = offset.y.clamp((top + TABLE_ROW_HEIGHT - body.height()).min(top), top);
            let (left, across) = spans.get(column).copied().unwrap_or((0.0, 0.0));
            let x = offset.x.clamp((left + across + space::XXL - body.width()).min(left), left);
            scroll = scroll.scroll_offset(vec2(x.max(0.0), y.max(0.0)));
        }
        let mut inner = ui::layout::part(ui, "rows", body, body);
        inner.spacing_mut().item_spacing = egui::Vec2::ZERO;
        let output = scroll.show_viewport(&mut inner, |ui, seen| {
            ui.set_min_size(vec2(wide.max(body.width()), lines));
            let origin = ui.max_rect().min;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lines in sight")]
            let (first, last) = (
                (seen.top() / TABLE_ROW_HEIGHT).max(0.0) as usize,
                (seen.bottom() / TABLE_ROW_HEIGHT).ceil().max(0.0) as usize,
            );
            for place in first..last.min(self.lines.len()) {
                #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
                let top = origin.y + place as f32 * TABLE_ROW_HEIGHT;
                let rect = Rect::from_min_size(pos2(origin.x, top), vec2(wide.max(body.width()), TABLE_ROW_HEIGHT));
                match self.lines[place] {
                    TableLine::Group(group) => self.group(ui, table, rect, seen.left(), group),
                    TableLine::Row(row) => self.cells(ui, scene, table, rect, place, row, &spans, grid),
                }
            }
        });
        self.offset = output.state.clamped_offset();
        let shift = self.offset.x;
        self.head(ui, scene, table, head, &spans, shift);
        if summed {
            let foot = Rect::from_min_max(pos2(area.left(), body.bottom()), area.max);
            sums(ui, table, foot, &spans, shift);
        }
        // For egui, Enter on the grid is a click; here it starts editing.
        if ground.clicked() && self.editing.is_none() {
            ground.request_focus();
        }
        self.focused = ground.has_focus() || self.editing.is_some();
        paint_focus_ring(ui, &ground, egui::CornerRadius::ZERO);
        let name = scene.base.views.get(self.view).map_or("Table", |view| view.name.as_str());
        let rows = table.rows.len();
        ground.widget_info(|| {
            egui::WidgetInfo::labeled(Role::Grid, true, untrusted_text::escape_line(&format!("{name}, {rows} rows")))
        });
        if let Some((line, column)) = self.chosen.filter(|_| ground.has_focus()) {
            let active = grid.with((line, column));
            ui.ctx().accesskit_node_builder(grid, |node| node.set_active_descendant(active.accesskit_id()));
        }
        ui.painter().hline(area.x_range(), head.bottom() - 0.5, Stroke::new(1.0, colours.line));
    }

    fn group(&mut self, ui: &Ui, table: &CollectionTable, rect: Rect, shift: f32, group: usize) {
        let colours = ThemeColors::of(ui);
        let Some((name, count)) = table.groups.get(group) else { return };
        let id = ui.scope_id().with(("group", group));
        let response = ui.interact(rect, id, Sense::click());
        let open = !self.folded.contains(name);
        let words = if name.is_empty() { "Without a value" } else { name.as_str() };
        response.widget_info(|| {
            egui::WidgetInfo::labeled(Role::Heading, true, untrusted_text::escape_line(&format!("{words}: {count}")))
        });
        ui.ctx().accesskit_node_builder(id, |node| node.set_expanded(open));
        if response.hovered() {
            ui.painter().rect_filled(rect, 0.0, colours.hover_color(colours.paper));
        }
        let left = rect.left() + shift + space::L;
        let icon = if open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
        let at = pos2(left + 6.0, rect.center().y);
        ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(12.0), colours.muted);
        let style = theme::TypeStyle { font: theme::inter_font(InterCut::SemiBold, 13.0), line: 20.0 };
        let at = pos2(left + space::L + space::XS, rect.center().y - 10.0);
        let wide = paint_clipped_text(ui, at, 480.0, words, &style, colours.ink);
        let count = count.to_string();
        paint_clipped_text(
            ui,
            pos2(at.x + wide + space::S, at.y + 2.0),
            80.0,
            &count,
            &theme::caption(),
            colours.muted,
        );
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        if response.clicked() {
            self.fold(&name.clone());
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one row of a table")]
    fn cells(
        &mut self,
        ui: &mut Ui,
        scene: &mut CollectionContext<'_>,
        table: &CollectionTable,
        rect: Rect,
        line: usize,
        row: usize,
        spans: &[(f32, f32)],
        grid: Id,
    ) {
        let colours = ThemeColors::of(ui);
        let Some(row) = table.rows.get(row) else { return };
        let over = ui.rect_contains_pointer(rect);
        if over {
            ui.painter().rect_filled(rect, 0.0, colours.hover_color(colours.paper).gamma_multiply(0.6));
        }
        // In a note, the last row ends at the rounded edge of the collection.
        if line + 1 < self.lines.len() || scene.source.inside.is_none() {
            ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
        }
        let name = shown_name(row.path.rsplit('/').next().unwrap_or(&row.path));
        let clip = ui.clip_rect();
        for (place, (column, cell)) in table.columns.iter().zip(&row.cells).enumerate() {
            let (x, wide) = spans.get(place).copied().unwrap_or((0.0, 0.0));
            let at = Rect::from_min_size(pos2(rect.left() + space::L + x, rect.top()), vec2(wide, TABLE_ROW_HEIGHT));
            if at.right() < clip.left() || at.left() > clip.right() {
                continue;
            }
            let id = grid.with((line, place));
            let response = ui.interact(at, id, Sense::click() - Sense::FOCUSABLE);
            let label = || match (&column.name[..], cell.to_text()) {
                ("file.name", words) => format!("Cell of {words}"),
                (_, words) if words.is_empty() => format!("{} of {name}: empty", column.title),
                (_, words) => format!("{} of {name}: {words}", column.title),
            };
            response
                .widget_info(|| egui::WidgetInfo::labeled(Role::GridCell, true, untrusted_text::escape_line(&label())));
            let own = column.editable_property().is_some() || column.name == "file.name";
            let edited =
                self.editing.as_ref().is_some_and(|editing| editing.file == row.file && editing.column == column.name);
            if edited {
                let painter = Rect::from_min_size(at.min, vec2(at.width(), TABLE_ROW_HEIGHT));
                self.edit(ui, scene, table, painter, grid, column, (line, place), &label());
                continue;
            }
            cell::draw(ui, scene, at, id, cell, own);
            if self.chosen == Some((line, place)) {
                let stroke = Stroke::new(1.5, colours.accent);
                ui.painter().rect_stroke(at.shrink(1.0), CONTROL_CORNER, stroke, egui::StrokeKind::Inside);
            }
            self.value_menu(&response, scene, table, (row, column), cell);
            if response.clicked() || response.double_clicked() {
                self.chosen = Some((line, place));
                ui.memory_mut(|memory| memory.request_focus(grid));
                let square = Rect::from_center_size(pos2(at.left() + 16.0, at.center().y), vec2(24.0, 24.0));
                let on_box = response.interact_pointer_pos().is_some_and(|pos| square.contains(pos));
                if response.double_clicked() || (on_box && matches!(cell, CollectionCell::Check(_))) {
                    self.begin(scene, table, None);
                }
            }
        }
    }

    /// Shows the menu of a value.
    fn value_menu(
        &self,
        response: &egui::Response,
        scene: &mut CollectionContext<'_>,
        table: &CollectionTable,
        (row, column): (&CollectionRow, &CollectionColumn),
        cell: &CollectionCell,
    ) {
        context_menu(response, "Value menu", |ui| {
            if menu_item(ui, "Copy value", None, true) {
                ui.ctx().copy_text(cell.to_text());
            }
            if menu_item(ui, "Copy row", None, true) {
                let values: Vec<String> =
                    row.cells.iter().map(|cell| cell.to_text().replace(['\t', '\n'], " ")).collect();
                ui.ctx().copy_text(values.join("\t"));
            }
            // Facts about files and formulas are shown in another form than conditions compare.
            let condition = column.editable_property().and_then(|_| value_condition(&column.name, cell));
            if let Some(condition) = condition
                && menu_item(ui, "Filter by value", None, true)
            {
                scene.change(&CollectionChange::AddCondition(Some(self.view), condition));
            }
            let own = table.columns.first().is_some_and(|first| first.name == column.name);
            if own && menu_item(ui, "Open in a new tab", None, true) {
                scene.actions.push(PageAction::OpenBeside(row.file));
            }
        });
    }

    #[allow(clippy::too_many_arguments, reason = "one cell of a table")]
    fn edit(
        &mut self,
        ui: &mut Ui,
        scene: &mut CollectionContext<'_>,
        table: &CollectionTable,
        rect: Rect,
        grid: Id,
        column: &CollectionColumn,
        place: (usize, usize),
        label: &str,
    ) {
        let Some(editing) = &mut self.editing else { return };
        let kind = kind_of(column, &scene.property(editing.file, column.editable_property().unwrap_or("")));
        let mut inner = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt("editing"));
        match editing.show(&mut inner, rect, grid, kind, label) {
            CellEditOutcome::Not => return,
            CellEditOutcome::Left => {}
            CellEditOutcome::Is(value, (right, down)) => {
                let key = column.editable_property().unwrap_or(&column.name);
                if text_of(&scene.property(editing.file, key)) != editing.text {
                    scene.set(editing.file, key, value);
                }
                self.chosen = Some(place);
                self.go(table, right, down);
            }
        }
        self.editing = None;
        ui.memory_mut(|memory| memory.request_focus(grid));
    }

    /// Starts editing the selected cell; a checkbox is toggled immediately. `typed`: text that replaces the value.
    fn begin(&mut self, scene: &mut CollectionContext<'_>, table: &CollectionTable, typed: Option<String>) {
        let Some((line, place)) = self.chosen else { return };
        let (Some(row), Some(column)) = (self.row(table, line), table.columns.get(place)) else { return };
        let Some(key) = column.editable_property() else {
            let words = match column.name.as_str() {
                "file.name" => return scene.actions.push(PageAction::Rename(row.file)),
                name if name.starts_with("formula.") => "This value comes from a formula and can't be edited.",
                _ => "This value describes the file and can't be edited.",
            };
            return scene.actions.push(PageAction::Say(words.to_owned()));
        };
        if !scene.is_note(row) {
            return scene.actions.push(PageAction::Say("Only notes have properties.".to_owned()));
        }
        let value = scene.property(row.file, key);
        match (row.cells.get(place), kind_of(column, &value)) {
            (Some(CollectionCell::Check(done)), _) => scene.set(row.file, key, Some((!done).into())),
            (_, PropertyKind::Check(_)) if value.is_null() => scene.set(row.file, key, Some(true.into())),
            _ if value.is_object() => {
                scene.actions.push(PageAction::Say("Properties inside properties are edited in the note.".to_owned()));
            }
            _ => {
                let by_typing = typed.is_some();
                let text = typed.unwrap_or_else(|| text_of(&value));
                let (file, column) = (row.file, column.name.clone());
                self.editing = Some(CellEditor { file, column, text, begun: false, typed: by_typing, trouble: None });
            }
        }
    }

    /// Moves the selected cell.
    fn go(&mut self, table: &CollectionTable, right: isize, down: isize) {
        let Some((line, column)) = self.chosen else { return };
        let last = table.columns.len().saturating_sub(1);
        let column = column.saturating_add_signed(right).min(last);
        let column = if right == isize::MAX { last } else { column };
        let mut to = line.saturating_add_signed(down).min(self.lines.len().saturating_sub(1));
        // Group headers are skipped.
        let forth = down >= 0;
        while matches!(self.lines.get(to), Some(TableLine::Group(_))) {
            match if forth { to.checked_add(1) } else { to.checked_sub(1) } {
                Some(next) if next < self.lines.len() => to = next,
                _ => {
                    to = line;
                    break;
                }
            }
        }
        self.chosen = Some((to, column));
        self.reveal = true;
    }

    /// Handles keys while no cell is edited.
    fn keys(&mut self, ui: &Ui, scene: &mut CollectionContext<'_>, table: &CollectionTable, grid: Id, body: Rect) {
        if !ui.memory(|memory| memory.has_focus(grid)) || self.editing.is_some() || !scene.is_here {
            return;
        }
        let filter = EventFilter { tab: false, horizontal_arrows: true, vertical_arrows: true, escape: true };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(grid, filter));
        if self.chosen.is_none() {
            let first = self.lines.iter().position(|line| matches!(line, TableLine::Row(_)));
            self.chosen = first.map(|first| (first, 0));
        }
        #[allow(clippy::cast_possible_truncation, reason = "rows in sight")]
        let page = ((body.height() / TABLE_ROW_HEIGHT) as isize - 1).max(1);
        let events = ui.input(|input| input.events.clone());
        for event in events {
            match event {
                egui::Event::Key { key, pressed: true, modifiers, .. } => {
                    if let Some((right, down)) = step(key, page).filter(|_| modifiers.is_none()) {
                        self.go(table, right, down);
                        continue;
                    }
                    self.key(ui, scene, table, key, modifiers);
                }
                // Text received in one frame counts as one input.
                egui::Event::Text(text) if self.editing.is_some() => {
                    if let Some(editing) = self.editing.as_mut().filter(|editing| editing.typed) {
                        editing.text.push_str(&text);
                    }
                }
                egui::Event::Text(text) if !text.trim().is_empty() => self.begin(scene, table, Some(text)),
                egui::Event::Copy => {
                    let cell = self.chosen.and_then(|(line, column)| self.row(table, line)?.cells.get(column));
                    if let Some(cell) = cell {
                        ui.ctx().copy_text(cell.to_text());
                    }
                }
                _ => {}
            }
        }
    }

    fn key(
        &mut self,
        ui: &Ui,
        scene: &mut CollectionContext<'_>,
        table: &CollectionTable,
        key: Key,
        modifiers: Modifiers,
    ) {
        let Some((line, column)) = self.chosen else { return };
        let Some(row) = self.row(table, line) else { return };
        let file = row.file;
        match key {
            Key::Enter if modifiers.command_only() => {
                let is_note = scene.is_note(row);
                let path = row.path.clone();
                scene.actions.push(if is_note { PageAction::Open(file) } else { PageAction::Follow(path) });
            }
            Key::Enter | Key::F2 if modifiers.is_none() => self.begin(scene, table, None),
            Key::Space if modifiers.is_none() && matches!(row.cells.get(column), Some(CollectionCell::Check(_))) => {
                self.begin(scene, table, None);
            }
            Key::Delete | Key::Backspace if modifiers.is_none() => {
                let key = table.columns.get(column).and_then(CollectionColumn::editable_property);
                if let Some(key) = key.filter(|_| scene.is_note(row))
                    && !scene.property(file, key).is_null()
                {
                    scene.set(file, key, Some(serde_json::Value::Null));
                }
            }
            Key::Home if modifiers.command_only() => self.go(table, 0, isize::MIN),
            Key::End if modifiers.command_only() => self.go(table, 0, isize::MAX),
            Key::Escape => {
                self.chosen = None;
                ui.memory_mut(|memory| memory.surrender_focus(ui.scope_id().with("grid")));
            }
            _ => {}
        }
    }

    /// Draws the header: a click sorts, dragging an edge resizes, and a menu has everything else.
    fn head(
        &mut self,
        ui: &mut Ui,
        scene: &mut CollectionContext<'_>,
        table: &CollectionTable,
        head: Rect,
        spans: &[(f32, f32)],
        shift: f32,
    ) {
        let colours = ThemeColors::of(ui);
        let painter = ui.painter().with_clip_rect(head.intersect(ui.clip_rect()));
        painter.rect_filled(head, 0.0, colours.paper);
        let ui = &mut ui::layout::part(ui, "head", head, head);
        let sort = scene.base.views.get(self.view).map(|view| view.sort.clone()).unwrap_or_default();
        for (place, column) in table.columns.iter().enumerate() {
            let (x, wide) = spans.get(place).copied().unwrap_or((0.0, 0.0));
            let at =
                Rect::from_min_size(pos2(head.left() + space::L + x - shift, head.top()), vec2(wide, TABLE_ROW_HEIGHT));
            if at.right() < head.left() || at.left() > head.right() {
                continue;
            }
            let id = ui.scope_id().with(("column", &column.name));
            let response = ui.interact(at, id, Sense::click());
            if response.hovered() {
                ui.painter().rect_filled(
                    at.shrink2(vec2(0.0, 2.0)),
                    CONTROL_CORNER,
                    colours.hover_color(colours.paper),
                );
            }
            let sorted = sort
                .iter()
                .find(|(name, _)| collection::strip_note_prefix(name) == collection::strip_note_prefix(&column.name));
            let arrow = sorted.map(|(_, down)| if *down { icons::CARET_DOWN } else { icons::CARET_UP });
            let room = wide - 2.0 * space::S - if arrow.is_some() { space::L } else { 0.0 };
            let style = theme::TypeStyle { font: theme::inter_font(InterCut::SemiBold, 12.0), line: 16.0 };
            let right = matches!(column.kind, PropertyKind::Number);
            let text = ui.painter().layout_no_wrap(
                untrusted_text::escape_line(&column.title).into_owned(),
                style.font.clone(),
                colours.muted,
            );
            let own = text.size().x.min(room);
            let left = if right { at.right() - space::S - own } else { at.left() + space::S };
            paint_clipped_text(ui, pos2(left, at.center().y - 8.0), room, &column.title, &style, colours.muted);
            if let Some(arrow) = arrow {
                let x = if right { left - 10.0 } else { left + own + 10.0 };
                let font = theme::icon_font(11.0);
                ui.painter().text(pos2(x, at.center().y), Align2::CENTER_CENTER, arrow, font, colours.accent);
            }
            paint_focus_ring(ui, &response, CONTROL_CORNER);
            let how = match sorted {
                Some((_, true)) => ", sorted from last to first",
                Some((_, false)) => ", sorted from first to last",
                None => "",
            };
            let said = untrusted_text::escape_line(&format!("{}{how}", column.title)).into_owned();
            response.widget_info(|| egui::WidgetInfo::labeled(Role::ColumnHeader, true, &said));
            if response.clicked() {
                let next = match sorted {
                    None => vec![(column.name.clone(), false)],
                    Some((name, false)) => vec![(name.clone(), true)],
                    Some((_, true)) => Vec::new(),
                };
                scene.change(&CollectionChange::Sort(self.view, next));
            }
            self.column_menu(&response, scene, table, place);
            self.stretch(ui, scene, column, at);
        }
    }

    /// Draws a column's edge, and resizes the column when it's dragged.
    fn stretch(&mut self, ui: &Ui, scene: &mut CollectionContext<'_>, column: &CollectionColumn, at: Rect) {
        let edge = Rect::from_x_y_ranges(
            at.right() - COLUMN_RESIZE_HANDLE_WIDTH / 2.0..=at.right() + COLUMN_RESIZE_HANDLE_WIDTH / 2.0,
            at.y_range(),
        );
        let id = ui.scope_id().with(("edge", &column.name));
        let response = ui.interact(edge, id, Sense::drag() - Sense::FOCUSABLE);
        set_accessible_name(&response, Role::Splitter, &format!("Edge of {}", column.title));
        if response.hovered() || response.dragged() {
            let stroke = Stroke::new(2.0, ThemeColors::of(ui).accent);
            ui.painter().vline(at.right() - 0.5, at.y_range().shrink(6.0), stroke);
            ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
        }
        if response.dragged()
            && let Some(pointer) = response.interact_pointer_pos()
        {
            let wide = (pointer.x - at.left()).round().clamp(MIN_COLLECTION_COLUMN_WIDTH, 1_200.0);
            self.stretched = Some((column.name.clone(), wide));
        }
        if response.drag_stopped()
            && let Some((name, wide)) = &self.stretched
        {
            scene.change(&CollectionChange::Width(self.view, name.clone(), *wide));
        }
        // Until the file has the new width.
        let settled = |(name, wide): &(String, f32)| *name == column.name && column.width == Some(*wide);
        if !response.dragged() && self.stretched.as_ref().is_some_and(settled) {
            self.stretched = None;
        }
    }

    fn column_menu(
        &self,
        response: &egui::Response,
        scene: &mut CollectionContext<'_>,
        table: &CollectionTable,
        place: usize,
    ) {
        let Some(column) = table.columns.get(place) else { return };
        let Some(view) = scene.base.views.get(self.view).cloned() else { return };
        context_menu(response, "Column menu", |ui| {
            let mut chosen = None;
            let mut item = |ui: &mut Ui, name: &str, change: CollectionChange| {
                if menu_item(ui, name, None, true) {
                    chosen = Some(change);
                }
            };
            let name = column.name.clone();
            item(ui, "Sort ascending", CollectionChange::Sort(self.view, vec![(name.clone(), false)]));
            item(ui, "Sort descending", CollectionChange::Sort(self.view, vec![(name.clone(), true)]));
            let grouped = view.group.as_ref().is_some_and(|(group, _)| *group == name);
            match grouped {
                true => item(ui, "Stop grouping", CollectionChange::Group(self.view, None)),
                false => item(ui, "Group by this", CollectionChange::Group(self.view, Some((name.clone(), false)))),
            }
            menu_separator(ui);
            ui.menu_button("Summary", |ui| {
                item(ui, "None", CollectionChange::Summary(self.view, name.clone(), None));
                for summary in SUMMARY_NAMES {
                    item(ui, summary, CollectionChange::Summary(self.view, name.clone(), Some(summary.to_owned())));
                }
            });
            menu_separator(ui);
            let mut columns = view.columns.clone();
            if place > 0 {
                columns.swap(place, place - 1);
                item(ui, "Move left", CollectionChange::Columns(self.view, columns.clone()));
                columns.swap(place, place - 1);
            }
            if place + 1 < columns.len() {
                columns.swap(place, place + 1);
                item(ui, "Move right", CollectionChange::Columns(self.view, columns.clone()));
                columns.swap(place, place + 1);
            }
            if columns.len() > 1 && place < columns.len() {
                columns.remove(place);
                item(ui, "Hide", CollectionChange::Columns(self.view, columns));
            }
            if let Some(change) = chosen {
                scene.change(&change);
                ui.close();
            }
        });
    }
}

/// Returns the editor for a cell: by its own value, or by the others in its column.
fn kind_of(column: &CollectionColumn, value: &serde_json::Value) -> PropertyKind {
    use serde_json::Value;
    match value {
        Value::Null => column.kind,
        Value::Bool(value) => PropertyKind::Check(*value),
        Value::Array(_) => PropertyKind::List,
        Value::Number(_) => PropertyKind::Number,
        Value::String(_) if matches!(column.kind, PropertyKind::Date | PropertyKind::Link) => column.kind,
        Value::String(_) => PropertyKind::Text,
        Value::Object(_) => PropertyKind::Nested,
    }
}

/// Draws the column summaries below the table.
fn sums(ui: &mut Ui, table: &CollectionTable, foot: Rect, spans: &[(f32, f32)], shift: f32) {
    let colours = ThemeColors::of(ui);
    let ui = &ui::layout::part(ui, "sums", foot, foot);
    ui.painter().rect_filled(foot, 0.0, colours.paper);
    ui.painter().hline(foot.x_range(), foot.top() + 0.5, Stroke::new(1.0, colours.line));
    for (column, (x, wide)) in table.columns.iter().zip(spans) {
        let Some((summary, value)) = &column.summary else { continue };
        let at =
            Rect::from_min_size(pos2(foot.left() + space::L + x - shift, foot.top()), vec2(*wide, TABLE_ROW_HEIGHT));
        let style = theme::caption();
        let values = theme::TypeStyle { font: theme::tabular_font(13.0), line: 20.0 };
        let wide_of = |words: &str, style: &theme::TypeStyle| {
            ui.painter()
                .layout_no_wrap(untrusted_text::escape_line(words).into_owned(), style.font.clone(), colours.ink)
                .size()
                .x
        };
        let room = wide - 2.0 * space::S;
        let value_wide = wide_of(value, &values).min(room);
        let word_wide = wide_of(summary, &style).min((room - value_wide - space::XS).max(0.0));
        // Aligned like the values: numbers to the right, everything else to the left.
        let left = match column.kind {
            PropertyKind::Number => at.right() - space::S - value_wide - space::XS - word_wide,
            _ => at.left() + space::S,
        };
        paint_clipped_text(ui, pos2(left, at.center().y - 7.0), word_wide + 0.5, summary, &style, colours.muted);
        let left = left + word_wide + space::XS;
        paint_clipped_text(ui, pos2(left, at.center().y - 10.0), value_wide + 0.5, value, &values, colours.ink);
        let response = ui.interact(at, ui.scope_id().with(("sum", &column.name)), Sense::hover());
        set_accessible_name(&response, Role::Label, &format!("{summary} of {}: {value}", column.title));
    }
}

impl CollectionPage {
    /// Draws the button that creates a note in this view.
    pub(super) fn new_button(&self, ui: &mut Ui, scene: &mut CollectionContext<'_>) {
        if cell::tool_button(ui, icons::PLUS, self.said("New"), "New note in this view", false).clicked() {
            scene.make(self.view);
        }
    }
}

/// Rows are tall enough to be clicked.
const _: () = assert!(TABLE_ROW_HEIGHT >= size::MIN_CLICK_HEIGHT);
