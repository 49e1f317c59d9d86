//! `take_screenshots`: takes screenshots of the window for the documentation, without a display.
//!
//! The real window over the sample volume goes through a list of scenes, and its triangles are painted on the CPU.

pub(crate) mod canvas;
mod conversation_fixture;
mod memory_fixture;
mod note_fixtures;

use super::headless_window::HeadlessWindow;
use cli::{CliError, EXIT_DONE, EXIT_FAILED, parse, program_path};
use eframe::egui::{Color32, ColorImage};
use engine::commands::CommandId;
use engine::{Command, Session};
use host::{WorkspaceOptions, fs::copy};
use note_fixtures::FIXTURE_NOTES;
use std::io::Write;
use std::time::Duration;
use support::measure::ScratchFolder;

/// A step in the window.
enum SceneStep {
    /// Runs a command of the command table.
    Run(CommandId),
    /// Presses a key.
    Press(&'static str),
    /// Types a text.
    Type(&'static str),
    /// Places the caret behind this text.
    PlaceCaret(&'static str),
    /// Shows another note.
    Show(&'static str),
    /// Runs all cells of the note.
    RunAll,
    /// Waits until everything is saved.
    WaitUntilSaved,
    /// Replaces text in the file of the open note, as another program would.
    ReplaceExternally(&'static str, &'static str),
    /// Waits for a number of milliseconds.
    Wait(u64),
    /// Moves a note to the trash.
    Delete(&'static str),
    /// Imports a conversation with an agent that has answered.
    ImportConversation,
}

use SceneStep::{
    Delete, ImportConversation, PlaceCaret, Press, ReplaceExternally, Run, RunAll, Show, Type, Wait, WaitUntilSaved,
};

/// The scenes: the name, and the steps from the scene before.
const SCREENSHOT_SCENES: &[(&str, &[SceneStep])] = &[
    ("note", &[Show("Welcome.md")]),
    ("writing", &[Show("Guide/Writing.md"), PlaceCaret("one hard")]),
    ("cells", &[Show("Python/Rainfall.md"), RunAll]),
    ("variables", &[Run(CommandId::ViewVariables), Wait(1_500)]),
    ("completion", &[PlaceCaret(".join(months[0]))"), Press("Enter"), Type("months."), Wait(800)]),
    (
        "question",
        &[
            Press("Escape"),
            Run(CommandId::ViewVariables),
            Show("Python/A question.md"),
            PlaceCaret("print("),
            Run(CommandId::CellRun),
            Wait(3_000),
        ],
    ),
    (
        "described",
        &[
            Type("Beans"),
            Press("Enter"),
            Wait(600),
            PlaceCaret("import statistics"),
            Run(CommandId::CellRun),
            Wait(1_200),
            PlaceCaret("statistics.median"),
            Press("Shift+Tab"),
            Wait(900),
        ],
    ),
    ("error", &[Press("Escape"), Show("Python/When something goes wrong.md"), RunAll]),
    ("palette", &[Show("Welcome.md"), Run(CommandId::PaletteOpen), Type("run")]),
    ("switcher", &[Press("Escape"), Run(CommandId::SwitcherOpen), Type("ke")]),
    ("search", &[Press("Escape"), Run(CommandId::SearchOpen), Type("rain"), Wait(2_500)]),
    ("outline", &[Press("Escape"), Show("Guide/Writing.md"), Run(CommandId::ViewRight)]),
    ("links", &[Show("Garden/Plan.md"), Wait(300), Run(CommandId::ViewLinks)]),
    (
        "split",
        &[
            Run(CommandId::ViewLinks),
            Show("Guide/Writing.md"),
            Run(CommandId::PaneSplitRight),
            Show("Python/Rainfall.md"),
        ],
    ),
    ("tabs", &[Run(CommandId::NoteClose), Run(CommandId::TabNew), Press("Escape"), Show("Guide/Your files.md")]),
    ("collection", &[Show("Garden/Crops.base"), Wait(800)]),
    ("cards", &[Show("Garden/Gallery.base"), Wait(1_200)]),
    ("script", &[Show("Python/Waves.py"), RunAll, Wait(800)]),
    ("embedded", &[Show("Garden/Season.md"), Wait(1_200)]),
    ("new", &[Run(CommandId::NoteNew), Type("Journal/Today")]),
    (
        "history",
        &[
            Press("Escape"),
            Run(CommandId::NoteClose),
            Show("Garden/Plan.md"),
            PlaceCaret("along the wall"),
            Type(", where the sun stays longest"),
            WaitUntilSaved,
            Wait(700),
            ReplaceExternally("two rows of beans", "three rows of beans, a hand apart"),
            WaitUntilSaved,
            ReplaceExternally("Water every evening.", "Water every morning, before the sun is on the leaves."),
            WaitUntilSaved,
            PlaceCaret("before the frost"),
            Type(", or they are lost"),
            WaitUntilSaved,
            Wait(700),
            Run(CommandId::NoteHistory),
            Wait(400),
            Press("ArrowDown"),
            Wait(400),
        ],
    ),
    ("writers", &[Run(CommandId::NoteWriters), Wait(500)]),
    ("agenda", &[Press("Escape"), Run(CommandId::ViewAgenda), Wait(300)]),
    ("graph", &[Run(CommandId::ViewGraph), Wait(2_500)]),
    (
        "trash",
        &[
            Press("Escape"),
            Delete("Garden/Old list.md"),
            Delete("Garden/Seeds 2024.md"),
            Run(CommandId::ViewTrash),
            Wait(4_200),
        ],
    ),
    ("agent", &[Press("Escape"), Show("Garden/Plan.md"), ImportConversation, Run(CommandId::AgentOpen), Wait(600)]),
    (
        "timeline",
        &[Run(CommandId::AgentTimeline), Press("ArrowRight"), Press("ArrowRight"), Press("ArrowRight"), Wait(300)],
    ),
    (
        "remembered",
        &[
            Press("Escape"),
            Run(CommandId::AgentNew),
            Type("Plan when the beans and the peas are sown in spring"),
            Wait(3_000),
        ],
    ),
    ("memory", &[Run(CommandId::ViewMemory), Wait(600)]),
    ("traces", &[Run(CommandId::ViewTraces), Wait(600)]),
    ("budget", &[Run(CommandId::ViewBudget), Wait(1_200)]),
    ("schedule", &[Run(CommandId::ViewSchedule), Wait(600)]),
    ("settings", &[Press("Escape"), Run(CommandId::AgentOpen), Run(CommandId::AppSettings)]),
    ("keys", &[Press("Escape"), Run(CommandId::AppKeys)]),
    (
        "contrast",
        &[
            Press("Escape"),
            Show("Garden/Plan.md"),
            Run(CommandId::ViewContrast),
            Run(CommandId::NoteHistory),
            Wait(600),
        ],
    ),
    (
        "empty",
        &[
            Run(CommandId::ViewContrast),
            Press("Escape"),
            Run(CommandId::NoteClose),
            Run(CommandId::NoteClose),
            Wait(400),
        ],
    ),
];
/// Layout of the contact sheet: images per row, and how much smaller they are.
const SHEET_COLUMNS: usize = 5;
const SHEET_SCALE_DIVISOR: usize = 4;
const SHEET_GAP_PIXELS: usize = 24;
/// Background between the images.
const SHEET_BACKGROUND: Color32 = Color32::from_gray(0x80);

/// Arguments of the subcommand `screenshots`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ScreenshotsArguments {
    #[arg(id = "DIR")]
    folder: String,
    #[arg(long)]
    scale: Option<String>,
    #[arg(long)]
    scene: Option<String>,
}

pub(crate) fn take_screenshots(args: &ScreenshotsArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let here = std::env::current_dir().unwrap_or_default();
    let folder = copy::absolute_path(&here, &args.folder);
    let scale = parse::number_option("scale", args.scale.as_deref())?.unwrap_or(2);
    if !(1..=3).contains(&scale) {
        return Err(CliError::usage(format!("a point can be 1, 2 or 3 pixels wide, not {scale}")));
    }
    let scale = u8::try_from(scale).map_or(2.0, f32::from);
    let only = args.scene.as_deref();
    if let Some(scene) = only.filter(|scene| SCREENSHOT_SCENES.iter().all(|(name, _)| name != scene)) {
        let names: Vec<&str> = SCREENSHOT_SCENES.iter().map(|(name, _)| *name).collect();
        return Err(CliError::usage(format!("there is no scene “{scene}”; there are {}", names.join(", "))));
    }
    let failed = |why| CliError { code: EXIT_FAILED, why };
    let mut both = Vec::new();
    for theme in ["light", "dark"] {
        let mut shots = Vec::new();
        run_scenes(theme, scale, only, |name, picture| {
            let file = folder.join(format!("{theme}-{name}.png"));
            copy::write_new(&file, &canvas::encode_png(&picture)?).map_err(|why| why.to_string())?;
            let said = if json {
                writeln!(out, "{}", serde_json::json!({"picture": file}))
            } else {
                writeln!(out, "{}", file.display())
            };
            shots.push(canvas::downscale(&picture, SHEET_SCALE_DIVISOR));
            said.map_err(|error| error.to_string())
        })
        .map_err(failed)?;
        if only.is_none() {
            let file = folder.join(format!("{theme}-sheet.png"));
            copy::write_new(&file, &canvas::encode_png(&contact_sheet(&shots)).map_err(failed)?)
                .map_err(|why| failed(why.to_string()))?;
            // Each theme starts a new row.
            let [width, height] = shots.first().map_or([1, 1], |shot| shot.size);
            let blank = || ColorImage::filled([width, height], SHEET_BACKGROUND);
            both.extend(shots);
            both.resize_with(both.len().next_multiple_of(SHEET_COLUMNS), blank);
        }
    }
    if only.is_none() {
        let file = folder.join("sheet.png");
        copy::write_new(&file, &canvas::encode_png(&contact_sheet(&both)).map_err(failed)?)
            .map_err(|why| failed(why.to_string()))?;
    }
    Ok(EXIT_DONE)
}

/// Runs all scenes in a window with one theme.
fn run_scenes(
    theme: &str,
    scale: f32,
    only: Option<&str>,
    mut keep: impl FnMut(&str, ColorImage) -> Result<(), String>,
) -> Result<(), String> {
    let scratch = ScratchFolder::new(&format!("pictures-{theme}"))?;
    for (path, bytes) in system::SAMPLE_FILES {
        scratch.write(&format!("Sample/{path}"), bytes)?;
    }
    let today = jiff::Zoned::now().date();
    for (path, text) in FIXTURE_NOTES {
        let mut text = (*text).to_owned();
        for days in -9..=9_i64 {
            let day = today.saturating_add(jiff::Span::new().days(days));
            text = text.replace(&format!("{{{days}}}"), &day.to_string());
        }
        scratch.write(&format!("Sample/{path}"), text.as_bytes())?;
    }
    for (path, text) in memory_fixture::memory_notes() {
        scratch.write(&format!("Sample/{path}"), text.as_bytes())?;
    }
    let options = WorkspaceOptions { program: program_path().map_err(|refusal| refusal.why)?, create: true };
    let workspace = scratch.folder().join("workspace");
    let driver = host::open_workspace(&workspace, options).map_err(|error| error.to_string())?;
    let mut stage = HeadlessWindow::with_canvas(driver, scale);
    stage.draw_until("the workspace is open", Session::is_open)?;
    stage.run_command(CommandId::ViewTheme);
    if theme == "dark" {
        stage.run_command(CommandId::ViewTheme);
    }
    stage.draw_for(ANIMATION_SETTLE_TIME);
    if only.is_none() {
        keep("first", stage.screenshot())?;
    }
    stage
        .send_command(Command::OpenFolder { folder: scratch.folder().join("Sample"), name: Some("Sample".to_owned()) });
    stage.draw_until("the sample is known", |session| session.volumes().any(|volume| volume.scans > 0))?;
    for (name, steps) in SCREENSHOT_SCENES {
        for step in *steps {
            perform_step(&mut stage, step, &scratch)?;
        }
        if only.is_none_or(|only| only == *name) {
            stage.draw_for(ANIMATION_SETTLE_TIME);
            keep(name, stage.screenshot())?;
        }
        if only == Some(*name) {
            break;
        }
    }
    stage.close();
    Ok(())
}

/// Time after which folding and fading animations have ended.
const ANIMATION_SETTLE_TIME: Duration = Duration::from_millis(300);

fn perform_step(stage: &mut HeadlessWindow, step: &SceneStep, scratch: &ScratchFolder) -> Result<(), String> {
    match step {
        Run(id) => stage.run_command(*id),
        Press(key) => stage.press_key(key),
        Type(text) => stage.type_text(text),
        PlaceCaret(text) => {
            let at = stage.shown_note().and_then(|note| stage.session().note(note)?.text().find(text));
            stage.place_caret(at.unwrap_or(0) + text.len());
        }
        Show(path) => {
            let find =
                |session: &Session| session.volumes().find_map(|volume| volume.files.get(*path)).map(|row| row.id);
            stage.draw_until("the note is known", |session| find(session).is_some())?;
            let note = find(stage.session()).ok_or("the note is gone")?;
            stage.show_note(note);
            stage.draw_until("the note can be read", |session| {
                session.note(note).is_some_and(engine::Note::is_settled)
            })?;
        }
        WaitUntilSaved => stage.draw_until("all is saved", Session::is_saved)?,
        Wait(time) => stage.draw_for(Duration::from_millis(*time)),
        ReplaceExternally(old, new) => {
            let note = stage.shown_note().ok_or("no note is open")?;
            let place = stage.session().locate_file(note).map(|(_, path)| path.to_owned()).ok_or("the note is gone")?;
            let text = stage.session().note(note).map(engine::Note::text).unwrap_or_default();
            scratch.write(&format!("Sample/{place}"), text.replace(old, new).as_bytes())?;
            stage.draw_until("the other program's words are there", |session| {
                session.note(note).is_some_and(|note| note.text().contains(new))
            })?;
        }
        Delete(path) => {
            let find =
                |session: &Session| session.volumes().find_map(|volume| volume.files.get(*path)).map(|row| row.id);
            let file = find(stage.session()).ok_or("the note is gone")?;
            stage.send_command(Command::DeleteFiles { files: vec![file] });
            stage.draw_until("the note is in the trash", |session| {
                session.pending_move().is_none() && find(session).is_none()
            })?;
        }
        ImportConversation => {
            let volume = stage.session().volumes().next().map(|volume| volume.id).ok_or("there is no volume")?;
            let start = jiff::Timestamp::now().as_millisecond() - 60_000;
            for command in conversation_fixture::import_commands(volume, start) {
                stage.send_command(command);
            }
        }
        RunAll => {
            stage.run_command(CommandId::NoteRunAll);
            let note = stage.shown_note().ok_or("no note is open")?;
            let done = |session: &Session| {
                let note = session.note(note);
                note.is_some_and(|note| {
                    let mut runs = note.cells().filter_map(|cell| note.latest_execution(cell)).peekable();
                    runs.peek().is_some() && runs.all(|run| run.status.is_final())
                })
            };
            stage.draw_until("its cells have run", done)?;
        }
    }
    stage.draw_for(Duration::from_millis(60));
    Ok(())
}

/// Arranges all screenshots on one sheet.
fn contact_sheet(shots: &[ColorImage]) -> ColorImage {
    let [width, height] = shots.first().map_or([1, 1], |shot| shot.size);
    let rows = shots.len().div_ceil(SHEET_COLUMNS);
    let size = [
        SHEET_COLUMNS * (width + SHEET_GAP_PIXELS) + SHEET_GAP_PIXELS,
        rows * (height + SHEET_GAP_PIXELS) + SHEET_GAP_PIXELS,
    ];
    let mut sheet = ColorImage::filled(size, SHEET_BACKGROUND);
    for (place, shot) in shots.iter().enumerate() {
        let at = [
            SHEET_GAP_PIXELS + place % SHEET_COLUMNS * (width + SHEET_GAP_PIXELS),
            SHEET_GAP_PIXELS + place / SHEET_COLUMNS * (height + SHEET_GAP_PIXELS),
        ];
        canvas::paste(shot, &mut sheet, at);
    }
    sheet
}
