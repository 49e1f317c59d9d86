//! numpy in the kernel: each call is compared with the real numpy's answer (tests/data/numpy.json, made by
//! tests/data/numpy_make.py).

use super::{Kernel, check};
use serde_json::Value;

const ANSWERS: &str = include_str!("../../data/numpy.json");

#[test]
fn every_expression_answers_as_the_real_one() {
    let answers: Value = serde_json::from_str(ANSWERS).expect("the file that the maker wrote");
    let kernel = &mut Kernel::start();
    check(kernel, "import numpy as np", "ok");
    for line in answers["setup"].as_array().expect("lines") {
        check(kernel, line.as_str().expect("text"), "ok");
    }
    let cases = answers["cases"].as_array().expect("cases");
    assert!(cases.len() > 300, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let (code, expected) = (case[0].as_str().expect("code"), case[1].as_str().expect("its answer"));
        let outcome = kernel.run(code);
        let answer = match outcome.strip_suffix("\nok") {
            Some(value) => value.split_once("] ").map_or(value, |(_, value)| value),
            None => outcome.split("\n| Traceback").next().unwrap_or_default(),
        };
        if answer != expected {
            wrong.push(format!("{code}\nexpected {expected}\ngot      {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
}

#[test]
fn what_is_not_here_is_named() {
    let kernel = &mut Kernel::start();
    check(kernel, "import numpy as np, numpy.linalg, numpy.random", "ok");
    let elsewhere = "is not in Tracebook's small numpy; a full Python kernel has it";
    for (code, words) in [
        ("np.busday_count", "AttributeError: numpy.busday_count"),
        ("np.linalg.tensorsolve", "AttributeError: numpy.linalg.tensorsolve"),
        ("np.arange(3).newbyteorder", "AttributeError: ndarray.newbyteorder"),
        ("np.array(['a'])", "TypeError: an array of str"),
        ("np.zeros(3, dtype='float32')", "TypeError: the dtype 'float32'"),
        ("np.einsum('ij', np.eye(2))", "NotImplementedError: numpy.einsum"),
    ] {
        let outcome = kernel.run(code);
        assert!(outcome.starts_with(&format!("{words} {elsewhere}")), "{code}: {outcome}");
        assert!(!outcome.contains("numpy.py") && !outcome.contains("frozen"), "only the cell's own lines: {outcome}");
    }
    assert!(kernel.run("np.zeros(10**10)").starts_with("MemoryError"));
    assert!(kernel.run("np.zeros((10**9, 10**9))").starts_with("ValueError"));
    check(kernel, "1", &format!("[{}] 1\nok", 10));
}

#[test]
fn views_are_the_array_they_view() {
    let kernel = &mut Kernel::start();
    let code = "import numpy as np\na = np.arange(24).reshape(2, 3, 4)\nb = a[1, ::-1, ::2]\nb[0] = -1\n\
                c = a.T[0]\nc += 100\na.reshape(6, 4)[5][3] = 7\na.flat[0] = 5\na.tolist()";
    let expected = "[1] [[[5, 1, 2, 3], [104, 5, 6, 7], [108, 9, 10, 11]], \
                    [[112, 13, 14, 15], [116, 17, 18, 19], [99, 21, -1, 7]]]\nok";
    check(kernel, code, expected);
    // These copy: fancy and boolean indices, `copy`, and a reshape that the memory layout can't follow.
    let code = "a = np.arange(6).reshape(2, 3)\nfor b in (a[[0, 1]], a[a >= 0], a.copy(), a.T.reshape(-1)): \
                b[...] = 9\na.tolist(), a[:, 1].base is a.base";
    check(kernel, code, "[2] ([[0, 1, 2], [3, 4, 5]], True)\nok");
}

#[test]
fn chance_is_the_same_for_the_same_seed_and_spread_as_it_should_be() {
    let kernel = &mut Kernel::start();
    let code = "import numpy as np\ndef draw(seed):\n    rng = np.random.default_rng(seed)\n    return [rng.\
                normal(size=3).tolist(), rng.integers(0, 10, 5).tolist(), rng.choice(['a', 'b'], 3), \
                rng.permutation(5).tolist()]\n\
                draw(1) == draw(1), draw(1) != draw(2)";
    check(kernel, code, "[1] (True, True)\nok");
    let code = "rng = np.random.default_rng(7)\nx = rng.normal(5, 2, 20000)\nk = rng.integers(0, 4, 20000)\n\
                abs(x.mean() - 5) < 0.1, abs(x.std() - 2) < 0.1, np.bincount(k).min() > 4700, \
                sorted(rng.choice(5, 5, replace=False).tolist())";
    check(kernel, code, "[2] (np.True_, np.True_, np.True_, [0, 1, 2, 3, 4])\nok");
}

/// What numpy 2.5 gives for this seed.
#[test]
fn seeded_numbers_are_those_of_numpy() {
    let kernel = &mut Kernel::start();
    let code = "import numpy as np\nnp.random.seed(42)\n\
                def near(drawn, wanted):\n    return all(abs(a - b) < 1e-15 for a, b in zip(drawn.tolist(), wanted, \
                strict=True))\n\
                near(np.random.rand(2), [0.3745401188473625, 0.9507143064099162]), \
                np.random.randint(0, 100, 5).tolist(), near(np.random.randn(3), [1.5792128155073915, \
                0.7674347291529088, -0.4694743859349521]), np.random.permutation(6).tolist(), \
                np.random.choice(5, 3, replace=False).tolist()";
    check(kernel, code, "[1] (True, [71, 60, 20, 82, 86], True, [5, 2, 1, 0, 4, 3], [1, 2, 0])\nok");
    let code = "state = np.random.RandomState(42)\n\
                float(state.rand()) == 0.3745401188473625, np.random.seed(), np.random.rand(2).shape";
    check(kernel, code, "[2] (True, None, (2,))\nok");
}

#[test]
fn decompositions_hold() {
    let kernel = &mut Kernel::start();
    let code = "import numpy as np\nfrom numpy.linalg import *\nrng = np.random.default_rng(3)\n\
                m = rng.normal(size=(5, 5))\n\
                w, v = eig(m)\nu, s, vh = svd(m[:, :3])\nq, r = qr(m)\nh = m + m.T\ne, x = eigh(h)\n\
                close = np.allclose\n\
                close(m @ v, v * w), close(u[:, :3] * s @ vh, m[:, :3]), close(u.T @ u, np.eye(5)), close(q @ r, m), \
                close(h @ x, x * e), close(inv(m) @ m, np.eye(5)), close(m @ solve(m, h), h), \
                close(np.prod(w).real, det(m))";
    check(kernel, code, "[1] (True, True, True, True, True, True, True, True)\nok");
    let code = "import io\nf = io.StringIO()\nnp.savetxt(f, m, delimiter=',')\n\
                f.seek(0)\nclose(np.loadtxt(f, delimiter=','), m)";
    check(kernel, code, "[2] True\nok");
}
