//! Everyday programs in the tools' sandbox: what they need works, and what other programs execute is protected.

use super::Bench;
use std::process::Command;

fn is_there(program: &str) -> bool {
    let found =
        ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|folder| std::path::Path::new(folder).join(program).exists());
    if !found {
        println!("left out: {program} is not there");
    }
    found
}

#[track_caller]
fn works(bench: &Bench, command: &str, says: &str) {
    let done = bench.done(bench.line(&format!("set -e; {command}"), 60));
    assert!(done.success && done.text == says, "{command}: {done:?}");
}

#[test]
fn files_are_made_moved_and_marked() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    works(&bench, "umask 027; echo a > a.txt; mkdir -p d/e; stat -c %a a.txt d/e", "640\n750\n");
    works(&bench, "chmod 600 a.txt; touch -d @86400 a.txt; cp -p a.txt b.txt; stat -c '%a %Y' b.txt", "600 86400\n");
    works(&bench, "cp -a d c; mv a.txt c/e/; ln -s e/a.txt c/way; ln c/e/a.txt hard; cat c/way hard", "a\na\n");
    works(&bench, "cd c && echo more >> way && cat e/a.txt && cd .. && rm -r c d && ls", "a\nmore\nb.txt\nhard\n");
    works(&bench, "mkfifo pipe; (echo through > pipe &) ; cat pipe; rm pipe", "through\n");
    works(&bench, "echo out > /dev/stdout; echo null > /dev/null; echo three 3>&1 >/dev/fd/3", "out\nthree\n");
    works(
        &bench,
        "truncate -s 3 b.txt; wc -c < b.txt; dd if=/dev/zero of=z bs=1 count=5 2>/dev/null; wc -c < z",
        "3\n5\n",
    );
    works(
        &bench,
        "mkdir t; echo x > t/x; tar cf t.tar t; rm -r t; tar xpf t.tar; cat t/x; tar tf t.tar",
        "x\nt/\nt/x\n",
    );
    works(&bench, "f=$(mktemp); echo tmp > $f; mv $f own.txt; cat own.txt; mktemp -d > /dev/null", "tmp\n");
    works(&bench, "set -C; echo one > new; (echo two > new) 2>/dev/null || cat new", "one\n");
}

#[test]
fn interpreters_and_builds_work() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    if is_there("python3") {
        let code = "import subprocess, shutil, tempfile, threading, os, socket, asyncio\n\
                    open('a', 'w').write('x'); shutil.copy2('a', 'b')\n\
                    with tempfile.NamedTemporaryFile() as file: file.write(b'y')\n\
                    with tempfile.TemporaryFile() as file: os.fchmod(file.fileno(), 0o600)\n\
                    print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout.strip())\n\
                    print(asyncio.run(asyncio.sleep(0.01, 'slept')), os.stat('b').st_size)\n";
        bench.write("notes/try.py", code.as_bytes());
        works(&bench, "/usr/bin/python3 try.py", "sub\nslept 1\n");
    }
    if is_there("node") {
        let code = "const fs = require('fs'); fs.writeFileSync('n.txt', 'node'); fs.copyFileSync('n.txt', 'm.txt');\
                    fs.utimesSync('m.txt', 1, 1); fs.chmodSync('m.txt', 0o600);\
                    fs.promises.readFile('m.txt', 'utf8').then(console.log);\
                    console.log(require('child_process').execSync('echo child').toString().trim());";
        bench.write("notes/try.js", code.as_bytes());
        works(&bench, "node try.js", "child\nnode\n");
    }
    if is_there("gcc") && is_there("make") {
        bench.write("notes/c/a.c", b"#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n");
        bench.write("notes/c/Makefile", b"a: a.c\n\tgcc -o a a.c\n");
        works(&bench, "cd c; make -s -j2; ./a", "built\n");
    }
}

#[test]
fn git_commits_and_its_settings_stay() {
    let bench = Bench::new();
    if !bench.confined() || !is_there("git") {
        return;
    }
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(bench.root());
        command.env("HOME", bench.path("home")).env_remove("GIT_DIR");
        assert!(command.output().expect("git runs").status.success(), "{words:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.name", "a"]);
    git(&["config", "user.email", "a@b"]);
    bench.write("notes/a.txt", b"a\n");
    git(&["init", "-q", "--bare", "bare"]);
    std::fs::write(bench.path("notes/.git/info/exclude"), "bare\n").expect("written");
    let config = bench.text("notes/.git/config");
    works(&bench, "git add a.txt; git commit -qm first; git log --format=%s; git status --short", "first\n");
    works(
        &bench,
        "echo b >> a.txt; git commit -qam second; git tag v1; git checkout -qb side; git log --oneline | wc -l",
        "2\n",
    );
    works(&bench, "git stash -q 2>&1; git branch | tr -d ' *' | sort | xargs; git gc -q; git fsck 2>&1", "main side\n");
    for evil in [
        "git config core.fsmonitor evil",
        "git config --global alias.x '!evil' && git config core.hooksPath tmp",
        "echo evil > .git/hooks/post-commit",
        "mkdir -p y && git init -q y",
        "mkdir -p z && cd z && git init -q --bare",
        "printf 'gitdir: ../other\\n' > sub.git && mkdir sub && mv sub.git sub/.git",
        "mkdir -p tmp && cp -r .git/. tmp/ && mv tmp q",
        "cp -r .git/hooks .husky",
        "printf 'evil' > .git/commondir",
        "echo /other/.git/objects > .git/objects/info/alternates",
        "ln -s /other/.git/objects/ab .git/objects/ab",
        "ln -s /other/.git/objects/ac ac && mv ac .git/objects/ac",
        "ln -s /other/.git/objects/ad ad && ln -P ad .git/objects/ad",
        "mkdir l && ln -s /other/.git/objects/ae l/ae && mv l .git/refs/l",
        "tar cf t.tar .git && mkdir u && tar xf t.tar -C u",
        "echo evil > bare/hooks/update",
        "echo evil >> bare/config",
        "mv bare/hooks bare/mine",
        "echo evil > .envrc",
        "mkdir .vscode",
        "perl -e 'mkdir \".GIT\" or exit 1'",
        "rm -rf .git",
    ] {
        let done = bench.done(bench.line(evil, 60));
        assert!(!done.success, "{evil}: {done:?}");
        assert!(done.text.contains("(not written: "), "{evil}: {done:?}");
    }
    assert_eq!(bench.text("notes/.git/config"), config);
    for gone in
        [".git/hooks/post-commit", "y/.git", "sub/.git", ".husky", ".envrc", ".vscode", "u/.git/config", "z/HEAD"]
    {
        assert!(std::fs::symlink_metadata(bench.path("notes").join(gone)).is_err(), "{gone}");
    }
}

#[test]
fn metadata_outside_stays_and_nobody_else_is_reached() {
    let bench = Bench::new();
    if !bench.confined() {
        return;
    }
    use std::os::unix::fs::MetadataExt;
    let beside = bench.path("home/letter.txt");
    let about = || {
        let meta = std::fs::metadata(&beside).expect("there");
        (meta.mode(), meta.mtime(), meta.ctime(), meta.ctime_nsec())
    };
    let before = about();
    let bus = std::os::unix::net::UnixDatagram::bind(bench.path("notes/bus")).expect("a socket");
    bus.set_nonblocking(true).expect("set");
    let path = beside.display();
    for evil in [
        format!("chmod 777 {path}"),
        format!("chown $(id -u) {path}"),
        format!("touch -d @1 {path}"),
        format!("touch -h -d @1 {path}"),
        format!("ln -s {path} way; chmod 777 way"),
        format!("setfattr -n user.x -v 1 {path}"),
        format!("perl -e 'utime(1, 1, \"{path}\") or exit 1'"),
        // fchmod, fchown, fsetxattr on a file that is open only for reading, such as a shared library.
        "perl -e 'open(F, \"<\", \"/etc/passwd\"); chmod(0777, *F) or exit 1'".to_owned(),
        "perl -e 'open(F, \"<\", \"/etc/passwd\"); chown($<, 0, *F) or exit 1'".to_owned(),
        // sethostname, shmget, open_tree, fsopen, io_uring_setup, memfd_secret, keyctl, ptrace, userfaultfd, mount.
        "perl -e 'syscall(170, \"evil\", 4) == 0 or exit 1'".to_owned(),
        "perl -e 'syscall(29, 0, 4096, 01600) >= 0 or exit 1'".to_owned(),
        "perl -e 'syscall(428, -100, \"/\", 1) >= 0 or exit 1'".to_owned(),
        "perl -e 'syscall(430, \"tmpfs\", 0) >= 0 or exit 1'".to_owned(),
        "perl -e 'syscall(425, 1, \"\\0\" x 120) >= 0 or exit 1'".to_owned(),
        "perl -e 'syscall(447, 0) >= 0 or exit 1'".to_owned(),
        "perl -e 'syscall(250, 0, -3, 1) >= 0 or exit 1'".to_owned(),
        "perl -e 'syscall(101, 0, 0, 0, 0) >= 0 or exit 1'".to_owned(),
        "perl -e 'syscall(323, 1) >= 0 or exit 1'".to_owned(),
        "perl -e 'syscall(0x40000000 + 105, 0) == 0 or exit 1'".to_owned(),
        // A new user namespace, and openat2, whose arguments no filter can inspect.
        "perl -e 'syscall(56, 0x10000000 | 17, 0, 0, 0, 0) >= 0 or exit 1'".to_owned(),
        format!("perl -e 'syscall(437, -100, \"{path}\", pack(\"QQQ\", 2, 0, 0), 24) >= 0 or exit 1'"),
        "perl -e 'use Socket; socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or exit 1; send(A, 1, 0, sockaddr_un(\"bus\"))'"
            .to_owned(),
        "perl -e 'require \"sys/ioctl.ph\"; ioctl(STDIN, 0x5412, \"x\") or exit 1'".to_owned(),
        "mkdir s && chmod 4755 s/../own 2>/dev/null || { cp /bin/true own && chmod 4755 own; }".to_owned(),
        "echo x > /dev/shm/tracebook-was-here".to_owned(),
        "cat /proc/1/environ /proc/$PPID/environ".to_owned(),
        format!("cat /proc/{}/cmdline", std::process::id()),
    ] {
        let done = bench.shell(&evil);
        assert!(!done.success, "{evil}: {done:?}");
    }
    assert_eq!(about(), before);
    assert!(bus.recv(&mut [0; 9]).is_err(), "nothing came");
}
