//! Rules of the policy: what the user has typed as a pattern, and what a decision allows. Literal text never becomes a
//! pattern: a rule that a decision makes is the call itself, plus the one field that the user chose to widen.

use crate::address::{Address, Site, range};
use crate::argv;
use crate::tool::{Risk, Source, ToolSpec};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use store::{BlobHash, DocId, Piece};

/// Who made a rule that came from a decision.
pub const DECIDED: &str = "decided by you";
/// Who made a rule that was typed beside a question.
pub const ASKED: &str = "allowed when it was asked";
/// Of what a rule allows so much text is kept to show it.
const MAX_RULE_TEXT_CHARS: usize = 2_000;

/// The arguments that patterns speak of: a command, a path, an address.
const SUBJECTS: [&str; 7] = ["command", "path", "url", "directory", "query", "name", "code"];

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

/// What is known of a call beside its arguments, looked up before it is judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// All code that would run and is not among the arguments.
    pub code: Vec<Piece>,
    /// The addresses that a host's name was found to mean, or that the call itself gives.
    pub ips: Vec<IpAddr>,
}

impl Facts {
    /// The hashes of the code that would run.
    pub fn code_hashes(&self) -> BTreeSet<String> {
        self.code.iter().map(|piece| BlobHash::of(piece.text.as_bytes()).to_string()).collect()
    }
}

/// A call as the policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool.
    pub tool: &'a ToolSpec,
    /// What it is given.
    pub arguments: &'a Map<String, Value>,
    /// What else is known of it.
    pub facts: &'a Facts,
}

impl Call<'_> {
    /// The address that it reaches, where it has one.
    pub fn address(&self) -> Option<Result<Address, String>> {
        let url = self.arguments.get("url").and_then(Value::as_str)?;
        self.tool.permissions.network.then(|| Address::read(url))
    }

    /// The addresses outside of the public internet that it would reach.
    pub fn inside(&self) -> Vec<IpAddr> {
        let mut all = self.facts.ips.clone();
        all.extend(self.address().and_then(Result::ok).and_then(|address| address.ip));
        all.retain(|ip| range(*ip).is_some());
        all.sort();
        all.dedup();
        all
    }
}

/// A rule: what it says of which calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Rule {
    /// Which calls.
    pub about: About,
    /// What it says.
    pub word: Word,
    /// Where it holds: everywhere, or in one volume or run.
    pub within: Option<DocId>,
    /// Who made it and when, in words.
    pub origin: String,
}

/// Which calls a rule speaks of.
#[derive(Clone, Debug, PartialEq)]
pub enum About {
    /// A pattern that the user typed.
    Pattern(Pattern),
    /// What a decision was about.
    Decided(Decided),
    /// What a decision was about, as literal text of an older version: the tool, and its main argument.
    Old {
        /// The tool.
        tool: String,
        /// Its argument; `None`: whatever it was given.
        text: Option<String>,
    },
    /// What a newer version wrote, or damage: it allows nothing.
    Unknown,
}

/// What a decision was about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The tool's name.
    pub tool: String,
    /// What the tool was then, where that can change: a tool of the user's own, or of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Which of its calls.
    pub calls: Calls,
}

/// Calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Calls {
    /// With exactly these arguments, where exactly this code would run.
    Exactly {
        /// The hash of the arguments.
        arguments: String,
        /// The hashes of the code.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        code: BTreeSet<String>,
        /// The arguments for people, or their beginning.
        text: String,
    },
    /// Of any file below this folder of the volume; empty: of the whole volume.
    Files {
        /// The folder.
        below: String,
    },
    /// Of any address at this site.
    Site {
        /// Where.
        site: Site,
        /// The addresses outside of the public internet that it may mean.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ips: Vec<IpAddr>,
    },
    /// Of any arguments.
    All,
}

/// How rules are kept. Older versions knew only `pattern`.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided: Option<Value>,
    word: Word,
    #[serde(default)]
    within: Option<DocId>,
    #[serde(default)]
    origin: String,
}

impl From<Stored> for Rule {
    fn from(stored: Stored) -> Rule {
        let Stored { pattern, decided, word, within, origin } = stored;
        let about = match (decided, pattern) {
            (Some(decided), _) => serde_json::from_value(decided).map_or(About::Unknown, About::Decided),
            // Older versions made a pattern of what stood in the call.
            (None, Some(text)) if origin == DECIDED => match text.split_once(':') {
                Some((tool, text)) => About::Old { tool: tool.trim().to_owned(), text: Some(text.trim().to_owned()) },
                None => About::Old { tool: text.trim().to_owned(), text: None },
            },
            (None, Some(text)) => About::Pattern(Pattern::read(&text)),
            (None, None) => About::Unknown,
        };
        Rule { about, word, within, origin }
    }
}

impl From<Rule> for Stored {
    fn from(rule: Rule) -> Stored {
        let Rule { about, word, within, origin } = rule;
        let (pattern, decided) = match about {
            About::Pattern(pattern) => (Some(pattern.text()), None),
            About::Decided(decided) => (None, serde_json::to_value(decided).ok()),
            About::Old { tool, text } => (Some(text.map_or(tool.clone(), |text| format!("{tool}: {text}"))), None),
            About::Unknown => (None, None),
        };
        Stored { pattern, decided, word, within, origin }
    }
}

impl Rule {
    /// A rule of a pattern that the user typed.
    pub fn typed(pattern: &str, word: Word, within: Option<DocId>, origin: &str) -> Rule {
        Rule { about: About::Pattern(Pattern::read(pattern)), word, within, origin: origin.to_owned() }
    }

    /// Whether it speaks of this call. What allows must fit exactly; what asks or denies fits whatever may be meant.
    pub fn speaks_of(&self, call: Call<'_>) -> bool {
        let allows = self.word == Word::Allow;
        match &self.about {
            About::Pattern(pattern) if allows => pattern.allows(call),
            About::Pattern(pattern) => pattern.touches(call),
            About::Decided(decided) => decided.speaks_of(call, allows),
            About::Old { tool, text } if allows => allowed_before(tool, text.as_deref(), call),
            About::Old { tool, text } => {
                *tool == call.tool.name
                    && text.as_ref().is_none_or(|text| subjects(call.arguments).any(|(_, own)| fits(text, own)))
            }
            About::Unknown => false,
        }
    }

    /// Whether it was made for this tool as it was before: it does not count any more.
    pub fn is_outdated(&self, tool: &ToolSpec) -> bool {
        match &self.about {
            About::Decided(decided) => decided.tool == tool.name && decided.definition != tool.definition(),
            About::Old { tool: name, .. } => *name == tool.name && tool.source != Source::BuiltIn,
            About::Pattern(_) | About::Unknown => false,
        }
    }

    /// What it speaks of, in words for the user.
    pub fn words(&self) -> String {
        match &self.about {
            About::Pattern(pattern) => pattern.text(),
            About::Decided(decided) => decided.words(),
            About::Old { tool, text: None } => tool.clone(),
            About::Old { tool, text: Some(text) } => format!("{tool}: exactly {text}"),
            About::Unknown => "something that this version cannot read".to_owned(),
        }
    }
}

impl Decided {
    /// What a decision about a call reaches, where the user lets it reach further than this call.
    pub fn of(call: Call<'_>) -> Decided {
        let Call { tool, arguments, facts } = call;
        let fixed = tool.permissions.process || tool.permissions.network || tool.risk >= Risk::High;
        let fixed = fixed || tool.source != Source::BuiltIn || !facts.code.is_empty();
        let path = arguments.get("path").and_then(Value::as_str);
        let calls = match call.address() {
            // An address that cannot be read is denied anyway.
            Some(Ok(address)) if tool.source == Source::BuiltIn && arguments.len() == 1 => {
                Calls::Site { site: address.site, ips: call.inside() }
            }
            _ if fixed => Calls::Exactly {
                arguments: digest(arguments),
                code: facts.code_hashes(),
                text: beginning(&readable(arguments)),
            },
            _ if tool.permissions.fs && path.is_some() => Calls::Files { below: String::new() },
            _ => Calls::All,
        };
        Decided { tool: tool.name.clone(), definition: tool.definition(), calls }
    }

    fn speaks_of(&self, call: Call<'_>, allows: bool) -> bool {
        // A decision about what a tool was says nothing of what it has become; a denial stays one.
        if self.tool != call.tool.name || (allows && self.definition != call.tool.definition()) {
            return false;
        }
        match &self.calls {
            Calls::Exactly { arguments, code, .. } => {
                *arguments == digest(call.arguments) && (!allows || call.facts.code_hashes() == *code)
            }
            Calls::Files { below } => {
                let path = call.arguments.get("path").and_then(Value::as_str).and_then(confined);
                path.is_some_and(|path| below.is_empty() || path == *below || path.starts_with(&format!("{below}/")))
            }
            Calls::Site { site, ips } => {
                let there = call.address().is_some_and(|address| address.is_ok_and(|address| address.site == *site));
                let known = call.inside().iter().all(|ip| ips.contains(ip));
                there && (!allows || (known && call.arguments.len() == 1))
            }
            Calls::All => true,
        }
    }

    /// What of a call is allowed for longer than once, for the question.
    pub fn reach(&self) -> String {
        match &self.calls {
            Calls::Exactly { code, .. } if code.is_empty() => "exactly this".to_owned(),
            Calls::Exactly { .. } => "exactly this, as long as the code is the same".to_owned(),
            Calls::Files { .. } => "any file of the project".to_owned(),
            Calls::Site { site, .. } => format!("any address at {}", site.words()),
            Calls::All => "any call of this tool".to_owned(),
        }
    }

    /// In words for the user.
    pub fn words(&self) -> String {
        let tool = &self.tool;
        match &self.calls {
            Calls::Exactly { text, code, .. } if code.is_empty() => format!("{tool}: exactly {text}"),
            Calls::Exactly { text, .. } => format!("{tool}: exactly {text}, with the code that was shown"),
            Calls::Files { below } if below.is_empty() => format!("{tool}: any file of the project"),
            Calls::Files { below } => format!("{tool}: any file below {below}"),
            Calls::Site { site, ips } if ips.is_empty() => format!("{tool}: any address at {}", site.words()),
            Calls::Site { site, ips } => {
                let ips: Vec<String> = ips.iter().map(|ip| crate::address::named(*ip)).collect();
                format!("{tool}: any address at {} ({})", site.words(), ips.join(", "))
            }
            Calls::All => format!("{tool}: any arguments"),
        }
    }
}

/// What an older version's decision still allows: what was literal then, of tools that cannot have changed.
fn allowed_before(tool: &str, text: Option<&str>, call: Call<'_>) -> bool {
    if tool != call.tool.name || call.tool.source != Source::BuiltIn {
        return false;
    }
    let argument = |key: &str| call.arguments.get(key).and_then(Value::as_str);
    match (tool, text) {
        ("shell", Some(text)) => argument("command") == Some(text),
        ("run_python" | "run_agent", Some(text)) => argument("code") == Some(text),
        (_, None) => {
            let permissions = &call.tool.permissions;
            let kept = !permissions.process && !permissions.network && call.facts.code.is_empty();
            kept && argument("path").is_none_or(|path| confined(path).is_some())
        }
        // It was bound to the path of a note and not to its code, or to a pattern of addresses.
        (_, Some(_)) => false,
    }
}

/// A pattern that the user typed: `TOOL` or `TOOL: ARGUMENT`, in which `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Which tools: by the name that models use, or by `SERVER/TOOL`.
    pub tool: String,
    /// Which main arguments; `None`: all.
    pub argument: Option<String>,
}

impl Pattern {
    /// Reads a pattern. Any text is one.
    pub fn read(text: &str) -> Pattern {
        match text.split_once(':') {
            Some((tool, argument)) => {
                Pattern { tool: tool.trim().to_owned(), argument: Some(argument.trim().to_owned()) }
            }
            None => Pattern { tool: text.trim().to_owned(), argument: None },
        }
    }

    /// As the user types it.
    pub fn text(&self) -> String {
        match &self.argument {
            Some(argument) => format!("{}: {argument}", self.tool),
            None => self.tool.clone(),
        }
    }

    fn names(&self, tool: &ToolSpec) -> bool {
        fits(&self.tool, &tool.name) || (tool.source != Source::BuiltIn && fits(&self.tool, &tool.title()))
    }

    /// Whether it surely means this call, in its parsed form and in whole.
    fn allows(&self, call: Call<'_>) -> bool {
        if !self.names(call.tool) {
            return false;
        }
        let inside = !call.inside().is_empty();
        let Some(argument) = self.argument.as_deref() else { return !inside };
        if argument == "*" {
            return !inside;
        }
        // A pattern speaks of one argument: where several could be meant, it is not known what it says of the others.
        let mut all = subjects(call.arguments);
        let (Some((key, own)), None) = (all.next(), all.next()) else { return false };
        match key {
            "command" => argv::fits(argument, own),
            "url" => Address::read(own).is_ok_and(|address| fits_address(argument, &address, inside)),
            "path" | "directory" => confined(own).is_some_and(|own| fits(argument.trim_start_matches("./"), &own)),
            // Code that goes on behind what is known is other code.
            "code" => argument == own,
            _ => fits(argument, own),
        }
    }

    /// Whether it may mean this call, as text or in its parsed form.
    fn touches(&self, call: Call<'_>) -> bool {
        if !self.names(call.tool) {
            return false;
        }
        let Some(argument) = self.argument.as_deref() else { return true };
        let parsed = |key: &str, own: &str| match key {
            "command" => argv::fits(argument, own),
            "url" => Address::read(own)
                .is_ok_and(|address| fits(argument, &address.text) || fits_address(argument, &address, false)),
            "path" | "directory" => confined(own).is_some_and(|own| fits(argument, &own)),
            _ => false,
        };
        argument == "*" || subjects(call.arguments).any(|(key, own)| fits(argument, own) || parsed(key, own))
    }
}

/// Whether an address fits a pattern: `https://HOST:PORT/PATH`, in which the scheme may be `*` or missing, the host may
/// be `*` or begin with `*.`, the port may be `*` and is the scheme's own where it is missing, and a `*` of the path
/// stands for anything. `inside`: it lies outside of the public internet, so the host has to stand there as the address
/// itself, or as `localhost`.
fn fits_address(pattern: &str, address: &Address, inside: bool) -> bool {
    if inside && address.ip.is_none() {
        return false;
    }
    let (scheme, rest) = pattern.split_once("://").unwrap_or(("*", pattern));
    if scheme != "*" && !scheme.eq_ignore_ascii_case(&address.site.scheme) {
        return false;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let bare = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
    let (host, port) = bare.map_or((authority, None), |at| (&authority[..at], Some(&authority[at + 1..])));
    let port = match port {
        None => matches!((address.site.scheme.as_str(), address.site.port), ("http", 80) | ("https", 443)),
        Some("*") => true,
        Some(port) => port.parse() == Ok(address.site.port),
    };
    let own = address.site.host.as_str();
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let host = match host.strip_prefix("*.") {
        _ if host == "*" => !inside,
        Some(base) => !inside && !base.contains('*') && own.ends_with(&format!(".{base}")) && !base.is_empty(),
        None => host == own || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_string() == own),
    };
    port && host && (path.is_empty() || fits(path, &address.path))
}

/// The arguments of a call that patterns speak of.
fn subjects(arguments: &Map<String, Value>) -> impl Iterator<Item = (&'static str, &str)> {
    SUBJECTS.iter().filter_map(|key| Some((*key, arguments.get(*key)?.as_str()?)))
}

/// The main argument of a call, in short: a command, a path, an address.
pub fn subject(arguments: &Map<String, Value>) -> &str {
    subjects(arguments).next().map_or("", |(_, own)| own)
}

/// A path inside of its volume in its plain form; `None`: it leads out, or nowhere.
pub fn confined(path: &str) -> Option<String> {
    if path.starts_with(['/', '\\', '~']) || path.contains([':', '\\', '\0']) {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
}

/// Whether `text` has the form of `pattern`, in which `*` stands for anything, also for nothing.
pub fn fits(pattern: &str, text: &str) -> bool {
    fits_parts(pattern.split('*'), text)
}

/// The same for a pattern that was cut where anything may stand.
pub(super) fn fits_parts<'a>(mut parts: impl Iterator<Item = &'a str>, text: &str) -> bool {
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
    rest.ends_with(last)
}

/// The hash of arguments: the same for the same values in whatever order.
pub fn digest(arguments: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_sorted(&Value::Object(arguments.clone()), &mut text);
    BlobHash::of(text.as_bytes()).to_string()
}

fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            text.push('{');
            for key in keys {
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write_sorted(&fields[key], text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_sorted(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

/// Arguments for people: the only one as it is, several as JSON.
fn readable(arguments: &Map<String, Value>) -> String {
    match (arguments.len(), arguments.values().next()) {
        (1, Some(Value::String(text))) => text.clone(),
        _ => Value::Object(arguments.clone()).to_string(),
    }
}

fn beginning(text: &str) -> String {
    let more = text.chars().count().saturating_sub(MAX_RULE_TEXT_CHARS);
    if more == 0 {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MAX_RULE_TEXT_CHARS).collect();
    format!("{kept}… ({more} more characters)")
}

#[cfg(test)]
mod tests;
