//! The paths of the HTTP server, the scope that each needs, and their description in OpenAPI 3.1.

use crate::access_tokens::TokenScope;
use crate::agent_socket::open_agent_socket;
use crate::api_docs::{DOCS_PATH, DOCS_STYLE_PATH, docs_page, docs_response, docs_style};
use crate::api_links::add_links;
use crate::api_patterns::add_name_patterns;
use crate::companion::{companion_router, missing_page};
use crate::http_guard::{AGENT_SOCKET_PATH, DESCRIPTION_PATH, guard, is_for_programs, require_scope};
use crate::http_state::HttpState;
use crate::mcp_http::serve_mcp_request;
use crate::problem::ProblemDetails;
use crate::request_keys::{KEY_HEADER, MAX_KEY_BYTES, replay_answers};
use crate::{rest_attachments, rest_collections, rest_events, rest_history, rest_memory, rest_notes, rest_work};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where the REST interface is.
const API_PREFIX: &str = "/api/v1";
const PROBLEM_TYPE: &str = "application/problem+json";

#[derive(OpenApi)]
#[openapi(
    info(title = "Tracebook", description = "Notes, tasks, cells and agents of a workspace"),
    components(schemas(ProblemDetails)),
    tags(
        (name = "notes", description = "Volumes, notes, their history, search and todos"),
        (name = "attachments", description = "Files that aren't notes"),
        (name = "collections", description = "Tables over the properties of notes"),
        (name = "agents", description = "Tasks, agents, approvals and runs"),
        (name = "memory", description = "What agents remember, and what runs can repeat"),
        (name = "cells", description = "Cells and their outputs"),
        (name = "events", description = "What happens, as it happens"),
        (name = "admin", description = "Tokens and the audit log"),
    ),
)]
struct ApiDescription;

/// Limits endpoints to tokens with a scope.
fn scoped(scope: TokenScope, endpoints: OpenApiRouter<Arc<HttpState>>) -> OpenApiRouter<Arc<HttpState>> {
    endpoints.route_layer(from_fn_with_state(scope, require_scope))
}

/// Returns the endpoints of the REST interface. Each is in a group with the scope that it needs.
fn rest_endpoints() -> OpenApiRouter<Arc<HttpState>> {
    let read = OpenApiRouter::new()
        .routes(routes!(rest_notes::list_volumes))
        .routes(routes!(rest_notes::list_notes))
        .routes(routes!(rest_notes::read_note))
        .routes(routes!(rest_history::list_versions))
        .routes(routes!(rest_history::read_version))
        .routes(routes!(rest_history::list_blocks))
        .routes(routes!(rest_attachments::list_attachments))
        .routes(routes!(rest_attachments::read_attachment))
        .routes(routes!(rest_collections::list_collections))
        .routes(routes!(rest_collections::read_collection))
        .routes(routes!(rest_memory::list_memories))
        .routes(routes!(rest_memory::recall_memories))
        .routes(routes!(rest_memory::show_memory))
        .routes(routes!(rest_memory::list_traces))
        .routes(routes!(rest_memory::show_trace))
        .routes(routes!(rest_notes::search_notes))
        .routes(routes!(rest_notes::list_todos))
        .routes(routes!(rest_work::task_status))
        .routes(routes!(rest_work::list_agents))
        .routes(routes!(rest_work::list_pending_approvals))
        .routes(routes!(rest_work::list_runs))
        .routes(routes!(rest_work::show_run))
        .routes(routes!(rest_work::list_steps))
        .routes(routes!(rest_work::list_outputs))
        .routes(routes!(rest_events::stream_events));
    let write = OpenApiRouter::new()
        .routes(routes!(rest_notes::write_note))
        .routes(routes!(rest_notes::delete_note))
        .routes(routes!(rest_notes::check_todo))
        .routes(routes!(rest_history::restore_version))
        .routes(routes!(rest_attachments::write_attachment))
        .routes(routes!(rest_attachments::delete_attachment))
        .routes(routes!(rest_memory::add_memory))
        .routes(routes!(rest_memory::forget_memory))
        .routes(routes!(rest_memory::forget_trace));
    let run = OpenApiRouter::new().routes(routes!(rest_work::run_cells)).routes(routes!(rest_work::stop_cells));
    let agent = OpenApiRouter::new().routes(routes!(rest_work::submit_task)).routes(routes!(rest_work::cancel_task));
    let approve = OpenApiRouter::new()
        .routes(routes!(rest_work::decide_approval))
        .routes(routes!(rest_memory::pin_trace))
        .routes(routes!(rest_memory::unpin_trace));
    let admin = OpenApiRouter::new()
        .routes(routes!(rest_events::list_tokens))
        .routes(routes!(rest_events::revoke_token))
        .routes(routes!(rest_events::list_audit));
    OpenApiRouter::with_openapi(ApiDescription::openapi())
        .merge(scoped(TokenScope::Read, read))
        .merge(scoped(TokenScope::Write, write))
        .merge(scoped(TokenScope::Run, run))
        .merge(scoped(TokenScope::Agent, agent))
        .merge(scoped(TokenScope::Approve, approve))
        .merge(scoped(TokenScope::Admin, admin))
}

/// Completes the description with what all operations share: the token, errors, and paths without the router's marks;
/// and with links between operations.
fn complete_description(mut described: Value) -> Value {
    described["components"]["securitySchemes"] = json!({"token": {"type": "http", "scheme": "bearer"}});
    described["security"] = json!([{"token": []}]);
    let paths = described["paths"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let problem = json!({
        "description": "an error",
        "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    });
    let key = json!({
        "name": KEY_HEADER, "in": "header", "required": false,
        "description": "a key of the client's choice; the same request with the same key gets the first answer again",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_BYTES, "pattern": "^[!-~]+$"},
    });
    let completed = paths.into_iter().map(|(path, mut operations)| {
        if let Some(operations) = operations.as_object_mut() {
            for operation in operations.values_mut().filter(|operation| operation["responses"].is_object()) {
                let responses = operation["responses"].as_object_mut().into_iter().flatten();
                for (status, response) in responses.filter(|(_, response)| response["description"].is_null()) {
                    // OpenAPI needs one.
                    response["description"] = reason_phrase(status).into();
                }
                for (_, response) in operation["responses"].as_object_mut().into_iter().flatten() {
                    name_as_bytes(response.pointer_mut("/content"), "*/*");
                }
                // Text is sent as bytes, too.
                name_as_bytes(operation.pointer_mut("/requestBody/content"), "text/markdown");
                operation["responses"]["default"] = problem.clone();
            }
            let parameters = operations.get_mut("put").and_then(|put| put.get_mut("parameters"));
            for parameter in parameters.and_then(Value::as_array_mut).into_iter().flatten() {
                // Only this value is taken for what is written.
                if parameter["name"] == "If-None-Match" {
                    parameter["schema"] = json!({"type": "string", "enum": ["*"]});
                }
            }
            if let Some(post) = operations.get_mut("post") {
                let parameters = post["parameters"].as_array_mut().map(std::mem::take).unwrap_or_default();
                post["parameters"] = parameters.into_iter().chain([key.clone()]).collect();
            }
        }
        (format!("{API_PREFIX}{}", path.replace("{*", "{")), operations)
    });
    let mut paths: serde_json::Map<String, Value> = completed.collect();
    add_links(&mut paths);
    described["paths"] = Value::Object(paths);
    add_name_patterns(&mut described);
    described
}

/// Names content of a type as bytes, too: generators of clients leave out operations whose types they don't know.
fn name_as_bytes(content: Option<&mut Value>, kind: &str) {
    if let Some(content) = content.and_then(Value::as_object_mut).filter(|content| content.contains_key(kind)) {
        let bytes = json!({"schema": {"type": "string", "format": "binary"}});
        content.insert("application/octet-stream".to_owned(), bytes);
    }
}

/// Returns the words for a status, such as `OK`.
fn reason_phrase(status: &str) -> &'static str {
    let status: Option<StatusCode> = status.parse().ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("an answer")
}

async fn unknown_path(request: Request) -> Response {
    if is_for_programs(&request) {
        let why = "there is nothing at this path; /api/v1/openapi.json lists what there is";
        return ProblemDetails::not_found(why).into_response();
    }
    missing_page(&request)
}

async fn unknown_method() -> ProblemDetails {
    ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, "this path has other methods")
}

/// Returns the router of the server. Everything passes [`guard`] first.
pub(crate) fn http_router(state: Arc<HttpState>) -> Router {
    let (rest, described) = rest_endpoints().split_for_parts();
    let described = complete_description(serde_json::to_value(&described).unwrap_or_default());
    let page = docs_page(&described);
    let docs = move || async move { docs_response(page) };
    let described = described.to_string();
    let description = move || async move { ([(header::CONTENT_TYPE, "application/json")], described).into_response() };
    let mcp = Router::new()
        .route("/mcp", any(serve_mcp_request))
        // So other servers are called, and clients' configurations.
        .route("/mcp/", any(serve_mcp_request))
        .route_layer(from_fn_with_state(TokenScope::Read, require_scope));
    let router = Router::new()
        .nest(API_PREFIX, rest.route_layer(from_fn_with_state(state.clone(), replay_answers)))
        .route(AGENT_SOCKET_PATH, get(open_agent_socket))
        .route(DESCRIPTION_PATH, get(description))
        .route(DOCS_PATH, get(docs))
        .route(DOCS_STYLE_PATH, get(docs_style))
        .merge(mcp)
        .merge(companion_router());
    #[cfg(feature = "grpc")]
    let router = router.merge(crate::grpc::grpc_routes(state.clone()));
    let router = router
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        // Bodies are limited where they are received.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(state.clone(), guard));
    #[cfg(feature = "grpc")]
    let router = router.layer(axum::middleware::from_fn(crate::grpc::answer_in_grpc));
    router.with_state(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_the_seeds_endpoints_and_schemas() {
        let (_, described) = rest_endpoints().split_for_parts();
        let described = complete_description(serde_json::to_value(&described).expect("a value"));
        assert_eq!(described["openapi"], "3.1.0");
        let paths = &described["paths"];
        for (path, method) in [
            ("/api/v1/tasks", "post"),
            ("/api/v1/tasks/{taskId}", "get"),
            ("/api/v1/agents", "get"),
            ("/api/v1/approvals/pending", "get"),
            ("/api/v1/approvals/{actionId}", "post"),
            ("/api/v1/volumes/{volume}/notes/{path}", "get"),
            ("/api/v1/volumes/{volume}/notes/{path}", "put"),
            ("/api/v1/volumes/{volume}/notes/{path}", "delete"),
        ] {
            assert!(paths[path][method].is_object(), "{method} {path}");
        }
        crate::api_links::tests::assert_links(&described);
        // Generators of clients know these types.
        let note = &paths["/api/v1/volumes/{volume}/notes/{path}"]["put"]["requestBody"]["content"];
        let file = &paths["/api/v1/volumes/{volume}/attachments/{path}"]["get"]["responses"]["200"]["content"];
        for (content, kind) in [(note, "text/markdown"), (file, "*/*")] {
            let bytes = &content["application/octet-stream"]["schema"];
            assert!(content[kind].is_object() && bytes["format"] == "binary", "{content}");
        }
        let operations =
            paths.as_object().expect("paths").values().filter_map(Value::as_object).flat_map(|all| all.values());
        for operation in operations {
            for (status, response) in operation["responses"].as_object().expect("responses") {
                let words = response["description"].as_str().unwrap_or_default();
                assert!(!words.is_empty(), "{} {status}", operation["operationId"]);
            }
        }
        let schemas = &described["components"]["schemas"];
        for (schema, field) in [
            ("Task", "description"),
            ("Task", "context"),
            ("Task", "priority"),
            ("Task", "type"),
            ("TaskStatus", "progress"),
            ("TaskStatus", "result"),
            ("Agent", "capabilities"),
            ("Decision", "approved"),
            ("Decision", "comment"),
            ("ProblemDetails", "detail"),
        ] {
            assert!(schemas[schema]["properties"][field].is_object(), "{schema}.{field}: {schemas}");
        }
    }
}
