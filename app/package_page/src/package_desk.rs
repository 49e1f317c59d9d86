//! Does the work with packages for the window, on threads of its own: the window shows what is known and asks for more.

use host::Handle;
use packages::{
    IndexEntry, IndexLocation, InstalledPackage, OpenPackages, PackageContent, PackageError, PackagePermissions,
    PackageSource, SettledChange, configured_indexes, fetch_package, fetch_update, search_index, tool_names,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{DocId, RegisteredTool};

/// Maximum number of found packages that are shown.
const MAX_FOUND: usize = 200;

/// An installed package in the list.
#[derive(Clone, Debug)]
pub struct ListedPackage {
    /// The package.
    pub package: InstalledPackage,
    /// Its files that the user has changed, and those that are gone.
    pub changed: Vec<String>,
    /// Its files that are gone.
    pub gone: Vec<String>,
    /// Its tools that wait for approval.
    pub waiting_tools: Vec<String>,
}

/// A package that an index has.
#[derive(Clone, Debug)]
pub struct FoundPackage {
    /// Its entry.
    pub entry: IndexEntry,
    /// The index.
    pub index: IndexLocation,
}

/// What the indexes have.
#[derive(Clone, Debug, Default)]
pub struct FoundPackages {
    /// The packages.
    pub packages: Vec<FoundPackage>,
    /// Why some indexes couldn't be asked.
    pub failures: Vec<String>,
}

/// A package that was read to be looked at. Exactly this content is installed.
#[derive(Clone, Debug)]
pub struct ShownPackage {
    /// The package's files.
    pub content: PackageContent,
    /// The folder, archive or address that it was read from.
    pub source: PackageSource,
    /// The installed version that it replaces.
    pub old: Option<InstalledPackage>,
    /// What it wants beyond what the user has approved before; all that it wants if it isn't installed.
    pub more: PackagePermissions,
}

/// How the last change ended.
#[derive(Clone, Debug)]
pub struct PackageReport {
    /// A sentence for the user.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
}

/// What has been read, or why it can't be.
pub(crate) type Reading<T> = Result<Arc<T>, Arc<str>>;

#[derive(Default)]
struct DeskState {
    list: Option<Reading<Vec<ListedPackage>>>,
    found: Option<Arc<FoundPackages>>,
    shown: Option<Arc<ShownPackage>>,
    job: Option<PackageJob>,
    /// Number of the current job, so that the result of a cancelled one is dropped.
    number: u64,
    report: Option<PackageReport>,
}

/// A package operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackageJob {
    /// What it is, for display.
    pub title: &'static str,
    /// Whether it only reads, so that it can be given up.
    pub can_cancel: bool,
}

/// The window's access to packages.
#[derive(Clone)]
pub struct PackageDesk {
    packages: OpenPackages,
    state: Arc<Mutex<DeskState>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl PackageDesk {
    /// Creates the access. `wake` lets the window draw again.
    pub fn new(handle: Handle, wake: impl Fn() + Send + Sync + 'static) -> PackageDesk {
        PackageDesk { packages: OpenPackages::new(handle), state: Arc::default(), wake: Arc::new(wake) }
    }

    fn state(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something on a thread of its own, unless something else is being done. What it returns is put into the
    /// state, unless it was cancelled.
    fn start(
        &self,
        title: &'static str,
        can_cancel: bool,
        work: impl FnOnce(&OpenPackages) -> Result<DeskChange, PackageError> + Send + 'static,
    ) {
        let mut state = self.state();
        if state.job.is_some() {
            return;
        }
        state.number += 1;
        (state.job, state.report) = (Some(PackageJob { title, can_cancel }), None);
        let (number, desk) = (state.number, self.clone());
        drop(state);
        std::thread::spawn(move || {
            let done = work(&desk.packages);
            desk.end(number, done);
            (desk.wake)();
        });
    }

    fn end(&self, number: u64, done: Result<DeskChange, PackageError>) {
        let mut state = self.state();
        if state.number != number {
            return;
        }
        state.job = None;
        match done {
            Ok(DeskChange::List(list)) => state.list = Some(Ok(Arc::new(list))),
            Ok(DeskChange::Found(found)) => state.found = Some(Arc::new(found)),
            Ok(DeskChange::Shown(shown)) => state.shown = Some(Arc::new(*shown)),
            Ok(DeskChange::Said(text)) => state.report = Some(PackageReport { text, is_error: false }),
            Ok(DeskChange::Settled(text, list)) => {
                state.report = Some(PackageReport { text, is_error: false });
                (state.shown, state.list) = (None, Some(Ok(Arc::new(list))));
            }
            Err(error) => {
                let text = ui::text::sentence(&error.to_string());
                if state.list.is_none() {
                    state.list = Some(Err(text.as_str().into()));
                } else {
                    state.report = Some(PackageReport { text, is_error: true });
                }
            }
        }
    }

    /// Reads what is installed.
    pub fn refresh(&self) {
        self.start("Reading the packages…", false, |packages| {
            let _only = packages.begin()?;
            Ok(DeskChange::List(list(packages)?))
        });
    }

    /// Returns what is installed; `None` while it's read for the first time.
    pub(crate) fn list(&self) -> Option<Reading<Vec<ListedPackage>>> {
        self.state().list.clone()
    }

    /// Returns what the last search has found.
    pub fn found(&self) -> Option<Arc<FoundPackages>> {
        self.state().found.clone()
    }

    /// Returns the package that is looked at.
    pub fn shown(&self) -> Option<Arc<ShownPackage>> {
        self.state().shown.clone()
    }

    /// Puts away the package that is looked at.
    pub fn close_shown(&self) {
        self.state().shown = None;
    }

    /// Looks for a package: the one at a path or an address, or those of the indexes that have these words.
    pub fn find(&self, words: &str) {
        let words = words.trim();
        // A name of a package has none of these.
        match words.contains(['/', '\\', ':']) {
            true => {
                let word =
                    ui::text::absolute(words).map_or_else(|| words.to_owned(), |path| path.display().to_string());
                self.start("Getting the package…", true, move |packages| {
                    let (content, source) = packages.fetch(&word, packages.workspace_folder())?;
                    look_at_new(packages, content, source)
                });
            }
            false => {
                let words = words.to_owned();
                self.start("Asking the indexes…", true, move |packages| search(packages, &words));
            }
        }
    }

    /// Gets a package that a search has found, to look at it.
    pub fn look(&self, found: &FoundPackage) {
        let (source, name) = (PackageSource::Index(found.index.clone()), found.entry.manifest.name.clone());
        self.start("Getting the package…", true, move |packages| {
            let content = fetch_package(&source, &name)?;
            look_at_new(packages, content, source)
        });
    }

    /// Gets the newest version of an installed package, to look at it.
    pub fn look_for_update(&self, name: String) {
        self.start("Looking for an update…", true, move |packages| {
            let old = packages.store().lock()?.package(&name)?.clone();
            let content = fetch_update(&old)?;
            if content.hash == old.hash {
                return Ok(DeskChange::Said(format!("{name} {} is up to date.", old.version)));
            }
            packages.check_names(&content, Some(&old))?;
            let more = content.manifest.permissions.beyond(&old.permissions);
            Ok(DeskChange::Shown(Box::new(ShownPackage { content, source: old.source.clone(), old: Some(old), more })))
        });
    }

    /// Installs exactly the package that was looked at. Its notes go to `volume`, if it has some.
    pub fn install(&self, shown: Arc<ShownPackage>, volume: Option<DocId>) {
        self.start("Installing the package…", false, move |packages| {
            let _only = packages.begin()?;
            let ShownPackage { content, source, .. } = shown.as_ref();
            let old = packages.store().lock()?.packages.get(&content.manifest.name).cloned();
            if old.as_ref().map(|old| old.hash) != shown.old.as_ref().map(|old| old.hash) {
                let why = "the package was changed meanwhile by another command; look at it again".to_owned();
                return Err(PackageError::Conflict(why));
            }
            packages.check_names(content, old.as_ref())?;
            let targets = packages.targets(content, old.as_ref(), volume)?;
            let settled = packages.install(content, source, &targets)?;
            let verb = if old.is_some() { "Updated to" } else { "Installed" };
            let text = format!("{verb} {} {}.", content.manifest.name, content.manifest.version);
            settled_list(packages, text, &settled)
        });
    }

    /// Removes a package.
    pub fn remove(&self, name: String) {
        self.start("Removing the package…", false, move |packages| {
            let _only = packages.begin()?;
            let version = packages.store().lock()?.package(&name)?.version.clone();
            let settled = packages.remove(&name)?;
            settled_list(packages, format!("Removed {name} {version}."), &settled)
        });
    }

    /// Returns what is being done.
    pub fn job(&self) -> Option<PackageJob> {
        self.state().job
    }

    /// Gives up what is being read.
    pub fn cancel(&self) {
        let mut state = self.state();
        if state.job.is_some_and(|job| job.can_cancel) {
            state.number += 1;
            state.job = None;
        }
    }

    /// Returns how the last change ended.
    pub fn report(&self) -> Option<PackageReport> {
        self.state().report.clone()
    }

    /// Removes the report of the last change.
    pub fn dismiss_report(&self) {
        self.state().report = None;
    }
}

/// What a job has found out or done.
enum DeskChange {
    List(Vec<ListedPackage>),
    Found(FoundPackages),
    Shown(Box<ShownPackage>),
    Said(String),
    /// Something was installed or removed: a sentence, and what is installed now.
    Settled(String, Vec<ListedPackage>),
}

/// Checks a package that isn't installed, so that it can be shown.
fn look_at_new(
    packages: &OpenPackages,
    content: PackageContent,
    source: PackageSource,
) -> Result<DeskChange, PackageError> {
    if let Some(old) = packages.store().lock()?.packages.get(&content.manifest.name) {
        let why = format!("{} {} is installed already; “Check for update” finds a newer one", old.name, old.version);
        return Err(PackageError::Conflict(why));
    }
    packages.check_names(&content, None)?;
    let more = content.manifest.permissions.clone();
    Ok(DeskChange::Shown(Box::new(ShownPackage { content, source, old: None, more })))
}

fn settled_list(packages: &OpenPackages, text: String, settled: &SettledChange) -> Result<DeskChange, PackageError> {
    let kept = match settled.kept.as_slice() {
        [] => String::new(),
        kept => format!(" Kept as they are, because they aren't what the package installed: {}.", kept.join(", ")),
    };
    Ok(DeskChange::Settled(text + &kept, list(packages)?))
}

fn list(packages: &OpenPackages) -> Result<Vec<ListedPackage>, PackageError> {
    let lock = packages.store().lock()?;
    let has_tools = lock.packages.values().any(|package| !package.tools.is_empty());
    let tools: Vec<RegisteredTool> = if has_tools { packages.read_tools()? } else { Vec::new() };
    let waiting: Vec<RegisteredTool> = tools.into_iter().filter(RegisteredTool::has_pending_version).collect();
    let mut listed = Vec::new();
    for package in lock.packages.values() {
        let root = packages.installed_root(package)?;
        let (changed, gone) = packages.store().changed_files(package, root.as_deref());
        let own = tool_names(&waiting).filter(|name| package.tools.contains_key(*name));
        let waiting_tools = own.map(ToOwned::to_owned).collect();
        listed.push(ListedPackage { package: package.clone(), changed, gone, waiting_tools });
    }
    Ok(listed)
}

fn search(packages: &OpenPackages, words: &str) -> Result<DeskChange, PackageError> {
    let mut found = FoundPackages::default();
    for location in configured_indexes(packages.workspace_folder())? {
        match search_index(&location, words) {
            Ok(entries) => {
                let all = entries.into_iter().map(|entry| FoundPackage { entry, index: location.clone() });
                found.packages.extend(all);
            }
            // Other indexes may have it.
            Err(error) => found.failures.push(ui::text::sentence(&error.to_string())),
        }
    }
    found.packages.truncate(MAX_FOUND);
    Ok(DeskChange::Found(found))
}
