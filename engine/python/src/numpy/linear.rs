//! Linear algebra (crate `nalgebra`) and Fourier transforms (crate `rustfft`) of matrices given as arrays. Independent
//! of Python. Callers loop over stacks of matrices and other axes.

use super::array::{ArrayData, ArrayError, C64, ElementKind, NdArray, format_shape, value_error};
use nalgebra::{ComplexField, DMatrix, Schur};
use rustfft::FftPlanner;

fn matrix_dimensions(array: &NdArray) -> Result<(usize, usize), ArrayError> {
    match array.shape[..] {
        [rows, columns] => Ok((rows, columns)),
        _ => {
            let words = format!("{}-dimensional array given. Array must be two-dimensional", array.shape.len());
            Err(ArrayError::Linear(words))
        }
    }
}

fn square_size(array: &NdArray) -> Result<usize, ArrayError> {
    match matrix_dimensions(array)? {
        (rows, columns) if rows == columns => Ok(rows),
        _ => Err(ArrayError::Linear("Last 2 dimensions of the array must be square".to_owned())),
    }
}

fn float_matrix(array: &NdArray) -> Result<DMatrix<f64>, ArrayError> {
    let (rows, columns) = matrix_dimensions(array)?;
    Ok(DMatrix::from_row_slice(rows, columns, &array.floats()))
}

fn complex_matrix(array: &NdArray) -> Result<DMatrix<C64>, ArrayError> {
    let (rows, columns) = matrix_dimensions(array)?;
    Ok(DMatrix::from_row_slice(rows, columns, &array.complexes()))
}

trait MatrixNumber: ComplexField {
    fn to_array_data(all: Vec<Self>) -> ArrayData;
}

impl MatrixNumber for f64 {
    fn to_array_data(all: Vec<f64>) -> ArrayData {
        ArrayData::Float(all)
    }
}

impl MatrixNumber for C64 {
    fn to_array_data(all: Vec<C64>) -> ArrayData {
        ArrayData::Complex(all)
    }
}

fn array_from_matrix<T: MatrixNumber>(matrix: &DMatrix<T>) -> NdArray {
    // nalgebra is column-major, arrays are row-major: the transposed matrix has the array's order.
    NdArray::new(T::to_array_data(matrix.transpose().as_slice().to_vec()), vec![matrix.nrows(), matrix.ncols()])
}

fn array_from_list<T: MatrixNumber>(all: impl IntoIterator<Item = T>) -> NdArray {
    let all: Vec<T> = all.into_iter().collect();
    let length = all.len();
    NdArray::new(T::to_array_data(all), vec![length])
}

fn singular_error<T>() -> Result<T, ArrayError> {
    Err(ArrayError::Linear("Singular matrix".to_owned()))
}

/// Returns the product of two matrices.
pub(crate) fn matrix_product(a: &NdArray, b: &NdArray) -> Result<NdArray, ArrayError> {
    let ((rows, inner), (other, columns)) = (matrix_dimensions(a)?, matrix_dimensions(b)?);
    if inner != other {
        let (a, b) = (format_shape(&a.shape), format_shape(&b.shape));
        return value_error(format!("shapes {a} and {b} not aligned: {inner} (dim 1) != {other} (dim 0)"));
    }
    match a.kind().max(b.kind()) {
        ElementKind::Complex => Ok(array_from_matrix(&(complex_matrix(a)? * complex_matrix(b)?))),
        ElementKind::Float => Ok(array_from_matrix(&(float_matrix(a)? * float_matrix(b)?))),
        kind @ (ElementKind::Int | ElementKind::Bool) => {
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
            Ok(NdArray::new(ArrayData::Int(out), vec![rows, columns]).cast_to(kind))
        }
    }
}

/// Returns the matrices and lists of a matrix decomposition.
pub(crate) fn decompose(name: &str, a: &NdArray) -> Result<Vec<NdArray>, ArrayError> {
    match (name, a.kind()) {
        ("inv", ElementKind::Complex) => {
            square_size(a)?;
            complex_matrix(a)?
                .try_inverse()
                .map_or_else(singular_error, |inverse| Ok(vec![array_from_matrix(&inverse)]))
        }
        ("inv", _) => {
            square_size(a)?;
            float_matrix(a)?.try_inverse().map_or_else(singular_error, |inverse| Ok(vec![array_from_matrix(&inverse)]))
        }
        ("det", ElementKind::Complex) => {
            square_size(a)?;
            Ok(vec![array_from_list([complex_matrix(a)?.lu().determinant()])])
        }
        ("det", _) => {
            square_size(a)?;
            Ok(vec![array_from_list([float_matrix(a)?.lu().determinant()])])
        }
        ("svd", ElementKind::Complex) => svd(complex_matrix(a)?),
        ("svd", _) => svd(float_matrix(a)?),
        ("qr", ElementKind::Complex) => Ok(qr(complex_matrix(a)?)),
        ("qr", _) => Ok(qr(float_matrix(a)?)),
        ("cholesky", ElementKind::Complex) => {
            square_size(a)?;
            let found = complex_matrix(a)?.cholesky();
            found.map_or_else(not_positive_error, |found| Ok(vec![array_from_matrix(&found.l())]))
        }
        ("cholesky", _) => {
            square_size(a)?;
            float_matrix(a)?.cholesky().map_or_else(not_positive_error, |found| Ok(vec![array_from_matrix(&found.l())]))
        }
        ("eigh", ElementKind::Complex) => {
            square_size(a)?;
            Ok(symmetric_eigen(complex_matrix(a)?))
        }
        ("eigh", _) => {
            square_size(a)?;
            Ok(symmetric_eigen(float_matrix(a)?))
        }
        ("eig", _) => general_eigen(a),
        _ => value_error(format!("there is no decomposition {name}")),
    }
}

fn not_positive_error<T>() -> Result<T, ArrayError> {
    Err(ArrayError::Linear("Matrix is not positive definite".to_owned()))
}

fn svd<T: MatrixNumber<RealField = f64>>(matrix: DMatrix<T>) -> Result<Vec<NdArray>, ArrayError> {
    let found = matrix.svd(true, true);
    match (found.u, found.v_t) {
        (Some(u), Some(v)) => Ok(vec![
            array_from_matrix(&u),
            array_from_list(found.singular_values.iter().copied()),
            array_from_matrix(&v),
        ]),
        _ => Err(ArrayError::Linear("SVD did not converge".to_owned())),
    }
}

/// QR decomposition with the signs of LAPACK, whose reflections make each first entry negative. Below the last row of a
/// square matrix there is nothing to reflect.
fn qr<T: MatrixNumber<RealField = f64>>(matrix: DMatrix<T>) -> Vec<NdArray> {
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
    vec![array_from_matrix(&q), array_from_matrix(&r)]
}

fn symmetric_eigen<T: MatrixNumber<RealField = f64>>(matrix: DMatrix<T>) -> Vec<NdArray> {
    let found = matrix.symmetric_eigen();
    let mut order: Vec<usize> = (0..found.eigenvalues.len()).collect();
    order.sort_by(|a, b| found.eigenvalues[*a].total_cmp(&found.eigenvalues[*b]));
    let vectors = found.eigenvectors.select_columns(&order);
    vec![array_from_list(order.iter().map(|at| found.eigenvalues[*at])), array_from_matrix(&vectors)]
}

/// Returns the eigenvalues and eigenvectors of any square matrix, from its complex Schur form `Q T Q*`. A vector of the
/// triangle `T` is found from the bottom up, and `Q` turns it into one of the matrix.
fn general_eigen(a: &NdArray) -> Result<Vec<NdArray>, ArrayError> {
    let size = square_size(a)?;
    let matrix = complex_matrix(a)?;
    let scale = matrix.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let Some(schur) = Schur::try_new(matrix, f64::EPSILON, 10_000) else {
        return Err(ArrayError::Linear("Eigenvalues did not converge".to_owned()));
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
        // Scale the vector so that its largest entry is real, as LAPACK does.
        let largest = turned.iter().copied().max_by(|a, b| a.norm().total_cmp(&b.norm())).unwrap_or(C64::ONE);
        let phase = if largest.norm() == 0.0 { C64::ONE } else { largest.conj() / C64::from(largest.norm()) };
        vectors.set_column(at, &(turned * phase));
    }
    let values: Vec<C64> = t.diagonal().iter().copied().collect();
    let small = 1e-12 * scale;
    let real = a.kind() != ElementKind::Complex && values.iter().all(|value| value.im.abs() <= small);
    Ok(if real {
        vec![array_from_list(values.iter().map(|value| value.re)), array_from_matrix(&vectors.map(|x| x.re))]
    } else {
        vec![array_from_list(values), array_from_matrix(&vectors)]
    })
}

/// Solves `a x = b` for `x`.
pub(crate) fn solve(a: &NdArray, b: &NdArray) -> Result<NdArray, ArrayError> {
    let size = square_size(a)?;
    let (rows, _) = matrix_dimensions(b)?;
    if rows != size {
        return value_error(format!("solve: the matrix has {size} rows and the right side {rows}"));
    }
    if a.kind().max(b.kind()) == ElementKind::Complex {
        return complex_matrix(a)?
            .lu()
            .solve(&complex_matrix(b)?)
            .map_or_else(singular_error, |found| Ok(array_from_matrix(&found)));
    }
    float_matrix(a)?.lu().solve(&float_matrix(b)?).map_or_else(singular_error, |found| Ok(array_from_matrix(&found)))
}

/// Returns the Fourier transform along the last axis. The inverse transform is divided by the length.
#[allow(clippy::cast_precision_loss, reason = "no array is that long")]
pub(crate) fn fourier_transform(a: &NdArray, inverse: bool) -> Result<NdArray, ArrayError> {
    let Some(length) = a.shape.last().copied().filter(|length| *length > 0) else {
        return value_error("Invalid number of FFT data points (0) specified.");
    };
    let mut all = a.complexes();
    let mut planner = FftPlanner::new();
    let plan = if inverse { planner.plan_fft_inverse(length) } else { planner.plan_fft_forward(length) };
    plan.process(&mut all);
    if inverse {
        all.iter_mut().for_each(|x| *x /= length as f64);
    }
    Ok(NdArray::new(ArrayData::Complex(all), a.shape.clone()))
}
