//! What the commands for tasks and schedules take on the command line.

use super::{ArgumentForm, CommandArgument, arg};

/// `tasks`.
pub(super) const TASKS: &[CommandArgument] = &[
    arg("ACTION", ArgumentForm::Optional, "list, add, plan, show, run, cancel, reopen or agents"),
    arg("WHAT", ArgumentForm::Optional, "a goal; with show, run, cancel and reopen a plan's note, or PLAN#TASK"),
    arg("project", ArgumentForm::Value, "the volume"),
    arg("plan", ArgumentForm::Value, "with add and plan: the plan's note; tasks/tasks.md, or one of its own"),
    arg("needs", ArgumentForm::Values, "with add: a task that must be done before"),
    arg("agent", ArgumentForm::Value, "with add: who does it"),
    arg("tool", ArgumentForm::Values, "with add: a tool without which it cannot be done"),
    arg("input", ArgumentForm::Values, "with add: what it works with, as NAME=VALUE"),
    arg("constraint", ArgumentForm::Values, "with add: what it must keep to, as in \"Max cost $0.10\""),
    arg("priority", ArgumentForm::Value, "with add: 0 to 100; 50 when left out"),
    arg("mode", ArgumentForm::Value, "with add: auto, learner (a model), or follower (a trace, without a model)"),
    arg("model", ArgumentForm::Flag, "with plan: a model splits the goal, not rules"),
    arg("approve", ArgumentForm::Values, "with run: what may be done without asking, as in \"shell: cargo test *\""),
    arg("budget", ArgumentForm::Value, "with run: all of it may cost at most so many US dollars"),
    arg("no-wait", ArgumentForm::Flag, "with run: end when something waits for a decision"),
];

/// `schedule`.
pub(super) const SCHEDULE: &[CommandArgument] = &[
    arg("ACTION", ArgumentForm::Optional, "list, add, show, remove, pause, resume, run, due or watch"),
    arg("WHAT", ArgumentForm::Optional, "the schedule's name; with add: a cron expression, as in \"0 9 * * 1-5\""),
    arg("GOAL", ArgumentForm::Optional, "with add: what an agent is to do"),
    arg("name", ArgumentForm::Value, "with add: what it is called"),
    arg("project", ArgumentForm::Value, "the volume in which it works"),
    arg("note", ArgumentForm::Value, "the note that the goal is about"),
    arg("agent", ArgumentForm::Value, "which agent"),
    arg("approve", ArgumentForm::Values, "what its runs may do without asking, as in \"shell: cargo test *\""),
    arg("budget", ArgumentForm::Value, "each run may cost at most so many US dollars"),
    arg("mode", ArgumentForm::Value, "auto, learner (a model), or follower (a trace that fits, without a model)"),
    arg("run", ArgumentForm::Value, "in place of a goal: the cells of this note"),
    arg("cell", ArgumentForm::Value, "with --run: only this cell, from 1"),
    arg("consolidate", ArgumentForm::Flag, "in place of a goal: memory becomes long-term notes"),
    arg("analyze", ArgumentForm::Value, "in place of a goal: memory is asked this, and the answer kept"),
    arg(
        "within",
        ArgumentForm::Value,
        "what was missed is made up for within so long, as in 30m or 2d; 12h when left out",
    ),
    arg("utc", ArgumentForm::Flag, "the expression goes by UTC, not by the clock here"),
    arg("zone", ArgumentForm::Value, "the expression goes by the clock of this time zone, as in Europe/Berlin"),
];
