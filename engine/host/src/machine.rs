//! What this machine offers: looked at for `tracebook doctor`, changed never.

use serde::Serialize;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One thing that is there or not.
#[derive(Clone, Debug, Serialize)]
pub struct Offer {
    /// `display`, `sandbox`, `kernel`, `model server` or `disk`.
    pub area: &'static str,
    /// What it is.
    pub name: String,
    /// Whether it is there.
    pub there: bool,
    /// What that means, in a sentence.
    pub note: String,
}

fn offer(area: &'static str, name: impl Into<String>, there: bool, note: impl Into<String>) -> Offer {
    Offer { area, name: name.into(), there, note: note.into() }
}

/// Looks at the machine. `program` starts the embedded kernel.
pub fn offers(program: &Path) -> Vec<Offer> {
    let mut offers = vec![display()];
    offers.extend(sandbox());
    offers.push(embedded(program));
    offers.extend(kernelspecs());
    offers.extend(model_servers());
    offers
}

/// Whether a window can be opened here.
pub fn has_display() -> bool {
    display().there
}

fn display() -> Offer {
    if cfg!(any(target_os = "macos", target_os = "windows")) {
        return offer("display", "native", true, "the window can be opened");
    }
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match set("WAYLAND_DISPLAY").or_else(|| set("DISPLAY")) {
        Some(display) => offer("display", display, true, "the window can be opened"),
        None => offer("display", "none", false, "no window here; the command line does everything"),
    }
}

fn sandbox() -> Vec<Offer> {
    let landlock = has_landlock();
    let seccomp = std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("Seccomp:"));
    let later = "cells do not use it yet: they run with your own rights";
    vec![
        offer("sandbox", "Landlock", landlock, if landlock { later } else { "not seen on this system" }),
        offer("sandbox", "seccomp", seccomp, if seccomp { later } else { "not seen on this system" }),
    ]
}

/// Asks the kernel for a rule set that is never enforced.
#[cfg(target_os = "linux")]
fn has_landlock() -> bool {
    use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    let asked = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    asked.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn has_landlock() -> bool {
    false
}

fn embedded(program: &Path) -> Offer {
    let asked = std::process::Command::new(program)
        .arg("kernel")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .output();
    let version = asked.ok().and_then(|output| {
        let line = output.stdout.split(|byte| *byte == b'\n').next()?.to_vec();
        let reply: serde_json::Value = serde_json::from_slice(&line).ok()?;
        let language = &reply["content"]["language_info"];
        Some(format!("{} {}", language["name"].as_str()?, language["version"].as_str()?))
    });
    match version {
        Some(version) => offer("kernel", format!("embedded {version}"), true, "runs the cells; nothing to install"),
        None => offer("kernel", "embedded", false, "it does not start; run `tracebook kernel` to see why"),
    }
}

fn kernelspecs() -> Vec<Offer> {
    let mut places: Vec<PathBuf> = vec!["/usr/share/jupyter/kernels".into(), "/usr/local/share/jupyter/kernels".into()];
    if let Some(home) = std::env::var_os("HOME") {
        places.push(Path::new(&home).join(".local/share/jupyter/kernels"));
    }
    let mut found = Vec::new();
    for place in places {
        let Ok(entries) = std::fs::read_dir(place) else { continue };
        for entry in entries.flatten() {
            let spec = std::fs::read(entry.path().join("kernel.json")).ok();
            let spec: Option<serde_json::Value> = spec.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if let Some(spec) = spec {
                let name = spec["display_name"].as_str().unwrap_or("a kernel").to_owned();
                found.push(offer("kernel", name, true, "a Jupyter kernel; notes do not use it yet"));
            }
        }
    }
    found
}

fn model_servers() -> Vec<Offer> {
    let known = [("Ollama", 11_434), ("llama.cpp", 8_080), ("LM Studio", 1_234), ("vLLM", 8_000)];
    let here = |port: u16| {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
    };
    known
        .into_iter()
        .map(|(name, port)| match here(port) {
            true => offer("model server", name, true, format!("something answers on port {port} of this machine")),
            false => offer("model server", name, false, format!("nothing answers on port {port}")),
        })
        .collect()
}
