//! What may be done: one place decides allow, ask or deny, from the tool, its arguments, its risk, paths, hosts and
//! what the user has decided before. A rule that denies wins over one that allows; nothing that a model or a note
//! says changes the rules.

use crate::address::{is_listed, named};
use crate::config::Config;
use crate::rule::{ASKED, Call, DECIDED, Decided, confined};
use crate::tool::{Risk, Source, ToolSpec};
use serde_json::{Map, Value};
use store::{DocId, Scope};

pub use crate::rule::{About, Facts, Pattern, Rule, Word, subject};

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

impl Policy {
    /// The policy of a configuration.
    pub fn of(config: &Config) -> Policy {
        let origin = "from the configuration";
        let rule = |word| move |pattern: &String| Rule::typed(pattern, word, None, origin);
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

    /// Decides. `volume` and `run`: where the call is made; `facts`: what was looked up of it.
    pub fn decide(
        &self,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
        facts: &Facts,
        volume: DocId,
        run: DocId,
    ) -> Verdict {
        let verdict = |word, why: String| Verdict { word, why };
        let path = arguments.get("path").and_then(Value::as_str).filter(|path| suspicious(path));
        if let Some(path) = path.filter(|_| tool.permissions.fs) {
            return verdict(Word::Deny, format!("{path} is outside of what tools may reach"));
        }
        let call = Call { tool, arguments, facts };
        let here =
            |rule: &&Rule| rule.within.is_none_or(|within| within == volume || within == run) && rule.speaks_of(call);
        let spoken: Vec<&Rule> = self.rules.iter().filter(here).collect();
        let by = |rule: &Rule| match rule.origin.as_str() {
            "" => format!("the rule \u{201c}{}\u{201d}", rule.words()),
            origin => format!("the rule \u{201c}{}\u{201d} ({origin})", rule.words()),
        };
        if let Some(rule) = spoken.iter().find(|rule| rule.word == Word::Deny) {
            return verdict(Word::Deny, format!("{} denies it", by(rule)));
        }
        let address = match call.address() {
            Some(Err(why)) => return verdict(Word::Deny, why),
            Some(Ok(address)) => Some(address),
            None => None,
        };
        if let Some(address) = &address {
            let host = &address.site.host;
            if self.restricted && !is_listed(host, &self.hosts) {
                return verdict(Word::Deny, format!("{host} is not on the list of hosts"));
            }
        }
        // What has to be seen each time, whatever was allowed before, is asked about here.
        if let Some(why) = crate::guarded::always_asks(tool, arguments) {
            return verdict(Word::Ask, why);
        }
        if let Some(why) = crate::secrets::question(arguments) {
            return verdict(Word::Ask, why);
        }
        if let Some(why) = self.unconfined.as_ref().filter(|_| tool.permissions.process) {
            return verdict(Word::Ask, format!("programs cannot be confined here ({why}), so each one is asked about"));
        }
        // A rule that asks is there because the user wants to see it each time, but a decision of the user is newer.
        if let Some(rule) = spoken.iter().rev().find(|rule| rule.word != Word::Deny) {
            return match rule.word {
                Word::Allow => verdict(Word::Allow, format!("{} allows it", by(rule))),
                Word::Ask | Word::Deny => verdict(Word::Ask, format!("{} asks", by(rule))),
            };
        }
        let outdated = self.rules.iter().any(|rule| rule.word == Word::Allow && rule.is_outdated(tool));
        let changed = if outdated { "; the tool has changed since you allowed it" } else { "" };
        // A tool of the user's own may do more with an address than fetch it: no list is a leave for that.
        if let Some(address) = address.filter(|_| tool.source == Source::BuiltIn) {
            let (site, host) = (address.site.words(), &address.site.host);
            // A name on the list is no leave for the user's own network, which it may come to mean.
            let inside: Vec<String> = call.inside().into_iter().map(named).collect();
            let is_ip = address.ip.is_some_and(|ip| ip.to_string() == *host);
            return match is_listed(host, &self.hosts) && (is_ip || inside.is_empty()) {
                true => verdict(Word::Allow, format!("{host} is on the list of hosts")),
                false if inside.is_empty() => verdict(Word::Ask, format!("it would reach {site}{changed}")),
                false => verdict(Word::Ask, format!("it would reach {site}, the {}{changed}", inside.join(", the "))),
            };
        }
        if tool.permissions.network {
            let reach = if self.restricted { "hosts on the list" } else { "any public host" };
            return verdict(Word::Ask, format!("it may reach {reach}{changed}"));
        }
        if tool.risk < self.auto_approve {
            let why = if tool.risk == Risk::None { "it only looks" } else { "it can be undone" };
            return verdict(Word::Allow, why.to_owned());
        }
        verdict(Word::Ask, format!("it carries {} risk{changed}", word(tool.risk)))
    }

    /// The rule that a decision of the user makes, if it reaches further than this call: the call as it was shown, and
    /// the field that is widened. Nothing of it is a pattern.
    pub fn learned(
        scope: Scope,
        allowed: bool,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
        facts: &Facts,
        volume: DocId,
        run: DocId,
    ) -> Option<Rule> {
        let within = match scope {
            Scope::Once => return None,
            Scope::Run => Some(run),
            Scope::Project => Some(volume),
            Scope::Always => None,
        };
        let word = if allowed { Word::Allow } else { Word::Deny };
        let about = About::Decided(Decided::of(Call { tool, arguments, facts }));
        Some(Rule { about, word, within, origin: DECIDED.to_owned() })
    }

    /// What a decision for longer than once would reach, in words.
    pub fn reach(tool: &ToolSpec, arguments: &Map<String, Value>, facts: &Facts) -> String {
        Decided::of(Call { tool, arguments, facts }).reach()
    }

    /// The rules that were typed beside a question, for the run that it began.
    pub fn asked(patterns: &[String], run: DocId) -> Vec<Rule> {
        patterns.iter().map(|pattern| Rule::typed(pattern, Word::Allow, Some(run), ASKED)).collect()
    }
}

/// A path that leaves its volume, or is hidden in it.
fn suspicious(path: &str) -> bool {
    let whole = matches!(path.trim_start_matches("./"), "" | ".");
    (confined(path).is_none() && !whole) || path.split(['/', '\\']).any(|part| part == ".git" || part == ".ssh")
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
mod tests;
