//! Notes that would take minutes or gigabytes to draw or lay out. Each item is abandoned within its limits and shown as
//! its source with the reason, and nothing else fails with it.

use crate::program::{House, peak_memory};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time factor: unoptimized builds take five times as long, and so may their workers (`app/export/src/render_jobs.rs`).
const PACE: u32 = if cfg!(debug_assertions) { 5 } else { 1 };
/// The most memory that any process of the program may hold, in bytes: a note's budget, the program's own use, and the
/// note's text.
const MOST: u64 = 700 << 20;

/// A command's output and exit code, its duration, and the peak memory of its largest process in bytes.
struct Watched {
    code: i32,
    out: String,
    err: String,
    took: Duration,
    peak: u64,
}

/// Runs a command and watches its process and all descendants.
fn watched(house: &House, words: &[&str]) -> Watched {
    let mut child = house.command(words).spawn().expect("started");
    drop(child.stdin.take());
    let begun = Instant::now();
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let read = |from: &mut dyn Read| {
        let mut text = String::new();
        from.read_to_string(&mut text).map(|_| text).expect("text")
    };
    std::thread::scope(|scope| {
        let out = scope.spawn(move || read(&mut out));
        let err = scope.spawn(move || read(&mut err));
        let mut peak = 0;
        let status = loop {
            peak = peak.max(peak_memory(child.id(), &|_| true));
            if let Some(status) = child.try_wait().expect("waited") {
                break status;
            }
            if begun.elapsed() > Duration::from_secs(600) {
                child.kill().expect("killed");
                panic!("hangs: {words:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let (out, err) = (out.join().expect("read"), err.join().expect("read"));
        Watched { code: status.code().unwrap_or(-1), out, err, took: begun.elapsed(), peak }
    })
}

fn page(house: &House, path: &str) -> String {
    String::from_utf8(house.read(path)).expect("text")
}

/// Whether a file is a complete PDF. A PDF's text is compressed, so the check looks for the header and the end marker.
fn is_pdf(path: &Path) -> bool {
    let bytes = std::fs::read(path).expect("written");
    bytes.starts_with(b"%PDF-") && bytes[bytes.len().saturating_sub(32)..].windows(5).any(|end| end == b"%%EOF")
}

const HONEST: &str =
    "# Honest\n\nRain on the roof, $\\frac{a}{b}$.\n\n```mermaid\nflowchart LR\n  Cloud --> Rain\n```\n\nthe end\n";

/// A formula that makes parsers recurse once per character. It used to crash the program.
fn nested() -> String {
    format!("{}x", "\\not".repeat(2_400))
}

/// A diagram in which every node has an edge to every node.
fn crossed() -> String {
    let all = (0..45).flat_map(|one| (0..45).map(move |other| format!("  A{one}-->A{other}\n")));
    format!("flowchart LR\n{}", all.collect::<String>())
}

/// An SVG with many chained filters over a large area.
pub(crate) fn filters() -> String {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4000\" height=\"4000\"><filter id=\"f\" x=\"0\" y=\"0\" \
         width=\"1\" height=\"1\">",
    );
    for round in 0..60 {
        svg.push_str(&format!(
            "<feTurbulence baseFrequency=\"0.0{round}\" numOctaves=\"10\"/><feGaussianBlur stdDeviation=\"400\"/>"
        ));
    }
    svg.push_str("</filter><rect width=\"4000\" height=\"4000\" filter=\"url(#f)\"/></svg>");
    svg
}

/// A PNG of a few bytes that decodes to four gigabytes.
pub(crate) fn bomb() -> Vec<u8> {
    let mut bytes = vec![0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
    let mut chunk = |name: &[u8; 4], data: &[u8]| {
        let mut body = name.to_vec();
        body.extend_from_slice(data);
        let mut crc = u32::MAX;
        for byte in &body {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            }
        }
        bytes.extend_from_slice(&u32::try_from(data.len()).expect("short").to_be_bytes());
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&(!crc).to_be_bytes());
    };
    let side = 19_999_u32.to_be_bytes();
    let mut head = [side, side].concat();
    head.extend_from_slice(&[8, 6, 0, 0, 0]);
    chunk(b"IHDR", &head);
    chunk(b"IDAT", &[0x78, 0x9c, 0x63, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01]);
    chunk(b"IEND", &[]);
    bytes
}

#[test]
fn hostile_notes_are_exported_within_their_limits_and_others_are_whole() {
    if crate::program::is_left_to_nightly() {
        return;
    }
    let links: String = (0..30_000).map(|number| format!("[[note {number}]] ")).collect();
    let other = format!("# Other\n\n{}", "![[Other 2]]\n\n".repeat(40));
    let notes = [
        ("Diagram.md", format!("before\n\n```mermaid\n{}```\n\nafter the diagram\n", crossed())),
        ("Brackets.md", "[a](".repeat(40_000)),
        ("Formula.md", format!("before\n\n$${}$$\n\nafter the formula\n", nested())),
        ("Honest.md", HONEST.to_owned()),
        ("Links.md", links),
        ("Other.md", other.clone()),
        ("Other 2.md", other.replace("Other 2", "Other 3")),
        ("Other 3.md", other.replace("Other 2", "Other 4")),
        ("Other 4.md", "leaf\n\n".repeat(200)),
        ("Picture.md", "before\n\n![](filters.svg)\n\n![](bomb.png)\n\nafter the pictures\n".to_owned()),
        ("Self.md", "words\n\n![[Self]] ![[Self]]\n\n".repeat(500)),
    ];
    let notes: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let house = House::with(&notes);
    house.write("notes/filters.svg", filters().as_bytes());
    house.write("notes/bomb.png", &bomb());
    house.run(&["open", "notes"]).good();

    let done = watched(&house, &["export", "notes", "site", "--html"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.took < Duration::from_secs(25) * PACE, "{:?}", done.took);
    assert!(done.peak < MOST, "{} MB", done.peak >> 20);
    let honest = page(&house, "site/Honest.html");
    assert!(honest.contains("<mfrac>") && honest.contains("<svg") && honest.contains("the end"), "{honest}");
    assert!(!honest.contains("class=\"limit\""), "{honest}");
    let formula = page(&house, "site/Formula.html");
    assert!(formula.contains("after the formula") && formula.contains("\\not\\not"), "its source: {formula}");
    assert!(formula.contains("class=\"limit\">Not drawn. "), "and why: {formula}");
    let diagram = page(&house, "site/Diagram.html");
    assert!(diagram.contains("after the diagram") && diagram.contains("A44--&gt;A44"), "its source: {diagram}");
    assert!(diagram.contains("class=\"limit\">Not drawn. It takes longer than"), "and why: {diagram}");
    let own = page(&house, "site/Self.html");
    assert!(own.contains("A note can't be shown inside itself.") && own.len() < 4 << 20, "{} bytes", own.len());
    let nested = page(&house, "site/Other.html");
    assert!(nested.contains("come to more than 4 MB") && nested.len() < 40 << 20, "{} bytes", nested.len());
    let links = page(&house, "site/Links.html");
    assert!(links.contains("note 29999"), "all of it, or its source");

    println!("pages: {:?}, {} MB", done.took, done.peak >> 20);

    let done = watched(&house, &["export", "notes", "all.pdf"]);
    println!("document: {:?}, {} MB: {}", done.took, done.peak >> 20, done.out);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.took < Duration::from_secs(60) * PACE, "{:?}", done.took);
    assert!(done.peak < 2 * MOST, "{} MB", done.peak >> 20);
    assert!(is_pdf(&house.path("all.pdf")));
}
