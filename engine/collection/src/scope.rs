//! An expression of a collection, worked out for one file: names, parts of values, signs. Its functions are beside.

use super::expression::Expr;
use super::worth::{Link, Span, Worth, date, day, later};
use super::{Now, Source};
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;
use store::DocId;
use text::links::without_ending;
use text::outline::LinkKind;

/// Formulas may ask for formulas, this deep.
const DEEPEST: usize = 8;
/// Steps that one file may take.
const STEPS: u32 = 200_000;
/// Texts grow up to this many bytes.
const LONGEST: usize = 1 << 16;

/// For which file an expression is worked out.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) source: Source<'a>,
    pub(super) file: DocId,
    pub(super) this: Option<DocId>,
    pub(super) now: Now,
    pub(super) formulas: &'a BTreeMap<String, Expr>,
    pub(super) depth: usize,
    /// The item of a list that is looked at, its place, and what was made of those before.
    pub(super) item: Option<(&'a Worth, usize, Option<&'a Worth>)>,
    pub(super) steps: &'a Cell<u32>,
}

#[allow(clippy::cast_precision_loss, reason = "counts of people's things")]
pub(super) fn count(number: usize) -> Worth {
    Worth::Number(number as f64)
}

pub(super) fn text(text: impl Into<String>) -> Worth {
    Worth::Text(text.into())
}

impl<'a> Scope<'a> {
    /// A column: `file.name`, `formula.x`, `note.x` or `x`.
    pub(super) fn property(&self, name: &str) -> Result<Worth, String> {
        match name.split_once('.') {
            Some(("file", part)) => self.member(&self.file_of(self.file), part),
            Some(("formula", part)) => self.formula(part),
            Some(("note" | "property", part)) => Ok(self.note(self.file, part)),
            Some(_) | None => Ok(self.note(self.file, name)),
        }
    }

    pub(super) fn file_of(&self, file: DocId) -> Worth {
        Worth::File(file, self.source.links.path(file).unwrap_or_default().to_owned())
    }

    pub(super) fn note(&self, file: DocId, name: &str) -> Worth {
        let Some(outline) = self.source.links.outline(file) else { return Worth::Nothing };
        let properties = &outline.properties;
        let found = properties
            .get(name)
            .or_else(|| properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value));
        let Some(value) = found else { return Worth::Nothing };
        if name == "tags" {
            let words = match value {
                Value::Array(items) => items.iter().map(text::outline::plain).collect(),
                one => text::outline::plain(one).split([' ', ',']).map(str::to_owned).collect::<Vec<_>>(),
            };
            let words = words.iter().map(|word| word.trim().trim_start_matches('#')).filter(|word| !word.is_empty());
            return Worth::List(words.map(text).collect());
        }
        Worth::of(value, &|target| self.source.links.resolve(file, LinkKind::Wiki, target))
    }

    pub(super) fn tags(&self, file: DocId) -> &'a [String] {
        self.source.links.outline(file).map_or(&[], |outline| &outline.tags)
    }

    fn formula(&self, name: &str) -> Result<Worth, String> {
        let deeper = Scope { depth: self.depth + 1, item: None, ..*self };
        match self.formulas.get(name).filter(|_| self.depth < DEEPEST) {
            Some(formula) => deeper.worth(formula),
            None => Err(format!("there is no such formula, or it asks for itself: {name}")),
        }
    }

    /// Where a target written in this file leads.
    pub(super) fn resolve(&self, target: &str) -> Option<DocId> {
        let path = target.split('#').next().unwrap_or(target);
        self.source.links.resolve(self.file, LinkKind::Wiki, path).filter(|_| !path.is_empty())
    }

    /// The file that a worth stands for.
    pub(super) fn leads_to(&self, worth: &Worth) -> Option<DocId> {
        match worth {
            Worth::File(file, _) => Some(*file),
            Worth::Link(link) => link.to,
            Worth::Text(target) => self.resolve(target),
            _ => None,
        }
    }

    pub(super) fn same(&self, one: &Worth, other: &Worth) -> bool {
        let link = |worth: &Worth| matches!(worth, Worth::Link(_) | Worth::File(..));
        if link(one) || link(other) {
            return match (self.leads_to(one), self.leads_to(other)) {
                (Some(one), Some(other)) => one == other,
                // Notes that are not there yet are the same by their names.
                (None, None) => one.shown().eq_ignore_ascii_case(&other.shown()),
                (Some(_), None) | (None, Some(_)) => false,
            };
        }
        one == other || one.shown() == other.shown()
    }

    /// What an expression is worth here.
    pub(super) fn worth(&self, expr: &Expr) -> Result<Worth, String> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > STEPS {
            return Err("the collection's formulas take too long".to_owned());
        }
        match expr {
            Expr::Worth(worth) => Ok(worth.clone()),
            Expr::Name(name) => Ok(match (name.as_str(), self.item) {
                ("value", Some((value, ..))) => value.clone(),
                ("index", Some((_, index, _))) => count(index),
                ("acc", Some((_, _, Some(acc)))) => acc.clone(),
                ("file", _) => self.file_of(self.file),
                ("this", _) => self.this.map_or(Worth::Nothing, |this| self.file_of(this)),
                (name, _) => self.note(self.file, name),
            }),
            Expr::Member(of, part) => match of.as_ref() {
                Expr::Name(name) if name == "formula" => self.formula(part),
                Expr::Name(name) if name == "note" => Ok(self.note(self.file, part)),
                Expr::Name(name) if name == "this" && part != "file" => {
                    Ok(self.this.map_or(Worth::Nothing, |this| self.note(this, part)))
                }
                of => self.member(&self.worth(of)?, part),
            },
            Expr::At(of, at) => self.at(of, at),
            Expr::Not(of) => Ok(Worth::Bool(!self.worth(of)?.is_true())),
            Expr::Two(sign, one, other) => self.two(sign, one, other),
            Expr::Call(what, arguments) => match what.as_ref() {
                Expr::Name(name) if name == "if" => {
                    let which = if self.worth(arguments.first().ok_or("`if` wants more")?)?.is_true() { 1 } else { 2 };
                    arguments.get(which).map_or(Ok(Worth::Nothing), |expr| self.worth(expr))
                }
                Expr::Name(name) => self.function(name, self.all(arguments)?),
                Expr::Member(of, name) if matches!(name.as_str(), "filter" | "map" | "reduce") => {
                    let items = self.worth(of)?.items();
                    self.each(name, items, arguments)
                }
                Expr::Member(of, name) => self.method(&self.worth(of)?, name, self.all(arguments)?),
                _ => Err("only a name can be called in an expression".to_owned()),
            },
        }
    }

    fn all(&self, arguments: &[Expr]) -> Result<Vec<Worth>, String> {
        arguments.iter().map(|one| self.worth(one)).collect()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    fn at(&self, of: &Expr, at: &Expr) -> Result<Worth, String> {
        // `note["a name"]` is `note.name`.
        if let (Expr::Name(name), Expr::Worth(Worth::Text(part))) = (of, at) {
            match name.as_str() {
                "note" => return Ok(self.note(self.file, part)),
                "formula" => return self.formula(part),
                _ => {}
            }
        }
        let (of, at) = (self.worth(of)?, self.worth(at)?);
        match (of, at) {
            (Worth::Object(entries), Worth::Text(key)) => self.member(&Worth::Object(entries), &key),
            (of, Worth::Number(at)) => {
                let items = of.items();
                let at = if at < 0.0 { items.len() as f64 + at } else { at };
                let at = if at < 0.0 { usize::MAX } else { at as usize };
                Ok(items.get(at).cloned().unwrap_or(Worth::Nothing))
            }
            _ => Ok(Worth::Nothing),
        }
    }

    /// What is done to each item of a list.
    fn each(&self, name: &str, items: Vec<Worth>, arguments: &[Expr]) -> Result<Worth, String> {
        let expr = arguments.first().ok_or_else(|| format!("`{name}` wants more"))?;
        if name == "reduce" {
            let mut acc = arguments.get(1).map_or(Ok(Worth::Nothing), |first| self.worth(first))?;
            for (index, item) in items.iter().enumerate() {
                let next = Scope { item: Some((item, index, Some(&acc))), ..*self }.worth(expr)?;
                acc = next;
            }
            return Ok(acc);
        }
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let made = Scope { item: Some((item, index, None)), ..*self }.worth(expr)?;
            match name {
                "filter" if made.is_true() => found.push(item.clone()),
                "filter" => {}
                _ => found.push(made),
            }
        }
        Ok(Worth::List(found))
    }

    fn two(&self, sign: &str, one: &Expr, other: &Expr) -> Result<Worth, String> {
        let left = self.worth(one)?;
        match sign {
            "&&" if !left.is_true() => return Ok(Worth::Bool(false)),
            "||" if left.is_true() => return Ok(left),
            "&&" | "||" => return self.worth(other),
            _ => {}
        }
        let right = self.worth(other)?;
        match sign {
            "==" => return Ok(Worth::Bool(self.same(&left, &right))),
            "!=" => return Ok(Worth::Bool(!self.same(&left, &right))),
            "<" | ">" | "<=" | ">=" => {
                let (left, right) = alike(left, right);
                let known = !left.is_empty() && !right.is_empty();
                let order = left.key().order(&right.key(), false);
                return Ok(Worth::Bool(
                    known
                        && match sign {
                            "<" => order.is_lt(),
                            ">" => order.is_gt(),
                            "<=" => order.is_le(),
                            _ => order.is_ge(),
                        },
                ));
            }
            _ => {}
        }
        self.sum(sign, left, right)
    }

    #[allow(clippy::cast_possible_truncation, reason = "milliseconds")]
    fn sum(&self, sign: &str, left: Worth, right: Worth) -> Result<Worth, String> {
        let direction = if sign == "-" { -1 } else { 1 };
        Ok(match (sign, left, right) {
            // What is not there comes to nothing, but words are put together with what there is.
            ("+", Worth::Text(one), Worth::Nothing) => Worth::Text(one),
            ("+", Worth::Nothing, Worth::Text(other)) => Worth::Text(other),
            (_, Worth::Nothing, _) | (_, _, Worth::Nothing) => Worth::Nothing,
            ("+", Worth::Number(one), Worth::Number(other)) => Worth::Number(one + other),
            ("-", Worth::Date(one, _), Worth::Date(other, _)) => {
                Worth::Span(Span { months: 0, ms: one.saturating_sub(other) })
            }
            ("+" | "-", Worth::Date(ms, timed), Worth::Span(span)) => dated(later(ms, span, direction), timed, span),
            ("+" | "-", Worth::Date(ms, timed), Worth::Text(words)) => match Span::parse(&words) {
                Some(span) => dated(later(ms, span, direction), timed, span),
                None if sign == "+" => text(super::worth::shown_date(ms, timed) + &words),
                None => return Err(format!("this is no span of time: {words}")),
            },
            ("-", Worth::Date(ms, _), Worth::Number(by)) => Worth::Number(ms as f64 - by),
            ("+" | "-", Worth::Span(one), Worth::Span(other)) => {
                let add = |one: i64, other: i64| one.saturating_add(other.saturating_mul(direction));
                Worth::Span(Span { months: add(one.months, other.months), ms: add(one.ms, other.ms) })
            }
            ("*", Worth::Span(span), Worth::Number(by)) => {
                Worth::Span(Span { months: (span.months as f64 * by) as i64, ms: (span.ms as f64 * by) as i64 })
            }
            ("+", one, other) if !matches!((&one, &other), (Worth::Number(_), Worth::Number(_))) => {
                let words = one.shown() + &other.shown();
                if words.len() > LONGEST {
                    return Err("a text of the collection grows too long".to_owned());
                }
                Worth::Text(words)
            }
            (sign, one, other) => match (one.number(), other.number()) {
                (Some(one), Some(other)) => Worth::Number(match sign {
                    "-" => one - other,
                    "*" => one * other,
                    "/" => one / other,
                    "%" => one % other,
                    _ => one + other,
                }),
                _ => return Err(format!("such values cannot be worked out with {sign}")),
            },
        })
    }

    pub(super) fn member(&self, of: &Worth, part: &str) -> Result<Worth, String> {
        match (of, part) {
            (Worth::File(file, path), _) => Ok(self.part_of_file(*file, path, part)),
            (Worth::Object(entries), part) => {
                let found = entries.iter().find(|(key, _)| key == part);
                Ok(found.map_or(Worth::Nothing, |(_, value)| Worth::of(value, &|target| self.resolve(target))))
            }
            (Worth::List(items), "length") => Ok(count(items.len())),
            (Worth::Text(text), "length") => Ok(count(text.chars().count())),
            (Worth::Date(ms, _), part) => {
                let (year, month, date) = day(*ms).date();
                let of_day = ms.rem_euclid(86_400_000);
                let number = match part {
                    "year" => year,
                    "month" => month,
                    "day" => date,
                    "hour" => of_day / 3_600_000,
                    "minute" => of_day / 60_000 % 60,
                    "second" => of_day / 1_000 % 60,
                    "millisecond" => of_day % 1_000,
                    other => return Err(format!("a date has no such part: {other}")),
                };
                #[allow(clippy::cast_precision_loss, reason = "parts of a date")]
                Ok(Worth::Number(number as f64))
            }
            (Worth::Span(span), part) => {
                let day = 86_400_000.0;
                let unit = match part {
                    "years" => 365.242_5 * day,
                    "months" => 30.436_875 * day,
                    "weeks" => 7.0 * day,
                    "days" => day,
                    "hours" => 3_600_000.0,
                    "minutes" => 60_000.0,
                    "seconds" => 1_000.0,
                    "milliseconds" => 1.0,
                    other => return Err(format!("a span of time has no such part: {other}")),
                };
                Ok(Worth::Number(span.length() / unit))
            }
            (Worth::Link(link), part) => match link.to {
                Some(to) => self.member(&self.file_of(to), part),
                None => Ok(Worth::Nothing),
            },
            (Worth::Nothing, _) => Ok(Worth::Nothing),
            (other, "length") => Ok(count(other.shown().chars().count())),
            _ => Err(format!("Tracebook does not know this part of a value yet: {part}")),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "bytes of a file")]
    fn part_of_file(&self, file: DocId, path: &str, part: &str) -> Worth {
        let full = path.rsplit('/').next().unwrap_or(path);
        let links = |embeds: bool| {
            let links = self.source.links.outgoing(file).filter(|(link, _)| !link.target.is_empty());
            let links = links.filter(|(link, _)| !embeds || link.kind == LinkKind::Embed);
            let link = |target: String, to| Worth::Link(Link { target, words: None, to });
            Worth::List(links.map(|(found, to)| link(found.path().into_owned(), to)).collect())
        };
        let row = || self.source.files.get(path);
        match part {
            "name" => text(without_ending(full)),
            "basename" => {
                text(full.rsplit_once('.').map_or(full, |(stem, _)| if stem.is_empty() { full } else { stem }))
            }
            "fullname" => text(full),
            "path" => text(path),
            "folder" => text(path.rsplit_once('/').map_or("", |(folder, _)| folder)),
            "ext" => text(full.rsplit_once('.').map_or("", |(_, ending)| ending)),
            "file" => Worth::File(file, path.to_owned()),
            "tags" => Worth::List(self.tags(file).iter().cloned().map(Worth::Text).collect()),
            "links" => links(false),
            "embeds" => links(true),
            "backlinks" => {
                let mut from: Vec<DocId> =
                    self.source.links.backlinks(file).into_iter().map(|(from, _)| from).collect();
                from.dedup();
                Worth::List(from.into_iter().map(|from| self.file_of(from)).collect())
            }
            "properties" => self.source.links.outline(file).map_or(Worth::Nothing, |outline| {
                let entry = |(key, value): (&String, &Value)| (key.clone(), value.clone());
                Worth::Object(outline.properties.iter().map(entry).collect())
            }),
            "size" => row().map_or(Worth::Nothing, |row| Worth::Number(row.size as f64)),
            "mtime" => row().map_or(Worth::Nothing, |row| {
                Worth::Date((row.mtime / 1_000_000).saturating_add(self.now.offset), true)
            }),
            // File systems do not agree on when a file was made; a note that says so is asked.
            "ctime" => self.note(file, "created"),
            _ => self.note(file, part),
        }
    }
}

fn dated(ms: Option<i64>, timed: bool, by: Span) -> Worth {
    ms.map_or(Worth::Nothing, |ms| Worth::Date(ms, timed || by.ms % 86_400_000 != 0))
}

/// Two values to be compared: words beside a date are read as one.
fn alike(one: Worth, other: Worth) -> (Worth, Worth) {
    let as_date = |worth: Worth| match worth {
        Worth::Text(text) => date(&text).map_or(Worth::Text(text), |(ms, timed)| Worth::Date(ms, timed)),
        other => other,
    };
    let as_span = |worth: Worth| match worth {
        Worth::Text(text) => Span::parse(&text).map_or(Worth::Text(text), Worth::Span),
        Worth::Number(ms) => {
            #[allow(clippy::cast_possible_truncation, reason = "milliseconds")]
            let ms = ms as i64;
            Worth::Span(Span { months: 0, ms })
        }
        other => other,
    };
    let as_number = |worth: Worth| match (&worth, worth.number()) {
        (Worth::Text(_), Some(number)) => Worth::Number(number),
        _ => worth,
    };
    match (&one, &other) {
        (Worth::Date(..), _) | (_, Worth::Date(..)) => (as_date(one), as_date(other)),
        (Worth::Span(_), _) | (_, Worth::Span(_)) => (as_span(one), as_span(other)),
        (Worth::Number(_), _) | (_, Worth::Number(_)) => (as_number(one), as_number(other)),
        _ => (one, other),
    }
}
