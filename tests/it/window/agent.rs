//! The agent's panel with real runs. The model is a local server that speaks OpenAI's protocol and holds its answer
//! back for as long as a test needs.

pub(super) use super::*;
use engine::commands::CommandId;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::{DocId, MessageRole as Speaker, TodoStatus};

/// A model's response: text and tool calls.
pub(super) type Said = (String, Vec<(&'static str, Value)>);

/// Serves a model whose responses come from `script`, given the number of its earlier answers. A word `‖` in a response
/// isn't sent: there the model waits for the test's signal.
pub(super) fn model(script: impl Fn(usize, &Value) -> Said + Send + Sync + 'static) -> (String, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let (go, goes) = channel();
    let (script, goes) = (Arc::new(script), Arc::new(Mutex::new(goes)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (script, goes) = (script.clone(), goes.clone());
            std::thread::spawn(move || answer(stream, &*script, &goes));
        }
    });
    (address, go)
}

fn answer(mut stream: TcpStream, script: &dyn Fn(usize, &Value) -> Said, goes: &Mutex<Receiver<()>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut line, mut length) = (String::new(), 0);
    let mut is_list = false;
    while reader.read_line(&mut line).ok()? > 2 {
        is_list |= line.starts_with("GET ");
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if is_list {
        let models = json!({"data": [{"id": "m"}, {"id": "big", "context_length": 65_536}]}).to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", models.len());
        return write!(stream, "{head}{models}").ok();
    }
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let (words, calls) = script(turn, &body);
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n").ok()?;
    let mut send = |delta: Value, end: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": end});
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
        write!(stream, "data: {chunk}\n\n").and_then(|()| stream.flush())
    };
    send(json!({"role": "assistant", "content": ""}), None).ok()?;
    for word in words.split_inclusive(' ') {
        if word.trim() == "‖" {
            goes.lock().ok()?.recv_timeout(Duration::from_secs(60)).ok()?;
            continue;
        }
        send(json!({"content": word}), None).ok()?;
    }
    for (at, (name, arguments)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let call = json!({"index": at, "id": format!("t{turn}c{at}"), "type": "function", "function": function});
        send(json!({"tool_calls": [call]}), None).ok()?;
    }
    send(json!({}), Some(if calls.is_empty() { "stop" } else { "tool_calls" })).ok()?;
    let usage = json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18});
    write!(stream, "data: {}\n\n", json!({"id": "x", "model": "m", "choices": [], "usage": usage})).ok()?;
    write!(stream, "data: [DONE]\n\n").ok()
}

/// A window whose agents use this model, with the panel open.
pub(super) fn asked(bench: &Bench, address: &str) -> Driven {
    asked_with(bench, address, |_| {})
}

/// The same, with more in the configuration, which is the file that `more` gets.
pub(super) fn asked_with(bench: &Bench, address: &str, more: impl FnOnce(&std::path::Path)) -> Driven {
    let config = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {{wire: openai, base_url: \
         \"{address}/v1\", model: m, context: 32000}}\n"
    );
    let workspace = bench.folder.path().join("workspace");
    std::fs::create_dir_all(&workspace).expect("a folder");
    std::fs::write(workspace.join("config.yaml"), config).expect("a file");
    more(&workspace.join("config.yaml"));
    let mut window = bench.opened();
    press(&mut window, Modifiers::COMMAND | Modifiers::ALT, Key::I);
    window.get_by_label("Message to the agent");
    window
}

pub(super) fn ask(window: &mut Driven, text: &str) {
    type_text(window, text);
    window.key_press_modifiers(NONE, Key::Enter);
    window.step();
}

/// Steps frames until a condition holds, without waiting for the window to settle.
pub(super) fn soon(window: &mut Driven, what: &str, done: impl Fn(&mut Driven) -> bool) {
    let begun = Instant::now();
    while !done(window) {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(10));
        window.step();
    }
    window.run_steps(3);
}

pub(super) fn shows(window: &mut Driven, label: &str) -> bool {
    window.query_all_by_label_contains(label).next().is_some()
}

/// The most recent run.
pub(super) fn run(window: &Driven) -> &engine::AgentRun {
    let agents = session(window).agents();
    let newest = agents.runs().max_by_key(|(_, line)| line.start_time).map(|(id, _)| id).expect("a run");
    agents.run(newest).expect("it is open")
}

pub(super) fn ended(window: &mut Driven) -> bool {
    let agents = session(window).agents();
    agents.runs().next().is_some() && agents.runs().all(|(_, line)| line.ending.is_some())
}

pub(super) fn talk() -> &'static str {
    "Talk.md"
}

#[test]
fn an_answer_grows_is_kept_and_is_asked_again_in_other_words() {
    let (address, go) = model(|_, body| {
        let asked = body["messages"].as_array().and_then(|all| all.last()).map(|last| last["content"].to_string());
        let first = asked.is_some_and(|asked| asked.contains("beans"));
        let words = if first { "Beans are **sown** ‖ in May." } else { "Peas come first." };
        (words.to_owned(), Vec::new())
    });
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "when are beans sown?");
    soon(&mut window, "the answer grows", |window| shows(window, "Beans are sown"));
    assert!(window.query_by_label("Beans are sown in May.").is_none(), "it is not whole yet");
    window.get_by_label("Stop agent");
    // The status bar shows the run, and opens the panel if that is closed.
    let context = window.ctx.clone();
    window.state_mut().perform_command(&context, CommandId::ViewRight);
    soon(&mut window, "the panel is closed", |window| window.query_by_label("Stop agent").is_none());
    window.get_by_label("Agent is working").click();
    soon(&mut window, "the panel is open", |window| window.query_by_label("Stop agent").is_some());
    go.send(()).expect("it waits");
    soon(&mut window, "the answer is whole", ended);
    soon(&mut window, "nothing works any more", |window| window.query_by_label("Agent is working").is_none());
    window.get_by_label("Beans are sown in May.");
    window.get_by_label("when are beans sown?");
    window.get_by_label("Change the title: when are beans sown?");

    // The Up arrow recalls earlier questions, the Down arrow returns to the current text.
    window.get_by_label("Message to the agent").focus();
    window.run();
    press(&mut window, NONE, Key::ArrowUp);
    press(&mut window, NONE, Key::ArrowDown);
    ask(&mut window, "and peas?");
    soon(&mut window, "the second answer is there", |window| shows(window, "Peas come first."));
    soon(&mut window, "it has ended", ended);

    // The second question in other words is a branch of its own; arrows switch between them.
    let again = window.get_all_by_label("Edit and ask again").last().expect("a button");
    again.click();
    window.run();
    window.get_by_label("Rephrasing your message starts another branch");
    ask(&mut window, " And leeks?");
    soon(&mut window, "the branch is there", |window| shows(window, "Branch 2 of 2"));
    soon(&mut window, "it has ended", ended);
    window.get_by_label("Earlier branch").click();
    soon(&mut window, "the first branch is shown", |window| shows(window, "Branch 1 of 2"));
    window.get_by_label("and peas?");
    let (_, line) = session(&window).agents().sessions().next().expect("a session");
    assert_eq!(line.branches, 2);

    // Branches side by side.
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::AgentBranches);
    window.run();
    window.get_all_by_label_contains("Compare: ").next().expect("another branch").click();
    window.run();
    window.get_by_label("The branch that you see");
    window.get_by_label("The other branch");
    assert!(shows(&mut window, "And leeks?"), "what the other one says");
    click_label(&mut window, "Back to the branches");
    assert!(shows(&mut window, "Bring over: "));
    press(&mut window, NONE, Key::Escape);

    // The user can change the title; a fork is a session of its own.
    click_label(&mut window, "Change the title: when are beans sown?");
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "Sowing");
    press(&mut window, NONE, Key::Enter);
    window.get_by_label("Change the title: Sowing");
    window.get_all_by_label("Fork into a new session").next().expect("a button").click();
    soon(&mut window, "the fork is shown", |window| shows(window, "Change the title: Sowing (fork)"));
    click_label(&mut window, "Agent sessions");
    click_label(&mut window, "Session: Sowing");
    window.get_by_label("Change the title: Sowing");
}

#[test]
fn an_approval_is_pinned_is_changed_and_decided_and_what_came_of_it_is_taken_back() {
    let (address, _) = model(|turn, _| {
        let todos = json!({"todos": [{"content": "write it"}, {"content": "read it"}]});
        match turn {
            0 => (
                "I write.".to_owned(),
                vec![("todo_write", todos), ("write_file", json!({"path": "plan.md", "content": "# Plan\n\nsow\n"}))],
            ),
            1 => (String::new(), vec![("shell", json!({"command": "cat nothing"}))]),
            2 => (String::new(), vec![("ask_user", json!({"question": "Which bed?"}))]),
            3 => (String::new(), vec![("delete_file", json!({"path": "Talk.md"}))]),
            _ => ("All is done.".to_owned(), Vec::new()),
        }
    });
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "make a plan");
    soon(&mut window, "it asks", |window| shows(window, "The agent waits: Run in the sandbox: cat nothing"));
    // The pending approval is visible from anywhere.
    window.get_by_label("1 approval waiting");
    window.get_by_label("Todos: 0 of 2").click();
    window.run_steps(3);
    window.get_by_label("Add a todo").focus();
    window.run_steps(3);
    type_text(&mut window, "water it");
    press(&mut window, NONE, Key::Enter);
    let box_of = |window: &mut Driven, name: &str| window.get_by_role_and_label(Role::CheckBox, name).click();
    box_of(&mut window, "write it");
    window.run_steps(3);
    let todos: Vec<(String, TodoStatus)> =
        run(&window).todos.iter().map(|todo| (todo.content.clone(), todo.status)).collect();
    let pending = |words: &str| (words.to_owned(), TodoStatus::Pending);
    assert_eq!(todos, [("write it".to_owned(), TodoStatus::Completed), pending("read it"), pending("water it")]);
    window.get_by_label("Delete the todo: read it").click();
    window.run_steps(3);
    assert_eq!(run(&window).todos.len(), 2);
    window.get_by_label("Undo the deletion of: read it").click_accesskit();
    window.run_steps(3);
    let words: Vec<&str> = run(&window).todos.iter().map(|todo| todo.content.as_str()).collect();
    assert_eq!(words, ["write it", "read it", "water it"], "it's back in its place");
    window.get_by_label("Delete the todo: read it").click();
    window.run_steps(3);
    assert_eq!(run(&window).todos.len(), 2);

    // The scope of the permission is a menu, and the remaining time is shown.
    assert!(shows(&mut window, "Expires in 5 min."), "it says when");
    window.get_by_label("Deny");
    window.get_by_label("Allow for…").click();
    window.run_steps(3);
    for scope in ["This run", "This project", "Always"] {
        window.get_by_label(scope);
    }
    window.get_by_label("Allow for…").click();
    window.run_steps(3);
    // The user allows a different command from the one requested.
    window.get_by_label("Edit").click();
    window.run_steps(3);
    window.get_by_label("What is allowed instead").focus();
    window.run_steps(3);
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "cat plan.md");
    window.get_by_label("Allow this instead").click();
    soon(&mut window, "it asks the user", |window| shows(window, "The agent waits: Which bed?"));
    let decided =
        run(&window).approvals.iter().find(|approval| approval.tool == "shell").and_then(|it| it.decision.clone());
    let arguments = decided.and_then(|decision| decision.arguments).expect("they were changed");
    assert_eq!(arguments["command"], "cat plan.md");
    soon(&mut window, "it's no approval", |window| shows(window, "Waiting for your answer"));
    window.get_by_label("Answer to the agent").focus();
    window.run_steps(3);
    type_text(&mut window, "The north one");
    window.get_by_label("Answer").click();
    soon(&mut window, "it asks again", |window| shows(window, "The agent waits: Put Talk.md into the trash"));
    // The answer is given by keyboard.
    window.get_by_label("Message to the agent").focus();
    window.run_steps(3);
    window.key_press_modifiers(CTRL, Key::Backspace);
    soon(&mut window, "it has ended", ended);
    assert!(bench.notes().join("Talk.md").exists(), "what was denied was not done");
    assert!(window.query_by_label("1 approval waiting").is_none());

    // Tool lines expand.
    window.get_by_label_contains("write_file  plan.md").click();
    window.run();
    assert!(shows(&mut window, "+# Plan"), "what it wrote is seen");
    window.get_by_label_contains("Iteration 5 of 20");

    // The run's changes have a page, where all can be reverted and redone.
    soon(&mut window, "it's told", |window| window.query_by_label("1 file changed").is_some());
    click_label(&mut window, "1 file changed");
    click_label(&mut window, "Keep: plan.md part 1");
    assert!(window.query_by_label("Keep: plan.md part 1").is_none(), "it is kept");
    window.get_by_label("Revert: plan.md part 1").click();
    // Only one move at a time: the file is gone shortly before the move has ended.
    let moved = |window: &mut Driven, there: bool| {
        bench.notes().join("plan.md").exists() == there && session(window).pending_move().is_none()
    };
    until(&mut window, "the file is gone", |window| moved(window, false));
    window.get_by_label("Redo all").click();
    until(&mut window, "the file is there again", |window| moved(window, true));

    // The steps are shown as a graph.
    click_label(&mut window, "Run timeline");
    assert!(shows(&mut window, "Timeline of"));
    press(&mut window, NONE, Key::ArrowRight);
    press(&mut window, NONE, Key::ArrowRight);
    assert!(shows(&mut window, "2. Tool call: todo_write"));
    press(&mut window, NONE, Key::ArrowDown);
    assert!(shows(&mut window, "3. Tool call: write_file"));
    click_label(&mut window, "Follows from step 1");
    assert!(shows(&mut window, "1. Model call"));

    // Search finds what was done and leads to the step.
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL_SHIFT, Key::F);
    type_text(&mut window, "in:run nothing");
    until(&mut window, "it is found", |window| shows(window, "make a plan: "));
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the step is shown", |window| shows(window, "Tool call: shell") || shows(window, "Tool result"));
}

#[test]
fn a_run_that_failed_says_why_and_is_resumed() {
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    // No server listens at this address, and no other test gets this port.
    let mut window = asked(&bench, "http://127.0.0.1:9");
    ask(&mut window, "are you there?");
    soon(&mut window, "it fails", ended);
    assert!(shows(&mut window, "127.0.0.1"), "it is said who did not answer");
    window.get_by_label("are you there?");
    let (address, _) = model(|_, _| ("Now I am.".to_owned(), Vec::new()));
    let config = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {{wire: openai, base_url: \
         \"{address}/v1\", model: m, context: 32000}}\n"
    );
    std::fs::write(bench.folder.path().join("workspace/config.yaml"), config).expect("a file");
    window.state_mut().send_command(Command::ReadSetup);
    soon(&mut window, "it is read", |window| !session(window).agents().is_reading());
    window.get_by_label("Resume run").click();
    soon(&mut window, "it answers", |window| shows(window, "Now I am."));
}

#[test]
fn a_note_links_to_a_step_of_a_run() {
    let (address, _) = model(|_, _| ("In May.".to_owned(), Vec::new()));
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "when are beans sown?");
    soon(&mut window, "it answers", ended);
    let link = {
        let run = run(&window);
        format!("{}#{}", engine::run_address(run.id), run.steps.last().expect("a step").id)
    };
    let text = format!("[[{link}|it said]]\n\nNot [[run-00000000#1]].\n");
    let note = window.state().note().expect("a note");
    window.state_mut().send_command(Command::Amend { note, at: 0, old: "# Talk\n".to_owned(), new: text });
    soon(&mut window, "the link is there", |window| window.query_by_label("it said").is_some());
    links::click_link(&mut window, "it said");
    soon(&mut window, "the step is shown", |window| shows(window, ". Answer"));
    press(&mut window, NONE, Key::Escape);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewBroken);
    soon(&mut window, "one leads nowhere", |window| shows(window, "1 link to files that don't exist"));
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL_SHIFT, Key::K);
    soon(&mut window, "the panel knows it", |window| {
        window.query_by_label(&format!("Open {link}")).is_some() && shows(window, "leads nowhere")
    });
}

#[test]
fn names_are_completed_and_settings_say_which_models_there_are() {
    let (address, _) = model(|_, _| ("Yes.".to_owned(), Vec::new()));
    let bench = Bench::new(&[(talk(), "# Talk\n"), ("Garden/Beds.md", "x\n")]);
    let mut window = asked(&bench, &address);
    type_text(&mut window, "see @bed");
    window.get_by_label("Garden/Beds.md");
    press(&mut window, NONE, Key::Enter);
    ask(&mut window, "please");
    soon(&mut window, "it is sent", ended);
    window.get_by_label("see @Garden/Beds.md please");
    press(&mut window, CTRL, Key::Comma);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    window.run();
    until(&mut window, "the models are listed", |window| shows(window, "test: m"));
    window.get_by_label("Test test").click_accesskit();
    until(&mut window, "it was tested", |window| {
        shows(window, "test: m: Works") || shows(window, "test: m: Doesn't work")
    });
}

#[test]
fn changes_of_a_session_stay_with_their_messages_and_read_line_by_line() {
    let (address, _) = model(|turn, body| {
        let second = body["messages"].to_string().contains("the second");
        let (old, new) = if second { ("three", "3") } else { ("one", "1") };
        let edit = json!({"path": "List.md", "old_content": format!("- {old}\n"), "new_content": format!("- {new}\n")});
        match turn % 2 {
            0 => (String::new(), vec![("edit_file", edit)]),
            _ => ("It is changed.".to_owned(), Vec::new()),
        }
    });
    let bench = Bench::new(&[(talk(), "# Talk\n"), ("List.md", "# List\n\n- one\n- two\n- three\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "Change the first");
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "it's told", |window| window.query_all_by_label("1 file changed").count() == 1);
    ask(&mut window, "Change the second");
    soon(&mut window, "it's asked", |window| !ended(window));
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "both are told", |window| window.query_all_by_label("1 file changed").count() == 2);
    let chip = window.query_all_by_label("1 file changed").next().expect("the first");
    chip.click();
    window.run();
    // Whole lines with context, from both runs.
    assert!(shows(&mut window, " # List\n \n-- one\n+- 1\n - two\n - three\n"));
    assert!(
        shows(&mut window, " # List\n \n - 1\n - two\n-- three\n+- 3\n")
            || shows(&mut window, " - two\n-- three\n+- 3\n")
    );
    assert_eq!(window.query_all_by_label("Revert: List.md part 1").count(), 2);
}

#[test]
fn what_an_agent_has_changed_is_marked_until_the_caret_was_there() {
    let (address, _) = model(|turn, _| {
        let edit = json!({"path": "Talk.md", "old_content": "- two\n", "new_content": "- 2\n"});
        match turn {
            0 => (String::new(), vec![("edit_file", edit)]),
            _ => ("It is changed.".to_owned(), Vec::new()),
        }
    });
    let bench = Bench::new(&[(talk(), "# Talk\n\n- one\n- two\n- three\n")]);
    let mut window = asked(&bench, &address);
    assert!(window.query_by_label("Changed by an agent").is_none());
    ask(&mut window, "Change the second");
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "one line is marked", |window| window.query_all_by_label("Changed by an agent").count() == 1);
    let (mark, line) = (window.get_by_label("Changed by an agent").rect(), window.get_by_label("2").rect());
    assert!(line.contains(mark.center()) && mark.left() >= line.left(), "in the margin: {mark:?}, {line:?}");
    pictured(&mut window, "agent-mark");
    let text = super::text(&window).expect("a note");
    window.state_mut().place_caret(text.find("- one").expect("a line") + 3);
    window.run();
    assert!(window.query_by_label("Changed by an agent").is_some(), "the caret is elsewhere");
    window.state_mut().place_caret(text.find("- 2").expect("a line") + 3);
    soon(&mut window, "the mark is gone", |window| window.query_by_label("Changed by an agent").is_none());
}

#[test]
fn the_chat_follows_what_one_asks_and_jumps_to_the_latest() {
    let long = "a line\n\n".repeat(80);
    let (address, _) = model(move |_, _| (long.clone(), Vec::new()));
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "First?");
    soon(&mut window, "it has ended", ended);
    let up = |window: &mut Driven| {
        let at = window.get_by_label("Message to the agent").rect().center() - egui::vec2(0.0, 300.0);
        window.event(egui::Event::PointerMoved(at));
        window.event(egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Point,
            delta: egui::vec2(0.0, 900.0),
            phase: egui::TouchPhase::Move,
            source: egui::MouseWheelSource::Wheel,
            modifiers: NONE,
        });
        window.run_steps(30);
    };
    assert!(!shows(&mut window, "Jump to latest"), "it follows");
    up(&mut window);
    window.get_by_label("Jump to latest").click();
    window.run_steps(10);
    assert!(!shows(&mut window, "Jump to latest"), "it's at the end");
    up(&mut window);
    assert!(shows(&mut window, "Jump to latest"));
    window.get_by_label("Message to the agent").focus();
    window.run_steps(2);
    ask(&mut window, "Second?");
    soon(&mut window, "it's asked", |window| window.query_by_label("Jump to latest").is_none());
    soon(&mut window, "it has ended", ended);
    assert!(!shows(&mut window, "Jump to latest"), "it has followed the answer");
}

#[test]
fn instructions_of_a_volume_are_shown_and_trusted() {
    let (address, _) = model(|_, _| ("Done.".to_owned(), Vec::new()));
    let bench = Bench::new(&[("A.md", "# Talk\n"), ("AGENTS.md", "Answer in verse.\n")]);
    let mut window = asked(&bench, &address);
    until(&mut window, "it's shown", |window| shows(window, "Instructions left out: you don't trust notes"));
    assert!(shows(&mut window, "AGENTS.md: agents don't follow it"));
    pictured(&mut window, "instructions-untrusted");
    ask(&mut window, "How many herons?");
    soon(&mut window, "it has ended", ended);
    let notice = |window: &Driven, text: &str| {
        run(window)
            .steps
            .iter()
            .any(|step| matches!(&step.kind, store::StepKind::Thinking { content, .. } if content.contains(text)))
    };
    assert!(notice(&window, "Left out the instructions of notes/AGENTS.md"));
    click_label(&mut window, "Trust this volume");
    until(&mut window, "it's trusted", |window| shows(window, "Instructions: 1 file"));
    pictured(&mut window, "instructions-trusted");
    window.get_by_label("Message to the agent").focus();
    window.run();
    ask(&mut window, "And how many storks?");
    soon(&mut window, "it follows them", |window| notice(window, "Follows the instructions of notes/AGENTS.md."));
    click_label(&mut window, "Don't trust this volume");
    until(&mut window, "it's taken back", |window| shows(window, "Trust this volume"));
}

#[test]
fn where_memory_is_kept_is_a_setting() {
    let (address, _) = model(|_, _| ("Yes.".to_owned(), Vec::new()));
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    let mut window = asked(&bench, &address);
    press(&mut window, CTRL, Key::Comma);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    window.run();
    until(&mut window, "it's read", |window| shows(window, "Folders that already hold memory continue to use it"));
    let file = bench.folder.path().join("workspace/config.yaml");
    let says = |text: &str| std::fs::read_to_string(&file).expect("a file").contains(text);
    window.get_by_label("In this folder").click_accesskit();
    until(&mut window, "it's kept in the folder", |window| shows(window, "as notes in the folder memory"));
    assert!(says("place: folder") && says("learn: true") && says("prefer_local: false"));
    window.get_by_label("Off").click_accesskit();
    until(&mut window, "it's off", |window| shows(window, "Agents keep nothing of what they do"));
    assert!(says("learn: false"));
    window.get_by_label("Private to this device").click_accesskit();
    until(&mut window, "it's private", |window| shows(window, "in the workspace, outside of your folders"));
    assert!(says("place: private") && says("learn: true"));
}

#[test]
fn tools_of_ones_own_are_read_approved_and_written_to_a_file() {
    let (address, _) = model(|_, _| ("Yes.".to_owned(), Vec::new()));
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    let mut window = asked(&bench, &address);
    let (from, to) = (bench.folder.path().join("some.json"), bench.folder.path().join("all.json"));
    let tool = json!({"name": "double", "version": 1, "description": "Doubles a number.", "network": true,
        "parameters": {"type": "object"}, "code": "def run(x):\n    return 2 * x\n"});
    std::fs::write(&from, tool.to_string()).expect("written");
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::AgentTools);
    until(&mut window, "the tools are read", |window| shows(window, "File of tools"));
    let file = |window: &mut Driven, path: &std::path::Path| {
        window.get_by_label("File of tools").focus();
        window.run();
        press(window, CTRL, Key::A);
        type_text(window, &path.display().to_string());
    };
    file(&mut window, &from);
    window.get_by_label("Import").click();
    until(&mut window, "it waits to be read", |window| shows(window, "Tool: double"));
    assert!(shows(&mut window, "double version 1: waiting for approval"));
    assert!(shows(&mut window, "It may use the network.") && shows(&mut window, "return 2 * x"));
    let usable = |window: &Driven| {
        let tools = session(window).user_tools().unwrap_or_default();
        tools.iter().any(|tool| tool.usable_version().is_some())
    };
    assert!(!usable(&window), "nothing is used before it is approved");
    pictured(&mut window, "agent-tools");
    window.get_by_label("Approve double").click();
    until(&mut window, "it is approved", |window| usable(window));
    file(&mut window, &to);
    window.get_by_label("Export").click();
    until(&mut window, "it is written", |window| shows(window, "Saved as ") && to.exists());
    window.get_by_label("Switch off double").click();
    until(&mut window, "it is off", |window| !usable(window));
    click_label(&mut window, "Refuse double");
    assert!(shows(&mut window, "There's no undo"), "the user is told before anything is deleted");
    click_label(&mut window, "Keep double");
    assert!(shows(&mut window, "Tool: double") && !shows(&mut window, "There's no undo"));
    click_label(&mut window, "Refuse double");
    window.get_by_label("Refuse double permanently").click();
    until(&mut window, "it is gone", |window| session(window).user_tools().is_some_and(<[_]>::is_empty));
}

#[test]
fn ten_thousand_steps_cost_no_frame() {
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    let mut window = bench.opened();
    let volume = session(&window).volumes().next().expect("a volume").id;
    let (session_id, run_id) = (DocId([3; 16]), DocId([4; 16]));
    let asked = store::SessionMessage::new(store::MessageId(1), Speaker::User, "a long way", 1);
    let said = store::SessionMessage {
        parents: vec![store::MessageId(1)],
        run: Some(run_id),
        ..store::SessionMessage::new(store::MessageId(2), Speaker::Assistant, "done", 2)
    };
    let title = "Long".to_owned();
    let messages = vec![asked, said];
    window.state_mut().send_command(Command::ImportSession {
        session: session_id,
        volume,
        title,
        messages,
        imported: None,
    });
    let steps: Vec<store::ExecutionStep> = (0..10_000_u64)
        .map(|number| store::ExecutionStep {
            id: store::StepId(number + 1),
            timestamp: i64::try_from(number).expect("small"),
            duration: Some(3),
            parents: number.checked_sub(1).map(|before| store::StepId(before + 1)).into_iter().collect(),
            kind: store::StepKind::Thinking { content: format!("thought {number}"), is_streaming: None },
            spent: None,
            route: None,
            tool: None,
        })
        .collect();
    let about = store::RunAbout {
        session: session_id,
        asked: store::MessageId(1),
        head: store::MessageId(2),
        volume,
        note: None,
        prompt: "a long way".to_owned(),
        agent: "assistant".to_owned(),
        start_time: 0,
        ended: Some(1),
        ending: Some(store::RunEnding::Done),
        iteration: 1,
        limit: 20,
        agent_state: store::AgentState::Idle,
        spent: store::CallUsage::default(),
        budget: None,
        origin: store::RunOrigin::User,
        phase: 0,
        imported: None,
        provider: None,
        deadline: None,
        is_follower: false,
    };
    window.state_mut().send_command(Command::ImportRun {
        run: run_id,
        about: Box::new(about),
        todos: Vec::new(),
        steps,
        approvals: Vec::new(),
    });
    press(&mut window, Modifiers::COMMAND | Modifiers::ALT, Key::I);
    until(&mut window, "the session is shown", |window| shows(window, "Change the title: Long"));
    assert!(shows(&mut window, "cost unknown"), "what is not known is not guessed");
    click_label(&mut window, "Run timeline");
    assert!(shows(&mut window, "Timeline of 10000 steps"));
    press(&mut window, NONE, Key::ArrowRight);
    press(&mut window, NONE, Key::End);
    assert!(shows(&mut window, "10000. Model call"));
    assert!(window.query_by_label_contains("Step 1: Model call").is_none(), "only what is in sight is drawn");
    for button in ["Step 10000: Model call thought 9999", "Fit to window"] {
        window.get_by_label(button).click();
        window.run();
        let begun = support::measure::thread_cpu();
        window.run_steps(60);
        let frame = (support::measure::thread_cpu() - begun) / 60;
        // CPU time of a debug build; drawing all boxes with their text would take hundreds of milliseconds.
        assert!(frame < Duration::from_millis(120), "{button}: {frame:?}");
    }
}

/// Saves screenshots of the agent for people to look at, if requested.
#[test]
fn pictures_of_the_agent() {
    let Some(folder) = pictures_folder() else { return };
    let (address, go) = model(|turn, _| match turn {
        0 => (
            "I look at the note, then write the plan.".to_owned(),
            vec![
                (
                    "todo_write",
                    json!({"todos": [{"content": "Read what is there", "status": "completed"},
                    {"content": "Write the plan", "status": "in_progress"}, {"content": "Count the weeks"}]}),
                ),
                ("read_file", json!({"path": "Talk.md"})),
                ("search", json!({"query": "beans"})),
            ],
        ),
        1 => (
            String::new(),
            vec![(
                "edit_file",
                json!({"path": "Talk.md", "old_content": "Beans in May.\n",
                "new_content": "Beans in May, peas in April.\n\n- [ ] Dig the north bed\n"}),
            )],
        ),
        2 => (String::new(), vec![("shell", json!({"command": "wc -l Talk.md && grep -n beans Talk.md"}))]),
        _ => (
            "## The plan\n\nTwo things are **new**:\n\n1. peas come first, in April\n2. the north bed is dug\n\n\
             ```python\nweeks = {\"Beans\": 9, \"Peas\": 11}\nprint(sum(weeks.values()))\n```\n\n| Crop | Weeks |\n\
             |---|---:|\n| Beans | 9 |\n| Peas | 11 |\n\nSee [[Talk]] for ‖ the rest."
                .to_owned(),
            Vec::new(),
        ),
    });
    let bench = Bench::new(&[(talk(), "# Plan for the garden\n\nBeans in May.\n\nThe rest waits for rain.\n")]);
    let mut window = asked(&bench, &address);
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        let name = |what: &str| format!("{theme}-agent-{what}");
        if theme == "dark" {
            window.state_mut().send_command(Command::ReadSetup);
            let ctx = window.ctx.clone();
            window.state_mut().perform_command(&ctx, CommandId::AgentNew);
            window.run();
        }
        ask(&mut window, "Plan the garden for this year, and say how many weeks it takes.");
        soon(&mut window, "it asks", |window| shows(window, "The agent waits"));
        picture(&mut window, &folder, &name("approval"));
        window.get_by_label("Allow").click();
        soon(&mut window, "it writes", |window| shows(window, "Writing"));
        picture(&mut window, &folder, &name("writing"));
        go.send(()).expect("it waits");
        soon(&mut window, "it has ended", ended);
        picture(&mut window, &folder, &name("done"));
        for (command, what) in [
            (CommandId::AgentTimeline, "timeline"),
            (CommandId::AgentChanges, "changes"),
            (CommandId::AgentBranches, "branches"),
        ] {
            let ctx = window.ctx.clone();
            window.state_mut().perform_command(&ctx, command);
            window.run();
            if what == "timeline" {
                press(&mut window, NONE, Key::ArrowRight);
                press(&mut window, NONE, Key::ArrowRight);
            }
            picture(&mut window, &folder, &name(what));
        }
        press(&mut window, NONE, Key::Escape);
        press(&mut window, CTRL, Key::Comma);
        window.get_by_role_and_label(Role::Tab, "Agents and models").click();
        window.run();
        picture(&mut window, &folder, &name("settings"));
        press(&mut window, NONE, Key::Escape);
    }
}

#[test]
fn the_phases_of_larger_work_are_seen_in_the_panel_and_on_the_timeline() {
    let (address, _) = model(|_, body| {
        let mut tools = body["tools"].as_array().into_iter().flatten();
        if tools.any(|tool| tool["function"]["name"] == "plan") {
            let tasks = json!([{"id": "sum", "goal": "Sum the rain of each day"},
                {"id": "mean", "goal": "Find the mean of each week"},
                {"id": "write", "goal": "Write of the rain", "needs": ["sum", "mean"]}]);
            return (String::new(), vec![("plan", json!({"project": "rain", "tasks": tasks}))]);
        }
        ("31 mm fell.".to_owned(), Vec::new())
    });
    let bench = Bench::new(&[(talk(), "# Talk\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "@system Report on the rain of October");
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "it is said", |window| shows(window, "All 8 phases are done"));
    window.get_by_label("Phase 7 of 8: Summarise"); // above the answer, at the end of the conversation
    click_label(&mut window, "All 8 phases are done");
    for (number, name) in (1..).zip(engine::PHASE_NAMES) {
        assert!(shows(&mut window, &format!("Phase {number}: {name}, over, ")), "{name}");
    }
    pictured(&mut window, "phases-panel");
    // A phase leads to its steps.
    window.get_by_label_contains("Phase 4: Execute the plan, over, ").click();
    window.run();
    let seen = window.query_all_by_label("Phase 4 of 8: Execute the plan").count();
    assert!(seen >= 2, "above its steps, and beside the one that is chosen: {seen}");
    click_label(&mut window, "Fit to window");
    for (number, name) in (1..).zip(engine::PHASE_NAMES) {
        assert!(shows(&mut window, &format!("Phase {number} of 8: {name}")), "{name}");
    }
    pictured(&mut window, "phases-timeline");
}
