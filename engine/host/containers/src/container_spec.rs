//! What is said to the engine about a new container. Models choose the image, the command, a folder, the network and
//! the time; nothing else that they say gets here.

use agent::config::SandboxLimits;
use std::path::PathBuf;
use store::DocId;

/// Label with the volume that a container belongs to.
pub(crate) const PROJECT_LABEL: &str = "tracebook.project";
/// Label with the run that a container belongs to.
pub(crate) const RUN_LABEL: &str = "tracebook.run";
/// Label with the process that made a container, as [`crate::container_ledger`] names it.
pub(crate) const OWNER_LABEL: &str = "tracebook.owner";
/// Where a container sees the project's folder.
pub(crate) const MOUNT_TARGET: &str = "/work";
/// Maximum number of open files of a process in a container.
const MAX_OPEN_FILES: i64 = 16_384;
/// Maximum number of processes of the user that a container runs as. The limit that counts is that of the container.
const MAX_USER_PROCESSES: i64 = 16_384;
/// Size in bytes of a file that a container writes, where the configuration names no limit.
const DEFAULT_FILE_BYTES: u64 = 1 << 30;

/// The workspace and run that own a container.
#[derive(Clone, Debug)]
pub(crate) struct ContainerOwner {
    /// The process, as the ledger names it.
    pub(crate) owner: String,
    pub(crate) project: DocId,
    pub(crate) run: DocId,
}

/// A container to be made.
#[derive(Clone, Debug)]
pub(crate) struct ContainerPlan {
    pub(crate) owner: ContainerOwner,
    /// Id of the image.
    pub(crate) image: String,
    pub(crate) command: Option<String>,
    /// The folder, and whether it may be written to.
    pub(crate) mount: Option<(PathBuf, bool)>,
    pub(crate) network: bool,
    /// The user and group that it runs as; `None` for the image's.
    pub(crate) user: Option<String>,
    pub(crate) limits: SandboxLimits,
}

#[cfg(unix)]
impl ContainerPlan {
    /// Returns the body of the request that makes the container.
    pub(crate) fn to_body(&self) -> bollard::models::ContainerCreateBody {
        use crate::{DEFAULT_MEMORY_BYTES, DEFAULT_PROCESSES, MAX_OUTPUT_BYTES, MAX_PROCESSORS};
        use bollard::models::{
            ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
        };
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let memory = number(self.limits.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES));
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_PROCESSORS);
        let percent = number(self.limits.cpu_percent.unwrap_or(u64::MAX)).min(100 * number(processors as u64));
        let limit = |name: &str, most: i64| ResourcesUlimits {
            name: Some(name.to_owned()),
            soft: Some(most),
            hard: Some(most),
        };
        let mut ulimits = vec![
            limit("core", 0),
            limit("nofile", MAX_OPEN_FILES),
            limit("nproc", MAX_USER_PROCESSES),
            limit("fsize", number(self.limits.file_bytes.unwrap_or(DEFAULT_FILE_BYTES))),
        ];
        ulimits.extend(self.limits.cpu_seconds.map(|most| limit("cpu", number(most))));
        let mounts = self.mount.iter().map(|(source, writable)| Mount {
            typ: Some(MountType::BIND),
            source: Some(source.to_string_lossy().into_owned()),
            target: Some(MOUNT_TARGET.to_owned()),
            read_only: Some(!writable),
            ..Mount::default()
        });
        let owner = &self.owner;
        let labels = [
            (PROJECT_LABEL, owner.project.to_string()),
            (RUN_LABEL, owner.run.to_string()),
            (OWNER_LABEL, owner.owner.clone()),
        ];
        let log = [("max-size", format!("{}m", MAX_OUTPUT_BYTES >> 20)), ("max-file", "1".to_owned())];
        let shell = |command: &String| vec!["-c".to_owned(), command.clone()];
        ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: self.command.as_ref().map(|_| vec!["/bin/sh".to_owned()]),
            cmd: self.command.as_ref().map(shell),
            user: self.user.clone(),
            working_dir: self.mount.as_ref().map(|_| MOUNT_TARGET.to_owned()),
            labels: Some(labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            tty: Some(false),
            open_stdin: Some(false),
            // What an image wants to be run from time to time isn't what was approved.
            healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() }),
            host_config: Some(HostConfig {
                memory: Some(memory),
                memory_swap: Some(memory),
                nano_cpus: Some(10_000_000 * percent),
                pids_limit: Some(i64::try_from(self.limits.processes.unwrap_or(DEFAULT_PROCESSES)).unwrap_or(1)),
                ulimits: Some(ulimits),
                network_mode: Some(if self.network { "default" } else { "none" }.to_owned()),
                ipc_mode: Some("private".to_owned()),
                privileged: Some(false),
                cap_drop: Some(vec!["ALL".to_owned()]),
                security_opt: Some(vec!["no-new-privileges".to_owned()]),
                mounts: Some(mounts.collect()),
                auto_remove: Some(false),
                log_config: Some(HostConfigLogConfig {
                    typ: Some("json-file".to_owned()),
                    config: Some(log.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
                }),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        }
    }
}
