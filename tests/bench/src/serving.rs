//! Benchmark of `tracebook serve` over generated notes: REST reads, search and calls over MCP, and a window beside very
//! many clients that follow a stream of events.

mod beside_window;
mod event_clients;

use super::report::{BenchReport, FigureGoal};
use super::search::{note_path, use_stand_in_model, write_notes};
use super::text_fixtures::{self, FixtureRng};
use super::{drive_until, open_volume, open_workspace, to_ms};
use engine::Session;
use host::socket::{self, SocketRequest};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::measure::ScratchFolder;

/// Number of requests of each kind.
const READS: usize = 2_000;
const SEARCHES: usize = 500;
const CALLS: usize = 1_000;
/// Number of notes that are read over MCP.
const CALLED_NOTES: usize = 100;
/// Number of tokens that share the requests, so that none reaches its limit of requests a second.
const TOKENS: usize = 24;
/// Maximum wait for an answer, and for an event.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time until the index has all notes.
const INDEX_TIMEOUT: Duration = Duration::from_secs(7_200);
/// The note that a user reads and writes in the window, and its length.
const LONG_NOTE: &str = "Long.md";
const LONG_NOTE_BYTES: usize = 100_000;
/// Address of the volume's notes.
const NOTES_PATH: &str = "/api/v1/volumes/notes/notes";
/// Goals of the issue about open interfaces: for the 99th percentile, in milliseconds; and for writing the notes.
const READ_GOAL: FigureGoal = FigureGoal::Under(2.0);
const SEARCH_GOAL: FigureGoal = FigureGoal::Under(25.0);
const CALL_GOAL: FigureGoal = FigureGoal::Under(1.0);
const WRITE_NOTES_GOAL_SECONDS: FigureGoal = FigureGoal::Under(120.0);

/// A workspace that is served, and tokens for it.
struct ServedWorkspace {
    folder: PathBuf,
    tokens: Vec<String>,
}

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

impl ServedWorkspace {
    fn new(folder: PathBuf) -> Result<ServedWorkspace, String> {
        let mut workspace = ServedWorkspace { folder, tokens: Vec::new() };
        for number in 0..TOKENS {
            let name = format!("bench-{number}");
            let mut command = workspace.command(&["tokens", "create", &name, "--scopes", "read,write", "--json"])?;
            let made = command.output().map_err(said)?;
            let made: Value = serde_json::from_slice(&made.stdout).map_err(|error| error.to_string())?;
            workspace.tokens.push(made["token"].as_str().ok_or("no token was made")?.to_owned());
        }
        Ok(workspace)
    }

    fn command(&self, words: &[&str]) -> Result<Command, String> {
        let mut command = Command::new(std::env::current_exe().map_err(said)?);
        command.arg("--workspace").arg(&self.folder).args(words).stdin(Stdio::null());
        Ok(command)
    }

    fn start(&self) -> Result<ServeProcess, String> {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--json"])?;
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(said)?;
        let out = child.stdout.take();
        let mut server = ServeProcess { child, address: String::new(), tokens: self.tokens.clone() };
        let mut first = String::new();
        BufReader::new(out.ok_or("no output")?).read_line(&mut first).map_err(said)?;
        let places: Value = serde_json::from_str(&first).map_err(|error| format!("{error}: {first}"))?;
        let address = places["url"].as_str().and_then(|url| url.strip_prefix("http://")).ok_or("no address")?;
        server.address = address.trim_end_matches('/').to_owned();
        Ok(server)
    }
}

impl ServeProcess {
    fn connect(&self, number: usize) -> Result<HttpLine, String> {
        let stream = TcpStream::connect(&self.address).map_err(said)?;
        stream.set_nodelay(true).map_err(said)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(said)?;
        let token = self.tokens[number % self.tokens.len()].clone();
        let out = stream.try_clone().map_err(said)?;
        Ok(HttpLine { out, input: BufReader::new(stream), host: self.address.clone(), token })
    }

    /// Returns a connection for each token.
    fn connect_all(&self) -> Result<Vec<HttpLine>, String> {
        (0..TOKENS).map(|number| self.connect(number)).collect()
    }

    /// Asks the server to end, and waits until it has released the workspace.
    fn end(mut self) -> Result<(), String> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().map_err(said)?;
        let begun = Instant::now();
        while self.child.try_wait().map_err(said)?.is_none() {
            if begun.elapsed() > ANSWER_TIMEOUT {
                return Err("the server doesn't end".to_owned());
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Ok(())
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
            Some(status) if [" 200 ", " 201 ", " 202 "].iter().any(|code| status.contains(code)) => Ok(head),
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

    /// Sends a request without a body. Returns the milliseconds until the whole answer has arrived.
    fn time_get(&mut self, path: &str) -> Result<f64, String> {
        let begun = Instant::now();
        self.request("GET", path, "", "")?;
        Ok(to_ms(begun.elapsed()))
    }

    /// Returns the connection for reading without blocking, and what was already received.
    fn into_stream(self) -> Result<(TcpStream, Vec<u8>), String> {
        let received = self.input.buffer().to_vec();
        let stream = self.input.into_inner();
        stream.set_nonblocking(true).map_err(said)?;
        Ok((stream, received))
    }
}

/// Returns the address of one of `count` notes.
fn read_path(rng: &mut FixtureRng, count: usize) -> String {
    format!("{NOTES_PATH}/{}", note_path(rng.below(count)).replace(' ', "%20"))
}

/// Returns the address of a search for three words that follow each other in one of the notes.
fn search_path(rng: &mut FixtureRng, notes: &[String]) -> String {
    let words: Vec<&str> = notes[rng.below(notes.len())].split_ascii_whitespace().collect();
    let at = rng.below(words.len().saturating_sub(3).max(1));
    let letters = |word: &str| word.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let query: Vec<String> = words.iter().skip(at).take(3).map(|word| letters(word)).collect();
    format!("/api/v1/search?query={}", query.join("%20"))
}

/// Runs all benchmarks of the server, over `count` notes.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    host::rlimits::raise_open_file_limit();
    let scratch = ScratchFolder::new("serve")?;
    report.add_figure("notes", count as f64, "", FigureGoal::None);
    let begun = Instant::now();
    let notes = write_notes(&scratch, "notes", count)?;
    scratch.write(&format!("notes/{LONG_NOTE}"), text_fixtures::note_of_length(LONG_NOTE_BYTES).as_bytes())?;
    scratch.sync_to_disk();
    report.add_figure("notes written", begun.elapsed().as_secs_f64(), "s", WRITE_NOTES_GOAL_SECONDS);
    let begun = Instant::now();
    let mut driver = open_workspace(&scratch)?;
    use_stand_in_model(report, &mut driver, count)?;
    open_volume(&mut driver, &scratch.folder().join("notes"))?;
    drive_until(&mut driver, "all is on disk", Session::is_saved)?;
    report.show_progress("the notes are imported; the index is being made");
    let search = driver.search().clone();
    search.wait_until_embedded(INDEX_TIMEOUT).map_err(|why| why.to_string())?;
    driver.close().map_err(|why| why.to_string())?;
    report.add_figure("import and index", begun.elapsed().as_secs_f64(), "s", FigureGoal::None);
    let workspace = ServedWorkspace::new(scratch.folder().join("W"))?;
    let server = workspace.start()?;
    measure_reads(report, &server, count)?;
    measure_searches(report, &server, &notes)?;
    measure_calls(report, &server, &workspace.folder, count)?;
    server.end()?;
    beside_window::measure(report, &scratch, &workspace, &notes)
}

fn measure_reads(report: &mut BenchReport, server: &ServeProcess, count: usize) -> Result<(), String> {
    let (mut lines, mut rng, mut times) = (server.connect_all()?, FixtureRng::new(7), Vec::new());
    for number in 0..READS + 100 {
        times.push(lines[number % TOKENS].time_get(&read_path(&mut rng, count))?);
    }
    // The first ones open the workspace.
    report.add_percentiles("REST: read a note", &mut times[100..], "ms", READ_GOAL);
    Ok(())
}

fn measure_searches(report: &mut BenchReport, server: &ServeProcess, notes: &[String]) -> Result<(), String> {
    let (mut lines, mut rng, mut times) = (server.connect_all()?, FixtureRng::new(8), Vec::new());
    for number in 0..SEARCHES {
        times.push(lines[number % TOKENS].time_get(&search_path(&mut rng, notes))?);
    }
    report.add_percentiles("REST: search for three words", &mut times, "ms", SEARCH_GOAL);
    Ok(())
}

/// A session of MCP over a connection that stays open.
struct McpLine {
    line: HttpLine,
    headers: String,
    /// Number of its requests.
    requests: usize,
}

impl McpLine {
    fn begin(mut line: HttpLine) -> Result<McpLine, String> {
        let accepts = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
        let client = json!({"name": "bench", "version": "1"});
        let about = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about});
        line.send("POST", "/mcp", accepts, &begin.to_string())?;
        let head = line.head()?;
        line.body(&head)?;
        let session = head.iter().find_map(|line| line.strip_prefix("mcp-session-id:")).ok_or("no session")?;
        let headers = format!("{accepts}Mcp-Session-Id: {}\r\nMcp-Protocol-Version: 2025-11-25\r\n", session.trim());
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        line.request("POST", "/mcp", &headers, &begun.to_string())?;
        Ok(McpLine { line, headers, requests: 0 })
    }

    /// Sends a request. Returns the milliseconds that it took, and the answer.
    fn time_call(&mut self, mut message: Value) -> Result<(f64, String), String> {
        self.requests += 1;
        (message["jsonrpc"], message["id"]) = (json!("2.0"), json!(self.requests));
        let begun = Instant::now();
        let answer = self.line.request("POST", "/mcp", &self.headers, &message.to_string())?;
        Ok((to_ms(begun.elapsed()), String::from_utf8_lossy(&answer).into_owned()))
    }
}

/// Reads a note as `tracebook cat` does beside the process that owns the workspace. Returns the milliseconds.
fn time_command(socket: &str, note: &str) -> Result<f64, String> {
    let words = ["cat", "--json", "--", note].map(str::to_owned).to_vec();
    let request = SocketRequest { words, folder: PathBuf::from("/"), terminal: false };
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    let code = socket::exchange(socket, &request, &[], &mut out, &mut errors);
    let took = to_ms(begun.elapsed());
    match code {
        Ok(0) if !out.is_empty() => Ok(took),
        other => Err(format!("reading {note} ended with {other:?}: {}", String::from_utf8_lossy(&errors))),
    }
}

/// Measures what MCP adds to a command: `read_note`, and right after it the command that it performs, sent to the same
/// process through the workspace's socket.
fn measure_calls(
    report: &mut BenchReport,
    server: &ServeProcess,
    workspace: &Path,
    count: usize,
) -> Result<(), String> {
    let lines = server.connect_all()?.into_iter();
    let mut sessions = lines.map(McpLine::begin).collect::<Result<Vec<_>, _>>()?;
    let socket = host::owner_socket(workspace).map_err(|why| why.to_string())?.ok_or("the server has no workspace")?;
    let (mut calls, mut commands, mut added, mut pings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..CALLS {
        let session = &mut sessions[number % TOKENS];
        pings.push(session.time_call(json!({"method": "ping"}))?.0);
        let note = note_path(number % CALLED_NOTES.min(count));
        // The note is then as warm for one as for the other.
        time_command(&socket, &note)?;
        let tool = json!({"name": "read_note", "arguments": {"note": note}});
        let (call, answer) = session.time_call(json!({"method": "tools/call", "params": tool}))?;
        if !answer.contains(&note) || answer.contains("\"isError\":true") {
            return Err(format!("read_note of {note} answered: {answer}"));
        }
        let command = time_command(&socket, &note)?;
        calls.push(call);
        commands.push(command);
        added.push(call - command);
    }
    report.add_percentiles("MCP: ping, which reaches no command", &mut pings, "ms", FigureGoal::None);
    report.add_percentiles("MCP: read_note", &mut calls, "ms", FigureGoal::None);
    report.add_percentiles("its command through the workspace's socket", &mut commands, "ms", FigureGoal::None);
    report.add_percentiles("MCP: read_note beyond its command", &mut added, "ms", CALL_GOAL);
    Ok(())
}
