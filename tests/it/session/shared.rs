//! Sessions, runs and tools of a shared volume on two devices: each sees what the other does, a run continues on its
//! own device, and nothing can be approved from elsewhere.

use super::agents::{RUN, SESSION, answer, ask, ask_in, decide, done, fine, run, said, setup};
use crate::twin::{ROOT, Twin, World};
use engine::{Command, Event};
use serde_json::json;
use std::collections::BTreeSet;
use store::disk::DiskReader;
use store::{
    ActorId, DecisionRecord, DecisionScope, DocId, RegistryDoc, RegistryWrite, RunEnding, TodoItem, TodoStatus,
    UserTool,
};

/// Two devices with one volume, and the changes already exchanged.
pub(super) struct Pair {
    pub(super) one: Twin,
    pub(super) two: Twin,
    given: [BTreeSet<(DocId, Vec<u8>)>; 2],
}

impl Pair {
    pub(super) fn new(files: &[(&str, &str)]) -> Pair {
        let mut one = Twin::with(files);
        let mut two = Twin::start(World::new(&[]), 2);
        (one.setup, two.setup) = (setup(""), setup(""));
        two.rest();
        let (hub, volume) = ("ws://hub".to_owned(), one.session.volumes().next().expect("a volume").id);
        one.command(Command::ShareVolume { volume, hub: hub.clone() }).expect("shared");
        let address = engine::volume_address(&hub, volume);
        two.command(Command::JoinVolume { address, folder: ROOT.into() }).expect("joined");
        let mut pair = Pair { one, two, given: Default::default() };
        pair.sync();
        pair
    }

    /// Exchanges wanted changes in both directions until there are no more.
    pub(super) fn sync(&mut self) {
        for _ in 0..50 {
            let mut moved = false;
            for back in [false, true] {
                let (from, to, known, echo) = match (back, &mut self.given) {
                    (false, [there, here]) => (&mut self.one, &mut self.two, there, here),
                    (true, [here, there]) => (&mut self.two, &mut self.one, there, here),
                };
                from.pass(1_500);
                to.pass(1_500);
                // In the order in which they were made: a document that is newly wanted is sent from its beginning.
                let wanted: BTreeSet<DocId> = from.wanted.intersection(&to.wanted).copied().collect();
                for (doc, bytes) in from.sent.clone() {
                    if wanted.contains(&doc) && known.insert((doc, bytes.clone())) {
                        echo.insert((doc, bytes.clone()));
                        to.event(Event::Received { doc, ticket: 1, parcel: bytes.into() });
                        to.pass(10);
                        moved = true;
                    }
                }
            }
            if !moved {
                return;
            }
        }
        panic!("it never ends");
    }

    pub(super) fn open_there(&mut self) {
        self.two.command(Command::OpenRun { run: RUN }).expect("known there");
        self.two.command(Command::OpenSession { session: SESSION }).expect("known there");
        self.two.rest();
    }
}

fn messages(twin: &Twin) -> Vec<String> {
    let tree = twin.session.agents().session(SESSION).expect("open").tree();
    tree.messages().map(|message| message.content.clone()).collect()
}

#[test]
fn a_run_is_seen_elsewhere_while_it_goes_on_and_is_not_started_twice() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    ask(&mut pair.one, "look into @a.md");
    let todos = json!({"todos": [{"content": "look"}]});
    answer(&mut pair.one, said("I look.", &[("todo_write", todos), ("shell", json!({"command": "ls"}))]));
    pair.sync();
    pair.open_there();
    let there = run(&pair.two);
    assert!(!pair.two.session.is_own_device(there.device.as_ref()) && there.device.is_some());
    assert_eq!(there.steps, run(&pair.one).steps);
    assert_eq!(there.todos.len(), 1);
    assert_eq!(there.pending().count(), 1, "what it asks is seen");
    assert_eq!(messages(&pair.two), messages(&pair.one));
    assert!(pair.two.models.is_empty() && pair.two.tools.is_empty(), "nothing of it is done there");

    // The run can't be resumed on the other device, nor anything be approved there.
    let resume = Command::ResumeRun { run: RUN, more: None, budget: None };
    let why = pair.two.command(resume).expect_err("it is at work elsewhere").0;
    assert!(why.contains("the run is active on"), "{why}");
    let decision = DecisionRecord::by_user(true, DecisionScope::Once);
    let allow = Command::Decide { run: RUN, approval: "c1".to_owned(), decision };
    let why = pair.two.command(allow).expect_err("allowed there only").0;
    assert!(why.contains("deny it here"), "{why}");
    // Todos can be completed on any device.
    let mut todos: Vec<TodoItem> = run(&pair.two).todos.clone();
    todos[0].status = TodoStatus::Completed;
    pair.two.command(Command::SetTodos { run: RUN, todos }).expect("ticked");
    // A timeout on the other device doesn't apply to the device that waits.
    pair.two.pass(24 * 3_600_000);
    pair.sync();
    assert_eq!(run(&pair.one).todos[0].status, TodoStatus::Completed);
    assert_eq!(run(&pair.one).pending().count(), 1);

    // A denial on the other device counts, and the model learns of it.
    decide(&mut pair.two, "c1", false, DecisionScope::Once);
    pair.sync();
    assert!(pair.one.tools.is_empty());
    let (_, request) = answer(&mut pair.one, said("Then not.", &[]));
    let told = request.messages.last().map(|message| message.content.clone()).unwrap_or_default();
    assert!(told.contains("The user denied it."), "{told}");
    pair.sync();
    assert_eq!(run(&pair.two).about.ending, Some(RunEnding::Done));
    assert_eq!(messages(&pair.two), messages(&pair.one));

    // The conversation continues on the other device in a run of its own.
    ask_in(&mut pair.two, DocId([9; 16]), "and now?", None);
    answer(&mut pair.two, said("All is said.", &[]));
    pair.sync();
    assert!(messages(&pair.one).contains(&"All is said.".to_owned()));
    assert!(pair.one.session.agents().runs().any(|(id, line)| id == DocId([9; 16]) && line.ending.is_some()));
    assert!(pair.one.refused.is_empty() && pair.two.refused.is_empty(), "{:?}", pair.two.refused);
}

#[test]
fn two_decisions_at_once_leave_the_one_that_was_carried_out() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    ask(&mut pair.one, "build it");
    answer(&mut pair.one, said("", &[("shell", json!({"command": "make"}))]));
    pair.sync();
    pair.open_there();
    // Allowed on the device that carries the run out, and denied on the other one before it hears of that. The other
    // one has changed more of the run's document, so that its decision would be the later one.
    let todo = TodoItem {
        id: "1".to_owned(),
        content: "watch it".to_owned(),
        status: TodoStatus::Pending,
        priority: 2,
        due: None,
        repeat: None,
    };
    pair.two.command(Command::SetTodos { run: RUN, todos: vec![todo] }).expect("added");
    pair.two.rest();
    decide(&mut pair.two, "c0", false, DecisionScope::Once);
    decide(&mut pair.one, "c0", true, DecisionScope::Once);
    assert_eq!(pair.one.tools.len(), 1, "it runs");
    let is_allowed = |twin: &Twin| {
        let approvals = &run(twin).approvals;
        assert_eq!(approvals.len(), 1);
        approvals[0].decision.as_ref().map(|decision| decision.allowed)
    };
    assert_eq!((is_allowed(&pair.one), is_allowed(&pair.two)), (Some(true), Some(false)));
    pair.sync();
    assert_eq!(pair.one.tools.len(), 1, "it goes on, once");
    done(&mut pair.one, fine("built"));
    let (_, request) = answer(&mut pair.one, said("It is built.", &[]));
    assert!(request.messages.last().is_some_and(|message| message.content == "built"), "{:?}", request.messages);
    pair.sync();
    assert_eq!((is_allowed(&pair.one), is_allowed(&pair.two)), (Some(true), Some(true)), "what happened is recorded");
    // On disk, too, on both devices.
    for mut again in [Twin::start(pair.one.crash(), 5), Twin::start(pair.two.crash(), 6)] {
        again.setup = setup("");
        again.rest();
        again.command(Command::OpenRun { run: RUN }).expect("known");
        again.rest();
        assert_eq!(is_allowed(&again), Some(true));
        assert!(again.tools.is_empty(), "nothing runs again");
    }
}

#[test]
fn a_run_is_stopped_from_elsewhere_and_taken_over() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    ask(&mut pair.one, "search the web");
    answer(&mut pair.one, said("", &[("read_file", json!({"path": "a.md"}))]));
    pair.sync();
    pair.open_there();
    pair.two.command(Command::CancelRun { run: RUN }).expect("stopped");
    pair.sync();
    assert_eq!(run(&pair.one).about.ending, Some(RunEnding::Cancelled));
    assert!(!run(&pair.one).is_busy());
    assert!(!pair.one.cancelled.is_empty(), "what was under way is cancelled");
    let resume = Command::ResumeRun { run: RUN, more: None, budget: None };
    pair.two.command(resume.clone()).expect("taken over");
    pair.two.rest();
    pair.sync();
    let why = pair.one.command(resume).expect_err("it is elsewhere now").0;
    assert!(why.contains("the run is active on"), "{why}");
    answer(&mut pair.two, said("Found.", &[]));
    pair.sync();
    assert_eq!(run(&pair.one).about.ending, Some(RunEnding::Done));
    assert!(messages(&pair.one).contains(&"Found.".to_owned()));
}

#[test]
fn a_program_that_starts_leaves_runs_of_others_alone() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    ask(&mut pair.one, "list them");
    answer(&mut pair.one, said("", &[("shell", json!({"command": "ls"}))]));
    decide(&mut pair.one, "c0", true, DecisionScope::Once);
    assert_eq!(pair.one.tools.len(), 1, "it runs");
    pair.sync();
    let mut again = Twin::start(pair.two.crash(), 3);
    again.rest();
    again.command(Command::OpenRun { run: RUN }).expect("known");
    again.rest();
    assert_eq!(run(&again).steps, run(&pair.one).steps, "nothing is said to be interrupted");
    done(&mut pair.one, fine("a.md"));
    answer(&mut pair.one, said("One file.", &[]));
    pair.sync();
    pair.open_there();
    assert_eq!(run(&pair.two).about.ending, Some(RunEnding::Done));
}

#[test]
fn a_session_that_is_deleted_goes_elsewhere_too_unless_it_went_on_there() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    ask(&mut pair.one, "one");
    answer(&mut pair.one, said("first", &[]));
    pair.sync();
    assert_eq!(pair.two.session.agents().sessions().count(), 1);
    pair.one.command(Command::DeleteSession { session: SESSION }).expect("deleted");
    pair.sync();
    assert_eq!(pair.two.session.agents().sessions().count(), 0);
    assert_eq!(pair.two.session.agents().runs().count(), 0);
    let (run, session) = (DocId([3; 16]), DocId([4; 16]));
    let volume = pair.one.session.volumes().next().expect("a volume").id;
    let ask = |text: &str, run| Command::Ask {
        run,
        session,
        volume,
        note: None,
        parent: None,
        text: text.to_owned(),
        agent: None,
        budget: None,
        allow: Vec::new(),
        recall: agent::memory::RecallOptions::default(),
        provider: None,
    };
    pair.one.command(ask("two", run)).expect("asked");
    pair.one.rest();
    answer(&mut pair.one, said("second", &[]));
    pair.sync();
    pair.two.command(ask("more", DocId([5; 16]))).expect("asked");
    pair.two.rest();
    answer(&mut pair.two, said("third", &[]));
    pair.one.command(Command::DeleteSession { session }).expect("deleted");
    pair.sync();
    // The deleted document is sent again from its beginning.
    pair.one.sent.retain(|(doc, _)| *doc != session);
    pair.given = Default::default();
    pair.sync();
    for twin in [&pair.one, &pair.two] {
        let found = twin.session.agents().sessions().find(|(id, _)| *id == session);
        let (_, line) = found.unwrap_or_else(|| panic!("it stays: {:?}", twin.refused));
        assert_eq!(line.messages, 4);
    }
}

#[test]
fn tools_come_along_and_wait_for_approval_on_each_device() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    let tool = |code: &str| UserTool {
        name: "double".to_owned(),
        version: 1,
        description: "Doubles.".to_owned(),
        parameters: json!({"type": "object", "properties": {"x": {"type": "number"}}}),
        code: code.to_owned(),
        created: 1,
        author: "me".to_owned(),
        ..UserTool::default()
    };
    let approve = || Command::ApproveTool { name: "double".to_owned(), version: Some(1) };
    let own = "def run(x): return 2 * x";
    pair.one.command(Command::ProposeTool { tool: Box::new(tool(own)) }).expect("proposed");
    pair.sync();
    let there = |twin: &Twin| twin.session.user_tools().unwrap_or_default().to_vec();
    assert!(there(&pair.two).is_empty(), "what nobody has approved stays where it is");
    pair.one.command(approve()).expect("approved");
    pair.sync();
    let known = there(&pair.two);
    assert_eq!(known.len(), 1);
    assert_eq!((known[0].usable_version(), known[0].versions[0].code.as_str()), (None, own), "it waits");
    pair.two.command(approve()).expect("approved");
    pair.sync();
    assert!(there(&pair.two)[0].usable_version().is_some());
    assert_eq!((there(&pair.one).len(), there(&pair.one)[0].versions.len()), (1, 1), "nothing comes back");
    // Removed on one device, it doesn't come back there.
    pair.two.command(Command::RemoveTool { name: "double".to_owned() }).expect("removed");
    pair.sync();
    assert!(there(&pair.two).is_empty());
    assert_eq!(there(&pair.one).len(), 1);
}

/// A version after the highest number would have that number again, and so the approval of what had it before.
#[test]
fn no_version_of_another_device_takes_the_place_of_an_approved_one() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    let tools = pair.one.session.volumes().next().expect("a volume").id.tools_id();
    let tool = |name: &str, version: u64, code: &str| UserTool {
        name: name.to_owned(),
        version,
        description: "Counts.".to_owned(),
        parameters: json!({"type": "object"}),
        code: code.to_owned(),
        ..UserTool::default()
    };
    let mut hostile = RegistryDoc::load(tools, &[], ActorId::from([9; 16])).expect("made").doc;
    for code in ["def run(): return 1", "def run(): return 2"] {
        let writes = [tool("count", u64::MAX, code), tool("other", 1, code)];
        let writes = writes.map(|tool| RegistryWrite::Version(Box::new(tool)));
        hostile.commit(&writes, 0).expect("written");
        pair.two.event(Event::Received { doc: tools, ticket: 1, parcel: hostile.save().into() });
        pair.two.pass(1_500);
        // The user approves what is there, the first time.
        let newest = |twin: &Twin| -> Vec<(String, u64)> {
            let known = twin.session.user_tools().unwrap_or_default().iter();
            known.filter_map(|tool| tool.newest_version()).map(|tool| (tool.name.clone(), tool.version)).collect()
        };
        for (name, version) in newest(&pair.two).into_iter().filter(|_| code.ends_with('1')) {
            pair.two.command(Command::ApproveTool { name, version: Some(version) }).expect("approved");
        }
        pair.two.pass(1_500);
    }
    let known = pair.two.session.user_tools().unwrap_or_default().to_vec();
    let used: Vec<(&str, &str)> = known
        .iter()
        .filter_map(|tool| tool.usable_version())
        .map(|tool| (tool.name.as_str(), tool.code.as_str()))
        .collect();
    assert_eq!(used, [("other", "def run(): return 1")], "what was approved is what is used");
}

#[test]
fn what_belongs_to_a_device_alone_is_not_synced() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    // A second volume that isn't shared, with a session of its own.
    pair.one.command(Command::OpenFolder { folder: "/u/private".into(), name: None }).expect("opened");
    pair.one.pass(1_000);
    let private = pair.one.session.volumes().find(|volume| volume.name == "private").expect("there").id;
    let shared = pair.one.session.volumes().find(|volume| volume.id != private).expect("there").id;
    let messages =
        vec![store::SessionMessage::new(store::MessageId(1), store::MessageRole::User, "mine".to_owned(), 1)];
    let (session, title) = (DocId([6; 16]), "mine".to_owned());
    pair.one
        .command(Command::ImportSession { session, volume: private, title, messages, imported: None })
        .expect("kept");
    let tool = UserTool {
        name: "triple".to_owned(),
        version: 1,
        description: String::new(),
        parameters: json!({"type": "object"}),
        code: "def run(x): return 3 * x".to_owned(),
        created: 1,
        ..UserTool::default()
    };
    pair.one.command(Command::ProposeTool { tool: Box::new(tool) }).expect("proposed");
    pair.sync();
    let note = pair.one.id("a.md");
    // The volume, its note and its tools; not the workspace, its registry, another volume or its contents.
    assert_eq!(pair.one.wanted, BTreeSet::from([shared, note, shared.tools_id()]));
    // Not even if another peer's list claims them.
    let mut hostile = store::VolumeDoc::load(shared, &[], store::ActorId::from([99; 16])).expect("made").doc;
    let claimed = [session, private].map(|id| (store::ListedDocumentKind::Session, id, None));
    let bytes = hostile.list_documents(&claimed, 1).expect("listed");
    pair.one.event(Event::Received { doc: shared, ticket: 9, parcel: bytes.into() });
    pair.one.pass(2_000);
    assert_eq!(pair.one.wanted, BTreeSet::from([shared, note, shared.tools_id()]));
}

#[test]
fn more_notes_than_are_made_at_once_arrive_all() {
    const COUNT: usize = 600;
    let notes: Vec<(String, String)> =
        (0..COUNT).map(|number| (format!("{number}.md"), format!("# Note {number}\n"))).collect();
    let files: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut one = Twin::with(&files);
    let mut two = Twin::start(World::new(&[]), 2);
    two.rest();
    let (hub, volume) = ("ws://hub".to_owned(), one.session.volumes().next().expect("a volume").id);
    one.command(Command::ShareVolume { volume, hub: hub.clone() }).expect("shared");
    // Notes that exist only as files aren't synced yet.
    assert!(one.session.sync().is_shared(volume) && !one.session.sync().is_settled());
    assert_eq!(one.session.sync_progress(volume).behind, COUNT);
    let address = engine::volume_address(&hub, volume);
    two.command(Command::JoinVolume { address, folder: ROOT.into() }).expect("joined");
    for _ in 0..20 {
        one.pass(1_500);
    }
    assert!(one.session.sync().is_settled());
    assert!(notes.iter().all(|(path, _)| one.wanted.contains(&one.id(path))));
    let sent = one.sent.clone();
    let of_volume = |(doc, _): &&(DocId, Vec<u8>)| *doc == volume;
    for (doc, bytes) in sent.iter().filter(of_volume).cloned() {
        two.event(Event::Received { doc, ticket: 1, parcel: bytes.into() });
        two.pass(10);
    }
    two.pass(1_500);
    for (doc, bytes) in sent.iter().filter(|one| !of_volume(one)).cloned() {
        if two.wanted.contains(&doc) {
            two.event(Event::Received { doc, ticket: 1, parcel: bytes.into() });
        }
    }
    let open = two.session.notes().count();
    assert!((100..400).contains(&open), "{open} of {COUNT} are under way");
    assert!(!two.session.sync().is_settled());
    for _ in 0..20 {
        two.pass(1_500);
    }
    assert!(two.session.sync().is_settled() && two.refused.is_empty(), "{:?}", two.refused);
    for (path, text) in &notes {
        assert_eq!(two.file(path).as_ref(), Some(text), "{path}");
    }
    assert_eq!(two.session.notes().count(), 0, "nobody looks at them");
}

#[test]
fn a_note_whose_text_has_not_come_goes_when_it_is_deleted_elsewhere() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    let volume = pair.one.session.volumes().next().expect("a volume").id;
    let told = |twin: &Twin, from: usize, doc: DocId| {
        let of = twin.sent[from..].iter().filter(|(of, _)| *of == doc);
        of.map(|(_, bytes)| bytes.clone()).collect::<Vec<Vec<u8>>>()
    };
    let before = pair.one.sent.len();
    let made = Command::NewNote { volume, path: "late.md".to_owned(), text: "Late.\n".to_owned() };
    pair.one.command(made).expect("made");
    pair.one.pass(3_000);
    let note = pair.one.id("late.md");
    for bytes in told(&pair.one, before, volume) {
        pair.two.event(Event::Received { doc: volume, ticket: 1, parcel: bytes.into() });
    }
    pair.two.pass(1_500);
    assert!(pair.two.wanted.contains(&note), "it is asked for");
    // The other program is killed at any point while the text arrives; meanwhile the note is deleted.
    let text = told(&pair.one, before, note).concat();
    pair.two.event(Event::Received { doc: note, ticket: 2, parcel: text.into() });
    let mut worlds = pair.two.crashes();
    pair.two.pass(3_000);
    worlds.push(pair.two.crash());
    let before = pair.one.sent.len();
    pair.one.command(Command::DeleteFiles { files: vec![note] }).expect("deleted");
    pair.one.pass(3_000);
    let deletion = told(&pair.one, before, volume);
    let mut seen = [0, 0];
    for (at, world) in worlds.into_iter().enumerate() {
        let mut next = Twin::start(world, 10 + at as u64);
        next.rest();
        seen[usize::from(next.file("late.md").is_some())] += 1;
        for bytes in deletion.clone() {
            next.event(Event::Received { doc: volume, ticket: 3, parcel: bytes.into() });
        }
        next.pass(5_000);
        assert_eq!(next.file("late.md"), None, "state {at}");
        assert!(!next.session.volumes().any(|volume| volume.files.contains_key("late.md")), "state {at}");
        let chunks = next.world.disk.chunks(volume).expect("read").into_iter().map(|chunk| chunk.bytes);
        let list = store::VolumeDoc::load(volume, &chunks.collect::<Vec<_>>(), store::ActorId::from([98; 16]));
        assert_eq!(list.expect("read").doc.file_entry(note), None, "state {at}: it comes back elsewhere");
        assert!(next.session.sync().is_settled() && next.refused.is_empty(), "state {at}: {:?}", next.refused);
    }
    assert!(seen[0] > 1 && seen[1] > 0, "{seen:?}");
}

#[test]
fn where_others_type_on_the_file_is_written_at_once_and_then_after_each_pause() {
    // The note is open or closed.
    for (hurry, is_open) in [(100, true), (40, true), (100, false), (40, false)] {
        let mut pair = Pair::new(&[("a.md", "# A\n")]);
        let note = pair.one.open("a.md");
        if is_open {
            pair.two.open("a.md");
        }
        // The other device's keystrokes, each a separate change.
        let mut keys = Vec::new();
        for _ in 0..40 {
            let before = pair.one.sent.len();
            pair.one.edit(note, 0, 0, "x");
            pair.one.pass(1_500);
            keys.extend(pair.one.sent[before..].iter().filter(|(doc, _)| *doc == note).map(|(_, bytes)| bytes.clone()));
        }
        assert_eq!(keys.len(), 40);
        let two = &mut pair.two;
        two.pass(5_000);
        let (written, begun) = (two.written, two.now);
        let in_file = |two: &Twin| two.file("a.md").expect("a file").matches('x').count();
        // The keystrokes arrive at this interval in milliseconds.
        for (at, bytes) in keys.into_iter().enumerate() {
            two.event(Event::Received { doc: note, ticket: 1, parcel: bytes.into() });
            two.rest();
            if at == 0 {
                assert_eq!((in_file(two), two.written - written), (1, 1), "the first at once");
            }
            let late = usize::try_from(500 / hurry).expect("few");
            assert!(in_file(two) + late >= at, "{} of {at} keys are in the file", in_file(two));
            two.pass(hurry);
        }
        let writes = two.written - written;
        let most = 1 + usize::try_from(two.now.ms_since(begun) / 500).expect("few");
        assert!((most - 2..=most).contains(&writes), "{writes} writes, one in half a second is {most}");
        two.pass(500);
        assert_eq!(in_file(two), 40);
        assert!(two.written - written <= most + 1 && two.refused.is_empty());
        two.pass(1_000);
        assert_eq!(two.session.note(note).is_some(), is_open, "it is let go in the end");
    }
}
