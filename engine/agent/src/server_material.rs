//! Prompts and resources of MCP servers: what servers offer, and what a message of the user asks of them.
//!
//! `/server:prompt name=value …` at the beginning of a message calls a prompt, and `@server:uri` includes a resource.
//! Only messages of the user are read like this: text of servers, files and models calls nothing.

use crate::model_context;
use crate::name_suggestions::closest_names;
use crate::prompt_quote::{quote_inline, single_line};
use std::collections::BTreeMap;

/// Maximum number of arguments of a prompt.
pub const MAX_PROMPT_ARGUMENTS: usize = 30;
/// Maximum length of the value of a prompt's argument in bytes.
pub const MAX_PROMPT_ARGUMENT_BYTES: usize = 10_000;
/// Maximum number of resources that a message includes.
pub const MAX_MESSAGE_RESOURCES: usize = 10;
/// Maximum length in bytes of the text of a prompt or a resource that a model gets.
pub const MAX_MATERIAL_BYTES: usize = 100 << 10;
/// Maximum number of names in an error.
const MAX_LISTED_NAMES: usize = 20;
/// Maximum length of a name in an error, in characters.
const MAX_NAME_CHARS: usize = 100;

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPromptArgument {
    /// Name of the argument.
    pub name: String,
    /// What the server says of it, on one line.
    pub description: String,
    /// Whether it must have a value.
    pub is_needed: bool,
}

/// A prompt of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPrompt {
    /// Name of the prompt on its server.
    pub name: String,
    /// What people call it, on one line; empty if the server doesn't say.
    pub title: String,
    /// What the server says of it, on one line.
    pub description: String,
    /// The arguments that the prompt accepts.
    pub arguments: Vec<ServerPromptArgument>,
}

impl ServerPrompt {
    /// Returns the title, or else the description; empty if the server says neither.
    pub fn caption(&self) -> &str {
        if self.title.is_empty() { &self.description } else { &self.title }
    }
}

/// A resource of a server, or a template for the addresses of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerResource {
    /// Address of the resource, or a URI template after RFC 6570.
    pub uri: String,
    /// What the server calls it, on one line.
    pub name: String,
    /// What the server says of it, on one line.
    pub description: String,
    /// Its media type; empty if the server doesn't say.
    pub mime: String,
}

/// What a server offers for messages of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOffer {
    /// Name of the server in the configuration.
    pub server: String,
    /// Its prompts.
    pub prompts: Vec<ServerPrompt>,
    /// Its resources.
    pub resources: Vec<ServerResource>,
    /// Templates for addresses of further resources.
    pub templates: Vec<ServerResource>,
    /// Why something isn't offered, one sentence each.
    pub left_out: Vec<String>,
}

/// Something of a server that a message asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerMaterial {
    /// The text of a prompt.
    Prompt {
        /// Name of the server.
        server: String,
        /// Name of the prompt on the server.
        prompt: String,
        /// What the prompt is told.
        arguments: BTreeMap<String, String>,
    },
    /// The text of a resource.
    Resource {
        /// Name of the server.
        server: String,
        /// Address of the resource.
        uri: String,
    },
}

impl ServerMaterial {
    /// Describes where the text is from.
    pub fn source(&self) -> String {
        match self {
            ServerMaterial::Prompt { server, prompt, .. } => format!("the prompt {prompt} of the MCP server {server}"),
            ServerMaterial::Resource { server, uri } => format!("{uri}, a resource of the MCP server {server}"),
        }
    }
}

/// Why a message that names prompts or resources can't be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerMaterialError {
    /// No server with that name is configured.
    #[error("There is no MCP server {}. {}. A space before the / sends the message as it is.",
        quote_inline(.0, MAX_NAME_CHARS), known_names(.0, .1))]
    UnknownServer(String, Vec<String>),
    /// The server hasn't said what it offers.
    #[error("The MCP server {0} has not said what it offers. `tracebook mcp prompts {0}` says why.")]
    Unlisted(String),
    /// The server has no prompt with that name.
    #[error("The MCP server {server} has no prompt {}. {}.",
        quote_inline(.name, MAX_NAME_CHARS), known_names(.name, .known))]
    UnknownPrompt {
        /// Name of the server.
        server: String,
        /// The unknown name.
        name: String,
        /// The prompts that it has.
        known: Vec<String>,
    },
    /// The prompt has no argument with that name.
    #[error("The prompt {call} has no argument {}. {}.",
        quote_inline(.name, MAX_NAME_CHARS), known_names(.name, .known))]
    UnknownArgument {
        /// How the prompt is called.
        call: String,
        /// The unknown name.
        name: String,
        /// The arguments that it has.
        known: Vec<String>,
    },
    /// An argument has two values.
    #[error("The prompt {0} has the argument {name} twice.", name = quote_inline(.1, MAX_NAME_CHARS))]
    RepeatedArgument(String, String),
    /// Arguments that the prompt needs have no value.
    #[error("The prompt {call} needs {}. Write {call} {}", described(.missing), example(.missing))]
    MissingArguments {
        /// How the prompt is called.
        call: String,
        /// The arguments that have no value.
        missing: Vec<ServerPromptArgument>,
    },
    /// An argument's value is too long.
    #[error("The argument {name} of the prompt {0} is longer than {most} kB.",
        name = quote_inline(.1, MAX_NAME_CHARS), most = MAX_PROMPT_ARGUMENT_BYTES / 1_000)]
    ArgumentTooLong(String, String),
    /// A quotation mark isn't closed.
    #[error("The value of {} has no closing quotation mark.", quote_inline(.0, MAX_NAME_CHARS))]
    UnclosedQuote(String),
    /// The server has no resource with that name or address.
    #[error("The MCP server {server} has no resource {}. {}.",
        quote_inline(.name, MAX_NAME_CHARS), known_names(.name, .known))]
    UnknownResource {
        /// Name of the server.
        server: String,
        /// The unknown name.
        name: String,
        /// Addresses of the resources that it has.
        known: Vec<String>,
    },
    /// Several resources have that name.
    #[error("The MCP server {server} has several resources {}: {}.", quote_inline(.name, MAX_NAME_CHARS),
        listed_names(.uris))]
    AmbiguousResource {
        /// Name of the server.
        server: String,
        /// The name.
        name: String,
        /// Addresses of the resources with that name.
        uris: Vec<String>,
    },
    /// The message names too many resources.
    #[error("A message can include {MAX_MESSAGE_RESOURCES} resources of MCP servers, and this one names more.")]
    TooManyResources,
}

fn listed_names(names: &[String]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(MAX_LISTED_NAMES).map(|name| single_line(name, MAX_NAME_CHARS)).collect();
    if names.len() > MAX_LISTED_NAMES {
        shown.push(format!("and {} more", names.len() - MAX_LISTED_NAMES));
    }
    shown.join(", ")
}

/// Says which names exist, or which ones the user may have meant.
fn known_names(name: &str, known: &[String]) -> String {
    let near = closest_names(name, known.iter().map(String::as_str));
    match (known, near.as_slice()) {
        ([], _) => "It has none".to_owned(),
        (known, []) => format!("There are: {}", listed_names(known)),
        (_, near) => {
            let near: Vec<String> = near.iter().map(|name| single_line(name, MAX_NAME_CHARS)).collect();
            format!("Did you mean {}? There are: {}", near.join(" or "), listed_names(known))
        }
    }
}

fn described(missing: &[ServerPromptArgument]) -> String {
    let one = |argument: &ServerPromptArgument| {
        let name = single_line(&argument.name, MAX_NAME_CHARS);
        let about = single_line(&argument.description, MAX_NAME_CHARS);
        if about.is_empty() { name } else { format!("{name} ({about})") }
    };
    missing.iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn example(missing: &[ServerPromptArgument]) -> String {
    missing.iter().map(|argument| format!("{}=\"…\"", argument.name)).collect::<Vec<_>>().join(" ")
}

/// Returns a text as a word of a call: as it is, or in quotation marks.
fn call_word(text: &str) -> String {
    if !text.is_empty() && !text.contains(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '\\')) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns how a message calls a prompt.
pub fn prompt_call(server: &str, prompt: &str) -> String {
    format!("/{}", call_word(&format!("{server}:{prompt}")))
}

/// Returns how a call gives an argument.
pub fn prompt_argument(name: &str, value: &str) -> String {
    format!("{name}={}", call_word(value))
}

/// Returns how a message includes a resource; `None` if its address can't be written in a message.
pub fn resource_mention(server: &str, uri: &str) -> Option<String> {
    let name = format!("{server}:{uri}");
    [format!("@{name}"), format!("@\"{name}\"")]
        .into_iter()
        .find(|mention| model_context::mentions(mention) == [name.as_str()])
}

/// The call of a prompt at the beginning of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptCall {
    /// Name of the server.
    pub server: String,
    /// Name of the prompt.
    pub prompt: String,
    /// Names and values, in their order.
    pub arguments: Vec<(String, String)>,
    /// Where the call ends, in bytes: what follows is the user's own text.
    pub end: usize,
}

/// Reads a word up to white space, or one in quotation marks. Returns it with the rest of the text; `None` if a
/// quotation mark isn't closed.
fn read_word(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut word = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((word, &quoted[at + 1..])),
            '\\' => word.push(letters.next()?.1),
            letter => word.push(letter),
        }
    }
    None
}

/// Returns the name before a `=` at the beginning of a text, and what follows the `=`.
fn argument_name(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '[' | ']');
    (!name.is_empty() && name.len() <= 128 && name.chars().all(plain)).then_some((name, rest))
}

/// Reads the call of a prompt at the beginning of a message; `None` if it begins with something else.
///
/// # Errors
/// Returns an error if a value has no closing quotation mark.
pub fn read_prompt_call(text: &str, servers: &[&str]) -> Result<Option<PromptCall>, ServerMaterialError> {
    let Some(after) = text.strip_prefix('/').filter(|_| !servers.is_empty()) else { return Ok(None) };
    let Some((word, mut rest)) = read_word(after) else { return Ok(None) };
    let known = servers.iter().filter(|server| word.strip_prefix(**server).is_some_and(|rest| rest.starts_with(':')));
    let split = known.map(|server| server.len()).max().or_else(|| word.find(':'));
    let Some((server, prompt)) = split.map(|at| (&word[..at], &word[at + 1..])) else { return Ok(None) };
    // A path such as `/etc/a:b` calls nothing.
    if server.is_empty() || server.contains('/') || prompt.is_empty() || prompt.starts_with('/') {
        return Ok(None);
    }
    let mut arguments = Vec::new();
    loop {
        let next = rest.trim_start();
        let is_separate = next.len() < rest.len();
        let Some((name, value)) = argument_name(next).filter(|_| is_separate) else { break };
        if arguments.len() >= MAX_PROMPT_ARGUMENTS {
            break;
        }
        let (value, after) = read_word(value).ok_or_else(|| ServerMaterialError::UnclosedQuote(name.to_owned()))?;
        arguments.push((name.to_owned(), value));
        rest = after;
    }
    let end = text.len() - rest.len();
    Ok(Some(PromptCall { server: server.to_owned(), prompt: prompt.to_owned(), arguments, end }))
}

impl PromptCall {
    /// Returns what is asked of the server.
    fn material(self, servers: &[&str], offers: &[ServerOffer]) -> Result<ServerMaterial, ServerMaterialError> {
        let offer = find_offer(&self.server, servers, offers)?;
        let names = || offer.prompts.iter().map(|prompt| prompt.name.clone()).collect();
        let Some(prompt) = offer.prompts.iter().find(|prompt| prompt.name == self.prompt) else {
            let (server, name) = (self.server, self.prompt);
            return Err(ServerMaterialError::UnknownPrompt { server, name, known: names() });
        };
        let call = prompt_call(&self.server, &self.prompt);
        let mut arguments = BTreeMap::new();
        for (name, value) in self.arguments {
            if prompt.arguments.iter().all(|argument| argument.name != name) {
                let known = prompt.arguments.iter().map(|argument| argument.name.clone()).collect();
                return Err(ServerMaterialError::UnknownArgument { call, name, known });
            }
            if value.len() > MAX_PROMPT_ARGUMENT_BYTES {
                return Err(ServerMaterialError::ArgumentTooLong(call, name));
            }
            if arguments.insert(name.clone(), value).is_some() {
                return Err(ServerMaterialError::RepeatedArgument(call, name));
            }
        }
        let has_value = |argument: &&ServerPromptArgument| arguments.get(&argument.name).is_some_and(|v| !v.is_empty());
        let missing: Vec<ServerPromptArgument> =
            prompt.arguments.iter().filter(|argument| argument.is_needed && !has_value(argument)).cloned().collect();
        if !missing.is_empty() {
            return Err(ServerMaterialError::MissingArguments { call, missing });
        }
        Ok(ServerMaterial::Prompt { server: self.server, prompt: self.prompt, arguments })
    }
}

fn find_offer<'o>(
    server: &str,
    servers: &[&str],
    offers: &'o [ServerOffer],
) -> Result<&'o ServerOffer, ServerMaterialError> {
    if !servers.contains(&server) {
        let known = servers.iter().map(|server| (*server).to_owned()).collect();
        return Err(ServerMaterialError::UnknownServer(server.to_owned(), known));
    }
    let offer = offers.iter().find(|offer| offer.server == server);
    offer.ok_or_else(|| ServerMaterialError::Unlisted(server.to_owned()))
}

/// Returns the server and the name or address in the mention of a resource; `None` if it mentions something else.
pub fn split_mention<'m>(mention: &'m str, servers: &[&str]) -> Option<(&'m str, &'m str)> {
    let of = servers.iter().filter_map(|server| {
        let rest = mention.strip_prefix(server)?.strip_prefix(':')?;
        (!rest.is_empty()).then_some((&mention[..server.len()], rest))
    });
    of.max_by_key(|(server, _)| server.len())
}

/// Returns whether a text begins with the scheme of a URI.
fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic()) && scheme.chars().all(plain)
    })
}

/// Returns the address of a resource that a mention names.
fn find_resource(offer: &ServerOffer, name: &str) -> Result<String, ServerMaterialError> {
    let server = offer.server.clone();
    if offer.resources.iter().any(|resource| resource.uri == name) {
        return Ok(name.to_owned());
    }
    let named: Vec<String> =
        offer.resources.iter().filter(|resource| resource.name == name).map(|resource| resource.uri.clone()).collect();
    match named.as_slice() {
        [uri] => Ok(uri.clone()),
        // A server needn't list all that it has. It refuses an address that it doesn't know.
        [] if has_scheme(name) && !(offer.resources.is_empty() && offer.templates.is_empty()) => Ok(name.to_owned()),
        [] => {
            let known = offer.resources.iter().chain(&offer.templates).map(|resource| resource.uri.clone()).collect();
            Err(ServerMaterialError::UnknownResource { server, name: name.to_owned(), known })
        }
        _ => Err(ServerMaterialError::AmbiguousResource { server, name: name.to_owned(), uris: named }),
    }
}

/// Returns what a message of the user asks of the configured servers: at most one prompt, and resources.
///
/// # Errors
/// Returns an error that says what exists if the message names something that doesn't, or leaves out an argument that
/// a prompt needs.
pub fn requested_material(
    text: &str,
    servers: &[&str],
    offers: &[ServerOffer],
) -> Result<Vec<ServerMaterial>, ServerMaterialError> {
    let mut wanted = Vec::new();
    let mut own = text;
    if let Some(call) = read_prompt_call(text, servers)? {
        // An `@` in a value is a part of the value.
        own = &text[call.end..];
        wanted.push(call.material(servers, offers)?);
    }
    for mention in model_context::mentions(own) {
        let Some((server, name)) = split_mention(&mention, servers) else { continue };
        let uri = find_resource(find_offer(server, servers, offers)?, name)?;
        let resource = ServerMaterial::Resource { server: server.to_owned(), uri };
        if !wanted.contains(&resource) {
            wanted.push(resource);
        }
    }
    let count = wanted.iter().filter(|one| matches!(one, ServerMaterial::Resource { .. })).count();
    if count > MAX_MESSAGE_RESOURCES {
        return Err(ServerMaterialError::TooManyResources);
    }
    Ok(wanted)
}

/// Returns the prompt that a message calls, and the call, if the server offers it.
pub fn called_prompt<'o>(text: &str, offers: &'o [ServerOffer]) -> Option<(&'o ServerPrompt, PromptCall)> {
    let servers: Vec<&str> = offers.iter().map(|offer| offer.server.as_str()).collect();
    let call = read_prompt_call(text, &servers).ok()??;
    let offer = offers.iter().find(|offer| offer.server == call.server)?;
    Some((offer.prompts.iter().find(|prompt| prompt.name == call.prompt)?, call))
}

/// Returns a message of a program as one that asks nothing of servers: a program may send messages without being
/// allowed what the user is.
pub fn without_server_calls(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 8);
    if text.starts_with('/') {
        plain.push(' ');
    }
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, after) = rest.split_at(at + 1);
        plain.push_str(before);
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        // An `@` before a space mentions nothing.
        if after.starts_with('"') || after[..end].contains(':') {
            plain.push(' ');
        }
        rest = after;
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offers() -> Vec<ServerOffer> {
        let argument = |name: &str, is_needed| ServerPromptArgument {
            name: name.to_owned(),
            description: "What to read".to_owned(),
            is_needed,
        };
        let prompt = |name: &str, arguments| ServerPrompt { name: name.to_owned(), arguments, ..Default::default() };
        let resource =
            |uri: &str, name: &str| ServerResource { uri: uri.to_owned(), name: name.to_owned(), ..Default::default() };
        let hub = ServerOffer {
            server: "hub".to_owned(),
            prompts: vec![
                prompt("review", vec![argument("code", true), argument("tone", false)]),
                prompt("two words", vec![]),
            ],
            resources: vec![resource("doc://a", "First"), resource("doc://b", "Twice"), resource("doc://c", "Twice")],
            ..ServerOffer::default()
        };
        vec![hub, ServerOffer { server: "bare".to_owned(), ..ServerOffer::default() }]
    }

    fn asked(text: &str) -> Result<Vec<ServerMaterial>, String> {
        requested_material(text, &["hub", "bare", "gone"], &offers()).map_err(|error| error.to_string())
    }

    fn review(arguments: &[(&str, &str)]) -> ServerMaterial {
        let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ServerMaterial::Prompt { server: "hub".to_owned(), prompt: "review".to_owned(), arguments }
    }

    fn resource(uri: &str) -> ServerMaterial {
        ServerMaterial::Resource { server: "hub".to_owned(), uri: uri.to_owned() }
    }

    #[test]
    fn a_message_calls_a_prompt_and_names_resources() {
        assert_eq!(asked("/hub:review code=x"), Ok(vec![review(&[("code", "x")])]));
        let quoted =
            "/hub:review code=\"a \\\"b\\\" \\\\ @hub:doc://a\" tone=kind\nAnd see @hub:doc://b, and @hub:First.";
        assert_eq!(
            asked(quoted),
            Ok(vec![
                review(&[("code", "a \"b\" \\ @hub:doc://a"), ("tone", "kind")]),
                resource("doc://b"),
                resource("doc://a")
            ])
        );
        assert_eq!(asked("/\"hub:two words\"").map(|all| all.len()), Ok(1));
        assert_eq!(asked("Read @hub:doc://unlisted and @hub:doc://unlisted"), Ok(vec![resource("doc://unlisted")]));
        for plain in
            ["hub:review", " /hub:review", "/etc/hosts:1", "/hub", "/hub:", "@hub:", "@other:x", "/a://b", "@qa"]
        {
            assert_eq!(asked(plain), Ok(Vec::new()), "{plain}");
        }
        assert_eq!(requested_material("/hub:review", &[], &[]), Ok(Vec::new()), "no servers, no calls");
    }

    #[test]
    fn errors_say_what_exists() {
        for (text, about) in [
            ("/hbu:review", "Did you mean hub? There are: hub, bare, gone"),
            ("/gone:x", "tracebook mcp prompts gone"),
            ("/hub:reviw", "Did you mean review? There are: review, two words"),
            ("/bare:x", "It has none"),
            ("/hub:review", "needs code (What to read). Write /hub:review code=\"…\""),
            ("/hub:review code=\"\"", "needs code"),
            ("/hub:review code=a cod=b", "Did you mean code? There are: code, tone"),
            ("/hub:review code=a code=b", "twice"),
            ("/hub:review code=\"a", "no closing quotation mark"),
            ("See @hub:Twice", "several resources “Twice”: doc://b, doc://c"),
            ("See @hub:Third", "There are: doc://a, doc://b, doc://c"),
            ("See @bare:doc://a", "It has none"),
        ] {
            let why = asked(text).expect_err(text);
            assert!(why.contains(about), "{text}: {why}");
        }
        assert!(asked(&format!("/hub:review code={}", "x".repeat(10_001))).expect_err("long").contains("longer than"));
        let many: String = (0..11).map(|number| format!("@hub:doc://{number} ")).collect();
        assert!(asked(&many).expect_err("many").contains("10 resources"));
    }

    #[test]
    fn what_is_written_is_read_again() {
        assert_eq!(prompt_call("hub", "two words"), "/\"hub:two words\"");
        assert_eq!(resource_mention("hub", "doc://a").as_deref(), Some("@hub:doc://a"));
        assert_eq!(resource_mention("hub", "doc://a b").as_deref(), Some("@\"hub:doc://a b\""));
        assert_eq!(resource_mention("hub", "doc://\"a b"), None);
        let known = offers();
        let (prompt, call) = called_prompt("/hub:review code=x and more", &known).expect("a prompt");
        assert_eq!((prompt.name.as_str(), call.end), ("review", 18));
    }

    proptest! {
        #[test]
        fn a_value_survives(value in "\\PC{0,30}") {
            let text = format!("/hub:review {} rest", prompt_argument("code", &value));
            let call = read_prompt_call(&text, &["hub"]).expect("closed").expect("a call");
            prop_assert_eq!(call.arguments, vec![("code".to_owned(), value)]);
        }

        #[test]
        fn no_text_calls_after_it_was_made_plain(text in "(/|@|hub|:|review|doc|\"| |\n|,|\\PC){0,30}") {
            let plain = without_server_calls(&text);
            prop_assert_eq!(asked(&plain), Ok(Vec::new()), "{}", plain);
        }
    }
}
