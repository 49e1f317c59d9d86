//! Keys of providers and servers, stored in the system's keyring or in an encrypted file, or given by the environment.
//!
//! They're in no document, log or error, and are wiped from memory on drop.
//!
//! Names and their stores are in a plain file; values aren't. The encrypted file is opened by a passphrase or, without
//! one, by a key file next to it. The latter keeps values out of backups and off screens, but anyone who can read the
//! user's files can read them: [`SecretStore::KeyFile`] says so.

mod vault;

use crate::fs::file_rights::make_private;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use vault::SecretVault;
use zeroize::Zeroizing;

/// How long to wait for the keyring before it counts as unresponsive.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(2);
/// Service name of this program in the keyring.
const KEYRING_SERVICE: &str = "tracebook";
/// Maximum length of a secret in bytes.
pub const MAX_SECRET_BYTES: usize = 16 * 1024;
/// Maximum size in bytes of each file with secrets or their names.
const MAX_SECRETS_FILE_BYTES: u64 = 4 << 20;
/// Name of the file that lists the secrets' names and stores.
const SECRET_NAMES_FILE: &str = "secrets.json";
/// Name of the encrypted file.
const SEALED_SECRETS_FILE: &str = "secrets.sealed";
/// Name of the key file, which opens the encrypted file without a passphrase.
const SECRETS_KEY_FILE: &str = "secrets.key";
/// Name of the lock file that admits one writer at a time.
const SECRETS_LOCK_FILE: &str = "secrets.lock";
/// Environment variable that may hold the passphrase.
pub const PASSPHRASE_VARIABLE: &str = "TRACEBOOK_PASSPHRASE";

/// A secret value that's never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// Creates a secret from a user's input, without surrounding whitespace.
    ///
    /// # Errors
    /// Returns an error if the text is empty or too long, or contains control characters.
    pub fn new(text: String) -> Result<SecretValue, SecretError> {
        let text = Zeroizing::new(text);
        let value = text.trim();
        let why = match value {
            "" => "it is empty",
            value if value.len() > MAX_SECRET_BYTES => "it is too long",
            value if value.chars().any(char::is_control) => "it holds a control character; give one line",
            _ => return Ok(SecretValue(Zeroizing::new(value.to_owned()))),
        };
        Err(SecretError(format!("this isn't a secret: {why}")))
    }

    /// Returns the value, which must not be printed.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where a secret is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretStore {
    /// An environment variable.
    Environment,
    /// The system's keyring, such as GNOME Keyring.
    Keyring,
    /// The encrypted file, opened by a passphrase.
    Passphrase,
    /// The encrypted file, opened by the key file next to it: protects against access to that file alone.
    KeyFile,
}

impl SecretStore {
    /// Returns a description of the store for the user.
    pub fn description(self) -> &'static str {
        match self {
            SecretStore::Environment => "the environment",
            SecretStore::Keyring => "the system's keyring",
            SecretStore::Passphrase => "the encrypted file, opened by your passphrase",
            SecretStore::KeyFile => {
                "the encrypted file with its key next to it: anyone who can read your files can read it"
            }
        }
    }
}

/// An error without any secret value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretError(pub String);

impl std::fmt::Display for SecretError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SecretError {}

impl SecretError {
    fn io_error(what: &str, path: &Path, error: &io::Error) -> SecretError {
        SecretError(format!("{what}: {}: {}", store::disk::io_reason(error), path.display()))
    }
}

/// Cached values by name, and the modification time of the file of names.
type CachedSecrets = (Option<SystemTime>, HashMap<String, (SecretValue, SecretStore)>);

/// The secrets of this user.
pub struct UserSecrets {
    folder: PathBuf,
    /// Service name in the keyring; `None` if the keyring isn't used.
    keyring: Option<&'static str>,
    passphrase: Option<Zeroizing<String>>,
    /// Whether the keyring didn't respond in time. It isn't asked again.
    hung: AtomicBool,
    /// Values read so far, valid for the file of names at that time.
    read: Mutex<CachedSecrets>,
    cost: vault::KdfCost,
}

impl UserSecrets {
    /// Opens the secrets in this folder, which is created at the first write.
    ///
    /// The system's keyring is used unless `TRACEBOOK_KEYRING=off`. The passphrase is taken from
    /// [`PASSPHRASE_VARIABLE`] if set.
    pub fn new(folder: &Path) -> UserSecrets {
        let off = std::env::var_os("TRACEBOOK_KEYRING").is_some_and(|value| value == "off");
        let passphrase = std::env::var(PASSPHRASE_VARIABLE).ok().filter(|phrase| !phrase.is_empty());
        UserSecrets {
            folder: folder.to_owned(),
            keyring: (!off).then_some(KEYRING_SERVICE),
            passphrase: passphrase.map(Zeroizing::new),
            hung: AtomicBool::new(false),
            read: Mutex::default(),
            cost: vault::KdfCost::PASSPHRASE_KDF_COST,
        }
    }

    /// Keeps values only in the encrypted file, so that a test doesn't touch the user's keyring.
    #[cfg(test)]
    pub(crate) fn without_keyring(mut self) -> UserSecrets {
        self.keyring = None;
        self
    }

    /// Returns the secrets with a passphrase entered by the user.
    #[must_use]
    pub fn with_passphrase(mut self, passphrase: String) -> UserSecrets {
        self.passphrase = Some(Zeroizing::new(passphrase)).filter(|phrase| !phrase.is_empty());
        self
    }

    /// Stores a value under a name, and returns where.
    ///
    /// # Errors
    /// Returns an error if the name is invalid, or the file can't be opened or written.
    pub fn set(&self, name: &str, value: &SecretValue) -> Result<SecretStore, SecretError> {
        check_name(name)?;
        let _lock = self.lock()?;
        let mut names = self.read_names()?;
        let place = match self.query_keyring(name, KeyringRequest::Set(value.clone())) {
            Ok(_) => SecretStore::Keyring,
            Err(_) => self.vault().set_value(name, Some(value))?,
        };
        // Remove the old value from the previous store.
        match names.get(name) {
            Some(SecretStore::Keyring) if place != SecretStore::Keyring => {
                // If removal fails, the old copy is unused, because the new store is read.
                let _ = self.query_keyring(name, KeyringRequest::Remove);
            }
            Some(SecretStore::Passphrase | SecretStore::KeyFile) if place == SecretStore::Keyring => {
                self.vault().set_value(name, None)?;
            }
            Some(_) | None => {}
        }
        names.insert(name.to_owned(), place);
        self.write_names(&names)?;
        Ok(place)
    }

    /// Returns the value of a name and its store; `None` if there's none.
    ///
    /// The environment has priority, so that a single run can use a different value.
    ///
    /// # Errors
    /// Returns an error if the value is stored but can't be read now; the message says what to do.
    pub fn get(&self, name: &str) -> Result<Option<(SecretValue, SecretStore)>, SecretError> {
        check_name(name)?;
        if let Some(value) = std::env::var(name).ok().and_then(|value| SecretValue::new(value).ok()) {
            return Ok(Some((value, SecretStore::Environment)));
        }
        let written = std::fs::metadata(self.folder.join(SECRET_NAMES_FILE)).and_then(|file| file.modified()).ok();
        {
            let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            if read.0 != written {
                *read = (written, HashMap::new());
            }
            if let Some(known) = read.1.get(name) {
                return Ok(Some(known.clone()));
            }
        }
        let Some(place) = self.read_names()?.get(name).copied() else { return Ok(None) };
        let value = match place {
            SecretStore::Environment => None,
            SecretStore::Keyring => self.query_keyring(name, KeyringRequest::Get)?,
            SecretStore::Passphrase | SecretStore::KeyFile => self.vault().get(name)?,
        };
        let Some(value) = value else { return Ok(None) };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.1.insert(name.to_owned(), (value.clone(), place));
        Ok(Some((value, place)))
    }

    /// Removes a secret, and returns whether it existed.
    ///
    /// # Errors
    /// Returns an error if it can't be removed from its store.
    pub fn remove(&self, name: &str) -> Result<bool, SecretError> {
        check_name(name)?;
        let _lock = self.lock()?;
        let mut names = self.read_names()?;
        let Some(place) = names.remove(name) else { return Ok(false) };
        match place {
            SecretStore::Keyring => {
                self.query_keyring(name, KeyringRequest::Remove)?;
            }
            SecretStore::Passphrase | SecretStore::KeyFile => {
                self.vault().set_value(name, None)?;
            }
            SecretStore::Environment => {}
        }
        self.write_names(&names)?;
        Ok(true)
    }

    /// Returns names and stores without reading values.
    ///
    /// # Errors
    /// Returns an error if the file of names can't be read.
    pub fn list(&self) -> Result<Vec<(String, SecretStore)>, SecretError> {
        Ok(self.read_names()?.into_iter().collect())
    }

    /// Returns what opens the encrypted file now; `None` if there's no such file.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn opened_by(&self) -> Result<Option<SecretStore>, SecretError> {
        self.vault().opened_by()
    }

    /// Returns a warning if a passphrase is set but the file is still opened by its key file.
    pub fn unused_passphrase_warning(&self) -> Option<String> {
        let unused = self.passphrase.is_some() && self.opened_by().ok().flatten() == Some(SecretStore::KeyFile);
        unused.then(|| {
            format!(
                "{PASSPHRASE_VARIABLE} is set, but not in force: the file of secrets was made without one, and is \
                 opened by the key file beside it. `tracebook secrets encrypt` encrypts it with the passphrase"
            )
        })
    }

    /// Encrypts the file again so that only the passphrase opens it. Returns the number of secrets in it.
    ///
    /// # Errors
    /// Returns an error if there's no passphrase, or the file can't be opened or written.
    pub fn encrypt_with_passphrase(&self) -> Result<usize, SecretError> {
        if self.passphrase.is_none() {
            return Err(SecretError(format!("there is no passphrase to encrypt with: set {PASSPHRASE_VARIABLE}")));
        }
        let _lock = self.lock()?;
        let mut names = self.read_names()?;
        self.vault().encrypt_with_passphrase()?;
        let mut count = 0;
        for place in names.values_mut().filter(|place| matches!(place, SecretStore::KeyFile | SecretStore::Passphrase))
        {
            *place = SecretStore::Passphrase;
            count += 1;
        }
        self.write_names(&names)?;
        Ok(count)
    }

    fn vault(&self) -> SecretVault<'_> {
        SecretVault {
            path: self.folder.join(SEALED_SECRETS_FILE),
            key: self.folder.join(SECRETS_KEY_FILE),
            passphrase: self.passphrase.as_deref().map(String::as_str),
            cost: self.cost,
        }
    }

    fn read_names(&self) -> Result<BTreeMap<String, SecretStore>, SecretError> {
        let path = self.folder.join(SECRET_NAMES_FILE);
        let Some(bytes) = read_small_file(&path)? else { return Ok(BTreeMap::new()) };
        serde_json::from_slice(&bytes)
            .map_err(|error| SecretError(format!("the list of secrets is damaged ({error}): {}", path.display())))
    }

    fn write_names(&self, names: &BTreeMap<String, SecretStore>) -> Result<(), SecretError> {
        let text = serde_json::to_vec_pretty(names).map_err(|error| SecretError(error.to_string()))?;
        write_private_file(&self.folder.join(SECRET_NAMES_FILE), &text)?;
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = (None, HashMap::new());
        Ok(())
    }

    fn lock(&self) -> Result<File, SecretError> {
        let failed =
            |error: io::Error| SecretError::io_error("the folder for secrets cannot be used", &self.folder, &error);
        store::disk::create_folder(&self.folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        make_private(&mut options);
        let file = options.open(self.folder.join(SECRETS_LOCK_FILE)).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    /// Sends a request to the keyring on a separate thread, because a locked keyring may never respond.
    fn query_keyring(&self, name: &str, wish: KeyringRequest) -> Result<Option<SecretValue>, SecretError> {
        let service = self.keyring.ok_or_else(|| SecretError("the system's keyring is switched off".to_owned()))?;
        let silent = || {
            SecretError(format!(
                "the system's keyring, which keeps {name}, does not answer: unlock it, or set the variable {name}"
            ))
        };
        if self.hung.load(Ordering::Relaxed) {
            return Err(silent());
        }
        let (tell, told) = channel();
        let asked = name.to_owned();
        let spawned = std::thread::Builder::new().name("keyring".to_owned()).spawn(move || {
            // If the receiver is gone, nobody needs the result.
            let _ = tell.send(run_keyring_request(service, &asked, wish));
        });
        spawned.map_err(|error| SecretError(format!("the system's keyring cannot be asked: {error}")))?;
        match told.recv_timeout(KEYRING_TIMEOUT) {
            Ok(answer) => {
                answer.map_err(|why| SecretError(format!("the system's keyring does not give {name}: {why}")))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                self.hung.store(true, Ordering::Relaxed);
                Err(silent())
            }
        }
    }
}

impl std::fmt::Debug for UserSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.folder.display())
    }
}

/// A request to the keyring.
enum KeyringRequest {
    Get,
    Set(SecretValue),
    Remove,
}

fn run_keyring_request(service: &str, name: &str, wish: KeyringRequest) -> Result<Option<SecretValue>, SecretError> {
    // The keyring's errors may contain parts of values, so only their kind is reported.
    let said = |error: keyring::Error| {
        let why = match error {
            keyring::Error::NoEntry => "there is none",
            keyring::Error::NoStorageAccess(_) => "it is locked",
            keyring::Error::NoDefaultStore | keyring::Error::PlatformFailure(_) => "there is none on this system",
            _ => "it refuses",
        };
        SecretError(why.to_owned())
    };
    let entry = keyring::Entry::new(service, name).map_err(said)?;
    match wish {
        KeyringRequest::Get => match entry.get_password() {
            Ok(value) => SecretValue::new(value).map(Some),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(said(error)),
        },
        KeyringRequest::Set(value) => {
            entry.set_password(value.expose()).map_err(said)?;
            let kept = Zeroizing::new(entry.get_password().map_err(said)?);
            if *kept == *value.0 { Ok(None) } else { Err(SecretError("it keeps something else".to_owned())) }
        }
        KeyringRequest::Remove => match entry.delete_credential() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(said(error)),
        },
    }
}

/// Checks a secret's name. It must be valid as an environment variable, so that the environment can provide the value.
fn check_name(name: &str) -> Result<(), SecretError> {
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let letters = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    match begins && letters && name.len() <= 128 {
        true => Ok(()),
        false => Err(SecretError(format!(
            "“{}” is no name of a secret; it takes letters, digits and _, as in OPENAI_API_KEY",
            name.chars().take(40).collect::<String>()
        ))),
    }
}

/// Reads a small file; `None` if it doesn't exist.
fn read_small_file(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, SecretError> {
    let failed = |error: io::Error| SecretError::io_error("it cannot be read", path, &error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(MAX_SECRETS_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_SECRETS_FILE_BYTES {
        return Err(SecretError(format!("it is too long to be what it should be: {}", path.display())));
    }
    Ok(Some(bytes))
}

/// Writes a file atomically, readable only by the user.
fn write_private_file(path: &Path, bytes: &[u8]) -> Result<(), SecretError> {
    let failed = |error: io::Error| SecretError::io_error("it cannot be written", path, &error);
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    make_private(&mut options);
    // Usually there's none. If it can't be removed, the next line reports why.
    let _ = std::fs::remove_file(&temporary);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), store::disk::sync_folder)
    });
    written.map_err(|error| {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&temporary);
        failed(error)
    })
}

#[cfg(test)]
mod tests;
