//! Pairing of a phone with the server for other programs: a link, also as a QR code, which expires by itself.

use host::peers::devices::now_millis;
use host::peers::qr::QrMatrix;
use program_server::ProgramServer;
use settings_pages::devices::draw_qr_code;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;
use ui::setting_rows::SettingsRows;
use ui::widgets::text_button;

/// For how long a code can be used. The server counts from when it makes the code, which is a little later.
const CODE_LIFETIME_MILLIS: i64 = 600_000;
/// Time between updates of the minutes that are left.
const COUNTDOWN_INTERVAL: Duration = Duration::from_secs(15);
const MINUTE_MILLIS: i64 = 60_000;

/// A link that pairs one phone.
struct PhoneLink {
    url: String,
    /// `None` if the link is too long for a QR code.
    square: Option<QrMatrix>,
    /// When it expires, in milliseconds since 1970.
    until: i64,
}

/// State of the pairing of a phone.
#[derive(Default)]
pub(super) struct PhonePairing {
    /// A link that is being made, and when it expires.
    requested: Option<(Receiver<anyhow::Result<String>>, i64)>,
    link: Option<PhoneLink>,
    /// Why there's no link.
    trouble: Option<String>,
}

impl PhonePairing {
    /// Hides the code, as when the server can't be reached by phones.
    pub(super) fn stop(&mut self) {
        *self = PhonePairing::default();
    }

    /// Draws the button that shows a code, or the code.
    pub(super) fn show(&mut self, lines: &mut SettingsRows<'_>, server: &ProgramServer) {
        self.receive_link();
        let now = now_millis();
        let Some(link) = self.link.as_ref().filter(|link| link.until > now) else {
            return self.show_button(lines, server);
        };
        let minutes = (link.until - now) / MINUTE_MILLIS + 1;
        let unit = if minutes == 1 { "minute" } else { "minutes" };
        let about = format!("Works once, for {minutes} more {unit}. Scan it, or open {}", link.url);
        let (shown_before, mut is_hidden) = (lines.shown, false);
        lines.show_matching_row("Pair a phone", &about, |ui| {
            is_hidden = text_button(ui, "Hide code", false).clicked();
            if text_button(ui, "Copy link", false).clicked() {
                ui.ctx().copy_text(link.url.clone());
            }
        });
        if let Some(square) = link.square.as_ref().filter(|_| lines.shown > shown_before) {
            draw_qr_code(lines.ui, square, "QR code that pairs a phone");
        }
        lines.ui.ctx().request_repaint_after(COUNTDOWN_INTERVAL);
        if is_hidden {
            self.stop();
        }
    }

    fn show_button(&mut self, lines: &mut SettingsRows<'_>, server: &ProgramServer) {
        let is_requested = self.requested.is_some();
        let about = match &self.trouble {
            _ if is_requested => "Making the code…",
            Some(why) => why.as_str(),
            None if self.link.is_some() => "The code has expired. Show another one.",
            None => "Shows a code to scan. The phone's browser asks you to trust the certificate.",
        };
        let mut is_wanted = false;
        lines.show_matching_row("Pair a phone", about, |ui| {
            is_wanted = !is_requested && text_button(ui, "Show code", false).clicked();
        });
        if is_wanted {
            self.stop();
            self.requested = Some((server.pair_browser("Phone"), now_millis() + CODE_LIFETIME_MILLIS));
        }
    }

    fn receive_link(&mut self) {
        let Some((link, until)) = &self.requested else { return };
        match link.try_recv() {
            Ok(Ok(url)) => self.link = Some(PhoneLink { square: QrMatrix::new(&url).ok(), url, until: *until }),
            Ok(Err(why)) => self.trouble = Some(ui::text::sentence(&why.to_string())),
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => self.trouble = Some("There is no code. Try again.".to_owned()),
        }
        self.requested = None;
    }
}
