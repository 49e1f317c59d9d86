//! Tools as models see them, and what they put at risk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Risk level of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolRisk {
    /// Reads only.
    None,
    /// Makes changes that can be undone.
    #[default]
    Low,
    /// Runs code in the sandbox.
    Medium,
    /// Reaches outside the sandbox: network, the user's programs.
    High,
    /// Makes changes that can't be undone.
    Critical,
}

/// What a tool may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolPermissions {
    /// May use the network.
    pub network: bool,
    /// May access files of the volume.
    pub fs: bool,
    /// May start programs.
    pub process: bool,
    /// May control the window.
    pub ui: bool,
}

/// Where a tool comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSource {
    /// It belongs to the program.
    #[default]
    BuiltIn,
    /// It is the user's own.
    User {
        /// The hash of its code.
        code: String,
    },
    /// It belongs to an MCP server.
    Server {
        /// The server's name in the configuration.
        server: String,
        /// The tool's name there.
        tool: String,
    },
}

/// Specification of a tool as sent to models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What the tool does and when to use it, for models.
    pub description: String,
    /// JSON schema (https://json-schema.org, draft 2020-12) of its arguments: an object.
    pub parameters: Value,
    /// What harm it can do.
    pub risk: ToolRisk,
    /// What it may touch.
    pub permissions: ToolPermissions,
    /// Whether running it twice is as good as once.
    pub idempotent: bool,
    /// Where it comes from.
    #[serde(default)]
    pub source: ToolSource,
}

impl ToolSpec {
    /// How it is shown to people: a tool of a server with the server's name.
    pub fn title(&self) -> String {
        match &self.source {
            ToolSource::Server { server, tool } => format!("{server}/{tool}"),
            ToolSource::BuiltIn | ToolSource::User { .. } => self.name.clone(),
        }
    }

    /// A hash of all that it is; `None`: it cannot change while the program runs.
    pub fn definition_hash(&self) -> Option<String> {
        if self.source == ToolSource::BuiltIn {
            return None;
        }
        Some(hash_definition(&self.source, &self.description, &self.parameters, &self.permissions))
    }
}

/// Hashes a tool's definition: source, description, parameters and permissions.
pub fn hash_definition(
    source: &ToolSource,
    description: &str,
    parameters: &Value,
    permissions: &ToolPermissions,
) -> String {
    let all = serde_json::json!({
        "source": source, "description": description, "parameters": parameters, "permissions": permissions,
    });
    all.as_object().map(super::policy_rule::hash_arguments).unwrap_or_default()
}
