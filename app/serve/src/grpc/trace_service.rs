//! `tracebook.v1.TraceService`: steps of runs that others can repeat without a model.

use super::generated::v1::trace_service_server::TraceService;
use super::generated::v1::{
    DeleteTraceRequest, DeleteTraceResponse, GetTraceRequest, GetTraceResponse, ListTracesRequest, ListTracesResponse,
    PinTraceRequest, PinTraceResponse, Trace, UnpinTraceRequest, UnpinTraceResponse,
};
use super::json_fields::{decimal_field, json_text, number_field, small_number_field, stated_time_field, text_field};
use super::request_checks::{PageRequest, given, refused_field, scoped_caller};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::rest_memory;
use serde_json::Value;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The service.
pub(super) struct TraceGrpcService {
    pub(super) state: Arc<HttpState>,
}

fn trace_message(trace: &Value) -> Trace {
    Trace {
        name: text_field(trace, "name"),
        volume: text_field(trace, "project"),
        path: text_field(trace, "path"),
        goal: text_field(trace, "goal_text"),
        agent: text_field(trace, "agent"),
        step_count: small_number_field(trace, "steps"),
        is_followed: trace["follows"] == true,
        reason: text_field(trace, "reason"),
        is_pinned: trace["pinned"] == true,
        confidence: decimal_field(trace, "confidence"),
        version: number_field(trace, "version"),
        proposed_version: trace["proposed"].as_i64(),
        use_count: number_field(trace, "usage_count"),
        verified_count: number_field(trace, "verified_count"),
        create_time: stated_time_field(trace, "created_at"),
        last_use_time: stated_time_field(trace, "last_used"),
        learned_from_run_id: text_field(trace, "learned_from"),
        saved_token_count: number_field(trace, "saved_tokens"),
        saved_usd: decimal_field(trace, "saved_usd"),
        details_json: json_text(trace).0,
    }
}

#[tonic::async_trait]
impl TraceService for TraceGrpcService {
    async fn list_traces(&self, request: Request<ListTracesRequest>) -> Result<Response<ListTracesResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let traces = rest_memory::read_traces(&caller, given(asked.volume)).await;
        let traces = traces.map_err(refused_field("volume"))?;
        let page = page.cut_messages(traces, rest_memory::trace_key, |trace| trace_message(&trace))?;
        Ok(Response::new(ListTracesResponse {
            traces: page.items,
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    async fn get_trace(&self, request: Request<GetTraceRequest>) -> Result<Response<GetTraceResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let read = rest_memory::read_trace(&caller, &asked.name, given(asked.volume)).await;
        let mut trace = read.map_err(refused_field("volume"))?;
        let content = text_field(&trace, "text");
        if let Some(known) = trace.as_object_mut() {
            known.remove("text");
        }
        Ok(Response::new(GetTraceResponse { trace: Some(trace_message(&trace)), content }))
    }

    async fn delete_trace(
        &self,
        request: Request<DeleteTraceRequest>,
    ) -> Result<Response<DeleteTraceResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let asked = request.into_inner();
        let removed = rest_memory::remove_trace(&caller, &asked.name, given(asked.volume)).await;
        removed.map_err(refused_field("volume"))?;
        Ok(Response::new(DeleteTraceResponse {}))
    }

    async fn pin_trace(&self, request: Request<PinTraceRequest>) -> Result<Response<PinTraceResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Approve)?;
        let asked = request.into_inner();
        let pinned = rest_memory::set_pin(&caller, &asked.name, given(asked.volume), true).await;
        let trace = Some(trace_message(&pinned.map_err(refused_field("volume"))?));
        Ok(Response::new(PinTraceResponse { trace }))
    }

    async fn unpin_trace(&self, request: Request<UnpinTraceRequest>) -> Result<Response<UnpinTraceResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Approve)?;
        let asked = request.into_inner();
        let unpinned = rest_memory::set_pin(&caller, &asked.name, given(asked.volume), false).await;
        let trace = Some(trace_message(&unpinned.map_err(refused_field("volume"))?));
        Ok(Response::new(UnpinTraceResponse { trace }))
    }
}
