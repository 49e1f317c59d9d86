//! Cells that say that they are pure: their results are kept over kernels, by their code and what they use.

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
    // Each `run` is a kernel of its own.
    assert_eq!(ran(&house), all);
    assert_eq!(cached(&house), [false, true, true, false]);
    // Another input, another function that is used, another code.
    for (old, new, printed) in [("n = 3", "n = 4", "works 4\n9\n"), ("factor = 2", "factor = 5", "works 3\n16\n")] {
        house.write("notes/pure.md", NOTE.replace(old, new).as_bytes());
        assert!(ran(&house).starts_with(printed), "{old}");
        assert_eq!(cached(&house), [false; 4], "{old}");
    }
    let changed = NOTE.replace("return x * factor", "return x + factor").replace("'c'}", "'c', 'd'}");
    house.write("notes/pure.md", changed.as_bytes());
    assert!(ran(&house).starts_with("works 3\n6\n"));
    assert_eq!(cached(&house), [false; 4]);
    // And back again.
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
    // A cell that fails is run again.
    house.write("notes/pure.md", b"```python pure\n1 / 0\n```\n");
    for _ in 0..2 {
        assert!(house.run(&["run", "pure.md"]).code(1).text().contains("ZeroDivisionError"));
    }
}
