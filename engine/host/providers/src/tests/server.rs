//! A scripted server on loopback that records its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Handles one connection after its request was read.
pub(super) type Reply = Box<dyn Fn(&mut TcpStream) + Send + Sync>;

/// A request that the test server received.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) line: String,
    /// The headers, with names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    pub(super) at: Instant,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

pub(super) struct Server {
    pub(super) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Starts a server that answers requests with these replies in order, and all further ones with the last reply.
    pub(super) fn new(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (remembered, replies) = (asked.clone(), Arc::new(replies));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (remembered, replies) = (remembered.clone(), replies.clone());
                std::thread::spawn(move || {
                    let Some(one) = read(&stream) else { return };
                    let at = {
                        let mut asked = remembered.lock().expect("asked");
                        asked.push(one);
                        asked.len() - 1
                    };
                    let reply = replies.get(at).or(replies.last()).expect("a reply");
                    reply(&mut stream);
                });
            }
        });
        Server { address, asked }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("asked").clone()
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(Asked { line: line.trim().to_owned(), headers, body, at: Instant::now() })
}

/// Replies with these bytes, and closes the connection.
pub(super) fn bytes(bytes: impl Into<Vec<u8>>) -> Reply {
    let bytes = bytes.into();
    Box::new(move |stream| {
        let _ = stream.write_all(&bytes);
    })
}

/// Replies with a complete response with this status.
pub(super) fn status(status: u16, headers: &str, body: &str) -> Reply {
    bytes(format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}", body.len()))
}

/// Replies with a stream of events that ends with the connection.
pub(super) fn events(body: &str) -> Reply {
    stream(body.as_bytes())
}

pub(super) fn stream(body: &[u8]) -> Reply {
    let mut whole = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_vec();
    whole.extend_from_slice(body);
    bytes(whole)
}

/// Replies with a stream that sends something and then stays silent for this time.
pub(super) fn stalls(body: &str, silence: Duration) -> Reply {
    let body = body.to_owned();
    Box::new(move |stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(body.as_bytes());
        std::thread::sleep(silence);
    })
}

/// Replies with a chunked stream whose last chunk is cut off.
pub(super) fn torn(body: &str) -> Reply {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    bytes(format!("{head}{:x}\r\n{body}\r\n3e8\r\ndata: {{\"cho", body.len()))
}

/// Replies with a stream that sends one part, and another one a moment later.
pub(super) fn later(first: &str, second: &[u8]) -> Reply {
    let (first, second) = (first.to_owned(), second.to_vec());
    Box::new(move |stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(first.as_bytes());
        std::thread::sleep(Duration::from_millis(100));
        let _ = stream.write_all(&second);
    })
}
