//! The page for other programs: the switch of the server, where it's reached, its web page, and phones.

use super::SettingsChange;
use super::phone_pairing::PhonePairing;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use eframe::egui;
use engine::Settings;
use program_server::{ProgramServer, ServedAddresses, ServerPhase};
use std::sync::mpsc::{Receiver, TryRecvError};
use ui::setting_rows::{SettingsRows, text, toggle_switch};
use ui::widgets::text_button;

const DEVICES_SWITCH: &str = "Phones and other devices on this network";

/// Returns the options with which `tracebook serve` runs as the settings say.
pub(crate) fn server_options(settings: &Settings) -> Vec<String> {
    let mut address = settings.server_address.clone();
    if !settings.serves_devices {
        return vec!["--listen".to_owned(), address];
    }
    // Other devices can't reach an address of this device alone.
    if let Some(own) = address.parse::<SocketAddr>().ok().filter(|own| own.ip().is_loopback()) {
        let all = if own.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        address = SocketAddr::new(all, own.port()).to_string();
    }
    vec!["--tls".to_owned(), "--listen".to_owned(), address]
}

/// State of the page beyond the settings.
pub(super) struct OtherProgramSettings {
    server: ProgramServer,
    /// A link for the browser that is being made.
    link: Option<Receiver<anyhow::Result<String>>>,
    /// Why there's no link.
    trouble: Option<String>,
    phone: PhonePairing,
}

impl OtherProgramSettings {
    pub(super) fn new(server: ProgramServer) -> OtherProgramSettings {
        OtherProgramSettings { server, link: None, trouble: None, phone: PhonePairing::default() }
    }

    /// Draws the page.
    pub(super) fn show(
        &mut self,
        lines: &mut SettingsRows<'_>,
        settings: &Settings,
        changes: &mut Vec<SettingsChange>,
    ) {
        self.receive_link(lines.ui.ctx());
        lines.show_matching_row(
            "Server for other programs",
            "REST, MCP and a web page, and gRPC if built in. Your rules and approvals apply.",
            |ui| {
                if toggle_switch(ui, "Server for other programs", settings.serves_programs) {
                    changes.push(SettingsChange::ServePrograms(!settings.serves_programs));
                }
            },
        );
        lines.show_matching_row("Server address", "Address and port. 127.0.0.1 is only this device.", |ui| {
            if let Some(address) = text(ui, "Server address", &settings.server_address, "127.0.0.1:7610") {
                changes.push(SettingsChange::ServerAddress(address.trim().to_owned()));
            }
        });
        let serves_devices = settings.serves_programs && settings.serves_devices;
        let about = "With TLS, by a certificate of its own. Programs on this device use https then, too.";
        lines.show_matching_row(DEVICES_SWITCH, about, |ui| {
            if toggle_switch(ui, DEVICES_SWITCH, serves_devices) {
                changes.push(SettingsChange::ServeDevices(!serves_devices));
            }
        });
        let phase = self.server.phase();
        let has_tls = |places: &ServedAddresses| places.url.as_ref().is_some_and(|url| url.starts_with("https://"));
        match &phase {
            ServerPhase::On(places) if serves_devices && has_tls(places) => self.phone.show(lines, &self.server),
            _ => self.phone.stop(),
        }
        match phase {
            ServerPhase::Off => {}
            ServerPhase::Starting => lines.show_matching_row("Server", "Starting…", |_| ()),
            ServerPhase::Failed(why) => {
                lines.show_matching_row("The server isn't running", &ui::text::sentence(&why), |ui| {
                    if text_button(ui, "Try again", false).clicked() {
                        self.server.try_again();
                    }
                });
            }
            ServerPhase::On(places) => {
                for (title, place) in [("Running at", &places.url), ("Unix socket", &places.socket)] {
                    let Some(place) = place else { continue };
                    lines.show_matching_row(title, place, |ui| {
                        if text_button(ui, "Copy", false).clicked() {
                            ui.ctx().copy_text(place.clone());
                        }
                    });
                }
                if places.url.is_some() {
                    self.show_web_page(lines);
                }
                let tokens = "Each program needs one, from “tracebook tokens create NAME”.";
                lines.show_matching_row("Tokens", tokens, |_| ());
            }
        }
    }

    fn show_web_page(&mut self, lines: &mut SettingsRows<'_>) {
        let is_pairing = self.link.is_some();
        let about = match &self.trouble {
            _ if is_pairing => "Pairing your browser…".to_owned(),
            Some(why) => why.clone(),
            None => "Runs, approvals, notes and search. Your browser is paired.".to_owned(),
        };
        lines.show_matching_row("Web page", &about, |ui| {
            if !is_pairing && text_button(ui, "Open in browser", false).clicked() {
                (self.link, self.trouble) = (Some(self.server.pair_browser("Browser")), None);
            }
        });
    }

    fn receive_link(&mut self, ctx: &egui::Context) {
        let Some(link) = &self.link else { return };
        match link.try_recv() {
            Ok(Ok(link)) => ctx.open_url(egui::OpenUrl::new_tab(link)),
            Ok(Err(why)) => self.trouble = Some(ui::text::sentence(&why.to_string())),
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => self.trouble = Some("There is no link. Try again.".to_owned()),
        }
        self.link = None;
    }
}
