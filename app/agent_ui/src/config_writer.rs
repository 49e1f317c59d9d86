//! Changes of `config.yaml` that controls of the window make, on a thread of their own.

use anyhow::anyhow;
use eframe::egui;
use host::maintenance::config_edit::{ConfigChange, change_config};
use serde_json::Value;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Changes the configuration of a workspace, and keeps why the last change failed.
#[derive(Default)]
pub struct ConfigWriter {
    running: Option<Receiver<anyhow::Result<()>>>,
    trouble: Option<String>,
}

/// Returns a change that sets a value of the configuration; `names` are the keys that lead to it.
pub fn config_value(names: &[&str], value: Value) -> ConfigChange {
    (names.iter().map(|name| (*name).to_owned()).collect(), Some(value))
}

impl ConfigWriter {
    /// Makes changes in a workspace.
    pub fn change(&mut self, ctx: &egui::Context, workspace: &Path, changes: Vec<ConfigChange>) {
        let (tell, told) = channel();
        let (wake, folder) = (ctx.clone(), workspace.to_owned());
        std::thread::spawn(move || {
            // If the page was closed, the result is no longer needed.
            let _ = tell.send(change_config(&folder, &changes).map(drop));
            wake.request_repaint();
        });
        self.running = Some(told);
    }

    /// Receives the result of a change. Returns whether one has just ended; the agents' setup must then be read again.
    pub fn receive(&mut self) -> bool {
        let Some(running) = &self.running else { return false };
        let made = match running.try_recv() {
            Ok(made) => made,
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => Err(anyhow!("The configuration couldn't be changed. Try again.")),
        };
        (self.running, self.trouble) = (None, made.err().map(|why| ui::text::sentence(&why.to_string())));
        true
    }

    /// Returns why the last change failed.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Sets or clears the message about a change that can't be made.
    pub fn set_trouble(&mut self, trouble: Option<String>) {
        self.trouble = trouble;
    }
}
