//! `cmd_events`: prints what happens in the workspace as it happens, for people and other programs.

use super::{CliError, CommandContext, EXIT_DONE, agents};
use crate::arguments::EventsArguments;
use agent::event_filter::{EVENT_KINDS, EventFilter, WorkspaceEvent};
use engine::{AgentRun, Session, Volume};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::disk::FileRow;
use store::{DocId, ExecutionStep, RunOrigin, StepKind};
use text::untrusted_text;

/// Maximum length of a text in an event, in bytes. The run's steps hold the whole text.
const MAX_EVENT_TEXT_BYTES: usize = 64 << 10;
/// Maximum length of a text on a line for people, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Files by path, each with its size in bytes and its modification time in nanoseconds since 1970.
type SeenFiles = BTreeMap<String, (u64, i64)>;

/// What was reported already.
#[derive(Default)]
struct EventCursor {
    notice: u64,
    /// Number of reported steps, by run.
    steps: BTreeMap<DocId, usize>,
    /// For each volume: its revision and its files.
    files: BTreeMap<DocId, (u64, SeenFiles)>,
}

pub(super) fn cmd_events(scene: &mut CommandContext<'_>, args: &EventsArguments) -> Result<u8, CliError> {
    let filter = |word: &String| EventFilter::parse(word).map_err(|why| CliError::usage(why.to_string()));
    let filters: Vec<EventFilter> = args.filter.iter().map(filter).collect::<Result<_, _>>()?;
    let volume = match &args.project {
        Some(name) => Some(agents::resolve_agent_volume(scene, Some(name.clone()), None)?),
        None => None,
    };
    if !args.follow {
        for (kind, about) in EVENT_KINDS {
            match scene.json {
                true => writeln!(scene.out, "{}", json!({"kind": kind, "about": about}))?,
                false => writeln!(scene.out, "{kind:<13} {about}")?,
            }
        }
        return Ok(EXIT_DONE);
    }
    let limit = super::parse::number_option("count", args.count.as_deref())?.unwrap_or(u64::MAX);
    if limit == 0 {
        return Err(CliError::usage("--count wants a whole number from 1, not “0”"));
    }
    let cursor = Arc::new(Mutex::new(EventCursor::default()));
    let first = cursor.clone();
    scene.handle.read(move |session| {
        let mut cursor = first.lock().unwrap_or_else(PoisonError::into_inner);
        cursor.notice = session.notices().last_number();
        cursor.collect(session, &mut Vec::new());
    })?;
    writeln!(scene.errors, "tracebook: waiting for events; Ctrl+C ends it")?;
    scene.errors.flush()?;
    let mut printed = 0;
    loop {
        let (shared, wanted) = (cursor.clone(), filters.clone());
        let look = move |session: &Session| {
            let mut events = Vec::new();
            shared.lock().unwrap_or_else(PoisonError::into_inner).collect(session, &mut events);
            let here = |event: &WorkspaceEvent| match (volume, event.data.get("volume").and_then(Value::as_str)) {
                (Some(volume), Some(of)) => volume.to_string() == of,
                (Some(_), None) => false,
                (None, _) => true,
            };
            events.retain(|event| here(event) && (wanted.is_empty() || wanted.iter().any(|filter| filter.fits(event))));
            (!events.is_empty()).then_some(events)
        };
        let Some(events) = scene.handle.wait(None, look)? else { continue };
        for event in events {
            print_event(scene, &event)?;
            printed += 1;
            if printed >= limit {
                scene.out.flush()?;
                return Ok(EXIT_DONE);
            }
        }
        scene.out.flush()?;
    }
}

/// Returns an event of a run.
fn run_event(kind: &str, subject: &str, at: i64, run: &AgentRun, data: Value) -> WorkspaceEvent {
    let mut data = if let Value::Object(data) = data { data } else { Map::new() };
    let ids = [("run", run.id), ("session", run.about.session), ("volume", run.about.volume)];
    data.extend(ids.map(|(key, id)| (key.to_owned(), json!(id.to_string()))));
    data.insert("agent".to_owned(), json!(run.about.agent));
    WorkspaceEvent { kind: kind.to_owned(), subject: subject.to_owned(), at, data }
}

fn print_event(scene: &mut CommandContext<'_>, event: &WorkspaceEvent) -> Result<(), CliError> {
    if scene.json {
        writeln!(scene.out, "{}", event.to_json())?;
        return Ok(());
    }
    let said = ["text", "what", "why", "change", "status", "name", "ending", "of"];
    let words = said.iter().find_map(|key| event.data.get(*key).and_then(Value::as_str)).unwrap_or_default();
    let words = if words == event.subject { "" } else { words };
    let words: String = untrusted_text::escape_line(words).chars().take(MAX_LINE_CHARS).collect();
    let subject = untrusted_text::escape_line(&event.subject);
    let gap = if subject.is_empty() || words.is_empty() { "" } else { ": " };
    writeln!(scene.out, "{}  {:<12}  {subject}{gap}{words}", agents::format_time(event.at), event.kind)?;
    Ok(())
}

/// Returns a text, cut off if it's long, for an event.
fn event_text(text: &str) -> Value {
    json!(text.get(..text.floor_char_boundary(MAX_EVENT_TEXT_BYTES)).unwrap_or_default())
}

/// Returns the event of a step.
fn step_event(run: &AgentRun, step: &ExecutionStep) -> WorkspaceEvent {
    let event = |kind: &str, subject: &str, data: Value| {
        let mut event = run_event(kind, subject, step.timestamp, run, data);
        event.data.insert("step".to_owned(), json!(step.id.to_string()));
        event
    };
    let agent = run.about.agent.as_str();
    match &step.kind {
        StepKind::Thinking { content, .. } => {
            event("LLM_OUTPUT", agent, json!({"text": event_text(content), "final": false}))
        }
        StepKind::FinalAnswer { content } => {
            event("LLM_OUTPUT", agent, json!({"text": event_text(content), "final": true}))
        }
        StepKind::ToolCall { tool_call_id, tool_name, params } => {
            let text = event_text(&serde_json::to_string(params).unwrap_or_default());
            event("TOOL_CALL", tool_name, json!({"call": tool_call_id, "tool": tool_name, "text": text}))
        }
        StepKind::ToolResult { tool_call_id, success, result, error, .. } => {
            let name = run.steps.iter().find_map(|step| match &step.kind {
                StepKind::ToolCall { tool_call_id: call, tool_name, .. } if call == tool_call_id => Some(tool_name),
                _ => None,
            });
            let name = name.map_or("", String::as_str);
            let text = match (result, error) {
                (_, Some(error)) => error.clone(),
                (Some(Value::String(text)), None) => text.clone(),
                (Some(other), None) => other.to_string(),
                (None, None) => String::new(),
            };
            let data = json!({"call": tool_call_id, "tool": name, "success": success, "text": event_text(&text)});
            event("TOOL_OUTPUT", name, data)
        }
        StepKind::Todo { todos } => event("TODO", agent, json!({"todos": todos})),
        StepKind::Error { message, .. } => event("ERROR", agent, json!({"text": event_text(message)})),
    }
}

/// Returns whether a step says something: a turn that only calls tools has no text.
fn has_news(step: &ExecutionStep) -> bool {
    match &step.kind {
        StepKind::Thinking { content, .. } => !content.trim().is_empty(),
        StepKind::ToolCall { .. }
        | StepKind::ToolResult { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => true,
    }
}

impl EventCursor {
    /// Adds what happened since the last call, and remembers it.
    fn collect(&mut self, session: &Session, events: &mut Vec<WorkspaceEvent>) {
        let first = self.files.is_empty();
        self.collect_runs(session, events);
        for noticed in session.notices().notices_after(self.notice) {
            let Some(mut event) = WorkspaceEvent::of_notice(noticed) else { continue };
            if let Some(run) = event.id("run")
                && let Some((_, summary)) = session.agents().runs().find(|(id, _)| *id == run)
            {
                event.data.insert("volume".to_owned(), json!(summary.volume.to_string()));
            }
            events.push(event);
        }
        self.notice = session.notices().last_number();
        self.collect_files(session, first, events);
    }

    fn collect_runs(&mut self, session: &Session, events: &mut Vec<WorkspaceEvent>) {
        let starting = self.notice == 0 && self.steps.is_empty() && self.files.is_empty();
        for run in session.agents().open_runs() {
            let known = self.steps.get(&run.id).copied();
            // A run that was opened to be read isn't news, but one that began since the last look is.
            let began = known.is_none() && !starting && began_after(session, run.id, self.notice);
            if known.is_none() && !began {
                self.steps.insert(run.id, run.steps.len());
                continue;
            }
            if began && matches!(run.about.origin, RunOrigin::User) {
                let data = json!({"text": event_text(&run.about.prompt)});
                events.push(run_event("USER_INPUT", &run.about.agent, run.about.start_time, run, data));
            }
            let seen = known.unwrap_or(0).min(run.steps.len());
            events.extend(run.steps[seen..].iter().filter(|step| has_news(step)).map(|step| step_event(run, step)));
            self.steps.insert(run.id, run.steps.len());
        }
    }

    /// Adds files that Tracebook itself wrote: the notes that are open. A volume's revision says nothing of these.
    fn collect_open_notes(&mut self, session: &Session, events: &mut Vec<WorkspaceEvent>) {
        for (id, path) in session.notes().filter_map(|note| session.locate_file(note.id)) {
            let Some(volume) = session.volume(id) else { continue };
            let (row, seen) =
                (volume.files.get(path), self.files.get_mut(&id).and_then(|(_, seen)| seen.get_mut(path)));
            if let (Some(row), Some(seen)) = (row, seen)
                && *seen != (row.size, row.mtime)
            {
                *seen = (row.size, row.mtime);
                events.push(WorkspaceEvent::of_file(
                    (volume.id, volume.name.as_str()),
                    path,
                    "changed",
                    host::unix_millis_now(),
                ));
            }
        }
    }

    fn collect_files(&mut self, session: &Session, first: bool, events: &mut Vec<WorkspaceEvent>) {
        self.collect_open_notes(session, events);
        for volume in session.volumes().filter(|volume| volume.known) {
            match self.files.get_mut(&volume.id) {
                Some((revision, _)) if *revision == volume.revision => {}
                Some((revision, seen)) if !first => {
                    *revision = volume.revision;
                    update_seen_files(seen, volume, events);
                }
                Some(_) | None => {
                    let row = |(path, row): (&String, &FileRow)| (path.clone(), (row.size, row.mtime));
                    self.files.insert(volume.id, (volume.revision, volume.files.iter().map(row).collect()));
                }
            }
        }
    }
}

/// Updates what was seen of a volume's files, and adds an event for each difference. Both maps are walked once and
/// nothing is copied: there may be very many files, and the window waits meanwhile.
fn update_seen_files(seen: &mut SeenFiles, volume: &Volume, events: &mut Vec<WorkspaceEvent>) {
    let (mut differing, mut removed) = (Vec::new(), Vec::new());
    let (mut before, mut now) = (seen.iter().peekable(), volume.files.iter().peekable());
    loop {
        let order = match (before.peek(), now.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let old = if order.is_le() { before.next() } else { None };
        let new = if order.is_ge() { now.next() } else { None };
        match (old, new) {
            (Some((path, _)), None) => removed.push(path.clone()),
            (old, Some((path, row))) => {
                let state = (row.size, row.mtime);
                if old.is_none_or(|(_, old)| *old != state) {
                    differing.push((path, state, if old.is_some() { "changed" } else { "created" }));
                }
            }
            (None, None) => break,
        }
    }
    let clock = host::unix_millis_now();
    for (path, state, change) in differing {
        events.push(WorkspaceEvent::of_file((volume.id, volume.name.as_str()), path, change, clock));
        seen.insert(path.clone(), state);
    }
    for path in removed {
        events.push(WorkspaceEvent::of_file((volume.id, volume.name.as_str()), &path, "removed", clock));
        seen.remove(&path);
    }
}

/// Returns whether a notice after `number` says that the run began.
fn began_after(session: &Session, id: DocId, number: u64) -> bool {
    session
        .notices()
        .notices_after(number)
        .any(|noticed| matches!(&noticed.notice, engine::notice::Notice::RunBegan { run, .. } if *run == id))
}
