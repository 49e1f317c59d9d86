//! What all projects remember, as a page: experiences, and what was done lately by the logs of sessions; filtered by
//! words, tier, outcome and project; opened in their note to be edited; forgotten, and brought back.

use super::parts::{self, LINE};
use super::{Forgotten, Shelf, Wish, file};
use crate::clock;
use crate::tokens::{self, Colours, size, space};
use crate::window::controls::{icon_button, named, text_button};
use crate::window::page::Action;
use crate::window::{icons, states, views};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Id, Key, Layout, Rect, Sense, Ui, UiBuilder, pos2, vec2};
use engine::Session;
use engine::memory::experience::{Experience, Outcome, Tier};
use engine::memory::{Memory, PROJECTS, log};
use engine::task::Day;
use std::collections::BTreeSet;
use store::DocId;

const TIERS: [(&str, Option<Tier>); 4] = [
    ("All tiers", None),
    ("Episodic", Some(Tier::Episodic)),
    ("Short term", Some(Tier::ShortTerm)),
    ("Long term", Some(Tier::LongTerm)),
];

const OUTCOMES: [(&str, Option<Outcome>); 4] = [
    ("All outcomes", None),
    ("Went well", Some(Outcome::Success)),
    ("Failed", Some(Outcome::Failure)),
    ("Recovered", Some(Outcome::SuccessWithRecovery)),
];

/// By what the list is narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Filter {
    query: String,
    tier: usize,
    outcome: usize,
    project: Option<String>,
}

impl Filter {
    fn fits(&self, one: &Experience) -> bool {
        let words = [&one.primary_goal, &one.learnings_or_issues].into_iter().chain(&one.components_used);
        self.has(one.tier, Some(one.final_outcome), &one.project_name, words)
    }

    /// What was done lately is short-term memory.
    fn fits_task(&self, task: &log::Task, project: &str) -> bool {
        let words = [&task.goal, &task.results].into_iter().chain(&task.actions);
        self.has(Tier::ShortTerm, task.outcome(), project, words)
    }

    fn has<'a>(
        &self,
        own: Tier,
        came: Option<Outcome>,
        project: &str,
        mut words: impl Iterator<Item = &'a String>,
    ) -> bool {
        let tier = TIERS.get(self.tier).and_then(|(_, tier)| *tier);
        let outcome = OUTCOMES.get(self.outcome).and_then(|(_, outcome)| *outcome);
        let query = self.query.trim().to_lowercase();
        tier.is_none_or(|tier| own == tier)
            && outcome.is_none_or(|outcome| came == Some(outcome))
            && self.project.as_ref().is_none_or(|wanted| project == wanted)
            && words.any(|text| text.to_lowercase().contains(&query))
    }
}

/// Where on the shelf something lies that is listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    volume: usize,
    number: usize,
    /// Whether it is a task of a log, and no experience.
    logged: bool,
}

/// The page.
#[derive(Default)]
pub(in crate::window) struct Experiences {
    shelf: Shelf<Memory>,
    filter: Filter,
    /// For what the rows were made: what was read, the filter, and how many were forgotten meanwhile.
    made: Option<(u64, Filter, usize)>,
    rows: Vec<Place>,
    projects: Vec<String>,
    /// The one that is unfolded.
    open: Option<String>,
    /// It shall be brought into sight.
    reveal: bool,
    /// What was forgotten since the files were read.
    gone: BTreeSet<String>,
}

/// How an experience stands, if it does not count.
fn state(one: &Experience, today: Day) -> Option<String> {
    match (one.counts(today), one.superseded_by.as_str()) {
        (true, _) => None,
        (false, "") => Some(format!("expired on {}", one.expires)),
        (false, by) => Some(format!("superseded by {by}")),
    }
}

impl Experiences {
    /// The page with one of them unfolded.
    pub(in crate::window) fn at(id: String) -> Experiences {
        Experiences { open: Some(id), reveal: true, ..Experiences::default() }
    }

    /// What was forgotten is there again.
    pub(in crate::window) fn undone(&mut self) {
        self.gone.clear();
    }

    fn refresh(&mut self, ctx: &egui::Context, session: &Session) {
        let before = self.shelf.revision;
        self.shelf.refresh(ctx, session);
        if self.shelf.revision != before {
            self.gone.clear();
        }
        let key = (self.shelf.revision, self.filter.clone(), self.gone.len());
        if self.made.as_ref() == Some(&key) {
            return;
        }
        self.made = Some(key);
        let mut projects = BTreeSet::new();
        let mut rows: Vec<(&str, Place)> = Vec::new();
        for (kept, volume) in self.shelf.kept.iter().zip(0..) {
            for (entry, number) in kept.holds.entries.iter().zip(0..) {
                let one = &entry.experience;
                projects.insert(one.project_name.clone());
                let open = self.reveal && self.open.as_ref() == Some(&one.experience_id);
                if (self.filter.fits(one) || open) && !self.gone.contains(&one.experience_id) {
                    rows.push((&one.timestamp, Place { volume, number, logged: false }));
                }
            }
            for (entry, number) in kept.holds.logged.iter().zip(0..) {
                let project = project(&entry.path, &kept.name);
                projects.insert(project.to_owned());
                if self.filter.fits_task(&entry.task, project) && !self.gone.contains(&name(entry)) {
                    rows.push((&entry.task.known.timestamp, Place { volume, number, logged: true }));
                }
            }
        }
        rows.sort_by(|one, other| other.cmp(one));
        self.rows = rows.into_iter().map(|(_, place)| place).collect();
        self.projects = projects.into_iter().collect();
    }

    /// Draws it.
    pub(in crate::window) fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<Action>) {
        self.refresh(ui.ctx(), session);
        if self.shelf.revision == 0 {
            states::sentence(ui, "Reading what is remembered…", None, "");
            return;
        }
        if self.shelf.kept.iter().all(|kept| kept.holds.entries.is_empty() && kept.holds.logged.is_empty()) {
            let hint = "What an agent did is kept here, with what can be learned of it; what bears on a later question \
                        is shown before it is asked.";
            states::sentence(ui, "Nothing is remembered yet.", None, hint);
            return;
        }
        let words = ("Filter memory", "Filter by what was wanted or learned");
        if views::filter(ui, &mut self.filter.query, words, "Trace library") {
            actions.push(Action::Run("view.traces"));
        }
        self.choices(ui);
        ui.add_space(space::S);
        let (margin, width) = parts::column(ui);
        if self.rows.is_empty() {
            let at = pos2(ui.max_rect().left() + margin, ui.cursor().top());
            let none = "Nothing that is remembered fits these filters.";
            ui.painter().text(at, Align2::LEFT_TOP, none, tokens::small().font, Colours::of(ui).muted);
            return;
        }
        let today = clock::today();
        ui.spacing_mut().item_spacing.y = 0.0;
        let problems: Vec<String> = self.shelf.problems().map(str::to_owned).collect();
        let Experiences { shelf, rows, open, reveal, gone, .. } = self;
        let shown = |place: &Place| {
            let kept = shelf.kept.get(place.volume)?;
            let one = match place.logged {
                false => Shown::experience(kept.holds.entries.get(place.number)?, today),
                true => Shown::task(kept.holds.logged.get(place.number)?, &kept.name),
            };
            Some((kept.volume, one))
        };
        let mut show = None;
        egui::ScrollArea::vertical().id_salt("experiences").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            let opened = open.as_ref().and_then(|open| {
                rows.iter().position(|place| {
                    let kept = shelf.kept.get(place.volume).map(|kept| &kept.holds);
                    kept.is_some_and(|kept| match place.logged {
                        false => {
                            kept.entries.get(place.number).is_some_and(|one| one.experience.experience_id == *open)
                        }
                        true => kept.logged.get(place.number).is_some_and(|one| name(one) == *open),
                    })
                })
            });
            let details = opened
                .and_then(|place| shown(rows.get(place)?))
                .map(|(_, one)| (parts::facts(ui, &one.facts, width - space::XL), parts::spoken(&one.facts)));
            let more = details.as_ref().map_or(0.0, |(galley, _)| galley.size().y + size::HIT + 2.0 * space::M);
            let notes = problems.len() as f32 * 24.0;
            ui.set_height(rows.len() as f32 * LINE + more + notes + space::XL);
            let page = ui.max_rect();
            if std::mem::take(reveal)
                && let Some(place) = opened
            {
                let top = page.top() + place as f32 * LINE;
                ui.scroll_to_rect(Rect::from_min_size(pos2(page.left(), top), vec2(width, LINE + more)), None);
            }
            for (place, row) in rows.iter().enumerate() {
                let behind = opened.is_some_and(|opened| place > opened);
                let top = page.top() + place as f32 * LINE + if behind { more } else { 0.0 };
                let is = opened == Some(place);
                let height = LINE + if is { more } else { 0.0 };
                if top + height < page.top() + viewport.top() || top > page.top() + viewport.bottom() {
                    continue;
                }
                let Some((volume, one)) = shown(row) else { continue };
                let rect = Rect::from_min_size(pos2(page.left() + margin, top), vec2(width, LINE));
                let note = file(session, volume, one.path);
                let asked = line(ui, rect, &one, is);
                let below = Rect::from_min_size(rect.left_bottom() + vec2(space::XL, space::S), vec2(width, more));
                let asked = match details.as_ref().filter(|_| is) {
                    Some((galley, spoken)) => unfolded(ui, below, &one, galley, spoken).or(asked),
                    None => asked,
                };
                match (asked, note) {
                    (Some(Asked::Fold), _) => *open = (!is).then(|| one.name.clone()),
                    (Some(Asked::Edit), Some(note)) => actions.push(Action::OpenAt(note, one.at)),
                    (Some(Asked::Forget), Some(note)) if !one.text.is_empty() => {
                        gone.insert(one.name.clone());
                        let forgotten = Forgotten::Entry { note, at: one.at, text: one.text.to_owned() };
                        actions.push(Action::Memory(Box::new(Wish::Forget(forgotten))));
                    }
                    (Some(Asked::Forget), Some(note)) => actions.push(Action::OpenAt(note, one.at)),
                    (Some(Asked::Edit | Asked::Forget), None) => {
                        actions.push(Action::Say("Its note is not known yet; try again in a moment.".to_owned()));
                    }
                    (Some(Asked::Run(run, step)), _) => {
                        actions.push(Action::Memory(Box::new(Wish::ShowRun(run, step))));
                    }
                    (Some(Asked::Other(id)), _) => show = Some(id),
                    (None, _) => {}
                }
            }
            let mut top = page.top() + rows.len() as f32 * LINE + more + space::S;
            for problem in &problems {
                let rect = Rect::from_min_size(pos2(page.left() + margin, top), vec2(width, 20.0));
                let colour = Colours::of(ui).bad;
                crate::window::controls::clipped(ui, rect.min, width, problem, &tokens::caption(), colour);
                let id = ui.scope_id().with(("problem of memory", problem));
                named(&ui.interact(rect, id, Sense::hover()), Role::Label, problem);
                top += 24.0;
            }
        });
        if let Some(id) = show {
            (self.open, self.reveal, self.made) = (Some(id), true, None);
        }
    }

    fn choices(&mut self, ui: &mut Ui) {
        let Experiences { filter, projects, .. } = self;
        parts::row(ui, |ui| {
            let names = TIERS.map(|(name, _)| name);
            filter.tier = parts::chips(ui, "Tier", &names, filter.tier).unwrap_or(filter.tier);
            let names = OUTCOMES.map(|(name, _)| name);
            filter.outcome = parts::chips(ui, "Outcome", &names, filter.outcome).unwrap_or(filter.outcome);
        });
        if projects.len() > 1 {
            ui.add_space(space::XS);
            parts::row(ui, |ui| {
                let names: Vec<&str> =
                    std::iter::once("All projects").chain(projects.iter().map(String::as_str)).collect();
                let at = projects.iter().position(|name| Some(name) == filter.project.as_ref()).map_or(0, |at| at + 1);
                if let Some(chosen) = parts::chips(ui, "Project", &names, at) {
                    filter.project = chosen.checked_sub(1).and_then(|at| projects.get(at)).cloned();
                }
            });
        }
    }
}

/// The project of a file of memory: the one in whose folder it lies, else its volume.
fn project<'a>(path: &'a str, volume: &'a str) -> &'a str {
    let below = path.strip_prefix(PROJECTS).and_then(|rest| rest.strip_prefix('/'));
    below.and_then(|rest| rest.split('/').next()).unwrap_or(volume)
}

/// By what a task of a log is known here.
fn name(entry: &log::Entry) -> String {
    format!("{} {} {}", entry.path, entry.task.known.timestamp, entry.task.known.run)
}

/// Something that is remembered, as it is listed.
struct Shown<'a> {
    name: String,
    /// For who listens: what it is, and its goal.
    label: String,
    path: &'a str,
    at: usize,
    text: &'a str,
    goal: &'a str,
    about: String,
    came: Option<Outcome>,
    /// It does not count.
    dim: bool,
    run: Option<(DocId, String)>,
    superseded_by: &'a str,
    facts: Vec<(&'static str, String)>,
}

impl<'a> Shown<'a> {
    fn experience(entry: &'a engine::memory::experience::Entry, today: Day) -> Shown<'a> {
        let one = &entry.experience;
        let goal = one.primary_goal.lines().next().unwrap_or_default();
        let state = state(one, today);
        let mut about = vec![one.final_outcome.word().replace('_', " "), one.tier.word().replace('_', " ")];
        about.push(one.project_name.clone());
        about.extend((one.count > 1).then(|| format!("{} times", one.count)));
        about.push(one.timestamp.get(..10).unwrap_or_default().to_owned());
        about.extend(state.clone());
        about.retain(|part| !part.is_empty());
        let run = one.source.strip_prefix("run ").and_then(|id| id.trim().parse::<DocId>().ok());
        let step = one.step.split_once('#').map_or("", |(_, step)| step).to_owned();
        Shown {
            name: one.experience_id.clone(),
            label: format!("Experience: {goal}"),
            path: &entry.path,
            at: entry.at,
            text: &entry.text,
            goal,
            about: about.join("  ·  "),
            came: Some(one.final_outcome),
            dim: state.is_some(),
            run: run.map(|run| (run, step)),
            superseded_by: &one.superseded_by,
            facts: facts(one, today),
        }
    }

    fn task(entry: &'a log::Entry, volume: &str) -> Shown<'a> {
        let log::Task { known, goal, actions, results, code } = &entry.task;
        let goal = goal.lines().next().unwrap_or_default();
        let day = known.timestamp.get(..10).unwrap_or_default();
        let mut about = vec![known.status.as_str(), "session log", project(&entry.path, volume), day];
        about.retain(|part| !part.is_empty());
        let did: Vec<String> = actions.iter().zip(1..).map(|(one, number)| format!("\n{number}. {one}")).collect();
        let by = if known.agent.is_empty() { String::new() } else { format!(", by {}", known.agent) };
        let from = match known.run.as_str() {
            "" => format!("{}{by}", entry.path),
            run => format!("run {run}{by}"),
        };
        let code: Vec<String> = code.iter().map(|piece| format!("\n{piece}")).collect();
        Shown {
            name: name(entry),
            label: format!("Logged: {goal}"),
            path: &entry.path,
            at: entry.at,
            text: &entry.text,
            goal,
            about: about.join("  ·  "),
            came: entry.task.outcome(),
            dim: false,
            run: known.run.parse::<DocId>().ok().map(|run| (run, String::new())),
            superseded_by: "",
            facts: vec![
                ("Asked", entry.task.goal.clone()),
                ("Did", did.concat()),
                ("Led to", results.clone()),
                ("Code", code.concat()),
                ("From", from),
                ("Became an experience", known.consolidated.clone()),
            ],
        }
    }
}

/// What is wished of something that is remembered.
enum Asked {
    Fold,
    Edit,
    Forget,
    Run(DocId, String),
    Other(String),
}

fn line(ui: &mut Ui, rect: Rect, one: &Shown<'_>, open: bool) -> Option<Asked> {
    let colours = Colours::of(ui);
    let goal = one.goal;
    let id = ui.scope_id().with(("experience", one.path, &one.name));
    let response = parts::ground(ui, rect, id, &one.label, open);
    let (icon, colour) = match one.came {
        _ if one.dim => (icons::CIRCLE_DASHED, colours.muted),
        Some(Outcome::Success) => (icons::CHECK_CIRCLE, colours.ok),
        Some(Outcome::SuccessWithRecovery) => (icons::WARNING_CIRCLE, colours.warn),
        Some(Outcome::Failure) => (icons::X_CIRCLE, colours.bad),
        None => (icons::CIRCLE, colours.muted),
    };
    let at = pos2(rect.left() + 26.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, tokens::icon(size::ICON), colour);
    let layout = Layout::right_to_left(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(rect).id_salt((one.path, &one.name)).layout(layout));
    tools.spacing_mut().item_spacing.x = 0.0;
    let forget = icon_button(&mut tools, icons::TRASH, &format!("Forget: {goal}"), Some("Delete")).clicked();
    let edit = icon_button(&mut tools, icons::PENCIL, &format!("Edit in its note: {goal}"), None).clicked();
    let right = tools.min_rect().left() - space::S;
    parts::two(ui, rect, rect.left() + 44.0, right, (goal, &one.about), one.dim);
    let deletes = response.has_focus() && ui.input_mut(|input| input.consume_key(egui::Modifiers::NONE, Key::Delete));
    match (forget || deletes, edit, response.clicked()) {
        (true, _, _) => Some(Asked::Forget),
        (_, true, _) => Some(Asked::Edit),
        (_, _, true) => Some(Asked::Fold),
        _ => None,
    }
}

fn facts(one: &Experience, today: Day) -> Vec<(&'static str, String)> {
    let took = if one.execution_time_ms == 0 {
        String::new()
    } else {
        format!("{:.1} s", one.execution_time_ms as f64 / 1_000.0)
    };
    let state = state(one, today);
    let until = if one.expires.is_empty() || state.is_some() { String::new() } else { one.expires.clone() };
    let files = if one.files_created == 0 { String::new() } else { one.files_created.to_string() };
    let beside = if one.note.is_empty() { String::new() } else { format!(", beside {}", one.note) };
    vec![
        ("Learned", one.learnings_or_issues.clone()),
        ("Led to", one.output_summary.clone()),
        ("With", one.components_used.join(", ")),
        ("Took", took),
        ("Files made", files),
        ("From", format!("{}, by {}{beside}", one.source, one.author)),
        ("Counts until", until),
        ("Does not count", state.unwrap_or_default()),
        ("Name", one.experience_id.clone()),
    ]
}

/// What is unfolded below a line.
fn unfolded(
    ui: &mut Ui,
    rect: Rect,
    one: &Shown<'_>,
    galley: &std::sync::Arc<egui::Galley>,
    spoken: &str,
) -> Option<Asked> {
    let colours = Colours::of(ui);
    let text = Rect::from_min_size(rect.min + vec2(20.0, 0.0), galley.size());
    ui.painter().galley(text.min, galley.clone(), colours.ink);
    let id = Id::unique(("experience's facts", &one.name));
    named(&ui.interact(text, id, Sense::hover()), Role::Label, spoken);
    let place = Rect::from_min_size(text.left_bottom() + vec2(0.0, space::S), vec2(rect.width(), size::HIT));
    let layout = Layout::left_to_right(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(place).id_salt(("facts", &one.name)).layout(layout));
    tools.spacing_mut().item_spacing.x = space::S;
    let mut asked = None;
    if text_button(&mut tools, "Edit in its note", false).clicked() {
        asked = Some(Asked::Edit);
    }
    if let Some((run, step)) = &one.run
        && text_button(&mut tools, "Show the run", false).clicked()
    {
        asked = Some(Asked::Run(*run, step.clone()));
    }
    if !one.superseded_by.is_empty() && text_button(&mut tools, "Show what supersedes it", false).clicked() {
        asked = Some(Asked::Other(one.superseded_by.to_owned()));
    }
    asked
}
