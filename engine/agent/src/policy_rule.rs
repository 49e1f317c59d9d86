//! Rules of the policy: patterns that the user typed, and rules made from decisions. Literal text never becomes a
//! pattern: a rule from a decision is the call itself, plus the one field that the user chose to widen.

use crate::shell_words;
use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolRisk, ToolSource, ToolSpec};
use crate::web_address::{WebAddress, WebAddressError, WebOrigin, special_range_name};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use store::{BlobHash, CodePiece, DocId};

/// Origin of a rule made from a decision.
pub const DECISION_ORIGIN: &str = "decided by you";
/// Origin of a rule typed with a question.
pub const QUESTION_ORIGIN: &str = "allowed when it was asked";
/// Maximum length of a rule's displayed text.
const MAX_RULE_TEXT_CHARS: usize = 2_000;

/// Arguments that patterns are compared with, such as a command, a path or an address. The first present is the main
/// argument.
const PATTERN_ARGUMENTS: [&str; 8] = ["command", "path", "url", "directory", "query", "name", "code", "image"];

/// Effect of a rule, or the policy's decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// The call is allowed.
    Allow,
    /// The call needs the user's approval.
    Ask,
    /// The call is denied.
    Deny,
}

/// Facts about a call besides its arguments, looked up before the policy decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallFacts {
    /// Code that would run and isn't in the arguments.
    pub code: Vec<CodePiece>,
    /// IP addresses to which the host resolves, or that the call itself names.
    pub ips: Vec<IpAddr>,
}

impl CallFacts {
    /// Returns the hashes of the code that would run.
    pub fn code_hashes(&self) -> BTreeSet<String> {
        self.code.iter().map(|piece| BlobHash::of(piece.text.as_bytes()).to_string()).collect()
    }
}

/// A tool call with everything that the policy considers.
#[derive(Clone, Copy, Debug)]
pub struct CallContext<'a> {
    /// Specification of the called tool.
    pub tool: &'a ToolSpec,
    /// Arguments of the call.
    pub arguments: &'a Map<String, Value>,
    /// Further facts about the call.
    pub facts: &'a CallFacts,
}

impl CallContext<'_> {
    /// Returns the web address that the call would reach; `None` if it has no `url` or its tool has no network access.
    pub fn address(&self) -> Option<Result<WebAddress, WebAddressError>> {
        let url = self.arguments.get("url").and_then(Value::as_str)?;
        self.tool.permissions.network.then(|| WebAddress::read(url))
    }

    /// Returns the IP addresses outside the public internet that the call would reach.
    pub fn private_addresses(&self) -> Vec<IpAddr> {
        let mut all = self.facts.ips.clone();
        all.extend(self.address().and_then(Result::ok).and_then(|address| address.ip));
        all.retain(|ip| special_range_name(*ip).is_some());
        all.sort();
        all.dedup();
        all
    }
}

/// A rule that allows, asks about or denies some calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub struct PolicyRule {
    /// The calls that the rule covers.
    pub about: RuleSubject,
    /// Whether the rule allows, asks about or denies them.
    pub word: Permission,
    /// The volume or run that the rule is limited to; `None` for everywhere.
    pub within: Option<DocId>,
    /// Where the rule comes from, as text.
    pub origin: String,
}

/// The calls that a rule covers.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleSubject {
    /// A pattern that the user typed.
    Pattern(CallPattern),
    /// Calls covered by a decision.
    Decided(DecidedCalls),
    /// An earlier decision in the format of older versions: tool and main argument as literal text.
    Old {
        /// Name of the tool.
        tool: String,
        /// The main argument; `None` for any.
        text: Option<String>,
    },
    /// A damaged rule, or one from a newer version. It matches no call and is kept unchanged.
    Unreadable(Value),
}

/// Calls covered by a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecidedCalls {
    /// Name of the tool.
    pub tool: String,
    /// Hash of the tool's definition if it can change, as for user-defined tools and those of MCP servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Which calls of the tool are covered.
    pub calls: CallScope,
}

/// Scope of a decision among the calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum CallScope {
    /// Calls with exactly these arguments that would run exactly this code.
    Exactly {
        /// Hash of the arguments.
        arguments: String,
        /// Hashes of the code.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        code: BTreeSet<String>,
        /// The arguments as shown to the user, possibly cut off.
        text: String,
    },
    /// Calls on any file below this folder; an empty path means the whole volume.
    Files {
        /// Path of the folder in the volume.
        below: String,
    },
    /// Calls to any address on this site.
    Site {
        /// Scheme, host and port of the site.
        site: WebOrigin,
        /// IP addresses outside the public internet that it may resolve to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ips: Vec<IpAddr>,
    },
    /// Calls with any arguments.
    All {},
}

/// Storage format of rules. Older versions knew only `pattern`. Unknown fields are an error, because they may limit a
/// rule.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided: Option<DecidedCalls>,
    word: Permission,
    #[serde(default)]
    within: Option<DocId>,
    #[serde(default)]
    origin: String,
}

impl From<Value> for PolicyRule {
    fn from(kept: Value) -> PolicyRule {
        let Ok(Stored { pattern, decided, word, within, origin }) = Stored::deserialize(&kept) else {
            return PolicyRule::unreadable(kept);
        };
        let about = match (decided, pattern) {
            (Some(decided), None) => RuleSubject::Decided(decided),
            // Older versions stored a decision as a pattern made from the call.
            (None, Some(text)) if origin == DECISION_ORIGIN => match text.split_once(':') {
                Some((tool, text)) => {
                    RuleSubject::Old { tool: tool.trim().to_owned(), text: Some(text.trim().to_owned()) }
                }
                None => RuleSubject::Old { tool: text.trim().to_owned(), text: None },
            },
            (None, Some(text)) => RuleSubject::Pattern(CallPattern::parse(&text)),
            (None, None) | (Some(_), Some(_)) => return PolicyRule::unreadable(kept),
        };
        PolicyRule { about, word, within, origin }
    }
}

impl From<PolicyRule> for Value {
    fn from(rule: PolicyRule) -> Value {
        let PolicyRule { about, word, within, origin } = rule;
        let (pattern, decided) = match about {
            RuleSubject::Pattern(pattern) => (Some(pattern.text()), None),
            RuleSubject::Decided(decided) => (None, Some(decided)),
            RuleSubject::Old { tool, text } => {
                (Some(text.map_or(tool.clone(), |text| format!("{tool}: {text}"))), None)
            }
            RuleSubject::Unreadable(kept) => return kept,
        };
        serde_json::to_value(Stored { pattern, decided, word, within, origin }).unwrap_or_default()
    }
}

impl PolicyRule {
    fn unreadable(kept: Value) -> PolicyRule {
        let about = RuleSubject::Unreadable(kept);
        PolicyRule { about, word: Permission::Ask, within: None, origin: String::new() }
    }

    /// Returns whether this version can read the rule. Unreadable rules have no effect.
    pub fn is_readable(&self) -> bool {
        !matches!(self.about, RuleSubject::Unreadable(_))
    }

    /// Creates a rule from a pattern that the user typed.
    pub fn from_pattern(pattern: &str, word: Permission, within: Option<DocId>, origin: &str) -> PolicyRule {
        PolicyRule { about: RuleSubject::Pattern(CallPattern::parse(pattern)), word, within, origin: origin.to_owned() }
    }

    /// Returns whether the rule covers this call. A rule that allows must match exactly; one that asks or denies covers
    /// everything that it may refer to.
    pub fn matches_call(&self, call: CallContext<'_>) -> bool {
        let allows = self.word == Permission::Allow;
        match &self.about {
            RuleSubject::Pattern(pattern) if allows => pattern.matches_exactly(call),
            RuleSubject::Pattern(pattern) => pattern.may_match(call),
            RuleSubject::Decided(decided) => decided.matches_call(call, allows),
            RuleSubject::Old { tool, text } if allows => is_allowed_by_legacy_rule(tool, text.as_deref(), call),
            RuleSubject::Old { tool, text } => {
                *tool == call.tool.name
                    && text.as_ref().is_none_or(|text| {
                        pattern_arguments(call.arguments).any(|(_, own)| matches_wildcard(text, own))
                    })
            }
            RuleSubject::Unreadable(_) => false,
        }
    }

    /// Returns whether the rule denies or asks about some calls of a tool by a pattern for their argument.
    pub fn forbids_some_calls(&self, tool: &ToolSpec) -> bool {
        let RuleSubject::Pattern(pattern) = &self.about else { return false };
        let is_some = pattern.argument.as_deref().is_some_and(|argument| argument != "*");
        self.word != Permission::Allow && is_some && pattern.matches_tool(tool)
    }

    /// Returns whether the rule's pattern may match a shell command once the shell has made up its words.
    pub fn may_become_covered(&self, command: &str) -> bool {
        let RuleSubject::Pattern(pattern) = &self.about else { return false };
        pattern.argument.as_deref().is_some_and(|argument| shell_words::may_become_command(argument, command))
    }

    /// Returns whether the rule was made for an earlier definition of this tool, so that it no longer applies.
    pub fn is_outdated(&self, tool: &ToolSpec) -> bool {
        match &self.about {
            RuleSubject::Decided(decided) => decided.tool == tool.name && decided.definition != tool.definition_hash(),
            RuleSubject::Old { tool: name, .. } => *name == tool.name && tool.source != ToolSource::BuiltIn,
            RuleSubject::Pattern(_) | RuleSubject::Unreadable(_) => false,
        }
    }

    /// Describes the covered calls for the user.
    pub fn describe(&self) -> String {
        match &self.about {
            RuleSubject::Pattern(pattern) => pattern.text(),
            RuleSubject::Decided(decided) => decided.describe(),
            RuleSubject::Old { tool, text: None } => tool.clone(),
            RuleSubject::Old { tool, text: Some(text) } => format!("{tool}: exactly {text}"),
            RuleSubject::Unreadable(kept) => {
                format!("this version can't read it, so it doesn't count: {}", truncate_text(&kept.to_string()))
            }
        }
    }
}

impl DecidedCalls {
    /// Returns the calls that a lasting decision about this call would cover.
    pub fn from_call(call: CallContext<'_>) -> DecidedCalls {
        let CallContext { tool, arguments, facts } = call;
        let fixed = tool.permissions.process || tool.permissions.network || tool.risk >= ToolRisk::High;
        let fixed = fixed || tool.source != ToolSource::BuiltIn || !facts.code.is_empty();
        let path = arguments.get("path").and_then(Value::as_str);
        // A tool that takes no address isn't widened by an argument with that name.
        let takes_address = tool.source == ToolSource::BuiltIn && tool.parameters["properties"]["url"].is_object();
        let calls = match call.address() {
            // An invalid address is denied before any rule applies.
            Some(Ok(address)) if takes_address && arguments.len() == 1 => {
                CallScope::Site { site: address.site, ips: call.private_addresses() }
            }
            _ if fixed => CallScope::Exactly {
                arguments: hash_arguments(arguments),
                code: facts.code_hashes(),
                text: truncate_text(&arguments_text(arguments)),
            },
            _ if tool.permissions.fs && path.is_some() => CallScope::Files { below: String::new() },
            _ => CallScope::All {},
        };
        DecidedCalls { tool: tool.name.clone(), definition: tool.definition_hash(), calls }
    }

    fn matches_call(&self, call: CallContext<'_>, allows: bool) -> bool {
        // An approval doesn't cover a changed tool; a denial does.
        if self.tool != call.tool.name || (allows && self.definition != call.tool.definition_hash()) {
            return false;
        }
        match &self.calls {
            CallScope::Exactly { arguments, code, .. } => {
                *arguments == hash_arguments(call.arguments) && (!allows || call.facts.code_hashes() == *code)
            }
            CallScope::Files { below } => {
                let path = call.arguments.get("path").and_then(Value::as_str).and_then(normalize_inside_volume);
                path.is_some_and(|path| below.is_empty() || path == *below || path.starts_with(&format!("{below}/")))
            }
            CallScope::Site { site, ips } => {
                let there = call.address().is_some_and(|address| address.is_ok_and(|address| address.site == *site));
                let known = call.private_addresses().iter().all(|ip| ips.contains(ip));
                there && (!allows || (known && call.arguments.len() == 1))
            }
            CallScope::All {} => true,
        }
    }

    /// Describes what a lasting decision would allow, for the approval request.
    pub fn describe_reach(&self) -> String {
        match &self.calls {
            CallScope::Exactly { code, .. } if code.is_empty() => "exactly this".to_owned(),
            CallScope::Exactly { .. } => "exactly this, as long as the code is the same".to_owned(),
            CallScope::Files { .. } => "any file of the project".to_owned(),
            CallScope::Site { site, .. } => format!("any address at {}", site.display_text()),
            CallScope::All {} => "any call of this tool".to_owned(),
        }
    }

    /// Describes the calls for the user.
    pub fn describe(&self) -> String {
        let tool = &self.tool;
        match &self.calls {
            CallScope::Exactly { text, code, .. } if code.is_empty() => format!("{tool}: exactly {text}"),
            CallScope::Exactly { text, .. } => format!("{tool}: exactly {text}, with the code that was shown"),
            CallScope::Files { below } if below.is_empty() => format!("{tool}: any file of the project"),
            CallScope::Files { below } => format!("{tool}: any file below {below}"),
            CallScope::Site { site, ips } if ips.is_empty() => {
                format!("{tool}: any address at {}", site.display_text())
            }
            CallScope::Site { site, ips } => {
                let ips: Vec<String> = ips.iter().map(|ip| crate::web_address::describe_ip(*ip)).collect();
                format!("{tool}: any address at {} ({})", site.display_text(), ips.join(", "))
            }
            CallScope::All {} => format!("{tool}: any arguments"),
        }
    }
}

/// Returns whether a decision of an older version still allows a call. It counts only for built-in tools, which can't
/// have changed, and only where its text was literal.
fn is_allowed_by_legacy_rule(tool: &str, text: Option<&str>, call: CallContext<'_>) -> bool {
    if tool != call.tool.name || call.tool.source != ToolSource::BuiltIn {
        return false;
    }
    let argument = |key: &str| call.arguments.get(key).and_then(Value::as_str);
    match (BuiltInTool::from_name(tool), text) {
        (Some(BuiltInTool::Shell), Some(text)) => argument("command") == Some(text),
        (Some(BuiltInTool::RunPython | BuiltInTool::RunAgent), Some(text)) => argument("code") == Some(text),
        (_, None) => {
            let permissions = &call.tool.permissions;
            let kept = !permissions.process && !permissions.network && call.facts.code.is_empty();
            kept && argument("path").is_none_or(|path| normalize_inside_volume(path).is_some())
        }
        // Such a rule was bound to the path of a note and not to its code, or to a pattern of addresses.
        (_, Some(_)) => false,
    }
}

/// A pattern typed by the user: `TOOL` or `TOOL: ARGUMENT`, in which `*` matches anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPattern {
    /// Pattern for the tool's name, as models use it or as `SERVER/TOOL`.
    pub tool: String,
    /// Pattern for the main argument; `None` matches any.
    pub argument: Option<String>,
}

impl CallPattern {
    /// Parses a pattern. Any text is valid.
    pub fn parse(text: &str) -> CallPattern {
        match text.split_once(':') {
            Some((tool, argument)) => {
                CallPattern { tool: tool.trim().to_owned(), argument: Some(argument.trim().to_owned()) }
            }
            None => CallPattern { tool: text.trim().to_owned(), argument: None },
        }
    }

    /// Returns the pattern as the user types it.
    pub fn text(&self) -> String {
        match &self.argument {
            Some(argument) => format!("{}: {argument}", self.tool),
            None => self.tool.clone(),
        }
    }

    fn matches_tool(&self, tool: &ToolSpec) -> bool {
        matches_wildcard(&self.tool, &tool.name)
            || (tool.source != ToolSource::BuiltIn && matches_wildcard(&self.tool, &tool.title()))
    }

    /// Returns whether the pattern matches this call with certainty: the whole argument, in its parsed form.
    fn matches_exactly(&self, call: CallContext<'_>) -> bool {
        if !self.matches_tool(call.tool) {
            return false;
        }
        let inside = !call.private_addresses().is_empty();
        let Some(argument) = self.argument.as_deref() else { return !inside };
        if argument == "*" {
            return !inside;
        }
        // A pattern covers one argument. If there are several, it doesn't cover the others, so nothing is certain.
        let mut all = pattern_arguments(call.arguments);
        let (Some((key, own)), None) = (all.next(), all.next()) else { return false };
        match key {
            // In another folder, the same command may do something else.
            "command" => !names_folder(call.arguments) && shell_words::matches_command(argument, own),
            "url" => WebAddress::read(own).is_ok_and(|address| matches_address(argument, &address, inside)),
            "path" | "directory" => normalize_inside_volume(own)
                .is_some_and(|own| matches_wildcard(argument.trim_start_matches("./"), &own)),
            // Code that merely starts with the approved text is different code.
            "code" => argument == own,
            _ => matches_wildcard(argument, own),
        }
    }

    /// Returns whether the pattern may refer to this call, as text or in its parsed form.
    fn may_match(&self, call: CallContext<'_>) -> bool {
        if !self.matches_tool(call.tool) {
            return false;
        }
        let Some(argument) = self.argument.as_deref() else { return true };
        let parsed = |key: &str, own: &str| match key {
            "command" => shell_words::matches_command(argument, own) || shell_words::may_contain_command(argument, own),
            "url" => WebAddress::read(own).is_ok_and(|address| {
                matches_wildcard(argument, &address.text) || matches_address(argument, &address, false)
            }),
            "path" | "directory" => normalize_inside_volume(own).is_some_and(|own| matches_wildcard(argument, &own)),
            _ => false,
        };
        argument == "*"
            || pattern_arguments(call.arguments).any(|(key, own)| matches_wildcard(argument, own) || parsed(key, own))
    }
}

/// Returns whether an address matches a pattern: `https://HOST:PORT/PATH`. The scheme may be `*` or missing. The host
/// may be `*` or start with `*.`. The port may be `*` and defaults to the scheme's. `*` in the path matches anything.
/// With `inside`, the address is outside the public internet, so the host must be written as that address or as
/// `localhost`.
fn matches_address(pattern: &str, address: &WebAddress, inside: bool) -> bool {
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
    port && host && (path.is_empty() || matches_wildcard(path, &address.path))
}

/// Returns whether a command is to run in another folder than the project's.
fn names_folder(arguments: &Map<String, Value>) -> bool {
    let folder = arguments.get("workdir").and_then(Value::as_str).unwrap_or_default();
    folder.split('/').any(|part| !matches!(part.trim(), "" | "."))
}

/// Returns the arguments of a call that patterns are compared with.
fn pattern_arguments(arguments: &Map<String, Value>) -> impl Iterator<Item = (&'static str, &str)> {
    PATTERN_ARGUMENTS.iter().filter_map(|key| Some((*key, arguments.get(*key)?.as_str()?)))
}

/// Returns the main argument of a call, such as its command, path or address; empty if there's none.
pub fn main_argument(arguments: &Map<String, Value>) -> &str {
    pattern_arguments(arguments).next().map_or("", |(_, own)| own)
}

/// Normalizes a path inside its volume. Returns `None` if the path is empty or leads out of the volume.
pub fn normalize_inside_volume(path: &str) -> Option<String> {
    if path.starts_with(['/', '\\', '~']) || path.contains([':', '\\', '\0']) {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
}

/// Returns whether `text` matches `pattern`, in which `*` matches any text, even an empty one.
pub fn matches_wildcard(pattern: &str, text: &str) -> bool {
    matches_wildcard_parts(pattern.split('*'), text)
}

/// Matches a pattern that was split at its wildcards.
pub(super) fn matches_wildcard_parts<'a>(mut parts: impl Iterator<Item = &'a str>, text: &str) -> bool {
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

/// Hashes arguments independently of the order of their keys.
pub fn hash_arguments(arguments: &Map<String, Value>) -> String {
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

/// Formats arguments for the user: a single one as is, several as JSON.
fn arguments_text(arguments: &Map<String, Value>) -> String {
    match (arguments.len(), arguments.values().next()) {
        (1, Some(Value::String(text))) => text.clone(),
        _ => Value::Object(arguments.clone()).to_string(),
    }
}

fn truncate_text(text: &str) -> String {
    let more = text.chars().count().saturating_sub(MAX_RULE_TEXT_CHARS);
    if more == 0 {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MAX_RULE_TEXT_CHARS).collect();
    format!("{kept}… ({more} more characters)")
}

#[cfg(test)]
mod tests;
