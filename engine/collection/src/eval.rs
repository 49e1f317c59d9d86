//! Evaluates a collection's expression for one file: names, members and operators. Functions are in `functions`.

use super::expression::Expr;
use super::value::{ExprValue, LinkValue, TimeSpan, add_span, day_of, parse_date};
use super::{LocalNow, VolumeFilesAndLinks};
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;
use store::DocId;
use text::links::without_md_extension;
use text::outline::LinkKind;

/// Maximum depth of formulas that refer to other formulas.
const MAX_FORMULA_DEPTH: usize = 8;
/// Maximum number of evaluation steps per file.
const MAX_EVAL_STEPS: u32 = 200_000;
/// Maximum length of a computed text, in bytes.
const MAX_TEXT_VALUE_BYTES: usize = 1 << 16;

/// Error from evaluating an expression for a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormulaError {
    #[error("the formula doesn't exist, or refers to itself: {name}")]
    UnknownFormula { name: String },
    #[error("the collection's formulas take too long")]
    TooManySteps,
    #[error("`{function}` wants more")]
    MissingArgument { function: String },
    #[error("only a name can be called in an expression")]
    NotCallable,
    #[error("this is no span of time: {words}")]
    NotTimeSpan { words: String },
    #[error("a text of the collection grows too long")]
    TextTooLong,
    #[error("{sign} can't be used with these values")]
    UnfitOperands { sign: String },
    #[error("a date has no such part: {part}")]
    UnknownDatePart { part: String },
    #[error("a span of time has no such part: {part}")]
    UnknownSpanPart { part: String },
    #[error("Tracebook does not know this part of a value yet: {part}")]
    UnknownMember { part: String },
    #[error("Tracebook does not know this function of a collection yet: {name}")]
    UnknownFunction { name: String },
    #[error("Tracebook does not know this function of a value yet: {name}")]
    UnknownMethod { name: String },
}

/// The file and context for which an expression is evaluated.
#[derive(Clone, Copy)]
pub(super) struct EvalScope<'a> {
    pub(super) source: VolumeFilesAndLinks<'a>,
    pub(super) file: DocId,
    pub(super) this: Option<DocId>,
    pub(super) now: LocalNow,
    pub(super) formulas: &'a BTreeMap<String, Expr>,
    pub(super) depth: usize,
    /// The list item being processed, its index, and the accumulator of a `reduce`.
    pub(super) item: Option<(&'a ExprValue, usize, Option<&'a ExprValue>)>,
    pub(super) steps: &'a Cell<u32>,
}

#[allow(clippy::cast_precision_loss, reason = "counts of people's things")]
pub(super) fn count_value(number: usize) -> ExprValue {
    ExprValue::Number(number as f64)
}

pub(super) fn text_value(text: impl Into<String>) -> ExprValue {
    ExprValue::Text(text.into())
}

impl<'a> EvalScope<'a> {
    /// Evaluates a column: `file.name`, `formula.x`, `note.x` or `x`.
    pub(super) fn eval_property(&self, name: &str) -> Result<ExprValue, FormulaError> {
        match name.split_once('.') {
            Some(("file", part)) => self.eval_member(&self.file_value(self.file), part),
            Some(("formula", part)) => self.eval_formula(part),
            Some(("note" | "property", part)) => Ok(self.note_property(self.file, part)),
            Some(_) | None => Ok(self.note_property(self.file, name)),
        }
    }

    pub(super) fn file_value(&self, file: DocId) -> ExprValue {
        ExprValue::File(file, self.source.links.path(file).unwrap_or_default().to_owned())
    }

    pub(super) fn note_property(&self, file: DocId, name: &str) -> ExprValue {
        let Some(outline) = self.source.links.outline(file) else { return ExprValue::Nothing };
        let properties = &outline.properties;
        let found = properties
            .get(name)
            .or_else(|| properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value));
        let Some(value) = found else { return ExprValue::Nothing };
        if name == "tags" {
            let words = match value {
                Value::Array(items) => items.iter().map(text::outline::plain_value).collect(),
                one => text::outline::plain_value(one).split([' ', ',']).map(str::to_owned).collect::<Vec<_>>(),
            };
            let words = words.iter().map(|word| word.trim().trim_start_matches('#')).filter(|word| !word.is_empty());
            return ExprValue::List(words.map(text_value).collect());
        }
        ExprValue::from_property(value, &|target| self.source.links.resolve(file, LinkKind::Wiki, target))
    }

    pub(super) fn file_tags(&self, file: DocId) -> &'a [String] {
        self.source.links.outline(file).map_or(&[], |outline| &outline.tags)
    }

    fn eval_formula(&self, name: &str) -> Result<ExprValue, FormulaError> {
        let deeper = EvalScope { depth: self.depth + 1, item: None, ..*self };
        match self.formulas.get(name).filter(|_| self.depth < MAX_FORMULA_DEPTH) {
            Some(formula) => deeper.eval(formula),
            None => Err(FormulaError::UnknownFormula { name: name.to_owned() }),
        }
    }

    /// Resolves a link target written in this file.
    pub(super) fn resolve_link(&self, target: &str) -> Option<DocId> {
        let path = target.split('#').next().unwrap_or(target);
        self.source.links.resolve(self.file, LinkKind::Wiki, path).filter(|_| !path.is_empty())
    }

    /// Returns the file that a value refers to.
    pub(super) fn linked_file(&self, worth: &ExprValue) -> Option<DocId> {
        match worth {
            ExprValue::File(file, _) => Some(*file),
            ExprValue::Link(link) => link.to,
            ExprValue::Text(target) => self.resolve_link(target),
            _ => None,
        }
    }

    pub(super) fn is_equal(&self, one: &ExprValue, other: &ExprValue) -> bool {
        let link = |worth: &ExprValue| matches!(worth, ExprValue::Link(_) | ExprValue::File(..));
        if link(one) || link(other) {
            return match (self.linked_file(one), self.linked_file(other)) {
                (Some(one), Some(other)) => one == other,
                // Links to notes that don't exist yet are equal if their names are.
                (None, None) => one.to_text().eq_ignore_ascii_case(&other.to_text()),
                (Some(_), None) | (None, Some(_)) => false,
            };
        }
        one == other || one.to_text() == other.to_text()
    }

    /// Evaluates an expression in this scope.
    pub(super) fn eval(&self, expr: &Expr) -> Result<ExprValue, FormulaError> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > MAX_EVAL_STEPS {
            return Err(FormulaError::TooManySteps);
        }
        match expr {
            Expr::Literal(worth) => Ok(worth.clone()),
            Expr::Name(name) => Ok(match (name.as_str(), self.item) {
                ("value", Some((value, ..))) => value.clone(),
                ("index", Some((_, index, _))) => count_value(index),
                ("acc", Some((_, _, Some(acc)))) => acc.clone(),
                ("file", _) => self.file_value(self.file),
                ("this", _) => self.this.map_or(ExprValue::Nothing, |this| self.file_value(this)),
                (name, _) => self.note_property(self.file, name),
            }),
            Expr::Member(of, part) => match of.as_ref() {
                Expr::Name(name) if name == "formula" => self.eval_formula(part),
                Expr::Name(name) if name == "note" => Ok(self.note_property(self.file, part)),
                Expr::Name(name) if name == "this" && part != "file" => {
                    Ok(self.this.map_or(ExprValue::Nothing, |this| self.note_property(this, part)))
                }
                of => self.eval_member(&self.eval(of)?, part),
            },
            Expr::Index(of, at) => self.eval_index(of, at),
            Expr::Not(of) => Ok(ExprValue::Bool(!self.eval(of)?.is_true())),
            Expr::Binary(sign, one, other) => self.eval_binary(sign, one, other),
            Expr::Call(what, arguments) => match what.as_ref() {
                Expr::Name(name) if name == "if" => {
                    let first = arguments.first().ok_or_else(|| missing_argument(name))?;
                    let which = if self.eval(first)?.is_true() { 1 } else { 2 };
                    arguments.get(which).map_or(Ok(ExprValue::Nothing), |expr| self.eval(expr))
                }
                Expr::Name(name) => self.call_function(name, self.eval_all(arguments)?),
                Expr::Member(of, name) if matches!(name.as_str(), "filter" | "map" | "reduce") => {
                    let items = self.eval(of)?.into_items();
                    self.eval_each(name, items, arguments)
                }
                Expr::Member(of, name) => self.call_method(&self.eval(of)?, name, self.eval_all(arguments)?),
                _ => Err(FormulaError::NotCallable),
            },
        }
    }

    fn eval_all(&self, arguments: &[Expr]) -> Result<Vec<ExprValue>, FormulaError> {
        arguments.iter().map(|one| self.eval(one)).collect()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    fn eval_index(&self, of: &Expr, at: &Expr) -> Result<ExprValue, FormulaError> {
        // `note["a name"]` is read as `note.name`.
        if let (Expr::Name(name), Expr::Literal(ExprValue::Text(part))) = (of, at) {
            match name.as_str() {
                "note" => return Ok(self.note_property(self.file, part)),
                "formula" => return self.eval_formula(part),
                _ => {}
            }
        }
        let (of, at) = (self.eval(of)?, self.eval(at)?);
        match (of, at) {
            (ExprValue::Object(entries), ExprValue::Text(key)) => self.eval_member(&ExprValue::Object(entries), &key),
            (of, ExprValue::Number(at)) => {
                let items = of.into_items();
                let at = if at < 0.0 { items.len() as f64 + at } else { at };
                let at = if at < 0.0 { usize::MAX } else { at as usize };
                Ok(items.get(at).cloned().unwrap_or(ExprValue::Nothing))
            }
            _ => Ok(ExprValue::Nothing),
        }
    }

    /// Applies an expression to each item of a list (`map`, `filter` or `reduce`).
    fn eval_each(&self, name: &str, items: Vec<ExprValue>, arguments: &[Expr]) -> Result<ExprValue, FormulaError> {
        let expr = arguments.first().ok_or_else(|| missing_argument(name))?;
        if name == "reduce" {
            let mut acc = arguments.get(1).map_or(Ok(ExprValue::Nothing), |first| self.eval(first))?;
            for (index, item) in items.iter().enumerate() {
                let next = EvalScope { item: Some((item, index, Some(&acc))), ..*self }.eval(expr)?;
                acc = next;
            }
            return Ok(acc);
        }
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let made = EvalScope { item: Some((item, index, None)), ..*self }.eval(expr)?;
            match name {
                "filter" if made.is_true() => found.push(item.clone()),
                "filter" => {}
                _ => found.push(made),
            }
        }
        Ok(ExprValue::List(found))
    }

    fn eval_binary(&self, sign: &str, one: &Expr, other: &Expr) -> Result<ExprValue, FormulaError> {
        let left = self.eval(one)?;
        match sign {
            "&&" if !left.is_true() => return Ok(ExprValue::Bool(false)),
            "||" if left.is_true() => return Ok(left),
            "&&" | "||" => return self.eval(other),
            _ => {}
        }
        let right = self.eval(other)?;
        match sign {
            "==" => return Ok(ExprValue::Bool(self.is_equal(&left, &right))),
            "!=" => return Ok(ExprValue::Bool(!self.is_equal(&left, &right))),
            "<" | ">" | "<=" | ">=" => {
                let (left, right) = coerce_dates(left, right);
                let known = !left.is_empty() && !right.is_empty();
                let order = left.sort_key().compare(&right.sort_key(), false);
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
        self.add_or_subtract(sign, left, right)
    }

    #[allow(clippy::cast_possible_truncation, reason = "milliseconds")]
    fn add_or_subtract(&self, sign: &str, left: ExprValue, right: ExprValue) -> Result<ExprValue, FormulaError> {
        let direction = if sign == "-" { -1 } else { 1 };
        Ok(match (sign, left, right) {
            // Operations on an empty value yield an empty value, except that `+` with text returns the text.
            ("+", ExprValue::Text(one), ExprValue::Nothing) => ExprValue::Text(one),
            ("+", ExprValue::Nothing, ExprValue::Text(other)) => ExprValue::Text(other),
            (_, ExprValue::Nothing, _) | (_, _, ExprValue::Nothing) => ExprValue::Nothing,
            ("+", ExprValue::Number(one), ExprValue::Number(other)) => ExprValue::Number(one + other),
            ("-", ExprValue::Date(one, _), ExprValue::Date(other, _)) => {
                ExprValue::Span(TimeSpan { months: 0, ms: one.saturating_sub(other) })
            }
            ("+" | "-", ExprValue::Date(ms, timed), ExprValue::Span(span)) => {
                date_value(add_span(ms, span, direction), timed, span)
            }
            ("+" | "-", ExprValue::Date(ms, timed), ExprValue::Text(words)) => match TimeSpan::parse(&words) {
                Some(span) => date_value(add_span(ms, span, direction), timed, span),
                None if sign == "+" => text_value(super::value::date_text(ms, timed) + &words),
                None => return Err(FormulaError::NotTimeSpan { words }),
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
                let words = one.to_text() + &other.to_text();
                if words.len() > MAX_TEXT_VALUE_BYTES {
                    return Err(FormulaError::TextTooLong);
                }
                ExprValue::Text(words)
            }
            (sign, one, other) => match (one.as_number(), other.as_number()) {
                (Some(one), Some(other)) => ExprValue::Number(match sign {
                    "-" => one - other,
                    "*" => one * other,
                    "/" => one / other,
                    "%" => one % other,
                    _ => one + other,
                }),
                _ => return Err(FormulaError::UnfitOperands { sign: sign.to_owned() }),
            },
        })
    }

    pub(super) fn eval_member(&self, of: &ExprValue, part: &str) -> Result<ExprValue, FormulaError> {
        match (of, part) {
            (ExprValue::File(file, path), _) => Ok(self.file_member(*file, path, part)),
            (ExprValue::Object(entries), part) => {
                let found = entries.iter().find(|(key, _)| key == part);
                Ok(found.map_or(ExprValue::Nothing, |(_, value)| {
                    ExprValue::from_property(value, &|target| self.resolve_link(target))
                }))
            }
            (ExprValue::List(items), "length") => Ok(count_value(items.len())),
            (ExprValue::Text(text), "length") => Ok(count_value(text.chars().count())),
            (ExprValue::Date(ms, _), part) => {
                let (year, month, date) = day_of(*ms).date();
                let of_day = ms.rem_euclid(86_400_000);
                let number = match part {
                    "year" => year,
                    "month" => month,
                    "day" => date,
                    "hour" => of_day / 3_600_000,
                    "minute" => of_day / 60_000 % 60,
                    "second" => of_day / 1_000 % 60,
                    "millisecond" => of_day % 1_000,
                    other => return Err(FormulaError::UnknownDatePart { part: other.to_owned() }),
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
                    other => return Err(FormulaError::UnknownSpanPart { part: other.to_owned() }),
                };
                Ok(ExprValue::Number(span.approximate_ms() / unit))
            }
            (ExprValue::Link(link), part) => match link.to {
                Some(to) => self.eval_member(&self.file_value(to), part),
                None => Ok(ExprValue::Nothing),
            },
            (ExprValue::Nothing, _) => Ok(ExprValue::Nothing),
            (other, "length") => Ok(count_value(other.to_text().chars().count())),
            _ => Err(FormulaError::UnknownMember { part: part.to_owned() }),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "bytes of a file")]
    fn file_member(&self, file: DocId, path: &str, part: &str) -> ExprValue {
        let full = path.rsplit('/').next().unwrap_or(path);
        let links = |embeds: bool| {
            let links = self.source.links.outgoing_links(file).filter(|(link, _)| !link.target.is_empty());
            let links = links.filter(|(link, _)| !embeds || link.kind == LinkKind::Embed);
            let link = |target: String, to| ExprValue::Link(LinkValue { target, words: None, to });
            ExprValue::List(links.map(|(found, to)| link(found.path().into_owned(), to)).collect())
        };
        let row = || self.source.files.get(path);
        match part {
            "name" => text_value(without_md_extension(full)),
            "basename" => {
                text_value(full.rsplit_once('.').map_or(full, |(stem, _)| if stem.is_empty() { full } else { stem }))
            }
            "fullname" => text_value(full),
            "path" => text_value(path),
            "folder" => text_value(path.rsplit_once('/').map_or("", |(folder, _)| folder)),
            "ext" => text_value(full.rsplit_once('.').map_or("", |(_, ending)| ending)),
            "file" => ExprValue::File(file, path.to_owned()),
            "tags" => ExprValue::List(self.file_tags(file).iter().cloned().map(ExprValue::Text).collect()),
            "links" => links(false),
            "embeds" => links(true),
            "backlinks" => {
                let mut from: Vec<DocId> =
                    self.source.links.backlinks(file).into_iter().map(|(from, _)| from).collect();
                from.dedup();
                ExprValue::List(from.into_iter().map(|from| self.file_value(from)).collect())
            }
            "properties" => self.source.links.outline(file).map_or(ExprValue::Nothing, |outline| {
                let entry = |(key, value): (&String, &Value)| (key.clone(), value.clone());
                ExprValue::Object(outline.properties.iter().map(entry).collect())
            }),
            "size" => row().map_or(ExprValue::Nothing, |row| ExprValue::Number(row.size as f64)),
            "mtime" => row().map_or(ExprValue::Nothing, |row| {
                ExprValue::Date((row.mtime / 1_000_000).saturating_add(self.now.offset), true)
            }),
            // File systems disagree on creation times, so a note's `created` property is used instead.
            "ctime" => self.note_property(file, "created"),
            _ => self.note_property(file, part),
        }
    }
}

fn missing_argument(function: &str) -> FormulaError {
    FormulaError::MissingArgument { function: function.to_owned() }
}

fn date_value(ms: Option<i64>, timed: bool, by: TimeSpan) -> ExprValue {
    ms.map_or(ExprValue::Nothing, |ms| ExprValue::Date(ms, timed || by.ms % 86_400_000 != 0))
}

/// Prepares two values for comparison: text next to a date or time span is parsed as one.
fn coerce_dates(one: ExprValue, other: ExprValue) -> (ExprValue, ExprValue) {
    let as_date = |worth: ExprValue| match worth {
        ExprValue::Text(text) => {
            parse_date(&text).map_or(ExprValue::Text(text), |(ms, timed)| ExprValue::Date(ms, timed))
        }
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
    let as_number = |worth: ExprValue| match (&worth, worth.as_number()) {
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
