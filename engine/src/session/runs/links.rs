//! Addresses of runs and sessions, such as `run-3f2a90c1#5`. Search returns them for steps and messages, and notes can
//! link to them.

use crate::session::state::runs::RunsState;
use store::{DocId, StepId};

const RUN_ADDRESS_PREFIX: &str = "run-";
const SESSION_ADDRESS_PREFIX: &str = "session-";
/// Number of hexadecimal digits of an id in an address.
const ADDRESS_ID_DIGITS: usize = 8;

/// Returns the address of a run, without a step.
pub fn run_address(run: DocId) -> String {
    format!("{RUN_ADDRESS_PREFIX}{}", &run.to_string()[..ADDRESS_ID_DIGITS])
}

/// Returns the address of a step of a run.
pub(in crate::session) fn step_address(run: DocId, step: StepId) -> String {
    format!("{}#{step}", run_address(run))
}

/// Returns the address of a session, without a message.
pub fn session_address(session: DocId) -> String {
    format!("{SESSION_ADDRESS_PREFIX}{}", &session.to_string()[..ADDRESS_ID_DIGITS])
}

impl RunsState {
    /// Returns the run or session with this address. The part after `#` is left to the caller. A note with the same
    /// name takes precedence, so look for one first.
    pub fn find_by_address(&self, address: &str) -> Option<DocId> {
        let name = address.split('#').next().unwrap_or_default().trim();
        let digits = |rest: &str| rest.len() == ADDRESS_ID_DIGITS && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is = |doc: &DocId, rest: &str| doc.to_string()[..ADDRESS_ID_DIGITS].eq_ignore_ascii_case(rest);
        if let Some(rest) = name.strip_prefix(RUN_ADDRESS_PREFIX).filter(|rest| digits(rest)) {
            return self.run_summaries.keys().find(|doc| is(doc, rest)).copied();
        }
        let rest = name.strip_prefix(SESSION_ADDRESS_PREFIX).filter(|rest| digits(rest))?;
        self.session_summaries.keys().find(|doc| is(doc, rest)).copied()
    }
}
