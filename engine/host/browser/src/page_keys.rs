//! Keys that can be pressed, as the DevTools protocol names them.

/// A key: its name, its code on the keyboard, its number, and the text that it gives.
pub(crate) struct PageKey {
    pub(crate) key: &'static str,
    pub(crate) code: &'static str,
    pub(crate) number: u32,
    pub(crate) text: &'static str,
}

/// The keys. Letters and digits are typed instead. The numbers are those of `KeyboardEvent.keyCode` (UI Events, W3C).
const PAGE_KEYS: [PageKey; 14] = [
    PageKey { key: "Enter", code: "Enter", number: 13, text: "\r" },
    PageKey { key: "Tab", code: "Tab", number: 9, text: "" },
    PageKey { key: "Escape", code: "Escape", number: 27, text: "" },
    PageKey { key: " ", code: "Space", number: 32, text: " " },
    PageKey { key: "Backspace", code: "Backspace", number: 8, text: "" },
    PageKey { key: "Delete", code: "Delete", number: 46, text: "" },
    PageKey { key: "ArrowLeft", code: "ArrowLeft", number: 37, text: "" },
    PageKey { key: "ArrowUp", code: "ArrowUp", number: 38, text: "" },
    PageKey { key: "ArrowRight", code: "ArrowRight", number: 39, text: "" },
    PageKey { key: "ArrowDown", code: "ArrowDown", number: 40, text: "" },
    PageKey { key: "Home", code: "Home", number: 36, text: "" },
    PageKey { key: "End", code: "End", number: 35, text: "" },
    PageKey { key: "PageUp", code: "PageUp", number: 33, text: "" },
    PageKey { key: "PageDown", code: "PageDown", number: 34, text: "" },
];

/// Returns the key with this name.
pub(crate) fn find_key(name: &str) -> Option<&'static PageKey> {
    PAGE_KEYS.iter().find(|key| key.code.eq_ignore_ascii_case(name) || (key.key == name))
}

/// Returns the names of all keys.
pub(crate) fn key_names() -> String {
    PAGE_KEYS.iter().map(|key| key.code).collect::<Vec<_>>().join(", ")
}
