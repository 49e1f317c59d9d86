//! Schedules: each due time starts one run, missed times are made up for or skipped with a notice, across restarts and
//! clock changes. Scheduled runs may do no more than the user's own. Also the watchdog over running work.

use super::agents::{agent, answer, ask, kinds, results, said, setup};
use crate::twin::{Asked, Twin};
use agent::memory::insight::MemoryQuery;
use agent::memory::{MemoryMaintenance, ReplayMode};
use agent::schedule::{Schedule, ScheduleOutcome, ScheduledWork};
use engine::notice::Notice;
use engine::{AgentRun, Command, Event, UnixMillis};
use serde_json::json;
use store::{DecisionRecord, DecisionScope, DocId, RunEnding, RunOrigin};
use text::time_zone::ZoneClock;

const HOUR: i64 = 3_600_000;

fn goal(text: &str) -> ScheduledWork {
    ScheduledWork::Goal { goal: text.to_owned(), note: None, agent: None, budget: None, mode: ReplayMode::Auto }
}

fn add(twin: &mut Twin, number: u8, when: &str, work: ScheduledWork) -> DocId {
    let volume = twin.session.volumes().next().expect("a volume").id;
    let (schedule, name) = (DocId([number; 16]), format!("s{number}"));
    let what = Schedule {
        name,
        when: when.to_owned(),
        offset: 0,
        zone: None,
        volume,
        work,
        allow: Vec::new(),
        window: 3_600,
        paused: false,
        next: None,
        last: None,
        triggered: Vec::new(),
    };
    twin.command(Command::AddSchedule { schedule, what: Box::new(what) }).expect("made");
    twin.rest();
    schedule
}

/// A process that stays and minds schedules, started on the full hour.
fn house(files: &[(&str, &str)]) -> Twin {
    let mut twin = agent(files, "");
    twin.now = UnixMillis(1_795_300_000_000 / HOUR * HOUR);
    twin.command(Command::MindSchedules { zones: Vec::new() }).expect("minded");
    twin
}

fn one(twin: &Twin, schedule: DocId) -> Schedule {
    twin.session.schedules().find(|(id, _)| *id == schedule).expect("it is there").1.clone()
}

fn came(twin: &Twin, schedule: DocId) -> ScheduleOutcome {
    one(twin, schedule).last.expect("it was due").came
}

/// The run that a schedule started last.
fn run(twin: &Twin, schedule: DocId) -> &AgentRun {
    match came(twin, schedule) {
        ScheduleOutcome::Begun { run: Some(run) } | ScheduleOutcome::Ended { run, .. } => {
            twin.session.agents().run(run).expect("open")
        }
        other => panic!("{other:?}"),
    }
}

fn notices(twin: &Twin) -> Vec<Notice> {
    twin.session.notices().notices_after(0).map(|noticed| noticed.notice.clone()).collect()
}

#[test]
fn what_is_due_begins_once_and_waits_for_the_user_where_it_must() {
    let mut twin = house(&[("a.md", "# A\n")]);
    let id = add(&mut twin, 3, "0 * * * *", goal("tidy up"));
    twin.pass(HOUR - 60_000);
    assert!(twin.models.is_empty() && one(&twin, id).last.is_none(), "not before its time");
    twin.pass(2 * 60_000);
    assert_eq!((twin.models.len(), twin.session.agents().runs().count()), (1, 1));
    assert_eq!(run(&twin, id).about.origin, RunOrigin::Schedule { schedule: id });
    answer(
        &mut twin,
        said("", &[("shell", json!({"command": "make"})), ("read_file", json!({"path": "/etc/passwd"}))]),
    );
    assert!(twin.tools.is_empty(), "the policy is the same as ever");
    assert!(results(run(&twin, id)).iter().any(|(good, text)| !good && text.contains("not allowed")));
    // No user is present, so the approval waits longer than in a run that a user started.
    twin.pass(30 * 60_000);
    assert_eq!(run(&twin, id).pending().count(), 1);
    // Meanwhile the next time is skipped with a notice, and the waiting run stays the last outcome.
    twin.pass(HOUR);
    assert_eq!(twin.session.agents().runs().count(), 1);
    assert!(matches!(came(&twin, id), ScheduleOutcome::Begun { .. }));
    let skipped = |notice: &Notice| matches!(notice, Notice::Skipped { why, .. } if why.contains("still in progress"));
    assert_eq!(notices(&twin).iter().filter(|notice| skipped(notice)).count(), 1);
    let (run_id, approval) = (run(&twin, id).id, run(&twin, id).pending().next().expect("waits").id.clone());
    let by = store::DecisionMaker::User;
    let decision =
        DecisionRecord { allowed: false, scope: DecisionScope::Once, by, at: 0, arguments: None, comment: None };
    twin.command(Command::Decide { run: run_id, approval, decision }).expect("decided");
    twin.rest();
    answer(&mut twin, said("All is tidy.", &[]));
    assert_eq!(came(&twin, id), ScheduleOutcome::Ended { run: run_id, how: RunEnding::Done });
    twin.pass(HOUR);
    assert_eq!(twin.session.agents().runs().count(), 2, "and again");
    assert!(twin.session.agents().rules().is_empty());
}

#[test]
fn two_are_due_at_once_and_one_rests() {
    let mut twin = house(&[("a.md", "# A\n")]);
    let (first, second) =
        (add(&mut twin, 3, "30 * * * *", goal("one")), add(&mut twin, 4, "*/15 * * * *", goal("two")));
    let third = add(&mut twin, 5, "30 * * * *", goal("three"));
    twin.command(Command::PauseSchedule { schedule: third, paused: true }).expect("paused");
    twin.pass(16 * 60_000);
    assert_eq!(twin.session.agents().runs().count(), 1);
    answer(&mut twin, said("two is done", &[]));
    twin.pass(15 * 60_000);
    assert_eq!(twin.session.agents().runs().count(), 3);
    let goals: Vec<String> = [first, second].iter().map(|id| run(&twin, *id).about.prompt.clone()).collect();
    assert_eq!(goals, ["one", "two"]);
    assert_ne!(run(&twin, first).about.session, run(&twin, second).about.session);
    // Times that fell into the pause aren't made up for.
    twin.command(Command::PauseSchedule { schedule: third, paused: false }).expect("goes on");
    assert_eq!((one(&twin, third).last, one(&twin, third).next.map(|next| next > twin.now)), (None, Some(true)));
    twin.command(Command::RemoveSchedule { schedule: third }).expect("removed");
    twin.rest();
    let left = Twin::start(twin.crash(), 9);
    assert_eq!(left.session.schedules().count(), 2, "kept on the disk");
}

#[test]
fn over_a_restart_the_last_that_was_missed_counts_or_is_left_out() {
    let mut twin = house(&[("a.md", "# A\n")]);
    let id = add(&mut twin, 3, "0 * * * *", goal("tidy up"));
    let late = add(&mut twin, 4, "0 7 * * *", ScheduledWork::Consolidate);
    let begun = twin.now;
    let world = twin.crash();
    let mut twin = Twin::start(world, 2);
    twin.setup = setup("");
    twin.now = begun.plus_ms(30 * HOUR + 20 * 60_000);
    twin.rest();
    twin.command(Command::RunSchedule { schedule: late }).expect("begun by hand");
    twin.rest();
    assert_eq!(
        (twin.models.len(), came(&twin, late)),
        (0, ScheduleOutcome::Done),
        "a process that goes begins nothing by itself"
    );
    twin.command(Command::MindSchedules { zones: Vec::new() }).expect("minded");
    twin.rest();
    assert_eq!(twin.models.len(), 1, "thirty were missed; one begins");
    let last = one(&twin, id).last.expect("due");
    assert_eq!((last.due, last.missed), (begun.plus_ms(30 * HOUR), 29));
    // Times that are too long ago are skipped.
    let mut twin = Twin::start(twin.crash(), 3);
    twin.now = begun.plus_ms(31 * HOUR + 20 * 60_000);
    twin.rest();
    let schedule = one(&twin, late);
    assert!(schedule.next.is_some_and(|next| next > begun.plus_ms(30 * HOUR)));
    twin.now = schedule.next.expect("a next time").plus_ms(120 * 60_000);
    twin.command(Command::MindSchedules { zones: Vec::new() }).expect("minded");
    twin.rest();
    let ScheduleOutcome::Skipped { why } = came(&twin, late) else { panic!("{:?}", came(&twin, late)) };
    assert!(why.contains("more than 60 min ago"), "{why}");
}

/// Berlin's clock changes: 2026-03-29, 01:00 UTC, from 02:00 to 03:00; 2026-10-25, 01:00 UTC, from 03:00 back to 02:00.
const SPRING: i64 = 1_774_746_000;
const AUTUMN: i64 = 1_792_890_000;

fn berlin() -> ZoneClock {
    let changes = vec![(SPRING, 7_200), (AUTUMN, 3_600), (1_806_195_600, 7_200)];
    ZoneClock { name: "Europe/Berlin".to_owned(), first: 3_600, changes }
}

/// A process that stays, in Berlin, whose memory is consolidated at 02:30 local time.
fn night_in_berlin(begun: UnixMillis) -> (Twin, DocId) {
    let mut twin = agent(&[("a.md", "# A\n")], "");
    twin.now = begun;
    twin.command(Command::MindSchedules { zones: vec![berlin()] }).expect("minded");
    let id = add(&mut twin, 3, "30 2 * * *", ScheduledWork::Consolidate);
    let was = one(&twin, id);
    twin.command(Command::RemoveSchedule { schedule: id }).expect("removed");
    let what = Schedule { zone: Some(berlin()), last: None, next: None, window: 12 * 3_600, ..was };
    twin.command(Command::AddSchedule { schedule: id, what: Box::new(what) }).expect("made");
    twin.rest();
    (twin, id)
}

fn begun(twin: &Twin) -> Vec<UnixMillis> {
    let due = |notice: Notice| match notice {
        Notice::Scheduled { due, .. } => Some(due),
        _ => None,
    };
    notices(twin).into_iter().filter_map(due).collect()
}

#[test]
fn a_schedule_by_the_clock_on_the_wall_holds_over_both_changes_of_it() {
    let half = HOUR / 2;
    for (change, due, next) in [
        // The skipped 02:30 starts at 03:00, which is the moment of the change.
        (SPRING, UnixMillis(SPRING * 1_000), UnixMillis(SPRING * 1_000 + 23 * HOUR + half)),
        // The repeated 02:30 starts the first time, half an hour before the change; then comes a day of 25 hours.
        (AUTUMN, UnixMillis(AUTUMN * 1_000 - half), UnixMillis(AUTUMN * 1_000 - half + 25 * HOUR)),
    ] {
        let eve = UnixMillis(change * 1_000 - 10 * HOUR);
        let (mut twin, id) = night_in_berlin(eve);
        twin.pass(14 * HOUR);
        assert_eq!(begun(&twin), [due]);
        twin.pass(24 * HOUR);
        assert_eq!(begun(&twin), [due, next], "each night once");

        // Closed during that night: it's made up for once, and setting the clock back into the hour starts nothing.
        let (twin, _) = night_in_berlin(eve);
        let mut twin = Twin::start(twin.crash(), 2);
        twin.setup = setup("");
        twin.now = UnixMillis(change * 1_000 + 5 * HOUR);
        twin.rest();
        twin.command(Command::MindSchedules { zones: vec![berlin()] }).expect("minded");
        twin.rest();
        assert_eq!(begun(&twin), [due]);
        let last = one(&twin, id).last.expect("due");
        assert_eq!((last.due, last.missed, last.came), (due, 0, ScheduleOutcome::Done));
        twin.now = UnixMillis(due.0 - 10 * 60_000);
        twin.event(Event::Tick);
        twin.rest();
        twin.pass(2 * HOUR);
        assert_eq!(begun(&twin), [due], "nothing begins twice");
        // The clock is set forward by a week: only the last missed time counts.
        twin.now = UnixMillis(next.0 + 6 * 24 * HOUR + HOUR);
        twin.event(Event::Tick);
        twin.rest();
        let last = one(&twin, id).last.expect("due");
        assert_eq!((last.due, last.missed), (UnixMillis(next.0 + 6 * 24 * HOUR), 6));
    }
}

#[test]
fn what_is_known_of_a_zone_today_replaces_what_was_known_when_a_schedule_was_made() {
    let (twin, id) = night_in_berlin(UnixMillis((SPRING + 93_600) * 1_000));
    let before = one(&twin, id).next.expect("it comes");
    // Summer time is abolished: from the next start on, 02:30 is an hour later.
    let mut twin = Twin::start(twin.crash(), 2);
    twin.now = UnixMillis((SPRING + 93_660) * 1_000);
    twin.rest();
    let winter = ZoneClock::fixed("Europe/Berlin", 3_600);
    twin.command(Command::MindSchedules { zones: vec![winter.clone()] }).expect("minded");
    assert_eq!((one(&twin, id).next, one(&twin, id).zone), (Some(before.plus_ms(HOUR)), Some(winter)));
    // This applies to the clock of any zone that a schedule uses, whatever this machine's own zone is.
    let zones = vec![ZoneClock::fixed("Asia/Tokyo", 32_400), berlin()];
    twin.command(Command::MindSchedules { zones }).expect("minded");
    assert_eq!((one(&twin, id).next, one(&twin, id).zone), (Some(before), Some(berlin())));
    let zones = vec![ZoneClock::fixed("Asia/Tokyo", 32_400), ZoneClock::fixed("Europe/Berlin", 3_600)];
    twin.command(Command::MindSchedules { zones }).expect("minded");
    // Another zone's clock doesn't change this one; invalid zones are refused.
    twin.command(Command::MindSchedules { zones: vec![ZoneClock::fixed("Asia/Tokyo", 32_400)] }).expect("minded");
    assert_eq!(one(&twin, id).next, Some(before.plus_ms(HOUR)));
    assert!(twin.command(Command::MindSchedules { zones: vec![ZoneClock::fixed("", 0)] }).is_err());
    let wrong = Schedule { name: "wrong".to_owned(), zone: Some(ZoneClock::fixed("x", i32::MAX)), ..one(&twin, id) };
    let made = Command::AddSchedule { schedule: DocId([9; 16]), what: Box::new(wrong) };
    assert!(twin.command(made).is_err_and(|reject| reject.0.contains("18 hours from UTC")));
}

#[test]
fn a_clock_that_jumps_begins_nothing_twice() {
    let mut twin = house(&[("a.md", "# A\n")]);
    let id = add(&mut twin, 3, "0 * * * *", ScheduledWork::Consolidate);
    let begun = twin.now;
    // Forward by nine and a half hours: one start, which records how many times it stands for.
    twin.now = begun.plus_ms(9 * HOUR + HOUR / 2);
    twin.event(Event::Tick);
    twin.rest();
    let last = one(&twin, id).last.expect("due");
    assert_eq!((last.due, last.missed, last.came), (begun.plus_ms(9 * HOUR), 8, ScheduleOutcome::Done));
    let count = |twin: &Twin| notices(twin).iter().filter(|one| matches!(one, Notice::Scheduled { .. })).count();
    assert_eq!(count(&twin), 1);
    // Back by an hour: nine o'clock has already run.
    twin.now = begun.plus_ms(8 * HOUR + HOUR / 2);
    twin.event(Event::Tick);
    twin.pass(HOUR);
    assert_eq!((count(&twin), one(&twin, id).next), (1, Some(begun.plus_ms(10 * HOUR))));
    twin.pass(HOUR);
    assert_eq!(count(&twin), 2);
    // Forward by a year and back again: the clock was wrong, so the schedule is recomputed.
    twin.now = begun.plus_ms(9_000 * HOUR);
    twin.event(Event::Tick);
    twin.rest();
    assert_eq!(count(&twin), 3);
    twin.now = begun.plus_ms(11 * HOUR + 1);
    twin.event(Event::Tick);
    assert_eq!(one(&twin, id).next, Some(begun.plus_ms(12 * HOUR)));
    twin.pass(HOUR);
    assert_eq!(count(&twin), 4);
}

#[test]
fn cells_and_memory_are_scheduled_too() {
    let log = "---\n- experience_id: exp_1\n- primary_goal: Find the peaks of a signal\n- final_outcome: success\n\
               - learnings_or_issues: scipy.fft works\n- source: run 1\n---\n";
    let text = "```python\n1\n```\n\n```python\n2\n```\n";
    let mut twin = house(&[("a.md", text), ("memory/memory_log.md", log)]);
    let note = twin.id("a.md");
    let id = add(&mut twin, 3, "0 * * * *", ScheduledWork::Cells { note, cell: Some(2) });
    let query = MemoryQuery { query: "How are peaks of a signal found?".to_owned(), ..MemoryQuery::default() };
    let asked = add(&mut twin, 4, "5 * * * *", ScheduledWork::Analyze { query });
    let consolidated = add(&mut twin, 5, "10 * * * *", ScheduledWork::Consolidate);
    twin.pass(HOUR + 1);
    assert!(twin.asked.is_empty(), "running code asks first");
    let pending: Vec<String> = run(&twin, id).pending().map(|approval| approval.what.clone()).collect();
    assert_eq!(pending, ["Run cell 2 of a.md"]);
    let (run_id, approval) = (run(&twin, id).id, run(&twin, id).pending().next().expect("waits").id.clone());
    let by = store::DecisionMaker::User;
    let decision =
        DecisionRecord { allowed: true, scope: DecisionScope::Once, by, at: 0, arguments: None, comment: None };
    twin.command(Command::Decide { run: run_id, approval, decision }).expect("decided");
    twin.rest();
    let Some(Asked::Eval { code, execution, .. }) = twin.asked.first().cloned() else { panic!("{:?}", twin.asked) };
    assert_eq!(code.trim(), "2");
    let (status, whole, cached) = (store::ExecutionStatus::Ok, Vec::new(), false);
    twin.event(Event::Finished { note, execution, status, count: Some(1), whole, cached, took: None });
    twin.rest();
    assert!(matches!(came(&twin, id), ScheduleOutcome::Ended { how: RunEnding::Done, .. }), "{:?}", came(&twin, id));
    twin.pass(11 * 60_000);
    assert_eq!((came(&twin, asked), came(&twin, consolidated)), (ScheduleOutcome::Done, ScheduleOutcome::Done));
    let said = twin.file("memory/long_term/analysis.md").expect("kept");
    assert!(said.contains("- exp_1") && said.contains("scipy.fft works"), "{said}");
    assert!(twin.file("memory/long_term/best_practices.md").expect("kept").contains("scipy.fft works"));
    let volume = twin.session.volumes().next().expect("a volume").id;
    twin.command(Command::Upkeep { volume, what: MemoryMaintenance::Consolidate }).expect("by hand too");
    twin.rest();
    assert!(!twin.session.is_maintaining_memory());
}

#[test]
fn wrong_schedules_are_refused() {
    let mut twin = house(&[("a.md", "# A\n")]);
    let id = add(&mut twin, 3, "0 * * * *", goal("one"));
    let known = one(&twin, id);
    let wrong = [
        (Schedule { name: " ".to_owned(), ..known.clone() }, "needs a name"),
        (known.clone(), "called s3 already"),
        (Schedule { name: "b".to_owned(), when: "whenever".to_owned(), ..known.clone() }, "no cron expression"),
        (Schedule { name: "b".to_owned(), when: "0 0 31 2 *".to_owned(), ..known.clone() }, "never comes"),
        (Schedule { name: "b".to_owned(), work: goal(" "), ..known.clone() }, "enter a goal"),
        (Schedule { name: "b".to_owned(), volume: DocId([9; 16]), ..known.clone() }, "no volume"),
    ];
    for (what, why) in wrong {
        let refused = twin.command(Command::AddSchedule { schedule: DocId([7; 16]), what: Box::new(what) });
        assert!(refused.as_ref().is_err_and(|reject| reject.0.contains(why)), "{why}: {refused:?}");
    }
    twin.command(Command::RunSchedule { schedule: id }).expect("begun");
    twin.rest();
    let twice = twin.command(Command::RunSchedule { schedule: id });
    assert!(twice.is_err_and(|reject| reject.0.contains("still in progress")));
}

#[test]
fn the_watchdog_ends_what_hangs_and_says_so() {
    let mut twin = agent(&[("a.md", "# A\n")], "approval: {never_approve: [shell]}\n");
    super::agents::ask(&mut twin, "build");
    // A model that sends text now and then isn't silent.
    let (call, _) = twin.models[0].clone();
    for _ in 0..4 {
        twin.pass(15 * 60_000);
        let delta = agent::model_call::ModelDelta::Text("hm ".to_owned());
        twin.event(Event::ModelDelta { call, delta });
    }
    assert!(twin.cancelled.is_empty());
    answer(&mut twin, said("", &[("shell", json!({"command": "make", "seconds": 100}))]));
    twin.pass(219_000);
    assert_eq!((twin.tools.len(), twin.cancelled.len()), (1, 0));
    twin.pass(2_000);
    assert_eq!(twin.cancelled, ["tool c0"]);
    let run = super::agents::run;
    assert!(results(run(&twin))[0].1.contains("The watchdog stopped the tool: shell"), "{:?}", results(run(&twin)));
    assert_eq!(twin.models.len(), 1, "the model is told and goes on");
    // Now it's silent: the call is ended and another provider is asked; if there is none, the run says why.
    twin.pass(20 * 60_000 + 1);
    assert!(twin.cancelled.iter().any(|what| what.starts_with("model")), "{:?}", twin.cancelled);
    assert_eq!(twin.models.len(), 2, "another one is asked");
    assert!(kinds(run(&twin)).contains(&"error"));
    let stopped = |one: &Notice| matches!(one, Notice::Stopped { what, .. } if what.contains("near"));
    assert!(notices(&twin).iter().any(stopped), "{:?}", notices(&twin));
    twin.pass(20 * 60_000 + 1);
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Failed));
}

#[test]
fn what_the_user_asked_starts_schedules_and_what_a_schedule_delegated_starts_none() {
    let mut twin = house(&[("a.md", "# A\n")]);
    let tidies = add(&mut twin, 3, "0 * * * *", goal("tidy up"));
    let mut waits = Vec::new();
    for (number, event) in (4_u8..).zip(["USER_INPUT", "LLM_OUTPUT", "TOOL_OUTPUT: ask_*", "RUN_ENDED"]) {
        waits.push(add(&mut twin, number, &format!("on event {event}"), goal("react")));
    }
    let starts = |twin: &Twin| waits.iter().map(|id| one(twin, *id).triggered.len()).collect::<Vec<_>>();
    let work_in_two = |twin: &mut Twin| {
        answer(twin, said("", &[("ask_agent", json!({"agent": "qa", "goal": "Try the page"}))]));
        answer(twin, said("It works.", &[]));
        answer(twin, said("All is well.", &[]));
    };
    twin.pass(HOUR + 60_000);
    work_in_two(&mut twin);
    assert!(matches!(came(&twin, tidies), ScheduleOutcome::Ended { how: RunEnding::Done, .. }));
    assert_eq!(twin.session.agents().runs().count(), 2, "it delegated");
    assert_eq!(starts(&twin), [0, 0, 0, 0], "neither the schedule's run nor the delegated one");
    ask(&mut twin, "look after the page");
    work_in_two(&mut twin);
    assert_eq!(starts(&twin), [1, 1, 1, 1]);
}

#[test]
fn programs_publish_so_many_events_which_start_the_schedules_that_name_them() {
    let mut twin = house(&[("a.md", "# A\n")]);
    let named = add(&mut twin, 3, "on event custom.deploy-done: site", goal("check it"));
    let other = add(&mut twin, 4, "on event custom.other", goal("check it"));
    let volume = twin.session.volumes().next().expect("a volume").id;
    let publish = |twin: &mut Twin, volume: DocId, kind: &str| {
        let data = json!({"subject": "site"});
        twin.command(Command::PublishEvent { volume, kind: kind.to_owned(), data })
    };
    for _ in 0..100 {
        publish(&mut twin, volume, "custom.deploy-done").expect("published");
    }
    let why = publish(&mut twin, volume, "custom.deploy-done").expect_err("too many").0;
    assert!(why.contains("100 events were published within a minute"), "{why}");
    let published = |notice: &Notice| matches!(notice, Notice::Published { kind, .. } if kind == "CUSTOM.DEPLOY_DONE");
    assert_eq!(notices(&twin).iter().filter(|notice| published(notice)).count(), 100);
    assert_eq!((one(&twin, named).triggered.len(), one(&twin, other).triggered.len()), (1, 0));
    twin.pass(61_000);
    publish(&mut twin, volume, "custom.other").expect("published");
    assert_eq!(one(&twin, other).triggered.len(), 1);
    for (volume, kind) in [(DocId([9; 16]), "custom.other"), (volume, "USER_INPUT")] {
        assert!(publish(&mut twin, volume, kind).is_err(), "{kind}");
    }
}
