//! Where everything stands: blocks become strips that are never cut, and strips are put on pages.

use super::blocks::{ListBullet, PdfBlock};
use super::text::{DocumentFonts, InlinePicture, LinePiece, ParagraphItem, TextLine, WordStyle};
use super::{PaperSize, look};
use crate::fonts::FontSet;
use crate::tints::{Rgb, ThemeTints, mix};
use pulldown_cmark::Alignment;
use std::rc::Rc;

/// Something on a strip, at a place from the strip's left top.
pub(super) enum StripMark {
    Fill {
        x: f32,
        y: f32,
        width: f32,
        height: f32,
        colour: Rgb,
    },
    /// Words: `y` is the line on which they stand.
    Piece {
        x: f32,
        y: f32,
        piece: LinePiece,
        tag: usize,
    },
    Picture {
        x: f32,
        y: f32,
        object: InlinePicture,
        tag: usize,
    },
    Task {
        x: f32,
        y: f32,
        done: bool,
        state: Option<char>,
        tag: usize,
    },
}

/// What a strip stands on.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct StripGround {
    /// Strips with the same number stand on one ground.
    id: usize,
    pub(super) x: f32,
    pub(super) width: f32,
    pub(super) colour: Rgb,
}

/// What is never cut.
#[derive(Default)]
pub(super) struct PageStrip {
    /// Room above it, except at the top of a page.
    above: f32,
    pub(super) height: f32,
    pub(super) marks: Vec<StripMark>,
    pub(super) grounds: Vec<StripGround>,
    /// It is on the page of the next one.
    keep: bool,
    /// It begins a page.
    fresh: bool,
    /// What comes again above it where it begins a page: the head of its table.
    head: Option<Rc<PageStrip>>,
    /// Places that links lead to.
    pub(super) places: Vec<String>,
    pub(super) outline: Option<(u8, String)>,
}

/// A strip on a page.
pub(super) struct PlacedStrip {
    pub(super) y: f32,
    /// Where its grounds begin: higher, where they go on from the strip before.
    pub(super) ground: Vec<f32>,
    pub(super) strip: Rc<PageStrip>,
    /// Whether it is there only once more, as the head of a table.
    pub(super) again: bool,
}

/// What a part of the text is, for those who listen.
pub(super) enum TextRole {
    Root,
    Heading(u8, String),
    Paragraph,
    Code,
    List(bool),
    Item,
    Bullet,
    Body,
    Table,
    Row,
    Head,
    Cell,
    Quote,
    Aside,
    Note,
    Picture(String),
    Formula(String),
}

/// A node of the structure.
pub(super) struct StructureNode {
    pub(super) is: TextRole,
    pub(super) parts: Vec<usize>,
}

/// Everything that was laid out.
pub(super) struct LaidPages<'a> {
    pub(super) pages: Vec<(Vec<PlacedStrip>, String)>,
    pub(super) nodes: Vec<StructureNode>,
    pub(super) letters: DocumentFonts<'a>,
    pub(super) size: (f32, f32),
}

pub(super) struct PageFlow<'a> {
    letters: DocumentFonts<'a>,
    tints: &'a ThemeTints,
    size: (f32, f32),
    strips: Vec<PageStrip>,
    titles: Vec<(usize, String)>,
    x: f32,
    width: f32,
    gap: f32,
    grounds: Vec<StripGround>,
    next_ground: usize,
    nodes: Vec<StructureNode>,
    open: Vec<usize>,
    places: Vec<String>,
    fresh: bool,
    /// The style in which paragraphs are set again, for notes below the text.
    small: bool,
    /// The next block stands close to the one before.
    tight: bool,
}

impl<'a> PageFlow<'a> {
    pub(super) fn new(fonts: &'a FontSet, tints: &'a ThemeTints, paper: PaperSize) -> PageFlow<'a> {
        let size = paper.size();
        PageFlow {
            letters: DocumentFonts::new(fonts),
            tints,
            size,
            strips: Vec::new(),
            titles: Vec::new(),
            x: 0.0,
            width: size.0 - 2.0 * look::SIDE,
            gap: 0.0,
            grounds: Vec::new(),
            next_ground: 0,
            nodes: vec![StructureNode { is: TextRole::Root, parts: Vec::new() }],
            open: vec![0],
            places: Vec::new(),
            fresh: false,
            small: false,
            tight: false,
        }
    }

    /// Lays a note out, on a new page.
    pub(super) fn note(&mut self, title: &str, place: &str, blocks: Vec<PdfBlock>) {
        self.fresh = true;
        self.gap = 0.0;
        self.titles.push((self.strips.len(), title.to_owned()));
        self.places.push(place.to_owned());
        let mut blocks = blocks;
        // The title stands above the properties.
        let titled = |block: Option<&PdfBlock>| matches!(block, Some(PdfBlock::Heading { level: 1, .. }));
        if titled(blocks.get(1)) && matches!(blocks.first(), Some(PdfBlock::Table { .. })) {
            blocks.swap(0, 1);
        }
        if !titled(blocks.first()) {
            let style = WordStyle { colour: self.tints.ink, ..look::heading(1).0 };
            let items = vec![ParagraphItem::Text(title.to_owned(), style)];
            self.block(PdfBlock::Heading { level: 1, items, words: title.to_owned(), place: format!("{place}#") });
        }
        self.blocks(blocks);
        self.gap = 0.0;
    }

    fn blocks(&mut self, blocks: Vec<PdfBlock>) {
        for block in blocks {
            self.block(block);
        }
    }

    /// Opens a part of the structure around what comes.
    fn inside(&mut self, is: TextRole, what: impl FnOnce(&mut Self)) {
        let node = self.node(is);
        self.open.push(node);
        what(self);
        self.open.pop();
    }

    fn node(&mut self, is: TextRole) -> usize {
        let node = self.nodes.len();
        self.nodes.push(StructureNode { is, parts: Vec::new() });
        let around = self.open.last().copied().unwrap_or(0);
        self.nodes[around].parts.push(node);
        node
    }

    fn strip(&mut self, height: f32, marks: Vec<StripMark>, keep: bool) {
        let strip = PageStrip {
            above: std::mem::take(&mut self.gap),
            height,
            marks,
            grounds: self.grounds.clone(),
            keep,
            fresh: std::mem::take(&mut self.fresh),
            head: None,
            places: std::mem::take(&mut self.places),
            outline: None,
        };
        self.strips.push(strip);
    }

    fn ask(&mut self, gap: f32) {
        if std::mem::take(&mut self.tight) {
            return;
        }
        self.gap = self.gap.max(gap);
    }

    /// Lines of text; the first two stay together, and so do the last two. `keep`: with what follows, too.
    fn lines(&mut self, lines: Vec<TextLine>, x: f32, tag: usize, keep: bool) {
        let count = lines.len();
        for (index, line) in lines.into_iter().enumerate() {
            let marks = marks(line.pieces, x, line.base, tag);
            let together = index + 1 < count && (index == 0 || index + 2 == count);
            self.strip(line.height, marks, together || keep);
        }
    }

    fn block(&mut self, block: PdfBlock) {
        match block {
            PdfBlock::Place(name) => self.places.push(name),
            PdfBlock::Heading { level, items, words, place } => {
                let (_, leading, above) = look::heading(level);
                self.places.push(place);
                self.ask(above);
                let first = self.strips.len();
                let tag = self.node(TextRole::Heading(level.min(6), words.clone()));
                let lines = self.letters.lines(&items, self.width, leading);
                self.lines(lines, self.x, tag, true);
                if let Some(strip) = self.strips.get_mut(first) {
                    strip.outline = Some((level, words));
                }
                self.gap = if level <= 2 { 7.0 } else { 4.0 };
            }
            PdfBlock::Text(items) => {
                self.ask(look::GAP);
                let leading = if self.small { look::SMALL_LINE } else { look::LINE };
                let items = if self.small { smaller(items) } else { items };
                let tag = self.node(TextRole::Paragraph);
                let lines = self.letters.lines(&items, self.width, leading);
                self.lines(lines, self.x, tag, false);
                self.gap = look::GAP;
            }
            PdfBlock::Code { lines, ground } => self.code(lines, ground),
            PdfBlock::Table { columns, rows } => self.table(&columns, rows),
            PdfBlock::Picture(object) => self.picture(object),
            PdfBlock::Rule => {
                self.ask(look::GAP * 1.6);
                let fill =
                    StripMark::Fill { x: self.x, y: 0.0, width: self.width, height: 0.6, colour: self.tints.line };
                self.strip(0.6, vec![fill], false);
                self.gap = look::GAP * 1.6;
            }
            PdfBlock::List { items, numbered } => self.list(items, numbered),
            PdfBlock::Quote(body) => {
                self.ask(look::GAP);
                let bar = StripGround { id: 0, x: self.x, width: 2.4, colour: self.tints.line };
                self.stand_in(14.0, 0.0, vec![bar], |flow| flow.inside(TextRole::Quote, |flow| flow.blocks(body)));
                self.gap = look::GAP;
            }
            PdfBlock::Callout { colour, title, body } => {
                self.ask(look::GAP);
                let ground = mix(self.tints.paper, colour, 0.08);
                let whole = StripGround { id: 0, x: self.x, width: self.width, colour: ground };
                let bar = StripGround { id: 0, x: self.x, width: 2.6, colour };
                self.stand_in(look::PAD + 4.0, look::PAD, vec![whole, bar], |flow| {
                    flow.inside(TextRole::Aside, |flow| {
                        let tag = flow.node(TextRole::Paragraph);
                        let lines = flow.letters.lines(&title, flow.width, look::LINE);
                        flow.lines(lines, flow.x, tag, !body.is_empty());
                        (flow.gap, flow.tight) = (2.0, true);
                        flow.blocks(body);
                        flow.tight = false;
                    });
                });
                self.gap = look::GAP + 2.0;
            }
            PdfBlock::Card(body) => {
                self.ask(look::GAP);
                let bar =
                    StripGround { id: 0, x: self.x, width: 1.2, colour: mix(self.tints.accent, self.tints.paper, 0.5) };
                self.stand_in(14.0, 0.0, vec![bar], |flow| flow.inside(TextRole::Aside, |flow| flow.blocks(body)));
                self.gap = look::GAP;
            }
            PdfBlock::Notes(notes) => {
                self.ask(22.0);
                let fill = StripMark::Fill { x: self.x, y: 0.0, width: 90.0, height: 0.6, colour: self.tints.muted };
                self.strip(0.6, vec![fill], true);
                self.gap = 7.0;
                self.small = true;
                for (number, body) in notes {
                    self.inside(TextRole::Note, |flow| {
                        let bullet = format!("{number}");
                        let style = WordStyle { colour: flow.tints.muted, ..look::small() };
                        flow.item(vec![ParagraphItem::Text(bullet, style)], None, body, look::SMALL_LINE);
                    });
                    self.gap = 2.0;
                }
                self.small = false;
            }
        }
    }

    /// Something that stands further in, on grounds of its own, with room above and below in them.
    fn stand_in(&mut self, by: f32, pad: f32, grounds: Vec<StripGround>, what: impl FnOnce(&mut Self)) {
        let own = grounds.len();
        let narrow = self.width - by - pad < 60.0;
        let (x, width) = (self.x, self.width);
        for mut ground in grounds {
            self.next_ground += 1;
            ground.id = self.next_ground;
            self.grounds.push(ground);
        }
        if !narrow {
            self.x += by;
            self.width -= by + pad;
        }
        if pad > 0.0 {
            self.strip(pad - 2.0, Vec::new(), true);
        }
        let first = self.strips.len();
        what(self);
        if pad > 0.0 {
            self.gap = 0.0;
            if self.strips.len() > first
                && let Some(last) = self.strips.last_mut()
            {
                last.keep = true;
            }
            self.strip(pad - 1.0, Vec::new(), false);
        }
        (self.x, self.width) = (x, width);
        self.grounds.truncate(self.grounds.len() - own);
    }

    fn list(&mut self, items: Vec<(ListBullet, Vec<PdfBlock>)>, numbered: bool) {
        // A list in an item stands as close as the items do.
        if self.open.last().is_some_and(|open| matches!(self.nodes[*open].is, TextRole::Body)) {
            self.gap = 3.0;
        }
        self.ask(3.0);
        self.inside(TextRole::List(numbered), |flow| {
            for (bullet, body) in items {
                flow.inside(TextRole::Item, |flow| {
                    let style = WordStyle { colour: flow.tints.muted, ..look::body() };
                    let (words, task) = match bullet {
                        ListBullet::Dot => (vec![ParagraphItem::Text("•".to_owned(), style)], None),
                        ListBullet::Number(number) => (vec![ParagraphItem::Text(format!("{number}."), style)], None),
                        ListBullet::Task { done, state } => (Vec::new(), Some((done, state))),
                    };
                    let leading = if flow.small { look::SMALL_LINE } else { look::LINE };
                    flow.item(words, task, body, leading);
                });
                flow.gap = 3.0;
            }
        });
        self.gap = look::GAP;
    }

    fn item(
        &mut self,
        bullet: Vec<ParagraphItem>,
        task: Option<(bool, Option<char>)>,
        body: Vec<PdfBlock>,
        leading: f32,
    ) {
        let (x, width) = (self.x, self.width);
        let wide = self.letters.width(&bullet) + 5.0;
        let by = look::INDENT.max(wide);
        if self.width - by > 60.0 {
            self.x += by;
            self.width -= by;
        }
        let first = self.strips.len();
        let tag = self.node(TextRole::Bullet);
        let gap = self.gap;
        self.inside(TextRole::Body, |flow| flow.blocks(body));
        if self.strips.len() == first {
            self.gap = gap;
            self.strip(leading, Vec::new(), false);
        }
        let line = self.letters.lines(&bullet, f32::INFINITY, leading).into_iter().next();
        if let Some(strip) = self.strips.get_mut(first) {
            // An item that begins with a paragraph stands closer than a paragraph would.
            strip.above = gap;
            if let Some(line) = line.filter(|_| task.is_none()) {
                let at = if line.width > look::INDENT - 5.0 { x } else { x + by - 6.0 - line.width };
                let at = if matches!(bullet.first(), Some(ParagraphItem::Text(text, _)) if text == "•") {
                    x + 5.0
                } else {
                    at
                };
                strip.marks.splice(0..0, marks(line.pieces, at, line.base, tag));
            }
            if let Some((done, state)) = task {
                strip.marks.insert(0, StripMark::Task { x: x + 2.0, y: (leading - 9.0) / 2.0 + 0.2, done, state, tag });
            }
        }
        (self.x, self.width) = (x, width);
    }

    fn code(&mut self, lines: Vec<Vec<ParagraphItem>>, ground: bool) {
        self.ask(if ground { look::GAP } else { 3.0 });
        let colour = self.tints.sunken;
        let grounds = match ground {
            true => vec![StripGround { id: 0, x: self.x, width: self.width, colour }],
            false => Vec::new(),
        };
        let pad = if ground { look::PAD } else { 0.0 };
        let by = if ground { look::PAD } else { 2.0 };
        self.stand_in(by, pad, grounds, |flow| {
            let tag = flow.node(TextRole::Code);
            let count = lines.len();
            for (index, line) in lines.into_iter().enumerate() {
                // A blank line is as high as any other.
                let line = if line.is_empty() { vec![ParagraphItem::Text(" ".to_owned(), look::code())] } else { line };
                let wrapped = flow.letters.lines(&line, flow.width, look::CODE_LINE);
                let parts = wrapped.len();
                for (part, line) in wrapped.into_iter().enumerate() {
                    let x = flow.x;
                    let marks = marks(line.pieces, x, line.base, tag);
                    let near = index < 2 || index + 3 > count;
                    flow.strip(line.height, marks, part + 1 < parts || (near && index + 1 < count && index != 2));
                }
            }
        });
        self.gap = if ground { look::GAP + 2.0 } else { look::GAP };
    }

    fn picture(&mut self, mut object: InlinePicture) {
        self.ask(look::GAP);
        let most = self.size.1 - look::ABOVE - look::BELOW - 40.0;
        let (room, high) = (self.width - 2.0 * object.pad, object.height + object.depth);
        let scale = (room / object.width.max(0.1)).min(most / high.max(0.1)).min(1.0);
        object.width *= scale;
        object.height *= scale;
        object.depth *= scale;
        object.pad *= scale;
        let is = match object.formula {
            true => TextRole::Formula(object.alt.clone()),
            false => TextRole::Picture(object.alt.clone()),
        };
        let tag = self.node(is);
        let x = self.x + ((self.width - object.width) / 2.0).max(0.0);
        let height = object.height + object.depth + 2.0 * object.pad;
        let y = object.pad;
        self.strip(height, vec![StripMark::Picture { x, y, object, tag }], false);
        self.gap = look::GAP;
    }

    fn table(&mut self, columns: &[Alignment], mut rows: Vec<Vec<Vec<ParagraphItem>>>) {
        const PAD: f32 = 6.0;
        const LEADING: f32 = 13.0;
        let count = rows.iter().map(Vec::len).max().unwrap_or(0).min(64);
        if count == 0 {
            return;
        }
        self.ask(look::GAP);
        rows.iter_mut().for_each(|row| row.resize_with(count, Vec::new));
        let (mut natural, mut least) = (vec![0.0_f32; count], vec![0.0_f32; count]);
        for row in &rows {
            for (column, cell) in row.iter().enumerate() {
                natural[column] = natural[column].max(self.letters.width(cell) + 2.0 * PAD + 0.5);
                least[column] = least[column].max(self.letters.word(cell).min(120.0) + 2.0 * PAD + 0.5);
            }
        }
        let widths = shares(&natural, &least, self.width);
        let total: f32 = widths.iter().sum();
        let left = self.x;
        let limit = (self.size.1 - look::ABOVE - look::BELOW) * 0.6;
        let mut head: Option<Rc<PageStrip>> = None;
        let table = self.node(TextRole::Table);
        self.open.push(table);
        let last = rows.len() - 1;
        for (index, row) in rows.into_iter().enumerate() {
            let is_head = index == 0;
            if is_head && row.iter().all(Vec::is_empty) {
                continue;
            }
            let line = self.node(TextRole::Row);
            self.open.push(line);
            let mut cells: Vec<(f32, Alignment, usize, std::collections::VecDeque<TextLine>)> = Vec::new();
            let mut x = left;
            for (column, cell) in row.into_iter().enumerate() {
                let tag = self.node(if is_head { TextRole::Head } else { TextRole::Cell });
                let lines = self.letters.lines(&cell, widths[column] - 2.0 * PAD, LEADING);
                let align = columns.get(column).copied().unwrap_or(Alignment::None);
                cells.push((x, align, tag, lines.into()));
                x += widths[column];
            }
            self.open.pop();
            // A row that is higher than much of a page is cut between its lines.
            loop {
                let (mut marks_here, mut height) = (Vec::new(), 0.0_f32);
                for (column, (x, align, tag, lines)) in cells.iter_mut().enumerate() {
                    let mut y = PAD - 2.0;
                    while let Some(line) = lines.pop_front_if(|line| y == PAD - 2.0 || y + line.height <= limit) {
                        let free = widths[column] - 2.0 * PAD - line.width;
                        let shift = match align {
                            Alignment::Right => free,
                            Alignment::Center => free / 2.0,
                            Alignment::Left | Alignment::None => 0.0,
                        };
                        marks_here.extend(marks(line.pieces, *x + PAD + shift.max(0.0), y + line.base, *tag));
                        y += line.height;
                    }
                    height = height.max(y);
                }
                let done = cells.iter().all(|(.., lines)| lines.is_empty());
                height += PAD - 2.0;
                if done && (is_head || index < last) {
                    let colour = if is_head { self.tints.muted } else { self.tints.line };
                    let thick = if is_head { 0.8 } else { 0.5 };
                    let fill = StripMark::Fill { x: left, y: height - thick, width: total, height: thick, colour };
                    marks_here.push(fill);
                }
                // The head stays with the first row, and the last row is not left alone.
                self.strip(height, marks_here, is_head || index + 2 == last + 1 && index > 0 && last > 2);
                if let Some(strip) = self.strips.last_mut() {
                    strip.head.clone_from(&head);
                }
                if is_head {
                    head = self.strips.last().map(|strip| Rc::new(copy(strip)));
                }
                if done {
                    break;
                }
            }
        }
        self.open.pop();
        self.gap = look::GAP + 3.0;
    }

    /// Puts the strips on pages.
    pub(super) fn pages(mut self) -> LaidPages<'a> {
        let bottom = self.size.1 - look::BELOW;
        let room = bottom - look::ABOVE;
        let mut pages: Vec<(Vec<PlacedStrip>, String)> = Vec::new();
        let mut page: Vec<PlacedStrip> = Vec::new();
        let (mut y, mut at, mut title) = (look::ABOVE, 0, String::new());
        let strips: Vec<Rc<PageStrip>> = std::mem::take(&mut self.strips).into_iter().map(Rc::new).collect();
        let mut titles = std::mem::take(&mut self.titles).into_iter().peekable();
        while at < strips.len() {
            // What stays together: up to the first that need not stay with the next.
            let mut end = at;
            let high = |strip: &Rc<PageStrip>| strip.above + strip.height;
            let mut own: f32 = high(&strips[at]);
            // More than a page cannot stay together: no need to look further.
            while strips[end].keep && end + 1 < strips.len() && !strips[end + 1].fresh {
                end += 1;
                own += high(&strips[end]);
                if own - strips[at].above > room {
                    break;
                }
            }
            let alone = own - strips[at].above;
            let whole = alone <= room;
            if !whole {
                end = at;
            }
            let needs = if whole { own } else { high(&strips[at]) };
            let fresh = strips[at].fresh;
            if !page.is_empty() && (fresh || y + needs > bottom) {
                pages.push((std::mem::take(&mut page), title.clone()));
                y = look::ABOVE;
            }
            while let Some((_, name)) = titles.next_if(|(first, _)| *first <= at) {
                title = name;
            }
            for strip in &strips[at..=end] {
                if !page.is_empty() && y + high(strip) > bottom {
                    pages.push((std::mem::take(&mut page), title.clone()));
                    y = look::ABOVE;
                }
                if page.is_empty() {
                    if let Some(head) = &strip.head {
                        page.push(PlacedStrip {
                            y,
                            ground: vec![y; head.grounds.len()],
                            strip: head.clone(),
                            again: true,
                        });
                        y += head.height;
                    }
                } else {
                    y += strip.above;
                }
                let ground = strip.grounds.iter().map(|ground| {
                    let before = page.last().filter(|laid| laid.strip.grounds.contains(ground));
                    before.map_or(y, |laid| laid.y + laid.strip.height)
                });
                let ground = ground.collect();
                page.push(PlacedStrip { y, ground, strip: strip.clone(), again: false });
                y += strip.height;
            }
            at = end + 1;
        }
        if !page.is_empty() {
            pages.push((page, title));
        }
        LaidPages { pages, nodes: self.nodes, letters: self.letters, size: self.size }
    }
}

fn marks(pieces: Vec<LinePiece>, x: f32, y: f32, tag: usize) -> Vec<StripMark> {
    pieces.into_iter().map(|piece| StripMark::Piece { x: x + piece.x, y, piece, tag }).collect()
}

/// A strip once more, with the marks that come again.
fn copy(strip: &PageStrip) -> PageStrip {
    let marks = strip.marks.iter().map(|mark| match mark {
        StripMark::Fill { x, y, width, height, colour } => {
            StripMark::Fill { x: *x, y: *y, width: *width, height: *height, colour: *colour }
        }
        StripMark::Piece { x, y, piece, tag } => StripMark::Piece { x: *x, y: *y, piece: piece.clone(), tag: *tag },
        StripMark::Picture { x, y, object, tag } => {
            StripMark::Picture { x: *x, y: *y, object: object.clone(), tag: *tag }
        }
        StripMark::Task { x, y, done, state, tag } => {
            StripMark::Task { x: *x, y: *y, done: *done, state: *state, tag: *tag }
        }
    });
    PageStrip { height: strip.height, marks: marks.collect(), grounds: strip.grounds.clone(), ..PageStrip::default() }
}

fn smaller(items: Vec<ParagraphItem>) -> Vec<ParagraphItem> {
    let share = look::small().size / look::body().size;
    let smaller = |item| match item {
        ParagraphItem::Text(text, style) => ParagraphItem::Text(text, WordStyle { size: style.size * share, ..style }),
        item => item,
    };
    items.into_iter().map(smaller).collect()
}

/// Widths of columns: as they would like; where there is less room, what they need at least, and the rest shared by
/// what they would like beyond it.
fn shares(natural: &[f32], least: &[f32], room: f32) -> Vec<f32> {
    let (wish, need): (f32, f32) = (natural.iter().sum(), least.iter().sum());
    if wish <= room {
        return natural.to_vec();
    }
    if need >= room {
        return least.iter().map(|least| least * room / need).collect();
    }
    let spare = (room - need) / (wish - need);
    natural.iter().zip(least).map(|(natural, least)| least + (natural - least) * spare).collect()
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn columns_share_the_room() {
        assert_eq!(shares(&[50.0, 60.0], &[10.0, 10.0], 200.0), [50.0, 60.0]);
        assert_eq!(shares(&[100.0, 300.0], &[50.0, 50.0], 250.0), [75.0, 175.0]);
        assert_eq!(shares(&[400.0, 400.0], &[200.0, 200.0], 200.0), [100.0, 100.0]);
    }
}
