//! This machine as a device among others: its key, its name, and the list of those that it knows.

use crate::maintenance::configuration::user_config_folder;
use crate::maintenance::secrets::{SecretStore, SecretValue, UserSecrets};
use anyhow::{Context, anyhow, bail};
use peers::devices::{DeviceList, PairedDevice};
use peers::{DeviceId, DeviceKey, pairing_flow};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The name under which the key is kept.
pub const DEVICE_KEY_NAME: &str = "TRACEBOOK_DEVICE_KEY";
/// The name of a hub's key; with several replicas of one hub each is given the same in the environment.
const HUB_KEY_NAME: &str = "TRACEBOOK_HUB_KEY";

/// The folder of this user's key and list.
///
/// # Errors
/// There is no home.
pub fn device_folder() -> anyhow::Result<PathBuf> {
    user_config_folder().context("there is no home folder to keep the device's key in; set XDG_CONFIG_HOME")
}

/// The list of devices of this user.
///
/// # Errors
/// There is no home, or no chance.
pub fn open_device_list() -> anyhow::Result<DeviceList> {
    DeviceList::new(&device_folder()?).map_err(anyhow::Error::msg)
}

/// The key of this device, made when it is first needed, and who keeps it.
///
/// # Errors
/// It cannot be kept or read.
pub fn load_or_create_device_key() -> anyhow::Result<(DeviceKey, SecretStore)> {
    let folder = device_folder()?;
    load_or_create_key(&folder, DEVICE_KEY_NAME)
}

/// The key of this device, if it was needed already.
///
/// # Errors
/// It cannot be read.
pub fn existing_device_key() -> anyhow::Result<Option<(DeviceKey, SecretStore)>> {
    let kept = UserSecrets::new(&device_folder()?).get(DEVICE_KEY_NAME)?;
    kept.map(|(secret, place)| DeviceKey::from_secret(secret.expose()).map(|key| (key, place)))
        .transpose()
        .map_err(anyhow::Error::msg)
}

/// The key of a hub over this folder.
///
/// # Errors
/// It cannot be kept or read.
pub fn load_or_create_hub_key(folder: &Path) -> anyhow::Result<DeviceKey> {
    if let Some((given, _)) = UserSecrets::new(folder).get(HUB_KEY_NAME)? {
        return DeviceKey::from_secret(given.expose()).map_err(anyhow::Error::msg);
    }
    // The keyring knows names, not folders, and one user may have several hubs.
    let place = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let hash = store::BlobHash::of(place.as_os_str().as_encoded_bytes()).to_string();
    load_or_create_key(folder, &format!("{HUB_KEY_NAME}_{}", &hash[..12])).map(|(key, _)| key)
}

fn load_or_create_key(folder: &Path, name: &str) -> anyhow::Result<(DeviceKey, SecretStore)> {
    let secrets = UserSecrets::new(folder);
    let read = || -> anyhow::Result<Option<(DeviceKey, SecretStore)>> {
        let Some((secret, place)) = secrets.get(name)? else { return Ok(None) };
        Ok(Some((DeviceKey::from_secret(secret.expose()).map_err(anyhow::Error::msg)?, place)))
    };
    if let Some(known) = read()? {
        return Ok(known);
    }
    // Two programs that start at once must not make two.
    let fail = |error: std::io::Error| anyhow!("{error}: {}", folder.display());
    store::disk::create_folder(folder).map_err(fail)?;
    let lock =
        File::options().write(true).create(true).truncate(false).open(folder.join("device.lock")).map_err(fail)?;
    lock.lock().map_err(fail)?;
    if let Some(known) = read()? {
        return Ok(known);
    }
    let key = DeviceKey::generate().map_err(anyhow::Error::msg)?;
    let secret = SecretValue::new(key.secret().to_string())?;
    let place = secrets.set(name, &secret)?;
    Ok((key, place))
}

/// Returns our identity for hubs: the key, if a hub was paired, and the list. Otherwise no keyring is accessed.
///
/// # Errors
/// The list or the key cannot be read.
pub fn hub_caller_identity() -> anyhow::Result<(Option<DeviceKey>, BTreeMap<DeviceId, PairedDevice>)> {
    let Ok(folder) = device_folder() else { return Ok((None, BTreeMap::new())) };
    let list = DeviceList::new(&folder).and_then(|devices| devices.list()).map_err(anyhow::Error::msg)?;
    let paired = list.values().any(|device| device.address.is_some() && device.is_authorized());
    let key = if paired { existing_device_key()?.map(|(key, _)| key) } else { None };
    Ok((key, list))
}

/// How this device is called: as its user said, else as the machine is.
///
/// # Errors
/// The list cannot be read.
pub fn own_device_name() -> anyhow::Result<String> {
    let Some((key, _)) = existing_device_key()? else { return Ok(machine_name()) };
    Ok(open_device_list()?
        .list()
        .map_err(anyhow::Error::msg)?
        .get(&key.id())
        .map_or_else(machine_name, |device| device.name.clone()))
}

/// Revokes a device and notifies all hubs; returns each hub's name, and why it couldn't be notified.
///
/// # Errors
/// It is this device, there is none, or the list cannot be written.
pub fn revoke_device(id: DeviceId) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let (own, devices) = (load_or_create_device_key()?.0, open_device_list()?);
    if id == own.id() {
        bail!("this device cannot revoke itself; do it on another one, or on the hub");
    }
    devices.revoke(id).map_err(anyhow::Error::msg)?;
    let (bytes, mut told) = (devices.to_bytes().map_err(anyhow::Error::msg)?, Vec::new());
    for (hub, entry) in devices.list().map_err(anyhow::Error::msg)? {
        if hub != id && entry.address.is_some() && entry.is_authorized() {
            let refused = pairing_flow::push_device_list(hub, &entry, &own, &bytes).err();
            told.push((entry.name.clone(), refused.map(|why| why.to_string())));
        }
    }
    Ok(told)
}

/// What this machine is called, until its user says otherwise.
pub fn machine_name() -> String {
    let own = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let variable = || ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok());
    let name = own().or_else(variable).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "this device".to_owned())
}
