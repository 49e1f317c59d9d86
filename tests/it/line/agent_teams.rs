//! Agents that work together, through the program: plans of models, tasks side by side, who does what, limits of single
//! tasks, and messages between agents.

use super::agents::{Said, house, model};
use crate::program::House;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Waits for something that another request of the model does. A test that waits in vain fails by what it says then.
fn wait_for(holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    holds()
}

/// Adds an agent of the user's own, whose prompt tells the model who is asked.
fn add_agent(house: &House, name: &str, prompt: &str) {
    let text = format!("---\nname: {name}\ndescription: Works.\n---\n{prompt}\n");
    house.write(&format!("W/agents/{name}.md"), text.as_bytes());
}

/// Returns whether a request is that of the agent with this prompt.
fn is_asked(body: &Value, prompt: &str) -> bool {
    body["messages"][0]["content"].as_str().is_some_and(|system| system.contains(prompt))
}

fn task(goal: &str, agent: &str, more: &str) -> String {
    format!("- [ ] {goal}\n  ```yaml\n  agent: {agent}\n{more}  ```\n")
}

#[test]
fn a_model_plans_with_needs_and_agents_and_is_asked_again_if_the_plan_is_wrong() {
    let refused = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&refused);
    let address = model(move |turn, body| -> Said {
        let tools: Vec<&Value> =
            body["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]["name"]).collect();
        if tools != [&json!("plan")] {
            return ("Fine.".to_owned(), Vec::new());
        }
        heard.fetch_or(body["messages"].to_string().contains("wait for each other in a circle"), Ordering::SeqCst);
        let needs = if turn == 0 { json!(["b"]) } else { json!([]) };
        let count = json!({"id": "a", "goal": "Count the drops", "agent": "data", "needs": needs});
        let write = json!({"id": "b", "goal": "Write the report", "agent": "docs", "needs": ["a"]});
        (String::new(), vec![("plan", json!({"tasks": [count, write]}))])
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    house.run(&["tasks", "plan", "--model", "Report on the rain"]).code(0);
    assert!(refused.load(Ordering::SeqCst), "the model was told of the circle");
    let tasks = house.run(&["tasks", "--json"]).good().lines();
    let planned: Vec<(&Value, &Value, &Value)> =
        tasks.iter().map(|task| (&task["goal"], &task["agent"], &task["needs"])).collect();
    let expected = [
        (json!("Count the drops"), json!("data"), json!([])),
        (json!("Write the report"), json!("docs"), json!(["a"])),
    ];
    assert_eq!(planned, expected.iter().map(|(goal, agent, needs)| (goal, agent, needs)).collect::<Vec<_>>());
}

#[test]
fn tasks_run_side_by_side_and_after_what_they_need() {
    let (slow, first) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let said = Arc::clone(&order);
    let address = model(move |_, body| -> Said {
        let say = |word: &'static str| {
            said.lock().expect("whole").push(word);
            (word.to_owned(), Vec::new())
        };
        if is_asked(body, "You walk slowly.") {
            slow.store(true, Ordering::SeqCst);
            // It ends last of all that needs it not.
            wait_for(|| said.lock().expect("whole").contains(&"Jumped."));
            return say("Walked.");
        }
        if is_asked(body, "You run ahead.") {
            let is_beside = wait_for(|| slow.load(Ordering::SeqCst));
            first.store(true, Ordering::SeqCst);
            return say(if is_beside { "Ran." } else { "Ran alone." });
        }
        if is_asked(body, "You jump after.") {
            return say(if first.load(Ordering::SeqCst) { "Jumped." } else { "Jumped too early." });
        }
        if is_asked(body, "You rest at last.") { say("Rested.") } else { ("Fine.".to_owned(), Vec::new()) }
    });
    let plan = [
        task("Walk ^slow", "walker", ""),
        task("Run ^first", "runner", ""),
        task("Jump ^second", "jumper", "  needs: [first]\n"),
        task("Rest ^last", "sleeper", "  needs: [slow, second]\n"),
    ];
    let house = house(&address, &[("tasks/way.md", &plan.concat())]);
    for (name, prompt) in [
        ("walker", "You walk slowly."),
        ("runner", "You run ahead."),
        ("jumper", "You jump after."),
        ("sleeper", "You rest at last."),
    ] {
        add_agent(&house, name, prompt);
    }
    let done = house.run(&["tasks", "run", "tasks/way.md"]).code(0).text();
    assert!(done.contains("4 of 4 tasks are done."), "{done}");
    assert_eq!(*order.lock().expect("whole"), ["Ran.", "Jumped.", "Walked.", "Rested."]);
    let text = String::from_utf8_lossy(&house.read("notes/tasks/way.md")).into_owned();
    assert_eq!(text.matches("- [x]").count(), 4, "{text}");
}

#[test]
fn where_rules_know_nobody_a_model_says_who_does_a_task() {
    let assigned = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&assigned);
    let address = model(move |_, body| -> Said {
        let offered = body["tools"].as_array().map_or(0, Vec::len);
        if offered == 1 && body["tools"][0]["function"]["name"] == "assign" {
            count.fetch_add(1, Ordering::SeqCst);
            return (String::new(), vec![("assign", json!({"tasks": [{"task": "song", "agent": "poet"}]}))]);
        }
        (format!("Rhymed: {}.", is_asked(body, "You rhyme.")), Vec::new())
    });
    let house = house(&address, &[("tasks/rain.md", "- [ ] Sing of the rain ^song\n")]);
    add_agent(&house, "poet", "You rhyme.");
    super::follower::add_config(&house, "memory:\n  place: folder\n");
    let done = house.run(&["tasks", "run", "tasks/rain.md"]).code(0).text();
    assert!(done.contains("1 of 1 tasks are done.") && done.contains("Rhymed: true."), "{done}");
    assert_eq!(assigned.load(Ordering::SeqCst), 1);
    let log = String::from_utf8_lossy(&house.read("notes/memory/decisions.md")).into_owned();
    assert!(log.contains("- Assigned: song to poet, done: Sing of the rain"), "{log}");
}

#[test]
fn a_project_gets_its_folders_its_plan_and_its_agents() {
    let address = model(|_, body| -> Said {
        let tools: Vec<&Value> =
            body["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]["name"]).collect();
        if tools != [&json!("plan")] {
            return (format!("Summed: {}.", is_asked(body, "You know the weather.")), Vec::new());
        }
        let sum = json!({"id": "sum", "goal": "Sum the rain of each day", "agent": "meteorologist"});
        let write = json!({"id": "write", "goal": "Write output/data/rain.md", "needs": ["sum"]});
        let agent = json!({"name": "meteorologist", "description": "Rain", "prompt": "You know the weather."});
        (String::new(), vec![("plan", json!({"project": "rain", "tasks": [sum, write], "agents": [agent]}))])
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    // Writing an agent, whose prompt later runs obey, is asked about.
    let done = house.fed(&["ask", "@system Report on the rain of October"], b"y\n").code(0);
    assert!(done.err.contains("agents are loaded from there"), "{}", done.err);
    let said = done.text();
    assert!(said.contains("Phase 8 of 8") && said.contains("2 of 2 tasks are done."), "{said}");
    let log = "projects/rain/memory/short_term/execution_log.md";
    assert!(said.contains(&format!("Logged in the memory on this device: {log}.")), "{said}");
    assert!(!house.path(&format!("notes/{log}")).exists());
    assert!(said.contains("- Sum the rain of each day (done): Summed: true."), "{said}");
    for folder in ["output/code", "output/data", "output/visualizations", "components/agents", "tasks"] {
        assert!(house.path(&format!("notes/projects/rain/{folder}")).is_dir(), "{folder}");
    }
    let plan = String::from_utf8_lossy(&house.read("notes/projects/rain/tasks/plan.md")).into_owned();
    assert!(plan.contains("- [x] Sum the rain of each day ^sum") && plan.contains("- [x] Write"), "{plan}");
    let agent =
        String::from_utf8_lossy(&house.read("notes/projects/rain/components/agents/meteorologist.md")).into_owned();
    assert!(agent.contains("You know the weather."), "{agent}");
}

/// Both have read the passage before one of them changes it.
#[test]
fn of_two_changes_of_one_passage_the_second_is_refused_and_the_summary_says_so() {
    let (begun, changed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let address = model(move |turn, body| -> Said {
        let (first, second) = (is_asked(body, "You raise."), is_asked(body, "You lower."));
        if !first && !second {
            return ("Fine.".to_owned(), Vec::new());
        }
        let price = if first { "four" } else { "five" };
        let new = format!("Plums cost {price}.");
        let edit = json!({"path": "shop.md", "old_content": "Plums cost three.", "new_content": new});
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "shop.md"}))]),
            1 => {
                begun.fetch_add(1, Ordering::SeqCst);
                wait_for(|| begun.load(Ordering::SeqCst) == 2 && (first || changed.load(Ordering::SeqCst)));
                (String::new(), vec![("edit_file", edit)])
            }
            _ => {
                changed.fetch_or(first, Ordering::SeqCst);
                ("Over.".to_owned(), Vec::new())
            }
        }
    });
    let plan = [task("Raise ^up", "raiser", ""), task("Lower ^down", "lowerer", "")].concat();
    let house = house(&address, &[("tasks/shop.md", &plan), ("shop.md", "# Shop\n\nPlums cost three.\n")]);
    add_agent(&house, "raiser", "You raise.");
    add_agent(&house, "lowerer", "You lower.");
    let done = house.run(&["tasks", "run", "tasks/shop.md"]).code(0).text();
    assert_eq!(house.read("notes/shop.md"), b"# Shop\n\nPlums cost four.\n");
    assert!(done.contains("What was called failed in these parts: edit_file failed: old_content does not"), "{done}");
}

#[test]
fn a_task_costs_no_more_than_it_may() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let address = model(move |_, body| -> Said {
        count.fetch_add(usize::from(is_asked(body, "You count.")), Ordering::SeqCst);
        ("Counted.".to_owned(), Vec::new())
    });
    let plan = |most: &str| task("Count ^count", "counter", &format!("  constraints: [\"Max cost ${most}\"]\n"));
    let house = house(&address, &[("tasks/less.md", &plan("5.00")), ("tasks/more.md", &plan("8.00"))]);
    add_agent(&house, "counter", "You count.");
    // An answer costs seven dollars, which is known before the call.
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    let known = "context: 32000, local: false, max_tokens: 7, price: {input: 0, output: 1000000}}";
    let priced = config.replace("context: 32000}", known);
    house.write("W/config.yaml", format!("{priced}  cost_limit: null\n").as_bytes());
    house.run(&["tasks", "run", "tasks/less.md"]).code(1);
    assert_eq!(asked.load(Ordering::SeqCst), 0, "the call isn't made");
    let runs = house.run(&["runs", "--json"]).good().lines();
    let of = runs.iter().find(|run| run["agent"] == "counter").expect("it began");
    assert_eq!((&of["standing"], &of["budget"]), (&json!("budget"), &json!(5.0)), "{of}");
    house.run(&["tasks", "run", "tasks/more.md"]).code(0);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn agents_at_work_write_to_all_and_reply() {
    let (sent, replied) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let address = model(move |turn, body| -> Said {
        let all = body["messages"].to_string();
        let look = || (String::new(), vec![("read_file", json!({"path": "data.csv"}))]);
        if is_asked(body, "You plot.") {
            let tell = json!({"to": "all", "text": "The file is rows.csv."});
            if turn == 1 {
                sent.store(true, Ordering::SeqCst);
                wait_for(|| replied.load(Ordering::SeqCst));
            }
            return match turn {
                0 => (String::new(), vec![("message_agent", tell)]),
                1 => look(),
                _ => (format!("Heard: {}.", all.contains("(a reply to ") && all.contains("Thanks.")), Vec::new()),
            };
        }
        if is_asked(body, "You write.") {
            wait_for(|| sent.load(Ordering::SeqCst));
            // The message has a name, by which it's answered.
            let mut names = all.split("Message ").filter_map(|rest| rest.split(' ').next());
            let name = names.find(|name| name.contains('#')).unwrap_or_default();
            let reply = json!({"to": "plotter", "text": "Thanks.", "reply_to": name});
            replied.fetch_or(turn > 1, Ordering::SeqCst);
            return match turn {
                0 => look(),
                1 => (String::new(), vec![("message_agent", reply)]),
                _ => (format!("Told: {}.", all.contains("The file is rows.csv.")), Vec::new()),
            };
        }
        ("Fine.".to_owned(), Vec::new())
    });
    let plan = [task("Plot the rows ^plot", "plotter", ""), task("Write the page ^write", "writer", "")];
    let house = house(&address, &[("tasks/shop.md", &plan.concat()), ("data.csv", "n\n1\n")]);
    add_agent(&house, "plotter", "You plot.");
    add_agent(&house, "writer", "You write.");
    let done = house.run(&["tasks", "run", "tasks/shop.md"]).code(0).text();
    assert!(done.contains("2 of 2 tasks are done."), "{done}");
    assert!(done.contains("Told: true.") && done.contains("Heard: true."), "{done}");
}
