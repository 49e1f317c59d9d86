//! A project's memory for the screenshots: experiences and traces of a garden.

use agent::memory::experience::{EXPERIENCE_LOG_FILE, EXPERIENCE_LOG_HEADING, Experience, MemoryTier, RunOutcome};
use agent::memory::goal::SlotKind;
use agent::memory::trace::{RunTrace, TRACES_FOLDER, TraceMetadata, TraceSlot, TraceStep};
use agent::memory::{MEMORY_FOLDER, trace};
use serde_json::{Value, json};

/// Returns the memory's notes: path and text.
pub(super) fn memory_notes() -> Vec<(String, String)> {
    let one = |id: &str, goal: &str, outcome, tier, lesson: &str, count| Experience {
        experience_id: format!("exp_{id}"),
        project_name: "Sample".to_owned(),
        primary_goal: goal.to_owned(),
        final_outcome: outcome,
        components_used: vec!["assistant".to_owned(), "read_file".to_owned(), "edit_file".to_owned()],
        files_created: 1,
        output_summary: "The plan says in which weeks which bed is sown.".to_owned(),
        execution_time_ms: 14_200,
        learnings_or_issues: lesson.to_owned(),
        timestamp: format!("2026-11-1{count}T09:30:00Z"),
        tier,
        source: "run 5f0c1d2e3a4b5c6d7e8f90a1b2c3d4e5".to_owned(),
        author: "assistant".to_owned(),
        count,
        ..Experience::default()
    };
    let well = RunOutcome::Success;
    let mended = RunOutcome::SuccessWithRecovery;
    let mut failed = one(
        "2b71",
        "Plan when the beans are sown",
        RunOutcome::Failure,
        MemoryTier::Episodic,
        "The sheet of frost days was missing.",
        1,
    );
    failed.superseded_by = "exp_9c04".to_owned();
    let entries = [
        failed,
        one(
            "9c04",
            "Plan when the beans are sown in spring",
            well,
            MemoryTier::Episodic,
            "Beans need a soil of 10 degrees: count from the last frost, which Rainfall has.",
            3,
        ),
        one(
            "41ae",
            "Sum the harvest of each bed",
            mended,
            MemoryTier::Episodic,
            "Commas in the sheet are decimal points: read it with decimal=','.",
            2,
        ),
        one(
            "77d0",
            "Water the beds in a dry June",
            well,
            MemoryTier::LongTerm,
            "The barrel lasts for nine days; ask Ines for hers before.",
            4,
        ),
        one(
            "c310",
            "Fetch the weather of the coming week",
            RunOutcome::Failure,
            MemoryTier::ShortTerm,
            "There was no network.",
            1,
        ),
    ];
    let entries: Vec<String> = entries.iter().map(Experience::to_markdown).collect();
    let mut notes = vec![(
        format!("{MEMORY_FOLDER}/{EXPERIENCE_LOG_FILE}"),
        format!("{EXPERIENCE_LOG_HEADING}{}", entries.join("\n")),
    )];
    for trace in [
        run_trace("Write the sowing report for March 2026 into reports/2026-03.md", 41, 41, "2026-11-21T07:00:00Z"),
        run_trace("Sum the harvest of July 2026", 5, 4, "2026-11-12T18:20:00Z"),
        run_trace("List the seeds of 2025", 0, 0, ""),
    ] {
        notes.push((format!("{MEMORY_FOLDER}/{TRACES_FOLDER}/{}", trace.file_name()), trace.to_note()));
    }
    notes
}

fn run_trace(goal: &str, all: u64, good: u64, last: &str) -> RunTrace {
    let input = |value: Value| value.as_object().cloned().unwrap_or_default();
    let step =
        |tool: &str, given: Value| TraceStep { tool: tool.to_owned(), input: input(given), ..TraceStep::default() };
    let mut read = step("read_file", json!({"path": "data/{month1}.csv"}));
    read.needs = vec!["data/{month1}.csv".to_owned()];
    let write = step("write_file", json!({"path": "reports/{month1}.md", "content": "# {month1:name}\n"}));
    let known = TraceMetadata {
        kind: "trace".to_owned(),
        goal_text: goal.to_owned(),
        success_rating: good as f64 / all.max(1) as f64,
        usage_count: all,
        verified_count: good,
        last_used: last.to_owned(),
        created_at: trace::iso_timestamp(1_793_000_000_000),
        learned_tokens: 8_170,
        learned_usd: 0.0214,
        learned_secs: 14.2,
        saved_tokens: 8_170 * good,
        saved_usd: 0.0214 * good as f64,
        saved_secs: 13.8 * good as f64,
        agent: "assistant".to_owned(),
        ..TraceMetadata::default()
    };
    let slot = TraceSlot { name: "month1".to_owned(), kind: SlotKind::Month, value: "2026-03".to_owned() };
    let mut trace = RunTrace {
        known,
        slots: vec![slot],
        steps: vec![read, write],
        answer: Some("The report is written.".to_owned()),
        ..RunTrace::default()
    };
    trace.known.goal_signature = trace.goal_signature();
    trace
}
