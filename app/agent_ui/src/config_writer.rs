//! Changes of `config.yaml` that controls of the window make, one after the other on a thread of their own.

use anyhow::anyhow;
use eframe::egui;
use host::maintenance::config_edit::{ConfigChange, change_config};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// A change of the configuration that is made on the thread.
type ConfigJob = Box<dyn FnOnce() -> anyhow::Result<()> + Send>;

/// The thread that makes changes: where they go, and their results in the same order.
struct ConfigThread {
    jobs: Sender<ConfigJob>,
    results: Receiver<anyhow::Result<()>>,
}

/// Changes the configuration of a workspace, and keeps why the last change failed.
#[derive(Default)]
pub struct ConfigWriter {
    thread: Option<ConfigThread>,
    /// Rows of the settings that wait for the result of their change.
    waiting: VecDeque<String>,
    /// The row whose change failed, and why.
    trouble: Option<(String, String)>,
}

/// Returns a change that sets a value of the configuration; `names` are the keys that lead to it.
pub fn config_value(names: &[&str], value: Value) -> ConfigChange {
    (names.iter().map(|name| (*name).to_owned()).collect(), Some(value))
}

fn start_thread(ctx: &egui::Context) -> ConfigThread {
    let (jobs, next_job) = channel::<ConfigJob>();
    let (tell, results) = channel();
    let wake = ctx.clone();
    // It ends after the last change when the page is closed.
    std::thread::spawn(move || {
        for job in next_job {
            // If the page was closed, the result is no longer needed.
            let _ = tell.send(job());
            wake.request_repaint();
        }
    });
    ConfigThread { jobs, results }
}

impl ConfigWriter {
    /// Makes changes in a workspace.
    pub fn change(&mut self, ctx: &egui::Context, workspace: &Path, changes: Vec<ConfigChange>) {
        let folder = workspace.to_owned();
        self.run(ctx, "", move || change_config(&folder, &changes).map(drop));
    }

    /// Runs a change that a row of the settings asked for. It begins when those before it have ended, so it may read
    /// what they wrote.
    pub fn run(&mut self, ctx: &egui::Context, row: &str, job: impl FnOnce() -> anyhow::Result<()> + Send + 'static) {
        let thread = self.thread.get_or_insert_with(|| start_thread(ctx));
        self.waiting.push_back(row.to_owned());
        if thread.jobs.send(Box::new(job)).is_err() {
            ctx.request_repaint(); // the thread has ended, which `receive` reports
        }
    }

    /// Receives results of changes. Returns whether one has just ended; the agents' setup must then be read again.
    pub fn receive(&mut self) -> bool {
        let mut has_ended = false;
        while let Some(thread) = self.thread.as_ref().filter(|_| !self.waiting.is_empty()) {
            let made = match thread.results.try_recv() {
                Ok(made) => made,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.thread = None;
                    Err(anyhow!("The configuration couldn't be changed. Try again."))
                }
            };
            let row = self.waiting.pop_front().unwrap_or_default();
            self.trouble = made.err().map(|why| (row, ui::text::sentence(&why.to_string())));
            has_ended = true;
        }
        if self.thread.is_none() {
            self.waiting.clear();
        }
        has_ended
    }

    /// Returns why the last change failed.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|(_, why)| why.as_str())
    }

    /// Returns why the last change failed, if this row of the settings asked for it.
    pub fn trouble_of(&self, row: &str) -> Option<&str> {
        self.trouble.as_ref().filter(|(of, _)| of == row).map(|(_, why)| why.as_str())
    }

    /// Sets or clears the message about a change that can't be made.
    pub fn set_trouble(&mut self, trouble: Option<String>) {
        self.trouble = trouble.map(|why| (String::new(), why));
    }

    /// Says at a row of the settings that its change can't be made.
    pub fn refuse(&mut self, row: &str, why: String) {
        self.trouble = Some((row.to_owned(), why));
    }
}
