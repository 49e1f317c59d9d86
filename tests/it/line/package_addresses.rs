//! Packages that are fetched from addresses: of archives, behind redirects, and of servers and archives that lie.

use super::packages::{AGENT, MANIFEST, add, gzip, kit_house, pack_kit, traces, zip_of};
use crate::program::assert_fast;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Serves whole HTTP responses, with their heads, by path; each connection gets one. Returns the address.
pub(crate) fn serve_whole(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut reader = BufReader::new(stream);
                let (mut first, mut line) = (String::new(), String::new());
                reader.read_line(&mut first)?;
                while reader.read_line(&mut line)? > 2 {
                    line.clear();
                }
                let response = answer(first.split(' ').nth(1).unwrap_or_default());
                reader.get_mut().write_all(&response)
            });
        }
    });
    address
}

/// A response with this body, whose head claims this size.
pub(crate) fn response(body: &[u8], size: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A response that leads elsewhere.
pub(crate) fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

/// An archive whose only file claims to have 4 GB.
fn claiming_tar() -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_path("templates/big.md").expect("a path");
    header.set_mode(0o644);
    header.set_size(4 << 30);
    header.set_cksum();
    gzip(&[&header.as_bytes()[..], &[b'x'; 1024][..]].concat())
}

/// A zip archive of a file of 16 MB that claims to have 10 bytes.
fn lying_zip() -> Vec<u8> {
    let big = vec![b' '; (16 << 20) + 0x1234];
    let base: [(&str, &[u8]); 2] = [("package.yaml", MANIFEST.as_bytes()), ("agents/skipper.md", AGENT.as_bytes())];
    let mut bytes = zip_of(&[base[0], base[1], ("templates/big.md", &big)]);
    let size = u32::try_from(big.len()).expect("small").to_le_bytes();
    // The size is in the header of the file, and in the list at the end.
    let places: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[*at..*at + 4] == size).collect();
    assert_eq!(places.len(), 2, "{places:?}");
    for at in places {
        bytes[at..at + 4].copy_from_slice(&10_u32.to_le_bytes());
    }
    bytes
}

#[test]
fn archives_are_added_from_addresses_and_wrong_ones_are_refused() {
    let house = kit_house();
    pack_kit(&house.path(""));
    let (packed, zipped) = (house.read("kit.tar.gz"), house.read("kit.zip"));
    let elsewhere = zipped.clone();
    let other = serve_whole(move |_| response(&elsewhere, elsewhere.len()));
    let server = serve_whole(move |path| match path {
        "/kit.tar.gz" => response(&packed, packed.len()),
        "/kit.zip?v=2" => response(&zipped, zipped.len()),
        "/moved/kit.tar.gz" => redirect("/kit.tar.gz"),
        "/moved/kit.zip" => redirect("../kit.zip?v=2"),
        "/away/kit.zip" => redirect(&format!("{other}/kit.zip")),
        "/round/kit.zip" => redirect("/round/kit.zip"),
        // More is claimed than comes, less, and far too much.
        "/long/kit.tar.gz" => response(&packed, packed.len() + 100),
        "/short/kit.tar.gz" => response(&packed, packed.len() / 2),
        "/huge/kit.zip" => response(&vec![b' '; 3 << 20], 5_000_000_000),
        "/claims/kit.tar.gz" => response(&claiming_tar(), claiming_tar().len()),
        "/lies/kit.zip" => response(&lying_zip(), lying_zip().len()),
        "/page/kit.zip" => response(b"<html>Sign in</html>", 20),
        _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
    });
    let hash = house.run(&["packages", "add", "kit", "--json"]).code(1).json()["hash"].clone();
    for path in ["kit.tar.gz", "kit.zip?v=2", "moved/kit.tar.gz", "moved/kit.zip"] {
        let done = add(&house, &format!("{server}/{path}"));
        assert_eq!((&done["hash"], &done["files"].as_array().map(Vec::len)), (&hash, &Some(8)), "{path}");
        assert_eq!(house.read("W/agents/skipper.md"), AGENT.as_bytes());
        let same = house.run(&["packages", "update"]).good().text();
        assert_eq!(same, "sail-kit 1.0.0 is up to date.\n", "{path}: the address is remembered");
        house.run(&["packages", "remove", "sail-kit"]).good();
        assert_eq!(traces(&house), [""; 0], "{path}");
    }
    for (path, code, about) in [
        ("away/kit.zip", 1, "leads into a private network"),
        ("round/kit.zip", 1, "more than 5 redirects"),
        ("long/kit.tar.gz", 1, "can't get"),
        ("short/kit.tar.gz", 2, "can't be read"),
        ("huge/kit.zip", 1, "the file is longer than"),
        ("claims/kit.tar.gz", 2, "at most 1 MB"),
        ("lies/kit.zip", 2, ""),
        ("page/kit.zip", 2, "neither a .tar.gz nor a .zip"),
        ("nowhere/kit.zip", 1, "answered with status 404"),
    ] {
        assert_fast(path, Duration::from_secs(15), || {
            let begun = Instant::now();
            house.run(&["packages", "add", &format!("{server}/{path}")]).refused(code, about);
            begun.elapsed()
        });
        assert_eq!(traces(&house), [""; 0], "{path}");
    }
}
