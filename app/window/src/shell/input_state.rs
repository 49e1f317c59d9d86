//! Input in progress: modes of emulated editors, menus at the caret, search in the note, pasting.

use crate::overlays::code_completion::{CodeCompletion, code_list};
use crate::overlays::find_bar::FindBar;
use crate::overlays::hover::LinkHover;
use crate::overlays::link_completion::{LinkCompletion, link_list};
use crate::overlays::slash_menu::{SlashMenu, slash_list};
use crate::shell::clipboard::PasteState;
use crate::shell::command_mode::CommandMode;
use crate::shell::commands::{ShortcutTable, WindowCommand};
use crate::shell::file_drop::FileDrops;
use crate::shell::vim_adapter::vim_state::VimAdapter;
use eframe::egui;
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

impl InputState {
    /// Returns whether the pointer is over a list at the caret. Pressing the button there takes the keyboard from the
    /// note, but the caret and the list must stay until it's released.
    pub(crate) fn is_pointer_on_list(&self, ctx: &egui::Context) -> bool {
        let Some(pointer) = ctx.input(|input| input.pointer.latest_pos()) else { return false };
        let lists = [
            (self.slash.is_some(), slash_list()),
            (self.link_completion.open.is_some(), link_list()),
            (self.code_completion.list.is_some(), code_list()),
        ];
        ctx.layer_id_at(pointer).is_some_and(|layer| lists.contains(&(true, layer.id)))
    }
}
