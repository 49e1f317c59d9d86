//! An expression of a collection, worked out for one file: names, parts of values, signs. Its functions are beside.

use super::expression::Expr;
use super::worth::{ExprValue, LinkValue, TimeSpan, date, day, later};
use super::{LocalNow, VolumeFilesAndLinks};
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;
use store::DocId;
use text::links::without_ending;
use text::outline::LinkKind;

/// Formulas may ask for formulas, this deep.
const MAX_FORMULA_DEPTH: usize = 8;
/// Steps that one file may take.
const MAX_EVAL_STEPS: u32 = 200_000;
/// Texts grow up to this many bytes.
const MAX_TEXT_VALUE_BYTES: usize = 1 << 16;

/// For which file an expression is worked out.
#[derive(Clone, Copy)]
pub(super) struct EvalScope<'a> {
    pub(super) source: VolumeFilesAndLinks<'a>,
    pub(super) file: DocId,
    pub(super) this: Option<DocId>,
    pub(super) now: LocalNow,
    pub(super) formulas: &'a BTreeMap<String, Expr>,
    pub(super) depth: usize,
    /// The item of a list that is looked at, its place, and what was made of those before.
    pub(super) item: Option<(&'a ExprValue, usize, Option<&'a ExprValue>)>,
    pub(super) steps: &'a Cell<u32>,
}

#[allow(clippy::cast_precision_loss, reason = "counts of people's things")]
pub(super) fn count(number: usize) -> ExprValue {
    ExprValue::Number(number as f64)
}

pub(super) fn text(text: impl Into<String>) -> ExprValue {
    ExprValue::Text(text.into())
}

impl<'a> EvalScope<'a> {
    /// A column: `file.name`, `formula.x`, `note.x` or `x`.
    pub(super) fn property(&self, name: &str) -> Result<ExprValue, String> {
        match name.split_once('.') {
            Some(("file", part)) => self.member(&self.file_of(self.file), part),
            Some(("formula", part)) => self.formula(part),
            Some(("note" | "property", part)) => Ok(self.note(self.file, part)),
            Some(_) | None => Ok(self.note(self.file, name)),
        }
    }

    pub(super) fn file_of(&self, file: DocId) -> ExprValue {
        ExprValue::File(file, self.source.links.path(file).unwrap_or_default().to_owned())
    }

    pub(super) fn note(&self, file: DocId, name: &str) -> ExprValue {
        let Some(outline) = self.source.links.outline(file) else { return ExprValue::Nothing };
        let properties = &outline.properties;
        let found = properties
            .get(name)
            .or_else(|| properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value));
        let Some(value) = found else { return ExprValue::Nothing };
        if name == "tags" {
            let words = match value {
                Value::Array(items) => items.iter().map(text::outline::plain).collect(),
                one => text::outline::plain(one).split([' ', ',']).map(str::to_owned).collect::<Vec<_>>(),
            };
            let words = words.iter().map(|word| word.trim().trim_start_matches('#')).filter(|word| !word.is_empty());
            return ExprValue::List(words.map(text).collect());
        }
        ExprValue::of(value, &|target| self.source.links.resolve(file, LinkKind::Wiki, target))
    }

    pub(super) fn tags(&self, file: DocId) -> &'a [String] {
        self.source.links.outline(file).map_or(&[], |outline| &outline.tags)
    }

    fn formula(&self, name: &str) -> Result<ExprValue, String> {
        let deeper = EvalScope { depth: self.depth + 1, item: None, ..*self };
        match self.formulas.get(name).filter(|_| self.depth < MAX_FORMULA_DEPTH) {
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
    pub(super) fn leads_to(&self, worth: &ExprValue) -> Option<DocId> {
        match worth {
            ExprValue::File(file, _) => Some(*file),
            ExprValue::Link(link) => link.to,
            ExprValue::Text(target) => self.resolve(target),
            _ => None,
        }
    }

    pub(super) fn same(&self, one: &ExprValue, other: &ExprValue) -> bool {
        let link = |worth: &ExprValue| matches!(worth, ExprValue::Link(_) | ExprValue::File(..));
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
    pub(super) fn worth(&self, expr: &Expr) -> Result<ExprValue, String> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > MAX_EVAL_STEPS {
            return Err("the collection's formulas take too long".to_owned());
        }
        match expr {
            Expr::Worth(worth) => Ok(worth.clone()),
            Expr::Name(name) => Ok(match (name.as_str(), self.item) {
                ("value", Some((value, ..))) => value.clone(),
                ("index", Some((_, index, _))) => count(index),
                ("acc", Some((_, _, Some(acc)))) => acc.clone(),
                ("file", _) => self.file_of(self.file),
                ("this", _) => self.this.map_or(ExprValue::Nothing, |this| self.file_of(this)),
                (name, _) => self.note(self.file, name),
            }),
            Expr::Member(of, part) => match of.as_ref() {
                Expr::Name(name) if name == "formula" => self.formula(part),
                Expr::Name(name) if name == "note" => Ok(self.note(self.file, part)),
                Expr::Name(name) if name == "this" && part != "file" => {
                    Ok(self.this.map_or(ExprValue::Nothing, |this| self.note(this, part)))
                }
                of => self.member(&self.worth(of)?, part),
            },
            Expr::At(of, at) => self.at(of, at),
            Expr::Not(of) => Ok(ExprValue::Bool(!self.worth(of)?.is_true())),
            Expr::Two(sign, one, other) => self.two(sign, one, other),
            Expr::Call(what, arguments) => match what.as_ref() {
                Expr::Name(name) if name == "if" => {
                    let which = if self.worth(arguments.first().ok_or("`if` wants more")?)?.is_true() { 1 } else { 2 };
                    arguments.get(which).map_or(Ok(ExprValue::Nothing), |expr| self.worth(expr))
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

    fn all(&self, arguments: &[Expr]) -> Result<Vec<ExprValue>, String> {
        arguments.iter().map(|one| self.worth(one)).collect()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    fn at(&self, of: &Expr, at: &Expr) -> Result<ExprValue, String> {
        // `note["a name"]` is `note.name`.
        if let (Expr::Name(name), Expr::Worth(ExprValue::Text(part))) = (of, at) {
            match name.as_str() {
                "note" => return Ok(self.note(self.file, part)),
                "formula" => return self.formula(part),
                _ => {}
            }
        }
        let (of, at) = (self.worth(of)?, self.worth(at)?);
        match (of, at) {
            (ExprValue::Object(entries), ExprValue::Text(key)) => self.member(&ExprValue::Object(entries), &key),
            (of, ExprValue::Number(at)) => {
                let items = of.items();
                let at = if at < 0.0 { items.len() as f64 + at } else { at };
                let at = if at < 0.0 { usize::MAX } else { at as usize };
                Ok(items.get(at).cloned().unwrap_or(ExprValue::Nothing))
            }
            _ => Ok(ExprValue::Nothing),
        }
    }

    /// What is done to each item of a list.
    fn each(&self, name: &str, items: Vec<ExprValue>, arguments: &[Expr]) -> Result<ExprValue, String> {
        let expr = arguments.first().ok_or_else(|| format!("`{name}` wants more"))?;
        if name == "reduce" {
            let mut acc = arguments.get(1).map_or(Ok(ExprValue::Nothing), |first| self.worth(first))?;
            for (index, item) in items.iter().enumerate() {
                let next = EvalScope { item: Some((item, index, Some(&acc))), ..*self }.worth(expr)?;
                acc = next;
            }
            return Ok(acc);
        }
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let made = EvalScope { item: Some((item, index, None)), ..*self }.worth(expr)?;
            match name {
                "filter" if made.is_true() => found.push(item.clone()),
                "filter" => {}
                _ => found.push(made),
            }
        }
        Ok(ExprValue::List(found))
    }

    fn two(&self, sign: &str, one: &Expr, other: &Expr) -> Result<ExprValue, String> {
        let left = self.worth(one)?;
        match sign {
            "&&" if !left.is_true() => return Ok(ExprValue::Bool(false)),
            "||" if left.is_true() => return Ok(left),
            "&&" | "||" => return self.worth(other),
            _ => {}
        }
        let right = self.worth(other)?;
        match sign {
            "==" => return Ok(ExprValue::Bool(self.same(&left, &right))),
            "!=" => return Ok(ExprValue::Bool(!self.same(&left, &right))),
            "<" | ">" | "<=" | ">=" => {
                let (left, right) = alike(left, right);
                let known = !left.is_empty() && !right.is_empty();
                let order = left.key().order(&right.key(), false);
                return Ok(ExprValue::Bool(
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
    fn sum(&self, sign: &str, left: ExprValue, right: ExprValue) -> Result<ExprValue, String> {
        let direction = if sign == "-" { -1 } else { 1 };
        Ok(match (sign, left, right) {
            // What is not there comes to nothing, but words are put together with what there is.
            ("+", ExprValue::Text(one), ExprValue::Nothing) => ExprValue::Text(one),
            ("+", ExprValue::Nothing, ExprValue::Text(other)) => ExprValue::Text(other),
            (_, ExprValue::Nothing, _) | (_, _, ExprValue::Nothing) => ExprValue::Nothing,
            ("+", ExprValue::Number(one), ExprValue::Number(other)) => ExprValue::Number(one + other),
            ("-", ExprValue::Date(one, _), ExprValue::Date(other, _)) => {
                ExprValue::Span(TimeSpan { months: 0, ms: one.saturating_sub(other) })
            }
            ("+" | "-", ExprValue::Date(ms, timed), ExprValue::Span(span)) => {
                dated(later(ms, span, direction), timed, span)
            }
            ("+" | "-", ExprValue::Date(ms, timed), ExprValue::Text(words)) => match TimeSpan::parse(&words) {
                Some(span) => dated(later(ms, span, direction), timed, span),
                None if sign == "+" => text(super::worth::shown_date(ms, timed) + &words),
                None => return Err(format!("this is no span of time: {words}")),
            },
            ("-", ExprValue::Date(ms, _), ExprValue::Number(by)) => ExprValue::Number(ms as f64 - by),
            ("+" | "-", ExprValue::Span(one), ExprValue::Span(other)) => {
                let add = |one: i64, other: i64| one.saturating_add(other.saturating_mul(direction));
                ExprValue::Span(TimeSpan { months: add(one.months, other.months), ms: add(one.ms, other.ms) })
            }
            ("*", ExprValue::Span(span), ExprValue::Number(by)) => {
                ExprValue::Span(TimeSpan { months: (span.months as f64 * by) as i64, ms: (span.ms as f64 * by) as i64 })
            }
            ("+", one, other) if !matches!((&one, &other), (ExprValue::Number(_), ExprValue::Number(_))) => {
                let words = one.shown() + &other.shown();
                if words.len() > MAX_TEXT_VALUE_BYTES {
                    return Err("a text of the collection grows too long".to_owned());
                }
                ExprValue::Text(words)
            }
            (sign, one, other) => match (one.number(), other.number()) {
                (Some(one), Some(other)) => ExprValue::Number(match sign {
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

    pub(super) fn member(&self, of: &ExprValue, part: &str) -> Result<ExprValue, String> {
        match (of, part) {
            (ExprValue::File(file, path), _) => Ok(self.part_of_file(*file, path, part)),
            (ExprValue::Object(entries), part) => {
                let found = entries.iter().find(|(key, _)| key == part);
                Ok(found.map_or(ExprValue::Nothing, |(_, value)| ExprValue::of(value, &|target| self.resolve(target))))
            }
            (ExprValue::List(items), "length") => Ok(count(items.len())),
            (ExprValue::Text(text), "length") => Ok(count(text.chars().count())),
            (ExprValue::Date(ms, _), part) => {
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
                Ok(ExprValue::Number(number as f64))
            }
            (ExprValue::Span(span), part) => {
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
                Ok(ExprValue::Number(span.length() / unit))
            }
            (ExprValue::Link(link), part) => match link.to {
                Some(to) => self.member(&self.file_of(to), part),
                None => Ok(ExprValue::Nothing),
            },
            (ExprValue::Nothing, _) => Ok(ExprValue::Nothing),
            (other, "length") => Ok(count(other.shown().chars().count())),
            _ => Err(format!("Tracebook does not know this part of a value yet: {part}")),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "bytes of a file")]
    fn part_of_file(&self, file: DocId, path: &str, part: &str) -> ExprValue {
        let full = path.rsplit('/').next().unwrap_or(path);
        let links = |embeds: bool| {
            let links = self.source.links.outgoing(file).filter(|(link, _)| !link.target.is_empty());
            let links = links.filter(|(link, _)| !embeds || link.kind == LinkKind::Embed);
            let link = |target: String, to| ExprValue::Link(LinkValue { target, words: None, to });
            ExprValue::List(links.map(|(found, to)| link(found.path().into_owned(), to)).collect())
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
            "file" => ExprValue::File(file, path.to_owned()),
            "tags" => ExprValue::List(self.tags(file).iter().cloned().map(ExprValue::Text).collect()),
            "links" => links(false),
            "embeds" => links(true),
            "backlinks" => {
                let mut from: Vec<DocId> =
                    self.source.links.backlinks(file).into_iter().map(|(from, _)| from).collect();
                from.dedup();
                ExprValue::List(from.into_iter().map(|from| self.file_of(from)).collect())
            }
            "properties" => self.source.links.outline(file).map_or(ExprValue::Nothing, |outline| {
                let entry = |(key, value): (&String, &Value)| (key.clone(), value.clone());
                ExprValue::Object(outline.properties.iter().map(entry).collect())
            }),
            "size" => row().map_or(ExprValue::Nothing, |row| ExprValue::Number(row.size as f64)),
            "mtime" => row().map_or(ExprValue::Nothing, |row| {
                ExprValue::Date((row.mtime / 1_000_000).saturating_add(self.now.offset), true)
            }),
            // File systems do not agree on when a file was made; a note that says so is asked.
            "ctime" => self.note(file, "created"),
            _ => self.note(file, part),
        }
    }
}

fn dated(ms: Option<i64>, timed: bool, by: TimeSpan) -> ExprValue {
    ms.map_or(ExprValue::Nothing, |ms| ExprValue::Date(ms, timed || by.ms % 86_400_000 != 0))
}

/// Two values to be compared: words beside a date are read as one.
fn alike(one: ExprValue, other: ExprValue) -> (ExprValue, ExprValue) {
    let as_date = |worth: ExprValue| match worth {
        ExprValue::Text(text) => date(&text).map_or(ExprValue::Text(text), |(ms, timed)| ExprValue::Date(ms, timed)),
        other => other,
    };
    let as_span = |worth: ExprValue| match worth {
        ExprValue::Text(text) => TimeSpan::parse(&text).map_or(ExprValue::Text(text), ExprValue::Span),
        ExprValue::Number(ms) => {
            #[allow(clippy::cast_possible_truncation, reason = "milliseconds")]
            let ms = ms as i64;
            ExprValue::Span(TimeSpan { months: 0, ms })
        }
        other => other,
    };
    let as_number = |worth: ExprValue| match (&worth, worth.number()) {
        (ExprValue::Text(_), Some(number)) => ExprValue::Number(number),
        _ => worth,
    };
    match (&one, &other) {
        (ExprValue::Date(..), _) | (_, ExprValue::Date(..)) => (as_date(one), as_date(other)),
        (ExprValue::Span(_), _) | (_, ExprValue::Span(_)) => (as_span(one), as_span(other)),
        (ExprValue::Number(_), _) | (_, ExprValue::Number(_)) => (as_number(one), as_number(other)),
        _ => (one, other),
    }
}
