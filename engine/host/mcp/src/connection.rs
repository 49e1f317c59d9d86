//! The connection to one MCP server: starts it on demand, restarts it once after an exit, and sends requests.

use crate::machine_sign_in::{self, MachineSignIn, MachineSignInError};
use crate::project_root::ProjectRoot;
use crate::required_pages::{FinishedPages, page_addresses, required_pages};
use crate::server_requests::{ActiveCalls, ServerRequestUser};
use crate::sign_in::{ServerTokens, TokenVault};
use crate::tool_result::{convert_result, truncate_text};
use crate::user_forms::{McpClientSide, ServerUsers};
use crate::{
    MAX_DESCRIPTION_BYTES, MAX_SCHEMA_BYTES, MAX_TOOLS_PER_SERVER, McpError, McpServer, McpTool, McpToolList,
    McpToolResult, McpTransport, SERVER_START_TIMEOUT,
};
use agent::config::McpOauthGrant;
use agent::server_form::FormAnswer;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{CallToolRequestParams, CallToolResponse, PaginatedRequestParams};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::auth::{AuthClient, AuthError};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClientTransportConfig,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Maximum number of pages read of a list of a server.
pub(crate) const MAX_LIST_PAGES: usize = 50;
/// Maximum size of a message in bytes: a result with its images in base64.
const MAX_SSE_EVENT_BYTES: usize = 16 << 20;
/// Maximum length in bytes of the end of a server's standard error that's kept.
const MAX_STDERR_BYTES: usize = 2_000;
/// How long a server may take to exit before it's killed.
const SERVER_STOP_TIMEOUT: Duration = Duration::from_secs(4);
/// How long to wait for the last standard error output of a server that has exited.
const STDERR_DRAIN_DELAY: Duration = Duration::from_millis(200);

/// Environment variables that a server's program inherits from Tracebook.
const INHERITED_ENV_VARS: [&str; 12] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "SystemRoot", "TEMP", "TERM", "TMPDIR", "TZ", "USER"];

pub(crate) type McpClient = RunningService<RoleClient, McpClientSide>;

/// A configured server and the connection to it.
pub(crate) struct McpConnection {
    server: McpServer,
    state: tokio::sync::Mutex<McpConnectionState>,
    stderr_tail: Arc<Mutex<String>>,
    vault: Option<Arc<dyn TokenVault>>,
    /// What renews the tokens of a client that signs in by itself.
    machine: Mutex<Option<Arc<MachineSignIn>>>,
    users: ServerUsers,
    calls: ActiveCalls,
    finished_pages: FinishedPages,
    /// What a server that is a program gets as its root.
    root: ProjectRoot,
}

/// The current client, if connected, and the number of exits.
#[derive(Default)]
struct McpConnectionState {
    client: Option<Arc<McpClient>>,
    /// Number of exits since the last successful call.
    exit_count: u32,
}

impl McpConnection {
    pub(crate) fn new(server: McpServer, vault: Option<Arc<dyn TokenVault>>, users: ServerUsers) -> McpConnection {
        let (state, stderr_tail, calls) = (tokio::sync::Mutex::default(), Arc::default(), ActiveCalls::default());
        let (machine, root, finished_pages) = (Mutex::default(), ProjectRoot::default(), FinishedPages::default());
        McpConnection { server, state, stderr_tail, vault, machine, users, calls, finished_pages, root }
    }

    /// Sets the folder of the project for which requests follow.
    pub(crate) fn enter_project(&self, folder: PathBuf) {
        self.root.enter(folder);
    }

    /// Tells a running server if its root is another one.
    async fn tell_root(&self, running: &McpClient) {
        let is_program = matches!(self.server.way, McpTransport::Program { .. });
        if is_program && self.root.take_news() {
            // A server that can't be told is found to have ended by the request that follows.
            let _ = running.peer().notify_roots_list_changed().await;
        }
    }

    /// Returns the tokens of the server, if it's remote.
    fn tokens(&self) -> Option<ServerTokens> {
        match &self.server.way {
            McpTransport::Http { url, .. } => Some(ServerTokens::new(self.vault.clone()?, url)),
            McpTransport::Program { .. } => None,
        }
    }

    fn signs_in_by_itself(&self) -> bool {
        match &self.server.way {
            McpTransport::Http { sign_in, .. } => sign_in.grant != McpOauthGrant::AuthorizationCode,
            McpTransport::Program { .. } => false,
        }
    }

    fn client_error(&self, why: impl std::fmt::Display) -> McpError {
        McpError::ClientRefused { server: self.server.name.clone(), why: why.to_string() }
    }

    /// Gets another token for a client that signs in by itself, if the present one ends soon.
    async fn renew_token(&self) -> Result<(), McpError> {
        let machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(machine) = machine else { return Ok(()) };
        let renewed = tokio::time::timeout(SERVER_START_TIMEOUT, machine.renew()).await;
        let renewed = renewed.map_err(|_| self.timeout_error(SERVER_START_TIMEOUT))?;
        renewed.map_err(|why| self.client_error(why))
    }

    /// Keeps what the server asks for, and returns what the user is told.
    async fn sign_in_error(&self, asked: AskedSignIn) -> McpError {
        if self.signs_in_by_itself() {
            return self.client_error(match asked.scope {
                Some(scope) => format!("it wants a token with more rights: {scope}"),
                None => "it doesn't take the client's token".to_owned(),
            });
        }
        if let Some(tokens) = self.tokens() {
            tokens.keep_challenge(&asked.challenge).await;
        }
        McpError::SignInNeeded { server: self.server.name.clone(), scope: asked.scope }
    }

    pub(crate) fn server(&self) -> &McpServer {
        &self.server
    }

    /// Closes the connection and ends the server.
    pub(crate) async fn close(&self) {
        let running = self.state.lock().await.client.take();
        // Pending requests also hold the client. If there are any, the server ends with them.
        if let Some(mut running) = running.and_then(Arc::into_inner) {
            // A server that doesn't exit in time is killed when `running` is dropped.
            let _ = running.close_with_timeout(SERVER_STOP_TIMEOUT).await;
        }
    }

    pub(crate) async fn list_tools(&self) -> Result<McpToolList, McpError> {
        let limit = SERVER_START_TIMEOUT;
        let running = self.ensure_running().await?;
        // Nobody asks a server for tools that says it has only other things.
        let offered = running.peer().peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        if offered.tools.is_none() && (offered.prompts.is_some() || offered.resources.is_some()) {
            return Ok(McpToolList::default());
        }
        let work = async {
            let mut listed = McpToolList::default();
            let mut cursor = None;
            for _ in 0..MAX_LIST_PAGES {
                let page = PaginatedRequestParams::default().with_cursor(cursor);
                let found = running.peer().list_tools(Some(page)).await?;
                for tool in found.tools {
                    if listed.tools.len() >= MAX_TOOLS_PER_SERVER {
                        listed.left_out.push(format!("only the first {MAX_TOOLS_PER_SERVER} tools are taken"));
                        return Ok(listed);
                    }
                    match convert_tool(tool) {
                        Ok(tool) => listed.tools.push(tool),
                        Err(why) => listed.left_out.push(why.to_string()),
                    }
                }
                cursor = found.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            Ok(listed)
        };
        let done = tokio::time::timeout(limit, work).await.map_err(|_| self.timeout_error(limit))?;
        self.check_response(done, &running).await
    }

    pub(crate) async fn call_tool(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        limit: Duration,
        user: Option<Arc<dyn ServerRequestUser>>,
    ) -> Result<McpToolResult, McpError> {
        let running = self.ensure_running().await?;
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let active = self.calls.begin(user);
        let mut pages = Vec::new();
        // Dropping this tells the server that the call was canceled.
        let done = active.within(limit, self.call_after_pages(&running, params, &mut pages)).await;
        drop(active);
        let name = &self.server.name;
        let late = || match pages.is_empty() {
            true => self.timeout_error(limit),
            false => McpError::PageNeeded { server: name.clone(), pages },
        };
        let done = done.ok_or_else(late)?;
        match self.check_response(done, &running).await? {
            CallToolResponse::Complete(result) => {
                convert_result(result).ok_or_else(|| McpError::ResultTooLarge(name.clone()))
            }
            _ => Err(McpError::Refused {
                server: name.clone(),
                why: "it wants more from the user, which is not offered to it".to_owned(),
            }),
        }
    }

    /// Calls a tool. If its server wants the user to open pages first, asks the user, waits until the server says that
    /// the user has finished with them, and calls the tool once more. Their addresses are added to `asked`.
    async fn call_after_pages(
        &self,
        running: &McpClient,
        params: CallToolRequestParams,
        asked: &mut Vec<String>,
    ) -> Result<CallToolResponse, ServiceError> {
        let first = running.peer().call_tool_once(params.clone()).await;
        let pages = match &first {
            Err(ServiceError::McpError(error)) => required_pages(&self.server.name, error).unwrap_or_default(),
            Ok(_) | Err(_) => Vec::new(),
        };
        asked.extend(page_addresses(&pages));
        for page in &pages {
            let answer = running.service().ask_user(&page.form, std::future::pending()).await;
            if !matches!(answer, Ok(FormAnswer::Filled(_))) {
                return first;
            }
        }
        if pages.is_empty() || pages.iter().any(|page| page.id.is_empty()) {
            return first;
        }
        self.finished_pages.wait_for(&pages).await;
        running.peer().call_tool_once(params).await
    }

    pub(crate) fn timeout_error(&self, limit: Duration) -> McpError {
        McpError::TimedOut { server: self.server.name.clone(), seconds: limit.as_secs() }
    }

    /// Updates the connection state from a response, and converts a service error to an [`McpError`].
    pub(crate) async fn check_response<T>(
        &self,
        done: Result<T, ServiceError>,
        running: &Arc<McpClient>,
    ) -> Result<T, McpError> {
        let server = self.server.name.clone();
        let error = match done {
            Ok(done) => {
                self.state.lock().await.exit_count = 0;
                return Ok(done);
            }
            Err(error) => error,
        };
        if let ServiceError::TransportSend(error) = &error
            && let Some(asked) = AskedSignIn::from_error(error.error.as_ref())
        {
            if self.signs_in_by_itself() {
                // The next request begins with a new token.
                let mut line = self.state.lock().await;
                line.client.take_if(|known| Arc::ptr_eq(known, running));
            }
            return Err(self.sign_in_error(asked).await);
        }
        match error {
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let mut line = self.state.lock().await;
                if line.client.as_ref().is_some_and(|known| Arc::ptr_eq(known, running)) {
                    line.client = None;
                    line.exit_count += 1;
                }
                drop(line);
                Err(McpError::Exited { server, why: self.failure_with_stderr(&error.to_string()).await })
            }
            ServiceError::McpError(error) => Err(match required_pages(&server, &error) {
                Some(pages) => McpError::PageNeeded { server, pages: page_addresses(&pages) },
                None => {
                    McpError::Refused { server, why: truncate_text(&error.message, MAX_DESCRIPTION_BYTES).to_owned() }
                }
            }),
            error => Err(McpError::Refused { server, why: error.to_string() }),
        }
    }

    /// Returns the client of the server, and starts the server if it isn't running.
    pub(crate) async fn ensure_running(&self) -> Result<Arc<McpClient>, McpError> {
        let server = self.server.name.clone();
        let mut line = self.state.lock().await;
        if let Some(running) = &line.client {
            if !running.is_closed() && !running.peer().is_transport_closed() {
                self.tell_root(running).await;
                self.renew_token().await?;
                return Ok(running.clone());
            }
            line.client = None;
            line.exit_count += 1;
        }
        if line.exit_count > 1 {
            return Err(McpError::ExitedTwice { server, why: self.failure_with_stderr("it said nothing").await });
        }
        self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner).clear();
        // A server that starts asks by itself.
        self.root.take_news();
        let connected = match tokio::time::timeout(SERVER_START_TIMEOUT, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(McpConnectError::Timeout),
        };
        match connected {
            Ok(running) => {
                let running = Arc::new(running);
                line.client = Some(running.clone());
                Ok(running)
            }
            Err(McpConnectError::SignIn(asked)) => Err(self.sign_in_error(asked).await),
            Err(McpConnectError::Client(why)) => Err(self.client_error(why)),
            Err(why) => Err(McpError::Start { server, why: self.failure_with_stderr(&why.to_string()).await }),
        }
    }

    async fn connect(&self) -> Result<McpClient, McpConnectError> {
        let is_program = matches!(self.server.way, McpTransport::Program { .. });
        // A folder of this machine says nothing to a server elsewhere.
        let root = is_program.then(|| self.root.clone());
        let state = (self.calls.clone(), self.finished_pages.clone());
        let client = McpClientSide::new(&self.server.name, self.users.clone(), state, root);
        match &self.server.way {
            McpTransport::Program { command, args, env, folder } => {
                let mut program = tokio::process::Command::new(command);
                let seen = INHERITED_ENV_VARS.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
                program.args(args).env_clear().envs(seen).envs(env);
                // Tracebook's own folder may be one with notes: launchers such as npx and uvx obey settings there, and
                // Python imports modules.
                let home = || std::env::home_dir().filter(|home| home.is_dir());
                if let Some(folder) = folder.clone().or_else(home) {
                    program.current_dir(folder);
                }
                // A terminal's Ctrl-C must reach only Tracebook.
                #[cfg(unix)]
                program.process_group(0);
                let started = TokioChildProcess::builder(program).stderr(Stdio::piped()).spawn();
                let unstarted = |source| McpConnectError::Spawn { source, command: command.clone() };
                let (process, errors) = started.map_err(unstarted)?;
                if let Some(errors) = errors {
                    tokio::spawn(collect_stderr_tail(errors, self.stderr_tail.clone()));
                }
                Ok(client.serve(process).await.map_err(McpConnectError::handshake)?)
            }
            McpTransport::Http { url, headers, sign_in } => {
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return Err(McpConnectError::Address { url: url.clone() });
                }
                let mut sent = HashMap::new();
                for (name, value) in headers {
                    // The error leaves out the value, which may be a secret.
                    let wrong = || McpConnectError::Header { name: name.clone() };
                    let header = HeaderName::try_from(name).map_err(|_| wrong())?;
                    let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
                    value.set_sensitive(true);
                    sent.insert(header, value);
                }
                let way = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(sent)
                    .max_sse_event_size(MAX_SSE_EVENT_BYTES);
                if sign_in.grant != McpOauthGrant::AuthorizationCode {
                    let (http, machine) = machine_sign_in::begin(url, sign_in).await?;
                    *self.machine.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(machine));
                    let connected = client.serve(StreamableHttpClientTransport::with_client(http, way)).await;
                    return connected.map_err(McpConnectError::handshake);
                }
                let manager = match self.tokens() {
                    Some(tokens) => tokens.manager(sign_in).await?,
                    None => None,
                };
                let connected = match manager {
                    Some(manager) => {
                        let http = AuthClient::new(reqwest::Client::default(), manager);
                        client.serve(StreamableHttpClientTransport::with_client(http, way)).await
                    }
                    None => client.serve(StreamableHttpClientTransport::from_config(way)).await,
                };
                Ok(connected.map_err(McpConnectError::handshake)?)
            }
        }
    }

    /// Returns the message with the last line of the server's standard error.
    async fn failure_with_stderr(&self, what: &str) -> String {
        if matches!(self.server.way, McpTransport::Program { .. }) {
            tokio::time::sleep(STDERR_DRAIN_DELAY).await;
        }
        let words = self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        match words.trim().lines().last() {
            Some(last) => {
                format!("{}; its last words: {}", truncate_text(what, MAX_STDERR_BYTES), truncate_text(last, 400))
            }
            None => truncate_text(what, MAX_STDERR_BYTES).to_owned(),
        }
    }
}

async fn collect_stderr_tail(mut errors: tokio::process::ChildStderr, words: Arc<Mutex<String>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.push_str(&String::from_utf8_lossy(&buffer[..count]));
        if words.len() > 2 * MAX_STDERR_BYTES {
            let from = words.ceil_char_boundary(words.len() - MAX_STDERR_BYTES);
            words.drain(..from);
        }
    }
}

/// What a server says that wants the user to sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AskedSignIn {
    /// The header `WWW-Authenticate`.
    challenge: String,
    /// What the user's tokens don't allow yet.
    scope: Option<String>,
}

impl AskedSignIn {
    /// Looks for the server's words in an error and its sources.
    fn from_error(error: &(dyn std::error::Error + 'static)) -> Option<AskedSignIn> {
        let mut current = Some(error);
        while let Some(error) = current {
            if let Some(asked) = error.downcast_ref::<AuthRequiredError>() {
                return Some(AskedSignIn { challenge: asked.www_authenticate_header.clone(), scope: None });
            }
            if let Some(asked) = error.downcast_ref::<InsufficientScopeError>() {
                let scope = asked.required_scope.as_deref().map(|scope| truncate_text(scope, 500).to_owned());
                return Some(AskedSignIn { challenge: asked.www_authenticate_header.clone(), scope });
            }
            current = error.source();
        }
        None
    }
}

/// Why a server isn't connected.
#[derive(Debug, thiserror::Error)]
enum McpConnectError {
    #[error("it has not answered within {} s", SERVER_START_TIMEOUT.as_secs())]
    Timeout,
    #[error("{source}: {command}")]
    Spawn { source: std::io::Error, command: String },
    #[error(transparent)]
    Handshake(Box<ClientInitializeError>),
    #[error("it wants the user to sign in")]
    SignIn(AskedSignIn),
    #[error("the kept sign-in can't be used: {0}")]
    Tokens(#[from] AuthError),
    #[error("{0}")]
    Client(#[from] MachineSignInError),
    #[error("its address begins with neither http:// nor https://: {url}")]
    Address { url: String },
    #[error("the header {name} cannot be sent")]
    Header { name: String },
}

impl McpConnectError {
    fn handshake(error: ClientInitializeError) -> McpConnectError {
        let challenge = error.auth_challenge().map(str::to_owned);
        match challenge.map(|challenge| AskedSignIn { challenge, scope: None }) {
            Some(asked) => McpConnectError::SignIn(asked),
            None => McpConnectError::Handshake(Box::new(error)),
        }
    }
}

/// Why a tool is left out of the list.
#[derive(Debug, thiserror::Error)]
enum McpToolError {
    #[error("a tool's name has 1 to 128 bytes: {}", truncate_text(name, 128))]
    Name { name: String },
    #[error("the schema of {name} is larger than {} kB", MAX_SCHEMA_BYTES >> 10)]
    SchemaTooLarge { name: String },
}

/// Converts a tool of the protocol.
///
/// # Errors
/// Returns an error if the name is empty or longer than 128 bytes, or the schema is larger than [`MAX_SCHEMA_BYTES`].
fn convert_tool(tool: rmcp::model::Tool) -> Result<McpTool, McpToolError> {
    let name = tool.name.into_owned();
    if name.is_empty() || name.len() > 128 {
        return Err(McpToolError::Name { name });
    }
    let schema = Value::Object(Arc::unwrap_or_clone(tool.input_schema));
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(McpToolError::SchemaTooLarge { name });
    }
    let description = truncate_text(&tool.description.unwrap_or_default(), MAX_DESCRIPTION_BYTES).to_owned();
    let hints = tool.annotations.unwrap_or_default();
    let reads_only = hints.read_only_hint == Some(true);
    let idempotent = reads_only || hints.idempotent_hint == Some(true);
    let is_destructive = !reads_only && hints.destructive_hint == Some(true);
    Ok(McpTool { name, description, schema, reads_only, idempotent, is_destructive })
}
