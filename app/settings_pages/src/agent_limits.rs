//! Settings that are typed: when agents follow traces, limits of cost and time, fallback models, limits of the sandbox,
//! and the space for saved variables. They are in `config.yaml`, which checks what is typed.

use crate::config_rows::ConfigRows;
use agent::config::AgentConfig;
use agent::dollar_amount::parse_dollar_amount;
use agent_ui::config_writer::config_value;
use serde_json::Value;
use ui::setting_rows::{SettingsRows, text};

/// A value of the configuration that is typed.
struct TypedSetting {
    name: &'static str,
    about: &'static str,
    /// The keys that lead to it.
    keys: [&'static str; 2],
    /// What an empty field means.
    hint: &'static str,
    /// Returns the text of the current value.
    kept: fn(&AgentConfig) -> String,
    /// Returns the value for what was typed.
    value: fn(&str) -> Value,
}

static SETTINGS: [TypedSetting; 18] = [
    TypedSetting {
        name: "Confidence for replays",
        about: "0 to 1. Above it, a trace is replayed without being told to. At 1, only pinned ones are.",
        keys: ["memory", "follow_confidence"],
        hint: "0.9",
        kept: |config| config.memory.follow_confidence.to_string(),
        value: |typed| match typed {
            "" => AgentConfig::default().memory.follow_confidence.into(),
            typed => number(typed),
        },
    },
    TypedSetting {
        name: "Cost limit of a session",
        about: "US dollars. An agent stops before a call that costs more.",
        keys: ["llm", "cost_limit"],
        hint: "no limit",
        kept: |config| number_text(config.llm.cost_limit),
        value: dollars,
    },
    TypedSetting {
        name: "Cost limit of a request",
        about: "US dollars. A model that costs more isn't used.",
        keys: ["llm", "request_cost_limit"],
        hint: "no limit",
        kept: |config| number_text(config.llm.request_cost_limit),
        value: dollars,
    },
    TypedSetting {
        name: "Fallback models",
        about: "Providers that are asked, in this order, when the chosen one doesn't answer. With commas.",
        keys: ["llm", "fallback"],
        hint: "none",
        kept: |config| entries_text(&config.llm.fallback),
        value: entries,
    },
    TypedSetting {
        name: "Wait for a model's answer",
        about: "How long a model may be silent before its answer begins, such as 3 min.",
        keys: ["watchdog", "first_byte"],
        hint: "3 min",
        kept: |config| time_text(config.watchdog.first_byte),
        value: time,
    },
    TypedSetting {
        name: "Wait for a local model's answer",
        about: "The same for a model on this machine.",
        keys: ["watchdog", "first_byte_local"],
        hint: "15 min",
        kept: |config| time_text(config.watchdog.first_byte_local),
        value: time,
    },
    TypedSetting {
        name: "Silence of a model",
        about: "How long a model may be silent in the middle of its answer.",
        keys: ["watchdog", "silence"],
        hint: "5 min",
        kept: |config| time_text(config.watchdog.silence),
        value: time,
    },
    TypedSetting {
        name: "Time limit of an answer",
        about: "How long the whole answer of a model may take.",
        keys: ["watchdog", "call"],
        hint: "1 h",
        kept: |config| time_text(config.watchdog.call),
        value: time,
    },
    TypedSetting {
        name: "Time limit of a tool",
        about: "How long a call of a tool may take, whatever it asks for.",
        keys: ["watchdog", "tool"],
        hint: "10 min",
        kept: |config| time_text(config.watchdog.tool),
        value: time,
    },
    TypedSetting {
        name: "Time limit of a run",
        about: "How long a run may work. Time that it waits for you doesn't count.",
        keys: ["watchdog", "run"],
        hint: "no limit",
        kept: |config| time_text(config.watchdog.run),
        value: time,
    },
    TypedSetting {
        name: "Memory of the sandbox",
        about: "Megabytes for all processes of a command together, from 64.",
        keys: ["sandbox", "memory_mb"],
        hint: "4096",
        kept: |config| whole_text(config.sandbox.memory_mb),
        value: number,
    },
    TypedSetting {
        name: "Processor time in the sandbox",
        about: "Seconds for each process.",
        keys: ["sandbox", "cpu_seconds"],
        hint: "no limit",
        kept: |config| whole_text(config.sandbox.cpu_seconds),
        value: number,
    },
    TypedSetting {
        name: "Processor share",
        about: "Percent of one processor for all processes of a call together, on Linux. 200 is two processors.",
        keys: ["sandbox", "cpu_percent"],
        hint: "no limit",
        kept: |config| whole_text(config.sandbox.cpu_percent),
        value: number,
    },
    TypedSetting {
        name: "Processes in the sandbox",
        about: "Processes and threads of a command, up to 512.",
        keys: ["sandbox", "processes"],
        hint: "512",
        kept: |config| whole_text(config.sandbox.processes),
        value: number,
    },
    TypedSetting {
        name: "Size of files from the sandbox",
        about: "Megabytes of each file that is written.",
        keys: ["sandbox", "file_mb"],
        hint: "1024",
        kept: |config| whole_text(config.sandbox.file_mb),
        value: number,
    },
    TypedSetting {
        name: "Disk space of a call",
        about: "Megabytes that a call of a command, Python or a tool may add to the project's folder.",
        keys: ["sandbox", "disk_mb"],
        hint: "8192",
        kept: |config| whole_text(config.sandbox.disk_mb),
        value: number,
    },
    TypedSetting {
        name: "Hidden paths",
        about: "Paths below a project's folder that agents and cells don't see. With commas.",
        keys: ["sandbox", "hidden"],
        hint: "none",
        kept: |config| entries_text(config.sandbox.hidden.as_deref().unwrap_or_default()),
        value: entries,
    },
    TypedSetting {
        name: "Paths that can only be read",
        about: "Paths below a project's folder that agents and cells don't change. With commas.",
        keys: ["sandbox", "read_only"],
        hint: "none",
        kept: |config| entries_text(config.sandbox.read_only.as_deref().unwrap_or_default()),
        value: entries,
    },
];

/// Disk space for saved variables. They belong to the page of notes.
static STATE_SETTINGS: [TypedSetting; 2] = [
    TypedSetting {
        name: "Space for a note's saved variables",
        about: "Megabytes. Beyond them, older states are thinned. Going back to one then runs its cells again.",
        keys: ["kernels", "states_budget_mb"],
        hint: "512",
        kept: |config| config.kernels.states_budget_mb.to_string(),
        value: |typed| match typed {
            "" => AgentConfig::default().kernels.states_budget_mb.into(),
            typed => number(typed),
        },
    },
    TypedSetting {
        name: "Space for all saved variables",
        about: "Megabytes for all notes. Beyond them, states of the notes that ran longest ago are thinned.",
        keys: ["kernels", "workspace_states_budget_mb"],
        hint: "4096",
        kept: |config| config.kernels.workspace_states_budget_mb.to_string(),
        value: |typed| match typed {
            "" => AgentConfig::default().kernels.workspace_states_budget_mb.into(),
            typed => number(typed),
        },
    },
];

/// Draws the settings of agents.
pub(crate) fn show(rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, config: &AgentConfig) {
    show_typed(&SETTINGS, rows, lines, config);
}

/// Draws the settings of saved variables.
pub(crate) fn show_saved_variables(rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, config: &AgentConfig) {
    show_typed(&STATE_SETTINGS, rows, lines, config);
}

fn show_typed(settings: &[TypedSetting], rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, config: &AgentConfig) {
    for setting in settings {
        let kept = (setting.kept)(config);
        let typed = rows.show_row(lines, setting.name, setting.about, |ui| text(ui, setting.name, &kept, setting.hint));
        if let Some(typed) = typed {
            let change = config_value(&setting.keys, (setting.value)(typed.trim()));
            rows.change(lines.ui.ctx(), setting.name, vec![change]);
        }
    }
}

/// Returns a number, or what was typed: then the configuration says what it takes.
pub(crate) fn number(typed: &str) -> Value {
    if typed.is_empty() {
        return Value::Null;
    }
    let whole = typed.parse::<u64>().ok().map(Value::from);
    // JSON has no NaN or infinity; they would become null, which is no limit.
    let finite = typed.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from);
    whole.or(finite).unwrap_or_else(|| typed.into())
}

/// Returns an amount that's typed as `$5` or `5 USD`, or what was typed.
fn dollars(typed: &str) -> Value {
    number(&parse_dollar_amount(typed).map_or_else(|| typed.to_owned(), |amount| amount.to_string()))
}

fn time(typed: &str) -> Value {
    if typed.is_empty() { Value::Null } else { typed.into() }
}

fn entries(typed: &str) -> Value {
    split_entries(typed).into()
}

/// Splits what is typed at its commas. One between double quotes is part of its entry.
pub(crate) fn split_entries(typed: &str) -> Vec<String> {
    let mut is_quoted = false;
    let parts = typed.split(|letter: char| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    });
    let entry = |part: &str| match part.trim().strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => part.trim().to_owned(),
    };
    parts.map(entry).filter(|entry| !entry.is_empty()).collect()
}

/// Formats a list as [`split_entries`] reads it.
pub(crate) fn entries_text(list: &[String]) -> String {
    let entry = |entry: &String| match entry.contains(['"', ',']) {
        true => format!("\"{}\"", entry.replace('"', "\"\"")),
        false => entry.clone(),
    };
    list.iter().map(entry).collect::<Vec<_>>().join(", ")
}

pub(crate) fn number_text(number: Option<f64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

pub(crate) fn whole_text(number: Option<impl ToString>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// Formats a time limit in milliseconds, as the configuration reads it.
fn time_text(limit: Option<u64>) -> String {
    match limit {
        None => String::new(),
        Some(limit) if limit % 3_600_000 == 0 => format!("{} h", limit / 3_600_000),
        Some(limit) if limit % 60_000 == 0 => format!("{} min", limit / 60_000),
        Some(limit) => format!("{} s", limit as f64 / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{dollars, entries, entries_text, number, time_text};
    use serde_json::json;

    #[test]
    fn what_is_typed_becomes_a_value() {
        for (typed, value) in [("", json!(null)), ("5", json!(5)), ("0.25", json!(0.25)), ("a lot", json!("a lot"))] {
            assert_eq!(number(typed), value);
        }
        for (typed, value) in [("", json!(null)), ("$5", json!(5)), ("0.50 USD", json!(0.5)), ("5 €", json!("5 €"))]
        {
            assert_eq!(dollars(typed), value);
        }
        // None of them is a limit, and none may take a limit away.
        for typed in ["NaN", "inf", "1e999"] {
            assert_eq!(number(typed), json!(typed));
        }
        assert_eq!(entries("data/keys,, .env ,"), json!(["data/keys", ".env"]));
        assert_eq!(entries(r#"shell: echo "a, b", deploy"#), json!([r#"shell: echo "a, b""#, "deploy"]));
        let list =
            ["shell: make, test", r#"shell: echo "a, b""#, r#"shell: say "a"#, "write_file: a/*"].map(String::from);
        assert_eq!(entries(&entries_text(&list)), json!(list), "what is shown is read again");
        for (limit, text) in [(180_000, "3 min"), (3_600_000, "1 h"), (1_500, "1.5 s"), (90_000, "90 s")] {
            assert_eq!(time_text(Some(limit)), text);
        }
        assert_eq!(time_text(None), "");
    }
}
