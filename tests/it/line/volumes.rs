//! Paths as models and people write them, the read-only volume System, and volumes that the configuration locks.

use super::agents::{Said, house, model};
use super::git::{caller, git, know_user, with_remote};
use crate::program::House;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn results_of(house: &House, words: &[&str], results: &Arc<Mutex<Vec<String>>>) -> Vec<String> {
    house.run(words).good();
    results.lock().expect("heard").clone()
}

#[test]
fn the_calls_of_the_seed_are_accepted() {
    let (address, results) = caller(vec![
        ("read-file", json!({"volume": "notes", "path": "Note.md"})),
        ("read_file", json!({"path": "/notes/Note.md"})),
        ("read_file", json!({"path": "note.md"})),
        ("write_file", json!({"path": "notes/new.md", "content": "# New\n"})),
        ("write_file", json!({"volume": "user", "path": "/calc.txt", "content": "1\n"})),
        ("edit_file", json!({"volume": "notes", "path": "notes/calc.txt", "old_content": "1", "new_content": "2"})),
        ("list_files", json!({"volume": "notes", "directory": "/"})),
        ("execute-python", json!({"code": "6 * 7"})),
        ("read_file", json!({"path": "Nose.md"})),
        ("read_file", json!({"volume": "nowhere", "path": "Note.md"})),
        ("delete_file", json!({"path": "/notes/calc.txt"})),
    ]);
    let house = house(&address, &[("Note.md", "# Found it\n"), ("sub/deep.md", "deep\n")]);
    let words = ["ask", "go", "--approve", "run_python", "--approve", "delete_file", "--json"];
    let results = results_of(&house, &words, &results);
    for (at, result) in results[..3].iter().enumerate() {
        assert!(result.contains("# Found it"), "{at}: {result}");
    }
    assert!(results[3].contains("Created new.md"), "{results:?}");
    assert_eq!(house.read("notes/new.md"), b"# New\n");
    assert!(!house.path("notes/notes").exists(), "no volume in a volume");
    assert!(results[5].contains("+2"), "{results:?}");
    assert!(results[6].contains("calc.txt (2 bytes, txt, changed 20") && results[6].contains("sub/"), "{results:?}");
    assert!(results[7].contains("42"), "{results:?}");
    assert!(results[8].contains("The closest are: Note.md"), "{results:?}");
    assert!(results[9].contains("There is no volume “nowhere”. There are: notes, system."), "{results:?}");
    assert!(!house.path("notes/calc.txt").exists(), "{results:?}");
}

#[test]
fn what_is_written_in_another_case_replaces_the_note_that_is_there() {
    let (address, results) = caller(vec![
        ("read_file", json!({"path": "plan.md"})),
        ("write_file", json!({"path": "plan.md", "content": "# Plan\n\nnew\n"})),
        ("write_file", json!({"path": "notes/LOG/today.md", "content": "today\n"})),
        ("edit_file", json!({"path": "PLAN.md", "old_content": "new", "new_content": "newer"})),
    ]);
    let house = house(&address, &[("Plan.md", "# Plan\n\nold\n"), ("log/a.md", "a\n")]);
    let results = results_of(&house, &["ask", "go", "--json"], &results);
    assert!(results[0].contains("old"), "{results:?}");
    assert!(results[1].contains("-old") && results[1].contains("+new"), "{results:?}");
    assert_eq!(house.read("notes/Plan.md"), b"# Plan\n\nnewer\n");
    assert_eq!(house.read("notes/log/today.md"), b"today\n");
    assert!(!house.path("notes/plan.md").exists() && !house.path("notes/LOG").exists(), "{results:?}");
}

#[test]
fn tools_for_git_name_what_is_closest_to_a_missing_path() {
    let (address, results) = caller(vec![
        ("git_diff", json!({"path": "Nose.md"})),
        ("git_log", json!({"path": "/notes/Nose.md"})),
        // Calls that work between them: too many failures one after the other end a run.
        ("git_log", json!({"path": "gone.md"})),
        ("git_blame", json!({"path": "Nose.md"})),
        ("git_add", json!({"files": ["Note.md", "Nose.md"]})),
        ("git_diff", json!({"path": "sub/deep.md"})),
        ("git_commit", json!({"message": "x", "files": ["Note.md", "sub/dep.md"]})),
    ]);
    let files = [("Note.md", "# Found it\n"), ("sub/deep.md", "deep\n"), ("gone.md", "gone\n")];
    let house = house(&address, &files);
    with_remote(&house);
    git(&house.path("notes"), &["rm", "-q", "gone.md"]);
    git(&house.path("notes"), &["commit", "-qm", "Gone"]);
    house.write("notes/Note.md", b"# Changed\n");
    let results = results_of(&house, &["ask", "go", "--json"], &results);
    for result in [0, 1, 3, 4].map(|at| &results[at]) {
        assert!(result.contains("Nose.md") && result.contains("The closest are: Note.md"), "{result}");
    }
    assert!(results[2].contains("Ada: Gone"), "what is only in the history is there: {}", results[2]);
    assert!(results[5].contains("nothing differs from the last commit"), "{}", results[5]);
    assert!(results[6].contains("The closest are: sub/deep.md"), "{}", results[6]);
}

#[test]
fn what_search_shows_of_another_volume_can_be_read_and_is_changed_only_when_allowed() {
    let (address, results) = caller(vec![
        ("search", json!({"query": "lighthouse"})),
        ("read_file", json!({"path": "other/Tower.md"})),
        ("write_file", json!({"path": "other/Mine.txt", "content": "mine\n"})),
        ("edit_file", json!({"path": "other/Tower.md", "old_content": "white", "new_content": "red"})),
    ]);
    let house = house(&address, &[("Note.md", "# Note\n")]);
    house.write("other/Tower.md", b"# Tower\n\nThe lighthouse is white.\n");
    house.run(&["open", &house.path("other").display().to_string()]).good();
    let asked = house.fed(&["ask", "go", "--project", "notes"], b"n\n");
    let results = results.lock().expect("heard").clone();
    assert!(results[0].contains("other/Tower.md"), "{results:?}");
    assert!(results[1].contains("The lighthouse is white."), "{results:?}");
    assert_eq!(house.read("notes/other/Mine.txt"), b"mine\n", "a folder of the project");
    assert!(asked.err.contains("it concerns other"), "{}", asked.err);
    assert_eq!(house.read("other/Tower.md"), b"# Tower\n\nThe lighthouse is white.\n");
}

#[test]
fn a_call_in_the_text_itself_is_made() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => ("Sure: {\"tool\":\"read-file\",\"inputs\":{\"path\":\"notes/Note.md\"}}".to_owned(), Vec::new()),
            _ => ("At the end".to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("Note.md", "# Found it\n")]);
    let said = house.run(&["ask", "go"]).good().text();
    assert!(
        said.contains("read_file: Note.md") && said.contains("# Found it") && said.contains("At the end"),
        "{said}"
    );
    assert!(!said.contains("{\"tool\""), "{said}");
}

#[test]
fn system_is_read_and_never_written() {
    const REFUSAL: &str = "System is read-only. Copy it to your workspace to change it.";
    let (address, results) = caller(vec![
        ("read_file", json!({"volume": "system", "path": "agents/SystemAgent.md"})),
        ("read_file", json!({"path": "/system/config.yaml", "from_line": 1, "lines": 2})),
        ("list_files", json!({"directory": "system/agents"})),
        ("write_file", json!({"volume": "system", "path": "agents/x.md", "content": "x"})),
        ("edit_file", json!({"path": "system/agents/qa.md", "old_content": "a", "new_content": "b"})),
        // After three turns without use, a model is told to answer.
        ("read_file", json!({"path": "Note.md"})),
        ("delete_file", json!({"path": "/system/agents/qa.md"})),
        ("read_file", json!({"path": "system/agents/nobody.md"})),
        ("list_files", json!({})),
        ("git_commit", json!({"volume": "system", "message": "x"})),
    ]);
    let house = house(&address, &[("Note.md", "# Note\n")]);
    let results = results_of(&house, &["ask", "go", "--json"], &results);
    assert!(results[0].contains("name: system"), "{results:?}");
    assert_eq!(results[1].lines().count(), 2, "{results:?}");
    assert!(results[2].contains("agents/qa.md (") && results[2].contains("read-only"), "{results:?}");
    for at in [3, 4, 6] {
        assert!(results[at].contains(REFUSAL), "{results:?}");
    }
    assert!(results[7].contains("The closest are: agents/"), "{results:?}");
    assert!(results[9].contains("System has no history in Git"), "{results:?}");

    let text = house.run(&["cat", "system/agents/qa.md"]).good().text();
    assert!(text.contains("name: qa"), "{text}");
    let rows = house.run(&["ls", "--volume", "system", "--json"]).good().json();
    let row = rows.as_array().into_iter().flatten().find(|row| row["path"] == "agents/qa.md").expect("listed");
    assert_eq!((&row["readonly"], &row["volume"]), (&json!(true), &json!("system")));
    for words in [
        &["new", "system/agents/x.md"][..],
        &["new", "x.md", "--volume", "system"],
        &["rm", "system/agents/qa.md"],
        &["mv", "system/agents/qa.md", "qa.md"],
        &["edit", "system/agents/qa.md"],
        &["cp", "Note.md", "system/Note.md"],
    ] {
        house.run(words).refused(2, REFUSAL);
    }
    assert!(!house.path("notes/system").exists());
    // A copy is an agent of the project.
    assert_eq!(house.run(&["cp", "system/agents/qa.md"]).good().text(), "components/agents/qa.md\n");
    assert_eq!(house.read("notes/components/agents/qa.md"), text.as_bytes());
    house.run(&["cp", "system/agents/qa.md"]).refused(2, "already exists");
    let near = "there is no file “agents/qq.md” in System. The closest are: system/agents/qa.md, ";
    house.run(&["cat", "system/agents/qq.md"]).refused(2, near);
    house.run(&["cp", "system/config.yaml", "defaults.yaml"]).good();
    assert!(house.path("notes/defaults.yaml").exists());
    // A copy of a note is a note, as after `mv`.
    assert_eq!(house.run(&["cp", "Note", "copy"]).good().text(), "copy.md\n");
    assert_eq!(house.read("notes/copy.md"), house.read("notes/Note.md"));
    house.run(&["cp", "Note", "copy"]).refused(2, "copy.md");
    assert_eq!(house.run(&["cp", "Note", "sub/"]).good().text(), "sub/Note.md\n");
}

#[test]
fn results_have_size_times_type_and_rights_of_files() {
    let (address, _) = caller(vec![
        ("read_file", json!({"path": "data.csv"})),
        ("write_file", json!({"path": "new.md", "content": "# New\n"})),
        ("write_file", json!({"path": "new.md", "content": "# New\nmore\n"})),
        ("read_file", json!({"path": "new.md"})),
        ("list_files", json!({})),
        ("read_file", json!({"path": "system/config.yaml"})),
        ("read_file", json!({"path": "gone.csv"})),
    ]);
    let house = house(&address, &[("sub/Note.md", "# Note\n")]);
    house.write("notes/data.csv", b"a,b\n");
    let files_of = |words: &[&str]| -> Vec<Value> {
        let lines = house.run(words).good().lines();
        lines.iter().filter(|line| line["type"] == "tool_result").map(|line| line["files"].clone()).collect()
    };
    let files = files_of(&["ask", "go", "--json"]);
    let millis = |time: std::io::Result<std::time::SystemTime>| {
        let since = time.ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    };
    let meta = house.path("notes/data.csv").metadata().expect("there");
    let csv = &files[0][0];
    assert_eq!((&csv["path"], &csv["type"], &csv["size"]), (&json!("data.csv"), &json!("file"), &json!(4)), "{csv}");
    assert_eq!(csv["modified"], json!(millis(meta.modified())), "{csv}");
    assert_eq!(csv["created"], json!(millis(meta.created())), "{csv}");
    assert_eq!(csv["readOnly"], false, "{csv}");
    assert!(files[1][0]["created"].is_i64() && files[1][0]["modified"].is_i64(), "{files:?}");
    for (at, size) in [(1, 6), (2, 11), (3, 11)] {
        let note = &files[at][0];
        assert_eq!((&note["path"], &note["size"]), (&json!("new.md"), &json!(size)), "{at}: {note}");
        assert_eq!((&note["type"], &note["readOnly"]), (&json!("file"), &json!(false)), "{at}: {note}");
    }
    assert!(files[2][0]["modified"].is_i64(), "{files:?}");
    let listed = |path: &str| files[4].as_array().into_iter().flatten().find(|file| file["path"] == path).cloned();
    assert_eq!(listed("data.csv").as_ref(), Some(csv));
    assert_eq!(listed("sub").expect("listed")["type"], "folder");
    assert_eq!(listed("sub/Note.md").expect("listed")["size"], 7);
    let system = &files[5][0];
    assert_eq!((&system["path"], &system["readOnly"]), (&json!("config.yaml"), &json!(true)), "{system}");
    assert_eq!(files[6], Value::Null);

    // Where nobody changes a volume, its files are read-only, whatever the file system says.
    let (address, results) =
        caller(vec![("read_file", json!({"path": "data.csv"})), ("list_files", json!({"directory": "sub"}))]);
    super::agents::configure(&house, &address);
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    house.write("W/config.yaml", format!("{config}volumes:\n  notes: {{readonly: true}}\n").as_bytes());
    let files = files_of(&["ask", "look around", "--json"]);
    assert_eq!((&files[0][0]["readOnly"], &files[1][0]["readOnly"]), (&json!(true), &json!(true)), "{files:?}");
    assert!(results.lock().expect("heard")[1].contains("The volume is read-only."), "{results:?}");
}

#[test]
fn a_read_only_volume_refuses_everyone() {
    const REFUSAL: &str = "notes is read-only.";
    let (address, results) = caller(vec![
        ("read_file", json!({"path": "Note.md"})),
        ("write_file", json!({"path": "new.md", "content": "x"})),
        ("edit_file", json!({"path": "Note.md", "old_content": "Note", "new_content": "Changed"})),
        ("list_files", json!({})),
        ("delete_file", json!({"path": "Note.md"})),
        ("shell", json!({"command": "touch x"})),
    ]);
    let house = house(&address, &[("Note.md", "# Note\n")]);
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    house.run(&["ls"]).good();
    house.write("W/config.yaml", format!("{config}volumes:\n  notes: {{readonly: true}}\n").as_bytes());
    let results = results_of(&house, &["ask", "go", "--json"], &results);
    assert!(results[0].contains("# Note"), "{results:?}");
    for at in [1, 2, 4, 5] {
        assert!(results[at].contains(REFUSAL), "{results:?}");
    }
    house.run(&["new", "new.md"]).refused(2, REFUSAL);
    house.run(&["rm", "Note.md"]).refused(2, REFUSAL);
    house.run(&["mv", "Note.md", "Other.md"]).refused(2, REFUSAL);
    house.run(&["cp", "system/agents/qa.md"]).refused(2, REFUSAL);
    assert_ne!(house.fed(&["edit", "Note.md"], b"{\"at\":0,\"insert\":\"x\"}\n").code, 0);
    // Other programs still change its files, and they're read.
    house.write("notes/Note.md", b"# From outside\n");
    assert_eq!(house.cat("Note.md"), b"# From outside\n");
    house.write("W/config.yaml", config.as_bytes());
    house.run(&["new", "new.md"]).good();
}

#[test]
fn the_path_of_a_new_file_is_understood_as_tools_understand_it() {
    let house = House::with(&[("Note.md", "# Note\n"), ("Log/a.md", "a\n")]);
    house.write("other/y.md", b"y\n");
    house.run(&["open", "other"]).good();
    let absolute = house.path("notes/absolute.md").display().to_string();
    let elsewhere = house.path("other/elsewhere.md").display().to_string();
    for (words, made) in [
        (&["new", "notes/a.md"][..], "notes/a.md"),
        (&["new", "/b.md"], "notes/b.md"),
        (&["new", "/notes/sub/c"], "notes/sub/c.md"),
        (&["new", "Notes/d"], "notes/d.md"),
        (&["new", "notes/e.md", "--volume", "notes"], "notes/e.md"),
        (&["new", &absolute], "notes/absolute.md"),
        (&["new", &elsewhere], "other/elsewhere.md"),
        (&["new", "other:f"], "other/f.md"),
        (&["new", "other:other/g"], "other/g.md"),
        // As for tools, a new file stays in the first volume unless the volume is named.
        (&["new", "other/h"], "notes/other/h.md"),
        (&["cp", "Note", "notes/i"], "notes/i.md"),
        (&["cp", "system/agents/qa.md", "notes/sub/"], "notes/sub/qa.md"),
        (&["mv", "Note", "/notes/sub/Note.md"], "notes/sub/Note.md"),
        (&["mv", "sub/Note", "notes/"], "notes/Note.md"),
        (&["mv", "/notes/Log", "notes/Logs"], "notes/Logs/a.md"),
        // A note may be called as its volume, and a folder with that name wins once it's there.
        (&["new", "notes"], "notes/notes.md"),
        (&["new", "./notes/j"], "notes/notes/j.md"),
        (&["new", "notes/k"], "notes/notes/k.md"),
    ] {
        assert!(!house.path(made).exists(), "{words:?}");
        house.run(words).good();
        assert!(house.path(made).exists(), "{words:?} didn't make {made}");
    }
    // What is said is no path of the volume `other`, although the folder is called so.
    assert_eq!(house.run(&["cp", "other:y", "other/z"]).good().text(), "notes:other/z.md\n");
    assert_eq!(house.cat("notes:other/z.md"), b"y\n");
    house.run(&["new", "--volume", "notes", &elsewhere]).refused(2, "in another volume than notes");
    house.run(&["new", "other:"]).refused(2, "name the new note, too");
    house.run(&["new", "/etc/x.md"]).refused(2, "leave out .. and the leading /");
    house.run(&["mv", "Note", &elsewhere]).refused(2, "inside of its volume, which is notes");
}

#[test]
fn a_note_is_named_on_the_command_line_as_for_tools() {
    let house = House::with(&[("Week One.md", "own\n"), ("sub/deep.md", "deep\n"), ("other/Tower.md", "folder\n")]);
    house.write("other/Tower.md", b"tower\n");
    house.write("other/Over-There.md", b"there\n");
    house.run(&["open", "other"]).good();
    let absolute = house.path("other/Tower.md").display().to_string();
    for (name, text) in [
        ("Notes/week_one", "own\n"),
        ("NOTES:Week-One.md", "own\n"),
        ("/notes/week one", "own\n"),
        ("week-one", "own\n"),
        ("/Notes/Sub/Deep.md", "deep\n"),
        ("Other/over_there", "there\n"),
        // A folder that is called as a volume comes first, with and without the ending.
        ("other/Tower.md", "folder\n"),
        ("other/Tower", "folder\n"),
        ("notes/other/tower", "folder\n"),
        ("other:Tower", "tower\n"),
        (absolute.as_str(), "tower\n"),
    ] {
        assert_eq!(house.cat(name), text.as_bytes(), "{name}");
    }
    house.run(&["ls", "--volume", "OTHER"]).good();
    house.run(&["new", "OTHER:made"]).good();
    assert!(house.path("other/made.md").exists(), "the volume in another case");
    for at in 1..=5 {
        house.write(&format!("notes/y{at}/Same Name.md"), b"same\n");
    }
    let done = house.run(&["cat", "same_name"]).refused(2, "name one: notes:y1/Same Name.md, notes:y2/Same Name.md, ");
    assert!(done.err.ends_with("notes:y3/Same Name.md, and 2 more\n"), "{}", done.err);
    house.run(&["cat", "Notes/sub/deap.md"]).refused(2, "The closest are: notes/sub/deep.md, ");
}

#[test]
fn an_ambiguous_path_names_what_it_could_be() {
    let (address, results) = caller(vec![
        ("read_file", json!({"path": "plans/Week One.md"})),
        ("read_file", json!({"path": "Week.md"})),
        ("read_file", json!({"path": "plans/week-one.md"})),
    ]);
    let files = [("plans/week-one.md", "first\n"), ("plans/week_one.md", "second\n"), ("old/Week.md", "old\n")];
    let house = house(&address, &files);
    house.write("notes/new/week.md", b"new\n");
    let results = results_of(&house, &["ask", "go", "--json"], &results);
    for (result, names) in
        results.iter().zip([["plans/week-one.md", "plans/week_one.md"], ["new/week.md", "old/Week.md"]])
    {
        assert!(result.contains("The closest are: ") && names.iter().all(|name| result.contains(name)), "{result}");
        assert!(!result.contains("first") && !result.contains("second"), "nothing is guessed: {result}");
    }
    assert!(results[2].contains("first"), "{results:?}");
    let done = house.run(&["cat", "week"]).refused(2, "fits several notes, name one: ");
    assert!(done.err.contains("notes:new/week.md, notes:old/Week.md"), "{}", done.err);
    house.run(&["rm", "week"]).refused(2, "fits several notes");
    let done =
        house.run(&["cat", "plans/weak-one"]).refused(2, "The closest are: plans/week-one.md, plans/week_one.md");
    assert!(done.out.is_empty());
}

#[test]
fn a_read_only_volume_is_listed_as_one() {
    let house = House::with(&[("Note.md", "# Note\n")]);
    house.write("other/y.md", b"y\n");
    house.run(&["open", "other"]).good();
    house.write("W/config.yaml", b"volumes:\n  notes: {readonly: true}\n");
    let volumes = house.json(&["volumes"]);
    let listed = volumes.as_array().into_iter().flatten().map(|row| (row["name"].as_str(), row["readonly"].as_bool()));
    let listed: Vec<_> = listed.collect();
    assert_eq!(listed, [(Some("notes"), Some(true)), (Some("other"), Some(false))]);
    let lines = house.run(&["volumes"]).good().text();
    let read_only: Vec<bool> = lines.lines().map(|line| line.ends_with("  read-only")).collect();
    assert_eq!(read_only, [true, false], "{lines}");
    let rows = house.json(&["ls"]);
    assert_eq!((&rows[0]["path"], &rows[0]["readonly"]), (&json!("Note.md"), &json!(true)));
    assert_eq!((&rows[1]["path"], &rows[1]["readonly"]), (&json!("y.md"), &Value::Null));
    let text = house.run(&["ls"]).good().text();
    assert!(text.starts_with("notes (read-only)\n  Note.md\nother\n"), "{text}");
}

#[test]
fn volumes_of_a_team_are_cloned_set_up_and_named_by_their_kind() {
    let (address, results) = caller(vec![
        ("read_file", json!({"volume": "team", "path": "Plan.md"})),
        ("read-file", json!({"path": "/team/Plan.md"})),
        ("read_file", json!({"volume": "user", "path": "Note.md"})),
    ]);
    let house = house(&address, &[("Note.md", "# Mine\n")]);
    git(&house.path(""), &["init", "-q", "-b", "main", "source"]);
    know_user(&house.path("source"));
    house.write("source/Plan.md", b"# Ours\n");
    git(&house.path("source"), &["add", "-A"]);
    git(&house.path("source"), &["commit", "-qm", "First"]);
    git(&house.path("source"), &["switch", "-qc", "next"]);
    house.write("source/Plan.md", b"# Ours, next\n");
    git(&house.path("source"), &["commit", "-qam", "Second"]);
    git(&house.path("source"), &["switch", "-q", "main"]);

    // What the configuration names and isn't here is listed with the command that gets it.
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    let source = house.path("source").canonicalize().expect("there").display().to_string();
    let named = format!(
        "{config}# whose they are\nvolumes:\n  Harbor: # of us all\n    kind: team\n    remote: {source}\n    \
         branch: next\n"
    );
    house.write("W/config.yaml", named.as_bytes());
    let lines = house.run(&["volumes"]).good().text();
    assert!(lines.contains("Harbor") && lines.contains("`tracebook volumes add Harbor`"), "{lines}");
    house.run(&["volumes", "add", "Harbor", "--remote", "https://a:b@example.org/x"]).refused(2, "holds no password");
    let done = house.run(&["volumes", "add", "Harbor"]).good().text();
    assert!(done.contains("Harbor  team") && done.contains("branch next"), "{done}");
    assert_eq!(house.read("W/Harbor/Plan.md"), b"# Ours, next\n");
    house.run(&["volumes", "add", "harbor", "--remote", "source"]).refused(2, "a volume harbor already");

    // Settings are written between the user's own lines.
    house.run(&["volumes", "set", "notes", "--kind", "user", "--remote", "https://example.org/mine.git"]).good();
    let written = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    assert!(written.contains("# whose they are\nvolumes:\n  Harbor: # of us all\n"), "{written}");
    let rows = house.json(&["volumes"]);
    let row = |name: &str| rows.as_array().into_iter().flatten().find(|row| row["name"] == name).expect("listed");
    assert_eq!((&row("Harbor")["kind"], &row("Harbor")["branch"]), (&json!("team"), &json!("next")));
    assert_eq!(row("Harbor")["hint"], Value::Null, "it has its repository");
    assert_eq!((&row("notes")["kind"], row("notes")["readonly"].as_bool()), (&json!("user"), Some(false)));
    let hint = row("notes")["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("`tracebook git clone https://example.org/mine.git"), "{rows}");

    let results = results_of(&house, &["ask", "go", "--project", "notes", "--json"], &results);
    assert!(results[0].contains("# Ours, next") && results[1].contains("# Ours, next"), "{results:?}");
    assert!(results[2].contains("# Mine"), "{results:?}");
    assert_eq!(house.cat("team/Plan.md"), b"# Ours, next\n");
    house.run(&["new", "Made", "--volume", "team"]).good();
    assert!(house.path("W/Harbor/Made.md").exists());
    // Of two volumes, neither is meant.
    house.run(&["volumes", "set", "notes", "--kind", "team"]).good();
    house.run(&["cat", "team/Plan.md"]).refused(2, "no note “team/Plan.md”");
    house.run(&["volumes", "set", "notes", "--kind", "none", "--remote", "none"]).good();
    let rows = house.json(&["volumes"]);
    let row = rows.as_array().into_iter().flatten().find(|row| row["name"] == "notes").expect("listed");
    assert_eq!((&row["kind"], &row["remote"]), (&Value::Null, &Value::Null));

    house.run(&["volumes", "set", "notes", "--readonly", "yes"]).good();
    house.run(&["new", "x.md", "--volume", "notes"]).refused(2, "notes is read-only.");
    house.run(&["volumes", "set", "notes", "--readonly", "no"]).good();
    house.run(&["new", "x.md", "--volume", "notes"]).good();
    for (wrong, why) in [
        (&["volumes", "set", "notes"][..], "say what to set"),
        (&["volumes", "set", "notes", "--kind", "system"], "team, user or none"),
        (&["volumes", "set", "nowhere", "--kind", "team"], "no volume “nowhere”"),
        (&["volumes", "list", "--kind", "team"], "go with volumes add or set"),
        (&["volumes", "add", "Other"], "the address of the repository"),
        (&["volumes", "add", "Other", "--remote", "source", "--branch", "nowhere"], "nowhere"),
    ] {
        house.run(wrong).refused(2, why);
    }
    assert!(!house.path("W/Other").exists(), "nothing half made");
}

#[test]
fn the_memory_log_of_system_lists_what_is_remembered() {
    let (address, results) = caller(vec![
        ("read-file", json!({"path": "/system/memory_log.md"})),
        ("read_file", json!({"volume": "system", "path": "memory_log.md", "from_line": 1, "lines": 1})),
        ("list_files", json!({"volume": "system", "directory": "/"})),
        ("write_file", json!({"volume": "system", "path": "memory_log.md", "content": "forged"})),
        ("delete_file", json!({"path": "/system/memory_log.md"})),
    ]);
    let house = house(&address, &[("Note.md", "# Note\n")]);
    let empty = house.run(&["cat", "system/memory_log.md"]).good().text();
    assert!(empty.starts_with("# Memory log\n") && empty.contains("Nothing is remembered yet."), "{empty}");
    let words = ["memory", "add", "scipy.fft works reliably here", "--goal", "Create a sine wave and apply FFT"];
    house.run(&words).good();
    house.run(&["memory", "add", "Ask the harbor for tides first", "--goal", "Plan the crossing to Rhum"]).good();

    let log = house.run(&["cat", "--volume", "system", "memory_log.md"]).good().text();
    for part in [
        "experience_id: exp_",
        "project_name: notes",
        "primary_goal: Create a sine wave and apply FFT",
        "final_outcome: success",
        "scipy.fft works reliably here",
        "Ask the harbor for tides first",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let rows = house.run(&["ls", "--volume", "system", "--json"]).good().json();
    let row = rows.as_array().into_iter().flatten().find(|row| row["path"] == "memory_log.md").expect("listed");
    assert_eq!(row["readonly"], true);
    let results = results_of(&house, &["ask", "go", "--json"], &results);
    assert!(results[0].contains("primary_goal: Plan the crossing to Rhum"), "{results:?}");
    assert!(results[0].contains("scipy.fft works reliably here"), "{results:?}");
    assert_eq!(results[1].trim_end(), "# Memory log", "{results:?}");
    assert!(results[2].contains("memory_log.md (results of earlier work, read-only)"), "{results:?}");
    for refused in &results[3..5] {
        assert!(refused.contains("System is read-only."), "{results:?}");
    }
    house.run(&["rm", "system/memory_log.md"]).refused(2, "System is read-only.");
    assert_eq!(house.run(&["cp", "system/memory_log.md", "Kept.md"]).good().text(), "Kept.md\n");
    assert_eq!(house.read("notes/Kept.md"), log.as_bytes());
}
