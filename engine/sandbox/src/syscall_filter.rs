//! seccomp: the list of system calls that the confined may make. What is not on it is refused.
//!
//! Several filters apply at once, and the strictest answer counts: one allows the listed calls; others reject some
//! arguments of these, with an error that programs expect; one passes calls to the supervisor.

use crate::supervisor::PendingSupervisor;
use crate::{ConfinedKind, SandboxError, SandboxPolicy, SyscallFilterError, raw_syscalls};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};
use std::collections::BTreeMap;

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// What every program needs: memory, threads, time, its own files and signals.
const BASE_CALLS: &[i64] = &[
    // Files that are open, and looking at names.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_lseek,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_flock,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_umask,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_openat,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_membarrier,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_mprotect,
    libc::SYS_pkey_free,
    libc::SYS_get_mempolicy,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    // Signals, within itself.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_signalfd4,
    // Time.
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // Waiting.
    libc::SYS_pselect6,
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    // Itself.
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_getcpu,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getpriority,
    libc::SYS_ioprio_get,
    libc::SYS_capget,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_getrandom,
    libc::SYS_prctl,
    // Pairs of connected sockets, by which programs talk to themselves.
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
];

/// The same under older numbers, which newer processors do not have.
#[cfg(target_arch = "x86_64")]
const LEGACY_CALLS: &[i64] = &[
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_dup2,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_signalfd,
    libc::SYS_pipe,
    libc::SYS_pause,
    libc::SYS_alarm,
    libc::SYS_time,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_arch_prctl,
    libc::SYS_open,
];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_CALLS: &[i64] = &[];

/// What starts programs and watches over them.
const PROCESS_CALLS: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_memfd_create,
    // Programs that lock themselves in further: whatever they add only takes away.
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    // Answered without being done.
    libc::SYS_setsid,
    libc::SYS_setpgid,
];
#[cfg(target_arch = "x86_64")]
const LEGACY_PROCESS_CALLS: &[i64] = &[libc::SYS_fork, libc::SYS_vfork, libc::SYS_setrlimit];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_PROCESS_CALLS: &[i64] = &[];

/// Calls that use the network once a socket exists.
const NETWORK_CALLS: &[i64] =
    &[libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];

/// What changes files by name, or their metadata: the supervisor does it. `open` and `openat` are handed to it where
/// they would write.
const SUPERVISED_CALLS: &[i64] = &[
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_truncate,
];

/// The same for metadata, which Landlock does not see.
const METADATA_CALLS: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];
#[cfg(target_arch = "x86_64")]
const LEGACY_SUPERVISED_CALLS: &[i64] = &[
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_link,
    libc::SYS_rename,
];
#[cfg(target_arch = "x86_64")]
const LEGACY_METADATA_CALLS: &[i64] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_SUPERVISED_CALLS: &[i64] = &[];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_METADATA_CALLS: &[i64] = &[];

/// Calls from this number on are newer than programs require: they get the error for an unknown call, and fall back to
/// an older one. A filter couldn't inspect their arguments.
const UNKNOWN_CALLS: std::ops::Range<i64> = 424..480;

/// Requests to devices and files that are harmless: sizes, flags of descriptors, copies between open files.
const ALLOWED_IOCTLS: &[u64] = &[
    0x5401,      // TCGETS
    0x802c_542a, // TCGETS2
    0x540f,      // TIOCGPGRP
    0x5413,      // TIOCGWINSZ
    0x541b,      // FIONREAD
    0x5421,      // FIONBIO
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
    0x4004_9409, // FICLONE
    0x4020_940d, // FICLONERANGE
    0x8008_6601, // FS_IOC_GETFLAGS
    0x801c_581f, // FS_IOC_FSGETXATTR
    0xc020_660b, // FS_IOC_FIEMAP
];

/// What `fcntl` is used for. Not on the list: to have signals sent to others, leases, and notes of changes.
const ALLOWED_FCNTLS: &[u64] =
    &[0, 1, 2, 3, 4, 5, 6, 7, 9, 36, 37, 38, 1025, 1027, 1030, 1031, 1032, 1033, 1034, 1035, 1036];

/// What `prctl` is used for: names, the death of a parent, dumps, privileges that are given up.
const ALLOWED_PRCTLS: &[u64] = &[1, 2, 3, 4, 15, 16, 21, 22, 23, 29, 30, 38, 39, 40, 41, 42, 0x5356_4d41, 0x4155_5856];

/// Installs all filters for the calling thread and what it starts. `newest`: Landlock sees signals. Gives whether calls
/// are supervised; where they are not, metadata cannot be changed at all.
pub(crate) fn restrict_syscalls(
    policy: &SandboxPolicy,
    newest: bool,
    supervisor: Result<PendingSupervisor, SandboxError>,
) -> Result<Result<(), SandboxError>, SyscallFilterError> {
    let mut rules = supervised_calls().map_err(refused)?;
    if policy.kind == ConfinedKind::Interpreter {
        let process = dword_condition(0, SeccompCmpOp::MaskedEq(argument_value(libc::CLONE_THREAD)), 0);
        let process = process.and_then(|process| SeccompRule::new(vec![process])).map_err(refused)?;
        rules.insert(libc::SYS_clone, vec![process]);
        rules.extend(unconditional_rules(&[libc::SYS_execve]));
    }
    let program = notify_filter(rules)?;
    let supervised = supervisor.and_then(|supervisor| {
        let listener = raw_syscalls::install_listener(&program)
            .map_err(|error| SandboxError::NoListener(std::io::Error::from_raw_os_error(error).to_string()))?;
        supervisor.serve(listener)
    });
    let programs = policy.kind == ConfinedKind::Programs;
    if programs {
        // Processes can't leave the group that's ended as a whole. The calls report success, since most programs would
        // fail otherwise.
        install_refusal(unconditional_rules(&[libc::SYS_setsid, libc::SYS_setpgid]), 0)?;
    }
    install_refusal(unlisted_argument(libc::SYS_ioctl, 1, ALLOWED_IOCTLS).map_err(refused)?, libc::ENOTTY)?;
    let mut invalid = unlisted_argument(libc::SYS_fcntl, 1, ALLOWED_FCNTLS).map_err(refused)?;
    invalid.extend(unlisted_argument(libc::SYS_prctl, 0, ALLOWED_PRCTLS).map_err(refused)?);
    install_refusal(invalid, libc::EINVAL)?;
    // Landlock does not see them: they would read what is noted on files outside.
    let noted = [libc::SYS_getxattr, libc::SYS_lgetxattr, libc::SYS_listxattr, libc::SYS_llistxattr];
    install_refusal(unconditional_rules(&noted), libc::EOPNOTSUPP)?;
    let mut allowed = allowed_calls(policy, newest).map_err(refused)?;
    if supervised.is_err() {
        allowed.retain(|call, _| !METADATA_CALLS.contains(call) && !LEGACY_METADATA_CALLS.contains(call));
    }
    let absent: Vec<i64> = UNKNOWN_CALLS.filter(|call| !allowed.contains_key(call)).collect();
    install_refusal(unconditional_rules(&absent), libc::ENOSYS)?;
    // The filter above answers these; this one would with another error.
    allowed.extend(unconditional_rules(&absent));
    install_allowlist(allowed)?;
    Ok(supervised)
}

fn refused(error: impl std::fmt::Display) -> SyscallFilterError {
    SyscallFilterError::Refused(error.to_string())
}

/// Restricts the supervisor itself, which only performs calls for others.
pub(crate) fn restrict_supervisor_syscalls() -> Result<(), SyscallFilterError> {
    let mut rules = unconditional_rules(BASE_CALLS);
    let read: &[i64] = &[libc::SYS_process_vm_readv, libc::SYS_clone3];
    for more in [LEGACY_CALLS, SUPERVISED_CALLS, LEGACY_SUPERVISED_CALLS, METADATA_CALLS, LEGACY_METADATA_CALLS, read] {
        rules.extend(unconditional_rules(more));
    }
    rules.insert(libc::SYS_clone, thread_clone_rules().map_err(refused)?);
    install_allowlist(rules)
}

fn unconditional_rules(calls: &[i64]) -> SyscallRules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn compile_filter(
    rules: SyscallRules,
    others: SeccompAction,
    these: SeccompAction,
) -> Result<BpfProgram, SyscallFilterError> {
    let arch = std::env::consts::ARCH.try_into().map_err(|_| SyscallFilterError::UnknownProcessor)?;
    SeccompFilter::new(rules, others, these, arch).and_then(BpfProgram::try_from).map_err(refused)
}

/// Answers these calls with an error, 0 for none, instead of performing them.
fn install_refusal(rules: SyscallRules, error: i32) -> Result<(), SyscallFilterError> {
    let program = compile_filter(rules, SeccompAction::Allow, SeccompAction::Errno(error.unsigned_abs()))?;
    seccompiler::apply_filter(&program).map_err(refused)
}

/// Refuses all calls but these.
fn install_allowlist(rules: SyscallRules) -> Result<(), SyscallFilterError> {
    let program = compile_filter(rules, SeccompAction::Errno(libc::EPERM.unsigned_abs()), SeccompAction::Allow)?;
    seccompiler::apply_filter(&program).map_err(refused)
}

/// Hands these calls to the listener.
fn notify_filter(rules: SyscallRules) -> Result<Vec<sock_filter>, SyscallFilterError> {
    // The library lacks this action, so another value stands in for it.
    const NOTIFY_MARK: u32 = libc::SECCOMP_RET_TRACE | 1;
    let mut program = compile_filter(rules, SeccompAction::Allow, SeccompAction::Trace(1))?;
    for step in program.iter_mut().filter(|step| step.k == NOTIFY_MARK) {
        step.k = libc::SECCOMP_RET_USER_NOTIF;
    }
    Ok(program)
}

fn dword_condition(at: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(at, SeccompCmpArgLen::Dword, how, value)
}

fn argument_value(value: i32) -> u64 {
    u64::from(value.unsigned_abs())
}

/// A call whose argument is none of these.
fn unlisted_argument(call: i64, at: u8, list: &[u64]) -> Result<SyscallRules, seccompiler::BackendError> {
    let none = list.iter().map(|value| dword_condition(at, SeccompCmpOp::Ne, *value)).collect::<Result<Vec<_>, _>>()?;
    Ok(BTreeMap::from([(call, vec![SeccompRule::new(none)?])]))
}

/// Calls that the supervisor performs.
fn supervised_calls() -> Result<SyscallRules, seccompiler::BackendError> {
    let mut rules = SyscallRules::new();
    for calls in [SUPERVISED_CALLS, LEGACY_SUPERVISED_CALLS, METADATA_CALLS, LEGACY_METADATA_CALLS] {
        rules.extend(unconditional_rules(calls));
    }
    // `O_TMPFILE` without the bits of `O_DIRECTORY`.
    let unnamed = libc::O_TMPFILE & !libc::O_DIRECTORY;
    let writes = |at: u8| {
        [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC, unnamed]
            .into_iter()
            .map(|flag| {
                SeccompRule::new(vec![dword_condition(
                    at,
                    SeccompCmpOp::MaskedEq(argument_value(flag)),
                    argument_value(flag),
                )?])
            })
            .collect::<Result<Vec<_>, _>>()
    };
    rules.insert(libc::SYS_openat, writes(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, writes(1)?);
    Ok(rules)
}

/// A `clone` that makes a thread and no new process.
fn thread_clone_rules() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let thread = argument_value(libc::CLONE_THREAD);
    Ok(vec![SeccompRule::new(vec![dword_condition(0, SeccompCmpOp::MaskedEq(thread), thread)?])?])
}

/// A call whose arguments are each this number or none.
fn own_id_or_none(own: u32, count: u8) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let rule = |choice: u32| {
        let value = |at: u8| if choice >> at & 1 == 0 { own } else { u32::MAX };
        let all = (0..count).map(|at| dword_condition(at, SeccompCmpOp::Eq, u64::from(value(at))));
        SeccompRule::new(all.collect::<Result<Vec<_>, _>>()?)
    };
    (0..1 << count).map(rule).collect()
}

/// The list, with the arguments under which a call is on it.
fn allowed_calls(policy: &SandboxPolicy, newest: bool) -> Result<SyscallRules, seccompiler::BackendError> {
    let programs = policy.kind == ConfinedKind::Programs;
    let mut rules = SyscallRules::new();
    for calls in
        [BASE_CALLS, LEGACY_CALLS, SUPERVISED_CALLS, LEGACY_SUPERVISED_CALLS, METADATA_CALLS, LEGACY_METADATA_CALLS]
    {
        rules.extend(unconditional_rules(calls));
    }
    let own = argument_value(i32::try_from(std::process::id()).unwrap_or(i32::MAX));
    let itself = |at: u8| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        Ok(vec![SeccompRule::new(vec![dword_condition(at, SeccompCmpOp::Eq, 0)?])?])
    };
    // Allows pairs of connected sockets. Unconnected ones could still choose their peer.
    let kind = SeccompCmpOp::MaskedEq(0xf);
    let pair = |kind: SeccompCmpOp, of: i32| {
        SeccompRule::new(vec![
            dword_condition(0, SeccompCmpOp::Eq, argument_value(libc::AF_UNIX))?,
            dword_condition(1, kind, argument_value(of))?,
        ])
    };
    let pairs = vec![pair(kind.clone(), libc::SOCK_STREAM)?, pair(kind.clone(), libc::SOCK_SEQPACKET)?];
    rules.insert(libc::SYS_socketpair, pairs);
    if policy.network {
        // Local sockets lead to the desktop's bus, to agents that hold keys and to other services: never.
        let mut sockets = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            for of in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
                let family = dword_condition(0, SeccompCmpOp::Eq, argument_value(family))?;
                sockets.push(SeccompRule::new(vec![family, dword_condition(1, kind.clone(), argument_value(of))?])?);
            }
        }
        rules.insert(libc::SYS_socket, sockets);
        rules.extend(unconditional_rules(NETWORK_CALLS));
    }
    // Limits, processors and priorities of its own.
    rules.insert(libc::SYS_prlimit64, itself(0)?);
    rules.insert(libc::SYS_sched_setaffinity, itself(0)?);
    rules.insert(
        libc::SYS_setpriority,
        vec![SeccompRule::new(vec![
            dword_condition(0, SeccompCmpOp::Eq, 0)?,
            dword_condition(1, SeccompCmpOp::Eq, 0)?,
        ])?],
    );
    // To ask for the personality, or for the usual one.
    let personalities =
        [0, 0xffff_ffff].map(|value| SeccompRule::new(vec![dword_condition(0, SeccompCmpOp::Eq, value)?]));
    rules.insert(libc::SYS_personality, personalities.into_iter().collect::<Result<_, _>>()?);
    // A new process may not have a world of its own, in which it would be root.
    let worlds = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    let no_world = dword_condition(0, SeccompCmpOp::MaskedEq(argument_value(worlds)), 0)?;
    if programs {
        // To become who it is: programs do so before they start others.
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        for (call, own, count) in [
            (libc::SYS_setuid, user, 1),
            (libc::SYS_setgid, group, 1),
            (libc::SYS_setreuid, user, 2),
            (libc::SYS_setregid, group, 2),
            (libc::SYS_setresuid, user, 3),
            (libc::SYS_setresgid, group, 3),
        ] {
            rules.insert(call, own_id_or_none(own, count)?);
        }
        rules.extend(unconditional_rules(PROCESS_CALLS));
        rules.extend(unconditional_rules(LEGACY_PROCESS_CALLS));
        rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![no_world])?]);
        if !newest {
            // Before ABI 6 Landlock does not see signals: then they reach only the own group.
            rules.remove(&libc::SYS_tkill);
            rules.remove(&libc::SYS_tgkill);
            rules.insert(libc::SYS_kill, itself(0)?);
        }
    } else if policy.kind == ConfinedKind::Interpreter {
        // The supervisor says yes once to the two that start something.
        rules.extend(unconditional_rules(&[libc::SYS_execve, libc::SYS_memfd_create]));
        rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![no_world])?]);
        // The process that will run isn't there yet, so its number can't be asked for. Where Landlock sees signals,
        // none leaves it.
        if newest {
            rules.extend(unconditional_rules(&[libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill]));
        } else {
            rules.insert(libc::SYS_kill, itself(0)?);
        }
    } else {
        // No machine code but its own: neither a library that a cell has written, nor memory that it has filled.
        let executes = dword_condition(2, SeccompCmpOp::MaskedEq(argument_value(libc::PROT_EXEC)), 0)?;
        for call in [libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_pkey_mprotect] {
            rules.insert(call, vec![SeccompRule::new(vec![executes.clone()])?]);
        }
        rules.insert(libc::SYS_clone, thread_clone_rules()?);
        // Signals go to this process only: a cell may well interrupt itself.
        for call in [libc::SYS_kill, libc::SYS_tgkill] {
            rules.insert(call, vec![SeccompRule::new(vec![dword_condition(0, SeccompCmpOp::Eq, own)?])?]);
        }
    }
    Ok(rules)
}
