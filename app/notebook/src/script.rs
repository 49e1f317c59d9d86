//! Scripts: the code of a `.py` file on the left, and its outputs on the right. While the user edits it, it runs
//! automatically after a pause if the code parses. Opening it never runs it.

use super::page::NotePage;
use crate::actions::PageAction;
use editor::note_editor::{EditContext, Editor};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, ScrollArea, Sense, Stroke, Ui, vec2};
use engine::commands::CommandId;
use engine::{Command, KernelPhase, Note, Session};
use std::time::Duration;
use text::python_scope::CellNames;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{check_box, set_accessible_name};

/// Minimum pane width for showing outputs beside the code; in narrower panes they are below it, as in notes.
const MIN_SPLIT_SCRIPT_WIDTH: f32 = 720.0;
/// Key of the code's share of the width in the window's memory.
const CODE_SHARE_KEY: &str = "share of a script's code";
/// Width of the area in which the line between code and preview can be dragged, in points.
const SPLIT_HANDLE_WIDTH: f32 = 8.0;
/// How far an arrow key moves that line, as a share of the width.
const SPLIT_STEP: f32 = 0.05;
/// Minimum share of the width that code and preview have each.
const MIN_SPLIT_SHARE: f32 = 0.25;
/// Time after the last edit until the script runs, in seconds.
const AUTO_RUN_DELAY_SECONDS: f64 = 0.5;
/// Interval of retries while a running script is being stopped, in seconds.
const RESTART_RETRY_SECONDS: f64 = 0.1;

/// State of a script in a pane.
#[derive(Default)]
pub struct ScriptSync {
    /// The note and the revision last seen.
    seen: Option<(store::DocId, u64)>,
    /// When to run the script, in the window's seconds, and whether the running one was asked to stop.
    due: Option<(f64, bool)>,
}

/// Returns the rectangles of code and preview if there's room for both.
pub fn split_rects(ui: &Ui, rect: Rect) -> Option<(Rect, Rect)> {
    (rect.width() >= MIN_SPLIT_SCRIPT_WIDTH).then(|| rect.split_left_right_at_fraction(code_share(ui)))
}

/// Returns the code's share of the width. It's kept while the window is open.
fn code_share(ui: &Ui) -> f32 {
    ui.data(|data| data.get_temp(egui::Id::unique(CODE_SHARE_KEY))).unwrap_or(0.5)
}

/// Draws the line between code and preview, over both: it can be dragged, or moved with the arrow keys.
pub fn show_split_handle(ui: &Ui, rect: Rect) {
    let mut share = code_share(ui);
    let x = rect.left() + rect.width() * share;
    let handle = Rect::from_x_y_ranges(x - SPLIT_HANDLE_WIDTH / 2.0..=x + SPLIT_HANDLE_WIDTH / 2.0, rect.y_range());
    let response = ui.interact(handle, ui.scope_id().with("script split"), Sense::drag());
    set_accessible_name(&response, Role::Splitter, "Width of the code");
    if response.has_focus() {
        let arrows = egui::EventFilter { horizontal_arrows: true, ..Default::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
        let is_pressed = |key| f32::from(ui.input(|input| input.key_pressed(key)));
        share += SPLIT_STEP * (is_pressed(egui::Key::ArrowRight) - is_pressed(egui::Key::ArrowLeft));
    }
    if let Some(pointer) = response.interact_pointer_pos().filter(|_| response.dragged()) {
        share = (pointer.x - rect.left()) / rect.width();
    }
    if response.hovered() || response.dragged() || response.has_focus() {
        ui.painter().vline(x, rect.y_range(), Stroke::new(2.0, ThemeColors::of(ui).accent));
    }
    let response = response.on_hover_and_drag_cursor(egui::CursorIcon::ResizeHorizontal);
    let share = share.clamp(MIN_SPLIT_SHARE, 1.0 - MIN_SPLIT_SHARE);
    if share != code_share(ui) {
        ui.data_mut(|data| data.insert_temp(egui::Id::unique(CODE_SHARE_KEY), share));
        response.ctx.request_repaint();
    }
}

impl ScriptSync {
    /// Runs the script once editing pauses. `writes`: whether the caret is in this pane.
    pub fn update_auto_run(
        &mut self,
        ui: &Ui,
        session: &Session,
        note: &Note,
        writes: bool,
        actions: &mut Vec<PageAction>,
    ) {
        let now = ui.input(|input| input.time);
        let state = Some((note.id, note.revision()));
        let before = std::mem::replace(&mut self.seen, state);
        // Text written by another program or device never runs automatically.
        let own = |revision| note.shifts_since(revision).into_iter().flatten().any(|shift| !shift.foreign);
        let edited = before.is_some_and(|(id, revision)| id == note.id && revision != note.revision() && own(revision));
        if before.is_none_or(|(id, _)| id != note.id) {
            self.due = None;
        } else if edited && writes && session.settings().script_runs {
            self.due = Some((now + AUTO_RUN_DELAY_SECONDS, false));
        }
        let Some((at, stopped)) = self.due else { return };
        if now < at {
            ui.ctx().request_repaint_after(Duration::from_secs_f64(at - now));
            return;
        }
        let readable = note.cells().all(|cell| note.cell_code(cell).is_some_and(|code| !CellNames::of(code).broken));
        if !readable || note.cells().next().is_none() {
            self.due = None;
        } else if matches!(note.kernel, KernelPhase::Busy(_)) {
            if !stopped {
                actions.push(PageAction::Do(Command::Interrupt { note: note.id }));
            }
            self.due = Some((now + RESTART_RETRY_SECONDS, true));
            ui.ctx().request_repaint_after(Duration::from_secs_f64(RESTART_RETRY_SECONDS));
        } else {
            self.due = None;
            actions.push(PageAction::Do(Command::RunAll { note: note.id }));
        }
    }
}

/// Draws a script's outputs next to its code.
pub fn show_preview(
    ui: &mut Ui,
    page: &mut NotePage,
    world: &mut EditContext<'_>,
    editor: &mut Editor,
    run_key: &str,
    actions: &mut Vec<PageAction>,
) {
    let colours = ThemeColors::of(ui);
    let rect = ui.max_rect();
    ui.painter().vline(rect.left(), rect.y_range(), Stroke::new(1.0, colours.line));
    let inner = rect.shrink2(vec2(space::L, 0.0));
    let mut ui = ui::layout::part(ui, "preview", inner, rect);
    let ui = &mut ui;
    ui.add_space(space::M);
    ui.horizontal(|ui| {
        let title = ui.label(egui::RichText::new("Preview").font(theme::small().font).color(colours.muted));
        set_accessible_name(&title, Role::Heading, "Preview");
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let mut runs = world.session.settings().script_runs;
            if check_box(ui, &mut runs, "Run as I type").changed() {
                actions.push(PageAction::Run(CommandId::ScriptRuns));
            }
        });
    });
    ui.add_space(space::S);
    ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        let width = (ui.available_width() - space::M).max(120.0);
        let mut nothing = true;
        for (cell, number) in page.cells_in_order() {
            let height = page.cells.output_height(world.note, cell, width, world.pen);
            if height <= 0.0 {
                continue;
            }
            nothing = false;
            let (rect, _) = ui.allocate_exact_size(vec2(width, height + space::S), Sense::hover());
            page.cells.output(ui, cell, number, rect.min, width, false, actions, world.pen);
            page.cells.show_question(ui, world.note, (cell, number), (rect.min, width), editor, actions);
        }
        if nothing {
            let words = if matches!(world.note.kernel, KernelPhase::Busy(_)) {
                "It runs.".to_owned()
            } else {
                format!("Output appears here. Press {run_key} to run the script.")
            };
            ui.label(egui::RichText::new(words).font(theme::small().font).color(colours.muted));
        }
        ui.add_space(space::XL);
    });
}
