//! Resolves the agents that a message mentions: known, disabled and unknown names.

use crate::session::apply_context::ApplyContext;
use crate::session::runs::orchestrated_run::is_orchestrated;
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, new_step};
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::agent_registry::AgentRegistry;
use agent::mention_match::{MentionMatch, agents_of_files, attached_note_sentence, match_mention, strip_code};
use agent::name_suggestions::{unknown_agent_sentence, unknown_tool_sentence};
use agent::{agent_definition, model_context, prompt_quote};
use store::{DocId, ExecutionStep, StepKind};

/// Route of a step that reports a problem with a message.
pub(super) const NOTICE_ROUTE: &str = "notice";

impl RunsState {
    /// Returns whether the configuration disables the agent with this name.
    pub(in crate::session) fn is_switched_off(&self, agent: &str) -> bool {
        let choices = self.setup().map(|setup| &setup.config.agents.specialists);
        choices.and_then(|all| all.get(agent)?.enabled) == Some(false)
    }

    /// Returns the names of all available agents, including the project's.
    pub(in crate::session) fn agent_names(&self, crew: &AgentRegistry) -> Vec<String> {
        let mut names: Vec<String> = self.known_agents(crew).into_iter().map(|agent| agent.name).collect();
        names.extend(crew.python.iter().map(|agent| agent.name.clone()).filter(|name| !self.is_switched_off(name)));
        names
    }

    /// Returns why the agent with this name isn't available (it's disabled or doesn't exist); `None` if it is.
    pub(in crate::session) fn agent_unavailable_reason(&self, crew: &AgentRegistry, name: &str) -> Option<String> {
        if name == agent_definition::BUTTON_AGENT || self.knows_agent(crew, name) {
            return None;
        }
        let said = prompt_quote::quote_inline(name, 60);
        if self.is_switched_off(name) || crew.find_python_agent(name).is_some() {
            return Some(format!(
                "The agent {said} is switched off in the configuration (agents.specialists.{}.enabled). Switch it on, \
                 or ask another one.",
                prompt_quote::single_line(name, 60)
            ));
        }
        crew.untrusted_reason(name).or_else(|| Some(unknown_agent_sentence(name, &self.agent_names(crew))))
    }

    /// Returns what is wrong with the approval lists of the configuration, if they name an unknown tool.
    pub(in crate::session) fn unknown_approval_name(&self) -> Option<String> {
        agent::approval_names::unknown_approval_name(&self.setup()?.config, &self.named_tools())
    }

    /// Returns the names of tools that a rule may name. A tool that waits for approval counts, too: the rule says what
    /// holds once it is approved.
    pub fn named_tools(&self) -> Vec<String> {
        let known = self.orchestrator_tools().into_iter().map(|tool| tool.name);
        let own = self.registry.iter().flat_map(|registry| &registry.tools).filter_map(|tool| tool.newest_version());
        known.chain(own.map(|tool| tool.name.clone())).collect()
    }

    /// Returns a sentence for each rule that names an unknown tool; such rules allow nothing.
    pub(in crate::session) fn unknown_tools(&self, rules: &[String]) -> Vec<String> {
        let known = self.named_tools();
        let mut told = Vec::new();
        for rule in rules {
            let name = rule.split(':').next().unwrap_or_default().trim();
            if name.is_empty() || name.contains('*') || known.iter().any(|tool| tool == name) {
                continue;
            }
            told.push(unknown_tool_sentence(name, &known));
        }
        told
    }

    /// Returns the first available agent that a message mentions with `@`, in any case.
    pub(super) fn mentioned_agent(&self, text: &str) -> Option<String> {
        let names = self.agent_names(&AgentRegistry::default());
        let mut mentions = model_context::mentions(text).into_iter();
        mentions.find_map(|mention| names.iter().find(|name| name.eq_ignore_ascii_case(&mention)).cloned())
    }

    /// Finds what a mention means that isn't a path: an agent or a note, or parts of such names. Before the agents of
    /// the project are known, their files stand for them.
    pub(super) fn match_mention(
        &self,
        crew: Option<&AgentRegistry>,
        volumes: &VolumesState,
        volume: DocId,
        mention: &str,
    ) -> MentionMatch {
        let files = volumes.by_id.get(&volume).map(|volume| &volume.files);
        let paths = || files.into_iter().flat_map(|files| files.keys().map(String::as_str));
        // `notes/poet` is `poet` in the volume `notes` itself.
        let own = volumes.by_id.get(&volume).map_or("", |volume| volume.name.as_str());
        let short = mention.strip_prefix(own).and_then(|rest| rest.strip_prefix('/'));
        let mention = short.filter(|rest| !rest.contains(['/', '.'])).unwrap_or(mention);
        let none = AgentRegistry::default();
        let names = self.agent_names(crew.unwrap_or(&none)).into_iter().map(|name| (name.clone(), name));
        let mut agents: Vec<(String, String)> = names.collect();
        match crew {
            Some(crew) => agents.extend(crew.file_names().filter(|(_, class)| !self.is_switched_off(class))),
            None => agents.extend(agents_of_files(paths())),
        }
        // These have a volume of their own, which is chosen before.
        agents.retain(|(name, agent)| !agent_definition::is_memory_agent(agent) || name.eq_ignore_ascii_case(mention));
        match_mention(mention, &agents, paths())
    }

    /// Replaces mentions of notes by a part of their name with the paths of these notes.
    pub(super) fn expand_mentions(&self, volumes: &VolumesState, volume: DocId, mentions: &mut [String]) {
        for mention in mentions.iter_mut() {
            let (bare, rest) = mention.split_at(mention.find('#').unwrap_or(mention.len()));
            if is_path(bare) || volumes.find_file(volume, bare).is_some() {
                continue;
            }
            if let MentionMatch::Note(path) = self.match_mention(None, volumes, volume, bare) {
                *mention = format!("{path}{rest}");
            }
        }
    }

    /// Creates a step that reports `@names` that match no agent, which are treated as text, or a part of a note's name.
    pub(super) fn unknown_mentions_step(
        &self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        run: &AgentRun,
    ) -> Option<ExecutionStep> {
        let mut lines = Vec::new();
        for name in model_context::mentions(&strip_code(&run.about.prompt)) {
            let bare = name.split('#').next().unwrap_or(&name);
            let file = volumes.find_file(run.about.volume, bare.trim_start_matches("./")).is_some();
            let path = is_path(bare) || !bare.starts_with(char::is_alphabetic);
            if file || self.is_server_mention(&name) || self.knows_agent(&run.project_agents, bare) {
                continue;
            }
            if path {
                let why = run.project_agents.untrusted_reason(bare);
                lines.extend(why.map(|why| format!("{why} @{bare} was taken as text.")));
                continue;
            }
            let why = match self.match_mention(Some(&run.project_agents), volumes, run.about.volume, bare) {
                MentionMatch::Note(path) => {
                    lines.extend(attached_note_sentence(bare, &path));
                    continue;
                }
                MentionMatch::Agent(_) => None,
                MentionMatch::Several(near) => Some(format!(
                    "{} could be {}. Write more of the name.",
                    prompt_quote::quote_inline(bare, 60),
                    near.iter().map(|name| prompt_quote::single_line(name, 100)).collect::<Vec<_>>().join(" or ")
                )),
                MentionMatch::Nothing if bare.ends_with(".md") => None,
                MentionMatch::Nothing => self.agent_unavailable_reason(&run.project_agents, bare),
            };
            lines.extend(why.map(|why| format!("{why} @{bare} was taken as text.")));
        }
        let content = (!lines.is_empty()).then(|| lines.join("\n"))?;
        let mut made = new_step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        made.route = Some(NOTICE_ROUTE.to_owned());
        Some(made)
    }

    /// Ends a run whose agent isn't available, without replacing the agent. If the agents of the configuration aren't
    /// known yet, the run waits for them. Returns whether it ended or waits.
    pub(super) fn end_run_without_agent(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> bool {
        let Some(run) = self.runs.get(&id) else { return false };
        let Some(why) = self.agent_unavailable_reason(&run.project_agents, &run.about.agent) else { return false };
        if is_orchestrated(run) && !self.is_switched_off(&run.about.agent) {
            return false;
        }
        if self.setup.is_none() {
            self.stalled_runs.insert(id);
            self.request_setup(turn, workspace);
            return true;
        }
        self.fail_run(turn, files, sync, workspace, id, (why, store::RunEnding::Failed));
        true
    }
}

/// Returns whether a mention is written as the path of a file. `Plan.md` may be a name, too.
fn is_path(bare: &str) -> bool {
    bare.strip_suffix(".md").unwrap_or(bare).contains(['/', '.', '\\', '#'])
}
