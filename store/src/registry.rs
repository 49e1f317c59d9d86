//! The registry document: the user's own tools, with all their versions. A version never changes; which version is
//! approved can change.

use crate::document::{self, LoadedDocument};
use crate::error::StoreError;
use crate::id::{BlobHash, DocId};
use crate::keys;
use crate::note::find_container;
use crate::schema::DocumentKind;
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{ActorId, Automerge, AutomergeError, ObjId, ObjType, ReadDoc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a user's tool may do besides compute, other than the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolGrants {
    /// May read and write files of the project.
    pub fs: bool,
    /// May show pictures in its result.
    pub ui: bool,
    /// May run shell commands in the sandbox.
    pub process: bool,
}

impl Default for ToolGrants {
    /// Returns the grants of tools that state none, such as those of earlier versions: files and pictures.
    fn default() -> ToolGrants {
        ToolGrants { fs: true, ui: true, process: false }
    }
}

/// The language of a tool's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolLanguage {
    /// Python that defines the function `entry`.
    #[default]
    Python,
    /// A JavaScript function, as an expression, that gets all arguments as one object.
    JavaScript,
}

impl ToolLanguage {
    /// Returns the language's name in tool files.
    pub fn name(self) -> &'static str {
        match self {
            ToolLanguage::Python => "python",
            ToolLanguage::JavaScript => "javascript",
        }
    }
}

/// One version of a tool, written by the user or an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserTool {
    /// Id that all versions of the tool share; empty if it follows from the name. See [`UserTool::tool_id`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Name under which agents call the tool; unique in the registry.
    pub name: String,
    /// The version number, from 1.
    pub version: u64,
    /// Description of the tool, for the model.
    pub description: String,
    /// JSON schema of the tool's arguments.
    pub parameters: Value,
    /// The code. In Python, it defines the function `entry`; in JavaScript, it is the function.
    pub code: String,
    /// The code's language.
    #[serde(default, skip_serializing_if = "is_python")]
    pub language: ToolLanguage,
    /// Name of the function that is called with the arguments; empty for `run`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub entry: String,
    /// Filters of the events that call the function, separated by `;`; empty for a tool that agents call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// Whether it may use the network.
    #[serde(default)]
    pub network: bool,
    /// Further permissions of the tool.
    #[serde(default)]
    pub grants: ToolGrants,
    /// When this version was written, in milliseconds since 1970.
    #[serde(default)]
    pub created: i64,
    /// Name of the author.
    #[serde(default)]
    pub author: String,
}

fn is_python(language: &ToolLanguage) -> bool {
    *language == ToolLanguage::Python
}

impl UserTool {
    /// Returns the tool's id: the one that it was imported with, or one that follows from its name, so that all devices
    /// agree on it.
    pub fn tool_id(&self) -> String {
        if !self.id.is_empty() {
            return self.id.clone();
        }
        let hex = BlobHash::of(format!("tracebook tool {}", self.name).as_bytes()).to_string();
        let part = |from, to| hex.get(from..to).unwrap_or_default();
        format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    }

    /// Returns the hash of what the tool is and may do. Two versions with the same hash do the same.
    pub fn content_hash(&self) -> BlobHash {
        let parts = (&self.name, &self.code, &self.parameters, self.network);
        let plain = self.entry.is_empty() && self.grants == ToolGrants::default();
        // Devices have stored hashes of the shorter forms.
        let bytes = match self.language {
            ToolLanguage::Python if !self.event.is_empty() => {
                serde_json::to_vec(&(parts, &self.entry, self.grants, &self.event))
            }
            ToolLanguage::Python if plain => serde_json::to_vec(&parts),
            ToolLanguage::Python => serde_json::to_vec(&(parts, &self.entry, self.grants)),
            ToolLanguage::JavaScript => serde_json::to_vec(&(parts, &self.entry, self.grants, self.language)),
        };
        BlobHash::of(&bytes.unwrap_or_default())
    }

    /// Returns whether events call the function, and no agent does.
    pub fn is_event_handler(&self) -> bool {
        !self.event.is_empty()
    }

    /// Returns the name of the function that is called.
    pub fn entry_name(&self) -> &str {
        if self.entry.is_empty() { "run" } else { &self.entry }
    }
}

/// A tool with its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredTool {
    /// All versions, oldest first; at least one.
    pub versions: Vec<UserTool>,
    /// The version that may be used; `None` if none is approved.
    pub approved: Option<u64>,
    /// The highest version that was ever approved; 0 if none was.
    pub reviewed: u64,
}

impl RegisteredTool {
    /// Returns the newest version, approved or not.
    pub fn newest_version(&self) -> Option<&UserTool> {
        self.versions.last()
    }

    /// Returns the approved version.
    pub fn usable_version(&self) -> Option<&UserTool> {
        self.versions.iter().find(|tool| Some(tool.version) == self.approved)
    }

    /// Whether a version that is newer than all approved ones waits for the user's approval.
    pub fn has_pending_version(&self) -> bool {
        let is_new = |newest: &UserTool| self.approved.is_none_or(|known| known.max(self.reviewed) < newest.version);
        self.newest_version().is_some_and(is_new)
    }
}

/// The automerge document of the user's tools.
pub struct RegistryDoc {
    doc: Automerge,
    tools: ObjId,
}

impl std::fmt::Debug for RegistryDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RegistryDoc")
    }
}

/// A change to the registry.
#[derive(Clone, Debug, PartialEq)]
pub enum RegistryWrite {
    /// A new version of a tool.
    Version(Box<UserTool>),
    /// The version that may be used was set; `None` if none may be.
    Approved {
        /// The tool's name.
        name: String,
        /// The version that agents may use; `None` if none.
        version: Option<u64>,
    },
    /// The tool was removed with all its versions.
    Removed {
        /// The tool's name.
        name: String,
    },
}

impl RegistryDoc {
    /// Loads the registry from its chunks. Further changes are written under `actor`.
    ///
    /// # Errors
    /// Returns an error if the document is damaged, has a newer schema, or is of another kind.
    pub fn load(id: DocId, chunks: &[Vec<u8>], actor: ActorId) -> Result<LoadedDocument<RegistryDoc>, StoreError> {
        let LoadedDocument { doc, bad_chunks: bad } =
            document::load_document(id, DocumentKind::Registry, chunks, actor)?;
        let tools = find_container(&doc, id, keys::TOOLS)?;
        Ok(LoadedDocument { doc: RegistryDoc { doc, tools }, bad_chunks: bad })
    }

    /// Saves the whole document as one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// Returns all tools, sorted by name.
    pub fn tools(&self) -> Vec<RegisteredTool> {
        let mut all = Vec::new();
        for name in self.doc.keys(&self.tools) {
            let Ok(Some((_, object))) = self.doc.get(&self.tools, name.as_str()) else { continue };
            let mut versions: Vec<UserTool> =
                self.doc.map_range(&object, ..).filter_map(|item| document::parse_json_value(&item)).collect();
            versions.sort_by_key(|tool| tool.version);
            let approved = self.doc.get(&object, keys::STATUS).ok().flatten();
            let approved = approved.and_then(|(value, _)| value.as_u64()).filter(|version| *version > 0);
            let reviewed = self.doc.get(&object, keys::REVIEWED).ok().flatten();
            let reviewed = reviewed.and_then(|(value, _)| value.as_u64()).unwrap_or(0);
            if !versions.is_empty() {
                all.push(RegisteredTool { versions, approved, reviewed });
            }
        }
        all
    }

    /// Merges changes from another device.
    ///
    /// # Errors
    /// Returns [`StoreError::Damaged`] if the bytes can't be read completely. Nothing is merged then.
    pub fn merge(&mut self, id: DocId, bytes: &[u8]) -> Result<(), StoreError> {
        document::merge_changes(id, &mut self.doc, bytes, None, |_| {}).map(|_| ())
    }

    /// Commits changes to the registry and returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn commit(&mut self, writes: &[RegistryWrite], time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let tools = &self.tools;
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| {
                for write in writes {
                    match write {
                        RegistryWrite::Version(tool) => {
                            let object = match tx.get(tools, tool.name.as_str())? {
                                Some((_, object)) => object,
                                None => tx.put_object(tools, tool.name.as_str(), ObjType::Map)?,
                            };
                            let json = serde_json::to_string(tool).unwrap_or_default();
                            tx.put(&object, format!("v{:08}", tool.version), json)?;
                        }
                        RegistryWrite::Approved { name, version } => {
                            if let Some((_, object)) = tx.get(tools, name.as_str())? {
                                let mut reviewed = version.unwrap_or(0);
                                // Earlier versions of Tracebook kept only the approved one.
                                for key in [keys::STATUS, keys::REVIEWED] {
                                    let known = tx.get(&object, key)?.and_then(|(value, _)| value.as_u64());
                                    reviewed = reviewed.max(known.unwrap_or(0));
                                }
                                tx.put(&object, keys::STATUS, version.unwrap_or(0))?;
                                tx.put(&object, keys::REVIEWED, reviewed)?;
                            }
                        }
                        RegistryWrite::Removed { name } => tx.delete(tools, name.as_str())?,
                    }
                }
                Ok(())
            },
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stay_and_one_is_approved() {
        let id = DocId([4; 16]);
        let mut doc = RegistryDoc::load(id, &[], ActorId::from([1; 16])).expect("made").doc;
        let tool = |version| UserTool {
            name: "double".to_owned(),
            version,
            description: "Doubles.".to_owned(),
            parameters: serde_json::json!({"type": "object"}),
            code: format!("def run(x): return {version} * x"),
            created: 1,
            ..UserTool::default()
        };
        let approved = |version| RegistryWrite::Approved { name: "double".to_owned(), version };
        doc.commit(
            &[RegistryWrite::Version(Box::new(tool(1))), approved(Some(1)), RegistryWrite::Version(Box::new(tool(2)))],
            0,
        )
        .expect("kept");
        let again = RegistryDoc::load(id, &[doc.save()], ActorId::from([2; 16])).expect("read").doc;
        let one = &again.tools()[0];
        assert_eq!(
            (one.versions.len(), one.usable_version().map(|tool| tool.version), one.has_pending_version()),
            (2, Some(1), true)
        );
        // Going back to an earlier version doesn't make the newer one wait again.
        doc.commit(&[approved(Some(2)), approved(Some(1))], 0).expect("kept");
        assert_eq!((doc.tools()[0].approved, doc.tools()[0].has_pending_version()), (Some(1), false));
        doc.commit(&[approved(None)], 0).expect("kept");
        assert_eq!(doc.tools()[0].usable_version(), None);
        doc.commit(&[RegistryWrite::Removed { name: "double".to_owned() }], 0).expect("kept");
        assert_eq!(doc.tools(), []);
    }
}
