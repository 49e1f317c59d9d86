//! `tracebook.v1.CellService`: cells are run, interrupted, and their outputs read.

use super::generated::v1::cell_service_server::CellService;
use super::generated::v1::run_cells_response::Event;
use super::generated::v1::{
    CellExecution, CellOutput, CellRunEnd, InterruptCellsRequest, InterruptCellsResponse, ListCellOutputsRequest,
    ListCellOutputsResponse, RunCellsRequest, RunCellsResponse,
};
use super::json_fields::{json_text, small_number_field};
use super::request_checks::{PageRequest, given_number, note_address, refused, scoped_caller};
use crate::access_tokens::TokenScope;
use crate::command_calls::CommandOutcome;
use crate::http_state::HttpState;
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::problem::ProblemDetails;
use crate::rest_notes;
use crate::rest_work::{cell_arguments, execution_key, interrupt_cells, read_outputs};
use crate::tool_calls::bounded_output;
use axum::http::StatusCode;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::{Request, Response, Status};

/// Number of outputs that may wait to be sent.
const MAX_WAITING_OUTPUTS: usize = 16;
/// Time that a client may take to make room for an output. Then its cells are stopped.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How often is looked whether there is room.
const SEND_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The service.
pub(super) struct CellGrpcService {
    pub(super) state: Arc<HttpState>,
}

/// What is sent of cells that run.
struct CellStream {
    outputs: mpsc::Receiver<CellOutput>,
    /// The one task that runs them. Dropped, it stops them.
    work: JoinSet<Result<CommandOutcome, ProblemDetails>>,
    is_slow: Arc<AtomicBool>,
}

fn output_message(output: Value) -> CellOutput {
    let cell = small_number_field(&output, "cell");
    let (output_json, is_cut) = json_text(&bounded_output(output));
    let left_out = r#"{"output_type": "stream", "name": "stderr", "text": "an output is too long and is left out"}"#;
    CellOutput { cell, output_json: if is_cut { left_out.to_owned() } else { output_json } }
}

/// Gives an output to the client as soon as it has room. If that takes too long, the work is cancelled.
fn send_output(queue: &mpsc::Sender<CellOutput>, line: &str, cancelled: &AtomicBool, is_slow: &AtomicBool) {
    let Ok(output) = serde_json::from_str(line) else { return };
    let (mut output, end) = (output_message(output), Instant::now() + SEND_TIMEOUT);
    while let Err(mpsc::error::TrySendError::Full(back)) = queue.try_send(output) {
        if cancelled.load(Ordering::Relaxed) {
            return;
        }
        if Instant::now() >= end {
            is_slow.store(true, Ordering::Relaxed);
            cancelled.store(true, Ordering::Relaxed);
            return;
        }
        output = back;
        std::thread::park_timeout(SEND_CHECK_INTERVAL);
    }
}

impl CellStream {
    async fn next(mut self) -> Option<(Result<RunCellsResponse, Status>, CellStream)> {
        if let Some(output) = self.outputs.recv().await {
            return Some((Ok(RunCellsResponse { event: Some(Event::Output(output)) }), self));
        }
        // All is sent, so the work is over.
        let end = match self.work.join_next().await? {
            _ if self.is_slow.load(Ordering::Relaxed) => {
                Err(Status::resource_exhausted("the outputs were read too slowly, so the cells were stopped"))
            }
            Ok(Ok(outcome)) => {
                let messages = outcome.messages.trim().to_owned();
                let end = CellRunEnd { succeeded: outcome.code == 0, messages };
                Ok(RunCellsResponse { event: Some(Event::End(end)) })
            }
            Ok(Err(problem)) => Err(refused(problem)),
            Err(_) => Err(Status::internal("the request failed inside Tracebook")),
        };
        Some((end, self))
    }
}

fn execution_message(execution: &Value) -> CellExecution {
    CellExecution {
        cell: small_number_field(execution, "cell"),
        is_stale: execution["stale"] == true,
        execution_json: json_text(execution).0,
    }
}

#[tonic::async_trait]
impl CellService for CellGrpcService {
    type RunCellsStream = BoxStream<'static, Result<RunCellsResponse, Status>>;

    async fn run_cells(&self, request: Request<RunCellsRequest>) -> Result<Response<Self::RunCellsStream>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Run)?;
        let asked = request.into_inner();
        let cell = given_number(asked.cell, "cell")?;
        let seconds = given_number(asked.timeout_seconds, "timeout_seconds")?;
        let address = note_address(&caller, asked.volume, asked.path)?;
        rest_notes::read_text(&caller, address.clone()).await.map_err(refused)?;
        let arguments = cell_arguments(&address, cell, Some(asked.only_stale), seconds);
        let (queue, outputs) = mpsc::channel(MAX_WAITING_OUTPUTS);
        let (is_slow, mut work) = (Arc::<AtomicBool>::default(), JoinSet::new());
        let has_stalled = is_slow.clone();
        work.spawn(async move {
            caller
                .perform_tool(move |calls| {
                    let cancelled = calls.cancelled.clone();
                    calls.stream_cells(&arguments, &mut |line| send_output(&queue, line, &cancelled, &has_stalled))
                })
                .await
        });
        let cells = CellStream { outputs, work, is_slow };
        Ok(Response::new(Box::pin(stream::unfold(cells, CellStream::next))))
    }

    async fn interrupt_cells(
        &self,
        request: Request<InterruptCellsRequest>,
    ) -> Result<Response<InterruptCellsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Run)?;
        let asked = request.into_inner();
        let address = note_address(&caller, asked.volume, asked.path)?;
        interrupt_cells(&caller, address).await.map_err(|problem| match problem.status() {
            // Nothing runs there.
            StatusCode::UNPROCESSABLE_ENTITY => Status::failed_precondition(problem.detail()),
            _ => refused(problem),
        })?;
        Ok(Response::new(InterruptCellsResponse {}))
    }

    async fn list_cell_outputs(
        &self,
        request: Request<ListCellOutputsRequest>,
    ) -> Result<Response<ListCellOutputsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let address = note_address(&caller, asked.volume, asked.path)?;
        let page = page.cut(read_outputs(&caller, address).await.map_err(refused)?, execution_key)?;
        Ok(Response::new(ListCellOutputsResponse {
            executions: page.items.iter().map(execution_message).collect(),
            next_page_token: page.next_token,
        }))
    }
}
