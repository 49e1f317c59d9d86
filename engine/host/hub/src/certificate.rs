//! The hub's TLS certificate, created once and kept or read from files, and the token for `/metrics`.

use crate::error::{HubCertificateError, HubFileError};
use crate::settings::{HubSettings, TlsMode};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// TLS configuration of the hub's server, with its certificate.
pub(crate) struct HubCertificate {
    pub(crate) config: Arc<ServerConfig>,
    /// The certificate in DER form.
    pub(crate) der: Vec<u8>,
}

/// Loads the certificate that the settings name; `None`: the hub serves without TLS.
pub(crate) fn load_certificate(settings: &HubSettings) -> Result<Option<HubCertificate>, HubCertificateError> {
    let (certificate, key) = match &settings.tls {
        TlsMode::Plain => return Ok(None),
        TlsMode::Files { certificate, key } => (certificate.clone(), key.clone()),
        TlsMode::Own => load_or_create_self_signed(settings)?,
    };
    let pem = |path: &Path, source| HubCertificateError::Pem { source, path: path.to_owned() };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(&certificate).map_err(|error| pem(&certificate, error))?.collect();
    let chain: Vec<CertificateDer<'static>> = chain.map_err(|error| pem(&certificate, error))?;
    let missing = || HubCertificateError::Missing { path: certificate.clone() };
    let der = chain.first().ok_or_else(missing)?.to_vec();
    let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| pem(&key, error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|source| HubCertificateError::Unfit { source, path: certificate })?;
    // WebSockets begin as HTTP 1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(HubCertificate { config: Arc::new(config), der }))
}

/// Returns the paths of the hub's self-signed certificate and its key, which are created at the first start.
fn load_or_create_self_signed(settings: &HubSettings) -> Result<(PathBuf, PathBuf), HubCertificateError> {
    let (certificate, key) = (settings.folder.join("certificate.pem"), settings.folder.join("certificate.key"));
    if !certificate.exists() || !key.exists() {
        let ip = settings.listen.ip();
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        if !ip.is_unspecified() && !ip.is_loopback() {
            names.push(ip.to_string());
        }
        let made = rcgen::generate_simple_self_signed(names)?;
        write_private_file(&key, made.signing_key.serialize_pem().as_bytes())?;
        write_private_file(&certificate, made.cert.pem().as_bytes())?;
    }
    Ok((certificate, key))
}

/// Name of the file with the token for `/metrics`, in the hub's folder.
const METRICS_TOKEN_FILE: &str = "metrics-token";

/// Returns the token for `/metrics`, which is created at the first start and kept.
pub(crate) fn load_or_create_metrics_token(folder: &Path) -> Result<String, HubFileError> {
    let path = folder.join(METRICS_TOKEN_FILE);
    match std::fs::read_to_string(&path) {
        Ok(token) if token.trim().len() >= 16 => return Ok(token.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(HubFileError::io(path)(error)),
    }
    let chance: [u8; 16] = peers::key::random_bytes()?;
    let token: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
    write_private_file(&path, token.as_bytes())?;
    Ok(token)
}

/// Writes a file that only the current user can read.
pub(crate) fn write_private_file(path: &Path, bytes: &[u8]) -> Result<(), HubFileError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let written = options.open(path).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(HubFileError::io(path))
}
