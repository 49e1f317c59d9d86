//! `sandbox` in the configuration and in agents' files: commands, Python, tools, cells and file tools that try to get
//! past each limit, and limits that are refused.

use super::agents::{Said, house, model, without_events};
use super::git::{git, with_remote};
use super::own_tools::{import, one_call};
use crate::program::{House, until};
use serde_json::{Value, json};

/// A house whose model makes one call and repeats its result, with these limits.
fn limited(call: (&'static str, Value), limits: &str, files: &[(&str, &str)]) -> House {
    let house = house(&one_call(call.0, call.1), files);
    configure(&house, &format!("sandbox: {{{limits}}}"));
    house
}

fn configure(house: &House, lines: &str) {
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    house.write("W/config.yaml", format!("{config}{lines}\n").as_bytes());
}

/// Asks with the calls of these tools allowed, and returns the answer.
fn answer(house: &House, approve: &str) -> String {
    let steps = without_events(house.run(&["ask", "go", "--approve", approve, "--json"]).code(0).lines());
    steps.last().and_then(|step| step["content"].as_str()).unwrap_or_default().to_owned()
}

/// Runs a command with these limits, and returns what the model gets.
fn command(command: &str, limits: &str, files: &[(&str, &str)]) -> String {
    answer(&limited(("shell", json!({"command": command})), limits, files), "shell")
}

/// Runs Python with these limits, and returns what the model gets.
fn python(code: &str, limits: &str, files: &[(&str, &str)]) -> String {
    answer(&limited(("run_python", json!({"code": code})), limits, files), "run_python")
}

const FILES: [(&str, &str); 4] =
    [("a.md", "# A\n"), ("keys/one.txt", "planted\n"), ("lib/b.txt", "lib\n"), ("out/c.txt", "out\n")];

#[test]
fn numbers_bound_commands_python_and_scripts() {
    let heavy = "x=a; while :; do x=$x$x; done";
    let said = command(heavy, "memory_mb: 64", &FILES);
    assert!(said.contains("Error") && !said.contains("4 GB"), "{said}");
    let said = command("i=0; while [ $i -lt 30 ]; do i=$((i+1)); sleep 5 & done; wait", "processes: 8", &FILES);
    assert!(said.contains("it made more than 8 processes") || said.contains("fork"), "{said}");
    let said = command("while :; do :; done", "cpu_seconds: 1", &FILES);
    assert!(said.contains("ended by signal"), "{said}");
    let said = command("sleep 30", "time: 1 s", &FILES);
    assert!(said.contains("stopped after 1 s"), "{said}");
    for (call, complete) in [
        ("shell", json!({"command": "head -c 3000000 /dev/zero > big; true"})),
        ("run_python", json!({"code": "with open('big', 'wb') as file: file.write(bytes(3_000_000))"})),
        ("shell", json!({"command": "head -c 900000 /dev/zero > big"})),
    ]
    .into_iter()
    .zip([false, false, true])
    {
        let house = limited(call.clone(), "file_mb: 1", &FILES);
        let said = answer(&house, call.0);
        let size = std::fs::metadata(house.path("notes/big")).expect("begun").len();
        assert!(size <= 1 << 20 && complete == (size == 900_000), "{call:?}: {size} {said}");
    }

    let many = "for i in 1 2 3; do head -c 900000 /dev/zero > part$i; done; sleep 20; echo kept";
    let said = command(many, "disk_mb: 1", &FILES);
    assert!(said.contains("(stopped: it added more than 1 MB to the folder)") && !said.contains("kept"), "{said}");
    let said = command("head -c 900000 /dev/zero > part; echo kept", "disk_mb: 1", &FILES);
    assert_eq!(said.trim_end(), "kept");
    // Without a limit of the user's there is the program's own. These files take no space.
    let sparse = "cd $TMPDIR && for i in 1 2 3 4 5 6 7 8 9; do truncate -s 1000M part$i; done; sleep 20; echo kept";
    let said = command(sparse, "disk_mb: null", &FILES);
    assert!(said.contains("it added more than 8192 MB") && !said.contains("kept"), "{said}");
    let code = "for i in range(3): open(f'part{i}', 'wb').write(bytes(900_000))";
    let said = python(code, "disk_mb: 1", &FILES);
    assert!(said.contains("it added more than 1 MB"), "{said}");

    let said = python("x = bytearray(900 * 1024 * 1024)\nprint('kept')", "memory_mb: 128", &FILES);
    assert!(said.contains("Error") && !said.contains("kept"), "{said}");
    let said = python("while True: pass", "cpu_seconds: 1", &FILES);
    assert!(said.contains("it may use 1 s of processor time"), "{said}");
    let said = python("import time\ntime.sleep(30)", "time: 1 s", &FILES);
    assert!(said.contains("stopped after 1 s"), "{said}");

    for (func, limit, why) in [
        (
            "() => { for (;;) {} }",
            "cpu_seconds: 1",
            "probe was stopped, line 1: it used more than 1 s of processor time",
        ),
        ("() => { const a = []; for (;;) a.push('x'.repeat(9999)); }", "memory_mb: 64", "it used more than 64 MB"),
        ("() => new Promise(done => setTimeout(done, 30000))", "time: 1 s", "probe was stopped after 1 s"),
        ("() => fs.readFile('keys/one.txt')", "hidden: [keys]", "keys/one.txt is closed: sandbox.hidden"),
        ("() => fs.writeFile('lib/b.txt', 'x')", "read_only: [lib]", "lib/b.txt is closed: sandbox.read_only"),
        ("() => fs.writeFile('lib/b.txt', 'x')", "writable: [out]", "lib/b.txt is closed: sandbox.writable"),
        ("async () => (await fs.readdir()).join()", "hidden: [keys]", "\"a.md,lib,out\""),
    ] {
        let house = limited(("probe", json!({})), limit, &FILES);
        let schema = json!({"description": "Probes.", "parameters": {"type": "object"}});
        import(&house, &json!({"name": "probe", "func": func, "permissions": ["fs"], "schema": schema}));
        house.run(&["tools", "probe", "--approve"]).good();
        let said = answer(&house, "probe");
        assert!(said.contains(why), "{func}: {said}");
    }
}

#[test]
fn a_command_stays_below_its_share_of_the_processor() {
    // Its shell measures what it and the loop took in the two seconds: user and system time, each on a line.
    let busy = "(while :; do :; done) & sleep 2; kill $!; wait $!; times";
    let said = command(busy, "cpu_percent: 20, cpu_seconds: 9", &FILES);
    let seconds = |time: &str| -> Option<f64> {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let times = |line: &str| line.split_whitespace().map(seconds).collect::<Option<Vec<f64>>>();
    let used: f64 = said.lines().filter_map(times).flatten().sum();
    assert!(used > 0.0 && used < 1.0, "{used} s of 2 s: {said}");
    let said = command("while :; do :; done", "cpu_percent: 300, cpu_seconds: 1", &FILES);
    assert!(said.contains("ended by signal"), "the other limit holds, too: {said}");
}

#[test]
fn python_stays_below_its_share_of_the_processor() {
    let busy = "import time\nbegun, used = time.monotonic(), time.process_time()\n\
                while time.monotonic() - begun < 2: pass\nprint(time.process_time() - used)";
    let said = python(busy, "cpu_percent: 20", &FILES);
    let used: f64 = said.trim().parse().unwrap_or_else(|_| panic!("{said}"));
    assert!(used > 0.0 && used < 1.0, "{used} s of 2 s");
}

/// Whether the process that wrote its number into this file has ended. One that nothing reaps has, too.
fn has_ended(house: &House) -> bool {
    let pid = String::from_utf8(house.read("notes/pid")).expect("text");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

#[test]
fn nothing_is_left_of_a_command_that_was_stopped_for_its_share() {
    let busy = "echo $$ > pid; while :; do :; done";
    for (command, limits, result) in [
        (format!("sh -c '{busy}' & sleep 1; echo over"), "cpu_percent: 5", "over"),
        (busy.to_owned(), "cpu_percent: 5, time: 1 s", "stopped after 1 s"),
    ] {
        let house = limited(("shell", json!({"command": command})), limits, &FILES);
        let said = answer(&house, "shell");
        assert!(said.contains(result), "{said}");
        until("it has ended", || has_ended(&house));
    }
    let house = limited(("shell", json!({"command": busy})), "cpu_percent: 5", &FILES);
    let mut child = house.command(&["ask", "go", "--approve", "shell"]).spawn().expect("started");
    until("it works", || std::fs::read_to_string(house.path("notes/pid")).is_ok_and(|pid| pid.ends_with('\n')));
    child.kill().expect("killed");
    child.wait().expect("ended");
    until("it has ended", || has_ended(&house));
}

#[test]
fn hidden_paths_look_empty_to_programs() {
    let look = "cat keys/one.txt; ls keys; cat keys/../keys/one.txt; cat lib/link.txt; p=.e; cat ${p}nv; cat a.md; \
                echo new > fresh.txt; cat fresh.txt; mv keys moved; echo x > keys/two.txt; cat keys/two.txt; \
                echo x > gone; umount keys; true";
    let said = |limits: &str| {
        let house = limited(("shell", json!({"command": look})), limits, &FILES);
        house.write("notes/.env", b"planted too\n");
        std::os::unix::fs::symlink("../keys/one.txt", house.path("notes/lib/link.txt")).expect("a link");
        let said = answer(&house, "shell");
        (said, house.path("notes/keys/one.txt").exists(), house.path("notes/gone").exists())
    };
    let (open, _, made) = said("memory_mb: 2000");
    assert!(open.contains("planted\n") && open.contains("planted too") && made, "{open}");
    let (shut, stays, made) = said("hidden: [keys, .env, gone]");
    assert!(!shut.contains("planted"), "{shut}");
    assert!(shut.contains("# A") && shut.contains("new\n"), "the rest of the folder works: {shut}");
    assert!(stays && !made, "{shut}");
    let code = "import os\nfor path in ('keys/one.txt', '.e' + 'nv'):\n    try: print(open(path).read())\n    \
                except OSError as error: print(type(error).__name__)\nprint(os.listdir('keys'))";
    let said = python(code, "hidden: [keys, .env]", &FILES);
    assert!(!said.contains("planted") && said.contains("[]"), "{said}");
    let run_shell = json!({"command": "pwd", "workdir": "keys"});
    let said = answer(&limited(("shell", run_shell), "hidden: [keys]", &FILES), "shell");
    assert!(said.contains("keys is closed: sandbox.hidden"), "{said}");
}

#[test]
fn paths_that_can_only_be_read_stay_as_they_are() {
    let tries = "cat lib/b.txt; echo x > lib/b.txt; echo x > lib/new.txt; rm lib/b.txt; mv lib elsewhere; \
                 ln lib/b.txt out/hard.txt; chmod 777 lib/b.txt; ln -s ../lib out/away; echo x > out/away/b.txt; \
                 mkdir lib/sub; truncate -s 0 lib/b.txt; echo fine > out/d.txt; echo x > a.txt; true";
    for (limits, other) in [("read_only: [lib]", true), ("writable: [out]", false)] {
        let house = limited(("shell", json!({"command": tries})), limits, &FILES);
        let said = answer(&house, "shell");
        assert!(said.contains("lib\n") && said.contains("(not written: lib/b.txt (sandbox."), "{limits}: {said}");
        assert_eq!(house.read("notes/lib/b.txt"), b"lib\n", "{limits}: {said}");
        assert_eq!(std::fs::read_dir(house.path("notes/lib")).expect("listed").count(), 1, "{limits}: {said}");
        assert_eq!(house.read("notes/out/d.txt"), b"fine\n", "{limits}: {said}");
        assert_eq!(house.path("notes/a.txt").exists(), other, "{limits}: {said}");
        assert!(!house.path("notes/out/hard.txt").exists() && !house.path("notes/elsewhere").exists(), "{said}");
    }
    let code = "open('out/e.txt', 'w').write('fine')\nopen('lib/b.txt', 'a').write('x')";
    let said = python(code, "read_only: [lib]", &FILES);
    assert!(said.contains("PermissionError"), "{said}");
}

#[test]
fn file_tools_and_search_keep_to_the_same_paths() {
    let refused = |call: (&'static str, Value), limits: &str| {
        let house = limited(call.clone(), limits, &FILES);
        std::os::unix::fs::symlink("keys/one.txt", house.path("notes/plain.txt")).expect("a link");
        let said = answer(&house, call.0);
        assert!(!said.contains("planted"), "{call:?}: {said}");
        (said, house)
    };
    for path in ["keys/one.txt", "./keys//one.txt", "keys/../keys/one.txt", "plain.txt"] {
        let (said, _) = refused(("read_file", json!({"path": path})), "hidden: [keys]");
        let whys = ["is closed: sandbox.hidden", "is outside of what tools may reach"];
        assert!(whys.iter().any(|why| said.contains(why)), "{path}: {said}");
    }
    let (said, _) = refused(("list_files", json!({})), "hidden: [keys]");
    assert!(said.contains("lib/") && !said.contains("keys"), "{said}");
    let (said, house) = refused(("write_file", json!({"path": "lib/b.txt", "content": "x"})), "read_only: [lib]");
    assert!(said.contains("lib/b.txt is closed: sandbox.read_only"), "{said}");
    assert_eq!(house.read("notes/lib/b.txt"), b"lib\n");
    let (said, house) = refused(("write_file", json!({"path": "new.md", "content": "x"})), "writable: [out]");
    assert!(said.contains("new.md is closed: sandbox.writable") && !house.path("notes/new.md").exists(), "{said}");
    let (said, house) = refused(("delete_file", json!({"path": "a.md"})), "writable: [out]");
    assert!(said.contains("is closed") && house.path("notes/a.md").exists(), "{said}");
}

#[test]
fn git_tools_leave_out_hidden_files() {
    let ask = |call: (&'static str, Value)| {
        let house = limited(call.clone(), "hidden: [keys]", &FILES);
        house.write("notes/keys/\u{fc} two.txt", b"planted\n");
        with_remote(&house);
        for path in ["notes/keys/one.txt", "notes/keys/\u{fc} two.txt"] {
            house.write(path, b"planted again\n");
        }
        house.write("notes/a.md", b"# Bee\n");
        // A repository's own settings can't name its files in a way that shows them.
        git(&house.path("notes"), &["config", "diff.noprefix", "true"]);
        answer(&house, call.0)
    };
    let said = ask(("git_diff", json!({})));
    assert!(said.contains("+# Bee") && !said.contains("planted"), "{said}");
    assert!(said.contains("(left out: 2 hidden files)"), "{said}");
    for call in [("git_diff", json!({"path": "keys"})), ("git_blame", json!({"path": "keys/one.txt"}))] {
        let said = ask(call);
        assert!(said.contains("is closed: sandbox.hidden") && !said.contains("planted"), "{said}");
    }
}

#[test]
fn git_changes_no_file_where_paths_are_closed() {
    let push = ("git_stash", json!({"action": "push"}));
    let told = |call: &(&'static str, Value), limits: &str| {
        let house = limited(call.clone(), limits, &FILES);
        with_remote(&house);
        let notes = house.path("notes");
        git(&notes, &["switch", "-qc", "idea"]);
        house.write("notes/lib/b.txt", b"idea\n");
        git(&notes, &["commit", "-qam", "Idea"]);
        git(&notes, &["switch", "-q", "main"]);
        house.write("notes/a.md", b"# Bee\n");
        let said = answer(&house, call.0);
        let read = |name: &str| String::from_utf8(house.read(name)).expect("text");
        (said, read("notes/a.md"), read("notes/lib/b.txt"))
    };
    for (call, limits) in [
        (push.clone(), "writable: [out]"),
        (push.clone(), "hidden: [keys]"),
        (("git_merge", json!({"branch": "idea"})), "read_only: [lib]"),
        (("git_switch", json!({"branch": "idea"})), "writable: [out]"),
        (("git_pull", json!({})), "writable: [out]"),
    ] {
        let (said, note, file) = told(&call, limits);
        assert!(said.contains("closes some; the user has to do this"), "{call:?} {limits}: {said}");
        assert_eq!((note.as_str(), file.as_str()), ("# Bee\n", "lib\n"), "{call:?} {limits}: {said}");
    }
    let (said, note, _) = told(&push, "memory_mb: 2000");
    assert_eq!(note, "# A\n", "{said}");
}

#[test]
fn cells_keep_to_the_limits_of_the_configuration() {
    let attempt = "def attempt(act):\n    try: print(act())\n    except (OSError, MemoryError) as error: \
                   print(type(error).__name__)\n";
    let acts = [
        "open('keys/one.txt').read()",
        "open('lib/b.txt', 'w')",
        "open('big', 'wb').write(bytes(3_000_000)) and None",
        "open('out/f.txt', 'w').write('fine')",
        "len(bytearray(900 * 1024 * 1024))",
    ];
    let acts = acts.map(|act| format!("attempt(lambda: {act})\n")).concat();
    let note = &format!("# Cells\n\n```python\n{attempt}\n{acts}```\n");
    let mut files = FILES.to_vec();
    files.push(("cells.md", note.as_str()));
    let house = House::with(&files);
    let said = house.run(&["run", "cells.md"]).text();
    assert!(said.contains("planted"), "{said}");
    house.write("notes/lib/b.txt", b"lib\n");
    configure_new(&house, "sandbox: {hidden: [keys], read_only: [lib], file_mb: 1, memory_mb: 128}\n");
    let said = house.run(&["run", "cells.md"]).text();
    assert!(!said.contains("planted"), "{said}");
    assert_eq!(house.read("notes/lib/b.txt"), b"lib\n", "{said}");
    assert_eq!(house.read("notes/out/f.txt"), b"fine", "{said}");
    assert!(std::fs::metadata(house.path("notes/big")).expect("begun").len() <= 1 << 20, "{said}");
    assert!(!said.contains("943718400"), "{said}");
    // A kernel whose limits can't be read isn't started without them.
    configure_new(&house, "sandbox: {hidden: [../keys]}\n");
    let said = house.run(&["run", "cells.md"]);
    assert!(format!("{}{}", said.text(), said.err).contains("no path of the sandbox"), "{} {}", said.text(), said.err);
}

fn configure_new(house: &House, lines: &str) {
    house.write("W/config.yaml", lines.as_bytes());
}

#[test]
fn an_agent_has_tighter_limits_of_its_own() {
    let script = |turn: usize, body: &Value| -> Said {
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        match turn {
            0 => (
                String::new(),
                vec![("shell", json!({"command": "cat keys/one.txt lib/b.txt out/c.txt; sleep 3; echo end"}))],
            ),
            _ => (last["content"].as_str().unwrap_or_default().to_owned(), Vec::new()),
        }
    };
    let ask = |agent: &str, config: &str| {
        let house = house(&model(script), &FILES);
        configure(&house, config);
        let own =
            "---\nname: narrow\ndescription: Works narrowly.\nsandbox: {hidden: [keys], time: 1 h}\n---\nYou work.\n";
        house.write("W/agents/narrow.md", own.as_bytes());
        let words = ["ask", "go", "--agent", agent, "--approve", "shell", "--json"];
        let steps = without_events(house.run(&words).code(0).lines());
        steps.last().and_then(|step| step["content"].as_str()).unwrap_or_default().to_owned()
    };
    let said = ask("assistant", "sandbox: {hidden: [lib]}");
    assert!(said.contains("planted") && !said.contains("lib\n") && said.contains("end"), "{said}");
    let said = ask("narrow", "sandbox: {hidden: [lib], time: 1 s}");
    assert!(!said.contains("planted") && !said.contains("lib\n") && said.contains("out\n"), "{said}");
    assert!(said.contains("stopped after 1 s"), "its own file can't loosen a limit: {said}");
    let said = ask("narrow", "agents: {specialists: {narrow: {sandbox: {hidden: [out], cpu_percent: 90}}}}");
    assert!(said.contains("lib\n") && !said.contains("out\n") && !said.contains("planted"), "{said}");
}

#[test]
fn limits_that_do_not_hold_are_refused_at_load() {
    for (line, why) in [
        ("disk_mb: 0", "0 is no such limit; it takes 1 to"),
        ("cpu_percent: 0", "1 to 10000 percent of one processor"),
        ("memory_mb: 8", "64 to"),
        ("cpu_seconds: 0", "1 to"),
        ("processes: 5000", "1 to 512"),
        ("time: soon", "no time limit"),
        ("file_mb: many", "expected"),
        ("hidden: [/etc]", "no path of the sandbox"),
        ("hidden: [../up]", "no path of the sandbox"),
        ("read_only: [\"*.md\"]", "no path of the sandbox"),
        ("writable: [.]", "no path of the sandbox"),
        ("hidden: keys", "expected"),
        ("network: false", "network"),
    ] {
        let house = limited(("shell", json!({"command": "true"})), line, &FILES);
        let said = house.run(&["ask", "go", "--approve", "shell"]);
        assert!(said.err.contains(why) && said.err.contains("config.yaml"), "{line}: {}", said.err);
    }
    let house = limited(("shell", json!({"command": "true"})), "memory_mb: null, hidden: []", &FILES);
    assert!(answer(&house, "shell").contains("no output"));
}
