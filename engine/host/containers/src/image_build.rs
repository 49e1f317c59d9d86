//! Builds images: the folder is packed here, file by file and without symlinks, and the engine does the rest.

use crate::container_actions::{ContainerCall, limited_secs};
use crate::container_spec::{PROJECT_LABEL, RUN_LABEL};
use crate::engine_client::said;
use crate::project_folder::{ProjectAccess, ProjectFiles};
use crate::{
    ContainerAnswer, ContainerError, ContainerRequest, DEFAULT_MEMORY_BYTES, MAX_COMMAND_SECS, MAX_OUTPUT_BYTES,
};
use agent::image_name::ImageName;
use agent::prompt_quote::quote_block;
use bollard::query_parameters::BuildImageOptions;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::time::Duration;

/// Maximum size in bytes of what an image is built from.
const MAX_BUILD_BYTES: u64 = 64 << 20;
/// Maximum number of files that an image is built from.
const MAX_BUILD_FILES: usize = 10_000;
/// Maximum depth of folders that an image is built from.
const MAX_BUILD_DEPTH: usize = 40;
/// Where built images are named, so that none can pass for one of a registry.
const BUILT_PREFIX: &str = "localhost/tracebook/";
/// Memory of a build's steps in bytes: the API takes at most this.
const MAX_BUILD_MEMORY_BYTES: u64 = 2_047 << 20;

/// Packs a folder of the project.
struct ContextPacker<'a> {
    access: ProjectAccess<'a>,
    tar: tar::Builder<Vec<u8>>,
    files: usize,
    bytes: u64,
}

impl ContextPacker<'_> {
    /// Adds a folder with all in it. `at` is its path in the project, `inner` the one in the archive.
    fn add(&mut self, at: &str, inner: &str, depth: usize) -> Result<(), ContainerError> {
        let refused = |why: String| Err(ContainerError::Refused(why));
        if depth > MAX_BUILD_DEPTH {
            return refused(format!("{at} is more than {MAX_BUILD_DEPTH} folders deep; build from another folder"));
        }
        let files: &dyn ProjectFiles = self.access.files;
        let join = |above: &str, name: &str| if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        for entry in files.list_folder(at)? {
            let (path, inside) = (join(at, &entry.name), join(inner, &entry.name));
            if self.access.is_left_out(&path) {
                continue;
            }
            if entry.is_folder {
                self.add(&path, &inside, depth + 1)?;
                continue;
            }
            let packed = (|| {
                let mut file = files.open_file(&path).map_err(std::io::Error::other)?;
                let size = file.metadata()?.len();
                (self.files, self.bytes) = (self.files + 1, self.bytes + size);
                if self.files > MAX_BUILD_FILES || self.bytes > MAX_BUILD_BYTES {
                    let most = MAX_BUILD_BYTES >> 20;
                    let why =
                        format!("it has more than {most} MB or {MAX_BUILD_FILES} files; build from a smaller folder");
                    return Err(std::io::Error::other(why));
                }
                self.tar.append_file(&inside, &mut file)
            })();
            packed.map_err(|error| ContainerError::Refused(format!("{path} can't be built from: {error}")))?;
        }
        Ok(())
    }
}

/// Returns the archive of a folder of the project.
pub(crate) fn pack_folder(access: ProjectAccess<'_>, path: &str) -> Result<Vec<u8>, ContainerError> {
    let path = ProjectAccess::plain_path(path)?;
    let mut packer = ContextPacker { access, tar: tar::Builder::new(Vec::new()), files: 0, bytes: 0 };
    packer.add(&path, "", 0)?;
    packer.tar.into_inner().map_err(|source| ContainerError::System { what: "packing the folder", source })
}

/// Returns the name of a built image, or why it's none.
pub(crate) fn built_name(name: &str) -> Result<String, ContainerError> {
    let own = format!("{BUILT_PREFIX}{}", name.strip_prefix(BUILT_PREFIX).unwrap_or(name));
    match ImageName::parse(&own) {
        Ok(parsed) if parsed.digest.is_none() => Ok(parsed.full_text()),
        Ok(_) | Err(_) => Err(ContainerError::Refused(format!(
            "{name} is no name for a new image; it takes small letters, digits, - and _, and perhaps :TAG"
        ))),
    }
}

impl ContainerCall<'_> {
    /// Builds an image.
    pub(crate) async fn build(&self, request: &ContainerRequest) -> Result<ContainerAnswer, ContainerError> {
        let ContainerRequest::Build { path, name, dockerfile, network, seconds } = request else {
            return Err(ContainerError::Refused("that is no call that builds an image".to_owned()));
        };
        if self.network_restricted {
            let why = "images can't be built where security.network_restricted is set, because a Dockerfile may name \
                       any image and address";
            return Err(ContainerError::Refused(why.to_owned()));
        }
        let name = built_name(name)?;
        let dockerfile = ProjectAccess::plain_path(dockerfile.as_deref().unwrap_or("Dockerfile"))?;
        let context = pack_folder(self.access, path)?;
        let memory = self.limits.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES).min(MAX_BUILD_MEMORY_BYTES);
        let memory = i32::try_from(memory).unwrap_or(i32::MAX);
        let labels = [(PROJECT_LABEL, self.owner.project.to_string()), (RUN_LABEL, self.owner.run.to_string())];
        let options = BuildImageOptions {
            dockerfile,
            t: Some(name.clone()),
            rm: true,
            forcerm: true,
            memory: Some(memory),
            memswap: Some(memory),
            networkmode: (!network).then(|| "none".to_owned()),
            labels: Some(
                labels.map(|(name, value)| (format!("{name}.built"), value)).into_iter().collect::<HashMap<_, _>>(),
            ),
            ..BuildImageOptions::default()
        };
        let mut printed = String::new();
        let mut failure = None;
        let mut progress = self.client.docker.build_image(options, None, Some(bollard::body_full(context.into())));
        let build = async {
            while let Some(line) = progress.next().await {
                match line {
                    Ok(line) => printed.push_str(line.stream.as_deref().unwrap_or_default()),
                    // The steps before are worth reading.
                    Err(error @ bollard::errors::Error::DockerStreamError { .. }) => failure = Some(error.to_string()),
                    Err(error) => return Err(error),
                }
                if printed.len() > MAX_OUTPUT_BYTES {
                    failure = Some(format!("it printed more than {} MB", MAX_OUTPUT_BYTES >> 20));
                    break;
                }
            }
            Ok(())
        };
        let seconds = limited_secs(seconds.or(Some(MAX_COMMAND_SECS)), MAX_COMMAND_SECS, self.limits);
        self.limit.keep("the build", Duration::from_secs(seconds), build).await?;
        let quoted = quote_block("the build", &printed);
        if let Some(why) = failure {
            return Ok(ContainerAnswer { success: false, text: format!("The build failed: {}\n{quoted}", said(&why)) });
        }
        match self.find_image(&name).await {
            Ok(known) => Ok(ContainerAnswer::done(format!("Built {}.\n{quoted}", known.about))),
            Err(ContainerError::UnknownImage(_)) => {
                Ok(ContainerAnswer { success: false, text: format!("The build made no image.\n{quoted}") })
            }
            Err(error) => Err(error),
        }
    }
}
