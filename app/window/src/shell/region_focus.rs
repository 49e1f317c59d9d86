//! F6 moves the keyboard focus between the regions of the window, as in browsers and VS Code.

use super::pane_state::PaneState;
use eframe::egui;
use egui::{Context, Id, Rect, Sense};

/// Regions of the window, in the order in which F6 visits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowRegion {
    LeftPanel,
    Note,
    RightPanel,
    StatusBar,
    Rail,
}

/// Positions of the regions, and the last focused widget in each.
#[derive(Default)]
pub(crate) struct RegionFocus {
    left: RegionPlace,
    note: RegionPlace,
    right: RegionPlace,
    status: RegionPlace,
    rail: RegionPlace,
}

#[derive(Clone, Copy, Default)]
struct RegionPlace {
    /// The region's area; `None` while it isn't visible.
    rect: Option<Rect>,
    last: Option<Id>,
}

impl RegionFocus {
    const ORDER: [WindowRegion; 5] = [
        WindowRegion::LeftPanel,
        WindowRegion::Note,
        WindowRegion::RightPanel,
        WindowRegion::StatusBar,
        WindowRegion::Rail,
    ];

    /// Sets the areas for this frame: left panel, note, right panel, status bar and rail. Empty ones aren't visible.
    pub(crate) fn set_places(&mut self, [left, note, right, status, rail]: [Rect; 5]) {
        let shown = |rect: Rect| rect.is_positive().then_some(rect);
        self.left.rect = shown(left);
        self.note.rect = shown(note);
        self.right.rect = shown(right);
        self.status.rect = shown(status);
        self.rail.rect = shown(rail);
    }

    fn place(&mut self, region: WindowRegion) -> &mut RegionPlace {
        match region {
            WindowRegion::LeftPanel => &mut self.left,
            WindowRegion::Note => &mut self.note,
            WindowRegion::RightPanel => &mut self.right,
            WindowRegion::StatusBar => &mut self.status,
            WindowRegion::Rail => &mut self.rail,
        }
    }

    /// Moves the keyboard focus to the next or previous region that has something to focus. If nothing has the focus,
    /// the note is the first to get it.
    pub(crate) fn go_to_region(&mut self, panes: &mut PaneState, ctx: &Context, back: bool) {
        let focused = ctx.memory(|memory| memory.focused());
        let center =
            focused.and_then(|id| ctx.viewport(|view| view.prev_pass.widgets.get(id).map(|it| it.rect.center())));
        let has = |place: &RegionPlace| place.rect.zip(center).is_some_and(|(rect, center)| rect.contains(center));
        let note = Self::ORDER.iter().position(|region| *region == WindowRegion::Note).unwrap_or_default();
        let outside = match (focused, back) {
            (Some(_), _) => note,
            (None, false) => note - 1,
            (None, true) => note + 1,
        };
        let here = Self::ORDER.iter().position(|region| has(self.place(*region))).unwrap_or(outside);
        if focused.is_some() {
            self.place(Self::ORDER[here]).last = focused;
        }
        if Self::ORDER[here] == WindowRegion::Note {
            panes.active.page.keep_caret(&panes.active.editor);
        }
        let count = Self::ORDER.len();
        for step in 1..count {
            let region = Self::ORDER[(if back { here + count - step } else { here + step }) % count];
            let place = *self.place(region);
            let Some(rect) = place.rect else { continue };
            if region == WindowRegion::Note && panes.take_keyboard() {
                break;
            }
            if let Some(id) = focusable_in(ctx, rect, place.last) {
                ctx.memory_mut(|memory| memory.request_focus(id));
                break;
            }
        }
        ctx.request_repaint();
    }
}

/// Returns the widget that was last focused in an area if it's still there, or otherwise the first focusable one.
fn focusable_in(ctx: &Context, rect: Rect, last: Option<Id>) -> Option<Id> {
    ctx.viewport(|view| {
        let widgets = &view.prev_pass.widgets;
        let fits = |widget: &&egui::WidgetRect| {
            widget.sense.contains(Sense::FOCUSABLE)
                && widget.enabled
                && widget.interact_rect.is_positive()
                && rect.contains(widget.rect.center())
        };
        if let Some(last) = last.filter(|id| widgets.get(*id).as_ref().is_some_and(fits)) {
            return Some(last);
        }
        let all = widgets.get_layer(egui::LayerId::background()).filter(fits);
        let place = |widget: &egui::WidgetRect| (widget.rect.top(), widget.rect.left());
        all.min_by(|one, other| place(one).partial_cmp(&place(other)).unwrap_or(std::cmp::Ordering::Equal))
            .map(|widget| widget.id)
    })
}

impl PaneState {
    /// Focuses the open note, with its caret where it was. Returns `false` if no note can take the focus.
    fn take_keyboard(&mut self) -> bool {
        if self.view.is_some() || self.active.note.is_none() {
            return false;
        }
        if self.active.editor.caret.is_none() {
            self.active.page.restore_caret(&mut self.active.editor);
        }
        self.active.editor.focus = true;
        true
    }
}
