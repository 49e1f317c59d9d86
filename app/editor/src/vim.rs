//! Vim's keys: a state machine of its own, pure. It knows a text and where a caret can stand in it, and answers each
//! key with deeds; `modal.rs` brings it the keys and does the deeds. Where Vim shows the empty line between paragraphs,
//! Tracebook shows room: no caret stands there, and such a line goes and comes with the lines that it parts.

mod block;
mod deeds;
pub mod ex;
mod normal;
mod objects;
mod places;
#[cfg(test)]
mod played;
mod registers;
mod travel;
mod visual;
mod words;

use super::motion;
pub use deeds::extent;
use deeds::{Case, Operator};
pub use places::Places;
use registers::Registers;
pub use travel::Ground;
use travel::{Hunt, Motion, Span};
pub use words::{Deed, Mode, Press, Stroke};

/// A count is at most this.
const MOST: usize = 100_000;
/// What is kept to be done again: at most so many keys.
const TAPE: usize = 10_000;

/// The rest of a command of several letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// For a letter to look for.
    Hunt {
        back: bool,
        till: bool,
    },
    Replace,
    G,
    Z,
    /// For the second Z of `ZZ`.
    End,
    Object {
        around: bool,
    },
    Register,
    Mark,
    /// For the mark to go to; `line`: to its line.
    Place {
        line: bool,
    },
    /// For the register to record keys into, or from which keys are played.
    Record,
    Play,
}

/// The machine.
#[derive(Debug, Default)]
pub struct Vim {
    mode: Mode,
    count: Option<usize>,
    /// What waits for a motion, and the count in front of it.
    operator: Option<(Operator, Option<usize>)>,
    waits: Option<Waits>,
    /// The column that going up and down keeps to.
    column: Option<usize>,
    hunt: Option<Hunt>,
    /// In visual modes: the letters at both ends.
    anchor: usize,
    head: usize,
    /// In block mode: up to the lines' ends, however long they are.
    to_end: bool,
    registers: Registers,
    /// The marks of the open note, and where the caret was.
    pub places: Places,
    /// The register into which keys are recorded, and the keys.
    recording: Option<(char, Vec<Stroke>)>,
    /// From which register keys were played last.
    played: Option<char>,
    /// Whether keys of a register are played: they are not recorded.
    pub plays: bool,
    /// Whether the last key could not do what it says.
    pub failed: bool,
    /// Where the caret goes when writing into a block ends.
    block: Option<usize>,
    /// What the status line shows of a command under way.
    typed: String,
    /// All keys of the command under way, and those of the last one that changed something.
    tape: Vec<Stroke>,
    last: Vec<Stroke>,
    changes: bool,
    /// Whether keys are played again: they are no command of their own.
    pub replays: bool,
    /// How often what is being inserted shall stand there, and where on the tape that began.
    inserts: (usize, usize),
    /// Where the caret was put last; elsewhere, somebody else has put it.
    placed: Option<(usize, usize)>,
}

impl Vim {
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the status line says: the mode, and what has been typed of a command.
    pub fn says(&self, caret: usize, anchor: usize) -> String {
        // A click may have ended a selection, or begun one.
        let told = self.placed == Some((caret, anchor));
        let mode = match self.mode {
            Mode::Normal if caret != anchor => "Visual",
            Mode::Visual | Mode::Lines if caret == anchor && !told => "Normal",
            Mode::Normal => "Normal",
            Mode::Insert => "Insert",
            Mode::Replace => "Replace",
            Mode::Visual => "Visual",
            Mode::Lines => "Visual line",
            Mode::Block => "Visual block",
        };
        let recording = self.recording.as_ref().map(|(name, _)| format!("Recording {name}"));
        let typed = Some(self.typed.clone()).filter(|typed| !typed.is_empty());
        [Some(mode.to_owned()), typed, recording].into_iter().flatten().collect::<Vec<String>>().join(" ")
    }

    /// In visual modes, the letter at the end that moves.
    pub fn head(&self) -> Option<usize> {
        self.is_visual().then_some(self.head)
    }

    /// Notes a key before it is answered.
    pub fn record(&mut self, input: Stroke) {
        if let Some((_, keys)) = self.recording.as_mut().filter(|(_, keys)| keys.len() < TAPE && !self.plays)
            && !self.replays
        {
            keys.push(input.clone());
        }
        if self.tape.len() < TAPE && !self.replays {
            self.tape.push(input);
        }
    }

    /// Answers a key outside insert mode. `caret` and `anchor` are those of the editor.
    pub fn press(&mut self, press: Press, ground: &Ground<'_>, caret: usize, anchor: usize) -> Vec<Deed> {
        let length = ground.text.len();
        let (caret, anchor) =
            (motion::floor(ground.text, caret.min(length)), motion::floor(ground.text, anchor.min(length)));
        if self.placed != Some((caret, anchor)) && self.mode != Mode::Insert {
            self.taken_over(ground, caret, anchor);
        }
        let at = if self.is_visual() { self.head.min(length) } else { caret };
        let at = motion::floor(ground.text, at);
        self.anchor = motion::floor(ground.text, self.anchor.min(length));
        self.failed = false;
        let visual = (self.mode, self.is_visual());
        let chosen = self.registers.chosen;
        let signed = |down: bool| if down { 1.0 } else { -1.0 };
        #[allow(clippy::cast_precision_loss, reason = "a count that somebody typed")]
        let deeds = match press {
            Press::Letter(letter) => self.letter(letter, ground, at),
            Press::Escape => self.escape(ground, at),
            Press::Redo => self.counted(|times| vec![Deed::Redo(times)]),
            Press::Half { down } => vec![Deed::Page { pages: signed(down) / 2.0 }],
            Press::Page { down } => self.counted(|times| vec![Deed::Page { pages: signed(down) * times as f32 }]),
            Press::Scroll { down } => self.counted(|times| vec![Deed::Scroll { lines: signed(down) * times as f32 }]),
            Press::Count { down } => self.count_up(down, ground, at),
            Press::Jump { back } => self.jump(back, ground, at),
            Press::Block => self.enter_visual(Mode::Block, ground, at),
        };
        if visual.1 && !self.is_visual() {
            self.places.keep_selection(visual.0, self.anchor, self.head);
        }
        self.note_placed(&deeds);
        // A register is named for one command.
        if chosen.is_some() && self.count.is_none() && self.operator.is_none() && self.waits.is_none() {
            self.registers.chosen = None;
        }
        if !self.is_under_way() {
            self.typed.clear();
        } else if let Press::Letter(letter) = press {
            self.typed.push(letter);
        }
        if self.mode == Mode::Normal && !self.is_under_way() && !self.replays {
            let tape = std::mem::take(&mut self.tape);
            if std::mem::take(&mut self.changes) {
                self.last = tape;
            }
        }
        deeds
    }

    /// Keeps in mind where deeds leave the caret.
    pub(crate) fn note_placed(&mut self, deeds: &[Deed]) {
        for deed in deeds {
            self.placed = match deed {
                Deed::Place { at, anchor } => Some((*at, *anchor)),
                Deed::Replace { at, .. } | Deed::Splices { at, .. } => Some((*at, *at)),
                Deed::Carets(carets) => carets.first().map(|at| (*at, *at)),
                Deed::Select(carets) => carets.first().copied(),
                Deed::Copy(_) => self.placed,
                _ => None,
            };
        }
    }

    /// The caret was put somewhere by a deed that goes by what is seen: a selection reaches there.
    pub fn led(&mut self, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        let at = motion::floor(ground.text, at);
        let deeds = self.arrive(at, ground);
        self.note_placed(&deeds);
        deeds
    }

    /// The caret was put somewhere by somebody else: with a selection, that is visual mode.
    fn taken_over(&mut self, ground: &Ground<'_>, caret: usize, anchor: usize) {
        if caret == anchor {
            if self.is_visual() {
                self.mode = Mode::Normal;
            }
            self.column = None;
            return;
        }
        self.mode = Mode::Visual;
        if caret > anchor {
            (self.head, self.anchor) = (motion::before(ground.text, caret), anchor);
        } else {
            (self.head, self.anchor) = (caret, motion::before(ground.text, anchor));
        }
    }

    /// Whether a command is typed by half.
    fn is_under_way(&self) -> bool {
        let begun = self.count.is_some() || self.operator.is_some() || self.waits.is_some();
        begun || self.registers.chosen.is_some()
    }

    fn is_visual(&self) -> bool {
        matches!(self.mode, Mode::Visual | Mode::Lines | Mode::Block)
    }

    fn counted(&mut self, deed: impl FnOnce(usize) -> Vec<Deed>) -> Vec<Deed> {
        deed(self.count.take().unwrap_or(1))
    }

    /// Back to normal mode, with nothing under way.
    fn rest(&mut self) {
        (self.count, self.operator, self.waits) = (None, None, None);
        self.registers.chosen = None;
        self.mode = Mode::Normal;
    }

    fn escape(&mut self, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        let was = self.mode;
        let under_way = self.is_under_way();
        self.rest();
        if was.writes() {
            self.places.set('^', at);
            let block = self.block.take();
            let (times, from) = std::mem::take(&mut self.inserts);
            let keys: Vec<Stroke> = self.tape.get(from..self.tape.len().saturating_sub(1)).unwrap_or(&[]).to_vec();
            if times > 1 && !keys.is_empty() {
                let keys = std::iter::repeat_n(keys, times.min(MOST) - 1).flatten().take(TAPE).collect();
                return vec![Deed::Type(keys), Deed::Left];
            }
            return vec![block.map_or(Deed::Left, |at| Deed::Place { at, anchor: at })];
        }
        let at = ground.on_letter(at);
        if was == Mode::Normal && under_way { Vec::new() } else { vec![Deed::Place { at, anchor: at }] }
    }

    fn insert(&mut self, times: usize) {
        self.mode = Mode::Insert;
        self.block = None;
        self.changes = true;
        self.column = None;
        self.inserts = (times, self.tape.len());
    }

    fn letter(&mut self, letter: char, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        if let Some(waits) = self.waits.take() {
            return self.waited(waits, letter, ground, at);
        }
        if letter.is_ascii_digit() && (letter != '0' || self.count.is_some()) {
            let digit = letter as usize - '0' as usize;
            self.count = Some((self.count.unwrap_or(0) * 10 + digit).min(MOST));
            return Vec::new();
        }
        if let Some(motion) = simple(letter) {
            return self.go(motion, ground, at);
        }
        let pending = self.operator.is_some();
        match letter {
            'f' | 'F' | 't' | 'T' => {
                self.waits = Some(Waits::Hunt { back: letter.is_uppercase(), till: letter.eq_ignore_ascii_case(&'t') });
                return Vec::new();
            }
            ';' | ',' => {
                let Some(hunt) = self.hunt else { return self.nothing() };
                let hunt = Hunt { back: hunt.back != (letter == ','), again: true, ..hunt };
                return self.go(Motion::Letter(hunt), ground, at);
            }
            'g' | '\'' | '`' => {
                self.waits = Some(if letter == 'g' { Waits::G } else { Waits::Place { line: letter == '\'' } });
                return Vec::new();
            }
            'z' | '"' | 'm' | 'q' | '@' | 'Z' if !pending => return self.opens(letter),
            'H' | 'M' | 'L' if !pending => {
                let further = self.count.take().unwrap_or(1) - 1;
                self.places.jump(at);
                let (part, further) = match letter {
                    'H' => (0.0, further),
                    'M' => (0.5, 0),
                    _ => (1.0, further),
                };
                return vec![Deed::Screen { part, further }];
            }
            'n' | 'N' if !pending => {
                self.places.jump(at);
                return self.counted(|times| vec![Deed::Match { back: letter == 'N', times }]);
            }
            '*' | '#' if !pending => {
                self.places.jump(at);
                return vec![Deed::Star { back: letter == '#' }];
            }
            '/' | '?' if !pending => {
                self.places.jump(at);
                return vec![Deed::Find { back: letter == '?' }];
            }
            'i' | 'a' if pending || self.is_visual() => {
                self.waits = Some(Waits::Object { around: letter == 'a' });
                return Vec::new();
            }
            _ => {}
        }
        let again = match (self.operator, letter) {
            (Some((Operator::Case(case), _)), 'u' | 'U' | '~') => Some(Operator::Case(case)),
            _ => operator(letter),
        };
        if let Some(operator) = again {
            return self.operate(operator, letter, ground, at);
        }
        if pending {
            return self.nothing();
        }
        if self.is_visual() { self.visual(letter, ground, at) } else { self.normal(letter, ground, at) }
    }

    /// The first letter of a command of two.
    fn opens(&mut self, letter: char) -> Vec<Deed> {
        if letter == 'q' && self.recording.is_some() {
            self.end_recording();
            return Vec::new();
        }
        self.waits = Some(match letter {
            'z' => Waits::Z,
            'Z' => Waits::End,
            '"' => Waits::Register,
            'm' => Waits::Mark,
            'q' => Waits::Record,
            _ => Waits::Play,
        });
        Vec::new()
    }

    /// Forgets what was under way.
    fn nothing(&mut self) -> Vec<Deed> {
        self.failed = true;
        let mode = self.mode;
        self.rest();
        self.mode = mode;
        Vec::new()
    }

    fn waited(&mut self, waits: Waits, letter: char, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        match waits {
            Waits::Hunt { back, till } => {
                let hunt = Hunt { letter, back, till, again: false };
                self.hunt = Some(hunt);
                self.go(Motion::Letter(hunt), ground, at)
            }
            Waits::Replace => self.replace(letter, ground, at),
            Waits::Object { around } => {
                let before = self.operator.and_then(|(_, count)| count);
                let count = self.count.take().unwrap_or(1) * before.unwrap_or(1);
                let Some((range, lines)) = ground.object(letter, around, count.min(MOST), at) else {
                    return self.nothing();
                };
                match self.operator.take() {
                    Some((operator, _)) => self.act(operator, range, lines, ground, at),
                    None => {
                        self.mode = if lines { Mode::Lines } else { self.mode };
                        self.anchor = range.start;
                        let last =
                            if lines { ground.line(range.end).start } else { motion::before(ground.text, range.end) };
                        self.head = last.max(range.start);
                        self.select(ground)
                    }
                }
            }
            Waits::Register => {
                match registers::is_name(letter) {
                    true => self.registers.chosen = Some(letter),
                    false => return self.nothing(),
                }
                Vec::new()
            }
            Waits::Mark => {
                if !self.places.set(letter, at) {
                    return self.nothing();
                }
                // A capital is one place in all notes.
                if letter.is_ascii_uppercase() { vec![Deed::Marked(letter)] } else { Vec::new() }
            }
            Waits::Place { line } => match self.places.get(letter).map(|at| motion::floor(ground.text, at)) {
                Some(to) => self.go(Motion::Mark { to, line }, ground, at),
                None if letter.is_ascii_uppercase() && self.operator.is_none() => {
                    self.count = None;
                    vec![Deed::Far { mark: letter, line }]
                }
                None => self.nothing(),
            },
            Waits::Record => {
                if !letter.is_ascii_alphanumeric() {
                    return self.nothing();
                }
                self.count = None;
                self.recording = Some((letter, Vec::new()));
                Vec::new()
            }
            Waits::Play => self.play(letter),
            Waits::Z => {
                self.count = None;
                self.seat(letter, ground, at)
            }
            Waits::End => match letter {
                'Z' => vec![Deed::Run("note.save"), Deed::Run("note.close")],
                'Q' => vec![Deed::Run("note.close")],
                _ => self.nothing(),
            },
            Waits::G => match letter {
                'g' => self.go(Motion::Top, ground, at),
                'e' => self.go(Motion::BackEnd { big: false }, ground, at),
                'E' => self.go(Motion::BackEnd { big: true }, ground, at),
                '_' => self.go(Motion::LastWord, ground, at),
                'j' | 'k' if self.operator.is_none() => {
                    let (down, times) = (letter == 'j', self.count.take().unwrap_or(1));
                    vec![Deed::Rows { down, times }]
                }
                'J' if self.is_visual() => self.join_selected(false, ground),
                'J' if self.operator.is_none() => {
                    let times = self.count.take().unwrap_or(1);
                    self.join(ground, at, times.max(2), false)
                }
                'v' if self.operator.is_none() => self.reselect(ground),
                'i' if self.operator.is_none() && !self.is_visual() => {
                    let to = motion::floor(ground.text, self.places.get('^').unwrap_or(at));
                    let times = self.count.take().unwrap_or(1);
                    self.insert(times);
                    vec![Deed::Place { at: to, anchor: to }]
                }
                ';' | ',' if self.operator.is_none() => {
                    let times = self.count.take().unwrap_or(1);
                    match self.places.change(times, letter == ';') {
                        Some(to) => self.arrive(motion::floor(ground.text, to), ground),
                        None => self.nothing(),
                    }
                }
                't' | 'T' if self.operator.is_none() => {
                    self.count = None;
                    vec![Deed::Run(if letter == 't' { "tab.next" } else { "tab.previous" })]
                }
                'u' => self.operate(Operator::Case(Case::Lower), 'u', ground, at),
                'U' => self.operate(Operator::Case(Case::Upper), 'U', ground, at),
                '~' => self.operate(Operator::Case(Case::Other), '~', ground, at),
                _ => self.nothing(),
            },
        }
    }

    /// Goes, selects, or does what waits for a motion.
    fn go(&mut self, motion: Motion, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        let (operator, before) = self.operator.take().unzip();
        let count = match (self.count.take(), before.flatten()) {
            (None, None) => None,
            (own, before) => Some((own.unwrap_or(1) * before.unwrap_or(1)).min(MOST)),
        };
        let mut motion = motion;
        // `cw` leaves the space behind the word.
        let on_word = ground.text[at..].chars().next().is_some_and(|letter| !letter.is_whitespace());
        if let (Some(Operator::Change), Motion::Word { big }, true) = (operator, motion, on_word) {
            let end = ground.object(if big { 'W' } else { 'w' }, false, 1, at).map_or(at, |(range, _)| range.end);
            // Where the word ends here, its end is not the next one's.
            if count.unwrap_or(1) == 1 {
                return self.act(Operator::Change, at..end, false, ground, at);
            }
            motion = Motion::WordEnd { big };
        }
        let keeps = matches!(motion, Motion::Up | Motion::Down | Motion::End);
        let Some((mut to, mut span)) = ground.travel(motion, count, at, operator.is_none()) else {
            return self.nothing();
        };
        if operator.is_none() {
            if motion.jumps() {
                self.places.jump(at);
            }
            // Behind the last letter there is nothing to go to.
            self.failed = to == at && matches!(motion, Motion::Left)
                || matches!(motion, Motion::Right | Motion::Word { .. }) && ground.on_letter(to) == at;
            if !matches!(motion, Motion::Up | Motion::Down) {
                self.to_end = matches!(motion, Motion::End);
            }
        }
        if !keeps {
            self.column = None;
        }
        let Some(operator) = operator else {
            match motion {
                Motion::Up | Motion::Down => {
                    let column = *self.column.get_or_insert_with(|| ground.column(at));
                    to = ground.at_column(to, column);
                }
                Motion::End => self.column = Some(usize::MAX),
                _ => {}
            }
            return self.arrive(to, ground);
        };
        // A word that ends its line is deleted without the line's end.
        if matches!(motion, Motion::Word { .. }) && to > ground.line(at).end && to <= ground.indent(to) {
            to = ground.line(at + ground.text[at..to].trim_end().len()).end;
        }
        // What goes up to the beginning of a line from that of another means whole lines.
        if matches!(motion, Motion::Paragraph { back: false }) && to > at {
            let whole = at <= ground.indent(at);
            let end = if ground.text[..to].ends_with('\n') { ground.line(to - 1).end } else { to };
            (to, span) = (end, if whole { Span::Lines } else { Span::Open });
        }
        let (from, to) = (at.min(to), at.max(to));
        match span {
            Span::Open => self.act(operator, from..to, false, ground, at),
            Span::Closed => {
                let to = if to < ground.line(to).end { motion::after(ground.text, to) } else { to };
                self.act(operator, from..to, false, ground, at)
            }
            Span::Lines if (operator, motion) == (Operator::Yank, Motion::Up) => {
                let place = ground.at_column(from, ground.column(at));
                self.act(operator, ground.line(from).start..ground.line(to).end, true, ground, place)
            }
            Span::Lines => self.act(operator, ground.line(from).start..ground.line(to).end, true, ground, at),
        }
    }

    /// The caret is there now.
    fn arrive(&mut self, to: usize, ground: &Ground<'_>) -> Vec<Deed> {
        let to = ground.on_letter(to);
        if self.is_visual() {
            self.head = to;
            return self.select(ground);
        }
        self.placed = Some((to, to));
        vec![Deed::Place { at: to, anchor: to }]
    }

    fn operate(&mut self, operator: Operator, letter: char, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        if self.mode == Mode::Block {
            return self.on_block(operator, letter, ground);
        }
        if self.is_visual() {
            let (range, lines) = (self.selected(ground), self.mode == Mode::Lines);
            self.remember(letter, ground);
            self.mode = Mode::Normal;
            let times = self.count.take();
            if let (Operator::Shift { back }, Some(times)) = (operator, times) {
                self.changes = true;
                return vec![Deed::Shift { range, back, times }];
            }
            return self.act(operator, range, lines, ground, at);
        }
        match self.operator {
            // Twice the same: whole lines.
            Some((same, before)) if same == operator => {
                self.operator = None;
                let count = self.count.take().unwrap_or(1) * before.unwrap_or(1);
                let (mut last, start) = (at, ground.line(at).start);
                for _ in 1..count.min(MOST) {
                    let Some(next) = ground.step(last, true) else { break };
                    last = next;
                }
                self.act(operator, start..ground.line(last).end, true, ground, at)
            }
            Some(_) => self.nothing(),
            None => {
                self.operator = Some((operator, self.count.take()));
                Vec::new()
            }
        }
    }
}

fn simple(letter: char) -> Option<Motion> {
    Some(match letter {
        'h' => Motion::Left,
        'l' | ' ' => Motion::Right,
        'j' => Motion::Down,
        'k' => Motion::Up,
        '+' | '\n' => Motion::First { down: true, own: false },
        '-' => Motion::First { down: false, own: false },
        '_' => Motion::First { down: true, own: true },
        '0' => Motion::Start,
        '^' => Motion::Indent,
        '$' => Motion::End,
        '|' => Motion::Column,
        'w' => Motion::Word { big: false },
        'W' => Motion::Word { big: true },
        'b' => Motion::Back { big: false },
        'B' => Motion::Back { big: true },
        'e' => Motion::WordEnd { big: false },
        'E' => Motion::WordEnd { big: true },
        'G' => Motion::Bottom,
        '(' => Motion::Sentence { back: true },
        ')' => Motion::Sentence { back: false },
        '{' => Motion::Paragraph { back: true },
        '}' => Motion::Paragraph { back: false },
        '%' => Motion::Bracket,
        _ => return None,
    })
}

fn operator(letter: char) -> Option<Operator> {
    Some(match letter {
        'd' => Operator::Delete,
        'c' => Operator::Change,
        'y' => Operator::Yank,
        '>' => Operator::Shift { back: false },
        '<' => Operator::Shift { back: true },
        '=' => Operator::Indent,
        _ => return None,
    })
}

fn is_digit(stroke: &Stroke) -> bool {
    match stroke {
        Stroke::Text(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
        Stroke::Key(..) => false,
    }
}
