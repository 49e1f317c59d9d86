//! The page of source control: branch, changed files with their diffs, commit, remote and the last commits of a
//! volume's Git repository; and the page of forks, the copies of a project in which agents work. They read what the
//! host knows, and return actions.

mod branch_list;
mod branch_row;
mod change_list;
mod commit_graph;
mod conflict_list;
mod diff_list;
pub mod forks_page;
mod form_request;
mod github_row;
mod hunk_buttons;
pub mod note_conflict;
mod split_diff;
mod stash_list;

use branch_list::NewTag;
use branch_row::NewBranch;
use commit_graph::CommitGraphView;
use diff_list::DiffList;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, Sense, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{Session, Volume};
use host::source_control::{BranchState, DiffTarget, GitReport, GitRequest, RepositoryReading, RepositoryStatus};
use host::source_control::{FileChange, FileChangeKind, HalfDoneOperation, MAX_QUIET_TIME, SourceControl};
use notebook::actions::{PageAction, SourceControlAction};
use store::DocId;
use ui::icons;
pub(crate) use ui::page_parts::{ROW_HEIGHT, banner, note_line, paint_row, section};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{chip_button, set_accessible_name, stable_part, text_button};
use ui::{empty_state, setting_rows};

/// Maximum length of a branch's name in labels, in characters.
const MAX_BRANCH_LABEL_CHARS: usize = 24;
/// Width of a switch.
const SWITCH_WIDTH: f32 = 40.0;
/// Maximum number of volumes to choose from.
const MAX_LISTED_VOLUMES: usize = 12;

/// Parts of the page, of which one is shown.
const TABS: [(PageTab, &str); 4] = [
    (PageTab::Changes, "Changes"),
    (PageTab::History, "History"),
    (PageTab::Branches, "Branches"),
    (PageTab::Stashes, "Stashes"),
];

/// A part of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum PageTab {
    #[default]
    Changes,
    History,
    Branches,
    Stashes,
}

/// The page of source control.
#[derive(Default)]
pub struct SourceControlPage {
    /// The volume that the user has chosen; `None` follows the open note.
    volume: Option<DocId>,
    message: String,
    amend: bool,
    signoff: bool,
    /// Whether the message is cleared once the commit is made.
    is_committing: bool,
    tab: PageTab,
    graph: CommitGraphView,
    new_branch: Option<NewBranch>,
    new_tag: Option<NewTag>,
    stash_message: String,
    /// The diff that is unfolded.
    unfolded: Option<DiffTarget>,
    diff: DiffList,
}

/// What the parts of the page draw from.
pub(crate) struct PageScene<'a> {
    pub(crate) volume: DocId,
    pub(crate) status: &'a RepositoryStatus,
    pub(crate) session: &'a Session,
    pub(crate) source: &'a SourceControl,
    /// Why the folder can't be changed.
    pub(crate) locked: Option<String>,
}

/// Describes the branch and its state against its remote, in few letters.
pub fn branch_label(branch: &BranchState) -> String {
    let name = match (&branch.branch, &branch.head) {
        (Some(name), _) => match name.char_indices().nth(MAX_BRANCH_LABEL_CHARS) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.clone(),
        },
        (None, Some(head)) => format!("at {}", head.get(..8).unwrap_or(head)),
        (None, None) => "no commit".to_owned(),
    };
    let count = |sign: &str, count: usize| if count > 0 { format!(" {sign}{count}") } else { String::new() };
    format!("{name}{}{}", count("↑", branch.ahead), count("↓", branch.behind))
}

/// Describes the branch for screen readers.
pub fn branch_name(branch: &BranchState) -> String {
    let name = branch.branch.as_deref().unwrap_or("none");
    let commits = |count: usize| if count == 1 { "1 commit".to_owned() } else { format!("{count} commits") };
    let remote = match &branch.upstream {
        None => String::new(),
        Some(remote) if branch.ahead + branch.behind == 0 => format!(", even with {remote}"),
        Some(remote) => format!(", {} ahead of and {} behind {remote}", commits(branch.ahead), commits(branch.behind)),
    };
    format!("Branch: {name}{remote}")
}

/// Returns the color of a change's letter.
pub fn change_color(kind: FileChangeKind, colours: &ThemeColors) -> egui::Color32 {
    match kind {
        FileChangeKind::Modified | FileChangeKind::Renamed => colours.warn,
        FileChangeKind::Added => colours.ok,
        FileChangeKind::Untracked => colours.tool,
        FileChangeKind::Deleted | FileChangeKind::Conflicted => colours.bad,
    }
}

/// Returns the volumes that may have a repository.
fn listed_volumes(session: &Session) -> impl Iterator<Item = &Volume> {
    session.volumes().filter(move |volume| volume.root.is_some() && !session.is_guide(volume))
}

/// Returns the volume whose repository concerns the open note, or else the first volume with a repository.
pub fn concerned_volume(session: &Session, source: &SourceControl, note: Option<DocId>) -> Option<DocId> {
    let is_guide = |volume: &DocId| session.volume(*volume).is_some_and(|volume| session.is_guide(volume));
    let of_note = note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
    let of_note = of_note.filter(|volume| !is_guide(volume));
    let rooted = || listed_volumes(session).map(|volume| volume.id);
    of_note.or_else(|| rooted().find(|volume| source.status(*volume).is_some())).or_else(|| rooted().next())
}

impl SourceControlPage {
    /// Draws the page.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        source: &SourceControl,
        note: Option<DocId>,
        actions: &mut Vec<PageAction>,
    ) {
        let chosen = self.volume.filter(|volume| session.volume(*volume).is_some());
        let Some(volume) = chosen.or_else(|| concerned_volume(session, source, note)) else {
            let hint = "Source control shows what has changed in a folder since its last commit.";
            if empty_state::show_message(ui, "No folder is open.", Some("Open a folder"), hint) {
                actions.push(PageAction::Run(CommandId::FolderOpen));
            }
            return;
        };
        let width = size::WIDE_BLOCK_WIDTH.min(ui.available_width() - 2.0 * space::XL).max(120.0);
        let margin = ((ui.available_width() - width) / 2.0).max(space::S);
        let all = ui.available_rect_before_wrap();
        egui::ScrollArea::vertical().id_salt("source control").auto_shrink(false).show(ui, |ui| {
            let top = ui.cursor().top();
            let column = Rect::from_min_size(pos2(all.left() + margin, top), vec2(width, f32::INFINITY));
            let mut child = ui.new_child(UiBuilder::new().max_rect(column).id_salt(("repository", volume)));
            child.spacing_mut().item_spacing = vec2(space::S, 0.0);
            child.add_space(space::L);
            self.volumes(&mut child, session, volume);
            if self.keep_refused_forms(&child, source) {
                // The reason is at the form.
                actions.push(PageAction::SourceControl(SourceControlAction::Dismiss));
            } else {
                stable_part(&mut child, "outcome", |ui| self.outcome(ui, source, actions));
            }
            let below = Rect::from_min_max(pos2(all.left(), child.cursor().top()), all.max);
            let message = |ui: &mut Ui, text: &str, button: &str, hint: &str| {
                let mut place = ui.new_child(UiBuilder::new().max_rect(below).id_salt("message"));
                empty_state::show_message(&mut place, text, Some(button), hint)
            };
            let name = session.volume(volume).map_or("This folder", |volume| volume.name.as_str());
            match source.repository(volume) {
                RepositoryReading::Waiting => empty_state::show_skeleton(&child, width, 0.0),
                RepositoryReading::Missing => {
                    let hint =
                        "Source control keeps versions of your files and shares them. Your files stay as they are.";
                    let text = format!("{name} is not a Git repository.");
                    if message(&mut child, &text, "Create repository", hint) {
                        begin(actions, volume, GitRequest::Init);
                    }
                }
                RepositoryReading::Failed(why) => {
                    if message(&mut child, &why, "Try again", "") {
                        actions.push(PageAction::SourceControl(SourceControlAction::Refresh(volume)));
                    }
                }
                RepositoryReading::Read(status) => {
                    let locked = session.read_only_reason(volume);
                    let scene = PageScene { volume, status: &status, session, source, locked };
                    stable_part(&mut child, "repository", |ui| self.repository(ui, &scene, actions));
                }
            }
            child.add_space(space::XL);
            let used = child.min_rect().height();
            ui.allocate_exact_size(vec2(ui.available_width(), used), Sense::hover());
        });
    }

    /// Closes the form whose branch or tag was created. Returns whether Git has just refused one.
    fn keep_refused_forms(&mut self, ui: &Ui, source: &SourceControl) -> bool {
        let branch = self.new_branch.as_mut().and_then(|form| form.request.take_outcome(ui, source));
        let tag = self.new_tag.as_mut().and_then(|form| form.request.take_outcome(ui, source));
        if branch == Some(true) {
            self.new_branch = None;
        }
        if tag == Some(true) {
            self.new_tag = None;
        }
        branch == Some(false) || tag == Some(false)
    }

    /// Draws the choice of the volume if there are several.
    fn volumes(&mut self, ui: &mut Ui, session: &Session, shown: DocId) {
        let mut volumes: Vec<_> = listed_volumes(session).collect();
        volumes.sort_by_key(|volume| volume.name.to_lowercase());
        if volumes.len() < 2 {
            return;
        }
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::XS, space::XS);
            for volume in volumes.into_iter().take(MAX_LISTED_VOLUMES) {
                let name = format!("Repository: {}", volume.name);
                if chip_button(ui, &volume.name, &name, volume.id == shown, &theme::caption()) {
                    (self.volume, self.unfolded) = (Some(volume.id), None);
                }
            }
        });
        ui.add_space(space::M);
    }

    /// Draws the operation that runs, or how the last one ended.
    fn outcome(&mut self, ui: &mut Ui, source: &SourceControl, actions: &mut Vec<PageAction>) {
        if let Some(job) = source.job() {
            if !job.is_slow() {
                ui.ctx().request_repaint_after(MAX_QUIET_TIME);
                return;
            }
            let text = match job.progress.trim() {
                "" => format!("{}…", job.title),
                progress => format!("{}… {progress}", job.title),
            };
            let clicked = banner(ui, (icons::SPINNER, ThemeColors::of(ui).muted), &text, &["Cancel"]);
            if clicked.is_some() {
                actions.push(PageAction::SourceControl(SourceControlAction::Cancel));
            }
            return;
        }
        let Some(report) = source.report() else { return };
        if report.is_commit && std::mem::take(&mut self.is_committing) && !report.is_error {
            self.message.clear();
            self.amend = false;
        }
        if report.text.is_empty() {
            return;
        }
        let GitReport { volume, text, is_error, undo, retry, .. } = report;
        let colours = ThemeColors::of(ui);
        let mark = if is_error { (icons::WARNING_CIRCLE, colours.bad) } else { (icons::CHECK, colours.ok) };
        let is_github = source.status(volume).is_some_and(|status| status.github.is_some());
        let label = match &retry {
            Some(_) if is_github => Some("Pull and keep both versions"),
            Some(_) => Some("Resolve conflicts"),
            None => undo.as_ref().map(GitRequest::undo_label),
        };
        let buttons: Vec<&str> = label.into_iter().chain(["Dismiss"]).collect();
        match (banner(ui, mark, &text, &buttons), retry.or(undo)) {
            (Some(clicked), Some(request)) if Some(clicked) == label => {
                if matches!(request, GitRequest::KeepConflicts(_)) {
                    // The files in conflict are listed there.
                    (self.tab, self.unfolded) = (PageTab::Changes, None);
                }
                begin(actions, volume, request);
            }
            (Some(_), _) => actions.push(PageAction::SourceControl(SourceControlAction::Dismiss)),
            (None, _) => {}
        }
    }

    fn repository(&mut self, ui: &mut Ui, scene: &PageScene<'_>, actions: &mut Vec<PageAction>) {
        if let Some(from) = &scene.status.github {
            stable_part(ui, "remote", |ui| github_row::show(ui, scene, from, actions));
            self.changes(ui, scene, actions);
            return;
        }
        stable_part(ui, "branch", |ui| branch_row::show(ui, scene, &mut self.new_branch, actions));
        if let Some(why) = &scene.locked {
            note_line(ui, icons::LOCK, &ui::text::sentence(why));
        }
        if let Some(what) = scene.status.branch.under_way {
            stable_part(ui, "half done", |ui| half_done(ui, scene, what, actions));
        }
        stable_part(ui, "tabs", |ui| {
            ui.horizontal_wrapped(|ui| {
                ui.spacing_mut().item_spacing = vec2(space::XS, space::XS);
                for (tab, name) in TABS {
                    if chip_button(ui, name, name, self.tab == tab, &theme::small()) {
                        (self.tab, self.unfolded) = (tab, None);
                    }
                }
            })
        });
        ui.add_space(space::M);
        stable_part(ui, self.tab, |ui| self.tab_page(ui, scene, actions));
    }

    fn tab_page(&mut self, ui: &mut Ui, scene: &PageScene<'_>, actions: &mut Vec<PageAction>) {
        match self.tab {
            PageTab::Changes => self.changes(ui, scene, actions),
            PageTab::History => self.graph.show(ui, scene, (&mut self.unfolded, &mut self.diff), actions),
            PageTab::Branches => branch_list::show(ui, scene, &mut self.new_tag, actions),
            PageTab::Stashes => {
                let unfolded = (&mut self.unfolded, &mut self.diff);
                stash_list::show(ui, scene, &mut self.stash_message, unfolded, actions);
            }
        }
    }

    /// Draws the commit's message, the changed files and the last commits.
    fn changes(&mut self, ui: &mut Ui, scene: &PageScene<'_>, actions: &mut Vec<PageAction>) {
        stable_part(ui, "commit box", |ui| self.commit_box(ui, scene, actions));
        let staged: Vec<_> = scene.status.changes.iter().filter(|change| change.staged.is_some()).collect();
        let unstaged: Vec<_> = scene.status.changes.iter().filter(|change| change.unstaged.is_some()).collect();
        if staged.is_empty() && unstaged.is_empty() {
            section(ui, "Changes", &[]);
            let since = if scene.is_github() { "the last pull or commit" } else { "the last commit" };
            note_line(ui, icons::CHECK, &format!("Nothing has changed since {since}."));
        }
        if !staged.is_empty() {
            let title = format!("Staged changes ({})", staged.len());
            let enabled: &[&str] = if scene.can_change() { &["Unstage all"] } else { &[] };
            stable_part(ui, "staged", |ui| {
                if section(ui, &title, enabled).is_some() {
                    let files = staged.iter().flat_map(|change| change_list::all_paths(change)).collect();
                    begin(actions, scene.volume, GitRequest::Unstage(files));
                }
                change_list::show(ui, scene, &staged, true, (&mut self.unfolded, &mut self.diff), actions);
            });
        }
        if !unstaged.is_empty() {
            let title = format!("Changes ({})", unstaged.len());
            let enabled: &[&str] = if scene.can_change() && !scene.is_github() { &["Stage all"] } else { &[] };
            stable_part(ui, "not staged", |ui| {
                if section(ui, &title, enabled).is_some() {
                    begin(actions, scene.volume, GitRequest::Stage(Vec::new()));
                }
                change_list::show(ui, scene, &unstaged, false, (&mut self.unfolded, &mut self.diff), actions);
            });
        }
        if !scene.status.is_complete {
            note_line(ui, icons::INFO, "There are more changed files than are shown here.");
        }
        if !scene.is_github() {
            stable_part(ui, "last commits", |ui| self.commits(ui, scene, actions));
        }
    }

    /// Draws the message field with its buttons.
    fn commit_box(&mut self, ui: &mut Ui, scene: &PageScene<'_>, actions: &mut Vec<PageAction>) {
        // Without changes, only the last message can be amended.
        if scene.status.changes.is_empty() && scene.status.commits.is_empty() {
            return;
        }
        let colours = ThemeColors::of(ui);
        let style = theme::small();
        self.amend &= !scene.is_github();
        let hint = if self.amend { "Leave this empty to keep the last message." } else { "What has changed?" };
        let hint = egui::RichText::new(hint).font(style.font.clone()).color(colours.muted);
        let rows = self.message.lines().count().clamp(2, 8);
        let field = egui::TextEdit::multiline(&mut self.message)
            .id_salt("message")
            .font(style.font)
            .hint_text(hint)
            .margin(egui::Margin::symmetric(8, 6))
            .desired_rows(rows)
            .desired_width(f32::INFINITY);
        ui.add(field).accessible_name("Commit message");
        ui.add_space(space::S);
        let has_staged = scene.status.changes.iter().any(|change| change.staged.is_some());
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
            let title = match (self.amend, has_staged) {
                _ if scene.is_github() => "Commit and push all",
                (true, _) => "Amend commit",
                (false, true) => "Commit",
                (false, false) => "Commit all",
            };
            if text_button(ui, title, true).clicked() {
                let message = self.message.trim();
                if message.is_empty() && !self.amend {
                    actions.push(PageAction::Say("Write a message first: what has changed?".to_owned()));
                } else {
                    self.is_committing = true;
                    let (message, amend) = (message.to_owned(), self.amend);
                    let signoff = self.signoff && !scene.is_github();
                    let request = GitRequest::Commit { message, amend, signoff };
                    begin(actions, scene.volume, request);
                }
            }
            if !scene.status.commits.is_empty() {
                labeled_switch(ui, "Amend the last commit", &mut self.amend);
            }
            if !scene.is_github() {
                labeled_switch(ui, "Sign off", &mut self.signoff);
            }
        });
    }

    /// Draws the last commits.
    fn commits(&mut self, ui: &mut Ui, scene: &PageScene<'_>, actions: &mut Vec<PageAction>) {
        section(ui, "Last commits", &[]);
        if scene.status.commits.is_empty() {
            note_line(ui, icons::INFO, "No commits yet");
        }
        for commit in &scene.status.commits {
            let target = DiffTarget::Commit(commit.id.clone());
            let is_open = self.unfolded.as_ref() == Some(&target);
            let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
            if response.clicked() {
                self.unfolded = (!is_open).then(|| target.clone());
            }
            if ui.is_rect_visible(rect) {
                set_accessible_name(&response, Role::Button, &commit_graph::commit_label(commit));
                paint_row(ui, &response, is_open);
                commit_graph::paint_commit(ui, rect, commit);
            }
            if is_open {
                self.diff.show(ui, scene, &target, &[], actions);
            }
        }
    }
}

impl PageScene<'_> {
    /// Returns whether files and history may be changed.
    pub(crate) fn can_change(&self) -> bool {
        self.locked.is_none()
    }

    /// Returns whether the files came from GitHub without Git.
    pub(crate) fn is_github(&self) -> bool {
        self.status.github.is_some()
    }
}

/// Draws a switch with its name at the right, in the same line of a row that wraps.
fn labeled_switch(ui: &mut Ui, name: &str, is_on: &mut bool) {
    let colour = ThemeColors::of(ui).muted;
    let galley = ui.painter().layout_no_wrap(name.to_owned(), theme::caption().font, colour);
    let wanted = vec2(SWITCH_WIDTH + space::S + galley.size().x + space::S, size::MIN_CLICK_HEIGHT);
    let (rect, _) = ui.allocate_exact_size(wanted, Sense::hover());
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(("switch", name)));
    if setting_rows::toggle_switch(&mut child, name, *is_on) {
        *is_on = !*is_on;
    }
    let at = pos2(rect.left() + SWITCH_WIDTH + space::S, rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(at, galley, colour);
}

/// Draws what stopped halfway, with buttons to end it.
fn half_done(ui: &mut Ui, scene: &PageScene<'_>, what: &str, actions: &mut Vec<PageAction>) {
    let operation = HalfDoneOperation::of_word(what).filter(|_| scene.can_change());
    let is_in_conflict = |change: &FileChange| change.unstaged == Some(FileChangeKind::Conflicted);
    let advice = match operation {
        Some(_) if scene.status.changes.iter().any(is_in_conflict) => {
            "Choose a side in each file in conflict, then continue."
        }
        Some(_) => "No file is in conflict, so continue.",
        None => "End it with Git itself.",
    };
    note_line(ui, icons::WARNING, &format!("A {what} is in progress. {advice}"));
    let Some(operation) = operation else { return };
    note_line(ui, icons::INFO, "Aborting discards the sides you have chosen. There’s no undo.");
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::S;
        if text_button(ui, &format!("Continue {what}"), true).clicked() {
            begin(actions, scene.volume, GitRequest::Continue(operation));
        }
        if text_button(ui, &format!("Abort {what}"), false).clicked() {
            begin(actions, scene.volume, GitRequest::Abort(operation));
        }
    });
    ui.add_space(space::M);
}

/// Requests an operation.
pub(crate) fn begin(actions: &mut Vec<PageAction>, volume: DocId, request: GitRequest) {
    actions.push(PageAction::SourceControl(SourceControlAction::Begin(volume, request)));
}
