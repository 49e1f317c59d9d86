//! When the memory of volumes is consolidated after sessions: once no agent has worked in a volume for a while.

use crate::agent_definition::is_memory_agent;
use crate::delegated_run::requesting_run;
use std::collections::{BTreeMap, BTreeSet};
use store::{DocId, RunAbout};

/// How long no agent must have worked in a volume before its memory is consolidated, in milliseconds.
pub const SESSION_IDLE_MS: i64 = 5 * 60_000;

/// Volumes in which runs have ended since their memory was consolidated.
#[derive(Debug, Default)]
pub struct IdleConsolidation {
    /// Volumes, each with when it's due, in milliseconds since 1970.
    due: BTreeMap<DocId, i64>,
}

impl IdleConsolidation {
    /// Handles that a run has ended. Delegated runs don't count, since the run that waits for them continues, nor do
    /// those of memory agents.
    pub fn on_run_ended(&mut self, about: &RunAbout) {
        let ended = about.ended.filter(|_| requesting_run(about.origin).is_none() && !is_memory_agent(&about.agent));
        if let Some(ended) = ended {
            self.due.insert(about.volume, ended.saturating_add(SESSION_IDLE_MS));
        }
    }

    /// Takes the volumes that are due now. Where agents still work, the time begins again. Also returns when the next
    /// one is due.
    pub fn take_due(&mut self, now: i64, busy: &BTreeSet<DocId>) -> (Vec<DocId>, Option<i64>) {
        for (volume, at) in &mut self.due {
            if busy.contains(volume) {
                *at = now.saturating_add(SESSION_IDLE_MS);
            }
        }
        let taken: Vec<DocId> = self.due.iter().filter(|(_, at)| **at <= now).map(|(volume, _)| *volume).collect();
        self.due.retain(|_, at| *at > now);
        (taken, self.due.values().min().copied())
    }

    /// Returns whether no volume waits.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::RunOrigin;

    fn ended(volume: DocId, origin: RunOrigin, ended: i64) -> RunAbout {
        let about = serde_json::json!({"session": DocId([7; 16]), "asked": store::MessageId(1),
            "head": store::MessageId(1), "volume": volume, "note": null, "prompt": "x", "agent": "assistant",
            "startTime": 0, "ended": ended, "ending": "done", "iteration": 1, "limit": 20, "agentState": "idle",
            "spent": {"inputTokens": 1, "outputTokens": 1, "cost": 0.0}, "budget": null});
        RunAbout { origin, ..serde_json::from_value(about).expect("what is said of a run") }
    }

    #[test]
    fn a_volume_is_due_once_after_its_last_run() {
        let (one, other) = (DocId([1; 16]), DocId([2; 16]));
        let mut idle = IdleConsolidation::default();
        idle.on_run_ended(&ended(other, RunOrigin::Agent { run: one }, 0));
        assert!(idle.is_empty(), "a delegated run is no session");
        idle.on_run_ended(&ended(one, RunOrigin::User, 0));
        idle.on_run_ended(&ended(one, RunOrigin::User, 1_000));
        let nobody = BTreeSet::new();
        assert_eq!(idle.take_due(SESSION_IDLE_MS, &nobody), (Vec::new(), Some(SESSION_IDLE_MS + 1_000)));
        // Work that begins meanwhile postpones it.
        let busy = BTreeSet::from([one]);
        assert_eq!(idle.take_due(SESSION_IDLE_MS + 1_000, &busy), (Vec::new(), Some(2 * SESSION_IDLE_MS + 1_000)));
        assert_eq!(idle.take_due(2 * SESSION_IDLE_MS + 1_000, &nobody), (vec![one], None));
        assert_eq!(idle.take_due(9 * SESSION_IDLE_MS, &nobody), (Vec::new(), None));
    }
}
