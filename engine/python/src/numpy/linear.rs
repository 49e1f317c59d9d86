//! Linear algebra (crate `nalgebra`) and Fourier transforms (crate `rustfft`) of matrices given as arrays. Knows no
//! Python. What goes over many matrices or axes is done by the caller.

use super::array::{Array, C64, Data, Kind, Refusal, shown, value};
use nalgebra::{ComplexField, DMatrix, Schur};
use rustfft::FftPlanner;

fn sides(array: &Array) -> Result<(usize, usize), Refusal> {
    match array.shape[..] {
        [rows, columns] => Ok((rows, columns)),
        _ => {
            let words = format!("{}-dimensional array given. Array must be two-dimensional", array.shape.len());
            Err(Refusal::Linear(words))
        }
    }
}

fn square(array: &Array) -> Result<usize, Refusal> {
    match sides(array)? {
        (rows, columns) if rows == columns => Ok(rows),
        _ => Err(Refusal::Linear("Last 2 dimensions of the array must be square".to_owned())),
    }
}

fn floats(array: &Array) -> Result<DMatrix<f64>, Refusal> {
    let (rows, columns) = sides(array)?;
    Ok(DMatrix::from_row_slice(rows, columns, &array.floats()))
}

fn complexes(array: &Array) -> Result<DMatrix<C64>, Refusal> {
    let (rows, columns) = sides(array)?;
    Ok(DMatrix::from_row_slice(rows, columns, &array.complexes()))
}

trait Numbers: ComplexField {
    fn data(all: Vec<Self>) -> Data;
}

impl Numbers for f64 {
    fn data(all: Vec<f64>) -> Data {
        Data::Float(all)
    }
}

impl Numbers for C64 {
    fn data(all: Vec<C64>) -> Data {
        Data::Complex(all)
    }
}

fn array<T: Numbers>(matrix: &DMatrix<T>) -> Array {
    // nalgebra stores columns, an array rows: the transposed matrix has our order.
    Array::new(T::data(matrix.transpose().as_slice().to_vec()), vec![matrix.nrows(), matrix.ncols()])
}

fn list<T: Numbers>(all: impl IntoIterator<Item = T>) -> Array {
    let all: Vec<T> = all.into_iter().collect();
    let length = all.len();
    Array::new(T::data(all), vec![length])
}

fn singular<T>() -> Result<T, Refusal> {
    Err(Refusal::Linear("Singular matrix".to_owned()))
}

/// The product of two matrices.
pub(crate) fn product(a: &Array, b: &Array) -> Result<Array, Refusal> {
    let ((rows, inner), (other, columns)) = (sides(a)?, sides(b)?);
    if inner != other {
        let (a, b) = (shown(&a.shape), shown(&b.shape));
        return value(format!("shapes {a} and {b} not aligned: {inner} (dim 1) != {other} (dim 0)"));
    }
    match a.kind().max(b.kind()) {
        Kind::Complex => Ok(array(&(complexes(a)? * complexes(b)?))),
        Kind::Float => Ok(array(&(floats(a)? * floats(b)?))),
        kind @ (Kind::Int | Kind::Bool) => {
            let (left, right) = (a.ints(), b.ints());
            let mut out = vec![0_i64; rows * columns];
            for row in 0..rows {
                for at in 0..inner {
                    let factor = left[row * inner + at];
                    for column in 0..columns {
                        let sum = &mut out[row * columns + column];
                        *sum = sum.wrapping_add(factor.wrapping_mul(right[at * columns + column]));
                    }
                }
            }
            Ok(Array::new(Data::Int(out), vec![rows, columns]).copied(kind))
        }
    }
}

/// The matrices and lists that a decomposition consists of.
pub(crate) fn decompose(name: &str, a: &Array) -> Result<Vec<Array>, Refusal> {
    match (name, a.kind()) {
        ("inv", Kind::Complex) => {
            square(a)?;
            complexes(a)?.try_inverse().map_or_else(singular, |inverse| Ok(vec![array(&inverse)]))
        }
        ("inv", _) => {
            square(a)?;
            floats(a)?.try_inverse().map_or_else(singular, |inverse| Ok(vec![array(&inverse)]))
        }
        ("det", Kind::Complex) => {
            square(a)?;
            Ok(vec![list([complexes(a)?.lu().determinant()])])
        }
        ("det", _) => {
            square(a)?;
            Ok(vec![list([floats(a)?.lu().determinant()])])
        }
        ("svd", Kind::Complex) => svd(complexes(a)?),
        ("svd", _) => svd(floats(a)?),
        ("qr", Kind::Complex) => Ok(qr(complexes(a)?)),
        ("qr", _) => Ok(qr(floats(a)?)),
        ("cholesky", Kind::Complex) => {
            square(a)?;
            let found = complexes(a)?.cholesky();
            found.map_or_else(not_positive, |found| Ok(vec![array(&found.l())]))
        }
        ("cholesky", _) => {
            square(a)?;
            floats(a)?.cholesky().map_or_else(not_positive, |found| Ok(vec![array(&found.l())]))
        }
        ("eigh", Kind::Complex) => {
            square(a)?;
            Ok(symmetric(complexes(a)?))
        }
        ("eigh", _) => {
            square(a)?;
            Ok(symmetric(floats(a)?))
        }
        ("eig", _) => eigen(a),
        _ => value(format!("there is no decomposition {name}")),
    }
}

fn not_positive<T>() -> Result<T, Refusal> {
    Err(Refusal::Linear("Matrix is not positive definite".to_owned()))
}

fn svd<T: Numbers<RealField = f64>>(matrix: DMatrix<T>) -> Result<Vec<Array>, Refusal> {
    let found = matrix.svd(true, true);
    match (found.u, found.v_t) {
        (Some(u), Some(v)) => Ok(vec![array(&u), list(found.singular_values.iter().copied()), array(&v)]),
        _ => Err(Refusal::Linear("SVD did not converge".to_owned())),
    }
}

/// With the signs of LAPACK, whose reflections turn each first entry to the negative; below the last row of a square
/// there is nothing to reflect.
fn qr<T: Numbers<RealField = f64>>(matrix: DMatrix<T>) -> Vec<Array> {
    let last = matrix.is_square().then(|| matrix.nrows().saturating_sub(1));
    let turned = last.is_some() && matrix.determinant().real() < 0.0;
    let (mut q, mut r) = matrix.qr().unpack();
    for at in 0..r.nrows().min(r.ncols()) {
        let negative = Some(at) != last || turned;
        if (r[(at, at)].clone().real() < 0.0) != negative {
            r.row_mut(at).neg_mut();
            q.column_mut(at).neg_mut();
        }
    }
    vec![array(&q), array(&r)]
}

fn symmetric<T: Numbers<RealField = f64>>(matrix: DMatrix<T>) -> Vec<Array> {
    let found = matrix.symmetric_eigen();
    let mut order: Vec<usize> = (0..found.eigenvalues.len()).collect();
    order.sort_by(|a, b| found.eigenvalues[*a].total_cmp(&found.eigenvalues[*b]));
    let vectors = found.eigenvectors.select_columns(&order);
    vec![list(order.iter().map(|at| found.eigenvalues[*at])), array(&vectors)]
}

/// Eigenvalues and vectors of any square matrix, from its complex Schur form `Q T Q*`: a vector of the triangle `T` is
/// found from the bottom up, and `Q` turns it into one of the matrix.
fn eigen(a: &Array) -> Result<Vec<Array>, Refusal> {
    let size = square(a)?;
    let matrix = complexes(a)?;
    let scale = matrix.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let Some(schur) = Schur::try_new(matrix, f64::EPSILON, 10_000) else {
        return Err(Refusal::Linear("Eigenvalues did not converge".to_owned()));
    };
    let (q, t) = schur.unpack();
    let mut vectors = DMatrix::<C64>::zeros(size, size);
    for at in 0..size {
        let mut vector = nalgebra::DVector::<C64>::zeros(size);
        vector[at] = C64::ONE;
        for row in (0..at).rev() {
            let sum: C64 = (row + 1..=at).map(|column| t[(row, column)] * vector[column]).sum();
            let mut gap = t[(at, at)] - t[(row, row)];
            if gap.norm() <= f64::EPSILON * scale {
                gap = C64::from(f64::EPSILON * scale.max(f64::MIN_POSITIVE)); // equal eigenvalues: as good as singular
            }
            vector[row] = sum / gap;
        }
        let turned = &q * vector;
        let turned = &turned / C64::from(turned.norm());
        // Of all multiples the one whose largest entry is real, as LAPACK chooses it.
        let largest = turned.iter().copied().max_by(|a, b| a.norm().total_cmp(&b.norm())).unwrap_or(C64::ONE);
        let phase = if largest.norm() == 0.0 { C64::ONE } else { largest.conj() / C64::from(largest.norm()) };
        vectors.set_column(at, &(turned * phase));
    }
    let values: Vec<C64> = t.diagonal().iter().copied().collect();
    let small = 1e-12 * scale;
    let real = a.kind() != Kind::Complex && values.iter().all(|value| value.im.abs() <= small);
    Ok(if real {
        vec![list(values.iter().map(|value| value.re)), array(&vectors.map(|x| x.re))]
    } else {
        vec![list(values), array(&vectors)]
    })
}

/// The `x` with `a x = b`.
pub(crate) fn solve(a: &Array, b: &Array) -> Result<Array, Refusal> {
    let size = square(a)?;
    let (rows, _) = sides(b)?;
    if rows != size {
        return value(format!("solve: the matrix has {size} rows and the right side {rows}"));
    }
    if a.kind().max(b.kind()) == Kind::Complex {
        return complexes(a)?.lu().solve(&complexes(b)?).map_or_else(singular, |found| Ok(array(&found)));
    }
    floats(a)?.lu().solve(&floats(b)?).map_or_else(singular, |found| Ok(array(&found)))
}

/// The Fourier transform of each run of the last axis; backwards divided by the length.
#[allow(clippy::cast_precision_loss, reason = "no array is that long")]
pub(crate) fn fourier(a: &Array, inverse: bool) -> Result<Array, Refusal> {
    let Some(length) = a.shape.last().copied().filter(|length| *length > 0) else {
        return value("Invalid number of FFT data points (0) specified.");
    };
    let mut all = a.complexes();
    let mut planner = FftPlanner::new();
    let plan = if inverse { planner.plan_fft_inverse(length) } else { planner.plan_fft_forward(length) };
    plan.process(&mut all);
    if inverse {
        all.iter_mut().for_each(|x| *x /= length as f64);
    }
    Ok(Array::new(Data::Complex(all), a.shape.clone()))
}
