//! Model turns of a run: chooses and calls a model, and turns its answer into steps, messages and tool calls.

use super::{delegation, memory_agents};
use crate::effect::Effect;
use crate::session::apply_context::ApplyContext;
use crate::session::runs::orchestrated_run::is_orchestrated;
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, LiveModelCall, OrchestratorQuery, add_usage, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::agent_definition::{AgentDefinition, SUMMARY_AGENT_PROMPT};
use agent::config::DEFAULT_CONTEXT_TOKENS;
use agent::model_call::{
    ModelCallId, ModelDelta, ModelError, ModelErrorKind, ModelRequest, ModelResponse, ModelStopReason,
};
use agent::model_context::{self, transcript};
use agent::repetition::{self, is_looping};
use agent::router::RoutingDecision;
use agent::run_records::{AgentSetup, PROVIDER_LATENCIES_KEY};
use agent::tool_catalog::BuiltInTool;
use agent::tool_spec::ToolSpec;
use agent::{planner, prompt_quote, router, tool_call_parser, tool_catalog};
use std::sync::Arc;
use store::disk::RowWrite;
use store::{
    AgentState, CallUsage, DocId, MessageId, MessageRole, RunEnding, RunOrigin, SessionMessage, StepKind, ToolCall,
};

/// Models with a smaller context than this many tokens aren't offered tools that they rarely need.
const SMALL_CONTEXT_TOKENS: u64 = 16_000;
/// Maximum length in bytes of a streamed answer that is kept for display; longer answers are still stored whole.
const MAX_LIVE_ANSWER_BYTES: usize = 4 << 20;
/// Maximum length of project and note names in prompts, in characters.
const MAX_PROMPT_NAME_CHARS: usize = 300;
/// Maximum length of a todo in prompts, in characters.
const MAX_PROMPT_TODO_CHARS: usize = 1_000;

/// A request to a model, before it's fitted into the model's context.
struct ModelDraft {
    setup: Arc<AgentSetup>,
    agent: AgentDefinition,
    choice: RoutingDecision,
    wants: Option<OrchestratorQuery>,
    system: String,
    messages: Vec<SessionMessage>,
    tools: Vec<ToolSpec>,
}

/// Returns the text of an answer without calls, the calls in it, and why further ones can't be read.
fn split_answer(
    answer: &mut ModelResponse,
    tools: &[ToolSpec],
    is_program: bool,
    given: &[String],
) -> (String, Vec<ToolCall>, Vec<String>) {
    let (mut text, mut asked) = (std::mem::take(&mut answer.text), std::mem::take(&mut answer.calls));
    let malformed = answer.malformed.iter();
    let mut unreadable: Vec<String> =
        malformed.map(|(name, why)| format!("the call of {name}: {}", truncate_text(why, 300))).collect();
    if asked.is_empty() && unreadable.is_empty() && !is_program {
        // Models without native tool calls write calls into their answer.
        let mut fenced = tool_call_parser::find_fenced_calls(&text);
        if fenced.is_empty() {
            let names = tools.iter().map(|tool| tool.name.as_str());
            fenced = tool_call_parser::find_inline_calls(&text, names);
        }
        tool_call_parser::remove_repeated_calls(&text, &mut fenced, given);
        text = tool_call_parser::strip_fenced_calls(&text, &fenced);
        for call in fenced {
            match call.call {
                Ok((name, arguments)) => asked.push(ToolCall { id: String::new(), name, arguments }),
                Err(why) => unreadable.push(why.to_string()),
            }
        }
    }
    (text, asked, unreadable)
}

impl RunsState {
    /// Returns the tools that a run may request: built-in tools, user tools, and tools of servers.
    pub(super) fn available_tools(&self) -> Vec<ToolSpec> {
        let mut tools = self.setup().map_or_else(tool_catalog::built_in, |setup| setup.machine.built_in_tools());
        tools.extend(self.approved_tools());
        let setup = self.setup();
        let further = setup.into_iter().flat_map(|setup| setup.servers.iter().map(|(_, _, tool)| tool.clone()));
        // Server tools can't take the name of a user tool. Their names were made different from all others before.
        tools.extend(further.filter(|tool| !self.is_own_tool(&tool.name)));
        tools
    }

    /// Calls the model for the next turn of a run. If the branch has become too long for it, requests a summary first.
    pub(super) fn call_model(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        if self.runs.get(&id).is_some_and(delegation::is_one_call) {
            return self.finish_button_run(turn, files, sync, workspace, id);
        }
        if self.read_project(turn, files, workspace, id) || self.end_run_without_agent(turn, files, sync, workspace, id)
        {
            return;
        }
        let leading = self.runs.get(&id).is_some_and(is_orchestrated);
        let wants = self.runs.get_mut(&id).and_then(|run| run.orchestrator.next_query.take());
        if (!leading || wants.is_none()) && self.deliver_messages(turn, sync, id) {
            return;
        }
        if leading && wants.is_none() {
            return self.step_orchestration(turn, files, sync, workspace, id);
        }
        let program = self.runs.get(&id).and_then(|run| self.definition_of(run).program);
        if program.is_none() && self.replay_next(turn, files, sync, workspace, id) {
            return;
        }
        let mut tools = self.available_tools();
        if !self.has_companions(id) {
            tools.retain(|tool| !BuiltInTool::MessageAgent.is_named(&tool.name));
        }
        let Some(run) = self.runs.get(&id) else { return };
        let session = run.about.session;
        let (setup, conversation) = (self.setup.clone(), self.sessions.get(&session));
        let (Some(setup), Some(conversation)) = (setup, conversation) else {
            // The run continues once both are loaded.
            if let Some(run) = self.runs.get_mut(&id) {
                run.orchestrator.next_query = wants;
            }
            self.stalled_runs.insert(id);
            if self.setup.is_none() {
                self.request_setup(turn, workspace);
            }
            // If it can't be opened, the reason is in `read_errors` and ends the run later.
            let _ = self.open_session(turn, session);
            return;
        };
        if let Some(program) = program {
            return self.call_program(turn, files, sync, workspace, (id, program));
        }
        if run.about.iteration >= run.about.limit {
            let limit = run.about.limit;
            let message = format!("The run has had its {limit} iterations. Resume it with more to let it go on.");
            return self.fail_run(turn, files, sync, workspace, id, (message, RunEnding::Limit));
        }
        let agent = self.definition_of(run);
        let tools = if leading { RunsState::tools_for_query(wants) } else { agent.allowed_tools(tools) };
        let (system, mut messages) = match wants {
            Some(OrchestratorQuery::Assignments) => {
                let question =
                    SessionMessage::new(MessageId(0), MessageRole::User, self.assignment_prompt(run), turn.now.0);
                (planner::ASSIGN_PROMPT.to_owned(), vec![question])
            }
            Some(OrchestratorQuery::Plan) | None => {
                let messages = model_context::context_messages(conversation.tree(), run.about.head);
                (self.system_prompt(run, &agent, &self.surroundings(&files.volumes, run)), messages)
            }
        };
        self.mask_messages(&mut messages);
        let tools = self.quote_tool_descriptions(tools);
        let size = model_context::estimate_request_tokens(&system, &tools, &messages);
        let features = router::RequestFeatures::from_request(&run.about.prompt, size, tools.len(), agent.max_tokens);
        let choice = match router::choose_provider(&setup.config, &features, &self.routing_context(run, &setup)) {
            Ok(choice) => choice,
            Err(why) if leading => {
                return self.orchestrate_without_model(turn, sync, id, wants, &why.to_string());
            }
            Err(why) if memory_agents::is_memory_agent_run(run) => {
                return self.run_memory_agent_without_model(turn, files, sync, workspace, id, &why.to_string());
            }
            Err(why) => {
                let ending = (why.to_string(), RunEnding::Failed);
                return self.fail_run(turn, files, sync, workspace, id, ending);
            }
        };
        let more = choice.cost.unwrap_or(0.0);
        let short = || {
            self.over_own_budget(id, more)
                .or_else(|| self.over_budget_reason(&files.volumes, workspace, run, turn.now, more))
        };
        if let Some(words) = (choice.cost != Some(0.0)).then(short).flatten() {
            if memory_agents::is_memory_agent_run(run) {
                return self.run_memory_agent_without_model(turn, files, sync, workspace, id, &words);
            }
            if wants == Some(OrchestratorQuery::Assignments) {
                return self.orchestrate_without_model(turn, sync, id, wants, words.trim_end_matches('.'));
            }
            let advice = agent::budget::cheaper_model_advice(&setup, &self.latencies, size, more);
            let words = advice.map_or(words.clone(), |advice| format!("{words} {advice}"));
            return self.fail_run(turn, files, sync, workspace, id, (words, RunEnding::Budget));
        }
        let draft = ModelDraft { setup, agent, choice, wants, system, messages, tools };
        self.send_draft(turn, &files.volumes, sync, workspace, id, draft);
    }

    /// Fits a request into the model's context and sends it. If the branch is too long, a summary is requested first.
    fn send_draft(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        draft: ModelDraft,
    ) {
        let ModelDraft { setup, agent, choice, wants, mut system, mut messages, mut tools } = draft;
        let Some(run) = self.runs.get(&id) else { return };
        // Reserve room for the answer.
        let name = &choice.endpoint.provider;
        let provider = setup.config.llm.providers.get(name);
        let stated = provider.and_then(|provider| provider.context).or_else(|| setup.contexts.get(name).copied());
        let room = stated.unwrap_or(DEFAULT_CONTEXT_TOKENS);
        let limit = room.saturating_sub(room / 4).max(1_000);
        let max_tokens = agent.max_tokens.or(provider.and_then(|provider| provider.max_tokens));
        let temperature = agent.temperature.or(provider.and_then(|provider| provider.temperature));
        let tool_choice = agent.tool_choice.filter(|_| wants.is_none());
        let tool_choice = tool_choice.map(|choice| choice.after_answers(run.about.iteration));
        if room < SMALL_CONTEXT_TOKENS {
            if agent.tools.is_none() {
                tool_catalog::remove_unmentioned_tools(&mut tools, &run.about.prompt);
            }
            tools.iter_mut().for_each(ToolSpec::remove_volume_argument);
        }
        let fixed = model_context::estimate_tokens(&system) + model_context::estimate_tool_tokens(&tools);
        let mut summary_of = model_context::messages_to_summarize(&messages, fixed, limit);
        if summary_of.is_empty() {
            model_context::truncate_to_fit(&mut messages, fixed, limit);
        } else {
            messages.retain(|message| summary_of.contains(&message.id));
            summary_of = messages.iter().map(|message| message.id).collect();
            model_context::truncate_to_fit(&mut messages, 0, limit);
            messages = vec![SessionMessage::new(
                MessageId(0),
                MessageRole::User,
                format!("Summarise this conversation.\n{}", transcript(&messages)),
                turn.now.0,
            )];
            (system, tools) = (SUMMARY_AGENT_PROMPT.to_owned(), Vec::new());
        }
        let (watchdog, leading) = (self.watchdog_limits(run), is_orchestrated(run));
        let Some(run) = self.runs.get_mut(&id) else { return };
        let offers_tools = leading || !summary_of.is_empty() || !is_looping(&run.steps);
        if !offers_tools {
            // Sent as text, because providers require tools in requests whose messages contain calls.
            let words = format!("{}\n\n{}", transcript(&messages), repetition::FINAL_ANSWER_PROMPT);
            messages = vec![SessionMessage::new(MessageId(0), MessageRole::User, words, turn.now.0)];
            tools = Vec::new();
        }
        let cost = choice.cost.unwrap_or(0.0);
        run.next_call += 1;
        run.orchestrator.last_query = wants;
        let call = ModelCallId { run: id, number: run.next_call };
        let route = choice.describe_route();
        let request_tokens = model_context::estimate_request_tokens(&system, &tools, &messages);
        let price = setup.model_price(&choice.endpoint);
        let limits = watchdog.model_call(choice.endpoint.local);
        let patience_ms = super::watchdog::model_patience_ms(limits);
        run.live = Some(LiveModelCall {
            cost,
            summary_of,
            request_tokens,
            price,
            offers_tools,
            ..LiveModelCall::new(call, turn.now, route, patience_ms)
        });
        run.about.agent_state = AgentState::Thinking;
        run.revision += 1;
        self.revision += 1;
        let (endpoint, limits, program) = (choice.endpoint, Some(limits), None);
        let request =
            ModelRequest { endpoint, system, messages, tools, max_tokens, temperature, tool_choice, limits, program };
        self.notify_low_budgets(turn, volumes, workspace, id, cost); // before the list counts the call
        if self.runs.get(&id).is_some_and(|run| run.unsettled_usage().is_some()) {
            // If the program is killed before the answer is recorded, the call is still counted.
            self.record_run(turn, sync, id, RunRecord::default());
        }
        turn.effects.push(Effect::CallModel { call, request: Box::new(request) });
        turn.wake_at(turn.now.plus_ms(patience_ms.0));
        self.warn_of_low_run_budget(turn, sync, id);
    }

    /// Returns the facts that the choice of a model depends on.
    pub(super) fn routing_context(&self, run: &AgentRun, setup: &AgentSetup) -> router::RoutingContext {
        let mut known = setup.known.clone();
        for name in setup.config.llm.providers.keys() {
            known.entry(name.clone()).or_default().latency = self.latencies.median_latency(name);
        }
        let agent = self.definition_of(run);
        router::RoutingContext {
            providers: known,
            only: run.about.provider.clone(),
            wanted: agent.llm_provider,
            tried: run.failed_providers.clone(),
            spent: self.session_cost(run),
            max_tokens: agent.max_tokens,
        }
    }

    /// Describes the context of a run for the model.
    fn surroundings(&self, volumes: &VolumesState, run: &AgentRun) -> String {
        let volume = volumes.by_id.get(&run.about.volume).map_or("", |volume| volume.name.as_str());
        let note = run.about.note.and_then(|note| volumes.locate_file(note)).map(|(_, path)| path);
        let name = |text: &str| prompt_quote::quote_inline(text, MAX_PROMPT_NAME_CHARS);
        let note = note.map_or_else(String::new, |path| format!("\nThe user looks at the note {}.", name(path)));
        let todos: Vec<String> = run
            .todos
            .iter()
            .map(|todo| {
                format!("- {:?}: {}", todo.status, prompt_quote::quote_inline(&todo.content, MAX_PROMPT_TODO_CHARS))
            })
            .collect();
        let todos = if todos.is_empty() { String::new() } else { format!("\nYour todos:\n{}", todos.join("\n")) };
        let mut around = format!("The project is called {}.{note}{todos}", name(volume));
        if let RunOrigin::Agent { run } = run.about.origin {
            let by = self.run_summaries.get(&run).map_or("", |line| line.agent.as_str());
            around.push_str(&format!("\nThe agent {} gives you this task; the user has not typed it.", name(by)));
        }
        let own = self.definition_of(run).tools;
        let leading = is_orchestrated(run);
        if leading || own.is_none_or(|tools| tools.iter().any(|tool| BuiltInTool::AskAgent.is_named(tool))) {
            around.push_str(&format!("\nOther agents: {}.", self.describe_other_agents(run, leading)));
        }
        if leading {
            let tools: Vec<String> = self.available_tools().into_iter().map(|tool| tool.name).collect();
            around.push_str(&format!("\nTools that agents have: {}.", tools.join(", ")));
        }
        around
    }

    /// Returns the cost in US dollars so far of all runs in a run's session, including delegated runs.
    pub(super) fn session_cost(&self, run: &AgentRun) -> f64 {
        let session_of = |id: DocId| {
            let first = self.ancestors(id).last().copied().unwrap_or(id);
            self.run_summaries.get(&first).map(|line| line.session)
        };
        let session = session_of(run.id).unwrap_or(run.about.session);
        let handed = |line: &agent::run_records::RunSummary| matches!(line.origin, RunOrigin::Agent { .. });
        let own = |id: DocId, line: &agent::run_records::RunSummary| {
            line.session == session || handed(line) && session_of(id) == Some(session)
        };
        let lines = self.run_summaries.iter().filter(|(id, line)| own(**id, line));
        lines.map(|(_, line)| line.known_cost()).sum()
    }

    pub(in crate::session) fn on_model_delta(&mut self, turn: &ApplyContext<'_>, call: ModelCallId, delta: ModelDelta) {
        let Some(run) = self.runs.get_mut(&call.run) else { return };
        let Some(live) = run.live_calls_mut().find(|live| live.call == call) else { return };
        live.heard = turn.now;
        match delta {
            ModelDelta::Text(text) if live.text.len() < MAX_LIVE_ANSWER_BYTES => live.text.push_str(&text),
            ModelDelta::Thinking(text) if live.thinking.len() < MAX_LIVE_ANSWER_BYTES => live.thinking.push_str(&text),
            ModelDelta::Text(_) | ModelDelta::Thinking(_) => {}
            ModelDelta::ToolCall { bytes } => live.call_bytes = live.call_bytes.saturating_add(bytes),
            ModelDelta::Retry { why } => {
                // The provider bills what it sent before.
                live.lost = live.received_usage(false).unwrap_or(live.lost);
                (live.text, live.thinking, live.call_bytes) = (String::new(), String::new(), 0);
                live.again = Some(why);
            }
        }
        run.revision += 1;
        self.revision += 1;
    }

    pub(in crate::session) fn on_model_done(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        call: ModelCallId,
        result: Result<Box<ModelResponse>, ModelError>,
    ) {
        let Some(run) = self.runs.get_mut(&call.run) else { return };
        let sampled = run.take_sampling_call(call);
        let (asked, live) = match (run.live.take_if(|live| live.call == call), sampled) {
            (Some(live), _) => (None, live),
            (None, Some((asked, live))) => (Some(asked), live),
            (None, None) => return, // cancelled meanwhile
        };
        match result {
            Ok(mut answer) => {
                // The configuration may state a price that no price list has. It may be that of a program on this
                // machine, which may pass requests on to a paid one.
                let provider = live.route.split('/').next().unwrap_or_default();
                let known = self.setup().and_then(|setup| setup.config.llm.providers.get(provider)?.price);
                if let (None, Some(price)) = (answer.spent.cost.filter(|cost| *cost > 0.0), known) {
                    answer.spent.cost = Some(price.of(answer.spent.input_tokens, answer.spent.output_tokens));
                }
                add_usage(&mut answer.spent, live.lost);
                let took = u64::try_from(turn.now.ms_since(live.since)).unwrap_or(0);
                if let Some(provider) = live.route.split('/').next() {
                    self.latencies.record_latency(provider, took);
                    let value = serde_json::to_vec(&self.latencies).ok();
                    turn.append_writes(vec![RowWrite::Meta { key: PROVIDER_LATENCIES_KEY.to_owned(), value }], None);
                }
                if let Some(asked) = asked {
                    self.on_sampled(turn, sync, (call.run, &asked), Ok(*answer), live);
                } else if live.summary_of.is_empty() {
                    self.on_answer(turn, files, sync, workspace, call.run, (*answer, &live));
                } else {
                    self.on_summary(turn, sync, call.run, &answer, live);
                }
            }
            Err(failure) => match asked {
                Some(asked) => self.on_sampled(turn, sync, (call.run, &asked), Err(failure), live),
                None => self.on_model_failed(turn, files, sync, workspace, call.run, (&failure, live)),
            },
        }
    }

    /// Stores a summary that has arrived. It replaces the messages in the context; the messages themselves are kept.
    fn on_summary(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        answer: &ModelResponse,
        live: LiveModelCall,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        add_usage(&mut run.about.spent, answer.spent);
        let words = if answer.text.trim().is_empty() { "(Nothing was kept of it.)" } else { answer.text.trim() };
        let count = live.summary_of.len();
        let content = format!("Summary of {count} earlier messages.\n\n{words}");
        // The model also summarized output of files and tools, so the summary is quoted.
        let source = format!("a summary of {count} earlier messages, written by a model");
        let told = format!(
            "Summary of {count} earlier messages. {}\n\n{}",
            prompt_quote::QUOTED_MATERIAL_PREAMBLE,
            prompt_quote::quote_block(&source, words)
        );
        let mut thinking = new_step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        thinking.timestamp = live.since.0;
        thinking.duration = u64::try_from(turn.now.ms_since(live.since)).ok();
        (thinking.spent, thinking.route) = (Some(answer.spent), Some(live.route));
        let message = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            summary_of: live.summary_of,
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::System, told, turn.now.0)
        };
        let record = RunRecord { steps: vec![thinking], messages: vec![message], ..RunRecord::default() };
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    /// Handles a model's answer: creates steps, a message, and the requested tool calls.
    fn on_answer(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (mut answer, live): (ModelResponse, &LiveModelCall),
    ) {
        let leading = self.runs.get(&id).is_some_and(is_orchestrated);
        // Agents can't call tools that they weren't offered.
        let tools = match self.runs.get(&id) {
            Some(run) if leading => RunsState::tools_for_query(run.orchestrator.last_query),
            Some(run) if self.is_program_run(run) => agent::program_reports::program_tools(),
            Some(run) => self.definition_of(run).allowed_tools(self.available_tools()),
            None => return,
        };
        let is_program = self.runs.get(&id).is_some_and(|run| self.is_program_run(run));
        let run = self.runs.get(&id).filter(|_| answer.text.contains('{'));
        let given = run.and_then(|run| Some((self.sessions.get(&run.about.session)?, run.about.head)));
        let given = given.map_or_else(Vec::new, |(all, head)| model_context::given_texts(all.tree(), head));
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.failed_providers.clear();
        run.about.iteration += 1;
        add_usage(&mut run.about.spent, answer.spent);
        let (mut text, mut asked, mut unreadable) = split_answer(&mut answer, &tools, is_program, &given);
        let dropped = asked.len().saturating_sub(tool_call_parser::MAX_CALLS_PER_ANSWER);
        asked.truncate(tool_call_parser::MAX_CALLS_PER_ANSWER);
        for call in &mut asked {
            if tools.iter().all(|tool| tool.name != call.name)
                && let Some(name) =
                    tool_call_parser::nearest_tool_name(&call.name, tools.iter().map(|tool| tool.name.as_str()))
            {
                call.name = name.to_owned();
            }
            files.volumes.normalize_call(run.about.volume, &call.name, &mut call.arguments);
        }
        let has_calls = !asked.is_empty() || !unreadable.is_empty();
        if !live.offers_tools {
            (asked, unreadable) = (Vec::new(), Vec::new());
        }
        let done = asked.is_empty() && unreadable.is_empty();
        let must_answer = has_calls || !(leading || is_program || memory_agents::is_memory_agent_run(run));
        if done && must_answer && text.trim().is_empty() {
            let why = if has_calls { repetition::UNOFFERED_CALLS_REASON } else { repetition::EMPTY_ANSWER_REASON };
            return self.on_unusable_answer(turn, files, sync, workspace, id, (why, answer.spent, live));
        }
        run.unusable_answers = 0;
        let asked = tool_call_parser::assign_call_ids(asked, &mut run.used_call_ids);
        let took = u64::try_from(turn.now.ms_since(live.since)).ok();
        let mut remark = None;
        if done {
            (text, remark) = self.format_agent_answer(turn, id, text);
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        let kind = match (done, answer.thinking.is_empty()) {
            (true, true) => None,
            (true, false) => Some(answer.thinking.clone()),
            (false, true) => Some(text.clone()),
            (false, false) => Some([answer.thinking.as_str(), text.as_str()].join("\n\n").trim().to_owned()),
        };
        let mut record = RunRecord::default();
        let mut parents = run.last_step();
        // Every model call is a step, so that its cost is recorded there.
        let mut thought = new_step(
            turn,
            parents.clone(),
            StepKind::Thinking { content: kind.unwrap_or_default(), is_streaming: None },
        );
        thought.timestamp = live.since.0;
        thought.duration = took;
        (thought.spent, thought.route) = (Some(answer.spent), Some(live.route.clone()));
        parents = vec![thought.id];
        record.steps.push(thought);
        let message = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            duration: took,
            tool_calls: asked.clone(),
            partial: (answer.stop == ModelStopReason::Length).then(|| "it reached its token limit".to_owned()),
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::Assistant, text.clone(), turn.now.0)
        };
        let mut end = message.id;
        record.messages.push(message);
        let tell = |words: String, end: &mut MessageId, record: &mut RunRecord, turn: &mut ApplyContext<'_>| {
            let message = SessionMessage {
                parents: vec![*end],
                run: Some(id),
                ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::System, words, turn.now.0)
            };
            *end = message.id;
            record.messages.push(message);
        };
        if done && leading {
            // The model didn't call the tool: it's asked again, then rules make the plan.
            let batch = self.record_run(turn, sync, id, record);
            return self.continue_run_after(batch, id);
        }
        if done {
            if let Some(content) = remark {
                let told = new_step(turn, parents, StepKind::Thinking { content, is_streaming: None });
                parents = vec![told.id];
                record.steps.push(told);
            }
            record.steps.push(new_step(turn, parents, StepKind::FinalAnswer { content: text }));
            self.end_run(turn, files, sync, workspace, id, (RunEnding::Done, record));
            // What a program does inside of itself can't be repeated without it.
            if !is_program {
                self.learn_run(turn, files, sync, id);
            }
            return;
        }
        if !unreadable.is_empty() {
            let (prefix, calls) = (repetition::UNREADABLE_CALLS_PREFIX, unreadable.join("; "));
            let words = format!("{prefix}{calls}. Send them again, as JSON.");
            let kind = StepKind::Error { message: words.clone(), recoverable: true };
            record.steps.push(new_step(turn, parents.clone(), kind));
            tell(words, &mut end, &mut record, turn);
        }
        if dropped > 0 {
            let words = format!(
                "{dropped} further tool calls were left out: at most {} at once.",
                tool_call_parser::MAX_CALLS_PER_ANSWER
            );
            record.steps.push(new_step(turn, parents.clone(), StepKind::Error { message: words, recoverable: true }));
        }
        if let Some(run) = self.runs.get_mut(&id) {
            run.about.agent_state = AgentState::Executing;
            record.steps.extend(run.open_tool_calls(turn, asked, &parents, &tools));
        }
        // Record the message before its results, because they follow from it.
        self.record_run(turn, sync, id, record);
        let mut record = RunRecord::default();
        self.check_new_calls(turn, files, sync, workspace, id, (&tools, &mut record));
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    /// Records why an answer can't be used. The model is asked again; then the run ends.
    fn on_unusable_answer(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (why, spent, live): (&str, CallUsage, &LiveModelCall),
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let mut made = new_step(turn, run.last_step(), StepKind::Error { message: why.to_owned(), recoverable: true });
        (made.spent, made.route, made.timestamp) = (Some(spent), Some(live.route.clone()), live.since.0);
        made.duration = u64::try_from(turn.now.ms_since(live.since)).ok();
        let record = RunRecord { steps: vec![made], ..RunRecord::default() };
        run.unusable_answers += 1;
        if run.unusable_answers >= repetition::MAX_UNUSABLE_ANSWERS {
            run.unusable_answers = 0; // when resumed, it's asked again
            return self.end_run(turn, files, sync, workspace, id, (RunEnding::Failed, record));
        }
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    pub(super) fn on_model_failed(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (failure, mut live): (&ModelError, LiveModelCall),
    ) {
        if live.text.len() < failure.partial.len() {
            live.text.clone_from(&failure.partial); // the last pieces may not have been shown
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        let provider = live.route.split('/').next().unwrap_or_default().to_owned();
        let elsewhere = matches!(
            failure.kind,
            ModelErrorKind::Unreachable | ModelErrorKind::Server | ModelErrorKind::RateLimited | ModelErrorKind::Key
        );
        let mut record = RunRecord::default();
        let usage = live.received_usage(false);
        let message = agent::budget::with_estimate(&failure.why, usage);
        let kind = StepKind::Error { message, recoverable: true };
        let mut made = new_step(turn, run.last_step(), kind);
        made.spent = usage;
        usage.into_iter().for_each(|usage| add_usage(&mut run.about.spent, usage));
        made.duration = u64::try_from(turn.now.ms_since(live.since)).ok();
        made.route = Some(live.route);
        record.steps.push(made);
        if elsewhere && run.failed_providers.iter().all(|(name, _)| *name != provider) {
            run.failed_providers.push((provider, failure.why.clone()));
            let run = self.runs.get(&id);
            let more = run.zip(self.setup.clone()).is_some_and(|(run, setup)| {
                let features = router::RequestFeatures::from_request(&run.about.prompt, 0, 0, None);
                router::choose_provider(&setup.config, &features, &self.routing_context(run, &setup)).is_ok()
            });
            if more {
                let batch = self.record_run(turn, sync, id, record);
                self.continue_run_after(batch, id);
                return;
            }
        }
        if let Some(run) = self.runs.get_mut(&id).filter(|run| is_orchestrated(run)) {
            run.orchestrator.plan_attempts = u8::MAX; // rules make the plan
            let batch = self.record_run(turn, sync, id, record);
            return self.continue_run_after(batch, id);
        }
        if self.runs.get(&id).is_some_and(memory_agents::is_memory_agent_run) {
            self.record_run(turn, sync, id, record);
            return self.run_memory_agent_without_model(turn, files, sync, workspace, id, &failure.why);
        }
        let Some(run) = self.runs.get(&id) else { return };
        if !failure.partial.trim().is_empty() && live.summary_of.is_empty() {
            record.messages.push(SessionMessage {
                parents: vec![run.about.head],
                run: Some(id),
                partial: Some(failure.why.clone()),
                ..SessionMessage::new(
                    MessageId(turn.next_id()),
                    MessageRole::Assistant,
                    failure.partial.clone(),
                    turn.now.0,
                )
            });
        }
        self.end_run(turn, files, sync, workspace, id, (RunEnding::Failed, record));
    }

    /// Ends a run for a reason that the user can do something about.
    pub(super) fn fail_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (message, ending): (String, RunEnding),
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let made = new_step(turn, run.last_step(), StepKind::Error { message, recoverable: true });
        self.end_run(
            turn,
            files,
            sync,
            workspace,
            id,
            (ending, RunRecord { steps: vec![made], ..RunRecord::default() }),
        );
    }
}

fn truncate_text(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
