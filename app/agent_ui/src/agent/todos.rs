//! A run's todos, visible and editable while it works, and its usage of iterations, tokens and money.

use super::{key, labels};
use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::{Role, Toggled};
use egui::{Align2, Key, Modifiers, Sense, Ui, vec2};
use engine::{AgentRun, Command};
use store::{DocId, RunEnding, TodoItem, TodoStatus};
use text::untrusted_text;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name, text_button};

/// Maximum height of the todo list without scrolling.
const MAX_TODO_LIST_HEIGHT: f32 = 168.0;
/// Number of iterations that one click adds.
const EXTRA_ITERATIONS: u64 = 20;

/// View state of a run's todos.
#[derive(Default)]
pub(super) struct TodoListView {
    /// The run whose todos the user has expanded or collapsed, and whether they are expanded.
    open: Option<(DocId, bool)>,
    /// The id and the text of the todo being edited.
    edit: Option<(String, String)>,
    new: String,
    focus: Option<String>,
    /// The todo that the user deleted last, its run and its place.
    deleted: Option<(DocId, usize, TodoItem)>,
}

impl TodoListView {
    /// Draws the list. It's expanded while the run works, unless an approval is pending, which needs the space.
    pub(super) fn show(&mut self, ui: &mut Ui, run: &AgentRun, actions: &mut Vec<PanelAction>) {
        let deleted = self.deleted.as_ref().filter(|(of, _, deleted)| {
            // If it was written again, it isn't missing.
            *of == run.id && run.todos.iter().all(|todo| todo.id != deleted.id)
        });
        let deleted = deleted.map(|(_, at, todo)| (*at, todo.clone()));
        if run.todos.is_empty() && deleted.is_none() {
            return;
        }
        let open = self
            .open
            .filter(|(of, _)| *of == run.id)
            .map_or(super::works(run) && run.pending().next().is_none(), |(_, open)| open);
        let done = run.todos.iter().filter(|todo| labels::is_over(todo)).count();
        let title = format!("Todos: {done} of {}", run.todos.len());
        if show_header(ui, &title, open) {
            self.open = Some((run.id, !open));
        }
        if !open {
            return;
        }
        let mut changed: Option<Vec<TodoItem>> = None;
        ui.spacing_mut().item_spacing.y = 0.0;
        egui::ScrollArea::vertical().id_salt("todos").max_height(MAX_TODO_LIST_HEIGHT).show(ui, |ui| {
            for at in 0..run.todos.len() {
                if let Some(todos) = self.todo(ui, &run.todos, at) {
                    self.note_deletion(run, at, &todos);
                    changed = Some(todos);
                }
            }
        });
        if let Some((at, todo)) = deleted.filter(|(_, todo)| show_deleted(ui, todo)) {
            let mut todos = run.todos.clone();
            todos.insert(at.min(todos.len()), todo);
            (changed, self.deleted) = (Some(todos), None);
        }
        let hint = egui::RichText::new("Add a todo").font(theme::small().font).color(ThemeColors::of(ui).muted);
        let field = egui::TextEdit::singleline(&mut self.new)
            .id_salt("new todo")
            .font(theme::small().font)
            .hint_text(hint)
            .margin(egui::Margin::symmetric(8, 4))
            .desired_width(f32::INFINITY);
        let response = ui.add(field).accessible_name("Add a todo");
        if response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter)) && !self.new.trim().is_empty() {
            let mut todos = run.todos.clone();
            let id = format!("u{:08x}", rand::random::<u32>());
            let content = std::mem::take(&mut self.new).trim().to_owned();
            let status = TodoStatus::Pending;
            todos.push(TodoItem { id, content, status, priority: 2, due: None, repeat: None });
            changed = Some(todos);
            response.request_focus();
        }
        ui.add_space(space::XS);
        if let Some(todos) = changed {
            actions.push(PanelAction::Do(Command::SetTodos { run: run.id, todos }));
        }
    }

    /// Keeps the todo at a place if a new list lacks it, so that it can be brought back.
    fn note_deletion(&mut self, run: &AgentRun, at: usize, todos: &[TodoItem]) {
        if let Some(gone) = run.todos.get(at).filter(|_| todos.len() < run.todos.len()) {
            self.deleted = Some((run.id, at, gone.clone()));
        }
    }

    /// Draws a todo. Returns the new list if the user changed it.
    fn todo(&mut self, ui: &mut Ui, all: &[TodoItem], at: usize) -> Option<Vec<TodoItem>> {
        let todo = all.get(at)?;
        let colours = ThemeColors::of(ui);
        let with = |change: &dyn Fn(&mut TodoItem)| {
            let mut todos = all.to_vec();
            if let Some(todo) = todos.get_mut(at) {
                change(todo);
            }
            Some(todos)
        };
        if let Some((_, text)) = self.edit.as_mut().filter(|(id, _)| *id == todo.id) {
            let field = egui::TextEdit::singleline(text)
                .id_salt("todo")
                .font(theme::small().font)
                .margin(egui::Margin::symmetric(8, 4))
                .desired_width(f32::INFINITY);
            let response = ui.add(field).accessible_name("Text of the todo");
            if std::mem::take(&mut self.focus).is_some() {
                response.request_focus();
            }
            if !response.lost_focus() {
                return None;
            }
            let (_, text) = self.edit.take()?;
            let keeps = !ui.input(|input| input.key_pressed(Key::Escape)) && !text.trim().is_empty();
            return if keeps { with(&|todo| text.trim().clone_into(&mut todo.content)) } else { None };
        }
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
        // The id depends on the todo, so that keyboard focus follows it when it's moved.
        let response = ui.interact(rect, egui::Id::unique(("todo", &todo.id)), Sense::click());
        let over = labels::is_over(todo);
        if response.hovered() {
            ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
        }
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        let (icon, colour) = match todo.status {
            TodoStatus::Pending => (icons::CIRCLE, colours.muted),
            TodoStatus::InProgress => (icons::HOURGLASS, colours.accent),
            TodoStatus::Completed => (icons::CHECK_CIRCLE, colours.ok),
            TodoStatus::Cancelled => (icons::X_CIRCLE, colours.muted),
        };
        let middle = rect.left_center() + vec2(14.0, 0.0);
        ui.painter().text(middle, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
        let room = rect.width() - 30.0 - 2.0 * size::MIN_CLICK_HEIGHT;
        let ink = if over { colours.muted } else { colours.ink };
        paint_clipped_text(ui, rect.left_center() + vec2(30.0, -10.0), room, &todo.content, &theme::small(), ink);
        response.widget_info(|| {
            egui::WidgetInfo::selected(Role::CheckBox, true, over, untrusted_text::escape_line(&todo.content))
        });
        let toggled = if over { Toggled::True } else { Toggled::False };
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_toggled(toggled));
        let mut child = ui.new_child(
            egui::UiBuilder::new()
                .max_rect(rect)
                .id_salt(("todo", &todo.id))
                .layout(egui::Layout::right_to_left(egui::Align::Center)),
        );
        child.spacing_mut().item_spacing.x = 0.0;
        let gone = icon_button(&mut child, icons::X, &format!("Delete the todo: {}", todo.content), None).clicked();
        let edits =
            icon_button(&mut child, icons::PENCIL, &format!("Change the todo: {}", todo.content), None).clicked();
        let focused = response.has_focus();
        if focused && ui.input(|input| input.modifiers.alt) {
            let filter = egui::EventFilter { vertical_arrows: true, ..egui::EventFilter::default() };
            ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        }
        if edits || (focused && key(ui, Key::F2, Modifiers::NONE)) {
            self.edit = Some((todo.id.clone(), todo.content.clone()));
            self.focus = Some(todo.id.clone());
            return None;
        }
        if gone || (focused && key(ui, Key::Delete, Modifiers::NONE)) {
            let mut todos = all.to_vec();
            todos.remove(at);
            return Some(todos);
        }
        let up = focused && at > 0 && key(ui, Key::ArrowUp, Modifiers::ALT);
        let down = focused && at + 1 < all.len() && key(ui, Key::ArrowDown, Modifiers::ALT);
        if up || down {
            let mut todos = all.to_vec();
            todos.swap(at, if up { at - 1 } else { at + 1 });
            return Some(todos);
        }
        if response.clicked() {
            let to = if over { TodoStatus::Pending } else { TodoStatus::Completed };
            return with(&|todo| todo.status = to);
        }
        response.on_hover_text("Click ticks. Alt with an arrow moves, F2 changes, Delete deletes.");
        None
    }
}

/// Draws the row of a deleted todo. Returns whether the user wants it back.
fn show_deleted(ui: &mut Ui, todo: &TodoItem) -> bool {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
    let layout = egui::Layout::right_to_left(egui::Align::Center);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt("deleted todo").layout(layout));
    let button = text_button(&mut child, "Undo", false);
    set_accessible_name(&button, Role::Button, &format!("Undo the deletion of: {}", todo.content));
    let (at, room) = (rect.left_center() + vec2(30.0, -10.0), button.rect.left() - rect.left() - 30.0 - space::S);
    let text = format!("Deleted: {}", todo.content);
    paint_clipped_text(ui, at, room, &text, &theme::small(), ThemeColors::of(ui).muted);
    button.clicked()
}

/// Draws the header that expands or collapses a list. Returns whether it was clicked.
pub(super) fn show_header(ui: &mut Ui, title: &str, open: bool) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::click());
    let colours = ThemeColors::of(ui);
    ui::widgets::paint_hover_fill(ui, &response);
    let caret = if open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
    let at = rect.left_center() + vec2(14.0, 0.0);
    ui.painter().text(at, Align2::CENTER_CENTER, caret, theme::icon_font(12.0), colours.muted);
    let bold = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
    paint_clipped_text(ui, rect.left_center() + vec2(30.0, -10.0), rect.width() - 30.0, title, &bold, colours.ink);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, title);
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(open));
    response.clicked()
}

/// Draws a run's usage, and the actions that its state allows. Returns whether the user wants to connect a model.
pub(super) fn show_run_usage(ui: &mut Ui, run: &AgentRun, actions: &mut Vec<PanelAction>) -> bool {
    let about = &run.about;
    let budget = about.budget.map(|budget| format!(" of {}", labels::dollars_label(budget))).unwrap_or_default();
    let said = format!(
        "Iteration {} of {}  ·  {}  ·  {}{budget}",
        about.iteration,
        about.limit,
        labels::tokens_label(&about.spent),
        labels::cost_label(&about.spent)
    );
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 20.0), Sense::hover());
    let style = theme::TypeStyle { font: theme::tabular_font(12.0), line: 16.0 };
    paint_clipped_text(ui, rect.left_center() - vec2(0.0, 8.0), rect.width(), &said, &style, colours.muted);
    set_accessible_name(&response, Role::Label, &said);
    // The used share of the budget if there is one, otherwise of the iterations.
    let part = match (about.budget, about.spent.cost) {
        (Some(budget), Some(cost)) if budget > 0.0 => cost / budget,
        _ => about.iteration as f64 / about.limit.max(1) as f64,
    };
    let part = part.clamp(0.0, 1.0) as f32;
    let (bar, _) = ui.allocate_exact_size(vec2(ui.available_width(), 3.0), Sense::hover());
    ui.painter().rect_filled(bar, 1.5, colours.sunken);
    let colour = if part >= 1.0 { colours.warn } else { colours.accent };
    ui.painter().rect_filled(bar.with_max_x(bar.left() + bar.width() * part), 1.5, colour);
    ui.add_space(space::XS);
    if super::works(run) {
        return false;
    }
    let Some(ending) = about.ending.filter(|ending| *ending != RunEnding::Done) else {
        if about.ending.is_none() {
            stopped(ui, run.id, "It was interrupted.", &[("Resume run", None, about.budget)], actions);
        }
        return false;
    };
    let why = super::last_error(run).unwrap_or_else(|| labels::ending_label(ending).to_owned());
    let needs = about.iteration >= about.limit;
    let more = ("Allow 20 more iterations", Some(EXTRA_ITERATIONS), about.budget);
    let offers = match ending {
        RunEnding::Budget => {
            let double = about.budget.map(|budget| (budget * 2.0).max(0.01));
            vec![("Double its budget", needs.then_some(EXTRA_ITERATIONS), double)]
        }
        _ if needs => vec![more],
        RunEnding::Limit => vec![more],
        RunEnding::Done | RunEnding::Cancelled | RunEnding::Failed => vec![("Resume run", None, about.budget)],
    };
    stopped(ui, run.id, &why, &offers, actions);
    // No model has answered: another model may do so.
    let lacks_model = ending == RunEnding::Failed && about.iteration == 0;
    lacks_model && text_button(ui, "Connect a model", false).clicked()
}

/// Draws why a run has stopped, and how to continue it.
fn stopped(
    ui: &mut Ui,
    run: DocId,
    why: &str,
    offers: &[(&str, Option<u64>, Option<f64>)],
    actions: &mut Vec<PanelAction>,
) {
    let colours = ThemeColors::of(ui);
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = ui.available_width() - space::XL;
    job.wrap.max_rows = 6;
    let small = theme::small();
    job.append(&untrusted_text::escape_block(why), 0.0, ui::widgets::format(small.font, small.line, colours.ink));
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), galley.size().y), Sense::hover());
    let at = rect.left_top() + vec2(8.0, 10.0);
    ui.painter().text(at, Align2::CENTER_CENTER, icons::WARNING, theme::icon_font(size::ICON_SIZE), colours.warn);
    ui.painter().galley(rect.min + vec2(space::XL, 0.0), galley, colours.ink);
    set_accessible_name(&response, Role::Label, why);
    ui.add_space(space::XS);
    ui.horizontal_wrapped(|ui| {
        for (words, more, budget) in offers {
            if text_button(ui, words, false).clicked() {
                actions.push(PanelAction::Do(Command::ResumeRun { run, more: *more, budget: *budget }));
            }
        }
    });
    ui.add_space(space::XS);
}
