//! Servers and replicas that are behind: what one replica has acknowledged, another serves, even if it hasn't heard of
//! it yet.

use super::{Cluster, Runs, joins, replica, shares, sync, until};
use crate::program::{House, bytes, noise};
use std::process::Command;
use std::time::{Duration, Instant};
use support::hub_load::free_port;

/// A process that is stopped until this is dropped: it receives nothing, and nothing sent to it is lost.
struct Still(u32);

impl Still {
    fn hold(runs: &Runs) -> Still {
        let still = Still(runs.0.id());
        still.signal("-STOP");
        still
    }

    fn signal(&self, signal: &str) {
        let done = Command::new("kill").args([signal, &self.0.to_string()]).status();
        assert!(done.is_ok_and(|done| done.success()), "{signal}");
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

/// Writes many notes and a picture, and waits until the hub has acknowledged them all.
fn acknowledged(device: &House, round: usize) {
    for number in 0..100 {
        let words: Vec<String> = noise(number, 2_000).iter().map(u8::to_string).collect();
        let text = format!("# Note {number} of round {round}\n\n{}\n", words.join(" "));
        device.write(&format!("notes/{round}/note {number}.md"), text.as_bytes());
    }
    device.write(&format!("notes/{round}/picture.png"), &noise(round as u8, 2_000_000));
    sync(device);
}

#[track_caller]
fn same(one: &House, other: &House) {
    let files = [one, other].map(|device| bytes(&device.path("notes")));
    let differs: Vec<&String> =
        files[0].iter().filter(|(path, bytes)| files[1].get(*path) != Some(*bytes)).map(|(path, _)| path).collect();
    let log = other.run(&["sync", "log"]).text();
    assert!(files[0] == files[1], "{} of {} differ, {:?}: {log}", differs.len(), files[0].len(), differs.first());
}

#[test]
fn what_is_acknowledged_is_served_while_a_server_is_behind() {
    if crate::program::is_left_to_nightly() {
        return;
    }
    let house = House::new();
    let Some(mut cluster) = Cluster::new(&house) else { return };
    let ports = [free_port().expect("a port"), free_port().expect("a port")];
    let at = ports.map(|port| format!("ws://127.0.0.1:{port}"));
    // The replica that serves the second device knows only one server: the one that will be behind.
    let late = 2;
    let url = |server: usize| format!("nats://127.0.0.1:{}", cluster.ports[server]);
    let others: Vec<String> = (0..3).filter(|server| *server != late).map(url).collect();
    let (others, alone) = (others.join(","), url(late));
    let _one = replica(&house, "R1", ports[0], &others);
    let (first, address) = shares(&at[0]);
    sync(&first);
    let elsewhere = address.replace(&at[0], &at[1]);

    // The server was stopped while much was written.
    let still = Still::hold(cluster.servers[late].as_ref().expect("runs"));
    acknowledged(&first, 0);
    drop(still);
    let two = replica(&house, "R2", ports[1], &alone);
    let second = joins(&elsewhere);
    sync(&second);
    same(&first, &second);

    // The server starts again after losing its disk.
    two.kill();
    cluster.servers[late].take().expect("runs").kill();
    acknowledged(&first, 1);
    std::fs::remove_dir_all(house.path(&format!("nats{late}"))).expect("removed");
    cluster.start(&house, late);
    let _two = replica(&house, "R2", ports[1], &alone);
    let third = joins(&elsewhere);
    sync(&third);
    same(&first, &third);
    sync(&second);
    same(&first, &second);
}

#[test]
fn what_is_acknowledged_is_served_by_a_replica_that_stood_still() {
    if crate::program::is_left_to_nightly() {
        return;
    }
    let house = House::new();
    let Some(cluster) = Cluster::new(&house) else { return };
    let nats = cluster.urls();
    let ports = [free_port().expect("a port"), free_port().expect("a port")];
    let at = ports.map(|port| format!("ws://127.0.0.1:{port}"));
    let _one = replica(&house, "R1", ports[0], &nats);
    let two = replica(&house, "R2", ports[1], &nats);
    let (first, address) = shares(&at[0]);
    sync(&first);
    let elsewhere = address.replace(&at[0], &at[1]);
    // This device stays connected, so that its replica's memory has data that becomes stale.
    let second = joins(&elsewhere);
    sync(&second);
    let _stays = second.owner("a.md");
    let still = Still::hold(&two);
    let since = Instant::now();
    acknowledged(&first, 0);
    first.edit("a.md", 0, 0, "Meanwhile. ");
    sync(&first);
    // After 30 s NATS drops the subscriptions of a client that no longer asks.
    std::thread::sleep(Duration::from_secs(34).saturating_sub(since.elapsed()));
    drop(still);
    let third = joins(&elsewhere);
    sync(&third);
    same(&first, &third);
    until("who stayed has it, too", Duration::from_secs(60), || {
        bytes(&second.path("notes")) == bytes(&first.path("notes"))
    });
}
