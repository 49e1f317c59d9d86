//! Arrays: numbers in one shared run of memory, seen through a shape and steps, so that a view is the array it views.
//!
//! Four kinds of numbers and no more. This file knows no Python.

use nalgebra::Complex;
use std::sync::{Arc, PoisonError, RwLock};

/// A complex number of two doubles.
pub(crate) type C64 = Complex<f64>;

/// What an operation refuses: the class of the exception and its words.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    Value(String),
    Type(String),
    Index(String),
    Linear(String),
}

pub(crate) fn value<T>(words: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Value(words.into()))
}

/// The kinds, in the order in which one becomes the next when they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Bool,
    Int,
    Float,
    Complex,
}

impl Kind {
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Kind::Bool => "b",
            Kind::Int => "i",
            Kind::Float => "f",
            Kind::Complex => "c",
        }
    }

    pub(crate) fn of(letter: &str) -> Result<Kind, Refusal> {
        match letter {
            "b" => Ok(Kind::Bool),
            "i" => Ok(Kind::Int),
            "f" => Ok(Kind::Float),
            "c" => Ok(Kind::Complex),
            other => Err(Refusal::Type(format!("there is no kind {other}"))),
        }
    }
}

/// Numbers of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Complex(Vec<C64>),
}

impl Data {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Data::Bool(_) => Kind::Bool,
            Data::Int(_) => Kind::Int,
            Data::Float(_) => Kind::Float,
            Data::Complex(_) => Kind::Complex,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Data::Bool(all) => all.len(),
            Data::Int(all) => all.len(),
            Data::Float(all) => all.len(),
            Data::Complex(all) => all.len(),
        }
    }
}

/// An array: a window on shared numbers.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    data: Arc<RwLock<Data>>,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) offset: usize,
    kind: Kind,
}

/// How many numbers a shape holds; refused beyond all memory.
pub(crate) fn size(shape: &[usize]) -> Result<usize, Refusal> {
    let size = shape.iter().try_fold(1_usize, |size, side| size.checked_mul(*side));
    size.filter(|size| *size < 1 << 40).map_or_else(|| value("the array would not fit into memory"), Ok)
}

/// Steps of a shape whose numbers stand one after the other.
pub(crate) fn steps(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1).cast_signed();
    }
    strides
}

/// The shape that both are stretched to.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, Refusal> {
    let sides = a.len().max(b.len());
    let side = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(sides).map_or(1, |at| shape[at]);
    let joined = (0..sides).map(|axis| match (side(a, axis), side(b, axis)) {
        (1, other) | (other, 1) => Some(other),
        (one, other) => (one == other).then_some(one),
    });
    let joined: Option<Vec<usize>> = joined.collect();
    let words = || format!("operands could not be broadcast together with shapes {} {} ", shown(a), shown(b));
    joined.map_or_else(|| value(words()), Ok)
}

/// A shape as Python writes a tuple, without blanks.
pub(crate) fn shown(shape: &[usize]) -> String {
    let sides: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("({}{})", sides.join(","), if shape.len() == 1 { "," } else { "" })
}

impl Array {
    /// A new array of its own.
    pub(crate) fn new(data: Data, shape: Vec<usize>) -> Array {
        let (strides, kind) = (steps(&shape), data.kind());
        debug_assert_eq!(data.len(), shape.iter().product::<usize>());
        Array { data: Arc::new(RwLock::new(data)), shape, strides, offset: 0, kind }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Another window on the same numbers. Refused where it would look outside.
    pub(crate) fn window(&self, offset: usize, shape: Vec<usize>, strides: Vec<isize>) -> Result<Array, Refusal> {
        let (mut low, mut high) = (offset.cast_signed(), offset.cast_signed());
        for (side, stride) in shape.iter().zip(&strides) {
            let way = stride.saturating_mul(side.saturating_sub(1).cast_signed());
            *(if way < 0 { &mut low } else { &mut high }) += way;
        }
        let inside = low >= 0 && high < self.data.read().unwrap_or_else(PoisonError::into_inner).len().cast_signed();
        if shape.len() != strides.len() || (size(&shape)? > 0 && !inside) {
            return Err(Refusal::Index("the view would look outside of its array".to_owned()));
        }
        Ok(Array { data: self.data.clone(), shape, strides, offset, kind: self.kind })
    }

    /// The same numbers stretched to a larger shape.
    pub(crate) fn stretched(&self, shape: &[usize]) -> Result<Array, Refusal> {
        let more = shape.len().checked_sub(self.shape.len());
        let fits = more.is_some_and(|more| self.shape.iter().zip(&shape[more..]).all(|(a, b)| a == b || *a == 1));
        let Some(more) = more.filter(|_| fits) else {
            let (from, to) = (shown(&self.shape), shown(shape));
            return value(format!("could not broadcast input array from shape {from} into shape {to}"));
        };
        let old = self.shape.iter().zip(&self.strides).map(|(side, stride)| if *side == 1 { 0 } else { *stride });
        let strides = std::iter::repeat_n(0, more).chain(old).collect();
        self.window(self.offset, shape.to_vec(), strides)
    }

    /// Whether both see the same memory.
    pub(crate) fn shares(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }

    /// Calls `visit` with the place of each number, in order.
    fn walk(&self, mut visit: impl FnMut(usize)) {
        if self.len() == 0 {
            return;
        }
        let Some((last, outer)) = self.shape.split_last() else { return visit(self.offset) };
        let step = self.strides[outer.len()];
        let (mut index, mut start) = (vec![0; outer.len()], self.offset.cast_signed());
        loop {
            let mut at = start;
            for _ in 0..*last {
                visit(at.cast_unsigned());
                at += step;
            }
            let mut axis = outer.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                start += self.strides[axis];
                if index[axis] < outer[axis] {
                    break;
                }
                start -= self.strides[axis] * outer[axis].cast_signed();
                index[axis] = 0;
            }
        }
    }

    fn read<T>(
        &self,
        from_bool: impl Fn(bool) -> T,
        from_int: impl Fn(i64) -> T,
        from_float: impl Fn(f64) -> T,
        from_complex: impl Fn(C64) -> T,
    ) -> Vec<T> {
        let mut out = Vec::with_capacity(self.len());
        match &*self.data.read().unwrap_or_else(PoisonError::into_inner) {
            Data::Bool(all) => self.walk(|at| out.push(from_bool(all[at]))),
            Data::Int(all) => self.walk(|at| out.push(from_int(all[at]))),
            Data::Float(all) => self.walk(|at| out.push(from_float(all[at]))),
            Data::Complex(all) => self.walk(|at| out.push(from_complex(all[at]))),
        }
        out
    }

    pub(crate) fn bools(&self) -> Vec<bool> {
        self.read(|x| x, |x| x != 0, |x| x != 0.0, |x| x != C64::ZERO)
    }

    #[allow(clippy::cast_possible_truncation, reason = "as numpy does: towards zero")]
    pub(crate) fn ints(&self) -> Vec<i64> {
        self.read(i64::from, |x| x, |x| x as i64, |x| x.re as i64)
    }

    #[allow(clippy::cast_precision_loss, reason = "as numpy does")]
    pub(crate) fn floats(&self) -> Vec<f64> {
        self.read(|x| f64::from(u8::from(x)), |x| x as f64, |x| x, |x| x.re)
    }

    #[allow(clippy::cast_precision_loss, reason = "as numpy does")]
    pub(crate) fn complexes(&self) -> Vec<C64> {
        self.read(|x| C64::from(f64::from(u8::from(x))), |x| C64::from(x as f64), C64::from, |x| x)
    }

    /// The numbers in order, as another kind.
    pub(crate) fn numbers(&self, kind: Kind) -> Data {
        match kind {
            Kind::Bool => Data::Bool(self.bools()),
            Kind::Int => Data::Int(self.ints()),
            Kind::Float => Data::Float(self.floats()),
            Kind::Complex => Data::Complex(self.complexes()),
        }
    }

    /// A copy of its own.
    pub(crate) fn copied(&self, kind: Kind) -> Array {
        Array::new(self.numbers(kind), self.shape.clone())
    }

    /// Writes `values`, stretched to this shape, into the numbers that are seen here.
    pub(crate) fn assign(&self, values: &Array) -> Result<(), Refusal> {
        let values = values.stretched(&self.shape)?.numbers(self.kind);
        let mut next = 0..;
        let mut each = || next.next().unwrap_or(0);
        match (&mut *self.data.write().unwrap_or_else(PoisonError::into_inner), values) {
            (Data::Bool(all), Data::Bool(new)) => self.walk(|at| all[at] = new[each()]),
            (Data::Int(all), Data::Int(new)) => self.walk(|at| all[at] = new[each()]),
            (Data::Float(all), Data::Float(new)) => self.walk(|at| all[at] = new[each()]),
            (Data::Complex(all), Data::Complex(new)) => self.walk(|at| all[at] = new[each()]),
            _ => {} // `numbers` gave the kind that was asked for
        }
        Ok(())
    }

    /// The places in memory of the numbers at these positions, counted in order.
    fn places(&self, positions: &Array) -> Result<Vec<usize>, Refusal> {
        let length = self.len();
        let mut all = Vec::with_capacity(length);
        self.walk(|at| all.push(at));
        let place = |position: i64| usize::try_from(position).ok().and_then(|at| all.get(at).copied());
        let words = |position| format!("index {position} is out of bounds for size {length}");
        let found = positions.ints().into_iter().map(|at| place(at).ok_or_else(|| Refusal::Index(words(at))));
        found.collect()
    }

    /// The numbers at these positions, in the shape of the positions.
    pub(crate) fn gather(&self, positions: &Array) -> Result<Array, Refusal> {
        let places = self.places(positions)?;
        let data = match &*self.data.read().unwrap_or_else(PoisonError::into_inner) {
            Data::Bool(all) => Data::Bool(places.into_iter().map(|at| all[at]).collect()),
            Data::Int(all) => Data::Int(places.into_iter().map(|at| all[at]).collect()),
            Data::Float(all) => Data::Float(places.into_iter().map(|at| all[at]).collect()),
            Data::Complex(all) => Data::Complex(places.into_iter().map(|at| all[at]).collect()),
        };
        Ok(Array::new(data, positions.shape.clone()))
    }

    /// Writes numbers to these positions.
    pub(crate) fn scatter(&self, positions: &Array, values: &Array) -> Result<(), Refusal> {
        let places = self.places(positions)?;
        let values = values.stretched(&positions.shape)?.numbers(self.kind);
        match (&mut *self.data.write().unwrap_or_else(PoisonError::into_inner), values) {
            (Data::Bool(all), Data::Bool(new)) => places.into_iter().zip(new).for_each(|(at, new)| all[at] = new),
            (Data::Int(all), Data::Int(new)) => places.into_iter().zip(new).for_each(|(at, new)| all[at] = new),
            (Data::Float(all), Data::Float(new)) => places.into_iter().zip(new).for_each(|(at, new)| all[at] = new),
            (Data::Complex(all), Data::Complex(new)) => {
                places.into_iter().zip(new).for_each(|(at, new)| all[at] = new);
            }
            _ => {} // `numbers` gave the kind that was asked for
        }
        Ok(())
    }
}
