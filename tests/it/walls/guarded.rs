//! What cells may not change: metadata outside their folder, and files inside it that other programs execute.

use super::{WalledHouse, fails, has, house, tried};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

/// Runs each attempt in one cell. Returns a line for each: `refused`, `missing`, or `through` and the attempt.
fn attempts(house: &WalledHouse, attempts: &[String]) -> String {
    // To the guest in WebAssembly, what it doesn't reach isn't there, and errors have other numbers.
    let refusals = if house.pack.is_some() { "True" } else { "error.errno == 38" };
    // `chmod` does nothing there, and says nothing.
    let is_possible = |attempt: &&String| house.pack.is_none() || !attempt.contains("os.chmod(");
    let attempts: Vec<&String> = attempts.iter().filter(is_possible).collect();
    let code = format!(
        "import os, socket\nfor attempt in {attempts:?}:\n    try: exec(attempt)\n    except PermissionError: \
         print('refused')\n    except (AttributeError, ImportError, NotImplementedError, TypeError): \
         print('missing')\n    except OSError as error: \
         print('refused' if {refusals} else 'failed %d %s' % (error.errno, attempt))\n    \
         else: print('through', attempt)"
    );
    let (status, printed) = tried(house, &code, &[]);
    assert_eq!(status, 0, "{printed}");
    printed
}

#[track_caller]
pub(super) fn all_refused(house: &WalledHouse, list: &[String]) {
    let printed = attempts(house, list);
    assert!(!printed.contains("through") && !printed.contains("failed"), "{printed}");
    assert_eq!(printed.lines().count(), list.len(), "{printed}");
}

#[test]
fn metadata_outside_the_folder_stays_as_it_is() {
    let house = house();
    if !try_to_change_metadata(&house) {
        return;
    }
    // The same calls work inside the folder.
    let well = "import os, shutil, stat\nopen('a.txt', 'w').write('a'); os.chmod('a.txt', 0o600)\n\
                os.utime('a.txt', (1, 86400)); shutil.copy2('a.txt', 'b.txt'); os.rename('b.txt', 'c.txt')\n\
                os.makedirs('d/e'); shutil.move('c.txt', 'd/e'); about = os.stat('d/e/c.txt')\n\
                oct(stat.S_IMODE(about.st_mode)), about.st_mtime";
    assert_eq!(tried(&house, well, &[]), (0, "('0o600', 86400.0)\n".to_owned()));
}

/// Tries to change metadata outside the note's folder. Returns whether there are walls here at all.
pub(super) fn try_to_change_metadata(house: &WalledHouse) -> bool {
    if !has(house, "files") {
        return false;
    }
    house.write("beside.txt", b"mine");
    house.write("data/in.txt", b"granted to read");
    let beside = house.path("beside.txt");
    let granted = house.path("data").canonicalize().expect("there");
    house.run(&["grant", "try.md", "--read", granted.to_str().expect("text")]).good();
    std::fs::set_permissions(&beside, PermissionsExt::from_mode(0o640)).expect("set");
    let about = |name: &str| {
        let meta = std::fs::metadata(house.path(name)).expect("there");
        (meta.mode(), meta.uid(), meta.mtime(), meta.ctime(), meta.ctime_nsec())
    };
    let before = (about("beside.txt"), about("data/in.txt"));
    let inside = granted.join("in.txt");
    let mut list = Vec::new();
    for path in [beside.to_string_lossy().into_owned(), inside.to_string_lossy().into_owned()] {
        list.push(format!("os.chmod({path:?}, 0o777)"));
        list.push(format!("os.chown({path:?}, os.getuid(), os.getgid())"));
        list.push(format!("os.utime({path:?}, (1, 1))"));
        list.push(format!("os.setxattr({path:?}, 'user.x', b'1')"));
        list.push(format!("os.truncate({path:?}, 0)"));
        list.push(format!("os.symlink({path:?}, 'way'); os.chmod('way', 0o777)"));
        list.push(format!("os.unlink('way') if os.path.islink('way') else None; os.link({path:?}, 'hard')"));
    }
    // A descriptor that is open only for reading.
    let path = inside.to_string_lossy().into_owned();
    list.push(format!("os.fchmod(os.open({path:?}, os.O_RDONLY), 0o777)"));
    list.push(format!("os.fchown(os.open({path:?}, os.O_RDONLY), os.getuid(), os.getgid())"));
    list.push(format!("os.utime(os.open({path:?}, os.O_RDONLY), (1, 1))"));
    list.push(format!("os.open('/proc/self/fd/%d' % os.open({path:?}, os.O_RDONLY), os.O_RDWR)"));
    let printed = attempts(house, &list);
    let through = printed.lines().find(|line| line.starts_with("through") || line.starts_with("failed"));
    assert_eq!(through, None, "{printed}");
    assert_eq!((about("beside.txt"), about("data/in.txt")), before);
    assert_eq!(house.read("beside.txt"), b"mine");
    true
}

#[test]
fn what_other_programs_execute_is_not_written() {
    let house = house();
    if !try_to_write_what_is_executed(&house) {
        return;
    }
    fails(&house, "open('.envrc', 'w')", "files that other programs execute");
    assert_eq!(tried(&house, "open('.git/config').read()", &[]), (0, "'[core]\\n'\n".to_owned()), "to read it is fine");
}

/// Tries to write files that other programs execute. Returns whether there are walls here at all.
pub(super) fn try_to_write_what_is_executed(house: &WalledHouse) -> bool {
    if !has(house, "files") {
        return false;
    }
    house.write("notes/.git/config", b"[core]\n");
    house.write("notes/.git/hooks/pre-commit.sample", b"#!/bin/sh\n");
    house.write("notes/.vscode/tasks.json", b"{}");
    let names = [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/config.lock",
        ".vscode/tasks.json",
        ".envrc",
        ".husky.txt/../.envrc",
        ".pre-commit-config.yaml",
        "agents/evil.py",
        "sub/.git",
        ".venv/share",
        "x/HEAD",
    ];
    let mut list: Vec<String> = vec!["os.makedirs('x'); os.makedirs('tmp/hooks'); raise PermissionError".to_owned()];
    list.push("os.mkdir('.husky.txt'); raise PermissionError".to_owned());
    list.push("os.mkdir('sub'); raise PermissionError".to_owned());
    list.extend(names.iter().map(|name| format!("open({name:?}, 'w').write('evil')")));
    // Ways around the check of names: other calls that create folders, links, renames, descriptors.
    let ways = [
        "os.mkdir('.husky')",
        "os.mkdir('sub/.GIT')",
        "os.rename('tmp', '.husky')",
        "os.rename('tmp', 'sub/.git')",
        "os.symlink('tmp', '.idea')",
        "os.symlink('.git/hooks', 'way'); open('way/pre-commit', 'w')",
        "open('way/pre-push', 'w')",
        "os.link('.git/config', 'hard')",
        "os.rename('.git', 'mine')",
        "os.rename('.git/hooks/pre-commit.sample', '.git/hooks/pre-commit')",
        "os.unlink('.git/config')",
        "os.chmod('.git/hooks/pre-commit.sample', 0o755)",
        "os.truncate('.git/config', 0)",
        "os.open('pre-commit', os.O_CREAT | os.O_WRONLY, dir_fd=os.open('.git/hooks', os.O_RDONLY))",
        "os.chdir('.git'); os.chdir('hooks'); open('pre-commit', 'w')",
        "os.chdir(home); os.mknod('.envrc')",
        "os.replace('tmp', 'agents')",
        "os.makedirs('projects/p'); os.mkdir('projects/p/agents')",
        "os.makedirs('held/agents'); os.rename('held', 'components')",
        "os.rename('held', 'projects/q')",
    ];
    list.push("import builtins; builtins.home = os.getcwd(); raise PermissionError".to_owned());
    list.extend(ways.map(ToOwned::to_owned));
    let printed = attempts(house, &list);
    assert!(!printed.contains("through"), "{printed}");
    let failed: Vec<&str> = printed.lines().filter(|line| line.starts_with("failed")).collect();
    // Folders that couldn't be created contain no files.
    assert!(
        failed.iter().all(|line| line.contains("failed 2 ") && line.contains("agents/evil.py")
            || line.contains("failed 2 ") && line.contains(".venv/share")),
        "{printed}"
    );
    assert_eq!(house.read("notes/.git/config"), b"[core]\n");
    assert_eq!(house.read("notes/.vscode/tasks.json"), b"{}");
    for gone in [".git/hooks/pre-commit", ".envrc", ".husky", "agents", "sub/.git", "sub/.GIT", "components", ".idea"] {
        let path = house.path("notes").join(gone);
        assert!(std::fs::symlink_metadata(&path).is_err(), "{gone}");
    }
    true
}

#[test]
fn the_machine_and_other_programs_are_out_of_reach() {
    let house = house();
    if !has(&house, "network") {
        return;
    }
    let socket = house.path("notes/bus");
    let bus = std::os::unix::net::UnixDatagram::bind(&socket).expect("a socket");
    bus.set_nonblocking(true).expect("set");
    let list = [
        "import ctypes",
        "import _ctypes",
        "os.sethostname('evil')",
        "socket.sethostname('evil')",
        "os.mknod('device', 0o60600, os.makedev(8, 0))",
        "os.mknod('device', 0o20600, os.makedev(1, 3))",
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "os.getxattr('../beside.txt', 'user.x')",
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.unshare(os.CLONE_NEWUSER)",
        "os.memfd_create('x')",
        "os.pidfd_open(os.getppid())",
        "os.kill(os.getppid(), 0)",
        "os.killpg(os.getpgid(0), 0)",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 5)",
        "os.sched_setaffinity(os.getppid(), {0})",
        "os.setsid()",
        "os.setuid(0)",
        "os.setgroups([])",
        "os.chroot('.')",
        "open('/proc/%d/environ' % os.getppid()).read()",
        "open('/proc/%d/cmdline' % os.getppid()).read()",
        "open('/proc/self/mem', 'rb')",
        "open('/dev/shm/x', 'w')",
        "os.listdir('/tmp')",
        "from multiprocessing import shared_memory; shared_memory.SharedMemory('x', create=True, size=9)",
    ];
    all_refused(&house, &list.map(ToOwned::to_owned));
    // A stream socket pair is connected, so it can't send elsewhere.
    let code = "import socket\na, b = socket.socketpair()\na.send(b'x')\nprint(b.recv(1))\n\
                try: a.sendto(b'evil', 'bus')\nexcept OSError: print('refused')";
    assert_eq!(tried(&house, code, &[]), (0, "b'x'\nrefused\n".to_owned()));
    assert!(bus.recv(&mut [0; 9]).is_err(), "nothing came");
}

#[test]
fn neither_open_files_nor_keys_are_inherited() {
    let house = house();
    house.write("secret.txt", b"planted");
    let code = "import os\nfound = []\n\
                for number in range(3, 64):\n    try: found.append(os.pread(number, 99, 0))\n    except OSError: pass\n\
                found, [name for name in os.environ if 'KEY' in name]";
    let request = serde_json::json!({
        "header": {"msg_type": "execute_request", "msg_id": "1"},
        "parent_header": {},
        "content": {"code": code, "cell": "cell", "silent": false},
    });
    // The shell passes an open file to the kernel.
    let mut shell = std::process::Command::new("sh");
    let line = format!("exec 9<secret.txt 8<>secret.txt; exec {:?} kernel", crate::program::PROGRAM);
    shell.arg("-c").arg(line).current_dir(house.path("")).env_clear().env("PATH", "/usr/bin:/bin");
    let mut kernel = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let mut input = kernel.stdin.take().expect("piped");
    writeln!(input, "{request}").expect("taken");
    let said = BufReader::new(kernel.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let said: Vec<String> = said.take_while(|line| !line.contains("execute_reply")).collect();
    drop(input);
    kernel.wait().expect("ended");
    assert!(said.iter().any(|line| line.contains("\"([], [])\"")), "{said:?}");
    // A cell sees no keys from the environment, either.
    house.write("notes/try.md", format!("```python\n{code}\n```\n").as_bytes());
    let mut run = house.command(&["run", "try.md"]);
    run.env("OPENAI_API_KEY", "planted").env("MY_KEY", "planted");
    assert_eq!(crate::program::finish(run, b"").good().text(), "([], [])\n");
}

/// A library placed beside the note would run code as soon as it's loaded.
#[test]
fn no_machine_code_is_loaded() {
    let house = house();
    let compiler = std::process::Command::new("cc").arg("--version").output();
    if !has(&house, "files") || compiler.is_err() {
        println!("left out: no compiler, or no walls");
        return;
    }
    house.write(
        "evil.c",
        b"#include <fcntl.h>\n__attribute__((constructor)) void run(void) { creat(\"ran.txt\", 0600); }",
    );
    let mut compile = std::process::Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o", "notes/evil.so", "evil.c"]).current_dir(house.path(""));
    assert!(compile.status().expect("run").success());
    let load = "import _imp, importlib.machinery as m, importlib.util as u\n\
                path = './evil.so'\n\
                spec = u.spec_from_file_location('evil', path, loader=m.ExtensionFileLoader('evil', path))\n\
                for way in (u.module_from_spec, getattr(_imp, 'create_dynamic', None)):\n    \
                try: way(spec)\n    except Exception as error: print(type(error).__name__)";
    let (_, printed) = tried(&house, load, &[]);
    assert!(!house.path("notes/ran.txt").exists(), "{printed}");
    // In a subinterpreter, whose modules are the original ones.
    let inside = format!("import _interpreters as i\ni.run_string(i.create(), {load:?})");
    let (_, printed) = tried(&house, &inside, &[]);
    assert!(!house.path("notes/ran.txt").exists(), "{printed}");
    fails(&house, "import evil", "No module named 'evil'");
}
