//! `providers` and `secrets`: language models, whether they answer, and where their keys are stored.

use super::agents::{house, model, owns};
use super::meaning::serve;
use crate::program::{Done, House, bytes, finish, until};
use serde_json::{Value, json};

const PLANTED: &str = "sk-planted-77aa88bb99";

/// Runs the program without using the tester's keyring.
fn run(house: &House, words: &[&str], input: &str) -> Done {
    let mut command = house.command(words);
    command.env("TRACEBOOK_KEYRING", "off").env_remove("MY_KEY").env_remove("TRACEBOOK_PASSPHRASE");
    finish(command, input.as_bytes())
}

/// A house whose provider `mine` is a local server that requires this key and has two models.
fn house_with_a_server() -> House {
    let house = House::new();
    let address = serve(|request| {
        let given = request.headers.get("authorization").map(String::as_str).unwrap_or_default();
        if given != format!("Bearer {PLANTED}") {
            // A careless server repeats the key that it was given.
            let body = json!({"error": {"message": format!("Incorrect API key: {given}")}}).to_string();
            return (401, String::new(), body.into_bytes());
        }
        let body = match request.path.as_str() {
            "/v1/models" => json!({"data": [{"id": "small"}, {"id": "large"}]}),
            _ => json!({}),
        };
        (200, "Content-Type: application/json\r\n".to_owned(), body.to_string().into_bytes())
    });
    let text = format!(
        "llm:\n  default_provider: mine\n  providers:\n    mine:\n      base_url: {address}\n      model: small\n      \
         api_key: ${{MY_KEY}}\n      local: false\n"
    );
    house.write("W/config.yaml", text.as_bytes());
    house
}

#[test]
fn a_key_is_kept_used_and_stands_nowhere() {
    let house = house_with_a_server();
    // The key is missing.
    let why = run(&house, &["providers", "test"], "").code(1);
    assert!(why.err.contains("its key MY_KEY is missing: `tracebook secrets set MY_KEY`"));
    // A wrong key: the server repeats it, the program doesn't.
    let wrong = "sk-planted-wrong-one";
    run(&house, &["secrets", "set", "MY_KEY"], &format!("{wrong}\n")).good();
    let why = run(&house, &["providers", "test", "mine"], "").code(1);
    let said = why.err.clone();
    assert!(said.contains("does not accept the key (401: Incorrect API key: Bearer …)"), "{said}");
    assert!(!said.contains("planted"), "{said}");
    // The right key.
    let kept = run(&house, &["secrets", "set", "MY_KEY"], &format!("{PLANTED}\n")).good();
    assert!(kept.text().contains("the encrypted file with its key next to it"), "{}", kept.text());
    let good = run(&house, &["providers", "test"], "").good().text();
    assert!(good.starts_with("mine at 127.0.0.1:") && good.ends_with("“small” is one of its models (2).\n"), "{good}");
    assert_eq!(run(&house, &["providers", "models"], "").good().text(), "small\nlarge\n");
    let listed = run(&house, &["providers", "--json"], "").good().json();
    let mine = listed["providers"].as_array().expect("a list").iter().find(|one| one["name"] == "mine").expect("there");
    assert_eq!((&mine["key"], &mine["ready"], &mine["price"]), (&json!("MY_KEY"), &json!(true), &Value::Null));
    let list = run(&house, &["providers"], "").good().text();
    assert!(list.lines().any(|line| line.starts_with("* mine") && line.ends_with("price not known")), "{list}");
    assert_eq!(run(&house, &["secrets", "list", "--json"], "").good().json()["secrets"][0]["place"], "key_file");
    for (path, bytes) in bytes(&house.path("")) {
        assert!(!String::from_utf8_lossy(&bytes).contains("planted"), "a key stands in {path}");
    }
    run(&house, &["secrets", "rm", "MY_KEY"], "").good();
    assert_eq!(run(&house, &["secrets", "list"], "").good().text(), "");
    run(&house, &["secrets", "rm", "MY_KEY"], "").refused(2, "nothing is kept under MY_KEY");
}

#[test]
fn a_price_on_this_machine_is_shown_and_a_call_under_way_is_not_free() {
    let (answer, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    let address = model(move |_, _| {
        let _ = waits.lock().expect("one call").recv();
        ("Done.".to_owned(), Vec::new())
    });
    let house = House::with(&[("a.md", "# A\n")]);
    let config = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {{wire: openai, base_url: \
         \"{address}/v1\", model: m, context: 32000, price: {{input: 10, output: 30}}}}\n"
    );
    house.write("W/config.yaml", config.as_bytes());
    let listed = house.run(&["providers"]).good().text();
    assert!(listed.contains("on this machine, $10 in, $30 out, for a million tokens, about $0.0"), "{listed}");
    let child = house.command(&["ask", "go", "--json"]).spawn().expect("started");
    owns(&house, &child);
    until("what the call costs is listed", || house.run(&["runs"]).good().text().contains("  $0."));
    drop(answer);
    assert!(child.wait_with_output().expect("it ends").status.success());
}

#[test]
fn a_provider_is_added_with_its_key_from_standard_input() {
    let house = house_with_a_server();
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    let address =
        config.lines().find_map(|line| line.trim().strip_prefix("base_url: ")).expect("an address").to_owned();
    house.write("W/config.yaml", b"# mine\nbudget:\n  month: 5 # dollars\n");
    let add = ["providers", "add", "work", "--kind", "compatible", "--base-url", &address, "--key-stdin"];
    // With a wrong key nothing is saved.
    let wrong = run(&house, &add, "sk-planted-wrong\n").code(1);
    assert!(wrong.err.contains("does not accept the key") && !wrong.err.contains("planted"), "{}", wrong.err);
    assert_eq!(run(&house, &["secrets", "list"], "").good().text(), "");
    run(&house, &add, &format!("{PLANTED}\n")).refused(2, "say which model: --model NAME");
    let with: Vec<&str> = add.iter().copied().chain(["--model", "large"]).collect();
    let said = run(&house, &with, &format!("{PLANTED}\n")).good().text();
    assert!(said.contains("Agents ask its model large from now on."), "{said}");
    let written = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    assert!(written.starts_with("# mine\nbudget:\n  month: 5 # dollars\n"), "{written}");
    assert!(written.contains("${WORK_API_KEY}") && written.contains("default_provider: work"), "{written}");
    assert!(run(&house, &["providers", "test"], "").good().text().contains("“large” is one of its models"));
    for (path, bytes) in bytes(&house.path("")) {
        assert!(!String::from_utf8_lossy(&bytes).contains("planted"), "a key stands in {path}");
    }
    run(&house, &["providers", "add", "x", "--kind", "magic"], "").refused(2, "not “magic”");
    run(&house, &["providers", "add", "a/b", "--kind", "openai"], "").refused(2, "unlike “a/b”");
    run(&house, &["providers", "add", "x"], "").refused(2, "give its address");
}

#[test]
fn a_passphrase_opens_the_file_and_the_environment_goes_first() {
    let house = house_with_a_server();
    let with = |words: &[&str], input: &str, variables: &[(&str, &str)]| {
        let mut command = house.command(words);
        command.env("TRACEBOOK_KEYRING", "off").env_remove("MY_KEY").env_remove("TRACEBOOK_PASSPHRASE");
        command.envs(variables.iter().copied());
        finish(command, input.as_bytes())
    };
    let phrase = [("TRACEBOOK_PASSPHRASE", "open sesame")];
    let kept = with(&["secrets", "set", "MY_KEY"], PLANTED, &phrase).good().text();
    assert!(kept.contains("opened by your passphrase"), "{kept}");
    with(&["providers", "test"], "", &phrase).good();
    let closed = with(&["providers", "test"], "", &[]).code(1);
    assert!(closed.err.contains("set TRACEBOOK_PASSPHRASE"));
    with(&["providers", "test"], "", &[("MY_KEY", PLANTED)]).good();
    let other = with(&["providers", "test"], "", &[("TRACEBOOK_PASSPHRASE", "guess")]).code(1);
    assert!(other.err.contains("the passphrase is another"));
}

#[test]
fn a_passphrase_that_is_not_in_force_is_said_and_takes_over_when_asked() {
    let house = house_with_a_server();
    let with = |words: &[&str], input: &str, phrase: Option<&str>| {
        let mut command = house.command(words);
        command.env("TRACEBOOK_KEYRING", "off").env_remove("MY_KEY").env_remove("TRACEBOOK_PASSPHRASE");
        command.envs(phrase.map(|phrase| ("TRACEBOOK_PASSPHRASE", phrase)));
        finish(command, input.as_bytes())
    };
    with(&["secrets", "set", "MY_KEY"], PLANTED, None).good();
    let key = house.path(".config/tracebook/secrets.key");
    assert!(key.exists());
    // The program says which key opens the file, even while it stores another secret.
    for (words, input) in [(vec!["secrets", "list"], ""), (vec!["secrets", "set", "OTHER_KEY"], "second\n")] {
        let said = with(&words, input, Some("open sesame")).code(0);
        assert!(said.err.contains("TRACEBOOK_PASSPHRASE is set, but not in force"), "{said:?}");
        assert!(said.err.contains("secrets encrypt"), "{said:?}");
    }
    assert_eq!(with(&["secrets", "list", "--json"], "", None).good().json()["file"], "key_file");
    with(&["secrets", "encrypt"], "", None).refused(2, "set TRACEBOOK_PASSPHRASE");
    let done = with(&["secrets", "encrypt"], "", Some("open sesame")).good();
    assert!(done.text().contains("Encrypted with it: 2 secrets."), "{done:?}");
    assert!(!key.exists(), "nothing opens it but the passphrase");
    let list = with(&["secrets", "list", "--json"], "", Some("open sesame")).good();
    assert_eq!(list.err, "");
    assert_eq!(
        (&list.json()["file"], &list.json()["secrets"][1]["place"]),
        (&json!("passphrase"), &json!("passphrase"))
    );
    with(&["providers", "test"], "", Some("open sesame")).good();
    assert!(with(&["providers", "test"], "", None).code(1).err.contains("set TRACEBOOK_PASSPHRASE"));
    assert!(with(&["providers", "test"], "", Some("guess")).code(1).err.contains("the passphrase is another"));
}

#[test]
fn what_is_wrong_with_the_configuration_is_said_with_its_place() {
    let house = House::new();
    house.write("W/config.yaml", b"llm:\n  providers:\n    mine:\n      colour: red\n");
    house.run(&["providers"]).refused(2, "W/config.yaml:4:7: unknown field `colour`");
    house.write("W/config.yaml", b"llm:\n  providers:\n    mine: {model: x, api_key: sk-planted-in-the-file}\n");
    let why = house.run(&["providers"]).code(2);
    let said = why.err.clone();
    assert!(said.contains("a key does not belong in a file") && !said.contains("planted"), "{said}");
    house.write("W/config.yaml", b"\xff\xfe");
    house.run(&["providers"]).refused(2, "valid UTF-8");
    // The user's own file applies where the workspace's file sets nothing.
    house.write("W/config.yaml", b"llm:\n  default_provider: llamacpp\n");
    house.write(".config/tracebook/config.yaml", b"llm:\n  providers:\n    llamacpp: {enabled: true, model: own}\n");
    let listed = house.json(&["providers"]);
    assert_eq!(listed["default"], "llamacpp");
    let own =
        listed["providers"].as_array().expect("a list").iter().find(|one| one["name"] == "llamacpp").expect("there");
    assert_eq!((&own["model"], &own["enabled"]), (&json!("own"), &json!(true)));
    house.run(&["providers", "test", "nobody"]).refused(2, "there is no provider “nobody” in the configuration");
    house.run(&["providers", "colour"]).refused(2, "is not known: list, test, models");
    house.run(&["secrets", "colour"]).refused(2, "is not known: list, set, rm");
    house.run(&["secrets", "set", "A B"]).refused(2, "this isn't a secret");
    house.fed(&["secrets", "set", "A B"], b"value\n").refused(2, "is no name of a secret");
}

#[test]
fn one_that_is_down_is_said_within_five_seconds() {
    let house = House::new();
    house.write("W/config.yaml", b"llm:\n  providers:\n    ollama: {base_url: 'http://127.0.0.1:9'}\n");
    crate::program::assert_fast("the answer", std::time::Duration::from_secs(5), || {
        let began = std::time::Instant::now();
        let said = house.run(&["providers", "test", "ollama"]).code(1).err;
        let took = began.elapsed();
        assert!(
            said.contains("127.0.0.1:9 cannot be reached: nothing is listening there. Start Ollama (`ollama serve`)"),
            "{said}"
        );
        took
    });
}

#[test]
fn the_user_s_file_names_the_workspace() {
    let house = House::new();
    let text = format!("runtime:\n  data_dir: {}\n", house.path("elsewhere").display());
    house.write(".config/tracebook/config.yaml", text.as_bytes());
    // This command runs without `--workspace`.
    let mut plain = std::process::Command::new(crate::program::PROGRAM);
    plain.arg("init").current_dir(house.path("")).env("HOME", house.path("")).env_remove("XDG_CONFIG_HOME");
    plain.env_remove("XDG_DATA_HOME").stdin(std::process::Stdio::piped());
    plain.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(plain, b"").good();
    assert!(house.path("elsewhere").is_dir() && !house.path(".local").exists());
}

#[test]
fn a_question_goes_to_the_chosen_model_and_to_no_other() {
    let first = model(|_, _| ("I am the first.".to_owned(), Vec::new()));
    let second = model(|_, _| ("I am the second.".to_owned(), Vec::new()));
    let house = House::with(&[("a.md", "text\n")]);
    let config = |second: &str| {
        format!(
            "llm:\n  default_provider: one\n  prefer_local: false\n  fallback: [two]\n  providers:\n    \
             one: {{wire: openai, base_url: \"{first}/v1\", model: alpha, context: 32000}}\n    \
             two: {{wire: openai, base_url: \"{second}/v1\", model: beta, context: 32000}}\n"
        )
    };
    house.write("W/config.yaml", config(&second).as_bytes());
    let answer = |words: &[&str]| house.run(&[&["ask", "who are you?"], words].concat()).good().text();
    assert!(answer(&[]).contains("I am the first."));
    for named in ["beta", "two"] {
        assert!(answer(&["--model", named]).contains("I am the second."), "{named}");
    }
    let steps = house.run(&["ask", "who are you?", "--model", "beta", "--json"]).good().text();
    assert!(steps.contains("two/beta: chosen for this run"), "{steps}");
    house.run(&["ask", "who?", "--model", "gamma"]).refused(2, "no model or provider gamma; there is ");
    // What may not reach the first model doesn't, even if the chosen one is down.
    house.write("W/config.yaml", config("http://127.0.0.1:9").as_bytes());
    let down = house.run(&["ask", "a secret", "--model", "two"]);
    assert!(down.code != 0 && !down.text().contains("I am the first."), "{down:?}");
    assert!(answer(&[]).contains("I am the first."));
}

/// Small servers often answer in one piece, whatever they're asked.
#[test]
fn a_server_that_answers_in_one_piece_works_with_tools() {
    let address = serve(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let has_read = body["messages"].as_array().is_some_and(|all| all.iter().any(|one| one["role"] == "tool"));
        let function = json!({"name": "read_file", "arguments": "{\"path\": \"a.md\"}"});
        let message = if has_read {
            json!({"role": "assistant", "content": "It is about kale."})
        } else {
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "function": function}]})
        };
        let choice = json!({"message": message, "finish_reason": if has_read { "stop" } else { "tool_calls" }});
        let usage = json!({"prompt_tokens": 40, "completion_tokens": 4});
        let whole = json!({"choices": [choice], "usage": usage}).to_string();
        (200, "Content-Type: application/json\r\n".to_owned(), whole.into_bytes())
    });
    let house = house(&address, &[("a.md", "# Kale\n")]);
    let done = house.run(&["ask", "what is the note a about?", "--json"]).code(0);
    // It's asked in vain for a stream only once.
    assert_eq!(done.err.matches("doesn't stream its answers").count(), 1, "{done:?}");
    let done = done.lines();
    let called = done.iter().any(|step| step["toolName"] == "read_file");
    assert!(called && done.last().is_some_and(|last| last["content"] == "It is about kale."), "{done:?}");
    let run = house.run(&["runs", "--json"]).good().lines().remove(0);
    // Of the three answers, one was asked for in vain.
    assert_eq!((&run["spent"]["inputTokens"], &run["spent"]["outputTokens"]), (&json!(120), &json!(12)), "{run}");
    // The next process knows the server.
    let next = house.run(&["ask", "what is the note a about?"]).code(0);
    assert!(!next.err.contains("doesn't stream") && next.text().contains("It is about kale."), "{next:?}");
}
