//! Draws visible rows, as rendered or as source, and their margins.

use super::context_menu::CellEnd;
use super::pointer::is_pressed;
use super::{
    CachedRow, NotePage, PAGE_TOP_PADDING, VisibleRow, drag, inset_of, move_caret_after_last_row, pads, source_height,
};
use crate::actions::PageAction;
use crate::active_row;
use crate::cells::{self, CellFrame};
use crate::widget_controls::{self, widget_of, widget_row};
use editor::assets;
use editor::details::DetailsTag;
use editor::display_map::RowIndex;
use editor::folding;
use editor::motion;
use editor::note_editor::{self, EditContext, EditTarget, Editor, NoteEdit};
use editor::render;
use editor::row_layout::{RowLayout, RowPart, SourceMap, SourceRun};
use editor::row_splitter::{CommentSpan, MarkdownRow, RowKind};
use editor::source_layout;
use editor::{remote_cursors, spelling};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, CornerRadius, CursorIcon, Galley, Painter, Pos2, Rect, Sense, Ui, Vec2, pos2, vec2};
use engine::Command;
use std::ops::Range;
use std::rc::Rc;
use text::cell_form::CellForm;
use text::task::NoteTask;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{self, set_accessible_name};

/// Width of the bar beside a change by an agent.
const AGENT_BAR_WIDTH: f32 = 3.0;

impl NotePage {
    /// Returns the layout of a rendered row, cached if possible.
    pub(super) fn drawn_row(&mut self, spot: RowIndex, row: &MarkdownRow, world: &EditContext<'_>) -> Rc<RowLayout> {
        let coloured = assets::highlighted_count(world.pen.ctx);
        let look = row.layout_hash();
        if let Some(kept) = self.drawn.get_mut(&look)
            && kept.waits.is_none_or(|waits| waits == coloured)
        {
            kept.used = self.frame;
            return kept.drawn.clone();
        }
        let waits = assets::unknown_hues_count(world.pen.ctx);
        let text = world.texts.get(spot.block).map_or("", |block| block.text.as_str());
        let (width, wide, ..) = self.look.unwrap_or_default();
        let source = text.get(row.content.clone()).unwrap_or("");
        let drawn = match &row.code {
            _ if row.comment == CommentSpan::Open => render::dimmed(source, row.kind, width, world.pen),
            _ if row.base => unseen(source, world.pen),
            Some(code) if row.kind.is_fenced() => match widget_of(source).filter(|_| row.kind == RowKind::Cell) {
                Some(Ok(spec)) => widget_row(source, &spec, world.pen),
                Some(Err(why)) => {
                    let mut drawn = code_row(text, row, code, width, world.pen);
                    widget_controls::add_error(&mut drawn, &why, width, world.pen);
                    drawn
                }
                None => code_row(text, row, code, width, world.pen),
            },
            _ => match &row.comment {
                CommentSpan::Hidden(hidden) => render::draw_without(source, row.kind, width, wide, hidden, world.pen),
                CommentSpan::None | CommentSpan::Open => render::draw(source, row.kind, width, wide, world.pen),
            },
        };
        let drawn = Rc::new(drawn);
        let waits = (assets::unknown_hues_count(world.pen.ctx) != waits).then_some(coloured);
        self.drawn.insert(look, CachedRow { drawn: drawn.clone(), used: self.frame, waits, spelt: None });
        drawn
    }

    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    pub(super) fn rows(
        &mut self,
        ui: &mut Ui,
        viewport: Rect,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
        target: Option<EditTarget>,
        hold: bool,
        actions: &mut Vec<PageAction>,
    ) {
        let page = ui.max_rect();
        let left = page.left() + world.margin;
        self.seen.clear();
        self.is_spelling_off = spelling::is_off_in(world.texts.first().map_or("", |block| block.text.as_str()));
        self.blame.begin_frame();
        self.cell_end = None;
        let hold = hold || self.is_handle_pressed(ui);
        self.grip = None;
        let mut edited = false;
        let mut spot = world
            .sheet
            .at_height((viewport.top() - PAGE_TOP_PADDING).max(0.0), world.note, world.texts)
            .map(|(spot, _)| spot);
        let mut y = spot.map_or(PAGE_TOP_PADDING, |spot| PAGE_TOP_PADDING + world.sheet.top(spot));
        let far = |target: &EditTarget, world: &mut EditContext<'_>| {
            let spot = target.spot.unwrap_or_default();
            PAGE_TOP_PADDING + world.sheet.top(spot) + world.sheet.space_above_row(spot)
        };
        // The active row is drawn even when out of view, so that typing returns to it.
        if let (Some(target), Some(first)) = (&target, spot)
            && target.spot.is_some_and(|spot| spot < first)
        {
            let y = far(target, world);
            self.field_out_of_sight(ui, pos2(left, page.top() + y), world, editor, target, hold);
            edited = true;
        }
        while let Some(here) = spot {
            if y > viewport.bottom() {
                break;
            }
            if world.sheet.is_hidden(here) {
                spot = world.following_row(here);
                continue;
            }
            let above = world.sheet.space_above_row(here);
            let height = self.extent(here, target.as_ref(), world) - above;
            let origin = pos2(left, page.top() + y + above);
            let area = Rect::from_min_max(pos2(page.left(), page.top() + y), pos2(page.right(), origin.y + height));
            let editing = target.as_ref().filter(|target| target.spot == Some(here));
            edited |= editing.is_some();
            self.row(ui, here, origin, area, world, editor, editing, hold, actions);
            y += above + height;
            spot = world.following_row(here);
        }
        let end = PAGE_TOP_PADDING + world.sheet.height();
        let behind = target.as_ref().is_some_and(|target| target.spot.is_none());
        if spot.is_none() {
            let origin = pos2(left, page.top() + end + if world.texts.is_empty() { 0.0 } else { space::M });
            self.below(ui, Rect::from_min_max(pos2(page.left(), page.top() + end), page.max), world, editor);
            if let Some(end) = self.cell_end.take() {
                self.show_insert_button(ui, &end, actions);
            }
            if world.texts.is_empty() {
                hint(ui, origin);
            }
            if let Some(target) = target.as_ref().filter(|_| behind) {
                self.field_out_of_sight(ui, origin, world, editor, target, hold);
                edited = true;
            }
        }
        if let Some(target) = target.as_ref().filter(|_| !edited) {
            let y = if behind { end } else { far(target, world) };
            self.field_out_of_sight(ui, pos2(left, page.top() + y), world, editor, target, hold);
        }
        self.controls.run_dependents(world.note, actions);
        self.update_row_drag(ui, world, editor, actions);
        self.extend_selection(ui, target.as_ref(), world, editor);
        self.update_hover(ui, target.as_ref(), world);
        self.open_menu(ui, target.as_ref(), world, editor);
        self.drop_text(ui, target.as_ref(), world, actions);
    }

    /// Draws the field of the active row if it's out of view, or after the last row.
    fn field_out_of_sight(
        &mut self,
        ui: &mut Ui,
        origin: Pos2,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
        target: &EditTarget,
        hold: bool,
    ) {
        let area = Rect::from_min_size(origin, vec2(world.width, note_editor::line_of(target.kind)));
        self.show_active_row(ui, origin, area, world, editor, target, hold);
    }

    /// Returns the highlighted ranges of a row with their colors: search matches, changes by agents, and selections.
    pub fn paint_backgrounds(&self, ui: &Ui, editor: &Editor, own: &Range<usize>) -> Vec<(Range<usize>, Color32)> {
        let colours = ThemeColors::of(ui);
        let first = self.found.partition_point(|range| range.end <= own.start);
        let found = self.found[first..].iter().take_while(|range| range.start < own.end);
        let mut grounds: Vec<(Range<usize>, Color32)> = found.map(|range| (range.clone(), colours.mark)).collect();
        if self.agent_marks.touches(own) {
            grounds.push((own.clone(), colours.paper.lerp_to_gamma(colours.ok, 0.12)));
        }
        if self.pointed.is_some_and(|(at, _)| own.contains(&at)) {
            grounds.push((own.clone(), colours.mark));
        }
        let touches = |range: &Range<usize>| range.start <= own.end && range.end >= own.start;
        let selected = editor.selected().into_iter().filter(touches);
        grounds.extend(selected.map(|range| (range, colours.accent_ground)));
        let current = self.current.iter().filter(|range| touches(range) && self.found.contains(range));
        grounds.extend(current.map(|range| (range.clone(), colours.mark_strong)));
        grounds
    }

    /// Handles the empty area below the text: a click there continues writing.
    fn below(&mut self, ui: &mut Ui, area: Rect, world: &mut EditContext<'_>, editor: &mut Editor) {
        let response = ui.interact(area, ui.scope_id().with("below"), Sense::click() - Sense::FOCUSABLE);
        set_accessible_name(&response, Role::Label, "End of the note");
        let response = response.on_hover_cursor(CursorIcon::Text);
        if is_pressed(ui, &response, editor) {
            move_caret_after_last_row(world, editor);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    fn row(
        &mut self,
        ui: &mut Ui,
        spot: RowIndex,
        origin: Pos2,
        area: Rect,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
        editing: Option<&EditTarget>,
        hold: bool,
        actions: &mut Vec<PageAction>,
    ) {
        let Some(row) = world.sheet.row(spot).cloned() else { return };
        let id = world.sheet.block_rows(spot.block).id;
        let colours = ThemeColors::of(ui);
        self.seen.push(VisibleRow { spot, origin, area });
        let cell_above = self.cell_end.take();
        let drawn = if editing.is_none() { Some(self.drawn_row(spot, &row, world)) } else { None };
        let code_height = match (&drawn, editing) {
            (Some(drawn), _) => drawn.height,
            (None, Some(target)) => source_height(target, world),
            (None, None) => 0.0,
        };
        let frame =
            cells::code_box(origin, world.width, code_height - 2.0 * cells::CELL_PADDING, row.kind == RowKind::Cell);
        let bare = drawn.as_ref().is_some_and(|drawn| drawn.bare);
        if (row.kind.is_fenced() && !bare) || (row.kind == RowKind::Indented && editing.is_some()) {
            let (top, bottom) = row.kind.has_padding();
            let round = |round: bool, corner: u8| if round { corner } else { 0 };
            let all = theme::CONTROL_CORNER;
            let corner = CornerRadius {
                nw: round(top, all.nw),
                ne: round(top, all.ne),
                sw: round(bottom, all.sw),
                se: round(bottom, all.se),
            };
            // Parts of one box overlap, so that no line of the background shows between them.
            let below = if row.kind.continues().1 { 1.0 } else { 0.0 };
            ui.painter().rect_filled(frame.with_max_y(frame.bottom() + below), corner, colours.sunken);
        }
        let start = world.sheet.start(spot.block);
        self.blame.show(ui, start + row.content.start, area.with_min_y(origin.y), origin.x);
        if self.agent_marks.touches(&(start + row.content.start..start + row.content.end)) {
            // Beside the column, or beside the box of a cell.
            let left = if row.kind.is_fenced() { frame.left() - space::S } else { origin.x - space::M };
            let bar = Rect::from_x_y_ranges(left..=left + AGENT_BAR_WIDTH, area.y_range());
            ui.painter().rect_filled(bar, 0.0, colours.ok);
            let response =
                ui.interact(bar.expand(2.0), ui.scope_id().with(("agent bar", spot.block, spot.row)), Sense::hover());
            set_accessible_name(&response, Role::Label, "Changed by an agent");
            response.on_hover_text("Changed by an agent. Click the line to remove the mark.");
        }
        let mut first = None;
        match (&drawn, editing) {
            (None, Some(target)) => {
                let inset = pads(row.kind).0;
                let is_boxed = row.kind.is_fenced() || row.kind == RowKind::Indented;
                let area = if is_boxed { area.with_max_y(frame.bottom()) } else { area };
                first = self.show_active_row(ui, origin + vec2(0.0, inset), area, world, editor, target, hold);
            }
            (Some(drawn), _) => {
                self.read(ui, spot, &row, drawn, origin, area, world, editor, actions);
                if let Some(RowPart::Text { galley, .. }) = drawn.parts.first() {
                    first = Some(galley.clone());
                }
            }
            (None, None) => {}
        }
        if row.base {
            let text = world.texts.get(spot.block).and_then(|block| block.text.get(row.content.clone())).unwrap_or("");
            let start = world.sheet.start(spot.block) + row.content.start;
            let end = start + row.content.len();
            let marked = editor.selected().iter().any(|range| range.start <= start && end <= range.end);
            let (key, at, wide) = (inset_of(spot, world), origin + vec2(0.0, code_height), self.output_width(world));
            let how = (marked, editing.is_some());
            self.insets.show(ui, key, text, start, at, wide, how, world, actions);
        }
        if self.held.is_none() && editor.drag.is_none() {
            let grip = drag::show_drag_handle(ui, spot, &row, origin, area, ui.scope_id().with(("grip", id, spot.row)));
            self.grip = grip.or(self.grip.take());
        }
        match row.kind {
            RowKind::Heading(_) => {
                let folded = world.sheet.is_folded(spot);
                let text = world.texts.get(spot.block).map_or("", |block| block.text.as_str());
                let name = text.get(row.content.clone()).unwrap_or("").trim_start_matches(['#', ' ']);
                if folding::show_fold_chevron(ui, spot, origin, area, name, folded, id) {
                    world.toggle_fold(spot);
                    ui.ctx().request_repaint();
                }
                if let Some(end) = drawn.as_ref().and_then(|drawn| drawn.end_rect()).filter(|_| folded) {
                    let at = origin + end.right_center().to_vec2() + vec2(space::S, 0.0);
                    ui.painter().text(at, Align2::LEFT_CENTER, "…", theme::body().font, colours.muted);
                }
            }
            RowKind::Html if matches!(row.details, DetailsTag::Start { .. }) => {
                let folded = world.sheet.is_folded(spot);
                if let Some(drawn) = &drawn
                    && folding::show_details_toggle(ui, spot, origin, drawn, folded, id)
                {
                    world.toggle_fold(spot);
                    world.leave_details(editor, spot);
                    ui.ctx().request_repaint();
                }
            }
            RowKind::Cell => {
                let number = self.numbers.get(&id).copied().unwrap_or(0);
                let (first, focused) = (first.as_deref(), editing.is_some());
                let is_code = editing.is_none_or(|target| target.code_only) && !bare;
                if let Some(galley) = first.filter(|_| is_code && world.session.settings().line_numbers) {
                    paint_line_numbers(ui, origin + vec2(0.0, pads(row.kind).0), galley);
                }
                let elsewhere = world.session.sync().remote_runner(world.note.id, id);
                let shown = CellFrame { cell: id, number, area: frame, first, focused, elsewhere };
                self.cells.show_cell_frame(ui, world.note, shown, actions);
                // The text is parsed in each frame only if the note knows the cell as a widget.
                let is_widget = world.note.cell_parts(id).is_some_and(|parts| parts.form == CellForm::Widget);
                let text = world.texts.get(spot.block).map_or("", |block| block.text.as_str());
                if drawn.is_some()
                    && is_widget
                    && let Some(Ok(spec)) = widget_of(text)
                {
                    self.controls.show(ui, world.note, (id, &spec), (origin, world.width), actions);
                }
                let at = origin + vec2(0.0, code_height);
                let wide = self.output_width(world);
                let own =
                    world.sheet.start(spot.block) + row.content.start..world.sheet.start(spot.block) + row.content.end;
                let whole = editor.selected().iter().any(|range| range.start <= own.start && own.end <= range.end);
                if !self.apart {
                    let end = CellEnd { cell: id, number, frame, bottom: area.bottom() };
                    self.show_cell_menu(ui, &end, world, actions);
                    self.cell_end = Some(end);
                    self.cells.output(ui, id, number, at, wide, whole, actions, world.pen);
                    self.cells.show_question(ui, world.note, (id, number), (at, world.width), editor, actions);
                }
            }
            RowKind::Fence { .. } | RowKind::Code { first: true, .. } if !bare => {
                self.language(ui, spot, &row, frame, first.as_deref(), world, editor);
            }
            _ => {}
        }
        if let Some(end) = cell_above {
            self.show_insert_button(ui, &end, actions);
        }
    }

    /// Draws a rendered row: a press places the caret, a click toggles a box or follows a link.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    fn read(
        &mut self,
        ui: &mut Ui,
        spot: RowIndex,
        row: &MarkdownRow,
        drawn: &Rc<RowLayout>,
        origin: Pos2,
        area: Rect,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
        actions: &mut Vec<PageAction>,
    ) {
        let block = world.sheet.block_rows(spot.block).id;
        let start = world.sheet.start(spot.block);
        let texts = world.texts;
        let text = texts.get(spot.block).map_or("", |block| block.text.as_str());
        let id = ui.scope_id().with(("row", block, spot.row));
        let response = ui.interact(area, id, Sense::click());
        let role = if matches!(row.kind, RowKind::Heading(_)) { Role::Heading } else { Role::Label };
        response.widget_info(|| {
            egui::WidgetInfo::labeled(role, true, if drawn.text.is_empty() { "Empty line" } else { &drawn.text })
        });
        let source = text.get(row.content.clone()).unwrap_or("");
        let own = start + row.content.start..start + row.content.end;
        let people = remote_cursors::remote_users(world.session, world.note);
        let mut grounds = remote_cursors::selection_fills(&people, &own, ThemeColors::of(ui));
        grounds.extend(self.paint_backgrounds(ui, editor, &own));
        for (range, colour) in &mut grounds {
            if range.end > own.end && range.start <= own.end {
                // The selection includes the line end.
                let end = drawn.end_rect().unwrap_or(Rect::from_min_size(Pos2::ZERO, vec2(0.0, theme::body().line)));
                let at = origin + end.right_top().to_vec2();
                ui.painter().rect_filled(Rect::from_min_size(at, vec2(space::S, end.height())), 0.0, *colour);
            }
            *range = range.start.max(own.start) - own.start..range.end.clamp(own.start, own.end) - own.start;
        }
        drawn.paint(ui.painter(), origin, ThemeColors::of(ui), source, &grounds);
        let (session, note) = (world.session, world.note.id);
        drawn.paint_unresolved_links(ui.painter(), origin, ThemeColors::of(ui), grounds.is_empty(), |link| {
            self.unresolved_links.contains(session, note, link)
        });
        for caret in editor.more.iter().filter(|caret| own.contains(&caret.at) || caret.at == own.end) {
            let place =
                drawn.caret_rect(source, caret.at - own.start).unwrap_or(Rect::ZERO).translate(origin.to_vec2());
            let since = ui.input(|input| input.time) - editor.touched;
            let line = Rect::from_min_max(place.min, pos2(place.min.x + 2.0, place.max.y.max(place.min.y + 20.0)));
            egui::text_selection::visuals::paint_text_cursor(ui, ui.painter(), line, since);
        }
        remote_cursors::paint_carets(ui, &people, &own, |at| {
            Some(drawn.caret_rect(source, at - own.start)?.translate(origin.to_vec2()))
        });
        let is_prose = !row.kind.is_fenced() && !matches!(row.kind, RowKind::Indented | RowKind::Html | RowKind::Meta);
        if is_prose && !self.is_spelling_off {
            self.misspelt(ui.painter(), origin, row.layout_hash());
        }
        if response.has_focus() {
            active_row::paint_focus_ring(ui, origin, world.width, area.bottom());
        }
        for (index, part) in drawn.parts.iter().enumerate() {
            if let RowPart::Fold { rect, callout, open, label } = part {
                let fold = ui.interact(rect.translate(origin.to_vec2()), id.with(index), Sense::click());
                let does = if *open { "Fold" } else { "Unfold" };
                set_accessible_name(&fold, Role::Button, &format!("{does}: {label}"));
                widgets::paint_focus_ring(ui, &fold, theme::CONTROL_CORNER);
                if fold.on_hover_cursor(CursorIcon::PointingHand).clicked() {
                    assets::toggle_callout(ui.ctx(), *callout);
                }
            }
            if let RowPart::Remark { rect, text } = part {
                let remark = ui.interact(rect.translate(origin.to_vec2()), id.with(index), Sense::hover());
                set_accessible_name(&remark, Role::Label, text);
                remark.on_hover_text(text::untrusted_text::escape_block(text).into_owned());
            }
            if let RowPart::Edit { rect, range, insert, caret, label } = part {
                let button = ui.interact(rect.translate(origin.to_vec2()), id.with(index), Sense::click());
                set_accessible_name(&button, Role::Button, label);
                widgets::paint_focus_ring(ui, &button, theme::CONTROL_CORNER);
                if button.on_hover_cursor(CursorIcon::PointingHand).clicked() {
                    let (at, delete) = (start + row.content.start + range.start, range.len());
                    let insert = insert.clone();
                    actions.push(match caret.map(|caret| at + caret) {
                        Some(caret) if delete == 0 && insert.is_empty() => PageAction::Place(caret),
                        Some(caret) => {
                            editor.focus = true;
                            PageAction::Edit(NoteEdit { at, delete, insert, caret, anchor: caret })
                        }
                        None => PageAction::Do(Command::Edit { note: world.note.id, at, delete, insert }),
                    });
                }
            }
            if let RowPart::Task { rect, done, state, label, fixed: true, .. } = part {
                let task = ui.interact(rect.translate(origin.to_vec2()), id.with(index), Sense::hover());
                let name = match state {
                    Some(state) => format!("{label} ({})", task_state_name(*state)),
                    None => label.clone(),
                };
                task.widget_info(|| egui::WidgetInfo::selected(Role::CheckBox, false, *done, &name));
            } else if let RowPart::Task { rect, mark, done, label, .. } = part {
                let rect =
                    Rect::from_center_size(rect.center() + origin.to_vec2(), Vec2::splat(size::MIN_CLICK_HEIGHT));
                let task = ui.interact(rect, id.with(index), Sense::click());
                task.widget_info(|| egui::WidgetInfo::selected(Role::CheckBox, true, *done, label));
                widgets::paint_focus_ring(ui, &task, theme::CONTROL_CORNER);
                if task.clicked() {
                    let line = source[..mark.start.min(source.len())].rfind('\n').map_or(0, |newline| newline + 1);
                    let again =
                        source[line..].lines().next().and_then(|text| NoteTask::parse_line(text, own.start + line));
                    if let Some(again) = again.filter(|again| again.repeat.is_some()) {
                        // Completing a repeating task also adds its next occurrence.
                        let (note, at, words, today) = (world.note.id, again.at, again.text, host::clock::today());
                        actions.push(PageAction::Do(Command::Check { note, at, words, today }));
                    } else {
                        let at = start + row.content.start + mark.start;
                        let words = if mark.len() > 1 { ["false", "true"] } else { [" ", "x"] };
                        let insert = words[usize::from(!*done)].to_owned();
                        actions.push(PageAction::Do(Command::Edit {
                            note: world.note.id,
                            at,
                            delete: mark.len(),
                            insert,
                        }));
                    }
                }
            }
        }
        let code = row.code.clone().filter(|_| row.kind.is_fenced() && row.kind != RowKind::Fence { closed: false });
        let content = code.unwrap_or_else(|| row.content.clone());
        let place = |point: Pos2| -> (usize, Option<String>) {
            let (byte, link) = drawn.byte_at_point(source, point - origin);
            (row.content.start + motion::floor_grapheme(source, byte), link.map(str::to_owned))
        };
        let over = ui.input(|input| input.pointer.latest_pos()).filter(|_| response.hovered());
        let link = over.and_then(|point| place(point).1);
        let icon = if link.is_some() { CursorIcon::PointingHand } else { CursorIcon::Text };
        let response = response.on_hover_cursor(icon);
        if let Some(link) = link {
            self.over = over.map(|point| (link.clone(), point));
            if response.clicked() {
                actions.push(PageAction::Follow(link));
            }
            return;
        }
        if is_pressed(ui, &response, editor) {
            let point = response.interact_pointer_pos().or(over);
            let at = start + point.map_or(content.start, |point| place(point).0);
            self.handle_press(ui, at, point.unwrap_or(origin), world, editor);
        }
    }

    /// Marks misspelled words of a row; each laid-out row is checked once.
    fn misspelt(&mut self, painter: &Painter, origin: Pos2, row: u64) {
        let Some(kept) = self.drawn.get_mut(&row) else { return };
        let version = spelling::version(painter.ctx());
        let Some((_, marks)) = kept.spelt.as_ref().filter(|(known, _)| *known == version) else {
            let marks = spelling::misspelled_rects(painter.ctx(), &kept.drawn);
            spelling::paint_marks(painter, origin, &marks);
            kept.spelt = Some((version, marks));
            return;
        };
        spelling::paint_marks(painter, origin, marks);
    }

    /// Draws the language after an opening fence; a click on it edits the fence.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    fn language(
        &mut self,
        ui: &mut Ui,
        spot: RowIndex,
        row: &MarkdownRow,
        frame: Rect,
        first: Option<&egui::Galley>,
        world: &EditContext<'_>,
        editor: &mut Editor,
    ) {
        let text = world.texts.get(spot.block).map_or("", |block| block.text.as_str());
        let opening = text.get(row.content.clone()).and_then(|text| text.lines().next()).unwrap_or("");
        let word = opening.trim_start().trim_start_matches(['`', '~']).trim();
        if word.is_empty() || editor.fence.is_some() {
            return;
        }
        let shown = text::untrusted_text::escape_line(word).into_owned();
        let galley = ui.painter().layout_no_wrap(shown, theme::caption().font, ThemeColors::of(ui).muted);
        let used = first.and_then(|first| first.rows.first()).map_or(0.0, |row| row.rect().width());
        if used + galley.size().x + space::XL > world.width {
            return;
        }
        let at = pos2(frame.right() - space::M - galley.size().x, frame.top() + cells::CELL_PADDING + 3.0);
        let text = Rect::from_min_size(at, galley.size());
        let high = size::MIN_CLICK_HEIGHT.max(text.height());
        let area = Rect::from_center_size(text.center(), vec2(text.width() + 2.0 * space::S, high));
        let id = world.sheet.block_rows(spot.block).id;
        let response = ui.interact(area, ui.scope_id().with(("language", id, spot.row)), Sense::click());
        set_accessible_name(&response, Role::Button, &format!("Language: {word}"));
        widgets::paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
        ui.painter().galley(at, galley, ThemeColors::of(ui).muted);
        if response.clicked() {
            editor
                .place_caret(world.sheet.start(spot.block) + row.content.start + opening.trim_end_matches('\r').len());
            editor.fence = Some((id, spot.row));
        }
    }
}

/// Describes the state of a task by the character between its brackets.
fn task_state_name(state: char) -> &'static str {
    match state {
        '/' => "half done",
        '-' => "cancelled",
        '>' | '<' => "moved",
        '!' => "important",
        '?' => "open question",
        _ => "marked",
    }
}

/// Lays out a row without visible content, whose embed is drawn below.
fn unseen(source: &str, pen: render::TextStyleContext<'_>) -> RowLayout {
    let galley = pen.text("", &theme::body(), pen.colours.ink, f32::INFINITY);
    let map = SourceMap { runs: vec![SourceRun { chars: 0, source: 0..source.len(), exact: false }] };
    let parts = vec![RowPart::Text { at: Vec2::ZERO, galley, map, links: Vec::new() }];
    let what = if engine::generated_view::view_source(source).is_some() { "View" } else { "Collection" };
    RowLayout { height: 0.0, parts, bare: true, text: format!("{what}: {source}") }
}

/// Lays out fenced code, or a part of it.
fn code_row(
    text: &str,
    row: &MarkdownRow,
    code: &Range<usize>,
    width: f32,
    pen: render::TextStyleContext<'_>,
) -> RowLayout {
    let shown = |range: &Range<usize>| text.get(range.clone()).unwrap_or("").replace("\r\n", "\n");
    let shown_code = shown(code);
    let mut job = match &row.whole {
        Some((whole, language)) => {
            let body = shown_code.strip_suffix('\n').unwrap_or(&shown_code);
            source_layout::code_part_job(body, &shown(whole), shown(&(whole.start..code.start)).len(), language, pen)
        }
        None => {
            let content = text.get(row.content.clone()).unwrap_or("");
            let bare = row.kind == RowKind::Cell && code.start == row.content.start;
            let language = if bare { "python" } else { source_layout::language(content) };
            source_layout::code_job(shown_code.trim_end_matches('\n'), language, false, pen)
        }
    };
    job.wrap.max_width = editor::source_layout::code_width(width);
    let galley = pen.galley(job);
    let (above, below) = pads(row.kind);
    let height = galley.size().y.max(theme::code().line) + above + below;
    let map = code_map(text.get(code.clone()).unwrap_or(""), code.start - row.content.start);
    let part = RowPart::Text { at: vec2(0.0, above), galley, map, links: Vec::new() };
    let mut drawn = RowLayout { height, parts: vec![part], bare: false, text: shown_code.clone() };
    let content = text.get(row.content.clone()).unwrap_or("");
    let is_whole = row.whole.is_none() && row.kind != RowKind::Cell;
    if let Some(hint) = source_layout::foreign_query_hint(source_layout::language(content)).filter(|_| is_whole) {
        let galley = pen.text(hint, &theme::caption(), pen.colours.muted, width);
        let at = vec2(0.0, height - below + space::S);
        drawn.height += galley.size().y + space::S;
        drawn.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
        drawn.text.push_str(hint);
    }
    let is_diagram = is_whole && source_layout::language(content) == "mermaid";
    if is_diagram { render::diagram(drawn, &shown_code, 0..content.len(), width, pen) } else { drawn }
}

/// Numbers the lines of code at the left of it, where tracebacks count from 1. A wrapped line has one number.
fn paint_line_numbers(ui: &Ui, origin: Pos2, galley: &Galley) {
    let (seen, color) = (ui.clip_rect().y_range(), ThemeColors::of(ui).muted);
    let (mut number, mut begins) = (0, true);
    for row in &galley.rows {
        number += usize::from(begins);
        let y = origin.y + row.rect().center().y;
        if begins && seen.expand(theme::code().line).contains(y) {
            let at = pos2(origin.x - space::XS, y);
            ui.painter().text(at, Align2::RIGHT_CENTER, number, theme::tabular_font(10.0), color);
        }
        begins = row.ends_with_newline;
    }
}

/// Maps characters of code, shown with LF line ends, to bytes of a row whose code starts at `start`.
fn code_map(code: &str, start: usize) -> SourceMap {
    let (mut runs, mut chars, mut at) = (Vec::new(), 0, start);
    for line in code.split_inclusive('\n') {
        let end = line.strip_suffix("\r\n").map_or(line.len(), str::len);
        runs.push(SourceRun { chars, source: at..at + end, exact: true });
        let shown = line.chars().count() - usize::from(end < line.len());
        if end < line.len() {
            runs.push(SourceRun { chars: chars + shown - 1, source: at + end..at + line.len(), exact: false });
        }
        chars += shown;
        at += line.len();
    }
    if runs.is_empty() {
        runs.push(SourceRun { chars: 0, source: start..start, exact: true });
    }
    SourceMap { runs }
}

fn hint(ui: &Ui, origin: Pos2) {
    let text = "Write something, or start a cell with ```python";
    ui.painter().text(
        origin + vec2(0.0, 12.0),
        Align2::LEFT_CENTER,
        text,
        theme::body().font,
        ThemeColors::of(ui).muted,
    );
}
