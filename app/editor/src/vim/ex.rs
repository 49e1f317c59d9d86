//! Parses Vim command lines such as `:w`, `:12`, `:%s/old/new/g` and `:g/old/d`. The window executes them.

use anyhow::{anyhow, bail};
use engine::commands::CommandId;
use regex_lite::{Captures, Regex, RegexBuilder};

/// Maximum bytes of a command line.
const MAX_EX_COMMAND_BYTES: usize = 10_000;

/// A parsed command line.
#[derive(Debug)]
pub enum ExCommand {
    /// Runs commands of the command table in order.
    Run(&'static [CommandId]),
    /// Moves the caret to a line.
    Line(LineAddress),
    /// Replaces text in lines.
    Substitute(SubstituteCommand),
    /// Deletes lines.
    Delete((LineAddress, LineAddress)),
    /// Edits all lines that match, or don't match, a pattern.
    Global(GlobalCommand),
    /// Removes search highlights.
    Unmark,
}

/// Address of a line of the note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineAddress {
    /// Line number, from 1.
    Number(usize),
    /// Lines after the caret's line; negative for lines before it.
    Here(isize),
    /// Offset from the last line; 0 is the last line, and negative values are before it.
    Last(isize),
    /// The line of a mark, given by the mark's letter.
    Mark(char),
}

/// A `:g` or `:v` command, which edits the lines that match a pattern, or those that don't.
#[derive(Debug)]
pub struct GlobalCommand {
    /// First and last line to search; the whole note by default.
    pub lines: (LineAddress, LineAddress),
    /// The pattern; `None` for the last search.
    pub pattern: Option<String>,
    /// Whether to edit the lines that don't match.
    pub not: bool,
    /// The substitution in matching lines; `None` deletes them.
    pub then: Option<SubstituteCommand>,
}

/// A `:s` command, which replaces matches of a pattern.
#[derive(Debug)]
pub struct SubstituteCommand {
    /// The first and the last line.
    pub lines: (LineAddress, LineAddress),
    /// The pattern in `regex_lite` syntax; `None` for the last search.
    pub pattern: Option<String>,
    with: Vec<ReplacementPart>,
    /// Whether to replace all matches of each line.
    pub all: bool,
    /// Whether matching is case-sensitive.
    pub case: bool,
}

#[derive(Debug)]
enum ReplacementPart {
    Text(String),
    Group(usize),
}

/// Command lines that run commands of the command table.
const EX_COMMANDS: &[(&[&str], &[CommandId])] = &[
    (&["w", "write", "wa", "up", "update"], &[CommandId::NoteSave]),
    (&["q", "quit", "q!", "bd", "close", "clo"], &[CommandId::NoteClose]),
    (&["wq", "x", "xit", "exit"], &[CommandId::NoteSave, CommandId::NoteClose]),
    (&["qa", "qall", "qa!", "wqa", "xa"], &[CommandId::AppQuit]),
    (&["e", "edit", "ls", "buffers", "b", "buffer"], &[CommandId::SwitcherOpen]),
    (&["enew", "new"], &[CommandId::NoteNew]),
    (&["vs", "vsp", "vsplit"], &[CommandId::PaneSplitRight]),
    (&["sp", "split"], &[CommandId::PaneSplitDown]),
    (&["tabnew", "tabe"], &[CommandId::TabNew]),
    (&["bn", "bnext", "tabn", "tabnext"], &[CommandId::TabNext]),
    (&["bp", "bprevious", "tabp", "tabprevious"], &[CommandId::TabPrevious]),
    (&["u", "undo"], &[CommandId::NoteUndo]),
    (&["red", "redo"], &[CommandId::NoteRedo]),
    (&["h", "help", "map"], &[CommandId::AppKeys]),
    (&["set"], &[CommandId::AppSettings]),
];

/// Parses a line, with or without its colon. `None` if it isn't a known command; an error says what is wrong with it.
pub fn read(line: &str) -> Option<anyhow::Result<ExCommand>> {
    let line = line.trim().trim_start_matches(':').trim_start();
    if line.is_empty() || line.len() > MAX_EX_COMMAND_BYTES {
        return None;
    }
    if let Some((_, ids)) = EX_COMMANDS.iter().find(|(names, _)| names.contains(&line)) {
        return Some(Ok(ExCommand::Run(ids)));
    }
    if matches!(line, "noh" | "nohl" | "nohlsearch") {
        return Some(Ok(ExCommand::Unmark));
    }
    let (lines, rest) = range(line);
    if rest.is_empty() {
        let (_, last) = lines?;
        return Some(Ok(ExCommand::Line(last)));
    }
    let here = (LineAddress::Here(0), LineAddress::Here(0));
    if matches!(rest, "d" | "delete") {
        return Some(Ok(ExCommand::Delete(lines.unwrap_or(here))));
    }
    if let Some(global) = global(rest, lines.unwrap_or((LineAddress::Number(1), LineAddress::Last(0)))) {
        return Some(global.map(ExCommand::Global));
    }
    let rest = rest.strip_prefix("substitute").or_else(|| rest.strip_prefix('s'))?;
    let mark = mark_of(rest)?;
    Some(substitute(&rest[mark.len_utf8()..], mark, lines.unwrap_or(here)).map(ExCommand::Substitute))
}

/// Returns the delimiter between pattern and command.
fn mark_of(rest: &str) -> Option<char> {
    rest.chars().next().filter(|mark| mark.is_ascii_punctuation() && !matches!(mark, '\\' | '"' | '|' | '!'))
}

/// Parses `g/pattern/d` or `v/pattern/s/old/new/`; `None` if the line is another command.
fn global(rest: &str, lines: (LineAddress, LineAddress)) -> Option<anyhow::Result<GlobalCommand>> {
    let word = rest.find(|letter: char| !letter.is_ascii_alphabetic())?;
    let (mut not, mut body) = match &rest[..word] {
        "g" | "gl" | "global" => (false, &rest[word..]),
        "v" | "vglobal" => (true, &rest[word..]),
        _ => return None,
    };
    if let Some(other) = body.strip_prefix('!').filter(|_| !not) {
        (not, body) = (true, other);
    }
    let mark = mark_of(body)?;
    let (old, then) = until(&body[1..], mark);
    let pattern = (!old.is_empty()).then(|| pattern(&old));
    let then = match then.trim() {
        "d" | "delete" => None,
        then => {
            let body = then.strip_prefix("substitute").or_else(|| then.strip_prefix('s'));
            let Some((body, mark)) = body.and_then(|body| Some((body, mark_of(body)?))) else {
                return Some(Err(anyhow!("In the lines that are found, only d and s/old/new/ can be done.")));
            };
            // The substitution's pattern may be omitted.
            match substitute(&body[1..], mark, lines) {
                Ok(wish) => Some(SubstituteCommand { pattern: wish.pattern.or_else(|| pattern.clone()), ..wish }),
                Err(why) => return Some(Err(why)),
            }
        }
    };
    if let Some(Err(why)) = pattern.as_deref().map(|pattern| regex(pattern, true)) {
        return Some(Err(why));
    }
    Some(Ok(GlobalCommand { lines, pattern, not, then }))
}

/// Describes what a command line would do.
pub fn describe_command(line: &str) -> Option<String> {
    Some(match read(line)? {
        Err(why) => why.to_string(),
        Ok(ExCommand::Run(ids)) => ids.iter().map(|id| id.title()).collect::<Vec<&str>>().join(", then: "),
        Ok(ExCommand::Line(LineAddress::Number(number))) => format!("Go to line {number}"),
        Ok(ExCommand::Line(LineAddress::Last(0))) => "Go to the last line".to_owned(),
        Ok(ExCommand::Line(_)) => "Go to that line".to_owned(),
        Ok(ExCommand::Delete((from, to))) if from == to => "Delete a line".to_owned(),
        Ok(ExCommand::Delete(_)) => "Delete these lines".to_owned(),
        Ok(ExCommand::Global(wish)) => {
            let what = wish.pattern.map_or("what was found last".to_owned(), |pattern| format!("“{pattern}”"));
            let does = if wish.then.is_some() { "Replace in" } else { "Delete" };
            format!("{does} the lines {} {what}", if wish.not { "without" } else { "with" })
        }
        Ok(ExCommand::Unmark) => "Unmark what was found".to_owned(),
        Ok(ExCommand::Substitute(wish)) => {
            let what = wish.pattern.map_or("what was found last".to_owned(), |pattern| format!("“{pattern}”"));
            let place = match wish.lines {
                (LineAddress::Number(1), LineAddress::Last(0)) => "in the whole note",
                (from, to) if from == to => "in one line",
                _ => "in these lines",
            };
            let all = if wish.all { "" } else { ", once in each line" };
            format!("Replace {what} {place}{all}")
        }
    })
}

/// Parses the line range before a command. Returns it, if any, and the rest of the line.
fn range(line: &str) -> (Option<(LineAddress, LineAddress)>, &str) {
    if let Some(rest) = line.strip_prefix('%') {
        return (Some((LineAddress::Number(1), LineAddress::Last(0))), rest);
    }
    let (first, rest) = place(line);
    let Some(first) = first.or_else(|| rest.starts_with(',').then_some(LineAddress::Here(0))) else {
        return (None, line);
    };
    match rest.strip_prefix(',') {
        Some(rest) => {
            let (second, rest) = place(rest);
            (Some((first, second.unwrap_or(LineAddress::Here(0)))), rest)
        }
        None => (Some((first, first)), rest),
    }
}

/// Parses the address of one line. Returns it, if any, and the rest of the text.
fn place(text: &str) -> (Option<LineAddress>, &str) {
    let digits = |text: &str| text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (at, mut rest) = match text.chars().next() {
        Some('.') => (Some(LineAddress::Here(0)), &text[1..]),
        Some('$') => (Some(LineAddress::Last(0)), &text[1..]),
        Some('\'') => match text[1..].chars().next() {
            Some(mark) => (Some(LineAddress::Mark(mark)), &text[1 + mark.len_utf8()..]),
            None => (None, text),
        },
        Some('+' | '-') => (Some(LineAddress::Here(0)), text),
        Some('0'..='9') => {
            let count = digits(text);
            (Some(LineAddress::Number(text[..count].parse().unwrap_or(usize::MAX))), &text[count..])
        }
        _ => (None, text),
    };
    let Some(mut at) = at else { return (None, rest) };
    while let Some(sign @ ('+' | '-')) = rest.chars().next() {
        let count = digits(&rest[1..]);
        let by: isize = if count == 0 { 1 } else { rest[1..=count].parse().unwrap_or(isize::MAX / 4) };
        let by = if sign == '-' { -by } else { by };
        at = match at {
            LineAddress::Here(lines) => LineAddress::Here(lines.saturating_add(by)),
            LineAddress::Last(lines) => LineAddress::Last(lines.saturating_add(by)),
            LineAddress::Number(number) => LineAddress::Number(number.saturating_add_signed(by)),
            LineAddress::Mark(mark) => LineAddress::Mark(mark),
        };
        rest = &rest[1 + count..];
    }
    (Some(at), rest)
}

/// Parses `old/new/flags`.
fn substitute(text: &str, mark: char, lines: (LineAddress, LineAddress)) -> anyhow::Result<SubstituteCommand> {
    let (old, rest) = until(text, mark);
    let (new, flags) = until(rest, mark);
    let (mut all, mut case) = (false, true);
    for flag in flags.trim().chars() {
        match flag {
            'g' => all = !all,
            'i' => case = false,
            'I' => case = true,
            '&' | 'e' => {}
            other => {
                bail!("Unknown flag “{other}”. Use g for all matches in a line, i to ignore case.");
            }
        }
    }
    let pattern = (!old.is_empty()).then(|| pattern(&old));
    let wish = SubstituteCommand { lines, pattern, with: replacement(&new), all, case };
    if let Some(pattern) = &wish.pattern {
        wish.regex(pattern)?;
    }
    Ok(wish)
}

/// Splits a text at the first delimiter that isn't escaped by a backslash. Returns both sides of it.
fn until(text: &str, mark: char) -> (String, &str) {
    let (mut out, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some((_, next)) if next == mark => out.push(next),
                Some((_, next)) => out.extend(['\\', next]),
                None => out.push('\\'),
            },
            letter if letter == mark => return (out, &text[at + letter.len_utf8()..]),
            letter => out.push(letter),
        }
    }
    (out, "")
}

/// Translates a Vim pattern to `regex_lite` syntax. In Vim, most special characters have a backslash; here they have
/// none.
fn pattern(vim: &str) -> String {
    let mut vim = vim;
    let very = vim.starts_with("\\v");
    let mut out = String::new();
    if let Some(rest) = vim.strip_prefix("\\c") {
        out.push_str("(?i)");
        vim = rest;
    }
    if let Some(plain) = vim.strip_prefix("\\V") {
        return plain.chars().fold(out, |mut out, letter| {
            if letter.is_ascii_punctuation() {
                out.push('\\');
            }
            out.push(letter);
            out
        });
    }
    let mut letters = vim.strip_prefix("\\v").unwrap_or(vim).chars();
    let mut class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('<' | '>') => out.push_str("\\b"),
                Some('=') => out.push('?'),
                Some(sign @ ('(' | ')' | '|' | '+' | '?' | '{' | '}')) if !very => out.push(sign),
                Some('h') => out.push_str("[A-Za-z_]"),
                Some('a') => out.push_str("[A-Za-z]"),
                Some('l') => out.push_str("[a-z]"),
                Some('u') => out.push_str("[A-Z]"),
                Some('x') => out.push_str("[0-9A-Fa-f]"),
                Some('/') => out.push('/'),
                Some(other) => out.extend(['\\', other]),
                None => out.push_str("\\\\"),
            },
            '[' if !class => {
                class = true;
                out.push('[');
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            '<' | '>' if very && !class => out.push_str("\\b"),
            '(' | ')' | '|' | '+' | '?' | '{' | '}' if !very && !class => out.extend(['\\', letter]),
            letter => out.push(letter),
        }
    }
    out
}

/// Parses the replacement of a match.
fn replacement(vim: &str) -> Vec<ReplacementPart> {
    let (mut parts, mut text) = (Vec::new(), String::new());
    let mut letters = vim.chars();
    while let Some(letter) = letters.next() {
        let group = match letter {
            '&' => 0,
            '\\' => match letters.next() {
                Some(digit @ '0'..='9') => digit as usize - '0' as usize,
                other => {
                    text.push(match other {
                        Some('r' | 'n') => '\n',
                        Some('t') => '\t',
                        Some(other) => other,
                        None => '\\',
                    });
                    continue;
                }
            },
            letter => {
                text.push(letter);
                continue;
            }
        };
        parts.push(ReplacementPart::Text(std::mem::take(&mut text)));
        parts.push(ReplacementPart::Group(group));
    }
    parts.push(ReplacementPart::Text(text));
    parts
}

/// Compiles a pattern; `case` makes it case-sensitive.
///
/// # Errors
/// Returns an error if the pattern is invalid.
pub fn regex(pattern: &str, case: bool) -> anyhow::Result<Regex> {
    let made = RegexBuilder::new(pattern).case_insensitive(!case).multi_line(true).crlf(true).build();
    made.map_err(|error| anyhow!("Invalid pattern: {}", error.to_string().lines().last().unwrap_or("")))
}

impl SubstituteCommand {
    /// Compiles a pattern with the case sensitivity of this command.
    ///
    /// # Errors
    /// Returns an error if the pattern is invalid.
    pub fn regex(&self, pattern: &str) -> anyhow::Result<Regex> {
        regex(pattern, self.case)
    }

    /// Returns the replacement text for a match.
    pub fn put(&self, found: &Captures<'_>) -> String {
        let part = |part: &ReplacementPart| match part {
            ReplacementPart::Text(text) => text.clone(),
            ReplacementPart::Group(group) => found.get(*group).map_or(String::new(), |group| group.as_str().to_owned()),
        };
        self.with.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(line: &str, text: &str) -> String {
        let Some(Ok(ExCommand::Substitute(wish))) = read(line) else { panic!("{line}: {:?}", read(line)) };
        let regex = wish.regex(wish.pattern.as_deref().expect("a pattern")).expect("a pattern");
        regex.replacen(text, usize::from(!wish.all), |found: &Captures<'_>| wish.put(found)).into_owned()
    }

    #[test]
    fn lines_are_read_as_vim_reads_them() {
        assert!(matches!(read("w"), Some(Ok(ExCommand::Run([CommandId::NoteSave])))));
        assert!(matches!(read(":wq"), Some(Ok(ExCommand::Run([CommandId::NoteSave, CommandId::NoteClose])))));
        assert!(matches!(read("12"), Some(Ok(ExCommand::Line(LineAddress::Number(12))))));
        assert!(matches!(read("$-2"), Some(Ok(ExCommand::Line(LineAddress::Last(-2))))));
        assert!(matches!(read(".+"), Some(Ok(ExCommand::Line(LineAddress::Here(1))))));
        assert!(matches!(read("noh"), Some(Ok(ExCommand::Unmark))));
        assert!(read("bold").is_none() && read("").is_none() && read("split right").is_none());
        assert!(matches!(read("%s/a/b/z"), Some(Err(_))) && matches!(read("s/\\(/b/"), Some(Err(_))));
        let lines = |line: &str| match read(line) {
            Some(Ok(ExCommand::Substitute(wish))) => wish.lines,
            other => panic!("{other:?}"),
        };
        assert_eq!(lines("s/a/b"), (LineAddress::Here(0), LineAddress::Here(0)));
        assert_eq!(lines("%s/a/b"), (LineAddress::Number(1), LineAddress::Last(0)));
        assert_eq!(lines("2,$s/a/b"), (LineAddress::Number(2), LineAddress::Last(0)));
        assert_eq!(lines("'<,'>s#a#b#"), (LineAddress::Mark('<'), LineAddress::Mark('>')));
        assert_eq!(lines(".,+3s/a/b"), (LineAddress::Here(0), LineAddress::Here(3)));
        let global = |line: &str| match read(line) {
            Some(Ok(ExCommand::Global(wish))) => (wish.pattern, wish.not, wish.then.and_then(|then| then.pattern)),
            other => panic!("{other:?}"),
        };
        let some = |word: &str| Some(word.to_owned());
        assert_eq!(global("g/a b/d"), (some("a b"), false, None));
        assert_eq!(global("%v#x#delete"), (some("x"), true, None));
        assert_eq!(global("g!/x/s/a/b/g"), (some("x"), true, some("a")));
        assert_eq!(global("2,3g/x/s//y/"), (some("x"), false, some("x")));
        assert!(matches!(read("2,3d"), Some(Ok(ExCommand::Delete((LineAddress::Number(2), LineAddress::Number(3)))))));
        assert!(matches!(read("g/a/p"), Some(Err(_))) && matches!(read("g/\\(/d"), Some(Err(_))));
        assert!(read("graph view").is_none() && read("view.graph").is_none() && read("g").is_none());
    }

    #[test]
    fn patterns_are_vims() {
        for (line, text, after) in [
            ("s/a/b/", "aaa", "baa"),
            ("s/a/b/g", "aaa", "bbb"),
            ("s/A/b/gi", "aaa", "bbb"),
            ("s/(a)/[&]/", "f(a)", "f[(a)]"),
            ("s/\\(a\\)\\(b\\)/\\2\\1/", "ab", "ba"),
            ("s/a\\+/x/", "baaad", "bxd"),
            ("s/a+/x/", "ba+d", "bxd"),
            ("s/\\<one\\>/two/g", "one bone one", "two bone two"),
            ("s/\\v(o)(n)/\\2\\1/", "one", "noe"),
            ("s#/a#/b#", "x/a", "x/b"),
            ("s/\\/a/&&/", "x/a", "x/a/a"),
            ("s/, /,\\r/", "a, b", "a,\nb"),
            ("s/x/a\\&b/", "x", "a&b"),
            ("s/a\\|b/x/g", "abc", "xxc"),
            ("s/[(|]/x/g", "(|a", "xxa"),
            ("s/\\Va.b/x/", "a.b", "x"),
            ("s/\\cA/x/", "a", "x"),
        ] {
            assert_eq!(replaced(line, text), after, "{line}");
        }
    }
}
