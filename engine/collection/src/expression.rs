//! Parser for a collection's expressions. An expression that can't be parsed is reported, never guessed.

use super::value::ExprValue;

/// Maximum nesting depth of an expression.
const MAX_EXPRESSION_DEPTH: usize = 32;
/// Maximum number of tokens in an expression.
const MAX_EXPRESSION_TOKENS: usize = 500;

/// Error from parsing a collection's expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The expression has too many tokens.
    #[error("an expression of the collection is too long")]
    TooLong,
    /// A quoted string isn't closed.
    #[error("a text is not closed in the expression: {text}")]
    UnclosedText {
        /// The whole expression.
        text: String,
    },
    /// The expression doesn't follow the grammar, or nests too deep.
    #[error("an expression of the collection is not understood: {text}")]
    NotUnderstood {
        /// The whole expression.
        text: String,
    },
}

/// A parsed expression of a filter or formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Literal(ExprValue),
    Name(String),
    Member(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Call(Box<Expr>, Vec<Expr>),
    Not(Box<Expr>),
    Binary(String, Box<Expr>, Box<Expr>),
}

struct ExpressionReader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    depth: usize,
    text: &'a str,
}

impl Expr {
    /// Parses an expression.
    pub(super) fn parse(text: &str) -> Result<Expr, ExpressionError> {
        let mut reader = ExpressionReader { tokens: tokenize(text)?, at: 0, depth: 0, text };
        if reader.tokens.len() > MAX_EXPRESSION_TOKENS {
            return Err(ExpressionError::TooLong);
        }
        let expr = reader.parse_binary(0)?;
        if reader.at < reader.tokens.len() { Err(reader.unexpected_token()) } else { Ok(expr) }
    }
}

fn tokenize(text: &str) -> Result<Vec<&str>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            let number = first.is_ascii_digit();
            let part = |letter: char| letter.is_alphanumeric() || letter == '_' || (number && letter == '.');
            rest.find(|letter| !part(letter)).unwrap_or(rest.len())
        } else if matches!(first, '"' | '\'') {
            quoted_length(rest, first).ok_or_else(|| ExpressionError::UnclosedText { text: text.to_owned() })?
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

/// Returns the length in bytes of the quoted string at the start of `text`, with quotes. `None` if it isn't closed.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
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

/// Removes the quotes from a quoted string and resolves its escapes.
fn unquote(token: &str) -> String {
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
    fn unexpected_token(&self) -> ExpressionError {
        ExpressionError::NotUnderstood { text: self.text.to_owned() }
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    fn eat(&mut self, token: &str) -> bool {
        let there = self.peek() == token;
        self.at += usize::from(there);
        there
    }

    fn parse_binary(&mut self, least: u8) -> Result<Expr, ExpressionError> {
        let mut left = self.parse_unary()?;
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
            let right = self.parse_binary(rank)?;
            left = Expr::Binary(sign, Box::new(left), Box::new(right));
        }
    }

    fn parse_unary(&mut self) -> Result<Expr, ExpressionError> {
        self.depth += 1;
        let one = if self.depth > MAX_EXPRESSION_DEPTH { Err(self.unexpected_token()) } else { self.parse_primary() };
        self.depth -= 1;
        one
    }

    fn parse_primary(&mut self) -> Result<Expr, ExpressionError> {
        if self.eat("!") {
            return Ok(Expr::Not(Box::new(self.parse_unary()?)));
        }
        let token = self.peek().to_owned();
        self.at += 1;
        let mut expr = match token.chars().next() {
            Some('(') => {
                let inner = self.parse_binary(0)?;
                if !self.eat(")") {
                    return Err(self.unexpected_token());
                }
                inner
            }
            Some('[') => Expr::Call(Box::new(Expr::Name("list".to_owned())), self.parse_list("]")?),
            Some('"' | '\'') => Expr::Literal(ExprValue::Text(unquote(&token))),
            Some('-') => Expr::Binary(
                "-".to_owned(),
                Box::new(Expr::Literal(ExprValue::Number(0.0))),
                Box::new(self.parse_unary()?),
            ),
            Some(first) if first.is_ascii_digit() => {
                Expr::Literal(ExprValue::Number(token.parse().map_err(|_| self.unexpected_token())?))
            }
            Some(first) if first.is_alphabetic() || first == '_' => match token.as_str() {
                "true" => Expr::Literal(ExprValue::Bool(true)),
                "false" => Expr::Literal(ExprValue::Bool(false)),
                "null" => Expr::Literal(ExprValue::Nothing),
                _ => Expr::Name(token),
            },
            _ => return Err(self.unexpected_token()),
        };
        loop {
            if self.eat(".") {
                let name = self.peek().to_owned();
                self.at += 1;
                expr = Expr::Member(Box::new(expr), name);
            } else if self.eat("(") {
                expr = Expr::Call(Box::new(expr), self.parse_list(")")?);
            } else if self.eat("[") {
                let at = self.parse_binary(0)?;
                if !self.eat("]") {
                    return Err(self.unexpected_token());
                }
                expr = Expr::Index(Box::new(expr), Box::new(at));
            } else {
                return Ok(expr);
            }
        }
    }

    fn parse_list(&mut self, end: &str) -> Result<Vec<Expr>, ExpressionError> {
        let mut all = Vec::new();
        if self.eat(end) {
            return Ok(all);
        }
        loop {
            all.push(self.parse_binary(0)?);
            if self.eat(end) {
                return Ok(all);
            }
            if !self.eat(",") {
                return Err(self.unexpected_token());
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
            assert!(Expr::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a ==", "a b", "f(", "\"open", "\"open\\\"", "a[1", "(a", "=", "ä$"] {
            assert!(Expr::parse(bad).is_err(), "{bad}");
        }
        for deep in ["(".repeat(10_000), "!".repeat(10_000), "f(".repeat(10_000), "1+".repeat(100_000) + "1"] {
            assert!(Expr::parse(&deep).is_err());
        }
        assert_eq!(Expr::parse(r#""a\"b""#), Ok(Expr::Literal(ExprValue::Text("a\"b".to_owned()))));
    }
}
