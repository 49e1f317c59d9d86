//! `cmd_tokens`: creates, lists and revokes the tokens that programs show to `cmd_serve`.

use crate::agents::format_time;
use crate::arguments::TokensArguments;
use crate::parse::number_option;
use crate::{CliError, EXIT_DONE};
use host::peers::qr;
use serde_json::json;
use serve::{AccessToken, PairingLink, TokenGrant, TokenScope, TokenStore};
use std::io::Write;
use std::path::Path;
use store::disk::read_marker;
use text::untrusted_text;

/// Number of days after which a token expires, if nothing else is said.
const DEFAULT_TOKEN_DAYS: u64 = 90;
const MAX_TOKEN_DAYS: u64 = 36_500;
const DAY_MILLIS: i64 = 86_400_000;

fn parse_scopes(words: Option<&str>) -> Result<Vec<TokenScope>, CliError> {
    let parse = |word: &str| {
        TokenScope::from_name(word.trim()).ok_or_else(|| {
            let all = TokenScope::ALL.map(TokenScope::name).join(", ");
            CliError::usage(format!("there is no scope “{}”; there are {all}", untrusted_text::escape_line(word)))
        })
    };
    words.unwrap_or("read").split(',').map(parse).collect()
}

/// Returns what a browser may do if nothing else is said.
pub(super) fn browser_grant() -> TokenGrant {
    TokenGrant {
        name: "Browser".to_owned(),
        scopes: vec![TokenScope::Read, TokenScope::Write, TokenScope::Run, TokenScope::Approve],
        volume: None,
        lifetime: Some(DEFAULT_TOKEN_DAYS.cast_signed() * DAY_MILLIS),
    }
}

/// Shows a link that pairs one browser, with a QR code if `draws`.
pub(super) fn show_pairing_link(link: &PairingLink, draws: bool, out: &mut dyn Write) -> std::io::Result<()> {
    if let Some(square) = qr::QrMatrix::new(&link.url).ok().filter(|_| draws) {
        for line in square.terminal_lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "to pair a browser, open {}", link.url)?;
    writeln!(out, "or type the code {} there; it can be used once, within ten minutes", link.code)
}

fn token_line(token: &AccessToken) -> String {
    let scopes = token.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(",");
    let volume = token.volume.as_ref().map_or_else(String::new, |volume| format!(", only {volume}"));
    let end = token.expires.map_or_else(|| "never expires".to_owned(), |at| format!("expires {}", format_time(at)));
    let browser = if token.browser { "  (browser)" } else { "" };
    format!("{}  {scopes}{volume}  {end}  {}{browser}", token.id, untrusted_text::escape_line(&token.name))
}

/// Warns that no volume is called as the one of a new token. There may be one later.
fn warn_about_volume(folder: &Path, volume: &str) {
    // Other commands report a workspace that can't be read.
    let mounts = read_marker(folder).ok().flatten().unwrap_or_default();
    if mounts.iter().any(|mount| mount.name == volume) {
        return;
    }
    let mut names: Vec<&str> = mounts.iter().map(|mount| mount.name.as_str()).collect();
    names.sort_unstable();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let warning = format!("there is no volume “{volume}”, so this token reaches nothing yet; there are: {known}");
    eprintln!("tracebook: {}", untrusted_text::escape_line(&warning));
}

/// Runs `cmd_tokens`. It needs no open workspace.
pub(crate) fn cmd_tokens(
    folder: &Path,
    args: &TokensArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    if !host::workspace_exists(folder) {
        return Err(CliError::usage(format!("there is no workspace in {}", folder.display())));
    }
    let store = TokenStore::new(folder);
    match (args.what.as_deref().unwrap_or("list"), args.name.as_deref()) {
        ("list", None) => {
            for token in store.list().map_err(CliError::workspace)? {
                match json {
                    true => writeln!(out, "{}", json!(token))?,
                    false => writeln!(out, "{}", token_line(&token))?,
                }
            }
        }
        ("create", Some(name)) => {
            if let Some(volume) = &args.volume {
                warn_about_volume(folder, volume);
            }
            let days = number_option("days", args.days.as_deref())?.unwrap_or(DEFAULT_TOKEN_DAYS).min(MAX_TOKEN_DAYS);
            let days = i64::try_from(days).unwrap_or(0);
            let grant = TokenGrant {
                name: name.to_owned(),
                scopes: match (args.qr, args.scopes.as_deref()) {
                    (true, None) => browser_grant().scopes,
                    (_, scopes) => parse_scopes(scopes)?,
                },
                volume: args.volume.clone(),
                lifetime: (days > 0).then_some(days * DAY_MILLIS),
            };
            let now = jiff::Timestamp::now().as_millisecond();
            if args.qr {
                let link = serve::pairing_link(folder, grant, now).map_err(CliError::usage)?;
                match json {
                    true => writeln!(out, "{}", json!({"link": link.url, "code": link.code}))?,
                    false => show_pairing_link(&link, true, out)?,
                }
                return Ok(EXIT_DONE);
            }
            let (about, token) = store.create(grant, now).map_err(CliError::usage)?;
            if json {
                let mut value = json!(about);
                value["token"] = token.into();
                writeln!(out, "{value}")?;
            } else {
                writeln!(out, "{token}")?;
                eprintln!("tracebook: this token is shown only now; keep it where only its program can read it");
            }
        }
        ("revoke", Some(word)) => {
            let token = store.revoke(word).map_err(CliError::usage)?;
            match json {
                true => writeln!(out, "{}", json!(token))?,
                false => writeln!(out, "{} is revoked", untrusted_text::escape_line(&token.name))?,
            }
        }
        ("create", None) => return Err(CliError::usage("name the token: tracebook tokens create NAME")),
        ("revoke", None) => return Err(CliError::usage("say which token: tracebook tokens revoke NAME")),
        (other, _) => {
            let other = untrusted_text::escape_line(other);
            return Err(CliError::usage(format!("tokens does list, create or revoke, not “{other}”")));
        }
    }
    Ok(EXIT_DONE)
}
