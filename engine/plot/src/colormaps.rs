//! Matplotlib's color maps, sampled from its `colormaps` at seventeen stops each.

/// Returns whether a color map with this name exists; the suffix `_r` reverses it.
pub fn has_map(name: &str) -> bool {
    let name = name.strip_suffix("_r").unwrap_or(name);
    find_map(name).is_some()
}

/// Returns the number of colors in a map: 256 for a continuous one.
pub fn map_size(name: &str) -> usize {
    let (stops, single) = map_stops(name.strip_suffix("_r").unwrap_or(name));
    if single { stops.len() / 6 } else { 256 }
}

/// Returns the stops of a map, six hexadecimal digits each, and whether it's qualitative (not interpolated).
pub(crate) fn map_stops(name: &str) -> (&'static str, bool) {
    find_map(name).or_else(|| find_map("viridis")).unwrap_or(("000000ffffff", false))
}

fn find_map(name: &str) -> Option<(&'static str, bool)> {
    let name = match name {
        "grey" => "gray",
        "Grays" => "Greys",
        name => name,
    };
    let of = |all: &[(&str, &'static str)]| all.iter().find(|(known, _)| *known == name).map(|(_, stops)| *stops);
    of(CONTINUOUS_MAPS).map(|stops| (stops, false)).or_else(|| of(QUALITATIVE_MAPS).map(|stops| (stops, true)))
}

/// Returns the names of all color maps.
pub fn map_names() -> impl Iterator<Item = &'static str> {
    CONTINUOUS_MAPS.iter().chain(QUALITATIVE_MAPS).map(|(name, _)| *name)
}

/// Continuous color maps: evenly spaced stops of six hexadecimal digits each.
const CONTINUOUS_MAPS: &[(&str, &str)] = &[
    (
        "viridis",
        "44015448186a472d7b4240863b528b33638d2c728e26828e21918c1fa08828ae803fbc735ec96284d44baddc30d8e219fde725",
    ),
    (
        "plasma",
        "0d08873105974c02a16600a77e03a89511a1aa2395bc3587cc4778da5a6ae66c5cf0804ef89540fdac33fdc527f8df25f0f921",
    ),
    (
        "inferno",
        "0000040b0724210c4a3d096557106e71196e8a226aa32c61bc3754d24644e45a31f1731df98e09fcac11f9cb35f2ea69fcffa4",
    ),
    ("magma", "0000040a08221d114736106b51127c6a1c818326819c2e7fb73779d0416fe75263f56b5cfc8961fea772fec488fde2a3fcfdbf"),
    (
        "cividis",
        "00224e002e6a1a386f32436d434e6c535a6d61656f6f70737d7c788c88789b9476aba072bcae6ccdbb63dec958f0d846fee838",
    ),
    ("turbo", "30123b4040a2466be34294ff28bceb18ddc232f2986dfe62a4fc3ccdec34eecf3afdac34fb7e21eb500ed02f05a916017a0403"),
    ("jet", "0000800000c80000ff0040ff0080ff00c0ff16ffe149ffad7dff7ab1ff46e4ff13ffd000ff9400ff5900ff1e00c40000800000"),
    (
        "rainbow",
        "8000ff6032fe4062fa208ef400b5eb20d5e140ecd460fac580ffb4a0faa1c0eb8de0d377ffb360ff8c49ff5f30ff2f18ff0000",
    ),
    ("hsv", "ff0000ff5f00ffbd00e2ff0084ff0025ff0000ff3900ff9700fff600aaff004bff1300ff7200ffd000ffff00cfff0071ff0018"),
    (
        "twilight",
        "e2d9e2c4ced495b5c77297c16276ba5e51ad592a8f45135c2f14364a1342741e4f983550b25652c27c63cca389d8c7bee2d9e2",
    ),
    (
        "coolwarm",
        "3b4cc04e68d86282ea779af78db0fea3c2feb9d0f9ccd9eddddcdcecd3c5f5c4acf7b093f4987aeb7d62dd5f4bca3b37b40426",
    ),
    ("bwr", "0000ff2020ff4040ff6060ff8080ffa0a0ffc0c0ffe0e0fffffefeffdedeffbebeff9e9eff7e7eff5e5eff3e3eff1e1eff0000"),
    (
        "seismic",
        "00004c0000790000a60000d30101ff4141ff8181ffc1c1fffffdfdffbdbdff7d7dff3d3dfe0000de0000be00009e0000800000",
    ),
    ("RdBu", "67001f960f27bb2a34d25849e58368f5ac8bfbceb7fbe6daf6f7f7deebf2c0dceb98c8e068abd03e8cbf2870b115508d053061"),
    (
        "RdYlBu",
        "a50026c41e27de402ef16640f98e52fdb567fed485feeca2feffc0ebf7e4d1ecf4b0dcea8ec2dc6da4cc4f81ba3d5ba7313695",
    ),
    (
        "RdYlGn",
        "a50026c41e27de402ef16640f98e52fdb567fed481feec9ffeffbee6f59dcbe982abdb6d84ca665ab7602aa0540f8446006837",
    ),
    (
        "Spectral",
        "9e0142c1274add4a4cf06744f98e52fdb567fed481feec9fffffbeeff9a6d6ee9bb1dfa386cfa55eb9a93d95b84471b25e4fa2",
    ),
    ("PiYG", "8e0152b1116dcb3289db6ca8e897c4f3bcddfad6eafbe9f2f7f7f6ecf6ded9f0bcbde38d9acd6177b53c589b283d7f1e276419"),
    ("PRGn", "40004b621a6e7f3c8d9568a6ae8bbdc7abd2dec9e2ede2eef6f7f6e4f2e0cbeac5abdda57ec37f50a65a29844010632b00441b"),
    ("BrBG", "543005774508995d13b97b29cfa256e2c787f1dfb3f6edd7f4f5f5d7eeebb4e2db87d0c558b0a72d8f870c716901554b003c30"),
    ("Greys", "fffffff7f7f7f0f0f0e4e4e4d9d9d9cbcbcbbdbdbda9a9a99595958484847272726262625151513a3a3a242424111111000000"),
    ("Blues", "f7fbffeaf3fbdeebf7d2e3f3c6dbefb2d2e89dcae184bcdb6aaed656a0ce4191c63181bd2070b41460a808509b08408208306b"),
    (
        "Greens",
        "f7fcf5eef8eae5f5e0d6efd0c7e9c0b4e1ada0d99b8ace8873c4765ab76940aa5d319a50228a44117b38006c2c00572300441b",
    ),
    ("Reds", "fff5f0feeae1fee0d2fdcdb9fcbba1fca689fc9272fb7d5dfb694af5523aee3a2cdc2924ca181db71319a30f1584071167000d"),
    (
        "Oranges",
        "fff5ebfeeddcfee6cefddbb8fdd0a2fdbf86fdae6afd9d53fd8c3bf77a27f16813e4580ad84801be3f02a53603912e047f2704",
    ),
    (
        "Purples",
        "fcfbfdf5f4f9efedf5e4e3f0dadaebcbcbe3bcbddcadabd29e9ac88e8bc1807cba7566ae6950a35e3b9853268f4912853f007d",
    ),
    (
        "YlOrRd",
        "ffffccfff6b6ffeda0fee38bfed976fec561feb24cfd9f44fd8c3cfc6c33fc4d2aef3323e2191ccf0c21bb00269d0026800026",
    ),
    (
        "YlOrBr",
        "ffffe5fffbd0fff7bcfeeda6fee390fed36ffec34ffeae3bfe9829f5841eeb6f14db5d0bcb4b02b13f039834047e2c05662506",
    ),
    (
        "YlGnBu",
        "ffffd9f6fbc5edf8b1daf0b3c6e9b4a2dbb87ecdbb5fc1c040b5c42ea3c21d90c02076b3225da824489d243392162874081d58",
    ),
    ("YlGn", "ffffe5fbfdcff7fcb9e8f6aed9f0a3c3e698acdd8e92d18377c6795cb86b40aa5c31974f22834311753d006737005530004529"),
    ("BuGn", "f7fcfdeef8fbe5f5f9d8f0efccece6b2e2d798d8c97fcdb665c2a353b88c40ad75319c5c228a44117b38006c2c00572300441b"),
    ("BuPu", "f7fcfdebf4f8e0ecf4cfdfedbfd3e6aec7e09ebcda95a8d08c95c68c80bb8c6ab18a55a788409c84278c800f7b6507624d004b"),
    ("GnBu", "f7fcf0ebf7e5e0f3dbd6efd0ccebc5bae4bda7ddb591d4bd7accc464bfcc4db2d33c9fc82a8bbe1979b50867ab085395084081"),
    ("OrRd", "fff7ecfeefdafee8c8fddeb3fdd49efdc791fdba83fca36efc8c59f57850ef6447e24933d62f1ec4170fb200009700007f0000"),
    ("PuBu", "fff7fbf5eff6ece7f2dedcecd0d1e6bbc7e0a5bddb8cb3d573a9cf549cc7358fc01c7fb8056faf04649e04598c034871023858"),
    ("PuRd", "f7f4f9efeaf4e7e1efddcde4d4b9dacea6d0c993c7d47cbbdf64afe3469ce72989da1d6fcd1256b2094c9700427e003067001f"),
    ("RdPu", "fff7f3feebe8fde0ddfcd2cefcc5c0fbb2bafa9eb5f883abf767a1ea4d9cdc3397c4198aad017e93017a79017760007049006a"),
    ("gray", "000000ffffff"),
    ("hot", "0b00003500005f0000890000b30000dd0000ff0800ff3200ff5c00ff8600ffb000ffda00ffff07ffff46ffff85ffffc4ffffff"),
    ("cool", "00ffffff00ff"),
    ("spring", "ff00ffffff00"),
    ("summer", "008066ffff66"),
    ("autumn", "ff0000ffff00"),
    ("winter", "0000ff00ff80"),
    ("bone", "0000000e0e131c1c272a2a3a38384e464661545574626882707b907e8f9e8ca2ac9ab5baa9c8c8bfd6d6d5e4e4eaf2f2ffffff"),
    (
        "copper",
        "000000140c082819103b25184f3220633e28774b308a57389e6440b27048c67d50d98958ed9660ffa267ffaf6fffbb77ffc77f",
    ),
    (
        "terrain",
        "3333991e5ec40888ee00acc401cc6641d97381e680c1f38dfefe98ded587beac769e8365815e56a18781c1b0ace1d9d7ffffff",
    ),
    (
        "gist_earth",
        "0000000b157515397820597b2b737e3485763b8e6243974f5ea04b7fa85399af58b4b65dbdab62c8a779dab7a0ecd3cefdfbfb",
    ),
];

/// Qualitative color maps: lists of separate colors.
const QUALITATIVE_MAPS: &[(&str, &str)] = &[
    ("tab10", "1f77b4ff7f0e2ca02cd627289467bd8c564be377c27f7f7fbcbd2217becf"),
    (
        "tab20",
        "1f77b4aec7e8ff7f0effbb782ca02c98df8ad62728ff98969467bdc5b0d58c564bc49c94e377c2f7b6d27f7f7fc7c7c7bcbd22\
         dbdb8d17becf9edae5",
    ),
    ("Set1", "e41a1c377eb84daf4a984ea3ff7f00ffff33a65628f781bf999999"),
    ("Set2", "66c2a5fc8d628da0cbe78ac3a6d854ffd92fe5c494b3b3b3"),
    ("Set3", "8dd3c7ffffb3bebadafb807280b1d3fdb462b3de69fccde5d9d9d9bc80bdccebc5ffed6f"),
    ("Pastel1", "fbb4aeb3cde3ccebc5decbe4fed9a6ffffcce5d8bdfddaecf2f2f2"),
    ("Dark2", "1b9e77d95f027570b3e7298a66a61ee6ab02a6761d666666"),
    ("Paired", "a6cee31f78b4b2df8a33a02cfb9a99e31a1cfdbf6fff7f00cab2d66a3d9affff99b15928"),
    ("Accent", "7fc97fbeaed4fdc086ffff99386cb0f0027fbf5b17666666"),
];
