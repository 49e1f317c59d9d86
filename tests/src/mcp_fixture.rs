//! Serves MCP over HTTP as `tracebook serve` does, with the tools, resources and prompts that MCP's conformance suite
//! calls by fixed names.
//!
//! `mcp-fixture PROGRAM WORKSPACE` prints its address. What the suite doesn't name is answered by the product's server.
//! It checks no token: that part of the suite runs against `tracebook serve` itself.
#![expect(deprecated, reason = "the suite tests sampling, log levels and subscriptions")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, ContentBlock,
    CreateMessageRequestParams, ElicitRequestParams, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, Tool, UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use serve::{CommandCall, CommandOutcome, McpPermissions, NotebookMcpServer, WorkspaceCommands, mcp_http_service};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// A red picture of one pixel, and a sound without samples.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
/// Time between messages of a tool, as the suite describes it.
const STEP: Duration = Duration::from_millis(50);

/// Performs commands in a program each.
struct ProgramCommands {
    program: String,
    workspace: String,
}

impl WorkspaceCommands for ProgramCommands {
    fn perform(&self, call: &CommandCall, on_line: &mut dyn FnMut(&str)) -> CommandOutcome {
        let failed =
            |error: std::io::Error| CommandOutcome { code: 3, messages: error.to_string(), ..Default::default() };
        let mut command = Command::new(&self.program);
        command.arg("--workspace").arg(&self.workspace).args(&call.words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let done = command.spawn().and_then(|mut child| {
            if let Some(mut input) = child.stdin.take() {
                input.write_all(&call.input)?;
            }
            child.wait_with_output()
        });
        let output = match done {
            Ok(output) => output,
            Err(error) => return failed(error),
        };
        String::from_utf8_lossy(&output.stdout).lines().for_each(on_line);
        let mut outcome = CommandOutcome { code: output.status.code().unwrap_or(3) as u8, ..Default::default() };
        outcome.push_output(&output.stdout);
        outcome.push_messages(&output.stderr);
        outcome
    }
}

#[derive(Clone)]
struct FixtureServer(NotebookMcpServer);

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn resource(uri: &str, media_type: &str, text: &str) -> ResourceContents {
    ResourceContents::text(text, uri).with_mime_type(media_type)
}

fn fixture_tools() -> Result<Vec<Tool>, ErrorData> {
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let none = || json!({"type": "object", "properties": {}});
    let schema_2020 = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"address": {
            "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": false,
    });
    let rows = [
        ("test_simple_text", none()),
        ("test_image_content", none()),
        ("test_audio_content", none()),
        ("test_embedded_resource", none()),
        ("test_multiple_content_types", none()),
        ("test_tool_with_logging", none()),
        ("test_error_handling", none()),
        ("test_tool_with_progress", none()),
        ("test_sampling", text("prompt")),
        ("test_elicitation", text("message")),
        ("test_elicitation_sep1034_defaults", none()),
        ("test_elicitation_sep1330_enums", none()),
        ("test_reconnection", none()),
        ("json_schema_2020_12_tool", schema_2020),
    ];
    let tool = |(name, schema): (&'static str, Value)| {
        Ok(Tool::new(name, "A tool of the conformance suite", Arc::new(from_json::<rmcp::model::JsonObject>(schema)?)))
    };
    rows.into_iter().map(tool).collect()
}

/// Asks the client's user with a form, and says what came back.
async fn elicited(context: &RequestContext<RoleServer>, message: &str, schema: Value) -> Result<String, ErrorData> {
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: from_json(schema)?,
    };
    let answer = context.peer.create_elicitation(form).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(format!("action={:?}, content={}", answer.action, answer.content.unwrap_or_default()))
}

/// Calls a tool of the suite; `None` if it isn't one.
async fn call_fixture(
    name: &str,
    arguments: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResult>, ErrorData> {
    let done = |words: String| Ok(Some(CallToolResult::success(vec![ContentBlock::text(words)])));
    let shown = |content: Vec<ContentBlock>| Ok(Some(CallToolResult::success(content)));
    let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    match name {
        "test_simple_text" => done("This is a simple text response for testing.".to_owned()),
        "test_image_content" => shown(vec![ContentBlock::image(PNG, "image/png")]),
        "test_audio_content" => shown(vec![ContentBlock::audio(WAV, "audio/wav")]),
        "test_embedded_resource" => {
            let embedded = resource("test://embedded-resource", "text/plain", "This is an embedded resource content.");
            shown(vec![ContentBlock::resource(embedded)])
        }
        "test_multiple_content_types" => {
            let embedded =
                resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
            shown(vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                ContentBlock::resource(embedded),
            ])
        }
        "test_tool_with_logging" => {
            for words in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(words));
                let sent = context.peer.notify_logging_message(message).await;
                sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                tokio::time::sleep(STEP).await;
            }
            done("logged".to_owned())
        }
        "test_error_handling" => {
            Ok(Some(CallToolResult::error(vec![ContentBlock::text("This tool intentionally returns an error")])))
        }
        "test_tool_with_progress" => {
            for step in [0.0, 50.0, 100.0] {
                if let Some(token) = context.meta.get_progress_token() {
                    let progress = ProgressNotificationParam::new(token, step).with_total(100.0);
                    let sent = context.peer.notify_progress(progress).await;
                    sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                }
                tokio::time::sleep(STEP).await;
            }
            done("done".to_owned())
        }
        "test_sampling" => {
            let content = json!({"type": "text", "text": text("prompt")});
            let request = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100});
            let answer = context.peer.create_message(from_json::<CreateMessageRequestParams>(request)?).await;
            let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            done(format!("LLM response: {}", serde_json::to_value(&answer).unwrap_or_default()))
        }
        "test_elicitation" => {
            let properties = json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            });
            let schema = json!({"type": "object", "properties": properties, "required": ["username", "email"]});
            done(format!("User response: {}", elicited(context, &text("message"), schema).await?))
        }
        "test_elicitation_sep1034_defaults" => {
            let properties = json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            });
            let schema = json!({"type": "object", "properties": properties});
            done(format!("Elicitation completed: {}", elicited(context, "Defaults", schema).await?))
        }
        "test_elicitation_sep1330_enums" => {
            let options = json!(["option1", "option2", "option3"]);
            let titled = json!([
                {"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ]);
            let names = json!(["Option One", "Option Two", "Option Three"]);
            let properties = json!({
                "untitledSingle": {"type": "string", "enum": options},
                "titledSingle": {"type": "string", "oneOf": titled},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled}},
            });
            let schema = json!({"type": "object", "properties": properties});
            done(format!("Elicitation completed: {}", elicited(context, "Choices", schema).await?))
        }
        "test_reconnection" => {
            tokio::time::sleep(STEP).await;
            done("Reconnection test completed successfully".to_owned())
        }
        "json_schema_2020_12_tool" => done(arguments.to_string()),
        _ => Ok(None),
    }
}

/// Reads a resource of the suite; `None` if it isn't one.
fn read_fixture(uri: &str) -> Option<ResourceContents> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    Some(match (uri, id) {
        (_, Some(id)) => {
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            resource(uri, "application/json", &data.to_string())
        }
        ("test://static-binary", None) => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        ("test://static-text" | "test://watched-resource", None) => {
            resource(uri, "text/plain", "This is the content of the static text resource.")
        }
        _ => return None,
    })
}

/// Fills a prompt of the suite; `None` if it isn't one.
fn prompt_fixture(request: &GetPromptRequestParams) -> Option<GetPromptResult> {
    let text = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let say = |words: &str| PromptMessage::new_text(Role::User, words);
    let show = |content: ContentBlock| PromptMessage::new(Role::User, content);
    Some(GetPromptResult::new(match request.name.as_str() {
        "test_simple_prompt" => vec![say("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![say(&format!("Prompt with arguments: arg1='{}', arg2='{}'", text("arg1"), text("arg2")))]
        }
        "test_prompt_with_embedded_resource" => {
            let embedded = resource(&text("resourceUri"), "text/plain", "Embedded resource content for testing.");
            vec![show(ContentBlock::resource(embedded)), say("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            vec![show(ContentBlock::image(PNG, "image/png")), say("Please analyze the image above.")]
        }
        _ => return None,
    }))
}

impl ServerHandler for FixtureServer {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.0.list_tools(request, context).await?;
        listed.tools.extend(fixture_tools()?);
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        match call_fixture(&request.name, &arguments, &context).await? {
            Some(result) => Ok(CallToolResponse::Complete(result)),
            None => self.0.call_tool(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.0.list_resources(request, context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.0.list_resource_templates(request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match read_fixture(&request.uri) {
            Some(contents) => Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents]))),
            None => self.0.read_resource(request, context).await,
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match read_fixture(&request.uri) {
            Some(_) => Ok(()),
            None => self.0.subscribe(request, context).await,
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match read_fixture(&request.uri) {
            Some(_) => Ok(()),
            None => self.0.unsubscribe(request, context).await,
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.set_level(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.0.list_prompts(request, context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match prompt_fixture(&request) {
            Some(filled) => Ok(GetPromptResponse::Complete(filled)),
            None => self.0.get_prompt(request, context).await,
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.0.complete(request, context).await
    }
}

fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(program), Some(workspace)) = (words.next(), words.next()) else {
        return Err(std::io::Error::other("mcp-fixture PROGRAM WORKSPACE"));
    };
    let commands = Arc::new(ProgramCommands { program, workspace });
    let server = NotebookMcpServer::with_commands(commands, McpPermissions::default());
    let service = mcp_http_service(move || FixtureServer(server.new_session()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/mcp", listener.local_addr()?);
        axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await
    })
}
