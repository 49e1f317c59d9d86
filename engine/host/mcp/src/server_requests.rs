//! Requests of servers for a model's answer or the user's, while a tool of theirs is called. They are passed on to
//! whoever decides; nothing is answered here.
#![expect(deprecated, reason = "servers of the protocol before 2026-07-28 ask for models in this way")]

use agent::sampling::{
    MAX_SAMPLING_REQUESTS, SampledMessage, SamplingAnswer, SamplingError, SamplingMessage, SamplingRefusal,
    SamplingRequest, SamplingRole, SamplingStop,
};
use agent::server_form::{FormAnswer, MAX_FORM_REQUESTS, UserForm};
use rmcp::ErrorData;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ErrorCode, Role, SamplingMessage as WireMessage,
    SamplingMessageContentBlock,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// How often a call with a time limit looks whether its server waits for an answer.
const WAIT_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// What the protocol's examples answer when the user says no.
const REJECTED: ErrorCode = ErrorCode(-1);

/// Takes the answer to a request. Dropping it refuses the request.
pub type SamplingAnswerSender = Box<dyn FnOnce(SamplingAnswer) + Send>;
/// Takes the answer to a form. Dropping it closes the form.
pub type FormAnswerSender = Box<dyn FnOnce(FormAnswer) + Send>;

/// Passes on the requests that a server makes during one tool call.
pub trait ServerRequestUser: Send + Sync + 'static {
    /// Returns the run that makes the call. A server that works for two runs at once can't say for which one it asks.
    fn run(&self) -> &str;

    /// Passes a request for a model on, and returns its id.
    fn ask(&self, request: SamplingRequest, answer: SamplingAnswerSender) -> String;

    /// Passes a form on to the user, and returns its id.
    fn fill_in(&self, form: UserForm, answer: FormAnswerSender) -> String;

    /// Withdraws a request that the server no longer waits for.
    fn withdraw(&self, request: &str);
}

/// A tool call that a server works on.
struct ActiveCall {
    number: u64,
    user: Option<Arc<dyn ServerRequestUser>>,
    /// Number of requests for a model so far, of forms, and of both without an answer.
    asked: usize,
    forms: usize,
    waiting: usize,
    /// Its receivers learn from its end that the call is over.
    over: watch::Sender<()>,
}

/// The tool calls that a server works on.
#[derive(Clone, Default)]
pub(crate) struct ActiveCalls(Arc<Mutex<(u64, Vec<ActiveCall>)>>);

/// A call among [`ActiveCalls`], until it's dropped.
pub(crate) struct ActiveCallGuard {
    calls: ActiveCalls,
    number: u64,
}

/// A request of a call that has no answer yet.
struct OpenRequest {
    calls: ActiveCalls,
    number: u64,
    user: Arc<dyn ServerRequestUser>,
    /// Changes when the call is over.
    over: watch::Receiver<()>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        calls.1.iter_mut().filter(|call| call.number == self.number).for_each(|call| call.waiting -= 1);
    }
}

impl Drop for ActiveCallGuard {
    fn drop(&mut self) {
        self.calls.lock().1.retain(|call| call.number != self.number);
    }
}

impl ActiveCallGuard {
    fn is_waiting(&self) -> bool {
        self.calls.lock().1.iter().any(|call| call.number == self.number && call.waiting > 0)
    }

    /// Waits for the call; `None` if it takes longer than `limit`. The time in which its server waits for an answer
    /// doesn't count.
    pub(crate) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        let mut left = limit;
        loop {
            let (begun, was_waiting) = (Instant::now(), self.is_waiting());
            if let Ok(done) = tokio::time::timeout(left.min(WAIT_CHECK_INTERVAL), &mut work).await {
                return Some(done);
            }
            if !was_waiting && !self.is_waiting() {
                left = left.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    return None;
                }
            }
        }
    }
}

/// Returns what a server asks for, within the limits.
fn sampling_request(params: CreateMessageRequestParams) -> Result<SamplingRequest, SamplingError> {
    let has_tools = params.tools.is_some_and(|tools| !tools.is_empty());
    if has_tools || params.tool_choice.is_some() {
        return Err(SamplingError::Tools);
    }
    let message = |message: WireMessage| {
        let role = match message.role {
            Role::User => SamplingRole::User,
            Role::Assistant => SamplingRole::Assistant,
        };
        let text = |block: SamplingMessageContentBlock| match block {
            SamplingMessageContentBlock::Text(text) => Ok(text.text),
            SamplingMessageContentBlock::Image(_) => Err(SamplingError::NotText("an image")),
            SamplingMessageContentBlock::Audio(_) => Err(SamplingError::NotText("a sound")),
            SamplingMessageContentBlock::ToolUse(_) | SamplingMessageContentBlock::ToolResult(_) => {
                Err(SamplingError::Tools)
            }
            _ => Err(SamplingError::NotText("something else")),
        };
        let texts = message.content.into_vec().into_iter().map(text).collect::<Result<Vec<String>, SamplingError>>()?;
        Ok(SamplingMessage { role, text: texts.join("\n\n") })
    };
    let request = SamplingRequest {
        system: params.system_prompt.filter(|system| !system.is_empty()),
        messages: params.messages.into_iter().map(message).collect::<Result<_, SamplingError>>()?,
        max_tokens: params.max_tokens,
        // By its digits: 0.7 stays 0.7.
        temperature: params.temperature.and_then(|temperature| temperature.to_string().parse().ok()),
        stop: params.stop_sequences.unwrap_or_default(),
    };
    request.bounded()
}

fn sampling_result(answer: SampledMessage) -> CreateMessageResult {
    let stop = match answer.stop {
        SamplingStop::EndTurn => CreateMessageResult::STOP_REASON_END_TURN,
        SamplingStop::MaxTokens => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        SamplingStop::StopText => CreateMessageResult::STOP_REASON_END_SEQUENCE,
    };
    CreateMessageResult::new(WireMessage::assistant_text(answer.text), answer.model).with_stop_reason(stop)
}

fn refused(why: &str) -> ErrorData {
    ErrorData::invalid_request(why.to_owned(), None)
}

impl ActiveCalls {
    fn lock(&self) -> MutexGuard<'_, (u64, Vec<ActiveCall>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call. Without a user, requests during it are refused.
    pub(crate) fn begin(&self, user: Option<Arc<dyn ServerRequestUser>>) -> ActiveCallGuard {
        let mut calls = self.lock();
        calls.0 += 1;
        let number = calls.0;
        calls.1.push(ActiveCall { number, user, asked: 0, forms: 0, waiting: 0, over: watch::Sender::new(()) });
        ActiveCallGuard { calls: self.clone(), number }
    }

    /// Finds the call during which a request is made, and counts the request.
    fn open_request(&self, is_form: bool) -> Result<OpenRequest, ErrorData> {
        let mut calls = self.lock();
        let outside = || refused("No tool of this server is called by a run, so nobody can decide about the request.");
        let newest = calls.1.last().ok_or_else(outside)?;
        let user = newest.user.clone().ok_or_else(outside)?;
        let is_same = |call: &ActiveCall| call.user.as_ref().is_some_and(|other| other.run() == user.run());
        if !calls.1.iter().all(is_same) {
            return Err(refused("Several runs call tools of this server, so it's unknown which one asks."));
        }
        let number = newest.number;
        let Some(call) = calls.1.last_mut() else { return Err(outside()) };
        if is_form {
            if call.forms >= MAX_FORM_REQUESTS {
                return Err(refused("This tool call has shown too many forms."));
            }
            call.forms += 1;
        } else {
            if call.asked >= MAX_SAMPLING_REQUESTS {
                return Err(refused("This tool call has made too many requests for a model."));
            }
            call.asked += 1;
        }
        call.waiting += 1;
        let over = call.over.subscribe();
        drop(calls);
        Ok(OpenRequest { calls: self.clone(), number, user, over })
    }

    /// Has a form filled in by the user of the run.
    pub(crate) async fn fill_in(
        &self,
        form: UserForm,
        canceled: impl Future<Output = ()> + Send,
    ) -> Result<FormAnswer, ErrorData> {
        let mut open = self.open_request(true)?;
        let (tell, told) = oneshot::channel();
        let send = move |answer| {
            let _ = tell.send(answer); // the server may not wait any more
        };
        let id = open.user.fill_in(form, Box::new(send));
        Ok(tokio::select! {
            answer = told => answer.unwrap_or(FormAnswer::Closed),
            () = canceled => {
                open.user.withdraw(&id);
                FormAnswer::Closed
            }
            _ = open.over.changed() => FormAnswer::Closed,
        })
    }

    /// Has a request for a model decided and answered.
    pub(crate) async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        canceled: impl Future<Output = ()> + Send,
    ) -> Result<CreateMessageResult, ErrorData> {
        let wrong = |why: SamplingError| ErrorData::invalid_params(format!("The request is refused: {why}."), None);
        let request = sampling_request(params).map_err(wrong)?;
        let mut open = self.open_request(false)?;
        let (tell, told) = oneshot::channel();
        let send = move |answer| {
            let _ = tell.send(answer); // the server may not wait any more
        };
        let id = open.user.ask(request, Box::new(send));
        let ended = || Err(SamplingRefusal::Refused("The tool call has ended.".to_owned()));
        let answer = tokio::select! {
            answer = told => answer.unwrap_or_else(|_| ended()),
            () = canceled => {
                open.user.withdraw(&id);
                ended()
            }
            _ = open.over.changed() => ended(),
        };
        match answer {
            Ok(answer) => Ok(sampling_result(answer)),
            Err(SamplingRefusal::Rejected) => {
                Err(ErrorData::new(REJECTED, "User rejected sampling request".to_owned(), None))
            }
            Err(SamplingRefusal::Refused(why)) => Err(ErrorData::internal_error(why, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    struct Silent(&'static str);

    impl ServerRequestUser for Silent {
        fn run(&self) -> &str {
            self.0
        }

        fn ask(&self, _request: SamplingRequest, _answer: SamplingAnswerSender) -> String {
            String::new()
        }

        fn fill_in(&self, _form: UserForm, _answer: FormAnswerSender) -> String {
            String::new()
        }

        fn withdraw(&self, _request: &str) {}
    }

    fn user(run: &'static str) -> Option<Arc<dyn ServerRequestUser>> {
        Some(Arc::new(Silent(run)))
    }

    #[test]
    fn a_request_belongs_to_the_only_run_that_calls() {
        let calls = ActiveCalls::default();
        let refusal = || calls.open_request(false).map(drop).expect_err("refused").message.into_owned();
        assert!(refusal().contains("nobody can decide"));
        let first = calls.begin(user("a"));
        assert!(calls.open_request(false).is_ok());
        let same = calls.begin(user("a"));
        assert!(calls.open_request(false).is_ok(), "two calls of one run");
        let other = calls.begin(user("b"));
        assert!(refusal().contains("Several runs"));
        drop((first, same));
        assert!(calls.open_request(false).is_ok());
        let person = calls.begin(None);
        assert!(refusal().contains("nobody can decide"));
        drop((other, person));
        assert!(refusal().contains("nobody can decide"));
        let call = calls.begin(user("a"));
        let open: Vec<_> = (0..MAX_SAMPLING_REQUESTS).map(|_| calls.open_request(false).expect("one more")).collect();
        assert!(call.is_waiting());
        drop(open);
        assert!(!call.is_waiting() && refusal().contains("too many"), "also if they were answered");
        let forms: Vec<_> = (0..MAX_FORM_REQUESTS).map(|_| calls.open_request(true).expect("one more")).collect();
        assert!(call.is_waiting() && calls.open_request(true).is_err(), "forms count by themselves");
        drop(forms);
    }

    #[test]
    fn the_time_of_waiting_does_not_count() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let calls = ActiveCalls::default();
        let call = calls.begin(user("a"));
        let open = calls.open_request(false).expect("open");
        let (limit, long) = (Duration::from_millis(300), Duration::from_millis(1_200));
        let slept = || runtime.block_on(async { call.within(limit, tokio::time::sleep(long)).await });
        assert_eq!(slept(), Some(()));
        drop(open);
        assert_eq!(slept(), None);
    }

    #[test]
    fn only_text_is_taken() {
        let read = |content: Value, more: Value| {
            let mut params = json!({"messages": [{"role": "assistant", "content": content}], "maxTokens": 9});
            params.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
            sampling_request(serde_json::from_value(params).expect("parameters"))
        };
        let text = || json!({"type": "text", "text": "Hi"});
        let image = || json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"});
        let fine = read(json!([text(), text()]), json!({"temperature": 0.7, "systemPrompt": "", "tools": []}));
        let fine = fine.expect("a request");
        assert_eq!((fine.messages[0].text.as_str(), fine.messages[0].role), ("Hi\n\nHi", SamplingRole::Assistant));
        assert_eq!((fine.temperature, fine.system), (Some(0.7), None));
        assert_eq!(read(json!([text(), image()]), json!({})), Err(SamplingError::NotText("an image")));
        let tool = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
        assert_eq!(read(text(), json!({"tools": tool})), Err(SamplingError::Tools));
        assert_eq!(read(text(), json!({"toolChoice": {"mode": "auto"}})), Err(SamplingError::Tools));
        let used = json!({"type": "tool_use", "id": "a", "name": "t", "input": {}});
        assert_eq!(read(used, json!({})), Err(SamplingError::Tools));
    }
}
