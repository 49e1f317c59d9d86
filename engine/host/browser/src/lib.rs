//! A headless Chromium that agents open web pages with: one process for each run, with a profile of its own, steered
//! over a pipe by the DevTools protocol.
//!
//! Pages aren't trusted. They reach the network only through a proxy in this process, which resolves names itself and
//! connects to the address that it has checked. They leave an approved site only if [`PagePolicy`] lets them. All that
//! they give is bounded. What is allowed is decided elsewhere.

mod browser_process;
mod browser_session;
mod devtools_pipe;
mod installed_browser;
mod page_actions;
mod page_events;
mod page_gate;
mod page_keys;
mod page_tree;
mod web_policy;

pub use browser_session::BrowserPool;
pub use installed_browser::describe_browser;

use agent::tool_job::AccessRequest;
use installed_browser::INSTALL_HINT;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of browsers at the same time.
pub const MAX_BROWSERS: usize = 4;
/// Maximum number of tabs in a browser.
pub const MAX_TABS: usize = 5;
/// How long a browser stays open without a call.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a browser may take to start.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a site may take to answer.
pub const NAVIGATION_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a call waits for a page that continues loading.
pub const LOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the browser may take for a single command.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of seconds that a call waits on request.
pub const MAX_WAIT_SECS: u64 = 20;
/// Maximum size of what one connection of a page brings, in bytes.
pub const MAX_CONNECTION_BYTES: u64 = 32 << 20;
/// Maximum size of what all connections of a tab bring, in bytes.
pub const MAX_TAB_BYTES: u64 = 256 << 20;
/// Maximum size of a downloaded file, in bytes.
pub const MAX_DOWNLOAD_BYTES: u64 = 20 << 20;
/// Maximum number of downloaded files in a run.
pub const MAX_DOWNLOADS: usize = 10;
/// Memory that a browser gets where the configuration names no limit, in bytes.
pub const DEFAULT_MEMORY_BYTES: u64 = 2 << 30;

/// Scheme, host and port of a page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PageOrigin {
    /// The scheme, `http` or `https`.
    pub scheme: String,
    /// Host name in lowercase, or IP address without brackets.
    pub host: String,
    /// The port, even if it's the scheme's default.
    pub port: u16,
}

/// What the policy says of addresses.
pub trait PagePolicy: Send + Sync {
    /// Returns the origin of an address; `None` if it isn't one that pages are opened at.
    fn origin_of(&self, url: &str) -> Option<PageOrigin>;
    /// Returns whether an IP address belongs to the public internet.
    fn is_public(&self, ip: IpAddr) -> bool;
    /// Returns whether pages may load from a host at all.
    fn may_load_from(&self, host: &str) -> bool;
    /// Returns the addresses outside the public internet that an origin may have if the configuration lets pages lead
    /// there without asking; `None` if it doesn't.
    fn listed_addresses(&self, origin: &PageOrigin) -> Option<Vec<IpAddr>>;
}

/// A call of one of the tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "tool")]
pub enum BrowserRequest {
    /// Opens an address in the tab in front.
    #[serde(rename = "browser_open")]
    Open {
        /// The address, which was approved.
        url: String,
    },
    /// Reads the page.
    #[serde(rename = "browser_read")]
    Read {
        /// The form in which the page is read.
        #[serde(rename = "as", default)]
        form: PageForm,
        /// The first line to show, from 1.
        #[serde(default)]
        from_line: Option<usize>,
    },
    /// Does something to an element.
    #[serde(rename = "browser_act")]
    Act {
        /// The action on the page.
        action: PageAction,
        /// Name of the element in the tree, such as `e12`.
        #[serde(rename = "ref", default)]
        element: Option<String>,
        /// The text to type, the choice to select, or the key to press.
        #[serde(default)]
        text: Option<String>,
    },
    /// Moves in the page, or between pages that were opened.
    #[serde(rename = "browser_go")]
    Go {
        /// The kind of move.
        action: PageMove,
        /// Seconds to wait.
        #[serde(default)]
        seconds: Option<u64>,
    },
    /// Lists, creates, selects and closes tabs.
    #[serde(rename = "browser_tabs")]
    Tabs {
        /// The operation on tabs.
        action: TabAction,
        /// Number of the tab.
        #[serde(default)]
        tab: Option<u32>,
    },
    /// Takes a picture of the page, or prints it.
    #[serde(rename = "browser_save")]
    Save {
        /// The kind of file.
        #[serde(rename = "as")]
        form: PageFile,
    },
}

/// A form in which a page is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageForm {
    /// Its elements, each with its name.
    #[default]
    Tree,
    /// Its text only.
    Text,
}

/// What is done to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageAction {
    /// Clicks on it.
    Click,
    /// Replaces what is in a field.
    Type,
    /// Selects a choice of a list.
    Select,
    /// Presses a key.
    Press,
}

/// A move in the history or of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageMove {
    /// To the page before.
    Back,
    /// To the page after.
    Forward,
    /// To the same page, loaded again.
    Reload,
    /// Down by a screen.
    ScrollDown,
    /// Up by a screen.
    ScrollUp,
    /// Nowhere; only time passes.
    Wait,
}

/// An operation on tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TabAction {
    /// Lists them.
    List,
    /// Creates an empty one in front.
    New,
    /// Brings one to the front.
    Select,
    /// Closes one.
    Close,
}

/// What is made of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageFile {
    /// A picture of what is visible, as PNG.
    Screenshot,
    /// The printed page.
    Pdf,
}

impl BrowserRequest {
    /// Reads a call from the tool's name and arguments.
    ///
    /// # Errors
    /// Returns an error if no tool has this name, or it has no such arguments.
    pub fn from_call(tool: &str, arguments: &Map<String, Value>) -> Result<BrowserRequest, BrowserError> {
        let mut all = arguments.clone();
        all.insert("tool".to_owned(), Value::String(tool.to_owned()));
        serde_json::from_value(Value::Object(all)).map_err(BrowserError::Arguments)
    }
}

/// A browser, and what its pages may do.
#[derive(Clone, Debug)]
pub struct BrowserSetup {
    /// The program; `None` for the first one that's installed.
    pub program: Option<PathBuf>,
    /// Memory that it may use, in bytes.
    pub memory_bytes: u64,
}

/// The answer to a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrowserAnswer {
    /// What the page says, and what happened.
    pub text: String,
    /// Pictures, printed pages and downloads.
    pub files: Vec<BrowserFile>,
    /// What the user must be asked first; nothing else was done then.
    pub asks: Option<AccessRequest>,
}

/// A file that a call gives. It's never executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserFile {
    /// Name of the file, without a folder.
    pub name: String,
    /// MIME type.
    pub mime: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// There's no browser.
    #[error("no Chromium or Chrome was found on this machine: {INSTALL_HINT}")]
    NotInstalled,
    /// The configured program isn't there.
    #[error("there is no browser {0}, which browser.program in config.yaml names")]
    NoProgram(PathBuf),
    /// This system isn't supported.
    #[error("the browser tools work on Linux and macOS only")]
    Unsupported,
    /// It didn't start.
    #[error("{program} does not start: {why}")]
    Start {
        /// The program.
        program: PathBuf,
        /// What it or the system says.
        why: String,
    },
    /// Its sandbox doesn't work.
    #[error(
        "{0} does not start, because its own sandbox does not work here; allow user namespaces, or install the package \
         chromium-sandbox"
    )]
    NoSandbox(PathBuf),
    /// Too many are open.
    #[error("{MAX_BROWSERS} browsers are open already; try again when another run has ended")]
    TooManyBrowsers,
    /// Nothing was opened.
    #[error("no page is open; call browser_open first")]
    NoPage,
    /// It has ended.
    #[error("the browser was closed: {0}; open the page again with browser_open")]
    Ended(String),
    /// The call was canceled.
    #[error("cancelled")]
    Cancelled,
    /// Something took too long.
    #[error("{what} took longer than {secs} s", secs = limit.as_secs())]
    TimedOut {
        /// The operation that took too long.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The address isn't one of a page.
    #[error("only http and https addresses can be opened: {0}")]
    Address(String),
    /// The page can't be opened.
    #[error("{url} can't be opened: {why}")]
    Navigation {
        /// The address.
        url: String,
        /// What the browser says.
        why: String,
    },
    /// No element has this name.
    #[error("there is no element {0} on the page now; call browser_read to see what there is")]
    UnknownElement(String),
    /// The element can't be used like that.
    #[error("{0}")]
    Element(String),
    /// An argument is missing or wrong.
    #[error("the arguments don't fit: {0}")]
    Arguments(#[source] serde_json::Error),
    /// An argument is missing.
    #[error("{0}")]
    Missing(&'static str),
    /// There's no such tab.
    #[error("there is no tab {0}; browser_tabs lists them")]
    UnknownTab(u32),
    /// No further tab can be made.
    #[error("there are {MAX_TABS} tabs already; close one")]
    TooManyTabs,
    /// The browser refuses a command.
    #[error("the browser can't do that ({method}: {why})")]
    Command {
        /// The command.
        method: &'static str,
        /// What the browser says.
        why: String,
    },
    /// The browser's answer is too large.
    #[error("the page is too large for that")]
    TooLarge,
    /// Something of the system failed.
    #[error("{what} failed ({source})")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

#[cfg(test)]
mod tests;
