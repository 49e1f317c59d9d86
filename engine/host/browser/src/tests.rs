//! Calls as the tools' schemas let them through, elements as the browser lists them, and names that change.

use super::*;
use crate::page_gate::{PageGate, resolve_by_system};
use crate::page_tree::{find_element, write_tree};
use serde_json::json;
use std::sync::Arc;

struct NothingOpen;

impl PagePolicy for NothingOpen {
    fn origin_of(&self, _: &str) -> Option<PageOrigin> {
        None
    }

    fn is_public(&self, _: IpAddr) -> bool {
        false
    }

    fn may_load_from(&self, _: &str) -> bool {
        false
    }

    fn listed_addresses(&self, _: &PageOrigin) -> Option<Vec<IpAddr>> {
        None
    }
}

#[test]
fn calls_are_read_from_their_arguments() {
    let read = |tool: &str, arguments: Value| {
        BrowserRequest::from_call(tool, arguments.as_object().expect("an object")).map_err(|why| why.to_string())
    };
    assert_eq!(
        read("browser_open", json!({"url": "http://a/"})),
        Ok(BrowserRequest::Open { url: "http://a/".to_owned() })
    );
    let whole = BrowserRequest::Read { form: PageForm::Tree, from_line: None };
    assert_eq!(read("browser_read", json!({})), Ok(whole));
    let act = json!({"action": "type", "ref": "e3", "text": "a"});
    let (element, text) = (Some("e3".to_owned()), Some("a".to_owned()));
    assert_eq!(read("browser_act", act), Ok(BrowserRequest::Act { action: PageAction::Type, element, text }));
    let go = BrowserRequest::Go { action: PageMove::ScrollDown, seconds: None };
    assert_eq!(read("browser_go", json!({"action": "scroll_down"})), Ok(go));
    for (tool, arguments) in [("browser_open", json!({})), ("browser_act", json!({"action": "fly"})), ("x", json!({}))]
    {
        assert!(read(tool, arguments).is_err_and(|why| why.starts_with("the arguments don't fit")), "{tool}");
    }
}

#[test]
fn a_tree_names_what_can_be_used() {
    let node = |id: u64, role: &str, name: &str, children: &[u64], more: Value| {
        json!({"nodeId": id.to_string(), "ignored": false, "role": {"value": role}, "name": {"value": name},
            "childIds": children.iter().map(u64::to_string).collect::<Vec<_>>(), "backendDOMNodeId": id + 100,
            "properties": more})
    };
    let states =
        json!([{"name": "focusable", "value": {"value": true}}, {"name": "checked", "value": {"value": "mixed"}}]);
    let link = json!([{"name": "url", "value": {"value": "http://a/b"}}]);
    // A list that names a node twice, or itself, ends all the same.
    let nodes = json!({"nodes": [
        node(1, "RootWebArea", "T", &[2, 3, 5, 7, 1], json!([])),
        node(2, "heading", "Head\nline", &[4], json!([{"name": "level", "value": {"value": 1}}])),
        node(4, "StaticText", "Head line", &[], json!([])),
        node(3, "generic", "", &[6, 8], json!([])),
        node(6, "checkbox", "Agree", &[], states),
        node(8, "StaticText", "words", &[], json!([])),
        node(5, "link", "More", &[9], link),
        node(9, "InlineTextBox", "More", &[], json!([])),
        node(7, "none", "hidden", &[], json!([])),
    ]});
    let mut tab = page_events::PageTab {
        number: 1,
        context: String::new(),
        target: String::new(),
        session: String::new(),
        gate: PageGate::open(Arc::new(NothingOpen), Arc::new(resolve_by_system)).expect("opened"),
        url: String::new(),
        is_loading: false,
        has_crashed: false,
        elements: Default::default(),
        last_element: 0,
    };
    let lines = write_tree(std::slice::from_ref(&nodes), &mut tab);
    let expected = [
        "- heading \"Head line\" (level 1)",
        "- checkbox \"Agree\" (checked: mixed) [e1]",
        "words",
        "- link \"More\" (to http://a/b) [e2]",
    ];
    assert_eq!(lines[..4], expected);
    assert_eq!(
        (find_element(&tab, "e2"), find_element(&tab, "[e1]"), find_element(&tab, "e9")),
        (Some(105), Some(106), None)
    );
    // Names stay the same when the tree is read again.
    assert_eq!(write_tree(&[nodes], &mut tab)[..4], expected);
    tab.gate.close();
}

/// A page under a name of an attacker, whose name server answers in its favor.
#[cfg(unix)]
mod rebinding {
    use super::*;
    use crate::installed_browser::find_browser;
    use crate::page_gate::HostResolver;
    use crate::web_policy::WebPagePolicy;
    use agent::tool_job::WebAccess;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
    use std::sync::{Mutex, MutexGuard};
    use std::time::Instant;
    use store::DocId;

    const HOST: &str = "rebind.example";
    const RUN: DocId = DocId([7; 16]);
    /// The address that counts as public here.
    const OUTSIDE: Ipv4Addr = Ipv4Addr::LOCALHOST;
    const INSIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
    const PAGE: &str = "<title>Rebound</title><p id=o></p><script>fetch('/secret').then(answer => answer.text())\
        .then(text => o.textContent = 'it got ' + text, () => o.textContent = 'it failed')</script>";

    struct LoopbackPolicy;

    impl PagePolicy for LoopbackPolicy {
        fn origin_of(&self, url: &str) -> Option<PageOrigin> {
            WebPagePolicy(WebAccess { hosts: Vec::new(), restricted: false }).origin_of(url)
        }

        fn is_public(&self, ip: IpAddr) -> bool {
            ip == IpAddr::V4(OUTSIDE)
        }

        fn may_load_from(&self, _: &str) -> bool {
            true
        }

        fn listed_addresses(&self, _: &PageOrigin) -> Option<Vec<IpAddr>> {
            None
        }
    }

    /// What the name server answers, and what came of it.
    struct AttackerState {
        /// Number of look-ups that still get the address outside.
        outside_answers: usize,
        /// Number of look-ups that got the address inside.
        inside_answers: usize,
        /// Addresses that connections came to, each with the first line of the request.
        requests: Vec<(IpAddr, String)>,
    }

    type SharedAttacker = Arc<Mutex<AttackerState>>;

    fn lock(attacker: &SharedAttacker) -> MutexGuard<'_, AttackerState> {
        attacker.lock().expect("no panic")
    }

    /// Answers the page, and from then on leads its name inside. Everything else gets nothing.
    fn answer_request(mut stream: TcpStream, attacker: &SharedAttacker) -> std::io::Result<()> {
        let address = stream.local_addr()?.ip();
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        while !lines.next().transpose()?.unwrap_or_default().is_empty() {}
        let is_page = first.starts_with("GET / ");
        {
            let mut state = lock(attacker);
            state.requests.push((address, first));
            if !is_page {
                return Ok(());
            }
            state.outside_answers = 0;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{PAGE}", PAGE.len())
    }

    /// Starts the site and a pool whose pages ask the attacker's name server.
    fn start(outside_answers: usize) -> (BrowserPool, SharedAttacker, String) {
        let state = AttackerState { outside_answers, inside_answers: 0, requests: Vec::new() };
        let attacker: SharedAttacker = Arc::new(Mutex::new(state));
        let site = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        let url = format!("http://{HOST}:{}/", site.local_addr().expect("bound").port());
        let serving = attacker.clone();
        std::thread::spawn(move || {
            for stream in site.incoming() {
                let (stream, serving) = (stream.expect("a client"), serving.clone());
                // The browser closes connections as it likes.
                std::thread::spawn(move || _ = answer_request(stream, &serving));
            }
        });
        let asked = attacker.clone();
        let resolver: HostResolver = Arc::new(move |host: &str, port: u16| -> std::io::Result<Vec<SocketAddr>> {
            if host != HOST {
                return Err(std::io::ErrorKind::NotFound.into());
            }
            let mut state = lock(&asked);
            let ip = match state.outside_answers.checked_sub(1) {
                Some(left) => {
                    state.outside_answers = left;
                    OUTSIDE
                }
                None => {
                    state.inside_answers += 1;
                    INSIDE
                }
            };
            Ok(vec![SocketAddr::from((ip, port))])
        });
        (BrowserPool::with_resolver(resolver), attacker, url)
    }

    fn call(pool: &BrowserPool, request: &BrowserRequest) -> Result<BrowserAnswer, BrowserError> {
        let setup = BrowserSetup { program: None, memory_bytes: DEFAULT_MEMORY_BYTES };
        pool.call(RUN, request, &[], (&setup, Arc::new(LoopbackPolicy)), &|| false)
    }

    /// Asserts that the name led inside, and that nothing was reached there.
    fn assert_nothing_inside(attacker: &SharedAttacker) {
        let state = lock(attacker);
        assert!(state.inside_answers > 0, "the name didn't change");
        assert!(state.requests.iter().all(|(ip, _)| *ip == IpAddr::V4(OUTSIDE)), "{:?}", state.requests);
    }

    #[test]
    fn a_name_that_changes_its_address_leads_no_page_inside() {
        if let Err(why) = find_browser(None) {
            assert!(std::env::var("TRACEBOOK_CI").as_deref() != Ok("1"), "TRACEBOOK_CI=1 and {why}");
            println!("left out: {why}");
            return;
        }
        // It changes between the look-up that the call judges and that of the connection.
        let (pool, attacker, url) = start(1);
        let open = BrowserRequest::Open { url };
        let refused = call(&pool, &open).expect_err("the page is inside").to_string();
        assert!(refused.contains("inside your network"), "{refused}");
        assert_nothing_inside(&attacker);
        assert!(lock(&attacker).requests.is_empty());
        // It was inside from the beginning: the user is asked.
        let asked = call(&pool, &open).expect("a question").asks;
        assert!(matches!(asked, Some(AccessRequest::PrivateAddress { ips, .. }) if ips == [INSIDE.to_string()]));
        pool.close_all();

        // It changes once the page is there, whose script then asks its own origin.
        let (pool, attacker, url) = start(usize::MAX);
        let mut said = call(&pool, &BrowserRequest::Open { url }).expect("the page").text;
        let until = Instant::now() + Duration::from_secs(60);
        while !said.contains("it failed") {
            assert!(Instant::now() < until && !said.contains("it got"), "{said}");
            let read = BrowserRequest::Read { form: PageForm::Text, from_line: None };
            said += &call(&pool, &read).expect("the page").text;
        }
        assert!(said.contains("Title: Rebound") && said.contains("inside your network"), "{said}");
        assert_nothing_inside(&attacker);
        assert!(lock(&attacker).requests.iter().any(|(_, line)| line.starts_with("GET / ")));
    }
}
