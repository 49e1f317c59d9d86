//! Stands for a share of the processor on systems where nothing keeps it. The configuration refuses it there.

/// A share of the processor, which there isn't.
#[derive(Debug)]
pub enum MissingCpuShare {}

impl MissingCpuShare {
    /// Refuses to limit a process group.
    ///
    /// # Errors
    /// Always returns an error.
    pub fn new(_group: u32, _percent: u64) -> std::io::Result<MissingCpuShare> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Does nothing.
    pub fn update(&mut self) {
        match *self {}
    }
}
