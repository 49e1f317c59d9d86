//! Arrays for cells: the native half of `import numpy`. The other half is `numpy.py`.
//!
//! Implements numbers and bulk operations; names, keywords, views and printing are in Python. The arrays themselves
//! don't depend on Python and are in `numpy/`.

mod array;
mod element;
mod linear;
mod pcg64;

/// Makes cargo rebuild when this file changes, since it doesn't know that `py_freeze!` reads it.
const _: &str = include_str!("numpy.py");

#[rustpython_vm::pymodule(name = "_tracebook_numpy")]
pub(crate) mod native {
    use std::sync::{Mutex, PoisonError};

    use rustpython_vm as vm;

    use vm::builtins::{PyBaseExceptionRef, PyComplex, PyFloat, PyInt, PyList, PyStrRef, PyTuple};
    use vm::convert::ToPyObject;
    use vm::function::ArgIntoFloat;
    use vm::{AsObject, Py, PyObjectRef, PyPayload, PyRef, PyResult, VirtualMachine, pyclass};

    use super::array::{ArrayData, ArrayError, C64, ElementKind, NdArray, checked_size};
    use super::{element, linear, pcg64};

    /// The native side of an `ndarray`.
    #[pyattr]
    #[pyclass(name = "core", module = "numpy")]
    #[derive(Debug, PyPayload)]
    pub(crate) struct NdArrayCore {
        array: NdArray,
    }

    /// A random number generator.
    #[pyattr]
    #[pyclass(name = "chance", module = "numpy")]
    #[derive(Debug, PyPayload)]
    pub(crate) struct RandomGenerator {
        generator: Mutex<pcg64::Pcg64>,
    }

    impl NdArrayCore {
        /// Returns all elements in order, as floats.
        pub(crate) fn floats(&self) -> Vec<f64> {
            self.array.floats()
        }
    }

    fn to_exception(refusal: ArrayError, vm: &VirtualMachine) -> PyBaseExceptionRef {
        match refusal {
            ArrayError::Value(words) => vm.new_value_error(words),
            ArrayError::Type(words) => vm.new_type_error(words),
            ArrayError::Index(words) => vm.new_index_error(words),
            ArrayError::Linear(words) => {
                let class = vm.import("numpy", 0).and_then(|numpy| numpy.get_attr("LinAlgError", vm));
                match class.map(|class| class.downcast::<vm::builtins::PyType>()) {
                    Ok(Ok(class)) => vm.new_exception_msg(class, words.into()),
                    Ok(Err(_)) | Err(_) => vm.new_value_error(words),
                }
            }
        }
    }

    fn wrap_core(made: Result<NdArray, ArrayError>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        made.map(|array| NdArrayCore { array }.into_ref(&vm.ctx)).map_err(|refusal| to_exception(refusal, vm))
    }

    fn shape_tuple(sides: impl IntoIterator<Item = isize>, vm: &VirtualMachine) -> PyObjectRef {
        let sides = sides.into_iter().map(|side| vm.ctx.new_int(side).into()).collect();
        PyTuple::new_ref(sides, &vm.ctx).into()
    }

    #[pyclass]
    impl NdArrayCore {
        #[pygetset]
        fn kind(zelf: &Py<Self>) -> &'static str {
            zelf.array.kind().letter()
        }

        #[pygetset]
        fn shape(zelf: &Py<Self>, vm: &VirtualMachine) -> PyObjectRef {
            shape_tuple(zelf.array.shape.iter().map(|side| side.cast_signed()), vm)
        }

        #[pygetset]
        fn strides(zelf: &Py<Self>, vm: &VirtualMachine) -> PyObjectRef {
            shape_tuple(zelf.array.strides.iter().copied(), vm)
        }

        #[pygetset]
        fn offset(zelf: &Py<Self>) -> usize {
            zelf.array.offset
        }

        #[pygetset]
        fn size(zelf: &Py<Self>) -> usize {
            zelf.array.len()
        }

        /// Returns another view of the same data.
        #[pymethod]
        fn window(
            zelf: &Py<Self>,
            offset: usize,
            shape: Vec<usize>,
            strides: Vec<isize>,
            vm: &VirtualMachine,
        ) -> PyResult<PyRef<NdArrayCore>> {
            wrap_core(zelf.array.view(offset, shape, strides), vm)
        }

        #[pymethod]
        fn stretched(zelf: &Py<Self>, shape: Vec<usize>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
            wrap_core(zelf.array.broadcast_to(&shape), vm)
        }

        /// Returns a copy with its own data, converted to another kind.
        #[pymethod]
        fn copied(zelf: &Py<Self>, kind: PyStrRef, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
            wrap_core(ElementKind::from_letter(&kind.to_string_lossy()).map(|kind| zelf.array.cast_to(kind)), vm)
        }

        #[pymethod]
        fn shares(zelf: &Py<Self>, other: PyRef<NdArrayCore>) -> bool {
            zelf.array.shares_memory(&other.array)
        }

        #[pymethod]
        fn assign(zelf: &Py<Self>, values: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<()> {
            zelf.array.assign(&values.array).map_err(|refusal| to_exception(refusal, vm))
        }

        #[pymethod]
        fn gather(zelf: &Py<Self>, positions: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
            wrap_core(zelf.array.gather(&positions.array), vm)
        }

        #[pymethod]
        fn scatter(
            zelf: &Py<Self>,
            positions: PyRef<NdArrayCore>,
            values: PyRef<NdArrayCore>,
            vm: &VirtualMachine,
        ) -> PyResult<()> {
            zelf.array.scatter(&positions.array, &values.array).map_err(|refusal| to_exception(refusal, vm))
        }

        /// Returns all elements in order, as a list of Python objects.
        #[pymethod]
        fn flat(zelf: &Py<Self>, vm: &VirtualMachine) -> PyObjectRef {
            let ctx = &vm.ctx;
            let all: Vec<PyObjectRef> = match zelf.array.numbers(zelf.array.kind()) {
                ArrayData::Bool(all) => all.into_iter().map(|x| ctx.new_bool(x).into()).collect(),
                ArrayData::Int(all) => all.into_iter().map(|x| ctx.new_int(x).into()).collect(),
                ArrayData::Float(all) => all.into_iter().map(|x| ctx.new_float(x).into()).collect(),
                ArrayData::Complex(all) => all.into_iter().map(|x| ctx.new_complex(x).into()).collect(),
            };
            ctx.new_list(all).into()
        }

        /// Returns the elements as bytes, little-endian.
        #[pymethod]
        fn bytes(zelf: &Py<Self>) -> Vec<u8> {
            match zelf.array.numbers(zelf.array.kind()) {
                ArrayData::Bool(all) => all.into_iter().map(u8::from).collect(),
                ArrayData::Int(all) => all.into_iter().flat_map(i64::to_le_bytes).collect(),
                ArrayData::Float(all) => all.into_iter().flat_map(f64::to_le_bytes).collect(),
                ArrayData::Complex(all) => {
                    all.into_iter().flat_map(|x| [x.re, x.im]).flat_map(f64::to_le_bytes).collect()
                }
            }
        }
    }

    /// Numbers collected from Python objects, before they become an array.
    struct CollectedNumbers {
        kind: ElementKind,
        all: Vec<C64>,
        /// The exact integers, since floats are inexact above 2⁵³.
        ints: Vec<i64>,
    }

    fn ragged_error(depth: usize, shape: &[usize], vm: &VirtualMachine) -> PyBaseExceptionRef {
        vm.new_value_error(format!(
            "setting an array element with a sequence. The requested array has an inhomogeneous shape after {depth} \
             dimensions. The detected shape was {} + inhomogeneous part.",
            super::array::format_shape(&shape[..depth.min(shape.len())]).replace(',', ", ").replace(", )", ",)")
        ))
    }

    #[allow(clippy::cast_precision_loss, reason = "the exact number is kept beside it")]
    fn collect_numbers(
        object: &PyObjectRef,
        depth: usize,
        shape: &mut Vec<usize>,
        loose: &mut CollectedNumbers,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        let items = if let Some(list) = object.downcast_ref::<PyList>() {
            Some(list.borrow_vec().to_vec())
        } else {
            object.downcast_ref::<PyTuple>().map(|tuple| tuple.as_slice().to_vec())
        };
        if let Some(items) = items {
            if loose.all.is_empty() && shape.len() == depth && !(depth > 0 && loose.ints.is_empty() && shape[0] == 0) {
                shape.push(items.len());
            } else if shape.get(depth) != Some(&items.len()) {
                return Err(ragged_error(depth, shape, vm));
            }
            return items.iter().try_for_each(|item| collect_numbers(item, depth + 1, shape, loose, vm));
        }
        if let Some(inner) = vm.get_attribute_opt(object, "_core")? {
            let Some(inner) = inner.downcast_ref::<NdArrayCore>() else { return Err(ragged_error(depth, shape, vm)) };
            let array = &inner.array;
            if loose.all.is_empty() && shape.len() == depth {
                shape.extend(&array.shape);
            } else if shape.get(depth..) != Some(&array.shape[..]) {
                return Err(ragged_error(depth, shape, vm));
            }
            loose.kind = loose.kind.max(array.kind());
            loose.all.extend(array.complexes());
            loose.ints.extend(array.ints());
            return Ok(());
        }
        if shape.len() != depth {
            return Err(ragged_error(depth, shape, vm));
        }
        if let Some(int) = object.downcast_ref::<PyInt>() {
            let bool = object.fast_isinstance(vm.ctx.types.bool_type);
            let int: i64 = int.try_to_primitive(vm)?;
            loose.kind = loose.kind.max(if bool { ElementKind::Bool } else { ElementKind::Int });
            loose.all.push(C64::from(int as f64));
            loose.ints.push(int);
            return Ok(());
        }
        let (kind, number) = if let Some(float) = object.downcast_ref::<PyFloat>() {
            (ElementKind::Float, C64::from(float.to_f64()))
        } else if let Some(complex) = object.downcast_ref::<PyComplex>() {
            (ElementKind::Complex, complex.to_complex())
        } else {
            let class = object.class().name().to_owned();
            return Err(vm.new_type_error(format!(
                "numpy in Tracebook holds bool, int64, float64 and complex128, not {class}; a full Python kernel has \
                 the rest"
            )));
        };
        loose.kind = loose.kind.max(kind);
        loose.all.push(number);
        loose.ints.push(0);
        Ok(())
    }

    /// Builds an array from nested lists, numbers and arrays.
    #[pyfunction]
    fn build(object: PyObjectRef, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        let mut loose = CollectedNumbers { kind: ElementKind::Bool, all: Vec::new(), ints: Vec::new() };
        let mut shape = Vec::new();
        collect_numbers(&object, 0, &mut shape, &mut loose, vm)?;
        if shape.iter().product::<usize>() != loose.all.len() {
            return Err(ragged_error(shape.len(), &shape, vm));
        }
        let data = match loose.kind {
            _ if loose.all.is_empty() => ArrayData::Float(Vec::new()),
            ElementKind::Bool => ArrayData::Bool(loose.ints.into_iter().map(|x| x != 0).collect()),
            ElementKind::Int => ArrayData::Int(loose.ints),
            ElementKind::Float => ArrayData::Float(loose.all.into_iter().map(|x| x.re).collect()),
            ElementKind::Complex => ArrayData::Complex(loose.all),
        };
        wrap_core(Ok(NdArray::new(data, shape)), vm)
    }

    /// Returns an array of zeros.
    #[pyfunction]
    fn zeros(shape: Vec<usize>, kind: PyStrRef, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        let made = checked_size(&shape).and_then(|size| {
            let kind = ElementKind::from_letter(&kind.to_string_lossy())?;
            let each = match kind {
                ElementKind::Bool => 1,
                ElementKind::Int | ElementKind::Float => 8,
                ElementKind::Complex => 16,
            };
            // Allocate fallibly: a failed plain allocation aborts the process.
            Vec::<u8>::new()
                .try_reserve_exact(size.saturating_mul(each))
                .map_err(|_| ArrayError::Index(String::new()))?;
            let data = match kind {
                ElementKind::Bool => ArrayData::Bool(vec![false; size]),
                ElementKind::Int => ArrayData::Int(vec![0; size]),
                ElementKind::Float => ArrayData::Float(vec![0.0; size]),
                ElementKind::Complex => ArrayData::Complex(vec![C64::ZERO; size]),
            };
            Ok(NdArray::new(data, shape))
        });
        match made {
            Err(ArrayError::Index(_)) => Err(vm.new_memory_error("Unable to allocate the array".to_owned())),
            made => wrap_core(made, vm),
        }
    }

    /// Returns the array `start`, `start + step`, and so on.
    #[pyfunction]
    #[allow(clippy::cast_precision_loss, reason = "no array is that long")]
    fn count(
        start: PyObjectRef,
        step: PyObjectRef,
        length: usize,
        vm: &VirtualMachine,
    ) -> PyResult<PyRef<NdArrayCore>> {
        checked_size(&[length]).map_err(|refusal| to_exception(refusal, vm))?;
        if let (Some(start), Some(step)) = (start.downcast_ref::<PyInt>(), step.downcast_ref::<PyInt>()) {
            let (start, step): (i64, i64) = (start.try_to_primitive(vm)?, step.try_to_primitive(vm)?);
            let all = (0..length as i64).map(|at| start.wrapping_add(step.wrapping_mul(at))).collect();
            return wrap_core(Ok(NdArray::new(ArrayData::Int(all), vec![length])), vm);
        }
        let (start, step) = (start.try_float(vm)?.to_f64(), step.try_float(vm)?.to_f64());
        let all = (0..length).map(|at| start + step * at as f64).collect();
        wrap_core(Ok(NdArray::new(ArrayData::Float(all), vec![length])), vm)
    }

    #[pyfunction]
    fn unary(name: PyStrRef, a: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(element::unary(&name.to_string_lossy(), &a.array), vm)
    }

    #[pyfunction]
    fn binary(
        name: PyStrRef,
        a: PyRef<NdArrayCore>,
        b: PyRef<NdArrayCore>,
        vm: &VirtualMachine,
    ) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(element::binary(&name.to_string_lossy(), &a.array, &b.array), vm)
    }

    #[pyfunction]
    fn choose(
        condition: PyRef<NdArrayCore>,
        a: PyRef<NdArrayCore>,
        b: PyRef<NdArrayCore>,
        vm: &VirtualMachine,
    ) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(element::select(&condition.array, &a.array, &b.array), vm)
    }

    #[pyfunction]
    fn reduce(name: PyStrRef, a: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(element::reduce(&name.to_string_lossy(), &a.array), vm)
    }

    #[pyfunction]
    fn accumulate(name: PyStrRef, a: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(element::accumulate(&name.to_string_lossy(), &a.array), vm)
    }

    #[pyfunction]
    fn sort(a: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(element::sort(&a.array), vm)
    }

    #[pyfunction]
    fn argsort(a: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(element::argsort(&a.array), vm)
    }

    #[pyfunction]
    fn product(a: PyRef<NdArrayCore>, b: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(linear::matrix_product(&a.array, &b.array), vm)
    }

    #[pyfunction]
    fn solve(a: PyRef<NdArrayCore>, b: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(linear::solve(&a.array, &b.array), vm)
    }

    #[pyfunction]
    fn decompose(name: PyStrRef, a: PyRef<NdArrayCore>, vm: &VirtualMachine) -> PyResult {
        let parts =
            linear::decompose(&name.to_string_lossy(), &a.array).map_err(|refusal| to_exception(refusal, vm))?;
        let parts = parts.into_iter().map(|array| NdArrayCore { array }.into_ref(&vm.ctx).to_pyobject(vm)).collect();
        Ok(vm.ctx.new_list(parts).into())
    }

    #[pyfunction]
    fn fourier(a: PyRef<NdArrayCore>, inverse: bool, vm: &VirtualMachine) -> PyResult<PyRef<NdArrayCore>> {
        wrap_core(linear::fourier_transform(&a.array, inverse), vm)
    }

    /// Returns a generator seeded with 32-bit words.
    #[pyfunction]
    fn seeded(words: Vec<u32>, vm: &VirtualMachine) -> PyRef<RandomGenerator> {
        RandomGenerator { generator: Mutex::new(pcg64::Pcg64::new(&words)) }.into_ref(&vm.ctx)
    }

    #[pyclass]
    impl RandomGenerator {
        /// Draws this many numbers: `next_f64`, `next_normal`, or integers `next_below` a limit.
        #[pymethod]
        fn draw(
            zelf: &Py<Self>,
            kind: PyStrRef,
            count: usize,
            end: ArgIntoFloat,
            vm: &VirtualMachine,
        ) -> PyResult<PyRef<NdArrayCore>> {
            checked_size(&[count]).map_err(|refusal| to_exception(refusal, vm))?;
            let mut generator = zelf.generator.lock().unwrap_or_else(PoisonError::into_inner);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count below 2⁵³")]
            let end = f64::from(end) as u64;
            let data = match &*kind.to_string_lossy() {
                "unit" => ArrayData::Float((0..count).map(|_| generator.next_f64()).collect()),
                "normal" => ArrayData::Float((0..count).map(|_| generator.next_normal()).collect()),
                _ => ArrayData::Int((0..count).map(|_| generator.next_below(end).cast_signed()).collect()),
            };
            wrap_core(Ok(NdArray::new(data, vec![count])), vm)
        }
    }
}
