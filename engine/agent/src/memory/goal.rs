//! Parses goals into words, which carry the intent, and values, which may differ next time. Two goals are the same only
//! if all their words are equal, in the same order; similarity alone decides nothing.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Kind of a value in a goal, and of the slot that it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotKind {
    /// A calendar day.
    Date,
    /// A month of a year.
    Month,
    /// A number, integer or decimal.
    Number,
    /// A file or folder.
    Path,
    /// A web address or an email address.
    Url,
    /// A name, such as a person's, a place's or an identifier.
    Name,
    /// Quoted text.
    Text,
}

impl SlotKind {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            SlotKind::Date => "date",
            SlotKind::Month => "month",
            SlotKind::Number => "number",
            SlotKind::Path => "path",
            SlotKind::Url => "url",
            SlotKind::Name => "name",
            SlotKind::Text => "text",
        }
    }

    /// Returns whether a value of this kind may replace one of kind `other`.
    pub fn accepts(self, other: SlotKind) -> bool {
        let loose = |kind| matches!(kind, SlotKind::Name | SlotKind::Text);
        self == other || (loose(self) && loose(other))
    }
}

/// A word or value of a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoalToken {
    /// A word, normalized for comparison.
    Word(String),
    /// A value. Days are written as `2026-11-22`, months as `2026-11`, numbers without separators.
    Value(SlotKind, String),
}

/// A parsed goal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedGoal {
    /// Words and values in order, without `POLITENESS_WORDS`.
    pub tokens: Vec<GoalToken>,
    /// Whether the steps depend on findings, so that a replay needs the same findings.
    pub depends: bool,
    /// Whether the goal says to do something only in some case, or to choose by a quality. Its steps depend on findings
    /// even if nothing was read for them.
    pub branches: bool,
    /// Whether the goal says to take one of its values by a quality, or either of them.
    pub chooses: bool,
    /// Whether the goal is about all or some of several things, or says to make sure of something. Then even what was
    /// read last may have decided that nothing more was to be done.
    pub quantifies: bool,
}

/// Goals longer than this, in bytes, are never replayed.
pub const MAX_GOAL_BYTES: usize = 4_000;
/// Maximum length of a quoted value in bytes.
const MAX_QUOTED_VALUE_BYTES: usize = 400;

/// Filler words that don't change the meaning of a goal, and are ignored.
const POLITENESS_WORDS: [&str; 29] = [
    "a", "an", "the", "please", "kindly", "could", "can", "would", "will", "you", "i", "me", "want", "need", "like",
    "to", "us", "hey", "hi", "hello", "just", "thanks", "thank", "my", "our", "so", "that", "would", "now",
];

/// Words of these that are no part of a name even if they have a capital letter: "to Ann Miller Thanks".
const GREETING_WORDS: [&str; 7] = ["please", "kindly", "hey", "hi", "hello", "thanks", "thank"];

/// Rows of synonyms. Each word is replaced by the first of its row.
const GOAL_SYNONYMS: [&[&str]; 14] = [
    &["create", "make", "generate", "produce"],
    &["delete", "remove", "erase"],
    &["show", "display"],
    &["find", "locate"],
    &["summarise", "summarize"],
    &["folder", "directory", "dir"],
    &["compute", "calculate"],
    &["change", "alter", "modify"],
    &["start", "begin", "commence"],
    &["buy", "purchase"],
    &["named", "called", "titled"],
    &["picture", "image"],
    &["about", "regarding", "concerning"],
    &["within", "inside"],
];

/// Words of a condition or a choice.
const BRANCHING_WORDS: [&str; 28] = [
    "if",
    "unless",
    "whether",
    "otherwise",
    "else",
    "when",
    "until",
    "except",
    "depending",
    "best",
    "worst",
    "highest",
    "lowest",
    "cheapest",
    "largest",
    "smallest",
    "biggest",
    "most",
    "least",
    "missing",
    "available",
    "random",
    "which",
    "whichever",
    "where",
    "necessary",
    "needed",
    "appropriate",
];

/// Other words that show that the steps may depend on findings or on the time.
const DEPENDENCE_WORDS: [&str; 27] = [
    "only",
    "first",
    "last",
    "latest",
    "newest",
    "oldest",
    "recent",
    "recently",
    "current",
    "currently",
    "today",
    "yesterday",
    "tomorrow",
    "tonight",
    "next",
    "previous",
    "ago",
    "each",
    "every",
    "all",
    "any",
    "both",
    "same",
    "remaining",
    "rest",
    "other",
    "others",
];

/// Those of the words above that are about all or some of several things, and words that say to make sure of something.
const QUANTIFYING_WORDS: [&str; 17] = [
    "only",
    "each",
    "every",
    "all",
    "any",
    "both",
    "same",
    "remaining",
    "rest",
    "other",
    "others",
    "ensure",
    "ensuring",
    "sure",
    "verify",
    "check",
    "confirm",
];

/// Words that take one of the values of a goal. "First" and "next" do so before "of" or "one" only: "first, delete it".
const CHOOSING_WORDS: [&str; 16] = [
    "or", "either", "latest", "newest", "oldest", "bigger", "larger", "smaller", "older", "newer", "cheaper",
    "shorter", "higher", "better", "worse", "faster",
];

/// Pairs of words that mean something of their own, whatever the words mean alone.
const FIXED_PHRASES: [(&str, &str); 4] = [("first", "class"), ("first", "aid"), ("next", "to"), ("each", "other")];
/// Such pairs, if no other word follows at once: "all set" and "not at all", but not "at all airports".
const CLOSING_PHRASES: [(&str, &str); 6] =
    [("all", "right"), ("all", "good"), ("all", "set"), ("at", "all"), ("after", "all"), ("above", "all")];

/// Words before "if you could" or "it if you could", with which it's a polite request and no condition.
const COURTESY_VERBS: [&str; 5] = ["appreciate", "appreciated", "love", "mind", "favor"];
/// Such words if "be" is before them: "it would be nice if you could". "For a good price if you can" has a condition.
const COURTESY_ADJECTIVES: [&str; 15] = [
    "grateful",
    "thankful",
    "great",
    "nice",
    "good",
    "kind",
    "lovely",
    "glad",
    "happy",
    "helpful",
    "fantastic",
    "wonderful",
    "awesome",
    "perfect",
    "pleased",
];

/// Full English names of the months.
pub(super) const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const NUMBER_WORDS: [&str; 13] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// A piece of a goal between spaces or quotation marks.
struct GoalPiece<'a> {
    text: &'a str,
    quoted: bool,
    /// Whether it starts a sentence, where a capital letter means nothing.
    first: bool,
    /// Whether a comma or another mark follows it.
    pause: bool,
}

/// A token with what only matters while a goal is parsed.
struct RawToken {
    token: GoalToken,
    /// Whether it's a name with a capital letter.
    capital: bool,
    /// Whether a comma or another mark follows it, so that the next word belongs to another name.
    pause: bool,
}

impl RawToken {
    fn new(token: GoalToken) -> RawToken {
        RawToken { token, capital: false, pause: false }
    }

    fn is_to(&self) -> bool {
        self.word() == Some("to")
    }

    /// Returns the word; `None` for a value.
    fn word(&self) -> Option<&str> {
        match &self.token {
            GoalToken::Word(word) => Some(word),
            GoalToken::Value(..) => None,
        }
    }
}

impl ParsedGoal {
    /// Splits a goal into words and values.
    pub fn parse(text: &str) -> ParsedGoal {
        let text = &text[..text.floor_char_boundary(MAX_GOAL_BYTES)];
        let mut raw: Vec<RawToken> = Vec::new();
        let (mut depends, mut branches, mut quantifies) = (false, false, false);
        for piece in split_pieces(text) {
            let begun = raw.len();
            classify_piece(&piece, &mut raw);
            // "Should it be there, delete it" is a condition; "it should be there" is none.
            branches |= piece.first && raw.get(begun).and_then(RawToken::word) == Some("should");
            if let Some(last) = raw.last_mut() {
                last.pause = piece.pause;
            }
        }
        merge_written_dates(&mut raw);
        let empty: Vec<bool> = (0..raw.len()).map(|at| is_polite_if(&raw, at) || is_in_phrase(&raw, at)).collect();
        // "Make sure to write it" asks for nothing else than "write it"; "make sure that it's there" is a condition.
        let is_ensured = |at: usize| raw[at].word() == Some("sure") && !raw.get(at + 1).is_some_and(RawToken::is_to);
        depends |= (0..raw.len()).any(is_ensured);
        let chooses = (0..raw.len()).any(|at| !empty[at] && is_choice(&raw, at));
        let mut tokens: Vec<GoalToken> = Vec::new();
        let mut joins = false;
        for (RawToken { token, capital, pause }, is_empty) in raw.into_iter().zip(empty) {
            match (token, tokens.last_mut()) {
                // Two capitalized words in a row are one name.
                (GoalToken::Value(SlotKind::Name, next), Some(GoalToken::Value(SlotKind::Name, name)))
                    if joins && capital =>
                {
                    name.push(' ');
                    name.push_str(&next);
                    joins = !pause;
                }
                (GoalToken::Word(word), _) => {
                    if !is_empty {
                        branches |= BRANCHING_WORDS.contains(&word.as_str());
                        depends |= DEPENDENCE_WORDS.contains(&word.as_str());
                        quantifies |= QUANTIFYING_WORDS.contains(&word.as_str());
                    }
                    joins = false;
                    if !POLITENESS_WORDS.contains(&word.as_str()) || word == "to" {
                        tokens.push(GoalToken::Word(word));
                    }
                }
                (value, _) => {
                    joins = capital && !pause;
                    tokens.push(value);
                }
            }
        }
        // "I want to write" and "write" mean the same; "move a to b" needs its "to".
        while tokens.first() == Some(&GoalToken::Word("to".to_owned())) {
            tokens.remove(0);
        }
        ParsedGoal { tokens, depends: depends || branches, branches, chooses, quantifies }
    }

    /// Returns the words that aren't values.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| match token {
            GoalToken::Word(word) => Some(word.as_str()),
            GoalToken::Value(..) => None,
        })
    }

    /// Returns the values in the goal with their kinds.
    pub fn values(&self) -> impl Iterator<Item = (SlotKind, &str)> {
        self.tokens.iter().filter_map(|token| match token {
            GoalToken::Word(_) => None,
            GoalToken::Value(kind, text) => Some((*kind, text.as_str())),
        })
    }

    /// Returns whether the goal names every word and number of a text, as it stands or as a part of a value.
    pub fn names_all(&self, text: &str) -> bool {
        let split = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
        };
        let named: BTreeSet<String> = self.words().chain(self.values().map(|(_, text)| text)).flat_map(split).collect();
        let numbers: Vec<f64> = self.values().filter_map(|(_, text)| text.parse().ok()).collect();
        text.lines().all(|line| {
            // 30.0 and 30 are the same number.
            let number = line.trim().parse::<f64>().is_ok_and(|number| numbers.contains(&number));
            number || split(line).iter().all(|word| named.contains(word))
        })
    }

    /// Returns the goal's template: its words, with each value replaced by its kind. Goals with the same template
    /// differ only in values.
    pub fn template_text(&self) -> String {
        let word = |token: &GoalToken| match token {
            GoalToken::Word(word) => word.clone(),
            GoalToken::Value(kind, _) => format!("{{{}}}", kind.as_str()),
        };
        self.tokens.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// A dash that separates words without spaces: "a stretch—450 miles".
const EM_DASH: char = '\u{2014}';
/// Marks between parts of a sentence.
const PAUSES: [char; 7] = [',', ';', ':', '.', '!', '?', '…'];

/// Returns whether the word at an index is the "if" of a polite request or of "even if", which is no condition.
fn is_polite_if(tokens: &[RawToken], at: usize) -> bool {
    let word = |at: usize| tokens.get(at).and_then(RawToken::word).unwrap_or_default();
    // The number counts from the "if" backwards.
    let before = |number: usize| at.checked_sub(number).map_or("", word);
    let asks = word(at + 1) == "you" && matches!(word(at + 2), "could" | "would" | "can");
    let last = if before(1) == "it" { 2 } else { 1 };
    let is_wish = || before(last + 1) == "be" || before(last + 2) == "be";
    let is_courtesy =
        || COURTESY_VERBS.contains(&before(last)) || (COURTESY_ADJECTIVES.contains(&before(last)) && is_wish());
    word(at) == "if" && (before(1) == "even" || (asks && is_courtesy()))
}

/// Returns whether the word at an index takes one of several values.
fn is_choice(tokens: &[RawToken], at: usize) -> bool {
    let word = |at: usize| tokens.get(at).and_then(RawToken::word).unwrap_or_default();
    let is_ordinal = matches!(word(at), "first" | "last" | "next") && matches!(word(at + 1), "of" | "one");
    CHOOSING_WORDS.contains(&word(at)) || is_ordinal
}

/// Returns whether the word at an index belongs to one of `FIXED_PHRASES` or `CLOSING_PHRASES`.
fn is_in_phrase(tokens: &[RawToken], at: usize) -> bool {
    let is_phrase = |at: usize| {
        let pair = tokens.get(at).and_then(RawToken::word).zip(tokens.get(at + 1).and_then(RawToken::word));
        let is_end = || tokens.get(at + 1).is_none_or(|token| token.pause) || tokens.get(at + 2).is_none();
        pair.is_some_and(|pair| FIXED_PHRASES.contains(&pair) || (CLOSING_PHRASES.contains(&pair) && is_end()))
    };
    is_phrase(at) || at.checked_sub(1).is_some_and(is_phrase)
}

fn split_pieces(text: &str) -> Vec<GoalPiece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut first = true;
    while let Some(letter) = rest.chars().next() {
        if letter.is_whitespace() || matches!(letter, '(' | '[' | '{' | '*' | '-' | '>' | EM_DASH) {
            // A dash before a digit is a minus sign.
            let sign = letter == '-' && rest[1..].starts_with(|next: char| next.is_ascii_digit());
            if !sign {
                first |= letter == '\n';
                rest = &rest[letter.len_utf8()..];
                continue;
            }
        }
        if let Some((inside, behind)) = parse_quoted(rest, letter) {
            let pause = behind.starts_with(PAUSES);
            found.push(GoalPiece { text: inside, quoted: true, first: false, pause });
            (rest, first) = (behind, false);
            continue;
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == EM_DASH).unwrap_or(rest.len());
        let chunk = &rest[..end];
        rest = &rest[end..];
        let closing = |c: char| matches!(c, ')' | ']' | '}' | '"' | '\'' | '`' | '”' | '’' | '*');
        let bare = chunk.trim_end_matches(closing).trim_end_matches(PAUSES);
        let bare = bare.trim_end_matches(closing).trim_start_matches(['"', '\'', '`', '“', '‘']);
        if !bare.is_empty() {
            let pause = chunk.ends_with(closing) || chunk.ends_with(PAUSES) || rest.starts_with(EM_DASH);
            found.push(GoalPiece { text: bare, quoted: false, first, pause });
        }
        first = chunk.trim_end_matches(closing).ends_with(['.', '!', '?', ':']);
    }
    found
}

/// Splits off the quotation at the start of `text`. Returns the quoted text and the rest.
fn parse_quoted(text: &str, open: char) -> Option<(&str, &str)> {
    let close = match open {
        '"' | '\'' | '`' => open,
        '“' => '”',
        '‘' => '’',
        _ => return None,
    };
    let inner = &text[open.len_utf8()..];
    for (at, letter) in inner.char_indices().take_while(|(at, letter)| *at <= MAX_QUOTED_VALUE_BYTES && *letter != '\n')
    {
        let behind = &inner[at + letter.len_utf8()..];
        // An apostrophe inside a word doesn't close the quotation.
        if letter == close && !behind.starts_with(char::is_alphanumeric) && at > 0 {
            return Some((inner[..at].trim(), behind));
        }
    }
    None
}

fn classify_piece(piece: &GoalPiece<'_>, into: &mut Vec<RawToken>) {
    let text = piece.text;
    let mut value = |kind, text: &str| into.push(RawToken::new(GoalToken::Value(kind, text.to_owned())));
    if text.starts_with("http://") || text.starts_with("https://") || (text.contains('@') && !text.starts_with('@')) {
        return value(SlotKind::Url, text);
    }
    if let Some((kind, text)) = parse_date(text) {
        return value(kind, &text);
    }
    let plain = text.strip_prefix('@').unwrap_or(text);
    if is_path(plain) && (!piece.quoted || !plain.contains(' ') || plain.contains('/')) {
        return value(SlotKind::Path, plain.trim_start_matches("./"));
    }
    if piece.quoted {
        return value(SlotKind::Text, text);
    }
    let (sign, amount) = match text.strip_prefix(['$', '€', '£']) {
        Some(amount) => (text.chars().next(), amount),
        None => (None, text),
    };
    let (amount, percent) = amount.strip_suffix('%').map_or((amount, false), |amount| (amount, true));
    if let Some(number) = parse_number(amount) {
        into.extend(sign.map(|sign| RawToken::new(GoalToken::Word(sign.to_string()))));
        into.push(RawToken::new(GoalToken::Value(SlotKind::Number, number)));
        into.extend(percent.then(|| RawToken::new(GoalToken::Word("%".to_owned()))));
        return;
    }
    let lower = text.to_lowercase();
    if let Some(at) = NUMBER_WORDS.iter().position(|word| *word == lower) {
        return value(SlotKind::Number, &at.to_string());
    }
    let capitals = text.chars().filter(|c| c.is_uppercase()).count();
    let odd = text.contains(['_', '#', '$', '\\', '=']) || text.chars().any(|c| c.is_ascii_digit());
    let camel = text.chars().skip(1).any(char::is_uppercase);
    if !text.starts_with('@') && (odd || (camel && text.len() > 1)) {
        return value(SlotKind::Name, text);
    }
    let bare = lower.strip_suffix("'s").or_else(|| lower.strip_suffix("’s")).unwrap_or(&lower);
    if capitals > 0 && !piece.first && bare != "i" && !bare.starts_with("i'") && !GREETING_WORDS.contains(&bare) {
        let token = GoalToken::Value(SlotKind::Name, text.to_owned());
        return into.push(RawToken { capital: true, ..RawToken::new(token) });
    }
    // "archive/old" is a path; "and/or" are words.
    for part in bare.split('/').filter(|part| !part.is_empty()) {
        let same = GOAL_SYNONYMS.iter().find(|row| row.contains(&part)).map_or(part, |row| row[0]);
        into.push(RawToken::new(GoalToken::Word(same.to_owned())));
    }
}

/// Parses a number without thousands separators.
fn parse_number(text: &str) -> Option<String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let fits = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == ',' || c == '.')
        && digits.len() <= 20;
    let plain = text.replace(',', "");
    (fits && plain.parse::<f64>().is_ok()).then_some(plain)
}

fn is_path(text: &str) -> bool {
    if text.len() > 300 || text.is_empty() {
        return false;
    }
    let slash = text.contains('/') && text != "/" && text != "and/or" && !text.contains("//");
    let simple = text.split('/').all(|part| part.chars().all(char::is_lowercase)) && text.matches('/').count() == 1;
    // "read/write" is two words; "/tmp" and "data/2026" are paths.
    if slash && (!simple || text.starts_with('/')) {
        return true;
    }
    let Some((stem, ending)) = text.rsplit_once('.') else { return text.ends_with('/') && text.len() > 1 };
    let letters = ending.starts_with(|c: char| c.is_ascii_alphabetic());
    // "e.g" and "U.S" aren't files.
    stem.len() + ending.len() > 2
        && !stem.is_empty()
        && letters
        && ending.len() <= 8
        && ending.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Parses a day or month that's written in digits.
fn parse_date(text: &str) -> Option<(SlotKind, String)> {
    let parts: Vec<&str> = text.split(['-', '.', '/']).collect();
    let number = |at: usize| parts.get(at).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let sized = |at: usize, len: usize| number(at).filter(|part| part.len() == len)?.parse::<u32>().ok();
    let small = |at: usize| number(at).filter(|part| matches!(part.len(), 1 | 2))?.parse::<u32>().ok();
    let good = |month: u32, day: u32| (1..=12).contains(&month) && (1..=31).contains(&day);
    match parts.len() {
        3 => {
            if let (Some(year), Some(month), Some(day)) = (sized(0, 4), small(1), small(2)) {
                return good(month, day).then(|| (SlotKind::Date, format!("{year:04}-{month:02}-{day:02}")));
            }
            // 05.06.2026 has one meaning; 05/06/2026 has two and isn't parsed.
            let (day, month, year) = (small(0)?, small(1)?, sized(2, 4)?);
            let dotted = text.contains('.') && good(month, day);
            dotted.then(|| (SlotKind::Date, format!("{year:04}-{month:02}-{day:02}")))
        }
        2 if text.contains('-') => {
            let (year, month) = (sized(0, 4)?, sized(1, 2)?);
            good(month, 1).then(|| (SlotKind::Month, format!("{year:04}-{month:02}")))
        }
        _ => None,
    }
}

/// Turns months and days written as words into values: "3 May 2026", "May 3rd, 2026", "the 3rd day of May in 2026".
fn merge_written_dates(tokens: &mut Vec<RawToken>) {
    let month = |token: &GoalToken| {
        let (GoalToken::Word(word) | GoalToken::Value(SlotKind::Name, word)) = token else { return None };
        let fits = |name: &str| {
            name.eq_ignore_ascii_case(word)
                || (word.len() == 3 && name[..3].eq_ignore_ascii_case(word))
                || (name == "September" && word.eq_ignore_ascii_case("sept"))
        };
        MONTH_NAMES.iter().position(|name| fits(name)).map(|at| at + 1)
    };
    let number = |token: Option<&RawToken>, from: u32, to: u32| match &token?.token {
        GoalToken::Value(SlotKind::Number, text) => text.parse::<u32>().ok().filter(|n| (from..=to).contains(n)),
        GoalToken::Value(SlotKind::Name, text) => {
            // Matches "3rd" and "22nd".
            let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
            digits.parse::<u32>().ok().filter(|n| (from..=to).contains(n))
        }
        GoalToken::Value(..) | GoalToken::Word(_) => None,
    };
    let is_word = |token: Option<&RawToken>, words: &[&str]| {
        token.and_then(RawToken::word).is_some_and(|word| words.contains(&word))
    };
    let mut at = 0;
    while at < tokens.len() {
        if let Some(month) = month(&tokens[at].token) {
            let year = |at: usize| number(tokens.get(at), 1000, 9999);
            let year_at = at + 1 + usize::from(is_word(tokens.get(at + 1), &["in", "of"]));
            let (from, to, made) = if let (Some(day), Some(year)) = (number(tokens.get(at + 1), 1, 31), year(at + 2)) {
                (at, at + 3, GoalToken::Value(SlotKind::Date, format!("{year:04}-{month:02}-{day:02}")))
            } else if let Some(year) = year(year_at) {
                let before = |at: usize, words: &[&str]| {
                    at.checked_sub(1).filter(|before| is_word(tokens.get(*before), words)).unwrap_or(at)
                };
                // The number of the day is before "May", "of May" or "day of May".
                let day_at = before(before(at, &["of"]), &["day"]).checked_sub(1);
                match day_at.and_then(|day_at| Some((day_at, number(tokens.get(day_at), 1, 31)?))) {
                    Some((day_at, day)) => {
                        let text = format!("{year:04}-{month:02}-{day:02}");
                        (day_at, year_at + 1, GoalToken::Value(SlotKind::Date, text))
                    }
                    None => (at, year_at + 1, GoalToken::Value(SlotKind::Month, format!("{year:04}-{month:02}"))),
                }
            } else {
                at += 1;
                continue;
            };
            let pause = tokens.get(to - 1).is_some_and(|token| token.pause);
            tokens.splice(from..to, [RawToken { pause, ..RawToken::new(made) }]);
            at = from;
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn goals_are_read() {
        let form = |text: &str| ParsedGoal::parse(text).template_text();
        let values = |text: &str| {
            let goal = ParsedGoal::parse(text);
            goal.values().map(|(_, text)| text.to_owned()).collect::<Vec<_>>().join("|")
        };
        let said = "Please write the report for October 2026 into reports/october.md.";
        assert_eq!(form(said), "write report for {month} into {path}");
        assert_eq!(values(said), "2026-10|reports/october.md");
        assert_eq!(form("Could you write a report for 2026-11 into \"reports/november.md\"?"), form(said));
        assert_eq!(form("Move 'a.pdf' to 'temp'"), "move {path} to {text}");
        assert_ne!(form("Copy 'a.pdf' to 'temp'"), form("Move 'a.pdf' to 'temp'"));
        assert_eq!(form("I want to make a folder."), form("Create the directory"));
        assert_eq!(
            values("Pay $1,250.50 to New York by 3 May 2026, 15% of it to Ann's"),
            "1250.50|New York|2026-05-03|15|Ann's"
        );
        assert_eq!(values("on the 3rd of five"), "3rd|5");
        assert_eq!(values("Could you write to Ann Miller Thanks"), "Ann Miller");
        assert_eq!(form("don't delete it"), "don't delete it");
        let parse = ParsedGoal::parse;
        assert!(parse("Delete all of them").depends && !parse("Delete a.md").depends);
        assert!(parse("Delete it if it is old").branches && !parse("Delete all of them").branches);
        assert!(parse("Delete all of them").quantifies && !parse("Delete the latest").quantifies);
        let goal = parse("Move both 'a.pdf' and 'Big Plan' into archive, 30 of them");
        assert!(goal.names_all("a.pdf") && goal.names_all("big plan\n30.0\narchive"));
        assert!(!goal.names_all("b.pdf") && !goal.names_all("31") && !goal.names_all("archives"));
    }

    #[test]
    fn polite_requests_are_no_conditions() {
        let branches = |text: &str| ParsedGoal::parse(text).branches;
        for polite in [
            "I'd appreciate it if you could delete a.md",
            "It would be great if you would show a.md",
            "Delete a.md, even if it's dear to me",
            "The table should be in a.md",
        ] {
            assert!(!branches(polite), "{polite}");
        }
        for condition in [
            "Delete a.md if you can",
            "Delete a.md if you could not read it",
            "I'd appreciate a table. Delete a.md if it is there",
            "Read a.md. Should it be empty, delete it",
            "Buy tea at a good price if you can find it",
            "Write to Ann that tea is nice if you would drink it",
        ] {
            assert!(branches(condition), "{condition}");
        }
        let depends = |text: &str| ParsedGoal::parse(text).depends;
        assert!(!depends("Book first class, all set") && depends("Book the first flight, all of it"));
        assert!(!depends("Make sure to write a.md") && depends("Make sure that a.md is short"));
        for all in
            ["Show rain at all airports", "Delete all good ideas", "Write it after all tests", "Delete the last name"]
        {
            assert!(depends(all), "{all}");
        }
        assert!(ParsedGoal::parse("Delete other than a.md").quantifies, "it's about all others");
    }

    #[test]
    fn goals_that_choose_among_their_values_are_known() {
        let chooses = |text: &str| ParsedGoal::parse(text).chooses;
        for choice in ["Delete the oldest of a.md and b.md", "Show a.md or b.md", "Open the first of a.md, b.md"] {
            assert!(chooses(choice), "{choice}");
        }
        assert!(!chooses("First, delete a.md. Next, delete b.md") && !chooses("Copy a.md and b.md"));
    }

    #[test]
    fn lists_and_dates_of_many_forms_are_values() {
        let values = |text: &str| {
            let goal = ParsedGoal::parse(text);
            goal.values().map(|(kind, text)| format!("{} {text}", kind.as_str())).collect::<Vec<_>>().join("|")
        };
        assert_eq!(values("Write to Ann Miller, Bob and Eve Stone"), "name Ann Miller|name Bob|name Eve Stone");
        assert_eq!(values("a long stretch—1200 miles to Ann—now"), "number 1200|name Ann");
        for day in [
            "on the 6th day of October in 2026",
            "on the 6th of October, 2026",
            "on 6 Oct 2026",
            "on October 6th, 2026",
        ] {
            assert_eq!(values(day), "date 2026-10-06", "{day}");
        }
        assert_eq!(values("on 19th Sept 2026"), "date 2026-09-19");
        assert_eq!(values("in October of 2026"), "month 2026-10");
    }

    proptest! {
        #[test]
        fn anything_can_be_read(text in "(\\PC|['\"`“ .-]|2026-10|May ){0,60}") {
            ParsedGoal::parse(&text).template_text();
        }
    }
}
