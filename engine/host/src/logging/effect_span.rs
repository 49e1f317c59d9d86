//! Tracing spans of effects: their names at level debug, and a warning for an effect that delays the session's thread.

use super::{content_field, millis};
use engine::Effect;
use std::time::{Duration, Instant};
use tracing::span::EnteredSpan;

/// Maximum time to start an effect. Other threads do the work, so a slower start is noticeable in the window.
const MAX_EFFECT_TIME: Duration = Duration::from_millis(50);

/// The span of an effect, until dropped.
pub(crate) struct EffectSpan {
    name: &'static str,
    begun: Instant,
    _span: EnteredSpan,
}

impl EffectSpan {
    pub(crate) fn enter(effect: &Effect) -> EffectSpan {
        let name = effect_name(effect);
        let span = tracing::debug_span!(target: "host::effect", "effect", name).entered();
        tracing::debug!(target: "host::effect", content = content_field(EffectContent(effect)), "perform");
        EffectSpan { name, begun: Instant::now(), _span: span }
    }
}

impl Drop for EffectSpan {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        if took > MAX_EFFECT_TIME {
            let took_ms = millis(took);
            tracing::warn!(target: "host::effect", effect = self.name, took_ms, "an effect held up the session");
        }
    }
}

/// Displays the content of an effect. Database writes are unreadable bytes, so only their number is shown.
struct EffectContent<'a>(&'a Effect);

impl std::fmt::Display for EffectContent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Effect::Append { batch, writes } = self.0 {
            return write!(f, "batch {batch}: {} writes", writes.len());
        }
        write!(f, "{:?}", self.0)
    }
}

fn effect_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Append { .. } => "Append",
        Effect::LoadVolume { .. } => "LoadVolume",
        Effect::Scan { .. } => "Scan",
        Effect::Index { .. } => "Index",
        Effect::MoveFiles { .. } => "MoveFiles",
        Effect::Discard { .. } => "Discard",
        Effect::Watch { .. } => "Watch",
        Effect::Unwatch { .. } => "Unwatch",
        Effect::ReadNote { .. } => "ReadNote",
        Effect::LoadNote { .. } => "LoadNote",
        Effect::ReadFile { .. } => "ReadFile",
        Effect::WriteFile { .. } => "WriteFile",
        Effect::Sync(_) => "Sync",
        Effect::SyncFiles(_) => "SyncFiles",
        Effect::RetrySync => "RetrySync",
        Effect::RefuseReceived { .. } => "RefuseReceived",
        Effect::Present { .. } => "Present",
        Effect::WriteMarker { .. } => "WriteMarker",
        Effect::FindKernels { .. } => "FindKernels",
        Effect::Eval { .. } => "Eval",
        Effect::MoveState { .. } => "MoveState",
        Effect::ShareState { .. } => "ShareState",
        Effect::Reserve { .. } => "Reserve",
        Effect::Answer { .. } => "Answer",
        Effect::Interrupt { .. } => "Interrupt",
        Effect::KillKernel { .. } => "KillKernel",
        Effect::LoadSession { .. } => "LoadSession",
        Effect::LoadRun { .. } => "LoadRun",
        Effect::LoadRegistry { .. } => "LoadRegistry",
        Effect::ReadSetup => "ReadSetup",
        Effect::Gather { .. } => "Gather",
        Effect::ReadMemory { .. } => "ReadMemory",
        Effect::CallModel { .. } => "CallModel",
        Effect::CancelModel { .. } => "CancelModel",
        Effect::RunTool { .. } => "RunTool",
        Effect::CancelTool { .. } => "CancelTool",
        Effect::AnswerServer { .. } => "AnswerServer",
        Effect::CloseBrowser { .. } => "CloseBrowser",
        Effect::RemoveContainers { .. } => "RemoveContainers",
        Effect::SendWebhook { .. } => "SendWebhook",
        Effect::Wake { .. } => "Wake",
    }
}
