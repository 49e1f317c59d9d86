//! `cmd_base`: prints a view of a collection.

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, file_ops};
use crate::arguments::BaseArguments;
use collection::{Collection, CollectionCell, CollectionTable};
use engine::Session;
use host::clock;
use host::fs::confined_dir::ConfinedPath;
use store::{DocId, FileKind};

/// Maximum size of a collection's file in bytes.
const MAX_COLLECTION_BYTES: u64 = 16 << 20;

/// Resolves a word to a collection: its volume, its file and its path.
fn find_collection(session: &Session, word: &str) -> Option<(DocId, DocId, ConfinedPath)> {
    let named = |path: &str| {
        let wanted = word.strip_suffix(".base").unwrap_or(word).to_lowercase();
        let path = path.strip_suffix(".base").map(str::to_lowercase);
        path.is_some_and(|path| path == wanted || path.ends_with(&format!("/{wanted}")))
    };
    let whole = session.volumes().find_map(|volume| {
        let path = word.strip_prefix(&volume.name).and_then(|rest| rest.strip_prefix(':'))?;
        Some((volume, volume.files.get(path).filter(|row| row.kind == FileKind::Collection)?))
    });
    let near = || {
        session.volumes().find_map(|volume| {
            let exact = volume.files.get(word).filter(|row| row.kind == FileKind::Collection);
            let row = exact.or_else(|| volume.files.values().find(|row| named(&row.path)))?;
            Some((volume, row))
        })
    };
    let (volume, row) = whole.or_else(near)?;
    Some((volume.id, row.id, ConfinedPath::new(volume.root.as_ref()?, &row.path)))
}

pub(super) fn cmd_base(scene: &mut CommandContext<'_>, args: &BaseArguments) -> Result<u8, CliError> {
    let word = args.file.as_str().to_owned();
    file_ops::wait_for_links(scene)?;
    let wanted = word.clone();
    let found = scene.handle.read(move |session| find_collection(session, &wanted))?;
    let Some((volume, this, file)) = found else {
        return Err(CliError::usage(format!("there is no collection “{word}”; its file ends in .base")));
    };
    let text = file.read_text(MAX_COLLECTION_BYTES).map_err(CliError::workspace)?;
    let base = Collection::parse(&text).map_err(|why| CliError::usage(why.to_string()))?;
    let name = args.view.as_deref();
    let view = base.view_index(name).ok_or_else(|| {
        let names: Vec<&str> = base.views.iter().map(|view| view.name.as_str()).collect();
        CliError::usage(format!("there is no view “{}”; there are: {}", name.unwrap_or(""), names.join(", ")))
    })?;
    let now = clock::local_now();
    let read = move |session: &Session| {
        session
            .volume(volume)
            .map(|volume| base.evaluate_view(volume.into(), view, Some(this), now))
            .unwrap_or_default()
    };
    let table = scene.handle.read(read)?;
    for problem in &table.problems {
        writeln!(scene.errors, "tracebook: {problem}")?;
    }
    print_table(scene, &table)?;
    Ok(if table.is_broken { EXIT_FAILED } else { EXIT_DONE })
}

fn print_table(scene: &mut CommandContext<'_>, table: &CollectionTable) -> Result<(), CliError> {
    if scene.json {
        for row in &table.rows {
            let names = table.columns.iter().map(|column| column.name.clone());
            let cells = names.zip(row.cells.iter().map(|cell| serde_json::Value::from(cell.to_text())));
            let cells: serde_json::Map<String, serde_json::Value> = cells.collect();
            let line = serde_json::json!({"path": row.path, "group": row.group, "cells": cells});
            writeln!(scene.out, "{line}")?;
        }
        for problem in &table.problems {
            writeln!(scene.out, "{}", serde_json::json!({"problem": problem}))?;
        }
        return Ok(());
    }
    let titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
    writeln!(scene.out, "{}", titles.join("\t"))?;
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().map(CollectionCell::to_text).collect();
        writeln!(scene.out, "{}", cells.join("\t"))?;
    }
    Ok(())
}
