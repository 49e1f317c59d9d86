//! Input in progress: modes of emulated editors, menus at the caret, search in the note, pasting.

use crate::overlays::code_completion::CodeCompletion;
use crate::overlays::find_bar::FindBar;
use crate::overlays::hover::LinkHover;
use crate::overlays::link_completion::LinkCompletion;
use crate::overlays::slash_menu::SlashMenu;
use crate::shell::clipboard::PasteState;
use crate::shell::command_mode::CommandMode;
use crate::shell::commands::{ShortcutTable, WindowCommand};
use crate::shell::file_drop::FileDrops;
use crate::shell::vim_adapter::vim_state::VimAdapter;
use engine::commands::CommandId;
use std::collections::VecDeque;

/// Input in progress.
#[derive(Default)]
pub(crate) struct InputState {
    pub(crate) shortcuts: ShortcutTable,
    pub(crate) vim: VimAdapter,
    pub(crate) command_mode: CommandMode,
    /// The slash menu, while it's open.
    pub(crate) slash: Option<SlashMenu>,
    pub(crate) link_completion: LinkCompletion,
    pub(crate) code_completion: CodeCompletion,
    pub(crate) hover: LinkHover,
    /// Search in the open note, and the previous search.
    pub(crate) find: Option<FindBar>,
    pub(crate) last_search: Option<FindBar>,
    pub(crate) pasting: PasteState,
    pub(crate) dropped: FileDrops,
    /// Recently used commands, newest first.
    pub(crate) recent: Vec<CommandId>,
    /// Log of the last commands that ran, oldest first.
    pub(crate) command_log: VecDeque<WindowCommand>,
}
