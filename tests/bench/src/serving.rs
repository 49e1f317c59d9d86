//! Benchmark of `tracebook serve` over generated notes: REST reads, search, calls over MCP, and very many clients that
//! wait for events.

use super::report::{BenchReport, FigureGoal};
use super::search::{note_path, use_stand_in_model, write_notes};
use super::text_fixtures::FixtureRng;
use super::{drive_until, open_volume, open_workspace, to_ms};
use engine::Session;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::measure::ScratchFolder;

/// Number of requests of each kind.
const READS: usize = 2_000;
const SEARCHES: usize = 500;
const CALLS: usize = 1_000;
/// Number of clients that wait for events.
const EVENT_CLIENTS: usize = 1_000;
/// Number of tokens that share the requests, so that none reaches its limit of requests a second.
const TOKENS: usize = 24;
/// Maximum wait for an answer, and for an event.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time until the index has all notes.
const INDEX_TIMEOUT: Duration = Duration::from_secs(7_200);

/// A running server.
struct ServeProcess {
    child: Child,
    address: String,
    tokens: Vec<String>,
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(error: std::io::Error) -> String {
    error.to_string()
}

impl ServeProcess {
    fn start(scratch: &ScratchFolder) -> Result<ServeProcess, String> {
        let program = std::env::current_exe().map_err(said)?;
        let command = |words: &[&str]| {
            let mut command = Command::new(&program);
            command.arg("--workspace").arg(scratch.folder().join("W")).args(words).stdin(Stdio::null());
            command
        };
        let mut tokens = Vec::new();
        for number in 0..TOKENS {
            let name = format!("bench-{number}");
            let made =
                command(&["tokens", "create", &name, "--scopes", "read,write", "--json"]).output().map_err(said)?;
            let made: Value = serde_json::from_slice(&made.stdout).map_err(|error| error.to_string())?;
            tokens.push(made["token"].as_str().ok_or("no token was made")?.to_owned());
        }
        let mut child =
            command(&["serve", "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped()).spawn().map_err(said)?;
        let out = child.stdout.take().ok_or("no output")?;
        let mut first = String::new();
        BufReader::new(out).read_line(&mut first).map_err(said)?;
        let places: Value = serde_json::from_str(&first).map_err(|error| format!("{error}: {first}"))?;
        let address = places["url"].as_str().and_then(|url| url.strip_prefix("http://")).ok_or("no address")?;
        Ok(ServeProcess { address: address.trim_end_matches('/').to_owned(), child, tokens })
    }

    fn connect(&self, number: usize) -> Result<HttpLine, String> {
        let stream = TcpStream::connect(&self.address).map_err(said)?;
        stream.set_nodelay(true).map_err(said)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(said)?;
        let token = self.tokens[number % self.tokens.len()].clone();
        let out = stream.try_clone().map_err(said)?;
        Ok(HttpLine { out, input: BufReader::new(stream), host: self.address.clone(), token })
    }
}

/// A connection that stays open.
struct HttpLine {
    out: TcpStream,
    input: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl HttpLine {
    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<(), String> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n{headers}\r\n\
             {body}",
            self.host,
            self.token,
            body.len()
        );
        self.out.write_all(request.as_bytes()).map_err(said)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.input.read_line(&mut line).map_err(said)? {
            0 => Err("the server closed the connection".to_owned()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Reads the head of an answer, which must say that all is well.
    fn head(&mut self) -> Result<Vec<String>, String> {
        let mut head = Vec::new();
        loop {
            match self.line()? {
                line if line.is_empty() => break,
                line => head.push(line.to_lowercase()),
            }
        }
        match head.first() {
            Some(status) if status.contains(" 200 ") || status.contains(" 202 ") => Ok(head),
            status => Err(format!("the server said {status:?}")),
        }
    }

    fn body(&mut self, head: &[String]) -> Result<Vec<u8>, String> {
        let value = |name: &str| head.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if value("transfer-encoding:") != Some("chunked") {
            let length = value("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            self.input.read_exact(&mut body).map_err(said)?;
            return Ok(body);
        }
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line()?, 16).map_err(|error| error.to_string())?;
            let mut part = vec![0; length + 2];
            self.input.read_exact(&mut part).map_err(said)?;
            if length == 0 {
                return Ok(body);
            }
            body.extend_from_slice(&part[..length]);
        }
    }

    fn request(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<Vec<u8>, String> {
        self.send(method, path, headers, body)?;
        let head = self.head()?;
        self.body(&head)
    }
}

/// Runs all benchmarks of the server, over `count` notes.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    host::rlimits::raise_open_file_limit();
    let scratch = ScratchFolder::new("serve")?;
    let notes = write_notes(&scratch, "notes", count)?;
    report.add_figure("notes", count as f64, "", FigureGoal::None);
    let mut driver = open_workspace(&scratch)?;
    use_stand_in_model(report, &mut driver, count)?;
    open_volume(&mut driver, &scratch.folder().join("notes"))?;
    drive_until(&mut driver, "all is on disk", Session::is_saved)?;
    let search = driver.search().clone();
    search.wait_until_embedded(INDEX_TIMEOUT).map_err(|why| why.to_string())?;
    driver.close().map_err(|why| why.to_string())?;
    let server = ServeProcess::start(&scratch)?;
    measure_reads(report, &server, count)?;
    measure_searches(report, &server, &notes)?;
    measure_calls(report, &server)?;
    measure_events(report, &server, &scratch)
}

fn measure_reads(report: &mut BenchReport, server: &ServeProcess, count: usize) -> Result<(), String> {
    let mut lines = (0..TOKENS).map(|number| server.connect(number)).collect::<Result<Vec<_>, _>>()?;
    let mut rng = FixtureRng::new(7);
    let mut times = Vec::new();
    for number in 0..READS + 100 {
        let path = format!("/api/v1/volumes/notes/notes/{}", note_path(rng.below(count)));
        let begun = Instant::now();
        lines[number % TOKENS].request("GET", &path, "", "")?;
        times.push(to_ms(begun.elapsed()));
    }
    // The first ones open the workspace.
    report.add_percentiles("REST: read a note", &mut times[100..], "ms", FigureGoal::Under(2.0));
    Ok(())
}

fn measure_searches(report: &mut BenchReport, server: &ServeProcess, notes: &[String]) -> Result<(), String> {
    let mut lines = (0..TOKENS).map(|number| server.connect(number)).collect::<Result<Vec<_>, _>>()?;
    let mut rng = FixtureRng::new(8);
    let mut times = Vec::new();
    for number in 0..SEARCHES {
        let words: Vec<&str> = notes[rng.below(notes.len())].split_ascii_whitespace().collect();
        let at = rng.below(words.len().saturating_sub(3).max(1));
        let letters = |word: &str| word.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        let query: Vec<String> = words.iter().skip(at).take(3).map(|word| letters(word)).collect();
        let path = format!("/api/v1/search?query={}", query.join("%20"));
        let begun = Instant::now();
        lines[number % TOKENS].request("GET", &path, "", "")?;
        times.push(to_ms(begun.elapsed()));
    }
    report.add_percentiles("REST: search for three words", &mut times, "ms", FigureGoal::Under(25.0));
    Ok(())
}

fn measure_calls(report: &mut BenchReport, server: &ServeProcess) -> Result<(), String> {
    let accepts = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
    let call = |line: &mut HttpLine, headers: &str, message: &Value| -> Result<(), String> {
        line.send("POST", "/mcp", headers, &message.to_string())?;
        let head = line.head()?;
        line.body(&head).map(drop)
    };
    let mut sessions = Vec::new();
    for number in 0..TOKENS {
        let mut line = server.connect(number)?;
        let client = json!({"name": "bench", "version": "1"});
        let about = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about});
        line.send("POST", "/mcp", accepts, &begin.to_string())?;
        let head = line.head()?;
        line.body(&head)?;
        let session = head.iter().find_map(|line| line.strip_prefix("mcp-session-id:")).ok_or("no session")?;
        let headers = format!("{accepts}Mcp-Session-Id: {}\r\nMcp-Protocol-Version: 2025-11-25\r\n", session.trim());
        call(&mut line, &headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        sessions.push((line, headers));
    }
    let ping = json!({"method": "ping"});
    let read = json!({"method": "tools/call", "params": {"name": "read_note", "arguments": {"note": note_path(0)}}});
    for (name, message, goal) in
        [("MCP: overhead of a call (ping)", ping, FigureGoal::Under(1.0)), ("MCP: read_note", read, FigureGoal::None)]
    {
        let mut times = Vec::new();
        for number in 0..CALLS {
            let (line, headers) = &mut sessions[number % TOKENS];
            let mut message = message.clone();
            (message["jsonrpc"], message["id"]) = (json!("2.0"), json!(number + 1));
            let begun = Instant::now();
            call(line, headers, &message)?;
            times.push(to_ms(begun.elapsed()));
        }
        report.add_percentiles(name, &mut times, "ms", goal);
    }
    Ok(())
}

fn measure_events(report: &mut BenchReport, server: &ServeProcess, scratch: &ScratchFolder) -> Result<(), String> {
    let mut clients = Vec::new();
    for number in 0..EVENT_CLIENTS {
        let mut line = server.connect(number)?;
        line.send("GET", "/api/v1/events", "", "")?;
        line.head()?;
        clients.push(line);
    }
    scratch.write("notes/event.md", b"# An event\n")?;
    let begun = Instant::now();
    let (mut times, mut missing) = (Vec::new(), 0);
    for client in &mut clients {
        let is_told = loop {
            match client.line() {
                Ok(line) if line.contains("event.md") => break true,
                Ok(_) => {}
                Err(_) => break false,
            }
        };
        match is_told {
            true => times.push(to_ms(begun.elapsed())),
            false => missing += 1,
        }
    }
    let name = format!("{EVENT_CLIENTS} clients: an event at each of them");
    report.add_percentiles(&name, &mut times, "ms", FigureGoal::None);
    report.add_figure(format!("{EVENT_CLIENTS} clients: without the event"), f64::from(missing), "", FigureGoal::Zero);
    Ok(())
}
