"""What `ipython.py` needs of the built-in Python: displays with names, and clearing what a cell has shown.

Frozen into the kernel as `_tracebook_ipython_cells` and imported when a cell first imports `IPython`.
"""

import _tracebook
import _tracebook_kernel as kernel

_numbers = 0


class DisplayHandle:
    """Handle of a named display, which can be updated."""

    def __init__(self, display_id):
        self.display_id = display_id

    def display(self, value, **options):
        display(value, display_id=self.display_id, **options)

    def update(self, value, **options):
        update_display(value, display_id=self.display_id, **options)

    def __repr__(self):
        return f"<DisplayHandle display_id={self.display_id}>"


def display(*values, raw=False, metadata=None, display_id=None, update=False, include=None, exclude=None, clear=False,
            **options):
    """Show values below the cell, each in its richest form.

    display_id: a name under which `update_display` shows something else later, or True for a new one.
    """
    global _numbers
    if clear:
        clear_output(wait=True)
    if display_id is True:
        _numbers += 1
        display_id = f"display-{_numbers}"
    if update and display_id is None:
        raise TypeError("display_id required for update_display")
    for value in values:
        data, about = (_tracebook._texts(value), {}) if raw else _tracebook._forms(value)
        if include or exclude:
            data = {mime: form for mime, form in data.items()
                    if (not include or mime in include) and (not exclude or mime not in exclude)}
        about = _tracebook._json({**about, **(metadata or {})})
        if display_id is None:
            kernel.display(data, about)
        else:
            kernel.display(data, about, str(display_id), bool(update))
    return None if display_id is None else DisplayHandle(display_id)


def update_display(value, *, display_id, **options):
    """Show something else where `display` showed a value under this name."""
    display(value, display_id=display_id, update=True, **options)


def clear_output(wait=False):
    """Remove what the cell has shown. wait: only when there is new output."""
    kernel.clear_output(bool(wait))


def publish(data, metadata=None, *, transient=None, update=False, **options):
    """Show representations by their MIME types."""
    display(data, raw=True, metadata=metadata, display_id=(transient or {}).get("display_id"), update=update)
