//! A run as a stream: its steps and states, until it's over.
//!
//! What is sent next is read from the workspace when the client takes it, so that little waits in the server, and a
//! client resumes by the number of steps that it has.

use super::generated::v1::watch_run_response::Event;
use super::generated::v1::{RunState, RunUpdate, WatchRunResponse};
use super::request_checks::{TOKEN_CHECK_INTERVAL, refused, wrong_field};
use super::run_messages::{approval_message, current_run, is_over, read_result, step_message};
use crate::clock::unix_millis;
use crate::http_state::ApiCaller;
use crate::rest_work::{pending_approvals, read_steps};
use futures_util::stream::{self, BoxStream};
use prost::Message;
use std::collections::VecDeque;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tonic::Status;

/// Maximum size of the steps that wait to be sent, in bytes. One step may have more.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// What was told of the state of a run: the state, and the ids of what waits for a decision.
type ToldState = (RunState, Vec<String>);

/// Where a client is in a run.
struct RunWatch {
    caller: ApiCaller,
    run: String,
    /// Number of steps that the client has, with those in `ready`.
    seen: usize,
    told: Option<ToldState>,
    ready: VecDeque<WatchRunResponse>,
    /// Whether there are more steps than those in `ready`.
    has_more: bool,
    is_over: bool,
    /// The last event of the workspace that was looked at.
    feed_number: u64,
    /// Whether the workspace was looked at.
    has_begun: bool,
    _permit: OwnedSemaphorePermit,
}

/// Returns the number of steps that a client has, from the id of the event that it received last.
fn seen_steps(after_event_id: &str) -> Result<usize, Status> {
    let why = "`after_event_id` is empty, or the `event_id` that was received last";
    match after_event_id {
        "" => Ok(0),
        id => id.parse().map_err(|_| wrong_field("after_event_id", why)),
    }
}

/// Follows a run that the token reaches.
pub(super) async fn watch_run(
    caller: ApiCaller,
    run: String,
    after_event_id: &str,
    permit: OwnedSemaphorePermit,
) -> Result<BoxStream<'static, Result<WatchRunResponse, Status>>, Status> {
    let seen = seen_steps(after_event_id)?;
    caller.state.feed.begin().await.map_err(refused)?;
    let feed_number = caller.state.feed.last_number();
    let mut watch = RunWatch {
        caller,
        run,
        seen,
        told: None,
        ready: VecDeque::new(),
        has_more: false,
        is_over: false,
        feed_number,
        has_begun: false,
        _permit: permit,
    };
    // A wrong id is an error of the call, not of the stream.
    watch.look().await?;
    Ok(Box::pin(stream::unfold(watch, RunWatch::next)))
}

impl RunWatch {
    async fn next(mut self) -> Option<(Result<WatchRunResponse, Status>, RunWatch)> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some((Ok(ready), self));
            }
            if self.is_over {
                return None;
            }
            if !self.has_more {
                self.wait_for_news().await;
            }
            let looked = match self.caller.state.tokens.holds(&self.caller.token.id, unix_millis()) {
                true => self.look().await,
                false => Err(Status::unauthenticated("the token no longer holds")),
            };
            if let Err(status) = looked {
                self.is_over = true;
                return Some((Err(status), self));
            }
        }
    }

    /// Waits until something has happened in the run, or might have.
    async fn wait_for_news(&mut self) {
        let end = Instant::now() + TOKEN_CHECK_INTERVAL;
        let feed = self.caller.state.feed.clone();
        while let Ok((event, has_gap)) = tokio::time::timeout_at(end, feed.next_after(self.feed_number)).await {
            self.feed_number = event.number;
            if has_gap || event.kind == "GAP" || event.data.contains(&self.run) {
                return;
            }
        }
    }

    fn push(&mut self, event: Event) {
        self.ready.push_back(WatchRunResponse { event_id: self.seen.to_string(), event: Some(event) });
    }

    /// Reads what is new in the run.
    async fn look(&mut self) -> Result<(), Status> {
        let run = current_run(&self.caller, &self.run).await.map_err(refused)?;
        let has_begun = run.start_time.is_some();
        // Read after the state: a run that is over gets no more steps.
        let steps = if has_begun { read_steps(&self.caller, &self.run).await.map_err(refused)? } else { Vec::new() };
        if !self.has_begun && self.seen > steps.len() {
            let why = format!("the run has {} steps, so `after_event_id` isn't of this run", steps.len());
            return Err(wrong_field("after_event_id", why));
        }
        self.has_begun = true;
        let mut waiting_bytes = 0;
        for step in steps.iter().skip(self.seen) {
            if waiting_bytes > MAX_WAITING_BYTES {
                break;
            }
            let step = step_message(step);
            waiting_bytes += step.encoded_len();
            self.seen += 1;
            self.push(Event::Step(step));
        }
        self.has_more = self.seen < steps.len();
        // The state is told behind the steps that led to it.
        if self.has_more {
            return Ok(());
        }
        let state = run.state();
        let pending_approvals = match state {
            RunState::Waiting => {
                let all = pending_approvals(&self.caller).await.map_err(refused)?;
                all.into_iter().filter(|approval| approval.run == self.run).map(approval_message).collect()
            }
            _ => Vec::new(),
        };
        let told = (state, pending_approvals.iter().map(|approval| approval.id.clone()).collect());
        if self.told.as_ref() == Some(&told) {
            return Ok(());
        }
        self.told = Some(told);
        self.is_over = is_over(state);
        let result = match self.is_over && has_begun {
            true => read_result(&self.caller, &self.run).await.map_err(refused)?,
            false => None,
        };
        self.push(Event::Update(RunUpdate { run: Some(run), pending_approvals, result }));
        Ok(())
    }
}
