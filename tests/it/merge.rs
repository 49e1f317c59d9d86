//! Properties of merging, undo and splitting into blocks, over random edits in a world that answers in random order
//! (`twin.rs`). Past failures are separate cases below.

use crate::twin::{Twin, World};
use engine::{Command, Event};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use store::disk::DiskReader;
use store::{Block, BlockId, DocId, NoteOp, apply_op, coalesce, position_between};
use text::markdown;

const FIRST: &[&str] = &[
    "",
    "one line",
    "# Title\n\npara one\npara two\n\n```python\nx = 1\n```\n\n- a\n- b\n\n```py\ny\n```\nend\n",
    "```python\r\nx\r\n```\r\n\r\n\u{e4}\u{1f600} text\r\n",
    "a\n\n```python\n1\n```\n```python\n2\n```\n\n\n\nb",
];

const PIECES: &[&str] = &[
    "a",
    " ",
    "word ",
    "\n",
    "\n\n",
    "\u{e4}",
    "\u{1f600}",
    "```",
    "`",
    "```python\n",
    "```\n",
    "~~~\n",
    "x = 1\n",
    "# T\n",
    "\r\n",
    "- item\n",
    "> quote\n",
    "```python\nz\n```\n",
    "    ",
    "<div>\n",
    "---\n",
];

/// A random edit, adapted to whatever text it's applied to.
#[derive(Clone, Copy, Debug)]
struct Edit {
    pub at: u16,
    pub delete: u8,
    piece: u8,
    pause: u16,
}

fn edit() -> impl Strategy<Value = Edit> {
    let delete = prop_oneof![3 => Just(0_u8), 2 => 1_u8..6, 1 => 6_u8..80];
    (any::<u16>(), delete, any::<u8>(), prop_oneof![3 => 0_u16..300, 1 => 300_u16..3_000])
        .prop_map(|(at, delete, piece, pause)| Edit { at, delete, piece, pause })
}

fn boundaries(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
}

/// The edit's place in this text: start, number of deleted bytes, inserted text.
fn fit(edit: Edit, text: &str) -> (usize, usize, &'static str) {
    let places = boundaries(text);
    let from = edit.at as usize % places.len();
    let to = (from + edit.delete as usize).min(places.len() - 1);
    let insert =
        if edit.delete > 0 && edit.piece.is_multiple_of(2) { "" } else { PIECES[edit.piece as usize % PIECES.len()] };
    (places[from], places[to] - places[from], insert)
}

fn type_in(twin: &mut Twin, note: DocId, edit: Edit) {
    let (at, delete, insert) = fit(edit, &twin.text(note));
    twin.edit(note, at, delete, insert);
    twin.check(note);
}

// ---- undo ----

fn undo_of_everything(first: &str, edits: &[Edit]) {
    let (mut twin, note) = Twin::on(first);
    for edit in edits {
        type_in(&mut twin, note, *edit);
        twin.pass(i64::from(edit.pause));
    }
    let last = twin.text(note);
    while twin.command(Command::Undo { note }).is_ok() {
        twin.check(note);
    }
    assert_eq!(twin.text(note), first);
    twin.settle();
    twin.check_settled(note, "a.md");
    while twin.command(Command::Redo { note }).is_ok() {
        twin.check(note);
    }
    assert_eq!(twin.text(note), last);
    twin.settle();
    twin.check_settled(note, "a.md");
}

// ---- replicas ----

/// A random event among replicas.
#[derive(Clone, Debug)]
enum Happening {
    Edit(usize, Edit),
    /// Sends `count` changes after `start` between replicas, perhaps in reverse order or as one piece.
    Send {
        from: usize,
        to: usize,
        start: u8,
        count: u8,
        backwards: bool,
        whole: bool,
    },
    Wander(usize, u8),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (0_usize..3, edit()).prop_map(|(at, edit)| Happening::Edit(at, edit)),
        2 => (0_usize..3, 0_usize..3, any::<u8>(), 1_u8..6, any::<bool>(), any::<bool>())
            .prop_map(|(from, to, start, count, backwards, whole)| {
                Happening::Send { from, to, start, count, backwards, whole }
            }),
        2 => (0_usize..3, 1_u8..20).prop_map(|(at, steps)| Happening::Wander(at, steps)),
    ]
}

/// The changes that a replica has sent for this note.
fn changes(twin: &Twin, note: DocId) -> Vec<Vec<u8>> {
    twin.sent.iter().filter(|(doc, _)| *doc == note).map(|(_, bytes)| bytes.clone()).collect()
}

fn exchange(replicas: &mut [Twin], note: DocId, chance: &mut StdRng) {
    for replica in replicas.iter_mut() {
        replica.settle();
    }
    let all: Vec<Vec<Vec<u8>>> = replicas.iter().map(|replica| changes(replica, note)).collect();
    for (to, replica) in replicas.iter_mut().enumerate() {
        let mut coming: Vec<&Vec<u8>> =
            all.iter().enumerate().filter(|(from, _)| *from != to).flat_map(|(_, bytes)| bytes).collect();
        // The changes arrive in any order, some of them twice.
        for at in (1..coming.len()).rev() {
            coming.swap(at, chance.random_range(0..=at));
        }
        let again: Vec<&Vec<u8>> = coming.iter().copied().filter(|_| chance.random_ratio(1, 6)).collect();
        for bytes in coming.into_iter().chain(again) {
            replica.event(Event::Remote { note, bytes: bytes.clone() });
            replica.check(note);
        }
        replica.settle();
    }
}

fn agree(replicas: &[Twin], note: DocId) {
    let blocks = |twin: &Twin| -> Vec<Block> { twin.note(note).blocks().cloned().collect() };
    for replica in &replicas[1..] {
        assert_eq!(blocks(replica), blocks(&replicas[0]), "replicas differ");
    }
    for replica in replicas {
        replica.check_settled(note, "a.md");
    }
}

fn replicas_agree(first: &str, count: usize, seed: u64, happenings: &[Happening]) {
    let mut chance = StdRng::seed_from_u64(seed);
    let world = Twin::with(&[("a.md", first)]).crash();
    let mut replicas: Vec<Twin> = (0..count as u64)
        .map(|seed| Twin::start(World { disk: world.disk.reopen_after_crash(), ..world.clone() }, 100 + seed))
        .collect();
    replicas.iter_mut().for_each(Twin::settle);
    let note = replicas[0].id("a.md");
    for replica in &mut replicas {
        replica.open("a.md");
    }
    for happening in happenings {
        match happening {
            Happening::Edit(at, edit) => type_in(&mut replicas[at % count], note, *edit),
            Happening::Wander(at, steps) => {
                (0..*steps).for_each(|_| replicas[at % count].wander(&mut chance));
            }
            Happening::Send { from, to, start, count: many, backwards, whole } => {
                let (from, to) = (from % count, to % count);
                let changes = changes(&replicas[from], note);
                if from == to || changes.is_empty() {
                    continue;
                }
                let start = *start as usize % changes.len();
                let mut part = changes[start..(start + *many as usize).min(changes.len())].to_vec();
                if *backwards {
                    part.reverse();
                }
                if *whole {
                    part = vec![part.concat()];
                }
                for bytes in part {
                    replicas[to].event(Event::Remote { note, bytes });
                    replicas[to].check(note);
                }
            }
        }
    }
    exchange(&mut replicas, note, &mut chance);
    agree(&replicas, note);
    // Editing can continue afterwards.
    for replica in &mut replicas {
        let edit = Edit { at: chance.random(), delete: chance.random_range(0..4), piece: chance.random(), pause: 0 };
        type_in(replica, note, edit);
    }
    exchange(&mut replicas, note, &mut chance);
    agree(&replicas, note);
}

// ---- another program ----

/// A character that occurs nowhere else, so that loss and duplication can be detected.
fn token(number: u32) -> char {
    char::from_u32(0xE000 + number).expect("a private character")
}

/// Inserts a token and may delete one ASCII character there, as the user or another program would.
fn scribble(text: &str, token: char, around: &[&str], chance: &mut StdRng) -> (usize, usize, String) {
    let places = boundaries(text);
    let at = places[chance.random_range(0..places.len())];
    let plain = |at: usize| text[at..].chars().next().is_some_and(|letter| letter.is_ascii());
    let delete = usize::from(chance.random_bool(0.4) && plain(at));
    let around = around[chance.random_range(0..around.len())];
    (at, delete, format!("{token}{around}"))
}

/// The text beside a token. After a crash during a write, only the file's text shows whether the write happened, so
/// each side uses words of its own.
const OURS: &[&str] = &["", "\n", "```python\n", "```\n", "our "];
const THEIRS: &[&str] = &["", "\r\n", "~~~python\n", "~~~\n", "their "];

/// The user types, another program writes the same file, the note is closed and opened, the process crashes. Each
/// side's text (before a crash, its durable text) is there once, and file and note are equal in the end.
fn outside_edits_merge(seed: u64, turns: usize, crashes: bool) {
    let mut chance = StdRng::seed_from_u64(seed);
    let (mut twin, note) = Twin::on(FIRST[seed as usize % FIRST.len()]);
    let mut ours: BTreeMap<u32, u64> = BTreeMap::new();
    let mut theirs: Vec<u32> = Vec::new();
    let mut next = 0;
    for _ in 0..turns {
        let what = chance.random_range(0..20);
        let ready = twin.session.note(note).is_some_and(|note| note.phase == engine::NotePhase::Ready);
        match what {
            0..3 if ready => {
                let (at, delete, insert) = scribble(&twin.text(note), token(next), OURS, &mut chance);
                twin.edit(note, at, delete, &insert);
                ours.insert(next, twin.session.saving().last);
                next += 1;
            }
            3 => {
                let mut text = twin.file("a.md").expect("there");
                let (at, delete, insert) = scribble(&text, token(next), THEIRS, &mut chance);
                text.replace_range(at..at + delete, &insert);
                twin.outside("a.md", Some(&text));
                theirs.push(next);
                next += 1;
            }
            4 if chance.random_ratio(1, 8) => match twin.session.note(note) {
                Some(_) => drop(twin.command(Command::CloseNote { note })),
                None => drop(twin.command(Command::OpenNote { note })),
            },
            5 if crashes && chance.random_ratio(1, 3) => {
                let world = twin.crash();
                let last = world.disk.last_journal_seq().expect("read");
                ours.retain(|_, seq| *seq <= last);
                let now = twin.now;
                twin = Twin::start(world, seed + u64::from(next));
                twin.now = now;
                // The file is known again before the note is opened; unfinished work completes by itself meanwhile.
                while twin.session.locate_file(note).is_none() {
                    twin.wander(&mut chance);
                }
                drop(twin.command(Command::OpenNote { note }));
            }
            _ => twin.wander(&mut chance),
        }
        if ready && twin.session.note(note).is_some_and(|note| note.phase == engine::NotePhase::Ready) {
            twin.check(note);
        }
    }
    twin.settle();
    twin.open("a.md");
    twin.check_settled(note, "a.md");
    let text = twin.text(note);
    for number in ours.keys().chain(&theirs) {
        let side = if ours.contains_key(number) { "ours" } else { "theirs" };
        assert_eq!(text.matches(token(*number)).count(), 1, "seed {seed}: token {number} ({side}) in {text:?}");
    }
}

/// Asserts that each cell of the whole text is one block, and that no other block is a cell.
fn cells_are_blocks(twin: &Twin, note: DocId) {
    let text = twin.text(note);
    let mut at = 0;
    let mut blocks = Vec::new();
    for block in twin.note(note).blocks() {
        if twin.note(note).cell_parts(block.id).is_some() {
            blocks.push((at, block.text.trim_end()));
        }
        at += block.text.len();
    }
    let cells: Vec<(usize, &str)> =
        markdown::cell_ranges(&text).into_iter().map(|range| (range.start, text[range].trim_end())).collect();
    assert_eq!(blocks, cells, "in {text:?}");
}

/// Another program writes these texts to the file, one after another.
fn shape_follows_the_file(texts: &[String]) {
    let (mut twin, note) = Twin::on(FIRST[2]);
    twin.edit(note, 0, 0, "x");
    twin.settle();
    for text in texts {
        twin.outside("a.md", Some(text));
        twin.settle();
        assert_eq!(&twin.text(note), text);
        twin.check_settled(note, "a.md");
        cells_are_blocks(&twin, note);
    }
}

// ---- operations ----

/// A sequence of consistent operations, generated from numbers.
fn operations(numbers: &[(u8, u16, u8, u8)]) -> (Vec<Block>, Vec<NoteOp>) {
    let first: Vec<Block> = store::import_blocks(["one\n", "zw\u{f6}lf\n", ""].into_iter());
    let mut blocks = first.clone();
    let mut ops = Vec::new();
    for (kind, at, delete, piece) in numbers {
        // Usually the block that was edited last, as in a burst.
        let last =
            ops.last().map(NoteOp::block_id).and_then(|id: BlockId| blocks.iter().position(|block| block.id == id));
        let index = if kind % 3 == 0 { *at as usize % blocks.len() } else { last.unwrap_or(0) };
        let op = match kind % 12 {
            0 => {
                let pos =
                    position_between(Some(&blocks[index].pos), blocks.get(index + 1).map(|block| block.pos.as_str()));
                let text = PIECES[*piece as usize % PIECES.len()].to_owned();
                NoteOp::Insert { block: BlockId(u64::from(*at) << 20 | ops.len() as u64), pos, text }
            }
            1 => NoteOp::Move {
                block: blocks[index].id,
                pos: position_between(blocks.last().map(|block| block.pos.as_str()), None),
            },
            _ => {
                let places = boundaries(&blocks[index].text);
                let from = *at as usize % places.len();
                let to = (from + *delete as usize % 6).min(places.len() - 1);
                let insert = if kind % 2 == 0 { "" } else { PIECES[*piece as usize % PIECES.len()] };
                NoteOp::Splice {
                    block: blocks[index].id,
                    at: places[from],
                    delete: places[to] - places[from],
                    insert: insert.to_owned(),
                }
            }
        };
        apply_op(&mut blocks, &op).expect("it fits");
        ops.push(op);
    }
    (first, ops)
}

fn performed(first: &[Block], ops: &[NoteOp]) -> Vec<Block> {
    let mut blocks = first.to_vec();
    for op in ops {
        apply_op(&mut blocks, op).unwrap_or_else(|error| panic!("{op:?}: {error}"));
    }
    blocks
}

fn markdown_text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..25).prop_map(|parts| parts.concat())
}

/// The number of cases for a property; `PROPTEST_CASES` overrides it.
fn cases(few: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(few)
}

fn config(few: u32) -> ProptestConfig {
    let cases = cases(few);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 400, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn undo_of_everything_gives_the_first_bytes(
        first in prop::sample::select(FIRST), edits in prop::collection::vec(edit(), 1..40),
    ) {
        undo_of_everything(first, &edits);
    }

    #[test]
    fn replicas_merge_to_the_same(
        first in prop::sample::select(FIRST),
        count in 2_usize..4,
        seed in any::<u64>(),
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        replicas_agree(first, count, seed, &happenings);
    }

    #[test]
    fn blocks_follow_what_another_program_wrote(texts in prop::collection::vec(markdown_text(), 1..6)) {
        shape_follows_the_file(&texts);
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn coalesced_operations_do_the_same(numbers in prop::collection::vec(any::<(u8, u16, u8, u8)>(), 0..60)) {
        let (first, ops) = operations(&numbers);
        let fewer = coalesce(&ops);
        prop_assert!(fewer.len() <= ops.len());
        prop_assert_eq!(performed(&first, &fewer), performed(&first, &ops));
    }
}

#[test]
fn what_once_failed() {
    let plain = Edit { at: 0, delete: 0, piece: 0, pause: 0 };
    // An increment depends on changes that the other replica doesn't have yet.
    replicas_agree("", 2, 0, &[Happening::Edit(0, plain)]);
    for texts in [
        // A cell after a fence of another kind, both in one block.
        &["~~~\n\n~~~\n```python\nz\n```\n"][..],
        &["", "```python\nz\n```\naaa``````python\na", "~~~\n```python\nz\n```\n~~~\n```python\n```\n"],
        // Text that looks like a cell inside a fence, inside front matter, and between fences that aren't its own.
        &["a```python\n```\n```python\nz\n```\n"],
        &["---\n~~~\n\u{e4}```python\n~~~\n```python\nz\n```\n---\n"],
        &["```\n```python\na```python\nz\n```\n```\n```python\n```\n- item\n"],
    ] {
        shape_follows_the_file(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    }
}

#[test]
fn outside_edits_and_typing_merge() {
    for seed in 0..u64::from(cases(30)) {
        outside_edits_merge(seed, 300, false);
    }
}

#[test]
fn outside_edits_and_typing_merge_over_crashes() {
    for seed in 0..u64::from(cases(40)) {
        outside_edits_merge(seed, 300, true);
    }
}
