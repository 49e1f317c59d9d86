//! What follows the platform: the values of `doctor --json`, and the tools that a model is offered.

use super::agents::{Said, house, model};
use crate::program::{House, finish};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Where container engines of the system listen.
const SYSTEM_SOCKETS: [&str; 3] = ["/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock"];

/// Returns the line of `doctor --json` about the system.
fn system_line(house: &House) -> Value {
    let lines = house.json(&["doctor"]);
    let is_system = |line: &&Value| line["area"] == "platform" && line["name"] == "system";
    let found = lines.as_array().into_iter().flatten().find(is_system).cloned();
    found.unwrap_or_else(|| panic!("nothing about the system: {lines}"))
}

/// Returns the tools that a request offers: name and description.
fn offered_tools(body: &Value) -> Vec<(String, String)> {
    let tools = body["tools"].as_array().expect("tools");
    let text = |tool: &Value, key: &str| tool["function"][key].as_str().expect("a text").to_owned();
    tools.iter().map(|tool| (text(tool, "name"), text(tool, "description"))).collect()
}

#[test]
fn the_doctor_says_values_to_programs() {
    let house = House::new();
    let line = system_line(&house);
    assert_eq!((&line["there"], line["note"].is_string()), (&json!(true), true), "{line}");
    let platform = line["platform"].as_str().expect("a platform");
    assert!(["linux", "wsl", "macos", "windows", "termux", "generic"].contains(&platform), "{line}");
    assert!(line["note"].as_str().is_some_and(|note| note.starts_with(platform)), "{line}");
    assert_eq!(line["arch"], std::env::consts::ARCH);
    for folder in ["root", "temp"] {
        assert!(line[folder].as_str().is_some_and(|folder| Path::new(folder).is_absolute()), "{folder}: {line}");
    }
    let number = |of: &str, key: &str| line[of][key].as_u64().unwrap_or_else(|| panic!("{of} {key}: {line}"));
    assert!(number("memory", "total_bytes") > 100 << 20 && number("memory", "used_bytes") > 1 << 20, "{line}");
    assert!(number("cpu", "count") > 0, "{line}");
    assert!(number("disk", "free_bytes") <= number("disk", "total_bytes"), "{line}");
    assert!(line["docker"].is_boolean() && line["gpu"].is_boolean(), "{line}");
    // An engine's socket that the environment names is one.
    house.write("engine.sock", b"");
    let mut command = house.command(&["doctor", "--json"]);
    command.env("CONTAINER_HOST", format!("unix://{}", house.path("engine.sock").display()));
    let lines = finish(command, b"").good().json();
    assert!(lines.as_array().is_some_and(|lines| lines.iter().any(|line| line["docker"] == true)), "{lines}");
}

#[test]
fn the_doctor_names_each_part_that_a_build_may_leave_out_and_how_to_get_it() {
    let lines = House::new().json(&["doctor"]);
    let parts: Vec<&Value> = lines.as_array().into_iter().flatten().filter(|line| line["area"] == "build").collect();
    let names: Vec<&str> = parts.iter().filter_map(|line| line["name"].as_str()).collect();
    let optional = [
        "browser tools",
        "container tools",
        "hub server",
        "ONNX search models",
        "gRPC server",
        "science kernel",
        "OpenTelemetry export",
    ];
    assert_eq!(names, optional, "{lines}");
    for line in parts {
        let features = if line["name"] == "OpenTelemetry export" { "full,otel" } else { "full" };
        let build = format!("`cargo build --release --ignore-rust-version --features {features}`");
        let note = line["note"].as_str().expect("a note");
        match line["there"].as_bool().expect("yes or no") {
            true => assert_eq!(note, "built in", "{line}"),
            false => assert_eq!(note, format!("left out of this build; {build} has it"), "{line}"),
        }
    }
}

#[test]
fn a_model_is_offered_the_tools_of_its_machine() {
    let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
    let heard = requests.clone();
    let script = move |_: usize, body: &Value| -> Said {
        heard.lock().expect("whole").push(body.clone());
        ("Done.".to_owned(), Vec::new())
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let offered = |engine: Option<&str>| {
        let mut command = house.command(&["ask", "go"]);
        if let Some(engine) = engine {
            command.env("DOCKER_HOST", engine);
        }
        finish(command, b"").good();
        offered_tools(&requests.lock().expect("whole").pop().expect("a request"))
    };
    house.write("engine.sock", b"");
    let with_engine = offered(Some(&format!("unix://{}", house.path("engine.sock").display())));
    let find = |name: &str| with_engine.iter().find(|(known, _)| known == name).map(|(_, about)| about.as_str());
    assert!(find("container_run").is_some() && find("browser_open").is_some(), "{with_engine:?}");
    let system = system_line(&house);
    let (platform, arch) = (system["platform"].as_str().expect("a text"), std::env::consts::ARCH);
    let shell = find("shell").expect("a shell");
    assert!(shell.ends_with(&format!("The system is {platform} on {arch}, the shell /bin/sh.")), "{shell}");

    if SYSTEM_SOCKETS.iter().any(|socket| Path::new(socket).exists()) {
        return; // This machine has an engine: it can't be left out here.
    }
    let without = offered(None);
    let rest: Vec<_> = with_engine.iter().filter(|(name, _)| !name.starts_with("container_")).cloned().collect();
    assert_eq!(without, rest);
    assert!(!house.run(&["tools"]).good().text().contains("container_"));
    let mut config = house.read("W/config.yaml");
    config.extend_from_slice(b"containers:\n  socket: /no/such.sock\n");
    house.write("W/config.yaml", &config);
    assert_eq!(offered(None), with_engine);
}
