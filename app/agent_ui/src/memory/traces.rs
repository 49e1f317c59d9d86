//! The page of traces: what runs can repeat without a model, with confidence and savings; open as notes, delete,
//! export, import.

use super::trace_import::{ImportDecision, ReadLibrary, read_library, write_library};
use super::widgets::{self, UnfoldedList};
use super::{MemoryAction, MemoryCache, file};
use crate::panel_action::PanelAction;
use agent::memory::trace::{self, RunTrace};
use agent::memory::trace_diff::{changed_lines, compare_versions};
use agent::memory::trace_feedback::{RatedRun, RunFeedback, RunRating};
use agent::memory::trace_trust::TraceTrust;
use agent::memory::trace_versions::{TraceVersion, VersionReason};
use agent::memory::{MEMORY_FOLDER, ProjectMemory, StoredTrace};
use anyhow::anyhow;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Id, Key, Layout, Rect, Sense, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{Command, Session};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use store::{BlobHash, DocId};
use ui::empty_state;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, set_accessible_name, text_button};

/// Maximum number of versions with a button.
const MAX_VERSION_BUTTONS: usize = 5;
/// Maximum number of listed steps.
const MAX_LISTED_TRACE_STEPS: usize = 40;

/// Result of importing a file.
enum TraceFileResult {
    Read(anyhow::Result<ReadLibrary>),
    Written(anyhow::Result<PathBuf>),
}

/// The page that lists the traces that runs can follow without a model.
#[derive(Default)]
pub struct TracesPage {
    shelf: MemoryCache<ProjectMemory>,
    query: String,
    made: Option<(u64, String)>,
    /// Indices of the volume and of the trace in `shelf`.
    rows: Vec<(usize, usize)>,
    saved: String,
    /// The expanded trace: its volume and path.
    open: Option<(DocId, String)>,
    /// The version of the expanded trace that's compared with the one in use.
    compared: Option<u64>,
    /// Revision of the shelf whose edited results were learned from.
    reviewed: u64,
    file: String,
    asked: bool,
    waits: Option<Receiver<TraceFileResult>>,
    /// Traces that were read from a file, until the user decides about them.
    offered: Option<ReadLibrary>,
    /// Imported traces that wait for the memory volume, and whether it was requested.
    imported: Option<(Vec<RunTrace>, bool)>,
    said: Option<anyhow::Result<String>>,
}

/// Formats the savings in tokens, dollars and time.
fn saved(tokens: u64, (usd, is_unknown): (f64, bool), secs: f64) -> String {
    let tokens = ui::text::format_thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    let time = if secs >= 120.0 { format!("{:.0} min", secs / 60.0) } else { format!("{secs:.0} s") };
    let usd = if usd >= 0.1 || usd == 0.0 { format!("${usd:.2}") } else { format!("${usd:.4}") };
    let more = if is_unknown { " and an unknown cost" } else { "" };
    format!("{tokens} tokens, {usd}{more}, {time}")
}

impl TracesPage {
    fn refresh(&mut self, ctx: &egui::Context, session: &Session) {
        self.shelf.refresh(ctx, session);
        let key = (self.shelf.revision, self.query.clone());
        if self.made.as_ref() == Some(&key) {
            return;
        }
        self.made = Some(key);
        let wanted = self.query.trim().to_lowercase();
        let all = self.shelf.kept.iter().zip(0..);
        let all =
            all.flat_map(|(kept, at)| kept.holds.traces.iter().zip(0..).map(move |(one, place)| (at, place, one)));
        let fits = |one: &StoredTrace| {
            one.trace.known.goal_text.to_lowercase().contains(&wanted)
                || one.trace.steps.iter().any(|step| step.tool.to_lowercase().contains(&wanted))
        };
        let mut rows: Vec<(&str, u64, usize, usize)> = Vec::new();
        let (mut tokens, mut usd, mut secs, mut is_unknown) = (0_u64, 0.0, 0.0, false);
        for (at, place, one) in all {
            let known = &one.trace.known;
            tokens = tokens.saturating_add(known.saved_tokens);
            usd += known.saved_usd;
            is_unknown |= known.is_cost_unknown && known.saved_tokens > 0;
            secs += known.saved_secs;
            if fits(one) {
                rows.push((&known.last_used, known.usage_count, at, place));
            }
        }
        rows.sort_by(|one, other| other.cmp(one));
        self.rows = rows.into_iter().map(|(_, _, at, place)| (at, place)).collect();
        self.saved = format!("Replays have saved {} so far.", saved(tokens, (usd, is_unknown), secs));
    }

    fn filed(&self, (at, place): (usize, usize)) -> Option<(DocId, &str, &StoredTrace)> {
        let kept = self.shelf.kept.get(at)?;
        Some((kept.volume, &kept.name, kept.holds.traces.get(place)?))
    }

    /// Learns from what the user edited of what the last runs of traces wrote.
    fn learn_from_edits(&mut self, session: &Session, actions: &mut Vec<PanelAction>) {
        let agents = session.agents();
        let Some(setup) = agents.setup().filter(|_| self.reviewed != self.shelf.revision) else { return };
        self.reviewed = self.shelf.revision;
        for kept in self.shelf.kept.iter_mut().filter(|_| setup.config.memory.learn) {
            let owner = session.volume(kept.volume).and_then(|volume| volume.memory_of).unwrap_or(kept.volume);
            kept.holds.written.retain(|path, text| is_current(session, owner, path, text));
            let is_by_user = |run: &str, path: &str| !agents.was_changed_by_later_run(run, owner, path);
            for at in kept.holds.review_edits(&is_by_user, &now()) {
                let Some(filed) = kept.holds.traces.get_mut(at) else { continue };
                actions.extend(change_trace(session, kept.volume, filed, &filed.trace));
                filed.text = filed.trace.written_into(&filed.text).unwrap_or_default();
            }
        }
    }

    /// Draws the page; memory is read in the background.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        if !std::mem::replace(&mut self.asked, true) {
            let home = std::env::home_dir().unwrap_or_default();
            self.file = home.join("traces.yaml").display().to_string();
        }
        self.refresh(ui.ctx(), session);
        self.receive(session);
        self.import_when_ready(session, actions);
        if self.shelf.revision == 0 {
            empty_state::show_message(ui, "Reading the traces…", None, "");
            return;
        }
        self.learn_from_edits(session, actions);
        let words = ("Filter traces", "Filter by goal or tool");
        if ui::layout::filter(ui, &mut self.query, words, "Memory") {
            actions.push(PanelAction::Run(CommandId::ViewMemory));
        }
        self.files(ui);
        ui.add_space(space::S);
        self.show_offered(ui, session, actions);
        let colours = ThemeColors::of(ui);
        let (margin, width) = widgets::page_column(ui);
        if self.rows.is_empty() {
            let none = if self.query.is_empty() {
                "No traces yet. A successful run becomes a trace."
            } else {
                "No matching traces"
            };
            widgets::row(ui, |ui| widgets::show_text_line(ui, none, colours.muted, Role::Status));
            return;
        }
        widgets::row(ui, |ui| widgets::show_text_line(ui, &self.saved, colours.muted, Role::Status));
        ui.add_space(space::XS);
        ui.spacing_mut().item_spacing.y = 0.0;
        let (mut open, mut compared) = (self.open.clone(), self.compared);
        egui::ScrollArea::vertical().id_salt("traces").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            let is_open = |row: &(usize, usize)| {
                self.filed(*row).is_some_and(|(volume, _, filed)| {
                    open.as_ref().is_some_and(|(of, path)| *of == volume && *path == filed.path)
                })
            };
            let opened = self.rows.iter().position(is_open);
            let details = opened.and_then(|place| self.filed(*self.rows.get(place)?)).map(|(_, project, filed)| {
                let mut facts = trace_facts(project, filed, Some(&session.trace_trust(&filed.trace)));
                facts.extend(version_difference(&filed.trace, compared).map(|text| ("Difference", text)));
                (widgets::facts_galley(ui, &facts, width - 2.0 * space::XL), widgets::facts_accessible_text(&facts))
            });
            let more = details
                .as_ref()
                .map_or(0.0, |(galley, _)| galley.size().y + 2.0 * size::MIN_CLICK_HEIGHT + 2.0 * space::M);
            let problems: Vec<&str> = self.shelf.problems().collect();
            let count = self.rows.len();
            let lines = UnfoldedList::begin_list(ui, viewport, (margin, width), count, (opened, more), problems.len());
            for (place, row) in self.rows.iter().enumerate() {
                let Some((volume, _, filed)) = self.filed(*row) else { continue };
                let Some((rect, is)) = lines.row_rect(place) else { continue };
                let trust = session.trace_trust(&filed.trace);
                let mut asked = line(ui, rect, volume, filed, &trust, is);
                if let Some((galley, spoken)) = details.as_ref().filter(|_| is) {
                    let detail = lines.detail_rect(rect);
                    asked = unfolded(ui, detail, filed, (trust.pinned, compared), (galley, spoken)).or(asked);
                }
                let note = file(session, volume, &filed.path);
                match (asked, note) {
                    (Some(TraceAction::Fold), _) => {
                        open = (!is).then(|| (volume, filed.path.clone()));
                        compared = filed.trace.proposed_version();
                    }
                    (Some(TraceAction::Compare(number)), _) => compared = Some(number),
                    (Some(TraceAction::Rate(rating)), _) => {
                        let mut trace = filed.trace.clone();
                        trace.rate_run(&RatedRun::default(), rating, &now());
                        actions.extend(change_trace(session, volume, filed, &trace));
                    }
                    (Some(TraceAction::Use(number)), _) => {
                        let mut trace = filed.trace.clone();
                        match trace.use_version(number, &now()) {
                            Ok(_) => actions.extend(change_trace(session, volume, filed, &trace)),
                            Err(why) => actions.push(PanelAction::Say(ui::text::sentence(&why.to_string()))),
                        }
                        compared = None;
                    }
                    (Some(TraceAction::Open), Some(note)) => actions.push(PanelAction::Open(note)),
                    (Some(TraceAction::Delete), Some(note)) => actions.push(PanelAction::Delete(note)),
                    (Some(TraceAction::Pin), _) => {
                        let mut settings = session.settings().clone();
                        settings.pin_trace(&filed.trace.fingerprint(), !trust.pinned);
                        actions.push(PanelAction::Do(Command::Set { settings: Box::new(settings) }));
                    }
                    (Some(TraceAction::Open | TraceAction::Delete), None) => {
                        actions.push(PanelAction::Say("Its note isn't known yet. Try again in a moment.".to_owned()));
                    }
                    (None, _) => {}
                }
            }
            lines.show_problems(ui, problems.into_iter());
        });
        (self.open, self.compared) = (open, compared);
    }

    /// Draws the controls for import from a file and export to one.
    fn files(&mut self, ui: &mut Ui) {
        let colours = ThemeColors::of(ui);
        let rows = self.rows.clone();
        let (mut reads, mut writes, mut is_signed) = (false, false, false);
        let count = rows.len();
        let free = self.waits.is_none() && !self.file.trim().is_empty();
        let TracesPage { file, said: told, .. } = self;
        widgets::row(ui, |ui| {
            let field = egui::TextEdit::singleline(file)
                .id_salt("file of traces")
                .font(theme::small().font)
                .margin(egui::Margin::symmetric(8, 6))
                .desired_width(320.0);
            ui.add(field).accessible_name("File of traces");
            reads = text_button(ui, "Import", false).clicked() && free;
            let words = if count == 1 { "Export 1 trace".to_owned() } else { format!("Export {count} traces") };
            writes = count > 0 && text_button(ui, &words, false).clicked() && free;
            is_signed = count > 0 && text_button(ui, "Export signed", false).clicked() && free;
            writes |= is_signed;
        });
        match told {
            Some(Ok(words)) => widgets::row(ui, |ui| widgets::show_text_line(ui, words, colours.ok, Role::Status)),
            Some(Err(why)) => {
                widgets::row(ui, |ui| widgets::show_text_line(ui, &why.to_string(), colours.bad, Role::Status))
            }
            None => {}
        }
        let path = ui::text::absolute(self.file.trim());
        match (reads, writes, path) {
            (true, _, Some(path)) => self.begin(ui, move || TraceFileResult::Read(read_library(&path))),
            (_, true, Some(path)) => {
                let texts: Vec<String> =
                    rows.iter().filter_map(|row| Some(self.filed(*row)?.2.trace.to_library_yaml())).collect();
                let text = texts.join("\n");
                self.begin(ui, move || TraceFileResult::Written(write_library(&path, text, is_signed)));
            }
            (true, _, None) | (_, true, None) => {
                self.said = Some(Err(anyhow!("Give the whole path, beginning with / or ~.")));
            }
            (false, false, _) => {}
        }
    }

    /// Draws the file that was read, until the user imports it or not.
    fn show_offered(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        let Some(library) = self.offered.take() else { return };
        let project = session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id);
        if session.agents().setup().is_none() && !session.agents().is_reading() {
            actions.push(PanelAction::Do(Command::ReadSetup)); // it says which tools there are
        }
        match library.show(ui, session, project) {
            ImportDecision::Import(traces) => self.imported = Some((traces, false)),
            ImportDecision::Cancel => {}
            ImportDecision::Undecided(library) => self.offered = Some(library),
        }
    }

    /// Reads or writes a file on a separate thread.
    fn begin(&mut self, ui: &Ui, work: impl FnOnce() -> TraceFileResult + Send + 'static) {
        let (tell, told) = channel();
        let wake = ui.ctx().clone();
        std::thread::spawn(move || {
            let _ = tell.send(work()); // the page may be closed
            wake.request_repaint();
        });
        (self.waits, self.offered, self.said) = (Some(told), None, None);
    }

    /// Imports pending traces as soon as the memory volume is open.
    fn import_when_ready(&mut self, session: &Session, actions: &mut Vec<PanelAction>) {
        let Some((_, is_requested)) = &mut self.imported else { return };
        let Some(volume) = session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id) else {
            return;
        };
        let home = session.memory_home(volume).and_then(|(home, _)| session.volume(home));
        if home.is_some_and(|home| home.known) {
            let mut traces = self.imported.take().map(|(traces, _)| traces).unwrap_or_default();
            traces.retain(|trace| !self.propose_imported(session, trace, actions));
            actions.push(PanelAction::Memory(Box::new(MemoryAction::Import { volume, traces })));
        } else if !std::mem::replace(is_requested, true) {
            actions.push(PanelAction::Do(Command::OpenMemory { volume }));
        }
    }

    /// Proposes an imported trace as a version of the one for the same goal. Returns whether there's one that does
    /// something else.
    fn propose_imported(&self, session: &Session, trace: &RunTrace, actions: &mut Vec<PanelAction>) -> bool {
        let imported = trace.clone().reset_for_import();
        let path = format!("{MEMORY_FOLDER}/{}/{}", trace::TRACES_FOLDER, imported.file_name());
        let volume = session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id);
        let home = volume.and_then(|volume| session.memory_home(volume)).map(|(home, _)| home);
        let Some(kept) = self.shelf.kept.iter().find(|kept| Some(kept.volume) == home) else { return false };
        let is_same =
            |filed: &&StoredTrace| filed.path == path && filed.trace.goal_signature() == imported.goal_signature();
        let Some(filed) = kept.holds.traces.iter().find(is_same) else { return false };
        let mut changed = filed.trace.clone();
        let Some(number) = changed.add_learned_version(&imported, VersionReason::Imported, true, &now()) else {
            return false;
        };
        actions.extend(change_trace(session, kept.volume, filed, &changed));
        let goal = filed.trace.known.goal_text.lines().next().unwrap_or_default();
        actions.push(PanelAction::Say(format!("Proposed as version {number}: {goal}")));
        true
    }

    fn receive(&mut self, session: &Session) {
        let Some(waits) = &self.waits else { return };
        let done = match waits.try_recv() {
            Ok(done) => done,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => TraceFileResult::Read(Err(anyhow!("the file can't be read"))),
        };
        self.waits = None;
        let volume = session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id);
        match (done, volume) {
            (TraceFileResult::Read(Ok(library)), Some(_)) => self.offered = Some(library),
            (TraceFileResult::Read(Ok(_)), None) => {
                self.said = Some(Err(anyhow!("Open a folder first. Traces are notes in it.")))
            }
            (TraceFileResult::Written(Ok(path)), _) => self.said = Some(Ok(format!("Saved as {}", path.display()))),
            (TraceFileResult::Read(Err(why)) | TraceFileResult::Written(Err(why)), _) => {
                self.said = Some(Err(anyhow!(ui::text::sentence(&why.to_string()))));
            }
        }
    }
}

/// Action requested on a trace.
enum TraceAction {
    Fold,
    Open,
    Delete,
    /// Pins the trace as trusted, or unpins it.
    Pin,
    /// Rates the trace, or takes the rating back.
    Rate(Option<RunRating>),
    /// Compares the version in use with this one.
    Compare(u64),
    /// Uses this version.
    Use(u64),
}

/// Returns the current time as notes have it.
fn now() -> String {
    trace::iso_timestamp(jiff::Timestamp::now().as_millisecond())
}

/// Returns whether a file's text is the current one: it's on disk, and its note has no other text.
fn is_current(session: &Session, volume: DocId, path: &str, text: &str) -> bool {
    let row = session.volume(volume).and_then(|volume| volume.files.get(path));
    row.is_some_and(|row| {
        let is_shown = session.note(row.id).is_none_or(|note| note.text() == text);
        is_shown && row.hash == BlobHash::of(text.as_bytes())
    })
}

/// Returns the action that writes a changed trace into its note.
fn change_trace(session: &Session, volume: DocId, filed: &StoredTrace, trace: &RunTrace) -> Option<PanelAction> {
    let new = trace.written_into(&filed.text).filter(|new| *new != filed.text)?;
    let Some(note) = file(session, volume, &filed.path) else {
        return Some(PanelAction::Say("Its note isn't known yet. Try again in a moment.".to_owned()));
    };
    Some(PanelAction::Do(Command::Amend { note, at: 0, old: filed.text.clone(), new }))
}

/// Returns the lines that differ between a version of a trace and the one in use, the older one first.
fn version_difference(trace: &RunTrace, compared: Option<u64>) -> Option<String> {
    let used = trace.version.number;
    let other = compared.filter(|number| *number != used)?;
    // What is proposed is the newer one, whatever its number is.
    let is_newer = other > used || trace.proposed_version() == Some(other);
    let (older, newer) = if is_newer { (used, other) } else { (other, used) };
    let lines = compare_versions(&trace.version_numbered(older).ok()?, &trace.version_numbered(newer).ok()?);
    let changed = changed_lines(&lines);
    let changed = if changed.is_empty() { "Both do the same.".to_owned() } else { changed };
    Some(format!("from version {older} to version {newer}\n{changed}"))
}

/// Describes the versions of a trace, one line each, the newest first.
fn version_lines(trace: &RunTrace) -> String {
    let line = |(version, is_used): &(TraceVersion, bool)| {
        let standing = match (is_used, version.is_proposed) {
            (true, _) => ", in use",
            (false, true) => ", proposed and not used",
            (false, false) => "",
        };
        let day = version.origin.created_at.get(..10).unwrap_or_default();
        let (number, why) = (version.origin.number, version.origin.describe());
        format!("{number}. {why} on {day}{standing}, {} of {} good", version.verified_count, version.usage_count)
    };
    let lines: Vec<String> = trace.all_versions().iter().map(line).collect();
    format!("\n{}", lines.join("\n"))
}

fn line(
    ui: &mut Ui,
    rect: Rect,
    volume: DocId,
    filed: &StoredTrace,
    trust: &TraceTrust,
    open: bool,
) -> Option<TraceAction> {
    let known = &filed.trace.known;
    let colours = ThemeColors::of(ui);
    let goal = known.goal_text.lines().next().unwrap_or_default();
    let steps = filed.trace.steps.len();
    let mut about = Vec::new();
    if known.usage_count == 0 {
        about.push("never used".to_owned());
    } else {
        about.push(format!("{} of {} good", known.verified_count, known.usage_count));
        about.push(format!("last {}", known.last_used.get(..10).unwrap_or_default()));
        let cost = (known.saved_usd, known.is_cost_unknown);
        about.push(format!("saved {}", saved(known.saved_tokens, cost, known.saved_secs)));
    }
    about.push(if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") });
    let about = about.join("  ·  ");
    let id = ui.scope_id().with(("trace", volume, &filed.path));
    let response = widgets::show_row_background(ui, rect, id, &format!("Trace: {goal}"), open);
    let layout = Layout::right_to_left(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(rect).id_salt((volume, &filed.path)).layout(layout));
    tools.spacing_mut().item_spacing.x = 0.0;
    let delete = icon_button(&mut tools, icons::TRASH, &format!("Delete the trace: {goal}"), Some("Delete")).clicked();
    let edit = icon_button(&mut tools, icons::PENCIL, &format!("Open as a note: {goal}"), None).clicked();
    let right = tools.min_rect().left() - space::S;
    // Confidence as a bar and as text.
    let sure = format!("{:.0} % sure", trust.confidence * 100.0);
    let meter = Rect::from_min_size(pos2(right - 76.0, rect.center().y + 8.0), vec2(72.0, 3.0));
    let follows = trust.is_followed();
    let colour = if follows { colours.ok } else { colours.accent };
    widgets::paint_bar(ui, meter, trust.confidence, colour);
    let at = pos2(meter.right(), rect.center().y - 4.0);
    ui.painter().text(at, Align2::RIGHT_CENTER, &sure, theme::tabular_font(12.0), colours.muted);
    let spoken =
        if follows { format!("{sure}: replayed automatically") } else { format!("{sure}: replayed when asked") };
    let place = Rect::from_min_max(pos2(meter.left(), rect.top() + 8.0), pos2(meter.right(), rect.bottom() - 8.0));
    let id = ui.scope_id().with(("sure", volume, &filed.path));
    let meter_response = ui.interact(place, id, Sense::hover());
    set_accessible_name(&meter_response, Role::Label, &spoken);
    meter_response.on_hover_text(text::untrusted_text::escape_block(&spoken).into_owned());
    widgets::paint_two_lines(ui, rect, rect.left() + 20.0, meter.left() - space::M, (goal, &about), false);
    let deletes = response.has_focus() && ui.input_mut(|input| input.consume_key(egui::Modifiers::NONE, Key::Delete));
    match (delete || deletes, edit, response.clicked()) {
        (true, _, _) => Some(TraceAction::Delete),
        (_, true, _) => Some(TraceAction::Open),
        (_, _, true) => Some(TraceAction::Fold),
        _ => None,
    }
}

pub(super) fn trace_facts(
    project: &str,
    filed: &StoredTrace,
    trust: Option<&TraceTrust>,
) -> Vec<(&'static str, String)> {
    let StoredTrace { path, trace, .. } = filed;
    let slots: Vec<String> = trace
        .slots
        .iter()
        .map(|slot| format!("{} ({}), such as {}", slot.name, slot.kind.as_str(), slot.value))
        .collect();
    let mut steps: Vec<String> = Vec::new();
    for (step, number) in trace.steps.iter().zip(1_usize..).take(MAX_LISTED_TRACE_STEPS) {
        let subject = agent::policy::main_argument(&step.input).lines().next().unwrap_or_default();
        let subject = &subject[..subject.floor_char_boundary(160)];
        steps.push(format!("{number}. {} {subject}", step.tool).trim_end().to_owned());
        let conditions: Vec<String> = step
            .needs
            .iter()
            .map(|path| format!("{path} must be there"))
            .chain(step.free.iter().map(|path| format!("{path} must not be there yet")))
            .collect();
        steps.extend((!conditions.is_empty()).then(|| format!("    {}", conditions.join(", "))));
    }
    steps.extend(
        (trace.steps.len() > MAX_LISTED_TRACE_STEPS)
            .then(|| format!("… and {} more", trace.steps.len() - MAX_LISTED_TRACE_STEPS)),
    );
    let known = &trace.known;
    let learned = format!(
        "{}, for {} tokens, {}, {:.0} s",
        known.created_at.get(..10).unwrap_or_default(),
        known.learned_tokens,
        if known.is_cost_unknown { "an unknown cost".to_owned() } else { format!("${:.4}", known.learned_usd) },
        known.learned_secs
    );
    let sure = trust.map_or_else(String::new, |trust| {
        let use_of_it = match trust.is_followed() {
            true => "It's replayed automatically",
            false => "It's replayed when you choose it before a run",
        };
        format!("{use_of_it}: {}.", trust.reason())
    });
    let versions = if trace.versions.is_empty() { String::new() } else { version_lines(trace) };
    let feedback: Vec<String> = trace.feedback.iter().map(RunFeedback::describe).collect();
    let rating = format!("{:.0} %", known.success_rating * 100.0);
    vec![
        ("Goal", known.goal_text.clone()),
        ("Values", slots.join("; ")),
        ("Steps", format!("\n{}", steps.join("\n"))),
        ("Answer", trace.answer.clone().unwrap_or_default()),
        ("Learned", learned),
        ("Went well", if known.usage_count == 0 { String::new() } else { rating }),
        ("Use", sure),
        ("Feedback", feedback.join("; ")),
        ("Versions", versions),
        ("Note", format!("{path} in {project}")),
    ]
}

/// Draws the expanded details of a row.
fn unfolded(
    ui: &mut Ui,
    rect: Rect,
    filed: &StoredTrace,
    (pinned, compared): (bool, Option<u64>),
    (galley, spoken): (&std::sync::Arc<egui::Galley>, &str),
) -> Option<TraceAction> {
    let colours = ThemeColors::of(ui);
    let text = Rect::from_min_size(rect.min, galley.size());
    ui.painter().galley(text.min, galley.clone(), colours.ink);
    let id = Id::unique(("trace's facts", &filed.path));
    set_accessible_name(&ui.interact(text, id, Sense::hover()), Role::Label, spoken);
    let mut asked = None;
    let mut button = |ui: &mut Ui, name: &str, action: TraceAction| {
        if text_button(ui, name, false).clicked() {
            asked = Some(action);
        }
    };
    let row = |ui: &mut Ui, number: u8| {
        let top = text.left_bottom() + vec2(0.0, space::S + f32::from(number) * size::MIN_CLICK_HEIGHT);
        let place = Rect::from_min_size(top, vec2(rect.width(), size::MIN_CLICK_HEIGHT));
        let layout = Layout::left_to_right(Align::Center);
        let id = ("facts", number, &filed.path);
        ui.new_child(UiBuilder::new().max_rect(place).id_salt(id).layout(layout))
    };
    let mut tools = row(ui, 0);
    button(&mut tools, "Open as a note", TraceAction::Open);
    button(&mut tools, if pinned { "Unpin" } else { "Pin as trusted" }, TraceAction::Pin);
    match filed.trace.rating_of("") {
        None => {
            button(&mut tools, "Rate good", TraceAction::Rate(Some(RunRating::Good)));
            button(&mut tools, "Rate bad", TraceAction::Rate(Some(RunRating::Bad)));
        }
        Some(rating) => {
            button(&mut tools, &format!("Remove rating: {}", rating.as_str()), TraceAction::Rate(None));
        }
    }
    let mut versions = row(ui, 1);
    let others = filed.trace.versions.iter().rev().map(|version| version.origin.number);
    for number in others.take(MAX_VERSION_BUTTONS) {
        if compared == Some(number) {
            button(&mut versions, &format!("Use version {number}"), TraceAction::Use(number));
        } else {
            button(&mut versions, &format!("Compare version {number}"), TraceAction::Compare(number));
        }
    }
    asked
}
