//! Makes waiting for a lock or a thread interruptible, which in RustPython it is not.
//!
//! `queue.get()`, `Event.wait()`, `future.result()` and `thread.join()` all end in one of five native methods that
//! sleep without looking at signals. Here each is replaced by one that, in the interpreter's own thread, sleeps in
//! slices and looks in between. Other threads, which never receive an interrupt, wait as before.

use std::time::{Duration, Instant};

use rustpython_vm as vm;

use vm::builtins::{PyType, PyTypeRef};
use vm::function::{ArgIntoFloat, IntoPyNativeFn, OptionalArg, OptionalOption, PyMethodFlags};
use vm::{AsObject, PyObjectRef, PyResult, VirtualMachine};

/// How long an interrupt may go unseen.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// What `lock.acquire` takes.
#[derive(vm::FromArgs)]
struct LockAcquireArgs {
    #[pyarg(any, default = true)]
    blocking: bool,
    #[pyarg(any, default)]
    timeout: OptionalArg<ArgIntoFloat>,
}

/// Replaces the methods. Call it on the interpreter's thread, before any cell.
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

/// `lock.acquire(blocking, timeout)`, by slices where that is the original's meaning.
fn wait_for_lock(
    acquire: &PyObjectRef,
    lock: PyObjectRef,
    blocking: bool,
    timeout: f64,
    vm: &VirtualMachine,
) -> PyResult<bool> {
    let forever = timeout == -1.0;
    // What does not wait, and what is refused, is the original's affair.
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

/// `handle.join(timeout)`, by slices. A negative limit is none, as for the original.
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
        // The original tidies up after a thread that has ended, in the call that finds it so.
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

/// Whether this is the thread that receives interrupts.
fn is_interruptible() -> bool {
    std::thread::current().name() == Some(crate::PYTHON_THREAD)
}

/// The class, kept for ever: it is one of the interpreter's own, and so is the method that will point to it.
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
