//! Pairs two devices by a one-time code of eight digits.
//!
//! It uses SPAKE2, in which every guess costs an attempt and eavesdropping is useless. Then both sides prove that they
//! have the same key, and exchange their cards.
//!
//! One side offers (it shows the code), the other joins (the user types it there). Both bind the channel into their
//! proof, so a man in the middle fails as if the code were wrong. Apart from the system's randomness, this module does
//! no I/O.

use crate::challenge::ChannelBinding;
use crate::devices::DeviceAccess;
use crate::key::{DeviceId, DeviceKey, DeviceKeyError, RandomBytesError, hex, random_bytes, unhex};
use serde::{Deserialize, Serialize};
use spake2::{Ed25519Group, Identity, Password, Spake2};

/// Maximum number of attempts with one code.
pub const MAX_CODE_ATTEMPTS: u8 = 5;
/// How long a code is valid, in milliseconds.
pub const CODE_LIFETIME_MS: i64 = 10 * 60 * 1000;
/// Maximum length of a card in bytes.
const MAX_CARD_BYTES: usize = 2048;

/// Why two devices weren't paired.
#[derive(Debug, thiserror::Error)]
pub enum PairingError {
    /// The system has no random bytes.
    #[error(transparent)]
    Random(#[from] RandomBytesError),
    /// Our card can't be written as JSON.
    #[error(transparent)]
    CardEncoding(#[from] serde_json::Error),
    /// The typed text isn't a code of eight digits.
    #[error("a code has eight digits, as in 1234-5678")]
    CodeForm,
    /// The code has expired.
    #[error("the code has expired; ask for a new one")]
    CodeExpired,
    /// The code was used up before this attempt.
    #[error("the code was used, or tried too often; ask for a new one")]
    CodeUsedUp,
    /// Another device used the code during this attempt.
    #[error("the code was used; ask for a new one")]
    CodeUsed,
    /// The displayed code has changed since this attempt began.
    #[error("another code is shown by now; ask for it")]
    CodeReplaced,
    /// The other side used a different code.
    #[error("{}", wrong_code_message(*attempts_left))]
    WrongCode {
        /// Number of attempts that the code has left.
        attempts_left: u8,
    },
    /// The side that shows the code can't prove that it knows it.
    #[error("it does not know the code that it asked for")]
    CodeUnknown,
    /// The offering side's answer isn't a valid SPAKE2 message.
    #[error("its answer isn't part of a pairing")]
    InvalidAnswer,
    /// The joining side's request isn't a valid SPAKE2 message.
    #[error("this isn't part of a pairing")]
    InvalidRequest,
    /// The other side's card can't be parsed.
    #[error("the card of the other device can't be read")]
    CardUnreadable,
    /// The other side's card has no readable signature.
    #[error("the card of the other device isn't signed")]
    CardUnsigned,
    /// The signature doesn't match the key on the card.
    #[error("the other device doesn't prove the key on its card")]
    CardUnproven,
    /// The other side has this device's own key.
    #[error("a device can't be paired with itself")]
    SameDevice,
}

fn wrong_code_message(attempts_left: u8) -> String {
    match attempts_left {
        0 => "the code is wrong, and was tried too often; ask for a new one".to_owned(),
        1 => "the code is wrong; one more try".to_owned(),
        left => format!("the code is wrong; {left} more tries"),
    }
}

/// The rights of a device that's paired by an offer. They are fixed when the offer is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRights {
    /// The device's maximum access to documents.
    pub access: DeviceAccess,
    /// Whether the device may change the list of devices.
    #[serde(default)]
    pub admin: bool,
}

impl DeviceRights {
    /// Returns a description of the rights that continues a sentence after the device's name.
    pub fn describe(self) -> String {
        let access = match self.access {
            DeviceAccess::None => "sees nothing",
            DeviceAccess::Read => "may read",
            DeviceAccess::Write => "may read and write",
        };
        format!("{access}{}", if self.admin { ", and change the list of devices" } else { "" })
    }

    fn to_param(self) -> String {
        let access = match self.access {
            DeviceAccess::None => "none",
            DeviceAccess::Read => "read",
            DeviceAccess::Write => "write",
        };
        format!("{access}{}", if self.admin { ",admin" } else { "" })
    }

    fn from_param(name: &str) -> Option<DeviceRights> {
        let (access, admin) = name.split_once(',').map_or((name, None), |(access, admin)| (access, Some(admin)));
        let access = match access {
            "none" => DeviceAccess::None,
            "read" => DeviceAccess::Read,
            "write" => DeviceAccess::Write,
            _ => return None,
        };
        admin.is_none_or(|word| word == "admin").then_some(DeviceRights { access, admin: admin.is_some() })
    }
}

/// How a device introduces itself while pairing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCard {
    /// The device's id.
    pub device: DeviceId,
    /// The device's name, chosen by its user.
    pub name: String,
    /// Address where a hub listens, as `wss://host:port`; `None` for other devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// BLAKE3 hash of the certificate at that address, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// The receiver's maximum access to documents here. Older versions don't send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<DeviceAccess>,
    /// Whether the receiver may change the list of devices here.
    #[serde(default)]
    pub admin: bool,
}

impl DeviceCard {
    /// Returns the receiver's rights here, if the card has them.
    pub fn rights(&self) -> Option<DeviceRights> {
        self.access.map(|access| DeviceRights { access, admin: self.admin })
    }
}

/// First and second message of pairing: each side's SPAKE2 message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpakeMessage {
    /// The SPAKE2 message: 33 bytes in hexadecimal.
    pub spake: String,
}

/// Third and fourth message of pairing: proof of the shared key, the card, and proof of the device's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingProof {
    /// Confirmation of the shared key: 32 bytes in hexadecimal.
    pub confirm: String,
    /// A [`DeviceCard`] as JSON. The proofs cover exactly these bytes.
    pub card: String,
    /// The signature: 64 bytes in hexadecimal.
    pub signature: String,
}

/// Returns the digits of a code, without separators.
fn code_digits(code: &str) -> String {
    code.chars().filter(char::is_ascii_digit).collect()
}

/// A displayed code and its state, shared by all attempts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneTimeCode {
    code: String,
    until: i64,
    left: u8,
    /// Rights of the device that uses the code.
    #[serde(default)]
    rights: DeviceRights,
}

impl std::fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Offer with {} tries left", self.left)
    }
}

impl OneTimeCode {
    /// Generates a new code at the time `now` (milliseconds since 1970).
    ///
    /// # Errors
    /// Returns an error if the system has no random bytes.
    pub fn new(now: i64) -> Result<OneTimeCode, RandomBytesError> {
        // Reject numbers that would make some codes more likely than others.
        let number = loop {
            let number = u32::from_le_bytes(random_bytes()?);
            if number < 4_200_000_000 {
                break number % 100_000_000;
            }
        };
        let rights = DeviceRights::default();
        Ok(OneTimeCode {
            code: format!("{number:08}"),
            until: now.saturating_add(CODE_LIFETIME_MS),
            left: MAX_CODE_ATTEMPTS,
            rights,
        })
    }

    /// Returns the code with these rights for the device that uses it.
    #[must_use]
    pub fn with_rights(mut self, rights: DeviceRights) -> OneTimeCode {
        self.rights = rights;
        self
    }

    /// Returns the rights of the device that uses the code.
    pub fn rights(&self) -> DeviceRights {
        self.rights
    }

    /// Returns the code as displayed: `1234-5678`.
    pub fn code(&self) -> String {
        let (front, back) = self.code.split_at(4);
        format!("{front}-{back}")
    }

    /// Returns when the code expires, in milliseconds since 1970.
    pub fn expires_at(&self) -> i64 {
        self.until
    }

    /// Returns the number of attempts left.
    pub fn attempts_left(&self) -> u8 {
        self.left
    }

    /// Checks whether the code can be used at this time (milliseconds since 1970).
    ///
    /// # Errors
    /// Returns an error if the code has expired or was used up.
    pub fn check_usable(&self, now: i64) -> Result<(), PairingError> {
        match () {
            () if now > self.until => Err(PairingError::CodeExpired),
            () if self.left == 0 => Err(PairingError::CodeUsedUp),
            () => Ok(()),
        }
    }
}

/// The key that both sides share after exchanging SPAKE2 messages.
#[derive(Debug)]
struct SharedPairingKey {
    key: [u8; 32],
    transcript: [u8; 32],
}

impl SharedPairingKey {
    fn new(secret: &[u8], join: &[u8], offer: &[u8], binding: &ChannelBinding) -> SharedPairingKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"tracebook 2026 pairing\0");
        hasher.update(&blake3::hash(join).as_bytes()[..]);
        hasher.update(&blake3::hash(offer).as_bytes()[..]);
        hasher.update(&binding.0);
        let transcript = *hasher.finalize().as_bytes();
        let mut key = blake3::Hasher::new_derive_key("tracebook 2026 key of a pairing");
        key.update(secret);
        key.update(&transcript);
        SharedPairingKey { key: *key.finalize().as_bytes(), transcript }
    }

    fn confirmation_hash(&self, role: &[u8], card: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(role);
        hasher.update(card.as_bytes());
        hasher.finalize()
    }

    fn signed_bytes(&self, role: &[u8], card: &str) -> Vec<u8> {
        [b"tracebook 2026 card\0".as_slice(), role, &self.transcript, card.as_bytes()].concat()
    }

    fn prove(&self, role: &[u8], card: &DeviceCard, key: &DeviceKey) -> Result<PairingProof, PairingError> {
        let card = serde_json::to_string(card)?;
        let signature = hex(&key.sign(&self.signed_bytes(role, &card)));
        Ok(PairingProof { confirm: self.confirmation_hash(role, &card).to_string(), card, signature })
    }

    /// Verifies a proof and returns the other side's card; `None` if the other side used a different code.
    fn verify_proof(&self, role: &[u8], proof: &PairingProof) -> Option<Result<DeviceCard, PairingError>> {
        let confirm = unhex::<32>(&proof.confirm)?;
        // `blake3::Hash` compares in constant time.
        if proof.card.len() > MAX_CARD_BYTES || self.confirmation_hash(role, &proof.card) != confirm {
            return None;
        }
        let card = || {
            let card: DeviceCard = serde_json::from_str(&proof.card).map_err(|_| PairingError::CardUnreadable)?;
            let signature = unhex::<64>(&proof.signature).ok_or(PairingError::CardUnsigned)?;
            match card.device.has_signed(&self.signed_bytes(role, &proof.card), &signature) {
                true => Ok(card),
                false => Err(PairingError::CardUnproven),
            }
        };
        Some(card())
    }
}

const JOINER_ROLE: &[u8] = b"joins\0";
const OFFERER_ROLE: &[u8] = b"offers";

fn spake_identities() -> (Identity, Identity) {
    (Identity::new(b"tracebook joins"), Identity::new(b"tracebook offers"))
}

/// The side that types the code, for one attempt.
pub struct JoinAttempt {
    spake: Spake2<Ed25519Group>,
    own_message: Vec<u8>,
}

impl std::fmt::Debug for JoinAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Joining")
    }
}

/// The joining side after it has sent its proof of the code.
#[derive(Debug)]
pub struct JoinVerifier(SharedPairingKey);

impl JoinAttempt {
    /// Starts an attempt with the typed code.
    ///
    /// # Errors
    /// Returns [`PairingError::CodeForm`] if the text isn't a code of eight digits.
    pub fn new(code: &str) -> Result<(JoinAttempt, SpakeMessage), PairingError> {
        let code = code_digits(code);
        if code.len() != 8 {
            return Err(PairingError::CodeForm);
        }
        let (joins, offers) = spake_identities();
        let (spake, half) = Spake2::start_a(&Password::new(code), &joins, &offers);
        let said = SpakeMessage { spake: hex(&half) };
        Ok((JoinAttempt { spake, own_message: half }, said))
    }

    /// Completes the key exchange with the other side's message, and proves the code.
    ///
    /// # Errors
    /// Returns an error if the message isn't valid SPAKE2, or the card can't be encoded.
    pub fn prove(
        self,
        theirs: &SpakeMessage,
        key: &DeviceKey,
        card: &DeviceCard,
        binding: &ChannelBinding,
    ) -> Result<(JoinVerifier, PairingProof), PairingError> {
        let theirs = unhex::<33>(&theirs.spake).ok_or(PairingError::InvalidAnswer)?;
        let secret = self.spake.finish(&theirs).map_err(|_| PairingError::InvalidAnswer)?;
        let common = SharedPairingKey::new(&secret, &self.own_message, &theirs, binding);
        let proof = common.prove(JOINER_ROLE, card, key)?;
        Ok((JoinVerifier(common), proof))
    }
}

impl JoinVerifier {
    /// Verifies the offering side's proof and returns its card.
    ///
    /// # Errors
    /// Returns an error if the other side doesn't know the code, or its card is invalid.
    pub fn verify_proof(&self, proof: &PairingProof) -> Result<DeviceCard, PairingError> {
        self.0.verify_proof(OFFERER_ROLE, proof).unwrap_or(Err(PairingError::CodeUnknown))
    }
}

/// The side that shows the code, for one attempt. It keeps the offer as it was when the attempt began.
#[derive(Debug)]
pub struct OfferAttempt {
    shared_key: SharedPairingKey,
    offer: OneTimeCode,
}

impl OfferAttempt {
    /// Starts an attempt. It counts from here on, so disconnecting gives no free guesses.
    ///
    /// # Errors
    /// Returns an error if the code has expired or was used up, or the message isn't valid SPAKE2.
    pub fn new(
        offer: &mut OneTimeCode,
        theirs: &SpakeMessage,
        now: i64,
        binding: &ChannelBinding,
    ) -> Result<(OfferAttempt, SpakeMessage), PairingError> {
        offer.check_usable(now)?;
        offer.left -= 1;
        let theirs = unhex::<33>(&theirs.spake).ok_or(PairingError::InvalidRequest)?;
        let (joins, offers) = spake_identities();
        let (spake, half) = Spake2::<Ed25519Group>::start_b(&Password::new(&offer.code), &joins, &offers);
        let secret = spake.finish(&theirs).map_err(|_| PairingError::InvalidRequest)?;
        let said = SpakeMessage { spake: hex(&half) };
        let common = SharedPairingKey::new(&secret, &theirs, &half, binding);
        Ok((OfferAttempt { shared_key: common, offer: offer.clone() }, said))
    }

    /// Verifies the joining side's proof and uses up the code. Returns the joining side's card, and the proof with our
    /// card, which tells the joining side its rights.
    ///
    /// # Errors
    /// Returns an error if the code was wrong, used or replaced, the card is invalid, or the device is this one.
    pub fn verify_proof(
        self,
        offer: &mut OneTimeCode,
        proof: &PairingProof,
        key: &DeviceKey,
        card: &DeviceCard,
    ) -> Result<(DeviceCard, PairingProof), PairingError> {
        let left = offer.left;
        if (&offer.code, offer.until, offer.rights) != (&self.offer.code, self.offer.until, self.offer.rights) {
            return Err(PairingError::CodeReplaced);
        }
        if left == 0 && self.offer.left > 0 {
            return Err(PairingError::CodeUsed);
        }
        let wrong = PairingError::WrongCode { attempts_left: left };
        let theirs = self.shared_key.verify_proof(JOINER_ROLE, proof).unwrap_or(Err(wrong))?;
        if theirs.device == key.id() {
            return Err(PairingError::SameDevice);
        }
        let rights = self.offer.rights;
        let card = DeviceCard { access: Some(rights.access), admin: rights.admin, ..card.clone() };
        let ours = self.shared_key.prove(OFFERER_ROLE, &card, key)?;
        offer.left = 0;
        Ok((theirs, ours))
    }
}

/// An invitation to pair, as the text of a QR code: `tracebook:pair?at=…&code=…&key=…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Address to call: `wss://host:port`, or `lan` for the local network.
    pub at: String,
    /// The one-time code.
    pub code: String,
    /// Id of the inviting device.
    pub key: DeviceId,
    /// Rights of the device that uses the invitation, if it says so.
    pub rights: Option<DeviceRights>,
}

const INVITATION_PREFIX: &str = "tracebook:pair?";

impl std::fmt::Display for Invitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{INVITATION_PREFIX}at={}&code={}&key={}", self.at, self.code, self.key)?;
        self.rights.map_or(Ok(()), |rights| write!(f, "&may={}", rights.to_param()))
    }
}

/// Why a text isn't an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvitationParseError {
    /// The text doesn't start as an invitation, or part of it is missing.
    #[error("this isn't an invitation; invitations start with tracebook:pair?")]
    Form,
    /// The key in the invitation is invalid.
    #[error(transparent)]
    Key(#[from] DeviceKeyError),
}

impl std::str::FromStr for Invitation {
    type Err = InvitationParseError;
    fn from_str(text: &str) -> Result<Invitation, InvitationParseError> {
        let bad = || InvitationParseError::Form;
        let mut parts = text.trim().strip_prefix(INVITATION_PREFIX).ok_or_else(bad)?.split('&');
        let mut part = |name: &str| {
            let part = parts.next().and_then(|part| part.strip_prefix(name)?.strip_prefix('='));
            part.filter(|part| !part.is_empty() && part.len() < 300 && !part.contains(char::is_control)).ok_or_else(bad)
        };
        let (at, code, key) = (part("at")?.to_owned(), part("code")?.to_owned(), part("key")?.parse()?);
        let rights = match parts.next().and_then(|part| part.strip_prefix("may=")) {
            Some(name) => Some(DeviceRights::from_param(name).ok_or_else(bad)?),
            None => None,
        };
        Ok(Invitation { at, code, key, rights })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(key: &DeviceKey, name: &str) -> DeviceCard {
        DeviceCard {
            device: key.id(),
            name: name.to_owned(),
            address: None,
            certificate: None,
            access: None,
            admin: false,
        }
    }

    /// Makes one attempt with a code, and returns the cards that both sides received.
    fn attempt(
        offer: &mut OneTimeCode,
        code: &str,
        now: i64,
        seen: [&[u8]; 2],
    ) -> Result<(DeviceCard, DeviceCard), PairingError> {
        let (ours, theirs) = (DeviceKey::generate()?, DeviceKey::generate()?);
        let [here, there] = seen.map(ChannelBinding::from_certificate);
        let (joining, half) = JoinAttempt::new(code)?;
        let (offering, half) = OfferAttempt::new(offer, &half, now, &here)?;
        let (joined, proof) = joining.prove(&half, &theirs, &card(&theirs, "phone"), &there)?;
        let (phone, proof) = offering.verify_proof(offer, &proof, &ours, &card(&ours, "hub"))?;
        Ok((phone, joined.verify_proof(&proof)?))
    }

    const SAME: [&[u8]; 2] = [b"c", b"c"];

    #[test]
    fn the_right_code_makes_them_acquainted_once() {
        let mut offer = OneTimeCode::new(0).expect("chance");
        let code = offer.code();
        let (phone, hub) = attempt(&mut offer, &code.replace('-', " "), 1, SAME).expect("paired");
        assert_eq!((phone.name.as_str(), hub.name.as_str()), ("phone", "hub"));
        let why = attempt(&mut offer, &code, 2, SAME).expect_err("used up");
        assert!(matches!(why, PairingError::CodeUsedUp), "{why}");
    }

    #[test]
    fn five_wrong_codes_end_the_offer_also_for_the_right_one() {
        let mut offer = OneTimeCode::new(0).expect("chance");
        let right = offer.code();
        let wrong = if right.starts_with('0') { "1234-5678" } else { "0234-5678" };
        for left in (0..5).rev() {
            let why = attempt(&mut offer, wrong, 1, SAME).expect_err("wrong");
            assert!(matches!(why, PairingError::WrongCode { attempts_left } if attempts_left == left), "{why}");
            assert_eq!(offer.attempts_left(), left);
        }
        assert!(attempt(&mut offer, &right, 1, SAME).is_err());
    }

    #[test]
    fn going_away_costs_a_try_too() {
        let mut offer = OneTimeCode::new(0).expect("chance");
        for _ in 0..5 {
            let (_, half) = JoinAttempt::new("0000-0000").expect("begun");
            OfferAttempt::new(&mut offer, &half, 1, &ChannelBinding::default()).expect("answered");
        }
        let right = offer.code();
        assert!(attempt(&mut offer, &right, 1, SAME).is_err());
    }

    #[test]
    fn a_code_expires_and_somebody_in_the_middle_fails() {
        let mut offer = OneTimeCode::new(0).expect("chance");
        let code = offer.code();
        let late = attempt(&mut offer, &code, CODE_LIFETIME_MS + 1, SAME);
        assert!(matches!(late, Err(PairingError::CodeExpired)));
        let seen = attempt(&mut offer, &code, 1, [b"hub's", b"middle's"]);
        assert!(matches!(seen, Err(PairingError::WrongCode { .. })));
        let (_, half) = JoinAttempt::new(&code).expect("begun");
        for bad in ["", "00", &"zz".repeat(33), &"00".repeat(33), &half.spake.replace("41", "42")] {
            let mut offer = OneTimeCode::new(0).expect("chance");
            let _ =
                OfferAttempt::new(&mut offer, &SpakeMessage { spake: bad.to_owned() }, 1, &ChannelBinding::default());
            assert_eq!(offer.attempts_left(), MAX_CODE_ATTEMPTS - 1);
        }
        assert!(JoinAttempt::new("123").is_err());
    }

    #[test]
    fn rights_are_those_of_the_offer_that_was_tried() {
        let (ours, theirs) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let (all, some) = (
            DeviceRights { access: DeviceAccess::Write, admin: true },
            DeviceRights { access: DeviceAccess::Read, admin: false },
        );
        let plain = ChannelBinding::default();
        let mut offer = OneTimeCode::new(0).expect("chance").with_rights(some);
        let (joining, half) = JoinAttempt::new(&offer.code()).expect("a code");
        let (offering, half) = OfferAttempt::new(&mut offer, &half, 1, &plain).expect("begun");
        let (_, proof) = joining.prove(&half, &theirs, &card(&theirs, "phone"), &plain).expect("proved");
        // Meanwhile, another code with other rights was requested.
        let mut other = OneTimeCode::new(0).expect("chance").with_rights(all);
        let why = offering.verify_proof(&mut other, &proof, &ours, &card(&ours, "hub")).expect_err("another offer");
        assert!(matches!(why, PairingError::CodeReplaced) && other.attempts_left() == MAX_CODE_ATTEMPTS, "{why}");
        for rights in [all, some] {
            let mut offer = OneTimeCode::new(0).expect("chance").with_rights(rights);
            let code = offer.code();
            let (_, hub) = attempt(&mut offer, &code, 1, SAME).expect("paired");
            assert_eq!(hub.rights(), Some(rights), "what it may do is proved with the card");
        }
    }

    #[test]
    fn an_invitation_is_read_back() {
        let key = DeviceKey::generate().expect("key").id();
        let rights = Some(DeviceRights { access: DeviceAccess::Read, admin: true });
        for rights in [None, rights, Some(DeviceRights::default())] {
            let one = Invitation { at: "wss://192.168.1.7:7600".to_owned(), code: "1234-5678".to_owned(), key, rights };
            assert_eq!(one.to_string().parse(), Ok(one.clone()));
        }
        for bad in ["", "tracebook:pair?", "tracebook:pair?at=&code=1&key=2", "https://example.org"] {
            assert!(bad.parse::<Invitation>().is_err());
        }
    }
}
