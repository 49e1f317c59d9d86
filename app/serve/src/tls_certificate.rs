//! The server's own certificate, made at the first start and kept in the workspace.

use crate::http_server::TlsFiles;
use crate::private_list::private_options;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};

/// An address that is never used, for which the system says from which of its own it would send.
const UNUSED_ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// Why there's no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It can't be made for these names.
    #[error("no certificate can be made for these names: {0}")]
    Made(#[from] rcgen::Error),
    /// It can't be written.
    #[error("{path} can't be written: {source}")]
    Written {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Returns this machine's address in its network, if it has one. Nothing is sent.
pub(crate) fn local_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(UNUSED_ADDRESS).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_unspecified())
}

/// Returns the certificate in the workspace, which is made if there's none. Delete the files to make a new one.
pub(crate) fn load_or_create(workspace: &Path, names: &[String], bound: IpAddr) -> Result<TlsFiles, CertificateError> {
    let files =
        TlsFiles { certificate: workspace.join("http-certificate.pem"), key: workspace.join("http-certificate.key") };
    if files.certificate.exists() && files.key.exists() {
        return Ok(files);
    }
    let mut known = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let own = local_address().filter(|_| bound.is_unspecified()).or(Some(bound));
    known.extend(own.filter(|address| !address.is_unspecified() && !address.is_loopback()).map(|own| own.to_string()));
    known.extend(names.iter().cloned());
    let made = rcgen::generate_simple_self_signed(known)?;
    let write = |path: &Path, text: String| {
        let written = private_options().truncate(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|source| CertificateError::Written { path: path.to_owned(), source })
    };
    write(&files.key, made.signing_key.serialize_pem())?;
    write(&files.certificate, made.cert.pem())?;
    Ok(files)
}
