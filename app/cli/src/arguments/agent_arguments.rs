//! What the subcommands for agents, their memory and their tools were given.

use clap::Args;

/// `ask`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AskArguments {
    #[arg(id = "TEXT")]
    pub(crate) text: String,
    #[arg(long)]
    pub(crate) project: Option<String>,
    #[arg(long)]
    pub(crate) note: Option<String>,
    #[arg(long)]
    pub(crate) session: Option<String>,
    #[arg(id = "from", long = "from")]
    pub(crate) from_step: Option<String>,
    #[arg(long)]
    pub(crate) agent: Option<String>,
    #[arg(long)]
    pub(crate) model: Option<String>,
    #[arg(long)]
    pub(crate) approve: Vec<String>,
    #[arg(long)]
    pub(crate) budget: Option<String>,
    #[arg(long)]
    pub(crate) deadline: Option<String>,
    #[arg(long, num_args = 0..=1, default_missing_value = "")]
    pub(crate) fork: Option<String>,
    #[arg(id = "fork-limit", long = "fork-limit")]
    pub(crate) fork_limit: Option<String>,
    #[arg(long)]
    pub(crate) on: Option<String>,
    #[arg(long)]
    pub(crate) mode: Option<String>,
    #[arg(long)]
    pub(crate) trace: Option<String>,
    #[arg(long)]
    pub(crate) without: Vec<String>,
    #[arg(id = "no-wait", long = "no-wait")]
    pub(crate) no_wait: bool,
    #[arg(id = "run", long = "run")]
    pub(crate) run_id: Option<String>,
}

/// `forks`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ForksArguments {
    #[arg(id = "VERB")]
    pub(crate) verb: Option<String>,
    #[arg(id = "NAME", num_args = 0..)]
    pub(crate) names: Vec<String>,
    #[arg(long)]
    pub(crate) only: Vec<String>,
    #[arg(long)]
    pub(crate) seen: Option<String>,
    #[arg(id = "ours", long = "ours")]
    pub(crate) is_ours: bool,
    #[arg(id = "theirs", long = "theirs")]
    pub(crate) is_theirs: bool,
}

/// `runs`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunsArguments {
    #[arg(id = "RUN")]
    pub(crate) run: Option<String>,
    #[arg(long)]
    pub(crate) stop: bool,
    #[arg(long)]
    pub(crate) resume: bool,
    #[arg(long)]
    pub(crate) more: Option<String>,
    #[arg(long)]
    pub(crate) budget: Option<String>,
    #[arg(id = "no-wait", long = "no-wait")]
    pub(crate) no_wait: bool,
    #[arg(long)]
    pub(crate) undo: bool,
    #[arg(long)]
    pub(crate) redo: bool,
    #[arg(long)]
    pub(crate) change: Option<String>,
    #[arg(long)]
    pub(crate) hunk: Option<String>,
    #[arg(long)]
    pub(crate) result: bool,
    #[arg(long)]
    pub(crate) export: bool,
    #[arg(long)]
    pub(crate) import: Option<String>,
}

/// `budget`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BudgetArguments {
    #[arg(long)]
    pub(crate) log: bool,
    #[arg(long)]
    pub(crate) by: Option<String>,
}

/// `memory`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryArguments {
    #[arg(id = "ACTION")]
    pub(crate) action: Option<String>,
    #[arg(id = "TEXT")]
    pub(crate) text: Option<String>,
    #[arg(long)]
    pub(crate) project: Option<String>,
    #[arg(long)]
    pub(crate) outcome: Option<String>,
    #[arg(long)]
    pub(crate) tier: Option<String>,
    #[arg(long)]
    pub(crate) about: Option<String>,
    #[arg(long)]
    pub(crate) goal: Option<String>,
    #[arg(long)]
    pub(crate) source: Option<String>,
    #[arg(long)]
    pub(crate) expires: Option<String>,
    #[arg(long)]
    pub(crate) by: Option<String>,
}

/// `tasks`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TasksArguments {
    #[arg(id = "ACTION")]
    pub(crate) action: Option<String>,
    #[arg(id = "WHAT")]
    pub(crate) what: Option<String>,
    #[arg(long)]
    pub(crate) project: Option<String>,
    #[arg(long)]
    pub(crate) plan: Option<String>,
    #[arg(long)]
    pub(crate) needs: Vec<String>,
    #[arg(long)]
    pub(crate) agent: Option<String>,
    #[arg(long)]
    pub(crate) tool: Vec<String>,
    #[arg(long)]
    pub(crate) input: Vec<String>,
    #[arg(long)]
    pub(crate) constraint: Vec<String>,
    #[arg(id = "type", long = "type")]
    pub(crate) kind: Option<String>,
    #[arg(long)]
    pub(crate) priority: Option<String>,
    #[arg(long)]
    pub(crate) mode: Option<String>,
    #[arg(long)]
    pub(crate) risk: Option<String>,
    #[arg(long)]
    pub(crate) deadline: Option<String>,
    #[arg(long)]
    pub(crate) checkpoint: bool,
    #[arg(long)]
    pub(crate) on: Option<String>,
    #[arg(long)]
    pub(crate) model: bool,
    #[arg(long)]
    pub(crate) approve: Vec<String>,
    #[arg(long)]
    pub(crate) budget: Option<String>,
    #[arg(id = "no-wait", long = "no-wait")]
    pub(crate) no_wait: bool,
}

/// `schedule`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScheduleArguments {
    #[arg(id = "ACTION")]
    pub(crate) action: Option<String>,
    #[arg(id = "WHAT")]
    pub(crate) what: Option<String>,
    #[arg(id = "GOAL")]
    pub(crate) goal: Option<String>,
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[arg(long)]
    pub(crate) project: Option<String>,
    #[arg(long)]
    pub(crate) note: Option<String>,
    #[arg(long)]
    pub(crate) agent: Option<String>,
    #[arg(long)]
    pub(crate) approve: Vec<String>,
    #[arg(long)]
    pub(crate) budget: Option<String>,
    #[arg(long)]
    pub(crate) mode: Option<String>,
    #[arg(long)]
    pub(crate) run: Option<String>,
    #[arg(long)]
    pub(crate) cell: Option<String>,
    #[arg(long)]
    pub(crate) consolidate: bool,
    #[arg(long)]
    pub(crate) analyze: Option<String>,
    #[arg(long)]
    pub(crate) within: Option<String>,
    #[arg(long)]
    pub(crate) utc: bool,
    #[arg(long)]
    pub(crate) zone: Option<String>,
}

/// `events`.
#[derive(Args, Clone, Debug)]
pub(crate) struct EventsArguments {
    #[arg(id = "JSON")]
    pub(crate) data: Option<String>,
    #[arg(long)]
    pub(crate) follow: bool,
    #[arg(long)]
    pub(crate) filter: Vec<String>,
    #[arg(long)]
    pub(crate) project: Option<String>,
    #[arg(long)]
    pub(crate) count: Option<String>,
    #[arg(long)]
    pub(crate) publish: Option<String>,
}

/// `traces`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TracesArguments {
    #[arg(id = "ACTION")]
    pub(crate) action: Option<String>,
    #[arg(id = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(id = "VALUE")]
    pub(crate) value: Option<String>,
    #[arg(id = "OTHER")]
    pub(crate) other: Option<String>,
    #[arg(long, conflicts_with = "unpin")]
    pub(crate) pin: bool,
    #[arg(long)]
    pub(crate) unpin: bool,
    #[arg(long)]
    pub(crate) signed: bool,
    #[arg(long)]
    pub(crate) preview: bool,
    #[arg(long)]
    pub(crate) project: Option<String>,
}

/// `steps`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StepsArguments {
    #[arg(id = "RUN")]
    pub(crate) run: String,
    #[arg(long)]
    pub(crate) whole: bool,
}

/// `sessions`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SessionsArguments {
    #[arg(id = "SESSION")]
    pub(crate) session: Option<String>,
    #[arg(long)]
    pub(crate) all: bool,
    #[arg(long)]
    pub(crate) title: Option<String>,
    #[arg(long)]
    pub(crate) go: Option<String>,
    #[arg(long)]
    pub(crate) fork: Option<String>,
    #[arg(long)]
    pub(crate) merge: Option<String>,
    #[arg(id = "into", long = "into")]
    pub(crate) into_session: Option<String>,
    #[arg(long)]
    pub(crate) compare: Option<String>,
    #[arg(long)]
    pub(crate) export: Option<String>,
    #[arg(long)]
    pub(crate) import: Option<String>,
    #[arg(long)]
    pub(crate) delete: bool,
}

/// `approvals`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ApprovalsArguments {
    #[arg(id = "APPROVAL")]
    pub(crate) approval: Option<String>,
    #[arg(long)]
    pub(crate) allow: bool,
    #[arg(long)]
    pub(crate) deny: bool,
    #[arg(long)]
    pub(crate) scope: Option<String>,
    #[arg(long)]
    pub(crate) arguments: Option<String>,
    #[arg(long)]
    pub(crate) answers: Option<String>,
    #[arg(long)]
    pub(crate) comment: Option<String>,
    #[arg(long)]
    pub(crate) all: bool,
    #[arg(long)]
    pub(crate) find: Option<String>,
    #[arg(long)]
    pub(crate) rules: bool,
    #[arg(long)]
    pub(crate) forget: Option<String>,
    #[arg(id = "no-wait", long = "no-wait")]
    pub(crate) no_wait: bool,
}

/// `tools`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ToolsArguments {
    #[arg(id = "TOOL")]
    pub(crate) tool: Option<String>,
    #[arg(long)]
    pub(crate) versions: bool,
    #[arg(long)]
    pub(crate) compare: Option<String>,
    #[arg(long)]
    pub(crate) rollback: bool,
    #[arg(long)]
    pub(crate) approve: bool,
    #[arg(long)]
    pub(crate) install: bool,
    #[arg(long)]
    pub(crate) disable: bool,
    #[arg(long)]
    pub(crate) remove: bool,
    #[arg(long)]
    pub(crate) export: bool,
    #[arg(long)]
    pub(crate) import: Option<String>,
}
