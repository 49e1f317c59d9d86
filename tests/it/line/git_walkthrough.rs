//! The walkthrough of the first idea (`llmos-lite.md`): a goal, agents, files, a commit and a push, against bare
//! repositories. The model makes each tool call in that document's own words and in each of its forms: JSON in a `tool`
//! fence, JSON in the text, and functions.

use super::agents::{Said, configure, model};
use super::git::{git, know_user};
use crate::program::House;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const ANALYSIS: &str = "import math\n\nsignal = [math.sin(2 * math.pi * 5 * at / 64) for at in range(64)]\n";
const BELL_STATE: &str = "from qiskit import QuantumCircuit\n\ncircuit = QuantumCircuit(2)\ncircuit.h(0)\n";
const RESEARCHER: &str = r#"class QuantumResearcher:
    """Quantum researcher."""
    def execute(self, task):
        return {"task": task, "answer": 42}
"#;
const SIGNAL_AGENT: &str = "---\nname: signal-agent\ndescription: Analyses signals\n---\nYou analyse signals.\n";
const TASK_LOG: &str = "---\ntimestamp: 2025-12-21T18:30:00Z\naction: task_execution\ntask: signal_analysis\n\
                        status: completed\n---\n\n# Task: Signal Analysis with FFT\n";

/// Calls as the document's client sends them: functions of the provider's own.
fn functions(calls: &[(&'static str, Value)]) -> Said {
    (String::new(), calls.to_vec())
}

/// A call in a fence marked `tool`, after a sentence.
fn fenced(tool: &str, inputs: &Value) -> Said {
    let call = serde_json::to_string_pretty(&json!({"tool": tool, "inputs": inputs})).expect("JSON");
    (format!("I go on with the plan.\n\n```tool\n{call}\n```\n"), Vec::new())
}

/// A call in the text itself.
fn inline(tool: &str, inputs: &Value) -> Said {
    (format!("Next: {{\"tool\": \"{tool}\", \"inputs\": {inputs}}}"), Vec::new())
}

/// What came back for each turn of a model.
type Results = Arc<Mutex<Vec<String>>>;

/// A model that says this, one answer after another, and remembers what came back.
fn speaker(answers: Vec<Said>) -> (String, Results) {
    let results = Results::default();
    let heard = results.clone();
    let address = model(move |turn, body| -> Said {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.iter().rposition(|message| message["role"] == "assistant");
        if let Some(last) = last {
            let mut heard = heard.lock().expect("heard");
            // A call of the model that is repeated hears the same.
            heard.resize(turn, String::new());
            heard[turn - 1] = messages[last + 1..]
                .iter()
                .filter_map(|message| message["content"].as_str())
                .collect::<Vec<_>>()
                .join("\n");
        }
        answers.get(turn).cloned().unwrap_or_else(|| ("Done.".to_owned(), Vec::new()))
    });
    (address, results)
}

/// A house with the volumes `user` and `team`, each a repository with a bare remote of its own.
fn with_volumes() -> House {
    let house = House::new();
    house.write("user/old.md", b"old\n");
    house.write("user/agents/quantum-researcher.py", RESEARCHER.as_bytes());
    house.write("team/README.md", b"# Team\n");
    for volume in ["user", "team"] {
        let (folder, remote) = (house.path(volume), format!("{volume}.git"));
        git(&house.path(""), &["init", "-q", "--bare", "-b", "main", &remote]);
        git(&folder, &["init", "-q", "-b", "main"]);
        know_user(&folder);
        git(&folder, &["remote", "add", "origin", &format!("../{remote}")]);
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-qm", "First"]);
        house.run(&["open", volume]).good();
    }
    house
}

#[test]
fn the_walkthrough_of_the_first_idea_ends_in_bare_repositories() {
    let code = "projects/signal_fft/output/code/analysis.py";
    let bell = "circuits/bell-state.py";
    let (address, results) = speaker(vec![
        // Analyze and plan, with memory.
        fenced("read-file", &json!({"path": "/system/memory_log.md"})),
        fenced("read-file", &json!({"path": "/system/agents/SystemAgent.md"})),
        inline("read-file", &json!({"path": "/system/agents/MemoryAnalysisAgent.md"})),
        functions(&[("read_file", json!({"volume": "user", "path": "agents/quantum-researcher.py"}))]),
        // Create the project and its agents.
        fenced("write-file", &json!({"path": "projects/signal_fft/output/data/.gitkeep", "content": ""})),
        fenced(
            "write-file",
            &json!({"path": "projects/signal_fft/components/agents/SignalAgent.md", "content": SIGNAL_AGENT}),
        ),
        // Execute the plan.
        fenced("write-file", &json!({"path": code, "content": ANALYSIS})),
        inline("read-file", &json!({"path": code})),
        fenced("execute-python", &json!({"code": "print(6 * 7)"})),
        functions(&[("write_file", json!({"volume": "user", "path": bell, "content": BELL_STATE}))]),
        functions(&[(
            "edit_file",
            json!({"volume": "user", "path": bell, "old_content": "circuit.h(0)", "new_content": "circuit.x(0)"}),
        )]),
        functions(&[
            ("list_files", json!({"volume": "user", "directory": "circuits"})),
            ("list_files", json!({"volume": "system"})),
        ]),
        functions(&[("write_file", json!({"volume": "team", "path": "shared/plan.md", "content": "# Plan\n"}))]),
        functions(&[("write_file", json!({"volume": "system", "path": "agents/mine.md", "content": "x"}))]),
        // Log, and take away what isn't needed.
        fenced(
            "write-file",
            &json!({"path": "projects/signal_fft/memory/short_term/execution_log.md", "content": TASK_LOG}),
        ),
        functions(&[("delete_file", json!({"volume": "user", "path": "old.md"}))]),
        // Commit and push.
        functions(&[
            (
                "git_commit",
                json!({"volume": "user", "message": "Add the analysis", "files": [code, format!("/{bell}")]}),
            ),
            ("git_commit", json!({"volume": "user", "message": "Add the project"})),
            ("git_commit", json!({"volume": "team", "message": "Plan together", "files": ["shared/plan.md"]})),
        ]),
        functions(&[("git_push", json!({"volume": "user"})), ("git_push", json!({"volume": "team"}))]),
    ]);
    let house = with_volumes();
    configure(&house, &address);
    let goal = "Create a sine wave signal, add noise and apply FFT. Commit and push it.";
    let done = house.fed(&["ask", goal, "--project", "user"], "y\n".repeat(30).as_bytes());
    let results = results.lock().expect("heard").clone();
    assert_eq!(done.code, 0, "{}\n{results:#?}", done.err);
    assert!(done.text().ends_with("Done.\n") && results.len() == 18, "{}\n{results:#?}", done.text());
    let says = |turn: usize, text: &str| assert!(results[turn].contains(text), "{turn}: {text}: {}", results[turn]);
    says(1, "name: system");
    says(2, "name: memory-analysis");
    says(3, "class QuantumResearcher");
    says(6, "Created projects/signal_fft/output/code/analysis.py");
    says(7, "signal = [math.sin");
    says(8, "42");
    says(9, "Created circuits/bell-state.py");
    says(10, "+circuit.x(0)");
    says(11, "bell-state.py");
    says(11, "agents/system.md");
    says(12, "plan.md");
    says(13, "System is read-only. Copy it to your workspace to change it.");
    says(16, "Add the analysis");
    says(16, "Plan together");
    says(17, "pushed");

    // All of it is in the remotes, and nothing else.
    let remote = |volume: &str, words: &[&str]| git(&house.path(&format!("{volume}.git")), words);
    assert_eq!(
        remote("user", &["log", "--format=%an: %s", "main"]),
        "Ada: Add the project\nAda: Add the analysis\nAda: First"
    );
    assert_eq!(remote("team", &["log", "--format=%s", "main"]), "Plan together\nFirst");
    assert_eq!(remote("user", &["show", "--format=", "--name-only", "main~1"]), format!("{bell}\n{code}"));
    let expected = [
        "agents/quantum-researcher.py",
        bell,
        "projects/signal_fft/components/agents/SignalAgent.md",
        "projects/signal_fft/memory/short_term/execution_log.md",
        code,
        "projects/signal_fft/output/data/.gitkeep",
    ];
    assert_eq!(remote("user", &["ls-tree", "-r", "--name-only", "main"]), expected.join("\n"));
    assert_eq!(remote("user", &["show", &format!("main:{code}")]), ANALYSIS.trim());
    assert_eq!(remote("user", &["show", &format!("main:{bell}")]), BELL_STATE.replace("circuit.h", "circuit.x").trim());
    assert_eq!(remote("team", &["show", "main:shared/plan.md"]), "# Plan");
    for volume in ["user", "team"] {
        // What is remembered of the run itself comes after its end.
        let status = git(&house.path(volume), &["status", "--porcelain"]);
        assert!(status.lines().all(|line| line.contains("memory/")), "{volume}: {status}");
        assert!(!house.path(volume).join(volume).exists(), "no volume in a volume");
    }

    // Agents that the walkthrough made or found are known, and one is asked.
    let known = house.run(&["tasks", "agents", "--project", "user", "--json"]).good().lines();
    for name in ["QuantumResearcher", "signal-agent"] {
        assert!(known.iter().any(|one| one["name"] == name), "{name}: {known:?}");
    }
    let done = house.fed(&["ask", "@quantumresearcher find it", "--project", "user"], b"y\n").code(0).text();
    assert!(done.contains("\"answer\": 42"), "{done}");
}

/// The document reads `/system/memory_log.md` before each plan: what all earlier work has taught, in all volumes.
#[test]
fn what_all_volumes_remember_is_a_file_of_system() {
    let (address, results) = speaker(vec![
        fenced("read-file", &json!({"path": "/system/memory_log.md"})),
        functions(&[("read_file", json!({"volume": "system", "path": "memory_log.md"}))]),
        functions(&[("list_files", json!({"volume": "system", "directory": ""}))]),
        fenced("write-file", &json!({"path": "/system/memory_log.md", "content": "forged"})),
    ]);
    let house = with_volumes();
    configure(&house, &address);
    let lesson = "scipy.fft and matplotlib work together";
    for (project, learned, about) in [
        ("user", lesson, "Find the peaks of a signal"),
        ("team", "The team meets on Mondays", "Find a day for the team"),
    ] {
        house.run(&["memory", "add", learned, "--goal", about, "--project", project]).good();
    }
    house.run(&["ask", "Plan with memory", "--project", "user", "--json"]).good();
    let results = results.lock().expect("heard").clone();
    assert_eq!(results.len(), 4, "{results:?}");
    for result in &results[..2] {
        assert!(result.contains(lesson) && result.contains("experience_id"), "{results:?}");
        assert!(result.contains("Mondays"), "it's of all volumes: {results:?}");
    }
    assert!(results[2].contains("memory_log.md"), "{results:?}");
    assert!(results[3].contains("System is read-only"), "{results:?}");
    let text = house.run(&["cat", "system/memory_log.md"]).good().text();
    assert!(text.contains(lesson), "{text}");
}
