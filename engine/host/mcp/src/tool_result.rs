//! Converts results of server tools to text and attachments.

use crate::{MAX_RESULT_BYTES, McpToolResult};
use base64::Engine;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

const UNSUPPORTED_CONTENT_TEXT: &str = "(something that is not understood here)";

/// Returns the start of a text, at most `most` bytes.
pub(crate) fn truncate_text(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Converts a tool's result; `None` if it's larger than [`MAX_RESULT_BYTES`].
pub(crate) fn convert_result(result: CallToolResult) -> Option<McpToolResult> {
    let spoken = result.content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
    let mut said = convert_blocks(result.content)?;
    said.failed = result.is_error == Some(true);
    // Servers repeat structured content as text. Read it only if they don't.
    if let Some(structured) = result.structured_content.filter(|_| !spoken) {
        said.push_line(&structured.to_string());
    }
    (said.total_bytes() <= MAX_RESULT_BYTES).then_some(said)
}

/// Converts content to text and attachments; `None` if it's larger than [`MAX_RESULT_BYTES`].
pub(crate) fn convert_blocks(blocks: Vec<ContentBlock>) -> Option<McpToolResult> {
    let mut said = McpToolResult::default();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => said.push_line(&text.text),
            ContentBlock::Image(image) => said.attach("a picture", &image.mime_type, &image.data),
            ContentBlock::Audio(audio) => said.attach("a sound", &audio.mime_type, &audio.data),
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    said.push_line(&uri);
                    said.push_line(&text);
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    said.push_line(&uri);
                    said.attach("a file", mime_type.as_deref().unwrap_or("application/octet-stream"), &blob);
                }
                _ => said.push_line(UNSUPPORTED_CONTENT_TEXT),
            },
            ContentBlock::ResourceLink(link) => said.push_line(&format!("{}: {}", link.name, link.uri)),
            // Newer servers may send content that this version of the protocol doesn't know.
            _ => said.push_line(UNSUPPORTED_CONTENT_TEXT),
        }
        if said.total_bytes() > MAX_RESULT_BYTES {
            return None;
        }
    }
    Some(said)
}

impl McpToolResult {
    fn push_line(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn attach(&mut self, what: &str, mime: &str, data: &str) {
        let mime = truncate_text(mime, 100);
        match base64::engine::general_purpose::STANDARD.decode(data.trim_ascii()) {
            Ok(bytes) => {
                self.push_line(&format!("({what}, {mime}, {} bytes)", bytes.len()));
                self.attached.push((mime.to_owned(), bytes));
            }
            Err(_) => self.push_line(&format!("({what}, {mime}, that is damaged)")),
        }
    }

    fn total_bytes(&self) -> usize {
        self.text.len() + self.attached.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }
}
