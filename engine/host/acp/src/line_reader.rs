//! Reads lines of bounded length from a program that may send anything.

use std::io::{self, BufRead};

/// A line, or that it was too long to keep.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BoundedLine {
    /// The line without its end.
    Line(Vec<u8>),
    /// A line that was longer than the maximum. It was read and dropped.
    TooLong,
}

/// Reads the next line; `None` at the end. The memory that it takes is bounded by `max` bytes.
pub(crate) fn read_line(input: &mut dyn BufRead, max: usize) -> io::Result<Option<BoundedLine>> {
    let (mut line, mut is_long, mut is_empty) = (Vec::new(), false, true);
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() {
            return Ok(match (is_empty, is_long) {
                (true, _) => None,
                (false, true) => Some(BoundedLine::TooLong),
                (false, false) => Some(BoundedLine::Line(line)),
            });
        }
        is_empty = false;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        if line.len() + part.len() > max {
            is_long = true;
            line = Vec::new();
        } else if !is_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(bytes.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(if is_long { BoundedLine::TooLong } else { BoundedLine::Line(line) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn long_lines_are_dropped_and_the_next_is_read() {
        let text = format!("one\n{}\n\nlast", "x".repeat(100));
        let mut input = BufReader::with_capacity(7, text.as_bytes());
        let mut read = || read_line(&mut input, 10).expect("readable");
        assert_eq!(read(), Some(BoundedLine::Line(b"one".to_vec())));
        assert_eq!(read(), Some(BoundedLine::TooLong));
        assert_eq!(read(), Some(BoundedLine::Line(Vec::new())));
        assert_eq!(read(), Some(BoundedLine::Line(b"last".to_vec())));
        assert_eq!(read(), None);
        let mut input = BufReader::with_capacity(3, "abcdefghijkl".as_bytes());
        assert_eq!(read_line(&mut input, 10).expect("readable"), Some(BoundedLine::TooLong));
        assert_eq!(read_line(&mut input, 10).expect("readable"), None);
    }
}
