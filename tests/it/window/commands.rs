//! Every command that the window offers is chosen in the palette and does what it says. A command without a step here
//! fails the test.

use super::*;
use engine::commands::{COMMANDS, CommandId};
use engine::{ColorTheme, KernelPhase, Reactivity, TreeOrder};
use host::desktop::PrintOutcome;
use std::collections::BTreeSet;

/// A window, and the commands that were chosen in it so far.
struct Drive {
    bench: Bench,
    window: Driven,
    driven: BTreeSet<CommandId>,
}

impl Drive {
    fn on(files: &[(&str, &str)]) -> Drive {
        let bench = Bench::new(files);
        let window = bench.opened();
        Drive { bench, window, driven: BTreeSet::new() }
    }

    /// Chooses a command in the palette by its full title.
    fn choose(&mut self, id: CommandId) {
        press(&mut self.window, CTRL_SHIFT, Key::P);
        type_text(&mut self.window, id.title());
        press(&mut self.window, NONE, Key::Enter);
        assert!(self.window.query_by_label("Command palette").is_none(), "{id}: the palette is closed");
        self.driven.insert(id);
    }

    fn has(&self, label: &str) -> bool {
        self.window.query_all_by_label(label).next().is_some()
    }

    fn until(&mut self, what: &str, done: impl Fn(&mut Driven) -> bool) {
        until(&mut self.window, what, done);
    }
}

fn overlays() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n")]);
    press(&mut drive.window, CTRL_SHIFT, Key::P);
    assert!(drive.has("Command palette"));
    press(&mut drive.window, NONE, Key::Escape);
    // The palette doesn't list its own command.
    drive.driven.insert(CommandId::PaletteOpen);
    for (id, label) in [
        (CommandId::SwitcherOpen, "Go to note"),
        (CommandId::SearchOpen, "Search everything"),
        (CommandId::NoteNew, "Title of the note"),
        (CommandId::NoteNewIn, "Name of the note"),
        (CommandId::FolderOpen, "Path of the folder"),
        (CommandId::FolderClone, "Address of the repository"),
        (CommandId::AppKeys, "Find a command or a key"),
        (CommandId::AppSettings, "High contrast"),
    ] {
        drive.choose(id);
        assert!(drive.window.query_all_by_label(label).next().is_some(), "{id}: {label}");
        press(&mut drive.window, NONE, Key::Escape);
    }
    drive
}

fn the_view() -> Drive {
    let mut drive = Drive::on(&[("One.md", "# Head\n")]);
    let settings = |drive: &Drive| session(&drive.window).settings().clone();
    drive.choose(CommandId::ViewLeft);
    assert!(!settings(&drive).left_open);
    drive.choose(CommandId::ViewLeft);
    assert!(settings(&drive).left_open);
    drive.choose(CommandId::SearchPanel);
    assert!(drive.has("Search notes"));
    drive.choose(CommandId::SearchReplace);
    assert!(drive.has("Replace with"));
    drive.choose(CommandId::SearchUndoReplace);
    assert!(drive.has("No replacement to undo"));
    drive.choose(CommandId::ViewFiles);
    assert!(settings(&drive).left_open && !drive.has("Search notes"));
    drive.choose(CommandId::ViewTags);
    assert!(drive.has("Filter tags"));
    drive.choose(CommandId::ViewReveal);
    assert!(!drive.has("Filter tags") && drive.has("One"));
    for (id, order) in [
        (CommandId::ViewSortNameDown, TreeOrder::NameReversed),
        (CommandId::ViewSortEdited, TreeOrder::Edited),
        (CommandId::ViewSortCreated, TreeOrder::Created),
        (CommandId::ViewSortName, TreeOrder::Name),
    ] {
        drive.choose(id);
        assert_eq!(settings(&drive).tree_order, order);
    }
    drive.choose(CommandId::ViewCollapse);
    drive.choose(CommandId::ViewRight);
    assert!(settings(&drive).right_open);
    // The palette returns the focus to the note, so these two commands are tested by key.
    for (modifiers, id) in [(NONE, CommandId::ViewNextRegion), (Modifiers::SHIFT, CommandId::ViewPreviousRegion)] {
        let before = drive.window.ctx.memory(|memory| memory.focused());
        press(&mut drive.window, modifiers, Key::F6);
        let after = drive.window.ctx.memory(|memory| memory.focused());
        assert_ne!(before, after, "{id}");
        drive.driven.insert(id);
    }
    drive.choose(CommandId::ViewTheme);
    assert_eq!(settings(&drive).theme, ColorTheme::Light);
    drive.choose(CommandId::ViewChooseTheme);
    assert!(drive.window.query_all_by_label_contains("No themes yet").next().is_some());
    drive.choose(CommandId::ViewContrast);
    assert!(settings(&drive).contrast);
    drive.choose(CommandId::ViewLarger);
    assert_eq!(settings(&drive).scale, 1.1);
    drive.choose(CommandId::ViewReset);
    assert_eq!(settings(&drive).scale, 1.0);
    drive.choose(CommandId::ViewSmaller);
    assert_eq!(settings(&drive).scale, 0.9);
    drive
}

fn editing() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n")]);
    drive.window.get_by_label("1").click();
    drive.window.run();
    press(&mut drive.window, NONE, Key::End);
    type_text(&mut drive.window, "2");
    drive.choose(CommandId::NoteUndo);
    assert_eq!(text(&drive.window).as_deref(), Some("1\n"));
    drive.choose(CommandId::NoteRedo);
    assert_eq!(text(&drive.window).as_deref(), Some("12\n"));
    drive.choose(CommandId::NoteSave);
    drive.until("it is saved", |window| session(window).is_saved());
    assert_eq!(drive.bench.file("One.md"), "12\n");
    drive
}

fn writing() -> Drive {
    let mut drive = Drive::on(&[("One.md", "word\n")]);
    for (id, after) in [
        (CommandId::TextBold, "**word**\n"),
        (CommandId::TextItalic, "*word*\n"),
        (CommandId::TextCode, "`word`\n"),
        (CommandId::TextStrike, "~~word~~\n"),
        (CommandId::TextTask, "- [ ] word\n"),
        (CommandId::RowDuplicate, "word\n\nword\n"),
    ] {
        drive.window.state_mut().place_caret(2);
        drive.window.run();
        drive.choose(id);
        assert_eq!(text(&drive.window).as_deref(), Some(after), "{id}");
        while text(&drive.window).as_deref() != Some("word\n") {
            press(&mut drive.window, CTRL, Key::Z);
        }
    }
    drive.window.state_mut().place_caret(0);
    drive.window.run();
    press(&mut drive.window, Modifiers::SHIFT, Key::End);
    drive.choose(CommandId::TextLink);
    assert!(text(&drive.window).is_some_and(|text| text.starts_with("[word](")), "{:?}", text(&drive.window));
    let mut folds = Drive::on(&[("Folds.md", "# A\n\nbelow\n")]);
    for (id, seen) in [(CommandId::FoldHere, false), (CommandId::FoldNone, true), (CommandId::FoldAll, false)] {
        folds.window.state_mut().place_caret(1);
        folds.window.run();
        folds.choose(id);
        assert_eq!(folds.has("below"), seen, "{id}");
    }
    drive.driven.extend(folds.driven);
    let mut list = Drive::on(&[("List.md", "- a\n- b\n")]);
    list.window.state_mut().place_caret(2);
    list.window.run();
    list.choose(CommandId::RowDown);
    assert_eq!(text(&list.window).as_deref(), Some("- b\n- a\n"));
    list.choose(CommandId::RowUp);
    assert_eq!(text(&list.window).as_deref(), Some("- a\n- b\n"));
    drive.driven.extend(list.driven);
    drive
}

fn filing() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n"), ("Templates/Sign.md", "signed")]);
    drive.choose(CommandId::CollectionNew);
    press(&mut drive.window, NONE, Key::Escape);
    drive.until("the collection is shown", |window| path(window) == "Untitled.base");
    drive.choose(CommandId::CollectionNextView);
    assert!(drive.window.query_all_by_label_contains("has one view").next().is_some());
    drive.choose(CommandId::CollectionPreviousView);
    drive.choose(CommandId::CollectionOpen);
    assert!(drive.has("Go to collection"));
    press(&mut drive.window, NONE, Key::Enter);
    assert_eq!(path(&drive.window), "Untitled.base");
    drive.choose(CommandId::NoteClose);
    drive.choose(CommandId::NoteStar);
    assert_eq!(session(&drive.window).settings().starred.len(), 1);
    drive.choose(CommandId::TemplateInsert);
    type_text(&mut drive.window, "sign");
    press(&mut drive.window, NONE, Key::Enter);
    drive.until("it is in the note", |window| text(window).as_deref() == Some("1\nsigned"));
    drive.choose(CommandId::NoteDuplicate);
    drive.until("the copy is shown", |window| path(window) == "One 2.md");
    drive.choose(CommandId::NoteToday);
    drive.until("today's note is shown", |window| path(window).starts_with("Journal/"));
    drive.choose(CommandId::NoteQuick);
    assert!(drive.has("Text of the item"));
    press(&mut drive.window, NONE, Key::Escape);
    drive
}

fn figures() -> Drive {
    let code = "```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 3, 2]); plt.title('Rain')\n```\n";
    let mut drive = Drive::on(&[("Plot.md", code)]);
    drive.choose(CommandId::FigureCloser);
    assert!(drive.window.query_all_by_label_contains("No figure").next().is_some());
    let note = drive.window.state().note().expect("a note is shown");
    drive.window.state_mut().send_command(engine::Command::RunAll { note });
    drive.until("the figure is there", |window| window.query_by_label("Figure: Rain").is_some());
    let reset = "Reset view of the figure of cell 1";
    for id in [CommandId::FigureCloser, CommandId::FigureFarther] {
        drive.choose(id);
        assert!(drive.has(reset), "{id}");
    }
    drive.choose(CommandId::FigureReset);
    assert!(!drive.has(reset));
    drive
}

fn tabs() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n"), ("Two.md", "2\n")]);
    let count = |drive: &Drive| drive.window.query_all_by_role(Role::Tab).count();
    drive.choose(CommandId::TabNew);
    assert!(drive.has("Go to note"), "it asks which");
    type_text(&mut drive.window, "two");
    press(&mut drive.window, NONE, Key::Enter);
    drive.until("the note is shown", |window| text(window).as_deref() == Some("2\n"));
    assert_eq!(count(&drive), 2);
    drive.choose(CommandId::TabPrevious);
    assert_eq!(path(&drive.window), "One.md");
    drive.choose(CommandId::TabNext);
    assert_eq!(path(&drive.window), "Two.md");
    drive.choose(CommandId::NoteClose);
    assert_eq!((count(&drive), path(&drive.window)), (0, "One.md".to_owned()));
    drive.choose(CommandId::TabReopen);
    assert_eq!((count(&drive), path(&drive.window)), (2, "Two.md".to_owned()));
    for id in [CommandId::PaneSplitRight, CommandId::PaneSplitDown] {
        let before = count(&drive);
        drive.choose(id);
        assert_eq!(count(&drive), before + 1, "{id}");
    }
    drive
}

fn finding() -> Drive {
    let mut drive = Drive::on(&[("One.md", "rain and rain\n")]);
    drive.window.state_mut().place_caret(2);
    drive.window.run();
    let carets = |drive: &Drive| drive.window.state().carets();
    drive.choose(CommandId::SelectNext);
    drive.choose(CommandId::SelectNext);
    assert_eq!(carets(&drive).len(), 2, "select.next");
    press(&mut drive.window, NONE, Key::Escape);
    drive.window.state_mut().place_caret(2);
    drive.window.run();
    drive.choose(CommandId::SelectAll);
    assert_eq!(carets(&drive).len(), 2, "select.all");
    press(&mut drive.window, NONE, Key::Escape);
    drive.window.state_mut().place_caret(0);
    drive.window.run();
    drive.choose(CommandId::FindOpen);
    type_text(&mut drive.window, "rain");
    assert!(drive.has("1 of 2"));
    drive.choose(CommandId::FindNext);
    assert!(drive.has("2 of 2"));
    drive.choose(CommandId::FindPrevious);
    assert!(drive.has("1 of 2"));
    drive.choose(CommandId::FindReplace);
    assert!(drive.has("Replace with"));
    drive
}

fn words() -> Drive {
    let mut drive = Drive::on(&[("One.md", "huose\n")]);
    drive.choose(CommandId::ViewSpelling);
    drive.until("spelling is off", |window| !session(window).settings().spelling);
    drive.window.state_mut().place_caret(3);
    drive.choose(CommandId::ScriptRuns);
    drive.until("scripts wait", |window| !session(window).settings().script_runs);
    drive.choose(CommandId::TextSpelling);
    assert!(drive.window.query_all_by_label_contains("Spell check is off").next().is_some());
    drive
}

fn cells() -> Drive {
    let mut drive = Drive::on(&[("Cells.md", "```python\n1+1\n```\n\n```python\nwhile True: pass\n```\n")]);
    drive.window.get_by_label_contains("1+1").click();
    drive.window.run();
    drive.choose(CommandId::CellRun);
    drive.until("the answer is shown", |window| window.query_by_label("2").is_some());
    drive.choose(CommandId::ViewVariables);
    drive.until("there are none", |window| window.query_by_label("No variables yet").is_some());
    drive.choose(CommandId::ViewVariables);
    drive.choose(CommandId::NoteRunAll);
    drive.until("it goes on for ever", |window| window.query_by_label("Stop cell 2").is_some());
    drive.until("the kernel is there", |window| window.query_by_label("Python running").is_some());
    drive.choose(CommandId::CellStop);
    drive.until("it has stopped", |window| window.query_by_label("Run cell 2").is_some());
    drive.choose(CommandId::KernelUndo);
    let why = "Only the kernel science saves its variables";
    drive.until("it says why not", |window| window.query_all_by_label_contains(why).next().is_some());
    drive.choose(CommandId::KernelRedo);
    for (id, said) in [
        (CommandId::KernelStates, "No saved states"),
        (CommandId::KernelShare, "That needs the kernel"),
        (CommandId::KernelForks, "Forks need"),
    ] {
        drive.choose(id);
        drive.until(said, |window| window.query_by_label_contains(said).is_some());
        press(&mut drive.window, NONE, Key::Escape);
    }
    drive.choose(CommandId::KernelReceive);
    drive.choose(CommandId::KernelRestart);
    drive.until("the kernel is gone", |window| session(window).notes().all(|note| note.kernel == KernelPhase::Off));
    drive.choose(CommandId::KernelChoose);
    drive.until("kernels are offered", |window| window.query_by_label("Instant").is_some());
    press(&mut drive.window, NONE, Key::Escape);
    drive.choose(CommandId::KernelPackages);
    drive.until("its packages are shown", |window| window.query_by_label("Packages of this note").is_some());
    press(&mut drive.window, NONE, Key::Escape);
    drive.choose(CommandId::KernelGrant);
    drive.window.get_by_label("The network").click();
    drive.window.get_by_label("Folders to read, a path in each line").focus();
    drive.window.run();
    type_text(&mut drive.window, "here");
    drive.window.get_by_label("Grant").click();
    drive.until("a path must be whole", |window| {
        window.query_by_label("here: give the whole path, beginning with / or ~.").is_some()
    });
    drive.window.get_by_label("Folders to read, a path in each line").focus();
    drive.window.run();
    press(&mut drive.window, CTRL, Key::A);
    type_text(&mut drive.window, "/usr/share/zoneinfo");
    drive.window.get_by_label("Grant").click();
    let granted = |window: &Driven| {
        let session = session(window);
        session.kernel_grant(session.notes().next().expect("a note").id).describe()
    };
    drive.until("it is granted", |window| granted(window) == "the network; /usr/share/zoneinfo (to read)");
    drive
}

fn whole_cells() -> Drive {
    let both = "```python\na\nb\n```\n\n```python\nc\n```\n";
    let mut drive = Drive::on(&[("Cells.md", both)]);
    for (id, at, after) in [
        (CommandId::CellAbove, 10, "```python\n\n```\n\n```python\na\nb\n```\n\n```python\nc\n```\n"),
        (CommandId::CellBelow, 10, "```python\na\nb\n```\n\n```python\n\n```\n\n```python\nc\n```\n"),
        (CommandId::CellDelete, 10, "```python\nc\n```\n"),
        (CommandId::CellProse, 10, "a\nb\n\n```python\nc\n```\n"),
        (CommandId::CellMerge, 10, "```python\na\nb\nc\n```\n"),
        (CommandId::CellSplit, 12, "```python\na\n```\n\n```python\nb\n```\n\n```python\nc\n```\n"),
        (CommandId::CellCut, 10, "```python\nc\n```\n"),
        (CommandId::CellPaste, 10, "```python\na\nb\n```\n\n```python\na\nb\n```\n\n```python\nc\n```\n"),
    ] {
        drive.window.state_mut().place_caret(at);
        drive.window.run();
        drive.choose(id);
        assert_eq!(text(&drive.window).as_deref(), Some(after), "{id}");
        press(&mut drive.window, CTRL, Key::Z);
        assert_eq!(text(&drive.window).as_deref(), Some(both), "{id}: taken back at once");
    }
    drive.window.state_mut().place_caret(10);
    drive.window.run();
    drive.choose(CommandId::CellCopy);
    let note = drive.window.state().note().expect("a note is shown");
    drive.window.state_mut().send_command(Command::Edit {
        note,
        at: 0,
        delete: both.len(),
        insert: "1 + 1\n".to_owned(),
    });
    drive.window.run();
    drive.window.state_mut().place_caret(0);
    drive.window.run();
    drive.choose(CommandId::CellCode);
    assert_eq!(text(&drive.window).as_deref(), Some("```python\n1 + 1\n```\n"));
    drive.choose(CommandId::CellRunInsert);
    assert_eq!(text(&drive.window).as_deref(), Some("```python\n1 + 1\n```\n\n```python\n\n```\n"));
    drive.until("the answer is shown", |window| window.query_by_label("2").is_some());
    type_text(&mut drive.window, "3 + 4");
    drive.choose(CommandId::NoteRunAbove);
    drive.until("it has run", |window| session(window).notes().all(|note| note.kernel == KernelPhase::Idle));
    assert!(!drive.has("7"), "only what is above");
    drive.choose(CommandId::NoteRunBelow);
    drive.until("the answer is shown", |window| window.query_by_label("7").is_some());
    for shown in [false, true] {
        drive.choose(CommandId::CellFold);
        assert_eq!(drive.has("7"), shown);
        assert_eq!(drive.has("1 output, folded"), !shown);
    }
    drive.choose(CommandId::CellSave);
    assert!(drive.has("New file"));
    press(&mut drive.window, NONE, Key::Escape);
    drive
}

fn reacting() -> Drive {
    let mut drive = Drive::on(&[("Cells.md", "```python\nx = 1\n```\n\n```python\nx + 40\n```\n")]);
    drive.window.get_by_label_contains("x + 40").click();
    drive.window.run();
    let runs = |window: &Driven| {
        let note = session(window).notes().next().expect("a note");
        note.cells()
            .filter(|cell| note.latest_execution(*cell).is_some_and(|run| run.status == store::ExecutionStatus::Ok))
            .count()
    };
    drive.choose(CommandId::NoteRunAll);
    drive.until("both have run", |window| runs(window) == 2);
    let note = session(&drive.window).notes().next().expect("a note").id;
    let at = "```python\nx = ".len();
    drive.window.state_mut().send_command(Command::Edit { note, at, delete: 1, insert: "2".to_owned() });
    drive.choose(CommandId::NoteRunStale);
    drive.until("both have run", |window| window.query_by_label("42").is_some());
    drive.choose(CommandId::NoteRunClean);
    let same = "Clean run: all 2 results the same.";
    drive.until("it is told", |window| window.query_all_by_label_contains(same).next().is_some());
    for (id, mode) in [
        (CommandId::CellsAutomatic, Reactivity::Automatic),
        (CommandId::CellsManual, Reactivity::Manual),
        (CommandId::CellsMarks, Reactivity::Marks),
    ] {
        drive.choose(id);
        assert_eq!(session(&drive.window).notes().next().expect("a note").reactivity(), mode, "{id}");
    }
    drive
}

fn links() -> Drive {
    let mut drive = Drive::on(&[("One.md", "[[Two]]\n\n[[Nowhere]]\n\n- [ ] a task\n"), ("Two.md", "2\n")]);
    drive.until("the links are known", |window| session(window).volumes().all(engine::Volume::is_indexed));
    for (id, label) in [
        (CommandId::ViewLinks, "Outgoing links (2)"),
        (CommandId::ViewBroken, "One.md: Nowhere"),
        (CommandId::ViewGraph, "Graph of 2 notes and 1 link"),
        (CommandId::ViewLocalGraph, "Graph of 2 notes and 1 link"),
        (CommandId::ViewAgenda, "No date: 1"),
        (CommandId::AppWelcome, "Welcome to Tracebook"),
        (CommandId::NoteRename, "Rename or move"),
    ] {
        drive.choose(id);
        assert!(drive.has(label), "{id}: {label}");
    }
    type_text(&mut drive.window, "s");
    press(&mut drive.window, NONE, Key::Enter);
    drive.until("it has another name", |window| path(window) == "Ones.md");
    drive.until("it is over", |window| session(window).can_undo_move());
    drive.choose(CommandId::FilesUndo);
    drive.until("it has its old name", |window| path(window) == "One.md");
    drive.until("it is over", |window| session(window).pending_move().is_none());
    std::fs::rename(drive.bench.notes().join("Two.md"), drive.bench.notes().join("Three.md")).expect("renamed");
    drive.until("it is seen", |window| session(window).count_outdated_link_notes() == 1);
    drive.choose(CommandId::FilesFollow);
    drive.until("the link follows", |window| text(window).is_some_and(|text| text.starts_with("[[Three]]")));
    drive.until("it is over", |window| session(window).pending_move().is_none());
    press(&mut drive.window, NONE, Key::Escape); // the agenda
    super::links::click_link(&mut drive.window, "Nowhere");
    assert_eq!(path(&drive.window), "Nowhere.md");
    drive.choose(CommandId::NoteUndoNew);
    drive.until("the note of a link is gone", |window| session(window).trash().count() == 1);
    drive.until("its link is shown", |window| path(window) == "One.md");
    drive.choose(CommandId::NoteDelete);
    drive.until("it is in the trash", |window| session(window).trash().count() == 2);
    drive.choose(CommandId::ViewSourceControl);
    assert!(drive.has("Source control"));
    drive.choose(CommandId::ViewForks);
    drive.until("there are no forks", |window| window.query_by_label_contains("No forks yet").is_some());
    drive.choose(CommandId::ViewPackages);
    drive.until("there are no packages", |window| window.query_by_label("Installed (0)").is_some());
    drive.choose(CommandId::ViewTrash);
    assert!(drive.has("Restore One"));
    drive.choose(CommandId::TrashEmpty);
    drive.window.get_by_label("Delete permanently").click();
    drive.window.run();
    drive.until("it is gone", |window| session(window).trash().count() == 0);
    drive
}

fn pasts() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n")]);
    drive.window.state_mut().place_caret(1);
    drive.window.run();
    type_text(&mut drive.window, "2");
    drive.until("it is saved", |window| session(window).is_saved());
    drive.choose(CommandId::NoteHistory);
    drive.until("what has changed is shown", |window| window.query_by_label("Now: 12").is_some());
    drive.choose(CommandId::NoteWriters);
    drive.until("who wrote it is shown", |window| window.query_by_label_contains(": 12").is_some());
    drive
}

fn pasting() -> Drive {
    use window::clipboard::ClipboardContent;
    let mut drive = Drive::on(&[("One.md", "a\n")]);
    drive.window.state_mut().read_clipboard(|| {
        let html = "<meta charset='utf-8'><p>some <b>bold</b> words</p>".to_owned();
        Some(ClipboardContent { text: "some bold words".to_owned(), html })
    });
    drive.window.get_by_label("a").click();
    drive.window.run();
    press(&mut drive.window, NONE, Key::End);
    drive.choose(CommandId::TextPastePlain);
    let paste = |drive: &mut Drive, text: &str| {
        drive.window.event(egui::Event::Paste(text.to_owned()));
        drive.window.run();
    };
    paste(&mut drive, " some bold words");
    drive.until("the plain text is there", |window| text(window).as_deref() == Some("a some bold words\n"));
    press(&mut drive.window, CTRL, Key::A);
    paste(&mut drive, "some bold words");
    // Text typed in the meantime comes after it.
    type_text(&mut drive.window, "!");
    drive.until("the Markdown is there", |window| {
        text(window).is_some_and(|text| text.trim_end() == "some **bold** words!")
    });
    press(&mut drive.window, CTRL, Key::A);
    paste(&mut drive, "other words");
    drive.until("what is not from there is pasted as it is", |window| {
        text(window).is_some_and(|text| text.trim_end() == "other words")
    });
    drive
}

#[test]
fn html_without_text_is_pasted_as_markdown() {
    use window::clipboard::ClipboardContent;
    let mut drive = Drive::on(&[("One.md", "a\n")]);
    drive.window.get_by_label("a").click();
    drive.window.run();
    press(&mut drive.window, NONE, Key::End);
    // Without plain text, the window gets no event for the key press.
    let paste = |drive: &mut Drive| {
        let modifiers = CTRL | Modifiers::CTRL;
        let released = egui::Event::Key { key: Key::V, physical_key: None, pressed: false, repeat: false, modifiers };
        drive.window.input_mut().events.push(released);
        drive.window.step();
    };
    drive.window.state_mut().read_clipboard(|| {
        Some(ClipboardContent { text: String::new(), html: "<p>some <b>bold</b> words</p>".to_owned() })
    });
    paste(&mut drive);
    drive.until("the Markdown is there", |window| text(window).as_deref() == Some("asome **bold** words\n"));
    drive
        .window
        .state_mut()
        .read_clipboard(|| Some(ClipboardContent { text: String::new(), html: "<p> plain words</p>".to_owned() }));
    paste(&mut drive);
    drive.until("words alone, too", |window| text(window).is_some_and(|text| text.ends_with("wordsplain words\n")));
    drive.window.state_mut().read_clipboard(|| None);
    paste(&mut drive);
    let said = "Nothing on the clipboard can be pasted here.";
    drive.until("it says so", |window| window.query_by_label(said).is_some());
    // A key press event alone doesn't paste.
    let before = text(&drive.window);
    press(&mut drive.window, CTRL, Key::V);
    assert_eq!(text(&drive.window), before);
}

fn exports() -> Drive {
    let mut drive = Drive::on(&[("One.md", "# One\n\nRain on [[Two]] ![](dot.svg)\n"), ("Two.md", "2\n")]);
    std::fs::write(drive.bench.notes().join("dot.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>").expect("a file");
    drive.choose(CommandId::FolderRescan);
    drive.until("the picture is known", |window| {
        session(window).volumes().any(|volume| volume.files.contains_key("dot.svg"))
    });
    let out = drive.bench.folder.path().join("out");
    for (id, title, name, made) in [
        (CommandId::ExportHtml, "Export to HTML", "one.html", "one.html"),
        (CommandId::ExportPdf, "Export to PDF", "one.pdf", "one.pdf"),
        (CommandId::ExportFolder, "Export to a Markdown folder", "one", "one/dot.svg"),
        (CommandId::ExportNotebook, "Export to Jupyter notebook", "one.ipynb", "one.ipynb"),
    ] {
        drive.choose(id);
        assert!(drive.has(title), "{id}");
        press(&mut drive.window, CTRL, Key::A);
        type_text(&mut drive.window, &out.join(name).display().to_string());
        press(&mut drive.window, NONE, Key::Enter);
        let says = format!("Dismiss: Exported to {}", out.join(name).display());
        drive.until("it is exported", |window| window.query_by_label_contains(&says).is_some());
        assert!(out.join(made).exists(), "{id}");
    }
    assert!(std::fs::read(out.join("one.pdf")).expect("a file").starts_with(b"%PDF"));
    let notebook = std::fs::read(out.join("one.ipynb")).expect("a file");
    let notebook: serde_json::Value = serde_json::from_slice(&notebook).expect("JSON");
    assert!(notebook["cells"][0]["source"].to_string().contains("# One"), "{notebook}");
    assert_eq!(std::fs::read_to_string(out.join("one/One.md")).expect("a file").lines().next(), Some("# One"));
    drive.choose(CommandId::NotePrint);
    drive.until("it says that there is no desktop", |window| {
        window.query_by_label("Dismiss: Nothing can be printed here.").is_some()
    });
    for (outcome, says) in [
        (Ok(PrintOutcome::Sent), "Dismiss: One was sent to the printer."),
        (Ok(PrintOutcome::Opened), "Dismiss: This desktop has no print dialog."),
        (Err("xdg-open is missing"), "Dismiss: One was not printed: xdg-open is missing"),
    ] {
        let (send, printed) = std::sync::mpsc::channel();
        drive.window.state_mut().use_pdf_printer(std::sync::Arc::new(move |title, path| {
            let head = std::fs::read(path).expect("a file")[..5].to_vec();
            send.send((title.to_owned(), head)).expect("somebody waits");
            std::fs::remove_dir_all(path.parent().expect("a folder")).expect("removed");
            outcome.map_err(|why| std::io::Error::other(why).into())
        }));
        drive.choose(CommandId::NotePrint);
        drive.until("it says what became of it", |window| window.query_by_label_contains(says).is_some());
        assert_eq!(printed.try_recv(), Ok(("One".to_owned(), b"%PDF-".to_vec())));
    }
    // An existing file name is refused in the dialog.
    drive.choose(CommandId::ExportPdf);
    press(&mut drive.window, CTRL, Key::A);
    type_text(&mut drive.window, &out.join("one.pdf").display().to_string());
    press(&mut drive.window, NONE, Key::Enter);
    assert!(drive.window.query_by_label_contains("with that name already exists").is_some());
    // The whole volume is exported instead.
    drive.window.get_by_label("All of notes").click();
    drive.window.run();
    press(&mut drive.window, CTRL, Key::A);
    type_text(&mut drive.window, &out.join("all.pdf").display().to_string());
    press(&mut drive.window, NONE, Key::Enter);
    drive.until("it is exported", |_| out.join("all.pdf").exists());
    drive.until("it is said", |window| window.query_all_by_label_contains("all.pdf").next().is_some());
    drive.choose(CommandId::ExportOpen);
    drive
}

fn folders() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n")]);
    drive.choose(CommandId::FolderObsidian);
    drive.until("there is nothing to take over", |window| {
        window.query_by_label("Dismiss: This folder has no Obsidian settings that differ from yours.").is_some()
    });
    let before = session(&drive.window).volumes().next().expect("a volume").scans;
    drive.choose(CommandId::FolderRescan);
    drive.until("it was looked at again", |window| session(window).volumes().any(|volume| volume.scans > before));
    drive.choose(CommandId::NoteBlame);
    drive.until("there is no repository", |window| {
        window.query_by_label("Dismiss: This note isn't in a Git repository.").is_some()
    });
    let is_trusted = |window: &Driven| !session(window).settings().trusted_volumes.is_empty();
    drive.choose(CommandId::VolumeTrust);
    drive.until("it is trusted", |window| is_trusted(window));
    drive.choose(CommandId::VolumeTrust);
    drive.until("it no longer is", |window| !is_trusted(window));
    drive.choose(CommandId::VolumeClose);
    drive.until("it is gone", |window| session(window).volumes().next().is_none());
    drive.choose(CommandId::VolumeReopen);
    drive.until("its note is shown again", |window| text(window).is_some());
    drive.choose(CommandId::HelpReport);
    drive.until("the report is there", |window| window.query_by_label("Bug report").is_some());
    press(&mut drive.window, NONE, Key::Escape);
    drive.choose(CommandId::HelpSample);
    drive.until("the sample is open", |window| text(window).is_some_and(|text| text.starts_with("# Welcome")));
    drive.choose(CommandId::HelpOpen);
    drive.until("the guide is open", |window| text(window).is_some_and(|text| text.starts_with("# Tracebook guide")));
    drive
}

fn syncing() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n")]);
    drive.choose(CommandId::SyncStatus);
    assert!(drive.has("Nothing is shared. Notes are only on this device."));
    drive.choose(CommandId::SyncMerges);
    assert!(drive.has("Other devices have changed nothing yet."));
    drive.choose(CommandId::SyncLog);
    assert!(drive.has("No activity yet"));
    drive.choose(CommandId::SyncDevices);
    assert!(drive.has("Devices"));
    press(&mut drive.window, NONE, Key::Escape);
    drive.choose(CommandId::SyncShare);
    type_text(&mut drive.window, "http://x");
    press(&mut drive.window, NONE, Key::Enter);
    assert!(drive.window.query_by_label_contains("begins with ws://").is_some(), "it is refused in the dialog");
    press(&mut drive.window, CTRL, Key::A);
    type_text(&mut drive.window, "ws://127.0.0.1:1");
    press(&mut drive.window, NONE, Key::Enter);
    drive.until("no hub is there, and that is no error", |window| window.query_by_label("Sync: Offline").is_some());
    drive.choose(CommandId::SyncRetry);
    assert!(drive.has("Dismiss: Connecting to hubs…"));
    drive.choose(CommandId::SyncPause);
    drive.until("it is paused", |window| window.query_by_label("Sync: Sync paused").is_some());
    drive.choose(CommandId::SyncPause);
    drive.until("it goes on", |window| window.query_by_label("Sync: Sync paused").is_none());
    drive.choose(CommandId::SyncJoin);
    type_text(&mut drive.window, "nonsense");
    drive.window.get_by_label("Folder for it").click();
    drive.window.run();
    type_text(&mut drive.window, "/tmp");
    press(&mut drive.window, NONE, Key::Enter);
    assert!(drive.window.query_by_label_contains("A volume's address is").is_some(), "it is refused in the dialog");
    press(&mut drive.window, NONE, Key::Escape);
    drive
}

fn agents() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n")]);
    drive.choose(CommandId::AgentOpen);
    assert!(drive.has("Message to the agent"));
    drive.choose(CommandId::AgentOpen);
    assert!(!drive.has("Message to the agent"));
    // A second time, it stays.
    for _ in 0..2 {
        drive.choose(CommandId::AgentConnect);
        assert!(drive.has("Connect a model to get started"));
    }
    drive.choose(CommandId::AgentNew);
    assert!(drive.has("Message to the agent"));
    for (id, says) in [
        (CommandId::AgentStop, "Dismiss: The agent isn't running."),
        (CommandId::AgentResume, "Dismiss: No agent has run yet."),
        (CommandId::AgentAllow, "Dismiss: Nothing needs approval."),
        (CommandId::AgentDeny, "Dismiss: Nothing needs approval."),
    ] {
        drive.choose(id);
        assert!(drive.has(says), "{id}");
    }
    // `agent.rs` tests what they show after a question.
    let volume = session(&drive.window).volumes().next().expect("a volume").id;
    let (run, asked) = (store::DocId([4; 16]), store::DocId([3; 16]));
    let said = store::SessionMessage::new(store::MessageId(1), store::MessageRole::User, "a question", 1);
    let messages = vec![store::SessionMessage { run: Some(run), ..said }];
    let title = "Asked".to_owned();
    drive.window.state_mut().send_command(Command::ImportSession {
        session: asked,
        volume,
        title,
        messages,
        imported: None,
    });
    let about = serde_json::json!({"session": asked, "asked": store::MessageId(1), "head": store::MessageId(1),
        "volume": volume, "note": null, "prompt": "a question", "agent": "assistant", "startTime": 0, "ended": 1,
        "ending": "done", "iteration": 1, "limit": 20, "agentState": "idle",
        "spent": {"inputTokens": 1, "outputTokens": 1, "cost": null}, "budget": null});
    let about = serde_json::from_value(about).expect("what is said of a run");
    drive.window.state_mut().send_command(Command::ImportRun {
        run,
        about,
        todos: Vec::new(),
        steps: Vec::new(),
        approvals: Vec::new(),
    });
    drive.window.run();
    for (id, says) in [
        (CommandId::ViewMemory, "Nothing is remembered yet."),
        (CommandId::ViewTraces, "File of traces"),
        (CommandId::ViewBudget, "Spent by: Task"),
        (CommandId::ViewSchedule, "What begins: Ask an agent"),
        (CommandId::ViewAgents, "Agent: data"),
        (CommandId::ViewPlans, "Goal of a new plan"),
    ] {
        drive.choose(id);
        drive.until(id.title(), |window| window.query_all_by_label(says).next().is_some());
    }
    drive.choose(CommandId::MemoryUndo);
    assert!(drive.has("Dismiss: Nothing to restore"));
    for (id, says) in [
        (CommandId::AgentTimeline, "The run has no steps yet."),
        (CommandId::AgentChanges, "This session has changed nothing."),
        (CommandId::AgentBranches, "a question"),
        (CommandId::AgentTools, "File of tools"),
    ] {
        drive.choose(id);
        drive.until(id.title(), |window| window.query_all_by_label(says).next().is_some());
    }
    drive
}

fn quitting() -> Drive {
    let mut drive = Drive::on(&[("One.md", "1\n")]);
    press(&mut drive.window, CTRL_SHIFT, Key::P);
    type_text(&mut drive.window, "Quit");
    // Only the key press: with the events that follow it, another frame would hide the window's request.
    let (key, modifiers) = (Key::Enter, NONE);
    drive.window.event(egui::Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers });
    drive.window.step();
    let mut outputs = drive.window.output().viewport_output.values();
    let asked =
        outputs.any(|output| output.commands.iter().any(|command| matches!(command, egui::ViewportCommand::Close)));
    assert!(asked, "the window was asked to close");
    drive.driven.insert(CommandId::AppQuit);
    drive
}

#[test]
fn every_command_does_what_it_says() {
    let steps = [
        figures,
        filing,
        overlays,
        the_view,
        editing,
        writing,
        tabs,
        finding,
        words,
        cells,
        whole_cells,
        reacting,
        links,
        exports,
        pasting,
        pasts,
        folders,
        syncing,
        agents,
        quitting,
    ];
    let driven: BTreeSet<CommandId> = steps.into_iter().flat_map(|step| step().driven).collect();
    let offered = COMMANDS.iter().filter(|command| command.window).map(|command| command.id);
    let missing: Vec<CommandId> = offered.filter(|id| !driven.contains(id)).collect();
    assert!(missing.is_empty(), "nothing here chooses {missing:?}: add a step that does and looks what came of it");
}
