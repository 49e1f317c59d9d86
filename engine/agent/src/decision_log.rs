//! The decision log of a project: for each plan that was carried out, who made it, who did which task, and what the
//! user decided.

use crate::memory::trace::iso_timestamp;
use crate::task_block::TaskBlock;
use crate::tool_catalog::BuiltInTool;
use serde_json::Value;
use store::{DecisionMaker, RunApproval};

/// Name of the note in a memory folder.
pub const DECISION_LOG_FILE: &str = "decisions.md";
/// Maximum length of a text in a line, in characters.
const MAX_LINE_CHARS: usize = 300;

/// What was decided about a plan.
#[derive(Clone, Debug)]
pub struct PlanDecisions<'a> {
    /// When the run ended, in milliseconds since 1970.
    pub at: i64,
    /// Id of the run that carried the plan out.
    pub run: String,
    /// The goal of the plan.
    pub goal: String,
    /// Where the plan comes from, such as `made by rules`.
    pub source: &'static str,
    /// The tasks with their status, each with the agent that did it; `None` if no agent began it.
    pub tasks: Vec<(TaskBlock, Option<String>)>,
    /// The approvals of the run.
    pub approvals: &'a [RunApproval],
}

/// Returns a text as a part of one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_LINE_CHARS).collect()
}

impl PlanDecisions<'_> {
    /// Formats the decisions as an entry of the log.
    pub fn to_markdown(&self) -> String {
        let count = self.tasks.len();
        let tasks = if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") };
        let mut text = format!(
            "## {}: {}\n\n- Run: {}\n- Plan: {}, {tasks}\n",
            iso_timestamp(self.at),
            one_line(&self.goal),
            self.run,
            self.source
        );
        for (task, agent) in &self.tasks {
            let (id, goal, status) = (&task.id, one_line(&task.goal), task.standing.as_str());
            match agent {
                Some(agent) => text.push_str(&format!("- Assigned: {id} to {}, {status}: {goal}\n", one_line(agent))),
                None => text.push_str(&format!("- Not begun: {id}, {status}: {goal}\n")),
            }
        }
        for approval in self.approvals {
            let Some(decision) = approval.decision.as_ref() else { continue };
            let by = match &decision.by {
                DecisionMaker::User => "the user",
                DecisionMaker::Timeout => "nobody in time",
                DecisionMaker::Cancelled => "the end of the run",
                DecisionMaker::Policy | DecisionMaker::Other(_) => continue,
            };
            let is_checkpoint = BuiltInTool::AskAgent.is_named(&approval.tool)
                && approval.arguments.get("checkpoint").and_then(Value::as_bool) == Some(true);
            let kind = if is_checkpoint { "Checkpoint" } else { "Decision" };
            let word = if decision.allowed { "allowed" } else { "denied" };
            let comment = decision.comment.as_deref().map(one_line).filter(|comment| !comment.is_empty());
            let comment = comment.map(|comment| format!(", \u{201c}{comment}\u{201d}")).unwrap_or_default();
            let (what, at) = (one_line(&approval.what), iso_timestamp(decision.at));
            text.push_str(&format!("- {kind}: {word} by {by} at {at}: {what}{comment}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_one_line_for_each_decision() {
        let task = TaskBlock { id: "t1".to_owned(), goal: "Plot\nit".to_owned(), ..TaskBlock::default() };
        let decided = PlanDecisions {
            at: 0,
            run: "r".to_owned(),
            goal: "The\n# shop".to_owned(),
            source: "made by rules",
            tasks: vec![(task.clone(), Some("data".to_owned())), (task, None)],
            approvals: &[],
        };
        let text = decided.to_markdown();
        assert_eq!(
            text,
            "## 1970-01-01T00:00:00Z: The # shop\n\n- Run: r\n- Plan: made by rules, 2 tasks\n- Assigned: t1 to data, \
             open: Plot it\n- Not begun: t1, open: Plot it\n"
        );
    }
}
