//! Tests of rules over random calls: a decision allows only the call that was shown and the field that was widened.

use super::*;
use crate::tool_catalog;
use crate::tool_spec::ToolPermissions;
use proptest::prelude::*;
use serde_json::json;

/// Returns the tools for generated calls: all built-in ones, user-defined ones and those of servers.
fn tools() -> Vec<ToolSpec> {
    let mut all: Vec<ToolSpec> = tool_catalog::built_in();
    for (name, source) in [
        ("own_tool", ToolSource::User { code: "aa".to_owned(), id: String::new(), version: 1 }),
        ("own_tool", ToolSource::User { code: "bb".to_owned(), id: String::new(), version: 2 }),
        ("a_b_c", ToolSource::Server { server: "a".to_owned(), tool: "b_c".to_owned() }),
        ("a_b_c", ToolSource::Server { server: "a_b".to_owned(), tool: "c".to_owned() }),
    ] {
        all.push(ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({}),
            risk: ToolRisk::High,
            permissions: ToolPermissions { network: name == "own_tool", fs: true, process: true, ui: false },
            idempotent: false,
            source,
        });
    }
    all
}

/// Generates text from parts with a meaning in patterns, shells, addresses or paths.
fn word() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "*",
        "a",
        "b.md",
        "notes",
        "/",
        "..",
        ".",
        ":",
        "://",
        "http",
        "https",
        "docs.rs",
        "evil",
        "127.0.0.1",
        "?",
        "=",
        ";",
        "|",
        " ",
        "'",
        "\"",
        "$(",
        ")",
        "find",
        "-exec",
        "print(",
        "2*3",
        "\n",
        "@",
        "[",
        "]",
        "%2e",
        "\u{202e}",
    ]);
    prop::collection::vec(parts, 0..7).prop_map(|parts| parts.concat())
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let key =
        prop::sample::select(vec!["command", "path", "url", "code", "name", "cell", "seconds", "query", "message"]);
    let value = prop_oneof![
        4 => word().prop_map(Value::String),
        2 => word().prop_map(|word| Value::String(format!("http://docs.rs/{word}"))),
        1 => (0..3_u8).prop_map(|number| json!(number)),
    ];
    prop::collection::btree_map(key, value, 0..3)
        .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn facts() -> impl Strategy<Value = CallFacts> {
    let code = prop::collection::vec(word().prop_map(|text| CodePiece { title: "Cell".to_owned(), text }), 0..3);
    let ips = prop::sample::subsequence(vec!["127.0.0.1", "10.0.0.1", "1.1.1.1"], 0..3);
    let ips = ips.prop_map(|ips| ips.iter().filter_map(|ip| ip.parse().ok()).collect());
    (code, ips).prop_map(|(code, ips)| CallFacts { code, ips })
}

/// Returns whether a call is the approved one, except for the one field that a decision widens. Written independently
/// of the rules, from the sentences in the manual.
fn is_meant(approved: CallContext<'_>, other: CallContext<'_>) -> bool {
    if approved.tool != other.tool {
        return false;
    }
    let (tool, one, two) = (approved.tool, approved.arguments, other.arguments);
    let text =
        |arguments: &Map<String, Value>, key: &str| arguments.get(key).and_then(Value::as_str).map(str::to_owned);
    let site = |call: CallContext<'_>| {
        text(call.arguments, "url").and_then(|url| WebAddress::read(&url).ok()).map(|found| found.site)
    };
    let takes_address = tool.source == ToolSource::BuiltIn && tool.parameters["properties"]["url"].is_object();
    if takes_address
        && one.len() == 1
        && let Some(there) = site(approved)
    {
        let known: Vec<IpAddr> = approved.private_addresses();
        return two.len() == 1
            && site(other) == Some(there)
            && other.private_addresses().iter().all(|ip| known.contains(ip));
    }
    let plain = tool.source == ToolSource::BuiltIn && !tool.permissions.process && !tool.permissions.network;
    if plain && tool.risk < ToolRisk::High && approved.facts.code.is_empty() {
        return match text(one, "path").filter(|_| tool.permissions.fs) {
            Some(_) => text(two, "path").is_some_and(|path| normalize_inside_volume(&path).is_some()),
            None => true,
        };
    }
    one == two && approved.facts.code_hashes() == other.facts.code_hashes()
}

/// Tools, one for each class of decision.
const CLASSES: [&str; 6] = ["fetch_url", "read_file", "write_file", "shell", "run_python", "run_cell"];

/// An edit of a text: position, number of removed characters, and inserted text.
#[derive(Clone, Debug)]
struct TextEdit {
    at: prop::sample::Index,
    taken: usize,
    put: String,
}

impl TextEdit {
    fn applied_to(&self, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        let at = self.at.index(letters.len() + 1);
        let end = (at + self.taken).min(letters.len());
        letters.splice(at..end, self.put.chars());
        letters.into_iter().collect()
    }
}

fn edit() -> impl Strategy<Value = TextEdit> {
    (any::<prop::sample::Index>(), 0..4_usize, word()).prop_map(|(at, taken, put)| TextEdit { at, taken, put })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn a_decision_allows_the_call_and_what_was_widened(
        (one, two) in (0..tool_catalog::built_in().len() + 4, 0..tool_catalog::built_in().len() + 4),
        (first, second) in (arguments(), arguments()),
        (known, found) in (facts(), facts()),
        same in prop::array::uniform3(any::<bool>()),
    ) {
        let tools = tools();
        let tool = &tools[one];
        let approved = CallContext { tool, arguments: &first, facts: &known };
        let other = CallContext {
            tool: if same[0] { tool } else { &tools[two] },
            arguments: if same[1] { &first } else { &second },
            facts: if same[2] { &known } else { &found },
        };
        let rule = PolicyRule {
            about: RuleSubject::Decided(DecidedCalls::from_call(approved)),
            word: Permission::Allow,
            within: None,
            origin: DECISION_ORIGIN.to_owned(),
        };
        // The rule survives serialization.
        let text = serde_json::to_string(&rule).expect("written");
        let read: PolicyRule = serde_json::from_str(&text).expect("read");
        prop_assert_eq!(&read, &rule);
        prop_assert_eq!(rule.matches_call(other), is_meant(approved, other), "{:?}\n{:?}\n{:?}", rule, approved, other);
    }

    /// Calls of each class that differ from the approved one in a single place: an address, a file, a command, code
    /// among the arguments, and code that the call refers to.
    #[test]
    fn a_decision_allows_nothing_that_differs_elsewhere(
        (class, edit) in (prop::sample::select(CLASSES.to_vec()), edit()),
        code in word(),
        text in prop::sample::select(vec!["a", "notes/b.md", "cargo test", "print(2*3)", "find . -name n.md"]),
    ) {
        let built_in = tool_catalog::built_in();
        let (name, key, text) = match class {
            "fetch_url" => (class, "url", format!("https://docs.rs/{}?q=1", text.replace(' ', "/"))),
            "run_cell" => (class, "path", "notes/b.md".to_owned()),
            "write_file" | "read_file" => (class, "path", text.replace([' ', '(', ')', '*'], "-")),
            "shell" => (class, "command", text.to_owned()),
            _ => (class, "code", text.to_owned()),
        };
        let tool = built_in.iter().find(|tool| tool.name == name).expect("a tool of that name");
        let arguments = |text: String| Map::from_iter([(key.to_owned(), Value::String(text))]);
        let of = |code: &str| CallFacts {
            code: (name == "run_cell")
                .then(|| CodePiece { title: "Cell".to_owned(), text: code.to_owned() })
                .into_iter()
                .collect(),
            ips: Vec::new(),
        };
        let (first, known) = (arguments(text.clone()), of(&code));
        let (second, found) = match name {
            "run_cell" => (first.clone(), of(&edit.applied_to(&code))),
            _ => (arguments(edit.applied_to(&text)), of(&code)),
        };
        let approved = CallContext { tool, arguments: &first, facts: &known };
        let other = CallContext { tool, arguments: &second, facts: &found };
        let rule = PolicyRule {
            about: RuleSubject::Decided(DecidedCalls::from_call(approved)),
            word: Permission::Allow,
            within: None,
            origin: DECISION_ORIGIN.to_owned(),
        };
        let same = first == second && known == found;
        let widened = match name {
            // Widened to other addresses of the same site, and other files of the project.
            "fetch_url" => second["url"].as_str().is_some_and(|url| {
                let here = approved.address().expect("an address").expect("read");
                WebAddress::read(url).is_ok_and(|there| there.site == here.site)
            }),
            "write_file" | "read_file" => {
                second["path"].as_str().is_some_and(|path| normalize_inside_volume(path).is_some())
            }
            _ => false,
        };
        prop_assert_eq!(rule.matches_call(other), same || widened, "{:?} {:?}", first, second);
        prop_assert!(is_meant(approved, other) == (same || widened), "the two say the same of what is meant");
    }

    #[test]
    fn a_decision_allows_its_own_call(
        at in 0..tool_catalog::built_in().len() + 4,
        arguments in arguments(),
        facts in facts(),
    ) {
        let tools = tools();
        let call = CallContext { tool: &tools[at], arguments: &arguments, facts: &facts };
        let about = RuleSubject::Decided(DecidedCalls::from_call(call));
        let rule = PolicyRule { about, word: Permission::Allow, within: None, origin: String::new() };
        // A path that leads out of the project is denied before any rule applies.
        let out = matches!(rule.about, RuleSubject::Decided(DecidedCalls { calls: CallScope::Files { .. }, .. }))
            && arguments.get("path").and_then(Value::as_str)
                .is_some_and(|path| normalize_inside_volume(path).is_none());
        prop_assert_eq!(rule.matches_call(call), !out);
    }

    /// Literal text that an older version stored is never a pattern.
    #[test]
    fn old_literals_allow_only_themselves(kept in word(), command in word()) {
        let shell = tool_catalog::built_in().into_iter().find(|tool| tool.name == "shell").expect("shell");
        let stored = json!({"pattern": format!("shell: {kept}"), "word": "allow", "origin": DECISION_ORIGIN});
        let rule: PolicyRule = serde_json::from_value(stored).expect("read");
        let arguments = Map::from_iter([("command".to_owned(), Value::String(command.clone()))]);
        let facts = CallFacts::default();
        let spoken = rule.matches_call(CallContext { tool: &shell, arguments: &arguments, facts: &facts });
        prop_assert_eq!(spoken, command == kept.trim());
    }

    /// Any text is a pattern, and a rule that asks covers everything that the same pattern would allow.
    #[test]
    fn typed_patterns_are_total(pattern in word(), tool in 0..20_usize, arguments in arguments(), facts in facts()) {
        let tools = tools();
        let tool = &tools[tool % tools.len()];
        let call = CallContext { tool, arguments: &arguments, facts: &facts };
        let typed = format!("{}: {pattern}", tool.name);
        let (allow, ask) = (PolicyRule::from_pattern(&typed, Permission::Allow, None, ""),
            PolicyRule::from_pattern(&typed, Permission::Ask, None, ""));
        // What a pattern allows, the same pattern would also ask about.
        let allowed_alone = allow.matches_call(call) && !ask.matches_call(call);
        prop_assert!(!allowed_alone || pattern_arguments(&arguments).next().is_none());
    }
}

#[test]
fn tools_of_two_servers_are_two() {
    let tools = tools();
    let [one, two] = [&tools[tools.len() - 2], &tools[tools.len() - 1]];
    assert_eq!((one.name.as_str(), one.title().as_str(), two.title().as_str()), ("a_b_c", "a/b_c", "a_b/c"));
    let (arguments, facts) = (Map::new(), CallFacts::default());
    let call = |tool| CallContext { tool, arguments: &arguments, facts: &facts };
    let rule = PolicyRule {
        about: RuleSubject::Decided(DecidedCalls::from_call(call(one))),
        word: Permission::Allow,
        within: None,
        origin: String::new(),
    };
    assert!(rule.matches_call(call(one)) && !rule.matches_call(call(two)));
    assert!(rule.is_outdated(two) && !rule.is_outdated(one));
    // A tool with a changed schema or description is a different tool.
    let changed = ToolSpec { parameters: json!({"type": "object"}), ..one.clone() };
    assert!(!rule.matches_call(call(&changed)) && rule.is_outdated(&changed));
    let reworded = ToolSpec { description: "Sends all files.".to_owned(), ..one.clone() };
    assert!(!rule.matches_call(call(&reworded)));
    let typed = PolicyRule::from_pattern("a/*", Permission::Allow, None, "");
    assert!(typed.matches_call(call(one)) && !typed.matches_call(call(two)));
}

/// An argument named `url` widens a decision only for a tool that takes an address: `git_fetch` goes to the remote of
/// the repository, whatever else a call says.
#[test]
fn an_address_widens_only_tools_that_take_one() {
    let tools = tool_catalog::built_in();
    let facts = CallFacts::default();
    let arguments = |url: &str| Map::from_iter([("url".to_owned(), json!(url))]);
    for (name, wider) in [("fetch_url", true), ("git_fetch", false)] {
        let tool = tools.iter().find(|tool| tool.name == name).expect("built in");
        let (one, two) = (arguments("http://docs.rs/"), arguments("http://docs.rs/a"));
        let rule = PolicyRule {
            about: RuleSubject::Decided(DecidedCalls::from_call(CallContext { tool, arguments: &one, facts: &facts })),
            word: Permission::Allow,
            within: None,
            origin: String::new(),
        };
        assert_eq!(rule.matches_call(CallContext { tool, arguments: &two, facts: &facts }), wider, "{name}");
    }
}

#[test]
fn stars_stand_for_anything() {
    for (pattern, text, fit) in [
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*c", "ab", false),
        ("*", "", true),
        ("a", "ab", false),
        ("*b*", "abc", true),
        ("ab*b", "ab", false),
    ] {
        assert_eq!(matches_wildcard(pattern, text), fit, "{pattern} {text}");
    }
}
