//! Text format of document heads.

use store::ChangeHash;

/// Formats heads as the volume's document stores them.
pub(in crate::session) fn format_heads(heads: &[[u8; 32]]) -> String {
    let hex = |head: &[u8; 32]| head.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut heads: Vec<String> = heads.iter().map(hex).collect();
    heads.sort_unstable();
    heads.join(" ")
}

pub(in crate::session) fn heads_to_text(heads: &[ChangeHash]) -> String {
    let mut heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    heads.sort_unstable();
    heads.join(" ")
}

/// Parses the heads that [`MergeKind::Text`] stores. Invalid ones are skipped.
pub fn parse_heads(text: &str) -> Vec<ChangeHash> {
    text.split(' ').filter_map(|head| head.parse().ok()).collect()
}
