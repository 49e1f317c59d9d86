//! Names that the sources express as types and never as strings.

use super::report;
use super::source::{Source, sources};
use agent::tool_catalog::BuiltInTool;
use engine::commands::{COMMANDS, CommandId};

/// The only file of the product that contains command ids as strings.
const COMMAND_TABLE: &str = "engine/commands/src/lib.rs";
/// The actions of generated views' buttons. The crate is below the table; a test there compares them.
const BUTTON_TABLE: &str = "engine/agent/src/generated_view.rs";

/// The only file of the product that spells names of built-in tools as strings, and the folders where this applies.
const TOOL_TABLE: &str = "engine/agent/src/tool_catalog.rs";
const TOOL_NAMES_WITHIN: &[&str] = &["engine/agent/src/", "engine/src/", "engine/host/src/", "app/"];

/// The lines (from 1) with types `Result<…, String>` in code without comments and strings.
fn text_error_lines(code: &str) -> Vec<usize> {
    let is_text_error = |inside: &str| {
        let (mut depth, mut before, mut parameters) = (0_usize, ' ', vec![String::new()]);
        for letter in inside.chars() {
            match letter {
                '<' | '(' | '[' => depth += 1,
                '>' if before == '-' => {}
                '>' | ')' | ']' if depth == 0 => break,
                '>' | ')' | ']' => depth -= 1,
                ',' if depth == 0 => parameters.push(String::new()),
                _ => {}
            }
            if let Some(last) = parameters.last_mut().filter(|_| letter != ',' || depth > 0) {
                last.push(letter);
            }
            before = letter;
        }
        parameters.retain(|parameter| !parameter.trim().is_empty());
        parameters.len() == 2 && parameters[1].trim() == "String"
    };
    let starts = code.match_indices("Result<").filter(|(at, start)| is_text_error(&code[at + start.len()..]));
    starts.map(|(at, _)| code[..at].matches('\n').count() + 1).collect()
}

/// The lines (from 1) of a file that contain a command's id as a string.
fn spelled_command_ids(source: &Source) -> Vec<(usize, CommandId)> {
    let spelled = |line: &str| COMMANDS.iter().map(|info| info.id).find(|id| line.contains(&format!("\"{id}\"")));
    source.shipped_text().into_iter().filter_map(|(number, line)| Some((number, spelled(line)?))).collect()
}

#[test]
fn commands_are_named_by_command_id() {
    let mut found = Vec::new();
    let is_shipped = |path: &str| !path.starts_with("tests/") && ![COMMAND_TABLE, BUTTON_TABLE].contains(&path);
    for source in sources().iter().filter(|source| is_shipped(&source.path)) {
        let spelled = spelled_command_ids(source).into_iter();
        found.extend(spelled.map(|(line, id)| format!("{}:{line}: \"{id}\": write CommandId::{id:?}", source.path)));
    }
    report("A command is named by its `CommandId`, never by the text of its id.", &found);
}

#[test]
fn built_in_tools_are_named_by_their_type() {
    let mut found = Vec::new();
    let within = |path: &str| TOOL_NAMES_WITHIN.iter().any(|place| path.starts_with(place)) && path != TOOL_TABLE;
    for source in sources().iter().filter(|source| within(&source.path)) {
        for (number, line) in source.shipped_text() {
            // `search` and `plan` also occur in other tables.
            let spelled = BuiltInTool::ALL.iter().filter(|tool| tool.as_str().contains('_'));
            for tool in spelled.filter(|tool| line.contains(&format!("\"{tool}\""))) {
                found.push(format!("{}:{number}: \"{tool}\": write BuiltInTool::{tool:?}", source.path));
            }
        }
    }
    report("A tool of the program's own is named by `BuiltInTool`, never by its name as a string.", &found);
}

#[test]
fn functions_fail_with_a_typed_error() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| !source.path.starts_with("tests/")) {
        found.extend(text_error_lines(&source.shipped).iter().map(|line| format!("{}:{line}", source.path)));
    }
    report(
        "A function fails with an error type (in host and app with `anyhow::Error`), never with a `String`.",
        &found,
    );
}

#[test]
fn a_text_as_an_error_is_found() {
    let found = text_error_lines(
        "fn a() -> Result<(), String> {}\nfn b(f: impl Fn() -> Result<Vec<(u8, u8)>, String>) {}\n\
         type C = Option<Result<\n    Map<String, Value>,\n    String,\n>>;\n",
    );
    assert_eq!(found, [1, 2, 3]);
    for typed in ["Result<String>", "Result<String, Error>", "Result<Vec<String>, E>", "Result<(u8, String), E>"] {
        assert!(text_error_lines(typed).is_empty(), "{typed}");
    }
}

#[test]
fn a_spelled_command_id_is_found_and_unit_tests_left_out() {
    let text = "fn a() { run(\"note.run_all\"); }\n// tab.new\n#[cfg(test)]\nmod tests {\n    \
                const A: &str = \"tab.new\";\n}\n";
    let source = |path: &str| Source::new(path.to_owned(), text.to_owned());
    assert_eq!(spelled_command_ids(&source("app/window/src/a.rs")), [(1, CommandId::NoteRunAll)]);
    assert_eq!(spelled_command_ids(&source("app/window/src/a/tests.rs")), []);
}
