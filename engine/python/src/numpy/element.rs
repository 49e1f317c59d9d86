//! What is done to each number, to each pair of numbers, and along the last axis. Knows no Python.

use super::array::{Array, C64, Data, Kind, Refusal, broadcast, value};
use std::cmp::Ordering;

fn missing<T>(name: &str, kind: Kind) -> Result<T, Refusal> {
    let kind = match kind {
        Kind::Bool => "bool",
        Kind::Int => "int64",
        Kind::Float => "float64",
        Kind::Complex => "complex128",
    };
    Err(Refusal::Type(format!("ufunc '{name}' not supported for the input types: {kind}")))
}

/// A function of each number.
pub(crate) fn unary(name: &str, array: &Array) -> Result<Array, Refusal> {
    let kind = array.kind();
    let floats = |f: fn(f64) -> f64| Data::Float(array.floats().into_iter().map(f).collect());
    let complexes = |f: fn(C64) -> C64| Data::Complex(array.complexes().into_iter().map(f).collect());
    let ints = |f: fn(i64) -> i64| Data::Int(array.ints().into_iter().map(f).collect());
    let bools = |f: fn(bool) -> bool| Data::Bool(array.bools().into_iter().map(f).collect());
    let test = |f: fn(f64) -> bool| Data::Bool(array.floats().into_iter().map(f).collect());
    let both = |f: fn(f64) -> f64, g: fn(C64) -> C64| if kind == Kind::Complex { complexes(g) } else { floats(f) };
    // Whole numbers are whole already.
    let whole = |f: fn(f64) -> f64| match kind {
        Kind::Bool | Kind::Int => Ok(ints(|x| x)),
        Kind::Float => Ok(floats(f)),
        Kind::Complex => missing(name, kind),
    };
    let data = match name {
        "positive" => array.numbers(kind),
        "negative" => match kind {
            Kind::Bool => return missing(name, kind),
            Kind::Int => ints(i64::wrapping_neg),
            Kind::Float => floats(|x| -x),
            Kind::Complex => complexes(|x| -x),
        },
        "absolute" => match kind {
            Kind::Bool => bools(|x| x),
            Kind::Int => ints(i64::wrapping_abs),
            Kind::Float => floats(f64::abs),
            Kind::Complex => Data::Float(array.complexes().into_iter().map(|x| x.re.hypot(x.im)).collect()),
        },
        "sign" => match kind {
            Kind::Bool => return missing(name, kind),
            Kind::Int => ints(i64::signum),
            Kind::Float => floats(|x| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
            Kind::Complex => complexes(|x| if x == C64::ZERO { x } else { x / x.norm() }),
        },
        "square" => match kind {
            Kind::Bool => bools(|x| x),
            Kind::Int => ints(|x| x.wrapping_mul(x)),
            Kind::Float => floats(|x| x * x),
            Kind::Complex => complexes(|x| x * x),
        },
        "reciprocal" => match kind {
            Kind::Bool | Kind::Int => ints(|x| if x == 0 { 0 } else { 1 / x }),
            Kind::Float => floats(f64::recip),
            Kind::Complex => complexes(|x| x.inv()),
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
        "cbrt" if kind != Kind::Complex => floats(f64::cbrt),
        "degrees" if kind != Kind::Complex => floats(|x| x * (180.0 / std::f64::consts::PI)),
        "radians" if kind != Kind::Complex => floats(|x| x * (std::f64::consts::PI / 180.0)),
        "floor" => whole(f64::floor)?,
        "ceil" => whole(f64::ceil)?,
        "trunc" => whole(f64::trunc)?,
        "rint" if kind == Kind::Complex => complexes(|x| C64::new(x.re.round_ties_even(), x.im.round_ties_even())),
        "rint" => floats(f64::round_ties_even),
        "conjugate" if kind == Kind::Complex => complexes(|x| x.conj()),
        "conjugate" | "real" if kind != Kind::Complex => array.numbers(kind),
        "real" => floats(|x| x),
        "imag" if kind == Kind::Complex => Data::Float(array.complexes().into_iter().map(|x| x.im).collect()),
        "imag" => ints(|_| 0),
        "angle" => Data::Float(array.complexes().into_iter().map(|x| x.im.atan2(x.re)).collect()),
        "isnan" if kind == Kind::Complex => Data::Bool(array.complexes().into_iter().map(|x| x.is_nan()).collect()),
        "isinf" if kind == Kind::Complex => {
            Data::Bool(array.complexes().into_iter().map(|x| x.re.is_infinite() || x.im.is_infinite()).collect())
        }
        "isfinite" if kind == Kind::Complex => {
            Data::Bool(array.complexes().into_iter().map(|x| x.is_finite()).collect())
        }
        "isnan" => test(f64::is_nan),
        "isinf" => test(f64::is_infinite),
        "isfinite" => test(f64::is_finite),
        "signbit" if kind != Kind::Complex => test(f64::is_sign_negative),
        "logical_not" => bools(|x| !x),
        "invert" => match kind {
            Kind::Bool => bools(|x| !x),
            Kind::Int => ints(|x| !x),
            Kind::Float | Kind::Complex => return missing(name, kind),
        },
        _ => return missing(name, kind),
    };
    Ok(Array::new(data, array.shape.clone()))
}

fn pairs<T: Copy, U>(a: Vec<T>, b: Vec<T>, f: impl Fn(T, T) -> U) -> Vec<U> {
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

fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

fn smaller(a: f64, b: f64) -> f64 {
    if a.is_nan() || a <= b { a } else { b }
}

fn order(a: C64, b: C64) -> Ordering {
    a.re.total_cmp(&b.re).then(a.im.total_cmp(&b.im))
}

/// A function of each pair of numbers.
pub(crate) fn binary(name: &str, a: &Array, b: &Array) -> Result<Array, Refusal> {
    let shape = broadcast(&a.shape, &b.shape)?;
    let (a, b) = (a.stretched(&shape)?, b.stretched(&shape)?);
    let kind = a.kind().max(b.kind());
    let ints = |f: fn(i64, i64) -> i64| Data::Int(pairs(a.ints(), b.ints(), f));
    let floats = |f: fn(f64, f64) -> f64| Data::Float(pairs(a.floats(), b.floats(), f));
    let complexes = |f: fn(C64, C64) -> C64| Data::Complex(pairs(a.complexes(), b.complexes(), f));
    let bools = |f: fn(bool, bool) -> bool| Data::Bool(pairs(a.bools(), b.bools(), f));
    let compare = |f: fn(f64, f64) -> bool, g: fn(i64, i64) -> bool, h: fn(Ordering) -> bool| {
        Data::Bool(match kind {
            Kind::Bool | Kind::Int => pairs(a.ints(), b.ints(), g),
            Kind::Float => pairs(a.floats(), b.floats(), f),
            Kind::Complex => pairs(a.complexes(), b.complexes(), |a, b| h(order(a, b))),
        })
    };
    let data = match (name, kind) {
        ("add", Kind::Bool) => bools(|a, b| a | b),
        ("add", Kind::Int) => ints(i64::wrapping_add),
        ("add", Kind::Float) => floats(|a, b| a + b),
        ("add", Kind::Complex) => complexes(|a, b| a + b),
        ("subtract", Kind::Bool) => {
            let words = "numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, the `^` \
                         operator, or the logical_xor function instead.";
            return Err(Refusal::Type(words.to_owned()));
        }
        ("subtract", Kind::Int) => ints(i64::wrapping_sub),
        ("subtract", Kind::Float) => floats(|a, b| a - b),
        ("subtract", Kind::Complex) => complexes(|a, b| a - b),
        ("multiply", Kind::Bool) => bools(|a, b| a & b),
        ("multiply", Kind::Int) => ints(i64::wrapping_mul),
        ("multiply", Kind::Float) => floats(|a, b| a * b),
        ("multiply", Kind::Complex) => complexes(|a, b| a * b),
        ("divide", Kind::Complex) => complexes(|a, b| a / b),
        ("divide", _) => floats(|a, b| a / b),
        ("floor_divide", Kind::Bool | Kind::Int) => ints(floor_div),
        ("floor_divide", Kind::Float) => floats(float_floor_div),
        ("remainder", Kind::Bool | Kind::Int) => ints(modulo),
        ("remainder", Kind::Float) => floats(float_modulo),
        ("power", Kind::Bool | Kind::Int) => {
            if b.ints().iter().any(|exponent| *exponent < 0) {
                return value("Integers to negative integer powers are not allowed.");
            }
            ints(int_power)
        }
        ("power", Kind::Float) => floats(|a, b| if b == 2.0 { a * a } else { a.powf(b) }),
        ("power", Kind::Complex) => complexes(complex_power),
        ("maximum", Kind::Bool) => bools(|a, b| a | b),
        ("maximum", Kind::Int) => ints(i64::max),
        ("maximum", Kind::Float) => floats(larger),
        ("maximum", Kind::Complex) => complexes(|a, b| if order(a, b).is_ge() { a } else { b }),
        ("minimum", Kind::Bool) => bools(|a, b| a & b),
        ("minimum", Kind::Int) => ints(i64::min),
        ("minimum", Kind::Float) => floats(smaller),
        ("minimum", Kind::Complex) => complexes(|a, b| if order(a, b).is_le() { a } else { b }),
        ("arctan2", Kind::Bool | Kind::Int | Kind::Float) => floats(f64::atan2),
        ("hypot", Kind::Bool | Kind::Int | Kind::Float) => floats(f64::hypot),
        ("copysign", Kind::Bool | Kind::Int | Kind::Float) => floats(f64::copysign),
        ("equal", Kind::Complex) => Data::Bool(pairs(a.complexes(), b.complexes(), |a, b| a == b)),
        ("not_equal", Kind::Complex) => Data::Bool(pairs(a.complexes(), b.complexes(), |a, b| a != b)),
        ("equal", _) => compare(|a, b| a == b, |a, b| a == b, Ordering::is_eq),
        ("not_equal", _) => compare(|a, b| a != b, |a, b| a != b, Ordering::is_ne),
        ("less", _) => compare(|a, b| a < b, |a, b| a < b, Ordering::is_lt),
        ("less_equal", _) => compare(|a, b| a <= b, |a, b| a <= b, Ordering::is_le),
        ("greater", _) => compare(|a, b| a > b, |a, b| a > b, Ordering::is_gt),
        ("greater_equal", _) => compare(|a, b| a >= b, |a, b| a >= b, Ordering::is_ge),
        ("bitwise_and", Kind::Bool) | ("logical_and", _) => bools(|a, b| a & b),
        ("bitwise_or", Kind::Bool) | ("logical_or", _) => bools(|a, b| a | b),
        ("bitwise_xor", Kind::Bool) | ("logical_xor", _) => bools(|a, b| a ^ b),
        ("bitwise_and", Kind::Int) => ints(|a, b| a & b),
        ("bitwise_or", Kind::Int) => ints(|a, b| a | b),
        ("bitwise_xor", Kind::Int) => ints(|a, b| a ^ b),
        ("left_shift", Kind::Bool | Kind::Int) => {
            ints(|a, b| u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0))
        }
        ("right_shift", Kind::Bool | Kind::Int) => ints(|a, b| a >> b.clamp(0, 63)),
        _ => return missing(name, kind),
    };
    Ok(Array::new(data, shape))
}

/// `a` where the condition holds, else `b`.
pub(crate) fn choose(condition: &Array, a: &Array, b: &Array) -> Result<Array, Refusal> {
    let shape = broadcast(&condition.shape, &broadcast(&a.shape, &b.shape)?)?;
    let kind = a.kind().max(b.kind());
    let condition = condition.stretched(&shape)?.bools();
    let (a, b) = (a.stretched(&shape)?.numbers(kind), b.stretched(&shape)?.numbers(kind));
    fn pick<T>(condition: Vec<bool>, a: Vec<T>, b: Vec<T>) -> Vec<T> {
        condition.into_iter().zip(a.into_iter().zip(b)).map(|(yes, (a, b))| if yes { a } else { b }).collect()
    }
    let data = match (a, b) {
        (Data::Bool(a), Data::Bool(b)) => Data::Bool(pick(condition, a, b)),
        (Data::Int(a), Data::Int(b)) => Data::Int(pick(condition, a, b)),
        (Data::Float(a), Data::Float(b)) => Data::Float(pick(condition, a, b)),
        (Data::Complex(a), Data::Complex(b)) => Data::Complex(pick(condition, a, b)),
        _ => return value("where: kinds differ"), // `numbers` gave both the same
    };
    Ok(Array::new(data, shape))
}

/// A sum by halves, as numpy makes it: the error grows with the logarithm of the length. The order of additions is
/// numpy's, so that the last digit is, too.
fn pairwise<T: Copy + std::ops::Add<Output = T>>(all: &[T], zero: T) -> T {
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
            pairwise(left, zero) + pairwise(right, zero)
        }
    }
}

/// The runs of the last axis.
fn runs<T: Clone, U>(all: &[T], length: usize, count: usize, mut f: impl FnMut(&[T]) -> U) -> Vec<U> {
    (0..count).map(|at| f(&all[at * length..(at + 1) * length])).collect()
}

fn along(array: &Array) -> Result<(Vec<usize>, usize, usize), Refusal> {
    let Some((length, outer)) = array.shape.split_last() else { return value("the array has no axis") };
    Ok((outer.to_vec(), *length, outer.iter().product()))
}

/// Makes one number of each run of the last axis. `sum` adds as numpy does along memory, `add` one after the other.
pub(crate) fn reduce(name: &str, array: &Array) -> Result<Array, Refusal> {
    let (outer, length, count) = along(array)?;
    let kind = array.kind();
    if length == 0 && matches!(name, "max" | "min" | "argmax" | "argmin") {
        return value(format!(
            "zero-size array to reduction operation {} which has no identity",
            if name.ends_with("ax") { "maximum" } else { "minimum" }
        ));
    }
    let floats = |f: fn(&[f64]) -> f64| Data::Float(runs(&array.floats(), length, count, f));
    let ints = |f: fn(&[i64]) -> i64| Data::Int(runs(&array.ints(), length, count, f));
    let complexes = |f: fn(&[C64]) -> C64| Data::Complex(runs(&array.complexes(), length, count, f));
    let bools = |f: fn(&[bool]) -> bool| Data::Bool(runs(&array.bools(), length, count, f));
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
        ("sum" | "add", Kind::Bool | Kind::Int) => ints(|all| all.iter().fold(0, |sum, x| sum.wrapping_add(*x))),
        ("sum", Kind::Float) => floats(|all| pairwise(all, 0.0)),
        ("sum", Kind::Complex) => complexes(|all| pairwise(all, C64::ZERO)),
        ("add", Kind::Float) => floats(|all| all.iter().sum()),
        ("add", Kind::Complex) => complexes(|all| all.iter().sum()),
        ("prod", Kind::Bool | Kind::Int) => ints(|all| all.iter().fold(1, |all, x| all.wrapping_mul(*x))),
        ("prod", Kind::Float) => floats(|all| all.iter().product()),
        ("prod", Kind::Complex) => complexes(|all| all.iter().product()),
        ("max", Kind::Bool) => bools(|all| all.contains(&true)),
        ("max", Kind::Int) => ints(|all| all.iter().copied().max().unwrap_or(0)),
        ("max", Kind::Float) => floats(|all| best(all, larger)),
        ("max", Kind::Complex) => {
            complexes(|all| all.iter().copied().max_by(|a, b| order(*a, *b)).unwrap_or(C64::ZERO))
        }
        ("min", Kind::Bool) => bools(|all| !all.contains(&false)),
        ("min", Kind::Int) => ints(|all| all.iter().copied().min().unwrap_or(0)),
        ("min", Kind::Float) => floats(|all| best(all, smaller)),
        ("min", Kind::Complex) => {
            complexes(|all| all.iter().copied().min_by(|a, b| order(*a, *b)).unwrap_or(C64::ZERO))
        }
        ("any", _) => bools(|all| all.contains(&true)),
        ("all", _) => bools(|all| !all.contains(&false)),
        ("argmax", Kind::Bool | Kind::Int | Kind::Float) => {
            Data::Int(runs(&array.floats(), length, count, |all| place(all, |x, best| x > best)))
        }
        ("argmin", Kind::Bool | Kind::Int | Kind::Float) => {
            Data::Int(runs(&array.floats(), length, count, |all| place(all, |x, best| x < best)))
        }
        _ => return missing(name, kind),
    };
    Ok(Array::new(data, outer))
}

/// Sums or products up to each number of the last axis.
pub(crate) fn accumulate(name: &str, array: &Array) -> Result<Array, Refusal> {
    let (_, length, _) = along(array)?;
    fn each<T: Copy>(mut all: Vec<T>, length: usize, f: impl Fn(T, T) -> T) -> Vec<T> {
        for run in all.chunks_mut(length.max(1)) {
            for at in 1..run.len() {
                run[at] = f(run[at - 1], run[at]);
            }
        }
        all
    }
    let data = match (name, array.kind()) {
        ("cumsum", Kind::Bool | Kind::Int) => Data::Int(each(array.ints(), length, i64::wrapping_add)),
        ("cumsum", Kind::Float) => Data::Float(each(array.floats(), length, |a, b| a + b)),
        ("cumsum", Kind::Complex) => Data::Complex(each(array.complexes(), length, |a, b| a + b)),
        ("cumprod", Kind::Bool | Kind::Int) => Data::Int(each(array.ints(), length, i64::wrapping_mul)),
        ("cumprod", Kind::Float) => Data::Float(each(array.floats(), length, |a, b| a * b)),
        ("cumprod", Kind::Complex) => Data::Complex(each(array.complexes(), length, |a, b| a * b)),
        ("cummax", Kind::Bool | Kind::Int) => Data::Int(each(array.ints(), length, i64::max)),
        ("cummax", Kind::Float) => Data::Float(each(array.floats(), length, larger)),
        ("cummin", Kind::Bool | Kind::Int) => Data::Int(each(array.ints(), length, i64::min)),
        ("cummin", Kind::Float) => Data::Float(each(array.floats(), length, smaller)),
        (_, kind) => return missing(name, kind),
    };
    Ok(Array::new(data, array.shape.clone()))
}

/// Not-a-number stands at the end, as numpy has it.
fn rank(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The last axis in order; equal ones stay as they stood.
pub(crate) fn sort(array: &Array) -> Result<Array, Refusal> {
    let (_, length, _) = along(array)?;
    let mut data = array.numbers(array.kind());
    let length = length.max(1);
    match &mut data {
        Data::Bool(all) => all.chunks_mut(length).for_each(<[bool]>::sort),
        Data::Int(all) => all.chunks_mut(length).for_each(<[i64]>::sort),
        Data::Float(all) => all.chunks_mut(length).for_each(|run| run.sort_by(|a, b| rank(*a, *b))),
        Data::Complex(all) => all.chunks_mut(length).for_each(|run| run.sort_by(|a, b| order(*a, *b))),
    }
    Ok(Array::new(data, array.shape.clone()))
}

/// Where the numbers of the last axis stand in order.
pub(crate) fn argsort(array: &Array) -> Result<Array, Refusal> {
    let (_, length, count) = along(array)?;
    fn places<T>(run: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Vec<i64> {
        let mut places: Vec<usize> = (0..run.len()).collect();
        places.sort_by(|a, b| compare(&run[*a], &run[*b]));
        places.into_iter().map(|place| place.cast_signed() as i64).collect()
    }
    let all = match array.kind() {
        Kind::Bool | Kind::Int => runs(&array.ints(), length, count, |run| places(run, Ord::cmp)),
        Kind::Float => runs(&array.floats(), length, count, |run| places(run, |a, b| rank(*a, *b))),
        Kind::Complex => runs(&array.complexes(), length, count, |run| places(run, |a, b| order(*a, *b))),
    };
    Ok(Array::new(Data::Int(all.concat()), array.shape.clone()))
}
