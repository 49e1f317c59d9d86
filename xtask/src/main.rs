//! `cargo xtask dist` makes packages of Tracebook: a `.deb`, an archive to unpack, a wheel for Python's installers, the
//! licenses of all linked crates, a bill of materials and checksums. The same sources and the same binary give the same
//! bytes: every time is the commit's, every list is sorted, and no user or machine is named.

mod archive;
mod deb;
mod license_texts;
mod linked_crates;
mod package_files;
mod program_binary;
mod sbom;
mod wheel;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use linked_crates::LinkedCrates;
use package_files::{PackageFiles, ReleaseInfo};
use program_binary::ProgramBinary;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// No package of a release is larger, in bytes.
const MAX_PACKAGE_BYTES: u64 = 80 << 20;

/// Tasks around the source that Cargo has no command for.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct XtaskArguments {
    #[command(subcommand)]
    task: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Make packages: .deb (on Debian and the like), archive, wheel, licenses, bill of materials, checksums.
    Dist {
        /// Package this program; without it, one is built with everything in it, in the profile `dist`.
        #[arg(long)]
        binary: Option<PathBuf>,
        /// The folder for the packages; target/dist when left out.
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

fn main() -> Result<()> {
    match XtaskArguments::parse().task {
        XtaskCommand::Dist { binary, out } => make_packages(binary, out),
    }
}

/// The checkout: the folder above this package.
fn checkout_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// Runs a program and returns what it prints.
fn output_of(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().with_context(|| format!("{name} doesn't start; is it installed?"))?;
    if !done.status.success() {
        bail!("{name} failed ({}): {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    }
    String::from_utf8(done.stdout).with_context(|| format!("{name} printed text that isn't UTF-8"))
}

/// The time that every package carries, in seconds since 1970: `SOURCE_DATE_EPOCH`, or else the commit's.
fn release_time(checkout: &Path) -> Result<i64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => output_of(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(checkout))
            .context("there is no time for the packages: set SOURCE_DATE_EPOCH where there is no Git history")?,
    };
    text.trim().parse().with_context(|| format!("“{}” is no number of seconds since 1970", text.trim()))
}

fn make_packages(binary: Option<PathBuf>, out: Option<PathBuf>) -> Result<()> {
    let checkout = checkout_folder();
    let out = out.unwrap_or_else(|| checkout.join("target/dist"));
    fs::create_dir_all(&out).with_context(|| format!("can't create {}", out.display()))?;
    let target = host_target()?;
    let time = release_time(&checkout)?;
    let crates = LinkedCrates::read(&checkout, &target)?;
    let is_release = binary.is_none();
    let program = match binary {
        Some(path) => ProgramBinary::read(&path, &target)?,
        None => ProgramBinary::read(&program_binary::build(&checkout)?, &target)?,
    };
    ensure!(
        program.version == crates.version,
        "the program says that it is {}, and this checkout is {}: build the program again",
        program.version,
        crates.version
    );
    ensure!(!program.version.contains('-'), "{}: packages are made of releases only", program.version);
    let release = ReleaseInfo::new(program.version.clone(), time, target)?;

    let licenses = license_texts::collect(&crates, &checkout)?;
    let bill = sbom::bill_of_materials(&crates, &release)?;
    let files = PackageFiles::collect(&checkout, &release, &program, &licenses, &bill)?;

    let mut made = Vec::new();
    let mut write = |name: String, bytes: &[u8]| -> Result<()> {
        let path = out.join(&name);
        fs::write(&path, bytes).with_context(|| format!("can't write {}", path.display()))?;
        made.push(name);
        Ok(())
    };
    let version = &release.version;
    write(format!("tracebook-{version}.cdx.json"), bill.as_bytes())?;
    write(format!("tracebook-{version}-licenses.txt"), licenses.as_bytes())?;
    write("latest.json".to_owned(), release.version_file().as_bytes())?;
    let (name, bytes) = archive::make(&files, &release)?;
    write(name, &bytes)?;
    let (name, bytes) = wheel::make(&files, &release, &program)?;
    write(name, &bytes)?;
    if release.is_linux() {
        let (name, bytes) = deb::make(&files, &release, &program, &checkout)?;
        write(name, &bytes)?;
    }
    made.sort();
    let mut sums = String::new();
    for name in &made {
        let bytes = fs::read(out.join(name))?;
        sums.push_str(&format!("{}  {name}\n", hex(&Sha256::digest(&bytes))));
        println!("{:>7.1} MB  {name}", bytes.len() as f64 / f64::from(1 << 20));
        if bytes.len() as u64 > MAX_PACKAGE_BYTES {
            let problem = format!("{name} is larger than {} MB", MAX_PACKAGE_BYTES >> 20);
            // Programs from other profiles may be larger.
            ensure!(!is_release, "{problem}");
            println!("warning: {problem}");
        }
    }
    fs::write(out.join("SHA256SUMS"), sums)?;
    println!("{} crates are linked; packages are in {}", crates.all().count(), out.display());
    Ok(())
}

/// The target that this machine's compiler builds for.
fn host_target() -> Result<String> {
    let text = output_of(Command::new("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` doesn't name its host")
}

/// Bytes as lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
