//! Queries that read collections: the rows are evaluated here and sent with the query, because a kernel can't read the
//! index.

use crate::clock;
use crate::fs::confined_dir::ConfinedPath;
use crate::mailbox::Mailbox;
use crate::volume_mirror::mirror_volume;
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use store::DocId;
use text::sql_cell::SqlCell;

/// Maximum time for evaluating the collections of a query.
const QUERY_TABLES_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a collection's file in bytes.
const MAX_COLLECTION_BYTES: u64 = 16 << 20;

/// A query that waits for the rows of its collections.
pub(super) struct CollectionQuery {
    pub(super) note: DocId,
    pub(super) query: String,
    /// The request to the kernel, whose code gets the rows.
    pub(super) request: Value,
    /// Doesn't keep the kernel from ending.
    pub(super) requests: Weak<Sender<String>>,
    pub(super) alive: Arc<AtomicBool>,
    pub(super) inbox: Mailbox,
    pub(super) workspace: PathBuf,
}

impl CollectionQuery {
    /// Evaluates the collections on a thread of its own, which then sends the request.
    pub(super) fn start(mut self) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("query tables".to_owned());
        let work = move || {
            // The session has parsed the query before.
            let Ok(cell) = SqlCell::parse(&self.query) else { return };
            let names = cell.collections();
            let tables = self.evaluate_tables(&names).unwrap_or_else(|why| {
                let error = json!({"error": format!("{why:#}")});
                Value::Object(names.into_iter().map(|name| (name, error.clone())).collect::<Map<_, _>>())
            });
            self.request["content"]["code"] = Value::from(cell.kernel_code(Some(&tables)));
            if let Some(requests) = self.requests.upgrade() {
                // If the kernel has died in the meantime, its reader reports that.
                let _ = requests.send(self.request.to_string());
            }
        };
        thread.stack_size(collection::EVAL_STACK_BYTES).spawn(work).map(drop)
    }

    fn evaluate_tables(&self, names: &BTreeSet<String>) -> anyhow::Result<Value> {
        let note = self.note;
        let read = self.inbox.read(move |session| {
            let (volume, path) = session.locate_file(note)?;
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            Some((volume, folder, session.volume(volume)?.root.clone()?))
        });
        let (volume, folder, root) = read.flatten().context("the note's volume has no folder on this device")?;
        // Cells don't see hidden paths, and so no rows of them.
        let hidden = super::limits_in_folder(&self.workspace, &folder)?.paths;
        let mirror = mirror_volume(&self.inbox, volume, |path| !hidden.is_hidden(path))?;
        let until = Instant::now() + QUERY_TABLES_TIMEOUT;
        let read = |path: &str| ConfinedPath::new(&root, path).read_text(MAX_COLLECTION_BYTES);
        let mut goes_on = |_| Instant::now() < until && self.alive.load(Ordering::Acquire);
        let place = (note, clock::local_now());
        Ok(collection::evaluate_query_tables(names, mirror.source(), place, read, &mut goes_on))
    }
}
