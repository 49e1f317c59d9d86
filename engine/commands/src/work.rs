//! Command-line arguments of the commands for tasks, schedules and benchmarks.

use super::{ArgumentForm, CommandArgument, command_argument};

/// Arguments of `tracebook forks`.
pub(super) const FORKS_ARGUMENTS: &[CommandArgument] = &[
    command_argument(
        "VERB",
        ArgumentForm::Optional,
        "list, show, compare, adopt, undo or discard; or a volume, to list its forks",
    ),
    command_argument("NAME", ArgumentForm::Rest, "the fork; with compare two of them; with list the volume"),
    command_argument(
        "only",
        ArgumentForm::Values,
        "with adopt: only this file, or FILE:HUNK with a number that `forks show` prints",
    ),
    command_argument(
        "seen",
        ArgumentForm::Value,
        "with adopt: the version that `forks show` prints; other changes aren't adopted",
    ),
    command_argument(
        "ours",
        ArgumentForm::Flag,
        "with adopt and undo: where both changed the same, keep the project's",
    ),
    command_argument("theirs", ArgumentForm::Flag, "with adopt and undo: where both changed the same, take the fork's"),
];

/// Arguments of `tracebook tasks`.
pub(super) const TASKS_ARGUMENTS: &[CommandArgument] = &[
    command_argument("ACTION", ArgumentForm::Optional, "list, add, plan, show, run, cancel, reopen or agents"),
    command_argument(
        "WHAT",
        ArgumentForm::Optional,
        "a goal; with show, run, cancel and reopen a plan's note, or PLAN#TASK",
    ),
    command_argument("project", ArgumentForm::Value, "the volume"),
    command_argument(
        "plan",
        ArgumentForm::Value,
        "with add and plan: the plan's note; tasks/tasks.md, or one of its own",
    ),
    command_argument("needs", ArgumentForm::Values, "with add: a task that must be done before"),
    command_argument("agent", ArgumentForm::Value, "with add: who does it"),
    command_argument("tool", ArgumentForm::Values, "with add: a tool without which it cannot be done"),
    command_argument("input", ArgumentForm::Values, "with add: what it works with, as NAME=VALUE"),
    command_argument("constraint", ArgumentForm::Values, "with add: what it must keep to, as in \"Max cost $0.10\""),
    command_argument(
        "type",
        ArgumentForm::Value,
        "with add: the kind of work, such as review; it helps to choose the agent",
    ),
    command_argument("priority", ArgumentForm::Value, "with add: 0 to 100; 50 when left out"),
    command_argument(
        "mode",
        ArgumentForm::Value,
        "with add: auto, learner (a model), or follower (a trace; a model only where it stops)",
    ),
    command_argument("risk", ArgumentForm::Value, "with add: low, medium or high; before high risk you are asked"),
    command_argument("deadline", ArgumentForm::Value, "with add: when its run ends at the latest, such as 20 min"),
    command_argument("checkpoint", ArgumentForm::Flag, "with add: you are asked before it begins"),
    command_argument(
        "on",
        ArgumentForm::Value,
        "with add and run: let a worker do it: a device's name, or any; over the hub that the volume is shared over",
    ),
    command_argument("model", ArgumentForm::Flag, "with plan: a model splits the goal, not rules"),
    command_argument(
        "approve",
        ArgumentForm::Values,
        "with run: what may be done without asking, as in \"shell: cargo test *\"",
    ),
    command_argument("budget", ArgumentForm::Value, "with run: maximum total cost in US dollars"),
    command_argument("no-wait", ArgumentForm::Flag, "with run: end when something waits for a decision"),
];

/// Arguments of `tracebook events`.
pub(super) const EVENTS_ARGUMENTS: &[CommandArgument] = &[
    command_argument("JSON", ArgumentForm::Optional, "with publish: what the event says; `-` reads standard input"),
    command_argument("follow", ArgumentForm::Flag, "print events as they happen"),
    command_argument(
        "filter",
        ArgumentForm::Values,
        "only this kind, as in USER_INPUT or \"FILE_CHANGED: Inbox/*\"; may be repeated",
    ),
    command_argument("project", ArgumentForm::Value, "only those of this volume; with publish: the event's volume"),
    command_argument("count", ArgumentForm::Value, "end after so many events"),
    command_argument(
        "publish",
        ArgumentForm::Value,
        "publish an event of this kind, as in custom.deployed; it may start schedules and functions of plugins",
    ),
];

/// Arguments of `tracebook schedule`.
pub(super) const SCHEDULE_ARGUMENTS: &[CommandArgument] = &[
    command_argument("ACTION", ArgumentForm::Optional, "list, add, show, remove, pause, resume, run, due or watch"),
    command_argument(
        "WHAT",
        ArgumentForm::Optional,
        "the schedule's name; with add: a cron expression as in \"0 9 * * 1-5\", or an event as in \"on change \
         Inbox/*\"",
    ),
    command_argument("GOAL", ArgumentForm::Optional, "with add: what an agent is to do"),
    command_argument("name", ArgumentForm::Value, "with add: what it is called"),
    command_argument("project", ArgumentForm::Value, "the volume in which it works"),
    command_argument("note", ArgumentForm::Value, "the note that the goal is about"),
    command_argument("agent", ArgumentForm::Value, "which agent"),
    command_argument(
        "approve",
        ArgumentForm::Values,
        "what its runs may do without asking, as in \"shell: cargo test *\"",
    ),
    command_argument("budget", ArgumentForm::Value, "maximum cost of each run in US dollars"),
    command_argument(
        "mode",
        ArgumentForm::Value,
        "auto, learner (a model), or follower (a trace that fits; a model only where it stops)",
    ),
    command_argument("run", ArgumentForm::Value, "in place of a goal: the cells of this note"),
    command_argument("cell", ArgumentForm::Value, "with --run: only this cell, from 1"),
    command_argument("consolidate", ArgumentForm::Flag, "in place of a goal: memory becomes long-term notes"),
    command_argument("analyze", ArgumentForm::Value, "in place of a goal: memory is asked this, and the answer kept"),
    command_argument(
        "within",
        ArgumentForm::Value,
        "what was missed is made up for within so long, as in 30m or 2d; 12h when left out",
    ),
    command_argument("utc", ArgumentForm::Flag, "the expression goes by UTC, not by the clock here"),
    command_argument(
        "zone",
        ArgumentForm::Value,
        "the expression goes by the clock of this time zone, as in Europe/Berlin",
    ),
];

/// Arguments of `tracebook bench`.
pub(super) const BENCH: &[CommandArgument] = &[
    command_argument(
        "WHAT",
        ArgumentForm::Needed,
        "edit, open, import, frames, search, cells, kernels, tools, agent, learning, git, hub, serve, sync, replay, \
         memory or retrieval",
    ),
    command_argument(
        "size",
        ArgumentForm::Value,
        "blocks for `frames` (default 10000), clients for `hub` (1000), days for `learning` (30); the same as --notes \
         for the others",
    ),
    command_argument(
        "notes",
        ArgumentForm::Value,
        "notes for `import` and `sync` (default 50000), `open` and `search` (10000), files for `git` (50000); `edit` \
         presses its keys while so many are indexed",
    ),
    command_argument(
        "corpus",
        ArgumentForm::Value,
        "for `retrieval`: a folder with corpus.jsonl, queries.jsonl, qrels.tsv; for `replay` and `memory`: \
         bfcl-eval",
    ),
    command_argument(
        "all",
        ArgumentForm::Value,
        "for `retrieval`: a folder of such folders, a row of the table for each",
    ),
    command_argument(
        "dump",
        ArgumentForm::Value,
        "with --all: the file for the candidates of tests/bench/fusion/train.py",
    ),
    command_argument("words", ArgumentForm::Flag, "with --all: only words, which takes no vectors"),
    command_argument(
        "foreign",
        ArgumentForm::Value,
        "for `retrieval`: another such folder, whose queries nothing should fit",
    ),
    command_argument(
        "conversations",
        ArgumentForm::Value,
        "for `memory` and `retrieval`: a JSON file of LoCoMo's form, or a folder of such, whose evidence is searched",
    ),
    command_argument(
        "split",
        ArgumentForm::Flag,
        "for `replay`: every second task is held out from tuning; both halves apart",
    ),
];

/// Arguments of `tracebook git`.
pub(super) const GIT_ARGUMENTS: &[CommandArgument] = &[
    command_argument(
        "VERB",
        ArgumentForm::Needed,
        "status, diff, log, show, blame, add, restore, conflicts, resolve, commit, fetch, pull, push, branch, switch, \
         merge, merge-driver, rebase, tag, stash or clone",
    ),
    command_argument(
        "NAME",
        ArgumentForm::Rest,
        "files, a commit, a branch or a tag; with log and diff also ranges, such as main..idea, and -- before files; \
         with merge-driver what Git gives it: BASE OURS THEIRS PATH; with stash push, list, apply, pop or drop and a \
         number; with clone the address and the new folder",
    ),
    command_argument("volume", ArgumentForm::Value, "the volume (its name); the current folder when left out"),
    command_argument("message", ArgumentForm::Value, "with commit, stash and tag: the message"),
    command_argument("limit", ArgumentForm::Value, "with log: the number of commits; 20 when left out"),
    command_argument("depth", ArgumentForm::Value, "with clone: the number of commits to get"),
    command_argument(
        "api",
        ArgumentForm::Flag,
        "with clone: get the files over GitHub's API, even if Git is installed",
    ),
    command_argument("staged", ArgumentForm::Flag, "with diff: what is staged; with restore: take files out of it"),
    command_argument("hunks", ArgumentForm::Flag, "with diff: list what isn't staged by hunk, with their numbers"),
    command_argument(
        "hunk",
        ArgumentForm::Value,
        "with add and restore: only these hunks of the file, such as 1,3, or lines of a hunk, such as 2:1+3-4",
    ),
    command_argument("from", ArgumentForm::Value, "with restore: what a discard has kept, to undo it"),
    command_argument(
        "ours",
        ArgumentForm::Flag,
        "with resolve: keep what Git calls ours; `git conflicts` says what it is",
    ),
    command_argument("theirs", ArgumentForm::Flag, "with resolve: keep what Git calls theirs"),
    command_argument("both", ArgumentForm::Flag, "with resolve: keep both texts, ours first"),
    command_argument(
        "region",
        ArgumentForm::Value,
        "with resolve: only this conflict of the file, by its number; the whole file when left out",
    ),
    command_argument(
        "seen",
        ArgumentForm::Value,
        "with resolve: refuse if the file isn't the one that `git conflicts --json` has seen",
    ),
    command_argument(
        "keep-conflicts",
        ArgumentForm::Flag,
        "with merge, rebase and pull: stop at conflicts instead of taking everything back",
    ),
    command_argument(
        "all",
        ArgumentForm::Flag,
        "with commit: all changed files that Git knows; with log --graph: all branches and tags",
    ),
    command_argument("graph", ArgumentForm::Flag, "with log: draw how branches part and merge"),
    command_argument("amend", ArgumentForm::Flag, "with commit: replace the last commit"),
    command_argument("signoff", ArgumentForm::Flag, "with commit: add Signed-off-by"),
    command_argument("push", ArgumentForm::Flag, "with commit: push it, too"),
    command_argument(
        "with-outputs",
        ArgumentForm::Flag,
        "with add and commit: write the outputs of cells beside their notes, and take them along",
    ),
    command_argument("rebase", ArgumentForm::Flag, "with pull: rebase instead of merging"),
    command_argument("create", ArgumentForm::Flag, "with switch: create the branch"),
    command_argument("delete", ArgumentForm::Flag, "with branch and tag: delete it; a branch only if it is merged"),
    command_argument(
        "continue",
        ArgumentForm::Flag,
        "with merge and rebase: go on after conflicts, which are resolved and staged",
    ),
    command_argument("abort", ArgumentForm::Flag, "with merge and rebase: take back what stopped at conflicts"),
    command_argument(
        "install",
        ArgumentForm::Value,
        "with merge-driver: make Git merge the notes of this folder or volume by sentences and lines of cells",
    ),
    command_argument("yes", ArgumentForm::Flag, "with merge-driver --install: write it without asking"),
];
