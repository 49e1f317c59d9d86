//! What reaches a model, through the program: files with secrets need approval and are masked on every path, unknown
//! names are refused, a replay continues in another process, and other programs' exports are imported unchanged.

use super::agents::{Said, house, model};
use crate::program::House;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Everything that a model was sent.
type Sent = Arc<Mutex<String>>;

/// A model that makes these calls, turn by turn, and then says that it's done; and what it was sent.
fn caller(turns: Vec<Vec<(&'static str, Value)>>) -> (String, Sent) {
    let sent = Sent::default();
    let heard = Arc::clone(&sent);
    let address = model(move |turn, body| -> Said {
        heard.lock().expect("heard").push_str(&body.to_string());
        turns.get(turn).map_or_else(|| ("Done.".to_owned(), Vec::new()), |calls| (String::new(), calls.clone()))
    });
    (address, sent)
}

/// Secrets in several formats. They're assembled, so that no scanner reports this file as a leak.
fn secrets() -> Vec<String> {
    vec![
        format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"),
        format!("AKIA{}", "IOSFODNN7EXAMPLE"),
        format!("sk-ant-api03-{}", "AbCdEfGhIjKlMnOpQrStUvWxYz-0123456789"),
        "tr0ub4dorAndThree".to_owned(),
        "MIIEpAIBAAKCAQEA7bq0Zs3mN1Xx0YwU2o4q5l6k7j8h9g0f1d2s3a4p5o6i7u8y".to_owned(),
    ]
}

fn env(secrets: &[String]) -> String {
    format!(
        "GITHUB_TOKEN={}\nAWS_ACCESS_KEY_ID={}\nANTHROPIC_API_KEY={}\nDATABASE_URL=postgres://app:{}@db.internal/app\n\
         -----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
        secrets[0], secrets[1], secrets[2], secrets[3], secrets[4]
    )
}

/// Collects all files below a folder, with their bytes.
fn kept(folder: &std::path::Path, found: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).expect("read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            kept(&path, found);
        } else if let Ok(bytes) = std::fs::read(&path) {
            found.push((path, bytes));
        }
    }
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn secrets_of_a_project_reach_no_model_and_no_log() {
    let secrets = secrets();
    let (token, key) = (&secrets[0], &secrets[1]);
    let note = format!("# Deploy\n\nThe token of the deploy is {token} for now.\n\n```python\nprint('{key}')\n```\n");
    let turns = vec![
        vec![("read_file", json!({"path": "settings.txt"})), ("read_file", json!({"path": "deploy.md"}))],
        vec![("read_file", json!({"path": "settings.txt", "from_line": 6, "lines": 1}))],
        vec![("shell", json!({"command": "cat settings.txt; echo; grep -rn TOKEN ."}))],
        vec![("run_cell", json!({"path": "deploy.md", "cell": 1}))],
        vec![("run_python", json!({"code": "print(open('settings.txt').read())"}))],
        vec![("search", json!({"query": "token of the deploy"}))],
        vec![("edit_file", json!({"path": "settings.txt", "old_content": "app:", "new_content": "web:"}))],
        vec![("read_file", json!({"path": ".env"}))],
    ];
    let (address, sent) = caller(turns);
    let house = house(&address, &[("deploy.md", &note), ("settings.txt", &env(&secrets)), (".env", &env(&secrets))]);
    let mut all = vec!["ask", "Look at @deploy.md and @.env: which token does the deploy have?", "--json"];
    all.extend(["shell", "run_python", "run_cell", "read_file"].iter().flat_map(|tool| ["--approve", tool]));
    // Reading files is approved. Still, a file full of secrets needs an answer, here yes, and so does `.env`, here no.
    let done = house.fed(&all, b"y\nn\nn\n");
    let steps = done.lines();
    let results: Vec<&Value> = steps.iter().filter(|step| step["type"] == "tool_result").collect();
    assert_eq!(results.len(), 9, "{}", done.text());
    let last = results.last().expect("nine");
    assert!(last["success"] == false && last["error"].as_str().is_some_and(|why| why.contains("denied")), "{last}");
    let failed: Vec<&&Value> = results[..8].iter().filter(|one| one["success"] != true).collect();
    assert!(failed.is_empty(), "the others were done: {failed:?}");
    let approvals = house.run(&["approvals", "--all", "--json"]).good().text();
    assert!(approvals.contains(".env commonly holds secrets"), "{approvals}");
    assert!(approvals.contains("settings.txt holds secrets"), "{approvals}");
    let sent = sent.lock().expect("heard").clone();
    assert!(sent.contains("[masked: GitHub token]") && sent.contains("[masked: private key]"), "{sent}");
    assert!(sent.contains("read_file asks the user for it"), "the mention was not read: {sent}");
    let out = done.text();
    // Everything that the program keeps: documents, logs, memory. The search index has the notes themselves.
    let mut files = Vec::new();
    kept(&house.path("W/private_memory"), &mut files);
    assert!(files.len() >= 2, "it's remembered");
    for secret in &secrets {
        assert!(!sent.contains(secret.as_str()), "{secret} was sent:\n{sent}");
        assert!(!out.contains(secret.as_str()), "{secret} stands in a step");
        for (path, bytes) in &files {
            assert!(!holds(bytes, secret), "{secret} is in {}", path.display());
        }
    }
    let exported = house.run(&["runs", "last", "--export"]).good().text();
    let session = house.run(&["sessions", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    let said = house.run(&["sessions", &session, "--export", "md"]).good().text();
    for secret in &secrets {
        assert!(!exported.contains(secret.as_str()) && !said.contains(secret.as_str()), "{secret}");
    }
    // The files are unchanged except for the edit.
    assert_eq!(house.read("notes/.env"), env(&secrets).as_bytes());
    assert_eq!(house.read("notes/settings.txt"), env(&secrets).replace("app:", "web:").as_bytes());
}

#[test]
fn diffs_of_git_are_masked() {
    let secrets = secrets();
    let (address, sent) = caller(vec![vec![("git_diff", json!({})), ("git_log", json!({}))]]);
    let house = house(&address, &[("a.txt", "x\n")]);
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        let done = command.args(words).current_dir(house.path("notes")).output().expect("git");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "add", "-A"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", &format!("token {}", secrets[0])]);
    house.write("notes/a.txt", env(&secrets).as_bytes());
    house.run(&["ask", "what changed?", "--json"]).good();
    let sent = sent.lock().expect("heard").clone();
    assert!(sent.contains("+GITHUB_TOKEN=[masked"), "{sent}");
    for secret in &secrets {
        assert!(!sent.contains(secret.as_str()), "{secret} was sent: {sent}");
    }
}

#[test]
fn a_key_of_this_installation_is_masked_whatever_it_looks_like() {
    let (address, sent) = caller(vec![vec![("read_file", json!({"path": "a.txt"}))]]);
    let key = "plainwordskey";
    let house = House::with(&[("a.txt", &format!("one {key} two\n"))]);
    let config = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {{wire: openai, base_url: \
         \"{address}/v1\", model: m, api_key: \"${{PLAIN_KEY}}\"}}\n"
    );
    house.write("W/config.yaml", config.as_bytes());
    let mut command = house.command(&["ask", "read a.txt", "--json"]);
    let out = command.env("PLAIN_KEY", key).stdin(std::process::Stdio::null()).output().expect("ran");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(!holds(&out.stdout, key), "{}", String::from_utf8_lossy(&out.stdout));
    let sent = sent.lock().expect("heard").clone();
    assert!(sent.contains("one [masked: a key of this installation] two") && !sent.contains(key), "{sent}");
}

#[test]
fn an_agent_that_cannot_be_asked_is_refused_before_anything_is_sent() {
    let (address, sent) = caller(Vec::new());
    let house = house(&address, &[("a.md", "# A\n")]);
    house.run(&["ask", "go", "--agent", "nonsense"]).refused(2, "There is no agent called “nonsense”");
    house.run(&["ask", "go", "--agent", "backand"]).refused(2, "Did you mean backend?");
    house.run(&["tasks", "add", "go", "--agent", "nonsense"]).refused(2, "There is no agent called");
    house.run(&["schedule", "add", "go", "--at", "0 3 * * *", "--agent", "nonsense"]).code(2);
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    house.write("W/config.yaml", format!("{config}agents:\n  specialists:\n    qa: {{enabled: false}}\n").as_bytes());
    house.run(&["ask", "go", "--agent", "qa"]).refused(2, "“qa” is switched off in the configuration");
    let listed = house.run(&["tasks", "agents"]).good().text();
    assert!(listed.contains("qa  (built in, switched off)"), "{listed}");
    assert_eq!(*sent.lock().expect("heard"), "", "no model was asked");
    assert_eq!(house.run(&["runs", "--json"]).good().lines().len(), 0, "and no run began");
    let refused = house.run(&["ask", "go", "--approve", "shel: ls", "--approve", "read_file"]).code(2).err;
    assert!(refused.contains("There is no tool called “shel”") && refused.contains("Did you mean shell?"), "{refused}");
    assert_eq!(house.run(&["runs", "--json"]).good().lines().len(), 0, "no run began");
    let said = house.run(&["ask", "@qaa and @qa: go, and mail me@example.org"]).good().text();
    assert!(said.contains("@qaa was taken as text") && said.contains("@qa was taken as text"), "{said}");
    assert!(!said.contains("example"), "{said}");
}

#[test]
fn a_part_of_the_name_of_a_note_or_agent_is_enough_if_it_is_the_only_one() {
    let (address, sent) = caller(Vec::new());
    // A search would find the beginning only.
    let rows: String = (0..80).map(|row| format!("Row {row} has beans, and peas beside them.\n\n")).collect();
    let poet = "---\nname: poet\ndescription: Rhymes.\n---\nYou rhyme.\n";
    let house = house(
        &address,
        &[
            ("Garden plan.md", &format!("{rows}zz-end-of-all\n")),
            ("old/Winter plan.md", "snow\n"),
            ("components/agents/poet.md", poet),
        ],
    );
    let said = house.run(&["ask", "what of @gard and @plan, @PLA or @nothing?"]).good().text();
    assert!(sent.lock().expect("heard").contains("zz-end-of-all"), "the note was read");
    let both =
        |word: &str| said.contains(&format!("“{word}” could be @planner or Garden plan.md or old/Winter plan.md."));
    assert!(both("plan") && both("PLA") && said.contains("There is no agent called “nothing”"), "{said}");
    assert!(!said.contains("@gard was") && said.contains("“gard” means Garden plan.md, which was attached"), "{said}");
    house.run(&["ask", "@Poe, sing of roses"]).good();
    assert!(sent.lock().expect("heard").contains("You rhyme."), "the poet was asked");
}

#[test]
fn a_replay_goes_on_in_the_process_that_approves_it() {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let address = model(move |turn, _| -> Said {
        calls.fetch_add(1, Ordering::SeqCst);
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "data/2026-10.csv"}))]),
            1 => {
                let content = "# October 2026\n\nSee data/2026-10.csv\n";
                (String::new(), vec![("write_file", json!({"path": "reports/2026-10.md", "content": content}))])
            }
            _ => ("The report for October 2026 is written.".to_owned(), Vec::new()),
        }
    });
    let csv = "day,sold\n1,517\n";
    let house = house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", csv), ("data/2026-11.csv", csv)]);
    house.run(&["ask", "Write the report for October 2026 into reports/2026-10.md"]).good();
    let asked = count.load(Ordering::SeqCst);
    super::follower::add_config(&house, "approval:\n  always_approve: [write_file]\n");
    let next = ["ask", "Write the report for November 2026 into reports/2026-11.md", "--mode", "follower", "--no-wait"];
    house.run(&next).code(1);
    let waiting = house.run(&["approvals", "--json"]).good().lines();
    let name = waiting[0]["name"].as_str().expect("it waits").to_owned();
    house.run(&["approvals", &name, "--allow"]).good();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !house.path("notes/reports/2026-11.md").exists() {
        assert!(std::time::Instant::now() < end, "it isn't written");
        house.run(&["runs", "last", "--resume"]);
    }
    assert_eq!(count.load(Ordering::SeqCst), asked, "no model was called");
    let steps = house.run(&["steps", "last", "--json"]).good().lines();
    let says = |step: &&Value| step["content"].as_str().is_some_and(|text| text.contains("No model is asked"));
    assert_eq!(steps.iter().filter(says).count(), 1, "{steps:?}");
    assert!(steps.iter().all(|step| step["spent"].is_null()), "{steps:?}");
    assert_eq!(house.read("notes/reports/2026-11.md"), b"# November 2026\n\nSee data/2026-11.csv\n");
}

#[test]
fn files_of_other_programs_come_back_as_they_were() {
    let (address, _) = caller(Vec::new());
    let house = house(&address, &[("a.md", "# A\n")]);
    let context = json!({"version": 1, "savedAt": 1_700_000_000_000_i64, "fileUri": "file:///theirs/a.md", "model": "x",
        "messages": [{"role": "user", "content": "hi", "id": "m-1"}, {"role": "assistant", "content": "ho",
            "toolCalls": [{"id": "c", "name": "ls", "arguments": {}}]},
            {"role": "tool", "content": "a", "toolCallId": "c"}]});
    let imported = house.fed(&["sessions", "--import", "-"], context.to_string().as_bytes()).good().text();
    let session = imported.trim().to_owned();
    assert_eq!(house.run(&["sessions", &session, "--export", "json"]).good().json(), context);
    let state = json!({"version": 1, "savedAt": 1_700_000_000_500_i64, "fileUri": "file:///theirs/a.md", "prompt": "do",
        "startTime": 1_700_000_000_000_i64, "iteration": 3, "agentState": "executing", "theme": {"dark": true},
        "todos": [{"id": "t-1", "title": "look", "status": "in_progress", "priority": "high"}],
        "steps": [{"id": "step-2", "timestamp": 2, "type": "thinking", "content": "hm"},
            {"id": "step-1", "timestamp": 1, "type": "todo", "todos": [{"title": "look", "done": false}]},
            {"id": "step-3", "timestamp": 3, "type": "tool_call", "toolCallId": "c", "toolName": "ls", "params": {},
                "cost": 1.5}]});
    let imported = house.fed(&["runs", &session, "--import", "-"], state.to_string().as_bytes()).good().text();
    let run = imported.trim().to_owned();
    assert_eq!(house.run(&["runs", &run, "--export"]).good().json(), state);
    // It's the same when another process has read it twice.
    assert_eq!(house.run(&["runs", &run, "--export"]).good().json(), state);
    // New messages are appended, and the imported ones stay.
    house.run(&["ask", "and now?", "--session", &session]).good();
    let later = house.run(&["sessions", &session, "--export", "json"]).good().json();
    let messages = later["messages"].as_array().expect("messages");
    assert_eq!(&messages[..3], context["messages"].as_array().expect("messages").as_slice());
    assert!(messages.len() > 3 && later["fileUri"] == context["fileUri"] && later["model"] == "x", "{later}");
}
