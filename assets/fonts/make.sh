#!/usr/bin/env bash
# Makes the font files of this folder from their published packages. Needed only to update them; the result is committed.
# Needs: apt-get, npm, python3 with venv. See README.md for versions and what is changed and why.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv && venv/bin/pip install -q fonttools==4.68.0 brotli==1.2.1
npm pack --silent inter-ui@4.1.1 @phosphor-icons/web@2.1.2 @fontsource/noto-emoji@5.3.2
mkdir inter icons emoji && tar xzf fontsource-noto-emoji-*.tgz -C emoji && tar xzf inter-ui-*.tgz -C inter && tar xzf phosphor-icons-web-*.tgz -C icons
apt-get download fonts-jetbrains-mono && dpkg -x fonts-jetbrains-mono_*.deb mono

# All code points but the private use area, which belongs to the icons alone.
text='U+0000-DFFF,U+F900-10FFFF'
# The packages hold WOFF2, which egui does not read: plain TrueType comes out.
subset() { venv/bin/python -c 'import sys; from fontTools.ttLib import TTFont; f = TTFont(sys.argv[1]); f.flavor = None; f.save("plain.ttf")' "$1"; venv/bin/pyftsubset plain.ttf --output-file="$here/$2" --unicodes="$3" --layout-features="$4" \
  --name-IDs='*' --name-languages='*' --notdef-outline "${@:5}"; }
for style in Regular Italic SemiBold Bold BoldItalic; do
  subset "inter/package/web/Inter-$style.woff2" "Inter-$style.ttf" "$text" ccmp,locl,kern,mark,mkmk
done
for style in Regular Bold Italic; do
  subset "mono/usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-$style.ttf" "JetBrainsMono-$style.ttf" "$text" \
    ccmp,locl,mark,mkmk
done
subset icons/package/src/regular/Phosphor.ttf Phosphor-Regular.ttf U+E000-F8FF ''

# The package holds the emoji in ten parts.
venv/bin/python - emoji/package/files/noto-emoji-*-400-normal.woff2 <<'PY'
import sys
from fontTools.merge import Merger
from fontTools.ttLib import TTFont

parts = []
for name in sys.argv[1:]:
    font = TTFont(name)
    font.flavor = None
    for table in ("GSUB", "GPOS", "GDEF", "STAT", "vhea", "vmtx"):
        if table in font:
            del font[table]
    parts.append(f"part-{len(parts)}.ttf")
    font.save(parts[-1])
Merger().merge(parts).save("emoji.ttf")
PY
subset emoji.ttf NotoEmoji-Regular.ttf 'U+203C-FE0F,U+1F000-1FAFF' '' --no-hinting

# Figures of equal width: the `tnum` glyphs of Inter Regular put straight into the character map.
venv/bin/python - inter/package/web/Inter-Regular.woff2 tabular.ttf <<'PY'
import sys
from fontTools.ttLib import TTFont

font = TTFont(sys.argv[1])
gsub = font["GSUB"].table
swap = {}
for record in gsub.FeatureList.FeatureRecord:
    if record.FeatureTag == "tnum":
        for lookup in record.Feature.LookupListIndex:
            for table in gsub.LookupList.Lookup[lookup].SubTable:
                swap.update(getattr(table, "ExtSubTable", table).mapping)
for table in font["cmap"].tables:
    table.cmap = {code: swap.get(name, name) for code, name in table.cmap.items()}
for name in font["name"].names:
    if name.nameID in (1, 3, 4, 6, 16):
        name.string = name.toUnicode().replace("Inter", "InterTabular" if name.nameID == 6 else "Inter Tabular")
font.flavor = None
font.save(sys.argv[2])
PY
subset tabular.ttf InterTabular-Regular.ttf 'U+0030-0039,U+002B-002E,U+003A,U+00B1,U+00D7,U+00F7,U+2212' ''

cp inter/package/LICENSE.txt "$here/Inter-LICENSE.txt"
cp emoji/package/LICENSE "$here/NotoEmoji-LICENSE.txt"
cp icons/package/LICENSE "$here/Phosphor-LICENSE.txt"
# The OFL with the copyright line that stands in the font (the Debian package carries no copy of it).
owner='Copyright 2020 The JetBrains Mono Project Authors (https://github.com/JetBrains/JetBrainsMono)'
sed "1s|.*|$owner|" "$here/Inter-LICENSE.txt" > "$here/JetBrainsMono-LICENSE.txt"
ls -l "$here"/*.ttf
