//! `cmd_sessions`: prints sessions as trees; compares, merges and forks branches; imports and exports files of other
//! programs.

use super::super::{CliError, CommandContext, EXIT_DONE};
use super::{DOCUMENT_READ_TIMEOUT, format_time, new_doc_id, resolve_id_prefix};
use crate::arguments::SessionsArguments;
use crate::plurals::counted;
use agent::session_files;
use agent::session_tree_file::{self, SessionRunFile, SessionTreeFile};
use engine::{AgentSession, Command, Session, SessionSummary};
use serde_json::json;
use store::{AgentState, CallUsage, DocId, MessageId, MessageTree, RunAbout, RunEnding, SessionMessage};
use text::untrusted_text;

/// Maximum size of an imported file in bytes.
const MAX_IMPORTED_BYTES: u64 = 64 << 20;

/// Returns the `file://` URI of a note; empty if it has no file.
pub(super) fn file_uri(scene: &CommandContext<'_>, note: Option<DocId>) -> Result<String, CliError> {
    Ok(scene
        .handle
        .read(move |session| {
            let (volume, path) = note.and_then(|note| session.locate_file(note))?;
            let root = session.volume(volume)?.root.clone()?;
            Some(format!("file://{}", root.join(path).display()))
        })?
        .unwrap_or_default())
}

/// Reads a value from a session, loading it if necessary.
pub(crate) fn read_session<R: Send + 'static>(
    scene: &CommandContext<'_>,
    id: DocId,
    read: impl FnOnce(&Session, &AgentSession) -> R + Send + 'static,
) -> Result<R, CliError> {
    scene.handle.run_command(Command::OpenSession { session: id })?;
    let there = move |session: &Session| {
        let agents = session.agents();
        if let Some(why) = agents.read_error(id) {
            return Some(Err(why.to_owned()));
        }
        agents.session(id).map(|_| Ok(()))
    };
    match scene.handle.wait(Some(DOCUMENT_READ_TIMEOUT), there)? {
        Some(Ok(())) => {}
        Some(Err(why)) => return Err(CliError::workspace(why)),
        None => return Err(CliError::workspace("the session could not be read in a minute")),
    }
    let found = scene.handle.read(move |session| session.agents().session(id).map(|one| read(session, one)))?;
    found.ok_or_else(|| CliError::workspace("the session was closed meanwhile"))
}

fn parse_message_id(word: &str) -> Result<MessageId, CliError> {
    word.parse().map_err(|_| CliError::usage(format!("a message's id has 16 hexadecimal digits, not “{word}”")))
}

pub(crate) fn cmd_sessions(scene: &mut CommandContext<'_>, args: &SessionsArguments) -> Result<u8, CliError> {
    if let Some(file) = args.import.clone() {
        return import_session(scene, &file);
    }
    let all: Vec<(DocId, SessionSummary)> =
        scene.handle.read(|session| session.agents().sessions().map(|(id, line)| (id, line.clone())).collect())?;
    let Some(word) = args.session.as_ref() else {
        let details = [&args.export, &args.title, &args.go, &args.fork, &args.merge, &args.into_session, &args.compare];
        if args.delete || details.iter().any(|detail| detail.is_some()) {
            return Err(CliError::usage("say which session; `tracebook sessions` lists them"));
        }
        let mut all = all;
        all.sort_by_key(|(_, line)| std::cmp::Reverse(line.updated));
        scene.explain_empty_list(all.is_empty(), "No sessions yet. `tracebook ask TEXT` begins one.")?;
        for (id, line) in all {
            if scene.json {
                let mut value = serde_json::to_value(&line).unwrap_or_default();
                value["id"] = json!(id);
                writeln!(scene.out, "{value}")?;
            } else {
                let (id, count) = (&id.to_string()[..8], counted(line.messages, "message"));
                writeln!(
                    scene.out,
                    "{id}  {}  {count:>13}  {}",
                    format_time(line.updated),
                    untrusted_text::escape_line(&line.title)
                )?;
            }
        }
        return Ok(EXIT_DONE);
    };
    let session = resolve_id_prefix(word, all.iter().map(|(id, _)| *id), "session")?;
    if args.delete {
        scene.handle.run_command(Command::DeleteSession { session })?;
    } else if let Some(title) = args.title.clone() {
        read_session(scene, session, |_, _| ())?;
        scene.handle.run_command(Command::DescribeSession { session, title: Some(title), closed: None })?;
    } else if let Some(word) = args.go.clone() {
        let message = parse_message_id(&word)?;
        read_session(scene, session, |_, _| ())?;
        scene.handle.run_command(Command::GoTo { session, message })?;
    } else if let Some(word) = args.fork.clone() {
        let (at, new) = (parse_message_id(&word)?, new_doc_id());
        read_session(scene, session, |_, _| ())?;
        scene.handle.run_command(Command::ForkSession { session, at, new })?;
        scene.print_result(&json!({"session": new}), new)?;
    } else if let Some(from) = args.merge.clone() {
        let from = parse_message_id(&from)?;
        let head = read_session(scene, session, |_, one| one.head())?;
        let into = match args.into_session.clone() {
            Some(word) => parse_message_id(&word)?,
            None => head.ok_or_else(|| CliError::usage("nothing was said in the session yet"))?,
        };
        scene.handle.run_command(Command::MergeBranch { session, from, into })?;
    } else if let Some(other) = args.compare.clone() {
        return compare_branches(scene, session, parse_message_id(&other)?);
    } else if let Some(form) = args.export.clone() {
        return export_session(scene, session, &form);
    } else {
        return show_session(scene, session, args.all);
    }
    export::open_note::wait_until_saved(scene.handle)?;
    Ok(EXIT_DONE)
}

fn show_session(scene: &mut CommandContext<'_>, id: DocId, all: bool) -> Result<u8, CliError> {
    let (messages, tree) = read_session(scene, id, move |_, one| {
        let branch: Vec<SessionMessage> = one.branch().into_iter().cloned().collect();
        (if all { one.tree().messages().cloned().collect() } else { branch }, one.tree().clone())
    })?;
    let mut messages: Vec<SessionMessage> = messages;
    messages.sort_by_key(|message| (message.timestamp, message.id));
    for message in &messages {
        if scene.json {
            writeln!(scene.out, "{}", serde_json::to_string(message).unwrap_or_default())?;
            continue;
        }
        let fork = if count_branches(&tree, message) > 1 {
            format!("  ({} branches)", count_branches(&tree, message))
        } else {
            String::new()
        };
        let line = message.content.lines().next().unwrap_or("");
        let line: String = untrusted_text::escape_line(line).chars().take(100).collect();
        writeln!(scene.out, "{}  {:9}  {line}{fork}", message.id, message.role.as_str())?;
    }
    Ok(EXIT_DONE)
}

fn count_branches(tree: &MessageTree, message: &SessionMessage) -> usize {
    tree.children(Some(message.id)).len()
}

/// Prints two branches side by side, from where they diverge.
fn compare_branches(scene: &mut CommandContext<'_>, id: DocId, other: MessageId) -> Result<u8, CliError> {
    let parted = read_session(scene, id, move |_, one| {
        let head = one.head()?;
        one.tree().get(other)?;
        let fork = one.tree().last_shared_message(head, other);
        let rest = |end| -> Vec<SessionMessage> {
            let branch = one.tree().branch_to(end);
            let from = branch.iter().position(|message| Some(message.id) == fork).map_or(0, |at| at + 1);
            branch[from..].iter().map(|message| (*message).clone()).collect()
        };
        Some((fork, rest(head), rest(other)))
    })?;
    let Some((fork, here, there)) = parted else {
        return Err(CliError::usage(format!("there is no message {other} in the session")));
    };
    if scene.json {
        writeln!(scene.out, "{}", json!({"fork": fork, "here": here, "there": there}))?;
        return Ok(EXIT_DONE);
    }
    for (name, messages) in [("here", here), ("there", there)] {
        writeln!(scene.out, "--- {name}")?;
        for message in messages {
            writeln!(scene.out, "[{}] {}", message.role.as_str(), message.content.trim())?;
        }
    }
    Ok(EXIT_DONE)
}

fn export_session(scene: &mut CommandContext<'_>, id: DocId, form: &str) -> Result<u8, CliError> {
    let note = read_session(scene, id, |_, one| one.about.note)?;
    let runs = scene.handle.read(move |session| {
        session.agents().runs().filter(|(_, line)| line.session == id).map(|(run, _)| run).collect::<Vec<_>>()
    })?;
    for run in runs {
        super::resolve_run(scene, &run.to_string())?;
    }
    let uri = file_uri(scene, note)?;
    let now = jiff::Timestamp::now().as_millisecond();
    let text = match form {
        "json" => {
            let context = read_session(scene, id, move |session, one| {
                let branch = one.branch();
                let mut file = session_files::session_to_json(one.about.imported.as_deref(), &branch, &uri, now);
                let tree = SessionTreeFile {
                    title: one.about.title.clone(),
                    head: one.head(),
                    imported: one.about.imported.clone(),
                    messages: one.tree().messages().cloned().collect(),
                    runs: exported_runs(session, id),
                };
                session_tree_file::add_session_tree(&mut file, &tree, branch.len());
                file
            })?;
            serde_json::to_string_pretty(&context).unwrap_or_default()
        }
        "md" | "html" => {
            let text = read_session(scene, id, move |session, one| {
                let runs = session.agents().open_runs().filter(|run| run.about.session == id);
                let (title, steps) = (one.about.title.clone(), runs.flat_map(|run| &run.steps).collect::<Vec<_>>());
                let text = session_files::session_to_markdown(&title, &one.branch(), &steps);
                let others = session_tree_file::other_branches_to_markdown(one.tree(), one.head(), &steps);
                (title, text + &others)
            })?;
            if form == "md" { text.1 } else { export::text_page(&text.0, &text.1) }
        }
        other => return Err(CliError::usage(format!("--export is md, json or html, not “{other}”"))),
    };
    scene.out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        writeln!(scene.out)?;
    }
    Ok(EXIT_DONE)
}

/// Returns the loaded runs of a session, oldest first.
fn exported_runs(session: &Session, id: DocId) -> Vec<SessionRunFile> {
    let runs = session.agents().open_runs().filter(|run| run.about.session == id);
    let mut runs: Vec<SessionRunFile> = runs
        .map(|run| SessionRunFile {
            id: run.id,
            about: run.about.clone(),
            todos: run.todos.clone(),
            steps: run.steps.clone(),
            approvals: run.approvals.clone(),
        })
        .collect();
    runs.sort_by_key(|run| (run.about.start_time, run.id));
    runs
}

/// Reads a file as text, or standard input if the file is `-`.
pub(super) fn read_input_file(scene: &mut CommandContext<'_>, file: &str) -> Result<String, CliError> {
    if file != "-" {
        let path = scene.folder.join(file);
        return host::fs::copy::read_text(&path, MAX_IMPORTED_BYTES).map_err(|why| CliError::usage(why.to_string()));
    }
    crate::parse::read_text_input(scene.input, MAX_IMPORTED_BYTES)
}

/// Returns the volume for imports: the first one.
fn import_volume(scene: &CommandContext<'_>) -> Result<DocId, CliError> {
    super::super::resolve::wait_for_volumes(scene, false)?;
    let first = scene.handle.read(|session| session.volumes().next().map(|volume| volume.id))?;
    first.ok_or_else(|| CliError::usage("there is no project yet; open a folder first: tracebook open FOLDER"))
}

fn import_session(scene: &mut CommandContext<'_>, file: &str) -> Result<u8, CliError> {
    let text = read_input_file(scene, file)?;
    let tree = session_tree_file::parse_session_tree(&text);
    if let Some(tree) = tree.map_err(|why| CliError::usage(format!("{file}: {why}")))? {
        return import_tree(scene, tree);
    }
    let session_files::ImportedContext { messages, imported } = session_files::parse_session_json(&text, rand::random)
        .map_err(|why| CliError::usage(format!("{file}: {why}")))?;
    let first = messages.first().map_or_else(String::new, |message| message.content.clone());
    let (session, volume) = (new_doc_id(), import_volume(scene)?);
    scene.handle.run_command(Command::ImportSession {
        session,
        volume,
        title: first,
        messages,
        imported: Some(imported),
    })?;
    export::open_note::wait_until_saved(scene.handle)?;
    scene.print_result(&json!({"session": session}), session)?;
    Ok(EXIT_DONE)
}

/// Imports a session with all its branches and runs, under new ids.
fn import_tree(scene: &mut CommandContext<'_>, mut tree: SessionTreeFile) -> Result<u8, CliError> {
    let (session, volume) = (new_doc_id(), import_volume(scene)?);
    tree.renew_ids(session, volume, new_doc_id);
    let SessionTreeFile { title, imported, messages, runs, .. } = tree;
    scene.handle.run_command(Command::ImportSession { session, volume, title, messages, imported })?;
    for SessionRunFile { id: run, about, todos, steps, approvals } in runs {
        scene.handle.run_command(Command::ImportRun { run, about: Box::new(about), todos, steps, approvals })?;
    }
    export::open_note::wait_until_saved(scene.handle)?;
    scene.print_result(&json!({"session": session}), session)?;
    Ok(EXIT_DONE)
}

/// Imports `execution-state.json` as a run of a session.
pub(super) fn import_run(scene: &mut CommandContext<'_>, word: &str, file: &str) -> Result<u8, CliError> {
    let sessions: Vec<DocId> = scene.handle.read(|session| session.agents().sessions().map(|(id, _)| id).collect())?;
    let session = resolve_id_prefix(word, sessions.into_iter(), "session")?;
    let text = read_input_file(scene, file)?;
    let state =
        session_files::parse_run_json(&text, rand::random).map_err(|why| CliError::usage(format!("{file}: {why}")))?;
    let head = read_session(scene, session, |_, one| one.head())?.unwrap_or(MessageId(0));
    let (run, volume) = (new_doc_id(), import_volume(scene)?);
    let done = state.steps.iter().any(|step| step.kind.as_str() == "final_answer");
    let about = RunAbout {
        session,
        asked: head,
        head,
        volume,
        note: None,
        prompt: state.prompt,
        agent: "assistant".to_owned(),
        start_time: state.start_time,
        ended: Some(state.saved_at),
        ending: Some(if done { RunEnding::Done } else { RunEnding::Cancelled }),
        iteration: state.iteration,
        limit: state.iteration.max(20),
        agent_state: AgentState::Idle,
        spent: CallUsage::default(),
        budget: None,
        origin: store::RunOrigin::User,
        phase: 0,
        imported: state.imported,
        provider: None,
        deadline: None,
        is_follower: false,
    };
    let (todos, steps, approvals) = (state.todos, state.steps, Vec::new());
    scene.handle.run_command(Command::ImportRun { run, about: Box::new(about), todos, steps, approvals })?;
    export::open_note::wait_until_saved(scene.handle)?;
    scene.print_result(&json!({"run": run}), run)?;
    Ok(EXIT_DONE)
}
