//! What is said to the engine and what never is, folders that containers see, and engines that answer nonsense.

use super::*;
use crate::container_ledger::ContainerLedger;
use crate::container_spec::{ContainerOwner, ContainerPlan};
use crate::engine_client::{EngineClient, EngineLimit};
use crate::project_folder::ProjectAccess;
use agent::config::{SandboxLimits, SandboxPaths};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use store::DocId;

#[test]
fn calls_are_read_and_have_nothing_beyond_their_arguments() {
    let read = |tool: &str, arguments: Value| {
        ContainerRequest::from_call(tool, arguments.as_object().expect("an object")).map_err(|why| why.to_string())
    };
    let run = ContainerRequest::Run {
        image: "a".to_owned(),
        command: None,
        path: None,
        writable: false,
        network: false,
        background: false,
        seconds: None,
    };
    assert_eq!(read("container_run", json!({"image": "a"})), Ok(run));
    assert_eq!(read("container_list", json!({})), Ok(ContainerRequest::List {}));
    for (name, value) in [
        ("privileged", json!(true)),
        ("mounts", json!([{"Source": "/"}])),
        ("volumes_from", json!(["other"])),
        ("HostConfig", json!({"Privileged": true})),
        ("user", json!("root")),
    ] {
        let why = read("container_run", json!({"image": "a", name: value})).expect_err(name);
        assert!(why.contains("the arguments don't fit") && why.contains(name), "{why}");
    }
    assert!(read("container_fly", json!({})).is_err());
    let writes = read("container_run", json!({"image": "a", "path": "b", "writable": true})).expect("read");
    assert!(writes.changes_files());
}

fn plan() -> ContainerPlan {
    ContainerPlan {
        owner: ContainerOwner { owner: "1-a".to_owned(), project: DocId([1; 16]), run: DocId([2; 16]) },
        image: "sha256:aa".to_owned(),
        command: Some("echo 1; echo 2".to_owned()),
        mount: Some(("/p/src".into(), false)),
        network: false,
        user: None,
        limits: SandboxLimits { memory_bytes: Some(64 << 20), processes: Some(9), ..SandboxLimits::default() },
    }
}

#[test]
fn a_container_has_no_rights_and_all_limits() {
    let body = serde_json::to_value(plan().to_body()).expect("JSON");
    let host = &body["HostConfig"];
    assert_eq!((&body["Entrypoint"], &body["Cmd"]), (&json!(["/bin/sh"]), &json!(["-c", "echo 1; echo 2"])));
    assert_eq!(
        (&host["Memory"], &host["MemorySwap"], &host["PidsLimit"]),
        (&json!(64 << 20), &json!(64 << 20), &json!(9))
    );
    assert!(host["NanoCpus"].as_u64().is_some_and(|cpus| (1..=2).contains(&(cpus / 1_000_000_000))), "{host}");
    assert_eq!(
        (&host["NetworkMode"], &host["IpcMode"], &host["Privileged"]),
        (&json!("none"), &json!("private"), &json!(false))
    );
    assert_eq!((&host["CapDrop"], &host["SecurityOpt"]), (&json!(["ALL"]), &json!(["no-new-privileges"])));
    for absent in
        ["CapAdd", "Binds", "Devices", "VolumesFrom", "PidMode", "UTSMode", "UsernsMode", "PortBindings", "Sysctls"]
    {
        assert!(host[absent].is_null(), "{absent}");
    }
    assert_eq!(host["Mounts"], json!([{"Type": "bind", "Source": "/p/src", "Target": "/work", "ReadOnly": true}]));
    assert_eq!(host["LogConfig"]["Config"]["max-size"], "4m");
    assert_eq!(body["Labels"]["tracebook.run"], json!(DocId([2; 16]).to_string()));
    let limits = SandboxLimits { cpu_percent: Some(25), ..SandboxLimits::default() };
    let own = ContainerPlan { command: None, mount: None, network: true, limits, ..plan() };
    let body = serde_json::to_value(own.to_body()).expect("JSON");
    assert!(body["Cmd"].is_null() && body["WorkingDir"].is_null() && body["HostConfig"]["Mounts"] == json!([]));
    assert_eq!(
        (&body["HostConfig"]["NetworkMode"], &body["HostConfig"]["NanoCpus"]),
        (&json!("default"), &json!(250_000_000))
    );
}

/// Files below a folder, opened without care: what's tested is what's done with them.
struct PlainFiles(PathBuf);

impl ProjectFiles for PlainFiles {
    fn locate_folder(&self, path: &str) -> Result<PathBuf, ContainerError> {
        self.0.join(path).canonicalize().map_err(|error| ContainerError::Refused(error.to_string()))
    }

    fn list_folder(&self, path: &str) -> Result<Vec<FolderEntry>, ContainerError> {
        let entries =
            std::fs::read_dir(self.0.join(path)).map_err(|error| ContainerError::Refused(error.to_string()))?.flatten();
        let read = entries.map(|entry| FolderEntry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_folder: entry.file_type().is_ok_and(|kind| kind.is_dir()),
        });
        Ok(read.collect())
    }

    fn open_file(&self, path: &str) -> Result<File, ContainerError> {
        File::open(self.0.join(path)).map_err(|error| ContainerError::Refused(error.to_string()))
    }
}

#[test]
fn folders_of_the_project_are_seen_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("there").join("notes");
    for path in ["src/deep", "data/keys", "data/old", ".vscode", "W"] {
        std::fs::create_dir_all(root.join(path)).expect("made");
    }
    std::fs::create_dir_all(folder.path().join("other")).expect("made");
    std::os::unix::fs::symlink("../other", root.join("out")).expect("linked");
    std::os::unix::fs::symlink("data/keys", root.join("shortcut")).expect("linked");
    let files = PlainFiles(root.clone());
    let paths = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let rules = SandboxPaths { hidden: paths(&["data/keys"]), read_only: paths(&["data/old"]), writable: vec![] };
    let closed = [root.join("W/state")];
    std::fs::create_dir_all(&closed[0]).expect("made");
    let access = ProjectAccess { files: &files, rules: &rules, closed: &closed };
    let mount = |path: &str, writable: bool| access.locate_mount(path, writable).map_err(|why| why.to_string());
    assert_eq!(mount("src", false), Ok(root.join("src")));
    assert_eq!(mount("./src/deep/", true), Ok(root.join("src/deep")));
    assert_eq!(mount("data/old", false), Ok(root.join("data/old")));
    for (path, writable, why) in [
        ("/", false, "outside of the project"),
        ("/etc", false, "outside of the project"),
        ("..", false, "outside of the project"),
        ("src/../..", false, "outside of the project"),
        ("~", false, "outside of the project"),
        ("a:b", false, "outside of the project"),
        ("out", false, "leads out of the project"),
        ("nothing", false, "No such file"),
        ("data/keys", false, "sandbox.hidden"),
        ("shortcut", false, "sandbox.hidden"),
        ("data", false, "holds data/keys"),
        ("", false, "holds data/keys"),
        ("data/old", true, "sandbox.read_only"),
        ("W", false, "which containers don't see"),
        (".vscode", true, "Visual Studio Code"),
    ] {
        let refused = mount(path, writable).expect_err(path);
        assert!(refused.contains(why), "{path}: {refused}");
    }
    let open = ProjectAccess { rules: &SandboxPaths::default(), closed: &[], ..access };
    assert_eq!(open.locate_mount(".", false).expect("the whole project"), root);
    assert!(open.locate_mount(".", true).expect_err("all of it").to_string().contains("only to a folder inside"));
}

#[test]
fn what_is_built_from_leaves_out_what_is_closed_and_has_a_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for (path, text) in [("b/Dockerfile", "FROM x"), ("b/sub/f", "1"), ("b/.git/config", "x"), ("b/keys/k", "secret")] {
        std::fs::create_dir_all(root.join(path).parent().expect("above")).expect("made");
        std::fs::write(root.join(path), text).expect("written");
    }
    let files = PlainFiles(root.to_owned());
    let rules = SandboxPaths { hidden: vec!["b/keys".to_owned()], ..SandboxPaths::default() };
    let access = ProjectAccess { files: &files, rules: &rules, closed: &[] };
    let packed = image_build::pack_folder(access, "b").expect("packed");
    let mut archive = tar::Archive::new(packed.as_slice());
    let mut names: Vec<String> = archive
        .entries()
        .expect("read")
        .map(|entry| entry.expect("read").path().expect("a path").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["Dockerfile", "sub/f"]);
    File::create(root.join("b/large")).and_then(|file| file.set_len(65 << 20)).expect("made");
    let why = image_build::pack_folder(access, "b").expect_err("too large").to_string();
    assert!(why.contains("more than 64 MB"), "{why}");
    assert!(image_build::pack_folder(access, "../b").is_err());
    assert_eq!(image_build::built_name("mine").expect("a name"), "localhost/tracebook/mine:latest");
    assert_eq!(image_build::built_name("localhost/tracebook/mine:2").expect("a name"), "localhost/tracebook/mine:2");
    for name in ["Alpine", "../x", "a@sha256:1", "docker.io/library/a:b:c", ""] {
        assert!(image_build::built_name(name).is_err(), "{name}");
    }
}

#[test]
fn an_engine_is_found_at_sockets_of_this_machine_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("podman/podman.sock");
    std::fs::create_dir_all(socket.parent().expect("above")).expect("made");
    let _listener = UnixListener::bind(&socket).expect("bound");
    let runtime = folder.path().to_string_lossy().into_owned();
    let named = socket.to_string_lossy().into_owned();
    let find = |configured: Option<&str>, vars: &[(&str, String)]| {
        let vars = vars.to_vec();
        engine_socket::find_socket_in(configured, &move |name| {
            vars.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone())
        })
        .map_err(|why| why.to_string())
    };
    assert_eq!(find(Some(&named), &[]), Ok(socket.clone()));
    assert_eq!(find(None, &[("XDG_RUNTIME_DIR", runtime.clone())]), Ok(socket.clone()));
    assert_eq!(find(None, &[("CONTAINER_HOST", format!("unix://{named}"))]), Ok(socket.clone()));
    let remote = [("DOCKER_HOST", "tcp://10.0.0.1:2375".to_owned()), ("XDG_RUNTIME_DIR", runtime)];
    let why = find(None, &remote).expect_err("another machine");
    assert!(
        why.contains("DOCKER_HOST") && why.contains("tcp://10.0.0.1:2375") && why.contains("containers.socket"),
        "{why}"
    );
    assert_eq!(find(Some(&named), &remote), Ok(socket), "what is configured counts more");
    let why = find(Some("/no/such.sock"), &[]).expect_err("gone");
    assert!(why.contains("/no/such.sock") && why.contains("containers.socket"), "{why}");
    assert!(find(Some("ssh://host"), &[]).expect_err("remote").contains("ssh://host"));
}

#[test]
fn a_ledger_is_taken_over_once_its_process_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(ContainerLedger::take_stale(folder.path()).is_empty());
    let ledger = ContainerLedger::begin(folder.path(), Path::new("/run/x.sock")).expect("begun");
    let owner = ledger.owner.clone();
    assert!(ContainerLedger::take_stale(folder.path()).is_empty(), "its process lives");
    drop(ledger); // as the end of the process does
    let stale = ContainerLedger::take_stale(folder.path());
    assert_eq!(stale.len(), 1);
    assert_eq!((stale[0].owner.as_str(), stale[0].socket.as_path()), (owner.as_str(), Path::new("/run/x.sock")));
    assert!(ContainerLedger::take_stale(folder.path()).is_empty(), "it's taken");
    stale.into_iter().for_each(ContainerLedger::finish);
    assert_eq!(std::fs::read_dir(folder.path().join("containers")).expect("listed").count(), 0);
}

/// Serves an engine that answers each request, given its first line, as `answer` says.
fn serve(folder: &Path, answer: impl Fn(&str, &mut UnixStream) + Send + Sync + 'static) -> PathBuf {
    let socket = folder.join("engine.sock");
    let listener = UnixListener::bind(&socket).expect("bound");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut head = Vec::new();
                let mut byte = [0; 1];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                answer(head.lines().next().unwrap_or_default(), &mut stream);
            });
        }
    });
    socket
}

fn reply(stream: &mut UnixStream, status: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all((head + body).as_bytes()); // the client may have had enough
}

const VERSION: &str = r#"{"Components": [{"Name": "Test\u001b[2J Engine", "Version": "1"}], "Version": "1"}"#;

#[test]
fn an_engine_that_hangs_floods_or_answers_nonsense_fails_its_call_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = serve(folder.path(), |line, stream| match line {
        _ if line.contains("/_ping") => reply(stream, "200 OK", "OK"),
        _ if line.contains("/version") => reply(stream, "200 OK", VERSION),
        _ if line.contains("/images/json") => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[");
            while stream.write_all(&[b' '; 65_536]).is_ok() {}
        }
        _ if line.contains("/json?") => reply(stream, "200 OK", "{\"not\": \"a list\"}"),
        _ if line.contains("/images/hang/") => std::thread::sleep(Duration::from_secs(60)),
        _ if line.contains("/images/loud/") => {
            reply(stream, "500 X", &format!("{{\"message\": \"{}\"}}", "\\u001b".repeat(5_000)))
        }
        _ if line.contains("/logs") => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\n\r\n\x02\x00\x00\x00\x00\x00\x00\x01x\x01\x00\x00\x00\xff\xff\xff\xff");
            let _ = stream.write_all(&[b'y'; 1_000]);
        }
        _ => reply(stream, "404 Not Found", "{\"message\": \"nothing\"}"),
    });
    let client = EngineClient::connect(&socket).expect("connected");
    let open = EngineLimit { is_stopped: &|| false };
    assert_eq!(client.run(client.engine_name(open)).expect("named"), "Test [2J Engine 1");
    let any = bollard::query_parameters::ListImagesOptionsBuilder::default().build();
    let images = client.run(open.quick("listing images", client.docker.list_images(Some(any))));
    let why = images.expect_err("an endless answer").to_string();
    assert!(why.contains("larger than 16 MB"), "{why}");
    let listed = client.run(open.quick("listing", client.docker.list_containers(None)));
    assert!(matches!(listed, Err(ContainerError::Engine { .. })), "{listed:?}");
    // Others may have the machine for a moment, so one fast attempt is enough; what is slow is slow in each.
    let is_fast = (0..5).any(|_| {
        let begun = Instant::now();
        let hanging = open.keep("waiting", Duration::from_millis(300), client.docker.inspect_image("hang"));
        assert!(matches!(client.run(hanging), Err(ContainerError::TimedOut { .. })));
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            seen.store(true, Ordering::Release);
        });
        let stopped = || stop.load(Ordering::Acquire);
        let limit = EngineLimit { is_stopped: &stopped };
        let cancelled = client.run(limit.quick("waiting", client.docker.inspect_image("hang")));
        assert!(matches!(cancelled, Err(ContainerError::Cancelled)), "{cancelled:?}");
        begun.elapsed() < Duration::from_secs(5)
    });
    assert!(is_fast);
    let loud = client.run(open.quick("waiting", client.docker.inspect_image("loud"))).expect_err("500").to_string();
    assert!(loud.len() < 1_000 && !loud.contains('\u{1b}'), "{loud}");
    // A frame that claims four gigabytes ends with what there is.
    let mut read = client.docker.logs("a", None);
    let frames = client.run(open.quick("reading", async {
        let mut count = 0;
        while let Some(Ok(_)) = futures_util::StreamExt::next(&mut read).await {
            count += 1;
        }
        Ok(count)
    }));
    assert!(frames.is_ok_and(|count| (1..=2).contains(&count)));
}

#[test]
fn an_engine_that_speaks_of_unknown_streams_does_not_take_the_program_down() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = serve(folder.path(), |line, stream| match line {
        _ if line.contains("/_ping") => reply(stream, "200 OK", "OK"),
        // The first frame is complete, the second is of a stream that nobody knows.
        _ => {
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\n\r\n\x00\x00\x00\x00\x00\x00\x00\x01x\x09\x00\x00\x00\x00\x00\x00\x01x\n",
            );
        }
    });
    let client = EngineClient::connect(&socket).expect("connected");
    let open = EngineLimit { is_stopped: &|| false };
    let mut read = client.docker.logs("a", None);
    let done = client.run(open.quick("reading", async {
        while let Some(Ok(_)) = futures_util::StreamExt::next(&mut read).await {}
        Ok(())
    }));
    assert!(done.is_ok() || matches!(done, Err(ContainerError::Engine { .. })), "{done:?}");
}

#[test]
fn an_engine_is_described_by_what_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = serve(folder.path(), |line, stream| match line {
        _ if line.contains("/_ping") => reply(stream, "200 OK", "OK"),
        _ if line.contains("/version") => reply(stream, "200 OK", VERSION),
        _ => reply(stream, "404 Not Found", "{}"),
    });
    let (name, there, note) = describe_engine(socket.to_str());
    assert!(there && name.starts_with("Test") && note.contains("engine.sock"), "{name}: {note}");
    std::fs::remove_file(&socket).expect("removed");
    let (_, there, note) = describe_engine(socket.to_str());
    assert!(!there && note.contains("there is no socket"), "{note}");
}
