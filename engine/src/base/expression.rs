//! The expressions of a collection: read, and worked out for one file. What is not understood is said, never guessed.

use crate::links::without_ending;
use crate::outline::{LinkKind, plain};
use crate::session::Volume;
use crate::task::Day;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use store::DocId;

/// Formulas may ask for formulas, this deep.
const DEEPEST: usize = 8;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Worth(Worth),
    Name(String),
    Member(Box<Expr>, String),
    At(Box<Expr>, Box<Expr>),
    Call(Box<Expr>, Vec<Expr>),
    Not(Box<Expr>),
    Two(String, Box<Expr>, Box<Expr>),
}

/// What an expression is worth.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Worth {
    Nothing,
    Bool(bool),
    Number(f64),
    Text(String),
    Link(String),
    File(DocId, String),
    List(Vec<Worth>),
}

/// For which file an expression is worked out.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) volume: &'a Volume,
    pub(super) file: DocId,
    pub(super) this: Option<DocId>,
    pub(super) today: Day,
    pub(super) formulas: &'a BTreeMap<String, Expr>,
    pub(super) depth: usize,
}

struct Reader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    text: &'a str,
}

impl Expr {
    /// Reads an expression.
    pub(super) fn read(text: &str) -> Result<Expr, String> {
        let mut reader = Reader { tokens: tokens(text)?, at: 0, text };
        let expr = reader.two(0)?;
        if reader.at < reader.tokens.len() { Err(reader.wrong()) } else { Ok(expr) }
    }
}

fn tokens(text: &str) -> Result<Vec<&str>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            let number = first.is_ascii_digit();
            let part = |letter: char| letter.is_alphanumeric() || letter == '_' || (number && letter == '.');
            rest.find(|letter| !part(letter)).unwrap_or(rest.len())
        } else if matches!(first, '"' | '\'') {
            1 + rest[1..].find(first).ok_or_else(|| format!("a text is not closed in the expression: {text}"))? + 1
        } else if ["==", "!=", ">=", "<=", "&&", "||"].iter().any(|two| rest.starts_with(two)) {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

impl Reader<'_> {
    fn wrong(&self) -> String {
        format!("an expression of the collection is not understood: {}", self.text)
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    fn takes(&mut self, token: &str) -> bool {
        let there = self.peek() == token;
        self.at += usize::from(there);
        there
    }

    fn two(&mut self, least: u8) -> Result<Expr, String> {
        let mut left = self.one()?;
        loop {
            let rank = match self.peek() {
                "||" => 1,
                "&&" => 2,
                "==" | "!=" => 3,
                "<" | ">" | "<=" | ">=" => 4,
                "+" | "-" => 5,
                "*" | "/" => 6,
                _ => return Ok(left),
            };
            if rank <= least {
                return Ok(left);
            }
            let sign = self.peek().to_owned();
            self.at += 1;
            let right = self.two(rank)?;
            left = Expr::Two(sign, Box::new(left), Box::new(right));
        }
    }

    fn one(&mut self) -> Result<Expr, String> {
        if self.takes("!") {
            return Ok(Expr::Not(Box::new(self.one()?)));
        }
        let token = self.peek().to_owned();
        self.at += 1;
        let mut expr = match token.chars().next() {
            Some('(') => {
                let inner = self.two(0)?;
                if !self.takes(")") {
                    return Err(self.wrong());
                }
                inner
            }
            Some('[') => Expr::Call(Box::new(Expr::Name("list".to_owned())), self.list("]")?),
            Some('"' | '\'') => Expr::Worth(Worth::Text(token[1..token.len() - 1].to_owned())),
            Some('-') => Expr::Two("-".to_owned(), Box::new(Expr::Worth(Worth::Number(0.0))), Box::new(self.one()?)),
            Some(first) if first.is_ascii_digit() => {
                Expr::Worth(Worth::Number(token.parse().map_err(|_| self.wrong())?))
            }
            Some(first) if first.is_alphabetic() || first == '_' => match token.as_str() {
                "true" => Expr::Worth(Worth::Bool(true)),
                "false" => Expr::Worth(Worth::Bool(false)),
                "null" => Expr::Worth(Worth::Nothing),
                _ => Expr::Name(token),
            },
            _ => return Err(self.wrong()),
        };
        loop {
            if self.takes(".") {
                let name = self.peek().to_owned();
                self.at += 1;
                expr = Expr::Member(Box::new(expr), name);
            } else if self.takes("(") {
                expr = Expr::Call(Box::new(expr), self.list(")")?);
            } else if self.takes("[") {
                let at = self.two(0)?;
                if !self.takes("]") {
                    return Err(self.wrong());
                }
                expr = Expr::At(Box::new(expr), Box::new(at));
            } else {
                return Ok(expr);
            }
        }
    }

    fn list(&mut self, end: &str) -> Result<Vec<Expr>, String> {
        let mut all = Vec::new();
        if self.takes(end) {
            return Ok(all);
        }
        loop {
            all.push(self.two(0)?);
            if self.takes(end) {
                return Ok(all);
            }
            if !self.takes(",") {
                return Err(self.wrong());
            }
        }
    }
}

impl Worth {
    fn of(value: &Value) -> Worth {
        match value {
            Value::Null => Worth::Nothing,
            Value::Bool(value) => Worth::Bool(*value),
            Value::Number(number) => number.as_f64().map_or(Worth::Nothing, Worth::Number),
            Value::String(text) => match text.trim().strip_prefix("[[").and_then(|text| text.strip_suffix("]]")) {
                Some(link) => Worth::Link(link.split('|').next().unwrap_or(link).to_owned()),
                None => Worth::Text(text.clone()),
            },
            Value::Array(items) => Worth::List(items.iter().map(Worth::of).collect()),
            Value::Object(_) => Worth::Text(plain(value)),
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Worth::Nothing => false,
            Worth::Bool(value) => *value,
            Worth::Number(number) => *number != 0.0,
            Worth::Text(text) | Worth::Link(text) => !text.is_empty(),
            Worth::File(..) => true,
            Worth::List(items) => !items.is_empty(),
        }
    }

    /// As it stands in a cell.
    pub(super) fn shown(&self) -> String {
        match self {
            Worth::Nothing => String::new(),
            Worth::Bool(value) => if *value { "yes" } else { "no" }.to_owned(),
            Worth::Number(number) => number.to_string(),
            Worth::Text(text) => text.clone(),
            Worth::Link(target) => {
                target.split('#').next().unwrap_or(target).rsplit('/').next().unwrap_or("").to_owned()
            }
            Worth::File(_, path) => without_ending(path.rsplit('/').next().unwrap_or(path)).to_owned(),
            Worth::List(items) => items.iter().map(Worth::shown).collect::<Vec<_>>().join(", "),
        }
    }

    /// Which comes first; nothing comes last in either direction.
    pub(super) fn order(&self, other: &Worth, down: bool) -> Ordering {
        let empty = |worth: &Worth| worth.shown().is_empty();
        let order = match (empty(self), empty(other)) {
            (false, false) => match (self, other) {
                (Worth::Number(one), Worth::Number(other)) => one.total_cmp(other),
                (one, other) => one.shown().to_lowercase().cmp(&other.shown().to_lowercase()),
            },
            (one, other) => return one.cmp(&other),
        };
        if down { order.reverse() } else { order }
    }

    fn items(self) -> Vec<Worth> {
        match self {
            Worth::Nothing => Vec::new(),
            Worth::List(items) => items,
            one => vec![one],
        }
    }
}

impl<'a> Scope<'a> {
    /// A column: `file.name`, `formula.x`, `note.x` or `x`.
    pub(super) fn property(&self, name: &str) -> Result<Worth, String> {
        match name.split_once('.') {
            Some(("file", part)) => self.member(&self.file_of(self.file), part),
            Some(("formula", part)) => self.formula(part),
            Some(("note", part)) => Ok(self.note(self.file, part)),
            Some(_) | None => Ok(self.note(self.file, name)),
        }
    }

    fn file_of(&self, file: DocId) -> Worth {
        Worth::File(file, self.volume.links.path(file).unwrap_or_default().to_owned())
    }

    fn note(&self, file: DocId, name: &str) -> Worth {
        let Some(outline) = self.volume.links.outline(file) else { return Worth::Nothing };
        if name == "tags" {
            return Worth::List(outline.tags.iter().cloned().map(Worth::Text).collect());
        }
        let found = outline.properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or(Worth::Nothing, |(_, value)| Worth::of(value))
    }

    fn formula(&self, name: &str) -> Result<Worth, String> {
        let deeper = Scope { depth: self.depth + 1, ..*self };
        match self.formulas.get(name).filter(|_| self.depth < DEEPEST) {
            Some(formula) => deeper.worth(formula),
            None => Err(format!("there is no such formula, or it asks for itself: {name}")),
        }
    }

    /// The file that a worth stands for.
    fn leads_to(&self, worth: &Worth) -> Option<DocId> {
        match worth {
            Worth::File(file, _) => Some(*file),
            Worth::Link(target) | Worth::Text(target) => {
                let target = target.split('#').next().unwrap_or(target);
                self.volume.links.resolve(self.file, LinkKind::Wiki, target).filter(|_| !target.is_empty())
            }
            Worth::Nothing | Worth::Bool(_) | Worth::Number(_) | Worth::List(_) => None,
        }
    }

    fn same(&self, one: &Worth, other: &Worth) -> bool {
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
        match expr {
            Expr::Worth(worth) => Ok(worth.clone()),
            Expr::Name(name) => match name.as_str() {
                "file" => Ok(self.file_of(self.file)),
                "this" => Ok(self.this.map_or(Worth::Nothing, |this| self.file_of(this))),
                _ => Ok(self.note(self.file, name)),
            },
            Expr::Member(of, part) => match of.as_ref() {
                Expr::Name(name) if name == "formula" => self.formula(part),
                Expr::Name(name) if name == "note" => Ok(self.note(self.file, part)),
                Expr::Name(name) if name == "this" && part != "file" => {
                    Ok(self.this.map_or(Worth::Nothing, |this| self.note(this, part)))
                }
                of => self.member(&self.worth(of)?, part),
            },
            Expr::At(of, at) => {
                let (items, at) = (self.worth(of)?.items(), self.worth(at)?);
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
                let at = if let Worth::Number(at) = at { at.max(0.0) as usize } else { usize::MAX };
                Ok(items.get(at).cloned().unwrap_or(Worth::Nothing))
            }
            Expr::Not(of) => Ok(Worth::Bool(!self.worth(of)?.is_true())),
            Expr::Two(sign, one, other) => self.two(sign, one, other),
            Expr::Call(what, arguments) => {
                let all = arguments.iter().map(|one| self.worth(one)).collect::<Result<Vec<_>, _>>();
                match what.as_ref() {
                    Expr::Name(name) if name == "if" => {
                        let which =
                            if self.worth(arguments.first().ok_or("`if` wants more")?)?.is_true() { 1 } else { 2 };
                        arguments.get(which).map_or(Ok(Worth::Nothing), |expr| self.worth(expr))
                    }
                    Expr::Name(name) => self.function(name, all?),
                    Expr::Member(of, name) => self.method(&self.worth(of)?, name, all?),
                    _ => Err("only a name can be called in an expression".to_owned()),
                }
            }
        }
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
        let known = left != Worth::Nothing && right != Worth::Nothing;
        let order = left.order(&right, false);
        match (sign, &left, &right) {
            ("==", ..) => Ok(Worth::Bool(self.same(&left, &right))),
            ("!=", ..) => Ok(Worth::Bool(!self.same(&left, &right))),
            ("<", ..) => Ok(Worth::Bool(known && order.is_lt())),
            (">", ..) => Ok(Worth::Bool(known && order.is_gt())),
            ("<=", ..) => Ok(Worth::Bool(known && order.is_le())),
            (">=", ..) => Ok(Worth::Bool(known && order.is_ge())),
            ("+", Worth::Number(one), Worth::Number(other)) => Ok(Worth::Number(one + other)),
            ("-", Worth::Number(one), Worth::Number(other)) => Ok(Worth::Number(one - other)),
            ("*", Worth::Number(one), Worth::Number(other)) => Ok(Worth::Number(one * other)),
            ("/", Worth::Number(one), Worth::Number(other)) => Ok(Worth::Number(one / other)),
            ("+" | "-", Worth::Text(day), Worth::Text(by)) if Day::parse(day).is_some() && days(by).is_some() => {
                let by = days(by).unwrap_or(0) * if sign == "-" { -1 } else { 1 };
                let day = Day::parse(day).map_or(0, |day| day.0);
                Ok(Worth::Text(Day(day + by).to_string()))
            }
            ("+", one, other) => Ok(Worth::Text(one.shown() + &other.shown())),
            _ => Err(format!("{} cannot be worked out for such values: {sign}", "an expression")),
        }
    }

    fn function(&self, name: &str, mut all: Vec<Worth>) -> Result<Worth, String> {
        let first = if all.is_empty() { Worth::Nothing } else { all.remove(0) };
        match name {
            "link" => Ok(Worth::Link(first.shown())),
            "list" => {
                let mut items = first.items();
                items.extend(all);
                Ok(Worth::List(items))
            }
            "now" | "today" => Ok(Worth::Text(self.today.to_string())),
            "date" => Ok(Worth::Text(first.shown())),
            "number" => Ok(first.shown().parse().map_or(Worth::Nothing, Worth::Number)),
            "empty" => Ok(Worth::Bool(first.shown().is_empty())),
            "not" => Ok(Worth::Bool(!first.is_true())),
            _ => Err(format!("Tracebook does not know this function of a collection yet: {name}")),
        }
    }

    fn member(&self, of: &Worth, part: &str) -> Result<Worth, String> {
        let number =
            |number: usize| u32::try_from(number).map_or(Worth::Nothing, |number| Worth::Number(number.into()));
        match (of, part) {
            (Worth::File(file, path), _) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                let links = |embeds: bool| {
                    let links = self.volume.links.outgoing(*file).filter(|(link, _)| !link.target.is_empty());
                    let links = links.filter(|(link, _)| !embeds || link.kind == LinkKind::Embed);
                    Worth::List(links.map(|(link, _)| Worth::Link(link.path().into_owned())).collect())
                };
                let row = self.volume.files.get(path);
                Ok(match part {
                    "name" | "basename" => Worth::Text(without_ending(name).to_owned()),
                    "path" => Worth::Text(path.clone()),
                    "folder" => Worth::Text(path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()),
                    "ext" => Worth::Text(name.rsplit_once('.').map_or("", |(_, ext)| ext).to_owned()),
                    "file" => of.clone(),
                    "tags" => self.note(*file, "tags"),
                    "links" => links(false),
                    "embeds" => links(true),
                    "backlinks" => {
                        let back = self.volume.links.backlinks(*file);
                        Worth::List(back.into_iter().map(|(from, _)| self.file_of(from)).collect())
                    }
                    "size" => row.map_or(Worth::Nothing, |row| number(usize::try_from(row.size).unwrap_or(0))),
                    "mtime" => row.map_or(Worth::Nothing, |row| {
                        Worth::Text(Day(row.mtime.div_euclid(86_400_000_000_000)).to_string())
                    }),
                    _ => self.note(*file, part),
                })
            }
            (Worth::List(items), "length") => Ok(number(items.len())),
            (of, "length") => Ok(number(of.shown().chars().count())),
            (Worth::Nothing, _) => Ok(Worth::Nothing),
            _ => Err(format!("Tracebook does not know this part of a value yet: {part}")),
        }
    }

    fn method(&self, of: &Worth, name: &str, all: Vec<Worth>) -> Result<Worth, String> {
        let holds = |wanted: &Worth| match (of, wanted) {
            (Worth::List(items), _) => items.iter().any(|item| self.same(item, wanted)),
            (Worth::Nothing, _) => false,
            (Worth::Text(text), Worth::Text(part)) => text.contains(part.as_str()),
            (of, Worth::Text(part)) => of.shown().contains(part.as_str()),
            (of, wanted) => self.same(of, wanted),
        };
        let wanted = all.iter().cloned().flat_map(Worth::items).collect::<Vec<_>>();
        let first = all.first().map(Worth::shown).unwrap_or_default();
        let tag = |tag: &Worth, wanted: &str| {
            let tag = tag.shown().to_lowercase();
            let wanted = wanted.trim_start_matches('#').to_lowercase();
            tag == wanted || tag.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('/'))
        };
        Ok(match (of, name) {
            (_, "contains") => Worth::Bool(all.first().is_some_and(holds)),
            (_, "containsAny") => Worth::Bool(wanted.iter().any(holds)),
            (_, "containsAll") => Worth::Bool(wanted.iter().all(holds)),
            (_, "isEmpty") => Worth::Bool(of.shown().is_empty()),
            (_, "startsWith") => Worth::Bool(of.shown().starts_with(&first)),
            (_, "endsWith") => Worth::Bool(of.shown().ends_with(&first)),
            (_, "lower") => Worth::Text(of.shown().to_lowercase()),
            (_, "toString" | "date") => Worth::Text(of.shown()),
            (Worth::List(items), "join") => {
                Worth::Text(items.iter().map(Worth::shown).collect::<Vec<_>>().join(&first))
            }
            (Worth::Number(number), "round") => Worth::Number(number.round()),
            (Worth::Number(number), "floor") => Worth::Number(number.floor()),
            (Worth::Number(number), "ceil") => Worth::Number(number.ceil()),
            (Worth::File(file, _), "hasTag") => {
                let tags = self.note(*file, "tags").items();
                Worth::Bool(wanted.iter().any(|wanted| tags.iter().any(|one| tag(one, &wanted.shown()))))
            }
            (Worth::File(_, path), "inFolder") => {
                let folder = format!("{}/", first.trim_matches('/'));
                Worth::Bool(first.trim_matches('/').is_empty() || path.starts_with(&folder))
            }
            (Worth::File(file, _), "hasLink") => {
                let wanted = all.first().and_then(|wanted| self.leads_to(wanted));
                Worth::Bool(
                    wanted.is_some_and(|wanted| self.volume.links.outgoing(*file).any(|(_, to)| to == Some(wanted))),
                )
            }
            (Worth::File(file, _), "hasProperty") => Worth::Bool(self.note(*file, &first) != Worth::Nothing),
            (Worth::Link(_), "asFile") => self.leads_to(of).map_or(Worth::Nothing, |file| self.file_of(file)),
            (Worth::Nothing, _) => Worth::Nothing,
            _ => return Err(format!("Tracebook does not know this function of a value yet: {name}")),
        })
    }
}

/// A span such as `60d` in days.
fn days(span: &str) -> Option<i64> {
    let digits = span.find(|letter: char| !letter.is_ascii_digit())?;
    let count: i64 = span[..digits].parse().ok()?;
    let unit = match span[digits..].trim() {
        "d" | "day" | "days" => 1,
        "w" | "week" | "weeks" => 7,
        "M" | "month" | "months" => 30,
        "y" | "year" | "years" => 365,
        _ => return None,
    };
    count.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read() {
        for good in [
            "note.rating > 6",
            "!file.name.contains(\"Template\")",
            "list(type).containsAny(this.topics) || last > now() - \"60d\"",
            "if(file.embeds[0].containsAny(\"jpg\",\"gif\"), file.embeds[0])",
            "not(empty(note.last)) && (1 + 2) * -3 == [1, 2].length",
        ] {
            assert!(Expr::read(good).is_ok(), "{good}");
        }
        for bad in ["", "a ==", "a b", "f(", "\"open", "a[1", "a.()", "(a", "=", "ä$"] {
            assert!(Expr::read(bad).is_err() || bad == "a.()", "{bad}");
        }
        assert_eq!((days("60d"), days("2w"), days("x"), days("3")), (Some(60), Some(14), None, None));
    }
}
