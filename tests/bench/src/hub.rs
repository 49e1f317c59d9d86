//! Benchmark of a hub: the time until a keystroke on one device reaches another, with two clients and with very many.
//!
//! The npm package `automerge-repo-sync-server` is measured the same way for comparison.

use super::report::{BenchReport, FigureGoal, percentile};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::hub_load::{ClientLoad, free_port, is_listening, run_client_load};
use support::measure::{self, ScratchFolder};

/// Number of keystrokes that one client sends to another.
const PAIR_KEYSTROKES: usize = 500;
/// Number of keystrokes per client with very many clients.
const KEYSTROKES_PER_CLIENT: usize = 10;
/// Maximum time until a started hub answers.
const HUB_START_TIMEOUT: Duration = Duration::from_secs(20);

/// npm's server listens on all addresses, and this file is the only way to change that.
const LOOPBACK_SHIM: (&str, &str) = (
    "here.mjs",
    "import net from 'net'
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...rest) {
  if (typeof port !== 'number') return listen.call(this, port, ...rest)
  return listen.call(this, port, '127.0.0.1', ...rest.filter(one => typeof one === 'function'))
}
",
);

/// A running server and its address.
pub(super) struct HubProcess {
    child: Child,
    at: String,
}

impl HubProcess {
    /// Returns the address that the server listens on.
    pub(super) fn address(&self) -> &str {
        &self.at
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs all benchmarks of the hub, with `clients` concurrent clients.
pub(super) fn measure(report: &mut BenchReport, clients: usize) -> Result<(), String> {
    host::rlimits::raise_open_file_limit();
    let scratch = ScratchFolder::new("hub")?;
    scratch.write("N/nothing", b"")?;
    let own = || start_tracebook_hub(&scratch.folder().join("hub"));
    measure_server(report, "our hub", own, clients)?;
    match npm_modules_folder() {
        None => report.leave_out(
            "npm's automerge-repo-sync-server",
            "TRACEBOOK_INTEROP names no folder with it (`.ci/interop` brings it)",
        ),
        Some(modules) => {
            let folder = scratch.folder().join("npm");
            scratch.write(&format!("npm/{}", LOOPBACK_SHIM.0), LOOPBACK_SHIM.1.as_bytes())?;
            measure_server(report, "npm's sync server", || start_npm_hub(&modules, &folder), clients)?;
        }
    }
    Ok(())
}

fn measure_server(
    report: &mut BenchReport,
    name: &str,
    start: impl Fn() -> Result<HubProcess, String>,
    clients: usize,
) -> Result<(), String> {
    {
        let server = start()?;
        let alone = ClientLoad { pairs: 1, keys: PAIR_KEYSTROKES, every: Duration::from_millis(25) };
        let mut seen = run_client_load(&server.at, "/", alone, || ())?;
        let goal = if name == "our hub" { FigureGoal::Under(20.0) } else { FigureGoal::None };
        report.add_percentiles(&format!("{name}: a key seen on the other device"), &mut seen.milliseconds, "ms", goal);
        if seen.lost > 0 {
            report.add_error(format!("{name}: {} keys never arrived", seen.lost));
        }
    }
    let server = start()?;
    let before = measure::process_footprint(server.child.id()).unwrap_or_default();
    let many = ClientLoad { pairs: clients / 2, keys: KEYSTROKES_PER_CLIENT, every: Duration::from_secs(2) };
    let mut idle = measure::ProcessFootprint::default();
    let mut seen = match run_client_load(&server.at, "/", many, || {
        idle = measure::process_footprint(server.child.id()).unwrap_or_default();
    }) {
        Ok(seen) => seen,
        Err(why) => {
            report.leave_out(&format!("{name}, {clients} clients"), why);
            return Ok(());
        }
    };
    let after = measure::process_footprint(server.child.id()).unwrap_or_default();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let seconds = seen.took.as_secs_f64();
    let keys = seen.milliseconds.len() as f64;
    report.add_figure(format!("{name}, {clients} clients: keys a second"), keys / seconds, "", FigureGoal::None);
    report.add_figure(
        format!("{name}, {clients} clients: a key seen p50"),
        percentile(&mut seen.milliseconds, 50),
        "ms",
        FigureGoal::None,
    );
    report.add_figure(
        format!("{name}, {clients} clients: a key seen p99"),
        percentile(&mut seen.milliseconds, 99),
        "ms",
        FigureGoal::None,
    );
    report.add_figure(format!("{name}: memory without clients"), megabytes(before.resident), "MB", FigureGoal::None);
    report.add_figure(format!("{name}, {clients} clients: memory"), megabytes(after.resident), "MB", FigureGoal::None);
    let cpu = after.ticks.saturating_sub(idle.ticks) as f64 / 100.0;
    report.add_figure(format!("{name}, {clients} clients: processor"), cpu / seconds * 100.0, "%", FigureGoal::None);
    report.add_figure(
        format!("{name}, {clients} clients: keys that never arrived"),
        seen.lost as f64,
        "",
        FigureGoal::Zero,
    );
    Ok(())
}

/// Starts our hub as its user would.
pub(super) fn start_tracebook_hub(folder: &Path) -> Result<HubProcess, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["--json", "hub", "--listen", "127.0.0.1:0", "--open", "local", "--folder"]).arg(folder);
    command.env("TRACEBOOK_KEYRING", "off").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let out = child.stdout.take().ok_or("nothing to read from")?;
    let mut server = HubProcess { child, at: String::new() };
    let mut line = String::new();
    let mut out = BufReader::new(out);
    out.read_line(&mut line).map_err(|error| error.to_string())?;
    let told: serde_json::Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
    server.at = told["listening"].as_str().ok_or("the hub does not say where it listens")?.to_owned();
    // The rest of its output is drained, so that the hub never blocks on the pipe.
    std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(drop));
    Ok(server)
}

/// Returns the folder in which npm's server is installed.
fn npm_modules_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TRACEBOOK_INTEROP").map(PathBuf::from)?;
    folder.join("node_modules/@automerge/automerge-repo-sync-server").is_dir().then_some(folder)
}

/// Starts npm's server, listening only on the loopback address.
fn start_npm_hub(modules: &Path, folder: &Path) -> Result<HubProcess, String> {
    let program = modules.join("node_modules/@automerge/automerge-repo-sync-server");
    let port = free_port()?;
    let mut command = Command::new("node");
    command.arg("--import").arg(folder.join(LOOPBACK_SHIM.0)).arg(program.join("src/index.js"));
    command.env("PORT", port.to_string()).env("DATA_DIR", folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| format!("node: {error}"))?;
    let server = HubProcess { child, at: format!("ws://127.0.0.1:{port}") };
    let until = Instant::now() + HUB_START_TIMEOUT;
    while !is_listening(port) {
        if Instant::now() > until {
            return Err("npm's server does not listen".to_owned());
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    Ok(server)
}
