//! What the file system knows of a file, for results of tools.

use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};
use store::{ToolFileInfo, ToolFileType};

/// Returns what is known of a file, folder or link. `path` is its path in the volume.
pub fn tool_file_info(path: &str, meta: &Metadata) -> ToolFileInfo {
    let file_type = if meta.is_dir() {
        ToolFileType::Folder
    } else if meta.is_symlink() {
        ToolFileType::Link
    } else {
        ToolFileType::File
    };
    ToolFileInfo {
        file_type,
        created: meta.created().ok().and_then(unix_millis),
        modified: meta.modified().ok().and_then(unix_millis),
        read_only: meta.permissions().readonly(),
        ..ToolFileInfo::new(path, meta.len())
    }
}

fn unix_millis(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
