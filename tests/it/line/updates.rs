//! `update --check`: off until an address is configured, and never does more than report.

use crate::program::House;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Serves one answer to every request. Returns its address and the number of requests.
fn serve_version_file(answer: &'static str) -> (String, Arc<AtomicUsize>) {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/latest.json", server.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    std::thread::spawn(move || {
        for mut stream in server.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().expect("the same")).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            counted.fetch_add(1, Ordering::SeqCst);
            // The program hangs up once it has read enough.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, asked)
}

fn configure(house: &House, address: &str) {
    house.write(".config/tracebook/config.yaml", format!("update:\n  url: {address}\n").as_bytes());
}

#[test]
fn a_newer_version_is_named_and_nothing_is_changed() {
    let house = House::new();
    house.run(&["update", "--check"]).refused(2, "set `update.url`");
    house.run(&["update"]).refused(2, "doesn't update itself");

    let (address, asked) = serve_version_file(
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"version\": \"1000.0.1\", \"date\": \"2030-01-31\"}",
    );
    configure(&house, &address);
    let before = crate::program::files(&house.path("."));
    let current = house.run(&["--version"]).good().text().trim().rsplit(' ').next().expect("a version").to_owned();
    assert_eq!(asked.load(Ordering::SeqCst), 0, "another command asked");
    let said = house.run(&["update", "--check"]).good().text();
    assert_eq!(said, format!("Tracebook 1000.0.1 of 2030-01-31 is available; this is {current}\n"));
    let report = house.json(&["update", "--check"]);
    let expected = json!({"current": current, "latest": "1000.0.1", "date": "2030-01-31", "newer": true});
    assert_eq!(report, expected);
    assert_eq!(asked.load(Ordering::SeqCst), 2, "each check is one request");
    assert_eq!(crate::program::files(&house.path(".")), before, "it wrote something");
    assert!(!house.path("W").exists(), "it made a workspace");

    let (address, _) = serve_version_file("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"version\": \"0.0.1\"}");
    configure(&house, &address);
    let said = house.run(&["update", "--check"]).good().text();
    assert_eq!(said, format!("Tracebook {current} is the newest version\n"));
}

#[test]
fn an_answer_that_is_none_fails_the_check() {
    let house = House::new();
    let rows: &[(&'static str, &str)] = &[
        ("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n{\"version\": \"1000.0.0\"}", "status 404"),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>", "doesn't name one"),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"version\": \"soon\"}", "doesn't name one"),
        ("HTTP/1.1 302 Found\r\nlocation: http://example.org/\r\ncontent-length: 0\r\n\r\n", "use https"),
    ];
    for (answer, about) in rows {
        configure(&house, &serve_version_file(answer).0);
        house.run(&["update", "--check"]).refused(1, about);
    }
    configure(&house, "http://example.org/latest.json");
    house.run(&["update", "--check"]).refused(1, "use https");
    configure(&house, "file:///etc/passwd");
    house.run(&["update", "--check"]).refused(1, "only http and https");
}
