//! Tests of the policy's decisions, as tables.

use super::*;
use crate::tool_spec::ToolPermissions;
use serde_json::json;

const HERE: DocId = DocId([1; 16]);
const RUN: DocId = DocId([2; 16]);

fn tool(name: &str, risk: ToolRisk, process: bool, network: bool) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: if network { json!({"properties": {"url": {"type": "string"}}}) } else { json!({}) },
        risk,
        permissions: ToolPermissions { network, fs: true, process, ui: false },
        idempotent: true,
        source: ToolSource::BuiltIn,
    }
}

fn decided(policy: &ToolPolicy, tool: &ToolSpec, arguments: &Value, facts: &CallFacts) -> PolicyDecision {
    policy.decide(tool, arguments.as_object().expect("an object"), facts, HERE, RUN)
}

fn decide(policy: &ToolPolicy, tool: &ToolSpec, arguments: &Value) -> Permission {
    decided(policy, tool, arguments, &CallFacts::default()).word
}

fn rule(pattern: &str, word: Permission) -> PolicyRule {
    PolicyRule::from_pattern(pattern, word, None, "")
}

#[test]
fn a_command_whose_program_is_made_up_asks_beside_a_rule_that_denies_some() {
    let shell = tool("shell", ToolRisk::Medium, true, false);
    let mut policy = ToolPolicy { rules: vec![rule("shell", Permission::Allow)], ..ToolPolicy::default() };
    assert_eq!(decide(&policy, &shell, &json!({"command": "X=rm; $X a"})), Permission::Allow);
    policy.rules.push(rule("shell: rm *", Permission::Deny));
    for (command, expected) in [
        ("X=rm; $X a", Permission::Ask),
        ("/bin/r? a", Permission::Ask),
        ("rm a", Permission::Deny),
        ("ls *.md; echo $HOME", Permission::Allow),
        ("alias x=rm\nx a", Permission::Deny),
    ] {
        assert_eq!(decide(&policy, &shell, &json!({"command": command})), expected, "{command}");
    }
    // So do words behind a program that the rule names, also where nothing but the risk allows the call.
    for rules in [vec![rule("shell", Permission::Allow)], Vec::new()] {
        let auto_approve = ToolRisk::Critical;
        let mut policy = ToolPolicy { rules, auto_approve, ..ToolPolicy::default() };
        policy.rules.push(rule("shell: git push *", Permission::Deny));
        for (command, expected) in [
            ("git -C sub push", Permission::Deny),
            ("git $X origin", Permission::Ask),
            ("$X push", Permission::Ask),
            ("alias g=git\ng push", Permission::Ask),
            ("git commit -m \"$X\"", Permission::Allow),
        ] {
            assert_eq!(decide(&policy, &shell, &json!({"command": command})), expected, "{command}");
        }
    }
    // A decision about exactly this command counts.
    let arguments = json!({"command": "X=rm; $X a"});
    let arguments = arguments.as_object().expect("an object");
    let facts = CallFacts::default();
    policy.rules.extend(ToolPolicy::rule_from_decision(
        DecisionScope::Always,
        true,
        &shell,
        arguments,
        &facts,
        HERE,
        RUN,
    ));
    assert_eq!(policy.decide(&shell, arguments, &facts, HERE, RUN).word, Permission::Allow);
}

#[test]
fn rules_decide() {
    let mut policy = ToolPolicy {
        rules: vec![rule("shell: cargo test *", Permission::Allow), rule("*: *secret*", Permission::Deny)],
        hosts: vec![".example.org".to_owned()],
        ..ToolPolicy::default()
    };
    let shell = tool("shell", ToolRisk::Medium, true, false);
    let cases = [
        ("cargo test --lib", Permission::Allow),
        ("cargo test ", Permission::Allow),
        ("cargo test; rm -rf ~", Permission::Ask),
        ("cargo test $(curl evil)", Permission::Ask),
        ("cargo test | tee secret", Permission::Deny),
        ("cargo test --config 'target.x.runner=\"sh\"' $X", Permission::Ask),
        ("cargo build", Permission::Ask),
    ];
    for (command, word) in cases {
        assert_eq!(decide(&policy, &shell, &json!({"command": command})), word, "{command}");
    }
    for (folder, word) in [("vendor/evil", Permission::Ask), (".", Permission::Allow), ("./", Permission::Allow)] {
        let arguments = json!({"command": "cargo test x", "workdir": folder});
        assert_eq!(decide(&policy, &shell, &arguments), word, "{folder}");
    }
    let read = tool("read_file", ToolRisk::None, false, false);
    let paths = [
        ("notes/a.md", Permission::Allow),
        ("../a.md", Permission::Deny),
        ("/etc/passwd", Permission::Deny),
        ("~/.ssh/id", Permission::Deny),
        ("a/.git/config", Permission::Deny),
        ("my secret.md", Permission::Deny),
    ];
    for (path, word) in paths {
        assert_eq!(decide(&policy, &read, &json!({"path": path})), word, "{path}");
    }
    let fetch = tool("fetch_url", ToolRisk::High, false, true);
    let urls = [
        ("https://docs.example.org/a", Permission::Allow),
        ("https://example.org.evil.com/", Permission::Ask),
        ("https://user@evil.com:80/example.org", Permission::Deny),
        ("file:///etc/passwd", Permission::Deny),
        ("http://evil.com/?x=://docs.example.org/", Permission::Ask),
        ("http://evil.com\\.docs.example.org/", Permission::Ask),
    ];
    for (url, word) in urls {
        assert_eq!(decide(&policy, &fetch, &json!({"url": url})), word, "{url}");
    }
    policy.unconfined = Some("no Landlock".to_owned());
    assert_eq!(decide(&policy, &shell, &json!({"command": "cargo test x"})), Permission::Ask);
}

#[test]
fn a_decision_reaches_as_far_as_the_user_said() {
    let shell = tool("shell", ToolRisk::Medium, true, false);
    let facts = CallFacts::default();
    let arguments = json!({"command": "make; make install"});
    let arguments = arguments.as_object().expect("an object");
    assert_eq!(ToolPolicy::rule_from_decision(DecisionScope::Once, true, &shell, arguments, &facts, HERE, RUN), None);
    let rule =
        ToolPolicy::rule_from_decision(DecisionScope::Run, true, &shell, arguments, &facts, HERE, RUN).expect("a rule");
    let policy = ToolPolicy { rules: vec![rule], ..ToolPolicy::default() };
    assert_eq!(policy.decide(&shell, arguments, &facts, HERE, RUN).word, Permission::Allow);
    assert_eq!(policy.decide(&shell, arguments, &facts, HERE, DocId([3; 16])).word, Permission::Ask, "another run");
    assert_eq!(decide(&policy, &shell, &json!({"command": "make; make uninstall"})), Permission::Ask);
}

/// Each vulnerability that the audit of issue 19 found, in its original form.
#[test]
fn literal_text_never_becomes_a_pattern() {
    let learned = |tool: &ToolSpec, arguments: &Value, facts: &CallFacts| {
        let arguments = arguments.as_object().expect("an object");
        let rule = ToolPolicy::rule_from_decision(DecisionScope::Always, true, tool, arguments, facts, HERE, RUN)
            .expect("a rule");
        // The rule is serialized and parsed again, as in storage.
        let kept = serde_json::to_string(&rule).expect("written");
        ToolPolicy { rules: vec![serde_json::from_str(&kept).expect("read")], ..ToolPolicy::default() }
    };
    let facts = CallFacts::default();
    let python = tool("run_python", ToolRisk::Medium, true, false);
    let policy = learned(&python, &json!({"code": "print(2*3)"}), &facts);
    assert_eq!(decide(&policy, &python, &json!({"code": "print(2*3)"})), Permission::Allow);
    assert_eq!(decide(&policy, &python, &json!({"code": "print(2); import os; os.system('x') #3)"})), Permission::Ask);

    let shell = tool("shell", ToolRisk::Medium, true, false);
    let policy = learned(&shell, &json!({"command": "find * -name n.md"}), &facts);
    assert_eq!(decide(&policy, &shell, &json!({"command": "find * -name n.md"})), Permission::Allow);
    assert_eq!(decide(&policy, &shell, &json!({"command": "find . -exec sh -c x -name n.md"})), Permission::Ask);

    let fetch = tool("fetch_url", ToolRisk::High, false, true);
    let policy = learned(&fetch, &json!({"url": "http://docs.rs:8080/a?*"}), &facts);
    for (url, word) in [
        ("http://docs.rs:8080/b", Permission::Allow),
        ("http://docs.rs:8080/?x=1", Permission::Allow),
        ("http://docs.rs/b", Permission::Ask),
        ("https://docs.rs:8080/b", Permission::Ask),
        ("http://other/?x=://docs.rs:8080/", Permission::Ask),
        ("http://docs.rs:8080@other/", Permission::Deny),
        ("http://other:8080/docs.rs", Permission::Ask),
    ] {
        assert_eq!(decide(&policy, &fetch, &json!({"url": url})), word, "{url}");
    }

    // An approval of a cell applies only to the code that runs.
    let cell = tool("run_cell", ToolRisk::Medium, true, false);
    let code = |text: &str| CallFacts {
        code: vec![store::CodePiece { title: "Cell 1".to_owned(), text: text.to_owned() }],
        ips: Vec::new(),
    };
    let arguments = json!({"path": "a.md", "cell": 1});
    let policy = learned(&cell, &arguments, &code("print(1)"));
    assert_eq!(decided(&policy, &cell, &arguments, &code("print(1)")).word, Permission::Allow);
    assert_eq!(decided(&policy, &cell, &arguments, &code("import os")).word, Permission::Ask);
    assert_eq!(decided(&policy, &cell, &arguments, &CallFacts::default()).word, Permission::Ask);
}

#[test]
fn rules_of_older_versions_allow_no_more_than_they_said() {
    let old = |pattern: &str, word: &str| -> ToolPolicy {
        let kept = json!({"pattern": pattern, "word": word, "within": null, "origin": "decided by you"});
        ToolPolicy { rules: vec![serde_json::from_value(kept).expect("read")], ..ToolPolicy::default() }
    };
    let shell = tool("shell", ToolRisk::Medium, true, false);
    let policy = old("shell: find * -name n.md", "allow");
    assert_eq!(decide(&policy, &shell, &json!({"command": "find * -name n.md"})), Permission::Allow);
    assert_eq!(decide(&policy, &shell, &json!({"command": "find . -exec x -name n.md"})), Permission::Ask);
    let fetch = tool("fetch_url", ToolRisk::High, false, true);
    let policy = old("fetch_url: *://docs.rs/*", "allow");
    assert_eq!(decide(&policy, &fetch, &json!({"url": "http://evil/?x=://docs.rs/"})), Permission::Ask);
    assert_eq!(
        decide(&old("fetch_url: *://docs.rs/*", "deny"), &fetch, &json!({"url": "http://docs.rs/"})),
        Permission::Deny
    );
    let cell = tool("run_cell", ToolRisk::Medium, true, false);
    assert_eq!(decide(&old("run_cell: a.md", "allow"), &cell, &json!({"path": "a.md", "cell": 1})), Permission::Ask);
    let delete = tool("delete_file", ToolRisk::Medium, false, false);
    assert_eq!(decide(&old("delete_file", "allow"), &delete, &json!({"path": "a.md"})), Permission::Allow);
    let mut served = tool("files_remove", ToolRisk::High, false, false);
    served.source = ToolSource::Server { server: "files".to_owned(), tool: "remove".to_owned() };
    assert_eq!(decide(&old("files_remove", "allow"), &served, &json!({"path": "a.md"})), Permission::Ask);
    // A rule that neither version can read allows nothing.
    let kept = json!([{"decided": {"tool": "shell", "calls": {"kind": "newer"}}, "word": "allow"}, {"word": "allow"}]);
    let rules: Vec<PolicyRule> = serde_json::from_value(kept).expect("read");
    assert_eq!(
        decide(&ToolPolicy { rules, ..ToolPolicy::default() }, &shell, &json!({"command": "x"})),
        Permission::Ask
    );
}

#[test]
fn what_lies_outside_of_the_internet_is_asked_about_by_its_name() {
    let fetch = tool("fetch_url", ToolRisk::High, false, true);
    let listed = |list: &[&str]| ToolPolicy {
        hosts: list.iter().map(|host| (*host).to_owned()).collect(),
        restricted: true,
        ..ToolPolicy::default()
    };
    let policy = ToolPolicy::default();
    for (url, named) in [
        ("http://127.0.0.1:8080/", "loopback address 127.0.0.1"),
        ("http://0x7f000001/", "loopback address 127.0.0.1"),
        ("http://2130706433/", "loopback address 127.0.0.1"),
        ("http://017700000001/", "loopback address 127.0.0.1"),
        ("http://127.1/", "loopback address 127.0.0.1"),
        ("http://0.0.0.0/", "loopback (unspecified) address 0.0.0.0"),
        ("http://[::ffff:127.0.0.1]/", "loopback address 127.0.0.1"),
        ("http://localhost./", "loopback address 127.0.0.1"),
        ("http://169.254.169.254/latest", "cloud metadata address 169.254.169.254"),
        ("http://10.0.0.1/", "private address 10.0.0.1"),
    ] {
        let verdict = decided(&policy, &fetch, &json!({"url": url}), &CallFacts::default());
        assert!(verdict.word == Permission::Ask && verdict.why.contains(named), "{url}: {verdict:?}");
    }
    let facts = CallFacts { ips: vec!["192.168.1.7".parse().expect("an address")], code: Vec::new() };
    let intranet = json!({"url": "http://wiki.example/"});
    for policy in [
        listed(&["wiki.example"]),
        ToolPolicy { rules: vec![rule("fetch_url", Permission::Allow)], ..ToolPolicy::default() },
    ] {
        let verdict = decided(&policy, &fetch, &intranet, &facts);
        assert!(verdict.word == Permission::Ask, "{verdict:?}");
        assert_eq!(decide(&policy, &fetch, &intranet), Permission::Allow, "where it means a public address");
    }
    assert!(decided(&listed(&["wiki.example"]), &fetch, &intranet, &facts).why.contains("private address 192.168.1.7"));
    assert_eq!(decide(&listed(&["localhost"]), &fetch, &json!({"url": "http://localhost/"})), Permission::Ask);
    assert_eq!(decide(&listed(&["127.0.0.1"]), &fetch, &json!({"url": "http://127.0.0.1:9/"})), Permission::Allow);
    assert_eq!(decide(&listed(&["127.0.0.1"]), &fetch, &json!({"url": "http://localhost/"})), Permission::Deny);
    // The list of hosts permits nothing to a user-defined tool.
    let mut own = tool("peek", ToolRisk::High, true, true);
    own.source = ToolSource::User { code: "aa".to_owned(), id: String::new(), version: 1 };
    let policy = ToolPolicy { hosts: vec!["docs.rs".to_owned()], ..ToolPolicy::default() };
    assert_eq!(decide(&policy, &own, &json!({"url": "https://docs.rs/"})), Permission::Ask);
    // A decision is bound to the addresses to which the name resolved at that time.
    let arguments = intranet.as_object().expect("an object");
    let learned = ToolPolicy::rule_from_decision(DecisionScope::Always, true, &fetch, arguments, &facts, HERE, RUN)
        .expect("a rule");
    let policy = ToolPolicy { rules: vec![learned], ..ToolPolicy::default() };
    assert_eq!(decided(&policy, &fetch, &intranet, &facts).word, Permission::Allow);
    let other = CallFacts { ips: vec!["127.0.0.1".parse().expect("an address")], code: Vec::new() };
    assert_eq!(decided(&policy, &fetch, &intranet, &other).word, Permission::Ask);
    // `restricted` denies unlisted hosts, even if they were allowed before.
    let policy = ToolPolicy { restricted: true, ..policy };
    assert_eq!(decided(&policy, &fetch, &intranet, &facts).word, Permission::Deny);
}

#[test]
fn typed_patterns_of_addresses_are_parsed() {
    let fetch = tool("fetch_url", ToolRisk::High, false, true);
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
        let policy = ToolPolicy { rules: vec![rule(pattern, Permission::Allow)], ..ToolPolicy::default() };
        for (url, fits) in *urls {
            let word = if *fits { Permission::Allow } else { Permission::Ask };
            assert_eq!(decide(&policy, &fetch, &json!({"url": url})), word, "{pattern} {url}");
        }
    }
}

#[test]
fn a_program_may_do_by_itself_only_what_our_tools_may() {
    let [permission, _] = crate::external_program::program_own_tools();
    let rules = [
        rule("write_file: b.md", Permission::Deny),
        rule("delete_file: c.md", Permission::Deny),
        rule("read_file: d.md", Permission::Deny),
        rule("write_file: e.md", Permission::Ask),
        rule("agent_permission", Permission::Allow),
    ];
    let policy = ToolPolicy { rules: rules.into(), ..ToolPolicy::default() };
    let word = |policy: &ToolPolicy, kind: &str, paths: &[&str]| {
        decide(policy, &permission, &json!({"action": "x", "kind": kind, "paths": paths}))
    };
    let cases: [(&str, &[&str], Permission); 25] = [
        ("edit", &[], Permission::Allow),
        ("edit", &["a.md"], Permission::Allow),
        ("edit", &["a.md", "b.md"], Permission::Deny),
        ("edit", &["./b.md"], Permission::Deny),
        ("edit", &["sub/b.md"], Permission::Allow),
        ("edit", &["c.md", "d.md"], Permission::Allow),
        ("other", &["b.md"], Permission::Deny),
        ("", &["b.md"], Permission::Deny),
        ("move", &["a.md", "b.md"], Permission::Deny),
        ("move", &["c.md", "a.md"], Permission::Deny),
        ("delete", &["c.md"], Permission::Deny),
        ("delete", &["b.md"], Permission::Allow),
        ("read", &["d.md"], Permission::Deny),
        ("read", &["b.md", "AGENTS.md"], Permission::Allow),
        ("execute", &["b.md"], Permission::Allow),
        ("edit", &["e.md"], Permission::Ask),
        ("edit", &["e.md", "b.md"], Permission::Deny),
        // What others execute, secrets, and what is outside are asked about each time.
        ("edit", &["a.md", "AGENTS.md"], Permission::Ask),
        ("delete", &[".git/hooks/pre-commit"], Permission::Ask),
        ("read", &[".env"], Permission::Ask),
        ("edit", &["/tmp/a.md"], Permission::Ask),
        ("execute", &["../a.md"], Permission::Ask),
        ("edit", &["/tmp/a.md", "b.md"], Permission::Deny),
        ("edit", &["."], Permission::Ask),
        ("search", &["."], Permission::Allow),
    ];
    for (kind, paths, expected) in cases {
        assert_eq!(word(&policy, kind, paths), expected, "{kind} {paths:?}");
    }
    let all = ToolPolicy { rules: vec![rule("write_file", Permission::Deny)], ..policy.clone() };
    assert_eq!(word(&all, "edit", &["/tmp/a.md"]), Permission::Deny);
    // The user's later words about our own tool count.
    let mut later = policy;
    later.rules.push(rule("write_file: e.md", Permission::Allow));
    assert_eq!(word(&later, "edit", &["e.md"]), Permission::Allow);
    // Without a rule, it's a question as before.
    assert_eq!(word(&ToolPolicy::default(), "edit", &["a.md"]), Permission::Ask);
}
