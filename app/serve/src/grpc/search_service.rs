//! `tracebook.v1.SearchService`: search by words and by meaning, with what each score is made of.

use super::generated::v1::search_service_server::SearchService;
use super::generated::v1::{SearchNotesRequest, SearchNotesResponse, SearchResult};
use super::json_fields::{decimal_field, number_field, text_field};
use super::request_checks::{PageRequest, page_token, refused_field, scoped_caller, wrong_field};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::rest_notes::{DEFAULT_HITS, MAX_HITS, find_hit_page};
use serde_json::Value;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Maximum length of a query in bytes.
const MAX_QUERY_BYTES: usize = 64 << 10;

/// The service.
pub(super) struct SearchGrpcService {
    pub(super) state: Arc<HttpState>,
}

fn result_message(hit: &Value) -> SearchResult {
    let parts = hit["parts"].as_object().into_iter().flatten();
    SearchResult {
        address: text_field(hit, "address"),
        volume: text_field(hit, "volume"),
        path: text_field(hit, "path"),
        title: text_field(hit, "title"),
        heading: text_field(hit, "heading"),
        kind: text_field(hit, "kind"),
        text: text_field(hit, "text"),
        score: decimal_field(hit, "score"),
        explanation: text_field(hit, "why"),
        score_parts: parts.map(|(name, part)| (name.clone(), part.as_f64().unwrap_or_default())).collect(),
        nearest_text: text_field(hit, "nearest"),
        more_count: number_field(hit, "more"),
    }
}

#[tonic::async_trait]
impl SearchService for SearchGrpcService {
    async fn search_notes(
        &self,
        request: Request<SearchNotesRequest>,
    ) -> Result<Response<SearchNotesResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        if asked.query.trim().is_empty() || asked.query.len() > MAX_QUERY_BYTES {
            let why = format!("`query` says what is searched, in 1 to {MAX_QUERY_BYTES} bytes");
            return Err(wrong_field("query", why));
        }
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_HITS, MAX_HITS)?;
        let found = find_hit_page(&caller, &asked.query, page.limit, page.cursor).await;
        let found = found.map_err(refused_field("query"))?;
        let results = found.hits.iter().map(result_message).collect();
        Ok(Response::new(SearchNotesResponse { results, next_page_token: page_token(found.next_cursor) }))
    }
}
