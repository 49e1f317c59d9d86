"""numpy for cells: names, keywords, views and printing. `_tracebook_numpy` does the calculations.

A small subset: bool, int64, float64 and complex128. Errors name what isn't supported. Checked call by call against the
real numpy (tests/data/numpy.json).
"""

import builtins as _b
import math as _math
import sys as _sys
from types import ModuleType as _Module

import _tracebook_numpy as _native

__version__ = "2.4 (Tracebook's part of it)"
_max, _min, _total = _b.max, _b.min, _b.sum
_ELSEWHERE = "is not in Tracebook's small numpy; a full Python kernel has it"


class LinAlgError(ValueError):
    """Raised when a linear algebra operation fails."""

    __module__ = "numpy.linalg"


def __getattr__(name):
    raise AttributeError(f"numpy.{name} {_ELSEWHERE}")


# Data types.


class dtype:
    """One of the four kinds of numbers."""

    def __init__(self, letter, name, itemsize):
        self._letter, self.name, self.itemsize = letter, name, itemsize
        self.kind = letter

    def __repr__(self):
        return f"dtype('{self.name}')"

    def __str__(self):
        return self.name

    def __eq__(self, other):
        try:
            return self._letter == _kind(other)
        except TypeError:
            return False

    def __hash__(self):
        return hash(self._letter)

    @property
    def type(self):
        return _SCALARS[self._letter]


_DTYPES = {
    "b": dtype("b", "bool", 1),
    "i": dtype("i", "int64", 8),
    "f": dtype("f", "float64", 8),
    "c": dtype("c", "complex128", 16),
}
_NAMES = {
    "bool": "b", "?": "b", "bool_": "b", "int": "i", "int64": "i", "i8": "i", "<i8": "i", "i": "i", "float": "f",
    "float64": "f", "f8": "f", "<f8": "f", "f": "f", "d": "f", "complex": "c", "complex128": "c", "c16": "c", "c": "c",
}


def _kind(kind):
    if isinstance(kind, dtype):
        return kind._letter
    if isinstance(kind, str) and kind in _NAMES:
        return _NAMES[kind]
    letter = _TYPES.get(kind) if isinstance(kind, type) else None
    if letter is None:
        raise TypeError(f"the dtype {kind!r} {_ELSEWHERE}")
    return letter


def _scalar_operators(cls, plain):
    """Adds operators that keep results in numpy's own scalar classes: they use zero-dimensional arrays."""
    for name, function in _OPERATORS.items():
        def forward(self, other, function=function, name=name):
            if not isinstance(other, (int, float, complex, bool_)):
                return NotImplemented
            return _wrap(_native.binary(function, _core(self), _core(other)))

        def backward(self, other, function=function):
            if not isinstance(other, (int, float, complex, bool_)):
                return NotImplemented
            return _wrap(_native.binary(function, _core(other), _core(self)))

        setattr(cls, f"__{name}__", forward)
        if name not in _COMPARISONS:
            setattr(cls, f"__r{name}__", backward)
    cls.__neg__ = lambda self: _wrap(_native.unary("negative", _core(self)))
    cls.__pos__ = lambda self: self
    cls.__abs__ = lambda self: _wrap(_native.unary("absolute", _core(self)))
    cls.__hash__ = plain.__hash__
    cls.shape, cls.ndim, cls.size = (), 0, 1
    cls.T = property(lambda self: self)
    cls.item = lambda self: plain(self)
    cls.tolist = cls.item
    cls.copy = lambda self: self
    cls.astype = lambda self, kind: array(self).astype(kind)[()]
    cls.round = lambda self, decimals=0: round(self, decimals)
    for name in ("sum", "mean", "min", "max", "std", "var", "any", "all", "prod", "reshape", "ravel", "flatten"):
        setattr(cls, name, lambda self, *args, name=name, **options: getattr(array(self), name)(*args, **options))
    cls.conjugate = cls.conj = lambda self: _wrap(_native.unary("conjugate", _core(self)))


class float64(float):
    dtype = _DTYPES["f"]

    def __repr__(self):
        return f"np.float64({float.__repr__(self)})"

    def __str__(self):
        return float.__repr__(self)

    def __round__(self, digits=None):
        return float.__round__(self) if digits is None else float64(float.__round__(self, digits))


class int64(int):
    dtype = _DTYPES["i"]

    def __repr__(self):
        return f"np.int64({int.__repr__(self)})"

    def __str__(self):
        return int.__repr__(self)


class complex128(complex):
    dtype = _DTYPES["c"]

    def __repr__(self):
        return f"np.complex128({complex.__repr__(self).strip('()')})"

    def __str__(self):
        return complex.__repr__(self)

    real = property(lambda self: float64(complex.__complex__(self).real))
    imag = property(lambda self: float64(complex.__complex__(self).imag))


class bool_:
    dtype = _DTYPES["b"]

    def __new__(cls, value=False):
        return True_ if value else False_

    def __bool__(self):
        return self._value

    def __index__(self):
        return int(self._value)

    __int__ = __index__

    def __float__(self):
        return float(self._value)

    def __repr__(self):
        return f"np.{self._value}_"

    def __str__(self):
        return str(self._value)

    def __invert__(self):
        return bool_(not self._value)

    @property
    def _core(self):
        return _native.build(self._value)


_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
                "ge": "greater_equal"}
_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", **_COMPARISONS,
}
_BITS = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
         "rshift": "right_shift"}


def _make_bools():
    for value in (True, False):
        made = object.__new__(bool_)
        made._value = value
        yield made


True_, False_ = _make_bools()
_SCALARS = {"b": bool_, "i": int64, "f": float64, "c": complex128}
_TYPES = {bool: "b", int: "i", float: "f", complex: "c", bool_: "b", int64: "i", float64: "f", complex128: "c"}

# Conversions between native cores and arrays.


def _listed(value):
    """Converts an iterable that isn't a list, number or array to a list."""
    if isinstance(value, (list, tuple)):
        plain = (int, float, complex, list, tuple, ndarray, bool_)
        return value if _b.all(isinstance(one, plain) for one in value) else [_listed(one) for one in value]
    if isinstance(value, (int, float, complex, ndarray, bool_)):
        return value
    if isinstance(value, (str, bytes, dict, set)) or value is None:
        raise TypeError(f"an array of {type(value).__name__} {_ELSEWHERE}")
    try:
        return [_listed(one) for one in value]
    except TypeError:
        raise TypeError(f"an array of {type(value).__name__} {_ELSEWHERE}") from None


def _core(value, kind=None):
    core = value._core if isinstance(value, (ndarray, bool_)) else _native.build(_listed(value))
    return core if kind is None or core.kind == kind else core.copied(kind)


def _array(core):
    made = ndarray.__new__(ndarray)
    made._core = core
    made._base = None
    return made


def _wrap(core):
    """Returns an array, or a numpy scalar if there are no dimensions."""
    return _SCALARS[core.kind](core.flat()[0]) if core.shape == () else _array(core)


def _sides(shape):
    if isinstance(shape, (list, tuple, ndarray)):
        return [int(side) for side in shape]
    return [shape.__index__()]


def _axis(axis, ndim):
    at = axis.__index__()
    if not -ndim <= at < ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return at % ndim


class AxisError(ValueError, IndexError):
    """There is no such axis."""

    __module__ = "numpy.exceptions"


def _binary(function):
    def apply(a, b, /, out=None, where=True):
        made = _native.binary(function, _core(a), _core(b))
        if where is not True:
            if out is None:
                raise TypeError(f"{function}: `where` without `out` {_ELSEWHERE}")
            made = _native.choose(_core(where), made, _core(out))
        return _wrap(made) if out is None else _into(out, made, function)

    apply.__name__ = apply.__qualname__ = function
    apply.reduce = lambda a, axis=0: _UFUNC_REDUCE[function](a, axis=axis)
    apply.outer = lambda a, b: apply(_array(_core(a))[(...,) + (None,) * array(b).ndim], b)
    apply.accumulate = lambda a, axis=0: _UFUNC_ACCUMULATE[function](a, axis=axis)
    return apply


def _unary(function):
    def apply(a, /, out=None):
        made = _native.unary(function, _core(a))
        return _wrap(made) if out is None else _into(out, made, function)

    apply.__name__ = apply.__qualname__ = function
    return apply


class UFuncTypeError(TypeError):
    """The numbers do not fit into the array that they were meant for."""

    __module__ = "numpy.exceptions"


def _into(out, core, function):
    out = out[0] if isinstance(out, tuple) else out
    if "bifc".index(core.kind) > "bifc".index(out._core.kind):
        raise UFuncTypeError(f"Cannot cast ufunc '{function}' output from dtype('{_DTYPES[core.kind]}') to "
                             f"dtype('{_DTYPES[out._core.kind]}') with casting rule 'same_kind'")
    out._core.assign(core)
    return out


class _Flat:
    def __init__(self, array):
        self._of = array

    def __iter__(self):
        return iter(self._of.ravel())

    def __len__(self):
        return self._of.size

    def __getitem__(self, key):
        return self._of.ravel()[key]

    def __setitem__(self, key, value):
        places = _array(_native.count(0, 1, self._of.size))[key]
        self._of._core.scatter(_core(places), _core(value))


class ndarray:
    """An array of numbers. A slice of it is a view: what is written there is written here."""

    __slots__ = ("_core", "_base")
    __array_priority__ = 1
    __hash__ = None

    def __new__(cls, *shape):
        if shape:
            return zeros(*shape)
        return object.__new__(cls)

    shape = property(lambda self: self._core.shape)
    ndim = property(lambda self: len(self._core.shape))
    size = property(lambda self: self._core.size)
    dtype = property(lambda self: _DTYPES[self._core.kind])
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    strides = property(lambda self: tuple(step * self.itemsize for step in self._core.strides))
    T = property(lambda self: self.transpose())
    base = property(lambda self: self._base)
    flat = property(_Flat)

    @shape.setter
    def shape(self, shape):
        view = self.reshape(shape)
        if not view._core.shares(self._core):
            raise AttributeError("Incompatible shape for in-place modification. Use `.reshape()` to make a copy")
        self._core = view._core

    @property
    def real(self):
        return self if self._core.kind != "c" else _array(_native.unary("real", self._core))

    @property
    def imag(self):
        return _array(_native.unary("imag", self._core))

    def _window(self, offset, shape, strides):
        view = _array(self._core.window(offset, list(shape), list(strides)))
        view._base = self if self._base is None else self._base
        return view

    # Items.

    def _basic(self, key):
        """Returns the view for a key of ints, slices, None and ...; None if the key requires a copy."""
        keys = key if type(key) is tuple else (key,)
        shape, steps = self._core.shape, self._core.strides
        taken = 0
        for one in keys:
            kind = type(one)
            if one is None or one is Ellipsis:
                continue
            if kind in (list, ndarray, bool_) or one is True or one is False:
                return None
            taken += 1
        if taken > len(shape):
            raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {taken} were indexed")
        offset, sides, strides, axis = self._core.offset, [], [], 0
        for one in keys:
            if one is None:
                sides.append(1)
                strides.append(0)
                continue
            if one is Ellipsis:
                more = len(shape) - taken
                sides += shape[axis:axis + more]
                strides += steps[axis:axis + more]
                axis += more
                continue
            side, step = shape[axis], steps[axis]
            if isinstance(one, slice):
                start, stop, stride = one.indices(side)
                length = len(range(start, stop, stride))
                if length:
                    offset += start * step
                sides.append(length)
                strides.append(step * stride)
            else:
                try:
                    at = one.__index__()
                except AttributeError:
                    raise IndexError(
                        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
                        "arrays are valid indices") from None
                if not -side <= at < side:
                    raise IndexError(f"index {at} is out of bounds for axis {axis} with size {side}")
                offset += (at + side if at < 0 else at) * step
            axis += 1
        sides += shape[axis:]
        strides += steps[axis:]
        return offset, sides, strides

    def _places(self, key):
        """Returns the positions that a key with arrays selects, counted in order."""
        keys = key if type(key) is tuple else (key,)
        plain = []
        for one in keys:
            if isinstance(one, (list, ndarray, bool_)) or one is True or one is False:
                made = array(one)
                if made._core.kind == "b":
                    at = len([k for k in plain if k is not None and k is not Ellipsis])
                    if Ellipsis not in [k for k in plain if not isinstance(k, ndarray)]:
                        for axis, (side, mask) in enumerate(zip(self.shape[at:], made.shape)):
                            if side != mask:
                                raise IndexError(
                                    f"boolean index did not match indexed array along axis {at + axis}; size of axis is "
                                    f"{side} but size of corresponding boolean axis is {mask}")
                    plain += nonzero(made) if made.ndim else [zeros(0, int)]
                    if not made.ndim:
                        raise IndexError(f"a boolean without dimensions as an index {_ELSEWHERE}")
                    continue
                if made._core.kind != "i" and made.size:
                    raise IndexError("arrays used as indices must be of integer (or boolean) type")
                one = made.astype(int)
            plain.append(one)
        used = len([one for one in plain if one is not None and one is not Ellipsis])
        if used > self.ndim:
            raise IndexError(f"too many indices for array: array is {self.ndim}-dimensional, but {used} were indexed")
        rest = self.ndim - used
        if not _b.any(one is Ellipsis for one in plain):
            plain.append(Ellipsis)
        full = []
        for one in plain:
            full += [slice(None)] * rest if one is Ellipsis else [one]
        # Each axis of the result belongs to the arrays, broadcast together, or to one slice.
        counted, step = [], 1
        for side in reversed(self.shape):
            counted.append(step)
            step *= side
        counted.reverse()
        fancy, axis, order = [], 0, []
        for one in full:
            if one is None:
                order.append(("new", 1, None))
                continue
            side, step = self.shape[axis], counted[axis]
            if isinstance(one, slice):
                start, stop, stride = one.indices(side)
                length = len(range(start, stop, stride))
                order.append(("slice", length, _native.count(start * step, stride * step, length)))
            else:
                at = one if isinstance(one, ndarray) else array(one.__index__())
                low = at.ravel()
                for index in low.tolist() if low.size < 64 else (int(low.min()), int(low.max())):
                    if not -side <= index < side:
                        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {side}")
                at = where(at < 0, at + side, at) * step
                fancy.append(at)
                order.append(("fancy", None, None))
            axis += 1
        marks = [at for at, (what, _, _) in enumerate(order) if what == "fancy"]
        total = fancy[0]
        for at in fancy[1:]:
            try:
                total = total + at
            except ValueError:
                shapes = " ".join(_shape_words(one.shape) for one in fancy)
                raise IndexError("shape mismatch: indexing arrays could not be broadcast together with shapes "
                                 + shapes) from None
        total = asarray(total)
        together = marks[-1] - marks[0] + 1 == len(marks)
        before = [part for part in order[:marks[0]] if part[0] != "fancy"] if together else []
        after = [part for part in order[marks[0] if together else 0:] if part[0] != "fancy"]
        ndim = len(before) + total.ndim + len(after)
        result = total.reshape((1,) * len(before) + total.shape + (1,) * len(after))
        for at, part in list(enumerate(before)) + [(len(before) + total.ndim + at, part)
                                                   for at, part in enumerate(after)]:
            if part[0] == "slice":
                sides = [1] * ndim
                sides[at] = part[1]
                result = result + _array(part[2]).reshape(sides)
        return asarray(result)

    def __getitem__(self, key):
        basic = self._basic(key)
        if basic is None:
            return _array(self._core.gather(self._places(key)._core))
        offset, sides, strides = basic
        if not sides and (key != () if type(key) is tuple else key is not Ellipsis):
            return _wrap(self._core.window(offset, [], []))
        if key == ():
            return _wrap(self._core)
        return self._window(offset, sides, strides)

    def __setitem__(self, key, value):
        basic = self._basic(key)
        value = _core(value)
        if value.kind == "c" and self._core.kind != "c":
            raise TypeError("float() argument must be a string or a real number, not 'complex'")
        if basic is None:
            if isinstance(key, ndarray) and key._core.kind == "b" and value.size == 1 and key.shape == self.shape:
                self._core.assign(_native.choose(key._core, value, self._core))
            else:
                places = self._places(key)
                shape = value.shape
                if len(shape) > places.ndim:
                    value = _array(value).reshape(shape[len(shape) - places.ndim:])._core
                try:
                    self._core.scatter(places._core, value)
                except ValueError:
                    raise ValueError(
                        f"shape mismatch: value array of shape {_shape_words(shape)} could not be broadcast to indexing "
                        f"result of shape {_shape_words(places.shape)}") from None
            return
        offset, sides, strides = basic
        target = self._core.window(offset, sides, strides)
        shape = value.shape
        while len(shape) > len(sides) and shape[0] == 1:
            shape = shape[1:]
        if shape != value.shape:
            value = _array(value).reshape(shape)._core
        target.assign(value)

    def __len__(self):
        if not self._core.shape:
            raise TypeError("len() of unsized object")
        return self._core.shape[0]

    def __iter__(self):
        if not self._core.shape:
            raise TypeError("iteration over a 0-d array")
        if len(self._core.shape) == 1:
            kind = _SCALARS[self._core.kind]
            return iter([kind(one) for one in self._core.flat()])
        return (self[at] for at in range(self._core.shape[0]))

    def __contains__(self, value):
        return _true(any(self == value))

    def __bool__(self):
        if self.size != 1:
            if self.size == 0:
                raise ValueError("The truth value of an empty array is ambiguous. Use `array.size > 0` to check that "
                                 "an array is not empty.")
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or "
                             "a.all()")
        return _true(self._core.flat()[0])

    def item(self, *at):
        if at:
            return self[at if len(at) > 1 else at[0]].item() if self.ndim > 1 or len(at) > 1 else self.flat[at[0]].item()
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._core.flat()[0]

    def __float__(self):
        return float(self._only())

    def __int__(self):
        return int(self._only())

    def __complex__(self):
        return complex(self._only())

    def __index__(self):
        if self.ndim or self._core.kind not in "i":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self._core.flat()[0]

    def _only(self):
        if self.size != 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return self._core.flat()[0]

    def __format__(self, form):
        return format(self.item() if form and self.size == 1 else str(self), form)

    def tolist(self):
        flat = self._core.flat()
        for side in reversed(self.shape[1:]):
            flat = [flat[at:at + side] for at in range(0, len(flat), side)] if side else [[] for _ in range(
                _math.prod(self.shape[:-1]))]
        return flat if self.ndim else flat[0]

    def tobytes(self):
        return bytes(self._core.bytes())

    # Shape.

    def reshape(self, *shape, order="C"):
        if order != "C":
            return self.T.reshape(*_sides(shape[0] if len(shape) == 1 else shape)[::-1]).T
        given = _sides(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        sides = list(given)
        if sides.count(-1) > 1:
            raise ValueError("can only specify one unknown dimension")
        if -1 in sides:
            known = -_math.prod(sides)
            if known == 0 or self.size % known:
                raise ValueError(f"cannot reshape array of size {self.size} into shape {_shape_words(given)}")
            sides[sides.index(-1)] = self.size // known
        if _math.prod(sides) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {_shape_words(given)}")
        steps = _reshaped(self.shape, self._core.strides, sides)
        if steps is None:
            copy = self.copy()
            return copy._window(0, sides, _steps(sides))
        return self._window(self._core.offset, sides, steps)

    def ravel(self, order="C"):
        return self.reshape(-1, order=order)

    def flatten(self, order="C"):
        return self.ravel(order).copy()

    def transpose(self, *axes):
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (list, tuple))):
            axes = axes[0] or ()
        axes = [_axis(axis, self.ndim) for axis in axes] or list(range(self.ndim))[::-1]
        if sorted(axes) != list(range(self.ndim)):
            raise ValueError("axes don't match array")
        core = self._core
        return self._window(core.offset, [core.shape[axis] for axis in axes], [core.strides[axis] for axis in axes])

    def swapaxes(self, a, b):
        order = list(range(self.ndim))
        a, b = _axis(a, self.ndim), _axis(b, self.ndim)
        order[a], order[b] = order[b], order[a]
        return self.transpose(order)

    def squeeze(self, axis=None):
        axes = range(self.ndim) if axis is None else [_axis(one, self.ndim) for one in _sides(axis)]
        if axis is not None and [one for one in axes if self.shape[one] != 1]:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        keep = [one for one in range(self.ndim) if one not in axes or self.shape[one] != 1]
        core = self._core
        return self._window(core.offset, [core.shape[one] for one in keep], [core.strides[one] for one in keep])

    def diagonal(self, offset=0):
        if self.ndim != 2:
            raise ValueError(f"a diagonal of {self.ndim} dimensions {_ELSEWHERE}")
        (rows, columns), (down, right) = self.shape, self._core.strides
        length = _max(0, _min(rows + _min(offset, 0), columns - _max(offset, 0)))
        start = self._core.offset + (offset * right if offset > 0 else -offset * down) * (length > 0)
        return self._window(start, [length], [down + right])

    # Conversion and arithmetic.

    def astype(self, kind, copy=True):
        return _array(self._core.copied(_kind(kind)))

    def copy(self, order="C"):
        return _array(self._core.copied(self._core.kind))

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return _revive, (self._core.flat(), self.shape, self.dtype.name)

    def view(self, kind=None):
        if kind is not None and _kind(kind) != self._core.kind:
            raise TypeError(f"a view as another dtype {_ELSEWHERE}")
        return self._window(self._core.offset, self.shape, self._core.strides)

    def fill(self, value):
        self._core.assign(_core(value))

    def sort(self, axis=-1, kind=None):
        self._core.assign(_core(sort(self, axis)))

    def put(self, places, values):
        self.flat[places] = values

    def __neg__(self):
        return _wrap(_native.unary("negative", self._core))

    def __pos__(self):
        return _wrap(_native.unary("positive", self._core))

    def __abs__(self):
        return _wrap(_native.unary("absolute", self._core))

    def __invert__(self):
        return _wrap(_native.unary("invert", self._core))

    def __matmul__(self, other):
        return matmul(self, other)

    def __rmatmul__(self, other):
        return matmul(other, self)

    def __divmod__(self, other):
        return self // other, self % other

    def __repr__(self):
        return array_repr(self)

    def __str__(self):
        return array_str(self)

    def __getattr__(self, name):
        raise AttributeError(f"ndarray.{name} {_ELSEWHERE}")


def _revive(flat, shape, kind):
    return array(flat, kind).reshape(shape)


def _steps(sides):
    steps = [1] * len(sides)
    for at in range(len(sides) - 1, 0, -1):
        steps[at - 1] = steps[at] * _max(sides[at], 1)
    return steps


def _reshaped(shape, strides, sides):
    """Returns strides that view the same numbers in another shape; None if that requires a copy."""
    if _math.prod(sides) == 0:
        return _steps(sides)
    old = [(side, step) for side, step in zip(shape, strides) if side != 1]
    steps, at, to = [0] * len(sides), 0, 0
    while at < len(old):
        have, want, first, start = old[at][0], 1, at, to
        at += 1
        while want < have or want == 1:
            if to == len(sides):
                return None
            want *= sides[to]
            to += 1
            while have < want:
                have *= old[at][0]
                at += 1
        if want != have:
            return None
        for one in range(first, at - 1):
            if old[one][1] != old[one + 1][0] * old[one + 1][1]:
                return None
        step = old[at - 1][1]
        for one in range(to - 1, start - 1, -1):
            steps[one] = step
            step *= sides[one]
    return steps


def _shape_words(shape):
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _array_operators():
    for name, function in {**_OPERATORS, **_BITS}.items():
        def forward(self, other, function=function):
            try:
                other = _core(other)
            except TypeError:
                return NotImplemented
            return _wrap(_native.binary(function, self._core, other))

        def backward(self, other, function=function):
            try:
                other = _core(other)
            except TypeError:
                return NotImplemented
            return _wrap(_native.binary(function, other, self._core))

        def inplace(self, other, function=function):
            return _into(self, _native.binary(function, self._core, _core(other)), function)

        setattr(ndarray, f"__{name}__", forward)
        if name not in _COMPARISONS:
            setattr(ndarray, f"__r{name}__", backward)
            setattr(ndarray, f"__i{name}__", inplace)
    for cls, plain in ((float64, float), (int64, int), (complex128, complex)):
        _scalar_operators(cls, plain)
    for cls in (int64, bool_):
        for name, function in _BITS.items():
            def bits(self, other, function=function):
                return _wrap(_native.binary(function, _core(self), _core(other)))

            setattr(cls, f"__{name}__", bits)
            setattr(cls, f"__r{name}__", bits)
    _scalar_operators(bool_, bool)
    bool_.__hash__ = lambda self: hash(self._value)


_array_operators()

# Elementwise functions.

for _name in ("positive", "negative", "absolute", "sign", "square", "reciprocal", "sqrt", "exp", "log", "sin", "cos",
              "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "log2",
              "log10", "log1p", "expm1", "exp2", "cbrt", "degrees", "radians", "floor", "ceil", "trunc", "rint",
              "conjugate", "isnan", "isinf", "isfinite", "signbit", "logical_not", "invert"):
    globals()[_name] = _unary(_name)
for _name in ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "maximum", "minimum",
              "arctan2", "hypot", "copysign", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
              "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "logical_and", "logical_or",
              "logical_xor"):
    globals()[_name] = _binary(_name)
abs, conj, fabs, true_divide, mod, bitwise_not = absolute, conjugate, absolute, divide, remainder, invert
deg2rad, rad2deg, pow, asin, acos, atan, atan2 = radians, degrees, power, arcsin, arccos, arctan, arctan2
fmod = lambda a, b: a - b * trunc(divide(a, b))
pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None
bool = bool_
int_, intp, float_, double = int64, int64, float64, float64


def real(a):
    return _wrap(_native.unary("real", _core(a)))


def imag(a):
    return _wrap(_native.unary("imag", _core(a)))


def angle(z, deg=False):
    made = _wrap(_native.unary("angle", _core(z)))
    return degrees(made) if deg else made


def isreal(a):
    return imag(a) == 0


def iscomplexobj(a):
    return _core(a).kind == "c"


def divmod(a, b):
    return floor_divide(a, b), remainder(a, b)


def sinc(x):
    y = pi * where(asarray(x) == 0, 1e-20, x)
    return sin(y) / y


def nan_to_num(a, nan=0.0, posinf=None, neginf=None):
    a = array(a)
    if a._core.kind not in "f":
        return a
    top = 1.7976931348623157e308
    made = where(isnan(a), nan, a)
    made = where(made == inf, top if posinf is None else posinf, made)
    return where(made == -inf, -top if neginf is None else neginf, made)


def heaviside(x, middle):
    return where(isnan(x), nan, where(asarray(x) == 0, middle, where(asarray(x) < 0, 0.0, 1.0)))


# Array creation.


def array(value, dtype=None, copy=True, ndmin=0):
    core = _core(value)
    made = _array(core.copied(core.kind if dtype is None else _kind(dtype)))
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def asarray(value, dtype=None):
    if isinstance(value, ndarray) and (dtype is None or _kind(dtype) == value._core.kind):
        return value
    return array(value, dtype)


ascontiguousarray = asanyarray = asarray


def copy(a):
    return array(a)


def zeros(shape, dtype=float):
    return _array(_native.zeros(_sides(shape), _kind(dtype)))


empty = zeros


def ones(shape, dtype=float):
    return full(shape, 1, dtype)


def full(shape, value, dtype=None):
    core = _core(value)
    made = zeros(shape, _DTYPES[core.kind] if dtype is None else dtype)
    made._core.assign(core)
    return made


def zeros_like(a, dtype=None, shape=None):
    a = asarray(a)
    return zeros(a.shape if shape is None else shape, a.dtype if dtype is None else dtype)


empty_like = zeros_like


def ones_like(a, dtype=None, shape=None):
    return full_like(a, 1, dtype, shape)


def full_like(a, value, dtype=None, shape=None):
    a = asarray(a)
    return full(a.shape if shape is None else shape, value, a.dtype if dtype is None else dtype)


def eye(n, m=None, k=0, dtype=float):
    made = zeros((n, n if m is None else m), dtype)
    made.diagonal(k)[...] = 1
    return made


def identity(n, dtype=float):
    return eye(n, dtype=dtype)


def arange(start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ZeroDivisionError("division by zero")
    length = _max(0, _math.ceil((stop - start) / step))
    whole = _b.all(isinstance(one, int) for one in (start, stop, step))
    plain = int if whole else float
    made = _array(_native.count(plain(start), plain(step), length))
    return made if dtype is None else made.astype(dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None):
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else nan
    made = arange(0, num) * step + start if parts > 0 else zeros(num) + start
    if endpoint and num > 1:
        made[-1] = stop
    if dtype is not None:
        made = made.astype(dtype)
    return (made, float64(step)) if retstep else made


def logspace(start, stop, num=50, endpoint=True, base=10.0):
    return power(float(base), linspace(start, stop, num, endpoint))


def geomspace(start, stop, num=50, endpoint=True):
    made = power(10.0, linspace(_math.log10(start), _math.log10(stop), num, endpoint))
    made[0] = start
    if endpoint and num > 1:
        made[-1] = stop
    return made


def meshgrid(*axes, indexing="xy", sparse=False):
    axes = [asarray(axis).ravel() for axis in axes]
    count = len(axes)
    made = [axis.reshape((1,) * at + (-1,) + (1,) * (count - at - 1)) for at, axis in enumerate(axes)]
    if not sparse:
        shape = tuple(len(axis) for axis in axes)
        made = [broadcast_to(axis, shape).copy() for axis in made]
    if indexing == "xy" and count > 1:
        made = [axis.swapaxes(0, 1).copy() for axis in made]
    return tuple(made)


def indices(shape):
    return array(meshgrid(*[arange(side) for side in shape], indexing="ij"))


def diag(a, k=0):
    a = asarray(a)
    if a.ndim == 2:
        return a.diagonal(k).copy()
    made = zeros((len(a) + _max(k, -k),) * 2, a.dtype)
    made.diagonal(k)[...] = a
    return made


def diagonal(a, offset=0):
    return asarray(a).diagonal(offset)


def tril(a, k=0):
    a = asarray(a)
    rows, columns = arange(a.shape[-2]).reshape(-1, 1), arange(a.shape[-1])
    return where(columns - rows <= k, a, zeros_like(a))


def triu(a, k=0):
    a = asarray(a)
    rows, columns = arange(a.shape[-2]).reshape(-1, 1), arange(a.shape[-1])
    return where(columns - rows >= k, a, zeros_like(a))


def tri(n, m=None, k=0, dtype=float):
    return tril(ones((n, m or n), dtype), k)


def vander(x, n=None, increasing=False):
    x = asarray(x)
    powers = arange(len(x) if n is None else n)
    return x.reshape(-1, 1) ** (powers if increasing else powers[::-1])


def fromfunction(function, shape, dtype=float):
    return function(*[grid.astype(dtype) for grid in meshgrid(*[arange(s) for s in shape], indexing="ij")])


def fromiter(values, dtype, count=-1):
    return array(list(values), dtype)


# Shape.


def shape(a):
    return asarray(a).shape


def ndim(a):
    return asarray(a).ndim


def size(a, axis=None):
    return asarray(a).size if axis is None else asarray(a).shape[axis]


def reshape(a, shape, order="C"):
    return asarray(a).reshape(shape, order=order)


def ravel(a, order="C"):
    return asarray(a).ravel(order)


def transpose(a, axes=None):
    return asarray(a).transpose(axes)


def swapaxes(a, one, other):
    return asarray(a).swapaxes(one, other)


def moveaxis(a, source, destination):
    a = asarray(a)
    source = [_axis(one, a.ndim) for one in _sides(source)]
    destination = [_axis(one, a.ndim) for one in _sides(destination)]
    order = [one for one in range(a.ndim) if one not in source]
    for to, one in sorted(zip(destination, source)):
        order.insert(to, one)
    return a.transpose(order)


def squeeze(a, axis=None):
    return asarray(a).squeeze(axis)


def expand_dims(a, axis):
    a = asarray(a)
    total = a.ndim + len(_sides(axis))
    places = [_axis(one, total) for one in _sides(axis)]
    sides = iter(a.shape)
    return a.reshape([1 if at in places else next(sides) for at in range(total)])


def atleast_1d(a):
    a = asarray(a)
    return a.reshape(1) if a.ndim == 0 else a


def atleast_2d(a):
    a = asarray(a)
    return a.reshape((1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a


def broadcast_to(a, shape):
    a = asarray(a)
    try:
        return _array(a._core.stretched(_sides(shape)))
    except ValueError:
        raise ValueError("operands could not be broadcast together with remapped shapes [original->remapped]: "
                         f"{_shape_words(a.shape)}  and requested shape {_shape_words(_sides(shape))}") from None


def broadcast_shapes(*shapes):
    made = zeros(())
    for one in shapes:
        made = made + zeros(one)
    return shape(made)


def broadcast_arrays(*arrays):
    joined = broadcast_shapes(*[asarray(a).shape for a in arrays])
    return tuple(broadcast_to(a, joined) for a in arrays)


def concatenate(arrays, axis=0, dtype=None):
    arrays = [asarray(a) for a in arrays]
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [a.ravel() for a in arrays], 0
    if arrays[0].ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = _axis(axis, arrays[0].ndim)
    for at, a in enumerate(arrays):
        if a.ndim != arrays[0].ndim:
            raise ValueError("all the input arrays must have same number of dimensions, but the array at index 0 has "
                             f"{arrays[0].ndim} dimension(s) and the array at index {at} has {a.ndim} dimension(s)")
        for side in range(a.ndim):
            if side != axis and a.shape[side] != arrays[0].shape[side]:
                raise ValueError("all the input array dimensions except for the concatenation axis must match exactly, "
                                 f"but along dimension {side}, the array at index 0 has size {arrays[0].shape[side]} "
                                 f"and the array at index {at} has size {a.shape[side]}")
    kind = _max((a._core.kind for a in arrays), key="bifc".index) if dtype is None else _kind(dtype)
    sides = list(arrays[0].shape)
    sides[axis] = _total(a.shape[axis] for a in arrays)
    made, start = zeros(sides, _DTYPES[kind]), 0
    for a in arrays:
        stop = start + a.shape[axis]
        made[(slice(None),) * axis + (slice(start, stop),)] = a
        start = stop
    return made


def stack(arrays, axis=0):
    arrays = [asarray(a) for a in arrays]
    if len({a.shape for a in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    return concatenate([expand_dims(a, axis) for a in arrays], axis)


def vstack(arrays):
    return concatenate([atleast_2d(a) for a in arrays])


def hstack(arrays):
    arrays = [atleast_1d(a) for a in arrays]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def dstack(arrays):
    return concatenate([a.reshape(a.shape + (1,)) for a in map(atleast_2d, arrays)], 2)


def column_stack(arrays):
    return concatenate([a.reshape(-1, 1) if a.ndim < 2 else a for a in map(asarray, arrays)], 1)


def append(a, values, axis=None):
    return concatenate([a, values], axis)


def insert(a, at, values, axis=None):
    a = asarray(a)
    if axis is None:
        a, axis = a.ravel(), 0
    a = moveaxis(a, axis, 0)
    at = at + len(a) if at < 0 else at
    values = asarray(values, a.dtype)
    values = broadcast_to(values, a.shape[1:]).reshape((1,) + a.shape[1:]) if values.ndim < a.ndim and not (
        a.ndim == 1 and values.ndim) else values
    return moveaxis(concatenate([a[:at], values, a[at:]]), 0, axis)


def delete(a, at, axis=None):
    a = asarray(a)
    if axis is None:
        a, axis = a.ravel(), 0
    keep = ones(a.shape[axis], bool)
    keep[at] = False
    return a[(slice(None),) * axis + (keep,)]


def split(a, parts, axis=0):
    a = asarray(a)
    length = a.shape[axis]
    if isinstance(parts, int):
        if length % parts:
            raise ValueError("array split does not result in an equal division")
        parts = [length // parts * at for at in range(1, parts)]
    return _pieces(a, parts, axis)


def array_split(a, parts, axis=0):
    a = asarray(a)
    if isinstance(parts, int):
        each, more = _b.divmod(a.shape[axis], parts)
        parts = [at * each + _min(at, more) for at in range(1, parts)]
    return _pieces(a, parts, axis)


def _pieces(a, cuts, axis):
    cuts = [0, *cuts, a.shape[axis]]
    return [a[(slice(None),) * axis + (slice(one, two),)] for one, two in zip(cuts, cuts[1:])]


def tile(a, times):
    a = asarray(a)
    times = _sides(times)
    times = [1] * (a.ndim - len(times)) + times
    a = a.reshape((1,) * (len(times) - a.ndim) + a.shape)
    for axis, count in enumerate(times):
        a = concatenate([a] * count, axis) if count else a[(slice(None),) * axis + (slice(0),)]
    return a.copy()


def repeat(a, times, axis=None):
    a = asarray(a)
    if axis is None:
        a, axis = a.ravel(), 0
    counts = broadcast_to(asarray(times), (a.shape[axis],)).tolist()
    places = [at for at, count in enumerate(counts) for _ in range(count)]
    return a[(slice(None),) * axis + (array(places, int),)]


def flip(a, axis=None):
    a = asarray(a)
    axes = range(a.ndim) if axis is None else [_axis(one, a.ndim) for one in _sides(axis)]
    return a[tuple(slice(None, None, -1 if one in axes else 1) for one in range(a.ndim))]


def flipud(a):
    return flip(a, 0)


def fliplr(a):
    return flip(a, 1)


def rot90(a, k=1):
    a = asarray(a)
    for _ in range(k % 4):
        a = flip(a.swapaxes(0, 1), 0)
    return a


def roll(a, shift, axis=None):
    a = asarray(a)
    if axis is None:
        return roll(a.ravel(), shift, 0).reshape(a.shape)
    length = a.shape[axis]
    at = -shift % length if length else 0
    cut = (slice(None),) * _axis(axis, a.ndim)
    return concatenate([a[cut + (slice(at, None),)], a[cut + (slice(0, at),)]], axis)


def pad(a, width, mode="constant", constant_values=0):
    a = asarray(a)
    if mode not in ("constant", "edge"):
        raise NotImplementedError(f"numpy.pad with mode {mode!r} {_ELSEWHERE}")
    width = broadcast_to(asarray(width), (a.ndim, 2)).tolist()
    made = full([side + one + two for side, (one, two) in zip(a.shape, width)], constant_values, a.dtype)
    made[tuple(slice(one, one + side) for side, (one, _) in zip(a.shape, width))] = a
    if mode == "edge":
        for axis, (one, two) in enumerate(width):
            view, end = moveaxis(made, axis, 0), made.shape[axis] - two
            view[:one], view[end:] = view[one:one + 1], view[end - 1:end]
    return made


# Operations along axes.


def _along(a, axis):
    """Returns the array with the axes to work on last, whether those are contiguous, and the other axes' shape."""
    a = asarray(a)
    if axis is None:
        return a.ravel(), True, ()
    axes = sorted({_axis(one, a.ndim) for one in _sides(axis)})
    rest = [one for one in range(a.ndim) if one not in axes]
    moved = a.transpose(rest + axes)
    outer = tuple(a.shape[one] for one in rest)
    whole = axes == list(range(a.ndim - len(axes), a.ndim))
    return moved.reshape(outer + (_math.prod(a.shape[one] for one in axes),)), whole, outer


def _kept(made, a, axis, keepdims):
    if not keepdims:
        return made
    a = asarray(a)
    axes = range(a.ndim) if axis is None else [_axis(one, a.ndim) for one in _sides(axis)]
    return asarray(made).reshape([1 if at in axes else side for at, side in enumerate(a.shape)])


def _reduced(name, a, axis, keepdims):
    moved, whole, _ = _along(a, axis)
    core = moved._core
    if name == "sum" and not whole:
        name = "add"
    return _kept(_wrap(_native.reduce(name, core)), a, axis, keepdims)


def sum(a, axis=None, dtype=None, keepdims=False, initial=None):
    a = asarray(a if not hasattr(a, "__next__") else list(a))
    made = _reduced("sum", a if dtype is None else a.astype(dtype), axis, keepdims)
    return made if initial is None else made + initial


def prod(a, axis=None, dtype=None, keepdims=False):
    return _reduced("prod", a if dtype is None else asarray(a).astype(dtype), axis, keepdims)


def max(a, axis=None, keepdims=False):
    return _reduced("max", a, axis, keepdims)


def min(a, axis=None, keepdims=False):
    return _reduced("min", a, axis, keepdims)


def any(a, axis=None, keepdims=False):
    return _reduced("any", a, axis, keepdims)


def all(a, axis=None, keepdims=False):
    return _reduced("all", a, axis, keepdims)


def argmax(a, axis=None, keepdims=False):
    return _reduced("argmax", a, axis, keepdims)


def argmin(a, axis=None, keepdims=False):
    return _reduced("argmin", a, axis, keepdims)


amax, amin = max, min


def _count(a, axis):
    a = asarray(a)
    return a.size if axis is None else _math.prod(a.shape[_axis(one, a.ndim)] for one in _sides(axis))


def mean(a, axis=None, dtype=None, keepdims=False):
    a = asarray(a)
    return sum(a if a._core.kind == "c" else a.astype(float), axis, keepdims=keepdims) / float(_count(a, axis))


def average(a, axis=None, weights=None):
    if weights is None:
        return mean(a, axis)
    a, weights = asarray(a), asarray(weights)
    if weights.shape != a.shape:
        weights = weights.reshape([-1 if at == _axis(axis, a.ndim) else 1 for at in range(a.ndim)])
        weights = broadcast_to(weights, a.shape)
    return sum(a * weights, axis) / sum(weights, axis)


def var(a, axis=None, dtype=None, ddof=0, keepdims=False):
    a = asarray(a)
    off = absolute(a - mean(a, axis, keepdims=True)) if axis is not None else absolute(a - mean(a))
    return divide(sum(off * off, axis, keepdims=keepdims), float(_count(a, axis) - ddof))


def std(a, axis=None, dtype=None, ddof=0, keepdims=False):
    return sqrt(var(a, axis, ddof=ddof, keepdims=keepdims))


def ptp(a, axis=None):
    return max(a, axis) - min(a, axis)


def count_nonzero(a, axis=None):
    made = sum(asarray(a).astype(bool), axis)
    return made


def quantile(a, q, axis=None, keepdims=False, method="linear"):
    if method not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise NotImplementedError(f"numpy.quantile with method {method!r} {_ELSEWHERE}")
    q = asarray(q)
    if not all((q >= 0) & (q <= 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    moved, _, outer = _along(asarray(a).astype(float), axis)
    moved = sort(moved)
    length = moved.shape[-1]
    if length == 0:
        return _wrap((zeros(q.shape + outer) + nan)._core)
    parts = []
    for one in q.ravel().tolist():
        at = one * (length - 1)
        low = _math.floor(at)
        high = low + 1 if low + 1 < length else low
        share = {"linear": at - low, "lower": 0.0, "higher": 1.0 if at > low else 0.0, "midpoint": 0.5 if at > low
                 else 0.0, "nearest": 1.0 if at - low > 0.5 or (at - low == 0.5 and low % 2) else 0.0}[method]
        a_low, a_high = moved[..., low], moved[..., high]
        off = a_high - a_low
        made = a_high - off * (1 - share) if share >= 0.5 else a_low + off * share
        made = where(isnan(moved[..., -1]), nan, made)
        parts.append(_kept(made[()] if isinstance(made, ndarray) else made, a, axis, keepdims))
    return parts[0] if q.ndim == 0 else stack(parts).reshape(q.shape + shape(parts[0]))


def percentile(a, q, axis=None, keepdims=False, method="linear"):
    return quantile(a, asarray(q) / 100, axis, keepdims, method)


def median(a, axis=None, keepdims=False):
    moved, _, _ = _along(asarray(a).astype(float), axis)
    moved = sort(moved)
    length = moved.shape[-1]
    if length == 0:
        return nan
    middle = moved[..., length // 2] if length % 2 else (moved[..., length // 2 - 1] + moved[..., length // 2]) / 2.0
    made = where(isnan(moved[..., -1]), nan, middle)
    return _kept(made[()] if isinstance(made, ndarray) else made, a, axis, keepdims)


def _without_nan(function):
    def apply(a, axis=None, **options):
        a = asarray(a)
        if axis is None:
            return function(a[~isnan(a)], **options)
        moved, _, outer = _along(a, axis)
        rows = moved.reshape(-1, moved.shape[-1])
        return array([function(row[~isnan(row)], **options) for row in rows]).reshape(outer)

    return apply


nansum, nanmean, nanmax, nanmin = _without_nan(sum), _without_nan(mean), _without_nan(max), _without_nan(min)
nanstd, nanvar, nanmedian = _without_nan(std), _without_nan(var), _without_nan(median)
nanpercentile = lambda a, q, axis=None: _without_nan(percentile)(a, axis, q=q)


def _over_axis(native, a, axis):
    a = asarray(a)
    if axis is None:
        return _array(native(a.ravel()._core))
    if a.ndim == 0:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension 0")
    return _array(native(moveaxis(a, axis, -1)._core)) if _axis(axis, a.ndim) == a.ndim - 1 else moveaxis(
        _array(native(moveaxis(a, axis, -1)._core)), -1, axis).copy()


def cumsum(a, axis=None, dtype=None):
    return _over_axis(lambda core: _native.accumulate("cumsum", core), a, axis)


def cumprod(a, axis=None, dtype=None):
    return _over_axis(lambda core: _native.accumulate("cumprod", core), a, axis)


def sort(a, axis=-1, kind=None):
    return _over_axis(_native.sort, a, axis)


def argsort(a, axis=-1, kind=None):
    return _over_axis(_native.argsort, a, axis)


_UFUNC_REDUCE = {"add": sum, "multiply": prod, "maximum": max, "minimum": min, "logical_and": all, "logical_or": any}
_UFUNC_ACCUMULATE = {
    "add": cumsum,
    "multiply": cumprod,
    "maximum": lambda a, axis=0: _over_axis(lambda core: _native.accumulate("cummax", core), a, axis),
    "minimum": lambda a, axis=0: _over_axis(lambda core: _native.accumulate("cummin", core), a, axis),
}


def diff(a, n=1, axis=-1):
    a = asarray(a)
    cut = (slice(None),) * _axis(axis, a.ndim)
    for _ in range(n):
        late, early = a[cut + (slice(1, None),)], a[cut + (slice(None, -1),)]
        a = late ^ early if a._core.kind == "b" else late - early
    return a


def ediff1d(a):
    return diff(asarray(a).ravel())


def gradient(f, *spacing, axis=None):
    f = asarray(f).astype(float)
    axes = range(f.ndim) if axis is None else [_axis(axis, f.ndim)]
    spacing = list(spacing) or [1.0]
    spacing = spacing * len(axes) if len(spacing) == 1 else spacing
    made = []
    for one, step in zip(axes, spacing):
        y = moveaxis(f, one, -1)
        out = zeros(y.shape)
        if ndim(step):
            h = diff(asarray(step).astype(float))
            a, b = h[:-1], h[1:]
            out[..., 1:-1] = -b / (a * (a + b)) * y[..., :-2] + (b - a) / (a * b) * y[..., 1:-1] + a / (
                b * (a + b)) * y[..., 2:]
            first, last = h[0], h[-1]
        else:
            out[..., 1:-1] = (y[..., 2:] - y[..., :-2]) / (2.0 * step)
            first = last = step
        out[..., 0] = (y[..., 1] - y[..., 0]) / first
        out[..., -1] = (y[..., -1] - y[..., -2]) / last
        made.append(moveaxis(out, -1, one))
    return made[0] if len(made) == 1 else tuple(made)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = moveaxis(asarray(y), axis, -1)
    step = dx if x is None else diff(asarray(x))
    return sum(step * (y[..., 1:] + y[..., :-1]) / 2.0, -1)


trapz = trapezoid

# Selection and search.


def where(condition, a=None, b=None):
    if a is None and b is None:
        return nonzero(condition)
    made = _native.choose(_core(condition), _core(a), _core(b))
    return _array(made)


def select(conditions, choices, default=0):
    made = asarray(default)
    for condition, choice in list(zip(conditions, choices))[::-1]:
        made = where(condition, choice, made)
    return made


def nonzero(a):
    a = asarray(a)
    flat = [at for at, one in enumerate(a._core.flat()) if one]
    places, made = array(flat, int), []
    for side in reversed(a.shape):
        made.append(places % side if side else places)
        places = places // side if side else places
    return tuple(made[::-1])


def flatnonzero(a):
    return nonzero(asarray(a).ravel())[0]


def argwhere(a):
    return stack(nonzero(a), 1)


def extract(condition, a):
    return asarray(a)[asarray(condition).astype(bool)]


def take(a, places, axis=None):
    a = asarray(a)
    if axis is None:
        return a.ravel()[places]
    return a[(slice(None),) * _axis(axis, a.ndim) + (asarray(places),)]


def take_along_axis(a, places, axis):
    a, places = asarray(a), asarray(places)
    grids = list(meshgrid(*[arange(side) for side in places.shape], indexing="ij"))
    grids[_axis(axis, a.ndim)] = places
    return a[tuple(grids)]


def clip(a, low=None, high=None, min=None, max=None):
    low, high = min if low is None else low, max if high is None else high
    a = a if low is None else maximum(a, low)
    return a if high is None else minimum(a, high)


def round(a, decimals=0):
    core = _core(a)
    if core.kind in "bi" and decimals >= 0:
        return _wrap(core)
    if decimals == 0:
        return rint(a)
    factor = 10.0 ** (decimals if decimals > 0 else -decimals)
    made = rint(asarray(a) * factor) / factor if decimals > 0 else rint(asarray(a) / factor) * factor
    return _wrap(_core(made).copied(core.kind))


around = round


def fix(a):
    return trunc(a)


def searchsorted(a, values, side="left"):
    import bisect

    flat = asarray(a)._core.flat()
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    values = asarray(values)
    made = array([find(flat, one) for one in values._core.flat()], int).reshape(values.shape)
    return made[()]


def digitize(x, bins, right=False):
    bins = asarray(bins)
    if len(bins) > 1 and bins[0] > bins[-1]:
        return len(bins) - searchsorted(bins[::-1], x, "right" if right else "left")
    return searchsorted(bins, x, "left" if right else "right")


def unique(a, return_index=False, return_inverse=False, return_counts=False, axis=None):
    if axis is not None:
        raise NotImplementedError(f"numpy.unique along an axis {_ELSEWHERE}")
    a = asarray(a)
    flat = a.ravel()
    order = argsort(flat)
    ordered = flat[order]
    first = ones(flat.size, bool)
    if flat.size:
        first[1:] = ordered[1:] != ordered[:-1]
    made = [ordered[first]]
    if return_index:
        made.append(order[first])
    if return_inverse:
        inverse = zeros(flat.size, int)
        inverse[order] = cumsum(first) - 1
        made.append(inverse.reshape(a.shape))
    if return_counts:
        made.append(diff(concatenate([nonzero(first)[0], array([flat.size])])))
    return made[0] if len(made) == 1 else tuple(made)


def isin(a, values):
    known = set(asarray(values).ravel().tolist())
    a = asarray(a)
    return array([one in known for one in a._core.flat()], bool).reshape(a.shape)


def in1d(a, values):
    return isin(a, values).ravel()


def intersect1d(a, b):
    a = unique(a)
    return a[isin(a, b)]


def union1d(a, b):
    return unique(concatenate([asarray(a).ravel(), asarray(b).ravel()]))


def setdiff1d(a, b):
    a = unique(a)
    return a[~isin(a, b)]


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = asarray(a), asarray(b)
    made = (absolute(a - b) <= atol + rtol * absolute(b)) & isfinite(b) | (a == b)
    return made | isnan(a) & isnan(b) if equal_nan else made


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return _true(all(isclose(a, b, rtol, atol, equal_nan)))


_true = lambda value: True if value else False


def array_equal(a, b):
    a, b = asarray(a), asarray(b)
    return a.shape == b.shape and _true(all(a == b))


def shares_memory(a, b):
    return a._core.shares(b._core)


may_share_memory = shares_memory


def isscalar(a):
    return isinstance(a, (int, float, complex, str, bytes, bool_))


def apply_along_axis(function, axis, a, *args, **options):
    moved = moveaxis(asarray(a), axis, -1)
    rows = [asarray(function(row, *args, **options)) for row in moved.reshape(-1, moved.shape[-1])]
    made = stack(rows).reshape(moved.shape[:-1] + rows[0].shape)
    return moveaxis(made, -1, axis) if rows[0].ndim else made


def vectorize(function):
    def apply(*arrays):
        arrays = broadcast_arrays(*arrays)
        made = [function(*one) for one in zip(*[a.ravel() for a in arrays])]
        return array(made).reshape(arrays[0].shape)[()]

    return apply


# Products and sums of products.


def dot(a, b):
    a, b = asarray(a), asarray(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.ndim > 2 or b.ndim > 2:
        raise NotImplementedError(f"numpy.dot of more than two dimensions {_ELSEWHERE}")
    inner, other = a.shape[-1], b.shape[0]
    if inner != other:
        raise ValueError(f"shapes {_shape_words(a.shape)} and {_shape_words(b.shape)} not aligned: {inner} (dim "
                         f"{a.ndim - 1}) != {other} (dim 0)")
    left = a.reshape(1, -1) if a.ndim == 1 else a
    right = b.reshape(-1, 1) if b.ndim == 1 else b
    made = _array(_native.product(left._core, right._core))
    return made.reshape(a.shape[:-1] + b.shape[1:])[()]


def matmul(a, b):
    a, b = asarray(a), asarray(b)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul: Input operand 1 does not have enough dimensions (has 0, gufunc core with signature "
                         "(n?,k),(k,m?)->(n?,m?) requires 1)")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise ValueError("matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                         f"(n?,k),(k,m?)->(n?,m?) (size {b.shape[-2 if b.ndim > 1 else 0]} is different from "
                         f"{a.shape[-1]})")
    if a.ndim <= 2 and b.ndim <= 2:
        return dot(a, b)
    left = a.reshape(1, -1) if a.ndim == 1 else a
    right = b.reshape(-1, 1) if b.ndim == 1 else b
    outer = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = broadcast_to(left, outer + left.shape[-2:]).reshape((-1,) + left.shape[-2:])
    right = broadcast_to(right, outer + right.shape[-2:]).reshape((-1,) + right.shape[-2:])
    made = stack([dot(one, two) for one, two in zip(left, right)])
    made = made.reshape(outer + made.shape[1:])
    if a.ndim == 1:
        made = made[..., 0, :]
    return made[..., 0] if b.ndim == 1 else made


def inner(a, b):
    return dot(a, asarray(b).T)


def vdot(a, b):
    return dot(conjugate(asarray(a).ravel()), asarray(b).ravel())


def outer(a, b):
    return asarray(a).reshape(-1, 1) * asarray(b).reshape(1, -1)


def kron(a, b):
    a, b = atleast_2d(a), atleast_2d(b)
    made = a[:, None, :, None] * b[None, :, None, :]
    return made.reshape(a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])


def cross(a, b):
    a, b = asarray(a), asarray(b)
    x, y, z = [a[..., at] for at in range(3)]
    u, v, w = [b[..., at] for at in range(3)]
    return stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)


def trace(a, offset=0):
    return sum(asarray(a).diagonal(offset))


def convolve(a, v, mode="full"):
    a, v = asarray(a), asarray(v)
    if len(v) > len(a):
        a, v = v, a
    made = zeros(len(a) + len(v) - 1, (a[:1] * v[:1]).dtype)
    for at in range(len(v)):
        made[at:at + len(a)] += a * v[at]
    if mode == "same":
        start = (len(v) - 1) // 2
        return made[start:start + len(a)]
    return made[len(v) - 1:len(a)] if mode == "valid" else made


def correlate(a, v, mode="valid"):
    return convolve(a, conjugate(asarray(v))[::-1], mode)


# Statistics and curves.


def histogram(a, bins=10, range=None, density=False, weights=None):
    a = asarray(a).ravel().astype(float)
    if ndim(bins) == 0:
        low, high = range or ((float(a.min()), float(a.max())) if a.size else (0.0, 1.0))
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = linspace(low, high, int(bins) + 1)
    else:
        edges = asarray(bins).astype(float)
    order = argsort(a)
    a = a[order]
    cut = concatenate([searchsorted(a, edges[:-1], "left"), array([searchsorted(a, edges[-1], "right")])])
    if weights is not None:
        total = concatenate([zeros(1), cumsum(asarray(weights)[order])])
        counts = diff(total[cut])
    else:
        counts = diff(cut)
    return (counts / diff(edges) / sum(counts) if density else counts), edges


def histogram_bin_edges(a, bins=10, range=None):
    return histogram(a, bins, range)[1]


def bincount(a, weights=None, minlength=0):
    a = asarray(a)
    length = _math.trunc(max(a)) + 1 if a.size else 0
    made = [0] * (length if length > minlength else minlength)
    for at, weight in zip(a._core.flat(), [1] * a.size if weights is None else asarray(weights)._core.flat()):
        made[at] += weight
    return array(made, int if weights is None else float)


def cov(m, y=None, rowvar=True, bias=False, ddof=None):
    m = atleast_2d(m).astype(float)
    m = m if rowvar or m.shape[0] == 1 else m.T
    if y is not None:
        m = vstack([m, atleast_2d(y)])
    ddof = (0 if bias else 1) if ddof is None else ddof
    m = m - mean(m, 1, keepdims=True)
    return squeeze(dot(m, m.T) / float(m.shape[1] - ddof))[()]


def corrcoef(x, y=None, rowvar=True):
    c = asarray(cov(x, y, rowvar))
    if c.ndim == 0:
        return c / c
    d = sqrt(c.diagonal())
    return clip(c / d[:, None] / d[None, :], -1, 1)


def interp(x, xp, fp, left=None, right=None):
    xp, fp, x = asarray(xp).astype(float), asarray(fp), asarray(x)
    at = clip(searchsorted(xp, x.ravel(), "right") - 1, 0, len(xp) - 2) if len(xp) > 1 else zeros(x.size, int)
    if len(xp) > 1:
        slope = (fp[at + 1] - fp[at]) / (xp[at + 1] - xp[at])
        made = slope * (x.ravel() - xp[at]) + fp[at]
    else:
        made = zeros(x.size) + fp[0]
    made = where(x.ravel() < xp[0], fp[0] if left is None else left, made)
    made = where(x.ravel() > xp[-1], fp[-1] if right is None else right, made)
    made = where(x.ravel() == xp[-1], fp[-1], made)
    return made.reshape(x.shape)[()]


def polyval(p, x):
    made = asarray(x) * 0
    for one in asarray(p):
        made = made * x + one
    return made


def polyfit(x, y, deg):
    x, y = asarray(x).astype(float), asarray(y)
    a = vander(x, deg + 1)
    scale = sqrt(sum(a * a, 0))
    solved = linalg.lstsq(a / scale, y)[0]
    return solved / (scale if solved.ndim == 1 else scale[:, None])


def polyadd(a, b):
    a, b = atleast_1d(a), atleast_1d(b)
    more = len(a) - len(b)
    return concatenate([zeros(-more, int), a]) + b if more < 0 else a + concatenate([zeros(more, int), b])


def polymul(a, b):
    return convolve(atleast_1d(a), atleast_1d(b))


def polyder(p, m=1):
    p = asarray(p)
    for _ in range(m):
        p = p[:-1] * arange(len(p) - 1, 0, -1)
    return p


def polyint(p):
    p = asarray(p)
    return concatenate([p / arange(len(p), 0, -1), zeros(1)])


def roots(p):
    p = asarray(p)
    used = nonzero(p)[0]
    if not used.size:
        return zeros(0)
    zeros_at_end = len(p) - 1 - int(used[-1])
    p = p[int(used[0]):int(used[-1]) + 1]
    if len(p) < 2:
        return zeros(zeros_at_end)
    companion = zeros((len(p) - 1,) * 2, complex if p._core.kind == "c" else float)
    companion.diagonal(-1)[...] = 1
    companion[0] = -p[1:] / p[0]
    return concatenate([linalg.eigvals(companion), zeros(zeros_at_end)])


def einsum(*_):
    raise NotImplementedError(f"numpy.einsum {_ELSEWHERE}")


# Files.


def loadtxt(fname, dtype=float, comments="#", delimiter=None, skiprows=0, usecols=None, unpack=False, ndmin=0,
            max_rows=None):
    lines = open(fname) if isinstance(fname, str) or hasattr(fname, "__fspath__") else fname
    rows = []
    for line in list(lines)[skiprows:]:
        line = (line.decode() if isinstance(line, bytes) else line).split(comments)[0].strip()
        if line and (max_rows is None or len(rows) < max_rows):
            words = [word.strip() for word in line.split(delimiter)]
            words = words if usecols is None else [words[at] for at in _sides(usecols)]
            rows.append([complex(word) if _kind(dtype) == "c" else float(word) for word in words])
    if lines is not fname:
        lines.close()
    if len({len(row) for row in rows}) > 1:
        raise ValueError("the number of columns changed between rows; use `usecols` to select a subset")
    made = array(rows, dtype) if rows else zeros((0, 0), dtype)
    made = made.squeeze() if ndmin < 2 else made
    made = made.reshape(-1) if made.ndim < ndmin else made
    return made.T if unpack else made


def genfromtxt(fname, delimiter=None, skip_header=0, dtype=float):
    def number(word):
        try:
            return float(word)
        except ValueError:
            return nan

    with open(fname) as lines:
        rows = [[number(word) for word in line.split(delimiter)] for line in list(lines)[skip_header:] if line.strip()]
    return array(rows, dtype).squeeze()


def savetxt(fname, X, fmt="%.18e", delimiter=" ", newline="\n", header="", footer="", comments="# "):
    X = asarray(X)
    X = X.reshape(-1, 1) if X.ndim < 2 else X
    formats = list(fmt) if isinstance(fmt, (list, tuple)) else [fmt] * X.shape[1]
    lines = [comments + header.replace("\n", "\n" + comments)] if header else []
    lines += [delimiter.join(form % one for form, one in zip(formats, row)) for row in X.tolist()]
    lines += [comments + footer.replace("\n", "\n" + comments)] if footer else []
    text = "".join(line + newline for line in lines)
    if hasattr(fname, "write"):
        fname.write(text)
    else:
        with open(fname, "w") as file:
            file.write(text)


# Printing.

_print = {"precision": 8, "threshold": 1000, "edgeitems": 3, "linewidth": 75, "suppress": False}


def set_printoptions(**options):
    for name, value in options.items():
        if name not in _print:
            raise TypeError(f"set_printoptions: {name} {_ELSEWHERE}")
        _print[name] = value


def get_printoptions():
    return dict(_print)


class printoptions:
    def __init__(self, **options):
        self._new = options

    def __enter__(self):
        self._old = get_printoptions()
        set_printoptions(**self._new)

    def __exit__(self, *_):
        set_printoptions(**self._old)


def _positional(x, precision):
    """Formats a number with its fewest digits, at most `precision` behind the point; the point is kept."""
    text = float.__repr__(x)
    if "e" in text:
        text = f"{x:.{precision}f}" if -1e16 < x < 1e16 else f"{x:.1f}"
        whole, _, rest = text.partition(".")
        text = whole + "." + rest.rstrip("0")
    whole, _, rest = text.partition(".")
    if len(rest) > precision:
        rest = f"{x:.{precision}f}".partition(".")
        whole, rest = rest[0], rest[2]
    rest = rest.rstrip("0")
    return whole + "." + rest


def _scientific(x, precision, digits=0):
    text = float.__repr__(x)
    shortest = f"{x:e}"
    for count in range(precision + 1):
        shortest = f"{x:.{count}e}"
        if float(shortest) == x:
            break
    mantissa, _, exponent = shortest.partition("e")
    whole, _, rest = mantissa.partition(".")
    rest = rest.rstrip("0")
    rest += "0" * (digits - len(rest))
    return f"{whole}.{rest}", "e" + exponent


class _Floats:
    def __init__(self, values, sign=""):
        finite = [x for x in values if _math.isfinite(x)]
        self.sign, self.precision, self.exponential = sign, _print["precision"], False
        sized = [_math.fabs(x) for x in finite if x]
        if sized and not _print["suppress"]:
            high, low = _max(sized), _min(sized)
            self.exponential = high >= 1e8 or low < 1e-4 or high / low > 1000.0
        elif sized:
            self.exponential = _max(sized) >= 1e8
        self.left = self.right = 0
        if finite:
            if self.exponential:
                parts = [_scientific(x, self.precision) for x in finite]
                self.digits = _max(len(mantissa.partition(".")[2]) for mantissa, _ in parts)
                self.left = _max(len(self._signed(x, mantissa).partition(".")[0]) for x, (mantissa, _) in zip(
                    finite, parts))
                self.right = self.digits + _max(len(exponent) for _, exponent in parts)
            else:
                parts = [self._signed(x, _positional(x, self.precision)).partition(".") for x in finite]
                self.left = _max(len(part[0]) for part in parts)
                self.right = _max(len(part[2]) for part in parts)
        if len(finite) < len(values):
            negative = [x for x in values if x == -inf]
            room = 4 if negative or sign == "+" and [x for x in values if x == inf] else 3
            self.left = _max([self.left, room - self.right - 1])

    def _signed(self, x, text):
        return "+" + text if self.sign == "+" and not text.startswith("-") else text

    def __call__(self, x):
        if not _math.isfinite(x):
            text = "nan" if x != x else ("+inf" if self.sign == "+" else "inf") if x > 0 else "-inf"
            text = "+nan" if self.sign == "+" and x != x else text
            return text.rjust(self.left + self.right + 1)
        if self.exponential:
            mantissa, exponent = _scientific(x, self.digits, self.digits)
            whole, _, rest = self._signed(x, mantissa).partition(".")
            return whole.rjust(self.left) + "." + rest + exponent
        whole, _, rest = self._signed(x, _positional(x, self.precision)).partition(".")
        return whole.rjust(self.left) + "." + rest.ljust(self.right)




def _formatter(kind, values, scalar):
    if kind == "b":
        return (lambda x: str(x)) if scalar else (lambda x: str(x).rjust(5))
    if kind == "i":
        width = _max([len(str(x)) for x in values], default=0)
        return lambda x: str(x).rjust(width)
    if kind == "f":
        return _Floats(values)
    real, imag = _Floats([x.real for x in values]), _Floats([x.imag for x in values], "+")

    def both(x):
        i = imag(x.imag)
        bare = i.rstrip()
        return real(x.real) + bare + "j" + i[len(bare):]

    return both


def _shown_items(a):
    edge = _print["edgeitems"]
    for axis in range(a.ndim):
        if a.shape[axis] > 2 * edge:
            cut = (slice(None),) * axis
            a = concatenate([a[cut + (slice(None, edge),)], a[cut + (slice(-edge, None),)]], axis)
    return a


def _layout(a, separator, prefix, suffix):
    if a.size == 0:
        return "[]"
    long = a.size > _print["threshold"]
    edge = _print["edgeitems"]
    form = _formatter(a._core.kind, (_shown_items(a) if long else a)._core.flat(), a.ndim == 0)

    def extend(text, line, word, width, indent):
        if len(line) + len(word) > width and len(line) > len(indent):
            text += line.rstrip() + "\n"
            line = indent
        return text, line + word

    def walk(part, indent, width):
        if part.ndim == 0:
            return form(part._core.flat()[0])
        short = long and part.shape[0] > 2 * edge
        heads, tails = (edge, edge) if short else (0, part.shape[0])
        deeper, narrower = indent + " ", width - 1
        text = ""
        if part.ndim == 1:
            words = part._core.flat()
            room = width - _max([len(separator.rstrip()), 1])
            line = indent
            for at in range(heads):
                text, line = extend(text, line, form(words[at]), room, indent)
                line += separator
            if short:
                text, line = extend(text, line, "...", room, indent)
                line += separator
            for at in range(tails, 1, -1):
                text, line = extend(text, line, form(words[-at]), room, indent)
                line += separator
            if words:
                text, line = extend(text, line, form(words[-1]), room, indent)
            text += line
        else:
            between = separator.rstrip() + "\n" * (part.ndim - 1)
            for at in range(heads):
                text += indent + walk(part[at:at + 1].reshape(part.shape[1:]), deeper, narrower) + between
            if short:
                text += indent + "..." + between
            for at in range(tails, 1, -1):
                at = part.shape[0] - at
                text += indent + walk(part[at:at + 1].reshape(part.shape[1:]), deeper, narrower) + between
            text += indent + walk(part[-1:].reshape(part.shape[1:]), deeper, narrower)
        return "[" + text[len(indent):] + "]"

    return walk(a, " " + " " * len(prefix), _print["linewidth"] - len(suffix))


def array2string(a, separator=" ", prefix="", suffix=""):
    return _layout(asarray(a), separator, prefix, suffix)


def array_str(a):
    return _layout(asarray(a), " ", "", "")


def array_repr(a):
    body = _layout(a, ", ", "array(", ")")
    extra = []
    if a.size == 0 and a.shape != (0,) or a.size > _print["threshold"]:
        extra.append(f"shape={a.shape}")
    if a.size == 0:
        extra.append(f"dtype={a.dtype}")
    if not extra:
        return f"array({body})"
    text, extra = f"array({body},", ", ".join(extra) + ")"
    last = len(text) - (text.rfind("\n") + 1)
    space = "\n" + " " * len("array(") if last + len(extra) + 1 > _print["linewidth"] else " "
    return text + space + extra


# Functions that are array methods, too.

for _name in ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean", "var", "std", "ptp", "cumsum",
              "cumprod", "argsort", "clip", "round", "dot", "nonzero", "repeat", "take", "trace", "searchsorted"):
    setattr(ndarray, _name, globals()[_name])
ndarray.conj = ndarray.conjugate = lambda self: conjugate(self)

# numpy.linalg


def _submodule(name, **members):
    module = _Module(f"numpy.{name}")

    def missing(attribute):
        raise AttributeError(f"numpy.{name}.{attribute} {_ELSEWHERE}")

    module.__dict__.update(members, __getattr__=missing)
    _sys.modules[module.__name__] = module
    return module


def _floating(a):
    a = asarray(a)
    return a if a._core.kind in "fc" else a.astype(float)


def _decomposed(name, a):
    a = _floating(a)
    if a.ndim > 2:
        raise NotImplementedError(f"numpy.linalg.{name} of more than two dimensions {_ELSEWHERE}")
    if not all(isfinite(a)):
        raise LinAlgError("Array must not contain infs or NaNs")
    return [_array(core) for core in _native.decompose(name, a._core)]


def _solve(a, b):
    a, b = _floating(a), _floating(b)
    made = _array(_native.solve(a._core, (b.reshape(-1, 1) if b.ndim == 1 else b)._core))
    return made.reshape(b.shape)


def _svd(a, full_matrices=True, compute_uv=True):
    u, s, v = _decomposed("svd", a)
    if not compute_uv:
        return s
    if full_matrices:
        u, v = _completed(u), _completed(v.T).T
    return u, s, v


def _completed(q):
    """Extends the columns of `q` to as many orthonormal columns as there are rows."""
    rows, columns = q.shape
    if rows == columns:
        return q
    found = [q[:, at] for at in range(columns)]
    for unit in eye(rows):
        for _ in range(2):
            for one in found:
                unit = unit - one * vdot(one, unit)
        length = sqrt(real(vdot(unit, unit)))
        if length > 1e-8 and len(found) < rows:
            found.append(unit / length)
    return stack(found, 1)


def _norm(x, ord=None, axis=None, keepdims=False):
    x = asarray(x)
    size = absolute(x)
    if axis is None and (ord is None or ord == "fro" or ord == 2 and x.ndim == 1):
        return _kept(sqrt(sum(size.ravel() ** 2.0)), x, None, keepdims)
    if axis is None and x.ndim == 2:
        if ord in (1, -1, inf, -inf):
            rows = sum(size, 0 if ord in (1, -1) else 1)
            return max(rows) if ord > 0 else min(rows)
        values = _svd(x, compute_uv=False)
        return {2: max, -2: min, "nuc": sum}[ord](values)
    if ord in (None, 2):
        return sqrt(sum(size ** 2.0, axis, keepdims=keepdims))
    if ord in (inf, -inf):
        return (max if ord > 0 else min)(size, axis, keepdims=keepdims)
    if ord == 0:
        return sum((size != 0).astype(float), axis, keepdims=keepdims)
    return sum(size ** float(ord), axis, keepdims=keepdims) ** (1.0 / ord)


def _pinv(a, rcond=1e-15):
    u, s, v = _svd(a, False)
    kept = s > rcond * max(s)
    turned = where(kept, 1 / where(kept, s, 1.0), 0.0)
    return dot(conjugate(v.T) * turned, conjugate(u.T))


def _lstsq(a, b, rcond=None):
    a, b = _floating(a), _floating(b)
    u, s, v = _svd(a, False)
    rank = int(sum(s > 2.220446049250313e-16 * _max(a.shape) * max(s)))
    turned = where(arange(len(s)) < rank, 1 / where(s == 0, 1.0, s), 0.0)
    right = dot(conjugate(u.T), b)
    x = dot(conjugate(v.T), right * (turned if right.ndim == 1 else turned[:, None]))
    left = b - dot(a, x)
    residuals = sum(absolute(left) ** 2.0, 0) if rank == a.shape[1] and a.shape[0] > rank else zeros(0)
    return x, atleast_1d(residuals), rank, s


def _matrix_power(a, n):
    a = asarray(a)
    if n < 0:
        a, n = _decomposed("inv", a)[0], -n
    made = identity(len(a), a.dtype)
    for _ in range(n):
        made = dot(made, a)
    return made


def _named(names, values):
    from collections import namedtuple

    return namedtuple(*names)(*values)


def _qr(a, mode="reduced"):
    if mode != "reduced":
        raise NotImplementedError(f"numpy.linalg.qr with mode {mode!r} {_ELSEWHERE}")
    return _named(("QRResult", "Q R"), _decomposed("qr", a))


linalg = _submodule(
    "linalg",
    LinAlgError=LinAlgError,
    solve=_solve,
    inv=lambda a: _decomposed("inv", a)[0],
    det=lambda a: _decomposed("det", a)[0][0],
    eig=lambda a: _named(("EigResult", "eigenvalues eigenvectors"), _decomposed("eig", a)),
    eigvals=lambda a: _decomposed("eig", a)[0],
    eigh=lambda a: _named(("EighResult", "eigenvalues eigenvectors"), _decomposed("eigh", a)),
    eigvalsh=lambda a: _decomposed("eigh", a)[0],
    svd=lambda a, full_matrices=True, compute_uv=True: _svd(a, full_matrices) if not compute_uv is True else _named(
        ("SVDResult", "U S Vh"), _svd(a, full_matrices)),
    svdvals=lambda a: _decomposed("svd", a)[1],
    qr=_qr,
    cholesky=lambda a: _decomposed("cholesky", a)[0],
    norm=_norm,
    pinv=_pinv,
    lstsq=_lstsq,
    matrix_rank=lambda a: int64(int(sum(_decomposed("svd", atleast_2d(a))[1] > max(
        _decomposed("svd", atleast_2d(a))[1]) * _max(asarray(a).shape) * 2.220446049250313e-16))),
    matrix_power=_matrix_power,
    cond=lambda a: _decomposed("svd", a)[1][0] / _decomposed("svd", a)[1][-1],
    multi_dot=lambda arrays: __import__("functools").reduce(dot, arrays),
)

# numpy.fft


def _fourier(a, n, axis, inverse):
    a = moveaxis(asarray(a), axis, -1)
    length = a.shape[-1] if n is None else n
    if length > a.shape[-1]:
        a = concatenate([a, zeros(a.shape[:-1] + (length - a.shape[-1],))], -1)
    return moveaxis(_array(_native.fourier(a[..., :length]._core, inverse)), -1, axis)


def _fft(a, n=None, axis=-1):
    return _fourier(a, n, axis, False)


def _ifft(a, n=None, axis=-1):
    return _fourier(a, n, axis, True)


def _rfft(a, n=None, axis=-1):
    made = moveaxis(_fft(a, n, axis), axis, -1)
    return moveaxis(made[..., :made.shape[-1] // 2 + 1], -1, axis)


def _irfft(a, n=None):
    a = asarray(a)
    n = 2 * (a.shape[-1] - 1) if n is None else n
    a = a[..., :n // 2 + 1]
    back = conjugate(a[..., 1:(n + 1) // 2])[..., ::-1]
    return real(_ifft(concatenate([a, back], -1)))


def _fftfreq(n, d=1.0):
    return concatenate([arange(0, (n - 1) // 2 + 1), arange(-(n // 2), 0)]) * (1.0 / (n * d))


def _shifted(direction):
    def shift(a, axes=None):
        a = asarray(a)
        for axis in range(a.ndim) if axes is None else _sides(axes):
            half = a.shape[axis] // 2
            a = roll(a, half if direction > 0 else -half, axis)
        return a

    return shift


fft = _submodule(
    "fft", fft=_fft, ifft=_ifft, rfft=_rfft, irfft=_irfft, fftfreq=_fftfreq,
    rfftfreq=lambda n, d=1.0: arange(0, n // 2 + 1) / (n * d), fftshift=_shifted(1), ifftshift=_shifted(-1),
    fft2=lambda a: _fft(_fft(a, axis=-1), axis=-2), ifft2=lambda a: _ifft(_ifft(a, axis=-1), axis=-2),
)

# numpy.random


class Generator:
    """Random numbers. The same seed gives the same numbers; `random()` gives numpy's."""

    def __init__(self, seed=None):
        if seed is None:
            import os

            seed = int.from_bytes(os.urandom(16), "little")
        words = []
        for one in (seed if isinstance(seed, (list, tuple)) else [seed]):
            if one < 0:
                raise ValueError("expected non-negative integer")
            words.append(one & 0xFFFFFFFF)
            while one >> 32:
                one >>= 32
                words.append(one & 0xFFFFFFFF)
        self._chance = _native.seeded(words)

    def _draw(self, kind, size, end=0):
        sides = [] if size is None else _sides(size)
        made = _array(self._chance.draw(kind, _math.prod(sides), end)).reshape(sides)
        return made if size is not None else made[()] if kind == "below" else made.item()

    def random(self, size=None):
        return self._draw("unit", size)

    def uniform(self, low=0.0, high=1.0, size=None):
        return asarray(low)[()] + self._draw("unit", size) * (asarray(high)[()] - asarray(low)[()])

    def standard_normal(self, size=None):
        return self._draw("normal", size)

    def normal(self, loc=0.0, scale=1.0, size=None):
        if size is None and (ndim(loc) or ndim(scale)):
            size = broadcast_shapes(shape(loc), shape(scale))
        return loc + self._draw("normal", size) * scale

    def lognormal(self, mean=0.0, sigma=1.0, size=None):
        return exp(self.normal(mean, sigma, size))

    def exponential(self, scale=1.0, size=None):
        return -log(1.0 - self._draw("unit", size)) * scale

    def integers(self, low, high=None, size=None, endpoint=False):
        low, high = (0, low) if high is None else (low, high)
        end = high - low + (1 if endpoint else 0)
        if end <= 0:
            raise ValueError("low >= high")
        return self._draw("below", size, end) + low

    def poisson(self, lam=1.0, size=None):
        def one(_):
            count, product, limit = 0, float(self.random()), _math.exp(-lam)
            while product > limit:
                count, product = count + 1, product * float(self.random())
            return count

        sides = [] if size is None else _sides(size)
        made = array([one(at) for at in range(_math.prod(sides))], int).reshape(sides)
        return made if size is not None else made[()]

    def binomial(self, n, p, size=None):
        sides = [] if size is None else _sides(size)
        made = sum(self._draw("unit", sides + [n]) < p, -1)
        return made

    def permutation(self, x):
        x = arange(x) if isinstance(x, int) else array(x)
        return x[argsort(self._draw("unit", len(x)))]

    def shuffle(self, x):
        if isinstance(x, list):
            x[:] = [x[at] for at in self.permutation(len(x)).tolist()]
        else:
            x[...] = self.permutation(x)

    def choice(self, a, size=None, replace=True, p=None):
        length = a if isinstance(a, int) else len(a)
        count = 1 if size is None else _math.prod(_sides(size))
        if p is not None and replace:
            edges = cumsum(p)
            at = searchsorted(edges / edges[-1], self._draw("unit", count), "right")
        elif p is not None:
            keys = log(self._draw("unit", length)) / asarray(p)
            at = argsort(-keys)[:count]
        elif replace:
            at = self._draw("below", count, length)
        else:
            if count > length:
                raise ValueError("Cannot take a larger sample than population when replace is False")
            at = self.permutation(length)[:count]
        if isinstance(a, (list, tuple)) and [one for one in a if isinstance(one, str)]:
            words = [a[one] for one in at.tolist()]
            return words[0] if size is None else words
        at = at[0] if size is None else at.reshape(_sides(size))
        return at if isinstance(a, int) else asarray(a)[at]


class RandomState(Generator):
    """The numbers that numpy gives after `numpy.random.seed()`.

    Others come only from `binomial`, from `poisson` of 10 and more, and from a `choice` with `p` that replaces nothing.
    """

    def __init__(self, seed=None):
        self.seed(seed)

    def seed(self, seed=None):
        from random import Random

        if seed is None:
            # No numbers are expected, so the faster ones serve.
            self._twister = None
            return Generator.__init__(self)
        # Python and numpy have the same generator, a Mersenne Twister, but fill it in different ways.
        self._twister, self._second = Random(), None
        if isinstance(seed, (list, tuple)):
            number = 0
            for one in reversed(seed):
                number = number << 32 | int(one)
            self._twister.seed(number)
        else:
            word, words = int(seed), []
            if not 0 <= word < 1 << 32:
                raise ValueError("Seed must be between 0 and 2**32 - 1")
            for at in range(1, 625):
                words.append(word)
                word = (1812433253 * (word ^ word >> 30) + at) & 0xFFFFFFFF
            self._twister.setstate((3, (*words, 624), None))

    def _draw(self, kind, size, end=0):
        if self._twister is None:
            return Generator._draw(self, kind, size, end)
        sides = [] if size is None else _sides(size)
        end = int(end)
        one = {"unit": self._twister.random, "normal": self._normal, "below": lambda: self._below(end)}[kind]
        made = array([one() for _ in range(_math.prod(sides))], int if kind == "below" else float).reshape(sides)
        return made if size is not None else made[()] if kind == "below" else made.item()

    def _normal(self):
        if self._second is not None:
            value, self._second = self._second, None
            return value
        square = 0.0
        while not 0.0 < square < 1.0:
            x, y = 2.0 * self._twister.random() - 1.0, 2.0 * self._twister.random() - 1.0
            square = x * x + y * y
        factor = _math.sqrt(-2.0 * _math.log(square) / square)
        self._second = factor * x
        return factor * y

    def _below(self, end):
        """Draws as many bits as the largest number has, until they are small enough."""
        bits = (end - 1).bit_length()
        while bits:
            word = self._twister.getrandbits(32)
            if bits > 32:
                word = word << 32 | self._twister.getrandbits(32)
            word &= (1 << bits) - 1
            if word < end:
                return word
        return 0

    def permutation(self, x):
        if self._twister is None:
            return Generator.permutation(self, x)
        x = arange(x) if isinstance(x, int) else array(x)
        order = list(range(len(x)))
        for at in range(len(order) - 1, 0, -1):
            other = self._below(at + 1)
            order[at], order[other] = order[other], order[at]
        return x[array(order, int)]

    def rand(self, *size):
        return self.random(size or None)

    def randn(self, *size):
        return self.standard_normal(size or None)

    def randint(self, low, high=None, size=None):
        return self.integers(low, high, size)

    def random_sample(self, size=None):
        return self.random(size)


def _legacy():
    state = RandomState()
    names = ("seed", "rand", "randn", "randint", "random", "random_sample", "uniform", "normal", "standard_normal",
             "exponential", "poisson", "binomial", "choice", "shuffle", "permutation", "lognormal")
    return {name: getattr(state, name) for name in names}


random = _submodule("random", Generator=Generator, RandomState=RandomState, default_rng=Generator, **_legacy())


def iinfo(kind):
    return _named(("iinfo", "min max"), (-2**63, 2**63 - 1))


def finfo(kind):
    return _named(("finfo", "eps max min tiny"), (float64(2.220446049250313e-16), float64(1.7976931348623157e308),
                                                  float64(-1.7976931348623157e308), float64(2.2250738585072014e-308)))


class errstate:
    """Accepted: no warnings are issued here."""

    def __init__(self, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def seterr(**options):
    return {}
