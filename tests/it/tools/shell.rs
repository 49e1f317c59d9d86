//! The shell tool: what it returns, and that it ends.

use super::{Bench, PATIENCE};
use crate::program::assert_fast;
use agent::tool_job::{MAX_TOOL_RESULT_BYTES, ToolJob};
use std::time::{Duration, Instant};

#[test]
fn a_line_is_run_in_the_volume() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    bench.write("notes/sub/data.csv", b"1,2\n3,4\n");
    let done = bench.shell("wc -l < sub/data.csv; echo wrong >&2; pwd; echo made > new.txt");
    assert_eq!((done.success, done.text), (true, format!("2\nwrong\n{}\n", bench.root().display())));
    assert_eq!(bench.text("notes/new.txt"), "made\n");
    let job = |path: &str| ToolJob::Shell {
        root: bench.root(),
        path: path.to_owned(),
        command: "cat data.csv".to_owned(),
        seconds: 5,
        network: false,
    };
    assert_eq!(bench.done(job("sub")).text, "1,2\n3,4\n");
    assert!(!bench.done(job("..")).success && !bench.done(job("gone")).success);
    let failed = bench.shell("printf half; exit 3");
    assert_eq!((failed.success, failed.text.as_str()), (false, "half\n(exit code 3)"));
    assert_eq!(bench.shell("true").text, "(no output)");
    assert_eq!(bench.shell("kill -9 $$").text, "(ended by signal 9)");
    // Features that everyday programs need.
    let script = "printf '#!/bin/sh\\necho run' > own.sh && chmod +x own.sh && ./own.sh && cat <(echo piped) && \
                  f=$(mktemp) && echo x > $f && cat ~/../$(basename ~)/$(basename $f) && sleep 0.01 & wait; \
                  timeout 5 echo in time";
    let done = bench.shell(&format!("bash -c '{}'", script.replace('\'', "'\\''")));
    assert_eq!((done.success, done.text.as_str()), (true, "run\npiped\nx\nin time\n"), "{done:?}");
    let seen = bench.shell("env | cut -d= -f1 | sort").text;
    // `RUSTUP_HOME` is set if it exists, because the proxies of `rustup` need it.
    let known =
        ["HOME", "LANG", "LC_ALL", "OLDPWD", "PATH", "PWD", "RUSTUP_HOME", "SHLVL", "TERM", "TMPDIR", "TZ", "_"];
    assert!(seen.lines().all(|name| known.contains(&name)), "{seen}");
    let bytes = bench.shell("printf '\\377\\376 ok'");
    assert!(bytes.success && bytes.text.ends_with(" ok"), "{bytes:?}");
}

#[test]
fn it_ends_when_its_time_is_over_or_when_it_is_cancelled() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    // It ignores every signal that can be ignored, and so does its child.
    let deaf =
        "trap '' TERM INT HUP QUIT; echo begun; (trap '' TERM INT HUP; while :; do :; done) & while :; do :; done";
    assert_fast("a call with one second", Duration::from_secs(4), || {
        let begun = Instant::now();
        let late = bench.done(bench.line(deaf, 1));
        let took = begun.elapsed();
        let stopped = late.text.starts_with("begun\n(stopped after 1 s; ") && late.text.contains("watchdog.tool");
        assert!(!late.success && stopped, "{late:?}");
        assert_eq!(bench.left(), 0);
        took
    });

    assert_fast("the end of four canceled calls", Duration::from_secs(2), || {
        let jobs: Vec<_> = (10..14).map(|id| bench.start(id, bench.line(deaf, 60))).collect();
        crate::program::until("all four run at once", || bench.left() >= 12);
        let asked = Instant::now();
        for id in 10..14 {
            assert!(bench.tools.cancel(id));
        }
        for job in jobs {
            let outcome = job.recv_timeout(PATIENCE).expect("ended");
            assert_eq!((outcome.success, outcome.text.as_str()), (false, "begun\n(cancelled)"));
        }
        let took = asked.elapsed();
        assert_eq!(bench.left(), 0);
        took
    });
    assert!(!bench.tools.cancel(10), "it is known no more");

    let left = bench.start(20, bench.line("sleep 100", 60));
    crate::program::until("it runs", || bench.left() > 0);
    let root = bench.root();
    drop(bench);
    assert!(!left.recv_timeout(PATIENCE).expect("ended with its owner").success, "{}", root.display());
}

#[test]
fn output_has_an_end() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    let flood = bench.done(bench.line("yes 'a flood of words'", 60));
    assert!(!flood.success && flood.text.ends_with("(stopped: it printed more than 50 MB)"), "{:.200}", flood.text);
    assert!(flood.text.len() <= MAX_TOOL_RESULT_BYTES && flood.text.starts_with("a flood of words\n"));
    let whole = flood.whole.expect("a blob");
    assert!(whole.size >= 50 << 20 && whole.size < 51 << 20, "{whole:?}");
    assert_eq!(bench.left(), 0);
}

#[test]
fn what_it_changed_is_told_and_kept() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    bench.write("notes/kept.txt", b"kept");
    bench.write("notes/old.txt", b"old");
    bench.write("notes/gone/away.txt", b"away");
    bench.write("notes/large.bin", &vec![b'x'; 2 << 20]);
    bench.write("notes/.git/config", b"[core]\n");
    bench.write("notes/.git/hooks/pre-commit", b"#!/bin/sh\n");
    let evil = "echo new > new.txt; echo more >> old.txt; rm -r gone; touch kept.txt; echo x >> large.bin; \
                echo '[alias] x = !evil' >> .git/config; echo evil >> .git/hooks/pre-commit; \
                echo evil > .git/hooks/post-commit; ln -sf /etc/passwd .git/hooks/pre-push; true";
    let done = bench.shell(evil);
    assert!(done.success, "{done:?}");
    let told: Vec<_> = done
        .changed
        .iter()
        .map(|changed| {
            let text = |hash: Option<_>| hash.map(|hash| String::from_utf8(bench.blob(hash)).expect("UTF-8"));
            (changed.path.as_str(), text(changed.before), text(changed.after))
        })
        .collect();
    let words = |text: &str| Some(text.to_owned());
    assert_eq!(
        told,
        [
            ("gone/away.txt", words("away"), None),
            ("new.txt", None, words("new\n")),
            ("old.txt", words("old"), words("oldmore\n")),
        ]
    );
    assert!(done.text.contains("not kept for undo: 1 files, among them large.bin"), "{done:?}");
    for kept in [".git/config", ".git/hooks/post-commit", ".git/hooks/pre-commit", ".git/hooks/pre-push"] {
        assert!(done.text.contains(&format!("(not written: {kept} (git runs")), "{kept}: {done:?}");
    }
    assert_eq!(bench.text("notes/.git/config"), "[core]\n");
    assert_eq!(bench.text("notes/.git/hooks/pre-commit"), "#!/bin/sh\n");
    assert!(!bench.path("notes/.git/hooks/post-commit").exists());
    assert!(std::fs::symlink_metadata(bench.path("notes/.git/hooks/pre-push")).is_err());
    let written = bench.done(bench.python("open('py.txt', 'w').write('x')", 20));
    assert_eq!(written.changed.iter().map(|changed| changed.path.as_str()).collect::<Vec<_>>(), ["py.txt"]);
    assert_eq!(bench.shell("true").changed, []);
}
