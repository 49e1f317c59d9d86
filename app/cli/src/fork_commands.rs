//! `cmd_forks`: lists, shows, compares, adopts and discards the copies of projects in which agents work.

mod listing;

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, agents, parse, resolve};
use crate::arguments::ForksArguments;
use crate::new_fork::{open_forks, unix_now};
use forks::{
    AdoptedVariables, AdoptionChoice, AdoptionKind, AdoptionReport, ChangeSelection, ConflictPreference, ForkError,
    ForkRecord, ProjectCommit,
};
use git_program::GitCaller;
use serde_json::{Value, json};
use text::untrusted_text::{escape_block, escape_line};

pub(super) fn cmd_forks(scene: &mut CommandContext<'_>, args: &ForksArguments) -> Result<u8, CliError> {
    let name = |what: &str| parse::needed(args.names.first().map(String::as_str), what);
    let most = |count: usize| match args.names.get(count) {
        Some(other) => Err(CliError::usage(format!("“{other}” is too much here; see `tracebook forks --help`"))),
        None => Ok(()),
    };
    resolve::wait_for_volumes(scene, false)?;
    open_forks(scene).close_lost()?;
    match args.verb.as_deref() {
        None => listing::list_forks(scene, None),
        Some("list") => {
            most(1)?;
            listing::list_forks(scene, args.names.first().map(String::as_str))
        }
        Some("show") => {
            most(1)?;
            listing::show_fork(scene, name("the fork")?)
        }
        Some("compare") => {
            most(2)?;
            let other = parse::needed(args.names.get(1).map(String::as_str), "the other fork")?;
            listing::compare_forks(scene, name("the fork")?, other)
        }
        Some("adopt") => {
            most(1)?;
            adopt_fork(scene, name("the fork")?, args)
        }
        Some("undo") => {
            most(1)?;
            undo_fork(scene, name("the fork")?, args)
        }
        Some("discard") => {
            most(1)?;
            discard_fork(scene, name("the fork")?)
        }
        Some(volume) => {
            most(0)?;
            listing::list_forks(scene, Some(volume))
        }
    }
}

fn adoption_choice(args: &ForksArguments, own: bool) -> Result<AdoptionChoice, CliError> {
    let prefer = match (args.is_ours, args.is_theirs) {
        (false, false) => ConflictPreference::Refuse,
        (true, false) => ConflictPreference::Project,
        (false, true) => ConflictPreference::Fork,
        (true, true) => return Err(CliError::usage("say --ours (the project's) or --theirs (the fork's)")),
    };
    let mut selection = ChangeSelection::default();
    for word in &args.only {
        // A path may have a colon, too.
        let part = word.rsplit_once(':').and_then(|(path, hunk)| Some((path, hunk.parse::<usize>().ok()?)));
        match part {
            Some((path, hunk)) => selection.add(path, Some(hunk)),
            None => selection.add(word, None),
        }
    }
    let caller = if own { GitCaller::User } else { GitCaller::Window };
    Ok(AdoptionChoice { selection, seen: args.seen.clone(), prefer, caller, now: unix_now() })
}

fn adopt_fork(scene: &mut CommandContext<'_>, name: &str, args: &ForksArguments) -> Result<u8, CliError> {
    let forks = open_forks(scene);
    let fork = forks.store().read(name)?;
    match forks.adopt(name, adoption_choice(args, scene.own)?) {
        Ok((report, interrupted)) => {
            let done = match interrupted {
                None => "Adopted",
                Some(AdoptionKind::Adopt) => "Finished the interrupted adoption of",
                Some(AdoptionKind::Undo) => "Finished the interrupted undo of",
            };
            print_report(scene, &fork, &report, done)
        }
        Err(error @ ForkError::ChangedSinceSeen) => {
            Err(CliError { code: EXIT_FAILED, why: format!("{error}: tracebook forks show {name}") })
        }
        Err(ForkError::Conflicts(conflicts)) => {
            if scene.json {
                writeln!(scene.out, "{}", json!({"fork": name, "conflicts": conflicts}))?;
                return Ok(EXIT_FAILED);
            }
            for region in conflicts.iter().flat_map(|file| file.regions.iter().map(move |region| (&file.path, region)))
            {
                let (path, region) = region;
                writeln!(scene.out, "{}", escape_line(path))?;
                for (side, text) in [("project", &region.ours), ("fork", &region.theirs)] {
                    for line in text.lines() {
                        writeln!(scene.out, "  {side:>7} | {}", escape_line(line))?;
                    }
                }
            }
            let advice =
                "--ours keeps the project's lines there, --theirs takes the fork's, and --only leaves files out";
            let why = format!("{}. {advice}", ForkError::Conflicts(conflicts));
            Err(CliError { code: EXIT_FAILED, why })
        }
        Err(error) => Err(error.into()),
    }
}

fn undo_fork(scene: &mut CommandContext<'_>, name: &str, args: &ForksArguments) -> Result<u8, CliError> {
    let forks = open_forks(scene);
    let fork = forks.store().read(name)?;
    match forks.undo(name, adoption_choice(args, scene.own)?) {
        Ok((report, is_interrupted)) => {
            let done = if is_interrupted { "Took back the interrupted change by" } else { "Undid the adoption of" };
            print_report(scene, &fork, &report, done)
        }
        Err(ForkError::Conflicts(conflicts)) => Err(CliError {
            code: EXIT_FAILED,
            why: format!(
                "{}. --ours keeps the project as it is there, --theirs takes it back anyway",
                ForkError::Conflicts(conflicts).to_string().replace("so nothing was adopted", "so nothing was undone")
            ),
        }),
        Err(error) => Err(error.into()),
    }
}

/// Prints what was done.
fn print_report(
    scene: &mut CommandContext<'_>,
    fork: &ForkRecord,
    report: &AdoptionReport,
    done: &str,
) -> Result<u8, CliError> {
    let (commit, reason) = match &report.commit {
        ProjectCommit::Made(id) => (Some(id.clone()), None),
        ProjectCommit::NotMade(why) => (None, Some(why.clone())),
        ProjectCommit::NoRepository => (None, None),
    };
    let paths: Vec<&str> = report.steps.iter().map(|step| step.path.as_str()).collect();
    if scene.json {
        let skipped: Vec<Value> = report.skipped.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
        let variables: Vec<Value> = report
            .variables
            .iter()
            .map(|note| json!({"path": note.path, "fork": note.branch, "problem": note.problem}))
            .collect();
        let line = json!({"fork": fork.name, "done": done, "files": paths, "commit": commit,
            "not_committed": reason, "skipped": skipped, "variables": variables});
        writeln!(scene.out, "{line}")?;
        return Ok(EXIT_DONE);
    }
    if paths.is_empty() && !report.variables.is_empty() {
        writeln!(scene.out, "{done} fork {}: no file of {}", fork.name, escape_line(&fork.volume_name))?;
    } else if paths.is_empty() {
        writeln!(scene.out, "Nothing to do: {} has all of it already.", escape_line(&fork.volume_name))?;
    } else {
        let files = if paths.len() == 1 { "file" } else { "files" };
        writeln!(
            scene.out,
            "{done} fork {}: {} {files} of {}",
            fork.name,
            paths.len(),
            escape_line(&fork.volume_name)
        )?;
        for path in paths {
            writeln!(scene.out, "  {}", escape_line(path))?;
        }
        match (commit, reason) {
            (Some(id), _) => writeln!(scene.out, "Committed as {}.", id.get(..10).unwrap_or(&id))?,
            (None, Some(why)) => writeln!(scene.out, "Not committed, because {}.", escape_line(&why))?,
            (None, None) => {}
        }
    }
    for AdoptedVariables { path, branch, problem } in &report.variables {
        let path = escape_line(path);
        if let Some(branch) = branch {
            let branch = escape_line(branch);
            writeln!(scene.out, "The variables of {path} in the fork are now its fork of variables {branch}.")?;
            writeln!(scene.out, "  compare them: tracebook kernels compare {path} main '{branch}'")?;
            writeln!(scene.out, "  take them over: tracebook kernels adopt {path} --as '{branch}'")?;
        }
        if let Some(why) = problem {
            writeln!(scene.errors, "tracebook: the variables of {path} stay in the fork: {}", escape_block(why))?;
        }
    }
    for (path, why) in &report.skipped {
        writeln!(scene.errors, "tracebook: {} stays in the fork: {}", escape_line(path), escape_block(why))?;
    }
    Ok(EXIT_DONE)
}

fn discard_fork(scene: &mut CommandContext<'_>, name: &str) -> Result<u8, CliError> {
    let forks = open_forks(scene);
    let fork = forks.store().read(name)?;
    let last = forks.discard(name)?;
    if scene.json {
        writeln!(scene.out, "{}", json!({"discarded": name, "last_commit": last}))?;
        return Ok(EXIT_DONE);
    }
    writeln!(scene.out, "Fork {name} of {} is gone. The records of its runs stay.", escape_line(&fork.volume_name))?;
    if let Some(last) = last {
        writeln!(scene.out, "Its branch had commits of its own; Git keeps the last one for weeks: {last}")?;
    }
    Ok(EXIT_DONE)
}

/// Returns a run's state as a word, as `runs` prints it.
pub(super) fn run_state(line: &engine::RunSummary) -> &'static str {
    agents::run_status_label(line)
}
