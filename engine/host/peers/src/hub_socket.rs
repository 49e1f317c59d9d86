//! WebSockets to a hub: plain only on this machine, otherwise TLS 1.3 or 1.2 with the certificate seen at pairing,
//! whoever signed it. While pairing, any certificate is accepted, since the code verifies it.

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

/// A message is at most this long, in bytes.
pub const MAX_SOCKET_MESSAGE_BYTES: usize = store::sync::wire::MAX_MESSAGE_BYTES + 1_024;
/// A hub answers within this time.
const HUB_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Which certificate is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateTrust {
    /// Any: for pairing only, where the code proves it.
    Any,
    /// The one with this BLAKE3, in hexadecimal.
    Pinned(String),
    /// One that a public authority has signed.
    Public,
}

/// Why there is no connection to a hub.
#[derive(Debug, thiserror::Error)]
pub enum HubConnectError {
    /// The address isn't one of a hub.
    #[error("“{address}” is no address of a hub: wss://HOST:PORT, or ws://127.0.0.1:PORT")]
    Address {
        /// The address.
        address: String,
    },
    /// The certificate that was kept at pairing is no hash.
    #[error("the certificate that was kept is none")]
    KeptCertificate,
    /// TLS can't be used.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// Another certificate is shown than was kept at pairing.
    #[error("the hub shows another certificate than when it was paired; if that's expected, pair it again: {address}")]
    OtherCertificate {
        /// Address of the hub.
        address: String,
    },
    /// No connection.
    #[error("the hub is not there ({why}): {address}")]
    NotThere {
        /// What the socket says.
        why: String,
        /// Address of the hub.
        address: String,
    },
    /// No answer in time.
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

/// A socket to a hub: as the device that was paired with it, which is proved on the way, or where none was, as any
/// program may call.
///
/// # Errors
/// It is not there, or refuses, in its words.
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
    // Without a certificate the way is plain, and `connect` allows that on this machine alone.
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
    /// Connects to a hub (`wss://host:port`, or `ws://` on this machine) at this path; returns the channel's identity
    /// too.
    ///
    /// # Errors
    /// It is not there, shows another certificate than was seen before, or the address is none.
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
            // tungstenite brings the public authorities, and takes the process's way to compute.
            CertificateTrust::Public => {
                // A provider that was installed earlier stays, and is this one.
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
                    false => HubConnectError::NotThere { why, address },
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

    /// Hangs up when the other side has taken all that was sent.
    pub async fn close_after_drain(mut self) {
        // What the other side has not taken by the timeout is lost with the connection either way.
        let _ = self.stream.close(None).await;
        let drained = async { while self.stream.next().await.is_some_and(|next| next.is_ok()) {} };
        // As above.
        let _ = tokio::time::timeout(HUB_CONNECT_TIMEOUT, drained).await;
    }

    /// Both directions of it, for those that send and listen at the same time.
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
