//! `screenshots`: pictures of the window for the documentation, made without a display. The same window over the sample
//! volume is led through a list of scenes, and what it would have a graphics card draw is painted on the processor.

pub(crate) mod canvas;
mod conversation;
mod remembered;
mod staged;

use super::stage::Stage;
use clap::ArgMatches;
use cli::{CliError, EXIT_DONE, EXIT_FAILED, parse, program};
use eframe::egui::{Color32, ColorImage};
use engine::{Command, Session};
use host::measure::ScratchFolder;
use host::{WorkspaceOptions, fs::copy};
use staged::STAGED;
use std::io::Write;
use std::time::Duration;

/// One thing done in the window.
enum Do {
    /// A command of the table.
    Run(&'static str),
    /// A key.
    Press(&'static str),
    /// Some text.
    Type(&'static str),
    /// The caret goes to where this stands.
    To(&'static str),
    /// Another note is shown.
    Show(&'static str),
    /// Every cell of the note runs.
    RunAll,
    /// All that was written reaches the disk.
    Saved,
    /// Another program replaces words in the file of the open note.
    Outside(&'static str, &'static str),
    /// The window is let be for so many milliseconds.
    Wait(u64),
    /// A note goes into the trash.
    Delete(&'static str),
    /// An agent was asked something, and has answered.
    Converse,
}

use Do::{Converse, Delete, Outside, Press, Run, RunAll, Saved, Show, To, Type, Wait};

/// The scenes: a name, and how the window comes to it from the one before.
const SCENES: &[(&str, &[Do])] = &[
    ("note", &[Show("Welcome.md")]),
    ("writing", &[Show("Guide/Writing.md"), To("one hard")]),
    ("cells", &[Show("Python/Rainfall.md"), RunAll]),
    ("variables", &[Run("view.variables"), Wait(1_500)]),
    ("completion", &[To(".join(months[0]))"), Press("Enter"), Type("months."), Wait(800)]),
    (
        "question",
        &[
            Press("Escape"),
            Run("view.variables"),
            Show("Python/A question.md"),
            To("print("),
            Run("cell.run"),
            Wait(3_000),
        ],
    ),
    (
        "described",
        &[
            Type("Beans"),
            Press("Enter"),
            Wait(600),
            To("import statistics"),
            Run("cell.run"),
            Wait(1_200),
            To("statistics.median"),
            Press("Shift+Tab"),
            Wait(900),
        ],
    ),
    ("error", &[Press("Escape"), Show("Python/When something goes wrong.md"), RunAll]),
    ("palette", &[Show("Welcome.md"), Run("palette.open"), Type("run")]),
    ("switcher", &[Press("Escape"), Run("switcher.open"), Type("ke")]),
    ("search", &[Press("Escape"), Run("search.open"), Type("rain"), Wait(2_500)]),
    ("outline", &[Press("Escape"), Show("Guide/Writing.md"), Run("view.right")]),
    ("links", &[Show("Garden/Plan.md"), Wait(300), Run("view.links")]),
    ("split", &[Run("view.links"), Show("Guide/Writing.md"), Run("pane.split_right"), Show("Python/Rainfall.md")]),
    ("tabs", &[Run("note.close"), Run("tab.new"), Press("Escape"), Show("Guide/Your files.md")]),
    ("collection", &[Show("Garden/Crops.base"), Wait(800)]),
    ("cards", &[Show("Garden/Gallery.base"), Wait(1_200)]),
    ("script", &[Show("Python/Waves.py"), RunAll, Wait(800)]),
    ("embedded", &[Show("Garden/Season.md"), Wait(1_200)]),
    ("new", &[Run("note.new"), Type("Journal/Today")]),
    (
        "history",
        &[
            Press("Escape"),
            Run("note.close"),
            Show("Garden/Plan.md"),
            To("along the wall"),
            Type(", where the sun stays longest"),
            Saved,
            Wait(700),
            Outside("two rows of beans", "three rows of beans, a hand apart"),
            Saved,
            Outside("Water every evening.", "Water every morning, before the sun is on the leaves."),
            Saved,
            To("before the frost"),
            Type(", or they are lost"),
            Saved,
            Wait(700),
            Run("note.history"),
            Wait(400),
            Press("ArrowDown"),
            Wait(400),
        ],
    ),
    ("writers", &[Run("note.writers"), Wait(500)]),
    ("agenda", &[Press("Escape"), Run("view.agenda"), Wait(300)]),
    ("graph", &[Run("view.graph"), Wait(2_500)]),
    (
        "trash",
        &[
            Press("Escape"),
            Delete("Garden/Old list.md"),
            Delete("Garden/Seeds 2024.md"),
            Run("view.trash"),
            Wait(4_200),
        ],
    ),
    ("agent", &[Press("Escape"), Show("Garden/Plan.md"), Converse, Run("agent.open"), Wait(600)]),
    ("timeline", &[Run("agent.timeline"), Press("ArrowRight"), Press("ArrowRight"), Press("ArrowRight"), Wait(300)]),
    (
        "remembered",
        &[Press("Escape"), Run("agent.new"), Type("Plan when the beans and the peas are sown in spring"), Wait(3_000)],
    ),
    ("memory", &[Run("view.memory"), Wait(600)]),
    ("traces", &[Run("view.traces"), Wait(600)]),
    ("budget", &[Run("view.budget"), Wait(1_200)]),
    ("schedule", &[Run("view.schedule"), Wait(600)]),
    ("settings", &[Press("Escape"), Run("agent.open"), Run("app.settings")]),
    ("keys", &[Press("Escape"), Run("app.keys")]),
    ("contrast", &[Press("Escape"), Show("Garden/Plan.md"), Run("view.contrast"), Run("note.history"), Wait(600)]),
    ("empty", &[Run("view.contrast"), Press("Escape"), Run("note.close"), Run("note.close"), Wait(400)]),
];
/// Pictures in a row of the sheet, and how much smaller they are there.
const ACROSS: usize = 5;
const SMALLER: usize = 4;
const GAP: usize = 24;
/// What is seen between pictures.
const GROUND: Color32 = Color32::from_gray(0x80);

pub(crate) fn screenshots(args: &ArgMatches, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let here = std::env::current_dir().unwrap_or_default();
    let folder = copy::absolute(&here, parse::needed(args, "DIR")?);
    let scale = parse::number(args, "scale")?.unwrap_or(2);
    if !(1..=3).contains(&scale) {
        return Err(CliError::usage(format!("a point can be 1, 2 or 3 pixels wide, not {scale}")));
    }
    let scale = u8::try_from(scale).map_or(2.0, f32::from);
    let only = args.get_one::<String>("scene").map(String::as_str);
    if let Some(scene) = only.filter(|scene| SCENES.iter().all(|(name, _)| name != scene)) {
        let names: Vec<&str> = SCENES.iter().map(|(name, _)| *name).collect();
        return Err(CliError::usage(format!("there is no scene “{scene}”; there are {}", names.join(", "))));
    }
    let failed = |why| CliError { code: EXIT_FAILED, why };
    let mut both = Vec::new();
    for theme in ["light", "dark"] {
        let mut shots = Vec::new();
        take(theme, scale, only, |name, picture| {
            let file = folder.join(format!("{theme}-{name}.png"));
            copy::write_new(&file, &canvas::png(&picture)?)?;
            let said = if json {
                writeln!(out, "{}", serde_json::json!({"picture": file}))
            } else {
                writeln!(out, "{}", file.display())
            };
            shots.push(canvas::smaller(&picture, SMALLER));
            said.map_err(|error| error.to_string())
        })
        .map_err(failed)?;
        if only.is_none() {
            let file = folder.join(format!("{theme}-sheet.png"));
            copy::write_new(&file, &canvas::png(&sheet(&shots)).map_err(failed)?).map_err(failed)?;
            // Each theme begins a row.
            let [width, height] = shots.first().map_or([1, 1], |shot| shot.size);
            let blank = || ColorImage::filled([width, height], GROUND);
            both.extend(shots);
            both.resize_with(both.len().next_multiple_of(ACROSS), blank);
        }
    }
    if only.is_none() {
        let file = folder.join("sheet.png");
        copy::write_new(&file, &canvas::png(&sheet(&both)).map_err(failed)?).map_err(failed)?;
    }
    Ok(EXIT_DONE)
}

/// Leads a window through all scenes in one theme.
fn take(
    theme: &str,
    scale: f32,
    only: Option<&str>,
    mut keep: impl FnMut(&str, ColorImage) -> Result<(), String>,
) -> Result<(), String> {
    let scratch = ScratchFolder::new(&format!("pictures-{theme}"))?;
    for (path, bytes) in system::SAMPLE {
        scratch.write(&format!("Sample/{path}"), bytes)?;
    }
    let today = jiff::Zoned::now().date();
    for (path, text) in STAGED {
        let mut text = (*text).to_owned();
        for days in -9..=9_i64 {
            let day = today.saturating_add(jiff::Span::new().days(days));
            text = text.replace(&format!("{{{days}}}"), &day.to_string());
        }
        scratch.write(&format!("Sample/{path}"), text.as_bytes())?;
    }
    for (path, text) in remembered::notes() {
        scratch.write(&format!("Sample/{path}"), text.as_bytes())?;
    }
    let options = WorkspaceOptions { program: program().map_err(|refusal| refusal.why)?, create: true };
    let workspace = scratch.folder().join("workspace");
    let driver = host::open(&workspace, options).map_err(|error| error.to_string())?;
    let mut stage = Stage::with_canvas(driver, scale);
    stage.run_until("the workspace is open", Session::is_open)?;
    stage.perform("view.theme");
    if theme == "dark" {
        stage.perform("view.theme");
    }
    stage.run(QUIET);
    if only.is_none() {
        keep("first", stage.picture())?;
    }
    stage.command(Command::OpenFolder { folder: scratch.folder().join("Sample"), name: Some("Sample".to_owned()) });
    stage.run_until("the sample is known", |session| session.volumes().any(|volume| volume.scans > 0))?;
    for (name, steps) in SCENES {
        for step in *steps {
            act(&mut stage, step, &scratch)?;
        }
        if only.is_none_or(|only| only == *name) {
            stage.run(QUIET);
            keep(name, stage.picture())?;
        }
        if only == Some(*name) {
            break;
        }
    }
    stage.close();
    Ok(())
}

/// What is folded and faded has come to rest after this.
const QUIET: Duration = Duration::from_millis(300);

fn act(stage: &mut Stage, step: &Do, scratch: &ScratchFolder) -> Result<(), String> {
    match step {
        Run(id) => stage.perform(id),
        Press(key) => stage.press(key),
        Type(text) => stage.type_text(text),
        To(text) => {
            let at = stage.note().and_then(|note| stage.session().note(note)?.text().find(text));
            stage.place_caret(at.unwrap_or(0) + text.len());
        }
        Show(path) => {
            let find =
                |session: &Session| session.volumes().find_map(|volume| volume.files.get(*path)).map(|row| row.id);
            stage.run_until("the note is known", |session| find(session).is_some())?;
            let note = find(stage.session()).ok_or("the note is gone")?;
            stage.show(note);
            stage.run_until("the note can be read", |session| {
                session.note(note).is_some_and(engine::Note::is_settled)
            })?;
        }
        Saved => stage.run_until("all is saved", Session::is_saved)?,
        Wait(time) => stage.run(Duration::from_millis(*time)),
        Outside(old, new) => {
            let note = stage.note().ok_or("no note is open")?;
            let place = stage.session().locate_file(note).map(|(_, path)| path.to_owned()).ok_or("the note is gone")?;
            let text = stage.session().note(note).map(engine::Note::text).unwrap_or_default();
            scratch.write(&format!("Sample/{place}"), text.replace(old, new).as_bytes())?;
            stage.run_until("the other program's words are there", |session| {
                session.note(note).is_some_and(|note| note.text().contains(new))
            })?;
        }
        Delete(path) => {
            let find =
                |session: &Session| session.volumes().find_map(|volume| volume.files.get(*path)).map(|row| row.id);
            let file = find(stage.session()).ok_or("the note is gone")?;
            stage.command(Command::DeleteFiles { files: vec![file] });
            stage.run_until("the note is in the trash", |session| {
                session.pending_move().is_none() && find(session).is_none()
            })?;
        }
        Converse => {
            let volume = stage.session().volumes().next().map(|volume| volume.id).ok_or("there is no volume")?;
            let start = jiff::Timestamp::now().as_millisecond() - 60_000;
            for command in conversation::commands(volume, start) {
                stage.command(command);
            }
        }
        RunAll => {
            stage.perform("note.run_all");
            let note = stage.note().ok_or("no note is open")?;
            let done = |session: &Session| {
                let note = session.note(note);
                note.is_some_and(|note| {
                    let mut runs = note.cells().filter_map(|cell| note.execution(cell)).peekable();
                    runs.peek().is_some() && runs.all(|run| run.status.is_final())
                })
            };
            stage.run_until("its cells have run", done)?;
        }
    }
    stage.run(Duration::from_millis(60));
    Ok(())
}

/// All pictures on one sheet.
fn sheet(shots: &[ColorImage]) -> ColorImage {
    let [width, height] = shots.first().map_or([1, 1], |shot| shot.size);
    let rows = shots.len().div_ceil(ACROSS);
    let size = [ACROSS * (width + GAP) + GAP, rows * (height + GAP) + GAP];
    let mut sheet = ColorImage::filled(size, GROUND);
    for (place, shot) in shots.iter().enumerate() {
        let at = [GAP + place % ACROSS * (width + GAP), GAP + place / ACROSS * (height + GAP)];
        canvas::put(shot, &mut sheet, at);
    }
    sheet
}
