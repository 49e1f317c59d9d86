//! The walls of Linux: Landlock for files, TCP and signals, seccomp for system calls. They hold for the calling
//! thread and all that it starts, for good. Where one cannot be built, nothing is run.

use super::Order;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

/// The newest Landlock that is asked for. An older one gives what it has, and seccomp the rest.
const NEWEST: ABI = ABI::V6;

/// Programs and what they are made of.
const SYSTEM: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/snap",
];

/// What programs read when they start. Not all of `/etc`: some of it is secret.
const SETTINGS: [&str; 34] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/environment.d",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/openssl",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/tls/certs",
    "/etc/python3",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/sys/devices/system/cpu",
];

/// What finding a host's address takes.
const NAMES: [&str; 7] = [
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/run/systemd/resolve",
];

const DEVICES: [&str; 4] = ["/dev/full", "/dev/random", "/dev/urandom", "/dev/zero"];

/// Builds all of them around this thread.
///
/// # Errors
/// A sentence for the user that says which one cannot be built here.
pub(super) fn enter(order: &Order) -> Result<(), String> {
    let shut = |error: RulesetError| format!("there is no sandbox here: Landlock failed ({error})");
    let newest = match files(order).map_err(shut)? {
        LandlockStatus::Available { effective_abi, .. } => effective_abi >= NEWEST,
        LandlockStatus::NotEnabled => return Err("there is no sandbox here: Landlock is not switched on".to_owned()),
        LandlockStatus::NotImplemented => {
            return Err("there is no sandbox here: this kernel has no Landlock (it came with Linux 5.13)".to_owned());
        }
    };
    calls(order.network, newest).map_err(|why| format!("there is no sandbox here: seccomp failed ({why})"))
}

fn files(order: &Order) -> Result<LandlockStatus, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    // Who is root could make a device, and read the disk behind all walls.
    let write: BitFlags<AccessFs> = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let run = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let names: &[&str] = if order.network { &NAMES } else { &[] };
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all)?;
    if !order.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let rules = rules
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, run))?
        .add_rules(path_beneath_rules(SETTINGS, read))?
        .add_rules(path_beneath_rules(names, read))?
        .add_rules(path_beneath_rules(DEVICES, read))?
        .add_rules(path_beneath_rules(["/dev/null"], read | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(&order.read, run))?
        .add_rules(path_beneath_rules(&order.write, write))?;
    Ok(rules.restrict_self()?.landlock)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn calls(network: bool, newest: bool) -> Result<(), String> {
    // A filter cannot look into what `clone3` is given: without it, libraries use `clone`.
    filter(whole(&[libc::SYS_clone3]), libc::ENOSYS)?;
    // Nothing leaves the group in which all of it is ended. It is told that it did: most programs would give up else.
    filter(whole(&[libc::SYS_setsid, libc::SYS_setpgid]), 0)?;
    filter(denied(network, newest).map_err(|error| error.to_string())?, libc::EPERM)
}

fn whole(calls: &[i64]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

/// Answers these calls with an error, 0 for none, instead of performing them.
fn filter(mut rules: Rules, error: i32) -> Result<(), String> {
    // The other numbers under which this machine knows the same calls.
    #[cfg(target_arch = "x86_64")]
    rules.extend(rules.clone().into_iter().map(|(call, rule)| (call | X32, rule)));
    let arch = std::env::consts::ARCH.try_into().map_err(|_| "it does not know this processor".to_owned())?;
    let answer = SeccompAction::Errno(error.unsigned_abs());
    let made = SeccompFilter::new(rules, SeccompAction::Allow, answer, arch).and_then(BpfProgram::try_from);
    let program = made.map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// Calls that have a number of their own there: `rt_sigqueueinfo`, `ptrace`, `kexec_load`, `process_vm_readv` and
/// `process_vm_writev`.
#[cfg(target_arch = "x86_64")]
const X32_OWN: [i64; 5] = [524, 521, 528, 539, 540];

/// Calls that no tool needs: other processes' affairs, the machine, and what has been a way out of boxes.
const NEVER: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // Memory and queues that other programs of the user share, and that would outlast the tool.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

fn denied(network: bool, newest: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = whole(NEVER);
    #[cfg(target_arch = "x86_64")]
    {
        rules.extend(whole(&X32_OWN));
        rules.extend(whole(&[libc::SYS_iopl, libc::SYS_ioperm]));
    }
    let dword = |at: u8, how: SeccompCmpOp, value: u64| SeccompCondition::new(at, SeccompCmpArgLen::Dword, how, value);
    let number = |value: i32| u64::from(value.unsigned_abs());
    // Local sockets lead to the desktop's bus, to agents that hold keys and to other services: never. A pair of
    // connected ones is what programs talk to themselves by; unconnected ones can still choose whom they speak to.
    let kind = SeccompCmpOp::MaskedEq(0xf);
    rules
        .insert(libc::SYS_socketpair, vec![SeccompRule::new(vec![dword(1, kind.clone(), number(libc::SOCK_DGRAM))?])?]);
    if network {
        let family = |family: i32| dword(0, SeccompCmpOp::Ne, number(family));
        let foreign = SeccompRule::new(vec![family(libc::AF_INET)?, family(libc::AF_INET6)?])?;
        let raw = SeccompRule::new(vec![dword(1, kind, number(libc::SOCK_RAW))?])?;
        rules.insert(libc::SYS_socket, vec![foreign, raw]);
    } else {
        rules.extend(whole(&[libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen]));
    }
    // A new process may not have a world of its own, in which it would be root.
    let worlds = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let made = worlds.into_iter().map(|world| {
        let flag = number(world);
        SeccompRule::new(vec![dword(0, SeccompCmpOp::MaskedEq(flag), flag)?])
    });
    rules.insert(libc::SYS_clone, made.collect::<Result<_, _>>()?);
    // Limits of others.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![dword(0, SeccompCmpOp::Ne, 0)?])?]);
    if !newest {
        // Before ABI 3 Landlock does not see `truncate`, before ABI 6 it does not see signals: then they reach only the
        // own group.
        rules.extend(whole(&[libc::SYS_truncate, libc::SYS_tkill, libc::SYS_tgkill]));
        rules.insert(libc::SYS_kill, vec![SeccompRule::new(vec![dword(0, SeccompCmpOp::Ne, 0)?])?]);
    }
    Ok(rules)
}
