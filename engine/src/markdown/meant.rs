//! Which file of a volume a link in a note means.

use std::collections::BTreeMap;

/// The file that a note at `own` means by `target`: beside it, in the volume, or anywhere by its name. A note's ending
/// may be left out.
pub fn find<'a, V>(files: &'a BTreeMap<String, V>, own: &str, target: &str) -> Option<(&'a str, &'a V)> {
    let target = decoded(target);
    let folder = own.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (beside, whole) = (normal(&format!("{folder}/{target}")), normal(&target));
    if whole.is_empty() {
        return None;
    }
    let get = |path: &str| files.get_key_value(path).or_else(|| files.get_key_value(&format!("{path}.md")));
    let named = |path: &&String| ends(path, &whole) || path.strip_suffix(".md").is_some_and(|path| ends(path, &whole));
    let found = get(&beside).or_else(|| get(&whole)).or_else(|| {
        let path = files.keys().filter(named).min_by_key(|path| (path.matches('/').count(), path.len()))?;
        files.get_key_value(path)
    })?;
    Some((found.0.as_str(), found.1))
}

/// Whether a path ends in these folders and name, capitals or not.
fn ends(path: &str, name: &str) -> bool {
    let Some(start) = path.len().checked_sub(name.len()) else { return false };
    let (Some(before), Some(end)) = (path.get(..start), path.get(start..)) else { return false };
    (before.is_empty() || before.ends_with('/'))
        && (end.eq_ignore_ascii_case(name) || end.to_lowercase() == name.to_lowercase())
}

/// A path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A path as it stands in a link.
pub fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A link as the path that it means.
pub fn decoded(link: &str) -> String {
    let mut out = Vec::with_capacity(link.len());
    let mut bytes = link.as_bytes();
    while let [first, rest @ ..] = bytes {
        let coded = match rest {
            [a, b, ..] if *first == b'%' => char::from(*a).to_digit(16).zip(char::from(*b).to_digit(16)),
            _ => None,
        };
        match coded {
            Some((a, b)) => {
                out.extend(u8::try_from(a * 16 + b));
                bytes = &rest[2..];
            }
            None => {
                out.push(*first);
                bytes = rest;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| link.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_beside_in_the_volume_and_by_name() {
        let names = ["A.md", "sub/A.md", "sub/deep/B c.md", "pictures/Dot.png"];
        let files: BTreeMap<String, ()> = names.into_iter().map(|name| (name.to_owned(), ())).collect();
        let find = |own: &str, target: &str| find(&files, own, target).map(|(path, ())| path);
        assert_eq!(find("sub/x.md", "A"), Some("sub/A.md"));
        assert_eq!(find("x.md", "A"), Some("A.md"));
        assert_eq!(find("sub/x.md", "../A.md"), Some("A.md"));
        assert_eq!(find("x.md", "b%20C"), Some("sub/deep/B c.md"));
        assert_eq!(find("x.md", "deep/B c"), Some("sub/deep/B c.md"));
        assert_eq!(find("x.md", "dot.png"), Some("pictures/Dot.png"));
        assert_eq!((find("x.md", "ot.png"), find("x.md", ""), find("x.md", "../..")), (None, None, None));
    }

    #[test]
    fn links_are_coded_and_read_back() {
        assert_eq!(encoded("a b/é.md"), "a%20b/%C3%A9.md");
        assert_eq!(decoded(&encoded("a b/é%.md")), "a b/é%.md");
        assert_eq!(decoded("100%"), "100%");
    }
}
