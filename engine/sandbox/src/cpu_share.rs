//! Keeps what a group of processes uses of the processor below a share, by stopping and continuing them. Unlike control
//! groups, that needs no privileges. Not seen is the time of short processes whose parent ignores how they end.

use crate::raw_syscalls::process_group;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpgid, getpid, kill_process, wait};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// Time in which processes may use their share at once.
const SHARE_PERIOD_MICROS: i64 = 100_000;
/// Time between two looks at processes that run.
const RUNNING_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time between two looks at processes that are stopped, which another process may have continued.
const STOPPED_INTERVAL: Duration = Duration::from_millis(100);
/// Unit of processor times in `/proc`, in microseconds: Linux has 100 in a second on each of our processors.
const TICK_MICROS: i64 = 10_000;
/// Processes that start others are looked for again so many times at most.
const MAX_STOP_ROUNDS: usize = 8;

/// The processor time of a process group, with a limit. This process isn't counted and isn't stopped, even if it is in
/// the group. On drop, all of them continue.
#[derive(Debug)]
pub struct CpuShare {
    group: Pid,
    /// Percent of one processor.
    percent: i64,
    /// What the group may still use, in hundredths of microseconds; negative if it has used too much.
    credit: i64,
    /// What the group had used at the last look, in microseconds.
    used: i64,
    /// The last look.
    since: Instant,
    /// The next look.
    next: Instant,
    /// Processes that were stopped here.
    stopped: BTreeSet<i32>,
}

/// A process of the group, or of this process's children.
struct GroupMember {
    pid: Pid,
    /// Whether it can run, or start other processes.
    can_run: bool,
    /// Its own processor time, in microseconds.
    own: i64,
    /// That of its children that have ended, in microseconds.
    ended: i64,
}

impl CpuShare {
    /// Limits a process group from now on. `percent`: of one processor, so 200 are two whole ones.
    ///
    /// # Errors
    /// Returns an error if there is no such group.
    pub fn new(group: u32, percent: u64) -> std::io::Result<CpuShare> {
        let known = i32::try_from(group).ok().and_then(Pid::from_raw);
        let group = known.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
        let percent = i64::try_from(percent).unwrap_or(i64::MAX).clamp(1, 1_000_000);
        let now = Instant::now();
        let mut share =
            CpuShare { group, percent, credit: 0, used: 0, since: now, next: now, stopped: BTreeSet::new() };
        share.used = share.sum_used(&share.find_members());
        Ok(share)
    }

    /// Limits the group of this process, which supervises the others.
    ///
    /// # Errors
    /// Returns the errors of [`CpuShare::new`].
    pub fn of_own_group(percent: u64) -> std::io::Result<CpuShare> {
        let group = getpgid(None)?;
        CpuShare::new(group.as_raw_nonzero().get().unsigned_abs(), percent)
    }

    /// Looks at the processes if it's time for it, and stops or continues them.
    pub fn update(&mut self) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        let members = self.find_members();
        let total = self.sum_used(&members);
        // The sum is smaller than before if a process doesn't wait for its children. That isn't given back.
        let used = total.saturating_sub(self.used).max(0);
        self.used = total;
        let elapsed = i64::try_from(now.duration_since(self.since).as_micros()).unwrap_or(i64::MAX);
        self.since = now;
        let earned = elapsed.saturating_mul(self.percent);
        // What isn't used is lost after a period, so that nothing is saved up for a burst.
        let most = SHARE_PERIOD_MICROS * self.percent;
        self.credit = self.credit.saturating_add(earned).saturating_sub(used.saturating_mul(100)).min(most);
        let pause = if self.credit > 0 {
            self.continue_stopped();
            RUNNING_INTERVAL
        } else {
            self.stop_members(members);
            let debt = self.credit.unsigned_abs() / self.percent.unsigned_abs();
            Duration::from_micros(debt).clamp(RUNNING_INTERVAL / 4, STOPPED_INTERVAL)
        };
        self.next = Instant::now() + pause;
    }

    /// Waits for a child of this process to end, with the result of [`wait`], and keeps the share meanwhile.
    ///
    /// # Errors
    /// Returns the errors of the system, such as that there is no child.
    pub fn wait_for_child(&mut self) -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
        loop {
            let ended = wait(WaitOptions::NOHANG)?;
            if ended.is_some() {
                return Ok(ended);
            }
            self.update();
            std::thread::sleep(self.next.saturating_duration_since(Instant::now()).min(RUNNING_INTERVAL));
        }
    }

    /// Returns the processes of the group, and this one if it's in it.
    fn find_members(&self) -> Vec<GroupMember> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
        // One call for each process of the machine is much cheaper than one file for each.
        pids.filter(|pid| self.is_of_group(*pid)).filter_map(GroupMember::read).collect()
    }

    fn is_of_group(&self, pid: Pid) -> bool {
        process_group(pid.as_raw_nonzero().get()) == Some(self.group.as_raw_nonzero().get())
    }

    /// Returns what the group has used, without this process itself, in microseconds.
    fn sum_used(&self, members: &[GroupMember]) -> i64 {
        let this = getpid();
        let used = |member: &GroupMember| member.ended + if member.pid == this { 0 } else { member.own };
        members.iter().map(used).fold(0, i64::saturating_add)
    }

    /// Stops the processes, also those that they start meanwhile.
    fn stop_members(&mut self, mut members: Vec<GroupMember>) {
        let this = getpid();
        for _ in 0..MAX_STOP_ROUNDS {
            let running: Vec<Pid> =
                members.iter().filter(|member| member.can_run && member.pid != this).map(|member| member.pid).collect();
            if running.is_empty() {
                return;
            }
            for pid in running {
                // Fails only if it has ended.
                if kill_process(pid, Signal::STOP).is_ok() {
                    self.stopped.insert(pid.as_raw_nonzero().get());
                }
            }
            members = self.find_members();
        }
    }

    /// Continues what was stopped here, but nothing that a command itself has stopped.
    fn continue_stopped(&mut self) {
        for pid in std::mem::take(&mut self.stopped).into_iter().filter_map(Pid::from_raw) {
            if self.is_of_group(pid) {
                let _ = kill_process(pid, Signal::CONT); // it may have ended
            }
        }
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        self.continue_stopped();
    }
}

impl GroupMember {
    /// Reads what the system knows of a process; `None` if it's gone. See proc_pid_stat(5).
    fn read(pid: Pid) -> Option<GroupMember> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let (can_run, own, ended) = parse_stat(&stat)?;
        Some(GroupMember { pid, can_run, own, ended })
    }
}

/// Parses whether a process can run, its processor time, and that of its children that have ended, in microseconds.
fn parse_stat(stat: &str) -> Option<(bool, i64, i64)> {
    // The name, in parentheses, may contain anything, so parse after its last one.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let can_run = !matches!(fields.next()?, "T" | "t" | "Z" | "X" | "x");
    let mut times = fields.skip(10).map(|ticks| ticks.parse::<i64>().ok());
    let mut sum = || Some(times.next()??.saturating_add(times.next()??).saturating_mul(TICK_MICROS));
    Some((can_run, sum()?, sum()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_after_any_name() {
        let stat = "7 (a) R 1) T 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99";
        assert_eq!(parse_stat(stat), Some((false, 110_000, 150_000)));
        assert_eq!(parse_stat("7 (sh) R 1 7 7 0 -1 0 0 0 0 0 3 0 0 0 20"), Some((true, 30_000, 0)));
        assert_eq!(parse_stat("7 (sh) R 1"), None);
    }
}
