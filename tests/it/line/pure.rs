//! Cells marked as pure: their results are cached across kernels, by their code and inputs.

use crate::program::House;

const NOTE: &str = "```python
n = 3
class Boat:
    def __init__(self, mast): self.mast = mast
def twice(x): return x * factor
factor = 2
```

```python pure
import time, math
print('works', n)
total = twice(n) + math.floor(1.5)
words = {'a', 'b', 'c'}
total
```

```python
# pure
more = sorted(words) + [total]
more
```

```python
time.time() > 0, more
```
";

fn ran(house: &House) -> String {
    house.run(&["run", "pure.md"]).good().text()
}

fn cached(house: &House) -> Vec<bool> {
    let lines = house.run(&["outputs", "pure.md"]).good().text();
    lines.lines().filter(|line| line.starts_with("cell ")).map(|line| line.contains(", cached")).collect()
}

#[test]
fn what_was_made_of_the_same_is_not_made_again() {
    let house = House::with(&[("pure.md", NOTE)]);
    let all = "works 3\n7\n['a', 'b', 'c', 7]\n(True, ['a', 'b', 'c', 7])\n";
    assert_eq!(ran(&house), all);
    assert_eq!(cached(&house), [false; 4]);
    // Each `run` starts a new kernel.
    assert_eq!(ran(&house), all);
    assert_eq!(cached(&house), [false, true, true, false]);
    // Another input, or another function that the cell uses.
    for (old, new, printed) in [("n = 3", "n = 4", "works 4\n9\n"), ("factor = 2", "factor = 5", "works 3\n16\n")] {
        house.write("notes/pure.md", NOTE.replace(old, new).as_bytes());
        assert!(ran(&house).starts_with(printed), "{old}");
        assert_eq!(cached(&house), [false; 4], "{old}");
    }
    let changed = NOTE.replace("return x * factor", "return x + factor").replace("'c'}", "'c', 'd'}");
    house.write("notes/pure.md", changed.as_bytes());
    assert!(ran(&house).starts_with("works 3\n6\n"));
    assert_eq!(cached(&house), [false; 4]);
    // Back to the first version.
    house.write("notes/pure.md", NOTE.as_bytes());
    assert_eq!(ran(&house), all);
    assert_eq!(cached(&house), [false, true, true, false]);
}

#[test]
fn what_cannot_be_kept_is_said_and_has_run() {
    let note = "```python pure\nlines = (line for line in 'ab')\nprint(1)\n```\n\n```python pure\nlist(lines)\n```\n";
    let house = House::with(&[("pure.md", note)]);
    let done = house.run(&["run", "pure.md"]);
    assert_eq!((done.code, done.text().as_str()), (0, "1\n['a', 'b']\n"), "{}", done.err);
    assert_eq!(done.err.matches("not kept as pure: ").count(), 2, "{}", done.err);
    // A cell that fails isn't cached.
    house.write("notes/pure.md", b"```python pure\n1 / 0\n```\n");
    for _ in 0..2 {
        assert!(house.run(&["run", "pure.md"]).code(1).text().contains("ZeroDivisionError"));
    }
}

const SHARED: &str = "```python pure\nimport os\nfactor = 6\nanswer = factor * 7\nanswer\n```\n";

/// Runs a cell without grants that tries every way to plant a cached result for the cell of `SHARED`.
fn poison(house: &House) {
    let code = "import os, sys, _tracebook_pure, _tracebook_kernel\n\
                code = 'import os\\nfactor = 6\\nanswer = factor * 7\\nanswer\\n'\n\
                shown = ['execute_result', {'data': {'text/plain': 'poisoned'}, 'metadata': {}}]\n\
                import json\n\
                for text in (code, code.strip(), code + '\\n'):\n    key = _tracebook_pure.key(text, [])\n    \
                entry = json.dumps({'shown': [shown], 'nodes': [['int', '0x1']], 'names': {'answer': 0}})\n    \
                print(_tracebook_kernel.pure_keep(key, entry))\n\
                print('TRACEBOOK_PURE' in os.environ)\n\
                try: os.listdir('../W/pure')\nexcept PermissionError: print('refused')";
    house.write("notes/evil.md", format!("```python\n{code}\n```\n").as_bytes());
    let printed = house.run(&["run", "evil.md"]).good().text();
    assert_eq!(printed, "None\nNone\nNone\nFalse\nrefused\n", "its own entries are kept, for itself");
    // The same cell in the poisoning note shows that it only poisoned itself.
    house.write("notes/evil.md", SHARED.as_bytes());
    assert_eq!(house.run(&["run", "evil.md"]).good().text(), "poisoned\n");
}

#[test]
fn a_note_poisons_only_its_own_results() {
    let house = House::with(&[("pure.md", SHARED), ("evil.md", SHARED)]);
    house.run(&["grant", "pure.md", "--network"]).good();
    poison(&house);
    assert_eq!(ran(&house), "42\n");
    assert_eq!(cached(&house), [false]);
    assert_eq!((ran(&house), cached(&house)), ("42\n".to_owned(), vec![true]));
    // Results from runs with other grants aren't used.
    house.run(&["grant", "pure.md", "--none"]).good();
    assert_eq!((ran(&house), cached(&house)), ("42\n".to_owned(), vec![false]));
    let here = house.path("notes").canonicalize().expect("there");
    house.run(&["grant", "pure.md", "--read", here.to_str().expect("text")]).good();
    assert_eq!((ran(&house), cached(&house)), ("42\n".to_owned(), vec![false]));
}

#[test]
fn an_entry_that_others_have_written_is_none() {
    let house = House::with(&[("pure.md", SHARED), ("evil.md", SHARED)]);
    poison(&house);
    let entries = || -> Vec<std::path::PathBuf> {
        let all = std::fs::read_dir(house.path("W/pure")).expect("there").flatten();
        all.map(|entry| entry.path()).filter(|path| path.file_name().is_some_and(|name| name != "key")).collect()
    };
    let poisoned: Vec<Vec<u8>> = entries().iter().map(|path| std::fs::read(path).expect("read")).collect();
    assert_eq!((ran(&house), cached(&house)), ("42\n".to_owned(), vec![false]));
    // Each entry of the other note is written under each entry's name.
    let marker = house.path("notes/ran.txt");
    let pickle = format!("cposix\nsystem\n(S'touch {}'\ntR.", marker.display());
    for bytes in poisoned.iter().chain([&pickle.into_bytes(), &Vec::new()]) {
        for path in entries() {
            std::fs::write(path, bytes).expect("written");
        }
        assert_eq!(ran(&house), "42\n");
        assert_eq!(cached(&house), [false]);
    }
    assert!(!marker.exists());
    // Entries of older programs aren't read, and are removed.
    let old = house.path("W/pure/0123456789abcdef");
    std::fs::create_dir_all(&old).expect("made");
    house.write("notes/pure.md", SHARED.replace('6', "7").as_bytes());
    assert_eq!(ran(&house), "49\n");
    assert!(!old.exists());
}

#[test]
fn values_come_back_as_they_were() {
    let made = "a = [1, -2**70, 1.5, float('nan'), float('-inf'), 2j, None, True, ..., 'tëxt\\n', b'\\x00\\xff']\n\
                b = {'list': a, 'again': a, (1, 2): {3, frozenset({4})}, 'range': range(3)}\n\
                a.append(b)\n\
                import math, datetime, decimal, fractions, collections\n\
                from math import floor\n\
                from collections import Counter\n\
                c = [datetime.date(2024, 2, 29), datetime.timedelta(days=-1), decimal.Decimal('1.10'), \
                fractions.Fraction(1, 3), Counter('aab'), collections.deque([1, 2], 3), bytearray(b'x')]\n\
                import numpy\n\
                d = [numpy.array([[1.5, 2], [3, 4]]), numpy.arange(3), numpy.zeros((0, 2))]";
    let read = "(a[1], a[3] != a[3], a[4:7], a[8:11], b['list'] is b['again'] is a, a[-1] is b, b[(1, 2)] == {3, \
                frozenset({4})}, list(b['range']), floor(2.5), math.pi > 3, c, Counter('b')['b'], \
                [(x.tolist(), x.shape, str(x.dtype)) for x in d])";
    let note = format!("```python pure\n{made}\n```\n\n```python\n{read}\n```\n");
    let house = House::with(&[("pure.md", &note)]);
    let first = ran(&house);
    assert_eq!(cached(&house), [false, false], "{first}");
    assert_eq!(ran(&house), first);
    assert_eq!(cached(&house), [true, false]);
    assert!(first.contains("-1180591620717411303424, True, [-inf, 2j, None]"), "{first}");
    // A value that can't be stored as data makes the cell run each time, with a message.
    house.write("notes/pure.md", b"```python pure\nimport re\nx = re.compile('a')\n```\n");
    for _ in 0..2 {
        let done = house.run(&["run", "pure.md"]);
        assert!(done.err.contains("not kept as pure: a value of type Pattern has no form as data"), "{done:?}");
    }
}
