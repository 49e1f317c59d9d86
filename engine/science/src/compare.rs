//! Compares the variables of two saved states. Each state is restored in its own instance, which is then discarded.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use kernel_states::StateFolder;
use serde_json::{Value, json};

use crate::ScienceError;
use crate::machine::{DoorAnswer, GuestFolder, LoadedPack, StopSwitch, TurnEnd};

/// Descriptions of variables, by name.
type Variables = BTreeMap<String, Value>;

/// Python code that describes the variables in the guest.
const COMPARE_SOURCE: &str = include_str!("compare.py");

/// Prints how the variables of two states differ, as one line of JSON: `only_a`, `only_b`, `differ`, `equal`,
/// `unclear`; or `why` they can't be compared.
pub(crate) fn print_comparison(
    pack: &LoadedPack,
    (states, pack_id): (&Path, &str),
    guest: &[GuestFolder],
    (a, b): (&str, &str),
) -> ExitCode {
    let read = || {
        let mut folder = StateFolder::open_for_reading(states, pack_id)?;
        let mut variables = |id: &str| variables_of(pack, &mut folder, guest, id);
        Ok::<_, ScienceError>((variables(a)?, variables(b)?))
    };
    let (said, code) = match read() {
        Ok((a, b)) => (compare(&a, &b), ExitCode::SUCCESS),
        Err(why) => (json!({"why": why.to_string()}), ExitCode::FAILURE),
    };
    println!("{said}");
    code
}

fn variables_of(
    pack: &LoadedPack,
    folder: &mut StateFolder,
    guest: &[GuestFolder],
    id: &str,
) -> Result<Variables, ScienceError> {
    let reply: Arc<Mutex<Option<Value>>> = Arc::default();
    let said = reply.clone();
    let door: DoorAnswer = Box::new(move |message| {
        let (kind, content): (String, Value) = serde_json::from_slice(message).ok()?;
        match kind.as_str() {
            "reply" => *said.lock().unwrap_or_else(PoisonError::into_inner) = Some(content),
            "input_request" => return Some(b"null".to_vec()),
            _ => {}
        }
        Some(Vec::new())
    });
    let mut machine = pack.start(guest, &[], door, StopSwitch::default())?;
    let memory = folder.load(id, machine.memory())?;
    machine.memory_mut(memory.bytes.len())?[..memory.bytes.len()].copy_from_slice(&memory.bytes);
    let source = Value::from(COMPARE_SOURCE).to_string();
    // Runs in its own namespace, so its names aren't among the compared variables.
    let program = format!("exec(compile({source}, '<tracebook>', 'exec'), {{'__name__': '_tracebook_compare'}})");
    let ended = machine.turn(&program);
    let reply = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (ended, reply) {
        (TurnEnd::Returned(0), Some(Value::Object(variables))) => Ok(variables.into_iter().collect()),
        _ => Err(ScienceError::OtherProgram),
    }
}

/// Returns how two sets of variables differ, as JSON.
fn compare(a: &Variables, b: &Variables) -> Value {
    let only = |these: &Variables, those: &Variables| {
        let names = these.iter().filter(|(name, _)| !those.contains_key(*name));
        names.map(|(name, about)| json!({"name": name, "value": shown(about)})).collect::<Vec<_>>()
    };
    let (mut differ, mut equal, mut unclear) = (Vec::new(), Vec::new(), Vec::new());
    for (name, one) in a {
        let Some(other) = b.get(name) else { continue };
        if one["digest"] != other["digest"] || one["type"] != other["type"] || one["size"] != other["size"] {
            differ.push(json!({"name": name, "a": shown(one), "b": shown(other)}));
        } else if one["by"] == "unclear" || other["by"] == "unclear" {
            unclear.push(name);
        } else {
            equal.push(name);
        }
    }
    json!({"only_a": only(a, b), "only_b": only(b, a), "differ": differ, "equal": equal, "unclear": unclear})
}

fn shown(about: &Value) -> Value {
    json!({"type": about["type"], "size": about["size"], "value": about["value"]})
}
