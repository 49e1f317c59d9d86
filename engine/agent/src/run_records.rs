//! Runs and sessions of agents as the host and the disk know them: what they work with, their lines in lists.

use crate::router;
use crate::tool_spec::ToolSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{CallUsage, DocId, RunDevice, RunEnding, RunOrigin};

/// The beginning of the names under which the disk keeps a line about each run.
pub const RUN_KEY_PREFIX: &str = "runs/";
/// The beginning of the names under which the disk keeps a line about each session.
pub const SESSION_KEY_PREFIX: &str = "sessions/";
/// Under which name the disk keeps the rules that the user's decisions have made.
pub const POLICY_RULES_KEY: &str = "policy";

/// What agents have to work with: read by the host from files and servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSetup {
    /// The configuration from `config.yaml`.
    pub config: crate::config::AgentConfig,
    /// What is wrong with its file: runs cannot begin then.
    pub trouble: Option<String>,
    /// Why tools cannot be confined on this machine.
    pub unconfined: Option<String>,
    /// Status of each provider, by name.
    pub known: BTreeMap<String, router::ProviderStatus>,
    /// Context sizes in tokens from the price list, by provider.
    pub contexts: BTreeMap<String, u64>,
    /// The user's own agents.
    pub agents: Vec<crate::agent_definition::AgentDefinition>,
    /// Tools in the folder of plugins.
    pub plugins: Vec<store::UserTool>,
    /// What is wrong with files of plugins and with servers, for the user.
    pub problems: Vec<String>,
    /// The values of the keys of this installation, which no model and no log may hold.
    pub own_keys: crate::secrets::InstallationKeys,
    /// Tools of MCP servers: the server, its name for the tool, and the tool as models see it.
    pub servers: Vec<(String, String, ToolSpec)>,
}

/// A line about a run, for lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The session that the run belongs to.
    pub session: DocId,
    /// The volume that it works in.
    pub volume: DocId,
    /// What was asked, or its beginning.
    pub prompt: String,
    /// When, milliseconds since 1970.
    pub start_time: i64,
    /// When it ended, in milliseconds since 1970; `None` while it's active.
    pub ended: Option<i64>,
    /// How it ended; `None`: it has not.
    pub ending: Option<RunEnding>,
    /// How often a model was called.
    pub iteration: u64,
    /// How many decisions it waits for.
    pub pending: usize,
    /// Tokens and money used so far.
    pub spent: CallUsage,
    /// How many steps it has.
    #[serde(default)]
    pub steps: usize,
    /// Name of its agent.
    #[serde(default)]
    pub agent: String,
    /// Who or what started it.
    #[serde(default)]
    pub origin: RunOrigin,
    /// The phase that it is in, from 1, where its agent works in phases; else 0.
    #[serde(default)]
    pub phase: u8,
    /// The device that it belongs to; `None`: this one.
    #[serde(default)]
    pub device: Option<RunDevice>,
    /// US dollars that it may cost, with all that it hands on; `None`: nothing was said.
    #[serde(default)]
    pub budget: Option<f64>,
}

/// A line about a session, for lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// Title of the session.
    pub title: String,
    /// The volume in which it works.
    pub volume: Option<DocId>,
    /// The note in which it was begun.
    pub note: Option<DocId>,
    /// When something was said last, milliseconds since 1970.
    pub updated: i64,
    /// How many messages it has.
    pub messages: usize,
    /// How many ends its tree has.
    pub branches: usize,
    /// Whether the user has put it away.
    #[serde(default)]
    pub closed: bool,
    /// The heads of its document, as [`store::SessionDoc::heads`] has them.
    #[serde(default)]
    pub heads: String,
}

/// Prefix of the keys under which the disk keeps cost outside runs.
pub const EMBEDDING_COSTS_KEY_PREFIX: &str = "outlays/";
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// What was spent for one thing: by one call, or on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingCost {
    /// For what: the endpoint and its model, `https://…/v1#model`.
    pub what: String,
    /// Number of calls.
    pub calls: u64,
    /// Tokens that were read.
    pub tokens: u64,
    /// US dollars of the calls whose price is known.
    pub cost: f64,
    /// Calls whose price is not.
    pub unknown: u64,
    /// When the last one was, milliseconds since 1970.
    pub at: i64,
}

impl EmbeddingCost {
    /// The day of its last call, counted from 1970.
    pub fn day_number(&self) -> i64 {
        self.at.div_euclid(DAY_MS)
    }
}
