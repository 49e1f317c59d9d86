//! The expressions of a collection, read. What is not understood is said, never guessed.

use super::worth::ExprValue;

/// Parts inside parts are read this deep.
const MAX_EXPRESSION_DEPTH: usize = 32;
/// An expression has at most this many words and signs.
const MAX_EXPRESSION_TOKENS: usize = 500;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Worth(ExprValue),
    Name(String),
    Member(Box<Expr>, String),
    At(Box<Expr>, Box<Expr>),
    Call(Box<Expr>, Vec<Expr>),
    Not(Box<Expr>),
    Two(String, Box<Expr>, Box<Expr>),
}

struct ExpressionReader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    depth: usize,
    text: &'a str,
}

impl Expr {
    /// Reads an expression.
    pub(super) fn read(text: &str) -> Result<Expr, String> {
        let mut reader = ExpressionReader { tokens: tokens(text)?, at: 0, depth: 0, text };
        if reader.tokens.len() > MAX_EXPRESSION_TOKENS {
            return Err("an expression of the collection is too long".to_owned());
        }
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
            quoted(rest, first).ok_or_else(|| format!("a text is not closed in the expression: {text}"))?
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

/// How long the quoted text is that begins here.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// A quoted text without its quotes.
fn unquoted(token: &str) -> String {
    let mut text = String::with_capacity(token.len());
    let mut letters = token.get(1..token.len() - 1).unwrap_or("").chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => letter,
            },
            letter => letter,
        });
    }
    text
}

impl ExpressionReader<'_> {
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
                "*" | "/" | "%" => 6,
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
        self.depth += 1;
        let one = if self.depth > MAX_EXPRESSION_DEPTH { Err(self.wrong()) } else { self.unit() };
        self.depth -= 1;
        one
    }

    fn unit(&mut self) -> Result<Expr, String> {
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
            Some('"' | '\'') => Expr::Worth(ExprValue::Text(unquoted(&token))),
            Some('-') => {
                Expr::Two("-".to_owned(), Box::new(Expr::Worth(ExprValue::Number(0.0))), Box::new(self.one()?))
            }
            Some(first) if first.is_ascii_digit() => {
                Expr::Worth(ExprValue::Number(token.parse().map_err(|_| self.wrong())?))
            }
            Some(first) if first.is_alphabetic() || first == '_' => match token.as_str() {
                "true" => Expr::Worth(ExprValue::Bool(true)),
                "false" => Expr::Worth(ExprValue::Bool(false)),
                "null" => Expr::Worth(ExprValue::Nothing),
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
            "not(empty(note.last)) && (1 + 2) * -3 % 2 == [1, 2].length",
            r#""a \"quoted\" word" != 'x'"#,
        ] {
            assert!(Expr::read(good).is_ok(), "{good}");
        }
        for bad in ["", "a ==", "a b", "f(", "\"open", "\"open\\\"", "a[1", "(a", "=", "ä$"] {
            assert!(Expr::read(bad).is_err(), "{bad}");
        }
        for deep in ["(".repeat(10_000), "!".repeat(10_000), "f(".repeat(10_000), "1+".repeat(100_000) + "1"] {
            assert!(Expr::read(&deep).is_err());
        }
        assert_eq!(Expr::read(r#""a\"b""#), Ok(Expr::Worth(ExprValue::Text("a\"b".to_owned()))));
    }
}
