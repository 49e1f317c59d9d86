# Common small benchmark programs. Each is timed; the best of three counts.
import json as _json, random as _random, re as _re, sys as _sys, time as _time


def fib(n=27):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def loops():
    total = 0
    for a in range(1_000_000):
        total += a * a % 7
    return total


def strings():
    words = [f"word {n}" for n in range(100_000)]
    return len(" ".join(word.upper().replace("W", "v") for word in words).split())


def dictionaries():
    counts = {}
    for n in range(300_000):
        counts[n % 1000] = counts.get(n % 1000, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])[:3]


def methods():
    class Point:
        def __init__(self):
            self.x = 0

        def step(self):
            self.x += 1

    point = Point()
    for _ in range(500_000):
        point.step()
    return point.x


def expressions():
    text = "name@host.org, other word, x@y.z; " * 5_000
    return len(_re.findall(r"[\w.]+@[\w.]+", text))


def documents():
    value = [{"id": n, "name": f"n{n}", "list": [n, n / 2, None]} for n in range(20_000)]
    return len(_json.loads(_json.dumps(value)))


def sorting():
    source = _random.Random(1)
    return sorted(source.random() for _ in range(500_000))[0]


found = []
for program in (fib, loops, strings, dictionaries, methods, expressions, documents, sorting):
    best = 1e9
    for _ in range(3):
        begun = _time.perf_counter()
        program()
        best = min(best, _time.perf_counter() - begun)
    found.append([program.__name__, best * 1e3])
print(_json.dumps([".".join(map(str, _sys.version_info[:2])), found]))
