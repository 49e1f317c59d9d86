//! Links between the notes of one volume: resolved as in Obsidian, with backlinks, and updated on renames. They are
//! derived from outlines and paths, so they can be rebuilt at any time.

pub use crate::link_names::fold_name;

use crate::link_names::{FOLDER_PAGES, folder_of_page, page_name};
use crate::outline::{LinkKind, NoteLink, Outline, link_path, percent_decode};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use store::DocId;

/// Replacement of a link's target in a note's text.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LinkRewrite {
    /// Syntax of the link.
    pub kind: LinkKind,
    /// The link's current target in the note's text.
    pub old: String,
    /// The text that replaces it.
    pub new: String,
}

/// All links of a volume.
#[derive(Debug, Default)]
pub struct VolumeLinks {
    /// Name of the volume, which a path may begin with; empty if it's not known.
    volume_name: String,
    // These are trees because a growing hash map moves all its entries at once. Several of one size would do so
    // together, on the thread that draws.
    outlines: BTreeMap<DocId, Arc<Outline>>,
    paths: BTreeMap<DocId, String>,
    /// Files by their folded name, without `.md`.
    names: BTreeMap<String, Vec<DocId>>,
    /// Notes by their folded page name in Logseq.
    page_names: BTreeMap<String, Vec<DocId>>,
    /// Notes by their folded aliases.
    aliases: BTreeMap<String, Vec<DocId>>,
    /// Notes that have a link whose target ends in this folded name.
    sources: BTreeMap<String, Vec<DocId>>,
    revision: u64,
    /// The files that changed last; `changes` is the total number of changes.
    log: VecDeque<DocId>,
    changes: u64,
    /// Cached link kinds of the note that was queried last.
    written: Mutex<Option<LinkSpelling>>,
}

/// How a link's target is written.
#[derive(Clone, Copy, PartialEq)]
enum TargetForm {
    /// A path, a name or an alias.
    Path,
    /// A path that begins with the volume's name.
    VolumePath,
    /// The name of a page in Logseq.
    PageName,
    /// The folder of a note that stands for it.
    Folder,
}

/// Kinds of an outline's links, by path and by target.
#[derive(Debug)]
struct LinkSpelling {
    outline: Arc<Outline>,
    kinds: HashMap<String, LinkKind>,
}

impl LinkSpelling {
    fn of(outline: &Arc<Outline>) -> LinkSpelling {
        let mut kinds = HashMap::new();
        for link in &outline.links {
            // The first link with a path or target counts.
            kinds.entry(link.path().into_owned()).or_insert(link.kind);
            kinds.entry(link.target.clone()).or_insert(link.kind);
        }
        LinkSpelling { outline: outline.clone(), kinds }
    }
}

/// Maximum number of changes that are remembered individually.
const MAX_LOGGED_LINK_CHANGES: usize = 4_096;

impl VolumeLinks {
    /// Sets the name of the volume. Search shows paths with it in front, so links may have it, too.
    pub fn set_volume_name(&mut self, name: &str) {
        if self.volume_name != name {
            name.clone_into(&mut self.volume_name);
            self.revision += 1;
        }
    }

    /// Returns the name of the volume; empty if it's not known.
    pub fn volume_name(&self) -> &str {
        &self.volume_name
    }

    /// Records that something about a file changed, such as its size.
    pub fn mark_changed(&mut self, file: DocId) {
        self.changes += 1;
        self.log.push_back(file);
        if self.log.len() > MAX_LOGGED_LINK_CHANGES {
            self.log.pop_front();
        }
    }

    /// Returns a number that increases whenever a file or its content changes.
    pub fn change_count(&self) -> u64 {
        self.changes
    }

    /// Returns the files that changed since [`VolumeLinks::change_count`] was `changes`. `None` if that's too long ago.
    pub fn changed_since(&self, changes: u64) -> Option<impl Iterator<Item = DocId>> {
        let count = usize::try_from(self.changes.checked_sub(changes)?).ok()?;
        let skip = self.log.len().checked_sub(count)?;
        Some(self.log.iter().skip(skip).copied())
    }

    /// Adds a file, or changes its path.
    pub fn set_path(&mut self, file: DocId, path: &str) {
        if let Some(old) = self.paths.get(&file) {
            if old == path {
                return;
            }
            remove_from_index(&mut self.names, &file_name_key(old), file);
            page_name(old).iter().for_each(|name| remove_from_index(&mut self.page_names, &fold_name(name), file));
        }
        self.names.entry(file_name_key(path)).or_default().push(file);
        if let Some(name) = page_name(path) {
            self.page_names.entry(fold_name(&name)).or_default().push(file);
        }
        self.paths.insert(file, path.to_owned());
        self.revision += 1;
        self.mark_changed(file);
    }

    /// Removes a file.
    pub fn remove_file(&mut self, file: DocId) {
        self.set_outline(file, Arc::default());
        self.outlines.remove(&file);
        if let Some(path) = self.paths.remove(&file) {
            remove_from_index(&mut self.names, &file_name_key(&path), file);
            page_name(&path).iter().for_each(|name| remove_from_index(&mut self.page_names, &fold_name(name), file));
        }
        self.revision += 1;
        self.mark_changed(file);
    }

    /// Sets the outline of a note.
    pub fn set_outline(&mut self, note: DocId, outline: Arc<Outline>) {
        if let Some(old) = self.outlines.get(&note).cloned() {
            if old == outline {
                return;
            }
            old.aliases.iter().for_each(|alias| remove_from_index(&mut self.aliases, &fold_name(alias), note));
            target_keys(&old).into_iter().for_each(|key| remove_from_index(&mut self.sources, &key, note));
        }
        for alias in &outline.aliases {
            self.aliases.entry(fold_name(alias)).or_default().push(note);
        }
        for key in target_keys(&outline) {
            self.sources.entry(key).or_default().push(note);
        }
        self.outlines.insert(note, outline);
        self.revision += 1;
        self.mark_changed(note);
    }

    /// Returns a number that increases whenever a path or an outline changes.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the outline of a note.
    pub fn outline(&self, note: DocId) -> Option<&Arc<Outline>> {
        self.outlines.get(&note)
    }

    /// Returns all notes with their outlines, in no particular order.
    pub fn outlines(&self) -> impl Iterator<Item = (DocId, &Arc<Outline>)> {
        self.outlines.iter().map(|(note, outline)| (*note, outline))
    }

    /// Returns all files with their paths and outlines, in no particular order.
    pub fn files(&self) -> impl Iterator<Item = (DocId, &str, Option<&Arc<Outline>>)> {
        self.paths.iter().map(|(file, path)| (*file, path.as_str(), self.outlines.get(file)))
    }

    /// Returns the path of a file.
    pub fn path(&self, file: DocId) -> Option<&str> {
        self.paths.get(&file).map(String::as_str)
    }

    /// Returns the file that a link of this note leads to, or `None` if it's broken.
    pub fn link_target(&self, from: DocId, link: &NoteLink) -> Option<DocId> {
        self.resolve(from, link.kind, &link.target)
    }

    /// Resolves a link shown in this note, given its target as Markdown parsers return it, with or without `#` and the
    /// part after it. The link's syntax is taken from the note's outline.
    pub fn resolve_rendered_link(&self, from: DocId, link: &str) -> Option<DocId> {
        let (path, _) = link.split_once('#').unwrap_or((link, ""));
        let path = percent_decode(path);
        let known = self.outlines.get(&from).and_then(|outline| {
            // Cached, because a note with very many links calls this for each of them.
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            if !written.as_ref().is_some_and(|written| Arc::ptr_eq(&written.outline, outline)) {
                *written = Some(LinkSpelling::of(outline));
            }
            written.as_ref()?.kinds.get(path.as_ref()).copied()
        });
        match known {
            Some(LinkKind::Wiki | LinkKind::Embed) | None => self.resolve(from, LinkKind::Wiki, &path),
            Some(LinkKind::Markdown | LinkKind::Angled) => {
                self.resolve(from, LinkKind::Markdown, &path.replace('%', "%25"))
            }
        }
    }

    /// Resolves a link target written in this note: a relative path, a path from the root, the closest file with that
    /// name, a note with that page name or alias, or a path from the root with the volume's name in front. Since that
    /// comes last, a folder that is called as the volume wins. A Markdown link to a folder leads to the note that
    /// stands for it.
    pub fn resolve(&self, from: DocId, kind: LinkKind, target: &str) -> Option<DocId> {
        self.resolve_file(from, kind, target).or_else(|| match kind {
            LinkKind::Wiki | LinkKind::Embed => None,
            LinkKind::Markdown | LinkKind::Angled => self.folder_page(from, &link_path(kind, target)),
        })
    }

    /// Returns the note that stands for the folder that a relative path leads to.
    fn folder_page(&self, from: DocId, target: &str) -> Option<DocId> {
        let folder = fold_name(&resolve_relative(self.paths.get(&from)?, target)?);
        let stands = |file: &DocId| self.path(*file).and_then(folder_of_page).is_some_and(|of| fold_name(of) == folder);
        FOLDER_PAGES.iter().find_map(|page| {
            let fitting = self.names.get(*page)?.iter().filter(|file| stands(file));
            fitting.min_by_key(|file| self.path(**file)).copied()
        })
    }

    fn resolve_file(&self, from: DocId, kind: LinkKind, target: &str) -> Option<DocId> {
        let target = link_path(kind, target);
        if target.is_empty() {
            return Some(from);
        }
        let own = self.paths.get(&from).map_or("", String::as_str);
        let exact = without_md_extension(&target);
        let wanted = fold_name(exact);
        let found = self.names.get(last_component(&wanted)).map_or(&[][..], Vec::as_slice);
        let at = |wanted: &str, exact: &str| {
            let fits = found.iter().filter(|file| fold_name(self.stem(**file)) == wanted);
            fits.min_by_key(|file| self.candidate_rank(**file, exact)).copied()
        };
        let in_volume = || {
            let exact = self.strip_volume_name(exact.trim_start_matches('/'))?;
            at(&fold_name(exact), exact)
        };
        let relative = |target: &str| resolve_relative(own, target);
        if exact.starts_with("./") || exact.starts_with("../") || exact == ".." {
            let exact = relative(exact)?;
            return at(&fold_name(&exact), &exact);
        }
        if let Some(exact) = exact.strip_prefix('/') {
            return at(&fold_name(exact), exact).or_else(in_volume);
        }
        if matches!(kind, LinkKind::Markdown | LinkKind::Angled)
            && let Some(exact) = relative(exact)
            && let Some(file) = at(&fold_name(&exact), &exact)
        {
            return Some(file);
        }
        if let Some(file) = at(&wanted, exact) {
            return Some(file);
        }
        let folder = fold_name(own.rsplit_once('/').map_or("", |(folder, _)| folder));
        let ends = format!("/{wanted}");
        let near = found.iter().filter(|file| fold_name(self.stem(**file)).ends_with(&ends)).min_by_key(|file| {
            let stem = fold_name(self.stem(**file));
            let below = stem.strip_prefix(&folder).is_some_and(|rest| folder.is_empty() || rest.starts_with('/'));
            (!below, stem.len(), self.candidate_rank(**file, exact))
        });
        let named = || {
            let name = fold_name(&target);
            let named = self.page_names.get(&name).or_else(|| self.aliases.get(&name))?;
            named.iter().min_by_key(|note| self.paths.get(note)).copied()
        };
        near.copied().or_else(named).or_else(in_volume)
    }

    /// Returns what follows the volume's name in a path that begins with it, in any case.
    fn strip_volume_name<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (first, rest) = path.split_once('/')?;
        let is_name = !self.volume_name.is_empty() && fold_name(first) == fold_name(&self.volume_name);
        Some(rest).filter(|rest| is_name && !rest.is_empty())
    }

    /// Returns how the target of a link that leads to a file is written.
    fn target_form(&self, from: DocId, kind: LinkKind, target: &str, to: DocId) -> TargetForm {
        if self.resolve_file(from, kind, target).is_none() {
            return TargetForm::Folder;
        }
        let target = link_path(kind, target);
        let whole = without_md_extension(&target);
        let rest = self.strip_volume_name(whole.trim_start_matches('/'));
        if rest.is_some_and(|rest| fold_name(rest) == fold_name(self.stem(to))) {
            return TargetForm::VolumePath;
        }
        let page = self.paths.get(&to).and_then(|path| page_name(path));
        match page.is_some_and(|page| fold_name(&page) == fold_name(&target)) {
            true => TargetForm::PageName,
            false => TargetForm::Path,
        }
    }

    /// Returns where a new file with this path goes: without the volume's name in front, unless a folder has that name.
    pub fn without_volume_name<'a>(&self, path: &'a str) -> &'a str {
        let first = path.split('/').next().unwrap_or_default();
        let is_below = |path: &String| path.strip_prefix(first).is_some_and(|rest| rest.starts_with('/'));
        let stripped = self.strip_volume_name(path).filter(|_| !self.paths.values().any(is_below));
        stripped.unwrap_or(path)
    }

    /// Returns the sort key of files that differ only in case: an exact match comes first, then notes before other
    /// files.
    fn candidate_rank(&self, file: DocId, exact: &str) -> (bool, bool, &str) {
        let path = self.paths.get(&file).map_or("", String::as_str);
        (!without_md_extension(path).ends_with(exact), !path.to_lowercase().ends_with(".md"), path)
    }

    fn stem(&self, file: DocId) -> &str {
        self.paths.get(&file).map_or("", |path| without_md_extension(path))
    }

    /// Returns the links that lead to a file, sorted by the path of their note. Links from the file to itself are left
    /// out.
    pub fn backlinks(&self, file: DocId) -> Vec<(DocId, &NoteLink)> {
        let mut found = Vec::new();
        for source in self.notes_linking_to(&[file]) {
            let Some(outline) = self.outlines.get(&source).filter(|_| source != file) else { continue };
            found.extend(
                outline
                    .links
                    .iter()
                    .filter(|link| self.link_target(source, link) == Some(file))
                    .map(|link| (source, link)),
            );
        }
        found.sort_by_key(|(source, link)| (self.paths.get(source), link.at));
        found
    }

    /// Returns the notes that may have links to one of these files.
    fn notes_linking_to(&self, files: &[DocId]) -> BTreeSet<DocId> {
        let mut sources = BTreeSet::new();
        for file in files {
            let names = self.paths.get(file).into_iter().flat_map(|path| source_keys(path));
            let aliases = self.outlines.get(file).into_iter().flat_map(|outline| &outline.aliases);
            let keys = names.chain(aliases.map(|alias| target_key(alias)));
            sources.extend(keys.filter_map(|key| self.sources.get(&key)).flatten());
        }
        sources
    }

    /// Returns the links of a note and the files that they lead to.
    pub fn outgoing_links(&self, note: DocId) -> impl Iterator<Item = (&NoteLink, Option<DocId>)> {
        let links = self.outlines.get(&note).map_or(&[][..], |outline| &outline.links);
        links.iter().map(move |link| (link, self.link_target(note, link)))
    }

    /// Returns the links without a target file, sorted by the path of their note.
    pub fn broken_links(&self) -> Vec<(DocId, &NoteLink)> {
        let mut broken: Vec<(DocId, &NoteLink)> = self
            .outlines
            .iter()
            .flat_map(|(note, outline)| outline.links.iter().map(|link| (*note, link)))
            .filter(|(note, link)| self.link_target(*note, link).is_none())
            .collect();
        broken.sort_by_key(|(note, link)| (self.paths.get(note), link.at));
        broken
    }

    /// Renames files, and returns the rewrites in each note that keep every link leading to the same file. The outlines
    /// are updated already.
    pub fn rename_files(&mut self, moves: &[(DocId, String)]) -> BTreeMap<DocId, Vec<LinkRewrite>> {
        let files: Vec<DocId> = moves.iter().map(|(file, _)| *file).collect();
        let mut sources = self.notes_linking_to(&files);
        sources.extend(&files);
        for (_, path) in moves {
            sources.extend(source_keys(path).filter_map(|key| self.sources.get(&key)).flatten());
        }
        let mut before = Vec::new();
        for source in sources {
            let Some(outline) = self.outlines.get(&source) else { continue };
            let mut seen = BTreeSet::new();
            for link in outline.links.iter().filter(|link| !link.path().is_empty()) {
                if seen.insert((link.kind, &link.target))
                    && let Some(target) = self.link_target(source, link)
                {
                    let exact = self.is_direct_path(source, link.kind, &link.target, target);
                    let form = self.target_form(source, link.kind, &link.target, target);
                    before.push((source, link.kind, link.target.clone(), target, (exact, form)));
                }
            }
        }
        for (file, path) in moves {
            self.set_path(*file, path);
        }
        let mut plan: BTreeMap<DocId, Vec<LinkRewrite>> = BTreeMap::new();
        for (source, kind, old, target, (exact, form)) in before {
            let right = self.resolve(source, kind, &old) == Some(target)
                && (!exact || self.is_direct_path(source, kind, &old, target));
            if !right && let Some(new) = self.write_target(source, kind, &old, target, form) {
                plan.entry(source).or_default().push(LinkRewrite { kind, old, new });
            }
        }
        for (source, relinks) in &plan {
            if let Some(outline) = self.outlines.get(source) {
                let outline = apply_rewrites(outline, relinks);
                self.set_outline(*source, Arc::new(outline));
            }
        }
        plan
    }

    /// Rewrites the links in a text from one note for use in another one, so that they lead to the same targets.
    pub fn rewrite_for_note(&self, from: DocId, to: DocId, text: &str) -> String {
        let mut relinks: Vec<LinkRewrite> = Vec::new();
        for link in Outline::of(text).links.iter().filter(|link| !link.path().is_empty()) {
            let Some(target) = self.link_target(from, link) else { continue };
            let exact = self.is_direct_path(from, link.kind, &link.target, target);
            let right = self.link_target(to, link) == Some(target)
                && (!exact || self.is_direct_path(to, link.kind, &link.target, target));
            let form = self.target_form(from, link.kind, &link.target, target);
            if !right && let Some(new) = self.write_target(to, link.kind, &link.target, target, form) {
                relinks.push(LinkRewrite { kind: link.kind, old: link.target.clone(), new });
            }
        }
        let mut carried = text.to_owned();
        for (at, delete, insert) in rewrite_spans(text, &relinks).into_iter().rev() {
            carried.replace_range(at..at + delete, &insert);
        }
        carried
    }

    /// Returns whether a Markdown link is the file's actual relative path, so that other programs can follow it.
    fn is_direct_path(&self, from: DocId, kind: LinkKind, target: &str, to: DocId) -> bool {
        let (Some(own), Some(path)) = (self.paths.get(&from), self.paths.get(&to)) else { return false };
        let target = link_path(kind, target);
        matches!(kind, LinkKind::Markdown | LinkKind::Angled)
            && resolve_relative(own, &target)
                .is_some_and(|joined| joined == *path || joined == without_md_extension(path))
    }

    /// Returns a link target that leads to this file, in the style of the old target. `None` if no form does.
    fn write_target(&self, from: DocId, kind: LinkKind, old: &str, to: DocId, form: TargetForm) -> Option<String> {
        let (own, path) = (self.paths.get(&from)?, self.paths.get(&to)?);
        let old_path = link_path(kind, old);
        let ending = old_path.to_lowercase().ends_with(".md") || form == TargetForm::Folder;
        let whole = if ending { path.as_str() } else { without_md_extension(path) };
        let relative = relative_path(own, whole);
        let dotted = if relative.starts_with("../") { relative.clone() } else { format!("./{relative}") };
        let absolute = format!("/{whole}");
        let name = whole.rsplit('/').next().unwrap_or(whole).to_owned();
        let root = if old_path.starts_with('/') { "/" } else { "" };
        let special = match form {
            TargetForm::Path => None,
            TargetForm::VolumePath => Some(format!("{root}{}/{whole}", self.volume_name)),
            TargetForm::PageName => Some(page_name(path).unwrap_or_else(|| name.clone())),
            TargetForm::Folder => folder_of_page(path).map(|folder| {
                let folder = if root == "/" { format!("/{folder}") } else { relative_path(own, folder) };
                if old_path.ends_with('/') { format!("{folder}/") } else { folder }
            }),
        };
        let forms: Vec<String> = match kind {
            _ if old_path.starts_with("./") || old_path.starts_with("../") => {
                let shape = if old_path.starts_with("./") { dotted } else { relative };
                vec![shape.clone(), format!("./{shape}"), absolute]
            }
            _ if old_path.starts_with('/') => vec![absolute],
            LinkKind::Markdown | LinkKind::Angled => vec![relative, dotted, absolute],
            LinkKind::Wiki | LinkKind::Embed if old_path.contains('/') => vec![whole.to_owned(), absolute],
            LinkKind::Wiki | LinkKind::Embed => vec![name, whole.to_owned(), absolute],
        };
        let written = |form: &String| match kind {
            LinkKind::Wiki | LinkKind::Embed => form.clone(),
            LinkKind::Markdown => escape_chars(form, " ()<>\"%#?\\"),
            LinkKind::Angled => escape_chars(form, "<>%#\\"),
        };
        special.iter().chain(&forms).map(written).find(|form| self.resolve(from, kind, form) == Some(to))
    }
}

/// Returns an outline with rewritten link targets.
pub fn apply_rewrites(outline: &Outline, relinks: &[LinkRewrite]) -> Outline {
    let mut outline = outline.clone();
    for link in &mut outline.links {
        if let Some(relink) = relinks.iter().find(|relink| relink.kind == link.kind && relink.old == link.target) {
            link.target.clone_from(&relink.new);
        }
    }
    outline
}

/// Returns the rewrites in a text: offset, bytes to delete, new text.
pub fn rewrite_spans(text: &str, relinks: &[LinkRewrite]) -> Vec<(usize, usize, String)> {
    let outline = Outline::of(text);
    let place = |link: &NoteLink| {
        let relink = relinks.iter().find(|relink| relink.kind == link.kind && relink.old == link.target)?;
        Some((link.at, relink.old.len(), relink.new.clone()))
    };
    outline.links.iter().filter_map(place).collect()
}

fn remove_from_index(map: &mut BTreeMap<String, Vec<DocId>>, key: &str, file: DocId) {
    if let Some(list) = map.get_mut(key) {
        list.retain(|other| *other != file);
        if list.is_empty() {
            map.remove(key);
        }
    }
}

/// Returns the names by which an outline's links are indexed.
fn target_keys(outline: &Outline) -> BTreeSet<String> {
    outline.links.iter().map(|link| target_key(&link.path())).filter(|key| !key.is_empty()).collect()
}

fn target_key(target: &str) -> String {
    match fold_name(last_component(without_md_extension(target.trim_end_matches('/')))).as_str() {
        "" if !target.is_empty() => PARENT_KEY.to_owned(),
        "." => PARENT_KEY.to_owned(),
        key => key.to_owned(),
    }
}

/// Stands for the folder that a link names by dots or a slash only.
const PARENT_KEY: &str = "..";

/// Returns the names by which links to a file may be indexed, except for its aliases.
fn source_keys(path: &str) -> impl Iterator<Item = String> {
    let folder = folder_of_page(path).into_iter().flat_map(|folder| [PARENT_KEY.to_owned(), target_key(folder)]);
    std::iter::once(file_name_key(path)).chain(page_name(path).map(|name| target_key(&name))).chain(folder)
}

fn file_name_key(path: &str) -> String {
    target_key(path)
}

/// Returns a path without its `.md` extension.
pub fn without_md_extension(path: &str) -> &str {
    match path.len().checked_sub(3).and_then(|at| path.split_at_checked(at)) {
        Some((stem, ending)) if ending.eq_ignore_ascii_case(".md") => stem,
        Some(_) | None => path,
    }
}

fn last_component(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Resolves a path relative to a file. `None` if it leaves the volume.
pub fn resolve_relative(own: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = own.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the relative path from a file to another path.
fn relative_path(own: &str, to: &str) -> String {
    let own: Vec<&str> = own.split('/').collect();
    let to: Vec<&str> = to.split('/').collect();
    let most = own.len().min(to.len()) - 1;
    let same = own.iter().zip(&to).take(most).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..", own.len() - 1 - same);
    up.chain(to[same..].iter().copied()).collect::<Vec<_>>().join("/")
}

fn escape_chars(path: &str, letters: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for letter in path.chars() {
        if letters.contains(letter) || letter.is_control() {
            escaped.push_str(&format!("%{:02X}", u32::from(letter)));
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> DocId {
        DocId([u8::try_from(number).expect("few"); 16])
    }

    fn links(files: &[(&str, &str)]) -> VolumeLinks {
        let mut links = VolumeLinks::default();
        for (number, (path, text)) in files.iter().enumerate() {
            links.set_path(id(number), path);
            links.set_outline(id(number), Arc::new(Outline::of(text)));
        }
        links
    }

    #[test]
    fn links_are_resolved_as_obsidian_does_it() {
        let paths = ["A.md", "x/A.md", "x/y/B.md", "z/B.md", "z/pic.png", "x/From.md", "z/Case.md", "z/case.md"];
        let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (*path, "")).collect();
        files[3].1 = "---\naliases: [Other Name]\n---\n";
        let links = links(&files);
        let leads = |kind, target: &str| {
            links.resolve(id(5), kind, target).and_then(|file| links.path(file)).unwrap_or("nowhere").to_owned()
        };
        let wiki = |target: &str| leads(LinkKind::Wiki, target);
        assert_eq!(wiki("A"), "A.md", "the whole path comes first");
        assert_eq!(wiki("a.MD"), "A.md");
        assert_eq!(wiki("B"), "x/y/B.md", "what lies below the note's folder comes first");
        assert_eq!(wiki("z/B"), "z/B.md");
        assert_eq!(wiki("y/B"), "x/y/B.md");
        assert_eq!(wiki("../z/B"), "z/B.md");
        assert_eq!(wiki("./A"), "x/A.md");
        assert_eq!(wiki("/A"), "A.md");
        assert_eq!(wiki("pic.png"), "z/pic.png");
        assert_eq!(wiki("other name"), "z/B.md");
        assert_eq!(wiki("Case"), "z/Case.md");
        assert_eq!(wiki("case"), "z/case.md");
        assert_eq!(wiki("../../A"), "nowhere");
        assert_eq!(wiki(""), "x/From.md");
        assert_eq!(leads(LinkKind::Markdown, "A.md"), "x/A.md", "Markdown's links are relative");
        assert_eq!(leads(LinkKind::Markdown, "../z/pic%2Epng"), "z/pic.png");
        assert_eq!(leads(LinkKind::Markdown, "z/B.md"), "z/B.md");
    }

    #[test]
    fn links_as_readers_give_them_lead_where_they_are_written_to() {
        let from = "![](A%20b.png) [[c]] ![[c]] [d](sub/100%25.md)";
        let links =
            links(&[("x/From.md", from), ("A b.png", ""), ("x/A b.png", ""), ("C.md", ""), ("x/sub/100%.md", "")]);
        let meant = |link: &str| links.resolve_rendered_link(id(0), link).and_then(|file| links.path(file));
        assert_eq!(meant("A%20b.png"), Some("x/A b.png"), "a Markdown link is relative");
        assert_eq!((meant("c"), meant("c#part")), (Some("C.md"), Some("C.md")));
        assert_eq!(meant("sub/100%25.md"), Some("x/sub/100%.md"));
        assert_eq!((meant("../.."), meant("no")), (None, None));
    }

    #[test]
    fn a_text_carried_into_another_note_keeps_what_it_links_to() {
        let text = "[t](B.md) [[B]] ![](../z/p%20q.png) [[gone]] [w](https://x.org)";
        let links = links(&[("x/From.md", text), ("x/B.md", ""), ("z/p q.png", ""), ("y/deep/To.md", "")]);
        let carried = links.rewrite_for_note(id(0), id(3), text);
        assert_eq!(carried, "[t](../../x/B.md) [[B]] ![](../../z/p%20q.png) [[gone]] [w](https://x.org)");
        assert_eq!(links.rewrite_for_note(id(0), id(1), text), text, "the same folder");
    }

    #[test]
    fn links_are_found_backwards_and_broken_ones_too() {
        let links = links(&[("A.md", "[[b]] and [x](B.md) and [[gone#h]]"), ("B.md", "[[A|a]] [[B]]")]);
        let back: Vec<&str> = links.backlinks(id(1)).into_iter().map(|(_, link)| link.target.as_str()).collect();
        assert_eq!(back, ["b", "B.md"]);
        assert_eq!(links.backlinks(id(0)).len(), 1);
        assert_eq!(links.broken_links().len(), 1);
        assert_eq!(links.outgoing_links(id(0)).filter(|(_, to)| to.is_some()).count(), 2);
    }

    #[test]
    fn a_rename_keeps_the_manner_of_each_link() {
        let from = "[[A]] [[x/A|n]] ![[A#h]] [t](x/A.md) [t](<x/A.md>) [[x/A.md]]";
        let mut links = links(&[("From.md", from), ("x/A.md", "[up](../From.md) [[From]]")]);
        let plan = links.rename_files(&[(id(1), "y/z/New name.md".to_owned())]);
        let new: Vec<(&str, &str)> = plan[&id(0)].iter().map(|one| (one.old.as_str(), one.new.as_str())).collect();
        assert_eq!(
            new,
            [
                ("A", "New name"),
                ("x/A", "y/z/New name"),
                ("A", "New name"),
                ("x/A.md", "y/z/New%20name.md"),
                ("x/A.md", "y/z/New name.md"),
                ("x/A.md", "y/z/New name.md"),
            ]
        );
        let own: Vec<&str> = plan[&id(1)].iter().map(|one| one.new.as_str()).collect();
        assert_eq!(own, ["../../From.md"]);
    }

    #[test]
    fn a_link_may_begin_with_the_volume_as_search_shows_it() {
        let from =
            "[[notes/x/A]] [m](notes/x/A.md) [[/Notes/x/A]] [[notes/B]] [[notes/notes/B]] [[notes/Gone]] [[no/x/A]]";
        let files = [("From.md", from), ("x/A.md", ""), ("notes/B.md", ""), ("B.md", "")];
        let mut links = links(&files);
        assert_eq!(links.resolve(id(0), LinkKind::Wiki, "notes/x/A"), None, "the name isn't known");
        links.set_volume_name("notes");
        let leads = |links: &VolumeLinks| -> Vec<Option<usize>> {
            let file = |to: DocId| usize::from(to.0[0]);
            links.outgoing_links(id(0)).map(|(_, to)| to.map(file)).collect()
        };
        let to: [Option<usize>; 7] = [Some(1), Some(1), Some(1), Some(2), Some(2), None, None];
        assert_eq!(leads(&links), to, "a folder that is called as the volume comes first");
        assert_eq!((links.backlinks(id(1)).len(), links.backlinks(id(3)).len(), links.broken_links().len()), (3, 0, 2));
        let plan = links.rename_files(&[(id(1), "y/A B.md".to_owned())]);
        let new: Vec<&str> = plan[&id(0)].iter().map(|one| one.new.as_str()).collect();
        assert_eq!(new, ["notes/y/A B", "notes/y/A%20B.md", "/notes/y/A B"]);
        assert_eq!(leads(&links), to);
        let plan = links.rename_files(&[(id(3), "notes/y/A B.md".to_owned())]);
        assert!(plan[&id(0)].iter().all(|one| one.new.contains("y/A")), "what the new file would take: {plan:?}");
        assert_eq!(leads(&links), to);
        assert_eq!(links.without_volume_name("notes/new"), "notes/new", "there is such a folder");
        links.remove_file(id(2));
        links.remove_file(id(3));
        assert_eq!((links.without_volume_name("NOTES/new"), links.without_volume_name("x/new")), ("new", "x/new"));
    }

    #[test]
    fn pages_of_logseq_are_linked_by_their_names() {
        let from = "[[AI/Code]] #[[ai/code]] [[Why?]] [[pages/AI___Code]] [[AI___Code]] ![[AI/Gone]]";
        let mut links = links(&[("journals/From.md", from), ("pages/AI___Code.md", ""), ("pages/Why%3F.md", "")]);
        let leads = |links: &VolumeLinks| -> Vec<Option<u8>> {
            links.outgoing_links(id(0)).map(|(_, to)| to.map(|to| to.0[0])).collect()
        };
        let to: [Option<u8>; 6] = [Some(1), Some(1), Some(2), Some(1), Some(1), None];
        assert_eq!(leads(&links), to);
        assert_eq!((links.backlinks(id(1)).len(), links.backlinks(id(2)).len(), links.broken_links().len()), (4, 1, 1));
        let plan = links.rename_files(&[(id(1), "pages/AI___Tool.md".to_owned())]);
        let new: Vec<&str> = plan[&id(0)].iter().map(|one| one.new.as_str()).collect();
        assert_eq!(new, ["AI/Tool", "AI/Tool", "pages/AI___Tool", "AI___Tool"], "the links keep their form");
        assert_eq!(leads(&links), to);
        let plan = links.rename_files(&[(id(1), "pages/Tool.md".to_owned())]);
        let new: BTreeSet<&str> = plan[&id(0)].iter().map(|one| one.new.as_str()).collect();
        assert_eq!(new, BTreeSet::from(["Tool", "pages/Tool"]));
        links.remove_file(id(1));
        assert!(links.page_names.len() == 1 && links.broken_links().len() == 5, "{links:?}");
    }

    #[test]
    fn names_are_compared_in_one_form() {
        let from = "[[\u{d55c}\u{ae00}]] [[cafe\u{301}]] [[a b]] [x](caf\u{e9}.md) ![[\u{c9}t\u{e9}.png]]";
        let files = [
            "x/\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}.md",
            "Caf\u{e9}.md",
            "a\u{a0}b.md",
            "E\u{301}te\u{301}.png",
        ];
        let files: Vec<(&str, &str)> =
            std::iter::once(("From.md", from)).chain(files.iter().map(|file| (*file, ""))).collect();
        let links = links(&files);
        let to: Vec<u8> = links.outgoing_links(id(0)).filter_map(|(_, to)| Some(to?.0[0])).collect();
        assert_eq!(to, [1, 2, 3, 2, 4]);
        assert!((1..5).all(|file| !links.backlinks(id(file)).is_empty()));
    }

    #[test]
    fn a_rename_takes_no_links_away_from_others() {
        let mut links = links(&[("x/From.md", "[[A]]"), ("y/A.md", ""), ("B.md", "")]);
        let plan = links.rename_files(&[(id(2), "A.md".to_owned())]);
        assert_eq!(plan[&id(0)], [LinkRewrite { kind: LinkKind::Wiki, old: "A".into(), new: "y/A".into() }]);
        assert!(links.rename_files(&[(id(2), "z/A.md".to_owned())]).is_empty());
    }
}
