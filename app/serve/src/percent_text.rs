//! Percent-encoding in the addresses of notes and files, read strictly: what isn't valid is no address.

/// Returns a text with all but unreserved characters encoded; slashes stay if they separate parts.
pub(crate) fn percent_encoded(text: &str, keep_slashes: bool) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (keep_slashes && byte == b'/');
    let encode = |byte: u8| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// Returns the text that is encoded; `None` if an escape is cut or wrong, or the bytes aren't UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'%' => {
                let digits = rest.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
                bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = rest.get(2..)?;
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_escapes_are_decoded() {
        let name = "Ideas/Sail é+%.md";
        assert_eq!(percent_decoded(&percent_encoded(name, true)).as_deref(), Some(name));
        for wrong in ["%", "%4", "%4g", "%+f", "%-1", "%FF", "%é"] {
            assert_eq!(percent_decoded(wrong), None, "{wrong}");
        }
    }
}
