//! Whole sessions in files: all branches and runs, beside the current branch that other programs read. In
//! `agent.json` they're the field `tracebook.tree`.

use crate::session_files::{self, SessionFileError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::{
    CallUsage, DecisionMaker, DecisionRecord, DecisionScope, DocId, ExecutionStep, MessageId, MessageTree, RunAbout,
    RunApproval, RunEnding, RunOrigin, SessionMessage, StepId, StepKind, TodoItem,
};

/// Maximum number of messages, and of steps of one run, in a file.
const MAX_TREE_ITEMS: usize = 100_000;
/// Maximum number of runs in a file.
const MAX_TREE_RUNS: usize = 10_000;
/// Maximum number of parents of a message or step.
const MAX_TREE_PARENTS: usize = 1_000;
/// Maximum number of model calls that an imported run says it may make.
const MAX_IMPORTED_ITERATIONS: u64 = 10_000;
/// How the maker of an imported decision begins: who decided elsewhere has decided nothing here.
const IMPORTED_DECISION_PREFIX: &str = "imported ";

/// A session with all its branches and runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionTreeFile {
    /// Title of the session.
    pub title: String,
    /// The last message of the current branch.
    pub head: Option<MessageId>,
    /// Content of another program's file that the session was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// The messages of all branches.
    pub messages: Vec<SessionMessage>,
    /// The runs of the session.
    #[serde(default)]
    pub runs: Vec<SessionRunFile>,
}

/// A run of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRunFile {
    /// Id of the run, to which messages refer.
    pub id: DocId,
    /// What the run is about.
    pub about: RunAbout,
    /// Its todos.
    #[serde(default)]
    pub todos: Vec<TodoItem>,
    /// Its steps.
    #[serde(default)]
    pub steps: Vec<ExecutionStep>,
    /// The decisions about its calls. They're a record: an import doesn't make them count anywhere.
    #[serde(default)]
    pub approvals: Vec<RunApproval>,
}

/// Adds the whole session to its `agent.json`, unless the file is another program's and says all of it.
pub fn add_session_tree(file: &mut Value, tree: &SessionTreeFile, branch_len: usize) {
    let complete = tree.imported.is_some() && tree.runs.is_empty() && tree.messages.len() == branch_len;
    if !complete {
        file["tracebook"] = json!({ "tree": tree });
    }
}

/// Reads the whole session from an `agent.json`; `None` if the file has only a branch.
///
/// # Errors
/// Returns an error if the tree isn't valid or is too large.
pub fn parse_session_tree(text: &str) -> Result<Option<SessionTreeFile>, SessionFileError> {
    let mut file: Value = serde_json::from_str(text).map_err(SessionFileError::NotJson)?;
    let Some(tree) = file.get_mut("tracebook").and_then(|own| own.get_mut("tree")).map(Value::take) else {
        return Ok(None);
    };
    let invalid = |why: String| SessionFileError::Invalid { what: "agent.json", why };
    let mut tree: SessionTreeFile =
        serde_json::from_value(tree).map_err(|why| invalid(format!("tracebook.tree: {why}")))?;
    let items = |run: &SessionRunFile| run.steps.len().max(run.todos.len()).max(run.approvals.len());
    let steps = tree.runs.iter().map(items).max().unwrap_or(0);
    if tree.messages.len().max(steps) > MAX_TREE_ITEMS {
        return Err(SessionFileError::TooMany { items: "messages" });
    }
    if tree.runs.len() > MAX_TREE_RUNS {
        return Err(invalid(format!("it has more than {MAX_TREE_RUNS} runs")));
    }
    let ids: BTreeSet<MessageId> = tree.messages.iter().map(|message| message.id).collect();
    if ids.len() != tree.messages.len() || ids.contains(&MessageId(0)) {
        return Err(invalid("two messages have one id".to_owned()));
    }
    let parents = tree.messages.iter().map(|message| message.parents.len());
    let step_parents = tree.runs.iter().flat_map(|run| &run.steps).map(|step| step.parents.len());
    if parents.chain(step_parents).any(|count| count > MAX_TREE_PARENTS) {
        return Err(invalid(format!("a message or step has more than {MAX_TREE_PARENTS} parents")));
    }
    if has_cycle(&tree.messages) {
        return Err(invalid("messages answer each other in a circle".to_owned()));
    }
    // The current branch ends with the last message of the list.
    tree.messages.sort_by_key(|message| (message.timestamp, message.id));
    if let Some(at) = tree.messages.iter().position(|message| Some(message.id) == tree.head) {
        let head = tree.messages.remove(at);
        tree.messages.push(head);
    }
    Ok(Some(tree))
}

/// Returns whether messages answer each other in a cycle.
fn has_cycle(messages: &[SessionMessage]) -> bool {
    let parents: BTreeMap<MessageId, Option<MessageId>> =
        messages.iter().map(|message| (message.id, message.parents.first().copied())).collect();
    let mut checked: BTreeSet<MessageId> = BTreeSet::new();
    for message in messages {
        let mut branch: BTreeSet<MessageId> = BTreeSet::new();
        let mut at = Some(message.id);
        while let Some(id) = at.filter(|id| parents.contains_key(id) && !checked.contains(id)) {
            if !branch.insert(id) {
                return true;
            }
            at = parents.get(&id).copied().flatten();
        }
        checked.extend(branch);
    }
    false
}

/// Makes a decision of another workspace a record: it says what happened there, and allows nothing here.
fn make_record(approval: &mut RunApproval) {
    let undecided = || DecisionRecord {
        allowed: false,
        scope: DecisionScope::Once,
        by: DecisionMaker::Cancelled,
        at: approval.asked,
        arguments: None,
        comment: None,
    };
    let decision = approval.decision.clone().unwrap_or_else(undecided);
    let by = decision.by.as_str();
    let by = if by.starts_with(IMPORTED_DECISION_PREFIX) {
        by.to_owned()
    } else {
        format!("{IMPORTED_DECISION_PREFIX}{by}")
    };
    approval.decision = Some(DecisionRecord { scope: DecisionScope::Once, by: DecisionMaker::Other(by), ..decision });
}

/// Ends the calls of an imported run that have no result, so that nothing takes them up.
fn close_open_calls(steps: &mut Vec<ExecutionStep>) {
    let mut answered: BTreeSet<&str> = BTreeSet::new();
    let mut calls: Vec<(StepId, String)> = Vec::new();
    for step in steps.iter() {
        match &step.kind {
            StepKind::ToolResult { tool_call_id, .. } => _ = answered.insert(tool_call_id),
            StepKind::ToolCall { tool_call_id, .. } => calls.push((step.id, tool_call_id.clone())),
            StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. }
            | StepKind::Error { .. } => {}
        }
    }
    calls.retain(|(_, call)| !answered.contains(call.as_str()));
    let mut ids: BTreeSet<StepId> = steps.iter().map(|step| step.id).collect();
    let at = steps.iter().map(|step| step.timestamp).max().unwrap_or(0);
    let mut next = 0_u64;
    for (parent, tool_call_id) in calls {
        next += 1;
        while !ids.insert(StepId(next)) {
            next += 1;
        }
        let error = Some("The call was open when the session was exported. It was not run here.".to_owned());
        steps.push(ExecutionStep {
            id: StepId(next),
            timestamp: at,
            duration: None,
            parents: vec![parent],
            kind: StepKind::ToolResult {
                tool_call_id,
                success: false,
                result: None,
                error,
                whole: None,
                attached: Vec::new(),
                files: Vec::new(),
            },
            spent: None,
            route: None,
            tool: None,
        });
    }
}

impl SessionTreeFile {
    /// Gives the runs new ids, so that the session can be there twice, and detaches them from the workspace that they
    /// come from: nothing in them is open, and no decision counts. `id` returns a new id each time.
    pub fn renew_ids(&mut self, session: DocId, volume: DocId, mut id: impl FnMut() -> DocId) {
        let new: BTreeMap<DocId, DocId> = self.runs.iter().map(|run| (run.id, id())).collect();
        for message in &mut self.messages {
            message.run = message.run.and_then(|run| new.get(&run).copied());
        }
        for run in &mut self.runs {
            run.id = new.get(&run.id).copied().unwrap_or(run.id);
            let origin = match run.about.origin {
                RunOrigin::Agent { run } => new.get(&run).map(|run| RunOrigin::Agent { run: *run }),
                RunOrigin::User | RunOrigin::Schedule { .. } | RunOrigin::Device => None,
            };
            run.about = RunAbout {
                session,
                volume,
                note: None,
                origin: origin.unwrap_or_default(),
                // What was paid elsewhere doesn't count towards budgets here. The steps still say it.
                spent: CallUsage::default(),
                ended: run.about.ended.or(Some(run.about.start_time)),
                ending: run.about.ending.or(Some(RunEnding::Cancelled)),
                limit: run.about.limit.min(MAX_IMPORTED_ITERATIONS),
                ..run.about.clone()
            };
            run.approvals.iter_mut().for_each(make_record);
            close_open_calls(&mut run.steps);
        }
    }
}

/// Formats the branches other than the current one as Markdown, each from where it leaves the current one.
pub fn other_branches_to_markdown(tree: &MessageTree, head: Option<MessageId>, steps: &[&ExecutionStep]) -> String {
    let executed = session_files::executed_arguments(steps);
    let mut text = String::new();
    for end in tree.branch_ends().into_iter().filter(|end| Some(*end) != head) {
        let fork = head.and_then(|head| tree.last_shared_message(head, end));
        let branch = tree.branch_to(end);
        let from = branch.iter().position(|message| Some(message.id) == fork).map_or(0, |at| at + 1);
        let after = fork.and_then(|fork| tree.get(fork)).and_then(|message| message.content.lines().next());
        let after = after.filter(|line| !line.trim().is_empty()).map_or_else(
            || "from the beginning".to_owned(),
            |line| format!("after \u{201c}{}\u{201d}", line.trim().chars().take(80).collect::<String>()),
        );
        text.push_str(&format!("\n---\n\n# Another branch, {after}\n"));
        for message in branch.get(from..).unwrap_or_default() {
            session_files::push_message_markdown(&mut text, message, &executed);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::MessageRole;

    fn tree() -> SessionTreeFile {
        let message = |id: u64, parent: Option<u64>, text: &str| SessionMessage {
            parents: parent.map(MessageId).into_iter().collect(),
            ..SessionMessage::new(MessageId(id), MessageRole::User, text, i64::try_from(id).expect("small"))
        };
        SessionTreeFile {
            title: "T".to_owned(),
            head: Some(MessageId(2)),
            imported: None,
            messages: vec![message(1, None, "one"), message(2, Some(1), "two"), message(3, Some(1), "three")],
            runs: Vec::new(),
        }
    }

    #[test]
    fn a_tree_comes_back_with_its_head_last() {
        let mut file = json!({"version": 1});
        add_session_tree(&mut file, &tree(), 2);
        let read = parse_session_tree(&file.to_string()).expect("read").expect("a tree");
        let ids: Vec<u64> = read.messages.iter().map(|message| message.id.0).collect();
        assert_eq!((ids, read.head), (vec![1, 3, 2], Some(MessageId(2))));
        assert_eq!(parse_session_tree("{\"version\": 1}").expect("read"), None);
        // A file of another program stays as it was while it says everything.
        let mut theirs = json!({"version": 1});
        add_session_tree(&mut theirs, &SessionTreeFile { imported: Some("{}".to_owned()), ..tree() }, 3);
        assert_eq!(theirs, json!({"version": 1}));
    }

    #[test]
    fn invalid_trees_are_refused() {
        let mut twice = tree();
        twice.messages[2].id = MessageId(1);
        let mut file = json!({});
        add_session_tree(&mut file, &twice, 0);
        assert!(parse_session_tree(&file.to_string()).is_err_and(|why| why.to_string().contains("one id")));
        let odd = "{\"tracebook\": {\"tree\": {\"title\": 5}}}";
        assert!(parse_session_tree(odd).is_err_and(|why| why.to_string().contains("tracebook.tree")));
    }

    #[test]
    fn circles_and_giant_lists_of_parents_are_refused() {
        let refusal = |tree: &SessionTreeFile| {
            let mut file = json!({});
            add_session_tree(&mut file, tree, 0);
            parse_session_tree(&file.to_string()).expect_err("refused").to_string()
        };
        let mut circle = tree();
        circle.messages[0].parents = vec![MessageId(3)];
        assert!(refusal(&circle).contains("in a circle"), "{}", refusal(&circle));
        let mut own = tree();
        own.messages[2].parents = vec![MessageId(3)];
        assert!(refusal(&own).contains("in a circle"), "{}", refusal(&own));
        let mut giant = tree();
        giant.messages[2].parents = (10..2_000).map(MessageId).collect();
        assert!(refusal(&giant).contains("more than 1000 parents"), "{}", refusal(&giant));
    }

    #[test]
    fn other_branches_are_shown_from_where_they_leave() {
        let file = tree();
        let text = other_branches_to_markdown(&MessageTree::new(file.messages), file.head, &[]);
        assert!(text.contains("# Another branch, after \u{201c}one\u{201d}"), "{text}");
        assert!(text.contains("three") && !text.contains("two"), "{text}");
    }
}
