//! Where everything stands: tree, strip, note, panel, status line, in the order in which one reads, which is also the
//! order of Tab.

use super::commands;
use super::controls::{clipped, icon_button, named};
use super::icons;
use super::page::{Action, Page};
use super::{Overlay, Window, states, tree};
use crate::tokens::{self, Colours, size, space};
use eframe::egui;
use egui::accesskit::Role;
use egui::emath::easing::cubic_out;
use egui::{Align, Align2, CursorIcon, Id, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::{Command, Phase};
use std::ops::RangeInclusive;

/// How wide the edge of a panel is to grab.
const GRAB: f32 = 8.0;
/// Folding takes this long, in seconds.
const FOLDS: f32 = 0.12;

impl Window {
    /// Draws the window; gives what was asked for.
    pub(super) fn layout(&mut self, ui: &mut Ui) -> Vec<Action> {
        let mut actions = Vec::new();
        let colours = Colours::of(ui);
        let all = ui.max_rect();
        ui.painter().rect_filled(all, 0.0, colours.paper);
        let ctx = ui.ctx().clone();
        let fold =
            |name: &str, open: bool| ctx.animate_bool_with_time_and_easing(Id::unique(name), open, FOLDS, cubic_out);
        let left = (self.prefs.left * fold("left", self.prefs.left_open)).round();
        let right = (self.prefs.right.min(all.width() * 0.45) * fold("right", self.prefs.right_open)).round();
        let body = Rect::from_min_max(all.min, pos2(all.right(), all.bottom() - size::STATUS));
        let tree = Rect::from_min_max(
            pos2(body.left() + left - self.prefs.left, body.top()),
            pos2(body.left() + left, body.bottom()),
        );
        let panel = Rect::from_min_max(pos2(body.right() - right, body.top()), body.max);
        let middle = Rect::from_min_max(pos2(tree.right(), body.top()), pos2(panel.left(), body.bottom()));
        let line = Stroke::new(1.0, colours.line);
        if left > 0.0 {
            let mut ui = part(ui, "left", tree.intersect(body).with_min_x(tree.left()), tree.intersect(body));
            self.left(&mut ui, &mut actions);
            ui.painter().vline(tree.right() - 0.5, body.y_range(), line);
        }
        let mut centre = part(ui, "middle", middle, middle);
        self.middle(&mut centre, &mut actions);
        if right > 0.0 {
            let mut ui = part(ui, "right", panel, panel);
            self.right(&mut ui);
            ui.painter().vline(panel.left() + 0.5, body.y_range(), line);
        }
        let bottom = Rect::from_min_max(pos2(all.left(), body.bottom()), all.max);
        ui.painter().hline(bottom.x_range(), bottom.top() + 0.5, line);
        let mut foot = part(ui, "status", bottom, bottom);
        if let Some(driver) = &self.driver {
            let session = driver.session();
            let note = self.here.note.and_then(|note| session.note(note));
            self.status.show(&mut foot, session, note, self.here.sheet.words(), &mut actions);
        }
        if self.prefs.left_open {
            let moved = edge(ui, "left edge", tree.right(), body, 180.0..=400.0, self.prefs.left);
            self.prefs.left = moved.unwrap_or(self.prefs.left);
        }
        if self.prefs.right_open {
            let width = -self.prefs.right;
            let moved = edge(ui, "right edge", panel.left(), body, -560.0..=-280.0, width);
            self.prefs.right = -moved.unwrap_or(width);
        }
        if self.is_saving() {
            saving(ui, all);
        }
        actions
    }

    fn left(&mut self, ui: &mut Ui, actions: &mut Vec<Action>) {
        let Some(driver) = &self.driver else { return };
        let session = driver.session();
        self.tree.show(ui, session, self.here.note, actions);
        if session.is_open() && session.volumes().next().is_none() {
            tree::empty(ui, actions);
        }
    }

    fn right(&mut self, ui: &mut Ui) {
        let dark = ui.visuals().dark_mode;
        let ctx = ui.ctx().clone();
        let Window { driver, here, outline, .. } = self;
        let Some(session) = driver.as_ref().map(host::Driver::session) else { return };
        let shown = here.with_note(session, &ctx, dark, |world, _, page| {
            if let Some(at) = outline.show(ui, session, Some(world)) {
                page.jump(at);
                ctx.request_repaint();
            }
        });
        if shown.is_none() {
            outline.show(ui, session, None);
        }
    }

    fn middle(&mut self, ui: &mut Ui, actions: &mut Vec<Action>) {
        ui.spacing_mut().item_spacing.y = 0.0;
        self.strip(ui, actions);
        self.bars(ui);
        let rest = ui.available_rect_before_wrap();
        let mut ui = part(ui, "note", rest, rest);
        self.here.measures = Page::measures(rest.width());
        let open = self.driver.as_ref().map(|driver| {
            let session = driver.session();
            (session.is_open(), session.volumes().next().is_some())
        });
        match (self.phase(), open) {
            (Some(Phase::Ready), _) => {
                self.here.reading = None;
                let (ctx, dark) = (ui.ctx().clone(), ui.visuals().dark_mode);
                let hold = !matches!(self.overlay, Overlay::None);
                self.with_note(&ctx, dark, |world, editor, page| page.show(&mut ui, world, editor, hold, actions));
            }
            (Some(Phase::Failed(why)), _) => {
                if states::sentence(&mut ui, &format!("This note cannot be read: {why}."), Some("Try again"), "")
                    && let Some(note) = self.here.note
                {
                    actions.push(Action::Do(Command::OpenNote { note }));
                }
            }
            (Some(Phase::Reading), _) => self.loading(&ui),
            (None, Some((true, false))) => states::no_volume(&mut ui, actions),
            (None, Some((true, true))) if self.wanted.is_none() || self.chose => states::no_note(&mut ui, actions),
            (None, _) => self.loading(&ui),
        }
    }

    fn loading(&mut self, ui: &Ui) {
        let now = ui.input(|input| input.time);
        let since = *self.here.reading.get_or_insert(now);
        if now - since >= states::PATIENCE {
            states::skeleton(ui, self.here.measures.0, self.here.measures.1);
        } else {
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(states::PATIENCE));
        }
    }

    /// The strip above the note: its name and path, and what folds the panels.
    fn strip(&mut self, ui: &mut Ui, actions: &mut Vec<Action>) {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::STRIP), Sense::hover());
        let colours = Colours::of(ui);
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
        let inner = rect.shrink2(vec2(space::S, space::XS));
        let mut ui = ui.new_child(UiBuilder::new().max_rect(inner).layout(Layout::left_to_right(Align::Center)));
        let tree = if self.prefs.left_open { "Hide the tree" } else { "Show the tree" };
        if icon_button(&mut ui, icons::SIDEBAR, tree, commands::key_of("view.left")).clicked() {
            actions.push(Action::Run("view.left"));
        }
        let left = ui.cursor().left() + space::XS;
        let session = self.driver.as_ref().map(host::Driver::session);
        let cells =
            session.and_then(|session| session.note(self.here.note?)).is_some_and(|note| note.cells().next().is_some());
        let count = if cells { 2.0 } else { 1.0 };
        let buttons = Rect::from_min_max(pos2(inner.right() - count * (size::HIT + space::XS), inner.top()), inner.max);
        let place = session.and_then(|session| session.place(self.here.note?)).map(|(volume, path)| {
            let volume = session.and_then(|session| session.volume(volume)).map_or("", |volume| volume.name.as_str());
            let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
            let folder = if folder.is_empty() { String::new() } else { format!("{} / ", folder.replace('/', " / ")) };
            (tree::shown_name(file).to_owned(), format!("{volume} / {folder}{file}"))
        });
        if let Some((name, path)) = place {
            let room = (buttons.left() - left - space::L).max(0.0);
            let y = inner.center().y;
            let style = tokens::Type { font: tokens::inter(tokens::Cut::SemiBold, 13.0), line: 20.0 };
            let width = clipped(&ui, pos2(left, y - 10.0), room, &name, &style, colours.ink);
            let rest = room - width - space::M;
            if rest > 80.0 {
                clipped(&ui, pos2(left + width + space::M, y - 8.0), rest, &path, &tokens::caption(), colours.muted);
            }
            let area = Rect::from_min_max(pos2(left, inner.top()), pos2(left + room, inner.bottom()));
            let response = ui.interact(area, ui.scope_id().with("title"), Sense::hover());
            named(&response, Role::Heading, &name);
            response.on_hover_text(path);
        }
        let mut ui = ui.new_child(UiBuilder::new().max_rect(buttons).layout(Layout::left_to_right(Align::Center)));
        ui.spacing_mut().item_spacing.x = space::XS;
        if cells && icon_button(&mut ui, icons::PLAY, "Run all cells", commands::key_of("note.run_all")).clicked() {
            actions.push(Action::Run("note.run_all"));
        }
        let panel = if self.prefs.right_open { "Hide the outline" } else { "Show the outline" };
        if icon_button(&mut ui, icons::LIST_BULLETS, panel, commands::key_of("view.right")).clicked() {
            actions.push(Action::Run("view.right"));
        }
    }

    /// What is wrong, above the note.
    fn bars(&mut self, ui: &mut Ui) {
        let colours = Colours::of(ui);
        let Some(session) = self.driver.as_ref().map(host::Driver::session) else { return };
        if let Some(why) = &session.saving().trouble {
            let text = format!(
                "Nothing can be saved at the moment: {why}. You can go on writing; it is kept in memory and saved as \
                 soon as the disk allows it."
            );
            states::bar(ui, icons::WARNING_CIRCLE, &text, colours.bad, false);
        }
        let note = self.here.note.and_then(|note| session.note(note));
        let skipped = note.and_then(|note| session.volume(note.volume)).and_then(|volume| volume.trouble.clone());
        let problems = session.problems().iter().chain(note.iter().flat_map(|note| &note.problems)).chain(&skipped);
        let mut gone = None;
        for problem in problems.filter(|problem| !self.dismissed.contains(*problem)).take(3) {
            if states::bar(ui, icons::WARNING, problem, colours.warn, true) {
                gone = Some(problem.clone());
            }
        }
        self.dismissed.extend(gone);
    }
}

/// A part of the window, clipped to what is seen of it.
fn part(ui: &mut Ui, name: &str, rect: Rect, seen: Rect) -> Ui {
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(name).layout(Layout::top_down(Align::Min)));
    child.set_clip_rect(seen.intersect(ui.clip_rect()));
    child
}

/// The edge of a panel: dragged, it gives the panel's new width.
fn edge(ui: &Ui, name: &str, x: f32, body: Rect, range: RangeInclusive<f32>, width: f32) -> Option<f32> {
    let rect = Rect::from_x_y_ranges(x - GRAB / 2.0..=x + GRAB / 2.0, body.y_range());
    let response = ui.interact(rect, Id::unique(name), Sense::drag() - Sense::FOCUSABLE);
    named(&response, Role::Splitter, name);
    let response = response.on_hover_and_drag_cursor(CursorIcon::ResizeHorizontal);
    if response.hovered() || response.dragged() {
        let colours = Colours::of(ui);
        ui.painter().vline(x - 0.5, body.y_range(), Stroke::new(2.0, colours.accent));
    }
    let pointer = response.interact_pointer_pos().filter(|_| response.dragged())?;
    Some((width + pointer.x - x).round().clamp(*range.start(), *range.end()))
}

/// While the window waits for the disk to close.
fn saving(ui: &Ui, all: Rect) {
    let colours = Colours::of(ui);
    let painter = ui.ctx().layer_painter(egui::LayerId::new(egui::Order::Tooltip, Id::unique("saving")));
    painter.rect_filled(all, 0.0, colours.paper.gamma_multiply(0.8));
    painter.text(all.center(), Align2::CENTER_CENTER, "Saving…", tokens::body().font, colours.ink);
}
