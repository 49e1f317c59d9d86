//! `cmd_search` and `cmd_index`: search, and its index.

use super::parse::{number_option, unknown_action};
use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, models, resolve};
use crate::arguments::{IndexArguments, RelatedArguments, SearchArguments, SearchesArguments};
use crate::parse::needed;
use crate::plurals::counted;
use engine::{Command, Note, Session};
use host::search::{NoteHit, SearchAnswer, SearchRequest, SearchService};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use text::untrusted_text;

/// Maximum time for the index to catch up with the disk; the first index of a very large number of notes takes a while.
const INDEX_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum wait for recent edits to be saved.
const EDIT_SAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Up to this many passages without an embedding are waited for, and how long.
const MAX_AWAITED_PASSAGES: usize = 200;
const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(6);
/// The same if what is near in meaning was asked for, which can't be found without.
const NEAREST_EMBEDDING_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of notes that are listed at once.
const MAX_HITS: usize = 1_000;
/// Maximum length of a query in the sentence that says that nothing was found.
const MAX_ECHOED_LETTERS: usize = 200;
/// Maximum number of bytes printed of a passage, in readable output and in JSON.
const MAX_SHOWN_PASSAGE_BYTES: usize = 160;
const MAX_JSON_PASSAGE_BYTES: usize = 1_000;

/// Returns the exact name of the volume that a search is limited to.
fn searched_volume(scene: &CommandContext<'_>, name: Option<&str>) -> Result<Option<String>, CliError> {
    let Some(name) = name else { return Ok(None) };
    let id = resolve::resolve_volume(scene, Some(name))?;
    let named =
        move |session: &Session| session.volumes().find(|volume| Some(volume.id) == id).map(|one| one.name.clone());
    // One that was closed meanwhile has no hits.
    Ok(Some(scene.handle.read(named)?.unwrap_or_else(|| name.to_owned())))
}

/// Parses the option `--limit`: the number of notes that are listed.
fn hit_limit(word: Option<&str>) -> Result<usize, CliError> {
    match number_option("limit", word)? {
        None => Ok(10),
        Some(0) => Err(CliError::usage("--limit wants a whole number from 1, not “0”")),
        Some(limit) => Ok(usize::try_from(limit).map_or(MAX_HITS, |limit| limit.min(MAX_HITS))),
    }
}

pub(super) fn cmd_search(scene: &mut CommandContext<'_>, args: &SearchArguments) -> Result<u8, CliError> {
    let mut text = args.query.as_str().to_owned();
    if let Some(name) = text.strip_prefix('@') {
        text = saved_searches(scene)?.into_iter().find(|(known, _)| known == name).map(|(_, text)| text).ok_or_else(
            || CliError::usage(format!("there's no saved search “{name}”; `tracebook searches` lists those that are")),
        )?;
    }
    let limit = hit_limit(args.limit.as_deref())?;
    let explain = args.explain;
    let volume = searched_volume(scene, args.volume.as_deref())?;
    if let Some(said) = host::search::ParsedQuery::misread_filter(&text) {
        writeln!(scene.errors, "{said}; searching for it as a word")?;
    }
    wait_for_index(scene)?;
    let search = scene.handle.search();
    if let Ok(counts) = search.counts()
        && (1..=MAX_AWAITED_PASSAGES).contains(&(counts.meanings - counts.embedded))
    {
        let patience = if args.nearest { NEAREST_EMBEDDING_TIMEOUT } else { EMBEDDING_TIMEOUT };
        let _ = search.wait_until_embedded(patience); // words find without
    }
    let mut answer = search
        .search_blocking(SearchRequest { text: text.clone(), limit, volume, ..SearchRequest::default() })
        .map_err(CliError::workspace)?;
    if let Some(why) = search.freshness().words_only_reason {
        writeln!(scene.errors, "{why}")?;
    }
    if !answer.has_match() && !args.nearest {
        answer.hits.clear();
    }
    let mut shown: String = text.chars().take(MAX_ECHOED_LETTERS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    print_hits(scene, &answer, explain, &format!("No results for “{shown}”."))
}

fn saved_searches(scene: &CommandContext<'_>) -> Result<Vec<(String, String)>, CliError> {
    Ok(scene.handle.read(|session| session.settings().searches.clone())?)
}

/// Runs `cmd_searches`: lists saved searches, saves one, or deletes one.
pub(super) fn cmd_searches(scene: &mut CommandContext<'_>, args: &SearchesArguments) -> Result<u8, CliError> {
    let mut settings = scene.handle.read(|session| session.settings().clone())?;
    let before = settings.searches.clone();
    match (args.name.as_ref(), args.query.as_ref(), args.forget) {
        (Some(name), None, true) => {
            settings.searches.retain(|(known, _)| known != name);
            if settings.searches == before {
                return Err(CliError::usage(format!(
                    "there's no saved search “{name}”; `tracebook searches` lists those that are"
                )));
            }
        }
        (Some(name), Some(query), false) => {
            settings.save_search(name, query).map_err(|why| CliError::usage(why.to_string()))?
        }
        (None, None, false) => {}
        (_, _, true) => return Err(CliError::usage("--forget needs the name of a search, and nothing else")),
        (_, _, false) => return Err(CliError::usage("a saved search needs a name and a query")),
    }
    if settings.searches != before {
        scene.handle.run_command(Command::Set { settings: Box::new(settings.clone()) })?;
    }
    if scene.json {
        let all: Vec<Value> =
            settings.searches.iter().map(|(name, query)| json!({"name": name, "query": query})).collect();
        writeln!(scene.out, "{}", Value::Array(all))?;
        return Ok(EXIT_DONE);
    }
    for (name, query) in &settings.searches {
        writeln!(scene.out, "@{}  {}", untrusted_text::escape_line(name), untrusted_text::escape_line(query))?;
    }
    if settings.searches.is_empty() {
        writeln!(scene.out, "No search is saved; `tracebook searches NAME QUERY` saves one.")?;
    }
    Ok(EXIT_DONE)
}

/// Runs `cmd_related`: prints notes that are semantically similar to one.
pub(super) fn cmd_related(scene: &mut CommandContext<'_>, args: &RelatedArguments) -> Result<u8, CliError> {
    let limit = hit_limit(args.limit.as_deref())?;
    let note = resolve::resolve_note(scene, args.note.as_str())?;
    let volume = searched_volume(scene, args.volume.as_deref())?;
    wait_for_index(scene)?;
    let search = scene.handle.search();
    // If embeddings aren't ready in time, related notes are found by words and links.
    let _ = search.wait_until_embedded(EMBEDDING_TIMEOUT);
    let wait = search.find_related(note, (limit, volume), || {});
    let answer = wait.recv().map_err(|_| CliError::workspace("the program is closing"))?;
    let counts = search.counts().map_err(CliError::workspace)?;
    let none = match counts.meanings.saturating_sub(counts.embedded) {
        0 => "Nothing is near to that note in meaning.".to_owned(),
        left => format!(
            "Nothing was found yet: {left} of {} passages aren't read for their meaning. `tracebook index rebuild` \
             finishes that.",
            counts.meanings
        ),
    };
    print_hits(scene, &answer.map_err(CliError::workspace)?, false, &none)
}

/// Prints hits, or a message that there are none.
fn print_hits(
    scene: &mut CommandContext<'_>,
    answer: &SearchAnswer,
    explain: bool,
    none: &str,
) -> Result<u8, CliError> {
    let twice = ambiguous_paths(scene, &answer.hits)?;
    if scene.json {
        let hits: Vec<Value> = answer
            .hits
            .iter()
            .map(|hit| {
                let (text, _) = hit.excerpt(&answer.terms, MAX_JSON_PASSAGE_BYTES);
                let mut value = json!({
                    "address": hit_address(hit, &twice),
                    "volume": hit.volume,
                    "title": hit.title,
                    "text": text,
                    "score": hit.score,
                    "why": hit.why.describe(),
                });
                if explain {
                    value["parts"] = hit.why.parts.iter().map(|part| (part.name.clone(), part.value)).collect();
                    value["path"] = hit.path.as_str().into();
                    value["kind"] = hit.kind.name().into();
                    value["heading"] = hit.heading.as_str().into();
                    value["more"] = hit.more.into();
                    value["nearest"] = hit.why.nearest.clone().map(|part| hit.text[part].to_owned()).into();
                }
                value
            })
            .collect();
        writeln!(scene.out, "{}", Value::Array(hits))?;
        return Ok(EXIT_DONE);
    }
    for hit in &answer.hits {
        let (text, _) = hit.excerpt(&answer.terms, MAX_SHOWN_PASSAGE_BYTES);
        writeln!(
            scene.out,
            "{}  {}",
            untrusted_text::escape_line(&hit_address(hit, &twice)),
            untrusted_text::escape_line(&hit.title)
        )?;
        if !text.trim().is_empty() {
            writeln!(scene.out, "    {}", text.split_whitespace().collect::<Vec<_>>().join(" "))?;
        }
        let more = if hit.more > 0 { format!("; {} more in this note", hit.more) } else { String::new() };
        writeln!(scene.out, "    {}{more}", hit.why.describe())?;
        if explain {
            let parts: Vec<String> =
                hit.why.parts.iter().map(|part| format!("{} {:.3}", part.name, part.value)).collect();
            writeln!(scene.out, "    score {:.3} ({})", hit.score, parts.join(", "))?;
        }
    }
    if answer.hits.is_empty() {
        writeln!(scene.out, "{none}")?;
    }
    Ok(EXIT_DONE)
}

/// Waits until the index contains what is on disk. If that fails, prints a warning and uses the existing index.
pub(super) fn wait_for_index(scene: &mut CommandContext<'_>) -> Result<(), CliError> {
    resolve::wait_for_volumes(scene, true)?;
    // Text that the disk refuses can't be waited for.
    let saved = |session: &Session| {
        let can_wait = |note: &Note| note.file.trouble.is_none();
        (session.are_saved(can_wait) || session.saving().trouble.is_some()).then_some(())
    };
    scene.handle.wait(Some(EDIT_SAVE_TIMEOUT), saved)?;
    let wait = |search: SearchService| search.wait_until_indexed(INDEX_TIMEOUT);
    let waited = match models::is_for_person(scene) {
        true => models::run_with_progress(scene, wait)?,
        false => wait(scene.handle.search().clone()),
    };
    match waited {
        Err(why) if scene.handle.search().counts().is_ok() => {
            writeln!(scene.errors, "tracebook: what changed last may not be found: {why}")?;
            Ok(())
        }
        settled => settled.map_err(CliError::workspace),
    }
}

/// Returns for each path whether several volumes contain it.
fn ambiguous_paths(scene: &CommandContext<'_>, hits: &[NoteHit]) -> Result<HashMap<String, bool>, CliError> {
    let paths: Vec<String> = hits.iter().map(|hit| hit.path.clone()).collect();
    Ok(scene.handle.read(move |session| {
        let many = |path: &String| session.volumes().filter(|volume| volume.files.contains_key(path)).count() > 1;
        paths.into_iter().map(|path| (path.clone(), many(&path))).collect()
    })?)
}

/// Returns a hit's address: the note as commands accept it, and the block after `#`.
fn hit_address(hit: &NoteHit, twice: &HashMap<String, bool>) -> String {
    let volume =
        if twice.get(&hit.path).is_some_and(|twice| *twice) { format!("{}:", hit.volume) } else { String::new() };
    format!("{volume}{}", hit.link_address())
}

pub(super) fn cmd_index(scene: &mut CommandContext<'_>, args: &IndexArguments) -> Result<u8, CliError> {
    match args.what.as_str() {
        "status" => {
            wait_for_index(scene)?;
            print_index_status(scene)
        }
        "rebuild" => {
            resolve::wait_for_volumes(scene, true)?;
            let rebuilt = models::run_with_progress(scene, |search| {
                search.rebuild(INDEX_TIMEOUT).and_then(|()| search.wait_until_embedded(INDEX_TIMEOUT))
            })?;
            rebuilt.map_err(CliError::workspace)?;
            print_index_status(scene)
        }
        "verify" => {
            let found = scene.handle.search().verify(INDEX_TIMEOUT).map_err(CliError::workspace)?;
            if !found.is_empty() {
                wait_for_index(scene)?;
            }
            if scene.json {
                writeln!(scene.out, "{}", json!({"ok": found.is_empty(), "found": found}))?;
            } else if found.is_empty() {
                writeln!(scene.out, "The search index is complete.")?;
            } else {
                found.iter().try_for_each(|line| writeln!(scene.out, "{line}"))?;
                writeln!(scene.out, "It was made again.")?;
            }
            Ok(if found.is_empty() { EXIT_DONE } else { EXIT_FAILED })
        }
        "models" => models::list_models(scene),
        "use" => models::use_model(scene, needed(args.name.as_deref(), "NAME")?),
        "reranker" => models::use_reranker(scene, needed(args.name.as_deref(), "NAME")?),
        "exclude" => set_excluded(scene, needed(args.name.as_deref(), "NAME")?, true),
        "include" => set_excluded(scene, needed(args.name.as_deref(), "NAME")?, false),
        "pause" => models::set_paused(scene, true),
        "resume" => models::set_paused(scene, false),
        other => {
            let actions =
                ["status", "rebuild", "verify", "models", "use", "reranker", "exclude", "include", "pause", "resume"];
            Err(unknown_action("index", &actions, other))
        }
    }
}

/// Excludes a folder's notes from search, or includes them again.
fn set_excluded(scene: &mut CommandContext<'_>, folder: &str, out: bool) -> Result<u8, CliError> {
    let folder = folder.trim().trim_matches('/').to_owned();
    let mut settings = scene.handle.read(|session| session.settings().clone())?;
    let known = settings.unsearched.contains(&folder);
    match (out, known) {
        (true, false) if !folder.is_empty() => settings.unsearched.push(folder),
        (true, false) => {
            return Err(CliError::usage("name the folder; `tracebook index pause` stops all search by meaning"));
        }
        (false, true) => settings.unsearched.retain(|other| *other != folder),
        (false, false) => return Err(CliError::usage(format!("the folder {folder} isn't left out of search"))),
        (true, true) => {}
    }
    scene.handle.run_command(Command::Set { settings: Box::new(settings) })?;
    wait_for_index(scene)?;
    print_index_status(scene)
}

pub(super) fn print_index_status(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    let search = scene.handle.search();
    let counts = search.counts().map_err(CliError::workspace)?;
    let fresh = search.freshness();
    let excluded = scene.handle.read(|session| session.settings().unsearched.clone())?;
    if scene.json {
        let value = json!({
            "excluded": excluded,
            "notes": counts.notes, "passages": counts.passages, "bytes": counts.bytes, "waiting": fresh.waiting,
            "meanings": counts.embedded, "meanings_wanted": counts.meanings,
            "model": fresh.answering_model.to_string(), "growing": fresh.pending_model.map(|choice| choice.to_string()),
            "paused": fresh.paused, "trouble": fresh.error, "words_alone": fresh.words_only_reason,
            "mended": fresh.repair_notice,
        });
        writeln!(scene.out, "{value}")?;
    } else {
        writeln!(
            scene.out,
            "{}, {}, {}; {} still to read; {} of {} passages are found by meaning",
            counted(counts.notes, "note"),
            counted(counts.passages, "passage"),
            counted(counts.bytes, "byte"),
            fresh.waiting,
            counts.embedded,
            counts.meanings
        )?;
        let paused = if fresh.paused { "; paused" } else { "" };
        match &fresh.pending_model {
            Some(growing) => writeln!(scene.out, "meaning by {}, soon by {growing}{paused}", fresh.answering_model)?,
            None => writeln!(scene.out, "meaning by {}{paused}", fresh.answering_model)?,
        }
        if !excluded.is_empty() {
            writeln!(scene.out, "left out: {}", untrusted_text::escape_line(&excluded.join(", ")))?;
        }
        for line in
            fresh.repair_notice.iter().chain(&fresh.error).chain(&fresh.words_only_reason).chain(&fresh.reranker)
        {
            writeln!(scene.out, "{line}")?;
        }
    }
    Ok(EXIT_DONE)
}
