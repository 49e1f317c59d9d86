//! Prompts of the MCP server: ways of working with notes that a user can pick in a client.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

/// A prompt: its text, in which `{NAME}` stands for an argument.
struct PromptRow {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [(&'static str, &'static str)],
    text: &'static str,
}

const PROMPT_ROWS: &[PromptRow] = &[
    PromptRow {
        name: "ask_my_notes",
        title: "Ask my notes",
        description: "Answer a question from the notes, with sources.",
        arguments: &[("question", "what you want to know")],
        text: "Answer this from my notes: {question}\n\nSearch with search_notes, in several wordings. Read the best \
               hits with read_note before you rely on them. Name the note for each statement. If the notes don't \
               answer it, say so, and don't fill the gap from elsewhere.",
    },
    PromptRow {
        name: "summarize_note",
        title: "Summarize a note",
        description: "Summarize a note and what is linked to it.",
        arguments: &[("note", "path of the note")],
        text: "Summarize my note {note} in at most ten lines. Read it with read_note, and look with note_links and \
               related_notes whether other notes contradict it or carry it further. List open tasks at the end.",
    },
    PromptRow {
        name: "plan_my_day",
        title: "Plan my day",
        description: "Order open todos, with what is late first.",
        arguments: &[("hours", "how many hours there are")],
        text: "Plan my day: I have {hours} hours. List my open tasks with list_todos. Begin with what is late or due \
               today. Estimate each, and stop when the time is full. Name what doesn't fit.",
    },
    PromptRow {
        name: "keep_what_we_learned",
        title: "Keep what we learned",
        description: "Write the result of this conversation into the notes.",
        arguments: &[("topic", "what it was about")],
        text: "Keep what we found out about {topic}. Look with search_notes whether a note has it already. Add to that \
               note with append_to_note, or create one with create_note. Facts, decisions with their reasons, and \
               open questions; no account of our conversation. Keep lessons for later work with remember.",
    },
];

/// Returns the names of the prompts.
pub(crate) fn prompt_names() -> Vec<&'static str> {
    PROMPT_ROWS.iter().map(|row| row.name).collect()
}

/// Returns the arguments of a prompt; `None` if there is none with this name.
pub(crate) fn prompt_arguments(name: &str) -> Option<Vec<&'static str>> {
    let row = PROMPT_ROWS.iter().find(|row| row.name == name)?;
    Some(row.arguments.iter().map(|(argument, _)| *argument).collect())
}

/// Returns all prompts.
pub(crate) fn all_prompts() -> Vec<Prompt> {
    let prompt = |row: &PromptRow| {
        let argument =
            |(name, about): &(&str, &str)| PromptArgument::new(*name).with_description(*about).with_required(true);
        let arguments = row.arguments.iter().map(argument).collect();
        Prompt::new(row.name, Some(row.description), Some(arguments)).with_title(row.title)
    };
    PROMPT_ROWS.iter().map(prompt).collect()
}

/// Returns a prompt with its arguments filled in, or why that isn't possible.
pub(crate) fn fill_prompt(name: &str, arguments: &Map<String, Value>) -> Result<GetPromptResult, PromptError> {
    let row = PROMPT_ROWS.iter().find(|row| row.name == name);
    let row = row.ok_or_else(|| PromptError::Unknown(name.to_owned()))?;
    let mut text = row.text.to_owned();
    for (argument, _) in row.arguments {
        let value = arguments.get(*argument).and_then(Value::as_str).filter(|value| !value.trim().is_empty());
        let value = value.ok_or(PromptError::Missing { prompt: row.name, argument })?;
        text = text.replace(&format!("{{{argument}}}"), value);
    }
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(row.description))
}

/// Why a prompt could not be filled in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PromptError {
    #[error("there is no prompt {0}")]
    Unknown(String),
    #[error("the prompt {prompt} needs {argument}")]
    Missing { prompt: &'static str, argument: &'static str },
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prompts_name_all_their_arguments() {
        for row in PROMPT_ROWS {
            let arguments = row.arguments.iter().map(|(name, _)| ((*name).to_owned(), json!("X-1"))).collect();
            let filled = serde_json::to_string(&fill_prompt(row.name, &arguments).expect("fine")).expect("fine");
            assert!(filled.contains("X-1") && !row.text.is_empty(), "{}", row.name);
            assert_eq!(row.text.matches('{').count(), row.arguments.len(), "{}", row.name);
        }
        let none = Map::new();
        assert_eq!(fill_prompt("nothing", &none).expect_err("refused"), PromptError::Unknown("nothing".to_owned()));
        assert!(matches!(fill_prompt("summarize_note", &none), Err(PromptError::Missing { argument: "note", .. })));
    }
}
