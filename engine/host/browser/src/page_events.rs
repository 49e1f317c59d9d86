//! The state of a browser's tabs, kept up to date by its events. Events are handled where they're read, without
//! waiting: a page that wants to leave an approved site is stopped there.

use crate::devtools_pipe::{DevToolsEvent, DevToolsPipe};
use crate::page_gate::{HostResolver, OpenOrigin, PageGate};
use crate::{MAX_DOWNLOAD_BYTES, MAX_DOWNLOADS, PageOrigin, PagePolicy};
use agent::prompt_quote::quote_inline;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of notices that are kept until the next call.
const MAX_NOTICES: usize = 20;
/// Maximum length of an address, title or message in a notice, in characters.
pub(crate) const MAX_NOTICE_CHARS: usize = 300;

/// A tab.
pub(crate) struct PageTab {
    /// Its number for the model.
    pub(crate) number: u32,
    /// Its browser context, with a proxy and cookies of its own.
    pub(crate) context: String,
    /// Id of its page, which is also that of the main frame.
    pub(crate) target: String,
    /// Id of the session with its page.
    pub(crate) session: String,
    pub(crate) gate: Arc<PageGate>,
    pub(crate) url: String,
    pub(crate) is_loading: bool,
    pub(crate) has_crashed: bool,
    /// Names of elements in the document, as the last tree gave them.
    pub(crate) elements: HashMap<u64, u32>,
    /// The last name that was given to an element.
    pub(crate) last_element: u32,
}

/// A file that a page sends.
#[derive(Default)]
pub(crate) struct PageDownload {
    pub(crate) context: String,
    pub(crate) name: String,
    pub(crate) state: DownloadState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DownloadState {
    #[default]
    Running,
    Completed,
    Refused,
    /// It was read, or the user heard why it wasn't.
    Reported,
}

/// All tabs, and what happened to them.
#[derive(Default)]
pub(crate) struct BrowserTabs {
    pub(crate) tabs: Vec<PageTab>,
    /// Index of the tab in front.
    pub(crate) front: usize,
    pub(crate) last_number: u32,
    /// Origins whose addresses were approved in this run.
    pub(crate) approved: Vec<OpenOrigin>,
    /// The address that a page was stopped from going to.
    pub(crate) stopped: Option<String>,
    pub(crate) downloads: HashMap<String, PageDownload>,
    notices: Vec<String>,
}

impl BrowserTabs {
    pub(crate) fn front_tab(&self) -> Option<&PageTab> {
        self.tabs.get(self.front)
    }

    pub(crate) fn notice(&mut self, text: String) {
        if self.notices.len() < MAX_NOTICES && !self.notices.contains(&text) {
            self.notices.push(text);
        }
    }

    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        let mut all = std::mem::take(&mut self.notices);
        all.extend(self.tabs.iter().flat_map(|tab| tab.gate.take_remarks()));
        all
    }

    /// Returns the open origin of an address if pages may be there: it was approved, or the configuration lists it.
    fn open_origin(&self, policy: &dyn PagePolicy, url: &str) -> Option<OpenOrigin> {
        let origin: PageOrigin = policy.origin_of(url)?;
        let approved = self.approved.iter().find(|open| open.origin == origin).cloned();
        approved.or_else(|| {
            let inside = policy.listed_addresses(&origin)?;
            Some(OpenOrigin { origin, inside })
        })
    }

    fn tab_of(&mut self, session: &str) -> Option<&mut PageTab> {
        self.tabs.iter_mut().find(|tab| !session.is_empty() && tab.session == session)
    }
}

/// What events change, and how they're answered.
pub(crate) struct EventHandler {
    pub(crate) tabs: Mutex<BrowserTabs>,
    pub(crate) policy: Arc<dyn PagePolicy>,
    pub(crate) resolver: HostResolver,
}

/// Returns a text of a page on one line, shortened.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

impl EventHandler {
    pub(crate) fn tabs(&self) -> MutexGuard<'_, BrowserTabs> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an event. Commands are sent without waiting for their answers.
    pub(crate) fn handle(&self, pipe: &DevToolsPipe, event: &DevToolsEvent) {
        let (session, params) = (event.session.as_str(), &event.params);
        match event.method.as_str() {
            "Target.attachedToTarget" => self.on_attached(pipe, params),
            "Target.detachedFromTarget" => {
                if let Some(tab) = self.tabs().tab_of(text(params, "sessionId")) {
                    tab.has_crashed = true;
                }
            }
            "Inspector.targetCrashed" => {
                if let Some(tab) = self.tabs().tab_of(session) {
                    tab.has_crashed = true;
                }
            }
            "Fetch.requestPaused" => self.on_request(pipe, session, params),
            "Page.frameStartedLoading" | "Page.frameStoppedLoading" => {
                let is_loading = event.method == "Page.frameStartedLoading";
                if let Some(tab) = self.tabs().tab_of(session).filter(|tab| tab.target == text(params, "frameId")) {
                    tab.is_loading = is_loading;
                }
            }
            "Page.frameNavigated" => self.on_navigated(session, &params["frame"]),
            "Page.navigatedWithinDocument" => {
                let url = text(params, "url").to_owned();
                if let Some(tab) = self.tabs().tab_of(session).filter(|tab| tab.target == text(params, "frameId")) {
                    tab.url = url;
                }
            }
            "Page.javascriptDialogOpening" => {
                let kind = text(params, "type");
                pipe.send(session, "Page.handleJavaScriptDialog", &json!({"accept": kind == "beforeunload"}));
                let said = quote_inline(text(params, "message"), MAX_NOTICE_CHARS);
                self.tabs().notice(format!("The page showed a dialog ({kind}), which was dismissed: {said}"));
            }
            "Page.windowOpen" => {
                let url = shortened(text(params, "url"), MAX_NOTICE_CHARS);
                self.tabs().notice(format!(
                    "The page wants to open another tab, which was refused. To see it, call browser_open with {url}"
                ));
            }
            "Page.fileChooserOpened" => {
                self.tabs().notice("The page asks for a file. Files can't be uploaded.".to_owned());
            }
            "Browser.downloadWillBegin" => self.on_download(pipe, params),
            "Browser.downloadProgress" => self.on_download_progress(pipe, params),
            _ => {}
        }
    }

    /// Takes a page that a tab was made for. Any other page is a popup: it's closed before it loads anything.
    fn on_attached(&self, pipe: &DevToolsPipe, params: &Value) {
        let (session, target) = (text(params, "sessionId"), &params["targetInfo"]);
        let context = text(target, "browserContextId");
        let mut tabs = self.tabs();
        let own = tabs.tabs.iter_mut().find(|tab| tab.context == context && tab.target.is_empty());
        let Some(tab) = own else {
            drop(tabs);
            return pipe.send("", "Target.closeTarget", &json!({"targetId": target["targetId"]}));
        };
        tab.target = text(target, "targetId").to_owned();
        tab.session = session.to_owned();
        drop(tabs);
        pipe.send(session, "Page.enable", &json!({}));
        let patterns = json!([{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]);
        pipe.send(session, "Fetch.enable", &json!({"patterns": patterns}));
        pipe.send(session, "Page.setInterceptFileChooserDialog", &json!({"enabled": true}));
        pipe.send(session, "Inspector.enable", &json!({}));
        pipe.send(session, "Runtime.runIfWaitingForDebugger", &json!({}));
    }

    /// Lets a document load, or stops a page that wants to leave for a site that wasn't approved.
    fn on_request(&self, pipe: &DevToolsPipe, session: &str, params: &Value) {
        let id = &params["requestId"];
        let url = text(&params["request"], "url");
        let mut tabs = self.tabs();
        let is_main = tabs.tab_of(session).is_none_or(|tab| tab.target == text(params, "frameId"));
        if !is_main {
            drop(tabs);
            return pipe.send(session, "Fetch.continueRequest", &json!({"requestId": id}));
        }
        let open = tabs.open_origin(&*self.policy, url);
        match (open, tabs.tab_of(session)) {
            (Some(open), Some(tab)) => {
                tab.gate.let_in(open);
                drop(tabs);
                pipe.send(session, "Fetch.continueRequest", &json!({"requestId": id}));
            }
            _ => {
                tabs.stopped = Some(url.to_owned());
                drop(tabs);
                // Unlike other reasons, this one leaves the page as it is.
                pipe.send(session, "Fetch.failRequest", &json!({"requestId": id, "errorReason": "Aborted"}));
            }
        }
    }

    fn on_navigated(&self, session: &str, frame: &Value) {
        if frame["parentId"].is_string() {
            return;
        }
        let url = text(frame, "url");
        let mut tabs = self.tabs();
        let open = tabs.open_origin(&*self.policy, url);
        if let Some(tab) = tabs.tab_of(session) {
            tab.url = url.to_owned();
            tab.elements.clear();
            tab.gate.show_only(open);
        }
    }

    fn on_download(&self, pipe: &DevToolsPipe, params: &Value) {
        let guid = text(params, "guid").to_owned();
        let mut tabs = self.tabs();
        let context = tabs.front_tab().map(|tab| tab.context.clone()).unwrap_or_default();
        let name = shortened(text(params, "suggestedFilename"), 100).replace(['/', '\\'], "_");
        let is_one_too_many = tabs.downloads.len() >= MAX_DOWNLOADS;
        if is_one_too_many {
            pipe.send("", "Browser.cancelDownload", &json!({"guid": guid, "browserContextId": context}));
            let name = quote_inline(&name, MAX_NOTICE_CHARS);
            tabs.notice(format!("The page sent the file {name}, which was refused: {MAX_DOWNLOADS} are enough."));
        } else {
            tabs.downloads.insert(guid, PageDownload { context, name, state: DownloadState::Running });
        }
    }

    fn on_download_progress(&self, pipe: &DevToolsPipe, params: &Value) {
        let guid = text(params, "guid");
        let bytes = |name: &str| params[name].as_f64().unwrap_or_default();
        let is_too_large = bytes("totalBytes").max(bytes("receivedBytes")) > MAX_DOWNLOAD_BYTES as f64;
        let mut tabs = self.tabs();
        let Some(download) = tabs.downloads.get_mut(guid).filter(|known| known.state == DownloadState::Running) else {
            return;
        };
        match text(params, "state") {
            _ if is_too_large => {
                download.state = DownloadState::Refused;
                let context = download.context.clone();
                pipe.send("", "Browser.cancelDownload", &json!({"guid": guid, "browserContextId": context}));
            }
            "completed" => download.state = DownloadState::Completed,
            "canceled" => download.state = DownloadState::Refused,
            _ => {}
        }
    }
}
