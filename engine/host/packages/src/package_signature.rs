//! Signatures of packages, in minisign's format. What is signed is the list of files as `b3sum` prints it.
//!
//! Format: <https://jedisct1.github.io/minisign/#signature-format>.

use crate::error::PackageError;
use host::peers::DeviceKey;
use minisign::{PublicKey, SecretKey, SecretKeyBox};
use std::io::Cursor;

/// Name of the file with the signature in a package.
pub(crate) const SIGNATURE_FILE: &str = "package.minisig";
/// Name of the file with the public key in a package.
pub(crate) const PUBLIC_KEY_FILE: &str = "package.pub";
/// Maximum size of a signature or a key in bytes.
const MAX_SIGNATURE_BYTES: usize = 4096;
/// First line of a public key's file.
const PUBLIC_KEY_COMMENT: &str = "untrusted comment: signs this Tracebook package";

/// Beginning of an encrypted secret key in base64: its algorithms `Ed`, `Sc` and `B2`.
const ENCRYPTED_KEY_PREFIX: &str = "RWRTY0Iy";

/// A secret key that signs packages.
pub struct PackageSigningKey {
    secret: SecretKey,
    /// The public key, as minisign writes keys.
    public: String,
}

impl PackageSigningKey {
    /// Reads a secret key of minisign. `password` reads its password if it's encrypted.
    ///
    /// # Errors
    /// Returns an error if it isn't one, or the password is wrong.
    pub fn from_minisign(
        text: &str,
        password: impl FnOnce() -> std::io::Result<String>,
    ) -> Result<PackageSigningKey, PackageError> {
        let fail = |error: &dyn std::fmt::Display| PackageError::Signature(format!("the key can't be used: {error}"));
        let is_encrypted = text.lines().nth(1).is_some_and(|line| line.trim().starts_with(ENCRYPTED_KEY_PREFIX));
        let key = SecretKeyBox::from_string(text).map_err(|error| fail(&error))?;
        let secret = match is_encrypted {
            true => key.into_secret_key(Some(password().map_err(|why| fail(&why))?)),
            false => key.into_unencrypted_secret_key(),
        };
        let secret = secret.map_err(|error| fail(&error))?;
        PackageSigningKey::new(secret)
    }

    /// Returns this device's key as a key for packages.
    ///
    /// # Errors
    /// Returns an error if the key has another form than keys of devices have.
    pub fn from_device(key: &DeviceKey) -> Result<PackageSigningKey, PackageError> {
        let public = key.id().0;
        let hex = key.secret();
        let seed: Option<Vec<u8>> = (0..32)
            .map(|at| hex.get(2 * at..2 * at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()))
            .collect();
        let seed = seed.ok_or_else(|| PackageError::Signature("the device's key can't be read".to_owned()))?;
        // Algorithm, no encryption, checksum's kind, then the empty values of an unencrypted key, the key's number, the
        // key itself, and a checksum that is only checked in files.
        let mut bytes = b"Ed\0\0B2".to_vec();
        bytes.extend([0; 48]);
        bytes.extend(&public[..8]);
        bytes.extend(seed);
        bytes.extend(public);
        bytes.extend([0; 32]);
        let secret = SecretKey::from_bytes(&bytes)
            .map_err(|error| PackageError::Signature(format!("the device's key can't be used: {error}")))?;
        PackageSigningKey::new(secret)
    }

    fn new(secret: SecretKey) -> Result<PackageSigningKey, PackageError> {
        let public = PublicKey::from_secret_key(&secret)
            .map_err(|error| PackageError::Signature(format!("the key can't be used: {error}")))?;
        Ok(PackageSigningKey { secret, public: public.to_base64() })
    }

    /// Returns the public key, as minisign writes keys.
    pub fn public_key(&self) -> &str {
        &self.public
    }

    /// Returns the content of the public key's file.
    pub(crate) fn public_key_file(&self) -> Vec<u8> {
        format!("{PUBLIC_KEY_COMMENT}\n{}\n", self.public).into_bytes()
    }

    /// Signs the list of a package's files.
    pub(crate) fn sign(&self, listing: &str, about: &str) -> Result<Vec<u8>, PackageError> {
        let signed = minisign::sign(None, &self.secret, Cursor::new(listing), Some(about), None);
        let signed =
            signed.map_err(|error| PackageError::Signature(format!("the package can't be signed: {error}")))?;
        Ok(signed.into_string().into_bytes())
    }
}

/// Checks the signature of a package. Returns the public key if it's signed.
pub(crate) fn verify_signature(
    key: Option<&Vec<u8>>,
    signature: Option<&Vec<u8>>,
    listing: &str,
) -> Result<Option<String>, PackageError> {
    let refuse = |why: &str| Err(PackageError::Signature(format!("the package's signature is wrong: {why}")));
    let (key, signature) = match (key, signature) {
        (None, None) => return Ok(None),
        (Some(key), Some(signature)) => (key, signature),
        (Some(_), None) => return refuse(&format!("it has {PUBLIC_KEY_FILE}, but no {SIGNATURE_FILE}")),
        (None, Some(_)) => return refuse(&format!("it has {SIGNATURE_FILE}, but no {PUBLIC_KEY_FILE}")),
    };
    let text = |bytes: &Vec<u8>| match bytes.len() > MAX_SIGNATURE_BYTES {
        true => None,
        false => String::from_utf8(bytes.clone()).ok(),
    };
    let (Some(key), Some(signature)) = (text(key), text(signature)) else {
        return refuse("its files are no minisign files");
    };
    let public = key.lines().nth(1).unwrap_or_default().trim();
    let Ok(verifier) = minisign_verify::PublicKey::from_base64(public) else {
        return refuse(&format!("{PUBLIC_KEY_FILE} has no public key of minisign"));
    };
    let Ok(decoded) = minisign_verify::Signature::decode(&signature) else {
        return refuse(&format!("{SIGNATURE_FILE} has no signature of minisign"));
    };
    match verifier.verify(listing.as_bytes(), &decoded, false) {
        Ok(()) => Ok(Some(public.to_owned())),
        Err(_) => refuse("its files aren't those that were signed, or another key has signed them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_fits_one_list_and_one_key() {
        let device = DeviceKey::generate().expect("a key");
        let key = PackageSigningKey::from_device(&device).expect("a key for packages");
        let file = key.public_key_file();
        let signature = key.sign("a  b\n", "sail 1.0.0").expect("signed");
        let signer = verify_signature(Some(&file), Some(&signature), "a  b\n").expect("it fits");
        assert_eq!(signer.as_deref(), Some(key.public_key()));
        assert!(verify_signature(Some(&file), Some(&signature), "a  c\n").is_err());
        let other = PackageSigningKey::from_device(&DeviceKey::generate().expect("a key")).expect("a key");
        assert!(verify_signature(Some(&other.public_key_file()), Some(&signature), "a  b\n").is_err());
        assert!(verify_signature(None, Some(&signature), "a  b\n").is_err());
        assert!(verify_signature(Some(&file), None, "a  b\n").is_err());
        for hostile in ["", "\n\n\n", "untrusted comment: x\nAAAA\ntrusted comment: y\nAAAA\n", "é\né\né\né"] {
            assert!(verify_signature(Some(&file), Some(&hostile.as_bytes().to_vec()), "a  b\n").is_err());
            assert!(verify_signature(Some(&hostile.as_bytes().to_vec()), Some(&signature), "a  b\n").is_err());
        }
    }

    #[test]
    fn keys_of_minisign_sign() {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().expect("a pair");
        let text = pair.sk.to_box(None).expect("a file").into_string();
        let none = || Err(std::io::Error::other("nothing reads a password"));
        let key = PackageSigningKey::from_minisign(&text, none).expect("a key");
        assert_eq!(key.public_key(), pair.pk.to_base64());
        let signature = key.sign("x", "sail 1.0.0").expect("signed");
        assert!(verify_signature(Some(&key.public_key_file()), Some(&signature), "x").is_ok());
        assert!(PackageSigningKey::from_minisign("no key", none).is_err());
    }
}
