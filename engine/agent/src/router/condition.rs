//! Conditions of routing rules, such as `complexity > 0.8 and code`.

use super::RequestFeatures;
use serde::de::{Deserialize, Deserializer, Error};
use std::fmt;

/// Maximum length of a condition in bytes.
const MAX_CONDITION_BYTES: usize = 500;
/// Maximum nesting of parentheses and `not`.
const MAX_CONDITION_DEPTH: usize = 20;
const CONDITION_FEATURE_NAMES: &str = "tokens, complexity, code, large, tools";

/// A parsed condition on requests.
#[derive(Clone, PartialEq)]
pub struct RoutingCondition {
    text: String,
    tree: ConditionNode,
}

#[derive(Clone, Debug, PartialEq)]
enum ConditionNode {
    And(Vec<ConditionNode>),
    Or(Vec<ConditionNode>),
    Not(Box<ConditionNode>),
    Feature(FeatureName),
    Compare(FeatureName, ComparisonOperator, f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FeatureName {
    Tokens,
    Complexity,
    Code,
    Large,
    Tools,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ComparisonOperator {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    NotEqual,
}

/// Why a text isn't a valid condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingConditionError {
    /// It's longer than `MAX_CONDITION_BYTES`.
    #[error("a condition has at most {MAX_CONDITION_BYTES} letters")]
    TooLong,
    /// It contains a character that isn't part of any token.
    #[error("“{0}” has no place in a condition")]
    Letter(char),
    /// Its tokens don't follow the grammar.
    #[error("“{text}” is no condition: {fault}")]
    Syntax {
        /// The condition.
        text: String,
        /// How it violates the grammar.
        #[source]
        fault: RoutingConditionFault,
    },
}

/// How a condition violates the grammar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingConditionFault {
    /// A token follows after the end of the condition.
    #[error("“{0}” is one too many")]
    ExtraToken(String),
    /// Parentheses and `not` are nested too deeply.
    #[error("it goes too deep")]
    TooDeep,
    /// It ends too early.
    #[error("something is missing at its end; there are {CONDITION_FEATURE_NAMES}")]
    Incomplete,
    /// A parenthesis isn't closed.
    #[error("a “)” is missing")]
    OpenParenthesis,
    /// A word isn't a feature.
    #[error("“{0}” is not known; there are {CONDITION_FEATURE_NAMES}")]
    UnknownWord(String),
    /// A numeric feature isn't compared.
    #[error("{0} is a number: compare it, as in “{0} > 0.5”")]
    NotCompared(String),
    /// A feature that's true or false is compared.
    #[error("{0} is true or false: write “{0}” or “not {0}”")]
    NotNumber(String),
    /// A numeric feature is compared with something other than a number.
    #[error("{0} is compared with a number")]
    NumberExpected(String),
}

impl RoutingCondition {
    /// Parses a condition.
    ///
    /// # Errors
    /// Returns an error that says what is wrong, and which features exist.
    pub fn parse(text: &str) -> Result<RoutingCondition, RoutingConditionError> {
        if text.len() > MAX_CONDITION_BYTES {
            return Err(RoutingConditionError::TooLong);
        }
        let mut parser = ConditionParser { text, parts: tokenize(text)?, at: 0, deep: 0 };
        let tree = parser.parse_or()?;
        match parser.next() {
            None => Ok(RoutingCondition { text: text.trim().to_owned(), tree }),
            Some(part) => Err(parser.syntax_error(RoutingConditionFault::ExtraToken(part.to_owned()))),
        }
    }

    /// Returns whether the condition holds for a request.
    pub fn holds(&self, features: &RequestFeatures) -> bool {
        holds(&self.tree, features)
    }

    /// Returns the condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Describes the features that the condition checks, with their values in this request, such as `complexity 0.85`.
    pub fn describe_features(&self, features: &RequestFeatures) -> String {
        let mut names = Vec::new();
        collect_features(&self.tree, &mut names);
        let said = names.into_iter().map(|name| match name {
            FeatureName::Tokens => format!("{} tokens", features.tokens),
            FeatureName::Complexity => format!("complexity {:.2}", features.complexity),
            FeatureName::Tools => format!("{} tools", features.tools),
            FeatureName::Code => if features.code { "asks for code" } else { "asks for no code" }.to_owned(),
            FeatureName::Large => if features.large { "large" } else { "not large" }.to_owned(),
        });
        said.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Debug for RoutingCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "When({})", self.text)
    }
}

impl<'de> Deserialize<'de> for RoutingCondition {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RoutingCondition, D::Error> {
        RoutingCondition::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

fn feature_value(name: FeatureName, features: &RequestFeatures) -> f64 {
    match name {
        FeatureName::Tokens => features.tokens as f64,
        FeatureName::Complexity => features.complexity,
        FeatureName::Tools => features.tools as f64,
        FeatureName::Code => f64::from(u8::from(features.code)),
        FeatureName::Large => f64::from(u8::from(features.large)),
    }
}

fn holds(tree: &ConditionNode, features: &RequestFeatures) -> bool {
    match tree {
        ConditionNode::And(parts) => parts.iter().all(|part| holds(part, features)),
        ConditionNode::Or(parts) => parts.iter().any(|part| holds(part, features)),
        ConditionNode::Not(part) => !holds(part, features),
        ConditionNode::Feature(name) => feature_value(*name, features) > 0.0,
        ConditionNode::Compare(name, sign, number) => {
            let value = feature_value(*name, features);
            match sign {
                ComparisonOperator::Less => value < *number,
                ComparisonOperator::AtMost => value <= *number,
                ComparisonOperator::More => value > *number,
                ComparisonOperator::AtLeast => value >= *number,
                ComparisonOperator::Equal => (value - number).abs() < 1e-9,
                ComparisonOperator::NotEqual => (value - number).abs() >= 1e-9,
            }
        }
    }
}

fn collect_features(tree: &ConditionNode, names: &mut Vec<FeatureName>) {
    match tree {
        ConditionNode::And(parts) | ConditionNode::Or(parts) => {
            parts.iter().for_each(|part| collect_features(part, names))
        }
        ConditionNode::Not(part) => collect_features(part, names),
        ConditionNode::Feature(name) | ConditionNode::Compare(name, ..) => {
            if !names.contains(name) {
                names.push(*name);
            }
        }
    }
}

/// Splits a condition into words, numbers, operators and parentheses.
fn tokenize(text: &str) -> Result<Vec<&str>, RoutingConditionError> {
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
            other => return Err(RoutingConditionError::Letter(other)),
        };
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after.trim_start();
    }
    Ok(parts)
}

struct ConditionParser<'a> {
    text: &'a str,
    parts: Vec<&'a str>,
    at: usize,
    deep: usize,
}

impl<'a> ConditionParser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.parts.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let part = self.peek();
        self.at += 1;
        part
    }

    fn accept_token(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(word);
        self.at += usize::from(is);
        is
    }

    fn syntax_error(&self, fault: RoutingConditionFault) -> RoutingConditionError {
        RoutingConditionError::Syntax { text: self.text.trim().to_owned(), fault }
    }

    fn parse_or(&mut self) -> Result<ConditionNode, RoutingConditionError> {
        let mut parts = vec![self.parse_and()?];
        while self.accept_token("or") {
            parts.push(self.parse_and()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { ConditionNode::Or(parts) })
    }

    fn parse_and(&mut self) -> Result<ConditionNode, RoutingConditionError> {
        let mut parts = vec![self.parse_unary()?];
        while self.accept_token("and") {
            parts.push(self.parse_unary()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { ConditionNode::And(parts) })
    }

    fn parse_unary(&mut self) -> Result<ConditionNode, RoutingConditionError> {
        self.deep += 1;
        if self.deep > MAX_CONDITION_DEPTH {
            return Err(self.syntax_error(RoutingConditionFault::TooDeep));
        }
        let tree = match self.next() {
            None => return Err(self.syntax_error(RoutingConditionFault::Incomplete)),
            Some("not") => ConditionNode::Not(Box::new(self.parse_unary()?)),
            Some("(") => {
                let tree = self.parse_or()?;
                if !self.accept_token(")") {
                    return Err(self.syntax_error(RoutingConditionFault::OpenParenthesis));
                }
                tree
            }
            Some(word) => self.parse_comparison(word)?,
        };
        self.deep -= 1;
        Ok(tree)
    }

    fn parse_comparison(&mut self, word: &str) -> Result<ConditionNode, RoutingConditionError> {
        let name = match word {
            "tokens" => FeatureName::Tokens,
            "complexity" => FeatureName::Complexity,
            "code" => FeatureName::Code,
            "large" => FeatureName::Large,
            "tools" => FeatureName::Tools,
            _ => return Err(self.syntax_error(RoutingConditionFault::UnknownWord(word.to_owned()))),
        };
        let sign = match self.peek() {
            Some("<") => ComparisonOperator::Less,
            Some("<=") => ComparisonOperator::AtMost,
            Some(">") => ComparisonOperator::More,
            Some(">=") => ComparisonOperator::AtLeast,
            Some("==" | "=") => ComparisonOperator::Equal,
            Some("!=") => ComparisonOperator::NotEqual,
            _ => {
                return match name {
                    FeatureName::Code | FeatureName::Large | FeatureName::Tools => Ok(ConditionNode::Feature(name)),
                    FeatureName::Tokens | FeatureName::Complexity => {
                        Err(self.syntax_error(RoutingConditionFault::NotCompared(word.to_owned())))
                    }
                };
            }
        };
        self.at += 1;
        if matches!(name, FeatureName::Code | FeatureName::Large) {
            return Err(self.syntax_error(RoutingConditionFault::NotNumber(word.to_owned())));
        }
        let number = self.next().and_then(|part| part.parse::<f64>().ok()).filter(|number| number.is_finite());
        number
            .map(|number| ConditionNode::Compare(name, sign, number))
            .ok_or_else(|| self.syntax_error(RoutingConditionFault::NumberExpected(word.to_owned())))
    }
}
