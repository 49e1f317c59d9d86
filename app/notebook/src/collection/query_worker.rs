//! Evaluates collections on a thread with its own copy of the index's data, which is synced in small slices per frame.
//! Pages and embeds request a table; they get the current one, and a newer one later.

use collection::{Collection, CollectionTable, LocalNow, MirroredFile, VolumeMirror};
use eframe::egui;
use egui::Context;
use engine::{Session, Volume};
use std::collections::{HashMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::DocId;

/// Maximum time per frame for sending files to the thread.
const FEED_FRAME_BUDGET: Duration = Duration::from_millis(2);
/// Number of files sent between two checks of the clock.
const FILES_PER_CLOCK_CHECK: usize = 64;
/// Minimum interval between two tables while notes change, in seconds.
const TABLE_REFRESH_INTERVAL_SECONDS: f64 = 0.2;
/// Interval after which optimistic values are checked again, in seconds.
const OPTIMISTIC_RECHECK_SECONDS: f64 = 4.0;
/// Number of frames after which an unused table is evicted.
const TABLE_EVICTION_FRAMES: u64 = 600;

/// A request for a collection's table.
pub struct CollectionQuery<'a> {
    /// The requesting widget; each has one table.
    pub by: egui::Id,
    /// The volume whose files are its rows.
    pub volume: DocId,
    /// The collection.
    pub base: &'a Arc<Collection>,
    /// Hash of the collection's text.
    pub hash: u64,
    /// Index of the view.
    pub view: usize,
    /// The note that `this` refers to.
    pub this: Option<DocId>,
    /// The current time for formulas.
    pub now: LocalNow,
}

/// Current answer to a query.
#[derive(Clone, Default)]
pub struct CollectionAnswer {
    /// The last computed table.
    pub table: Option<Arc<CollectionTable>>,
    /// Number of files evaluated, and of files sent to the thread.
    pub seen: (usize, usize),
}

/// What a table was made from: base, view, note, day, and state of the files.
#[derive(Clone, Copy, PartialEq)]
struct TableStamp {
    base: u64,
    pub view: usize,
    volume: DocId,
    this: Option<DocId>,
    day: i64,
    pub files: u64,
}

impl TableStamp {
    fn is_like(&self, other: &TableStamp) -> bool {
        TableStamp { files: 0, ..*self } == TableStamp { files: 0, ..*other }
    }

    /// Returns whether a table computed from this may be shown until a newer one is ready.
    fn is_near(&self, other: &TableStamp) -> bool {
        (self.view, self.volume, self.this) == (other.view, other.volume, other.this)
    }
}

struct TableEntry {
    made: Option<(TableStamp, Arc<CollectionTable>)>,
    /// The table being computed, its progress, and the flag that cancels it.
    making: Option<(TableStamp, Arc<AtomicUsize>, Arc<AtomicBool>)>,
    began: f64,
    seen: u64,
}

/// How much of a volume was sent to the thread.
#[derive(Default)]
struct VolumeFeed {
    changes: u64,
    /// Position of the initial transfer; `None` once it's complete.
    first: Option<Option<String>>,
    /// Incremented with each change sent.
    version: u64,
    sent_file_count: usize,
    asked: u64,
    /// Files with optimistic values, and when they were set in seconds.
    ahead: VecDeque<(f64, DocId)>,
}

enum QueryJob {
    Forget(DocId),
    Take(DocId, String, Vec<MirroredFile>),
    Make(Box<TableRequest>),
}

struct TableRequest {
    by: egui::Id,
    stamp: TableStamp,
    base: Arc<Collection>,
    now: LocalNow,
    seen: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

type TableResult = (egui::Id, TableStamp, Option<CollectionTable>);

/// Evaluates collections on a separate thread.
#[derive(Default)]
pub struct QueryWorker {
    way: Option<(Sender<QueryJob>, Mutex<Receiver<TableResult>>)>,
    feeds: HashMap<DocId, VolumeFeed>,
    entries: HashMap<egui::Id, TableEntry>,
    frame: u64,
    time: f64,
}

impl QueryWorker {
    fn send(&mut self, ctx: &Context, job: QueryJob) {
        let (jobs, _) = self.way.get_or_insert_with(|| {
            let ((jobs, queue), (answers, done)) = (channel::<QueryJob>(), channel());
            let ctx = ctx.clone();
            let thread =
                std::thread::Builder::new().name("collections".to_owned()).stack_size(collection::EVAL_STACK_BYTES);
            // Without a thread, the page stays in its loading state.
            let _ = thread.spawn(move || work(&queue, &answers, &ctx));
            (jobs, Mutex::new(done))
        });
        // The receiver ends only with the program or the connection.
        let _ = jobs.send(job);
    }

    /// Receives finished tables.
    pub fn take(&mut self) {
        let done: Vec<TableResult> = match self.way.as_mut().and_then(|(_, done)| done.get_mut().ok()) {
            Some(done) => done.try_iter().collect(),
            None => Vec::new(),
        };
        for (by, stamp, table) in done {
            let Some(entry) = self.entries.get_mut(&by) else { continue };
            if entry.making.as_ref().is_some_and(|(making, ..)| *making == stamp) {
                entry.making = None;
                entry.made = table.map(|table| (stamp, Arc::new(table))).or(entry.made.take());
            }
        }
    }

    fn query(&mut self, ctx: &Context, asked: &CollectionQuery<'_>) -> CollectionAnswer {
        let frame = self.frame;
        let feed =
            self.feeds.entry(asked.volume).or_insert_with(|| VolumeFeed { first: Some(None), ..VolumeFeed::default() });
        feed.asked = frame;
        let (fed, told) = (feed.first.is_none(), feed.sent_file_count);
        let stamp = TableStamp {
            base: asked.hash,
            view: asked.view,
            volume: asked.volume,
            this: asked.this,
            day: asked.now.today().0,
            files: feed.version,
        };
        let entry = self.entries.entry(asked.by).or_insert_with(|| TableEntry {
            made: None,
            making: None,
            began: f64::MIN,
            seen: frame,
        });
        entry.seen = frame;
        let made = entry.made.as_ref().filter(|(made, _)| made.is_near(&stamp));
        let table = made.map(|(_, table)| table.clone());
        let fresh = made.is_some_and(|(made, _)| *made == stamp);
        let same = made.is_some_and(|(made, _)| made.is_like(&stamp));
        let looked = entry.making.as_ref().map_or(0, |(_, seen, _)| seen.load(Ordering::Relaxed));
        let answer = CollectionAnswer { table, seen: (looked, told) };
        if fresh || !fed {
            return answer;
        }
        if let Some((making, _, stop)) = &entry.making {
            if making.is_like(&stamp) {
                return answer; // what changed meanwhile is looked at next
            }
            stop.store(true, Ordering::Relaxed);
            entry.making = None;
        }
        let wait = entry.began + TABLE_REFRESH_INTERVAL_SECONDS - self.time;
        if same && wait > 0.0 {
            ctx.request_repaint_after(Duration::from_secs_f64(wait));
            return answer;
        }
        let (seen, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        entry.making = Some((stamp, seen.clone(), stop.clone()));
        entry.began = self.time;
        let order = TableRequest { by: asked.by, stamp, base: asked.base.clone(), now: asked.now, seen, stop };
        self.send(ctx, QueryJob::Make(Box::new(order)));
        answer
    }

    /// Sends a volume's changes to the thread. Returns whether there are more.
    fn send_changed_files(&mut self, ctx: &Context, volume: &Volume, until: Instant) -> bool {
        let (frame, time) = (self.frame, self.time);
        let Some(feed) = self.feeds.get_mut(&volume.id).filter(|feed| feed.asked + 2 >= frame) else { return false };
        let mut told: Vec<MirroredFile> = Vec::new();
        let mut more = false;
        let mut forget = false;
        if feed.first.is_none() {
            match volume.links.changed_since(feed.changes) {
                Some(changed) => {
                    let mut changed: Vec<DocId> = changed.collect();
                    changed.sort_unstable();
                    changed.dedup();
                    told.extend(changed.into_iter().map(|file| VolumeMirror::read_file_state(volume.into(), file)));
                    feed.changes = volume.links.change_count();
                }
                None => {
                    forget = true;
                    *feed = VolumeFeed {
                        first: Some(None),
                        asked: feed.asked,
                        version: feed.version,
                        ..VolumeFeed::default()
                    };
                }
            }
            while feed.ahead.front().is_some_and(|(since, _)| since + OPTIMISTIC_RECHECK_SECONDS < time) {
                told.extend(feed.ahead.pop_front().map(|(_, file)| VolumeMirror::read_file_state(volume.into(), file)));
            }
        }
        if let Some(at) = &mut feed.first {
            if at.is_none() {
                feed.changes = volume.links.change_count();
            }
            let from = at.clone().map_or(Bound::Unbounded, Bound::Excluded);
            let mut rows = volume.files.range::<String, _>((from, Bound::Unbounded));
            let mut last = None;
            loop {
                let count = told.len();
                for (path, row) in rows.by_ref().take(FILES_PER_CLOCK_CHECK) {
                    told.push((row.id, Some((row.clone(), volume.links.outline(row.id).cloned()))));
                    last = Some(path);
                }
                if told.len() < count + FILES_PER_CLOCK_CHECK {
                    feed.first = None;
                    break;
                }
                if Instant::now() >= until {
                    more = true;
                    feed.first = Some(last.cloned());
                    break;
                }
            }
            feed.sent_file_count += told.len();
        } else {
            feed.sent_file_count = volume.files.len();
        }
        if !told.is_empty() || forget {
            feed.version += 1;
        }
        if forget {
            self.send(ctx, QueryJob::Forget(volume.id));
        }
        if !told.is_empty() {
            self.send(ctx, QueryJob::Take(volume.id, volume.links.volume_name().to_owned(), told));
            more = true; // the tables are to be made of it
        }
        more
    }
}

fn work(queue: &Receiver<QueryJob>, answers: &Sender<TableResult>, ctx: &Context) {
    let mut mirrors: HashMap<DocId, VolumeMirror> = HashMap::new();
    for job in queue {
        match job {
            QueryJob::Forget(volume) => _ = mirrors.remove(&volume),
            QueryJob::Take(volume, name, told) => {
                let mirror = mirrors.entry(volume).or_default();
                mirror.set_volume_name(&name);
                told.into_iter().for_each(|file| mirror.apply(file));
            }
            QueryJob::Make(order) => {
                let TableRequest { by, stamp, base, now, seen, stop } = *order;
                let mirror = mirrors.entry(stamp.volume).or_default();
                let mut goes_on = |count: usize| {
                    seen.store(count, Ordering::Relaxed);
                    !stop.load(Ordering::Relaxed)
                };
                let table = base.evaluate_view_while(mirror.source(), stamp.view, stamp.this, now, &mut goes_on);
                if answers.send((by, stamp, table)).is_err() {
                    return;
                }
                ctx.request_repaint();
            }
        }
    }
}

impl egui::Plugin for QueryWorker {
    fn debug_name(&self) -> &'static str {
        "collections"
    }

    fn on_begin_pass(&mut self, ui: &mut egui::Ui) {
        self.frame += 1;
        self.time = ui.input(|input| input.time);
        self.take();
        let frame = self.frame;
        self.entries.retain(|_, entry| {
            let keep = entry.seen + TABLE_EVICTION_FRAMES >= frame;
            if let Some((_, _, stop)) = entry.making.as_ref().filter(|_| !keep) {
                stop.store(true, Ordering::Relaxed);
            }
            keep
        });
    }
}

/// Returns a collection's current table; updates come later.
pub fn query_table(ctx: &Context, asked: &CollectionQuery<'_>) -> CollectionAnswer {
    ctx.with_plugin(|desk: &mut QueryWorker| desk.query(ctx, asked)).unwrap_or_default()
}

/// Sends changes since the last frame to the thread.
pub fn sync_files(ctx: &Context, session: &Session) {
    let until = Instant::now() + FEED_FRAME_BUDGET;
    let more = ctx.with_plugin(|desk: &mut QueryWorker| {
        let mut more = false;
        for volume in session.volumes().filter(|volume| volume.known) {
            more |= desk.send_changed_files(ctx, volume, until);
        }
        more
    });
    if more == Some(true) {
        ctx.request_repaint();
    }
}

/// Shows a property's new value before the note is saved and indexed.
pub fn apply_optimistically(ctx: &Context, volume: &Volume, file: DocId, key: &str, value: Option<&serde_json::Value>) {
    let (file, now) = VolumeMirror::read_file_state(volume.into(), file);
    let Some((row, outline)) = now else { return };
    let mut outline = outline.map_or_else(Default::default, |outline| (*outline).clone());
    let known = outline.properties.keys().find(|known| known.eq_ignore_ascii_case(key)).cloned();
    let key = known.unwrap_or_else(|| key.to_owned());
    match value {
        Some(value) => _ = outline.properties.insert(key, value.clone()),
        None => _ = outline.properties.remove(&key),
    }
    ctx.with_plugin(|desk: &mut QueryWorker| {
        let time = desk.time;
        let Some(feed) = desk.feeds.get_mut(&volume.id) else { return };
        feed.version += 1;
        feed.ahead.push_back((time, file));
        // Show the user's own changes immediately.
        desk.entries.values_mut().for_each(|entry| entry.began = f64::MIN);
        desk.send(
            ctx,
            QueryJob::Take(
                volume.id,
                volume.links.volume_name().to_owned(),
                vec![(file, Some((row, Some(Arc::new(outline)))))],
            ),
        );
    });
    ctx.request_repaint();
}
