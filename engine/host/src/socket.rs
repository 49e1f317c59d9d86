//! The owner-only local socket: the process that has the workspace performs the commands of other processes.
//!
//! Commands behave the same that way. The arguments and input of a command are sent to the owner; its output and exit
//! code come back.
//!
//! A frame is a kind (one byte), a length (four bytes, little endian) and that many bytes.

use crate::handle::Handle;
use anyhow::anyhow;
use interprocess::local_socket::traits::{ListenerExt as _, Stream as _};
use interprocess::local_socket::{GenericFilePath, ListenerOptions, Stream, ToFsName};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A command that the owner performs for another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketRequest {
    /// The arguments after `tracebook`.
    pub words: Vec<String>,
    /// Working directory of the other process.
    pub folder: PathBuf,
    /// Whether a person reads the output in a terminal.
    #[serde(default)]
    pub terminal: bool,
}

/// Performs a request in the process that owns the workspace: reads the input, writes output and errors, and returns
/// the exit code.
pub type RequestHandler = fn(&Handle, &SocketRequest, &mut dyn Read, &mut dyn Write, &mut dyn Write) -> u8;

const REQUEST_FRAME: u8 = 0;
const INPUT_FRAME: u8 = 1;
const INPUT_END_FRAME: u8 = 2;
const OUTPUT_FRAME: u8 = 3;
const ERROR_FRAME: u8 = 4;
const EXIT_FRAME: u8 = 5;
/// From this frame on, the owner performs the request. Before it, the requesting process may still do that itself.
const TAKEN_FRAME: u8 = 6;
const UNKNOWN_FRAME: &str = "the owner of the workspace said something unknown";
/// Maximum time until the owner has accepted a request.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum length of a frame in bytes.
const MAX_SOCKET_FRAME_BYTES: usize = 32 << 20;

fn write_frame(to: &mut impl Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(bytes.len() + 5);
    frame.push(kind);
    frame.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    frame.extend(bytes);
    to.write_all(&frame)?;
    to.flush()
}

fn read_frame(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length > MAX_SOCKET_FRAME_BYTES {
        return Err(io::Error::other("a message is longer than allowed"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok((head[0], bytes))
}

/// Returns the path of the socket, in a folder that only its owner can access.
///
/// Socket paths have at most about 100 bytes, so the socket of a workspace with a long path is in the system's runtime
/// folder.
fn socket_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    let inside = folder.join("socket");
    if inside.as_os_str().len() < 100 {
        return Ok(inside);
    }
    let base = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let hash = store::BlobHash::of(folder.as_os_str().as_encoded_bytes()).to_string();
    let own = base.join(format!("tracebook-{}", &hash[..16]));
    create_private_folder(&own).map_err(|error| anyhow!("{error}: {}", own.display()))?;
    Ok(own.join("socket"))
}

#[cfg(unix)]
fn create_private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Another user's folder with this name would let that user intercept requests.
            let meta = std::fs::symlink_metadata(path)?;
            let mine = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0;
            if mine { Ok(()) } else { Err(io::Error::other("the socket's folder belongs to another user")) }
        }
        other => other,
    }
}

#[cfg(not(unix))]
fn create_private_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

/// Lets only the owner connect, whatever the permissions of the parent folder are.
#[cfg(unix)]
fn restrict_to_owner(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn restrict_to_owner(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// The number of requests being performed for other processes; `None` once no more are accepted.
#[derive(Debug)]
pub struct GuestRequests(Arc<(Mutex<Option<usize>>, Condvar)>);

impl GuestRequests {
    /// Waits until all accepted requests have ended, and then accepts no more. If the owner ended earlier, it would
    /// abort them.
    pub fn drain(&self) {
        let (count, left) = &*self.0;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        while count.is_some_and(|count| count > 0) {
            count = left.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
        *count = None;
    }

    /// Counts one more request until the result is dropped; `None` if no more are accepted.
    fn admit(&self) -> Option<GuestRequest> {
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *count.as_mut()? += 1;
        Some(GuestRequest(GuestRequests(self.0.clone())))
    }
}

struct GuestRequest(GuestRequests);

impl Drop for GuestRequest {
    fn drop(&mut self) {
        let (count, left) = &*self.0.0;
        if let Some(count) = count.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *count -= 1;
        }
        left.notify_all();
    }
}

/// Listens on the socket and performs each request on a separate thread. Returns the socket's path.
pub(crate) fn listen(folder: &Path, handle: Handle, serve: RequestHandler) -> anyhow::Result<(String, GuestRequests)> {
    let path = socket_folder(folder)?;
    let say = |error: io::Error| anyhow!("other commands cannot be taken while this one runs ({error})");
    // The holder of the lock is the owner, so an existing socket belongs to a dead process.
    let _ = std::fs::remove_file(&path);
    let name = path.clone().to_fs_name::<GenericFilePath>().map_err(say)?;
    let listener = ListenerOptions::new().name(name).reclaim_name(false).create_sync().map_err(say)?;
    restrict_to_owner(&path).map_err(say)?;
    let guests = GuestRequests(Arc::new((Mutex::new(Some(0)), Condvar::new())));
    let entrance = GuestRequests(guests.0.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handle = handle.clone();
            // No more requests are accepted. The requesting process finds its connection closed, and then a free
            // workspace.
            let Some(guest) = entrance.admit() else { break };
            std::thread::spawn(move || {
                if let Err(error) = serve_request(&handle, stream, serve) {
                    let why = crate::logging::content_field(error);
                    tracing::debug!(why, "a command of another process was broken off");
                }
                drop(guest);
            });
        }
    });
    Ok((path.to_string_lossy().into_owned(), guests))
}

/// Standard input of the other process, as it arrives.
struct GuestInput {
    frames: Receiver<Vec<u8>>,
    rest: io::Cursor<Vec<u8>>,
}

impl Read for GuestInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.rest.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match self.frames.recv() {
                Ok(frame) => self.rest = io::Cursor::new(frame),
                Err(_) => return Ok(0),
            }
        }
    }
}

/// One half of a stream that reads and writes concurrently.
struct StreamEnd(Arc<Stream>);

impl Read for StreamEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for StreamEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

struct GuestOutput<W> {
    to: Arc<Mutex<W>>,
    kind: u8,
}

impl<W: Write> Write for GuestOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(1 << 20)];
        let mut to = self.to.lock().map_err(|_| io::Error::other("closed"))?;
        write_frame(&mut *to, self.kind, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn serve_request(handle: &Handle, stream: Stream, serve: RequestHandler) -> io::Result<()> {
    let stream = Arc::new(stream);
    let mut from = StreamEnd(stream.clone());
    let to = Arc::new(Mutex::new(StreamEnd(stream)));
    let (kind, words) = read_frame(&mut from)?;
    let request: SocketRequest = serde_json::from_slice(&words)?;
    if kind != REQUEST_FRAME {
        return Err(io::Error::other("not a request"));
    }
    write_frame(&mut *to.lock().map_err(|_| io::Error::other("closed"))?, TAKEN_FRAME, &[])?;
    let (frames, input): (Sender<Vec<u8>>, _) = channel();
    std::thread::spawn(move || {
        let mut frames = Some(frames);
        while let Ok((kind, bytes)) = read_frame(&mut from) {
            match (kind, &frames) {
                (INPUT_FRAME, Some(frames)) => {
                    // The receiver ends only with the program or the connection.
                    let _ = frames.send(bytes);
                }
                (INPUT_END_FRAME, _) => frames = None,
                (_, _) => return,
            }
        }
    });
    let mut input = GuestInput { frames: input, rest: io::Cursor::default() };
    let mut output = GuestOutput { to: to.clone(), kind: OUTPUT_FRAME };
    let mut errors = GuestOutput { to: to.clone(), kind: ERROR_FRAME };
    let code = serve(handle, &request, &mut input, &mut output, &mut errors);
    let mut to = to.lock().map_err(|_| io::Error::other("closed"))?;
    write_frame(&mut *to, EXIT_FRAME, &[code])
}

/// Why the owner didn't perform a request.
#[derive(Debug)]
pub enum SocketError {
    /// The request wasn't started: no input was read, and nothing was done.
    NotStarted(io::Error),
    /// The owner ended in the middle. It's unknown how much was done, so the request must not be repeated.
    Interrupted(io::Error),
}

/// Sends a request to the owner of the workspace, connected to this process's standard input and output. Returns the
/// exit code.
///
/// # Errors
/// Returns an error if the owner can't be reached, or ends before the request is done.
pub fn send_request(socket: &str, request: &SocketRequest) -> Result<u8, SocketError> {
    let (from, to) = start_request(socket, request).map_err(SocketError::NotStarted)?;
    relay_output(from, to).map_err(SocketError::Interrupted)
}

/// Sends a request with this input to the owner of the workspace; its output and errors go to `out` and `errors`.
/// Returns the exit code. If `out` can't be written, the request is broken off.
///
/// # Errors
/// Returns an error if the owner can't be reached, or ends before the request is done.
pub fn exchange(
    socket: &str,
    request: &SocketRequest,
    input: &[u8],
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> Result<u8, SocketError> {
    let (mut from, mut to) = start_request(socket, request).map_err(SocketError::NotStarted)?;
    let input = input.to_vec();
    // The owner may print before it has read all of the input.
    std::thread::spawn(move || {
        for chunk in input.chunks(65_536) {
            if write_frame(&mut to, INPUT_FRAME, chunk).is_err() {
                return;
            }
        }
        // If the owner is gone, reading its answer fails and reports that.
        let _ = write_frame(&mut to, INPUT_END_FRAME, &[]);
    });
    relay_frames(&mut from, out, errors).map_err(SocketError::Interrupted)
}

/// Sends a request and waits until the owner has accepted it.
fn start_request(socket: &str, request: &SocketRequest) -> io::Result<(StreamEnd, StreamEnd)> {
    let name = socket.to_owned().to_fs_name::<GenericFilePath>()?;
    let stream = Arc::new(Stream::connect(name)?);
    let (mut from, mut to) = (StreamEnd(stream.clone()), StreamEnd(stream));
    write_frame(&mut to, REQUEST_FRAME, &serde_json::to_vec(request)?)?;
    // One that was stopped, or hangs, would never answer. Pipes of Windows have no time limits, and refuse both.
    let _ = to.0.set_recv_timeout(Some(ACCEPT_TIMEOUT));
    let answer = read_frame(&mut from).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "no answer in 20 seconds"),
        _ => error,
    })?;
    let _ = to.0.set_recv_timeout(None); // as above
    if answer.0 == TAKEN_FRAME { Ok((from, to)) } else { Err(io::Error::other(UNKNOWN_FRAME)) }
}

fn relay_output(mut from: StreamEnd, mut to: StreamEnd) -> io::Result<u8> {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        let mut input = io::stdin().lock();
        loop {
            match input.read(&mut buffer) {
                Ok(0) | Err(_) => {
                    // If the owner is gone, reading its answer fails and reports that.
                    let _ = write_frame(&mut to, INPUT_END_FRAME, &[]);
                    return;
                }
                Ok(count) => {
                    if write_frame(&mut to, INPUT_FRAME, &buffer[..count]).is_err() {
                        return;
                    }
                }
            }
        }
    });
    relay_frames(&mut from, &mut io::stdout(), &mut io::stderr())
}

fn relay_frames(from: &mut StreamEnd, out: &mut dyn Write, errors: &mut dyn Write) -> io::Result<u8> {
    loop {
        match read_frame(from)? {
            (OUTPUT_FRAME, bytes) => out.write_all(&bytes).and_then(|()| out.flush())?,
            (ERROR_FRAME, bytes) => errors.write_all(&bytes)?,
            (EXIT_FRAME, code) => return Ok(code.first().copied().unwrap_or(0)),
            (_, _) => return Err(io::Error::other(UNKNOWN_FRAME)),
        }
    }
}
