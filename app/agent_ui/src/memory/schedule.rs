//! The page of schedules: add, run now, pause, delete.

use super::{ForgottenItem, MemoryAction, widgets};
use crate::panel_action::PanelAction;
use agent::schedule::{
    CATCH_UP_POLICY_TEXT, DEFAULT_CATCH_UP_SECS, Schedule, ScheduleOutcome, ScheduledWork, unused_name,
};
use anyhow::anyhow;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Key, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::{Command, Session, UnixMillis};
use host::clock;
use store::DocId;
use text::time_zone::ZoneClock;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, set_accessible_name, text_button};

/// Height of a row.
const SCHEDULE_ROW_HEIGHT: f32 = 52.0;

/// The example of the page without schedules: every working day at nine.
const EXAMPLE_TIME: &str = "0 9 * * 1-5";
const EXAMPLE_GOAL: &str = "List the open tasks of this week";

const SCHEDULED_WORK_KINDS: [&str; 3] = ["Ask an agent", "Run the open note", "Consolidate memory"];

/// The page that lists the schedules of automatic work.
pub struct SchedulesPage {
    when: String,
    goal: String,
    work: usize,
    /// The next time of the typed expression, and the expression that it was computed for.
    next: Option<(String, anyhow::Result<String>)>,
    /// The local time zone.
    zone: Option<ZoneClock>,
}

impl Default for SchedulesPage {
    fn default() -> Self {
        SchedulesPage {
            when: EXAMPLE_TIME.to_owned(),
            goal: String::new(),
            work: 0,
            next: None,
            zone: clock::load_zone(None).ok(),
        }
    }
}

fn now() -> UnixMillis {
    UnixMillis(jiff::Timestamp::now().as_millisecond())
}

/// Formats a time to the minute.
fn minute(at: UnixMillis) -> String {
    clock::format_moment(at.0).chars().take(16).collect()
}

impl SchedulesPage {
    /// Draws the page. `note`: the open note, which a schedule may run.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, note: Option<DocId>, actions: &mut Vec<PanelAction>) {
        ui.add_space(space::XL);
        self.form(ui, session, note, actions);
        ui.add_space(space::L);
        let mut all: Vec<(DocId, &Schedule)> = session.schedules().collect();
        all.sort_by_key(|(_, one)| (one.paused, one.next, one.name.clone()));
        if all.is_empty() {
            let none = "Schedules start nothing yet. They do while this window or `tracebook schedule watch` is open.";
            widgets::row(ui, |ui| widgets::show_text_line(ui, none, ThemeColors::of(ui).muted, Role::Label));
            if widgets::row(ui, |ui| text_button(ui, "Fill in an example", false).clicked()) {
                (self.work, self.when, self.goal) = (0, EXAMPLE_TIME.to_owned(), EXAMPLE_GOAL.to_owned());
            }
            return;
        }
        ui.spacing_mut().item_spacing.y = 0.0;
        let (margin, width) = widgets::page_column(ui);
        egui::ScrollArea::vertical().id_salt("schedule").auto_shrink(false).show_rows(
            ui,
            SCHEDULE_ROW_HEIGHT,
            all.len(),
            |ui, range| {
                for (id, one) in all.iter().skip(range.start).take(range.len()) {
                    let (rect, _) =
                        ui.allocate_exact_size(vec2(ui.available_width(), SCHEDULE_ROW_HEIGHT), Sense::hover());
                    let rect =
                        Rect::from_min_size(pos2(rect.left() + margin, rect.top()), vec2(width, SCHEDULE_ROW_HEIGHT));
                    line(ui, rect, session, *id, one, actions);
                }
            },
        );
    }

    /// Draws the form for a new schedule: when, and what.
    fn form(&mut self, ui: &mut Ui, session: &Session, note: Option<DocId>, actions: &mut Vec<PanelAction>) {
        let colours = ThemeColors::of(ui);
        let SchedulesPage { when, goal, work, .. } = self;
        let mut enters = false;
        widgets::row(ui, |ui| {
            *work = widgets::filter_chips(ui, "What begins", &SCHEDULED_WORK_KINDS, *work).unwrap_or(*work);
        });
        ui.add_space(space::XS);
        let mut add = false;
        widgets::row(ui, |ui| {
            let mut field = |ui: &mut Ui, text: &mut String, name: &str, hint: &str, width: f32| {
                let style = theme::small();
                let hint = egui::RichText::new(hint).font(style.font.clone()).color(colours.muted);
                let field = egui::TextEdit::singleline(text).id_salt(name).font(style.font).hint_text(hint);
                let response =
                    ui.add(field.desired_width(width).margin(egui::Margin::symmetric(8, 6))).accessible_name(name);
                enters |= response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            };
            field(ui, when, "When: minute, hour, day, month, weekday", EXAMPLE_TIME, 120.0);
            if *work == 0 {
                let width = (ui.available_width() - 96.0).max(120.0);
                field(ui, goal, "Goal", "Goal", width);
            }
            add = text_button(ui, "Add", true).clicked();
        });
        if self.next.as_ref().is_none_or(|(known, _)| *known != self.when) {
            let one = self.build_schedule(session, note, ScheduledWork::Consolidate);
            let next = one.map_or_else(
                || Err(anyhow!("Open a folder first.")),
                |one| one.next_upcoming(now()).map_err(anyhow::Error::from),
            );
            let by = self.zone.as_ref().map_or("UTC", |zone| zone.name.as_str());
            let next = next.map(|next| match next {
                Some(next) => format!("Next at {}, by {by}", minute(next)),
                None => format!("Starts {}", self.when.trim()),
            });
            let next = next.map_err(|why| anyhow!(ui::text::sentence(&why.to_string())));
            self.next = Some((self.when.clone(), next));
        }
        match &self.next {
            Some((_, Ok(next))) => {
                widgets::row(ui, |ui| widgets::show_text_line(ui, next, colours.muted, Role::Status))
            }
            Some((_, Err(why))) => {
                widgets::row(ui, |ui| widgets::show_text_line(ui, &why.to_string(), colours.bad, Role::Status))
            }
            None => {}
        }
        widgets::row(ui, |ui| widgets::show_small_text(ui, CATCH_UP_POLICY_TEXT, colours.muted));
        if !(add || enters) {
            return;
        }
        let work = match (self.work, note) {
            (0, _) if self.goal.trim().is_empty() => {
                return actions.push(PanelAction::Say("Enter a goal first.".to_owned()));
            }
            (0, note) => ScheduledWork::Goal {
                goal: self.goal.trim().to_owned(),
                note,
                agent: None,
                budget: None,
                mode: agent::memory::ReplayMode::Auto,
            },
            (1, Some(note)) => ScheduledWork::Cells { note, cell: None },
            (1, None) => return actions.push(PanelAction::Say("No note is open.".to_owned())),
            _ => ScheduledWork::Consolidate,
        };
        if let Some((_, Err(why))) = &self.next {
            // What was typed stays, to be corrected.
            return actions.push(PanelAction::Say(why.to_string()));
        }
        if let Some(what) = self.build_schedule(session, note, work) {
            self.goal.clear();
            let schedule = DocId::random(rand::random());
            actions.push(PanelAction::Do(Command::AddSchedule { schedule, what: Box::new(what) }));
        }
    }

    /// Builds a schedule from the form. Returns `None` if there's no volume.
    fn build_schedule(&self, session: &Session, note: Option<DocId>, work: ScheduledWork) -> Option<Schedule> {
        let here = note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
        let first = || session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id);
        let taken: Vec<&str> = session.schedules().map(|(_, one)| one.name.as_str()).collect();
        Some(Schedule {
            name: unused_name(&work, &taken),
            when: self.when.trim().to_owned(),
            offset: 0,
            zone: self.zone.clone(),
            volume: here.or_else(first)?,
            work,
            allow: Vec::new(),
            window: DEFAULT_CATCH_UP_SECS,
            paused: false,
            next: None,
            last: None,
            triggered: Vec::new(),
        })
    }
}

fn line(ui: &mut Ui, rect: Rect, session: &Session, id: DocId, one: &Schedule, actions: &mut Vec<PanelAction>) {
    let colours = ThemeColors::of(ui);
    let next = match (one.paused, one.next) {
        (true, _) => "paused".to_owned(),
        (false, Some(next)) => format!("next {}", minute(next)),
        (false, None) if one.waits_for_event() => "starts at its event".to_owned(),
        (false, None) => "no next time".to_owned(),
    };
    let last = one
        .last
        .as_ref()
        .map_or_else(|| "not run yet".to_owned(), |last| format!("last {}: {}", minute(last.at), last.describe()));
    let project = session.volume(one.volume).map_or("a closed project", |volume| volume.name.as_str());
    let about = format!("{}  ·  {next}  ·  {last}  ·  {project}", one.when_text());
    let words = ui::text::sentence(&one.work.describe());
    let response = ui.interact(rect, ui.scope_id().with(("schedule", id)), Sense::hover());
    set_accessible_name(&response, Role::ListItem, &format!("Schedule {}: {words}, {next}, {last}", one.name));
    if ui.rect_contains_pointer(rect) {
        ui.painter().rect_filled(
            rect.expand2(vec2(space::S, 0.0)),
            theme::CONTROL_CORNER,
            colours.hover_color(colours.paper),
        );
    }
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let works = session.is_schedule_active(id);
    let (icon, colour) = match (one.paused, works, one.last.as_ref().map(|last| &last.came)) {
        (true, _, _) => (icons::CIRCLE_DASHED, colours.muted),
        (false, true, _) => (icons::HOURGLASS, colours.accent),
        (false, false, Some(ScheduleOutcome::Failed { .. } | ScheduleOutcome::Skipped { .. })) => {
            (icons::WARNING, colours.warn)
        }
        (false, false, _) => (icons::CLOCK, colours.muted),
    };
    let at = pos2(rect.left() + 8.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    let layout = Layout::right_to_left(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(id).layout(layout));
    tools.spacing_mut().item_spacing.x = 0.0;
    let name = &one.name;
    if icon_button(&mut tools, icons::TRASH, &format!("Remove the schedule: {name}"), None).clicked() {
        let gone = ForgottenItem::Schedule { id, what: Box::new(one.clone()) };
        actions.push(PanelAction::Memory(Box::new(MemoryAction::Forget(gone))));
    }
    let (icon, word) = if one.paused { (icons::REDO, "Resume") } else { (icons::STOP, "Pause") };
    if icon_button(&mut tools, icon, &format!("{word}: {name}"), None).clicked() {
        actions.push(PanelAction::Do(Command::PauseSchedule { schedule: id, paused: !one.paused }));
    }
    if icon_button(&mut tools, icons::PLAY, &format!("Run now: {name}"), None).clicked() {
        actions.push(PanelAction::Do(Command::RunSchedule { schedule: id }));
    }
    let run = one.last.as_ref().and_then(|last| match &last.came {
        ScheduleOutcome::Begun { run } => *run,
        ScheduleOutcome::Ended { run, .. } => Some(*run),
        ScheduleOutcome::Done | ScheduleOutcome::Failed { .. } | ScheduleOutcome::Skipped { .. } => None,
    });
    if let Some(run) = run
        && icon_button(&mut tools, icons::GRAPH, &format!("Show the last run: {name}"), None).clicked()
    {
        actions.push(PanelAction::Memory(Box::new(MemoryAction::ShowRun(run, String::new()))));
    }
    let right = tools.min_rect().left() - space::S;
    widgets::paint_two_lines(ui, rect, rect.left() + 28.0, right, (&words, &about), one.paused);
}
