//! What the commands for tasks and schedules take on the command line.

use super::{Arg, Form, arg};

/// `tasks`.
pub(super) const TASKS: &[Arg] = &[
    arg("ACTION", Form::Optional, "list, add, plan, show, run, cancel, reopen or agents"),
    arg("WHAT", Form::Optional, "a goal; with show, run, cancel and reopen a plan's note, or PLAN#TASK"),
    arg("project", Form::Value, "the volume"),
    arg("plan", Form::Value, "with add and plan: the plan's note; tasks/tasks.md, or one of its own"),
    arg("needs", Form::Values, "with add: a task that must be done before"),
    arg("agent", Form::Value, "with add: who does it"),
    arg("tool", Form::Values, "with add: a tool without which it cannot be done"),
    arg("input", Form::Values, "with add: what it works with, as NAME=VALUE"),
    arg("constraint", Form::Values, "with add: what it must keep to, as in \"Max cost $0.10\""),
    arg("priority", Form::Value, "with add: 0 to 100; 50 when left out"),
    arg("mode", Form::Value, "with add: auto, learner (a model), or follower (a trace, without a model)"),
    arg("model", Form::Flag, "with plan: a model splits the goal, not rules"),
    arg("approve", Form::Values, "with run: what may be done without asking, as in \"shell: cargo test *\""),
    arg("budget", Form::Value, "with run: all of it may cost at most so many US dollars"),
    arg("no-wait", Form::Flag, "with run: end when something waits for a decision"),
];

/// `schedule`.
pub(super) const SCHEDULE: &[Arg] = &[
    arg("ACTION", Form::Optional, "list, add, show, remove, pause, resume, run, due or watch"),
    arg("WHAT", Form::Optional, "the schedule's name; with add: a cron expression, as in \"0 9 * * 1-5\""),
    arg("GOAL", Form::Optional, "with add: what an agent is to do"),
    arg("name", Form::Value, "with add: what it is called"),
    arg("project", Form::Value, "the volume in which it works"),
    arg("note", Form::Value, "the note that the goal is about"),
    arg("agent", Form::Value, "which agent"),
    arg("approve", Form::Values, "what its runs may do without asking, as in \"shell: cargo test *\""),
    arg("budget", Form::Value, "each run may cost at most so many US dollars"),
    arg("mode", Form::Value, "auto, learner (a model), or follower (a trace that fits, without a model)"),
    arg("run", Form::Value, "in place of a goal: the cells of this note"),
    arg("cell", Form::Value, "with --run: only this cell, from 1"),
    arg("consolidate", Form::Flag, "in place of a goal: memory becomes long-term notes"),
    arg("analyze", Form::Value, "in place of a goal: memory is asked this, and the answer kept"),
    arg("within", Form::Value, "what was missed is made up for within so long, as in 30m or 2d; 12h when left out"),
    arg("utc", Form::Flag, "the expression goes by UTC, not by the clock here"),
    arg("zone", Form::Value, "the expression goes by the clock of this time zone, as in Europe/Berlin"),
];
