//! Elementwise operations on one or two arrays, and operations along the last axis. Independent of Python.

use super::array::{ArrayData, ArrayError, C64, ElementKind, NdArray, broadcast, value_error};
use std::cmp::Ordering;

fn unsupported_error<T>(name: &str, kind: ElementKind) -> Result<T, ArrayError> {
    let kind = match kind {
        ElementKind::Bool => "bool",
        ElementKind::Int => "int64",
        ElementKind::Float => "float64",
        ElementKind::Complex => "complex128",
    };
    Err(ArrayError::Type(format!("ufunc '{name}' not supported for the input types: {kind}")))
}

/// Applies the function `name` to each element.
pub(crate) fn unary(name: &str, array: &NdArray) -> Result<NdArray, ArrayError> {
    let kind = array.kind();
    let floats = |f: fn(f64) -> f64| ArrayData::Float(array.floats().into_iter().map(f).collect());
    let complexes = |f: fn(C64) -> C64| ArrayData::Complex(array.complexes().into_iter().map(f).collect());
    let ints = |f: fn(i64) -> i64| ArrayData::Int(array.ints().into_iter().map(f).collect());
    let bools = |f: fn(bool) -> bool| ArrayData::Bool(array.bools().into_iter().map(f).collect());
    let test = |f: fn(f64) -> bool| ArrayData::Bool(array.floats().into_iter().map(f).collect());
    let both =
        |f: fn(f64) -> f64, g: fn(C64) -> C64| if kind == ElementKind::Complex { complexes(g) } else { floats(f) };
    // Integers are unchanged by rounding functions.
    let whole = |f: fn(f64) -> f64| match kind {
        ElementKind::Bool | ElementKind::Int => Ok(ints(|x| x)),
        ElementKind::Float => Ok(floats(f)),
        ElementKind::Complex => unsupported_error(name, kind),
    };
    let data = match name {
        "positive" => array.numbers(kind),
        "negative" => match kind {
            ElementKind::Bool => return unsupported_error(name, kind),
            ElementKind::Int => ints(i64::wrapping_neg),
            ElementKind::Float => floats(|x| -x),
            ElementKind::Complex => complexes(|x| -x),
        },
        "absolute" => match kind {
            ElementKind::Bool => bools(|x| x),
            ElementKind::Int => ints(i64::wrapping_abs),
            ElementKind::Float => floats(f64::abs),
            ElementKind::Complex => ArrayData::Float(array.complexes().into_iter().map(|x| x.re.hypot(x.im)).collect()),
        },
        "sign" => match kind {
            ElementKind::Bool => return unsupported_error(name, kind),
            ElementKind::Int => ints(i64::signum),
            ElementKind::Float => floats(|x| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
            ElementKind::Complex => complexes(|x| if x == C64::ZERO { x } else { x / x.norm() }),
        },
        "square" => match kind {
            ElementKind::Bool => bools(|x| x),
            ElementKind::Int => ints(|x| x.wrapping_mul(x)),
            ElementKind::Float => floats(|x| x * x),
            ElementKind::Complex => complexes(|x| x * x),
        },
        "reciprocal" => match kind {
            ElementKind::Bool | ElementKind::Int => ints(|x| if x == 0 { 0 } else { 1 / x }),
            ElementKind::Float => floats(f64::recip),
            ElementKind::Complex => complexes(|x| x.inv()),
        },
        "sqrt" => both(f64::sqrt, C64::sqrt),
        "exp" => both(f64::exp, C64::exp),
        "log" => both(f64::ln, C64::ln),
        "sin" => both(f64::sin, C64::sin),
        "cos" => both(f64::cos, C64::cos),
        "tan" => both(f64::tan, C64::tan),
        "arcsin" => both(f64::asin, C64::asin),
        "arccos" => both(f64::acos, C64::acos),
        "arctan" => both(f64::atan, C64::atan),
        "sinh" => both(f64::sinh, C64::sinh),
        "cosh" => both(f64::cosh, C64::cosh),
        "tanh" => both(f64::tanh, C64::tanh),
        "arcsinh" => both(f64::asinh, C64::asinh),
        "arccosh" => both(f64::acosh, C64::acosh),
        "arctanh" => both(f64::atanh, C64::atanh),
        "log2" => both(f64::log2, |x| x.ln() / std::f64::consts::LN_2),
        "log10" => both(f64::log10, |x| x.ln() / std::f64::consts::LN_10),
        "log1p" => both(f64::ln_1p, |x| (x + 1.0).ln()),
        "expm1" => both(f64::exp_m1, |x| x.exp() - 1.0),
        "exp2" => both(f64::exp2, |x| (x * std::f64::consts::LN_2).exp()),
        "cbrt" if kind != ElementKind::Complex => floats(f64::cbrt),
        "degrees" if kind != ElementKind::Complex => floats(|x| x * (180.0 / std::f64::consts::PI)),
        "radians" if kind != ElementKind::Complex => floats(|x| x * (std::f64::consts::PI / 180.0)),
        "floor" => whole(f64::floor)?,
        "ceil" => whole(f64::ceil)?,
        "trunc" => whole(f64::trunc)?,
        "rint" if kind == ElementKind::Complex => {
            complexes(|x| C64::new(x.re.round_ties_even(), x.im.round_ties_even()))
        }
        "rint" => floats(f64::round_ties_even),
        "conjugate" if kind == ElementKind::Complex => complexes(|x| x.conj()),
        "conjugate" | "real" if kind != ElementKind::Complex => array.numbers(kind),
        "real" => floats(|x| x),
        "imag" if kind == ElementKind::Complex => {
            ArrayData::Float(array.complexes().into_iter().map(|x| x.im).collect())
        }
        "imag" => ints(|_| 0),
        "angle" => ArrayData::Float(array.complexes().into_iter().map(|x| x.im.atan2(x.re)).collect()),
        "isnan" if kind == ElementKind::Complex => {
            ArrayData::Bool(array.complexes().into_iter().map(|x| x.is_nan()).collect())
        }
        "isinf" if kind == ElementKind::Complex => {
            ArrayData::Bool(array.complexes().into_iter().map(|x| x.re.is_infinite() || x.im.is_infinite()).collect())
        }
        "isfinite" if kind == ElementKind::Complex => {
            ArrayData::Bool(array.complexes().into_iter().map(|x| x.is_finite()).collect())
        }
        "isnan" => test(f64::is_nan),
        "isinf" => test(f64::is_infinite),
        "isfinite" => test(f64::is_finite),
        "signbit" if kind != ElementKind::Complex => test(f64::is_sign_negative),
        "logical_not" => bools(|x| !x),
        "invert" => match kind {
            ElementKind::Bool => bools(|x| !x),
            ElementKind::Int => ints(|x| !x),
            ElementKind::Float | ElementKind::Complex => return unsupported_error(name, kind),
        },
        _ => return unsupported_error(name, kind),
    };
    Ok(NdArray::new(data, array.shape.clone()))
}

fn zip_map<T: Copy, U>(a: Vec<T>, b: Vec<T>, f: impl Fn(T, T) -> U) -> Vec<U> {
    a.into_iter().zip(b).map(|(a, b)| f(a, b)).collect()
}

fn floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
    if rest != 0 && (rest < 0) != (b < 0) { quotient - 1 } else { quotient }
}

fn modulo(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let rest = a.wrapping_rem(b);
    if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
}

fn float_modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest == 0.0 {
        0.0_f64.copysign(b)
    } else if (rest < 0.0) != (b < 0.0) && b.is_finite() {
        rest + b
    } else {
        rest
    }
}

fn float_floor_div(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    let quotient = (a - float_modulo(a, b)) / b;
    let floor = quotient.floor();
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

fn int_power(base: i64, exponent: i64) -> i64 {
    let (mut base, mut left, mut out) = (base, exponent, 1_i64);
    while left > 0 {
        if left & 1 == 1 {
            out = out.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left >>= 1;
    }
    out
}

fn complex_power(a: C64, b: C64) -> C64 {
    #[allow(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    if b.im == 0.0 && b.re.fract() == 0.0 && b.re.abs() < 100.0 {
        return a.powi(b.re as i32);
    }
    if a == C64::ZERO { C64::ZERO } else { a.powc(b) }
}

fn nan_max(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

fn nan_min(a: f64, b: f64) -> f64 {
    if a.is_nan() || a <= b { a } else { b }
}

fn complex_order(a: C64, b: C64) -> Ordering {
    a.re.total_cmp(&b.re).then(a.im.total_cmp(&b.im))
}

/// Applies the function `name` to each pair of elements, with broadcasting.
pub(crate) fn binary(name: &str, a: &NdArray, b: &NdArray) -> Result<NdArray, ArrayError> {
    let shape = broadcast(&a.shape, &b.shape)?;
    let (a, b) = (a.broadcast_to(&shape)?, b.broadcast_to(&shape)?);
    let kind = a.kind().max(b.kind());
    let ints = |f: fn(i64, i64) -> i64| ArrayData::Int(zip_map(a.ints(), b.ints(), f));
    let floats = |f: fn(f64, f64) -> f64| ArrayData::Float(zip_map(a.floats(), b.floats(), f));
    let complexes = |f: fn(C64, C64) -> C64| ArrayData::Complex(zip_map(a.complexes(), b.complexes(), f));
    let bools = |f: fn(bool, bool) -> bool| ArrayData::Bool(zip_map(a.bools(), b.bools(), f));
    let compare = |f: fn(f64, f64) -> bool, g: fn(i64, i64) -> bool, h: fn(Ordering) -> bool| {
        ArrayData::Bool(match kind {
            ElementKind::Bool | ElementKind::Int => zip_map(a.ints(), b.ints(), g),
            ElementKind::Float => zip_map(a.floats(), b.floats(), f),
            ElementKind::Complex => zip_map(a.complexes(), b.complexes(), |a, b| h(complex_order(a, b))),
        })
    };
    let data = match (name, kind) {
        ("add", ElementKind::Bool) => bools(|a, b| a | b),
        ("add", ElementKind::Int) => ints(i64::wrapping_add),
        ("add", ElementKind::Float) => floats(|a, b| a + b),
        ("add", ElementKind::Complex) => complexes(|a, b| a + b),
        ("subtract", ElementKind::Bool) => {
            let words = "numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, the `^` \
                         operator, or the logical_xor function instead.";
            return Err(ArrayError::Type(words.to_owned()));
        }
        ("subtract", ElementKind::Int) => ints(i64::wrapping_sub),
        ("subtract", ElementKind::Float) => floats(|a, b| a - b),
        ("subtract", ElementKind::Complex) => complexes(|a, b| a - b),
        ("multiply", ElementKind::Bool) => bools(|a, b| a & b),
        ("multiply", ElementKind::Int) => ints(i64::wrapping_mul),
        ("multiply", ElementKind::Float) => floats(|a, b| a * b),
        ("multiply", ElementKind::Complex) => complexes(|a, b| a * b),
        ("divide", ElementKind::Complex) => complexes(|a, b| a / b),
        ("divide", _) => floats(|a, b| a / b),
        ("floor_divide", ElementKind::Bool | ElementKind::Int) => ints(floor_div),
        ("floor_divide", ElementKind::Float) => floats(float_floor_div),
        ("remainder", ElementKind::Bool | ElementKind::Int) => ints(modulo),
        ("remainder", ElementKind::Float) => floats(float_modulo),
        ("power", ElementKind::Bool | ElementKind::Int) => {
            if b.ints().iter().any(|exponent| *exponent < 0) {
                return value_error("Integers to negative integer powers are not allowed.");
            }
            ints(int_power)
        }
        ("power", ElementKind::Float) => floats(|a, b| if b == 2.0 { a * a } else { a.powf(b) }),
        ("power", ElementKind::Complex) => complexes(complex_power),
        ("maximum", ElementKind::Bool) => bools(|a, b| a | b),
        ("maximum", ElementKind::Int) => ints(i64::max),
        ("maximum", ElementKind::Float) => floats(nan_max),
        ("maximum", ElementKind::Complex) => complexes(|a, b| if complex_order(a, b).is_ge() { a } else { b }),
        ("minimum", ElementKind::Bool) => bools(|a, b| a & b),
        ("minimum", ElementKind::Int) => ints(i64::min),
        ("minimum", ElementKind::Float) => floats(nan_min),
        ("minimum", ElementKind::Complex) => complexes(|a, b| if complex_order(a, b).is_le() { a } else { b }),
        ("arctan2", ElementKind::Bool | ElementKind::Int | ElementKind::Float) => floats(f64::atan2),
        ("hypot", ElementKind::Bool | ElementKind::Int | ElementKind::Float) => floats(f64::hypot),
        ("copysign", ElementKind::Bool | ElementKind::Int | ElementKind::Float) => floats(f64::copysign),
        ("equal", ElementKind::Complex) => ArrayData::Bool(zip_map(a.complexes(), b.complexes(), |a, b| a == b)),
        ("not_equal", ElementKind::Complex) => ArrayData::Bool(zip_map(a.complexes(), b.complexes(), |a, b| a != b)),
        ("equal", _) => compare(|a, b| a == b, |a, b| a == b, Ordering::is_eq),
        ("not_equal", _) => compare(|a, b| a != b, |a, b| a != b, Ordering::is_ne),
        ("less", _) => compare(|a, b| a < b, |a, b| a < b, Ordering::is_lt),
        ("less_equal", _) => compare(|a, b| a <= b, |a, b| a <= b, Ordering::is_le),
        ("greater", _) => compare(|a, b| a > b, |a, b| a > b, Ordering::is_gt),
        ("greater_equal", _) => compare(|a, b| a >= b, |a, b| a >= b, Ordering::is_ge),
        ("bitwise_and", ElementKind::Bool) | ("logical_and", _) => bools(|a, b| a & b),
        ("bitwise_or", ElementKind::Bool) | ("logical_or", _) => bools(|a, b| a | b),
        ("bitwise_xor", ElementKind::Bool) | ("logical_xor", _) => bools(|a, b| a ^ b),
        ("bitwise_and", ElementKind::Int) => ints(|a, b| a & b),
        ("bitwise_or", ElementKind::Int) => ints(|a, b| a | b),
        ("bitwise_xor", ElementKind::Int) => ints(|a, b| a ^ b),
        ("left_shift", ElementKind::Bool | ElementKind::Int) => {
            ints(|a, b| u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0))
        }
        ("right_shift", ElementKind::Bool | ElementKind::Int) => ints(|a, b| a >> b.clamp(0, 63)),
        _ => return unsupported_error(name, kind),
    };
    Ok(NdArray::new(data, shape))
}

/// Returns elements of `a` where the condition holds, else of `b`.
pub(crate) fn select(condition: &NdArray, a: &NdArray, b: &NdArray) -> Result<NdArray, ArrayError> {
    let shape = broadcast(&condition.shape, &broadcast(&a.shape, &b.shape)?)?;
    let kind = a.kind().max(b.kind());
    let condition = condition.broadcast_to(&shape)?.bools();
    let (a, b) = (a.broadcast_to(&shape)?.numbers(kind), b.broadcast_to(&shape)?.numbers(kind));
    fn pick<T>(condition: Vec<bool>, a: Vec<T>, b: Vec<T>) -> Vec<T> {
        condition.into_iter().zip(a.into_iter().zip(b)).map(|(yes, (a, b))| if yes { a } else { b }).collect()
    }
    let data = match (a, b) {
        (ArrayData::Bool(a), ArrayData::Bool(b)) => ArrayData::Bool(pick(condition, a, b)),
        (ArrayData::Int(a), ArrayData::Int(b)) => ArrayData::Int(pick(condition, a, b)),
        (ArrayData::Float(a), ArrayData::Float(b)) => ArrayData::Float(pick(condition, a, b)),
        (ArrayData::Complex(a), ArrayData::Complex(b)) => ArrayData::Complex(pick(condition, a, b)),
        _ => return value_error("where: kinds differ"), // `numbers` gave both the same
    };
    Ok(NdArray::new(data, shape))
}

/// Sums pairwise, as numpy does: the error grows with the logarithm of the length. The order of additions is numpy's,
/// so that results agree to the last digit.
fn pairwise_sum<T: Copy + std::ops::Add<Output = T>>(all: &[T], zero: T) -> T {
    match all.len() {
        0..8 => all.iter().fold(zero, |sum, x| sum + *x),
        8..=128 => {
            let mut sums = [zero; 8];
            sums.copy_from_slice(&all[..8]);
            let chunks = all[8..].chunks_exact(8);
            let rest = chunks.remainder();
            for chunk in chunks {
                sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum = *sum + *x);
            }
            let [a, b, c, d, e, f, g, h] = sums;
            let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
            rest.iter().fold(sum, |sum, x| sum + *x)
        }
        long => {
            let half = long / 2;
            let (left, right) = all.split_at(half - half % 8);
            pairwise_sum(left, zero) + pairwise_sum(right, zero)
        }
    }
}

/// Applies `f` to each run of `length` elements along the last axis.
fn map_runs<T: Clone, U>(all: &[T], length: usize, count: usize, mut f: impl FnMut(&[T]) -> U) -> Vec<U> {
    (0..count).map(|at| f(&all[at * length..(at + 1) * length])).collect()
}

fn last_axis(array: &NdArray) -> Result<(Vec<usize>, usize, usize), ArrayError> {
    let Some((length, outer)) = array.shape.split_last() else { return value_error("the array has no axis") };
    Ok((outer.to_vec(), *length, outer.iter().product()))
}

/// Reduces each run of the last axis to one element. `sum` adds as numpy does along memory, `add` sequentially.
pub(crate) fn reduce(name: &str, array: &NdArray) -> Result<NdArray, ArrayError> {
    let (outer, length, count) = last_axis(array)?;
    let kind = array.kind();
    if length == 0 && matches!(name, "max" | "min" | "argmax" | "argmin") {
        return value_error(format!(
            "zero-size array to reduction operation {} which has no identity",
            if name.ends_with("ax") { "maximum" } else { "minimum" }
        ));
    }
    let floats = |f: fn(&[f64]) -> f64| ArrayData::Float(map_runs(&array.floats(), length, count, f));
    let ints = |f: fn(&[i64]) -> i64| ArrayData::Int(map_runs(&array.ints(), length, count, f));
    let complexes = |f: fn(&[C64]) -> C64| ArrayData::Complex(map_runs(&array.complexes(), length, count, f));
    let bools = |f: fn(&[bool]) -> bool| ArrayData::Bool(map_runs(&array.bools(), length, count, f));
    fn best(all: &[f64], better: fn(f64, f64) -> f64) -> f64 {
        all.iter().copied().reduce(better).unwrap_or(f64::NAN)
    }
    fn place(all: &[f64], wins: fn(&f64, &f64) -> bool) -> i64 {
        let mut at = 0;
        for (place, x) in all.iter().enumerate() {
            if x.is_nan() {
                at = place;
                break;
            }
            if wins(x, &all[at]) {
                at = place;
            }
        }
        at.cast_signed() as i64
    }
    let data = match (name, kind) {
        ("sum" | "add", ElementKind::Bool | ElementKind::Int) => {
            ints(|all| all.iter().fold(0, |sum, x| sum.wrapping_add(*x)))
        }
        ("sum", ElementKind::Float) => floats(|all| pairwise_sum(all, 0.0)),
        ("sum", ElementKind::Complex) => complexes(|all| pairwise_sum(all, C64::ZERO)),
        ("add", ElementKind::Float) => floats(|all| all.iter().sum()),
        ("add", ElementKind::Complex) => complexes(|all| all.iter().sum()),
        ("prod", ElementKind::Bool | ElementKind::Int) => ints(|all| all.iter().fold(1, |all, x| all.wrapping_mul(*x))),
        ("prod", ElementKind::Float) => floats(|all| all.iter().product()),
        ("prod", ElementKind::Complex) => complexes(|all| all.iter().product()),
        ("max", ElementKind::Bool) => bools(|all| all.contains(&true)),
        ("max", ElementKind::Int) => ints(|all| all.iter().copied().max().unwrap_or(0)),
        ("max", ElementKind::Float) => floats(|all| best(all, nan_max)),
        ("max", ElementKind::Complex) => {
            complexes(|all| all.iter().copied().max_by(|a, b| complex_order(*a, *b)).unwrap_or(C64::ZERO))
        }
        ("min", ElementKind::Bool) => bools(|all| !all.contains(&false)),
        ("min", ElementKind::Int) => ints(|all| all.iter().copied().min().unwrap_or(0)),
        ("min", ElementKind::Float) => floats(|all| best(all, nan_min)),
        ("min", ElementKind::Complex) => {
            complexes(|all| all.iter().copied().min_by(|a, b| complex_order(*a, *b)).unwrap_or(C64::ZERO))
        }
        ("any", _) => bools(|all| all.contains(&true)),
        ("all", _) => bools(|all| !all.contains(&false)),
        ("argmax", ElementKind::Bool | ElementKind::Int | ElementKind::Float) => {
            ArrayData::Int(map_runs(&array.floats(), length, count, |all| place(all, |x, best| x > best)))
        }
        ("argmin", ElementKind::Bool | ElementKind::Int | ElementKind::Float) => {
            ArrayData::Int(map_runs(&array.floats(), length, count, |all| place(all, |x, best| x < best)))
        }
        _ => return unsupported_error(name, kind),
    };
    Ok(NdArray::new(data, outer))
}

/// Returns cumulative sums or products along the last axis.
pub(crate) fn accumulate(name: &str, array: &NdArray) -> Result<NdArray, ArrayError> {
    let (_, length, _) = last_axis(array)?;
    fn each<T: Copy>(mut all: Vec<T>, length: usize, f: impl Fn(T, T) -> T) -> Vec<T> {
        for run in all.chunks_mut(length.max(1)) {
            for at in 1..run.len() {
                run[at] = f(run[at - 1], run[at]);
            }
        }
        all
    }
    let data = match (name, array.kind()) {
        ("cumsum", ElementKind::Bool | ElementKind::Int) => {
            ArrayData::Int(each(array.ints(), length, i64::wrapping_add))
        }
        ("cumsum", ElementKind::Float) => ArrayData::Float(each(array.floats(), length, |a, b| a + b)),
        ("cumsum", ElementKind::Complex) => ArrayData::Complex(each(array.complexes(), length, |a, b| a + b)),
        ("cumprod", ElementKind::Bool | ElementKind::Int) => {
            ArrayData::Int(each(array.ints(), length, i64::wrapping_mul))
        }
        ("cumprod", ElementKind::Float) => ArrayData::Float(each(array.floats(), length, |a, b| a * b)),
        ("cumprod", ElementKind::Complex) => ArrayData::Complex(each(array.complexes(), length, |a, b| a * b)),
        ("cummax", ElementKind::Bool | ElementKind::Int) => ArrayData::Int(each(array.ints(), length, i64::max)),
        ("cummax", ElementKind::Float) => ArrayData::Float(each(array.floats(), length, nan_max)),
        ("cummin", ElementKind::Bool | ElementKind::Int) => ArrayData::Int(each(array.ints(), length, i64::min)),
        ("cummin", ElementKind::Float) => ArrayData::Float(each(array.floats(), length, nan_min)),
        (_, kind) => return unsupported_error(name, kind),
    };
    Ok(NdArray::new(data, array.shape.clone()))
}

/// Compares floats with NaN last, as numpy sorts.
fn float_order_nan_last(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Sorts along the last axis. The sort is stable.
pub(crate) fn sort(array: &NdArray) -> Result<NdArray, ArrayError> {
    let (_, length, _) = last_axis(array)?;
    let mut data = array.numbers(array.kind());
    let length = length.max(1);
    match &mut data {
        ArrayData::Bool(all) => all.chunks_mut(length).for_each(<[bool]>::sort),
        ArrayData::Int(all) => all.chunks_mut(length).for_each(<[i64]>::sort),
        ArrayData::Float(all) => {
            all.chunks_mut(length).for_each(|run| run.sort_by(|a, b| float_order_nan_last(*a, *b)))
        }
        ArrayData::Complex(all) => all.chunks_mut(length).for_each(|run| run.sort_by(|a, b| complex_order(*a, *b))),
    }
    Ok(NdArray::new(data, array.shape.clone()))
}

/// Returns the indexes that would sort the last axis.
pub(crate) fn argsort(array: &NdArray) -> Result<NdArray, ArrayError> {
    let (_, length, count) = last_axis(array)?;
    fn places<T>(run: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Vec<i64> {
        let mut places: Vec<usize> = (0..run.len()).collect();
        places.sort_by(|a, b| compare(&run[*a], &run[*b]));
        places.into_iter().map(|place| place.cast_signed() as i64).collect()
    }
    let all = match array.kind() {
        ElementKind::Bool | ElementKind::Int => map_runs(&array.ints(), length, count, |run| places(run, Ord::cmp)),
        ElementKind::Float => {
            map_runs(&array.floats(), length, count, |run| places(run, |a, b| float_order_nan_last(*a, *b)))
        }
        ElementKind::Complex => {
            map_runs(&array.complexes(), length, count, |run| places(run, |a, b| complex_order(*a, *b)))
        }
    };
    Ok(NdArray::new(ArrayData::Int(all.concat()), array.shape.clone()))
}
