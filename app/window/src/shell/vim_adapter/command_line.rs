//! Runs Vim command lines and searches in the note.

use super::super::commands;
use crate::app_window::AppWindow;
use crate::overlays::command_palette::CommandPalette;
use crate::overlays::window_overlay::WindowOverlay;
use editor::motion;
use editor::note_editor::NoteEdit;
use editor::vim::ex::{self, ExCommand, GlobalCommand, LineAddress, SubstituteCommand};
use editor::vim::{BufferView, line_extent};
use eframe::egui;
use std::ops::Range;
use text::text_edit::{TextEdit, apply_edits};

/// Maximum number of substitutions by one command.
const MAX_SUBSTITUTIONS: usize = 100_000;

/// Result of a substitution.
struct SubstituteResult {
    edits: Vec<TextEdit>,
    /// Start of the last line that changes.
    last: usize,
}

/// The change of a line.
enum LineEdit {
    Stays,
    Goes,
    Becomes(String),
}

impl AppWindow {
    /// Opens the command line: the palette, which also accepts Vim command lines.
    pub(super) fn vim_line(&mut self, ctx: &egui::Context, visual: bool) {
        let begin = if visual { "'<,'>" } else { "" };
        if let Some(line) = self.input.next_macro_line() {
            self.run_line(ctx, &format!("{begin}{line}"));
            return;
        }
        self.overlay = WindowOverlay::Palette(CommandPalette::lines(&self.input.recent, begin, &self.input.shortcuts));
    }

    /// Searches with the find bar, or for the pattern from a running macro.
    pub(super) fn vim_find(&mut self, ctx: &egui::Context, back: bool) {
        match self.input.next_macro_line() {
            Some(words) => {
                self.input.vim.vim.failed |=
                    !self.input.find_pattern(&self.host, &mut self.panes, &mut self.notices, words, back)
            }
            None => self.open_seeking(ctx, back),
        }
    }

    /// Runs a Vim command line.
    pub(crate) fn run_line(&mut self, ctx: &egui::Context, line: &str) {
        let Some(read) = ex::read(line) else { return };
        line.clone_into(&mut self.input.vim.line);
        match read {
            Err(why) => self.notices.toasts.show_message(why.to_string()),
            Ok(ExCommand::Run(ids)) => {
                for what in ids.iter().filter_map(|id| commands::window_command(*id)) {
                    self.run_command(ctx, what);
                }
            }
            Ok(ExCommand::Line(place)) => {
                let deeds = self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, caret| {
                    let at = line_of(place, ground, caret.at, &|mark| vim.places.get(mark));
                    vim.extend_selection_to(ground, at.map_or(caret.at, |line| ground.indent(line)))
                });
                self.apply_vim_actions(ctx, deeds);
            }
            Ok(ExCommand::Unmark) => self.panes.unmark_found(&self.host, &mut self.input),
            Ok(ExCommand::Substitute(wish)) => self.substitute(ctx, wish),
            Ok(ExCommand::Delete(lines)) => self.in_lines(ctx, lines, |_, _| LineEdit::Goes),
            Ok(ExCommand::Global(wish)) => self.global(ctx, wish),
        }
    }

    /// Performs a command on all lines that match.
    fn global(&mut self, ctx: &egui::Context, mut wish: GlobalCommand) {
        wish.pattern = wish.pattern.or_else(|| self.input.last_search_pattern());
        let Some(pattern) = wish.pattern.clone() else {
            self.notices.toasts.show_message("No search pattern yet. Search with / first.");
            return;
        };
        let regex = match ex::regex(&pattern, true) {
            Ok(regex) => regex,
            Err(why) => return self.notices.toasts.show_message(why.to_string()),
        };
        let with = |then: &SubstituteCommand, ground: &BufferView<'_>, line: &Range<usize>| {
            let pattern = then.pattern.as_ref().unwrap_or(&pattern);
            let found = all(then, pattern, ground, line.clone()).ok().filter(|found| !found.edits.is_empty())?;
            let edits = found.edits.into_iter().map(|edit| TextEdit { at: edit.at - line.start, ..edit });
            Some(apply_edits(&ground.text[line.clone()], &edits.collect::<Vec<TextEdit>>()))
        };
        let meant =
            |ground: &BufferView<'_>, line: &Range<usize>| regex.is_match(&ground.text[line.clone()]) != wish.not;
        self.in_lines(ctx, wish.lines, |ground, line| match &wish.then {
            _ if !meant(ground, line) => LineEdit::Stays,
            None => LineEdit::Goes,
            Some(then) => with(then, ground, line).map_or(LineEdit::Stays, LineEdit::Becomes),
        });
        self.input.remember_search(pattern, true);
    }

    /// Replaces or deletes lines. The caret moves to the last one.
    fn in_lines(
        &mut self,
        ctx: &egui::Context,
        (from, to): (LineAddress, LineAddress),
        what: impl Fn(&BufferView<'_>, &Range<usize>) -> LineEdit,
    ) {
        let mut edits: Option<Vec<TextEdit>> = None;
        self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, caret| {
            let line = |place: LineAddress| line_of(place, ground, caret.at, &|mark| vim.places.get(mark));
            let Some((from, to)) = line(from).zip(line(to)) else { return Vec::new() };
            let (mut found, mut at): (Vec<TextEdit>, _) = (Vec::new(), Some(from.min(to)));
            // Adjacent lines are deleted together.
            let mut going: Option<Range<usize>> = None;
            let goes = |going: Option<Range<usize>>, found: &mut Vec<TextEdit>| {
                let gone = going.map(|lines| line_extent(&lines, ground).0);
                found.extend(gone.map(|gone| TextEdit { at: gone.start, delete: gone.len(), insert: String::new() }));
            };
            while let Some(start) = at.filter(|start| *start <= from.max(to) && found.len() < MAX_SUBSTITUTIONS) {
                let line = ground.line(start);
                match what(ground, &line) {
                    LineEdit::Goes => going = Some(going.map_or(line.start, |lines| lines.start)..line.end),
                    other => {
                        goes(going.take(), &mut found);
                        if let LineEdit::Becomes(insert) = other {
                            found.push(TextEdit { at: line.start, delete: line.len(), insert });
                        }
                    }
                }
                at = ground.next_line(start, true).filter(|next| *next > start);
            }
            goes(going, &mut found);
            edits = Some(found);
            Vec::new()
        });
        let Some(edits) = edits else { return self.notices.toasts.show_message("The note has no such line.") };
        let Some(last) = edits.last() else { return self.notices.toasts.show_message("The command matches no line.") };
        let before = edits[..edits.len() - 1].iter();
        let (come, gone) =
            before.fold((0, 0), |(come, gone), splice| (come + splice.insert.len(), gone + splice.delete));
        let (at, count) = (last.at + come - gone, edits.len());
        let edit = |TextEdit { at, delete, insert }| NoteEdit { at, delete, insert, caret: at, anchor: at };
        let edits = self.panes.with_line_ends(&self.host, ctx, edits.into_iter().map(edit).collect());
        self.panes.apply_edits(&mut self.host, &mut self.notices, edits);
        self.panes.active.editor.more.clear();
        self.panes.active.editor.place_caret(at);
        let deeds = self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, caret| {
            let at = caret.at.min(ground.text.len());
            vim.extend_selection_to(ground, ground.indent(ground.line(at).start))
        });
        self.apply_vim_actions(ctx, deeds);
        if count > 1 {
            self.notices.toasts.show_message(format!("{count} places have changed."));
        }
    }

    fn substitute(&mut self, ctx: &egui::Context, mut wish: SubstituteCommand) {
        wish.pattern = wish.pattern.or_else(|| self.input.last_search_pattern());
        let Some(pattern) = wish.pattern.clone() else {
            self.notices.toasts.show_message("No search pattern yet. Search with / first.");
            return;
        };
        let mut found = None;
        self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, caret| {
            let line = |place: LineAddress| line_of(place, ground, caret.at, &|mark| vim.places.get(mark));
            if let (Some(from), Some(to)) = (line(wish.lines.0), line(wish.lines.1)) {
                let range = from.min(to)..ground.line(from.max(to)).end;
                found = Some(all(&wish, &pattern, ground, range));
            }
            Vec::new()
        });
        let Some(Ok(SubstituteResult { edits, last })) = found else {
            self.notices.toasts.show_message("The note has no such line.");
            return;
        };
        let count = edits.len();
        if count == 0 {
            self.notices.toasts.show_message(format!("No match: {pattern}"));
            return;
        }
        self.input.remember_search(pattern, wish.case);
        // The caret moves to the last changed line.
        let before = edits.iter().filter(|splice| splice.at < last);
        let (come, gone) =
            before.fold((0, 0), |(come, gone), splice| (come + splice.insert.len(), gone + splice.delete));
        let at = last + come - gone;
        let edit = |splice: TextEdit| {
            let TextEdit { at: start, delete, insert } = splice;
            NoteEdit { at: start, delete, insert, caret: start, anchor: start }
        };
        let edits = self.panes.with_line_ends(&self.host, ctx, edits.into_iter().map(edit).collect());
        self.panes.apply_edits(&mut self.host, &mut self.notices, edits);
        self.panes.active.editor.more.clear();
        self.panes.active.editor.place_caret(at);
        let deeds = self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, caret| {
            vim.extend_selection_to(ground, ground.indent(caret.at))
        });
        self.apply_vim_actions(ctx, deeds);
        if count > 1 {
            self.notices.toasts.show_message(format!("Replaced {count} matches."));
        }
    }
}

/// Returns the first byte of an addressed line, or `None` if its mark isn't set.
fn line_of(
    place: LineAddress,
    ground: &BufferView<'_>,
    at: usize,
    mark: &dyn Fn(char) -> Option<usize>,
) -> Option<usize> {
    let step = |from: usize, by: isize| {
        let steps = (0..by.unsigned_abs()).try_fold(from, |at, _| ground.next_line(at, by > 0));
        steps.unwrap_or(from)
    };
    Some(match place {
        LineAddress::Number(number) => ground.line_by_number(number.max(1)),
        LineAddress::Here(by) => ground.line(step(at, by)).start,
        LineAddress::Last(by) => ground.line(step(ground.last_line(), by)).start,
        LineAddress::Mark(name) => ground.line(motion::floor_grapheme(ground.text, mark(name)?)).start,
    })
}

/// Returns the substitutions in a range of lines.
fn all(
    wish: &SubstituteCommand,
    pattern: &str,
    ground: &BufferView<'_>,
    range: Range<usize>,
) -> anyhow::Result<SubstituteResult> {
    let regex = wish.regex(pattern)?;
    let text = &ground.text[range.clone()];
    let (mut edits, mut last) = (Vec::new(), usize::MAX);
    for found in regex.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        let line = range.start + motion::line_around(text, whole.start()).start;
        // Only the first match in a line, unless all are requested.
        if !wish.all && line == last {
            continue;
        }
        last = line;
        edits.push(TextEdit { at: range.start + whole.start(), delete: whole.len(), insert: wish.put(&found) });
        if edits.len() == MAX_SUBSTITUTIONS {
            break;
        }
    }
    Ok(SubstituteResult { edits, last })
}
