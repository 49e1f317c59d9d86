//! `cmd_components`: lists, shows and approves the custom elements that agents have proposed in projects.

use super::attachments::{AttachmentPlace, read_places};
use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use crate::arguments::ComponentsArguments;
use agent::component_file::{COMPONENTS_FOLDER, ComponentFile, MAX_COMPONENT_BYTES};
use agent::generated_view::ViewValues;
use engine::Note;
use serde_json::{Map, Value, json};
use serve::ComponentApprovals;
use std::io::Read;
use store::FileKind;
use text::untrusted_text;

/// Maximum number of components that are read.
const MAX_LISTED_COMPONENTS: usize = 500;
/// Number of characters of an id that are shown in lists; a beginning of this length is taken for the id.
const SHORT_ID_CHARS: usize = 12;

/// A component's file in a project.
struct FoundComponent {
    place: AttachmentPlace,
    component: ComponentFile,
    id: String,
    is_approved: bool,
}

impl FoundComponent {
    fn to_json(&self) -> Value {
        let bytes = self.component.script.len() + self.component.styles.len();
        json!({
            "id": self.id, "tagName": self.component.tag_name, "volume": self.place.volume, "path": self.place.path,
            "approved": self.is_approved, "bytes": bytes, "page": format!("/components/{}", self.id),
        })
    }

    fn state(&self) -> &'static str {
        if self.is_approved { "approved" } else { "not approved" }
    }
}

fn is_component_path(path: &str) -> bool {
    let file = path.strip_prefix(COMPONENTS_FOLDER).and_then(|rest| rest.strip_prefix('/'));
    file.is_some_and(|file| !file.contains('/') && file.ends_with(".json"))
}

/// Reads a component's file, as far as it is one.
fn read_component(place: &mut AttachmentPlace) -> Result<ComponentFile, CliError> {
    let file = place.open()?;
    let mut text = String::new();
    let read = file.take(MAX_COMPONENT_BYTES as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| CliError::usage(format!("it can't be read: {}", store::disk::io_reason(&error))))?;
    ComponentFile::parse(&text).map_err(CliError::usage)
}

/// Runs `cmd_components`.
pub(super) fn cmd_components(scene: &mut CommandContext<'_>, args: &ComponentsArguments) -> Result<u8, CliError> {
    let approvals = ComponentApprovals::new(scene.handle.workspace_folder());
    let approved = approvals.ids().map_err(CliError::workspace)?;
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let places = read_places(scene, args.volume.as_deref())?;
    let places = places.into_iter().filter(|place| is_component_path(&place.path));
    for mut place in places.take(MAX_LISTED_COMPONENTS) {
        match read_component(&mut place) {
            Ok(component) => {
                let id = component.id();
                let is_approved = approved.contains(&id);
                found.push(FoundComponent { place, component, id, is_approved });
            }
            Err(error) => refused.push(format!("{}:{} is no component: {}", place.volume, place.path, error.why)),
        }
    }
    let Some(word) = args.component.as_deref() else {
        if args.approve || args.revoke {
            return Err(CliError::usage("say which component; `tracebook components` lists them"));
        }
        for why in refused {
            writeln!(scene.errors, "tracebook: {}", untrusted_text::escape_line(&why))?;
        }
        return list_components(scene, &found);
    };
    let one = choose(&found, word)?;
    if args.approve {
        approvals.approve(&one.id, jiff::Timestamp::now().as_millisecond()).map_err(CliError::workspace)?;
        return print_done(scene, one, "Approved. Its preview is at");
    }
    if args.revoke {
        approvals.revoke(&one.id).map_err(CliError::workspace)?;
        return print_done(scene, one, "No longer approved:");
    }
    show_component(scene, one)
}

/// Returns the component with this id, the beginning of an id, or this name.
fn choose<'a>(found: &'a [FoundComponent], word: &str) -> Result<&'a FoundComponent, CliError> {
    let by_id = |one: &&FoundComponent| one.id == word || (word.len() >= SHORT_ID_CHARS && one.id.starts_with(word));
    // The same component in two projects is one to approve.
    if let Some(one) = found.iter().find(by_id) {
        return Ok(one);
    }
    let mut named = found.iter().filter(|one| one.component.tag_name == word);
    match (named.next(), named.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(CliError::usage(format!(
            "several projects have a component {word}; name one: --volume NAME, or its id"
        ))),
        (None, _) => Err(CliError::usage(format!(
            "there is no component {}; it may have changed since. `tracebook components` lists them",
            untrusted_text::escape_line(word)
        ))),
    }
}

fn list_components(scene: &mut CommandContext<'_>, found: &[FoundComponent]) -> Result<u8, CliError> {
    if scene.json {
        let rows: Vec<Value> = found.iter().map(FoundComponent::to_json).collect();
        writeln!(scene.out, "{}", Value::from(rows))?;
        return Ok(EXIT_DONE);
    }
    scene.explain_empty_list(found.is_empty(), "No components. Agents propose them as components/NAME.json.")?;
    for one in found {
        let (volume, path) = (untrusted_text::escape_line(&one.place.volume), &one.place.path);
        let short = one.id.get(..SHORT_ID_CHARS).unwrap_or_default();
        writeln!(scene.out, "{short}  {:12}  {volume}:{}", one.state(), untrusted_text::escape_line(path))?;
    }
    Ok(EXIT_DONE)
}

fn print_done(scene: &mut CommandContext<'_>, one: &FoundComponent, words: &str) -> Result<u8, CliError> {
    let mut about = one.to_json();
    if scene.json {
        // What was decided just now.
        if let Some(about) = about.as_object_mut() {
            about.remove("approved");
        }
        writeln!(scene.out, "{about}")?;
    } else {
        writeln!(scene.out, "{words} {} of `tracebook serve`.", about["page"].as_str().unwrap_or_default())?;
    }
    Ok(EXIT_DONE)
}

/// Returns the values that a component may read, from its note as it is now.
fn read_values(scene: &CommandContext<'_>, one: &FoundComponent) -> Result<Map<String, Value>, CliError> {
    let Some(data) = &one.component.data else { return Ok(Map::new()) };
    let (volume, path) = (one.place.volume.clone(), data.note.clone());
    let note = scene.handle.read(move |session| {
        let volume = session.volumes().find(|known| known.name == volume)?;
        let row = volume.files.values().find(|row| row.path == path && row.kind == FileKind::Note)?;
        Some(row.id)
    })?;
    let missing =
        || CliError { code: EXIT_FAILED, why: format!("the component reads {}, which isn't there", data.note) };
    let note = note.ok_or_else(missing)?;
    let held = export::open_note::hold_note(scene.handle, note)?;
    let text = scene.handle.read(move |session| session.note(note).map(Note::text))?.unwrap_or_default();
    drop(held);
    let values = ViewValues::from_note(&text).properties;
    let named = values.into_iter().filter(|(name, _)| data.properties.contains(name));
    Ok(named.collect())
}

fn show_component(scene: &mut CommandContext<'_>, one: &FoundComponent) -> Result<u8, CliError> {
    if scene.json {
        let mut about = one.to_json();
        // A note that is missing shouldn't hide the source.
        let values = read_values(scene, one);
        about["script"] = json!(one.component.script);
        about["styles"] = json!(one.component.styles);
        about["data"] = json!(one.component.data);
        match values {
            Ok(values) => about["values"] = Value::Object(values),
            Err(error) => about["problem"] = json!(error.why),
        }
        writeln!(scene.out, "{about}")?;
        return Ok(EXIT_DONE);
    }
    let (volume, path) = (untrusted_text::escape_line(&one.place.volume), untrusted_text::escape_line(&one.place.path));
    writeln!(scene.out, "<{}> in {volume}:{path}, {}", one.component.tag_name, one.state())?;
    writeln!(scene.out, "id {}", one.id)?;
    if let Some(data) = &one.component.data {
        let names = data.properties.join(", ");
        let reads = format!("reads {names} of {}", data.note);
        writeln!(scene.out, "{}", untrusted_text::escape_line(&reads))?;
    }
    for (title, source) in [("script", &one.component.script), ("styles", &one.component.styles)] {
        if !source.trim().is_empty() {
            writeln!(scene.out, "\n{title}:\n{}", untrusted_text::escape_block(source))?;
        }
    }
    if !one.is_approved {
        let short = one.id.get(..SHORT_ID_CHARS).unwrap_or_default();
        writeln!(scene.out, "\nTo approve exactly this: tracebook components {short} --approve")?;
    }
    Ok(EXIT_DONE)
}
