//! The files of a package: which are allowed, what they need, and the hash of them all.

use crate::archive_files::RawFiles;
use crate::error::PackageError;
use crate::manifest::{ALL_TOOLS, MANIFEST_FILE, PackageManifest, PackagePermissions};
use crate::package_signature::{PUBLIC_KEY_FILE, SIGNATURE_FILE, verify_signature};
use agent::agent_definition::{self, AgentDefinition};
use agent::{python_plugin, tool_file};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use store::{BlobHash, UserTool};
use text::theme_file::ThemeFile;

/// Maximum length of a file's name in a package, in bytes.
const MAX_FILE_NAME_BYTES: usize = 100;
/// Names that Windows takes for devices, whatever their ending.
const DEVICE_NAMES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// Beginnings of the names of files that describe a package and aren't installed.
const ABOUT_FILES: [&str; 4] = ["README", "LICENSE", "CHANGELOG", "NOTICE"];
/// Folder for prompts in a volume.
const PROMPTS_FOLDER: &str = "Prompts";

/// A kind of content, which has a folder in the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackagePart {
    /// Definitions of agents.
    Agents,
    /// Tools: JSON files and Python files.
    Tools,
    /// Notes that are offered as templates.
    Templates,
    /// Texts that the slash menu inserts.
    Snippets,
    /// Colors of the window.
    Themes,
    /// Notes that other programs get as prompts.
    Prompts,
}

impl PackagePart {
    /// All kinds of content.
    pub const ALL: [PackagePart; 6] = [
        PackagePart::Agents,
        PackagePart::Tools,
        PackagePart::Templates,
        PackagePart::Snippets,
        PackagePart::Themes,
        PackagePart::Prompts,
    ];

    /// Returns the name of the folder in a package.
    pub fn folder(self) -> &'static str {
        match self {
            PackagePart::Agents => "agents",
            PackagePart::Tools => "tools",
            PackagePart::Templates => "templates",
            PackagePart::Snippets => "snippets",
            PackagePart::Themes => "themes",
            PackagePart::Prompts => "prompts",
        }
    }

    fn endings(self) -> &'static [&'static str] {
        match self {
            PackagePart::Agents | PackagePart::Templates | PackagePart::Snippets | PackagePart::Prompts => &["md"],
            PackagePart::Tools => &["json", "py"],
            PackagePart::Themes => &["yaml"],
        }
    }

    /// Returns whether the files are notes, which belong in a volume.
    pub fn is_note(self) -> bool {
        matches!(self, PackagePart::Templates | PackagePart::Prompts)
    }

    /// Returns the folder that the program reads such files from: in the workspace, or for notes in a volume whose
    /// templates are in `templates`.
    pub(crate) fn target_folder(self, templates: &str) -> String {
        match self {
            PackagePart::Agents => "agents".to_owned(),
            PackagePart::Tools => "plugins".to_owned(),
            PackagePart::Snippets => "snippets".to_owned(),
            PackagePart::Themes => "themes".to_owned(),
            PackagePart::Templates => templates.trim().trim_matches('/').to_owned(),
            PackagePart::Prompts => PROMPTS_FOLDER.to_owned(),
        }
    }
}

/// A package that was read and checked.
#[derive(Clone, Debug)]
pub struct PackageContent {
    /// What it says of itself.
    pub manifest: PackageManifest,
    /// The public key that has signed it, as minisign writes keys; `None` if it isn't signed.
    pub signer: Option<String>,
    /// Hash of all its files and their names.
    pub hash: BlobHash,
    /// Its tools by name, with the names of their files.
    pub tools: BTreeMap<String, String>,
    /// All files except the signature, by path.
    files: BTreeMap<String, Vec<u8>>,
}

impl PackageContent {
    /// Reads and checks the files of a package.
    pub(crate) fn from_files(raw: RawFiles) -> Result<PackageContent, PackageError> {
        let mut files = raw.into_package_files();
        check_names(&files)?;
        let manifest = files.get(MANIFEST_FILE).ok_or_else(|| {
            PackageError::Malformed(format!("it has no {MANIFEST_FILE} with name, version, description and license"))
        })?;
        let manifest = PackageManifest::parse(manifest)?;
        let signature = files.remove(SIGNATURE_FILE);
        let listing = file_listing(&files);
        let signer = verify_signature(files.get(PUBLIC_KEY_FILE), signature.as_ref(), &listing)?;
        let (needed, tools) = check_parts(&files)?;
        let missing = needed.beyond(&manifest.permissions);
        if !missing.is_empty() {
            let advice = match missing.agents.contains(ALL_TOOLS) {
                true => format!(". List `tools` in each agent, or permit `agents: [{ALL_TOOLS}]`"),
                false => String::new(),
            };
            return Err(PackageError::Malformed(format!(
                "its content does more than {MANIFEST_FILE} permits: {}{advice}",
                missing.describe().join("; ")
            )));
        }
        Ok(PackageContent { manifest, signer, hash: BlobHash::of(listing.as_bytes()), tools, files })
    }

    /// Returns the files that are installed: kind, name and bytes.
    pub fn parts(&self) -> impl Iterator<Item = (PackagePart, &str, &[u8])> {
        self.files.iter().filter_map(|(path, bytes)| Some((part_of(path)?, path.split_once('/')?.1, bytes.as_slice())))
    }

    /// Returns all files by path, without the signature.
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// Returns whether some files are notes, which need a volume.
    pub fn has_notes(&self) -> bool {
        self.parts().any(|(part, ..)| part.is_note())
    }
}

fn part_of(path: &str) -> Option<PackagePart> {
    let folder = path.split_once('/')?.0;
    PackagePart::ALL.into_iter().find(|part| part.folder() == folder)
}

/// Returns a line for each file, as `b3sum` prints them: this text is hashed and signed.
pub(crate) fn file_listing(files: &BTreeMap<String, Vec<u8>>) -> String {
    files.iter().map(|(path, bytes)| format!("{}  {path}\n", BlobHash::of(bytes))).collect()
}

/// Returns whether a file may have this name on every system. Letters of all scripts are allowed, combining marks
/// aren't, so that no two names look the same.
fn is_file_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim().to_lowercase();
    let is_device = DEVICE_NAMES.contains(&stem.as_str())
        || matches!(stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt")), Some(number) if number.len() == 1);
    let is_letter = |letter: char| letter.is_alphanumeric() || " ._-'()".contains(letter);
    !name.is_empty()
        && name.len() <= MAX_FILE_NAME_BYTES
        && name.chars().all(is_letter)
        && !name.starts_with(['.', ' ', '-'])
        && !name.ends_with(['.', ' '])
        && !is_device
}

fn check_names(files: &BTreeMap<String, Vec<u8>>) -> Result<(), PackageError> {
    let mut folded = BTreeSet::new();
    for path in files.keys() {
        let refuse = |why: &str| Err(PackageError::Malformed(format!("{why}: {path}")));
        match path.split('/').collect::<Vec<_>>().as_slice() {
            [MANIFEST_FILE | SIGNATURE_FILE | PUBLIC_KEY_FILE] => {}
            [about] if is_file_name(about) && ABOUT_FILES.iter().any(|known| about.starts_with(known)) => {}
            [_] => return refuse("beside package.yaml, a package has only README, LICENSE, CHANGELOG and NOTICE"),
            [folder, name] => {
                let Some(part) = PackagePart::ALL.into_iter().find(|part| part.folder() == *folder) else {
                    return refuse("a package has the folders agents, tools, templates, snippets, themes and prompts");
                };
                if !is_file_name(name) {
                    return refuse("a file can't have this name on every system");
                }
                if !part
                    .endings()
                    .iter()
                    .any(|ending| name.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.')))
                {
                    let endings = part.endings().join(" or .");
                    return refuse(&format!("files in {folder} end with .{endings}"));
                }
                let target = format!("{}/{name}", part.target_folder("Templates"));
                if part.is_note()
                    && let Some(why) = guarded::guarded_reason(&target)
                {
                    return refuse(&format!("a package brings no such file ({why})"));
                }
            }
            _ => return refuse("the folders of a package have no folders inside"),
        }
        if !folded.insert(path.to_lowercase()) {
            return refuse("two files differ only in upper and lower case");
        }
    }
    Ok(())
}

/// Checks the content of each file. Returns the permissions that it needs, and its tools with their files.
fn check_parts(
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<(PackagePermissions, BTreeMap<String, String>), PackageError> {
    let mut needed = PackagePermissions::default();
    let (mut tools, mut agents, mut count) = (BTreeMap::new(), BTreeSet::new(), 0);
    for (path, bytes) in files {
        let refuse = |why: String| PackageError::Malformed(format!("{path}: {why}"));
        let text = std::str::from_utf8(bytes).map_err(|_| refuse("it isn't UTF-8 text".to_owned()))?;
        let Some(part) = part_of(path) else { continue };
        count += 1;
        match part {
            PackagePart::Agents => {
                let agent = AgentDefinition::parse(text).map_err(|error| refuse(error.to_string()))?;
                check_agent(path, &agent)?;
                match &agent.tools {
                    Some(names) => needed.agents.extend(names.iter().cloned()),
                    None => _ = needed.agents.insert(ALL_TOOLS.to_owned()),
                }
                if !agents.insert(agent.name.to_lowercase()) {
                    return Err(refuse(format!("another agent of the package is called {}, too", agent.name)));
                }
            }
            PackagePart::Tools => {
                for tool in read_tools(path, text)? {
                    needed.tools.extend(tool_file::permission_names(&tool).into_iter().map(str::to_owned));
                    if tools.contains_key(&tool.name) {
                        return Err(refuse(format!("another tool of the package is called {}, too", tool.name)));
                    }
                    let file = path.rsplit('/').next().unwrap_or_default();
                    tools.insert(tool.name, file.to_owned());
                }
            }
            PackagePart::Themes => _ = ThemeFile::parse(text).map_err(|error| refuse(error.to_string()))?,
            PackagePart::Prompts => {
                if !has_prompt_tag(text) {
                    return Err(refuse("a prompt has the tag prompt in its properties: tags: [prompt]".to_owned()));
                }
            }
            PackagePart::Templates | PackagePart::Snippets => {}
        }
    }
    if count == 0 {
        return Err(PackageError::Malformed("it has no agents, tools, templates, snippets, themes or prompts".into()));
    }
    Ok((needed, tools))
}

/// Returns whether the properties of a note have the tag `prompt`.
fn has_prompt_tag(text: &str) -> bool {
    let properties = text::properties::read(text).and_then(Result::ok).unwrap_or_default();
    let tags = properties.iter().filter(|property| property.key.eq_ignore_ascii_case("tags"));
    tags.flat_map(|property| &property.values)
        .any(|(tag, _)| tag.trim_start_matches('#').eq_ignore_ascii_case("prompt"))
}

fn check_agent(path: &str, agent: &AgentDefinition) -> Result<(), PackageError> {
    let refuse = |why: String| Err(PackageError::Malformed(format!("{path}: {why}")));
    if agent.llm_provider.is_some() {
        return refuse("an agent of a package doesn't choose your provider; take llm_provider out".to_owned());
    }
    let is_same = |known: &AgentDefinition| known.name.eq_ignore_ascii_case(&agent.name);
    match agent_definition::built_in().iter().any(is_same) {
        true => refuse(format!("{} is an agent of Tracebook; give it another name", agent.name)),
        false => Ok(()),
    }
}

fn read_tools(path: &str, text: &str) -> Result<Vec<UserTool>, PackageError> {
    let refuse = |why: String| PackageError::Malformed(format!("{path}: {why}"));
    let tools = if path.ends_with(".py") {
        let (tools, problems) = python_plugin::read_python_plugin(text);
        if let Some(problem) = problems.first() {
            return Err(refuse(format!("line {}: {}", problem.line, problem.what)));
        }
        tools
    } else {
        tool_file::parse_tool_file(text).map_err(|error| refuse(error.to_string()))?
    };
    for tool in &tools {
        tool_file::check_tool(tool).map_err(|error| refuse(error.to_string()))?;
    }
    match tools.is_empty() {
        true => Err(refuse("it has no tool".to_owned())),
        false => Ok(tools),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_fit_every_system() {
        for good in ["a.md", "Täglich.md", "会議.md", "Team (weekly) - 2.md", "it's.md", "console.md", "com.md"] {
            assert!(is_file_name(good), "{good}");
        }
        let long = "a".repeat(101);
        for bad in [
            "",
            ".",
            "..",
            ".hidden",
            "a/b",
            "a\\b",
            "a:b",
            "a.",
            "a ",
            " a",
            "-a",
            "nul.md",
            "CON",
            "com1.md",
            "LPT9",
            "a\u{202e}b",
            "a\0b",
            "a\nb",
            "e\u{301}.md",
            "a*b",
            &long,
        ] {
            assert!(!is_file_name(bad), "{bad:?}");
        }
    }
}
