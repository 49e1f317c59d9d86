//! Figures as data, and the one code that draws them: as PNG, as SVG, and through any backend of `plotters`.
