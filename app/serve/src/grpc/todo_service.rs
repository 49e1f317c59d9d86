//! `tracebook.v1.TodoService`: todos in notes.

use super::generated::v1::todo_service_server::TodoService;
use super::generated::v1::{ListTodosRequest, ListTodosResponse, Todo, ToggleTodoRequest, ToggleTodoResponse};
use super::json_fields::{number_field, text_field};
use super::request_checks::{PageRequest, given, note_address, refused_field, scoped_caller, wrong_field};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::rest_notes;
use serde_json::Value;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The service.
pub(super) struct TodoGrpcService {
    pub(super) state: Arc<HttpState>,
}

fn todo_message(todo: &Value) -> Todo {
    Todo {
        volume: text_field(todo, "volume"),
        path: text_field(todo, "path"),
        offset: number_field(todo, "at"),
        text: text_field(todo, "text"),
        is_done: todo["done"] == true,
        mark: text_field(todo, "status"),
        due_day: text_field(todo, "due"),
        scheduled_day: text_field(todo, "scheduled"),
        start_day: text_field(todo, "start"),
        repeat: text_field(todo, "repeat"),
    }
}

#[tonic::async_trait]
impl TodoService for TodoGrpcService {
    async fn list_todos(&self, request: Request<ListTodosRequest>) -> Result<Response<ListTodosResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let todos = rest_notes::find_todos(&caller, given(asked.words), asked.include_done).await;
        let page = page.cut(todos.map_err(refused_field("words"))?, rest_notes::todo_key)?;
        Ok(Response::new(ListTodosResponse {
            todos: page.items.iter().map(todo_message).collect(),
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    async fn toggle_todo(&self, request: Request<ToggleTodoRequest>) -> Result<Response<ToggleTodoResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Write)?;
        let asked = request.into_inner();
        let address = note_address(&caller, asked.volume, asked.path)?;
        let at = u64::try_from(asked.offset).map_err(|_| wrong_field("offset", "`offset` isn't negative"))?;
        let toggled = rest_notes::toggle_todo(&caller, address, asked.text, at).await;
        Ok(Response::new(ToggleTodoResponse { is_done: toggled.map_err(refused_field("text"))?.done }))
    }
}
