//! The endpoint of the queue of runs.

use super::{PING_INTERVAL, PendingSocket, READ_BUFFER_BYTES, ServerState, admit_device, over_capacity_response};
use crate::work::WorkCaller;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{ConnectInfo, State};
use axum::response::Response;
use peers::DeviceId;
use peers::devices::PairedDevice;
use peers::handshake::{FrameTransport, PeerFrame};
use peers::work::{MAX_WORK_MESSAGE_BYTES, WorkReply, WorkRequest};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// Serves the queue of runs to paired devices: a request, an answer, and so on.
pub(super) async fn serve_work(
    State(shared): State<Arc<ServerState>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(there) = shared.connections.find_peer(from).filter(|_| shared.connections.has_room()) else {
        return over_capacity_response(&shared);
    };
    let upgrade = upgrade.max_message_size(MAX_WORK_MESSAGE_BYTES).max_frame_size(MAX_WORK_MESSAGE_BYTES);
    upgrade.read_buffer_size(READ_BUFFER_BYTES).on_upgrade(move |socket| async move {
        let mut door = PendingSocket(socket);
        let Some((id, _)) = admit_device(&shared, &there, &mut door, from).await else { return };
        while let Ok(Some(PeerFrame::Text(text))) = tokio::time::timeout(PING_INTERVAL, door.next_frame()).await {
            shared.connections.finish_message(&there);
            // It may have been revoked since the last request.
            let Ok(device) = shared.find_paired_device(id) else { return };
            let inside = Arc::clone(&shared);
            let answered = tokio::task::spawn_blocking(move || inside.answer_work(id, &device, &text)).await;
            let Ok(answer) = answered else { return };
            if door.send_frame(PeerFrame::Text(answer)).await.is_err() {
                return;
            }
        }
    })
}

impl ServerState {
    /// Returns the paired devices with their names.
    fn device_names(&self) -> Vec<(DeviceId, String)> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let known = list.iter().filter(|(_, device)| device.is_authorized());
        known.map(|(id, device)| (*id, device.name.clone())).collect()
    }

    /// Answers a request of a device to the queue of runs. Blocks while it's stored.
    fn answer_work(&self, id: DeviceId, device: &PairedDevice, request: &str) -> String {
        let access = |volume| self.volumes.access(Some(id), device.access, volume);
        let caller = WorkCaller { device: id, name: &device.name, access: &access };
        let reply = match serde_json::from_str(request) {
            Ok(WorkRequest::Devices) => WorkReply::Devices(self.device_names()),
            Ok(request) => self.work.answer(&caller, request, Instant::now()),
            Err(why) => WorkReply::Refused(format!("the hub doesn't know this request ({why})")),
        };
        match serde_json::to_string(&reply) {
            Ok(text) if text.len() <= MAX_WORK_MESSAGE_BYTES => text,
            Ok(_) | Err(_) => r#"{"refused":"the answer would be too long"}"#.to_owned(),
        }
    }
}
