//! The science pack in the window: the offers below a cell and in the list of kernels.

use super::*;
use engine::commands::CommandId;
use host::science_pack::{PackFolder, PackIndex, SciencePack};

/// A window in which a cell lacked pandas, with an empty pack folder and an unreachable index.
fn missing_pandas() -> (Bench, Driven) {
    let bench = Bench::new(&[("a.md", "```python\nimport pandas\n```\n")]);
    let mut window = bench.opened();
    let folder = PackFolder::at(bench.folder.path().join("kernels/science"));
    let index = PackIndex::at("http://127.0.0.1:9/simple");
    let pack = SciencePack::new(folder, index, std::path::Path::new("/bin/false"));
    pack.wait_status();
    window.state_mut().use_science_pack(pack);
    window.get_by_label("Run cell 1").click();
    until(&mut window, "the offer", |window| window.query_by_label("This cell needs pandas.").is_some());
    (bench, window)
}

#[test]
fn a_missing_package_offers_science_and_says_why_it_cannot_be_had() {
    let (_bench, mut window) = missing_pandas();
    for button in ["Use an environment… for cell 1", "Choose kernel… for cell 1"] {
        assert!(window.query_by_label(button).is_some(), "{button}");
    }
    window.get_by_label("Use Science (98 MB download) for cell 1").click();
    until(&mut window, "the dialog", |window| window.query_by_label("Install Science (98 MB download)").is_some());
    assert!(window.query_by_label_contains("Python Package Index").is_some());
    window.get_by_label("Install Science (98 MB download)").click();
    until(&mut window, "it fails", |window| window.query_by_label_contains("Check the network").is_some());
    // The installation can be retried.
    assert!(window.query_by_label("Install Science (98 MB download)").is_some());
    click_label(&mut window, "Close");
    assert!(window.query_by_label("Install Science (98 MB download)").is_none());
}

#[test]
fn a_canceled_installation_is_no_error() {
    let (bench, mut window) = missing_pandas();
    // An index that answers nothing.
    let index = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/simple", index.local_addr().expect("an address"));
    let folder = PackFolder::at(bench.folder.path().join("kernels/science"));
    let pack = SciencePack::new(folder, PackIndex::at(&address), std::path::Path::new("/bin/false"));
    pack.wait_status();
    window.state_mut().use_science_pack(pack);
    window.get_by_label("Use Science (98 MB download) for cell 1").click();
    until(&mut window, "the dialog", |window| window.query_by_label("Install Science (98 MB download)").is_some());
    window.get_by_label("Install Science (98 MB download)").click();
    until(&mut window, "it is under way", |window| window.query_by_label("Cancel").is_some());
    window.get_by_label("Cancel").click();
    let says = "and the next one continues there.";
    until(&mut window, "it has stopped", |window| window.query_by_label_contains(says).is_some());
    let colors: Vec<egui::Color32> = window
        .output()
        .shapes
        .iter()
        .filter_map(|clipped| match &clipped.shape {
            egui::Shape::Text(text) if text.galley.text().contains(says) => {
                Some(text.galley.job.sections[0].format.color)
            }
            _ => None,
        })
        .collect();
    let (light, dark) = (ui::theme::LIGHT, ui::theme::DARK);
    assert!(!colors.is_empty() && colors.iter().all(|color| [light.muted, dark.muted].contains(color)), "{colors:?}");
}

#[test]
fn the_list_of_kernels_installs_science() {
    let (_bench, mut window) = missing_pandas();
    window.get_by_label("Choose kernel… for cell 1").click();
    until(&mut window, "the list", |window| window.query_by_label("Instant").is_some());
    for entry in ["Environment", "Install Science (98 MB download)"] {
        assert!(window.query_by_label(entry).is_some(), "{entry}");
    }
    window.get_by_label("Install Science (98 MB download)").click();
    until(&mut window, "the dialog", |window| window.query_by_label_contains("Python Package Index").is_some());
}

#[test]
fn removing_science_asks_once_and_says_that_it_has_no_undo() {
    let bench = Bench::new(&[("a.md", "```python\n1\n```\n")]);
    let mut window = bench.opened();
    // What an installation leaves; no cell runs in it.
    let root = bench.folder.path().join("kernels/science");
    let installed = root.join("0.1.0");
    std::fs::create_dir_all(installed.join("lib")).expect("made");
    let record = r#"{"version": "0.1.0", "wheel_sha256": "", "snapshot_bytes": 4, "library_bytes": 3}"#;
    let files = [
        ("pack.json", record),
        ("python-snapshot.wasm", "snap"),
        ("lib/python315.zip", "lib"),
        ("MANIFEST", "python 3.15.0\n"),
    ];
    for (name, text) in files {
        std::fs::write(installed.join(name), text).expect("written");
    }
    let index = PackIndex::at("http://127.0.0.1:9/simple");
    let pack = SciencePack::new(PackFolder::at(&root), index, std::path::Path::new("/bin/false"));
    assert!(pack.wait_status().installed.is_some());
    window.state_mut().use_science_pack(pack);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::KernelChoose);
    until(&mut window, "the list", |window| window.query_by_label("Science pack…").is_some());
    window.get_by_label("Science pack…").click();
    let is_offered = |window: &mut Driven| window.query_by_label("Remove Science…").is_some();
    until(&mut window, "the dialog", is_offered);
    window.get_by_label("Remove Science…").click();
    until(&mut window, "it asks", |window| window.query_by_label_contains("There’s no undo").is_some());
    window.get_by_label("Keep it").click();
    until(&mut window, "nothing is removed", is_offered);
    assert!(installed.join("MANIFEST").exists());
    window.get_by_label("Remove Science…").click();
    until(&mut window, "it asks again", |window| window.query_by_label("Remove Science").is_some());
    window.get_by_label("Remove Science").click();
    until(&mut window, "it can be installed again", |window| {
        window.query_by_label("Install Science (98 MB download)").is_some()
    });
    assert!(!installed.exists());
}
