//! File tools: what is read, listed and written, and what is refused.

use super::Bench;
use agent::tool_job::{MAX_TOOL_RESULT_BYTES, ToolJob, ToolOutcome};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{SystemTime, UNIX_EPOCH};
use store::{BlobHash, MAX_RESULT_FILES, ToolFileInfo, ToolFileType};

impl Bench {
    fn read(&self, path: &str) -> ToolOutcome {
        self.done(ToolJob::Read { root: self.root(), path: path.to_owned(), lines: None })
    }

    fn replace(&self, path: &str, text: &str, expected: Option<Option<BlobHash>>) -> ToolOutcome {
        self.done(ToolJob::Replace { root: self.root(), path: path.to_owned(), text: text.to_owned(), expected })
    }

    fn amend(&self, path: &str, old: &str, new: &str) -> ToolOutcome {
        self.done(ToolJob::Amend { root: self.root(), path: path.to_owned(), old: old.to_owned(), new: new.to_owned() })
    }

    fn remove(&self, path: &str) -> ToolOutcome {
        self.done(ToolJob::Remove { root: self.root(), path: path.to_owned() })
    }

    fn list(&self, path: &str) -> ToolOutcome {
        self.done(ToolJob::List { root: self.root(), path: path.to_owned() })
    }
}

#[test]
fn a_file_is_written_amended_and_removed_and_nothing_is_lost() {
    let bench = Bench::new();
    let made = bench.replace("data/new.csv", "a,b\n1,2\n", Some(None));
    assert!(
        made.success && made.text.starts_with("--- /dev/null\n+++ b/data/new.csv\n@@ -0,0 +1,2 @@\n+a,b\n"),
        "{made:?}"
    );
    assert_eq!(bench.text("notes/data/new.csv"), "a,b\n1,2\n");
    let after = made.changed[0].after.expect("a blob");
    assert_eq!((made.changed[0].path.as_str(), made.changed[0].before), ("data/new.csv", None));
    assert_eq!(bench.blob(after), b"a,b\n1,2\n");

    let stale = bench.replace("data/new.csv", "x", Some(None));
    assert!(!stale.success && stale.text.contains("has changed since"), "{stale:?}");
    let well = bench.replace("./data//new.csv", "a,b\n3,4\n", Some(Some(after)));
    assert!(well.success && well.text.contains("-1,2\n+3,4\n"), "{well:?}");
    assert_eq!((well.changed[0].path.as_str(), well.changed[0].before), ("data/new.csv", Some(after)));
    let same = bench.replace("data/new.csv", "a,b\n3,4\n", None);
    assert!(same.success && same.changed.is_empty() && same.text == "nothing differs", "{same:?}");

    let amended = bench.amend("data/new.csv", "3,4", "5,6");
    assert!(amended.success && amended.text.contains("-3,4\n+5,6\n"), "{amended:?}");
    let missing = bench.amend("data/new.csv", "3,4", "7,8");
    assert!(!missing.success && missing.text.contains("isn't in the file"), "{missing:?}");
    bench.write("notes/twice.txt", b"one\ntwo\none\none\n");
    let many = bench.amend("twice.txt", "one", "three");
    assert!(!many.success && many.text.contains("occurs 3 times"), "{many:?}");
    assert!(!bench.amend("twice.txt", "", "x").success && !bench.amend("gone.txt", "a", "b").success);
    assert_eq!(bench.text("notes/twice.txt"), "one\ntwo\none\none\n");

    let removed = bench.remove("data/new.csv");
    assert!(removed.success && removed.text.contains("+++ /dev/null\n"), "{removed:?}");
    assert!(!bench.path("notes/data/new.csv").exists());
    assert_eq!(bench.blob(removed.changed[0].before.expect("a blob")), b"a,b\n5,6\n");
    assert!(!bench.remove("data/new.csv").success && !bench.remove("data").success && !bench.remove("").success);
    let names: Vec<_> = std::fs::read_dir(bench.path("notes/data")).expect("listed").flatten().collect();
    assert!(names.is_empty(), "no temporary file stays: {names:?}");
}

#[test]
fn reading_has_limits() {
    let bench = Bench::new();
    let lines: String = (1..=5_000).map(|number| format!("line {number}\n")).collect();
    bench.write("notes/long.txt", lines.as_bytes());
    let all = bench.read("long.txt");
    assert!(all.success && all.text.len() <= MAX_TOOL_RESULT_BYTES && all.text.contains("are left out here"));
    assert_eq!(bench.blob(all.whole.expect("a blob").blob), lines.as_bytes());
    let part =
        |lines| bench.done(ToolJob::Read { root: bench.root(), path: "long.txt".to_owned(), lines: Some(lines) });
    assert_eq!(part((4_999, 10)).text, "line 4999\nline 5000\n");
    assert_eq!(part((0, 1)).text, "line 1\n");
    assert_eq!(part((2, usize::MAX)).text.lines().next(), Some("line 2"));
    assert!(!part((5_001, 1)).success && part((5_001, 1)).text.contains("5000 lines"));

    bench.write("notes/large.bin", &vec![b'x'; (10 << 20) + 1]);
    let large = bench.read("large.bin");
    assert!(!large.success && large.text.contains("more than the 10 MB"), "{large:?}");
    bench.write("notes/binary.bin", &[0xff, 0xfe, 0]);
    assert!(bench.read("binary.bin").text.contains("not UTF-8 text"));
    assert!(bench.read("gone").text.contains("no such file or folder"));
    let pipe = bench.path("notes/pipe");
    std::process::Command::new("mkfifo").arg(&pipe).status().expect("made");
    let waits = bench.read("pipe");
    assert!(!waits.success && waits.text.contains("not an ordinary file"), "{waits:?}");

    for number in 0..2_100 {
        std::fs::write(bench.path(&format!("notes/{number:04}.txt")), b"").expect("written");
    }
    let list = bench.list("");
    let whole = bench.blob(list.whole.expect("a blob").blob);
    assert!(
        list.success && whole.iter().filter(|byte| **byte == b'\n').count() == 2_001,
        "2,000 and a line about the rest"
    );
    bench.write("notes/sub/deep/deeper/file.txt", b"four");
    bench.write("notes/sub/file.txt", b"four");
    let listed = bench.list("sub").text;
    assert!(listed.starts_with("deep/\ndeep/deeper/\nfile.txt (4 bytes, txt, changed 20"), "{listed}");
    assert!(bench.list("sub/deep/deeper/file.txt").text.contains("no folder"));
}

/// Returns a time as results have it.
fn millis(time: std::io::Result<SystemTime>) -> Option<i64> {
    let since = time.ok()?.duration_since(UNIX_EPOCH).expect("after 1970");
    Some(i64::try_from(since.as_millis()).expect("a time of our age"))
}

#[test]
fn results_have_size_times_type_and_rights_of_files() {
    let bench = Bench::new();
    bench.write("notes/data/a.csv", b"a,b\n");
    symlink("a.csv", bench.path("notes/data/link.csv")).expect("linked");
    std::fs::set_permissions(bench.path("notes/data/a.csv"), Permissions::from_mode(0o444)).expect("set");
    let info = |path: &str, file_type: ToolFileType| {
        let meta = bench.path("notes").join(path).symlink_metadata().expect("there");
        let (created, modified) = (millis(meta.created()), millis(meta.modified()));
        let read_only = meta.permissions().readonly();
        ToolFileInfo { path: path.to_owned(), file_type, size: meta.len(), created, modified, read_only }
    };
    let csv = info("data/a.csv", ToolFileType::File);
    assert!(csv.read_only && csv.size == 4 && csv.modified.is_some(), "{csv:?}");
    assert_eq!(bench.read("data/a.csv").files, std::slice::from_ref(&csv));
    assert_eq!(bench.list("data").files, [csv.clone(), info("data/link.csv", ToolFileType::Link)]);
    let folder = info("data", ToolFileType::Folder);
    assert_eq!(bench.list("").files, [folder, csv, info("data/link.csv", ToolFileType::Link)]);
    let written = bench.replace("data/new.txt", "four", None);
    assert_eq!(written.files, [info("data/new.txt", ToolFileType::File)]);
    assert!(bench.read("gone.txt").files.is_empty());
    for number in 0..150 {
        bench.write(&format!("notes/many/{number}.txt"), b"");
    }
    let many = bench.list("many");
    assert_eq!((many.files.len(), many.text.lines().count()), (MAX_RESULT_FILES, 150));
}

#[test]
fn no_path_leads_out_of_the_volume() {
    let bench = Bench::new();
    bench.write("beside.txt", b"mine");
    bench.write("notes/in.txt", b"in");
    symlink("../beside.txt", bench.path("notes/link.txt")).expect("linked");
    symlink(bench.path("home"), bench.path("notes/away")).expect("linked");
    symlink("..", bench.path("notes/up")).expect("linked");
    let absolute = bench.path("beside.txt").to_string_lossy().into_owned();
    let ways = [
        "../beside.txt",
        "sub/../../beside.txt",
        "link.txt",
        "away/.ssh/id_ed25519",
        "up/beside.txt",
        "up/notes/../beside.txt",
        absolute.as_str(),
        "/etc/passwd",
        "/proc/self/environ",
        "in.txt/../../beside.txt",
        "..",
        "a\0b",
    ];
    for way in ways {
        for outcome in [
            bench.read(way),
            bench.replace(way, "evil", None),
            bench.amend(way, "mine", "evil"),
            bench.remove(way),
            bench.list(way),
        ] {
            assert!(!outcome.success && outcome.changed.is_empty(), "{way}: {outcome:?}");
            assert!(!outcome.text.contains("planted key"), "{way}: {outcome:?}");
        }
    }
    assert!(!bench.replace("up/new.txt", "evil", None).success && !bench.path("new.txt").exists());
    assert!(!bench.replace("away/new.txt", "evil", None).success && !bench.path("home/new.txt").exists());
    assert_eq!((bench.text("beside.txt").as_str(), bench.text("home/letter.txt").as_str()), ("mine", "mine"));
    assert!(bench.path("notes/link.txt").is_symlink(), "the link itself stays, too");
    for own in [".git/hooks/pre-commit", ".GIT/config", "sub/.git/config"] {
        assert!(bench.replace(own, "evil", None).text.contains("git's own files"), "{own}");
    }
    bench.write("notes/.git/config", b"[core]\n");
    bench.write("notes/sub/.git/config", b"[core]\n");
    let listed = bench.list("");
    assert!(listed.success && !listed.text.contains(".git"), "{listed:?}");
    assert!(!bench.list(".git").success && !bench.list("sub/.git").success);
}

#[test]
fn what_is_allowed_for_a_path_is_not_done_behind_a_link() {
    let bench = Bench::new();
    bench.write("notes/.git/config", b"[core]\n");
    bench.write("notes/.env", b"ordinary=words\n");
    bench.write("notes/.vscode/tasks.json", b"{}\n");
    symlink(".git", bench.path("notes/docs")).expect("linked");
    symlink(".vscode", bench.path("notes/plans")).expect("linked");
    symlink(".env", bench.path("notes/words.txt")).expect("linked");
    symlink(bench.path("notes/.git/config"), bench.path("notes/absolute.txt")).expect("linked");
    for (way, own) in [
        ("docs/config", ".git/config"),
        ("plans/tasks.json", ".vscode/tasks.json"),
        ("words.txt", ".env"),
        ("absolute.txt", ".git/config"),
    ] {
        let before = bench.text(&format!("notes/{own}"));
        for outcome in [
            bench.read(way),
            bench.replace(way, "evil", None),
            bench.amend(way, before.trim_end(), "evil"),
            bench.remove(way),
        ] {
            assert!(!outcome.success && outcome.changed.is_empty(), "{way}: {outcome:?}");
            assert!(!outcome.text.contains("ordinary=words"), "{way}: {outcome:?}");
        }
        assert!(bench.read(way).text.contains(own), "the model learns which path to name: {:?}", bench.read(way));
        assert_eq!(bench.text(&format!("notes/{own}")), before, "{way}");
    }
    for way in ["docs/hooks/pre-commit", "plans/launch.json"] {
        assert!(!bench.replace(way, "evil", None).success, "{way}");
    }
    assert!(!bench.path("notes/.git/hooks").exists() && !bench.path("notes/.vscode/launch.json").exists());
}
