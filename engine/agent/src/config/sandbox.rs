//! Limits of the sandbox, from `config.yaml` and from the front matter of agents: memory, processor time, processes,
//! time, size of files, and paths that are hidden or can only be read.

use super::values;
use serde::{Deserialize, Deserializer, de::Error};

/// Smallest memory limit in megabytes: less starts no interpreter.
const MIN_MEMORY_MB: u64 = 64;
/// Largest limit of memory and file sizes in megabytes: a terabyte.
const MAX_MEGABYTES: u64 = 1 << 20;
/// Largest limit of processor time in seconds: a day.
const MAX_CPU_SECS: u64 = 86_400;
/// Largest share, in percent of one processor: a hundred processors.
const MAX_CPU_PERCENT: u64 = 10_000;
/// Largest number of processes that the sandbox counts.
const MAX_SANDBOX_PROCESSES: u64 = 512;
/// Maximum number of paths in a list.
const MAX_LISTED_PATHS: usize = 200;
/// Number of bytes in a megabyte, as for other limits of memory.
const MEGABYTE_BYTES: u64 = 1 << 20;

/// Limits as written in a file; `None` where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// Memory in megabytes.
    #[serde(deserialize_with = "memory")]
    pub memory_mb: Option<u64>,
    /// Processor time of one process in seconds.
    #[serde(deserialize_with = "cpu_seconds")]
    pub cpu_seconds: Option<u64>,
    /// Number of processes and threads of a command.
    #[serde(deserialize_with = "processes")]
    pub processes: Option<usize>,
    /// Duration of a call in milliseconds.
    #[serde(deserialize_with = "values::time_limit")]
    pub time: Option<u64>,
    /// Size in megabytes of a file that is written.
    #[serde(deserialize_with = "file_size")]
    pub file_mb: Option<u64>,
    /// Paths that can only be read.
    #[serde(deserialize_with = "paths")]
    pub read_only: Option<Vec<String>>,
    /// The only paths that can be changed.
    #[serde(deserialize_with = "paths")]
    pub writable: Option<Vec<String>>,
    /// Paths that can't be read or changed.
    #[serde(deserialize_with = "paths")]
    pub hidden: Option<Vec<String>>,
    /// Megabytes that a call may add to the project's folder.
    #[serde(deserialize_with = "file_size")]
    pub disk_mb: Option<u64>,
    /// Processor time of all processes of a call, in percent of one processor.
    #[serde(deserialize_with = "cpu_percent")]
    pub cpu_percent: Option<u64>,
}

/// The limits of a job. `None` means the program's own limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor time of one process in seconds.
    pub cpu_seconds: Option<u64>,
    /// Processor time of all processes of a call, in percent of one processor.
    pub cpu_percent: Option<u64>,
    /// Number of processes and threads of a command.
    pub processes: Option<usize>,
    /// Duration in milliseconds.
    pub time_ms: Option<u64>,
    /// Size in bytes of a file that is written.
    pub file_bytes: Option<u64>,
    /// Bytes that a call may add to the project's folder.
    pub disk_bytes: Option<u64>,
    /// Paths below the project's folder.
    pub paths: SandboxPaths,
}

/// Rules for paths relative to the project's folder, with `/` as separator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPaths {
    /// What can't be read or changed.
    pub hidden: Vec<String>,
    /// What can only be read.
    pub read_only: Vec<String>,
    /// Lists of what may be changed: a path has to be in each of them.
    pub writable: Vec<Vec<String>>,
}

impl SandboxLimits {
    /// Combines the limits of the configuration with those of an agent. None of them loosens another.
    pub fn combine(all: &[&SandboxConfig]) -> SandboxLimits {
        let least = |limit: fn(&SandboxConfig) -> Option<u64>| all.iter().filter_map(|one| limit(one)).min();
        let bytes = |megabytes: Option<u64>| megabytes.map(|limit| limit.saturating_mul(MEGABYTE_BYTES));
        let lists = |list: fn(&SandboxConfig) -> &Option<Vec<String>>| {
            all.iter().filter_map(move |one| list(one).clone()).collect::<Vec<_>>()
        };
        SandboxLimits {
            memory_bytes: bytes(least(|one| one.memory_mb)),
            cpu_seconds: least(|one| one.cpu_seconds),
            cpu_percent: least(|one| one.cpu_percent),
            processes: all.iter().filter_map(|one| one.processes).min(),
            time_ms: least(|one| one.time),
            file_bytes: bytes(least(|one| one.file_mb)),
            disk_bytes: bytes(least(|one| one.disk_mb)),
            paths: SandboxPaths {
                hidden: lists(|one| &one.hidden).concat(),
                read_only: lists(|one| &one.read_only).concat(),
                writable: lists(|one| &one.writable),
            },
        }
    }
}

impl SandboxPaths {
    /// Returns whether there's no rule.
    pub fn is_empty(&self) -> bool {
        self.hidden.is_empty() && self.read_only.is_empty() && self.writable.is_empty()
    }

    /// Returns whether a path is hidden, or inside of what is.
    pub fn is_hidden(&self, path: &str) -> bool {
        is_in(path, &self.hidden)
    }

    /// Returns why a path can't be read, or changed if `write` is set; `None` if no rule forbids it. The path is
    /// relative to the project's folder and has no `.` or `..`.
    pub fn refusal(&self, path: &str, write: bool) -> Option<&'static str> {
        if self.is_hidden(path) {
            Some("sandbox.hidden in config.yaml, or the agent's file, names it")
        } else if write && is_in(path, &self.read_only) {
            Some("sandbox.read_only in config.yaml, or the agent's file, names it")
        } else if write && self.writable.iter().any(|list| !is_in(path, list)) {
            Some("sandbox.writable in config.yaml, or the agent's file, doesn't name it")
        } else {
            None
        }
    }
}

/// Returns whether a path is one of these, or below one.
fn is_in(path: &str, list: &[String]) -> bool {
    let below = |above: &String| path.strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('/'));
    list.iter().any(|above| path == above || below(above))
}

fn limit<'de, D: Deserializer<'de>>(from: D, least: u64, most: u64, unit: &str) -> Result<Option<u64>, D::Error> {
    match values::plain::<D, Option<u64>>(from)? {
        Some(value) if !(least..=most).contains(&value) => {
            Err(D::Error::custom(format!("{value} is no such limit; it takes {least} to {most} {unit}, or null")))
        }
        value => Ok(value),
    }
}

fn memory<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    limit(from, MIN_MEMORY_MB, MAX_MEGABYTES, "megabytes")
}

fn file_size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    limit(from, 1, MAX_MEGABYTES, "megabytes")
}

fn cpu_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    limit(from, 1, MAX_CPU_SECS, "seconds")
}

fn processes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    Ok(limit(from, 1, MAX_SANDBOX_PROCESSES, "processes")?.and_then(|most| usize::try_from(most).ok()))
}

/// Parses a list of paths relative to the project's folder.
fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let Some(list) = values::plain::<D, Option<Vec<String>>>(from)? else { return Ok(None) };
    if list.len() > MAX_LISTED_PATHS {
        return Err(D::Error::custom(format!("a list has at most {MAX_LISTED_PATHS} paths")));
    }
    let tidied = list.iter().map(|path| {
        let tidy = path.trim_end_matches('/').trim_start_matches("./");
        let plain =
            tidy.split('/').all(|part| !matches!(part, "" | "." | "..")) && !tidy.contains(['*', '?', '\\', '\0']);
        let shown: String = path.chars().take(80).collect();
        match plain && !tidy.starts_with('~') {
            true => Ok(tidy.to_owned()),
            false => Err(D::Error::custom(format!(
                "“{shown}” is no path of the sandbox; it takes one below the project's folder, such as data/keys, \
                 without * and .."
            ))),
        }
    });
    tidied.collect::<Result<Vec<_>, _>>().map(Some)
}

fn cpu_percent<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let percent = limit(from, 1, MAX_CPU_PERCENT, "percent of one processor")?;
    // Processes are counted and stopped by what only Linux says of them.
    if percent.is_some() && !cfg!(target_os = "linux") {
        let why = "cpu_percent can't be enforced on this system; cpu_seconds limits the processor time";
        return Err(D::Error::custom(why));
    }
    Ok(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_can_only_tighten_limits() {
        let all = SandboxConfig {
            memory_mb: Some(100),
            cpu_seconds: Some(5),
            cpu_percent: Some(50),
            hidden: Some(vec!["keys".to_owned()]),
            writable: Some(vec!["out".to_owned(), "tmp".to_owned()]),
            ..SandboxConfig::default()
        };
        let agent = SandboxConfig {
            memory_mb: Some(200),
            cpu_seconds: Some(2),
            cpu_percent: Some(20),
            processes: Some(3),
            hidden: Some(Vec::new()),
            writable: Some(vec!["out/mine".to_owned()]),
            ..SandboxConfig::default()
        };
        let limits = SandboxLimits::combine(&[&all, &agent]);
        assert_eq!((limits.memory_bytes, limits.cpu_seconds, limits.processes), (Some(100 << 20), Some(2), Some(3)));
        assert_eq!(limits.cpu_percent, Some(20));
        let why = |path: &str, write: bool| limits.paths.refusal(path, write).is_some();
        assert!(why("keys", false) && why("keys/a/b", false) && !why("keysmith", false));
        assert!(!why("out/mine/a", true) && why("out/a", true) && why("tmp/a", true) && !why("tmp/a", false));
        assert_eq!(SandboxLimits::combine(&[&SandboxConfig::default()]), SandboxLimits::default());
    }
}
