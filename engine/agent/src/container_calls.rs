//! What the policy says of calls of the container tools before any rule counts.

use crate::image_name::ImageName;
use crate::policy_rule::Permission;
use crate::tool_catalog::BuiltInTool;
use crate::web_address::is_listed;
use serde_json::{Map, Value};

/// Returns the image that a call names, in full; `None` if it names none.
pub fn named_image(arguments: &Map<String, Value>) -> Option<ImageName> {
    ImageName::parse(arguments.get("image")?.as_str()?).ok()
}

/// Returns what is said of a call of a container tool whatever the rules say; `None` if the rules count. `restricted`:
/// only `hosts` may be reached.
pub(crate) fn judge_container_call(
    tool: &str,
    arguments: &Map<String, Value>,
    restricted: bool,
    hosts: &[String],
) -> Option<(Permission, String)> {
    let is_set = |name: &str| arguments.get(name).and_then(Value::as_bool) == Some(true);
    match BuiltInTool::from_name(tool)? {
        BuiltInTool::ContainerPull => match named_image(arguments) {
            None => Some((Permission::Deny, "that is no name of an image".to_owned())),
            Some(image) if restricted && !is_listed(image.registry_host(), hosts) => {
                Some((Permission::Deny, format!("{} is not on the list of hosts", image.registry_host())))
            }
            Some(_) => None,
        },
        BuiltInTool::ContainerBuild if restricted => {
            Some((Permission::Deny, "a build may reach any host, and only those on the list are allowed".to_owned()))
        }
        BuiltInTool::ContainerBuild => {
            let why = "the engine runs what the Dockerfile says, and gets the images and addresses that it names";
            Some((Permission::Ask, why.to_owned()))
        }
        BuiltInTool::ContainerRun if is_set("network") && restricted => Some((
            Permission::Deny,
            "a container may reach any host, and only those on the list are allowed".to_owned(),
        )),
        BuiltInTool::ContainerRun if is_set("network") => {
            Some((Permission::Ask, "the container may reach the network, also your own".to_owned()))
        }
        BuiltInTool::ContainerRun if is_set("writable") => {
            let why = "programs in the container may write files there that your own programs run";
            Some((Permission::Ask, why.to_owned()))
        }
        _ => None,
    }
}

/// Describes the effect of a call of a container tool for the user.
pub fn describe_container_call(tool: BuiltInTool, arguments: &Map<String, Value>) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or("");
    let is_set = |name: &str| arguments.get(name).and_then(Value::as_bool) == Some(true);
    let image = named_image(arguments).map_or_else(|| text("image").to_owned(), |image| image.to_string());
    let network = if is_set("network") { ", with network" } else { "" };
    match tool {
        BuiltInTool::ContainerPull => format!("Get the image {image}"),
        BuiltInTool::ContainerBuild => {
            format!("Build the image {} from {}{network}", text("name"), text("path"))
        }
        BuiltInTool::ContainerRun => {
            let folder = match (text("path"), is_set("writable")) {
                ("", _) => String::new(),
                (path, true) => format!(", which may change {path}"),
                (path, false) => format!(", which sees {path}"),
            };
            let background = if is_set("background") { ", in the background" } else { "" };
            let command = arguments.get("command").and_then(Value::as_str).unwrap_or("its own command");
            format!("Run in a container of {}{folder}{network}{background}: {command}", text("image"))
        }
        BuiltInTool::ContainerExec => format!("Run in the container {}: {}", text("container"), text("command")),
        BuiltInTool::ContainerEnd => match text("action") {
            "remove" => format!("Remove the container {}", text("container")),
            _ => format!("Stop the container {}", text("container")),
        },
        BuiltInTool::ContainerLogs => format!("Read what the container {} printed", text("container")),
        _ => "List containers and images".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn more_than_the_usual_is_asked_about_each_time() {
        let judge = |tool: &str, arguments: Value, restricted: bool| {
            let hosts = ["ghcr.io".to_owned()];
            judge_container_call(tool, arguments.as_object().expect("an object"), restricted, &hosts)
                .map(|(word, _)| word)
        };
        let run = |more: Value| judge("container_run", more, false);
        assert_eq!(run(json!({"image": "a", "command": "b", "path": "src"})), None);
        assert_eq!(run(json!({"image": "a", "network": false, "writable": false})), None);
        assert_eq!(run(json!({"image": "a", "network": true})), Some(Permission::Ask));
        assert_eq!(run(json!({"image": "a", "path": "src", "writable": true})), Some(Permission::Ask));
        assert_eq!(judge("container_run", json!({"image": "a", "network": true}), true), Some(Permission::Deny));
        assert_eq!(judge("container_build", json!({"path": "a", "name": "b"}), false), Some(Permission::Ask));
        assert_eq!(judge("container_build", json!({"path": "a", "name": "b"}), true), Some(Permission::Deny));
        assert_eq!(judge("container_pull", json!({"image": "alpine"}), false), None);
        assert_eq!(judge("container_pull", json!({"image": "alpine"}), true), Some(Permission::Deny));
        assert_eq!(judge("container_pull", json!({"image": "ghcr.io/a/b"}), true), None);
        assert_eq!(judge("container_pull", json!({"image": "docker-archive:/etc/x"}), false), Some(Permission::Deny));
        assert_eq!(judge("shell", json!({"command": "a", "network": true}), true), None);
    }
}
