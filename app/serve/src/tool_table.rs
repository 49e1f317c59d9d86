//! The tools of the MCP server: names, descriptions, schemas, and what must be allowed for each.

use crate::tool_arguments::ToolCallError;
use serde_json::{Map, Value, json};

/// What a tool does to the workspace, so what the user must have allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    /// It changes nothing.
    Reads,
    /// It changes notes or memory: `--allow-write`.
    Writes,
    /// It runs cells of notes: `--allow-run`.
    Runs,
    /// It starts an agent, which costs money and works under its own policy: `--allow-agent`.
    AsksAgents,
}

/// A tool of the MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServedTool {
    SearchNotes,
    RelatedNotes,
    ReadNote,
    ListNotes,
    NoteLinks,
    NoteOutputs,
    ListTodos,
    Recall,
    ListTraces,
    ReadTrace,
    ListRuns,
    ListApprovals,
    CreateNote,
    EditNote,
    AppendToNote,
    Capture,
    AddTodo,
    CheckTodo,
    Remember,
    RunCells,
    AskAgent,
}

/// Description of a tool for models and clients.
pub(crate) struct ToolRow {
    pub(crate) tool: ServedTool,
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: ToolEffect,
    /// Properties of the input: name, JSON type, whether it's needed, description.
    pub(crate) input: &'static [(&'static str, &'static str, bool, &'static str)],
    /// Properties of the structured output: name, JSON type, description.
    pub(crate) output: &'static [(&'static str, &'static str, &'static str)],
}

const NOTE: (&str, &str, bool, &str) = (
    "note",
    "string",
    true,
    "the note: its path as list_notes returns it, VOLUME:PATH, or the end of a path that fits one note",
);
const LIMIT: (&str, &str, bool, &str) = ("limit", "integer", false, "how many at most; 10 when left out, 50 at most");
const OFFSET: (&str, &str, bool, &str) = ("offset", "integer", false, "where to begin; next_offset of the last answer");
const NEXT: (&str, &str, &str) = ("next_offset", "integer", "where the rest begins; missing if there is none");

use ServedTool as T;
use ToolEffect::{AsksAgents, Reads, Runs, Writes};

/// All tools. Those that aren't allowed are neither listed nor called.
pub(crate) const TOOL_ROWS: &[ToolRow] = &[
    ToolRow {
        tool: T::SearchNotes,
        name: "search_notes",
        title: "Search notes",
        description: "Search the user's notes, code and cell outputs by words and by meaning. Fields narrow it: tag: \
                      path: title: in:code lang: by: before: after: is:todo. \"Phrases\", -not and OR work. Each hit \
                      has an address for read_note.",
        effect: Reads,
        input: &[("query", "string", true, "what is searched"), LIMIT],
        output: &[
            ("hits", "array", "address, title, text, score, why, kind and heading of each hit, best first"),
            ("messages", "string", "what the search says besides, such as a filter that it doesn't know"),
        ],
    },
    ToolRow {
        tool: T::RelatedNotes,
        name: "related_notes",
        title: "Related notes",
        description: "List notes whose meaning is near to that of a note.",
        effect: Reads,
        input: &[NOTE, LIMIT],
        output: &[("hits", "array", "address, title, text, score and why of each note, nearest first")],
    },
    ToolRow {
        tool: T::ReadNote,
        name: "read_note",
        title: "Read a note",
        description: "Read a note's Markdown, or the passage at an address that search_notes returned. Long notes \
                      come in pages.",
        effect: Reads,
        input: &[NOTE, OFFSET, ("length", "integer", false, "how many bytes at most; 50000 when left out")],
        output: &[
            ("text", "string", "the Markdown, or this page of it"),
            ("path", "string", "path inside the volume"),
            ("volume", "string", "the volume"),
            ("version", "string", "changes with every byte of the note; edit_note can check it"),
            ("bytes", "integer", "length of the whole note in bytes"),
            NEXT,
        ],
    },
    ToolRow {
        tool: T::ListNotes,
        name: "list_notes",
        title: "List notes",
        description: "List the notes of all volumes, or of one, by path.",
        effect: Reads,
        input: &[
            ("volume", "string", false, "only this volume"),
            ("prefix", "string", false, "only paths that begin like this, such as Journal/"),
            OFFSET,
            ("limit", "integer", false, "how many at most; 200 when left out"),
        ],
        output: &[
            ("notes", "array", "path, volume, kind, number of cells of each"),
            ("total", "integer", "how many there are in all"),
            NEXT,
        ],
    },
    ToolRow {
        tool: T::NoteLinks,
        name: "note_links",
        title: "Links of a note",
        description: "List a note's links, backlinks, headings, tags and aliases.",
        effect: Reads,
        input: &[NOTE],
        output: &[
            ("outgoing", "array", "links of the note"),
            ("backlinks", "array", "links to it, with the line they are in"),
            ("headings", "array", "its headings"),
            ("tags", "array", "its tags"),
        ],
    },
    ToolRow {
        tool: T::NoteOutputs,
        name: "note_outputs",
        title: "Outputs of a note",
        description: "Read what a note's cells printed when they last ran, and which of them are out of date.",
        effect: Reads,
        input: &[NOTE],
        output: &[("cells", "array", "cell number, status, stale, and outputs as in a Jupyter notebook")],
    },
    ToolRow {
        tool: T::ListTodos,
        name: "list_todos",
        title: "List todos",
        description: "List the open tasks of all notes by day.",
        effect: Reads,
        input: &[
            ("words", "string", false, "only those with these words"),
            ("all", "boolean", false, "also those that are done"),
            ("limit", "integer", false, "how many at most; 200 when left out"),
        ],
        output: &[("todos", "array", "text, path, at (byte in the note), done, due, scheduled, priority, when")],
    },
    ToolRow {
        tool: T::Recall,
        name: "recall",
        title: "Recall",
        description: "Recall what is remembered about a goal: lessons, earlier work and routines.",
        effect: Reads,
        input: &[
            ("goal", "string", true, "the goal of the work"),
            ("project", "string", false, "the volume; all when left out"),
        ],
        output: &[("memories", "array", "kind, name, what, why and what was learned, of each")],
    },
    ToolRow {
        tool: T::ListTraces,
        name: "list_traces",
        title: "List traces",
        description: "List traces: steps of earlier runs that later runs repeat without a model.",
        effect: Reads,
        input: &[
            ("project", "string", false, "only of this volume"),
            OFFSET,
            ("limit", "integer", false, "how many at most; 200 when left out"),
        ],
        output: &[
            (
                "traces",
                "array",
                "name, project, path, goal_text, number of steps, and follows (runs repeat it) of each",
            ),
            ("total", "integer", "how many there are in all"),
            NEXT,
        ],
    },
    ToolRow {
        tool: T::ReadTrace,
        name: "read_trace",
        title: "Read a trace",
        description: "Read a trace that list_traces names: its goal, and its steps as YAML.",
        effect: Reads,
        input: &[
            ("name", "string", true, "its name, as list_traces returned it"),
            ("project", "string", false, "its volume; needed if several have a trace with this name"),
        ],
        output: &[
            ("text", "string", "the trace with its steps, as YAML"),
            ("name", "string", "its name"),
            ("project", "string", "its volume"),
            ("path", "string", "path of its note"),
            ("goal_text", "string", "what the run was asked"),
            ("steps", "integer", "how many steps it has"),
            ("follows", "boolean", "whether runs repeat it"),
        ],
    },
    ToolRow {
        tool: T::ListRuns,
        name: "list_runs",
        title: "List runs",
        description: "List the work of agents: what was asked, how it stands, what it cost.",
        effect: Reads,
        input: &[LIMIT],
        output: &[("runs", "array", "id, standing, prompt and cost of each, newest first")],
    },
    ToolRow {
        tool: T::ListApprovals,
        name: "list_approvals",
        title: "List approvals",
        description: "List what agents and programs wait for. Only the user decides, in the window or with \
                      `tracebook approvals`.",
        effect: Reads,
        input: &[],
        output: &[("approvals", "array", "name, tool, arguments and reason of each")],
    },
    ToolRow {
        tool: T::CreateNote,
        name: "create_note",
        title: "Create a note",
        description: "Create a Markdown note. Fails if there is one with this path.",
        effect: Writes,
        input: &[
            ("path", "string", true, "where, inside the volume; .md is added when it has no ending"),
            ("text", "string", false, "the Markdown"),
            ("volume", "string", false, "the volume; the first one when left out"),
        ],
        output: &[("path", "string", "its path"), ("volume", "string", "its volume"), ("id", "string", "its id")],
    },
    ToolRow {
        tool: T::EditNote,
        name: "edit_note",
        title: "Edit a note",
        description: "Replace text of a note. old_text must be in the note exactly once. What the user types \
                      meanwhile is kept, and the user can undo the change.",
        effect: Writes,
        input: &[
            NOTE,
            ("old_text", "string", true, "the text to replace, exactly as it is in the note"),
            ("new_text", "string", true, "what it is replaced by; may be empty"),
            ("version", "string", false, "the version that read_note returned; fails if the note has changed since"),
        ],
        output: &[
            ("path", "string", "path inside the volume"),
            ("at", "integer", "where the change begins, in bytes"),
            ("version", "string", "the version after the change"),
        ],
    },
    ToolRow {
        tool: T::AppendToNote,
        name: "append_to_note",
        title: "Append to a note",
        description: "Add Markdown at the end of a note, on a line of its own.",
        effect: Writes,
        input: &[NOTE, ("text", "string", true, "the Markdown to add")],
        output: &[("path", "string", "path inside the volume"), ("at", "integer", "where it was added, in bytes")],
    },
    ToolRow {
        tool: T::Capture,
        name: "capture",
        title: "Capture a thought",
        description: "Add a line to today's note.",
        effect: Writes,
        input: &[("text", "string", true, "the line"), ("volume", "string", false, "the volume; the first one")],
        output: &[("path", "string", "today's note"), ("id", "string", "its id")],
    },
    ToolRow {
        tool: T::AddTodo,
        name: "add_todo",
        title: "Add a todo",
        description: "Add a task to a note, or to today's note. A date is written as in \"Call Ada 📅 2027-01-31\".",
        effect: Writes,
        input: &[
            ("text", "string", true, "the task, in one line"),
            ("note", "string", false, "the note; today's when left out"),
            ("volume", "string", false, "the volume of today's note; the first one when left out"),
        ],
        output: &[("path", "string", "the note with the task")],
    },
    ToolRow {
        tool: T::CheckTodo,
        name: "check_todo",
        title: "Check a todo",
        description: "Mark a task as done, or as open again. A repeating task gets its next date.",
        effect: Writes,
        input: &[
            ("path", "string", true, "the note, as list_todos returned it"),
            ("at", "integer", true, "where the task is, as list_todos returned it"),
            ("text", "string", true, "the task's text, as list_todos returned it"),
        ],
        output: &[("path", "string", "the note"), ("done", "boolean", "whether the task is done now")],
    },
    ToolRow {
        tool: T::Remember,
        name: "remember",
        title: "Remember",
        description: "Keep a lesson in the memory of a project, for later work of any agent.",
        effect: Writes,
        input: &[
            ("text", "string", true, "what was learned"),
            ("goal", "string", false, "what it was learned at"),
            ("project", "string", false, "the volume; needed if there are several"),
            ("outcome", "string", false, "success, failure or success_with_recovery"),
        ],
        output: &[("said", "string", "the id of the memory, or why it is not kept")],
    },
    ToolRow {
        tool: T::RunCells,
        name: "run_cells",
        title: "Run cells",
        description: "Run a note's cells in its kernel and return what they print. They may use the folders and the \
                      network that the user has granted to the note.",
        effect: Runs,
        input: &[
            NOTE,
            ("cell", "integer", false, "only this cell, counted from 1"),
            ("stale", "boolean", false, "only cells that are out of date"),
            ("timeout_seconds", "integer", false, "limit for each cell; 30 when left out, 3600 at most"),
        ],
        output: &[
            ("ok", "boolean", "whether all cells ended without an error"),
            ("outputs", "array", "outputs as in a Jupyter notebook, with the number of the cell"),
            ("messages", "string", "what was said beside them"),
        ],
    },
    ToolRow {
        tool: T::AskAgent,
        name: "ask_an_agent",
        title: "Ask an agent",
        description: "Let one of the user's agents work on a goal, and wait for its answer. What its policy asks \
                      about waits for the user. The user pays for its models.",
        effect: AsksAgents,
        input: &[
            ("text", "string", true, "the goal"),
            ("project", "string", false, "the volume in which it works; needed if there are several"),
            ("agent", "string", false, "which agent, as in backend"),
            ("budget", "number", false, "maximum cost in US dollars"),
        ],
        output: &[
            ("run", "string", "id of the run"),
            ("ok", "boolean", "whether it reached its end"),
            ("answer", "string", "its answer"),
            ("steps", "integer", "how many steps it took"),
            ("messages", "string", "what was said beside them"),
        ],
    },
];

/// Returns the schema of an object.
fn object_schema(properties: Map<String, Value>, needed: Vec<&str>, is_closed: bool) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), json!(needed));
    if is_closed {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    schema
}

impl ToolRow {
    /// Returns the tool with this name.
    pub(crate) fn named(name: &str) -> Option<&'static ToolRow> {
        TOOL_ROWS.iter().find(|row| row.name == name)
    }

    /// Checks that the tool has all these arguments.
    pub(crate) fn ensure_known(&self, arguments: &Map<String, Value>) -> Result<(), ToolCallError> {
        let unknown = arguments.keys().find(|name| self.input.iter().all(|(known, ..)| known != name));
        unknown.map_or(Ok(()), |name| Err(ToolCallError(format!("{} has no argument `{name}`", self.name))))
    }

    /// Returns the argument that names the one volume in which the tool works.
    pub(crate) fn volume_argument(&self) -> Option<&'static str> {
        match self.tool {
            T::CreateNote | T::Capture | T::AddTodo => Some("volume"),
            T::Remember | T::AskAgent => Some("project"),
            T::SearchNotes
            | T::RelatedNotes
            | T::ReadNote
            | T::ListNotes
            | T::NoteLinks
            | T::NoteOutputs
            | T::ListTodos
            | T::Recall
            | T::ListTraces
            | T::ReadTrace
            | T::ListRuns
            | T::ListApprovals
            | T::EditNote
            | T::AppendToNote
            | T::CheckTodo
            | T::RunCells => None,
        }
    }

    /// Returns the JSON schema of the arguments.
    pub(crate) fn input_schema(&self) -> Map<String, Value> {
        let property = |(name, kind, _, about): &(&str, &str, bool, &str)| {
            let mut schema = json!({"type": kind, "description": about});
            if *kind == "integer" || *kind == "number" {
                schema["minimum"] = json!(0);
            }
            ((*name).to_owned(), schema)
        };
        let needed = self.input.iter().filter(|(_, _, needed, _)| *needed).map(|(name, ..)| *name).collect();
        object_schema(self.input.iter().map(property).collect(), needed, true)
    }

    /// Returns the JSON schema of the structured output.
    pub(crate) fn output_schema(&self) -> Map<String, Value> {
        let property = |(name, kind, about): &(&str, &str, &str)| {
            ((*name).to_owned(), json!({"type": kind, "description": about}))
        };
        let first = self.output.iter().map(|(name, ..)| *name).take(1).collect();
        object_schema(self.output.iter().map(property).collect(), first, false)
    }
}
