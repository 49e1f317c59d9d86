//! The dialog that asks what a note's kernel may access.

use anyhow::Context;
use engine::KernelGrant;
use std::path::PathBuf;
use ui::text::absolute;

/// Fields of the dialog that grants a note's cells access: one path per line.
#[derive(Default)]
pub(crate) struct KernelPermissionsForm {
    pub(crate) read: String,
    pub(crate) write: String,
    pub(crate) network: bool,
    /// The Python that the user has chosen for the note, which stays.
    interpreter: Option<PathBuf>,
}

impl KernelPermissionsForm {
    pub(crate) fn of(grant: &KernelGrant) -> KernelPermissionsForm {
        let lines =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join("\n");
        KernelPermissionsForm {
            read: lines(&grant.read),
            write: lines(&grant.write),
            network: grant.network,
            interpreter: grant.interpreter.clone(),
        }
    }

    /// Returns the permissions that the fields describe.
    ///
    /// # Errors
    /// Returns an error with a message for the user if a line isn't an absolute path.
    pub(crate) fn grant(&self) -> anyhow::Result<KernelGrant> {
        let paths = |text: &str| -> anyhow::Result<Vec<PathBuf>> {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let whole = |line: &str| {
                absolute(line).with_context(|| format!("{line}: give the whole path, beginning with / or ~."))
            };
            lines.map(whole).collect()
        };
        Ok(KernelGrant {
            network: self.network,
            read: paths(&self.read)?,
            write: paths(&self.write)?,
            interpreter: self.interpreter.clone(),
        })
    }
}
