//! This machine as a device: its key, its name, and the list of devices it knows.

use crate::maintenance::configuration::user_config_folder;
use crate::maintenance::secrets::{SecretStore, SecretValue, UserSecrets};
use anyhow::{Context, anyhow, bail};
use peers::devices::{DeviceList, PairedDevice};
use peers::{DeviceId, DeviceKey, pairing_flow};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Name of the secret with the device's key.
pub const DEVICE_KEY_NAME: &str = "TRACEBOOK_DEVICE_KEY";
/// Name of the secret with a hub's key. All replicas of a hub get the same key in the environment.
const HUB_KEY_NAME: &str = "TRACEBOOK_HUB_KEY";

/// Returns the folder of this user's device key and list.
///
/// # Errors
/// Returns an error if there's no home folder.
pub fn device_folder() -> anyhow::Result<PathBuf> {
    user_config_folder().context("there is no home folder to keep the device's key in; set XDG_CONFIG_HOME")
}

/// Opens this user's list of devices.
///
/// # Errors
/// Returns an error if there's no home folder, or the system has no random bytes.
pub fn open_device_list() -> anyhow::Result<DeviceList> {
    Ok(DeviceList::new(&device_folder()?)?)
}

/// Returns the key of this device and where it's stored. Creates it if there's none.
///
/// # Errors
/// Returns an error if the key can't be read or stored.
pub fn load_or_create_device_key() -> anyhow::Result<(DeviceKey, SecretStore)> {
    let folder = device_folder()?;
    load_or_create_key(&folder, DEVICE_KEY_NAME)
}

/// Returns the key of this device and where it's stored; `None` if it was never needed.
///
/// # Errors
/// Returns an error if the key can't be read.
pub fn existing_device_key() -> anyhow::Result<Option<(DeviceKey, SecretStore)>> {
    let kept = UserSecrets::new(&device_folder()?).get(DEVICE_KEY_NAME)?;
    kept.map(|(secret, place)| Ok((DeviceKey::from_secret(secret.expose())?, place))).transpose()
}

/// Returns the key of the hub that serves this folder. Creates it if there's none.
///
/// # Errors
/// Returns an error if the key can't be read or stored.
pub fn load_or_create_hub_key(folder: &Path) -> anyhow::Result<DeviceKey> {
    if let Some((given, _)) = UserSecrets::new(folder).get(HUB_KEY_NAME)? {
        return Ok(DeviceKey::from_secret(given.expose())?);
    }
    // The keyring knows only names, not folders, and one user may have several hubs.
    let name_for = |place: &Path| {
        let hash = store::BlobHash::of(place.as_os_str().as_encoded_bytes()).to_string();
        format!("{HUB_KEY_NAME}_{}", &hash[..12])
    };
    store::disk::create_folder(folder).map_err(|error| anyhow!("{error}: {}", folder.display()))?;
    let place = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    // Older versions named it after the folder as given, if their first start had yet to create that.
    if let Some((given, _)) = UserSecrets::new(folder).get(&name_for(folder))? {
        return Ok(DeviceKey::from_secret(given.expose())?);
    }
    load_or_create_key(folder, &name_for(&place)).map(|(key, _)| key)
}

fn load_or_create_key(folder: &Path, name: &str) -> anyhow::Result<(DeviceKey, SecretStore)> {
    let secrets = UserSecrets::new(folder);
    let read = || -> anyhow::Result<Option<(DeviceKey, SecretStore)>> {
        let Some((secret, place)) = secrets.get(name)? else { return Ok(None) };
        Ok(Some((DeviceKey::from_secret(secret.expose())?, place)))
    };
    if let Some(known) = read()? {
        return Ok(known);
    }
    // Two programs that start at once must not create two keys.
    let fail = |error: std::io::Error| anyhow!("{error}: {}", folder.display());
    store::disk::create_folder(folder).map_err(fail)?;
    let lock =
        File::options().write(true).create(true).truncate(false).open(folder.join("device.lock")).map_err(fail)?;
    lock.lock().map_err(fail)?;
    if let Some(known) = read()? {
        return Ok(known);
    }
    let key = DeviceKey::generate()?;
    let secret = SecretValue::new(key.secret().to_string())?;
    let place = secrets.set(name, &secret)?;
    Ok((key, place))
}

/// Returns this device's identity for hubs: the key, if a hub was paired, and the list. Otherwise no keyring is
/// accessed.
///
/// # Errors
/// Returns an error if the list or the key can't be read.
pub fn hub_caller_identity() -> anyhow::Result<(Option<DeviceKey>, BTreeMap<DeviceId, PairedDevice>)> {
    let Ok(folder) = device_folder() else { return Ok((None, BTreeMap::new())) };
    let list = DeviceList::new(&folder).and_then(|devices| devices.list())?;
    let paired = list.values().any(|device| device.address.is_some() && device.is_authorized());
    let key = if paired { existing_device_key()?.map(|(key, _)| key) } else { None };
    Ok((key, list))
}

/// Returns this device's name: the user's choice, or else the machine's name.
///
/// # Errors
/// Returns an error if the list can't be read.
pub fn own_device_name() -> anyhow::Result<String> {
    let Some((key, _)) = existing_device_key()? else { return Ok(machine_name()) };
    let list = open_device_list()?.list()?;
    Ok(list.get(&key.id()).map_or_else(machine_name, |device| device.name.clone()))
}

/// Revokes a device and notifies all hubs. Returns each hub's name, and why it couldn't be notified.
///
/// # Errors
/// Returns an error if it's this device, if it isn't listed, or if the list can't be written.
pub fn revoke_device(id: DeviceId) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let (own, devices) = (load_or_create_device_key()?.0, open_device_list()?);
    if id == own.id() {
        bail!("this device cannot revoke itself; do it on another one, or on the hub");
    }
    devices.revoke(id)?;
    let (bytes, mut told) = (devices.to_bytes()?, Vec::new());
    for (hub, entry) in devices.list()? {
        if hub != id && entry.address.is_some() && entry.is_authorized() {
            let refused = pairing_flow::push_device_list(hub, &entry, &own, &bytes).err();
            told.push((entry.name.clone(), refused.map(|why| why.to_string())));
        }
    }
    Ok(told)
}

/// Returns the name of this machine, used until the user chooses another.
pub fn machine_name() -> String {
    let own = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let variable = || ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok());
    let name = own().or_else(variable).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "this device".to_owned())
}
