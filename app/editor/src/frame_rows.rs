//! All rows of a data frame of which an output holds only the first: asked of the kernel that showed it, piece by
//! piece, and kept while the table is shown. Sorting, filtering and summaries then work as for any other table.

use crate::table_data::MAX_TABLE_BYTES;
use engine::{KernelPhase, Note};
use host::{InquiryAnswer, KernelInquiry};
use std::sync::mpsc::{Receiver, TryRecvError};
use store::DocId;
use ui::text::{counted, format_thousands};

/// Maximum length of the ID by which a kernel knows a frame.
const MAX_FRAME_ID_BYTES: usize = 64;
/// Maximum number of pieces of a frame. A kernel could send rows without text.
const MAX_FRAME_PIECES: usize = 20_000;

/// A data frame of which a table shows the first rows, and the rows that have arrived from its kernel.
pub(crate) struct FrameRows {
    /// ID by which the kernel knows the frame.
    frame: String,
    /// Number of all rows, as the output says.
    all: usize,
    state: FetchState,
}

enum FetchState {
    /// The user hasn't asked for all rows.
    Offered,
    /// Pieces of CSV, and their number of rows; the kernel's next answer, if it was asked; and the note's counter of
    /// runs since the first piece.
    Fetching {
        pieces: Vec<String>,
        rows: usize,
        waits: Option<Receiver<InquiryAnswer>>,
        run_revision: Option<u64>,
    },
    /// The table was given all rows.
    Fetched,
    Failed(&'static str),
}

impl FrameRows {
    /// Describes a frame by the ID and the number of rows in its output's metadata. `None` if the ID is too long.
    pub(crate) fn new(frame: &str, all: usize) -> Option<FrameRows> {
        let is_short = frame.len() <= MAX_FRAME_ID_BYTES;
        is_short.then(|| FrameRows { frame: frame.to_owned(), all, state: FetchState::Offered })
    }

    /// Returns whether this is the frame with this ID.
    pub(crate) fn is_frame(&self, frame: &str) -> bool {
        self.frame == frame
    }

    /// Returns whether all rows have arrived.
    pub(crate) fn is_fetched(&self) -> bool {
        matches!(self.state, FetchState::Fetched)
    }

    /// Starts to fetch all rows.
    pub(crate) fn start(&mut self) {
        self.state = FetchState::Fetching { pieces: Vec::new(), rows: 0, waits: None, run_revision: None };
    }

    /// Stops with a message.
    pub(crate) fn fail(&mut self, why: &'static str) {
        self.state = FetchState::Failed(why);
    }

    /// Returns the label of the button that fetches all rows, if they can be fetched.
    pub(crate) fn offer(&self) -> Option<String> {
        matches!(self.state, FetchState::Offered).then(|| format!("Show all {}", counted(self.all, "row")))
    }

    /// Returns how far it is, or what went wrong.
    pub(crate) fn message(&self) -> Option<String> {
        match &self.state {
            FetchState::Offered | FetchState::Fetched => None,
            FetchState::Fetching { rows, .. } => {
                Some(format!("Reading {} of {} …", format_thousands(*rows), counted(self.all, "row")))
            }
            FetchState::Failed(why) => Some((*why).to_owned()),
        }
    }

    /// Begins again if a cell has run since: it may have changed the frame, and rows from before and after that don't
    /// belong together.
    fn follow_runs(&mut self, now: Option<u64>) {
        if let FetchState::Fetching { pieces, rows, waits, run_revision } = &mut self.state
            && *run_revision != now
        {
            pieces.clear();
            (*rows, *waits, *run_revision) = (0, None, now);
        }
    }

    /// Takes what the kernel has answered, and asks for the next rows if it's idle. Returns the pieces of CSV once all
    /// rows are there.
    pub(crate) fn fetch(&mut self, driver: &mut host::Driver, note: DocId) -> Option<Vec<String>> {
        const GONE: &str = "The kernel no longer has all these rows. Run the cell again.";
        self.follow_runs(driver.session().note(note).map(Note::run_revision));
        let FetchState::Fetching { pieces, rows, waits, .. } = &mut self.state else { return None };
        if let Some(answer) = waits {
            match answer.try_recv() {
                Err(TryRecvError::Empty) => return None,
                Ok(InquiryAnswer::FrameRows(Some((csv, count)))) if count > 0 => {
                    let bytes = pieces.iter().map(String::len).sum::<usize>() + csv.len();
                    if bytes > MAX_TABLE_BYTES || pieces.len() >= MAX_FRAME_PIECES {
                        self.state = FetchState::Failed("There are too many rows to show them all.");
                        return None;
                    }
                    pieces.push(csv);
                    *rows = rows.saturating_add(count);
                    *waits = None;
                }
                Ok(_) | Err(TryRecvError::Disconnected) => {
                    self.state = FetchState::Failed(GONE);
                    return None;
                }
            }
        }
        if *rows >= self.all {
            let pieces = std::mem::take(pieces);
            self.state = FetchState::Fetched;
            return Some(pieces);
        }
        match driver.session().note(note).map(|note| note.kernel) {
            Some(KernelPhase::Idle) => {
                *waits = driver.ask_kernel(note, KernelInquiry::FrameRows { frame: self.frame.clone(), first: *rows });
                if waits.is_none() {
                    self.state = FetchState::Failed(GONE);
                }
            }
            // It continues after the cell.
            Some(KernelPhase::Busy(_)) => {}
            Some(KernelPhase::Off) | None => self.state = FetchState::Failed(GONE),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_from_before_a_run_are_fetched_again() {
        let mut frame = FrameRows::new("0x1", 3).expect("a short ID");
        frame.start();
        frame.follow_runs(Some(4));
        if let FetchState::Fetching { pieces, rows, .. } = &mut frame.state {
            pieces.push("n\n7\n".to_owned());
            *rows = 1;
        }
        frame.follow_runs(Some(4));
        assert_eq!(frame.message().as_deref(), Some("Reading 1 of 3 rows …"));
        frame.follow_runs(Some(5));
        assert_eq!(frame.message().as_deref(), Some("Reading 0 of 3 rows …"));
    }
}
