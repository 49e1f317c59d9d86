//! Limits for the schemas of tools, which come from tool servers and from models. A schema that refers to itself, or
//! twice to one that refers twice to another, could exhaust the stack or take very long.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// Maximum number of subschemas, counted from the root along references.
const MAX_SCHEMA_NODES: usize = 2_000;
/// Maximum number of steps of a validation.
const MAX_VALIDATION_STEPS: u64 = 5_000_000;
/// Maximum nesting of subschemas that check the same value, times the depth of the arguments.
const MAX_SCHEMA_DEPTH: usize = 2_000;
/// Maximum number of times that a pattern with a look-around or a back-reference goes back in a text. All other
/// patterns are checked in linear time.
const MAX_PATTERN_BACKTRACKS: usize = 10_000;
/// Stack size in bytes for compiling and checking schemas within these limits.
pub(crate) const SCHEMA_STACK_BYTES: usize = 64 << 20;

/// Keywords whose subschemas apply to the value itself: a single subschema, a list, or a map by name.
const SAME_VALUE_KEYWORDS: [&str; 11] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "extends", "disallow"];
/// Keywords whose subschemas apply to the contents of the value.
const NESTED_VALUE_KEYWORDS: [&str; 11] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "contentSchema",
];

/// A subschema, with the indices of those that apply to the same value and of those that apply to its contents.
#[derive(Default)]
struct SchemaNode {
    same: Vec<usize>,
    inside: Vec<usize>,
}

/// Why a schema isn't used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolSchemaError {
    /// Its references form a cycle on the same value.
    #[error("it refers to itself without end")]
    Endless,
    /// Its subschemas are nested too deeply for the arguments.
    #[error("it nests too deep")]
    NestedTooDeep,
    /// Checking the arguments takes too many steps.
    #[error("it takes too long to check")]
    TooSlow,
    /// It has too many subschemas.
    #[error("it has more than {MAX_SCHEMA_NODES} parts")]
    TooManyParts,
    /// A reference doesn't point to a part of the schema.
    #[error("it refers to what is not in it by a path (#/…)")]
    OutsideReference,
    /// It isn't a valid schema; the text is the library's message.
    #[error("{0}")]
    Invalid(String),
}

/// Checks that a schema can be compiled, and arguments validated with it, within the limits.
///
/// # Errors
/// Returns the exceeded limit, or an error if a reference leads out of the schema.
pub(crate) fn check_limits(schema: &Value, arguments: &Map<String, Value>) -> Result<(), ToolSchemaError> {
    let parts = collect_nodes(schema)?;
    let order = topological_order(&parts).ok_or(ToolSchemaError::Endless)?;
    let mut chain = vec![1_usize; parts.len()];
    for part in &order {
        chain[*part] = 1 + parts[*part].same.iter().map(|inner| chain[*inner]).max().unwrap_or(0);
    }
    let (depth, values) = measure_arguments(arguments);
    if chain.iter().max().copied().unwrap_or(0).saturating_mul(depth + 1) > MAX_SCHEMA_DEPTH {
        return Err(ToolSchemaError::NestedTooDeep);
    }
    // Cost of checking a value whose depth is the number of the round.
    let mut below = vec![0_u64; parts.len()];
    for _ in 0..=depth {
        let mut cost = vec![1_u64; parts.len()];
        for part in &order {
            let same = parts[*part].same.iter().map(|inner| cost[*inner]);
            let inside = parts[*part].inside.iter().map(|inner| below[*inner]);
            cost[*part] = same.chain(inside).fold(1, u64::saturating_add);
        }
        if cost.iter().any(|cost| cost.saturating_mul(values) > MAX_VALIDATION_STEPS) {
            return Err(ToolSchemaError::TooSlow);
        }
        below = cost;
    }
    Ok(())
}

/// Checks that a schema is valid and can be compiled within the limits.
///
/// # Errors
/// Returns the exceeded limit, or the library's message if the schema is invalid.
pub fn check_schema(schema: &Value) -> Result<(), ToolSchemaError> {
    check_limits(schema, &Map::new())?;
    stacker::grow(SCHEMA_STACK_BYTES, || compile_schema(schema).map(|_| ()))
}

/// Compiles a schema whose patterns may not take long, whatever the text is.
///
/// # Errors
/// Returns the library's message if the schema is invalid.
pub(crate) fn compile_schema(schema: &Value) -> Result<jsonschema::Validator, ToolSchemaError> {
    let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(MAX_PATTERN_BACKTRACKS);
    let made = jsonschema::options().with_pattern_options(patterns).build(schema);
    made.map_err(|error| ToolSchemaError::Invalid(error.to_string()))
}

/// Returns all subschemas that can be reached from the root, with the root first.
fn collect_nodes(schema: &Value) -> Result<Vec<SchemaNode>, ToolSchemaError> {
    let mut known: HashMap<*const Value, usize> = HashMap::from([(std::ptr::from_ref(schema), 0)]);
    let mut all = vec![schema];
    let mut parts: Vec<SchemaNode> = Vec::new();
    while let Some(fields) = all.get(parts.len()).map(|part| part.as_object()) {
        let mut part = SchemaNode::default();
        for (key, value) in fields.into_iter().flatten() {
            let mut add = |inner, into: &mut Vec<usize>| -> Result<(), ToolSchemaError> {
                let next = all.len();
                let at = *known.entry(std::ptr::from_ref(inner)).or_insert(next);
                if at == next {
                    all.push(inner);
                }
                into.push(at);
                if all.len() > MAX_SCHEMA_NODES { Err(ToolSchemaError::TooManyParts) } else { Ok(()) }
            };
            match (key.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                    let target = to.strip_prefix('#').and_then(|pointer| schema.pointer(&unescape_pointer(pointer)));
                    add(target.ok_or(ToolSchemaError::OutsideReference)?, &mut part.same)?;
                }
                (key, Value::Object(inner)) if key == "properties" || key == "patternProperties" => {
                    inner.values().try_for_each(|inner| add(inner, &mut part.inside))?;
                }
                ("dependentSchemas" | "dependencies", Value::Object(inner)) => {
                    inner.values().try_for_each(|inner| add(inner, &mut part.same))?;
                }
                (key, value) => {
                    let into = match (SAME_VALUE_KEYWORDS.contains(&key), NESTED_VALUE_KEYWORDS.contains(&key)) {
                        (true, _) => &mut part.same,
                        (false, true) => &mut part.inside,
                        (false, false) => continue,
                    };
                    match value {
                        Value::Array(list) => list.iter().try_for_each(|inner| add(inner, into))?,
                        one => add(one, into)?,
                    }
                }
            }
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Decodes percent-encoding in a reference, such as `%24`.
fn unescape_pointer(pointer: &str) -> String {
    text::outline::percent_decode(pointer).into_owned()
}

/// Sorts subschemas so that those on the same value come before the ones that contain them; `None` if there's a cycle.
fn topological_order(parts: &[SchemaNode]) -> Option<Vec<usize>> {
    let mut open: Vec<usize> = parts.iter().map(|part| part.same.len()).collect();
    let mut around: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
    for (at, part) in parts.iter().enumerate() {
        part.same.iter().for_each(|inner| around[*inner].push(at));
    }
    let mut order: Vec<usize> = (0..parts.len()).filter(|at| open[*at] == 0).collect();
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        for outer in &around[at] {
            open[*outer] -= 1;
            if open[*outer] == 0 {
                order.push(*outer);
            }
        }
    }
    (order.len() == parts.len()).then_some(order)
}

/// Returns the depth of arguments and the number of values in them.
fn measure_arguments(arguments: &Map<String, Value>) -> (usize, u64) {
    let (mut deepest, mut count) = (1, 1);
    let mut open: Vec<(&Value, usize)> = arguments.values().map(|value| (value, 1)).collect();
    while let Some((value, depth)) = open.pop() {
        count += 1;
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    (deepest, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judge(schema: &Value, arguments: Value) -> Result<(), ToolSchemaError> {
        check_limits(schema, arguments.as_object().expect("an object"))
    }

    #[test]
    fn schemas_of_tools_are_bounded() {
        for tool in crate::tool_catalog::built_in() {
            assert_eq!(judge(&tool.parameters, json!({"a": [{"b": 1}]})), Ok(()), "{}", tool.name);
        }
        let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}, "name": {"type": "string"}}}}});
        let mut value = json!({"name": "leaf"});
        for _ in 0..20 {
            value = json!({"children": [value]});
        }
        assert_eq!(judge(&tree, value), Ok(()));
    }

    #[test]
    fn schemas_that_grow_are_refused() {
        for endless in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {
                "a": {"not": {"$ref": "#/$defs/b"}},
                "b": {"anyOf": [{"$ref": "#/$defs/a"}]},
            }}),
        ] {
            assert_eq!(judge(&endless, json!({})), Err(ToolSchemaError::Endless), "{endless}");
        }
        let mut defs = Map::new();
        for at in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            defs.insert(format!("d{at}"), json!({"allOf": [next, next]}));
        }
        defs.insert("d40".to_owned(), json!({}));
        let doubling = json!({"$ref": "#/$defs/d0", "$defs": defs});
        assert_eq!(judge(&doubling, json!({})), Err(ToolSchemaError::TooSlow));
        let twice = json!({"items": {"$ref": "#"}, "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"a": deep});
        }
        assert_eq!(judge(&twice, deep), Err(ToolSchemaError::TooSlow));
        let mut chain = Map::new();
        for at in 0..900 {
            chain.insert(format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)}));
        }
        chain.insert("d900".to_owned(), json!({}));
        let long = json!({"$ref": "#/$defs/d0", "$defs": chain});
        assert_eq!(check_schema(&long), Ok(()), "it is compiled");
        assert_eq!(judge(&long, json!({"a": [[1]]})), Err(ToolSchemaError::NestedTooDeep));
        assert!(judge(&json!({"$ref": "https://example.org/x.json"}), json!({})).is_err());
    }
}
