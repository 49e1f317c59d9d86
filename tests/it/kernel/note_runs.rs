//! Notes that run in the science kernel and in an environment, whose outputs are compared with what is recorded.

use crate::program::{House, finish_within};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time limit of a note. The longest takes half a minute; five sessions on two cores make it slower.
pub(super) const NOTE_TIMEOUT: Duration = Duration::from_secs(300);

/// The folder that an environment variable names, which must be set in CI.
pub(super) fn folder_of(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    let is_ci = std::env::var_os("TRACEBOOK_CI").is_some();
    assert!(folder.is_some() || !is_ci, "{variable} must be set where TRACEBOOK_CI is");
    if folder.is_none() {
        eprintln!("skipped: {variable} isn't set");
    }
    folder
}

/// Notes of one folder.
pub(super) struct NoteRuns {
    /// The folder below `tests/data`.
    pub(super) folder: &'static str,
    /// Lists whatever isn't as expected of a note: the kernel, the note's name, and the lines that were printed.
    pub(super) compare: fn(&str, &str, &[Value]) -> Vec<String>,
}

impl NoteRuns {
    pub(super) fn data(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(self.folder)
    }

    pub(super) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.data().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// Runs these notes with a kernel and lists whatever isn't as expected.
    fn differences(&self, house: &House, names: &[&str], kernel: &str, variables: &[(&str, &Path)]) -> Vec<String> {
        let mut found = Vec::new();
        for name in names {
            let mut command = house.command(&["run", name, "--json", "--kernel", kernel]);
            command.envs(variables.iter().copied());
            let done = finish_within(command, b"", NOTE_TIMEOUT);
            if done.code != 0 || !done.err.is_empty() {
                found.push(format!("{name} ends with {}: {}", done.code, done.err));
            }
            found.extend((self.compare)(kernel, name, &done.lines()));
        }
        found
    }

    fn house_with(&self, names: &[&str]) -> House {
        let notes: Vec<(String, String)> =
            names.iter().map(|name| format!("{name}.md")).map(|file| (file.clone(), self.read(&file))).collect();
        House::with(&notes.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>())
    }

    #[track_caller]
    pub(super) fn check_in_science(&self, names: &[&str]) {
        let Some(pack) = folder_of("TRACEBOOK_SCIENCE_KERNELS") else { return };
        let found = self.differences(&self.house_with(names), names, "science", &[("TRACEBOOK_KERNELS", &pack)]);
        assert!(found.is_empty(), "{}", found.join("\n\n"));
    }

    #[cfg(target_os = "linux")]
    #[track_caller]
    pub(super) fn check_in_environment(&self, names: &[&str]) {
        let Some(environment) = folder_of("TRACEBOOK_TUTORIALS_ENVIRONMENT") else { return };
        let house = self.house_with(names);
        std::os::unix::fs::symlink(environment, house.path("notes/.venv")).expect("linked");
        let found = self.differences(&house, names, "environment", &[]);
        assert!(found.is_empty(), "{}", found.join("\n\n"));
    }
}
