//! Permissions, through the program: what an approval shows, what a permanent decision allows, and what never reaches
//! the terminal.

use super::agents::{Said, house, model};
use super::meaning::serve;
use crate::program::{finish, until};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use store::disk::{Disk, RowWrite, SqliteDisk};

/// Serves a local page and counts its requests. Returns its address.
fn page(seen: &Arc<AtomicUsize>) -> String {
    let seen = seen.clone();
    serve(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        (200, "Content-Type: text/plain\r\n".to_owned(), b"planted".to_vec())
    })
}

/// A model that makes one call and then repeats its result.
fn one_call(name: &'static str, arguments: Value) -> String {
    model(move |turn, body| -> Said {
        match turn {
            0 => (String::new(), vec![(name, arguments.clone())]),
            _ => (last(body), Vec::new()),
        }
    })
}

/// The content of the last message of a request.
fn last(body: &Value) -> String {
    body["messages"].as_array().and_then(|all| all.last()).map_or_else(String::new, |last| last["content"].to_string())
}

/// Asserts that a text has no characters that move the cursor, change direction or hide.
fn assert_plain(what: &str, text: &str) {
    let bad = text.chars().find(|c| *c != '\n' && *c != '\t' && text::untrusted_text::is_unsafe_char(*c));
    assert!(bad.is_none(), "{what}: {bad:?} in {text:?}");
}

#[test]
fn a_question_without_an_answer_ends_its_line() {
    let called = Arc::new(AtomicUsize::new(0));
    let calls = called.clone();
    let address = model(move |turn, body| -> Said {
        calls.fetch_add(1, Ordering::Relaxed);
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "ls"}))]),
            _ => (last(body), Vec::new()),
        }
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    let command = house.command(&["ask", "go"]);
    let done = std::thread::scope(|scope| {
        let running = scope.spawn(move || finish(command, b""));
        until("the model is asked", || called.load(Ordering::Relaxed) > 0);
        let waiting = || house.run(&["approvals", "--json"]).good().lines();
        until("it waits for the user", || !waiting().is_empty());
        let name = waiting()[0]["name"].as_str().expect("a name").to_owned();
        house.run(&["approvals", &name, "--deny"]).good();
        running.join().expect("ended")
    });
    let (question, rest) = done.err.split_once(": \n").unwrap_or_else(|| panic!("{}", done.err));
    assert!(question.contains("Allow? [y]es") && rest.contains(": waits for `tracebook approvals "), "{}", done.err);
}

#[test]
fn nothing_that_others_wrote_steers_the_terminal() {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\u{202e}txt\u{2066}\u{200b}\u{9b}1m\u{e0041}";
    let command = format!("echo {evil}\necho hidden");
    let house = house(&one_call("shell", json!({"command": command})), &[("a.md", "# A\n")]);
    let name = "e\u{1b}[31mvil\u{202e}\u{2028}.md";
    house.write(&format!("notes/{name}"), format!("# T{evil}\n\n[[no{evil}where]] - [ ] x{evil}\n").as_bytes());
    let words = format!("do {evil} it");
    // Nobody answers: the approval stays pending, and is listed.
    let asked = house.run(&["ask", &words, "--no-wait"]);
    assert_plain("ask", &asked.text());
    assert_plain("ask", &asked.err);
    let waiting = house.run(&["approvals"]).good().text();
    assert!(waiting.contains("␛[2J") && waiting.contains("\\u{202e}") && waiting.contains("echo hidden"), "{waiting}");
    assert_eq!(waiting.lines().filter(|line| line.contains("waits")).count(), 1, "{waiting}");
    for words in [
        &["approvals"][..],
        &["approvals", "--all", "--json"],
        &["steps", "last"],
        &["steps", "last", "--json"],
        &["runs"],
        &["runs", "last"],
        &["runs", "last", "--export"],
        &["sessions"],
        &["ls"],
        &["links", "--nowhere"],
        &["todos"],
        &["search", "evil"],
        &["tools"],
    ] {
        let done = house.run(words);
        assert_plain(&words.join(" "), &done.text());
        assert_plain(&words.join(" "), &done.err);
    }
    // Each file is one line of the list, whatever its name.
    assert_eq!(house.run(&["ls"]).good().text().lines().filter(|line| line.contains("vil")).count(), 1);
    // `--json` output has the text exactly as written.
    let kept: Value = house.run(&["approvals", "--json"]).good().lines().remove(0);
    assert_eq!(kept["arguments"]["command"], json!(command));
    assert_eq!(house.cat(name), house.read(&format!("notes/{name}")));
    house.run(&["cat", &format!("nowhere{evil}")]).refused(2, "␛[2J");
}

#[test]
fn nothing_that_a_model_or_a_note_says_steers_the_terminal() {
    const EVIL: &str = "x\u{1b}[2J\u{7}\r\u{202e}txt\u{2066}\u{200b}\u{9b}1m\u{e0041}";
    let said = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (format!("First {EVIL}"), vec![("read_file", json!({"path": "a.md"}))]),
            _ => (format!("At the end {EVIL}"), Vec::new()),
        }
    };
    let tasks = format!("# Head {EVIL}\n\nTold 👩\u{200d}💻 {EVIL}\n\n- [ ] todo {EVIL}\n");
    let house = house(&model(said), &[("a.md", &tasks)]);
    let asked = house.run(&["ask", "go"]).good();
    assert!(asked.text().contains("At the end x␛[2J␇") && asked.text().contains("\\u{202e}txt"), "{}", asked.text());
    let joined = "👩\u{200d}💻";
    assert!(asked.text().contains(joined), "an emoji stays one");
    assert_plain("ask", &asked.text().replace(joined, ""));
    assert_plain("ask", &asked.err);
    let session = house.run(&["sessions", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    for (words, part) in [
        (&["steps", "last"][..], "At the end x␛[2J"),
        (&["sessions"], "go"),
        (&["sessions", &session], "At the end x␛[2J"),
        (&["runs", "last"], "go"),
        (&["todos"], "todo x␛[2J"),
        (&["search", "told"], "a.md"),
    ] {
        let done = house.run(words);
        let text = done.text().replace(joined, "");
        assert!(text.contains(part), "{words:?}: {text}{}", done.err);
        assert_plain(&words.join(" "), &text);
        assert_plain(&words.join(" "), &done.err);
    }
}

#[test]
fn an_approval_shows_all_of_what_would_run() {
    let code: String =
        (0..400).map(|line| format!("print({line})\n")).collect::<String>() + "import os\nos.remove('x')\n";
    let house = house(&one_call("run_python", json!({"code": code})), &[("a.md", "# A\n")]);
    let asked = house.fed(&["ask", "go"], b"n\n");
    for line in code.lines() {
        assert!(asked.err.contains(&format!("    {line}\n")), "{line}: {}", asked.err);
    }
    assert!(asked.err.contains("A lasting answer allows exactly this."), "{}", asked.err);

    let text = "# A\n\n```python\nimport os\nos.remove('report.md')\n```\n";
    let cells = self::house(&one_call("run_cell", json!({"path": "a.md", "cell": 1})), &[("a.md", text)]);
    let asked = cells.fed(&["ask", "go", "--no-wait"], b"");
    assert_eq!(asked.code, 1);
    let waiting = cells.run(&["approvals"]).good().text();
    assert!(waiting.contains("    Cell 1:\n    import os\n    os.remove('report.md')\n"), "{waiting}");
}

#[test]
fn a_lasting_answer_to_an_address_is_about_its_site() {
    let seen = Arc::default();
    let (here, other) = (page(&seen), page(&seen));
    let wanted: Arc<Mutex<String>> = Arc::default();
    let script = {
        let wanted = wanted.clone();
        move |turn: usize, body: &Value| -> Said {
            let url = wanted.lock().expect("whole").clone();
            match turn {
                0 => (String::new(), vec![("fetch_url", json!({"url": url}))]),
                _ => (last(body), Vec::new()),
            }
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let ask = |url: String, input: &[u8]| -> (String, String) {
        *wanted.lock().expect("whole") = url;
        let done = house.fed(&["ask", "fetch it"], input);
        (done.text(), done.err)
    };
    let (text, asked) = ask(format!("{here}/a?*"), b"p\n");
    assert!(
        asked.contains("loopback address 127.0.0.1") && asked.contains("any address at http://127.0.0.1:"),
        "{asked}"
    );
    assert!(text.contains("planted"), "{text}");
    // The same site and port needs no further approval; its address within another URL does.
    let (text, asked) = ask(format!("{here}/b"), b"");
    assert!(text.contains("planted") && !asked.contains("Allow?"), "{text}{asked}");
    let (text, asked) = ask(format!("{other}/?x={here}/"), b"n\n");
    assert!(asked.contains("Allow?") && !text.contains("planted"), "{text}{asked}");
    assert_eq!(seen.load(Ordering::Relaxed), 2);
    // The question names the rule that allows it; a rule for the tool alone doesn't.
    let rule = format!("fetch_url: {other}/*");
    assert!(asked.contains(&format!("only a rule that names it, as in `{rule}`, allows that unasked")), "{asked}");
    *wanted.lock().expect("whole") = format!("{other}/c");
    let done = house.fed(&["ask", "fetch it", "--approve", "fetch_url"], b"n\n");
    assert!(done.err.contains("Allow?") && !done.text().contains("planted"), "{}{}", done.text(), done.err);
    let done = house.run(&["ask", "fetch it", "--approve", &rule]).good().text();
    assert!(done.contains("planted"), "{done}");
    let rules = house.run(&["approvals", "--rules"]).good().text();
    assert!(rules.contains("fetch_url: any address at http://127.0.0.1:") && rules.contains("loopback"), "{rules}");
    // Other spellings of the same address are asked about under the address that they stand for.
    let port = here.rsplit(':').next().expect("a port");
    for form in ["0x7f000002", "2130706434", "[::ffff:127.0.0.2]", "0.0.0.0"] {
        let (text, asked) = ask(format!("http://{form}:{port}/"), b"n\n");
        assert!(
            asked.contains("loopback address 127.0.0.2") || asked.contains("loopback (unspecified) address 0.0.0.0"),
            "{form}: {asked}"
        );
        assert!(!text.contains("planted"), "{form}: {text}");
    }
}

#[test]
fn a_record_says_what_was_run() {
    let house = house(&one_call("shell", json!({"command": "echo asked"})), &[("a.md", "# A\n")]);
    house.fed(&["ask", "go", "--no-wait"], b"");
    let name = house.run(&["approvals", "--json"]).good().lines()[0]["name"].as_str().expect("a name").to_owned();
    let why = house.run(&["approvals", &name, "--allow", "--arguments", "{\"cmd\": \"x\"}"]);
    assert_eq!(why.code, 2, "{}", why.err);
    house.run(&["approvals", &name, "--allow", "--arguments", "{\"command\": \"echo changed\"}"]).good();
    let steps = house.run(&["steps", "last"]).good().text();
    assert!(
        steps.contains("shell, asked for: echo asked\n") && steps.contains("shell, run: echo changed\n"),
        "{steps}"
    );
    let json = house.run(&["steps", "last", "--json"]).good().lines();
    let call = json.iter().find(|step| step["type"] == "tool_call").expect("a call");
    assert_eq!(call["executedParams"], json!({"command": "echo changed"}), "{call}");
    // The result itself records the arguments that the tool ran with.
    let result = json.iter().find(|step| step["type"] == "tool_result").expect("a result");
    assert_eq!(result["usedTool"]["arguments"], json!({"command": "echo changed"}), "{result}");
    assert_eq!((&result["usedTool"]["id"], &call["usedTool"]["id"]), (&json!("system:shell"), &json!("system:shell")));
    let all = house.run(&["approvals", "--all"]).good().text();
    assert!(all.contains("command: echo changed"), "{all}");
}

#[test]
fn a_tool_with_network_obeys_the_list_of_hosts() {
    let seen: Arc<AtomicUsize> = Arc::default();
    let there = page(&seen);
    let code = format!(
        "import urllib.request, socket\ndef run():\n    out = []\n    try:\n        \
         out.append(urllib.request.urlopen('{there}/x').read().decode())\n    \
         except Exception as error: out.append(str(error))\n    try: \
         socket.create_connection(('127.0.0.1', {}))\n    \
         except Exception as error: out.append(type(error).__name__)\n    return out\n",
        there.rsplit(':').next().expect("a port")
    );
    let tool = json!({"name": "peek", "version": 1, "description": "Looks.", "parameters": {"type": "object"},
        "code": code, "network": true, "created": 0, "author": "an agent"});
    let address = one_call("peek", json!({}));
    for (security, reached) in [
        ("{network_restricted: true, allowed_hosts: [github.com]}", false),
        ("{network_restricted: true, allowed_hosts: [localhost]}", false),
        ("{network_restricted: false}", false),
        ("{network_restricted: true, allowed_hosts: [127.0.0.1]}", true),
    ] {
        let house = house(&address, &[("a.md", "# A\n")]);
        let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
        house.write("W/config.yaml", format!("{config}security: {security}\n").as_bytes());
        house.fed(&["tools", "--import", "-"], tool.to_string().as_bytes()).good();
        house.run(&["tools", "peek", "--approve"]).good();
        let before = seen.load(Ordering::Relaxed);
        let done = house.run(&["ask", "look", "--approve", "peek"]).text();
        assert_eq!(done.contains("planted"), reached, "{security}: {done}");
        assert_eq!(seen.load(Ordering::Relaxed) - before, usize::from(reached), "{security}: {done}");
        assert!(done.contains("PermissionError") || done.contains("OSError"), "no socket of its own: {done}");
    }
}

#[test]
fn a_tool_server_obeys_the_list_of_hosts() {
    let seen: Arc<AtomicUsize> = Arc::default();
    let there = page(&seen);
    // A server on the list of hosts that redirects to another host.
    let led: Arc<AtomicUsize> = Arc::default();
    let (count, target) = (Arc::clone(&led), there.replace("127.0.0.1", "localhost"));
    let leads = serve(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        (307, format!("Location: {target}/mcp\r\n"), Vec::new())
    });
    let address = model(|_, _| -> Said { ("Done.".to_owned(), Vec::new()) });
    let refusal = "the MCP server far: 127.0.0.1 is not on the list of hosts; add it to allowed_hosts";
    for (url, security, refused, reached, asked) in [
        (&there, "{network_restricted: true, allowed_hosts: [github.com]}", true, false, false),
        (&there, "{network_restricted: true, allowed_hosts: []}", true, false, false),
        (&leads, "{network_restricted: true, allowed_hosts: [127.0.0.1]}", false, false, true),
        (&there, "{network_restricted: true, allowed_hosts: [127.0.0.1]}", false, true, false),
        (&there, "{network_restricted: false}", false, true, false),
    ] {
        let house = house(&address, &[("a.md", "# A\n")]);
        let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
        let servers = format!("mcp:\n  servers:\n    far: {{url: \"{url}/mcp\"}}\n");
        house.write("W/config.yaml", format!("{config}{servers}security: {security}\n").as_bytes());
        let before = (seen.load(Ordering::Relaxed), led.load(Ordering::Relaxed));
        let done = house.run(&["ask", "look"]);
        assert!(done.text().contains("Done."), "{security}: {done:?}");
        assert_eq!(done.err.matches(refusal).count(), usize::from(refused), "{security}: {}", done.err);
        assert_eq!(house.run(&["tools"]).err.contains(refusal), refused, "{security}");
        assert_eq!(seen.load(Ordering::Relaxed) > before.0, reached, "{security}: {}", done.err);
        assert_eq!(led.load(Ordering::Relaxed) > before.1, asked, "{security}: {}", done.err);
    }
}

#[test]
fn without_the_sandbox_each_program_is_asked_about() {
    let house = house(&one_call("shell", json!({"command": "echo ran >> ran.log"})), &[("a.md", "# A\n")]);
    super::follower::add_config(&house, "approval:\n  never_approve: [shell]\n");
    let done = house.run(&["ask", "go"]).good();
    assert!(!done.err.contains("Allow?"), "{done:?}");
    super::follower::add_config(&house, "security:\n  sandbox_enabled: false\n");
    let done = house.fed(&["ask", "go"], b"n\n");
    assert!(done.err.contains("the configuration asks about each program") && done.err.contains("Allow?"), "{done:?}");
    assert_eq!(house.read("notes/ran.log"), b"ran\n");
    house.fed(&["ask", "go", "--approve", "read_file"], b"y\n").code(0);
    assert_eq!(house.read("notes/ran.log"), b"ran\nran\n");
}

#[test]
fn a_rule_that_cannot_be_read_permits_nothing_and_is_said() {
    let command: Arc<Mutex<&str>> = Arc::new(Mutex::new("echo one"));
    let script = {
        let command = Arc::clone(&command);
        move |turn: usize, body: &Value| -> Said {
            match turn {
                0 => (String::new(), vec![("shell", json!({"command": *command.lock().expect("whole")}))]),
                _ => (last(body), Vec::new()),
            }
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let ask = |line: &'static str, input: &[u8]| -> crate::program::Done {
        *command.lock().expect("whole") = line;
        house.fed(&["ask", "go"], input)
    };
    assert!(ask("echo one", b"a\n").text().contains("one"));
    let kept = |change: &dyn Fn(Value) -> Value| -> Value {
        let mut disk = SqliteDisk::open(&house.path("W"), false).expect("opened");
        let reader = disk.open_reader().expect("read");
        let before = reader.meta(engine::POLICY_RULES_KEY).expect("read").expect("there");
        let before: Value = serde_json::from_slice(&before).expect("JSON");
        let after = change(before.clone());
        let row =
            RowWrite::Meta { key: engine::POLICY_RULES_KEY.to_owned(), value: Some(after.to_string().into_bytes()) };
        disk.commit(&[row]).expect("committed");
        before
    };
    // Damaged rules beside the valid one. Each would allow any command if its damage were ignored.
    let all = json!({"tool": "shell", "calls": {"kind": "all"}});
    let damaged = [
        json!({"pattern": "shell", "word": "allow", "within": "nowhere"}),
        json!({"pattern": "shell", "word": "allow", "withim": store::DocId([1; 16])}),
        json!({"pattern": "shell", "word": "permit"}),
        json!({"decided": all, "word": "allow", "until": 1}),
        json!({"decided": all, "pattern": "shell: ls", "word": "allow"}),
        json!({"decided": {"tool": "shell", "calls": {"kind": "all", "below": "x"}}, "word": "allow"}),
        json!({"decided": {"tool": "shell", "calls": {"kind": "all"}, "unless": "rm"}, "word": "allow"}),
        json!({"decided": {"tool": "shell", "calls": {"kind": "whatever"}}, "word": "allow"}),
        json!({"word": "allow"}),
        json!("shell\u{202e}"),
    ];
    kept(&|good| Value::Array([&damaged[..4], good.as_array().expect("rules"), &damaged[4..]].concat()));
    // Only the valid rule counts.
    let done = ask("echo one", b"");
    assert!(done.text().contains("one") && !done.err.contains("Allow?"), "{done:?}");
    let done = ask("echo two", b"n\n");
    assert!(done.err.contains("Allow?") && done.text().contains("denied"), "{done:?}");
    let bad = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11];
    for number in 1..=11 {
        let words = format!("rule {number} from your approvals can't be read, so it doesn't apply");
        assert_eq!(done.err.contains(&words), bad.contains(&number), "{number}: {}", done.err);
    }
    let rules = house.run(&["approvals", "--rules"]).code(0).text();
    assert!(rules.contains("3  skip   this version can't read it") && rules.contains("\"permit\""), "{rules}");
    assert!(rules.contains("5  allow  shell: exactly") && !rules.contains('\u{202e}'), "{rules}");
    // Damaged rules are kept unchanged when others are added, until the user removes them.
    assert!(ask("echo three", b"a\n").text().contains("three"));
    let now = kept(&|now| now);
    let now = now.as_array().expect("rules");
    assert!(now.len() == 12 && damaged.iter().all(|rule| now.contains(rule)), "{now:?}");
    for number in bad.iter().rev() {
        house.run(&["approvals", "--forget", &number.to_string()]).code(0);
    }
    let done = ask("echo three", b"");
    assert!(done.text().contains("three") && !done.err.contains("can't be read"), "{done:?}");
    // The whole value is damaged.
    kept(&|_| json!({"rules": ["precious"]}));
    let done = ask("echo one", b"n\n");
    assert!(done.err.contains("none of them applies") && done.err.contains("Allow?"), "{done:?}");
    // The damaged value is kept beside the next decision.
    assert!(ask("echo four", b"a\n").text().contains("four"));
    let rules = house.run(&["approvals", "--rules"]).code(0).text();
    assert!(rules.contains("1  skip") && rules.contains("precious") && rules.contains("2  allow"), "{rules}");
}

#[test]
fn what_came_after_the_code_was_read_is_not_approved() {
    let house = house(&one_call("list_files", json!({})), &[("a.md", "# A\n")]);
    let propose = |code: &str| {
        let tool = json!({"name": "peek", "version": 1, "description": "Looks.", "parameters": {"type": "object"},
            "code": code});
        house.fed(&["tools", "--import", "-"], tool.to_string().as_bytes()).good();
    };
    propose("def run():\n    return 'harmless'\n");
    assert!(house.run(&["tools", "peek"]).good().text().contains("harmless"));
    // Another version is proposed between the review and the approval.
    propose("def run():\n    return 'evil\u{202e}'\n");
    house.run(&["tools", "peek", "--approve"]).refused(2, "several versions");
    let code = house.run(&["tools", "peek"]).good().text();
    assert!(code.contains("evil\\u{202e}"), "{code}");
    house.run(&["tools", "peek@2", "--approve"]).good();
    house.run(&["tools", "peek@7", "--approve"]).refused(2, "no version 7");
}

#[test]
fn a_note_written_over_a_link_says_where_its_text_is() {
    for (to, why) in [("../key", "leads out of the volume"), ("a.md", "stays in the volume"), ("no", "leads nowhere")] {
        let model = one_call("write_file", json!({"path": "key.md", "content": "mine\n"}));
        let house = house(&model, &[("a.md", "# A\n")]);
        house.write("key", b"SECRET");
        std::os::unix::fs::symlink(to, house.path("notes/key.md")).expect("linked");
        let asked = house.run(&["ask", "go", "--approve", "write_file"]);
        let said = house.run(&["steps", "last"]).text();
        assert!(said.contains("key.md isn't written to the folder") && said.contains(why), "{to}: {said}");
        assert!(said.contains("rename or delete key.md") && !said.contains("Created key.md"), "{to}: {said}");
        assert!(asked.err.contains("not everything could be saved yet"), "{to}: {asked:?}");
        // As reported: the link and its target are unchanged, and the text is there once the link is removed.
        assert!(house.path("notes/key.md").is_symlink(), "{to}");
        assert_eq!(house.read("key"), b"SECRET");
        assert_eq!(house.read("notes/a.md"), b"# A\n");
        std::fs::remove_file(house.path("notes/key.md")).expect("removed");
        assert!(house.run(&["cat", "key.md"]).code(0).text().contains("mine\n"), "{to}");
        assert!(String::from_utf8_lossy(&house.read("notes/key.md")).contains("mine\n"), "{to}");
    }
}

#[test]
fn a_note_is_not_written_behind_a_link_to_what_is_asked_about() {
    let model = one_call("write_file", json!({"path": "docs/helper.md", "content": "evil\n"}));
    let house = house(&model, &[("a.md", "# A\n")]);
    std::fs::create_dir(house.path("notes/agents")).expect("made");
    std::os::unix::fs::symlink("agents", house.path("notes/docs")).expect("linked");
    house.run(&["ask", "go"]);
    let said = house.run(&["steps", "last"]).text();
    assert!(said.contains("docs/helper.md isn't written to the folder"), "{said}");
    assert!(!house.path("notes/agents/helper.md").exists(), "{said}");
}

/// The process that has the workspace open ends only once the run that another one decided about is at rest.
#[test]
fn a_decision_of_another_process_is_carried_out_before_the_owner_ends() {
    let house = house(&one_call("shell", json!({"command": "sleep 1; echo built > built.txt"})), &[("a.md", "# A\n")]);
    house.run(&["ask", "build", "--no-wait"]).code(1);
    let waiting = house.run(&["approvals", "--json"]).good().lines();
    let name = waiting[0]["name"].as_str().expect("it waits").to_owned();
    let owner = house.owner("a.md");
    let said = house.run(&["approvals", &name, "--allow"]).good();
    assert!(said.text().contains("Allowed. The program that has the workspace open continues"), "{said:?}");
    owner.end();
    house.run(&["approvals", &name, "--deny"]).refused(2, "nothing waits");
    assert_eq!(house.read("notes/built.txt"), b"built\n");
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["standing"], "done");
}
