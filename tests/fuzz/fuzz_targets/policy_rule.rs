//! Fuzz target: `targets::policy_rule`.

#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::policy_rule(bytes));
