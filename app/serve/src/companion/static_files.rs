//! What holds nothing of the user: the style, the scripts, icons, the manifest, and the page for when there's no
//! network.

use super::capture_pages::{capture_fields, kept_captures};
use super::page_layout::bare_page;
use crate::http_state::HttpState;
use axum::Router;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::html;
use std::sync::{Arc, LazyLock};
use typeset::fonts::WEB_FONT_FILES;
use typeset::html::NOTE_STYLE;
use typeset::tints::{DARK_TINTS, LIGHT_TINTS};

const SCRIPT: &str = include_str!("assets/companion.js");
const STYLE: &str = include_str!("assets/companion.css");
const SERVICE_WORKER: &str = include_str!("assets/service_worker.js");
const MANIFEST: &str = include_str!("assets/manifest.json");
const ICON: &str = include_str!("../../../../assets/icon/tracebook.svg");
const LARGE_ICON: &[u8] = include_bytes!("../../../../assets/icon/tracebook-256.png");

/// The style of a component's frame.
pub(super) const FRAME_STYLE: &str = "html{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}\
    body{margin:1rem}.component-problem{border-left:3px solid #c4473a;padding-left:.75rem}";

/// How long browsers keep a file whose address changes with it, and one whose address stays.
const KEPT_LONG: &str = "public, max-age=31536000, immutable";
const KEPT_SHORTLY: &str = "public, max-age=3600";

/// The whole style: the window's colors, how notes look, and the pages around them.
static WHOLE_STYLE: LazyLock<String> = LazyLock::new(|| {
    let (light, dark) = (LIGHT_TINTS.css_variables(), DARK_TINTS.css_variables());
    format!(":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{NOTE_STYLE}\n{STYLE}")
});

static ASSET_VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    hasher.update(WHOLE_STYLE.as_bytes()).update(SCRIPT.as_bytes());
    hasher.finalize().to_hex().chars().take(12).collect()
});

/// Returns the address of the style or the script, which changes with them.
pub(super) fn asset_url(name: &str) -> String {
    format!("/assets/{name}?v={}", *ASSET_VERSION)
}

/// Returns whether a path holds nothing of the user.
pub(super) fn is_static_path(path: &str) -> bool {
    path.starts_with("/assets/")
        || matches!(path, "/offline" | "/service-worker.js" | "/manifest.webmanifest" | "/favicon.ico")
}

fn served(media: &'static str, kept: &'static str, bytes: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, media), (header::CACHE_CONTROL, kept)], bytes).into_response()
}

async fn style() -> Response {
    served("text/css; charset=utf-8", KEPT_LONG, WHOLE_STYLE.as_str())
}

async fn script() -> Response {
    served("text/javascript; charset=utf-8", KEPT_LONG, SCRIPT)
}

async fn icon() -> Response {
    served("image/svg+xml", KEPT_SHORTLY, ICON)
}

async fn large_icon() -> Response {
    served("image/png", KEPT_SHORTLY, LARGE_ICON)
}

/// A font's address stays, and so does the font.
async fn font(at: usize) -> Response {
    served("font/ttf", KEPT_LONG, WEB_FONT_FILES.get(at).copied().unwrap_or_default())
}

async fn manifest() -> Response {
    served("application/manifest+json", KEPT_SHORTLY, MANIFEST)
}

/// The service worker names the files that it keeps, so it changes when they do.
async fn service_worker() -> Response {
    let text = SERVICE_WORKER.replace("ASSET_VERSION", &ASSET_VERSION);
    let allowed = (HeaderName::from_static("service-worker-allowed"), "/");
    ([allowed], served("text/javascript; charset=utf-8", "no-cache", text)).into_response()
}

/// The page for when the server can't be reached. It captures, and the script sends that later.
async fn offline() -> Response {
    let content = html! {
        h1 { "The server can't be reached" }
        p { "Texts and photos that you add here stay on this device. They're sent once, when it can be reached again." }
        form #capture-form class="capture" data-offline="true" method="post" action="/capture"
            enctype="multipart/form-data" {
            (capture_fields("Keep"))
        }
        (kept_captures())
        p { a class="button" href="/" { "Try again" } }
    };
    bare_page(StatusCode::OK, "Offline", &content)
}

/// Returns the static files.
pub(super) fn static_router() -> Router<Arc<HttpState>> {
    Router::new()
        .route("/assets/companion.css", get(style))
        .route("/assets/companion.js", get(script))
        .route("/assets/icon.svg", get(icon))
        .route("/assets/icon-256.png", get(large_icon))
        .route("/assets/inter-regular.ttf", get(|| font(0)))
        .route("/assets/inter-semibold.ttf", get(|| font(1)))
        .route("/assets/jetbrains-mono.ttf", get(|| font(2)))
        .route("/favicon.ico", get(large_icon))
        .route("/manifest.webmanifest", get(manifest))
        .route("/service-worker.js", get(service_worker))
        .route("/offline", get(offline))
}
