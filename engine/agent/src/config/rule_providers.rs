//! The providers of a routing rule: one, several in order, or the cheapest.

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use std::fmt;

/// The word that stands for the cheapest provider.
const CHEAPEST: &str = "cheapest";
/// Maximum number of providers of a rule.
const MAX_RULE_PROVIDERS: usize = 100;

/// The providers that a rule names with `use`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleProviders {
    /// The first of these that can be asked; with `prefer_cheapest`, the cheapest of them.
    Named(Vec<String>),
    /// The cheapest of those that are asked without a rule: those on this machine with `prefer_local`, the default, and
    /// the fallback chain.
    Cheapest,
}

impl RuleProviders {
    /// Returns the named providers, in order.
    pub fn names(&self) -> &[String] {
        match self {
            RuleProviders::Named(names) => names,
            RuleProviders::Cheapest => &[],
        }
    }

    /// Returns whether the rule names this provider.
    pub fn is_named(&self, name: &str) -> bool {
        self.names().iter().any(|named| named == name)
    }
}

struct RuleProvidersVisitor;

impl<'de> Visitor<'de> for RuleProvidersVisitor {
    type Value = RuleProviders;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of a provider, a list of names, or {CHEAPEST}")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<RuleProviders, E> {
        Ok(if name == CHEAPEST { RuleProviders::Cheapest } else { RuleProviders::Named(vec![name.to_owned()]) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RuleProviders, A::Error> {
        let mut names: Vec<String> = Vec::new();
        while let Some(name) = items.next_element()? {
            if names.len() == MAX_RULE_PROVIDERS {
                return Err(de::Error::custom(format!("a rule names at most {MAX_RULE_PROVIDERS} providers")));
            }
            names.push(name);
        }
        if names.is_empty() {
            return Err(de::Error::custom("the list names no provider"));
        }
        Ok(RuleProviders::Named(names))
    }
}

impl<'de> Deserialize<'de> for RuleProviders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RuleProviders, D::Error> {
        deserializer.deserialize_any(RuleProvidersVisitor)
    }
}
