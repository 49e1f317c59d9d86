//! What the description of the REST interface says of names that requests hold: which a volume and a path can be.

use serde_json::{Map, Value, json};

/// Control characters, which no name has.
const CONTROLS: &str = r"\x00-\x1f\x7f-\x9f";
/// Bodies with the name of a note.
const NAMING_BODIES: [&str; 3] = ["TodoCheck", "CellsRequest", "CellsQuery"];

/// Returns the pattern of a field or parameter with this name. A note that is created ends with `.md`.
fn name_pattern(name: &str, is_new_note: bool) -> Option<String> {
    let no = format!(r"{CONTROLS}/\\");
    // Neither empty, nor `.` or `..`.
    let part = format!(r"(?:[^.{no}][^{no}]*|\.[^.{no}][^{no}]*|\.\.[^{no}]+)");
    match name {
        "volume" => Some(format!("^[^{CONTROLS}]+$")),
        "path" if is_new_note => Some(format!(r"^(?:{part}/)*[^{no}]+\.[mM][dD]$")),
        "path" => Some(format!("^{part}(?:/{part})*$")),
        _ => None,
    }
}

fn operations(paths: &mut Map<String, Value>) -> impl Iterator<Item = (bool, &mut Value)> {
    paths.iter_mut().flat_map(|(path, operations)| {
        let is_note = path.contains("/notes/{");
        let operations = operations.as_object_mut().into_iter().flatten();
        operations.map(move |(method, operation)| (is_note && method == "put", operation))
    })
}

/// Adds the patterns to a description.
pub(crate) fn add_name_patterns(described: &mut Value) {
    for (is_new_note, operation) in described["paths"].as_object_mut().into_iter().flat_map(operations) {
        // An index would add what isn't there.
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default();
            if let Some(pattern) = name_pattern(name, is_new_note) {
                parameter["schema"]["pattern"] = pattern.into();
            }
        }
    }
    for body in NAMING_BODIES {
        let fields = described["components"]["schemas"][body]["properties"].as_object_mut();
        for (name, schema) in fields.into_iter().flatten() {
            if let Some(pattern) = name_pattern(name, false) {
                schema["pattern"] = pattern.into();
            }
        }
    }
    // One cell, or those that are stale.
    let both =
        json!({"required": ["cell", "stale"], "properties": {"cell": {"type": "integer"}, "stale": {"const": true}}});
    described["components"]["schemas"]["CellsRequest"]["not"] = both;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_patterns_wherever_they_stand() {
        let parameters = || json!([{"name": "volume", "schema": {}}, {"name": "path", "schema": {"minLength": 1}}]);
        let body = || json!({"properties": {"path": {"type": "string"}, "at": {"type": "integer"}}});
        let bodies: Map<String, Value> = NAMING_BODIES.iter().map(|name| ((*name).to_owned(), body())).collect();
        let operations =
            json!({"get": {"parameters": parameters()}, "put": {"parameters": parameters()}, "post": {"tags": []}});
        let mut described = json!({"paths": {"/volumes/{volume}/notes/{path}": operations},
            "components": {"schemas": bodies}});
        add_name_patterns(&mut described);
        let operations = &described["paths"]["/volumes/{volume}/notes/{path}"];
        let pattern = |method: &str, at: usize| operations[method]["parameters"][at]["schema"]["pattern"].to_string();
        assert_eq!(pattern("get", 0), pattern("put", 0));
        assert!(pattern("put", 1).contains("[mM][dD]") && !pattern("get", 1).contains("[mM][dD]"));
        assert_eq!(operations["post"], json!({"tags": []}));
        for name in NAMING_BODIES {
            let fields = &described["components"]["schemas"][name]["properties"];
            assert!(fields["path"]["pattern"].is_string() && fields["at"]["pattern"].is_null(), "{fields}");
        }
    }
}
