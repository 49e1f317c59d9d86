//! What front ends call at `/api/v1/agent`, and what they are told of the runs that they start.

use crate::access_tokens::{AccessToken, TokenScope};
use crate::acp_updates::unsent_text;
use crate::agent_socket::{
    CALL_FAILED, INVALID_PARAMS, METHOD_NOT_FOUND, NOT_ALLOWED, SocketCall, SocketCallError, SocketSender,
};
use crate::audit_log::AuditEntry;
use crate::client_rates::ClientNetwork;
use crate::clock::unix_millis;
use crate::command_calls::{CommandCall, CommandOutcome};
use crate::http_guard::{AGENT_SOCKET_PATH, check_shown_token};
use crate::http_state::{ApiCaller, HttpState};
use crate::rest_work::{ApprovalDecision, decide, ensure_sent};
use crate::tool_calls::new_run_id;
use agent::component_file::ComponentFile;
use agent::tool_catalog::BuiltInTool;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of runs of one socket at the same time.
const MAX_SOCKET_RUNS: usize = 4;
/// Number of characters of a session's id.
const SESSION_ID_CHARS: usize = 32;
/// What is said if there's no place for another front end.
pub(crate) const TOO_MANY_FRONT_ENDS: &str = "too many front ends are connected; close one of them";
/// Maximum length of a message to the agent in bytes.
const MAX_CHAT_BYTES: usize = 512 << 10;
/// Maximum length of a GitHub name in bytes: of an owner 39, of a repository 100.
const MAX_GITHUB_NAME_BYTES: usize = 100;
/// Folder of the workspace that holds repositories of `load_repo`, as the seed lays them out.
const REPOS_FOLDER: &str = "repos";
/// Time before a failure is told.
const FAILURE_DELAY: Duration = Duration::from_millis(50);
/// Attempts to stop a run, and the time between them. It may not have begun yet.
const STOP_ATTEMPTS: u32 = 100;
const STOP_INTERVAL: Duration = Duration::from_millis(300);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct InitParams {
    /// A token of this server. The keys of model providers stay in the workspace.
    api_key: Option<String>,
    /// The model to ask, or its provider; the workspace must have it. Without one, its router decides.
    model: Option<String>,
    /// The volume to work in.
    volume: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadRepoParams {
    owner: String,
    repo: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatParams {
    message: String,
    /// The volume; the one of `init` or `load_repo` by default.
    volume: Option<String>,
    /// The session; by default the one of this socket.
    session: Option<String>,
    agent: Option<String>,
    /// The most that it may cost, in US dollars.
    budget: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelParams {
    run: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ApproveToolParams {
    tool_id: String,
    /// The version that the user has read; by default the one that this socket was told of.
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ApprovePreviewParams {
    component_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ApproveActionParams {
    action_id: String,
    approved: bool,
    /// What the agent is told; the answer to a question that it asked.
    comment: Option<String>,
}

/// A run of a socket.
struct SocketRun {
    session: String,
    is_over: Arc<AtomicBool>,
    /// Whether it's being stopped.
    is_cancelled: bool,
}

/// A place among the front ends. It's free again when this is dropped.
pub(crate) type FrontEndPlace = Box<dyn Send + Sync>;

#[derive(Default)]
struct SocketState {
    token: Option<AccessToken>,
    /// Its place among the front ends; before `init`, among those who haven't said yet who they are.
    place: Option<FrontEndPlace>,
    has_init: bool,
    /// Whether an `init` with a valid token is under way.
    is_beginning: bool,
    volume: Option<String>,
    /// The only model that is asked.
    model: Option<String>,
    session: String,
    /// The sessions that began here.
    sessions: BTreeSet<String>,
    runs: BTreeMap<String, SocketRun>,
    /// Name and version of the tools that the client was told of, by id.
    tools: BTreeMap<String, (String, u64)>,
}

/// The calls of one socket.
pub(crate) struct SocketCalls {
    state: Arc<HttpState>,
    network: ClientNetwork,
    sender: SocketSender,
    own: Mutex<SocketState>,
}

/// What was sent of a run so far.
#[derive(Default)]
struct SentAnswer {
    call: u64,
    streamed: String,
    /// Proposed components, by the id of their call.
    components: BTreeMap<String, Value>,
}

fn params<P: DeserializeOwned>(call: &SocketCall) -> Result<P, SocketCallError> {
    let given = if call.params.is_null() { json!({}) } else { call.params.clone() };
    serde_json::from_value(given).map_err(|error| {
        SocketCallError::new(INVALID_PARAMS, format!("the params of {} don't fit: {error}", call.method))
    })
}

fn no_nul(texts: [Option<&str>; 3]) -> Result<(), SocketCallError> {
    texts.into_iter().flatten().try_for_each(|text| Ok(ensure_sent(text, "params")?))
}

/// Returns whether a text is an owner or a repository as GitHub spells them.
fn is_github_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=MAX_GITHUB_NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with(['.', '-'])
        && !name.ends_with('.')
}

impl SocketState {
    fn begin_session(&mut self) {
        self.session = new_run_id();
        self.sessions.insert(self.session.clone());
    }
}

impl SocketCalls {
    pub(crate) fn new(
        state: Arc<HttpState>,
        (token, network): (Option<AccessToken>, ClientNetwork),
        sender: SocketSender,
        place: FrontEndPlace,
    ) -> SocketCalls {
        let mut own = SocketState { token, place: Some(place), ..SocketState::default() };
        own.begin_session();
        SocketCalls { state, network, sender, own: Mutex::new(own) }
    }

    fn own(&self) -> MutexGuard<'_, SocketState> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of the client's token.
    pub(crate) fn token_id(&self) -> Option<String> {
        self.own().token.as_ref().map(|token| token.id.clone())
    }

    /// Returns whether an `init` with a valid token is under way.
    pub(crate) fn is_beginning(&self) -> bool {
        self.own().is_beginning
    }

    /// Performs a call, and records it.
    pub(crate) async fn perform(self: &Arc<Self>, call: &SocketCall) -> Result<Value, SocketCallError> {
        let begun = Instant::now();
        let result = self.perform_unrecorded(call).await;
        let status = match &result {
            Ok(_) => 200,
            Err(error) => match error.code {
                NOT_ALLOWED => 403,
                METHOD_NOT_FOUND | INVALID_PARAMS => 422,
                _ => 500,
            },
        };
        let name = call.method.chars().take(40).filter(|letter| !letter.is_control()).collect::<String>();
        let entry = AuditEntry {
            at: unix_millis(),
            token: self.token_id(),
            method: "WEBSOCKET".to_owned(),
            path: format!("{}#{name}", AGENT_SOCKET_PATH),
            status,
            millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        match self.state.audit.record(entry) {
            Ok(()) => {
                if result.is_err() {
                    // Few calls of a client are performed at the same time, so one that continues is slowed down.
                    tokio::time::sleep(FAILURE_DELAY).await;
                }
                result
            }
            // What isn't recorded isn't answered.
            Err(_) => Err(SocketCallError::new(CALL_FAILED, "the audit log in the workspace can't be written")),
        }
    }

    async fn perform_unrecorded(self: &Arc<Self>, call: &SocketCall) -> Result<Value, SocketCallError> {
        if call.method == "init" {
            return self.init(params(call)?).await;
        }
        let caller = self.caller()?;
        match call.method.as_str() {
            "load_repo" => self.load_repo(&caller, params(call)?).await,
            "chat" => self.chat(&caller, params(call)?),
            "cancel" => self.cancel(&caller, &params(call)?),
            "approve_tool" => self.approve_tool(&caller, params(call)?).await,
            "approve_preview" => self.approve_preview(&caller, params(call)?).await,
            "approve_action" => self.approve_action(&caller, params(call)?).await,
            other => {
                let all = "init, load_repo, chat, cancel, approve_tool, approve_preview and approve_action";
                let why = format!("there is no method {}; there are {all}", other.escape_debug());
                Err(SocketCallError::new(METHOD_NOT_FOUND, why))
            }
        }
    }

    /// Tells what follows a call that succeeded.
    pub(crate) fn tell_after(&self, call: &SocketCall, result: &Value) {
        if call.method == "init" {
            self.sender.tell("ready", &json!({"toolCount": result["toolCount"]}));
        }
    }

    /// Returns the caller with a token that still holds.
    fn caller(&self) -> Result<ApiCaller, SocketCallError> {
        let own = self.own();
        let token = own.token.clone().filter(|_| own.has_init);
        let token = token.ok_or_else(|| SocketCallError::new(NOT_ALLOWED, "call init first"))?;
        if !self.state.tokens.holds(&token.id, unix_millis()) {
            return Err(SocketCallError::new(NOT_ALLOWED, "the token was revoked or has expired"));
        }
        if self.state.rates.check_key(&token.id).is_err() {
            return Err(SocketCallError::new(NOT_ALLOWED, "too many calls with this token; wait a second"));
        }
        Ok(ApiCaller { state: self.state.clone(), token })
    }

    fn require(caller: &ApiCaller, scope: TokenScope) -> Result<(), SocketCallError> {
        match caller.token.allows(scope) {
            true => Ok(()),
            false => Err(SocketCallError::new(NOT_ALLOWED, format!("the token lacks the scope `{}`", scope.name()))),
        }
    }

    async fn init(&self, given: InitParams) -> Result<Value, SocketCallError> {
        no_nul([given.api_key.as_deref(), given.model.as_deref(), given.volume.as_deref()])?;
        let token = match &given.api_key {
            Some(shown) => check_shown_token(&self.state, shown, self.network)?,
            None => {
                let why = "send a token of `tracebook tokens create` as apiKey, or in the header Authorization";
                self.own().token.clone().ok_or_else(|| SocketCallError::new(NOT_ALLOWED, why))?
            }
        };
        // It may take long until the workspace is open.
        self.own().is_beginning = true;
        let begun = self.begin(given, token).await;
        self.own().is_beginning = false;
        begun
    }

    /// Begins with a token that is known.
    async fn begin(&self, given: InitParams, token: AccessToken) -> Result<Value, SocketCallError> {
        let caller = ApiCaller { state: self.state.clone(), token: token.clone() };
        Self::require(&caller, TokenScope::Agent)?;
        let volume = caller.project(given.volume).await?;
        if let Some(model) = &given.model {
            self.ensure_model(&caller, model).await?;
        }
        let tools = caller.perform_ok(CommandCall::json("tools")).await?.lines();
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
        let mut own = self.own();
        if own.token.is_none() {
            let place = self.state.sockets.clone().try_acquire_owned();
            let place = place.map_err(|_| SocketCallError::new(CALL_FAILED, TOO_MANY_FRONT_ENDS))?;
            own.place = Some(Box::new(place));
        }
        own.token = Some(token);
        own.has_init = true;
        own.volume = volume.clone();
        own.model = given.model;
        let session = own.session.clone();
        drop(own);
        let about = json!({"name": "Tracebook", "version": env!("CARGO_PKG_VERSION")});
        Ok(json!({
            "toolCount": tools.len(), "volume": volume, "session": session, "scopes": scopes, "server": about,
        }))
    }

    /// Checks that the workspace has a model.
    async fn ensure_model(&self, caller: &ApiCaller, model: &str) -> Result<(), SocketCallError> {
        let known = caller.perform_ok(CommandCall::json("providers").operands(["list"])).await?.value();
        let known = known.unwrap_or_default();
        let known = known["providers"].as_array().map(Vec::as_slice).unwrap_or_default();
        if known.iter().any(|provider| provider["name"] == model || provider["model"] == model) {
            return Ok(());
        }
        let names: Vec<&str> = known.iter().filter_map(|provider| provider["model"].as_str()).collect();
        let why = match names.is_empty() {
            true => "the workspace has no model yet; add one with `tracebook providers add`".to_owned(),
            false => format!("the workspace has no model {}; it has {}", model.escape_debug(), names.join(", ")),
        };
        Err(SocketCallError::new(INVALID_PARAMS, why))
    }

    async fn load_repo(&self, caller: &ApiCaller, given: LoadRepoParams) -> Result<Value, SocketCallError> {
        Self::require(caller, TokenScope::Write)?;
        if caller.token.volume.is_some() {
            let why = "a token for one volume can't add another; create one without --volume";
            return Err(SocketCallError::new(NOT_ALLOWED, why));
        }
        if !is_github_name(&given.owner) || !is_github_name(&given.repo) {
            let why = "owner and repo are names as in https://github.com/OWNER/REPO";
            return Err(SocketCallError::new(INVALID_PARAMS, why));
        }
        let folder = self.state.workspace.join(REPOS_FOLDER).join(format!("{}_{}", given.owner, given.repo));
        let place = folder.to_string_lossy().into_owned();
        if !folder.exists() {
            let repository = format!("{}/{}", given.owner, given.repo);
            caller.perform_ok(CommandCall::json("git").operands(["clone", &repository, &place])).await?;
        }
        caller.perform_ok(CommandCall::json("open").operands([&place])).await?;
        let volumes = caller.volumes().await?;
        let found = volumes
            .iter()
            .find(|volume| volume["folder"].as_str().is_some_and(|root| std::path::Path::new(root) == folder));
        let name = found.and_then(|volume| volume["name"].as_str().map(str::to_owned));
        let name = name.ok_or_else(|| SocketCallError::new(CALL_FAILED, "the repository is there but didn't open"))?;
        let mut own = self.own();
        own.volume = Some(name.clone());
        own.begin_session();
        let session = own.session.clone();
        drop(own);
        Ok(json!({"volume": name, "folder": place, "session": session}))
    }

    fn chat(self: &Arc<Self>, caller: &ApiCaller, given: ChatParams) -> Result<Value, SocketCallError> {
        Self::require(caller, TokenScope::Agent)?;
        if given.message.trim().is_empty() || given.message.len() > MAX_CHAT_BYTES {
            let why = format!("`message` has 1 to {MAX_CHAT_BYTES} bytes");
            return Err(SocketCallError::new(INVALID_PARAMS, why));
        }
        if given.budget.is_some_and(|budget| !budget.is_finite() || budget < 0.0) {
            return Err(SocketCallError::new(INVALID_PARAMS, "`budget` is a number of US dollars"));
        }
        no_nul([given.volume.as_deref(), given.session.as_deref(), given.agent.as_deref()])?;
        let mut own = self.own();
        let volume = caller.volume(given.volume.or_else(|| own.volume.clone()))?;
        let session = given.session.unwrap_or_else(|| own.session.clone());
        let model = own.model.clone();
        if session.len() != SESSION_ID_CHARS || !session.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(SocketCallError::new(
                INVALID_PARAMS,
                "`session` is the whole id of a session, or of a new one",
            ));
        }
        // A session elsewhere may hold what another volume says.
        if caller.token.volume.is_some() && !own.sessions.contains(&session) {
            let why = "a token for one volume continues only sessions that began on this connection";
            return Err(SocketCallError::new(NOT_ALLOWED, why));
        }
        own.runs.retain(|_, run| !run.is_over.load(Ordering::Relaxed));
        if own.runs.values().any(|run| run.session == session) {
            let why = "the agent still works in this session; wait for done, or call cancel";
            return Err(SocketCallError::new(CALL_FAILED, why));
        }
        if own.runs.len() >= MAX_SOCKET_RUNS {
            let why = format!("{MAX_SOCKET_RUNS} runs of this connection are active; wait for one of them");
            return Err(SocketCallError::new(CALL_FAILED, why));
        }
        let (run, is_over) = (new_run_id(), Arc::<AtomicBool>::default());
        own.runs
            .insert(run.clone(), SocketRun { session: session.clone(), is_over: is_over.clone(), is_cancelled: false });
        drop(own);
        let call = CommandCall::json("ask")
            .option("project", volume)
            .option("session", Some(&session))
            .option("agent", given.agent)
            .option("model", model)
            .option("budget", given.budget)
            .option("run", Some(&run))
            .operands(["-"])
            .with_input(caller.sent_message(&given.message));
        let (calls, id) = (self.clone(), run.clone());
        std::thread::spawn(move || calls.follow(&id, &call, &is_over));
        Ok(json!({"run": run, "session": session}))
    }

    /// Performs a run, and tells the client what happens.
    fn follow(&self, run: &str, call: &CommandCall, is_over: &AtomicBool) {
        let mut sent = SentAnswer::default();
        let outcome = self.state.commands.perform(call, &mut |line| {
            let Ok(line) = serde_json::from_str::<Value>(line) else { return };
            // While it waits for an approval, a window can take over the workspace, and shows the approval.
            if !matches!(line["type"].as_str(), Some("delta" | "thinking_delta" | "tool_pending")) {
                call.watches.store(line["type"] == "approval_pending", Ordering::Relaxed);
            }
            self.show(run, &mut sent, line);
        });
        let ending = self.ending(run, &outcome);
        // Who is told may continue the session at once.
        is_over.store(true, Ordering::Relaxed);
        self.sender.tell("done", &ending);
    }

    /// Returns how a run has ended.
    fn ending(&self, run: &str, outcome: &CommandOutcome) -> Value {
        let about = self.state.commands.perform(&CommandCall::json("runs").operands([run]), &mut |_| {});
        let about = about.value().unwrap_or_default();
        let ending = about["about"]["ending"].as_str();
        let why = match (outcome.code, ending) {
            (0, _) | (_, Some("done")) => None,
            (_, None) if about["about"].is_object() => Some("the run continues in the window of Tracebook".to_owned()),
            _ => Some(outcome.reason()),
        };
        json!({"run": run, "ending": ending, "error": why, "spent": about["about"]["spent"]})
    }

    /// Tells the client a line of a run's output.
    fn show(&self, run: &str, sent: &mut SentAnswer, line: Value) {
        let text = |name: &str| line[name].as_str().unwrap_or_default();
        let mut content = text("content").to_owned();
        match text("type") {
            "delta" => {
                let call = line["call"].as_u64().unwrap_or(0);
                if sent.call != call {
                    sent.streamed.clear();
                    sent.call = call;
                }
                sent.streamed.push_str(&content);
            }
            // All that is told as content of an answer, one after the other, is the answer.
            "final_answer" => content = unsent_text(&content, &sent.streamed).to_owned(),
            "error" => content = text("message").to_owned(),
            "tool_call" if BuiltInTool::ProposeComponent.is_named(text("toolName")) => {
                sent.components.insert(text("toolCallId").to_owned(), line["params"].clone());
            }
            "tool_pending" => {
                let tool = &line["tool"];
                if let (Some(id), Some(name), Some(version)) =
                    (tool["id"].as_str(), tool["name"].as_str(), tool["version"].as_u64())
                {
                    self.own().tools.insert(id.to_owned(), (name.to_owned(), version));
                }
                self.sender.tell("tool_pending", &json!({"run": run, "toolObj": tool}));
                return;
            }
            "approval_pending" => {
                let id = text("name").replacen('/', ":", 1);
                let mut told = line.clone();
                if let Some(told) = told.as_object_mut() {
                    told.remove("type");
                    told.remove("name");
                    told.insert("actionId".to_owned(), json!(id));
                }
                self.sender.tell("approval_pending", &told);
                return;
            }
            _ => {}
        }
        // What a model thought is told between an answer's stream and its step.
        if matches!(text("type"), "tool_call" | "tool_result" | "final_answer" | "error") {
            sent.streamed.clear();
        }
        let proposed = match text("type") {
            "tool_result" if line["success"] == true => sent.components.remove(text("toolCallId")),
            _ => None,
        };
        self.sender.tell("step", &json!({"run": run, "type": text("type"), "content": content, "step": line}));
        if let Some(component) = proposed.and_then(|params| ComponentFile::from_arguments(&params).ok()) {
            let told = json!({
                "run": run, "componentId": component.id(), "tagName": component.tag_name,
                "script": component.script, "styles": component.styles,
            });
            self.sender.tell("preview_component", &told);
        }
    }

    fn cancel(self: &Arc<Self>, caller: &ApiCaller, given: &CancelParams) -> Result<Value, SocketCallError> {
        Self::require(caller, TokenScope::Agent)?;
        let begun = self.own().runs.get_mut(&given.run).map(|run| {
            let was_cancelled = std::mem::replace(&mut run.is_cancelled, true);
            (run.is_over.clone(), was_cancelled)
        });
        let why = "no active run of this connection has this id; DELETE /api/v1/tasks/{taskId} cancels others";
        let (is_over, was_cancelled) = begun.ok_or_else(|| SocketCallError::new(INVALID_PARAMS, why))?;
        if was_cancelled {
            return Ok(json!({"run": given.run}));
        }
        let (calls, run) = (self.clone(), given.run.clone());
        std::thread::spawn(move || {
            for _ in 0..STOP_ATTEMPTS {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let stop = CommandCall::json("runs").flag("stop", true).operands([&run]);
                calls.state.commands.perform(&stop, &mut |_| {});
                std::thread::park_timeout(STOP_INTERVAL);
            }
            // It can be tried again.
            calls.own().runs.get_mut(&run).into_iter().for_each(|run| run.is_cancelled = false);
        });
        Ok(json!({"run": given.run}))
    }

    async fn approve_tool(&self, caller: &ApiCaller, given: ApproveToolParams) -> Result<Value, SocketCallError> {
        Self::require(caller, TokenScope::Approve)?;
        if caller.token.volume.is_some() {
            let why = "a tool is for all volumes, so a token for one can't approve it";
            return Err(SocketCallError::new(NOT_ALLOWED, why));
        }
        let told = self.own().tools.get(&given.tool_id).cloned();
        let own = CommandCall::json("tools").flag("export", true);
        let (name, version) = match (told, given.version) {
            (Some((name, told)), version) => (name, version.unwrap_or(told)),
            (None, Some(version)) => {
                let own = caller.perform_ok(own).await?.value().unwrap_or_default();
                let known = own.as_array().into_iter().flatten().find(|tool| tool["id"] == given.tool_id.as_str());
                let name = known.and_then(|tool| tool["name"].as_str().map(str::to_owned));
                let why = "no tool has this id; `tracebook tools --export` lists yours";
                (name.ok_or_else(|| SocketCallError::new(INVALID_PARAMS, why))?, version)
            }
            (None, None) => {
                let why = "this connection wasn't told of a tool with this id; say also which version was read";
                return Err(SocketCallError::new(INVALID_PARAMS, why));
            }
        };
        let call = CommandCall::json("tools").flag("approve", true).operands([&format!("{name}@{version}")]);
        caller.perform_ok(call).await?;
        Ok(json!({"toolId": given.tool_id, "name": name, "version": version}))
    }

    async fn approve_preview(&self, caller: &ApiCaller, given: ApprovePreviewParams) -> Result<Value, SocketCallError> {
        Self::require(caller, TokenScope::Approve)?;
        no_nul([Some(&given.component_id), None, None])?;
        let call = CommandCall::json("components").option("volume", caller.volume(None)?).flag("approve", true);
        let call = call.operands([&given.component_id]);
        let about = caller.perform_ok(call).await?.value().unwrap_or_default();
        Ok(json!({"componentId": given.component_id, "tagName": about["tagName"], "page": about["page"]}))
    }

    async fn approve_action(&self, caller: &ApiCaller, given: ApproveActionParams) -> Result<Value, SocketCallError> {
        Self::require(caller, TokenScope::Approve)?;
        decide(caller, &given.action_id, ApprovalDecision::new(given.approved, given.comment)).await?;
        Ok(json!({"actionId": given.action_id, "approved": given.approved}))
    }
}
