//! Output of native code: reads the bytes of two pipes as text of the running cell.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::outbox::{KernelOutbox, OutputStream};

/// Number of bytes read at once.
const READ_CHUNK_BYTES: usize = 64 << 10;
/// Maximum reads of one [`NativeOutput::drain`]: endless output must not delay the report that a cell has finished.
const MAX_DRAIN_READS: usize = 1_000;

/// The reading end of one of Python's descriptors, and the bytes of an incomplete character.
pub(super) struct NativeOutput {
    pipe: File,
    rest: Mutex<Vec<u8>>,
    stream: OutputStream,
    outbox: &'static KernelOutbox,
}

impl NativeOutput {
    /// Starts a thread that reads until the pipe ends.
    pub(super) fn start(
        pipe: File,
        stream: OutputStream,
        outbox: &'static KernelOutbox,
    ) -> std::io::Result<Arc<NativeOutput>> {
        let output = Arc::new(NativeOutput { pipe, rest: Mutex::default(), stream, outbox });
        let reader = output.clone();
        std::thread::Builder::new()
            .name("native output".into())
            .spawn(move || while reader.wait_readable(-1) && reader.drain() {})?;
        Ok(output)
    }

    /// Prints the available output without waiting for more. Returns `false` at the end of the pipe.
    pub(super) fn drain(&self) -> bool {
        let mut rest = lock(&self.rest);
        let mut chunk = vec![0; READ_CHUNK_BYTES];
        for _ in 0..MAX_DRAIN_READS {
            if !self.wait_readable(0) {
                return true;
            }
            match (&self.pipe).read(&mut chunk) {
                Ok(count @ 1..) => {
                    rest.extend_from_slice(&chunk[..count]);
                    let whole = whole_letters(&rest);
                    self.outbox.print_text(self.stream, &String::from_utf8_lossy(&rest[..whole]));
                    rest.drain(..whole);
                }
                Ok(0) | Err(_) => {
                    self.outbox.print_text(self.stream, &String::from_utf8_lossy(&rest));
                    rest.clear();
                    return false;
                }
            }
        }
        true
    }

    /// Returns whether there is something to read, or the end of the pipe. `timeout` is in milliseconds; -1 waits
    /// forever.
    fn wait_readable(&self, timeout: i32) -> bool {
        let mut look = libc::pollfd { fd: self.pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        loop {
            #[allow(unsafe_code, reason = "std has no wrapper for poll")]
            // SAFETY: the kernel gets one struct, as the count says, and the pipe is open.
            let found = unsafe { libc::poll(&raw mut look, 1, timeout) };
            let interrupted = found < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
            if !interrupted {
                return found > 0;
            }
        }
    }
}

/// Returns the length of the prefix that cuts no UTF-8 character. Invalid bytes count as whole characters.
fn whole_letters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(&bytes[bytes.len().saturating_sub(4)..]) {
        Ok(_) => bytes.len(),
        Err(_) => {
            // Position, from the end, of the first byte of a character that may be incomplete.
            let cut = (1..=3.min(bytes.len())).find(|back| bytes[bytes.len() - back] >= 0xC0);
            let wants = |first: u8| {
                if first >= 0xF0 {
                    4
                } else if first >= 0xE0 {
                    3
                } else {
                    2
                }
            };
            match cut {
                Some(back) if wants(bytes[bytes.len() - back]) > back => bytes.len() - back,
                _ => bytes.len(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::whole_letters;

    #[test]
    fn a_letter_is_not_cut() {
        assert_eq!(whole_letters("aä".as_bytes()), 3);
        assert_eq!(whole_letters(&"aä".as_bytes()[..2]), 1);
        assert_eq!(whole_letters(&"x😀".as_bytes()[..4]), 1);
        assert_eq!(whole_letters(&"äöü€".as_bytes()[..8]), 6);
        assert_eq!(whole_letters(b"\x80\x80\x80\x80"), 4);
        assert_eq!(whole_letters(b""), 0);
    }
}
