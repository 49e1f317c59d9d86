//! The page of packages: found in an index, looked at, installed, updated with more permissions, and removed.

use super::source_control::{click, has, wait};
use super::*;
#[cfg(unix)]
use crate::line::git::{git, know_user};
#[cfg(unix)]
use crate::line::package_addresses::{redirect, response, serve_whole};
#[cfg(unix)]
use crate::line::packages::pack_kit;
use engine::commands::CommandId;
use std::process::Command;

const MANIFEST: &str = "name: sail-kit\nversion: 1.0.0\ndescription: Logbooks for sailors\nlicense: MIT\n\
                        permissions:\n  agents: [read_file]\n";
const AGENT: &str = "---\nname: skipper\ndescription: Reads logbooks\ntools: [read_file]\n---\nYou read logbooks.\n";
const TOOL: &str = r#"{"name": "knots", "func": "def run(kmh):\n    return kmh / 1.852\n", "permissions": [],
    "schema": {"description": "Speed in knots",
        "parameters": {"type": "object", "properties": {"kmh": {"type": "number"}}}}}"#;
const FIELD: &str = "Words, or the path or address of a package";

fn write_kit(bench: &Bench, manifest: &str, agent: &str) {
    for (path, text) in [
        ("package.yaml", manifest),
        ("agents/skipper.md", agent),
        ("tools/knots.json", TOOL),
        ("snippets/Signature.md", "-- {{cursor}}\n"),
        ("prompts/Weather.md", "---\ntags: [prompt]\n---\nWhat is the weather?\n"),
    ] {
        let file = bench.folder.path().join("kit").join(path);
        std::fs::create_dir_all(file.parent().expect("a folder around it")).expect("a folder");
        std::fs::write(file, text).expect("written");
    }
}

/// Publishes the kit in an index, signed by a device's key.
fn publish(bench: &Bench) {
    let mut command = Command::new(program());
    command.args(["packages", "publish", "kit", "--to", "index"]).current_dir(bench.folder.path());
    command.env("HOME", bench.folder.path()).env("TRACEBOOK_KEYRING", "off").env_remove("TRACEBOOK_DEVICE_KEY");
    let done = command.output().expect("started");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn find(window: &mut Driven, words: &str) {
    window.get_by_label(FIELD).focus();
    window.run();
    press(window, CTRL, Key::A);
    type_text(window, words);
    click(window, "Find packages");
}

#[test]
fn a_package_is_found_looked_at_installed_updated_and_removed() {
    let bench = Bench::new(&[("a.md", "one\n")]);
    write_kit(&bench, MANIFEST, AGENT);
    publish(&bench);
    let workspace = bench.folder.path().join("workspace");
    std::fs::create_dir_all(&workspace).expect("a folder");
    let index = bench.folder.path().join("index");
    std::fs::write(workspace.join("config.yaml"), format!("packages:\n  indexes: [\"{}\"]\n", index.display()))
        .expect("written");
    let mut window = bench.opened();
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewPackages);
    wait(&mut window, "Installed (0)");
    wait(&mut window, "before it's installed");

    find(&mut window, "LOGBOOKS sail");
    wait(&mut window, "Show sail-kit: 1.0.0  ·  Logbooks for sailors  ·  signed");
    find(&mut window, "boats");
    wait(&mut window, "No matching packages");
    find(&mut window, "sail");
    wait(&mut window, "Show sail-kit");
    window.get_by_label_contains("Show sail-kit").click();
    wait(&mut window, "Install exactly this");
    assert!(has(&window, "Signed by ") && has(&window, "Its agents may call read_file."));
    window.get_by_label_contains("Content of agents/skipper.md").click();
    window.run();
    assert!(has(&window, "You read logbooks."));
    pictured(&mut window, "packages-shown");
    // What the user decides about is shown in full in a small window, too.
    window.set_size(egui::vec2(800.0, 600.0));
    window.run();
    let hash = window.get_by_label_contains("Hash ").rect();
    assert!(hash.height() > 40.0, "its letters take more than a line: {hash:?}");
    window.set_size(egui::vec2(1280.0, 800.0));
    window.run();
    assert!(!workspace.join("agents").exists(), "nothing is installed that is only looked at");

    // Exactly what was shown is installed, whatever its source has by now.
    write_kit(&bench, &MANIFEST.replace("1.0.0", "1.1.0").replace("[read_file]", "[read_file, shell]"), &{
        AGENT.replace("[read_file]", "[read_file, shell]")
    });
    publish(&bench);
    click(&mut window, "Install exactly this");
    wait(&mut window, "Installed sail-kit 1.0.0.");
    assert_eq!(std::fs::read_to_string(workspace.join("agents/skipper.md")).expect("read"), AGENT);
    assert!(bench.notes().join("Prompts/Weather.md").exists(), "the only volume gets its notes");
    wait(&mut window, "Installed (1)");
    assert!(!has(&window, "Install exactly this"));
    window.get_by_label_contains("Package sail-kit: 1.0.0").click();
    window.run();
    wait(&mut window, "Approve its tools…");
    pictured(&mut window, "packages-installed");

    // A new version that wants more says so.
    click(&mut window, "Check for update");
    wait(&mut window, "This is more than you approved for 1.0.0. Its agents may call shell.");
    assert_eq!(std::fs::read_to_string(workspace.join("agents/skipper.md")).expect("read"), AGENT);
    click(&mut window, "Close the package");
    assert!(!has(&window, "Update to exactly this"));
    click(&mut window, "Check for update");
    wait(&mut window, "Update to exactly this");
    std::fs::write(workspace.join("snippets/Signature.md"), "-- me\n").expect("written");
    click(&mut window, "Update to exactly this");
    wait(&mut window, "Updated to sail-kit 1.1.0.");
    assert!(std::fs::read_to_string(workspace.join("agents/skipper.md")).expect("read").contains("shell"));
    wait(&mut window, "snippets/Signature.md  ·  changed by you");
    click(&mut window, "Check for update");
    wait(&mut window, "sail-kit 1.1.0 is up to date.");

    click(&mut window, "Remove…");
    click(&mut window, "Keep it");
    click(&mut window, "Remove…");
    click(&mut window, "Remove the package");
    wait(&mut window, "Removed sail-kit 1.1.0. Kept as they are");
    wait(&mut window, "Installed (0)");
    assert!(!workspace.join("agents").exists() && !bench.notes().join("Prompts").exists());
    assert_eq!(std::fs::read_to_string(workspace.join("snippets/Signature.md")).expect("read"), "-- me\n");
}

#[test]
fn what_is_no_package_is_said_and_notes_go_where_the_user_says() {
    let bench = Bench::new(&[("a.md", "one\n")]);
    write_kit(&bench, MANIFEST, AGENT);
    let other = bench.folder.path().join("other");
    std::fs::create_dir_all(&other).expect("a folder");
    let mut window = bench.opened();
    window.state_mut().send_command(engine::Command::OpenFolder { folder: other.clone(), name: None });
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewPackages);
    wait(&mut window, "Installed (0)");
    // The page is as wide as a note.
    let about = window.get_by_label_contains("Packages bring agents").rect();
    assert!(about.width() <= ui::theme::size::NOTE_COLUMN_WIDTH, "{about:?}");
    find(&mut window, "sail");
    wait(&mut window, "There is no index to ask");
    click(&mut window, "Dismiss");
    find(&mut window, "/no/such/place");
    wait(&mut window, "Can't get /no/such/place: no such folder or archive");
    click(&mut window, "Dismiss");
    let kit = bench.folder.path().join("kit");
    std::fs::write(kit.join("tools/extra.txt"), "x").expect("written");
    find(&mut window, &kit.display().to_string());
    wait(&mut window, "This isn't a valid package");
    std::fs::remove_file(kit.join("tools/extra.txt")).expect("removed");
    find(&mut window, &kit.display().to_string());
    wait(&mut window, "Not signed: nothing shows who has made it.");
    wait(&mut window, "Choose where its notes go.");
    assert!(!has(&window, "Install exactly this"));
    click(&mut window, "The notes of the package go to other");
    click(&mut window, "Install exactly this");
    wait(&mut window, "Installed sail-kit 1.0.0.");
    assert!(other.join("Prompts/Weather.md").exists() && !bench.notes().join("Prompts").exists());
}

/// Installs what is shown, and removes it again.
#[cfg(unix)]
fn install_and_remove(bench: &Bench, window: &mut Driven, source: &str) {
    let agent = bench.folder.path().join("workspace/agents/skipper.md");
    find(window, source);
    wait(window, "Install exactly this");
    assert!(has(window, "Its agents may call read_file.") && !agent.exists(), "{source}: it is only looked at");
    click(window, "Install exactly this");
    until(window, "it is installed", |window| has(window, "Installed (1)") && agent.exists());
    assert_eq!(std::fs::read_to_string(&agent).expect("read"), AGENT, "{source}");
    assert!(bench.notes().join("Prompts/Weather.md").exists(), "{source}");
    if !has(window, "Remove…") {
        window.get_by_label_contains("Package sail-kit: 1.0.0").click();
        window.run();
    }
    click(window, "Remove…");
    assert!(has(window, "There’s no undo, but you can install it again."), "{source}");
    click(window, "Remove the package");
    until(window, "it is removed", |window| has(window, "Installed (0)") && !agent.exists());
    assert!(!bench.notes().join("Prompts").exists(), "{source}");
}

#[cfg(unix)]
#[test]
fn packages_come_from_addresses_of_archives_and_repositories() {
    let bench = Bench::new(&[("a.md", "one\n")]);
    write_kit(&bench, MANIFEST, AGENT);
    let (root, kit) = (bench.folder.path().to_owned(), bench.folder.path().join("kit"));
    pack_kit(&root);
    git(&kit, &["init", "-q", "-b", "main"]);
    know_user(&kit);
    git(&kit, &["add", "-A"]);
    git(&kit, &["commit", "-qm", "One"]);
    let read = |name: &str| std::fs::read(root.join(name)).expect("packed");
    let (packed, zipped) = (read("kit.tar.gz"), read("kit.zip"));
    let server = serve_whole(move |path| match path {
        "/kit.tar.gz" => response(&packed, packed.len()),
        "/kit.zip" => response(&zipped, zipped.len()),
        "/moved/kit.zip" => redirect("/kit.zip"),
        "/long/kit.zip" => response(&zipped, zipped.len() + 100),
        "/huge/kit.zip" => response(&vec![b' '; 3 << 20], 5_000_000_000),
        _ => redirect("http://127.0.0.1:1/kit.zip"),
    });
    let mut window = bench.opened();
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewPackages);
    wait(&mut window, "Installed (0)");
    for path in ["kit.tar.gz", "kit.zip", "moved/kit.zip"] {
        install_and_remove(&bench, &mut window, &format!("{server}/{path}"));
    }
    install_and_remove(&bench, &mut window, &format!("file://{}", kit.join(".git").display()));
    // Wrong ones are refused, and say why.
    for (path, about) in [
        ("long/kit.zip", "broke off"),
        ("huge/kit.zip", "is longer than"),
        ("away/kit.zip", "leads into a private network"),
    ] {
        find(&mut window, &format!("{server}/{path}"));
        wait(&mut window, about);
        assert!(!has(&window, "Install exactly this"), "{path}");
        click(&mut window, "Dismiss");
    }
    find(&mut window, &format!("file://{}", root.join("gone.git").display()));
    wait(&mut window, "Can't get the repository");
    assert!(!root.join("workspace/agents").exists());
}
