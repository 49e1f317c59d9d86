//! The files that packages install, with paths below a prefix such as `/usr` or `~/.local`.

use crate::program_binary::ProgramBinary;
use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use std::fs;
use std::io::Write;
use std::path::Path;

/// A release: its version, time and target.
pub(crate) struct ReleaseInfo {
    /// The version, as in Cargo.toml.
    pub(crate) version: String,
    /// Timestamp of packages and their files.
    pub(crate) time: jiff::Timestamp,
    /// Target triple.
    pub(crate) target: String,
}

impl ReleaseInfo {
    pub(crate) fn new(version: String, time: i64, target: String) -> Result<ReleaseInfo> {
        Ok(ReleaseInfo { version, time: jiff::Timestamp::from_second(time).context("a time that is none")?, target })
    }

    /// Returns the date in UTC.
    pub(crate) fn date(&self) -> String {
        self.time.strftime("%Y-%m-%d").to_string()
    }

    /// Returns the time in RFC 3339 format.
    pub(crate) fn timestamp(&self) -> String {
        self.time.to_string()
    }

    pub(crate) fn is_linux(&self) -> bool {
        self.target.contains("linux")
    }

    pub(crate) fn is_windows(&self) -> bool {
        self.target.contains("windows")
    }

    /// Returns the CPU architecture, as in the target triple.
    pub(crate) fn processor(&self) -> &str {
        self.target.split('-').next().unwrap_or_default()
    }

    /// Returns the contents of the file that `tracebook update --check` reads.
    pub(crate) fn version_file(&self) -> String {
        format!("{}\n", serde_json::json!({"version": self.version, "date": self.date()}))
    }
}

/// A file of a package.
#[derive(Clone)]
pub(crate) struct PackagedFile {
    /// Path relative to the prefix, with `/` separators.
    pub(crate) path: String,
    /// Unix permissions.
    pub(crate) mode: u32,
    /// Contents of the file.
    pub(crate) bytes: Vec<u8>,
}

/// The files of a package, sorted by path.
pub(crate) struct PackageFiles {
    files: Vec<PackagedFile>,
}

impl PackageFiles {
    /// Collects the files that every package has.
    pub(crate) fn collect(
        checkout: &Path,
        release: &ReleaseInfo,
        program: &ProgramBinary,
        licenses: &str,
        bill: &str,
    ) -> Result<PackageFiles> {
        let read = |path: &str| fs::read(checkout.join(path)).with_context(|| format!("can't read {path}"));
        let mut files = PackageFiles { files: Vec::new() };
        let program_name = if release.is_windows() { "bin/tracebook.exe" } else { "bin/tracebook" };
        files.add(program_name, 0o755, program.bytes.clone());
        let documents = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "docs/install.md"];
        for document in documents {
            let name = document.rsplit('/').next().unwrap_or(document);
            files.add(&format!("share/doc/tracebook/{name}"), 0o644, read(document)?);
        }
        files.add("share/doc/tracebook/licenses.txt.gz", 0o644, gzip(licenses.as_bytes())?);
        files.add("share/doc/tracebook/sbom.cdx.json.gz", 0o644, gzip(bill.as_bytes())?);
        if release.is_windows() {
            let completions = program.completions_for("powershell").as_bytes().to_vec();
            files.add("share/powershell/_tracebook.ps1", 0o644, completions);
            return Ok(files);
        }
        files.add("share/man/man1/tracebook.1.gz", 0o644, gzip(program.manual.as_bytes())?);
        for (shell, path) in [
            ("bash", "share/bash-completion/completions/tracebook"),
            ("zsh", "share/zsh/site-functions/_tracebook"),
            ("fish", "share/fish/vendor_completions.d/tracebook.fish"),
        ] {
            files.add(path, 0o644, program.completions_for(shell).as_bytes().to_vec());
        }
        if release.is_linux() {
            files.add("share/applications/tracebook.desktop", 0o644, read("xtask/package/tracebook.desktop")?);
            let info = String::from_utf8(read("xtask/package/metainfo.xml")?)?;
            let info = info.replace("@VERSION@", &release.version).replace("@DATE@", &release.date());
            files.add(&format!("share/metainfo/{APPSTREAM_ID}.metainfo.xml"), 0o644, info.into_bytes());
            let icons = "share/icons/hicolor";
            files.add(&format!("{icons}/scalable/apps/tracebook.svg"), 0o644, read("assets/icon/tracebook.svg")?);
            for size in [48, 64, 128, 256] {
                let icon = read(&format!("assets/icon/tracebook-{size}.png"))?;
                files.add(&format!("{icons}/{size}x{size}/apps/tracebook.png"), 0o644, icon);
            }
        }
        Ok(files)
    }

    /// Creates files with these paths, for tests of the formats.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, u32, &str)]) -> PackageFiles {
        let mut made = PackageFiles { files: Vec::new() };
        files.iter().for_each(|(path, mode, text)| made.add(path, *mode, text.as_bytes().to_vec()));
        made
    }

    fn add(&mut self, path: &str, mode: u32, bytes: Vec<u8>) {
        self.files.push(PackagedFile { path: path.to_owned(), mode, bytes });
        self.files.sort_by(|one, other| one.path.cmp(&other.path));
    }

    /// Returns all files, sorted by path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PackagedFile> {
        self.files.iter()
    }
}

/// The program's id for software centers, the same as in package/metainfo.xml.
pub(crate) const APPSTREAM_ID: &str = "io.github.tracebook.tracebook";

/// Compresses bytes without a time or a name in the header.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}
