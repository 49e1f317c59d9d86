//! User tools: proposed by an agent, by hand or by a file, read and approved by the user, then available in every
//! project.

use crate::effect::Effect;
use crate::event::DocumentLoadError;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::runs::{RunsState, ToolRegistry};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::policy::{CallFacts, Permission};
use agent::tool_catalog::BuiltInTool;
use agent::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use serde_json::Map;
use store::disk::RowWrite;
use store::{BlobHash, DocId, RegisteredTool, RegistryDoc, RegistryWrite, ToolGrants, UserTool};

/// Maximum number of user tools.
const MAX_USER_TOOLS: usize = 500;

/// Returns the description of a tool for models.
fn user_tool_spec(tool: &UserTool) -> ToolSpec {
    let ToolGrants { fs, ui, process } = tool.grants;
    ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
        risk: match (tool.network, tool.grants.process) {
            // It can send what its commands read to anyone.
            (true, true) => ToolRisk::Critical,
            (true, false) => ToolRisk::High,
            (false, _) => ToolRisk::Medium,
        },
        permissions: ToolPermissions { network: tool.network, fs, process, ui },
        idempotent: false,
        source: ToolSource::User {
            code: BlobHash::of(tool.code.as_bytes()).to_string(),
            id: tool.tool_id(),
            version: tool.version,
        },
    }
}

fn validate_tool(tool: &UserTool) -> Result<(), CommandError> {
    agent::tool_file::check_tool(tool).map_err(|why| CommandError(why.to_string()))
}

impl RunsState {
    /// Returns the user's tools; `None` until they're loaded.
    pub(in crate::session) fn user_tools(&self) -> Option<&[RegisteredTool]> {
        self.registry.as_ref().map(|registry| registry.tools.as_slice())
    }

    /// Returns the approved tools that agents call, as models see them.
    pub(super) fn approved_tools(&self) -> impl Iterator<Item = ToolSpec> {
        let usable = self.user_tools().unwrap_or_default().iter().filter_map(RegisteredTool::usable_version);
        usable.filter(|tool| !tool.is_event_handler()).map(user_tool_spec)
    }

    /// Returns the approved functions that events call; `None` until the tools are loaded.
    pub(in crate::session) fn event_handlers(&self) -> Option<Vec<&UserTool>> {
        let usable = self.user_tools()?.iter().filter_map(RegisteredTool::usable_version);
        Some(usable.filter(|tool| tool.is_event_handler()).collect())
    }

    /// Returns the approved functions that events call, as they are checked and shown.
    pub(super) fn handler_tools(&self) -> impl Iterator<Item = ToolSpec> {
        self.event_handlers().unwrap_or_default().into_iter().map(user_tool_spec)
    }

    /// Returns whether a user tool with this name exists, approved or not.
    pub(super) fn is_own_tool(&self, name: &str) -> bool {
        let known = self.user_tools().unwrap_or_default();
        known.iter().any(|known| known.newest_version().is_some_and(|newest| newest.name == name))
    }

    /// Returns whether calls of a tool need approval, without arguments that a rule could match.
    pub(in crate::session) fn requires_approval(&self, tool: &ToolSpec) -> bool {
        let nowhere = DocId([0; 16]);
        let decided = self.policy().decide(tool, &Map::new(), &CallFacts::default(), nowhere, nowhere);
        BuiltInTool::AskUser.is_named(&tool.name) || decided.word != Permission::Allow
    }

    pub(super) fn approved_tool(&self, name: &str) -> Option<&UserTool> {
        self.user_tools()?.iter().filter_map(RegisteredTool::usable_version).find(|tool| tool.name == name)
    }

    pub(in crate::session) fn read_registry(&mut self, turn: &mut ApplyContext<'_>, workspace: &WorkspaceState) {
        let id = workspace.registry_id();
        if self.registry.is_none() && self.loading.insert(id) {
            turn.effects.push(Effect::LoadRegistry { registry: id });
        }
    }

    pub(in crate::session) fn registry_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        doc: Result<Box<RegistryDoc>, DocumentLoadError>,
    ) {
        self.loading.remove(&id);
        self.revision += 1;
        if id != workspace.registry_id() {
            return self.on_shared_tools_loaded(turn, &files.volumes, sync, id, doc);
        }
        match doc {
            Ok(doc) => {
                let tools = doc.tools();
                let fresh = tools.is_empty();
                self.registry.get_or_insert(ToolRegistry { doc, tools, fresh });
            }
            Err(DocumentLoadError(why)) => {
                self.read_errors.insert(id, why.clone());
                turn.journal.problems.push(why);
            }
        }
        self.propose_plugins(turn, sync, workspace);
        self.begin_requested_runs(turn, files, sync, workspace);
        self.resume_stalled_runs(turn, files, sync, workspace);
    }

    /// Proposes the tools in the plugin folder, each version once.
    pub(super) fn propose_plugins(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        workspace: &WorkspaceState,
    ) {
        let plugins = self.setup().map(|setup| setup.plugins.clone()).unwrap_or_default();
        for plugin in plugins {
            let known = self.user_tools().unwrap_or_default().iter().any(|tool| {
                let plugin = plugin.content_hash();
                tool.versions.iter().any(|version| version.content_hash() == plugin)
            });
            if !known && self.user_tools().is_some() {
                let name = plugin.name.clone();
                if let Err(CommandError(why)) = self.propose_tool(turn, sync, workspace, plugin) {
                    turn.journal.problems.push(format!("the plugin {name}: {why}"));
                }
            }
        }
    }

    fn write_registry(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        workspace: &WorkspaceState,
        writes: &[RegistryWrite],
    ) -> Result<(), CommandError> {
        let id = workspace.registry_id();
        let Some(registry) = &mut self.registry else {
            return Err(CommandError("the tools are still being read; try again in a moment".to_owned()));
        };
        let bytes =
            registry.doc.commit(writes, turn.now.as_seconds()).map_err(|error| CommandError(error.to_string()))?;
        let bytes = if std::mem::take(&mut registry.fresh) { registry.doc.save() } else { bytes };
        registry.tools = registry.doc.tools();
        self.revision += 1;
        self.tools_changed(sync);
        turn.append_writes(vec![RowWrite::Chunk { doc: id, bytes }], None);
        Ok(())
    }

    /// Proposes a new tool or a new version of a tool. It isn't used until the user has approved it.
    pub(in crate::session) fn propose_tool(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        workspace: &WorkspaceState,
        mut tool: UserTool,
    ) -> Result<(), CommandError> {
        validate_tool(&tool)?;
        let served = self.setup().into_iter().flat_map(|setup| &setup.servers);
        if let Some((server, ..)) = served.clone().find(|(_, _, spec)| spec.name == tool.name) {
            let name = &tool.name;
            return Err(CommandError(format!(
                "the MCP server {server} has a tool {name} already; choose another name"
            )));
        }
        let known = self.user_tools().unwrap_or_default();
        if known.len() >= MAX_USER_TOOLS {
            return Err(CommandError(format!("there are {MAX_USER_TOOLS} tools already; remove some")));
        }
        let versions = known.iter().find(|known| known.newest_version().is_some_and(|newest| newest.name == tool.name));
        // A tool from a file keeps its number and time if it's newer than the known versions.
        let newest = versions.and_then(RegisteredTool::newest_version);
        let next = newest.map_or(1, |newest| newest.version.saturating_add(1));
        tool.version = tool.version.max(next);
        if let Some(id) = newest.map(UserTool::tool_id) {
            tool.id = id; // one name is one tool
        }
        if tool.created == 0 {
            tool.created = turn.now.0;
        }
        self.write_registry(turn, sync, workspace, &[RegistryWrite::Version(Box::new(tool))])
    }

    /// Sets the version of a tool that may be used, after the user has read it.
    pub(in crate::session) fn approve_tool(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        workspace: &WorkspaceState,
        name: String,
        version: Option<u64>,
    ) -> Result<(), CommandError> {
        let known = self.user_tools().unwrap_or_default();
        let tool = known.iter().find(|known| known.newest_version().is_some_and(|newest| newest.name == name));
        let Some(tool) = tool else { return Err(CommandError(format!("there is no tool {name} of yours"))) };
        if let Some(version) = version.filter(|version| tool.versions.iter().all(|one| one.version != *version)) {
            return Err(CommandError(format!("{name} has no version {version}")));
        }
        self.write_registry(turn, sync, workspace, &[RegistryWrite::Approved { name, version }])
    }

    pub(in crate::session) fn remove_tool(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        name: String,
    ) -> Result<(), CommandError> {
        let known = self.user_tools().unwrap_or_default();
        if !known.iter().any(|known| known.newest_version().is_some_and(|newest| newest.name == name)) {
            return Err(CommandError(format!("there is no tool {name} of yours")));
        }
        self.refuse_tool(turn, volumes, sync, &name);
        self.write_registry(turn, sync, workspace, &[RegistryWrite::Removed { name }])
    }
}
