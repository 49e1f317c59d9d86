//! Conditions of rules, such as `complexity > 0.8 and code`.

use super::Features;
use serde::de::{Deserialize, Deserializer, Error};
use std::fmt;

/// A longer condition is refused, in bytes.
const LONGEST: usize = 500;
/// Parentheses and `not` go this deep.
const DEEPEST: usize = 20;
const NAMES: &str = "tokens, complexity, code, large, tools";

/// A condition on requests.
#[derive(Clone, PartialEq)]
pub struct When {
    text: String,
    tree: Tree,
}

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Not(Box<Tree>),
    Fact(Name),
    Compare(Name, Sign, f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Name {
    Tokens,
    Complexity,
    Code,
    Large,
    Tools,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sign {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Other,
}

impl When {
    /// Reads a condition.
    ///
    /// # Errors
    /// What is wrong with it, and what there is.
    pub fn parse(text: &str) -> Result<When, String> {
        if text.len() > LONGEST {
            return Err(format!("a condition has at most {LONGEST} letters"));
        }
        let mut parser = Parser { text, parts: split(text)?, at: 0, deep: 0 };
        let tree = parser.any()?;
        match parser.next() {
            None => Ok(When { text: text.trim().to_owned(), tree }),
            Some(part) => Err(parser.wrong(&format!("“{part}” is one too many"))),
        }
    }

    /// Whether it holds for a request.
    pub fn holds(&self, features: &Features) -> bool {
        holds(&self.tree, features)
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it looked at, with the values of this request: `complexity 0.85, code`.
    pub fn facts(&self, features: &Features) -> String {
        let mut names = Vec::new();
        collect(&self.tree, &mut names);
        let said = names.into_iter().map(|name| match name {
            Name::Tokens => format!("{} tokens", features.tokens),
            Name::Complexity => format!("complexity {:.2}", features.complexity),
            Name::Tools => format!("{} tools", features.tools),
            Name::Code => if features.code { "asks for code" } else { "asks for no code" }.to_owned(),
            Name::Large => if features.large { "large" } else { "not large" }.to_owned(),
        });
        said.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "When({})", self.text)
    }
}

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<When, D::Error> {
        When::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

fn value(name: Name, features: &Features) -> f64 {
    match name {
        Name::Tokens => features.tokens as f64,
        Name::Complexity => features.complexity,
        Name::Tools => features.tools as f64,
        Name::Code => f64::from(u8::from(features.code)),
        Name::Large => f64::from(u8::from(features.large)),
    }
}

fn holds(tree: &Tree, features: &Features) -> bool {
    match tree {
        Tree::All(parts) => parts.iter().all(|part| holds(part, features)),
        Tree::Any(parts) => parts.iter().any(|part| holds(part, features)),
        Tree::Not(part) => !holds(part, features),
        Tree::Fact(name) => value(*name, features) > 0.0,
        Tree::Compare(name, sign, number) => {
            let value = value(*name, features);
            match sign {
                Sign::Less => value < *number,
                Sign::AtMost => value <= *number,
                Sign::More => value > *number,
                Sign::AtLeast => value >= *number,
                Sign::Equal => (value - number).abs() < 1e-9,
                Sign::Other => (value - number).abs() >= 1e-9,
            }
        }
    }
}

fn collect(tree: &Tree, names: &mut Vec<Name>) {
    match tree {
        Tree::All(parts) | Tree::Any(parts) => parts.iter().for_each(|part| collect(part, names)),
        Tree::Not(part) => collect(part, names),
        Tree::Fact(name) | Tree::Compare(name, ..) => {
            if !names.contains(name) {
                names.push(*name);
            }
        }
    }
}

/// Words, numbers, signs and parentheses.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => 1,
            '<' | '>' | '=' | '!' => rest.find(|letter| !"<>=!".contains(letter)).unwrap_or(rest.len()),
            letter if letter.is_ascii_alphanumeric() || letter == '.' || letter == '_' => {
                let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '_';
                rest.find(|letter| !word(letter)).unwrap_or(rest.len())
            }
            other => return Err(format!("“{other}” has no place in a condition")),
        };
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after.trim_start();
    }
    Ok(parts)
}

struct Parser<'a> {
    text: &'a str,
    parts: Vec<&'a str>,
    at: usize,
    deep: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.parts.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let part = self.peek();
        self.at += 1;
        part
    }

    fn takes(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(word);
        self.at += usize::from(is);
        is
    }

    fn wrong(&self, why: &str) -> String {
        format!("“{}” is no condition: {why}", self.text.trim())
    }

    fn any(&mut self) -> Result<Tree, String> {
        let mut parts = vec![self.all()?];
        while self.takes("or") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Tree::Any(parts) })
    }

    fn all(&mut self) -> Result<Tree, String> {
        let mut parts = vec![self.one()?];
        while self.takes("and") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Tree::All(parts) })
    }

    fn one(&mut self) -> Result<Tree, String> {
        self.deep += 1;
        if self.deep > DEEPEST {
            return Err(self.wrong("it goes too deep"));
        }
        let tree = match self.next() {
            None => return Err(self.wrong(&format!("something is missing at its end; there are {NAMES}"))),
            Some("not") => Tree::Not(Box::new(self.one()?)),
            Some("(") => {
                let tree = self.any()?;
                if !self.takes(")") {
                    return Err(self.wrong("a “)” is missing"));
                }
                tree
            }
            Some(word) => self.fact(word)?,
        };
        self.deep -= 1;
        Ok(tree)
    }

    fn fact(&mut self, word: &str) -> Result<Tree, String> {
        let name = match word {
            "tokens" => Name::Tokens,
            "complexity" => Name::Complexity,
            "code" => Name::Code,
            "large" => Name::Large,
            "tools" => Name::Tools,
            _ => return Err(self.wrong(&format!("“{word}” is not known; there are {NAMES}"))),
        };
        let sign = match self.peek() {
            Some("<") => Sign::Less,
            Some("<=") => Sign::AtMost,
            Some(">") => Sign::More,
            Some(">=") => Sign::AtLeast,
            Some("==" | "=") => Sign::Equal,
            Some("!=") => Sign::Other,
            _ => {
                return match name {
                    Name::Code | Name::Large | Name::Tools => Ok(Tree::Fact(name)),
                    Name::Tokens | Name::Complexity => {
                        Err(self.wrong(&format!("{word} is a number: compare it, as in “{word} > 0.5”")))
                    }
                };
            }
        };
        self.at += 1;
        if matches!(name, Name::Code | Name::Large) {
            return Err(self.wrong(&format!("{word} is true or false: write “{word}” or “not {word}”")));
        }
        let number = self.next().and_then(|part| part.parse::<f64>().ok()).filter(|number| number.is_finite());
        number
            .map(|number| Tree::Compare(name, sign, number))
            .ok_or_else(|| self.wrong(&format!("{word} is compared with a number")))
    }
}
