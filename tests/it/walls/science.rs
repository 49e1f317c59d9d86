//! The same attempts from the science kernel. Its cells are in WebAssembly, which is behind the same walls.

use super::guarded::{all_refused, try_to_change_metadata, try_to_write_what_is_executed};
use super::{WalledHouse, fails, has, science_house, tried, try_a_note_in_the_home_folder};
use crate::program::finish;

/// A note that keeps its variables, with a cell for each code.
fn keeps_variables(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|code| format!("```python\n{code}\n```\n")).collect();
    format!("---\nkernel: science\n---\n{}", cells.join("\n"))
}

fn grant(house: &WalledHouse, flag: &str, path: &std::path::Path) {
    house.run(&["grant", "try.md", flag, path.to_str().expect("text")]).good();
}

#[test]
fn memory_has_an_end_in_webassembly() {
    let Some(house) = science_house() else { return };
    // 2 GiB in all. The blocks aren't touched, so that they take no memory of this machine.
    let code = "import numpy as np\nblocks = []\ntry:\n    while True: blocks.append(np.empty(256 << 20, 'uint8'))\n\
                except MemoryError: print('MemoryError after', len(blocks))\nblocks.clear()\n\
                def deep(n): return deep(n + 1)\ntry: deep(0)\nexcept RecursionError: print('RecursionError')\n\
                print('and on')";
    let (status, printed) = tried(&house, code, &[]);
    let blocks = printed.lines().next().and_then(|line| line.strip_prefix("MemoryError after ")?.parse::<u32>().ok());
    assert!(status == 0 && matches!(blocks, Some(4..=7)), "{printed}");
    assert!(printed.ends_with("\nRecursionError\nand on\n"), "{printed}");
}

/// C code that calls itself without end runs out of WebAssembly's stack, which ends that Python, but not the kernel.
#[test]
fn an_exhausted_stack_costs_one_cell() {
    let Some(house) = science_house() else { return };
    let deep = "x = []\nfor _ in range(1_000_000): x = [x]\nx = None";
    let note = keeps_variables(&["kept = 41", deep, "print('kept', kept + 1)"]);
    house.write("notes/try.md", note.as_bytes());
    let done = house.run(&["run", "try.md"]).code(1);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("the cell ended Python; variables are as they were before it"), "{said}");
    assert_eq!(house.run(&["run", "try.md", "--cell", "3"]).good().text(), "kept 42\n");
}

#[test]
fn output_and_messages_to_the_host_have_an_end() {
    let Some(house) = science_house() else { return };
    // `_host` is how the guest reaches the kernel: cells can send any message themselves.
    let code = "import _host, json\n\
                def send(*message): _host.call(json.dumps(message).encode())\n\
                for message in [b'', b'{', b'7', b'[\"stream\"]', b'[\"stream\", 7]', b'[\"x\", {}]', \
                bytes(65 << 20)]:\n    \
                try: _host.call(message)\n    except Exception as error: print(type(error).__name__)\n\
                for _ in range(12): send('error', {'ename': 'Forged', 'evalue': 'x' * 100_000, 'traceback': []})\n\
                send('reply', {'status': 'forged', 'defined': 7})\n\
                send('stream', {'name': 'stdout', 'text': 'y' * 9_000_000})\nprint('never shown')";
    let (_, printed) = tried(&house, code, &[]);
    assert!(printed.contains("output limit of 8 MiB reached"), "{printed:.2000}");
    assert!(printed.contains("error limit of 1 MiB reached"), "{printed:.2000}");
    assert!(printed.len() < 10 << 20 && printed.matches("Forged").count() < 12, "{}", printed.len());
    assert!(!printed.contains("never shown"), "it's beyond the limit");
}

#[test]
fn no_way_leads_out_of_the_folder() {
    let Some(house) = science_house() else { return };
    house.write("beside.txt", b"mine");
    house.write(".ssh/id_ed25519", b"secret");
    house.write("notes/in.txt", b"in");
    house.write("notes/sub/in.txt", b"in");
    for (target, link) in [("../beside.txt", "file"), ("..", "up"), ("../W", "workspace"), ("..", "sub/inner")] {
        std::os::unix::fs::symlink(target, house.path("notes").join(link)).expect("linked");
    }
    std::os::unix::fs::symlink(house.path("beside.txt"), house.path("notes/whole")).expect("linked");
    let beside = house.path("beside.txt").to_string_lossy().into_owned();
    let secret = house.path(".ssh/id_ed25519").to_string_lossy().into_owned();
    let mut list: Vec<String> = vec![format!("open({beside:?}).read()"), format!("open({secret:?}).read()")];
    let ways = [
        "open('file').read()",
        "open('whole').read()",
        "open('file', 'w')",
        "open('up/beside.txt').read()",
        "open('../beside.txt').read()",
        "open('/note/../beside.txt', 'a')",
        "open('sub/../../beside.txt').read()",
        "open('workspace/lock').read()",
        "open(os.path.expanduser('~/../../lock')).read()",
        "os.listdir('..')",
        "os.listdir('up')",
        "os.listdir('/')",
        "os.listdir('workspace')",
        "os.chdir('..')",
        "os.chdir('up')",
        "os.open('beside.txt', os.O_RDONLY, dir_fd=os.open('up', os.O_RDONLY))",
        "os.symlink('../beside.txt', 'made'); open('made').read()",
        "open('made', 'a')",
        "os.symlink('/etc/passwd', 'made2'); open('made2').read()",
        "os.rename('in.txt', '../moved.txt')",
        "os.rename('in.txt', 'up/moved.txt')",
        "os.rename('../beside.txt', 'taken.txt')",
        "os.rename('sub/inner', 'outer'); os.listdir('outer')",
        "open('outer/beside.txt').read()",
        "os.replace('sub', '../sub')",
        "os.link('../beside.txt', 'hard')",
        "os.link('whole', 'hard2'); open('hard2').read()",
        "os.remove('../beside.txt')",
        "os.remove('up/beside.txt')",
        "os.truncate('whole', 0) or open('whole').read()",
        "os.mkdir('../made')",
        "os.rmdir('../W')",
        "open('/usr/local/lib/python315.zip', 'r+b')",
        "open('/usr/local/lib/sitecustomize.py', 'w')",
        "open('/etc/passwd').read()",
        "open('/proc/self/environ').read()",
        "open('/dev/mem', 'rb').read(1)",
    ];
    list.extend(ways.map(ToOwned::to_owned));
    all_refused(&house, &list);
    assert_eq!((house.read("beside.txt"), house.read(".ssh/id_ed25519")), (b"mine".to_vec(), b"secret".to_vec()));
    assert!(!house.path("moved.txt").exists() && !house.path("made").exists() && house.path("notes/in.txt").exists());
}

#[test]
fn metadata_stays_as_it_is() {
    let Some(house) = science_house() else { return };
    if !try_to_change_metadata(&house) {
        return;
    }
    let well = "import os, shutil\nopen('a.txt', 'w').write('a'); os.utime('a.txt', (1, 86400))\n\
                shutil.copy2('a.txt', 'b.txt'); os.rename('b.txt', 'c.txt')\n\
                os.makedirs('d/e'); shutil.move('c.txt', 'd/e'); os.stat('d/e/c.txt').st_mtime";
    assert_eq!(tried(&house, well, &[]), (0, "86400.0\n".to_owned()), "these calls work inside the folder");
}

#[test]
fn what_other_programs_execute_is_not_written_by_science() {
    let Some(house) = science_house() else { return };
    if try_to_write_what_is_executed(&house) {
        fails(&house, "print(open('.git/config').read())\nopen('.envrc', 'w')", "PermissionError");
    }
}

#[test]
fn a_note_of_science_in_the_home_folder_does_not_open_what_is_hidden_there() {
    let Some(house) = science_house() else { return };
    try_a_note_in_the_home_folder(&house);
}

#[test]
fn neither_network_nor_processes_nor_keys_are_reached() {
    let Some(house) = science_house() else { return };
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let connect = format!("socket.create_connection(('127.0.0.1', {port}), 1)");
    let ways = [
        connect.as_str(),
        "socket.socket()",
        "socket.socketpair()",
        "socket.fromfd(3, socket.AF_INET, socket.SOCK_STREAM)",
        "os.fork()",
        "os.execv('/bin/true', ['true'])",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.system('true')",
        "import subprocess; subprocess.run(['/bin/true'])",
        "os.kill(os.getppid(), 0)",
        "import _ctypes",
        "import multiprocessing; multiprocessing.Process(target=print).start()",
        "import mmap; mmap.mmap(-1, 4096)",
    ];
    all_refused(&house, &ways.map(ToOwned::to_owned));
    let code = "import os\nfound = []\nfor number in range(3, 64):\n    \
                try: found.append(os.pread(number, 99, 0))\n    except OSError: pass\n\
                found, [name for name in os.environ if 'KEY' in name]";
    house.write("notes/try.md", house.note(code).as_bytes());
    let mut run = house.command(&["run", "try.md"]);
    run.env("OPENAI_API_KEY", "planted").env("MY_KEY", "planted");
    assert_eq!(finish(run, b"").good().text(), "([], [])\n");
}

/// A folder to read, one to write, and single files: what lies beside them stays closed.
#[test]
fn science_reaches_what_is_granted_and_nothing_beside_it() {
    let Some(house) = science_house() else { return };
    if !has(&house, "files") {
        return;
    }
    for file in ["read/in.txt", "write/in.txt", "files/one.txt", "files/two.txt", "files/beside.txt"] {
        house.write(file, file.as_bytes());
    }
    let whole = |name: &str| house.path(name).canonicalize().expect("there");
    grant(&house, "--read", &whole("read"));
    grant(&house, "--write", &whole("write"));
    grant(&house, "--read", &whole("files/one.txt"));
    grant(&house, "--write", &whole("files/two.txt"));
    let base = whole("").to_string_lossy().into_owned();
    let attempts = [
        "open(at('read/in.txt'), 'w')",
        "open(at('read/new.txt'), 'w')",
        "os.remove(at('read/in.txt'))",
        "os.rename(at('read/in.txt'), at('write/moved.txt'))",
        "open(at('files/one.txt'), 'a')",
        "os.remove(at('files/one.txt'))",
        "open(at('files/beside.txt')).read()",
        "open(at('files/beside.txt'), 'w')",
        "os.rename(at('files/beside.txt'), at('files/one.txt'))",
        "os.rename(at('files/two.txt'), at('files/beside.txt'))",
        "open(at('files/new.txt'), 'w')",
        "os.link(at('files/beside.txt'), at('write/hard.txt'))",
        "os.listdir(at('files'))",
        "open(at('notes/well.md')).read()",
        "open(at('write/.envrc'), 'w')",
    ];
    let code = format!(
        "import os\ndef at(name): return os.path.join({base:?}, name)\n\
         print(open(at('read/in.txt')).read(), os.listdir(at('read')), open(at('files/one.txt')).read())\n\
         open(at('write/new.txt'), 'w').write('new')\nopen(at('files/two.txt'), 'w').write('written')\n\
         for attempt in {attempts:?}:\n    try: exec(attempt)\n    except OSError: pass\n    \
         else: print('through', attempt)"
    );
    let (status, printed) = tried(&house, &code, &[]);
    assert_eq!((status, printed.as_str()), (0, "read/in.txt ['in.txt'] files/one.txt\n"));
    assert_eq!((house.read("write/new.txt"), house.read("files/two.txt")), (b"new".to_vec(), b"written".to_vec()));
    for file in ["read/in.txt", "write/in.txt", "files/one.txt", "files/beside.txt"] {
        assert_eq!(house.read(file), file.as_bytes());
    }
    assert_eq!(std::fs::read_dir(house.path("files")).expect("read").count(), 3);
    assert!(!house.path("write/.envrc").exists());
}

/// The kernel itself writes the note's states, so a folder around them isn't opened to its guest.
#[test]
fn a_folder_with_files_of_the_program_is_not_opened() {
    let Some(house) = science_house() else { return };
    house.write("lone.txt", b"beside the workspace");
    for path in ["lone.txt", "."] {
        grant(&house, "--write", &house.path(path).canonicalize().expect("there"));
        fails(
            &house,
            "print('runs')",
            "because Tracebook's own files are in that folder or below it; grant a folder without",
        );
        house.run(&["grant", "try.md", "--none"]).good();
    }
    assert_eq!(tried(&house, "print('runs')", &[]), (0, "runs\n".to_owned()));
}

/// Saved memory knows granted folders by number. After another grant, a path must not lead to another folder.
#[test]
fn restored_variables_do_not_mistake_one_granted_folder_for_another() {
    let Some(house) = science_house() else { return };
    house.write("one/name.txt", b"one");
    house.write("two/name.txt", b"two");
    let whole = |name: &str| house.path(name).canonicalize().expect("there");
    let (one, two) = (whole("one"), whole("two"));
    let look = "for path in paths:\n    try: print(open(path + '/name.txt').read(), kept)\n    \
                except OSError as error: print(type(error).__name__)";
    let paths = format!("kept = 41\npaths = [{one:?}, {two:?}]");
    house.write("notes/try.md", keeps_variables(&[&paths, look]).as_bytes());
    grant(&house, "--write", &one);
    assert_eq!(house.run(&["run", "try.md"]).good().text(), "one 41\nFileNotFoundError\n");
    house.run(&["grant", "try.md", "--none"]).good();
    grant(&house, "--write", &two);
    let done = house.run(&["run", "try.md", "--cell", "2"]).code(0);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("FileNotFoundError\nFileNotFoundError\n"), "{said}");
    assert!(said.contains("was granted, so cells don't reach it. Restart the kernel"), "{said}");
    assert!(said.contains(two.to_str().expect("text")) && !said.contains(one.to_str().expect("text")), "{said}");
    // Without variables, the new folder is reached.
    house.run(&["kernels", "undo", "try.md"]).good();
    house.run(&["kernels", "undo", "try.md"]).good();
    assert_eq!(house.run(&["run", "try.md"]).good().text(), "FileNotFoundError\ntwo 41\n");
}
