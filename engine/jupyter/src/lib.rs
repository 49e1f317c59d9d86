//! Jupyter: notebooks in its file format, kernels by its protocol.
