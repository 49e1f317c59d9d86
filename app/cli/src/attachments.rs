//! `cmd_attachments`: lists, prints, writes and deletes files of volumes that aren't notes.

use super::{CliError, CommandContext, EXIT_DONE, file_ops, resolve, system_files, volumes};
use crate::arguments::AttachmentsArguments;
use engine::Session;
use host::fs::atomic_write::{ReplaceOutcome, modified_nanos, replace_file};
use host::fs::confined_dir::ConfinedPath;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;
use store::{BlobHash, DocId, FileKind, is_hidden};
use text::untrusted_text;

/// Maximum size in bytes of an attachment that is written.
const MAX_WRITTEN_BYTES: u64 = 64 << 20;
/// Number of bytes that are printed at once.
const COPY_BUFFER_BYTES: usize = 64 << 10;

/// An attachment of a volume.
#[derive(Clone, Debug)]
pub(super) struct AttachmentPlace {
    id: DocId,
    pub(super) volume: String,
    root: PathBuf,
    pub(super) path: String,
    bytes: u64,
    /// Modification time in nanoseconds since 1970.
    modified: i64,
}

impl AttachmentPlace {
    fn version(&self) -> String {
        file_version(self.bytes, self.modified)
    }

    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "path": self.path, "volume": self.volume, "bytes": self.bytes, "modified": self.modified / 1_000_000,
            "version": self.version(),
        })
    }

    /// Opens the file. What it says of itself is then what the disk says.
    pub(super) fn open(&mut self) -> Result<impl Read + Seek + use<>, CliError> {
        let opened = ConfinedPath::new(&self.root, &self.path).open();
        let (file, about) = opened.map_err(|why| CliError::usage(why.to_string()))?;
        (self.bytes, self.modified) = (about.len(), modified_nanos(&about));
        Ok(file)
    }
}

/// Returns the version of a file, which changes when it's written.
fn file_version(bytes: u64, modified: i64) -> String {
    let hash = BlobHash::of(format!("{bytes} {modified}").as_bytes()).to_string();
    hash.get(..32).unwrap_or_default().to_owned()
}

pub(super) fn cmd_attachments(scene: &mut CommandContext<'_>, args: &AttachmentsArguments) -> Result<u8, CliError> {
    let action = args.action.as_deref().unwrap_or("list");
    let needed = || {
        let why = format!("name the attachment: tracebook attachments {action} PATH");
        args.path.clone().ok_or_else(|| CliError::usage(why))
    };
    match action {
        "list" => list_attachments(scene, args),
        "get" => print_attachment(scene, args, &needed()?),
        "put" => write_attachment(scene, args, &needed()?),
        "remove" => {
            let mut found = find_attachment(scene, args.volume.as_deref(), &needed()?)?;
            check_version(&mut found, args.if_version.as_deref())?;
            file_ops::delete_file(scene, found.id)?;
            print_place(scene, &found)
        }
        other => Err(CliError::usage(format!("attachments does list, get, put or remove, not “{other}”"))),
    }
}

/// Returns the attachments of a volume, or of all.
pub(super) fn read_places(scene: &CommandContext<'_>, volume: Option<&str>) -> Result<Vec<AttachmentPlace>, CliError> {
    let only = match volume {
        Some(name) => resolve::resolve_volume(scene, Some(name))?,
        None => None,
    };
    resolve::wait_for_volumes(scene, true)?;
    let read = move |session: &Session| {
        let mut volumes: Vec<_> =
            session.volumes().filter(|volume| only.is_none_or(|only| only == volume.id)).collect();
        volumes.sort_by_key(|volume| &volume.name);
        let mut places = Vec::new();
        for volume in volumes {
            let Some(root) = &volume.root else { continue };
            let rows = volume.files.values().filter(|row| row.kind == FileKind::Attachment);
            places.extend(rows.map(|row| AttachmentPlace {
                id: row.id,
                volume: volume.name.clone(),
                root: root.clone(),
                path: row.path.clone(),
                bytes: row.size,
                modified: row.mtime,
            }));
        }
        places
    };
    Ok(scene.handle.read(read)?)
}

fn list_attachments(scene: &mut CommandContext<'_>, args: &AttachmentsArguments) -> Result<u8, CliError> {
    let places = read_places(scene, args.volume.as_deref())?;
    if scene.json {
        let rows: Vec<serde_json::Value> = places.iter().map(AttachmentPlace::to_json).collect();
        writeln!(scene.out, "{}", serde_json::Value::from(rows))?;
        return Ok(EXIT_DONE);
    }
    scene.explain_empty_list(places.is_empty(), "No attachments. `tracebook attachments put PATH` writes one.")?;
    for place in places {
        let (volume, path) = (untrusted_text::escape_line(&place.volume), untrusted_text::escape_line(&place.path));
        writeln!(scene.out, "{:>12} bytes  {volume}:{path}", place.bytes)?;
    }
    Ok(EXIT_DONE)
}

/// Finds an attachment by its path in the named volume, or as `VOLUME:PATH`, or by its path if only one volume has it.
fn find_attachment(scene: &CommandContext<'_>, volume: Option<&str>, word: &str) -> Result<AttachmentPlace, CliError> {
    let places = read_places(scene, volume)?;
    let is_whole = |place: &&AttachmentPlace| {
        volume.is_none()
            && word.strip_prefix(&place.volume).and_then(|rest| rest.strip_prefix(':')) == Some(&place.path)
    };
    if let Some(place) = places.iter().find(is_whole) {
        return Ok(place.clone());
    }
    let mut named = places.into_iter().filter(|place| place.path == word);
    match (named.next(), named.next()) {
        (Some(place), None) => Ok(place),
        (None, _) => {
            Err(CliError::usage(format!("there is no attachment “{word}”; `tracebook attachments` lists them")))
        }
        (Some(_), Some(_)) => Err(CliError::usage(format!("several volumes have “{word}”; name one: --volume NAME"))),
    }
}

/// Refuses an attachment that isn't in the version that the caller knows.
fn check_version(place: &mut AttachmentPlace, wanted: Option<&str>) -> Result<(), CliError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let _file = place.open()?;
    if place.version() == wanted { Ok(()) } else { Err(changed(&place.path)) }
}

fn changed(path: &str) -> CliError {
    CliError::usage(format!("the attachment has changed since it was read; read it again: {path}"))
}

fn print_place(scene: &mut CommandContext<'_>, place: &AttachmentPlace) -> Result<u8, CliError> {
    if scene.json {
        writeln!(scene.out, "{}", place.to_json())?;
    } else {
        writeln!(scene.out, "{}:{}", place.volume, place.path)?;
    }
    Ok(EXIT_DONE)
}

/// Prints what is known about an attachment as JSON, or its bytes.
fn print_attachment(scene: &mut CommandContext<'_>, args: &AttachmentsArguments, word: &str) -> Result<u8, CliError> {
    let mut place = find_attachment(scene, args.volume.as_deref(), word)?;
    let mut file = place.open()?;
    if args.if_version.as_ref().is_some_and(|version| *version != place.version()) {
        return Err(changed(&place.path));
    }
    if scene.json {
        return print_place(scene, &place);
    }
    let number = |word: &Option<String>, option: &str| match word.as_deref().map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(CliError::usage(format!("--{option} wants a number of bytes"))),
    };
    let (from, length) = (number(&args.from, "from")?, number(&args.length, "length")?);
    let unreadable = |error: std::io::Error| {
        CliError::workspace(format!("{} can't be read: {}", place.path, store::disk::io_reason(&error)))
    };
    file.seek(SeekFrom::Start(from.unwrap_or(0))).map_err(unreadable)?;
    let mut rest = file.take(length.unwrap_or(u64::MAX));
    let mut buffer = vec![0; COPY_BUFFER_BYTES];
    loop {
        let count = rest.read(&mut buffer).map_err(unreadable)?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { break };
        scene.out.write_all(read)?;
    }
    Ok(EXIT_DONE)
}

/// Writes standard input to a new attachment, or with a version over the one that has it.
fn write_attachment(scene: &mut CommandContext<'_>, args: &AttachmentsArguments, word: &str) -> Result<u8, CliError> {
    let mut bytes = Vec::new();
    (&mut *scene.input).take(MAX_WRITTEN_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_WRITTEN_BYTES {
        return Err(CliError::usage(format!("an attachment has at most {} MiB", MAX_WRITTEN_BYTES >> 20)));
    }
    let (named, word) = match (args.volume.as_deref(), word.split_once(':')) {
        (None, Some((volume, path))) => (Some(volume), path),
        (volume, _) => (volume, word),
    };
    let (volume, root) = volumes::volume_or_new(scene, named, true)?;
    let path = host::fs::confined_dir::normalize_path(word).map_err(|why| CliError::usage(why.to_string()))?;
    if FileKind::from_path(&path).is_text() {
        let why = "notes, collections and scripts aren't attachments; use `tracebook new` and `tracebook edit`";
        return Err(CliError::usage(format!("{why}: {path}")));
    }
    if is_hidden(&path) {
        return Err(CliError::usage(format!("names that begin with a dot are for other programs: {path}")));
    }
    system_files::refuse_system_path(scene, volume, &path)?;
    if let Some(why) = scene.handle.read(move |session| session.read_only_reason(volume))? {
        return Err(CliError::usage(why));
    }
    let expected = match args.if_version.as_deref() {
        None => None,
        Some(_) => Some(current_hash(scene, args, named, &path)?),
    };
    let place = ConfinedPath::new(&root, &path);
    let (folder, name) = place.open_parent(true).map_err(|why| CliError::usage(why.to_string()))?;
    match folder.metadata(&name).map(|there| other_entry(there.is_file(), there.is_dir(), there.is_symlink())) {
        Ok(Some(what)) => {
            return Err(CliError::usage(format!("{what} with that name already exists; choose another: {path}")));
        }
        Err(error) if error.kind() == ErrorKind::InvalidFilename => {
            return Err(CliError::usage(format!("the disk can't hold this name; choose a shorter one: {path}")));
        }
        Ok(None) | Err(_) => {}
    }
    let written = replace_file(&folder.join(&name), expected, &bytes);
    match written.map_err(|error| CliError::workspace(place.with_display_path(error)))? {
        ReplaceOutcome::Done { .. } => {}
        ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone if expected.is_some() => return Err(changed(&path)),
        ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
            return Err(CliError::usage(format!("a file with that name already exists; choose another: {path}")));
        }
    }
    volumes::open_volume(scene, root, None)?;
    let name = scene.handle.read(move |session| session.volume(volume).map(|volume| volume.name.clone()))?;
    let mut place = find_attachment(scene, name.as_deref(), &path)?;
    let _file = place.open()?;
    print_place(scene, &place)
}

/// Returns what stands in the place of a file: a folder, a symbolic link, or something else that isn't a plain file.
fn other_entry(is_file: bool, is_folder: bool, is_link: bool) -> Option<&'static str> {
    match (is_file, is_folder, is_link) {
        (true, ..) => None,
        (_, true, _) => Some("a folder"),
        (.., true) => Some("a symbolic link"),
        (false, false, false) => Some("something that isn't a file"),
    }
}

/// Returns the hash of an attachment that has the version in `args`.
fn current_hash(
    scene: &CommandContext<'_>,
    args: &AttachmentsArguments,
    volume: Option<&str>,
    path: &str,
) -> Result<BlobHash, CliError> {
    let mut place = find_attachment(scene, volume, path).map_err(|_| changed(path))?;
    let file = place.open()?;
    if args.if_version.as_ref().is_some_and(|version| *version != place.version()) {
        return Err(changed(path));
    }
    let mut old = Vec::new();
    // One that is larger than this was not written here; the hash of a part then fits nothing.
    let read = file.take(MAX_WRITTEN_BYTES * 4).read_to_end(&mut old);
    read.map_err(|error| CliError::workspace(format!("{path} can't be read: {}", store::disk::io_reason(&error))))?;
    Ok(BlobHash::of(&old))
}
