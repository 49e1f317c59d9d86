//! Makes waiting for a lock or a thread interruptible, which it isn't in RustPython.
//!
//! `queue.get()`, `Event.wait()`, `future.result()` and `thread.join()` all end in one of five native methods that
//! sleep without checking for signals. Each is replaced by one that, in the interpreter's own thread, sleeps in slices
//! and checks in between. Other threads, which never receive an interrupt, wait as before.

use std::time::{Duration, Instant};

use rustpython_vm as vm;

use vm::builtins::{PyType, PyTypeRef};
use vm::function::{ArgIntoFloat, IntoPyNativeFn, OptionalArg, OptionalOption, PyMethodFlags};
use vm::{AsObject, PyObjectRef, PyResult, VirtualMachine};

/// Maximum delay until an interrupt is noticed.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Arguments of `lock.acquire`.
#[derive(vm::FromArgs)]
struct LockAcquireArgs {
    #[pyarg(any, default = true)]
    blocking: bool,
    #[pyarg(any, default)]
    timeout: OptionalArg<ArgIntoFloat>,
}

/// Replaces the methods. Must be called on the interpreter's thread, before any cell runs.
pub(crate) fn make_interruptible(vm: &VirtualMachine) -> PyResult<()> {
    let thread = vm.import("_thread", 0)?;
    for name in ["lock", "RLock"] {
        let lock = static_class(&thread.get_attr(name, vm)?, vm)?;
        let acquire = lock.as_object().get_attr("acquire", vm)?;
        let original = acquire.clone();
        let patient = move |lock: PyObjectRef, asked: LockAcquireArgs, vm: &VirtualMachine| -> PyResult<bool> {
            let timeout = asked.timeout.into_option().map_or(-1.0, f64::from);
            wait_for_lock(&original, lock, asked.blocking, timeout, vm)
        };
        replace_method(lock, "acquire", patient, vm);
        let enter = move |lock: PyObjectRef, vm: &VirtualMachine| wait_for_lock(&acquire, lock, true, -1.0, vm);
        replace_method(lock, "__enter__", enter, vm);
    }
    let handle = static_class(&thread.get_attr("_ThreadHandle", vm)?, vm)?;
    let join = handle.as_object().get_attr("join", vm)?;
    let patient = move |handle: PyObjectRef, timeout: OptionalOption<ArgIntoFloat>, vm: &VirtualMachine| -> PyResult {
        wait_for_thread(&join, handle, timeout.flatten().map(f64::from), vm)
    };
    replace_method(handle, "join", patient, vm);
    Ok(())
}

/// Implements `lock.acquire(blocking, timeout)`, waiting in slices where the original would block.
fn wait_for_lock(
    acquire: &PyObjectRef,
    lock: PyObjectRef,
    blocking: bool,
    timeout: f64,
    vm: &VirtualMachine,
) -> PyResult<bool> {
    let forever = timeout == -1.0;
    // The original handles calls that don't wait and invalid arguments.
    let end = Duration::try_from_secs_f64(timeout).ok().and_then(|timeout| Instant::now().checked_add(timeout));
    if !blocking || !is_interruptible() || (!forever && end.is_none()) {
        return acquire.call((lock, blocking, timeout), vm)?.try_to_bool(vm);
    }
    loop {
        let slice = end.map_or(SIGNAL_CHECK_INTERVAL, |end| {
            end.saturating_duration_since(Instant::now()).min(SIGNAL_CHECK_INTERVAL)
        });
        if acquire.call((lock.clone(), true, slice.as_secs_f64()), vm)?.try_to_bool(vm)? {
            return Ok(true);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(false);
        }
        vm.check_signals()?;
    }
}

/// Implements `handle.join(timeout)`, waiting in slices. A negative timeout means none, as in the original.
fn wait_for_thread(join: &PyObjectRef, handle: PyObjectRef, timeout: Option<f64>, vm: &VirtualMachine) -> PyResult {
    if !is_interruptible() {
        return join.call((handle, timeout), vm);
    }
    let limit = timeout.and_then(|timeout| Duration::try_from_secs_f64(timeout).ok());
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let slice = end.map_or(SIGNAL_CHECK_INTERVAL, |end| {
            end.saturating_duration_since(Instant::now()).min(SIGNAL_CHECK_INTERVAL)
        });
        // The original cleans up after an ended thread in the call that detects its end.
        join.call((handle.clone(), slice.as_secs_f64()), vm)?;
        if vm.call_method(&handle, "is_done", ())?.try_to_bool(vm)? {
            return join.call((handle, 0.0), vm);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(vm.ctx.none());
        }
        vm.check_signals()?;
    }
}

/// Returns whether this is the thread that receives interrupts.
fn is_interruptible() -> bool {
    std::thread::current().name() == Some(crate::PYTHON_THREAD)
}

/// Leaks a reference to the class: it belongs to the interpreter, and the replaced method will point to it.
fn static_class(object: &PyObjectRef, vm: &VirtualMachine) -> PyResult<&'static vm::Py<PyType>> {
    let class: PyTypeRef = object.clone().downcast().map_err(|_| vm.new_system_error("_thread has no such class"))?;
    Ok(Box::leak(Box::new(class)))
}

fn replace_method<F, Kind>(class: &'static vm::Py<PyType>, name: &'static str, method: F, vm: &VirtualMachine)
where
    F: IntoPyNativeFn<Kind>,
{
    let method = vm.ctx.new_method_def(name, method, PyMethodFlags::METHOD, Default::default());
    class.set_attr(vm.ctx.intern_str(name), method.build_method(class, vm).into());
}
