//! What the MCP server completes: volumes, paths, notes, tags and agents, as arguments of prompts and of the forms of
//! addresses.

use crate::command_calls::{CommandCall, text_page};
use crate::mcp_prompts;
use crate::mcp_resources::{ATTACHMENT_TEMPLATE, NOTE_TEMPLATE, ServedResource};
use crate::tool_arguments::ToolCallError;
use crate::tool_calls::ToolCallContext;
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// Maximum length of a value in bytes. A longer one is left out, because a part of it names something else.
const MAX_VALUE_BYTES: usize = 1_024;
/// Maximum number of volumes whose agents are listed.
const MAX_AGENT_VOLUMES: usize = 20;
/// Number of bytes of a wrong name that an error repeats.
const MAX_REPEATED_BYTES: usize = 200;

/// What an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentSubject {
    /// A volume.
    Volume,
    /// The path of a note inside its volume.
    NotePath,
    /// The path of an attachment inside its volume.
    AttachmentPath,
    /// A note, by its path, or where several volumes have that path, with the volume before it.
    AnyNote,
    /// A tag, without `#`.
    NoteTag,
    /// An agent.
    AgentName,
}

impl ArgumentSubject {
    /// Returns what an argument with this name means: `note`, `first_note` and `note2` are a note.
    pub(crate) fn of_name(name: &str) -> Option<ArgumentSubject> {
        let mut words = vec![String::new()];
        let mut was_lower = false;
        for letter in name.chars() {
            let is_new = !letter.is_ascii_alphabetic() || (letter.is_ascii_uppercase() && was_lower);
            if is_new {
                words.push(String::new());
            }
            if let (true, Some(word)) = (letter.is_ascii_alphabetic(), words.last_mut()) {
                word.push(letter.to_ascii_lowercase());
            }
            was_lower = letter.is_ascii_lowercase();
        }
        words.iter().rev().find_map(|word| match word.as_str() {
            "note" | "notes" | "page" | "path" => Some(ArgumentSubject::AnyNote),
            "attachment" | "file" => Some(ArgumentSubject::AttachmentPath),
            "tag" | "tags" => Some(ArgumentSubject::NoteTag),
            "agent" => Some(ArgumentSubject::AgentName),
            "volume" => Some(ArgumentSubject::Volume),
            _ => None,
        })
    }

    /// Returns what an argument means that follows this text.
    pub(crate) fn after(before: &str) -> Option<ArgumentSubject> {
        let is_free = |rest: &str| !rest.ends_with(|letter: char| letter.is_alphanumeric() || "#@]/".contains(letter));
        if before.ends_with("[[") {
            Some(ArgumentSubject::NotePath)
        } else if before.ends_with("](") || before.ends_with("](<") {
            Some(ArgumentSubject::AttachmentPath)
        } else if before.strip_suffix('#').is_some_and(is_free) || before.ends_with("tag:") {
            Some(ArgumentSubject::NoteTag)
        } else if before.strip_suffix('@').is_some_and(is_free) {
            Some(ArgumentSubject::AgentName)
        } else {
            None
        }
    }
}

/// What an argument names, and in which volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentMeaning {
    pub(crate) subject: ArgumentSubject,
    /// The only volume; `None` for all.
    pub(crate) volume: Option<String>,
}

/// Why an argument can't be completed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompletionRefusal {
    #[error("there is no prompt {0}")]
    MissingPrompt(String),
    #[error("{0} is no form of an address; resources/templates/list has them")]
    MissingTemplate(String),
    #[error("arguments of {0} can't be completed")]
    OtherReference(&'static str),
    #[error("{place} has no argument {name}")]
    MissingArgument { place: String, name: String },
}

fn repeated(name: &str) -> String {
    text_page(name, 0, MAX_REPEATED_BYTES).0.to_owned()
}

fn unknown_argument(place: &str, name: &str) -> CompletionRefusal {
    CompletionRefusal::MissingArgument { place: repeated(place), name: repeated(name) }
}

/// Returns the values that contain what the client's user has typed: first those that begin with it, then those whose
/// file name does.
fn fitting_values(values: BTreeSet<String>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let rank = |value: &str| {
        let value = value.to_lowercase();
        let name = value.rsplit('/').next().unwrap_or(&value);
        match (value.starts_with(&typed), name.starts_with(&typed), value.contains(&typed)) {
            (true, ..) => Some(0),
            (_, true, _) => Some(1),
            (.., true) => Some(2),
            _ => None,
        }
    };
    let mut fitting: Vec<(u8, usize, String)> = values
        .into_iter()
        .filter(|value| value.len() <= MAX_VALUE_BYTES)
        .filter_map(|value| Some((rank(&value)?, value.len(), value)))
        .collect();
    fitting.sort();
    fitting.into_iter().map(|(.., value)| value).collect()
}

/// Returns a completion of the first values.
fn completion_of(mut values: Vec<String>) -> Result<CompletionInfo, ToolCallError> {
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let has_more = values.len() < total;
    let total = u32::try_from(total).unwrap_or(u32::MAX);
    CompletionInfo::with_pagination(values, Some(total), has_more).map_err(ToolCallError)
}

fn text_of(row: &Value, field: &str) -> Option<String> {
    row[field].as_str().map(str::to_owned)
}

impl ToolCallContext<'_> {
    /// Completes an argument, or says that there's none to complete.
    pub(crate) fn completed(
        &self,
        asked: &CompleteRequestParams,
    ) -> Result<Result<CompletionInfo, CompletionRefusal>, ToolCallError> {
        let known = asked.context.as_ref().and_then(|context| context.arguments.clone()).unwrap_or_default();
        let name = asked.argument.name.as_str();
        let meaning = match &asked.r#ref {
            Reference::Resource(form) => template_argument(&form.uri, name, &known),
            Reference::Prompt(prompt) => self.prompt_argument(&prompt.name, name, &known)?,
            other => Err(CompletionRefusal::OtherReference(other.reference_type())),
        };
        let values = match meaning {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(None) => BTreeSet::new(),
            Ok(Some(meaning)) => self.values_of(&meaning)?,
        };
        let typed = asked.argument.value.trim_start_matches(['#', '@']);
        completion_of(fitting_values(values, typed)).map(Ok)
    }

    /// Returns what an argument of a prompt names; `None` if it's free text.
    fn prompt_argument(
        &self,
        prompt: &str,
        name: &str,
        known: &HashMap<String, String>,
    ) -> Result<Result<Option<ArgumentMeaning>, CompletionRefusal>, ToolCallError> {
        let by_name = |arguments: &[&str]| {
            let volume = arguments.iter().find(|one| ArgumentSubject::of_name(one) == Some(ArgumentSubject::Volume));
            let volume = volume.and_then(|one| known.get(*one)).filter(|volume| !volume.is_empty()).cloned();
            ArgumentSubject::of_name(name).map(|subject| ArgumentMeaning { subject, volume })
        };
        if let Some(arguments) = mcp_prompts::prompt_arguments(prompt) {
            let is_known = arguments.contains(&name);
            return Ok(if is_known { Ok(by_name(&arguments)) } else { Err(unknown_argument(prompt, name)) });
        }
        let own = self.note_prompts(&mcp_prompts::prompt_names())?;
        let Some(own) = own.iter().find(|own| own.is_named(prompt)) else {
            return Ok(Err(CompletionRefusal::MissingPrompt(repeated(prompt))));
        };
        let arguments = own.argument_names();
        if !arguments.contains(&name) {
            return Ok(Err(unknown_argument(prompt, name)));
        }
        Ok(Ok(own.meaning_by_place(name).or_else(|| by_name(&arguments))))
    }

    /// Returns all values that an argument can have.
    fn values_of(&self, meaning: &ArgumentMeaning) -> Result<BTreeSet<String>, ToolCallError> {
        let is_there = |row: &Value| meaning.volume.as_ref().is_none_or(|volume| row["volume"] == volume.as_str());
        let texts = |rows: Vec<Value>, field: &str| -> BTreeSet<String> {
            rows.iter().filter(|row| is_there(row)).filter_map(|row| text_of(row, field)).collect()
        };
        Ok(match meaning.subject {
            ArgumentSubject::Volume => self.volume_names()?.into_iter().collect(),
            ArgumentSubject::NotePath => texts(self.notes(None, "")?, "path"),
            ArgumentSubject::AttachmentPath => texts(self.attachments(None)?, "path"),
            ArgumentSubject::AnyNote => {
                let notes = self.notes(None, "")?;
                let mut counts: HashMap<&str, usize> = HashMap::new();
                for path in notes.iter().filter_map(|row| row["path"].as_str()) {
                    *counts.entry(path).or_default() += 1;
                }
                let named = notes.iter().filter(|row| is_there(row)).filter_map(|row| {
                    let path = row["path"].as_str()?;
                    let is_unique = counts.get(path) == Some(&1);
                    let file = ServedResource::of_path(row["volume"].as_str()?, path);
                    Some(if is_unique { file.path } else { file.word() })
                });
                named.collect()
            }
            ArgumentSubject::NoteTag => {
                let call = CommandCall::json("ls").flag("tags", true).option("volume", self.only_volume);
                texts(self.perform_ok(call)?.lines(), "tag")
            }
            ArgumentSubject::AgentName => self.agent_names(meaning.volume.as_deref())?,
        })
    }

    fn volume_names(&self) -> Result<Vec<String>, ToolCallError> {
        Ok(self.volumes()?.iter().filter_map(|row| text_of(row, "name")).collect())
    }

    /// Returns the agents of a volume, or of all, that aren't switched off.
    fn agent_names(&self, only: Option<&str>) -> Result<BTreeSet<String>, ToolCallError> {
        let (mut names, mut failure) = (BTreeSet::new(), None);
        let volumes = self.volume_names()?.into_iter().filter(|volume| only.is_none_or(|only| only == volume));
        for volume in volumes.take(MAX_AGENT_VOLUMES) {
            let call = CommandCall::json("tasks").option("project", Some(volume)).operands(["agents"]);
            match self.perform_ok(call) {
                Ok(outcome) => {
                    let rows = outcome.lines();
                    // Each volume is asked for its own.
                    let usable = rows.iter().filter(|row| row["status"] != "disabled" && row["volume"].is_null());
                    names.extend(usable.filter_map(|row| text_of(row, "name")));
                }
                // A volume whose folder is missing doesn't hide the agents of the others.
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if names.is_empty() => Err(error),
            _ => Ok(names),
        }
    }
}

/// Returns what an argument of a form of an address names; `None` if the address has no arguments.
fn template_argument(
    form: &str,
    name: &str,
    known: &HashMap<String, String>,
) -> Result<Option<ArgumentMeaning>, CompletionRefusal> {
    let subject = match (form, name.trim_start_matches('+')) {
        (NOTE_TEMPLATE | ATTACHMENT_TEMPLATE, "volume") => ArgumentSubject::Volume,
        (NOTE_TEMPLATE, "path") => ArgumentSubject::NotePath,
        (ATTACHMENT_TEMPLATE, "path") => ArgumentSubject::AttachmentPath,
        (NOTE_TEMPLATE | ATTACHMENT_TEMPLATE, _) => return Err(unknown_argument(form, name)),
        (address, _) if ServedResource::from_uri(address).is_some() => return Ok(None),
        _ => return Err(CompletionRefusal::MissingTemplate(repeated(form))),
    };
    let volume = known.get("volume").filter(|volume| !volume.is_empty()).cloned();
    Ok(Some(ArgumentMeaning { subject, volume }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_arguments_say_what_they_mean() {
        use ArgumentSubject::{AgentName, AnyNote, AttachmentPath, NoteTag, Volume};
        for (name, subject) in [
            ("note", Some(AnyNote)),
            ("first_note", Some(AnyNote)),
            ("firstNote", Some(AnyNote)),
            ("note-2", Some(AnyNote)),
            ("note2", Some(AnyNote)),
            ("note_tag", Some(NoteTag)),
            ("Tags", Some(NoteTag)),
            ("agent", Some(AgentName)),
            ("file", Some(AttachmentPath)),
            ("volume", Some(Volume)),
            ("keynote", None),
            ("question", None),
            ("", None),
        ] {
            assert_eq!(ArgumentSubject::of_name(name), subject, "{name}");
        }
    }

    #[test]
    fn what_stands_before_an_argument_says_what_it_means() {
        use ArgumentSubject::{AgentName, AttachmentPath, NotePath, NoteTag};
        for (before, subject) in [
            ("See [[", Some(NotePath)),
            ("![[", Some(NotePath)),
            ("![](", Some(AttachmentPath)),
            ("Look for #", Some(NoteTag)),
            ("#", Some(NoteTag)),
            ("tag:", Some(NoteTag)),
            ("ask @", Some(AgentName)),
            ("## ", None),
            ("[[Boat#", None),
            ("ada@", None),
            ("##", None),
            ("", None),
        ] {
            assert_eq!(ArgumentSubject::after(before), subject, "{before}");
        }
    }

    #[test]
    fn the_best_values_come_first_and_the_rest_is_counted() {
        let values = ["Ideas/Sail.md", "Sails/One.md", "Old/Mainsail.md", "Boat.md"].map(str::to_owned);
        let fitting = fitting_values(BTreeSet::from(values), "SAI");
        assert_eq!(fitting, ["Sails/One.md", "Ideas/Sail.md", "Old/Mainsail.md"]);
        let long = BTreeSet::from(["x".repeat(MAX_VALUE_BYTES), "x".repeat(MAX_VALUE_BYTES + 1)]);
        assert_eq!(fitting_values(long, "").len(), 1);
        let info = completion_of((0..150).map(|number| number.to_string()).collect()).expect("a completion");
        assert_eq!((info.values.len(), info.total, info.has_more), (100, Some(150), Some(true)));
        let info = completion_of(vec!["one".to_owned()]).expect("a completion");
        assert_eq!((info.values.len(), info.total, info.has_more), (1, Some(1), Some(false)));
    }

    #[test]
    fn only_the_forms_of_addresses_have_arguments() {
        let known = HashMap::from([("volume".to_owned(), "notes".to_owned())]);
        let path = template_argument(NOTE_TEMPLATE, "path", &known).expect("known").expect("a meaning");
        assert_eq!((path.subject, path.volume.as_deref()), (ArgumentSubject::NotePath, Some("notes")));
        assert_eq!(template_argument("note://notes/Boat.md", "path", &known), Ok(None));
        assert!(template_argument(ATTACHMENT_TEMPLATE, "size", &known).is_err());
        let refusal = template_argument(&"x".repeat(1_000), "path", &known).expect_err("refused");
        assert!(refusal.to_string().len() < 300, "{refusal}");
    }
}
