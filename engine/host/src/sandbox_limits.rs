//! Hands limits of the configuration to processes: arguments of kernels, and rules for absolute paths. Nothing is
//! enforced here; crate `sandbox` and the processes themselves do that.

use ::sandbox::PathRules;
use agent::config::{SandboxLimits, SandboxPaths};
use std::ffi::OsString;
use std::path::Path;

/// Processor time that Python may take to start, in seconds, which isn't counted.
const START_CPU_SECS: u64 = 3;

/// Returns the arguments of `tracebook kernel` that limit a process which works in this folder.
pub(crate) fn limit_arguments(limits: &SandboxLimits, root: &Path) -> Vec<OsString> {
    let numbers = [
        ("--memory-bytes", limits.memory_bytes),
        ("--file-bytes", limits.file_bytes),
        ("--cpu-seconds", limits.cpu_seconds.map(|most| most.saturating_add(START_CPU_SECS))),
    ];
    let stated = numbers.into_iter().filter_map(|(flag, limit)| Some([flag.into(), limit?.to_string().into()]));
    stated.flatten().chain(process_rules(root, &limits.paths).to_args()).collect()
}

/// Returns the rules for a process that works in the project's folder.
pub(crate) fn process_rules(root: &Path, paths: &SandboxPaths) -> PathRules {
    let below = |list: &[String]| list.iter().map(|path| root.join(path)).collect::<Vec<_>>();
    PathRules {
        hidden: below(&paths.hidden),
        read_only: below(&paths.read_only),
        writable: paths.writable.iter().map(|list| below(list)).collect(),
    }
}
