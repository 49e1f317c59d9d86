//! The encrypted file of secrets: a map of names and values under XChaCha20-Poly1305.
//!
//! Its key is derived by argon2id from a passphrase or a key file. The header describes the derivation and is
//! authenticated too.

use super::{SecretError, SecretStore, SecretValue, read_small_file, write_private_file};
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand::TryRngCore;
use std::collections::BTreeMap;
use std::path::PathBuf;
use zeroize::Zeroizing;

const VAULT_MAGIC: &[u8; 8] = b"TBSEAL1\n";
/// Length of the header in bytes: magic, kind of key, three cost parameters, salt, nonce.
const VAULT_HEAD_BYTES: usize = 8 + 1 + 12 + 16 + 24;
/// Maximum cost parameters accepted from a file, to bound memory and time: KiB, rounds, lanes.
const MAX_KDF_COST: [u32; 3] = [1 << 20, 16, 16];

/// Cost of deriving the key: KiB of memory, rounds, lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KdfCost(pub(super) [u32; 3]);

impl KdfCost {
    /// For a passphrase that people remember (RFC 9106's second choice, on one lane).
    pub(super) const PASSPHRASE_KDF_COST: KdfCost = KdfCost([64 * 1024, 3, 1]);
    /// For 32 random bytes, which can't be guessed.
    const KEY_FILE_KDF_COST: KdfCost = KdfCost([64, 1, 1]);
}

/// The encrypted file and what opens it.
pub(super) struct SecretVault<'a> {
    pub(super) path: PathBuf,
    pub(super) key: PathBuf,
    pub(super) passphrase: Option<&'a str>,
    pub(super) cost: KdfCost,
}

type VaultValues = BTreeMap<String, Zeroizing<String>>;

impl SecretVault<'_> {
    pub(super) fn get(&self, name: &str) -> Result<Option<SecretValue>, SecretError> {
        let Some((mut values, _)) = self.open_values()? else { return Ok(None) };
        values.remove(name).map(|value| SecretValue::new(value.to_string())).transpose()
    }

    /// Sets a value, or removes it if `None`. Returns what opens the file now.
    pub(super) fn set_value(&self, name: &str, value: Option<&SecretValue>) -> Result<SecretStore, SecretError> {
        let (mut values, place) = match self.open_values()? {
            Some((values, place)) => (values, place),
            None if self.passphrase.is_some() => (VaultValues::new(), SecretStore::Passphrase),
            None => (VaultValues::new(), SecretStore::KeyFile),
        };
        match value {
            Some(value) => values.insert(name.to_owned(), Zeroizing::new(value.expose().to_owned())),
            None => values.remove(name),
        };
        self.write_sealed(&values, place)?;
        Ok(place)
    }

    /// Returns what opens the file, without opening it; `None` if there's no file.
    pub(super) fn opened_by(&self) -> Result<Option<SecretStore>, SecretError> {
        let Some(bytes) = read_small_file(&self.path)? else { return Ok(None) };
        Ok(match bytes.get(8).filter(|_| bytes.starts_with(VAULT_MAGIC)) {
            Some(0) => Some(SecretStore::KeyFile),
            Some(1) => Some(SecretStore::Passphrase),
            _ => None,
        })
    }

    /// Encrypts the file's values with the passphrase. The key file is removed once that's on disk.
    pub(super) fn encrypt_with_passphrase(&self) -> Result<(), SecretError> {
        if let Some((values, _)) = self.open_values()? {
            self.write_sealed(&values, SecretStore::Passphrase)?;
        }
        match std::fs::remove_file(&self.key) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SecretError::io_error("can't remove the key file, which is no longer used", &self.key, &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn open_values(&self) -> Result<Option<(VaultValues, SecretStore)>, SecretError> {
        let Some(bytes) = read_small_file(&self.path)? else { return Ok(None) };
        let damaged = |what: &str| SecretError(format!("the file of secrets {what}: {}", self.path.display()));
        let Some((head, sealed)) =
            bytes.split_at_checked(VAULT_HEAD_BYTES).filter(|(head, _)| head.starts_with(VAULT_MAGIC))
        else {
            return Err(damaged("is damaged"));
        };
        let place = match head.get(8) {
            Some(0) => SecretStore::KeyFile,
            Some(1) => SecretStore::Passphrase,
            _ => return Err(damaged("is damaged, or made by a newer program")),
        };
        let number = |at: usize| {
            let bytes = head.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
            u32::from_le_bytes(bytes.unwrap_or_default())
        };
        let cost = KdfCost([number(9), number(13), number(17)]);
        if cost.0.iter().zip(MAX_KDF_COST).any(|(number, most)| *number > most) {
            return Err(damaged("is damaged"));
        }
        let (salt, nonce) = (head.get(21..37).unwrap_or_default(), head.get(37..VAULT_HEAD_BYTES).unwrap_or_default());
        let key = self.derive_key(place, cost, salt)?;
        let payload = Payload { msg: sealed, aad: head };
        let nonce = <[u8; 24]>::try_from(nonce).map_err(|_| damaged("is damaged"))?;
        let plain = XChaCha20Poly1305::new((&*key).into()).decrypt(&XNonce::from(nonce), payload);
        let plain = Zeroizing::new(plain.map_err(|_| match place {
            SecretStore::Passphrase => damaged("does not open: the passphrase is another, or the file is damaged"),
            _ => damaged("does not open: its key file is another, or one of them is damaged"),
        })?);
        let values: BTreeMap<String, String> = serde_json::from_slice(&plain).map_err(|_| damaged("is damaged"))?;
        Ok(Some((values.into_iter().map(|(name, value)| (name, Zeroizing::new(value))).collect(), place)))
    }

    fn write_sealed(&self, values: &VaultValues, place: SecretStore) -> Result<(), SecretError> {
        let mut random = [0; 40];
        rand::rngs::OsRng
            .try_fill_bytes(&mut random)
            .map_err(|error| SecretError(format!("no chance is left: {error}")))?;
        let cost = if place == SecretStore::Passphrase { self.cost } else { KdfCost::KEY_FILE_KDF_COST };
        let mut whole = VAULT_MAGIC.to_vec();
        whole.push(u8::from(place == SecretStore::Passphrase));
        whole.extend(cost.0.iter().flat_map(|number| number.to_le_bytes()));
        whole.extend(random);
        let key = self.derive_key(place, cost, &random[..16])?;
        let plain: BTreeMap<&str, &str> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let plain = Zeroizing::new(serde_json::to_vec(&plain).map_err(|error| SecretError(error.to_string()))?);
        let mut nonce = [0; 24];
        nonce.copy_from_slice(&random[16..]);
        let payload = Payload { msg: plain.as_slice(), aad: &whole };
        let sealed = XChaCha20Poly1305::new((&*key).into())
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| SecretError("the secrets cannot be sealed".to_owned()))?;
        whole.extend(sealed);
        write_private_file(&self.path, &whole)
    }

    /// Derives the key from the passphrase or from the key file, which is created if there's no vault yet.
    fn derive_key(&self, place: SecretStore, cost: KdfCost, salt: &[u8]) -> Result<Zeroizing<[u8; 32]>, SecretError> {
        let from: Zeroizing<Vec<u8>> = match (place, self.passphrase) {
            (SecretStore::Passphrase, Some(phrase)) => Zeroizing::new(phrase.as_bytes().to_vec()),
            (SecretStore::Passphrase, None) => {
                return Err(SecretError(format!(
                    "the file of secrets wants its passphrase: set {}",
                    super::PASSPHRASE_VARIABLE
                )));
            }
            _ => match read_small_file(&self.key)? {
                Some(key) if key.len() == 32 => key,
                Some(_) => return Err(SecretError(format!("the key file is damaged: {}", self.key.display()))),
                None if self.path.exists() => {
                    return Err(SecretError(format!("the key file is gone: {}", self.key.display())));
                }
                None => {
                    let mut key = Zeroizing::new(vec![0; 32]);
                    rand::rngs::OsRng
                        .try_fill_bytes(&mut key)
                        .map_err(|error| SecretError(format!("no chance is left: {error}")))?;
                    write_private_file(&self.key, &key)?;
                    key
                }
            },
        };
        let [memory, rounds, lanes] = cost.0;
        let mut key = Zeroizing::new([0; 32]);
        Params::new(memory, rounds, lanes, Some(32))
            .and_then(|params| {
                Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(&from, salt, key.as_mut())
            })
            .map_err(|_| SecretError(format!("the file of secrets is damaged: {}", self.path.display())))?;
        Ok(key)
    }
}
