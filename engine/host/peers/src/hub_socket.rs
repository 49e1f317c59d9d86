//! WebSockets to a hub.
//!
//! They are unencrypted only on this machine. Otherwise they use TLS 1.3 or 1.2 with the certificate seen at pairing,
//! no matter who signed it. While pairing, any certificate is accepted, because the code verifies it.

use crate::challenge::ChannelBinding;
use crate::devices::PairedDevice;
use crate::handshake::{DEVICE_PATH, FrameSendError, FrameTransport, HandshakeError, PeerFrame};
use crate::key::{DeviceId, DeviceKey, unhex};
use futures_util::{SinkExt, StreamExt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream};

/// Maximum length of a message in bytes.
pub const MAX_SOCKET_MESSAGE_BYTES: usize = store::sync::wire::MAX_MESSAGE_BYTES + 1_024;
/// How long a hub may take to answer.
const HUB_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Which certificate of a hub is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateTrust {
    /// Any certificate: for pairing only, where the code verifies it.
    Any,
    /// The certificate with this BLAKE3 hash, in hexadecimal.
    Pinned(String),
    /// A certificate signed by a public certificate authority.
    Public,
}

/// Why a hub can't be connected.
#[derive(Debug, thiserror::Error)]
pub enum HubConnectError {
    /// The address isn't valid for a hub.
    #[error("“{address}” isn't the address of a hub; write wss://HOST:PORT, or ws://127.0.0.1:PORT")]
    Address {
        /// The invalid address.
        address: String,
    },
    /// The stored certificate hash isn't a valid hash.
    #[error("the stored certificate of the hub is damaged; pair the hub again")]
    KeptCertificate,
    /// TLS can't be used.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The hub shows a different certificate than the one stored at pairing.
    #[error("the hub shows another certificate than when it was paired; if that's expected, pair it again: {address}")]
    OtherCertificate {
        /// Address of the hub.
        address: String,
    },
    /// The connection failed.
    #[error("the hub is not there ({why}); check its address, and that `tracebook hub` runs there: {address}")]
    NotThere {
        /// The socket's error message.
        why: String,
        /// Address of the hub.
        address: String,
    },
    /// The hub didn't answer in time.
    #[error("the hub does not answer: {address}")]
    Timeout {
        /// Address of the hub.
        address: String,
    },
    /// The connection has no certificate.
    #[error("the hub shows no certificate")]
    NoCertificate,
    /// The hub refuses, or isn't the one that was paired.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

/// Connects to a hub: authenticated if this device was paired with it, otherwise in the way open to any program.
///
/// # Errors
/// Returns an error if the hub can't be reached, or refuses (with its reason).
pub async fn connect_to_hub(
    address: &str,
    key: Option<&DeviceKey>,
    list: &BTreeMap<DeviceId, PairedDevice>,
) -> Result<HubSocket, HubConnectError> {
    let address = address.trim_end_matches('/');
    let paired = list.iter().find(|(_, device)| device.is_authorized() && device.address.as_deref() == Some(address));
    let (Some((hub, device)), Some(key)) = (paired, key) else {
        return HubSocket::connect(address, "/", &CertificateTrust::Public).await.map(|(socket, _)| socket);
    };
    // Without a certificate the connection is unencrypted, which `connect` allows only on this machine.
    let trust = device.certificate.clone().map_or(CertificateTrust::Public, CertificateTrust::Pinned);
    let (mut socket, binding) = HubSocket::connect(address, DEVICE_PATH, &trust).await?;
    crate::handshake::authenticate_to_listener(&mut socket, key, *hub, &binding).await?;
    Ok(socket)
}

#[derive(Debug)]
struct PinnedCertVerifier {
    expected_hash: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.expected_hash {
            Some(wanted) if blake3::hash(end_entity) != wanted => {
                Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
            Some(_) | None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A WebSocket to a hub.
#[derive(Debug)]
pub struct HubSocket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl HubSocket {
    /// Connects to a hub (`wss://host:port`, or `ws://` on this machine) at this path. Also returns the channel's
    /// binding.
    ///
    /// # Errors
    /// Returns an error if the address is invalid, the hub can't be reached, or its certificate differs from the pinned
    /// one.
    pub async fn connect(
        address: &str,
        path: &str,
        trust: &CertificateTrust,
    ) -> Result<(HubSocket, ChannelBinding), HubConnectError> {
        let address = address.trim_end_matches('/').to_owned();
        let local = ["ws://127.0.0.1:", "ws://localhost:", "ws://[::1]:"].iter().any(|own| address.starts_with(own));
        if !address.starts_with("wss://") && !local {
            return Err(HubConnectError::Address { address });
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let wanted = match trust {
            CertificateTrust::Any | CertificateTrust::Public => None,
            CertificateTrust::Pinned(hash) => Some(unhex::<32>(hash).ok_or(HubConnectError::KeptCertificate)?),
        };
        let pin = Arc::new(PinnedCertVerifier { expected_hash: wanted, provider: Arc::clone(&provider) });
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_SOCKET_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_SOCKET_MESSAGE_BYTES));
        let url = format!("{address}{path}");
        let connector = match trust {
            // tungstenite provides the public authorities and uses the process's default crypto provider.
            CertificateTrust::Public => {
                // If a provider was installed earlier, it stays, and it's this one.
                let _ = rustls::crypto::ring::default_provider().install_default();
                None
            }
            CertificateTrust::Any | CertificateTrust::Pinned(_) => {
                let tls = tls.dangerous().with_custom_certificate_verifier(pin).with_no_client_auth();
                Some(Connector::Rustls(Arc::new(tls)))
            }
        };
        let connecting = tokio_tungstenite::connect_async_tls_with_config(url, Some(limits), true, connector);
        let connected = tokio::time::timeout(HUB_CONNECT_TIMEOUT, connecting).await;
        let (stream, _) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => {
                let why = error.to_string();
                return Err(match why.contains("ApplicationVerificationFailure") {
                    true => HubConnectError::OtherCertificate { address },
                    false => HubConnectError::NotThere { why: why.replace("IO error: ", ""), address },
                });
            }
            Err(_) => return Err(HubConnectError::Timeout { address }),
        };
        let binding = match stream.get_ref() {
            MaybeTlsStream::Rustls(tls) => {
                let shown = tls.get_ref().1.peer_certificates().and_then(<[_]>::first);
                ChannelBinding::from_certificate(shown.ok_or(HubConnectError::NoCertificate)?)
            }
            _ => ChannelBinding::default(),
        };
        Ok((HubSocket { stream }, binding))
    }

    /// Closes the connection and waits until the other side has received everything.
    pub async fn close_after_drain(mut self) {
        // Data that the other side hasn't received by the timeout is lost with the connection in any case.
        let _ = self.stream.close(None).await;
        let drained = async { while self.stream.next().await.is_some_and(|next| next.is_ok()) {} };
        // The timeout has the same consequence.
        let _ = tokio::time::timeout(HUB_CONNECT_TIMEOUT, drained).await;
    }

    /// Returns the stream, for callers that send and receive concurrently.
    pub fn into_stream(self) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
        self.stream
    }
}

impl FrameTransport for HubSocket {
    async fn send_frame(&mut self, frame: PeerFrame) -> Result<(), FrameSendError> {
        let message = match frame {
            PeerFrame::Text(text) => Message::text(text),
            PeerFrame::Binary(bytes) => Message::binary(bytes),
        };
        self.stream.send(message).await.map_err(FrameSendError::ended)
    }

    async fn next_frame(&mut self) -> Option<PeerFrame> {
        loop {
            match self.stream.next().await?.ok()? {
                Message::Text(text) => return Some(PeerFrame::Text(text.as_str().to_owned())),
                Message::Binary(bytes) => return Some(PeerFrame::Binary(bytes.to_vec())),
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}
