//! What a tool of a server said, as text and what lies beside it.

use crate::{RESULT, Said};
use base64::Engine;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

const UNKNOWN: &str = "(something that is not understood here)";

/// The beginning of a text, at most so many bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// A result, unless it is larger than [`RESULT`].
pub(crate) fn said(result: CallToolResult) -> Option<Said> {
    let mut said = Said { failed: result.is_error == Some(true), ..Said::default() };
    let spoken = result.content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
    for block in result.content {
        match block {
            ContentBlock::Text(text) => said.line(&text.text),
            ContentBlock::Image(image) => said.attach("a picture", &image.mime_type, &image.data),
            ContentBlock::Audio(audio) => said.attach("a sound", &audio.mime_type, &audio.data),
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    said.line(&uri);
                    said.line(&text);
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    said.line(&uri);
                    said.attach("a file", mime_type.as_deref().unwrap_or("application/octet-stream"), &blob);
                }
                _ => said.line(UNKNOWN),
            },
            ContentBlock::ResourceLink(link) => said.line(&format!("{}: {}", link.name, link.uri)),
            // Newer servers may say what this version of the protocol does not know.
            _ => said.line(UNKNOWN),
        }
        if said.size() > RESULT {
            return None;
        }
    }
    // Servers say what is structured as text, too; those that do not are read here.
    if let Some(structured) = result.structured_content.filter(|_| !spoken) {
        said.line(&structured.to_string());
    }
    (said.size() <= RESULT).then_some(said)
}

impl Said {
    fn line(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn attach(&mut self, what: &str, mime: &str, data: &str) {
        let mime = cut(mime, 100);
        match base64::engine::general_purpose::STANDARD.decode(data.trim_ascii()) {
            Ok(bytes) => {
                self.line(&format!("({what}, {mime}, {} bytes)", bytes.len()));
                self.attached.push((mime.to_owned(), bytes));
            }
            Err(_) => self.line(&format!("({what}, {mime}, that is damaged)")),
        }
    }

    fn size(&self) -> usize {
        self.text.len() + self.attached.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }
}
