//! `tracebook.v1.MemoryService`: what agents have learned from earlier work.

use super::generated::v1::memory_service_server::MemoryService;
use super::generated::v1::{
    AddMemoryRequest, AddMemoryResponse, DeleteMemoryRequest, DeleteMemoryResponse, GetMemoryRequest,
    GetMemoryResponse, ListMemoriesRequest, ListMemoriesResponse, Memory, MemoryOutcome, RecallMemoriesRequest,
    RecallMemoriesResponse, RecalledMemory,
};
use super::json_fields::{decimal_field, number_field, stated_time_field, text_field, text_list_field};
use super::request_checks::{PageRequest, given, refused, refused_field, scoped_caller, wrong_field};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::rest_memory::{self, MAX_REMEMBERED_BYTES, NewMemory};
use serde_json::Value;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The service.
pub(super) struct MemoryGrpcService {
    pub(super) state: Arc<HttpState>,
}

/// The outcomes with their names in the notes of agents.
const OUTCOME_NAMES: [(MemoryOutcome, &str); 3] = [
    (MemoryOutcome::Success, "success"),
    (MemoryOutcome::Failure, "failure"),
    (MemoryOutcome::SuccessWithRecovery, "success_with_recovery"),
];

fn memory_message(memory: &Value) -> Memory {
    let outcome = OUTCOME_NAMES.iter().find(|(_, name)| memory["final_outcome"] == *name);
    Memory {
        id: text_field(memory, "experience_id"),
        path: text_field(memory, "path"),
        goal: text_field(memory, "primary_goal"),
        outcome: outcome.map_or(MemoryOutcome::Unspecified, |(outcome, _)| *outcome).into(),
        text: text_field(memory, "learnings_or_issues"),
        summary: text_field(memory, "output_summary"),
        is_current: memory["counts"] == true,
        count: number_field(memory, "count"),
        create_time: stated_time_field(memory, "timestamp"),
        expire_day: text_field(memory, "expires"),
        superseded_by: text_field(memory, "superseded_by"),
        tier: text_field(memory, "tier"),
        source: text_field(memory, "source"),
        author: text_field(memory, "author"),
        components: text_list_field(memory, "components_used"),
    }
}

fn recalled_message(item: &Value) -> RecalledMemory {
    RecalledMemory {
        name: text_field(item, "name"),
        kind: text_field(item, "kind"),
        description: text_field(item, "what"),
        reason: text_field(item, "why"),
        score: decimal_field(item, "score"),
        is_followed: item["follows"] == true,
        text: text_field(item, "learned"),
    }
}

/// Checks a text that agents read.
fn ensure_fits(text: &str, field: &'static str) -> Result<(), Status> {
    match text.len() <= MAX_REMEMBERED_BYTES && !text.contains('\0') {
        true => Ok(()),
        false => {
            let why = format!("`{field}` has at most {MAX_REMEMBERED_BYTES} bytes and no NUL characters");
            Err(wrong_field(field, why))
        }
    }
}

fn ensure_said(text: &str, field: &'static str) -> Result<(), Status> {
    if text.trim().is_empty() {
        return Err(wrong_field(field, format!("`{field}` is empty")));
    }
    ensure_fits(text, field)
}

/// Returns what is added for a request, without its volume.
fn new_memory(asked: AddMemoryRequest) -> Result<NewMemory, Status> {
    ensure_said(&asked.text, "text")?;
    ensure_fits(&asked.goal, "goal")?;
    let outcome = match asked.outcome() {
        MemoryOutcome::Unspecified if asked.outcome != 0 => {
            return Err(wrong_field("outcome", format!("there is no outcome {}", asked.outcome)));
        }
        stated => OUTCOME_NAMES.iter().find(|(outcome, _)| *outcome == stated).map(|(_, name)| (*name).to_owned()),
    };
    let expires = given(asked.expire_day);
    if expires.as_ref().is_some_and(|day| day.parse::<jiff::civil::Date>().is_err()) {
        return Err(wrong_field("expire_day", "`expire_day` is a day such as 2027-01-31"));
    }
    Ok(NewMemory { text: asked.text, goal: given(asked.goal), outcome, project: given(asked.volume), expires })
}

#[tonic::async_trait]
impl MemoryService for MemoryGrpcService {
    async fn list_memories(
        &self,
        request: Request<ListMemoriesRequest>,
    ) -> Result<Response<ListMemoriesResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let memories = rest_memory::read_memories(&caller, given(asked.volume)).await;
        let memories = memories.map_err(refused_field("volume"))?;
        let page = page.cut_messages(memories, rest_memory::memory_key, |memory| memory_message(&memory))?;
        Ok(Response::new(ListMemoriesResponse {
            memories: page.items,
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    async fn get_memory(&self, request: Request<GetMemoryRequest>) -> Result<Response<GetMemoryResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let memory = rest_memory::needed_memory(&caller, &asked.memory_id, given(asked.volume)).await;
        let memory = memory_message(&memory.map_err(refused_field("volume"))?);
        Ok(Response::new(GetMemoryResponse { memory: Some(memory) }))
    }

    async fn recall_memories(
        &self,
        request: Request<RecallMemoriesRequest>,
    ) -> Result<Response<RecallMemoriesResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let RecallMemoriesRequest { goal, volume } = request.into_inner();
        ensure_said(&goal, "goal")?;
        let volume = caller.project(given(volume)).await.map_err(refused_field("volume"))?;
        let found = caller.perform_tool(move |calls| calls.recalled(volume.as_deref(), &goal)).await;
        let memories = found.map_err(refused)?.iter().map(recalled_message).collect();
        Ok(Response::new(RecallMemoriesResponse { memories }))
    }

    async fn add_memory(&self, request: Request<AddMemoryRequest>) -> Result<Response<AddMemoryResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let new = new_memory(request.into_inner())?;
        // What is left to be wrong is the volume, if there are several.
        let kept = rest_memory::keep_memory(&caller, new).await.map_err(refused_field("volume"))?;
        Ok(Response::new(AddMemoryResponse { memory_id: kept.id, message: kept.said }))
    }

    async fn delete_memory(
        &self,
        request: Request<DeleteMemoryRequest>,
    ) -> Result<Response<DeleteMemoryResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let asked = request.into_inner();
        let removed = rest_memory::remove_memory(&caller, &asked.memory_id, given(asked.volume)).await;
        removed.map_err(refused_field("volume"))?;
        Ok(Response::new(DeleteMemoryResponse {}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_checked_field_by_field() {
        let text = "Two coats";
        let asked = |outcome, day: &str| AddMemoryRequest {
            text: text.to_owned(),
            outcome,
            expire_day: day.to_owned(),
            ..AddMemoryRequest::default()
        };
        let new = new_memory(asked(3, "2027-01-31")).expect("fits");
        assert_eq!(new.outcome.as_deref(), Some("success_with_recovery"));
        assert_eq!(new_memory(asked(0, "")).expect("fits").outcome, None);
        for (wrong, field) in [
            (asked(9, ""), "outcome"),
            (asked(0, "31.1.2027"), "expire_day"),
            (AddMemoryRequest { text: " ".to_owned(), ..asked(0, "") }, "text"),
            (AddMemoryRequest { text: "a\0".to_owned(), ..asked(0, "") }, "text"),
            (AddMemoryRequest { goal: "x".repeat(MAX_REMEMBERED_BYTES + 1), ..asked(0, "") }, "goal"),
        ] {
            let status = new_memory(wrong).expect_err("refused");
            assert!(status.message().contains(field), "{status}");
        }
    }
}
