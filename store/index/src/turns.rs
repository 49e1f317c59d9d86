//! Reads conversations in notes: which lines begin a turn, who speaks, and on which day. Knows the forms of Markdown
//! (`**Ann** (2023-05-08): …`), of exported chats (`[08/05/2023, 13:56] Ann: …`) and of plain text (`Ann: …`).

use crate::dates;
use std::collections::BTreeSet;

/// Maximum length of a speaker's name, and its number of words.
const MAX_SPEAKER_BYTES: usize = 40;
const MAX_SPEAKER_WORDS: usize = 4;
/// Number of turns that make a conversation, and how often each speaker speaks in it on average.
const MIN_TURNS: usize = 4;
const MIN_TURNS_PER_SPEAKER: usize = 2;

/// The begin of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnStart {
    /// The speaker's name.
    pub speaker: String,
    /// The day of the turn, in milliseconds since 1970, if the line names it.
    pub said: Option<i64>,
    /// Whether the line names a day or time, or sets the name in bold.
    is_marked: bool,
}

/// Returns who speaks from this line on, if it begins a turn.
pub fn parse_turn_start(line: &str) -> Option<TurnStart> {
    let line = line.trim_start_matches(['>', ' ', '\t']);
    let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim_start();
    let line = line.trim_start_matches(['\u{200e}', '\u{feff}']);
    let start = |name: &str, date: &str, is_marked: bool| {
        let speaker = speaker_name(name)?;
        Some(TurnStart { speaker, said: date_in(date), is_marked })
    };
    // `**Ann** (2023-05-08): …`, `**Ann:** …`
    if let Some(rest) = line.strip_prefix("**").or_else(|| line.strip_prefix("__")) {
        let (name, rest) = rest.split_once("**").or_else(|| rest.split_once("__"))?;
        if let Some(name) = name.trim_end().strip_suffix(':') {
            let (name, date) = split_date(name);
            return start(name, date, true);
        }
        let (date, _) = rest.split_once(':').filter(|_| !rest.starts_with(':')).unwrap_or(("", rest));
        // Times have colons, too.
        let date = rest.split_once("):").filter(|_| rest.trim_start().starts_with('(')).map_or(date, |(date, _)| date);
        let is_date = date.trim().is_empty() || split_date(&format!(" {}", date.trim())).0.trim().is_empty();
        return (rest.contains(':') && is_date).then(|| start(name, date, true)).flatten();
    }
    // `[08/05/2023, 13:56] Ann: …`, `[13:56] <Ann> …`
    if let Some((time, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if !is_time(time) {
            return None;
        }
        let rest = rest.trim_start();
        let name = match rest.strip_prefix('<') {
            Some(rest) => rest.split_once('>')?.0,
            None => rest.split_once(':')?.0,
        };
        return start(name, time, true);
    }
    if let Some((name, _)) = line.strip_prefix('<').and_then(|rest| rest.split_once("> ")) {
        return start(name, "", true).filter(|_| !name.contains(['/', '=', '"']));
    }
    // `08/05/2023, 13:56 - Ann: …`, `2023-05-08 13:56 Ann: …`
    if line.starts_with(|c: char| c.is_ascii_digit()) {
        let end = line.find(|c: char| c.is_alphabetic() && !"apmAPMTZ".contains(c)).unwrap_or(line.len());
        let time = line[..end].trim_end_matches(|c: char| c.is_alphabetic());
        let rest = line[time.len()..].trim_start_matches(['-', '–', ' ', '\u{202f}']);
        let rest = ["AM ", "PM ", "am ", "pm "].iter().find_map(|half| rest.strip_prefix(half)).unwrap_or(rest);
        let (name, _) = rest.trim_start_matches(['-', '–', ' ']).split_once(": ")?;
        return is_time(time).then(|| start(name, time, true)).flatten();
    }
    // `Ann (8 May 2023): …`, `Ann: …`
    let at = line.find(": ").or_else(|| line.ends_with(':').then(|| line.len() - 1))?;
    let (name, date) = split_date(&line[..at]);
    if !name.starts_with(|c: char| c.is_uppercase() || (c.is_alphabetic() && !c.is_lowercase())) {
        return None;
    }
    start(name, date, !date.is_empty())
}

/// Whether lines are a conversation: enough of them begin turns, and speakers speak more than once.
pub fn is_conversation<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let lines = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let mut count = TurnCount::default();
    lines.for_each(|line| count.add(parse_turn_start(line)));
    count.is_conversation()
}

/// Returns the speaker of each message, if the messages together are a conversation and begin with names: `Ann: …`.
pub fn message_speakers(messages: &[&str]) -> Vec<Option<String>> {
    let speaker = |message: &&str| message.split_once(": ").and_then(|(name, _)| speaker_name(name));
    let mut count = TurnCount::default();
    let named = |speaker: String| TurnStart { speaker, said: None, is_marked: false };
    messages.iter().for_each(|message| count.add(speaker(message).map(named)));
    let is_conversation = count.is_conversation();
    messages.iter().map(|message| speaker(message).filter(|_| is_conversation)).collect()
}

/// Lines that begin turns and lines that don't.
#[derive(Default)]
struct TurnCount {
    turns: usize,
    marked: usize,
    others: usize,
    speakers: BTreeSet<String>,
}

impl TurnCount {
    fn add(&mut self, start: Option<TurnStart>) {
        match start {
            Some(start) => {
                self.turns += 1;
                self.marked += usize::from(start.is_marked);
                self.speakers.insert(start.speaker);
            }
            None => self.others += 1,
        }
    }

    fn is_conversation(&self) -> bool {
        // Without a mark, `Note: …` looks like a turn, so most lines must be turns.
        let is_clear = 2 * self.marked >= self.turns || self.turns >= self.others;
        let often = self.turns >= MIN_TURNS_PER_SPEAKER * self.speakers.len();
        self.turns >= MIN_TURNS && often && self.speakers.len() > 1 && is_clear
    }
}

/// Returns the first full date of a text, in milliseconds since 1970.
pub fn date_in(text: &str) -> Option<i64> {
    dates::first_full_date(text).and_then(|day| day.checked_mul(dates::DAY_MS))
}

/// Splits a name from the date after it: `Ann (8 May 2023)`, `Ann, 2023-05-08`.
fn split_date(text: &str) -> (&str, &str) {
    let open = text.find(['(', '[', ',', '—', '–']).or_else(|| text.find(|c: char| c.is_ascii_digit()));
    match open {
        Some(at) if is_time(&text[at..]) || date_in(&text[at..]).is_some() => (text[..at].trim_end(), &text[at..]),
        Some(_) | None => (text, ""),
    }
}

/// Whether a text is a date or a time of day and nothing else.
fn is_time(text: &str) -> bool {
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    (3..=17).contains(&digits) && (letters <= 4 || date_in(text).is_some()) && text.len() <= 40
}

/// Returns a speaker's name, if a text can be one.
fn speaker_name(text: &str) -> Option<String> {
    let name = text.trim().trim_matches(['*', '_', '@', '~', '\u{202a}', '\u{202c}']).trim();
    let words = name.split_whitespace().count();
    let fits = name.len() <= MAX_SPEAKER_BYTES
        && (1..=MAX_SPEAKER_WORDS).contains(&words)
        && name.chars().any(char::is_alphabetic)
        && name.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || "'’.-_#()&+".contains(c));
    fits.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn turns_are_read_in_the_forms_of_chats() {
        let day = date_in("2023-05-08");
        for (line, speaker, said) in [
            ("**Ann** (2023-05-08): hello", "Ann", day),
            ("**Ann** (2023-05-08 13:56): at 3:15 then", "Ann", day),
            ("**Ann**: hello", "Ann", None),
            ("**Ann:** hello: you", "Ann", None),
            ("- **Ann Lee** (8 May 2023): hello", "Ann Lee", day),
            ("[08/05/2023, 13:56:01] Ann: hello", "Ann", day),
            ("08/05/2023, 13:56 - Ann: hello", "Ann", day),
            ("5/28/23, 1:56 PM - Ann Lee: hello", "Ann Lee", date_in("2023-05-28")),
            ("2023-05-08 13:56 Ann: hello", "Ann", day),
            ("[13:56] <ann_> hello", "ann", None),
            ("<ann> hello", "ann", None),
            ("Ann (8 May 2023): hello", "Ann", day),
            ("> Ann: hello", "Ann", None),
            ("張三: 你好", "張三", None),
        ] {
            let start = parse_turn_start(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((start.speaker.as_str(), start.said), (speaker, said), "{line}");
        }
        for line in [
            "",
            "hello",
            "see: this",
            "https://x.org: no",
            "**bold** words",
            "[link](x): y",
            "1. Ann: x",
            "- [ ] do: x",
            "<b>: x",
            "A long sentence that goes on and on: x",
            "12 eggs: boil",
        ] {
            assert_eq!(parse_turn_start(line), None, "{line}");
        }
    }

    #[test]
    fn definitions_are_no_conversation() {
        let is = |text: &str| is_conversation(text.lines());
        assert!(is("**Ann**: a\n**Bob**: b\n\n**Ann**: c\nmore\n**Bob**: d\n"));
        assert!(is("Ann: a\nBob: b\nAnn: c\nBob: d\n"));
        assert!(!is("**Salt**: a\n**Oil**: b\n**Rice**: c\n**Beans**: d\n"), "each name once");
        assert!(!is("Note: a\nmore\nmore\nmore\nWarning: b\nmore\nNote: c\nmore\nWarning: d\n"), "mostly other lines");
        assert!(!is("Ann: a\nBob: b\n"), "too short");
        let speakers = message_speakers(&["ann: a", "Bob: b", "ann: c: d", "Bob: e"]);
        assert_eq!(speakers.iter().flatten().collect::<Vec<_>>(), ["ann", "Bob", "ann", "Bob"]);
        assert!(message_speakers(&["fix: a", "docs: b", "test: c", "no"]).iter().all(Option::is_none));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "(\\*\\*|\\[|\\]|<|>|\\(|\\)|: |:|[0-9]{1,4}|[-/.,]| |Ann|\\PC){0,24}") {
            let _ = (parse_turn_start(&line), is_conversation(line.lines()));
        }
    }
}
