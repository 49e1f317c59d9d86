//! Files that commonly contain secrets, by name, and extraction of file names from commands and code.

/// Names of files with secrets, and what such files commonly contain.
const SECRET_FILE_NAMES: &[(&[&str], &str)] = &[
    (&[".netrc", "_netrc", ".git-credentials", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf"], "passwords"),
    (&[".vault_pass", ".vault-pass", ".msmtprc", ".mbsyncrc", ".fetchmailrc", ".htdigest"], "passwords"),
    (&[".htpasswd", ".wgetrc", ".curlrc", "wp-config.php", ".s3cfg", ".boto", "rclone.conf"], "passwords"),
    (&[".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".dockercfg", ".dockerconfigjson"], "tokens"),
    (&[".vault-token", ".terraformrc", "terraform.rc", ".databrickscfg", ".renviron", "auth.json"], "tokens"),
    (&["token.json", "tokens.json", ".envrc", ".flyctl"], "tokens"),
    (&["credentials", "credentials.json", "credentials.toml", "credentials.yml", "credentials.yaml"], "credentials"),
    (&["credentials.csv", "credentials.ini", "credentials.txt", "credentials.db", "accesstokens.json"], "credentials"),
    (&["kubeconfig", "kubeconfig.yaml", "kubeconfig.yml", "kube.config"], "credentials"),
    (&["secrets", "secrets.json", "secrets.yaml", "secrets.yml", "secrets.toml", "secrets.ini"], "secrets"),
    (&["secrets.env", "secrets.txt", "secrets.sealed", "secrets.key", "secret.json", "secret.yaml"], "secrets"),
    (&["secret.yml", "secret.txt", "secret.key", "master.key", "wallet.dat"], "secrets"),
    (&["passwords", "passwords.txt", "passwords.csv", "passwords.md", "passwords.json", "password.txt"], "passwords"),
    (&["passwords.xlsx", "passwd.txt", "passwd", "shadow", "login.keychain"], "passwords"),
];

/// Suffixes of files with secrets, and what such files commonly contain.
const SECRET_FILE_ENDINGS: &[(&[&str], &str)] = &[
    (&[".pem", ".key", ".ppk", ".p12", ".pfx", ".jks", ".keystore", ".p8", ".pk8", ".keytab"], "private keys"),
    (&[".kdbx", ".kdb", ".agilekeychain", ".1pux", ".keychain-db"], "passwords"),
    (&[".tfstate", ".tfstate.backup", ".tfvars", ".tfvars.json", ".ovpn", ".env"], "secrets"),
];

/// Suffixes of data and settings files.
const DATA_FILE_ENDINGS: &[&str] =
    &[".json", ".yaml", ".yml", ".toml", ".ini", ".csv", ".txt", ".xml", ".properties", ".env"];

/// Names, or their beginnings, of private SSH keys.
const SSH_KEY_PREFIXES: [&str; 5] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "ssh_host_"];

/// Folders whose files always need approval, and what they commonly contain.
const SECRET_FOLDERS: &[(&str, &str)] = &[
    (".ssh", "private keys"),
    (".gnupg", "private keys"),
    (".aws", "credentials"),
    (".azure", "credentials"),
    (".oci", "credentials"),
    (".kube", "credentials"),
    (".docker", "credentials"),
    (".terraform.d", "credentials"),
    (".password-store", "passwords"),
    (".secrets", "secrets"),
];

/// Returns the kind of secret that a file with this name commonly contains; `None` if it's an ordinary file.
pub fn secret_file_kind(path: &str) -> Option<&'static str> {
    // `plan.md#cell2` names a cell; `C#/.env` is a file.
    kind_by_name(path).or_else(|| kind_by_name(path.split_once('#')?.0))
}

fn kind_by_name(path: &str) -> Option<&'static str> {
    let lower = path.trim().to_lowercase();
    // Trailing dots and spaces name the same file on some systems.
    let lower = lower.trim_end_matches([' ', '.', '/', '\\']);
    let mut parts: Vec<&str> = lower.split(['/', '\\']).filter(|part| !matches!(*part, "" | ".")).collect();
    let name = parts.pop()?;
    if name.len() > 255 {
        return None;
    }
    // Public halves of keys, and lists of public keys, aren't secret.
    if name.ends_with(".pub") || matches!(name, "known_hosts" | "authorized_keys") {
        return None;
    }
    if let Some((_, what)) = SECRET_FOLDERS.iter().find(|(folder, _)| parts.contains(folder)) {
        return Some(what);
    }
    if parts.windows(2).any(|pair| pair == [".config", "gcloud"] || pair == [".config", "gh"]) {
        return Some("credentials");
    }
    if name == ".env" || name.starts_with(".env.") || name.starts_with(".env-") || name.starts_with(".env_") {
        return Some("secrets");
    }
    let word = |word: &str| name.contains(word);
    if name.starts_with('.') && (word("token") || word("credential") || word("secret") || word("passw")) {
        return Some("secrets");
    }
    if SSH_KEY_PREFIXES.iter().any(|key| {
        name == *key
            || name.strip_prefix(key).is_some_and(|rest| key.ends_with('_') || !rest.starts_with(char::is_alphanumeric))
    }) && !name.ends_with(".md")
    {
        return Some("private keys");
    }
    let data = DATA_FILE_ENDINGS.iter().any(|ending| name.ends_with(ending));
    let account = ["service-account", "service_account", "serviceaccount", "client_secret", "client-secret"];
    if data && (word("credential") || word("adminsdk") || account.iter().any(|known| name.starts_with(known))) {
        return Some("credentials");
    }
    if data && (name.starts_with("secrets.") || name.starts_with("secret.") || word(".secrets.") || word(".secret.")) {
        return Some("secrets");
    }
    let named = SECRET_FILE_NAMES.iter().find(|(names, _)| names.contains(&name));
    let ends = || {
        SECRET_FILE_ENDINGS
            .iter()
            .find(|(endings, _)| endings.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending)))
    };
    // Only a suffix counts: `x.key.md` isn't a key file.
    named.or_else(ends).map(|(_, what)| *what)
}

/// Returns possible file names in a shell command: its words, without quotation marks.
pub fn file_names_in_command(line: &str) -> impl Iterator<Item = String> + '_ {
    let parted = |c: char| c.is_whitespace() || ";|&<>()=,`{}@".contains(c);
    let plain = line.split(parted).map(|word| word.replace(['"', '\'', '\\'], "")).filter(|word| !word.is_empty());
    // `.e*` and `.[e]nv` may match `.env`.
    plain.map(|word| {
        let last = word.rsplit('/').next().unwrap_or_default();
        let hidden = last.starts_with('.') && last.len() > 1 && last.contains(['*', '?', '[']);
        if hidden { format!("{}.env", &word[..word.len() - last.len()]) } else { word }
    })
}

/// Returns possible file names in code: the string literals.
pub fn file_names_in_code(code: &str) -> impl Iterator<Item = String> + '_ {
    code.split(['"', '\'', '`'])
        .filter(|piece| !piece.is_empty() && piece.len() <= 1_024 && !piece.contains('\n'))
        .map(str::to_owned)
}

/// Removes paths that commonly hold secrets from a message's mentions. Returns them with the text that the model gets
/// instead: the agent may request such a file, and the user is asked then.
pub fn withhold_secret_files(paths: &mut Vec<String>) -> Vec<(String, String)> {
    let mut left = Vec::new();
    paths.retain(|path| match secret_file_kind(path) {
        None => true,
        Some(what) => {
            let words = format!("(Not read: it commonly holds {what}. read_file asks the user for it.)");
            left.push((path.clone(), words));
            false
        }
    });
    left
}
