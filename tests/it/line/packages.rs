//! Packages, through the program: added from every kind of source, used, updated, removed; hostile ones refused; and
//! commands that are killed in the middle.

use super::agents;
use super::git::{git, know_user};
use super::mcp_server::Client;
use super::meaning::serve;
use super::own_tools;
use crate::program::{Done, House, PROGRAM, assert_fast, finish, until};
use serde_json::{Value, json};
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub(super) const MANIFEST: &str = "name: sail-kit\nversion: 1.0.0\ndescription: Logbooks for sailors\nlicense: MIT\n\
                        permissions:\n  agents: [read_file]\n";
pub(super) const AGENT: &str =
    "---\nname: skipper\ndescription: Reads logbooks\ntools: [read_file]\n---\nYou read logbooks.\n";
const PROMPT: &str = "---\ntags: [prompt]\n---\nWhat is the weather in {{harbour}}?\n";
const THEME: &str = "base: dark\ncolors:\n  paper: \"#101418\"\n  ink: \"#E8E8E8\"\n";

fn tool(permissions: &[&str]) -> String {
    json!({"name": "knots", "func": "def run(kmh):\n    return round(kmh / 1.852, 1)\n", "permissions": permissions,
        "schema": {"description": "Speed in knots",
            "parameters": {"type": "object", "properties": {"kmh": {"type": "number"}}}}})
    .to_string()
}

/// Writes a package with everything that a package can have.
fn write_kit(house: &House, folder: &str) {
    let knots = tool(&[]);
    for (path, text) in [
        ("package.yaml", MANIFEST),
        ("README.md", "# Sail kit\n"),
        (".gitignore", "*.bak\n"),
        ("agents/skipper.md", AGENT),
        ("tools/knots.json", &knots),
        ("templates/Log.md", "# {{title}}\n\nWind:\n"),
        ("snippets/Signature.md", "-- {{cursor}}\n"),
        ("themes/Night watch.yaml", THEME),
        ("prompts/Weather.md", PROMPT),
    ] {
        house.write(&format!("{folder}/{path}"), text.as_bytes());
    }
}

pub(super) fn kit_house() -> House {
    let house = House::with(&[("a.md", "one\n")]);
    write_kit(&house, "kit");
    house
}

/// Shows a package, approves it by the hash that was shown, and installs it.
pub(super) fn add(house: &House, source: &str) -> Value {
    let shown = house.run(&["packages", "add", source, "--json"]).code(1).json();
    assert_eq!(shown["installed"], false);
    let hash = shown["hash"].as_str().expect("a hash").to_owned();
    let done = house.run(&["packages", "add", source, "--approve", &hash, "--json"]).good().json();
    assert_eq!((&done["installed"], &done["kept"]), (&json!(true), &json!([])));
    done
}

fn installed(house: &House) -> Vec<Value> {
    house.json(&["packages", "list"]).as_array().expect("a list").clone()
}

/// Everything that packages put anywhere, as paths.
pub(super) fn traces(house: &House) -> Vec<String> {
    let named = ["agents", "plugins", "snippets", "themes", "packages.lock", "packages.pending"];
    let mut found: Vec<String> =
        named.iter().filter(|name| house.path("W").join(name).exists()).map(|name| (*name).to_owned()).collect();
    let notes = std::fs::read_dir(house.path("notes")).expect("listed").flatten();
    found.extend(notes.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name != "a.md"));
    found
}

#[test]
fn a_package_is_shown_approved_used_and_removed_without_a_trace() {
    let house = agents::house(&own_tools::one_call("knots", json!({"kmh": 20})), &[("a.md", "one\n")]);
    write_kit(&house, "kit");
    let shown = house.run(&["packages", "add", "kit"]).code(1).text();
    for part in [
        "sail-kit 1.0.0: Logbooks for sailors (MIT)",
        "not signed",
        "its agents may call read_file",
        "agents/skipper.md",
        "themes/Night watch.yaml",
        "Nothing is installed yet",
    ] {
        assert!(shown.contains(part), "does not say “{part}”: {shown}");
    }
    assert!(!shown.contains("You read logbooks."));
    let whole = house.run(&["packages", "add", "kit", "--contents"]).code(1).text();
    assert!(whole.contains("You read logbooks.") && whole.contains("kmh / 1.852"), "{whole}");
    assert_eq!(traces(&house), [""; 0], "showing installs nothing");
    // What was shown is what is approved.
    let hash = shown.lines().find_map(|line| line.strip_prefix("hash ")).expect("a hash").to_owned();
    house.run(&["packages", "add", "kit", "--approve", &hash[..8]]).refused(2, "at least 16 characters");
    house.write("kit/agents/skipper.md", AGENT.replace("You read", "You burn").as_bytes());
    house.run(&["packages", "add", "kit", "--approve", &hash]).refused(2, "isn't what you approved");
    assert_eq!(traces(&house), [""; 0]);
    house.write("kit/agents/skipper.md", AGENT.as_bytes());
    let done = house.run(&["packages", "add", "kit", "--approve", &hash[..16]]).good().text();
    assert!(done.contains("Installed sail-kit 1.0.0.") && done.contains("tools knots --approve"), "{done}");

    // The agent works, the tool waits for its own approval, template and prompt are notes.
    let agents = house.run(&["tasks", "agents", "--project", "notes", "--json"]).good().text();
    assert!(agents.contains("\"skipper\""), "{agents}");
    assert!(house.run(&["ask", "go", "--approve", "knots"]).text().contains("there is no tool knots"));
    house.run(&["tools", "knots", "--approve"]).good();
    assert_eq!(own_tools::ask(&house, "knots"), "10.8");
    assert_eq!(house.cat("notes:Templates/Log.md"), b"# {{title}}\n\nWind:\n");
    let mut client = Client::new(&house, &[]);
    until("the prompt is offered", || {
        client.request("prompts/list", json!({}))["result"]["prompts"].to_string().contains("\"Weather\"")
    });
    let filled = client.request("prompts/get", json!({"name": "Weather", "arguments": {"harbour": "Kiel"}}));
    assert!(filled.to_string().contains("What is the weather in Kiel?"), "{filled}");
    client.end();
    assert_eq!(house.read("W/themes/Night watch.yaml"), THEME.as_bytes());

    let listed = &installed(&house)[0];
    assert_eq!((&listed["name"], &listed["volume"]), (&json!("sail-kit"), &json!("notes")));
    assert_eq!((&listed["changed"], &listed["gone"], &listed["tools"]), (&json!([]), &json!([]), &json!(["knots"])));
    house.run(&["packages", "add", "kit"]).refused(2, "is installed already");
    let same = house.run(&["packages", "update"]).good().text();
    assert_eq!(same, "sail-kit 1.0.0 is up to date.\n");

    assert_eq!(house.run(&["packages", "remove", "sail-kit"]).good().text(), "Removed sail-kit 1.0.0.\n");
    assert_eq!(traces(&house), [""; 0]);
    assert!(!house.run(&["tools"]).good().text().contains("knots"));
    assert!(!house.run(&["tasks", "agents", "--project", "notes", "--json"]).good().text().contains("\"skipper\""));
    assert!(!house.run(&["ls", "--json"]).good().text().contains("Log.md"));
    assert_eq!(installed(&house), [json!(null); 0]);
    house.run(&["packages", "remove", "sail-kit"]).refused(2, "no package sail-kit is installed");
}

/// Packs the folder `kit` as `kit.tar.gz` and `kit.zip`, with the system's own programs, as authors do.
pub(crate) fn pack_kit(folder: &Path) {
    let script = "import zipfile, pathlib\nwith zipfile.ZipFile('kit.zip', 'w', zipfile.ZIP_DEFLATED) as file:\n    \
                  for path in pathlib.Path('kit').rglob('*'):\n        file.write(path, path.relative_to('kit'))\n";
    for (program, words) in [("tar", &["-czf", "kit.tar.gz", "kit"][..]), ("python3", &["-c", script][..])] {
        let done = Command::new(program).args(words).current_dir(folder).output().expect("runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

/// Runs a command at a terminal, where `typed` is answered, and returns its exit code and what the terminal showed.
fn at_terminal(house: &House, words: &str, typed: &str) -> (i32, String) {
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &format!("{PROGRAM} --workspace W {words}"), "/dev/null"]);
    house.enclose(&mut command);
    let done = finish(command, typed.as_bytes());
    (done.code, String::from_utf8_lossy(&done.out).into_owned())
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    let house = kit_house();
    let (code, shown) = at_terminal(&house, "packages add kit", "n\n");
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("agents/skipper.md") && shown.contains("Install exactly this? [y/N]"), "{shown}");
    assert!(shown.contains("Nothing is installed yet") && installed(&house).is_empty(), "{shown}");
    let (code, shown) = at_terminal(&house, "packages add kit", "y\n");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Installed sail-kit 1.0.0") && installed(&house).len() == 1, "{shown}");

    let more = MANIFEST.replace("1.0.0", "1.1.0").replace("[read_file]", "[read_file, write_file]");
    house.write("kit/package.yaml", more.as_bytes());
    let (code, shown) = at_terminal(&house, "packages update sail-kit", "\n");
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("wants more than you have approved") && shown.contains("Nothing is changed"), "{shown}");
    let (code, shown) = at_terminal(&house, "packages update sail-kit", "yes\n");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Updated to sail-kit 1.1.0"), "{shown}");
}

#[test]
fn archives_repositories_and_folders_give_the_same_package() {
    let house = kit_house();
    pack_kit(&house.path(""));
    git(&house.path("kit"), &["init", "-q", "-b", "main"]);
    know_user(&house.path("kit"));
    git(&house.path("kit"), &["add", "-A"]);
    git(&house.path("kit"), &["commit", "-qm", "One"]);
    let address = format!("file://{}", house.path("kit/.git").display());
    let hash = house.run(&["packages", "add", "kit", "--json"]).code(1).json()["hash"].clone();
    for source in ["kit.tar.gz", "kit.zip", &address, "./kit"] {
        let done = add(&house, source);
        assert_eq!((&done["hash"], &done["files"].as_array().map(Vec::len)), (&hash, &Some(8)), "{source}");
        assert_eq!(house.read("W/agents/skipper.md"), AGENT.as_bytes());
        house.run(&["packages", "remove", "sail-kit"]).good();
        assert_eq!(traces(&house), [""; 0], "{source}");
    }
    // A repository is updated from its newest commit; a hook of it runs nowhere.
    add(&house, &address);
    house.write("kit/package.yaml", MANIFEST.replace("1.0.0", "1.1.0").as_bytes());
    house.write("kit/templates/Log.md", b"# {{title}}\n\nWind and waves:\n");
    git(&house.path("kit"), &["commit", "-qam", "Two"]);
    let done = house.run(&["packages", "update", "sail-kit"]).good().text();
    assert!(done.starts_with("Updated to sail-kit 1.1.0.\n"), "{done}");
    assert_eq!(house.cat("notes:Templates/Log.md"), b"# {{title}}\n\nWind and waves:\n");
}

#[test]
fn an_index_is_published_searched_and_served() {
    let house = kit_house();
    let pair = minisign::KeyPair::generate_unencrypted_keypair().expect("a pair");
    house.write("key", pair.sk.to_box(None).expect("a file").into_string().as_bytes());
    house.run(&["packages", "search"]).refused(2, "packages.indexes");
    house.run(&["packages", "add", "sail-kit"]).refused(2, "packages.indexes");
    let published = house.json(&["packages", "publish", "kit", "--to", "index", "--key", "key"]);
    assert_eq!((&published["name"], &published["signer"]), (&json!("sail-kit"), &json!(pair.pk.to_base64())));
    // The same again changes nothing; other content needs another version.
    let before = (house.read("index/index.json"), house.read("index/sail-kit-1.0.0.tar.gz"));
    house.run(&["packages", "publish", "kit", "--to", "index", "--key", "key"]).good();
    assert_eq!((house.read("index/index.json"), house.read("index/sail-kit-1.0.0.tar.gz")), before);
    house.write("kit/README.md", b"# Other\n");
    house.run(&["packages", "publish", "kit", "--to", "index", "--key", "key"]).refused(2, "raise the version");
    house.write("kit/package.yaml", MANIFEST.replace("1.0.0", "1.10.0").as_bytes());
    house.run(&["packages", "publish", "kit", "--to", "index", "--key", "key"]).good();
    house.write("kit/package.yaml", MANIFEST.replace("1.0.0", "1.9.0").as_bytes());
    house.run(&["packages", "publish", "kit", "--to", "index", "--key", "key"]).good();
    assert!(!house.path("kit/package.minisig").exists(), "publishing doesn't change the folder");

    // The same index as a folder, over HTTP and as a repository.
    let folder = house.path("index");
    let served = folder.clone();
    let server = serve(move |request| {
        let name = request.path.trim_start_matches('/').to_owned();
        match std::fs::read(served.join(&name)) {
            Ok(bytes) => (200, String::new(), bytes),
            Err(_) => (404, String::new(), b"nothing".to_vec()),
        }
    });
    git(&folder, &["init", "-q", "-b", "main"]);
    know_user(&folder);
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-qm", "Index"]);
    let repository = format!("file://{}", house.path("index/.git").display());
    for index in [folder.display().to_string(), format!("{server}/index.json"), repository] {
        house.write("W/config.yaml", format!("packages:\n  indexes: [\"{index}\"]\n").as_bytes());
        let found = house.json(&["packages", "search", "LOGBOOKS sail"]);
        assert_eq!((&found[0]["name"], &found[0]["version"]), (&json!("sail-kit"), &json!("1.10.0")), "{index}");
        assert_eq!(house.json(&["packages", "search", "boats"]), json!([]));
        let done = add(&house, "sail-kit");
        assert_eq!((&done["version"], &done["signer"]), (&json!("1.10.0"), &json!(pair.pk.to_base64())));
        house.run(&["packages", "remove", "sail-kit"]).good();
    }
    house.run(&["packages", "add", "nothing-here"]).refused(2, "no index has a package nothing-here");
    // An archive that isn't the listed one is refused, and so is an index that can't be reached.
    house.write("W/config.yaml", format!("packages:\n  indexes: [\"{}\"]\n", folder.display()).as_bytes());
    let other = house.read("index/sail-kit-1.9.0.tar.gz");
    house.write("index/sail-kit-1.10.0.tar.gz", &other);
    house.run(&["packages", "add", "sail-kit"]).refused(2, "isn't the one that the index");
    house.write("W/config.yaml", b"packages:\n  indexes: [\"http://127.0.0.1:9/index.json\"]\n");
    house.run(&["packages", "search"]).code(1);
    house.run(&["packages", "add", "sail-kit"]).refused(1, "can't get the index");
    house.write("W/config.yaml", b"packages:\n  indexes: [\"http://example.org/index.json\"]\n");
    house.run(&["packages", "add", "sail-kit"]).refused(1, "use https");
    house.write("W/config.yaml", b"packages:\n  indexes: [\"no/such/folder\"]\n");
    house.run(&["packages", "search"]).refused(1, "no such folder");
}

#[test]
fn updates_keep_what_the_user_changed_and_ask_when_they_want_more() {
    let house = kit_house();
    add(&house, "kit");
    house.run(&["tools", "knots", "--approve"]).good();
    // The user changes one file, deletes another, and the new version has a new one and lacks one.
    house.write("W/agents/skipper.md", AGENT.replace("You read", "You kindly read").as_bytes());
    std::fs::remove_file(house.path("W/snippets/Signature.md")).expect("removed");
    let listed = &installed(&house)[0];
    assert_eq!(
        (&listed["changed"], &listed["gone"]),
        (&json!(["agents/skipper.md"]), &json!(["snippets/Signature.md"]))
    );
    let shown = house.run(&["packages"]).good().text();
    assert!(shown.contains("changed: agents/skipper.md") && shown.contains("gone: snippets/Signature.md"), "{shown}");
    house.write("kit/package.yaml", MANIFEST.replace("1.0.0", "1.1.0").as_bytes());
    house.write("kit/agents/skipper.md", AGENT.replace("You read", "You now read").as_bytes());
    house.write("kit/snippets/Signature.md", b"new\n");
    house.write("kit/templates/Log.md", b"# New\n");
    house.write("kit/templates/Crew.md", b"# Crew\n");
    std::fs::remove_file(house.path("kit/themes/Night watch.yaml")).expect("removed");
    std::fs::remove_dir(house.path("kit/themes")).expect("removed");
    let done = house.run(&["packages", "update"]).good().text();
    assert!(done.contains("Kept as it is") && done.contains(": agents/skipper.md\n"), "{done}");
    assert!(done.contains(": snippets/Signature.md\n") && done.contains("Updated to sail-kit 1.1.0."), "{done}");
    assert!(String::from_utf8_lossy(&house.read("W/agents/skipper.md")).contains("kindly"));
    assert!(!house.path("W/snippets/Signature.md").exists() && !house.path("W/themes/Night watch.yaml").exists());
    assert_eq!(
        (house.cat("notes:Templates/Log.md"), house.cat("notes:Templates/Crew.md")),
        (b"# New\n".to_vec(), b"# Crew\n".to_vec())
    );

    // More permissions are approved first, by the hash of the new content.
    let network = tool(&["network"]);
    house.write("kit/tools/knots.json", network.as_bytes());
    house.write("kit/package.yaml", MANIFEST.replace("1.0.0", "1.2.0").as_bytes());
    house.run(&["packages", "update"]).code(1);
    let wants = format!("{}  tools: [network]\n", MANIFEST.replace("1.0.0", "1.2.0"));
    house.write("kit/package.yaml", wants.as_bytes());
    let asked = house.run(&["packages", "update"]).code(1).text();
    assert!(asked.contains("wants more than you have approved for 1.1.0: its tools may use network"), "{asked}");
    let asked = house.run(&["packages", "update", "sail-kit", "--json"]).code(1).json();
    assert_eq!((&asked["more"], &asked["installed"]), (&json!({"tools": ["network"], "agents": []}), &json!(false)));
    assert_eq!(house.read("W/plugins/knots.json"), tool(&[]).as_bytes());
    let hash = asked["hash"].as_str().expect("a hash");
    house.run(&["packages", "update", "sail-kit", "--approve", &"0".repeat(64)]).refused(2, "isn't what you approved");
    house.run(&["packages", "update", "--approve", hash]).refused(2, "say which package");
    let done = house.run(&["packages", "update", "sail-kit", "--approve", hash]).good().text();
    // The tool has changed, so its own approval is asked for again.
    assert!(done.contains("tools knots --approve"), "{done}");
    // Once approved, the same permissions don't ask again.
    house.write("kit/package.yaml", wants.replace("1.2.0", "1.3.0").as_bytes());
    house.run(&["packages", "update"]).good();
    house.write("kit/package.yaml", wants.as_bytes());
    house.run(&["packages", "update", "sail-kit"]).refused(2, "older than the installed 1.3.0");

    // The changed agent stays with the user when the package goes.
    let removed = house.run(&["packages", "remove", "sail-kit"]).good().text();
    assert!(removed.contains("Kept as it is") && removed.contains("agents/skipper.md"), "{removed}");
    assert_eq!(traces(&house), ["agents"]);
}

#[test]
fn nothing_of_the_user_is_replaced() {
    let house = kit_house();
    for (path, about) in [("W/agents/skipper.md", "agents/skipper.md"), ("notes/Templates/Log.md", "Templates/Log.md")]
    {
        house.write(path, b"mine\n");
        let hash =
            house.run(&["packages", "add", "kit", "--json"]).code(1).json()["hash"].as_str().expect("one").to_owned();
        house.run(&["packages", "add", "kit", "--approve", &hash]).refused(2, about);
        assert_eq!(house.read(path), b"mine\n");
        std::fs::remove_file(house.path(path)).expect("removed");
        std::fs::remove_dir(house.path(path).parent().expect("a folder")).expect("nothing else is there");
    }
    // Tools and agents of the same name in other files.
    own_tools::import(&house, &serde_json::from_str(&tool(&[])).expect("a tool"));
    house.run(&["packages", "add", "kit"]).refused(2, "you have a tool knots already");
    house.run(&["tools", "knots", "--remove"]).good();
    house.write("W/agents/other.md", AGENT.as_bytes());
    house.run(&["packages", "add", "kit"]).refused(2, "there is an agent skipper already");
    std::fs::remove_file(house.path("W/agents/other.md")).expect("removed");
    // A second volume: which one gets the notes is said.
    house.write("more/b.md", b"two\n");
    house.run(&["open", "more"]).good();
    let hash =
        house.run(&["packages", "add", "kit", "--json"]).code(1).json()["hash"].as_str().expect("one").to_owned();
    house.run(&["packages", "add", "kit", "--approve", &hash]).refused(2, "--volume NAME");
    house.run(&["packages", "add", "kit", "--approve", &hash, "--volume", "nowhere"]).refused(2, "no volume “nowhere”");
    house.run(&["packages", "add", "kit", "--approve", &hash, "--volume", "more"]).good();
    assert!(house.path("more/Templates/Log.md").exists() && !house.path("notes/Templates").exists());
    // A file of packages that can't be read stops changes, and is kept.
    house.write("W/packages.lock", b"{\"format\": 9}");
    house.run(&["packages", "remove", "sail-kit"]).refused(3, "packages.lock can't be used");
    assert_eq!(house.read("W/packages.lock"), b"{\"format\": 9}");
}

#[test]
fn signatures_bind_content_and_signer() {
    let house = kit_house();
    // This device's key signs in place, for a repository.
    let signed = house.json(&["packages", "publish", "kit"]);
    let signer = signed["signer"].as_str().expect("a key").to_owned();
    assert!(house.path("kit/package.minisig").exists() && house.path("kit/package.pub").exists());
    let shown = house.run(&["packages", "add", "kit"]).code(1).text();
    assert!(shown.contains(&format!("signed by {signer}")), "{shown}");
    add(&house, "kit");
    // Changed content, another's key, half a signature.
    house.write("kit/templates/Log.md", b"# Tampered\n");
    house.run(&["packages", "update", "sail-kit"]).refused(2, "aren't those that were signed");
    house.write("kit/templates/Log.md", b"# {{title}}\n\nWind:\n");
    let signature = house.read("kit/package.minisig");
    std::fs::remove_file(house.path("kit/package.minisig")).expect("removed");
    house.run(&["packages", "update", "sail-kit"]).refused(2, "no package.minisig");
    house.write("kit/package.minisig", b"untrusted comment: x\nAAAA\ntrusted comment: y\nAAAA\n");
    house.run(&["packages", "update", "sail-kit"]).refused(2, "no signature of minisign");
    house.write("kit/package.minisig", &signature);
    assert!(house.run(&["packages", "update"]).good().text().contains("up to date"));
    let pair = minisign::KeyPair::generate_unencrypted_keypair().expect("a pair");
    house.write("key", pair.sk.to_box(None).expect("a file").into_string().as_bytes());
    house.write("kit/package.yaml", MANIFEST.replace("1.0.0", "1.1.0").as_bytes());
    house.run(&["packages", "publish", "kit", "--key", "key"]).good();
    house.run(&["packages", "update", "sail-kit"]).refused(2, "the installed one is signed by");
    std::fs::remove_file(house.path("kit/package.minisig")).expect("removed");
    std::fs::remove_file(house.path("kit/package.pub")).expect("removed");
    house.run(&["packages", "update", "sail-kit"]).refused(2, "isn't signed");
    house.run(&["packages", "publish", "kit", "--key", "no-such-key"]).refused(2, "no readable key");
    house.write("key", b"not a key\n");
    house.run(&["packages", "publish", "kit", "--key", "key"]).refused(2, "the key can't be used");
    house.run(&["packages", "publish", "nowhere"]).refused(2, "there is no folder nowhere");
    house.run(&["packages", "publish"]).refused(2, "say which folder");
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).expect("packed");
    packed.finish().expect("packed")
}

/// A tar archive of these entries: name, kind, content or target.
fn tar_of(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        // Names that the crate itself wouldn't write.
        let field = &mut header.as_old_mut().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        let body: &[u8] = match kind {
            tar::EntryType::Regular => content,
            _ => {
                let link = &mut header.as_old_mut().linkname;
                link[..content.len()].copy_from_slice(content);
                b""
            }
        };
        header.set_size(body.len() as u64);
        header.set_cksum();
        archive.append(&header, body).expect("appended");
    }
    gzip(&archive.into_inner().expect("written"))
}

/// A zip archive of these files.
pub(super) fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in entries {
        archive.start_file(*name, options).expect("begun");
        archive.write_all(content).expect("written");
    }
    archive.finish().expect("written").into_inner()
}

#[test]
fn hostile_packages_are_refused_and_write_nothing() {
    use tar::EntryType::{Char, Fifo, Link, Regular, Symlink};
    let house = House::with(&[("a.md", "one\n")]);
    let manifest: (&str, tar::EntryType, &[u8]) = ("package.yaml", Regular, MANIFEST.as_bytes());
    let agent: (&str, tar::EntryType, &[u8]) = ("agents/skipper.md", Regular, AGENT.as_bytes());
    let refuse = |about: &str, bytes: &[u8]| {
        house.write("x.tar.gz", bytes);
        assert_fast(about, Duration::from_secs(20), || {
            let begun = Instant::now();
            house.run(&["packages", "add", "x.tar.gz"]).refused(2, about);
            begun.elapsed()
        });
        assert_eq!(traces(&house), [""; 0], "{about}");
        assert!(!house.path("evil").exists() && !house.path("W/evil").exists());
    };
    let with = |entry: (&str, tar::EntryType, &[u8])| tar_of(&[manifest, agent, entry]);
    assert_eq!(
        add(
            &{
                let fine = House::with(&[("a.md", "one\n")]);
                fine.write("x.tar.gz", &tar_of(&[manifest, agent]));
                fine
            },
            "x.tar.gz"
        )["name"],
        "sail-kit",
        "what the others are made from is fine"
    );
    refuse("leads elsewhere", &with(("../evil", Regular, b"x")));
    refuse("leads elsewhere", &with(("/tmp/evil", Regular, b"x")));
    refuse("leads elsewhere", &with(("templates/../../evil", Regular, b"x")));
    refuse("leads elsewhere", &with(("templates\\evil.md", Regular, b"x")));
    refuse("no links", &with(("templates/a.md", Symlink, b"/etc/passwd")));
    refuse("no links", &with(("templates", Symlink, b"/tmp")));
    refuse("no links", &with(("templates/a.md", Link, b"package.yaml")));
    refuse("no links", &with(("templates/a.md", Char, b"")));
    refuse("no links", &with(("templates/a.md", Fifo, b"")));
    refuse(
        "differ only in upper and lower case",
        &tar_of(&[manifest, agent, ("agents/Skipper.md", Regular, AGENT.replace("skipper", "two").as_bytes())]),
    );
    refuse("same name", &with(agent));
    refuse("no folders inside", &with(("a/b/c/d.md", Regular, b"x")));
    refuse("has the folders", &with(("bin/evil.md", Regular, b"x")));
    refuse("end with .md", &with(("templates/evil.sh", Regular, b"x")));
    refuse("this name on every system", &with(("templates/nul.md", Regular, b"x")));
    refuse("this name on every system", &with(("templates/a\u{202e}b.md", Regular, b"x")));
    refuse("brings no such file", &with(("prompts/AGENTS.md", Regular, PROMPT.as_bytes())));
    refuse("has the tag prompt", &with(("prompts/a.md", Regular, b"x")));
    refuse("isn't UTF-8", &with(("templates/a.md", Regular, b"\xff\xfe")));
    refuse("permits: its tools may use network", &with(("tools/knots.json", Regular, tool(&["network"]).as_bytes())));
    refuse("is a built-in tool", &with(("tools/a.json", Regular, tool(&[]).replace("knots", "shell").as_bytes())));
    refuse(
        "is an agent of Tracebook",
        &tar_of(&[manifest, ("agents/a.md", Regular, AGENT.replace("skipper", "assistant").as_bytes())]),
    );
    refuse(
        "permits: its agents may call every tool. List `tools` in each agent, or permit `agents: [all]`",
        &tar_of(&[manifest, ("agents/a.md", Regular, b"---\nname: all\n---\nx\n")]),
    );
    refuse(
        "llm_provider",
        &tar_of(&[
            manifest,
            ("agents/a.md", Regular, AGENT.replace("tools:", "llm_provider: evil\ntools:").as_bytes()),
        ]),
    );
    refuse("contrast", &with(("themes/a.yaml", Regular, THEME.replace("#E8E8E8", "#111111").as_bytes())));
    refuse("has no package.yaml", &tar_of(&[agent]));
    refuse("has no agents, tools", &tar_of(&[manifest]));
    refuse("neither a .tar.gz nor a .zip", b"plain text");
    refuse("can't be read", &gzip(b"no tar at all, only text that goes on for a while"));
    let whole = tar_of(&[manifest, agent]);
    refuse("can't be read", &whole[..whole.len() / 2]);
    // Small archives that unpack to much: one file, many files, empty space, a wrong size.
    let zeros = vec![b' '; 3 << 20];
    refuse("at most 1 MB", &with(("templates/big.md", Regular, &zeros)));
    let names: Vec<String> = (0..400).map(|number| format!("templates/{number}.md")).collect();
    let many: Vec<(&str, tar::EntryType, &[u8])> =
        names.iter().map(|name| (name.as_str(), Regular, &b"x"[..])).collect();
    refuse("at most 300 files", &tar_of(&[&[manifest, agent], many.as_slice()].concat()));
    refuse("", &gzip(&vec![0; 50 << 20]));
    // The same for zip files.
    let base: [(&str, &[u8]); 2] = [("package.yaml", MANIFEST.as_bytes()), ("agents/skipper.md", AGENT.as_bytes())];
    refuse("leads elsewhere", &zip_of(&[base[0], base[1], ("../evil", b"x")]));
    refuse("at most 1 MB", &zip_of(&[base[0], base[1], ("templates/big.md", &vec![b' '; 16 << 20])]));
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    archive.add_symlink("templates/a.md", "/etc/passwd", options).expect("added");
    refuse("no links", &archive.finish().expect("written").into_inner());
    // And for folders.
    write_kit(&house, "kit");
    std::os::unix::fs::symlink("/etc/passwd", house.path("kit/templates/b.md")).expect("linked");
    house.run(&["packages", "add", "kit"]).refused(2, "no links");
    std::fs::remove_file(house.path("kit/templates/b.md")).expect("removed");
    // A link where the files go isn't followed.
    std::fs::create_dir(house.path("evil")).expect("made");
    std::os::unix::fs::symlink(house.path("evil"), house.path("W/agents")).expect("linked");
    let hash =
        house.run(&["packages", "add", "kit", "--json"]).code(1).json()["hash"].as_str().expect("one").to_owned();
    let done = house.run(&["packages", "add", "kit", "--approve", &hash]);
    assert_ne!(done.code, 0, "{done:?}");
    assert_eq!(std::fs::read_dir(house.path("evil")).expect("listed").count(), 0, "nothing was written through it");
}

#[test]
fn wrong_words_are_refused() {
    let house = kit_house();
    house.run(&["packages", "eat"]).refused(2, "search, add, remove, update, list or publish");
    house.run(&["packages", "add"]).refused(2, "say which package");
    house.run(&["packages", "remove"]).refused(2, "say which package");
    house.run(&["packages", "add", "No Such Thing"]).refused(1, "no such folder or archive");
    house.run(&["packages", "add", "ext::sh -c 'touch evil'"]).refused(1, "can't get");
    house.run(&["packages", "add", "git+ext::sh -c true"]).refused(2, "address");
    house.run(&["packages", "add", "git+--upload-pack=touch evil"]).refused(2, "address");
    let gone = format!("file://{}", house.path("gone.git").display());
    house.run(&["packages", "add", &gone]).refused(1, "can't get the repository");
    house.run(&["packages", "update", "nothing"]).refused(2, "no package nothing is installed");
    assert_eq!(traces(&house), [""; 0]);
    assert_eq!(house.run(&["packages"]).good().text(), "");
    for (bad, about) in [
        ("name: Sail\nversion: 1.0.0\ndescription: d\nlicense: MIT\n", "small letters"),
        ("name: sail-kit\nversion: one\ndescription: d\nlicense: MIT\n", "three numbers"),
        ("name: sail-kit\nversion: 1.0.0\ndescription: \"\\e[2J\"\nlicense: MIT\n", "one line"),
        ("name: [\n", "package.yaml"),
    ] {
        house.write("kit/package.yaml", bad.as_bytes());
        let done = house.run(&["packages", "add", "kit"]).code(2);
        assert!(done.err.contains(about) && !done.err.contains('\u{1b}'), "{about}: {}", done.err);
    }
}

/// Runs a command and kills it after this time. Returns whether it was still running.
fn killed_after(house: &House, words: &[&str], time: Duration) -> bool {
    let mut child = house.command(words).spawn().expect("started");
    let end = Instant::now() + time;
    while Instant::now() < end {
        if child.try_wait().expect("waited").is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    true
}

/// The texts of all files that the package with many files has, by name.
fn many_files(house: &House) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(house.path("W/snippets")) else { return Vec::new() };
    let mut found: Vec<String> =
        entries.flatten().map(|entry| std::fs::read_to_string(entry.path()).expect("text")).collect();
    found.sort();
    found.dedup();
    found
}

fn write_many(house: &House, version: &str, text: &str) {
    house.write("kit/package.yaml", MANIFEST.replace("1.0.0", version).as_bytes());
    for number in 0..60 {
        house.write(&format!("kit/snippets/{number}.md"), text.as_bytes());
    }
}

#[test]
fn a_killed_command_leaves_one_state_or_the_other() {
    let house = House::with(&[("a.md", "one\n")]);
    write_many(&house, "1.0.0", "first\n");
    let hash_of = |done: Done| done.json()["hash"].as_str().expect("a hash").to_owned();
    let first = hash_of(house.run(&["packages", "add", "kit", "--json"]).code(1));
    let begun = Instant::now();
    house.run(&["packages", "add", "kit", "--approve", &first]).good();
    let takes = begun.elapsed();
    house.run(&["packages", "remove", "sail-kit"]).good();
    let (mut finished, mut undone, mut resumed) = (0, 0, 0);
    for round in 0..48_u32 {
        // The interesting part is the end, after the workspace was opened.
        let share = match round {
            0..24 => 40 + round * 3,
            // Other work on the machine may have made the first command slow or fast.
            _ if undone == 0 => 5,
            _ if finished == 0 => 400,
            _ => break,
        };
        let time = takes * share / 100;
        let (words, now): (Vec<&str>, _) = match round % 3 {
            0 => (vec!["packages", "add", "kit", "--approve", &first], "first\n"),
            1 => {
                write_many(&house, "1.1.0", "second\n");
                (vec!["packages", "update", "sail-kit"], "second\n")
            }
            _ => (vec!["packages", "remove", "sail-kit"], ""),
        };
        killed_after(&house, &words, time);
        resumed += u32::from(house.path("W/packages.pending/plan.json").exists());
        // The next command of any kind finds a whole state, or makes it one.
        house.run(&["ls"]).code(0);
        assert!(!house.path("W/packages.pending").exists(), "round {round}");
        let (files, listed) = (many_files(&house), installed(&house));
        let is_whole = |one: &Value| one["changed"] == json!([]) && one["gone"] == json!([]);
        assert!(files.len() <= 1 && listed.iter().all(is_whole), "round {round}: {files:?} {listed:?}");
        assert_eq!(listed.is_empty(), files.is_empty(), "round {round}");
        let is_done = files.first().map_or("", String::as_str) == now;
        (finished, undone) = if is_done { (finished + 1, undone) } else { (finished, undone + 1) };
        // The next round begins where this one should have ended.
        if !is_done {
            house.run(&words).good();
        }
        if round % 3 == 2 {
            assert_eq!(traces(&house), [""; 0]);
            write_many(&house, "1.0.0", "first\n");
        }
    }
    assert!(finished > 0 && undone > 0, "both ends were met: {finished} {undone}, {resumed} in between");
}

#[test]
fn an_interrupted_change_is_finished_by_the_next_command() {
    let house = House::with(&[("a.md", "one\n")]);
    write_many(&house, "1.0.0", "first\n");
    add(&house, "kit");
    // Killed for certain between the first file and the last.
    write_many(&house, "1.1.0", "second\n");
    let mut met = 0;
    let begun = Instant::now();
    while met == 0 && begun.elapsed() < Duration::from_secs(50) {
        let mut child = house.command(&["packages", "update", "sail-kit"]).spawn().expect("started");
        until("it has begun or ended", || {
            house.path("W/packages.pending/plan.json").exists() || child.try_wait().expect("waited").is_some()
        });
        child.kill().expect("killed, or has ended");
        child.wait().expect("ended");
        if house.path("W/packages.pending/plan.json").exists() {
            met += 1;
        } else {
            // It was faster: go back and try again.
            house.run(&["packages", "remove", "sail-kit"]).code(0);
            write_many(&house, "1.0.0", "first\n");
            add(&house, "kit");
            write_many(&house, "1.1.0", "second\n");
        }
    }
    assert_eq!(met, 1, "it was never met in the middle");
    house.run(&["ls"]).code(0);
    assert!(!house.path("W/packages.pending").exists());
    assert_eq!(many_files(&house), ["second\n"]);
    assert_eq!(installed(&house)[0]["version"], "1.1.0");
}

#[test]
fn the_owner_of_a_workspace_does_it_for_others() {
    let house = kit_house();
    let owner = house.owner("a.md");
    add(&house, "kit");
    assert!(house.run(&["tools"]).good().text().contains("knots (version 1) waits"));
    house.run(&["packages", "remove", "sail-kit"]).good();
    assert_eq!(traces(&house), [""; 0]);
    owner.end();
    assert!(!Path::new(&house.path("W/packages.lock")).exists());
}
