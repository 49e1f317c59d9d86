//! Frames sent through the pipes between the program and a renderer worker.

use super::RenderMessage;
use std::io::{Error, ErrorKind, Read, Write};

/// Maximum length of a frame's header in bytes. The header describes the frame and may contain a note's text.
const MAX_FRAME_HEAD_BYTES: u64 = 512 << 20;
/// Maximum length of a frame's body in bytes.
const MAX_FRAME_BODY_BYTES: u64 = 2 << 30;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// To a worker: a job.
    Job,
    /// To a worker: the answer to a question.
    Answer,
    /// From a worker: a question.
    Question,
    /// From a worker: the job is done.
    Done {
        /// Whether the worker can be reused, because its memory hasn't grown too much.
        fit: bool,
    },
    /// From a worker: the job panicked.
    Broken,
}

/// A frame with its kind, memory limit and message.
#[derive(Debug)]
pub(super) struct RenderFrame {
    pub(super) kind: FrameKind,
    /// To a worker: additional memory that it may use during the job, in bytes.
    pub(super) memory: u64,
    pub(super) message: RenderMessage,
}

pub(super) fn write(to: &mut impl Write, kind: FrameKind, message: &RenderMessage, memory: u64) -> std::io::Result<()> {
    let kind = match kind {
        FrameKind::Job => 0,
        FrameKind::Answer => 1,
        FrameKind::Question => 2,
        FrameKind::Done { fit: false } => 3,
        FrameKind::Done { fit: true } => 4,
        FrameKind::Broken => 5,
    };
    let mut start = [0; 25];
    start[0] = kind;
    start[1..9].copy_from_slice(&memory.to_le_bytes());
    start[9..17].copy_from_slice(&(message.head.len() as u64).to_le_bytes());
    start[17..25].copy_from_slice(&(message.body.len() as u64).to_le_bytes());
    to.write_all(&start)?;
    to.write_all(&message.head)?;
    to.write_all(&message.body)?;
    to.flush()
}

pub(super) fn read(from: &mut impl Read) -> std::io::Result<RenderFrame> {
    let mut start = [0; 25];
    from.read_exact(&mut start)?;
    let kind = match start[0] {
        0 => FrameKind::Job,
        1 => FrameKind::Answer,
        2 => FrameKind::Question,
        3 => FrameKind::Done { fit: false },
        4 => FrameKind::Done { fit: true },
        5 => FrameKind::Broken,
        _ => return Err(Error::new(ErrorKind::InvalidData, "a frame of an unknown kind")),
    };
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&start[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let (head, body) = (number(9), number(17));
    if head > MAX_FRAME_HEAD_BYTES || body > MAX_FRAME_BODY_BYTES {
        return Err(Error::new(ErrorKind::InvalidData, "a frame that is too long"));
    }
    let message = RenderMessage { head: read_exact_bytes(from, head)?, body: read_exact_bytes(from, body)? };
    Ok(RenderFrame { kind, memory: number(1), message })
}

/// Reads exactly this many bytes. Memory grows as they arrive, not as announced.
fn read_exact_bytes(from: &mut impl Read, length: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_rest_refused() {
        let message = RenderMessage { head: b"head".to_vec(), body: vec![7; 70_000] };
        for kind in
            [FrameKind::Job, FrameKind::Answer, FrameKind::Question, FrameKind::Done { fit: true }, FrameKind::Broken]
        {
            let mut bytes = Vec::new();
            write(&mut bytes, kind, &message, 9).expect("written");
            let frame = read(&mut bytes.as_slice()).expect("read");
            assert_eq!((frame.kind, frame.memory, &frame.message), (kind, 9, &message));
            assert!(read(&mut &bytes[..bytes.len() - 1]).is_err(), "cut off");
        }
        assert!(read(&mut [9_u8; 25].as_slice()).is_err(), "no such kind");
        let mut endless = [0xff_u8; 25];
        endless[0] = 2;
        assert!(read(&mut endless.as_slice()).is_err(), "longer than anything");
    }
}
