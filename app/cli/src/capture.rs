//! `tracebook capture`: appends a thought to today's note without opening anything.

use super::{CliError, CommandContext, EXIT_DONE, notes, resolve, volumes};
use crate::arguments::CaptureArguments;
use engine::{Command, Session};
use jiff::Zoned;
use std::io::Read;
use text::untrusted_text;

/// Maximum number of bytes captured at once.
const MAX_CAPTURE_BYTES: u64 = 1 << 20;

pub(super) fn cmd_capture(scene: &mut CommandContext<'_>, args: &CaptureArguments) -> Result<u8, CliError> {
    let mut text = args.text.clone();
    if text == "-" {
        text.clear();
        if scene.input.take(MAX_CAPTURE_BYTES).read_to_string(&mut text).is_err() {
            return Err(CliError::usage("standard input is not UTF-8 text"));
        }
    }
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(CliError::usage("there is nothing to capture: give a text, or `-` and standard input"));
    }
    let (volume, _) = volumes::volume_or_new(scene, args.volume.as_deref(), true)?;
    resolve::wait_for_volumes(scene, true)?;
    let settings = scene.handle.read(|session| session.settings().clone())?;
    let format = text::date_format::strftime_format(&settings.daily_format);
    let name = jiff::fmt::strtime::format(&format, &Zoned::now()).map_err(|error| {
        CliError::usage(format!("“{}” isn't a date format ({error}): change it in the settings", settings.daily_format))
    })?;
    let folder = settings.daily_folder.trim().trim_matches('/');
    let path = if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") };
    let known = path.clone();
    let find = move |session: &Session| Some(session.volume(volume)?.files.get(&known)?.id);
    let note = match scene.handle.read(find.clone())? {
        Some(note) => note,
        None => {
            let text = format!("# {name}\n\n");
            scene.handle.run_command(Command::NewNote { volume, path: path.clone(), text })?;
            export::open_note::wait_until_saved(scene.handle)?;
            scene.handle.read(find)?.ok_or_else(|| CliError::workspace(format!("{path} could not be made")))?
        }
    };
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let (at, ends) =
        export::open_note::read_loaded_note(scene.handle, note, |note| (note.length(), note.text().ends_with('\n')))?;
    // Further lines belong to the same item.
    let item = text.replace('\n', "\n  ");
    let insert = format!("{}- {item}\n", if ends || at == 0 { "" } else { "\n" });
    scene.handle.run_command(Command::Edit { note, at, delete: 0, insert })?;
    notes::wait_for_file(scene, note)?;
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"path": path, "id": note}))?;
    } else {
        writeln!(scene.out, "Added to {}", untrusted_text::escape_line(&path))?;
    }
    Ok(EXIT_DONE)
}
