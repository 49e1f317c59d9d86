//! Converts a note for the search index: its title, tags, prose, code and cell outputs, each passage with the address
//! of its block. Reads lines of Markdown, no documents and no files.

use index::{IndexedPassage, NoteText, PassageKind, turns};
use std::collections::BTreeSet;
use store::disk::FileRow;
use store::{Block, BlockId, CellOutput, Execution, OutputBody};
use text::markdown;
use text::outline::Outline;
use text::task::NoteTask;

/// Maximum length of a cell's indexed output in bytes.
const MAX_FOUND_OUTPUT_BYTES: usize = 65_536;
/// Maximum indexed bytes of an experience's source that holds a date.
const MAX_DATED_SOURCE_BYTES: usize = 200;
/// Maximum number of lines that decide whether a note is a conversation.
const MAX_CONVERSATION_LINES: usize = 2_000;
const DAY_MS: i64 = 86_400_000;
/// Maximum indexed bytes of a code line; a person doesn't write longer ones.
const MAX_CODE_LINE_BYTES: usize = 20_000;

/// Builds the searchable text of a note.
pub(crate) fn build_note_text(
    volume: &str,
    row: &FileRow,
    key: u64,
    blocks: &[Block],
    executions: &[Execution],
) -> NoteText {
    let name = row.path.rsplit('/').next().unwrap_or(&row.path);
    let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
    let mut reading = PassageReader { dated: turns::date_in(name), ..PassageReader::default() };
    let lines = blocks.iter().flat_map(|block| block.text.lines()).take(MAX_CONVERSATION_LINES);
    reading.is_conversation = row.kind != store::FileKind::Script && turns::is_conversation(lines);
    for block in blocks.iter().filter(|block| !block.text.is_empty()) {
        if row.kind == store::FileKind::Script {
            let code = truncate_bytes(&block.text, markdown::MAX_CELL_BYTES).to_owned();
            reading.passages.push(new_passage(block.id.to_string(), PassageKind::Code, "python", String::new(), code));
        } else {
            reading.add_block(block);
        }
        for execution in executions.iter().filter(|execution| execution.cell == block.id) {
            for (output, number) in execution.outputs.iter().zip(1..) {
                reading.add_output(block.id, number, output);
            }
        }
    }
    let title = reading.named.or(reading.first).filter(|title| !title.is_empty()).unwrap_or_else(|| name.to_owned());
    let mut passages = reading.passages;
    passages.iter_mut().for_each(|passage| passage.said = passage.said.or(reading.dated));
    if agent::memory::is_experience_log(&row.path) {
        // The log's entries are YAML, so index their content instead.
        let told = experience_passages(&row.path, blocks);
        if !told.is_empty() {
            passages = told;
        }
    }
    if passages.is_empty() {
        // An empty note can be found by its name.
        passages.push(new_passage(String::new(), PassageKind::Prose, "", String::new(), String::new()));
    }
    if let Some(block) = blocks.first().filter(|block| block.text.to_ascii_lowercase().contains("alias")) {
        passages[0].names = Outline::of(&block.text).aliases;
    }
    if agent::memory::is_memory(&row.path) {
        // Experiences and traces are notes, but `in:memory` must find them.
        let prose = passages.iter_mut().filter(|passage| passage.kind == PassageKind::Prose);
        prose.for_each(|passage| passage.kind = PassageKind::Memory);
    }
    let tags = reading.tags.into_iter().collect();
    let modified = row.mtime / 1_000_000;
    NoteText { note: row.id, volume: volume.to_owned(), path: row.path.clone(), title, tags, modified, key, passages }
}

/// Returns the experiences of a note as passages: goal, outcome and lessons under the id.
fn experience_passages(path: &str, blocks: &[Block]) -> Vec<IndexedPassage> {
    let text: String = blocks.iter().map(|block| block.text.as_str()).collect();
    let mut ends = Vec::new();
    let mut end = 0;
    for block in blocks {
        end += block.text.len();
        ends.push((end, block.id));
    }
    let entries = agent::memory::experience::parse_entries(path, &text, &mut Vec::new());
    let goals: Vec<&str> = entries.iter().map(|entry| entry.experience.primary_goal.as_str()).collect();
    let speakers = turns::message_speakers(&goals);
    let one = |(entry, speaker): (&agent::memory::experience::ExperienceEntry, Option<String>)| {
        let place = ends.iter().find(|(end, _)| entry.at < *end).map(|(_, id)| id.to_string()).unwrap_or_default();
        let heading = entry.experience.experience_id.clone();
        let mut text = truncate_bytes(&entry.experience.search_text(), MAX_CODE_LINE_BYTES).to_owned();
        let source = entry.experience.source.trim();
        if names_a_year(source) {
            // A conversation's date: people ask when something was said.
            text.push('\n');
            text.push_str(truncate_bytes(source, MAX_DATED_SOURCE_BYTES));
        }
        let mut passage = new_passage(place, PassageKind::Memory, "", heading, text);
        passage.said = turns::date_in(source);
        // A source without a number, such as “user”, is no particular conversation.
        if source.contains(|c: char| c.is_ascii_digit()) {
            passage.session = source.to_owned();
        }
        passage.speaker = speaker.unwrap_or_default();
        passage
    };
    entries.iter().zip(speakers).map(one).collect()
}

/// Whether a text has a year, such as 2026.
fn names_a_year(text: &str) -> bool {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    numbers.filter(|number| number.len() == 4).any(|number| number.starts_with("19") || number.starts_with("20"))
}

fn new_passage(place: String, kind: PassageKind, lang: &str, heading: String, text: String) -> IndexedPassage {
    // Few passages have a line that could be a task; only they're read as Markdown, for comments.
    let could_be = kind == PassageKind::Prose && text.lines().any(|line| NoteTask::parse_line(line, 0).is_some());
    let tasks = if could_be { Outline::of(&text).tasks } else { Vec::new() };
    let has = |wanted: bool| tasks.iter().any(|task| task.is_done() == wanted);
    let links = if kind == PassageKind::Prose { linked_names(&text) } else { Vec::new() };
    let (todo, done, lang) = (has(false), has(true), lang.to_owned());
    IndexedPassage { place, lang, heading, todo, done, links, text, ..IndexedPassage::new(kind) }
}

/// Returns the names of the notes that a text links to, each once.
fn linked_names(text: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    for (opens, closes, ends) in [("[[", "]]", &['|', '#'][..]), ("](", ")", &['#', ' '][..])] {
        for (at, _) in text.match_indices(opens) {
            let rest = &text[at + opens.len()..];
            let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
            let Some(target) = line.find(closes).map(|end| line[..end].trim_start_matches('<')) else { continue };
            let target = target.split(ends).next().unwrap_or(target).trim().trim_end_matches('>');
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.insert(index::link_name(&text::outline::percent_decode(target)));
            }
        }
    }
    found.into_iter().collect()
}

/// State while reading a note's blocks.
#[derive(Default)]
struct PassageReader {
    passages: Vec<IndexedPassage>,
    tags: BTreeSet<String>,
    /// Title from the front matter.
    named: Option<String>,
    /// First heading of level 1, or else the first heading.
    first: Option<String>,
    first_level: usize,
    /// The headings above the current line, with their levels.
    headings: Vec<(usize, String)>,
    begun: bool,
    /// Whether the note is a conversation, each of whose turns is a passage.
    is_conversation: bool,
    /// The day of the note: from its front matter or its name, in milliseconds since 1970.
    dated: Option<i64>,
    /// The day of the current heading or turn.
    day: Option<i64>,
    /// The speaker of the current turn.
    speaker: Option<String>,
}

impl PassageReader {
    fn current_heading(&self) -> String {
        self.headings.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" › ")
    }

    /// Adds prose, as a turn if someone is speaking.
    fn add_prose(&mut self, place: &str, heading: String, prose: &str) {
        if prose.trim().is_empty() {
            return;
        }
        let text = prose.trim().to_owned();
        let mut passage = new_passage(place.to_owned(), PassageKind::Prose, "", heading, text);
        passage.said = self.day;
        if let Some(speaker) = &self.speaker {
            passage.speaker.clone_from(speaker);
            let day = self.day.or(self.dated).unwrap_or(0).div_euclid(DAY_MS);
            passage.session = format!("{} {day}", self.current_heading());
        }
        self.passages.push(passage);
    }

    fn add_block(&mut self, block: &Block) {
        let place = block.id.to_string();
        if let Some(cell) = markdown::parse_cell(&block.text) {
            self.begun = true;
            let code = truncate_bytes(&block.text[cell.code], markdown::MAX_CELL_BYTES).to_owned();
            self.passages.push(new_passage(place, PassageKind::Code, "python", self.current_heading(), code));
            return;
        }
        let mut prose = String::new();
        // The headings above the block's first line that isn't itself a heading.
        let mut above: Option<String> = None;
        let mut fence: Option<(String, String, String)> = None;
        let mut front =
            !std::mem::replace(&mut self.begun, true) && block.text.trim_start_matches('\u{feff}').starts_with("---");
        let mut list_of_tags = false;
        for (line, number) in block.text.lines().zip(0..) {
            if front {
                front = number == 0 || !matches!(line.trim_end(), "---" | "...");
                self.add_property(line, &mut list_of_tags);
            } else if let Some((mark, lang, code)) = &mut fence {
                if line.trim_start().starts_with(mark.as_str()) && line.trim().trim_start_matches(&mark[..1]).is_empty()
                {
                    let (lang, code) = (std::mem::take(lang), std::mem::take(code));
                    fence = None;
                    self.passages.push(new_passage(
                        place.clone(),
                        PassageKind::Code,
                        &lang,
                        self.current_heading(),
                        code,
                    ));
                } else {
                    code.push_str(truncate_bytes(line, MAX_CODE_LINE_BYTES));
                    code.push('\n');
                }
                continue;
            } else if let Some((mark, lang)) = parse_code_fence(line) {
                fence = Some((mark, lang, String::new()));
                continue;
            } else if let Some((level, text)) = parse_heading(line) {
                if self.is_conversation {
                    if let Some(heading) = above.take() {
                        self.add_prose(&place, heading, &std::mem::take(&mut prose));
                    }
                    self.speaker = None;
                }
                self.day = turns::date_in(&text).or(self.day.filter(|_| level > 1));
                self.headings.retain(|(other, _)| *other < level);
                if self.first.is_none() || (level == 1 && self.first_level > 1) {
                    (self.first, self.first_level) = (Some(text.clone()), level);
                }
                self.headings.push((level, text));
            } else if !line.trim().is_empty() {
                let turn = self.is_conversation.then(|| turns::parse_turn_start(line)).flatten();
                if let Some(turn) = turn {
                    // Headings alone belong to the turn below them.
                    if let Some(heading) = above.take() {
                        self.add_prose(&place, heading, &std::mem::take(&mut prose));
                    }
                    self.day = turn.said.or(self.day);
                    self.speaker = Some(turn.speaker);
                }
                above.get_or_insert_with(|| self.current_heading());
                collect_hashtags(line, &mut self.tags);
            }
            prose.push_str(truncate_bytes(line, MAX_CODE_LINE_BYTES));
            prose.push('\n');
        }
        if let Some((_, lang, code)) = fence {
            self.passages.push(new_passage(place.clone(), PassageKind::Code, &lang, self.current_heading(), code));
        }
        let heading = above.unwrap_or_else(|| self.current_heading());
        self.add_prose(&place, heading, &prose);
    }

    /// Reads a line of the front matter, if search uses its property.
    fn add_property(&mut self, line: &str, list_of_tags: &mut bool) {
        let item = line.trim_start().strip_prefix("- ");
        if let (true, Some(tag)) = (*list_of_tags, item) {
            self.add_tag(tag);
            return;
        }
        let Some((name, value)) = line.split_once(':') else { return };
        *list_of_tags = false;
        match name.trim().to_ascii_lowercase().as_str() {
            "title" if !unquote(value).is_empty() => self.named = Some(unquote(value).to_owned()),
            "date" => self.dated = turns::date_in(value).or(self.dated),
            "tags" | "tag" => {
                let value = value.trim().trim_start_matches('[').trim_end_matches(']');
                *list_of_tags = value.is_empty();
                let commas = value.contains(',');
                value.split(|c: char| c == ',' || (!commas && c.is_whitespace())).for_each(|tag| self.add_tag(tag));
            }
            _ => {}
        }
    }

    fn add_tag(&mut self, tag: &str) {
        let tag = unquote(tag).trim_start_matches('#');
        if !tag.is_empty() {
            self.tags.insert(tag.to_lowercase());
        }
    }

    fn add_output(&mut self, cell: BlockId, number: usize, output: &CellOutput) {
        let text = match &output.body {
            OutputBody::Stream { text, .. } => text.clone(),
            OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
                data.get("text/plain").and_then(|text| text.as_str()).unwrap_or_default().to_owned()
            }
            OutputBody::Error { ename, evalue, traceback } => {
                let last = format!("{ename}: {evalue}");
                if traceback.iter().any(|line| line.contains(&last)) {
                    traceback.join("\n")
                } else {
                    format!("{}\n{last}", traceback.join("\n"))
                }
            }
        };
        if !text.trim().is_empty() {
            let text = truncate_bytes(text.trim(), MAX_FOUND_OUTPUT_BYTES).to_owned();
            let place = format!("{cell}/output/{number}");
            self.passages.push(new_passage(place, PassageKind::Output, "", self.current_heading(), text));
        }
    }
}

fn truncate_bytes(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

fn unquote(value: &str) -> &str {
    value.trim().trim_matches(['"', '\''])
}

/// Returns the marker and the language of a line that opens a code fence.
fn parse_code_fence(line: &str) -> Option<(String, String)> {
    let body = line.trim_start_matches([' ', '>', '\t']);
    let mark = body.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let count = body.chars().take_while(|c| *c == mark).count();
    let info = &body[count..];
    if count < 3 || (mark == '`' && info.contains('`')) {
        return None;
    }
    let lang = info.trim().trim_start_matches("{.").split(|c: char| !c.is_alphanumeric() && !"+#-_".contains(c)).next();
    Some((mark.to_string().repeat(count), lang.unwrap_or_default().to_lowercase()))
}

/// Returns the level and the text of a heading line.
fn parse_heading(line: &str) -> Option<(usize, String)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    let fits = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    fits.then(|| (level, rest.trim().trim_end_matches('#').trim().to_owned()))
}

/// Collects the `#tags` of a line.
fn collect_hashtags(line: &str, tags: &mut BTreeSet<String>) {
    for (at, _) in line.match_indices('#') {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace() && c != '(') {
            continue;
        }
        let tag = markdown::tag_name(&line[at + 1..]).trim_end_matches(['/', '-']);
        let is_named = tag.chars().any(|letter| letter.is_alphabetic() || !letter.is_ascii());
        if is_named && !markdown::is_in_html_tag(line, at) {
            tags.insert(tag.to_lowercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{BlobHash, DocId, FileKind, import_blocks};

    fn row() -> FileRow {
        FileRow {
            volume: DocId([0; 16]),
            path: "a/Some name.md".to_owned(),
            id: DocId([1; 16]),
            kind: FileKind::Note,
            size: 0,
            mtime: 5_000_000,
            hash: BlobHash([0; 32]),
            blocks: 0,
            cells: 0,
            heads: Vec::new(),
        }
    }

    fn read(text: &str) -> NoteText {
        let row = row();
        let blocks = import_blocks(markdown::split_into_blocks(text).into_iter());
        build_note_text("V", &row, 7, &blocks, &[])
    }

    #[test]
    fn titles_tags_and_todos_are_seen() {
        let note = read("---\ntitle: \"The title\"\ntags: [One, two/b]\n---\n# Head\n\nsome #tag, C# #1\n- [ ] do\n");
        assert_eq!((note.title.as_str(), note.modified), ("The title", 5));
        assert_eq!(note.tags, ["one", "tag", "two/b"]);
        assert!(note.passages[0].todo && !note.passages[0].done);
        assert_eq!(read("---\ntags:\n  - a\n  - b\nx: y\n---\n").tags, ["a", "b"]);
        assert_eq!(read("<b style=\"color: #fff\">#a</b> #🌱\n").tags, ["🌱"]);
        assert_eq!(read("text\n## Second\n# First\n").title, "First");
        assert_eq!(read("").title, "Some name");
        assert_eq!(read("").passages.len(), 1);
        assert!(read("1. [x] y").passages[0].done);
    }

    #[test]
    fn each_experience_is_a_passage() {
        use agent::memory::experience::{EXPERIENCE_LOG_HEADING, Experience};
        let one = |id: &str, goal: &str, lesson: &str| Experience {
            experience_id: id.to_owned(),
            primary_goal: goal.to_owned(),
            learnings_or_issues: lesson.to_owned(),
            source: if id == "exp_2" { "chat, 8 May 2023".to_owned() } else { "run 3000".to_owned() },
            ..Experience::default()
        };
        let log = format!(
            "{EXPERIENCE_LOG_HEADING}{}\n{}",
            one("exp_1", "Find peaks", "use scipy").to_markdown(),
            one("exp_2", "b", "c").to_markdown()
        );
        let row = FileRow { path: "projects/p/memory/memory_log.md".to_owned(), ..row() };
        let blocks = import_blocks(markdown::split_into_blocks(&log).into_iter());
        let note = build_note_text("V", &row, 7, &blocks, &[]);
        let said: Vec<(PassageKind, &str, &str)> =
            note.passages.iter().map(|one| (one.kind, one.heading.as_str(), one.text.as_str())).collect();
        assert_eq!(
            said,
            [
                (PassageKind::Memory, "exp_1", "Find peaks\nuse scipy"),
                (PassageKind::Memory, "exp_2", "b\nc\nchat, 8 May 2023")
            ]
        );
        assert!(note.passages.iter().all(|one| !one.place.is_empty()));
    }

    #[test]
    fn links_are_seen_by_the_name_of_their_note() {
        let text = "See [[Work/Big Plan|plan]], [[Home#x]], [a](../b/My%20note.md#h \"t\"), [[big plan]],\n\
                    [w](https://x.org/y.md), [[open\nend]], [](#here) ![[pic.png]]\n";
        assert_eq!(read(text).passages[0].links, ["big plan", "home", "my note", "pic.png"]);
    }

    #[test]
    fn code_stands_apart_under_its_headings() {
        let note = read("# A\n\nprose\n\n## B\n\n```rust\nfn x() {}\n```\n\nmore\n\n```python\nprint(1)\n```\n");
        let said: Vec<(PassageKind, &str, &str, &str)> = note
            .passages
            .iter()
            .map(|passage| (passage.kind, passage.lang.as_str(), passage.heading.as_str(), passage.text.as_str()))
            .collect();
        assert_eq!(said[0], (PassageKind::Code, "rust", "A › B", "fn x() {}\n"));
        assert_eq!(said[1], (PassageKind::Prose, "", "A", "# A\n\nprose\n\n## B\n\n\nmore"));
        assert_eq!(said[2], (PassageKind::Code, "python", "A › B", "print(1)\n"));
    }
}
