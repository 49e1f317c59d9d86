//! The page of forks: what agents have done in copies of a project, to adopt as a whole or in parts, to compare and to
//! discard.

mod chosen_changes;
mod fork_comparison;
pub mod fork_desk;

use super::{banner, note_line, section};
use chosen_changes::ForkChangeList;
use eframe::egui;
use egui::{Ui, vec2};
use engine::commands::CommandId;
use engine::{RunSummary, Session};
use fork_comparison::ForkComparison;
use fork_desk::{ForkChange, ForkDesk, ListedFork};
use forks::{ConflictPreference, ForkOverview, ForkState};
use notebook::actions::PageAction;
use store::RunEnding;
use ui::icons;
use ui::page_parts::{ListRow, show_column};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{chip_button, text_button};
use ui::{empty_state, text::counted};

/// Minimum time between two readings of the forks, in seconds.
const MIN_READ_INTERVAL: f64 = 1.0;
/// Maximum number of forks to compare with that are offered.
const MAX_OFFERED_FORKS: usize = 12;

/// The page of forks.
#[derive(Default)]
pub struct ForksPage {
    /// The fork whose changes are unfolded.
    unfolded: Option<String>,
    changes: ForkChangeList,
    /// The fork that the unfolded one is compared with.
    comparison: Option<ForkComparison>,
    /// The fork that the user is asked about before it's discarded.
    discarding: Option<String>,
    /// The runs' revision for which the forks were read, and when.
    read_for: Option<(u64, f64)>,
}

/// Returns how far a fork is, in words.
fn state_label(one: &ForkOverview) -> &'static str {
    match one.state {
        ForkState::Unfinished => "Not finished",
        ForkState::HalfDiscarded => "Half discarded",
        ForkState::Interrupted => "Interrupted",
        ForkState::Missing => "Folder is missing",
        ForkState::AdoptedInPart => "Adopted in part",
        ForkState::Adopted => "Adopted",
        ForkState::AsRun => one.runs.last().map_or("No run", |(_, line)| run_label(line)),
        ForkState::NoRun => "No run",
    }
}

fn run_label(line: &RunSummary) -> &'static str {
    match line.ending {
        Some(RunEnding::Done) => "Done",
        Some(RunEnding::Cancelled) => "Stopped",
        Some(RunEnding::Failed) => "Failed",
        Some(RunEnding::Limit) => "Iteration limit reached",
        Some(RunEnding::Budget) => "Budget spent",
        None if line.pending > 0 => "Waits for you",
        None => "Running",
    }
}

/// Describes a fork on one line: state, project, changes and what it cost.
fn detail(one: &ListedFork) -> String {
    let overview = &one.overview;
    let changed = one.changed.map_or_else(|| "changes unknown".to_owned(), |count| counted(count, "changed file"));
    let tokens = counted(usize::try_from(overview.tokens()).unwrap_or(usize::MAX), "token");
    let cost = match overview.cost() {
        Some(0.0) => "free".to_owned(),
        Some(cost) => format!("${cost:.4}"),
        None => "cost unknown".to_owned(),
    };
    let parts = [state_label(overview), &overview.fork.volume_name, &changed, &tokens, &cost];
    parts.join("  ·  ")
}

impl ForksPage {
    /// Draws the page.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, desk: &ForkDesk, actions: &mut Vec<PageAction>) {
        self.refresh(ui, session, desk);
        let listed = match desk.list() {
            None => {
                empty_state::show_skeleton(ui, size::WIDE_BLOCK_WIDTH.min(ui.available_width()), 0.0);
                return;
            }
            Some(Err(why)) => {
                if empty_state::show_message(ui, &why, Some("Try again"), "") {
                    desk.refresh();
                }
                return;
            }
            Some(Ok(listed)) => listed,
        };
        if listed.is_empty() && desk.report().is_none() && desk.job().is_none() {
            let hint = "Turn on “Work in a fork” below a new message to the agent. \
                        Your folder stays as it is until you adopt what the agent changed.";
            if empty_state::show_message(ui, "No forks yet", Some("Ask the agent"), hint) {
                actions.push(PageAction::Run(CommandId::AgentNew));
            }
            return;
        }
        show_column(ui, size::WIDE_BLOCK_WIDTH, ("forks", "list of forks"), |ui| {
            self.outcome(ui, desk);
            section(ui, &format!("Forks ({})", listed.len()), &[]);
            for one in listed.iter() {
                self.fork(ui, one, &listed, desk, actions);
            }
        });
    }

    /// Reads the forks again if their runs have moved on.
    fn refresh(&mut self, ui: &Ui, session: &Session, desk: &ForkDesk) {
        let revision = session.agents().revision();
        let now = ui.input(|input| input.time);
        match self.read_for {
            Some((read, _)) if read == revision => {}
            Some((_, at)) if now - at < MIN_READ_INTERVAL => {
                ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(MIN_READ_INTERVAL));
            }
            Some(_) | None => {
                self.read_for = Some((revision, now));
                desk.refresh();
                self.unfolded.iter().for_each(|fork| desk.read(fork));
            }
        }
    }

    /// Draws what is being done, or how the last change ended.
    fn outcome(&mut self, ui: &mut Ui, desk: &ForkDesk) {
        if let Some(job) = desk.job() {
            note_line(ui, icons::SPINNER, job);
            return;
        }
        let Some(report) = desk.report() else { return };
        let colours = ThemeColors::of(ui);
        let mark = match report.is_error {
            true => (icons::WARNING_CIRCLE, colours.bad),
            false => (icons::CHECK, colours.ok),
        };
        let (project, fork) = ("Keep the project's lines", "Take the fork's lines");
        let buttons: &[&str] = if report.conflict.is_some() { &[project, fork, "Dismiss"] } else { &["Dismiss"] };
        let Some(clicked) = banner(ui, mark, &report.text, buttons) else { return };
        desk.dismiss_report();
        let prefer = if clicked == project { ConflictPreference::Project } else { ConflictPreference::Fork };
        if let Some(change) = report.conflict.filter(|_| clicked != "Dismiss") {
            desk.begin(&report.fork, change.preferring(prefer));
        }
    }

    /// Draws a fork, and below it what it has changed if it's unfolded.
    fn fork(
        &mut self,
        ui: &mut Ui,
        one: &ListedFork,
        all: &[ListedFork],
        desk: &ForkDesk,
        actions: &mut Vec<PageAction>,
    ) {
        let name = one.overview.fork.name.as_str();
        let is_open = self.unfolded.as_deref() == Some(name);
        let detail = detail(one);
        let spoken = format!("Fork {name}: {detail}");
        let row = ListRow { icon: icons::COPY, title: name, detail: &detail, name: &spoken, is_open: Some(is_open) };
        if row.show(ui, None, |_| {}) {
            (self.changes, self.comparison, self.discarding) = Default::default();
            self.unfolded = (!is_open).then(|| name.to_owned());
            if !is_open {
                desk.read(name);
            }
        }
        if !is_open {
            return;
        }
        let prompt = one.overview.runs.first().and_then(|(_, line)| line.prompt.lines().next()).unwrap_or_default();
        if !prompt.is_empty() {
            note_line(ui, icons::CHAT, prompt);
        }
        if let Some(branch) = one.overview.fork.git.as_ref().map(|git| git.branch.as_str()) {
            note_line(ui, icons::BRANCH, &format!("Branch {branch}"));
        }
        self.buttons(ui, one, desk, actions);
        self.offers(ui, one, all, desk);
        match desk.details(name) {
            None => note_line(ui, icons::HOURGLASS, "Reading the changes…"),
            Some(Err(why)) => note_line(ui, icons::WARNING, &why),
            Some(Ok(details)) => match &mut self.comparison {
                Some(comparison) => comparison.show(ui, (name, &details), desk),
                None => self.changes.show(ui, &details, actions),
            },
        }
        ui.add_space(space::L);
    }

    /// Draws what can be done with a fork.
    fn buttons(&mut self, ui: &mut Ui, one: &ListedFork, desk: &ForkDesk, actions: &mut Vec<PageAction>) {
        let ForkOverview { fork, state, runs } = &one.overview;
        ui.add_space(space::XS);
        if self.discarding.as_deref() == Some(&fork.name) {
            let text = format!(
                "Discard the fork {}? Its copy is deleted; there’s no undo. The records of its runs stay.",
                fork.name
            );
            let colours = ThemeColors::of(ui);
            match banner(ui, (icons::WARNING, colours.warn), &text, &["Discard fork", "Keep it"]) {
                Some("Discard fork") => {
                    desk.begin(&fork.name, ForkChange::Discard);
                    self.discarding = None;
                }
                Some(_) => self.discarding = None,
                None => {}
            }
            return;
        }
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
            let adopt = |selection| ForkChange::Adopt(selection, ConflictPreference::Refuse);
            match state {
                ForkState::Interrupted => {
                    if text_button(ui, "Finish the change", true).clicked() {
                        desk.begin(&fork.name, adopt(forks::ChangeSelection::default()));
                    }
                    if text_button(ui, "Take it back", false).clicked() {
                        desk.begin(&fork.name, ForkChange::Undo(ConflictPreference::Refuse));
                    }
                    return;
                }
                ForkState::AsRun | ForkState::NoRun | ForkState::Adopted | ForkState::AdoptedInPart => {
                    let details = desk.details(&fork.name).and_then(Result::ok);
                    let label = if self.changes.is_everything() { "Adopt all" } else { "Adopt the chosen" };
                    let has_changes = details.as_ref().is_some_and(|details| !details.changes.files.is_empty());
                    if has_changes && self.comparison.is_none() && text_button(ui, label, true).clicked() {
                        match details.and_then(|details| self.changes.selection(&details.changes)) {
                            Some(selection) => desk.begin(&fork.name, adopt(selection)),
                            None => actions.push(PageAction::Say("Choose at least one change first.".to_owned())),
                        }
                    }
                    if fork.adopted().is_some() && text_button(ui, "Undo the adoption", false).clicked() {
                        desk.begin(&fork.name, ForkChange::Undo(ConflictPreference::Refuse));
                    }
                }
                ForkState::Unfinished | ForkState::HalfDiscarded | ForkState::Missing => {}
            }
            if let Some((_, line)) = runs.last()
                && text_button(ui, "Open its session", false).clicked()
            {
                actions.push(PageAction::ShowSession(line.session));
            }
            if text_button(ui, "Discard…", false).clicked() {
                self.discarding = Some(fork.name.clone());
            }
        });
        ui.add_space(space::S);
    }

    /// Draws the forks of the same project to compare with.
    fn offers(&mut self, ui: &mut Ui, one: &ListedFork, all: &[ListedFork], desk: &ForkDesk) {
        let own = &one.overview.fork;
        let is_other = |other: &&ListedFork| {
            let fork = &other.overview.fork;
            fork.volume == own.volume && fork.name != own.name
        };
        let others: Vec<&ListedFork> = all.iter().filter(is_other).take(MAX_OFFERED_FORKS).collect();
        if others.is_empty() {
            return;
        }
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::XS, space::XS);
            ui.label(egui::RichText::new("Compare with").font(theme::caption().font).color(ThemeColors::of(ui).muted));
            for other in others {
                let name = other.overview.fork.name.as_str();
                let is_chosen = self.comparison.as_ref().is_some_and(|comparison| comparison.other() == name);
                if chip_button(ui, name, &format!("Compare with the fork {name}"), is_chosen, &theme::caption()) {
                    desk.read(name);
                    self.comparison = (!is_chosen).then(|| ForkComparison::new(name));
                }
            }
        });
        ui.add_space(space::S);
    }
}
