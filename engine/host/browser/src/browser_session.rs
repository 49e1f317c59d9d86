//! The browsers of all runs: started with the first page, used by one call at a time, and killed with their run.

use crate::browser_process::{BrowserPipes, BrowserProcess};
use crate::devtools_pipe::{CallLimit, DevToolsPipe, POLL_INTERVAL};
use crate::installed_browser::{SandboxUser, find_browser, sandbox_user};
use crate::page_events::{BrowserTabs, EventHandler};
use crate::page_gate::{HostResolver, resolve_by_system};
use crate::{
    BrowserAnswer, BrowserError, BrowserRequest, BrowserSetup, MAX_BROWSERS, PagePolicy, START_TIMEOUT, page_actions,
};
use serde_json::json;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use store::DocId;

/// A started browser and its tabs.
pub(crate) struct BrowserSession {
    pub(crate) pipe: Arc<DevToolsPipe>,
    pub(crate) handler: Arc<EventHandler>,
    pub(crate) process: Arc<BrowserProcess>,
}

impl Drop for BrowserSession {
    fn drop(&mut self) {
        self.handler.tabs().tabs.iter().for_each(|tab| tab.gate.close());
        self.process.kill("its run has ended");
    }
}

impl BrowserSession {
    fn start(
        setup: &BrowserSetup,
        (policy, resolver): (Arc<dyn PagePolicy>, &HostResolver),
        limit: CallLimit<'_>,
        on_start: &dyn Fn(&Arc<BrowserProcess>),
    ) -> Result<BrowserSession, BrowserError> {
        let program = find_browser(setup.program.as_deref())?;
        let attempt = |is_sandboxed| {
            let network = (policy.clone(), resolver.clone());
            BrowserSession::start_program(&program, setup, network, is_sandboxed, limit, on_start)
        };
        match attempt(true) {
            // Root's browser runs as a user without rights, so that it has one wall left. Others get both or none.
            Err(BrowserError::NoSandbox(_)) if sandbox_user() != SandboxUser::Same => attempt(false),
            other => other,
        }
    }

    fn start_program(
        program: &Path,
        setup: &BrowserSetup,
        (policy, resolver): (Arc<dyn PagePolicy>, HostResolver),
        is_sandboxed: bool,
        limit: CallLimit<'_>,
        on_start: &dyn Fn(&Arc<BrowserProcess>),
    ) -> Result<BrowserSession, BrowserError> {
        let (process, BrowserPipes { input, output }) =
            BrowserProcess::start(program, setup.memory_bytes, is_sandboxed)?;
        on_start(&process);
        let pipe = Arc::new(DevToolsPipe::new(input));
        let handler = Arc::new(EventHandler { tabs: Mutex::new(BrowserTabs::default()), policy, resolver });
        let (reader, events) = (pipe.clone(), handler.clone());
        std::thread::spawn(move || {
            let answering = reader.clone();
            reader.read_all(output, |event| events.handle(&answering, &event));
        });
        let session = BrowserSession { pipe, handler, process };
        // Every page stops before it begins, so that no popup loads anything.
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true,
            "filter": [{"type": "page"}, {"exclude": true}]});
        match session.pipe.request("", "Target.setAutoAttach", &attach, (limit, START_TIMEOUT)) {
            Ok(_) => Ok(session),
            Err(BrowserError::Cancelled) => Err(BrowserError::Cancelled),
            Err(error) => Err(session.start_error(program, &error)),
        }
    }

    /// Returns why it didn't start, with what it printed.
    fn start_error(&self, program: &Path, error: &BrowserError) -> BrowserError {
        std::thread::sleep(POLL_INTERVAL); // its last words may be on the way
        let printed = self.process.printed();
        if printed.contains("No usable sandbox") || printed.contains("Failed to move to new namespace") {
            return BrowserError::NoSandbox(program.to_owned());
        }
        let last = printed.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let why = last.map_or_else(|| error.to_string(), |line| format!("{error}; it printed: {line}"));
        BrowserError::Start { program: program.to_owned(), why }
    }
}

/// The browser of one run.
#[derive(Default)]
struct BrowserSlot {
    session: Mutex<Option<BrowserSession>>,
    /// The process, to be killed while a call uses it.
    process: Mutex<Option<Arc<BrowserProcess>>>,
    is_closed: AtomicBool,
}

impl BrowserSlot {
    fn has_ended(&self) -> bool {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.as_ref().is_some_and(|process| process.kill_reason().is_some())
    }

    /// Kills the browser, whatever a call does with it.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process {
            process.kill("its run has ended");
        }
    }
}

/// The browsers of all runs.
pub struct BrowserPool {
    slots: Mutex<HashMap<DocId, Arc<BrowserSlot>>>,
    resolver: HostResolver,
}

impl Default for BrowserPool {
    fn default() -> BrowserPool {
        BrowserPool::with_resolver(Arc::new(resolve_by_system))
    }
}

impl Drop for BrowserPool {
    fn drop(&mut self) {
        self.close_all();
    }
}

impl BrowserPool {
    /// Returns a pool whose pages find the addresses of hosts by this function.
    pub(crate) fn with_resolver(resolver: HostResolver) -> BrowserPool {
        BrowserPool { slots: Mutex::default(), resolver }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<DocId, Arc<BrowserSlot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a call in a run's browser. `inside` are the addresses outside the public internet that the opened
    /// address may have. `is_stopped` is asked often; calls end within a second of it.
    ///
    /// # Errors
    /// Returns an error if there's no browser, or the call fails.
    pub(crate) fn call(
        &self,
        run: DocId,
        request: &BrowserRequest,
        inside: &[IpAddr],
        (setup, policy): (&BrowserSetup, Arc<dyn PagePolicy>),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<BrowserAnswer, BrowserError> {
        let slot = {
            let mut slots = self.slots();
            let known = slots.get(&run).cloned();
            if known.is_none() && slots.len() >= MAX_BROWSERS {
                // Those that were killed for a reason of their own have their run's next call to say so.
                slots.retain(|_, slot| !slot.has_ended());
            }
            match (known, request) {
                (Some(slot), _) => slot,
                (None, BrowserRequest::Open { .. }) if slots.len() >= MAX_BROWSERS => {
                    return Err(BrowserError::TooManyBrowsers);
                }
                (None, BrowserRequest::Open { .. }) => slots.entry(run).or_default().clone(),
                (None, _) => return Err(BrowserError::NoPage),
            }
        };
        let stops = || is_stopped() || slot.is_closed.load(Ordering::Acquire);
        let limit = CallLimit { is_stopped: &stops };
        // Calls of one run use the same page one after the other.
        let mut session = loop {
            match slot.session.try_lock() {
                Ok(session) => break session,
                Err(TryLockError::Poisoned(session)) => break session.into_inner(),
                Err(TryLockError::WouldBlock) => limit.pause(POLL_INTERVAL)?,
            }
        };
        if session.is_none() {
            let register = |process: &Arc<BrowserProcess>| {
                *slot.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(process.clone());
                if slot.is_closed.load(Ordering::Acquire) {
                    process.kill("its run has ended");
                }
            };
            match BrowserSession::start(setup, (policy, &self.resolver), limit, &register) {
                Ok(started) => *session = Some(started),
                Err(error) => {
                    self.slots().remove(&run);
                    return Err(error);
                }
            }
        }
        let Some(at_work) = session.as_ref() else { return Err(BrowserError::NoPage) };
        at_work.process.mark_busy(true);
        let answer = page_actions::perform(at_work, request, inside, limit);
        at_work.process.mark_busy(false);
        match answer {
            // The next page gets a new browser.
            Err(BrowserError::Ended(_)) => {
                let why = at_work.process.kill_reason().unwrap_or_else(|| "it ended by itself".to_owned());
                *session = None;
                self.slots().remove(&run);
                Err(BrowserError::Ended(why))
            }
            other => other,
        }
    }

    /// Kills the browser of a run, even while a call uses it.
    pub fn close(&self, run: DocId) {
        let slot = self.slots().remove(&run);
        if let Some(slot) = slot {
            slot.close();
        }
    }

    /// Kills all browsers.
    pub fn close_all(&self) {
        let all: Vec<Arc<BrowserSlot>> = self.slots().drain().map(|(_, slot)| slot).collect();
        all.iter().for_each(|slot| slot.close());
    }
}
