//! Files for tools in JavaScript: each request of a function is done here, in the project's folder and never outside of
//! it. Files that commonly contain secrets, and those that other programs execute, are refused.

use super::ToolWorkspace;
use super::files::{self, MAX_TOOL_FILE_BYTES};
use super::path_limits::check_path;
use crate::fs::confined_dir::{ConfinedFolder, normalize_path};
use agent::config::SandboxPaths;
use agent::secrets::secret_files::secret_file_kind;
use anyhow::{Context, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Maximum number of names in a listing.
const MAX_LISTED_NAMES: usize = 10_000;

/// What a function wants of a file.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileOperation {
    Read,
    Write,
    List,
    Stat,
    Exists,
    Remove,
}

/// A function's request for a file.
#[derive(Deserialize)]
pub(super) struct ScriptFileRequest {
    operation: FileOperation,
    /// Path relative to the project's folder.
    path: String,
    /// The new content, encoded in Base64.
    #[serde(default)]
    body: String,
}

/// Performs a request. The answer is JSON: what was asked for, or `error`.
pub(super) fn answer_file_request(
    place: &ToolWorkspace,
    root: &Path,
    request: &ScriptFileRequest,
    paths: &SandboxPaths,
) -> Value {
    let answer = perform(place, root, request, paths);
    answer.unwrap_or_else(|why| json!({"error": why.to_string()}))
}

fn perform(
    place: &ToolWorkspace,
    root: &Path,
    request: &ScriptFileRequest,
    paths: &SandboxPaths,
) -> anyhow::Result<Value> {
    // `./a.md` and `/a.md` are in the project, too.
    let path = normalize_path(request.path.trim_start_matches('/'))?;
    let writes = matches!(request.operation, FileOperation::Write | FileOperation::Remove);
    check_path(root, &path, paths, writes)?;
    let folder = ConfinedFolder::open_root(root)?;
    // Symbolic links inside of the project may lead to what is closed by its name.
    let resolved = ::sandbox::resolve_links(&folder.original_path().join(&path));
    // The workspace may lie in the project's folder.
    if resolved.starts_with(&place.workspace) {
        bail!("the workspace's own files are closed to tools: {path}");
    }
    let root_path = folder.original_path().canonicalize().unwrap_or_else(|_| folder.original_path().to_owned());
    let inner = resolved.strip_prefix(&root_path).unwrap_or(&resolved).to_string_lossy().into_owned();
    let names = [path.as_str(), inner.as_str()];
    if let Some(kind) = names.into_iter().find_map(secret_file_kind) {
        bail!("tools in JavaScript don't reach files with {kind}: {path}");
    }
    if writes
        // Unlike a tool call, a function's single writes aren't asked about.
        && let Some(why) = names.into_iter().find_map(agent::protected_writes::guarded_reason)
    {
        bail!("{path} is not an ordinary file: {why}");
    }
    match request.operation {
        FileOperation::Read => {
            let (file, meta) = folder.open_regular_file(&path)?;
            if meta.len() > MAX_TOOL_FILE_BYTES {
                bail!("a file of more than {} MB isn't read: {path}", MAX_TOOL_FILE_BYTES >> 20);
            }
            let mut bytes = Vec::new();
            file.take(MAX_TOOL_FILE_BYTES).read_to_end(&mut bytes).with_context(|| format!("can't read {path}"))?;
            Ok(json!({"body": BASE64.encode(bytes)}))
        }
        FileOperation::Write => {
            let bytes = BASE64.decode(&request.body).map_err(|error| anyhow!("the content isn't Base64 ({error})"))?;
            files::write_bytes(place, root, &path, &bytes)?;
            Ok(json!({}))
        }
        FileOperation::Remove => {
            files::remove(place, root, &path)?;
            Ok(json!({}))
        }
        FileOperation::List => {
            let folder = folder.open_folder(&path)?;
            let entries = std::fs::read_dir(folder.stable_path()).with_context(|| format!("can't list {path}"))?;
            let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            let within = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            let names = names.filter(|name| !paths.is_hidden(&within(name)));
            let mut names: Vec<String> = names.take(MAX_LISTED_NAMES + 1).collect();
            if names.len() > MAX_LISTED_NAMES {
                bail!("the folder has more than {MAX_LISTED_NAMES} entries: {path}");
            }
            names.sort();
            Ok(json!({"names": names}))
        }
        FileOperation::Stat => {
            let meta = match folder.open_folder(&path) {
                Ok(_) if path.is_empty() => std::fs::metadata(folder.stable_path()),
                Ok(inner) => std::fs::metadata(inner.stable_path()),
                Err(_) => Ok(folder.open_regular_file(&path)?.1),
            };
            let meta = meta.with_context(|| format!("can't read {path}"))?;
            let modified = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            Ok(json!({
                "kind": if meta.is_dir() { "folder" } else { "file" },
                "size": meta.len(),
                "modified": modified.map_or(0, |time| time.as_millis()),
            }))
        }
        FileOperation::Exists => {
            let exists = match folder.open_folder(&path) {
                Ok(_) => true,
                Err(_) => match folder.open_regular_file(&path) {
                    Ok(_) => true,
                    Err(why) if why.is_missing() => false,
                    Err(why) => return Err(why.into()),
                },
            };
            Ok(json!({"exists": exists}))
        }
    }
}
