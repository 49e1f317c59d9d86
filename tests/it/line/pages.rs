//! Notes as pages for a browser: what `export` writes needs nothing beside it, and nothing in it runs.

use crate::program::House;
use serde_json::json;

const NOTE: &str = "# Rain & more

See [[Other#Two|the other]], [data](data.csv) and ==this== #weather/rain.[^1]

> [!warning] Mind
> it

```python
print('<b>'); 6 * 7
```

```rust
fn main() {}
```

$$\\frac{a}{b}$$

![[dot.png]] <script>alert(1)</script>

[^1]: A footnote.
";

const DOT: &[u8] = &[0x89, b'P', b'N', b'G', 1, 2, 3];

fn house() -> House {
    let house =
        House::with(&[("Rain.md", NOTE), ("sub/Other.md", "# One\n\n## Two\n\n[[Rain]]\n"), ("data.csv", "1\n")]);
    house.write("notes/pictures/dot.png", DOT);
    house.run(&["open", "notes"]).good();
    house
}

#[test]
fn a_note_becomes_a_page_by_the_ending_of_its_name() {
    let house = house();
    house.run(&["run", "Rain"]).good();
    assert_eq!(house.json(&["export", "Rain", "out/rain.html"]), json!({"exported": ["Rain.md"], "skipped": []}));
    let page = String::from_utf8(house.read("out/rain.html")).expect("text");
    for part in [
        "<title>Rain</title>",
        "<h1 id=\"rain--more\">Rain &amp; more</h1>",
        "<span class=\"link\">the other</span>",
        "<mark>this</mark>",
        "<span class=\"tag\">#weather/rain</span>",
        "<aside class=\"callout warning\">",
        "<pre class=\"out\">&lt;b&gt;</pre>",
        "<pre class=\"out\">42</pre>",
        "<span class=\"k\">fn</span>",
        "<mfrac>",
        "src=\"data:image/png;base64,iVBORwECAw==\"",
        "<li id=\"note-1\"><p>A footnote.",
        "prefers-color-scheme: dark",
        "default-src 'none'",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("src=\"h"), "{page}");
    house.run(&["export", "Rain", "out/rain.html"]).refused(2, "nothing is overwritten");
    house.run(&["export", "Rain", "out", "--html"]).good();
    assert!(house.read("out/Rain.html").starts_with(b"<!doctype html>"));
    house.run(&["export", "Rain", "out/rain.txt"]).good();
    assert_eq!(house.read("out/rain.txt"), NOTE.as_bytes(), "without the ending it is the note, byte for byte");
}

#[test]
fn a_volume_becomes_pages_that_link_to_each_other() {
    let house = house();
    let done = house.json(&["export", "notes", "site", "--html"]);
    assert_eq!(done, json!({"exported": ["Rain.md", "sub/Other.md", "data.csv"], "skipped": []}));
    let page = |path: &str| String::from_utf8(house.read(path)).expect("text");
    assert!(page("site/Rain.html").contains("<a href=\"sub/Other.html#two\">the other</a>"));
    assert!(page("site/Rain.html").contains("<a href=\"data.csv\">data</a>"));
    assert!(page("site/sub/Other.html").contains("<a href=\"../Rain.html\">Rain</a>"));
    assert!(page("site/index.html").contains("<a href=\"sub/Other.html\">sub/Other</a>"));
    assert_eq!(house.read("site/data.csv"), b"1\n");
    house.run(&["export", "notes", "site", "--html"]).refused(2, "exists already");
}
