//! Layout of the window: tree, tabs, note, panel and status bar, in reading order, which is also the Tab order.

use super::activity_rail::{RailContext, show_activity_rail};
use super::status_bar::StatusContext;
use super::tabs::{self, TabsContext};
use crate::app_window::AppWindow;
use crate::overlays::window_overlay::WindowOverlay;
use crate::panels::tree;
use crate::shell::commands::ShortcutTable;
use crate::shell::dock_state::{DockState, LeftPanel, RightPanel, panel_tabs};
use crate::shell::host_link::{HostLink, SafeMode};
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use egui::accesskit::Role;
use egui::emath::easing::cubic_out;
use egui::{Align2, CursorIcon, Id, Rect, Sense, Stroke, Ui, pos2};
use engine::FirstStep;
use engine::commands::CommandId;
use notebook::actions::PageAction;
use std::ops::RangeInclusive;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_focus_ring, set_accessible_name};

/// Width of the draggable edge of a panel, in points.
const PANEL_RESIZE_HANDLE_WIDTH: f32 = 8.0;
/// Minimum window width for the activity rail. In a narrower window, the palette and keys reach everything.
const MIN_RAIL_WINDOW_WIDTH: f32 = 420.0;
/// Height of the row below the tree that counts the first steps, in points.
const FIRST_STEPS_HEIGHT: f32 = 36.0;
/// Duration of opening and closing a panel, in seconds.
const PANEL_ANIMATION_SECONDS: f32 = 0.12;

impl AppWindow {
    /// Draws the window and returns its actions.
    pub(crate) fn show_layout(&mut self, ui: &mut Ui) -> Vec<PageAction> {
        let mut actions = Vec::new();
        let colours = ThemeColors::of(ui);
        let all = ui.max_rect();
        ui.painter().rect_filled(all, 0.0, colours.paper);
        let ctx = ui.ctx().clone();
        let time = if ui::theme::is_motion_reduced() { 0.0 } else { PANEL_ANIMATION_SECONDS };
        let fold =
            |name: &str, open: bool| ctx.animate_bool_with_time_and_easing(Id::unique(name), open, time, cubic_out);
        // If there's little room (large scale, small window), the note keeps some of it.
        let shows_left = self.prefs.left_open && !self.prefs.hides_left(&ctx);
        let wide = self.prefs.left.min(all.width() * 0.55).round();
        let left = (wide * fold("left", shows_left)).round();
        let right = (self.prefs.right.min(all.width() * 0.45) * fold("right", self.prefs.right_open)).round();
        let rail = if all.width() < MIN_RAIL_WINDOW_WIDTH { 0.0 } else { size::ACTIVITY_RAIL_WIDTH };
        let bottom = all.bottom() - size::STATUS_BAR_HEIGHT;
        let body = Rect::from_min_max(pos2(all.left() + rail, all.top()), pos2(all.right(), bottom));
        let tree =
            Rect::from_min_max(pos2(body.left() + left - wide, body.top()), pos2(body.left() + left, body.bottom()));
        let panel = Rect::from_min_max(pos2(body.right() - right, body.top()), body.max);
        let middle = Rect::from_min_max(pos2(tree.right(), body.top()), pos2(panel.left(), body.bottom()));
        let line = Stroke::new(1.0, colours.line);
        let foot = Rect::from_min_max(pos2(all.left(), body.bottom()), all.max);
        let edge_bar = Rect::from_min_max(all.min, pos2(body.left(), bottom));
        self.dock.regions.set_places([tree.intersect(body), middle, panel, foot, edge_bar]);
        let sees_agent = self.prefs.right_open && self.dock.right == RightPanel::Agent;
        let failed_runs = self.notices.unseen_failures(self.host.session(), sees_agent);
        if rail > 0.0 {
            let mut ui = ui::layout::part(ui, "rail", edge_bar, edge_bar);
            let context = RailContext {
                session: self.host.session(),
                program_requests: self.host.approvals.waiting().len(),
                shortcuts: &self.input.shortcuts,
                source: &self.host.source,
                failed_runs,
                view: self.panes.view.as_ref(),
                left: shows_left.then_some(self.dock.left),
                right: self.prefs.right_open.then_some(self.dock.right),
            };
            show_activity_rail(&mut ui, &context, &mut actions);
            ui.painter().vline(edge_bar.right() - 0.5, edge_bar.y_range(), line);
        }
        // The panel sets this again below if it's visible.
        self.dock.search.release_keyboard();
        if left > 0.0 {
            let mut ui =
                ui::layout::part(ui, "left", tree.intersect(body).with_min_x(tree.left()), tree.intersect(body));
            self.panes.left(&self.host, &self.input.shortcuts, &mut self.dock, &mut ui, &mut actions);
            ui.painter().vline(tree.right() - 0.5, body.y_range(), line);
        }
        let mut centre = ui::layout::part(ui, "middle", middle, middle);
        match &mut self.panes.view {
            Some(view) => {
                if view.show(
                    &mut centre,
                    self.host.session(),
                    (&self.host.source, &self.host.forks, &self.host.packages),
                    self.panes.active.note,
                    &mut actions,
                ) {
                    self.panes.view = None;
                }
            }
            None => self.middle(&mut centre, &mut actions),
        }
        if right > 0.0 {
            let mut ui = ui::layout::part(ui, "right", panel, panel);
            self.dock.right(&mut self.host, &mut self.panes, &mut self.notices, &mut ui, &mut actions);
            ui.painter().vline(panel.left() + 0.5, body.y_range(), line);
        }
        ui.painter().hline(foot.x_range(), foot.top() + 0.5, line);
        let mut foot = ui::layout::part(ui, "status", foot, foot);
        let mode = self.panes.mode_says(&self.host, &self.input);
        let (session, note) = (self.host.session(), self.panes.open_note(&self.host));
        let words = self.panes.active.sheet.words();
        let shortcuts = &self.input.shortcuts;
        let (carets, index) = (self.panes.carets(), self.host.driver.search().freshness());
        let carets = if self.panes.view.is_some() { &[][..] } else { &carets };
        let source = &self.host.source;
        let context = StatusContext {
            session,
            program_requests: self.host.approvals.waiting().len(),
            source,
            shortcuts,
            note,
            words,
            mode: mode.as_deref(),
            carets,
            index: &index,
        };
        self.notices.status.show(&mut foot, &context, &mut actions);
        if shows_left {
            let moved = edge(ui, "left edge", tree.right(), body, 180.0..=400.0, self.prefs.left);
            self.prefs.left = moved.unwrap_or(self.prefs.left);
        }
        if self.prefs.right_open {
            let width = -self.prefs.right;
            let moved = edge(ui, "right edge", panel.left(), body, -560.0..=-280.0, width);
            self.prefs.right = -moved.unwrap_or(width);
        }
        if self.shutdown.is_saving() {
            saving(ui, all);
        }
        actions
    }

    fn middle(&mut self, ui: &mut Ui, actions: &mut Vec<PageAction>) {
        let is_searching = self.input.find.is_some() || self.dock.search.has_keyboard();
        let hold =
            !matches!(self.overlay, WindowOverlay::None) || is_searching || self.input.is_pointer_on_list(ui.ctx());
        let waits = self.panes.pending_note.is_some() && !self.panes.has_chosen_note;
        let PaneState { active: here, layout, conflict, .. } = &mut self.panes;
        let mut stage = TabsContext {
            session: self.host.session(),
            source: &self.host.source,
            conflict,
            shortcuts: &self.input.shortcuts,
            here,
            others: &mut layout.others,
            dismissed: &mut self.notices.dismissed_problems,
            find: &mut self.input.find,
            closes_find: false,
            actions,
            area: ui.max_rect(),
            hold,
            waits,
            left_open: self.prefs.left_open && !self.prefs.hides_left(ui.ctx()),
            right_open: self.prefs.right_open,
            is_safe: self.host.safe_mode == SafeMode::On,
        };
        layout.tree.ui(&mut stage, ui);
        let closes_find = stage.closes_find;
        tabs::show_pane_handles(ui, &mut layout.tree);
        tabs::release_drag_on_pointer_up(ui, self.panes.all_mut());
        if closes_find {
            self.panes.close_find(&self.host, &mut self.input);
        }
    }
}

impl PaneState {
    fn left(
        &mut self,
        host: &HostLink,
        shortcuts: &ShortcutTable,
        dock: &mut DockState,
        ui: &mut Ui,
        actions: &mut Vec<PageAction>,
    ) {
        let session = host.session();
        let settings = session.settings();
        let all = ui.available_rect_before_wrap();
        let below = if settings.show_first_steps { FIRST_STEPS_HEIGHT } else { 0.0 };
        if below > 0.0 {
            let row = Rect::from_min_max(pos2(all.left(), all.bottom() - below), all.max);
            let done = settings.first_steps.len();
            show_first_steps(&mut ui::layout::part(ui, "first steps", row, row), done, actions);
        }
        let rest = Rect::from_min_max(all.min, pos2(all.right(), all.bottom() - below));
        match dock.left {
            LeftPanel::Files => {
                let ui = &mut ui::layout::part(ui, "files", rest, rest);
                dock.tree.show(ui, (session, &host.source), shortcuts, self.active.note, actions);
                if session.is_open() && session.volumes().next().is_none() {
                    tree::show_empty_tree(ui, actions);
                }
            }
            LeftPanel::Tags => {
                let ui = &mut ui::layout::part(ui, "tags", rest, rest);
                dock.tags.show(ui, session, actions);
            }
            LeftPanel::Search => {
                let ui = &mut ui::layout::part(ui, "search", rest, rest);
                dock.search.show(ui, &host.driver, actions);
            }
        }
    }

    fn show_outline(&mut self, host: &HostLink, dock: &mut DockState, ui: &mut Ui, actions: &mut Vec<PageAction>) {
        let dark = ui.visuals().dark_mode;
        let ctx = ui.ctx().clone();
        let (session, outline) = (host.session(), &mut dock.outline);
        let shown = self.active.with_note(session, &ctx, dark, |world, _, page| {
            if let Some(at) = outline.show(ui, session, Some(world), actions) {
                page.scroll_to_byte(at);
                ctx.request_repaint();
            }
        });
        if shown.is_none() {
            outline.show(ui, session, None, actions);
        }
    }
}

impl DockState {
    fn right(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ui: &mut Ui,
        actions: &mut Vec<PageAction>,
    ) {
        self.right = panel_tabs(ui, self.right);
        match self.right {
            RightPanel::Outline => panes.show_outline(host, self, ui, actions),
            RightPanel::Backlinks => self.backlinks.show(ui, &host.driver, panes.active.note, actions),
            RightPanel::Variables => self.show_variables(host, panes, notices, ui, actions),
            RightPanel::Agent => self.show_agent(host, panes, notices, ui, actions),
        }
    }
}

/// Draws the row below the tree that leads to the welcome page.
fn show_first_steps(ui: &mut Ui, done: usize, actions: &mut Vec<PageAction>) {
    let colours = ThemeColors::of(ui);
    let rect = ui.max_rect();
    let text = format!("First steps: {done} of {}", FirstStep::ALL.len());
    let response = ui.interact(rect, ui.scope_id().with("first steps"), Sense::click());
    ui.painter().hline(rect.x_range(), rect.top() + 0.5, Stroke::new(1.0, colours.line));
    let colour = if response.hovered() || response.has_focus() { colours.ink } else { colours.muted };
    let at = pos2(rect.left() + space::L, rect.center().y);
    ui.painter().text(at, Align2::LEFT_CENTER, icons::CHECK_CIRCLE, theme::icon_font(16.0), colour);
    let at = pos2(at.x + space::XL, rect.center().y);
    ui.painter().text(at, Align2::LEFT_CENTER, &text, theme::small().font, colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, &text);
    if response.on_hover_text("Show the welcome page").clicked() {
        actions.push(PageAction::Run(CommandId::AppWelcome));
    }
}

/// Draws the draggable edge of a panel. Returns the panel's new width while it's dragged.
fn edge(ui: &Ui, name: &str, x: f32, body: Rect, range: RangeInclusive<f32>, width: f32) -> Option<f32> {
    let rect = Rect::from_x_y_ranges(
        x - PANEL_RESIZE_HANDLE_WIDTH / 2.0..=x + PANEL_RESIZE_HANDLE_WIDTH / 2.0,
        body.y_range(),
    );
    let response = ui.interact(rect, Id::unique(name), Sense::drag() - Sense::FOCUSABLE);
    set_accessible_name(&response, Role::Splitter, name);
    let response = response.on_hover_and_drag_cursor(CursorIcon::ResizeHorizontal);
    if response.hovered() || response.dragged() {
        let colours = ThemeColors::of(ui);
        ui.painter().vline(x - 0.5, body.y_range(), Stroke::new(2.0, colours.accent));
    }
    let pointer = response.interact_pointer_pos().filter(|_| response.dragged())?;
    Some((width + pointer.x - x).round().clamp(*range.start(), *range.end()))
}

/// Draws the overlay that is shown while the window waits for saves to finish.
fn saving(ui: &Ui, all: Rect) {
    let colours = ThemeColors::of(ui);
    let painter = ui.ctx().layer_painter(egui::LayerId::new(egui::Order::Tooltip, Id::unique("saving")));
    painter.rect_filled(all, 0.0, colours.paper.gamma_multiply(0.8));
    painter.text(all.center(), Align2::CENTER_CENTER, "Saving…", theme::body().font, colours.ink);
}
