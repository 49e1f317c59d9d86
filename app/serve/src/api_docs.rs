//! The documentation of the REST interface as a page, made from its description in OpenAPI. It loads nothing from
//! elsewhere and runs no script.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// Where the page and its style are.
pub(crate) const DOCS_PATH: &str = "/api/v1/docs";
pub(crate) const DOCS_STYLE_PATH: &str = "/api/v1/docs.css";
/// What the page may load: its own style.
const DOCS_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid; }
h3 { margin-top: 2rem; }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 1rem 0.2rem 0; }
.method { text-transform: uppercase; font-weight: bold; }
";

fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Escapes a text in which words between backquotes are code.
fn escape_prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => escape_html(part),
        _ => format!("<code>{}</code>", escape_html(part)),
    });
    parts.collect()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Describes a schema in a few words, as HTML; others are linked.
fn schema_words(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        let name = escape_html(name);
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    if let Some(choices) = ["oneOf", "anyOf", "allOf"].iter().find_map(|key| schema[*key].as_array()) {
        return choices.iter().map(schema_words).collect::<Vec<_>>().join(" or ");
    }
    if let Some(names) = schema["enum"].as_array() {
        let names = names.iter().map(|name| format!("<code>{}</code>", escape_html(&name.to_string())));
        return names.collect::<Vec<_>>().join(" or ");
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    let words = kinds.into_iter().map(|kind| match kind {
        "array" => format!("list of {}", schema_words(&schema["items"])),
        kind => escape_html(kind),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "any value".to_owned() } else { words.join(" or ") }
}

fn content_words(content: &Value) -> String {
    let Some(content) = content.as_object() else { return String::new() };
    let kinds = content
        .iter()
        .map(|(kind, body)| format!("{} as <code>{}</code>", schema_words(&body["schema"]), escape_html(kind)));
    kinds.collect::<Vec<_>>().join(", ")
}

fn push_operation(page: &mut String, method: &str, path: &str, operation: &Value) {
    page.push_str(&format!(
        "<h3 id=\"{}\"><span class=\"method\">{method}</span> <code>{}</code></h3>\n<p>{}</p>\n",
        escape_html(text(operation, "operationId")),
        escape_html(path),
        escape_prose(text(operation, "summary")),
    ));
    let details = text(operation, "description");
    if !details.is_empty() {
        page.push_str(&format!("<p>{}</p>\n", escape_prose(details)));
    }
    page.push_str("<table>\n");
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let needed = if parameter["required"] == true { ", needed" } else { "" };
        page.push_str(&format!(
            "<tr><td><code>{}</code></td><td>{} ({}{needed})</td><td>{}</td></tr>\n",
            escape_html(text(parameter, "name")),
            schema_words(&parameter["schema"]),
            escape_html(text(parameter, "in")),
            escape_prose(text(parameter, "description")),
        ));
    }
    if operation["requestBody"].is_object() {
        let words = content_words(&operation["requestBody"]["content"]);
        page.push_str(&format!("<tr><td>body</td><td>{words}</td><td></td></tr>\n"));
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        page.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escape_html(status),
            content_words(&response["content"]),
            escape_prose(text(response, "description")),
        ));
    }
    page.push_str("</table>\n");
}

fn push_schema(page: &mut String, name: &str, schema: &Value) {
    let name = escape_html(name);
    page.push_str(&format!(
        "<h3 id=\"schema-{name}\">{name}</h3>\n<p>{}</p>\n",
        escape_prose(text(schema, "description"))
    ));
    let needed: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // A schema can be made of others.
    let parts = schema["allOf"].as_array().map_or_else(|| vec![schema], |parts| parts.iter().collect());
    page.push_str("<table>\n");
    for part in parts {
        if part["$ref"].is_string() {
            page.push_str(&format!("<tr><td>with</td><td>{}</td><td></td></tr>\n", schema_words(part)));
        }
        for (field, about) in part["properties"].as_object().into_iter().flatten() {
            let needed = if needed.contains(&field.as_str()) { ", needed" } else { "" };
            page.push_str(&format!(
                "<tr><td><code>{}</code></td><td>{}{needed}</td><td>{}</td></tr>\n",
                escape_html(field),
                schema_words(about),
                escape_prose(text(about, "description")),
            ));
        }
    }
    if schema["enum"].is_array() {
        page.push_str(&format!("<tr><td>{}</td></tr>\n", schema_words(schema)));
    }
    page.push_str("</table>\n");
}

/// Returns the page for a description in OpenAPI.
pub(crate) fn docs_page(described: &Value) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Tracebook API</title>\n\
         <link rel=\"stylesheet\" href=\"{DOCS_STYLE_PATH}\">\n</head>\n<body>\n<h1>Tracebook API</h1>\n<p>{}. Every \
         request needs a token: <code>Authorization: Bearer TOKEN</code>. Make one with <code>tracebook tokens \
         create</code>. The same in OpenAPI 3.1: <a href=\"/api/v1/openapi.json\">openapi.json</a>.</p>\n",
        escape_prose(text(&described["info"], "description")),
    );
    for tag in described["tags"].as_array().into_iter().flatten() {
        let name = text(tag, "name");
        page.push_str(&format!("<h2>{}</h2>\n", escape_prose(text(tag, "description"))));
        for (path, operations) in described["paths"].as_object().into_iter().flatten() {
            for method in METHODS {
                let operation = &operations[method];
                if operation["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == name)) {
                    push_operation(&mut page, method, path, operation);
                }
            }
        }
    }
    page.push_str("<h2>Schemas</h2>\n");
    for (name, schema) in described["components"]["schemas"].as_object().into_iter().flatten() {
        push_schema(&mut page, name, schema);
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// Answers with the page.
pub(crate) fn docs_response(page: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, DOCS_POLICY)];
    (headers, page).into_response()
}

/// Answers with the page's style.
pub(crate) async fn docs_style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_description_says_is_escaped() {
        let described = json!({
            "info": {"description": "<script>alert(1)</script>"},
            "tags": [{"name": "notes", "description": "Notes & more"}],
            "paths": {"/a/{b}\"><i>": {"get": {
                "tags": ["notes"], "operationId": "x\" onclick=\"y", "summary": "Reads `a<b`.",
                "parameters": [{"name": "<b>", "in": "query", "schema": {"type": ["string", "null"]}}],
                "responses": {"200": {"content": {"text/html": {"schema": {"$ref": "#/components/schemas/A\"B"}}}}},
            }}},
            "components": {"schemas": {"A\"B": {"properties": {"c": {"type": "array", "items": {"enum": ["<x>"]}}}}}},
        });
        let page = docs_page(&described);
        for wrong in ["<script", "<i>", "<x>", "\" onclick", "<b>"] {
            assert!(!page.contains(wrong), "{wrong}: {page}");
        }
        assert!(page.contains("Reads <code>a&lt;b</code>.") && page.contains("string or null"), "{page}");
        assert!(page.contains("list of <code>&quot;&lt;x&gt;&quot;</code>"), "{page}");
    }
}
