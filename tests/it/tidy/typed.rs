//! What the sources say by a type and never by a string.

use super::report;
use super::source::{Source, sources};
use agent::tool_catalog::BuiltInTool;
use engine::commands::{COMMANDS, CommandId};

/// The only file of the product that spells the ids of commands.
const COMMAND_TABLE: &str = "engine/src/commands.rs";

/// The only file of the product that spells the names of built-in tools, and where the rule holds.
const TOOL_TABLE: &str = "engine/agent/src/tool_catalog.rs";
const TOOL_NAMES_WITHIN: &[&str] = &["engine/agent/src/", "engine/src/", "engine/host/src/", "app/"];

/// The lines (from 1) of a file that spell a command's id as a string of its own.
fn spelled_command_ids(source: &Source) -> Vec<(usize, CommandId)> {
    let spelled = |line: &str| COMMANDS.iter().map(|info| info.id).find(|id| line.contains(&format!("\"{id}\"")));
    source.shipped_text().into_iter().filter_map(|(number, line)| Some((number, spelled(line)?))).collect()
}

#[test]
fn commands_are_named_by_command_id() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| !source.path.starts_with("tests/") && source.path != COMMAND_TABLE) {
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
            // `search` and `plan` are words of other tables, too.
            let spelled = BuiltInTool::ALL.iter().filter(|tool| tool.as_str().contains('_'));
            for tool in spelled.filter(|tool| line.contains(&format!("\"{tool}\""))) {
                found.push(format!("{}:{number}: \"{tool}\": write BuiltInTool::{tool:?}", source.path));
            }
        }
    }
    report("A tool of the program's own is named by `BuiltInTool`, never by its name as a string.", &found);
}

#[test]
fn a_spelled_command_id_is_found_and_unit_tests_left_out() {
    let text = "fn a() { run(\"note.run_all\"); }\n// tab.new\n#[cfg(test)]\nmod tests {\n    \
                const A: &str = \"tab.new\";\n}\n";
    let source = |path: &str| Source::new(path.to_owned(), text.to_owned());
    assert_eq!(spelled_command_ids(&source("app/window/src/a.rs")), [(1, CommandId::NoteRunAll)]);
    assert_eq!(spelled_command_ids(&source("app/window/src/a/tests.rs")), []);
}

/// Where errors are never only a text.
const TYPED_ERRORS_WITHIN: &[&str] = &["engine/host/src/", "app/"];
/// Files in which they still are, with the reason.
const TEXT_ERRORS_EXEMPT: &[(&str, &str)] = &[
    ("engine/host/src/loader.rs", "events of the engine carry errors as text; they become that here"),
    ("engine/host/src/search/embedding_models.rs", "the trait of `index` for models has text errors"),
    ("engine/host/src/search/spend_guard.rs", "the trait of `models` for budgets has text errors"),
];

/// The lines (from 1) on which a `Result` has `String` as its error.
fn text_errors(code: &str) -> Vec<usize> {
    let is_text_error = |arguments: &str| {
        let (mut depth, mut error) = (1, None);
        for (at, letter) in arguments.char_indices() {
            match letter {
                '<' | '(' | '[' => depth += 1,
                '>' if arguments[..at].ends_with('-') => {}
                '>' if depth == 1 => {
                    return error
                        .is_some_and(|start: usize| arguments[start..at].trim().trim_end_matches(',') == "String");
                }
                '>' | ')' | ']' => depth -= 1,
                ',' if depth == 1 && error.is_none() => error = Some(at + 1),
                ';' => return false,
                _ => {}
            }
        }
        false
    };
    let results = code.match_indices("Result<").filter(|(at, word)| is_text_error(&code[at + word.len()..]));
    results.map(|(at, _)| code[..at].matches('\n').count() + 1).collect()
}

#[test]
fn an_error_is_never_only_a_text() {
    let code = "fn a() -> Result<(), String> {}\nfn b() -> Result<BTreeMap<String, String>, Error> {}\n\
                fn c() -> io::Result<\n    Vec<u8>,\n> {}\ntype D = Result<fn(u8) -> Vec<(u8, u8)>, String>;\n\
                fn e(x: Result<u8, E>, y: Map<u8, String>) -> Result<\n    u8,\n    String,\n> {}\n";
    assert_eq!(text_errors(code), [1, 6, 7]);
    let mut found = Vec::new();
    for source in
        sources().iter().filter(|source| TYPED_ERRORS_WITHIN.iter().any(|place| source.path.starts_with(place)))
    {
        let lines = text_errors(&source.code);
        let exempt = TEXT_ERRORS_EXEMPT.iter().find(|(path, _)| *path == source.path);
        match exempt {
            Some((path, reason)) if lines.is_empty() => {
                found.push(format!("{path}: exempted ({reason}) and has none: take its row out of TEXT_ERRORS_EXEMPT"));
            }
            Some(_) => {}
            None => found.extend(lines.iter().map(|line| format!("{}:{line}", source.path))),
        }
    }
    report("An error is of a type: an enum of `thiserror`, or `anyhow::Error` in host and app.", &found);
}
