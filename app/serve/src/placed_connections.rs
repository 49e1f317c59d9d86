//! Connections over TCP. Each takes a place of its network, so that one stranger leaves places to others.

use crate::client_rates::{ClientNetwork, NetworkPlace, NetworkPlaces};
use axum_server::accept::Accept;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Closes connections for which there's no place.
#[derive(Clone)]
pub(crate) struct PlaceAcceptor {
    pub(crate) places: Arc<NetworkPlaces>,
}

impl<S> Accept<TcpStream, S> for PlaceAcceptor {
    type Stream = PlacedStream;
    type Service = S;
    type Future = Ready<io::Result<(PlacedStream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let placed = stream.peer_addr().and_then(|address| {
            let place = self.places.take(ClientNetwork::of_address(address.ip()));
            let place = place.ok_or_else(|| io::Error::other("there is no place for this connection"))?;
            Ok((PlacedStream { stream, _place: place }, service))
        });
        ready(placed)
    }
}

/// A connection, and its place for as long as it's open.
pub(crate) struct PlacedStream {
    stream: TcpStream,
    _place: NetworkPlace,
}

impl AsyncRead for PlacedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for PlacedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
