//! `workspace.json`, the marker of a workspace folder. It says that the folder is a workspace and lists the folders of
//! its volumes, so that both are known even if the database is lost. It contains nothing that isn't also in the
//! database.

use super::durable;
use crate::disk::error::DiskError;
use crate::disk::interface::DiskReader;
use crate::disk::reader::SqliteReader;
use crate::id::DocId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The marker's name in the workspace folder.
pub const MARKER_FILE: &str = "workspace.json";
/// Key of the entry with the volumes' folders: a JSON object of volume id to path.
pub const MOUNTS_META_KEY: &str = "mounts";
const MARKER_FORMAT: i64 = 1;

/// A volume and its folder on this device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeMount {
    /// Document id of the volume.
    pub id: DocId,
    /// The volume's name as the user sees it.
    pub name: String,
    /// Absolute path of the volume's folder on this device.
    #[serde(with = "path_form")]
    pub path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct WorkspaceMarker {
    format: i64,
    #[serde(default)]
    volumes: Vec<VolumeMount>,
}

/// Serializes a path as text, or as a list of bytes if it isn't UTF-8. For `#[serde(with = …)]`.
pub mod path_form {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum StoredPath {
        Text(String),
        Bytes(Vec<u8>),
    }

    /// Serializes a path.
    ///
    /// # Errors
    /// Returns the serializer's error.
    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => StoredPath::Text(text.to_owned()).serialize(to),
            None => StoredPath::Bytes(path.as_os_str().as_encoded_bytes().to_vec()).serialize(to),
        }
    }

    /// Deserializes a path.
    ///
    /// # Errors
    /// Returns the deserializer's error.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match StoredPath::deserialize(from)? {
            StoredPath::Text(text) => PathBuf::from(text),
            #[cfg(unix)]
            StoredPath::Bytes(bytes) => PathBuf::from(<OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)),
            #[cfg(not(unix))]
            StoredPath::Bytes(bytes) => PathBuf::from(OsString::from(String::from_utf8_lossy(&bytes).into_owned())),
        })
    }
}

/// Writes the marker atomically: after a crash, either the new or the old one exists.
///
/// # Errors
/// Any [`DiskError`].
pub fn write_marker(dir: &Path, volumes: &[VolumeMount]) -> Result<(), DiskError> {
    let path = dir.join(MARKER_FILE);
    let fail = |error| DiskError::from_io("writing", &path, &error);
    let marker = WorkspaceMarker { format: MARKER_FORMAT, volumes: volumes.to_vec() };
    let mut text = serde_json::to_vec_pretty(&marker).map_err(|error| fail(io::Error::other(error)))?;
    text.push(b'\n');
    if std::fs::read(&path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    durable::replace_file(&path, &text).map_err(fail)
}

/// Reads the marker. Returns `None` if there is no marker.
///
/// # Errors
/// Returns [`DiskError::Damaged`], [`DiskError::Newer`], or the I/O error if the file can't be read.
pub fn read_marker(dir: &Path) -> Result<Option<Vec<VolumeMount>>, DiskError> {
    let path = dir.join(MARKER_FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DiskError::from_io("reading", &path, &error)),
    };
    match serde_json::from_slice::<serde_json::Value>(&bytes) {
        Ok(marker) if marker["format"].as_i64() > Some(MARKER_FORMAT) => {
            let found = marker["format"].as_i64().unwrap_or_default();
            Err(DiskError::Newer { found, known: MARKER_FORMAT, path })
        }
        Ok(marker) => match serde_json::from_value::<WorkspaceMarker>(marker) {
            Ok(marker) => Ok(Some(marker.volumes)),
            Err(error) => Err(DiskError::Damaged { why: error.to_string(), path }),
        },
        Err(error) => Err(DiskError::Damaged { why: error.to_string(), path }),
    }
}

impl SqliteReader {
    /// Returns the volumes in the database. Their names are in documents, so the marker's or the folders' names are
    /// used.
    pub fn mounts(&self) -> Vec<VolumeMount> {
        let marker = self.path.parent().and_then(|dir| read_marker(dir).ok().flatten()).unwrap_or_default();
        let known: BTreeMap<DocId, String> = marker.into_iter().map(|mount| (mount.id, mount.name)).collect();
        let stored = self.meta(MOUNTS_META_KEY).ok().flatten().unwrap_or_default();
        let mounts: BTreeMap<DocId, String> = serde_json::from_slice(&stored).unwrap_or_default();
        let named = mounts.into_iter().map(|(id, path)| {
            let path = PathBuf::from(path);
            let folder = || path.file_name().map_or_else(|| id.to_string(), |name| name.to_string_lossy().into_owned());
            let name = known.get(&id).cloned().unwrap_or_else(folder);
            VolumeMount { id, name, path }
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(read_marker(dir.path()).expect("read"), None);
        let mut mounts = vec![VolumeMount {
            id: DocId([7; 16]),
            name: "Notes \u{1f4d3}".to_owned(),
            path: "/home/a b/Notes".into(),
        }];
        #[cfg(unix)]
        mounts.push(VolumeMount {
            id: DocId([8; 16]),
            name: "odd".to_owned(),
            path: <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(b"/\xff\xfe".to_vec()).into(),
        });
        write_marker(dir.path(), &mounts).expect("written");
        assert_eq!(read_marker(dir.path()).expect("read"), Some(mounts));
        write_marker(dir.path(), &[]).expect("written");
        assert_eq!(read_marker(dir.path()).expect("read"), Some(Vec::new()));
        std::fs::write(dir.path().join(MARKER_FILE), "{\"format\":1}").expect("written");
        assert_eq!(read_marker(dir.path()).expect("read"), Some(Vec::new()));
    }

    #[test]
    fn damaged_and_newer() {
        let dir = tempfile::tempdir().expect("a folder");
        for (text, newer) in [("", false), ("{", false), ("[]", false), ("{}", false), ("{\"format\":2}", true)] {
            std::fs::write(dir.path().join(MARKER_FILE), text).expect("written");
            match read_marker(dir.path()) {
                Err(DiskError::Newer { found: 2, .. }) => assert!(newer, "{text}"),
                Err(DiskError::Damaged { .. }) => assert!(!newer, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
