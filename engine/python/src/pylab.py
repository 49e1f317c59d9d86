"""pylab for cells: the names of the built-in numpy and pyplot in one module."""

import builtins as _builtins

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.pyplot import *
from numpy import *
from numpy.linalg import *
from numpy.random import *

# As in matplotlib's own pylab, these stay Python's.
for _name in ("abs", "bool", "bytes", "max", "min", "pow", "round"):
    globals()[_name] = getattr(_builtins, _name)
