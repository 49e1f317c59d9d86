//! Landlock: files that can be read, executed and written, use of TCP, scope of signals.

use crate::{ConfinedKind, SandboxError, SandboxPolicy};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use std::path::{Path, PathBuf};

/// The newest Landlock ABI that's requested. An older one gives what it supports, and seccomp adds the rest.
const LANDLOCK_ABI: ABI = ABI::V6;

/// Programs and their libraries.
const PROGRAM_PATHS: [&str; 12] = [
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

/// Libraries, and the data that libraries read.
const LIBRARY_PATHS: [&str; 11] = [
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];

/// What programs read when they start. Not all of `/etc`: some of it is secret.
const CONFIG_PATHS: [&str; 34] = [
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

/// What Python itself reads: time zones, and kinds of files, without which its `mimetypes` fails where they exist.
const PYTHON_PATHS: [&str; 6] = [
    "/etc/apache2/mime.types",
    "/etc/httpd/conf/mime.types",
    "/etc/httpd/mime.types",
    "/etc/localtime",
    "/etc/mime.types",
    "/usr/share/zoneinfo",
];

/// What finding a host's address takes.
const NAME_LOOKUP_PATHS: [&str; 8] = [
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/run/systemd/resolve",
];

/// What checking a host's certificate takes.
const CERTIFICATES_PATH: &str = "/etc/ssl/certs";

const DEVICE_PATHS: [&str; 4] = ["/dev/full", "/dev/random", "/dev/urandom", "/dev/zero"];

/// What may be written besides folders of the user.
pub(crate) const NULL_DEVICE: &str = "/dev/null";

/// Shuts writing off for this thread and all that it starts, except below what `policy` names. Reading stays open.
pub(crate) fn restrict_writing(policy: &SandboxPolicy) -> Result<(), SandboxError> {
    let write: BitFlags<AccessFs> = AccessFs::from_write(LANDLOCK_ABI) & !DEVICE_ACCESS;
    let restrict = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_write(LANDLOCK_ABI))?
            .create()?
            .add_rules(path_beneath_rules([NULL_DEVICE], AccessFs::WriteFile))?
            .add_rules(path_beneath_rules(writable_paths(policy), write))?
            .restrict_self()
    };
    // Whether there is Landlock at all is `restrict_files`'s to say.
    restrict().map(|_| ()).map_err(|error: RulesetError| SandboxError::Landlock(error.to_string()))
}

/// Who is root could make a device, and read the disk behind all walls.
const DEVICE_ACCESS: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev});

fn writable_paths(policy: &SandboxPolicy) -> impl Iterator<Item = &PathBuf> {
    policy.write.iter().chain(&policy.private)
}

/// Restricts file access to the paths in `policy` and its kind. Returns whether Landlock is as new as requested.
pub(crate) fn restrict_files(policy: &SandboxPolicy) -> Result<bool, SandboxError> {
    match apply_ruleset(policy).map_err(|error| SandboxError::Landlock(error.to_string()))? {
        LandlockStatus::Available { effective_abi, .. } => Ok(effective_abi >= LANDLOCK_ABI),
        LandlockStatus::NotEnabled => Err(SandboxError::LandlockOff),
        LandlockStatus::NotImplemented => Err(SandboxError::LandlockMissing),
    }
}

fn apply_ruleset(policy: &SandboxPolicy) -> Result<LandlockStatus, RulesetError> {
    let all = AccessFs::from_all(LANDLOCK_ABI);
    let run = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let programs = policy.kind == ConfinedKind::Programs;
    let interpreter = policy.kind == ConfinedKind::Interpreter;
    let write: BitFlags<AccessFs> =
        if programs { all & !DEVICE_ACCESS } else { all & !DEVICE_ACCESS & !AccessFs::Execute };
    let only = |is: bool, paths: &'static [&'static str]| if is { paths } else { &[] };
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all)?;
    if !policy.network {
        rules = rules.handle_access(AccessNet::from_all(LANDLOCK_ABI))?;
    }
    let rules = rules
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?
        .add_rules(path_beneath_rules(only(programs, &PROGRAM_PATHS), run))?
        .add_rules(path_beneath_rules(only(interpreter, &LIBRARY_PATHS), run))?
        .add_rules(path_beneath_rules(only(programs || interpreter, &CONFIG_PATHS), read))?
        .add_rules(path_beneath_rules(PYTHON_PATHS, read))?
        .add_rules(path_beneath_rules(only(policy.network, &NAME_LOOKUP_PATHS), read))?
        .add_rules(path_beneath_rules(only(policy.network, &[CERTIFICATES_PATH]), read))?
        .add_rules(path_beneath_rules(DEVICE_PATHS, read))?
        .add_rules(path_beneath_rules([NULL_DEVICE], read | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(&policy.read, if programs || interpreter { run } else { read }))?
        .add_rules(path_beneath_rules(writable_paths(policy), write))?;
    Ok(rules.restrict_self()?.landlock)
}

/// Returns the root that contains `path`.
pub(crate) fn containing_root<'a>(path: &Path, roots: &'a [PathBuf]) -> Option<&'a PathBuf> {
    roots.iter().find(|root| path.starts_with(root))
}
