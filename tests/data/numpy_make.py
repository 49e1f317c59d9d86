"""Makes numpy.json: what the real numpy answers to these expressions, for tests/it/arrays.rs.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 && venv/bin/python tests/data/numpy_make.py

Every line of SETUP and of EXPRESSIONS runs in one namespace, in order. Where the last bits depend on the machine (BLAS,
LAPACK), the expression rounds.
"""

import json
import pathlib
import platform

import numpy as np

SETUP = """
a = np.arange(12).reshape(3, 4)
f = np.linspace(0, 1, 5)
m = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.5], [2.0, 0.5, 5.0]])
z = np.array([1 + 2j, -0.5j, 3])
b = np.array([True, False, True])
big = np.arange(2000).reshape(40, 50)
x = np.array([3, 1, 2, 3, 1])
n = np.array([1.0, np.nan, -np.inf, 2.5])
""".strip().splitlines()

EXPRESSIONS = """
np.array([1, 2, 3])
np.array([1, 2.5, 3])
np.array([[1, 2], [3, 4]], dtype=float)
np.array([True, False])
np.array([1 + 1j, 2])
np.array([])
np.array(5)
np.array([[1], [2, 3]])
np.zeros(3)
np.zeros((2, 3), dtype=int)
np.ones((2, 2), dtype=bool)
np.full((2, 2), 7)
np.full(3, 2.5)
np.eye(3)
np.eye(2, 3, 1)
np.identity(2)
np.arange(5)
np.arange(2, 11, 3)
np.arange(0, 1, 0.25)
np.arange(5, 0, -2)
np.linspace(0, 1, 5)
np.linspace(0, 10, 4, endpoint=False)
np.logspace(0, 3, 4)
np.geomspace(1, 1000, 4)
np.meshgrid([1, 2, 3], [4, 5])
np.diag([1, 2, 3])
np.diag(a)
np.diag([1.5], 1)
np.tril(a)
np.triu(a, 1)
np.vander([1, 2, 3])
np.zeros_like(a)
np.ones_like(f)
np.zeros((0, 3))
a
a.T
a.shape, a.ndim, a.size, a.dtype, a.strides, a.nbytes
a.reshape(4, 3)
a.reshape(2, -1)
a.reshape(5, 2)
a.ravel()
a.flatten()
a.transpose()
a.swapaxes(0, 1)
np.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
np.squeeze(np.zeros((1, 3, 1))).shape
np.expand_dims(f, 0)
np.broadcast_to([1, 2, 3], (2, 3))
np.broadcast_to([1, 2, 3], (2, 4))
a[0]
a[-1, -1]
a[1:, ::2]
a[:, 1]
a[::-1]
a[::-1, ::-2]
a[..., 0]
a[None, :, 0]
a[:, np.newaxis].shape
a[[0, 2]]
a[[0, 2], [1, 3]]
a[:, [1, 3]]
a[[[0], [2]], [1, 3]]
a[a > 5]
a[b]
a[b, 1:3]
a[1, a[1] % 2 == 0]
a[np.array([-1, 0])]
a[5]
a[:, 9]
a[[7]]
a[1.5]
a[0, 0, 0]
f[np.array([], dtype=int)]
a + 1
a * 2.5
a - a.T
a + np.array([10, 20, 30, 40])
a + np.array([[100], [200], [300]])
a / 3
a // 3
a % 3
-a // 4
-a % 4
a ** 2
2 ** np.arange(5)
2.0 ** -np.arange(3)
np.array([2]) ** -1
-f
abs(-f)
1 / np.array([1.0, 2.0, 4.0])
1 / np.array([0.0, -1.0])
np.array([1, 2]) / 0
a == 5
a != a.T.T
(a > 3) & (a < 9)
(a > 3) | ~(a < 9)
~b
b + b
b - b
b * 3
True + np.array([1, 2])
a & 3
a ^ 1
a << 2
a >> 1
z * z
z / (1 + 1j)
abs(z)
z.real, z.imag
z.conj()
np.angle(z)
z == z
np.sin(f)
np.cos(np.pi * f)
np.tan(f)
np.exp(f)
np.log(np.array([1.0, np.e, 10.0]))
np.log10(np.array([1.0, 1000.0]))
np.log2([1, 8])
np.log1p(f)
np.expm1(f)
np.sqrt(np.array([0.0, 2.0, 9.0]))
np.sqrt(-1 + 0j)
np.arctan2([1.0, -1.0], [1.0, -1.0])
np.hypot(3, 4)
np.sinh(f)
np.tanh(f)
np.floor([-1.5, 1.5])
np.ceil([-1.5, 1.5])
np.rint([0.5, 1.5, 2.5])
np.trunc([-1.7, 1.7])
np.round([1.2345, 2.5, -0.5], 2)
np.round(1234.5678, -2)
np.sign([-2.0, 0.0, 3.0])
np.square(a)
np.maximum(a, 5)
np.minimum([1.0, np.nan], 0)
np.clip(a, 2, 7)
np.isnan(n)
np.isinf(n)
np.isfinite(n)
np.nan_to_num(n, posinf=9, neginf=-9)
np.sum(a)
a.sum(axis=0)
a.sum(axis=1)
a.sum(axis=(0, 1))
a.sum(axis=1, keepdims=True)
f.sum()
np.sum(np.full(1000, 0.1))
np.full((300, 3), 0.1).sum(axis=0)
np.sum(b)
a.prod()
a.mean()
a.mean(axis=0)
f.std()
a.std(axis=1)
a.var()
np.var([1, 2, 3, 4], ddof=1)
a.max(), a.min(), f.max()
a.max(axis=1)
a.argmax(), a.argmin(axis=1)
np.argmax([1, 5, 5])
a.any(), (a > 0).all(), (a > 0).all(axis=1)
a.cumsum()
a.cumsum(axis=0)
a.cumprod(axis=1)
np.cumsum(f)
np.diff([1, 4, 9, 16])
np.diff(a, axis=0)
np.gradient([1.0, 4.0, 9.0, 16.0])
np.gradient([1.0, 4.0, 9.0], [0.0, 1.0, 3.0])
np.trapezoid([1, 2, 3])
np.trapezoid([1, 2, 3], x=[0, 1, 3])
np.median([3, 1, 2, 4])
np.median(a, axis=0)
np.percentile([1, 2, 3, 4, 5], 40)
np.percentile(a, [25, 50, 75])
np.quantile(f, 0.3)
np.average([1, 2, 3], weights=[3, 1, 0])
np.ptp(a)
np.nanmean(np.array([1.0, np.nan, 3.0]))
np.nansum(np.array([1.0, np.nan, 3.0]))
np.count_nonzero(a > 4)
np.sort(x)
np.sort([[3, 1], [2, 5]], axis=0)
np.argsort([3, 1, 2])
np.sort(n)
np.unique(x)
np.unique(x, return_counts=True)
np.unique(x, return_inverse=True, return_index=True)
np.searchsorted([1, 3, 5], [0, 3, 6])
np.digitize([0.5, 2.5], [0, 1, 2, 3])
np.where(a > 5, a, -1)
np.where(a > 9)
np.nonzero([0, 3, 0, 5])
np.argwhere(a > 9)
np.flatnonzero([0, 1, 1])
np.isin([1, 2, 3], [2, 3])
np.intersect1d([1, 2, 3], [2, 3, 4])
np.union1d([1, 2], [2, 5])
np.setdiff1d([1, 2, 3], [2])
np.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1])
np.allclose([1.0], [1.0 + 1e-9])
np.array_equal([1, 2], [1, 2])
np.concatenate([a, a], axis=1).shape
np.concatenate([[1, 2], [3.5]])
np.concatenate([a, f])
np.stack([[1, 2], [3, 4]], axis=1)
np.vstack([[1, 2], [3, 4]])
np.hstack([[1, 2], [3]])
np.column_stack([[1, 2], [3, 4]])
np.split(np.arange(6), 3)
np.array_split(np.arange(7), 3)
np.tile([1, 2], (2, 2))
np.repeat([1, 2], 3)
np.repeat([[1, 2]], [1, 2], axis=1)
np.flip(a, 1)
np.roll(np.arange(5), 2)
np.roll(a, 1, axis=1)
np.rot90(a)
np.pad([1, 2], 2)
np.append([1], [2, 3])
np.insert([1, 2, 3], 1, 9)
np.delete([1, 2, 3], 1)
np.take(a, [0, 5])
np.dot([1, 2], [3, 4])
np.dot(a, a.T)
a @ a.T
a @ np.ones(4)
a @ a
np.ones((2, 3, 4)) @ np.ones((4, 2))
np.inner([1, 2], [3, 4])
np.outer([1, 2], [3, 4])
np.kron([1, 2], [[1, 1]])
np.cross([1, 0, 0], [0, 1, 0])
np.trace(a)
np.round(np.linalg.solve(m, [1.0, 2.0, 3.0]), 10)
np.round(np.linalg.inv(m), 10)
round(float(np.linalg.det(m)), 10)
np.round(np.linalg.eigvalsh(m), 10)
np.round(np.abs(np.linalg.eigh(m)[1]), 8)
np.round(np.sort(np.linalg.eigvals(m)), 10)
np.round(np.sort(np.linalg.eigvals(np.array([[0.0, -1.0], [1.0, 0.0]]))), 10)
np.round(np.linalg.svd(m)[1], 10)
np.round(np.abs(np.linalg.svd(a.astype(float))[0]), 6)
np.linalg.svd(a.astype(float))[2].shape
np.round(np.linalg.qr(m)[1], 10) + 0.0
np.round(np.linalg.cholesky(m), 10)
np.linalg.norm([3, 4])
np.linalg.norm(a)
np.linalg.norm(a, axis=1)
np.linalg.norm(m, 1)
np.round(np.linalg.pinv(a), 8) + 0.0
np.linalg.matrix_rank(a)
np.linalg.matrix_power(np.array([[1, 1], [1, 0]]), 10)
np.round(np.linalg.lstsq(np.vander([0.0, 1.0, 2.0, 3.0], 2), [1.0, 3.0, 5.0, 7.0])[0], 10)
np.linalg.inv(np.zeros((2, 2)))
np.linalg.inv(np.zeros((2, 3)))
np.round(np.polyfit([0, 1, 2, 3], [1, 3, 7, 13], 2), 8)
np.polyval([1, 2, 3], 2)
np.round(np.roots([1, -6, 11, -6]), 8)
np.convolve([1, 2, 3], [0, 1, 0.5])
np.convolve([1, 2, 3], [1, 1], "same")
np.interp([0.5, 2.5], [0, 1, 2], [0, 10, 20])
np.histogram([1, 2, 2, 3, 4], bins=3)
np.bincount([0, 1, 1, 3])
np.round(np.cov([[1, 2, 3], [3, 1, 2]]), 10)
np.round(np.corrcoef([1, 2, 3], [3, 1, 2]), 10)
np.round(np.fft.fft([1, 2, 3, 4]), 10) + 0.0
np.round(np.fft.ifft(np.fft.fft([1.0, 2.0, 3.0])), 10) + 0.0
np.round(np.fft.rfft(np.sin(np.arange(8))), 8) + 0.0
np.round(np.fft.irfft(np.fft.rfft([1.0, 2.0, 3.0, 4.0])), 10)
np.fft.fftfreq(5, 0.1)
np.fft.fftshift(np.arange(5))
np.random.default_rng(42).random(3)
np.random.default_rng(2**40).random()
np.random.default_rng([1, 2, 3]).random((2, 2))
np.random.default_rng(0).uniform(5, 6, 2)
big
big.ravel()
big.T * 1.5
np.arange(2000) > 1990
np.array([1e10, 1.0])
np.array([1e-10, 1.0])
np.array([0.1, 100.25, 3.0])
np.array([1e300, -1e-300])
np.array([1.123456789012, 2.0])
np.array([123456.789, 0.001])
n
np.array([np.nan, 1000000.0])
np.array([-1.5, 22.25])
np.array([1e8])
np.array([99999999.0])
np.array([0.0001, 0.00012])
np.array([1.5 + 2j, -3.25 - 0.001j])
np.array([np.inf + 1j, 1 - 1j])
np.arange(30) / 7
np.arange(27).reshape(3, 3, 3)
np.ones((2, 2, 2), dtype=bool)
np.array([[1.5, -2], [100, 4]])
np.array([-1, 10, 100])
str(a), str(f), str(z), str(b)
str(np.arange(40.0))
f"{np.float64(1.5):.3f} {np.mean(f)}"
np.float64(1.5), np.int64(3), np.True_, np.complex128(1 + 2j)
np.float64(1) / 3
np.int64(7) // 2, np.int64(7) / 2, np.int64(2) ** 3
np.float64(2) > 1
a[0, 0] + 1, f[1] * 2
a.tolist(), f.tolist()
a[0, 1].item(), float(f[1]), int(a[2, 2])
list(np.arange(3))
[int(v) for v in a[0]]
len(a), 5 in a, 99 in a
bool(np.array([1]))
bool(np.array([1, 2]))
a.astype(float).dtype, a.astype("int64").dtype
np.array([1.9, -1.9]).astype(int)
np.array([0, 2]).astype(bool)
(np.arange(3) * 1.0).dtype, (np.arange(3) / 2).dtype, (np.arange(3) + 1j).dtype
np.sum([1, 2], dtype=float)
np.pi, np.e, np.inf
(lambda v: (v.__setitem__(slice(1, 3), 9), v)[1])(np.arange(5))
(lambda v: (v[1:4][::2].__setitem__(0, 7), v)[1])(np.arange(6))
(lambda v: (v.T[0].__setitem__(Ellipsis, 0), v)[1])(np.ones((2, 3)))
(lambda v: (v.reshape(-1)[::3].__setitem__(slice(None), -1), v)[1])(np.arange(12).reshape(3, 4))
(lambda v: (v.__setitem__(v > 2, 0), v)[1])(np.arange(6))
(lambda v: (v.__setitem__([0, 2], [5, 6]), v)[1])(np.arange(4))
(lambda v: (v.__setitem__((slice(None), 1), [7, 8]), v)[1])(np.zeros((2, 3)))
(lambda v: (v[[0, 1]].__setitem__(0, 5), v)[1])(np.arange(4))
(lambda v: (v.__iadd__(v[::-1]), v)[1])(np.arange(4))
(lambda v: (v.__setitem__(slice(1, None), v[:-1]), v)[1])(np.arange(5))
(lambda v: (v.__iadd__(0.5), v)[1])(np.arange(4))
(lambda v: (v.__setitem__(slice(0, 2), [1, 2, 3]), v)[1])(np.arange(4))
(lambda v: (v.diagonal().copy().__setitem__(0, 9), v)[1])(np.eye(2))
(lambda v: (v.sort(), v)[1])(np.array([3, 1, 2]))
(lambda v: (v.fill(3), v)[1])(np.zeros(2))
np.shares_memory(a, a[1:]), np.shares_memory(a, a[[1]]), np.shares_memory(a, a.T.reshape(12))
np.add.reduce([1, 2, 3]), np.multiply.outer([1, 2], [3, 4]), np.maximum.accumulate([1, 3, 2])
np.add([1, 2], [3, 4])
np.array([1, 2]) + np.array([1, 2, 3])
np.ones(3) @ np.ones(4)
np.max([])
np.zeros(2)[2]
np.array([1, 2, 3], dtype="int64").dtype
np.array([[1, 2], [3, 4]]).sum(axis=5)
""".strip().splitlines()


def answer(expression, space):
    try:
        return repr(eval(expression, space))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main():
    space = {"np": np}
    for line in SETUP:
        exec(line, space)
    with np.errstate(all="ignore"):
        cases = [[expression, answer(expression, space)] for expression in EXPRESSIONS]
    made = {"numpy": np.__version__, "python": platform.python_version(), "setup": SETUP, "cases": cases}
    path = pathlib.Path(__file__).with_name("numpy.json")
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    print(len(cases), "expressions")


if __name__ == "__main__":
    main()
