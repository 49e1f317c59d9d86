//! Tests of Vim keys on plain text: each case is a text with its caret, the keys, and the text afterwards.

use super::*;
use eframe::egui;
use egui::{Key, Modifiers};
use std::ops::Range;

/// Plays keys on a text; `|` is the caret. With `parted`, empty lines are separators where no caret can be.
fn play(before: &str, keys: &str, parted: bool) -> String {
    let at = before.find('|').expect("a caret");
    let mut bed = Bed { text: before.replacen('|', "", 1), caret: at, anchor: at, more: Vec::new(), parted };
    let mut vim = VimMachine::default();
    for letter in keys.chars() {
        let control = |key: Key| VimStroke::Key(key, Modifiers::COMMAND);
        bed.feed(
            &mut vim,
            match letter {
                '⏎' => VimStroke::Text("\n".to_owned()),
                // `^` stands for Escape here; the motion `^` is tested with the window's keys.
                '^' => VimStroke::Key(Key::Escape, Modifiers::NONE),
                'ⓥ' => control(Key::V),
                'ⓐ' => control(Key::A),
                'ⓧ' => control(Key::X),
                'ⓞ' => control(Key::O),
                'ⓘ' => control(Key::I),
                letter => VimStroke::Text(letter.to_string()),
            },
        );
    }
    bed.text.insert(bed.caret, '|');
    bed.text
}

/// A text and carets on which a test performs Vim actions.
struct Bed {
    text: String,
    caret: usize,
    anchor: usize,
    more: Vec<usize>,
    parted: bool,
}

impl Bed {
    fn feed(&mut self, vim: &mut VimMachine, stroke: VimStroke) {
        vim.record(stroke.clone());
        let press = match &stroke {
            VimStroke::Text(text) if vim.mode().is_typing() => return self.write(vim.mode(), text),
            VimStroke::Text(text) => VimKey::Letter(text.chars().next().expect("a letter")),
            VimStroke::Key(Key::V, _) => VimKey::Block,
            VimStroke::Key(Key::A, _) => VimKey::Count { down: false },
            VimStroke::Key(Key::X, _) => VimKey::Count { down: true },
            VimStroke::Key(Key::O, _) => VimKey::Jump { back: true },
            VimStroke::Key(Key::I, _) => VimKey::Jump { back: false },
            VimStroke::Key(..) => VimKey::Escape,
        };
        let (copy, parted) = (self.text.clone(), self.parted);
        let stands = |at: usize| {
            let line = motion::line_around(&copy, at);
            !(parted && line.is_empty() && line.start > 0)
        };
        for deed in vim.handle_key(press, &BufferView { text: &copy, stands: &stands }, self.caret, self.anchor) {
            self.deed(vim, deed);
        }
    }

    /// Types text at every caret.
    fn write(&mut self, mode: VimMode, typed: &str) {
        let mut carets: Vec<usize> = std::iter::once(self.caret).chain(self.more.iter().copied()).collect();
        for index in 0..carets.len() {
            let at = carets[index];
            let over = mode == VimMode::Replace && at < motion::line_around(&self.text, at).end;
            let end = if over { motion::next_grapheme(&self.text, at) } else { at };
            self.text.replace_range(at..end, typed);
            carets.iter_mut().filter(|other| **other >= at).for_each(|other| *other += typed.len());
            carets.iter_mut().filter(|other| **other > at + typed.len()).for_each(|other| *other -= end - at);
        }
        (self.caret, self.anchor) = (carets[0], carets[0]);
        self.more = carets.split_off(1);
    }

    fn edit(&mut self, vim: &mut VimMachine, range: Range<usize>, with: &str) {
        vim.places.shift_marks(range.start, range.len(), with.len());
        let end = range.start + with.len();
        let last = end.saturating_sub(1).max(range.start);
        vim.places.record_change(range.start, last, last, false);
        self.text.replace_range(range, with);
    }

    fn deed(&mut self, vim: &mut VimMachine, deed: VimAction) {
        match deed {
            VimAction::Place { at, anchor } => {
                self.more.clear();
                (self.caret, self.anchor) = (at, anchor);
            }
            VimAction::Replace { range, with, at } => {
                self.edit(vim, range, &with);
                (self.caret, self.anchor) = (at, at);
            }
            VimAction::Splices { edits, at } => {
                for (range, with) in edits.into_iter().rev() {
                    self.edit(vim, range, &with);
                }
                (self.caret, self.anchor) = (at, at);
            }
            VimAction::Carets(places) => {
                (self.caret, self.anchor) = (places[0], places[0]);
                self.more = places[1..].to_vec();
            }
            VimAction::Select(places) => (self.caret, self.anchor) = places[0],
            VimAction::Left => {
                let start = motion::line_around(&self.text, self.caret).start;
                self.caret =
                    if self.caret > start { motion::previous_grapheme(&self.text, self.caret) } else { self.caret };
                self.anchor = self.caret;
            }
            VimAction::Type(keys) => {
                for key in keys {
                    let VimStroke::Text(typed) = key else { continue };
                    self.write(VimMode::Insert, &typed);
                }
            }
            VimAction::Again(keys) => {
                vim.replays = true;
                keys.into_iter().for_each(|key| self.feed(vim, key));
                vim.replays = false;
            }
            VimAction::Play { keys, times } => {
                for key in std::iter::repeat_n(keys, times).flatten() {
                    self.feed(vim, key);
                    if vim.failed {
                        break;
                    }
                }
            }
            VimAction::Open { .. }
            | VimAction::Shift { .. }
            | VimAction::Indent(_)
            | VimAction::Undo(_)
            | VimAction::Redo(_) => {}
            VimAction::Find { .. }
            | VimAction::Match { .. }
            | VimAction::Star { .. }
            | VimAction::Rows { .. }
            | VimAction::Page { .. } => {}
            VimAction::Seat { .. }
            | VimAction::Scroll { .. }
            | VimAction::Screen { .. }
            | VimAction::Copy(_)
            | VimAction::Fetch { .. } => {}
            VimAction::Ex { .. }
            | VimAction::ExAgain
            | VimAction::Run(_)
            | VimAction::Marked(_)
            | VimAction::Far { .. } => {}
        }
    }
}

#[track_caller]
fn check(table: &[(&str, &str, &str)], parted: bool) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(before, keys, after)| {
            let got = play(before, keys, parted);
            (got != *after).then(|| format!("{before:?} {keys}: wanted {after:?}, got {got:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn motions() {
    check(
        &[
            ("|one two", "l", "o|ne two"),
            ("one tw|o", "l", "one tw|o"),
            ("one tw|o", "3h", "one| two"),
            ("|one\ntwo\nthree", "j", "one\n|two\nthree"),
            ("one tw|o\nx\nthree four", "jj", "one two\nx\nthree |four"),
            ("one tw|o\nx\nthree four", "$jj", "one two\nx\nthree fou|r"),
            ("|one, two", "w", "one|, two"),
            ("|one, two", "W", "one, |two"),
            ("|one\n\ntwo", "w", "one\n|\ntwo"),
            ("|one\n  two", "w", "one\n  |two"),
            ("on|e", "w", "on|e"),
            ("|one", "w", "on|e"),
            ("one two thr|ee", "2b", "one |two three"),
            ("one.two thr|ee", "BB", "|one.two three"),
            ("|one two", "e", "on|e two"),
            ("on|e two.", "2e", "one two|."),
            ("|one.x two", "E", "one.|x two"),
            ("one tw|o", "ge", "on|e two"),
            ("  one| two", "0", "|  one two"),
            ("one |two", "$", "one tw|o"),
            ("one\ntw|o\nthree", "gg", "|one\ntwo\nthree"),
            ("|one\ntwo\nthree\n", "G", "one\ntwo\n|three\n"),
            ("|one\ntwo\nthree\n", "2G", "one\n|two\nthree\n"),
            ("|one two one", "fo", "one tw|o one"),
            ("|one two one", "2fo", "one two |one"),
            ("|one two one", "to", "one t|wo one"),
            ("|one two one", "fo;", "one two |one"),
            ("|one two one", "fo;,", "one tw|o one"),
            ("|one two one", "to;", "one two| one"),
            ("one two on|e", "Fo", "one two |one"),
            ("one two on|e", "To", "one two o|ne"),
            ("|a(b(c)d)", "%", "a(b(c)d|)"),
            ("a(b(c)d|)", "%", "a|(b(c)d)"),
            ("|a\nb\n\nc\n\nd", "}", "a\nb\n|\nc\n\nd"),
            ("a\nb\n\nc\n\n|d", "{", "a\nb\n\nc\n|\nd"),
            ("|日本 語", "w", "日本 |語"),
            ("|👩‍👩‍👧x", "l", "👩‍👩‍👧|x"),
            ("|a b  ", "g_", "a |b  "),
        ],
        false,
    );
}

#[test]
fn operators() {
    check(
        &[
            ("one |two three", "dw", "one |three"),
            ("one |two\nthree", "dw", "one| \nthree"),
            ("|one two three", "2dw", "|three"),
            ("|one two three", "d2w", "|three"),
            ("one |two three", "de", "one | three"),
            ("one |two", "db", "|two"),
            ("one |two three", "D", "one| "),
            ("one |two three", "d0", "|two three"),
            ("one\n|two\nthree", "dd", "one\n|three"),
            ("one\ntwo\n|three", "dd", "one\n|two"),
            ("one\ntwo\n|three\n", "dd", "one\n|two\n"),
            ("|one\ntwo\nthree", "2dd", "|three"),
            ("|one\ntwo\nthree", "dj", "|three"),
            ("one\ntwo\n|three", "dk", "|one"),
            ("one\n|two\nthree", "dgg", "|three"),
            ("one\n|two\nthree", "dG", "|one"),
            ("|one two", "cwx^", "|x two"),
            ("|one two", "cex^", "|x two"),
            ("one t|wo three", "ciwx^", "one |x three"),
            ("one t|wo three", "caw^", "one| three"),
            ("one t|wo three", "daw", "one |three"),
            ("one two t|hree", "daw", "one tw|o"),
            ("  one| two", "ccx^", "  |x"),
            ("one |two", "Cx^", "one |x"),
            ("|one two", "yiwP", "on|eone two"),
            ("|one\ntwo", "yyp", "one\n|one\ntwo"),
            ("|one\ntwo", "yyP", "|one\none\ntwo"),
            ("|one\ntwo\nthree", "ddp", "two\n|one\nthree"),
            ("|one\ntwo\n", "ddp", "two\n|one\n"),
            ("|ab", "xp", "b|a"),
            ("|abc", "2x", "|c"),
            ("ab|c", "x", "a|b"),
            ("ab|c", "X", "a|c"),
            ("|abc", "rx", "|xbc"),
            ("|abc", "2rx", "x|xc"),
            ("|abc", "9rx", "|abc"),
            ("|abc", "sx^", "|xbc"),
            ("|abc", "~~", "AB|c"),
            ("|one\n  two", "J", "one| two"),
            ("|one\ntwo\nthree", "3J", "one two| three"),
            ("|one two", "gUiw", "|ONE two"),
            ("|ONE two", "guu", "|one two"),
            ("a (b |c) d", "di(", "a (|) d"),
            ("a (b |c) d", "da(", "a | d"),
            ("a |(b c) d", "ci(x^", "a (|x) d"),
            ("a (b (c |d) e) f", "d2i(", "a (|) f"),
            ("say \"a |b\" x", "di\"", "say \"|\" x"),
            ("say \"a |b\" x", "da\"", "say |x"),
            ("sa|y \"a b\" x", "ci\"y^", "say \"|y\" x"),
            ("one, |two, three", "dt,", "one, |, three"),
            ("one, |two, three", "df,", "one, | three"),
            ("a(|b(c)d)e", "d%", "a(|d)e"),
            ("a\n|b\nc\n\nd", "dip", "|\nd"),
            ("a\n|b\nc\n\nd", "dap", "|d"),
            ("|a\nb\n\nd", "d}", "|\nd"),
        ],
        false,
    );
}

#[test]
fn counts_insertion_and_again() {
    check(
        &[
            ("|one", "ix^", "|xone"),
            ("|one", "ax^", "o|xne"),
            ("o|ne", "Ax^", "one|x"),
            ("  o|ne", "Ix^", "  |xone"),
            ("|", "3iab^", "ababa|b"),
            ("|one two three", "dw.", "|three"),
            ("|one two three four", "dw2.", "|four"),
            ("|one two three", "cwx^w.", "x |x three"),
            ("|one\ntwo\nthree", "dd.", "|three"),
            ("|abcdef", "x..", "|def"),
            ("|one\ntwo", "Ax^j.", "onex\ntwo|x"),
            ("|abcdefgh", "vlld.", "|gh"),
        ],
        false,
    );
}

#[test]
fn visual_modes() {
    check(
        &[
            ("|one two", "vd", "|ne two"),
            ("|one two", "ved", "| two"),
            ("one tw|o", "vbd", "one| "),
            ("one |two three", "viwd", "one | three"),
            ("one\n|two\nthree", "Vd", "one\n|three"),
            ("|one\ntwo\nthree", "Vjd", "|three"),
            ("|one two", "vecx^", "|x two"),
            ("|one two", "veU", "|ONE two"),
            ("|one two", "vey$p", "one twoon|e"),
            ("|one two", "yiwwviwp", "one on|e"),
            ("|abcd", "vlrx", "|xxcd"),
            ("|one\ntwo\nthree", "VjJ", "one| two\nthree"),
            ("a (b |c) d", "vi(d", "a (|) d"),
            ("one |two", "vhod", "one|wo"),
            ("|one two", "ve^x", "on| two"),
        ],
        false,
    );
}

#[test]
fn sentences_and_places() {
    check(
        &[
            ("|One two. Three four! Five.", ")", "One two. |Three four! Five."),
            ("|One two. Three four! Five.", "2)", "One two. Three four! |Five."),
            ("One two. Three |four! Five.", "(", "One two. |Three four! Five."),
            ("One two. Three |four! Five.", "2(", "|One two. Three four! Five."),
            ("One two. |Three four! Five.", "dis", "One two. | Five."),
            ("One two. |Three four! Five.", "das", "One two. |Five."),
            ("One. Two (three.) |Four", "(", "One. |Two (three.) Four"),
            ("On|e. Two\n\nthree", "d)", "On|Two\n\nthree"),
            ("One\n|two. Three", "cisx^", "|x Three"),
            ("One|.5 is more. Two", ")", "One.5 is more. |Two"),
            ("o|ne\ntwo\nthree", "majj'a", "|one\ntwo\nthree"),
            ("o|ne\ntwo\nthree", "majj`a", "o|ne\ntwo\nthree"),
            ("o|ne\ntwo\nthree", "majjd'a", "|"),
            ("o|ne two three", "maed`a", "o|e two three"),
            ("o|ne two three", "mawd`a", "o|two three"),
            ("one two thr|ee", "ma0xx`ax", "e two thr|e"),
            ("o|ne\ntwo\nthree", "G``", "o|ne\ntwo\nthree"),
            ("o|ne\ntwo\nthree", "G''", "|one\ntwo\nthree"),
            ("one\nt|wo\nthree", "GggⓞⓞⓘD", "one\ntwo\n|"),
            ("o|ne\ntwo\nthree", "GⓞD", "|o\ntwo\nthree"),
            ("|one\ntwo\nthree", "xjjg;x", "|e\ntwo\nthree"),
            ("|one\ntwo\nthree", "Ax^jjgiy^", "onex|y\ntwo\nthree"),
            ("|one two", "ix^wgiy^", "x|yone two"),
            ("|one two three", "wviw^0gvd", "one | three"),
            ("|one\ntwo\nthree", "jV^gggvd", "one\n|three"),
            ("|one two", "yiww`[", "|one two"),
            ("|one two", "yiww`]", "on|e two"),
            ("|one two three", "wviw^`<ix^", "one |xtwo three"),
            ("|one two three", "wviw^`>ax^", "one two|x three"),
            ("|a [b {c} d] e", "f{%x", "a [b {c| d] e"),
        ],
        false,
    );
}

#[test]
fn registers() {
    check(
        &[
            ("|one\ntwo\n", "\"ayyj\"byyk\"bP", "|two\none\ntwo\n"),
            ("|one\ntwo\n", "\"ayyjyy\"ap", "one\ntwo\n|one\n"),
            ("|one\ntwo\n", "\"ayyj\"Ayy\"ap", "one\ntwo\n|one\ntwo\n"),
            ("|one two", "\"ayiww\"Ayiw\"aP", "one onetw|otwo"),
            ("|one two", "\"ayiww\"AyyP", "|one\none two\none two"),
            ("|one two", "yiwwdiw\"0P", "oneon|e "),
            ("|one\ntwo\nthree\n", "dddd\"1p\"2p", "three\ntwo\n|one\n"),
            ("|one\ntwo\nthree\n", "dddd\"1pkk\"2P", "|one\nthree\ntwo\n"),
            ("|one\ntwo\nthree\n", "ddddk\"1P..", "|one\ntwo\nthree\n"),
            ("|one two", "yiww\"_diwp", "one on|e"),
            ("|one two", "yiww\"_dd", "|"),
            ("|one two three", "dwyw\"-P", "one| two three"),
            ("|one two", "\"qyiw\"qp", "oon|ene two"),
            ("|one two", "\"zp", "|one two"),
            ("|one two", "yiwwvp", "one on|ewo"),
            ("|one two three", "yiwwviwPwviwp", "one one on|e"),
            ("|abc", "x3p", "baa|ac"),
            ("|abc", "xx\"-p", "c|b"),
            ("|one two", "\"ax.\"ap", "e|n two"),
        ],
        false,
    );
}

#[test]
fn macros() {
    check(
        &[
            ("|one\ntwo\nthree", "qaA!^jq@a", "one!\ntwo!\nthr|ee"),
            ("|one\ntwo\nthree", "qaA!^jq@a@@", "one!\ntwo!\nthree|!"),
            ("|one\ntwo\nthree\nfour", "qaA!^jq2@a", "one!\ntwo!\nthree!\nfou|r"),
            ("|one\ntwo\nthree\nfour", "qaA!^jq99@a", "one!\ntwo!\nthree!\nfour|!"),
            ("|one two three", "qadwq@a", "|three"),
            ("|one two three four", "qadwqqAxq@a", "|hree four"),
            ("|one two", "qqxq\"qp", "n|xe two"),
            ("|dw one two", "\"ayiw0@a", "|one two"),
            ("|a b c", "qafxxq@a", "| b c"),
            ("|one\ntwo", "qacwx^q@a", "|x\ntwo"),
            ("|one two", "@z", "|one two"),
            ("|1\n", "qayypⓐq3@a", "1\n2\n3\n4\n|5\n"),
            ("|abcdef", "qaxq@a..", "|ef"),
        ],
        false,
    );
}

#[test]
fn blocks() {
    check(
        &[
            ("|abc\nabc\nabc", "ⓥjjld", "|c\nc\nc"),
            ("a|bc\nabc\nabc", "ⓥjjIx^", "a|xbc\naxbc\naxbc"),
            ("a|bc\nabc\nabc", "ⓥjjAx^", "a|bxc\nabxc\nabxc"),
            ("a|bc\nabcde\na", "ⓥjj$Ax^", "a|bcx\nabcdex\nax"),
            ("a|bc\na\nabc", "ⓥjjIx^", "a|xbc\nax\naxbc"),
            ("a|bc\na\nabc", "ⓥjjAx^", "a|bxc\na x\nabxc"),
            ("a|bc\nabc", "ⓥjcxy^", "ax|yc\naxyc"),
            ("a|bcd\nabcd", "ⓥjsx^", "a|xcd\naxcd"),
            ("a|bc\nabc\nabc", "ⓥjjrx", "a|xc\naxc\naxc"),
            ("a|bc\nabc", "ⓥj$d", "|a\na"),
            ("a|bc\nabc", "ⓥjD", "|a\na"),
            ("a|bc\nabc", "ⓥjCx^", "a|x\nax"),
            ("a|bc\nabc", "ⓥjU", "a|Bc\naBc"),
            ("a|bc\nabc", "ⓥjy$p", "abc|b\nabcb"),
            ("a|bc\nabc", "ⓥjy0P", "|babc\nbabc"),
            ("a|bc\nabc\nx", "ⓥjlyjjp", "abc\nabc\nx|bc\n bc"),
            ("ab|c\nabc", "ⓥjhd", "|a\na"),
            ("a|bc\nabc\nabc", "ⓥjdj.", "ac\n|a\nac"),
            ("a|bc\nabc\nabc\nabc", "ⓥjrxjj.", "axc\naxc\na|xc\naxc"),
            ("a|bc\nabc\nabc\nabc", "ⓥjIx^jj.", "axbc\naxbc\na|xbc\naxbc"),
            ("|abcd\nabcd", "ⓥjlOd", "|cd\ncd"),
            ("|abcd\nabcd", "ⓥjlohd", "|cd\ncd"),
            ("|abc\nabc", "vjlⓥd", "|c\nc"),
            ("|abc\nabc\nabc", "ⓥj^gvjd", "|bc\nbc\nbc"),
            ("|abcd\nab\nabcd", "llⓥjjd", "ab|d\nab\nabd"),
            ("|one two\none two", "ⓥjex", "| two\n two"),
        ],
        false,
    );
}

#[test]
fn numbers_joins_and_overwriting() {
    check(
        &[
            ("|a 9 b", "ⓐ", "a 1|0 b"),
            ("|a 9 b", "5ⓐ", "a 1|4 b"),
            ("|a 9 b", "10ⓧ", "a -|1 b"),
            ("|a -1 b", "ⓐ", "a |0 b"),
            ("|a -5 b", "ⓐ", "a -|4 b"),
            ("|x007", "ⓐ", "x00|8"),
            ("|x099", "ⓐ", "x10|0"),
            ("|x-09", "ⓧ", "x-1|0"),
            ("|0xff", "ⓐ", "0x10|0"),
            ("|0x0f", "ⓧ", "0x0|e"),
            ("1 |2 3", "ⓐ", "1 |3 3"),
            ("1 2| 3", "ⓐ", "1 2 |4"),
            ("1|2 3", "ⓐ", "1|3 3"),
            ("|abc", "ⓐx", "|bc"),
            ("|1\n1\n1", "jVjⓐ", "1\n|2\n2"),
            ("|1\n1\n1", "ⓥj5ⓐ", "|6\n6\n1"),
            ("|1\n", "ⓐ.", "|3\n"),
            ("|one\n  two", "gJ", "one|  two"),
            ("|one\ntwo\nthree", "3gJ", "onetwo|three"),
            ("|one\ntwo\nthree", "VGgJ", "onetwo|three"),
            ("|one\ntwo\nthree", "VGJ", "one two| three"),
            ("|one\ntwo\nthree\nfour", "J.", "one two| three\nfour"),
            ("|one\n\ntwo", "JJ", "one| two"),
            ("|one two", "Rxy^", "x|ye two"),
            ("on|e", "Rxyz^", "onxy|z"),
            ("|one two", "Rx^w.", "xne |xwo"),
            ("|one two", "wgUiw~", "one t|WO"),
            ("|one two", "g~~", "|ONE TWO"),
            ("|one two", "gUU", "|ONE TWO"),
            ("|One Two", "guw", "|one Two"),
            ("|one two", "g~w", "|ONE two"),
            ("|one\ntwo", "gUj", "|ONE\nTWO"),
            ("|a\nb\nc\nd", "dk", "|a\nb\nc\nd"),
            ("|a b c", "dfc", "|"),
            ("a b |c", "dFa", "|c"),
            ("|a b c", "dtc", "|c"),
            ("a b |c", "dTa", "a|c"),
            ("|aXbXc", "fX;rY,rZ", "a|ZbYc"),
            ("|one two three", "vwy", "|one two three"),
            ("|a [b] (c) {d} <e>", "f[ci[x^", "a [|x] (c) {d} <e>"),
            ("a [|b] (c)", "ca[x^", "a |x (c)"),
            ("a {|b} (c)", "di{", "a {|} (c)"),
            ("a <|b> (c)", "di<", "a <|> (c)"),
            ("a '|b' c", "di'", "a '|' c"),
            ("a `|b` c", "ya`P", "a `b`| `b` c"),
            ("|a b-c d", "wdaW", "a |d"),
            ("a\n|b\nc\n\nd", "cipx^", "|x\n\nd"),
            ("|a\nb\n\nc\nd", "vapd", "|c\nd"),
            ("|one two three", "yw2wP", "one two one| three"),
            ("|one two", "ea!^", "one|! two"),
            ("|a\nb", "yyjp", "a\nb\n|a"),
            ("one |two", "y0P", "one| one two"),
            ("|one two three", "d2e", "| three"),
            ("|one-two three", "dE", "| three"),
            ("one two |three", "dB", "one |three"),
            ("|one\ntwo", "yj", "|one\ntwo"),
            ("one\nt|wo", "yk", "o|ne\ntwo"),
            ("|one\ntwo", "D.", "|\ntwo"),
            ("|one\ntwo", "Dj.", "\n|"),
            ("|one two", "Cx^", "|x"),
            ("|one two\nthree", "Sx^", "|x\nthree"),
            ("|one two", "3rx", "xx|x two"),
        ],
        false,
    );
}

#[test]
fn lines_that_part_go_with_what_they_part() {
    check(
        &[
            ("|one\n\ntwo", "j", "one\n\n|two"),
            ("one\n\n|two", "k", "|one\n\ntwo"),
            ("|one\n\ntwo\n\nthree", "dd", "|two\n\nthree"),
            ("one\n\ntwo\n\n|three\n", "dd", "one\n\n|two\n"),
            ("|one\n\ntwo\n\nthree\n", "ddp", "two\n\n|one\n\nthree\n"),
            ("|one\n\ntwo\n", "ddp", "two\n\n|one\n"),
            ("one\n\n|two\n", "ddP", "|two\n\none\n"),
            ("|one\n\ntwo", "yyp", "one\n\n|one\n\ntwo"),
            ("|one\n\ntwo\n\nthree", "2dd", "|three"),
            ("|one\n\ntwo", "J", "one| two"),
            ("|one\n\ntwo\n\nthree", "}", "one\n\n|two\n\nthree"),
            ("one\n\ntwo\n\nthr|ee", "{{", "one\n\n|two\n\nthree"),
            ("|one\n\ntwo\n\nthree\n", "G", "one\n\ntwo\n\n|three\n"),
            ("|one\n\ntwo\n\nthree\n", "2G", "one\n\n|two\n\nthree\n"),
            ("|one\n\ntwo", "w", "one\n\n|two"),
        ],
        true,
    );
}

#[test]
fn no_key_breaks_it() {
    let keys = "hjkl0$wbeWBEGg{}fFtT;,%dcyxsrJpPuoOiIaAvV~><'\"()p[]{}3.^^iw⏎é👩ⓥⓥⓐⓧⓞⓘmq@`=RzsH*ab+_";
    let texts = ["", "\n", "|", "é👩‍👩‍👧 (a \"b\")\r\n\r\nx\n", "a\n\n\n- b\n\n"];
    let mut seed = 7_usize;
    for text in texts {
        for parted in [false, true] {
            for _ in 0..200 {
                let letters: Vec<char> = keys.chars().collect();
                let pressed: String = (0..40)
                    .map(|_| {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        letters[(seed >> 33) % letters.len()]
                    })
                    .collect();
                let got = play(&format!("|{}", text.replace('|', "")), &pressed, parted);
                assert!(got.contains('|'), "{pressed}");
            }
        }
    }
}
