//! What the fuzz targets do with their bytes. The tests in `tests/it` do the same with the corpora.

use text::outline::Outline;
use text::{markdown, properties, yaml_edit};

/// A target: takes any bytes and must neither panic nor take long.
type Target = fn(&[u8]);

/// All targets by the names of their corpora.
pub(crate) const ALL: [(&str, Target); 6] = [
    ("front_matter", front_matter),
    ("markdown_rows", markdown_rows),
    ("base_file", base_file),
    ("notebook", notebook),
    ("wire_message", wire_message),
    ("policy_rule", policy_rule),
];

/// Front matter, agents, traces, experiences, plans: everything that is YAML in a note.
pub(crate) fn front_matter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let front = format!("---\n{text}\n---\nBody\n");
    for text in [text, front.as_str()] {
        let outline = Outline::of(text);
        let stored = serde_json::to_vec(&outline).expect("written");
        assert_eq!(serde_json::from_slice::<Outline>(&stored).expect("read"), outline);
        if let Some(Ok(found)) = properties::read(text) {
            for property in found {
                assert!(text.get(property.lines.clone()).is_some());
                assert!(property.values.iter().all(|(_, range)| text.get(range.clone()).is_some()));
            }
        }
        if let Ok(new) = properties::set_property(text, "added", Some(&"value".into())) {
            assert_eq!(Outline::of(&new).properties.get("added"), Some(&"value".into()));
        }
        let _ = agent::agent_definition::AgentDefinition::parse(text);
        let _ = agent::task_block::parse_tasks(text);
        let _ = agent::memory::trace::RunTrace::parse(text);
        let _ = agent::memory::experience::parse_entries("x.md", text, &mut Vec::new());
        let _ = agent::memory::task_log::parse_entries("x.md", text, &mut Vec::new());
        let _ = agent::config::ConfigLayer::parse("config.yaml", text);
    }
    let _ = yaml_edit::parse_value(text);
}

/// A note cut into blocks, read as the window and exports read it, and its cells.
pub(crate) fn markdown_rows(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let blocks = markdown::split_into_blocks(text);
    assert_eq!(blocks.concat(), text, "the cut loses nothing");
    for block in &blocks {
        let tokens = markdown::dialect::tokenize(block, markdown::dialect::dialect_options());
        assert!(tokens.iter().all(|(_, range)| block.get(range.clone()).is_some()));
        if let Some(cell) = markdown::parse_cell(block) {
            let _ = text::python_scope::CellNames::of(&block[cell.code]);
        }
    }
    let tokens = markdown::dialect::tokenize(text, markdown::dialect::dialect_options());
    assert!(tokens.iter().all(|(_, range)| text.get(range.clone()).is_some()));
    let _ = markdown::dialect::comment_marks(text, markdown::dialect::dialect_options());
    let _ = markdown::cell_ranges(text);
    let _ = markdown::linked_part(text, "a");
    let outline = Outline::of(text);
    assert!(outline.links.iter().all(|link| text[link.at..].starts_with(&link.target)));
    let _ = text::python_scope::CellNames::of(text);
    let _ = agent::tool_call_parser::find_fenced_calls(text);
}

/// A collection, read and worked out over no files.
pub(crate) fn base_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // As the threads that work collections out have it.
    let text = text.to_owned();
    let worked = std::thread::Builder::new().stack_size(collection::EVAL_STACK_BYTES).spawn(move || {
        let _ = collection::find_embeds(&text);
        let Ok(base) = collection::Collection::parse(&text) else { return };
        let (files, links) = (std::collections::BTreeMap::new(), text::links::VolumeLinks::default());
        let source = collection::VolumeFilesAndLinks { files: &files, links: &links };
        for view in 0..base.views.len().min(3) {
            let _ = base.evaluate_view(source, view, None, collection::LocalNow::default());
            let _ = (base.conditions(Some(view)), base.required_properties(view, Some("this")));
        }
    });
    worked.expect("a thread").join().expect("no panic");
}

/// A notebook becomes a note, and a notebook again.
pub(crate) fn notebook(bytes: &[u8]) {
    let Ok(file) = jupyter::read_notebook(bytes) else { return };
    let laid = jupyter::import_notebook(file);
    let again = jupyter::export_notebook(&laid.text, &[], Some(&laid.original), &|_| None);
    assert!(again["cells"].is_array());
    let kept = laid.original.to_bytes();
    assert!(jupyter::NotebookOriginal::from_bytes(&kept).is_ok());
    markdown_rows(laid.text.as_bytes());
}

/// A message of a peer: what is read is written the same way, and read again the same.
pub(crate) fn wire_message(bytes: &[u8]) {
    let Ok(message) = store::sync::wire::decode(bytes) else { return };
    let written = store::sync::wire::encode(&message);
    assert_eq!(store::sync::wire::decode(&written), Ok(message));
}

/// Rules as a user types them, one a line, and rules as they are stored: what is read is written the same way. A rule
/// that a decision about a command makes speaks of no other command.
pub(crate) fn policy_rule(bytes: &[u8]) {
    use agent::policy::{CallFacts, Permission, PolicyRule, ToolPolicy};
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut config = agent::config::AgentConfig::default();
    config.approval.never_approve = text.lines().take(20).map(str::to_owned).collect();
    let mut policy = ToolPolicy::from_config(&config);
    for rule in &policy.rules {
        let written = serde_json::to_string(rule).expect("written");
        assert_eq!(&serde_json::from_str::<PolicyRule>(&written).expect("read"), rule);
    }
    let _ = serde_json::from_str::<Vec<PolicyRule>>(text);
    let _ = agent::tool_call_parser::find_fenced_calls(text);

    let tools = agent::tool_catalog::built_in();
    let shell = tools.iter().find(|tool| tool.name == "shell").expect("there");
    let (here, run, facts) = (store::DocId([1; 16]), store::DocId([2; 16]), CallFacts::default());
    let command = |text: String| serde_json::Map::from_iter([("command".to_owned(), text.into())]);
    let asked = command(text.to_owned());
    let _ = policy.decide(shell, &asked, &facts, here, run);
    let learned = ToolPolicy::rule_from_decision(store::DecisionScope::Always, true, shell, &asked, &facts, here, run);
    policy.rules = vec![learned.expect("a rule")];
    for other in [format!("{text}x"), format!("{text}; x"), format!("x {text}")] {
        assert_ne!(policy.decide(shell, &command(other), &facts, here, run).word, Permission::Allow, "{text}");
    }
}
