//! The server for phones, as the settings switch it on: over TLS on the network, with a code that pairs one.

use super::*;
use egui_kittest::kittest::NodeT;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

const SWITCH: &str = "Phones and other devices on this network";
const CODE: &str = "QR code that pairs a phone";

fn click(window: &mut Driven, role: Role, label: &str) {
    // Works wherever the control is scrolled to.
    window.get_by_role_and_label(role, label).click_accesskit();
    window.run();
}

fn set_address(window: &mut Driven, address: &str) {
    window.get_by_label("Server address").focus();
    window.run();
    press(window, CTRL, Key::A);
    type_text(window, address);
    press(window, NONE, Key::Enter);
}

/// Returns what a row says whose text begins so.
fn row(window: &Driven, start: &str) -> Option<String> {
    let found = window.query_all_by_label_contains(start).next()?.accesskit_node().value()?;
    Some(found.rsplit_once(start)?.1.to_owned())
}

fn port_in(address: &str) -> u16 {
    let port = address.split("://").nth(1).and_then(|rest| rest.split('/').next()?.rsplit_once(':'));
    port.expect("a port").1.parse().expect("a number")
}

/// Returns the first line of the answer to a request without TLS.
fn plain_answer(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(b"GET /pair HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut line = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Returns the codes for phones that the workspace knows.
fn phone_codes(bench: &Bench) -> Vec<Value> {
    let bytes = std::fs::read(bench.folder.path().join("workspace/pairing-codes.json")).unwrap_or_default();
    let all: Vec<Value> = serde_json::from_slice(&bytes).unwrap_or_default();
    all.into_iter().filter(|code| code["grant"]["name"] == "Phone").collect()
}

#[test]
fn a_phone_gets_a_code_over_tls_while_the_switch_is_on() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    window.get_by_label("Settings").click_accesskit();
    window.run();
    click(&mut window, Role::Tab, "Other programs");
    set_address(&mut window, "127.0.0.1:0");
    click(&mut window, Role::Switch, "Server for other programs");
    until(&mut window, "it runs", |window| row(window, "Running at: http://127.0.0.1:").is_some());
    assert!(window.query_by_label("Show code").is_none(), "no phone can reach it");
    click(&mut window, Role::Switch, "Server for other programs");
    until(&mut window, "it has ended", |window| row(window, "Running at: ").is_none());

    // The switch for phones also switches the server on.
    click(&mut window, Role::Switch, SWITCH);
    until(&mut window, "it runs on the network", |window| row(window, "Running at: https://0.0.0.0:").is_some());
    let settings = session(&window).settings().clone();
    assert!(settings.serves_programs && settings.serves_devices);
    assert_eq!(settings.server_address, "127.0.0.1:0", "the address stays as it was typed");
    let port = port_in(&row(&window, "Running at: ").expect("an address"));
    assert!(bench.folder.path().join("workspace/http-certificate.pem").exists());
    let plain = plain_answer(port);
    assert!(!plain.as_ref().is_ok_and(|line| line.starts_with("HTTP/")), "nothing is served without TLS: {plain:?}");

    // One code, for one phone, with an end.
    assert!(phone_codes(&bench).is_empty());
    click(&mut window, Role::Button, "Show code");
    until(&mut window, "the code is shown", |window| row(window, "Pair a phone: Works once, for ").is_some());
    let shown = row(&window, "Pair a phone: Works once, for ").expect("a row");
    assert!(shown.contains(" more minutes. Scan it, or open https://"), "{shown}");
    let link = shown.rsplit_once(' ').expect("a link").1.to_owned();
    assert!(link.starts_with("https://") && link.contains("/pair?code="), "{link}");
    assert_eq!(port_in(&link), port);
    window.get_by_role_and_label(Role::Image, CODE);
    window.get_by_label("Copy link");
    pictured(&mut window, "phone-pairing");
    let codes = phone_codes(&bench);
    assert_eq!(codes.len(), 1, "{codes:?}");
    assert!(codes[0]["expires"].as_i64().is_some_and(|at| at > 0) && codes[0]["is_used"] == false, "{codes:?}");
    click(&mut window, Role::Button, "Hide code");
    assert!(window.query_by_label(CODE).is_none());
    click(&mut window, Role::Button, "Show code");
    until(&mut window, "another code is shown", |window| window.query_by_label(CODE).is_some());
    let other = row(&window, "Pair a phone: Works once, for ").expect("a row");
    assert_ne!(other.rsplit_once(' ').expect("a link").1, link, "each code is for one phone");

    // Switched off, only this device reaches the server, and the code is gone.
    click(&mut window, Role::Switch, SWITCH);
    until(&mut window, "it runs here", |window| row(window, "Running at: http://127.0.0.1:").is_some());
    assert!(window.query_by_label(CODE).is_none() && window.query_by_label("Show code").is_none());
    let own = port_in(&row(&window, "Running at: ").expect("an address"));
    assert!(plain_answer(own).expect("an answer").starts_with("HTTP/1.1 200"));
    assert!(own == port || TcpStream::connect(("127.0.0.1", port)).is_err(), "nothing listens on the network");
    click(&mut window, Role::Switch, "Server for other programs");
    until(&mut window, "it has ended", |_| TcpStream::connect(("127.0.0.1", own)).is_err());
    assert!(!session(&window).settings().serves_devices);
}
