//! Requests of MCP servers for a model or the user, on their way to the session, and the answers back.

use crate::mailbox::Mailbox;
use agent::sampling::SamplingRequest;
use agent::server_form::UserForm;
use agent::server_request::{ServerReply, ServerRequest};
use agent::tool_job::ToolOutcome;
use engine::Event;
use mcp::{FormAnswerSender, SamplingAnswerSender, ServerRequestUser};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::DocId;

/// Who takes the answer to a request.
enum ReplySender {
    Model(SamplingAnswerSender),
    Form(FormAnswerSender),
}

/// The requests that have no answer yet.
#[derive(Clone)]
pub(crate) struct ServerRequests {
    inbox: Mailbox,
    open: Arc<Mutex<HashMap<String, ReplySender>>>,
}

/// The requests during one tool call.
struct CallRequests {
    all: ServerRequests,
    run: DocId,
    run_name: String,
    call: String,
    server: String,
}

impl ServerRequests {
    pub(crate) fn new(inbox: Mailbox) -> ServerRequests {
        ServerRequests { inbox, open: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ReplySender>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns who passes on what a server asks during a call.
    pub(crate) fn of_call(&self, run: DocId, call: &str, server: &str) -> Arc<dyn ServerRequestUser> {
        let (all, run_name) = (self.clone(), run.to_string());
        Arc::new(CallRequests { all, run, run_name, call: call.to_owned(), server: server.to_owned() })
    }

    /// Answers a request, if its server still waits.
    pub(crate) fn answer(&self, request: &str, reply: ServerReply) {
        let waiting = self.lock().remove(request);
        match (waiting, reply) {
            (Some(ReplySender::Model(send)), ServerReply::Model(answer)) => send(answer),
            (Some(ReplySender::Form(send)), ServerReply::Form(answer)) => send(answer),
            // Nobody waits. A reply of the other kind can't be: dropping the sender would refuse the request.
            (Some(_) | None, _) => {}
        }
    }
}

impl CallRequests {
    fn pass_on(&self, asked: ServerRequest, reply: ReplySender) -> String {
        // Ids are unique in the run, also after a restart.
        let request = format!("s{:016x}", rand::random::<u64>());
        self.all.lock().insert(request.clone(), reply);
        let (run, call, server) = (self.run, self.call.clone(), self.server.clone());
        let (id, asked) = (request.clone(), Box::new(asked));
        self.all.inbox.send_event(Event::ServerAsked { run, call, request: id, server, asked });
        request
    }
}

impl ServerRequestUser for CallRequests {
    fn run(&self) -> &str {
        &self.run_name
    }

    fn ask(&self, asked: SamplingRequest, answer: SamplingAnswerSender) -> String {
        self.pass_on(ServerRequest::Model(asked), ReplySender::Model(answer))
    }

    fn fill_in(&self, form: UserForm, answer: FormAnswerSender) -> String {
        self.pass_on(ServerRequest::Form(form), ReplySender::Form(answer))
    }

    fn withdraw(&self, request: &str) {
        self.all.lock().remove(request);
        let text = "The server has withdrawn it.".to_owned();
        let outcome = Box::new(ToolOutcome { text, ..ToolOutcome::default() });
        self.all.inbox.send_event(Event::ToolDone { run: self.run, call: request.to_owned(), outcome });
    }
}
