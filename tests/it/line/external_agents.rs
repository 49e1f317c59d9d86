//! Programs that work as agents over the Agent Client Protocol: asked like other agents, under the same policy, with
//! the same steps, approvals and undo. The program is `tests/data/acp_agent.py`.

use super::agents::without_events;
use crate::program::{House, until};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A house with the scripted agent under the name `mine`.
pub(super) fn house() -> House {
    let house = House::with(&[("a.md", "# A\n")]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/data/acp_agent.py");
    let pids = house.path("pids");
    let config = format!(
        "acp_agents:\n  mine: {{command: python3, args: [{script:?}], env: {{PID_FILE: {:?}}}}}\n  gone: {{command: \
         no-such-agent}}\n",
        pids.display().to_string()
    );
    house.write("W/config.yaml", config.as_bytes());
    house
}

/// Returns the arguments of the calls of a tool.
pub(super) fn calls(steps: &[Value], tool: &str) -> Vec<Value> {
    let of = |step: &&Value| step["type"] == "tool_call" && step["toolName"] == tool;
    steps.iter().filter(of).map(|step| step["params"].clone()).collect()
}

#[test]
fn a_programs_work_is_a_run_like_others() {
    let house = house();
    let allow = ["--approve", "shell: head *", "--approve", "agent_permission"];
    let words: Vec<&str> = ["ask", "work for me", "--agent", "mine", "--json"].into_iter().chain(allow).collect();
    let steps = without_events(house.run(&words).good().lines());
    let answer = steps.last().expect("an answer");
    assert_eq!(answer["content"], "Code 0, output # A, chosen yes.", "{steps:?}");
    assert_eq!(calls(&steps, "read_file"), [json!({"path": "a.md"})]);
    assert_eq!(calls(&steps, "shell")[0]["command"], "head -1 a.md");
    assert_eq!(calls(&steps, "agent_permission")[0]["input"], json!({"command": "make"}));
    assert_eq!(calls(&steps, "agent_report")[0]["action"], "Edit c.txt");
    let all = json!(steps).to_string();
    assert!(all.contains("I look first.") && all.contains("I read # A.") && all.contains("-old"), "{all}");
    let todos = steps.iter().find(|step| step["type"] == "todo").expect("todos");
    assert_eq!(
        (&todos["todos"][0]["content"], &todos["todos"][0]["status"]),
        (&json!("write b"), &json!("in_progress"))
    );
    assert_eq!(house.read("notes/a.md"), b"# A\n\nFrom the agent.\n");
    assert_eq!(house.read("notes/sub/b.md"), b"# B\n");
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["agent"], "mine");
    // All of it can be undone.
    house.run(&["runs", "last", "--undo"]).good();
    assert_eq!(house.read("notes/a.md"), b"# A\n");
    assert!(!house.path("notes/sub/b.md").exists());
    // The next message says what came before; nothing is replayed without the program.
    let steps = without_events(house.run(&words).good().lines());
    assert_eq!(calls(&steps, "read_file"), [json!({"path": "a.md"})], "{steps:?}");
}

#[test]
fn what_a_program_changes_by_itself_can_be_undone() {
    let house = house();
    house.write("notes/old.csv", b"old\n");
    house.write("notes/untouched.md", b"# U\n");
    let said = house.run(&["ask", "alone", "--agent", "mine"]).good().text();
    assert!(said.contains("Done alone."), "{said}");
    assert_eq!(house.read("notes/a.md"), b"# A\n\nOne.\n\nTwo.\n");
    let listed = house.run(&["runs", "last"]).good().text();
    for (path, what) in [("a.md", "changed"), ("b.md", "created"), ("made.csv", "created"), ("old.csv", "deleted")] {
        let ending = format!(": {what} {path}");
        let lines = listed.lines().filter(|line| line.ends_with(&ending)).count();
        assert_eq!(lines, 1, "{path} {what}: {listed}");
    }
    assert!(!listed.contains("untouched.md"), "{listed}");
    house.run(&["runs", "last", "--undo"]).good();
    assert_eq!(house.read("notes/a.md"), b"# A\n");
    assert_eq!(house.read("notes/old.csv"), b"old\n");
    assert!(!house.path("notes/made.csv").exists() && !house.path("notes/b.md").exists());
    assert_eq!(house.read("notes/untouched.md"), b"# U\n");
}

#[test]
fn what_a_program_does_though_it_was_refused_is_listed_and_undone() {
    let house = house();
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    house.write("W/config.yaml", format!("{config}approval: {{deny: ['write_file: d.md']}}\n").as_bytes());
    let said = house.run(&["ask", "stubborn", "--agent", "mine"]).good().text();
    assert!(said.contains("Refused: ") && !said.contains("nothing was refused"), "{said}");
    let listed = house.run(&["runs", "last"]).good().text();
    assert!(listed.contains(": created d.md"), "{listed}");
    house.run(&["runs", "last", "--undo"]).good();
    assert!(!house.path("notes/d.md").exists());
}

#[test]
fn what_a_program_writes_before_we_do_is_its_change() {
    let house = house();
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    house.write("W/config.yaml", format!("{config}approval: {{always_approve: [write_file]}}\n").as_bytes());
    let mut command = house.command(&["ask", "overtake", "--agent", "mine"]);
    let mut asked = command.stdin(Stdio::piped()).spawn().expect("started");
    let approvals = || house.run(&["approvals", "--json"]).good().lines();
    until("the write waits", || !approvals().is_empty());
    // Before it's allowed, the program does it, and the note has it.
    fs::write(house.path("pids.go"), "").expect("written");
    until("the program has written", || house.run(&["cat", "a.md"]).good().text().contains("Overtaken."));
    let name = approvals()[0]["name"].as_str().expect("a name").to_owned();
    house.run(&["approvals", &name, "--allow"]);
    assert_eq!(asked.wait().expect("ended").code(), Some(0));
    let listed = house.run(&["runs", "last"]).good().text();
    assert_eq!(listed.lines().filter(|line| line.ends_with(": changed a.md")).count(), 1, "{listed}");
    house.run(&["runs", "last", "--undo"]).good();
    assert_eq!(house.read("notes/a.md"), b"# A\n");
}

#[test]
fn settings_of_a_volume_start_no_programs_before_it_is_trusted() {
    let house = house();
    house.write("notes/.claude/settings.json", b"{\"hooks\": {}}\n");
    let words = ["ask", "alone", "--agent", "mine"];
    let refused = house.run(&words);
    assert!(refused.code != 0 && !house.path("notes/made.csv").exists(), "{refused:?}");
    let said = format!("{}{}", refused.text(), refused.err);
    assert!(said.contains("would obey .claude in this volume") && said.contains("volumes trust"), "{said}");
    house.run(&["volumes", "trust", "notes"]).good();
    house.write("notes/old.csv", b"old\n");
    assert!(house.run(&words).good().text().contains("Done alone."));
}

#[test]
fn all_that_a_program_asks_permission_for_is_seen() {
    let house = house();
    let asked = house.fed(&["ask", "wordy", "--agent", "mine"], b"n\n");
    for words in ["Tidy up", "and empty the disk", "rm -rf all"] {
        assert!(asked.err.contains(words), "{words}: {}", asked.err);
    }
    assert!(asked.text().contains("Chosen no."), "{}", asked.text());
}

/// Lets the program ask for permission to write these files by itself, allowed by a rule where one may. Returns what it
/// was answered, and all that was printed.
fn edits(house: &House, files: &str, input: &[u8]) -> (Value, String) {
    let text = format!("edits {files}");
    let words = ["ask", &text, "--agent", "mine", "--approve", "agent_permission", "--json"];
    let done = house.fed(&words, input).code(0);
    let steps = without_events(done.lines());
    let answer = steps.last().expect("an answer")["content"].as_str().expect("a text").to_owned();
    let answer = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    (answer, format!("{}{}", done.text(), done.err))
}

#[test]
fn what_a_program_writes_by_itself_is_judged_like_our_own_writing() {
    let house = house();
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    house.write("W/config.yaml", format!("{config}approval: {{deny: ['write_file: b.md']}}\n").as_bytes());
    house.write("notes/b.md", b"# B\n");
    // Allowed by the rule; denied by another; asked about and denied; asked about and allowed.
    let (answer, printed) = edits(&house, "a.md,b.md,../outside.md,AGENTS.md", b"n\ny\n");
    assert_eq!(answer, json!({"a.md": "yes", "b.md": "no", "../outside.md": "no", "AGENTS.md": "yes"}), "{printed}");
    assert_eq!(house.read("notes/a.md"), b"# Own\n");
    assert_eq!(house.read("notes/b.md"), b"# B\n");
    assert_eq!(house.read("notes/AGENTS.md"), b"# Own\n");
    assert!(!house.path("outside.md").exists(), "{printed}");
    assert!(printed.contains("write_file: b.md") && printed.contains("denies it"), "{printed}");
    assert!(printed.contains("outside.md is outside of what tools may reach"), "{printed}");
    assert!(printed.contains("AGENTS.md is not an ordinary file"), "{printed}");
    assert_eq!(printed.matches("approval_pending").count(), 2, "{printed}");
}

#[cfg(unix)]
#[test]
fn links_count_in_what_a_program_writes_by_itself() {
    let house = house();
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    house.write("W/config.yaml", format!("{config}approval: {{deny: ['write_file: b.md']}}\n").as_bytes());
    house.write("notes/b.md", b"# B\n");
    house.write("secret", b"hidden");
    for (to, at) in [("secret", "notes/out.md"), ("new", "notes/hanging.md"), ("notes/b.md", "notes/same.md")] {
        std::os::unix::fs::symlink(house.path(to), house.path(at)).expect("linked");
    }
    let (answer, printed) = edits(&house, "out.md,hanging.md,same.md", b"n\nn\n");
    assert_eq!(answer, json!({"out.md": "no", "hanging.md": "no", "same.md": "no"}), "{printed}");
    assert!(house.read("secret") == b"hidden" && !house.path("new").exists(), "{printed}");
    assert_eq!(house.read("notes/b.md"), b"# B\n");
    assert_eq!(printed.matches("approval_pending").count(), 2, "{printed}");
}

#[test]
fn what_a_program_asks_for_is_asked_about_and_denied() {
    let house = house();
    let done = house.fed(&["ask", "work for me", "--agent", "mine"], b"n\nn\n");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.text().contains("Code 126") && done.text().contains("chosen no."), "{}", done.text());
    assert!(done.err.contains("Let the agent: Run make") && done.err.contains("head -1 a.md"), "{}", done.err);
    let decided = house.run(&["approvals", "--all", "--json"]).good().lines();
    assert_eq!(decided.iter().filter(|one| one["decision"]["allowed"] == false).count(), 2, "{decided:?}");
}

#[test]
fn a_hostile_program_is_bounded() {
    let house = house();
    house.write("secret", b"hidden");
    #[cfg(unix)]
    std::os::unix::fs::symlink(house.path("secret"), house.path("notes/link.md")).expect("linked");
    let said = house.run(&["ask", "outside of it", "--agent", "mine"]).good().text();
    let refusals: Vec<&str> = said.lines().last().expect("an answer").split(" | ").collect();
    assert_eq!(refusals.len(), 8, "{said}");
    assert!(refusals.iter().all(|why| *why != "nothing was refused"), "{refusals:?}");
    assert!(refusals[0].contains("outside of the project") && refusals[1].contains("outside of the project"));
    assert!(!said.contains("hidden") && !house.path("notes/.git").exists(), "{said}");

    let said = house.run(&["ask", "garbage", "--agent", "mine"]).good().text();
    assert!(said.contains("Still here."), "{said}");
    let flooded = house.run(&["ask", "flood", "--agent", "mine"]);
    assert!(flooded.code == 1 && flooded.err.contains("more than a turn can hold"), "{}", flooded.err);
    let crashed = house.run(&["ask", "crash", "--agent", "mine"]);
    assert_eq!(crashed.code, 1, "{}", crashed.err);
    assert!(crashed.err.contains("the agent's own reason"), "{}", crashed.err);
    let gone = house.run(&["ask", "go", "--agent", "gone"]);
    assert!(gone.code == 1 && gone.err.contains("gone: the program does not start"), "{}", gone.err);
    house.run(&["ask", "go", "--agent", "nobody"]).refused(2, "no agent called");
}

#[cfg(target_os = "linux")]
#[test]
fn stopping_a_run_ends_its_program_and_what_it_started() {
    let house = house();
    let mut asked = house.command(&["ask", "hang", "--agent", "mine"]).spawn().expect("started");
    let pids = house.path("pids");
    until("the program works", || fs::read_to_string(&pids).is_ok_and(|text| text.contains(' ')));
    let text = fs::read_to_string(&pids).expect("pids");
    let is_alive = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(text.split(' ').all(is_alive), "{text}");
    let begun = Instant::now();
    house.run(&["runs", "last", "--stop"]).good();
    until("all of it has ended", || !text.split(' ').any(is_alive));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(asked.wait().expect("ended").code(), Some(1));
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["standing"], "stopped");
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_goes_on_in_its_own_session_also_after_it_was_killed() {
    use std::os::unix::process::CommandExt;
    let house = house();
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    let kept = house.path("kept.json");
    let config = config.replace("env: {", &format!("env: {{SESSION_FILE: {:?}, ", kept.display().to_string()));
    house.write("W/config.yaml", config.as_bytes());
    let ask = |session: &str, text: &str| {
        let words = ["ask", text, "--agent", "mine", "--session", session, "--json"];
        let steps = without_events(house.run(&words).good().lines());
        steps.last().expect("an answer")["content"].as_str().expect("a text").to_owned()
    };
    let (one, other) = ("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcde0");
    assert_eq!(ask(one, "recall first"), r#"Prompts: ["recall first"], taken up: False."#);
    // It knows what it was asked, so only what is new is said, and what it tells again is no answer.
    assert_eq!(ask(one, "recall next"), r#"Prompts: ["recall first", "recall next"], taken up: True."#);
    assert_eq!(house.run(&["steps", "last", "--json"]).good().text().matches("An old answer.").count(), 0);

    // Killed in the middle of its work, it's given the same again in the same session.
    let words = ["ask", "hang here", "--agent", "mine", "--session", other];
    let mut asked = house.command(&words).process_group(0).spawn().expect("started");
    let pids = house.path("pids");
    until("the program works", || fs::read_to_string(&pids).is_ok_and(|text| text.contains(' ')));
    let group = format!("-{}", asked.id());
    std::process::Command::new("kill").args(["-9", "--", &group]).status().expect("kill is there");
    asked.wait().expect("ended");
    let again = house.run(&["runs", "last", "--resume"]).good().text();
    assert!(again.contains("I go on."), "{again}");
    assert_eq!(house.read("kept.json"), br#"["hang here", "hang here"]"#);

    // A session that the program no longer has is begun again, with what was said before.
    fs::remove_file(&kept).expect("removed");
    let told = ask(other, "recall at last");
    assert!(told.contains("hang here") && told.contains("I go on.") && told.ends_with("taken up: False."), "{told}");
}

#[test]
fn a_program_that_looks_first_makes_a_file() {
    let house = house();
    let words = ["ask", "looks first", "--agent", "mine", "--json", "--approve", "shell: head *"];
    let steps = without_events(house.run(&words).good().lines());
    assert_eq!(steps.last().expect("an answer")["content"], "Code 1, tail directory.", "{steps:?}");
    assert_eq!(house.read("notes/new.md"), b"# New\n");
}

#[test]
fn only_the_user_gives_work_to_a_program() {
    let script = |turn: usize, body: &Value| -> super::agents::Said {
        match turn {
            0 => (String::new(), vec![("ask_agent", json!({"agent": "mine", "goal": "work"}))]),
            _ => (
                format!("Refused: {}.", body["messages"].to_string().contains("only you can give it work")),
                Vec::new(),
            ),
        }
    };
    let house = house();
    let model = super::agents::model(script);
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    let models = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {{wire: openai, base_url: \
         \"{model}/v1\", model: m, context: 32000}}\n"
    );
    house.write("W/config.yaml", format!("{config}{models}").as_bytes());
    let said = house.run(&["ask", "let mine do it"]).good().text();
    assert!(said.contains("Refused: true."), "{said}");
    let listed = house.run(&["tasks", "agents", "--json"]).good().lines();
    assert!(listed.iter().any(|agent| agent["name"] == "mine" && agent["status"] == "idle"), "{listed:?}");
}
