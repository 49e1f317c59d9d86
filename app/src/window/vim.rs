//! Vim's keys: a state machine of its own, pure. It knows a text and where a caret can stand in it, and answers each
//! key with deeds; `modal.rs` brings it the keys and does the deeds. Where Vim shows the empty line between paragraphs,
//! Tracebook shows room: no caret stands there, and such a line goes and comes with the lines that it parts.

mod deeds;
#[cfg(test)]
mod played;
mod travel;

use super::motion;
use deeds::{Case, Operator, Register, cased};
use eframe::egui;
use egui::{Key, Modifiers};
use std::ops::Range;
pub(super) use travel::Ground;
use travel::{Hunt, Motion, Span};
use unicode_segmentation::UnicodeSegmentation;

/// A count is at most this.
const MOST: usize = 100_000;
/// What is kept to be done again: at most so many keys.
const TAPE: usize = 10_000;

/// What typing means now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Normal,
    Insert,
    Visual,
    Lines,
}

/// A key, as it is played again by `.`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stroke {
    Text(String),
    Key(Key, Modifiers),
}

/// A key outside insert mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Press {
    Letter(char),
    Escape,
    Redo,
    /// Half a page.
    Half {
        down: bool,
    },
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Deed {
    /// The caret goes there; what lies between is selected.
    Place {
        at: usize,
        anchor: usize,
    },
    /// A text comes in place of a range; the caret goes to `at`.
    Replace {
        range: Range<usize>,
        with: String,
        at: usize,
    },
    /// A line is begun below or above, as Enter does it.
    Open {
        below: bool,
    },
    /// Items or code in these lines move in or out.
    Shift {
        range: Range<usize>,
        back: bool,
        times: usize,
    },
    Undo(usize),
    Redo(usize),
    /// Something is looked for; the next match, or the one before; the word at the caret.
    Find,
    Match {
        back: bool,
    },
    Star {
        back: bool,
    },
    /// These keys are played again; these go to the editor, as in insert mode.
    Again(Vec<Stroke>),
    Type(Vec<Stroke>),
    /// The caret goes a letter back, if there is one in its line.
    Left,
    /// Lines as they are wrapped, and half pages.
    Rows {
        down: bool,
        times: usize,
    },
    Half {
        down: bool,
    },
    Palette,
}

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
    Object {
        around: bool,
    },
}

/// The machine.
#[derive(Debug, Default)]
pub(super) struct Vim {
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
    register: Register,
    /// What the status line shows of a command under way.
    typed: String,
    /// All keys of the command under way, and those of the last one that changed something.
    tape: Vec<Stroke>,
    last: Vec<Stroke>,
    changes: bool,
    /// Whether keys are played again: they are no command of their own.
    pub(super) replays: bool,
    /// How often what is being inserted shall stand there, and where on the tape that began.
    inserts: (usize, usize),
    /// Where the caret was put last; elsewhere, somebody else has put it.
    placed: Option<(usize, usize)>,
}

impl Vim {
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// What the status line says: the mode, and what has been typed of a command.
    pub(super) fn says(&self, caret: usize, anchor: usize) -> String {
        // A click may have ended a selection, or begun one.
        let told = self.placed == Some((caret, anchor));
        let mode = match self.mode {
            Mode::Normal if caret != anchor => "Visual",
            Mode::Visual | Mode::Lines if caret == anchor && !told => "Normal",
            Mode::Normal => "Normal",
            Mode::Insert => "Insert",
            Mode::Visual => "Visual",
            Mode::Lines => "Visual line",
        };
        if self.typed.is_empty() { mode.to_owned() } else { format!("{mode} {}", self.typed) }
    }

    /// Notes a key before it is answered.
    pub(super) fn record(&mut self, input: Stroke) {
        if self.tape.len() < TAPE && !self.replays {
            self.tape.push(input);
        }
    }

    /// Answers a key outside insert mode. `caret` and `anchor` are those of the editor.
    pub(super) fn press(&mut self, press: Press, ground: &Ground<'_>, caret: usize, anchor: usize) -> Vec<Deed> {
        let length = ground.text.len();
        let (caret, anchor) =
            (motion::floor(ground.text, caret.min(length)), motion::floor(ground.text, anchor.min(length)));
        if self.placed != Some((caret, anchor)) && self.mode != Mode::Insert {
            self.taken_over(ground, caret, anchor);
        }
        let at = if self.is_visual() { self.head.min(length) } else { caret };
        let at = motion::floor(ground.text, at);
        self.anchor = motion::floor(ground.text, self.anchor.min(length));
        let deeds = match press {
            Press::Letter(letter) => self.letter(letter, ground, at),
            Press::Escape => self.escape(ground, at),
            Press::Redo => self.counted(|times| vec![Deed::Redo(times)]),
            Press::Half { down } => vec![Deed::Half { down }],
        };
        for deed in &deeds {
            match deed {
                Deed::Place { at, anchor } => self.placed = Some((*at, *anchor)),
                Deed::Replace { at, .. } => self.placed = Some((*at, *at)),
                _ => self.placed = None,
            }
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
        self.count.is_some() || self.operator.is_some() || self.waits.is_some()
    }

    fn is_visual(&self) -> bool {
        matches!(self.mode, Mode::Visual | Mode::Lines)
    }

    fn counted(&mut self, deed: impl FnOnce(usize) -> Vec<Deed>) -> Vec<Deed> {
        deed(self.count.take().unwrap_or(1))
    }

    /// Back to normal mode, with nothing under way.
    fn rest(&mut self) {
        (self.count, self.operator, self.waits) = (None, None, None);
        self.mode = Mode::Normal;
    }

    fn escape(&mut self, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        let was = self.mode;
        let under_way = self.is_under_way();
        self.rest();
        if was == Mode::Insert {
            let (times, from) = std::mem::take(&mut self.inserts);
            let keys: Vec<Stroke> = self.tape.get(from..self.tape.len().saturating_sub(1)).unwrap_or(&[]).to_vec();
            if times > 1 && !keys.is_empty() {
                let keys = std::iter::repeat_n(keys, times.min(MOST) - 1).flatten().take(TAPE).collect();
                return vec![Deed::Type(keys), Deed::Left];
            }
            return vec![Deed::Left];
        }
        let at = ground.on_letter(at);
        if was == Mode::Normal && under_way { Vec::new() } else { vec![Deed::Place { at, anchor: at }] }
    }

    fn insert(&mut self, times: usize) {
        self.mode = Mode::Insert;
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
            'g' => {
                self.waits = Some(Waits::G);
                return Vec::new();
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

    /// Forgets what was under way.
    fn nothing(&mut self) -> Vec<Deed> {
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
                        self.head = motion::before(ground.text, range.end).max(range.start);
                        self.select(ground)
                    }
                }
            }
            Waits::G => match letter {
                'g' => self.go(Motion::Top, ground, at),
                'e' => self.go(Motion::BackEnd { big: false }, ground, at),
                'E' => self.go(Motion::BackEnd { big: true }, ground, at),
                '_' => self.go(Motion::LastWord, ground, at),
                'j' | 'k' if self.operator.is_none() => {
                    let (down, times) = (letter == 'j', self.count.take().unwrap_or(1));
                    vec![Deed::Rows { down, times }]
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
            return Vec::new();
        };
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
        vec![Deed::Place { at: to, anchor: to }]
    }

    /// The letters, or lines, that visual mode has selected.
    fn selected(&self, ground: &Ground<'_>) -> Range<usize> {
        let (from, to) = (self.anchor.min(self.head), self.anchor.max(self.head));
        match self.mode {
            Mode::Lines => ground.line(from).start..ground.line(to).end,
            _ => from..motion::after(ground.text, to),
        }
    }

    fn select(&self, ground: &Ground<'_>) -> Vec<Deed> {
        let range = self.selected(ground);
        let (at, anchor) = if self.head >= self.anchor { (range.end, range.start) } else { (range.start, range.end) };
        vec![Deed::Place { at, anchor }]
    }

    fn operate(&mut self, operator: Operator, letter: char, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
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

    /// Puts keys on the tape that select as much from wherever the caret will be.
    fn remember(&mut self, letter: char, ground: &Ground<'_>) {
        let range = self.selected(ground);
        let text = ground.text.get(range).unwrap_or("");
        let (opens, steps, step) = match self.mode {
            Mode::Lines => {
                let lines = text.split('\n').filter(|line| !line.trim().is_empty()).count();
                ("V", lines.saturating_sub(1), "j")
            }
            _ => ("v", text.graphemes(true).count().saturating_sub(1), "l"),
        };
        let steps = if steps > 0 { format!("{steps}{step}") } else { String::new() };
        let keys = format!("{opens}{steps}{letter}");
        self.tape = keys.chars().map(|letter| Stroke::Text(letter.to_string())).collect();
    }

    /// A key of visual mode that is no motion and no operator.
    fn visual(&mut self, letter: char, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        let lines = self.mode == Mode::Lines;
        if letter != 'r' && operator(letter).is_none() {
            self.count = None;
        }
        match letter {
            'v' | 'V' => {
                let wanted = if letter == 'v' { Mode::Visual } else { Mode::Lines };
                if self.mode == wanted {
                    return self.escape(ground, at);
                }
                self.mode = wanted;
                self.select(ground)
            }
            'o' => {
                std::mem::swap(&mut self.anchor, &mut self.head);
                self.select(ground)
            }
            'x' | 's' | 'D' | 'X' | 'C' | 'S' | 'R' | 'Y' | 'u' | 'U' | '~' => {
                if matches!(letter, 'D' | 'X' | 'C' | 'S' | 'R' | 'Y') {
                    self.mode = Mode::Lines;
                }
                let operator = match letter {
                    'x' | 'D' | 'X' => Operator::Delete,
                    's' | 'C' | 'S' | 'R' => Operator::Change,
                    'Y' => Operator::Yank,
                    'u' => Operator::Case(Case::Lower),
                    'U' => Operator::Case(Case::Upper),
                    _ => Operator::Case(Case::Other),
                };
                self.operate(operator, letter, ground, at)
            }
            'r' => {
                self.waits = Some(Waits::Replace);
                Vec::new()
            }
            'J' => {
                let range = self.selected(ground);
                self.remember('J', ground);
                self.mode = Mode::Normal;
                let lines = std::iter::successors(Some(range.start), |at| ground.step(*at, true));
                let count = lines.take_while(|at| *at < range.end).count();
                self.join(ground, range.start, count.max(2))
            }
            'p' | 'P' => {
                let (range, old) = (self.selected(ground), self.register.clone());
                self.mode = Mode::Normal;
                self.changes = true;
                let held = ground.text.get(range.clone()).unwrap_or("").to_owned();
                self.register = Register { text: held, lines, spaced: false };
                let with = if old.lines && !lines { format!("\n{}\n", old.text) } else { old.text };
                vec![Deed::Replace { at: range.start, range, with }]
            }
            ':' => vec![Deed::Palette],
            _ => Vec::new(),
        }
    }

    /// A key of normal mode that is no motion and no operator.
    fn normal(&mut self, letter: char, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        let (line, count) = (ground.line(at), self.count.take());
        let times = count.unwrap_or(1);
        let right = |times: usize| {
            let (to, _) = ground.travel(Motion::Right, Some(times), at, false).unwrap_or((at, Span::Open));
            at..to
        };
        let place = |at: usize| vec![Deed::Place { at, anchor: at }];
        match letter {
            'i' | 'I' | 'a' | 'A' => {
                self.insert(times);
                place(match letter {
                    'i' => at,
                    'I' => ground.indent(at),
                    'a' => right(1).end,
                    _ => line.end,
                })
            }
            'o' | 'O' => {
                self.insert(1);
                let to = if letter == 'o' { line.end } else { line.start };
                vec![Deed::Place { at: to, anchor: to }, Deed::Open { below: letter == 'o' }]
            }
            'x' => self.act(Operator::Delete, right(times), false, ground, at),
            'X' => {
                let (from, _) = ground.travel(Motion::Left, Some(times), at, false).unwrap_or((at, Span::Open));
                self.act(Operator::Delete, from..at, false, ground, at)
            }
            's' => self.act(Operator::Change, right(times), false, ground, at),
            'D' | 'C' => {
                let (to, _) = ground.travel(Motion::End, count, at, false).unwrap_or((line.end, Span::Open));
                let operator = if letter == 'D' { Operator::Delete } else { Operator::Change };
                self.act(operator, at..to, false, ground, at)
            }
            'S' | 'Y' => {
                let operator = if letter == 'S' { Operator::Change } else { Operator::Yank };
                self.operator = Some((operator, count));
                self.operate(operator, letter, ground, at)
            }
            'r' => {
                (self.waits, self.count) = (Some(Waits::Replace), count);
                Vec::new()
            }
            '~' => {
                let range = right(times);
                let with = cased(&ground.text[range.clone()], Case::Other);
                self.changes = true;
                let to = (range.start + with.len()).min(line.end + with.len() - range.len());
                let at = if range.end >= line.end { motion::before(ground.text, line.end).max(line.start) } else { to };
                vec![Deed::Replace { range, with, at }]
            }
            'J' => self.join(ground, at, times.max(2)),
            'p' | 'P' => self.put(letter == 'p', times, ground, at),
            'u' => vec![Deed::Undo(times)],
            '.' => {
                let mut keys = self.last.clone();
                if let Some(count) = count {
                    let digits = keys.iter().take_while(|stroke| is_digit(stroke)).count();
                    keys.splice(..digits, count.to_string().chars().map(|digit| Stroke::Text(digit.to_string())));
                }
                vec![Deed::Again(keys)]
            }
            'v' | 'V' => {
                self.mode = if letter == 'v' { Mode::Visual } else { Mode::Lines };
                (self.anchor, self.head) = (at, at);
                self.select(ground)
            }
            '/' | '?' => vec![Deed::Find],
            'n' | 'N' => vec![Deed::Match { back: letter == 'N' }],
            '*' | '#' => vec![Deed::Star { back: letter == '#' }],
            ':' => vec![Deed::Palette],
            _ => Vec::new(),
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
        _ => return None,
    })
}

fn is_digit(stroke: &Stroke) -> bool {
    match stroke {
        Stroke::Text(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
        Stroke::Key(..) => false,
    }
}
