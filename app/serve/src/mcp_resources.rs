//! Notes and attachments as resources of the MCP server: addresses, the list, and what is read.

use crate::command_calls::CommandCall;
use crate::percent_text::{percent_decoded, percent_encoded};
use crate::tool_arguments::ToolCallError;
use crate::tool_calls::ToolCallContext;
use agent::secrets::secret_files::secret_file_kind;
use base64::Engine;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

/// Maximum size of a note or an attachment that is returned as a resource, in bytes.
pub(crate) const MAX_RESOURCE_BYTES: usize = 4 << 20;

const NOTE_MEDIA_TYPE: &str = "text/markdown";
const NOTE_PREFIX: &str = "note://";
const ATTACHMENT_PREFIX: &str = "attachment://";

/// The forms of addresses.
pub(crate) const NOTE_TEMPLATE: &str = "note://{volume}/{+path}";
pub(crate) const ATTACHMENT_TEMPLATE: &str = "attachment://{volume}/{+path}";

/// A file of a volume under its address as a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedResource {
    pub(crate) volume: String,
    pub(crate) path: String,
    pub(crate) is_note: bool,
}

impl ServedResource {
    /// Reads an address that [`ServedResource::uri`] returned.
    pub(crate) fn from_uri(uri: &str) -> Option<ServedResource> {
        let (is_note, rest) = match (uri.strip_prefix(NOTE_PREFIX), uri.strip_prefix(ATTACHMENT_PREFIX)) {
            (Some(rest), _) => (true, rest),
            (None, rest) => (false, rest?),
        };
        let (volume, path) = rest.split_once('/')?;
        let (volume, path) = (percent_decoded(volume)?, percent_decoded(path)?);
        (!path.is_empty() && !path.contains('\0')).then_some(ServedResource { volume, path, is_note })
    }

    /// Returns the file of a volume.
    pub(crate) fn of_path(volume: &str, path: &str) -> ServedResource {
        let is_note = path.to_lowercase().ends_with(".md");
        ServedResource { volume: volume.to_owned(), path: path.to_owned(), is_note }
    }

    /// Returns its address.
    pub(crate) fn uri(&self) -> String {
        let prefix = if self.is_note { NOTE_PREFIX } else { ATTACHMENT_PREFIX };
        format!("{prefix}{}/{}", percent_encoded(&self.volume, false), percent_encoded(&self.path, true))
    }

    /// Returns the name under which commands know it.
    pub(crate) fn word(&self) -> String {
        match self.volume.as_str() {
            "" => self.path.clone(),
            volume => format!("{volume}:{}", self.path),
        }
    }
}

/// Returns the forms of addresses.
pub(crate) fn resource_templates() -> Vec<ResourceTemplate> {
    let note = ResourceTemplate::new(NOTE_TEMPLATE, "note")
        .with_title("Note")
        .with_description("The Markdown of a note: its volume, and its path inside the volume")
        .with_mime_type(NOTE_MEDIA_TYPE);
    let attachment = ResourceTemplate::new(ATTACHMENT_TEMPLATE, "attachment")
        .with_title("Attachment")
        .with_description("A file beside the notes: its volume, and its path inside the volume");
    vec![note, attachment]
}

/// Returns the media type of a file by its name.
pub(crate) fn media_type(path: &str) -> String {
    mime_guess::from_path(path).first_or_octet_stream().essence_str().to_owned()
}

fn too_long(path: &str, bytes: impl std::fmt::Display) -> ToolCallError {
    ToolCallError(format!("{path} has {bytes} bytes; a resource has at most {MAX_RESOURCE_BYTES}"))
}

impl ToolCallContext<'_> {
    /// Lists the attachments of all volumes that the caller reaches, or of one: path, volume and size. Files that
    /// commonly hold keys are left out.
    pub(crate) fn attachments(&self, volume: Option<&str>) -> Result<Vec<Value>, ToolCallError> {
        let volume = self.reached_volume(volume)?;
        let call = CommandCall::json("attachments").option("volume", volume).operands(["list"]);
        let rows = self.perform_ok(call)?.value().unwrap_or_default();
        let rows = rows.as_array().cloned().unwrap_or_default();
        let is_open = |row: &Value| {
            self.reaches(&row["volume"]) && row["path"].as_str().is_some_and(|path| secret_file_kind(path).is_none())
        };
        Ok(rows.into_iter().filter(is_open).collect())
    }

    /// Lists all resources: notes, then attachments.
    pub(crate) fn resources(&self) -> Result<Vec<Resource>, ToolCallError> {
        let file = |row: &Value, is_note: bool| {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            ServedResource { volume: text("volume"), path: text("path"), is_note }
        };
        let note = |row: &Value| {
            let file = file(row, true);
            let name = file.path.strip_suffix(".md").unwrap_or(&file.path);
            Resource::new(file.uri(), name).with_mime_type(NOTE_MEDIA_TYPE)
        };
        let attachment = |row: &Value| {
            let file = file(row, false);
            let size = row["bytes"].as_u64().unwrap_or(0);
            Resource::new(file.uri(), &file.path).with_mime_type(media_type(&file.path)).with_size(size)
        };
        let (notes, attachments) = (self.notes(None, "")?, self.attachments(None)?);
        Ok(notes.iter().map(note).chain(attachments.iter().map(attachment)).collect())
    }

    /// Reads an attachment.
    pub(crate) fn attachment_bytes(&self, file: &ServedResource) -> Result<Vec<u8>, ToolCallError> {
        let ServedResource { volume, path, .. } = file;
        self.reached_volume(Some(volume.as_str()))?;
        if secret_file_kind(path).is_some() {
            return Err(ToolCallError(format!("{path} commonly holds keys or passwords, so it isn't served")));
        }
        let call = || CommandCall { words: vec!["attachments".to_owned()], ..CommandCall::default() };
        let about = CommandCall::json("attachments").option("volume", Some(volume)).operands(["get", path]);
        let about = self.perform_ok(about)?.value().unwrap_or_default();
        match about["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok()) {
            Some(0..=MAX_RESOURCE_BYTES) => {}
            Some(bytes) => return Err(too_long(path, bytes)),
            None => return Err(ToolCallError(format!("there is no attachment {path} in {volume}"))),
        }
        Ok(self.perform_ok(call().option("volume", Some(volume)).operands(["get", path]))?.output)
    }

    /// Reads a resource.
    pub(crate) fn resource_contents(&self, file: &ServedResource) -> Result<ResourceContents, ToolCallError> {
        self.reached_volume(Some(file.volume.as_str()))?;
        if file.is_note {
            let note = match self.only_volume {
                Some(own) => self.needed_own_note(own, &file.path)?,
                None => self.read_note(&file.word())?,
            };
            if note.text.len() > MAX_RESOURCE_BYTES {
                let why = format!("{} has {} bytes; read it in pages with read_note", note.path, note.text.len());
                return Err(ToolCallError(why));
            }
            return Ok(ResourceContents::text(note.text, file.uri()).with_mime_type(NOTE_MEDIA_TYPE));
        }
        let media_type = media_type(&file.path);
        let contents = match String::from_utf8(self.attachment_bytes(file)?) {
            Ok(text) if !text.contains('\0') => ResourceContents::text(text, file.uri()),
            Ok(text) => ResourceContents::blob(base64_text(text.as_bytes()), file.uri()),
            Err(error) => ResourceContents::blob(base64_text(error.as_bytes()), file.uri()),
        };
        Ok(contents.with_mime_type(media_type))
    }
}

/// Returns bytes in base64.
pub(crate) fn base64_text(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_come_back_as_they_were() {
        let paths = ["Ideas/Boat.md", "a b/ü#1%.md", "x?y.md", "Pictures/red.png"];
        for (volume, path) in [("notes", paths[0]), ("my notes", paths[1]), ("a:b", paths[2]), ("notes", paths[3])] {
            let file = ServedResource::of_path(volume, path);
            let uri = file.uri();
            assert!(uri.is_ascii() && !uri.contains([' ', '#', '?']), "{uri}");
            assert_eq!(ServedResource::from_uri(&uri), Some(file));
        }
        assert_eq!(ServedResource::of_path("notes", "red.png").uri(), "attachment://notes/red.png");
        for wrong in
            ["file:///etc/passwd", "note://notes", "note://notes/", "note://n/%zz", "note://n/%00", "attachment://n/%"]
        {
            assert_eq!(ServedResource::from_uri(wrong), None, "{wrong}");
        }
    }
}
