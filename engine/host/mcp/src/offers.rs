//! Prompts and resources of a server: lists them within limits, and reads their text.

use crate::connection::{MAX_LIST_PAGES, McpClient, McpConnection};
use crate::tool_result::{convert_blocks, truncate_text};
use crate::{MAX_RESULT_BYTES, McpError, McpToolResult, OFFER_TIMEOUT, PendingMcpResponse};
use agent::model_context;
use agent::prompt_quote::single_line;
use agent::server_material::{
    MAX_MATERIAL_BYTES, MAX_PROMPT_ARGUMENTS, ServerMaterial, ServerOffer, ServerPrompt, ServerPromptArgument,
    ServerResource, resource_mention,
};
use agent::tool_job::ToolOutcome;
use rmcp::ServiceError;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, PaginatedRequestParams, Prompt,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    Role,
};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// Maximum number of prompts listed from one server.
const MAX_PROMPTS_PER_SERVER: usize = 200;
/// Maximum number of resources, and of templates, listed from one server.
const MAX_RESOURCES_PER_SERVER: usize = 1_000;
/// Maximum length of the name of a prompt, an argument or a resource in bytes.
const MAX_OFFER_NAME_BYTES: usize = 128;
/// Maximum length of a title in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Maximum length of a description in characters.
const MAX_ABOUT_CHARS: usize = 1_000;
/// How long a server may take beside the limit for a text, because it may have to be started again.
const RESTART_ALLOWANCE: Duration = Duration::from_secs(15);
/// Maximum number of reasons why something isn't offered.
const MAX_LEFT_OUT: usize = 20;

/// Why a server's prompt or resource isn't offered.
#[derive(Debug, thiserror::Error)]
enum OfferError {
    #[error("the prompt {name} is left out: names have 1 to {MAX_OFFER_NAME_BYTES} bytes and no control characters")]
    PromptName { name: String },
    #[error("the prompt {name} is left out: it has more than {MAX_PROMPT_ARGUMENTS} arguments")]
    TooManyArguments { name: String },
    #[error("the resource {uri} is left out: a message can't name an address like this")]
    ResourceAddress { uri: String },
    #[error("only the first {most} {what} are listed")]
    TooMany { what: &'static str, most: usize },
    #[error("its {what} can't be listed: {why}")]
    Unlisted { what: &'static str, why: McpError },
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_OFFER_NAME_BYTES && single_line(name, usize::MAX) == name
}

fn line(text: Option<String>, most: usize) -> String {
    let text = text.unwrap_or_default();
    // A text may be huge; what is cut off here isn't shown either.
    single_line(truncate_text(&text, 8 * most), most)
}

/// Converts a prompt of the protocol.
///
/// # Errors
/// Returns an error if a user couldn't call it.
fn convert_prompt(prompt: Prompt) -> Result<ServerPrompt, OfferError> {
    let arguments = prompt.arguments.unwrap_or_default();
    let shown = single_line(truncate_text(&prompt.name, 4 * MAX_OFFER_NAME_BYTES), MAX_OFFER_NAME_BYTES);
    if !is_plain_name(&prompt.name) || arguments.iter().any(|argument| !is_plain_name(&argument.name)) {
        return Err(OfferError::PromptName { name: shown });
    }
    if arguments.len() > MAX_PROMPT_ARGUMENTS {
        return Err(OfferError::TooManyArguments { name: shown });
    }
    let argument = |argument: rmcp::model::PromptArgument| ServerPromptArgument {
        name: argument.name,
        description: line(argument.description.or(argument.title), MAX_ABOUT_CHARS),
        is_needed: argument.required == Some(true),
    };
    Ok(ServerPrompt {
        name: prompt.name,
        title: line(prompt.title, MAX_TITLE_CHARS),
        description: line(prompt.description, MAX_ABOUT_CHARS),
        arguments: arguments.into_iter().map(argument).collect(),
    })
}

/// Converts a resource or template, if its address can be mentioned.
fn convert_resource(
    server: &str,
    (uri, name, title): (String, String, Option<String>),
    (description, mime): (Option<String>, Option<String>),
) -> Result<ServerResource, OfferError> {
    let is_plain = single_line(truncate_text(&uri, 2 * model_context::MAX_MENTION_BYTES), usize::MAX) == uri;
    if !is_plain || resource_mention(server, &uri).is_none() {
        return Err(OfferError::ResourceAddress { uri: line(Some(uri), MAX_TITLE_CHARS) });
    }
    let name = line(Some(title.unwrap_or(name)), MAX_TITLE_CHARS);
    Ok(ServerResource {
        uri,
        name,
        description: line(description, MAX_ABOUT_CHARS),
        mime: line(mime, MAX_OFFER_NAME_BYTES),
    })
}

/// A list with limits on what a server sends.
struct BoundedList<T> {
    what: &'static str,
    most: usize,
    items: Vec<T>,
    left_out: Vec<OfferError>,
}

impl<T> BoundedList<T> {
    fn new(what: &'static str, most: usize) -> BoundedList<T> {
        BoundedList { what, most, items: Vec::new(), left_out: Vec::new() }
    }

    /// Adds a page, and returns whether there is room for another.
    fn take_page<P>(&mut self, page: Vec<P>, convert: impl Fn(P) -> Result<T, OfferError>) -> bool {
        for item in page {
            if self.items.len() >= self.most {
                let (what, most) = (self.what, self.most);
                self.left_out.push(OfferError::TooMany { what, most });
                return false;
            }
            match convert(item) {
                Ok(item) => self.items.push(item),
                Err(why) if self.left_out.len() < MAX_LEFT_OUT => self.left_out.push(why),
                Err(_) => {}
            }
        }
        true
    }
}

/// Requests all pages of a list within the limits.
macro_rules! read_pages {
    ($running:expr, $request:ident, $items:ident, $list:expr, $convert:expr) => {{
        let mut cursor = None;
        for _ in 0..MAX_LIST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let found = $running.peer().$request(Some(page)).await?;
            cursor = found.next_cursor;
            if !$list.take_page(found.$items, $convert) || cursor.is_none() {
                break;
            }
        }
        Ok::<_, ServiceError>($list)
    }};
}

async fn list_prompts(running: &McpClient) -> Result<BoundedList<ServerPrompt>, ServiceError> {
    let mut list = BoundedList::new("prompts", MAX_PROMPTS_PER_SERVER);
    read_pages!(running, list_prompts, prompts, list, convert_prompt)
}

async fn list_resources(running: &McpClient, server: &str) -> Result<BoundedList<ServerResource>, ServiceError> {
    let mut list = BoundedList::new("resources", MAX_RESOURCES_PER_SERVER);
    let convert =
        |one: Resource| convert_resource(server, (one.uri, one.name, one.title), (one.description, one.mime_type));
    read_pages!(running, list_resources, resources, list, convert)
}

async fn list_templates(running: &McpClient, server: &str) -> Result<BoundedList<ServerResource>, ServiceError> {
    let mut list = BoundedList::new("templates", MAX_RESOURCES_PER_SERVER);
    let convert = |one: ResourceTemplate| {
        convert_resource(server, (one.uri_template, one.name, one.title), (one.description, one.mime_type))
    };
    read_pages!(running, list_resource_templates, resource_templates, list, convert)
}

/// Returns the start of a text, with a notice if more is left out.
fn bounded_text(text: String) -> String {
    if text.len() <= MAX_MATERIAL_BYTES {
        return text;
    }
    let kept = truncate_text(&text, MAX_MATERIAL_BYTES);
    format!("{kept}\n… {} of {} bytes are left out here …", text.len() - kept.len(), text.len())
}

/// Returns what isn't text, as words for an error.
fn attached_kinds(result: &McpToolResult) -> String {
    let kinds: Vec<&str> = result.attached.iter().map(|(mime, _)| mime.as_str()).take(3).collect();
    format!("is binary ({})", kinds.join(", "))
}

/// Converts a prompt's messages to text. Each has a heading with its role, if there are several.
fn prompt_text(result: GetPromptResult, server: &str) -> Result<Option<String>, McpError> {
    let several = result.messages.len() > 1;
    let mut text = String::new();
    for message in result.messages {
        let converted = convert_blocks(vec![message.content]);
        let converted = converted.ok_or_else(|| McpError::ResultTooLarge(server.to_owned()))?;
        if !text.is_empty() {
            text.push('\n');
        }
        if several {
            text.push_str(if message.role == Role::Assistant { "The assistant:\n" } else { "The user:\n" });
        }
        text.push_str(&converted.text);
        if text.len() > MAX_RESULT_BYTES {
            return Err(McpError::ResultTooLarge(server.to_owned()));
        }
    }
    Ok((!text.trim().is_empty()).then_some(text))
}

/// Converts the contents of a resource to text.
fn resource_text(result: ReadResourceResult, what: &str, server: &str) -> Result<Option<String>, McpError> {
    let several = result.contents.len() > 1;
    let is_text = |one: &ResourceContents| matches!(one, ResourceContents::TextResourceContents { .. });
    let has_text = result.contents.iter().any(is_text);
    let blocks = result.contents.into_iter().map(|contents| match contents {
        // One text is all that there is to see; of several, each stands under its address.
        ResourceContents::TextResourceContents { text, .. } if !several => ContentBlock::text(text),
        contents => ContentBlock::resource(contents),
    });
    let converted = convert_blocks(blocks.collect()).ok_or_else(|| McpError::ResultTooLarge(server.to_owned()))?;
    if !has_text && !converted.attached.is_empty() {
        return Err(McpError::NotText { what: what.to_owned(), why: attached_kinds(&converted) });
    }
    Ok(has_text.then_some(converted.text))
}

/// Texts of prompts and resources that are being read. Dropping it cancels the requests at the servers.
pub struct PendingMaterial {
    pending: Vec<(ServerMaterial, PendingMcpResponse<String>)>,
    limit: Duration,
}

impl PendingMaterial {
    pub(crate) fn new(pending: Vec<(ServerMaterial, PendingMcpResponse<String>)>, limit: Duration) -> PendingMaterial {
        PendingMaterial { pending, limit: limit.saturating_add(RESTART_ALLOWANCE) }
    }

    /// Waits for all texts, or why there are none. Not much longer than the limit altogether.
    pub fn results(self) -> Vec<(ServerMaterial, Result<String, McpError>)> {
        let until = Instant::now() + self.limit;
        let one = |(wanted, pending): (ServerMaterial, PendingMcpResponse<String>)| {
            let result = pending.wait(until.saturating_duration_since(Instant::now()));
            let (ServerMaterial::Prompt { server, .. } | ServerMaterial::Resource { server, .. }) = &wanted;
            let late = || McpError::TimedOut { server: server.clone(), seconds: self.limit.as_secs() };
            let result = result.unwrap_or_else(|| Err(late()));
            (wanted, result)
        };
        self.pending.into_iter().map(one).collect()
    }

    /// Waits like [`PendingMaterial::results`], for outcomes that a model can read.
    pub fn wait(self) -> Vec<(ServerMaterial, ToolOutcome)> {
        let outcome = |(wanted, result): (ServerMaterial, Result<String, McpError>)| {
            let success = result.is_ok();
            let text = result.unwrap_or_else(|why| why.to_string());
            (wanted, ToolOutcome { success, text, ..ToolOutcome::default() })
        };
        self.results().into_iter().map(outcome).collect()
    }
}

impl McpConnection {
    /// Lists the prompts and resources of the server. What fails is left out with a reason.
    pub(crate) async fn list_offers(&self) -> Result<ServerOffer, McpError> {
        let running = self.ensure_running().await?;
        let server = self.server().name.as_str();
        let mut offer = ServerOffer { server: server.to_owned(), ..ServerOffer::default() };
        let Some(info) = running.peer().peer_info() else { return Ok(offer) };
        let mut left_out = Vec::new();
        let late = || self.timeout_error(OFFER_TIMEOUT);
        if info.capabilities.prompts.is_some() {
            let listed = tokio::time::timeout(OFFER_TIMEOUT, list_prompts(&running)).await;
            let listed = match listed {
                Ok(listed) => self.check_response(listed, &running).await,
                Err(_) => Err(late()),
            };
            match listed {
                Ok(list) => (offer.prompts, left_out) = (list.items, list.left_out),
                Err(why) => left_out.push(OfferError::Unlisted { what: "prompts", why }),
            }
        }
        if info.capabilities.resources.is_some() {
            let work = async {
                let resources = list_resources(&running, server).await?;
                // Not every server that has resources knows templates.
                let templates = list_templates(&running, server).await;
                Ok((resources, templates.unwrap_or_else(|_| BoundedList::new("templates", 0))))
            };
            let listed = match tokio::time::timeout(OFFER_TIMEOUT, work).await {
                Ok(listed) => self.check_response(listed, &running).await,
                Err(_) => Err(late()),
            };
            match listed {
                Ok((resources, templates)) => {
                    (offer.resources, offer.templates) = (resources.items, templates.items);
                    left_out.extend(resources.left_out.into_iter().chain(templates.left_out));
                }
                Err(why) => left_out.push(OfferError::Unlisted { what: "resources", why }),
            }
        }
        offer.left_out = left_out.into_iter().map(|why| format!("the MCP server {server}: {why}")).collect();
        Ok(offer)
    }

    /// Reads the text of a prompt or a resource.
    pub(crate) async fn read_material(&self, material: ServerMaterial, limit: Duration) -> Result<String, McpError> {
        let running = self.ensure_running().await?;
        let (server, what) = (self.server().name.clone(), material.source());
        let late = |_| self.timeout_error(limit);
        let unfinished = || McpError::Refused {
            server: server.clone(),
            why: "it wants more from the user, which is not offered to it".to_owned(),
        };
        let text = match material {
            ServerMaterial::Prompt { prompt, arguments, .. } => {
                let arguments: Map<String, Value> =
                    arguments.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
                let params = GetPromptRequestParams::new(prompt).with_arguments(arguments);
                // Dropping this tells the server that the request was canceled.
                let work = running.peer().get_prompt_once(params);
                let done = tokio::time::timeout(limit, work).await.map_err(late)?;
                match self.check_response(done, &running).await? {
                    GetPromptResponse::Complete(result) => prompt_text(result, &server)?,
                    _ => return Err(unfinished()),
                }
            }
            ServerMaterial::Resource { uri, .. } => {
                let work = running.peer().read_resource_once(ReadResourceRequestParams::new(uri));
                let done = tokio::time::timeout(limit, work).await.map_err(late)?;
                match self.check_response(done, &running).await? {
                    ReadResourceResponse::Complete(result) => resource_text(result, &what, &server)?,
                    _ => return Err(unfinished()),
                }
            }
        };
        text.map(bounded_text).ok_or_else(|| McpError::NotText { what, why: "is empty".to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prompt(value: Value) -> Result<ServerPrompt, OfferError> {
        convert_prompt(serde_json::from_value(value).expect("a prompt"))
    }

    #[test]
    fn names_and_texts_of_prompts_are_bounded() {
        let fine = prompt(json!({"name": "review", "title": "Re\u{202e}view\u{1b}[2J", "description": "a\nb",
            "arguments": [{"name": "code", "required": true}, {"name": "tone", "title": "Tone"}]}));
        let fine = fine.expect("a prompt");
        assert_eq!((fine.title.as_str(), fine.description.as_str()), ("Review [2J", "a b"));
        assert_eq!(fine.arguments[1].description, "Tone");
        assert!(fine.arguments[0].is_needed && !fine.arguments[1].is_needed);
        let many: Vec<Value> = (0..31).map(|number| json!({"name": number.to_string()})).collect();
        for wrong in [
            json!({"name": ""}),
            json!({"name": "a\nb"}),
            json!({"name": "a\u{202e}b"}),
            json!({"name": "x".repeat(129)}),
            json!({"name": "x", "arguments": [{"name": "a\u{7}"}]}),
            json!({"name": "x", "arguments": many}),
        ] {
            assert!(prompt(wrong.clone()).is_err(), "{wrong}");
        }
        let long = prompt(json!({"name": "x", "description": "y".repeat(1 << 20)})).expect("a prompt");
        assert_eq!(long.description.chars().count(), MAX_ABOUT_CHARS + 1);
    }

    #[test]
    fn only_addresses_that_a_message_can_name_are_offered() {
        let convert = |uri: &str| convert_resource("s", (uri.to_owned(), "n".to_owned(), None), (None, None)).is_ok();
        assert!(convert("doc://a") && convert("doc://a b") && convert("demo://{id}"));
        assert!(!convert("doc://\"a b\"") && !convert("doc://\n") && !convert(&format!("doc://{}", "x".repeat(400))));
    }

    #[test]
    fn what_a_server_sends_becomes_text() {
        let text = |value: Value| prompt_text(serde_json::from_value(value).expect("a result"), "s").expect("small");
        let one = json!({"role": "user", "content": {"type": "text", "text": "Look."}});
        assert_eq!(text(json!({"messages": [one]})).as_deref(), Some("Look."));
        let other =
            json!({"role": "assistant", "content": {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}});
        assert_eq!(
            text(json!({"messages": [one, other]})).as_deref(),
            Some("The user:\nLook.\nThe assistant:\n(a picture, image/png, 4 bytes)")
        );
        assert_eq!(text(json!({"messages": []})), None);
        let read = |value: Value| resource_text(serde_json::from_value(value).expect("a result"), "doc://a", "s");
        let texts = json!([{"uri": "doc://a", "text": "A"}, {"uri": "doc://b", "text": "B"}]);
        assert_eq!(read(json!({"contents": texts})), Ok(Some("doc://a\nA\ndoc://b\nB".to_owned())));
        assert_eq!(read(json!({"contents": []})), Ok(None));
        let why = read(json!({"contents": [{"uri": "doc://a", "blob": "iVBORw==", "mimeType": "image/png"}]}));
        assert_eq!(
            why.expect_err("binary").to_string(),
            "doc://a is binary (image/png); a message can include text only"
        );
        let cut = bounded_text("ä".repeat(MAX_MATERIAL_BYTES));
        assert!(cut.len() < MAX_MATERIAL_BYTES + 100 && cut.contains("of 204800 bytes are left out"), "{}", cut.len());
    }
}
