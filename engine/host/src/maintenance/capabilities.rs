//! Detects capabilities of this machine for `tracebook doctor`, without changing anything.

use crate::maintenance::platform::{detect_platform, platform_capabilities};
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// A capability that's available or not.
#[derive(Clone, Debug, Serialize)]
pub struct MachineCapability {
    /// `platform`, `display`, `sandbox`, `browser`, `containers`, `kernel`, `model server`, `build` or `workspace`.
    pub area: &'static str,
    /// Name of the capability.
    pub name: String,
    /// Whether it's available.
    pub there: bool,
    /// What that means for the user, in a sentence.
    pub note: String,
}

fn capability(area: &'static str, name: impl Into<String>, there: bool, note: impl Into<String>) -> MachineCapability {
    MachineCapability { area, name: name.into(), there, note: note.into() }
}

/// Detects all capabilities. `program` is the executable that starts the built-in kernel, `workspace` the folder whose
/// disk is measured.
pub fn detect_capabilities(program: &Path, workspace: &Path) -> Vec<MachineCapability> {
    let mut offers = platform_capabilities(&detect_platform(), workspace);
    offers.push(display_capability());
    offers.extend(embedded_kernel_capabilities(program));
    offers.push(tool_sandbox_capability(program));
    #[cfg(feature = "browser")]
    offers.push(browser_capability(workspace));
    #[cfg(feature = "containers")]
    offers.push(container_capability(workspace));
    offers.extend(kernelspec_capabilities());
    offers.extend(model_server_capabilities());
    offers
}

/// Returns whether a window can be opened on this machine.
pub fn has_display() -> bool {
    display_capability().there
}

fn display_capability() -> MachineCapability {
    if cfg!(any(target_os = "macos", target_os = "windows")) {
        return capability("display", "native", true, "the window can be opened");
    }
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match set("WAYLAND_DISPLAY").or_else(|| set("DISPLAY")) {
        Some(display) => capability("display", display, true, "the window can be opened"),
        None => capability("display", "none", false, "no window here; the command line does everything"),
    }
}

fn embedded_kernel_capabilities(program: &Path) -> Vec<MachineCapability> {
    let asked = || -> std::io::Result<serde_json::Value> {
        let mut kernel = std::process::Command::new(program)
            .arg("kernel")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()?;
        // Keep standard input open until the kernel has answered: it exits when the input closes, on a slow machine
        // even before it's ready.
        let input = kernel.stdin.take();
        let mut line = String::new();
        let read = kernel.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        drop(input);
        kernel.wait()?;
        read.transpose()?;
        Ok(serde_json::from_str(&line)?)
    };
    let reply = asked().ok();
    let Some(content) = reply.as_ref().map(|reply| &reply["content"]) else {
        return vec![capability("kernel", "embedded", false, "it does not start; run `tracebook kernel` to see why")];
    };
    let language = &content["language_info"];
    let word = |name: &str| language[name].as_str().unwrap_or("?");
    let name = format!("embedded {} {}", word("name"), word("version"));
    let mut offers = vec![capability("kernel", name, true, "runs the cells; nothing to install")];
    for (name, holds, open) in SANDBOX_CAPABILITIES {
        let there = content["sandbox"][name] == true;
        offers.push(capability("sandbox", name, there, if there { holds } else { open }));
    }
    offers.push(capability("sandbox", "time", true, "a cell is stopped after 30 s, or after what its first line says"));
    offers
}

/// Returns whether the sandbox for agents' tools works.
fn tool_sandbox_capability(program: &Path) -> MachineCapability {
    let place = crate::tools::ToolWorkspace::new(program.to_owned(), &std::env::temp_dir());
    match crate::tools::ToolRunner::new(place).check_confinement() {
        Ok(()) => {
            capability("sandbox", "tools", true, "shell and Python of agents reach only the volume, and no network")
        }
        Err(why) => {
            capability("sandbox", "tools", false, format!("{why}; shell and Python of agents are refused here"))
        }
    }
}

/// Returns whether agents can open web pages.
#[cfg(feature = "browser")]
fn browser_capability(workspace: &Path) -> MachineCapability {
    let configured = super::configuration::load_config(workspace).ok().and_then(|config| config.browser.program);
    let (name, there, note) = browser::describe_browser(configured.as_deref());
    capability("browser", name, there, note)
}

/// Returns whether agents can use containers.
#[cfg(feature = "containers")]
fn container_capability(workspace: &Path) -> MachineCapability {
    let configured = super::configuration::load_config(workspace).ok().and_then(|config| config.containers.socket);
    let (name, there, note) = containers::describe_engine(configured.as_deref());
    capability("containers", name, there, note)
}

/// Capabilities of the kernel's sandbox: name, what it means if enforced, and what it means if not.
const SANDBOX_CAPABILITIES: [(&str, &str, &str); 4] = [
    ("files", "cells reach only the folder of their note", "not enforced here: cells reach all your files"),
    ("network", "cells reach no network", "not enforced here: cells reach the network"),
    ("processes", "cells start no processes", "not enforced here: cells may start processes"),
    ("memory", "cells get at most 4 GiB", "not enforced here: cells may take all memory"),
];

fn kernelspec_capabilities() -> Vec<MachineCapability> {
    let here = std::env::current_dir().unwrap_or_default();
    let found = crate::kernel::kernelspec::find_kernels(&here, &[]).into_iter().map(|found| found.spec);
    let offer = |spec: engine::KernelSpec| {
        let note = format!("a Jupyter kernel, {}: runs a note's cells once you choose it, with your rights", spec.name);
        capability("kernel", spec.title, true, note)
    };
    found.map(offer).collect()
}

fn model_server_capabilities() -> Vec<MachineCapability> {
    let known = [("Ollama", 11_434), ("llama.cpp", 8_080), ("LM Studio", 1_234), ("vLLM", 8_000)];
    let here = |port: u16| {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
    };
    known
        .into_iter()
        .map(|(name, port)| match here(port) {
            true => capability("model server", name, true, format!("something answers on port {port} of this machine")),
            false => capability("model server", name, false, format!("nothing answers on port {port}")),
        })
        .collect()
}
