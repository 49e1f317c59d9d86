//! What calls do in a browser: open, read, act, move, tabs, pictures.

use crate::browser_session::BrowserSession;
use crate::devtools_pipe::{CallLimit, POLL_INTERVAL};
use crate::page_events::{DownloadState, MAX_NOTICE_CHARS, PageDownload, PageTab, shortened};
use crate::page_gate::{HostResolver, OpenOrigin, PageGate};
use crate::page_keys::{find_key, key_names};
use crate::page_tree::{find_element, write_tree};
use crate::{
    BrowserAnswer, BrowserError, BrowserFile, BrowserRequest, COMMAND_TIMEOUT, LOAD_TIMEOUT, MAX_DOWNLOAD_BYTES,
    MAX_TABS, MAX_WAIT_SECS, NAVIGATION_TIMEOUT, PageAction, PageFile, PageForm, PageMove, PageOrigin, TabAction,
};
use agent::prompt_quote::{quote_block, quote_inline};
use agent::tool_job::AccessRequest;
use agent::web_address::unmap_ipv4;
use base64::Engine;
use serde_json::{Value, json};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

/// How long a page must have loaded nothing before it counts as loaded.
const QUIET_TIME: Duration = Duration::from_millis(300);
/// Size of a tab in pixels.
const VIEW_SIZE: (u32, u32) = (1280, 800);
/// Maximum length of a tree that's shown after an action, in bytes.
const MAX_BRIEF_BYTES: usize = 5_000;
/// Maximum length of a page's text in UTF-16 units.
const MAX_TEXT_UNITS: usize = 400_000;
/// Maximum number of frames inside a page that are read.
const MAX_FRAMES: usize = 10;
/// Replaces the value of an input that isn't typed into, such as a date, or selects all text that typing replaces.
/// Returns `typed` if the text must be typed.
const PREPARE_TYPING: &str = "function (text) {
    if (this instanceof HTMLInputElement && this.type === 'file') return 'file';
    if (this.disabled || this.readOnly) return 'closed';
    if (this instanceof HTMLInputElement
        && ['color', 'date', 'datetime-local', 'month', 'range', 'time', 'week'].includes(this.type)) {
        this.value = text;
        this.dispatchEvent(new Event('input', {bubbles: true}));
        this.dispatchEvent(new Event('change', {bubbles: true}));
        return 'set';
    }
    if (this instanceof HTMLInputElement || this instanceof HTMLTextAreaElement) {
        this.focus();
        this.select();
        return 'typed';
    }
    if (this.isContentEditable) {
        this.focus();
        document.getSelection().selectAllChildren(this);
        return 'typed';
    }
    return 'none';
}";
/// Selects a choice of a list by its label or value. Returns the labels if there is none.
const SELECT_CHOICE: &str = "function (wanted) {
    if (!(this instanceof HTMLSelectElement)) return 'none';
    const all = [...this.options];
    const found = all.find(one => one.label.trim() === wanted.trim()) ?? all.find(one => one.value === wanted);
    if (!found) return 'choices: ' + all.slice(0, 50).map(one => one.label).join(', ').slice(0, 1000);
    if (this.multiple) found.selected = true; else this.value = found.value, found.selected = true;
    this.dispatchEvent(new Event('input', {bubbles: true}));
    this.dispatchEvent(new Event('change', {bubbles: true}));
    return 'selected';
}";

/// The tab in front while a call uses it.
struct OpenTab<'a> {
    browser: &'a BrowserSession,
    limit: CallLimit<'a>,
    number: u32,
    session: String,
    target: String,
}

/// Carries out a call.
pub(crate) fn perform(
    browser: &BrowserSession,
    request: &BrowserRequest,
    inside: &[IpAddr],
    limit: CallLimit<'_>,
) -> Result<BrowserAnswer, BrowserError> {
    browser.handler.tabs().stopped = None;
    match request {
        BrowserRequest::Open { url } => open(browser, url, inside, limit),
        BrowserRequest::Read { form, from_line } => {
            let tab = OpenTab::front(browser, limit)?;
            tab.settle(LOAD_TIMEOUT)?;
            let lines = tab.read(*form)?;
            let from = from_line.unwrap_or(1).max(1);
            let skipped = if from > 1 { format!("From line {from} of {}:\n", lines.len()) } else { String::new() };
            let text = skipped + &tab.quote(&lines.into_iter().skip(from - 1).collect::<Vec<_>>().join("\n"))?;
            tab.answer(text)
        }
        BrowserRequest::Act { action, element, text } => {
            let tab = OpenTab::front(browser, limit)?;
            let done = tab.act(*action, element.as_deref(), text.as_deref())?;
            tab.settle(LOAD_TIMEOUT)?;
            tab.brief_answer(&done)
        }
        BrowserRequest::Go { action, seconds } => {
            let tab = OpenTab::front(browser, limit)?;
            let done = tab.go(*action, *seconds)?;
            tab.settle(LOAD_TIMEOUT)?;
            tab.brief_answer(&done)
        }
        BrowserRequest::Tabs { action, tab } => manage_tabs(browser, *action, *tab, limit),
        BrowserRequest::Save { form } => {
            let tab = OpenTab::front(browser, limit)?;
            tab.settle(LOAD_TIMEOUT)?;
            tab.save(*form)
        }
    }
}

/// Resolves a host on another thread, because the system's resolver can't be interrupted.
fn resolve_host(
    resolver: HostResolver,
    origin: &PageOrigin,
    limit: CallLimit<'_>,
) -> Result<Vec<SocketAddr>, BrowserError> {
    let (tell, told) = channel();
    let (host, port) = (origin.host.clone(), origin.port);
    // By then nobody may be waiting.
    std::thread::spawn(move || _ = tell.send(resolver(&host, port)));
    let until = Instant::now() + COMMAND_TIMEOUT;
    loop {
        match told.try_recv() {
            Ok(found) => {
                return found.map_err(|_| BrowserError::Navigation {
                    url: origin.host.clone(),
                    why: "there is no host with that name, or no network".to_owned(),
                });
            }
            Err(TryRecvError::Empty) if Instant::now() < until => limit.pause(POLL_INTERVAL)?,
            Err(_) => {
                let what = format!("looking up {}", origin.host);
                return Err(BrowserError::TimedOut { what, limit: COMMAND_TIMEOUT });
            }
        }
    }
}

fn open(
    browser: &BrowserSession,
    url: &str,
    inside: &[IpAddr],
    limit: CallLimit<'_>,
) -> Result<BrowserAnswer, BrowserError> {
    let policy = &browser.handler.policy;
    let origin = policy.origin_of(url).ok_or_else(|| BrowserError::Address(url.to_owned()))?;
    let found = resolve_host(browser.handler.resolver.clone(), &origin, limit)?;
    let may_reach = |ip: &IpAddr| policy.is_public(*ip) || inside.contains(ip);
    let ips: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    if !ips.iter().any(may_reach) {
        let ips = ips.iter().map(|ip| unmap_ipv4(*ip).to_string()).collect();
        let asks = Some(AccessRequest::PrivateAddress { url: url.to_owned(), ips });
        return Ok(BrowserAnswer { asks, ..BrowserAnswer::default() });
    }
    let is_usable = browser.handler.tabs().front_tab().map(|tab| !tab.has_crashed);
    match is_usable {
        Some(true) => {}
        Some(false) => {
            close_front_tab(browser);
            new_tab(browser, limit)?;
        }
        None => new_tab(browser, limit)?,
    }
    let tab = OpenTab::front(browser, limit)?;
    {
        let mut tabs = browser.handler.tabs();
        let opened = OpenOrigin { origin, inside: inside.to_vec() };
        tabs.approved.retain(|open| open.origin != opened.origin);
        tabs.approved.push(opened.clone());
        // The browser connects before it asks for the document.
        if let Some(tab) = tabs.front_tab() {
            tab.gate.let_in(opened);
        }
        // What an earlier page did isn't this one's doing.
        tabs.take_notices();
    }
    let navigated = tab.request_in("Page.navigate", &json!({"url": url}), NAVIGATION_TIMEOUT);
    let stopped = browser.handler.tabs().stopped.take();
    if let Some(url) = stopped {
        return Ok(BrowserAnswer { asks: Some(AccessRequest::Redirect { url }), ..BrowserAnswer::default() });
    }
    let navigated = match navigated {
        Err(BrowserError::TimedOut { .. }) => {
            tab.browser.pipe.send(&tab.session, "Page.stopLoading", &json!({}));
            let why = format!("it has not answered within {} s", NAVIGATION_TIMEOUT.as_secs());
            return Err(BrowserError::Navigation { url: url.to_owned(), why });
        }
        other => other?,
    };
    tab.settle(LOAD_TIMEOUT)?;
    let is_new = |download: &PageDownload| download.state != DownloadState::Reported;
    let is_download = browser.handler.tabs().downloads.values().any(is_new);
    if let Some(error) = navigated["errorText"].as_str().filter(|_| !is_download) {
        let remarks = browser.handler.tabs().take_notices();
        let why = [navigation_error(error)].into_iter().chain(remarks).collect::<Vec<_>>().join(". ");
        return Err(BrowserError::Navigation { url: url.to_owned(), why });
    }
    tab.brief_answer(browser.process.remark.unwrap_or_default())
}

/// Says what an error of the network means.
fn navigation_error(error: &str) -> String {
    let known = match error {
        "net::ERR_SOCKS_CONNECTION_FAILED" | "net::ERR_PROXY_CONNECTION_FAILED" => "no connection could be made",
        "net::ERR_TOO_MANY_REDIRECTS" => "it redirects too often",
        "net::ERR_CERT_AUTHORITY_INVALID" | "net::ERR_CERT_COMMON_NAME_INVALID" | "net::ERR_CERT_DATE_INVALID" => {
            "its certificate is not valid"
        }
        "net::ERR_EMPTY_RESPONSE" => "it sent nothing",
        _ => return error.to_owned(),
    };
    format!("{known} ({error})")
}

fn new_tab(browser: &BrowserSession, limit: CallLimit<'_>) -> Result<(), BrowserError> {
    let request =
        |session: &str, method, params: &Value| browser.pipe.request(session, method, params, (limit, COMMAND_TIMEOUT));
    let system = |source| BrowserError::System { what: "starting the page's proxy", source };
    let gate = PageGate::open(browser.handler.policy.clone(), browser.handler.resolver.clone()).map_err(system)?;
    let proxy = json!({"proxyServer": gate.address(), "proxyBypassList": "<-loopback>", "disposeOnDetach": true});
    let made = request("", "Target.createBrowserContext", &proxy).inspect_err(|_| gate.close())?;
    let context = made["browserContextId"].as_str().unwrap_or_default().to_owned();
    let downloads = json!({"behavior": "allowAndName", "browserContextId": context, "eventsEnabled": true,
        "downloadPath": browser.process.downloads()});
    request("", "Browser.setDownloadBehavior", &downloads).inspect_err(|_| gate.close())?;
    {
        let mut tabs = browser.handler.tabs();
        tabs.last_number += 1;
        let tab = PageTab {
            number: tabs.last_number,
            context: context.clone(),
            target: String::new(),
            session: String::new(),
            gate,
            url: "about:blank".to_owned(),
            is_loading: false,
            has_crashed: false,
            elements: Default::default(),
            last_element: 0,
        };
        tabs.tabs.push(tab);
        tabs.front = tabs.tabs.len() - 1;
    }
    let page = json!({"url": "about:blank", "browserContextId": context, "newWindow": true,
        "width": VIEW_SIZE.0, "height": VIEW_SIZE.1});
    let made = request("", "Target.createTarget", &page);
    // Its session begins with an event of its own.
    let until = Instant::now() + COMMAND_TIMEOUT;
    let attached = made.and_then(|_| {
        loop {
            let session = browser.handler.tabs().front_tab().map(|tab| tab.session.clone()).unwrap_or_default();
            if !session.is_empty() {
                return Ok(session);
            }
            if Instant::now() > until {
                return Err(BrowserError::TimedOut { what: "a new tab".to_owned(), limit: COMMAND_TIMEOUT });
            }
            limit.pause(Duration::from_millis(5))?;
        }
    });
    let size = json!({"width": VIEW_SIZE.0, "height": VIEW_SIZE.1, "deviceScaleFactor": 1, "mobile": false});
    let sized = attached.and_then(|session| request(&session, "Emulation.setDeviceMetricsOverride", &size));
    sized.map(drop).inspect_err(|_| close_front_tab(browser))
}

fn close_front_tab(browser: &BrowserSession) {
    let mut tabs = browser.handler.tabs();
    if tabs.front >= tabs.tabs.len() {
        return;
    }
    let front = tabs.front;
    let tab = tabs.tabs.remove(front);
    tabs.front = front.saturating_sub(1);
    drop(tabs);
    tab.gate.close();
    // Its page goes with it.
    browser.pipe.send("", "Target.disposeBrowserContext", &json!({"browserContextId": tab.context}));
}

fn manage_tabs(
    browser: &BrowserSession,
    action: TabAction,
    number: Option<u32>,
    limit: CallLimit<'_>,
) -> Result<BrowserAnswer, BrowserError> {
    let select = || {
        let mut tabs = browser.handler.tabs();
        let Some(number) = number else { return Err(BrowserError::Missing("say which tab: give its number")) };
        let found = tabs.tabs.iter().position(|tab| tab.number == number);
        tabs.front = found.ok_or(BrowserError::UnknownTab(number))?;
        Ok(())
    };
    match action {
        TabAction::List => {}
        TabAction::New if browser.handler.tabs().tabs.len() >= MAX_TABS => return Err(BrowserError::TooManyTabs),
        TabAction::New => new_tab(browser, limit)?,
        TabAction::Select => select()?,
        TabAction::Close => {
            if number.is_some() {
                select()?;
            }
            close_front_tab(browser);
        }
    }
    let tabs = browser.handler.tabs();
    let mut lines = Vec::new();
    for (at, tab) in tabs.tabs.iter().enumerate() {
        let front = if at == tabs.front { ", in front" } else { "" };
        lines.push(format!("Tab {}{front}: {}", tab.number, shortened(&tab.url, MAX_NOTICE_CHARS)));
    }
    let text = if lines.is_empty() { "No tab is open.".to_owned() } else { lines.join("\n") };
    Ok(BrowserAnswer { text, ..BrowserAnswer::default() })
}

impl<'a> OpenTab<'a> {
    fn front(browser: &'a BrowserSession, limit: CallLimit<'a>) -> Result<OpenTab<'a>, BrowserError> {
        let tabs = browser.handler.tabs();
        let tab = tabs.front_tab().ok_or(BrowserError::NoPage)?;
        if tab.has_crashed {
            return Err(BrowserError::Element(
                "the page has crashed or hangs; open it again with browser_open".to_owned(),
            ));
        }
        let (session, target) = (tab.session.clone(), tab.target.clone());
        Ok(OpenTab { browser, limit, number: tab.number, session, target })
    }

    fn request_in(&self, method: &'static str, params: &Value, time: Duration) -> Result<Value, BrowserError> {
        self.browser.pipe.request(&self.session, method, params, (self.limit, time))
    }

    fn request(&self, method: &'static str, params: &Value) -> Result<Value, BrowserError> {
        let answer = self.request_in(method, params, COMMAND_TIMEOUT);
        if let Err(BrowserError::TimedOut { .. }) = answer {
            // Its scripts keep it busy. The next page gets a tab, and with it a process, of its own.
            self.with_tab(|tab| tab.has_crashed = true)?;
            let secs = COMMAND_TIMEOUT.as_secs();
            return Err(BrowserError::Element(format!("the page has not responded for {secs} s, so it was given up")));
        }
        answer
    }

    /// Does something with the tab's state.
    fn with_tab<T>(&self, work: impl FnOnce(&mut PageTab) -> T) -> Result<T, BrowserError> {
        let mut tabs = self.browser.handler.tabs();
        let tab = tabs.tabs.iter_mut().find(|tab| tab.number == self.number).ok_or(BrowserError::NoPage)?;
        Ok(work(tab))
    }

    /// Waits until the page loads nothing and no file is on its way. A page that continues loading is used as it is.
    fn settle(&self, most: Duration) -> Result<(), BrowserError> {
        let until = Instant::now() + most;
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < QUIET_TIME {
            if Instant::now() > until {
                let secs = most.as_secs();
                self.browser.handler.tabs().notice(format!("The page was still loading after {secs} s."));
                return Ok(());
            }
            self.limit.pause(POLL_INTERVAL)?;
            let is_loading = self.with_tab(|tab| tab.is_loading && !tab.has_crashed)?;
            let tabs = self.browser.handler.tabs();
            if is_loading || tabs.downloads.values().any(|download| download.state == DownloadState::Running) {
                quiet_since = Instant::now();
            }
        }
        Ok(())
    }

    /// Evaluates an expression in a world of its own, where the page's scripts changed nothing.
    fn evaluate(&self, expression: &str) -> Result<Value, BrowserError> {
        let given = json!({"expression": expression, "contextId": self.own_world()?, "returnByValue": true,
            "timeout": 5_000});
        Ok(self.request("Runtime.evaluate", &given)?["result"]["value"].take())
    }

    fn own_world(&self) -> Result<Value, BrowserError> {
        let world = json!({"frameId": self.target, "worldName": "tracebook"});
        Ok(self.request("Page.createIsolatedWorld", &world)?["executionContextId"].take())
    }

    /// Quotes what the page says, so that it can't pass for what the tool says.
    fn quote(&self, text: &str) -> Result<String, BrowserError> {
        let title = self.evaluate("document.title.slice(0, 1000)")?;
        let title = shortened(title.as_str().unwrap_or_default(), MAX_NOTICE_CHARS);
        let url = self.with_tab(|tab| tab.url.clone())?;
        Ok(quote_block(&url, &format!("Title: {title}\n{text}")))
    }

    fn read(&self, form: PageForm) -> Result<Vec<String>, BrowserError> {
        match form {
            PageForm::Text => {
                let text = self.evaluate(&format!("(document.body?.innerText ?? '').slice(0, {MAX_TEXT_UNITS})"))?;
                Ok(text.as_str().unwrap_or_default().lines().map(|line| line.trim_end().to_owned()).collect())
            }
            PageForm::Tree => {
                let tree = self.request("Page.getFrameTree", &json!({}))?;
                let mut frames = Vec::new();
                let mut open = vec![&tree["frameTree"]];
                while let Some(frame) = open.pop() {
                    frames.push(frame["frame"]["id"].clone());
                    open.extend(frame["childFrames"].as_array().into_iter().flatten().rev());
                    if frames.len() > MAX_FRAMES {
                        break;
                    }
                }
                let mut read = Vec::new();
                for (at, frame) in frames.iter().enumerate() {
                    match self.request("Accessibility.getFullAXTree", &json!({"frameId": frame})) {
                        Ok(nodes) => read.push(nodes),
                        // Frames of other sites are in other processes and aren't read.
                        Err(BrowserError::Command { .. }) if at > 0 => {}
                        Err(error) => return Err(error),
                    }
                }
                self.with_tab(|tab| write_tree(&read, tab))
            }
        }
    }

    /// Adds what happened meanwhile and the files that came, before the text.
    fn answer(&self, text: String) -> Result<BrowserAnswer, BrowserError> {
        let files = self.take_downloads();
        let mut tabs = self.browser.handler.tabs();
        let mut notices = tabs.take_notices();
        if let Some(url) = tabs.stopped.take() {
            let url = shortened(&url, 1_000);
            notices.push(format!("This page wants to go to {url}, call browser_open with it. It was stopped."));
        }
        drop(tabs);
        let said = files.iter().map(|file| {
            let name = quote_inline(&file.name, MAX_NOTICE_CHARS);
            format!("The page sent the file {name} ({} bytes). It is kept with this step.", file.bytes.len())
        });
        let notices: Vec<String> = notices.into_iter().chain(said).collect();
        let text = if notices.is_empty() { text } else { format!("{}\n{text}", notices.join("\n")) };
        Ok(BrowserAnswer { text, files, asks: None })
    }

    /// What was done, and the beginning of the page as it is now.
    fn brief_answer(&self, done: &str) -> Result<BrowserAnswer, BrowserError> {
        let tree = self.read(PageForm::Tree)?.join("\n");
        let shown = tree.get(..tree.floor_char_boundary(MAX_BRIEF_BYTES)).unwrap_or_default();
        let mut text = if done.is_empty() { String::new() } else { format!("{done}\n") };
        text.push_str(&self.quote(shown)?);
        if shown.len() < tree.len() {
            let line = shown.lines().count();
            text.push_str(&format!("\n(browser_read with from_line: {line} shows the rest)"));
        }
        self.answer(text)
    }

    /// Reads the files that came, and removes them from the folder where they arrived.
    fn take_downloads(&self) -> Vec<BrowserFile> {
        let mut tabs = self.browser.handler.tabs();
        let mut files = Vec::new();
        let mut refused = Vec::new();
        for (guid, download) in &mut tabs.downloads {
            match download.state {
                DownloadState::Completed => {
                    let is_plain = guid.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
                    let path = self.browser.process.downloads().join(if is_plain { guid.as_str() } else { "" });
                    let is_small = fs::symlink_metadata(&path)
                        .is_ok_and(|found| found.is_file() && found.len() <= MAX_DOWNLOAD_BYTES);
                    match fs::read(&path).ok().filter(|_| is_small) {
                        Some(bytes) => {
                            let mime = "application/octet-stream".to_owned();
                            files.push(BrowserFile { name: download.name.clone(), mime, bytes });
                        }
                        None => refused.push(download.name.clone()),
                    }
                    let _ = fs::remove_file(&path); // goes with the browser's folder at the latest
                }
                DownloadState::Refused => refused.push(download.name.clone()),
                DownloadState::Running | DownloadState::Reported => continue,
            }
            download.state = DownloadState::Reported;
        }
        for name in refused {
            let name = quote_inline(&name, MAX_NOTICE_CHARS);
            tabs.notice(format!(
                "The page sent the file {name}, which was not kept: it is incomplete or larger than {} MB.",
                MAX_DOWNLOAD_BYTES >> 20
            ));
        }
        files
    }

    /// Returns the element that a call names.
    fn element(&self, name: Option<&str>) -> Result<u64, BrowserError> {
        let name = name.ok_or(BrowserError::Missing("say which element: give its ref, such as e12"))?;
        let found = self.with_tab(|tab| find_element(tab, name))?;
        found.ok_or_else(|| BrowserError::UnknownElement(shortened(name, 40)))
    }

    fn act(&self, action: PageAction, element: Option<&str>, text: Option<&str>) -> Result<String, BrowserError> {
        let shown = element.unwrap_or_default();
        match action {
            PageAction::Click => {
                let (x, y) = self.center_of(self.element(element)?)?;
                for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
                    let button = if kind == "mouseMoved" { "none" } else { "left" };
                    let event = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons,
                        "clickCount": 1});
                    self.request("Input.dispatchMouseEvent", &event)?;
                }
                Ok(format!("Clicked on {shown}."))
            }
            PageAction::Type => {
                let text = text.ok_or(BrowserError::Missing("say what to type: give text"))?;
                let id = self.element(element)?;
                match self.call_on(id, PREPARE_TYPING, text)?.as_str() {
                    Some("typed") if text.is_empty() => self.press("Delete")?,
                    Some("typed") => _ = self.request("Input.insertText", &json!({"text": text}))?,
                    Some("set") => {}
                    Some("file") => return Err(BrowserError::Element("files can't be uploaded".to_owned())),
                    Some("closed") => return Err(BrowserError::Element(format!("{shown} can't be changed now"))),
                    _ => return Err(BrowserError::Element(format!("{shown} is not a field that can be typed into"))),
                }
                Ok(format!("Typed into {shown}."))
            }
            PageAction::Select => {
                let text = text.ok_or(BrowserError::Missing("say what to select: give text"))?;
                let id = self.element(element)?;
                match self.call_on(id, SELECT_CHOICE, text)?.as_str() {
                    Some("selected") => Ok(format!("Selected in {shown}.")),
                    Some("none") | None => {
                        Err(BrowserError::Element(format!("{shown} is not a list of choices; click on it instead")))
                    }
                    Some(choices) => Err(BrowserError::Element(format!("{shown} has no such choice; {choices}"))),
                }
            }
            PageAction::Press => {
                let key = text.ok_or(BrowserError::Missing("say which key to press: give text, such as Enter"))?;
                if element.is_some() {
                    let id = self.element(element)?;
                    self.request("DOM.focus", &json!({"backendNodeId": id}))?;
                }
                self.press(key)?;
                Ok(format!("Pressed {}.", shortened(key, 20)))
            }
        }
    }

    fn press(&self, name: &str) -> Result<(), BrowserError> {
        let Some(key) = find_key(name) else {
            return Err(BrowserError::Element(format!(
                "there is no key {}; there are {}",
                shortened(name, 20),
                key_names()
            )));
        };
        for kind in [if key.text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
            let mut event = json!({"type": kind, "key": key.key, "code": key.code,
                "windowsVirtualKeyCode": key.number, "nativeVirtualKeyCode": key.number});
            if kind == "keyDown" {
                event["text"] = json!(key.text);
            }
            self.request("Input.dispatchKeyEvent", &event)?;
        }
        Ok(())
    }

    /// Scrolls an element into view and returns its center in pixels.
    fn center_of(&self, id: u64) -> Result<(f64, f64), BrowserError> {
        let hidden = |error: BrowserError| match error {
            BrowserError::Command { .. } => {
                BrowserError::Element("the element isn't visible now; call browser_read to see the page".to_owned())
            }
            other => other,
        };
        self.request("DOM.scrollIntoViewIfNeeded", &json!({"backendNodeId": id})).map_err(hidden)?;
        let quads = self.request("DOM.getContentQuads", &json!({"backendNodeId": id})).map_err(hidden)?;
        let quad: Vec<f64> = quads["quads"][0].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let [x1, y1, _, _, x2, y2, _, _] = quad[..] else {
            return Err(BrowserError::Element("the element has no place on the page".to_owned()));
        };
        Ok((f64::midpoint(x1, x2), f64::midpoint(y1, y2)))
    }

    /// Calls a function on an element, in a world where the page's scripts changed nothing.
    fn call_on(&self, id: u64, function: &str, text: &str) -> Result<Value, BrowserError> {
        let resolved =
            self.request("DOM.resolveNode", &json!({"backendNodeId": id, "executionContextId": self.own_world()?}));
        let object = match resolved {
            // It's in a frame inside the page, which has other worlds.
            Err(BrowserError::Command { .. }) => self.request("DOM.resolveNode", &json!({"backendNodeId": id}))?,
            other => other?,
        };
        let object = &object["object"]["objectId"];
        let call = json!({"objectId": object, "functionDeclaration": function, "arguments": [{"value": text}],
            "returnByValue": true});
        let mut answer = self.request("Runtime.callFunctionOn", &call)?;
        self.browser.pipe.send(&self.session, "Runtime.releaseObject", &json!({"objectId": object}));
        Ok(answer["result"]["value"].take())
    }

    fn go(&self, action: PageMove, seconds: Option<u64>) -> Result<String, BrowserError> {
        match action {
            PageMove::Back | PageMove::Forward => {
                let history = self.request("Page.getNavigationHistory", &json!({}))?;
                let at = history["currentIndex"].as_i64().unwrap_or_default();
                let at = if action == PageMove::Back { at - 1 } else { at + 1 };
                let entry = usize::try_from(at).ok().map(|at| &history["entries"][at]);
                // Each tab begins with an empty page.
                let entry = entry.filter(|entry| entry["url"].as_str().is_some_and(|url| url != "about:blank"));
                let entry = entry.ok_or_else(|| BrowserError::Element("no page is there".to_owned()))?;
                self.with_tab(|tab| tab.is_loading = true)?;
                let sent = self.request("Page.navigateToHistoryEntry", &json!({"entryId": entry["id"]}));
                self.wait_for_url(entry["url"].as_str().unwrap_or_default())?;
                sent.map(|_| format!("Went {}.", if action == PageMove::Back { "back" } else { "forward" }))
            }
            PageMove::Reload => {
                self.with_tab(|tab| tab.is_loading = true)?;
                self.request("Page.reload", &json!({}))?;
                Ok("Loaded the page again.".to_owned())
            }
            PageMove::ScrollDown | PageMove::ScrollUp => {
                let sign = if action == PageMove::ScrollUp { "-" } else { "" };
                let place = "Math.round(100 * (scrollY + innerHeight) / document.documentElement.scrollHeight)";
                let shown = self.evaluate(&format!("scrollBy(0, {sign}0.9 * innerHeight), Math.min(100, {place})"))?;
                Ok(format!("Scrolled. What is visible ends at {} % of the page.", shown.as_f64().unwrap_or(100.0)))
            }
            PageMove::Wait => {
                let seconds = seconds.unwrap_or(2).clamp(1, MAX_WAIT_SECS);
                self.limit.pause(Duration::from_secs(seconds))?;
                Ok(format!("Waited for {seconds} s."))
            }
        }
    }

    /// Waits until the tab shows an address of its history. A page from the cache comes without loading.
    fn wait_for_url(&self, url: &str) -> Result<(), BrowserError> {
        let until = Instant::now() + LOAD_TIMEOUT;
        while Instant::now() < until {
            let (is_there, stopped) =
                (self.with_tab(|tab| tab.url == url)?, self.browser.handler.tabs().stopped.is_some());
            if is_there || stopped {
                break;
            }
            self.limit.pause(POLL_INTERVAL)?;
        }
        self.with_tab(|tab| tab.is_loading = false)
    }

    fn save(&self, form: PageFile) -> Result<BrowserAnswer, BrowserError> {
        let (method, params, mime, name) = match form {
            PageFile::Screenshot => ("Page.captureScreenshot", json!({"format": "png"}), "image/png", "screenshot.png"),
            PageFile::Pdf => ("Page.printToPDF", json!({"printBackground": true}), "application/pdf", "page.pdf"),
        };
        let made = self.request_in(method, &params, NAVIGATION_TIMEOUT)?;
        let data = made["data"].as_str().unwrap_or_default();
        let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap_or_default();
        if bytes.is_empty() {
            return Err(BrowserError::Command { method, why: "it gave no data".to_owned() });
        }
        let text = format!("Saved {name} ({} bytes). The user finds it with this step.", bytes.len());
        let mut answer = self.answer(text)?;
        answer.files.insert(0, BrowserFile { name: name.to_owned(), mime: mime.to_owned(), bytes });
        Ok(answer)
    }
}
