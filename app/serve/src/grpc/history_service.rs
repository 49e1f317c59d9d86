//! `tracebook.v1.HistoryService`: the versions of notes.

use super::generated::v1::history_service_server::HistoryService;
use super::generated::v1::{
    GetNoteVersionRequest, GetNoteVersionResponse, ListNoteVersionsRequest, ListNoteVersionsResponse, NoteVersion,
    RestoreNoteVersionRequest, RestoreNoteVersionResponse,
};
use super::json_fields::timestamp;
use super::request_checks::{PageRequest, note_address, refused, scoped_caller, whole_number, wrong_field};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::rest_history;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The service.
pub(super) struct HistoryGrpcService {
    pub(super) state: Arc<HttpState>,
}

fn version_message(version: rest_history::NoteVersion) -> NoteVersion {
    NoteVersion {
        number: whole_number(version.number),
        hash: version.hash,
        create_time: Some(timestamp(version.time.saturating_mul(1_000))),
        edit_count: whole_number(version.operations),
        author: version.who,
        commit_hashes: version.commits,
    }
}

fn version_number(number: i64) -> Result<u64, Status> {
    u64::try_from(number).map_err(|_| wrong_field("number", "`number` isn't negative; the note's history lists them"))
}

#[tonic::async_trait]
impl HistoryService for HistoryGrpcService {
    async fn list_note_versions(
        &self,
        request: Request<ListNoteVersionsRequest>,
    ) -> Result<Response<ListNoteVersionsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let address = note_address(&caller, asked.volume, asked.path)?;
        let versions = rest_history::find_versions(&caller, address).await.map_err(refused)?;
        let page = page.cut_messages(versions, |version| version.hash.clone(), version_message)?;
        Ok(Response::new(ListNoteVersionsResponse {
            versions: page.items,
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    async fn get_note_version(
        &self,
        request: Request<GetNoteVersionRequest>,
    ) -> Result<Response<GetNoteVersionResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let number = version_number(asked.number)?;
        let address = note_address(&caller, asked.volume, asked.path)?;
        let text = rest_history::version_text(&caller, address, number).await.map_err(refused)?;
        Ok(Response::new(GetNoteVersionResponse { content: text.into_bytes() }))
    }

    async fn restore_note_version(
        &self,
        request: Request<RestoreNoteVersionRequest>,
    ) -> Result<Response<RestoreNoteVersionResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let asked = request.into_inner();
        let number = version_number(asked.number)?;
        let address = note_address(&caller, asked.volume, asked.path)?;
        let written = rest_history::restore_text(&caller, address, number).await.map_err(refused)?;
        Ok(Response::new(RestoreNoteVersionResponse { etag: written.version }))
    }
}
