//! Commands that write at the caret: marks around words, rows that move. They are in the one table, with their keys.

use super::Window;
use super::editor::{Editor, World};
use super::keys::{At, Done};
use super::marks;
use eframe::egui;

/// What a command of the table does at every caret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
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

impl Window {
    /// Does it, if there is a caret to do it at.
    pub(super) fn run_writing(&mut self, ctx: &egui::Context, writing: Writing) {
        if self.here.editor.caret.is_none() {
            self.toasts.say("Click into a note first: this writes at the caret.");
            return;
        }
        self.write(ctx, |editor, world| act(editor, world, writing), false);
    }
}

fn act(editor: &mut Editor, world: &mut World<'_>, writing: Writing) -> Done {
    let (Some(caret), Some(target)) = (editor.caret, editor.target(world)) else { return Done::Not };
    let here = At::of(caret, &target);
    match writing {
        Writing::Up => marks::move_row(&target, caret, false, world),
        Writing::Down => marks::move_row(&target, caret, true, world),
        Writing::Duplicate => marks::duplicate(&target, caret, world),
        Writing::Bold => marks::toggle(&target, &here, "**"),
        Writing::Italic => marks::toggle(&target, &here, "*"),
        Writing::Code => marks::toggle(&target, &here, "`"),
        Writing::Strike => marks::toggle(&target, &here, "~~"),
        Writing::Link => marks::link(&target, &here),
        Writing::Task => marks::task(caret, &target),
    }
}
