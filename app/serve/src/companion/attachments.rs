//! Files beside notes, with types that browsers show and policies under which nothing in them runs.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// What a file may do that is opened by itself: show itself, in a world of its own.
const SANDBOXED: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src 'self'; sandbox";
/// As [`SANDBOXED`], for browsers' own viewers, which don't work in a sandbox.
const VIEWER: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; object-src 'self'";

/// Returns the media type of a file by its extension, and whether browsers may show it.
fn media_type(path: &str) -> (&'static str, bool) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "png" => ("image/png", true),
        "jpg" | "jpeg" => ("image/jpeg", true),
        "gif" => ("image/gif", true),
        "webp" => ("image/webp", true),
        "avif" => ("image/avif", true),
        "bmp" => ("image/bmp", true),
        "svg" => ("image/svg+xml", true),
        "mp3" => ("audio/mpeg", true),
        "m4a" => ("audio/mp4", true),
        "ogg" | "oga" => ("audio/ogg", true),
        "wav" => ("audio/wav", true),
        "flac" => ("audio/flac", true),
        "mp4" | "m4v" => ("video/mp4", true),
        "webm" => ("video/webm", true),
        "pdf" => ("application/pdf", true),
        "htm" | "html" => ("text/html; charset=utf-8", true),
        "base" | "bib" | "c" | "csv" | "diff" | "ics" | "ipynb" | "json" | "log" | "patch" | "py" | "rs" | "tex"
        | "toml" | "tsv" | "txt" | "yaml" | "yml" => ("text/plain; charset=utf-8", true),
        _ => ("application/octet-stream", false),
    }
}

/// Returns a file as it's served.
pub(super) fn file_response(path: &str, bytes: Vec<u8>) -> Response {
    let (media, is_shown) = media_type(path);
    let policy = if media == "application/pdf" { VIEWER } else { SANDBOXED };
    let disposition = if is_shown { "inline" } else { "attachment" };
    let headers = [
        (header::CONTENT_TYPE, media),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    (headers, bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_run_is_sandboxed_or_saved() {
        for path in ["a.svg", "b/c.HTML", "x.htm", "t.txt", "i.png"] {
            let response = file_response(path, Vec::new());
            let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("text");
            assert!(policy.contains("sandbox") && !policy.contains("script"), "{path}: {policy}");
        }
        for path in ["a.xhtml", "b.js", "c.exe", "d.xml", "none", ".html", "e.swf"] {
            let response = file_response(path, Vec::new());
            let is_saved = response.headers()[header::CONTENT_DISPOSITION] == "attachment";
            assert!(is_saved || path == ".html", "{path}: {response:?}");
        }
    }
}
