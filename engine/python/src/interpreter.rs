//! The embedded interpreter: how it is built, and the loop that runs one cell after the other.
//!
//! Runs on the thread with the big stack and on no other. `_tracebook.py` is its Python half. It reads no input and
//! knows nothing of the protocol but the messages it hands to the outbox.

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

/// A kernel that is asked nothing for so long has time.
const WARM_UP_IDLE_TIME: Duration = Duration::from_millis(100);
/// The recursion limit, CPython's default.
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

    /// A figure (JSON) as `render_png` or `render_svg`.
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

    /// A figure (JSON) with no more points in its lines than a screen shows.
    #[pyfunction]
    fn lighter(figure: PyStrRef) -> String {
        plot::downsample_lines(&figure.to_string_lossy())
    }

    /// Numbers (an array's core, or a list of them) as a figure holds many: JSON, how many, the lowest, the highest.
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

    /// Whether all of a list are plain numbers.
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

    /// A figure (JSON) with its columns put in where it names them.
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

    /// Whether there is a scale of colours of that name.
    #[pyfunction]
    fn has_map(name: PyStrRef) -> bool {
        plot::has_map(&name.to_string_lossy())
    }

    /// The names of the scales of colours.
    #[pyfunction]
    fn maps(vm: &VirtualMachine) -> PyObjectRef {
        vm.ctx.new_list(plot::map_names().map(|name| vm.ctx.new_str(name).into()).collect()).into()
    }

    /// How many colours a scale has.
    #[pyfunction]
    fn map_size(name: PyStrRef) -> usize {
        plot::map_size(&name.to_string_lossy())
    }

    /// The colour at a share of a scale.
    #[pyfunction]
    fn shade(name: PyStrRef, share: ArgIntoFloat) -> (u8, u8, u8) {
        plot::colour_at(&name.to_string_lossy(), f64::from(share))
    }

    /// A colour of the note's own look.
    #[pyfunction]
    fn named_color(name: PyStrRef) -> (u8, u8, u8) {
        plot::PlotTheme::LIGHT.resolve_colour(&name.to_string_lossy())
    }

    /// Asks the user for a line of text.
    #[pyfunction]
    fn ask(prompt: PyStrRef, password: bool, vm: &VirtualMachine) -> PyResult<String> {
        crate::stdin_request::ask_user(&prompt.to_string_lossy(), password, vm)
    }

    /// Asks the host for something of the web.
    #[pyfunction]
    fn web(request: PyStrRef, vm: &VirtualMachine) -> PyResult<String> {
        crate::stdin_request::request_web(&request.to_string_lossy(), vm)
    }

    /// Asks the host for a result of a pure cell.
    #[pyfunction]
    fn pure_find(key: PyStrRef, vm: &VirtualMachine) -> PyResult<Option<String>> {
        let reply = crate::pure_results::ask_host("pure_find", serde_json::json!({"key": key.to_string_lossy()}), vm)?;
        Ok(reply["entry"].as_str().map(ToOwned::to_owned))
    }

    /// Hands the host a result of a pure cell. Gives why it is not kept.
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

    /// Shows data below the cell. Under a name it can become something else later: then `again` is true.
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
}

/// Python could not start: its exception, with the traceback.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InterpreterStartError(String);

/// Builds the interpreter, says that it is ready, and does the queue's work until it ends.
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
            // Writing to a String does not fail, and an exception that cannot be written leaves what it could.
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
    // Runs exit handlers and closes files, so that what a cell wrote is on disk. `run_cell` puts a limit to it.
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
            // What cannot be loaded is loaded again, and said, where it is needed.
            Err(RecvTimeoutError::Timeout) => _ = vm.import(module, 0),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

/// `py_freeze!` reads the file behind cargo's back; this makes cargo build anew when it changes.
const _: [&str; 12] = [
    include_str!("_tracebook.py"),
    include_str!("axes_base.py"),
    include_str!("axes.py"),
    include_str!("drawing.py"),
    include_str!("getpass.py"),
    include_str!("introspection.py"),
    include_str!("matplotlib.py"),
    include_str!("pure.py"),
    include_str!("pyplot.py"),
    include_str!("displays.py"),
    include_str!("variables.py"),
    include_str!("web.py"),
];

fn build_interpreter(signals: interrupt::Receiver) -> Interpreter {
    let mut settings = Settings::default();
    // Nothing of the machine's own Python, if it has one, may change what a cell does.
    settings.isolated = true;
    settings.ignore_environment = true;
    settings.import_site = false;
    settings.user_site_directory = false;
    // No `__pycache__` in the user's folders.
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
        // Behind the standard library, whose `getpass` wants a terminal.
        .add_frozen_modules(vm::py_freeze!(file = "getpass.py", module_name = "getpass"))
        .add_frozen_modules(vm::py_freeze!(file = "introspection.py", module_name = "_tracebook_introspection"))
        .add_frozen_modules(vm::py_freeze!(file = "variables.py", module_name = "_tracebook_variables"))
        .add_frozen_modules(vm::py_freeze!(file = "pure.py", module_name = "_tracebook_pure"))
        .add_frozen_modules(vm::py_freeze!(file = "displays.py", module_name = "_tracebook_displays"))
        .add_frozen_modules(vm::py_freeze!(file = "web.py", module_name = "_tracebook_web"))
        .add_frozen_modules(vm::py_freeze!(file = "numpy.py", module_name = "numpy"))
        .add_frozen_modules(vm::py_freeze!(file = "matplotlib.py", module_name = "matplotlib"))
        .add_frozen_modules(vm::py_freeze!(file = "pyplot.py", module_name = "_tracebook_pyplot"))
        .add_frozen_modules(vm::py_freeze!(file = "axes.py", module_name = "_tracebook_axes"))
        .add_frozen_modules(vm::py_freeze!(file = "axes_base.py", module_name = "_tracebook_axes_base"))
        .add_frozen_modules(vm::py_freeze!(file = "drawing.py", module_name = "_tracebook_drawing"))
        .init_hook(move |vm| {
            signals.attach(vm);
            // The standard library is frozen into the program. Without this a `lib/python3.14` near the program or
            // below /usr/local would be mixed in. The empty path is the working folder: a project's own modules.
            if let Some(state) = vm::common::rc::PyRc::get_mut(&mut vm.state) {
                // It reads and writes any memory of this process, and calls any function in it.
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

/// What lasts from cell to cell.
struct InterpreterSession {
    outbox: &'static KernelOutbox,
    /// The namespace of `__main__`: the variables of the cells.
    globals: PyDictRef,
    register: PyObjectRef,
    bundle: PyObjectRef,
    explain: PyObjectRef,
    awaited: PyObjectRef,
    finish: PyObjectRef,
    /// All runs so far, and those that count for the user.
    runs: u64,
    count: u64,
}

impl InterpreterSession {
    fn start(outbox: &'static KernelOutbox, vm: &VirtualMachine) -> PyResult<InterpreterSession> {
        // The same in every build: RustPython's own is 256 where debug assertions are on.
        vm.recursion_limit.set(RECURSION_LIMIT);
        interruptible_wait::make_interruptible(vm)?;
        // Forbids native extension modules: they would run as machine code in this process.
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
            runs: 0,
            count: 0,
        })
    }

    /// Runs a cell and sends all that it has to say.
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
                // The cell forked, and this is the end of the child: it has no notebook.
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

    /// Answers queries about variables or code. It may run `__repr__` and the like, so it can be interrupted like a
    /// cell.
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

    /// Runs a cell up to the content of its `execute_result`, if it has one to show.
    fn run_cell(&self, cell: &CellRequest, vm: &VirtualMachine) -> PyResult<Option<Value>> {
        let file = self.register.call((cell.label.as_str(), self.runs, cell.code.as_str()), vm)?.str(vm)?;
        for name in &cell.forget {
            // A missing name needn't be deleted.
            let _ = self.globals.del_item(name.as_str(), vm);
        }
        let scope = Scope::with_builtins(None, self.globals.clone(), vm);
        let ran = cell.run(&file.to_string_lossy(), scope, vm);
        let ran = ran.and_then(|(value, awaits)| if awaits { self.awaited.call((value,), vm) } else { Ok(value) });
        let value = match ran {
            Ok(value) => value,
            Err(error) => {
                // Figures drawn so far show what it did; the error says why there are no more.
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

    /// Runs a pure cell: a cached result is shown again without running;
    /// `cached` says so.
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

    /// The content of the `error` message. Showing an exception runs code of the cell (`__str__`), which may fail or
    /// be interrupted; then its class alone must do.
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

/// What `introspection.py` says, as JSON.
fn run_query(look: &KernelQuery, vm: &VirtualMachine) -> PyResult<String> {
    let module = vm.import("_tracebook_introspection", 0)?;
    let said = match look {
        KernelQuery::Complete { code, at, imports } => {
            module.get_attr("complete", vm)?.call((code.as_str(), *at, imports.as_str()), vm)
        }
        KernelQuery::Inspect { code, at } => module.get_attr("inspect_at", vm)?.call((code.as_str(), *at), vm),
        KernelQuery::Variables => module.get_attr("variables", vm)?.call((), vm),
        KernelQuery::Values { names } => module.get_attr("values", vm)?.call((names.as_str(),), vm),
    };
    Ok(said?.str(vm)?.to_string_lossy().into_owned())
}

/// Drops interrupts that came too late for the cell before. Bounded: a cell may have installed a handler of its own
/// that signals itself.
fn clear_pending_signals(vm: &VirtualMachine) {
    for _ in 0..100 {
        if vm.check_signals().is_ok() {
            break;
        }
    }
}

/// The item of a tuple that `_tracebook.py` returned.
fn tuple_item<T: vm::PyPayload>(tuple: &PyObjectRef, index: usize) -> Option<&vm::Py<T>> {
    tuple.downcast_ref::<PyTuple>()?.as_slice().get(index)?.downcast_ref::<T>()
}

/// The content of a message that shows a value: its forms, each text or, where the type says so, JSON.
fn display_content(data: &vm::Py<PyDict>, metadata: &str, vm: &VirtualMachine) -> PyResult<Value> {
    let mut forms = Map::new();
    for (mime, form) in data {
        let (mime, form) = (mime.str(vm)?.to_string_lossy().into_owned(), form.str(vm)?.to_string_lossy().into_owned());
        let is_json = mime == "application/json" || mime.ends_with("+json");
        // Python's JSON may hold NaN, which is none: then its text is shown.
        let form = is_json.then(|| serde_json::from_str(&form).ok()).flatten().unwrap_or(Value::String(form));
        forms.insert(mime, form);
    }
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_else(|_| json!({}));
    Ok(json!({"data": forms, "metadata": metadata}))
}
