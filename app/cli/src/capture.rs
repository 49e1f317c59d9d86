//! `tracebook capture`: appends a thought to today's note without opening anything.

use super::{CliError, CommandContext, EXIT_DONE, notes, resolve, retried_commands, volumes};
use crate::arguments::CaptureArguments;
use engine::{Command, Note, Session};
use host::fs::confined_dir::ConfinedPath;
use host::fs::copy;
use jiff::Zoned;
use std::io::Read;
use store::{DocId, FileKind};
use text::attachment_link::{attachment_link, attachment_place};
use text::text_edit::TextEdit;
use text::untrusted_text;

/// Maximum number of bytes captured at once.
const MAX_CAPTURE_BYTES: u64 = 1 << 20;
/// Maximum size of an attachment in bytes.
const MAX_ATTACHMENT_BYTES: u64 = 16 << 20;

pub(super) fn cmd_capture(scene: &mut CommandContext<'_>, args: &CaptureArguments) -> Result<u8, CliError> {
    let mut text = args.text.clone();
    let attached = args.attach.as_deref().map(|name| read_attachment(scene, name)).transpose()?;
    if text == "-" && attached.is_none() {
        text = crate::parse::read_text_input(scene.input, MAX_CAPTURE_BYTES)?;
    }
    let text = text.trim().to_owned();
    if text.is_empty() && attached.is_none() {
        return Err(CliError::usage("there is nothing to capture: give a text, or `-` and standard input"));
    }
    let (volume, root) = volumes::volume_or_new(scene, args.volume.as_deref(), true)?;
    resolve::wait_for_volumes(scene, true)?;
    let settings = scene.handle.read(|session| session.settings().clone())?;
    let format = text::date_format::strftime_format(&settings.daily_format);
    let name = jiff::fmt::strtime::format(&format, &Zoned::now()).map_err(|error| {
        CliError::usage(format!("“{}” isn't a date format ({error}): change it in the settings", settings.daily_format))
    })?;
    let name = text::date_format::write_ordinals(&name);
    let folder = settings.daily_folder.trim().trim_matches('/');
    let path = if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") };
    let known = path.clone();
    let find = move |session: &Session| Some(session.volume(volume)?.files.get(&known)?.id);
    let note = match scene.handle.read(find.clone())? {
        Some(note) => note,
        None => {
            let text = daily_text(scene, volume, &settings.daily_template, &name)?;
            let made = scene.handle.run_command(Command::NewNote { volume, path: path.clone(), text });
            export::open_note::wait_until_saved(scene.handle)?;
            // Another device or program may have made it meanwhile.
            let note = scene.handle.read(find)?;
            let unmade = || CliError::workspace(format!("{path} could not be made"));
            note.ok_or_else(|| made.err().map_or_else(unmade, Into::into))?
        }
    };
    let _held = export::open_note::hold_note(scene.handle, note)?;
    export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
    let mut text = text;
    if let Some((name, bytes)) = attached {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let (folder, way) = attachment_place(folder, &settings.attachment_folder);
        let stored = copy::store_attachment(&ConfinedPath::new(&root, &folder), &name, &bytes);
        let link = attachment_link(&format!("{way}{}", stored.map_err(CliError::usage)?));
        text = if text.is_empty() { link } else { format!("{text}\n{link}") };
    }
    // Further lines belong to the same item.
    let item = text.replace('\n', "\n  ");
    let line = format!("- {item}\n");
    let is_missing_only = args.missing;
    retried_commands::edit_as_planned(scene.handle, note, move |_, text| {
        let has_item = text.starts_with(&line) || text.contains(&format!("\n{line}"));
        if is_missing_only && has_item {
            return Ok(Vec::new());
        }
        let insert = format!("{}{line}", if text.is_empty() || text.ends_with('\n') { "" } else { "\n" });
        Ok(vec![TextEdit { at: text.len(), delete: 0, insert }])
    })?;
    finish(scene, &path, note)
}

/// Returns the text of a new daily note: the template's, if the volume has it.
fn daily_text(scene: &mut CommandContext<'_>, volume: DocId, template: &str, name: &str) -> Result<String, CliError> {
    let template = template.trim().to_owned();
    let known = scene.handle.read(move |session| {
        let row = session.volume(volume)?.files.get(&template)?;
        (row.kind == FileKind::Note).then_some(row.id)
    })?;
    let Some(template) = known else { return Ok(format!("# {name}\n\n")) };
    let read = export::open_note::hold_note(scene.handle, template)
        .and_then(|_held| export::open_note::read_loaded_note(scene.handle, template, Note::text));
    let template = match read {
        Ok(template) => template,
        Err(why) => {
            // What the user has to say doesn't depend on it.
            let why = CliError::from(why).why;
            writeln!(
                scene.errors,
                "tracebook: the daily template can't be read: {}",
                untrusted_text::escape_line(&why)
            )?;
            return Ok(format!("# {name}\n\n"));
        }
    };
    let (title, now) = (name.rsplit('/').next().unwrap_or(name), Zoned::now());
    let write_date = |format: &str| {
        jiff::fmt::strtime::format(text::date_format::strftime_format(format), &now)
            .ok()
            .map(|date| text::date_format::write_ordinals(&date))
            .filter(|date| !date.is_empty())
    };
    let mut text = text::date_format::fill_template(&template, title, write_date);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Reads the attachment on standard input.
fn read_attachment(scene: &mut CommandContext<'_>, name: &str) -> Result<(String, Vec<u8>), CliError> {
    let is_name = !name.starts_with('.') && name.contains('.') && !name.contains(['/', '\\', '<', '>']);
    if !is_name || name.contains(char::is_control) {
        return Err(CliError::usage(format!(
            "an attachment can't have this name: {}",
            untrusted_text::escape_line(name)
        )));
    }
    let mut bytes = Vec::new();
    scene.input.take(MAX_ATTACHMENT_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        0 => Err(CliError::usage("there is no attachment on standard input")),
        1..=MAX_ATTACHMENT_BYTES => Ok((name.to_owned(), bytes)),
        _ => Err(CliError::usage(format!("an attachment has at most {} MB here", MAX_ATTACHMENT_BYTES >> 20))),
    }
}

/// Waits until the note's file has the item, and names the note.
fn finish(scene: &mut CommandContext<'_>, path: &str, note: DocId) -> Result<u8, CliError> {
    notes::wait_for_file(scene, note)?;
    if scene.json {
        let volume = move |session: &Session| {
            let (volume, _) = session.locate_file(note)?;
            session.volume(volume).map(|volume| volume.name.clone())
        };
        let volume = scene.handle.read(volume)?;
        writeln!(scene.out, "{}", serde_json::json!({"path": path, "id": note, "volume": volume}))?;
    } else {
        writeln!(scene.out, "Added to {}", untrusted_text::escape_line(path))?;
    }
    Ok(EXIT_DONE)
}
