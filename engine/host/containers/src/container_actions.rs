//! Carries out calls: what a model named is looked up and checked, then the engine is asked, and what it answers is
//! quoted.

use crate::container_spec::{ContainerOwner, ContainerPlan, OWNER_LABEL, PROJECT_LABEL, RUN_LABEL};
use crate::engine_client::{EngineClient, EngineLimit, is_missing, said};
use crate::project_folder::ProjectAccess;
use crate::{
    ContainerAnswer, ContainerError, ContainerRequest, DEFAULT_COMMAND_SECS, ENGINE_TIMEOUT, EndAction,
    MAX_BACKGROUND_SECS, MAX_COMMAND_BYTES, MAX_COMMAND_SECS, MAX_OUTPUT_BYTES, MAX_RUN_CONTAINERS, PULL_TIMEOUT,
};
use agent::config::SandboxLimits;
use agent::image_name::ImageName;
use agent::prompt_quote::quote_block;
use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::models::{ContainerInspectResponse, ContainerSummary};
use bollard::query_parameters::{
    CreateContainerOptions, CreateImageOptions, KillContainerOptionsBuilder, ListContainersOptionsBuilder,
    ListImagesOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
};
use futures_util::{Stream, StreamExt};
use std::collections::HashMap;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

/// How often a container is asked whether it has ended.
const WAIT_INTERVAL: Duration = Duration::from_millis(150);
/// Seconds that a container may take to stop by itself.
const STOP_SECS: i32 = 3;
/// How long it's tried to remove a container.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a container may come into being after the request for it was broken off.
const LATE_CREATE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of images and of containers that are listed.
const MAX_LISTED: usize = 50;
/// Maximum length of a name that the engine says, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Number of lines of a log that are shown if the call names none.
const DEFAULT_LOG_LINES: u32 = 200;
/// Characters of an id that are shown.
const SHORT_ID_CHARS: usize = 12;

/// A container in the background, which is stopped after its time.
#[derive(Clone, Debug)]
pub(crate) struct BackgroundContainer {
    pub(crate) id: String,
    pub(crate) seconds: u64,
}

/// A call with all that it needs.
pub(crate) struct ContainerCall<'a> {
    pub(crate) client: &'a EngineClient,
    pub(crate) limit: EngineLimit<'a>,
    pub(crate) owner: ContainerOwner,
    pub(crate) access: ProjectAccess<'a>,
    pub(crate) limits: &'a SandboxLimits,
    pub(crate) network_restricted: bool,
}

/// An image that the engine has.
pub(crate) struct KnownImage {
    id: String,
    /// What's said of it: its name, id and digest.
    pub(crate) about: String,
}

/// Returns an id if it's one; ids become parts of addresses.
pub(crate) fn checked_id(id: &str) -> Result<String, ContainerError> {
    let bare = bare_id(id);
    let good = (SHORT_ID_CHARS..=64).contains(&bare.len()) && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = || ContainerError::Engine { what: "an id", why: format!("it names {}", said(id)) };
    if good { Ok(id.to_owned()) } else { Err(wrong()) }
}

fn bare_id(id: &str) -> &str {
    id.strip_prefix("sha256:").unwrap_or(id)
}

fn short(id: &str) -> &str {
    let bare = bare_id(id);
    bare.get(..SHORT_ID_CHARS).unwrap_or(bare)
}

fn shown_name(name: &str) -> String {
    agent::prompt_quote::single_line(name, MAX_NAME_CHARS)
}

/// Returns a time limit in whole seconds, at most `most` and that of the sandbox.
pub(crate) fn limited_secs(asked: Option<u64>, most: u64, limits: &SandboxLimits) -> u64 {
    let own = limits.time_ms.map_or(u64::MAX, |time| (time / 1_000).max(1));
    asked.unwrap_or(DEFAULT_COMMAND_SECS).clamp(1, most).min(own)
}

fn checked_command(command: &str) -> Result<(), ContainerError> {
    if command.len() > MAX_COMMAND_BYTES || command.contains('\0') {
        let why = format!("a command has at most {} kB and no zero byte", MAX_COMMAND_BYTES >> 10);
        return Err(ContainerError::Refused(why));
    }
    Ok(())
}

/// Returns the user and group for a container that sees files of the project, if the engine is another user's: without
/// privileges, even its root may touch only files of its own.
fn mount_user(socket: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let is_own = std::fs::metadata(socket).is_ok_and(|meta| meta.uid() == user.as_raw());
    (!is_own).then(|| format!("{}:{}", user.as_raw(), group.as_raw()))
}

/// What was printed, up to a limit.
#[derive(Default)]
struct PrintedOutput {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl PrintedOutput {
    /// Reads a stream of output. Returns whether it came to its end.
    async fn read(
        &mut self,
        stream: impl Stream<Item = Result<LogOutput, bollard::errors::Error>>,
    ) -> Result<(), bollard::errors::Error> {
        let mut stream = pin!(stream);
        while let Some(piece) = stream.next().await {
            let piece = piece?.into_bytes();
            let room = MAX_OUTPUT_BYTES.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
            if piece.len() > room {
                self.is_cut = true;
                break;
            }
        }
        Ok(())
    }

    fn quote(&self, source: &str) -> String {
        match self.bytes.is_empty() {
            true => "(no output)".to_owned(),
            false => quote_block(source, &String::from_utf8_lossy(&self.bytes)),
        }
    }
}

impl ContainerCall<'_> {
    /// Carries out a call. A container that's left running in the background is returned with the answer.
    pub(crate) async fn perform(
        &self,
        request: &ContainerRequest,
    ) -> Result<(ContainerAnswer, Option<BackgroundContainer>), ContainerError> {
        let answer = match request {
            ContainerRequest::List {} => self.list().await,
            ContainerRequest::Pull { image } => self.pull(image).await,
            ContainerRequest::Build { .. } => self.build(request).await,
            ContainerRequest::Run { .. } => return self.run(request).await,
            ContainerRequest::Exec { container, command, seconds } => self.exec(container, command, *seconds).await,
            ContainerRequest::Logs { container, lines } => self.logs(container, *lines).await,
            ContainerRequest::End { container, action } => self.end(container, *action).await,
        };
        Ok((answer?, None))
    }

    async fn list(&self) -> Result<ContainerAnswer, ContainerError> {
        let all = self.project_containers().await?;
        let options = ListImagesOptionsBuilder::default().build();
        let images = self.limit.quick("listing images", self.client.docker.list_images(Some(options))).await?;
        let engine = self.client.engine_name(self.limit).await?;
        let mut text = format!("Engine: {engine}\nContainers of this project: {}\n", all.len());
        for one in all.iter().take(MAX_LISTED) {
            let status = shown_name(one.status.as_deref().unwrap_or_default());
            let image = shown_name(one.image.as_deref().unwrap_or_default());
            text += &format!("- {} ({image}): {status}\n", name_of(one));
        }
        text += &format!("Images: {}\n", images.len());
        for image in images.iter().take(MAX_LISTED) {
            let names: Vec<String> = image.repo_tags.iter().take(5).map(|name| shown_name(name)).collect();
            text += &format!("- {} ({}, {} MB)\n", names.join(", "), short(&said(&image.id)), image.size >> 20);
        }
        if images.len() > MAX_LISTED {
            text += &format!("(only the first {MAX_LISTED} images are shown)\n");
        }
        Ok(ContainerAnswer::done(quote_block("the container engine", text.trim_end())))
    }

    /// Lists the containers with the project's label. The engine's own filter is not relied on.
    async fn project_containers(&self) -> Result<Vec<ContainerSummary>, ContainerError> {
        labelled(self.client, self.limit, PROJECT_LABEL, &self.owner.project.to_string()).await
    }

    /// Finds a container of the project by its name or the beginning of its id. Returns its id and name.
    async fn find(&self, named: &str) -> Result<(String, String), ContainerError> {
        let all = self.project_containers().await?;
        let is_meant = |one: &&ContainerSummary| {
            let id = one.id.as_deref().unwrap_or_default();
            name_of(one) == named || (named.len() >= SHORT_ID_CHARS && id.starts_with(named))
        };
        let found = all.iter().find(is_meant).ok_or_else(|| ContainerError::UnknownContainer(shown_name(named)))?;
        Ok((checked_id(found.id.as_deref().unwrap_or_default())?, name_of(found)))
    }

    async fn pull(&self, image: &str) -> Result<ContainerAnswer, ContainerError> {
        let name = ImageName::parse(image).map_err(|why| ContainerError::Refused(why.to_string()))?;
        let options = CreateImageOptions {
            from_image: Some(name.repository_text()),
            tag: Some(name.digest.clone().unwrap_or_else(|| name.tag_text().to_owned())),
            ..CreateImageOptions::default()
        };
        let mut progress = self.client.docker.create_image(Some(options), None, None);
        let fetch = async {
            while let Some(line) = progress.next().await {
                line?;
            }
            Ok(())
        };
        self.limit.keep("getting the image", PULL_TIMEOUT, fetch).await?;
        let known = self.inspect(&name.full_text()).await?;
        let Some((known, digests)) = known else { return Err(ContainerError::UnknownImage(name.full_text())) };
        if let Some(wanted) = &name.digest
            && !digests.iter().any(|digest| digest.ends_with(&format!("@{wanted}")))
        {
            let why = format!("{} isn't what it has now", name.full_text());
            return Err(ContainerError::Engine { what: "the image's digest", why });
        }
        Ok(ContainerAnswer::done(format!("Got {}.", known.about)))
    }

    /// Looks for an image that the engine has. Returns it with its digests.
    async fn inspect(&self, name: &str) -> Result<Option<(KnownImage, Vec<String>)>, ContainerError> {
        match self.limit.quick("looking for the image", self.client.docker.inspect_image(name)).await {
            Ok(found) => {
                let id = checked_id(found.id.as_deref().unwrap_or_default())?;
                let digests: Vec<String> =
                    found.repo_digests.unwrap_or_default().iter().map(|digest| shown_name(digest)).collect();
                let digest = digests.first().map(|digest| format!(", {digest}")).unwrap_or_default();
                let about = format!("the image {name} (id {}{digest})", short(&id));
                Ok(Some((KnownImage { id, about }, digests)))
            }
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Finds the image that a call names. It's never fetched here.
    pub(crate) async fn find_image(&self, named: &str) -> Result<KnownImage, ContainerError> {
        if named.starts_with("sha256:") {
            let id = checked_id(named).map_err(|_| ContainerError::Refused(format!("{named} is no id of an image")))?;
            return self.inspect(&id).await?.map(|(known, _)| known).ok_or(ContainerError::UnknownImage(id));
        }
        let name = ImageName::parse(named).map_err(|why| ContainerError::Refused(why.to_string()))?;
        for text in name.local_texts() {
            if let Some((known, _)) = self.inspect(&text).await? {
                return Ok(known);
            }
        }
        Err(ContainerError::UnknownImage(name.full_text()))
    }

    async fn run(
        &self,
        request: &ContainerRequest,
    ) -> Result<(ContainerAnswer, Option<BackgroundContainer>), ContainerError> {
        let ContainerRequest::Run { image, command, path, writable, network, background, seconds } = request else {
            return Err(ContainerError::Refused("that is no call that runs a container".to_owned()));
        };
        command.as_deref().map_or(Ok(()), checked_command)?;
        if *network && self.network_restricted {
            let why = "containers get no network where security.network_restricted is set";
            return Err(ContainerError::Refused(why.to_owned()));
        }
        if *writable && path.is_none() {
            return Err(ContainerError::Refused("say in path which folder the container may write to".to_owned()));
        }
        let mount = match path {
            Some(path) => Some((self.access.locate_mount(path, *writable)?, *writable)),
            None => None,
        };
        let known = self.find_image(image).await?;
        let own = labelled(self.client, self.limit, RUN_LABEL, &self.owner.run.to_string()).await?;
        if own.len() >= MAX_RUN_CONTAINERS {
            return Err(ContainerError::TooManyContainers);
        }
        let plan = ContainerPlan {
            owner: self.owner.clone(),
            image: known.id.clone(),
            command: command.clone(),
            user: mount.as_ref().and_then(|_| mount_user(&self.client.socket)),
            mount,
            network: *network,
            limits: self.limits.clone(),
        };
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), &known.id);
        let name = format!("tracebook-{:010x}", random & 0xff_ffff_ffff);
        let most = if *background { MAX_BACKGROUND_SECS } else { MAX_COMMAND_SECS };
        let seconds = limited_secs(*seconds, most, self.limits);
        let done = self.run_plan(&plan, &name, &known, (*background, seconds)).await;
        if !(*background && done.is_ok()) {
            // Also where the request was broken off: the engine may make the container all the same.
            let is_late = matches!(done, Err(ContainerError::Cancelled | ContainerError::TimedOut { .. }));
            let gone = remove_surely(self.client, &name, is_late).await;
            if let (Ok(_), Err(error)) = (&done, gone) {
                return Err(error);
            }
        }
        done
    }

    async fn run_plan(
        &self,
        plan: &ContainerPlan,
        name: &str,
        known: &KnownImage,
        (background, seconds): (bool, u64),
    ) -> Result<(ContainerAnswer, Option<BackgroundContainer>), ContainerError> {
        let docker = &self.client.docker;
        let options = CreateContainerOptions { name: Some(name.to_owned()), ..CreateContainerOptions::default() };
        let create = docker.create_container(Some(options), plan.to_body());
        let made = self.limit.quick("making the container", create).await?;
        let id = checked_id(&made.id)?;
        let state = self.inspect_container(&id).await?;
        if state.image.as_deref().is_none_or(|image| bare_id(image) != bare_id(&known.id)) {
            let why = "it made the container of another image".to_owned();
            return Err(ContainerError::Engine { what: "the container's image", why });
        }
        self.limit.quick("starting the container", docker.start_container(&id, None)).await?;
        let about = &known.about;
        if background {
            let text = format!(
                "Started {name} from {about}. It is stopped after {seconds} s, and removed when this run ends. \
                 container_logs shows what it prints."
            );
            return Ok((ContainerAnswer::done(text), Some(BackgroundContainer { id, seconds })));
        }
        let end = self.wait(&id, seconds).await?;
        let (printed, _) = self.read_log(&id, None).await?;
        let cut = if printed.is_cut { " It printed more than is kept." } else { "" };
        let text = format!("{}{cut} It ran in a container of {about}.\n{}", end.text, printed.quote("the container"));
        Ok((ContainerAnswer { success: end.success, text }, None))
    }

    async fn inspect_container(&self, id: &str) -> Result<ContainerInspectResponse, ContainerError> {
        let begun = Instant::now();
        loop {
            let inspect = self.client.docker.inspect_container(id, None);
            match self.limit.quick("looking at the container", inspect).await {
                Err(error) if is_in_between(&error) && begun.elapsed() < ENGINE_TIMEOUT => {
                    self.limit.pause(WAIT_INTERVAL).await?;
                }
                other => return other,
            }
        }
    }

    /// Waits until a container has ended, and kills it after `seconds`.
    async fn wait(&self, id: &str, seconds: u64) -> Result<ContainerAnswer, ContainerError> {
        let until = Instant::now() + Duration::from_secs(seconds);
        loop {
            let state = self.inspect_container(id).await?.state.unwrap_or_default();
            let is_running = state.running.unwrap_or(false);
            if !is_running && state.oom_killed == Some(true) {
                let limit = self.limits.memory_bytes.unwrap_or(crate::DEFAULT_MEMORY_BYTES) >> 20;
                let text = format!("(stopped: it took more than {limit} MB of memory)");
                return Ok(ContainerAnswer { success: false, text });
            }
            if !is_running {
                let code = state.exit_code.unwrap_or(-1);
                return Ok(ContainerAnswer { success: code == 0, text: format!("(exit code {code})") });
            }
            if Instant::now() > until {
                self.kill(id).await?;
                return Ok(ContainerAnswer { success: false, text: format!("(stopped after {seconds} s)") });
            }
            self.limit.pause(WAIT_INTERVAL).await?;
        }
    }

    async fn kill(&self, id: &str) -> Result<(), ContainerError> {
        kill(self.client, self.limit, id).await
    }

    /// Reads the last lines of a container's log, or all of it.
    async fn read_log(&self, id: &str, lines: Option<u32>) -> Result<(PrintedOutput, String), ContainerError> {
        let tail = lines.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).tail(&tail).build();
        let mut printed = PrintedOutput::default();
        let read = printed.read(self.client.docker.logs(id, Some(options)));
        self.limit.quick("reading what the container printed", read).await?;
        Ok((printed, tail))
    }

    async fn logs(&self, container: &str, lines: Option<u32>) -> Result<ContainerAnswer, ContainerError> {
        let (id, name) = self.find(container).await?;
        let (printed, tail) = self.read_log(&id, Some(lines.unwrap_or(DEFAULT_LOG_LINES))).await?;
        Ok(ContainerAnswer::done(printed.quote(&format!("the last {tail} lines that {name} printed"))))
    }

    async fn exec(
        &self,
        container: &str,
        command: &str,
        seconds: Option<u64>,
    ) -> Result<ContainerAnswer, ContainerError> {
        checked_command(command)?;
        let (id, name) = self.find(container).await?;
        let docker = &self.client.docker;
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(vec!["/bin/sh".to_owned(), "-c".to_owned(), command.to_owned()]),
            privileged: Some(false),
            ..CreateExecOptions::default()
        };
        let made = self.limit.quick("preparing the command", docker.create_exec(&id, options)).await?;
        let exec = checked_id(&made.id)?;
        let seconds = limited_secs(seconds, MAX_COMMAND_SECS, self.limits);
        let mut printed = PrintedOutput::default();
        let read = async {
            match docker.start_exec(&exec, None).await? {
                StartExecResults::Attached { output, .. } => printed.read(output).await,
                StartExecResults::Detached => Ok(()),
            }
        };
        let ended = self.limit.keep("the command", Duration::from_secs(seconds), read).await;
        // The API can't stop a single command, so its container is stopped.
        let stopped = match &ended {
            Ok(()) if printed.is_cut => Some(format!("it printed more than {} MB", MAX_OUTPUT_BYTES >> 20)),
            Err(ContainerError::TimedOut { .. }) => Some(format!("it took longer than {seconds} s")),
            Err(ContainerError::Cancelled) => {
                let unstoppable = EngineLimit { is_stopped: &|| false };
                kill(self.client, unstoppable, &id).await?;
                return Err(ContainerError::Cancelled);
            }
            Ok(()) | Err(_) => None,
        };
        if let Some(why) = stopped {
            self.kill(&id).await?;
            let text = format!("(stopped with its container {name}: {why})\n{}", printed.quote(&name));
            return Ok(ContainerAnswer { success: false, text });
        }
        ended?;
        let state = self.limit.quick("looking at the command", docker.inspect_exec(&exec)).await?;
        let code = state.exit_code.unwrap_or(-1);
        Ok(ContainerAnswer { success: code == 0, text: format!("(exit code {code})\n{}", printed.quote(&name)) })
    }

    async fn end(&self, container: &str, action: EndAction) -> Result<ContainerAnswer, ContainerError> {
        let (id, name) = self.find(container).await?;
        if action == EndAction::Remove {
            remove_surely(self.client, &id, false).await?;
            return Ok(ContainerAnswer::done(format!("Removed {name}.")));
        }
        let options = StopContainerOptionsBuilder::default().t(STOP_SECS).build();
        self.limit.quick("stopping the container", self.client.docker.stop_container(&id, Some(options))).await?;
        Ok(ContainerAnswer::done(format!("Stopped {name}. container_logs shows what it printed.")))
    }
}

/// Returns whether a container is in a state that `bollard` doesn't know and that passes: Podman says `stopped` between
/// the end of a program and `exited`.
fn is_in_between(error: &ContainerError) -> bool {
    matches!(error, ContainerError::Engine { why, .. } if why.contains("unknown variant `stopped`"))
}

fn name_of(container: &ContainerSummary) -> String {
    let name = container.names.as_ref().and_then(|names| names.first()).map_or("", String::as_str);
    shown_name(name.trim_start_matches('/'))
}

/// Kills a container; it may have ended by itself.
pub(crate) async fn kill(client: &EngineClient, limit: EngineLimit<'_>, id: &str) -> Result<(), ContainerError> {
    let options = KillContainerOptionsBuilder::default().signal("SIGKILL").build();
    match limit.quick("stopping the container", client.docker.kill_container(id, Some(options))).await {
        // 409: it isn't running.
        Err(ContainerError::Engine { why, .. }) if why.starts_with("404 ") || why.starts_with("409 ") => Ok(()),
        other => other,
    }
}

/// Lists the containers that have this label.
pub(crate) async fn labelled(
    client: &EngineClient,
    limit: EngineLimit<'_>,
    label: &str,
    value: &str,
) -> Result<Vec<ContainerSummary>, ContainerError> {
    let filters = HashMap::from([("label".to_owned(), vec![format!("{label}={value}")])]);
    let begun = Instant::now();
    let mut all = loop {
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        match limit.quick("listing containers", client.docker.list_containers(Some(options))).await {
            Err(error) if is_in_between(&error) && begun.elapsed() < ENGINE_TIMEOUT => {
                limit.pause(WAIT_INTERVAL).await?;
            }
            other => break other?,
        }
    };
    // An engine may overlook a filter.
    all.retain(|one| one.labels.as_ref().and_then(|labels| labels.get(label)).is_some_and(|own| own == value));
    Ok(all)
}

/// Removes a container, with the volumes that only it has. `is_late`: it may come into being only now.
async fn remove_surely(client: &EngineClient, name: &str, is_late: bool) -> Result<(), ContainerError> {
    let limit = EngineLimit { is_stopped: &|| false };
    let begun = Instant::now();
    loop {
        // Podman asks a container to end first, and waits.
        match kill(client, limit, name).await {
            Ok(()) | Err(ContainerError::Engine { .. }) => {}
            Err(error) => return Err(error),
        }
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let removed = limit.quick("removing the container", client.docker.remove_container(name, Some(options))).await;
        match removed {
            Ok(()) => return Ok(()),
            Err(error) if is_missing(&error) && (!is_late || begun.elapsed() > LATE_CREATE_TIMEOUT) => return Ok(()),
            Err(error @ ContainerError::Engine { .. }) if begun.elapsed() > REMOVE_TIMEOUT => return Err(error),
            Err(ContainerError::Engine { .. }) => tokio::time::sleep(WAIT_INTERVAL).await,
            Err(error) => return Err(error),
        }
    }
}

/// Removes all containers that have this label.
pub(crate) async fn remove_labelled(client: &EngineClient, label: &str, value: &str) -> Result<(), ContainerError> {
    let limit = EngineLimit { is_stopped: &|| false };
    for one in labelled(client, limit, label, value).await? {
        remove_surely(client, &checked_id(one.id.as_deref().unwrap_or_default())?, false).await?;
    }
    Ok(())
}

/// Removes all containers of a process.
pub(crate) async fn remove_owned(client: &EngineClient, owner: &str) -> Result<(), ContainerError> {
    remove_labelled(client, OWNER_LABEL, owner).await
}

/// Removes all containers of a run.
pub(crate) async fn remove_of_run(client: &EngineClient, run: &str) -> Result<(), ContainerError> {
    remove_labelled(client, RUN_LABEL, run).await
}
