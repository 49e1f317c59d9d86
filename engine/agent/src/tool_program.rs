//! The Python programs that run the user's own tools.

use crate::python_plugin;
use serde_json::{Map, Value};
use store::UserTool;

/// Defines the decorator for a file, and modules from which the file imports it. `_names` is a list of their names.
const DECORATOR_PRELUDE: &str = "\
import builtins as _builtins, sys as _sys, types as _types
def _llm_tool(*args, **kwargs):
    if len(args) == 1 and not kwargs and callable(args[0]):
        return args[0]
    return lambda function: function
_builtins.llm_tool = _llm_tool
_builtins.on_event = _llm_tool
for _name in _names:
    _parts = _name.split('.')
    for _at in range(len(_parts)):
        _module = _sys.modules.setdefault('.'.join(_parts[:_at + 1]), _types.ModuleType(_parts[_at]))
        _module.__path__ = getattr(_module, '__path__', [])
        _module.llm_tool = _module.on_event = _llm_tool
_plugin = _types.ModuleType('plugin')
_plugin.__file__ = 'plugin.py'
_sys.modules['plugin'] = _plugin
exec(compile(_source, 'plugin.py', 'exec'), _plugin.__dict__)
";

/// Calls a function with each event. An error doesn't keep it from the next one; the first error is raised in the end.
const EVENT_CALLS: &str = "\
import json as _json, traceback as _traceback
ASYNC def _handle_events(events):
    failed = None
    for event in events:
        try:
            result = AWAIT FUNCTION(event)
            if result is not None:
                print(_json.dumps(result, default=str))
        except Exception as error:
            if failed is None:
                failed = error
            else:
                _traceback.print_exc()
    if failed is not None:
        raise failed
AWAIT _handle_events(_json.loads(ARGUMENTS)['events'])
";

/// Returns a text as a Python literal: JSON strings are valid in Python.
fn python_literal(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// Returns why a tool in Python can't be called with these arguments, as a sentence for the model; `None` if it can.
pub fn missing_argument_sentence(tool: &UserTool, arguments: &Map<String, Value>) -> Option<String> {
    if tool.is_event_handler() {
        return None; // its one argument is the event
    }
    let missing = python_plugin::missing_argument(&tool.code, tool.entry_name(), arguments)?;
    Some(format!("{} was called without the argument {missing}, which it needs.", tool.name))
}

/// Returns the Python program that runs a tool with these arguments and prints its result as JSON. A function that
/// handles events is called once for each; one that fails doesn't keep it from the others.
pub fn tool_program(tool: &UserTool, arguments: &Map<String, Value>) -> String {
    let json = python_literal(&Value::Object(arguments.clone()).to_string());
    // Web requests and commands go through the host and its policy.
    let mut host = String::new();
    if tool.network || tool.grants.process {
        host.push_str("import _tracebook_web\n");
    }
    if tool.network {
        host.push_str("_tracebook_web.install()\n");
    }
    if tool.grants.process {
        host.push_str("_tracebook_web.install_shell()\n");
    }
    let entry = tool.entry_name();
    let awaits = if tool.code.contains(&format!("async def {entry}(")) { "await " } else { "" };
    let (before, function) = if tool.entry.is_empty() {
        // A `from __future__` import must come first.
        let before = match tool.code.contains("__future__") {
            true => format!("{}\n\n{host}", tool.code),
            false => format!("{host}{}\n\n", tool.code),
        };
        (before, entry.to_owned())
    } else {
        // The file runs as a module of its own, so that its lines keep their numbers.
        let names = serde_json::to_string(&python_plugin::decorator_modules(&tool.code)).unwrap_or_default();
        let source = python_literal(&tool.code);
        (format!("{host}_names, _source = {names}, {source}\n{DECORATOR_PRELUDE}"), format!("_plugin.{entry}"))
    };
    if tool.is_event_handler() {
        let asyncs = if awaits.is_empty() { "" } else { "async " };
        let words =
            [("ASYNC ", asyncs), ("AWAIT ", awaits), ("FUNCTION", function.as_str()), ("ARGUMENTS", json.as_str())];
        let calls = words.into_iter().fold(EVENT_CALLS.to_owned(), |code, (word, text)| code.replace(word, text));
        return before + &calls;
    }
    format!(
        "{before}import json as _json\nprint(_json.dumps({awaits}{function}(**_json.loads({json})), default=str))\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_missing_argument_is_named() {
        let code = "@llm_tool(\"peek\", \"x\", {\"path\": \"string\", \"lines\": \"integer\"})\n\
            async def look(path, *, lines=3, **more):\n    return path\n";
        let tool = UserTool {
            name: "peek".to_owned(),
            entry: "look".to_owned(),
            code: code.to_owned(),
            ..UserTool::default()
        };
        let said = |arguments: Value| missing_argument_sentence(&tool, arguments.as_object().expect("an object"));
        assert_eq!(said(json!({"path": "a"})), None);
        assert!(said(json!({"lines": 1})).is_some_and(|why| why.contains("the argument path")));
        // A function that is defined in another way is called as it is.
        let other = UserTool { code: "look = print\n".to_owned(), ..tool.clone() };
        assert_eq!(missing_argument_sentence(&other, &Map::new()), None);
    }
}
