//! Tools of the user's own, through the program: plugins in Python, versions, permissions, tool files; and whole
//! sessions in files.

use super::agents::{Said, house, model, without_events};
use crate::program::House;
use serde_json::{Value, json};

/// A model that makes one call and then repeats its result.
pub(crate) fn one_call(name: &'static str, arguments: Value) -> String {
    model(move |turn, body| -> Said {
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        match turn {
            0 => (String::new(), vec![(name, arguments.clone())]),
            _ => (last["content"].as_str().unwrap_or_default().to_owned(), Vec::new()),
        }
    })
}

pub(crate) fn import(house: &House, tool: &Value) {
    house.fed(&["tools", "--import", "-"], tool.to_string().as_bytes()).good();
}

/// Asks with all calls of one tool allowed, and returns the answer.
pub(crate) fn ask(house: &House, tool: &str) -> String {
    let steps = without_events(house.run(&["ask", "go", "--approve", tool, "--json"]).code(0).lines());
    steps.last().and_then(|step| step["content"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_python_plugin_is_found_approved_by_its_content_and_used() {
    let house = house(&one_call("simulate_quantum", json!({"circuit": "h"})), &[("a.md", "# A\n")]);
    let plugin = |answer: &str| {
        format!(
            "from __future__ import annotations\nimport asyncio\nfrom llm_os.plugins import llm_tool\n\n\
             @llm_tool(\"simulate_quantum\", \"Run quantum simulation\", {{\"circuit\": \"string\"}})\n\
             async def simulate(circuit: str):\n    await asyncio.sleep(0.01)\n    return [circuit, \"{answer}\"]\n"
        )
    };
    house.write("W/plugins/quantum.py", plugin("first").as_bytes());
    house.write("W/plugins/none.py", b"import os\n\nos.system('touch /tmp/never')\n");
    house.write("W/plugins/wrong.py", b"\n\n@llm_tool('wrong', 'x', load())\ndef wrong(): pass\n");
    house.write("W/plugins/broken.py", b"x = 1\ndef f(:\n");
    house.write("W/plugins/bad.json", b"{\n  \"name\": \"bad\",\n  oops\n}\n");
    house.write("W/plugins/readme.txt", b"hello\n");
    // Problems are printed to standard error, and nothing fails because of them.
    let listed = house.run(&["tools"]).code(0);
    for problem in [
        "plugins/none.py, line 1: it has no function with @llm_tool",
        "plugins/wrong.py, line 3: wrong: its arguments must be written out",
        "plugins/broken.py, line 2: it isn't valid Python",
        "plugins/bad.json isn't a tool file: key must be a string at line 3 column 3",
        "plugins/readme.txt is ignored: plugins are .py and .json files",
    ] {
        assert!(listed.err.contains(problem), "{problem}: {}", listed.err);
    }
    assert!(house.run(&["tools"]).code(0).text().contains("simulate_quantum (version 1) waits"));
    // Where an agent starts, the same is said.
    let unused = house.run(&["ask", "go", "--approve", "simulate_quantum"]);
    assert!(unused.err.contains("plugins/broken.py, line 2"), "{}", unused.err);
    assert!(unused.text().contains("there is no tool simulate_quantum"), "{}", unused.text());
    let code = house.run(&["tools", "simulate_quantum"]).code(0).text();
    assert!(code.contains("async def simulate(circuit: str):") && code.contains("waiting for approval"), "{code}");

    house.run(&["tools", "simulate_quantum", "--approve"]).code(0);
    assert_eq!(ask(&house, "simulate_quantum"), "[\"h\", \"first\"]");
    // The same content isn't asked about again; a changed file is, and until then the approved code runs.
    assert!(!house.run(&["tools"]).code(0).text().contains("waits"));
    house.write("W/plugins/quantum.py", plugin("second").as_bytes());
    house.run(&["tools"]).code(0);
    assert!(house.run(&["tools"]).code(0).text().contains("simulate_quantum (version 2) waits"));
    assert_eq!(ask(&house, "simulate_quantum"), "[\"h\", \"first\"]");
    house.run(&["tools", "simulate_quantum", "--approve"]).code(0);
    assert_eq!(ask(&house, "simulate_quantum"), "[\"h\", \"second\"]");
}

#[test]
fn versions_are_listed_compared_chosen_and_rolled_back() {
    let house = house(&one_call("double", json!({"x": 4})), &[("a.md", "# A\n")]);
    let tool = |code: &str| {
        json!({"name": "double", "func": code, "permissions": [], "schema": {"description": "Doubles.",
            "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}}})
    };
    import(&house, &tool("def run(x):\n    return 2 * x\n"));
    house.run(&["tools", "double", "--rollback"]).refused(2, "no version before");
    house.run(&["tools", "double", "--approve"]).good();
    assert_eq!(ask(&house, "double"), "8");
    import(&house, &tool("def run(x):\n    return x + x + 0.5\n"));
    let versions = house.run(&["tools", "double", "--versions"]).good().text();
    let states: Vec<&str> = versions.lines().collect();
    assert!(states[0].contains("2  waiting for approval") && states[1].contains("1  approved"), "{versions}");
    let diff = house.run(&["tools", "double@2", "--compare", "1"]).good().text();
    assert!(diff.contains("-    return 2 * x\n+    return x + x + 0.5"), "{diff}");
    house.run(&["tools", "double", "--compare", "9"]).refused(2, "no version 9");
    house.run(&["tools", "double", "--approve"]).good();
    assert_eq!(ask(&house, "double"), "8.5");
    assert!(house.run(&["tools", "double", "--rollback"]).good().text().contains("version 1"));
    assert_eq!(ask(&house, "double"), "8");
    assert!(!house.run(&["tools"]).good().text().contains("waits"), "version 2 was read before");
    house.run(&["tools", "double@2", "--approve"]).good();

    // Each call and each result names the tool, its version and its content.
    let id = house.run(&["tools", "double", "--json"]).good().lines()[0]["id"].clone();
    let runs = house.run(&["runs", "--json"]).good().lines();
    let mut used: Vec<(Value, Value)> = Vec::new();
    for run in runs.iter().rev() {
        let steps = house.run(&["steps", run["id"].as_str().expect("an id"), "--json"]).good().lines();
        let of = |kind: &str| steps.iter().find(|step| step["type"] == kind).expect("a step")["usedTool"].clone();
        let (call, result) = (of("tool_call"), of("tool_result"));
        assert_eq!((&call, &call["id"]), (&result, &id), "nothing changed in between");
        used.push((call["version"].clone(), call["hash"].clone()));
    }
    let versions: Vec<&Value> = used.iter().map(|(version, _)| version).collect();
    assert_eq!(versions, ["1", "2", "1"]);
    assert!(used[0].1 == used[2].1 && used[0].1 != used[1].1, "{used:?}");
    // Only tools of one's own have versions.
    house.run(&["tools", "shell", "--approve"]).refused(2, "isn't a tool of your own");
    house.run(&["tools", "--approve"]).refused(2, "say which tool");
}

#[test]
fn permissions_are_separate_and_hold() {
    let attempt =
        |line: &str| format!("    try:\n        {line}\n    except Exception as error: out.append(str(error))\n");
    let code = format!(
        "import urllib.request\ndef run():\n    out = []\n{}{}{}    return out\n",
        attempt("out.append(open('HERE/a.md').read())"),
        attempt("out.append(shell('echo it-ran'))"),
        attempt("urllib.request.urlopen('http://127.0.0.1:9/')"),
    );
    for (permissions, file, command, network, risk) in [
        (json!([]), false, false, false, "medium"),
        (json!(["fs"]), true, false, false, "medium"),
        (json!(["process"]), false, true, false, "medium"),
        (json!(["network"]), false, false, true, "high"),
        (json!(["network", "process"]), false, true, true, "critical"),
    ] {
        let house = house(&one_call("probe", json!({})), &[("a.md", "# Alpha\n")]);
        let schema = json!({"description": "Probes.", "parameters": {"type": "object"}});
        let code = code.replace("HERE", &house.path("notes").display().to_string());
        import(&house, &json!({"name": "probe", "func": code, "permissions": permissions, "schema": schema}));
        house.run(&["tools", "probe", "--approve"]).good();
        let said = ask(&house, "probe");
        assert_eq!(said.contains("# Alpha"), file, "{permissions}: {said}");
        assert_eq!(said.contains("it-ran"), command, "{permissions}: {said}");
        // With the permission, the host answers, and refuses this address by its policy.
        assert_eq!(said.contains("allowed_hosts"), network, "{permissions}: {said}");
        let listed = house.run(&["tools", "--json"]).good().lines();
        let probe = listed.iter().find(|tool| tool["name"] == "probe").expect("listed");
        assert_eq!((&probe["risk"], &probe["type"]), (&json!(risk), &json!("user")), "{probe}");
        assert_eq!(probe["requires_approval"], json!(true), "{probe}");
        let reads = listed.iter().find(|tool| tool["name"] == "read_file").expect("listed");
        assert_eq!((&reads["type"], &reads["requires_approval"]), (&json!("system"), &json!(false)), "{reads}");
    }
    // A picture is shown only with the permission.
    for (permissions, shown) in [(json!(["ui"]), true), (json!([]), false)] {
        let code = "import matplotlib.pyplot as plt\ndef run():\n    plt.plot([1, 2])\n    plt.show()\n    return 1\n";
        let house = house(&one_call("draw", json!({})), &[("a.md", "# A\n")]);
        let schema = json!({"description": "Draws.", "parameters": {"type": "object"}});
        import(&house, &json!({"name": "draw", "func": code, "permissions": permissions, "schema": schema}));
        house.run(&["tools", "draw", "--approve"]).good();
        let said = ask(&house, "draw");
        assert_eq!((said.contains("(a picture, "), said.contains("no ui permission")), (shown, !shown), "{said}");
    }
}

#[test]
fn a_tool_file_comes_back_as_it_was() {
    let house = house(&one_call("fetch_weather", json!({"city": "Rome"})), &[("a.md", "# A\n")]);
    let file = json!({"id": "uuid-555-666", "name": "fetch_weather", "version": 4,
        "func": "async def run(city):\n    return city.upper()\n", "schema": {"description": "Fetches weather data",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
        "type": "user", "permissions": ["network"], "created": "2026-02-08T10:00:00Z"});
    import(&house, &file);
    assert_eq!(house.run(&["tools", "fetch_weather", "--export"]).good().json(), json!([file]));
    house.run(&["tools", "fetch_weather", "--approve"]).good();
    assert_eq!(ask(&house, "fetch_weather"), "\"ROME\"");
    let mut script = file.clone();
    script["func"] = json!("def run(): pass");
    script["permissions"] = json!(["root"]);
    house.fed(&["tools", "--import", "-"], script.to_string().as_bytes()).refused(2, "there are network, fs, ui");
    // Steps name tools by their ids, so none passes for a tool of the program or of a server.
    for id in ["system:shell", "mcp:own/drop"] {
        let mut posing = file.clone();
        (posing["id"], posing["name"]) = (json!(id), json!("posing"));
        let said = house.fed(&["tools", "--import", "-"], posing.to_string().as_bytes());
        said.refused(2, "the id of posing begins with system: or mcp:");
    }
    assert!(!house.run(&["tools"]).good().text().contains("posing"));
}

/// A pattern that looks around may go back in a text without end, so it's stopped early.
#[test]
fn a_pattern_of_a_tool_takes_no_long_time() {
    let text = format!("{}!", "a".repeat(16));
    let house = house(&one_call("probe", json!({"text": text})), &[("a.md", "# A\n")]);
    let text = json!({"type": "string", "pattern": "^((?=a)a+)+$"});
    let schema = json!({"description": "Probes.", "parameters": {"type": "object", "properties": {"text": text}}});
    import(&house, &json!({"name": "probe", "func": "def run(text):\n    return 1\n", "schema": schema}));
    house.run(&["tools", "probe", "--approve"]).good();
    let said = ask(&house, "probe");
    assert!(said.contains("Max limit for backtracking count exceeded"), "{said}");
}

#[test]
fn ask_as_json_streams_and_says_what_waits() {
    let script = |turn: usize, _: &Value| -> Said {
        let schema = json!({"type": "object"});
        let tool = json!({"name": "five", "description": "Five.", "parameters": schema, "permissions": ["fs"],
            "code": "def run():\n    return 5\n"});
        match turn {
            0 => (String::new(), vec![("create_tool", tool)]),
            1 => (String::new(), vec![("shell", json!({"command": "echo x"}))]),
            _ => ("It is done now.".to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let lines = house.run(&["ask", "go", "--json", "--no-wait"]).code(1).lines();
    let pending = lines.iter().find(|line| line["type"] == "tool_pending").expect("the tool waits");
    assert_eq!((&pending["tool"]["name"], &pending["tool"]["permissions"]), (&json!("five"), &json!(["fs"])));
    assert!(pending["tool"]["func"].as_str().is_some_and(|code| code.contains("return 5")), "{pending}");
    let waits = lines.iter().find(|line| line["type"] == "approval_pending").expect("the call waits");
    let name = waits["name"].as_str().expect("a name");
    let after = house.run(&["approvals", name, "--allow", "--json"]).good().lines();
    // What was streamed is the beginning of the answer.
    let parts = after.iter().filter(|line| line["type"] == "delta").filter_map(|line| line["content"].as_str());
    assert!("It is done now.".starts_with(parts.collect::<String>().as_str()), "{after:?}");
    assert_eq!(after.last().map(|line| line["content"].clone()), Some(json!("It is done now.")), "{after:?}");
}

#[test]
fn a_command_runs_in_a_folder_of_the_project_only() {
    for (folder, said) in [("sub", "/sub"), ("./sub/", "/sub"), (".", "/notes"), ("../", "outside"), ("none", "none")] {
        let call = one_call("shell", json!({"command": "pwd; ls", "workdir": folder}));
        let house = house(&call, &[("a.md", "# A\n"), ("sub/inner.md", "# I\n")]);
        let answer = house.run(&["ask", "go", "--approve", "shell"]).text();
        assert!(answer.contains(said), "{folder}: {answer}");
        assert_eq!(answer.contains("inner.md"), said == "/sub", "{folder}: {answer}");
    }
}

#[test]
fn a_session_is_exported_with_all_branches_and_runs() {
    let script = |_: usize, body: &Value| -> Said {
        let asked = body["messages"].as_array().and_then(|all| all.iter().rev().find(|one| one["role"] == "user"));
        let kale = asked.is_some_and(|asked| asked["content"].to_string().contains("kale"));
        (if kale { "Kale in spring.".to_owned() } else { "Beans in May.".to_owned() }, Vec::new())
    };
    let house = house(&model(script), &[("a.md", "# Alpha\n\nplanted words\n")]);
    house.run(&["ask", "when are beans sown, as @a.md says?"]).good();
    let session = house.run(&["sessions", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    house.run(&["ask", "and kale?", "--session", &session, "--from", "begin"]).good();
    let file = house.run(&["sessions", &session, "--export", "json"]).good().json();
    let all = house.run(&["sessions", &session, "--all", "--json"]).good().lines();
    assert!(file["messages"].as_array().map_or(0, Vec::len) < all.len(), "the branch is shorter");
    assert_eq!(file["tracebook"]["tree"]["messages"].as_array().map_or(0, Vec::len), all.len());
    let other = self::house("http://127.0.0.1:9", &[("b.md", "# B\n")]);
    // Twice: each import is a session of its own.
    for _ in 0..2 {
        let imported = other.fed(&["sessions", "--import", "-"], file.to_string().as_bytes()).good().text();
        let imported = imported.trim();
        let there = other.run(&["sessions", imported, "--all", "--json"]).good().lines();
        let words = |all: &[Value]| all.iter().map(|one| one["content"].clone()).collect::<Vec<_>>();
        assert_eq!(words(&there), words(&all));
        let again = other.run(&["sessions", imported, "--export", "json"]).good().json();
        let texts = |file: &Value| words(file["messages"].as_array().expect("messages"));
        assert_eq!(texts(&again), texts(&file), "the current branch is the same");
        let runs = again["tracebook"]["tree"]["runs"].as_array().expect("runs").clone();
        let answers: Vec<&Value> =
            runs.iter().flat_map(|run| run["steps"].as_array().and_then(|steps| steps.last())).collect();
        let answers: Vec<&Value> = answers.iter().map(|step| &step["content"]).collect();
        assert_eq!(answers, ["Beans in May.", "Kale in spring."]);
    }
    let listed = other.run(&["sessions", "--json"]).good().lines();
    assert_eq!((listed.len(), &listed[0]["branches"]), (2, &json!(2)), "{listed:?}");
    let odd = b"{\"version\": 1, \"tracebook\": {\"tree\": {\"title\": 5}}}";
    other.fed(&["sessions", "--import", "-"], odd).refused(2, "tracebook.tree");
    other.run(&["sessions", "--export", "json"]).refused(2, "say which session");

    // In Markdown, what the program added stands apart, and the other branch follows.
    let text = house.run(&["sessions", &session, "--export", "md"]).good().text();
    assert!(text.contains("## You\n\nand kale?") && text.contains("# Another branch, from the beginning"), "{text}");
    assert!(!text.contains("## Tracebook") && text.contains("> *Added by Tracebook; nobody said this:*"), "{text}");
    let planted = text.lines().find(|line| line.contains("planted words")).expect("the note");
    assert!(planted.starts_with('>'), "{planted}");
    let page = house.run(&["sessions", &session, "--export", "html"]).good().text();
    assert!(page.contains("<blockquote>"), "{page}");
}

/// A server of the Model Context Protocol in `sh`, with a tool that says that it destroys something.
const SERVER: &str = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
while read -r line; do
    case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18",' "$(id)"
        printf '"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"look","inputSchema":' "$(id)"
        printf '{"type":"object"}},{"name":"drop","annotations":{"destructiveHint":true},"inputSchema":'
        printf '{"type":"object"}}]}}\n' ;;
    esac
done"#;

#[test]
fn what_a_server_calls_destructive_is_critical() {
    let house = house("http://127.0.0.1:9", &[("a.md", "# A\n")]);
    house.write("W/server.sh", SERVER.as_bytes());
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    let path = house.path("W/server.sh").display().to_string();
    let server = format!("mcp:\n  servers:\n    own: {{command: sh, args: [\"{path}\"]}}\n");
    house.write("W/config.yaml", format!("{config}{server}").as_bytes());
    let listed = house.run(&["tools", "--json"]).good().lines();
    let risk = |id: &str| {
        let tool = listed.iter().find(|tool| tool["id"] == id).unwrap_or_else(|| panic!("{id}: {listed:?}"));
        (tool["risk"].clone(), tool["type"].clone(), tool["requires_approval"].clone())
    };
    assert_eq!(risk("mcp:own/drop"), (json!("critical"), json!("server"), json!(true)));
    assert_eq!(risk("mcp:own/look"), (json!("high"), json!("server"), json!(true)));
}
