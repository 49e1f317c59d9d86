//! The policy: one place decides whether a tool call is allowed, needs the user's approval, or is denied. It considers
//! the tool, its arguments, its risk, paths, hosts and the user's earlier decisions. A rule that denies wins over one
//! that allows. Nothing that a model or a note says changes the rules.

use crate::approval_names;
use crate::config::AgentConfig;
use crate::external_program;
use crate::policy_rule::{CallContext, DECISION_ORIGIN, DecidedCalls, QUESTION_ORIGIN, normalize_inside_volume};
use crate::prompt_quote;
use crate::shell_words;
use crate::task_block::ANY_DEVICE;
use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolRisk, ToolSource, ToolSpec};
use crate::web_address::{describe_ip, is_listed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{DecisionScope, DocId};

pub use crate::policy_rule::{CallFacts, CallPattern, Permission, PolicyRule, RuleSubject, main_argument};

/// All rules, and the defaults for calls that no rule covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPolicy {
    /// The rules. A denial wins; otherwise the last matching rule does.
    pub rules: Vec<PolicyRule>,
    /// Calls below this risk are allowed without asking.
    pub auto_approve: ToolRisk,
    /// Seconds until an approval counts as denied.
    pub timeout: u64,
    /// Hosts that may be reached without asking; a leading `.` includes all subdomains.
    pub hosts: Vec<String>,
    /// Whether all other hosts are denied.
    pub restricted: bool,
    /// Why calls that run programs always need approval, such as that they can't be sandboxed; `None` if they don't.
    pub unconfined: Option<String>,
}

impl Default for ToolPolicy {
    fn default() -> Self {
        ToolPolicy {
            rules: Vec::new(),
            auto_approve: ToolRisk::Medium,
            timeout: 300,
            hosts: Vec::new(),
            restricted: false,
            unconfined: None,
        }
    }
}

/// Returns the entry of two lists of hosts that covers what both cover.
fn narrower_host(one: &str, other: &str) -> Option<String> {
    let covers = |wide: &str, narrow: &str| match narrow.starts_with('.') {
        true => wide.starts_with('.') && narrow.ends_with(wide),
        false => is_listed(narrow, &[wide.to_owned()]),
    };
    if covers(one, other) { Some(other.to_owned()) } else { covers(other, one).then(|| one.to_owned()) }
}

/// The policy's decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision {
    /// Whether the call is allowed, asked about or denied.
    pub word: Permission,
    /// The reason, as a sentence for the user.
    pub why: String,
}

impl ToolPolicy {
    /// Creates the policy from a configuration.
    pub fn from_config(config: &AgentConfig) -> ToolPolicy {
        let origin = "from the configuration";
        let rules_of = |patterns: &[String], word: Permission| -> Vec<PolicyRule> {
            let meant = patterns.iter().flat_map(|pattern| approval_names::meant_patterns(pattern, word));
            meant.map(|pattern| PolicyRule::from_pattern(&pattern, word, None, origin)).collect()
        };
        // If two rules match, the later one wins, and one that denies wins over all.
        let mut rules = rules_of(&config.approval.never_approve, Permission::Allow);
        rules.extend(rules_of(&config.approval.always_approve, Permission::Ask));
        rules.extend(rules_of(&config.approval.deny, Permission::Deny));
        ToolPolicy {
            rules,
            auto_approve: config.approval.auto_approve_level,
            timeout: config.approval.timeout_seconds,
            hosts: config.security.allowed_hosts.clone(),
            restricted: config.security.network_restricted,
            unconfined: (!config.security.sandbox_enabled)
                .then(|| "the configuration asks about each program (security.sandbox_enabled)".to_owned()),
        }
    }

    /// Decides whether a call is allowed, needs approval, or is denied. `volume` and `run` are where the call is made;
    /// `facts` were looked up for it.
    pub fn decide(
        &self,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
        facts: &CallFacts,
        volume: DocId,
        run: DocId,
    ) -> PolicyDecision {
        let verdict = |word, why: String| PolicyDecision { word, why };
        let folder = BuiltInTool::Shell.is_named(&tool.name).then(|| arguments.get("workdir")).flatten();
        let mut named = [arguments.get("path"), folder].into_iter().flatten().filter_map(Value::as_str);
        let path = named.find(|path| is_suspicious_path(path));
        if let Some(path) = path.filter(|_| tool.permissions.fs) {
            return verdict(Permission::Deny, format!("{path} is outside of what tools may reach"));
        }
        let call = CallContext { tool, arguments, facts };
        let spoken = self.rules_about(call, volume, run);
        if let Some(rule) = spoken.iter().find(|rule| rule.word == Permission::Deny) {
            return verdict(Permission::Deny, format!("{} denies it", rule_text(rule)));
        }
        if tool.source == ToolSource::BuiltIn
            && BuiltInTool::AgentPermission.is_named(&tool.name)
            && let Some(decision) = self.judge_named_files(arguments, volume, run)
        {
            return decision;
        }
        let address = match call.address() {
            Some(Err(why)) => return verdict(Permission::Deny, why.to_string()),
            Some(Ok(address)) => Some(address),
            None => None,
        };
        if let Some(address) = &address {
            let host = &address.site.host;
            if self.restricted && !is_listed(host, &self.hosts) {
                return verdict(Permission::Deny, format!("{host} is not on the list of hosts"));
            }
        }
        // The following calls need approval each time, even if a rule allows them.
        if tool.source == ToolSource::BuiltIn
            && let Some((word, why)) =
                crate::container_calls::judge_container_call(&tool.name, arguments, self.restricted, &self.hosts)
        {
            return verdict(word, why);
        }
        if let Some(why) = crate::protected_writes::always_ask_reason(tool, arguments) {
            return verdict(Permission::Ask, why);
        }
        let is_checkpoint = arguments.get("checkpoint").and_then(Value::as_bool) == Some(true);
        if is_checkpoint && BuiltInTool::AskAgent.is_named(&tool.name) {
            let place = match arguments.get("device").and_then(Value::as_str) {
                Some(ANY_DEVICE) => ", which runs on any worker".to_owned(),
                Some(device) => format!(", which runs on the device {}", prompt_quote::quote_inline(device, 80)),
                None => String::new(),
            };
            return verdict(Permission::Ask, format!("the plan has a checkpoint before this task{place}"));
        }
        let elsewhere = arguments.get("volume").and_then(Value::as_str);
        if let Some(volume) = elsewhere.filter(|_| tool.source == ToolSource::BuiltIn && tool.risk > ToolRisk::None) {
            return verdict(Permission::Ask, format!("it concerns {volume}, which isn't the project of this run"));
        }
        if let Some(why) = crate::secrets::secret_access_reason(arguments) {
            return verdict(Permission::Ask, why);
        }
        // A tool of the user's own is a program, whether or not it may start others.
        let is_program = tool.permissions.process || matches!(tool.source, ToolSource::User { .. });
        if let Some(why) = self.unconfined.as_ref().filter(|_| is_program) {
            return verdict(Permission::Ask, why.clone());
        }
        // A rule that asks means that the user wants to see each call, but a newer decision overrides it.
        if let Some(rule) = spoken.iter().rev().find(|rule| rule.word != Permission::Deny) {
            let is_decided = matches!(rule.about, RuleSubject::Decided(_));
            if rule.word == Permission::Allow
                && !is_decided
                && let Some(missed) = self.rule_that_may_miss(call, volume, run)
            {
                return verdict(Permission::Ask, missed_reason(missed));
            }
            return match rule.word {
                Permission::Allow => verdict(Permission::Allow, format!("{} allows it", rule_text(rule))),
                Permission::Ask | Permission::Deny => verdict(Permission::Ask, format!("{} asks", rule_text(rule))),
            };
        }
        let outdated = self.rules.iter().any(|rule| rule.word == Permission::Allow && rule.is_outdated(tool));
        let changed = if outdated { "; the tool has changed since you allowed it" } else { "" };
        // A user-defined tool may do more with an address than fetch it, so the list of hosts doesn't permit its calls.
        if let Some(address) = address.filter(|_| tool.source == ToolSource::BuiltIn) {
            let (site, host) = (address.site.display_text(), &address.site.host);
            // A listed host name doesn't permit access to the local network, even if it resolves to an address there.
            let inside: Vec<String> = call.private_addresses().into_iter().map(describe_ip).collect();
            let is_ip = address.ip.is_some_and(|ip| ip.to_string() == *host);
            return match is_listed(host, &self.hosts) && (is_ip || inside.is_empty()) {
                true => verdict(Permission::Allow, format!("{host} is on the list of hosts")),
                false if inside.is_empty() => verdict(Permission::Ask, format!("it would reach {site}{changed}")),
                false => {
                    // No rule of the user's covers a name that means an address there.
                    let rule = address.ip.map(|_| {
                        format!("; only a rule that names it, as in `{}: {site}/*`, allows that unasked", tool.name)
                    });
                    let (inside, rule) = (inside.join(", the "), rule.unwrap_or_default());
                    verdict(Permission::Ask, format!("it would reach {site}, the {inside}{changed}{rule}"))
                }
            };
        }
        if crate::tool_catalog::BuiltInTool::GitCommit.is_named(&tool.name)
            && arguments.get("push").and_then(Value::as_bool) == Some(true)
        {
            return verdict(Permission::Ask, "it sends the commit to the remote".to_owned());
        }
        let image = crate::container_calls::named_image(arguments);
        if let Some(image) = image.filter(|_| BuiltInTool::ContainerPull.is_named(&tool.name)) {
            return verdict(Permission::Ask, format!("it would reach {}", image.registry_text()));
        }
        if tool.permissions.network && tool.source == ToolSource::BuiltIn {
            let reach = if self.restricted { "hosts on the list" } else { "the remote of the repository" };
            return verdict(Permission::Ask, format!("it may reach {reach}"));
        }
        if tool.permissions.network {
            let reach = if self.restricted { "hosts on the list" } else { "any public host" };
            return verdict(Permission::Ask, format!("it may reach {reach}{changed}"));
        }
        if tool.risk < self.auto_approve {
            if let Some(missed) = self.rule_that_may_miss(call, volume, run) {
                return verdict(Permission::Ask, missed_reason(missed));
            }
            let why = if tool.risk == ToolRisk::None { "it only looks" } else { "it can be undone" };
            return verdict(Permission::Allow, why.to_owned());
        }
        verdict(Permission::Ask, format!("{}{changed}", risk_reason(tool.risk)))
    }

    /// Returns the rules that cover a call.
    fn rules_about(&self, call: CallContext<'_>, volume: DocId, run: DocId) -> Vec<&PolicyRule> {
        self.rules_within(volume, run).filter(|rule| rule.matches_call(call)).collect()
    }

    fn rules_within(&self, volume: DocId, run: DocId) -> impl Iterator<Item = &PolicyRule> {
        self.rules.iter().filter(move |rule| rule.within.is_none_or(|within| within == volume || within == run))
    }

    /// Returns a rule that denies or asks about some commands, and that this command may pass by unnoticed.
    fn rule_that_may_miss(&self, call: CallContext<'_>, volume: DocId, run: DocId) -> Option<&PolicyRule> {
        let command = call.arguments.get("command").and_then(Value::as_str)?;
        let is_computed = shell_words::has_computed_program(command);
        let forbids = |rule: &&PolicyRule| rule.forbids_some_calls(call.tool);
        let mut forbidding = self.rules_within(volume, run).filter(forbids);
        forbidding.find(|rule| is_computed || rule.may_become_covered(command))
    }

    /// Decides about the files that a program asks permission for, because it touches them itself: it's denied what a
    /// rule denies our own tools, and asked about what they are asked about, even if a rule allows `agent_permission`.
    /// Returns `None` if the files are no reason against it.
    fn judge_named_files(&self, arguments: &Map<String, Value>, volume: DocId, run: DocId) -> Option<PolicyDecision> {
        let kind = arguments.get("kind").and_then(Value::as_str).unwrap_or_default();
        let tools = external_program::tools_for_kind(kind);
        let named = arguments.get("paths").and_then(Value::as_array).into_iter().flatten();
        let facts = CallFacts::default();
        let mut asks = None;
        for path in named.filter_map(Value::as_str) {
            let arguments = Map::from_iter([("path".to_owned(), Value::from(path))]);
            for tool in &tools {
                let spoken = self.rules_about(CallContext { tool, arguments: &arguments, facts: &facts }, volume, run);
                if let Some(rule) = spoken.iter().find(|rule| rule.word == Permission::Deny) {
                    let why = format!("{} denies it", rule_text(rule));
                    return Some(PolicyDecision { word: Permission::Deny, why });
                }
                let last = spoken.last().filter(|rule| rule.word == Permission::Ask);
                asks = asks
                    .or_else(|| crate::protected_writes::always_ask_reason(tool, &arguments))
                    .or_else(|| last.map(|rule| format!("{} asks", rule_text(rule))));
            }
            if is_suspicious_path(path) {
                asks = asks.or_else(|| Some(format!("{path} is outside of what tools may reach")));
            } else if path == "." && matches!(kind, "edit" | "delete" | "move") {
                asks = asks.or_else(|| Some("it concerns the folder of the project itself".to_owned()));
            }
        }
        asks.map(|why| PolicyDecision { word: Permission::Ask, why })
    }

    /// Returns this policy of a run's owner as it holds on the device that carries the run out. That device may forbid
    /// more: what its own policy denies, the hosts that it doesn't list if it's restricted, and programs that it can't
    /// confine. What it allows for itself doesn't count. `runs`: the run, and those that it was delegated from; `own`
    /// has the rules from decisions about them.
    pub fn on_device(&self, own: &ToolPolicy, runs: &[DocId]) -> ToolPolicy {
        let mut rules = self.rules.clone();
        let counts = |rule: &&PolicyRule| {
            rule.word == Permission::Deny || rule.within.is_some_and(|within| runs.contains(&within))
        };
        rules.extend(own.rules.iter().filter(counts).cloned());
        let mut hosts = self.hosts.clone();
        if own.restricted {
            let both = hosts.iter().flat_map(|one| own.hosts.iter().filter_map(|other| narrower_host(one, other)));
            hosts = both.collect();
        }
        ToolPolicy {
            rules,
            auto_approve: self.auto_approve.min(own.auto_approve),
            timeout: self.timeout,
            hosts,
            restricted: self.restricted || own.restricted,
            unconfined: own.unconfined.clone().or_else(|| self.unconfined.clone()),
        }
    }

    /// Returns the rule for a decision of the user; `None` if it's for this call only. The rule is the call as it was
    /// shown, plus the one field that is widened. No part of it is a pattern.
    pub fn rule_from_decision(
        scope: DecisionScope,
        allowed: bool,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
        facts: &CallFacts,
        volume: DocId,
        run: DocId,
    ) -> Option<PolicyRule> {
        let within = match scope {
            DecisionScope::Once => return None,
            DecisionScope::Run => Some(run),
            DecisionScope::Project => Some(volume),
            DecisionScope::Always => None,
        };
        let word = if allowed { Permission::Allow } else { Permission::Deny };
        let about = RuleSubject::Decided(DecidedCalls::from_call(CallContext { tool, arguments, facts }));
        Some(PolicyRule { about, word, within, origin: DECISION_ORIGIN.to_owned() })
    }

    /// Describes the calls that a permanent decision would cover.
    pub fn describe_reach(tool: &ToolSpec, arguments: &Map<String, Value>, facts: &CallFacts) -> String {
        DecidedCalls::from_call(CallContext { tool, arguments, facts }).describe_reach()
    }

    /// Returns the allow rules that the user typed with a question, limited to its run.
    pub fn rules_for_question(patterns: &[String], run: DocId) -> Vec<PolicyRule> {
        patterns
            .iter()
            .map(|pattern| PolicyRule::from_pattern(pattern, Permission::Allow, Some(run), QUESTION_ORIGIN))
            .collect()
    }
}

/// Returns why calls of a tool need the user's decision each time, whatever the rules allow; `None` for other tools.
pub fn each_time_reason(tool: &str) -> Option<&'static str> {
    match BuiltInTool::from_name(tool)? {
        BuiltInTool::AskUser => Some("It has a question."),
        BuiltInTool::McpSampling => Some("each request of a server is decided once"),
        BuiltInTool::McpForm => Some("a server asks you something"),
        _ => None,
    }
}

/// Returns why a command is asked about that a rule may match once the shell has made it up.
fn missed_reason(rule: &PolicyRule) -> String {
    format!("the shell makes up words of the command as it runs, so it can't be compared with {}", rule_text(rule))
}

/// Names a rule in a sentence.
fn rule_text(rule: &PolicyRule) -> String {
    match rule.origin.as_str() {
        "" => format!("the rule \u{201c}{}\u{201d}", rule.describe()),
        origin => format!("the rule \u{201c}{}\u{201d} ({origin})", rule.describe()),
    }
}

/// Returns whether a path leads out of its volume, or into `.git` or `.ssh`.
fn is_suspicious_path(path: &str) -> bool {
    let whole = matches!(path.trim_start_matches("./"), "" | ".");
    (normalize_inside_volume(path).is_none() && !whole)
        || path.split(['/', '\\']).any(|part| part == ".git" || part == ".ssh")
}

/// Returns the reason to ask about a call for nothing but its tool's risk.
pub fn risk_reason(risk: ToolRisk) -> String {
    format!("it carries {} risk", risk_label(risk))
}

/// Returns the adjective for a risk, such as `high`.
pub fn risk_label(risk: ToolRisk) -> &'static str {
    match risk {
        ToolRisk::None => "no",
        ToolRisk::Low => "low",
        ToolRisk::Medium => "medium",
        ToolRisk::High => "high",
        ToolRisk::Critical => "critical",
    }
}

#[cfg(test)]
mod tests;
