//! A client for servers of the Model Context Protocol: lists and calls their tools, and reads their prompts and
//! resources, over standard input and output or over HTTP.
//!
//! One thread does all the work. Servers aren't trusted, so everything they send is bounded. Whether a tool may be
//! called is decided elsewhere.

mod authorization_discovery;
mod connection;
mod cross_app_access;
mod machine_sign_in;
mod offers;
mod project_root;
mod required_pages;
mod server_requests;
mod sign_in;
mod tool_result;
mod user_forms;

pub use agent::server_form::{FormAnswer, FormFieldKind, UserForm, UserFormField};
pub use cross_app_access::McpIdentityProvider;
pub use offers::PendingMaterial;
pub use server_requests::{FormAnswerSender, SamplingAnswerSender, ServerRequestUser};
pub use sign_in::{McpSignIn, SIGN_IN_TIMEOUT, SignInError, TokenVault, TokenVaultError, sign_in, sign_out};
pub use user_forms::FormUser;

use agent::server_material::{ServerMaterial, ServerOffer};
use agent::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use connection::McpConnection;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use user_forms::ServerUsers;

/// Maximum number of tools listed from one server.
pub const MAX_TOOLS_PER_SERVER: usize = 500;
/// Maximum size of the schema of a tool's arguments, in bytes of JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// Maximum length of a tool's description in bytes; longer ones are truncated.
pub const MAX_DESCRIPTION_BYTES: usize = 8 << 10;
/// Maximum size of a result in bytes, text and attachments together.
pub const MAX_RESULT_BYTES: usize = 10 << 20;
/// How long a server may take to start and answer. It's generous because its program may be downloaded first.
pub const SERVER_START_TIMEOUT: Duration = Duration::from_secs(60);

/// An MCP server, as the user configured it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Name of the server.
    pub name: String,
    /// How the server is reached.
    #[serde(flatten)]
    pub way: McpTransport,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum McpTransport {
    /// A program that's started with the user's rights, and communicates over standard input and output. From
    /// Tracebook's environment it gets only the user's identity and the search path, plus the variables given here.
    Program {
        /// Path of the program, or its name on the `PATH`.
        command: String,
        /// Command-line arguments of the program.
        #[serde(default)]
        args: Vec<String>,
        /// Additional environment variables for the program.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Working directory of the program; `None` means Tracebook's own.
        #[serde(default)]
        folder: Option<PathBuf>,
    },
    /// An address (`http` or `https`) that speaks streamable HTTP.
    Http {
        /// URL of the server.
        url: String,
        /// HTTP headers sent with every request.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// How the user signs in there.
        #[serde(default)]
        sign_in: McpSignIn,
    },
}

/// A tool offered by an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpTool {
    /// Name of the tool on its server.
    pub name: String,
    /// The server's description of the tool.
    pub description: String,
    /// JSON schema of the arguments, always an object.
    pub schema: Value,
    /// Whether the server says that the tool only reads. Don't rely on it.
    pub reads_only: bool,
    /// Whether the server says that repeated calls have the effect of one. Don't rely on it.
    pub idempotent: bool,
    /// Whether the server says that the tool makes changes that can't be undone. Without it, it may make them, too.
    pub is_destructive: bool,
}

impl McpTool {
    /// Returns the tool's specification. The session assigns the name that models see.
    pub fn specification(&self, server: &str) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.schema.clone(),
            // What a server says can only raise the risk.
            risk: if self.is_destructive { ToolRisk::Critical } else { ToolRisk::High },
            permissions: ToolPermissions::default(),
            idempotent: false,
            source: ToolSource::Server { server: server.to_owned(), tool: self.name.clone() },
        }
    }
}

/// The tools of an MCP server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpToolList {
    /// Tools that can be called.
    pub tools: Vec<McpTool>,
    /// Reasons why other tools are left out, one sentence each.
    pub left_out: Vec<String>,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpToolResult {
    /// Text of the result.
    pub text: String,
    /// Whether the server reports the result as an error.
    pub failed: bool,
    /// Images, sounds and files: media type and bytes.
    pub attached: Vec<(String, Vec<u8>)>,
}

/// How long a server may take to list its prompts and resources.
pub const OFFER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take for a prompt or a resource of a message.
pub const MATERIAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a request to an MCP server failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// No server with that name is configured.
    #[error("there is no MCP server {0} in the configuration")]
    UnknownServer(String),
    /// The server couldn't be started or reached.
    #[error("the MCP server {server} could not be started ({why})")]
    Start {
        /// Name of the server.
        server: String,
        /// What happened, with the last line of its standard error.
        why: String,
    },
    /// The server exited, was restarted, and exited again.
    #[error("the MCP server {server} has ended twice and is not started again ({why}); look at its configuration")]
    ExitedTwice {
        /// Name of the server.
        server: String,
        /// Last line of the server's standard error.
        why: String,
    },
    /// The server exited during this request. It's unknown whether it did what was requested.
    #[error("the MCP server {server} ended while it worked on this ({why}); the next call starts it again")]
    Exited {
        /// Name of the server.
        server: String,
        /// Last line of the server's standard error.
        why: String,
    },
    /// The server wants the user to sign in, or for this call once more, for more rights.
    #[error(
        "the MCP server {server} wants you to sign in{}: run `tracebook mcp login {server}`",
        scope.as_ref().map(|scope| format!(" with more rights ({scope})")).unwrap_or_default()
    )]
    SignInNeeded {
        /// Name of the server.
        server: String,
        /// The rights that are missing.
        scope: Option<String>,
    },
    /// The server, or its authorization server, doesn't take the client's own secret or key, or what an identity
    /// provider says of the user.
    #[error("can't sign in at the MCP server {server} ({why}); check its oauth in the configuration")]
    ClientRefused {
        /// Name of the server.
        server: String,
        /// The failure, in words.
        why: String,
    },
    /// The server doesn't do what it's asked for before the user has opened pages.
    #[error(
        "the MCP server {server} wants you to open {} first; open it in your browser, then try again",
        pages.join(" and ")
    )]
    PageNeeded {
        /// Name of the server.
        server: String,
        /// Addresses of the pages.
        pages: Vec<String>,
    },
    /// The server refused the call.
    #[error("the MCP server {server} refused ({why})")]
    Refused {
        /// Name of the server.
        server: String,
        /// The server's message.
        why: String,
    },
    /// The server didn't answer in time.
    #[error("the MCP server {server} has not answered within {seconds} s")]
    TimedOut {
        /// Name of the server.
        server: String,
        /// How long the request waited, in seconds.
        seconds: u64,
    },
    /// The server's response is larger than [`MAX_RESULT_BYTES`].
    #[error("the answer of the MCP server {0} is larger than 10 MB")]
    ResultTooLarge(String),
    /// A prompt or resource holds nothing that a model can read.
    #[error("{what} {why}; a message can include text only")]
    NotText {
        /// The name of the resource.
        what: String,
        /// The kind of its content.
        why: String,
    },
    /// The thread that performs requests has ended.
    #[error("the program is closing")]
    Closing,
}

/// A pending response. Dropping it cancels the request at the server.
pub struct PendingMcpResponse<T> {
    answer: Receiver<Result<T, McpError>>,
    _cancel_on_drop: oneshot::Sender<()>,
}

impl<T> PendingMcpResponse<T> {
    /// Waits up to `time` for the response; `None` if there isn't one yet.
    pub fn wait(&self, time: Duration) -> Option<Result<T, McpError>> {
        match self.answer.recv_timeout(time) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(McpError::Closing)),
        }
    }
}

type McpResponseSender<T> = std::sync::mpsc::Sender<Result<T, McpError>>;

enum McpRequest {
    Configure(Vec<McpServer>),
    Enter { server: String, project: PathBuf },
    List { server: String, answer: McpResponseSender<McpToolList>, wanted: oneshot::Receiver<()> },
    Call { call: McpToolCall, answer: McpResponseSender<McpToolResult>, wanted: oneshot::Receiver<()> },
    Offers { server: String, answer: McpResponseSender<ServerOffer>, wanted: oneshot::Receiver<()> },
    Read { asked: (ServerMaterial, Duration), answer: McpResponseSender<String>, wanted: oneshot::Receiver<()> },
}

struct McpToolCall {
    server: String,
    tool: String,
    arguments: Map<String, Value>,
    limit: Duration,
    user: Option<Arc<dyn ServerRequestUser>>,
}

/// The configured MCP servers. Each server starts when it's first needed, and their thread starts with the first
/// request. All of them end when the last clone is dropped.
#[derive(Clone, Default)]
pub struct McpServerPool {
    requests: Arc<OnceLock<Option<mpsc::UnboundedSender<McpRequest>>>>,
    vault: Option<Arc<dyn TokenVault>>,
    users: ServerUsers,
}

impl McpServerPool {
    /// Creates a pool that uses the tokens in a vault, and whose servers may ask the user with forms.
    pub fn new(vault: Option<Arc<dyn TokenVault>>, forms: Option<Arc<dyn FormUser>>) -> McpServerPool {
        McpServerPool { requests: Arc::default(), vault, users: ServerUsers { forms, has_runs: false } }
    }

    /// Creates a pool whose servers may ask for a model and the user during [`McpServerPool::call_tool_for`].
    pub fn for_runs(vault: Option<Arc<dyn TokenVault>>) -> McpServerPool {
        McpServerPool { requests: Arc::default(), vault, users: ServerUsers { forms: None, has_runs: true } }
    }

    /// Starts the thread; `None` if the system can't create a thread or an async runtime.
    fn start(&self) -> Option<mpsc::UnboundedSender<McpRequest>> {
        // The provider is installed once per process. Another part of the program may already have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let (orders, queue) = mpsc::unbounded_channel();
        let (vault, users) = (self.vault.clone(), self.users.clone());
        let work = move || {
            runtime.block_on(run_request_loop(queue, vault, users));
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("mcp".to_owned()).spawn(work).ok()?;
        Some(orders)
    }

    /// Sends a request to the thread. If that fails, the caller's missing response reports it.
    fn send_request(&self, order: McpRequest) {
        if let Some(orders) = self.requests.get_or_init(|| self.start()) {
            // The receiver ends only with the program or the connection.
            let _ = orders.send(order);
        }
    }

    /// Whether the thread is running.
    pub fn is_started(&self) -> bool {
        self.requests.get().is_some_and(Option::is_some)
    }

    /// Replaces the configured servers. Removed and changed servers are stopped.
    pub fn configure(&self, servers: Vec<McpServer>) {
        if self.is_started() || !servers.is_empty() {
            self.send_request(McpRequest::Configure(servers));
        }
    }

    /// Sets the folder of the project for which requests to a server follow. A server that is a program gets it as its
    /// root, if it asks.
    pub fn enter_project(&self, server: &str, project: PathBuf) {
        self.send_request(McpRequest::Enter { server: server.to_owned(), project });
    }

    /// Requests the list of a server's tools.
    pub fn list_tools(&self, server: &str) -> PendingMcpResponse<McpToolList> {
        let (answer, wait) = channel();
        let (keep, wanted) = oneshot::channel();
        self.send_request(McpRequest::List { server: server.to_owned(), answer, wanted });
        PendingMcpResponse { answer: wait, _cancel_on_drop: keep }
    }

    /// Requests what a server offers for messages: its prompts and resources.
    pub fn list_offers(&self, server: &str) -> PendingMcpResponse<ServerOffer> {
        let (answer, wait) = channel();
        let (keep, wanted) = oneshot::channel();
        self.send_request(McpRequest::Offers { server: server.to_owned(), answer, wanted });
        PendingMcpResponse { answer: wait, _cancel_on_drop: keep }
    }

    /// Starts to read the texts of prompts and resources, all at once, and gives up after `limit`.
    pub fn gather(&self, material: Vec<ServerMaterial>, limit: Duration) -> PendingMaterial {
        let start = |material: ServerMaterial| {
            let (answer, wait) = channel();
            let (keep, wanted) = oneshot::channel();
            self.send_request(McpRequest::Read { asked: (material.clone(), limit), answer, wanted });
            (material, PendingMcpResponse { answer: wait, _cancel_on_drop: keep })
        };
        PendingMaterial::new(material.into_iter().map(start).collect(), limit)
    }

    /// Calls a tool, and gives up after `limit`.
    pub fn call_tool(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> PendingMcpResponse<McpToolResult> {
        self.call_tool_for(None, (server, tool), arguments, limit)
    }

    /// Calls a tool whose server may ask for a model and the user meanwhile. That time doesn't count for `limit`.
    pub fn call_tool_for(
        &self,
        user: Option<Arc<dyn ServerRequestUser>>,
        (server, tool): (&str, &str),
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> PendingMcpResponse<McpToolResult> {
        let (answer, wait) = channel();
        let (keep, wanted) = oneshot::channel();
        let call = McpToolCall { server: server.to_owned(), tool: tool.to_owned(), arguments, limit, user };
        self.send_request(McpRequest::Call { call, answer, wanted });
        PendingMcpResponse { answer: wait, _cancel_on_drop: keep }
    }
}

/// Runs the thread: performs requests until all senders are gone.
async fn run_request_loop(
    mut queue: mpsc::UnboundedReceiver<McpRequest>,
    vault: Option<Arc<dyn TokenVault>>,
    users: ServerUsers,
) {
    let mut entries: HashMap<String, Arc<McpConnection>> = HashMap::new();
    while let Some(order) = queue.recv().await {
        match order {
            McpRequest::Configure(servers) => {
                let before = std::mem::take(&mut entries);
                for server in servers {
                    let same = before.get(&server.name).filter(|entry| *entry.server() == server).cloned();
                    let new = |server| Arc::new(McpConnection::new(server, vault.clone(), users.clone()));
                    entries.insert(server.name.clone(), same.unwrap_or_else(|| new(server)));
                }
                for (name, entry) in before {
                    if !entries.get(&name).is_some_and(|kept| Arc::ptr_eq(kept, &entry)) {
                        tokio::spawn(async move { entry.close().await });
                    }
                }
            }
            McpRequest::Enter { server, project } => {
                if let Some(entry) = entries.get(&server) {
                    entry.enter_project(project);
                }
            }
            McpRequest::List { server, answer, wanted } => {
                let entry = entries.get(&server).cloned().ok_or(McpError::UnknownServer(server));
                spawn_request(async move { entry?.list_tools().await }, answer, wanted);
            }
            McpRequest::Offers { server, answer, wanted } => {
                let entry = entries.get(&server).cloned().ok_or(McpError::UnknownServer(server));
                spawn_request(async move { entry?.list_offers().await }, answer, wanted);
            }
            McpRequest::Read { asked: (material, limit), answer, wanted } => {
                let (ServerMaterial::Prompt { server, .. } | ServerMaterial::Resource { server, .. }) = &material;
                let entry = entries.get(server).cloned().ok_or_else(|| McpError::UnknownServer(server.clone()));
                spawn_request(async move { entry?.read_material(material, limit).await }, answer, wanted);
            }
            McpRequest::Call { call, answer, wanted } => {
                let entry =
                    entries.get(&call.server).cloned().ok_or_else(|| McpError::UnknownServer(call.server.clone()));
                spawn_request(
                    async move { entry?.call_tool(call.tool, call.arguments, call.limit, call.user).await },
                    answer,
                    wanted,
                );
            }
        }
    }
    let closing = entries.into_values().map(|entry| tokio::spawn(async move { entry.close().await }));
    for closed in closing.collect::<Vec<_>>() {
        let _ = closed.await; // one that failed has ended, too
    }
}

/// Performs a request concurrently, unless it's canceled.
fn spawn_request<T: Send + 'static>(
    work: impl Future<Output = Result<T, McpError>> + Send + 'static,
    answer: McpResponseSender<T>,
    wanted: oneshot::Receiver<()>,
) {
    tokio::spawn(async move {
        tokio::select! {
            done = work => {
                let _ = answer.send(done); // nobody may wait any more
            }
            // Dropping the work cancels it at the server.
            _ = wanted => {}
        }
    });
}

#[cfg(test)]
mod tests;
