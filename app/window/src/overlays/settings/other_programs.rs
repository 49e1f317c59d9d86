//! The page for other programs: the switch of the server, where it's reached, and its web page.

use super::SettingsChange;
use eframe::egui;
use engine::Settings;
use host::program_server::{ProgramServer, ServerPhase};
use std::sync::mpsc::{Receiver, TryRecvError};
use ui::setting_rows::{SettingsRows, text, toggle_switch};
use ui::widgets::text_button;

/// State of the page beyond the settings.
pub(super) struct OtherProgramSettings {
    server: ProgramServer,
    /// A link for the browser that is being made.
    link: Option<Receiver<anyhow::Result<String>>>,
    /// Why there's no link.
    trouble: Option<String>,
}

impl OtherProgramSettings {
    pub(super) fn new(server: ProgramServer) -> OtherProgramSettings {
        OtherProgramSettings { server, link: None, trouble: None }
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
        match self.server.phase() {
            ServerPhase::Off => {}
            ServerPhase::Starting => lines.show_matching_row("Server", "It starts.", |_| ()),
            ServerPhase::Failed(why) => {
                lines.show_matching_row("The server doesn't run", &ui::text::sentence(&why), |ui| {
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
                (self.link, self.trouble) = (Some(self.server.pair_browser()), None);
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
