//! `cmd_events`: prints what happens in the workspace as it happens, for people and other programs, and publishes what
//! other programs say.

use super::{CliError, CommandContext, EXIT_DONE, agents};
use crate::arguments::EventsArguments;
use agent::event_filter::{EVENT_KINDS, EventFilter, WorkspaceEvent};
use agent::event_listeners::FileStates;
use agent::published_event::published_kind;
use agent::run_events::{RunEventCursor, RunEventSource};
use engine::{Command, Session, Volume};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::DocId;
use store::disk::FileRow;
use text::untrusted_text;

/// Maximum length of a text on a line for people, in characters.
const MAX_LINE_CHARS: usize = 200;
/// Maximum length of an event's JSON from standard input, with its blanks, in bytes.
const MAX_JSON_INPUT_BYTES: u64 = 64 << 10;

/// What was reported already.
#[derive(Default)]
struct EventCursor {
    notice: u64,
    /// Steps of runs.
    runs: RunEventCursor,
    /// For each volume: its revision and its files.
    files: BTreeMap<DocId, (u64, FileStates)>,
}

pub(super) fn cmd_events(scene: &mut CommandContext<'_>, args: &EventsArguments) -> Result<u8, CliError> {
    if let Some(kind) = &args.publish {
        return publish_event(scene, args, kind);
    }
    if args.data.is_some() {
        return Err(CliError::usage("say what kind of event it is: tracebook events --publish custom.NAME JSON"));
    }
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
                false => writeln!(scene.out, "{kind:<14} {about}")?,
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

/// Publishes an event of another program.
fn publish_event(scene: &mut CommandContext<'_>, args: &EventsArguments, kind: &str) -> Result<u8, CliError> {
    if args.follow || args.count.is_some() || !args.filter.is_empty() {
        return Err(CliError::usage("--publish goes with --project only; follow events in another terminal"));
    }
    let kind = published_kind(kind).map_err(|why| CliError::usage(why.to_string()))?;
    let mut text = args.data.clone().unwrap_or_else(|| "null".to_owned());
    if text == "-" {
        text = crate::parse::read_text_input(scene.input, MAX_JSON_INPUT_BYTES)?;
    }
    let data: Value = serde_json::from_str(&text).map_err(|error| {
        CliError::usage(format!(
            "the event's JSON can't be read ({error}); quote it, as in '{{\"subject\": \"site\"}}'"
        ))
    })?;
    let volume = agents::resolve_agent_volume(scene, args.project.clone(), None)?;
    scene.handle.run_command(Command::PublishEvent { volume, kind: kind.clone(), data })?;
    match scene.json {
        true => writeln!(scene.out, "{}", json!({"kind": kind, "volume": volume.to_string()}))?,
        false => writeln!(scene.out, "{kind} is published")?,
    }
    if scene.own {
        // Events aren't kept, and schedules start in a process that stays open.
        writeln!(scene.errors, "tracebook: nothing receives it; open the window or `tracebook schedule watch` first")?;
    }
    Ok(EXIT_DONE)
}

fn print_event(scene: &mut CommandContext<'_>, event: &WorkspaceEvent) -> Result<(), CliError> {
    if scene.json {
        writeln!(scene.out, "{}", event.to_json())?;
        return Ok(());
    }
    let said = ["text", "what", "why", "change", "status", "name", "ending", "of"];
    let words = said.iter().find_map(|key| event.data.get(*key).and_then(Value::as_str)).map(str::to_owned);
    let words = words.or_else(|| event.data.get("data").map(Value::to_string)).unwrap_or_default();
    let words = if words == event.subject { "" } else { words.as_str() };
    let words: String = untrusted_text::escape_line(words).chars().take(MAX_LINE_CHARS).collect();
    let subject = untrusted_text::escape_line(&event.subject);
    let gap = if subject.is_empty() || words.is_empty() { "" } else { ": " };
    writeln!(scene.out, "{}  {:<14}  {subject}{gap}{words}", agents::format_time(event.at), event.kind)?;
    Ok(())
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
        let seen = self.notice;
        for run in session.agents().open_runs() {
            let source = RunEventSource { run: run.id, about: &run.about, steps: &run.steps };
            // A run that was opened to be read isn't news, but one that began since the last look is.
            events.extend(self.runs.events_of(&source, || session.notices().has_run_begun(seen, run.id)));
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
fn update_seen_files(seen: &mut FileStates, volume: &Volume, events: &mut Vec<WorkspaceEvent>) {
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
