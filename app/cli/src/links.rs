//! `cmd_links`, `cmd_todos`: links between notes, and open todos.

use super::{CliError, CommandContext, EXIT_DONE, file_ops, resolve};
use crate::arguments::{LinksArguments, TodosArguments};
use engine::{Command, Session, Volume};
use serde_json::{Value, json};
use std::time::Duration;
use text::outline::{LinkKind, NoteLink, Outline};
use text::task::NoteTask;
use text::untrusted_text;

/// Maximum wait until a task is checked in its note.
const TASK_TIMEOUT: Duration = Duration::from_secs(30);

/// Formats a link's target and part, as other notations write it.
fn link_text(link: &NoteLink) -> String {
    let part = link.part.as_ref().map_or_else(String::new, |part| format!("#{part}"));
    format!("{}{part}", link.path())
}

fn link_kind_name(link: &NoteLink) -> &'static str {
    match link.kind {
        LinkKind::Wiki => "wikilink",
        LinkKind::Embed => "embed",
        LinkKind::Markdown | LinkKind::Angled => "markdown",
    }
}

fn file_path(volume: &Volume, id: store::DocId) -> String {
    volume.links.path(id).unwrap_or_default().to_owned()
}

pub(super) fn cmd_links(scene: &mut CommandContext<'_>, args: &LinksArguments) -> Result<u8, CliError> {
    let note = match args.note.as_ref() {
        Some(word) => Some(resolve::resolve_note(scene, word)?),
        None => None,
    };
    file_ops::wait_for_links(scene)?;
    if note.is_none() || args.broken {
        return list_broken_links(scene, note);
    }
    let Some(note) = note else { return Ok(EXIT_DONE) };
    let read = move |session: &Session| -> Option<Value> {
        let volume = session.volume(session.locate_file(note)?.0)?;
        let out = volume.links.outgoing_links(note).map(|(link, to)| {
            let run = || session.agents().find_by_address(&link.target).map(|_| link.target.clone());
            let to = to.map(|to| file_path(volume, to)).or_else(run);
            json!({"target": link_text(link), "kind": link_kind_name(link), "at": link.at, "path": to})
        });
        let back = volume.links.backlinks(note).into_iter().map(|(from, link)| {
            json!({"path": file_path(volume, from), "target": link_text(link), "kind": link_kind_name(link),
                "at": link.at,
                   "line": link.line})
        });
        let outline = volume.links.outline(note)?;
        let headings: Vec<&str> = outline.headings.iter().map(|heading| heading.text.as_str()).collect();
        Some(json!({
            "path": file_path(volume, note), "outgoing": out.collect::<Vec<_>>(), "backlinks": back.collect::<Vec<_>>(),
            "headings": headings, "tags": outline.tags, "aliases": outline.aliases,
        }))
    };
    let found = scene.handle.read(read)?.unwrap_or_default();
    if scene.json {
        writeln!(scene.out, "{found}")?;
        return Ok(EXIT_DONE);
    }
    let list = |name: &str| found[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for link in list("outgoing") {
        let to = link["path"].as_str().map_or_else(|| "nowhere".to_owned(), ToOwned::to_owned);
        writeln!(
            scene.out,
            "-> {}  ({})",
            untrusted_text::escape_line(&to),
            untrusted_text::escape_line(&text(&link["target"]))
        )?;
    }
    for link in list("backlinks") {
        let (path, line) = (text(&link["path"]), text(&link["line"]));
        writeln!(scene.out, "<- {}  {}", untrusted_text::escape_line(&path), untrusted_text::escape_line(&line))?;
    }
    Ok(EXIT_DONE)
}

/// Prints broken links.
fn list_broken_links(scene: &mut CommandContext<'_>, only: Option<store::DocId>) -> Result<u8, CliError> {
    let read = move |session: &Session| -> Vec<Value> {
        let mut rows = Vec::new();
        for volume in session.volumes() {
            let broken = volume.links.broken_links();
            let broken = broken.into_iter().filter(|(note, link)| {
                only.is_none_or(|only| only == *note) && session.agents().find_by_address(&link.target).is_none()
            });
            rows.extend(broken.map(|(note, link)| {
                json!({"volume": volume.name, "path": file_path(volume, note), "target": link_text(link),
                    "kind": link_kind_name(link),
                       "at": link.at, "line": link.line})
            }));
        }
        rows
    };
    let rows = scene.handle.read(read)?;
    scene.explain_empty_list(rows.is_empty(), "Every link leads to a note or file.")?;
    for row in rows {
        match scene.json {
            true => writeln!(scene.out, "{row}")?,
            false => {
                let text = |name: &str| row[name].as_str().unwrap_or_default();
                writeln!(
                    scene.out,
                    "{}: {}",
                    untrusted_text::escape_line(text("path")),
                    untrusted_text::escape_line(text("target"))
                )?;
            }
        }
    }
    Ok(EXIT_DONE)
}

/// Checks or unchecks the task with this text, the one closest to `--at`.
fn toggle_task(scene: &mut CommandContext<'_>, word: &str, args: &TodosArguments) -> Result<u8, CliError> {
    let words = args.words.clone().ok_or_else(|| {
        let said = "name the note and the text of the task, as `tracebook todos` shows it, such as";
        CliError::usage(format!("{said} `tracebook todos --check Garden --words \"buy seeds\"`"))
    })?;
    let at = usize::try_from(crate::parse::number_option("at", args.at.as_deref())?.unwrap_or(0)).unwrap_or(0);
    let note = resolve::resolve_note(scene, word)?;
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let wanted = words.clone();
    let is_there = export::open_note::read_loaded_note(scene.handle, note, move |note| {
        let text = note.text();
        Outline::of(&text).tasks.iter().any(|task| task.text == wanted)
    })?;
    if !is_there {
        return Err(CliError::usage(format!(
            "{word} has no task “{words}”; give its whole text, as `tracebook todos` shows it"
        )));
    }
    // Read before: a task that repeats is an open one again, above the one that is done.
    let meant = words.clone();
    let state = move |session: &Session| {
        let text = session.note(note)?.text();
        let path = session.locate_file(note)?.1.to_owned();
        let mut start = 0;
        let mut tasks = Vec::new();
        for line in text.split_inclusive('\n') {
            tasks.extend(NoteTask::parse_line(line.trim_end_matches(['\n', '\r']), start));
            start += line.len();
        }
        let same = tasks.iter().filter(|task| task.text == meant);
        Some((path, same.min_by_key(|task| task.at.abs_diff(at)).is_none_or(|task| !task.is_done())))
    };
    let (path, done) = scene.handle.read(state)?.unwrap_or_default();
    let problems = scene.handle.read(|session| session.problems().len())?;
    let command = Command::Check { note, at, words, today: host::clock::today() };
    scene.handle.run_command(command)?;
    let no_jobs = |session: &Session| (session.pending_note_jobs() == 0).then_some(());
    scene.handle.wait(Some(TASK_TIMEOUT), no_jobs)?;
    let said = scene.handle.read(move |session| session.problems().get(problems..).unwrap_or_default().join("; "))?;
    if !said.is_empty() {
        return Err(CliError::usage(said));
    }
    super::notes::wait_for_file(scene, note)?;
    match scene.json {
        true => writeln!(scene.out, "{}", json!({"path": path, "done": done}))?,
        false => writeln!(scene.out, "{}", if done { "Done" } else { "Open again" })?,
    }
    Ok(EXIT_DONE)
}

pub(super) fn cmd_todos(scene: &mut CommandContext<'_>, args: &TodosArguments) -> Result<u8, CliError> {
    if let Some(word) = args.check.as_deref() {
        return toggle_task(scene, word, args);
    }
    file_ops::wait_for_links(scene)?;
    let (all, words) = (args.all, args.words.clone().unwrap_or_default());
    let today = host::clock::today();
    let read = move |session: &Session| -> Vec<Value> {
        let tasks = engine::agenda::agenda_tasks(session, &words, all);
        let row = |task: engine::agenda::AgendaEntry| {
            let volume = session.locate_file(task.note).and_then(|(volume, _)| session.volume(volume));
            let volume = volume.map(|volume| volume.name.as_str());
            let day = |day: Option<text::task::CalendarDay>| day.map(|day| day.to_string());
            json!({
                "path": task.path, "volume": volume, "at": task.task.at, "text": task.task.text,
                "done": task.task.is_done(),
                "status": task.task.mark.to_string(), "due": day(task.task.due),
                "scheduled": day(task.task.scheduled), "start": day(task.task.start),
                "repeat": task.task.repeat, "priority": task.task.priority,
                "when": engine::agenda::AgendaSlot::of(&task.task, today).title(),
            })
        };
        tasks.into_iter().map(row).collect()
    };
    let rows = scene.handle.read(read)?;
    scene.explain_empty_list(rows.is_empty(), "No tasks. A task is a line such as `- [ ] Order seeds`.")?;
    let mut group = String::new();
    for row in rows {
        if scene.json {
            writeln!(scene.out, "{row}")?;
            continue;
        }
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        if text("when") != group {
            group = text("when").to_owned();
            writeln!(scene.out, "{group}")?;
        }
        let due = row["due"].as_str().or(row["scheduled"].as_str()).map_or_else(String::new, |day| format!("{day}  "));
        let [due, status, what, path] =
            [&due, text("status"), text("text"), text("path")].map(untrusted_text::escape_line);
        writeln!(scene.out, "  [{status}] {due}{what}  ({path})")?;
    }
    Ok(EXIT_DONE)
}
