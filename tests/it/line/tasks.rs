//! `tasks` through the program: plans made by rules and by hand, executed by agents under one budget, canceled; and an
//! agent in Python, in its sandbox.

use super::agents::{Said, house, model};
use serde_json::{Value, json};

/// A model that repeats its question.
fn echo() -> String {
    model(|_, body: &Value| -> Said {
        let asked = body["messages"].as_array().into_iter().flatten().rev().find(|one| one["role"] == "user");
        (format!("Done: {}", asked.map_or("", |one| one["content"].as_str().unwrap_or_default())), Vec::new())
    })
}

#[test]
fn the_type_of_a_task_is_kept_told_and_helps_to_choose_its_agent() {
    let house = house(&echo(), &[("a.md", "# A\n")]);
    let add = |kind: &str| house.run(&["tasks", "add", "Look at it", "--plan", "tasks/look.md", "--type", kind]);
    add("security").good();
    assert_eq!(house.run(&["tasks", "show", "tasks/look.md#t1"]).good().json()["type"], "security");
    let text = String::from_utf8_lossy(&house.read("notes/tasks/look.md")).into_owned();
    assert!(text.contains("  type: security\n"), "{text}");
    add(&"x".repeat(61)).refused(2, "the type of the task t2 has more than 60 characters");
    let done = house.run(&["tasks", "run", "tasks/look.md"]).good().text();
    assert!(done.contains("1 of 1 tasks are done."), "{done}");
    let runs = house.run(&["runs", "--json"]).good().lines();
    let run = runs.iter().find(|run| run["agent"] == "security").unwrap_or_else(|| panic!("{runs:?}"));
    assert_eq!(run["prompt"], "Look at it\n\nType: security");
}

#[test]
fn a_plan_is_made_listed_carried_out_and_given_up() {
    let house = house(&echo(), &[("a.md", "# A\n")]);
    let made = house.run(&["tasks", "plan", "Test the page, then write the README"]).good().text();
    assert!(made.starts_with("tasks/test_page_then_write.md\n"), "{made}");
    assert!(made.contains("[ ] t2  Write the README  @docs  (after t1)"), "{made}");
    let plan = "tasks/test_page_then_write.md";
    let more =
        ["tasks", "add", "Deploy the page", "--plan", plan, "--needs", "t2", "--priority", "90", "--tool", "shell"];
    let more: Vec<&str> =
        more.iter().copied().chain(["--input", "host=example.org", "--constraint", "Max cost $0.20"]).collect();
    assert_eq!(house.run(&more).good().text(), format!("{plan}#t3\n"));
    let listed = house.run(&["tasks", "--json"]).good().lines();
    assert_eq!((listed.len(), &listed[2]["priority"], &listed[2]["standing"]), (3, &json!(90), &json!("open")));
    assert_eq!(listed[2]["inputs"], json!({"host": "example.org"}));
    let third = format!("{plan}#t3");
    house.run(&["tasks", "reopen", &third]).refused(2, "t3 isn't canceled");
    house.run(&["tasks", "cancel", &third]).good();
    assert_eq!(house.run(&["tasks", "reopen", &third]).good().text(), "t3 is open again\n");
    assert_eq!(house.run(&["tasks", "--json"]).good().lines()[2]["standing"], "open");
    house.run(&["tasks", "cancel", &third]).good();
    house.run(&["tasks", "run", &format!("{plan}#t2")]).refused(2, "needs t1");
    let done = house.run(&["tasks", "run", plan]).good().text();
    assert!(done.contains("Phase 2 of 3: Execute the plan.") && done.contains("2 of 2 tasks are done."), "{done}");
    assert!(done.contains("Done: Write the README"), "{done}");
    let text = String::from_utf8_lossy(&house.read(&format!("notes/{plan}"))).into_owned();
    assert!(text.contains("- [x] Test the page ^t1") && text.contains("- [-] Deploy the page ^t3"), "{text}");
    house.run(&["tasks", "run", plan]).refused(2, "nothing is left");
    // Tasks and todos are the same items.
    let todos = house.run(&["todos"]).good().text();
    assert!(!todos.contains("Write the README"), "{todos}");
    let runs = house.run(&["runs", "--json"]).good().lines();
    let asked = runs.iter().filter(|run| run["origin"]["by"] == "agent").count();
    assert_eq!((runs.len(), asked), (3, 2), "{runs:?}");
    let lead =
        runs.iter().find(|run| run["origin"]["by"] != "agent").and_then(|run| run["id"].as_str()).expect("it led");
    let result = house.run(&["runs", lead, "--result", "--json"]).good().json();
    assert_eq!((&result["success"], &result["metrics"]["runs"]), (&json!(true), &json!(3)), "{result}");
    assert!(result["output"].as_str().is_some_and(|text| text.contains("tasks are done")), "{result}");
    assert!(result["artifacts"].is_array() && result["errors"].is_array(), "{result}");
    assert!(result["metrics"]["durationMs"].as_i64().is_some_and(|time| time > 0), "{result}");
    assert_eq!(house.run(&["runs", lead, "--json"]).good().json()["result"], result);
    let shown = house.run(&["runs", lead, "--result"]).good().text();
    assert!(shown.contains("tasks are done") && shown.contains(" model calls, "), "{shown}");

    house.run(&["tasks", "add", "Send it", "--plan", "tasks/send.md", "--risk", "high"]).good();
    house.run(&["tasks", "add", "Look", "--plan", "tasks/send.md", "--risk", "low", "--checkpoint"]).good();
    let text = String::from_utf8_lossy(&house.read("notes/tasks/send.md")).into_owned();
    assert!(text.contains("risk: high\n") && text.contains("risk: low\n  checkpoint: true\n"), "{text}");
    let listed = house.run(&["tasks"]).good().text();
    assert_eq!(listed.matches("(you decide before it begins)").count(), 2, "{listed}");
    // A plan may be called without `.md`, and may be any note.
    assert_eq!(house.run(&["tasks", "add", "Buy milk", "--plan", "my_shopping"]).good().text(), "my_shopping.md#t1\n");
    assert_eq!(house.run(&["tasks", "add", "Buy tea", "--plan", "my_shopping"]).good().text(), "my_shopping.md#t2\n");
    house.run(&["tasks", "add", "Water it", "--plan", "a"]).good();
    let text = String::from_utf8_lossy(&house.read("notes/my_shopping.md")).into_owned();
    assert_eq!(text, "# Plan: My shopping\n\n- [ ] Buy milk ^t1\n- [ ] Buy tea ^t2\n");
    assert_eq!(house.read("notes/a.md"), b"# A\n- [ ] Water it ^t1\n");
    house.run(&["tasks", "plan", "Eat, then sleep", "--plan", "my_shopping"]).refused(2, "already exists");
    let plans = |name: &str| {
        let listed = house.run(&["tasks", "--json"]).good().lines();
        listed.iter().filter(|task| task["plan"] == name).count()
    };
    assert_eq!((plans("my_shopping.md"), plans("a.md")), (2, 1), "notes outside of tasks/ are listed, too");
    assert!(house.run(&["tasks"]).good().text().contains("my_shopping.md\n  [ ] t1  Buy milk\n"));
    house.write("notes/todo.md", b"- [ ] pay ^bill\n");
    assert_eq!(plans("todo.md"), 0, "a todo isn't a task for an agent");

    house.run(&["tasks", "add", "Jump", "--risk", "extreme"]).refused(2, "low, medium or high, not “extreme”");
    // Otherwise the task would have no limit.
    house
        .run(&["tasks", "add", "Pay", "--constraint", "Max cost 20 euros"])
        .refused(2, "“Max cost 20 euros”; write the amount as in “Max cost $0.20”");
    house.run(&["tasks", "plan", " "]).refused(2, "enter a goal");
    house.run(&["tasks", "add", "Fly", "--tool", "wings"]).refused(2, "the tool wings");
    house.run(&["tasks", "add", "Walk", "--needs", "nothing"]).refused(2, "needs nothing");
    house.run(&["tasks", "show", &format!("{plan}#t9")]).refused(2, "no task t9");
    house.run(&["tasks", "dance"]).refused(2, "not “dance”");
}

#[test]
fn checkpoints_are_decided_one_by_one_by_other_processes() {
    for (first, second) in [("--allow", "--deny"), ("--deny", "--allow")] {
        let house = house(&echo(), &[("a.md", "# A\n")]);
        for goal in ["Test the page", "Write the README"] {
            house.run(&["tasks", "add", goal, "--plan", "p", "--checkpoint"]).good();
        }
        let waiting = || -> Vec<String> {
            let lines = house.run(&["approvals", "--json"]).good().lines();
            lines.iter().map(|line| line["name"].as_str().expect("a name").to_owned()).collect()
        };
        house.run(&["tasks", "run", "p", "--no-wait"]).code(1);
        let names = waiting();
        assert_eq!(names.len(), 2, "{names:?}");
        // The task that was allowed is done before the process ends, and nothing that was decided is asked again.
        house.run(&["approvals", &names[0], first, "--no-wait"]).code(1);
        assert_eq!(waiting(), names[1..], "{first}");
        let done = house.run(&["approvals", &names[1], second]);
        let done = format!("{}{}", done.err, done.text());
        assert!(done.contains("1 of 2 tasks are done.") && !done.contains("The program ended"), "{first}: {done}");
        assert_eq!(waiting(), Vec::<String>::new(), "{first}");
        let runs = house.run(&["runs", "--json"]).good().lines();
        assert_eq!(runs.iter().filter(|run| run["origin"]["by"] == "agent").count(), 1, "{first}: {runs:?}");
    }
}

#[test]
fn an_agent_in_python_says_what_it_can_and_gets_the_conversation() {
    let code = "class Rememberer:\n    \"\"\"Repeats.\n\n    Capabilities: recall, quoting\n    \"\"\"\n    \
                def execute(self, task, context=None):\n        \
                said = [message['role'] + ' ' + message['content'] for message in context['messages']]\n        \
                return context['agent'] + ': ' + ' / '.join(said)\n";
    let house = house(&echo(), &[("a.md", "# A\n"), ("agents/rememberer.py", code)]);
    if !crate::program::strict() && house.run(&["doctor"]).text().contains("no sandbox") {
        return;
    }
    let known = house.run(&["tasks", "agents", "--json"]).good().lines();
    let agent = known.iter().find(|one| one["name"] == "Rememberer").expect("it is found");
    assert_eq!(agent["capabilities"], json!(["recall", "quoting"]));
    house.run(&["ask", "the code is blue-7"]).code(0);
    let session = house.run(&["sessions", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    let done = house.fed(&["ask", "@rememberer what was it?", "--session", &session], b"y\n").code(0).text();
    let order = ["Rememberer: user the code is blue-7", "assistant Done: ", "what was it?"];
    let places: Vec<Option<usize>> = order.iter().map(|part| done.find(part)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {done}");
}

#[test]
fn an_agent_in_python_answers_from_its_sandbox() {
    let code = "class Adder:\n    \"\"\"Adds.\"\"\"\n    def execute(self, task):\n        \
                numbers = [int(word) for word in task.split() if word.isdigit()]\n        \
                return {'sum': sum(numbers)}\n";
    let house = house(&echo(), &[("a.md", "# A\n"), ("agents/adder.py", code)]);
    if !crate::program::strict() && house.run(&["doctor"]).text().contains("no sandbox") {
        return;
    }
    let known = house.run(&["tasks", "agents", "--json"]).good().lines();
    let adder = known.iter().find(|one| one["name"] == "Adder").expect("it is found");
    assert_eq!((&adder["from"], &adder["description"]), (&json!("project, Python"), &json!("Adds.")));
    assert!(known.iter().any(|one| one["name"] == "qa" && one["from"] == "built in"), "{known:?}");
    let done = house.fed(&["ask", "@adder 17 and 25"], b"y\n").code(0).text();
    assert!(done.contains("\"sum\": 42"), "{done}");
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["spent"]["inputTokens"], json!(0), "no model");
    // The agent isn't approved permanently.
    house.run(&["ask", "@adder 1 and 2", "--no-wait"]).code(1);
}
