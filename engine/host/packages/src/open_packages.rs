//! The packages of a workspace that is open: what a package may not replace there, and what the session learns of a
//! change.

use crate::{
    IndexEntry, IndexLocation, InstallTargets, InstalledPackage, InstalledVolume, OpenedIndex, PackageContent,
    PackageError, PackagePart, PackageSource, PackageStore, PlannedChange, SettledChange, fetch_package,
};
use agent::agent_definition::AgentDefinition;
use engine::{Command, ScanState, Session};
use host::maintenance::configuration;
use host::{Handle, OwnerGone, WaitError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{DocId, RegisteredTool};
use text::untrusted_text;

/// Time limit for reading the tools of the workspace.
const TOOLS_READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for looking through a volume's folder.
const SCAN_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Reads the indexes that the configuration of a workspace names.
///
/// # Errors
/// Returns an error if the configuration can't be read or names none, or if an entry isn't an index's location.
pub fn configured_indexes(workspace: &Path) -> Result<Vec<IndexLocation>, PackageError> {
    let config = configuration::load_config(workspace)?;
    if config.packages.indexes.is_empty() {
        return Err(PackageError::Index(
            "there is no index to ask: list folders, https addresses or Git repositories under `packages.indexes` in \
             config.yaml, or add a package by its folder, archive or address"
                .to_owned(),
        ));
    }
    config.packages.indexes.iter().map(|word| IndexLocation::read(word, workspace)).collect()
}

/// Returns the newest version of each package of an index whose name or description has all these words.
///
/// # Errors
/// Returns an error if the index can't be reached, or isn't one.
pub fn search_index(location: &IndexLocation, words: &str) -> Result<Vec<IndexEntry>, PackageError> {
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let fits = |entry: &&IndexEntry| {
        let text = format!("{} {}", entry.manifest.name, entry.manifest.description).to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    Ok(OpenedIndex::open(location)?.newest().into_iter().filter(fits).cloned().collect())
}

/// The packages of an open workspace.
#[derive(Clone)]
pub struct OpenPackages {
    handle: Handle,
    store: PackageStore,
}

impl OpenPackages {
    /// Creates the access to the packages of the workspace behind `handle`.
    pub fn new(handle: Handle) -> OpenPackages {
        let store = PackageStore::new(handle.workspace_folder());
        OpenPackages { handle, store }
    }

    /// Returns the workspace's folder.
    pub fn workspace_folder(&self) -> &Path {
        self.handle.workspace_folder()
    }

    /// Returns what is on disk.
    pub fn store(&self) -> &PackageStore {
        &self.store
    }

    /// Waits until nothing else in this process changes packages, and finishes a change that a crash has interrupted.
    /// Hold the guard while something is changed.
    ///
    /// # Errors
    /// Returns an error if the interrupted change can't be finished.
    pub fn begin(&self) -> Result<MutexGuard<'static, ()>, PackageError> {
        static PACKAGE_WORK: Mutex<()> = Mutex::new(());
        let only = PACKAGE_WORK.lock().unwrap_or_else(PoisonError::into_inner);
        if self.store.has_interrupted_change()
            && let Some(settled) = self.store.resume()?
        {
            self.forget_tools(&settled.gone_tools)?;
            self.store.finish()?;
        }
        Ok(only)
    }

    /// Reads the workspace's tools and agents again, and returns the tools.
    ///
    /// # Errors
    /// Returns an error if they can't be read in a minute.
    pub fn read_tools(&self) -> Result<Vec<RegisteredTool>, PackageError> {
        self.handle.run_command(Command::ReadSetup)?;
        let ready = |session: &Session| {
            let agents = session.agents();
            agents.setup().filter(|_| !agents.is_reading())?;
            Some(session.user_tools()?.to_vec())
        };
        let found = self.handle.wait(Some(TOOLS_READ_TIMEOUT), ready)?;
        found.ok_or(PackageError::Slow("the tools could not be read in a minute"))
    }

    /// Removes the registrations of tools whose files are gone.
    fn forget_tools(&self, names: &[String]) -> Result<(), PackageError> {
        if names.is_empty() {
            return Ok(());
        }
        let known = self.read_tools()?;
        for name in tool_names(&known).filter(|known| names.iter().any(|name| name == known)) {
            self.handle.run_command(Command::RemoveTool { name: name.to_owned() })?;
        }
        Ok(self.handle.wait_until_saved()?)
    }

    /// Gets the package that a word names: a path, an address, or a name in an index. Relative paths begin at `here`.
    ///
    /// # Errors
    /// Returns an error if there's no such package, or if it isn't valid.
    pub fn fetch(&self, word: &str, here: &Path) -> Result<(PackageContent, PackageSource), PackageError> {
        if let Some(source) = PackageSource::read(word, here)? {
            return Ok((fetch_package(&source, word)?, source));
        }
        let word = word.trim();
        let mut refused = None;
        for location in configured_indexes(self.workspace_folder())? {
            let index = match OpenedIndex::open(&location) {
                Ok(index) => index,
                Err(error) => {
                    refused = Some(error);
                    continue;
                }
            };
            if index.newest_of(word).is_some() {
                let source = PackageSource::Index(location);
                return Ok((fetch_package(&source, word)?, source));
            }
        }
        // The package may be in the index that can't be reached.
        Err(refused.unwrap_or_else(|| {
            PackageError::Index(format!("no index has a package {word}; `tracebook packages search` lists them"))
        }))
    }

    /// Refuses a package whose tools or agents would take the place of others. `old` is its installed version.
    ///
    /// # Errors
    /// Returns an error that names what is taken.
    pub fn check_names(&self, content: &PackageContent, old: Option<&InstalledPackage>) -> Result<(), PackageError> {
        let known = self.read_tools()?;
        let is_own = |name: &&str| old.is_some_and(|old| old.tools.contains_key(*name));
        if let Some(taken) = tool_names(&known).find(|name| content.tools.contains_key(*name) && !is_own(name)) {
            return Err(PackageError::Conflict(format!(
                "you have a tool {taken} already, which isn't from this package; `tracebook tools {taken} --remove` \
                 removes it"
            )));
        }
        let agents = || content.parts().filter(|(part, ..)| *part == PackagePart::Agents);
        let own_paths: Vec<String> = agents().map(|(_, name, _)| format!("agents/{name}")).collect();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (part, name, bytes) in agents() {
            let agent = AgentDefinition::parse(&String::from_utf8_lossy(bytes));
            let agent = agent.map_err(|error| PackageError::Malformed(format!("{}/{name}: {error}", part.folder())))?;
            names.insert(agent.name.to_lowercase(), agent.name);
        }
        let workspace = self.workspace_folder().to_owned();
        let taken = self.handle.read(move |session| {
            let agents = session.agents().setup().map(|setup| setup.agents.clone()).unwrap_or_default();
            let is_other = |agent: &AgentDefinition| {
                let path = agent.path.as_deref().map(Path::new);
                !own_paths.iter().any(|own| path == Some(workspace.join(own).as_path()))
            };
            agents.into_iter().filter(is_other).find_map(|agent| names.get(&agent.name.to_lowercase()).cloned())
        })?;
        match taken {
            Some(name) => Err(PackageError::Conflict(format!(
                "there is an agent {name} already, which isn't from this package; rename it"
            ))),
            None => Ok(()),
        }
    }

    /// Returns where the files of a package go. Notes of an installed package stay in their volume; those of a new one
    /// go to `volume`.
    ///
    /// # Errors
    /// Returns an error if notes have no volume, or if nothing may be written there.
    pub fn targets(
        &self,
        content: &PackageContent,
        old: Option<&InstalledPackage>,
        volume: Option<DocId>,
    ) -> Result<InstallTargets, PackageError> {
        let templates = self.handle.read(|session| session.settings().templates.clone())?;
        if !content.has_notes() && old.is_none_or(|old| old.volume.is_none()) {
            return Ok(InstallTargets { volume: None, templates });
        }
        if let Some(volume) = old.and_then(|old| old.volume.clone()) {
            let root = self.volume_root(&volume)?.ok_or_else(|| closed_volume(&volume, "open its folder again"))?;
            self.ensure_writable(&volume)?;
            return Ok(InstallTargets { volume: Some((volume, root)), templates });
        }
        let chosen = self.handle.read(move |session| {
            let volume = session.volume(volume?)?;
            Some((volume.id, volume.name.clone(), volume.root.clone()?, session.read_only_reason(volume.id)))
        })?;
        match chosen {
            None => Err(PackageError::Conflict("the package has notes, which need a volume with a folder".to_owned())),
            Some((.., Some(why))) => Err(PackageError::Conflict(why)),
            Some((id, name, root, None)) => {
                Ok(InstallTargets { volume: Some((InstalledVolume { id: id.to_string(), name }, root)), templates })
            }
        }
    }

    /// Returns the folder of a volume; `None` if it isn't open.
    fn volume_root(&self, volume: &InstalledVolume) -> Result<Option<PathBuf>, OwnerGone> {
        let id = volume.id.clone();
        self.handle.read(move |session| {
            let volume = session.volumes().find(|volume| volume.id.to_string() == id)?;
            volume.root.clone()
        })
    }

    /// Refuses a change of notes in a read-only volume.
    fn ensure_writable(&self, volume: &InstalledVolume) -> Result<(), PackageError> {
        let id = volume.id.clone();
        let reason = self.handle.read(move |session| {
            let volume = session.volumes().find(|volume| volume.id.to_string() == id)?;
            session.read_only_reason(volume.id)
        })?;
        reason.map_or(Ok(()), |why| Err(PackageError::Conflict(why)))
    }

    /// Returns the folder with the notes of an installed package; `None` if it has none, or if their volume isn't open.
    ///
    /// # Errors
    /// Returns an error if the program is closing.
    pub fn installed_root(&self, package: &InstalledPackage) -> Result<Option<PathBuf>, OwnerGone> {
        package.volume.as_ref().map_or(Ok(None), |volume| self.volume_root(volume))
    }

    /// Installs exactly this content, or replaces the installed version by it.
    ///
    /// # Errors
    /// Returns an error if something of the user's is in its place, or if the disk fails.
    pub fn install(
        &self,
        content: &PackageContent,
        source: &PackageSource,
        targets: &InstallTargets,
    ) -> Result<SettledChange, PackageError> {
        self.carry_out(&self.store.plan_install(content, source, targets)?)
    }

    /// Removes a package.
    ///
    /// # Errors
    /// Returns an error if it isn't installed, if the volume with its notes isn't open, or if the disk fails.
    pub fn remove(&self, name: &str) -> Result<SettledChange, PackageError> {
        let lock = self.store.lock()?;
        let old = lock.package(name)?;
        let root = self.installed_root(old)?;
        if let (None, Some(volume)) = (&root, &old.volume) {
            return Err(closed_volume(volume, "open its folder again, so that they can be removed"));
        }
        old.volume.as_ref().map_or(Ok(()), |volume| self.ensure_writable(volume))?;
        self.carry_out(&self.store.plan_removal(name, root.as_deref())?)
    }

    /// Carries out a change, and lets the session see what has changed.
    fn carry_out(&self, change: &PlannedChange) -> Result<SettledChange, PackageError> {
        let settled = self.store.carry_out(change)?;
        self.forget_tools(&settled.gone_tools)?;
        self.store.finish()?;
        self.read_tools()?;
        for root in &settled.changed_roots {
            self.rescan(root)?;
        }
        Ok(settled)
    }

    /// Looks through a volume's folder again, and waits until that is done.
    fn rescan(&self, root: &Path) -> Result<(), PackageError> {
        let folder = root.to_owned();
        let before = self.handle.read(move |session| {
            let known = session.volumes().find(|volume| volume.root.as_ref() == Some(&folder));
            known.map_or(0, |volume| volume.scans + u64::from(volume.scanning != ScanState::Idle))
        })?;
        self.handle.run_command(Command::OpenFolder { folder: root.to_owned(), name: None })?;
        let folder = root.to_owned();
        let look = move |session: &Session| {
            let volume = session.volumes().find(|volume| volume.root.as_ref() == Some(&folder))?;
            (volume.scans > before && volume.scanning == ScanState::Idle).then_some(())
        };
        match self.handle.wait_on_disk(Some(SCAN_TIMEOUT), look) {
            Ok(Some(())) => Ok(()),
            Ok(None) => Err(PackageError::Slow("the folder could not be looked through in an hour")),
            Err(WaitError::Gone) => Err(OwnerGone.into()),
            Err(WaitError::Refused(why)) => Err(PackageError::Unsaved(why)),
        }
    }
}

/// Returns the names of tools.
pub fn tool_names(tools: &[RegisteredTool]) -> impl Iterator<Item = &str> {
    tools.iter().filter_map(RegisteredTool::newest_version).map(|tool| tool.name.as_str())
}

fn closed_volume(volume: &InstalledVolume, advice: &str) -> PackageError {
    let name = untrusted_text::escape_line(&volume.name);
    PackageError::Conflict(format!("the volume {name} with the package's notes isn't open; {advice}"))
}
