//! `kernels install|remove science`, and `kernels` without a note: the science pack, which belongs to the user rather
//! than to a workspace.

use super::{CliError, EXIT_DONE, EXIT_FAILED};
use crate::arguments::KernelsArguments;
use engine::{ENVIRONMENT_KERNEL, INSTANT_KERNEL, SCIENCE_KERNEL};
use host::science_pack::{InstalledPack, PACK_WHEEL_BYTES, PackFolder, PackPhase, PackSource, SciencePack, megabytes};
use serde_json::{Value, json};
use std::io::Write;
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use text::untrusted_text;

/// Minimum time between two progress messages of an installation.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Action on the science pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PackJob {
    Install(PackSource),
    Remove,
    /// Lists the kinds of kernels.
    List,
}

impl PackJob {
    /// Parses the arguments of `kernels`. Returns `None` if they concern a note.
    pub(super) fn from_args(args: &KernelsArguments, here: &Path) -> Result<Option<PackJob>, CliError> {
        let action = match (args.note.as_deref(), args.name.as_deref()) {
            (None, None) if args.from.is_none() && args.use_kernel.is_none() => return Ok(Some(PackJob::List)),
            (Some(action @ ("install" | "remove")), Some(name)) if name == SCIENCE_KERNEL => action,
            (Some(action @ ("install" | "remove")), Some(name)) => {
                return Err(CliError::usage(format!("only science can be {action}{}d, not “{name}”", past(action))));
            }
            _ => return Ok(None),
        };
        match (action, &args.from) {
            ("install", Some(wheel)) => Ok(Some(PackJob::Install(PackSource::Wheel(here.join(wheel))))),
            ("install", None) => Ok(Some(PackJob::Install(PackSource::Index))),
            (_, Some(_)) => {
                Err(CliError::usage("--from needs install: tracebook kernels install science --from WHEEL"))
            }
            (_, None) => Ok(Some(PackJob::Remove)),
        }
    }
}

/// Returns the letters between a verb and the final *d* of its past tense.
fn past(verb: &str) -> &'static str {
    if verb.ends_with('e') { "" } else { "e" }
}

/// Performs the action, and reports progress on `errors`.
pub(super) fn cmd_pack(
    job: &PackJob,
    program: &Path,
    json: bool,
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> Result<u8, CliError> {
    let pack = SciencePack::of_user(program);
    let before = pack.wait_status();
    let begun = match job {
        PackJob::List => return list_kinds(before.installed.as_ref(), json, out),
        PackJob::Remove => pack.remove(|| ()),
        PackJob::Install(source) => pack.install(source.clone(), || ()),
    };
    debug_assert!(begun, "nobody else has this object");
    let (mut told, mut told_phase, mut at) = (String::new(), None, None::<Instant>);
    let status = loop {
        let status = pack.wait_change(Duration::from_millis(250));
        if status.ended > before.ended {
            break status;
        }
        let (now, phase) = (status.phase.describe(), Some(discriminant(&status.phase)));
        let is_other_phase = phase != told_phase;
        let is_time = at.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL);
        let counts = matches!(status.phase, PackPhase::Downloading(_));
        if matches!(status.phase, PackPhase::Compiling(_)) {
            if is_other_phase {
                writeln!(errors, "Compiling, about a minute")?;
                told_phase = phase;
            }
        } else if now != told && (is_other_phase || counts && is_time) {
            writeln!(errors, "{now}")?;
            (told, told_phase, at) = (now, phase, Some(Instant::now()));
        }
    };
    if let Some(why) = status.error {
        return Err(CliError { code: EXIT_FAILED, why });
    }
    match (&status.installed, job) {
        (Some(pack), _) if json => {
            let said = json!({
                "installed": true, "version": pack.version, "wheel_sha256": pack.wheel_sha256, "bytes": pack.bytes,
                "folder": pack.folder,
            });
            writeln!(out, "{said}")?;
        }
        (None, _) if json => writeln!(out, "{}", json!({"installed": false}))?,
        (Some(pack), _) => {
            let (version, size) = (&pack.version, megabytes(pack.bytes));
            writeln!(
                out,
                "The science pack {version} is installed ({size} MB). Use it: tracebook run NOTE --kernel science"
            )?;
        }
        (None, _) => writeln!(
            out,
            "{}",
            match before.installed {
                Some(_) => "The science pack is removed.",
                None => "There was no science pack.",
            }
        )?,
    }
    Ok(EXIT_DONE)
}

/// Returns the user's science pack if one is installed.
pub(super) fn installed_pack() -> Result<Option<InstalledPack>, CliError> {
    Ok(PackFolder::of_user().installed())
}

/// Returns the kinds of kernels that come with Tracebook: name and description.
pub(super) fn kinds_in_words(pack: &Option<InstalledPack>) -> [(&'static str, String); 3] {
    let science = match pack {
        Some(pack) => format!("installed, version {}, {} MB", pack.version, megabytes(pack.bytes)),
        None => {
            format!("not installed, {} MB download: tracebook kernels install science", megabytes(PACK_WHEEL_BYTES))
        }
    };
    [
        (INSTANT_KERNEL, "the built-in Python, in its sandbox; starts at once".to_owned()),
        (SCIENCE_KERNEL, format!("numpy, pandas, scipy and more, in its sandbox; {science}")),
        (ENVIRONMENT_KERNEL, "this machine's Python with the note's own packages, in its sandbox".to_owned()),
    ]
}

/// Returns the kinds of kernels as JSON, for scripts.
pub(super) fn kinds_as_json(pack: &Option<InstalledPack>) -> Value {
    let science = json!({
        "name": SCIENCE_KERNEL, "installed": pack.is_some(), "version": pack.as_ref().map(|pack| &pack.version),
        "bytes": pack.as_ref().map(|pack| pack.bytes), "download_bytes": PACK_WHEEL_BYTES,
        "folder": pack.as_ref().map(|pack| &pack.folder),
    });
    json!([{"name": INSTANT_KERNEL, "installed": true}, science, {"name": ENVIRONMENT_KERNEL}])
}

fn list_kinds(pack: Option<&InstalledPack>, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let pack = pack.cloned();
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let jupyter = host::find_jupyter_kernels(&here);
    if json {
        let listed: Vec<_> = jupyter
            .iter()
            .map(|spec| json!({"name": spec.name, "title": spec.title, "language": spec.language, "path": spec.path}))
            .collect();
        writeln!(out, "{}", json!({"kinds": kinds_as_json(&pack), "kernels": listed}))?;
        return Ok(EXIT_DONE);
    }
    for (name, about) in kinds_in_words(&pack) {
        writeln!(out, "{name}  {about}")?;
    }
    for spec in &jupyter {
        let line = format!("{}  {}, a Jupyter kernel with your rights", spec.name, spec.title);
        writeln!(out, "{}", untrusted_text::escape_line(&line))?;
    }
    Ok(EXIT_DONE)
}
