//! `tracebook.v1.SearchService`: search by words and by meaning, with what each score is made of.

use super::generated::v1::search_service_server::SearchService;
use super::generated::v1::{SearchNotesRequest, SearchNotesResponse, SearchResult};
use super::json_fields::{decimal_field, number_field, text_field};
use super::request_checks::{PageRequest, refused_field, scoped_caller, wrong_field};
use crate::access_tokens::TokenScope;
use crate::http_state::HttpState;
use crate::rest_notes::{DEFAULT_HITS, MAX_FILTERED_HITS, MAX_HITS, find_hits};
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
        // One more than the page says whether there is another.
        let end = page.first.saturating_add(page.limit).min(MAX_FILTERED_HITS);
        let wanted = end.saturating_add(1).min(MAX_FILTERED_HITS);
        let (hits, _) = find_hits(&caller, &asked.query, wanted).await.map_err(refused_field("query"))?;
        let first = usize::try_from(page.first).unwrap_or(usize::MAX);
        let shown = hits.iter().skip(first).take(usize::try_from(page.limit).unwrap_or(usize::MAX));
        let next = if hits.len() as u64 > end { end.to_string() } else { String::new() };
        Ok(Response::new(SearchNotesResponse { results: shown.map(result_message).collect(), next_page_token: next }))
    }
}
