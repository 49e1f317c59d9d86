//! Tools as models see them, and what they put at risk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How much harm a tool can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// It only looks.
    None,
    /// It changes what can be undone.
    #[default]
    Low,
    /// It runs code in the sandbox.
    Medium,
    /// It leaves the sandbox: network, the user's programs.
    High,
    /// It cannot be undone.
    Critical,
}

/// What a tool may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Permissions {
    /// The network.
    pub network: bool,
    /// Files of the volume.
    pub fs: bool,
    /// Programs.
    pub process: bool,
    /// The window.
    pub ui: bool,
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON schema (https://json-schema.org, draft 2020-12) of its arguments: an object.
    pub parameters: Value,
    /// What harm it can do.
    pub risk: Risk,
    /// What it may touch.
    pub permissions: Permissions,
    /// Whether running it twice is as good as once.
    pub idempotent: bool,
}
