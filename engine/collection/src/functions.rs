//! Functions in a collection's expressions, with the names that Obsidian's Bases gives them.

use super::eval::{EvalScope, FormulaError, count_value, text_value};
use super::value::{ExprValue, LinkValue, TimeSpan, date_text, day_of, parse_date};
use std::cmp::Ordering;
use store::DocId;

/// Maximum length of a repeated text, in bytes.
const MAX_REPEATED_BYTES: usize = 1 << 16;

impl EvalScope<'_> {
    pub(super) fn call_function(&self, name: &str, mut all: Vec<ExprValue>) -> Result<ExprValue, FormulaError> {
        if matches!(name, "min" | "max") {
            let numbers = all.into_iter().flat_map(ExprValue::into_items).filter_map(|one| one.as_number());
            let pick = if name == "min" { f64::min } else { f64::max };
            return Ok(numbers.reduce(pick).map_or(ExprValue::Nothing, ExprValue::Number));
        }
        let second = (all.len() > 1).then(|| all.swap_remove(1));
        let first = if all.is_empty() { ExprValue::Nothing } else { all.remove(0) };
        let now = self.now;
        Ok(match name {
            "link" | "image" => {
                let words = second.map(|words| words.to_text());
                match first {
                    ExprValue::Link(link) => ExprValue::Link(LinkValue { words: words.or(link.words), ..link }),
                    ExprValue::File(file, path) => ExprValue::Link(LinkValue { target: path, words, to: Some(file) }),
                    ExprValue::Nothing => ExprValue::Nothing,
                    other => {
                        let target = other.to_text();
                        let inner = target.trim_start_matches("[[").trim_end_matches("]]").to_owned();
                        let read = LinkValue::parse(&inner, &|path| self.resolve_link(path));
                        ExprValue::Link(LinkValue { words: words.or(read.words), ..read })
                    }
                }
            }
            "list" => {
                let mut items = first.into_items();
                items.extend(second);
                items.append(&mut all);
                ExprValue::List(items)
            }
            "now" => ExprValue::Date(now.local, true),
            "today" => ExprValue::Date(now.today().0.saturating_mul(86_400_000), false),
            "date" => match first {
                ExprValue::Date(..) => first,
                other => {
                    parse_date(&other.to_text()).map_or(ExprValue::Nothing, |(ms, timed)| ExprValue::Date(ms, timed))
                }
            },
            "duration" => TimeSpan::parse(&first.to_text()).map_or(ExprValue::Nothing, ExprValue::Span),
            "number" => first.as_number().map_or(ExprValue::Nothing, ExprValue::Number),
            "file" => self.linked_file(&first).map_or(ExprValue::Nothing, |file| self.file_value(file)),
            "empty" => ExprValue::Bool(first.is_empty()),
            "not" => ExprValue::Bool(!first.is_true()),
            // HTML and icons are shown as plain text.
            "html" | "escapeHTML" | "icon" => text_value(first.to_text()),
            _ => return Err(FormulaError::UnknownFunction { name: name.to_owned() }),
        })
    }

    fn contains_value(&self, of: &ExprValue, wanted: &ExprValue) -> bool {
        match (of, wanted) {
            (ExprValue::List(items), _) => items.iter().any(|item| self.is_equal(item, wanted)),
            (ExprValue::Nothing, _) => false,
            (ExprValue::Text(text), ExprValue::Text(part)) => text.contains(part.as_str()),
            // Filters test for images by the extension of their link.
            (ExprValue::Link(link), ExprValue::Text(part)) => link.target.contains(part.as_str()),
            (of, ExprValue::Text(part)) => of.to_text().contains(part.as_str()),
            (of, wanted) => self.is_equal(of, wanted),
        }
    }

    pub(super) fn call_method(
        &self,
        of: &ExprValue,
        name: &str,
        all: Vec<ExprValue>,
    ) -> Result<ExprValue, FormulaError> {
        let wanted = || all.iter().cloned().flat_map(ExprValue::into_items).collect::<Vec<_>>();
        let first = || all.first().map(ExprValue::to_text).unwrap_or_default();
        match name {
            "contains" => {
                return Ok(ExprValue::Bool(all.first().is_some_and(|wanted| self.contains_value(of, wanted))));
            }
            "containsAny" => return Ok(ExprValue::Bool(wanted().iter().any(|wanted| self.contains_value(of, wanted)))),
            "containsAll" => return Ok(ExprValue::Bool(wanted().iter().all(|wanted| self.contains_value(of, wanted)))),
            "isEmpty" => return Ok(ExprValue::Bool(of.is_empty())),
            "isTruthy" => return Ok(ExprValue::Bool(of.is_true())),
            "isType" => return Ok(ExprValue::Bool(type_name(of) == first())),
            "toString" => return Ok(text_value(of.to_text())),
            _ => {}
        }
        let found = match of {
            ExprValue::File(file, path) => self.file_method(*file, path, name, &all),
            ExprValue::List(items) => self.list_method(items, name, &all),
            ExprValue::Number(number) => number_method(*number, name, &all),
            ExprValue::Date(ms, _) => self.date_method(*ms, name, &first()),
            ExprValue::Link(link) => match (name, link.to) {
                ("asFile", to) => Some(to.map_or(ExprValue::Nothing, |file| self.file_value(file))),
                ("linksTo", to) => {
                    Some(ExprValue::Bool(to.is_some() && to == all.first().and_then(|wanted| self.linked_file(wanted))))
                }
                (_, Some(to)) => self.file_method(to, "", name, &all),
                (_, None) => None,
            },
            ExprValue::Nothing => return Ok(ExprValue::Nothing),
            _ => None,
        };
        match found.or_else(|| text_method(&of.to_text(), name, &all)) {
            Some(found) => Ok(found),
            None => Err(FormulaError::UnknownMethod { name: name.to_owned() }),
        }
    }

    fn file_method(&self, file: DocId, path: &str, name: &str, all: &[ExprValue]) -> Option<ExprValue> {
        let first = all.first().map(ExprValue::to_text).unwrap_or_default();
        Some(match name {
            "hasTag" => {
                let fits = |tag: &String, wanted: &str| {
                    let (tag, wanted) = (tag.to_lowercase(), wanted.trim_start_matches('#').to_lowercase());
                    tag == wanted || tag.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('/'))
                };
                let wanted: Vec<String> =
                    all.iter().cloned().flat_map(ExprValue::into_items).map(|one| one.to_text()).collect();
                ExprValue::Bool(self.file_tags(file).iter().any(|tag| wanted.iter().any(|wanted| fits(tag, wanted))))
            }
            "inFolder" => {
                let folder = first.trim_matches('/');
                let below = path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
                ExprValue::Bool(folder.is_empty() || below)
            }
            "hasLink" => {
                let wanted = all.first().and_then(|wanted| self.linked_file(wanted));
                let leads = |wanted: DocId| self.source.links.outgoing_links(file).any(|(_, to)| to == Some(wanted));
                ExprValue::Bool(wanted.is_some_and(leads))
            }
            "hasProperty" => {
                let outline = self.source.links.outline(file);
                let has = |key: &String| key.eq_ignore_ascii_case(&first);
                ExprValue::Bool(outline.is_some_and(|outline| outline.properties.keys().any(has)))
            }
            "asLink" => {
                let words = Some(first).filter(|words| !words.is_empty());
                ExprValue::Link(LinkValue { target: path.to_owned(), words, to: Some(file) })
            }
            "asFile" => self.file_value(file),
            _ => return None,
        })
    }

    fn list_method(&self, items: &[ExprValue], name: &str, all: &[ExprValue]) -> Option<ExprValue> {
        let numbers = || items.iter().filter_map(ExprValue::as_number).collect::<Vec<f64>>();
        Some(match name {
            "join" => {
                let between = all.first().map(ExprValue::to_text).unwrap_or_default();
                text_value(items.iter().map(ExprValue::to_text).collect::<Vec<_>>().join(&between))
            }
            "unique" => {
                let mut found: Vec<ExprValue> = Vec::new();
                for item in items {
                    if !found.iter().any(|other| self.is_equal(other, item)) {
                        found.push(item.clone());
                    }
                }
                ExprValue::List(found)
            }
            "flat" => ExprValue::List(items.iter().cloned().flat_map(ExprValue::into_items).collect()),
            "reverse" => ExprValue::List(items.iter().rev().cloned().collect()),
            "sort" => {
                let mut items = items.to_vec();
                items.sort_by(|one, other| one.sort_key().compare(&other.sort_key(), false));
                ExprValue::List(items)
            }
            "slice" => {
                let (from, to) = slice_range(all, items.len());
                ExprValue::List(items.get(from..to).unwrap_or_default().to_vec())
            }
            "sum" => ExprValue::Number(numbers().iter().sum()),
            "mean" | "average" => super::summary::summarize("Average", items),
            "median" | "min" | "max" | "stddev" => {
                super::summary::summarize(&format!("{}{}", name[..1].to_uppercase(), &name[1..]), items)
            }
            _ => return None,
        })
    }

    fn date_method(&self, ms: i64, name: &str, format: &str) -> Option<ExprValue> {
        Some(match name {
            "date" => ExprValue::Date(day_of(ms).0.saturating_mul(86_400_000), false),
            "time" => text_value(date_text(ms, true).split_off(11)),
            "format" => text_value(format_date(ms, format)),
            "relative" => text_value(relative_day(day_of(ms).0 - self.now.today().0)),
            _ => return None,
        })
    }
}

fn type_name(of: &ExprValue) -> &'static str {
    match of {
        ExprValue::Nothing => "null",
        ExprValue::Bool(_) => "boolean",
        ExprValue::Number(_) => "number",
        ExprValue::Text(_) => "string",
        ExprValue::Date(..) => "date",
        ExprValue::Span(_) => "duration",
        ExprValue::Link(_) => "link",
        ExprValue::File(..) => "file",
        ExprValue::List(_) => "list",
        ExprValue::Object(_) => "object",
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place")]
fn slice_range(all: &[ExprValue], length: usize) -> (usize, usize) {
    let place = |at: usize, default: usize| {
        let wanted = all.get(at).and_then(ExprValue::as_number);
        wanted.map_or(default, |wanted| {
            let wanted = if wanted < 0.0 { length as f64 + wanted } else { wanted };
            (wanted.max(0.0) as usize).min(length)
        })
    };
    (place(0, 0), place(1, length))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "digits behind the point")]
fn number_method(number: f64, name: &str, all: &[ExprValue]) -> Option<ExprValue> {
    let digits = all.first().and_then(ExprValue::as_number).unwrap_or(0.0).clamp(0.0, 20.0) as usize;
    Some(match name {
        "round" => {
            let by = 10_f64.powi(i32::try_from(digits).unwrap_or(0));
            ExprValue::Number((number * by).round() / by)
        }
        "floor" => ExprValue::Number(number.floor()),
        "ceil" => ExprValue::Number(number.ceil()),
        "abs" => ExprValue::Number(number.abs()),
        "toFixed" => text_value(format!("{number:.digits$}")),
        _ => return None,
    })
}

fn text_method(of: &str, name: &str, all: &[ExprValue]) -> Option<ExprValue> {
    let argument = |at: usize| all.get(at).map(ExprValue::to_text).unwrap_or_default();
    Some(match name {
        "startsWith" => ExprValue::Bool(of.starts_with(&argument(0))),
        "endsWith" => ExprValue::Bool(of.ends_with(&argument(0))),
        "lower" => text_value(of.to_lowercase()),
        "upper" => text_value(of.to_uppercase()),
        "title" => {
            let word = |word: &str| {
                let mut letters = word.chars();
                letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
            };
            text_value(of.split(' ').map(word).collect::<Vec<String>>().join(" "))
        }
        "trim" => text_value(of.trim()),
        "reverse" => text_value(of.chars().rev().collect::<String>()),
        "repeat" => {
            let times = all.first().and_then(ExprValue::as_number).unwrap_or(0.0).max(0.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let times = (times as usize).min(MAX_REPEATED_BYTES / of.len().max(1));
            text_value(of.repeat(times))
        }
        "replace" if !argument(0).is_empty() => {
            let new = of.replace(&argument(0), &argument(1));
            text_value(&new[..new.floor_char_boundary(MAX_REPEATED_BYTES)])
        }
        "split" => ExprValue::List(match argument(0) {
            between if between.is_empty() => of.chars().map(|letter| text_value(letter.to_string())).collect(),
            between => of.split(&between).map(text_value).collect(),
        }),
        "slice" => {
            let letters: Vec<char> = of.chars().collect();
            let (from, to) = slice_range(all, letters.len());
            text_value(letters.get(from..to).unwrap_or_default().iter().collect::<String>())
        }
        "length" => count_value(of.chars().count()),
        _ => return None,
    })
}

const DATE_MONTH_NAMES: [&str; 12] = [
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
const DATE_WEEKDAY_NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Formats a date with Moment.js tokens, such as `YYYY-MM-DD HH:mm`.
fn format_date(ms: i64, format: &str) -> String {
    let (year, month, date) = day_of(ms).date();
    let of_day = ms.rem_euclid(86_400_000);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    let name_of = |names: &[&'static str], at: i64| usize::try_from(at).ok().and_then(|at| names.get(at)).copied();
    let month_name = name_of(&DATE_MONTH_NAMES, month - 1).unwrap_or("");
    let day_name = name_of(&DATE_WEEKDAY_NAMES, day_of(ms).weekday()).unwrap_or("");
    let half = if hour % 12 == 0 { 12 } else { hour % 12 };
    let (mut text, mut rest) = (String::new(), format);
    while let Some(first) = rest.chars().next() {
        if let Some((words, behind)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            text.push_str(words);
            rest = behind;
            continue;
        }
        let length = rest.len() - rest.trim_start_matches(first).len();
        let (token, behind) = rest.split_at(length);
        match token {
            "YYYY" => text.push_str(&format!("{year:04}")),
            "YY" => text.push_str(&format!("{:02}", year.rem_euclid(100))),
            "MMMM" => text.push_str(month_name),
            "MMM" => text.push_str(month_name.get(..3).unwrap_or(month_name)),
            "MM" => text.push_str(&format!("{month:02}")),
            "M" => text.push_str(&month.to_string()),
            "DD" => text.push_str(&format!("{date:02}")),
            "D" => text.push_str(&date.to_string()),
            "dddd" => text.push_str(day_name),
            "ddd" => text.push_str(day_name.get(..3).unwrap_or(day_name)),
            "HH" => text.push_str(&format!("{hour:02}")),
            "H" => text.push_str(&hour.to_string()),
            "hh" => text.push_str(&format!("{half:02}")),
            "h" => text.push_str(&half.to_string()),
            "mm" => text.push_str(&format!("{minute:02}")),
            "ss" => text.push_str(&format!("{second:02}")),
            "A" => text.push_str(if hour < 12 { "AM" } else { "PM" }),
            "a" => text.push_str(if hour < 12 { "am" } else { "pm" }),
            other => text.push_str(other),
        }
        rest = behind;
    }
    text
}

/// Describes a number of days relative to today, such as "tomorrow" or "2 months ago".
fn relative_day(days: i64) -> String {
    let (count, unit) = match days.abs() {
        0 => return "today".to_owned(),
        1 => return if days > 0 { "tomorrow" } else { "yesterday" }.to_owned(),
        count @ 2..=29 => (count, "days"),
        count @ 30..=59 => (count / 30, "month"),
        count @ 60..=364 => (count / 30, "months"),
        count @ 365..=729 => (count / 365, "year"),
        count => (count / 365, "years"),
    };
    match days.cmp(&0) {
        Ordering::Greater => format!("in {count} {unit}"),
        Ordering::Less | Ordering::Equal => format!("{count} {unit} ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_asked() {
        let ms = parse_date("2026-03-09T15:04:05").expect("a date").0;
        assert_eq!(format_date(ms, "YYYY-MM-DD HH:mm:ss"), "2026-03-09 15:04:05");
        assert_eq!(format_date(ms, "ddd, D MMM YY [at] h:mm a"), "Mon, 9 Mar 26 at 3:04 pm");
        assert_eq!(
            (relative_day(0), relative_day(-1), relative_day(40)),
            ("today".into(), "yesterday".into(), "in 1 month".into())
        );
    }

    #[test]
    fn texts_stay_within_bounds() {
        assert!(matches!(text_method("ab", "repeat", &[ExprValue::Number(1e18)]),
                Some(ExprValue::Text(text)) if text.len() <= MAX_REPEATED_BYTES));
        assert_eq!(text_method("aé😀b", "slice", &[ExprValue::Number(-2.0)]), Some(text_value("😀b")));
        assert_eq!(text_method("a", "unheard", &[]), None);
    }
}
