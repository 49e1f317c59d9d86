//! Signatures of trace libraries: a library is text, and its last lines say which device signed all that stands
//! before.
//!
//! ```text
//! # signed-by: 64 hexadecimal digits, the device's public key (Ed25519)
//! # signature: 128 hexadecimal digits
//! ```
//!
//! YAML takes these lines for comments, so a reader that doesn't know signatures reads the traces all the same.

use super::slots::{self, SlotValues};
use super::trace::RunTrace;
use std::collections::BTreeMap;
use text::untrusted_text;

/// What a signature of a library is for; no other signature of a device holds for it.
pub const LIBRARY_SIGNATURE_PURPOSE: &str = "trace library";

const SIGNER_PREFIX: &str = "# signed-by: ";
const SIGNATURE_PREFIX: &str = "# signature: ";

/// What the last lines of a library say; nothing of it is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibrarySignature {
    /// Public key of the device, in hexadecimal.
    pub device: String,
    /// The signature, in hexadecimal.
    pub signature: String,
}

/// Why the signature of a library can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibrarySignatureError {
    /// A line of it is missing.
    #[error("its signature is not whole; ask for the file again")]
    Incomplete,
    /// Something follows it.
    #[error("something was added behind its signature; ask for the file again")]
    TextBehind,
}

/// Adds a signature to a library. The text that's signed has to end with a line break.
pub fn with_signature(text: &str, signed: &LibrarySignature) -> String {
    format!("{text}{SIGNER_PREFIX}{}\n{SIGNATURE_PREFIX}{}\n", signed.device, signed.signature)
}

/// Splits a library into what is signed and the signature, if there's one.
///
/// # Errors
/// Returns an error if there's only a part of a signature, or something behind it.
pub fn split_signature(text: &str) -> Result<(&str, Option<LibrarySignature>), LibrarySignatureError> {
    let mut at = 0;
    let mut begin = None;
    for line in text.split_inclusive('\n') {
        // Steps are indented, so no text of a trace begins a line with this.
        if line.starts_with(SIGNER_PREFIX) || line.starts_with(SIGNATURE_PREFIX) {
            begin = Some(at);
            break;
        }
        at += line.len();
    }
    let Some(begin) = begin else { return Ok((text, None)) };
    let (signed, mut lines) = (&text[..begin], text[begin..].lines());
    let device = lines.next().and_then(|line| line.strip_prefix(SIGNER_PREFIX));
    let signature = lines.next().and_then(|line| line.strip_prefix(SIGNATURE_PREFIX));
    let (device, signature) = device.zip(signature).ok_or(LibrarySignatureError::Incomplete)?;
    if lines.any(|line| !line.trim().is_empty()) {
        return Err(LibrarySignatureError::TextBehind);
    }
    Ok((signed, Some(LibrarySignature { device: device.trim().to_owned(), signature: signature.trim().to_owned() })))
}

/// Returns what is different in a project from where a trace was learned: its tools, and the files that it needs.
/// `tools` are the schemas of the tools here, by name.
pub fn trace_differences(
    trace: &RunTrace,
    tools: &BTreeMap<String, String>,
    has_file: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for step in &trace.steps {
        let tool = untrusted_text::escape_line(&step.tool);
        let difference = match tools.get(&step.tool) {
            Some(known) if *known == step.schema => continue,
            Some(_) => format!("The tool {tool} is not the one it was learned with, so runs won't replay it."),
            None => format!("There is no tool {tool} here, so runs won't replay it."),
        };
        if !found.contains(&difference) {
            found.push(difference);
        }
    }
    let values: SlotValues =
        trace.slots.iter().map(|slot| (slot.name.clone(), (slot.kind, slot.value.clone()))).collect();
    let is_made = |path: &String| trace.steps.iter().any(|step| step.free.contains(path));
    let needed = trace.steps.iter().flat_map(|step| &step.needs);
    for path in needed.filter_map(|place| slots::fill_template(place, &values, &[]).ok()) {
        let shown = untrusted_text::escape_line(&path);
        let difference = format!("{shown} is not here; a replay for another goal may need another file.");
        if !has_file(&path) && !is_made(&path) && !found.contains(&difference) {
            found.push(difference);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_signature_is_whole_and_last() {
        let signed = LibrarySignature { device: "ab".to_owned(), signature: "cd".to_owned() };
        let library = with_signature("---\ntype: trace\n---\n", &signed);
        assert_eq!(split_signature(&library), Ok(("---\ntype: trace\n---\n", Some(signed))));
        assert_eq!(split_signature("a: b\n"), Ok(("a: b\n", None)));
        let cut = library.strip_suffix("# signature: cd\n").expect("the last line");
        assert_eq!(split_signature(cut), Err(LibrarySignatureError::Incomplete));
        assert_eq!(split_signature(&format!("{library}---\ntype: trace\n")), Err(LibrarySignatureError::TextBehind));
    }

    proptest! {
        #[test]
        fn any_text_is_split_or_refused(text in "(# signed-by: |# signature: |---\n|ab|\n){0,12}") {
            if let Ok((signed, _)) = split_signature(&text) {
                prop_assert!(text.starts_with(signed));
            }
        }
    }
}
