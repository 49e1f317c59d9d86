//! How many examples of the CommonMark and GitHub Flavored Markdown specifications are read as specified. The examples
//! come from the specifications (`shared/data`). The numbers below may rise and must not fall.

use pulldown_cmark::{CowStr, Event};
use std::collections::BTreeMap;
use text::markdown::dialect::{self, DialectToken};

/// Examples that pass, of 652 (CommonMark) and 673 (GFM). docs/markdown.md names what is missing.
const COMMONMARK: usize = 645;
const GFM: usize = 663;

/// Renders a text with our Markdown reader as HTML in the specifications' form.
fn html(text: &str) -> String {
    let plain = |text: String| Event::Text(CowStr::from(text));
    let events = dialect::tokenize(text, dialect::dialect_options()).into_iter().map(|(token, range)| match token {
        DialectToken::Mark(event) => event,
        DialectToken::Label(_) | DialectToken::Anchor(_) | DialectToken::Highlight(_) | DialectToken::State(_) => {
            plain(text[range].to_owned())
        }
        DialectToken::Callout(_) => Event::Start(pulldown_cmark::Tag::BlockQuote(None)),
    });
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    out
}

/// Normalizes HTML: sorts attributes, keeps white space only where it counts, and spells equal things the same way.
fn normal(html: &str) -> String {
    let mut out = String::new();
    let mut pre = 0_usize;
    let mut rest = html;
    while !rest.is_empty() {
        let Some(inner) =
            rest.strip_prefix('<').filter(|inner| inner.starts_with(|c: char| c == '/' || c.is_alphabetic()))
        else {
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let end = rest[first..].find('<').map_or(rest.len(), |end| end + first);
            let words = rest[..end].replace("&quot;", "\"").replace("&#39;", "'");
            if pre > 0 {
                out.push_str(&words);
            } else {
                let joined = words.split_whitespace().collect::<Vec<_>>().join(" ");
                if words.starts_with(char::is_whitespace) && !out.ends_with([' ', '>']) {
                    out.push(' ');
                }
                out.push_str(&joined);
                if words.ends_with(char::is_whitespace) && !joined.is_empty() {
                    out.push(' ');
                }
            }
            rest = &rest[end..];
            continue;
        };
        let end = inner.find('>').unwrap_or(inner.len());
        let tag = inner[..end].trim_end_matches('/').trim();
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        match name {
            "pre" => pre += 1,
            "/pre" => pre = pre.saturating_sub(1),
            _ => {}
        }
        let mut attributes: Vec<String> = attributes
            .split("\" ")
            .map(|one| one.trim().trim_end_matches('"').replace("=\"", "="))
            .map(|one| one.replace("style=text-align: ", "align=").replace("&#39;", "'"))
            .filter(|one| !one.is_empty())
            .collect();
        attributes.sort();
        if pre == 0 {
            out.truncate(out.trim_end().len());
        }
        out.push_str(&format!("<{} {}>", name.to_lowercase(), attributes.join(" ")));
        rest = inner.get(end + 1..).unwrap_or("");
    }
    out.replace("<tbody ></tbody >", "").trim().to_owned()
}

struct Example {
    text: String,
    html: String,
    section: String,
    number: u64,
}

fn check(what: &str, examples: &[Example]) -> usize {
    let mut failed: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for example in examples {
        let made = html(&example.text);
        if normal(&made) != normal(&example.html) {
            failed.entry(&example.section).or_default().push(example.number);
            if std::env::var_os("TRACEBOOK_EXAMPLES").is_some() {
                println!("--- {} {}\n{}\n{}\n{made}", example.section, example.number, example.text, example.html);
            }
        }
    }
    let passed = examples.len() - failed.values().map(Vec::len).sum::<usize>();
    println!("{what}: {passed} of {} pass; not: {failed:?}", examples.len());
    passed
}

#[test]
fn commonmark_is_read_as_specified() {
    let Some(folder) = crate::program::shared("commonmark") else { return };
    let json = std::fs::read(folder.join("spec-0.31.2.json")).expect("the examples");
    let json: Vec<serde_json::Value> = serde_json::from_slice(&json).expect("examples");
    let text = |example: &serde_json::Value, key: &str| example[key].as_str().expect("text").replace('→', "\t");
    let examples: Vec<Example> = json
        .iter()
        .map(|example| Example {
            text: text(example, "markdown"),
            html: text(example, "html"),
            section: text(example, "section"),
            number: example["example"].as_u64().or(example["number"].as_u64()).unwrap_or(0),
        })
        .collect();
    assert_eq!(examples.len(), 652);
    assert_eq!(check("CommonMark 0.31.2", &examples), COMMONMARK, "more is good: write the number down");
}

#[test]
fn github_markdown_is_read_as_specified() {
    let Some(folder) = crate::program::shared("gfm") else { return };
    let spec = std::fs::read_to_string(folder.join("spec.txt")).expect("the specification");
    const FENCE: &str = "````````````````````````````````";
    let (mut examples, mut section) = (Vec::new(), String::new());
    let mut lines = spec.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix('#') {
            heading.trim_start_matches('#').trim().clone_into(&mut section);
        }
        if !line.starts_with(FENCE) || !line.contains("example") {
            continue;
        }
        let mut part = |end: &str| {
            let lines = lines.by_ref().take_while(|line| *line != end);
            lines.map(|line| line.replace('→', "\t") + "\n").collect::<String>()
        };
        let (text, html) = (part("."), part(FENCE));
        let number = examples.len() as u64 + 1;
        examples.push(Example { text, html, section: section.clone(), number });
    }
    assert_eq!(examples.len(), 673);
    assert_eq!(check("GitHub's Markdown 0.29", &examples), GFM, "more is good: write the number down");
}
