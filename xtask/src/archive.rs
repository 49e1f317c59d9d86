//! Builds the portable archive, to be unpacked anywhere: `.tar.xz`, or `.zip` for Windows.

use crate::package_files::{PackageFiles, ReleaseInfo};
use anyhow::{Context, Result};
use std::io::{Cursor, Write};
use xz::write::XzEncoder;
use zip::write::SimpleFileOptions;

/// Compression level of the archive: `xz -9`, which needs 65 MB to unpack.
const XZ_LEVEL: u32 = 9;

/// Returns the archive's name and bytes. All files are in one top-level folder.
pub(crate) fn make(files: &PackageFiles, release: &ReleaseInfo) -> Result<(String, Vec<u8>)> {
    let folder = format!("tracebook-{}-{}", release.version, release.target);
    if release.is_windows() {
        let entries = files.iter().map(|file| (format!("{folder}/{}", file.path), file.mode, file.bytes.as_slice()));
        return Ok((format!("{folder}.zip"), zip_of(entries, release)?));
    }
    let mut archive = tar::Builder::new(Vec::new());
    for file in files.iter() {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(file.mode);
        header.set_mtime(u64::try_from(release.time.as_second()).context("a time before 1970")?);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, format!("{folder}/{}", file.path), file.bytes.as_slice())?;
    }
    let mut writer = XzEncoder::new(Vec::new(), XZ_LEVEL);
    writer.write_all(&archive.into_inner()?)?;
    Ok((format!("{folder}.tar.xz"), writer.finish()?))
}

/// Builds a zip file from entries: path, Unix permissions, bytes.
pub(crate) fn zip_of<'a>(
    entries: impl Iterator<Item = (String, u32, &'a [u8])>,
    release: &ReleaseInfo,
) -> Result<Vec<u8>> {
    let time = release.time.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    let [month, day, hour, minute, second] =
        [time.month(), time.day(), time.hour(), time.minute(), time.second()].map(i8::unsigned_abs);
    let year = u16::try_from(time.year())?;
    let time = zip::DateTime::from_date_and_time(year, month, day, hour, minute, second)
        .map_err(|error| anyhow::anyhow!("zip files hold no times before 1980 ({error})"))?;
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .compression_level(Some(9))
        .last_modified_time(time);
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, mode, bytes) in entries {
        archive.start_file(path, options.unix_permissions(mode))?;
        archive.write_all(bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn release(target: &str) -> ReleaseInfo {
        ReleaseInfo::new("1.2.3".into(), 1_700_000_000, target.into()).expect("a release")
    }

    #[test]
    fn an_archive_has_sorted_files_without_a_user_and_is_the_same_every_time() {
        let files = PackageFiles::of(&[("share/b", 0o644, "two"), ("bin/tracebook", 0o755, "one")]);
        let release = release("x86_64-unknown-linux-gnu");
        let (name, bytes) = make(&files, &release).expect("made");
        assert_eq!(name, "tracebook-1.2.3-x86_64-unknown-linux-gnu.tar.xz");
        assert_eq!(bytes, make(&files, &release).expect("made").1);
        let mut archive = tar::Archive::new(xz::read::XzDecoder::new(bytes.as_slice()));
        let entries = archive.entries().expect("a tar file").map(|entry| {
            let mut entry = entry.expect("an entry");
            let header = entry.header().clone();
            assert_eq!(
                (header.mtime().ok(), header.uid().ok(), header.gid().ok()),
                (Some(1_700_000_000), Some(0), Some(0))
            );
            let (path, mut text) = (entry.path().expect("a path").display().to_string(), String::new());
            entry.read_to_string(&mut text).expect("text");
            (path, header.mode().expect("a mode"), text)
        });
        let folder = "tracebook-1.2.3-x86_64-unknown-linux-gnu";
        let expected = [("bin/tracebook", 0o755, "one"), ("share/b", 0o644, "two")];
        let expected = expected.map(|(path, mode, text)| (format!("{folder}/{path}"), mode, text.to_owned()));
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn windows_gets_a_zip_file() {
        let files = PackageFiles::of(&[("bin/tracebook.exe", 0o755, "one")]);
        let (name, bytes) = make(&files, &release("x86_64-pc-windows-msvc")).expect("made");
        assert_eq!(name, "tracebook-1.2.3-x86_64-pc-windows-msvc.zip");
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("a zip file");
        let mut file =
            archive.by_name("tracebook-1.2.3-x86_64-pc-windows-msvc/bin/tracebook.exe").expect("it is there");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("text");
        assert_eq!((text.as_str(), file.unix_mode().map(|mode| mode & 0o777)), ("one", Some(0o755)));
    }
}
