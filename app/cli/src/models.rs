//! `index models|use|reranker|pause|resume`: the sentence model for semantic search.

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use engine::{Command, Settings};
use host::search::{
    EmbedderChoice, EmbedderChoiceError, EmbeddingChoice, OnnxRuntime, SearchService, known_models, known_rerankers,
};
use serde_json::json;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Polling interval for the progress of a new model's vectors.
const MODEL_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time before the first message about the progress, and between two.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time to compute vectors for a very large number of notes.
const REINDEX_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// Lists the models, and marks the current one.
pub(super) fn list_models(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    let settings = read_settings(scene)?;
    let (wanted, _) = EmbeddingChoice::from_settings(&settings);
    let runtime = OnnxRuntime::find(wanted.library.as_deref());
    let (models, rerankers) = (known_models(), known_rerankers());
    if scene.json {
        let one = |known: &host::search::KnownModel| {
            json!({"name": known.name, "repository": known.repository, "dimensions": known.dimensions,
                "description": known.description})
        };
        let value = json!({
            "model": wanted.choice.to_string(),
            "reranker": wanted.reranker,
            "onnx_runtime": runtime.as_ref().ok().map(|found| found.path.display().to_string()),
            "fastembed": models.iter().map(one).collect::<Vec<_>>(),
            "rerankers": rerankers.iter().map(one).collect::<Vec<_>>(),
        });
        writeln!(scene.out, "{value}")?;
        return Ok(EXIT_DONE);
    }
    let mark = |is: bool| if is { "*" } else { " " };
    writeln!(
        scene.out,
        "{} embedded  384  MiniLM-L6, English; nothing to install",
        mark(wanted.choice == EmbedderChoice::Embedded)
    )?;
    match &wanted.choice {
        EmbedderChoice::Folder(_) | EmbedderChoice::Endpoint { .. } => writeln!(scene.out, "* {}", wanted.choice)?,
        EmbedderChoice::Embedded | EmbedderChoice::Fastembed(_) => {}
    }
    for model in &models {
        let is = matches!(&wanted.choice, EmbedderChoice::Fastembed(name) if *name == model.name);
        writeln!(scene.out, "{} fastembed:{}  {}  {}", mark(is), model.name, model.dimensions, model.description)?;
    }
    writeln!(scene.out, "Rerankers, for `index reranker NAME`:")?;
    for model in &rerankers {
        writeln!(scene.out, "{} {}  {}", mark(wanted.reranker == model.name), model.name, model.description)?;
    }
    match runtime {
        Ok(found) => writeln!(scene.out, "ONNX Runtime: {}, from {}", found.path.display(), found.origin)?,
        Err(why) => writeln!(scene.out, "Models of fastembed can't run: {why}.")?,
    }
    Ok(EXIT_DONE)
}

fn read_settings(scene: &CommandContext<'_>) -> Result<Settings, CliError> {
    Ok(scene.handle.read(|session| session.settings().clone())?)
}

fn update_settings(scene: &mut CommandContext<'_>, change: impl FnOnce(&mut Settings)) -> Result<(), CliError> {
    let mut settings = read_settings(scene)?;
    change(&mut settings);
    scene.handle.run_command(Command::Set { settings: Box::new(settings) })?;
    Ok(())
}

/// Selects a model and waits until its vectors are complete; until then, those of the old one are used.
pub(super) fn use_model(scene: &mut CommandContext<'_>, name: &str) -> Result<u8, CliError> {
    let choice: EmbedderChoice = name.parse().map_err(|why: EmbedderChoiceError| CliError::usage(why.to_string()))?;
    let (before, _) = EmbeddingChoice::from_settings(&read_settings(scene)?);
    if matches!(choice, EmbedderChoice::Fastembed(_) | EmbedderChoice::Folder(_)) {
        OnnxRuntime::find(before.library.as_deref()).map_err(|why| CliError::usage(why.to_string()))?;
    }
    let name = choice.to_string();
    update_settings(scene, move |settings| (settings.embedder, settings.meaning_paused) = (name, false))?;
    super::search::wait_for_index(scene)?;
    let whole = run_with_progress(scene, |search| search.wait_until_embedded(REINDEX_TIMEOUT))?;
    if let Err(why) = whole {
        let old = before.choice.to_string();
        update_settings(scene, move |settings| settings.embedder = old)?;
        return Err(CliError { code: EXIT_FAILED, why: format!("{why}; {} stays in use", before.choice) });
    }
    super::search::print_index_status(scene)
}

/// Returns whether a person at a terminal sees what is printed meanwhile.
pub(super) fn is_for_person(scene: &CommandContext<'_>) -> bool {
    scene.own && !scene.json && std::io::stderr().is_terminal()
}

/// Runs a long operation of the search index, and prints the progress of downloads and vectors meanwhile; that of notes
/// only for a person, because every command can have to wait for some.
///
/// # Errors
/// Returns an error if the progress can't be printed or the program is closing; the operation's own is in the value.
pub(super) fn run_with_progress(
    scene: &mut CommandContext<'_>,
    what: impl FnOnce(SearchService) -> anyhow::Result<()> + Send + 'static,
) -> Result<anyhow::Result<()>, CliError> {
    let (search, (tell, done)) = (scene.handle.search().clone(), channel());
    let shows_notes = is_for_person(scene);
    std::thread::spawn(move || tell.send(what(search)));
    let (mut told, mut at) = (String::new(), Instant::now());
    loop {
        match done.recv_timeout(MODEL_POLL_INTERVAL) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(CliError::workspace("the program is closing")),
        }
        let fresh = scene.handle.search().freshness();
        let now = match (&fresh.download, fresh.meanings) {
            (Some(file), _) => {
                format!("downloading {}: {} of {} MB", file.file, file.received_bytes >> 20, file.total_bytes >> 20)
            }
            (None, (left, all)) if fresh.pending_model.is_some() && all > 0 => {
                format!("{left} of {all} passages to go")
            }
            (None, _) if shows_notes && fresh.waiting > 0 => format!("indexing: {} notes to go", fresh.waiting),
            (None, _) => String::new(),
        };
        if !now.is_empty() && now != told && at.elapsed() > PROGRESS_INTERVAL {
            writeln!(scene.errors, "{now}")?;
            (told, at) = (now, Instant::now());
        }
    }
}

/// Selects the model that reranks the best hits, or none.
pub(super) fn use_reranker(scene: &mut CommandContext<'_>, name: &str) -> Result<u8, CliError> {
    let all = known_rerankers();
    let found = all.iter().find(|known| known.name.eq_ignore_ascii_case(name) || known.repository == name);
    let name = match (name, found) {
        ("none", _) => String::new(),
        (_, Some(known)) => known.name.clone(),
        (_, None) => {
            let names: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
            return Err(CliError::usage(format!("“{name}” isn't a reranker; use none, {}", names.join(", "))));
        }
    };
    let (wanted, _) = EmbeddingChoice::from_settings(&read_settings(scene)?);
    if !name.is_empty() {
        OnnxRuntime::find(wanted.library.as_deref()).map_err(|why| CliError::usage(why.to_string()))?;
        let fetched = name.clone();
        let downloaded = run_with_progress(scene, move |search| search.download_reranker(&fetched))?;
        downloaded.map_err(|why| CliError { code: EXIT_FAILED, why: why.to_string() })?;
    }
    let said = if name.is_empty() {
        "No model reranks the best hits.".to_owned()
    } else {
        format!("{name} reranks the best hits.")
    };
    let reranker = Some(name.clone()).filter(|name| !name.is_empty());
    update_settings(scene, move |settings| settings.reranker = name)?;
    scene.print_result(&json!({"reranker": reranker}), said)?;
    Ok(EXIT_DONE)
}

/// Pauses or resumes semantic indexing.
pub(super) fn set_paused(scene: &mut CommandContext<'_>, paused: bool) -> Result<u8, CliError> {
    update_settings(scene, move |settings| settings.meaning_paused = paused)?;
    let said = if paused {
        "Search by meaning is paused: new passages are found by their words alone."
    } else {
        "Search by meaning continues."
    };
    scene.print_result(&json!({"paused": paused}), said)?;
    Ok(EXIT_DONE)
}
