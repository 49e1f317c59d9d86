//! `mcp prompts` and `mcp resources`: what MCP servers offer for messages, and its text, as an agent would get it.

use super::mcp_client::waited;
use crate::{CliError, EXIT_DONE, EXIT_FAILED};
use agent::server_material::{
    ServerOffer, ServerPrompt, ServerPromptArgument, ServerResource, prompt_argument, prompt_call, requested_material,
    resource_mention,
};
use host::mcp::{MATERIAL_TIMEOUT, McpServer, McpServerPool};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::time::Duration;
use text::untrusted_text;

/// Limit for what a server offers, with the start of the server.
const OFFER_WAIT: Duration = Duration::from_secs(120);

/// What of a server's offer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferKind {
    Prompts,
    Resources,
}

impl OfferKind {
    /// Returns the kind that a word of the command line means.
    pub(super) fn from_word(word: &str) -> Option<OfferKind> {
        match word {
            "prompts" => Some(OfferKind::Prompts),
            "resources" => Some(OfferKind::Resources),
            _ => None,
        }
    }
}

fn print_line(out: &mut dyn Write, head: &str, about: &str) -> std::io::Result<()> {
    writeln!(out, "{}", untrusted_text::escape_line(format!("{head:<40} {about}").trim_end()))
}

fn print_prompt(server: &str, prompt: &ServerPrompt, json: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let call = prompt_call(server, &prompt.name);
    if json {
        let argument = |argument: &ServerPromptArgument| {
            let (name, about) = (&argument.name, &argument.description);
            json!({"name": name, "description": about, "needed": argument.is_needed})
        };
        let arguments: Vec<Value> = prompt.arguments.iter().map(argument).collect();
        let (name, title, about) = (&prompt.name, &prompt.title, &prompt.description);
        let line = json!({"server": server, "name": name, "title": title, "description": about,
            "arguments": arguments, "call": call});
        return writeln!(out, "{line}");
    }
    let mut head = call;
    for argument in &prompt.arguments {
        head.push_str(&if argument.is_needed {
            format!(" {}=…", argument.name)
        } else {
            format!(" [{}=…]", argument.name)
        });
    }
    print_line(out, &head, prompt.caption())
}

fn print_resource(
    server: &str,
    (resource, is_template): (&ServerResource, bool),
    json: bool,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mention = resource_mention(server, &resource.uri).unwrap_or_default();
    let ServerResource { uri, name, description, mime } = resource;
    if json {
        let line = json!({"server": server, "uri": uri, "name": name, "description": description, "mime": mime,
            "template": is_template, "mention": mention});
        return writeln!(out, "{line}");
    }
    let kind = if is_template { " (fill in what is in braces)" } else { "" };
    print_line(out, &mention, &format!("{name}{kind}"))
}

fn print_offer(offer: &ServerOffer, kind: OfferKind, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    for why in &offer.left_out {
        eprintln!("tracebook: {}", untrusted_text::escape_line(why));
    }
    let server = offer.server.as_str();
    let (count, word) = match kind {
        OfferKind::Prompts => {
            offer.prompts.iter().try_for_each(|prompt| print_prompt(server, prompt, json, out))?;
            (offer.prompts.len(), "prompts")
        }
        OfferKind::Resources => {
            let all = offer.resources.iter().map(|one| (one, false));
            let mut all = all.chain(offer.templates.iter().map(|one| (one, true)));
            all.try_for_each(|one| print_resource(server, one, json, out))?;
            (offer.resources.len() + offer.templates.len(), "resources")
        }
    };
    if count == 0 && !json {
        writeln!(out, "{} has no {word}", untrusted_text::escape_line(server))?;
    }
    Ok(())
}

/// Lists what servers offer. If several are asked, one that fails is reported and the others are listed.
pub(super) fn list_offers(
    pool: &McpServerPool,
    servers: &[McpServer],
    kind: OfferKind,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let pending: Vec<_> = servers.iter().map(|server| pool.list_offers(&server.name)).collect();
    let mut done = EXIT_DONE;
    for pending in pending {
        match waited(&pending, OFFER_WAIT) {
            Ok(offer) => print_offer(&offer, kind, json, out)?,
            Err(why) if servers.len() == 1 => return Err(why),
            Err(why) => {
                eprintln!("tracebook: {}", untrusted_text::escape_line(&why.why));
                done = EXIT_FAILED;
            }
        }
    }
    if servers.is_empty() && !json {
        writeln!(out, "The configuration names no MCP servers")?;
    }
    Ok(done)
}

/// Prints the text of a prompt or a resource, as an agent would get it.
pub(super) fn print_material(
    pool: &McpServerPool,
    server: &str,
    (kind, name): (OfferKind, &str),
    arguments: &Map<String, Value>,
    (json, out): (bool, &mut dyn Write),
) -> Result<u8, CliError> {
    let offer = waited(&pool.list_offers(server), OFFER_WAIT)?;
    let mut words = match kind {
        OfferKind::Prompts => prompt_call(server, name),
        OfferKind::Resources => resource_mention(server, name).unwrap_or_else(|| format!("@{server}:{name}")),
    };
    for (name, value) in arguments {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        words.push_str(&format!(" {}", prompt_argument(name, &value)));
    }
    let wanted = requested_material(&words, &[server], &[offer]);
    let wanted = wanted.map_err(|why| CliError::usage(untrusted_text::escape_line(&why.to_string()).into_owned()))?;
    for (wanted, read) in pool.gather(wanted, MATERIAL_TIMEOUT).results() {
        let text = read.map_err(|error| {
            let failed = CliError::from(error);
            CliError { why: untrusted_text::escape_line(&failed.why).into_owned(), ..failed }
        })?;
        match json {
            true => writeln!(out, "{}", json!({"source": wanted.source(), "text": text}))?,
            false => writeln!(out, "{}", untrusted_text::escape_block(&text))?,
        }
    }
    Ok(EXIT_DONE)
}
