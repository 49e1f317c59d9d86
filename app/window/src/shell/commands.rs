//! The window's commands: their keys, and the window command for each entry of the command table.
//!
//! `dispatch.rs` runs them. Their names are in `engine::commands`.

use agent_ui::agent::AgentCommand;
use agent_ui::memory::MemoryCommand;
use editor::cell_edits::CellEdit;
use editor::figure::FigureCommand;
use eframe::egui;
use egui::{Key, Modifiers};
use engine::commands::{COMMANDS, CommandId, CommandInfo};
use engine::keymap::effective_keymap;
use engine::{Reactivity, Settings, TreeOrder};
use notebook::actions::ExportCommand;
use notebook::saved_states::SavedStatesView;
use std::collections::BTreeMap;

/// A command of the command table, as the window runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowCommand {
    Palette,
    Switcher,
    Search,
    /// Show the search panel.
    SearchPanel,
    ReplaceInNotes,
    UndoReplaceInNotes,
    NewNote,
    NewNoteIn,
    UndoNewNote,
    NewCollection,
    Collections,
    OpenFolder,
    OpenRepository,
    Rescan,
    /// Apply the settings of an Obsidian vault.
    UseObsidian,
    CloseVolume,
    /// Show or hide the Git commits of the note's parts.
    ShowBlame,
    /// Trust the open note's volume, or take that back.
    TrustVolume,
    ReopenVolume,
    Save,
    Undo,
    Redo,
    CloseNote,
    NewTab,
    ReopenTab,
    NextTab,
    PreviousTab,
    SplitRight,
    SplitDown,
    /// Run the cell at the caret. `on`: then move the caret to the next row.
    RunCell {
        on: bool,
    },
    RunAll,
    RunStale,
    RunClean,
    React(Reactivity),
    Kernel,
    /// Set what the note's cells may access.
    Grant,
    Variables,
    Stop,
    Restart,
    /// Restore the variables from before the last run, or redo it.
    UndoRun {
        redo: bool,
    },
    /// Take over the variables that another device shares.
    ReceiveState,
    /// List the saved states of the note's kernel, their forks, or share them.
    States(SavedStatesView),
    /// List and install the packages of the note's cells.
    Packages,
    Left,
    Files,
    Tags,
    /// A command of the file tree.
    Tree(TreeCommand),
    Right,
    /// Move the keyboard focus to the next or previous region of the window.
    Region {
        back: bool,
    },
    Theme,
    Spelling,
    /// Turn automatic script runs on or off.
    ScriptRuns,
    Correct,
    Larger,
    Smaller,
    NormalSize,
    Keys,
    Settings,
    Contrast,
    ChooseTheme,
    /// A note management command.
    File(NoteCommand),
    /// An export command.
    Export(ExportCommand),
    /// A command for a figure's view.
    Figure(FigureCommand),
    /// Show the next or previous view of a collection.
    TurnView {
        back: bool,
    },
    /// Open the sample notes.
    Sample,
    /// Open the user guide.
    Help,
    /// Write a bug report.
    ReportBug,
    Quit,
    PastePlain,
    Find,
    Replace,
    NextMatch,
    PreviousMatch,
    Fold,
    FoldAll,
    UnfoldAll,
    SelectNext,
    SelectAll,
    /// A formatting command at the caret.
    Write(FormatCommand),
    /// A command on links or files.
    Go(NavigationCommand),
    /// A command on whole cells.
    Cells(CellCommand),
    /// An agent command.
    Agent(AgentCommand),
    /// A memory command.
    Remember(MemoryCommand),
}

/// Returns the window's command for a table entry; `None` if it's for the command line only.
pub(crate) fn window_command(id: CommandId) -> Option<WindowCommand> {
    Some(match id {
        CommandId::PaletteOpen => WindowCommand::Palette,
        CommandId::SwitcherOpen => WindowCommand::Switcher,
        CommandId::SearchOpen => WindowCommand::Search,
        CommandId::SearchPanel => WindowCommand::SearchPanel,
        CommandId::SearchReplace => WindowCommand::ReplaceInNotes,
        CommandId::SearchUndoReplace => WindowCommand::UndoReplaceInNotes,
        CommandId::NoteNew => WindowCommand::NewNote,
        CommandId::NoteNewIn => WindowCommand::NewNoteIn,
        CommandId::NoteUndoNew => WindowCommand::UndoNewNote,
        CommandId::CollectionNew => WindowCommand::NewCollection,
        CommandId::CollectionOpen => WindowCommand::Collections,
        CommandId::CollectionNextView => WindowCommand::TurnView { back: false },
        CommandId::CollectionPreviousView => WindowCommand::TurnView { back: true },
        CommandId::FigureCloser => WindowCommand::Figure(FigureCommand::In),
        CommandId::FigureFarther => WindowCommand::Figure(FigureCommand::Out),
        CommandId::FigureReset => WindowCommand::Figure(FigureCommand::Reset),
        CommandId::FolderOpen => WindowCommand::OpenFolder,
        CommandId::FolderClone => WindowCommand::OpenRepository,
        CommandId::FolderObsidian => WindowCommand::UseObsidian,
        CommandId::FolderRescan => WindowCommand::Rescan,
        CommandId::VolumeClose => WindowCommand::CloseVolume,
        CommandId::VolumeTrust => WindowCommand::TrustVolume,
        CommandId::VolumeReopen => WindowCommand::ReopenVolume,
        CommandId::NoteSave => WindowCommand::Save,
        CommandId::NoteUndo => WindowCommand::Undo,
        CommandId::NoteRedo => WindowCommand::Redo,
        CommandId::NoteClose => WindowCommand::CloseNote,
        CommandId::TabNew => WindowCommand::NewTab,
        CommandId::TabReopen => WindowCommand::ReopenTab,
        CommandId::TabNext => WindowCommand::NextTab,
        CommandId::TabPrevious => WindowCommand::PreviousTab,
        CommandId::PaneSplitRight => WindowCommand::SplitRight,
        CommandId::PaneSplitDown => WindowCommand::SplitDown,
        CommandId::CellRun => WindowCommand::RunCell { on: false },
        CommandId::NoteRunAll => WindowCommand::RunAll,
        CommandId::NoteRunStale => WindowCommand::RunStale,
        CommandId::NoteRunClean => WindowCommand::RunClean,
        CommandId::CellsManual => WindowCommand::React(Reactivity::Manual),
        CommandId::CellsMarks => WindowCommand::React(Reactivity::Marks),
        CommandId::CellsAutomatic => WindowCommand::React(Reactivity::Automatic),
        CommandId::ViewVariables => WindowCommand::Variables,
        CommandId::KernelChoose => WindowCommand::Kernel,
        CommandId::KernelGrant => WindowCommand::Grant,
        CommandId::CellStop => WindowCommand::Stop,
        CommandId::KernelRestart => WindowCommand::Restart,
        CommandId::KernelUndo => WindowCommand::UndoRun { redo: false },
        CommandId::KernelRedo => WindowCommand::UndoRun { redo: true },
        CommandId::KernelReceive => WindowCommand::ReceiveState,
        CommandId::KernelStates => WindowCommand::States(SavedStatesView::Graph),
        CommandId::KernelShare => WindowCommand::States(SavedStatesView::Sharing),
        CommandId::KernelPackages => WindowCommand::Packages,
        CommandId::KernelForks => WindowCommand::States(SavedStatesView::Forks),
        CommandId::ViewNextRegion => WindowCommand::Region { back: false },
        CommandId::ViewPreviousRegion => WindowCommand::Region { back: true },
        CommandId::ViewLeft => WindowCommand::Left,
        CommandId::ViewFiles => WindowCommand::Files,
        CommandId::ViewTags => WindowCommand::Tags,
        CommandId::ViewSortName => WindowCommand::Tree(TreeCommand::Sort(TreeOrder::Name)),
        CommandId::ViewSortNameDown => WindowCommand::Tree(TreeCommand::Sort(TreeOrder::NameReversed)),
        CommandId::ViewSortEdited => WindowCommand::Tree(TreeCommand::Sort(TreeOrder::Edited)),
        CommandId::ViewSortCreated => WindowCommand::Tree(TreeCommand::Sort(TreeOrder::Created)),
        CommandId::ViewCollapse => WindowCommand::Tree(TreeCommand::Collapse),
        CommandId::ViewReveal => WindowCommand::Tree(TreeCommand::Reveal),
        CommandId::ViewRight => WindowCommand::Right,
        CommandId::ViewTheme => WindowCommand::Theme,
        CommandId::ViewSpelling => WindowCommand::Spelling,
        CommandId::ScriptRuns => WindowCommand::ScriptRuns,
        CommandId::TextSpelling => WindowCommand::Correct,
        CommandId::ViewLarger => WindowCommand::Larger,
        CommandId::ViewSmaller => WindowCommand::Smaller,
        CommandId::ViewReset => WindowCommand::NormalSize,
        CommandId::AppKeys => WindowCommand::Keys,
        CommandId::AppWelcome => WindowCommand::Go(NavigationCommand::Welcome),
        CommandId::HelpSample => WindowCommand::Sample,
        CommandId::HelpOpen => WindowCommand::Help,
        CommandId::HelpReport => WindowCommand::ReportBug,
        CommandId::AppSettings => WindowCommand::Settings,
        CommandId::ViewContrast => WindowCommand::Contrast,
        CommandId::ViewChooseTheme => WindowCommand::ChooseTheme,
        CommandId::TextPastePlain => WindowCommand::PastePlain,
        CommandId::AppQuit => WindowCommand::Quit,
        CommandId::FindOpen => WindowCommand::Find,
        CommandId::FindReplace => WindowCommand::Replace,
        CommandId::FindNext => WindowCommand::NextMatch,
        CommandId::FindPrevious => WindowCommand::PreviousMatch,
        CommandId::FoldHere => WindowCommand::Fold,
        CommandId::FoldAll => WindowCommand::FoldAll,
        CommandId::FoldNone => WindowCommand::UnfoldAll,
        CommandId::SelectNext => WindowCommand::SelectNext,
        CommandId::SelectAll => WindowCommand::SelectAll,
        CommandId::RowUp => WindowCommand::Write(FormatCommand::Up),
        CommandId::RowDown => WindowCommand::Write(FormatCommand::Down),
        CommandId::RowDuplicate => WindowCommand::Write(FormatCommand::Duplicate),
        CommandId::TextBold => WindowCommand::Write(FormatCommand::Bold),
        CommandId::TextItalic => WindowCommand::Write(FormatCommand::Italic),
        CommandId::TextCode => WindowCommand::Write(FormatCommand::Code),
        CommandId::TextStrike => WindowCommand::Write(FormatCommand::Strike),
        CommandId::TextLink => WindowCommand::Write(FormatCommand::Link),
        CommandId::TextTask => WindowCommand::Write(FormatCommand::Task),
        CommandId::NoteRename => WindowCommand::Go(NavigationCommand::Rename),
        CommandId::NoteDelete => WindowCommand::Go(NavigationCommand::Delete),
        CommandId::FilesUndo => WindowCommand::Go(NavigationCommand::UndoMove),
        CommandId::FilesFollow => WindowCommand::Go(NavigationCommand::FollowRenamed),
        CommandId::ViewLinks => WindowCommand::Go(NavigationCommand::Links),
        CommandId::ViewBroken => WindowCommand::Go(NavigationCommand::Broken),
        CommandId::ViewAgenda => WindowCommand::Go(NavigationCommand::Agenda),
        CommandId::ViewGraph => WindowCommand::Go(NavigationCommand::Graph),
        CommandId::ViewLocalGraph => WindowCommand::Go(NavigationCommand::LocalGraph),
        CommandId::NoteHistory => WindowCommand::Go(NavigationCommand::History),
        CommandId::NoteBlame => WindowCommand::ShowBlame,
        CommandId::NoteWriters => WindowCommand::Go(NavigationCommand::Writers),
        CommandId::ViewSourceControl => WindowCommand::Go(NavigationCommand::SourceControl),
        CommandId::ViewForks => WindowCommand::Go(NavigationCommand::Forks),
        CommandId::ViewPackages => WindowCommand::Go(NavigationCommand::Packages),
        CommandId::ViewTrash => WindowCommand::Go(NavigationCommand::Trash),
        CommandId::TrashEmpty => WindowCommand::Go(NavigationCommand::EmptyTrash),
        CommandId::SyncStatus => WindowCommand::Go(NavigationCommand::Sync(SyncCommand::Show(SyncTab::State))),
        CommandId::SyncMerges => WindowCommand::Go(NavigationCommand::Sync(SyncCommand::Show(SyncTab::Merges))),
        CommandId::SyncLog => WindowCommand::Go(NavigationCommand::Sync(SyncCommand::Show(SyncTab::Log))),
        CommandId::SyncPause => WindowCommand::Go(NavigationCommand::Sync(SyncCommand::Pause)),
        CommandId::SyncRetry => WindowCommand::Go(NavigationCommand::Sync(SyncCommand::Retry)),
        CommandId::SyncShare => WindowCommand::Go(NavigationCommand::Sync(SyncCommand::Share)),
        CommandId::SyncJoin => WindowCommand::Go(NavigationCommand::Sync(SyncCommand::Join)),
        CommandId::SyncDevices => WindowCommand::Go(NavigationCommand::Sync(SyncCommand::Devices)),
        CommandId::NoteToday => WindowCommand::File(NoteCommand::Today),
        CommandId::NoteQuick => WindowCommand::File(NoteCommand::Quick),
        CommandId::TemplateInsert => WindowCommand::File(NoteCommand::Template),
        CommandId::NoteDuplicate => WindowCommand::File(NoteCommand::Duplicate),
        CommandId::NoteStar => WindowCommand::File(NoteCommand::Star),
        CommandId::CellAbove => WindowCommand::Cells(CellCommand::Work(CellEdit::Above)),
        CommandId::CellBelow => WindowCommand::Cells(CellCommand::Work(CellEdit::Below)),
        CommandId::CellDelete => WindowCommand::Cells(CellCommand::Work(CellEdit::Delete)),
        CommandId::CellProse => WindowCommand::Cells(CellCommand::Work(CellEdit::Prose)),
        CommandId::CellCode => WindowCommand::Cells(CellCommand::Work(CellEdit::Code)),
        CommandId::CellMerge => WindowCommand::Cells(CellCommand::Work(CellEdit::Merge)),
        CommandId::CellSplit => WindowCommand::Cells(CellCommand::Work(CellEdit::Split)),
        CommandId::CellCopy => WindowCommand::Cells(CellCommand::Copy),
        CommandId::CellCut => WindowCommand::Cells(CellCommand::Cut),
        CommandId::CellPaste => WindowCommand::Cells(CellCommand::Paste),
        CommandId::CellRunInsert => WindowCommand::Cells(CellCommand::RunInsert),
        CommandId::CellFold => WindowCommand::Cells(CellCommand::Fold),
        CommandId::CellSave => WindowCommand::Cells(CellCommand::Save),
        CommandId::NoteRunAbove => WindowCommand::Cells(CellCommand::RunAbove),
        CommandId::NoteRunBelow => WindowCommand::Cells(CellCommand::RunBelow),
        CommandId::ExportHtml => WindowCommand::Export(ExportCommand::Html),
        CommandId::ExportPdf => WindowCommand::Export(ExportCommand::Pdf),
        CommandId::ExportFolder => WindowCommand::Export(ExportCommand::Folder),
        CommandId::ExportNotebook => WindowCommand::Export(ExportCommand::Notebook),
        CommandId::NotePrint => WindowCommand::Export(ExportCommand::Print),
        CommandId::ExportOpen => WindowCommand::Export(ExportCommand::Open),
        CommandId::AgentOpen => WindowCommand::Agent(AgentCommand::Panel),
        CommandId::AgentConnect => WindowCommand::Agent(AgentCommand::Connect),
        CommandId::AgentNew => WindowCommand::Agent(AgentCommand::New),
        CommandId::AgentStop => WindowCommand::Agent(AgentCommand::Stop),
        CommandId::AgentResume => WindowCommand::Agent(AgentCommand::Resume),
        CommandId::AgentAllow => WindowCommand::Agent(AgentCommand::Decide { allow: true }),
        CommandId::AgentDeny => WindowCommand::Agent(AgentCommand::Decide { allow: false }),
        CommandId::AgentTimeline => WindowCommand::Agent(AgentCommand::Timeline),
        CommandId::AgentChanges => WindowCommand::Agent(AgentCommand::Changes),
        CommandId::AgentBranches => WindowCommand::Agent(AgentCommand::Branches),
        CommandId::AgentTools => WindowCommand::Agent(AgentCommand::Tools),
        CommandId::ViewMemory => WindowCommand::Remember(MemoryCommand::Experiences),
        CommandId::ViewTraces => WindowCommand::Remember(MemoryCommand::Traces),
        CommandId::ViewBudget => WindowCommand::Remember(MemoryCommand::Budget),
        CommandId::ViewSchedule => WindowCommand::Remember(MemoryCommand::Schedule),
        CommandId::ViewAgents => WindowCommand::Remember(MemoryCommand::Agents),
        CommandId::ViewPlans => WindowCommand::Remember(MemoryCommand::Plans),
        CommandId::MemoryUndo => WindowCommand::Remember(MemoryCommand::Undo),
        CommandId::NoteCells
        | CommandId::AgentAsk
        | CommandId::AgentRuns
        | CommandId::AgentBudget
        | CommandId::MemoryList
        | CommandId::AgentTasks
        | CommandId::AgentSchedule
        | CommandId::WorkspaceEvents
        | CommandId::MemoryTraces
        | CommandId::AgentSteps
        | CommandId::AgentSessions
        | CommandId::AgentApprovals
        | CommandId::WorkspaceInit
        | CommandId::NoteCat
        | CommandId::NoteCopy
        | CommandId::GitRun
        | CommandId::NoteEdit
        | CommandId::WorkspaceList
        | CommandId::NoteLinks
        | CommandId::NoteRelated
        | CommandId::WorkspaceTodos
        | CommandId::CollectionList
        | CommandId::NoteMove
        | CommandId::NoteRemove
        | CommandId::WorkspaceTrash
        | CommandId::NoteRestore
        | CommandId::NoteCapture
        | CommandId::FilesImport
        | CommandId::FilesExport
        | CommandId::NoteOutputs
        | CommandId::WorkspaceCheck
        | CommandId::SearchIndex
        | CommandId::SearchKept
        | CommandId::WorkspaceBackup
        | CommandId::WorkspaceRestore
        | CommandId::AppDoctor
        | CommandId::AppUpdate
        | CommandId::LlmProviders
        | CommandId::LlmSecrets
        | CommandId::AppBench
        | CommandId::AppScreenshots
        | CommandId::AppCompletions
        | CommandId::AppMan
        | CommandId::SyncPair
        | CommandId::ServeMcp
        | CommandId::ServeAcp
        | CommandId::ServeHttp
        | CommandId::ServeTokens
        | CommandId::SyncHub
        | CommandId::SyncWorker
        | CommandId::AgentComponents
        | CommandId::AgentPackages
        | CommandId::VolumeAttachments
        | CommandId::ForkList => return None,
    })
}

/// Returns the commands that the window offers.
pub(crate) fn available_commands() -> impl Iterator<Item = &'static CommandInfo> {
    COMMANDS.iter().filter(|command| command.window)
}

/// A key and its command.
#[derive(Clone, Copy, Debug)]
struct KeyShortcut {
    modifiers: Modifiers,
    key: Key,
    what: WindowCommand,
}

/// The current keys of all commands.
#[derive(Debug, Default)]
pub(crate) struct ShortcutTable {
    shortcuts: Vec<KeyShortcut>,
    key_texts: BTreeMap<CommandId, Vec<String>>,
}

impl ShortcutTable {
    pub(crate) fn from_settings(settings: &Settings) -> ShortcutTable {
        let key_texts = effective_keymap(settings);
        let mut shortcuts = Vec::new();
        for command in available_commands() {
            for (place, keys) in key_texts.get(&command.id).into_iter().flatten().enumerate() {
                if let (Some((modifiers, key)), Some(what)) = (parse(keys), window_command(command.id)) {
                    // A cell can be run by two keys. Only the first moves the caret on.
                    let what = if let WindowCommand::RunCell { .. } = what {
                        WindowCommand::RunCell { on: place == 0 }
                    } else {
                        what
                    };
                    shortcuts.push(KeyShortcut { modifiers, key, what });
                }
            }
        }
        ShortcutTable { shortcuts, key_texts }
    }

    /// Returns the key displayed for a command.
    pub(crate) fn key_of(&self, id: CommandId) -> Option<&str> {
        self.key_texts.get(&id)?.first().map(String::as_str)
    }

    /// Returns the command for a key press.
    pub(crate) fn command_for(&self, key: Key, modifiers: Modifiers) -> Option<WindowCommand> {
        self.shortcuts.iter().find(|shortcut| shortcut.matches_key(key, modifiers)).map(|shortcut| shortcut.what)
    }
}

impl KeyShortcut {
    /// Returns whether the shortcut matches a key press.
    fn matches_key(&self, key: Key, modifiers: Modifiers) -> bool {
        // Many keyboards type `+` with Shift, often on the `=` key.
        let symbol = matches!(self.key, Key::Plus);
        // With Shift, some keyboards report the other character on the key.
        let pipe = self.key == Key::Backslash && key == Key::Pipe;
        let same = key == self.key || (symbol && key == Key::Equals) || pipe;
        let modifiers = if symbol { Modifiers { shift: false, ..modifiers } } else { modifiers };
        same && modifiers.matches_exact(self.modifiers)
    }
}

/// Parses a key in the notation of the command table: `Ctrl+Shift+P`, `F5`, `Ctrl+Plus`.
fn parse(text: &str) -> Option<(Modifiers, Key)> {
    let mut modifiers = Modifiers::NONE;
    let mut parts = text.split('+').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return Some((modifiers, Key::from_name(part)?));
        }
        modifiers |= match part {
            "Ctrl" => Modifiers::COMMAND,
            "Shift" => Modifiers::SHIFT,
            "Alt" => Modifiers::ALT,
            _ => return None,
        };
    }
    None
}

/// A file tree command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeCommand {
    Sort(TreeOrder),
    /// Fold all folders.
    Collapse,
    /// Show the open note in the tree.
    Reveal,
}

/// A note management command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteCommand {
    Today,
    /// Ask for an item to add to today's note.
    Quick,
    Template,
    Duplicate,
    Star,
}

/// A formatting command that applies at every caret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatCommand {
    Up,
    Down,
    Duplicate,
    Bold,
    Italic,
    Code,
    Strike,
    Link,
    Task,
}

/// A tab of the sync page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncTab {
    State,
    Merges,
    Log,
}

/// A sync command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncCommand {
    Show(SyncTab),
    Pause,
    Retry,
    Share,
    Join,
    Devices,
}

/// A command on whole cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellCommand {
    Work(CellEdit),
    Copy,
    Cut,
    Paste,
    /// Run the cell and insert one below.
    RunInsert,
    RunAbove,
    RunBelow,
    /// Fold or unfold the cell's output.
    Fold,
    /// Save the cell's output to a file.
    Save,
}

/// A command on links and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavigationCommand {
    /// Show the welcome page.
    Welcome,
    Rename,
    Delete,
    UndoMove,
    FollowRenamed,
    Links,
    Broken,
    Agenda,
    Graph,
    LocalGraph,
    History,
    Writers,
    SourceControl,
    Forks,
    Packages,
    Trash,
    EmptyTrash,
    Sync(SyncCommand),
}

#[cfg(test)]
mod tests {
    use super::*;
    use ui::key_names::key_text;

    #[test]
    fn every_command_and_key_of_the_table_is_known() {
        for command in available_commands() {
            assert!(window_command(command.id).is_some(), "not wired: {}", command.id);
            for keys in command.keys {
                assert!(parse(keys).is_some(), "not a key: {keys}");
            }
        }
        let keys: usize = available_commands().map(|command| command.keys.len()).sum();
        assert_eq!(ShortcutTable::from_settings(&Settings::default()).shortcuts.len(), keys);
        for preset in engine::keymap::KeymapPreset::ALL {
            let settings = Settings { keymap_preset: preset, ..Settings::default() };
            for key in effective_keymap(&settings).values().flatten() {
                let (modifiers, code) = parse(key).unwrap_or_else(|| panic!("not a key: {key}"));
                // The notation for the same key press must parse to the same key.
                let (pressed, again) = parse(&key_text(code, modifiers)).expect("a key");
                assert_eq!((pressed, again), (modifiers, code), "{key}");
            }
        }
    }

    #[test]
    fn every_key_of_every_preset_means_its_command() {
        for preset in engine::keymap::KeymapPreset::ALL {
            let settings = Settings { keymap_preset: preset, ..Settings::default() };
            let all = ShortcutTable::from_settings(&settings);
            let map = effective_keymap(&settings);
            for (id, key) in available_commands().flat_map(|info| map[&info.id].iter().map(|key| (info.id, key))) {
                let (modifiers, code) = parse(key).unwrap_or_else(|| panic!("not a key: {key}"));
                // Keyboards also report Ctrl when the command key is pressed.
                let ctrl = if modifiers.command { Modifiers::CTRL } else { Modifiers::NONE };
                let meant = match all.command_for(code, modifiers | ctrl) {
                    Some(WindowCommand::RunCell { .. }) => Some(WindowCommand::RunCell { on: false }),
                    meant => meant,
                };
                assert_eq!(meant, window_command(id), "{preset:?}: {key} for {id}");
            }
        }
    }

    #[test]
    fn keys_are_exact() {
        let all = ShortcutTable::from_settings(&Settings::default());
        assert_eq!(all.key_of(CommandId::SwitcherOpen), Some("Ctrl+P"));
        let find = |key, modifiers| all.command_for(key, modifiers);
        let ctrl = Modifiers { ctrl: true, command: true, ..Modifiers::NONE };
        assert_eq!(find(Key::P, ctrl), Some(WindowCommand::Switcher));
        assert_eq!(find(Key::P, ctrl | Modifiers::SHIFT), Some(WindowCommand::Palette));
        assert_eq!(find(Key::Equals, ctrl | Modifiers::SHIFT), Some(WindowCommand::Larger));
        assert_eq!(find(Key::Enter, Modifiers::SHIFT), Some(WindowCommand::RunCell { on: true }));
        assert_eq!(find(Key::Enter, ctrl), Some(WindowCommand::RunCell { on: false }));
        assert_eq!(find(Key::P, Modifiers::NONE), None);
    }
}
