//! Arrays: elements in shared memory with a shape and strides, so that a view shares the memory of its array.
//!
//! Supports exactly four kinds of elements. This file doesn't depend on Python.

use nalgebra::Complex;
use std::sync::{Arc, PoisonError, RwLock};

/// A complex number of two doubles.
pub(crate) type C64 = Complex<f64>;

/// Error of an array operation: the variant is the exception's class, its text the message.
#[derive(Debug, PartialEq)]
pub(crate) enum ArrayError {
    Value(String),
    Type(String),
    Index(String),
    Linear(String),
}

pub(crate) fn value_error<T>(words: impl Into<String>) -> Result<T, ArrayError> {
    Err(ArrayError::Value(words.into()))
}

/// Kind of an array's elements, in the order of conversion: of two kinds that meet, the later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ElementKind {
    Bool,
    Int,
    Float,
    Complex,
}

impl ElementKind {
    pub(crate) fn letter(self) -> &'static str {
        match self {
            ElementKind::Bool => "b",
            ElementKind::Int => "i",
            ElementKind::Float => "f",
            ElementKind::Complex => "c",
        }
    }

    pub(crate) fn from_letter(letter: &str) -> Result<ElementKind, ArrayError> {
        match letter {
            "b" => Ok(ElementKind::Bool),
            "i" => Ok(ElementKind::Int),
            "f" => Ok(ElementKind::Float),
            "c" => Ok(ElementKind::Complex),
            other => Err(ArrayError::Type(format!("there is no kind {other}"))),
        }
    }
}

/// Elements of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArrayData {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Complex(Vec<C64>),
}

impl ArrayData {
    pub(crate) fn kind(&self) -> ElementKind {
        match self {
            ArrayData::Bool(_) => ElementKind::Bool,
            ArrayData::Int(_) => ElementKind::Int,
            ArrayData::Float(_) => ElementKind::Float,
            ArrayData::Complex(_) => ElementKind::Complex,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            ArrayData::Bool(all) => all.len(),
            ArrayData::Int(all) => all.len(),
            ArrayData::Float(all) => all.len(),
            ArrayData::Complex(all) => all.len(),
        }
    }
}

/// An array: a view of shared data.
#[derive(Clone, Debug)]
pub(crate) struct NdArray {
    data: Arc<RwLock<ArrayData>>,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) offset: usize,
    kind: ElementKind,
}

/// Returns the number of elements of a shape, or an error if they can't fit into memory.
pub(crate) fn checked_size(shape: &[usize]) -> Result<usize, ArrayError> {
    let size = shape.iter().try_fold(1_usize, |size, side| size.checked_mul(*side));
    size.filter(|size| *size < 1 << 40).map_or_else(|| value_error("the array would not fit into memory"), Ok)
}

/// Returns the strides of a contiguous array with this shape.
pub(crate) fn contiguous_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1).cast_signed();
    }
    strides
}

/// Returns the shape that both shapes broadcast to.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, ArrayError> {
    let sides = a.len().max(b.len());
    let side = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(sides).map_or(1, |at| shape[at]);
    let joined = (0..sides).map(|axis| match (side(a, axis), side(b, axis)) {
        (1, other) | (other, 1) => Some(other),
        (one, other) => (one == other).then_some(one),
    });
    let joined: Option<Vec<usize>> = joined.collect();
    let words =
        || format!("operands could not be broadcast together with shapes {} {} ", format_shape(a), format_shape(b));
    joined.map_or_else(|| value_error(words()), Ok)
}

/// Formats a shape as a Python tuple without spaces.
pub(crate) fn format_shape(shape: &[usize]) -> String {
    let sides: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("({}{})", sides.join(","), if shape.len() == 1 { "," } else { "" })
}

impl NdArray {
    /// Creates an array with its own contiguous data.
    pub(crate) fn new(data: ArrayData, shape: Vec<usize>) -> NdArray {
        let (strides, kind) = (contiguous_strides(&shape), data.kind());
        debug_assert_eq!(data.len(), shape.iter().product::<usize>());
        NdArray { data: Arc::new(RwLock::new(data)), shape, strides, offset: 0, kind }
    }

    pub(crate) fn kind(&self) -> ElementKind {
        self.kind
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns another view of the same data, or an error if it would exceed the data.
    pub(crate) fn view(&self, offset: usize, shape: Vec<usize>, strides: Vec<isize>) -> Result<NdArray, ArrayError> {
        let (mut low, mut high) = (offset.cast_signed(), offset.cast_signed());
        for (side, stride) in shape.iter().zip(&strides) {
            let way = stride.saturating_mul(side.saturating_sub(1).cast_signed());
            *(if way < 0 { &mut low } else { &mut high }) += way;
        }
        let inside = low >= 0 && high < self.data.read().unwrap_or_else(PoisonError::into_inner).len().cast_signed();
        if shape.len() != strides.len() || (checked_size(&shape)? > 0 && !inside) {
            return Err(ArrayError::Index("the view would look outside of its array".to_owned()));
        }
        Ok(NdArray { data: self.data.clone(), shape, strides, offset, kind: self.kind })
    }

    /// Returns a view of the same data, broadcast to a larger shape.
    pub(crate) fn broadcast_to(&self, shape: &[usize]) -> Result<NdArray, ArrayError> {
        let more = shape.len().checked_sub(self.shape.len());
        let fits = more.is_some_and(|more| self.shape.iter().zip(&shape[more..]).all(|(a, b)| a == b || *a == 1));
        let Some(more) = more.filter(|_| fits) else {
            let (from, to) = (format_shape(&self.shape), format_shape(shape));
            return value_error(format!("could not broadcast input array from shape {from} into shape {to}"));
        };
        let old = self.shape.iter().zip(&self.strides).map(|(side, stride)| if *side == 1 { 0 } else { *stride });
        let strides = std::iter::repeat_n(0, more).chain(old).collect();
        self.view(self.offset, shape.to_vec(), strides)
    }

    /// Returns whether both arrays share their data.
    pub(crate) fn shares_memory(&self, other: &NdArray) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }

    /// Calls `visit` with the data index of each element, in order.
    fn for_each_index(&self, mut visit: impl FnMut(usize)) {
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

    fn map_numbers<T>(
        &self,
        from_bool: impl Fn(bool) -> T,
        from_int: impl Fn(i64) -> T,
        from_float: impl Fn(f64) -> T,
        from_complex: impl Fn(C64) -> T,
    ) -> Vec<T> {
        let mut out = Vec::with_capacity(self.len());
        match &*self.data.read().unwrap_or_else(PoisonError::into_inner) {
            ArrayData::Bool(all) => self.for_each_index(|at| out.push(from_bool(all[at]))),
            ArrayData::Int(all) => self.for_each_index(|at| out.push(from_int(all[at]))),
            ArrayData::Float(all) => self.for_each_index(|at| out.push(from_float(all[at]))),
            ArrayData::Complex(all) => self.for_each_index(|at| out.push(from_complex(all[at]))),
        }
        out
    }

    pub(crate) fn bools(&self) -> Vec<bool> {
        self.map_numbers(|x| x, |x| x != 0, |x| x != 0.0, |x| x != C64::ZERO)
    }

    #[allow(clippy::cast_possible_truncation, reason = "as numpy does: towards zero")]
    pub(crate) fn ints(&self) -> Vec<i64> {
        self.map_numbers(i64::from, |x| x, |x| x as i64, |x| x.re as i64)
    }

    #[allow(clippy::cast_precision_loss, reason = "as numpy does")]
    pub(crate) fn floats(&self) -> Vec<f64> {
        self.map_numbers(|x| f64::from(u8::from(x)), |x| x as f64, |x| x, |x| x.re)
    }

    #[allow(clippy::cast_precision_loss, reason = "as numpy does")]
    pub(crate) fn complexes(&self) -> Vec<C64> {
        self.map_numbers(|x| C64::from(f64::from(u8::from(x))), |x| C64::from(x as f64), C64::from, |x| x)
    }

    /// Returns the elements in order, converted to another kind.
    pub(crate) fn numbers(&self, kind: ElementKind) -> ArrayData {
        match kind {
            ElementKind::Bool => ArrayData::Bool(self.bools()),
            ElementKind::Int => ArrayData::Int(self.ints()),
            ElementKind::Float => ArrayData::Float(self.floats()),
            ElementKind::Complex => ArrayData::Complex(self.complexes()),
        }
    }

    /// Returns a copy with its own data, converted to `kind`.
    pub(crate) fn cast_to(&self, kind: ElementKind) -> NdArray {
        NdArray::new(self.numbers(kind), self.shape.clone())
    }

    /// Writes `values`, broadcast to this shape, into the array's elements.
    pub(crate) fn assign(&self, values: &NdArray) -> Result<(), ArrayError> {
        let values = values.broadcast_to(&self.shape)?.numbers(self.kind);
        let mut next = 0..;
        let mut each = || next.next().unwrap_or(0);
        match (&mut *self.data.write().unwrap_or_else(PoisonError::into_inner), values) {
            (ArrayData::Bool(all), ArrayData::Bool(new)) => self.for_each_index(|at| all[at] = new[each()]),
            (ArrayData::Int(all), ArrayData::Int(new)) => self.for_each_index(|at| all[at] = new[each()]),
            (ArrayData::Float(all), ArrayData::Float(new)) => self.for_each_index(|at| all[at] = new[each()]),
            (ArrayData::Complex(all), ArrayData::Complex(new)) => self.for_each_index(|at| all[at] = new[each()]),
            _ => {} // `numbers` gave the kind that was asked for
        }
        Ok(())
    }

    /// Returns the data indexes of the elements at these positions, counted in order.
    fn memory_positions(&self, positions: &NdArray) -> Result<Vec<usize>, ArrayError> {
        let length = self.len();
        let mut all = Vec::with_capacity(length);
        self.for_each_index(|at| all.push(at));
        let place = |position: i64| usize::try_from(position).ok().and_then(|at| all.get(at).copied());
        let words = |position| format!("index {position} is out of bounds for size {length}");
        let found = positions.ints().into_iter().map(|at| place(at).ok_or_else(|| ArrayError::Index(words(at))));
        found.collect()
    }

    /// Returns the elements at these positions, in the shape of `positions`.
    pub(crate) fn gather(&self, positions: &NdArray) -> Result<NdArray, ArrayError> {
        let places = self.memory_positions(positions)?;
        let data = match &*self.data.read().unwrap_or_else(PoisonError::into_inner) {
            ArrayData::Bool(all) => ArrayData::Bool(places.into_iter().map(|at| all[at]).collect()),
            ArrayData::Int(all) => ArrayData::Int(places.into_iter().map(|at| all[at]).collect()),
            ArrayData::Float(all) => ArrayData::Float(places.into_iter().map(|at| all[at]).collect()),
            ArrayData::Complex(all) => ArrayData::Complex(places.into_iter().map(|at| all[at]).collect()),
        };
        Ok(NdArray::new(data, positions.shape.clone()))
    }

    /// Writes `values` to the elements at these positions.
    pub(crate) fn scatter(&self, positions: &NdArray, values: &NdArray) -> Result<(), ArrayError> {
        let places = self.memory_positions(positions)?;
        let values = values.broadcast_to(&positions.shape)?.numbers(self.kind);
        match (&mut *self.data.write().unwrap_or_else(PoisonError::into_inner), values) {
            (ArrayData::Bool(all), ArrayData::Bool(new)) => {
                places.into_iter().zip(new).for_each(|(at, new)| all[at] = new)
            }
            (ArrayData::Int(all), ArrayData::Int(new)) => {
                places.into_iter().zip(new).for_each(|(at, new)| all[at] = new)
            }
            (ArrayData::Float(all), ArrayData::Float(new)) => {
                places.into_iter().zip(new).for_each(|(at, new)| all[at] = new)
            }
            (ArrayData::Complex(all), ArrayData::Complex(new)) => {
                places.into_iter().zip(new).for_each(|(at, new)| all[at] = new);
            }
            _ => {} // `numbers` gave the kind that was asked for
        }
        Ok(())
    }
}
