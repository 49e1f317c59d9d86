//! `screenshots`: pictures of the window, made without a display.

use crate::program::House;

/// The width, height and file size of a PNG.
fn png(bytes: &[u8]) -> (u32, u32, usize) {
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "it is no PNG");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20), bytes.len())
}

#[test]
fn a_scene_is_pictured_in_both_themes() {
    let house = House::with(&[("a.md", "a\n")]);
    let done = house.run(&["screenshots", "pictures", "--scale", "1", "--scene", "note"]).good();
    assert_eq!(done.text().lines().count(), 2, "{}", done.text());
    let (light, dark) = (house.read("pictures/light-note.png"), house.read("pictures/dark-note.png"));
    for picture in [&light, &dark] {
        let (width, height, bytes) = png(picture);
        assert_eq!((width, height), (1_280, 800));
        assert!(bytes > 40_000, "a page of text needs more than {bytes} bytes");
    }
    assert_ne!(light, dark);
    let refused = house.run(&["screenshots", "pictures", "--scale", "1", "--scene", "note"]).code(1);
    assert!(refused.err.contains("already exists"), "{}", refused.err);
    let unknown = house.run(&["screenshots", "pictures", "--scene", "moon"]).code(2);
    assert!(unknown.err.contains("there is no scene “moon”; there are note,"), "{}", unknown.err);
}
