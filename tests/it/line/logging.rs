//! The program's log in the workspace: what it records and what it never records.

use super::agents::{Said, house as agent_house, model};
use crate::program::{House, finish, line};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const TEXT: &str = "zanzibarquince";
const PROMPT: &str = "mulberrylantern";
const KEY: &str = "sk-proj-Zq7Tn2Lk9Wm4Xb8Vc3Hd6Jf5Gs1Rp0Ya";

fn logs(house: &House) -> String {
    let Ok(entries) = fs::read_dir(house.path("W/logs")) else { return String::new() };
    entries.map(|entry| fs::read_to_string(entry.expect("listed").path()).expect("UTF-8")).collect()
}

#[test]
fn a_command_leaves_a_line_with_its_name_code_and_time() {
    let house = House::with(&[("a.md", "# A\n")]);
    house.cat("a.md");
    house.run(&["cat", "missing.md"]).code(2);
    let log = logs(&house);
    let ended = |name: &str, code: u8| {
        let said = format!("command{{name=\"{name}\"}}: cli: command ended code={code} took_ms=");
        log.lines().any(|line| line.contains(&said))
    };
    assert!(ended("open", 0) && ended("cat", 0) && ended("cat", 2), "{log}");
    assert!(!log.contains("missing.md"), "paths stay out: {log}");
    let mode = |path: &str| house.path(path).metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!((mode("W/logs"), mode("W/logs/tracebook.log")), (0o700, 0o600));
}

#[test]
fn off_leaves_no_log_and_debug_names_effects() {
    let house = House::new();
    house.write("notes/a.md", b"# A\n");
    let mut command = house.command(&["open", "notes"]);
    command.env("TRACEBOOK_LOG", "off");
    finish(command, b"").good();
    assert!(!house.path("W/logs").exists());
    let mut command = house.command(&["cat", "a.md"]);
    command.env("TRACEBOOK_LOG", "host=debug");
    finish(command, b"").good();
    let log = logs(&house);
    assert!(log.contains("effect{name=\"LoadVolume\"}") && !log.contains("command ended"), "{log}");
}

#[test]
fn a_log_that_cannot_be_written_stops_no_command() {
    let house = House::with(&[("a.md", "# A\n")]);
    fs::remove_dir_all(house.path("W/logs")).expect("removed");
    fs::write(house.path("W/logs"), b"a file where the folder should be").expect("written");
    assert_eq!(house.cat("a.md"), b"# A\n");
    fs::remove_file(house.path("W/logs")).expect("removed");
    fs::create_dir(house.path("W/logs")).expect("made");
    house.write("elsewhere", b"");
    std::os::unix::fs::symlink(house.path("elsewhere"), house.path("W/logs/tracebook.log")).expect("linked");
    assert_eq!(house.cat("a.md"), b"# A\n");
    assert_eq!(house.read("elsewhere"), b"", "a symlink is not followed");
    fs::remove_file(house.path("W/logs/tracebook.log")).expect("removed");
    std::os::unix::fs::symlink("/dev/full", house.path("W/logs/tracebook.log")).expect("linked");
    assert_eq!(house.cat("a.md"), b"# A\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_panic_leaves_a_report_with_a_backtrace() {
    let house = House::with(&[("a.md", "# A\n")]);
    // Rust panics if a message can't be written because the disk behind standard error is full.
    let mut command = house.command(&["bench", "nothing"]);
    command.stderr(fs::File::options().write(true).open("/dev/full").expect("a full disk"));
    assert_eq!(command.status().expect("it ends").code(), Some(101));
    let names: Vec<_> = fs::read_dir(house.path("W/logs")).expect("logs").flatten().map(|one| one.path()).collect();
    let report = names.iter().find(|path| path.to_string_lossy().contains("crash-")).expect("a report");
    let text = fs::read_to_string(report).expect("UTF-8");
    assert!(text.starts_with("Tracebook ") && text.contains("message: failed printing to stderr"), "{text}");
    assert!(text.contains("backtrace") || text.contains("cli::main"), "{text}");
}

/// A workspace in which a note, a cell, a search, an agent and its tools all handled planted text.
fn used(content: bool) -> House {
    let script = |turn: usize, _: &Value| -> Said {
        let shell = json!({"command": format!("echo {TEXT}; echo {KEY}")});
        match turn {
            0 => (format!("I say {TEXT}."), vec![("shell", shell), ("search", json!({"query": TEXT}))]),
            _ => (format!("Done with {TEXT} and {KEY}."), Vec::new()),
        }
    };
    let path = format!("{TEXT}.md");
    let note =
        format!("# {TEXT}\n\n```python\nprint('{KEY}' + '{TEXT}')\n```\n\n```python\nraise OSError('{TEXT}')\n```\n");
    let house = agent_house(&model(script), &[(&path, &note)]);
    let run = |words: &[&str], input: &[u8]| {
        let mut command = house.command(words);
        command.env("OPENAI_API_KEY", KEY).env("TRACEBOOK_LOG", "trace");
        if content {
            command.env("TRACEBOOK_LOG_CONTENT", "1").env_remove("TRACEBOOK_LOG");
        }
        finish(command, input)
    };
    run(&["edit", &path], line(0, 0, TEXT).as_bytes()).good();
    let ran = run(&["run", &path], b"");
    assert!(ran.text().contains(KEY), "{ran:?}");
    assert!(run(&["search", TEXT], b"").good().text().contains(TEXT));
    let asked = run(&["ask", PROMPT, "--approve", "shell", "--json"], b"");
    assert!(asked.text().contains(TEXT), "{asked:?}");
    house
}

#[test]
fn no_text_prompt_or_key_reaches_the_log() {
    let log = logs(&used(false));
    for event in ["\"edit\"", "\"run\"", "\"search\"", "\"ask\"", "kernel starts", "tool{name=\"shell\"}"] {
        assert!(log.contains(event), "{event}: {log}");
    }
    for planted in [TEXT, PROMPT, KEY, "print("] {
        let at = log.lines().find(|line| line.contains(planted));
        assert_eq!(at, None, "{planted} stands in the log");
    }
}

#[test]
fn a_report_holds_what_a_bug_report_needs_and_no_text_or_key() {
    let house = used(false);
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    house.write("W/config.yaml", format!("{config}# {KEY}\n").as_bytes());
    house.run(&["grant", &format!("{TEXT}.md"), "--network"]).good();
    let told = house.run(&["doctor", "--report", "report.tar.gz"]).good().text();
    let tar = |flags: &str| {
        let unpacked = Command::new("tar").arg(flags).arg(house.path("report.tar.gz")).output().expect("tar");
        assert!(unpacked.status.success(), "{unpacked:?}");
        String::from_utf8(unpacked.stdout).expect("UTF-8")
    };
    let listed = tar("-tzf");
    let names = [
        "program.txt",
        "doctor.json",
        "fsck.txt",
        "config-outline.yaml",
        "settings-outline.json",
        "logs/tracebook.log",
    ];
    for name in names {
        assert!(listed.lines().any(|line| line == name) && told.contains(name), "{name}: {listed}{told}");
    }
    let all = tar("-xzOf");
    for part in ["version: ", "documents: ", "damage: 0", "default_provider: …", "kernel starts"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    for planted in [TEXT, PROMPT, KEY] {
        assert!(!all.contains(planted), "{planted}: {all}");
    }
    house.run(&["doctor", "--report", "report.tar.gz"]).refused(2, "exists already");
    house.run(&["doctor", "--report"]).good();
    let unnamed = fs::read_dir(house.path("")).expect("listed").flatten();
    let unnamed = unnamed.filter(|entry| entry.file_name().to_string_lossy().starts_with("tracebook-report-"));
    assert_eq!(unnamed.count(), 1);
}

#[test]
fn text_and_prompt_are_logged_only_when_asked_for_and_keys_never() {
    let log = logs(&used(true));
    for planted in [TEXT, PROMPT, "print("] {
        assert!(log.contains(planted), "{planted} is not in the log: {log}");
    }
    let at = log.lines().find(|line| line.contains(KEY));
    assert_eq!(at, None, "the key stands in the log");
}
