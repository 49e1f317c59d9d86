//! The functions of a collection's expressions, by the names that Obsidian's Bases gives them.

use super::scope::{Scope, count, text};
use super::worth::{Link, Span, Worth, date, day, shown_date};
use std::cmp::Ordering;
use store::DocId;

/// Texts are repeated up to this many bytes.
const LONGEST: usize = 1 << 16;

impl Scope<'_> {
    pub(super) fn function(&self, name: &str, mut all: Vec<Worth>) -> Result<Worth, String> {
        if matches!(name, "min" | "max") {
            let numbers = all.into_iter().flat_map(Worth::items).filter_map(|one| one.number());
            let pick = if name == "min" { f64::min } else { f64::max };
            return Ok(numbers.reduce(pick).map_or(Worth::Nothing, Worth::Number));
        }
        let second = (all.len() > 1).then(|| all.swap_remove(1));
        let first = if all.is_empty() { Worth::Nothing } else { all.remove(0) };
        let now = self.now;
        Ok(match name {
            "link" | "image" => {
                let words = second.map(|words| words.shown());
                match first {
                    Worth::Link(link) => Worth::Link(Link { words: words.or(link.words), ..link }),
                    Worth::File(file, path) => Worth::Link(Link { target: path, words, to: Some(file) }),
                    Worth::Nothing => Worth::Nothing,
                    other => {
                        let target = other.shown();
                        let inner = target.trim_start_matches("[[").trim_end_matches("]]").to_owned();
                        let read = Link::read(&inner, &|path| self.resolve(path));
                        Worth::Link(Link { words: words.or(read.words), ..read })
                    }
                }
            }
            "list" => {
                let mut items = first.items();
                items.extend(second);
                items.append(&mut all);
                Worth::List(items)
            }
            "now" => Worth::Date(now.local, true),
            "today" => Worth::Date(now.today().0.saturating_mul(86_400_000), false),
            "date" => match first {
                Worth::Date(..) => first,
                other => date(&other.shown()).map_or(Worth::Nothing, |(ms, timed)| Worth::Date(ms, timed)),
            },
            "duration" => Span::parse(&first.shown()).map_or(Worth::Nothing, Worth::Span),
            "number" => first.number().map_or(Worth::Nothing, Worth::Number),
            "file" => self.leads_to(&first).map_or(Worth::Nothing, |file| self.file_of(file)),
            "empty" => Worth::Bool(first.is_empty()),
            "not" => Worth::Bool(!first.is_true()),
            // Words are shown as words here.
            "html" | "escapeHTML" | "icon" => text(first.shown()),
            _ => return Err(format!("Tracebook does not know this function of a collection yet: {name}")),
        })
    }

    fn holds(&self, of: &Worth, wanted: &Worth) -> bool {
        match (of, wanted) {
            (Worth::List(items), _) => items.iter().any(|item| self.same(item, wanted)),
            (Worth::Nothing, _) => false,
            (Worth::Text(text), Worth::Text(part)) => text.contains(part.as_str()),
            // A picture is asked for by its ending.
            (Worth::Link(link), Worth::Text(part)) => link.target.contains(part.as_str()),
            (of, Worth::Text(part)) => of.shown().contains(part.as_str()),
            (of, wanted) => self.same(of, wanted),
        }
    }

    pub(super) fn method(&self, of: &Worth, name: &str, all: Vec<Worth>) -> Result<Worth, String> {
        let wanted = || all.iter().cloned().flat_map(Worth::items).collect::<Vec<_>>();
        let first = || all.first().map(Worth::shown).unwrap_or_default();
        match name {
            "contains" => return Ok(Worth::Bool(all.first().is_some_and(|wanted| self.holds(of, wanted)))),
            "containsAny" => return Ok(Worth::Bool(wanted().iter().any(|wanted| self.holds(of, wanted)))),
            "containsAll" => return Ok(Worth::Bool(wanted().iter().all(|wanted| self.holds(of, wanted)))),
            "isEmpty" => return Ok(Worth::Bool(of.is_empty())),
            "isTruthy" => return Ok(Worth::Bool(of.is_true())),
            "isType" => return Ok(Worth::Bool(kind(of) == first())),
            "toString" => return Ok(text(of.shown())),
            _ => {}
        }
        let found = match of {
            Worth::File(file, path) => self.of_file(*file, path, name, &all),
            Worth::List(items) => self.of_list(items, name, &all),
            Worth::Number(number) => of_number(*number, name, &all),
            Worth::Date(ms, _) => self.of_date(*ms, name, &first()),
            Worth::Link(link) => match (name, link.to) {
                ("asFile", to) => Some(to.map_or(Worth::Nothing, |file| self.file_of(file))),
                ("linksTo", to) => {
                    Some(Worth::Bool(to.is_some() && to == all.first().and_then(|wanted| self.leads_to(wanted))))
                }
                (_, Some(to)) => self.of_file(to, "", name, &all),
                (_, None) => None,
            },
            Worth::Nothing => return Ok(Worth::Nothing),
            _ => None,
        };
        match found.or_else(|| of_text(&of.shown(), name, &all)) {
            Some(found) => Ok(found),
            None => Err(format!("Tracebook does not know this function of a value yet: {name}")),
        }
    }

    fn of_file(&self, file: DocId, path: &str, name: &str, all: &[Worth]) -> Option<Worth> {
        let first = all.first().map(Worth::shown).unwrap_or_default();
        Some(match name {
            "hasTag" => {
                let fits = |tag: &String, wanted: &str| {
                    let (tag, wanted) = (tag.to_lowercase(), wanted.trim_start_matches('#').to_lowercase());
                    tag == wanted || tag.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('/'))
                };
                let wanted: Vec<String> = all.iter().cloned().flat_map(Worth::items).map(|one| one.shown()).collect();
                Worth::Bool(self.tags(file).iter().any(|tag| wanted.iter().any(|wanted| fits(tag, wanted))))
            }
            "inFolder" => {
                let folder = first.trim_matches('/');
                let below = path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
                Worth::Bool(folder.is_empty() || below)
            }
            "hasLink" => {
                let wanted = all.first().and_then(|wanted| self.leads_to(wanted));
                let leads = |wanted: DocId| self.source.links.outgoing(file).any(|(_, to)| to == Some(wanted));
                Worth::Bool(wanted.is_some_and(leads))
            }
            "hasProperty" => {
                let outline = self.source.links.outline(file);
                let has = |key: &String| key.eq_ignore_ascii_case(&first);
                Worth::Bool(outline.is_some_and(|outline| outline.properties.keys().any(has)))
            }
            "asLink" => {
                let words = Some(first).filter(|words| !words.is_empty());
                Worth::Link(Link { target: path.to_owned(), words, to: Some(file) })
            }
            "asFile" => self.file_of(file),
            _ => return None,
        })
    }

    fn of_list(&self, items: &[Worth], name: &str, all: &[Worth]) -> Option<Worth> {
        let numbers = || items.iter().filter_map(Worth::number).collect::<Vec<f64>>();
        Some(match name {
            "join" => {
                let between = all.first().map(Worth::shown).unwrap_or_default();
                text(items.iter().map(Worth::shown).collect::<Vec<_>>().join(&between))
            }
            "unique" => {
                let mut found: Vec<Worth> = Vec::new();
                for item in items {
                    if !found.iter().any(|other| self.same(other, item)) {
                        found.push(item.clone());
                    }
                }
                Worth::List(found)
            }
            "flat" => Worth::List(items.iter().cloned().flat_map(Worth::items).collect()),
            "reverse" => Worth::List(items.iter().rev().cloned().collect()),
            "sort" => {
                let mut items = items.to_vec();
                items.sort_by(|one, other| one.key().order(&other.key(), false));
                Worth::List(items)
            }
            "slice" => {
                let (from, to) = range(all, items.len());
                Worth::List(items.get(from..to).unwrap_or_default().to_vec())
            }
            "sum" => Worth::Number(numbers().iter().sum()),
            "mean" | "average" => super::summary::of("Average", items),
            "median" | "min" | "max" | "stddev" => {
                super::summary::of(&format!("{}{}", name[..1].to_uppercase(), &name[1..]), items)
            }
            _ => return None,
        })
    }

    fn of_date(&self, ms: i64, name: &str, format: &str) -> Option<Worth> {
        Some(match name {
            "date" => Worth::Date(day(ms).0.saturating_mul(86_400_000), false),
            "time" => text(shown_date(ms, true).split_off(11)),
            "format" => text(formatted(ms, format)),
            "relative" => text(relative(day(ms).0 - self.now.today().0)),
            _ => return None,
        })
    }
}

fn kind(of: &Worth) -> &'static str {
    match of {
        Worth::Nothing => "null",
        Worth::Bool(_) => "boolean",
        Worth::Number(_) => "number",
        Worth::Text(_) => "string",
        Worth::Date(..) => "date",
        Worth::Span(_) => "duration",
        Worth::Link(_) => "link",
        Worth::File(..) => "file",
        Worth::List(_) => "list",
        Worth::Object(_) => "object",
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place")]
fn range(all: &[Worth], length: usize) -> (usize, usize) {
    let place = |at: usize, default: usize| {
        let wanted = all.get(at).and_then(Worth::number);
        wanted.map_or(default, |wanted| {
            let wanted = if wanted < 0.0 { length as f64 + wanted } else { wanted };
            (wanted.max(0.0) as usize).min(length)
        })
    };
    (place(0, 0), place(1, length))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "digits behind the point")]
fn of_number(number: f64, name: &str, all: &[Worth]) -> Option<Worth> {
    let digits = all.first().and_then(Worth::number).unwrap_or(0.0).clamp(0.0, 20.0) as usize;
    Some(match name {
        "round" => {
            let by = 10_f64.powi(i32::try_from(digits).unwrap_or(0));
            Worth::Number((number * by).round() / by)
        }
        "floor" => Worth::Number(number.floor()),
        "ceil" => Worth::Number(number.ceil()),
        "abs" => Worth::Number(number.abs()),
        "toFixed" => text(format!("{number:.digits$}")),
        _ => return None,
    })
}

fn of_text(of: &str, name: &str, all: &[Worth]) -> Option<Worth> {
    let argument = |at: usize| all.get(at).map(Worth::shown).unwrap_or_default();
    Some(match name {
        "startsWith" => Worth::Bool(of.starts_with(&argument(0))),
        "endsWith" => Worth::Bool(of.ends_with(&argument(0))),
        "lower" => text(of.to_lowercase()),
        "upper" => text(of.to_uppercase()),
        "title" => {
            let word = |word: &str| {
                let mut letters = word.chars();
                letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
            };
            text(of.split(' ').map(word).collect::<Vec<String>>().join(" "))
        }
        "trim" => text(of.trim()),
        "reverse" => text(of.chars().rev().collect::<String>()),
        "repeat" => {
            let times = all.first().and_then(Worth::number).unwrap_or(0.0).max(0.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let times = (times as usize).min(LONGEST / of.len().max(1));
            text(of.repeat(times))
        }
        "replace" if !argument(0).is_empty() => {
            let new = of.replace(&argument(0), &argument(1));
            text(&new[..new.floor_char_boundary(LONGEST)])
        }
        "split" => Worth::List(match argument(0) {
            between if between.is_empty() => of.chars().map(|letter| text(letter.to_string())).collect(),
            between => of.split(&between).map(text).collect(),
        }),
        "slice" => {
            let letters: Vec<char> = of.chars().collect();
            let (from, to) = range(all, letters.len());
            text(letters.get(from..to).unwrap_or_default().iter().collect::<String>())
        }
        "length" => count(of.chars().count()),
        _ => return None,
    })
}

const MONTHS: [&str; 12] = [
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
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A date in the letters of Moment.js: `YYYY-MM-DD HH:mm`.
fn formatted(ms: i64, format: &str) -> String {
    let (year, month, date) = day(ms).date();
    let of_day = ms.rem_euclid(86_400_000);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    let name_of = |names: &[&'static str], at: i64| usize::try_from(at).ok().and_then(|at| names.get(at)).copied();
    let month_name = name_of(&MONTHS, month - 1).unwrap_or("");
    let day_name = name_of(&DAYS, day(ms).weekday()).unwrap_or("");
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

/// A day as one says it, seen from today.
fn relative(days: i64) -> String {
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
        let ms = date("2026-03-09T15:04:05").expect("a date").0;
        assert_eq!(formatted(ms, "YYYY-MM-DD HH:mm:ss"), "2026-03-09 15:04:05");
        assert_eq!(formatted(ms, "ddd, D MMM YY [at] h:mm a"), "Mon, 9 Mar 26 at 3:04 pm");
        assert_eq!(
            (relative(0), relative(-1), relative(40)),
            ("today".into(), "yesterday".into(), "in 1 month".into())
        );
    }

    #[test]
    fn texts_stay_within_bounds() {
        assert!(
            matches!(of_text("ab", "repeat", &[Worth::Number(1e18)]), Some(Worth::Text(text)) if text.len() <= LONGEST)
        );
        assert_eq!(of_text("aé😀b", "slice", &[Worth::Number(-2.0)]), Some(text("😀b")));
        assert_eq!(of_text("a", "unheard", &[]), None);
    }
}
