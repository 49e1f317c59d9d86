//! Replays: a run whose calls come from a trace instead of a model. They pass the same policy and the same sandbox;
//! what is not as good twice as once asks every time. Where a condition does not hold, a model takes over.

use super::team::DELEGATE;
use super::{CallPhase, Pending, Read, Record, Run, step};
use crate::effect::Effect;
use crate::notice::Notice;
use crate::session::{Reject, Session, Turn};
use agent::memory::goal::Goal;
use agent::memory::learn::{Lived, ToolFacts};
use agent::memory::template::{self, Values};
use agent::memory::trace::{self, Trace, iso};
use agent::memory::{self, Filed, Memory, Mode};
use agent::policy::Facts;
use agent::tool::Risk;
use agent::{calls, definition, quote};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{AgentState, DocId, Ending, ExecutionStep, FileKind, Message, MessageId, Role, StepKind, ToolCall};
use text::time::Time;

/// Of what the last step said so much is told where the trace has no answer of its own, in bytes.
const TOLD: usize = 2_000;

/// How the step begins that says that a replay stopped.
const STOPPED: &str = "The replay stopped ";

/// The step that says which trace is replayed, by its place, and the trace's path. `None`: none is.
fn replayed(steps: &[ExecutionStep]) -> Option<(usize, &str)> {
    let path = |step: &ExecutionStep| step.route.as_deref().is_some_and(|route| route.starts_with("trace/"));
    let at = steps.iter().rposition(path)?;
    Some((at, steps[at].route.as_deref()?.strip_prefix("trace/")?))
}

/// Whether a step says that a replay stopped.
fn is_stop(step: &ExecutionStep) -> bool {
    matches!(&step.kind, StepKind::Error { message, .. } if message.starts_with(STOPPED))
}

/// What came of a call, if it has a result: whether it did what was asked, and what it said.
fn said(steps: &[ExecutionStep], call: &str) -> Option<(bool, String)> {
    steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::ToolResult { tool_call_id, success, result, error, .. } if *tool_call_id == call => {
            let text = result.as_ref().and_then(Value::as_str).map(str::to_owned);
            Some((*success, text.or_else(|| error.clone()).unwrap_or_default()))
        }
        StepKind::ToolResult { .. }
        | StepKind::ToolCall { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => None,
    })
}

/// A trace that is being replayed.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    /// Where the trace lies.
    path: String,
    trace: Trace,
    values: Values,
    /// The step that comes next.
    at: usize,
    /// The call whose result is waited for.
    call: Option<String>,
    /// What its steps have said.
    results: Vec<String>,
    since: Time,
}

/// What a run knows of memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    /// What it may use.
    pub(super) recall: memory::Recall,
    /// What the project remembers.
    pub(super) memory: Arc<Memory>,
    /// What is being replayed.
    pub(super) replay: Option<Box<Replay>>,
    /// The trace whose replay stopped in this run.
    stopped: Option<String>,
}

impl Session {
    /// By what the tools of an agent are known.
    pub(super) fn tool_facts(&self, agent: &definition::Definition) -> BTreeMap<String, ToolFacts> {
        let tools = agent.allowed(self.tools());
        let fact = |tool: agent::tool::ToolSpec| {
            let code = self.approved_tool(&tool.name).map_or("", |own| own.code.as_str());
            let schema = trace::schema_hash(&tool, code);
            (tool.name, ToolFacts { schema, idempotent: tool.idempotent })
        };
        tools.into_iter().map(fact).collect()
    }

    /// By what the tools of an agent are known, by name: what a trace's steps name.
    pub fn tool_schemas(&self, agent: &str) -> BTreeMap<String, String> {
        let own = self.agents.setup().map(|setup| setup.agents.as_slice()).unwrap_or_default();
        self.schemas_of(&definition::find(agent, own))
    }

    /// The same of the agent of a run.
    pub(super) fn schemas_of(&self, agent: &definition::Definition) -> BTreeMap<String, String> {
        self.tool_facts(agent).into_iter().map(|(name, facts)| (name, facts.schema)).collect()
    }

    /// The path of the note beside which a run was asked.
    fn note_of(&self, run: &Run) -> Option<String> {
        run.about.note.and_then(|note| self.place(note)).map(|(_, path)| path.to_owned())
    }

    /// Looks for a trace that a run can replay; the step that says so comes into the record.
    pub(super) fn choose_replay(&mut self, turn: &mut Turn<'_>, id: DocId, memory: Memory, record: &mut Record) {
        let Some(run) = self.agents.runs.get(&id) else { return };
        let recall = run.remembered.recall.clone();
        let begins = self.agents.sessions.get(&run.about.session).is_none_or(|conversation| {
            conversation.tree().get(run.about.asked).is_none_or(|message| message.parents.is_empty())
        });
        let schemas = self.schemas_of(&self.definition_of(run));
        let note = self.note_of(run);
        let about = run.about.clone();
        let mut chosen = None;
        // A message in the middle of a conversation may mean something that was said before.
        if begins || recall.mode == Mode::Follower {
            chosen = memory.chosen(&about.prompt, note.as_deref(), &about.agent, &schemas, &recall);
        }
        let Some(run) = self.agents.runs.get_mut(&id) else { return };
        let memory = Arc::new(memory);
        run.remembered.memory = Arc::clone(&memory);
        let filed = chosen.and_then(|fitting| Some((memory.traces.get(fitting.at)?, fitting)));
        let Some((Filed { path, trace, .. }, fitting)) = filed else { return };
        let hands_on = trace.steps.iter().any(|step| step.tool == DELEGATE);
        let asked = if hands_on { "Only the agents that it hands work to ask a model" } else { "No model is asked" };
        let content = format!("Replaying {path}: {}. {asked}.", fitting.why);
        let parents = record.steps.last().map_or_else(|| run.last_step(), |step| vec![step.id]);
        let mut made = step(turn, parents, StepKind::Thinking { content, is_streaming: None });
        made.route = Some(format!("trace/{path}"));
        record.steps.push(made);
        run.remembered.replay = Some(Box::new(Replay {
            path: path.clone(),
            trace: trace.clone(),
            values: fitting.values,
            at: 0,
            call: None,
            results: Vec::new(),
            since: turn.now,
        }));
    }

    /// Reads the agents and the memory of a run's project, where that was not done since the run was loaded. Gives
    /// whether it's being read: the run goes on then.
    pub(super) fn read_project(&mut self, turn: &mut Turn<'_>, id: DocId) -> bool {
        let Some(run) = self.agents.runs.get(&id) else { return false };
        match run.read {
            Read::Yes => return false,
            Read::First | Read::Again => return true,
            Read::No => {}
        }
        let Some(root) = self.volumes.get(&run.about.volume).and_then(|volume| volume.root.clone()) else {
            return false;
        };
        let (memory, text) = (memory::folders(self.note_of(run).as_deref()), run.about.prompt.clone());
        turn.effects.push(Effect::Gather { run: id, root, paths: Vec::new(), text, limit: 0, memory });
        if let Some(run) = self.agents.runs.get_mut(&id) {
            run.read = Read::Again;
        }
        true
    }

    /// A replay that was under way when the program ended, as its steps tell. `None`: there's none.
    ///
    /// # Errors
    /// Where the trace lies, how far the replay was, and why it can't go on.
    fn interrupted_replay(&self, run: &Run) -> Option<Result<Box<Replay>, (String, usize, String)>> {
        let (begun, path) = replayed(&run.steps)?;
        let since = Time(run.steps.get(begun)?.timestamp);
        let behind = run.steps.get(begun + 1..).unwrap_or_default();
        if behind.iter().any(|step| step.spent.is_some() || is_stop(step)) {
            return None; // a model has taken over
        }
        let made: Vec<(&str, &str, &Map<String, Value>)> = behind
            .iter()
            .filter_map(|step| match &step.kind {
                StepKind::ToolCall { tool_call_id, tool_name, params } => {
                    Some((tool_call_id.as_str(), tool_name.as_str(), params))
                }
                StepKind::ToolResult { .. }
                | StepKind::Thinking { .. }
                | StepKind::Todo { .. }
                | StepKind::FinalAnswer { .. }
                | StepKind::Error { .. } => None,
            })
            .collect();
        let count = made.len();
        let fail = |why: &str| Some(Err((path.to_owned(), count + 1, why.to_owned())));
        let Some(filed) = run.remembered.memory.traces.iter().find(|filed| filed.path == path) else {
            return fail("the trace isn't there any more");
        };
        let goal = Goal::read(&run.about.prompt);
        let Ok(values) = filed.trace.fits(&goal, self.note_of(run).as_deref()) else {
            return fail("the trace was changed and doesn't fit the goal any more");
        };
        let mut results: Vec<String> = Vec::new();
        for (at, (call, tool, params)) in made.iter().enumerate() {
            let edited = run.approvals.iter().any(|approval| {
                approval.id == *call && approval.decision.as_ref().is_some_and(|decision| decision.arguments.is_some())
            });
            let same = filed.trace.steps.get(at).is_some_and(|step| {
                let told = template::arguments(&step.input, &values, &results);
                step.tool == *tool && (edited || told.is_ok_and(|told| told == **params))
            });
            if !same {
                return fail("the trace was changed meanwhile");
            }
            if at + 1 < count {
                results.push(said(&run.steps, call).map(|(_, text)| text).unwrap_or_default());
            }
        }
        let call = made.last().map(|(call, ..)| (*call).to_owned());
        let trace = filed.trace.clone();
        Some(Ok(Box::new(Replay { path: path.to_owned(), trace, values, at: count, call, results, since })))
    }

    /// Does what is next in a replay. `false`: there is none, so a model is called.
    pub(super) fn replay_next(&mut self, turn: &mut Turn<'_>, id: DocId) -> bool {
        let Some(run) = self.agents.runs.get(&id) else { return false };
        if run.remembered.replay.is_none() {
            match self.interrupted_replay(run) {
                None => return false,
                Some(Ok(replay)) => {
                    if let Some(run) = self.agents.runs.get_mut(&id) {
                        run.remembered.replay = Some(replay);
                    }
                }
                Some(Err((path, number, why))) => {
                    self.stop_replay(turn, id, &path, &format!("at step {number}"), &why);
                    return true;
                }
            }
        }
        let Some(run) = self.agents.runs.get_mut(&id) else { return false };
        let Some(mut replay) = run.remembered.replay.take() else { return false };
        let ended = self.check_result(id, &mut replay).map_err(|why| (replay.at, why));
        let made = ended.and_then(|()| {
            if replay.at == replay.trace.steps.len() {
                return Ok(None);
            }
            self.next_call(id, &replay).map(Some).map_err(|why| (replay.at + 1, why))
        });
        match made {
            Ok(Some((tool, arguments))) => self.issue(turn, id, replay, tool, arguments),
            Ok(None) => self.end_replay(turn, id, &replay),
            Err((number, why)) => self.hand_over(turn, id, &replay, number, &why),
        }
        true
    }

    /// What the last step has said is as it must be.
    fn check_result(&self, id: DocId, replay: &mut Replay) -> Result<(), String> {
        let Some(call) = replay.call.take() else { return Ok(()) };
        let run = self.agents.runs.get(&id).ok_or("the run was closed")?;
        let (success, text) = said(&run.steps, &call).ok_or("the step has no result")?;
        let done = replay.at.checked_sub(1).and_then(|at| replay.trace.steps.get(at)).ok_or("the trace has changed")?;
        if !success {
            let first = text.lines().next().unwrap_or_default();
            return Err(format!("it failed: {}", &first[..first.floor_char_boundary(300)]));
        }
        done.expect.check(&text)?;
        let volume = run.about.volume;
        for (places, wanted) in [(&done.leaves, true), (&done.removes, false)] {
            for place in places {
                let path = template::filled(place, &replay.values, &replay.results)?;
                if self.is_there(volume, &path) != wanted {
                    let word = if wanted { "is not there" } else { "is still there" };
                    return Err(format!("{path} {word} after it"));
                }
            }
        }
        replay.results.push(text);
        Ok(())
    }

    /// What the next step is given, once what must hold before it does.
    fn next_call(&self, id: DocId, replay: &Replay) -> Result<(String, Map<String, Value>), String> {
        let run = self.agents.runs.get(&id).ok_or("the run was closed")?;
        let next = replay.trace.steps.get(replay.at).ok_or("the trace has no such step")?;
        let schemas = self.schemas_of(&self.definition_of(run));
        if schemas.get(&next.tool) != Some(&next.schema) {
            return Err(format!("the tool {} is not the one that it was", next.tool));
        }
        for (places, wanted) in [(&next.needs, true), (&next.free, false)] {
            for place in places {
                let path = template::filled(place, &replay.values, &replay.results)?;
                if self.is_there(run.about.volume, &path) != wanted {
                    let word = if wanted { "is not there" } else { "is there already" };
                    return Err(format!("{path} {word}"));
                }
            }
        }
        let arguments = template::arguments(&next.input, &replay.values, &replay.results)?;
        Ok((next.tool.clone(), arguments))
    }

    fn is_there(&self, volume: DocId, path: &str) -> bool {
        self.file_of(volume, path.trim_start_matches("./")).is_some()
    }

    /// Makes a call, as if a model had asked for it.
    fn issue(
        &mut self,
        turn: &mut Turn<'_>,
        id: DocId,
        mut replay: Box<Replay>,
        tool: String,
        arguments: Map<String, Value>,
    ) {
        let tools = self.tools();
        let Some(run) = self.agents.runs.get_mut(&id) else { return };
        let call = ToolCall { id: String::new(), name: tool, arguments };
        let Some(call) = calls::named(vec![call], &mut run.used).pop() else { return };
        let kind = StepKind::ToolCall {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            params: call.arguments.clone(),
        };
        let made = step(turn, run.last_step(), kind);
        let message = Message {
            parents: vec![run.about.head],
            run: Some(id),
            tool_calls: vec![call.clone()],
            ..Message::new(MessageId(turn.name()), Role::Assistant, String::new(), turn.now.0)
        };
        let changes = tools.iter().find(|tool| tool.name == call.name).is_some_and(|tool| tool.risk > Risk::None);
        replay.at += 1;
        replay.call = Some(call.id.clone());
        run.about.agent_state = AgentState::Executing;
        run.calls.push(Pending { call, step: made.id, phase: CallPhase::Ready, changes, facts: Facts::default() });
        run.remembered.replay = Some(replay);
        self.record(turn, id, Record { steps: vec![made], messages: vec![message], ..Record::default() });
        let mut record = Record::default();
        self.judge_calls(turn, id, &tools, &mut record);
        let batch = self.record(turn, id, record);
        self.go_on_after(batch, id);
    }

    /// All its steps are done, and all conditions held.
    fn end_replay(&mut self, turn: &mut Turn<'_>, id: DocId, replay: &Replay) {
        let Some(run) = self.agents.runs.get(&id) else { return };
        let own = replay.trace.answer.as_ref();
        let own = own.and_then(|answer| template::filled(answer, &replay.values, &replay.results).ok());
        let text = own.unwrap_or_else(|| {
            let last = replay.results.last().map_or("", |text| &text[..text.floor_char_boundary(TOLD)]);
            let count = replay.trace.steps.len();
            format!("Done as before, in {count} steps of {}. The last one said:\n\n{last}", replay.path)
        });
        let volume = run.about.volume;
        let message = Message {
            parents: vec![run.about.head],
            run: Some(id),
            ..Message::new(MessageId(turn.name()), Role::Assistant, text.clone(), turn.now.0)
        };
        let made = step(turn, run.last_step(), StepKind::FinalAnswer { content: text });
        let took = turn.now.since(replay.since);
        if let Some(run) = self.agents.runs.get_mut(&id) {
            // What was replayed is not learned again.
            run.remembered.recall.mode = Mode::Follower;
        }
        self.count_replay(turn, volume, &replay.path, &replay.trace, true, Some(took));
        let record = Record { steps: vec![made], messages: vec![message], ..Record::default() };
        self.end_run(turn, id, Ending::Done, record);
    }

    /// A condition does not hold: a model goes on, and is told what was found.
    fn hand_over(&mut self, turn: &mut Turn<'_>, id: DocId, replay: &Replay, number: usize, why: &str) {
        let Some(volume) = self.agents.runs.get(&id).map(|run| run.about.volume) else { return };
        self.count_replay(turn, volume, &replay.path, &replay.trace, false, None);
        let count = replay.trace.steps.len();
        self.stop_replay(turn, id, &replay.path, &format!("at step {number} of {count}"), why);
    }

    /// A step says that a replay stopped, where and why, and that a model goes on, which is told the same.
    fn stop_replay(&mut self, turn: &mut Turn<'_>, id: DocId, path: &str, place: &str, why: &str) {
        let Some(run) = self.agents.runs.get_mut(&id) else { return };
        run.remembered.stopped = Some(path.to_owned());
        let words = format!("{STOPPED}{place}: {why}. A model goes on from here.");
        let made = step(turn, run.last_step(), StepKind::Error { message: words, recoverable: true });
        let told = format!(
            "The steps above repeat what was done for a goal like this before. They were stopped {place}. Go on from \
             here by yourself; do not do again what has been done. Why they were stopped: {}\n{}",
            quote::MATERIAL,
            quote::block("the replay", why)
        );
        let message = Message {
            parents: vec![run.about.head],
            run: Some(id),
            ..Message::new(MessageId(turn.name()), Role::System, told, turn.now.0)
        };
        let batch = self.record(turn, id, Record { steps: vec![made], messages: vec![message], ..Record::default() });
        self.go_on_after(batch, id);
    }

    /// Keeps how a replay went in the note of its trace. `took`: milliseconds of a replay in earnest; what it has saved
    /// is counted then.
    fn count_replay(
        &mut self,
        turn: &mut Turn<'_>,
        volume: DocId,
        path: &str,
        trace: &Trace,
        good: bool,
        took: Option<i64>,
    ) {
        let Some(note) = self.file_of(volume, path) else { return };
        let known = &trace.known;
        let (all, verified) = (known.usage_count + 1, known.verified_count + u64::from(good));
        let mut values = vec![
            ("usage_count", json!(all)),
            ("verified_count", json!(verified)),
            ("success_rating", json!(trace::rating(verified, all))),
            ("last_used", json!(iso(turn.now.0))),
        ];
        if let Some(took) = took {
            let secs = took as f64 / 1_000.0;
            values.push(("estimated_time_secs", json!(secs)));
            values.push(("saved_tokens", json!(known.saved_tokens + known.learned_tokens)));
            values.push(("saved_usd", json!(known.saved_usd + known.learned_usd)));
            values.push(("saved_secs", json!(known.saved_secs + (known.learned_secs - secs).max(0.0))));
        }
        for (key, value) in values {
            if let Err(Reject(why)) = self.set_property(turn, note, key.to_owned(), Some(value)) {
                self.problems.push(format!("what is known of a trace could not be kept ({why}): {path}"));
                return;
            }
        }
    }

    /// The user takes back all that a replay has done: it is no proof any more. Made again, it is.
    pub(super) fn judge_replay(&mut self, turn: &mut Turn<'_>, id: DocId, good: bool) {
        let whole = |run: &&Run| run.about.ending == Some(Ending::Done) && run.about.iteration == 0;
        let Some(run) = self.agents.runs.get(&id).filter(whole) else { return };
        let mut routes = run.steps.iter().filter_map(|step| step.route.as_deref());
        let path = routes.find_map(|route| route.strip_prefix("trace/")).unwrap_or_default().to_owned();
        let Some(note) = self.file_of(run.about.volume, &path) else { return };
        if let Err(Reject(why)) = self.prove(turn, note, good) {
            self.problems.push(format!("what is known of a trace could not be kept ({why}): {path}"));
        }
    }

    /// What a run did becomes a trace, or is compared with the one that there is.
    pub(super) fn learn_run(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let wanted = self.agents.setup().is_some_and(|setup| setup.config.memory.learn);
        let Some(run) = self.agents.runs.get(&id).filter(|_| wanted) else { return };
        let Remembered { recall, memory, stopped, .. } = run.remembered.clone();
        let before = || replayed(&run.steps).filter(|_| run.steps.iter().any(is_stop)).map(|(_, path)| path.to_owned());
        let stopped = stopped.or_else(before);
        let begins = self.agents.sessions.get(&run.about.session).is_some_and(|conversation| {
            conversation.tree().get(run.about.asked).is_some_and(|message| message.parents.is_empty())
        });
        let replayed = recall.mode == Mode::Follower && stopped.is_none() && run.about.iteration == 0;
        if !begins || replayed {
            return;
        }
        let Ok(learned) = self.learned(id) else { return };
        let (volume, prompt, note) = (run.about.volume, run.about.prompt.clone(), self.note_of(run));
        let known = memory.traces.iter().find(|filed| {
            filed.trace.signature() == learned.signature()
                && filed.trace.fits(&Goal::read(&prompt), note.as_deref()).is_ok()
        });
        let Some(filed) = known else {
            let path = format!("{}/{}/{}", memory::folder(note.as_deref()), trace::TRACES, learned.file_name());
            self.keep_note(turn, volume, &path, &learned.note());
            return self.notify(turn, Notice::Remembered { volume, path });
        };
        let calls = memory::learn::calls(&run.steps, &run.approvals, &run.changes);
        let results: Vec<String> = calls.iter().map(|call| call.result.clone()).collect();
        let values = filed.trace.fits(&Goal::read(&prompt), note.as_deref()).unwrap_or_default();
        let told = filed.trace.calls(&values, &results);
        let same = told.len() == calls.len()
            && told.iter().zip(&calls).all(|(told, call)| {
                told.as_ref().is_ok_and(|(tool, arguments)| *tool == call.tool && *arguments == call.arguments)
            });
        if same && stopped.is_none() {
            // A model did what the trace would have done: that is one more proof.
            return self.count_replay(turn, volume, &filed.path, &filed.trace, true, None);
        }
        if stopped.as_ref() == Some(&filed.path) || filed.trace.known.verified_count == 0 {
            // What stopped, or never was right, makes room for what has just been done.
            let new =
                Trace { known: trace::Known { usage_count: 0, verified_count: 0, ..learned.known.clone() }, ..learned };
            if let Some(file) = self.file_of(volume, &filed.path) {
                let text = self.open_text(file).unwrap_or_else(|| filed.text.clone());
                if let Err(Reject(why)) = self.amend(turn, file, 0, text, new.note()) {
                    self.problems.push(format!("a trace could not be renewed ({why}): {}", filed.path));
                }
            }
            return;
        }
        self.count_replay(turn, volume, &filed.path, &filed.trace, false, None);
    }

    /// The trace that a run becomes.
    ///
    /// # Errors
    /// Why it cannot be done again by rule: a sentence.
    pub fn learned(&self, id: DocId) -> Result<Trace, String> {
        let run = self.agents.runs.get(&id).ok_or("the run is not open")?;
        let mut there = BTreeSet::new();
        for call in memory::learn::calls(&run.steps, &run.approvals, &run.changes) {
            // Of other files the watcher tells later; only what is sure is made a condition.
            if let Some(path) = call.arguments.get("path").and_then(Value::as_str)
                && (FileKind::of(path).is_text() || !call.created)
                && self.is_there(run.about.volume, path)
            {
                there.insert(path.to_owned());
            }
        }
        let note = self.note_of(run);
        memory::learn::learn(&Lived {
            about: &run.about,
            steps: &run.steps,
            approvals: &run.approvals,
            changes: &run.changes,
            tools: &self.tool_facts(&self.definition_of(run)),
            note: note.as_deref(),
            there: &there,
            run: &id.to_string(),
        })
    }

    /// A note of the program's own: made, saved, and not shown.
    pub(in crate::session) fn keep_note(&mut self, turn: &mut Turn<'_>, volume: DocId, path: &str, text: &str) {
        if let Err(Reject(why)) = self.new_note(turn, volume, path, text) {
            self.problems.push(why);
            return;
        }
        let Some(id) = self.file_of(volume, path) else { return };
        if let Some(note) = self.notes.get_mut(&id) {
            note.shown = false; // it is not looked at; it closes once it is saved
            note.by_agent = true;
        }
        self.end_burst(turn, id);
    }
}
