//! Errors of the REST interface as `application/problem+json` (RFC 9457).

use crate::command_calls::CommandOutcome;
use crate::tool_arguments::ToolCallError;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// An error as other programs read it (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ProblemDetails {
    /// Kind of error; `about:blank` says that the status is all there is to it.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What happened, and what to do.
    detail: String,
    #[serde(skip)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl ProblemDetails {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> ProblemDetails {
        let title = status.canonical_reason().unwrap_or("Error").to_owned();
        ProblemDetails {
            kind: "about:blank",
            title,
            status: status.as_u16(),
            detail: detail.into(),
            headers: Vec::new(),
        }
    }

    /// Returns the HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns what happened, and what to do.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Adds a header. A text that no header can have is left out.
    pub(crate) fn with_header(mut self, name: HeaderName, value: &str) -> ProblemDetails {
        self.headers.extend(HeaderValue::from_str(value).map(|value| (name, value)));
        self
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> ProblemDetails {
        ProblemDetails::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn unprocessable(detail: impl Into<String>) -> ProblemDetails {
        ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Checks that a command succeeded.
    pub(crate) fn unless_done(outcome: &CommandOutcome) -> Result<(), ProblemDetails> {
        match outcome.code {
            0 => Ok(()),
            _ => Err(ProblemDetails::of_outcome(outcome)),
        }
    }

    /// Returns the problem of a command that didn't succeed.
    pub(crate) fn of_outcome(outcome: &CommandOutcome) -> ProblemDetails {
        let status = match outcome.code {
            _ if outcome.is_cut => StatusCode::UNPROCESSABLE_ENTITY,
            // Wrong use: names or values that don't fit the workspace.
            2 => StatusCode::UNPROCESSABLE_ENTITY,
            3 => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        ProblemDetails::new(status, outcome.reason())
    }
}

impl From<ToolCallError> for ProblemDetails {
    fn from(error: ToolCallError) -> ProblemDetails {
        ProblemDetails::unprocessable(error.0)
    }
}

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let headers = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status(), headers, body).into_response();
        response.headers_mut().extend(self.headers.clone());
        // Other protocols say the same in their own way.
        response.extensions_mut().insert(self);
        response
    }
}
