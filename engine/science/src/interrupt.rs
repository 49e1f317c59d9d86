//! Raises KeyboardInterrupt in running guest code: writes what CPython's own signal handler writes.
//!
//! A signal handler of CPython only sets flags (`is_tripped`, the signal's own flag, a bit of the thread's
//! `eval_breaker`), which the interpreter checks between two instructions. Their addresses aren't exported. They are
//! measured once per compiled pack: the guest's memory just before and just after `_thread.interrupt_main()` is
//! compared. Both are captured in host calls that the same C loop makes, so that no instruction of Python runs between
//! them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ScienceError;
use crate::machine::{LoadedPack, Machine, StopSwitch, TurnEnd};

/// Extension of the file with the flags, next to the compiled pack.
const FLAGS_EXTENSION: &str = "interrupt.json";
/// Maximum size of the file, which holds about three flags.
const MAX_FLAGS_FILE_BYTES: u64 = 4096;
/// Maximum number of flags. There are about three; more candidates mean that the measurement failed.
const MAX_FLAGS: usize = 8;
/// Guest message that asks the host to copy the guest's memory.
pub(crate) const LOOK_MESSAGE: &[u8] = b"look";
/// Number of memory copies before the flags are set, for each trial. Unrelated changes differ between the trials.
const TRIAL_LOOKS: [usize; 3] = [1, 2, 4];

/// A flag: bits of one 32-bit word of the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WordFlag {
    /// Address in bytes, a multiple of 4.
    address: usize,
    /// Bits to set.
    bits: u32,
}

/// The flags that CPython's signal handler sets for SIGINT. If empty, no KeyboardInterrupt is raised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InterruptFlags {
    words: Vec<WordFlag>,
}

impl InterruptFlags {
    /// Sets the flags in the guest's memory.
    pub(crate) fn set(&self, memory: &mut [u8]) {
        self.change(memory, |have, bits| have | bits);
    }

    /// Clears the flags in the guest's memory.
    pub(crate) fn clear(&self, memory: &mut [u8]) {
        self.change(memory, |have, bits| have & !bits);
    }

    fn change(&self, memory: &mut [u8], change: impl Fn(u32, u32) -> u32) {
        for word in &self.words {
            if let Some(bytes) = memory.get_mut(word.address..).and_then(|rest| rest.first_chunk_mut::<4>()) {
                *bytes = change(u32::from_le_bytes(*bytes), word.bits).to_le_bytes();
            }
        }
    }

    fn path(compiled: &Path) -> PathBuf {
        compiled.with_extension(FLAGS_EXTENSION)
    }

    /// Reads the flags that [`InterruptFlags::find`] wrote. `None` if it hasn't run, or the file is damaged.
    pub(crate) fn read(compiled: &Path) -> Option<InterruptFlags> {
        let path = InterruptFlags::path(compiled);
        let size = std::fs::metadata(&path).ok()?.len();
        let text = (size <= MAX_FLAGS_FILE_BYTES).then(|| std::fs::read(&path).ok()).flatten()?;
        serde_json::from_slice(&text).ok().filter(|flags: &InterruptFlags| flags.words.len() <= MAX_FLAGS)
    }

    /// Finds the flags of a compiled pack, and writes them next to it. If they can't be found, the result is empty, and
    /// cells are stopped by force.
    ///
    /// # Errors
    /// Returns an error if the pack can't be started, or the file can't be written.
    pub(crate) fn find(compiled: &Path, library: &Path) -> Result<InterruptFlags, ScienceError> {
        let pack = LoadedPack::load(compiled, library)?;
        let mut common: Option<Vec<WordFlag>> = None;
        for looks in TRIAL_LOOKS {
            let found = set_words(&pack, looks)?;
            common = Some(match common {
                None => found,
                Some(before) => before.into_iter().filter(|word| found.contains(word)).collect(),
            });
        }
        let words = common.unwrap_or_default();
        let flags = match words.len() <= MAX_FLAGS {
            true => InterruptFlags { words },
            false => InterruptFlags::default(),
        };
        let flags = if raises(&pack, &flags)? { flags } else { InterruptFlags::default() };
        let path = InterruptFlags::path(compiled);
        let text = serde_json::to_vec(&flags).unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|source| ScienceError::write(&path, source))?;
        std::io::Write::write_all(&mut file, &text).map_err(|source| ScienceError::write(&path, source))?;
        file.persist(&path).map_err(|error| ScienceError::write(&path, error.error))?;
        Ok(flags)
    }
}

/// Starts an instance that interrupts itself when the guest sends any message except [`LOOK_MESSAGE`].
fn start(pack: &LoadedPack, stop: StopSwitch) -> Result<Machine, ScienceError> {
    let asked = stop.clone();
    let door = move |message: &[u8]| {
        if message != LOOK_MESSAGE {
            asked.interrupt();
        }
        Some(b"null".to_vec())
    };
    pack.start(&[], &[], Box::new(door), stop)
}

/// Returns the memory words in which `interrupt_main`, or anything else meanwhile, set one bit.
fn set_words(pack: &LoadedPack, looks: usize) -> Result<Vec<WordFlag>, ScienceError> {
    let mut machine = start(pack, StopSwitch::default())?;
    machine.collect_looks();
    // `list` and `map` are C, so the interpreter checks its flags only when they return.
    let program = format!(
        "import _host, _thread, functools, operator, signal\n\
         look = functools.partial(_host.call, {:?}.encode())\n\
         try:\n    list(map(operator.call, [look] * {looks} + [_thread.interrupt_main] + [look]))\n    pass\n\
         except KeyboardInterrupt:\n    pass\n",
        String::from_utf8_lossy(LOOK_MESSAGE)
    );
    let ended = machine.turn(&program);
    let seen = machine.take_looks();
    let (TurnEnd::Returned(0), [.., before, after]) = (ended, seen.as_slice()) else { return Ok(Vec::new()) };
    let words = before.chunks_exact(4).zip(after.chunks_exact(4)).enumerate();
    let found = words.filter_map(|(number, (before, after))| {
        let (before, after) = (le_word(before), le_word(after));
        let bits = after & !before;
        (before | bits == after && bits.count_ones() == 1).then_some(WordFlag { address: number * 4, bits })
    });
    Ok(found.collect())
}

fn le_word(bytes: &[u8]) -> u32 {
    bytes.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Returns whether these flags end an endless loop with KeyboardInterrupt, and only once.
fn raises(pack: &LoadedPack, flags: &InterruptFlags) -> Result<bool, ScienceError> {
    let stop = StopSwitch::default();
    let mut machine = start(pack, stop.clone())?;
    machine.set_interrupt_flags(flags.clone());
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let clock = {
        let (engine, done, stop) = (pack.engine().clone(), done.clone(), stop.clone());
        std::thread::spawn(move || {
            // If nothing is raised, the loop is stopped after two seconds.
            for tick in 0..400 {
                std::thread::sleep(std::time::Duration::from_millis(5));
                engine.increment_epoch();
                if done.load(std::sync::atomic::Ordering::Acquire) {
                    return;
                }
                if tick == 390 {
                    stop.stop();
                }
            }
        })
    };
    let program = "import _host, signal\nraised = 0\ntry:\n    _host.call(b'interrupt')\n    while True: pass\n\
                   except KeyboardInterrupt:\n    raised += 1\n\
                   for _ in range(100000): pass\nassert raised == 1\n";
    let ended = machine.turn(program);
    done.store(true, std::sync::atomic::Ordering::Release);
    let joined = clock.join().is_ok();
    Ok(joined && ended == TurnEnd::Returned(0))
}
