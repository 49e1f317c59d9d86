//! Python as a tool: one run, with its value as the result.

use super::Bench;
use crate::program::assert_fast;
use agent::tool_job::{ToolJob, WebAccess};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// The time limit of a run in seconds, on a busy machine.
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
    // All attempts share one process, since it takes a while to start.
    let tried = |attempts: &[&str]| {
        let code = format!(
            "for attempt in {attempts:?}:\n    try: exec(attempt); print('through', attempt)\n    \
             except PermissionError: print('refused')"
        );
        (code, "refused\n".repeat(attempts.len()))
    };
    let (code, refused) = tried(&[&connect, &key, &database, "open('../new.txt', 'w')", process]);
    assert_eq!(bench.done(bench.python(&code, PATIENCE)).text, refused);
    // The volume contains the workspace and the home: hidden files in it and the workspace stay inaccessible.
    let (code, refused) = tried(&[&key, &database]);
    let whole = ToolJob::Python {
        root: bench.path(""),
        code,
        seconds: PATIENCE,
        web: None,
        grants: store::ToolGrants::default(),
        packages: None,
    };
    assert_eq!(bench.done(whole).text, refused);
    // Code with web access has no network either: this process fetches for it.
    let (code, refused) = tried(&[&connect, "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM)"]);
    let web = Some(WebAccess { hosts: vec!["127.0.0.1".to_owned()], restricted: false });
    assert_eq!(
        bench
            .done(ToolJob::Python {
                root: bench.root(),
                code,
                seconds: PATIENCE,
                web,
                grants: store::ToolGrants::default(),
                packages: None,
            })
            .text,
        refused
    );

    let late = bench.done(bench.python("print('begun', flush=True)\nsum(range(10 ** 12))", 1));
    assert!(!late.success && late.text.starts_with("begun\n(stopped after 1 s; "), "{late:?}");
    assert_fast("the end of a canceled call", Duration::from_secs(2), || {
        let running = bench.start(7, bench.python("while True: pass", 60));
        crate::program::until("it runs", || bench.left() > 0);
        let asked = Instant::now();
        bench.tools.cancel(7);
        let cancelled = running.recv_timeout(super::PATIENCE).expect("ended");
        assert!(!cancelled.success && cancelled.text == "(cancelled)", "{cancelled:?}");
        asked.elapsed()
    });
    assert_eq!(bench.left(), 0);
}

#[test]
fn what_it_fetches_is_fetched_under_the_policy() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    let port = super::fetch::serve(|path| match path {
        "/away" => super::fetch::redirect("http://localhost:1/"),
        "/missing" => b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone".to_vec(),
        path => super::fetch::page("text/plain", format!("planted {path}").as_bytes()),
    });
    let fetched = |code: &str, hosts: &[&str], restricted: bool| {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let code = format!("import _tracebook_web\n_tracebook_web.install()\nimport urllib.request\n{code}");
        let web = Some(WebAccess { hosts, restricted });
        bench.done(ToolJob::Python {
            root: bench.root(),
            code,
            seconds: PATIENCE,
            web,
            grants: store::ToolGrants::default(),
            packages: None,
        })
    };
    let get = |url: &str| format!("print(urllib.request.urlopen({url:?}).read().decode())");
    let here = format!("http://127.0.0.1:{port}/a");
    let one = fetched(&get(&here), &["127.0.0.1"], true);
    assert_eq!((one.success, one.text.as_str()), (true, "planted /a\n"), "{one:?}");
    let posted = format!(
        "r = urllib.request.urlopen(urllib.request.Request({here:?}, data=b'x', headers={{'X-Own': 'y'}}), timeout=3)\n\
         print(r.status, r.getcode(), r.geturl() == {here:?}, r.headers['Content-Type'])\n\
         try: urllib.request.urlopen({:?})\nexcept urllib.error.HTTPError as error: print(error.code, error.read())",
        format!("http://127.0.0.1:{port}/missing")
    );
    let posted = fetched(&posted, &["127.0.0.1"], true);
    assert_eq!(posted.text, "200 200 True text/plain\n404 b'gone'\n", "{posted:?}");
    // Every form of an address that isn't on the list, whether or not access is restricted to the list.
    for (url, hosts, restricted, why) in [
        (here.clone(), vec!["github.com"], true, "not on the list"),
        (here.clone(), vec![], false, "loopback address 127.0.0.1"),
        (format!("http://localhost:{port}/"), vec!["localhost"], true, "loopback address"),
        (format!("http://0x7f000001:{port}/"), vec!["github.com"], false, "loopback address 127.0.0.1"),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), vec![], false, "loopback address 127.0.0.1"),
        (format!("http://127.0.0.1:{port}/away"), vec!["127.0.0.1"], false, "loopback address"),
        ("file:///etc/passwd".to_owned(), vec![], false, "only http and https"),
    ] {
        let refused = fetched(&get(&url), &hosts, restricted);
        assert!(!refused.success && refused.text.contains(why), "{url} {hosts:?}: {refused:?}");
        assert!(!refused.text.contains("planted"), "{url}: {refused:?}");
    }
    // Without that permission nothing is fetched at all.
    let code = "import _tracebook_kernel\n_tracebook_kernel.web('{}')";
    assert!(bench.done(bench.python(code, PATIENCE)).text.contains("may not use the network"));
}
