//! Texts that aren't in UTF-8: messages of commits, and files with Git's attribute `working-tree-encoding`.

use encoding_rs::{Encoding, SHIFT_JIS, UTF_16BE, UTF_16LE};

/// Decodes a text by the name that Git has for its encoding; `None` if the name isn't known, or the text isn't in it.
pub(crate) fn decode(bytes: &[u8], name: &str) -> Option<String> {
    let name = name.trim().to_ascii_lowercase();
    match name.as_str() {
        // Its own name means another encoding in web pages.
        "iso-8859-1" | "iso8859-1" | "latin1" | "latin-1" => Some(bytes.iter().copied().map(char::from).collect()),
        "cp932" => decode_as(SHIFT_JIS, bytes),
        "utf-16" | "utf16" => match bytes {
            [0xff, 0xfe, text @ ..] => decode_as(UTF_16LE, text),
            [0xfe, 0xff, text @ ..] => decode_as(UTF_16BE, text),
            _ => None, // tidy: open because Git wants a mark of the byte order
        },
        "utf-16le-bom" => decode_as(UTF_16LE, bytes.strip_prefix(b"\xff\xfe")?),
        name => decode_as(Encoding::for_label(name.as_bytes())?, bytes),
    }
}

fn decode_as(encoding: &'static Encoding, bytes: &[u8]) -> Option<String> {
    Some(encoding.decode_without_bom_handling_and_without_replacement(bytes)?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_by_the_names_that_git_has() {
        let known: [(&[u8], &str, &str); 9] = [
            (b"\x1b$B$3$s\x1b(B", "ISO-2022-JP", "こん"),
            (b"\xd0\xd2\xc9", "KOI8-R", "при"),
            (b"\x82\xb1", "CP932", "こ"),
            (b"\xc4rger\x80", "ISO-8859-1", "Ärger\u{80}"),
            (b"\xc4rger\x80", "windows-1252", "Ärger€"),
            (b"\xff\xfea\0\n\0", "UTF-16", "a\n"),
            (b"\xfe\xff\0a", "utf-16", "a"),
            (b"\xff\xfea\0", "UTF-16LE-BOM", "a"),
            (b"a\0", "UTF-16LE", "a"),
        ];
        for (bytes, name, text) in known {
            assert_eq!(decode(bytes, name).as_deref(), Some(text), "{name}");
        }
        let wrong: [(&[u8], &str); 4] =
            [(b"a", "x-none"), (b"a\xff", "EUC-JP"), (b"a\0", "UTF-16"), (b"a", "UTF-16LE")];
        for (bytes, name) in wrong {
            assert_eq!(decode(bytes, name), None, "{name}");
        }
    }
}
