//! Converts results of server tools to text and attachments.

use crate::{MAX_RESULT_BYTES, McpToolResult};
use base64::Engine;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

const UNSUPPORTED_CONTENT_TEXT: &str = "(something that is not understood here)";

/// Returns the start of a text, at most `most` bytes.
pub(crate) fn truncate_text(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Returns the data that a block attaches, in base64.
fn attached_data(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Image(image) => Some(&image.data),
        ContentBlock::Audio(audio) => Some(&audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::BlobResourceContents { blob, .. } => Some(blob),
            _ => None,
        },
        _ => None,
    }
}

/// Returns structured content without the data that blocks attach; some servers repeat it there.
fn without_attached(value: Value, attached: &[String]) -> Value {
    match value {
        Value::String(text) if attached.contains(&text) => Value::from("(attached)"),
        Value::Array(items) => items.into_iter().map(|item| without_attached(item, attached)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, without_attached(field, attached))).collect()
        }
        other => other,
    }
}

/// Converts a tool's result; `None` if it's larger than [`MAX_RESULT_BYTES`].
pub(crate) fn convert_result(result: CallToolResult) -> Option<McpToolResult> {
    let spoken = result.content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
    let structured = result.structured_content.filter(|_| !spoken).map(|structured| {
        let attached: Vec<String> = result.content.iter().filter_map(attached_data).map(str::to_owned).collect();
        without_attached(structured, &attached)
    });
    let mut said = convert_blocks(result.content)?;
    said.failed = result.is_error == Some(true);
    // Servers repeat structured content as text. Read it only if they don't.
    if let Some(structured) = structured {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn attached_data_is_no_text_too() {
        let picture = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw=="});
        let file = json!({"uri": "doc://a", "mimeType": "application/zip", "blob": "UEsDBA=="});
        let file = json!({"type": "resource", "resource": file});
        let structured = json!({"content": [picture, file], "pages": 2});
        let result = json!({"content": [picture, file], "structuredContent": structured});
        let said = convert_result(serde_json::from_value(result).expect("a result")).expect("small");
        assert_eq!(said.attached.len(), 2);
        assert!(said.text.contains("\"pages\":2") && said.text.contains("(attached)"), "{}", said.text);
        assert!(!said.text.contains("iVBORw") && !said.text.contains("UEsDBA"), "{}", said.text);
    }
}
