//! Reads the guide and all documents' links for tidy: links have targets, and pages have a consistent form.

use super::source::root;
use super::{documents, read, report};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

pub(super) const GUIDE: &str = "docs/guide/";
const MAX_PAGE_LINES: usize = 200;
/// Pages that are lists with a form of their own.
const LISTS: &[&str] = &["index.md", "keys.md", "subcommands.md", "configuration.md", "faq.md", "troubleshooting.md"];

/// The parts of a document that the checks need.
#[derive(Default)]
pub(super) struct DocumentParts {
    /// The targets of links and pictures, each with its line.
    links: Vec<(usize, String)>,
    /// The anchors of headings, as GitHub and our export make them.
    anchors: BTreeSet<String>,
    /// Inline code and the lines of shell blocks, each with its line number.
    pub(super) code: Vec<(usize, String)>,
}

impl DocumentParts {
    pub(super) fn of(text: &str) -> DocumentParts {
        let mut parts = DocumentParts::default();
        let (mut heading, mut shell): (Option<String>, bool) = (None, false);
        let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_FOOTNOTES;
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    parts.links.push((line(range.start), dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    let numbered = (1..).map(|number| format!("{anchor}-{number}"));
                    let free = std::iter::once(anchor.clone()).chain(numbered);
                    parts.anchors.extend(free.into_iter().find(|anchor| !parts.anchors.contains(anchor)));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    shell = matches!(kind, CodeBlockKind::Fenced(language) if &*language == "sh");
                }
                Event::End(TagEnd::CodeBlock) => shell = false,
                Event::Code(code) => {
                    heading.iter_mut().for_each(|heading| heading.push_str(&code));
                    parts.code.push((line(range.start), code.into_string()));
                }
                Event::Text(words) => {
                    heading.iter_mut().for_each(|heading| heading.push_str(&words));
                    if shell {
                        let lines = words.lines().zip(line(range.start)..);
                        parts.code.extend(lines.map(|(code, number)| (number, code.to_owned())));
                    }
                }
                _ => {}
            }
        }
        parts
    }
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().chars().flat_map(char::to_lowercase);
    let kept = letters.filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The texts of the guide's pages, by file name.
pub(super) fn pages() -> BTreeMap<String, String> {
    let entries = fs::read_dir(root().join(GUIDE)).expect("the guide").flatten();
    let names = entries.map(|entry| entry.file_name().into_string().expect("a plain name"));
    names.map(|name| (name.clone(), read(&format!("{GUIDE}{name}")))).collect()
}

#[test]
fn links_of_documents_lead_somewhere() {
    let mut documents = documents::all();
    documents.extend(["CHANGELOG.md", "BENCHMARKS.md", "assets/README.md"].map(str::to_owned));
    let read_parts = |path: &String| (path.clone(), DocumentParts::of(&read(path)));
    let parts: BTreeMap<String, DocumentParts> = documents.iter().map(read_parts).collect();
    let mut found = Vec::new();
    for (path, document) in &parts {
        for (line, link) in &document.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (target, part) = link.split_once('#').map_or((&**link, None), |(target, part)| (target, Some(part)));
            let target = text::outline::percent_decode(target);
            let target = match &*target {
                "" => Some(path.clone()),
                target => text::links::resolve_relative(path, target),
            };
            let Some(target) = target.filter(|target| root().join(target).exists()) else {
                found.push(format!("{path}:{line}: {link}: no such file"));
                continue;
            };
            if path.starts_with(GUIDE) && !target.starts_with(GUIDE) {
                found.push(format!(
                    "{path}:{line}: {link}: the guide is read without the source: name the file instead"
                ));
            }
            let anchors = parts.get(&target).map(|parts| &parts.anchors);
            if part.is_some_and(|part| anchors.is_none_or(|anchors| !anchors.contains(part))) {
                found.push(format!("{path}:{line}: {link}: no such heading"));
            }
        }
    }
    report("Links of documents lead to files and headings that are there.", &found);
}

#[test]
fn pages_of_the_guide_have_one_form() {
    let pages = pages();
    let listed: BTreeSet<String> =
        DocumentParts::of(&pages["index.md"]).links.into_iter().map(|(_, link)| link).collect();
    let mut found = Vec::new();
    for (name, page) in &pages {
        if name != "index.md" && !listed.contains(name) {
            found.push(format!("{name}: not listed in index.md"));
        }
        let lines = page.lines().count();
        if !LISTS.contains(&&**name) {
            if lines > MAX_PAGE_LINES {
                found.push(format!("{name}: {lines} lines; {MAX_PAGE_LINES} is the most"));
            }
            for heading in ["\n## Try it\n", "\n## When it goes wrong\n"] {
                if !page.contains(heading) {
                    found.push(format!("{name}: has no “{}”", heading.trim()));
                }
            }
        }
    }
    report("A page of the guide has one subject, something to try, and what to do when it goes wrong.", &found);
}

#[test]
fn what_a_document_holds_is_found() {
    let parts = DocumentParts::of(
        "# Rain & `more`\n\n[a](b.md#c) ![](d.png) `F5`\n\n## A\n\n## A\n\n```sh\nls\ntracebook x\n```\n",
    );
    assert_eq!(parts.links, [(3, "b.md#c".to_owned()), (3, "d.png".to_owned())]);
    assert_eq!(parts.anchors.iter().collect::<Vec<_>>(), ["a", "a-1", "rain--more"]);
    let code: Vec<&str> = parts.code.iter().map(|(_, code)| &**code).collect();
    assert_eq!(code, ["more", "F5", "ls", "tracebook x"]);
}
