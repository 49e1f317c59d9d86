//! `tracebook.v1.NoteService`: volumes and notes.

use super::generated::v1::note_service_server::NoteService;
use super::generated::v1::{
    CreateNoteRequest, CreateNoteResponse, DeleteNoteRequest, DeleteNoteResponse, GetNoteRequest, GetNoteResponse,
    ListNoteBlocksRequest, ListNoteBlocksResponse, ListNotesRequest, ListNotesResponse, ListVolumesRequest,
    ListVolumesResponse, NoteBlock, NoteEntry, UpdateNoteRequest, UpdateNoteResponse, Volume,
};
use super::request_checks::{
    PageRequest, checked_name, note_address, refused, scoped_caller, tag_header, unwritten, wanted_tag, whole_number,
    wrong_field,
};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::rest_history;
use crate::rest_notes::{self, WriteCondition};
use axum::http::StatusCode;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The service.
pub(super) struct NoteGrpcService {
    pub(super) state: Arc<HttpState>,
}

fn sent_text(content: Vec<u8>) -> Result<String, Status> {
    String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        wrong_field("content", format!("`content` isn't UTF-8 at byte {at}"))
    })
}

#[tonic::async_trait]
impl NoteService for NoteGrpcService {
    async fn list_volumes(
        &self,
        request: Request<ListVolumesRequest>,
    ) -> Result<Response<ListVolumesResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let page =
            page.cut(rest_notes::reachable_volumes(&caller).await.map_err(refused)?, |volume| volume.id.clone())?;
        let volumes = page.items.into_iter().map(|volume| Volume {
            id: volume.id,
            name: volume.name,
            folder: volume.folder,
            note_count: whole_number(volume.notes),
            file_count: whole_number(volume.files),
        });
        Ok(Response::new(ListVolumesResponse {
            volumes: volumes.collect(),
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    async fn list_notes(&self, request: Request<ListNotesRequest>) -> Result<Response<ListNotesResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        checked_name(&asked.volume, "volume")?;
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let notes = rest_notes::find_notes(&caller, asked.volume, asked.path_prefix).await.map_err(refused)?;
        let page = page.cut(notes, |note| note.path.clone())?;
        let notes = page.items.into_iter().map(|note| NoteEntry {
            volume: note.volume,
            path: note.path,
            cell_count: whole_number(note.cells),
        });
        Ok(Response::new(ListNotesResponse {
            notes: notes.collect(),
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    async fn get_note(&self, request: Request<GetNoteRequest>) -> Result<Response<GetNoteResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let GetNoteRequest { volume, path } = request.into_inner();
        let address = note_address(&caller, volume.clone(), path.clone())?;
        let note = rest_notes::read_text(&caller, address).await.map_err(refused)?;
        Ok(Response::new(GetNoteResponse { volume, path, content: note.text.into_bytes(), etag: note.version }))
    }

    async fn create_note(&self, request: Request<CreateNoteRequest>) -> Result<Response<CreateNoteResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let asked = request.into_inner();
        let address = note_address(&caller, asked.volume, asked.path)?;
        let text = sent_text(asked.content)?;
        caller.needed_volume(address.volume()).await.map_err(refused)?;
        let written = rest_notes::write_text(&caller, address, WriteCondition::Creates, text).await;
        let (_, note) = written.map_err(|problem| match problem.status() {
            // Names such as `a.txt` get here: the path is one that a note can't have.
            StatusCode::UNPROCESSABLE_ENTITY => wrong_field("path", problem.detail()),
            _ => unwritten(problem, Status::already_exists),
        })?;
        Ok(Response::new(CreateNoteResponse { etag: note.version }))
    }

    async fn update_note(&self, request: Request<UpdateNoteRequest>) -> Result<Response<UpdateNoteResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let asked = request.into_inner();
        let address = note_address(&caller, asked.volume, asked.path)?;
        let condition = WriteCondition::Replaces(tag_header(&asked.if_match)?);
        let text = sent_text(asked.content)?;
        match rest_notes::write_text(&caller, address.clone(), condition, text).await {
            Ok((_, note)) => Ok(Response::new(UpdateNoteResponse { etag: note.version })),
            Err(problem) => {
                // REST says of a note that isn't there that it has changed.
                if problem.status() == StatusCode::PRECONDITION_FAILED {
                    rest_notes::read_text(&caller, address).await.map_err(refused)?;
                }
                Err(unwritten(problem, Status::aborted))
            }
        }
    }

    async fn delete_note(&self, request: Request<DeleteNoteRequest>) -> Result<Response<DeleteNoteResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let asked = request.into_inner();
        let address = note_address(&caller, asked.volume, asked.path)?;
        let tags = wanted_tag(&asked.if_match)?;
        let removed = rest_notes::remove_note(&caller, address, tags).await;
        removed.map_err(|problem| unwritten(problem, Status::aborted))?;
        Ok(Response::new(DeleteNoteResponse {}))
    }

    async fn list_note_blocks(
        &self,
        request: Request<ListNoteBlocksRequest>,
    ) -> Result<Response<ListNoteBlocksResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let address = note_address(&caller, asked.volume, asked.path)?;
        let blocks = rest_history::find_blocks(&caller, address).await.map_err(refused)?;
        let message = |block: rest_history::NoteBlock| NoteBlock {
            id: block.id,
            offset: whole_number(block.at),
            text: block.text,
            cell_language: block.cell.unwrap_or_default(),
        };
        let page = page.cut_messages(blocks, |block| block.id.clone(), message)?;
        Ok(Response::new(ListNoteBlocksResponse {
            blocks: page.items,
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }
}
