//! `tracebook.v1.EventService`: what happens in the workspace, as it happens.

use super::generated::v1::event_service_server::EventService;
use super::generated::v1::{WatchEventsRequest, WatchEventsResponse};
use super::request_checks::{given, refused, scoped_caller};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::rest_events::follow_events;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The service.
pub(super) struct EventGrpcService {
    pub(super) state: Arc<HttpState>,
}

#[tonic::async_trait]
impl EventService for EventGrpcService {
    type WatchEventsStream = BoxStream<'static, Result<WatchEventsResponse, Status>>;

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let permit = self.state.grpc.watch_permit()?;
        let (_, events) = follow_events(caller, given(request.into_inner().after_event_id)).await.map_err(refused)?;
        let events = events.map(move |sent| {
            let _held = &permit;
            Ok(WatchEventsResponse {
                event_id: sent.id.unwrap_or_default(),
                kind: sent.kind,
                volume_id: sent.volume.unwrap_or_default(),
                event_json: sent.data,
            })
        });
        // Events end only with the token.
        let end = Status::unauthenticated("the token no longer holds");
        Ok(Response::new(events.chain(stream::once(async { Err(end) })).boxed()))
    }
}
