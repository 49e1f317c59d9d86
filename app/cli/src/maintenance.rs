//! `cmd_init`, `fsck`, `cmd_backup`, `cmd_restore`, `cmd_doctor`: maintenance of the whole workspace.

use super::{
    CliError, CommandContext, EXIT_DONE, EXIT_FAILED, EXIT_WORKSPACE, platform_values, program_path, sample_workspace,
};
use crate::arguments::{BackupArguments, DoctorArguments, FsckArguments, InitArguments, RestoreArguments};
use crate::plurals::counted;
use anyhow::anyhow;
use engine::{Command, Session};
use host::maintenance::backup::{BackupError, BackupProgress, BackupTrust};
use host::maintenance::bug_report;
use host::maintenance::check::{CheckReport, FindingSeverity};
use host::maintenance::platform::detect_platform;
use host::{OpenError, WorkspaceLock, WorkspaceOptions, fs::copy};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::disk::DiskError;

pub(super) fn cmd_init(folder: &Path, args: &InitArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    if host::workspace_exists(folder) {
        return Err(CliError::usage(format!("there is a workspace already: {}", folder.display())));
    }
    refuse_notes_folder(folder)?;
    let driver = host::open_workspace(folder, WorkspaceOptions { program: program_path()?, create: true })?;
    let place = driver.folder().to_owned();
    let sample = if args.sample {
        let handle = driver.handle();
        let session = std::thread::spawn(move || driver.run());
        let made = sample_workspace::make_sample(&handle, &place);
        handle.close();
        let closed = session.join().unwrap_or_else(|_| Err(anyhow!("the session failed")));
        made.and(closed)
    } else {
        driver.close()
    };
    sample.map_err(CliError::workspace)?;
    if json {
        writeln!(out, "{}", serde_json::json!({"workspace": place}))?;
    } else {
        writeln!(out, "made a workspace: {}", place.display())?;
    }
    Ok(EXIT_DONE)
}

/// Returns the error for a folder without a workspace. That is the user's typo, not damage, unless nobody can look.
pub(super) fn no_workspace(folder: &Path, error: &OpenError) -> CliError {
    match copy::folder_refusal(folder) {
        Some(why) => CliError::workspace(format!(
            "the folder can't be read ({why}); change its permissions or use another workspace: {}",
            folder.display()
        )),
        None => CliError::usage(error),
    }
}

/// Refuses to make a workspace in a folder of notes: its files would lie among them, and the folder could no longer be
/// opened as a volume.
pub(super) fn refuse_notes_folder(folder: &Path) -> Result<(), CliError> {
    if host::workspace_exists(folder) || !copy::holds_file_ending(folder, ".md") {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "a workspace is a folder of its own, and this one holds notes; `tracebook open` opens it as a volume: {}",
        folder.display()
    )))
}

/// Command that builds Tracebook with all features.
const FULL_BUILD_COMMAND: &str = "cargo build --release --ignore-rust-version --features full";

/// Returns the error of a build without the hub.
#[cfg(not(feature = "hub"))]
pub(super) fn built_without_hub() -> CliError {
    CliError::usage(format!("this build has no hub server; build one that has it with `{FULL_BUILD_COMMAND}`"))
}

/// Returns the parts that a build may leave out, and how to get them.
fn optional_parts() -> Vec<host::MachineCapability> {
    // What follows the command to build with all features: not all of them are in `full`.
    let parts = [
        ("browser tools", "", cfg!(feature = "browser")),
        ("container tools", "", cfg!(feature = "containers")),
        ("hub server", "", cfg!(feature = "hub")),
        ("ONNX search models", "", cfg!(feature = "onnx")),
        ("gRPC server", "", cfg!(feature = "grpc")),
        ("science kernel", "", cfg!(feature = "science")),
        ("OpenTelemetry export", ",otel", cfg!(feature = "otel")),
    ];
    let capability = |(name, more, there): (&str, &str, bool)| host::MachineCapability {
        area: "build",
        name: name.to_owned(),
        there,
        note: match there {
            true => "built in".to_owned(),
            false => format!("left out of this build; `{FULL_BUILD_COMMAND}{more}` has it"),
        },
    };
    parts.map(capability).into()
}

pub(super) fn cmd_doctor(
    folder: &Path,
    args: &DoctorArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let mut offers = host::detect_capabilities(&program_path()?, folder);
    offers.extend(optional_parts());
    let there = host::workspace_exists(folder);
    let note = match (there, host::owner_socket(folder)) {
        (false, _) => "there is no workspace here yet; the window or `tracebook init` makes one".to_owned(),
        (true, Ok(None)) => "it can be opened".to_owned(),
        (true, Ok(Some(_)) | Err(OpenError::Owned { .. })) => "it is open in another Tracebook".to_owned(),
        (true, Err(error)) => error.to_string(),
    };
    offers.push(host::MachineCapability { area: "workspace", name: folder.display().to_string(), there, note });
    if let Some(file) = &args.report {
        let file = if file.is_empty() { bug_report::default_path() } else { PathBuf::from(file) };
        return write_report(&file, folder, &offers, json, out);
    }
    if json {
        writeln!(out, "{}", platform_values::lines_as_json(&offers, &detect_platform(), folder))?;
        return Ok(EXIT_DONE);
    }
    for offer in offers {
        let mark = if offer.there { "yes" } else { "no " };
        writeln!(out, "{mark}  {:<13} {}: {}", offer.area, offer.name, offer.note)?;
    }
    Ok(EXIT_DONE)
}

fn write_report(
    file: &Path,
    folder: &Path,
    offers: &[host::MachineCapability],
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let checked = match WorkspaceLock::acquire(folder) {
        _ if !host::workspace_exists(folder) => Err(OpenError::Disk(DiskError::Missing { path: folder.to_owned() })),
        // A check needs no lock if nothing can be written.
        Ok(_) | Err(OpenError::Disk(DiskError::ReadOnly { .. })) => {
            Ok(host::maintenance::check::check_workspace(folder, false, host::unix_millis_now()))
        }
        Err(error) => Err(error),
    };
    let files = bug_report::collect(folder, &serde_json::to_string_pretty(offers).unwrap_or_default(), checked);
    bug_report::write(file, &files).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            CliError::usage(format!("{} exists already; name another file", file.display()))
        }
        _ => {
            let why = store::disk::io_reason(&error);
            CliError::workspace(format!("can't write the report to {}: {why}", file.display()))
        }
    })?;
    if json {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        writeln!(out, "{}", serde_json::json!({"report": file, "files": names}))?;
        return Ok(EXIT_DONE);
    }
    writeln!(out, "The report is in {}. It holds:", file.display())?;
    for file in &files {
        writeln!(out, "  {}  ({})", file.name, file.about)?;
    }
    writeln!(out, "It holds no note, prompt or key. Look through it before you send it.")?;
    Ok(EXIT_DONE)
}

/// Checks a workspace that isn't open. Returns `None` if it's open.
pub(super) fn check_closed_workspace(
    folder: &Path,
    args: &FsckArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<Option<u8>, CliError> {
    if !folder.is_dir() {
        return Err(CliError::usage(format!("there is no workspace: {}", folder.display())));
    }
    let _owned = match WorkspaceLock::acquire(folder) {
        Ok(owned) => Some(owned),
        Err(OpenError::Owned { .. }) => return Ok(None),
        // A check needs no lock if nothing can be written.
        Err(OpenError::Disk(DiskError::ReadOnly { .. })) if args.check => None,
        Err(error) => return Err(error.into()),
    };
    let report = host::maintenance::check::check_workspace(folder, !args.check, host::unix_millis_now());
    print_report(&report, json, out).map(Some)
}

/// Checks a workspace that this process has open, without repair, which needs exclusive access.
pub(super) fn check_open_workspace(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    scene.handle.run_command(Command::Save)?;
    scene.handle.wait(Some(Duration::from_secs(10)), |session: &Session| session.is_saved().then_some(()))?;
    let report =
        host::maintenance::check::check_workspace(scene.handle.workspace_folder(), false, host::unix_millis_now());
    if report.has_damage() {
        writeln!(scene.errors, "tracebook: close the window and run `tracebook fsck` again to repair")?;
    }
    print_report(&report, scene.json, scene.out)
}

fn print_report(report: &CheckReport, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    if json {
        writeln!(out, "{}", serde_json::to_string(report).unwrap_or_default())?;
    } else {
        for finding in &report.findings {
            let mark = match finding.severity {
                _ if finding.repaired => "fixed  ",
                FindingSeverity::Note => "note   ",
                FindingSeverity::Warning => "warning",
                FindingSeverity::Damage => "DAMAGE ",
            };
            writeln!(out, "{mark}  {}: {}\n         {}", finding.place, finding.what, finding.advice)?;
        }
        let (documents, blobs) = (report.documents, report.blobs);
        let verdict = match (report.has_damage(), report.repaired_count()) {
            (true, _) => "some damage couldn't be repaired; nothing was deleted".to_owned(),
            (false, 0) => "everything is in order".to_owned(),
            (false, 1) => "1 problem was repaired".to_owned(),
            (false, repaired) => format!("{repaired} problems were repaired"),
        };
        // A blob is a large output, which is a file of its own.
        let (documents, outputs) = (counted(documents, "document"), counted(blobs, "stored output"));
        writeln!(out, "{documents} and {outputs} checked: {verdict}")?;
    }
    Ok(match (report.has_damage(), report.repaired_count()) {
        (true, _) => EXIT_WORKSPACE,
        (false, 0) => EXIT_DONE,
        (false, _) => EXIT_FAILED,
    })
}

pub(super) fn cmd_backup(scene: &mut CommandContext<'_>, args: &BackupArguments) -> Result<u8, CliError> {
    let dest = scene.folder.join(args.dest.as_str());
    // Save typed text first; text typed during the backup is part of the next one.
    scene.handle.run_command(Command::Save)?;
    scene.handle.wait(Some(Duration::from_secs(10)), |session: &Session| session.is_saved().then_some(()))?;
    let mut progress = progress_printer(&mut *scene.errors);
    // A backup is canceled by ending the process: a partial backup has no manifest and is rejected.
    let cancel = AtomicBool::new(false);
    let folder = scene.handle.workspace_folder();
    let made = host::maintenance::backup::create_backup(folder, &dest, host::unix_millis_now(), &mut progress, &cancel);
    drop(progress);
    let summary = made.map_err(backup_error)?;
    for problem in &summary.problems {
        writeln!(scene.errors, "tracebook: {problem}")?;
    }
    if scene.json {
        writeln!(scene.out, "{}", serde_json::to_string(&summary).unwrap_or_default())?;
    } else {
        writeln!(scene.out, "backed up {} to {}", counted(summary.files, "file"), dest.display())?;
    }
    Ok(EXIT_DONE)
}

/// Returns a callback that prints the progress of a long copy at every tenth; short copies print nothing.
fn progress_printer(errors: &mut dyn Write) -> impl FnMut(BackupProgress) {
    let mut told = 0;
    move |at: BackupProgress| {
        let tenth = at.done.saturating_mul(10) / at.total.max(1);
        if tenth > told && at.total > 64 << 20 {
            told = tenth;
            // The backup continues even if its progress can't be printed.
            let _ = writeln!(errors, "{} %", tenth * 10);
        }
    }
}

fn backup_error(error: BackupError) -> CliError {
    match error {
        BackupError::Refused(why) => CliError::usage(why),
        other => CliError::workspace(other.to_string()),
    }
}

pub(super) fn cmd_restore(
    folder: &Path,
    args: &RestoreArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let here = std::env::current_dir().unwrap_or_default();
    let source = copy::absolute_path(&here, args.backup.as_str());
    let mut errors = std::io::stderr();
    let trust = if args.trusted { BackupTrust::Own } else { BackupTrust::Foreign };
    let restored = host::maintenance::backup::restore_backup(
        &source,
        folder,
        trust,
        &mut progress_printer(&mut errors),
        &AtomicBool::new(false),
    );
    let summary = restored.map_err(backup_error)?;
    for problem in &summary.problems {
        eprintln!("tracebook: {}", text::untrusted_text::escape_line(problem));
    }
    if json {
        writeln!(out, "{}", serde_json::to_string(&summary).unwrap_or_default())?;
    } else {
        writeln!(out, "restored {} to {}", counted(summary.files, "file"), folder.display())?;
        if trust == BackupTrust::Foreign {
            writeln!(
                out,
                "Its volumes lie in that folder. Nothing is allowed yet to agents, cells and kernels. If the backup is \
                 your own, `restore --trusted` keeps what you had allowed and puts volumes back to where they were."
            )?;
        }
    }
    Ok(EXIT_DONE)
}

/// Formats seconds since 1970 as a date in UTC.
pub(super) fn format_date(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) if seconds != 0 => time.to_string(),
        _ => "-".to_owned(), // frozen and imported changes carry no time
    }
}
