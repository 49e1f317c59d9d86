//! Recurrence rules of tasks, as the Tasks plugin writes them: `every week on Tuesday, Friday`,
//! `every month on the last Friday`, `every January on the 15th`, each possibly with `when done`.

use crate::task::CalendarDay;

/// Recurrence rule of a task.
#[derive(Debug, PartialEq)]
pub(crate) struct RecurrenceRule {
    interval: i64,
    unit: RecurrenceUnit,
    /// Days of the week, month or year; empty for the day of the last occurrence.
    days: Vec<RecurrenceDay>,
    /// Months from 1 to 12 in which it occurs; empty for all.
    months: Vec<i64>,
    /// Whether the next day is counted from the day on which the task is completed.
    pub(crate) when_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RecurrenceUnit {
    Days,
    Workdays,
    Weeks,
    Months,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RecurrenceDay {
    /// Each such weekday, 0 for Monday.
    Weekday(i64),
    /// The weekday with this number in its month, such as 2 for the second; counted from the end if it's negative.
    NumberedWeekday { number: i64, weekday: i64 },
    /// The day with this number in its month, counted from the end if it's negative.
    MonthDay(i64),
}

const RECURRENCE_WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const RECURRENCE_MONTHS: [&str; 12] = [
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
/// Maximum number of periods until the next occurrence. February 29 may be eight years away.
const MAX_SEARCHED_PERIODS: i64 = 12 * 9;
const MAX_INTERVAL: i64 = 1_000;
/// Maximum number of days and months that a rule lists.
const MAX_LISTED_DAYS: usize = 50;

impl RecurrenceRule {
    /// Parses a rule such as `every 2 weeks`, `every month when done`, `every friday`.
    pub(crate) fn parse(text: &str) -> Option<RecurrenceRule> {
        let lower = text.trim().to_lowercase();
        let when_done = lower.ends_with("when done");
        let rule = lower.trim_end_matches("when done").replace(',', " ");
        let mut words = rule.split_whitespace().filter(|word| !matches!(*word, "and" | "the")).peekable();
        (words.next()? == "every").then_some(())?;
        let word = *words.peek()?;
        let given = word.parse::<i64>().ok().or((word == "other").then_some(2));
        if given.is_some() {
            words.next();
        }
        let count = given.unwrap_or(1);
        (1..=MAX_INTERVAL).contains(&count).then_some(())?;
        let (mut days, mut months) = (Vec::new(), Vec::new());
        let first = words.next()?;
        let (interval, unit) = match first.trim_end_matches('s') {
            "day" => (count, RecurrenceUnit::Days),
            "weekday" => (count, RecurrenceUnit::Workdays),
            "week" => (count, RecurrenceUnit::Weeks),
            "month" => (count, RecurrenceUnit::Months),
            "quarter" => (count * 3, RecurrenceUnit::Months),
            "year" => (count * 12, RecurrenceUnit::Months),
            name => {
                if let Some(weekday) = position(&RECURRENCE_WEEKDAYS, name) {
                    days.push(RecurrenceDay::Weekday(weekday));
                    (count, RecurrenceUnit::Weeks)
                } else {
                    months.push(position(&RECURRENCE_MONTHS, first)? + 1);
                    (count, RecurrenceUnit::Months)
                }
            }
        };
        while let Some(word) = words.next() {
            if let Some(month) = position(&RECURRENCE_MONTHS, word) {
                months.push(month + 1);
            } else if let Some(weekday) = position(&RECURRENCE_WEEKDAYS, word) {
                days.push(RecurrenceDay::Weekday(weekday));
            } else if word != "on" {
                let mut number = if word == "last" { -1 } else { parse_ordinal(word)? };
                if number > 0 && words.next_if_eq(&"last").is_some() {
                    number = -number;
                }
                let weekday = words.peek().and_then(|word| position(&RECURRENCE_WEEKDAYS, word));
                days.push(weekday.map_or(RecurrenceDay::MonthDay(number), |weekday| RecurrenceDay::NumberedWeekday {
                    number,
                    weekday,
                }));
                if weekday.is_some() {
                    words.next();
                }
            }
        }
        (days.len() + months.len() <= MAX_LISTED_DAYS).then_some(())?;
        let is_plain = days.is_empty() && months.is_empty();
        let is_weekly = months.is_empty() && days.iter().all(|day| matches!(day, RecurrenceDay::Weekday(_)));
        let is_understood = match unit {
            RecurrenceUnit::Days | RecurrenceUnit::Workdays => is_plain,
            RecurrenceUnit::Weeks => is_weekly,
            // Of a year's days, only those with a month are understood.
            RecurrenceUnit::Months if months.is_empty() => is_plain || interval != count * 12,
            RecurrenceUnit::Months => count == 1,
        };
        let interval = if months.is_empty() { interval } else { 1 };
        is_understood.then_some(RecurrenceRule { interval, unit, days, months, when_done })
    }

    /// Returns the next day after `day`. `None` if there's none within many years.
    pub(crate) fn next_day(&self, day: CalendarDay) -> Option<CalendarDay> {
        match self.unit {
            RecurrenceUnit::Days => Some(CalendarDay(day.0 + self.interval)),
            RecurrenceUnit::Workdays => {
                let next = CalendarDay(day.0 + 1);
                let next = if next.weekday() > 4 { next.0 + 7 - next.weekday() } else { next.0 };
                Some(CalendarDay(next))
            }
            RecurrenceUnit::Weeks if self.days.is_empty() => Some(CalendarDay(day.0 + 7 * self.interval)),
            RecurrenceUnit::Weeks => {
                let monday = day.0 - day.weekday();
                let weekdays = self.days.iter().filter_map(|one| match one {
                    RecurrenceDay::Weekday(weekday) => Some(*weekday),
                    RecurrenceDay::NumberedWeekday { .. } | RecurrenceDay::MonthDay(_) => None,
                });
                let places = weekdays.flat_map(|weekday| [monday + weekday, monday + weekday + 7 * self.interval]);
                places.filter(|place| *place > day.0).min().map(CalendarDay)
            }
            RecurrenceUnit::Months if self.days.is_empty() && self.months.is_empty() => {
                Some(day.add_months(self.interval))
            }
            RecurrenceUnit::Months => self.next_day_of_month(day),
        }
    }

    fn next_day_of_month(&self, day: CalendarDay) -> Option<CalendarDay> {
        let (year, month, of_month) = day.date();
        let first = CalendarDay::from_date(year, month, 1);
        let same = [RecurrenceDay::MonthDay(of_month)];
        let days = if self.days.is_empty() { &same[..] } else { &self.days };
        (0..MAX_SEARCHED_PERIODS).find_map(|period| {
            let first = first.add_months(period * self.interval);
            let fits = self.months.is_empty() || self.months.contains(&first.date().1);
            let last = CalendarDay(first.add_months(1).0 - 1);
            let places = days.iter().filter(|_| fits).flat_map(|one| one.in_month(first, last));
            places.filter(|place| *place > day).min()
        })
    }
}

impl RecurrenceDay {
    /// Returns the days that fit in a month.
    fn in_month(self, first: CalendarDay, last: CalendarDay) -> Vec<CalendarDay> {
        let fits = |day: &CalendarDay| first <= *day && *day <= last;
        match self {
            RecurrenceDay::Weekday(weekday) => {
                (first.0..=last.0).map(CalendarDay).filter(|day| day.weekday() == weekday).collect()
            }
            RecurrenceDay::MonthDay(number) => {
                let day = if number > 0 { first.0 + number - 1 } else { last.0 + number + 1 };
                Some(CalendarDay(day)).filter(fits).into_iter().collect()
            }
            RecurrenceDay::NumberedWeekday { number, weekday } => {
                let day = if number > 0 {
                    first.0 + (weekday - first.weekday()).rem_euclid(7) + 7 * (number - 1)
                } else {
                    last.0 - (last.weekday() - weekday).rem_euclid(7) + 7 * (number + 1)
                };
                Some(CalendarDay(day)).filter(fits).into_iter().collect()
            }
        }
    }
}

fn position(names: &[&str], word: &str) -> Option<i64> {
    names.iter().zip(0..).find(|(name, _)| **name == word).map(|(_, place)| place)
}

/// Parses `1st`, `22nd` or `15`, from 1 to 31.
fn parse_ordinal(word: &str) -> Option<i64> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th").then_some(())?;
    digits.parse::<i64>().ok().filter(|number| (1..=31).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> CalendarDay {
        CalendarDay::parse(text).expect("a day")
    }

    #[test]
    fn rules_give_the_days_that_the_tasks_plugin_gives() {
        for (rule, from, next) in [
            ("every day", "2024-02-28", "2024-02-29"),
            ("every other day", "2024-02-28", "2024-03-01"),
            ("every 2 weeks", "2024-05-06", "2024-05-20"),
            ("every Sunday", "2024-05-10", "2024-05-12"),
            ("every week on Sunday", "2024-05-12", "2024-05-19"),
            ("every week on Tuesday, Friday", "2024-05-07", "2024-05-10"),
            ("every week on Tuesday and Friday", "2024-05-10", "2024-05-14"),
            ("every 3 weeks on Friday", "2024-05-06", "2024-05-10"),
            ("every 3 weeks on Friday", "2024-05-10", "2024-05-31"),
            ("every month on the 25th", "2024-05-10", "2024-05-25"),
            ("every month on the 31st", "2024-03-31", "2024-05-31"),
            ("every month on the last", "2024-01-31", "2024-02-29"),
            ("every month on the last Friday", "2024-05-10", "2024-05-31"),
            ("every month on the 2nd last Friday", "2024-05-10", "2024-05-24"),
            ("every month on the 1st and 24th", "2024-05-24", "2024-06-01"),
            ("every 6 months on the 2nd Wednesday", "2024-05-08", "2024-11-13"),
            ("every month on Monday", "2024-05-27", "2024-06-03"),
            ("every January on the 15th", "2024-05-10", "2025-01-15"),
            ("every April and December on the 1st and 24th", "2024-04-24", "2024-12-01"),
            ("every February on the last", "2024-03-01", "2025-02-28"),
            ("every May", "2024-05-10", "2025-05-10"),
            ("every month", "2024-01-31", "2024-02-29"),
            ("every year", "2024-02-29", "2025-02-28"),
            ("every February on the 29th", "2096-02-29", "2104-02-29"),
        ] {
            let read = RecurrenceRule::parse(rule).unwrap_or_else(|| panic!("{rule}"));
            assert_eq!(read.next_day(day(from)), Some(day(next)), "{rule} from {from}");
            assert!(!read.when_done);
        }
        assert!(RecurrenceRule::parse("every month on the last when done").is_some_and(|rule| rule.when_done));
    }

    #[test]
    fn what_is_no_rule_has_no_next_day() {
        for text in [
            "",
            "every",
            "every 0 days",
            "every 1001 days",
            "every seven weeks",
            "every day on Monday",
            "every week on the 1st",
            "every week on the last Friday",
            "every year on the 15th",
            "every month on the 32nd",
            "every month on the 1xx",
            "every month until friday",
            "every 2 January",
            "every month on the é",
        ] {
            assert_eq!(RecurrenceRule::parse(text), None, "{text}");
        }
        let many = format!("every month on the 1st{}", " and 2nd".repeat(MAX_LISTED_DAYS));
        assert_eq!(RecurrenceRule::parse(&many), None);
        let never = RecurrenceRule::parse("every February on the 30th").expect("a rule");
        assert_eq!(never.next_day(day("2024-05-10")), None);
    }
}
