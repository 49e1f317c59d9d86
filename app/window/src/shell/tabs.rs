//! Draws panes: tabs above each group, and the note below. A single note has no tabs, but its name and path.

use super::commands::ShortcutTable;
use super::pane::EditorPane;
use super::status_bar::{kernel_menu_items, kernel_state};
use crate::overlays::find_bar;
use eframe::egui;
use egui::accesskit::Role;
use egui::{
    Align2, Color32, CursorIcon, Id, Key, Rect, Response, Sense, Stroke, Ui, WidgetInfo, WidgetText, pos2, vec2,
};
use egui_tiles::{
    Container, LinearDir, ResizeState, SimplificationOptions, TabState, Tabs, Tile, TileId, Tiles, Tree, UiResponse,
};
use engine::commands::CommandId;
use engine::{Command, KernelPhase, Note, NotePhase, Session};
use host::source_control::SourceControl;
use notebook::actions::{FileAction, PageAction, PaneId, RowDrag, TreeAction};
use notebook::collection::CollectionSource;
use notebook::{empty_note, script};
use source_control::note_conflict::NoteConflict;
use std::collections::{HashMap, HashSet};
use text::untrusted_text;
use ui::empty_state;
use ui::icons;
use ui::menus::{context_menu, menu_below, menu_item, menu_separator};
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name, text_button};

/// Minimum and maximum width of a tab, in points. In between, its name decides.
const MIN_TAB_WIDTH: f32 = 96.0;
const MAX_TAB_WIDTH: f32 = 220.0;
/// Fraction of two panes by which an arrow key moves the edge between them, and the minimum fraction of each.
const PANE_RESIZE_STEP: f32 = 0.05;
const MIN_PANE_FRACTION: f32 = 0.15;
/// Minimum width of a tab bar for the kernel menu, in points.
const MIN_KERNEL_MENU_WIDTH: f32 = 420.0;
/// What can be done when a note isn't saved.
const SAVE_ACTIONS: [&str; 2] = ["Try again", "Open folder"];
/// What can be done when the kernel ended by itself.
const KERNEL_ACTIONS: [&str; 2] = ["Run all again", "Dismiss"];
/// How long a dragged block must rest over a tab to activate it, in seconds.
const TAB_DRAG_OPEN_DELAY_SECONDS: f32 = 0.3;

/// Context for drawing the panes in one frame.
pub(crate) struct TabsContext<'a> {
    pub(crate) session: &'a Session,
    pub(crate) source: &'a SourceControl,
    pub(crate) conflict: &'a mut NoteConflict,
    pub(crate) shortcuts: &'a ShortcutTable,
    pub(crate) here: &'a mut EditorPane,
    pub(crate) others: &'a mut HashMap<PaneId, EditorPane>,
    pub(crate) find: &'a mut Option<find_bar::FindBar>,
    pub(crate) closes_find: bool,
    pub(crate) dismissed: &'a mut HashSet<String>,
    pub(crate) actions: &'a mut Vec<PageAction>,
    /// Area of all panes.
    pub(crate) area: Rect,
    /// Whether an overlay keeps the keyboard focus.
    pub(crate) hold: bool,
    /// Whether the last session's note is still being looked up.
    pub(crate) waits: bool,
    pub(crate) left_open: bool,
    pub(crate) right_open: bool,
    /// Whether the window is in safe mode.
    pub(crate) is_safe: bool,
}

impl TabsContext<'_> {
    fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    pub(crate) fn pane(&self, pane: PaneId) -> Option<&EditorPane> {
        if pane == self.here.id { Some(self.here) } else { self.others.get(&pane) }
    }

    fn holds_rows(&self) -> bool {
        self.here.page.dragged_rows().is_some() || self.others.values().any(|pane| pane.page.dragged_rows().is_some())
    }

    pub(crate) fn title(&self, pane: PaneId) -> (String, String) {
        let title = self.pane(pane).and_then(|pane| pane.title(self.session));
        title.unwrap_or_else(|| ("New tab".to_owned(), "A tab without a note".to_owned()))
    }

    /// Draws the bar above a single note: its name and path.
    fn alone(&self, ui: &mut Ui) -> Response {
        let room = ui.available_width();
        let (rect, response) = ui.allocate_exact_size(vec2(room, size::TOOLBAR_HEIGHT), Sense::hover());
        let Some((name, path)) = self.here.title(self.session) else { return response };
        let colours = ThemeColors::of(ui);
        let (left, y, room) = (rect.left() + space::S, rect.center().y, (room - space::L).max(0.0));
        let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
        let width = paint_clipped_text(ui, pos2(left, y - 10.0), room, &name, &style, colours.ink);
        let rest = room - width - space::M;
        if rest > 80.0 {
            paint_clipped_text(
                ui,
                pos2(left + width + space::M, y - 8.0),
                rest,
                &path,
                &theme::caption(),
                colours.muted,
            );
        }
        set_accessible_name(&response, Role::Heading, &name);
        response.on_hover_text(untrusted_text::escape_line(&path).into_owned())
    }

    /// Draws a tab; a press activates it.
    fn tab(&mut self, ui: &mut Ui, id: Id, pane: PaneId, state: &TabState) -> Response {
        let colours = ThemeColors::of(ui);
        let (name, path) = self.title(pane);
        let has_caret = pane == self.here.id;
        let cut = if has_caret { theme::InterCut::SemiBold } else { theme::InterCut::Regular };
        let style = theme::TypeStyle { font: theme::inter_font(cut, 13.0), line: 20.0 };
        let wide = ui
            .painter()
            .layout_no_wrap(untrusted_text::escape_line(&name).into_owned(), style.font.clone(), colours.ink)
            .size()
            .x;
        let close = size::MIN_CLICK_HEIGHT;
        let width = (wide + space::M + close + space::XS).clamp(MIN_TAB_WIDTH, MAX_TAB_WIDTH);
        let (_, rect) = ui.allocate_space(vec2(width, size::TOOLBAR_HEIGHT));
        let response = ui.interact(rect, id, Sense::click_and_drag());
        response
            .widget_info(|| WidgetInfo::selected(Role::Tab, true, state.active, untrusted_text::escape_line(&name)));
        if state.is_being_dragged {
            return response;
        }
        let over = ui.rect_contains_pointer(rect);
        if state.active {
            ui.painter().rect_filled(rect, 0.0, colours.paper);
        } else if over {
            ui.painter().rect_filled(rect.with_max_y(rect.bottom() - 1.0), 0.0, colours.hover_color(colours.paper));
        }
        if has_caret {
            let mark = Rect::from_min_size(pos2(rect.left(), rect.bottom() - 2.0), vec2(width, 2.0));
            ui.painter().rect_filled(mark, 0.0, colours.accent);
        }
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        let colour = if state.active { colours.ink } else { colours.muted };
        let room = width - space::M - close - space::XS;
        paint_clipped_text(ui, pos2(rect.left() + space::M, rect.center().y - 10.0), room, &name, &style, colour);
        ui.painter().vline(rect.right() - 0.5, rect.y_range().shrink(10.0), Stroke::new(1.0, colours.line));
        let at = pos2(rect.right() - space::XS - close / 2.0, rect.center().y);
        let cross = Rect::from_center_size(at, vec2(close, close));
        let button = ui.interact(cross, id.with("close"), Sense::click());
        set_accessible_name(&button, Role::Button, &format!("Close tab {name}"));
        if button.hovered() {
            ui.painter().rect_filled(cross, CONTROL_CORNER, colours.hover_color(colours.sunken));
        }
        if over || state.active || button.has_focus() {
            let font = theme::icon_font(12.0);
            ui.painter().text(at, Align2::CENTER_CENTER, icons::X, font, colours.muted);
        }
        paint_focus_ring(ui, &button, CONTROL_CORNER);
        let pressed = response.is_pointer_button_down_on() && ui.input(|input| input.pointer.primary_pressed());
        if over && !state.active && self.holds_rows() {
            // A tab is activated when a dragged block rests over it.
            let still = ui.input(|input| input.pointer.time_since_last_movement());
            if still >= TAB_DRAG_OPEN_DELAY_SECONDS {
                self.actions.push(PageAction::Here(pane));
            } else {
                ui.ctx().request_repaint_after(std::time::Duration::from_secs_f32(TAB_DRAG_OPEN_DELAY_SECONDS - still));
            }
        }
        if button.clicked() || response.middle_clicked() {
            self.actions.push(PageAction::CloseTab(pane));
        } else if (pressed && !button.hovered()) || response.clicked() {
            self.actions.push(PageAction::Here(pane));
        }
        self.tab_menu(&response, pane);
        let button =
            button.on_hover_text(format!("Close tab   {}", self.shortcuts.key_of(CommandId::NoteClose).unwrap_or("")));
        if button.hovered() {
            response
        } else {
            response.on_hover_text(untrusted_text::escape_line(&path).into_owned())
        }
    }

    /// Shows a tab's menu after a right click.
    fn tab_menu(&mut self, tab: &Response, pane: PaneId) {
        let file = self.pane(pane).and_then(|pane| pane.note);
        let others = self.others.keys().chain([&self.here.id]).copied().filter(|other| *other != pane);
        let others: std::collections::BTreeSet<PaneId> = others.collect();
        let (shortcuts, actions) = (self.shortcuts, &mut *self.actions);
        context_menu(tab, "Tab menu", |ui| {
            if menu_item(ui, "Close", shortcuts.key_of(CommandId::NoteClose), true) {
                actions.push(PageAction::CloseTab(pane));
            }
            if menu_item(ui, "Close other tabs", None, true) {
                actions.push(PageAction::Here(pane));
                actions.extend(others.iter().map(|other| PageAction::CloseTab(*other)));
            }
            let Some(file) = file else { return };
            menu_separator(ui);
            for id in [CommandId::PaneSplitRight, CommandId::PaneSplitDown, CommandId::ViewReveal] {
                if menu_item(ui, id.title(), shortcuts.key_of(id), true) {
                    actions.extend([PageAction::Here(pane), PageAction::Run(id)]);
                }
            }
            menu_separator(ui);
            if menu_item(ui, "Copy path", None, true) {
                actions.push(PageAction::Tree(TreeAction::CopyPath(file)));
            }
            if menu_item(ui, "Show in folder", None, true) {
                actions.push(PageAction::File(file, FileAction::ShowInFolder));
            }
        });
    }

    /// Draws a pane's note, or a message in place of it.
    pub(crate) fn note(&mut self, ui: &mut Ui, pane: PaneId) {
        let TabsContext { session, shortcuts, here, others, actions, area, hold, waits, .. } = self;
        let session = *session;
        let is_here = pane == here.id;
        let rect = ui.available_rect_before_wrap();
        let pointer = ui.input(|input| input.pointer.any_pressed().then(|| input.pointer.interact_pos()).flatten());
        let inside = pointer.is_some_and(|at| rect.contains(at)) && ui.rect_contains_pointer(rect);
        if inside && !is_here {
            actions.push(PageAction::Here(pane));
        }
        // A press in another pane doesn't move this pane's caret.
        let hold = *hold || pointer.is_some_and(|at| area.contains(at) && !rect.contains(at));
        let (guest, away) = brought(ui.ctx(), std::iter::once(&**here).chain(others.values()), pane);
        let Some(pane) = (if is_here { Some(&mut **here) } else { others.get_mut(&pane) }) else { return };
        pane.page.set_incoming_drag(guest, away);
        let halves = if pane.is_script(session) { script::split_rects(ui, rect) } else { None };
        let whole_rect = rect;
        let (rect, beside) = halves.map_or((rect, None), |(code, beside)| (code, Some(beside)));
        pane.page.apart = beside.is_some();
        pane.measures = pane.page.own_column_metrics(ui, rect.width());
        let (measures, id) = (pane.measures, pane.id);
        if let Some(file) = pane.shown_attachment(session) {
            pane.reading = None;
            let mut ui = ui::layout::part(ui, "attachment pane", rect, rect);
            pane.attachment.show(&mut ui, session, file, actions);
            return;
        }
        match pane.note_phase(session) {
            Some(NotePhase::Ready) if pane.is_collection(session) => {
                pane.reading = None;
                if let Some(note) = pane.note.and_then(|note| session.note(note)) {
                    let mut ui = ui::layout::part(ui, "collection", rect, rect);
                    pane.collection.show(&mut ui, session, CollectionSource::file(note), is_here, actions);
                }
            }
            Some(NotePhase::Ready) => {
                pane.reading = None;
                let (ctx, dark) = (ui.ctx().clone(), ui.visuals().dark_mode);
                if pane.is_script(session)
                    && let Some(note) = pane.note.and_then(|note| session.note(note))
                {
                    pane.script.update_auto_run(ui, session, note, is_here, actions);
                }
                let run_key = shortcuts.key_of(CommandId::CellRun).unwrap_or("");
                let over = ui::layout::part(ui, "split", whole_rect, whole_rect);
                let mut whole = ui::layout::part(ui, "code", rect, rect);
                pane.with_note(session, &ctx, dark, |world, editor, page| {
                    if let Some(beside) = beside {
                        let mut ui = ui::layout::part(ui, "beside", beside, beside);
                        script::show_preview(&mut ui, page, world, editor, run_key, actions);
                    }
                    let ui = if beside.is_some() { &mut whole } else { ui };
                    if is_here {
                        page.show(ui, world, editor, hold, actions);
                        return;
                    }
                    // Only the active pane has the text field, so this pane's caret is hidden.
                    let (caret, more) = (editor.caret.take(), std::mem::take(&mut editor.more));
                    page.show(ui, world, editor, hold, actions);
                    if editor.caret.is_some() {
                        actions.push(PageAction::Here(id));
                    } else {
                        (editor.caret, editor.more) = (caret, more);
                    }
                });
                if beside.is_some() {
                    script::show_split_handle(&over, whole_rect);
                }
            }
            Some(NotePhase::Failed(why)) => {
                let says = format!("Can't read this note: {why}.");
                if empty_state::show_message(ui, &says, Some("Try again"), "")
                    && let Some(note) = pane.note
                {
                    actions.push(PageAction::Do(Command::OpenNote { note }));
                }
            }
            Some(NotePhase::Reading) => loading(ui, &mut pane.reading, measures),
            None if pane.note.is_some() => loading(ui, &mut pane.reading, measures),
            None if session.is_open() && session.volumes().next().is_none() => empty_note::no_volume(ui, actions),
            None if session.is_open() && !(is_here && *waits) => empty_note::no_note(ui, actions),
            None => loading(ui, &mut pane.reading, measures),
        }
    }

    /// Draws the kernel's state as a button with the kernel menu.
    fn kernel_menu(&mut self, ui: &mut Ui, note: &Note) {
        let state = kernel_state(note);
        let button = text_button(ui, &state, false);
        set_accessible_name(&button, Role::Button, &format!("Kernel: {state}"));
        let (shortcuts, actions) = (self.shortcuts, &mut *self.actions);
        menu_below(&button, "Kernel", |ui| kernel_menu_items(ui, note, shortcuts, actions));
    }

    /// Draws an icon button that runs a command.
    fn command_button(&mut self, ui: &mut Ui, icon: &str, name: &str, command: CommandId) {
        if icon_button(ui, icon, name, self.shortcuts.key_of(command)).clicked() {
            self.actions.push(PageAction::Run(command));
        }
    }

    /// Draws the button with the menu of ways to export, print and share.
    fn share_menu(&mut self, ui: &mut Ui) {
        let button = icon_button(ui, icons::EXPORT, "Share or export", None);
        let (shortcuts, actions) = (self.shortcuts, &mut *self.actions);
        menu_below(&button, "Share or export", |ui| {
            let mut item = |ui: &mut Ui, id: CommandId| {
                if menu_item(ui, id.title(), shortcuts.key_of(id), true) {
                    actions.push(PageAction::Run(id));
                }
            };
            for id in [
                CommandId::ExportHtml,
                CommandId::ExportPdf,
                CommandId::ExportFolder,
                CommandId::ExportNotebook,
                CommandId::NotePrint,
            ] {
                item(ui, id);
            }
            menu_separator(ui);
            item(ui, CommandId::SyncShare);
        });
    }

    /// Draws banners for problems above the note.
    fn bars(&mut self, ui: &mut Ui) {
        let (colours, session) = (ThemeColors::of(ui), self.session);
        if let Some(why) = &session.saving().trouble {
            let text = format!(
                "Can't save: {why}. You can continue to write. Tracebook keeps the text in memory, and saves it when \
                 the disk allows."
            );
            match empty_state::show_action_banner(ui, icons::WARNING_CIRCLE, &text, colours.bad, &SAVE_ACTIONS) {
                Some(0) => self.actions.push(PageAction::Run(CommandId::NoteSave)),
                Some(_) => self.actions.push(PageAction::ShowWorkspace),
                None => {}
            }
        }
        if self.is_safe {
            let text = "Safe mode: no cells, runs or schedules start. Quit and start Tracebook again to leave it.";
            empty_state::show_banner(ui, icons::INFO, text, colours.warn, false);
        }
        let note = self.here.note.and_then(|note| session.note(note));
        if let Some((note, why)) = note.and_then(|note| Some((note.id, note.file.trouble.as_ref()?))) {
            let (name, _) = self.title(self.here.id);
            let text = format!("Can't write {name}: {why}. Your text is safe in the workspace.");
            match empty_state::show_action_banner(ui, icons::WARNING, &text, colours.warn, &SAVE_ACTIONS) {
                Some(0) => self.actions.push(PageAction::Run(CommandId::NoteSave)),
                Some(_) => self.actions.push(PageAction::File(note, FileAction::ShowInFolder)),
                None => {}
            }
        }
        if let Some((note, why)) = note.and_then(|note| Some((note, note.kernel_trouble()?))) {
            let dismissal = format!("kernel of {}", note.id);
            if note.kernel != KernelPhase::Off {
                self.dismissed.remove(&dismissal);
            } else if !self.dismissed.contains(&dismissal) {
                let restores = note.saves_states();
                let variables =
                    if restores { "The next run restores the variables." } else { "Its variables are lost." };
                let text = format!("{}. {variables}", ui::text::sentence(why));
                match empty_state::show_action_banner(ui, icons::WARNING, &text, colours.warn, &KERNEL_ACTIONS) {
                    Some(0) => self.actions.push(PageAction::Run(CommandId::NoteRunAll)),
                    Some(_) => _ = self.dismissed.insert(dismissal),
                    None => {}
                }
            }
        }
        let volume = note.and_then(|note| session.volume(note.volume));
        let trouble = volume.and_then(|volume| volume.trouble.clone());
        let left_out = volume.and_then(left_out);
        let problems = session.problems().iter().chain(note.iter().flat_map(|note| &note.problems));
        let problems = problems.chain(&trouble).chain(&left_out);
        let mut gone = None;
        for problem in problems.filter(|problem| !self.dismissed.contains(*problem)).take(3) {
            if empty_state::show_banner(ui, icons::WARNING, problem, colours.warn, true) {
                gone = Some(problem.clone());
            }
        }
        self.dismissed.extend(gone);
        if let Some(note) = self.here.note {
            self.conflict.show(ui, session, self.source, note, self.actions);
        }
    }
}

/// Returns a message about symlinks that lead out of the volume, which aren't followed.
fn left_out(volume: &engine::Volume) -> Option<String> {
    let outside = || volume.skipped.iter().filter(|skipped| skipped.leads_outside);
    let first = outside().next()?;
    let more = match outside().count() - 1 {
        0 => String::new(),
        1 => " (1 more is left out, too.)".to_owned(),
        more => format!(" ({more} more are left out, too.)"),
    };
    Some(format!("Left out of {}: {}: {}.{more}", volume.name, first.path, first.why))
}

/// Returns the rows dragged here from another pane, and whether the pointer with dragged rows is over another pane.
fn brought<'a>(
    ctx: &egui::Context,
    panes: impl Iterator<Item = &'a EditorPane> + Clone,
    own: PaneId,
) -> (Option<RowDrag>, bool) {
    let held = panes.clone().find_map(|pane| Some((pane.id, pane.page.dragged_rows()?)));
    let Some(((holder, held), point)) = held.zip(ctx.input(|input| input.pointer.latest_pos())) else {
        return (None, false);
    };
    let over = panes.clone().find(|pane| pane.page.is_at(ctx, point)).map(|pane| pane.id);
    let guest = (holder != own && over == Some(own)).then(|| held.clone());
    (guest, over.is_some_and(|over| over != own))
}

/// Ends drags when the pointer is released, after every pane has handled it.
pub(crate) fn release_drag_on_pointer_up<'a>(ui: &Ui, panes: impl Iterator<Item = &'a mut EditorPane>) {
    if !ui.input(|input| input.pointer.primary_down()) {
        panes.for_each(|pane| _ = pane.page.release_rows());
    }
}

/// Adds what the handles of `egui_tiles` lack: an accessible name, a focus ring, and the arrow keys.
pub(crate) fn show_pane_handles(ui: &Ui, tree: &mut Tree<PaneId>) {
    let mut found: Vec<(TileId, [TileId; 2], bool, Rect)> = Vec::new();
    for (id, tile) in tree.tiles.iter() {
        let Tile::Container(Container::Linear(linear)) = tile else { continue };
        let Some(whole) = tree.tiles.rect(*id) else { continue };
        for pair in linear.children.windows(2) {
            let (Some(one), Some(other)) = (tree.tiles.rect(pair[0]), tree.tiles.rect(pair[1])) else { continue };
            let wide = linear.dir == LinearDir::Horizontal;
            let line = if wide {
                Rect::from_x_y_ranges(one.right()..=other.left(), whole.y_range())
            } else {
                Rect::from_x_y_ranges(whole.x_range(), one.bottom()..=other.top())
            };
            found.push((*id, [pair[0], pair[1]], wide, line));
        }
    }
    for (id, [one, other], wide, line) in found {
        let has =
            |rect: Rect| rect.contains(line.center()) && if wide { rect.width() < 32.0 } else { rect.height() < 32.0 };
        let handle = ui.ctx().viewport(|view| {
            let mut all = view.this_pass.widgets.get_layer(ui.layer_id());
            all.find(|widget| widget.sense.senses_drag() && has(widget.rect)).map(|widget| widget.id)
        });
        let Some(response) = handle.and_then(|handle| ui.ctx().read_response(handle)) else { continue };
        let handle = response.id;
        set_accessible_name(&response, Role::Splitter, if wide { "Width of panes" } else { "Height of panes" });
        if !response.has_focus() {
            continue;
        }
        let arrows = egui::EventFilter { horizontal_arrows: true, vertical_arrows: true, ..Default::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(handle, arrows));
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        let (less, more) = if wide { (Key::ArrowLeft, Key::ArrowRight) } else { (Key::ArrowUp, Key::ArrowDown) };
        let steps = ui.input(|input| f32::from(input.key_pressed(more)) - f32::from(input.key_pressed(less)));
        if let Some(Tile::Container(Container::Linear(linear))) = tree.tiles.get_mut(id).filter(|_| steps != 0.0) {
            let (first, both) = (linear.shares[one], linear.shares[one] + linear.shares[other]);
            let first = (first + steps * both * PANE_RESIZE_STEP)
                .clamp(both * MIN_PANE_FRACTION, both * (1.0 - MIN_PANE_FRACTION));
            linear.shares.set_share(one, first);
            linear.shares.set_share(other, both - first);
            ui.ctx().request_repaint();
        }
    }
}

fn loading(ui: &Ui, since: &mut Option<f64>, (column, margin): (f32, f32)) {
    let now = ui.input(|input| input.time);
    let since = *since.get_or_insert(now);
    if now - since >= empty_state::SKELETON_DELAY_SECONDS {
        empty_state::show_skeleton(ui, column, margin);
    } else {
        ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(empty_state::SKELETON_DELAY_SECONDS));
    }
}

impl egui_tiles::Behavior<PaneId> for TabsContext<'_> {
    fn pane_ui(&mut self, ui: &mut Ui, _: TileId, pane: &mut PaneId) -> UiResponse {
        ui.spacing_mut().item_spacing.y = 0.0;
        if *pane == self.here.id {
            self.bars(ui);
            if let Some(find) = self.find {
                self.closes_find |= find.show_find_bar(ui, self.session, self.here, self.actions);
            }
        } else if let Some(other) = self.others.get_mut(pane) {
            // Search applies to the active pane.
            other.page.found = Default::default();
        }
        if let Some(pane) = if *pane == self.here.id { Some(&mut *self.here) } else { self.others.get_mut(pane) }
            && let Some(title) = &mut pane.title_field
        {
            title.show(ui, pane.measures, self.actions);
        }
        let rest = ui.available_rect_before_wrap();
        let mut ui = ui::layout::part(ui, "note", rest, rest);
        self.note(&mut ui, *pane);
        UiResponse::None
    }

    fn tab_title_for_pane(&mut self, pane: &PaneId) -> WidgetText {
        self.title(*pane).0.into()
    }

    fn tab_ui(&mut self, tiles: &mut Tiles<PaneId>, ui: &mut Ui, id: Id, tile: TileId, state: &TabState) -> Response {
        match tiles.get_pane(&tile).copied() {
            Some(_) if self.is_one() => self.alone(ui),
            Some(pane) => {
                let response = self.tab(ui, id, pane, state);
                // The bar itself isn't among the tiles while it's drawn. The active pane is as wide as its bar.
                let width = tiles.rect(tile).map_or(0.0, |pane| pane.width());
                ui::layout::reveal_active_tab(ui, id, response.rect, state.active, width);
                response
            }
            None => ui.allocate_response(vec2(0.0, size::TOOLBAR_HEIGHT), Sense::hover()),
        }
    }

    fn tab_bar_left_ui(&mut self, tiles: &Tiles<PaneId>, ui: &mut Ui, tile: TileId, _: &Tabs) {
        let Some(rect) = tiles.rect(tile) else { return };
        let colours = ThemeColors::of(ui);
        let y = rect.top() + size::TOOLBAR_HEIGHT - 0.5;
        ui.painter().with_clip_rect(rect).hline(rect.x_range(), y, Stroke::new(1.0, colours.line));
        if rect.left() <= self.area.left() + 1.0 && rect.top() <= self.area.top() + 1.0 {
            ui.add_space(space::S);
            let name = if self.left_open { "Hide the tree" } else { "Show the tree" };
            if icon_button(ui, icons::SIDEBAR, name, self.shortcuts.key_of(CommandId::ViewLeft)).clicked() {
                self.actions.push(PageAction::Run(CommandId::ViewLeft));
            }
        }
    }

    fn top_bar_right_ui(&mut self, tiles: &Tiles<PaneId>, ui: &mut Ui, tile: TileId, tabs: &Tabs, _: &mut f32) {
        let Some(rect) = tiles.rect(tile) else { return };
        ui.spacing_mut().item_spacing.x = space::XS;
        if rect.right() >= self.area.right() - 1.0 && rect.top() <= self.area.top() + 1.0 {
            ui.add_space(space::S);
            let name = if self.right_open { "Hide right panel" } else { "Show right panel" };
            if icon_button(ui, icons::LIST_BULLETS, name, self.shortcuts.key_of(CommandId::ViewRight)).clicked() {
                self.actions.push(PageAction::Run(CommandId::ViewRight));
            }
        }
        let pane = tabs.active.and_then(|tile| tiles.get_pane(&tile));
        let note = self.here.note.filter(|_| pane == Some(&self.here.id)).and_then(|note| self.session.note(note));
        let Some(note) = note else { return };
        let is_wide = rect.width() >= MIN_KERNEL_MENU_WIDTH;
        if is_wide {
            self.share_menu(ui);
            self.command_button(ui, icons::HISTORY, "Note history", CommandId::NoteHistory);
        }
        if note.cells().next().is_none() {
            return;
        }
        if matches!(note.kernel, KernelPhase::Busy(_)) {
            self.command_button(ui, icons::STOP, "Stop running cells", CommandId::CellStop);
        }
        self.command_button(ui, icons::PLAY, "Run all cells", CommandId::NoteRunAll);
        if is_wide {
            self.kernel_menu(ui, note);
        }
    }

    fn drag_ui(&mut self, tiles: &Tiles<PaneId>, ui: &mut Ui, tile: TileId) {
        let name = tiles.get_pane(&tile).map_or_else(|| "Tabs".to_owned(), |pane| self.title(*pane).0);
        let dark = ui.visuals().dark_mode;
        let frame = ui::widgets::floating_frame(ThemeColors::of(ui), dark).inner_margin(egui::Margin::symmetric(12, 4));
        frame.show(ui, |ui| ui.label(untrusted_text::escape_line(&name).into_owned()));
    }

    fn tab_hover_cursor_icon(&self) -> CursorIcon {
        CursorIcon::Default
    }

    fn tab_bar_height(&self, _: &egui::Style) -> f32 {
        size::TOOLBAR_HEIGHT
    }

    fn tab_bar_color(&self, visuals: &egui::Visuals) -> Color32 {
        visuals.panel_fill
    }

    fn gap_width(&self, _: &egui::Style) -> f32 {
        1.0
    }

    fn min_size(&self) -> f32 {
        160.0
    }

    fn resize_stroke(&self, style: &egui::Style, state: ResizeState) -> Stroke {
        let colours = ThemeColors::for_dark_mode(style.visuals.dark_mode);
        match state {
            ResizeState::Idle => Stroke::new(1.0, colours.line),
            ResizeState::Hovering | ResizeState::Dragging => Stroke::new(2.0, colours.accent),
        }
    }

    fn drag_preview_stroke(&self, visuals: &egui::Visuals) -> Stroke {
        Stroke::new(1.0, ThemeColors::for_dark_mode(visuals.dark_mode).accent)
    }

    fn drag_preview_color(&self, visuals: &egui::Visuals) -> Color32 {
        ThemeColors::for_dark_mode(visuals.dark_mode).accent.gamma_multiply(0.12)
    }

    fn is_tile_draggable(&self, tiles: &Tiles<PaneId>, tile: TileId) -> bool {
        // A whole tab bar can't be dragged: its handle would have no name, and Tab would lead to it.
        !self.is_one() && tiles.get_pane(&tile).is_some()
    }

    fn cycle_tabs_with_keyboard(&self) -> bool {
        false
    }

    fn simplification_options(&self) -> SimplificationOptions {
        SimplificationOptions { all_panes_must_have_tabs: true, ..SimplificationOptions::default() }
    }
}
