//! Applies the sandbox's rules for paths to jobs: which files tools may name, and which paths are closed to processes.

use crate::fs::confined_dir::normalize_path;
use ::sandbox::PathRules;
use agent::config::{SandboxLimits, SandboxPaths};
use agent::tool_job::ToolJob;
use anyhow::bail;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Checks that a job reads and changes no path that's closed, not even by symbolic links.
pub(super) fn check_job_paths(job: &ToolJob, paths: &SandboxPaths) -> anyhow::Result<()> {
    let (root, path, writes) = match job {
        ToolJob::Read { root, path, .. } | ToolJob::List { root, path } | ToolJob::Shell { root, path, .. } => {
            (root, path, false)
        }
        ToolJob::Replace { root, path, .. }
        | ToolJob::Amend { root, path, .. }
        | ToolJob::Remove { root, path }
        | ToolJob::Restore { root, path, .. } => (root, path, true),
        ToolJob::Search { .. }
        | ToolJob::Python { .. }
        | ToolJob::JavaScript { .. }
        | ToolJob::Limited { .. }
        | ToolJob::Git { .. }
        | ToolJob::GitProgram { .. }
        | ToolJob::Fetch { .. }
        | ToolJob::Mcp { .. } => return Ok(()),
    };
    check_path(root, path, paths, writes)
}

/// Checks that a path in the project's folder isn't closed to reading, or to changes if `writes` is set.
pub(super) fn check_path(root: &Path, path: &str, paths: &SandboxPaths, writes: bool) -> anyhow::Result<()> {
    let path = normalize_path(path)?;
    let (real_root, real) = (resolve_links(root), resolve_links(&root.join(&path)));
    let inner = real.strip_prefix(&real_root).unwrap_or(&real).to_string_lossy().into_owned();
    for name in [&path, &inner] {
        if let Some(why) = paths.refusal(name, writes) {
            bail!("{path} is closed: {why}");
        }
    }
    Ok(())
}

/// Returns a path without symbolic links; what doesn't exist yet is kept as it is.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    known.map_or_else(
        || path.to_owned(),
        |(above, real)| match path.strip_prefix(above) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path.to_owned(),
        },
    )
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

/// Returns a time limit in seconds, lowered to the limit of the sandbox.
pub(super) fn limited_seconds(seconds: u64, limits: &SandboxLimits) -> u64 {
    let most = limits.time_ms.map_or(u64::MAX, |limit| Duration::from_millis(limit).as_secs().max(1));
    seconds.min(most)
}
