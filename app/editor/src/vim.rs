//! Vim key handling as a pure state machine. It gets a text and the possible caret positions, and answers each key with
//! actions; the window's `vim_adapter.rs` passes the keys and performs the actions. Where Vim shows an empty line
//! between paragraphs, Tracebook shows space: no caret can be there, and such a line is inserted and removed with the
//! lines that it separates.

mod block;
pub mod ex;
mod marks;
mod motions;
mod normal;
mod objects;
mod operators;
mod registers;
#[cfg(test)]
mod tests;
mod types;
mod visual;

use super::motion;
use engine::commands::CommandId;
pub use marks::VimMarks;
pub use motions::BufferView;
use motions::{CharSearch, MotionSpan, VimMotion};
pub use operators::line_extent;
use operators::{LetterCase, VimOperator};
use registers::VimRegisters;
pub use types::{VimAction, VimKey, VimMode, VimStroke};

/// Maximum value of a count.
const MAX_COUNT: usize = 100_000;
/// Maximum number of recorded keys for repeating.
const MAX_REPEAT_KEYS: usize = 10_000;

/// What the next key of a command with several keys means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingKey {
    /// The character to search for in the line.
    Hunt {
        back: bool,
        till: bool,
    },
    Replace,
    G,
    Z,
    /// The second key of `ZZ` or `ZQ`.
    End,
    Object {
        around: bool,
    },
    Register,
    Mark,
    /// The mark to go to; `line` goes to its line.
    Place {
        line: bool,
    },
    /// The register to record keys into (`Record`), or to play keys from (`Play`).
    Record,
    Play,
}

/// State of Vim mode: mode, pending keys, registers, marks.
#[derive(Debug, Default)]
pub struct VimMachine {
    mode: VimMode,
    count: Option<usize>,
    /// The operator that waits for a motion, and the count before it.
    operator: Option<(VimOperator, Option<usize>)>,
    waits: Option<PendingKey>,
    /// The column that vertical motions keep.
    column: Option<usize>,
    hunt: Option<CharSearch>,
    /// In visual modes: positions of the characters at both ends; `head` is the moving end.
    anchor: usize,
    head: usize,
    /// In block mode: whether the block extends to the end of each line, regardless of its length.
    to_end: bool,
    registers: VimRegisters,
    /// Marks, jumps and changes of the open note.
    pub places: VimMarks,
    /// The register into which keys are being recorded, and the keys so far.
    recording: Option<(char, Vec<VimStroke>)>,
    /// The register whose keys were played last.
    played: Option<char>,
    /// Whether the keys of a register are being played; they aren't recorded again.
    pub plays: bool,
    /// Whether the last key failed.
    pub failed: bool,
    /// Where the caret goes when typing into a block ends.
    block: Option<usize>,
    /// The pending command as shown in the status bar.
    typed: String,
    /// All keys of the pending command (`tape`), and of the last command that changed the text (`last`).
    tape: Vec<VimStroke>,
    last: Vec<VimStroke>,
    changes: bool,
    /// Whether keys are replayed, so that they aren't recorded again.
    pub replays: bool,
    /// Repeat count of the current insertion, and where it started on the tape.
    inserts: (usize, usize),
    /// The caret's last position; if it differs, something else moved it.
    placed: Option<(usize, usize)>,
}

impl VimMachine {
    /// Returns the current mode.
    pub fn mode(&self) -> VimMode {
        self.mode
    }

    /// Returns the text for the status bar: mode, pending command and recording.
    pub fn status_text(&self, caret: usize, anchor: usize) -> String {
        // A click may have ended a selection or begun one.
        let told = self.placed == Some((caret, anchor));
        let mode = match self.mode {
            VimMode::Normal if caret != anchor => "Visual",
            VimMode::Visual | VimMode::Lines if caret == anchor && !told => "Normal",
            VimMode::Normal => "Normal",
            VimMode::Insert => "Insert",
            VimMode::Replace => "Replace",
            VimMode::Visual => "Visual",
            VimMode::Lines => "Visual line",
            VimMode::Block => "Visual block",
        };
        let recording = self.recording.as_ref().map(|(name, _)| format!("Recording {name}"));
        let typed = Some(self.typed.clone()).filter(|typed| !typed.is_empty());
        [Some(mode.to_owned()), typed, recording].into_iter().flatten().collect::<Vec<String>>().join(" ")
    }

    /// Returns the character at the moving end of the selection; `None` outside visual modes.
    pub fn head(&self) -> Option<usize> {
        self.is_visual().then_some(self.head)
    }

    /// Records a key before it is handled, for macros and repetition.
    pub fn record(&mut self, input: VimStroke) {
        if let Some((_, keys)) = self.recording.as_mut().filter(|(_, keys)| keys.len() < MAX_REPEAT_KEYS && !self.plays)
            && !self.replays
        {
            keys.push(input.clone());
        }
        if self.tape.len() < MAX_REPEAT_KEYS && !self.replays {
            self.tape.push(input);
        }
    }

    /// Handles a key outside insert mode. `caret` and `anchor` are those of the editor.
    pub fn handle_key(
        &mut self,
        press: VimKey,
        ground: &BufferView<'_>,
        caret: usize,
        anchor: usize,
    ) -> Vec<VimAction> {
        let length = ground.text.len();
        let (caret, anchor) = (
            motion::floor_grapheme(ground.text, caret.min(length)),
            motion::floor_grapheme(ground.text, anchor.min(length)),
        );
        if self.placed != Some((caret, anchor)) && self.mode != VimMode::Insert {
            self.taken_over(ground, caret, anchor);
        }
        let at = if self.is_visual() { self.head.min(length) } else { caret };
        let at = motion::floor_grapheme(ground.text, at);
        self.anchor = motion::floor_grapheme(ground.text, self.anchor.min(length));
        self.failed = false;
        let visual = (self.mode, self.is_visual());
        let chosen = self.registers.chosen;
        let signed = |down: bool| if down { 1.0 } else { -1.0 };
        #[allow(clippy::cast_precision_loss, reason = "a count typed by the user")]
        let deeds = match press {
            VimKey::Letter(letter) => self.letter(letter, ground, at),
            VimKey::Escape => self.escape(ground, at),
            VimKey::Redo => self.counted(|times| vec![VimAction::Redo(times)]),
            VimKey::Half { down } => vec![VimAction::Page { pages: signed(down) / 2.0 }],
            VimKey::Page { down } => self.counted(|times| vec![VimAction::Page { pages: signed(down) * times as f32 }]),
            VimKey::Scroll { down } => {
                self.counted(|times| vec![VimAction::Scroll { lines: signed(down) * times as f32 }])
            }
            VimKey::Count { down } => self.count_up(down, ground, at),
            VimKey::Jump { back } => self.jump_in_list(back, ground, at),
            VimKey::Block => self.enter_visual(VimMode::Block, ground, at),
        };
        if visual.1 && !self.is_visual() {
            self.places.keep_selection(visual.0, self.anchor, self.head);
        }
        self.note_placed(&deeds);
        // A register is selected for one command only.
        if chosen.is_some() && self.count.is_none() && self.operator.is_none() && self.waits.is_none() {
            self.registers.chosen = None;
        }
        if !self.is_under_way() {
            self.typed.clear();
        } else if let VimKey::Letter(letter) = press {
            self.typed.push(letter);
        }
        if self.mode == VimMode::Normal && !self.is_under_way() && !self.replays {
            let tape = std::mem::take(&mut self.tape);
            if std::mem::take(&mut self.changes) {
                self.last = tape;
            }
        }
        deeds
    }

    /// Remembers where actions leave the caret.
    pub(crate) fn note_placed(&mut self, deeds: &[VimAction]) {
        for deed in deeds {
            self.placed = match deed {
                VimAction::Place { at, anchor } => Some((*at, *anchor)),
                VimAction::Replace { at, .. } | VimAction::Splices { at, .. } => Some((*at, *at)),
                VimAction::Carets(carets) => carets.first().map(|at| (*at, *at)),
                VimAction::Select(carets) => carets.first().copied(),
                VimAction::Copy(_) => self.placed,
                _ => None,
            };
        }
    }

    /// Moves the caret, or the end of a selection, to where an action that depends on the screen has placed it.
    pub fn extend_selection_to(&mut self, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        let at = motion::floor_grapheme(ground.text, at);
        let deeds = self.arrive(at, ground);
        self.note_placed(&deeds);
        deeds
    }

    /// Adapts the mode after something else moved the caret: a selection means visual mode.
    fn taken_over(&mut self, ground: &BufferView<'_>, caret: usize, anchor: usize) {
        if caret == anchor {
            if self.is_visual() {
                self.mode = VimMode::Normal;
            }
            self.column = None;
            return;
        }
        self.mode = VimMode::Visual;
        if caret > anchor {
            (self.head, self.anchor) = (motion::previous_grapheme(ground.text, caret), anchor);
        } else {
            (self.head, self.anchor) = (caret, motion::previous_grapheme(ground.text, anchor));
        }
    }

    /// Returns whether a command is partially typed.
    fn is_under_way(&self) -> bool {
        let begun = self.count.is_some() || self.operator.is_some() || self.waits.is_some();
        begun || self.registers.chosen.is_some()
    }

    fn is_visual(&self) -> bool {
        matches!(self.mode, VimMode::Visual | VimMode::Lines | VimMode::Block)
    }

    fn counted(&mut self, deed: impl FnOnce(usize) -> Vec<VimAction>) -> Vec<VimAction> {
        deed(self.count.take().unwrap_or(1))
    }

    /// Returns to normal mode without a pending command.
    fn rest(&mut self) {
        (self.count, self.operator, self.waits) = (None, None, None);
        self.registers.chosen = None;
        self.mode = VimMode::Normal;
    }

    fn escape(&mut self, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        let was = self.mode;
        let under_way = self.is_under_way();
        self.rest();
        if was.is_typing() {
            self.places.set('^', at);
            let block = self.block.take();
            let (times, from) = std::mem::take(&mut self.inserts);
            let keys: Vec<VimStroke> = self.tape.get(from..self.tape.len().saturating_sub(1)).unwrap_or(&[]).to_vec();
            if times > 1 && !keys.is_empty() {
                let keys =
                    std::iter::repeat_n(keys, times.min(MAX_COUNT) - 1).flatten().take(MAX_REPEAT_KEYS).collect();
                return vec![VimAction::Type(keys), VimAction::Left];
            }
            return vec![block.map_or(VimAction::Left, |at| VimAction::Place { at, anchor: at })];
        }
        let at = ground.on_letter(at);
        if was == VimMode::Normal && under_way { Vec::new() } else { vec![VimAction::Place { at, anchor: at }] }
    }

    fn insert(&mut self, times: usize) {
        self.mode = VimMode::Insert;
        self.block = None;
        self.changes = true;
        self.column = None;
        self.inserts = (times, self.tape.len());
    }

    fn letter(&mut self, letter: char, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        if let Some(waits) = self.waits.take() {
            return self.handle_pending_key(waits, letter, ground, at);
        }
        if letter.is_ascii_digit() && (letter != '0' || self.count.is_some()) {
            let digit = letter as usize - '0' as usize;
            self.count = Some((self.count.unwrap_or(0) * 10 + digit).min(MAX_COUNT));
            return Vec::new();
        }
        if let Some(motion) = simple(letter) {
            return self.go(motion, ground, at);
        }
        let pending = self.operator.is_some();
        match letter {
            'f' | 'F' | 't' | 'T' => {
                self.waits =
                    Some(PendingKey::Hunt { back: letter.is_uppercase(), till: letter.eq_ignore_ascii_case(&'t') });
                return Vec::new();
            }
            ';' | ',' => {
                let Some(hunt) = self.hunt else { return self.nothing() };
                let hunt = CharSearch { back: hunt.back != (letter == ','), again: true, ..hunt };
                return self.go(VimMotion::Letter(hunt), ground, at);
            }
            'g' | '\'' | '`' => {
                self.waits =
                    Some(if letter == 'g' { PendingKey::G } else { PendingKey::Place { line: letter == '\'' } });
                return Vec::new();
            }
            'z' | '"' | 'm' | 'q' | '@' | 'Z' if !pending => return self.opens(letter),
            'H' | 'M' | 'L' if !pending => {
                let further = self.count.take().unwrap_or(1) - 1;
                self.places.push_jump(at);
                let (part, further) = match letter {
                    'H' => (0.0, further),
                    'M' => (0.5, 0),
                    _ => (1.0, further),
                };
                return vec![VimAction::Screen { part, further }];
            }
            'n' | 'N' if !pending => {
                self.places.push_jump(at);
                return self.counted(|times| vec![VimAction::Match { back: letter == 'N', times }]);
            }
            '*' | '#' if !pending => {
                self.places.push_jump(at);
                return vec![VimAction::Star { back: letter == '#' }];
            }
            '/' | '?' if !pending => {
                self.places.push_jump(at);
                return vec![VimAction::Find { back: letter == '?' }];
            }
            'i' | 'a' if pending || self.is_visual() => {
                self.waits = Some(PendingKey::Object { around: letter == 'a' });
                return Vec::new();
            }
            _ => {}
        }
        let again = match (self.operator, letter) {
            (Some((VimOperator::Case(case), _)), 'u' | 'U' | '~') => Some(VimOperator::Case(case)),
            _ => operator(letter),
        };
        if let Some(operator) = again {
            return self.operate(operator, letter, ground, at);
        }
        if pending {
            return self.nothing();
        }
        if self.is_visual() {
            self.handle_visual_key(letter, ground, at)
        } else {
            self.handle_normal_key(letter, ground, at)
        }
    }

    /// Handles the first key of a command with two keys.
    fn opens(&mut self, letter: char) -> Vec<VimAction> {
        if letter == 'q' && self.recording.is_some() {
            self.end_recording();
            return Vec::new();
        }
        self.waits = Some(match letter {
            'z' => PendingKey::Z,
            'Z' => PendingKey::End,
            '"' => PendingKey::Register,
            'm' => PendingKey::Mark,
            'q' => PendingKey::Record,
            _ => PendingKey::Play,
        });
        Vec::new()
    }

    /// Drops the pending command and marks the key as failed.
    fn nothing(&mut self) -> Vec<VimAction> {
        self.failed = true;
        let mode = self.mode;
        self.rest();
        self.mode = mode;
        Vec::new()
    }

    fn handle_pending_key(
        &mut self,
        waits: PendingKey,
        letter: char,
        ground: &BufferView<'_>,
        at: usize,
    ) -> Vec<VimAction> {
        match waits {
            PendingKey::Hunt { back, till } => {
                let hunt = CharSearch { letter, back, till, again: false };
                self.hunt = Some(hunt);
                self.go(VimMotion::Letter(hunt), ground, at)
            }
            PendingKey::Replace => self.replace_chars(letter, ground, at),
            PendingKey::Object { around } => {
                let before = self.operator.and_then(|(_, count)| count);
                let count = self.count.take().unwrap_or(1) * before.unwrap_or(1);
                let Some((range, lines)) = ground.object(letter, around, count.min(MAX_COUNT), at) else {
                    return self.nothing();
                };
                match self.operator.take() {
                    Some((operator, _)) => self.apply_operator(operator, range, lines, ground, at),
                    None => {
                        self.mode = if lines { VimMode::Lines } else { self.mode };
                        self.anchor = range.start;
                        let last = if lines {
                            ground.line(range.end).start
                        } else {
                            motion::previous_grapheme(ground.text, range.end)
                        };
                        self.head = last.max(range.start);
                        self.selection_actions(ground)
                    }
                }
            }
            PendingKey::Register => {
                match registers::is_name(letter) {
                    true => self.registers.chosen = Some(letter),
                    false => return self.nothing(),
                }
                Vec::new()
            }
            PendingKey::Mark => {
                if !self.places.set(letter, at) {
                    return self.nothing();
                }
                // A capital letter names one mark across all notes.
                if letter.is_ascii_uppercase() { vec![VimAction::Marked(letter)] } else { Vec::new() }
            }
            PendingKey::Place { line } => {
                match self.places.get(letter).map(|at| motion::floor_grapheme(ground.text, at)) {
                    Some(to) => self.go(VimMotion::Mark { to, line }, ground, at),
                    None if letter.is_ascii_uppercase() && self.operator.is_none() => {
                        self.count = None;
                        vec![VimAction::Far { mark: letter, line }]
                    }
                    None => self.nothing(),
                }
            }
            PendingKey::Record => {
                if !letter.is_ascii_alphanumeric() {
                    return self.nothing();
                }
                self.count = None;
                self.recording = Some((letter, Vec::new()));
                Vec::new()
            }
            PendingKey::Play => self.play_macro(letter),
            PendingKey::Z => {
                self.count = None;
                self.handle_scroll_key(letter, ground, at)
            }
            PendingKey::End => match letter {
                'Z' => vec![VimAction::Run(CommandId::NoteSave), VimAction::Run(CommandId::NoteClose)],
                'Q' => vec![VimAction::Run(CommandId::NoteClose)],
                _ => self.nothing(),
            },
            PendingKey::G => match letter {
                'g' => self.go(VimMotion::Top, ground, at),
                'e' => self.go(VimMotion::BackEnd { big: false }, ground, at),
                'E' => self.go(VimMotion::BackEnd { big: true }, ground, at),
                '_' => self.go(VimMotion::LastWord, ground, at),
                'j' | 'k' if self.operator.is_none() => {
                    let (down, times) = (letter == 'j', self.count.take().unwrap_or(1));
                    vec![VimAction::Rows { down, times }]
                }
                'J' if self.is_visual() => self.join_selected(false, ground),
                'J' if self.operator.is_none() => {
                    let times = self.count.take().unwrap_or(1);
                    self.join(ground, at, times.max(2), false)
                }
                'v' if self.operator.is_none() => self.reselect(ground),
                'i' if self.operator.is_none() && !self.is_visual() => {
                    let to = motion::floor_grapheme(ground.text, self.places.get('^').unwrap_or(at));
                    let times = self.count.take().unwrap_or(1);
                    self.insert(times);
                    vec![VimAction::Place { at: to, anchor: to }]
                }
                ';' | ',' if self.operator.is_none() => {
                    let times = self.count.take().unwrap_or(1);
                    match self.places.change_target(times, letter == ';') {
                        Some(to) => self.arrive(motion::floor_grapheme(ground.text, to), ground),
                        None => self.nothing(),
                    }
                }
                't' | 'T' if self.operator.is_none() => {
                    self.count = None;
                    vec![VimAction::Run(if letter == 't' { CommandId::TabNext } else { CommandId::TabPrevious })]
                }
                'u' => self.operate(VimOperator::Case(LetterCase::Lower), 'u', ground, at),
                'U' => self.operate(VimOperator::Case(LetterCase::Upper), 'U', ground, at),
                '~' => self.operate(VimOperator::Case(LetterCase::Other), '~', ground, at),
                _ => self.nothing(),
            },
        }
    }

    /// Performs a motion: moves the caret, extends the selection or applies the pending operator.
    fn go(&mut self, motion: VimMotion, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        let (operator, before) = self.operator.take().unzip();
        let count = match (self.count.take(), before.flatten()) {
            (None, None) => None,
            (own, before) => Some((own.unwrap_or(1) * before.unwrap_or(1)).min(MAX_COUNT)),
        };
        let mut motion = motion;
        // `cw` keeps the space after the word.
        let on_word = ground.text[at..].chars().next().is_some_and(|letter| !letter.is_whitespace());
        if let (Some(VimOperator::Change), VimMotion::Word { big }, true) = (operator, motion, on_word) {
            let end = ground.object(if big { 'W' } else { 'w' }, false, 1, at).map_or(at, |(range, _)| range.end);
            // On the last character of a word, `e` would continue to the end of the next word.
            if count.unwrap_or(1) == 1 {
                return self.apply_operator(VimOperator::Change, at..end, false, ground, at);
            }
            motion = VimMotion::WordEnd { big };
        }
        let keeps = matches!(motion, VimMotion::Up | VimMotion::Down | VimMotion::End);
        let Some((mut to, mut span)) = ground.motion_target(motion, count, at, operator.is_none()) else {
            return self.nothing();
        };
        if operator.is_none() {
            if motion.is_jump() {
                self.places.push_jump(at);
            }
            // After the last character there is no position to move to.
            self.failed = to == at && matches!(motion, VimMotion::Left)
                || matches!(motion, VimMotion::Right | VimMotion::Word { .. }) && ground.on_letter(to) == at;
            if !matches!(motion, VimMotion::Up | VimMotion::Down) {
                self.to_end = matches!(motion, VimMotion::End);
            }
        }
        if !keeps {
            self.column = None;
        }
        let Some(operator) = operator else {
            match motion {
                VimMotion::Up | VimMotion::Down => {
                    let column = *self.column.get_or_insert_with(|| ground.column(at));
                    to = ground.at_column(to, column);
                }
                VimMotion::End => self.column = Some(usize::MAX),
                _ => {}
            }
            return self.arrive(to, ground);
        };
        // A word at the end of its line is deleted without the line ending.
        if matches!(motion, VimMotion::Word { .. }) && to > ground.line(at).end && to <= ground.indent(to) {
            to = ground.line(at + ground.text[at..to].trim_end().len()).end;
        }
        // A motion from the start of one line to the start of another covers whole lines.
        if matches!(motion, VimMotion::Paragraph { back: false }) && to > at {
            let whole = at <= ground.indent(at);
            let end = if ground.text[..to].ends_with('\n') { ground.line(to - 1).end } else { to };
            (to, span) = (end, if whole { MotionSpan::Lines } else { MotionSpan::Open });
        }
        let (from, to) = (at.min(to), at.max(to));
        match span {
            MotionSpan::Open => self.apply_operator(operator, from..to, false, ground, at),
            MotionSpan::Closed => {
                let to = if to < ground.line(to).end { motion::next_grapheme(ground.text, to) } else { to };
                self.apply_operator(operator, from..to, false, ground, at)
            }
            MotionSpan::Lines if (operator, motion) == (VimOperator::Yank, VimMotion::Up) => {
                let place = ground.at_column(from, ground.column(at));
                self.apply_operator(operator, ground.line(from).start..ground.line(to).end, true, ground, place)
            }
            MotionSpan::Lines => {
                self.apply_operator(operator, ground.line(from).start..ground.line(to).end, true, ground, at)
            }
        }
    }

    /// Moves the caret, or in visual modes the moving end of the selection.
    fn arrive(&mut self, to: usize, ground: &BufferView<'_>) -> Vec<VimAction> {
        let to = ground.on_letter(to);
        if self.is_visual() {
            self.head = to;
            return self.selection_actions(ground);
        }
        self.placed = Some((to, to));
        vec![VimAction::Place { at: to, anchor: to }]
    }

    fn operate(&mut self, operator: VimOperator, letter: char, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        if self.mode == VimMode::Block {
            return self.on_block(operator, letter, ground);
        }
        if self.is_visual() {
            let (range, lines) = (self.selected(ground), self.mode == VimMode::Lines);
            self.record_selection(letter, ground);
            self.mode = VimMode::Normal;
            let times = self.count.take();
            if let (VimOperator::Shift { back }, Some(times)) = (operator, times) {
                self.changes = true;
                return vec![VimAction::Shift { range, back, times }];
            }
            return self.apply_operator(operator, range, lines, ground, at);
        }
        match self.operator {
            // A repeated operator applies to whole lines.
            Some((same, before)) if same == operator => {
                self.operator = None;
                let count = self.count.take().unwrap_or(1) * before.unwrap_or(1);
                let (mut last, start) = (at, ground.line(at).start);
                for _ in 1..count.min(MAX_COUNT) {
                    let Some(next) = ground.next_line(last, true) else { break };
                    last = next;
                }
                self.apply_operator(operator, start..ground.line(last).end, true, ground, at)
            }
            Some(_) => self.nothing(),
            None => {
                self.operator = Some((operator, self.count.take()));
                Vec::new()
            }
        }
    }
}

fn simple(letter: char) -> Option<VimMotion> {
    Some(match letter {
        'h' => VimMotion::Left,
        'l' | ' ' => VimMotion::Right,
        'j' => VimMotion::Down,
        'k' => VimMotion::Up,
        '+' | '\n' => VimMotion::First { down: true, own: false },
        '-' => VimMotion::First { down: false, own: false },
        '_' => VimMotion::First { down: true, own: true },
        '0' => VimMotion::Start,
        '^' => VimMotion::Indent,
        '$' => VimMotion::End,
        '|' => VimMotion::Column,
        'w' => VimMotion::Word { big: false },
        'W' => VimMotion::Word { big: true },
        'b' => VimMotion::Back { big: false },
        'B' => VimMotion::Back { big: true },
        'e' => VimMotion::WordEnd { big: false },
        'E' => VimMotion::WordEnd { big: true },
        'G' => VimMotion::Bottom,
        '(' => VimMotion::Sentence { back: true },
        ')' => VimMotion::Sentence { back: false },
        '{' => VimMotion::Paragraph { back: true },
        '}' => VimMotion::Paragraph { back: false },
        '%' => VimMotion::Bracket,
        _ => return None,
    })
}

fn operator(letter: char) -> Option<VimOperator> {
    Some(match letter {
        'd' => VimOperator::Delete,
        'c' => VimOperator::Change,
        'y' => VimOperator::Yank,
        '>' => VimOperator::Shift { back: false },
        '<' => VimOperator::Shift { back: true },
        '=' => VimOperator::Indent,
        _ => return None,
    })
}

fn is_digit(stroke: &VimStroke) -> bool {
    match stroke {
        VimStroke::Text(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
        VimStroke::Key(..) => false,
    }
}
