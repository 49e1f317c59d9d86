//! Notices in the window about events that the user didn't just request.

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
        triggered: Vec::new(),
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

#[test]
fn a_missing_font_is_named_once_in_a_workspace() {
    let says = |window: &Driven, what: &str| window.query_all_by_label_contains(what).next().is_some();
    let bench = Bench::new(&[("A.md", "First.\n\n한글\n")]);
    let mut window = bench.opened();
    until(&mut window, "it is said", |window| says(window, "Your fonts have no characters for Hangul."));
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let mut window = bench.window();
    until(&mut window, "the note is shown", |window| says(window, "한글"));
    window.run_steps(5);
    assert!(!says(&window, "Your fonts have no"), "it was said at the last start");
    // Another font is named, too.
    window.state_mut().place_caret(0);
    window.run();
    type_text(&mut window, "ש");
    until(&mut window, "it is said", |window| says(window, "Your fonts have no characters for Hebrew."));
}

#[test]
fn messages_do_not_cover_the_field_for_the_agent() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    press(&mut window, CTRL_ALT, Key::I);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, engine::commands::CommandId::AgentStop);
    window.run_steps(3);
    let message = window.get_by_label("Dismiss: The agent isn't running.").rect();
    let field = window.get_by_label("Message to the agent").rect();
    assert!(message.bottom() <= field.top(), "{message:?} {field:?}");
}

#[test]
fn a_crash_is_said_at_the_next_start_and_once() {
    let bench = Bench::new(&[]);
    let logs = bench.folder.path().join("workspace/logs");
    std::fs::create_dir_all(&logs).expect("a folder");
    std::fs::write(logs.join("crash-0001700000000-77-1.txt"), "a report").expect("a file");
    let says_so = |window: &Driven| window.query_all_by_label_contains("crash-0001700000000-77-1.txt").next().is_some();
    let window = bench.window();
    assert!(says_so(&window));
    drop(window);
    assert!(!says_so(&bench.window()));
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_of_the_volume_are_said_above_the_note() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    std::fs::write(bench.folder.path().join("key"), "PRIVATE KEY zyzzogeton\n").expect("a file");
    for name in ["key.md", "other.md"] {
        std::os::unix::fs::symlink("../key", bench.notes().join(name)).expect("linked");
    }
    std::os::unix::fs::symlink("One.md", bench.notes().join("alias.md")).expect("linked");
    let mut window = bench.opened();
    let said = "Left out of notes: key.md: it is a symlink (to ../key) that leads out of the volume, so it is \
                skipped. (1 more is left out, too.)";
    until(&mut window, "it is said", |window| window.query_by_label(said).is_some());
    assert!(window.query_all_by_label_contains("zyzzogeton").next().is_none());
    assert!(window.query_all_by_label_contains("alias.md").next().is_none(), "that one is no fault");
    pictured(&mut window, "skipped-links");
    // The notice goes away when the user dismisses it, and returns when there is another file.
    click_label(&mut window, "Dismiss");
    assert!(window.query_by_label(said).is_none());
    std::os::unix::fs::symlink("/etc/hosts", bench.notes().join("a.md")).expect("linked");
    until(&mut window, "another one is said", |window| {
        window.query_all_by_label_contains("a.md: it is a symlink (to /etc/hosts)").next().is_some()
    });
}

#[test]
fn names_of_files_hide_nothing_and_the_users_text_stays_as_it_is() {
    let (evil, safe) = ("a\u{202e}b\u{200b}c", "a\\u{202e}b\\u{200b}c");
    let text = format!("# {evil}\n\nto [[Two]] {evil}\n");
    // Joiners in emoji and non-joiners in Persian hide nothing.
    let joined = "J 👩\u{200d}💻 می\u{200c}خواهم";
    let files = [
        (format!("A {evil}.md"), text.as_str()),
        (format!("F {evil}/Two.md"), "two\n"),
        (format!("{joined}.md"), "three\n"),
    ];
    let bench = Bench::new(&files.each_ref().map(|(name, text)| (name.as_str(), *text)));
    let mut window = bench.opened();
    until(&mut window, "the title", |window| {
        window.query_by_role_and_label(Role::Heading, &format!("A {safe}")).is_some()
    });
    let names = |window: &mut Driven, part: &str| window.query_all_by_label_contains(part).count();
    for line in [format!("A {safe}"), format!("F {safe}")] {
        window.get_by_role_and_label(Role::TreeItem, &line);
    }
    window.get_by_role_and_label(Role::TreeItem, joined);
    assert_eq!(names(&mut window, &format!("A {evil}")), 0);
    // The editor shows the text unchanged for editing, and the file is unchanged.
    assert!(window.query_all_by_label_contains(&format!("to Two {evil}")).next().is_some());
    assert_eq!(self::text(&window).as_deref(), Some(text.as_str()));
    // The outline escapes hidden characters.
    assert!(names(&mut window, safe) > 2, "its heading in the outline");
    press(&mut window, CTRL, Key::P);
    type_text(&mut window, "A");
    assert_eq!(names(&mut window, &format!("A {evil}")), 0, "what is offered");
    assert_eq!(bench.file(&format!("A {evil}.md")), text);
}
