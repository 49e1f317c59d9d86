//! The agenda: the tasks of all notes by day. Clicking a checkbox edits the task's note.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Stroke, StrokeKind, Ui, Vec2, pos2, vec2};
use engine::agenda::{AgendaEntry, AgendaSlot, agenda_tasks};
use engine::commands::CommandId;
use engine::{Command, Session};
use host::clock;
use notebook::actions::PageAction;
use std::collections::BTreeSet;
use text::markdown::dialect;
use text::task::{CalendarDay, NORMAL_PRIORITY};
use text::untrusted_text;
use ui::empty_state::show_message;
use ui::text::shown_name;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{self, paint_clipped_text, set_accessible_name};

/// Maximum width of the column with note names, in points.
const MAX_NOTE_NAME_WIDTH: f32 = 120.0;

enum AgendaRow {
    Title(AgendaSlot, usize),
    /// A task, and its text as displayed.
    Task(AgendaEntry, String),
}

/// The agenda page, with its rows cached until something changes.
#[derive(Default)]
pub(crate) struct AgendaPage {
    query: String,
    done: bool,
    made: Option<(Vec<u64>, String, bool, CalendarDay)>,
    lines: Vec<AgendaRow>,
    folded: BTreeSet<&'static str>,
}

impl AgendaPage {
    fn refresh(&mut self, session: &Session, today: CalendarDay) {
        let state: Vec<u64> = session.volumes().map(|volume| volume.links.revision()).collect();
        let key = (state, self.query.clone(), self.done, today);
        if self.made.as_ref() == Some(&key) {
            return;
        }
        self.made = Some(key);
        let all = agenda_tasks(session, &self.query, self.done);
        self.lines.clear();
        let mut groups: std::collections::BTreeMap<AgendaSlot, Vec<AgendaEntry>> = std::collections::BTreeMap::new();
        for entry in all {
            groups.entry(AgendaSlot::of(&entry.task, today)).or_default().push(entry);
        }
        for (when, entries) in groups {
            self.lines.push(AgendaRow::Title(when, entries.len()));
            if !self.folded.contains(when.title()) {
                let shown = |entry: AgendaEntry| {
                    let words = dialect::plain_text(&entry.task.text);
                    AgendaRow::Task(entry, words)
                };
                self.lines.extend(entries.into_iter().map(shown));
            }
        }
    }

    pub(crate) fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) {
        let today = clock::today();
        let colours = ThemeColors::of(ui);
        let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
        let margin = (ui.available_width() - width) / 2.0;
        let label = if self.done { "Hide done tasks" } else { "Show done tasks" };
        let words = ("Filter the agenda", "Filter by words, notes or tags");
        if ui::layout::filter(ui, &mut self.query, words, label) {
            self.done = !self.done;
        }
        self.refresh(session, today);
        if self.lines.is_empty() {
            if self.query.is_empty() {
                let text = "The agenda shows the tasks of all notes by day. Start a line with - [ ] to add one.";
                if show_message(ui, text, Some("Open today's note"), "") {
                    actions.push(PageAction::Run(CommandId::NoteToday));
                }
                return;
            }
            let at = pos2(ui.max_rect().left() + margin, ui.cursor().top());
            ui.painter().text(at, Align2::LEFT_TOP, "No matching tasks", theme::small().font, colours.muted);
            return;
        }
        let mut folded = None;
        egui::ScrollArea::vertical().id_salt("agenda").auto_shrink(false).show_rows(
            ui,
            size::MIN_CLICK_HEIGHT + space::XS,
            self.lines.len(),
            |ui, range| {
                ui.spacing_mut().item_spacing.y = 0.0;
                for line in self.lines.iter().skip(range.start).take(range.len()) {
                    let wanted = vec2(ui.available_width(), size::MIN_CLICK_HEIGHT + space::XS);
                    let (rect, response) = ui.allocate_exact_size(wanted, Sense::click());
                    let rect =
                        Rect::from_x_y_ranges(rect.left() + margin..=rect.left() + margin + width, rect.y_range());
                    match line {
                        AgendaRow::Title(when, count) => {
                            title(ui, rect, &response, *when, *count);
                            if response.clicked() {
                                folded = Some(when.title());
                            }
                        }
                        AgendaRow::Task(entry, words) => task(ui, rect, &response, (entry, words), today, actions),
                    }
                }
            },
        );
        if let Some(title) = folded {
            if !self.folded.remove(title) {
                self.folded.insert(title);
            }
            self.made = None;
        }
    }
}

fn title(ui: &Ui, rect: Rect, response: &egui::Response, when: AgendaSlot, count: usize) {
    let colours = ThemeColors::of(ui);
    let colour = if when == AgendaSlot::Overdue { colours.bad } else { colours.ink };
    let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
    let at = pos2(rect.left(), rect.bottom() - 24.0);
    let width = paint_clipped_text(ui, at, rect.width(), when.title(), &style, colour);
    let count_at = pos2(at.x + width + space::S, at.y + 2.0);
    paint_clipped_text(ui, count_at, 80.0, &count.to_string(), &theme::caption(), colours.muted);
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    widgets::paint_focus_ring(ui, response, CONTROL_CORNER);
    set_accessible_name(response, Role::Heading, &format!("{}: {count}", when.title()));
}

fn task(
    ui: &Ui,
    rect: Rect,
    response: &egui::Response,
    (entry, words): (&AgendaEntry, &str),
    today: CalendarDay,
    actions: &mut Vec<PageAction>,
) {
    let colours = ThemeColors::of(ui);
    let task = &entry.task;
    if response.hovered() {
        ui.painter().rect_filled(rect.expand2(vec2(space::S, 0.0)), CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    widgets::paint_focus_ring(ui, response, CONTROL_CORNER);
    set_accessible_name(response, Role::Link, words);
    let middle = rect.center().y;
    let square = Rect::from_center_size(pos2(rect.left() + 8.0, middle), Vec2::splat(16.0));
    let id = ui.scope_id().with(("task", entry.note, task.at));
    let check = ui.interact(square.expand(6.0), id, Sense::click());
    let done = task.is_done();
    check.widget_info(|| egui::WidgetInfo::selected(Role::CheckBox, true, done, untrusted_text::escape_line(words)));
    widgets::paint_focus_ring(ui, &check, CONTROL_CORNER);
    if done {
        ui.painter().rect_filled(square, 4.0, colours.ok);
        let tick = ui::icons::CHECK;
        ui.painter().text(square.center(), Align2::CENTER_CENTER, tick, theme::icon_font(12.0), colours.paper);
    } else {
        let colour = if check.hovered() { colours.accent } else { colours.muted };
        ui.painter().rect_stroke(square, 4.0, Stroke::new(1.5, colour), StrokeKind::Inside);
    }
    let mut left = square.right() + space::M;
    if task.priority != NORMAL_PRIORITY {
        let (mark, colour) = match task.priority {
            5 => ("!!!", colours.bad),
            4 => ("!!", colours.warn),
            3 => ("!", colours.warn),
            _ => ("low", colours.muted),
        };
        let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 12.0), line: 16.0 };
        left += paint_clipped_text(ui, pos2(left, middle - 8.0), 40.0, mark, &style, colour) + space::S;
    }
    let mut right = rect.right();
    let name = shown_name(entry.path.rsplit('/').next().unwrap_or(&entry.path));
    // Dates and notes are aligned in columns.
    let room = (rect.width() * 0.22).min(MAX_NOTE_NAME_WIDTH);
    let wide = ui
        .painter()
        .layout_no_wrap(untrusted_text::escape_line(name).into_owned(), theme::caption().font, colours.muted)
        .size()
        .x
        .min(room);
    paint_clipped_text(ui, pos2(right - wide, middle - 8.0), room, name, &theme::caption(), colours.muted);
    right -= room + space::L;
    if let Some(day) = task.agenda_day() {
        let late = day < today && !done;
        let when = said(day, today);
        let colour = if late { colours.bad } else { colours.muted };
        let drawn = ui.painter().text(pos2(right, middle), Align2::RIGHT_CENTER, when, theme::caption().font, colour);
        right -= drawn.width() + space::S;
    }
    if task.repeat.is_some() {
        let at = pos2(right, middle);
        ui.painter().text(at, Align2::RIGHT_CENTER, ui::icons::REDO, theme::icon_font(13.0), colours.muted);
        right -= 14.0 + space::S;
    }
    right -= space::XS;
    let colour = if done { colours.muted } else { colours.ink };
    paint_clipped_text(ui, pos2(left, middle - 10.0), right - left, words, &theme::small(), colour);
    if check.clicked() {
        let (note, at, words) = (entry.note, task.at, task.text.clone());
        actions.push(PageAction::Do(Command::Check { note, at, words, today }));
    } else if response.clicked() {
        actions.push(PageAction::OpenAt(entry.note, task.at));
    }
}

/// Returns a day's label: today, tomorrow, yesterday or the date.
fn said(day: CalendarDay, today: CalendarDay) -> String {
    match day.0 - today.0 {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        -1 => "yesterday".to_owned(),
        _ => day.to_string(),
    }
}
