//! TEMP The window without a screen.
use super::ms;
use engine::{Command, Session};
use host::Driver;
use host::measure;
use std::time::{Duration, Instant};

pub(super) struct Stage {
    driver: Driver,
}
pub(super) struct Drawn {
    pub(super) pump: Duration,
    pub(super) pump_cpu: Duration,
}
impl Stage {
    pub(super) fn new(driver: Driver) -> Stage {
        Stage { driver }
    }
    pub(super) fn session(&self) -> &Session {
        self.driver.session()
    }
    pub(super) fn command(&mut self, command: Command) -> Result<(), String> {
        self.driver.command(command).map_err(|reject| reject.0)
    }
    pub(super) fn frame(&mut self, _events: Vec<eframe::egui::Event>) -> Drawn {
        let (begun, cpu) = (Instant::now(), measure::thread_cpu());
        self.driver.pump(Duration::from_millis(4));
        let _ = ms;
        Drawn { pump: begun.elapsed(), pump_cpu: measure::thread_cpu() - cpu }
    }
    pub(super) fn close(self) -> Result<(), String> {
        self.driver.close()
    }
}
