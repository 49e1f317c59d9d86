//! What an editor sends as a prompt, as the text of a message to an agent.

use crate::client_roots::{local_path, real_path};
use acp::v1::{ContentBlock, EmbeddedResourceResource};
use std::path::{Path, PathBuf};

/// Maximum length of a prompt in bytes.
const MAX_PROMPT_BYTES: usize = 1 << 20;

/// Why a prompt can't be a message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PromptError {
    /// It holds a picture or a recording.
    #[error("agents read text and files, not {0}")]
    Kind(&'static str),
    /// It's too long.
    #[error("the prompt has {0} bytes; at most {MAX_PROMPT_BYTES} are taken")]
    Length(usize),
    /// Nothing is in it.
    #[error("the prompt is empty")]
    Empty,
    /// It has a character that texts don't have.
    #[error("the prompt has a NUL character")]
    Nul,
}

/// Returns the file that a `file://` address names.
fn file_of(uri: &str) -> Option<PathBuf> {
    local_path(uri.split(['#', '?']).next()?)
}

/// Returns the mention of a file of the volume, which the agent then gets to read; `None` if it's elsewhere.
fn mention_of(root: &Path, uri: &str) -> Option<String> {
    let file = file_of(uri)?;
    // An editor may reach the volume over a link.
    let (real, real_root) = (real_path(&file), real_path(root));
    let inside = file.strip_prefix(root).or_else(|_| real.strip_prefix(&real_root));
    let path = inside.ok()?.to_str()?;
    let is_plain = path.chars().all(|letter| letter.is_alphanumeric() || "/._-".contains(letter));
    match (path.is_empty() || path.contains('"'), is_plain) {
        (true, _) => None,
        (false, true) => Some(format!("@{path}")),
        (false, false) => Some(format!("@\"{path}\"")),
    }
}

/// Returns the text of a prompt. Files of the volume in `root` become mentions.
pub(crate) fn prompt_text(root: &Path, blocks: &[ContentBlock]) -> Result<String, PromptError> {
    let (mut text, mut material) = (String::new(), String::new());
    let mut attach = |uri: &str, content: &str| {
        // A fence that the content can't end.
        let longest = content.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        material.push_str(&format!("\n\nContent of {uri}:\n\n{fence}\n{content}\n{fence}"));
    };
    for block in blocks {
        match block {
            ContentBlock::Text(part) => text.push_str(&part.text),
            ContentBlock::ResourceLink(link) => {
                // Mentions are read only between spaces.
                let mention = mention_of(root, &link.uri).unwrap_or_else(|| link.uri.clone());
                text.push_str(&format!(" {mention} "));
            }
            ContentBlock::Resource(part) => match &part.resource {
                EmbeddedResourceResource::TextResourceContents(resource) => match mention_of(root, &resource.uri) {
                    Some(mention) => text.push_str(&format!(" {mention} ")),
                    None => {
                        text.push_str(&format!(" {} ", resource.uri));
                        attach(&resource.uri, &resource.text);
                    }
                },
                _ => return Err(PromptError::Kind("binary content")),
            },
            ContentBlock::Image(_) => return Err(PromptError::Kind("pictures")),
            ContentBlock::Audio(_) => return Err(PromptError::Kind("recordings")),
            _ => return Err(PromptError::Kind("this kind of content")),
        }
    }
    let text = format!("{}{material}", text.trim());
    match text.len() {
        0 => Err(PromptError::Empty),
        length if length > MAX_PROMPT_BYTES => Err(PromptError::Length(length)),
        _ if text.contains('\0') => Err(PromptError::Nul),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn text_of(blocks: Value) -> Result<String, PromptError> {
        let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).expect("blocks");
        prompt_text(Path::new("/home/ada/notes"), &blocks)
    }

    #[test]
    fn files_of_the_volume_are_mentioned() {
        let link = |uri: &str| json!({"type": "resource_link", "name": "x", "uri": uri});
        let blocks = json!([
            {"type": "text", "text": "Compare"},
            link("file:///home/ada/notes/a.md"),
            {"type": "text", "text": "with"},
            link("file:///home/ada/notes/my%20plan.md#L3"),
            {"type": "text", "text": "and"},
            link("file:///etc/passwd"),
        ]);
        let text = text_of(blocks).expect("a text");
        assert_eq!(text, "Compare @a.md with @\"my plan.md\" and file:///etc/passwd");
    }

    #[test]
    fn content_of_other_files_is_fenced() {
        let resource = json!({"uri": "file:///tmp/x.py", "text": "```\nprint(1)\n```", "mimeType": "text/x-python"});
        let text = text_of(json!([
            {"type": "text", "text": "Explain"}, {"type": "resource", "resource": resource},
        ]));
        let wanted = "Explain file:///tmp/x.py\n\nContent of file:///tmp/x.py:\n\n````\n```\nprint(1)\n```\n````";
        assert_eq!(text.expect("a text"), wanted);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert_eq!(text_of(json!([])), Err(PromptError::Empty));
        let image = json!([{"type": "image", "data": "", "mimeType": "image/png"}]);
        assert_eq!(text_of(image), Err(PromptError::Kind("pictures")));
        let long = json!([{"type": "text", "text": "x".repeat(MAX_PROMPT_BYTES + 1)}]);
        assert_eq!(text_of(long), Err(PromptError::Length(MAX_PROMPT_BYTES + 1)));
        assert_eq!(text_of(json!([{"type": "text", "text": "a\u{0}"}])), Err(PromptError::Nul));
    }
}
