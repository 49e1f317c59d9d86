//! Replicas of a hub over three NATS servers, all local processes, killed in every way while clients type. Nothing that
//! was acknowledged to a client may be missing afterwards.

mod attacks;
mod behind;
mod files;

use crate::program::{House, bytes, noise, strict};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::hub_load::{free_port, is_listening};
use support::typing_clients::{EnduranceReport, TypingClients, check_acknowledged, check_ephemeral_delivery};

/// A process that is killed when it is dropped.
struct Runs(Child);

impl Runs {
    /// Kills the process at once, like a power cut.
    fn kill(mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("ended");
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Three NATS servers, with the ports needed to restart them.
struct Cluster {
    ports: [u16; 3],
    monitors: [u16; 3],
    servers: [Option<Runs>; 3],
}

impl Cluster {
    /// Starts the servers. `None` if this machine has no `nats-server`.
    fn new(house: &House) -> Option<Cluster> {
        let there = Command::new("nats-server").arg("--version").stdout(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            assert!(!strict(), "TRACEBOOK_CI=1 and there is no nats-server");
            println!("left out: there is no nats-server on this machine");
            return None;
        }
        let ports = || [0; 3].map(|_| free_port().expect("a port"));
        let (ports, routes, monitors) = (ports(), ports(), ports());
        let list: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        for at in 0..3 {
            let text = format!(
                "server_name: n{at}\nlisten: 127.0.0.1:{}\nhttp: 127.0.0.1:{}\n\
                 jetstream {{ store_dir: \"{}\", max_mem: 64MB, max_file: 1GB }}\n\
                 cluster {{ name: c, listen: 127.0.0.1:{}, routes: [ {} ] }}\n",
                ports[at],
                monitors[at],
                house.path(&format!("nats{at}")).display(),
                routes[at],
                list.join(", "),
            );
            house.write(&format!("nats{at}.conf"), text.as_bytes());
        }
        let mut cluster = Cluster { ports, monitors, servers: [None, None, None] };
        (0..3).for_each(|at| cluster.start(house, at));
        Some(cluster)
    }

    fn start(&mut self, house: &House, at: usize) {
        let config = house.path(&format!("nats{at}.conf"));
        let mut command = Command::new("nats-server");
        command.arg("-c").arg(config).stdout(Stdio::null()).stderr(Stdio::null());
        self.servers[at] = Some(Runs(command.spawn().expect("started")));
        until("a server listens", Duration::from_secs(60), || is_listening(self.ports[at]));
    }

    /// The number of file pieces on the first server, and the number of other servers that replicate them.
    fn pieces(&self) -> Option<(u64, usize)> {
        let page = get(self.monitors[0], "/jsz?streams=true")?;
        let value: Value = serde_json::from_str(page.split_once("\r\n\r\n")?.1).ok()?;
        let files = stream(&value, "TRACEBOOK-FILES")?;
        Some((files["state"]["messages"].as_u64()?, files["cluster"]["replicas"].as_array()?.len()))
    }

    fn urls(&self) -> String {
        self.ports.map(|port| format!("nats://127.0.0.1:{port}")).join(",")
    }

    /// The index of the server that leads the stream.
    fn leader(&self) -> usize {
        let mut found = None;
        until("the stream has a leader", Duration::from_secs(60), || {
            found = (0..3).filter(|at| self.servers[*at].is_some()).find_map(|at| {
                let page = get(self.monitors[at], "/jsz?streams=true")?;
                let value: Value = serde_json::from_str(page.split_once("\r\n\r\n")?.1).ok()?;
                stream(&value, "TRACEBOOK")?["cluster"]["leader"].as_str()?.strip_prefix('n')?.parse::<usize>().ok()
            });
            found.is_some()
        });
        found.expect("found")
    }
}

/// The entry of a stream in a server's monitoring page.
fn stream<'a>(page: &'a Value, name: &str) -> Option<&'a Value> {
    let streams = page["account_details"][0]["stream_detail"].as_array()?;
    streams.iter().find(|stream| stream["name"] == name)
}

fn get(port: u16, path: &str) -> Option<String> {
    get_with(port, path, "")
}

/// Requests a page over HTTP with additional header lines.
fn get_with(port: u16, path: &str, head: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n{head}\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}

fn health(port: u16) -> Option<String> {
    get(port, "/healthz")
}

#[track_caller]
fn until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + within;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a replica with a folder of its own.
fn replica(house: &House, name: &str, port: u16, nats: &str) -> Runs {
    hub(house, name, port, &["--store", nats])
}

fn hub(house: &House, name: &str, port: u16, more: &[&str]) -> Runs {
    let listen = format!("127.0.0.1:{port}");
    let words = ["--json", "hub", "--folder", name, "--listen", &listen, "--open", "local"];
    let mut command = house.command(&[&words, more].concat());
    let log = std::fs::File::options().append(true).create(true).open(house.path(&format!("{name}.log")));
    command.env("TRACEBOOK_KEYRING", "off").stderr(log.expect("a file"));
    let mut runs = Runs(command.spawn().expect("started"));
    let mut out = BufReader::new(runs.0.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert!(line.contains("listening"), "{line}{}", String::from_utf8_lossy(&house.read(&format!("{name}.log"))));
    std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(drop));
    runs
}

/// Asserts that 40 more keys are acknowledged.
#[track_caller]
fn goes_on(typists: &TypingClients, what: &str) {
    let (before, since) = (typists.acknowledged(), Instant::now());
    until(what, Duration::from_secs(60), || typists.acknowledged() > before + 40);
    println!("{what}: 40 keys acknowledged after {:.1} s", since.elapsed().as_secs_f64());
}

#[test]
fn whoever_is_killed_nothing_acknowledged_is_lost() {
    let house = House::new();
    let Some(mut cluster) = Cluster::new(&house) else { return };
    let nats = cluster.urls();
    let ports = [free_port().expect("a port"), free_port().expect("a port")];
    let at = ports.map(|port| format!("ws://127.0.0.1:{port}"));
    let one = replica(&house, "R1", ports[0], &nats);
    let typists = TypingClients::start(&at, 4);
    goes_on(&typists, "one replica");
    // The second replica starts while clients write, and misses nothing.
    let two = replica(&house, "R2", ports[1], &nats);
    goes_on(&typists, "a second one");
    let leader = cluster.leader();
    cluster.servers[leader].take().expect("runs").kill();
    goes_on(&typists, "the leader of the stream was killed");
    cluster.start(&house, leader);
    one.kill();
    goes_on(&typists, "a replica was killed");
    two.kill();
    std::thread::sleep(Duration::from_millis(300));
    let one = replica(&house, "R1", ports[0], &nats);
    goes_on(&typists, "both were killed, one is back");
    let two = replica(&house, "R2", ports[1], &nats);
    goes_on(&typists, "both are back");
    let endured: EnduranceReport = typists.stop();
    let keys: usize = endured.acknowledged.values().sum();
    println!("{keys} keys acknowledged, at most {:.1} s without any", endured.longest.as_secs_f64());
    assert!(endured.acknowledged.len() == 4 && keys > 200, "{endured:?}");
    for at in &at {
        check_acknowledged(at, &endured).expect("all that was acknowledged");
    }
    // Ephemeral messages also cross from one replica to the other.
    check_ephemeral_delivery(&at[0], &at[1], &endured).expect("heard");
    check_ephemeral_delivery(&at[1], &at[0], &endured).expect("heard");
    // Without servers a replica reports that it's unhealthy; once they're back, it's healthy.
    (0..3).for_each(|at| cluster.servers[at].take().expect("runs").kill());
    until("a replica without servers says so", Duration::from_secs(60), || {
        health(ports[0]).is_some_and(|page| page.contains("503") && page.ends_with("no NATS server answers\n"))
    });
    (0..3).for_each(|at| cluster.start(&house, at));
    until("it is well again", Duration::from_secs(60), || health(ports[0]).is_some_and(|page| page.ends_with("ok\n")));
    cluster.leader();
    // A new replica restores everything from the servers alone.
    one.kill();
    two.kill();
    let _three = replica(&house, "R3", ports[0], &nats);
    check_acknowledged(&at[0], &endured).expect("all that was acknowledged");
}

/// Syncs until everything has arrived.
#[track_caller]
fn sync(house: &House) {
    let mut done = house.run(&["sync", "now", "--for", "50"]);
    if done.code != 0 {
        done = house.run(&["sync", "now", "--for", "50"]);
    }
    assert_eq!(done.code, 0, "{}{}{}", done.text(), done.err, house.run(&["sync", "log"]).text());
}

/// A device that shares its folder `notes` over a hub, and the shared address.
fn shares(at: &str) -> (House, String) {
    let house =
        House::with(&[("a.md", "![A cat](cat.png)\n"), ("loud.md", "```python\nprint('loud ' * 50_000)\n```\n")]);
    let address = house.json(&["sync", "share", "notes", at])["address"].as_str().expect("an address").to_owned();
    (house, address)
}

fn joins(address: &str) -> House {
    let house = House::new();
    house.run(&["init"]).good();
    // Shortly after a server was killed, joining takes longer.
    let joined = house.run(&["sync", "join", address, "notes", "--for", "50"]);
    assert!(joined.err.is_empty() || joined.err.contains("not all arrived yet"), "{}", joined.err);
    house
}

/// The number of bytes that a replica has received since it started.
fn received(house: &House, name: &str, port: u16) -> u64 {
    let token = String::from_utf8(house.read(&format!("{name}/metrics-token"))).expect("text");
    let page = get_with(port, "/metrics", &format!("Authorization: Bearer {token}\r\n")).expect("a page");
    let line = page.lines().find_map(|line| line.strip_prefix("tracebook_hub_received_bytes_total "));
    line.expect("counted").trim().parse().expect("a number")
}

#[test]
fn a_picture_that_one_replica_took_comes_from_the_other() {
    if crate::program::is_left_to_nightly() {
        return;
    }
    let house = House::new();
    let Some(mut cluster) = Cluster::new(&house) else { return };
    let nats = cluster.urls();
    let ports = [free_port().expect("a port"), free_port().expect("a port")];
    let at = ports.map(|port| format!("ws://127.0.0.1:{port}"));
    let _one = replica(&house, "R1", ports[0], &nats);
    let _two = replica(&house, "R2", ports[1], &nats);
    let (first, address) = shares(&at[0]);
    let (cat, odd) = (noise(0, 300_000), noise(0, 2 * 65_536));
    first.write("notes/cat.png", &cat);
    first.write("notes/odd.bin", &odd);
    first.write("notes/empty.bin", b"");
    first.run(&["run", "loud.md"]).good();
    sync(&first);
    let files = first.json(&["sync", "now", "--for", "50"])["hubs"][0]["files"].clone();
    assert_eq!(files, serde_json::json!({"kept": true, "coming": 0, "there": 0, "going": 0, "refused": 0}));
    // 5 + 2 + 1 pieces plus those of the output, and one completion message for each of the four files, on each server.
    let all = |(pieces, others): (u64, usize)| pieces >= 8 + 4 + 4 && others == 2;
    until("all servers have all pieces", Duration::from_secs(60), || cluster.pieces().is_some_and(all));
    // One server is gone; the others have everything.
    let leader = cluster.leader();
    cluster.servers[leader].take().expect("runs").kill();
    until("another one leads", Duration::from_secs(60), || cluster.leader() != leader);
    let second = joins(&address.replace(&at[0], &at[1]));
    sync(&second);
    assert!(second.read("notes/cat.png") == cat && second.read("notes/odd.bin") == odd);
    assert!(second.read("notes/empty.bin").is_empty());
    let blobs = [&first, &second].map(|device| bytes(&device.path("W/blobs")));
    assert!(!blobs[0].is_empty() && blobs[0] == blobs[1], "{:?}", blobs[1].keys());
    // What the second device sends to its replica reaches the first device.
    second.write("notes/cat.png", &noise(0, 70_000));
    sync(&second);
    // One server is gone, and the first replica may still be looking for another.
    until("the first has it, too", Duration::from_secs(60), || {
        sync(&first);
        first.read("notes/cat.png") == noise(0, 70_000)
    });
}

#[test]
fn an_upload_goes_on_at_another_replica_when_the_first_is_killed() {
    let house = House::new();
    let Some(cluster) = Cluster::new(&house) else { return };
    let nats = cluster.urls();
    let ports = [free_port().expect("a port"), free_port().expect("a port")];
    let at = ports.map(|port| format!("ws://127.0.0.1:{port}"));
    let one = replica(&house, "R1", ports[0], &nats);
    let (first, address) = shares(&at[0]);
    sync(&first);
    let large = noise(0, 60_000_000);
    first.write("notes/large.bin", &large);
    let mut sending = first.command(&["sync", "now", "--for", "100"]).spawn().expect("started");
    let pieces = || cluster.pieces().map_or(0, |(pieces, _)| pieces);
    until("it is on its way", Duration::from_secs(60), || pieces() > 100);
    one.kill();
    let had = pieces() * 65_536;
    assert!(had < large.len() as u64, "it was killed in the middle: {had}");
    // A new replica without data of its own listens at the same address.
    let three = replica(&house, "R3", ports[0], &nats);
    assert!(sending.wait().expect("ended").success(), "{}", first.run(&["sync", "log"]).text());
    let came = received(&house, "R3", ports[0]);
    assert!(came < large.len() as u64 - had + 4_000_000, "{came} bytes came again, {had} were there");
    three.kill();
    let _two = replica(&house, "R2", ports[1], &nats);
    let second = joins(&address.replace(&at[0], &at[1]));
    sync(&second);
    assert!(second.read("notes/large.bin") == large, "{}", second.run(&["sync", "log"]).text());
}

/// A disk of a few megabytes, unmounted on drop.
struct Small(std::path::PathBuf);

impl Small {
    /// Mounts the disk. `None` if mounting isn't permitted.
    fn at(folder: std::path::PathBuf) -> Option<Small> {
        std::fs::create_dir_all(&folder).expect("a folder");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(&folder).output();
        if mount.is_ok_and(|done| done.status.success()) {
            return Some(Small(folder));
        }
        assert!(!strict(), "TRACEBOOK_CI=1 and nothing can be mounted");
        println!("left out: needs root");
        None
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_hub_whose_disk_is_full_is_not_well_until_there_is_room() {
    let house = House::new();
    let Some(small) = Small::at(house.path("H")) else { return };
    let port = free_port().expect("a port");
    let _hub = hub(&house, "H", port, &[]);
    let at = vec![format!("ws://127.0.0.1:{port}")];
    let well = || health(port).is_some_and(|page| page.contains(" 200 ") && page.ends_with("ok\n"));
    assert!(well());
    let typists = TypingClients::start(&at, 2);
    goes_on(&typists, "there is room");
    let ballast = small.0.join("ballast");
    let mut file = std::fs::File::create(&ballast).expect("made");
    let mut bytes = 1 << 20;
    // SQLite gradually uses up the space that it reserved, and the ballast takes what it frees.
    until("it says that it is not well", Duration::from_secs(60), || {
        while bytes > 0 && file.write_all(&vec![0; bytes]).is_err() {
            bytes /= 2;
        }
        bytes = bytes.max(4096);
        health(port).is_some_and(|page| page.contains(" 503 ") && page.contains("the disk does not store what comes"))
    });
    std::fs::remove_file(&ballast).expect("removed");
    drop(file);
    until("it is well again", Duration::from_secs(60), well);
    goes_on(&typists, "there is room again");
    let endured = typists.stop();
    check_acknowledged(&at[0], &endured).expect("all that was acknowledged");
}
