//! Specifications of tools for models, with their risk, permissions and source.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::StepTool;

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

/// What a tool may access.
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
    /// The program itself.
    #[default]
    BuiltIn,
    /// The user's own code.
    User {
        /// Hash of the code.
        code: String,
        /// The tool's id. It isn't part of the definition.
        #[serde(skip)]
        id: String,
        /// The version number. It isn't part of the definition.
        #[serde(skip)]
        version: u64,
    },
    /// An MCP server.
    Server {
        /// The server's name in the configuration.
        server: String,
        /// The tool's name on the server.
        tool: String,
    },
}

/// Specification of a tool as sent to models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name of the tool: at most 64 letters, digits, `_` and `-`.
    pub name: String,
    /// What the tool does and when to use it, for models.
    pub description: String,
    /// JSON schema (https://json-schema.org, draft 2020-12) of the arguments, which are an object.
    pub parameters: Value,
    /// Risk level of the tool.
    pub risk: ToolRisk,
    /// What the tool may access.
    pub permissions: ToolPermissions,
    /// Whether calling the tool twice has the same effect as once.
    pub idempotent: bool,
    /// Where the tool comes from.
    #[serde(default)]
    pub source: ToolSource,
}

impl ToolSpec {
    /// Removes the optional argument that names a volume from a built-in tool's parameters, to save room in a request.
    /// A path may name the volume instead.
    pub fn remove_volume_argument(&mut self) {
        if self.source == ToolSource::BuiltIn
            && let Some(properties) = self.parameters.get_mut("properties").and_then(Value::as_object_mut)
        {
            properties.remove("volume");
        }
    }

    /// Returns the name shown to users, as `SERVER/TOOL` for a tool of an MCP server.
    pub fn title(&self) -> String {
        match &self.source {
            ToolSource::Server { server, tool } => format!("{server}/{tool}"),
            ToolSource::BuiltIn | ToolSource::User { .. } => self.name.clone(),
        }
    }

    /// Returns the hash of the tool's definition; `None` for built-in tools, which can't change while the program runs.
    pub fn definition_hash(&self) -> Option<String> {
        if self.source == ToolSource::BuiltIn {
            return None;
        }
        Some(hash_definition(&self.source, &self.description, &self.parameters, &self.permissions))
    }
}

impl ToolSpec {
    /// Returns what a step records of this tool.
    pub fn step_tool(&self) -> StepTool {
        let (id, version) = match &self.source {
            ToolSource::BuiltIn => (format!("system:{}", self.name), env!("CARGO_PKG_VERSION").to_owned()),
            ToolSource::User { id, version, .. } => (id.clone(), version.to_string()),
            ToolSource::Server { server, tool } => (format!("mcp:{server}/{tool}"), String::new()),
        };
        let hash = hash_definition(&self.source, &self.description, &self.parameters, &self.permissions);
        StepTool { id, version, hash, arguments: None, execution: None }
    }

    /// Returns who made the tool, as in tool files: `system`, `user`, or `server`.
    pub fn kind_label(&self) -> &'static str {
        match self.source {
            ToolSource::BuiltIn => "system",
            ToolSource::User { .. } => "user",
            ToolSource::Server { .. } => "server",
        }
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
