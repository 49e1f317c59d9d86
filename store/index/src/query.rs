//! The query language: words, "phrases", -exclusions, `field:value` and OR. Every text is a valid query; anything that
//! can't be parsed is treated as words.

use crate::analyzer;
use crate::passage::PassageKind;
use std::ops::Range;

/// The fields of queries, each with an example of its value.
const FIELD_EXAMPLES: [(&str, &str); 9] = [
    ("tag", "work"),
    ("path", "projects/"),
    ("title", "plan"),
    ("in", "code"),
    ("lang", "python"),
    ("by", "anna"),
    ("before", "2026-11-22"),
    ("after", "2026-11-22"),
    ("is", "todo"),
];

/// One condition of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryAtom {
    /// A word, or with `prefix` every word that starts with it (`auto*`).
    Word {
        /// The word as typed.
        text: String,
        /// Whether words that start with it match too.
        prefix: bool,
    },
    /// Consecutive words.
    Phrase(String),
    /// `tag:NAME`: this tag or one nested below it.
    Tag(String),
    /// `path:`: part of the path.
    Path(String),
    /// `title:`: words of the title.
    Title(String),
    /// `in:KIND`: a kind of passage.
    In(PassageKind),
    /// `lang:`: the language of code.
    Lang(String),
    /// `by:`: the speaker of a turn.
    By(String),
    /// `before:`: said or changed before this day (milliseconds since 1970).
    Before(i64),
    /// `after:`: said or changed on this day or later (milliseconds since 1970).
    After(i64),
    /// `is:todo` (`done` is `false`) or `is:done` (`true`).
    Is {
        /// Whether the todo is done.
        done: bool,
    },
}

/// A group of alternatives, one of which must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryGroup {
    /// The alternatives, one of which must match.
    pub atoms: Vec<QueryAtom>,
    /// Whether the group is negated: no alternative may match.
    pub not: bool,
}

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedQuery {
    /// The groups of the query, all of which must match. Groups of a single word are an exception: the best hits are
    /// shown, even if they lack some of these words.
    pub groups: Vec<QueryGroup>,
}

impl ParsedQuery {
    /// Parses a query.
    pub fn parse(text: &str) -> ParsedQuery {
        let mut groups: Vec<QueryGroup> = Vec::new();
        let mut joined = false;
        for piece in split_pieces(text) {
            let raw = &text[piece.clone()];
            if raw == "OR" {
                joined = !groups.is_empty();
                continue;
            }
            if raw == "-" {
                continue; // a dash alone says nothing
            }
            let (not, raw) = match raw.strip_prefix('-') {
                Some(rest) if !rest.is_empty() => (true, rest),
                Some(_) | None => (false, raw),
            };
            let atom = parse_atom(raw);
            match groups.last_mut().filter(|last| joined && !last.not && !not) {
                Some(last) => last.atoms.push(atom),
                None => groups.push(QueryGroup { atoms: vec![atom], not }),
            }
            joined = false;
        }
        ParsedQuery { groups }
    }

    /// Returns an explanation of the first filter that couldn't be parsed and is searched as a word, such as
    /// `before:soon`.
    pub fn misread_filter(text: &str) -> Option<String> {
        split_pieces(text).into_iter().find_map(|piece| {
            let raw = text[piece].trim_start_matches('-');
            let (field, value) = raw.split_once(':')?;
            let (field, value) = (field.to_ascii_lowercase(), value.trim_matches('"'));
            if value.is_empty() {
                let example = FIELD_EXAMPLES.iter().find(|(name, _)| *name == field)?;
                return Some(format!("{field}: has no value, such as {field}:{}", example.1));
            }
            if parse_field(&field, value).is_some() {
                return None;
            }
            match field.as_str() {
                "before" | "after" => Some(format!("“{value}” is no day; days are written 2026-11-22")),
                "in" => Some(format!("in: knows code, output, prose, run and memory, and no “{value}”")),
                "is" => Some(format!("is: knows todo and done, and no “{value}”")),
                _ => None,
            }
        })
    }

    /// Returns the words that rank hits: single words and words of phrases and titles, without excluded ones.
    pub fn ranking_words(&self) -> Vec<(String, bool)> {
        let mut words = Vec::new();
        for atom in self.groups.iter().filter(|group| !group.not).flat_map(|group| &group.atoms) {
            match atom {
                QueryAtom::Word { text, prefix } => words.push((text.clone(), *prefix)),
                QueryAtom::Phrase(text) | QueryAtom::Title(text) => {
                    words.extend(text.split_whitespace().map(|word| (word.to_owned(), false)));
                }
                QueryAtom::Tag(_)
                | QueryAtom::Path(_)
                | QueryAtom::In(_)
                | QueryAtom::Lang(_)
                | QueryAtom::By(_)
                | QueryAtom::Before(_)
                | QueryAtom::After(_)
                | QueryAtom::Is { .. } => {}
            }
        }
        words
    }

    /// Returns the query's words without filters: the text that is compared by meaning.
    pub fn meaning_text(&self) -> String {
        self.ranking_words().into_iter().map(|(word, _)| word).collect::<Vec<_>>().join(" ")
    }

    /// Whether the query asks for memories, with `in:memory`.
    pub fn asks_for_memory(&self) -> bool {
        let mut atoms = self.groups.iter().filter(|group| !group.not).flat_map(|group| &group.atoms);
        atoms.any(|atom| *atom == QueryAtom::In(PassageKind::Memory))
    }

    /// Whether a hit must meet conditions besides containing one of the words.
    pub fn is_strict(&self) -> bool {
        self.groups.iter().any(|group| !group.is_loose())
    }
}

impl QueryGroup {
    /// Whether the group is a single word, which hits may lack.
    pub fn is_loose(&self) -> bool {
        !self.not && matches!(self.atoms.as_slice(), [QueryAtom::Word { .. }])
    }
}

/// Splits a query at spaces outside quotes.
fn split_pieces(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start: Option<usize> = None;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        if c == '"' {
            quoted = !quoted;
            start.get_or_insert(at);
            if !quoted && let Some(from) = start.take() {
                out.push(from..at + 1);
            }
        } else if c.is_whitespace() && !quoted {
            out.extend(start.take().map(|from| from..at));
        } else {
            start.get_or_insert(at);
        }
    }
    out.extend(start.map(|from| from..text.len()));
    out
}

fn parse_atom(raw: &str) -> QueryAtom {
    let unquoted = |text: &str| text.trim_matches('"').to_owned();
    if let Some((field, value)) = raw.split_once(':') {
        let value = unquoted(value);
        let known = (!value.is_empty()).then(|| parse_field(&field.to_ascii_lowercase(), &value)).flatten();
        if let Some(known) = known {
            return known;
        }
    }
    if raw.starts_with('"') && raw.len() > 1 {
        return QueryAtom::Phrase(unquoted(raw));
    }
    match raw.strip_suffix('*') {
        Some(start) if !start.is_empty() => QueryAtom::Word { text: start.to_owned(), prefix: true },
        Some(_) | None => QueryAtom::Word { text: raw.to_owned(), prefix: false },
    }
}

fn parse_field(field: &str, value: &str) -> Option<QueryAtom> {
    match field {
        "tag" => Some(QueryAtom::Tag(value.trim_start_matches('#').to_lowercase())),
        "path" => Some(QueryAtom::Path(value.to_lowercase())),
        "title" => Some(QueryAtom::Title(value.to_owned())),
        "in" => PassageKind::from_name(&value.to_ascii_lowercase()).map(QueryAtom::In),
        "lang" => Some(QueryAtom::Lang(value.to_lowercase())),
        "by" => Some(QueryAtom::By(analyzer::fold_text(value))),
        "before" => parse_day(value).map(QueryAtom::Before),
        "after" => parse_day(value).map(QueryAtom::After),
        "is" => match value.to_ascii_lowercase().as_str() {
            "todo" | "open" => Some(QueryAtom::Is { done: false }),
            "done" => Some(QueryAtom::Is { done: true }),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the first millisecond (UTC) of a day, month or year: `2026-11-22`, `2026-11`, `2026`.
fn parse_day(text: &str) -> Option<i64> {
    let mut numbers = text.split('-').map(|part| part.parse::<i64>().ok());
    let year = numbers.next()??;
    let month = numbers.next().unwrap_or(Some(1))?;
    let day = numbers.next().unwrap_or(Some(1))?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let fits = (0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=length).contains(&day);
    if !fits || numbers.next().is_some() {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with years starting in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let in_era = year.rem_euclid(400);
    let in_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719_468;
    Some(days * 86_400_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(text: &str) -> QueryAtom {
        QueryAtom::Word { text: text.to_owned(), prefix: false }
    }

    #[test]
    fn queries_are_taken_apart() {
        let group = |atoms: Vec<QueryAtom>| QueryGroup { atoms, not: false };
        let query = ParsedQuery::parse("rust \"two words\" -not OR tag:#Work path:a/b in:code is:done auto* x:y");
        assert_eq!(
            query.groups,
            [
                group(vec![word("rust")]),
                group(vec![QueryAtom::Phrase("two words".to_owned())]),
                QueryGroup { atoms: vec![word("not")], not: true },
                group(vec![QueryAtom::Tag("work".to_owned())]),
                group(vec![QueryAtom::Path("a/b".to_owned())]),
                group(vec![QueryAtom::In(PassageKind::Code)]),
                group(vec![QueryAtom::Is { done: true }]),
                group(vec![QueryAtom::Word { text: "auto".to_owned(), prefix: true }]),
                group(vec![word("x:y")]),
            ]
        );
        assert_eq!(ParsedQuery::parse("a OR tag:b c").groups.len(), 2);
        assert_eq!(
            ParsedQuery::parse("title:\"two words\"").groups[0].atoms,
            [QueryAtom::Title("two words".to_owned())]
        );
        assert_eq!(ParsedQuery::parse("\"open end").groups[0].atoms, [QueryAtom::Phrase("open end".to_owned())]);
        assert_eq!(ParsedQuery::parse("OR - \" -\"").ranking_words().len(), 1);
        assert_eq!(ParsedQuery::parse("rust tag:x").meaning_text(), "rust");
    }

    #[test]
    fn filters_that_are_none_are_told() {
        for (text, part) in [("rust before:soon", "no day"), ("-is:bad", "todo and done"), ("in:\"all\"", "prose")] {
            assert!(ParsedQuery::misread_filter(text).is_some_and(|said| said.contains(part)), "{text}");
        }
        for (text, part) in [("x tag:", "tag:work"), ("after:2027-02-30", "no day"), ("-is:", "is:todo")] {
            assert!(ParsedQuery::misread_filter(text).is_some_and(|said| said.contains(part)), "{text}");
        }
        for text in ["before:2026-11", "note:", "std::io", "http://x.org", "is:todo in:code", "\"before:soon\""] {
            assert_eq!(ParsedQuery::misread_filter(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_counted() {
        assert_eq!(parse_day("1970-01-01"), Some(0));
        assert_eq!(parse_day("2026-11-22"), Some(1_795_305_600_000));
        assert_eq!(parse_day("2024-03"), Some(1_709_251_200_000));
        assert_eq!(parse_day("2024"), Some(1_704_067_200_000));
        assert_eq!((parse_day("2024-13"), parse_day("x"), parse_day("1-1-1-1")), (None, None, None));
        assert_eq!((parse_day("2027-02-29"), parse_day("2027-04-31")), (None, None));
        assert!(parse_day("2028-02-29").is_some());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\PC|\"|:|-| |OR |tag:|before:|is:|\\*){0,40}") {
            let query = ParsedQuery::parse(&text);
            let _ = (query.ranking_words(), query.meaning_text(), query.is_strict());
        }
    }
}
