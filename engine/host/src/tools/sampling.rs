//! Requests of MCP servers for a model, on their way to the session, and the answers back.

use crate::mailbox::Mailbox;
use agent::sampling::{SamplingAnswer, SamplingRequest};
use agent::tool_job::ToolOutcome;
use engine::Event;
use mcp::{SamplingAnswerSender, SamplingUser};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::DocId;

/// The requests that have no answer yet.
#[derive(Clone)]
pub(crate) struct SamplingRequests {
    inbox: Mailbox,
    open: Arc<Mutex<HashMap<String, SamplingAnswerSender>>>,
}

/// The requests during one tool call.
struct CallRequests {
    all: SamplingRequests,
    run: DocId,
    run_name: String,
    call: String,
    server: String,
}

impl SamplingRequests {
    pub(crate) fn new(inbox: Mailbox) -> SamplingRequests {
        SamplingRequests { inbox, open: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SamplingAnswerSender>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns who passes on what a server asks during a call.
    pub(crate) fn of_call(&self, run: DocId, call: &str, server: &str) -> Arc<dyn SamplingUser> {
        let (all, run_name) = (self.clone(), run.to_string());
        Arc::new(CallRequests { all, run, run_name, call: call.to_owned(), server: server.to_owned() })
    }

    /// Answers a request, if its server still waits.
    pub(crate) fn answer(&self, request: &str, answer: SamplingAnswer) {
        let waiting = self.lock().remove(request);
        if let Some(send) = waiting {
            send(answer);
        }
    }
}

impl SamplingUser for CallRequests {
    fn run(&self) -> &str {
        &self.run_name
    }

    fn ask(&self, asked: SamplingRequest, answer: SamplingAnswerSender) -> String {
        // Ids are unique in the run, also after a restart.
        let request = format!("s{:016x}", rand::random::<u64>());
        self.all.lock().insert(request.clone(), answer);
        let (run, call, server) = (self.run, self.call.clone(), self.server.clone());
        let (id, asked) = (request.clone(), Box::new(asked));
        self.all.inbox.send_event(Event::SamplingAsked { run, call, request: id, server, asked });
        request
    }

    fn withdraw(&self, request: &str) {
        self.all.lock().remove(request);
        let text = "The server has withdrawn it.".to_owned();
        let outcome = Box::new(ToolOutcome { text, ..ToolOutcome::default() });
        self.all.inbox.send_event(Event::ToolDone { run: self.run, call: request.to_owned(), outcome });
    }
}
