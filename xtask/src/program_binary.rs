//! The program to package: builds and strips it, and reads its version, manual, completions and required libraries.

use crate::output_of;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shells whose completions are packaged, as `tracebook completions` names them.
const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

/// The stripped program and what packages need to know about it.
pub(crate) struct ProgramBinary {
    /// Bytes of the stripped program.
    pub(crate) bytes: Vec<u8>,
    /// Version, as printed by `--version`.
    pub(crate) version: String,
    /// The manual page.
    pub(crate) manual: String,
    /// Completions by shell.
    pub(crate) completions: Vec<(&'static str, String)>,
    /// Required libraries; `None` for targets other than Linux.
    pub(crate) needs: Option<LibraryNeeds>,
}

/// The libraries that an ELF program is linked against.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LibraryNeeds {
    /// Shared libraries, sorted.
    pub(crate) libraries: Vec<String>,
    /// Oldest glibc version that has all symbols: major and minor.
    pub(crate) glibc: (u32, u32),
}

/// C libraries that crates link dynamically but that differ between systems. They're linked statically instead.
const STATIC_LIBRARIES: [&str; 2] = ["libffi.a", "libz.a"];

/// Builds the program for users with all features, and returns its path.
pub(crate) fn build(checkout: &Path) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| checkout.join("target"), PathBuf::from);
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command
        .args(["rustc", "--profile", "dist", "--locked", "--ignore-rust-version"])
        .args(["--package", "tracebook", "--features", "full", "--bin", "tracebook", "--"])
        .current_dir(checkout);
    if cfg!(target_os = "linux") {
        command.arg("-L").arg(format!("native={}", collect_static_libraries(&target)?.display()));
    }
    ensure!(command.status()?.success(), "the program doesn't build");
    Ok(target.join("dist").join(format!("tracebook{}", std::env::consts::EXE_SUFFIX)))
}

/// Copies the system's static libraries into a folder that the linker searches first.
///
/// Without shared libraries beside them, the linker links them into the program.
fn collect_static_libraries(target: &Path) -> Result<PathBuf> {
    let folder = target.join("static-libraries");
    fs::create_dir_all(&folder)?;
    for name in STATIC_LIBRARIES {
        let path = output_of(Command::new("cc").arg(format!("-print-file-name={name}")))?;
        let path = Path::new(path.trim());
        // The compiler prints the bare name of a file that it doesn't find.
        ensure!(path.is_absolute(), "{name} is missing: on Debian it is in libffi-dev or zlib1g-dev");
        fs::copy(path, folder.join(name)).with_context(|| format!("can't copy {}", path.display()))?;
    }
    Ok(folder)
}

impl ProgramBinary {
    /// Reads a program, strips a copy of it, and queries that copy.
    pub(crate) fn read(path: &Path, target: &str) -> Result<ProgramBinary> {
        let work = tempfile::tempdir()?;
        let copy = work.path().join(format!("tracebook{}", std::env::consts::EXE_SUFFIX));
        fs::copy(path, &copy).with_context(|| format!("can't copy {}", path.display()))?;
        // On Windows, symbols are in a separate file.
        if !target.contains("windows") {
            let words: &[&str] = if target.contains("apple") { &["-x"] } else { &["--strip-all"] };
            output_of(Command::new("strip").args(words).arg(&copy))?;
        }
        let ask = |words: &[&str]| {
            // The command must not read or create a workspace of this user.
            let mut command = Command::new(&copy);
            command.args(words).env("HOME", work.path()).current_dir(work.path());
            ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA"].iter().for_each(|name| _ = command.env_remove(name));
            output_of(&mut command).with_context(|| format!("`tracebook {}` failed", words.join(" ")))
        };
        let version = ask(&["--version"])?;
        let version = version.split_whitespace().last().unwrap_or_default().to_owned();
        let completions = SHELLS.map(|shell| Ok((shell, ask(&["completions", shell])?)));
        Ok(ProgramBinary {
            version,
            manual: ask(&["man"])?,
            completions: completions.into_iter().collect::<Result<_>>()?,
            needs: target.contains("linux").then(|| LibraryNeeds::read(&copy)).transpose()?,
            bytes: fs::read(&copy)?,
        })
    }

    /// Returns the completions of a shell.
    pub(crate) fn completions_for(&self, shell: &str) -> &str {
        self.completions.iter().find(|(name, _)| *name == shell).map_or("", |(_, text)| text)
    }
}

impl LibraryNeeds {
    fn read(program: &Path) -> Result<LibraryNeeds> {
        let said = output_of(Command::new("readelf").args(["--wide", "--dynamic", "--version-info"]).arg(program))?;
        LibraryNeeds::from_readelf(&said)
    }

    /// Parses the output of `readelf --wide --dynamic --version-info`.
    fn from_readelf(said: &str) -> Result<LibraryNeeds> {
        let named = said.lines().filter(|line| line.contains("(NEEDED)"));
        let mut libraries: Vec<String> =
            named.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())).collect();
        libraries.sort();
        let mut glibc = None;
        for word in said.split_whitespace() {
            let Some((major, minor)) = word.strip_prefix("GLIBC_").and_then(|version| version.split_once('.')) else {
                continue;
            };
            // A version such as 2.2.5 is older than all that Rust needs.
            let minor = minor.split('.').next().unwrap_or_default();
            if let (Ok(major), Ok(minor)) = (major.parse(), minor.parse()) {
                glibc = glibc.max(Some((major, minor)));
            }
        }
        match glibc {
            Some(glibc) => Ok(LibraryNeeds { libraries, glibc }),
            None => bail!("the program isn't linked against glibc: packages for other C libraries aren't made"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_oldest_glibc_are_read() {
        let said = " 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]\n \
            0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]\n \
            0x000000000000000e (SONAME)             Library soname: [x.so]\n  \
            0x0010:   Name: GLIBC_2.9  Flags: none  Version: 7\n  \
            0x0020:   Name: GLIBC_2.34  Flags: none  Version: 8\n  \
            0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 3\n  \
            0x0040:   Name: GCC_4.2.0  Flags: none  Version: 6\n";
        let needs = LibraryNeeds::from_readelf(said).expect("an ELF file");
        assert_eq!(needs, LibraryNeeds { libraries: vec!["libc.so.6".into(), "libm.so.6".into()], glibc: (2, 34) });
        assert!(LibraryNeeds::from_readelf("There is no dynamic section in this file.").is_err());
    }
}
