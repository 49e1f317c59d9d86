//! Git operations of tools, with results as text.

use super::ToolWorkspace;
use super::truncate::truncate_output;
use agent::tool_job::{GitJob, ToolOutcome};
use std::path::Path;
use vcs::{MAX_STATUS_FILES, RepositoryFolder};

/// Number of commits in a log by default.
const DEFAULT_LOG_COMMITS: usize = 20;

pub(super) fn run(place: &ToolWorkspace, root: &Path, what: &GitJob) -> anyhow::Result<ToolOutcome> {
    let text = run_git_job(root, what)?;
    let (text, whole) = truncate_output(text.as_bytes(), &place.blobs)?;
    Ok(ToolOutcome { success: true, text, whole, ..ToolOutcome::default() })
}

fn run_git_job(root: &Path, what: &GitJob) -> Result<String, vcs::VcsError> {
    let part = RepositoryFolder::open(root)?;
    Ok(match what {
        GitJob::Status => match part.status()? {
            (lines, _) if lines.is_empty() => "nothing has changed since the last commit".to_owned(),
            (lines, true) => lines.join("\n"),
            (lines, false) => format!("{}\n… more than {MAX_STATUS_FILES} files …", lines.join("\n")),
        },
        GitJob::Diff { path } => match part.diff(path.as_deref())? {
            (text, _) if text.is_empty() => "nothing differs from the last commit".to_owned(),
            (text, true) => text,
            (text, false) => format!("{text}\n… more than {} MB …", vcs::MAX_DIFF_BYTES >> 20),
        },
        GitJob::Log { limit } => {
            let commits = part.log(limit.unwrap_or(DEFAULT_LOG_COMMITS))?;
            let line = |commit: &vcs::Commit| {
                let id = commit.id.get(..8).unwrap_or(&commit.id);
                format!("{id} {} {}: {}", format_day(commit.time), commit.author, commit.summary)
            };
            match commits.as_slice() {
                [] => "there is no commit yet".to_owned(),
                commits => commits.iter().map(line).collect::<Vec<_>>().join("\n"),
            }
        }
        GitJob::Commit { message, files } => {
            let (commit, files) = part.commit(message, files)?;
            format!("committed {} “{}”\n{}", commit.id.get(..8).unwrap_or(&commit.id), commit.summary, files.join("\n"))
        }
    })
}

/// Formats a time as a day in UTC, such as `2026-11-22`, by Howard Hinnant's `civil_from_days`.
fn format_day(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400).clamp(-1_000_000_000, 1_000_000_000) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn days() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_795_305_599, "2026-11-21"),
            (1_795_305_600, "2026-11-22"),
            (-1, "1969-12-31"),
        ] {
            assert_eq!(super::format_day(seconds), day);
        }
        super::format_day(i64::MAX);
        super::format_day(i64::MIN);
    }
}
