//! Answers of requests with an idempotency key, in a database of the workspace that only the user can read. They
//! outlive the server, so that a client gets the first answer also after a restart.

use crate::private_list::private_options;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Name of the database in the workspace.
const ANSWERS_FILE: &str = "http-answers.db";
/// Maximum number of answers that are kept, their bytes, and how long.
const MAX_KEPT_ANSWERS: i64 = 1_000;
const MAX_KEPT_BYTES: i64 = 32 << 20;
const KEEP_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);
/// Maximum wait for another server of this workspace.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The status of a request that the end of a server has interrupted.
const INTERRUPTED: u16 = 0;
/// Without `status` while the request runs. `begun` is in milliseconds since 1970.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS answers (
        token TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL, begun INTEGER NOT NULL,
        status INTEGER, headers TEXT NOT NULL DEFAULT '[]', body BLOB NOT NULL DEFAULT x'',
        PRIMARY KEY (token, key)
    );
    CREATE INDEX IF NOT EXISTS answers_by_age ON answers (begun);
";

/// Why answers can't be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerStoreError {
    /// The file can't be made.
    #[error("{path} can't be used: {source}")]
    Io {
        /// The database.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The database can't be read or written.
    #[error("{path} can't be used ({source}); move it away to start with an empty one")]
    Database {
        /// The database.
        path: PathBuf,
        /// What the database says.
        source: rusqlite::Error,
    },
}

/// A token's id and a key. Tokens don't see each other's keys.
pub(crate) type KeyOwner = (String, String);

/// An answer as it's sent again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl KeptAnswer {
    pub(crate) fn into_response(self) -> Response {
        let mut response = (self.status, Body::from(self.body)).into_response();
        *response.headers_mut() = self.headers;
        response
    }

    fn headers_text(&self) -> String {
        let pair =
            |(name, value): (&HeaderName, &HeaderValue)| Some((name.to_string(), value.to_str().ok()?.to_owned()));
        let pairs: Vec<(String, String)> = self.headers.iter().filter_map(pair).collect();
        serde_json::to_string(&pairs).unwrap_or_default()
    }

    fn from_row(status: u16, headers: &str, body: Vec<u8>) -> Option<KeptAnswer> {
        let pairs: Vec<(String, String)> = serde_json::from_str(headers).ok()?;
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
        }
        Some(KeptAnswer { status: StatusCode::from_u16(status).ok()?, headers: map, body: Bytes::from(body) })
    }
}

/// What a key means for the request that has it.
#[derive(Debug)]
pub(crate) enum KeyUse {
    /// It's new: the request is to be performed.
    First,
    /// The request was performed, with this answer.
    Answered(KeptAnswer),
    /// The request with this key is being performed.
    Running,
    /// The server ended while it performed the request, so nobody knows how far it came.
    Interrupted,
    /// Another request has had this key.
    Other,
    /// Too many requests with keys are being performed.
    Full,
}

/// The answers that are kept for repeated requests.
pub(crate) struct KeptAnswers {
    path: PathBuf,
    /// Opened with the first request that has a key.
    database: Mutex<Option<Connection>>,
}

impl KeptAnswers {
    pub(crate) fn new(workspace: &Path) -> KeptAnswers {
        KeptAnswers { path: workspace.join(ANSWERS_FILE), database: Mutex::new(None) }
    }

    fn error(&self, source: rusqlite::Error) -> AnswerStoreError {
        AnswerStoreError::Database { path: self.path.clone(), source }
    }

    fn open(&self) -> Result<Connection, AnswerStoreError> {
        // SQLite gives its other files the permissions of this one.
        let io_error = |source| AnswerStoreError::Io { path: self.path.clone(), source };
        drop(private_options().open(&self.path).map_err(io_error)?);
        let opened = || -> rusqlite::Result<Connection> {
            let database = Connection::open(&self.path)?;
            database.busy_timeout(BUSY_TIMEOUT)?;
            database.execute_batch(SCHEMA)?;
            database.execute("UPDATE answers SET status = ?1 WHERE status IS NULL", [INTERRUPTED])?;
            Ok(database)
        };
        opened().map_err(|source| self.error(source))
    }

    fn database(&self) -> Result<MutexGuard<'_, Option<Connection>>, AnswerStoreError> {
        let mut database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        if database.is_none() {
            *database = Some(self.open()?);
        }
        Ok(database)
    }

    /// Performs a change as one transaction.
    fn change<R>(&self, change: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, AnswerStoreError> {
        let mut database = self.database()?;
        let Some(database) = database.as_mut() else { return Err(self.error(rusqlite::Error::InvalidQuery)) };
        let changed =
            database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).and_then(|change_of| {
                let result = change(&change_of)?;
                change_of.commit()?;
                Ok(result)
            });
        changed.map_err(|source| self.error(source))
    }

    /// Begins a request. `now` is in milliseconds since 1970.
    pub(crate) fn begin(
        &self,
        (token, key): &KeyOwner,
        fingerprint: blake3::Hash,
        now: i64,
    ) -> Result<KeyUse, AnswerStoreError> {
        let keep = i64::try_from(KEEP_TIMEOUT.as_millis()).unwrap_or(i64::MAX);
        self.change(|database| {
            database
                .execute("DELETE FROM answers WHERE begun < ?1 AND status IS NOT NULL", [now.saturating_sub(keep)])?;
            let mut known = database.prepare_cached(
                "SELECT fingerprint, status, headers, body FROM answers WHERE token = ?1 AND key = ?2",
            )?;
            let row = known
                .query_row([token, key], |row| {
                    let (print, status): (Vec<u8>, Option<u16>) = (row.get(0)?, row.get(1)?);
                    Ok((print, status, row.get::<_, String>(2)?, row.get::<_, Vec<u8>>(3)?))
                })
                .optional()?;
            if let Some((print, status, headers, body)) = row {
                return Ok(match status {
                    _ if print != fingerprint.as_bytes() => KeyUse::Other,
                    None => KeyUse::Running,
                    Some(status) => {
                        KeptAnswer::from_row(status, &headers, body).map_or(KeyUse::Interrupted, KeyUse::Answered)
                    }
                });
            }
            let count: i64 = database.query_row("SELECT count(*) FROM answers", [], |row| row.get(0))?;
            if count >= MAX_KEPT_ANSWERS && drop_oldest(database, "count(*)")? == 0 {
                return Ok(KeyUse::Full);
            }
            let values = params![token, key, fingerprint.as_bytes(), now];
            database.execute("INSERT INTO answers (token, key, fingerprint, begun) VALUES (?1, ?2, ?3, ?4)", values)?;
            Ok(KeyUse::First)
        })
    }

    /// Keeps the answer, or forgets the key if the request was not performed.
    pub(crate) fn end(&self, (token, key): &KeyOwner, answer: Option<&KeptAnswer>) -> Result<(), AnswerStoreError> {
        self.change(|database| {
            let Some(answer) = answer else {
                database.execute("DELETE FROM answers WHERE token = ?1 AND key = ?2", [token, key])?;
                return Ok(());
            };
            let values =
                params![token, key, answer.status.as_u16(), answer.headers_text(), answer.body.as_ref() as &[u8]];
            let change = "UPDATE answers SET status = ?3, headers = ?4, body = ?5 WHERE token = ?1 AND key = ?2";
            database.execute(change, values)?;
            let size = "SELECT coalesce(sum(length(body)), 0) FROM answers";
            while database.query_row(size, [], |row| row.get::<_, i64>(0))? > MAX_KEPT_BYTES {
                if drop_oldest(database, "sum(length(body))")? == 0 {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Forgets the oldest answer of the token that has most by this measure, so that no token pushes out what others have.
/// Returns how many were forgotten.
fn drop_oldest(database: &Connection, measure: &str) -> rusqlite::Result<usize> {
    let ended = "FROM answers WHERE status IS NOT NULL";
    let token = format!("SELECT token {ended} GROUP BY token ORDER BY {measure} DESC LIMIT 1");
    let oldest = format!("SELECT rowid {ended} AND token = ({token}) ORDER BY begun, rowid LIMIT 1");
    database.execute(&format!("DELETE FROM answers WHERE rowid = ({oldest})"), [])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(size: usize) -> KeptAnswer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        KeptAnswer { status: StatusCode::CREATED, headers, body: Bytes::from(vec![b'x'; size]) }
    }

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            let folder = std::env::temp_dir().join(format!("tracebook-answers-{:016x}", rand::random::<u64>()));
            std::fs::create_dir(&folder).expect("made");
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_key_is_for_one_request_of_one_token_also_after_a_restart() {
        let folder = Folder::new();
        let kept = KeptAnswers::new(&folder.0);
        let owner = ("token".to_owned(), "key".to_owned());
        let (one, other) = (blake3::hash(b"one"), blake3::hash(b"other"));
        let begin = |kept: &KeptAnswers, owner: &KeyOwner, hash, now| kept.begin(owner, hash, now).expect("read");
        assert!(matches!(begin(&kept, &owner, one, 1), KeyUse::First));
        assert!(matches!(begin(&kept, &owner, one, 2), KeyUse::Running));
        assert!(matches!(begin(&kept, &owner, other, 2), KeyUse::Other));
        let second = ("second".to_owned(), "key".to_owned());
        assert!(matches!(begin(&kept, &second, other, 2), KeyUse::First));
        kept.end(&owner, Some(&answer(3))).expect("kept");
        assert!(matches!(begin(&kept, &owner, one, 3), KeyUse::Answered(known) if known == answer(3)));
        drop(kept);
        let kept = KeptAnswers::new(&folder.0);
        assert!(matches!(begin(&kept, &owner, one, 4), KeyUse::Answered(known) if known == answer(3)));
        assert!(matches!(begin(&kept, &owner, other, 4), KeyUse::Other));
        // The server ended while this one ran.
        assert!(matches!(begin(&kept, &second, other, 4), KeyUse::Interrupted));
        let late = 5 + i64::try_from(KEEP_TIMEOUT.as_millis()).expect("fits");
        assert!(matches!(begin(&kept, &owner, other, late), KeyUse::First));
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_size() {
        let folder = Folder::new();
        let kept = KeptAnswers::new(&folder.0);
        let owner = |number: i64| ("token".to_owned(), number.to_string());
        let hash = blake3::hash(b"");
        let count = |kept: &KeptAnswers, what: &str| {
            let query = format!("SELECT {what} FROM answers");
            kept.change(|database| database.query_row(&query, [], |row| row.get::<_, i64>(0))).expect("read")
        };
        for number in 0..MAX_KEPT_ANSWERS + 50 {
            assert!(matches!(kept.begin(&owner(number), hash, number), Ok(KeyUse::First)), "{number}");
            kept.end(&owner(number), Some(&answer(1))).expect("kept");
        }
        assert_eq!(count(&kept, "count(*)"), MAX_KEPT_ANSWERS);
        assert!(matches!(kept.begin(&owner(MAX_KEPT_ANSWERS), hash, 0), Ok(KeyUse::Answered(_))));
        for number in 5_000..5_006 {
            assert!(matches!(kept.begin(&owner(number), hash, 5_000), Ok(KeyUse::First)));
            kept.end(&owner(number), Some(&answer(8 << 20))).expect("kept");
            assert!(count(&kept, "sum(length(body))") <= MAX_KEPT_BYTES);
        }
        // What was not performed can be tried again.
        assert!(matches!(kept.begin(&owner(9_000), hash, 9_000), Ok(KeyUse::First)));
        kept.end(&owner(9_000), None).expect("forgotten");
        assert!(matches!(kept.begin(&owner(9_000), hash, 9_000), Ok(KeyUse::First)));
        std::fs::write(folder.0.join("other"), b"no database, but long enough to look like one").expect("written");
        let damaged = KeptAnswers { path: folder.0.join("other"), database: Mutex::new(None) };
        let error = damaged.begin(&owner(1), hash, 1).expect_err("refused").to_string();
        assert!(error.contains("move it away"), "{error}");
    }
}
