//! `kernels`: which kernels a note may use, and the one that it uses.

use super::parse::needed;
use super::{DONE, Refusal, Scene, choose, notes};
use clap::ArgMatches;
use engine::{Command, EMBEDDED, Session};
use serde_json::json;
use std::time::Duration;

pub(super) fn kernels(scene: &mut Scene<'_>, args: &ArgMatches) -> Result<u8, Refusal> {
    let note = choose::note(scene, needed(args, "NOTE")?)?;
    let _held = notes::hold(scene.handle, note)?;
    let before = scene.handle.read(Session::kernel_searches)?;
    scene.handle.command(Command::FindKernels { note })?;
    let found = move |session: &Session| (session.kernel_searches() > before).then(|| session.kernels().to_vec());
    let found = scene.handle.wait(Some(Duration::from_secs(30)), found)?.unwrap_or_default();
    if let Some(name) = args.get_one::<String>("use") {
        if name != EMBEDDED && !found.iter().any(|spec| spec.name == *name) {
            return Err(Refusal::usage(format!(
                "there is no Jupyter kernel {name} here; `tracebook kernels` lists them"
            )));
        }
        notes::loaded(scene.handle, note, |_| ())?;
        scene.handle.command(Command::UseKernel { note, kernel: Some(name.clone()), keep: true })?;
        super::volumes::saved(scene.handle)?;
    }
    let used = scene.handle.read(move |session| session.note(note)?.kernel_name().map(ToOwned::to_owned))?;
    let used = used.unwrap_or_else(|| EMBEDDED.to_owned());
    if scene.json {
        let listed: Vec<_> = found
            .iter()
            .map(|spec| json!({"name": spec.name, "title": spec.title, "language": spec.language, "path": spec.path}))
            .collect();
        writeln!(scene.out, "{}", json!({"used": used, "kernels": listed}))?;
        return Ok(DONE);
    }
    let mark = |name: &str| if name == used { "*" } else { " " };
    writeln!(scene.out, "{} {EMBEDDED}  the built-in Python, in its sandbox", mark(EMBEDDED))?;
    for spec in &found {
        let place = spec.path.parent().unwrap_or(&spec.path).display();
        writeln!(scene.out, "{} {}  {}, with your rights: {place}", mark(&spec.name), spec.name, spec.title)?;
    }
    if !found.iter().any(|spec| spec.name == used) && used != EMBEDDED {
        writeln!(scene.out, "* {used}  is not installed here")?;
    }
    Ok(DONE)
}
