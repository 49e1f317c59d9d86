//! Benchmark of reading large repositories: the status of very many files and the graph of very many commits, beside
//! the user's own `git` in the same run.

use super::report::{BenchReport, FigureGoal, percentile};
use super::to_ms;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::measure::ScratchFolder;
use vcs::RepositoryFolder;

/// Number of commits of the repository with the long history.
const COMMITS: usize = 100_000;
/// Number of times that each status is read.
const ROUNDS: usize = 40;
/// Number of files in each folder.
const FILES_PER_FOLDER: usize = 50;

/// Runs all benchmarks of repositories; `count` files are in the wide one.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("git")?;
    measure_status(report, &scratch, count)?;
    measure_graph(report, &scratch)
}

fn measure_status(report: &mut BenchReport, scratch: &ScratchFolder, count: usize) -> Result<(), String> {
    report.show_progress("writing the files");
    let file = |number: usize| format!("{:04}/{number}.md", number / FILES_PER_FOLDER);
    for number in 0..count {
        scratch.write(&format!("wide/{}", file(number)), format!("# Note {number}\n\nA line of text.\n").as_bytes())?;
    }
    let folder = scratch.folder().join("wide");
    for words in [&["init", "-q"][..], &["add", "--all"], &["commit", "-q", "-m", "All"]] {
        git(&folder, words, None)?;
    }
    scratch.sync_to_disk();
    report.add_figure("files", count as f64, "", FigureGoal::None);
    let first = Instant::now();
    let changes = changed_files(&folder)?;
    report.add_figure("first status", to_ms(first.elapsed()), "ms", FigureGoal::None);
    if changes != 0 {
        report.add_error(format!("{changes} files are called changed and none is"));
    }
    for (name, changed) in [("nothing changed", 0), ("10 files changed", 10)] {
        for number in 0..changed {
            scratch.write(&format!("wide/{}", file(number * count / changed)), b"other\n")?;
        }
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let found = changed_files(&folder)?;
            ours.push(to_ms(begun.elapsed()));
            if found != changed {
                report.add_error(format!("{found} files are called changed instead of {changed}"));
            }
            let begun = Instant::now();
            git(&folder, &["status", "--porcelain"], None)?;
            peer.push(to_ms(begun.elapsed()));
        }
        report.add_figure(format!("status, {name}, p50"), percentile(&mut ours, 50), "ms", FigureGoal::None);
        report.add_figure(format!("status, {name}, p95"), percentile(&mut ours, 95), "ms", FigureGoal::Under(200.0));
        report.add_figure(format!("git status, {name}, p50"), percentile(&mut peer, 50), "ms", FigureGoal::None);
        report.add_figure(format!("git status, {name}, p95"), percentile(&mut peer, 95), "ms", FigureGoal::None);
    }
    Ok(())
}

/// Returns the number of changed files, read as for the window's badges.
fn changed_files(folder: &Path) -> Result<usize, String> {
    let read = RepositoryFolder::open(folder).and_then(|repository| repository.changes());
    read.map(|(changes, _)| changes.len()).map_err(|error| error.to_string())
}

fn measure_graph(report: &mut BenchReport, scratch: &ScratchFolder) -> Result<(), String> {
    report.show_progress("writing the commits");
    let folder = scratch.folder().join("long");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    git(&folder, &["init", "-q"], None)?;
    // Every tenth commit merges a branch of one commit.
    let mut stream = String::new();
    for number in 1..=COMMITS {
        let person = format!("A <a@example.org> {} +0000", 1_000_000_000 + number);
        let parents = match number {
            1 => String::new(),
            _ if number % 10 == 0 => format!("from :{}\nmerge :{}\n", number - 1, number - 2),
            _ if number > 10 && number % 10 == 9 => format!("from :{}\n", number - 2),
            _ => format!("from :{}\n", number - 1),
        };
        stream.push_str(&format!(
            "commit refs/heads/main\nmark :{number}\ncommitter {person}\ndata 7\nChange\n\n{parents}\
             M 644 inline a.md\ndata 7\n{number:06}\n\n"
        ));
    }
    git(&folder, &["fast-import", "--quiet", "--force"], Some(stream.as_bytes()))?;
    git(&folder, &["symbolic-ref", "HEAD", "refs/heads/main"], None)?;
    let begun = Instant::now();
    let mut first = None;
    let read = RepositoryFolder::open(&folder).and_then(|repository| {
        repository.commit_graph(true, vcs::MAX_GRAPH_COMMITS, &mut |_| {
            first.get_or_insert_with(|| begun.elapsed());
            true
        })
    });
    let (rows, _) = read.map_err(|error| error.to_string())?;
    let all = begun.elapsed();
    report.add_figure("commits", rows.len() as f64, "", FigureGoal::None);
    if rows.len() != COMMITS.min(vcs::MAX_GRAPH_COMMITS) {
        report.add_error(format!("{} commits are in the graph instead of {COMMITS}", rows.len()));
    }
    report.add_figure("graph, first rows", to_ms(first.unwrap_or(all)), "ms", FigureGoal::None);
    report.add_figure("graph, all rows", to_ms(all), "ms", FigureGoal::None);
    let begun = Instant::now();
    git(&folder, &["log", "--graph", "--oneline", "--all"], None)?;
    report.add_figure("git log --graph, all rows", to_ms(begun.elapsed()), "ms", FigureGoal::None);
    Ok(())
}

/// Runs the user's `git`, without settings of the user or of the machine.
fn git(folder: &Path, words: &[&str], input: Option<&[u8]>) -> Result<(), String> {
    let tried = |error: std::io::Error| format!("git {} failed ({error})", words.join(" "));
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]).args(words);
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(tried)?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.unwrap_or_default()).map_err(tried)?;
    }
    match child.wait().map_err(tried)? {
        status if status.success() => Ok(()),
        status => Err(format!("git {} ended with {status}", words.join(" "))),
    }
}
