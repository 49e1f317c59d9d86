//! Notes as pages for a browser and as PDF: what `export` writes is self-contained and runs no scripts.

use crate::program::{House, bytes};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

const NOTE: &str = "# Rain & more

See [[Other#Two|the other]], [data](data.csv) and ==this== #weather/rain.[^1]

> [!warning] Mind
> it

<details>
<summary>More</summary>

*Folded.*

</details>

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
        "<details>\n<summary>More</summary>\n<p><em>Folded.</em></p>\n</details>\n",
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
    house.run(&["export", "Rain", "out/rain.html"]).refused(2, "already exists");
    house.run(&["export", "Rain", "out", "--html"]).good();
    assert!(house.read("out/Rain.html").starts_with(b"<!doctype html>"));
    house.run(&["export", "Rain", "out/rain.txt"]).good();
    assert_eq!(house.read("out/rain.txt"), NOTE.as_bytes(), "without the ending it is the note, byte for byte");
    house.write("notes/Nul.md", b"a\0b <b>c\0d</b> `e\0f`\n\n```\ng\0h\n```\n");
    house.run(&["export", "Nul", "out/nul.html"]).good();
    let page = house.read("out/nul.html");
    assert!(!page.contains(&0) && String::from_utf8_lossy(&page).contains("a\u{fffd}b"));
}

#[test]
fn a_folder_that_is_copied_can_be_stopped() {
    let house = House::with(&[("a.md", "a"), ("b.md", "b"), ("c.md", "c")]);
    let mut copied = host::fs::copy::CopyReport::default();
    let (from, to) = (house.path("notes"), house.path("out"));
    std::fs::create_dir(&to).expect("made");
    let folder = |path| host::fs::confined_dir::ConfinedFolder::open_chosen(path).expect("opened");
    let stopped = host::fs::copy::copy_tree(&folder(&from), &folder(&to), &mut copied, &mut |done| done < 2);
    assert_eq!(stopped.expect_err("stopped").to_string(), host::fs::copy::COPY_STOPPED);
    assert_eq!(copied.files, ["a.md", "b.md"]);
    assert!(to.join("b.md").exists() && !to.join("c.md").exists());
}

#[test]
fn collections_in_notes_become_tables() {
    let base = "filters: file.hasTag(\"book\")
views:
  - type: table
    name: All
    order: [file.name, rating]
  - type: cards
    name: Mine
    filters: owner == this
    groupBy: rating
    order: [file.name]
";
    let note =
        "# Me\n\n![[Shelf.base#Mine]]\n\nand\n\n```base\nviews: [\n```\n\n![[Shelf.base#No]]\n\n![[Else.base]]\n";
    let book = |more: &str| format!("---\ntags: book\n{more}---\n");
    let (one, two) = (book("rating: 7\nowner: \"[[Me]]\"\n"), book("rating: 10\n"));
    let house = House::with(&[("Me.md", note), ("A|b *c*.md", &one), ("Two.md", &two), ("Shelf.base", base)]);
    house.write("notes/All.md", b"![[Shelf.base]]\n");
    house.run(&["open", "notes"]).good();
    house.run(&["export", "Me", "me.html"]).good();
    let page = String::from_utf8(house.read("me.html")).expect("text");
    for part in [
        "<p><strong>7</strong> (1)</p>\n<div class=\"table\"><table>\n<thead>\n<tr><th>name</th></tr>",
        "<tr><td><span class=\"link\">A b *c*</span></td></tr>",
        "<p>and</p>\n<p><em>This collection is not shown: the collection is not YAML: ",
        "<em>This collection is not shown: it has no view “No”.</em>",
        "<em>This collection is not shown: there is no Else.base.</em>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    house.run(&["export", "notes", "site", "--html"]).good();
    let page = String::from_utf8(house.read("site/All.html")).expect("text");
    let row = "<tr><td><a href=\"Two.html\">Two</a></td><td class=\"right\">10</td></tr>";
    assert!(page.contains(row) && !page.contains("<td></td></tr>"), "{page}");
    house.run(&["export", "All", "all.pdf"]).good();
    assert!(house.read("all.pdf").starts_with(b"%PDF"));
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
    house.run(&["export", "notes", "site", "--html"]).refused(2, "already exists");
}

#[test]
fn links_lead_below_the_heading_that_they_name() {
    let other = "# Cats\n\n## Food\n\nfish\n\n# Dogs\n\n## Food\n\nbones ^B1\n";
    let from = "[[Other#Dogs#Food|food]]\n\n![[Other#Dogs#Food]]\n\n![[Other#^b1]]\n";
    let house = House::with(&[("From.md", from), ("Other.md", other)]);
    house.run(&["export", "notes", "site", "--html"]).good();
    let page = String::from_utf8(house.read("site/From.html")).expect("text");
    assert!(page.contains("<a href=\"Other.html#food\">food</a>"), "{page}");
    assert_eq!((page.matches("bones").count(), page.contains("fish")), (2, false), "{page}");
}

#[test]
fn links_in_tables_have_texts_and_pictures_sizes() {
    let table = "| a | b |\n|---|---|\n| [[Other\\|the other]] | ![[dot.png\\|20]] |\n\n\
                 > | a |\n> |---|\n> | [[Other\\|it]] |\n";
    let house = House::with(&[("Table.md", table), ("Other.md", "# One\n")]);
    house.write("notes/dot.png", DOT);
    house.run(&["open", "notes"]).good();
    house.run(&["export", "notes", "site", "--html"]).good();
    let page = String::from_utf8(house.read("site/Table.html")).expect("text");
    for shown in [
        "<td><a href=\"Other.html\">the other</a></td>",
        "<a href=\"Other.html\">it</a>",
        "<td><img alt=\"\" width=\"20\" ",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

#[test]
fn colors_of_html_are_left_out_of_the_page_and_their_text_is_not() {
    let note = "<span style=\"color: red\">red</span> <mark style=\"background: #fff\" onclick=\"x()\">lit</mark>\n\n\
                <div align=\"center\">\nmiddle <img src=x onerror=y>\n</div>\n";
    let house = House::with(&[("Colors.md", note)]);
    house.run(&["export", "Colors", "colors.html"]).good();
    let page = String::from_utf8(house.read("colors.html")).expect("text");
    assert!(page.contains("<p>red <mark>lit</mark></p>") && page.contains("middle &lt;img "), "{page}");
    assert!(!page.contains("onclick") && !page.contains("align=") && !page.contains("<span style"), "{page}");
}

#[test]
fn a_page_is_in_the_direction_of_its_text() {
    let house =
        House::with(&[("En.md", "# Rain\n"), ("Ar.md", "# مطر\n\nالمطر على السطح: [[En]]\n"), ("Zh.md", "雨\n")]);
    house.run(&["export", "notes", "site", "--html"]).good();
    let head = |page: &str| {
        let page = String::from_utf8(house.read(&format!("site/{page}.html"))).expect("text");
        page.lines().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!((head("En"), head("Ar"), head("Zh")), {
        ("<html lang=\"en\">".to_owned(), "<html dir=\"rtl\">".to_owned(), "<html>".to_owned())
    });
}

const DRAWN: &str = "# Drawn

Rain on the roof, \u{fb01}ne $E = mc^2$ and [the web](https://example.org/a).

```mermaid
flowchart LR
  Cloud[A cloud] --> Rain
```

```python
import matplotlib.pyplot as plt
plt.plot([1, 2, 4])
plt.title('Growth')
plt.show()
```

## Second part

| Month | Rain |
|-------|-----:|
| May   | 42   |

- [x] done with [[Other]]
";

fn drawn() -> House {
    let house = House::with(&[("Drawn.md", DRAWN), ("Other.md", "# Other\n\nBack to [[Drawn#Second part]].\n")]);
    house.run(&["open", "notes"]).good();
    house.run(&["run", "Drawn"]).good();
    house
}

#[test]
fn diagrams_and_figures_stand_in_the_page() {
    let house = drawn();
    house.run(&["export", "Drawn", "drawn.html"]).good();
    let page = String::from_utf8(house.read("drawn.html")).expect("text");
    assert_eq!(page.matches("<figure class=\"drawn\"").count(), 2, "{page}");
    assert!(page.contains("A cloud") && page.contains("Growth"), "{page}");
    assert!(page.contains("fill=\"var(--ink)\""), "the diagram follows the theme: {page}");
    assert!(!page.contains("<script") && !page.contains("language=\"mermaid\""));
}

/// The words of a PDF, or `None` if `pdftotext` isn't installed.
fn words(house: &House, path: &str) -> Option<String> {
    let done = std::process::Command::new("pdftotext").arg("-layout").arg(house.path(path)).arg("-").output().ok()?;
    Some(String::from_utf8_lossy(&done.stdout).split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_note_becomes_a_document() {
    let house = drawn();
    assert_eq!(house.json(&["export", "Drawn", "drawn.pdf"]), json!({"exported": ["Drawn.md"], "skipped": []}));
    let bytes = house.read("drawn.pdf");
    assert!(bytes.starts_with(b"%PDF-1.7") && bytes.ends_with(b"%%EOF"));
    let holds = |part: &str| bytes.windows(part.len()).any(|window| window == part.as_bytes());
    for part in
        ["/StructTreeRoot", "/Outlines", "/FontFile2", "(https://example.org/a)", "/MediaBox[0 0 595.28 841.89]"]
    {
        assert!(holds(part), "{part}");
    }
    house.run(&["export", "Drawn", "again", "--to", "pdf", "--paper", "a4"]).good();
    assert!(house.read("again") == bytes, "the same note makes the same bytes");
    house.run(&["export", "Drawn", "drawn.pdf"]).refused(2, "already exists");
    house.run(&["export", "Drawn", "x.pdf", "--paper", "a5"]).refused(2, "--paper is a4 or letter");
    house.run(&["export", "Drawn", "x", "--to", "docx"]).refused(2, "no export to “docx”");
    if let Some(words) = words(&house, "drawn.pdf") {
        let all = ["Drawn", "Rain on the roof", "A cloud", "Growth", "plt.plot([1, 2, 4])", "Second part", "May 42"];
        for part in all {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}

#[test]
fn a_volume_becomes_one_document_whose_links_lead_inside_it() {
    let house = drawn();
    let done = house.json(&["export", "notes", "all.pdf", "--paper", "letter"]);
    assert_eq!(done, json!({"exported": ["Drawn.md", "Other.md"], "skipped": []}));
    let bytes = house.read("all.pdf");
    let count = |part: &str| bytes.windows(part.len()).filter(|window| *window == part.as_bytes()).count();
    assert_eq!(count("/MediaBox[0 0 612 792]"), 2, "each note begins on a page of its own");
    // One link to the web, and one in each direction between the notes.
    assert_eq!((count("/Subtype/Link"), count("/S/URI")), (3, 1));
}

#[test]
fn long_outputs_are_shown_whole_or_end_at_a_line() {
    let note = "```python\nfor i in range(20_000):\n    print('line', i)\n```\n";
    let long = "```python\nfor i in range(90_000):\n    print('line number', i)\n```\n";
    let house = House::with(&[("a.md", note), ("long.md", long)]);
    let ran = house.run(&["run", "a"]).good().text();
    assert!(ran.ends_with("\nline 19999\n"), "{} bytes", ran.len());
    assert_eq!(house.run(&["outputs", "a"]).good().text(), format!("cell 1: ok\n{ran}"));
    assert_eq!(house.json(&["outputs", "a"])["outputs"][0]["text"], ran);
    house.run(&["export", "a", "a.html"]).good();
    let page = String::from_utf8(house.read("a.html")).expect("text");
    assert!(page.contains("line 6663\nline 6664\n") && page.contains("line 19999"), "{} bytes", page.len());
    // A page has up to 1 MB of an output.
    house.run(&["run", "long"]).good();
    house.run(&["export", "long", "long.html"]).good();
    let page = String::from_utf8(house.read("long.html")).expect("text");
    let (before, _) = page.split_once(" more lines").expect("the page says what is left out");
    let (shown, left) = before.rsplit_once("\n\u{2026} ").expect("a line of its own");
    let last: usize = shown.rsplit_once("line number ").expect("a line").1.parse().expect("a whole number");
    assert_eq!(last + 1 + left.parse::<usize>().expect("a number"), 90_000);
}

/// The values of an attribute in the tags of a page, of tags with this name or of all.
fn attributes(page: &str, tag: &str, name: &str) -> Vec<String> {
    let tags = page.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag);
    let wanted = tags.filter(|own| tag.is_empty() || own.split_whitespace().next() == Some(tag));
    let begins = format!(" {name}=\"");
    let values = wanted.filter_map(|own| own.split_once(begins.as_str())?.1.split_once('"'));
    values.map(|(value, _)| value.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")).collect()
}

#[test]
fn the_site_of_the_guide_has_no_dead_links() {
    let house = House::new();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout").join("docs/guide");
    for (name, bytes) in bytes(&guide) {
        house.write(&format!("guide/{name}"), &bytes);
    }
    house.run(&["open", "guide"]).good();
    house.run(&["export", "guide", "site", "--html"]).good();
    let files = bytes(&house.path("site"));
    let pages: BTreeMap<&str, &str> = files
        .iter()
        .filter(|(path, _)| path.ends_with(".html"))
        .map(|(path, bytes)| (path.as_str(), std::str::from_utf8(bytes).expect("text")))
        .collect();
    let anchors: BTreeMap<&str, Vec<String>> =
        pages.iter().map(|(path, page)| (*path, attributes(page, "", "id"))).collect();
    let (mut followed, mut dead) = (0, Vec::new());
    for (path, page) in &pages {
        // A link that leads nowhere is written as plain text.
        let unresolved = page.matches("<span class=\"link\">").count();
        dead.extend((unresolved > 0).then(|| format!("{path}: {unresolved} links to notes that don't exist")));
        for link in attributes(page, "a", "href") {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (target, part) = link.split_once('#').map_or((&*link, None), |(target, part)| (target, Some(part)));
            let target = match &*text::outline::percent_decode(target) {
                "" => Some((*path).to_owned()),
                target => text::links::resolve_relative(path, target),
            };
            let found = target.as_ref().filter(|target| files.contains_key(*target));
            let is_there = found.is_some_and(|target| {
                let ids = anchors.get(target.as_str());
                part.is_none_or(|part| ids.is_some_and(|ids| ids.iter().any(|id| id == part)))
            });
            dead.extend((!is_there).then(|| format!("{path}: {link}")));
        }
    }
    assert!(pages.len() > 30 && followed > 150, "{} pages, {followed} links", pages.len());
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}
