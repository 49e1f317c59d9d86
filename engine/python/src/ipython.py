"""`IPython.display` for cells whose Python has no IPython: `display` and the classes of objects to show.

Run by `cells.py` when a cell imports it, with `_cells` and `_handle` in its namespace. The built-in Python has it frozen
as `_tracebook_ipython`, and `ipython_cells.py` in their place.
"""

if "_cells" not in globals():
    import _tracebook_ipython_cells as _cells

    _handle = _cells.DisplayHandle


class DisplayObject:
    """Text or bytes to show in their own format, from data, a file name or a URL."""

    _mime = "text/plain"
    _read = "r"

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if isinstance(data, DisplayObject):
            data = data.data
        if url is None and isinstance(data, str) and data.startswith(("http://", "https://")):
            data, url = None, data
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}
        self.reload()

    def reload(self):
        if self.filename is not None:
            encoding = None if "b" in self._read else "utf-8"
            with open(self.filename, self._read, encoding=encoding) as file:
                self.data = file.read()
        elif self.url is not None and self.data is None:
            import urllib.request

            with urllib.request.urlopen(self.url) as answer:
                read = answer.read()
            self.data = read if "b" in self._read else read.decode("utf-8", "replace")

    def _repr_mimebundle_(self, include=None, exclude=None):
        about = {self._mime: self.metadata} if self.metadata else {}
        return {self._mime: self.data, "text/plain": repr(self)}, about

    def __repr__(self):
        return f"<IPython.display.{type(self).__name__} object>"


def _kind(name, mime, about):
    return type(name, (DisplayObject,), {"_mime": mime, "__doc__": about, "__module__": __name__})


class Pretty(DisplayObject):
    """Plain text."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.data}, {}


class Math(DisplayObject):
    """A formula in LaTeX."""

    _mime = "text/latex"

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/latex": f"$\\displaystyle {str(self.data).strip('$')}$", "text/plain": repr(self)}, {}


class JSON(DisplayObject):
    """JSON data, shown as a tree."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/json": self.data, "text/plain": repr(self)}, {}


class Image(DisplayObject):
    """A picture: PNG, JPEG, GIF, WebP or SVG."""

    _read = "rb"

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None,
                 retina=False, unconfined=False, metadata=None, alt=None):
        if isinstance(data, str) and not data.startswith(("http://", "https://")) and filename is None:
            data, filename = None, data
        super().__init__(data, url, filename, metadata)
        sizes = {"width": width, "height": height, "alt": alt}
        self.metadata.update({name: size for name, size in sizes.items() if size is not None})
        self.format = format

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = bytes(self.data or b"")
        starts = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))
        found = next((form for start, form in starts if data.startswith(start)), None)
        named = {"jpg": "jpeg", "svg": "svg+xml"}.get(self.format, self.format)
        mime = f"image/{found or named or 'svg+xml'}"
        shown = data.decode("utf-8", "replace") if mime == "image/svg+xml" else data
        return {mime: shown, "text/plain": repr(self)}, {mime: self.metadata} if self.metadata else {}


HTML = _kind("HTML", "text/html", "A piece of a page.")
Markdown = _kind("Markdown", "text/markdown", "Text in Markdown.")
Latex = _kind("Latex", "text/latex", "Text in LaTeX.")
SVG = _kind("SVG", "image/svg+xml", "A drawing.")
Javascript = _kind("Javascript", "application/javascript", "A script, which notes show and don't run.")
DisplayHandle = _handle
clear_output = _cells.clear_output
display = _cells.display
publish_display_data = _cells.publish
update_display = _cells.update_display

__all__ = [
    "DisplayHandle",
    "DisplayObject",
    "HTML",
    "Image",
    "JSON",
    "Javascript",
    "Latex",
    "Markdown",
    "Math",
    "Pretty",
    "SVG",
    "clear_output",
    "display",
    "publish_display_data",
    "update_display",
]
