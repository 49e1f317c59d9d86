//! Web pages that MCP servers ask the user to open (elicitation with an address). The address is checked when a server
//! asks, and again before the user's decision counts: documents of other devices hold such requests, too.

use crate::web_address::{WebAddress, WebAddressError};

/// Maximum length of the address of a page in bytes.
pub const MAX_PAGE_ADDRESS_BYTES: usize = 2_000;

/// Why a page isn't opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageAddressError {
    /// It isn't an address of a web page.
    #[error(transparent)]
    Address(#[from] WebAddressError),
    /// Others could read or replace the page on its way.
    #[error("it needs https, or http on this machine")]
    Plain,
    /// Nobody could read the address before the page is opened.
    #[error("its address has more than {MAX_PAGE_ADDRESS_BYTES} bytes")]
    TooLong,
}

/// Reads the address of a page that a server wants the user to open. International names become ASCII, so that no
/// letter passes for another one.
///
/// # Errors
/// Returns an error if it's too long, contains a name or a password, or would be read over an open network.
pub fn read_page_address(text: &str) -> Result<WebAddress, PageAddressError> {
    let address = Some(text).filter(|text| text.len() <= MAX_PAGE_ADDRESS_BYTES).map(WebAddress::read);
    let address = address.ok_or(PageAddressError::TooLong)??;
    let is_local = address.ip.is_some_and(|ip| ip.is_loopback());
    if address.site.scheme != "https" && !is_local {
        return Err(PageAddressError::Plain);
    }
    // The parser escapes letters, which makes the address longer.
    if address.text.len() <= MAX_PAGE_ADDRESS_BYTES { Ok(address) } else { Err(PageAddressError::TooLong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_over_https_or_on_this_machine() {
        let read = |text: &str| read_page_address(text).map(|address| address.text);
        assert_eq!(read("https://accounts.example.com/a?b=c").as_deref(), Ok("https://accounts.example.com/a?b=c"));
        for local in ["http://127.0.0.1:8080/x", "http://localhost/", "http://[::1]:9/", "http://2130706433/"] {
            assert!(read(local).is_ok(), "{local}");
        }
        assert_eq!(read("https://b\u{430}nk.example/").as_deref(), Ok("https://xn--bnk-6cd.example/"));
        for plain in ["http://accounts.example.com/", "http://192.168.0.1/", "http://localhost.example.com/"] {
            assert_eq!(read(plain), Err(PageAddressError::Plain), "{plain}");
        }
        for wrong in ["javascript:alert(1)", "file:///etc/passwd", "ftp://example.com/", "example.com", ""] {
            assert!(matches!(read(wrong), Err(PageAddressError::Address(_))), "{wrong}");
        }
        assert_eq!(
            read("https://bank.example@evil.example/"),
            Err(PageAddressError::Address(WebAddressError::Credentials))
        );
        let letters = |count: usize| format!("https://example.com/{}", "\u{e4}".repeat(count));
        assert_eq!(read(&letters(MAX_PAGE_ADDRESS_BYTES)), Err(PageAddressError::TooLong));
        assert_eq!(read(&letters(500)), Err(PageAddressError::TooLong), "each letter is six when it's escaped");
        assert!(read(&letters(300)).is_ok());
    }
}
