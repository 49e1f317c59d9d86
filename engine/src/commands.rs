//! The one table of commands: menu, palette, key map, command line, completions and manual are made from it.
//!
//! An entry says what a command is called and how to reach it. Its behavior is in the session ([`crate::Command`]) or,
//! if it concerns only the view, in the window.

mod command_id;
mod notes;
mod sharing;
mod work;

pub use command_id::UnknownCommand;
use command_id::{command_info, command_table, command_text};

/// A command as people meet it.
#[derive(Clone, Copy, Debug)]
pub struct CommandInfo {
    /// Which command it is.
    pub id: CommandId,
    /// What menu and palette show.
    pub title: &'static str,
    /// Help text: one sentence.
    pub help: &'static str,
    /// Its keys in the window, first the one that is shown. `Ctrl` is the command key on macOS.
    pub keys: &'static [&'static str],
    /// Whether the window's palette and menu list it.
    pub window: bool,
    /// Its form on the command line.
    pub line: Option<CommandLineForm>,
}

/// A command's form on the command line.
#[derive(Clone, Copy, Debug)]
pub struct CommandLineForm {
    /// The word after `tracebook`.
    pub name: &'static str,
    /// What follows it, in order.
    pub args: &'static [CommandArgument],
}

/// An argument on the command line.
#[derive(Debug)]
pub struct CommandArgument {
    /// Its name; shown in capitals for a positional one, with `--` for an option.
    pub name: &'static str,
    /// What the argument means, for help.
    pub help: &'static str,
    /// How it is given.
    pub form: ArgumentForm,
}

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentForm {
    /// By its place; must be there.
    Needed,
    /// By its place; may be left out.
    Optional,
    /// By its place, one or more times.
    Many,
    /// An option with a value, `--name VALUE`.
    Value,
    /// `--name`, or `--name VALUE`.
    OptionalValue,
    /// `--name VALUE`, also several times.
    Values,
    /// An option without a value, `--name`.
    Flag,
}

const fn command_argument(name: &'static str, form: ArgumentForm, help: &'static str) -> CommandArgument {
    CommandArgument { name, help, form }
}

const fn window_command(
    id: CommandId,
    title: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
) -> CommandInfo {
    CommandInfo { id, title, help, keys, window: true, line: None }
}

const fn command_line_form(
    id: CommandId,
    title: &'static str,
    name: &'static str,
    args: &'static [CommandArgument],
    help: &'static str,
) -> CommandInfo {
    CommandInfo { id, title, help, keys: &[], window: false, line: Some(CommandLineForm { name, args }) }
}

const NOTE_ARGUMENT: CommandArgument = command_argument(
    "NOTE",
    ArgumentForm::Needed,
    "the note: its path as `ls` shows it, VOLUME:PATH, or the end of a path that fits one note",
);

command_table!(
    // Those that concern this device alone.
    PaletteOpen =
        window_command("palette.open", "Command palette", &["Ctrl+Shift+P"], "Find a command by name and run it."),
    SwitcherOpen = window_command("switcher.open", "Go to note", &["Ctrl+P"], "Find a note by name and open it."),
    SearchOpen = CommandInfo {
        id: "search.open",
        title: "Search everything",
        help: "Find notes, code and outputs by words and by meaning. Fields narrow it: tag: path: title: in:code lang: \
               before: after: is:todo; “phrases”, -not and OR work.",
        keys: &["Ctrl+Shift+F"],
        window: true,
        line: Some(CommandLineForm { name: "search", args: notes::SEARCH }),
    },
    NoteNew = CommandInfo {
        id: "note.new",
        title: "New note",
        help: "Make a new note.",
        keys: &["Ctrl+N"],
        window: true,
        line: Some(CommandLineForm {
            name: "new",
            args: &[
                command_argument(
                    "PATH",
                    ArgumentForm::Needed,
                    "where, inside the volume; `.md` is added when it has no ending"
                ),
                command_argument("volume", ArgumentForm::Value, "the volume (its name); the first one when left out"),
                command_argument("text", ArgumentForm::Value, "the first text; `-` reads it from standard input"),
            ],
        }),
    },
    FolderOpen = CommandInfo {
        id: "folder.open",
        title: "Open folder as volume",
        help: "Make a volume of a folder of Markdown. Nothing in it is rewritten by opening.",
        keys: &["Ctrl+O"],
        window: true,
        line: Some(CommandLineForm {
            name: "open",
            args: &[command_argument("FOLDER", ArgumentForm::Needed, "the folder")]
        }),
    },
    FolderRescan =
        window_command("folder.rescan", "Rescan files", &["F5"], "Scan the folders of all volumes for changes."),
    VolumeClose = window_command(
        "volume.close",
        "Close volume",
        &[],
        "Take the volume of the open note out of the workspace. Its files stay.",
    ),
    NoteRename = window_command(
        "note.rename",
        "Rename or move note",
        &["F2"],
        "Move or rename the open note. Links to it are updated.",
    ),
    ViewTrash =
        window_command("view.trash", "Trash", &[], "Show what was deleted, to restore it or to delete it for good."),
    TrashEmpty = window_command(
        "trash.empty",
        "Empty the trash",
        &[],
        "Permanently delete everything in the trash, with its history."
    ),
    NoteDelete = window_command("note.delete", "Delete note", &[], "Put the open note into the workspace's trash."),
    FilesUndo = CommandInfo {
        id: "files.undo",
        title: "Undo rename, move or deletion",
        help: "Take back the last rename, move or deletion, with the links that followed it.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm { name: "undo", args: &[] }),
    },
    FilesFollow = CommandInfo {
        id: "files.follow",
        title: "Update links to renamed files",
        help: "Update links to files that another program renamed.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm { name: "follow", args: &[] }),
    },
    ViewLinks = window_command(
        "view.links",
        "Show links",
        &["Ctrl+Shift+K"],
        "Show which notes link to the open one, and where it links.",
    ),
    ViewBroken = window_command("view.broken", "Show broken links", &[], "List all links that lead nowhere."),
    ViewGraph = window_command(
        "view.graph",
        "Graph of all notes",
        &["Ctrl+Shift+G"],
        "Show all notes and their links as a graph."
    ),
    ViewLocalGraph = window_command(
        "view.local_graph",
        "Graph around this note",
        &[],
        "Show the notes around the open one as a graph."
    ),
    ViewAgenda =
        window_command("view.agenda", "Agenda", &["Ctrl+Shift+A"], "Show the tasks of all notes by their day."),
    NoteSave = window_command(
        "note.save",
        "Save now",
        &["Ctrl+S"],
        "Write everything to disk and file now. It happens by itself, too.",
    ),
    NoteUndo = window_command("note.undo", "Undo", &["Ctrl+Z"], "Take back the last edit of the open note."),
    NoteRedo = window_command("note.redo", "Redo", &["Ctrl+Shift+Z", "Ctrl+Y"], "Redo the last edit that was undone."),
    CollectionNextView = window_command(
        "collection.next_view",
        "Next view of the collection",
        &["Alt+PageDown"],
        "Show the next view of the collection that is shown, or that is in the note.",
    ),
    CollectionPreviousView = window_command(
        "collection.previous_view",
        "Previous view of the collection",
        &["Alt+PageUp"],
        "Show the view before."
    ),
    CollectionNew = window_command(
        "collection.new",
        "New collection",
        &[],
        "Make a table of the notes in this folder, by their properties.",
    ),
    FigureCloser = window_command(
        "figure.closer",
        "Look closer at the figure",
        &["Alt+Plus"],
        "Zoom into the figure that has the keyboard, or the first in sight. The wheel does it under the pointer.",
    ),
    FigureFarther =
        window_command("figure.farther", "Look from farther at the figure", &["Alt+Minus"], "Zoom out of the figure."),
    FigureReset = window_command(
        "figure.reset",
        "Reset the figure",
        &["Alt+0"],
        "Show the figure as it was drawn, all of its series again.",
    ),
    NoteClose = window_command("note.close", "Close tab", &["Ctrl+W"], "Close the tab of the open note."),
    NoteToday = window_command(
        "note.today",
        "Today's note",
        &["Ctrl+Shift+D"],
        "Open today's note; make it where there is none yet."
    ),
    NoteDuplicate =
        window_command("note.duplicate", "Copy note", &[], "Make a copy of the open note in the same folder."),
    NoteStar =
        window_command("note.star", "Star or unstar note", &[], "List the open note above the tree, or no longer."),
    TemplateInsert = window_command(
        "template.insert",
        "Insert template",
        &[],
        "Put a template, a note of the templates' folder, into the note.",
    ),
    TabNew = window_command("tab.new", "New tab", &["Ctrl+T"], "Open a tab and choose a note for it."),
    TabReopen = window_command(
        "tab.reopen",
        "Reopen closed tab",
        &["Ctrl+Shift+T"],
        "Open the tab again that was closed last."
    ),
    TabNext = window_command("tab.next", "Next tab", &["Ctrl+Tab"], "Go to the next tab, over all panes."),
    TabPrevious =
        window_command("tab.previous", "Previous tab", &["Ctrl+Shift+Tab"], "Go to the tab before, over all panes."),
    PaneSplitRight = window_command(
        "pane.split_right",
        "Split right",
        &["Ctrl+Backslash"],
        "Show the open note once more, at the right."
    ),
    PaneSplitDown = window_command(
        "pane.split_down",
        "Split down",
        &["Ctrl+Shift+Backslash"],
        "Show the open note once more, below."
    ),
    FindOpen = window_command("find.open", "Find in note", &["Ctrl+F"], "Find words or a pattern in the open note."),
    FindReplace = window_command(
        "find.replace",
        "Find and replace",
        &["Ctrl+H"],
        "Find words in the open note and put others in their place.",
    ),
    FindNext = window_command("find.next", "Next match", &["F3"], "Go to the next place that was found."),
    FindPrevious =
        window_command("find.previous", "Previous match", &["Shift+F3"], "Go to the place before that was found."),
    FoldHere = window_command(
        "fold.here",
        "Fold or unfold",
        &["Ctrl+Alt+F"],
        "Fold what is below the heading at the caret away, or show it.",
    ),
    FoldAll = window_command("fold.all", "Fold all headings", &[], "Fold what is below every heading away."),
    FoldNone = window_command("fold.none", "Unfold all headings", &[], "Show all that is folded away."),
    SelectNext = window_command(
        "select.next",
        "Select next occurrence",
        &["Ctrl+D"],
        "Select the word, then each time its next occurrence, too.",
    ),
    SelectAll = window_command(
        "select.all",
        "Select all occurrences",
        &["Ctrl+Alt+D"],
        "Select all occurrences of the selection or the word.",
    ),
    RowUp = window_command(
        "row.up",
        "Move up",
        &["Alt+ArrowUp"],
        "Swap the paragraph or item at the caret with the one above."
    ),
    RowDown = window_command(
        "row.down",
        "Move down",
        &["Alt+ArrowDown"],
        "Swap the paragraph or item at the caret with the one below.",
    ),
    RowDuplicate = window_command(
        "row.duplicate",
        "Duplicate",
        &["Alt+Shift+ArrowDown"],
        "Write the paragraph or item at the caret once more.",
    ),
    TextBold = window_command(
        "text.bold",
        "Bold",
        &["Ctrl+Alt+B"],
        "Make the selection or the word bold; with a selection Ctrl+B does it, too.",
    ),
    TextItalic =
        window_command("text.italic", "Italic", &["Ctrl+I"], "Make the selection or the word at the caret italic."),
    TextCode = window_command("text.code", "Code", &["Ctrl+E"], "Set the selection or the word at the caret as code."),
    TextStrike =
        window_command("text.strike", "Strike through", &[], "Strike the selection or the word at the caret through."),
    TextLink = window_command("text.link", "Link", &["Ctrl+K"], "Make a link of the selection."),
    TextPastePlain =
        window_command("text.paste_plain", "Paste as plain text", &["Ctrl+Shift+V"], "Paste words without their form."),
    TextTask =
        window_command("text.task", "Task", &["Ctrl+L"], "Tick the task at the caret, or make a task of its line."),
    CellRun = CommandInfo {
        id: "cell.run",
        title: "Run cell",
        help: "Run the cell under the caret.",
        keys: &["Shift+Enter", "Ctrl+Enter"],
        window: true,
        line: Some(CommandLineForm { name: "run", args: notes::RUN }),
    },
    NoteRunAll = window_command(
        "note.run_all",
        "Run all cells",
        &["Ctrl+Shift+Enter"],
        "Run all cells of the open note in order, up to the first error.",
    ),
    NoteRunAbove = window_command("note.run_above", "Run cells above", &[], "Run all cells above the caret in order."),
    NoteRunBelow = window_command(
        "note.run_below",
        "Run this cell and below",
        &[],
        "Run the cell at the caret and all below it in order.",
    ),
    CellRunInsert = window_command(
        "cell.run_insert",
        "Run cell and begin another",
        &["Alt+Enter"],
        "Run the cell under the caret and begin a new one below it.",
    ),
    CellAbove = window_command(
        "cell.above",
        "New cell above",
        &[],
        "Begin a Python cell above the cell or paragraph at the caret."
    ),
    CellBelow = window_command(
        "cell.below",
        "New cell below",
        &[],
        "Begin a Python cell below the cell or paragraph at the caret."
    ),
    CellDelete = window_command("cell.delete", "Delete cell", &[], "Delete the cell at the caret and its output."),
    CellCut = window_command("cell.cut", "Cut cell", &[], "Delete the cell at the caret and keep it for pasting."),
    CellCopy = window_command("cell.copy", "Copy cell", &[], "Copy the cell at the caret with its fences."),
    CellPaste =
        window_command("cell.paste", "Paste cell below", &[], "Put the cell that was cut or copied below the caret."),
    CellProse = window_command("cell.prose", "Cell to prose", &[], "Take the fences of the cell at the caret away."),
    CellCode =
        window_command("cell.code", "Paragraph to cell", &[], "Make a Python cell of the paragraph at the caret."),
    CellMerge = window_command(
        "cell.merge",
        "Merge with cell below",
        &[],
        "Make one cell of the one at the caret and the next."
    ),
    CellSplit = window_command(
        "cell.split",
        "Split cell",
        &["Ctrl+Shift+Minus"],
        "Make two cells of the one at the caret, cut there."
    ),
    CellFold = window_command(
        "cell.fold",
        "Fold or show output",
        &[],
        "Fold what the cell at the caret printed away, or show it."
    ),
    CellSave = window_command(
        "cell.save",
        "Save output as",
        &[],
        "Save what the cell at the caret showed as a file: a picture, a table, its text.",
    ),
    NoteRunStale = window_command(
        "note.run_stale",
        "Run what is stale",
        &[],
        "Run the cells whose results no longer count, and what they need.",
    ),
    NoteRunClean = window_command(
        "note.run_clean",
        "Run clean",
        &[],
        "Run all cells in a fresh kernel, and say whether the results are the same as before.",
    ),
    CellsManual = window_command(
        "cells.manual",
        "Cells: run by hand",
        &[],
        "Running a cell of this note concerns no other cell."
    ),
    CellsMarks = window_command(
        "cells.marks",
        "Cells: mark what is stale",
        &[],
        "Running a cell of this note marks what depends on it.",
    ),
    CellsAutomatic = window_command(
        "cells.automatic",
        "Cells: run what depends on it",
        &[],
        "Running a cell of this note runs what depends on it, and what it needs.",
    ),
    NoteCells = command_line_form(
        "note.cells",
        "How cells depend on each other",
        "cells",
        &[
            NOTE_ARGUMENT,
            command_argument(
                "mode",
                ArgumentForm::Value,
                "what a run does to the cells that depend on it: manual, stale or automatic"
            )
        ],
        "List a note's cells with the names that they bind and use, and say which results no longer count.",
    ),
    CellStop = window_command(
        "cell.stop",
        "Stop what runs",
        &["Ctrl+."],
        "Interrupt the note's kernel; if it does not react within a second, end it. A Jupyter kernel has five, or \
         until the second time.",
    ),
    KernelRestart = window_command(
        "kernel.restart",
        "Restart kernel",
        &[],
        "End the note's kernel; variables are gone, text and outputs stay.",
    ),
    KernelChoose = CommandInfo {
        id: "kernel.choose",
        title: "Choose kernel",
        help: "Choose what runs the note's cells: the built-in Python, or a Jupyter kernel of yours, with your \
               packages and all your rights.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm {
            name: "kernels",
            args: &[
                NOTE_ARGUMENT,
                command_argument("use", ArgumentForm::Value, "the kernel from now on; `embedded`: the built-in one"),
                command_argument(
                    "allow",
                    ArgumentForm::Value,
                    "the print of a kernel that others can change, as it was shown: run it"
                ),
            ],
        }),
    },
    KernelGrant = CommandInfo {
        id: "kernel.grant",
        title: "What this note’s cells may reach…",
        help: "Grant the note's cells, on this device, folders beyond their own or the network; or take it back.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm {
            name: "grant",
            args: &[
                NOTE_ARGUMENT,
                command_argument("read", ArgumentForm::Values, "a folder or file that they may read"),
                command_argument("write", ArgumentForm::Values, "a folder or file that they may read and write"),
                command_argument("network", ArgumentForm::Flag, "they may use the network"),
                command_argument("none", ArgumentForm::Flag, "revoke all grants beyond the note's folder"),
            ],
        }),
    },
    ExportHtml = window_command(
        "export.html",
        "Export to HTML…",
        &[],
        "Write the open note, or its volume, as pages for a browser."
    ),
    ExportPdf =
        window_command("export.pdf", "Export to PDF…", &[], "Write the open note, or its volume, as a document."),
    ExportFolder = window_command(
        "export.folder",
        "Export to Markdown folder…",
        &[],
        "Write the open note with the files that it shows, or its volume, into a new folder.",
    ),
    ExportOpen = window_command(
        "export.open",
        "Open the last export",
        &[],
        "Show what was exported last in the program for it."
    ),
    ViewLeft =
        window_command("view.left", "Show or hide the tree", &["Ctrl+B"], "Fold or unfold the panel at the left."),
    ViewRight = window_command(
        "view.right",
        "Show or hide the panel at the right",
        &["Ctrl+Shift+B"],
        "Fold or unfold the panel at the right.",
    ),
    ViewVariables = window_command(
        "view.variables",
        "Show or hide variables",
        &[],
        "List the variables of the note's kernel in the panel at the right.",
    ),
    ViewTheme = window_command(
        "view.theme",
        "Light or dark",
        &["Ctrl+Shift+L"],
        "Go from the system's colours to light, to dark, and back.",
    ),
    ViewSpelling = window_command(
        "view.spelling",
        "Check spelling, or not",
        &[],
        "Mark words that the system's dictionary does not have (Hunspell; the system's language).",
    ),
    ScriptRuns = window_command(
        "script.runs",
        "Run scripts while I type, or not",
        &[],
        "Turn running a .py file half a second after the last key on or off.",
    ),
    TextSpelling = window_command(
        "text.spelling",
        "Correct spelling",
        &["F7"],
        "Show words that may have been meant by the one at the caret.",
    ),
    ViewLarger = window_command("view.larger", "Larger", &["Ctrl+Plus"], "Scale everything up."),
    ViewSmaller = window_command("view.smaller", "Smaller", &["Ctrl+Minus"], "Scale everything down."),
    ViewReset = window_command("view.reset", "Normal size", &["Ctrl+0"], "Scale everything to 100 %."),
    ViewContrast = window_command("view.contrast", "More or less contrast", &[], "Turn high contrast on or off."),
    AppKeys = window_command(
        "app.keys",
        "Keys and commands",
        &["Ctrl+Alt+K"],
        "List all commands with their keys, and change these."
    ),
    HelpOpen =
        window_command("help.open", "Help", &["F1"], "Open the guide as a volume. What you change in it stays."),
    AppSettings = window_command("app.settings", "Settings", &["Ctrl+,"], "Set the look, the keys and the rest."),
    AppQuit = window_command("app.quit", "Quit", &["Ctrl+Q"], "Save and close the window."),
    AgentAsk = command_line_form(
        "agent.ask",
        "Ask an agent",
        "ask",
        &[
            command_argument("TEXT", ArgumentForm::Needed, "the goal; `-` reads it from standard input"),
            command_argument(
                "project",
                ArgumentForm::Value,
                "the volume in which it works; the one around this folder when left out"
            ),
            command_argument("note", ArgumentForm::Value, "the note that it is about"),
            command_argument("session", ArgumentForm::Value, "the session to continue; a new one by default"),
            command_argument(
                "from",
                ArgumentForm::Value,
                "the message from which it branches off; begin: a first message of its own"
            ),
            command_argument("agent", ArgumentForm::Value, "which agent"),
            command_argument(
                "approve",
                ArgumentForm::Values,
                "what it may do without asking, such as \"shell: cargo test *\""
            ),
            command_argument("budget", ArgumentForm::Value, "maximum cost in US dollars"),
            command_argument(
                "mode",
                ArgumentForm::Value,
                "auto, learner (a model), or follower (a trace that fits, without a model)"
            ),
            command_argument("without", ArgumentForm::Values, "a trace or an experience that it may not use"),
            command_argument("no-wait", ArgumentForm::Flag, "end when something waits for a decision"),
        ],
        "Have an agent work in a project; print its steps as they happen. It asks before it does what carries risk.",
    ),
    AgentRuns = command_line_form(
        "agent.runs",
        "List runs",
        "runs",
        &[
            command_argument("RUN", ArgumentForm::Optional, "which, by the beginning of its id; `last`"),
            command_argument("stop", ArgumentForm::Flag, "stop it"),
            command_argument("resume", ArgumentForm::Flag, "let it go on"),
            command_argument("more", ArgumentForm::Value, "with --resume: number of further model calls"),
            command_argument("budget", ArgumentForm::Value, "with --resume: maximum total cost in US dollars"),
            command_argument("no-wait", ArgumentForm::Flag, "with --resume: end when something waits for a decision"),
            command_argument("undo", ArgumentForm::Flag, "revert its changes"),
            command_argument("redo", ArgumentForm::Flag, "redo what was undone"),
            command_argument("change", ArgumentForm::Value, "with --undo and --redo: only this change"),
            command_argument("hunk", ArgumentForm::Value, "and only this part of it"),
            command_argument("export", ArgumentForm::Flag, "print it as execution-state.json"),
            command_argument(
                "import",
                ArgumentForm::Value,
                "read an execution-state.json into the session named in place of the run"
            ),
        ],
        "List what agents did; of one, what was asked and changed.",
    ),
    AgentBudget = command_line_form(
        "agent.budget",
        "Show the budget",
        "budget",
        &[
            command_argument("log", ArgumentForm::Flag, "also what each of the last runs has spent"),
            command_argument(
                "by",
                ArgumentForm::Value,
                "what was spent of each task, session, project or month, and what is left of it"
            ),
        ],
        "Show what runs have spent this month, in all and by project, and what is left; --by task, session, project or \
         month.",
    ),
    MemoryList = command_line_form(
        "memory.list",
        "List memory",
        "memory",
        &[
            command_argument(
                "ACTION",
                ArgumentForm::Optional,
                "list, show, log, bearing, analyze, add, consolidate or forget"
            ),
            command_argument(
                "TEXT",
                ArgumentForm::Optional,
                "an experience's id; a goal; a question; what was learned"
            ),
            command_argument("project", ArgumentForm::Value, "only that of this volume"),
            command_argument("outcome", ArgumentForm::Value, "success, failure or success_with_recovery"),
            command_argument(
                "tier",
                ArgumentForm::Value,
                "context, session, traces, semantic (l1 to l4), episodic, short_term or long_term",
            ),
            command_argument("about", ArgumentForm::Value, "with analyze: words that the project or the goal has"),
            command_argument("goal", ArgumentForm::Value, "with add: what was wanted; with analyze: what for"),
            command_argument("source", ArgumentForm::Value, "with add: where it comes from"),
            command_argument(
                "expires",
                ArgumentForm::Value,
                "with add: the day from which on it does not count, `2027-01-31`"
            ),
        ],
        "List experiences or recent work, show what's relevant to a goal, add, consolidate or forget.",
    ),
    AgentTasks = command_line_form(
        "agent.tasks",
        "List tasks",
        "tasks",
        work::TASKS_ARGUMENTS,
        "List plans and their tasks, which are notes of todos; split a goal into tasks; have agents carry them out, \
         those that need nothing of each other side by side.",
    ),
    AgentSchedule = command_line_form(
        "agent.schedule",
        "Schedule work",
        "schedule",
        work::SCHEDULE_ARGUMENTS,
        "Start work automatically by cron expressions, while the window or `schedule watch` is open. `due` starts what \
         is due, then exits. If times were missed, only the last one is made up for, within --within. A time skipped \
         by the change to summer time starts right after the gap; one that occurs twice starts once.",
    ),
    MemoryTraces = command_line_form(
        "memory.traces",
        "List traces",
        "traces",
        &[
            command_argument("ACTION", ArgumentForm::Optional, "list, show, export, import, forget or learn"),
            command_argument("NAME", ArgumentForm::Optional, "the trace; with import a file or `-`, with learn a run"),
            command_argument(
                "project",
                ArgumentForm::Value,
                "only those of this volume; with import: the volume that gets them"
            ),
        ],
        "List what runs have learned to do without a model; show, export, import or forget one; learn from a run.",
    ),
    AgentSteps = command_line_form(
        "agent.steps",
        "List a run's steps",
        "steps",
        &[
            command_argument(
                "RUN",
                ArgumentForm::Needed,
                "which, by the beginning of its id; `last`; a step of it as `3f2a90c1#…`"
            ),
            command_argument(
                "whole",
                ArgumentForm::Flag,
                "full tool results, including those the run keeps only in part"
            ),
        ],
        "Print the steps of a run; with --json a line each.",
    ),
    AgentSessions = command_line_form(
        "agent.sessions",
        "List sessions",
        "sessions",
        &[
            command_argument("SESSION", ArgumentForm::Optional, "which, by the beginning of its id"),
            command_argument("all", ArgumentForm::Flag, "all its branches"),
            command_argument("title", ArgumentForm::Value, "give it a title"),
            command_argument("go", ArgumentForm::Value, "look at the branch that ends with this message"),
            command_argument("fork", ArgumentForm::Value, "begin a new session with what was said up to this message"),
            command_argument(
                "merge",
                ArgumentForm::Value,
                "bring the result of the branch that ends with this message into the current branch"
            ),
            command_argument(
                "into",
                ArgumentForm::Value,
                "with --merge: the last message of the branch that gets the result"
            ),
            command_argument(
                "compare",
                ArgumentForm::Value,
                "compare the current branch with the one that ends with this message"
            ),
            command_argument("export", ArgumentForm::Value, "print it: md, html, or json (agent.json)"),
            command_argument("import", ArgumentForm::Value, "read an agent.json; `-`: standard input"),
            command_argument("delete", ArgumentForm::Flag, "delete it and its runs for good"),
        ],
        "List sessions; of one, what was said.",
    ),
    AgentApprovals = command_line_form(
        "agent.approvals",
        "List approvals",
        "approvals",
        &[
            command_argument("APPROVAL", ArgumentForm::Optional, "which, as the list has it"),
            command_argument("allow", ArgumentForm::Flag, "allow it"),
            command_argument("deny", ArgumentForm::Flag, "deny it"),
            command_argument("scope", ArgumentForm::Value, "how far that reaches: once, run, project, always"),
            command_argument("arguments", ArgumentForm::Value, "do this instead: JSON"),
            command_argument("comment", ArgumentForm::Value, "a comment for the agent"),
            command_argument("all", ArgumentForm::Flag, "also what was decided"),
            command_argument("find", ArgumentForm::Value, "only those that hold this word"),
            command_argument("rules", ArgumentForm::Flag, "the rules that decisions have made"),
            command_argument("forget", ArgumentForm::Value, "take back the rule of this number"),
        ],
        "List what agents wait for, and decide it.",
    ),
    AgentTools = CommandInfo {
        id: "agent.tools",
        title: "List tools",
        help: "List what agents may use, and what it risks; read and approve tools of your own.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm {
            name: "tools",
            args: &[
                command_argument("TOOL", ArgumentForm::Optional, "one of them: its code, or its schema"),
                command_argument("approve", ArgumentForm::Flag, "let agents use it, as it is now"),
                command_argument("disable", ArgumentForm::Flag, "disable it for now"),
                command_argument("remove", ArgumentForm::Flag, "take it away, with its versions"),
                command_argument("export", ArgumentForm::Flag, "print your own tools as one JSON file"),
                command_argument("import", ArgumentForm::Value, "read such a file; what is in it waits for --approve"),
            ],
        }),
    },
    WorkspaceInit = command_line_form(
        "workspace.init",
        "Make a workspace",
        "init",
        &[command_argument("sample", ArgumentForm::Flag, "with the sample volume")],
        "Make a workspace in the folder given by --workspace.",
    ),
    NoteCat = command_line_form(
        "note.cat",
        "Print a note",
        "cat",
        &[NOTE_ARGUMENT],
        "Print a note's exact bytes, or of NOTE_ARGUMENT#… the passage that \
          `search` found.",
    ),
    NoteEdit = command_line_form(
        "note.edit",
        "Edit a note",
        "edit",
        &[
            NOTE_ARGUMENT,
            command_argument(
                "text",
                ArgumentForm::Flag,
                "standard input is the note's new text; it becomes the smallest edits"
            )
        ],
        "Read {\"at\":BYTE,\"delete\":N,\"insert\":\"…\"} lines from standard input and perform each; print \
         {\"seq\":N,\"durable\":true} once it is on disk.",
    ),
    WorkspaceList = command_line_form(
        "workspace.list",
        "List files",
        "ls",
        &[command_argument("volume", ArgumentForm::Value, "only this volume")],
        "List notes and attachments.",
    ),
    NoteLinks = command_line_form(
        "note.links",
        "Show links",
        "links",
        &[
            command_argument("NOTE", ArgumentForm::Optional, "the note; all that lead nowhere when left out"),
            command_argument("broken", ArgumentForm::Flag, "only links that lead nowhere"),
        ],
        "List where a note's links lead and which notes link to it.",
    ),
    NoteRelated = command_line_form(
        "note.related",
        "Related notes",
        "related",
        &[NOTE_ARGUMENT, command_argument("limit", ArgumentForm::Value, "how many; 10 when left out")],
        "List notes whose meaning is near to that of a note.",
    ),
    WorkspaceTodos = command_line_form(
        "workspace.todos",
        "List todos",
        "todos",
        &[
            command_argument("words", ArgumentForm::Value, "only those with these words"),
            command_argument("all", ArgumentForm::Flag, "also those that are done")
        ],
        "List the tasks of all notes by their day.",
    ),
    CollectionList = command_line_form(
        "collection.list",
        "List a collection",
        "base",
        &[
            command_argument("FILE", ArgumentForm::Needed, "the collection: a `.base` file of a volume"),
            command_argument("view", ArgumentForm::Value, "its view; the first one when left out"),
        ],
        "Work out a view of a collection and print it as a table.",
    ),
    NoteMove = command_line_form(
        "note.move",
        "Move or rename",
        "mv",
        &[
            command_argument("NOTE", ArgumentForm::Needed, "the note, or a folder"),
            command_argument(
                "PATH",
                ArgumentForm::Needed,
                "its new path inside the volume, or a folder with `/` at its end"
            ),
        ],
        "Move or rename a note or a folder. Links to it are updated.",
    ),
    NoteRemove = command_line_form(
        "note.remove",
        "Delete a note",
        "rm",
        &[NOTE_ARGUMENT],
        "Put a note into the workspace's trash."
    ),
    WorkspaceTrash = command_line_form(
        "workspace.trash",
        "List the trash",
        "trash",
        &[
            command_argument(
                "delete",
                ArgumentForm::Value,
                "delete this file of the trash for good: its old path, its name or its id"
            ),
            command_argument("empty", ArgumentForm::Flag, "permanently delete everything in it"),
        ],
        "List the workspace's trash, or delete it permanently, with history and outputs.",
    ),
    NoteRestore = command_line_form(
        "note.restore",
        "Restore a note",
        "restore-note",
        &[
            command_argument("NOTE", ArgumentForm::Needed, "its old path, its name or its id"),
            command_argument("PATH", ArgumentForm::Optional, "where to; where it lay when left out"),
        ],
        "Take a note out of the trash, with its history.",
    ),
    NoteHistory = CommandInfo {
        id: "note.history",
        title: "History of this note",
        help: "Show how the note was, what has changed since, and who wrote what; bring back all of it or a part.",
        keys: &["Ctrl+Shift+H"],
        window: true,
        line: Some(CommandLineForm {
            name: "history",
            args: &[
                NOTE_ARGUMENT,
                command_argument(
                    "at",
                    ArgumentForm::Value,
                    "print the note as it was after this change (its number or hash)"
                ),
                command_argument(
                    "diff",
                    ArgumentForm::Flag,
                    "print what has changed since --at; since the last version when left out"
                ),
                command_argument("blame", ArgumentForm::Flag, "print who wrote each line, and when"),
                command_argument("restore", ArgumentForm::Value, "make the note again as it was after this change"),
            ],
        }),
    },
    NoteWriters = window_command(
        "note.writers",
        "Who wrote this",
        &[],
        "Show who or what wrote each passage of the open note, and when.",
    ),
    FilesImport = command_line_form(
        "files.import",
        "Import files",
        "import",
        &[
            command_argument(
                "PATH",
                ArgumentForm::Many,
                "files or folders to copy into a volume; a notebook (.ipynb) becomes a note"
            ),
            command_argument(
                "volume",
                ArgumentForm::Value,
                "the volume (its name); `Notes` in the workspace when left out"
            ),
        ],
        "Copy files into a volume, byte for byte; never overwrites. A Jupyter notebook becomes a note with its \
         outputs, and `export` makes the same notebook of it again.",
    ),
    AgentOpen =
        window_command("agent.open", "Agent panel", &["Ctrl+Alt+I"], "Show or hide the agent panel next to the note.",),
    AgentNew = window_command("agent.new", "New agent session", &[], "Begin a new conversation with the agent."),
    AgentStop = window_command(
        "agent.stop",
        "Stop the agent",
        &[],
        "Stop the run. Its results so far are kept, and you can resume it."
    ),
    AgentResume = window_command(
        "agent.resume",
        "Resume the run",
        &[],
        "Resume a run that was stopped, failed or reached a limit."
    ),
    AgentAllow =
        window_command("agent.allow", "Allow what the agent asks", &[], "Allow, once, what the agent asks first."),
    AgentDeny = window_command("agent.deny", "Deny what the agent asks", &[], "Deny what the agent asks first."),
    AgentTimeline =
        window_command("agent.timeline", "Timeline of the run", &[], "Draw the steps of the run as a graph by time."),
    AgentChanges = window_command(
        "agent.changes",
        "Changes of the run",
        &[],
        "Show what the run changed; take it back hunk by hunk, or all.",
    ),
    ViewMemory = window_command(
        "view.memory",
        "Memory",
        &["Ctrl+Alt+M"],
        "Browse what is remembered of earlier work; edit or forget it.",
    ),
    ViewTraces = window_command(
        "view.traces",
        "Trace library",
        &["Ctrl+Alt+R"],
        "Show what runs can repeat without a model, the confidence, and the savings.",
    ),
    ViewBudget = window_command(
        "view.budget",
        "Budget",
        &["Ctrl+Alt+G"],
        "Show what agents have spent and what is left of the month."
    ),
    ViewSchedule = window_command(
        "view.schedule",
        "Schedule",
        &["Ctrl+Alt+C"],
        "Have work begin by itself; pause, remove or begin it now.",
    ),
    ViewAgents = window_command(
        "view.agents",
        "Agents",
        &["Ctrl+Alt+A"],
        "Show who can be asked, what each is for, and where it comes from.",
    ),
    ViewPlans = window_command(
        "view.plans",
        "Plans",
        &["Ctrl+Alt+P"],
        "Show plans and their tasks; carry them out, or give them up."
    ),
    MemoryUndo = window_command(
        "memory.undo",
        "Bring back what was forgotten",
        &[],
        "Restore the experience, schedule or task that was last deleted or canceled.",
    ),
    AgentBranches =
        window_command("agent.branches", "Branches of the session", &[], "Draw the messages of the session as a tree."),
    FilesExport = command_line_form(
        "files.export",
        "Export",
        "export",
        notes::EXPORT,
        "Write a note, or a whole volume, to a new place: byte for byte, as pages for a browser that need nothing \
         beside them, or as one PDF; with pictures, diagrams and the outputs of cells. A note also becomes a Jupyter \
         notebook or a Python program.",
    ),
    NoteOutputs = command_line_form(
        "note.outputs",
        "Print outputs",
        "outputs",
        &[
            NOTE_ARGUMENT,
            command_argument(
                "save",
                ArgumentForm::Value,
                "a folder for their pictures and tables, figures as PNG and SVG; they are not printed then",
            ),
        ],
        "Print the kept outputs of a note's cells, or save their pictures, tables and pages.",
    ),
    WorkspaceCheck = command_line_form(
        "workspace.check",
        "Check and repair",
        "fsck",
        &[command_argument("check", ArgumentForm::Flag, "only look; repair nothing")],
        "Check everything in the workspace and repair what can be repaired; what cannot be read is set aside, never \
         deleted.",
    ),
    SearchIndex = command_line_form(
        "search.index",
        "Search index",
        "index",
        notes::INDEX,
        "Say how the search index stands, make it again, or look at every byte of it; choose the sentence model that \
         finds by meaning, list those there are, pause it. The index holds nothing that is not in the notes.",
    ),
    SearchKept = command_line_form(
        "search.kept",
        "Kept searches",
        "searches",
        &[
            command_argument("NAME", ArgumentForm::Optional, "its name; `search @NAME` runs it"),
            command_argument("QUERY", ArgumentForm::Optional, "what is asked"),
            command_argument("forget", ArgumentForm::Flag, "delete the saved search with this name"),
        ],
        "List saved searches, or save one.",
    ),
    WorkspaceBackup = command_line_form(
        "workspace.backup",
        "Back up",
        "backup",
        &[command_argument("DEST", ArgumentForm::Needed, "a new folder")],
        "Make a consistent copy of everything, also while the window is open.",
    ),
    WorkspaceRestore = command_line_form(
        "workspace.restore",
        "Restore",
        "restore",
        &[
            command_argument("BACKUP", ArgumentForm::Needed, "a folder made by `backup`"),
            command_argument(
                "trusted",
                ArgumentForm::Flag,
                "it is your own: put volumes back to where they were, keep what you allowed"
            ),
        ],
        "Make a workspace (--workspace) of a backup; nothing is overwritten.",
    ),
    AppDoctor = command_line_form(
        "app.doctor",
        "What this machine offers",
        "doctor",
        &[command_argument(
            "report",
            ArgumentForm::OptionalValue,
            "write what a bug report needs into this new .tar.gz, without notes and secrets",
        )],
        "Say what is there: display, sandbox, kernels, model servers.",
    ),
    LlmProviders = command_line_form(
        "llm.providers",
        "Language models",
        "providers",
        &[
            command_argument("WHAT", ArgumentForm::Optional, "list (when left out), test or models"),
            command_argument(
                "NAME",
                ArgumentForm::Optional,
                "a provider of config.yaml; the default one when left out"
            ),
        ],
        "List the providers of language models that config.yaml names, look whether one is there, takes its key and \
         has its model, or list its models.",
    ),
    LlmSecrets = command_line_form(
        "llm.secrets",
        "Keys of providers",
        "secrets",
        &[
            command_argument("WHAT", ArgumentForm::Needed, "list, set, rm or encrypt"),
            command_argument(
                "NAME",
                ArgumentForm::Optional,
                "the name, as in ${NAME} in config.yaml; an environment variable with this name takes precedence"
            ),
        ],
        "Keep keys in the system's keyring or, where there is none, in an encrypted file; `set` reads the value from \
         standard input. With TRACEBOOK_PASSPHRASE the file is opened by that, else by a key file beside it; \
         `encrypt` has a file that its key file opens opened by the passphrase alone from then on.",
    ),
    AppBench = command_line_form(
        "app.bench",
        "Measure",
        "bench",
        work::BENCH,
        "Measure on this machine what BENCHMARKS.md holds.",
    ),
    AppScreenshots = command_line_form(
        "app.screenshots",
        "Pictures of the window",
        "screenshots",
        &[
            command_argument("DIR", ArgumentForm::Needed, "the folder for the pictures"),
            command_argument("scale", ArgumentForm::Value, "pixels a point, 1 to 3 (2 when left out)"),
            command_argument("scene", ArgumentForm::Value, "only this scene; all of them, and a sheet, when left out"),
        ],
        "Make pictures of the window over the sample volume, in both themes, without a display.",
    ),
    AppCompletions = command_line_form(
        "app.completions",
        "Shell completions",
        "completions",
        &[command_argument("SHELL", ArgumentForm::Needed, "bash, zsh, fish, elvish or powershell")],
        "Print completions for a shell.",
    ),
    AppMan = command_line_form("app.man", "Manual page", "man", &[], "Print the manual page."),
    // Those that concern other devices.
    SyncStatus = CommandInfo {
        id: "sync.status",
        title: "Sync",
        help: "Show what is shared with other devices over which hubs, and how far all of it has got.",
        keys: &["Ctrl+Alt+S"],
        window: true,
        line: Some(CommandLineForm { name: "sync", args: sharing::SYNC }),
    },
    SyncMerges = window_command(
        "sync.merges",
        "What other devices changed",
        &[],
        "Show notes before and after edits of other devices."
    ),
    SyncLog = window_command("sync.log", "Log of sync", &[], "Show what sync did, in plain words, newest first."),
    SyncPause =
        window_command("sync.pause", "Pause sync, or go on", &[], "Send and receive nothing for now; again: go on."),
    SyncRetry =
        window_command("sync.retry", "Call hubs now", &[], "Try hubs that are not there at once, not only by and by."),
    SyncShare = window_command(
        "sync.share",
        "Share this volume…",
        &[],
        "Share the open note's volume with other devices over a hub."
    ),
    SyncJoin = window_command(
        "sync.join",
        "Get a shared volume…",
        &[],
        "Get a volume that another device shares, by its address."
    ),
    SyncDevices = CommandInfo {
        id: "sync.devices",
        title: "Devices",
        help: "List paired devices, rename one, or revoke one. A revoked device is disconnected within a second; it \
               keeps what it has received.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm { name: "devices", args: sharing::DEVICES }),
    },
    SyncPair = command_line_form(
        "sync.pair",
        "Pair a device",
        "pair",
        sharing::PAIR,
        "Pair this device with another device or a hub, using a one-time code of eight digits.",
    ),
    SyncHub = command_line_form(
        "sync.hub",
        "Hub",
        "hub",
        sharing::HUB,
        "Run a hub: a peer that always listens and keeps what it hears, for automerge-repo's protocol over WebSocket. \
         `invite` shows a code for one more device, `share` says who may do what with a volume.",
    )
);
