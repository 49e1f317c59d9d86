//! Keys that mean more in a note than in a text field: those at the edges of a row, and those that write Markdown.
//! Each key becomes at most one edit or one step of the caret.

use super::editor::{Caret, Edit, Editor, Target, World, byte_of, job_of, place_of, target_of};
use super::rows::Kind;
use super::sheet::Spot;
use super::source;
use eframe::egui;
use egui::{Key, Modifiers, vec2};

/// What a key came to.
#[derive(Debug, PartialEq)]
pub(super) enum Done {
    /// The text field shall have it.
    Not,
    /// It moved the caret, or is swallowed.
    Moved,
    /// It edits.
    Edit(Edit),
    /// The caret goes a screen up (-1) or down (1).
    Page(f32),
}

/// The plain state of the caret inside its target.
struct At {
    /// Bytes of `shown`, in order.
    from: usize,
    to: usize,
}

impl Editor {
    /// Answers a key.
    pub(super) fn key(&mut self, key: Key, modifiers: Modifiers, world: &mut World<'_>) -> Done {
        let Some(Caret { at, anchor }) = self.caret else { return Done::Not };
        if self.all {
            return self.key_on_all(key, modifiers, world);
        }
        let Some(target) = self.target(world) else { return Done::Not };
        let (a, b) = (target.shown_byte(at), target.shown_byte(anchor));
        let here = At { from: a.min(b), to: a.max(b) };
        let plain = modifiers.is_none();
        let word = modifiers.matches_exact(Modifiers::COMMAND);
        if !matches!(key, Key::ArrowUp | Key::ArrowDown | Key::PageUp | Key::PageDown) {
            self.goal = None;
        }
        match key {
            Key::Escape if plain => {
                self.leave();
                Done::Moved
            }
            Key::A if word => {
                self.all = true;
                Done::Moved
            }
            Key::Home if word => self.step_to(0),
            Key::End if word => {
                let end = world.sheet.bytes();
                self.step_to(end)
            }
            Key::ArrowUp if plain && self.on_edge(true) => self.up(&target, world),
            Key::ArrowDown if plain && self.on_edge(false) => self.down(&target, world),
            Key::ArrowLeft if (plain || word) && here.to == 0 => self.left(&target, world),
            Key::ArrowRight if (plain || word) && here.from == target.shown.len() => self.right(&target, world),
            Key::PageUp if plain => Done::Page(-1.0),
            Key::PageDown if plain => Done::Page(1.0),
            Key::Backspace if (plain || word) && here.from == here.to => self.backspace(&target, here.from, world),
            Key::Delete if (plain || word) && here.from == here.to && here.to == target.shown.len() => {
                self.delete(&target, world)
            }
            Key::Enter if plain => Done::Edit(enter(&target, &here, world)),
            Key::Enter if modifiers.shift_only() && !target.kind.is_mono() => {
                Done::Edit(target.replace(here.from..here.to, "\\\n", 2))
            }
            Key::Tab if plain || modifiers.shift_only() => tab(&target, &here, modifiers.shift, world),
            _ => Done::Not,
        }
    }

    fn key_on_all(&mut self, key: Key, modifiers: Modifiers, world: &World<'_>) -> Done {
        match key {
            Key::Backspace | Key::Delete | Key::Enter => {
                let insert = if key == Key::Enter { "\n" } else { "" };
                Done::Edit(replace_all(world.sheet.bytes(), insert))
            }
            Key::ArrowLeft | Key::ArrowUp | Key::Home => self.step_to(0),
            Key::ArrowRight | Key::ArrowDown | Key::End => {
                let end = world.sheet.bytes();
                self.step_to(end)
            }
            Key::A if modifiers.command => Done::Moved,
            _ => {
                self.all = false;
                Done::Not
            }
        }
    }

    fn step_to(&mut self, at: usize) -> Done {
        self.place(at);
        Done::Moved
    }

    /// Whether the caret is in the first (or last) line of its row.
    fn on_edge(&self, top: bool) -> bool {
        let Some(last) = &self.last else { return true };
        let row = last.galley.layout_from_cursor(last.cursor.primary).row;
        if top { row == 0 } else { row + 1 >= last.galley.rows.len() }
    }

    /// Where the caret stands, from the column's left.
    fn column(&mut self) -> f32 {
        let now =
            self.last.as_ref().map_or(0.0, |last| last.x + last.galley.pos_from_cursor(last.cursor.primary).center().x);
        *self.goal.get_or_insert(now)
    }

    fn up(&mut self, target: &Target, world: &mut World<'_>) -> Done {
        let before = match target.spot {
            Some(spot) => world.before(spot),
            None => last_row(world),
        };
        match before {
            Some(spot) => self.enter_row(spot, f32::INFINITY, world),
            None => Done::Not,
        }
    }

    fn down(&mut self, target: &Target, world: &mut World<'_>) -> Done {
        let Some(spot) = target.spot else { return Done::Not };
        match world.after(spot) {
            Some(spot) => self.enter_row(spot, 0.0, world),
            None if target.kind == Kind::Blank => Done::Not,
            None => {
                let goal = self.column();
                self.place_behind(world.sheet.bytes());
                self.goal = Some(goal);
                Done::Moved
            }
        }
    }

    /// Puts the caret into a row, in the column that it came from, at a height of the row's text.
    pub(super) fn enter_row(&mut self, spot: Spot, y: f32, world: &mut World<'_>) -> Done {
        let x = self.column();
        let Some(target) = target_of(spot, false, false, world) else { return Done::Not };
        let (left, width) = place_of(&target, world.width, world.margin, world.pen);
        let galley = world.pen.galley(job_of(&target, &target.shown, width, world.pen));
        let last = galley.rows.last().map_or(0.0, |row| row.rect().center().y);
        let first = galley.rows.first().map_or(0.0, |row| row.rect().center().y);
        let cursor = galley.cursor_from_pos(vec2(x - left, y.clamp(first.min(last), last)));
        let at = target.note_byte(byte_of(&target.shown, cursor.index.0));
        self.place(at);
        self.goal = Some(x);
        Done::Moved
    }

    fn left(&mut self, target: &Target, world: &mut World<'_>) -> Done {
        if target.code_only {
            return self.enter_fence(target, target.range.start.saturating_sub(1), world);
        }
        let before = match target.spot {
            Some(spot) => world.before(spot),
            None => last_row(world),
        };
        let Some(before) = before.and_then(|spot| target_of(spot, false, false, world)) else { return Done::Moved };
        self.step_to(before.range.end)
    }

    fn right(&mut self, target: &Target, world: &mut World<'_>) -> Done {
        let Some(spot) = target.spot else { return Done::Moved };
        match world.after(spot).and_then(|spot| target_of(spot, false, false, world)) {
            Some(after) => self.step_to(after.range.start),
            None => Done::Not,
        }
    }

    /// From the code of a fenced row to the fences around it.
    fn enter_fence(&mut self, target: &Target, at: usize, world: &World<'_>) -> Done {
        let Some(spot) = target.spot else { return Done::Moved };
        self.place(at);
        self.fence = Some((world.sheet.piece(spot.block).id, spot.row));
        Done::Moved
    }

    fn backspace(&mut self, target: &Target, here: usize, world: &mut World<'_>) -> Done {
        let lead = source::lead(&target.shown, target.kind).len();
        if let Kind::Item { tail: false, .. } = target.kind
            && here == lead
            && here > 0
        {
            return unmark(target, lead, world);
        }
        if here > 0 {
            return Done::Not;
        }
        if target.code_only {
            return self.enter_fence(target, target.range.start.saturating_sub(1), world);
        }
        let Some(spot) = target.spot else {
            let end = last_row(world).and_then(|spot| target_of(spot, false, false, world));
            return self.step_to(end.map_or(0, |end| end.range.end));
        };
        let Some(before) = world.before(spot) else { return Done::Moved };
        let Some(row) = world.rows(before.block).get(before.row).cloned() else { return Done::Moved };
        let end = world.sheet.start(before.block) + row.content.end;
        let joins = !row.kind.is_mono() && row.kind != Kind::Rule;
        if joins || target.shown.is_empty() {
            let delete = target.range.start + lead - end;
            let caret = if joins { end } else { target_of(before, false, false, world).map_or(end, |t| t.range.end) };
            return Done::Edit(Edit { at: end, delete, insert: String::new(), caret, anchor: caret });
        }
        let end = target_of(before, false, false, world).map_or(end, |target| target.range.end);
        self.step_to(end)
    }

    fn delete(&mut self, target: &Target, world: &mut World<'_>) -> Done {
        let Some(spot) = target.spot.filter(|_| !target.code_only) else { return Done::Moved };
        let Some(after) = world.after(spot) else { return Done::Moved };
        let Some(row) = world.rows(after.block).get(after.row).cloned() else { return Done::Moved };
        let start = world.sheet.start(after.block) + row.content.start;
        if row.kind.is_mono() || row.kind == Kind::Rule {
            if !target.shown.is_empty() {
                return Done::Moved;
            }
            let (at, delete) = (target.range.start, start - target.range.start);
            return Done::Edit(Edit { at, delete, insert: String::new(), caret: at, anchor: at });
        }
        let text = world.texts.get(after.block).map_or("", |block| &block.text[row.content.clone()]);
        let start = if target.shown.is_empty() { start } else { start + source::lead(text, row.kind).len() };
        let at = target.range.end;
        Done::Edit(Edit { at, delete: start - at, insert: String::new(), caret: at, anchor: at })
    }
}

/// The edit that puts `insert` in place of everything.
pub(super) fn replace_all(bytes: usize, insert: &str) -> Edit {
    let caret = insert.len();
    Edit { at: 0, delete: bytes, insert: insert.to_owned(), caret, anchor: caret }
}

fn last_row(world: &mut World<'_>) -> Option<Spot> {
    let block = world.sheet.len().checked_sub(1)?;
    let rows = world.rows(block).len();
    Some(Spot { block, row: rows.checked_sub(1)? })
}

/// Takes an item's mark away: it stands less far in, or becomes a paragraph.
fn unmark(target: &Target, lead: usize, world: &mut World<'_>) -> Done {
    let spaces = target.shown.len() - target.shown.trim_start_matches(' ').len();
    if spaces > 0 {
        return Done::Edit(shift_item(target, lead, true, world));
    }
    let before = target.spot.and_then(|spot| world.before(spot));
    let item_before = before
        .and_then(|spot| world.sheet.row(spot))
        .is_some_and(|row| matches!(row.kind, Kind::Item { .. } | Kind::Paragraph));
    let spaced = target.spot.and_then(|spot| world.sheet.row(spot)).is_some_and(|row| row.spaced);
    let insert = if item_before && !spaced { "\n" } else { "" };
    Done::Edit(target.replace(0..lead, insert, insert.len()))
}

/// What Enter writes: the next line of whatever the caret is in.
fn enter(target: &Target, here: &At, world: &mut World<'_>) -> Edit {
    let text = &target.shown;
    let range = here.from..here.to;
    let line_start = text[..here.from].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[line_start..];
    let line = &line[..line.find('\n').unwrap_or(line.len())];
    let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    let indent = &indent[..indent.len().min(here.from - line_start)];
    let with = |insert: &str| target.replace(range.clone(), insert, insert.len());
    match target.kind {
        Kind::Fence { closed: false } if !text.contains('\n') && here.from == text.len() => {
            let fence: String = text.trim_start().chars().take_while(|c| matches!(c, '`' | '~')).collect();
            target.replace(range, &format!("\n\n{fence}"), 1)
        }
        Kind::Cell | Kind::Fence { .. } => {
            let opens = target.kind == Kind::Cell && text[line_start..here.from].trim_end().ends_with(':');
            with(&format!("\n{indent}{}", if opens { "    " } else { "" }))
        }
        Kind::Table | Kind::Html | Kind::Meta | Kind::Definition => with("\n"),
        Kind::Indented | Kind::Footnote => with(&format!("\n{indent}")),
        Kind::Quote => {
            let mark = source::lead(line, Kind::Quote);
            if mark.len() == line.len() && here.from == text.len() {
                let from = line_start.saturating_sub(1);
                return target.replace(from..here.to, "\n\n", 2);
            }
            with(&format!("\n{mark}"))
        }
        Kind::Item { tail: false, .. } => enter_item(target, here, world),
        Kind::Item { tail: true, .. } => with(&format!("\n{indent}")),
        Kind::Blank => with("\n"),
        Kind::Paragraph | Kind::Heading(_) | Kind::Rule => {
            if target.spot.is_none() {
                return with("\n");
            }
            let spaces = text[here.to..].len() - text[here.to..].trim_start_matches(' ').len();
            let rest_empty = spaces == text.len() - here.to;
            let to = if rest_empty { here.to } else { here.to + spaces };
            target.replace(here.from..to, "\n\n", 2)
        }
    }
}

/// Enter in a list: the next item; in an empty one the list ends.
fn enter_item(target: &Target, here: &At, world: &mut World<'_>) -> Edit {
    let text = &target.shown;
    let lead = source::lead(text, target.kind);
    if text.trim_end().len() <= lead.trim_end().len() {
        let before = target.spot.and_then(|spot| world.before(spot)).and_then(|spot| world.sheet.row(spot).cloned());
        let after_item = before.is_some_and(|row| matches!(row.kind, Kind::Item { .. }));
        let spaced = target.spot.and_then(|spot| world.sheet.row(spot)).is_some_and(|row| row.spaced);
        let insert = if after_item && !spaced { "\n" } else { "" };
        return target.replace(0..text.len(), insert, insert.len());
    }
    let at = here.from.max(lead.len().min(text.len()));
    let spaces = &lead[..lead.len() - lead.trim_start().len()];
    let mark = lead.trim_start();
    let digits = mark.bytes().take_while(u8::is_ascii_digit).count();
    let mut next = if digits > 0 {
        let number = mark[..digits].parse::<u64>().unwrap_or(0).saturating_add(1);
        format!("{number}{}", &mark[digits..])
    } else {
        mark.to_owned()
    };
    for done in ["[x] ", "[X] "] {
        next = next.replace(done, "[ ] ");
    }
    let insert = format!("\n{spaces}{next}");
    target.replace(at..here.to.max(at), &insert, insert.len())
}

fn tab(target: &Target, here: &At, back: bool, world: &mut World<'_>) -> Done {
    match target.kind {
        Kind::Item { tail: false, .. } => Done::Edit(shift_item(target, here.to, back, world)),
        Kind::Cell | Kind::Fence { .. } => {
            let text = &target.shown;
            let first = text[..here.from].rfind('\n').map_or(0, |newline| newline + 1);
            let several = text[here.from..here.to].contains('\n');
            if !back && !several {
                let column = text[first..here.from].chars().count();
                let spaces = " ".repeat(4 - column % 4);
                return Done::Edit(target.replace(here.from..here.to, &spaces, spaces.len()));
            }
            let last = text[here.to..].find('\n').map_or(text.len(), |newline| here.to + newline);
            let (moved, caret) = shift_lines(&text[first..last], if back { -4 } else { 4 }, here.to - first);
            let mut edit = target.replace(first..last, &moved, caret.min(moved.len()));
            if several {
                edit.anchor = edit.at;
            }
            Done::Edit(edit)
        }
        _ => Done::Not,
    }
}

/// Moves an item and the items inside it in or out by the width of its mark.
fn shift_item(target: &Target, here: usize, back: bool, world: &mut World<'_>) -> Edit {
    let lead = source::lead(&target.shown, target.kind);
    let mark = lead.trim_start();
    let width = mark.bytes().take_while(|byte| *byte != b' ').count() + 1;
    let mut end = target.range.end;
    if let (Some(mut spot), Kind::Item { depth, .. }) = (target.spot, target.kind) {
        while let Some(after) = world.after(spot) {
            let Some(row) = world.rows(after.block).get(after.row).cloned() else { break };
            if !matches!(row.kind, Kind::Item { depth: inner, .. } if inner > depth) {
                break;
            }
            end = world.sheet.start(after.block) + row.content.end;
            spot = after;
        }
    }
    let text = world.note.slice(target.range.start, end - target.range.start).unwrap_or_default();
    let by = isize::try_from(width).unwrap_or(2);
    let (moved, caret) = shift_lines(&text, if back { -by } else { by }, target.note_byte(here) - target.range.start);
    let caret = target.range.start + caret;
    Edit { at: target.range.start, delete: text.len(), insert: moved, caret, anchor: caret }
}

/// Lines moved in or out, and where a byte of them stands then; empty lines stay empty.
fn shift_lines(text: &str, by: isize, caret: usize) -> (String, usize) {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut at, mut place) = (0, caret);
    for line in text.split_inclusive('\n') {
        let spaces = line.bytes().take_while(|byte| *byte == b' ').count();
        let (added, removed) = match by {
            1.. if !line.trim().is_empty() => (by.unsigned_abs(), 0),
            ..=-1 => (0, spaces.min(by.unsigned_abs())),
            _ => (0, 0),
        };
        if at <= caret {
            place = place + added - removed.min(caret - at);
        }
        out.push_str(&" ".repeat(added));
        out.push_str(&line[removed..]);
        at += line.len();
    }
    (out, place)
}

#[cfg(test)]
mod tests {
    use super::shift_lines;

    #[test]
    fn lines_move_together() {
        assert_eq!(shift_lines("a\n\n  b", 2, 1), ("  a\n\n    b".to_owned(), 3));
        assert_eq!(shift_lines("  a\n b\n\n", -2, 5), ("a\nb\n\n".to_owned(), 2));
        assert_eq!(shift_lines("  a", -2, 1), ("a".to_owned(), 0));
    }
}
