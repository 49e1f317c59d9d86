//! Secrets in files and texts. Files that commonly contain secrets need approval before a model reads them. Secrets
//! that are found are masked in everything that a model reads and in everything that is logged.

pub mod mask_guard;
pub mod secret_files;

use regex::{Regex, RegexSet};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// Start of a mask, followed by the kind of secret and `]`.
const MASK_PREFIX: &str = "[masked: ";
/// Minimum length of this installation's keys to be masked, since shorter ones may be ordinary words.
const MIN_INSTALLATION_KEY_BYTES: usize = 8;
/// Minimum number of secrets in a file that counts as a credentials file.
const MIN_CREDENTIAL_FILE_SECRETS: usize = 3;
/// Minimum number of consecutive lines that look like a key to count as one.
const MIN_CONSECUTIVE_KEY_LINES: usize = 2;
/// Minimum length of a secret value in bytes.
const MIN_SECRET_VALUE_BYTES: usize = 4;

/// Values of this installation's own keys, which no model and no log may contain. They are never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct InstallationKeys(Vec<String>);

impl std::fmt::Debug for InstallationKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnKeys({})", self.0.len())
    }
}

impl InstallationKeys {
    /// Creates the list of keys, without those that are too short to be distinguished from ordinary words.
    pub fn new(values: impl IntoIterator<Item = String>) -> InstallationKeys {
        let mut values: Vec<String> =
            values.into_iter().filter(|value| value.len() >= MIN_INSTALLATION_KEY_BYTES).collect();
        // If one key is part of another, the longer one is masked first.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        InstallationKeys(values)
    }

    /// Masks these keys and all secrets of known forms in a text. The number of lines doesn't change.
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for value in &self.0 {
            found.extend(
                text.match_indices(value.as_str()).map(|(at, _)| (at..at + value.len(), INSTALLATION_KEY_LABEL)),
            );
        }
        find_secrets(text, &mut found);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(replace_with_masks(text, found))
    }

    /// Masks a text in place.
    pub fn mask_in_place(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.mask_text(text) {
            *text = masked;
        }
    }
}

/// Masks all secrets of known forms in a text.
pub fn mask_known_secrets(text: &str) -> Cow<'_, str> {
    static NO_INSTALLATION_KEYS: InstallationKeys = InstallationKeys(Vec::new());
    NO_INSTALLATION_KEYS.mask_text(text)
}

/// Returns the start of a message as a query: messages to agents aren't in query syntax. Secrets are masked first,
/// since they can't be recognized without their punctuation, and a remote model may embed the query.
pub fn query_of_message(message: &str, max_chars: usize) -> String {
    let masked = mask_known_secrets(message);
    let plain: String = masked.chars().take(max_chars).map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    plain.replace(" OR ", " or ")
}

/// Returns whether a text contains a mask, so that it isn't the original text.
pub fn contains_mask(text: &str) -> bool {
    let labels = || SECRET_PATTERNS.iter().map(|form| form.label).chain([INSTALLATION_KEY_LABEL, PRIVATE_KEY_LABEL]);
    text.split(MASK_PREFIX).skip(1).any(|rest| labels().any(|label| rest.starts_with(label)))
}

/// Returns whether a masked text comes from a file made for secrets: with a private key, or several secrets.
pub fn is_masked_credential_file(masked: &str) -> bool {
    let labels = || SECRET_PATTERNS.iter().map(|form| form.label).chain([INSTALLATION_KEY_LABEL, PRIVATE_KEY_LABEL]);
    let masks = masked.split(MASK_PREFIX).skip(1);
    let found: Vec<&str> = masks.filter_map(|rest| labels().find(|label| rest.starts_with(label))).collect();
    found.len() >= MIN_CREDENTIAL_FILE_SECRETS || found.contains(&PRIVATE_KEY_LABEL)
}

/// Label in the mask of one of this installation's keys.
const INSTALLATION_KEY_LABEL: &str = "a key of this installation";
/// Label in the mask of a private key.
const PRIVATE_KEY_LABEL: &str = "private key";

/// Which matches of a pattern are secrets, if the shape alone isn't enough.
#[derive(Clone, Copy, PartialEq)]
enum SecretCheck {
    /// Every match is a secret.
    Any,
    /// Values that look random.
    Random,
    /// Values that aren't placeholders, references or numbers.
    Real,
}

/// A form of secrets. The first group of the pattern that matches is the secret.
struct SecretPattern {
    label: &'static str,
    pattern: &'static str,
    test: SecretCheck,
}

const fn secret_pattern(label: &'static str, pattern: &'static str, test: SecretCheck) -> SecretPattern {
    SecretPattern { label, pattern, test }
}

/// Known forms of secrets. Classes are ASCII and repetitions have no upper bound, so that the automata stay small.
const SECRET_PATTERNS: &[SecretPattern] = &[
    secret_pattern("AWS access key", r"(?-u:\b)((?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16})(?-u:\b)", SecretCheck::Any),
    secret_pattern("GitHub token", r"(?-u:\b)(gh[pousr]_[A-Za-z0-9]{20,})", SecretCheck::Any),
    secret_pattern("GitHub token", r"(?-u:\b)(github_pat_[A-Za-z0-9_]{20,})", SecretCheck::Any),
    secret_pattern("GitLab token", r"(?-u:\b)(gl(?:pat|dt|ptt|rt|cbt)-[A-Za-z0-9_\-]{16,})", SecretCheck::Any),
    secret_pattern(
        "Slack token",
        r"(?-u:\b)(xox[abceoprs]-[A-Za-z0-9\-]{10,}|xapp-[0-9]-[A-Za-z0-9\-]{10,})",
        SecretCheck::Any,
    ),
    secret_pattern(
        "Slack webhook",
        r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_\-]{20,})",
        SecretCheck::Any,
    ),
    secret_pattern("Google API key", r"(?-u:\b)(AIza[0-9A-Za-z_\-]{30,})", SecretCheck::Any),
    secret_pattern("Google token", r"(?-u:\b)(ya29\.[0-9A-Za-z_\-]{20,}|GOCSPX-[0-9A-Za-z_\-]{20,})", SecretCheck::Any),
    secret_pattern("API key", r"(?-u:\b)(sk-(?:ant|proj|or|svcacct|admin)-[A-Za-z0-9_\-]{16,})", SecretCheck::Any),
    secret_pattern("API key", r"(?-u:\b)(sk-[A-Za-z0-9_\-]{16,})", SecretCheck::Random),
    secret_pattern(
        "API key",
        r"(?-u:\b)((?:sk|pk|rk|whsec)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/]{20,})",
        SecretCheck::Any,
    ),
    secret_pattern(
        "API key",
        r"(?-u:\b)((?:gsk_|xai-|pplx-|hf_|npm_|ntn_|lin_api_|csk-|tgp_v1_|r8_|nvapi-)[A-Za-z0-9_\-]{24,})",
        SecretCheck::Random,
    ),
    secret_pattern(
        "API key",
        r"(?-u:\b)(pypi-[A-Za-z0-9_\-]{40,}|dop_v1_[a-f0-9]{40,}|dapi[a-f0-9]{32})",
        SecretCheck::Any,
    ),
    secret_pattern(
        "API key",
        r"(?-u:\b)(SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}|hv[sb]\.[A-Za-z0-9_\-]{20,})",
        SecretCheck::Any,
    ),
    secret_pattern(
        "API key",
        r"(?-u:\b)(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|AC[a-f0-9]{32}|SK[a-f0-9]{32}|key-[a-f0-9]{32})(?-u:\b)",
        SecretCheck::Any,
    ),
    secret_pattern("bot token", r"(?-u:\b)([0-9]{8,10}:AA[A-Za-z0-9_\-]{32,})", SecretCheck::Any),
    secret_pattern("secret key", r"(?-u:\b)(AGE-SECRET-KEY-1[0-9A-Z]{40,})", SecretCheck::Any),
    secret_pattern(
        "token",
        r"(?-u:\b)(eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,})",
        SecretCheck::Any,
    ),
    secret_pattern(
        "password",
        r#"(?-u:\b)[a-zA-Z][a-zA-Z0-9+.\-]*://[^\s:/?\#@"'<>`]*:([^\s/"'<>`]{3,})@[A-Za-z0-9\[*_$-]"#,
        SecretCheck::Real,
    ),
    secret_pattern(
        "credentials",
        r#"(?i)(?-u:\b)(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+([A-Za-z0-9._~+/=\-]{8,})"#,
        SecretCheck::Real,
    ),
    secret_pattern("credentials", r"(?-u:\b)[Bb]earer\s+([A-Za-z0-9._~+/=\-]{16,})", SecretCheck::Random),
    secret_pattern("credentials", r#""auth"\s*:\s*"([A-Za-z0-9+/=]{8,})""#, SecretCheck::Random),
    secret_pattern("credentials", r"client-key-data:\s*([A-Za-z0-9+/=]{16,})", SecretCheck::Any),
    secret_pattern(
        "credentials",
        r#"(?i)(?-u:\b)(?:AccountKey|SharedAccessKey|sig)=([A-Za-z0-9+/%=]{24,})"#,
        SecretCheck::Random,
    ),
    secret_pattern("password", r"(?-u:\b)login\s+[^\s]+\s+password\s+([!-~]{3,})", SecretCheck::Real),
    // `NAME=value`, as in .env files, even where lines were joined, as in passages from a search.
    secret_pattern(
        "value",
        concat!(
            r#"(?-u:\b)[A-Z][A-Z0-9_]*"#,
            r#"(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|SECRET_?KEY|"#,
            r#"ENCRYPTION_?KEY|SIGNING_?KEY|CREDENTIALS?)(?:_BASE|_VALUE|[0-9]*)="#,
            r#"(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'\#=][^\s\#]{3,}))"#
        ),
        SecretCheck::Real,
    ),
    secret_pattern(
        "value",
        concat!(
            r#"(?-u:\b)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|APIKEY|API_KEY)="#,
            r#"(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'\#=][^\s\#]{3,}))"#
        ),
        SecretCheck::Real,
    ),
    // `password: value`, `"apiKey": "value"`, `--token=value`: only values that look random.
    secret_pattern(
        "value",
        concat!(
            r#"(?i)(?:password|passwd|passphrase|pwd|secret|token|api[_\-]?key|access[_\-]?key|private[_\-]?key|"#,
            r#"secret[_\-]?key|account[_\-]?key|encryption[_\-]?key|signing[_\-]?key|credential|authkey)"#,
            r#"["'`]?[ \t]*(?:=>|:=|=|:)[ \t]*["'`]?([!\#$%&*+\-./0-9:=?@A-Z\\^_a-z|~]{8,})"#
        ),
        SecretCheck::Random,
    ),
    // `my token is value`, as in a request.
    secret_pattern(
        "value",
        concat!(
            r#"(?i)(?-u:\b)(?:password|passphrase|token|secret|api key)[ \t]+(?:is|of|as)[ \t]+["'`]?"#,
            r#"([!\#$%&*+\-./0-9:=?@A-Z\\^_a-z|~]{8,})"#
        ),
        SecretCheck::Random,
    ),
    // `password = "value"`: passwords are shorter than tokens.
    secret_pattern(
        "value",
        concat!(
            r#"(?i)(?:password|passwd|passphrase)["'`]?[ \t]*(?:=>|:=|=|:)[ \t]*"#,
            r#"(?:"([!\#-&(-~]{6,})"|'([!\#-&(-~]{6,})'|([!\#$%&*+\-./0-9:=?@A-Z\\^_a-z|~]{6,}))"#
        ),
        SecretCheck::Random,
    ),
];

static SECRET_PATTERN_SET: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(SECRET_PATTERNS.iter().map(|form| form.pattern)).ok());
static SECRET_REGEXES: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| SECRET_PATTERNS.iter().map(|form| Regex::new(form.pattern).ok()).collect());

/// Finds the secrets of known forms.
fn find_secrets(text: &str, found: &mut Vec<(Range<usize>, &str)>) {
    find_private_keys(text, found);
    find_key_lines(text, found);
    let Some(set) = SECRET_PATTERN_SET.as_ref() else { return };
    for at in &set.matches(text) {
        let (Some(form), Some(Some(regex))) = (SECRET_PATTERNS.get(at), SECRET_REGEXES.get(at)) else { continue };
        for captures in regex.captures_iter(text) {
            let Some(one) = captures.iter().skip(1).flatten().next() else { continue };
            let behind = text[one.end()..].bytes().next();
            let holds = match form.test {
                SecretCheck::Any => true,
                // A value followed by a call or an index is code.
                SecretCheck::Random => !matches!(behind, Some(b'(' | b'[')) && looks_random(one.as_str()),
                SecretCheck::Real => is_real(one.as_str()),
            };
            if holds {
                found.push((one.range(), form.label));
            }
        }
    }
}

/// Finds private keys between their first line, `-----BEGIN … PRIVATE KEY-----`, and their last. If the last line is
/// missing, everything after the first line that looks like a key counts.
fn find_private_keys(text: &str, found: &mut Vec<(Range<usize>, &str)>) {
    let mut from = 0;
    while let Some(at) = text[from..].find("-----BEGIN ").map(|at| from + at) {
        from = at + "-----BEGIN ".len();
        let Some(head) = text[from..].find("-----").map(|end| from + end) else { return };
        let label = &text[from..head];
        if label.len() > 60 || !label.contains("PRIVATE KEY") {
            continue;
        }
        let start = head + "-----".len();
        let next = text[start..].find("-----BEGIN ").map_or(text.len(), |at| start + at);
        let end = match text[start..next].find("-----END ") {
            Some(end) => start + end,
            None => {
                let key = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "+/=\\:,-.>".contains(c);
                text[start..next].find(|c| !key(c)).map_or(next, |end| start + end)
            }
        };
        // Each line is masked separately, so that the number of lines doesn't change.
        let mut at = start;
        for line in text[start..end].split_inclusive('\n') {
            let bare = line.trim_matches(|c: char| c.is_ascii_whitespace() || c == '+' || c == '>');
            if !bare.is_empty() {
                let begins = at + line.find(bare).unwrap_or(0);
                found.push((begins..begins + bare.len(), PRIVATE_KEY_LABEL));
            }
            at += line.len();
        }
        from = end;
    }
}

/// Returns whether a line looks like part of a PEM key: 64 to 76 characters of base64.
fn is_key_line(line: &str) -> bool {
    let has = |is: fn(&u8) -> bool| line.bytes().any(|byte| is(&byte));
    (64..=76).contains(&line.len())
        && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// Finds parts of private keys without their first line: several consecutive lines that look like a key, and aren't in
/// a certificate or another public item.
fn find_key_lines(text: &str, found: &mut Vec<(Range<usize>, &str)>) {
    let mut public = false;
    let mut row: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n').chain(["\n"]) {
        let bare = line.trim_matches(|c: char| c.is_ascii_whitespace() || matches!(c, '+' | '-' | '>' | '"' | ','));
        if line.contains("-----BEGIN ") {
            public = !line.contains("PRIVATE KEY");
        }
        if !public && is_key_line(bare) {
            let from = at + line.find(bare).unwrap_or(0);
            row.push(from..from + bare.len());
        } else {
            let key = row.len() >= MIN_CONSECUTIVE_KEY_LINES;
            found.extend(row.drain(..).filter(|_| key).map(|range| (range, PRIVATE_KEY_LABEL)));
        }
        public &= !line.contains("-----END ");
        at += line.len();
    }
}

fn replace_with_masks(text: &str, mut found: Vec<(Range<usize>, &str)>) -> String {
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut whole = String::with_capacity(text.len());
    let mut at = 0;
    for (range, label) in found {
        if range.start < at {
            // It overlaps a masked secret, whose mask also covers the rest of it.
            at = at.max(range.end);
            continue;
        }
        whole.push_str(&text[at..range.start]);
        whole.push_str(&format!("{MASK_PREFIX}{label}]"));
        at = range.end;
    }
    whole.push_str(&text[at..]);
    whole
}

/// Returns whether a value is a reference or a placeholder for a secret.
fn is_placeholder(value: &str) -> bool {
    let bare = value.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    const PLACEHOLDER_WORDS: [&str; 31] = [
        "password",
        "passwd",
        "pass",
        "pwd",
        "secret",
        "token",
        "apikey",
        "api_key",
        "key",
        "changeme",
        "change_me",
        "change-me",
        "example",
        "placeholder",
        "redacted",
        "masked",
        "hidden",
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "empty",
        "string",
        "value",
        "todo",
        "test",
        "user",
        "username",
        "foobar",
    ];
    let begins = ["your", "my_", "my-", "xxx", "some", "insert", "<", "${", "{{", "$(", "%", "***", "..."];
    let lower = value.to_ascii_lowercase();
    let letters = lower.bytes().filter(u8::is_ascii_alphanumeric).collect::<std::collections::BTreeSet<u8>>();
    bare.is_empty()
        || PLACEHOLDER_WORDS.contains(&bare.as_str())
        || begins.iter().any(|word| lower.starts_with(word))
        || (lower.starts_with('$') && lower[1..].bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        || lower.starts_with(&MASK_PREFIX[..MASK_PREFIX.len() - 1])
        || letters.len() < 2
}

/// Returns whether a value is literal: not a placeholder, short number, path or code.
fn is_real(value: &str) -> bool {
    let value = value.trim();
    let number = value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'_' | b'-'));
    let path = value.starts_with(['/', '~', '.']) && value.split('/').all(|part| !looks_random(part));
    let short = value.len() < MIN_SECRET_VALUE_BYTES || number && value.len() < 9;
    !short && !path && !is_placeholder(value) && !is_code(value)
}

/// Returns whether a value is code that refers to a secret: `settings.API_KEY_2`, `API_KEY_2`, `get_token()`.
fn is_code(value: &str) -> bool {
    let small = |head: &str| head.len() > 1 && head.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let screams = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let head = value.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | ':')).unwrap_or(value.len());
    let called = head > 0 && value[head..].starts_with(['(', '[']) && !value.starts_with(|c: char| c.is_ascii_digit());
    called
        || value.split_once('.').is_some_and(|(head, _)| small(head))
        || value.contains('_') && value.bytes().all(screams)
}

/// Returns whether a value looks random: letters and digits that form no words, like generated keys and good passwords.
fn looks_random(value: &str) -> bool {
    let value = value.trim_end_matches(['.', ',', ':', '?', '!', '\\', '|', '*', '_', '=']);
    if value.len() < 6 || is_placeholder(value) || value.contains("://") || value.starts_with(['/', '.', '~']) {
        return false;
    }
    if is_code(value) {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let mut seen = [0_u32; 256];
    value.bytes().for_each(|byte| seen[usize::from(byte)] += 1);
    let size = value.len() as f64;
    let entropy: f64 =
        seen.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / size).map(|p| -p * p.log2()).sum();
    if digits == 0 || letters == 0 || entropy < 2.25 {
        return false;
    }
    // A word followed by a number, such as `bert-base-v2` or `page_12`, isn't random. Keys change between letters and
    // digits more often.
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let bytes = value.as_bytes();
    let changes = bytes.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    let words = value.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() >= 4);
    let plain = |word: &str| {
        let rest = &word[1..];
        rest.bytes().all(|byte| byte.is_ascii_lowercase()) || word.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let in_words: usize = words.filter(|word| plain(word)).map(str::len).sum();
    let wordy = in_words * 10 >= value.len() * 7 && value.len() >= 12 && digits * 5 < value.len();
    let separated = value.contains(['_', '-', '.']) && digits * 4 < value.len() && in_words * 2 >= value.len();
    changes >= 1 && !wordy && !separated
}

/// Tool arguments that contain text, not file names.
const TEXT_ARGUMENTS: [&str; 15] = [
    "content",
    "old_content",
    "new_content",
    "query",
    "message",
    "goal",
    "task",
    "text",
    "title",
    "description",
    "question",
    "url",
    "view",
    "todos",
    "agent",
];

/// Returns a sentence why a call needs approval whatever the rules allow, if it names a file that commonly contains
/// secrets.
pub fn secret_access_reason(arguments: &Map<String, Value>) -> Option<String> {
    let named = |path: &str| {
        let what = secret_files::secret_file_kind(path)?;
        Some(format!("{path} commonly holds {what}; a model reads it with the secrets masked that are found in it"))
    };
    for (key, value) in arguments {
        let found = match (key.as_str(), value) {
            ("command", Value::String(line)) => secret_files::file_names_in_command(line).find_map(|path| named(&path)),
            ("code", Value::String(code)) => secret_files::file_names_in_code(code).find_map(|path| named(&path)),
            (key, _) if TEXT_ARGUMENTS.contains(&key) => None,
            (_, Value::String(path)) => named(path),
            (_, Value::Array(items)) => items.iter().filter_map(Value::as_str).find_map(named),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests;
