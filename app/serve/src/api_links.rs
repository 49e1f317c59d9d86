//! Links in the description of the REST interface: what of an answer a client sends with the next request.

use serde_json::{Map, Value, json};

/// Names, each with where its value is (a runtime expression of OpenAPI).
type LinkedValues = &'static [(&'static str, &'static str)];

/// A link from the answer of an operation to another one.
struct OperationLink {
    /// Ids of the operation that is answered and of the one that follows.
    from: &'static str,
    to: &'static str,
    /// The answer's status.
    status: &'static str,
    parameters: LinkedValues,
    /// Fields of the body; empty if it has none.
    body: LinkedValues,
}

const fn link(
    (from, status): (&'static str, &'static str),
    to: &'static str,
    parameters: LinkedValues,
) -> OperationLink {
    OperationLink { from, to, status, parameters, body: &[] }
}

const fn body_link(
    (from, status): (&'static str, &'static str),
    to: &'static str,
    body: LinkedValues,
) -> OperationLink {
    OperationLink { from, to, status, parameters: &[], body }
}

const NEXT_PAGE: (&str, &str) = ("query.cursor", "$response.body#/next_cursor");
const SAME_VOLUME: (&str, &str) = ("volume", "$request.path.volume");
const SAME_PATH: (&str, &str) = ("path", "$request.path.path");
const FIRST_VOLUME: LinkedValues = &[("volume", "$response.body#/volumes/0/name")];
const FIRST_NOTE: LinkedValues = &[SAME_VOLUME, ("path", "$response.body#/notes/0/path")];
const FIRST_ATTACHMENT: LinkedValues = &[SAME_VOLUME, ("path", "$response.body#/attachments/0/path")];
const FIRST_VERSION: LinkedValues = &[SAME_VOLUME, SAME_PATH, ("version", "$response.body#/versions/0/number")];
const FIRST_RUN: LinkedValues = &[("runId", "$response.body#/runs/0/id")];
const NEW_TASK: LinkedValues = &[("taskId", "$response.body#/id")];
const NEW_MEMORY: LinkedValues = &[("memoryId", "$response.body#/id")];
const WRITTEN: LinkedValues = &[("volume", "$response.body#/volume"), ("path", "$response.body#/path")];
const WITH_TAG: LinkedValues = &[SAME_VOLUME, SAME_PATH, ("header.If-Match", "$response.header.ETag")];

/// All links. None leads to the revocation of a token: it could be the client's own.
const LINKS: &[OperationLink] = &[
    link(("list_volumes", "200"), "list_notes", FIRST_VOLUME),
    link(("list_volumes", "200"), "list_attachments", FIRST_VOLUME),
    link(("list_volumes", "200"), "list_collections", FIRST_VOLUME),
    link(("list_notes", "200"), "list_notes", &[SAME_VOLUME, NEXT_PAGE]),
    link(("list_notes", "200"), "read_note", FIRST_NOTE),
    link(("list_notes", "200"), "list_versions", FIRST_NOTE),
    link(("list_notes", "200"), "list_blocks", FIRST_NOTE),
    link(("list_notes", "200"), "list_outputs", FIRST_NOTE),
    body_link(("list_notes", "200"), "run_cells", FIRST_NOTE),
    body_link(("list_notes", "200"), "stop_cells", FIRST_NOTE),
    link(("read_note", "200"), "write_note", WITH_TAG),
    link(("write_note", "200"), "read_note", WRITTEN),
    link(("write_note", "201"), "read_note", WRITTEN),
    link(("list_versions", "200"), "read_version", FIRST_VERSION),
    link(("list_versions", "200"), "restore_version", FIRST_VERSION),
    link(("list_attachments", "200"), "read_attachment", FIRST_ATTACHMENT),
    link(("read_attachment", "200"), "write_attachment", WITH_TAG),
    link(("write_attachment", "201"), "read_attachment", WRITTEN),
    link(("list_collections", "200"), "read_collection", &[SAME_VOLUME, ("path", "$response.body#/collections/0")]),
    link(("list_memories", "200"), "show_memory", &[("memoryId", "$response.body#/memories/0/experience_id")]),
    link(("add_memory", "201"), "show_memory", NEW_MEMORY),
    link(("add_memory", "201"), "forget_memory", NEW_MEMORY),
    link(("list_traces", "200"), "show_trace", &[("traceName", "$response.body#/traces/0/name")]),
    link(("search_notes", "200"), "search_notes", &[("query.query", "$request.query.query"), NEXT_PAGE]),
    link(
        ("search_notes", "200"),
        "read_note",
        &[("volume", "$response.body#/hits/0/volume"), ("path", "$response.body#/hits/0/path")],
    ),
    link(("list_todos", "200"), "list_todos", &[NEXT_PAGE]),
    body_link(
        ("list_todos", "200"),
        "check_todo",
        &[
            ("volume", "$response.body#/todos/0/volume"),
            ("path", "$response.body#/todos/0/path"),
            ("text", "$response.body#/todos/0/text"),
            ("at", "$response.body#/todos/0/at"),
        ],
    ),
    link(("submit_task", "201"), "task_status", NEW_TASK),
    link(("submit_task", "201"), "cancel_task", NEW_TASK),
    link(("list_pending_approvals", "200"), "decide_approval", &[("actionId", "$response.body#/0/action_id")]),
    link(("list_runs", "200"), "list_runs", &[NEXT_PAGE]),
    link(("list_runs", "200"), "show_run", FIRST_RUN),
    link(("list_runs", "200"), "list_steps", FIRST_RUN),
    link(("list_audit", "200"), "list_audit", &[NEXT_PAGE]),
];

fn linked_object(values: LinkedValues) -> Value {
    Value::Object(values.iter().map(|(name, place)| ((*name).to_owned(), json!(place))).collect())
}

/// Adds the links to the paths of a description.
pub(crate) fn add_links(paths: &mut Map<String, Value>) {
    let operations = paths.values_mut().filter_map(Value::as_object_mut).flat_map(|operations| operations.values_mut());
    for operation in operations {
        let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
        for link in LINKS.iter().filter(|link| link.from == id) {
            let response = operation.get_mut("responses").and_then(|responses| responses.get_mut(link.status));
            let Some(response) = response.filter(|response| response.is_object()) else { continue };
            let mut described = json!({"operationId": link.to});
            for (part, values) in [("parameters", link.parameters), ("requestBody", link.body)] {
                if !values.is_empty() {
                    described[part] = linked_object(values);
                }
            }
            response["links"][link.to] = described;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Asserts that each link of the description leads from an answer to a request that there are.
    pub(crate) fn assert_links(described: &Value) {
        let paths = described["paths"].as_object().expect("paths");
        let operations: Vec<&Value> = paths.values().filter_map(Value::as_object).flat_map(Map::values).collect();
        let operation = |id: &str| {
            let found = operations.iter().find(|operation| operation["operationId"] == id);
            *found.unwrap_or_else(|| panic!("there is no operation {id}"))
        };
        for link in LINKS {
            let (from, to) = (link.from, link.to);
            let added = &operation(from)["responses"][link.status]["links"][to];
            assert_eq!(added["operationId"], to, "{from} {}", link.status);
            let parameters = operation(to)["parameters"].as_array().cloned().unwrap_or_default();
            for (name, place) in link.parameters {
                let (within, name) = name.split_once('.').map_or((None, *name), |(within, name)| (Some(within), name));
                let is_there = parameters.iter().any(|parameter| {
                    parameter["name"] == name && within.is_none_or(|within| parameter["in"] == within)
                });
                assert!(is_there, "{from} to {to}: {name}");
                assert!(place.starts_with("$re"), "{place}");
            }
            let body = &operation(to)["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let schema = body.as_str().and_then(|path| described.pointer(path.trim_start_matches('#')));
            for (name, _) in link.body {
                let properties = schema.map(|schema| &schema["properties"]);
                assert!(properties.is_some_and(|properties| properties[*name].is_object()), "{from} to {to}: {name}");
            }
        }
    }
}
