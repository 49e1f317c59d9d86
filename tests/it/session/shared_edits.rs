//! Two agents that work on one note at the same time: neither overwrites what the other has changed since it was read.

use super::agents::{agent, answer, ask, said};
use crate::twin::Twin;
use agent::memory::RecallOptions;
use engine::Command;
use serde_json::json;
use store::{DocId, StepKind};

const OTHER: DocId = DocId([21; 16]);
const NOTE: &str = "# Shop\n\nApples cost one.\n\nPears cost two.\n\nPlums cost three.\n";

/// Two runs in sessions of their own, which have both read the note.
fn two_readers(mut twin: Twin) -> Twin {
    ask(&mut twin, "raise the apples");
    let volume = twin.session.volumes().next().expect("a volume").id;
    let (note, parent, agent, budget, allow) = (None, None, None, None, Vec::new());
    let (recall, text) = (RecallOptions::default(), "raise the plums".to_owned());
    let (run, session) = (OTHER, DocId([22; 16]));
    twin.command(Command::Ask {
        run,
        session,
        volume,
        note,
        parent,
        text,
        agent,
        budget,
        allow,
        recall,
        provider: None,
    })
    .expect("asked");
    twin.rest();
    for _ in 0..2 {
        answer(&mut twin, said("", &[("read_file", json!({"path": "shop.md"}))]));
    }
    assert_eq!(twin.models.iter().map(|(call, _)| call.run).collect::<Vec<_>>(), [super::agents::RUN, OTHER]);
    twin
}

/// The last result of a run: whether it succeeded, and its text.
fn last_result(twin: &Twin, run: DocId) -> (bool, String) {
    let steps = &twin.session.agents().run(run).expect("open").steps;
    let result = steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::ToolResult { success, result, error, .. } => {
            let text = result.as_ref().and_then(|value| value.as_str()).map(str::to_owned);
            Some((*success, text.or(error.clone()).unwrap_or_default()))
        }
        _ => None,
    });
    result.expect("a result")
}

fn write(twin: &mut Twin, content: &str) {
    answer(twin, said("", &[("write_file", json!({"path": "shop.md", "content": content}))]));
}

#[test]
fn a_whole_text_keeps_what_another_agent_has_changed_elsewhere() {
    let mut twin = agent(&[("shop.md", NOTE)], "");
    let note = twin.open("shop.md");
    let mut twin = two_readers(twin);
    let apples = NOTE.replace("Apples cost one", "Apples cost nine");
    write(&mut twin, &apples);
    assert_eq!(twin.text(note), apples);
    assert!(!last_result(&twin, super::agents::RUN).1.contains("was changed since you read it"), "it was the first");
    // The other one doesn't know of it and writes the whole note.
    write(&mut twin, &NOTE.replace("Plums cost three", "Plums cost eight"));
    let both = apples.replace("Plums cost three", "Plums cost eight");
    assert_eq!(twin.text(note), both);
    let (success, told) = last_result(&twin, OTHER);
    assert!(success && told.starts_with("It was changed since you read it"), "{told}");
    // The first one knows what it has written itself, and nothing of the other's change.
    write(&mut twin, &apples.replace("Pears cost two", "Pears cost seven"));
    assert_eq!(twin.text(note), both.replace("Pears cost two", "Pears cost seven"));
    // Once it has read the note, its text counts as it is.
    answer(&mut twin, said("I am done.", &[]));
    answer(&mut twin, said("", &[("read_file", json!({"path": "shop.md"}))]));
    write(&mut twin, "# Closed\n");
    assert_eq!(twin.text(note), "# Closed\n");
}

#[test]
fn two_changes_of_one_passage_are_refused_with_both_texts() {
    let mut twin = agent(&[("shop.md", NOTE)], "");
    let note = twin.open("shop.md");
    let mut twin = two_readers(twin);
    let first = NOTE.replace("Plums cost three", "Plums cost four");
    write(&mut twin, &first);
    write(&mut twin, &NOTE.replace("Plums cost three", "Plums cost eight"));
    assert_eq!(twin.text(note), first, "nothing is lost");
    let (success, told) = last_result(&twin, OTHER);
    assert!(!success, "{told}");
    for part in
        ["+Plums cost four.", "+Plums cost eight.", "-Plums cost three.", "shop.md was changed since you read it"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.ends_with(&first), "the note as it is now: {told}");
    // Now it knows the other's change.
    answer(&mut twin, said("I am done.", &[]));
    write(&mut twin, &NOTE.replace("Plums cost three", "Plums cost six"));
    assert_eq!(twin.text(note), NOTE.replace("Plums cost three", "Plums cost six"));
}

#[test]
fn a_note_that_the_message_names_counts_as_read() {
    let mut twin = agent(&[("shop.md", NOTE)], "");
    let note = twin.open("shop.md");
    ask(&mut twin, "raise the apples in @shop.md");
    let volume = twin.session.volumes().next().expect("a volume").id;
    let command = Command::Ask {
        run: OTHER,
        session: DocId([22; 16]),
        volume,
        note: None,
        parent: None,
        text: "raise the plums".to_owned(),
        agent: None,
        budget: None,
        allow: Vec::new(),
        recall: RecallOptions::default(),
        provider: None,
    };
    twin.command(command).expect("asked");
    twin.rest();
    // The other one changes it first; the one that was given the note with its message writes all of it.
    twin.models.reverse();
    let plums = NOTE.replace("Plums cost three", "Plums cost eight");
    write(&mut twin, &plums);
    twin.models.retain(|(call, _)| call.run == super::agents::RUN);
    write(&mut twin, &NOTE.replace("Apples cost one", "Apples cost nine"));
    assert_eq!(twin.text(note), plums.replace("Apples cost one", "Apples cost nine"));
}
