//! Cache for results of pure cells, which outlives kernels. Only this process reads and writes the folder: kernels
//! deliver and request results by messages.
//!
//! An entry belongs to one note with one set of grants, and is sealed for them with a key that no cell can read. An
//! entry that was changed, moved, or made for another note can't be opened. The content is JSON data.

use crate::fs::file_rights::make_private;
use anyhow::{Context, anyhow, bail};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use engine::KernelGrant;
use rand::TryRngCore;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;
use store::{BlobHash, DocId};
use zeroize::Zeroizing;

/// Maximum size of an entry in bytes; larger ones aren't stored.
pub(crate) const MAX_ENTRY_BYTES: usize = 24 << 20;
/// Maximum size of all entries in bytes. The least recently used ones are removed first.
const MAX_PURE_CACHE_BYTES: u64 = 256 << 20;
/// Maximum number of entries, because a folder with very many names is slow.
const MAX_PURE_CACHE_ENTRIES: usize = 4_096;
/// Name of the file with the sealing key.
const KEY_FILE: &str = "key";
/// Number of hexadecimal digits in a result's key, which is a hash.
const KEY_DIGITS: usize = 64;
const NONCE_BYTES: usize = 24;

/// The cached results of a workspace.
#[derive(Clone)]
pub(crate) struct PureCache {
    folder: PathBuf,
    key: Arc<OnceLock<Option<Zeroizing<[u8; 32]>>>>,
}

impl PureCache {
    /// Creates a cache in this folder, which is created with the first entry.
    pub(crate) fn new(folder: PathBuf) -> PureCache {
        PureCache { folder, key: Arc::default() }
    }

    /// Returns the entry that this note with these grants stored under this key.
    pub(crate) fn find(&self, note: DocId, grant: &KernelGrant, key: &str) -> Option<String> {
        let owner = associated_data(note, grant, key)?;
        let path = self.entry_path(&owner);
        let mut sealed = Vec::new();
        let file = File::open(&path).ok()?;
        (&file).take(MAX_ENTRY_BYTES as u64 * 2).read_to_end(&mut sealed).ok()?;
        let (nonce, sealed) = sealed.split_at_checked(NONCE_BYTES)?;
        let nonce = XNonce::from(<[u8; NONCE_BYTES]>::try_from(nonce).ok()?);
        let payload = Payload { msg: sealed, aad: &owner };
        let entry = self.cipher()?.decrypt(&nonce, payload).ok()?;
        let entry = String::from_utf8(entry).ok().filter(|entry| is_valid_entry(entry))?;
        let _ = file.set_modified(SystemTime::now()); // only decides what goes first
        Some(entry)
    }

    /// Stores a result.
    ///
    /// # Errors
    /// Returns the reason, as part of a sentence, if it isn't stored.
    pub(crate) fn store_result(&self, note: DocId, grant: &KernelGrant, key: &str, entry: &str) -> anyhow::Result<()> {
        let owner = associated_data(note, grant, key).context("its key is not one")?;
        if entry.len() > MAX_ENTRY_BYTES {
            bail!("it is larger than {} MB", MAX_ENTRY_BYTES >> 20);
        }
        if !is_valid_entry(entry) {
            bail!("it is not data");
        }
        let words = |error: std::io::Error| anyhow!("the cache cannot be written ({error})");
        let mut nonce = [0; NONCE_BYTES];
        rand::rngs::OsRng.try_fill_bytes(&mut nonce).map_err(|error| words(std::io::Error::other(error)))?;
        let cipher = self.cipher().context("the cache has no key")?;
        let payload = Payload { msg: entry.as_bytes(), aad: &owner };
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| anyhow!("it cannot be sealed"))?;
        let path = self.entry_path(&owner);
        let new = path.with_extension("new");
        fs::write(&new, [&nonce[..], &sealed].concat()).and_then(|()| fs::rename(&new, &path)).map_err(words)?;
        self.evict_entries();
        Ok(())
    }

    fn entry_path(&self, owner: &[u8]) -> PathBuf {
        self.folder.join(BlobHash::of(owner).to_string())
    }

    fn cipher(&self) -> Option<XChaCha20Poly1305> {
        let key = self.key.get_or_init(|| read_or_make_key(&self.folder).ok());
        key.as_ref().map(|key| XChaCha20Poly1305::new((&**key).into()))
    }

    /// Deletes the least recently used entries beyond the limits, and those of older versions.
    fn evict_entries(&self) {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                let _ = fs::remove_dir_all(entry.path()); // pickles, which nobody reads any more
            } else if entry.file_name() != KEY_FILE {
                entries.push((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len(), entry.path()));
            }
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.0));
        let mut total = 0;
        for (at, (_, size, path)) in entries.into_iter().enumerate() {
            total += size;
            if total > MAX_PURE_CACHE_BYTES || at >= MAX_PURE_CACHE_ENTRIES {
                let _ = fs::remove_file(path); // the next one who keeps something tries again
            }
        }
    }
}

/// Returns the note, grants and key of an entry as associated data, which is authenticated but not stored.
fn associated_data(note: DocId, grant: &KernelGrant, key: &str) -> Option<Vec<u8>> {
    let is_key = key.len() == KEY_DIGITS && key.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_key {
        return None;
    }
    // Paths that aren't valid UTF-8 can't be encoded: such a note has no cache.
    serde_json::to_vec(&("pure 2", note, grant, key)).ok()
}

/// Returns whether an entry has the form that kernels accept.
fn is_valid_entry(entry: &str) -> bool {
    let whole = serde_json::from_str::<Value>(entry).unwrap_or_default();
    whole["shown"].is_array() && whole["nodes"].is_array() && whole["names"].is_object()
}

fn read_or_make_key(folder: &Path) -> std::io::Result<Zeroizing<[u8; 32]>> {
    let path = folder.join(KEY_FILE);
    if let Ok(bytes) = fs::read(&path).map(Zeroizing::new)
        && let Ok(key) = <[u8; 32]>::try_from(&**bytes)
    {
        return Ok(Zeroizing::new(key));
    }
    fs::create_dir_all(folder)?;
    let mut key = Zeroizing::new([0; 32]);
    rand::rngs::OsRng.try_fill_bytes(&mut *key).map_err(std::io::Error::other)?;
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    make_private(&mut options);
    let mut file = options.open(&path)?;
    file.write_all(&*key)?;
    file.sync_all()?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: DocId = DocId([1; 16]);
    const OTHER: DocId = DocId([2; 16]);
    const ENTRY: &str = r#"{"shown":[],"nodes":[7],"names":{"x":0}}"#;

    #[test]
    fn an_entry_opens_for_its_note_its_grants_and_its_key_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = PureCache::new(dir.path().join("pure"));
        let (plain, network) = (KernelGrant::default(), KernelGrant { network: true, ..KernelGrant::default() });
        let key = "ab".repeat(32);
        cache.store_result(NOTE, &plain, &key, ENTRY).expect("kept");
        // Another process of the same workspace.
        let again = PureCache::new(dir.path().join("pure"));
        assert_eq!(again.find(NOTE, &plain, &key).as_deref(), Some(ENTRY));
        assert_eq!(again.find(OTHER, &plain, &key), None, "another note");
        assert_eq!(again.find(NOTE, &network, &key), None, "other grants");
        assert_eq!(again.find(NOTE, &plain, &"cd".repeat(32)), None, "another key");
        // Moved to where another note with grants would look for it.
        let (from, to) = (associated_data(NOTE, &plain, &key), associated_data(OTHER, &network, &key));
        let at = |owner: &Option<Vec<u8>>| again.entry_path(owner.as_deref().expect("an owner"));
        fs::copy(at(&from), at(&to)).expect("copied");
        assert_eq!(again.find(OTHER, &network, &key), None, "moved");
        // Flip one bit.
        let mut bytes = fs::read(at(&from)).expect("read");
        *bytes.last_mut().expect("not empty") ^= 1;
        fs::write(at(&from), &bytes).expect("written");
        assert_eq!(again.find(NOTE, &plain, &key), None, "changed");
        // With another key, the entry can't be opened.
        cache.store_result(NOTE, &plain, &key, ENTRY).expect("kept");
        fs::write(dir.path().join("pure/key"), [7; 32]).expect("written");
        assert_eq!(PureCache::new(dir.path().join("pure")).find(NOTE, &plain, &key), None);
    }

    #[test]
    fn what_is_not_data_or_too_large_is_not_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = PureCache::new(dir.path().join("pure"));
        let (grant, key) = (KernelGrant::default(), "ab".repeat(32));
        for entry in ["", "[]", "cos\nsystem\n(S'id'\ntR.", r#"{"shown":[],"names":{}}"#] {
            assert!(cache.store_result(NOTE, &grant, &key, entry).is_err(), "{entry}");
        }
        let large = format!(r#"{{"shown":[],"nodes":["{}"],"names":{{}}}}"#, "x".repeat(MAX_ENTRY_BYTES));
        assert!(cache.store_result(NOTE, &grant, &key, &large).is_err_and(|why| why.to_string().contains("larger")));
        for key in ["", "../../key", "key", &"g".repeat(64)] {
            assert!(cache.store_result(NOTE, &grant, key, ENTRY).is_err() && cache.find(NOTE, &grant, key).is_none());
        }
    }
}
