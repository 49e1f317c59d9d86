//! Asks the kernel that drew a figure of matplotlib to draw it again with the limits that it was zoomed or panned to.
//! Meanwhile, and whenever there's no answer, the stored figure is shown scaled.

use super::{FigureId, FigureSlot, FigureSource, PageFigures};
use eframe::egui;
use egui::Context;
use engine::KernelPhase;
use host::{InquiryAnswer, KernelInquiry};
use plot::{PlotView, PreparedFigure};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;
use store::DocId;

/// How long a view must rest before the kernel is asked, in seconds.
const REDRAW_REST_SECONDS: f64 = 0.25;
/// How long an answer is awaited. The kernel may have begun to run a cell.
const REDRAW_TIMEOUT: Duration = Duration::from_secs(30);

/// Limits of each pair of axes along x and y; `None` for those of the stored figure.
type AxesLimits = Vec<[Option<[f64; 2]>; 2]>;

/// What the kernel was asked to draw for a figure's view, and what it drew.
#[derive(Default)]
pub(super) struct FigureRedraws {
    /// The stored figure, and the ID by which the kernel knows it.
    stored: Option<(FigureSource, Arc<PreparedFigure>, String)>,
    /// Limits of the view, and the time at which it came to rest at them, in seconds.
    resting: (AxesLimits, f64),
    /// Limits that the kernel was last asked for.
    asked: AxesLimits,
    /// The kernel's last drawing, and its limits.
    drawing: Option<(AxesLimits, Arc<PreparedFigure>)>,
}

/// A figure that a kernel is drawing again.
pub(super) struct PendingRedraw {
    name: FigureId,
    kernel_id: String,
    limits: AxesLimits,
    /// Closed without a figure if there's none that can be shown.
    coming: Receiver<Arc<PreparedFigure>>,
}

impl FigureRedraws {
    /// Starts again if the output now holds another figure.
    pub(super) fn follow(&mut self, slot: &FigureSlot, stored: &Arc<PreparedFigure>) {
        let known = self.stored.as_ref().map(|(source, _, id)| (*source, id));
        let now = slot.kernel_id.as_ref().map(|id| (slot.data, id));
        if known != now {
            let stored = slot.kernel_id.clone().map(|id| (slot.data, stored.clone(), id));
            *self = FigureRedraws { stored, ..FigureRedraws::default() };
        }
    }

    /// Returns the kernel's drawing for a view, and the view in which to show it.
    pub(super) fn drawing_for(&self, view: &PlotView) -> Option<(Arc<PreparedFigure>, PlotView)> {
        let (_, drawing) = self.drawing.as_ref().filter(|(limits, _)| *limits == view.limits)?;
        Some((drawing.clone(), PlotView { limits: Vec::new(), hidden: view.hidden.clone() }))
    }

    /// Drops a drawing that can't be shown.
    pub(super) fn discard_drawing(&mut self) {
        self.drawing = None;
    }

    /// Notes the limits of the view. Returns how long they must still rest before the kernel is asked, in seconds;
    /// `None` if there's nothing to ask.
    fn rest(&mut self, view: &PlotView, now: f64) -> Option<f64> {
        if self.resting.0 != view.limits {
            self.resting = (view.limits.clone(), now);
        }
        let is_moved = view.limits.iter().flatten().any(Option::is_some);
        let wanted = is_moved && self.asked != view.limits && self.stored.is_some();
        wanted.then_some(REDRAW_REST_SECONDS - (now - self.resting.1))
    }
}

impl PageFigures {
    /// Asks a note's kernel to draw a figure again whose view was zoomed or panned and has rested since. It asks one at
    /// a time, and only an idle kernel.
    pub fn redraw_by_kernel(&mut self, ctx: &Context, driver: &mut host::Driver, note: DocId) {
        if !self.receive_redraw(ctx) {
            return;
        }
        let is_idle = driver.session().note(note).is_some_and(|note| note.kernel == KernelPhase::Idle);
        let (frame, now) = (self.frame, ctx.input(|input| input.time));
        for (name, looked) in self.looked.iter_mut().filter(|(_, looked)| looked.seen == frame) {
            let Some(left) = looked.redraws.rest(&looked.view, now) else { continue };
            if left > 0.0 {
                ctx.request_repaint_after(Duration::from_secs_f64(left));
                continue;
            }
            let Some((_, stored, id)) = looked.redraws.stored.as_ref().filter(|_| is_idle) else { continue };
            let (limits, kernel_id) = (looked.view.limits.clone(), id.clone());
            let inquiry = KernelInquiry::Redraw { figure: id.clone(), limits: limits.clone() };
            let Some(answer) = driver.ask_kernel(note, inquiry) else { continue };
            let coming = prepare_answer(answer, stored.clone(), ctx);
            looked.redraws.asked.clone_from(&limits);
            self.redraw = Some(PendingRedraw { name: *name, kernel_id, limits, coming });
            return;
        }
    }

    /// Takes the kernel's drawing if it has arrived. Returns whether the kernel can be asked again.
    fn receive_redraw(&mut self, ctx: &Context) -> bool {
        let Some(pending) = &self.redraw else { return true };
        match pending.coming.try_recv() {
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => self.redraw = None,
            Ok(drawing) => {
                let Some(PendingRedraw { name, kernel_id, limits, .. }) = self.redraw.take() else { return true };
                let redraws = self.looked.get_mut(&name).map(|looked| &mut looked.redraws);
                let is_same =
                    |redraws: &&mut FigureRedraws| redraws.stored.as_ref().is_some_and(|(_, _, id)| *id == kernel_id);
                if let Some(redraws) = redraws.filter(is_same) {
                    redraws.drawing = Some((limits, drawing));
                    ctx.request_repaint();
                }
            }
        }
        true
    }
}

/// Waits for a kernel's answer on another thread, and prepares the figure if it fits in place of the stored one.
fn prepare_answer(
    answer: Receiver<InquiryAnswer>,
    stored: Arc<PreparedFigure>,
    ctx: &Context,
) -> Receiver<Arc<PreparedFigure>> {
    let (send, coming) = channel();
    let wake = ctx.clone();
    std::thread::spawn(move || {
        // The answer is as untrusted as what a cell shows, and is read by the same bounded reader.
        if let Ok(InquiryAnswer::Figure(Some(json))) = answer.recv_timeout(REDRAW_TIMEOUT)
            && let Ok(drawing) = PreparedFigure::from_json(&json)
            && drawing.has_canvas_of(&stored)
        {
            let _ = send.send(Arc::new(drawing)); // the note may be gone
        }
        drop(send);
        wake.request_repaint();
    });
    coming
}
