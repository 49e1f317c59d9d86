//! One server: started when it is needed, started once more when it has ended, asked and heard.

use crate::words::{cut, said};
use crate::{DESCRIPTION, Listed, McpError, SCHEMA, START, Said, Server, TOOLS, Tool, Way};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams,
};
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Pages of a list of tools.
const PAGES: usize = 50;
/// The largest message, in bytes: a result, its pictures in base64.
const MESSAGE: usize = 16 << 20;
/// So much of what a server writes to its standard error is kept, in bytes.
const WORDS: usize = 2_000;
/// How long a server may take to end by itself.
const ENDING: Duration = Duration::from_secs(4);
/// How long the last words of a server that has ended are waited for.
const LAST: Duration = Duration::from_millis(200);

/// What a server's program sees of our environment.
const SURROUNDINGS: [&str; 12] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "SystemRoot", "TEMP", "TERM", "TMPDIR", "TZ", "USER"];

type Running = RunningService<RoleClient, ClientConfig>;

/// A configured server.
pub(crate) struct Entry {
    server: Server,
    line: tokio::sync::Mutex<Line>,
    words: Arc<Mutex<String>>,
}

/// The line to it.
#[derive(Default)]
struct Line {
    running: Option<Arc<Running>>,
    /// How often it has ended since it last did what it was asked.
    ends: u32,
}

impl Entry {
    pub(crate) fn new(server: Server) -> Entry {
        Entry { server, line: tokio::sync::Mutex::default(), words: Arc::default() }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Ends it.
    pub(crate) async fn close(&self) {
        let running = self.line.lock().await.running.take();
        // Whoever still waits for an answer holds it, too: then it ends with that.
        if let Some(mut running) = running.and_then(Arc::into_inner) {
            let _ = running.close_with_timeout(ENDING).await;
        }
    }

    pub(crate) async fn list(&self) -> Result<Listed, McpError> {
        let limit = START;
        let running = self.running().await?;
        let work = async {
            let mut listed = Listed::default();
            let mut cursor = None;
            for _ in 0..PAGES {
                let page = PaginatedRequestParams::default().with_cursor(cursor);
                let found = running.peer().list_tools(Some(page)).await?;
                for tool in found.tools {
                    if listed.tools.len() >= TOOLS {
                        listed.left_out.push(format!("only the first {TOOLS} tools are taken"));
                        return Ok(listed);
                    }
                    match taken(tool) {
                        Ok(tool) => listed.tools.push(tool),
                        Err(why) => listed.left_out.push(why),
                    }
                }
                cursor = found.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            Ok(listed)
        };
        let done = tokio::time::timeout(limit, work).await.map_err(|_| self.late(limit))?;
        self.heard(done, &running).await
    }

    pub(crate) async fn call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<Said, McpError> {
        let running = self.running().await?;
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        // When this is dropped, the server is told that nobody waits any more.
        let work = running.peer().call_tool_once(params);
        let done = tokio::time::timeout(limit, work).await.map_err(|_| self.late(limit))?;
        let name = &self.server.name;
        match self.heard(done, &running).await? {
            CallToolResponse::Complete(result) => said(result).ok_or_else(|| McpError::Large(name.clone())),
            _ => Err(McpError::Refused {
                server: name.clone(),
                why: "it wants more from the user, which is not offered to it".to_owned(),
            }),
        }
    }

    fn late(&self, limit: Duration) -> McpError {
        McpError::Late { server: self.server.name.clone(), seconds: limit.as_secs() }
    }

    /// What an answer says of the server itself.
    async fn heard<T>(&self, done: Result<T, ServiceError>, running: &Arc<Running>) -> Result<T, McpError> {
        let server = self.server.name.clone();
        let error = match done {
            Ok(done) => {
                self.line.lock().await.ends = 0;
                return Ok(done);
            }
            Err(error) => error,
        };
        match error {
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let mut line = self.line.lock().await;
                if line.running.as_ref().is_some_and(|known| Arc::ptr_eq(known, running)) {
                    line.running = None;
                    line.ends += 1;
                }
                drop(line);
                Err(McpError::Ended { server, why: self.last_words(&error.to_string()).await })
            }
            ServiceError::McpError(error) => {
                Err(McpError::Refused { server, why: cut(&error.message, DESCRIPTION).to_owned() })
            }
            error => Err(McpError::Refused { server, why: error.to_string() }),
        }
    }

    /// The line to the server, which is started if it does not run.
    async fn running(&self) -> Result<Arc<Running>, McpError> {
        let server = self.server.name.clone();
        let mut line = self.line.lock().await;
        if let Some(running) = &line.running {
            if !running.is_closed() && !running.peer().is_transport_closed() {
                return Ok(running.clone());
            }
            line.running = None;
            line.ends += 1;
        }
        if line.ends > 1 {
            return Err(McpError::Dead { server, why: self.last_words("it said nothing").await });
        }
        self.words.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let connected = match tokio::time::timeout(START, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(format!("it has not answered within {} s", START.as_secs())),
        };
        match connected {
            Ok(running) => {
                let running = Arc::new(running);
                line.running = Some(running.clone());
                Ok(running)
            }
            Err(why) => Err(McpError::Start { server, why: self.last_words(&why).await }),
        }
    }

    async fn connect(&self) -> Result<Running, String> {
        let me = Implementation::new("tracebook", env!("CARGO_PKG_VERSION"));
        let config = ClientConfig::new(ClientCapabilities::default(), me);
        match &self.server.way {
            Way::Program { command, args, env, folder } => {
                let mut program = tokio::process::Command::new(command);
                let seen = SURROUNDINGS.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
                program.args(args).env_clear().envs(seen).envs(env);
                if let Some(folder) = folder {
                    program.current_dir(folder);
                }
                // A terminal's Ctrl-C is for us.
                #[cfg(unix)]
                program.process_group(0);
                let started = TokioChildProcess::builder(program).stderr(Stdio::piped()).spawn();
                let (process, errors) = started.map_err(|error| format!("{error}: {command}"))?;
                if let Some(errors) = errors {
                    tokio::spawn(keep_tail(errors, self.words.clone()));
                }
                config.serve(process).await.map_err(|error| error.to_string())
            }
            Way::Http { url, headers } => {
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return Err(format!("its address begins with neither http:// nor https://: {url}"));
                }
                let mut sent = HashMap::new();
                for (name, value) in headers {
                    // A value may be a secret: it is not told.
                    let wrong = || format!("the header {name} cannot be sent");
                    let header = HeaderName::try_from(name).map_err(|_| wrong())?;
                    let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
                    value.set_sensitive(true);
                    sent.insert(header, value);
                }
                let way = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(sent)
                    .max_sse_event_size(MESSAGE);
                config.serve(StreamableHttpClientTransport::from_config(way)).await.map_err(|error| error.to_string())
            }
        }
    }

    /// What went wrong, with what the server last wrote to its standard error.
    async fn last_words(&self, what: &str) -> String {
        if matches!(self.server.way, Way::Program { .. }) {
            tokio::time::sleep(LAST).await;
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        match words.trim().lines().last() {
            Some(last) => format!("{}; its last words: {}", cut(what, WORDS), cut(last, 400)),
            None => cut(what, WORDS).to_owned(),
        }
    }
}

async fn keep_tail(mut errors: tokio::process::ChildStderr, words: Arc<Mutex<String>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.push_str(&String::from_utf8_lossy(&buffer[..count]));
        if words.len() > 2 * WORDS {
            let from = words.ceil_char_boundary(words.len() - WORDS);
            words.drain(..from);
        }
    }
}

/// A tool as we keep it, or why it is left out.
fn taken(tool: rmcp::model::Tool) -> Result<Tool, String> {
    let name = tool.name.into_owned();
    if name.is_empty() || name.len() > 128 {
        return Err(format!("a tool's name has 1 to 128 bytes: {}", cut(&name, 128)));
    }
    let schema = Value::Object(Arc::unwrap_or_clone(tool.input_schema));
    if schema.to_string().len() > SCHEMA {
        return Err(format!("the schema of {name} is larger than {} kB", SCHEMA >> 10));
    }
    let description = cut(&tool.description.unwrap_or_default(), DESCRIPTION).to_owned();
    let hints = tool.annotations.unwrap_or_default();
    let reads_only = hints.read_only_hint == Some(true);
    let idempotent = reads_only || hints.idempotent_hint == Some(true);
    Ok(Tool { name, description, schema, reads_only, idempotent })
}
