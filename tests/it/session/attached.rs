//! Attachments and blobs of shared volumes in the session's records.

use crate::twin::{ROOT, Twin};
use engine::event::FileStamp;
use engine::{AGREED_BYTES_KEY_PREFIX, AttachmentAction, Command, Event};
use std::path::Path;
use store::disk::DiskReader;
use store::{ActorId, BlobHash, DocId, FileEntry, FileKind, VolumeDoc};

/// A shared volume with a note and two pictures, whose bytes all devices have agreed on.
fn agreed() -> (Twin, DocId) {
    let mut twin = Twin::with(&[("a.md", "![One](one.png) and ![two](two.png)\n")]);
    let volume = twin.session.volumes().next().expect("a volume").id;
    twin.command(Command::ShareVolume { volume, hub: "ws://hub".to_owned() }).expect("shared");
    for (at, name) in ["one.png", "two.png", ".key.bin"].into_iter().enumerate() {
        let bytes = vec![0xff, 0xfe, at as u8];
        twin.world.files.insert(Path::new(ROOT).join(name), (bytes, 1_000 + at as i64));
    }
    twin.command(Command::Rescan).expect("looked through");
    for _ in 0..20 {
        twin.settle();
        twin.pass(1_500);
        let read: Vec<(DocId, String)> = twin.beside.get(&volume).map_or_else(Vec::new, |beside| {
            let read = beside.files.iter().filter(|(_, (_, attached))| *attached == AttachmentAction::Read);
            read.map(|(file, (path, _))| (*file, path.clone())).collect()
        });
        for (file, path) in read {
            let (bytes, mtime) = &twin.world.files[&Path::new(ROOT).join(&path)];
            let stamp = FileStamp { size: bytes.len() as u64, mtime: *mtime, hash: BlobHash::of(bytes) };
            twin.event(Event::AttachmentRead { file, stamp: Some(stamp) });
        }
    }
    (twin, volume)
}

/// The paths of files for which the disk has a row of agreed bytes, sorted.
fn rows(twin: &Twin) -> Vec<String> {
    let rows = twin.world.disk.metas_with_prefix(AGREED_BYTES_KEY_PREFIX).expect("read");
    let mut paths: Vec<String> = rows
        .iter()
        .map(|(key, _)| {
            let file: DocId = key.strip_prefix(AGREED_BYTES_KEY_PREFIX).expect("a row").parse().expect("an id");
            twin.session.locate_file(file).map_or("gone", |(_, path)| path).to_owned()
        })
        .collect();
    paths.sort();
    paths
}

fn rest(twin: &mut Twin) {
    for _ in 0..3 {
        twin.settle();
        twin.pass(1_500);
    }
}

#[test]
fn what_was_agreed_on_goes_with_the_file() {
    let (mut twin, _) = agreed();
    assert_eq!(rows(&twin), ["one.png", "two.png"]);
    // A file in the trash can be restored, so its row stays; a file that another program removed loses its row.
    let file = twin.id("one.png");
    twin.command(Command::DeleteFiles { files: vec![file] }).expect("into the trash");
    rest(&mut twin);
    assert_eq!(rows(&twin), ["gone", "two.png"]);
    twin.outside("two.png", None);
    rest(&mut twin);
    assert_eq!(rows(&twin), ["gone"]);
    twin.command(Command::Discard { files: vec![file] }).expect("deleted for good");
    rest(&mut twin);
    assert_eq!(rows(&twin), [""; 0]);
}

#[test]
fn what_was_agreed_on_goes_with_the_volume_and_outlives_a_restart() {
    let (twin, volume) = agreed();
    // No row is removed while volumes are still being read.
    let mut twin = Twin::start(twin.crash(), 7);
    rest(&mut twin);
    assert_eq!(rows(&twin), ["one.png", "two.png"]);
    twin.command(Command::CloseVolume { volume }).expect("closed");
    rest(&mut twin);
    assert_eq!(rows(&twin), [""; 0]);
}

#[test]
fn nothing_is_done_with_hidden_files() {
    let (twin, volume) = agreed();
    let named: Vec<&String> = twin.beside[&volume].files.values().map(|(path, _)| path).collect();
    assert_eq!(named, ["one.png", "two.png"], "neither read nor held");
    assert!(twin.session.volume(volume).is_some_and(|volume| volume.files.contains_key(".key.bin")), "it is known");
}

#[test]
fn no_device_moves_a_hidden_file_of_another_or_hides_one_there() {
    let (mut twin, volume) = agreed();
    let [hidden, shown] = [".key.bin", "one.png"].map(|path| twin.id(path));
    let chunks = twin.world.disk.chunks(volume).expect("read").into_iter().map(|chunk| chunk.bytes);
    let theirs = VolumeDoc::load(volume, &chunks.collect::<Vec<_>>(), ActorId::from([98; 16]));
    let mut theirs = theirs.expect("read").doc;
    let entry = |path: &str| Some(FileEntry { path: path.to_owned(), kind: FileKind::Attachment });
    // Under another name its bytes would be sent; under these names other programs would obey the file.
    let changes =
        [(hidden, entry("key.bin")), (hidden, None), (shown, entry(".git")), (shown, entry(".envrc")), (shown, None)];
    for (file, change) in changes {
        let wanted = change.as_ref().map(|entry| entry.path.clone());
        let bytes = theirs.commit(None, &[(file, change)], 5).expect("changed");
        twin.event(Event::Received { doc: volume, ticket: 1, parcel: bytes.into() });
        rest(&mut twin);
        let is_there = |path: &str| twin.world.files.contains_key(&Path::new(ROOT).join(path));
        assert!(is_there(".key.bin"), "{file} as {wanted:?}");
        assert!(is_there("one.png") || (file == shown && wanted.is_none()), "{file} as {wanted:?}");
        assert!(!wanted.is_some_and(|path| is_there(&path)), "{file}");
    }
    // What isn't hidden follows the other device, also into the trash and back.
    assert!(!twin.world.files.contains_key(&Path::new(ROOT).join("one.png")), "deleted there, and here");
    for (path, comes) in [(".envrc", false), ("back.png", true)] {
        let bytes = theirs.commit(None, &[(shown, entry(path))], 6).expect("changed");
        twin.event(Event::Received { doc: volume, ticket: 1, parcel: bytes.into() });
        rest(&mut twin);
        assert_eq!(twin.world.files.contains_key(&Path::new(ROOT).join(path)), comes, "{path}");
    }
}

#[test]
fn no_device_makes_or_changes_what_programs_here_obey() {
    let (mut twin, volume) = agreed();
    let obeyed = "venv/lib/site-packages/own.py";
    twin.outside(obeyed, Some("print('mine')\n"));
    rest(&mut twin);
    let chunks = twin.world.disk.chunks(volume).expect("read").into_iter().map(|chunk| chunk.bytes);
    let theirs = VolumeDoc::load(volume, &chunks.collect::<Vec<_>>(), ActorId::from([98; 16]));
    let mut theirs = theirs.expect("read").doc;
    let shown = twin.id("one.png");
    // New files, and one that is here and gets such a name.
    let mut changes = vec![(shown, "lefthook.yml"), (shown, "x/HEAD")];
    let new = ["venv/lib/site-packages/sitecustomize.py", "usercustomize.py", "mise.toml", "b/HEAD", "fine.py"];
    changes.extend(new.iter().zip(50_u8..).map(|(path, id)| (DocId([id; 16]), *path)));
    for (file, path) in changes {
        let entry = FileEntry { path: path.to_owned(), kind: FileKind::from_path(path) };
        let bytes = theirs.commit(None, &[(file, Some(entry))], 5).expect("changed");
        twin.event(Event::Received { doc: volume, ticket: 1, parcel: bytes.into() });
        rest(&mut twin);
        let line = format!("a file name from another device is refused: {path:?}");
        let is_refused = twin.session.sync().log.iter().any(|(_, known)| *known == line);
        assert_eq!(is_refused, path != "fine.py", "{path}: {:?}", twin.session.sync().log);
        assert!(!twin.world.files.contains_key(&Path::new(ROOT).join(path)), "{path}");
    }
    assert!(twin.world.files.contains_key(&Path::new(ROOT).join("one.png")), "it keeps its name");
    let own = twin.id(obeyed);
    twin.event(Event::Received { doc: own, ticket: 2, parcel: vec![1_u8, 2, 3].into() });
    rest(&mut twin);
    assert_eq!(twin.file(obeyed).as_deref(), Some("print('mine')\n"));
    let log = &twin.session.sync().log;
    assert!(log.iter().any(|(_, line)| line.contains("programs of this device obey it")), "{log:?}");
}
