//! Tools in JavaScript: how their code is told from Python, and what a call hands to the process that runs it.

use serde_json::{Map, Value};
use store::{ToolLanguage, UserTool};

/// A call of a tool in JavaScript.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptToolCall {
    /// The tool's name.
    pub name: String,
    /// The function, as an expression.
    pub func: String,
    /// The arguments, which it gets as one object.
    pub arguments: Map<String, Value>,
}

impl ScriptToolCall {
    /// Returns the call of a tool with these arguments.
    pub fn new(tool: &UserTool, arguments: &Map<String, Value>) -> ScriptToolCall {
        ScriptToolCall { name: tool.name.clone(), func: tool.code.clone(), arguments: arguments.clone() }
    }
}

/// Returns the language of code: JavaScript if it begins, after comments, with a function such as `({ city }) =>`,
/// `city =>` or `function (`; otherwise Python.
pub fn detect_language(code: &str) -> ToolLanguage {
    let start = skip_comments(code);
    let after_async = start.strip_prefix("async").filter(|rest| rest.starts_with([' ', '\t', '\n', '(']));
    let start = after_async.unwrap_or(start).trim_start();
    let is_function = start
        .strip_prefix("function")
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_whitespace() || matches!(letter, '(' | '*')));
    let after_parameters = match start.starts_with('(') {
        true => skip_parentheses(start),
        false => Some(start.trim_start_matches(|letter: char| letter.is_alphanumeric() || "_$".contains(letter))),
    };
    let is_arrow = after_parameters.is_some_and(|rest| rest.len() < start.len() && rest.trim_start().starts_with("=>"));
    if is_function || is_arrow { ToolLanguage::JavaScript } else { ToolLanguage::Python }
}

/// Returns the code after comments of JavaScript and white space.
fn skip_comments(code: &str) -> &str {
    let mut rest = code.trim_start();
    loop {
        let next = match (rest.strip_prefix("//"), rest.strip_prefix("/*")) {
            (Some(comment), _) => comment.split_once('\n').map(|(_, after)| after),
            (None, Some(comment)) => comment.split_once("*/").map(|(_, after)| after),
            (None, None) => return rest,
        };
        rest = next.unwrap_or_default().trim_start();
    }
}

/// Returns what follows the closing parenthesis of the one that the text begins with.
fn skip_parentheses(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return text.get(at + 1..),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_javascript_are_told_from_python() {
        for script in [
            "async ({ city }) => { const res = await fetch(url); return res.json(); }",
            "({ a, b = f(1) }) => a + b",
            "args => args.x",
            "async args=>args",
            "function (args) { return args; }",
            "async function run(args) { return args; }",
            "// Doubles.\n/* more\n*/ ({ x }) => 2 * x",
            "(\n  { x },\n) =>\n  2 * x",
        ] {
            assert_eq!(detect_language(script), ToolLanguage::JavaScript, "{script}");
        }
        for python in [
            "def run(x): return 2 * x",
            "async def run(city):\n    return city\n",
            "import json\ndef run(): return '=>'",
            "(lambda: 1)()\ndef run(): pass",
            "functions = 1\ndef run(): pass",
            "# a => b\ndef run(): pass",
            "=> x",
            "(((",
            "/*",
            "",
        ] {
            assert_eq!(detect_language(python), ToolLanguage::Python, "{python}");
        }
    }
}
