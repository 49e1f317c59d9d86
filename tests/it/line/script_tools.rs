//! Tools in JavaScript, through the program: the seed's tool file runs, each permission opens only its own door, and
//! hostile functions end with an error that names the tool.

use super::agents::house;
use super::meaning::serve;
use super::own_tools::{ask, import, one_call};
use crate::program::House;
use serde_json::{Value, json};

/// A house with one tool in JavaScript, approved, that a model calls once.
fn script_house(func: &str, permissions: &Value, files: &[(&str, &str)]) -> House {
    let house = house(&one_call("probe", json!({"city": "Rome"})), files);
    let schema = json!({"description": "Probes.", "parameters": {"type": "object"}});
    import(&house, &json!({"name": "probe", "func": func, "permissions": permissions, "schema": schema}));
    house.run(&["tools", "probe", "--approve"]).good();
    house
}

fn restrict_hosts(house: &House, hosts: &str) {
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    let security = format!("security: {{network_restricted: true, allowed_hosts: [{hosts}]}}\n");
    house.write("W/config.yaml", format!("{config}{security}").as_bytes());
}

#[test]
fn the_tool_file_of_the_seed_runs() {
    let weather = serve(|request| {
        let found = format!("{{\"path\": {:?}, \"temp\": 21}}", request.path);
        (200, "Content-Type: application/json\r\n".to_owned(), found.into_bytes())
    });
    let house = house(&one_call("fetch_weather", json!({"city": "Oslo"})), &[("a.md", "# A\n")]);
    restrict_hosts(&house, "127.0.0.1");
    let func =
        format!("async ({{ city }}) => {{ const res = await fetch(`{weather}/${{city}}`); return res.json(); }}");
    let file = json!({"id": "uuid-555-666", "name": "fetch_weather", "version": 1, "func": func,
        "schema": {"description": "Fetches weather data",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
        "type": "system", "permissions": ["network"], "created": "2026-02-08T10:00:00Z"});
    import(&house, &file);
    // It waits to be read, like every tool that was imported.
    assert!(house.run(&["tools"]).good().text().contains("fetch_weather (version 1) waits"));
    let shown = house.run(&["tools", "fetch_weather"]).good().text();
    assert!(shown.contains("JavaScript, may use network, waiting for approval"), "{shown}");
    house.run(&["tools", "fetch_weather", "--approve"]).good();
    assert_eq!(ask(&house, "fetch_weather"), "{\"path\":\"/Oslo\",\"temp\":21}");
    let mut exported = file.clone();
    exported["type"] = json!("user");
    assert_eq!(house.run(&["tools", "fetch_weather", "--export"]).good().json(), json!([exported]));
    // The same content isn't asked about again; other content is a version of its own.
    let mut changed = file;
    changed["func"] = json!("() => 1");
    import(&house, &changed);
    assert!(house.run(&["tools"]).good().text().contains("fetch_weather (version 2) waits"));
    assert_eq!(ask(&house, "fetch_weather"), "{\"path\":\"/Oslo\",\"temp\":21}");
}

#[test]
fn an_agent_proposes_a_tool_in_javascript() {
    let tool = json!({"name": "double", "description": "Doubles.", "parameters": {"type": "object"},
        "code": "async ({ x }) => 2 * x", "permissions": []});
    let house = house(&one_call("create_tool", tool), &[("a.md", "# A\n")]);
    assert!(house.run(&["ask", "go"]).good().text().contains("waits for the user"));
    let listed = house.run(&["tools", "double"]).good().text();
    assert!(listed.contains("JavaScript, no permissions, waiting for approval"), "{listed}");
    let bad = json!({"name": "bad", "language": "javascript", "func": "return 5", "permissions": [],
        "schema": {"description": "Bad.", "parameters": {"type": "object"}}});
    house.fed(&["tools", "--import", "-"], bad.to_string().as_bytes()).refused(2, "is one function");
    let mut other = bad;
    other["language"] = json!("ruby");
    house.fed(&["tools", "--import", "-"], other.to_string().as_bytes()).refused(2, "ruby");
}

#[test]
fn permissions_of_a_function_are_separate_and_hold() {
    let attempts = [
        "fs.readFile('a.md')",
        "shell('echo it-ran')",
        "fetch('http://127.0.0.1:9/')",
        "(async () => ui.show({ 'image/svg+xml': '<svg xmlns=\"http://www.w3.org/2000/svg\"/>' }))()",
        // Code that code makes gets no more than the function itself.
        "Function('return fs.readFile(\"a.md\")')()",
        "(0, eval)('shell(\"echo it-ran\")')",
    ];
    let tries =
        attempts.map(|attempt| format!("  try {{ out.push(await {attempt}); }} catch (e) {{ out.push(`${{e}}`); }}\n"));
    let func = format!("async () => {{\n  const out = [];\n{}  return out;\n}}", tries.concat());
    for permission in ["network", "fs", "ui", "process"] {
        let house = script_house(&func, &json!([permission]), &[("a.md", "# Alpha\n")]);
        let said = ask(&house, "probe");
        let refused = |name: &str| said.matches(&format!("probe has no {name} permission")).count();
        assert_eq!(said.contains("# Alpha"), permission == "fs", "{permission}: {said}");
        assert_eq!(said.contains("it-ran"), permission == "process", "{permission}: {said}");
        assert_eq!(said.contains("allowed_hosts"), permission == "network", "{permission}: {said}");
        assert_eq!(said.contains("(a picture, image/svg+xml"), permission == "ui", "{permission}: {said}");
        let expected = [("network", 1), ("fs", 2), ("ui", 1), ("process", 2)];
        for (name, count) in expected {
            assert_eq!(refused(name), if name == permission { 0 } else { count }, "{permission}: {name}: {said}");
        }
    }
}

#[test]
fn a_function_reaches_allowed_hosts_only() {
    let inside = serve(|_| (200, String::new(), b"planted".to_vec()));
    let port = inside.rsplit_once(':').expect("a port").1.to_owned();
    let away = serve(move |_| (302, format!("Location: http://localhost:{port}/\r\n"), Vec::new()));
    for (target, reached) in [(&inside, true), (&away, false), (&inside.replace("127.0.0.1", "localhost"), false)] {
        // Pretending to be another host and replacing what the program gave changes nothing.
        let func = format!(
            "async () => {{\n  Object.prototype.network = true; JSON.stringify = () => '{{}}';\n  \
             const answer = await fetch('{target}/', {{ headers: {{ Host: '127.0.0.1' }} }});\n  \
             return answer.text();\n}}"
        );
        let house = script_house(&func, &json!(["network"]), &[("a.md", "# A\n")]);
        restrict_hosts(&house, "127.0.0.1");
        let said = ask(&house, "probe");
        assert_eq!(said == "\"planted\"", reached, "{target}: {said}");
        assert_eq!(said.contains("localhost is not on the list of hosts (allowed_hosts)"), !reached, "{said}");
    }
}

#[test]
fn files_are_read_and_written_in_the_project_only() {
    let func = "async () => {
        const out = [];
        const attempt = async (name, act) => {
            try { out.push(`${name}: ${await act()}`); } catch (e) { out.push(`${name}: refused (${e.message})`); }
        };
        await fs.writeFile('new/made.md', '# Made\\n');
        await fs.writeFile('new/bytes.bin', new Uint8Array([0, 255, 10]));
        out.push((await fs.readFile('new/bytes.bin', null)).join());
        out.push((await fs.readdir('new')).join(), (await fs.stat('new/made.md')).size, await fs.exists('none.md'));
        await fs.unlink('old.md');
        await attempt('above', () => fs.readFile('../key.txt'));
        await attempt('absolute', () => fs.readFile('/etc/passwd'));
        await attempt('linked', () => fs.readFile('link.txt'));
        await attempt('secret', () => fs.readFile('.env'));
        await attempt('renamed secret', () => fs.readFile('plain.txt'));
        await attempt('hook', () => fs.writeFile('.git/hooks/pre-commit', '#!/bin/sh\\n'));
        await attempt('envrc', () => fs.writeFile('.envrc', 'touch x'));
        await attempt('workspace', () => fs.readFile('../W/config.yaml'));
        await attempt('object', () => fs.readFile({ toString: () => '../key.txt' }));
        return out;
    }";
    let files = [("a.md", "# A\n"), ("old.md", "# Old\n"), (".env", "planted secret\n")];
    let house = script_house(func, &json!(["fs"]), &files);
    house.write("key.txt", b"planted key");
    std::os::unix::fs::symlink(house.path("key.txt"), house.path("notes/link.txt")).expect("a link");
    std::os::unix::fs::symlink(".env", house.path("notes/plain.txt")).expect("a link");
    let said = ask(&house, "probe");
    let out: Vec<String> = serde_json::from_str::<Vec<Value>>(&said)
        .unwrap_or_else(|error| panic!("{error}: {said}"))
        .iter()
        .map(|one| one.as_str().map_or_else(|| one.to_string(), ToOwned::to_owned))
        .collect();
    assert_eq!(out[..4], ["0,255,10", "bytes.bin,made.md", "7", "false"]);
    assert_eq!(out.len(), 13, "{said}");
    assert!(out[4..].iter().all(|one| one.contains("refused (")), "{said}");
    assert!(!said.contains("planted") && !said.contains("root:"), "{said}");
    assert_eq!(house.read("notes/new/made.md"), b"# Made\n");
    assert!(!house.path("notes/old.md").exists() && !house.path("notes/.git").exists(), "{said}");
    // Its changes are the run's, and can be undone.
    let run = house.run(&["runs", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    let changes = house.run(&["runs", &run]).good().text();
    assert!(changes.contains("made.md") && changes.contains("old.md"), "{changes}");
}

#[test]
fn hostile_functions_end_with_an_error_that_names_the_tool() {
    for (func, why) in [
        ("() => { while (true) {} }", "probe was stopped, line 1: it used more than 10 s of processor time"),
        (
            "() => {\n  const all = [];\n  for (;;) all.push('x'.repeat(1 << 20));\n}",
            "probe was stopped, line 3: it used more than 256 MB",
        ),
        ("() => 'x'.repeat(9 << 20)", "the result of probe is larger than 8 MB"),
        (
            "() => {\n  const deeper = () => deeper() + 1;\n  return deeper();\n}",
            "probe, line 2: RangeError: Maximum call stack size",
        ),
        ("() => new Promise(() => {})", "probe never ends"),
        ("() => {\n  return missing;\n}", "probe, line 2: ReferenceError: missing is not defined"),
        ("() => {\n  return 1 +;\n}", "probe, line 2: SyntaxError"),
        ("async () => import('fs')", "could not load module 'fs'"),
        (
            "async () => { Promise.prototype.then = null; Array.prototype.push = null; return missing; }",
            "missing is not defined",
        ),
    ] {
        let house = script_house(func, &json!([]), &[("a.md", "# A\n")]);
        let said = ask(&house, "probe");
        assert!(said.starts_with("Error: ") && said.contains(why), "{func}: {said}");
    }
    // Text that it prints is bounded, and the call succeeds.
    let loud = "() => { for (let i = 0; i < 200; i++) console.log('x'.repeat(100000)); return 'end'; }";
    let house = script_house(loud, &json!([]), &[("a.md", "# A\n")]);
    let said = ask(&house, "probe");
    assert!(said.len() < 20_000 && said.ends_with("\"end\""), "{} {}", said.len(), &said[said.len() - 100..]);
}

#[test]
fn nothing_of_a_call_is_left_for_the_next_one() {
    let func = "() => { globalThis.count = (globalThis.count ?? 0) + 1; Object.prototype.left = 1; return count; }";
    let house = script_house(func, &json!([]), &[("a.md", "# A\n")]);
    assert_eq!(ask(&house, "probe"), "1");
    assert_eq!(ask(&house, "probe"), "1");
}
