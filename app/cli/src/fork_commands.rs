//! `cmd_forks`: lists, shows, compares, adopts and discards the copies of projects in which agents work.

mod fork_steps;
mod listing;

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, agents, parse, resolve, volumes};
use crate::arguments::ForksArguments;
use crate::new_fork::{fork_store, unix_now};
use engine::{Command, Session};
use forks::{
    AdoptRequest, AdoptionKind, AdoptionReport, ChangeSelection, ConflictPreference, ForkError, ForkRecord, ForkStore,
    ProjectCommit,
};
use git_program::GitCaller;
use serde_json::{Value, json};
use std::time::Duration;
use store::DocId;
use text::untrusted_text::{escape_block, escape_line};

/// Maximum time until notes have taken up what an adoption wrote.
const NOTE_MERGE_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum length of the first line of a commit's message.
const MAX_SUBJECT_CHARS: usize = 72;

pub(super) fn cmd_forks(scene: &mut CommandContext<'_>, args: &ForksArguments) -> Result<u8, CliError> {
    let name = |what: &str| parse::needed(args.names.first().map(String::as_str), what);
    let most = |count: usize| match args.names.get(count) {
        Some(other) => Err(CliError::usage(format!("“{other}” is too much here; see `tracebook forks --help`"))),
        None => Ok(()),
    };
    resolve::wait_for_volumes(scene, false)?;
    close_lost_forks(scene)?;
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

/// Closes forks of which nothing is recorded here, after a crash while one was discarded, or in a restored workspace.
fn close_lost_forks(scene: &CommandContext<'_>) -> Result<(), CliError> {
    let store = fork_store(scene);
    let open = scene.handle.read(|session| {
        let name = |volume: &engine::Volume| volume.fork_of.as_ref().map(|origin| origin.name.clone());
        session.fork_volumes().map(|volume| (volume.id, name(volume), volume.root.clone())).collect::<Vec<_>>()
    })?;
    for (volume, name, root) in open {
        let record = name.and_then(|name| store.read(&name).ok());
        if record.is_none_or(|fork| Some(store.files_folder(&fork)) != root) {
            scene.handle.run_command(Command::CloseVolume { volume })?;
        }
    }
    Ok(())
}

/// Returns the volume of a fork; `None` if it isn't open.
fn fork_volume(scene: &CommandContext<'_>, store: &ForkStore, fork: &ForkRecord) -> Result<Option<DocId>, CliError> {
    let root = store.files_folder(fork);
    Ok(scene.handle.read(move |session| {
        let mut volumes = session.fork_volumes();
        volumes.find(|volume| volume.root.as_ref() == Some(&root)).map(|volume| volume.id)
    })?)
}

/// Rejects a fork in which a run is active.
fn ensure_idle(scene: &CommandContext<'_>, store: &ForkStore, fork: &ForkRecord) -> Result<(), CliError> {
    let Some(volume) = fork_volume(scene, store, fork)? else { return Ok(()) };
    let active = scene.handle.read(move |session| {
        let mut runs = session.agents().runs();
        runs.find(|(_, line)| line.volume == volume && line.ending.is_none()).map(|(id, _)| id)
    })?;
    match active {
        Some(run) => Err(CliError::usage(format!(
            "a run in the fork {} isn't over; end it first: tracebook runs {} --stop",
            fork.name,
            &run.to_string()[..8]
        ))),
        None => Ok(()),
    }
}

/// Rejects a change of a project that is closed, elsewhere or read-only.
fn ensure_project(scene: &CommandContext<'_>, fork: &ForkRecord) -> Result<(), CliError> {
    let (volume, project, name) = (fork.volume, fork.project.clone(), fork.volume_name.clone());
    let obstacle = scene.handle.read(move |session| match session.volume(volume) {
        Some(known) if known.root.as_ref() == Some(&project) => session.read_only_reason(volume),
        Some(_) | None => {
            Some(format!("{name} isn't open at {}; open that folder first: tracebook open FOLDER", project.display()))
        }
    })?;
    obstacle.map_or(Ok(()), |why| Err(CliError::usage(why)))
}

fn adopt_request(args: &ForksArguments, message: String, own: bool) -> Result<AdoptRequest, CliError> {
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
    Ok(AdoptRequest { selection, prefer, message, now: unix_now(), caller })
}

fn adopt_fork(scene: &mut CommandContext<'_>, name: &str, args: &ForksArguments) -> Result<u8, CliError> {
    let store = fork_store(scene);
    let fork = store.read(name)?;
    ensure_project(scene, &fork)?;
    export::open_note::wait_until_saved(scene.handle)?;
    if let Some(interrupted) = fork.interrupted() {
        let kind = interrupted.kind;
        let caller = adopt_request(args, String::new(), scene.own)?.caller;
        let report = store.finish_interrupted(name, caller)?;
        return finish_report(
            scene,
            &fork,
            &report,
            match kind {
                AdoptionKind::Adopt => "Finished the interrupted adoption of",
                AdoptionKind::Undo => "Finished the interrupted undo of",
            },
        );
    }
    ensure_idle(scene, &store, &fork)?;
    let request = adopt_request(args, commit_message(scene, &store, &fork)?, scene.own)?;
    match store.adopt(name, &request) {
        Ok(report) => finish_report(scene, &fork, &report, "Adopted"),
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
    let store = fork_store(scene);
    let fork = store.read(name)?;
    ensure_project(scene, &fork)?;
    export::open_note::wait_until_saved(scene.handle)?;
    if fork.interrupted().is_some() {
        let steps = store.take_back_interrupted(name)?;
        let commit = ProjectCommit::NoRepository;
        return finish_report(
            scene,
            &fork,
            &AdoptionReport { steps, commit, skipped: Vec::new() },
            "Took back the interrupted change by",
        );
    }
    let request = adopt_request(args, format!("Undo the adoption of fork {name}"), scene.own)?;
    match store.undo_adoption(name, &request) {
        Ok(report) => finish_report(scene, &fork, &report, "Undid the adoption of"),
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

/// Returns the message of an adoption's commit: the fork, what was asked, and the runs.
fn commit_message(scene: &CommandContext<'_>, store: &ForkStore, fork: &ForkRecord) -> Result<String, CliError> {
    let runs = listing::fork_runs(scene, store, fork)?;
    let prompt = runs.first().and_then(|(_, line)| line.prompt.lines().next()).unwrap_or_default();
    let subject: String =
        format!("Adopt fork {}: {}", fork.name, prompt.trim()).chars().take(MAX_SUBJECT_CHARS).collect();
    let runs: Vec<String> = runs.iter().map(|(id, _)| format!("Tracebook-Run: {id}")).collect();
    Ok(format!("{}\n\n{}\n", subject.trim_end_matches([' ', ':']), runs.join("\n")))
}

/// Lets the session read what was written, and prints what was done.
fn finish_report(
    scene: &mut CommandContext<'_>,
    fork: &ForkRecord,
    report: &AdoptionReport,
    done: &str,
) -> Result<u8, CliError> {
    if !report.steps.is_empty() {
        volumes::open_volume(scene, fork.project.clone(), None)?;
        let settled = |session: &Session| (session.pending_note_jobs() == 0).then_some(());
        scene.handle.wait(Some(NOTE_MERGE_TIMEOUT), settled)?;
        export::open_note::wait_until_saved(scene.handle)?;
    }
    let (commit, reason) = match &report.commit {
        ProjectCommit::Made(id) => (Some(id.clone()), None),
        ProjectCommit::NotMade(why) => (None, Some(why.clone())),
        ProjectCommit::NoRepository => (None, None),
    };
    let paths: Vec<&str> = report.steps.iter().map(|step| step.path.as_str()).collect();
    if scene.json {
        let skipped: Vec<Value> = report.skipped.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
        let line = json!({"fork": fork.name, "done": done, "files": paths, "commit": commit,
            "not_committed": reason, "skipped": skipped});
        writeln!(scene.out, "{line}")?;
        return Ok(EXIT_DONE);
    }
    if paths.is_empty() {
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
    for (path, why) in &report.skipped {
        writeln!(scene.errors, "tracebook: {} stays in the fork: {}", escape_line(path), escape_block(why))?;
    }
    Ok(EXIT_DONE)
}

fn discard_fork(scene: &mut CommandContext<'_>, name: &str) -> Result<u8, CliError> {
    let store = fork_store(scene);
    let fork = store.read(name)?;
    ensure_idle(scene, &store, &fork)?;
    let volume = fork_volume(scene, &store, &fork)?;
    store.begin_discard(name)?;
    if let Some(volume) = volume {
        export::open_note::wait_until_saved(scene.handle)?;
        scene.handle.run_command(Command::CloseVolume { volume })?;
        export::open_note::wait_until_saved(scene.handle)?;
    }
    let last = store.discard(name)?;
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
