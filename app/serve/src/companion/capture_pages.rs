//! Captures: a text or a photo becomes an item of today's note, once.

use super::capture_ledger::CapturedNote;
use super::companion_session::{BrowserSession, CompanionCaller, CompanionError};
use super::page_layout::{PageSection, encode_value, file_url, form_token_field, page, see_other};
use crate::access_tokens::TokenScope;
use crate::clock::unix_millis;
use crate::command_calls::CommandCall;
use crate::http_state::HttpState;
use crate::problem::ProblemDetails;
use crate::tool_calls::ToolCallContext;
use axum::Json;
use axum::extract::multipart::{Field, Multipart};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Maximum length of a captured text in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum size of a photo in bytes.
const MAX_PHOTO_BYTES: usize = 16 << 20;
/// Maximum length of other fields in bytes.
const MAX_FIELD_BYTES: usize = 256;
/// Maximum time to receive a photo.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the file extension of a photo, from its first bytes; `None` if it's nothing that a note shows.
fn photo_extension(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("png"),
        [0xff, 0xd8, 0xff, ..] => Some("jpg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("webp"),
        _ => None,
    }
}

/// Returns the form that captures.
pub(super) fn capture_form(caller: &CompanionCaller) -> Markup {
    let key = format!("{:032x}", rand::random::<u128>());
    html! {
        form #capture-form class="capture" method="post" action="/capture" enctype="multipart/form-data" {
            (form_token_field(caller))
            input type="hidden" name="key" value=(key);
            (capture_fields("Add"))
        }
        (kept_captures())
    }
}

/// Returns what a person fills in to capture, with the name of the button.
pub(super) fn capture_fields(button: &str) -> Markup {
    html! {
        label for="capture-text" { "Add to today's note" }
        textarea #capture-text name="text" rows="3" maxlength=(MAX_TEXT_BYTES / 4) {}
        div class="row" {
            label class="button file" for="capture-photo" { "Photo…" }
            input #capture-photo class="visually-hidden" type="file" name="photo"
                accept="image/jpeg,image/png,image/webp,image/gif";
            output #capture-chosen class="muted" for="capture-photo" {}
            button class="primary" type="submit" { (button) }
        }
        // It's there before its text, so that the text is announced.
        p #capture-status class="muted" role="status" {}
    }
}

/// Returns where the script lists captures on this device that the server didn't take.
pub(super) fn kept_captures() -> Markup {
    html! { section #capture-kept aria-label="Captures on this device" hidden {} }
}

/// Shows the form alone, for a shortcut on the home screen.
pub(super) async fn show_capture(caller: CompanionCaller) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Write)?;
    let content = html! { h1 { "Capture" } (capture_form(&caller)) };
    Ok(page(&caller, PageSection::Home, "Capture", &content))
}

/// Returns the secret of the session's forms to the script, which sends what was captured offline.
pub(super) async fn form_token(caller: CompanionCaller) -> Response {
    Json(json!({"form_token": caller.session.form_token()})).into_response()
}

/// What was captured.
#[derive(Default)]
struct SentCapture {
    form_token: String,
    key: String,
    text: String,
    photo: Vec<u8>,
}

/// Receives a field. Of one that is too large, the rest is read and dropped, so that the browser gets to read why.
async fn field_bytes(mut field: Field<'_>, max: usize, what: &str) -> Result<Vec<u8>, ProblemDetails> {
    let (mut bytes, mut is_over) = (Vec::new(), false);
    loop {
        match field.chunk().await {
            Ok(Some(part)) => {
                is_over |= bytes.len() + part.len() > max;
                if !is_over {
                    bytes.extend_from_slice(&part);
                }
            }
            Ok(None) if !is_over => return Ok(bytes),
            Err(error) if !is_over => {
                return Err(ProblemDetails::new(error.status(), format!("The form can't be read: {error}.")));
            }
            Ok(None) | Err(_) => {
                let why = format!("The {what} is too large. At most {} are taken.", size_words(max));
                return Err(ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, why));
            }
        }
    }
}

fn size_words(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MB", bytes >> 20) } else { format!("{} kB", bytes.div_ceil(1 << 10)) }
}

async fn receive_capture(request: Request, state: &Arc<HttpState>) -> Result<SentCapture, ProblemDetails> {
    let unreadable =
        |why: String| ProblemDetails::new(StatusCode::BAD_REQUEST, format!("The form can't be read: {why}."));
    let multipart = Multipart::from_request(request, state).await;
    let mut multipart = multipart.map_err(|error| unreadable(error.to_string()))?;
    let mut sent = SentCapture::default();
    while let Some(field) = multipart.next_field().await.map_err(|error| unreadable(error.to_string()))? {
        let name = field.name().unwrap_or_default().to_owned();
        if name == "photo" {
            sent.photo = field_bytes(field, MAX_PHOTO_BYTES, "photo").await?;
            continue;
        }
        let max = if name == "text" { MAX_TEXT_BYTES } else { MAX_FIELD_BYTES };
        let text = String::from_utf8(field_bytes(field, max, "text").await?);
        let text = text.map_err(|_| unreadable("it isn't UTF-8 text".to_owned()))?;
        match name.as_str() {
            "form_token" => sent.form_token = text,
            "key" => sent.key = text,
            "text" => sent.text = text.replace("\r\n", "\n").replace('\0', ""),
            _ => {}
        }
    }
    Ok(sent)
}

/// Adds an item to today's note, unless this key did already.
fn add_item(
    calls: &ToolCallContext<'_>,
    state: &HttpState,
    browser: &str,
    volume: Option<String>,
    sent: SentCapture,
) -> Result<CapturedNote, ProblemDetails> {
    let unwritable = |error: crate::private_list::PrivateListError| {
        ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    };
    let ledger = &state.companion.captures;
    let _turn = ledger.take_turn();
    let (record, was_known) = ledger
        .begin((browser, &sent.key), &[sent.text.trim().as_bytes(), &sent.photo], unix_millis())
        .map_err(unwritable)?;
    if let Some(note) = record.note {
        return Ok(note);
    }
    // It was begun, and nobody knows how it ended: it's added only if the note doesn't have it.
    let call = CommandCall::json("capture").option("volume", volume).flag("missing", was_known);
    let call = if sent.photo.is_empty() {
        call.operands(["-"]).with_input(sent.text)
    } else {
        // The same name each time, so that a photo that is sent again isn't stored twice.
        let at = jiff::Timestamp::from_millisecond(record.at).unwrap_or_default();
        let at = at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y%m%d-%H%M%S").to_string();
        let mark = record.hash.get(..6).unwrap_or_default();
        let extension = photo_extension(&sent.photo).unwrap_or("jpg");
        let name = format!("photo-{at}-{mark}.{extension}");
        call.option("attach", Some(name)).operands([sent.text.trim()]).with_input(sent.photo)
    };
    let outcome = calls.perform(call);
    let value = outcome.value().unwrap_or_default();
    match (outcome.code, value["volume"].as_str(), value["path"].as_str()) {
        (0, Some(volume), Some(path)) => {
            let note = CapturedNote { volume: volume.to_owned(), path: path.to_owned() };
            ledger.finish(&record.hash, &note).map_err(unwritable)?;
            Ok(note)
        }
        _ => {
            ledger.forget(&record.hash).map_err(unwritable)?;
            Err(ProblemDetails::of_outcome(&outcome))
        }
    }
}

/// Adds what was captured to today's note.
pub(super) async fn capture(
    caller: CompanionCaller,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Write)?;
    let session: BrowserSession = caller.session.clone();
    let slow = |_| ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "The photo did not arrive in time.");
    let received = tokio::time::timeout(UPLOAD_TIMEOUT, receive_capture(request, &caller.api.state)).await;
    let sent = received.map_err(slow)??;
    session.ensure_form_token(Some(&sent.form_token))?;
    if sent.text.trim().is_empty() && sent.photo.is_empty() {
        return Err(ProblemDetails::unprocessable("There's nothing to add. Type a text or choose a photo.").into());
    }
    if !sent.photo.is_empty() && photo_extension(&sent.photo).is_none() {
        let why = "This isn't a photo that notes show. Use JPEG, PNG, WebP or GIF.";
        return Err(ProblemDetails::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why).into());
    }
    if sent.key.is_empty() {
        return Err(ProblemDetails::unprocessable("The form has no key. Reload the page and try again.").into());
    }
    let volume = caller.api.volume(None)?;
    let (state, browser) = (caller.api.state.clone(), caller.api.token.id.clone());
    let note = caller.api.perform_calls(move |calls| add_item(calls, &state, &browser, volume, sent)).await??;
    let wants_json = headers.get(header::ACCEPT).is_some_and(|accepted| accepted == "application/json");
    if wants_json {
        let url = file_url(&note.volume, &note.path);
        return Ok(Json(json!({"volume": note.volume, "path": note.path, "url": url})).into_response());
    }
    let (volume, path) = (encode_value(&note.volume), encode_value(&note.path));
    Ok(see_other(&format!("/?volume={volume}&added={path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn photos_are_known_by_their_bytes() {
        assert_eq!(photo_extension(b"\xff\xd8\xff\xe0"), Some("jpg"));
        assert_eq!(photo_extension(b"RIFF\0\0\0\0WEBPVP8 "), Some("webp"));
        for other in [b"<svg onload=x>".as_slice(), b"<!doctype html>", b"", b"GIF", b"%PDF-1.7"] {
            assert_eq!(photo_extension(other), None);
        }
        assert_eq!((size_words(MAX_TEXT_BYTES), size_words(MAX_PHOTO_BYTES)), ("64 kB".to_owned(), "16 MB".to_owned()));
    }
}
