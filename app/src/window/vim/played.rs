//! Vim's keys on plain texts: each line is a text with its caret, keys, and the text afterwards.

use super::*;

/// `|` is the caret. An empty line between two others only parts them when `parted`.
fn play(before: &str, keys: &str, parted: bool) -> String {
    let at = before.find('|').expect("a caret");
    let mut text = before.replacen('|', "", 1);
    let (mut caret, mut anchor) = (at, at);
    let mut vim = Vim::default();
    for letter in keys.chars() {
        let letter = if letter == '⏎' { '\n' } else { letter };
        feed(&mut vim, letter, &mut text, &mut caret, &mut anchor, parted);
    }
    text.insert(caret, '|');
    text
}

fn feed(vim: &mut Vim, letter: char, text: &mut String, caret: &mut usize, anchor: &mut usize, parted: bool) {
    vim.record(Stroke::Text(letter.to_string()));
    if vim.mode() == Mode::Insert && letter != '^' {
        text.insert(*caret, letter);
        *caret += letter.len_utf8();
        *anchor = *caret;
        return;
    }
    let press = match letter {
        // Escape; `^` itself is tested with the keys of the window.
        '^' => Press::Escape,
        letter => Press::Letter(letter),
    };
    let copy = text.clone();
    let stands = |at: usize| {
        let line = motion::line_around(&copy, at);
        !(parted && line.is_empty() && line.start > 0)
    };
    for deed in vim.press(press, &Ground { text: &copy, stands: &stands }, *caret, *anchor) {
        match deed {
            Deed::Place { at, anchor: other } => (*caret, *anchor) = (at, other),
            Deed::Replace { range, with, at } => {
                text.replace_range(range, &with);
                (*caret, *anchor) = (at, at);
            }
            Deed::Left => {
                let start = motion::line_around(text, *caret).start;
                *caret = if *caret > start { motion::before(text, *caret) } else { *caret };
                *anchor = *caret;
            }
            Deed::Type(keys) => {
                for key in keys {
                    let Stroke::Text(typed) = key else { continue };
                    text.insert_str(*caret, &typed);
                    *caret += typed.len();
                }
            }
            Deed::Again(keys) => {
                vim.replays = true;
                for key in keys {
                    let Stroke::Text(typed) = key else { continue };
                    typed.chars().for_each(|letter| feed(vim, letter, text, caret, anchor, parted));
                }
                vim.replays = false;
            }
            Deed::Open { .. }
            | Deed::Shift { .. }
            | Deed::Undo(_)
            | Deed::Redo(_)
            | Deed::Find
            | Deed::Match { .. } => {}
            Deed::Star { .. } | Deed::Rows { .. } | Deed::Half { .. } | Deed::Palette => {}
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
            ("|one two", "yiwwviwp", "one |one"),
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
    let keys = "hjkl0$wbeWBEGg{}fFtT;,%dcyxsrJpPuoOiIaAvV~><'\"()p[]{}3.^^iw⏎é👩";
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
