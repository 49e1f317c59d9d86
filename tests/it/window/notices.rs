//! What happens without anybody asking there and then is said in the window.

use super::*;
use ::agent::schedule::{Schedule, ScheduleOutcome, ScheduledWork};
use store::DocId;

#[test]
fn what_a_schedule_begins_is_said() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    let volume = session(&window).volumes().next().expect("a volume").id;
    let schedule = DocId([3; 16]);
    let what = Schedule {
        name: "tidy".to_owned(),
        when: "0 0 1 1 *".to_owned(),
        offset: 0,
        zone: None,
        volume,
        work: ScheduledWork::Consolidate,
        allow: Vec::new(),
        window: 60,
        paused: false,
        next: None,
        last: None,
    };
    window.state_mut().send_command(Command::AddSchedule { schedule, what: Box::new(what) });
    window.state_mut().send_command(Command::RunSchedule { schedule });
    until(&mut window, "it is said", |window| window.query_by_label("Dismiss: Schedule tidy began").is_some());
    until(&mut window, "it is done", |window| {
        session(window)
            .schedules()
            .any(|(_, one)| one.last.as_ref().is_some_and(|last| last.came == ScheduleOutcome::Done))
    });
}
