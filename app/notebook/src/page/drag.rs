//! Moves rows with the pointer: a handle at the left of the row under it, a line at the drop position, and one edit on
//! drop. A list item takes the items inside it along, and a collapsed heading takes its content. Over a tab or another
//! pane, rows go into the note there.

use super::{NotePage, PAGE_TOP_PADDING};
use crate::actions::{DraggedText, PageAction, RowDrag};
use editor::display_map::RowIndex;
use editor::markdown_keys::{is_item, item_rows, neighbor_rows, renumber_list, rows_byte_range};
use editor::note_editor::{Caret, EditContext, Editor, NoteEdit};
use editor::render::LIST_ITEM_INDENT;
use editor::row_splitter::{MarkdownRow, RowKind};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, CursorIcon, Pos2, Rect, Sense, Stroke, Ui, pos2, vec2};
use std::ops::Range;
use text::text_edit::{TextEdit, apply_edits};
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::set_accessible_name;

/// Distance of a drag handle's center from the column, and from rows that extend beyond it.
const DRAG_HANDLE_OFFSET: f32 = 36.0;
const WIDE_DRAG_HANDLE_OFFSET: f32 = 58.0;
/// Distance from the page's edge within which dragging scrolls the page.
const AUTO_SCROLL_EDGE: f32 = space::XXL;

/// A drop position between two rows.
#[derive(Clone, Copy)]
struct DropGap {
    /// The row below it; `None` if it's after the last row.
    below: Option<RowIndex>,
    pub at: Pos2,
}

/// A drag handle drawn in this frame.
pub(super) struct DragHandle {
    spot: RowIndex,
    rect: Rect,
    pressed: bool,
}

/// Draws the drag handle of a row while the pointer is near it.
pub(super) fn show_drag_handle(
    ui: &Ui,
    spot: RowIndex,
    row: &MarkdownRow,
    origin: Pos2,
    area: Rect,
    id: egui::Id,
) -> Option<DragHandle> {
    let kind = row.kind;
    let fixed = row.part || matches!(kind, RowKind::Blank | RowKind::Meta | RowKind::Code { .. });
    if fixed || !ui.rect_contains_pointer(area) {
        return None;
    }
    let far = matches!(kind, RowKind::Heading(_) | RowKind::Cell);
    let x = (origin.x - if far { WIDE_DRAG_HANDLE_OFFSET } else { DRAG_HANDLE_OFFSET }).max(area.left() + space::S);
    let y = match kind {
        RowKind::Heading(_) => (origin.y + area.bottom()) / 2.0,
        kind if kind.is_fenced() => origin.y + space::S + theme::code().line / 2.0,
        _ => origin.y + theme::body().line / 2.0,
    };
    let rect = Rect::from_center_size(pos2(x, y), vec2(18.0, size::MIN_CLICK_HEIGHT));
    let response = ui.interact(rect, id, Sense::click_and_drag() - Sense::FOCUSABLE);
    set_accessible_name(&response, Role::Button, "Move block");
    let colours = ThemeColors::of(ui);
    if response.hovered() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    let colour = if response.hovered() { colours.ink } else { colours.muted };
    ui.painter().text(rect.center(), Align2::CENTER_CENTER, icons::GRIP, theme::icon_font(14.0), colour);
    let pressed = response.is_pointer_button_down_on() && ui.input(|input| input.pointer.primary_pressed());
    if !pressed {
        response.on_hover_cursor(CursorIcon::Grab).on_hover_text("Drag to move   Alt+Up, Alt+Down");
    }
    Some(DragHandle { spot, rect, pressed })
}

impl NotePage {
    /// Ends a drag. Returns whether there was one.
    pub fn release_rows(&mut self) -> bool {
        self.held.take().is_some()
    }

    /// Returns the rows being dragged.
    pub fn dragged_rows(&self) -> Option<&RowDrag> {
        self.held.as_ref()
    }

    /// Sets the rows dragged here from another page, and whether the pointer is over another page.
    pub fn set_incoming_drag(&mut self, guest: Option<RowDrag>, away: bool) {
        (self.guest, self.away) = (guest, away);
    }

    /// Returns whether the drag handle is pressed, which leaves the caret in place.
    pub(super) fn is_handle_pressed(&self, ui: &Ui) -> bool {
        let point = ui.input(|input| input.pointer.latest_pos());
        self.held.is_some() || point.is_some_and(|at| self.grip.as_ref().is_some_and(|grip| grip.rect.contains(at)))
    }

    /// Starts a drag, shows the drop position, and drops the rows there.
    pub(super) fn update_row_drag(
        &mut self,
        ui: &Ui,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
        actions: &mut Vec<PageAction>,
    ) {
        if let Some(spot) = self.grip.as_ref().filter(|grip| grip.pressed).map(|grip| grip.spot) {
            let rows = rows_byte_range(taken(spot, editor, world), world);
            let whole = TextEdit { at: rows.start, delete: rows.len(), insert: String::new() };
            let (load, gone) = (DraggedText::of(&rows, world), leave(&rows, world).unwrap_or(whole));
            self.held = Some(RowDrag { note: world.note.id, rows, revision: world.note.revision(), load, gone });
            // Editing continues.
            editor.focus = editor.caret.is_some();
        }
        let Some(held) = self.held.clone().or(self.guest.take()) else { return };
        let own = held.note == world.note.id;
        let (down, point) = ui.input(|input| (input.pointer.primary_down(), input.pointer.latest_pos()));
        let Some(point) = point.filter(|_| !own || held.revision == world.note.revision()) else {
            self.held = None; // somebody else has changed the note
            return;
        };
        let gap = if self.away { None } else { self.gap(point, &held, world) };
        if !down {
            // The page that the rows are from ends the drag after all pages have handled it.
            let released = ui.input(|input| input.pointer.primary_released());
            let below = gap.filter(|_| released).map(|gap| gap.below);
            if own && let Some((edits, start)) = below.and_then(|below| moved(&held.rows, below, world)) {
                let inside = |at: usize| held.rows.start <= at && at <= held.rows.end;
                let caret = editor.caret.filter(|caret| inside(caret.at));
                let caret = caret.map(|caret| start + (caret.at - held.rows.start).min(held.rows.len()));
                actions.push(PageAction::Move { edits, caret });
            } else if !own && let Some((edit, caret)) = below.and_then(|below| arrival(&held, below, world)) {
                actions.push(PageAction::Carry { from: Box::new(held), to: world.note.id, edit, caret });
            }
            ui.ctx().request_repaint();
            return;
        }
        ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
        let colours = ThemeColors::of(ui);
        let start =
            |spot: RowIndex| world.sheet.start(spot.block) + world.sheet.row(spot).map_or(0, |row| row.content.start);
        let taken = self.seen.iter().filter(|seen| own && held.rows.contains(&start(seen.spot)));
        let rects = taken.map(|seen| {
            let (left, right) = (seen.origin.x - space::S, seen.origin.x + world.width + space::S);
            Rect::from_min_max(pos2(left, seen.origin.y - 2.0), pos2(right, seen.area.bottom() + 2.0))
        });
        if let Some(rect) = rects.reduce(Rect::union) {
            ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground.gamma_multiply(0.6));
        }
        if let Some(gap) = gap {
            let right = gap.at.x.max(0.0) + world.width;
            let left = gap.at.x + self.depth(gap, world);
            ui.painter().hline(left..=right, gap.at.y, Stroke::new(2.0, colours.accent));
            ui.painter().circle_filled(pos2(left, gap.at.y), 4.0, colours.accent);
        }
        if self.away {
            return;
        }
        let view = ui.clip_rect();
        let beyond =
            (point.y - view.bottom() + AUTO_SCROLL_EDGE).max(0.0) - (view.top() + AUTO_SCROLL_EDGE - point.y).max(0.0);
        if beyond != 0.0 {
            self.nudge += (beyond * 0.3).clamp(-24.0, 24.0);
            ui.ctx().request_repaint();
        }
    }

    /// Returns the drop position nearest to the pointer, or `None` if nothing would move.
    fn gap(&self, point: Pos2, held: &RowDrag, world: &mut EditContext<'_>) -> Option<DropGap> {
        let mut nearest: Option<(f32, DropGap, usize)> = None;
        let mut take = |y: f32, x: f32, below: Option<RowIndex>, at: usize| {
            let distance = (y - point.y).abs();
            if nearest.as_ref().is_none_or(|(least, ..)| distance < *least) {
                nearest = Some((distance, DropGap { below, at: pos2(x, y) }, at));
            }
        };
        for seen in &self.seen {
            let Some(row) = world.sheet.row(seen.spot).filter(|row| !row.part && row.kind != RowKind::Meta) else {
                continue;
            };
            let at = world.sheet.start(seen.spot.block) + row.content.start;
            let y = (seen.area.top() + seen.origin.y) / 2.0;
            take(y - if seen.area.top() == seen.origin.y { 2.0 } else { 0.0 }, seen.origin.x, Some(seen.spot), at);
        }
        if let Some(last) = self.seen.last()
            && world.following_row(last.spot).is_none()
        {
            take(last.area.bottom() + space::XS, last.origin.x, None, usize::MAX);
        }
        if world.texts.is_empty() {
            let area = self.area?;
            let at = pos2(area.left() + world.margin, area.top() + PAGE_TOP_PADDING);
            return Some(DropGap { below: None, at });
        }
        let (_, gap, at) = nearest?;
        if held.note != world.note.id {
            return Some(gap);
        }
        // No move: directly before, among, or directly after the rows themselves.
        let behind =
            world.find_row(held.rows.end).and_then(|last| world.sheet.row_after(last, world.note, world.texts));
        let behind = behind.map_or(usize::MAX, |spot| rows_byte_range((spot, spot), world).start);
        (at < held.rows.start || at > behind).then_some(gap)
    }

    /// Returns the indentation of a gap: that of the item above or below.
    fn depth(&self, gap: DropGap, world: &mut EditContext<'_>) -> f32 {
        let depth =
            |spot: Option<RowIndex>, world: &EditContext<'_>| match spot.and_then(|spot| world.sheet.row(spot))?.kind {
                RowKind::Item { depth, .. } => Some(f32::from(depth.min(12)) * LIST_ITEM_INDENT),
                _ => None,
            };
        let above = above(gap.below, world);
        depth(gap.below, world).or_else(|| depth(above, world)).unwrap_or(0.0)
    }
}

/// Returns the rows that a handle drags: those selected together with its row, otherwise the row and what is inside it.
fn taken(spot: RowIndex, editor: &Editor, world: &mut EditContext<'_>) -> (RowIndex, RowIndex) {
    for range in editor.selected() {
        if let (Some(first), Some(last)) = (world.find_row(range.start), world.find_row(range.end))
            && (first..=last).contains(&spot)
            && first < last
        {
            return (first, whole(last, world));
        }
    }
    (spot, whole(spot, world))
}

/// Returns the last row that moves along with a row: items inside it, parts of the same box, or collapsed content.
fn whole(spot: RowIndex, world: &mut EditContext<'_>) -> RowIndex {
    let mut last = item_rows(spot, world).1;
    while let Some(next) = world.sheet.row_after(last, world.note, world.texts).filter(|next| {
        let part = world.sheet.row(*next).is_some_and(|row| row.part);
        world.sheet.is_hidden(*next) || part
    }) {
        last = next;
    }
    last
}

/// Returns the row above a position.
fn above(below: Option<RowIndex>, world: &mut EditContext<'_>) -> Option<RowIndex> {
    match below {
        Some(below) => world.sheet.row_before(below, world.note, world.texts),
        None => {
            let block = world.texts.len().checked_sub(1)?;
            let row = world.rows(block).len().checked_sub(1)?;
            Some(RowIndex { block, row })
        }
    }
}

/// Moves the caret's rows past their neighbors if one of them is a cell, which keeps its outputs. Returns the edits,
/// and the caret afterwards.
pub fn past_cell(caret: Caret, down: bool, world: &mut EditContext<'_>) -> Option<(Vec<TextEdit>, usize)> {
    let spot = world.find_row(caret.at)?;
    let (own, other) = neighbor_rows(spot, caret, down, world)?;
    (has_cell(own, world) || has_cell(other, world)).then_some(())?;
    let below = if down { world.sheet.row_after(other.1, world.note, world.texts) } else { Some(other.0) };
    let rows = rows_byte_range(own, world);
    let (edits, start) = moved(&rows, below, world)?;
    Some((edits, start + caret.at.saturating_sub(rows.start).min(rows.len())))
}

fn has_cell((first, last): (RowIndex, RowIndex), world: &mut EditContext<'_>) -> bool {
    let mut at = Some(first);
    while let Some(spot) = at.filter(|spot| *spot <= last) {
        if world.rows(spot.block).get(spot.row).is_some_and(|row| row.kind == RowKind::Cell) {
            return true;
        }
        at = world.sheet.row_after(spot, world.note, world.texts);
    }
    false
}

/// Returns the edits that move rows above another row, or after the last one, and where they start afterwards.
fn moved(rows: &Range<usize>, below: Option<RowIndex>, world: &mut EditContext<'_>) -> Option<(Vec<TextEdit>, usize)> {
    let (gone, load) = (leave(rows, world)?, DraggedText::of(rows, world));
    let (come, lead) = load.arrive(below, world)?;
    let later = come.at > gone.at;
    let start = come.at + lead + if later { gone.insert.len() } else { 0 } - if later { gone.delete } else { 0 };
    let whole = gone.at.min(come.at)..(gone.at + gone.delete).max(come.at + come.delete);
    let mut edits = vec![gone, come];
    edits.sort_by_key(|edit| edit.at);
    let touch = edits[0].at + edits[0].delete >= edits[1].at;
    if !touch && !is_list(&whole, world) {
        return Some((edits, start));
    }
    edits.iter_mut().for_each(|edit| edit.at -= whole.start);
    let insert = apply_edits(&slice(whole.clone(), world), &edits);
    let edit = NoteEdit { at: whole.start, delete: whole.len(), insert, caret: start, anchor: start };
    // Renumber the list.
    let edit = if load.items.0 { renumber_list(edit, false, world) } else { edit };
    Some((vec![TextEdit { at: edit.at, delete: edit.delete, insert: edit.insert }], edit.caret))
}

/// Returns the edit that inserts rows of another note above a row, or after the last one, and where they start.
fn arrival(held: &RowDrag, below: Option<RowIndex>, world: &mut EditContext<'_>) -> Option<(TextEdit, usize)> {
    let text = match world.session.locate_file(held.note).zip(world.session.locate_file(world.note.id)) {
        // Links are rewritten to keep their targets.
        Some(((from, _), (to, _))) if from == to => {
            let links = world.session.volume(to).map(|volume| &volume.links);
            links.map(|links| links.rewrite_for_note(held.note, world.note.id, &held.load.text))
        }
        _ => None,
    };
    let text = text.unwrap_or_else(|| held.load.text.clone()).replace("\r\n", "\n");
    let text = if world.crlf() { text.replace('\n', "\r\n") } else { text };
    let load = DraggedText { text, ..held.load.clone() };
    if world.texts.is_empty() {
        return Some((TextEdit { at: 0, delete: 0, insert: load.text }, 0));
    }
    let (come, lead) = load.arrive(below, world)?;
    let start = come.at + lead;
    let edit = NoteEdit { at: come.at, delete: come.delete, insert: come.insert, caret: start, anchor: start };
    let edit = if load.items.0 { renumber_list(edit, false, world) } else { edit };
    Some((TextEdit { at: edit.at, delete: edit.delete, insert: edit.insert }, edit.caret))
}

fn slice(range: Range<usize>, world: &EditContext<'_>) -> String {
    world.note.slice(range.start, range.len()).unwrap_or_default()
}

fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

fn end(spot: Option<RowIndex>, world: &mut EditContext<'_>) -> Option<usize> {
    spot.map(|spot| rows_byte_range((spot, spot), world).end)
}

fn start(spot: Option<RowIndex>, world: &mut EditContext<'_>) -> Option<usize> {
    spot.map(|spot| rows_byte_range((spot, spot), world).start)
}

/// Returns the edit that removes rows and keeps the blank line between their neighbors. `None` if nothing else is left.
fn leave(rows: &Range<usize>, world: &mut EditContext<'_>) -> Option<TextEdit> {
    let (first, last) = (world.find_row(rows.start)?, world.find_row(rows.end)?);
    let (before, behind) =
        (world.sheet.row_before(first, world.note, world.texts), world.sheet.row_after(last, world.note, world.texts));
    Some(match (end(before, world), start(behind, world)) {
        (None, None) => return None,
        (None, Some(behind)) => TextEdit { at: rows.start, delete: behind - rows.start, insert: String::new() },
        (Some(before), None) => TextEdit { at: before, delete: rows.end - before, insert: String::new() },
        (Some(from), Some(to)) => {
            let (one, other) = (slice(from..rows.start, world), slice(rows.end..to, world));
            let wider = if lines(&one) >= lines(&other) { one } else { other };
            TextEdit { at: from, delete: to - from, insert: wider }
        }
    })
}

impl DraggedText {
    fn of(rows: &Range<usize>, world: &mut EditContext<'_>) -> DraggedText {
        let (first, last) = (world.find_row(rows.start), world.find_row(rows.end));
        let item = |spot: Option<RowIndex>, world: &mut EditContext<'_>| spot.is_some_and(|spot| is_item(spot, world));
        let items = (item(first, world), item(last, world));
        let indent = first.map(|first| indent(first, world)).unwrap_or_default();
        DraggedText { text: slice(rows.clone(), world), indent, list: is_list(rows, world), items }
    }

    /// Returns the edit that inserts the rows above a row or at the end, and the offset of the text in it. List items
    /// go next to items; everything else gets blank lines around it.
    fn arrive(&self, below: Option<RowIndex>, world: &mut EditContext<'_>) -> Option<(TextEdit, usize)> {
        let newline = if world.crlf() { "\r\n" } else { "\n" };
        let above = above(below, world);
        let item = |spot: Option<RowIndex>, world: &mut EditContext<'_>| spot.is_some_and(|spot| is_item(spot, world));
        let mut text = self.text.clone();
        if self.list {
            let beside = if item(below, world) { below } else { above.filter(|spot| is_item(*spot, world)) };
            let wanted = beside.map_or_else(String::new, |spot| indent(spot, world));
            text = indented(&text, &self.indent, &wanted);
        }
        let there = match (end(above, world), start(below, world)) {
            (Some(above), Some(below)) => slice(above..below, world),
            _ => String::new(),
        };
        let gap = |beside: Option<RowIndex>, own: bool, world: &mut EditContext<'_>| match (
            beside,
            own && item(beside, world),
        ) {
            (None, _) => String::new(),
            (Some(_), true) if lines(&there) == 0 => newline.to_owned(),
            (Some(_), true) if item(above, world) && item(below, world) => there.clone(),
            (Some(_), true) => newline.to_owned(),
            (Some(_), false) => newline.repeat(2),
        };
        let (lead, tail) = (gap(above, self.items.0, world), gap(below, self.items.1, world));
        let at = end(above, world).or(start(below, world))?;
        Some((TextEdit { at, delete: there.len(), insert: format!("{lead}{text}{tail}") }, lead.len()))
    }
}

fn indent(spot: RowIndex, world: &mut EditContext<'_>) -> String {
    let line = rows_byte_range((spot, spot), world);
    let text = slice(line, world);
    text[..text.len() - text.trim_start_matches([' ', '\t']).len()].to_owned()
}

/// Returns whether all rows of a range are list items.
fn is_list(range: &Range<usize>, world: &mut EditContext<'_>) -> bool {
    let (mut at, last) = (world.find_row(range.start), world.find_row(range.end));
    while let Some(spot) = at.filter(|spot| last.is_some_and(|last| *spot <= last)) {
        if !is_item(spot, world) {
            return false;
        }
        at = world.sheet.row_after(spot, world.note, world.texts);
    }
    true
}

/// Replaces the indentation of lines.
fn indented(text: &str, old: &str, new: &str) -> String {
    let line = |line: &str| match line.strip_prefix(old) {
        Some(rest) if !line.trim().is_empty() => format!("{new}{rest}"),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn items_stand_in_as_far_as_those_beside_them() {
        assert_eq!(indented("  - a\n    - b\n\n  c", "  ", ""), "- a\n  - b\n\nc");
        assert_eq!(indented("- a\n  - b", "", "    "), "    - a\n      - b");
    }
}
