//! SQL cells: the Python code that runs a query over the kernel's variables, files and collections, and the names that
//! it reads.

use crate::python_scope::{CellNames, is_variable_name};
use std::collections::BTreeSet;
use store::{BlobHash, FileKind};

/// Maximum length of a query.
const MAX_QUERY_BYTES: usize = 65_536;
/// Python code that runs queries, in any Python kernel.
const RUNNER_SOURCE: &str = include_str!("sql_cell.py");
/// Prefix of the comment in a query's first line that names its result.
const INTO_MARK: &str = "into:";

/// Error that prevents a query from running, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The query is too long.
    #[error("this query is longer than {MAX_QUERY_BYTES} bytes; make it shorter")]
    TooLong,
    /// The name for the result isn't a valid variable name.
    #[error("`{0}` can't be the name of a Python variable; write `-- into: totals` in the first line")]
    Name(String),
}

/// A parsed SQL cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlCell<'a> {
    query: &'a str,
    /// Variable that the result is bound to, from `-- into: totals` in the first line.
    into: Option<&'a str>,
}

impl<'a> SqlCell<'a> {
    /// Parses the text between the fences.
    ///
    /// # Errors
    /// Returns an error if the query is too long, or names its result with an invalid variable name.
    pub fn parse(query: &'a str) -> Result<SqlCell<'a>, QueryError> {
        if query.len() > MAX_QUERY_BYTES {
            return Err(QueryError::TooLong);
        }
        let comment = query.lines().next().and_then(|line| line.trim().strip_prefix("--"));
        let into = comment.and_then(|comment| comment.trim().strip_prefix(INTO_MARK)).map(str::trim);
        match into.filter(|name| !is_variable_name(name)) {
            Some(name) => Err(QueryError::Name(name.chars().filter(|letter| !letter.is_control()).take(100).collect())),
            None => Ok(SqlCell { query, into }),
        }
    }

    /// Returns the Python code that runs the query and shows its result. The first query in a kernel also loads the
    /// runner. `collections` has the rows of the collections that the query reads, by their names in the query.
    pub fn kernel_code(&self, collections: Option<&serde_json::Value>) -> String {
        let (name, source) = (runner_name(), text_literal(RUNNER_SOURCE));
        let runner = format!(
            "(__import__(\"sys\").modules.get(\"{name}\") or (lambda made: (__import__(\"builtins\").exec(__import__(\
             \"builtins\").compile({source}, \"SQL cell\", \"exec\"), made.__dict__), __import__(\"sys\").modules.\
             setdefault(\"{name}\", made))[1])(__import__(\"types\").ModuleType(\"{name}\")))"
        );
        self.code_with_runner(&runner, collections)
    }

    /// Returns the Python code that runs the query in a program in which the code of another query has run before.
    pub fn following_code(&self) -> String {
        self.code_with_runner(&format!("__import__(\"sys\").modules[\"{}\"]", runner_name()), None)
    }

    fn code_with_runner(&self, runner: &str, collections: Option<&serde_json::Value>) -> String {
        let query = text_literal(self.query);
        // JSON on one line has no control characters, so only these two need escapes in Python.
        let rows = collections.map(|rows| rows.to_string().replace('\\', r"\\").replace('"', "\\\""));
        let rows = rows.map(|rows| format!(", \"{rows}\"")).unwrap_or_default();
        // A single expression, so that it binds no names in the note.
        let run = format!("{runner}.run(__import__(\"builtins\").globals(), {query}{rows})\n");
        match self.into {
            Some(into) => format!("{into} = {run}{into}\n"),
            None => run,
        }
    }

    /// Returns the names of tables that are collections, with or without a view, such as `Reading.base#To read`.
    pub fn collections(&self) -> BTreeSet<String> {
        table_names(self.query).into_iter().filter(|name| split_collection_name(name).is_some()).collect()
    }

    /// Returns the variables that the query may read, and the one that it binds.
    pub fn names(&self) -> CellNames {
        let defines: BTreeSet<String> = self.into.map(ToOwned::to_owned).into_iter().collect();
        let uses = table_names(self.query).into_iter().filter(|name| is_variable_name(name)).collect();
        CellNames { surely: defines.clone(), defines, uses, ..CellNames::default() }
    }
}

/// Returns the name of the runner's module in a kernel.
fn runner_name() -> String {
    format!("_tracebook_sql_{}", &BlobHash::of(RUNNER_SOURCE.as_bytes()).to_string()[..12])
}

/// Splits a table's name such as `Reading.base#To read` into the collection's path and the name of its view. Returns
/// `None` if the table isn't a collection.
pub fn split_collection_name(name: &str) -> Option<(&str, Option<&str>)> {
    let mut ends = name.match_indices('#').map(|(at, _)| at).chain([name.len()]);
    let end = ends.find(|end| FileKind::from_path(&name[..*end]) == FileKind::Collection)?;
    Some((&name[..end], name.get(end + 1..).filter(|view| !view.is_empty())))
}

/// Formats a text as a Python string literal in ASCII.
pub(crate) fn text_literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => literal.extend(['\\', letter]),
            '\n' => literal.push_str("\\n"),
            ' '..='~' => literal.push(letter),
            _ => literal.push_str(&format!("\\U{:08x}", u32::from(letter))),
        }
    }
    literal.push('"');
    literal
}

/// A token of SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SqlToken {
    /// A name without quotes, or a keyword.
    Word(String),
    /// A name in quotes, or a string, which SQLite takes as a name where only a name can be.
    Quoted(String),
    /// A punctuation character.
    Sign(char),
    /// A number.
    Number,
}

/// Returns the names of tables that a query reads, as far as its FROM and JOIN clauses tell. May include names that the
/// query itself defines with WITH.
fn table_names(query: &str) -> BTreeSet<String> {
    let tokens = tokenize(query);
    let mut names = BTreeSet::new();
    // For each open bracket: whether a table is expected next, and whether it's inside a list of tables.
    let mut open = vec![(false, false)];
    for (at, token) in tokens.iter().enumerate() {
        let depth = open.len();
        let Some((expected, listed)) = open.last_mut() else { break };
        match token {
            SqlToken::Sign('(') => {
                let inner = (*expected, *expected);
                *expected = false;
                open.push(inner);
            }
            SqlToken::Sign(')') => {
                if depth > 1 {
                    open.pop();
                }
            }
            SqlToken::Sign(',') => *expected = *listed,
            SqlToken::Word(word) if is_one_of(word, &["FROM", "JOIN"]) => (*expected, *listed) = (true, true),
            SqlToken::Word(word) if is_one_of(word, &CLAUSES) => (*expected, *listed) = (false, false),
            SqlToken::Word(name) | SqlToken::Quoted(name) if *expected => {
                *expected = false;
                // `shop.orders` is in a file, and `json_each(…)` is a function.
                if !matches!(tokens.get(at + 1), Some(SqlToken::Sign('.' | '('))) {
                    names.insert(name.clone());
                }
            }
            SqlToken::Number => *expected = false,
            SqlToken::Word(_) | SqlToken::Quoted(_) | SqlToken::Sign(_) => {}
        }
    }
    names
}

/// Keywords that end a list of tables.
const CLAUSES: [&str; 10] =
    ["SELECT", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT"];

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

fn tokenize(query: &str) -> Vec<SqlToken> {
    let mut tokens = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let is_letter = |letter: char| letter == '_' || letter == '$' || letter.is_alphanumeric();
        let length = match first {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '\'' | '"' | '`' | '[' => {
                let close = if first == '[' { ']' } else { first };
                let (name, length) = quoted_name(rest, close);
                tokens.push(SqlToken::Quoted(name));
                length
            }
            _ if is_letter(first) => {
                let length = rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len());
                let is_number = first.is_numeric();
                tokens.push(if is_number { SqlToken::Number } else { SqlToken::Word(rest[..length].to_owned()) });
                length
            }
            _ if first.is_whitespace() => first.len_utf8(),
            _ => {
                tokens.push(SqlToken::Sign(first));
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

/// Parses the quoted text at the start of `text`, in which a doubled closing quote stands for one. Returns it and its
/// length including quotes.
fn quoted_name(text: &str, close: char) -> (String, usize) {
    let mut name = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == close && letters.next_if(|(_, next)| *next == close && close != ']').is_none() {
            return (name, at + 1);
        }
        name.push(letter);
    }
    (name, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(query: &str) -> Vec<String> {
        table_names(query).into_iter().collect()
    }

    #[test]
    fn tables_are_those_behind_from_and_join() {
        for (query, found) in [
            ("SELECT a, b FROM sales", vec!["sales"]),
            ("select * from a, b as x, \"c d\" where e in (1, 2) order by f, g", vec!["a", "b", "c d"]),
            ("SELECT * FROM a JOIN b ON a.x = b.x, c LEFT JOIN d USING (x)", vec!["a", "b", "c", "d"]),
            ("select * from (select x, y from inner_one) t, [outer]", vec!["inner_one", "outer"]),
            ("select (select max(x) from a), b from c", vec!["a", "c"]),
            ("select * from (a join b)", vec!["a", "b"]),
            ("select * from 'sales.csv' join regions", vec!["regions", "sales.csv"]),
            ("select * from shop.orders, json_each('[1]'), t", vec!["t"]),
            ("with q as (select * from a) select * from q", vec!["a", "q"]),
            ("select 'from x' -- from y\n/* from z */ from größe", vec!["größe"]),
            ("select \"from\" from \"a\"\"b\"", vec!["a\"b"]),
            ("values (1), (2)", vec![]),
            ("from 1 join ) ) ( ,", vec![]),
            ("select * from \"", vec![""]),
            ("select * from x union select y from z limit 1, 2", vec!["x", "z"]),
        ] {
            assert_eq!(tables(query), found, "{query}");
        }
        tables(&"(".repeat(60_000));
        tables(&"from a,".repeat(9_000));
    }

    #[test]
    fn a_query_is_an_expression_or_binds_its_result() {
        let cell = SqlCell::parse("--  into: totals\nselect \"a\" from b, def, __x\n").expect("fits");
        let names = cell.names();
        assert_eq!(names.surely, BTreeSet::from(["totals".to_owned()]));
        assert_eq!(names.uses, BTreeSet::from(["b".to_owned(), "__x".to_owned()]));
        let code = cell.kernel_code(None);
        assert!(code.starts_with("totals = (") && code.ends_with(")\ntotals\n") && code.lines().count() == 2);
        for query in ["select 1", "select \"\\\\\" from x -- ü\r\n'''\"\"\"\0"] {
            let code = SqlCell::parse(query).expect("fits").kernel_code(None);
            let names = CellNames::of(&code);
            assert!(names.defines.is_empty() && !names.broken && code.is_ascii(), "{query}");
            assert_eq!(code.lines().count(), 1);
        }
        // Rows of collections are data, whatever is written in them.
        let hostile = serde_json::json!({"a.base": {"rows": [["\"); import os\n\\\"#", "\u{2028}\r\0 é", "\\"]]}});
        let code = cell.kernel_code(Some(&hostile));
        assert!(code.lines().count() == 2 && CellNames::of(&code).defines == BTreeSet::from(["totals".to_owned()]));
        assert!(!CellNames::of(&code).broken, "{code}");
        assert_eq!(SqlCell::parse("-- into: a b\n"), Err(QueryError::Name("a b".to_owned())));
        assert_eq!(SqlCell::parse("-- into: class\n"), Err(QueryError::Name("class".to_owned())));
        assert_eq!(SqlCell::parse("select 1\n-- into: a b\n").map(|cell| cell.into), Ok(None));
        assert_eq!(SqlCell::parse(&"x".repeat(70_000)), Err(QueryError::TooLong));
    }

    #[test]
    fn collections_are_named_in_quotes() {
        let query = "select * from 'A b/Reading.base' r join \"x.BASE#To # read\" join [y#z.base#] join Reading.base, t
                     where '.base' = \"no.base\"";
        let found = SqlCell::parse(query).expect("fits").collections();
        let found: Vec<_> = found.iter().map(|name| split_collection_name(name)).collect();
        let wanted = [("A b/Reading.base", None), ("x.BASE", Some("To # read")), ("y#z.base", None)];
        assert_eq!(found, wanted.map(Some));
        for other in ["", "base", "#.base#", "x.base.csv#y", "x.csv"] {
            assert!(split_collection_name(other).is_none_or(|(path, _)| path == "#.base"), "{other}");
        }
    }
}
