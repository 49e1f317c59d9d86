//! Effects of agents: reads their setup, gathers the context of a message, calls models, runs tools.

mod external_agents;
pub mod llm;
pub mod mcp_servers;
pub mod model_setup;
mod plugins;
mod program_sessions;
pub mod project_memory;

use crate::agents::external_agents::ExternalAgents;
use crate::agents::llm::{ModelUpdate, ProviderClient};
use crate::agents::mcp_servers::{SecretTokens, expand_secrets, list_mcp_tools};
use crate::mailbox::Mailbox;
use crate::maintenance::configuration;
use crate::maintenance::platform::detect_platform;
use crate::maintenance::secrets::UserSecrets;
use crate::search::SearchService;
use crate::tools::tool_environment::PLUGINS_FOLDER;
use crate::tools::{ServerRequests, ToolRunner, ToolWorkspace};
use agent::agent_definition::AgentDefinition;
use agent::agent_registry::AgentVolume;
use agent::model_call::{ModelCallId, ModelError, ModelErrorKind, ModelRequest};
use agent::router::ProviderLatencies;
use agent::secrets::query_of_message;
use agent::server_material::ServerMaterial;
use agent::server_request::ServerReply;
use agent::tool_job::{ToolJob, ToolOutcome};
use engine::effect::MentionedFile;
use engine::{AgentSetup, Event};
use mcp::{MATERIAL_TIMEOUT, McpServerPool, TokenVault};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::DocId;

/// Maximum number of a message's characters used as a query.
const MAX_QUERY_CHARS: usize = 400;
/// Name of the folder for the user's own agents, in the workspace's folder.
const AGENTS_FOLDER: &str = "agents";
/// Maximum number of plugin files, and their maximum size in bytes.
const MAX_PLUGIN_FILES: usize = 200;
const MAX_PLUGIN_BYTES: u64 = 1 << 20;
/// Time limit for gathering context; anything later is left out.
const GATHER_TIMEOUT: Duration = Duration::from_secs(5);

/// Performs the effects that agent runs request.
pub(crate) struct AgentEffects {
    inbox: Mailbox,
    folder: PathBuf,
    search: SearchService,
    providers: Arc<ProviderClient>,
    secrets: Option<Arc<UserSecrets>>,
    servers: McpServerPool,
    requests: ServerRequests,
    tools: Arc<ToolRunner>,
    external: Arc<ExternalAgents>,
    jobs: HashMap<(DocId, String), u64>,
    next: Arc<Mutex<u64>>,
}

/// Reads the agents' setup: configuration, models, tools, plugins and agent definitions.
fn read_setup(folder: &Path, tools: &ToolRunner, secrets: Option<&UserSecrets>, servers: &McpServerPool) -> AgentSetup {
    let config = match configuration::load_config(folder) {
        Ok(config) => config,
        Err(trouble) => return AgentSetup { trouble: Some(trouble.to_string()), ..AgentSetup::default() },
    };
    let known = secrets
        .map(|secrets| llm::provider_statuses(&config, secrets, &ProviderLatencies::default()))
        .unwrap_or_default();
    let names = config.llm.providers.keys();
    let window = |name: &String| Some((name.clone(), llm::context_window_tokens(&config, &config.endpoint(name)?)));
    let mut contexts: BTreeMap<String, u64> = names.filter_map(window).collect();
    contexts.extend(model_setup::served_context(&config, secrets));
    let (plugins, mut problems) = plugins::read_plugin_tools(&folder.join(PLUGINS_FOLDER));
    let unconfined = tools.check_confinement().err().map(|why| why.to_string());
    let (servers, offers) = list_mcp_tools(servers, &config, secrets, &mut problems);
    let mut agents = read_agent_definitions(&folder.join(AGENTS_FOLDER), &mut problems);
    for program in external_agents::program_agents(&config) {
        if agents.iter().all(|known| known.name != program.name) {
            agents.push(program);
        }
    }
    let own_keys = model_setup::read_installation_keys(&config, secrets);
    let machine = detect_platform().tool_machine(config.containers.socket.as_deref());
    let here = AgentSetup { unconfined, machine, known, contexts, ..AgentSetup::default() };
    AgentSetup { config, agents, plugins, problems, own_keys, servers, offers, ..here }
}

/// Returns the files in a folder with this extension, sorted by name.
fn list_files_with_ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    files.truncate(MAX_PLUGIN_FILES);
    files
}

/// Reads the user's own agents: Markdown files with front matter.
fn read_agent_definitions(folder: &Path, problems: &mut Vec<String>) -> Vec<AgentDefinition> {
    let mut found = Vec::new();
    for file in list_files_with_ending(folder, "md") {
        let text = crate::fs::copy::read(&file, MAX_PLUGIN_BYTES).and_then(|bytes| String::from_utf8(bytes).ok());
        match AgentDefinition::parse(&text.unwrap_or_default()) {
            Ok(agent) => {
                problems.extend(agent.unknown_keys().into_iter().map(|said| format!("{said}: {}", file.display())));
                found.push(AgentDefinition { path: Some(file.display().to_string()), ..agent });
            }
            Err(why) => problems.push(format!("{why}: {}", file.display())),
        }
    }
    found
}

/// Reports what a call gives.
fn send_update(inbox: &Mailbox, call: ModelCallId, update: ModelUpdate) {
    inbox.send_event(match update {
        ModelUpdate::Delta(delta) => Event::ModelDelta { call, delta },
        ModelUpdate::Answer(answer) => Event::ModelDone { call, result: Ok(Box::new(answer)) },
        ModelUpdate::Failure(failure) => Event::ModelDone { call, result: Err(failure) },
    });
}

impl AgentEffects {
    pub(crate) fn new(program: PathBuf, folder: PathBuf, search: SearchService, inbox: Mailbox) -> AgentEffects {
        let mut place = ToolWorkspace::new(program, &folder);
        place.search = Some(search.clone());
        let secrets = configuration::user_config_folder().map(|folder| Arc::new(UserSecrets::new(&folder)));
        let vault = secrets.clone().map(|secrets| Arc::new(SecretTokens::new(secrets)) as Arc<dyn TokenVault>);
        let servers = McpServerPool::for_runs(vault);
        let requests = ServerRequests::new(inbox.clone());
        (place.servers, place.server_requests) = (Some(servers.clone()), Some(requests.clone()));
        let external = Arc::new(ExternalAgents::new(&folder, place.baselines.clone()));
        let tools = Arc::new(ToolRunner::new(place));
        tools.remove_leftovers();
        let (jobs, next) = (HashMap::new(), Arc::default());
        let providers = Arc::new(ProviderClient::in_workspace(&folder));
        AgentEffects { inbox, folder, search, providers, secrets, servers, requests, tools, external, jobs, next }
    }

    /// Reads the agents' setup in the background, and sends it as an event.
    pub(crate) fn reload_setup(&self) {
        let (inbox, folder, tools) = (self.inbox.clone(), self.folder.clone(), self.tools.clone());
        let (secrets, servers) = (self.secrets.clone(), self.servers.clone());
        std::thread::spawn(move || {
            let setup = read_setup(&folder, &tools, secrets.as_deref(), &servers);
            inbox.send_event(Event::AgentSetup(Box::new(setup)));
        });
    }

    fn next_number(&self) -> u64 {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        *next
    }

    /// Gathers context for a message: the files that it names, search results, memory and agents.
    pub(crate) fn gather_context(
        &self,
        (run, root, fork): (DocId, PathBuf, Option<String>),
        paths: Vec<MentionedFile>,
        text: String,
        limit: usize,
        (memory_root, memory): (PathBuf, Vec<String>),
        (material, elsewhere): (Vec<ServerMaterial>, Vec<AgentVolume>),
    ) {
        let mut jobs: Vec<(String, ToolJob)> = Vec::new();
        for MentionedFile { name, root, path } in paths {
            jobs.push((name, ToolJob::Read { root, path, lines: None }));
        }
        if limit > 0 {
            let query = query_of_message(&text, MAX_QUERY_CHARS);
            // Excludes runs and sessions, because this run's own messages aren't useful context.
            let query = format!("in:prose OR in:code OR in:output OR in:memory {query}");
            jobs.push(("Found in the workspace".to_owned(), ToolJob::Search { query, limit, fork }));
        }
        let (tell, told) = channel();
        for (at, (_, job)) in jobs.iter().enumerate() {
            let tell = tell.clone();
            self.tools.start(self.next_number(), job.clone(), move |outcome| _ = tell.send((at, outcome)));
        }
        let material = self.servers.gather(material, MATERIAL_TIMEOUT);
        let (inbox, search) = (self.inbox.clone(), self.search.clone());
        std::thread::spawn(move || {
            let until = Instant::now() + GATHER_TIMEOUT;
            let mut found: Vec<(usize, ToolOutcome)> = Vec::new();
            while found.len() < jobs.len() {
                match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(one) => found.push(one),
                    Err(_) => break,
                }
            }
            found.sort_by_key(|(at, _)| *at);
            let found = found
                .into_iter()
                .filter(|(_, outcome)| outcome.success && !outcome.text.trim().is_empty())
                // An empty result isn't context.
                .filter(|(_, outcome)| !outcome.found_nothing)
                .map(|(at, outcome)| (jobs[at].0.clone(), outcome.text))
                .collect();
            let mut memory =
                Box::new(crate::agents::project_memory::recall_project_memory(&search, &memory_root, &memory, &text));
            crate::agents::project_memory::read_written_files(&root, &mut memory);
            let crew = Box::new(crate::agents::project_memory::read_callable_agents(&root, &elsewhere));
            let material = material.wait();
            inbox.send_event(Event::Gathered { run, found, material, memory, crew });
        });
    }

    /// Reads all memory of a volume in the background.
    pub(crate) fn load_memory(&self, volume: DocId, root: PathBuf) {
        let inbox = self.inbox.clone();
        std::thread::spawn(move || {
            let memory = Box::new(crate::agents::project_memory::read_project_memory(
                &root,
                &crate::agents::project_memory::memory_folders(&root),
            ));
            inbox.send_event(Event::MemoryRead { volume, memory });
        });
    }

    /// Starts the call of a program that works as an agent.
    fn start_program_call(&self, call: ModelCallId, request: ModelRequest) {
        let (inbox, secrets, external) = (self.inbox.clone(), self.secrets.clone(), self.external.clone());
        external.expect(call.run);
        // Reading a secret may block on the keyring.
        std::thread::spawn(move || {
            let wanted = request.program.iter().flat_map(|program| &program.program.env);
            let env: anyhow::Result<BTreeMap<String, String>> =
                wanted.map(|(key, value)| Ok((key.clone(), expand_secrets(value, secrets.as_deref())?))).collect();
            match env {
                Ok(env) => external.call(call, &request, env, move |update| send_update(&inbox, call, update)),
                Err(why) => {
                    let kind = ModelErrorKind::Refused;
                    let failure = ModelError { kind, why: format!("{why:#}"), partial: String::new() };
                    inbox.send_event(Event::ModelDone { call, result: Err(failure) });
                }
            }
        });
    }

    pub(crate) fn start_model_call(&self, call: ModelCallId, request: ModelRequest) {
        if request.program.is_some() {
            return self.start_program_call(call, request);
        }
        let (inbox, secrets, providers) = (self.inbox.clone(), self.secrets.clone(), self.providers.clone());
        // Reading a key may block on the keyring.
        std::thread::spawn(move || {
            let key = match secrets.as_deref().map(|secrets| llm::read_endpoint_key(&request.endpoint, secrets)) {
                Some(Ok(key)) => key.map(|key| key.expose().to_owned()),
                None => None,
                Some(Err(why)) => {
                    let failure =
                        ModelError { kind: ModelErrorKind::Key, why: why.to_string(), partial: String::new() };
                    return inbox.send_event(Event::ModelDone { call, result: Err(failure) });
                }
            };
            providers.start_call(call, request, key, move |update| send_update(&inbox, call, update));
        });
    }

    pub(crate) fn cancel_model_call(&self, call: ModelCallId) {
        self.providers.cancel(call);
        self.external.cancel(call.run);
    }

    pub(crate) fn start_tool_job(&mut self, run: DocId, call: String, job: ToolJob) {
        let number = self.next_number();
        self.jobs.insert((run, call.clone()), number);
        let (inbox, external) = (self.inbox.clone(), self.external.clone());
        self.tools.start_command(number, job, self.external.command_of(&call), move |outcome| {
            external.note_changes(run, &outcome.changed);
            inbox.send_event(Event::ToolDone { run, call, outcome: Box::new(outcome) });
        });
    }

    pub(crate) fn cancel_tool_job(&mut self, run: DocId, call: &str) {
        if let Some(number) = self.jobs.remove(&(run, call.to_owned())) {
            self.tools.cancel(number);
        }
    }

    pub(crate) fn answer_server(&self, request: &str, reply: ServerReply) {
        self.requests.answer(request, reply);
    }

    pub(crate) fn close_browser(&self, run: DocId) {
        self.tools.close_browser(run);
    }

    pub(crate) fn remove_containers(&self, run: DocId) {
        self.tools.remove_containers(run);
    }

    /// Cancels all pending tool jobs.
    pub(crate) fn close(&self) {
        self.tools.cancel_all();
        self.external.close();
    }
}
