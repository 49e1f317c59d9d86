//! Commands that write at the caret: marks around words, rows that move. They are in the one table, with their keys.

use super::Window;
use super::page;
use editor::keys::{At, Done};
use editor::note_editor::{Caret, Editor, World};
use editor::{marks, motion};
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
        if let (Writing::Up | Writing::Down, Some(caret), true) =
            (writing, self.here.editor.caret, self.here.editor.more.is_empty())
        {
            let (dark, down) = (ctx.global_style().visuals.dark_mode, writing == Writing::Down);
            let past = |world: &mut World<'_>| {
                let spot = world.find(caret.at)?;
                // What is folded away beside it is shown first.
                let hidden = [true, false].map(|behind| world.beside_hidden(spot, behind));
                if hidden == [false; 2] { page::past_cell(caret, down, world) } else { None }
            };
            if let Some((edits, at)) = self.with_note(ctx, dark, |world, _, _| past(world)).flatten() {
                return self.move_rows(edits, Some(at));
            }
        }
        self.write(ctx, |editor, world| act(editor, world, writing), false);
    }
}

impl Window {
    /// Selects the word at the caret, or the occurrences of what is selected: the next one, or all of them.
    pub(super) fn select_same(&mut self, ctx: &egui::Context, all: bool) {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(ctx, dark, |world, editor, _| {
            let Some(mut caret) = editor.caret else { return };
            if caret.is_empty() {
                let Some(target) = editor.target(world) else { return };
                let word = motion::word_around(&target.shown, target.shown_byte(caret.at));
                editor.select(target.note_byte(word.start), target.note_byte(word.end));
                if !all {
                    return;
                }
                caret = editor.caret.unwrap_or(caret);
            }
            let (own, text) = (caret.range(), world.note.text());
            let Some(words) = text.get(own.clone()).filter(|words| !words.is_empty()) else { return };
            let taken: Vec<_> = editor.selected();
            let found = text.match_indices(words).map(|(at, words)| at..at + words.len());
            let free = |range: &std::ops::Range<usize>| !taken.contains(range);
            if all {
                editor.more = found.filter(free).map(|range| Caret { at: range.end, anchor: range.start }).collect();
                return;
            }
            let (before, behind): (Vec<_>, Vec<_>) = found.filter(free).partition(|range| range.start < own.end);
            if let Some(next) = behind.first().or(before.first()) {
                editor.more.push(caret);
                editor.select(next.start, next.end);
            }
        });
    }
}

fn act(editor: &mut Editor, world: &mut World<'_>, writing: Writing) -> Done {
    let (Some(caret), Some(target)) = (editor.caret, editor.target(world)) else { return Done::Not };
    let here = At::of(caret, &target);
    // A row moves past what can be seen, and not into what is folded away.
    if let (Some(spot), Writing::Up | Writing::Down | Writing::Duplicate) = (target.spot, writing)
        && (world.unfold_beside(spot, true) || world.unfold_beside(spot, false))
    {
        return Done::Moved;
    }
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
