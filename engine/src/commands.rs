//! The one table of commands: menu, palette, key map, command line, completions and manual are made from it.
//!
//! An entry says what a command is called and where it can be reached, never what it does: that is the session's
//! ([`crate::Command`]) or, for what only concerns the view, the window's.

mod work;

mod sharing;

/// A command as people meet it.
#[derive(Clone, Copy, Debug)]
pub struct CommandInfo {
    /// Its stable name: `area.verb`.
    pub id: &'static str,
    /// What menu and palette show.
    pub title: &'static str,
    /// What it does, in one sentence.
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
    /// What it means.
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
    /// `--name VALUE`.
    Value,
    /// `--name VALUE`, also several times.
    Values,
    /// `--name`.
    Flag,
}

const fn arg(name: &'static str, form: ArgumentForm, help: &'static str) -> CommandArgument {
    CommandArgument { name, help, form }
}

const fn window(
    id: &'static str,
    title: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
) -> CommandInfo {
    CommandInfo { id, title, help, keys, window: true, line: None }
}

const fn line(
    id: &'static str,
    title: &'static str,
    name: &'static str,
    args: &'static [CommandArgument],
    help: &'static str,
) -> CommandInfo {
    CommandInfo { id, title, help, keys: &[], window: false, line: Some(CommandLineForm { name, args }) }
}

const NOTE: CommandArgument = arg(
    "NOTE",
    ArgumentForm::Needed,
    "the note: its path as `ls` shows it, VOLUME:PATH, or the end of a path that fits one note",
);

/// All commands.
pub const COMMANDS: &[CommandInfo] = &{
    let mut all = [ALONE[0]; ALONE.len() + sharing::SHARING.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < ALONE.len() { ALONE[at] } else { sharing::SHARING[at - ALONE.len()] };
        at += 1;
    }
    all
};

/// Those that concern this device alone.
const ALONE: &[CommandInfo] = &[
    window("palette.open", "Command palette", &["Ctrl+Shift+P"], "Find a command by name and run it."),
    window("switcher.open", "Go to note", &["Ctrl+P"], "Find a note by name and open it."),
    CommandInfo {
        id: "search.open",
        title: "Search everything",
        help: "Find notes, code and outputs by words and by meaning. Fields narrow it: tag: path: title: in:code lang: \
               before: after: is:todo; “phrases”, -not and OR work.",
        keys: &["Ctrl+Shift+F"],
        window: true,
        line: Some(CommandLineForm {
            name: "search",
            args: &[
                arg(
                    "QUERY",
                    ArgumentForm::Needed,
                    "words, \"phrases\", -not, OR, tag: path: title: in:code|output|prose|run|memory lang: before: \
                     after: is:todo|done, begin*",
                ),
                arg("limit", ArgumentForm::Value, "at most this many notes; 10 when left out"),
                arg("explain", ArgumentForm::Flag, "with the parts of each score"),
                arg("nearest", ArgumentForm::Flag, "also what is nearest where nothing fits"),
            ],
        }),
    },
    CommandInfo {
        id: "note.new",
        title: "New note",
        help: "Make a new note.",
        keys: &["Ctrl+N"],
        window: true,
        line: Some(CommandLineForm {
            name: "new",
            args: &[
                arg("PATH", ArgumentForm::Needed, "where, inside the volume; `.md` is added when it has no ending"),
                arg("volume", ArgumentForm::Value, "the volume (its name); the first one when left out"),
                arg("text", ArgumentForm::Value, "the first text; `-` reads it from standard input"),
            ],
        }),
    },
    CommandInfo {
        id: "folder.open",
        title: "Open folder as volume",
        help: "Make a volume of a folder of Markdown. Nothing in it is rewritten by opening.",
        keys: &["Ctrl+O"],
        window: true,
        line: Some(CommandLineForm { name: "open", args: &[arg("FOLDER", ArgumentForm::Needed, "the folder")] }),
    },
    window("folder.rescan", "Look at all files again", &["F5"], "Scan the folders of all volumes for changes."),
    window(
        "volume.close",
        "Close volume",
        &[],
        "Take the volume of the open note out of the workspace. Its files stay.",
    ),
    window(
        "note.rename",
        "Rename or move note",
        &["F2"],
        "Give the open note another path; every link to it is written anew.",
    ),
    window("view.trash", "Trash", &[], "Show what was deleted, to restore it or to delete it for good."),
    window("trash.empty", "Empty the trash", &[], "Delete for good all that lies in the trash, with its history."),
    window("note.delete", "Delete note", &[], "Put the open note into the workspace's trash."),
    CommandInfo {
        id: "files.undo",
        title: "Undo rename, move or deletion",
        help: "Take back the last rename, move or deletion, with the links that followed it.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm { name: "undo", args: &[] }),
    },
    CommandInfo {
        id: "files.follow",
        title: "Update links to renamed files",
        help: "Write the links anew that lead to files which another program renamed.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm { name: "follow", args: &[] }),
    },
    window("view.links", "Show links", &["Ctrl+Shift+K"], "Show which notes link to the open one, and where it links."),
    window("view.broken", "Show broken links", &[], "List all links that lead nowhere."),
    window("view.graph", "Graph of all notes", &["Ctrl+Shift+G"], "Show all notes and their links as a graph."),
    window("view.local_graph", "Graph around this note", &[], "Show the notes around the open one as a graph."),
    window("view.agenda", "Agenda", &["Ctrl+Shift+A"], "Show the tasks of all notes by their day."),
    window("note.save", "Save now", &["Ctrl+S"], "Write everything to disk and file now. It happens by itself, too."),
    window("note.undo", "Undo", &["Ctrl+Z"], "Take back the last edit of the open note."),
    window("note.redo", "Redo", &["Ctrl+Shift+Z", "Ctrl+Y"], "Make the last edit that was taken back again."),
    window(
        "collection.next_view",
        "Next view of the collection",
        &["Alt+PageDown"],
        "Show the next view of the collection that is shown, or that is in the note.",
    ),
    window("collection.previous_view", "Previous view of the collection", &["Alt+PageUp"], "Show the view before."),
    window("collection.new", "New collection", &[], "Make a table of the notes in this folder, by their properties."),
    window(
        "figure.closer",
        "Look closer at the figure",
        &["Alt+Plus"],
        "Zoom into the figure that has the keyboard, or the first in sight. The wheel does it under the pointer.",
    ),
    window("figure.farther", "Look from farther at the figure", &["Alt+Minus"], "Zoom out of the figure."),
    window("figure.reset", "Reset the figure", &["Alt+0"], "Show the figure as it was drawn, all of its series again."),
    window("note.close", "Close tab", &["Ctrl+W"], "Close the tab of the open note."),
    window("note.today", "Today's note", &["Ctrl+Shift+D"], "Open today's note; make it where there is none yet."),
    window("note.duplicate", "Copy note", &[], "Make a copy of the open note beside it."),
    window("note.star", "Star or unstar note", &[], "List the open note above the tree, or no longer."),
    window(
        "template.insert",
        "Insert template",
        &[],
        "Put a template, a note of the templates' folder, into the note.",
    ),
    window("tab.new", "New tab", &["Ctrl+T"], "Open a tab and choose a note for it."),
    window("tab.reopen", "Reopen closed tab", &["Ctrl+Shift+T"], "Open the tab again that was closed last."),
    window("tab.next", "Next tab", &["Ctrl+Tab"], "Go to the next tab, over all panes."),
    window("tab.previous", "Previous tab", &["Ctrl+Shift+Tab"], "Go to the tab before, over all panes."),
    window("pane.split_right", "Split right", &["Ctrl+Backslash"], "Show the open note once more, at the right."),
    window("pane.split_down", "Split down", &["Ctrl+Shift+Backslash"], "Show the open note once more, below."),
    window("find.open", "Find in note", &["Ctrl+F"], "Find words or a pattern in the open note."),
    window(
        "find.replace",
        "Find and replace",
        &["Ctrl+H"],
        "Find words in the open note and put others in their place.",
    ),
    window("find.next", "Next match", &["F3"], "Go to the next place that was found."),
    window("find.previous", "Previous match", &["Shift+F3"], "Go to the place before that was found."),
    window(
        "fold.here",
        "Fold or unfold",
        &["Ctrl+Alt+F"],
        "Fold what is below the heading at the caret away, or show it.",
    ),
    window("fold.all", "Fold all headings", &[], "Fold what is below every heading away."),
    window("fold.none", "Unfold all headings", &[], "Show all that is folded away."),
    window(
        "select.next",
        "Select next occurrence",
        &["Ctrl+D"],
        "Select the word, then each time its next occurrence, too.",
    ),
    window(
        "select.all",
        "Select all occurrences",
        &["Ctrl+Alt+D"],
        "Select all occurrences of the selection or the word.",
    ),
    window("row.up", "Move up", &["Alt+ArrowUp"], "Swap the paragraph or item at the caret with the one above."),
    window("row.down", "Move down", &["Alt+ArrowDown"], "Swap the paragraph or item at the caret with the one below."),
    window(
        "row.duplicate",
        "Duplicate",
        &["Alt+Shift+ArrowDown"],
        "Write the paragraph or item at the caret once more.",
    ),
    window(
        "text.bold",
        "Bold",
        &["Ctrl+Alt+B"],
        "Make the selection or the word bold; with a selection Ctrl+B does it, too.",
    ),
    window("text.italic", "Italic", &["Ctrl+I"], "Make the selection or the word at the caret italic."),
    window("text.code", "Code", &["Ctrl+E"], "Set the selection or the word at the caret as code."),
    window("text.strike", "Strike through", &[], "Strike the selection or the word at the caret through."),
    window("text.link", "Link", &["Ctrl+K"], "Make a link of the selection."),
    window("text.paste_plain", "Paste as plain text", &["Ctrl+Shift+V"], "Paste words without their form."),
    window("text.task", "Task", &["Ctrl+L"], "Tick the task at the caret, or make a task of its line."),
    CommandInfo {
        id: "cell.run",
        title: "Run cell",
        help: "Run the cell under the caret.",
        keys: &["Shift+Enter", "Ctrl+Enter"],
        window: true,
        line: Some(CommandLineForm {
            name: "run",
            args: &[
                NOTE,
                arg("cell", ArgumentForm::Value, "only this cell, counted from 1; all in order when left out"),
                arg(
                    "timeout",
                    ArgumentForm::Value,
                    "stop a cell after this many seconds (30, or what the cell's first line says); 0: never",
                ),
                arg(
                    "kernel",
                    ArgumentForm::Value,
                    "run in this kernel of yours, with your rights, outside of the sandbox",
                ),
                arg("stale", ArgumentForm::Flag, "only what is stale, and what that needs"),
                arg("clean", ArgumentForm::Flag, "in a fresh kernel, and say whether the results are the same"),
            ],
        }),
    },
    window(
        "note.run_all",
        "Run all cells",
        &["Ctrl+Shift+Enter"],
        "Run all cells of the open note in order, up to the first error.",
    ),
    window("note.run_above", "Run cells above", &[], "Run all cells above the caret in order."),
    window("note.run_below", "Run this cell and below", &[], "Run the cell at the caret and all below it in order."),
    window(
        "cell.run_insert",
        "Run cell and begin another",
        &["Alt+Enter"],
        "Run the cell under the caret and begin a new one below it.",
    ),
    window("cell.above", "New cell above", &[], "Begin a Python cell above the cell or paragraph at the caret."),
    window("cell.below", "New cell below", &[], "Begin a Python cell below the cell or paragraph at the caret."),
    window("cell.delete", "Delete cell", &[], "Delete the cell at the caret, with what it printed."),
    window("cell.cut", "Cut cell", &[], "Delete the cell at the caret and keep it for pasting."),
    window("cell.copy", "Copy cell", &[], "Copy the cell at the caret with its fences."),
    window("cell.paste", "Paste cell below", &[], "Put the cell that was cut or copied below the caret."),
    window("cell.prose", "Cell to prose", &[], "Take the fences of the cell at the caret away."),
    window("cell.code", "Paragraph to cell", &[], "Make a Python cell of the paragraph at the caret."),
    window("cell.merge", "Merge with cell below", &[], "Make one cell of the one at the caret and the next."),
    window("cell.split", "Split cell", &["Ctrl+Shift+Minus"], "Make two cells of the one at the caret, cut there."),
    window("cell.fold", "Fold or show output", &[], "Fold what the cell at the caret printed away, or show it."),
    window(
        "cell.save",
        "Save output as",
        &[],
        "Save what the cell at the caret showed as a file: a picture, a table, its text.",
    ),
    window(
        "note.run_stale",
        "Run what is stale",
        &[],
        "Run the cells whose results no longer count, and what they need.",
    ),
    window(
        "note.run_clean",
        "Run clean",
        &[],
        "Run all cells in a fresh kernel, and say whether the results are the same as before.",
    ),
    window("cells.manual", "Cells: run by hand", &[], "Running a cell of this note concerns no other cell."),
    window("cells.marks", "Cells: mark what is stale", &[], "Running a cell of this note marks what depends on it."),
    window(
        "cells.automatic",
        "Cells: run what depends on it",
        &[],
        "Running a cell of this note runs what depends on it, and what it needs.",
    ),
    line(
        "note.cells",
        "How cells depend on each other",
        "cells",
        &[
            NOTE,
            arg(
                "mode",
                ArgumentForm::Value,
                "what a run does to the cells that depend on it: manual, stale or automatic",
            ),
        ],
        "List a note's cells with the names that they bind and use, and say which results no longer count.",
    ),
    window(
        "cell.stop",
        "Stop what runs",
        &["Ctrl+."],
        "Interrupt the note's kernel; if it does not react within a second, end it. A Jupyter kernel has five, or \
         until the second time.",
    ),
    window(
        "kernel.restart",
        "Restart kernel",
        &[],
        "End the note's kernel; variables are gone, text and outputs stay.",
    ),
    CommandInfo {
        id: "kernel.choose",
        title: "Choose kernel",
        help: "Choose what runs the note's cells: the built-in Python, or a Jupyter kernel of yours, with your \
               packages and all your rights.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm {
            name: "kernels",
            args: &[
                NOTE,
                arg("use", ArgumentForm::Value, "the kernel from now on; `embedded`: the built-in one"),
                arg(
                    "allow",
                    ArgumentForm::Value,
                    "the print of a kernel that others can change, as it was shown: run it",
                ),
            ],
        }),
    },
    CommandInfo {
        id: "kernel.grant",
        title: "What this note’s cells may reach…",
        help: "Grant the note's cells, on this device, folders beyond their own or the network; or take it back.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm {
            name: "grant",
            args: &[
                NOTE,
                arg("read", ArgumentForm::Values, "a folder or file that they may read"),
                arg("write", ArgumentForm::Values, "a folder or file that they may read and write"),
                arg("network", ArgumentForm::Flag, "they may use the network"),
                arg("none", ArgumentForm::Flag, "nothing beyond the note's folder any more"),
            ],
        }),
    },
    window("export.html", "Export to HTML…", &[], "Write the open note, or its volume, as pages for a browser."),
    window("export.pdf", "Export to PDF…", &[], "Write the open note, or its volume, as a document."),
    window(
        "export.folder",
        "Export to Markdown folder…",
        &[],
        "Write the open note with the files that it shows, or its volume, into a new folder.",
    ),
    window("export.open", "Open the last export", &[], "Show what was exported last in the program for it."),
    window("view.left", "Show or hide the tree", &["Ctrl+B"], "Fold or unfold the panel at the left."),
    window(
        "view.right",
        "Show or hide the panel at the right",
        &["Ctrl+Shift+B"],
        "Fold or unfold the panel at the right.",
    ),
    window(
        "view.variables",
        "Show or hide variables",
        &[],
        "List the variables of the note's kernel in the panel at the right.",
    ),
    window(
        "view.theme",
        "Light or dark",
        &["Ctrl+Shift+L"],
        "Go from the system's colours to light, to dark, and back.",
    ),
    window(
        "view.spelling",
        "Check spelling, or not",
        &[],
        "Mark words that the system's dictionary does not have (Hunspell; the system's language).",
    ),
    window(
        "script.runs",
        "Run scripts while I type, or not",
        &[],
        "Run a .py file half a second after the last key, or only when that is asked for.",
    ),
    window(
        "text.spelling",
        "Correct spelling",
        &["F7"],
        "Show words that may have been meant by the one at the caret.",
    ),
    window("view.larger", "Larger", &["Ctrl+Plus"], "Scale everything up."),
    window("view.smaller", "Smaller", &["Ctrl+Minus"], "Scale everything down."),
    window("view.reset", "Normal size", &["Ctrl+0"], "Scale everything to 100 %."),
    window("view.contrast", "More or less contrast", &[], "Make all colours stand out more, or as before."),
    window("app.keys", "Keys and commands", &["F1"], "List all commands with their keys, and change these."),
    window("app.settings", "Settings", &["Ctrl+,"], "Set the look, the keys and the rest."),
    window("app.quit", "Quit", &["Ctrl+Q"], "Save and close the window."),
    line(
        "agent.ask",
        "Ask an agent",
        "ask",
        &[
            arg("TEXT", ArgumentForm::Needed, "what is to be done; `-`: as standard input says"),
            arg(
                "project",
                ArgumentForm::Value,
                "the volume in which it works; the one around this folder when left out",
            ),
            arg("note", ArgumentForm::Value, "the note that it is about"),
            arg("session", ArgumentForm::Value, "the session that it goes on with; a new one when left out"),
            arg(
                "from",
                ArgumentForm::Value,
                "the message from which it branches off; begin: a first message of its own",
            ),
            arg("agent", ArgumentForm::Value, "which agent"),
            arg("approve", ArgumentForm::Values, "what it may do without asking, as in \"shell: cargo test *\""),
            arg("budget", ArgumentForm::Value, "at most so many US dollars"),
            arg(
                "mode",
                ArgumentForm::Value,
                "auto, learner (a model), or follower (a trace that fits, without a model)",
            ),
            arg("without", ArgumentForm::Values, "a trace or an experience that it may not use"),
            arg("no-wait", ArgumentForm::Flag, "end when something waits for a decision"),
        ],
        "Have an agent work in a project; print its steps as they happen. It asks before it does what carries risk.",
    ),
    line(
        "agent.runs",
        "List runs",
        "runs",
        &[
            arg("RUN", ArgumentForm::Optional, "which, by the beginning of its id; `last`"),
            arg("stop", ArgumentForm::Flag, "stop it"),
            arg("resume", ArgumentForm::Flag, "let it go on"),
            arg("more", ArgumentForm::Value, "with --resume: so many further model calls"),
            arg("budget", ArgumentForm::Value, "with --resume: at most so many US dollars in all"),
            arg("no-wait", ArgumentForm::Flag, "with --resume: end when something waits for a decision"),
            arg("undo", ArgumentForm::Flag, "take back what it changed"),
            arg("redo", ArgumentForm::Flag, "make again what was taken back"),
            arg("change", ArgumentForm::Value, "with --undo and --redo: only this change"),
            arg("hunk", ArgumentForm::Value, "and only this part of it"),
            arg("export", ArgumentForm::Flag, "print it as execution-state.json"),
            arg(
                "import",
                ArgumentForm::Value,
                "read an execution-state.json into the session named in place of the run",
            ),
        ],
        "List what agents did; of one, what was asked and changed.",
    ),
    line(
        "agent.budget",
        "Show the budget",
        "budget",
        &[
            arg("log", ArgumentForm::Flag, "also what each of the last runs has spent"),
            arg(
                "by",
                ArgumentForm::Value,
                "what was spent of each task, session, project or month, and what is left of it",
            ),
        ],
        "Show what runs have spent this month, in all and by project, and what is left; --by task, session, project or \
         month.",
    ),
    line(
        "memory.list",
        "List memory",
        "memory",
        &[
            arg("ACTION", ArgumentForm::Optional, "list, show, log, bearing, analyze, add, consolidate or forget"),
            arg("TEXT", ArgumentForm::Optional, "an experience's id; a goal; a question; what was learned"),
            arg("project", ArgumentForm::Value, "only that of this volume"),
            arg("outcome", ArgumentForm::Value, "success, failure or success_with_recovery"),
            arg(
                "tier",
                ArgumentForm::Value,
                "context, session, traces, semantic (l1 to l4), episodic, short_term or long_term",
            ),
            arg("about", ArgumentForm::Value, "with analyze: words that the project or the goal has"),
            arg("goal", ArgumentForm::Value, "with add: what was wanted; with analyze: what for"),
            arg("source", ArgumentForm::Value, "with add: where it comes from"),
            arg("expires", ArgumentForm::Value, "with add: the day from which on it does not count, `2027-01-31`"),
        ],
        "List what came of earlier work, or what was done lately; say what bears on a goal; add, consolidate, forget.",
    ),
    line(
        "agent.tasks",
        "List tasks",
        "tasks",
        work::TASKS,
        "List plans and their tasks, which are notes of todos; split a goal into tasks; have agents carry them out, \
         those that need nothing of each other side by side.",
    ),
    line(
        "agent.schedule",
        "Schedule work",
        "schedule",
        work::SCHEDULE,
        "Have work begin by itself, by cron expressions, while the window or `schedule watch` is open; `due` begins \
         what is due and ends with it. What needs approval waits for it. Of what was missed the last counts, where it \
         is no longer ago than --within. A time that summer time leaves out begins right after it; one that comes \
         twice begins once.",
    ),
    line(
        "memory.traces",
        "List traces",
        "traces",
        &[
            arg("ACTION", ArgumentForm::Optional, "list, show, export, import, forget or learn"),
            arg("NAME", ArgumentForm::Optional, "the trace; with import a file or `-`, with learn a run"),
            arg("project", ArgumentForm::Value, "only those of this volume; with import: the volume that gets them"),
        ],
        "List what runs have learned to do without a model; show, export, import or forget one; learn from a run.",
    ),
    line(
        "agent.steps",
        "List a run's steps",
        "steps",
        &[
            arg("RUN", ArgumentForm::Needed, "which, by the beginning of its id; `last`; a step of it as `3f2a90c1#…`"),
            arg("whole", ArgumentForm::Flag, "what tools said in full, also where the run keeps only its beginning"),
        ],
        "Print the steps of a run; with --json a line each.",
    ),
    line(
        "agent.sessions",
        "List sessions",
        "sessions",
        &[
            arg("SESSION", ArgumentForm::Optional, "which, by the beginning of its id"),
            arg("all", ArgumentForm::Flag, "all its branches"),
            arg("title", ArgumentForm::Value, "give it a title"),
            arg("go", ArgumentForm::Value, "look at the branch that ends with this message"),
            arg("fork", ArgumentForm::Value, "begin a new session with what was said up to this message"),
            arg(
                "merge",
                ArgumentForm::Value,
                "tell the current branch what came of the one that ends with this message",
            ),
            arg("into", ArgumentForm::Value, "with --merge: the end of the branch that is told"),
            arg("compare", ArgumentForm::Value, "the current branch beside the one that ends with this message"),
            arg("export", ArgumentForm::Value, "print it: md, html, or json (agent.json)"),
            arg("import", ArgumentForm::Value, "read an agent.json; `-`: standard input"),
            arg("delete", ArgumentForm::Flag, "delete it and its runs for good"),
        ],
        "List sessions; of one, what was said.",
    ),
    line(
        "agent.approvals",
        "List approvals",
        "approvals",
        &[
            arg("APPROVAL", ArgumentForm::Optional, "which, as the list has it"),
            arg("allow", ArgumentForm::Flag, "allow it"),
            arg("deny", ArgumentForm::Flag, "deny it"),
            arg("scope", ArgumentForm::Value, "how far that reaches: once, run, project, always"),
            arg("arguments", ArgumentForm::Value, "do this instead: JSON"),
            arg("comment", ArgumentForm::Value, "what the agent is told"),
            arg("all", ArgumentForm::Flag, "also what was decided"),
            arg("find", ArgumentForm::Value, "only those that hold this word"),
            arg("rules", ArgumentForm::Flag, "the rules that decisions have made"),
            arg("forget", ArgumentForm::Value, "take back the rule of this number"),
        ],
        "List what agents wait for, and decide it.",
    ),
    CommandInfo {
        window: true,
        ..line(
            "agent.tools",
            "List tools",
            "tools",
            &[
                arg("TOOL", ArgumentForm::Optional, "one of them: its code, or its schema"),
                arg("approve", ArgumentForm::Flag, "let agents use it, as it is now"),
                arg("disable", ArgumentForm::Flag, "let nobody use it for now"),
                arg("remove", ArgumentForm::Flag, "take it away, with its versions"),
                arg("export", ArgumentForm::Flag, "print your own tools as one JSON file"),
                arg("import", ArgumentForm::Value, "read such a file; what is in it waits for --approve"),
            ],
            "List what agents may use, and what it risks; read and approve tools of your own.",
        )
    },
    line(
        "workspace.init",
        "Make a workspace",
        "init",
        &[arg("sample", ArgumentForm::Flag, "with the sample volume")],
        "Make a workspace in the folder given by --workspace.",
    ),
    line(
        "note.cat",
        "Print a note",
        "cat",
        &[NOTE],
        "Print a note's exact bytes, or of NOTE#… the passage that \
          `search` found.",
    ),
    line(
        "note.edit",
        "Edit a note",
        "edit",
        &[
            NOTE,
            arg("text", ArgumentForm::Flag, "standard input is the note's new text; it becomes the smallest edits"),
        ],
        "Read {\"at\":BYTE,\"delete\":N,\"insert\":\"…\"} lines from standard input and perform each; print \
         {\"seq\":N,\"durable\":true} once it is on disk.",
    ),
    line(
        "workspace.list",
        "List files",
        "ls",
        &[arg("volume", ArgumentForm::Value, "only this volume")],
        "List notes and attachments.",
    ),
    line(
        "note.links",
        "Show links",
        "links",
        &[
            arg("NOTE", ArgumentForm::Optional, "the note; all that lead nowhere when left out"),
            arg("broken", ArgumentForm::Flag, "only links that lead nowhere"),
        ],
        "List where a note's links lead and which notes link to it.",
    ),
    line(
        "note.related",
        "Related notes",
        "related",
        &[NOTE, arg("limit", ArgumentForm::Value, "how many; 10 when left out")],
        "List notes whose meaning is near to that of a note.",
    ),
    line(
        "workspace.todos",
        "List todos",
        "todos",
        &[
            arg("words", ArgumentForm::Value, "only those with these words"),
            arg("all", ArgumentForm::Flag, "also those that are done"),
        ],
        "List the tasks of all notes by their day.",
    ),
    line(
        "collection.list",
        "List a collection",
        "base",
        &[
            arg("FILE", ArgumentForm::Needed, "the collection: a `.base` file of a volume"),
            arg("view", ArgumentForm::Value, "its view; the first one when left out"),
        ],
        "Work out a view of a collection and print it as a table.",
    ),
    line(
        "note.move",
        "Move or rename",
        "mv",
        &[
            arg("NOTE", ArgumentForm::Needed, "the note, or a folder"),
            arg("PATH", ArgumentForm::Needed, "its new path inside the volume, or a folder with `/` at its end"),
        ],
        "Give a note or a folder another path; every link to it is written anew.",
    ),
    line("note.remove", "Delete a note", "rm", &[NOTE], "Put a note into the workspace's trash."),
    line(
        "workspace.trash",
        "List the trash",
        "trash",
        &[
            arg(
                "delete",
                ArgumentForm::Value,
                "delete this file of the trash for good: its old path, its name or its id",
            ),
            arg("empty", ArgumentForm::Flag, "delete for good all that lies in it"),
        ],
        "List what lies in the workspace's trash, or delete it for good, with history and outputs.",
    ),
    line(
        "note.restore",
        "Restore a note",
        "restore-note",
        &[
            arg("NOTE", ArgumentForm::Needed, "its old path, its name or its id"),
            arg("PATH", ArgumentForm::Optional, "where to; where it lay when left out"),
        ],
        "Take a note out of the trash, with its history.",
    ),
    CommandInfo {
        id: "note.history",
        title: "History of this note",
        help: "Show how the note was, what has changed since, and who wrote what; bring back all of it or a part.",
        keys: &["Ctrl+Shift+H"],
        window: true,
        line: Some(CommandLineForm {
            name: "history",
            args: &[
                NOTE,
                arg("at", ArgumentForm::Value, "print the note as it was after this change (its number or hash)"),
                arg(
                    "diff",
                    ArgumentForm::Flag,
                    "print what has changed since --at; since the last version when left out",
                ),
                arg("blame", ArgumentForm::Flag, "print who wrote each line, and when"),
                arg("restore", ArgumentForm::Value, "make the note again as it was after this change"),
            ],
        }),
    },
    window("note.writers", "Who wrote this", &[], "Show who or what wrote each passage of the open note, and when."),
    line(
        "files.import",
        "Import files",
        "import",
        &[
            arg(
                "PATH",
                ArgumentForm::Many,
                "files or folders to copy into a volume; a notebook (.ipynb) becomes a note",
            ),
            arg("volume", ArgumentForm::Value, "the volume (its name); `Notes` in the workspace when left out"),
        ],
        "Copy files into a volume, byte for byte; never overwrites. A Jupyter notebook becomes a note with its \
         outputs, and `export` makes the same notebook of it again.",
    ),
    window(
        "agent.open",
        "Agent panel",
        &["Ctrl+Alt+I"],
        "Show the conversation with the agent beside the note, or hide it.",
    ),
    window("agent.new", "New agent session", &[], "Begin a new conversation with the agent."),
    window("agent.stop", "Stop the agent", &[], "Stop the run; what came by then is kept and it can be resumed."),
    window("agent.resume", "Resume the run", &[], "Let a run go on that was stopped, failed or came to its limit."),
    window("agent.allow", "Allow what the agent asks", &[], "Allow, once, what the agent asks first."),
    window("agent.deny", "Deny what the agent asks", &[], "Deny what the agent asks first."),
    window("agent.timeline", "Timeline of the run", &[], "Draw the steps of the run as a graph by time."),
    window("agent.changes", "Changes of the run", &[], "Show what the run changed; take it back hunk by hunk, or all."),
    window("view.memory", "Memory", &["Ctrl+Alt+M"], "Browse what is remembered of earlier work; edit or forget it."),
    window(
        "view.traces",
        "Trace library",
        &["Ctrl+Alt+R"],
        "Show what runs have learned to do again without a model, how sure that is and what it has saved.",
    ),
    window("view.budget", "Budget", &["Ctrl+Alt+G"], "Show what agents have spent and what is left of the month."),
    window("view.schedule", "Schedule", &["Ctrl+Alt+C"], "Have work begin by itself; pause, remove or begin it now."),
    window(
        "view.agents",
        "Agents",
        &["Ctrl+Alt+A"],
        "Show who can be asked, what each is for, and where it comes from.",
    ),
    window("view.plans", "Plans", &["Ctrl+Alt+P"], "Show plans and their tasks; carry them out, or give them up."),
    window(
        "memory.undo",
        "Bring back what was forgotten",
        &[],
        "Put back the experience, the schedule or the task that was forgotten or given up last.",
    ),
    window("agent.branches", "Branches of the session", &[], "Draw the messages of the session as a tree."),
    line(
        "files.export",
        "Export",
        "export",
        &[
            arg("NOTE_OR_VOLUME", ArgumentForm::Needed, "what to export"),
            arg(
                "DEST",
                ArgumentForm::Needed,
                "a new file or folder; its ending (.html, .pdf, .ipynb, .py) says what a note becomes",
            ),
            arg("to", ArgumentForm::Value, "the form: html, pdf, ipynb, py or md; by the ending of DEST when left out"),
            arg(
                "html",
                ArgumentForm::Flag,
                "pages for a browser instead of the files themselves; the same as --to html",
            ),
            arg("paper", ArgumentForm::Value, "for pdf: a4, as without it, or letter"),
        ],
        "Write a note, or a whole volume, to a new place: byte for byte, as pages for a browser that need nothing \
         beside them, or as one PDF; with pictures, diagrams and the outputs of cells. A note also becomes a Jupyter \
         notebook or a Python program.",
    ),
    line(
        "note.outputs",
        "Print outputs",
        "outputs",
        &[
            NOTE,
            arg(
                "save",
                ArgumentForm::Value,
                "a folder for their pictures and tables, figures as PNG and SVG; they are not printed then",
            ),
        ],
        "Print the kept outputs of a note's cells, or save their pictures, tables and pages.",
    ),
    line(
        "workspace.check",
        "Check and repair",
        "fsck",
        &[arg("check", ArgumentForm::Flag, "only look; repair nothing")],
        "Check everything in the workspace and repair what can be repaired; what cannot be read is set aside, never \
         deleted.",
    ),
    line(
        "search.index",
        "Search index",
        "index",
        &[
            arg(
                "WHAT",
                ArgumentForm::Needed,
                "status, rebuild, verify, models, use, reranker, exclude, include, pause or resume",
            ),
            arg(
                "NAME",
                ArgumentForm::Optional,
                "for `use`: embedded, fastembed:NAME, folder:PATH or URL#MODEL; for `reranker`: \
                 its name, or none; for `exclude`, `include`: a folder",
            ),
        ],
        "Say how the search index stands, make it again, or look at every byte of it; choose the sentence model that \
         finds by meaning, list those there are, pause it. The index holds nothing that is not in the notes.",
    ),
    line(
        "search.kept",
        "Kept searches",
        "searches",
        &[
            arg("NAME", ArgumentForm::Optional, "what it is kept as; `search @NAME` asks it"),
            arg("QUERY", ArgumentForm::Optional, "what is asked"),
            arg("forget", ArgumentForm::Flag, "forget the search of that name"),
        ],
        "List the searches that are kept, or keep one.",
    ),
    line(
        "workspace.backup",
        "Back up",
        "backup",
        &[arg("DEST", ArgumentForm::Needed, "a new folder")],
        "Make a consistent copy of everything, also while the window is open.",
    ),
    line(
        "workspace.restore",
        "Restore",
        "restore",
        &[
            arg("BACKUP", ArgumentForm::Needed, "a folder made by `backup`"),
            arg(
                "trusted",
                ArgumentForm::Flag,
                "it is your own: put volumes back to where they were, keep what you allowed",
            ),
        ],
        "Make a workspace (--workspace) of a backup; nothing is overwritten.",
    ),
    line(
        "app.doctor",
        "What this machine offers",
        "doctor",
        &[],
        "Say what is there: display, sandbox, kernels, model servers.",
    ),
    line(
        "llm.providers",
        "Language models",
        "providers",
        &[
            arg("WHAT", ArgumentForm::Optional, "list (when left out), test or models"),
            arg("NAME", ArgumentForm::Optional, "a provider of config.yaml; the default one when left out"),
        ],
        "List the providers of language models that config.yaml names, look whether one is there, takes its key and \
         has its model, or list its models.",
    ),
    line(
        "llm.secrets",
        "Keys of providers",
        "secrets",
        &[
            arg("WHAT", ArgumentForm::Needed, "list, set, rm or encrypt"),
            arg(
                "NAME",
                ArgumentForm::Optional,
                "the name, as in ${NAME} in config.yaml; a variable of that name goes first",
            ),
        ],
        "Keep keys in the system's keyring or, where there is none, in an encrypted file; `set` reads the value from \
         standard input. With TRACEBOOK_PASSPHRASE the file is opened by that, else by a key file beside it; \
         `encrypt` has a file that its key file opens opened by the passphrase alone from then on.",
    ),
    line(
        "app.bench",
        "Measure",
        "bench",
        &[
            arg(
                "WHAT",
                ArgumentForm::Needed,
                "edit, open, import, frames, search, cells, tools, agent, hub, sync, replay, memory or retrieval",
            ),
            arg(
                "size",
                ArgumentForm::Value,
                "blocks for `frames` (default 10000), clients for `hub` (1000); the same as --notes for the others",
            ),
            arg(
                "notes",
                ArgumentForm::Value,
                "notes for `import` and `sync` (default 50000), `open` and `search` (default 10000); `edit` presses \
                 its keys while so many are indexed",
            ),
            arg(
                "corpus",
                ArgumentForm::Value,
                "for `retrieval`: a folder with corpus.jsonl, queries.jsonl, qrels.tsv; for `replay` and `memory`: \
                 bfcl-eval",
            ),
            arg(
                "foreign",
                ArgumentForm::Value,
                "for `retrieval`: another such folder, whose queries nothing should fit",
            ),
            arg(
                "conversations",
                ArgumentForm::Value,
                "for `memory`: a JSON file of LoCoMo's form, whose evidence is searched",
            ),
        ],
        "Measure on this machine what BENCHMARKS.md holds.",
    ),
    line(
        "app.screenshots",
        "Pictures of the window",
        "screenshots",
        &[
            arg("DIR", ArgumentForm::Needed, "the folder for the pictures"),
            arg("scale", ArgumentForm::Value, "pixels a point, 1 to 3 (2 when left out)"),
            arg("scene", ArgumentForm::Value, "only this scene; all of them, and a sheet, when left out"),
        ],
        "Make pictures of the window over the sample volume, in both themes, without a display.",
    ),
    line(
        "app.completions",
        "Shell completions",
        "completions",
        &[arg("SHELL", ArgumentForm::Needed, "bash, zsh, fish, elvish or powershell")],
        "Print completions for a shell.",
    ),
    line("app.man", "Manual page", "man", &[], "Print the manual page."),
];

/// A command by its id.
pub fn command(id: &str) -> Option<&'static CommandInfo> {
    COMMANDS.iter().find(|command| command.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_and_key_stands_once() {
        let ids: BTreeSet<_> = COMMANDS.iter().map(|command| command.id).collect();
        assert_eq!(ids.len(), COMMANDS.len());
        let keys: Vec<_> = COMMANDS.iter().flat_map(|command| command.keys).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        let lines: Vec<_> = COMMANDS.iter().filter_map(|command| command.line.as_ref()).map(|line| line.name).collect();
        assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len());
        assert!(COMMANDS.iter().all(|command| command.window || command.line.is_some()));
    }
}
