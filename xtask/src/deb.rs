//! Builds the package for Debian and its derivatives, with `dpkg-deb`.

use crate::output_of;
use crate::package_files::{PackageFiles, ReleaseInfo};
use crate::program_binary::{LibraryNeeds, ProgramBinary};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Packages of the libraries that the program may be linked against. `libc6` gets the required version.
const LINKED_LIBRARIES: &[(&str, &str)] = &[
    ("ld-linux-aarch64.so.1", "libc6"),
    ("ld-linux-x86-64.so.2", "libc6"),
    ("libc.so.6", "libc6"),
    ("libdl.so.2", "libc6"),
    // Needed only by programs that `xtask` didn't build.
    ("libffi.so.8", "libffi8"),
    ("libz.so.1", "zlib1g"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libm.so.6", "libc6"),
    ("libpthread.so.0", "libc6"),
    ("librt.so.1", "libc6"),
];

/// Packages of the libraries that the window loads at run time. `libegl1` and `libgl1` bring a driver.
const WINDOW_LIBRARIES: &str =
    "libegl1, libgl1, libx11-6, libx11-xcb1, libxcursor1, libxi6, libxkbcommon-x11-0, libxkbcommon0, libxrandr2";

/// Packages for optional features: Wayland, the desktop's file dialogs and spelling. The desktop provides a keyring.
const RECOMMENDED: &str = "hunspell-en-us | hunspell-dictionary, libwayland-client0, libwayland-egl1, \
                           shared-mime-info, xdg-desktop-portal";
/// Suggested packages: CJK and emoji fonts, Python packages, and notes in Git.
const SUGGESTED: &str = "fonts-noto-cjk, fonts-noto-color-emoji, git, python3-ipykernel";

/// Builds the package and returns its name and bytes.
pub(crate) fn make(
    files: &PackageFiles,
    release: &ReleaseInfo,
    program: &ProgramBinary,
    checkout: &Path,
) -> Result<(String, Vec<u8>)> {
    let needs = program.needs.as_ref().context("a Linux program names its libraries")?;
    let architecture = match release.processor() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => anyhow::bail!("Debian's name for {other} isn't known here: add it to xtask/src/deb.rs"),
    };
    let now = jiff::Timestamp::now();
    ensure!(release.time <= now, "the time of the packages ({}) is still to come", release.timestamp());
    let work = tempfile::tempdir()?;
    let root = work.path().join("root");
    let copyright = fs::read(checkout.join("xtask/package/copyright")).context("can't read xtask/package/copyright")?;
    place_file(&root, "usr/share/doc/tracebook/copyright", 0o644, &copyright)?;
    for file in files.iter() {
        // Debian's zsh looks for completions of packages in another folder.
        let path = file.path.replace("share/zsh/site-functions/", "share/zsh/vendor-completions/");
        place_file(&root, &format!("usr/{path}"), file.mode, &file.bytes)?;
    }
    let installed_bytes = copyright.len() + files.iter().map(|file| file.bytes.len()).sum::<usize>();
    let control = control_file(release, architecture, &depends(needs)?, installed_bytes.div_ceil(1024));
    place_file(&root, "DEBIAN/control", 0o644, control.as_bytes())?;
    let name = format!("tracebook_{}_{architecture}.deb", release.version);
    let package = work.path().join(&name);
    output_of(
        Command::new("dpkg-deb")
            // With several threads, the bytes would depend on the number of cores.
            .args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"])
            .args([&root, &package])
            .env("SOURCE_DATE_EPOCH", release.time.as_second().to_string()),
    )?;
    Ok((name, fs::read(&package)?))
}

/// Returns the packages that the program depends on.
fn depends(needs: &LibraryNeeds) -> Result<String> {
    let mut packages: Vec<&str> = Vec::new();
    for library in &needs.libraries {
        let known = LINKED_LIBRARIES.iter().find(|(name, _)| name == library);
        let (_, package) =
            known.with_context(|| format!("{library}: say in xtask/src/deb.rs which package has this library"))?;
        if !packages.contains(package) {
            packages.push(package);
        }
    }
    let (major, minor) = needs.glibc;
    let versioned = packages.iter().map(|package| match *package {
        "libc6" => format!("libc6 (>= {major}.{minor})"),
        other => other.to_owned(),
    });
    Ok(versioned.chain([WINDOW_LIBRARIES.to_owned()]).collect::<Vec<_>>().join(", "))
}

fn control_file(release: &ReleaseInfo, architecture: &str, depends: &str, installed_kib: usize) -> String {
    format!(
        "Package: tracebook\n\
         Version: {}\n\
         Architecture: {architecture}\n\
         Maintainer: Tracebook contributors <tracebook@localhost>\n\
         Installed-Size: {installed_kib}\n\
         Depends: {depends}\n\
         Recommends: {RECOMMENDED}\n\
         Suggests: {SUGGESTED}\n\
         Section: editors\n\
         Priority: optional\n\
         Description: native notebook that remembers\n \
         Tracebook opens your own folders of Markdown files: notes, tasks and Python\n \
         cells, with search, history, sync between devices and agents. Every\n \
         keystroke is on disk within milliseconds. Python is built in; Jupyter kernels\n \
         work, too. All of it is in the window and on the command line.\n",
        release.version,
    )
}

/// Writes a file below `root`. The file and its folders get the permissions of packages, whatever the umask.
fn place_file(root: &Path, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
    let path = root.join(path);
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder)?;
    for folder in folder.ancestors().take_while(|above| above.starts_with(root)) {
        set_mode(folder, 0o755)?;
    }
    fs::write(&path, bytes)?;
    set_mode(&path, mode)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

/// Does nothing: Debian packages are built on Debian.
#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_of_the_libraries_that_are_linked() {
        let needs = |libraries: &[&str]| LibraryNeeds {
            libraries: libraries.iter().map(|name| (*name).to_owned()).collect(),
            glibc: (2, 34),
        };
        let said = depends(&needs(&["libc.so.6", "libgcc_s.so.1", "libm.so.6"])).expect("all are known");
        assert_eq!(said, format!("libc6 (>= 2.34), libgcc-s1, {WINDOW_LIBRARIES}"));
        let error = depends(&needs(&["libssl.so.3"])).expect_err("an unknown library");
        assert!(error.to_string().starts_with("libssl.so.3: "), "{error}");
    }
}
