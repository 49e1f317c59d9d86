//! Tool calls of MCP clients, carried out as commands of the command line.

use crate::command_calls::{CommandCall, CommandOutcome, WorkspaceCommands, text_page, text_version};
use crate::mcp_approvals::PendingApproval;
use crate::proposed_writes::ensure_plain_path;
use crate::tool_arguments::{ToolArguments, ToolCallError};
use crate::tool_table::{ServedTool, ToolRow};
use agent::server_material::without_server_calls;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Names, in lowercase, of files from which coding agents take instructions: none of them may write its own.
const INSTRUCTION_FILES: [&str; 6] =
    ["agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "skill.md"];

/// Length of a page of a note in bytes, if the client doesn't say.
const DEFAULT_PAGE_BYTES: u64 = 50_000;
/// Maximum length of a page of a note in bytes.
const MAX_PAGE_BYTES: u64 = 1_000_000;
/// Maximum length of a text that a client sends, in bytes.
const MAX_SENT_TEXT_BYTES: usize = 8 << 20;
/// Maximum length of one text in outputs, in bytes. The rest is left out and named.
const MAX_OUTPUT_TEXT_BYTES: usize = 100_000;
/// Maximum size of all outputs in a result, in bytes of JSON.
const MAX_OUTPUTS_BYTES: usize = 2_000_000;
/// How often a text is added at the end of a note that others change at the same time.
const MAX_ADDITION_TRIES: u32 = 100;
/// Limits of numbers of results.
const MAX_HITS: u64 = 50;
const MAX_LISTED: u64 = 1_000;
/// Maximum limit for a cell in seconds.
pub(crate) const MAX_CELL_SECONDS: u64 = 3_600;
/// How often a running call looks whether the client has cancelled it.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time between attempts to stop what a cancelled call has begun.
const STOP_INTERVAL: Duration = Duration::from_millis(500);
/// The same after cells were interrupted.
const REPEATED_STOP_INTERVAL: Duration = Duration::from_secs(5);

/// What a call reports while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallNews {
    /// What it does, for a person who waits.
    Progress(String),
    /// A run waits for a decision.
    Approval(PendingApproval),
}

/// Gets a line of output, and what is told to who waits.
type LineAction<'a> = dyn FnMut(&str, &mut dyn FnMut(CallNews)) + 'a;

/// A text of a note, with where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedNote {
    pub(crate) text: String,
    pub(crate) path: String,
    pub(crate) volume: String,
    /// The version that the owner of the workspace knows; empty for a passage.
    pub(crate) version: String,
}

/// A replacement in a note's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoteChange {
    pub(crate) note: ServedNote,
    /// How the client names the note.
    word: String,
    pub(crate) at: usize,
    pub(crate) old: String,
    pub(crate) new: String,
    /// Where the text of the client begins, in bytes.
    pub(crate) shown_at: usize,
}

/// What a tool call needs besides its arguments.
pub(crate) struct ToolCallContext<'a> {
    pub(crate) commands: &'a dyn WorkspaceCommands,
    /// Name of the only volume that the caller reaches; `None` for all.
    pub(crate) only_volume: Option<&'a str>,
    pub(crate) cancelled: Arc<AtomicBool>,
    /// Gets what the call reports while it runs.
    pub(crate) on_news: &'a mut dyn FnMut(CallNews),
}

/// Returns the note that `cat` printed; `None` if it printed a passage or a file.
pub(crate) fn whole_note(outcome: &CommandOutcome) -> Option<ServedNote> {
    let whole = outcome.value().filter(|value| value["text"].is_string() && value["path"].is_string());
    let Some(Value::Object(mut found)) = whole else { return None };
    let mut take = |name: &str| match found.remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    Some(ServedNote { text: take("text"), path: take("path"), volume: take("volume"), version: take("version") })
}

impl ToolCallContext<'_> {
    pub(crate) fn perform(&self, call: CommandCall) -> CommandOutcome {
        self.perform_lines(call, &mut |_| {})
    }

    fn perform_lines(&self, mut call: CommandCall, on_line: &mut dyn FnMut(&str)) -> CommandOutcome {
        call.cancelled = self.cancelled.clone();
        self.commands.perform(&call, on_line)
    }

    /// Performs a command. If the client cancels it meanwhile, `stop` ends what it began. `on_line` gets each line of
    /// output, and who waits.
    fn perform_stoppable(
        &mut self,
        mut call: CommandCall,
        stop: CommandCall,
        on_line: &mut LineAction<'_>,
    ) -> CommandOutcome {
        let (cancelled, commands) = (self.cancelled.clone(), self.commands);
        call.cancelled = cancelled.clone();
        let is_over = AtomicBool::new(false);
        let on_news = &mut self.on_news;
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) && !cancelled.load(Ordering::Relaxed) {
                    std::thread::park_timeout(CANCEL_CHECK_INTERVAL);
                }
                // What was cancelled may not have begun yet.
                while !is_over.load(Ordering::Relaxed) {
                    // What others began after it isn't stopped, too.
                    let is_stopped = commands.perform(&stop, &mut |_| {}).code == 0;
                    std::thread::park_timeout(if is_stopped { REPEATED_STOP_INTERVAL } else { STOP_INTERVAL });
                }
            });
            let outcome = commands.perform(&call, &mut |line| on_line(line, on_news));
            is_over.store(true, Ordering::Relaxed);
            watch.thread().unpark();
            outcome
        })
    }

    /// Performs a command that must succeed.
    pub(crate) fn perform_ok(&self, call: CommandCall) -> Result<CommandOutcome, ToolCallError> {
        let outcome = self.perform(call);
        match outcome.code {
            0 if !outcome.is_cut => Ok(outcome),
            _ => Err(ToolCallError::new(outcome.reason())),
        }
    }

    /// Reads a note, or the passage at a search address.
    pub(crate) fn read_note(&self, note: &str) -> Result<ServedNote, ToolCallError> {
        if let Some(own) = self.only_volume {
            return self.read_own_note(own, note);
        }
        let outcome = self.perform_ok(CommandCall::json("cat").operands([note]))?;
        Ok(whole_note(&outcome).unwrap_or_else(|| {
            // A passage is printed as it is.
            let path = note.rsplit_once('#').map_or(note, |(path, _)| path).to_owned();
            ServedNote { text: outcome.text(), path, volume: String::new(), version: String::new() }
        }))
    }

    /// Rejects a change of a file that other programs run or take as instructions.
    pub(crate) fn ensure_unguarded(&self, path: &str) -> Result<(), ToolCallError> {
        let path = path.trim_start_matches("./");
        let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        let instructs = INSTRUCTION_FILES.contains(&name.as_str()).then_some("agents take it as instructions");
        match guarded::guarded_reason(path).or(instructs) {
            None => Ok(()),
            Some(why) => Err(ToolCallError(format!("{path} is protected ({why}); the user must change it"))),
        }
    }

    /// Carries out a call of an allowed tool. Returns its structured output.
    pub(crate) fn call(&mut self, row: &ToolRow, arguments: &Map<String, Value>) -> Result<Value, ToolCallError> {
        row.ensure_known(arguments)?;
        let arguments = self.limited_arguments(row, arguments)?;
        let args = &ToolArguments(&arguments);
        match row.tool {
            ServedTool::SearchNotes => {
                let limit = args.number("limit", MAX_HITS)?.unwrap_or(10).max(1);
                let query = args.needed_text("query")?;
                self.hits(CommandCall::json("search").flag("explain", true), query, limit)
            }
            ServedTool::RelatedNotes => {
                let limit = args.number("limit", MAX_HITS)?.unwrap_or(10).max(1);
                let note = self.note_word(args.needed_text("note")?)?;
                self.hits(CommandCall::json("related"), &note, limit)
            }
            ServedTool::ReadNote => self.note_page(args),
            ServedTool::ListNotes => self.list_notes(args),
            ServedTool::NoteLinks => {
                let call = CommandCall::json("links").operands([&self.note_word(args.needed_text("note")?)?]);
                let value = self.perform_ok(call)?.value().filter(Value::is_object);
                value.ok_or_else(|| ToolCallError::new("the note's links are not known yet; try again in a moment"))
            }
            ServedTool::NoteOutputs => {
                let note = self.note_word(args.needed_text("note")?)?;
                let outcome = self.perform_ok(CommandCall::json("outputs").operands([&note]))?;
                Ok(json!({"cells": bounded_outputs(outcome.lines())}))
            }
            ServedTool::ListTodos => {
                let limit = args.number("limit", MAX_LISTED)?.unwrap_or(200);
                let call = CommandCall::json("todos").option("words", args.text("words")?);
                let mut todos = self.perform_ok(call.flag("all", args.flag("all")?))?.lines();
                todos.retain(|todo| self.reaches(&todo["volume"]));
                Ok(json!({"total": todos.len(), "todos": first(todos, limit)}))
            }
            ServedTool::Recall => {
                Ok(json!({"memories": self.recalled(args.text("project")?, args.needed_text("goal")?)?}))
            }
            ServedTool::ListTraces => list_page("traces", self.traces(args.text("project")?)?, args),
            ServedTool::ReadTrace => self.read_trace(args.needed_text("name")?, args.text("project")?),
            ServedTool::ListRuns => {
                let limit = args.number("limit", MAX_HITS)?.unwrap_or(10);
                let runs = self.runs()?;
                Ok(json!({"total": runs.len(), "runs": first(runs, limit)}))
            }
            ServedTool::ListApprovals => Ok(json!({"approvals": first(self.approvals()?, MAX_LISTED)})),
            ServedTool::CreateNote => self.create_note(args),
            ServedTool::EditNote => self.edit_note(args),
            ServedTool::AppendToNote => self.append(args.needed_text("note")?, args.needed_text("text")?),
            ServedTool::Capture => self.capture(args.text("volume")?, sent_text(args.needed_text("text")?)?),
            ServedTool::AddTodo => self.add_todo(args),
            ServedTool::CheckTodo => {
                let path = args.needed_text("path")?;
                let at = args.number("at", u64::MAX)?.ok_or_else(|| ToolCallError::new("`at` is missing"))?;
                self.ensure_unguarded(path)?;
                // The path may be only the end of one, or begin with the volume.
                let (note, word) = self.changed_note(path)?;
                self.ensure_unguarded(&note.path)?;
                let call = CommandCall::json("todos").option("check", Some(word)).option("at", Some(at));
                let outcome = self.perform_ok(call.option("words", Some(args.needed_text("text")?)))?;
                Ok(outcome.value().unwrap_or_default())
            }
            ServedTool::Remember => self.remember(memory_call(args)?),
            ServedTool::RunCells => self.run_cells(args),
            ServedTool::AskAgent => self.ask_agent(args),
        }
    }

    /// Returns what earlier work says about a goal: memories and traces, the most relevant of each volume first.
    pub(crate) fn recalled(&self, project: Option<&str>, goal: &str) -> Result<Vec<Value>, ToolCallError> {
        let call = CommandCall::json("memory").option("project", self.reached_volume(project)?);
        Ok(first(self.perform_ok(call.operands(["bearing", goal]))?.lines(), MAX_HITS))
    }

    fn hits(&self, call: CommandCall, wanted: &str, limit: u64) -> Result<Value, ToolCallError> {
        let call = self.limited_search(call)?.option("limit", Some(limit));
        let found = self.perform_ok(call.operands([wanted]))?;
        let hits = if let Some(Value::Array(hits)) = found.value() { hits } else { Vec::new() };
        let own = hits.into_iter().filter(|hit| self.reaches(&hit["volume"])).collect();
        let mut value = json!({"hits": first(own, limit)});
        // Such as a filter that isn't known.
        if !found.messages.is_empty() {
            value["messages"] = found.said().into();
        }
        Ok(value)
    }

    fn note_page(&self, args: &ToolArguments<'_>) -> Result<Value, ToolCallError> {
        let length = args.number("length", MAX_PAGE_BYTES)?.unwrap_or(DEFAULT_PAGE_BYTES).max(4);
        let offset = args.number("offset", u64::MAX)?.unwrap_or(0);
        let note = self.read_note(args.needed_text("note")?)?;
        let (from, length) = (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(length).unwrap_or(4));
        let (page, next) = text_page(&note.text, from, length);
        let mut value = json!({
            "text": page, "path": note.path, "volume": note.volume, "version": text_version(&note.text),
            "bytes": note.text.len(),
        });
        if let Some(next) = next {
            value["next_offset"] = next.into();
        }
        Ok(value)
    }

    fn list_notes(&self, args: &ToolArguments<'_>) -> Result<Value, ToolCallError> {
        let prefix = args.text("prefix")?.unwrap_or_default();
        list_page("notes", self.notes(args.text("volume")?, prefix)?, args)
    }

    /// Returns the notes of all volumes that the caller reaches, or of one, with paths that begin with `prefix`.
    pub(crate) fn notes(&self, volume: Option<&str>, prefix: &str) -> Result<Vec<Value>, ToolCallError> {
        let volume = self.reached_volume(volume)?;
        let all = self.perform_ok(CommandCall::json("ls").option("volume", volume))?.value().unwrap_or_default();
        let is_note = |row: &&Value| {
            row["kind"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("note"))
                && row["path"].as_str().is_some_and(|path| path.starts_with(prefix))
                && self.reaches(&row["volume"])
        };
        let short = |row: &Value| {
            let (path, volume) = (&row["path"], &row["volume"]);
            json!({"path": path, "volume": volume, "kind": row["kind"], "cells": row["cells"]})
        };
        Ok(all.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter(is_note).map(short).collect())
    }

    /// Returns the path and the text of a note to create, if a client may write such a file.
    pub(crate) fn new_note<'a>(&self, args: &'a ToolArguments<'_>) -> Result<(&'a str, &'a str), ToolCallError> {
        let path = args.needed_text("path")?;
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.contains('.') && !name.to_lowercase().ends_with(".md") {
            return Err(ToolCallError(format!("a note's path ends with .md, not as in {path}")));
        }
        if args.text("volume")?.is_none() && path.contains(':') {
            return Err(ToolCallError(format!("name the volume in `volume`, and not in the path {path}")));
        }
        self.ensure_unguarded(path)?;
        self.ensure_unguarded(&format!("{path}.md"))?;
        Ok((path, sent_text(args.text("text")?.unwrap_or_default())?))
    }

    fn create_note(&self, args: &ToolArguments<'_>) -> Result<Value, ToolCallError> {
        let (path, text) = self.new_note(args)?;
        let call = CommandCall::json("new").option("volume", args.text("volume")?).option("text", Some("-"));
        let path = match self.only_volume {
            Some(_) => {
                ensure_plain_path(path)?;
                Cow::Owned(format!("./{path}"))
            }
            None => self.exact_if_guarded(path)?,
        };
        let made = self.perform_ok(call.operands([&path]).with_input(text))?.value();
        made.ok_or_else(|| ToolCallError::new("the note was made, but is not listed yet"))
    }

    /// Returns the path of a new note so that it's taken as it is if what follows one of its parts is protected. Of
    /// other paths, the name of the volume in front is left out.
    fn exact_if_guarded<'p>(&self, path: &'p str) -> Result<Cow<'p, str>, ToolCallError> {
        let mut ends = path.match_indices(['/', ':']).map(|(at, _)| &path[at + 1..]);
        let check =
            |end: &str| self.ensure_unguarded(end).and_then(|()| self.ensure_unguarded(&format!("{end}.md"))).err();
        match ends.find_map(check) {
            None => Ok(Cow::Borrowed(path)),
            Some(why) if path.starts_with('/') => Err(why),
            Some(_) => Ok(Cow::Owned(format!("./{path}"))),
        }
    }

    /// Changes a note. Its owner checks in the moment of the edit that the old text is still there, and with
    /// `only_version` that the whole text is.
    fn apply_change(&self, change: &NoteChange, only_version: bool) -> Result<(), ToolCallError> {
        let mut line = json!({"at": change.at, "old": change.old, "insert": change.new});
        if only_version && !change.note.version.is_empty() {
            line["version"] = change.note.version.as_str().into();
        }
        let call = CommandCall::json("edit").operands([&change.word]).with_input(line.to_string());
        self.perform_ok(call).map(|_| ())
    }

    /// Returns the change that a client wants, if it may change the note and names one place in it.
    pub(crate) fn planned_edit(&self, args: &ToolArguments<'_>) -> Result<NoteChange, ToolCallError> {
        let word = args.needed_text("note")?;
        let old = args.text("old_text")?.filter(|old| !old.is_empty());
        let old = old.ok_or_else(|| ToolCallError::new("`old_text` is missing"))?;
        let new = args.text("new_text")?.ok_or_else(|| ToolCallError::new("`new_text` is missing"))?;
        let new = sent_text(new)?;
        let (note, word) = self.changed_note(word)?;
        self.ensure_unguarded(&note.path)?;
        if args.text("version")?.is_some_and(|version| version != text_version(&note.text)) {
            return Err(ToolCallError(format!("{} has changed since that version; read it again", note.path)));
        }
        let mut places = note.text.match_indices(old).map(|(at, _)| at);
        let (Some(at), None) = (places.next(), places.next()) else {
            let count = note.text.matches(old).count();
            return Err(ToolCallError(format!(
                "old_text occurs {count} times in {}; give a text that occurs exactly once",
                note.path
            )));
        };
        let (old, new) = (old.to_owned(), new.to_owned());
        Ok(NoteChange { note, word, at, old, new, shown_at: at })
    }

    fn edit_note(&self, args: &ToolArguments<'_>) -> Result<Value, ToolCallError> {
        let change = self.planned_edit(args)?;
        self.apply_change(&change, args.text("version")?.is_some())?;
        let after = self.read_note(&change.word)?;
        Ok(json!({"path": change.note.path, "at": change.at, "version": text_version(&after.text)}))
    }

    /// Returns the change that adds a text at the end of a note, on a line of its own.
    pub(crate) fn planned_addition(&self, word: &str, text: &str) -> Result<NoteChange, ToolCallError> {
        let text = sent_text(text)?;
        let (note, word) = self.changed_note(word)?;
        self.ensure_unguarded(&note.path)?;
        let begin = if note.text.is_empty() || note.text.ends_with('\n') { "" } else { "\n" };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let (at, new) = (note.text.len(), format!("{begin}{text}{end}"));
        Ok(NoteChange { shown_at: at + begin.len(), note, word, at, old: String::new(), new })
    }

    fn append(&self, word: &str, text: &str) -> Result<Value, ToolCallError> {
        let mut change = self.planned_addition(word, text)?;
        let mut tries = 1;
        while let Err(why) = self.apply_change(&change, true) {
            let now = self.planned_addition(word, text)?;
            if tries == MAX_ADDITION_TRIES || now.note.version == change.note.version {
                return Err(why);
            }
            // The end is elsewhere now.
            (change, tries) = (now, tries + 1);
        }
        Ok(json!({"path": change.note.path, "at": change.shown_at}))
    }

    fn add_todo(&self, args: &ToolArguments<'_>) -> Result<Value, ToolCallError> {
        let text = todo_text(args)?;
        match args.text("note")? {
            Some(note) => self.append(note, &format!("- [ ] {text}")),
            // `capture` makes it an item of a list.
            None => self.capture(args.text("volume")?, &format!("[ ] {text}")),
        }
    }

    /// Adds a line to today's note.
    pub(crate) fn capture(&self, volume: Option<&str>, text: &str) -> Result<Value, ToolCallError> {
        let call = CommandCall::json("capture").option("volume", volume);
        Ok(self.perform_ok(call.operands(["-"]).with_input(text))?.value().unwrap_or_default())
    }

    /// Keeps something in memory, as [`memory_call`] describes it.
    pub(crate) fn remember(&self, call: CommandCall) -> Result<Value, ToolCallError> {
        let (_, said) = self.perform_ok(call)?.kept_memory();
        Ok(json!({"said": said}))
    }

    fn run_cells(&mut self, args: &ToolArguments<'_>) -> Result<Value, ToolCallError> {
        let note = args.needed_text("note")?;
        (self.on_news)(CallNews::Progress(format!("runs cells of {note}")));
        let mut printed = |_: &str, tell: &mut dyn FnMut(CallNews)| {
            tell(CallNews::Progress("a cell has printed".to_owned()));
        };
        let outcome = self.follow_cells(args, &mut printed)?;
        Ok(json!({
            "ok": outcome.code == 0, "outputs": bounded_outputs(outcome.lines()), "messages": outcome.messages.trim(),
        }))
    }

    /// Runs cells. `on_line` gets each output as a line of JSON when its cell ends.
    #[cfg(feature = "grpc")]
    pub(crate) fn stream_cells(
        &mut self,
        arguments: &Map<String, Value>,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<CommandOutcome, ToolCallError> {
        self.follow_cells(&ToolArguments(arguments), &mut |line, _| on_line(line))
    }

    fn follow_cells(
        &mut self,
        args: &ToolArguments<'_>,
        on_line: &mut LineAction<'_>,
    ) -> Result<CommandOutcome, ToolCallError> {
        let seconds = args.number("timeout_seconds", MAX_CELL_SECONDS)?.map(|seconds| seconds.max(1));
        let (cell, stale) = (args.number("cell", u64::MAX)?, args.flag("stale")?);
        let note = &self.note_word(args.needed_text("note")?)?;
        let call = CommandCall::json("run").option("cell", cell).flag("stale", stale);
        let call = call.option("timeout", seconds.filter(|_| !stale)).operands([note]);
        let stop = CommandCall::json("run").flag("stop", true).operands([note]);
        let outcome = self.perform_stoppable(call, stop, on_line);
        match outcome.code {
            0 | 1 if !outcome.is_cut => Ok(outcome),
            _ => Err(ToolCallError::new(outcome.reason())),
        }
    }

    fn ask_agent(&mut self, args: &ToolArguments<'_>) -> Result<Value, ToolCallError> {
        let budget = match args.0.get("budget") {
            None | Some(Value::Null) => None,
            Some(value) => Some(value.as_f64().ok_or_else(|| ToolCallError::new("`budget` must be a number"))?),
        };
        let call = CommandCall::json("ask")
            .option("project", args.text("project")?)
            .option("agent", args.text("agent")?)
            .option("budget", budget);
        let run = new_run_id();
        let call = call.option("run", Some(&run));
        let call = call.operands(["-"]).with_input(without_server_calls(sent_text(args.needed_text("text")?)?));
        let stop = CommandCall::json("runs").flag("stop", true).operands([&run]);
        let outcome = self.perform_stoppable(call, stop, &mut |line, tell| {
            if let Some(news) = step_news(line) {
                tell(news);
            }
        });
        let steps = outcome.lines();
        let answer = steps.iter().rev().find(|step| step["type"] == "final_answer").map(|step| step["content"].clone());
        if outcome.code > 1 || (steps.is_empty() && outcome.code != 0) {
            return Err(ToolCallError::new(outcome.reason()));
        }
        Ok(json!({
            "run": run, "ok": outcome.code == 0,
            "answer": answer.and_then(|answer| answer.as_str().map(str::to_owned)).unwrap_or_default(),
            "steps": steps.len(), "messages": outcome.messages.trim(),
        }))
    }
}

/// Returns the page of a list that a client wants, with the number of all items and where the rest begins.
fn list_page(name: &str, all: Vec<Value>, args: &ToolArguments<'_>) -> Result<Value, ToolCallError> {
    let limit = usize::try_from(args.number("limit", MAX_LISTED)?.unwrap_or(200)).unwrap_or(200);
    let offset = usize::try_from(args.number("offset", u64::MAX)?.unwrap_or(0)).unwrap_or(usize::MAX);
    let total = all.len();
    let page: Vec<Value> = all.into_iter().skip(offset).take(limit).collect();
    let end = offset.saturating_add(page.len());
    let mut value = json!({"total": total});
    value[name] = page.into();
    if end < total {
        value["next_offset"] = end.into();
    }
    Ok(value)
}

/// Returns the text of a task to add: one line.
pub(crate) fn todo_text<'a>(args: &'a ToolArguments<'_>) -> Result<&'a str, ToolCallError> {
    let text = args.needed_text("text")?.trim();
    match text.contains(['\n', '\r']) {
        true => Err(ToolCallError::new("`text` must be one line")),
        false => Ok(text),
    }
}

/// Returns the command that keeps what a client wants to remember.
pub(crate) fn memory_call(args: &ToolArguments<'_>) -> Result<CommandCall, ToolCallError> {
    let call = CommandCall::json("memory")
        .option("project", args.text("project")?)
        .option("goal", args.text("goal")?)
        .option("outcome", args.text("outcome")?)
        .option("source", Some("a program, over MCP"));
    Ok(call.operands(["add", sent_text(args.needed_text("text")?)?]))
}

/// Returns what a step of a run does, in a few words, or what it waits for.
fn step_news(line: &str) -> Option<CallNews> {
    let step: Value = serde_json::from_str(line).ok()?;
    if let Some(approval) = PendingApproval::from_line(&step) {
        return Some(CallNews::Approval(approval));
    }
    let kind = step["type"].as_str()?.replace('_', " ");
    Some(CallNews::Progress(match step["toolName"].as_str() {
        Some(tool) => format!("{kind}: {tool}"),
        None => kind,
    }))
}

/// Returns the id of a new run: 16 random bytes.
pub(crate) fn new_run_id() -> String {
    let mut bytes: [u8; 16] = rand::random();
    // As of a UUID of version 4: other programs accept no other ids of documents.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn sent_text(text: &str) -> Result<&str, ToolCallError> {
    match text.len() {
        0..=MAX_SENT_TEXT_BYTES => Ok(text),
        length => Err(ToolCallError(format!("the text has {length} bytes; at most {MAX_SENT_TEXT_BYTES} are taken"))),
    }
}

fn first(mut all: Vec<Value>, limit: u64) -> Vec<Value> {
    all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    all
}

/// Shortens an output: long texts are cut.
#[cfg(feature = "grpc")]
pub(crate) fn bounded_output(mut output: Value) -> Value {
    shorten_value(&mut output);
    output
}

/// Shortens outputs: long texts are cut, images and figures are named, and what is beyond the maximum is left out.
pub(crate) fn bounded_outputs(outputs: Vec<Value>) -> Vec<Value> {
    let mut size = 0;
    let mut kept = Vec::new();
    for mut output in outputs {
        shorten_value(&mut output);
        size += output.to_string().len();
        if size > MAX_OUTPUTS_BYTES {
            kept.push(json!({"output_type": "stream", "name": "stderr", "text": "further outputs are left out"}));
            break;
        }
        kept.push(output);
    }
    kept
}

fn shorten_value(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_OUTPUT_TEXT_BYTES => {
            let end = text.floor_char_boundary(MAX_OUTPUT_TEXT_BYTES);
            let left = text.len() - end;
            text.truncate(end);
            text.push_str(&format!("… {left} more bytes"));
        }
        Value::Array(all) => all.iter_mut().for_each(shorten_value),
        Value::Object(all) => all.values_mut().for_each(shorten_value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
