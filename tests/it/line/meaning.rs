//! Sentence models other than the embedded one, through the program: an endpoint, and `fastembed` with a real ONNX
//! Runtime and a hub that serves the embedded model's own file.

use crate::program::{Done, House, finish, strict};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// An HTTP request that the test server received.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// Starts a local HTTP server whose responses consist of a status, headers and a body. Returns its address.
pub(super) fn serve(answer: impl Fn(&Request) -> (u16, String, Vec<u8>) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || converse(stream, &*answer));
        }
    });
    address
}

fn converse(mut stream: TcpStream, answer: &dyn Fn(&Request) -> (u16, String, Vec<u8>)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (status, headers, body) = answer(&Request { path, headers, body });
        write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n", body.len()).ok()?;
        stream.write_all(&body).ok()?;
    }
}

/// A toy embedding with three topics: bread, vegetables, ships.
fn toy(text: &str) -> Vec<f32> {
    let topics: [&[&str]; 3] =
        [&["bread", "dough", "loaf", "baker"], &["carrot", "soup", "turnip"], &["ship", "harbour", "vessel"]];
    let text = text.to_lowercase();
    let mut vector: Vec<f32> =
        topics.iter().map(|words| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.0 }).collect();
    vector.push(0.3);
    vector
}

fn embeddings(request: &Request) -> (u16, String, Vec<u8>) {
    let asked: Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!((request.path.as_str(), &asked["model"]), ("/v1/embeddings", &json!("toy")));
    let texts = asked["input"].as_array().expect("texts");
    // The embeddings come in reverse order; the index puts them right.
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .rev()
        .map(|(place, text)| json!({"index": place, "embedding": toy(text.as_str().expect("a text"))}))
        .collect();
    (200, "Content-Type: application/json\r\n".to_owned(), json!({"data": data}).to_string().into_bytes())
}

fn house() -> House {
    House::with(&[
        ("Bread.md", "# Sourdough\n\nKnead the dough for ten minutes.\n"),
        ("Soup.md", "# Soup\n\nPeel the carrots.\n"),
        ("Sea.md", "# Sea\n\nThe ship left the harbour.\n"),
    ])
}

fn first(house: &House, query: &str) -> String {
    let hits = house.json(&["search", query]);
    hits[0]["address"].as_str().map_or(String::new(), |address| address.split('#').next().unwrap_or("").to_owned())
}

#[test]
fn an_endpoint_finds_by_meaning_and_is_left_again() {
    let house = house();
    let busy = AtomicUsize::new(0);
    let url = serve(move |request| {
        // The third request gets status 429 and is retried.
        if busy.fetch_add(1, Ordering::Relaxed) == 2 {
            return (429, String::new(), b"slow down".to_vec());
        }
        embeddings(request)
    });
    let status = house.run(&["index", "use", &format!("{url}/v1#toy")]).good().text();
    assert!(status.contains(&format!("meaning by {url}/v1#toy")), "{status}");
    // These words are in no note: only the toy embedding's topics find them.
    assert_eq!(first(&house, "the turnip"), "Soup.md");
    assert_eq!(first(&house, "a vessel"), "Sea.md");
    let kept: Vec<PathBuf> = vectors(&house);
    assert!(kept.len() == 1 && kept[0].to_string_lossy().contains("toy"), "{kept:?}");
    // Back to the embedded model: its vectors are computed again, and the others are removed.
    house.run(&["index", "use", "embedded"]).good();
    let kept = vectors(&house);
    assert!(kept.len() == 1 && kept[0].to_string_lossy().contains("minilm"), "{kept:?}");
    let status = house.json(&["index", "status"]);
    assert_eq!(
        (&status["model"], &status["growing"], &status["meanings"]),
        (&json!("embedded"), &Value::Null, &json!(3))
    );
}

/// Secrets in several formats; the last one is the body of a private key. They're assembled at run time, so that no
/// scanner reports this file as a leak.
fn secrets() -> Vec<String> {
    let mut seed = 7_u32;
    let mut letter = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[(seed >> 16) as usize % 62])
    };
    let mut random = |count: usize| (0..count).map(|_| letter()).collect::<String>();
    let lines: Vec<String> = (0..40).map(|_| random(64)).collect();
    vec![format!("ghp_{}", random(36)), format!("sk-ant-api03-{}", random(60)), lines.join("\n")]
}

#[test]
fn an_endpoint_is_sent_no_secrets() {
    let secrets = secrets();
    let (token, key, body) = (&secrets[0], &secrets[1], &secrets[2]);
    let pem = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----");
    // A key is longer than one embedded passage, so some passages contain neither its first line nor its last.
    let note = format!(
        "# Deploy {token}\n\nThe ship leaves with {key} in its hold.\n\n## Key\n\nSome words before it.\n\n{pem}\n\n\
         The turnip comes behind it.\n\nThe horse stands by correcthorsebatterystaple.\n"
    );
    let sent: Arc<Mutex<String>> = Arc::default();
    let heard = Arc::clone(&sent);
    let url = serve(move |request| {
        heard.lock().expect("heard").push_str(&String::from_utf8_lossy(&request.body));
        embeddings(request)
    });
    let script = move |turn: usize, _: &Value| -> super::agents::Said {
        (if turn == 0 { "The bread is baked.".to_owned() } else { String::new() }, Vec::new())
    };
    let house = super::agents::house(&super::agents::model(script), &[("Deploy.md", &note)]);
    // A stored key of this installation, without a recognizable format.
    let mut keep = house.command(&["secrets", "set", "PLAIN_KEY"]);
    keep.env("TRACEBOOK_KEYRING", "off");
    finish(keep, b"correcthorsebatterystaple\n").good();
    house.run(&["index", "use", &format!("{url}/v1#toy")]).good();
    assert_eq!(first(&house, "a carrot"), "Deploy.md", "what comes behind the key is found by its meaning");
    // Secrets could be sent by the index, a search, the lookup for a message, and what memory stores and recalls.
    assert_eq!(first(&house, &format!("a vessel that holds {key}")), "Deploy.md");
    house.run(&["memory", "add", &format!("the baker signs with {token}"), "--goal", &format!("bake {key}")]).good();
    house.run(&["ask", &format!("Which dough is baked with {token}? {pem}")]).good();
    house.run(&["memory", "bearing", &format!("a loaf of {key}")]).good();
    let sent = sent.lock().expect("heard");
    for what in ["ship leaves", "turnip comes", "vessel that holds", "Deploy"] {
        assert!(sent.contains(what), "{what} was embedded: {sent}");
    }
    assert!(sent.contains("horse stands"), "{sent}");
    for secret in [token, key, "correcthorsebatterystaple"].into_iter().chain(body.lines()) {
        // Not even a part of it may be sent.
        let part = &secret[secret.len() / 2 - 10..secret.len() / 2 + 10];
        let at = sent.find(part).map(|at| &sent[at.saturating_sub(200)..at + 100]);
        assert_eq!(at, None, "{part}");
    }
}

#[test]
fn an_endpoint_that_costs_something_is_paid_from_the_month() {
    let house = house();
    let texts = Arc::new(AtomicUsize::new(0));
    let counted = texts.clone();
    let url = serve(move |request| {
        let asked: Value = serde_json::from_slice(&request.body).expect("JSON");
        let many = asked["input"].as_array().map_or(0, Vec::len);
        counted.fetch_add(many, Ordering::Relaxed);
        let (status, headers, body) = embeddings(request);
        let mut answer: Value = serde_json::from_slice(&body).expect("JSON");
        answer["usage"] = json!({"prompt_tokens": 5 * many, "total_tokens": 5 * many});
        (status, headers, answer.to_string().into_bytes())
    });
    let limit = |month: &str| {
        let text = format!("budget:\n  month: {month}\n  embeddings: 1000\n");
        house.write("W/config.yaml", text.as_bytes());
    };
    let month = || house.run(&["budget", "--json"]).good().lines()[0].clone();
    limit("null");
    house.run(&["index", "use", &format!("{url}/v1#toy")]).good();
    // A token costs a thousandth of a dollar, a text five tokens; the endpoint's count was recorded.
    let sent = texts.load(Ordering::Relaxed);
    let (spent, tokens) = (month()["spent"].as_f64().expect("dollars"), month()["tokens"].as_u64());
    assert!(sent > 3 && tokens == Some(5 * sent as u64), "{sent} texts: {}", month());
    assert!((spent - 0.005 * sent as f64).abs() < 1e-9, "{sent} texts: {}", month());
    let by = house.run(&["budget", "--by", "project", "--json"]).good().lines();
    let own = by.iter().find(|one| one["title"] == json!(format!("Search by {url}/v1#toy")));
    assert_eq!(own.expect("a line of its own")["tokens"].as_u64(), tokens, "{by:?}");
    let said = house.run(&["budget", "--log"]).good().text();
    assert!(said.contains(&format!("search by {url}/v1#toy")), "{said}");
    // The budget can't pay for another question: no text is sent, word search still works, and the reason is given.
    limit(&format!("{:.4}", spent + 0.001));
    house.write("notes/New.md", b"# New\n\nA galleon is a kind of vessel.\n");
    let done = house.run(&["search", "galleon"]);
    assert_eq!(texts.load(Ordering::Relaxed), sent, "{done:?}");
    assert!(done.text().contains("New.md"), "{done:?}");
    assert!(done.err.contains("by words alone") && done.err.contains("The balance is too low"), "{done:?}");
    assert_eq!(done.err.matches("The balance is too low").count(), 1, "{done:?}");
    let status = house.run(&["index", "status"]).good().text();
    assert!(status.contains("3 of 4 passages are found by meaning"), "{status}");
    // With more budget, indexing continues where it stopped.
    limit("100");
    assert_eq!(first(&house, "the turnip"), "Soup.md");
    assert!(texts.load(Ordering::Relaxed) > sent);
    assert_eq!(month()["tokens"].as_u64(), Some(5 * texts.load(Ordering::Relaxed) as u64));
}

fn vectors(house: &House) -> Vec<PathBuf> {
    let all = std::fs::read_dir(house.path("W/index")).expect("listed").flatten().map(|entry| entry.path());
    all.filter(|path| path.extension().is_some_and(|ending| ending == "vectors")).collect()
}

#[test]
fn an_endpoint_that_is_not_there_or_talks_nonsense_changes_nothing() {
    let house = house();
    house.run(&["search", "dough"]).good();
    let wordy = serve(|_| (200, String::new(), b"{\"data\": [{\"embedding\": [\"a\"]}]}".to_vec()));
    let short = serve(|_| (200, String::new(), b"{\"data\": []}".to_vec()));
    let closed = serve(|_| (401, String::new(), b"who are you".to_vec()));
    for (url, said) in [
        ("http://127.0.0.1:9", "cannot be reached"),
        (wordy.as_str(), "not vectors"),
        (short.as_str(), "not"),
        (closed.as_str(), "TRACEBOOK_EMBEDDINGS_KEY"),
    ] {
        let done: Done = house.run(&["index", "use", &format!("{url}/v1#toy")]);
        assert!(done.code == 1 && done.err.contains(said) && done.err.contains("embedded stays"), "{url}: {done:?}");
        assert_eq!(first(&house, "kneading"), "Bread.md");
        assert_eq!(house.json(&["index", "status"])["model"], "embedded");
    }
    for wrong in ["mini", "fastembed:none", "http://host/v1"] {
        assert_eq!(house.run(&["index", "use", wrong]).code, 2, "{wrong}");
    }
}

#[test]
fn meaning_can_be_paused() {
    let house = house();
    house.run(&["index", "pause"]).good();
    house.write("notes/New.md", b"# New\n\nA kitten naps.\n");
    assert_eq!(first(&house, "kitten"), "New.md");
    let status = house.json(&["index", "status"]);
    assert_eq!((&status["paused"], &status["meanings"]), (&json!(true), &json!(0)), "{status}");
    house.run(&["index", "resume"]).good();
    assert_eq!(first(&house, "a cat sleeps on the sofa"), "New.md");
}

#[test]
fn searches_are_kept_by_name() {
    let house = house();
    house.run(&["searches", "food", "dough OR carrots"]).good();
    let mut found: Vec<String> = house
        .json(&["search", "@food"])
        .as_array()
        .expect("a list")
        .iter()
        .take(2)
        .map(|hit| hit["title"].as_str().expect("a title").to_owned())
        .collect();
    found.sort();
    assert_eq!(found, ["Soup", "Sourdough"]);
    assert_eq!(house.json(&["searches"]), json!([{"name": "food", "query": "dough OR carrots"}]));
    assert_eq!(house.run(&["search", "@drink"]).code, 2);
    house.run(&["searches", "food", "--forget"]).good();
    assert_eq!(house.json(&["searches"]), json!([]));
    assert_eq!(house.run(&["searches", "food", "--forget"]).code, 2);
}

/// The ONNX Runtime of CI (`.ci/run`, from PyPI's `onnxruntime`) or of the tester's machine, if there is one.
fn library() -> Option<PathBuf> {
    let named = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from).filter(|path| path.exists());
    assert!(named.is_some() || !strict(), "CI brings an ONNX Runtime and names it in ORT_DYLIB_PATH");
    if named.is_none() {
        eprintln!("left out: ORT_DYLIB_PATH names no ONNX Runtime (pip install onnxruntime has one)");
    }
    named
}

fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/embedding").join(name)
}

/// The embedded model's tokenizer in the common format: `tokenizer.json` and the files beside it.
fn tokenizer() -> HashMap<&'static str, Vec<u8>> {
    let words = std::fs::read_to_string(asset("vocab.txt")).expect("the vocabulary");
    let vocabulary: HashMap<&str, usize> = words.lines().zip(0..).collect();
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    let added: Vec<Value> = special
        .iter()
        .map(|word| {
            json!({"id": vocabulary[word], "content": word, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true})
        })
        .collect();
    let piece = |id: &str| json!({"SpecialToken": {"id": id, "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let special_token = |word: &str| json!({"id": word, "ids": [vocabulary[word]], "tokens": [word]});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [piece("[CLS]"), text, piece("[SEP]")],
            "pair": [piece("[CLS]"), text, piece("[SEP]")],
            "special_tokens": {"[CLS]": special_token("[CLS]"), "[SEP]": special_token("[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    });
    HashMap::from([
        ("tokenizer.json", tokenizer.to_string().into_bytes()),
        ("config.json", b"{\"pad_token_id\": 0}".to_vec()),
        ("special_tokens_map.json", b"{\"pad_token\": \"[PAD]\"}".to_vec()),
        ("tokenizer_config.json", b"{\"model_max_length\": 256, \"pad_token\": \"[PAD]\"}".to_vec()),
    ])
}

/// Serves a hub with one model: the embedded one, under the name of `fastembed`'s `AllMiniLML6V2Q`.
fn hub() -> String {
    let mut files = tokenizer();
    files.insert("onnx/model_quantized.onnx", std::fs::read(asset("minilm-l6-v2-dyn7.onnx")).expect("the model"));
    serve(move |request| {
        let Some((name, bytes)) =
            files.iter().find(|(name, _)| request.path == format!("/Xenova/all-MiniLM-L6-v2/resolve/main/{name}"))
        else {
            return (404, String::new(), Vec::new());
        };
        let range = request.headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        let (from, to) = range.unwrap_or(("0", ""));
        let from: usize = from.parse().expect("a number");
        let to = to.parse().map_or(bytes.len(), |to: usize| to + 1);
        let headers = format!(
            "ETag: \"{}\"\r\nX-Repo-Commit: 0123456789abcdef\r\nContent-Range: bytes {from}-{}/{}\r\n",
            name.replace('/', "-"),
            to - 1,
            bytes.len()
        );
        (206, headers, bytes[from..to].to_vec())
    })
}

/// The real `fastembed`: downloaded from a hub, run by an ONNX Runtime. It finds what the embedded model finds, with
/// nearly the same cosines.
#[test]
fn fastembed_downloads_runs_and_agrees_with_the_embedded_model() {
    let Some(library) = library() else { return };
    let house = house();
    let queries = ["a baker at work", "vegetables", "vessels at sea"];
    let near = |house: &House, query: &str| -> (String, f64) {
        let done = run(house, &["search", query, "--explain", "--json"], &library, "");
        let hit = done.good().json()[0].clone();
        (hit["title"].as_str().unwrap_or_default().to_owned(), hit["parts"]["meaning"].as_f64().unwrap_or(-1.0))
    };
    house.run(&["search", "dough"]).good();
    let embedded: Vec<(String, f64)> = queries.iter().map(|query| near(&house, query)).collect();
    let hub = hub();
    let chosen = run(&house, &["index", "use", "fastembed:AllMiniLML6V2Q"], &library, &hub);
    assert!(chosen.code == 0 && chosen.text().contains("meaning by fastembed:AllMiniLML6V2Q"), "{chosen:?}");
    for (query, (title, cosine)) in queries.iter().zip(&embedded) {
        let (other_title, other) = near(&house, query);
        assert_eq!(&other_title, title, "{query}");
        // The embedded cosine is shown as is, others as if unrelated texts had cosine 0, so they differ a little.
        assert!((other - cosine).abs() < 0.06, "{query}: {cosine} {other}");
    }
    // Downloaded models aren't requested again: the model works without the hub.
    assert_eq!(near(&house, queries[0]).0, embedded[0].0);
    // The hub doesn't have this model: an error is shown, and the previous one stays.
    let gone = run(&house, &["index", "use", "fastembed:BGESmallENV15"], &library, &hub);
    assert!(gone.code == 1 && gone.err.contains("cannot be downloaded"), "{gone:?}");
    assert_eq!(near(&house, queries[0]).0, embedded[0].0);
    // The hub doesn't have this reranker: an error is shown, and none is used.
    let gone = run(&house, &["index", "reranker", "BGERerankerBase"], &library, &hub);
    assert!(gone.code == 1 && gone.err.contains("cannot be downloaded"), "{gone:?}");
    assert_eq!(house.json(&["index", "models"])["reranker"], "");
    assert_eq!(house.run(&["index", "reranker", "nothing"]).code, 2);
    // A model in a folder of the user's.
    for (name, bytes) in tokenizer() {
        house.write(&format!("mine/{name}"), &bytes);
    }
    std::fs::copy(asset("minilm-l6-v2-dyn7.onnx"), house.path("mine/model.onnx")).expect("copied");
    let folder = format!("folder:{}", house.path("mine").display());
    assert_eq!(run(&house, &["index", "use", &folder], &library, "").code, 0);
    assert_eq!(near(&house, queries[0]).0, embedded[0].0);
}

#[test]
fn without_an_onnx_runtime_a_sentence_says_what_brings_one() {
    let house = house();
    let nowhere = Path::new("/nowhere/libonnxruntime.so");
    let why = "there's no ONNX Runtime at /nowhere/libonnxruntime.so; correct or remove this path in ORT_DYLIB_PATH";
    let done = run(&house, &["index", "use", "fastembed:AllMiniLML6V2Q"], nowhere, "");
    assert!(done.code == 2 && done.err.contains(why), "{done:?}");
    let listed = run(&house, &["index", "models"], nowhere, "").good().text();
    assert!(listed.contains(&format!("Models of fastembed can't run: {why}.")), "{listed}");
    assert!(listed.contains("* embedded") && listed.contains("fastembed:MultilingualE5Small"), "{listed}");
}

fn run(house: &House, words: &[&str], library: &Path, hub: &str) -> Done {
    let mut command = house.command(words);
    command.env("ORT_DYLIB_PATH", library).env("HF_ENDPOINT", if hub.is_empty() { "http://127.0.0.1:9" } else { hub });
    crate::program::finish(command, b"")
}

/// So many notes that a search doesn't wait until the embedded model has read all of them.
const MANY_NOTES: usize = 400;

#[test]
fn what_is_found_by_words_is_ranked_by_meaning_before_all_is_read() {
    let house = House::new();
    for number in 0..MANY_NOTES {
        let text = format!("# Ledger {number}\n\nFreight tariff and invoice of lot {number}, paid in March.\n");
        house.write(&format!("notes/{number}.md"), text.as_bytes());
    }
    house.write("notes/Pet.md", b"# Pet\n\nA kitten naps upon the couch.\n");
    house.run(&["open", "notes"]).good();
    let hits = house.json(&["search", "a napping kitten"]);
    let why = hits[0]["why"].as_str().expect("a reason");
    assert!(why.contains("kitten") && why.contains("in meaning"), "{hits}");
    let status = house.json(&["index", "status"]);
    let number = |name: &str| status[name].as_u64().expect("a number");
    assert!(number("meanings") < number("meanings_wanted"), "the embedded model hasn't read all of them: {status}");
}
