//! A minimal subset of CBOR (RFC 8949) for the messages: definite lengths only, and everything is checked before use.

/// Why bytes aren't a valid message.
pub(super) type CborError = &'static str;

/// Maximum nesting depth of a skipped value. Deeper values are refused.
const MAX_CBOR_DEPTH: u32 = 16;

/// Reads CBOR values one after another.
#[derive(Clone)]
pub(super) struct CborReader<'a> {
    rest: &'a [u8],
}

impl<'a> CborReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> CborReader<'a> {
        CborReader { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take_bytes(&mut self, count: usize) -> Result<&'a [u8], CborError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or("it ends early")?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the kind and the number of the next item. Tags are ignored.
    fn read_head(&mut self) -> Result<(u8, u64), CborError> {
        for _ in 0..MAX_CBOR_DEPTH {
            let first = self.take_bytes(1)?[0];
            let (kind, short) = (first >> 5, first & 0x1f);
            let number = match short {
                0..=23 => u64::from(short),
                24..=27 => {
                    let bytes = self.take_bytes(1 << (short - 24))?;
                    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
                }
                _ => return Err("it has lengths that are not said beforehand"),
            };
            match (kind, short) {
                (6, _) => {}
                (7, 25..=27) => return Ok((8 + (short - 25), number)), // floats, by their width
                _ => return Ok((kind, number)),
            }
        }
        Err("it has too many tags")
    }

    fn peek_head(&self) -> Result<(u8, u64), CborError> {
        CborReader { rest: self.rest }.read_head()
    }

    /// Reads the number of entries of a map, at most `most`.
    pub(super) fn read_map(&mut self, most: u64) -> Result<u64, CborError> {
        match self.read_head()? {
            (5, count) if count <= most => Ok(count),
            (5, _) => Err("it has too many fields"),
            _ => Err("a map was expected"),
        }
    }

    /// Reads the number of items of an array, at most `most`.
    pub(super) fn read_array(&mut self, most: u64) -> Result<u64, CborError> {
        match self.read_head()? {
            (4, count) if count <= most => Ok(count),
            (4, _) => Err("a list is too long"),
            _ => Err("a list was expected"),
        }
    }

    pub(super) fn read_text(&mut self, most: usize) -> Result<&'a str, CborError> {
        match self.read_head()? {
            (3, length) => {
                let length =
                    usize::try_from(length).ok().filter(|length| *length <= most).ok_or("a text is too long")?;
                std::str::from_utf8(self.take_bytes(length)?).map_err(|_| "a text is not UTF-8")
            }
            _ => Err("a text was expected"),
        }
    }

    pub(super) fn read_bytes(&mut self) -> Result<&'a [u8], CborError> {
        match self.read_head()? {
            (2, length) => self.take_bytes(usize::try_from(length).map_err(|_| "it ends early")?),
            _ => Err("bytes were expected"),
        }
    }

    /// Reads a non-negative integer. JavaScript writes some of them as floats.
    pub(super) fn read_number(&mut self) -> Result<u64, CborError> {
        match self.read_head()? {
            (0, number) => Ok(number),
            (9, bits) => float_to_integer(f64::from(f32::from_bits(bits as u32))),
            (10, bits) => float_to_integer(f64::from_bits(bits)),
            _ => Err("a number was expected"),
        }
    }

    pub(super) fn read_bool(&mut self) -> Result<bool, CborError> {
        match self.read_head()? {
            (7, 20) => Ok(false),
            (7, 21) => Ok(true),
            _ => Err("true or false was expected"),
        }
    }

    /// Reads the next value if it's `null` or `undefined`, and returns whether it was.
    pub(super) fn read_null(&mut self) -> Result<bool, CborError> {
        let nothing = matches!(self.peek_head()?, (7, 22 | 23));
        if nothing {
            self.read_head()?;
        }
        Ok(nothing)
    }

    /// Skips one value.
    pub(super) fn skip_value(&mut self) -> Result<(), CborError> {
        self.skip_nested(MAX_CBOR_DEPTH)
    }

    fn skip_nested(&mut self, deep: u32) -> Result<(), CborError> {
        let deeper = deep.checked_sub(1).ok_or("it is nested too deep")?;
        let (kind, number) = self.read_head()?;
        match kind {
            2 | 3 => {
                self.take_bytes(usize::try_from(number).map_err(|_| "it ends early")?)?;
            }
            4 | 5 => {
                let items = if kind == 5 { number.checked_mul(2).ok_or("it ends early")? } else { number };
                if items > self.rest.len() as u64 {
                    return Err("it ends early");
                }
                for _ in 0..items {
                    self.skip_nested(deeper)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn float_to_integer(number: f64) -> Result<u64, CborError> {
    // Above this, a float can't represent every integer.
    if number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number) {
        Ok(number as u64)
    } else {
        Err("a whole number was expected")
    }
}

/// Writes CBOR values one after another.
#[derive(Default)]
pub(super) struct CborWriter {
    pub(super) bytes: Vec<u8>,
}

impl CborWriter {
    fn write_head(&mut self, kind: u8, number: u64) {
        let kind = kind << 5;
        let wide = number.to_be_bytes();
        match number {
            0..=23 => self.bytes.push(kind | number as u8),
            24..=0xff => self.bytes.extend([kind | 24, number as u8]),
            0x100..=0xffff => {
                self.bytes.push(kind | 25);
                self.bytes.extend(&wide[6..]);
            }
            0x1_0000..=0xffff_ffff => {
                self.bytes.push(kind | 26);
                self.bytes.extend(&wide[4..]);
            }
            _ => {
                self.bytes.push(kind | 27);
                self.bytes.extend(wide);
            }
        }
    }

    pub(super) fn write_map(&mut self, count: usize) -> &mut CborWriter {
        self.write_head(5, count as u64);
        self
    }

    pub(super) fn write_array(&mut self, count: usize) -> &mut CborWriter {
        self.write_head(4, count as u64);
        self
    }

    pub(super) fn write_text(&mut self, text: &str) -> &mut CborWriter {
        self.write_head(3, text.len() as u64);
        self.bytes.extend(text.as_bytes());
        self
    }

    pub(super) fn write_bytes(&mut self, bytes: &[u8]) -> &mut CborWriter {
        self.write_head(2, bytes.len() as u64);
        self.bytes.extend(bytes);
        self
    }

    pub(super) fn write_number(&mut self, number: u64) -> &mut CborWriter {
        self.write_head(0, number);
        self
    }

    pub(super) fn write_bool(&mut self, is: bool) -> &mut CborWriter {
        self.bytes.push(if is { 0xf5 } else { 0xf4 });
        self
    }
}
