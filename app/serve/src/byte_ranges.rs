//! The header `Range` (RFC 9110) with one range of bytes.

/// The part of a body that a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedBytes {
    /// All of it: there is no range, or one that this server doesn't understand and so may ignore.
    Whole,
    /// From the first byte to the last, both included.
    Part(u64, u64),
    /// None of the bytes that are wanted is there.
    Nothing,
}

/// Reads the header for a body of `size` bytes.
pub(crate) fn wanted_bytes(header: Option<&str>, size: u64) -> WantedBytes {
    let Some(range) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return WantedBytes::Whole };
    let Some((first, last)) = range.split_once('-').filter(|_| !range.contains(',')) else { return WantedBytes::Whole };
    let number = |text: &str| match text.trim() {
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse::<u64>().ok(),
        _ => None,
    };
    match (first.trim(), last.trim()) {
        ("", last) => match number(last) {
            None => WantedBytes::Whole,
            Some(0) => WantedBytes::Nothing,
            Some(_) if size == 0 => WantedBytes::Nothing,
            Some(count) => WantedBytes::Part(size.saturating_sub(count), size - 1),
        },
        (first, "") => match number(first) {
            None => WantedBytes::Whole,
            Some(first) if first >= size => WantedBytes::Nothing,
            Some(first) => WantedBytes::Part(first, size - 1),
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first > last => WantedBytes::Whole,
            (Some(first), Some(_)) if first >= size => WantedBytes::Nothing,
            (Some(first), Some(last)) => WantedBytes::Part(first, last.min(size - 1)),
            _ => WantedBytes::Whole,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WantedBytes::{Nothing, Part, Whole};

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let cases = [
            (None, Whole),
            (Some("bytes=0-9"), Part(0, 9)),
            (Some("bytes=90-200"), Part(90, 99)),
            (Some("bytes=90-"), Part(90, 99)),
            (Some("bytes=-10"), Part(90, 99)),
            (Some("bytes=-1000"), Part(0, 99)),
            (Some("bytes=100-"), Nothing),
            (Some("bytes=100-200"), Nothing),
            (Some("bytes=-0"), Nothing),
            (Some("bytes=9-3"), Whole),
            (Some("bytes=0-1,3-4"), Whole),
            (Some("bytes=+1-2"), Whole),
            (Some("bytes=99999999999999999999-"), Whole),
            (Some("lines=1-2"), Whole),
            (Some("bytes=-"), Whole),
        ];
        for (header, wanted) in cases {
            assert_eq!(wanted_bytes(header, 100), wanted, "{header:?}");
        }
        assert_eq!(wanted_bytes(Some("bytes=0-0"), 0), Nothing);
        assert_eq!(wanted_bytes(Some("bytes=-5"), 0), Nothing);
    }
}
