//! Lists forks, shows what one has changed, and compares two.

use super::{CliError, CommandContext, EXIT_DONE, run_state};
use crate::new_fork::{left_out_lines, open_forks};
use crate::{agents, resolve};
use engine::RunSummary;
use forks::{
    ChangeMaker, ChangedForkFile, FileMakers, ForkChanges, ForkFileChange, ForkHunk, ForkOverview, ForkPhase,
    ForkState, ForkStore,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use text::diff;
use text::untrusted_text::{escape_block, escape_line};

/// Width of a side in a comparison.
const SIDE_CHARS: usize = 36;

/// Returns the state of a fork as a word.
fn fork_state(one: &ForkOverview) -> &'static str {
    match one.state {
        ForkState::Unfinished => "unfinished",
        ForkState::HalfDiscarded => "half discarded",
        ForkState::Interrupted => "interrupted",
        ForkState::Missing => "missing",
        ForkState::AdoptedInPart => "adopted in part",
        ForkState::Adopted => "adopted",
        ForkState::AsRun => one.runs.last().map_or("no run", |(_, line)| run_state(line)),
        ForkState::NoRun => "no run",
    }
}

pub(super) fn list_forks(scene: &mut CommandContext<'_>, volume: Option<&str>) -> Result<u8, CliError> {
    let only = match volume {
        Some(name) => resolve::resolve_volume(scene, Some(name))?,
        None => None,
    };
    let forks = open_forks(scene);
    let store = forks.store();
    let mut rows = Vec::new();
    for fork in store.list()?.into_iter().filter(|fork| only.is_none_or(|only| only == fork.volume)) {
        // A fork whose folder is gone has no changes to count.
        let changed = (fork.phase == ForkPhase::Ready).then(|| store.changes(&fork).ok()).flatten();
        rows.push(fork_json(store, &forks.overview(fork)?, changed.as_ref()));
    }
    if scene.json {
        writeln!(scene.out, "{}", Value::from(rows))?;
        return Ok(EXIT_DONE);
    }
    for row in rows {
        let text = |key: &str| escape_line(row[key].as_str().unwrap_or_default()).into_owned();
        let changed = match row["changed"].as_u64() {
            Some(1) => "1 file".to_owned(),
            Some(count) => format!("{count} files"),
            None => "no files".to_owned(),
        };
        let cost = agents::format_cost(row["cost"].as_f64());
        let prompt = row["runs"][0]["prompt"].as_str().and_then(|prompt| prompt.lines().next()).unwrap_or_default();
        writeln!(
            scene.out,
            "{:16}  {:14}  {changed:>9}  {:>8} tokens  {cost:>9}  {}  {}",
            text("name"),
            text("state"),
            row["tokens"],
            text("volume"),
            escape_line(prompt)
        )?;
    }
    Ok(EXIT_DONE)
}

fn fork_json(store: &ForkStore, one: &ForkOverview, changes: Option<&ForkChanges>) -> Value {
    let ForkOverview { fork, runs, .. } = one;
    let tokens = |line: &RunSummary| line.spent.input_tokens.saturating_add(line.spent.output_tokens);
    let run_rows: Vec<Value> = runs
        .iter()
        .map(|(id, line)| {
            json!({"id": id, "prompt": line.prompt, "state": run_state(line), "tokens": tokens(line),
                "cost": line.spent.cost, "budget": line.budget})
        })
        .collect();
    json!({
        "name": fork.name,
        "volume": fork.volume_name,
        "state": fork_state(one),
        "changed": changes.map(|changes| changes.files.len()),
        "tokens": one.tokens(),
        "cost": one.cost(),
        "runs": run_rows,
        "created": fork.created,
        "folder": store.files_folder(fork),
        "branch": fork.git.as_ref().map(|git| &git.branch),
        "files": fork.files,
        "bytes": fork.bytes,
        "left_out": fork.left_out,
        "commit": fork.adopted().and_then(|adopted| adopted.commit.clone()),
    })
}

fn change_word(change: ForkFileChange) -> &'static str {
    match change {
        ForkFileChange::Added => "new",
        ForkFileChange::Modified => "changed",
        ForkFileChange::Deleted => "deleted",
    }
}

fn makers_json(makers: &[&ChangeMaker]) -> Value {
    makers
        .iter()
        .map(|maker| json!({"run": maker.run, "step": maker.step, "tool": maker.tool, "what": maker.what}))
        .collect()
}

fn file_json(file: &ChangedForkFile, makers: &FileMakers<'_>) -> Value {
    let hunks: Vec<Value> = file
        .hunks
        .iter()
        .map(|hunk| {
            let mut value = json!(hunk);
            value["steps"] = makers_json(&makers.of_hunk(hunk));
            value
        })
        .collect();
    let mut value = json!(file);
    value["hunks"] = Value::from(hunks);
    value["steps"] = makers_json(&makers.of_file());
    value
}

fn hunk_lines(hunk: &ForkHunk) -> String {
    let removed = hunk.removed.lines().map(|line| format!("    -{line}\n"));
    removed.chain(hunk.added.lines().map(|line| format!("    +{line}\n"))).collect()
}

pub(super) fn show_fork(scene: &mut CommandContext<'_>, name: &str) -> Result<u8, CliError> {
    let forks = open_forks(scene);
    let fork = forks.store().read(name)?;
    let changes = forks.saved_changes(&fork)?;
    let one = forks.overview(fork)?;
    let makers = forks.read_makers(&one.runs)?;
    if scene.json {
        let mut value = fork_json(forks.store(), &one, Some(&changes));
        let files: Vec<Value> =
            changes.files.iter().map(|file| file_json(file, &FileMakers::of(&makers, &file.path))).collect();
        value["files"] = Value::from(files);
        value["version"] = changes.version().into();
        value["skipped"] = changes.skipped.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
        writeln!(scene.out, "{value}")?;
        return Ok(EXIT_DONE);
    }
    writeln!(
        scene.out,
        "{name}, {}, of {}, in {}",
        fork_state(&one),
        escape_line(&one.fork.volume_name),
        escape_line(&forks.store().files_folder(&one.fork).display().to_string())
    )?;
    for line in left_out_lines(&one.fork) {
        writeln!(scene.out, "{}", escape_line(&line))?;
    }
    for file in &changes.files {
        let makers = FileMakers::of(&makers, &file.path);
        writeln!(scene.out, "{} {}", change_word(file.change), escape_line(&file.path))?;
        if let Some(why) = file.runs_because {
            writeln!(scene.out, "  look closely: {why}")?;
        }
        if !file.is_text {
            writeln!(scene.out, "  not text{}", step_words(&makers.of_file()))?;
        }
        for hunk in &file.hunks {
            let number = hunk.number;
            writeln!(scene.out, "  hunk {number}, line {}{}", hunk.new_line, step_words(&makers.of_hunk(hunk)))?;
            scene.out.write_all(escape_block(&hunk_lines(hunk)).as_bytes())?;
        }
    }
    for (path, why) in &changes.skipped {
        writeln!(scene.out, "not adoptable {}: {}", escape_line(path), escape_line(why))?;
    }
    if !changes.files.is_empty() {
        writeln!(scene.out, "To adopt exactly this: tracebook forks adopt {name} --seen {}", changes.version())?;
    }
    Ok(EXIT_DONE)
}

fn step_words(makers: &[&ChangeMaker]) -> String {
    if makers.is_empty() {
        return ", by no recorded step".to_owned();
    }
    let words = makers.iter().map(|maker| {
        let (run, what) = (&maker.run.to_string()[..8], escape_line(&maker.what).into_owned());
        format!("{} ({what}), run {run} step {}", escape_line(&maker.tool), maker.step)
    });
    format!(", by {}", words.collect::<Vec<_>>().join("; "))
}

/// Compares what two forks of a project have made of each file.
pub(super) fn compare_forks(scene: &mut CommandContext<'_>, one: &str, other: &str) -> Result<u8, CliError> {
    let forks = open_forks(scene);
    let (first, second) = (forks.store().read(one)?, forks.store().read(other)?);
    if first.volume != second.volume {
        return Err(CliError::usage(format!(
            "they are forks of different volumes: {one} of {}, {other} of {}",
            first.volume_name, second.volume_name
        )));
    }
    let (left, right) = (forks.saved_changes(&first)?, forks.saved_changes(&second)?);
    let mut paths: BTreeMap<&str, (Option<&ChangedForkFile>, Option<&ChangedForkFile>)> = BTreeMap::new();
    for file in &left.files {
        paths.entry(&file.path).or_default().0 = Some(file);
    }
    for file in &right.files {
        paths.entry(&file.path).or_default().1 = Some(file);
    }
    if scene.json {
        let makers =
            (forks.read_makers(&forks.overview(first)?.runs)?, forks.read_makers(&forks.overview(second)?.runs)?);
        let rows: Vec<Value> = paths
            .iter()
            .map(|(path, (a, b))| {
                let side = |file: &Option<&ChangedForkFile>, makers: &[ChangeMaker]| {
                    file.map_or(Value::Null, |file| file_json(file, &FileMakers::of(makers, path)))
                };
                json!({"path": path, "same": is_same(*a, *b), "a": side(a, &makers.0), "b": side(b, &makers.1),
                    "diff": texts_of(*a, *b).map(|(a, b)| diff::unified_diff(path, Some(a), Some(b)))})
            })
            .collect();
        writeln!(scene.out, "{}", json!({"a": one, "b": other, "files": rows}))?;
        return Ok(EXIT_DONE);
    }
    writeln!(scene.out, "{:SIDE_CHARS$} | {}", one, other)?;
    for (path, (a, b)) in paths {
        writeln!(scene.out, "{}{}", escape_line(path), if is_same(a, b) { " (the same in both)" } else { "" })?;
        let (a, b) = (side_lines(a), side_lines(b));
        for at in 0..a.len().max(b.len()) {
            let side = |lines: &[String]| {
                let line: String = lines.get(at).map_or("", String::as_str).chars().take(SIDE_CHARS).collect();
                escape_line(&line).into_owned()
            };
            writeln!(scene.out, "{:SIDE_CHARS$} | {}", side(&a), side(&b))?;
        }
    }
    Ok(EXIT_DONE)
}

fn is_same(one: Option<&ChangedForkFile>, other: Option<&ChangedForkFile>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one.has_same_content(other))
}

/// Returns both texts of a file: a fork that hasn't changed it has the text that the other began with.
fn texts_of<'a>(one: Option<&'a ChangedForkFile>, other: Option<&'a ChangedForkFile>) -> Option<(&'a str, &'a str)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.text()?, other.text()?)),
        (Some(one), None) => Some((one.text()?, one.old_text()?)),
        (None, Some(other)) => Some((other.old_text()?, other.text()?)),
        (None, None) => None,
    }
}

/// Returns what one side of a comparison shows of a file.
fn side_lines(file: Option<&ChangedForkFile>) -> Vec<String> {
    let Some(file) = file else { return vec!["as before".to_owned()] };
    let mut lines = vec![change_word(file.change).to_owned()];
    if !file.is_text {
        lines.push("not text".to_owned());
    }
    for hunk in &file.hunks {
        lines.push(format!("hunk {}, line {}", hunk.number, hunk.new_line));
        lines.extend(hunk.removed.lines().map(|line| format!("-{line}")));
        lines.extend(hunk.added.lines().map(|line| format!("+{line}")));
    }
    lines
}
