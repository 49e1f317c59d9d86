//! Counts a tool's processes and memory from outside. A tool may start processes faster than they can be counted, so
//! it's suspended first. Linux only; elsewhere only the other limits apply.

use std::fs;

/// Number of process counts between two memory checks.
const LOOKS_PER_MEMORY_CHECK: u32 = 10;
/// Threads of the process `tracebook sandbox` itself: it waits, reads its input, confines and supervises.
const SANDBOX_TASKS: usize = 4;

/// Returns the number of threads on the machine; `None` if unknown.
pub fn machine_thread_count() -> Option<usize> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Returns whether a process of a group is still running. Zombies don't count: in a container, nothing may reap them.
pub fn is_group_alive(group: u32) -> bool {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, test_kill_process_group};
        let known = i32::try_from(group).ok().and_then(Pid::from_raw);
        let own = group.to_string();
        known.is_some_and(|group| test_kill_process_group(group).is_ok())
            && fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| {
                let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
                let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
                let state = fields.next();
                fields.nth(1) == Some(&own) && !matches!(state, Some("Z" | "X"))
            })
    }
    #[cfg(not(unix))]
    {
        // Used on Unix only.
        let _ = group;
        false
    }
}

/// Counts the processes and memory of one process group.
pub struct ProcessCensus {
    group: u32,
    /// Number of threads on the whole machine when the group was last counted.
    known: usize,
    looks: u32,
    /// Maximum number of processes and threads.
    max_tasks: usize,
    /// Maximum memory in bytes.
    max_memory: u64,
}

/// The limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExcess {
    /// There are too many processes and threads.
    Tasks,
    /// They use too much memory.
    Memory,
}

impl ProcessCensus {
    /// Creates a census with limits of tasks and of memory in bytes; must be called before the group starts anything.
    pub fn new(group: u32, (max_tasks, max_memory): (usize, u64)) -> ProcessCensus {
        let known = machine_thread_count().unwrap_or(usize::MAX);
        // The sandbox's own process and its threads aren't the tool's.
        let max_tasks = max_tasks.saturating_add(SANDBOX_TASKS);
        ProcessCensus { group, known, looks: 0, max_tasks, max_memory }
    }

    /// Checks the limits, usually with one small read; returns the exceeded one.
    pub fn find_excess(&mut self) -> Option<ProcessExcess> {
        self.looks = self.looks.wrapping_add(1);
        let now = machine_thread_count()?;
        let grown = now.saturating_sub(self.known) > self.max_tasks / 2;
        if !grown && !self.looks.is_multiple_of(LOOKS_PER_MEMORY_CHECK) {
            return None;
        }
        if grown {
            // Suspended processes start no others while they're counted.
            self.set_suspended(true);
        }
        let (tasks, memory) = self.measure_group();
        if tasks > self.max_tasks {
            return Some(ProcessExcess::Tasks);
        } else if memory > self.max_memory {
            return Some(ProcessExcess::Memory);
        }
        if grown {
            self.known = now;
            self.set_suspended(false);
        }
        None
    }

    /// Returns the group's number of threads, and its memory in bytes. Checks every process of the machine, because
    /// lists of children aren't reliable while processes start and end.
    fn measure_group(&self) -> (usize, u64) {
        let own = self.group.to_string();
        let (mut tasks, mut memory) = (0, 0);
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            if !entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // The name, in parentheses, may contain anything, so parse after its last one. See proc_pid_stat(5).
            let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
            if fields.nth(2) == Some(&own) {
                tasks += fields.nth(14).and_then(|threads| threads.parse().ok()).unwrap_or(1);
                if tasks > self.max_tasks {
                    break; // enough is known
                }
                let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
                let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
                let kilobytes = anonymous.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
                memory += kilobytes.unwrap_or(0) << 10;
            }
        }
        (tasks, memory)
    }

    /// Suspends or resumes the whole group.
    fn set_suspended(&self, halt: bool) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            let signal = if halt { Signal::STOP } else { Signal::CONT };
            if let Some(group) = i32::try_from(self.group).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, signal); // there is none if all of it has ended
            }
        }
        // Used on Unix only.
        #[cfg(not(unix))]
        let _ = halt;
    }
}
