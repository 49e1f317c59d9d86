//! Builds a wheel that contains the program, so that `pipx install` and `uvx` can install it. It contains no Python.

use crate::archive::zip_of;
use crate::package_files::{PackageFiles, ReleaseInfo};
use crate::program_binary::{LibraryNeeds, ProgramBinary};
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Description on the package's page.
const DESCRIPTION: &str = "\
A native notebook that remembers: notes, tasks and Python cells in plain Markdown files.

This wheel carries the program itself, for `pipx install` and `uvx`. It needs no Python at run time: its cells run in a
Python of its own, or in your Jupyter kernels. A window needs the graphics libraries of a desktop.
";

/// Builds the wheel and returns its name and bytes.
pub(crate) fn make(files: &PackageFiles, release: &ReleaseInfo, program: &ProgramBinary) -> Result<(String, Vec<u8>)> {
    let tag = platform_tag(release, program.needs.as_ref())?;
    let stem = format!("tracebook-{}", release.version);
    let info = format!("{stem}.dist-info");
    let mut entries: Vec<(String, u32, Vec<u8>)> = Vec::new();
    for file in files.iter() {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let path = match file.path.as_str() {
            path if path.starts_with("bin/") => format!("{stem}.data/scripts/{name}"),
            path if path.starts_with("share/man/") => format!("{stem}.data/data/{path}"),
            _ if name.starts_with("LICENSE-") || name == "licenses.txt.gz" => format!("{info}/licenses/{name}"),
            _ if name == "sbom.cdx.json.gz" => format!("{info}/sboms/{name}"),
            _ => continue,
        };
        entries.push((path, file.mode, file.bytes.clone()));
    }
    let license_prefix = format!("{info}/licenses/");
    let licenses = entries.iter().filter_map(|(path, ..)| path.strip_prefix(&license_prefix));
    let licenses: String = licenses.map(|name| format!("License-File: {name}\n")).collect();
    let metadata = format!(
        "Metadata-Version: 2.4\nName: tracebook\nVersion: {}\n\
         Summary: A native notebook that remembers: notes, tasks and Python cells in plain Markdown files\n\
         Keywords: notes,markdown,notebook,jupyter\nLicense-Expression: MIT OR Apache-2.0\n{licenses}\
         Classifier: Environment :: X11 Applications\nClassifier: Programming Language :: Rust\n\
         Description-Content-Type: text/markdown\n\n{DESCRIPTION}",
        release.version,
    );
    let wheel = format!("Wheel-Version: 1.0\nGenerator: cargo-xtask\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n");
    entries.push((format!("{info}/METADATA"), 0o644, metadata.into_bytes()));
    entries.push((format!("{info}/WHEEL"), 0o644, wheel.into_bytes()));
    entries.sort();
    let record: String = entries
        .iter()
        .map(|(path, _, bytes)| {
            format!("{path},sha256={},{}\n", URL_SAFE_NO_PAD.encode(Sha256::digest(bytes)), bytes.len())
        })
        .chain([format!("{info}/RECORD,,\n")])
        .collect();
    // Python's installers expect it at the end.
    entries.push((format!("{info}/RECORD"), 0o644, record.into_bytes()));
    let entries = entries.iter().map(|(path, mode, bytes)| (path.clone(), *mode, bytes.as_slice()));
    Ok((format!("{stem}-py3-none-{tag}.whl"), zip_of(entries, release)?))
}

/// Libraries available on every Linux that wheels support, by the start of their names.
const WHEEL_LIBRARIES: [&str; 8] =
    ["ld-linux", "libc.", "libdl.", "libgcc_s.", "libm.", "libpthread.", "librt.", "libz."];

/// Returns the platform tag for Python's installers. A program that needs libraries that not every Linux has is only
/// for this machine and similar ones, and registries don't accept its wheel.
fn platform_tag(release: &ReleaseInfo, needs: Option<&LibraryNeeds>) -> Result<String> {
    let processor = release.processor();
    if let Some(LibraryNeeds { libraries, glibc: (major, minor) }) = needs {
        let is_everywhere = |name: &String| WHEEL_LIBRARIES.iter().any(|start| name.starts_with(start));
        return Ok(match libraries.iter().all(is_everywhere) {
            true => format!("manylinux_{major}_{minor}_{processor}"),
            false => format!("linux_{processor}"),
        });
    }
    let known = [
        // The oldest systems that Rust's targets support.
        ("x86_64-apple-darwin", "macosx_10_12_x86_64"),
        ("aarch64-apple-darwin", "macosx_11_0_arm64"),
        ("x86_64-pc-windows-msvc", "win_amd64"),
        ("aarch64-pc-windows-msvc", "win_arm64"),
    ];
    let found = known.iter().find(|(target, _)| *target == release.target);
    found.map(|(_, tag)| (*tag).to_owned()).with_context(|| format!("no wheel is made for {}", release.target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read};

    #[test]
    fn a_wheel_is_portable_if_all_libraries_are_everywhere() {
        let release = ReleaseInfo::new("1.2.3".into(), 0, "aarch64-unknown-linux-gnu".into()).expect("a release");
        let tag = |libraries: &[&str]| {
            let libraries = libraries.iter().map(|name| (*name).to_owned()).collect();
            platform_tag(&release, Some(&LibraryNeeds { libraries, glibc: (2, 28) })).expect("a tag")
        };
        assert_eq!(tag(&["ld-linux-aarch64.so.1", "libc.so.6", "libz.so.1"]), "manylinux_2_28_aarch64");
        assert_eq!(tag(&["libc.so.6", "libffi.so.8"]), "linux_aarch64");
    }

    #[test]
    fn a_wheel_names_its_platform_and_records_every_file() {
        let files = PackageFiles::of(&[
            ("bin/tracebook", 0o755, "the program"),
            ("share/man/man1/tracebook.1.gz", 0o644, "manual"),
            ("share/doc/tracebook/LICENSE-MIT", 0o644, "MIT"),
            ("share/doc/tracebook/sbom.cdx.json.gz", 0o644, "bill"),
            ("share/applications/tracebook.desktop", 0o644, "for desktops alone"),
        ]);
        let program = ProgramBinary {
            bytes: Vec::new(),
            version: "1.2.3".into(),
            manual: String::new(),
            completions: Vec::new(),
            needs: Some(LibraryNeeds { libraries: Vec::new(), glibc: (2, 34) }),
        };
        let release = ReleaseInfo::new("1.2.3".into(), 1_700_000_000, "x86_64-unknown-linux-gnu".into());
        let release = release.expect("a release");
        let (name, bytes) = make(&files, &release, &program).expect("made");
        assert_eq!(name, "tracebook-1.2.3-py3-none-manylinux_2_34_x86_64.whl");
        assert_eq!(bytes, make(&files, &release, &program).expect("made").1, "it is the same every time");
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("a zip file");
        let names: Vec<String> = archive.file_names().map(|name| name.expect("UTF-8").into_owned()).collect();
        let mut read = |name: &str| {
            let (mut file, mut bytes) = (archive.by_name(name).expect("it is there"), Vec::new());
            file.read_to_end(&mut bytes).expect("readable");
            (bytes, file.unix_mode().expect("a mode") & 0o777)
        };
        assert_eq!(read("tracebook-1.2.3.data/scripts/tracebook"), (b"the program".to_vec(), 0o755));
        let (record, _) = read("tracebook-1.2.3.dist-info/RECORD");
        let record = String::from_utf8(record).expect("text");
        let rows: Vec<Vec<&str>> = record.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), names, "each file has a row");
        for row in rows.iter().filter(|row| !row[0].ends_with("/RECORD")) {
            let (bytes, _) = read(row[0]);
            assert_eq!(row[1], format!("sha256={}", URL_SAFE_NO_PAD.encode(Sha256::digest(&bytes))));
            assert_eq!(row[2], bytes.len().to_string());
        }
        let (metadata, _) = read("tracebook-1.2.3.dist-info/METADATA");
        assert!(String::from_utf8(metadata).expect("text").contains("\nLicense-File: LICENSE-MIT\n"));
        assert!(!names.iter().any(|name| name.contains("desktop")), "{names:?}");
    }
}
