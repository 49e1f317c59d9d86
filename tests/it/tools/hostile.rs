//! A hostile shell: every attempt is made for real.

use super::Bench;
use agent::tool_job::{ToolJob, ToolOutcome};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

#[track_caller]
fn stopped(outcome: &ToolOutcome) {
    assert!(!outcome.success, "{outcome:?}");
    assert!(!outcome.text.contains("planted"), "{outcome:?}");
}

#[test]
fn nothing_outside_the_volume_is_read() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    bench.write("notes/own.txt", b"own");
    let at = |name: &str| bench.path(name).to_string_lossy().into_owned();
    let (key, database) = (at("home/.ssh/id_ed25519"), at("W/tracebook.db"));
    let pid = std::process::id();
    for command in [
        format!("cat {key}"),
        format!("cat {database}"),
        format!("ln -s {key} link && cat link"),
        format!("ln {key} hard && cat hard"),
        format!("ln -s {} home && cat home/.ssh/id_ed25519", at("home")),
        "cat ../home/.ssh/id_ed25519".to_owned(),
        format!("cp -r {} copy && cat copy/.ssh/id_ed25519", at("home")),
        format!("cd {} && cat id_ed25519", at("home/.ssh")),
        format!("ls {}", at("home")),
        format!("tar cf - {} | strings", at("home")),
        "cat ~root/.ssh/id_ed25519 /etc/shadow".to_owned(),
        format!("cat /proc/{pid}/environ"),
        format!("ls /proc/{pid}/fd"),
        format!("cat /proc/{pid}/root{key}"),
        "ls /proc/1 /root /home".to_owned(),
        format!("mount --bind {} .", at("home")),
        format!("unshare -r cat {key}"),
    ] {
        let outcome = bench.shell(&format!("set -o pipefail 2>/dev/null; {command}"));
        assert!(!outcome.text.contains("planted"), "{command}: {outcome:?}");
        if !command.contains('|') {
            stopped(&outcome);
        }
    }
    // The volume contains the workspace and the home.
    let whole = |command: String| {
        bench.done(ToolJob::Shell { root: bench.path(""), path: String::new(), command, seconds: 20, network: false })
    };
    stopped(&whole(format!("cat {key}")));
    stopped(&whole(format!("cat {database}")));
    assert_eq!(whole("cat home/letter.txt notes/own.txt".to_owned()).text, "mineown");
}

#[test]
fn nothing_outside_the_volume_is_written() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    bench.write("beside.txt", b"mine");
    let beside = bench.path("beside.txt").to_string_lossy().into_owned();
    let home = bench.path("home").to_string_lossy().into_owned();
    for command in [
        "echo evil > ../new.txt".to_owned(),
        "echo evil >> ../beside.txt".to_owned(),
        format!("truncate -s 0 {beside}"),
        format!(": > {beside}"),
        format!("rm -f {beside}; test ! -e {beside}"),
        format!("mv {beside} taken.txt"),
        "mv own.txt ../moved.txt; test -e ../moved.txt".to_owned(),
        "ln -s .. up && echo evil > up/new.txt".to_owned(),
        format!("chmod 000 {beside} && cat {beside}"),
        "echo evil > /tmp/tracebook-was-here".to_owned(),
        "mkdir /usr/tracebook-was-here".to_owned(),
        "echo evil > /etc/tracebook-was-here".to_owned(),
        format!("rm -rf {home}; test ! -e {home}/letter.txt"),
        "mknod device b 8 0".to_owned(),
    ] {
        stopped(&bench.shell(&command));
    }
    // The shell's home is a folder of its own and may be deleted.
    bench.shell("rm -rf ~ ~/* ~/.* $HOME/.ssh; cd; rm -rf .");
    assert_eq!(bench.text("home/letter.txt"), "mine");
    assert_eq!(bench.text("home/.ssh/id_ed25519"), "planted key");
    assert_eq!(bench.text("beside.txt"), "mine");
    assert!(!bench.path("new.txt").exists() && !std::path::Path::new("/tmp/tracebook-was-here").exists());
}

#[test]
fn processes_have_an_end() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    // Each process waits a little, so that the test doesn't exhaust the machine if a limit fails.
    let bomb = bench.done(bench.line("bomb() { sleep 0.05; bomb | bomb & }; bomb; sleep 60", 60));
    stopped(&bomb);
    assert!(bomb.text.contains("more than 512 processes"), "{:.300}", bomb.text);
    assert_eq!(bench.left(), 0);

    // Grandchildren that leave their parent, session, process group and output.
    let daemons = "setsid sleep 1000 & (setsid sh -c 'sleep 1001 &' &) ; nohup sleep 1002 >/dev/null 2>&1 & \
                   perl -e 'use POSIX; fork && exit; setsid(); fork && exit; close STDOUT; close STDERR; sleep 1003' & \
                   perl -e 'setpgrp(0, 0); fork && exit; sleep 1004' & sleep 0.2; echo done";
    let done = bench.shell(daemons);
    assert_eq!((done.success, done.text.as_str()), (true, "done\n"));
    assert_eq!(bench.left(), 0);

    let full = bench.shell("perl -e '$x = \"a\" x (5 * 1024 ** 3); print \"got it\"'");
    stopped(&full);
    assert!(!full.text.contains("got it"), "{full:?}");
    let large = bench.shell("truncate -s 2G large.bin && echo got it");
    stopped(&large);
}

#[test]
fn other_processes_are_not_reached() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    let mut other = Command::new("sleep").arg("100").spawn().expect("started");
    let pid = other.id();
    stopped(&bench.shell(&format!("kill -9 {pid}")));
    // This kills all processes that the shell may signal, which is only itself.
    bench.shell("kill -9 -1");
    stopped(&bench.shell(&format!("kill -STOP $PPID; perl -e 'kill 9, {pid} or exit 1'")));
    stopped(&bench.shell(&format!("perl -e 'syscall(101, 16, {pid}, 0, 0) == 0 or exit 1'")));
    assert!(other.try_wait().expect("looked").is_none(), "it lives");
    other.kill().expect("killed");
    other.wait().expect("ended");
}

#[test]
fn no_network_is_reached() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let local = UnixListener::bind(bench.path("notes/bus")).expect("a socket");
    let connect = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo through");
    stopped(&bench.shell(&connect));
    stopped(&bench.shell(&format!("bash -c 'echo x > /dev/udp/127.0.0.1/{port}' && echo through")));
    let bus = "perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un(\"bus\")) or exit 1'";
    stopped(&bench.shell(bus));
    let listen = "perl -e 'use Socket; socket(S, AF_INET, SOCK_STREAM, 0) && listen(S, 1) or exit 1'";
    stopped(&bench.shell(listen));
    // The network works if granted; other programs' local sockets never do.
    let granted = |command: &str| {
        let command = command.to_owned();
        bench.done(ToolJob::Shell { root: bench.root(), path: String::new(), command, seconds: 20, network: true })
    };
    assert_eq!(granted(&connect).text, "through\n");
    stopped(&granted(bus));
    drop(local);
}

#[test]
fn a_tool_does_not_outlive_who_started_it() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    let mut helper = Command::new(crate::program::PROGRAM);
    helper.arg("sandbox").current_dir(bench.root()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut helper = helper.spawn().expect("started");
    let order = serde_json::json!({
        "command": "trap '' TERM HUP PIPE; setsid sleep 1000 & sleep 1001",
        "write": [bench.root()],
        "read": [],
        "network": false,
        "seconds": 60,
    });
    let mut input = helper.stdin.take().expect("piped");
    writeln!(input, "{order}").expect("given");
    crate::program::until("it runs", || bench.left() >= 3);
    // This happens when the program is killed: its ends of the pipes close without a message.
    drop(input);
    crate::program::until("all of it has ended", || {
        let _ = helper.try_wait();
        bench.left() == 0
    });
    let _ = helper.wait();
}
