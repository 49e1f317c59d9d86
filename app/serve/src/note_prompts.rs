//! Prompts of the MCP server that the user has written: notes with the tag `prompt`.
//!
//! `{{name}}` in the note is an argument. A line with only an embed (`![[Note]]`, `![](picture.png)`) becomes a message
//! with that note, picture, sound or file.

use crate::command_calls::{CommandCall, text_page};
use crate::mcp_completion::{ArgumentMeaning, ArgumentSubject};
use crate::mcp_resources::{MAX_RESOURCE_BYTES, ServedResource, base64_text, media_type};
use crate::tool_arguments::ToolCallError;
use crate::tool_calls::ToolCallContext;
use rmcp::model::{ContentBlock, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};
use text::{outline, properties};

/// Maximum number of notes that are prompts.
const MAX_NOTE_PROMPTS: usize = 100;
/// Maximum number of arguments of a prompt, and of embeds.
const MAX_ARGUMENTS: usize = 20;
const MAX_EMBEDS: usize = 20;
/// Maximum size of a filled prompt in bytes, without its embeds, and of those.
const MAX_PROMPT_BYTES: usize = 1 << 20;
const MAX_EMBEDDED_BYTES: usize = 2 * MAX_RESOURCE_BYTES;
/// Maximum length of a description in bytes.
const MAX_DESCRIPTION_BYTES: usize = 500;

/// A note that is a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotePrompt {
    name: String,
    description: String,
    arguments: Vec<String>,
    /// The note without its front matter.
    body: String,
    path: String,
    volume: String,
}

/// Returns where the arguments in a text are, with their names.
fn placeholders(text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|at| from + at) {
        let Some(end) = text[start..].find("}}").map(|at| start + at) else { break };
        let name = text[start + 2..end].trim();
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
        if is_name {
            found.push((start..end + 2, name));
        }
        from = if is_name { end + 2 } else { start + 2 };
    }
    found
}

/// Returns what a line embeds, if it does nothing else.
fn embedded_target(line: &str) -> Option<&str> {
    let line = line.trim();
    let target = match line.strip_prefix("![[").and_then(|rest| rest.strip_suffix("]]")) {
        Some(inside) => inside.split('|').next()?,
        None => {
            let (_, target) = line.strip_prefix("![")?.strip_suffix(')')?.split_once("](")?;
            target.trim().trim_start_matches('<').trim_end_matches('>')
        }
    };
    let target = target.trim();
    (!target.is_empty() && !target.contains(['[', ']', '\0'])).then_some(target)
}

impl NotePrompt {
    fn new(volume: &str, path: &str, text: &str) -> NotePrompt {
        let body = match outline::front_matter_range(text).and_then(|front| text.get(front.end..)) {
            // What follows the properties begins with the line that ends them.
            Some(rest) => rest.split_once('\n').map_or("", |(_, body)| body),
            None => text,
        };
        let body = body.trim().to_owned();
        let stated = properties::read(text).and_then(Result::ok).and_then(|all| {
            let own = all.into_iter().find(|property| property.key.eq_ignore_ascii_case("description"))?;
            own.values.into_iter().next().map(|(value, _)| value)
        });
        let first = || body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
        let description = stated.filter(|text| !text.trim().is_empty()).or_else(|| first().map(str::to_owned));
        let description = description.unwrap_or_else(|| path.to_owned());
        let mut arguments: Vec<String> = Vec::new();
        for (_, name) in placeholders(&body) {
            if arguments.len() < MAX_ARGUMENTS && !arguments.iter().any(|known| known == name) {
                arguments.push(name.to_owned());
            }
        }
        let file = path.rsplit('/').next().unwrap_or(path);
        NotePrompt {
            name: file.strip_suffix(".md").unwrap_or(file).to_owned(),
            description: text_page(&description, 0, MAX_DESCRIPTION_BYTES).0.to_owned(),
            arguments,
            body,
            path: path.to_owned(),
            volume: volume.to_owned(),
        }
    }

    /// Returns how clients list it.
    pub(crate) fn listed(&self) -> Prompt {
        let argument = |name: &String| PromptArgument::new(name).with_required(true);
        let arguments = self.arguments.iter().map(argument).collect();
        Prompt::new(&self.name, Some(&self.description), Some(arguments))
    }

    /// Returns whether clients know it by this name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// Returns the names of its arguments.
    pub(crate) fn argument_names(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Returns what an argument names by where it is in the note: `[[{{chapter}}]]`, `#{{topic}}`, `@{{reviewer}}`.
    pub(crate) fn meaning_by_place(&self, argument: &str) -> Option<ArgumentMeaning> {
        let places = placeholders(&self.body).into_iter().filter(|(_, name)| *name == argument);
        let subject = places.filter_map(|(range, _)| ArgumentSubject::after(&self.body[..range.start])).next()?;
        let is_file = matches!(subject, ArgumentSubject::NotePath | ArgumentSubject::AttachmentPath);
        // Links and embeds lead to files of the note's own volume.
        Some(ArgumentMeaning { subject, volume: is_file.then(|| self.volume.clone()) })
    }

    /// Returns its text with the arguments filled in.
    fn filled(&self, arguments: &Map<String, Value>) -> Result<String, ToolCallError> {
        let mut filled = String::new();
        let mut end = 0;
        for (range, name) in placeholders(&self.body) {
            filled.push_str(&self.body[end..range.start]);
            end = range.end;
            if !self.arguments.iter().any(|known| known == name) {
                filled.push_str(&self.body[range]);
                continue;
            }
            let value = arguments.get(name).and_then(Value::as_str).filter(|value| !value.trim().is_empty());
            let missing = || ToolCallError(format!("the prompt {} needs {name}", self.name));
            filled.push_str(value.ok_or_else(missing)?);
            if filled.len() > MAX_PROMPT_BYTES {
                break;
            }
        }
        filled.push_str(&self.body[end..]);
        match filled.len() {
            0..=MAX_PROMPT_BYTES => Ok(filled),
            bytes => Err(ToolCallError(format!("the prompt has {bytes} bytes; at most {MAX_PROMPT_BYTES} are sent"))),
        }
    }
}

impl ToolCallContext<'_> {
    /// Returns the prompts that the user has written, without those whose name is `taken`.
    pub(crate) fn note_prompts(&self, taken: &[&str]) -> Result<Vec<NotePrompt>, ToolCallError> {
        let call = self.limited_search(CommandCall::json("search").option("limit", Some(MAX_NOTE_PROMPTS)))?;
        let hits = self.perform_ok(call.operands(["tag:prompt"]))?.value().unwrap_or_default();
        let mut prompts: Vec<NotePrompt> = Vec::new();
        for hit in hits.as_array().map(Vec::as_slice).unwrap_or_default() {
            let (Some(address), Some(volume)) = (hit["address"].as_str(), hit["volume"].as_str()) else { continue };
            let path = address.rsplit_once('#').map_or(address, |(path, _)| path);
            // Where several volumes have the path, the address begins with this one.
            let path = path.strip_prefix(volume).and_then(|rest| rest.strip_prefix(':')).unwrap_or(path);
            if !self.reaches(&hit["volume"]) {
                continue;
            }
            if prompts.len() == MAX_NOTE_PROMPTS {
                break;
            }
            if prompts.iter().any(|known| known.path == path && known.volume == volume) {
                continue;
            }
            // A note that was deleted since it was indexed is no longer a prompt.
            let Ok(note) = self.read_note(&ServedResource::of_path(volume, path).word()) else { continue };
            let mut prompt = NotePrompt::new(&note.volume, &note.path, &note.text);
            let is_taken = |name: &str| taken.contains(&name) || prompts.iter().any(|known| known.name == name);
            if is_taken(&prompt.name) {
                prompt.name = prompt.path.strip_suffix(".md").unwrap_or(&prompt.path).to_owned();
            }
            if is_taken(&prompt.name) {
                prompt.name = format!("{}:{}", prompt.volume, prompt.name);
            }
            prompts.push(prompt);
        }
        prompts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(prompts)
    }

    /// Fills a prompt that the user has written; `None` if there is none of this name.
    pub(crate) fn fill_note_prompt(
        &self,
        taken: &[&str],
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Option<GetPromptResult>, ToolCallError> {
        let Some(prompt) = self.note_prompts(taken)?.into_iter().find(|prompt| prompt.name == name) else {
            return Ok(None);
        };
        let text = prompt.filled(arguments)?;
        let mut messages = Vec::new();
        let (mut passage, mut embeds, mut bytes) = (String::new(), 0, 0);
        let say = |passage: &mut String, messages: &mut Vec<PromptMessage>| {
            if !passage.trim().is_empty() {
                messages.push(PromptMessage::new_text(Role::User, passage.trim()));
            }
            passage.clear();
        };
        for line in text.lines() {
            let content = match embedded_target(line) {
                Some(target) if embeds < MAX_EMBEDS => self.embedded_content(&prompt, target, &mut bytes),
                _ => None,
            };
            if let Some(content) = content {
                embeds += 1;
                say(&mut passage, &mut messages);
                messages.push(PromptMessage::new(Role::User, content));
            } else {
                passage.push_str(line);
                passage.push('\n');
            }
        }
        say(&mut passage, &mut messages);
        if messages.is_empty() {
            return Err(ToolCallError(format!("the prompt {name} is empty; write into {}", prompt.path)));
        }
        Ok(Some(GetPromptResult::new(messages).with_description(prompt.description)))
    }

    /// Returns what an embed of a prompt shows; `None` if there is no such file, or it's too large.
    fn embedded_content(&self, prompt: &NotePrompt, target: &str, total: &mut usize) -> Option<ContentBlock> {
        let volume = &prompt.volume;
        let folder = prompt.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let attachments = self.attachments(Some(volume)).ok()?;
        let paths = || attachments.iter().filter_map(|row| row["path"].as_str());
        let beside = format!("{folder}{target}");
        let ending = format!("/{target}");
        let named = paths()
            .find(|path| *path == beside)
            .or_else(|| paths().find(|path| *path == target))
            .or_else(|| paths().find(|path| path.ends_with(&ending)));
        let mut fits = |bytes: usize| {
            *total += bytes;
            *total <= MAX_EMBEDDED_BYTES
        };
        let Some(path) = named else {
            let note = self.read_note(&ServedResource::of_path(volume, target).word()).ok()?;
            let file = ServedResource { volume: note.volume, path: note.path, is_note: true };
            return fits(note.text.len()).then(|| ContentBlock::embedded_text(file.uri(), note.text));
        };
        let file = ServedResource { volume: volume.clone(), path: path.to_owned(), is_note: false };
        let media_type = media_type(path);
        if !media_type.starts_with("audio/")
            && !matches!(media_type.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp")
        {
            let contents = self.resource_contents(&file).ok()?;
            let size = attachments.iter().find(|row| row["path"] == path).and_then(|row| row["bytes"].as_u64());
            return fits(usize::try_from(size.unwrap_or(0)).ok()?).then(|| ContentBlock::resource(contents));
        }
        let bytes = self.attachment_bytes(&file).ok()?;
        let encoded = fits(bytes.len()).then(|| base64_text(&bytes))?;
        Some(match media_type.starts_with("audio/") {
            true => ContentBlock::audio(encoded, media_type),
            false => ContentBlock::image(encoded, media_type),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_note_with_places_is_a_prompt_with_arguments() {
        let text =
            "---\ntags: [prompt]\ndescription: Greets people\n---\n# Hi {{name}}\n\n{{ name }}, {{place-1}} {{2}} {{";
        let prompt = NotePrompt::new("notes", "Prompts/Greet.md", text);
        assert_eq!((prompt.name.as_str(), prompt.description.as_str()), ("Greet", "Greets people"));
        assert_eq!(prompt.arguments, ["name", "place-1"]);
        let both = json!({"name": "{{place-1}}", "place-1": "sea"});
        let filled = prompt.filled(both.as_object().expect("an object")).expect("filled");
        // What a client sends is never filled again.
        assert_eq!(filled, "# Hi {{place-1}}\n\n{{place-1}}, sea {{2}} {{");
        let one = json!({"name": "Ada", "place-1": " "});
        let error = prompt.filled(one.as_object().expect("an object")).expect_err("refused");
        assert_eq!(error.0, "the prompt Greet needs place-1");
        let long = json!({"name": "x".repeat(MAX_PROMPT_BYTES), "place-1": "sea"});
        assert!(prompt.filled(long.as_object().expect("an object")).is_err());
        assert_eq!(NotePrompt::new("notes", "Plain.md", "\n## Do it\n").description, "Do it");
    }

    #[test]
    fn where_an_argument_is_says_what_it_names() {
        let text = "Review {{chapter}} for {{reader}}:\n\n![[{{chapter}}]]\n\n#{{topic}} @{{helper}} ![]({{cover}})\n";
        let prompt = NotePrompt::new("notes", "Review.md", text);
        let meaning = |name: &str| prompt.meaning_by_place(name).map(|meaning| (meaning.subject, meaning.volume));
        let own = Some("notes".to_owned());
        assert_eq!(meaning("chapter"), Some((ArgumentSubject::NotePath, own.clone())));
        assert_eq!(meaning("cover"), Some((ArgumentSubject::AttachmentPath, own)));
        assert_eq!(meaning("topic"), Some((ArgumentSubject::NoteTag, None)));
        assert_eq!(meaning("helper"), Some((ArgumentSubject::AgentName, None)));
        assert_eq!((meaning("reader"), meaning("none")), (None, None));
    }

    #[test]
    fn only_a_line_of_its_own_embeds() {
        for (line, target) in [
            ("![[Boat]]", Some("Boat")),
            ("  ![[red.png|100]] ", Some("red.png")),
            ("![a boat](Pictures/boat.png)", Some("Pictures/boat.png")),
            ("![](<two words.png>)", Some("two words.png")),
            ("see ![[Boat]]", None),
            ("![[Boat]] and ![[Sail]]", None),
            ("[[Boat]]", None),
            ("![[]]", None),
        ] {
            assert_eq!(embedded_target(line), target, "{line}");
        }
    }
}
