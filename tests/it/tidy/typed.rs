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
