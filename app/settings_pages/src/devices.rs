//! The devices page: lists paired devices, pairs one by a code or QR code, and revokes one.
//!
//! Blocking work (disk, keyring, network) runs on threads, and the page shows the results.

use crate::SettingsChange;
use anyhow::anyhow;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Sense, Ui, vec2};
use engine::Settings;
use host::peers::devices::{DeviceAccess, PairedDevice, now_millis, trusted_key_digits};
use host::peers::lan::LanVisibility;
use host::peers::pairing::Invitation;
use host::peers::pairing_flow::{self, PairingTarget, device_entry};
use host::peers::{DeviceId, qr};
use host::sync::devices::{
    existing_device_key, load_or_create_device_key, open_device_list, own_device_name, revoke_device,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;
use ui::setting_rows::{SettingsRows, text};
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{set_accessible_name, text_button};

/// Size of a module of the QR code, in points.
const QR_MODULE_SIZE: f32 = 4.0;
/// Name of the field for the key of a device whose runs are carried out.
const CARRIED_OUT_FIELD: &str = "Carry out runs of a device";

#[derive(Clone, Default)]
struct KnownDevices {
    /// This device's ID and where its key is stored, once it has a key.
    own: Option<(DeviceId, &'static str)>,
    name: String,
    others: Vec<(DeviceId, PairedDevice)>,
}

/// A pairing code that is shown.
struct PairingCode {
    code: String,
    until: i64,
    square: Option<qr::QrMatrix>,
}

/// A running offer to pair, with its code.
struct PairingOffer {
    shown: Receiver<PairingCode>,
    now: Option<PairingCode>,
    done: Receiver<anyhow::Result<String>>,
    cancelled: Arc<AtomicBool>,
}

impl Drop for PairingOffer {
    /// Invalidates the code when it's no longer visible.
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// State of the devices page beyond the session.
#[derive(Default)]
pub struct DeviceSettings {
    known: Option<anyhow::Result<KnownDevices>>,
    reading: Option<Receiver<anyhow::Result<KnownDevices>>>,
    offered: Option<PairingOffer>,
    /// A running operation, and its final message.
    busy: Option<Receiver<anyhow::Result<String>>>,
    /// The result of the last operation.
    said: Option<anyhow::Result<String>>,
    /// The address or code typed to join. It stays until it has paired, so that a slip can be corrected.
    at: String,
    /// Whether the running operation is a pairing by that code.
    is_joining: bool,
    /// The device that is about to be revoked.
    doomed: Option<DeviceId>,
    /// Whether the last key of a device whose runs are to be carried out wasn't one.
    is_wrong_key: bool,
}

/// Runs a function on its own thread, then wakes the window.
fn work<T: Send + 'static>(ctx: &egui::Context, work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = channel();
    let wake = ctx.clone();
    std::thread::spawn(move || {
        let _ = tell.send(work()); // nobody waits where the settings were closed
        wake.request_repaint();
    });
    told
}

fn read() -> anyhow::Result<KnownDevices> {
    let own = existing_device_key()?.map(|(key, place)| (key.id(), place.description()));
    let all = open_device_list()?.list()?;
    let others = all.into_iter().filter(|(id, _)| own.is_none_or(|(own, _)| own != *id)).collect();
    Ok(KnownDevices { own, name: own_device_name()?, others })
}

impl DeviceSettings {
    /// Draws the page.
    pub fn show(&mut self, lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
        let ctx = lines.ui.ctx().clone();
        self.hear(&ctx);
        let known = match &self.known {
            None => return lines.show_matching_row("Devices", "Reading the list…", |_| ()),
            Some(Err(why)) => {
                return lines.show_matching_row("Can't use the list of devices", &why.to_string(), |_| ());
            }
            Some(Ok(known)) => known.clone(),
        };
        let about = match known.own {
            Some((id, place)) => format!("Key {}, kept by {place}.", id.short_id()),
            None => "It gets a key when you first pair it.".to_owned(),
        };
        lines.show_matching_row("This device", &about, |ui| {
            if let Some(name) = text(ui, "Name of this device", &known.name, "a name") {
                self.busy = Some(work(ui.ctx(), move || rename(&name)));
            }
        });
        self.offer(lines);
        self.join(lines);
        if let Some(said) = &self.said {
            match said {
                Ok(words) => lines.show_matching_row("Done", words, |_| ()),
                Err(why) => lines.show_matching_row("That didn't work", &why.to_string(), |_| ()),
            }
        } else if self.busy.is_some() {
            lines.show_matching_row("Under way", "This takes a moment.", |_| ());
        }
        for (id, device) in &known.others {
            self.other(lines, *id, device);
        }
        if known.others.is_empty() {
            lines.show_matching_row("Other devices", "No device is paired yet.", |_| ());
        }
        self.show_carried_out_runs(lines, &settings.carries_out_runs_of, &known.others, changes);
    }

    /// Draws the devices whose runs are carried out here, and the field that adds one.
    fn show_carried_out_runs(
        &mut self,
        lines: &mut SettingsRows<'_>,
        keys: &[String],
        others: &[(DeviceId, PairedDevice)],
        changes: &mut Vec<SettingsChange>,
    ) {
        let about = match self.is_wrong_key {
            true => "That's not a key. Enter the 16 digits that the device shows in its settings, at This device.",
            false => {
                "Runs that this device sends over a hub work here, with your models. Its rules say what they may do, \
                 so enter only keys of your own devices, as their settings show them."
            }
        };
        lines.show_matching_row(CARRIED_OUT_FIELD, about, |ui| {
            let Some(word) = text(ui, CARRIED_OUT_FIELD, "", "2522 8a34 c6d4 df45") else { return };
            let digits = trusted_key_digits(&word);
            self.is_wrong_key = digits.is_none();
            if let Some(digits) = digits.filter(|digits| !keys.contains(digits)) {
                changes.push(SettingsChange::CarryOutRunsOf([keys, &[digits]].concat()));
            }
        });
        for key in keys {
            let known = others.iter().find(|(id, _)| id.to_string().starts_with(key.as_str()));
            let short = key.as_bytes().chunks(4).take(4).map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
            let name = known.map_or_else(|| short.clone(), |(_, device)| device.name.clone());
            lines.show_matching_row(&format!("Runs of {name}"), &format!("Key {short}."), |ui| {
                if text_button(ui, &format!("Stop runs of {name}"), false).clicked() {
                    let rest = keys.iter().filter(|other| *other != key).cloned().collect();
                    changes.push(SettingsChange::CarryOutRunsOf(rest));
                }
            });
        }
    }

    /// Processes results from threads.
    fn hear(&mut self, ctx: &egui::Context) {
        if self.known.is_none() && self.reading.is_none() {
            self.reading = Some(work(ctx, read));
        }
        if let Some(known) = self.reading.as_ref().and_then(|reading| reading.try_recv().ok()) {
            (self.known, self.reading) = (Some(known), None);
        }
        let ended = |told: &Receiver<anyhow::Result<String>>| match told.try_recv() {
            Ok(said) => Some(said),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(anyhow!("It stopped before it finished. Try again."))),
        };
        let busy = self.busy.as_ref().and_then(ended);
        let offered = self.offered.as_ref().and_then(|offered| ended(&offered.done));
        if let Some(said) = &busy {
            self.busy = None;
            if std::mem::take(&mut self.is_joining) && said.is_ok() {
                self.at.clear();
            }
        }
        if offered.is_some() {
            self.offered = None;
        }
        if let Some(said) = busy.or(offered) {
            self.said = Some(said);
            self.reading = Some(work(ctx, read));
        }
    }

    /// Draws the offer of a pairing code for another device on this network.
    fn offer(&mut self, lines: &mut SettingsRows<'_>) {
        let Some(offered) = &mut self.offered else {
            let about = "Shows a code for another device on this network; no server is needed.";
            lines.show_matching_row("Pair a device", about, |ui| {
                if text_button(ui, "Show a code", false).clicked() {
                    (self.said, self.offered) = (None, Some(start_offer(ui.ctx())));
                }
            });
            return;
        };
        if let Ok(shown) = offered.shown.try_recv() {
            offered.now = Some(shown);
        }
        let about = match &offered.now {
            None => "Making the code…".to_owned(),
            Some(shown) => {
                let minutes = (shown.until - now_millis()).max(0) / 60_000 + 1;
                let unit = if minutes == 1 { "minute" } else { "minutes" };
                let may = pairing_flow::LAN_PAIRING_RIGHTS.describe();
                format!(
                    "On the other device: tracebook pair --code {}. For {minutes} more {unit}, once. It {may}.",
                    shown.code
                )
            }
        };
        let title = offered.now.as_ref().map_or_else(|| "Code".to_owned(), |shown| format!("Code {}", shown.code));
        let mut cancel = false;
        lines.show_matching_row(&title, &about, |ui| cancel = text_button(ui, "Cancel", false).clicked());
        if let Some(square) = offered.now.as_ref().and_then(|shown| shown.square.as_ref()) {
            draw_qr_code(lines.ui, square, "QR code with the code and this device's key");
        }
        if cancel {
            self.offered = None;
        } else {
            // Updates the minutes that are left.
            lines.ui.ctx().request_repaint_after(Duration::from_secs(15));
        }
    }

    /// Draws the field for joining a hub, or a device that shows a code.
    fn join(&mut self, lines: &mut SettingsRows<'_>) {
        let promised = self.at.parse::<Invitation>().ok().and_then(|invited| invited.rights);
        let about = match promised {
            Some(rights) => format!("By this invitation, this device {} there.", rights.describe()),
            None => "A code alone, or with the hub's address before it.".to_owned(),
        };
        lines.show_matching_row("Join with a code", &about, |ui| {
            let style = theme::small();
            let ready = self.busy.is_none() && !self.at.trim().is_empty();
            let clicked = text_button(ui, "Join", false).clicked();
            let hint =
                egui::RichText::new("wss://… 1234-5678").font(style.font.clone()).color(ThemeColors::of(ui).muted);
            let field = egui::TextEdit::singleline(&mut self.at)
                .id_salt("code")
                .font(style.font)
                .hint_text(hint)
                .desired_width(200.0);
            let response = ui.add(field.margin(egui::Margin::symmetric(8, 6))).accessible_name("Join with a code");
            let entered = response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
            if ready && (clicked || entered) {
                let at = self.at.clone();
                (self.said, self.is_joining) = (None, true);
                self.busy = Some(work(ui.ctx(), move || join(&at)));
            }
        });
    }

    fn other(&mut self, lines: &mut SettingsRows<'_>, id: DeviceId, device: &PairedDevice) {
        let rights = match device.access {
            DeviceAccess::None => "It sees nothing.",
            DeviceAccess::Read => "It reads.",
            DeviceAccess::Write => "It reads and writes.",
        };
        let doomed = self.doomed == Some(id);
        let about = match (&device.address, device.is_authorized()) {
            (_, false) => "Revoked. The device keeps what it has received; that can't be undone.".to_owned(),
            (_, true) if doomed => {
                "Disconnected within a second; it keeps what it has received. There’s no undo, only pairing again."
                    .to_owned()
            }
            (Some(address), true) => format!("A hub at {address}. {}", id.short_id()),
            (None, true) => format!("{rights} {}", id.short_id()),
        };
        lines.show_matching_row(&device.name, &about, |ui| {
            if !device.is_authorized() || self.busy.is_some() {
                return;
            }
            if !doomed {
                if text_button(ui, &format!("Revoke {}", device.name), false).clicked() {
                    self.doomed = Some(id);
                }
                return;
            }
            if text_button(ui, "Keep it", false).clicked() {
                self.doomed = None;
            }
            if text_button(ui, &format!("Revoke {} now", device.name), false).clicked() {
                let name = device.name.clone();
                (self.said, self.doomed) = (None, None);
                self.busy = Some(work(ui.ctx(), move || revoked(id, &name)));
            }
        });
    }
}

fn rename(name: &str) -> anyhow::Result<String> {
    let (own, devices) = (load_or_create_device_key()?.0, open_device_list()?);
    if devices.update_device(own.id(), |device| name.clone_into(&mut device.name)).is_err() {
        devices.pair(own.id(), device_entry(&pairing_flow::device_card(&own, name), DeviceAccess::Write, true))?;
    }
    Ok(format!("This device is called “{}” when it is paired next.", name.trim()))
}

fn revoked(id: DeviceId, name: &str) -> anyhow::Result<String> {
    let deaf: Vec<String> =
        revoke_device(id)?.into_iter().filter(|(_, why)| why.is_some()).map(|(hub, _)| hub).collect();
    Ok(match deaf.is_empty() {
        true => format!("Revoked {name}. It keeps what it has received."),
        false => format!("{name} is revoked here. Not told: {}; revoke it there, too.", deaf.join(", ")),
    })
}

fn start_offer(ctx: &egui::Context) -> PairingOffer {
    let cancelled = Arc::new(AtomicBool::new(false));
    let (tell, shown) = channel();
    let (wake, stop) = (ctx.clone(), Arc::clone(&cancelled));
    let done = work(ctx, move || {
        let (own, devices) = (load_or_create_device_key()?.0, open_device_list()?);
        let show = |invitation: &Invitation, offer: &host::peers::pairing::OneTimeCode| {
            let square = qr::QrMatrix::new(&invitation.to_string()).ok();
            // If the receiver is gone, the code is no longer needed.
            let _ = tell.send(PairingCode { code: offer.code(), until: offer.expires_at(), square });
            wake.request_repaint();
        };
        let cancelled = || stop.load(Ordering::Relaxed);
        let met = pairing_flow::offer_code(
            &own,
            &own_device_name()?,
            &devices,
            LanVisibility::Local,
            show,
            cancelled,
            |_| (),
        )?;
        Ok(format!("Paired with {} ({}).", met.name, met.device.short_id()))
    });
    PairingOffer { shown, now: None, done, cancelled }
}

fn join(at: &str) -> anyhow::Result<String> {
    let (own, devices) = (load_or_create_device_key()?.0, open_device_list()?);
    let (whom, code, promised) = match at.parse::<Invitation>() {
        Ok(invited) => (invited.at.parse()?, invited.code, (Some(invited.key), invited.rights)),
        Err(_) => match at.trim().split_once(char::is_whitespace) {
            Some((address, code)) if address.contains(':') => (address.parse()?, code.to_owned(), (None, None)),
            Some(_) | None => (PairingTarget::Lan(Vec::new()), at.to_owned(), (None, None)),
        },
    };
    let met = pairing_flow::join_by_code(&whom, promised, &code, &own, &own_device_name()?, &devices)?;
    let may = met.rights().map_or_else(String::new, |rights| format!(" This device {} there.", rights.describe()));
    Ok(format!("Paired with {} ({}).{may}", met.name, met.device.short_id()))
}

/// Draws a QR code, dark on light in every theme since cameras need that. `name` is for screen readers.
pub fn draw_qr_code(ui: &mut Ui, square: &qr::QrMatrix, name: &str) {
    let side = square.modules_per_side as f32 * QR_MODULE_SIZE + 4.0 * QR_MODULE_SIZE * 2.0;
    ui.add_space(space::M);
    let (rect, response) = ui.allocate_exact_size(vec2(side, side), Sense::hover());
    set_accessible_name(&response, Role::Image, name);
    let colours = ThemeColors::for_dark_mode(false);
    ui.painter().rect_filled(rect, theme::CONTROL_CORNER, colours.raised);
    let first = rect.min + vec2(4.0 * QR_MODULE_SIZE, 4.0 * QR_MODULE_SIZE);
    for (at, _) in square.dark.iter().enumerate().filter(|(_, dark)| **dark) {
        let place = first
            + vec2(
                (at % square.modules_per_side) as f32 * QR_MODULE_SIZE,
                (at / square.modules_per_side) as f32 * QR_MODULE_SIZE,
            );
        ui.painter().rect_filled(
            egui::Rect::from_min_size(place, vec2(QR_MODULE_SIZE, QR_MODULE_SIZE)),
            0.0,
            colours.ink,
        );
    }
    ui.add_space(space::M);
}
