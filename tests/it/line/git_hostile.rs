//! Repositories that someone else has made: no program that they name runs by an agent, and no other host is reached.

use super::agents::house;
use super::git::{caller, git, know_user, with_remote};
use serde_json::json;

#[test]
fn an_agent_runs_no_program_that_a_repository_names() {
    let (address, results) = caller(vec![("git_fetch", json!({}))]);
    let house = house(&address, &[("a.md", "# A\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let evil = format!("touch {}; false", house.path("hacked").display());
    let names = [
        "alias.remote-odd",
        "alias.credential-odd",
        "core.alternateRefsCommand",
        "fetch.bundleURI",
        "gc.recentObjectsHook",
        "gpg.ssh.defaultKeyCommand",
        "hook.odd.command",
        "http.cookieFile",
        "http.https://example.org.proxy",
        "http.saveCookies",
        "http.sslVerify",
        "lfs.customtransfer.odd.path",
        "lfs.extension.odd.clean",
        "lfs.standalonetransferagent",
        "remote.origin.vcs",
        "sequence.editor",
        "trailer.odd.cmd",
    ];
    for name in names {
        git(&notes, &["config", name, &evil]);
    }
    // A remote as Git had them before it had settings for them.
    house.write("notes/.git/remotes/old", b"URL: odd::x\n");
    house.run(&["ask", "look", "--approve", "git_fetch", "--json"]).good();
    let results = results.lock().expect("heard").clone();
    for name in names {
        assert!(results[0].contains(&name.to_lowercase()), "{name}: {results:?}");
    }
    assert!(results[0].contains("remotes/old"), "{results:?}");
    assert!(!house.path("hacked").exists(), "nothing ran");
}

#[test]
fn no_hook_of_the_settings_runs_for_a_fork() {
    let (address, _) = caller(Vec::new());
    let house = house(&address, &[("a.md", "# A\n")]);
    with_remote(&house);
    let evil = format!("touch {}", house.path("hacked").display());
    git(&house.path("notes"), &["config", "hook.odd.event", "reference-transaction"]);
    git(&house.path("notes"), &["config", "hook.odd.command", &evil]);
    house.run(&["ask", "go", "--fork", "x"]).refused(2, "names a hook (hook.odd.");
    assert!(!house.path("hacked").exists(), "nothing ran");
}

#[test]
fn an_agent_runs_no_alias_as_the_program_of_a_remote() {
    let (address, results) = caller(vec![("git_fetch", json!({}))]);
    let house = house(&address, &[("a.md", "# A\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["config", "remote.origin.url", "odd::x"]);
    git(&notes, &["config", "alias.remote-odd", &format!("!touch {}", house.path("hacked").display())]);
    house.run(&["ask", "look", "--approve", "git_fetch", "--json"]).good();
    let results = results.lock().expect("heard").clone();
    assert!(results[0].contains("alias.remote-odd") && !house.path("hacked").exists(), "{results:?}");
}

#[test]
fn an_agent_runs_no_program_that_a_submodule_names() {
    let (address, results) = caller(vec![("git_switch", json!({"branch": "idea"}))]);
    let house = house(&address, &[("a.md", "# A\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let lib = house.path("lib");
    house.write("lib/.gitattributes", b"* filter=evil\n");
    house.write("lib/x.txt", b"x\n");
    git(&lib, &["init", "-q"]);
    know_user(&lib);
    git(&lib, &["add", "-A"]);
    git(&lib, &["commit", "-qm", "Library"]);
    let from = lib.display().to_string();
    git(&notes, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "lib"]);
    git(&notes, &["commit", "-qm", "With a submodule"]);
    git(&notes, &["branch", "idea"]);
    let evil = format!("touch {}; cat", house.path("hacked").display());
    git(&notes.join("lib"), &["config", "filter.evil.clean", &evil]);
    house.write("notes/lib/x.txt", b"y\n");
    house.run(&["ask", "look", "--approve", "git_switch", "--json"]).good();
    let results = results.lock().expect("heard").clone();
    assert!(results[0].contains("filter.evil.clean in the submodule lib"), "{results:?}");
    assert!(!house.path("hacked").exists(), "nothing ran");
}

#[test]
fn a_name_of_a_file_adds_no_line_to_a_status() {
    let (address, results) = caller(vec![("git_status", json!({}))]);
    let house = house(&address, &[("a.md", "# A\n")]);
    with_remote(&house);
    house.write("notes/x\n D a.md", b"x\n");
    house.run(&["ask", "look", "--json"]).good();
    let results = results.lock().expect("heard").clone();
    assert!(results[0].contains(r#"?? "x\n D a.md""#), "{results:?}");
}

#[test]
fn all_addresses_of_a_remote_count_for_the_list_of_hosts() {
    for (setting, value) in [
        ("branch.main.pushRemote", "https://elsewhere.example/x.git"),
        ("remote.pushDefault", "ssh://git@elsewhere.example/x.git"),
        ("remote.origin.url", "elsewhere.example:x.git"),
    ] {
        let (address, results) = caller(vec![("git_push", json!({}))]);
        let house = house(&address, &[("a.md", "# A\n")]);
        let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
        let security = "security: {network_restricted: true, allowed_hosts: [localhost]}\n";
        house.write("W/config.yaml", format!("{config}{security}").as_bytes());
        with_remote(&house);
        let notes = house.path("notes");
        git(&notes, &["config", "--add", setting, value]);
        // Of several addresses, the one in the middle.
        git(&notes, &["config", "--add", "remote.origin.url", "../remote.git"]);
        house.run(&["ask", "send it", "--approve", "git_push", "--json"]).good();
        let results = results.lock().expect("heard").clone();
        assert!(results[0].contains("elsewhere.example is not on the list of hosts"), "{setting}: {results:?}");
        assert_eq!(git(&house.path("remote.git"), &["branch"]), "", "nothing was pushed");
    }
}
