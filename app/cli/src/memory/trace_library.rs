//! Trace libraries: several traces in one file, signed by the device that wrote it, and looked at before they are
//! taken over.

use super::super::agents;
use super::super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use super::trace_versions::add_version;
use super::{find_file, write_note};
use crate::arguments::TracesArguments;
use crate::plurals::counted;
use agent::memory::StoredTrace;
use agent::memory::trace::{self, RunTrace, TRACES_FOLDER};
use agent::memory::trace_library::{
    LIBRARY_SIGNATURE_PURPOSE, LibrarySignature, split_signature, trace_differences, with_signature,
};
use agent::memory::trace_versions::VersionReason;
use host::peers::signed_file::verified_signer;
use host::sync::devices::{existing_device_key, load_or_create_device_key, open_device_list};
use serde_json::json;
use store::DocId;
use text::untrusted_text;

/// Maximum size of an imported trace library in bytes.
const MAX_TRACE_LIBRARY_BYTES: u64 = 64 << 20;

/// Prints traces as a library, signed if the user wants it.
pub(super) fn export_traces(
    scene: &mut CommandContext<'_>,
    traces: &[&StoredTrace],
    is_signed: bool,
) -> Result<u8, CliError> {
    if traces.is_empty() {
        writeln!(scene.errors, "tracebook: there are no traces to export; `tracebook ask` makes some")?;
        return Ok(EXIT_FAILED);
    }
    let texts: Vec<String> = traces.iter().map(|filed| filed.trace.to_library_yaml()).collect();
    let mut library = texts.join("\n");
    if is_signed {
        let (key, _) =
            load_or_create_device_key().map_err(|why| CliError { code: EXIT_FAILED, why: why.to_string() })?;
        let signature = key.sign_file(LIBRARY_SIGNATURE_PURPOSE, library.as_bytes());
        library = with_signature(&library, &LibrarySignature { device: key.id().to_string(), signature });
    }
    write!(scene.out, "{library}")?;
    Ok(EXIT_DONE)
}

/// Returns who signed a library, as a sentence without its period. `None` if nobody did.
///
/// # Errors
/// Returns an error if the signature isn't valid: then the file was changed, and nothing of it is used.
fn signer_text(from: &str, signed: &str, signature: Option<&LibrarySignature>) -> Result<Option<String>, CliError> {
    let Some(LibrarySignature { device, signature }) = signature else { return Ok(None) };
    let own = existing_device_key().ok().flatten().map(|(key, _)| key.id());
    let listed = open_device_list().and_then(|devices| Ok(devices.list()?)).unwrap_or_default();
    let content = (LIBRARY_SIGNATURE_PURPOSE, signed.as_bytes());
    let signer = verified_signer(content, (device, signature), own, &listed)
        .map_err(|why| CliError { code: EXIT_FAILED, why: format!("{from}: {why}") })?;
    Ok(Some(untrusted_text::escape_line(&signer.describe()).into_owned()))
}

/// Imports a trace library, or only says what is in it. Statistics of imported traces are reset, since they were
/// measured elsewhere.
pub(super) fn import_traces(
    scene: &mut CommandContext<'_>,
    args: &TracesArguments,
    from: &str,
) -> Result<u8, CliError> {
    let text = match from {
        "-" => crate::parse::read_text_input(scene.input, MAX_TRACE_LIBRARY_BYTES)?,
        from => host::fs::copy::read_text(&scene.folder.join(from), MAX_TRACE_LIBRARY_BYTES)
            .map_err(|why| CliError::usage(why.to_string()))?,
    };
    let (signed, signature) = split_signature(&text).map_err(|why| CliError::usage(format!("{from}: {why}")))?;
    let signer = signer_text(from, signed, signature.as_ref())?;
    let found = trace::parse_library(signed).map_err(|why| CliError::usage(format!("{from}: {why}")))?;
    super::super::resolve::wait_for_volumes(scene, true)?;
    let project = agents::resolve_agent_volume(scene, args.project.clone(), None)?;
    agents::wait_for_setup(scene)?; // it says which tools there are
    let is_signed = signer.is_some();
    let signer = signer.unwrap_or_else(|| "not signed".to_owned());
    if args.preview {
        if !scene.json {
            writeln!(scene.out, "The file is {signer}.")?;
        }
        for trace in &found {
            preview_trace(scene, project, trace, &signer)?;
        }
        return Ok(EXIT_DONE);
    }
    if is_signed {
        writeln!(scene.errors, "tracebook: {from} is {signer}")?;
    }
    let volume = super::open_memory(scene, project)?;
    for trace in found {
        for difference in differences_here(scene, project, &trace)? {
            writeln!(scene.errors, "tracebook: {}: {difference}", trace.file_name())?;
        }
        let trace = trace.reset_for_import();
        let path = format!("{}/{TRACES_FOLDER}/{}", agent::memory::MEMORY_FOLDER, trace.file_name());
        if find_file(scene, volume, &path)?.is_some() {
            match add_version(scene, (volume, &path), &trace, (VersionReason::Imported, true))? {
                Some(number) => writeln!(
                    scene.errors,
                    "tracebook: there is a trace for this goal already, so it is only proposed as version {number}: \
                     {path}"
                )?,
                None => writeln!(
                    scene.errors,
                    "tracebook: there is a trace for this goal already, so it was left out: {path}"
                )?,
            }
            continue;
        }
        write_note(scene, volume, &path, &trace.to_note())?;
        writeln!(scene.out, "{path}")?;
    }
    Ok(EXIT_DONE)
}

/// Prints what a trace would do here.
fn preview_trace(
    scene: &mut CommandContext<'_>,
    project: DocId,
    trace: &RunTrace,
    signer: &str,
) -> Result<(), CliError> {
    let differences = differences_here(scene, project, trace)?;
    let goal = untrusted_text::escape_line(trace.known.goal_text.lines().next().unwrap_or_default()).into_owned();
    let tools: Vec<String> =
        trace.steps.iter().map(|step| untrusted_text::escape_line(&step.tool).into_owned()).collect();
    if scene.json {
        let file = trace.file_name();
        let shown = json!({"goal": goal, "file": file, "signer": signer, "tools": tools, "differences": differences});
        writeln!(scene.out, "{shown}")?;
        return Ok(());
    }
    writeln!(scene.out, "{goal}\n  {}: {}", counted(trace.steps.len(), "step"), tools.join(", "))?;
    if differences.is_empty() {
        writeln!(scene.out, "  Everything that it needs is here.")?;
    }
    for difference in differences {
        writeln!(scene.out, "  {difference}")?;
    }
    Ok(())
}

/// Returns what is different in a project from where a trace was learned: its tools, and the files that it needs.
fn differences_here(scene: &CommandContext<'_>, project: DocId, trace: &RunTrace) -> Result<Vec<String>, CliError> {
    let trace = trace.clone();
    Ok(scene.handle.read(move |session| {
        let files = session.volume(project).map(|volume| &volume.files);
        let has_file = |path: &str| files.is_some_and(|files| files.contains_key(path));
        trace_differences(&trace, &session.tool_schemas(&trace.known.agent), &has_file)
    })?)
}
