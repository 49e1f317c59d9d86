//! Python as a tool: one run, its value as the result.

use super::Bench;
use engine::agent::job::Job;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Seconds that a run may take on a machine that is busy with other things.
const PATIENCE: u64 = 50;

#[test]
fn code_is_run_and_its_value_is_the_result() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    bench.write("notes/data.csv", b"1,2\n");
    let code = "print('seen')\nopen('out.txt', 'w').write(open('data.csv').read())\n6 * 7";
    let done = bench.done(bench.python(code, PATIENCE));
    assert_eq!((done.success, done.text.as_str()), (true, "seen\n42\n"));
    assert_eq!(bench.text("notes/out.txt"), "1,2\n");
    let failed = bench.done(bench.python("print('before')\n1 / 0", PATIENCE));
    assert!(!failed.success && failed.text.starts_with("before\n") && failed.text.contains("ZeroDivisionError"));
    let asks = bench.done(bench.python("input('name? ')", PATIENCE));
    assert!(!asks.success && asks.text.contains("nobody to ask"), "{asks:?}");
    let ended = bench.done(bench.python("import os\nos._exit(0)", PATIENCE));
    assert!(!ended.success && ended.text.contains("process ended"), "{ended:?}");
    let plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()";
    let drawn = bench.done(bench.python(plot, PATIENCE));
    assert!(drawn.success && drawn.attached.len() == 1 && drawn.text.contains("a picture"), "{drawn:?}");
    assert_eq!(bench.blob(drawn.attached[0].blob).len() as u64, drawn.attached[0].size);
}

#[test]
fn it_stays_behind_its_walls_and_ends() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let connect = format!("import socket\nsocket.create_connection(('127.0.0.1', {port})).close()\n'through'");
    let key = format!("open({:?}).read()", bench.path("home/.ssh/id_ed25519"));
    let database = format!("open({:?}).read()", bench.path("W/tracebook.db"));
    let process = "import subprocess\nsubprocess.run(['/bin/true'])";
    // All attempts in one process: it takes a while to start.
    let tried = |attempts: &[&str]| {
        let code = format!(
            "for attempt in {attempts:?}:\n    try: exec(attempt); print('through', attempt)\n    \
             except PermissionError: print('refused')"
        );
        (code, "refused\n".repeat(attempts.len()))
    };
    let (code, refused) = tried(&[&connect, &key, &database, "open('../new.txt', 'w')", process]);
    assert_eq!(bench.done(bench.python(&code, PATIENCE)).text, refused);
    // A volume that holds the workspace and the home: what is hidden in it, and the workspace, stay shut.
    let (code, refused) = tried(&[&key, &database]);
    let whole = Job::Python { root: bench.path(""), code, seconds: PATIENCE, network: false };
    assert_eq!(bench.done(whole).text, refused);
    let granted = Job::Python { root: bench.root(), code: connect, seconds: PATIENCE, network: true };
    let through = bench.done(granted);
    assert_eq!((through.success, through.text.as_str()), (true, "'through'\n"));

    let late = bench.done(bench.python("print('begun', flush=True)\nsum(range(10 ** 12))", 1));
    assert!(!late.success && late.text.starts_with("begun\n(stopped after 1 s)"), "{late:?}");
    let running = bench.start(7, bench.python("while True: pass", 60));
    crate::program::until("it runs", || bench.left() > 0);
    let asked = Instant::now();
    bench.tools.cancel(7);
    let cancelled = running.recv_timeout(super::PATIENCE).expect("ended");
    assert!(!cancelled.success && cancelled.text == "(cancelled)", "{cancelled:?}");
    assert!(asked.elapsed() < Duration::from_secs(2));
    assert_eq!(bench.left(), 0);
}
