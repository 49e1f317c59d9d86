//! `links`, `todos`: what the notes say of each other, and what is to be done.

use super::{CliError, CommandContext, EXIT_DONE, choose, moves};
use clap::ArgMatches;
use engine::{Session, Volume};
use serde_json::{Value, json};
use text::outline::{LinkKind, NoteLink};
use text::visible;

/// A link as other notations name it: target and part.
fn shown(link: &NoteLink) -> String {
    let part = link.part.as_ref().map_or_else(String::new, |part| format!("#{part}"));
    format!("{}{part}", link.path())
}

fn kind(link: &NoteLink) -> &'static str {
    match link.kind {
        LinkKind::Wiki => "wikilink",
        LinkKind::Embed => "embed",
        LinkKind::Markdown | LinkKind::Angled => "markdown",
    }
}

fn path(volume: &Volume, id: store::DocId) -> String {
    volume.links.path(id).unwrap_or_default().to_owned()
}

pub(super) fn links(scene: &mut CommandContext<'_>, args: &ArgMatches) -> Result<u8, CliError> {
    let note = match args.get_one::<String>("NOTE") {
        Some(word) => Some(choose::note(scene, word)?),
        None => None,
    };
    moves::indexed(scene)?;
    if note.is_none() || args.get_flag("broken") {
        return broken(scene, note);
    }
    let Some(note) = note else { return Ok(EXIT_DONE) };
    let read = move |session: &Session| -> Option<Value> {
        let volume = session.volume(session.locate_file(note)?.0)?;
        let out = volume.links.outgoing(note).map(|(link, to)| {
            let run = || session.agents().find_by_address(&link.target).map(|_| link.target.clone());
            let to = to.map(|to| path(volume, to)).or_else(run);
            json!({"target": shown(link), "kind": kind(link), "at": link.at, "path": to})
        });
        let back = volume.links.backlinks(note).into_iter().map(|(from, link)| {
            json!({"path": path(volume, from), "target": shown(link), "kind": kind(link), "at": link.at,
                   "line": link.line})
        });
        let outline = volume.links.outline(note)?;
        let headings: Vec<&str> = outline.headings.iter().map(|heading| heading.text.as_str()).collect();
        Some(json!({
            "path": path(volume, note), "outgoing": out.collect::<Vec<_>>(), "backlinks": back.collect::<Vec<_>>(),
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
        writeln!(scene.out, "-> {}  ({})", visible::line(&to), visible::line(&text(&link["target"])))?;
    }
    for link in list("backlinks") {
        let (path, line) = (text(&link["path"]), text(&link["line"]));
        writeln!(scene.out, "<- {}  {}", visible::line(&path), visible::line(&line))?;
    }
    Ok(EXIT_DONE)
}

/// The links that lead nowhere.
fn broken(scene: &mut CommandContext<'_>, only: Option<store::DocId>) -> Result<u8, CliError> {
    let read = move |session: &Session| -> Vec<Value> {
        let mut rows = Vec::new();
        for volume in session.volumes() {
            let broken = volume.links.broken();
            let broken = broken.into_iter().filter(|(note, link)| {
                only.is_none_or(|only| only == *note) && session.agents().find_by_address(&link.target).is_none()
            });
            rows.extend(broken.map(|(note, link)| {
                json!({"volume": volume.name, "path": path(volume, note), "target": shown(link), "kind": kind(link),
                       "at": link.at, "line": link.line})
            }));
        }
        rows
    };
    for row in scene.handle.read(read)? {
        match scene.json {
            true => writeln!(scene.out, "{row}")?,
            false => {
                let text = |name: &str| row[name].as_str().unwrap_or_default();
                writeln!(scene.out, "{}: {}", visible::line(text("path")), visible::line(text("target")))?;
            }
        }
    }
    Ok(EXIT_DONE)
}

pub(super) fn todos(scene: &mut CommandContext<'_>, args: &ArgMatches) -> Result<u8, CliError> {
    moves::indexed(scene)?;
    let (all, words) = (args.get_flag("all"), args.get_one::<String>("words").cloned().unwrap_or_default());
    let today = host::clock::today();
    let read = move |session: &Session| -> Vec<Value> {
        let tasks = engine::agenda::tasks(session, &words, all);
        let row = |task: engine::agenda::AgendaEntry| {
            let day = |day: Option<text::task::CalendarDay>| day.map(|day| day.to_string());
            json!({
                "path": task.path, "at": task.task.at, "text": task.task.text, "done": task.task.is_done(),
                "status": task.task.mark.to_string(), "due": day(task.task.due),
                "scheduled": day(task.task.scheduled), "start": day(task.task.start),
                "repeat": task.task.repeat, "priority": task.task.priority,
                "when": engine::agenda::AgendaSlot::of(&task.task, today).title(),
            })
        };
        tasks.into_iter().map(row).collect()
    };
    let mut group = String::new();
    for row in scene.handle.read(read)? {
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
        let [due, status, what, path] = [&due, text("status"), text("text"), text("path")].map(visible::line);
        writeln!(scene.out, "  [{status}] {due}{what}  ({path})")?;
    }
    Ok(EXIT_DONE)
}
