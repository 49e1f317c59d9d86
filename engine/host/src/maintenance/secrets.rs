//! Keys of providers and servers: stored in the system's keyring, otherwise in an encrypted file, or given by the
//! environment. They're in no document, log or error, and are wiped from memory when dropped.
//!
//! Names and their stores are in a plain file; values aren't. The encrypted file is opened by a passphrase or, without
//! one, by a key file next to it. The latter keeps values out of backups and off screens, but anyone who can read the
//! user's files can read them: [`SecretStore::KeyFile`] says so.

mod vault;

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

/// A keyring that answers later does not answer.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(2);
/// How the keyring names this program.
const KEYRING_SERVICE: &str = "tracebook";
/// A longer secret is refused, in bytes.
pub const MAX_SECRET_BYTES: usize = 16 * 1024;
/// A longer file is not ours, in bytes.
const MAX_SECRETS_FILE_BYTES: u64 = 4 << 20;
/// Which names there are.
const SECRET_NAMES_FILE: &str = "secrets.json";
/// Name of the encrypted file.
const SEALED_SECRETS_FILE: &str = "secrets.sealed";
/// Name of the key file, which opens the encrypted file without a passphrase.
const SECRETS_KEY_FILE: &str = "secrets.key";
/// One writer at a time.
const SECRETS_LOCK_FILE: &str = "secrets.lock";
/// The variable that may hold the passphrase.
pub const PASSPHRASE_VARIABLE: &str = "TRACEBOOK_PASSPHRASE";

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// A secret as a user gives it: without the line's end behind it.
    ///
    /// # Errors
    /// It is empty, too long, or holds letters that no key has.
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

/// Who keeps a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretStore {
    /// A variable of the environment.
    Environment,
    /// The system's keyring, such as GNOME Keyring.
    Keyring,
    /// The encrypted file, opened by a passphrase.
    Passphrase,
    /// The encrypted file, opened by the key file next to it: protects against access to that file alone.
    KeyFile,
}

impl SecretStore {
    /// Describes the store for the user.
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
        SecretError(format!("{what}: {error}: {}", path.display()))
    }
}

/// Cached values by name, and the modification time of the file of names.
type CachedSecrets = (Option<SystemTime>, HashMap<String, (SecretValue, SecretStore)>);

/// All that is kept for this user.
pub struct UserSecrets {
    folder: PathBuf,
    /// `None`: the keyring is not used.
    keyring: Option<&'static str>,
    passphrase: Option<Zeroizing<String>>,
    /// The keyring let us wait in vain; it is not asked again.
    hung: AtomicBool,
    /// What was read, as of the file of names.
    read: Mutex<CachedSecrets>,
    cost: vault::KdfCost,
}

impl UserSecrets {
    /// Those in this folder, which is made when something is kept. With the system's keyring unless
    /// `TRACEBOOK_KEYRING=off`, and with the passphrase in [`PASSPHRASE_VARIABLE`] if there is one.
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

    /// Uses a passphrase entered by the user.
    #[must_use]
    pub fn with_passphrase(mut self, passphrase: String) -> UserSecrets {
        self.passphrase = Some(Zeroizing::new(passphrase)).filter(|phrase| !phrase.is_empty());
        self
    }

    /// Keeps a value under a name, and says where.
    ///
    /// # Errors
    /// The name is none, or the file cannot be written or opened.
    pub fn set(&self, name: &str, value: &SecretValue) -> Result<SecretStore, SecretError> {
        check_name(name)?;
        let _lock = self.lock()?;
        let mut names = self.read_names()?;
        let place = match self.query_keyring(name, KeyringRequest::Set(value.clone())) {
            Ok(_) => SecretStore::Keyring,
            Err(_) => self.vault().set_value(name, Some(value))?,
        };
        // What another place kept is old now.
        match names.get(name) {
            Some(SecretStore::Keyring) if place != SecretStore::Keyring => {
                // The new place is read first, so an old copy that stays is not used.
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

    /// The value of a name: of the environment first, so that one run can have another.
    ///
    /// # Errors
    /// It is kept, but cannot be read now; the sentence says what to do.
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

    /// Forgets a name; says whether there was one.
    ///
    /// # Errors
    /// It cannot be taken out.
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
    /// The file of names cannot be read.
    pub fn list(&self) -> Result<Vec<(String, SecretStore)>, SecretError> {
        Ok(self.read_names()?.into_iter().collect())
    }

    /// What opens the encrypted file now; `None`: there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn opened_by(&self) -> Result<Option<SecretStore>, SecretError> {
        self.vault().opened_by()
    }

    /// What is to be said where a passphrase is given and the file is opened by its key file all the same.
    pub fn unused_passphrase_warning(&self) -> Option<String> {
        let unused = self.passphrase.is_some() && self.opened_by().ok().flatten() == Some(SecretStore::KeyFile);
        unused.then(|| {
            format!(
                "{PASSPHRASE_VARIABLE} is set, but not in force: the file of secrets was made without one, and is \
                 opened by the key file beside it. `tracebook secrets encrypt` encrypts it with the passphrase"
            )
        })
    }

    /// Encrypts the file again, so that only the passphrase opens it; returns the number of secrets in it.
    ///
    /// # Errors
    /// There is no passphrase, or the file cannot be opened or written.
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

    /// Asks the keyring, on a thread of its own: one that is locked may not answer at all.
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
            // The receiver may be gone, and then nobody needs this.
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
    // The keyring's errors may contain parts of values: only their kind is reported.
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

/// Names are those of variables, so that the environment can give each.
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

/// The bytes of a small file; `None`: there is none.
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

/// All or nothing, for the user's eyes only.
fn write_private_file(path: &Path, bytes: &[u8]) -> Result<(), SecretError> {
    let failed = |error: io::Error| SecretError::io_error("it cannot be written", path, &error);
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    make_private(&mut options);
    // Mostly there is none; if it stays, the next line says why.
    let _ = std::fs::remove_file(&temporary);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), store::disk::sync_folder)
    });
    written.map_err(|error| {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&temporary);
        failed(error)
    })
}

#[cfg(unix)]
fn make_private(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn make_private(_options: &mut OpenOptions) {}

#[cfg(test)]
mod tests;
