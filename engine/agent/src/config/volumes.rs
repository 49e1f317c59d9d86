//! Settings of volumes: what kind a volume is, where its repository is, and whether anything may change in it.

use super::values;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length in bytes of a remote's address, and of the name of a branch.
const MAX_REMOTE_BYTES: usize = 2_000;

/// Whose a volume is. The word for the kind also names the volume, if it's the only one of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeKind {
    /// It's shared with others.
    Team,
    /// It's the user's own.
    User,
}

impl VolumeKind {
    /// Returns the word for the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            VolumeKind::Team => "team",
            VolumeKind::User => "user",
        }
    }

    /// Returns the kind with this word, in any case.
    pub fn from_name(word: &str) -> Option<VolumeKind> {
        [VolumeKind::Team, VolumeKind::User].into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(word))
    }
}

/// Settings of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VolumeConfig {
    /// Whether notes and files of the volume can be read only: in the window, on the command line and by agents.
    #[serde(deserialize_with = "values::plain")]
    pub readonly: bool,
    /// Whose the volume is; `None` if that isn't said.
    pub kind: Option<VolumeKind>,
    /// Address of the volume's repository, without a password; `None` for none.
    #[serde(deserialize_with = "remote")]
    pub remote: Option<String>,
    /// The branch that the volume is on when it's cloned; `None` for the remote's own.
    #[serde(deserialize_with = "branch")]
    pub branch: Option<String>,
}

/// Settings of volumes, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct VolumeSettings(
    /// The settings of each named volume.
    #[serde(deserialize_with = "by_name")]
    pub BTreeMap<String, VolumeConfig>,
);

impl VolumeSettings {
    /// Returns the settings of a volume; `None` if the configuration doesn't name it.
    pub fn get(&self, name: &str) -> Option<&VolumeConfig> {
        self.0.get(name)
    }

    /// Returns whether nothing may change in a volume.
    pub fn is_read_only(&self, name: &str) -> bool {
        self.get(name).is_some_and(|volume| volume.readonly)
    }

    /// Returns the kind of a volume.
    pub fn kind(&self, name: &str) -> Option<VolumeKind> {
        self.get(name)?.kind
    }

    /// Returns the names of the volumes that nothing may change.
    pub fn read_only_names(&self) -> BTreeSet<String> {
        self.0.iter().filter(|(_, volume)| volume.readonly).map(|(name, _)| name.clone()).collect()
    }

    /// Returns which of these volumes the word for a kind means: the only one of that kind, unless one of them is
    /// called so.
    pub fn named_by_kind<'a>(&self, word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let kind = VolumeKind::from_name(word)?;
        let mut found = None;
        for name in names {
            if name.eq_ignore_ascii_case(word) {
                return None;
            }
            if self.kind(name) == Some(kind) && found.replace(name).is_some() {
                return None;
            }
        }
        found
    }
}

/// Says why nothing may change in a volume that the configuration makes read-only, and what to do.
pub fn read_only_sentence(volume: &str) -> String {
    format!("{volume} is read-only. Remove `readonly` of {volume} from config.yaml to change it.")
}

/// Returns why an address isn't kept in the configuration; `None` if it may be.
pub fn remote_refusal(address: &str) -> Option<&'static str> {
    let host = address.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    if host.and_then(|host| host.rsplit_once('@')).is_some_and(|(user, _)| user.contains(':')) {
        return Some("a remote holds no password; Git's credential helpers keep it");
    }
    let is_plain = address.len() <= MAX_REMOTE_BYTES && !address.chars().any(char::is_control);
    (!is_plain || address.starts_with('-')).then_some("this is no address of a repository")
}

/// Returns why a name isn't a branch's; `None` if it may be one. Git itself checks the rest.
pub fn branch_refusal(name: &str) -> Option<&'static str> {
    let is_plain = name.len() <= MAX_REMOTE_BYTES
        && !name.starts_with('-')
        && !name.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    (!is_plain).then_some("this is no name of a branch")
}

/// Parses a text that may be empty, which means none, and that nothing speaks against.
fn text_unless<'de, D: Deserializer<'de>>(
    from: D,
    refusal: impl Fn(&str) -> Option<&'static str>,
) -> Result<Option<String>, D::Error> {
    let text = values::plain::<D, Option<String>>(from)?.filter(|text| !text.is_empty());
    // The address may hold a password, so the message doesn't repeat it.
    match text.as_deref().and_then(refusal) {
        Some(why) => Err(D::Error::custom(why)),
        None => Ok(text),
    }
}

/// Parses the settings of volumes; a name without settings has the defaults.
fn by_name<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, VolumeConfig>, D::Error> {
    let named = BTreeMap::<String, Option<VolumeConfig>>::deserialize(from)?;
    Ok(named.into_iter().map(|(name, volume)| (name, volume.unwrap_or_default())).collect())
}

fn remote<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    text_unless(from, remote_refusal)
}

fn branch<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    text_unless(from, branch_refusal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigLayer, merge};

    #[test]
    fn volumes_have_kinds_and_remotes() {
        let parse = |text: &str| ConfigLayer::parse("config.yaml", text).and_then(|layer| merge(&[layer]));
        let config = parse(
            "volumes:\n  Ours:\n    kind: team\n    remote: https://example.org/ours.git\n    branch: main\n  Mine: \
             {kind: user, readonly: true}\n  Old: {kind: user}\n  Bare:\n",
        )
        .expect("read");
        let ours = config.volumes.get("Ours").expect("named");
        assert_eq!((ours.kind, ours.branch.as_deref(), ours.readonly), (Some(VolumeKind::Team), Some("main"), false));
        assert_eq!(ours.remote.as_deref(), Some("https://example.org/ours.git"));
        assert_eq!(config.read_only_volumes(), BTreeSet::from(["Mine".to_owned()]));
        let named = |word, names: &[&'static str]| config.volumes.named_by_kind(word, names.iter().copied());
        assert_eq!(named("Team", &["Ours", "Mine"]), Some("Ours"));
        assert_eq!(named("team", &["Ours", "TEAM"]), None, "a volume has that name");
        assert_eq!(named("user", &["Mine", "Old"]), None, "it could be either");
        assert_eq!(named("user", &["Mine"]), Some("Mine"), "the other isn't here");
        assert_eq!(named("system", &["Ours"]), None);
        for wrong in ["kind: system", "remote: https://ada:hunter2@example.org/x", "branch: --force", "readonly: maybe"]
        {
            let why = parse(&format!("volumes:\n  Ours: {{{wrong}}}\n")).expect_err(wrong).to_string();
            assert!(!why.contains("hunter2"), "{why}");
        }
    }
}
