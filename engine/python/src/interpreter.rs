//! The embedded interpreter: builds it, and runs one cell after the other.
//!
//! Runs only on the thread with the big stack. `_tracebook.py` is its Python half. It reads no input, and of the
//! protocol it knows only the messages that it passes to the outbox.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rustpython_vm as vm;
use serde_json::{Map, Value, json};

use vm::builtins::{PyBaseExceptionRef, PyDict, PyDictRef, PyTuple};
use vm::scope::Scope;
use vm::{AsObject, Interpreter, InterpreterBuilder, PyObjectRef, PyResult, Settings, VirtualMachine};

use crate::cell::{CellRequest, PureCellBindings};
use crate::interrupt::{self, InterruptGate, InterruptTicket};
use crate::outbox::{KernelOutbox, OutputStream};
use crate::requests::KernelQuery;
use crate::sandbox::CellSandbox;
use crate::{KernelTask, interruptible_wait, reply_to_shutdown};

/// Time without requests after which the kernel counts as idle.
const WARM_UP_IDLE_TIME: Duration = Duration::from_millis(100);
/// Recursion limit of Python code, CPython's default.
const RECURSION_LIMIT: usize = 1000;

/// The functions through which `_tracebook.py` reaches the outbox.
#[rustpython_vm::pymodule(name = "_tracebook_kernel")]
mod kernel {
    use rustpython_vm as vm;

    use vm::builtins::{PyDictRef, PyList, PyStr, PyStrRef};
    use vm::function::{ArgIntoFloat, OptionalArg};
    use vm::{PyObjectRef, PyResult, VirtualMachine};

    use crate::outbox::{KernelOutbox, OutputStream};

    #[pyfunction]
    fn write_stdout(text: PyObjectRef, vm: &VirtualMachine) -> PyResult<usize> {
        write(OutputStream::Out, &text, vm)
    }

    #[pyfunction]
    fn write_stderr(text: PyObjectRef, vm: &VirtualMachine) -> PyResult<usize> {
        write(OutputStream::Err, &text, vm)
    }

    fn write(stream: OutputStream, text: &PyObjectRef, vm: &VirtualMachine) -> PyResult<usize> {
        let Some(text) = text.downcast_ref::<PyStr>() else {
            let kind = text.class().name().to_owned();
            return Err(vm.new_type_error(format!("write() argument must be str, not {kind}")));
        };
        if let Some(outbox) = KernelOutbox::get() {
            let words = text.to_string_lossy();
            // A slow reader must not hold up the other threads of a cell.
            vm.allow_threads(|| outbox.print_text(stream, &words));
        }
        Ok(text.char_len())
    }

    #[pyfunction]
    fn flush(vm: &VirtualMachine) {
        if let Some(outbox) = KernelOutbox::get() {
            vm.allow_threads(|| outbox.flush());
        }
    }

    /// Renders a figure (JSON) with `render_png` or `render_svg`.
    #[pyfunction]
    fn render(figure: PyStrRef, form: PyStrRef, scale: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<Vec<u8>> {
        let figure = plot::Figure::from_json(&figure.to_string_lossy());
        let figure = figure.map_err(|why| vm.new_value_error(why.to_string()))?;
        let made = match &*form.to_string_lossy() {
            "svg" => plot::render_svg(&figure).map(String::into_bytes),
            _ => plot::render_png(&figure, f64::from(scale)),
        };
        made.map_err(|why| vm.new_value_error(why.to_string()))
    }

    /// Returns a figure (JSON) whose lines have no more points than a screen shows.
    #[pyfunction]
    fn lighter(figure: PyStrRef) -> String {
        plot::downsample_lines(&figure.to_string_lossy())
    }

    /// Packs numbers (an array's core, or a list) for a figure. Returns the JSON, the count, the lowest and the
    /// highest.
    #[pyfunction]
    fn packed(numbers: PyObjectRef, vm: &VirtualMachine) -> PyResult<(String, usize, f64, f64)> {
        let all = if let Some(core) = numbers.downcast_ref::<crate::numpy::native::NdArrayCore>() {
            core.floats()
        } else if let Some(list) = numbers.downcast_ref::<PyList>() {
            list.borrow_vec().iter().map(|one| number(one, vm)).collect::<PyResult<Vec<f64>>>()?
        } else {
            return Err(vm.new_type_error("packed() wants a list or an array"));
        };
        let finite = || all.iter().copied().filter(|x| x.is_finite());
        let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        Ok((plot::FigureColumn::to_json(&all), all.len(), low, high))
    }

    fn number(one: &PyObjectRef, vm: &VirtualMachine) -> PyResult<f64> {
        if vm.is_none(one) {
            return Ok(f64::NAN);
        }
        one.try_float(vm).map(|x| x.to_f64())
    }

    /// Returns whether all items of a list are plain numbers.
    #[pyfunction]
    fn are_numbers(all: PyObjectRef) -> bool {
        let is_number = |one: &PyObjectRef| {
            one.downcast_ref::<vm::builtins::PyFloat>().is_some() || one.downcast_ref::<vm::builtins::PyInt>().is_some()
        };
        match all.downcast_ref::<PyList>() {
            Some(list) => list.borrow_vec().iter().all(is_number),
            None => false,
        }
    }

    /// Returns a figure (JSON) with its column placeholders replaced by the columns.
    #[pyfunction]
    fn with_columns(figure: PyStrRef, columns: Vec<PyStrRef>) -> String {
        const COLUMN_PLACEHOLDER: &str = "\"\\u0000column ";
        let figure = figure.to_string_lossy();
        let mut out = String::with_capacity(figure.len() + columns.iter().map(|text| text.byte_len()).sum::<usize>());
        let mut rest = &*figure;
        while let Some(at) = rest.find(COLUMN_PLACEHOLDER) {
            let (before, behind) = rest.split_at(at);
            out.push_str(before);
            let behind = &behind[COLUMN_PLACEHOLDER.len()..];
            let (number, behind) = behind.split_once('"').unwrap_or((behind, ""));
            match number.parse::<usize>().ok().and_then(|number| columns.get(number)) {
                Some(column) => out.push_str(&column.to_string_lossy()),
                None => out.push_str("null"),
            }
            rest = behind;
        }
        out + rest
    }

    /// Returns whether there is a colormap with this name.
    #[pyfunction]
    fn has_map(name: PyStrRef) -> bool {
        plot::has_map(&name.to_string_lossy())
    }

    /// Returns the names of the colormaps.
    #[pyfunction]
    fn maps(vm: &VirtualMachine) -> PyObjectRef {
        vm.ctx.new_list(plot::map_names().map(|name| vm.ctx.new_str(name).into()).collect()).into()
    }

    /// Returns the number of colors in a colormap.
    #[pyfunction]
    fn map_size(name: PyStrRef) -> usize {
        plot::map_size(&name.to_string_lossy())
    }

    /// Returns the color at a position in a colormap, from 0 to 1.
    #[pyfunction]
    fn shade(name: PyStrRef, share: ArgIntoFloat) -> (u8, u8, u8) {
        plot::colour_at(&name.to_string_lossy(), f64::from(share))
    }

    /// Returns a named color of the light plot theme.
    #[pyfunction]
    fn named_color(name: PyStrRef) -> (u8, u8, u8) {
        plot::PlotTheme::LIGHT.resolve_colour(&name.to_string_lossy())
    }

    /// Asks the user for a line of text.
    #[pyfunction]
    fn ask(prompt: PyStrRef, password: bool, vm: &VirtualMachine) -> PyResult<String> {
        crate::stdin_request::ask_user(&prompt.to_string_lossy(), password, vm)
    }

    /// Asks the host to make a web request, given as JSON, and returns its answer.
    #[pyfunction]
    fn web(request: PyStrRef, vm: &VirtualMachine) -> PyResult<String> {
        crate::stdin_request::request_web(&request.to_string_lossy(), vm)
    }

    /// Asks the host for a cached result of a pure cell.
    #[pyfunction]
    fn pure_find(key: PyStrRef, vm: &VirtualMachine) -> PyResult<Option<String>> {
        let reply = crate::pure_results::ask_host("pure_find", serde_json::json!({"key": key.to_string_lossy()}), vm)?;
        Ok(reply["entry"].as_str().map(ToOwned::to_owned))
    }

    /// Sends the result of a pure cell to the host. Returns why it isn't kept, or `None` if it is.
    #[pyfunction]
    fn pure_keep(key: PyStrRef, entry: PyStrRef, vm: &VirtualMachine) -> PyResult<Option<String>> {
        let content = serde_json::json!({"key": key.to_string_lossy(), "entry": entry.to_string_lossy()});
        let reply = crate::pure_results::ask_host("pure_keep", content, vm)?;
        Ok(reply["why"].as_str().map(ToOwned::to_owned))
    }

    #[pyfunction]
    fn walls() -> &'static str {
        crate::sandbox::CellSandbox::get().denial_message()
    }

    /// Shows data below the cell. Data with a name can be replaced later: `again` is true for the replacement.
    #[pyfunction]
    fn display(
        data: PyDictRef,
        metadata: PyStrRef,
        name: OptionalArg<PyStrRef>,
        again: OptionalArg<bool>,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        let mut content = super::display_content(&data, &metadata.to_string_lossy(), vm)?;
        if let OptionalArg::Present(name) = name {
            content["transient"] = serde_json::json!({"display_id": name.to_string_lossy()});
        }
        let kind = if again.unwrap_or(false) { "update_display_data" } else { "display_data" };
        if let Some(outbox) = KernelOutbox::get() {
            vm.allow_threads(|| outbox.send_display(kind, content));
        }
        Ok(())
    }

    /// Removes what the cell has shown; with `wait`, once there is new output.
    #[pyfunction]
    fn clear_output(wait: bool, vm: &VirtualMachine) {
        if let Some(outbox) = KernelOutbox::get() {
            vm.allow_threads(|| outbox.send_display("clear_output", serde_json::json!({"wait": wait})));
        }
    }
}

/// Error: Python couldn't start. Contains the exception with its traceback.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InterpreterStartError(String);

/// Builds the interpreter, reports that it is ready, and processes the queue until it ends.
pub(crate) fn run_interpreter(
    outbox: &'static KernelOutbox,
    gate: &InterruptGate,
    queue: &Receiver<KernelTask>,
    signals: interrupt::Receiver,
) -> Result<(), InterpreterStartError> {
    let interpreter = build_interpreter(signals);
    let mut asked = None;
    interpreter.enter(|vm| -> Result<(), InterpreterStartError> {
        let mut session = InterpreterSession::start(outbox, vm).map_err(|error| {
            let mut why = String::new();
            // Writing to a String can't fail, and an exception that can't be written leaves the part that could.
            let _ = vm.write_exception(&mut why, &error);
            InterpreterStartError(why)
        })?;
        outbox.send("kernel_info_reply", kernel_info());
        // While waiting, a cell's background threads must be able to run and to collect garbage.
        let mut first = preload_modules(queue, vm);
        while let Some(work) = first.take().or_else(|| vm.allow_threads(|| queue.recv()).ok()) {
            match work {
                KernelTask::Execute { header, ticket, cell } => session.execute_cell(header, ticket, &cell, gate, vm),
                KernelTask::Query { header, ticket, look } => session.answer_query(header, ticket, &look, gate, vm),
                KernelTask::Info { header } => outbox.send_reply(&header, "kernel_info_reply", kernel_info()),
                KernelTask::Shutdown { header } => {
                    asked = header;
                    break;
                }
            }
        }
        Ok(())
    })?;
    // Runs exit handlers and closes files, so that a cell's output is on disk. `run_cell` limits the time for it.
    interpreter.finalize(None);
    outbox.flush();
    reply_to_shutdown(outbox, asked.as_ref());
    Ok(())
}

/// While idle, preloads modules that errors or queries need, since loading them later takes time. Returns a task if one
/// arrived.
fn preload_modules(queue: &Receiver<KernelTask>, vm: &VirtualMachine) -> Option<KernelTask> {
    for module in ["traceback", "_tracebook_introspection"] {
        match vm.allow_threads(|| queue.recv_timeout(WARM_UP_IDLE_TIME)) {
            Ok(work) => return Some(work),
            // A module that fails to load is loaded again where it's needed, and the error is reported there.
            Err(RecvTimeoutError::Timeout) => _ = vm.import(module, 0),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

/// Makes cargo rebuild when these files change, since it doesn't know that `py_freeze!` reads them.
const _: [&str; 17] = [
    include_str!("_tracebook.py"),
    include_str!("axes_base.py"),
    include_str!("axes.py"),
    include_str!("drawing.py"),
    include_str!("getpass.py"),
    include_str!("introspection.py"),
    include_str!("ipython.py"),
    include_str!("ipython_cells.py"),
    include_str!("ipython_commands.py"),
    include_str!("ipython_package.py"),
    include_str!("matplotlib.py"),
    include_str!("pure.py"),
    include_str!("pylab.py"),
    include_str!("pyplot.py"),
    include_str!("displays.py"),
    include_str!("variables.py"),
    include_str!("web.py"),
];

fn build_interpreter(signals: interrupt::Receiver) -> Interpreter {
    let mut settings = Settings::default();
    // A Python that is installed on the machine must not affect cells.
    settings.isolated = true;
    // Otherwise files are read and written as ASCII: this process never chooses a locale.
    settings.utf8_mode = 1;
    settings.ignore_environment = true;
    settings.import_site = false;
    settings.user_site_directory = false;
    // Don't create `__pycache__` in the user's folders.
    settings.write_bytecode = false;
    let builder = InterpreterBuilder::new().settings(settings);
    let natives = rustpython_stdlib::stdlib_module_defs(&builder.ctx);
    let kernel = kernel::module_def(&builder.ctx);
    let numpy = crate::numpy::native::module_def(&builder.ctx);
    builder
        .add_native_modules(&natives)
        .add_native_module(kernel)
        .add_native_module(numpy)
        .add_frozen_modules(rustpython_pylib::FROZEN_STDLIB)
        .add_frozen_modules(vm::py_freeze!(file = "_tracebook.py", module_name = "_tracebook"))
        // Added after the standard library, whose `getpass` needs a terminal.
        .add_frozen_modules(vm::py_freeze!(file = "getpass.py", module_name = "getpass"))
        .add_frozen_modules(vm::py_freeze!(file = "introspection.py", module_name = "_tracebook_introspection"))
        .add_frozen_modules(vm::py_freeze!(file = "variables.py", module_name = "_tracebook_variables"))
        .add_frozen_modules(vm::py_freeze!(file = "pure.py", module_name = "_tracebook_pure"))
        .add_frozen_modules(vm::py_freeze!(file = "displays.py", module_name = "_tracebook_displays"))
        .add_frozen_modules(vm::py_freeze!(file = "ipython_package.py", module_name = "IPython"))
        .add_frozen_modules(vm::py_freeze!(file = "ipython.py", module_name = "_tracebook_ipython"))
        .add_frozen_modules(vm::py_freeze!(file = "ipython_cells.py", module_name = "_tracebook_ipython_cells"))
        .add_frozen_modules(vm::py_freeze!(file = "ipython_commands.py", module_name = "_tracebook_commands"))
        .add_frozen_modules(vm::py_freeze!(file = "pylab.py", module_name = "pylab"))
        .add_frozen_modules(vm::py_freeze!(file = "web.py", module_name = "_tracebook_web"))
        .add_frozen_modules(vm::py_freeze!(file = "numpy.py", module_name = "numpy"))
        .add_frozen_modules(vm::py_freeze!(file = "matplotlib.py", module_name = "matplotlib"))
        .add_frozen_modules(vm::py_freeze!(file = "pyplot.py", module_name = "_tracebook_pyplot"))
        .add_frozen_modules(vm::py_freeze!(file = "axes.py", module_name = "_tracebook_axes"))
        .add_frozen_modules(vm::py_freeze!(file = "axes_base.py", module_name = "_tracebook_axes_base"))
        .add_frozen_modules(vm::py_freeze!(file = "drawing.py", module_name = "_tracebook_drawing"))
        .init_hook(move |vm| {
            signals.attach(vm);
            // The standard library is frozen into the program. Without this, a `lib/python3.14` near the program or
            // below /usr/local would be added. The empty path is the working folder, for a project's own modules.
            if let Some(state) = vm::common::rc::PyRc::get_mut(&mut vm.state) {
                // `_ctypes` can read and write any memory of this process and call any function in it.
                state.module_defs.remove("_ctypes");
                state.config.paths.stdlib_dir = None;
                state.config.paths.module_search_paths = vec![String::new()];
            }
        })
        .build()
}

fn kernel_info() -> Value {
    use vm::version::{MAJOR, MICRO, MINOR};
    json!({
        "status": "ok",
        "protocol_version": "5.4",
        "implementation": "tracebook",
        "implementation_version": env!("CARGO_PKG_VERSION"),
        "language_info": {
            "name": "python",
            "version": format!("{MAJOR}.{MINOR}.{MICRO}"),
            "mimetype": "text/x-python",
            "file_extension": ".py",
        },
        "banner": "RustPython, embedded in Tracebook",
        "sandbox": CellSandbox::get().to_json(),
    })
}

/// State that persists between cells.
struct InterpreterSession {
    outbox: &'static KernelOutbox,
    /// Namespace of `__main__`, which holds the variables of the cells.
    globals: PyDictRef,
    register: PyObjectRef,
    bundle: PyObjectRef,
    explain: PyObjectRef,
    awaited: PyObjectRef,
    finish: PyObjectRef,
    shows_all: PyObjectRef,
    /// Number of all runs; `count` is the execution counter that the user sees.
    runs: u64,
    count: u64,
}

impl InterpreterSession {
    fn start(outbox: &'static KernelOutbox, vm: &VirtualMachine) -> PyResult<InterpreterSession> {
        // The same in every build: RustPython's own limit is 256 with debug assertions.
        vm.recursion_limit.set(RECURSION_LIMIT);
        interruptible_wait::make_interruptible(vm)?;
        // Prevents native extension modules, which would run as machine code in this process.
        vm.import("_imp", 0)?.del_attr("create_dynamic", vm)?;
        let tracebook = vm.import("_tracebook", 0)?;
        let globals = vm.main_namespace()?;
        Ok(InterpreterSession {
            outbox,
            globals,
            register: tracebook.get_attr("register", vm)?,
            bundle: tracebook.get_attr("bundle", vm)?,
            explain: tracebook.get_attr("explain", vm)?,
            awaited: tracebook.get_attr("awaited", vm)?,
            finish: tracebook.get_attr("finish", vm)?,
            shows_all: tracebook.get_attr("shows_all", vm)?,
            runs: 0,
            count: 0,
        })
    }

    /// Runs a cell and sends its output, result and reply.
    fn execute_cell(
        &mut self,
        header: Value,
        ticket: InterruptTicket,
        cell: &CellRequest,
        gate: &InterruptGate,
        vm: &VirtualMachine,
    ) {
        let outbox = self.outbox;
        outbox.begin_reply(header);
        outbox.send("status", json!({"execution_state": "busy"}));
        clear_pending_signals(vm);
        let mut cached = false;
        let status = if gate.begin_cell(ticket) {
            self.runs += 1;
            self.count += u64::from(!cell.silent);
            let ended = match &cell.pure {
                Some(pure) => self.run_pure(cell, pure, &mut cached, vm),
                None => self.run_cell(cell, vm),
            };
            if !outbox.is_ours() {
                // The cell forked, and this is the child process, which has no notebook.
                std::process::exit(0);
            }
            let (status, message) = match ended {
                Ok(None) => ("ok", None),
                Ok(Some(result)) => ("ok", Some(("execute_result", result))),
                Err(error) => ("error", Some(("error", self.describe(error, vm)))),
            };
            gate.end_cell();
            match message {
                Some((kind @ "execute_result", content)) => outbox.send_display(kind, content),
                Some((kind, content)) => outbox.send(kind, content),
                None => {}
            }
            status
        } else {
            "aborted"
        };
        outbox.send("execute_reply", json!({"status": status, "execution_count": self.count, "cached": cached}));
        outbox.send("status", json!({"execution_state": "idle"}));
    }

    /// Answers queries about variables or code. May run `__repr__` and the like, so it can be interrupted like a cell.
    fn answer_query(
        &mut self,
        header: Value,
        ticket: InterruptTicket,
        look: &KernelQuery,
        gate: &InterruptGate,
        vm: &VirtualMachine,
    ) {
        let outbox = self.outbox;
        outbox.begin_reply(header);
        clear_pending_signals(vm);
        let kind = match look {
            KernelQuery::Complete { .. } => "complete_reply",
            KernelQuery::Inspect { .. } => "inspect_reply",
            KernelQuery::Variables => "variables_reply",
            KernelQuery::Values { .. } => "values_reply",
            KernelQuery::Redraw { .. } => "redraw_reply",
            KernelQuery::FrameRows { .. } => "frame_rows_reply",
        };
        let said = if gate.begin_cell(ticket) {
            let said = run_query(look, vm);
            gate.end_cell();
            said
        } else {
            Err(vm.new_runtime_error("interrupted".to_owned()))
        };
        let said = said.ok().and_then(|said| serde_json::from_str(&said).ok());
        outbox.send(kind, said.unwrap_or_else(|| json!({"status": "error"})));
    }

    /// Runs a cell and returns the content of its `execute_result`, if it has a value to show.
    fn run_cell(&self, cell: &CellRequest, vm: &VirtualMachine) -> PyResult<Option<Value>> {
        let file = self.register.call((cell.label.as_str(), self.runs, cell.code.as_str()), vm)?.str(vm)?;
        // Each run of a cell warns, as in IPython, whatever it has warned about before.
        for name in cell.forget.iter().map(String::as_str).chain(["__warningregistry__"]) {
            // Fails only if the name doesn't exist.
            let _ = self.globals.del_item(name, vm);
        }
        if let Some(file) = &cell.file {
            self.globals.set_item("__file__", vm.ctx.new_str(file.as_str()).into(), vm)?;
        }
        let scope = Scope::with_builtins(None, self.globals.clone(), vm);
        let shows_all = self.shows_all.call((), vm)?.try_to_bool(vm)?;
        let ran = cell.run(&file.to_string_lossy(), shows_all, scope, vm);
        let ran = ran.and_then(|(value, awaits)| if awaits { self.awaited.call((value,), vm) } else { Ok(value) });
        let value = match ran {
            Ok(value) => value,
            Err(error) => {
                // Show the figures drawn before the error.
                self.finish.call((vm.ctx.none(),), vm)?;
                return Err(error);
            }
        };
        let shown = self.finish.call((value.clone(),), vm)?.try_to_bool(vm)?;
        if cell.silent || shown || vm.is_none(&value) {
            return Ok(None);
        }
        self.globals.set_item("_", value.clone(), vm)?;
        let forms = self.bundle.call((value,), vm)?;
        let (Some(data), Some(metadata)) =
            (tuple_item::<PyDict>(&forms, 0), tuple_item::<vm::builtins::PyStr>(&forms, 1))
        else {
            return Err(vm.new_system_error("the value has no forms"));
        };
        let mut content = display_content(data, &metadata.to_string_lossy(), vm)?;
        content["execution_count"] = self.count.into();
        Ok(Some(content))
    }

    /// Runs a pure cell, or shows its cached result without running it and sets `cached`.
    fn run_pure(
        &self,
        cell: &CellRequest,
        pure: &PureCellBindings,
        cached: &mut bool,
        vm: &VirtualMachine,
    ) -> PyResult<Option<Value>> {
        let names = |names: &[String]| -> PyObjectRef {
            let names = names.iter().map(|name| vm.ctx.new_str(name.as_str()).into()).collect();
            vm.ctx.new_list(names).into()
        };
        let module = vm.import("_tracebook_pure", 0)?;
        let said = |why: &str| self.outbox.print_text(OutputStream::Err, &format!("not kept as pure: {why}\n"));
        let key = match module.get_attr("key", vm)?.call((cell.code.as_str(), names(&pure.uses)), vm) {
            Ok(key) => key,
            Err(error) if error.fast_isinstance(vm.ctx.exceptions.keyboard_interrupt) => return Err(error),
            Err(error) => {
                let why = error.as_object().str(vm).map(|why| why.to_string_lossy().into_owned()).unwrap_or_default();
                said(&why);
                return self.run_cell(cell, vm);
            }
        };
        let shown = module.get_attr("find", vm)?.call((key.clone(),), vm)?;
        if !vm.is_none(&shown) {
            let shown: Vec<(String, Value)> =
                serde_json::from_str(&shown.str(vm)?.to_string_lossy()).unwrap_or_default();
            *cached = true;
            let mut result = None;
            for (kind, mut content) in shown {
                match kind.as_str() {
                    "stream" => {
                        let stream = if content["name"] == "stderr" { OutputStream::Err } else { OutputStream::Out };
                        self.outbox.print_text(stream, content["text"].as_str().unwrap_or_default());
                    }
                    "execute_result" => {
                        content["execution_count"] = self.count.into();
                        result = Some(content);
                    }
                    "display_data" => self.outbox.send_display("display_data", content),
                    "update_display_data" => self.outbox.send_display("update_display_data", content),
                    _ => {}
                }
            }
            return Ok(result);
        }
        self.outbox.start_recording();
        let ran = self.run_cell(cell, vm);
        let shown = self.outbox.take_recording();
        let result = ran?;
        let Some(mut shown) = shown else {
            said("it shows too much");
            return Ok(result);
        };
        shown.extend(result.iter().map(|result| json!(["execute_result", result])));
        let shown = Value::Array(shown).to_string();
        let why = module.get_attr("keep", vm)?.call((key, names(&pure.binds), shown), vm)?;
        if !vm.is_none(&why) {
            said(&why.str(vm)?.to_string_lossy());
        }
        Ok(result)
    }

    /// Returns the content of the `error` message. Formatting an exception runs code of the cell (`__str__`), which may
    /// fail or be interrupted; then only the exception's class is shown.
    fn describe(&self, error: PyBaseExceptionRef, vm: &VirtualMachine) -> Value {
        let name = error.class().name().to_owned();
        let lines = self.explain.call((error,), vm).and_then(|said| said.try_to_value::<Vec<PyObjectRef>>(vm));
        let texts = |lines: &PyObjectRef| -> PyResult<Vec<String>> {
            let lines = lines.try_to_value::<Vec<PyObjectRef>>(vm)?;
            lines.iter().map(|line| Ok(line.str(vm)?.to_string_lossy().into_owned())).collect()
        };
        let said = lines.and_then(|said| match &said[..] {
            [_, words, lines] => Ok((words.str(vm)?.to_string_lossy().into_owned(), texts(lines)?)),
            _ => Err(vm.new_system_error("the exception has no words")),
        });
        let (words, lines) = said.unwrap_or_else(|_| (String::new(), vec![name.clone()]));
        json!({"ename": name, "evalue": words, "traceback": lines})
    }
}

/// Returns the answer of `introspection.py` to a query, as JSON.
fn run_query(look: &KernelQuery, vm: &VirtualMachine) -> PyResult<String> {
    let module = vm.import("_tracebook_introspection", 0)?;
    let said = match look {
        KernelQuery::Complete { code, at, imports } => {
            module.get_attr("complete", vm)?.call((code.as_str(), *at, imports.as_str()), vm)
        }
        KernelQuery::Inspect { code, at } => module.get_attr("inspect_at", vm)?.call((code.as_str(), *at), vm),
        KernelQuery::Variables => module.get_attr("variables", vm)?.call((), vm),
        KernelQuery::Values { names } => module.get_attr("values", vm)?.call((names.as_str(),), vm),
        // Outputs of the built-in Python hold all points of figures and all rows of tables.
        KernelQuery::Redraw { .. } | KernelQuery::FrameRows { .. } => {
            Err(vm.new_runtime_error("there is no matplotlib and no pandas".to_owned()))
        }
    };
    Ok(said?.str(vm)?.to_string_lossy().into_owned())
}

/// Drops interrupts that arrived too late for the previous cell. Bounded, because a cell may have installed a signal
/// handler that signals itself.
fn clear_pending_signals(vm: &VirtualMachine) {
    for _ in 0..100 {
        if vm.check_signals().is_ok() {
            break;
        }
    }
}

/// Returns an item of a tuple that `_tracebook.py` returned, or `None` if it has another type.
fn tuple_item<T: vm::PyPayload>(tuple: &PyObjectRef, index: usize) -> Option<&vm::Py<T>> {
    tuple.downcast_ref::<PyTuple>()?.as_slice().get(index)?.downcast_ref::<T>()
}

/// Returns the content of a message that displays a value: its data by media type, as text or JSON.
fn display_content(data: &vm::Py<PyDict>, metadata: &str, vm: &VirtualMachine) -> PyResult<Value> {
    let mut forms = Map::new();
    for (mime, form) in data {
        let (mime, form) = (mime.str(vm)?.to_string_lossy().into_owned(), form.str(vm)?.to_string_lossy().into_owned());
        let is_json = mime == "application/json" || mime.ends_with("+json");
        // Python's JSON may contain NaN, which isn't valid JSON. Such data is sent as text.
        let form = is_json.then(|| serde_json::from_str(&form).ok()).flatten().unwrap_or(Value::String(form));
        forms.insert(mime, form);
    }
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_else(|_| json!({}));
    Ok(json!({"data": forms, "metadata": metadata}))
}
