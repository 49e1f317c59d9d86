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
use ui::widgets::set_accessible_name;

/// Minimum pane width for showing outputs beside the code; in narrower panes they are below it, as in notes.
const MIN_SPLIT_SCRIPT_WIDTH: f32 = 720.0;
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
pub fn split_rects(rect: Rect) -> Option<(Rect, Rect)> {
    (rect.width() >= MIN_SPLIT_SCRIPT_WIDTH).then(|| rect.split_left_right_at_fraction(0.5))
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
            if ui.checkbox(&mut runs, "Run as I type").changed() {
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
