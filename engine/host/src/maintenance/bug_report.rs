//! `doctor --report`: the files of a bug report, as one `.tar.gz`.

use super::check::{CheckReport, FindingSeverity};
use crate::error::OpenError;
use crate::fs::file_rights::make_private;
use crate::logging::LOG_FOLDER;
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Maximum size of each log in the report in bytes; the newest lines are kept.
const MAX_LOG_BYTES: usize = 4 << 20;
/// Maximum number of logs and crash reports in the report; the newest are taken.
const MAX_LOG_FILES: usize = 20;
/// Maximum size of the configuration that's outlined, in bytes.
const MAX_CONFIGURATION_BYTES: usize = 1 << 20;
/// Block size of a tar archive.
const TAR_BLOCK_BYTES: usize = 512;
/// Placeholder for a value that isn't a number, `true` or `false`.
const HIDDEN_VALUE: &str = "…";

/// A file of the report, with a description.
#[derive(Debug)]
pub struct ReportFile {
    /// Path in the archive.
    pub name: String,
    bytes: Vec<u8>,
    /// Short description of the file.
    pub about: &'static str,
}

/// Collects the files of a report on this workspace.
///
/// `findings` is the JSON output of `doctor`. `checked` is the result of `fsck`, or why it couldn't run.
pub fn collect(workspace: &Path, findings: &str, checked: Result<CheckReport, OpenError>) -> Vec<ReportFile> {
    let file = |name: &str, text: String, about| ReportFile { name: name.to_owned(), bytes: text.into_bytes(), about };
    let program = format!(
        "version: {}\nplatform: {} {}\nsystem: {}\nbuild: {}\nTRACEBOOK_LOG: {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        system_version(),
        if cfg!(debug_assertions) { "debug" } else { "release" },
        std::env::var("TRACEBOOK_LOG").unwrap_or_else(|_| "(default)".to_owned()),
    );
    let checked = checked.map_or_else(|why| format!("not checked: {why}\n"), |report| check_summary(&report));
    let mut files = vec![
        file("program.txt", program, "version, platform and build"),
        file("doctor.json", without_home(findings), "what doctor finds on this machine"),
        file("fsck.txt", without_home(&checked), "how many findings the check of the workspace has"),
    ];
    if let Some(text) = read_tail(&workspace.join("config.yaml"), MAX_CONFIGURATION_BYTES) {
        let text = outline_of_yaml(&String::from_utf8_lossy(&text));
        files.push(file(
            "config-outline.yaml",
            text,
            "names of the configuration; of values only numbers and yes or no",
        ));
    }
    if let Some(settings) = crate::loader::read_settings(workspace) {
        let text = serde_json::to_string_pretty(&outline_of_json(&settings)).unwrap_or_default();
        files.push(file("settings-outline.json", text, "names of the settings; of values only numbers and yes or no"));
    }
    let logs = workspace.join(LOG_FOLDER);
    for name in newest_logs(&logs) {
        let Some(bytes) = read_tail(&logs.join(&name), MAX_LOG_BYTES) else { continue };
        let about = if name.starts_with("crash-") { "crash report" } else { "log" };
        files.push(ReportFile { name: format!("logs/{name}"), bytes, about });
    }
    files
}

/// Writes a report on an open workspace to a new file in its folder `reports`, and returns the file's path. Blocks.
///
/// `program` is the executable that starts the built-in kernel.
///
/// # Errors
/// Returns the I/O error if the folder or the file can't be written.
pub fn write_in_workspace(program: &Path, workspace: &Path) -> io::Result<PathBuf> {
    let findings = super::capabilities::detect_capabilities(program, workspace);
    let findings = serde_json::to_string_pretty(&findings).unwrap_or_default();
    let checked = super::check::check_workspace(workspace, false, crate::clock::unix_millis_now());
    let folder = workspace.join("reports");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(default_path());
    write(&path, &collect(workspace, &findings, Ok(checked)))?;
    Ok(path)
}

/// Returns the default path of the report.
pub fn default_path() -> PathBuf {
    PathBuf::from(format!("tracebook-report-{}.tar.gz", crate::clock::unix_millis_now() / 1000))
}

/// Writes the report to a new file.
///
/// # Errors
/// Returns the I/O error if the file exists or can't be written.
pub fn write(path: &Path, files: &[ReportFile]) -> io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create_new(true);
    make_private(&mut options);
    let file = options.open(path)?;
    let written = write_archive(GzEncoder::new(file, Compression::default()), files);
    if written.is_err() {
        // A partial report is useless. If it can't be removed, the error below is still the relevant one.
        let _ = std::fs::remove_file(path);
    }
    written
}

fn write_archive(mut out: GzEncoder<std::fs::File>, files: &[ReportFile]) -> io::Result<()> {
    for file in files {
        out.write_all(&tar_header(&file.name, file.bytes.len())?)?;
        out.write_all(&file.bytes)?;
        let rest = file.bytes.len().next_multiple_of(TAR_BLOCK_BYTES) - file.bytes.len();
        out.write_all(&[0; TAR_BLOCK_BYTES][..rest])?;
    }
    out.write_all(&[0; 2 * TAR_BLOCK_BYTES])?;
    out.finish()?.sync_all()
}

/// Returns the tar header of a regular file, in POSIX format (ustar).
fn tar_header(name: &str, length: usize) -> io::Result<[u8; TAR_BLOCK_BYTES]> {
    let mut header = [0; TAR_BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    if name.len() > 99 {
        return Err(io::Error::other("the name of a file is too long"));
    }
    put(0, name.as_bytes());
    put(100, b"0000600\x000000000\x000000000\0");
    put(124, format!("{length:011o}\0").as_bytes());
    put(136, format!("{:011o}\0", crate::clock::unix_millis_now() / 1000).as_bytes());
    put(148, b"        0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Returns only counts, because findings contain names of notes.
fn check_summary(report: &CheckReport) -> String {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    format!(
        "documents: {}\nblobs: {}\ndamage: {}\nwarnings: {}\nremarks: {}\n",
        report.documents,
        report.blobs,
        count(FindingSeverity::Damage),
        count(FindingSeverity::Warning),
        count(FindingSeverity::Note),
    )
}

fn system_version() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", name.unwrap_or("unknown").trim_matches('"'), kernel.trim())
}

/// Replaces the home folder by `~`, because its name identifies the user.
fn without_home(text: &str) -> String {
    match std::env::var("HOME") {
        Ok(home) if home.len() > 1 => text.replace(&home, "~"),
        _ => text.to_owned(),
    }
}

/// Returns the last `most` bytes of a regular file; `None` if it can't be read. A symlink isn't followed.
fn read_tail(path: &Path, most: usize) -> Option<Vec<u8>> {
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = std::fs::read(path).ok()?;
    bytes.drain(..bytes.len().saturating_sub(most));
    Some(bytes)
}

fn newest_logs(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_ours = |name: &String| {
        let is_crash = name.starts_with("crash-") && name.ends_with(".txt");
        name.len() < 80 && (is_crash || name.starts_with("tracebook") && name.ends_with(".log"))
    };
    let file = |entry: std::fs::DirEntry| {
        let time = entry.metadata().ok()?.modified().ok()?;
        Some((time, entry.file_name().into_string().ok().filter(is_ours)?))
    };
    let mut files: Vec<_> = entries.flatten().filter_map(file).collect();
    files.sort_by(|one, other| other.cmp(one));
    files.into_iter().take(MAX_LOG_FILES).map(|(_, name)| name).collect()
}

/// Returns whether a key was named by the program and isn't a user's text.
fn is_plain_key(key: &str) -> bool {
    !key.is_empty()
        && key.len() < 40
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
}

/// Returns settings with their numbers and booleans. Text is hidden, and lists are replaced by their length.
fn outline_of_json(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(_) => HIDDEN_VALUE.into(),
        Value::Array(all) => format!("{} entries", all.len()).into(),
        Value::Object(fields) => {
            let plain = fields.iter().filter(|(key, _)| is_plain_key(key));
            Value::Object(plain.map(|(key, value)| (key.clone(), outline_of_json(value))).collect())
        }
    }
}

/// Returns the keys of a YAML file, with only those values that are numbers or booleans.
///
/// Anything that isn't clearly one of them is left out, because an API key or a prompt may be anywhere.
fn outline_of_yaml(text: &str) -> String {
    let mut outline = String::new();
    // Lines indented deeper than a key with a value belong to that value.
    let mut value_depth: Option<usize> = None;
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        if line.trim().is_empty() || value_depth.is_some_and(|value| depth > value) {
            continue;
        }
        value_depth = None;
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        if !is_plain_key(key) {
            continue;
        }
        let value = value.trim();
        let shown = match value {
            "" => "",
            "true" | "false" | "yes" | "no" => value,
            number if number.len() < 12 && number.parse::<f64>().is_ok() => number,
            _ => HIDDEN_VALUE,
        };
        value_depth = (!value.is_empty()).then_some(depth);
        outline += &format!("{:depth$}{key}: {shown}\n", "");
    }
    outline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_shown_without_its_texts() {
        let text = "llm:\n  key: sk-secret # sk-too\n  limit: 5\n  on: true\n  flow: {a: 5, key: sk-secret}\n\
                    \x20 prompt: |\n    pin: 1234\n  last: \"sk\n    -secret: 5\"\n  - sk-secret: 1\nafter: 2.5\n";
        assert_eq!(
            outline_of_yaml(text),
            "llm: \n  key: …\n  limit: 5\n  on: true\n  flow: …\n  prompt: …\n  last: …\nafter: 2.5\n"
        );
    }

    #[test]
    fn settings_are_shown_without_their_texts() {
        let settings = serde_json::json!({"dark": true, "size": 1.5, "name": "secret", "words": ["secret"],
            "of": {"notes/secret.md": 1, "width": 2}});
        let outline =
            serde_json::json!({"dark": true, "size": 1.5, "name": "…", "words": "1 entries", "of": {"width": 2}});
        assert_eq!(outline_of_json(&settings), outline);
    }
}
