//! Tools in Python files: functions with the decorator `@llm_tool(name, description, schema)`, and functions with
//! `@on_event(filter, …)` that events call. The file is only parsed; nothing of it runs before the user has approved
//! it.

use crate::event_filter::{EventFilter, EventFilterError};
use crate::tool_file;
use ruff_python_ast::{Decorator, Expr, ExprCall, Mod, Number, Parameters, Stmt, StmtFunctionDef, UnaryOp};
use ruff_python_parser::{Mode, ParseOptions, parse};
use ruff_text_size::{Ranged, TextSize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::{ToolGrants, UserTool};

/// Name of the decorator of tools.
const DECORATOR: &str = "llm_tool";
/// Name of the decorator of functions that events call.
const EVENT_DECORATOR: &str = "on_event";
/// Stack size for parsing deeply nested Python, in bytes.
const PYTHON_PARSER_STACK_BYTES: usize = 128 << 20;
/// Maximum number of values in the arguments of one decorator.
const MAX_LITERAL_VALUES: usize = 10_000;
/// Maximum depth of values in the arguments of a decorator.
const MAX_LITERAL_DEPTH: usize = 64;

/// Why a file, or a function of it, is no tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginProblem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, for the user.
    pub what: String,
}

/// Why a decorated function is no tool.
#[derive(Debug, thiserror::Error)]
enum PluginToolError {
    #[error("its arguments are too long")]
    TooLong,
    #[error("its arguments are too deeply nested")]
    TooDeep,
    #[error("a key of its arguments isn't a text")]
    KeyNotText,
    #[error("its arguments must be written out, because the file isn't run to read them")]
    NotWrittenOut,
    #[error("@{DECORATOR} takes name, description, schema and permissions")]
    TooManyArguments,
    #[error("its decorator has no argument {0}")]
    UnknownArgument(String),
    #[error("its decorator can't be read with **")]
    Unpacked,
    #[error("it has {0} twice")]
    Twice(&'static str),
    #[error("@{EVENT_DECORATOR} names no event, as in @{EVENT_DECORATOR}(\"FILE_CHANGED: Inbox/*\")")]
    NoEvent,
    #[error("it doesn't take one argument, the event")]
    NotOneEvent,
    #[error(transparent)]
    InvalidEvent(#[from] EventFilterError),
    #[error("its {field} isn't a {wanted}")]
    WrongType { field: &'static str, wanted: &'static str },
    #[error("it has no description")]
    NoDescription,
    #[error("it has the permission {0:?}; there are network, fs, ui and process")]
    UnknownPermission(String),
    #[error("{0} of its schema is neither a schema nor the name of a type")]
    InvalidProperty(String),
    #[error("{0} can't be given by name")]
    PositionalOnly(String),
    #[error("its schema has {0}, which the function doesn't take")]
    UnknownParameter(String),
    #[error("the function needs {0}, which its schema doesn't have")]
    MissingParameter(String),
    #[error("the file has two tools {0}")]
    SameName(String),
    #[error(transparent)]
    Invalid(#[from] tool_file::ToolFileError),
}

/// Reads the tools of a Python file: those that are valid, and what is wrong with the others.
pub fn read_python_plugin(code: &str) -> (Vec<UserTool>, Vec<PluginProblem>) {
    let problem = |what: &str| (Vec::new(), vec![PluginProblem { line: 1, what: what.to_owned() }]);
    if code.len() > tool_file::MAX_TOOL_CODE_BYTES {
        return problem(&format!("the file is longer than {} kB", tool_file::MAX_TOOL_CODE_BYTES >> 10));
    }
    if !text::python_scope::is_shallow(code) {
        return problem("the code is too deeply nested, or isn't Python");
    }
    let caught = || std::panic::catch_unwind(|| read_shallow_plugin(code)).ok();
    stacker::grow(PYTHON_PARSER_STACK_BYTES, caught).unwrap_or_else(|| problem("the code can't be parsed"))
}

/// Returns the modules from which a file imports the decorators. They needn't exist where the tool runs.
pub(crate) fn decorator_modules(code: &str) -> BTreeSet<String> {
    if !text::python_scope::is_shallow(code) {
        return BTreeSet::new();
    }
    let find = || {
        let Ok(parsed) = parse(code, ParseOptions::from(Mode::Module)) else { return BTreeSet::new() };
        let Mod::Module(module) = parsed.syntax() else { return BTreeSet::new() };
        let imports = module.body.iter().filter_map(|stmt| match stmt {
            Stmt::ImportFrom(import)
                if import.names.iter().any(|alias| [DECORATOR, EVENT_DECORATOR].contains(&alias.name.as_str())) =>
            {
                import.module.as_ref().map(|module| module.to_string())
            }
            _ => None, // tidy: open because only this statement is looked for in the parser's many
        });
        imports.collect()
    };
    stacker::grow(PYTHON_PARSER_STACK_BYTES, || std::panic::catch_unwind(find).unwrap_or_default())
}

/// Returns the first parameter of a function of a file that has no default and no argument here; `None` if it can be
/// called, or can't be found.
pub(crate) fn missing_argument(code: &str, function: &str, arguments: &Map<String, Value>) -> Option<String> {
    if !text::python_scope::is_shallow(code) {
        return None;
    }
    let find = || {
        let parsed = parse(code, ParseOptions::from(Mode::Module)).ok()?;
        let Mod::Module(module) = parsed.syntax() else { return None };
        // Of several, Python calls the last.
        let called = module.body.iter().rev().find_map(|stmt| match stmt {
            Stmt::FunctionDef(one) if one.name.as_str() == function => Some(one),
            _ => None, // tidy: open because only this statement is looked for in the parser's many
        })?;
        if !called.decorator_list.iter().all(|one| is_decorator(one, DECORATOR)) {
            return None; // another decorator may give arguments
        }
        let mut needed = called.parameters.iter_non_variadic_params().filter(|one| one.default.is_none());
        let missing = needed.find(|one| !arguments.contains_key(one.parameter.name.as_str()))?;
        Some(missing.parameter.name.to_string())
    };
    stacker::grow(PYTHON_PARSER_STACK_BYTES, || std::panic::catch_unwind(find).ok().flatten())
}

fn read_shallow_plugin(code: &str) -> (Vec<UserTool>, Vec<PluginProblem>) {
    let line_at = |at: TextSize| {
        let before = code.as_bytes().get(..at.to_usize()).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let parsed = match parse(code, ParseOptions::from(Mode::Module)) {
        Ok(parsed) => parsed,
        Err(why) => {
            let line = line_at(why.location.start());
            return (Vec::new(), vec![PluginProblem { line, what: format!("it isn't valid Python: {}", why.error) }]);
        }
    };
    let Mod::Module(module) = parsed.syntax() else { return (Vec::new(), Vec::new()) };
    let constants = module_constants(&module.body);
    let (mut tools, mut problems): (Vec<UserTool>, Vec<PluginProblem>) = (Vec::new(), Vec::new());
    for stmt in &module.body {
        let Stmt::FunctionDef(function) = stmt else { continue };
        let decorated = |name| function.decorator_list.iter().find(|decorator| is_decorator(decorator, name));
        let as_tool = decorated(DECORATOR).map(|first| (first, read_tool(code, function, first, &constants)));
        let as_handler = decorated(EVENT_DECORATOR).map(|first| (first, read_handler(code, function, &constants)));
        for (decorator, read) in as_tool.into_iter().chain(as_handler) {
            let line = line_at(decorator.range().start());
            let read = read.and_then(|tool| {
                tool_file::check_tool(&tool)?;
                match tools.iter().any(|known| known.name == tool.name) {
                    true => Err(PluginToolError::SameName(tool.name)),
                    false => Ok(tool),
                }
            });
            match read {
                Ok(tool) => tools.push(tool),
                Err(what) => problems.push(PluginProblem { line, what: format!("{}: {what}", function.name) }),
            }
        }
    }
    if tools.is_empty() && problems.is_empty() {
        let what = format!(
            "it has no function with @{DECORATOR}(name, description, schema) or @{EVENT_DECORATOR}(filter), so it is \
             ignored"
        );
        problems.push(PluginProblem { line: 1, what });
    }
    (tools, problems)
}

/// Returns the values that are assigned once at the top of a file, by name.
fn module_constants(body: &[Stmt]) -> BTreeMap<&str, &Expr> {
    let mut found = BTreeMap::new();
    let mut assigned = BTreeSet::new();
    for stmt in body {
        let (target, value) = match stmt {
            Stmt::Assign(assign) if assign.targets.len() == 1 => (assign.targets.first(), Some(&assign.value)),
            Stmt::AnnAssign(assign) => (Some(assign.target.as_ref()), assign.value.as_ref()),
            _ => continue, // tidy: open because only assignments are looked for in the parser's many
        };
        let (Some(Expr::Name(name)), Some(value)) = (target, value) else { continue };
        if assigned.insert(name.id.as_str()) {
            found.insert(name.id.as_str(), value.as_ref());
        } else {
            found.remove(name.id.as_str());
        }
    }
    found
}

/// Returns the name that an expression such as `llm_tool` or `os.llm_tool` ends with.
fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None, // tidy: open because the parser has many other expressions, and none is a name
    }
}

/// Returns the call of a decorator, if it's one.
fn decorator_call(decorator: &Decorator) -> Option<&ExprCall> {
    if let Expr::Call(call) = &decorator.expression { Some(call) } else { None }
}

fn is_decorator(decorator: &Decorator, name: &str) -> bool {
    let named = decorator_call(decorator).map_or(&decorator.expression, |call| call.func.as_ref());
    last_name(named) == Some(name)
}

/// Reads values that are written out in code.
struct LiteralReader<'a> {
    constants: &'a BTreeMap<&'a str, &'a Expr>,
    /// Number of values that may still be read.
    left: usize,
}

impl LiteralReader<'_> {
    fn read(&mut self, expr: &Expr, depth: usize) -> Result<Value, PluginToolError> {
        self.left = self.left.checked_sub(1).ok_or(PluginToolError::TooLong)?;
        if depth > MAX_LITERAL_DEPTH {
            return Err(PluginToolError::TooDeep);
        }
        let number = |number: &Number, sign: i64| match number {
            Number::Int(int) => int.as_i64().map(|int| Value::from(int.saturating_mul(sign))),
            Number::Float(float) => Some(json!(float * if sign < 0 { -1.0 } else { 1.0 })),
            Number::Complex { .. } => None,
        };
        let found = match expr {
            Expr::StringLiteral(text) => Some(Value::from(text.value.to_str())),
            Expr::BooleanLiteral(word) => Some(Value::from(word.value)),
            Expr::NoneLiteral(_) => Some(Value::Null),
            Expr::NumberLiteral(literal) => number(&literal.value, 1),
            Expr::UnaryOp(minus) if minus.op == UnaryOp::USub => match minus.operand.as_ref() {
                Expr::NumberLiteral(literal) => number(&literal.value, -1),
                _ => None, // tidy: open because only numbers have a sign here
            },
            Expr::List(list) => Some(self.read_all(&list.elts, depth)?),
            Expr::Tuple(tuple) => Some(self.read_all(&tuple.elts, depth)?),
            Expr::Dict(dict) => {
                let mut map = Map::new();
                for item in &dict.items {
                    let Some(Expr::StringLiteral(key)) = &item.key else {
                        return Err(PluginToolError::KeyNotText);
                    };
                    map.insert(key.value.to_str().to_owned(), self.read(&item.value, depth + 1)?);
                }
                Some(Value::Object(map))
            }
            Expr::Name(name) => match self.constants.get(name.id.as_str()).copied() {
                Some(value) => Some(self.read(value, depth + 1)?),
                // A schema may name types as annotations do.
                None => json_type(name.id.as_str()).map(Value::from),
            },
            _ => None, // tidy: open because all other expressions would have to be run
        };
        found.ok_or(PluginToolError::NotWrittenOut)
    }

    fn read_all(&mut self, list: &[Expr], depth: usize) -> Result<Value, PluginToolError> {
        list.iter().map(|one| self.read(one, depth + 1)).collect()
    }
}

/// Returns whether this is `{...}`, which stands for a schema that is left out.
fn is_left_out(expr: &Expr) -> bool {
    matches!(expr, Expr::EllipsisLiteral(_))
        || matches!(expr, Expr::Set(set) if matches!(set.elts.as_slice(), [Expr::EllipsisLiteral(_)]))
}

fn read_tool(
    code: &str,
    function: &StmtFunctionDef,
    decorator: &Decorator,
    constants: &BTreeMap<&str, &Expr>,
) -> Result<UserTool, PluginToolError> {
    let mut given: BTreeMap<&str, Value> = BTreeMap::new();
    let mut reader = LiteralReader { constants, left: MAX_LITERAL_VALUES };
    if let Some(call) = decorator_call(decorator) {
        let names = ["name", "description", "schema", "permissions"];
        if call.arguments.args.len() > names.len() {
            return Err(PluginToolError::TooManyArguments);
        }
        let positional = names.into_iter().zip(&call.arguments.args);
        let named = call.arguments.keywords.iter().map(|keyword| match keyword.arg.as_ref().map(|arg| arg.as_str()) {
            Some("parameters") => Ok(("schema", &keyword.value)),
            Some(word) => match names.into_iter().find(|known| *known == word) {
                Some(known) => Ok((known, &keyword.value)),
                None => Err(PluginToolError::UnknownArgument(word.to_owned())),
            },
            None => Err(PluginToolError::Unpacked),
        });
        for argument in positional.map(Ok).chain(named) {
            let (name, value) = argument?;
            if !is_left_out(value) && given.insert(name, reader.read(value, 0)?).is_some() {
                return Err(PluginToolError::Twice(name));
            }
        }
    }
    let text = |given: Option<&Value>, field| match given {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(PluginToolError::WrongType { field, wanted: "text" }),
    };
    let name = text(given.get("name"), "name")?.unwrap_or_else(|| function.name.to_string());
    let description = text(given.get("description"), "description")?.or_else(|| docstring(&function.body));
    let description = description.filter(|text| !text.trim().is_empty()).ok_or(PluginToolError::NoDescription)?;
    let parameters = match given.remove("schema") {
        None | Some(Value::Null) => signature_schema(&function.parameters),
        Some(Value::Object(schema)) => complete_schema(schema)?,
        Some(_) => return Err(PluginToolError::WrongType { field: "schema", wanted: "dictionary" }),
    };
    check_signature(&function.parameters, &parameters)?;
    let (network, grants) = read_permissions(given.get("permissions"))?;
    Ok(UserTool {
        name,
        description,
        parameters,
        code: code.to_owned(),
        entry: function.name.to_string(),
        network,
        grants,
        ..UserTool::default()
    })
}

/// Returns what a decorator permits: whether the network, and what else.
fn read_permissions(given: Option<&Value>) -> Result<(bool, ToolGrants), PluginToolError> {
    match given {
        None | Some(Value::Null) => Ok((false, ToolGrants::default())),
        Some(Value::Array(words)) => {
            let words: Vec<String> = words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect();
            tool_file::parse_permissions(&words).map_err(|word| PluginToolError::UnknownPermission(word.clone()))
        }
        Some(_) => Err(PluginToolError::WrongType { field: "permissions", wanted: "list" }),
    }
}

/// Reads a function that events call. All of its decorators for events count.
fn read_handler(
    code: &str,
    function: &StmtFunctionDef,
    constants: &BTreeMap<&str, &Expr>,
) -> Result<UserTool, PluginToolError> {
    let mut reader = LiteralReader { constants, left: MAX_LITERAL_VALUES };
    let (mut filters, mut permissions): (Vec<String>, Option<Value>) = (Vec::new(), None);
    let decorators = function.decorator_list.iter().filter(|decorator| is_decorator(decorator, EVENT_DECORATOR));
    for call in decorators.filter_map(decorator_call) {
        for argument in &call.arguments.args {
            let Value::String(filter) = reader.read(argument, 0)? else {
                return Err(PluginToolError::WrongType { field: "event", wanted: "text" });
            };
            filters.push(filter);
        }
        for keyword in &call.arguments.keywords {
            let Some(word) = &keyword.arg else { return Err(PluginToolError::Unpacked) };
            if word.as_str() != "permissions" {
                return Err(PluginToolError::UnknownArgument(word.to_string()));
            }
            if permissions.replace(reader.read(&keyword.value, 0)?).is_some() {
                return Err(PluginToolError::Twice("permissions"));
            }
        }
    }
    if filters.is_empty() {
        return Err(PluginToolError::NoEvent);
    }
    let event = filters.join("; ");
    EventFilter::parse_starting(&event)?;
    let parameters = &function.parameters;
    let positional = || parameters.posonlyargs.iter().chain(parameters.args.iter());
    let takes_event = positional().next().is_some() || parameters.vararg.is_some();
    let needs_more = positional().skip(1).chain(parameters.kwonlyargs.iter()).any(|one| one.default.is_none());
    if !takes_event || needs_more {
        return Err(PluginToolError::NotOneEvent);
    }
    let (network, grants) = read_permissions(permissions.as_ref())?;
    let about = docstring(&function.body).map(|about| format!(" {about}")).unwrap_or_default();
    Ok(UserTool {
        name: function.name.to_string(),
        description: format!("Handles {event}.{about}"),
        parameters: json!({"type": "object", "properties": {"events": {"type": "array"}}, "required": ["events"]}),
        code: code.to_owned(),
        entry: function.name.to_string(),
        event,
        network,
        grants,
        ..UserTool::default()
    })
}

/// Returns the name in JSON schemas of a type of Python.
fn json_type(name: &str) -> Option<&'static str> {
    match name {
        "str" => Some("string"),
        "int" => Some("integer"),
        "float" => Some("number"),
        "bool" => Some("boolean"),
        "list" => Some("array"),
        "dict" => Some("object"),
        _ => None,
    }
}

/// Returns the docstring of a function.
fn docstring(body: &[Stmt]) -> Option<String> {
    let Stmt::Expr(first) = body.first()? else { return None };
    let Expr::StringLiteral(text) = first.value.as_ref() else { return None };
    Some(text.value.to_str().trim().to_owned())
}

/// Returns a JSON schema for what a decorator gives: a schema, or only its properties, as schemas or names of types.
fn complete_schema(schema: Map<String, Value>) -> Result<Value, PluginToolError> {
    if schema.contains_key("properties") || schema.get("type").is_some_and(|kind| kind == "object") {
        return Ok(Value::Object(schema));
    }
    let mut properties = Map::new();
    for (name, value) in schema {
        let property = match value {
            Value::Object(_) => value,
            Value::String(kind) => json!({"type": json_type(&kind).unwrap_or(&kind)}),
            // tidy: open because only these two kinds of JSON are read
            _ => return Err(PluginToolError::InvalidProperty(name)),
        };
        properties.insert(name, property);
    }
    Ok(json!({"type": "object", "properties": properties}))
}

/// Returns the schema that follows from a function's parameters and their annotations.
fn signature_schema(parameters: &Parameters) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for one in parameters.iter_non_variadic_params() {
        let kind = one.parameter.annotation.as_deref().and_then(last_name).and_then(json_type);
        let schema = kind.map_or_else(|| json!({}), |kind| json!({"type": kind}));
        let name = one.parameter.name.to_string();
        if one.default.is_none() {
            required.push(Value::from(name.as_str()));
        }
        properties.insert(name, schema);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// Checks that the function can be called with what the schema allows.
fn check_signature(parameters: &Parameters, schema: &Value) -> Result<(), PluginToolError> {
    if let Some(first) = parameters.posonlyargs.first() {
        return Err(PluginToolError::PositionalOnly(first.parameter.name.to_string()));
    }
    let named: BTreeMap<&str, bool> =
        parameters.iter_non_variadic_params().map(|one| (one.parameter.name.as_str(), one.default.is_none())).collect();
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    if let Some(name) = properties.keys().find(|name| !named.contains_key(name.as_str()))
        && parameters.kwarg.is_none()
    {
        return Err(PluginToolError::UnknownParameter(name.clone()));
    }
    match named.iter().find(|(name, needed)| **needed && !properties.contains_key(**name)) {
        Some((name, _)) => Err(PluginToolError::MissingParameter((*name).to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(code: &str) -> UserTool {
        let (tools, problems) = read_python_plugin(code);
        assert_eq!((tools.len(), problems.as_slice()), (1, &[][..]), "{code}");
        tools.into_iter().next().expect("one")
    }

    fn problem(code: &str) -> String {
        let (tools, problems) = read_python_plugin(code);
        assert!(tools.is_empty(), "{code}");
        problems.iter().map(|problem| format!("{}: {}\n", problem.line, problem.what)).collect()
    }

    #[test]
    fn a_decorated_function_is_a_tool() {
        let code = "from llm_os.plugins import llm_tool\n\n\
            @llm_tool(\"simulate_quantum\", \"Run quantum simulation\", {...})\n\
            async def simulate(circuit: str, shots: int = 5):\n    return circuit\n";
        let tool = one(code);
        assert_eq!((tool.name.as_str(), tool.entry.as_str()), ("simulate_quantum", "simulate"));
        assert_eq!((tool.description.as_str(), tool.code.as_str()), ("Run quantum simulation", code));
        let schema = json!({"type": "object", "required": ["circuit"],
            "properties": {"circuit": {"type": "string"}, "shots": {"type": "integer"}}});
        assert_eq!(tool.parameters, schema);
        assert_eq!((tool.network, tool.grants), (false, ToolGrants::default()));
        assert_eq!(decorator_modules(code), BTreeSet::from(["llm_os.plugins".to_owned()]));
    }

    #[test]
    fn a_function_that_events_call_names_them() {
        let code = "from llm_os.plugins import on_event\nINBOX = 'FILE_CHANGED: Inbox/*'\n\n\
            @on_event(INBOX, permissions=['fs'])\n@on_event('run-ended: failed')\n\
            def file_it(event, most=3):\n    'Files it.'\n";
        let tool = one(code);
        assert_eq!((tool.name.as_str(), tool.entry.as_str()), ("file_it", "file_it"));
        assert_eq!(tool.event, "FILE_CHANGED: Inbox/*; run-ended: failed");
        assert_eq!(tool.description, "Handles FILE_CHANGED: Inbox/*; run-ended: failed. Files it.");
        assert_eq!((tool.network, tool.grants), (false, ToolGrants { fs: true, ui: false, process: false }));
        assert_eq!(decorator_modules(code), BTreeSet::from(["llm_os.plugins".to_owned()]));
        for (code, why) in [
            ("@on_event\ndef f(event): pass\n", "names no event"),
            ("@on_event('FILE_CHANGD')\ndef f(event): pass\n", "did you mean FILE_CHANGED?"),
            ("@on_event('SCHEDULED')\ndef f(event): pass\n", "SCHEDULED starts nothing"),
            ("@on_event('ASKED')\ndef on_asked(): pass\n", "doesn't take one argument"),
            ("@on_event('ASKED')\ndef on_asked(event, more): pass\n", "doesn't take one argument"),
            ("@on_event('ASKED', permission=[])\ndef on_asked(event): pass\n", "no argument permission"),
            ("@llm_tool('on_asked', 'x')\n@on_event('ASKED')\ndef on_asked(event=1): pass\n", "two tools on_asked"),
        ] {
            let (_, problems) = read_python_plugin(code);
            assert!(problems.iter().any(|problem| problem.what.contains(why)), "{code}: {problems:?}");
        }
    }

    #[test]
    fn arguments_are_read_without_running_them() {
        let code = "LIMITS = {'x': {'type': 'number', 'minimum': -1.5}}\n\
            @tools.llm_tool(name='half', schema=LIMITS, permissions=['network', 'process'])\n\
            def half(x):\n    'Halves a number.'\n    return x / 2\n";
        let tool = one(code);
        assert_eq!(tool.description, "Halves a number.");
        assert_eq!(tool.parameters["properties"]["x"]["minimum"], json!(-1.5));
        assert_eq!((tool.network, tool.grants), (true, ToolGrants { fs: false, ui: false, process: true }));
        let whole = one("@llm_tool('two', 'x', {'type': 'object', 'properties': {'a': {'type': 'string'}}})\n\
            def two(a):\n    return a\n");
        assert_eq!(whole.parameters["properties"]["a"]["type"], "string");
        assert_eq!(one("@llm_tool\ndef three(a: float):\n    \"Three.\"\n").name, "three");
        let typed = one("WAYS: list = ['up', 'down']\nABOUT: str = 'Turns.'\n\
            @llm_tool('turn', ABOUT, {'by': int, 'name': 'str', 'way': {'enum': WAYS}})\n\
            def turn(by, name, way): pass\n");
        assert_eq!(typed.description, "Turns.");
        let properties =
            json!({"by": {"type": "integer"}, "name": {"type": "string"}, "way": {"enum": ["up", "down"]}});
        assert_eq!(typed.parameters["properties"], properties);
        assert_eq!(one("@llm_tool('four', 'x', {'a': 'string'})\ndef f(**rest): pass\n").entry, "f");
    }

    #[test]
    fn what_is_no_tool_is_said_with_its_line() {
        for (code, line, why) in [
            ("import os\n\ndef f(): pass\n", 1, "no function with @llm_tool"),
            ("x = 1\ndef f(:\n", 2, "isn't valid Python"),
            ("\n\n@llm_tool('A b', 'x')\ndef f(): pass\n", 3, "2 to 48 of a-z"),
            ("@llm_tool('shell', 'x')\ndef f(): pass\n", 1, "built-in"),
            ("@llm_tool('one')\ndef f(): pass\n", 1, "no description"),
            ("@llm_tool('one', 'x', load())\ndef f(): pass\n", 1, "must be written out"),
            ("@llm_tool('one', 'x', A)\ndef f(): pass\n", 1, "must be written out"),
            ("A = {'a': A}\n@llm_tool('one', 'x', A)\ndef f(): pass\n", 2, "too deeply nested"),
            ("@llm_tool('one', 'x', {'a': 'string'})\ndef f(b): pass\n", 1, "has a, which"),
            ("@llm_tool('one', 'x', {'type': 'object'})\ndef f(b): pass\n", 1, "needs b"),
            ("@llm_tool('one', 'x', {'type': 'objekt', 'properties': {}})\ndef f(): pass\n", 1, "does not hold"),
            ("@llm_tool('one', 'x', permissions=['root'])\ndef f(): pass\n", 1, "\"root\""),
            ("@llm_tool('one', 'x', nmae='y')\ndef f(): pass\n", 1, "no argument nmae"),
            ("@llm_tool('one', 'x')\ndef f(a, /): pass\n", 1, "by name"),
        ] {
            let said = problem(code);
            assert!(said.starts_with(&format!("{line}: ")) && said.contains(why), "{code}: {said}");
        }
        // A broken function doesn't take the others with it.
        let (tools, problems) =
            read_python_plugin("@llm_tool('one', 'x')\ndef f(): pass\n\n@llm_tool('one', 'y')\ndef g(): pass\n");
        assert_eq!((tools.len(), problems.len(), problems[0].line), (1, 1, 4));
        // An exponential number of values, and deep nesting, end in time.
        let mut doubled = "A0 = 'x'\n".to_owned();
        for number in 1..25 {
            doubled.push_str(&format!("A{number} = [A{0}, A{0}]\n", number - 1));
        }
        let long = problem(&format!("{doubled}@llm_tool('one', 'x', A24)\ndef f(): pass\n"));
        assert!(long.contains("too long"), "{long}");
        assert!(!problem(&"(".repeat(100_000)).is_empty());
    }
}
