//! Random texts for tests: meaningful fragments in any order.

/// Fragments that test notes are made of.
pub(crate) const NOTE: [&str; 15] =
    ["==", "%%", "#a", "> ", "[!x]-", "[^a]", "\n", "\n\n", "- ", "*", "<b>", "</i>", "|a|\n|-|\n", "![[B]]", "$x$"];

/// Returns `count` texts of `length` fragments each; always the same ones.
pub(crate) fn texts(parts: &[&str], count: usize, length: usize) -> impl Iterator<Item = String> {
    let mut seed = 5_u64;
    (0..count).map(move |_| {
        let piece = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            parts[(seed >> 40) as usize % parts.len()]
        };
        (0..length).map(piece).collect()
    })
}
