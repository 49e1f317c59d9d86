//! What is typed behind Vim's colon and slash, done in the note.

use super::super::palette::Palette;
use super::super::{Overlay, Window, commands};
use editor::motion;
use editor::note_editor::Edit;
use editor::vim::Ground;
use editor::vim::ex::{self, Ex, Global, Place, Substitute};
use editor::vim::extent;
use eframe::egui;
use std::ops::Range;
use text::splice::{Splice, perform};

/// Words are put in place of others at most so often at once.
const MOST: usize = 100_000;

/// What a substitution comes to.
struct Found {
    edits: Vec<Splice>,
    /// The last line that changes.
    last: usize,
}

/// What becomes of a line.
enum Line {
    Stays,
    Goes,
    Becomes(String),
}

impl Window {
    /// Opens the line behind a colon: the palette, which knows such lines too.
    pub(super) fn vim_line(&mut self, ctx: &egui::Context, visual: bool) {
        let begin = if visual { "'<,'>" } else { "" };
        if let Some(line) = self.played_line() {
            self.run_line(ctx, &format!("{begin}{line}"));
            return;
        }
        self.overlay = Overlay::Palette(Palette::lines(&self.recent, begin));
    }

    /// Looks for something, by the bar, or by what is played.
    pub(super) fn vim_find(&mut self, ctx: &egui::Context, back: bool) {
        match self.played_line() {
            Some(words) => self.modal.vim.failed |= !self.seek(words, back),
            None => self.open_seeking(ctx, back),
        }
    }

    /// Does what a line says that was typed behind a colon.
    pub(crate) fn run_line(&mut self, ctx: &egui::Context, line: &str) {
        let Some(read) = ex::read(line) else { return };
        line.clone_into(&mut self.modal.line);
        match read {
            Err(why) => self.toasts.say(why),
            Ok(Ex::Run(ids)) => {
                for what in ids.iter().filter_map(|id| commands::what(id)) {
                    self.run(ctx, what);
                }
            }
            Ok(Ex::Line(place)) => {
                let deeds = self.vim_asked(ctx, |vim, ground, caret| {
                    let at = line_of(place, ground, caret.at, &|mark| vim.places.get(mark));
                    vim.led(ground, at.map_or(caret.at, |line| ground.indent(line)))
                });
                self.vim_deeds(ctx, deeds);
            }
            Ok(Ex::Unmark) => self.unmark_found(),
            Ok(Ex::Substitute(wish)) => self.substitute(ctx, wish),
            Ok(Ex::Delete(lines)) => self.in_lines(ctx, lines, |_, _| Line::Goes),
            Ok(Ex::Global(wish)) => self.global(ctx, wish),
        }
    }

    /// Does what is said in the lines that hold something.
    fn global(&mut self, ctx: &egui::Context, mut wish: Global) {
        wish.pattern = wish.pattern.or_else(|| self.sought_pattern());
        let Some(pattern) = wish.pattern.clone() else {
            self.toasts.say("Nothing was looked for yet.");
            return;
        };
        let regex = match ex::regex(&pattern, true) {
            Ok(regex) => regex,
            Err(why) => return self.toasts.say(why),
        };
        let with = |then: &Substitute, ground: &Ground<'_>, line: &Range<usize>| {
            let pattern = then.pattern.as_ref().unwrap_or(&pattern);
            let found = all(then, pattern, ground, line.clone()).ok().filter(|found| !found.edits.is_empty())?;
            let edits = found.edits.into_iter().map(|edit| Splice { at: edit.at - line.start, ..edit });
            Some(perform(&ground.text[line.clone()], &edits.collect::<Vec<Splice>>()))
        };
        let meant = |ground: &Ground<'_>, line: &Range<usize>| regex.is_match(&ground.text[line.clone()]) != wish.not;
        self.in_lines(ctx, wish.lines, |ground, line| match &wish.then {
            _ if !meant(ground, line) => Line::Stays,
            None => Line::Goes,
            Some(then) => with(then, ground, line).map_or(Line::Stays, Line::Becomes),
        });
        self.remember_sought(pattern, true);
    }

    /// Writes lines anew, or takes them away. The caret goes to the last one.
    fn in_lines(
        &mut self,
        ctx: &egui::Context,
        (from, to): (Place, Place),
        what: impl Fn(&Ground<'_>, &Range<usize>) -> Line,
    ) {
        let mut edits: Option<Vec<Splice>> = None;
        self.vim_asked(ctx, |vim, ground, caret| {
            let line = |place: Place| line_of(place, ground, caret.at, &|mark| vim.places.get(mark));
            let Some((from, to)) = line(from).zip(line(to)) else { return Vec::new() };
            let (mut found, mut at): (Vec<Splice>, _) = (Vec::new(), Some(from.min(to)));
            // Neighbours go together.
            let mut going: Option<Range<usize>> = None;
            let goes = |going: Option<Range<usize>>, found: &mut Vec<Splice>| {
                let gone = going.map(|lines| extent(&lines, ground).0);
                found.extend(gone.map(|gone| Splice { at: gone.start, delete: gone.len(), insert: String::new() }));
            };
            while let Some(start) = at.filter(|start| *start <= from.max(to) && found.len() < MOST) {
                let line = ground.line(start);
                match what(ground, &line) {
                    Line::Goes => going = Some(going.map_or(line.start, |lines| lines.start)..line.end),
                    other => {
                        goes(going.take(), &mut found);
                        if let Line::Becomes(insert) = other {
                            found.push(Splice { at: line.start, delete: line.len(), insert });
                        }
                    }
                }
                at = ground.step(start, true).filter(|next| *next > start);
            }
            goes(going, &mut found);
            edits = Some(found);
            Vec::new()
        });
        let Some(edits) = edits else { return self.toasts.say("There is no such line.") };
        let Some(last) = edits.last() else { return self.toasts.say("No line is meant.") };
        let before = edits[..edits.len() - 1].iter();
        let (come, gone) =
            before.fold((0, 0), |(come, gone), splice| (come + splice.insert.len(), gone + splice.delete));
        let (at, count) = (last.at + come - gone, edits.len());
        let edit = |Splice { at, delete, insert }| Edit { at, delete, insert, caret: at, anchor: at };
        let edits = self.with_line_ends(ctx, edits.into_iter().map(edit).collect());
        self.edit(edits);
        self.here.editor.more.clear();
        self.here.editor.place(at);
        let deeds = self.vim_asked(ctx, |vim, ground, caret| {
            let at = caret.at.min(ground.text.len());
            vim.led(ground, ground.indent(ground.line(at).start))
        });
        self.vim_deeds(ctx, deeds);
        if count > 1 {
            self.toasts.say(format!("{count} places have changed."));
        }
    }

    fn substitute(&mut self, ctx: &egui::Context, mut wish: Substitute) {
        wish.pattern = wish.pattern.or_else(|| self.sought_pattern());
        let Some(pattern) = wish.pattern.clone() else {
            self.toasts.say("Nothing was looked for yet.");
            return;
        };
        let mut found = None;
        self.vim_asked(ctx, |vim, ground, caret| {
            let line = |place: Place| line_of(place, ground, caret.at, &|mark| vim.places.get(mark));
            if let (Some(from), Some(to)) = (line(wish.lines.0), line(wish.lines.1)) {
                let range = from.min(to)..ground.line(from.max(to)).end;
                found = Some(all(&wish, &pattern, ground, range));
            }
            Vec::new()
        });
        let Some(Ok(Found { edits, last })) = found else {
            self.toasts.say("There is no such line.");
            return;
        };
        let count = edits.len();
        if count == 0 {
            self.toasts.say(format!("No match: {pattern}"));
            return;
        }
        self.remember_sought(pattern, wish.case);
        // The caret goes to the last line that has changed.
        let before = edits.iter().filter(|splice| splice.at < last);
        let (come, gone) =
            before.fold((0, 0), |(come, gone), splice| (come + splice.insert.len(), gone + splice.delete));
        let at = last + come - gone;
        let edit = |splice: Splice| {
            let Splice { at: start, delete, insert } = splice;
            Edit { at: start, delete, insert, caret: start, anchor: start }
        };
        let edits = self.with_line_ends(ctx, edits.into_iter().map(edit).collect());
        self.edit(edits);
        self.here.editor.more.clear();
        self.here.editor.place(at);
        let deeds = self.vim_asked(ctx, |vim, ground, caret| vim.led(ground, ground.indent(caret.at)));
        self.vim_deeds(ctx, deeds);
        if count > 1 {
            self.toasts.say(format!("Replaced {count} matches."));
        }
    }
}

/// The first byte of a line of the note.
fn line_of(place: Place, ground: &Ground<'_>, at: usize, mark: &dyn Fn(char) -> Option<usize>) -> Option<usize> {
    let step = |from: usize, by: isize| {
        let steps = (0..by.unsigned_abs()).try_fold(from, |at, _| ground.step(at, by > 0));
        steps.unwrap_or(from)
    };
    Some(match place {
        Place::Number(number) => ground.numbered(number.max(1)),
        Place::Here(by) => ground.line(step(at, by)).start,
        Place::Last(by) => ground.line(step(ground.last(), by)).start,
        Place::Mark(name) => ground.line(motion::floor(ground.text, mark(name)?)).start,
    })
}

/// What comes in place of what, in a range of lines.
fn all(wish: &Substitute, pattern: &str, ground: &Ground<'_>, range: Range<usize>) -> Result<Found, String> {
    let regex = wish.regex(pattern)?;
    let text = &ground.text[range.clone()];
    let (mut edits, mut last) = (Vec::new(), usize::MAX);
    for found in regex.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        let line = range.start + motion::line_around(text, whole.start()).start;
        // Only the first place of a line is meant, unless all are.
        if !wish.all && line == last {
            continue;
        }
        last = line;
        edits.push(Splice { at: range.start + whole.start(), delete: whole.len(), insert: wish.put(&found) });
        if edits.len() == MOST {
            break;
        }
    }
    Ok(Found { edits, last })
}
