//! `screenshots`: pictures of the window for the documentation, made without a display. The same window over the sample
//! volume is led through a list of scenes, and what it would have a graphics card draw is painted on the processor.

pub(super) mod canvas;

use super::stage::Stage;
use super::{DONE, FAILED, Refusal, parse, program};
use clap::ArgMatches;
use eframe::egui::{Color32, ColorImage};
use engine::{Command, Session};
use host::measure::Scratch;
use host::{Options, copy};
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
}

use Do::{Press, Run, RunAll, Show, To, Type};

/// The scenes: a name, and how the window comes to it from the one before.
const SCENES: &[(&str, &[Do])] = &[
    ("note", &[Show("Welcome.md")]),
    ("writing", &[Show("Guide/Writing.md"), To("one hard")]),
    ("cells", &[Show("Python/Rainfall.md"), RunAll]),
    ("error", &[Show("Python/When something goes wrong.md"), RunAll]),
    ("palette", &[Show("Welcome.md"), Run("palette.open"), Type("run")]),
    ("switcher", &[Press("Escape"), Run("switcher.open"), Type("ke")]),
    ("outline", &[Press("Escape"), Show("Guide/Writing.md"), Run("view.right")]),
    ("split", &[Run("view.right"), Run("pane.split_right"), Show("Python/Rainfall.md")]),
    ("tabs", &[Run("note.close"), Run("tab.new"), Press("Escape"), Show("Guide/Your files.md")]),
    ("new", &[Run("note.new"), Type("Journal/Today")]),
    ("keys", &[Press("Escape"), Run("app.keys")]),
    ("empty", &[Press("Escape"), Run("note.close"), Run("note.close")]),
];
/// Pictures in a row of the sheet, and how much smaller they are there.
const ACROSS: usize = 4;
const SMALLER: usize = 2;
const GAP: usize = 24;

pub(super) fn screenshots(args: &ArgMatches, json: bool, out: &mut dyn Write) -> Result<u8, Refusal> {
    let here = std::env::current_dir().unwrap_or_default();
    let folder = copy::absolute(&here, parse::needed(args, "DIR")?);
    let scale = parse::number(args, "scale")?.unwrap_or(2);
    if !(1..=3).contains(&scale) {
        return Err(Refusal::usage(format!("a point can be 1, 2 or 3 pixels wide, not {scale}")));
    }
    let scale = u8::try_from(scale).map_or(2.0, f32::from);
    let only = args.get_one::<String>("scene").map(String::as_str);
    if let Some(scene) = only.filter(|scene| SCENES.iter().all(|(name, _)| name != scene)) {
        let names: Vec<&str> = SCENES.iter().map(|(name, _)| *name).collect();
        return Err(Refusal::usage(format!("there is no scene “{scene}”; there are {}", names.join(", "))));
    }
    let failed = |why| Refusal { code: FAILED, why };
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
        }
    }
    Ok(DONE)
}

/// Leads a window through all scenes in one theme.
fn take(
    theme: &str,
    scale: f32,
    only: Option<&str>,
    mut keep: impl FnMut(&str, ColorImage) -> Result<(), String>,
) -> Result<(), String> {
    let scratch = Scratch::new(&format!("pictures-{theme}"))?;
    for (path, bytes) in system::SAMPLE {
        scratch.write(&format!("Sample/{path}"), bytes)?;
    }
    let options = Options { program: program().map_err(|refusal| refusal.why)?, create: true };
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
            act(&mut stage, step)?;
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

fn act(stage: &mut Stage, step: &Do) -> Result<(), String> {
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
    let mut sheet = ColorImage::filled(size, Color32::from_gray(0x80));
    for (place, shot) in shots.iter().enumerate() {
        let at = [GAP + place % ACROSS * (width + GAP), GAP + place / ACROSS * (height + GAP)];
        canvas::put(shot, &mut sheet, at);
    }
    sheet
}
