//! The comparison of two states by their variables, which a kernel's process prints.

use serde::{Deserialize, Serialize};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time limit for a comparison, which may run the note's own code to compare its values.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval for checking whether the comparison has ended.
const COMPARE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum size of the comparison's answer in bytes.
const MAX_COMPARISON_BYTES: u64 = 16 << 20;

/// Error of comparing two states.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// The process can't be started, read or ended.
    #[error(transparent)]
    Process(#[from] std::io::Error),
    /// It was stopped.
    #[error("it was stopped")]
    Stopped,
    /// It takes too long.
    #[error("it took longer than {} seconds", COMPARE_TIMEOUT.as_secs())]
    TimedOut,
    /// The process printed something else.
    #[error("the kernel ended without an answer")]
    NoAnswer,
    /// The states can't be compared, and the reason.
    #[error("{0}")]
    Refused(String),
}

/// A short form of a variable's value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparedValue {
    /// Name of the value's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value's shape or length; empty if it has none.
    pub size: String,
    /// The value's text in short form.
    pub value: String,
}

impl ComparedValue {
    /// Formats the value as one line, without escaping.
    #[must_use]
    pub fn describe(&self) -> String {
        let ComparedValue { kind, size, value } = self;
        let size = if size.is_empty() { String::new() } else { format!(" ({size})") };
        format!("{kind}{size} {value}")
    }
}

/// A variable that only one of two states has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoneVariable {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable.
    pub value: ComparedValue,
}

/// A variable whose values differ between two states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DifferingVariable {
    /// Name of the variable.
    pub name: String,
    /// Its value in the first state.
    pub a: ComparedValue,
    /// Its value in the second state.
    pub b: ComparedValue,
}

/// Differences between the variables of two states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateComparison {
    /// Variables that only the first state has.
    pub only_a: Vec<LoneVariable>,
    /// Variables that only the second state has.
    pub only_b: Vec<LoneVariable>,
    /// Variables whose values differ.
    pub differ: Vec<DifferingVariable>,
    /// Names of the variables with equal values.
    pub equal: Vec<String>,
    /// Names of the variables whose values can't be compared.
    pub unclear: Vec<String>,
    /// The reason why the comparison failed, if it did.
    #[serde(skip_serializing)]
    why: Option<String>,
}

/// Runs this command, which is a kernel that compares two states, and returns what it prints. It's killed once
/// `is_stopped` is set.
///
/// # Errors
/// Returns an error if it can't be started, a state is damaged or from another pack, it takes too long, or it was
/// stopped.
pub fn run_comparison(mut command: Command, is_stopped: &AtomicBool) -> Result<StateComparison, ComparisonError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let out = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let read = out.map(|out| out.take(MAX_COMPARISON_BYTES).read_to_string(&mut text));
        read.transpose().map(|_| text)
    });
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        let stops = is_stopped.load(Ordering::Acquire);
        if stops || began.elapsed() > COMPARE_TIMEOUT {
            child.kill()?;
            child.wait()?;
            return Err(if stops { ComparisonError::Stopped } else { ComparisonError::TimedOut });
        }
        std::thread::sleep(COMPARE_CHECK_INTERVAL);
    }
    let text = reader.join().map_err(|_| ComparisonError::NoAnswer)??;
    let said: StateComparison = serde_json::from_str(text.trim()).map_err(|_| ComparisonError::NoAnswer)?;
    match &said.why {
        Some(why) => Err(ComparisonError::Refused(why.clone())),
        None => Ok(said),
    }
}
