//! `tracebook.v1.CollectionService`: tables over the properties of notes.

use super::generated::v1::collection_service_server::CollectionService;
use super::generated::v1::{
    Collection, CollectionRow, ListCollectionsRequest, ListCollectionsResponse, QueryCollectionRequest,
    QueryCollectionResponse,
};
use super::json_fields::json_text;
use super::request_checks::{PageRequest, checked_name, given, note_address, refused, refused_field, scoped_caller};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::rest_collections;
use serde_json::Value;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The service.
pub(super) struct CollectionGrpcService {
    pub(super) state: Arc<HttpState>,
}

fn row_message(row: rest_collections::CollectionRow) -> CollectionRow {
    CollectionRow {
        path: row.path,
        group: row.group.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
        cells_json: json_text(&Value::Object(row.cells)).0,
    }
}

#[tonic::async_trait]
impl CollectionService for CollectionGrpcService {
    async fn list_collections(
        &self,
        request: Request<ListCollectionsRequest>,
    ) -> Result<Response<ListCollectionsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let ListCollectionsRequest { volume, page_size, page_token } = request.into_inner();
        checked_name(&volume, "volume")?;
        let page = PageRequest::new(page_size, &page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let page =
            page.cut(rest_collections::collection_paths(&caller, &volume).await.map_err(refused)?, String::clone)?;
        let collection = |path: String| Collection { volume: volume.clone(), path };
        Ok(Response::new(ListCollectionsResponse {
            collections: page.items.into_iter().map(collection).collect(),
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    async fn query_collection(
        &self,
        request: Request<QueryCollectionRequest>,
    ) -> Result<Response<QueryCollectionResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let address = note_address(&caller, asked.volume, asked.path)?;
        let evaluated = rest_collections::evaluate_view(&caller, address, given(asked.view)).await;
        let (rows, problems) = evaluated.map_err(refused_field("view"))?;
        let page = page.cut_messages(rows, rest_collections::row_key, row_message)?;
        Ok(Response::new(QueryCollectionResponse {
            rows: page.items,
            next_page_token: page.next_token,
            total_size: page.total,
            problems,
        }))
    }
}
