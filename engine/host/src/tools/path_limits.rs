//! Applies the limits of the sandbox to jobs: which paths tools may name, and how long they may take.

use crate::fs::confined_dir::normalize_path;
use agent::config::{SandboxLimits, SandboxPaths};
use agent::tool_job::{GitJob, GitProgramJob, ToolJob};
use anyhow::bail;
use std::path::Path;
use std::time::Duration;

/// Checks that a job reads and changes no path that's closed, not even by symbolic links.
pub(super) fn check_job_paths(job: &ToolJob, paths: &SandboxPaths) -> anyhow::Result<()> {
    let (root, path, writes) = match job {
        ToolJob::Read { root, path, .. }
        | ToolJob::List { root, path }
        | ToolJob::Shell { root, path, .. }
        | ToolJob::Git { root, what: GitJob::Blame { path } | GitJob::Diff { path: Some(path), .. } } => {
            (root, path, false)
        }
        ToolJob::Replace { root, path, .. }
        | ToolJob::Amend { root, path, .. }
        | ToolJob::Remove { root, path }
        | ToolJob::Restore { root, path, .. }
        | ToolJob::GitProgram { root, what: GitProgramJob::Clone { directory: path, .. }, .. } => (root, path, true),
        ToolJob::GitProgram { what, .. } if what.changes_any_file() && !paths.is_empty() => {
            bail!("Git may change any file here, and `sandbox` in config.yaml closes some; the user has to do this")
        }
        ToolJob::ProgramReport { .. }
        | ToolJob::MemoryLog { .. }
        | ToolJob::Search { .. }
        | ToolJob::Python { .. }
        | ToolJob::JavaScript { .. }
        | ToolJob::Limited { .. }
        | ToolJob::Git { .. }
        | ToolJob::GitProgram { .. }
        | ToolJob::Fetch { .. }
        | ToolJob::Browser { .. }
        | ToolJob::Container { .. }
        | ToolJob::Mcp { .. } => return Ok(()),
    };
    check_path(root, path, paths, writes)
}

/// Checks that a path in the project's folder isn't closed to reading, or to changes if `writes` is set.
pub(super) fn check_path(root: &Path, path: &str, paths: &SandboxPaths, writes: bool) -> anyhow::Result<()> {
    let path = normalize_path(path)?;
    let (real_root, real) = (::sandbox::resolve_links(root), ::sandbox::resolve_links(&root.join(&path)));
    let inner = real.strip_prefix(&real_root).unwrap_or(&real).to_string_lossy().into_owned();
    for name in [&path, &inner] {
        if let Some(why) = paths.refusal(name, writes) {
            bail!("{path} is closed: {why}");
        }
    }
    Ok(())
}

/// Says that a job was stopped because its time was over, and what sets that time.
pub(super) fn time_over_note(job: &str, seconds: u64) -> String {
    format!("({job}stopped after {seconds} s; the call's seconds, watchdog.tool and sandbox.time limit it)")
}

/// Returns a time limit in seconds, lowered to the limit of the sandbox.
pub(super) fn limited_seconds(seconds: u64, limits: &SandboxLimits) -> u64 {
    let most = limits.time_ms.map_or(u64::MAX, |limit| Duration::from_millis(limit).as_secs().max(1));
    seconds.min(most)
}
