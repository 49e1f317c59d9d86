//! Measures HTML without parsing it: parsers of deep HTML need much time and stack.

/// Returns the maximum nesting of elements, and their number.
pub fn measure_html(html: &str) -> (usize, usize) {
    // Elements that end where the next one starts, or at once.
    const OPTIONAL_END_ELEMENTS: [&str; 17] = [
        "p", "li", "td", "th", "tr", "dt", "dd", "option", "br", "hr", "img", "meta", "link", "input", "col", "source",
        "wbr",
    ];
    let (mut depth, mut most, mut tags) = (0_usize, 0, 0);
    for part in html.split('<').skip(1) {
        let (closes, part) = part.strip_prefix('/').map_or((false, part), |part| (true, part));
        let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        let name = part[..end].to_ascii_lowercase();
        if name.is_empty() || OPTIONAL_END_ELEMENTS.contains(&name.as_str()) {
            continue;
        }
        tags += 1;
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        most = most.max(depth);
    }
    (most, tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_counted_and_their_depth_measured() {
        assert_eq!(measure_html(""), (0, 0));
        assert_eq!(measure_html("<p>one<br><p>two"), (0, 0), "these end by themselves");
        assert_eq!(measure_html("<div><b>x</b></div><i>y</i>"), (2, 6));
        assert_eq!(measure_html(&"<div>".repeat(1_000)), (1_000, 1_000));
    }
}
