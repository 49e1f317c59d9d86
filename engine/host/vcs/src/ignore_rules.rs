//! Which files Git ignores, where libgit2 alone decides otherwise.
//!
//! libgit2 drops a rule `!name` without wildcards unless it takes back a rule of the same file, so that `!keep.log` in
//! a folder doesn't take back `*.log` of the root. And it takes back files in folders that are ignored as a whole.

use git2::{Repository, Status, StatusOptions, Statuses};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Name of a file with rules for its folder.
const RULE_FILE: &str = ".gitignore";
/// Maximum size in bytes of a file with rules that is read.
const MAX_RULE_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of files with rules that are read.
const MAX_RULE_FILES: usize = 5_000;
/// Maximum number of rules that are added to those of libgit2, which compares each with every file.
const MAX_ADDED_RULES: usize = 500;
/// Maximum number of times that files are listed because others with rules were found among them.
const MAX_SEARCHES: usize = 8;

/// The rules of a file, and the folder for which they count; it's empty for the whole repository.
type RuleFile = (String, String);

/// The rules that libgit2 drops, with those that may take them back again.
#[derive(Debug, Default, PartialEq, Eq)]
struct DroppedRules {
    rules: Vec<String>,
    /// Whether there's any rule that takes back another one.
    has_negations: bool,
}

/// The folders that are ignored as a whole.
pub(crate) struct IgnoredFolders<'a> {
    repository: &'a Repository,
    /// `None` if no rule takes back another one, so that libgit2 is right.
    known: Option<BTreeMap<String, bool>>,
}

impl<'a> IgnoredFolders<'a> {
    /// Returns no folders, for a list without new files.
    pub(crate) fn none(repository: &'a Repository) -> IgnoredFolders<'a> {
        IgnoredFolders { repository, known: None }
    }

    /// Returns whether a path is in one of them.
    pub(crate) fn contain(&mut self, path: &str) -> bool {
        let Some(known) = &mut self.known else { return false };
        // What counts for a folder counts for all in it, so the outermost one comes first.
        for (at, _) in path.match_indices('/').filter(|(at, _)| at + 1 < path.len()) {
            let folder = &path[..=at];
            let is_ignored = match known.get(folder) {
                Some(is_ignored) => *is_ignored,
                None => {
                    let is_ignored = self.repository.is_path_ignored(folder).unwrap_or(false);
                    known.insert(folder.to_owned(), is_ignored);
                    is_ignored
                }
            };
            if is_ignored {
                return true;
            }
        }
        false
    }
}

/// Lists files as [`Repository::statuses`] does, by all rules. Also returns the folders whose new files don't count.
///
/// `prefix`: the folder to which the options limit the list; empty for all of the repository.
pub(crate) fn list_statuses<'a>(
    repository: &'a Repository,
    prefix: &str,
    options: &mut StatusOptions,
) -> Result<(Statuses<'a>, IgnoredFolders<'a>), git2::Error> {
    let mut files = known_rule_files(repository, prefix)?;
    let mut dropped = add_dropped_rules(repository, &files)?;
    let mut found = repository.statuses(Some(options))?;
    for _ in 0..MAX_SEARCHES {
        let before = files.len();
        let new = found.iter().filter(|entry| entry.status().contains(Status::WT_NEW));
        let new = new.filter(|entry| is_rule_file(entry.path_bytes()));
        files.extend(new.filter_map(|entry| String::from_utf8(entry.path_bytes().to_vec()).ok()));
        if files.len() == before {
            break;
        }
        let more = add_dropped_rules(repository, &files)?;
        let is_same = more.rules == dropped.rules;
        dropped = more;
        if is_same {
            break;
        }
        found = repository.statuses(Some(options))?;
    }
    let known = dropped.has_negations.then(BTreeMap::new);
    Ok((found, IgnoredFolders { repository, known }))
}

/// Makes a repository follow all rules for what is listed in a folder.
pub(crate) fn follow_rules(repository: &Repository, folder: &str) -> Result<(), git2::Error> {
    add_dropped_rules(repository, &known_rule_files(repository, folder)?)?;
    Ok(())
}

/// Makes a repository follow all rules for one path.
pub(crate) fn follow_rules_of(repository: &Repository, path: &str) -> Result<(), git2::Error> {
    let folder = path.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    add_dropped_rules(repository, &rule_files_above(folder))?;
    Ok(())
}

/// Returns whether Git ignores a path, or a folder above it. A folder ends with `/`.
pub(crate) fn is_ignored(repository: &Repository, path: &str) -> Result<bool, git2::Error> {
    follow_rules_of(repository, path)?;
    let known = Some(BTreeMap::new());
    Ok(IgnoredFolders { repository, known }.contain(path) || repository.is_path_ignored(path)?)
}

fn is_rule_file(path: &[u8]) -> bool {
    path.strip_suffix(RULE_FILE.as_bytes()).is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
}

/// Returns the files that have rules for a folder, if they are there: its own, and those of the folders above it.
fn rule_files_above(folder: &str) -> BTreeSet<String> {
    let mut files = BTreeSet::from([RULE_FILE.to_owned()]);
    if !folder.is_empty() {
        let above = folder.match_indices('/').map(|(at, _)| &folder[..at]).chain([folder]);
        files.extend(above.map(|folder| format!("{folder}/{RULE_FILE}")));
    }
    files
}

/// Returns these files, and those in the index.
fn known_rule_files(repository: &Repository, folder: &str) -> Result<BTreeSet<String>, git2::Error> {
    let mut files = rule_files_above(folder);
    let index = repository.index()?;
    let tracked = index.iter().map(|entry| entry.path).filter(|path| is_rule_file(path)).take(MAX_RULE_FILES);
    files.extend(tracked.filter_map(|path| String::from_utf8(path).ok()));
    Ok(files)
}

/// Adds the rules that libgit2 drops to those of the repository in memory, where they come first.
fn add_dropped_rules(repository: &Repository, files: &BTreeSet<String>) -> Result<DroppedRules, git2::Error> {
    let mut read: Vec<RuleFile> = Vec::new();
    let general = [user_rule_file(repository), Some(repository.commondir().join("info/exclude"))];
    read.extend(general.into_iter().flatten().filter_map(|file| Some((String::new(), read_rules(&file)?))));
    if let Some(top) = repository.workdir() {
        let mut files: Vec<&String> = files.iter().take(MAX_RULE_FILES).collect();
        files.sort_by_key(|file| file.matches('/').count());
        for file in files {
            let folder = file.strip_suffix(RULE_FILE).unwrap_or_default().trim_end_matches('/');
            let path = top.join(file);
            // As in Git, links don't count.
            let is_link = path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
            read.extend(read_rules(&path).filter(|_| !is_link).map(|text| (folder.to_owned(), text)));
        }
    }
    let mut dropped = find_dropped_rules(&read);
    if dropped.rules.len() > MAX_ADDED_RULES {
        dropped.rules.clear();
    }
    repository.clear_ignore_rules()?;
    if !dropped.rules.is_empty() {
        repository.add_ignore_rule(&(dropped.rules.join("\n") + "\n"))?;
    }
    Ok(dropped)
}

/// Returns the file with the user's own rules for all repositories.
fn user_rule_file(repository: &Repository) -> Option<PathBuf> {
    let named = repository.config().and_then(|config| config.get_path("core.excludesfile"));
    named.ok().or_else(|| {
        let folder = |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
        Some(settings?.join("git/ignore"))
    })
}

fn read_rules(file: &Path) -> Option<String> {
    let is_read = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_RULE_FILE_BYTES);
    if is_read { std::fs::read_to_string(file).ok() } else { None }
}

/// Returns the rules that libgit2 drops, and those that come later and may be about the same files. All are written for
/// the root of the repository.
fn find_dropped_rules(files: &[RuleFile]) -> DroppedRules {
    let mut found = DroppedRules::default();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for (folder, text) in files {
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = without_last_spaces(line);
            let (is_negation, pattern) = match line.strip_prefix('!') {
                Some(pattern) => (true, pattern),
                None => (false, line),
            };
            if pattern.trim_matches('/').is_empty() || line.starts_with('#') || line.contains('\0') {
                continue;
            }
            found.has_negations |= is_negation;
            let name = pattern.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if is_negation && !has_wildcard(pattern) {
                names.insert(unescaped(name).to_lowercase());
            } else if !names.iter().any(|known| may_match(name, known)) {
                continue;
            }
            let rule = rule_for_root(folder, pattern);
            match (is_negation, has_wildcard(&rule)) {
                (true, true) => found.rules.push(format!("!{rule}")),
                // Behind a rule that it takes back, it isn't dropped.
                (true, false) => found.rules.extend([rule.clone(), format!("!{rule}")]),
                (false, _) => found.rules.push(rule),
            }
        }
    }
    found
}

/// Writes a folder's pattern as one for the root of the repository.
fn rule_for_root(folder: &str, pattern: &str) -> String {
    let is_anchored = pattern.trim_end_matches('/').contains('/');
    let inside = pattern.strip_prefix('/').unwrap_or(pattern);
    match (folder, is_anchored) {
        ("", true) => format!("/{inside}"),
        ("", false) if pattern.starts_with(['#', '!']) => format!("\\{pattern}"),
        ("", false) => pattern.to_owned(),
        (folder, true) => format!("/{}/{inside}", escaped(folder)),
        (folder, false) => format!("/{}/**/{inside}", escaped(folder)),
    }
}

/// Returns whether the last part of a pattern may match a name in lower case.
fn may_match(pattern: &str, name: &str) -> bool {
    let lower = pattern.to_lowercase();
    match lower.strip_prefix('*') {
        _ if !has_wildcard(&lower) => unescaped(&lower) == name,
        Some(end) if !end.contains('\\') && !has_wildcard(end) => name.ends_with(end),
        _ => true, // tidy: open because other patterns with wildcards may match any name
    }
}

fn has_wildcard(pattern: &str) -> bool {
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => _ = letters.next(),
            '*' | '?' | '[' => return true,
            _ => {} // tidy: open because all other letters mean themselves
        }
    }
    false
}

fn unescaped(pattern: &str) -> String {
    let mut name = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        name.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    name
}

fn escaped(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for letter in name.chars() {
        if matches!(letter, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Returns a line without the spaces at its end, unless the first one is escaped.
fn without_last_spaces(line: &str) -> &str {
    let bare = line.trim_end_matches(' ');
    if bare.ends_with('\\') && bare.len() < line.len() { &line[..=bare.len()] } else { bare }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<RuleFile> =
            files.iter().map(|(folder, text)| ((*folder).to_owned(), (*text).to_owned())).collect();
        find_dropped_rules(&files).rules
    }

    #[test]
    fn rules_that_libgit2_drops_are_written_for_the_root() {
        assert!(dropped(&[("", "*.log\nbuild/\n!*.keep\n"), ("sub", "x\n")]).is_empty());
        assert_eq!(dropped(&[("", "*.log\n!keep.log\n")]), ["keep.log", "!keep.log"]);
        assert_eq!(dropped(&[("", "*.log\n"), ("a [b]", "!keep.log\n")]), ["!/a \\[b]/**/keep.log"]);
        assert_eq!(dropped(&[("a", "!/x/y/\n!#b \n")]), ["/a/x/y/", "!/a/x/y/", "!/a/**/#b"]);
        assert_eq!(dropped(&[("", "\u{feff}!!x\r\n# !y\n!z\\ \n")]), ["\\!x", "!\\!x", "z\\ ", "!z\\ "]);
        // What comes later counts only if it may be about the same name.
        let later = dropped(&[("", "!a.md\nb.md\nA.md\n*.md\n*.txt\n?.md\n"), ("s", "a.md\nc\n")]);
        assert_eq!(later, ["a.md", "!a.md", "A.md", "*.md", "?.md", "/s/**/a.md"]);
    }

    #[test]
    fn files_are_listed_by_the_rules_of_all_folders() {
        let dir = tempfile::tempdir().expect("a folder");
        let repository = Repository::init(dir.path()).expect("made");
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("above")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write(".git/info/exclude", "*.tmp\n");
        write(".gitignore", "*.log\n!kept.tmp\n/out/\n!inside.md\n");
        write("sub/.gitignore", "!keep.log\n");
        write("sub/deep/.gitignore", "keep.log\n");
        for name in ["a.log", "keep.log", "a.tmp", "kept.tmp", "sub/b.log", "sub/keep.log", "sub/c/keep.log"] {
            write(name, "x");
        }
        for name in ["sub/deep/keep.log", "out/tracked", "out/inside.md"] {
            write(name, "x");
        }
        let mut index = repository.index().expect("an index");
        index.add_path(Path::new("out/tracked")).expect("added");
        index.write().expect("written");
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true);
        let (found, mut ignored) = list_statuses(&repository, "", &mut options).expect("listed");
        let new = found.iter().filter(|entry| entry.status().contains(Status::WT_NEW));
        let mut names: Vec<String> =
            new.map(|entry| String::from_utf8(entry.path_bytes().to_vec()).expect("text")).collect();
        names.retain(|name| !ignored.contain(name));
        let expected =
            [".gitignore", "kept.tmp", "sub/.gitignore", "sub/c/keep.log", "sub/deep/.gitignore", "sub/keep.log"];
        assert_eq!(names, expected);
        for (path, is_it) in [("sub/keep.log", false), ("keep.log", true), ("out/inside.md", true), ("out/", true)] {
            assert_eq!(is_ignored(&repository, path).expect("known"), is_it, "{path}");
        }
    }
}
