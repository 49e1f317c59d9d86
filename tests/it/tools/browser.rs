//! The browser tools with a real Chromium and sites on this machine: pages are read and used, and hostile ones reach
//! nothing, leave for nowhere and leave nothing behind.

use super::Bench;
use super::fetch::{page, redirect, serve};
use crate::program::{assert_fast, has_browser, is_alone, until};
use agent::config::SandboxLimits;
use agent::tool_job::{AccessRequest, ToolJob, ToolOutcome, WebAccess};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::DocId;

const RUN: DocId = DocId([7; 16]);

const FORM: &str = "<title>One</title><h1>First</h1><p>Hello <b>you</b></p><form action=/second>\
    <label>Name <input name=n></label> <label>Pick <select name=p><option>apple<option>pear</select></label> \
    <label>Day <input type=date name=d></label> <label>File <input type=file></label> <input type=checkbox \
    aria-label=Agree> <button>Send</button></form> <a href=/second>next</a> <a href=/report>report</a> \
    <button onclick=\"alert('Boo')\">Alarm</button><button onclick=\"document.title = 'Pressed'\">Press</button>";

/// A page that takes more and more memory, and never comes to rest.
const HOG: &str = "<img src=/silent>hungry<script>const all = []; setInterval(() => \
    all.push(new Uint8Array(20 << 20).fill(all.length + 1)), 20)</script>";
/// The head of an answer of a gigabyte.
const LARGE_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: TYPE\r\ncontent-length: 1073741824\r\n\r\n";

/// A job of the browser tools for a run.
fn job(run: DocId, tool: &str, arguments: Value, inside: &[&str], hosts: &[&str]) -> ToolJob {
    let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
    ToolJob::Browser {
        run,
        tool: tool.to_owned(),
        arguments: arguments.as_object().cloned().expect("an object"),
        inside: owned(inside),
        web: WebAccess { hosts: owned(hosts), restricted: false },
        program: None,
    }
}

fn browse(bench: &Bench, tool: &str, arguments: Value) -> ToolOutcome {
    bench.done(job(RUN, tool, arguments, &["127.0.0.1", "::1"], &[]))
}

/// The same, which must succeed. Returns the text.
#[track_caller]
fn good(bench: &Bench, tool: &str, arguments: Value) -> String {
    let outcome = browse(bench, tool, arguments);
    assert!(outcome.success && outcome.asks.is_none(), "{outcome:?}");
    outcome.text
}

/// The name of the element on the first line that contains `label`.
#[track_caller]
fn element(tree: &str, label: &str) -> String {
    let line = tree.lines().find(|line| line.contains(label) && line.ends_with(']'));
    let line = line.unwrap_or_else(|| panic!("no element {label}: {tree}"));
    line.rsplit('[').next().expect("a name").trim_end_matches(']').to_owned()
}

/// The processes of browsers that this process has started: what names their folder, and their groups.
fn left() -> usize {
    crate::program::processes_naming(&profile_prefix()).len()
}

/// The beginning of the names of the folders of browsers that this process has started.
fn profile_prefix() -> String {
    format!("tracebook-browser-{}-", std::process::id())
}

#[test]
fn a_page_is_read_used_and_saved() {
    if !has_browser() || !is_alone("tools::browser::a_page_is_read_used_and_saved", |_| ()) {
        return;
    }
    let bench = Bench::new();
    let port = serve(|path| match path.split('?').next() {
        Some("/") => page("text/html; charset=utf-8", FORM.as_bytes()),
        Some("/second") => page("text/html", format!("<title>Two</title><h1>Second</h1><p>{path}</p>").as_bytes()),
        Some("/report") => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/csv\r\ncontent-disposition: attachment; \
                        filename=\"../report.csv\"\r\ncontent-length: 4\r\n\r\na,b\n";
            head.as_bytes().to_vec()
        }
        _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
    });
    let home = format!("http://127.0.0.1:{port}/");
    // Nothing is open yet.
    let early = browse(&bench, "browser_read", json!({}));
    assert!(!early.success && early.text.contains("browser_open"), "{early:?}");
    let tree = good(&bench, "browser_open", json!({"url": home}));
    for part in
        [&format!("Quoted from {home}:\n```\nTitle: One\n") as &str, "- heading \"First\" (level 1)", "Hello\nyou"]
    {
        assert!(tree.contains(part), "{part}: {tree}");
    }
    assert!(!tree.contains("inside your network"), "{tree}");
    let text = good(&bench, "browser_read", json!({"as": "text"}));
    assert!(text.contains("Hello you") && !text.contains("[e"), "{text}");
    let act = |arguments: Value| browse(&bench, "browser_act", arguments);
    let name = element(&tree, "\"Name\"");
    let typed = act(json!({"action": "type", "ref": name, "text": "Grüße & \"more\"", "element": "field Name"}));
    assert!(typed.text.contains("= \"Grüße & \"more\"\""), "{typed:?}");
    let typed = act(json!({"action": "type", "ref": name, "text": "Ada"}));
    assert!(typed.text.contains("= \"Ada\"") && !typed.text.contains("Grüße"), "{typed:?}");
    let picked = act(json!({"action": "select", "ref": element(&tree, "\"Pick\""), "text": "pear"}));
    assert!(picked.text.contains("option \"pear\" (selected)"), "{picked:?}");
    let day = act(json!({"action": "type", "ref": element(&tree, "\"Day\""), "text": "2026-01-02"}));
    assert!(day.text.contains("2026-01-02"), "{day:?}");
    for (arguments, why) in [
        (json!({"action": "select", "ref": element(&tree, "\"Pick\""), "text": "plum"}), "apple, pear"),
        (json!({"action": "select", "ref": name, "text": "plum"}), "not a list of choices"),
        (json!({"action": "type", "ref": element(&tree, "\"Send\""), "text": "x"}), "not a field"),
        (json!({"action": "type", "ref": element(&tree, "File"), "text": "/etc/passwd"}), "files can't be uploaded"),
        (json!({"action": "click", "ref": "e999"}), "no element e999"),
        (json!({"action": "click"}), "say which element"),
        (json!({"action": "type", "ref": name}), "say what to type"),
        (json!({"action": "press", "text": "Hyper"}), "there is no key Hyper"),
    ] {
        let outcome = act(arguments.clone());
        assert!(!outcome.success && outcome.text.contains(why), "{arguments}: {outcome:?}");
    }
    let boxed = act(json!({"action": "click", "ref": element(&tree, "\"Agree\"")}));
    assert!(boxed.text.contains("checked: true"), "{boxed:?}");
    let pressed = act(json!({"action": "press", "ref": element(&tree, "\"Press\""), "text": "Enter"}));
    assert!(pressed.text.contains("Title: Pressed"), "{pressed:?}");
    let alarm = act(json!({"action": "click", "ref": element(&tree, "\"Alarm\"")}));
    assert!(alarm.text.contains("a dialog (alert), which was dismissed: \u{201c}Boo\u{201d}"), "{alarm:?}");

    // A picture and a printed page are files of the result.
    let picture = browse(&bench, "browser_save", json!({"as": "screenshot"}));
    assert_eq!((picture.attached.len(), picture.attached[0].mime.as_str()), (1, "image/png"), "{picture:?}");
    let bytes = bench.blob(picture.attached[0].blob);
    let image = image::load_from_memory(&bytes).expect("a PNG").to_rgb8();
    assert_eq!(image.dimensions(), (1280, 800));
    assert!(image.pixels().any(|pixel| pixel.0 == [0, 0, 0]) && image.get_pixel(1279, 799).0 == [255; 3]);
    let printed = browse(&bench, "browser_save", json!({"as": "pdf"}));
    assert!(bench.blob(printed.attached[0].blob).starts_with(b"%PDF-"), "{printed:?}");
    // A file that the page sends is kept, under a name without folders.
    let sent = act(json!({"action": "click", "ref": element(&tree, "\"report\"")}));
    assert!(sent.text.contains("report.csv\u{201d} (4 bytes)") && !sent.text.contains("../"), "{sent:?}");
    assert_eq!(bench.blob(sent.attached[0].blob), b"a,b\n");

    let second = good(&bench, "browser_act", json!({"action": "click", "ref": element(&tree, "\"Send\"")}));
    assert!(second.contains("Title: Two") && second.contains("n=Ada&p=pear&d=2026-01-02"), "{second}");
    let back = good(&bench, "browser_go", json!({"action": "back"}));
    assert!(back.contains("Title: Pressed") || back.contains("Title: One"), "{back}");
    let gone = act(json!({"action": "click", "ref": name}));
    assert!(!gone.success && gone.text.contains("there is no element"), "names of another document: {gone:?}");
    let forward = good(&bench, "browser_go", json!({"action": "forward"}));
    assert!(forward.contains("Title: Two"), "{forward}");
    assert!(!browse(&bench, "browser_go", json!({"action": "forward"})).success, "there is nothing after it");
    good(&bench, "browser_go", json!({"action": "reload"}));
    good(&bench, "browser_go", json!({"action": "scroll_down"}));

    // Each tab has pages and cookies of its own.
    let tabs = good(&bench, "browser_tabs", json!({"action": "new"}));
    assert!(tabs.contains("Tab 2, in front: about:blank"), "{tabs}");
    good(&bench, "browser_open", json!({"url": home}));
    let tabs = good(&bench, "browser_tabs", json!({"action": "select", "tab": 1}));
    assert!(tabs.contains("Tab 1, in front") && tabs.contains(&format!("Tab 2: {home}")), "{tabs}");
    assert!(good(&bench, "browser_read", json!({"as": "text"})).contains("Second"));
    assert!(!browse(&bench, "browser_tabs", json!({"action": "select", "tab": 9})).success);
    let tabs = good(&bench, "browser_tabs", json!({"action": "close"}));
    assert!(tabs.starts_with("Tab 2, in front") && !tabs.contains("Tab 1"), "{tabs}");

    // Another run has a browser of its own, which knows nothing of this one.
    let other = bench.done(job(DocId([8; 16]), "browser_read", json!({}), &[], &[]));
    assert!(!other.success && other.text.contains("no page is open"), "{other:?}");
    assert!(left() > 0);
    bench.tools.close_browser(RUN);
    until("nothing of the browser is left", || left() == 0);
}

#[test]
fn a_hostile_page_reaches_nothing_and_leaves_for_nowhere() {
    if !has_browser() {
        return;
    }
    let bench = Bench::new();
    let reached = Arc::new(AtomicUsize::new(0));
    let counted = reached.clone();
    let other = serve(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        page("text/plain", b"planted secret")
    });
    let attack = format!(
        "<title>Evil</title><p id=o></p><img src=http://127.0.0.1:{other}/i><iframe \
         src=http://127.0.0.1:{other}/f></iframe><link rel=stylesheet href=http://localhost:{other}/c>\
         <object data=http://[::1]:{other}/o></object>\
         <script>const tell = word => o.textContent += word + ' ';
         for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '0.0.0.0', '2130706433'])
           fetch('http://' + host + ':{other}/x', {{mode: 'no-cors'}})
             .then(() => tell('reached'), () => tell('failed'));
         for (const host of ['127.0.0.1', 'localhost']) {{
           const socket = new WebSocket('ws://' + host + ':{other}/');
           socket.onopen = () => tell('reached'); socket.onerror = () => tell('failed');
         }}
         navigator.sendBeacon('http://127.0.0.1:{other}/b', 'x');
         new Worker(URL.createObjectURL(new Blob([`fetch('http://127.0.0.1:{other}/w', {{mode: 'no-cors'}})`])));
         open('http://127.0.0.1:{other}/popup'); open('about:blank'); open('javascript:1');
         setTimeout(() => location = 'file:///etc/passwd', 50);
         setTimeout(() => location = 'http://127.0.0.1:{other}/away', 150);</script>"
    );
    let port = serve(move |path| match path {
        "/attack" => page("text/html", attack.as_bytes()),
        "/loop" => redirect("/loop"),
        "/away" => redirect(&format!("http://127.0.0.1:{other}/")),
        "/refresh" => {
            let tag = format!("<meta http-equiv=refresh content='0;url=http://127.0.0.1:{other}/'>still here");
            page("text/html", tag.as_bytes())
        }
        "/large" => {
            let script = "<p id=o></p><script>fetch('/huge').then(answer => answer.arrayBuffer()).then(() => \
                          o.textContent = 'whole', () => o.textContent = 'broken off')</script>";
            page("text/html", script.as_bytes())
        }
        "/huge" => [LARGE_HEAD.replace("TYPE", "text/plain").as_bytes(), &vec![b'x'; 48 << 20]].concat(),
        "/file" => [LARGE_HEAD.replace("TYPE", "application/zip").as_bytes(), &vec![b'x'; 24 << 20]].concat(),
        "/hog" => page("text/html", HOG.as_bytes()),
        "/endless" => b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<img src=/silent>words".to_vec(),
        "/silent" => {
            std::thread::sleep(Duration::from_secs(60));
            Vec::new()
        }
        "/alarms" => page("text/html", b"<title>A</title><script>for (let i = 0; i < 50; i++) alert(i)</script>done"),
        "/busy" => page("text/html", b"<script>setTimeout(() => { for (;;); }, 100)</script>busy"),
        "/deep" => page("text/html", format!("{}bottom", "<div>".repeat(20_000)).as_bytes()),
        "/many" => page("text/html", "<button>b</button>".repeat(5_000).as_bytes()),
        _ => page("text/html", b"<title>Plain</title>plain"),
    });
    let at = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let open = |path: &str| browse(&bench, "browser_open", json!({"url": at(path)}));

    // Another site is asked about before anything is sent there; where it's not the first address, the page stays.
    assert_eq!(open("/away").asks, Some(AccessRequest::Redirect { url: format!("http://127.0.0.1:{other}/") }));
    let refreshed = open("/refresh");
    let wants = format!("This page wants to go to http://127.0.0.1:{other}/, call browser_open with it.");
    assert!(refreshed.text.contains(&wants) && refreshed.text.contains("still here"), "{refreshed:?}");
    let attacked = open("/attack");
    let later = good(&bench, "browser_go", json!({"action": "wait", "seconds": 2}));
    assert!(attacked.success && later.contains("Quoted from ") && later.contains("/attack"), "{attacked:?} {later}");
    assert!(later.contains("failed") && !later.contains("reached"), "{later}");
    let said = format!("{}{later}", attacked.text);
    for part in ["wants to open another tab", "inside your network", "wants to go to"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("planted") && !said.contains("root:"), "{said}");
    let tabs = good(&bench, "browser_tabs", json!({"action": "list"}));
    assert_eq!(tabs.lines().count(), 1, "popups are closed: {tabs}");
    // Not even a name that was allowed reaches another address than the allowed one.
    let named = json!({"url": format!("http://localhost:{port}/")});
    let asked = bench.done(job(RUN, "browser_open", named, &["127.0.0.2"], &["localhost"]));
    assert!(
        matches!(&asked.asks, Some(AccessRequest::PrivateAddress { ips, .. }) if ips.contains(&"127.0.0.1".to_owned())),
        "{asked:?}"
    );
    assert_eq!(reached.load(Ordering::Relaxed), 0, "another server of this machine was reached");

    let looped = open("/loop");
    assert!(!looped.success && looped.text.contains("redirects too often"), "{looped:?}");
    let begun = Instant::now();
    let mut large = open("/large").text;
    until("the large answer is broken off", || {
        large.push_str(&good(&bench, "browser_read", json!({})));
        large.contains("broken off")
    });
    assert!(large.contains("was cut off") && !large.contains("whole"), "{large}");
    let file = open("/file");
    assert!(file.attached.is_empty() && file.text.contains("was not kept"), "{file:?}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let begun = Instant::now();
    let endless = open("/endless");
    assert!(endless.text.contains("still loading") && endless.text.contains("words"), "{endless:?}");
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    let alarms = open("/alarms");
    assert!(alarms.text.contains("done") && alarms.text.matches("dialog (alert)").count() <= 20, "{alarms:?}");
    assert!(open("/deep").text.contains("bottom"));
    let many = open("/many");
    assert!(many.text.contains("browser_read with from_line") && many.text.len() < 8_000, "{:.300}", many.text);
    let rest = good(&bench, "browser_read", json!({"from_line": 3_999}));
    assert!(rest.contains("the rest of the page is left out"), "{rest:.500}");
    // A browser that takes too much memory is closed, and the next page gets a new one.
    let hungry = |path: &str| {
        let limits = Box::new(SandboxLimits { memory_bytes: Some(700 << 20), ..SandboxLimits::default() });
        let work = Box::new(job(DocId([6; 16]), "browser_open", json!({"url": at(path)}), &["127.0.0.1"], &[]));
        bench.done(ToolJob::Limited { limits, job: work })
    };
    let hog = hungry("/hog");
    assert!(!hog.success && hog.text.contains("took more than 700 MB of memory"), "{hog:?}");
    assert!(hungry("/plain").text.contains("Title: Plain"));
    // A page that never stops computing is given up, and the next one works.
    open("/busy");
    let busy = browse(&bench, "browser_read", json!({}));
    assert!(!busy.success && busy.text.contains("open it again"), "{busy:?}");
    assert!(open("/plain").text.contains("Title: Plain"));
    for url in ["file:///etc/passwd", "ftp://127.0.0.1/", "http://user:word@127.0.0.1/", "about:blank", "javascript:1"]
    {
        let refused = browse(&bench, "browser_open", json!({"url": url}));
        assert!(!refused.success && refused.text.contains("only http and https"), "{url}: {refused:?}");
    }
    assert_eq!(reached.load(Ordering::Relaxed), 0, "another server of this machine was reached");
}

#[test]
fn nothing_is_left_of_a_browser_whatever_ends_it() {
    if !has_browser() || !is_alone("tools::browser::nothing_is_left_of_a_browser_whatever_ends_it", |_| ()) {
        return;
    }
    let port = serve(|path| {
        if path == "/silent" {
            std::thread::sleep(Duration::from_secs(60));
        }
        page("text/html", b"<title>Plain</title>plain")
    });
    let inside = ["127.0.0.1"];
    let run = DocId([9; 16]);
    let at = |path: &str| json!({"url": format!("http://127.0.0.1:{port}{path}")});
    // The call is canceled while the site says nothing, and the run ends.
    let bench = Bench::new();
    assert_fast("the end of a canceled call", Duration::from_secs(3), || {
        let told = bench.start(5, job(run, "browser_open", at("/silent"), &inside, &[]));
        until("it starts", || left() > 0);
        let begun = Instant::now();
        assert!(bench.tools.cancel(5));
        assert!(!told.recv_timeout(super::PATIENCE).expect("it ends").success);
        let took = begun.elapsed();
        bench.tools.close_browser(run);
        until("nothing is left", || left() == 0);
        took
    });
    // The run ends while a call is at work.
    let told = bench.start(6, job(run, "browser_open", at("/silent"), &inside, &[]));
    until("it starts", || left() > 0);
    bench.tools.close_browser(run);
    assert!(!told.recv_timeout(super::PATIENCE).expect("it ends").success);
    until("nothing is left", || left() == 0);
    // The program closes.
    assert!(bench.done(job(run, "browser_open", at("/"), &inside, &[])).success);
    drop(bench);
    until("nothing is left", || left() == 0);
    let place = if crate::program::is_root() { "/tmp".into() } else { std::env::temp_dir() };
    until("its folder is removed", || {
        let mut names = fs::read_dir(&place).expect("listed").flatten().map(|entry| entry.file_name());
        !names.any(|name| name.to_string_lossy().starts_with(&profile_prefix()))
    });
    // A browser that isn't there, or that isn't one.
    let bench = Bench::new();
    for (program, why) in [("/no/browser", "browser.program"), ("/bin/false", "does not start")] {
        let mut tried = job(run, "browser_open", at("/"), &inside, &[]);
        if let ToolJob::Browser { program: named, .. } = &mut tried {
            *named = Some(program.into());
        }
        let outcome = bench.done(tried);
        assert!(!outcome.success && outcome.text.contains(why), "{outcome:?}");
    }
}
