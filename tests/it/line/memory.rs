//! Memory through the program: a model does a task once, then it's repeated without a model.

use super::agents::{Said, house, model};
use crate::program::House;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A model that writes a report for the requested month, and the number of its calls.
pub(super) fn reporter() -> (String, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let address = model(move |turn, body: &Value| -> Said {
        calls.fetch_add(1, Ordering::SeqCst);
        // Passages that were retrieved from notes mention October, too.
        let november = body["messages"].to_string().contains("for 2026-11");
        let (name, month) = if november { ("November", "2026-11") } else { ("October", "2026-10") };
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": format!("data/{month}.csv")}))]),
            1 => {
                let content = format!("# {name} 2026\n\nSee data/{month}.csv\n");
                (
                    String::new(),
                    vec![("write_file", json!({"path": format!("reports/{month}.md"), "content": content}))],
                )
            }
            _ => (format!("The report for {name} 2026 is written."), Vec::new()),
        }
    });
    (address, count)
}

/// Configures memory to be kept as notes in the folder.
pub(super) fn keep_memory_in_folder(house: &House) {
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    house.write("W/config.yaml", format!("{config}memory:\n  place: folder\n").as_bytes());
}

#[test]
fn a_report_is_learned_replayed_exported_and_forgotten() {
    let (address, count) = reporter();
    let csv = "day,sold\n1,517\n";
    let files = [("a.md", "# A\n"), ("data/2026-10.csv", csv), ("data/2026-11.csv", csv)];
    let house = house(&address, &files);
    house.run(&["ask", "Write the report for October 2026 into reports/2026-10.md"]).good();
    let asked = count.load(Ordering::SeqCst);
    assert_eq!(asked, 3);
    let listed = house.run(&["traces", "--json"]).good().lines();
    assert_eq!((listed.len(), &listed[0]["steps"], &listed[0]["follows"]), (1, &json!(2), &json!(false)));
    let path = listed[0]["path"].as_str().expect("a path").to_owned();
    assert!(house.run(&["traces", "show", &path]).good().text().contains("data/{month1}.csv"));
    // Memory isn't among the notes, and isn't found there.
    assert!(!house.path("notes/memory").exists() && house.path("W/private_memory").exists());
    assert!(!house.run(&["search", "October"]).good().text().contains("memory/"));
    assert!(house.run(&["search", "October in:memory"]).good().text().contains("memory/memory_log.md"));
    assert!(!house.run(&["ls"]).good().text().contains("memory"));

    // The same for another month: no model, and no question, because a model isn't asked about this either.
    let next = ["ask", "Please write a report for 2026-11 into reports/2026-11.md", "--mode", "follower"];
    let done = house.run(&next).code(0).text();
    assert!(done.contains("The report for November 2026 is written."), "{done}");
    assert_eq!(house.read("notes/reports/2026-11.md"), b"# November 2026\n\nSee data/2026-11.csv\n");
    assert_eq!(count.load(Ordering::SeqCst), asked, "no model was called");
    let runs = house.run(&["runs", "--json"]).good().lines();
    assert_eq!((&runs[0]["iteration"], &runs[0]["spent"]["inputTokens"]), (&json!(0), &json!(0)));
    let used = &house.run(&["traces", "--json"]).good().lines()[0];
    assert_eq!(
        (&used["usage_count"], &used["verified_count"], &used["saved_tokens"]),
        (&json!(1), &json!(1), &json!(54))
    );
    assert!(house.run(&["traces"]).good().text().contains("Saved so far: 54 tokens"));
    // A user can turn replay off.
    house.run(&["ask", "Write a report for 2026-11 into reports/2026-11.md", "--mode", "learner"]).good();
    assert!(count.load(Ordering::SeqCst) > asked);

    // A library is exported to another workspace, where its traces must be verified again.
    let library = house.run(&["traces", "export"]).good().out;
    let name = path.rsplit('/').next().expect("a name").to_owned();
    house.run(&["traces", "forget", &name]).good();
    let left = house.run(&["traces", "--json"]).good().text();
    assert_eq!(left, "");
    house.fed(&["traces", "import", "-"], &library).good();
    let known = &house.run(&["traces", "--json"]).good().lines()[0];
    assert_eq!((&known["usage_count"], &known["saved_tokens"], &known["path"]), (&json!(0), &json!(0), &json!(path)));
    house.fed(&["traces", "import", "-"], b"nothing").refused(2, "no trace");
    house.run(&["traces", "show", "nobody"]).refused(2, "no trace “nobody”");
    house.run(&["traces", "dance"]).refused(2, "not “dance”");
    house.run(&["ask", "x", "--mode", "dreamer"]).refused(2, "--mode is auto, learner or follower");
}

#[test]
fn experiences_are_listed_asked_added_consolidated_and_forgotten() {
    let (address, _) = reporter();
    let house = house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", "day,sold\n1,517\n")]);
    keep_memory_in_folder(&house);
    house.run(&["ask", "Write the report for October 2026 into reports/2026-10.md"]).good();
    house.run(&["memory", "add", "scipy.fft is faster than a loop", "--goal", "Find the peaks of a signal"]).good();
    house.run(&["memory", "add", "scipy.fft is faster than a loop", "--goal", "find the peaks of the signal"]).good();
    house.run(&["memory", "add", "ok", "--goal", "x"]).code(1);
    let listed = house.run(&["memory", "--json"]).good().lines();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!((&listed[0]["final_outcome"], &listed[0]["files_created"]), (&json!("success"), &json!(1)));
    assert_eq!((&listed[1]["count"], &listed[1]["author"]), (&json!(2), &json!("user")));
    // The fields of the reference, in the note and in JSON.
    let log = String::from_utf8_lossy(&house.read("notes/memory/memory_log.md")).into_owned();
    let fields = "experience_id project_name primary_goal final_outcome components_used files_created output_summary \
                  execution_time_ms learnings_or_issues timestamp";
    for field in fields.split(' ') {
        assert!(log.contains(&format!("\n{field}:")) && !listed[0][field].is_null(), "{field}: {log} {listed:?}");
    }
    assert_eq!(house.run(&["memory", "--tier", "long_term", "--json"]).good().lines().len(), 1);
    assert_eq!(house.run(&["memory", "--outcome", "failure", "--json"]).good().lines().len(), 0);
    // Each tier: the session's context for the model, its log, traces, and all outcomes.
    let context = house.run(&["memory", "--tier", "context", "--json"]).good().lines();
    assert_eq!(context[0]["content"], "Write the report for October 2026 into reports/2026-10.md", "{context:?}");
    assert!(context.iter().all(|message| message["tokens"].as_u64() > Some(0)), "{context:?}");
    assert_eq!(context.last().map(|last| &last["content"]), Some(&json!("The report for October 2026 is written.")));
    assert!(house.run(&["memory", "--tier", "l1"]).good().text().contains("calls read_file"));
    for (tier, field) in
        [("session", "results"), ("l2", "results"), ("traces", "goal_signature"), ("semantic", "experience_id")]
    {
        let listed = house.run(&["memory", "--tier", tier, "--json"]).good().lines();
        assert!(!listed.is_empty() && !listed[0][field].is_null(), "{tier}: {listed:?}");
    }
    house.run(&["memory", "--tier", "l5"]).refused(2, "(l1 to l4)");
    let bearing =
        house.run(&["memory", "bearing", "Write the report for 2026-11 into reports/2026-11.md", "--json"]).good();
    let kinds: Vec<Value> = bearing.lines().iter().map(|one| one["kind"].clone()).collect();
    assert_eq!(kinds, [json!("experience"), json!("trace")], "{}", bearing.text());
    // The same for a task of a plan, by kind of memory.
    for goal in ["Write the report for 2026-11 into reports/2026-11.md", "Find the peaks of the signal"] {
        house.run(&["tasks", "add", goal, "--plan", "tasks/report.md"]).good();
    }
    let context = house.run(&["memory", "context", "tasks/report.md#t1", "--json"]).good().json();
    assert_eq!(context["strategic"][0]["kind"], "trace", "{context}");
    assert_eq!(context["episodic"].as_array().map(Vec::len), Some(1), "{context}");
    let context = house.run(&["memory", "context", "tasks/report.md#t2", "--json"]).good().json();
    assert_eq!(context["long_term"][0]["learned"], "scipy.fft is faster than a loop", "{context}");
    assert_eq!((&context["short_term"], &context["strategic"]), (&json!([]), &json!([])), "{context}");
    house.run(&["memory", "context", "tasks/report.md"]).refused(2, "which task of the plan");
    house.run(&["memory", "context", "tasks/report.md#t9"]).refused(2, "there is no task t9");
    let said = house.run(&["memory", "analyze", "How are peaks of signals found?"]).good();
    let said: Value = serde_json::from_slice(&said.out).expect("JSON");
    assert_eq!(said["relevant_experiences"].as_array().map(Vec::len), Some(1), "{said}");
    assert_eq!(said["recommendations"][0], "scipy.fft is faster than a loop");
    let done = house.run(&["memory", "log", "--json"]).good().lines();
    assert_eq!((done.len(), &done[0]["status"], &done[0]["agent"]), (1, &json!("completed"), &json!("assistant")));
    assert_eq!(done[0]["path"], "memory/short_term/execution_log.md", "{done:?}");
    assert!(
        house.run(&["memory", "log"]).good().text().contains("  completed  Write the report for October 2026 into")
    );
    assert_eq!(house.run(&["memory", "log", "--outcome", "failure"]).good().text(), "");
    house.run(&["memory", "consolidate"]).good();
    let patterns = String::from_utf8_lossy(&house.read("notes/memory/long_term/patterns.md")).into_owned();
    assert!(patterns.contains("## find peaks of signal") && patterns.contains("2 times"), "{patterns}");
    let best = String::from_utf8_lossy(&house.read("notes/memory/long_term/best_practices.md")).into_owned();
    assert!(best.contains("- scipy.fft is faster than a loop (2 times; exp_"), "{best}");
    let id = listed[1]["experience_id"].as_str().expect("an id");
    house.run(&["memory", "forget", id]).good();
    assert_eq!(house.run(&["memory", "--json"]).good().lines().len(), 1);
    house.run(&["memory", "show", "exp_none"]).refused(2, "no experience “exp_none”");
    house.run(&["memory", "dance"]).refused(2, "not “dance”");
    let spent = house.run(&["budget", "--log", "--json"]).good().lines();
    assert_eq!(
        (&spent[0]["of"], &spent[0]["tokens"], &spent[0]["left"]),
        (&json!("this month"), &json!(54), &Value::Null)
    );
    assert_eq!(spent[2]["spent"]["inputTokens"], json!(33), "{spent:?}");
    house.run(&["bench", "replay"]).refused(2, "--corpus");
    house.run(&["bench", "memory"]).refused(2, "--corpus");
    house.write("odd.json", b"[{}]");
    let odd = house.run(&["bench", "memory", "--conversations", "odd.json"]).code(1).err;
    assert!(odd.contains("conversation-1 has no “conversation”: odd.json"), "{odd}");
}

#[test]
fn what_was_said_in_conversations_is_found_again() {
    let house = House::new();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/conversations.json");
    let file = file.to_str().expect("a path");
    let found = house.run(&["bench", "memory", "--conversations", file, "--json"]).code(0).json();
    let figure = |name: &str| {
        let mut all = found["figures"].as_array().into_iter().flatten();
        let one = all.find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}: {found}"));
        one["value"].as_f64().expect("a number")
    };
    let counts = [
        ("conversations", 2.0),
        ("turns of conversations, an experience each", 36.0),
        ("questions with evidence", 9.0),
        ("questions without, left out", 1.0),
    ];
    for (name, count) in counts {
        assert!((figure(name) - count).abs() < 1e-9, "{name}: {found}");
    }
    for way in ["words", "meaning", "both"] {
        let (five, ten) =
            (figure(&format!("evidence recall@5 by {way}")), figure(&format!("evidence recall@10 by {way}")));
        assert!(0.0 < five && five <= ten && ten <= 1.0, "{way}: {five} {ten}");
    }
    assert!(figure("evidence recall@10 by both") > 0.8, "{found}");
    assert!(figure("evidence recall@10 by both, category 4") > 0.8, "{found}");
}

#[test]
fn what_is_contradicted_is_superseded_and_what_expires_is_forgotten() {
    let house = house("http://127.0.0.1:9", &[("a.md", "# A\n")]);
    let add = |more: &[&str]| {
        let words = ["memory", "add", "scipy.fft finds the peaks", "--goal", "Find the peaks of a noisy signal"];
        let words: Vec<&str> = words.into_iter().chain(more.iter().copied()).collect();
        house.run(&words).good().text().trim().to_owned()
    };
    let (old, new) = (add(&[]), add(&["--outcome", "failure"]));
    let listed = house.run(&["memory", "--json"]).good().lines();
    assert_eq!((&listed[0]["superseded_by"], &listed[0]["counts"]), (&json!(new), &json!(false)), "{old}: {listed:?}");
    assert!(house.run(&["memory"]).good().text().contains(&format!("(see {new})")));
    // A failure counts for a limited time; other entries until their stated expiry.
    let today = listed[1]["timestamp"].as_str().expect("a time")[..10].to_owned();
    assert!(listed[1]["expires"].as_str().is_some_and(|day| day > today.as_str()), "{listed:?}");
    let passing = ["memory", "add", "the shop is closed on Mondays", "--goal", "Buy seeds", "--expires", "2020-01-01"];
    house.run(&passing).good();
    assert!(house.run(&["memory"]).good().text().contains("(over)"));
    let bears = house.run(&["memory", "bearing", "Buy seeds at the shop"]).good().text();
    assert!(!bears.contains("Buy seeds"), "{bears}");
    assert!(house.run(&["memory", "consolidate"]).good().text().contains("1 forgotten"));
    assert!(!house.run(&["memory"]).good().text().contains("Buy seeds"));
    house.run(&["memory", "add", "a b c", "--expires", "soon"]).refused(2, "wants a day");
}

#[test]
fn a_run_whose_only_call_was_denied_is_found_as_a_failure() {
    let address = model(|turn, _| -> Said {
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "make clean"}))]),
            _ => ("It was not done.".to_owned(), Vec::new()),
        }
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    house.fed(&["ask", "Clean the build folder"], b"n\n");
    // The run ended with an answer, and that isn't all that is said of it.
    assert!(house.run(&["runs", "last"]).good().text().contains("\ndone, but what it tried failed\n"));
    let result = house.run(&["runs", "last", "--result", "--json"]).good().json();
    assert_eq!((&result["success"], &result["metrics"]["failedToolCalls"]), (&json!(false), &json!(1)), "{result}");
    house.run(&["memory", "add", "Wipe the table after it", "--goal", "Make tea"]).good();
    for question in ["which runs failed?", "what failed most?", "what went wrong with the build folder?"] {
        let said = house.run(&["memory", "analyze", question]).good().json();
        assert_eq!(said["relevant_experiences"].as_array().map(Vec::len), Some(1), "{question}: {said}");
        assert!(said["analysis_summary"].as_str().is_some_and(|text| text.contains("1 earlier run failed")), "{said}");
        assert!(said["analysis_summary"].as_str().is_some_and(|text| text.contains("Clean the build")), "{said}");
        let advice = said["recommendations"].to_string();
        assert!(advice.contains("Avoid: ") && advice.contains("shell failed: The user denied it"), "{advice}");
        assert!(!said.to_string().contains("went well"), "{said}");
    }
    let good = house.run(&["memory", "analyze", "what went well?"]).good().json();
    assert!(good["recommendations"].to_string().contains("Wipe the table"), "{good}");
    assert!(!good.to_string().contains("denied"), "{good}");
}

#[test]
fn a_learning_curve_counts_runs_and_those_that_needed_no_model() {
    let (address, _) = reporter();
    let csv = "day,sold\n1,517\n";
    let house = house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", csv), ("data/2026-11.csv", csv)]);
    let none = house.run(&["memory", "curve"]).code(0);
    assert!(none.out.is_empty() && none.err.contains("no run has ended yet"), "{none:?}");
    house.run(&["ask", "Write the report for October 2026 into reports/2026-10.md"]).good();
    let next = ["ask", "Please write a report for 2026-11 into reports/2026-11.md", "--mode", "follower"];
    house.run(&next).code(0);
    let curve = house.run(&["memory", "curve", "--json"]).good().lines();
    // The test may run over the end of a week.
    let sum = |key: &str| curve.iter().filter_map(|point| point[key].as_u64()).sum::<u64>();
    let sums = ["runs", "done", "without_model", "model_calls", "unknown_cost"].map(sum);
    assert_eq!(sums, [2, 2, 1, 3, 0], "{curve:?}");
    let last = curve.last().expect("a week");
    assert!(last["done_share"] == 1.0 && last["cost"] == 0.0, "{last}");
    let text = house.run(&["memory", "curve", "--by", "month", "--project", "notes"]).good().text();
    assert!(text.contains("100 % done") && text.contains("% without a model, $0.0000"), "{text}");
    house.run(&["memory", "curve", "--by", "year"]).refused(2, "--by is week or month");
    house.run(&["memory", "curve", "--project", "nowhere"]).refused(2, "there is no project “nowhere”");
}

#[test]
fn memory_is_consolidated_after_a_session_only_if_the_configuration_says_so() {
    let (address, _) = reporter();
    let house = house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", "day,sold\n1,517\n")]);
    keep_memory_in_folder(&house);
    let ask = ["ask", "Write the report for October 2026 into reports/2026-10.md"];
    house.run(&ask).good();
    let best = house.path("notes/memory/long_term/best_practices.md");
    assert!(house.path("notes/memory/memory_log.md").exists() && !best.exists(), "nothing is consolidated unasked");
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    house.write("W/config.yaml", format!("{config}  consolidate: sometimes\n").as_bytes());
    house.run(&["providers"]).refused(2, "config.yaml:");
    house.write("W/config.yaml", format!("{config}  consolidate: after_sessions\n").as_bytes());
    house.run(&ask).good();
    assert!(best.exists() && house.path("notes/memory/long_term/patterns.md").exists());
}
