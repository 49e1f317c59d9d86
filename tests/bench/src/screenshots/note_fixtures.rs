//! Additional notes for the screenshots: a garden, its people, its crops and collections of them. It only contains
//! data.

/// Notes that the screenshots need in addition to the sample: path and text.
///
/// A number of days in braces is replaced with the date that many days from today.
pub(super) const FIXTURE_NOTES: &[(&str, &str)] = &[
    (
        "Garden/Plan.md",
        "# Plan for the garden\n\nThis year the [[Beds]] are dug in March, before the [[Seeds]] come.\n\n\
         ## Sowing\n\nFirst two rows of beans, then peas along the wall. The rest waits for [[Rainfall]].\n\n\
         - [ ] Order seeds [due:: {-2}]\n- [ ] Mend the fence [priority:: medium] [due:: {0}]\n\
         - [ ] Turn the compost [due:: {0}] [repeat:: every week]\n- [x] Draw the beds [due:: {-5}]\n\n\
         ## Watering\n\nWater every evening. In June the barrel is empty by noon.\n\n\
         | Bed | Crop | Weeks |\n|---|---|---:|\n| North | Beans | 9 |\n| South | Peas | 11 |\n\
         | Wall | Tomatoes | 16 |\n\n\
         ## Autumn\n\nBring in the pumpkins before the frost. What is left feeds the compost.\n",
    ),
    (
        "Garden/Beds.md",
        "# Beds\n\nFour of them, as in the [[Plan]].\n\n- [ ] Measure the south bed [due:: {1}]\n\
         - [ ] Buy string [due:: {3}]\n\
         - [ ] Ask [[Ines]] for her spade\n",
    ),
    (
        "Garden/Seeds.md",
        "# Seeds\n\n- [ ] Test last year's peas [priority:: high] [due:: {6}]\nSee [[Plan]] and [[Beds]].\n",
    ),
    (
        "Python/A question.md",
        "# A question\n\nA cell may ask, and goes on with the answer:\n\n```python\nprint(\"Sowing for the year.\")\n\
         crop = input(\"Which crop? \")\nprint(f\"{crop} go into the south bed.\")\n```\n\n\
         What a name is stands under the pointer:\n\n```python\nimport statistics\nstatistics.median\n```\n",
    ),
    (
        "Python/Waves.py",
        "import math\nimport matplotlib.pyplot as plt\n\ndays = range(365)\n\n\ndef light(day, latitude=52):\n    \
         tilt = 23.44 * math.sin(2 * math.pi * (day - 80) / 365)\n    angle = -math.tan(math.radians(latitude)) * \
         math.tan(math.radians(tilt))\n    return 24 / math.pi * math.acos(max(-1, min(1, angle)))\n\n\n\
         for latitude in (0, 30, 52):\n    plt.plot(days, [light(day, latitude) for day in days], \
         label=f\"{latitude} degrees\")\nplt.title(\"Hours of light\")\nplt.xlabel(\"Day of the year\")\n\
         plt.legend()\nplt.show()\nprint(\"Most:\", round(max(map(light, days)), 1), \"hours\")\n",
    ),
    ("Garden/Compost.md", "# Compost\n\nFeeds the [[Beds]]; turned each week, as the [[Plan]] says.\n"),
    ("Garden/Old list.md", "# Old list\n\nNobody needs it.\n"),
    ("Garden/Seeds 2024.md", "# Seeds of 2024\n"),
    ("People/Ines.md", "# Ines\n\nHas a spade and reads [[Rainfall]].\n"),
    ("People/Tom.md", "# Tom\n\nHelps with the [[Compost]]; met at [[Ines]].\n"),
    (
        "Journal/First day.md",
        "# First day\n\nWith [[Ines]] and [[Tom]] in the garden: [[Plan]].\n\n- [x] Dig\n- [ ] Rest\n",
    ),
    (
        "Garden/Crops.base",
        "filters: file.inFolder(\"Garden/Crops\")\n\
         properties:\n  file.name:\n    displayName: Crop\n  note.family:\n    displayName: Family\n\
         \x20 note.sown:\n    displayName: Sown\n  note.weeks:\n    displayName: Weeks\n\
         \x20 note.kilos:\n    displayName: Kilos\n  note.done:\n    displayName: Dug\n\
         \x20 note.see:\n    displayName: See\n\
         views:\n  - type: table\n    name: By bed\n    groupBy:\n      property: bed\n      direction: ASC\n\
         \x20   order:\n      - file.name\n      - family\n      - sown\n      - weeks\n      - kilos\n      - done\n\
         \x20     - see\n\
         \x20   sort:\n      - property: sown\n        direction: ASC\n\
         \x20   summaries:\n      note.weeks: Average\n      note.kilos: Sum\n    columnSize:\n      note.see: 150\n\
         \x20 - type: table\n    name: All\n    order:\n      - file.name\n      - bed\n",
    ),
    (
        "Garden/Gallery.base",
        "filters: file.inFolder(\"Garden/Crops\")\n\
         properties:\n  note.family:\n    displayName: Family\n  note.bed:\n    displayName: Bed\n\
         \x20 note.kilos:\n    displayName: Kilos\n\
         views:\n  - type: cards\n    name: Pictures\n    image: note.picture\n\
         \x20   order:\n      - file.name\n      - family\n      - bed\n      - kilos\n",
    ),
    (
        "Garden/Season.md",
        "# The season\n\nWhat grows in the [[Beds]] this year, and what is still to be dug.\n\n\
         ![[Gallery.base]]\n\n\
         Legumes come first: they leave the ground richer than they found it.\n\n\
         ```base\nfilters: family.contains(\"Legumes\")\nproperties:\n  file.name:\n    displayName: Crop\n\
         views:\n  - type: table\n    name: Legumes\n    order:\n      - file.name\n      - bed\n      - sown\n\
         \x20     - kilos\n    summaries:\n      note.kilos: Sum\n```\n",
    ),
    (
        "Garden/Crops/Runner beans.md",
        "---\nfamily: [Legumes]\nbed: North\nsown: {-9}\nweeks: 9\nkilos: 14.5\ndone: true\n\
         see: \"Climbs\"\npicture: \"[[beans.svg]]\"\n---\nIn the [[Plan]].\n",
    ),
    (
        "Garden/Crops/Peas.md",
        "---\nfamily: [Legumes]\nbed: South\nsown: {-8}\nweeks: 11\nkilos: 6.2\ndone: true\n\
         see: \"[[Plan]]\"\npicture: \"[[peas.svg]]\"\n---\nIn the [[Plan]].\n",
    ),
    (
        "Garden/Crops/Tomatoes.md",
        "---\nfamily: [Nightshades]\nbed: Wall\nsown: {-7}\nweeks: 16\nkilos: 22\ndone: false\n\
         picture: \"[[tomato.svg]]\"\n---\nIn the [[Plan]].\n",
    ),
    (
        "Garden/Crops/Potatoes.md",
        "---\nfamily: [Nightshades]\nbed: South\nsown: {-6}\nweeks: 14\nkilos: 31\ndone: true\n\
         picture: \"[[potato.svg]]\"\n---\nIn the [[Plan]].\n",
    ),
    (
        "Garden/Crops/Carrots.md",
        "---\nfamily: [Umbellifers]\nbed: North\nsown: {-5}\nweeks: 12\nkilos: 9.8\ndone: true\n\
         picture: \"[[carrot.svg]]\"\n---\nIn the [[Plan]].\n",
    ),
    (
        "Garden/Crops/Pumpkins.md",
        "---\nfamily: [Gourds]\nbed: Compost\nsown: {-4}\nweeks: 17\nkilos: 40.5\ndone: false\n\
         see: \"[[Compost]]\"\npicture: \"[[pumpkin.svg]]\"\n---\nIn the [[Plan]].\n",
    ),
    (
        "Garden/Crops/Beetroot.md",
        "---\nfamily: [Amaranths]\nbed: North\nsown: {-3}\nweeks: 10\nkilos: 8\ndone: true\n\
         picture: \"[[beet.svg]]\"\n---\nIn the [[Plan]].\n",
    ),
    (
        "Garden/Crops/Courgettes.md",
        "---\nfamily: [Gourds]\nbed: Compost\nsown: {-2}\nweeks: 8\nkilos: 18.4\ndone: false\n\
         picture: \"[[courgette.svg]]\"\n---\nIn the [[Plan]].\n",
    ),
    (
        "Garden/Pictures/beans.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 198'><rect width='300' height='198' \
         fill='#dfe8d2'/><path d='M60 150 C90 40 150 60 190 30' stroke='#4d7a3a' stroke-width='22' \
         fill='none' stroke-linecap='round'/><path d='M120 165 C160 80 210 100 245 70' stroke='#6b9a4f' \
         stroke-width='22' fill='none' stroke-linecap='round'/></svg>\n",
    ),
    (
        "Garden/Pictures/peas.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 198'><rect width='300' height='198' \
         fill='#e4ecd9'/><path d='M40 100 C90 30 210 30 260 100 C210 150 90 150 40 100' \
         fill='#6b9a4f'/><circle cx='100' cy='95' r='22' fill='#a8cc7d'/><circle cx='150' cy='92' r='25' \
         fill='#a8cc7d'/><circle cx='202' cy='95' r='22' fill='#a8cc7d'/></svg>\n",
    ),
    (
        "Garden/Pictures/tomato.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 198'><rect width='300' height='198' \
         fill='#f6e3dc'/><circle cx='150' cy='108' r='62' fill='#c8472f'/><path d='M150 56 L120 44 M150 \
         56 L180 44 M150 56 L150 30' stroke='#4d7a3a' stroke-width='10' stroke-linecap='round'/></svg>\n",
    ),
    (
        "Garden/Pictures/potato.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 198'><rect width='300' height='198' \
         fill='#efe6d6'/><ellipse cx='120' cy='105' rx='62' ry='44' fill='#b08a55'/><ellipse cx='200' \
         cy='120' rx='48' ry='36' fill='#c39d68'/></svg>\n",
    ),
    (
        "Garden/Pictures/carrot.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 198'><rect width='300' height='198' \
         fill='#f7e8d4'/><path d='M90 60 L215 165 L130 40 Z' fill='#e08a2e'/><path d='M108 48 L70 20 M108 \
         48 L100 12 M108 48 L60 50' stroke='#4d7a3a' stroke-width='9' stroke-linecap='round'/></svg>\n",
    ),
    (
        "Garden/Pictures/pumpkin.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 198'><rect width='300' height='198' \
         fill='#f8e7cf'/><ellipse cx='105' cy='110' rx='48' ry='52' fill='#d9772b'/><ellipse cx='195' \
         cy='110' rx='48' ry='52' fill='#d9772b'/><ellipse cx='150' cy='110' rx='46' ry='58' \
         fill='#e6893a'/><path d='M150 56 L160 28' stroke='#4d7a3a' stroke-width='14' \
         stroke-linecap='round'/></svg>\n",
    ),
    (
        "Garden/Pictures/beet.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 198'><rect width='300' height='198' \
         fill='#efdfe6'/><circle cx='150' cy='118' r='50' fill='#8a2650'/><path d='M150 70 L120 20 M150 \
         70 L150 14 M150 70 L182 22' stroke='#5c7f3d' stroke-width='10' stroke-linecap='round'/></svg>\n",
    ),
    (
        "Garden/Pictures/courgette.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 198'><rect width='300' height='198' \
         fill='#e3ebd8'/><path d='M70 150 L220 60' stroke='#3f6b35' stroke-width='46' \
         stroke-linecap='round'/><path d='M232 52 L252 38' stroke='#8aa86a' stroke-width='20' \
         stroke-linecap='round'/></svg>\n",
    ),
];
