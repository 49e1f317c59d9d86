//! `cmd_providers`: the configured language models, and whether they answer. `cmd_secrets`: their keys. Neither needs
//! an open workspace.

use super::{CliError, EXIT_DONE, EXIT_FAILED};
use crate::arguments::{ProvidersArguments, SecretsArguments};
use crate::parse::needed;
use crate::plurals::counted;
use agent::config::AgentConfig;
use agent::model_call::{ModelEndpoint, ModelError};
use agent::router::{ProviderLatencies, TYPICAL_CALL_TOKENS};
use agent::run_records::PROVIDER_LATENCIES_KEY;
use anyhow::anyhow;
use host::agents::llm::{self, ProviderClient, ProviderTestReport, ProviderTimeouts};
use host::agents::model_setup::{self, KEYED_PROVIDERS, LOCAL_SERVERS, NewProvider};
use host::maintenance::configuration;
use host::maintenance::secrets::{MAX_SECRET_BYTES, SecretError, SecretValue, UserSecrets};
use serde_json::json;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;
use store::disk::{DiskReader, SqliteReader};

/// Maximum wait for a test, which has a shorter timeout of its own.
const PROVIDER_TEST_TIMEOUT: Duration = Duration::from_secs(10);

impl From<SecretError> for CliError {
    fn from(error: SecretError) -> Self {
        CliError::usage(error.0)
    }
}

fn open_user_secrets() -> Result<UserSecrets, CliError> {
    let folder = configuration::user_config_folder();
    folder
        .map(|folder| UserSecrets::new(&folder))
        .ok_or_else(|| CliError::usage("there is no home folder to keep secrets in; set XDG_CONFIG_HOME"))
}

pub(super) fn cmd_providers(
    workspace: &Path,
    args: &ProvidersArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let config = configuration::load_config(workspace).map_err(|error| CliError::usage(error.to_string()))?;
    let secrets = open_user_secrets()?;
    let name = args.name.as_deref().unwrap_or(config.llm.default_provider.as_str());
    match args.what.as_deref().unwrap_or("list") {
        "list" => list_providers(&config, &secrets, &read_latencies(workspace), json, out),
        "test" => print_provider_test(&config, &secrets, name, json, out),
        "models" => list_provider_models(&config, &secrets, name, json, out),
        "add" => add_provider(workspace, &secrets, args, json, out),
        other => Err(CliError::usage(format!("`providers {other}` is not known: list, test, models, add"))),
    }
}

/// Returns the name of the provider with this name, or else with this model. The default provider comes first.
pub(crate) fn find_provider(workspace: &Path, wanted: &str) -> Result<String, CliError> {
    let config = configuration::load_config(workspace).map_err(|error| CliError::usage(error.to_string()))?;
    let llm = &config.llm;
    let enabled = || llm.providers.iter().filter(|(_, provider)| provider.is_enabled());
    let mut fitting: Vec<&String> = enabled().filter(|(_, one)| one.model == wanted).map(|(name, _)| name).collect();
    fitting.sort_by_key(|name| **name != llm.default_provider);
    let named = enabled().find(|(name, _)| *name == wanted).map(|(name, _)| name);
    match named.or(fitting.first().copied()) {
        Some(name) => Ok(name.clone()),
        None => {
            let mut models: Vec<&str> = enabled().map(|(_, provider)| provider.model.as_str()).collect();
            models.sort_unstable();
            models.dedup();
            let there = if models.is_empty() {
                "add one with `tracebook providers add`".to_owned()
            } else {
                format!("there is {}", models.join(", "))
            };
            let wanted = text::untrusted_text::escape_line(wanted);
            Err(CliError::usage(format!("there is no model or provider {wanted}; {there}")))
        }
    }
}

/// Kind of an OpenAI-compatible server that is none of the known ones.
const COMPATIBLE_KIND: &str = "compatible";

/// Builds a new provider from the arguments, without its key.
fn described_provider(args: &ProvidersArguments) -> Result<NewProvider, CliError> {
    let kinds = || KEYED_PROVIDERS.iter().chain(&LOCAL_SERVERS).map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    let name = args.name.as_deref().filter(|name| !name.is_empty()).ok_or_else(|| {
        CliError::usage(format!(
            "say which: tracebook providers add NAME, with one of {}, or any name and --base-url",
            kinds()
        ))
    })?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.chars().all(fits) || name.len() > 64 {
        return Err(CliError::usage(format!("a provider's name has letters, digits, - and _, unlike “{name}”")));
    }
    let word = args.kind.as_deref().unwrap_or(name);
    let mut provider = match (model_setup::provider_kind(word), &args.base_url) {
        (Some(kind), _) => NewProvider::of_kind(kind, None),
        (None, Some(address)) if word == COMPATIBLE_KIND || args.kind.is_none() => {
            NewProvider::at_address(address, None).map_err(CliError::usage)?
        }
        (None, None) if word == COMPATIBLE_KIND || args.kind.is_none() => {
            return Err(CliError::usage("give its address: --base-url http://127.0.0.1:8080/v1"));
        }
        (None, _) => {
            return Err(CliError::usage(format!("--kind is {} or {COMPATIBLE_KIND}, not “{word}”", kinds())));
        }
    };
    if let Some(address) = &args.base_url {
        provider.base_url = NewProvider::at_address(address, None).map_err(CliError::usage)?.base_url;
    }
    name.clone_into(&mut provider.name);
    Ok(provider)
}

/// Tests a new provider, stores its key, and makes it the default for agents.
fn add_provider(
    workspace: &Path,
    secrets: &UserSecrets,
    args: &ProvidersArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let mut provider = described_provider(args)?;
    if args.key_stdin {
        provider.key = Some(read_secret(&provider.key_name())?);
    }
    let failed = |why: anyhow::Error| CliError { code: EXIT_FAILED, why: why.to_string() };
    let report = provider.test(ProviderTimeouts::default()).map_err(failed)?;
    let models = report.models.unwrap_or_default();
    let has = |model: &str| models.iter().any(|one| one == model || *one == format!("{model}:latest"));
    let usual =
        model_setup::provider_kind(args.kind.as_deref().unwrap_or(&provider.name)).map_or("", |kind| kind.model);
    let model = match (&args.model, models.as_slice()) {
        (Some(model), []) => model.clone(),
        (Some(model), _) if has(model) => model.clone(),
        (Some(model), _) => {
            let some = models.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(failed(anyhow!("{} has no model “{model}”; it has {some}", report.host)));
        }
        (None, _) if has(usual) => usual.to_owned(),
        (None, [only]) => only.clone(),
        (None, []) => return Err(CliError::usage(format!("{} lists no models; say which: --model NAME", report.host))),
        (None, _) => {
            let some = models.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(CliError::usage(format!("say which model: --model NAME; {} has {some}", report.host)));
        }
    };
    let context = report.context.filter(|_| models.len() == 1);
    provider.save(workspace, secrets, &model, context).map_err(failed)?;
    match json {
        true => writeln!(out, "{}", json!({"name": provider.name, "model": model, "host": report.host}))?,
        false => {
            writeln!(out, "{} at {} answers. Agents ask its model {model} from now on.", provider.name, report.host)?
        }
    }
    Ok(EXIT_DONE)
}

/// Reads a secret from standard input without echo.
fn read_secret(name: &str) -> Result<SecretValue, CliError> {
    if crate::terminal::is_terminal() {
        eprint!("Value of {name}, which is not shown: ");
    }
    // The first line only, up to the maximum length of a secret.
    let read = crate::terminal::read_without_echo(|| {
        let mut line = String::new();
        let limit = MAX_SECRET_BYTES as u64 + 2;
        std::io::stdin().lock().take(limit).read_line(&mut line).map(|_| line)
    });
    Ok(SecretValue::new(read?)?)
}

/// Returns the latencies of providers that this workspace has measured; none if it can't be read.
fn read_latencies(workspace: &Path) -> ProviderLatencies {
    let reader = SqliteReader::open(workspace).ok();
    let kept = reader.and_then(|reader| reader.meta(PROVIDER_LATENCIES_KEY).ok().flatten());
    kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default()
}

fn list_providers(
    config: &AgentConfig,
    secrets: &UserSecrets,
    latencies: &ProviderLatencies,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let mut rows = Vec::new();
    let mut listed = Vec::new();
    for (name, provider) in &config.llm.providers {
        let Some(endpoint) = config.endpoint(name) else { continue };
        let key = llm::read_endpoint_key(&endpoint, secrets);
        let price = provider.price.or_else(|| llm::model_price(&endpoint));
        let is_default = *name == config.llm.default_provider;
        let dollars = |price: agent::config::ModelPrice| format!("${} in, ${} out", price.input, price.output);
        let latency = latencies.median_latency(name);
        let (request, answer) = TYPICAL_CALL_TOKENS;
        // A stated price counts on this machine, too, as it does for runs.
        let price = price.filter(|_| !endpoint.local || provider.price.is_some());
        let is_free = endpoint.local && price.is_none();
        let call_cost = if is_free { Some(0.0) } else { price.map(|price| price.of(request, answer)) };
        let mut state = match (&key, price) {
            _ if !provider.is_enabled() => "switched off".to_owned(),
            (Err(why), _) => why.to_string(),
            (Ok(_), _) if is_free => "on this machine, free".to_owned(),
            (Ok(_), Some(price)) => {
                let place = if endpoint.local { "on this machine, " } else { "" };
                format!("{place}{}, for a million tokens", dollars(price))
            }
            (Ok(_), None) => "price not known".to_owned(),
        };
        if provider.is_enabled() && key.is_ok() {
            if let Some(cost) = call_cost.filter(|cost| *cost > 0.0) {
                state.push_str(&format!(", about ${cost:.4} a call"));
            }
            if let Some(latency) = latency {
                state.push_str(&format!(", answers in {latency} ms"));
            }
        }
        let mark = if is_default { "*" } else { " " };
        rows.push([format!("{mark} {name}"), llm::wire_name(endpoint.wire).to_owned(), endpoint.model.clone(), state]);
        listed.push(json!({
            "name": name,
            "enabled": provider.is_enabled(),
            "wire": llm::wire_name(endpoint.wire),
            "model": endpoint.model,
            "base_url": endpoint.base_url,
            "local": endpoint.local,
            "key": endpoint.key,
            "ready": provider.is_enabled() && key.is_ok(),
            "price": price.map(|price| json!({"input": price.input, "output": price.output})),
            "expected_call_usd": call_cost,
            "latency_ms": latency,
            "context": llm::context_window_tokens(config, &endpoint),
        }));
    }
    if json {
        let value =
            json!({"default": config.llm.default_provider, "fallback": config.llm.fallback, "providers": listed});
        writeln!(out, "{value}")?;
        return Ok(EXIT_DONE);
    }
    let wide = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let (names, wires, models) = (wide(0), wide(1), wide(2));
    for [name, wire, model, state] in &rows {
        writeln!(out, "{name:names$}  {wire:wires$}  {model:models$}  {state}")?;
    }
    Ok(EXIT_DONE)
}

/// Tests a provider and waits for the result.
fn probe_provider(
    config: &AgentConfig,
    secrets: &UserSecrets,
    name: &str,
) -> Result<(ModelEndpoint, Result<ProviderTestReport, ModelError>), CliError> {
    let endpoint = config.endpoint(name).ok_or_else(|| {
        let names = config.llm.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        CliError::usage(format!("there is no provider “{name}” in the configuration; there are {names}"))
    })?;
    let key = llm::read_endpoint_key(&endpoint, secrets)
        .map_err(|why| CliError { code: EXIT_FAILED, why: format!("{name}: {why}") })?;
    let (tell, told) = channel();
    let providers = ProviderClient::new(ProviderTimeouts::default());
    providers.test_provider(endpoint.clone(), key.map(|key| key.expose().to_owned()), move |found| {
        // The receiver may be gone; then the result isn't needed.
        let _ = tell.send(found);
    });
    let found = told
        .recv_timeout(PROVIDER_TEST_TIMEOUT)
        .map_err(|_| CliError { code: EXIT_FAILED, why: format!("{name} does not answer") })?;
    Ok((endpoint, found))
}

fn print_provider_test(
    config: &AgentConfig,
    secrets: &UserSecrets,
    name: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let (endpoint, found) = probe_provider(config, secrets, name)?;
    let good = matches!(&found, Ok(tested) if tested.listed != Some(false));
    if json {
        let value = match &found {
            Ok(tested) => json!({"provider": name, "host": tested.host, "milliseconds": tested.milliseconds,
                "models": tested.models.as_ref().map(Vec::len), "model": endpoint.model, "listed": tested.listed,
                "context": tested.context}),
            Err(why) => json!({"provider": name, "failure": why.kind, "why": why.why}),
        };
        writeln!(out, "{value}")?;
        return Ok(if good { EXIT_DONE } else { EXIT_FAILED });
    }
    let tested = found.map_err(|why| CliError { code: EXIT_FAILED, why: why.why })?;
    let models = tested.models.as_ref().map_or(0, Vec::len);
    let said = match tested.listed {
        None => "It doesn't list its models.".to_owned(),
        Some(true) => format!("“{}” is one of its models ({models}).", endpoint.model),
        Some(false) => {
            let why = format!(
                "{name} at {} has no model “{}”; `tracebook providers models {name}` lists the {models} that it has",
                tested.host, endpoint.model
            );
            return Err(CliError { code: EXIT_FAILED, why });
        }
    };
    writeln!(out, "{name} at {} answers after {} ms. {said}", tested.host, tested.milliseconds)?;
    Ok(EXIT_DONE)
}

fn list_provider_models(
    config: &AgentConfig,
    secrets: &UserSecrets,
    name: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let (_, found) = probe_provider(config, secrets, name)?;
    let tested = found.map_err(|why| CliError { code: EXIT_FAILED, why: why.why })?;
    let none = || CliError { code: EXIT_FAILED, why: format!("{name} at {} has no list of models", tested.host) };
    let models = tested.models.as_ref().ok_or_else(none)?;
    if json {
        writeln!(out, "{}", json!({"provider": name, "models": models}))?;
        return Ok(EXIT_DONE);
    }
    for model in models {
        writeln!(out, "{model}")?;
    }
    Ok(EXIT_DONE)
}

pub(super) fn cmd_secrets(args: &SecretsArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let secrets = open_user_secrets()?;
    let what = args.what.as_str();
    if let Some(why) = secrets.unused_passphrase_warning().filter(|_| what != "encrypt") {
        eprintln!("tracebook: {}", text::untrusted_text::escape_line(&why));
    }
    match what {
        "encrypt" => {
            let count = secrets.encrypt_with_passphrase()?;
            match json {
                true => writeln!(out, "{}", json!({"encrypted": count}))?,
                false => writeln!(out, "The passphrase is in force. Encrypted with it: {}.", counted(count, "secret"))?,
            }
            Ok(EXIT_DONE)
        }
        "list" => {
            let kept = secrets.list()?;
            if json {
                let one = |(name, place): &(String, host::maintenance::secrets::SecretStore)| {
                    json!({"name": name,
                    "place": place})
                };
                let all: Vec<_> = kept.iter().map(one).collect();
                writeln!(out, "{}", json!({"secrets": all, "file": secrets.opened_by()?}))?;
                return Ok(EXIT_DONE);
            }
            for (name, place) in kept {
                writeln!(out, "{name}  {}", place.description())?;
            }
            Ok(EXIT_DONE)
        }
        "set" => {
            let name = needed(args.name.as_deref(), "NAME")?;
            let value = read_secret(name)?;
            let place = secrets.set(name, &value)?;
            match json {
                true => writeln!(out, "{}", json!({"name": name, "place": place}))?,
                false => writeln!(out, "{name} is kept by {}", place.description())?,
            }
            Ok(EXIT_DONE)
        }
        "rm" => {
            let name = needed(args.name.as_deref(), "NAME")?;
            match secrets.remove(name)? {
                true => Ok(EXIT_DONE),
                false => Err(CliError::usage(format!("nothing is kept under {name}; see `tracebook secrets list`"))),
            }
        }
        other => Err(CliError::usage(format!("`secrets {other}` is not known: list, set, rm, encrypt"))),
    }
}
