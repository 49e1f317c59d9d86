//! QR codes: as half blocks for a terminal, and as a matrix of modules for a window.

use qrcode::types::QrError;
use qrcode::{Color, QrCode};

/// The modules of a QR code, without the quiet zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QrMatrix {
    /// Number of modules per row and per column.
    pub modules_per_side: usize,
    /// Whether each module is dark, row by row.
    pub dark: Vec<bool>,
}

/// The text is too long for a QR code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no QR code can be made of this ({0})")]
pub struct QrCodeError(#[from] QrError);

impl QrMatrix {
    /// Encodes a text as a QR code.
    ///
    /// # Errors
    /// Returns an error if the text is too long for a QR code.
    pub fn new(text: &str) -> Result<QrMatrix, QrCodeError> {
        let code = QrCode::new(text)?;
        Ok(QrMatrix {
            modules_per_side: code.width(),
            dark: code.into_colors().into_iter().map(|c| c == Color::Dark).collect(),
        })
    }

    fn is_dark(&self, x: usize, y: usize) -> bool {
        // A camera needs a quiet zone of four light modules around the code.
        let (Some(x), Some(y)) = (x.checked_sub(QUIET_ZONE_MODULES), y.checked_sub(QUIET_ZONE_MODULES)) else {
            return false;
        };
        x < self.modules_per_side
            && y < self.modules_per_side
            && self.dark.get(y * self.modules_per_side + x).copied().unwrap_or(false)
    }

    /// Returns lines for a terminal, two rows of modules each.
    ///
    /// The code is drawn light on dark, as most terminals are: light modules are blocks of the text color, dark ones
    /// are spaces.
    pub fn terminal_lines(&self) -> Vec<String> {
        let wide = self.modules_per_side + 2 * QUIET_ZONE_MODULES;
        let field = |x, y| match (self.is_dark(x, y), y + 1 >= wide || self.is_dark(x, y + 1)) {
            (false, false) => '█',
            (false, true) => '▀',
            (true, false) => '▄',
            (true, true) => ' ',
        };
        (0..wide).step_by(2).map(|y| (0..wide).map(|x| field(x, y)).collect()).collect()
    }
}

const QUIET_ZONE_MODULES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_square_with_its_three_corners() {
        let square = QrMatrix::new("tracebook:pair?at=wss://127.0.0.1:7600&code=1234-5678").expect("made");
        assert_eq!(square.dark.len(), square.modules_per_side * square.modules_per_side);
        for corner in [0, square.modules_per_side - 7, square.modules_per_side * (square.modules_per_side - 7)] {
            assert!(square.dark[corner..corner + 7].iter().all(|dark| *dark));
        }
        let lines = square.terminal_lines();
        assert!(lines.iter().all(|line| line.chars().count() == square.modules_per_side + 2 * QUIET_ZONE_MODULES));
        assert_eq!(lines.len(), (square.modules_per_side + 2 * QUIET_ZONE_MODULES).div_ceil(2));
        assert!(QrMatrix::new(&"x".repeat(9000)).is_err());
    }
}
