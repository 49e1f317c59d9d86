//! Days that a text names: `2023-05-08`, `8 May 2023`, `last week`, `before June`. Reads English names of months and
//! days; years, months and days in numbers are read in any language.

use jiff::civil::{Date, Weekday};
use jiff::{Span, ToSpan};

/// Number of milliseconds in a day.
pub(crate) const DAY_MS: i64 = 86_400_000;
/// Maximum number of days that are read from a text, and of its bytes.
const MAX_DATES_PER_TEXT: usize = 16;
const MAX_DATED_TEXT_BYTES: usize = 20_000;
/// The months, and how they are abbreviated.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Words before a bare month, year or day of the week. Without one, `may` and `march` are other words.
const DATE_PREPOSITIONS: [&str; 15] = [
    "in", "on", "of", "since", "before", "after", "until", "till", "during", "by", "from", "between", "early", "late",
    "mid",
];

/// Days that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedDays {
    /// From the first to the last of these days, in days since 1970.
    Range(i64, i64),
    /// From the first to the last of these days of any year, each as a hundredfold month plus day.
    Yearly(i64, i64),
}

impl NamedDays {
    /// Whether a day, in days since 1970, is among them.
    pub(crate) fn contains(self, day: i64) -> bool {
        match self {
            NamedDays::Range(first, last) => (first..=last).contains(&day),
            NamedDays::Yearly(first, last) => civil_date(day)
                .map(|date| i64::from(date.month()) * 100 + i64::from(date.day()))
                .is_some_and(|day| (first..=last).contains(&day)),
        }
    }

    /// Returns the days before these.
    fn before(self) -> NamedDays {
        match self {
            NamedDays::Range(first, _) => NamedDays::Range(i64::MIN, first.saturating_sub(1)),
            NamedDays::Yearly(first, _) => NamedDays::Yearly(0, first - 1),
        }
    }

    /// Returns the days from the first of these on, or only those after the last.
    fn onward(self, including: bool) -> NamedDays {
        match self {
            NamedDays::Range(first, last) => {
                NamedDays::Range(if including { first } else { last.saturating_add(1) }, i64::MAX)
            }
            NamedDays::Yearly(first, last) => NamedDays::Yearly(if including { first } else { last + 1 }, 1_231),
        }
    }

    /// Returns the days from the first of these to the last of the others.
    fn up_to(self, other: NamedDays) -> Option<NamedDays> {
        match (self, other) {
            (NamedDays::Range(first, _), NamedDays::Range(_, last)) => Some(NamedDays::Range(first, last)),
            (NamedDays::Yearly(first, _), NamedDays::Yearly(_, last)) => Some(NamedDays::Yearly(first, last)),
            // “between May and June 2023”
            (NamedDays::Yearly(first, _), NamedDays::Range(_, last)) => {
                let year = civil_date(last)?.year();
                let date = Date::new(year, i8::try_from(first / 100).ok()?, i8::try_from(first % 100).ok()?).ok()?;
                Some(NamedDays::Range(day_number(date), last))
            }
            (NamedDays::Range(..), NamedDays::Yearly(..)) => None,
        }
    }
}

/// What a question says about time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeQuestion {
    /// The days it asks about. Each is an alternative.
    pub(crate) days: Vec<NamedDays>,
    /// Whether other days are unwanted: “before June”, or what was said on a day.
    pub(crate) strict: bool,
    /// Whether it asks for a time: “when did …”.
    pub(crate) asks_when: bool,
}

/// Reads what a question says about time. `now` is in milliseconds since 1970; with 0, `last week` isn't read.
pub(crate) fn read_time_question(text: &str, now: i64) -> TimeQuestion {
    let words = split_date_words(text);
    let today = (now > 0).then(|| now.div_euclid(DAY_MS));
    let mut question = TimeQuestion::default();
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let asked = ["day", "date", "month", "year", "time"];
    let verbs = ["did", "do", "does", "is", "was", "were", "will"];
    let asks_when = words.iter().zip(1..).any(|(one, next)| match one.as_str() {
        "when" => next == 1 || verbs.contains(&word(next)),
        "what" | "which" => asked.contains(&word(next)),
        _ => false,
    });
    question.asks_when = asks_when || words.windows(3).any(|three| three == ["how", "long", "ago"]);
    let told = ["say", "said", "says", "tell", "told", "mention", "mentioned", "write", "wrote", "talk", "talked"];
    question.strict = words.iter().any(|word| told.contains(&word.as_str()));
    let mut at = 0;
    let mut open: Option<NamedDays> = None;
    while at < words.len() && question.days.len() < MAX_DATES_PER_TEXT {
        let Some((days, next)) = parse_days(&words, at, today) else {
            at += 1;
            continue;
        };
        let relation =
            if at > 0 && matches!(word(at - 1), "the" | "of") { at.checked_sub(2) } else { at.checked_sub(1) };
        let relation = relation.map_or("", word);
        let days = match relation {
            "before" | "until" | "till" => days.before(),
            "after" => days.onward(false),
            "since" => days.onward(true),
            "and" | "to" => open.take().and_then(|first| first.up_to(days)).unwrap_or(days),
            _ => days,
        };
        question.strict |= matches!(relation, "before" | "until" | "till" | "after" | "since" | "between");
        if matches!(relation, "between" | "from") {
            open = Some(days);
        } else {
            question.days.push(days);
        }
        at = next;
    }
    question.days.extend(open);
    question
}

/// Returns the first day that a text names in full, in days since 1970: the date of a heading or of a message.
pub(crate) fn first_full_date(text: &str) -> Option<i64> {
    let words = split_date_words(text);
    (0..words.len()).find_map(|at| match parse_days(&words, at, None)?.0 {
        NamedDays::Range(first, last) if first == last => Some(first),
        NamedDays::Range(..) | NamedDays::Yearly(..) => None,
    })
}

/// Returns the days that a text is about, in days since 1970, and whether it names a time at all. `said` is the day on
/// which it was said; without it, only full dates are read.
pub(crate) fn mentioned_days(text: &str, said: Option<i64>) -> Vec<(i64, i64)> {
    let words = split_date_words(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() && found.len() < MAX_DATES_PER_TEXT {
        let Some((days, next)) = parse_days(&words, at, said) else {
            at += 1;
            continue;
        };
        at = next;
        match (days, said) {
            (NamedDays::Range(first, last), _) => found.push((first, last)),
            // A month without a year is the next to the day on which it was named.
            (NamedDays::Yearly(first, last), Some(said)) => found.extend(nearest_year(first, last, said)),
            (NamedDays::Yearly(..), None) => {}
        }
    }
    found
}

fn nearest_year(first: i64, last: i64, said: i64) -> Option<(i64, i64)> {
    let year = civil_date(said)?.year();
    let day = |year: i16, at: i64| {
        let month = i8::try_from(at / 100).ok()?;
        let date = Date::new(year, month, 1).ok()?;
        Some(day_number(date) + (at % 100 - 1).min(i64::from(date.days_in_month()) - 1))
    };
    let years = [year - 1, year, year + 1].into_iter();
    let ranges = years.filter_map(|year| Some((day(year, first)?, day(year, last)?)));
    ranges.min_by_key(|(first, last)| (said - first).abs().min((said - last).abs()))
}

fn civil_date(day: i64) -> Option<Date> {
    let span = Span::new().try_days(day).ok()?;
    Date::constant(1970, 1, 1).checked_add(span).ok()
}

fn day_number(date: Date) -> i64 {
    let since = Date::constant(1970, 1, 1).until(date);
    since.map_or(0, |span| i64::from(span.get_days()))
}

/// Splits a text into lower-case words and numbers; numbers keep the marks between them.
fn split_date_words(text: &str) -> Vec<String> {
    let text = &text[..text.floor_char_boundary(MAX_DATED_TEXT_BYTES)];
    let cut = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '.' | '/'));
    let words = text.split(cut).map(|word| word.trim_matches(['-', '.', '/']));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn month_number(word: &str) -> Option<i8> {
    let place = MONTHS.iter().position(|month| {
        *month == word || (word.len() == 3 && month.starts_with(word)) || (word == "sept" && month.starts_with(word))
    })?;
    i8::try_from(place + 1).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

fn day_of_month(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    digits.parse().ok().filter(|day| digits.len() <= 2 && (1..=31).contains(day))
}

fn year_number(word: &str) -> Option<i16> {
    word.parse().ok().filter(|year| word.len() == 4 && (1_900..=2_100).contains(year))
}

fn one_day(year: i16, month: i8, day: i8) -> Option<NamedDays> {
    let day = day_number(Date::new(year, month, day).ok()?);
    Some(NamedDays::Range(day, day))
}

fn whole_month(year: i16, month: i8) -> Option<NamedDays> {
    let date = Date::new(year, month, 1).ok()?;
    Some(NamedDays::Range(day_number(date), day_number(date.last_of_month())))
}

fn whole_year(year: i16) -> Option<NamedDays> {
    let first = Date::new(year, 1, 1).ok()?;
    Some(NamedDays::Range(day_number(first), day_number(first.last_of_year())))
}

/// Reads `2023-05-08`, `2023-05`, `29.12.2023`, `5/8/2023` and `08/05/23`. Where day and month can't be told apart, the
/// day comes first.
fn parse_numeric_date(word: &str) -> Option<NamedDays> {
    let parts: Vec<&str> = word.split(['-', '.', '/']).collect();
    // `2023-05-08T10:30` was cut at the colon.
    let number = |part: &str| part.split('t').next().unwrap_or(part).parse::<i16>().ok();
    let small = |value: i16| i8::try_from(value).ok();
    match parts.as_slice() {
        [year, month] if word.contains('-') => whole_month(year_number(year)?, small(number(month)?)?),
        [year, month, day] if year.len() == 4 => {
            one_day(year_number(year)?, small(number(month)?)?, small(number(day)?)?)
        }
        [one, other, year] if matches!(year.len(), 2 | 4) => {
            let year = if year.len() == 2 { 2_000 + number(year)? } else { year_number(year)? };
            let (one, other) = (small(number(one)?)?, small(number(other)?)?);
            if other > 12 { one_day(year, one, other) } else { one_day(year, other, one) }
        }
        _ => None,
    }
}

/// Reads the days that begin at a word, and returns them with the place after them.
fn parse_days(words: &[String], at: usize, today: Option<i64>) -> Option<(NamedDays, usize)> {
    let word = |place: usize| words.get(place).map_or("", String::as_str);
    let first = word(at);
    // “and” and “to” only join two dates: the first is a year, or a month that is more than a verb.
    let is_date_word = |word: &str| DATE_PREPOSITIONS.contains(&word) || day_of_month(word).is_some();
    let is_dated = |place: usize| {
        let is_month = month_number(word(place)).is_some() && place.checked_sub(1).map(word).is_some_and(is_date_word);
        is_month || year_number(word(place)).is_some()
    };
    let stands_after = |all: &[&str]| match at.checked_sub(1).map(word) {
        Some("and" | "to") => at > 1 && is_dated(at - 2),
        Some(before) => all.contains(&before),
        None => false,
    };
    if let Some(days) = parse_numeric_date(first) {
        return Some((days, at + 1));
    }
    if let Some(month) = month_number(first) {
        if let Some(day) = day_of_month(word(at + 1)) {
            return match year_number(word(at + 2)) {
                Some(year) => Some((one_day(year, month, day)?, at + 3)),
                None => Some((yearly(month, day, day), at + 2)),
            };
        }
        if let Some(year) = year_number(word(at + 1)) {
            return Some((whole_month(year, month)?, at + 2));
        }
        let alone = MONTHS.contains(&first) && stands_after(&DATE_PREPOSITIONS);
        return alone.then(|| (yearly(month, 1, 31), at + 1));
    }
    if let Some(day) = day_of_month(first) {
        let place = if word(at + 1) == "of" { at + 2 } else { at + 1 };
        if let Some(month) = month_number(word(place)) {
            return match year_number(word(place + 1)) {
                Some(year) => Some((one_day(year, month, day)?, place + 2)),
                None => Some((yearly(month, day, day), place + 1)),
            };
        }
    }
    if let Some(year) = year_number(first) {
        let small = |place: usize| word(place).parse::<i8>().ok().filter(|_| word(place).len() == 2);
        if let (Some(month), Some(day)) = (small(at + 1), small(at + 2))
            && let Some(days) = one_day(year, month, day)
        {
            return Some((days, at + 3)); // `2023-05-08` without its marks
        }
        return stands_after(&DATE_PREPOSITIONS).then(|| whole_year(year)).flatten().map(|days| (days, at + 1));
    }
    parse_relative_days(words, at, today?)
}

fn yearly(month: i8, first: i8, last: i8) -> NamedDays {
    let month = i64::from(month) * 100;
    NamedDays::Yearly(month + i64::from(first), month + i64::from(last))
}

/// Reads days that are told from another one: `yesterday`, `two weeks ago`, `last Friday`, `this month`.
fn parse_relative_days(words: &[String], at: usize, today: i64) -> Option<(NamedDays, usize)> {
    let word = |place: usize| words.get(place).map_or("", String::as_str);
    let day = |offset: i64| Some(NamedDays::Range(today + offset, today + offset));
    let date = civil_date(today)?;
    match word(at) {
        "today" | "tonight" => return Some((day(0)?, at + 1)),
        "yesterday" if at > 1 && word(at - 1) == "before" => return Some((day(-2)?, at + 1)),
        "yesterday" => return Some((day(-1)?, at + 1)),
        "tomorrow" => return Some((day(1)?, at + 1)),
        "last" | "past" | "previous" | "this" | "next" | "on" => {}
        _ => {
            let count = number_word(word(at))?;
            let unit = word(at + 1).trim_end_matches('s').to_owned();
            if word(at + 2) != "ago" {
                return None;
            }
            let days = match unit.as_str() {
                "day" => day(-count)?,
                "week" => NamedDays::Range(today - 7 * count - 3, today - 7 * count + 3),
                "month" => month_of(date.checked_sub(count.months()).ok()?)?,
                "year" => whole_year(date.checked_sub(count.years()).ok()?.year())?,
                _ => return None,
            };
            return Some((days, at + 3));
        }
    }
    let step = match word(at) {
        "this" => 0,
        "next" => 1,
        _ => -1,
    };
    let monday = today - i64::from(date.weekday().to_monday_zero_offset());
    let days = match word(at + 1) {
        "day" | "days" | "on" | "" => return None,
        other if weekday(other).is_some() => {
            let back = i64::from(date.weekday().since(weekday(other)?));
            let back = if back == 0 { 7 } else { back };
            if step > 0 { day(7 - back % 7)? } else { day(-back)? }
        }
        _ if word(at) == "on" => return None,
        "week" => NamedDays::Range(monday + 7 * step, monday + 7 * step + 6),
        "weekend" => NamedDays::Range(monday + 7 * step + 5, monday + 7 * step + 6),
        "night" => day(step.min(0))?,
        "month" => month_of(date.checked_add(step.months()).ok()?)?,
        "year" => whole_year(date.checked_add(step.years()).ok()?.year())?,
        "summer" => {
            let year = date.checked_add(step.min(0).years()).ok()?.year();
            NamedDays::Range(day_number(Date::new(year, 6, 1).ok()?), day_number(Date::new(year, 8, 31).ok()?))
        }
        _ => return None,
    };
    Some((days, at + 2))
}

fn month_of(date: Date) -> Option<NamedDays> {
    whole_month(date.year(), date.month())
}

fn number_word(word: &str) -> Option<i64> {
    let known = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    match word {
        "a" | "an" => Some(1),
        "few" => Some(3),
        _ => {
            let named = known.iter().position(|known| *known == word).and_then(|place| i64::try_from(place + 1).ok());
            named.or_else(|| word.parse().ok().filter(|count| (1..=1_000).contains(count)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn day(text: &str) -> i64 {
        day_number(text.parse().expect("a date"))
    }

    fn range(first: &str, last: &str) -> NamedDays {
        NamedDays::Range(day(first), day(last))
    }

    #[test]
    fn dates_are_read_in_the_forms_that_people_write() {
        for text in [
            "2023-05-08",
            "8 May 2023",
            "1:56 pm on 8 May, 2023",
            "May 8th, 2023",
            "08.05.2023, 22:42:04",
            "Session 3 (8/5/2023)",
            "on the 8th of May 2023",
            "2023 05 08",
            "2023-05-08T10:30:00Z",
        ] {
            assert_eq!(first_full_date(text), Some(day("2023-05-08")), "{text}");
        }
        assert_eq!(first_full_date("5/28/2023"), Some(day("2023-05-28")));
        for text in ["", "I may go", "2023", "in May", "1.2.3", "version 2023.99.99", "30 February 2023", "99/99/2023"]
        {
            assert_eq!(first_full_date(text), None, "{text}");
        }
    }

    #[test]
    fn questions_name_days_and_ranges() {
        let now = day("2026-11-26") * DAY_MS;
        let asked = |text: &str| read_time_question(text, now).days;
        assert_eq!(asked("What did Ann say before June 2023?"), [NamedDays::Range(i64::MIN, day("2023-05-31"))]);
        assert_eq!(asked("since 2023-05-08"), [NamedDays::Range(day("2023-05-08"), i64::MAX)]);
        assert_eq!(asked("after May 2023"), [NamedDays::Range(day("2023-06-01"), i64::MAX)]);
        assert_eq!(asked("between 3 May 2023 and July 2023"), [range("2023-05-03", "2023-07-31")]);
        assert_eq!(asked("between May and July 2023"), [range("2023-05-01", "2023-07-31")]);
        assert_eq!(asked("in May"), [NamedDays::Yearly(501, 531)]);
        assert_eq!(asked("before June"), [NamedDays::Yearly(0, 600)]);
        assert_eq!(asked("what happened last week"), [range("2026-11-16", "2026-11-22")]);
        assert_eq!(asked("two months ago"), [range("2026-09-01", "2026-09-30")]);
        assert_eq!(asked("during 2023"), [range("2023-01-01", "2023-12-31")]);
        assert!(asked("we may march to 2000 bells").is_empty());
        assert!(asked("we may march with 2000 bells").is_empty());
        assert!(NamedDays::Yearly(501, 531).contains(day("2019-05-31")));
        assert!(!NamedDays::Yearly(0, 600).contains(day("2019-06-01")));
        let strict = |text: &str| read_time_question(text, now).strict;
        assert!(strict("what did Ann say in May") && strict("before May 2023") && !strict("the party in May"));
        let when = |text: &str| read_time_question(text, now).asks_when;
        assert!(when("When did I go?") && when("on what day was it") && !when("what did she eat"));
    }

    #[test]
    fn what_is_told_from_another_day_is_resolved() {
        let said = Some(day("2023-05-08")); // a Monday
        let mentioned = |text: &str| mentioned_days(text, said);
        let days = |first: &str, last: &str| vec![(day(first), day(last))];
        assert_eq!(mentioned("I went yesterday"), days("2023-05-07", "2023-05-07"));
        assert_eq!(mentioned("last Friday"), days("2023-05-05", "2023-05-05"));
        assert_eq!(mentioned("next month!"), days("2023-06-01", "2023-06-30"));
        assert_eq!(mentioned("we moved last weekend"), days("2023-05-06", "2023-05-07"));
        assert_eq!(mentioned("in December"), days("2022-12-01", "2022-12-31"));
        assert_eq!(mentioned("three days ago"), days("2023-05-05", "2023-05-05"));
        assert!(mentioned_days("yesterday", None).is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics(
            text in "([0-9]{1,4}|-|/|\\.| |may|last |week|before |and |between |ago|days|\\PC){0,30}",
            said in -200_000_i64..4_000_000,
        ) {
            let _ = (read_time_question(&text, said * DAY_MS), first_full_date(&text));
            let _ = mentioned_days(&text, Some(said));
        }
    }
}
