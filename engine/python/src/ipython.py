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
        if isinstance(data, str) and filename is None and url is None:
            data, filename, url = None, *((None, data) if data.startswith(("http://", "https://")) else (data, None))
        # A picture of the web is fetched only on request. Else its address is shown.
        super().__init__(data, url if embed else None, filename, metadata)
        self.url = url
        sizes = {"width": width, "height": height, "alt": alt}
        self.metadata.update({name: size for name, size in sizes.items() if size is not None})
        self.format = format

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.data is None and self.url is not None:
            import html

            about = {"src": self.url, **self.metadata}
            words = (f'{name}="{html.escape(str(value))}"' for name, value in about.items())
            return {"text/html": f"<img {' '.join(words)}/>", "text/plain": repr(self)}, {}
        data = bytes(self.data or b"")
        starts = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))
        found = next((form for start, form in starts if data.startswith(start)), None)
        named = {"jpg": "jpeg", "svg": "svg+xml"}.get(self.format, self.format)
        mime = f"image/{found or named or 'svg+xml'}"
        shown = data.decode("utf-8", "replace") if mime == "image/svg+xml" else data
        return {mime: shown, "text/plain": repr(self)}, {mime: self.metadata} if self.metadata else {}


def _link(address, text=None):
    import html

    return f'<a href="{html.escape(str(address))}">{html.escape(str(text or address))}</a>'


class IFrame:
    """A page, which notes show as a link: they run no pages of others."""

    def __init__(self, src, width=None, height=None, extras=None, **parameters):
        self.src, self.width, self.height, self.params = src, width, height, parameters

    def _repr_html_(self):
        import urllib.parse

        more = urllib.parse.urlencode(self.params)
        return _link(f"{self.src}{'&' if '?' in str(self.src) else '?'}{more}" if more else self.src)

    def __repr__(self):
        return f"<IPython.display.{type(self).__name__} object>"


class YouTubeVideo(IFrame):
    """A film, shown as a link."""

    def __init__(self, id, width=400, height=300, allow_autoplay=False, **parameters):
        self.id = id
        super().__init__(f"https://www.youtube.com/watch?v={id}", width, height, **parameters)


class VimeoVideo(IFrame):
    """A film, shown as a link."""

    def __init__(self, id, width=400, height=300, **parameters):
        self.id = id
        super().__init__(f"https://vimeo.com/{id}", width, height, **parameters)


class FileLink:
    """A link to a file."""

    def __init__(self, path, url_prefix="", **options):
        self.path, self.url_prefix = str(path), url_prefix

    def _repr_html_(self):
        return _link(self.url_prefix + self.path, self.path)

    def __repr__(self):
        import os

        return os.path.abspath(self.path)


class FileLinks(FileLink):
    """Links to the files of a folder."""

    def __init__(self, path, url_prefix="", recursive=True, **options):
        super().__init__(path, url_prefix)
        self.recursive = recursive

    def _files(self):
        import itertools
        import os

        folders = os.walk(self.path) if self.recursive else itertools.islice(os.walk(self.path), 1)
        return itertools.islice((os.path.join(at, name) for at, _, names in folders for name in sorted(names)), 1000)

    def _repr_html_(self):
        return "<br>".join(_link(self.url_prefix + path, path) for path in self._files())

    def __repr__(self):
        return "\n".join(self._files())


class Code(DisplayObject):
    """The text of a program."""

    def __init__(self, data=None, url=None, filename=None, language=None):
        self.language = language
        super().__init__(data, url, filename)

    def _repr_mimebundle_(self, include=None, exclude=None):
        import html

        return {"text/html": f"<pre><code>{html.escape(self.data)}</code></pre>", "text/plain": self.data}, {}


class Video(DisplayObject):
    """A film, from a file or an address. Exported pages play it."""

    _read, _element, _type = "rb", "video", "video/mp4"

    def __init__(self, data=None, url=None, filename=None, embed=False, mimetype=None, width=None, height=None,
                 html_attributes="controls"):
        import mimetypes

        if isinstance(data, str):
            is_address = data.startswith(("http://", "https://"))
            data, filename, url = None, None if is_address else data, data if is_address else None
        self.mimetype = mimetype or mimetypes.guess_type(str(filename or url or ""))[0] or self._type
        if filename is not None and not embed:
            filename, url = None, filename
        super().__init__(data, None, filename)
        self.url = url

    def _source(self):
        if self.data is None:
            return str(self.url)
        import base64

        return f"data:{self.mimetype};base64,{base64.b64encode(self.data).decode('ascii')}"

    def _repr_mimebundle_(self, include=None, exclude=None):
        import html

        source = html.escape(self._source())
        shown = f'<{self._element} controls src="{source}"></{self._element}>'
        return {"text/html": shown, "text/plain": repr(self)}, {}


class Audio(Video):
    """A sound, from samples and their rate, a file or an address. Exported pages play it."""

    _element, _type = "audio", "audio/wav"

    def __init__(self, data=None, filename=None, url=None, embed=None, rate=None, autoplay=False, normalize=True, *,
                 element_id=None):
        if filename is None and url is None and data is None:
            raise ValueError("No audio data found. Expecting filename, url, or data.")
        if data is not None and not isinstance(data, (str, bytes)):
            if rate is None:
                raise ValueError("rate must be specified when data is a numpy array or list of audio samples.")
            data = _wave_file(data, rate, normalize)
        super().__init__(data, url, filename, embed is not False)


def _wave_file(samples, rate, normalize):
    """Returns samples (of one channel, or a row for each) as the bytes of a WAV file."""
    import array
    import io
    import sys
    import wave

    rows = samples.tolist() if hasattr(samples, "tolist") else list(samples)
    rows = [list(row) for row in rows] if rows and hasattr(rows[0], "__iter__") else [rows]
    largest = max((abs(sample) for row in rows for sample in row), default=0)
    if not normalize and largest > 1:
        raise ValueError("Audio data must be between -1 and 1 when normalize=False.")
    scale = 32767 / ((largest if normalize else 1) or 1)
    frames = array.array("h", (int(sample * scale) for frame in zip(*rows) for sample in frame))
    if sys.byteorder == "big":
        frames.byteswap()
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(len(rows))
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(frames.tobytes())
    return made.getvalue()


def _shown_as(mime):
    def show(*values, raw=False, metadata=None):
        for value in values:
            data, chosen = ({mime: value}, {"raw": True}) if raw else (value, {"include": (mime, "text/plain")})
            _cells.display(data, metadata=metadata, **chosen)

    show.__doc__ = f"Show values as {mime}."
    return show


def set_matplotlib_formats(*formats, **options):
    """Accepted: notes draw figures themselves, and keep a picture beside each."""


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
set_matplotlib_close = set_matplotlib_formats
TextDisplayObject = DisplayObject
display_html = _shown_as("text/html")
display_jpeg = _shown_as("image/jpeg")
display_json = _shown_as("application/json")
display_javascript = _shown_as("application/javascript")
display_latex = _shown_as("text/latex")
display_markdown = _shown_as("text/markdown")
display_pdf = _shown_as("application/pdf")
display_png = _shown_as("image/png")
display_pretty = _shown_as("text/plain")
display_svg = _shown_as("image/svg+xml")

__all__ = """
    Audio Code DisplayHandle DisplayObject FileLink FileLinks HTML IFrame Image JSON Javascript Latex Markdown Math
    Pretty SVG TextDisplayObject Video VimeoVideo YouTubeVideo clear_output display display_html display_javascript
    display_jpeg display_json display_latex display_markdown display_pdf display_png display_pretty display_svg
    publish_display_data set_matplotlib_close set_matplotlib_formats update_display
""".split()
