//! Keys in, text out: each line of tests/data/keystrokes.txt and keystrokes_vim.txt is a note with its carets, keys,
//! and the note afterwards.

use super::*;

const CASES: &str = include_str!("../../data/keystrokes.txt");
const VIM: &str = include_str!("../../data/keystrokes_vim.txt");
/// The marks of a caret and of the other end of its selection.
const CARET: char = '┃';
const ANCHOR: char = '¦';

/// Reads a marked text: the plain text, and each caret with the other end of its selection.
fn read(marked: &str) -> (String, Vec<(usize, usize)>) {
    let marked = marked.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t");
    let (mut text, mut carets, mut anchor, mut open) = (String::new(), Vec::new(), None, None);
    for letter in marked.chars() {
        match letter {
            CARET if anchor.is_some() => carets.push((text.len(), anchor.take().unwrap_or_default())),
            CARET => open = Some((carets.len(), carets.push((text.len(), text.len())))),
            ANCHOR => match open.take() {
                // The caret is at the start of its selection.
                Some((index, ())) if marked.matches(ANCHOR).count() == 1 => carets[index].1 = text.len(),
                _ => anchor = Some(text.len()),
            },
            letter => text.push(letter),
        }
    }
    (text, carets)
}

/// Marks the carets in a text; the inverse of `read`.
fn write(text: &str, carets: &[(usize, usize)]) -> String {
    let mut marks: Vec<(usize, char)> = carets.iter().map(|(at, _)| (*at, CARET)).collect();
    marks.extend(carets.iter().filter(|(at, anchor)| at != anchor).map(|(_, anchor)| (*anchor, ANCHOR)));
    marks.sort_by_key(|(at, _)| *at);
    let mut marked = text.to_owned();
    for (at, mark) in marks.into_iter().rev() {
        marked.insert(at, mark);
    }
    marked.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

/// A single step of the keys.
enum Stroke {
    Event(egui::Event),
    Paste,
}

fn strokes(keys: &str) -> Vec<Stroke> {
    let mut strokes = Vec::new();
    let mut rest = keys.trim();
    while !rest.is_empty() {
        let (word, next) = if let Some(quoted) = rest.strip_prefix('"') {
            let (text, next) = quoted.split_once('"').expect("a closing quote");
            let text = text.replace("\\n", "\n").replace("\\r", "\r").replace("\\q", "\"");
            if text.contains('\n') {
                strokes.push(Stroke::Event(egui::Event::Paste(text)));
            } else {
                strokes.extend(text.chars().map(|letter| Stroke::Event(egui::Event::Text(letter.to_string()))));
            }
            rest = next.trim_start();
            continue;
        } else {
            rest.split_once(' ').unwrap_or((rest, ""))
        };
        rest = next.trim_start();
        let (word, times) =
            word.split_once('*').map_or((word, 1), |(word, times)| (word, times.parse().expect("a count")));
        for _ in 0..times {
            strokes.push(match word {
                "Copy" => Stroke::Event(egui::Event::Copy),
                "Cut" => Stroke::Event(egui::Event::Cut),
                "Paste" => Stroke::Paste,
                "Block" => Stroke::Event(egui::Event::Paste("some words".to_owned())),
                word => Stroke::Event(key(word)),
            });
        }
    }
    strokes
}

fn key(word: &str) -> egui::Event {
    let mut modifiers = NONE;
    let mut name = word;
    while let Some((modifier, rest)) = name.split_once('+') {
        modifiers |= match modifier {
            "Ctrl" => CTRL | Modifiers::CTRL,
            "Shift" => Modifiers::SHIFT,
            "Alt" => Modifiers::ALT,
            other => panic!("not a modifier: {other} in {word}"),
        };
        name = rest;
    }
    let name = match name {
        "BS" => "Backspace",
        "Del" => "Delete",
        "Esc" => "Escape",
        name => name,
    };
    let key = Key::from_name(name).unwrap_or_else(|| panic!("not a key: {word}"));
    egui::Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers }
}

pub(super) fn copied(window: &Driven) -> Option<String> {
    window.output().platform_output.commands.iter().find_map(|command| match command {
        egui::OutputCommand::CopyText(text) => Some(text.clone()),
        _ => None,
    })
}

/// Plays keys on a marked note and returns the marked note afterwards.
fn play(window: &mut Driven, before: &str, keys: &str, modes: bool) -> String {
    let (plain, carets) = read(before);
    let note = window.state().note().expect("a note is shown");
    let delete = text(window).expect("a note is shown").len();
    window.state_mut().send_command(Command::Edit { note, at: 0, delete, insert: plain });
    window.step();
    window.state_mut().place_carets(&carets);
    window.step();
    let mut clip = String::new();
    let mut frame = Vec::new();
    for stroke in strokes(keys) {
        match stroke {
            Stroke::Event(event) => frame.push(event),
            Stroke::Paste => {
                window.input_mut().events.append(&mut frame);
                window.step();
                clip = copied(window).unwrap_or(clip);
                frame.push(egui::Event::Paste(clip.clone()));
            }
        }
    }
    window.input_mut().events.append(&mut frame);
    window.step();
    // Text typed into a field that a key has opened arrives a frame later, and replayed keys may, too.
    if modes && keys.contains([':', '/', '?', '@']) {
        window.run();
    }
    write(&text(window).expect("a note is shown"), &window.state().carets())
}

/// Plays all lines and returns their number. `modes` presses Escape after each.
fn play_all(window: &mut Driven, cases: &str, modes: bool) -> usize {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (number, line) in cases.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<&str> = line.split(" => ").collect();
        let [before, keys, after] = parts.as_slice() else {
            panic!("line {}: three parts with => between", number + 1)
        };
        count += 1;
        let got = play(window, before, keys, modes);
        if modes {
            press(window, NONE, Key::Escape);
        }
        if got != *after {
            wrong.push(format!("line {}: {before} => {keys} =>\n  wanted {after}\n  got    {got}", number + 1));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    count
}

#[test]
fn keys_in_and_text_out() {
    let bench = Bench::new(&[("A.md", "\n")]);
    let count = play_all(&mut bench.opened(), CASES, false);
    assert!(count >= 300, "only {count} cases");
}

#[test]
fn enter_can_begin_a_paragraph() {
    let bench = Bench::new(&[("A.md", "\n")]);
    let mut window = bench.opened();
    choose_enter(&mut window, "New paragraph");
    let cases = r"
on┃e => Enter => on\n\n┃e
one┃\n\ntwo\n => Enter => one\n\n┃\n\ntwo\n
x\n\n# one┃\n => Enter => x\n\n# one\n\n┃\n
one ¦a\n\nb┃ two => Enter => one \n\n┃two
one┃ => Enter*2 => one\n\n\n┃
- one┃ => Enter => - one\n- ┃
one┃ => Shift+Enter => one\n┃
| a | b |┃ => Enter => | a | b |\n┃
one\r\n\r\ntw┃o\r\n => Enter => one\r\n\r\ntw\r\n\r\n┃o\r\n
";
    assert_eq!(play_all(&mut window, cases, false), 9);
}

#[test]
fn lines_of_a_paragraph_stand_below_each_other() {
    let bench = Bench::new(&[("A.md", "zero\n\nfirst\nsecond\n\nthird\n")]);
    let mut window = bench.opened();
    let line = window.get_by_label("third").rect().height();
    let both = window.get_by_label("first\nsecond").rect().height();
    assert!(both > line + 20.0, "{both} is a line more than {line}");
    // A new line is visible before anything is typed on it.
    window.state_mut().place_caret("zero\n\nfirst\nsecond".len());
    window.run();
    let top = |window: &Driven| window.get_by_label("third").rect().top();
    let before = top(&window);
    press(&mut window, NONE, Key::Enter);
    let begun = top(&window);
    type_text(&mut window, "x");
    window.run();
    assert!(begun > before + 0.5 * line);
    assert!((top(&window) - begun).abs() < 1.0, "the text below stays when the line is written on");
    assert_eq!(text(&window).as_deref(), Some("zero\n\nfirst\nsecond\nx\n\nthird\n"));
    window.into_state().close().expect("all is saved");
    assert_eq!(bench.file("A.md"), "zero\n\nfirst\nsecond\nx\n\nthird\n");
}

#[test]
fn keys_of_vim_in_and_text_out() {
    let bench = Bench::new(&[("A.md", "\n")]);
    let mut window = bench.opened();
    choose_preset(&mut window, "Vim");
    choose_enter(&mut window, "New paragraph");
    let count = play_all(&mut window, VIM, true);
    assert!(count >= 100, "only {count} cases");
}

#[test]
fn a_key_costs_the_same_in_a_note_of_ten_thousand_blocks() {
    let cost = |blocks: usize| {
        let note: String = (0..blocks / 2).map(|n| format!("Words {n} of it.\n\n```python\n{n}\n```\n\n")).collect();
        let bench = Bench::new(&[("A.md", note.as_str())]);
        let mut window = bench.opened();
        window.state_mut().place_caret(note.find("Words 2 of it").expect("some words"));
        window.run();
        type_text(&mut window, "first");
        let begun = support::measure::thread_cpu();
        for letter in "These are one hundred letters, or nearly so.".chars() {
            window.input_mut().events.push(egui::Event::Text(letter.to_string()));
            window.step();
        }
        (support::measure::thread_cpu() - begun) / 44
    };
    let (small, large) = (cost(20), cost(10_000));
    // CPU time of a debug build: drawing costs the same in both, counting doesn't.
    assert!(large < small * 4 + Duration::from_millis(10), "{large:?} a key instead of {small:?}");
}
