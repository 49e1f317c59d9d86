//! The window, driven by the names of its controls over a real workspace in a temporary folder.

use egui_kittest::Harness;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tracebook::window::Window;

/// A note with some of everything.
const NOTE: &str = r#"# Rain on the roof

A quiet *morning* with **strong coffee**, `inline code`, a [link](Other.md), ~~a mistake~~ and enough words that the
line has to wrap somewhere near the right edge of the column.

## What to do

- [x] Put the kettle on
- [ ] Count the drops
- Bread
  - rye
  - wheat
- A longer item that goes on and on until it must wrap, because the column is not endless, and then some more

1. First
2. Second

> A notebook is a second memory, and like the first one it keeps best what is looked at again.

| berry | picked | kilograms |
|:------|:------:|----------:|
| raspberry | July | 4.2 |
| blackberry | August | 16.0 |

```python
def rain(days):  # a comment
    return sum(days) / len(days) if days else 0.0

rain([4, 2, 9])
```

```python
1 / 0
```

```sh
grep -rn "raspberry" .
```

---

### Smaller things

The end.
"#;

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = folder.path().join("notes").join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Bench { folder }
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    fn window(&self) -> Harness<'static, Window> {
        let options = host::Options { program: program(), create: true };
        let driver = host::open(&self.folder.path().join("workspace"), options).unwrap();
        let mut harness = Harness::builder()
            .with_size(egui::vec2(1280.0, 800.0))
            .with_max_steps(64)
            .build_eframe(move |creation| Window::new(&creation.egui_ctx, driver));
        harness.run();
        harness
    }
}

fn program() -> PathBuf {
    let built = option_env!("CARGO_BIN_EXE_tracebook-under-test").or(option_env!("CARGO_BIN_EXE_winlab"));
    PathBuf::from(built.unwrap_or("tracebook"))
}

/// Lets frames pass until something is so.
fn until(harness: &mut Harness<'static, Window>, what: &str, done: impl Fn(&mut Harness<'static, Window>) -> bool) {
    let begun = Instant::now();
    while !done(harness) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
        harness.step();
    }
    harness.run();
}

#[test]
fn look() {
    let bench = Bench::new(&[("Rain.md", NOTE), ("Other.md", "# Other\n"), ("Guide/Deep/Note.md", "x"), ("data.csv", "a,b")]);
    let mut harness = bench.window();
    let folder = bench.notes();
    harness.state_mut().wish(engine::Command::OpenFolder { folder, name: None });
    until(&mut harness, "the note is shown", |harness| {
        let window = harness.state();
        window.note().and_then(|note| window.session()?.note(note)).is_some_and(|note| note.length() > 0)
    });
    harness.run();
    std::fs::create_dir_all("/tmp/shots").unwrap();
    harness.render().unwrap().save("/tmp/shots/first.png").unwrap();
}
