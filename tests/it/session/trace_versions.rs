//! Traces that improve: ratings, edits of what a run wrote, and versions of which none is lost or used by itself.

use super::agents::{agent, answer, done, fine, said};
use super::memory::{CSV, ask, by_model, one, trace};
use crate::twin::Twin;
use agent::memory::ReplayMode;
use agent::memory::trace::RunTrace;
use agent::memory::trace_feedback::RunRating;
use engine::Command;
use serde_json::json;
use store::DocId;

const AT: &str = "2001-12-01T10:00:00Z";

fn shop() -> Twin {
    let mut twin = agent(
        &[
            ("a.md", "# A\n"),
            ("data/2026-10.csv", CSV),
            ("data/2026-11.csv", CSV),
            ("data/2026-12.csv", CSV),
            ("data/2027-01.csv", CSV),
        ],
        "",
    );
    by_model(&mut twin, 7, "October 2026", "2026-10");
    twin
}

/// Replays the trace for a month.
fn replay(twin: &mut Twin, number: u8, name: &str, month: &str) -> DocId {
    let goal = format!("Write the report for {name} into reports/{month}.md");
    let run = ask(twin, number, &goal, ReplayMode::Follower);
    done(twin, fine(CSV));
    twin.settle();
    assert!(twin.models.is_empty(), "no model is called");
    run
}

/// The text that a replay of the first version writes.
fn written(name: &str, month: &str) -> String {
    format!("# {name}\n\nSee data/{month}.csv\n")
}

/// Changes the trace as the command line and the window do.
fn change(twin: &mut Twin, change: impl FnOnce(&mut RunTrace)) {
    let (path, mut changed) = trace(twin);
    change(&mut changed);
    let old = twin.file(&path).expect("it is written");
    let new = changed.written_into(&old).expect("it can be written");
    let note = twin.id(&path);
    twin.command(Command::Amend { note, at: 0, old, new }).expect("changed");
    twin.settle();
    assert_eq!(trace(twin).1, changed);
}

#[test]
fn an_edited_result_is_proposed_and_written_only_after_the_user_accepts_it() {
    let mut twin = shop();
    replay(&mut twin, 8, "November 2026", "2026-11");
    let before = trace(&twin).1;
    assert_eq!((before.known.usage_count, before.known.verified_count), (1, 1));
    twin.outside("reports/2026-11.md", Some("# Report: November 2026\n\nSee data/2026-11.csv\n"));
    twin.settle();
    replay(&mut twin, 9, "December 2026", "2026-12");
    assert_eq!(twin.file("reports/2026-12.md"), Some(written("December 2026", "2026-12")), "it isn't used by itself");
    let known = trace(&twin).1;
    assert_eq!((known.known.usage_count, known.known.verified_count), (2, 1), "the edited replay wasn't good");
    assert_eq!((known.version.number, known.proposed_version(), known.steps.clone()), (1, Some(2), before.steps));
    assert!(known.feedback[0].is_edited && known.feedback[0].run == DocId([8; 16]).to_string(), "{known:?}");
    change(&mut twin, |trace| _ = trace.use_version(2, AT).expect("used"));
    replay(&mut twin, 10, "January 2027", "2027-01");
    let corrected = "# Report: January 2027\n\nSee data/2027-01.csv\n";
    assert_eq!(twin.file("reports/2027-01.md").as_deref(), Some(corrected));
    let announced = one(&twin, DocId([10; 16])).steps.iter().any(|step| format!("{step:?}").contains(", version 2: "));
    assert!(announced, "the run says which version it replays");
    // A later edit that no value explains is only noted.
    twin.outside("reports/2027-01.md", Some("# Report: the new year\n\nSee data/2027-01.csv\n"));
    twin.settle();
    ask(&mut twin, 11, "Write the report for October 2026 into reports/2026-10.md", ReplayMode::Auto);
    twin.settle();
    let known = trace(&twin).1;
    assert_eq!((known.known.usage_count, known.known.verified_count, known.proposed_version()), (1, 0, None));
    assert!(known.feedback[0].remark.contains("was replaced"), "{:?}", known.feedback);
}

#[test]
fn only_the_users_edits_before_the_next_run_count() {
    let mut twin = shop();
    let (path, _) = trace(&twin);
    replay(&mut twin, 8, "November 2026", "2026-11");
    // Another run writes the file, which is no edit of the user.
    ask(&mut twin, 9, "Shorten reports/2026-11.md", ReplayMode::Auto);
    answer(&mut twin, said("", &[("write_file", json!({"path": "reports/2026-11.md", "content": "# Short\n"}))]));
    answer(&mut twin, said("It is shorter.", &[]));
    twin.settle();
    assert_eq!(twin.file("reports/2026-11.md").as_deref(), Some("# Short\n"));
    replay(&mut twin, 10, "December 2026", "2026-12");
    let known = RunTrace::parse(&twin.file(&path).expect("written")).expect("a trace");
    assert_eq!((known.known.usage_count, known.known.verified_count, known.feedback.len()), (2, 2, 0));
    // What was written before the last run is no longer looked at, and an undone run isn't edited.
    twin.outside("reports/2026-11.md", Some("# Mine\n"));
    twin.command(Command::Revert { run: DocId([10; 16]), only: None, again: false }).expect("undone");
    twin.settle();
    ask(&mut twin, 11, "Write the report for October 2026 into reports/2026-10.md", ReplayMode::Auto);
    twin.settle();
    let known = RunTrace::parse(&twin.file(&path).expect("written")).expect("a trace");
    assert_eq!((known.known.usage_count, known.known.verified_count), (2, 1), "{:?}", known.feedback);
    assert!(known.feedback[0].is_undone && !known.feedback[0].is_edited && known.versions.is_empty());
}

#[test]
fn a_newer_run_makes_a_version_and_overwrites_none() {
    let mut twin = shop();
    let first = trace(&twin).1;
    let other = |twin: &mut Twin, number: u8, name: &str, month: &str, text: &str| {
        ask(twin, number, &format!("Write the report for {name} into reports/{month}.md"), ReplayMode::Learner);
        answer(twin, said("I look.", &[("read_file", json!({"path": format!("data/{month}.csv")}))]));
        done(twin, fine(CSV));
        let write = json!({"path": format!("reports/{month}.md"), "content": format!("# {name}\n\n{text}\n")});
        answer(twin, said("", &[("write_file", write)]));
        answer(twin, said(&format!("The report for {name} is written."), &[]));
        twin.settle();
    };
    // Nothing proves the first version yet, so the newer one is used.
    other(&mut twin, 8, "November 2026", "2026-11", "Newer");
    let (_, known) = trace(&twin);
    assert_eq!((known.version.number, known.version.describe()), (2, "relearned from run 08080808".to_owned()));
    assert_eq!((known.versions.len(), &known.versions[0].steps), (1, &first.steps));
    replay(&mut twin, 9, "December 2026", "2026-12");
    assert_eq!(twin.file("reports/2026-12.md").as_deref(), Some("# December 2026\n\nNewer\n"));
    // Once it's proved, another way is only proposed, and counts against it.
    other(&mut twin, 10, "January 2027", "2027-01", "Newest");
    let (_, known) = trace(&twin);
    assert_eq!((known.version.number, known.proposed_version()), (2, Some(3)));
    assert_eq!((known.known.usage_count, known.known.verified_count), (2, 1));
    assert_eq!(known.version_numbered(3).expect("there").origin.run, DocId([10; 16]).to_string());
    change(&mut twin, |trace| _ = trace.use_version(1, AT).expect("used"));
    let (_, known) = trace(&twin);
    assert_eq!((known.version.number, known.steps == first.steps), (4, true));
}

#[test]
fn a_rating_counts_is_seen_and_is_taken_back() {
    let mut twin = shop();
    let run = replay(&mut twin, 8, "November 2026", "2026-11");
    let rate = |twin: &mut Twin, run: DocId, rating: Option<RunRating>| {
        twin.command(Command::RateRun { run, rating }).expect("rated");
        twin.settle();
        let known = trace(twin).1;
        let trust = twin.session.trace_trust(&known);
        (trust.good, trust.all, known.rating_of(&run.to_string()), one(twin, run).rating)
    };
    let (good, bad) = (Some(RunRating::Good), Some(RunRating::Bad));
    assert_eq!(rate(&mut twin, run, good), (2, 2, good, good));
    assert_eq!(rate(&mut twin, run, bad), (0, 1, bad, bad));
    assert_eq!(rate(&mut twin, run, None), (1, 1, None, None));
    // The run that taught the trace can be rated, too.
    assert_eq!(rate(&mut twin, DocId([7; 16]), bad), (1, 2, bad, bad));
    assert_eq!(rate(&mut twin, DocId([7; 16]), None), (1, 1, None, None));
    // Undone and rated bad, it's one bad replay.
    twin.command(Command::Revert { run, only: None, again: false }).expect("undone");
    assert_eq!(rate(&mut twin, run, bad), (0, 1, bad, bad));
    // A run without a trace says so.
    let other = ask(&mut twin, 9, "Say hello", ReplayMode::Auto);
    answer(&mut twin, said("Hello.", &[]));
    twin.settle();
    let refused = twin.command(Command::RateRun { run: other, rating: good });
    assert!(format!("{refused:?}").contains("no trace belongs to this run"), "{refused:?}");
}
