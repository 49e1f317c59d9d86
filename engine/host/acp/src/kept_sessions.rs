//! Which sessions programs keep of conversations, so that they can be taken up again after the program has ended.

use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum length of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of sessions that are kept; the oldest are forgotten.
const MAX_SESSIONS: usize = 500;
/// Maximum length of a program's own id in bytes.
const MAX_ID_BYTES: usize = 500;

/// What a program keeps a session of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionKey {
    /// The conversation.
    pub conversation: String,
    /// The agent's name.
    pub agent: String,
    /// The folder in which it works.
    pub folder: PathBuf,
}

/// A session that a program keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSession {
    /// The conversation that the session belongs to.
    #[serde(flatten)]
    pub key: SessionKey,
    /// The program's own id.
    pub id: String,
    /// Id of the last message of the user that the program was given.
    pub seen: u64,
}

/// A list of sessions in a file. One that can't be read only costs programs their memory.
pub struct KeptSessions {
    file: PathBuf,
    turn: Mutex<()>,
}

impl KeptSessions {
    /// Creates the list of a file, which needn't exist.
    pub fn new(file: PathBuf) -> KeptSessions {
        KeptSessions { file, turn: Mutex::default() }
    }

    fn read(&self) -> Vec<KeptSession> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&self.file);
        let read = file.and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
        read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Returns the session that a program keeps; `None` if none is known.
    pub fn find(&self, key: &SessionKey) -> Option<KeptSession> {
        self.read().into_iter().rev().find(|known| known.key == *key)
    }

    /// Notes a session, in the place of an earlier one of the same conversation.
    ///
    /// # Errors
    /// Returns the error of the file, which then stays as it was.
    pub fn remember(&self, session: KeptSession) -> io::Result<()> {
        if session.id.len() > MAX_ID_BYTES {
            return Ok(());
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list = self.read();
        list.retain(|known| known.key != session.key);
        list.push(session);
        let surplus = list.len().saturating_sub(MAX_SESSIONS);
        list.drain(..surplus);
        let mut new = tempfile::NamedTempFile::new_in(self.file.parent().unwrap_or(Path::new(".")))?;
        new.write_all(&serde_json::to_vec(&list)?)?;
        new.persist(&self.file).map_err(|error| error.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_known_by_what_they_are_of() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = KeptSessions::new(folder.path().join("list.json"));
        let session = |conversation: &str, id: &str, seen| {
            let key = SessionKey { conversation: conversation.to_owned(), ..SessionKey::default() };
            KeptSession { key, id: id.to_owned(), seen }
        };
        let (a, b) = (session("a", "s1", 1), session("b", "s2", 1));
        assert_eq!(list.find(&a.key), None);
        list.remember(a.clone()).expect("written");
        list.remember(b.clone()).expect("written");
        assert_eq!((list.find(&a.key), list.find(&b.key)), (Some(a), Some(b)));
        let newer = session("a", "s3", 5);
        list.remember(newer.clone()).expect("written");
        list.remember(session("a", &"x".repeat(MAX_ID_BYTES + 1), 6)).expect("left out");
        assert_eq!(list.find(&newer.key), Some(newer.clone()));
        std::fs::write(folder.path().join("list.json"), b"{").expect("written");
        assert_eq!(list.find(&newer.key), None);
        list.remember(newer.clone()).expect("a broken list is replaced");
        assert_eq!(list.find(&newer.key), Some(newer));
    }
}
