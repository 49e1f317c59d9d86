//! Writes of an MCP client that wait for the user: what each would change, and carrying out exactly that.

use crate::command_calls::{CommandCall, text_version};
use crate::tool_arguments::{ToolArguments, ToolCallError};
use crate::tool_calls::{NoteChange, ServedNote, ToolCallContext, memory_call, sent_text, todo_text};
use crate::tool_table::{ServedTool, ToolRow};
use agent::prompt_quote::single_line;
use program_approvals::{MAX_DIFF_BYTES, ProgramApproval};
use serde_json::{Map, Value, json};
use text::diff::unified_diff;
use text::task::{self, CalendarDay, NoteTask};

/// Maximum length of a program's name in characters.
const MAX_PROGRAM_CHARS: usize = 100;
/// What the program is called if it doesn't say.
const UNNAMED_PROGRAM: &str = "a program";

/// A write that the user is asked about.
#[derive(Clone, Debug)]
pub(crate) struct ProposedWrite {
    /// The tool that the client called.
    tool: &'static str,
    /// What would be done, as a title.
    pub(crate) what: String,
    volume: Option<String>,
    path: Option<String>,
    /// The change, as in a patch.
    pub(crate) diff: String,
    step: WriteStep,
}

/// What is carried out if the user approves.
#[derive(Clone, Debug)]
enum WriteStep {
    /// Creates a note.
    Create { text: String },
    /// Replaces the text of a note that has this version.
    Replace { version: String, text: String, answer: Value },
    /// Adds a line to today's note.
    Capture { text: String },
    /// Keeps a lesson in memory.
    Remember(CommandCall),
}

/// Returns lines of a text as additions of a patch.
fn added_lines(text: &str) -> String {
    text.lines().map(|line| format!("+{line}\n")).collect()
}

/// Returns the text in which the task that is meant is done, or open again.
fn toggled_text(text: &str, at: usize, words: &str, today: CalendarDay) -> Option<(String, bool)> {
    let (mut tasks, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        if NoteTask::parse_line(bare, start).is_some_and(|task| task.text == words) {
            tasks.push((start, bare));
        }
        start += line.len();
    }
    let (start, line) = tasks.into_iter().min_by_key(|(start, _)| start.abs_diff(at))?;
    let (changed, next) = task::toggle_line(line, today)?;
    let end = if text[start + line.len()..].starts_with("\r\n") { "\r\n" } else { "\n" };
    let is_done = NoteTask::parse_line(&changed, 0).is_some_and(|task| task.is_done());
    let inserted = next.map_or(changed.clone(), |next| format!("{next}{end}{changed}"));
    let mut new = text.to_owned();
    new.replace_range(start..start + line.len(), &inserted);
    Some((new, is_done))
}

fn local_day() -> CalendarDay {
    let date = jiff::Zoned::now().date();
    CalendarDay::from_date(i64::from(date.year()), i64::from(date.month()), i64::from(date.day()))
}

/// Checks that a path is one inside a volume, as it's written.
pub(crate) fn ensure_plain_path(path: &str) -> Result<(), ToolCallError> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    match path.split('/').all(is_plain) && !path.contains('\\') {
        true => Ok(()),
        false => Err(ToolCallError(format!("{path} isn't a path inside the volume, such as Plans/Trip.md"))),
    }
}

/// Returns a title that names the volume, if there is one.
fn titled(what: &str, volume: Option<&str>) -> String {
    volume.map_or_else(|| what.to_owned(), |volume| format!("{what} in {volume}"))
}

impl ProposedWrite {
    /// Returns the request under which the write waits.
    pub(crate) fn request(&self, program: Option<&str>) -> ProgramApproval {
        let program = program.map(|name| single_line(name, MAX_PROGRAM_CHARS)).filter(|name| !name.is_empty());
        let program = program.unwrap_or_else(|| UNNAMED_PROGRAM.to_owned());
        ProgramApproval {
            id: format!("write-{:08x}", rand::random::<u32>()),
            tool: self.tool.to_owned(),
            what: self.what.clone(),
            reason: format!("writes of {program} wait for your approval"),
            program,
            volume: self.volume.clone(),
            path: self.path.clone(),
            diff: self.diff.clone(),
            parameters: Map::new(),
            asked: 0,
            expires: 0,
        }
    }
}

impl ToolCallContext<'_> {
    /// Returns the write that a call of a tool asks for, without writing anything.
    pub(crate) fn proposed_write(
        &self,
        row: &ToolRow,
        arguments: &Map<String, Value>,
    ) -> Result<ProposedWrite, ToolCallError> {
        row.ensure_known(arguments)?;
        let arguments = self.limited_arguments(row, arguments)?;
        let args = &ToolArguments(&arguments);
        let write = match row.tool {
            ServedTool::CreateNote => self.proposed_note(row.name, args)?,
            ServedTool::EditNote => {
                let change = self.planned_edit(args)?;
                let new_text = change.new_text();
                let version = text_version(&new_text);
                let answer = json!({"path": change.note.path, "at": change.at, "version": version});
                proposed_change(row.name, "Edit", change.note, new_text, answer)?
            }
            ServedTool::AppendToNote => {
                let change = self.planned_addition(args.needed_text("note")?, args.needed_text("text")?)?;
                proposed_addition(row.name, "Append to", change)?
            }
            ServedTool::AddTodo => {
                let text = todo_text(args)?;
                match args.text("note")? {
                    Some(note) => {
                        let change = self.planned_addition(note, &format!("- [ ] {text}"))?;
                        proposed_addition(row.name, "Add a task to", change)?
                    }
                    None => self.proposed_line(row.name, args, format!("[ ] {text}"))?,
                }
            }
            ServedTool::Capture => {
                let text = sent_text(args.needed_text("text")?)?.to_owned();
                self.proposed_line(row.name, args, text)?
            }
            ServedTool::CheckTodo => self.proposed_check(row.name, args)?,
            ServedTool::Remember => {
                let project = args.text("project")?;
                let goal = args.text("goal")?.map(|goal| format!("Goal: {goal}\n")).unwrap_or_default();
                let outcome = args.text("outcome")?.map(|outcome| format!("Outcome: {outcome}\n")).unwrap_or_default();
                ProposedWrite {
                    tool: row.name,
                    what: titled("Remember a lesson", project),
                    volume: project.map(str::to_owned),
                    path: None,
                    diff: added_lines(&format!("{goal}{outcome}{}", args.needed_text("text")?)),
                    step: WriteStep::Remember(memory_call(args)?),
                }
            }
            ServedTool::SearchNotes
            | ServedTool::RelatedNotes
            | ServedTool::ReadNote
            | ServedTool::ListNotes
            | ServedTool::NoteLinks
            | ServedTool::NoteOutputs
            | ServedTool::ListTodos
            | ServedTool::Recall
            | ServedTool::ListTraces
            | ServedTool::ReadTrace
            | ServedTool::ListRuns
            | ServedTool::ListApprovals
            | ServedTool::RunCells
            | ServedTool::AskAgent => return Err(ToolCallError(format!("{} writes nothing", row.name))),
        };
        match write.diff.len() {
            0..=MAX_DIFF_BYTES => Ok(write),
            _ => Err(ToolCallError(format!(
                "the change is larger than {} kB, too long to review; write it in parts",
                MAX_DIFF_BYTES >> 10
            ))),
        }
    }

    /// Returns the names of the volumes that the caller reaches and that have a folder on this device, with these
    /// folders, in the order of names.
    pub(crate) fn volume_folders(&self) -> Result<Vec<(String, String)>, ToolCallError> {
        let place = |volume: &Value| {
            let text = |key: &str| volume[key].as_str().map(str::to_owned);
            Some((text("name")?, text("folder")?))
        };
        Ok(self.volumes()?.iter().filter_map(place).collect())
    }

    /// Returns the volume in which something new goes: the named one, which must be there, or the first.
    fn chosen_volume(&self, named: Option<&str>) -> Result<Option<String>, ToolCallError> {
        let volumes = self.volume_folders()?;
        match named {
            None => Ok(volumes.into_iter().next().map(|(name, _)| name)),
            Some(named) if volumes.iter().any(|(name, _)| name == named) => Ok(Some(named.to_owned())),
            Some(named) => Err(ToolCallError(format!("there is no volume {named}; list_notes names them"))),
        }
    }

    fn proposed_note(&self, tool: &'static str, args: &ToolArguments<'_>) -> Result<ProposedWrite, ToolCallError> {
        let (path, text) = self.new_note(args)?;
        ensure_plain_path(path)?;
        let path = if path.to_lowercase().ends_with(".md") { path.to_owned() } else { format!("{path}.md") };
        let volume = self.chosen_volume(args.text("volume")?)?;
        if let Some(volume) = &volume
            && self.read_note(&format!("{volume}:{path}")).is_ok_and(|note| note.path == path)
        {
            return Err(ToolCallError(format!("there is a note at {path} already; edit it, or choose another path")));
        }
        Ok(ProposedWrite {
            tool,
            what: titled(&format!("Create {path}"), volume.as_deref()),
            diff: unified_diff(&path, None, Some(text)),
            volume,
            path: Some(path),
            step: WriteStep::Create { text: text.to_owned() },
        })
    }

    /// Returns the write that adds a line to today's note.
    fn proposed_line(
        &self,
        tool: &'static str,
        args: &ToolArguments<'_>,
        text: String,
    ) -> Result<ProposedWrite, ToolCallError> {
        let volume = self.chosen_volume(args.text("volume")?)?;
        // Further lines belong to the same item.
        let item = format!("- {}", text.trim().replace('\n', "\n  "));
        Ok(ProposedWrite {
            tool,
            what: titled("Add to today's note", volume.as_deref()),
            volume,
            path: None,
            diff: added_lines(&item),
            step: WriteStep::Capture { text },
        })
    }

    fn proposed_check(&self, tool: &'static str, args: &ToolArguments<'_>) -> Result<ProposedWrite, ToolCallError> {
        let (path, words) = (args.needed_text("path")?, args.needed_text("text")?);
        let at = args.number("at", u64::MAX)?.ok_or_else(|| ToolCallError::new("`at` is missing"))?;
        self.ensure_unguarded(path)?;
        let note = self.read_note(path)?;
        self.ensure_unguarded(&note.path)?;
        let missing = || ToolCallError(format!("no task of {path} has this text; list_todos lists them: {words}"));
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let (new_text, is_done) = toggled_text(&note.text, at, words, local_day()).ok_or_else(missing)?;
        let answer = json!({"path": note.path, "done": is_done});
        let verb = if is_done { "Check a task of" } else { "Reopen a task of" };
        proposed_change(tool, verb, note, new_text, answer)
    }

    /// Carries out a write that the user has approved, and nothing else.
    pub(crate) fn write_approved(&self, write: &ProposedWrite) -> Result<Value, ToolCallError> {
        let (volume, path) = (write.volume.as_deref(), write.path.as_deref().unwrap_or_default());
        match &write.step {
            WriteStep::Create { text } => {
                let call = CommandCall::json("new").option("volume", volume).option("text", Some("-"));
                // After `./`, a path is taken as it is.
                let outcome = self.perform_ok(call.operands([&format!("./{path}")]).with_input(text.as_str()));
                let refused = |error: ToolCallError| ToolCallError(format!("{path} was not created: {}", error.0));
                let made = outcome.map_err(refused)?.value();
                made.ok_or_else(|| ToolCallError::new("the note was made, but is not listed yet"))
            }
            WriteStep::Replace { version, text, answer } => {
                let word = format!("{}:{path}", volume.unwrap_or_default());
                // The owner compares the version in the moment in which it edits.
                let call = CommandCall::json("edit").flag("text", true).option("if-version", Some(version));
                let outcome = self.perform(call.operands([&word]).with_input(text.as_str()));
                if outcome.code == 0 && !outcome.is_cut {
                    return Ok(answer.clone());
                }
                Err(match self.read_note(&word) {
                    Ok(now) if now.version == *version => ToolCallError::new(outcome.reason()),
                    _ => ToolCallError(format!(
                        "{path} has changed since the user was shown the change, so nothing was written; read it again"
                    )),
                })
            }
            WriteStep::Capture { text } => self.capture(volume, text),
            WriteStep::Remember(call) => self.remember(call.clone()),
        }
    }
}

impl NoteChange {
    /// Returns the note's text with the change.
    fn new_text(&self) -> String {
        let mut text = self.note.text.clone();
        text.replace_range(self.at..self.at + self.old.len(), &self.new);
        text
    }
}

fn proposed_addition(tool: &'static str, verb: &str, change: NoteChange) -> Result<ProposedWrite, ToolCallError> {
    let answer = json!({"path": change.note.path, "at": change.shown_at});
    let new_text = change.new_text();
    proposed_change(tool, verb, change.note, new_text, answer)
}

fn proposed_change(
    tool: &'static str,
    verb: &str,
    note: ServedNote,
    new_text: String,
    answer: Value,
) -> Result<ProposedWrite, ToolCallError> {
    let ServedNote { text, path, volume, version } = note;
    if version.is_empty() {
        return Err(ToolCallError(format!("name the note by its path, not by the address of a passage: {path}")));
    }
    Ok(ProposedWrite {
        tool,
        what: titled(&format!("{verb} {path}"), Some(&volume)),
        diff: unified_diff(&path, Some(&text), Some(&new_text)),
        volume: Some(volume),
        path: Some(path),
        step: WriteStep::Replace { version, text: new_text, answer },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checked_task_is_exactly_the_line_that_is_meant() {
        let today = CalendarDay::from_date(2026, 11, 29);
        let text = "- [ ] Paint\r\n- [ ] Sail\r\n\r\n- [ ] Paint\r\n";
        let second = text.rfind("- [ ]").expect("a task");
        let (new, is_done) = toggled_text(text, second, "Paint", today).expect("toggled");
        assert!(is_done && new == "- [ ] Paint\r\n- [ ] Sail\r\n\r\n- [x] Paint\r\n", "{new:?}");
        let (again, is_done) = toggled_text(&new, second, "Paint", today).expect("toggled");
        assert!(!is_done && again == text, "{again:?}");
        let (weekly, _) =
            toggled_text("- [ ] Water 🔁 every week 📅 2026-11-29\n", 0, "Water", today).expect("toggled");
        assert!(weekly.contains("- [ ] Water") && weekly.contains("2026-12-06") && weekly.contains("- [x] Water"));
        assert_eq!(toggled_text(text, 0, "Row", today), None);
    }

    #[test]
    fn only_paths_inside_a_volume_are_taken() {
        for right in ["Plan.md", "New/Plan", "a b/é.md"] {
            assert!(ensure_plain_path(right).is_ok(), "{right}");
        }
        for wrong in ["../out.md", "/etc/x.md", "./x.md", "a//b.md", "a/", "a\\b.md"] {
            assert!(ensure_plain_path(wrong).is_err(), "{wrong}");
        }
    }
}
