//! The vectors of passages, in one append-only file mapped into memory. It has one record for each text that was ever
//! embedded, keyed by the text's hash, so that nothing is embedded twice. Each component is stored in one byte.
//!
//! The sign bits of all vectors are also kept in memory. With very many vectors, a query is compared with these first,
//! and then with the full vectors of only the few thousand that seem nearest. The query keeps four bits of each
//! component, and each vector the share of its length that its signs give, so that the comparison estimates the cosine
//! (RaBitQ, Gao and Long 2024, <https://doi.org/10.1145/3654970>, without its random rotation). With only the query's
//! signs, one in twelve of the ten nearest was missed. A graph index (HNSW, usearch 2) was tried and rejected. For
//! 100,000 such vectors it costs 53 s of CPU and 85 MB to build, and finds 96 to 97 % of the ten nearest. It needs 4 to
//! 5 ms for the thousand that a search wants. Sign bits need no building, respect filters, and drop deleted vectors.

use crate::error::IndexError;
use crate::fulltext::PassagePlace;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tantivy::directory::{Directory, MmapDirectory, OwnedBytes};

/// Bytes of a record before its components: the hash of the text, and the scale.
const RECORD_HEAD_BYTES: usize = 8 + 4;
/// Bytes of the checksum at the end of a record.
const RECORD_CHECKSUM_BYTES: usize = 4;
/// Suffix of a vector file's name.
const VECTORS_FILE_SUFFIX: &str = ".vectors";
/// Sign bits per word.
const SIGN_WORD_BITS: usize = 64;
/// Bits per component of a query that is compared with sign bits.
const QUERY_BITS: usize = 4;
/// Steps of an estimated distance from the same direction to a right angle.
const RIGHT_ANGLE_STEPS: f32 = 2_000.0;
/// Largest estimated distance: that of opposite directions.
pub(crate) const MAX_ESTIMATED_DISTANCE: u16 = 4_000;
/// Files with fewer vectors aren't compacted.
const MIN_COMPACTED_VECTORS: usize = 1_000;

/// A vector with one byte per component, and the scale of the components.
#[derive(Clone, Debug)]
pub(crate) struct QuantizedVector {
    scale: f32,
    numbers: Vec<i8>,
}

impl QuantizedVector {
    /// Quantizes a vector to one byte per component.
    #[allow(clippy::cast_possible_truncation, reason = "in -127 to 127 by the scale")]
    pub(crate) fn quantize(vector: &[f32]) -> QuantizedVector {
        let largest = vector.iter().fold(0_f32, |largest, value| largest.max(value.abs())).max(f32::MIN_POSITIVE);
        let scale = largest / 127.0;
        QuantizedVector { scale, numbers: vector.iter().map(|value| (value / scale).round() as i8).collect() }
    }
}

pub(crate) struct VectorTable {
    /// Name of the model that made the vectors.
    model: String,
    /// Number of components per vector, or 0 while it's unknown.
    dimensions: usize,
    path: PathBuf,
    /// The file's content when it was opened.
    mapped: Option<OwnedBytes>,
    /// Records appended to the file since it was mapped.
    fresh: Vec<u8>,
    slots: HashMap<u64, usize>,
    /// The sign bits of each record, padded to whole words.
    signs: Vec<u64>,
    /// For each record the factor from the sum of a direction's components, each with the record's sign, to its cosine.
    sign_factors: Vec<f32>,
    /// Revision of the set of vectors; it changes with each modification.
    stamp: u64,
}

impl VectorTable {
    /// Creates an empty table for a model without stored vectors, whose dimensions are unknown.
    pub(crate) fn empty(folder: &Path, model: &str) -> VectorTable {
        let path = folder.join(format!("{model}.0{VECTORS_FILE_SUFFIX}"));
        VectorTable {
            model: model.to_owned(),
            dimensions: 0,
            path,
            mapped: None,
            fresh: Vec::new(),
            slots: HashMap::new(),
            signs: Vec::new(),
            sign_factors: Vec::new(),
            stamp: next_stamp(),
        }
    }

    /// Returns the models with vectors in this folder, their dimensions, and their size in bytes.
    pub(crate) fn stored_models(folder: &Path) -> Vec<(String, usize, u64)> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let read = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let (model, dimensions) = name.strip_suffix(VECTORS_FILE_SUFFIX)?.rsplit_once('.')?;
            Some((model.to_owned(), dimensions.parse().ok()?, entry.metadata().ok()?.len()))
        };
        entries.filter_map(read).collect()
    }

    /// Opens the file in this folder. Texts of records with a wrong checksum are embedded again.
    pub(crate) fn open(folder: &Path, model: &str, dimensions: usize) -> Result<VectorTable, IndexError> {
        let name = format!("{model}.{dimensions}{VECTORS_FILE_SUFFIX}");
        let path = folder.join(&name);
        let size = RECORD_HEAD_BYTES + dimensions + RECORD_CHECKSUM_BYTES;
        let fail = |error: &std::io::Error| IndexError::disk("cannot open its vectors", error);
        let length = match std::fs::metadata(&path) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(fail(&error)),
        };
        // A crash may leave part of a record at the end. It's cut off so that the next record starts in the right
        // place.
        let whole = length - length % size as u64;
        if whole < length {
            let file = File::options().write(true).open(&path).map_err(|error| fail(&error))?;
            file.set_len(whole).map_err(|error| fail(&error))?;
        }
        let mapped = if whole > 0 {
            let folder = MmapDirectory::open(folder).map_err(|error| IndexError::new("cannot be opened", error))?;
            let file =
                folder.open_read(Path::new(&name)).map_err(|error| IndexError::new("cannot be opened", error))?;
            Some(file.read_bytes()?)
        } else {
            None
        };
        let model = model.to_owned();
        let mut vectors = VectorTable { dimensions, path, mapped, ..VectorTable::empty(folder, &model) };
        let count = vectors.mapped.as_ref().map_or(0, |mapped| mapped.len() / size);
        let mut signs = Vec::with_capacity(count * dimensions.div_ceil(SIGN_WORD_BITS));
        let mut sign_factors = Vec::with_capacity(count);
        for slot in 0..count {
            let record = vectors.record(slot);
            signs.extend(sign_words(&record[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + dimensions]));
            sign_factors.push(sign_factor(&record[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + dimensions]));
            if record_checksum(&record[..size - RECORD_CHECKSUM_BYTES]) == record[size - RECORD_CHECKSUM_BYTES..] {
                let hash = u64::from_le_bytes(record[..8].try_into().unwrap_or_default());
                vectors.slots.insert(hash, slot);
            }
        }
        (vectors.signs, vectors.sign_factors) = (signs, sign_factors);
        Ok(vectors)
    }

    /// Returns the revision of the set of vectors. It is unique across all vector files.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Returns the name of the model that made the vectors.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// Returns the number of components per vector.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn record_bytes(&self) -> usize {
        RECORD_HEAD_BYTES + self.dimensions + RECORD_CHECKSUM_BYTES
    }

    /// Whether more than half of the file's vectors no longer belong to a text.
    pub(crate) fn is_mostly_dead(&self, alive: &HashSet<u64>) -> bool {
        let living = self.slots.keys().filter(|hash| alive.contains(hash)).count();
        let all = (self.mapped.as_ref().map_or(0, |mapped| mapped.len()) + self.fresh.len()) / self.record_bytes();
        all > MIN_COMPACTED_VECTORS && living * 2 < all
    }

    /// Rewrites the file with the live vectors; the old file stays until the new one is complete and on disk.
    pub(crate) fn compact(&mut self, folder: &Path, alive: &HashSet<u64>) -> Result<(), IndexError> {
        let fail = |error: std::io::Error| IndexError::disk("cannot keep its vectors", &error);
        let next = self.path.with_extension("next");
        let mut file = std::io::BufWriter::new(File::create(&next).map_err(fail)?);
        let mut slots: Vec<usize> =
            self.slots.iter().filter(|(hash, _)| alive.contains(hash)).map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        for slot in slots {
            file.write_all(self.record(slot)).map_err(fail)?;
        }
        let file = file.into_inner().map_err(|error| fail(error.into_error()))?;
        file.sync_all().map_err(fail)?;
        std::fs::rename(&next, &self.path).map_err(fail)?;
        *self = VectorTable::open(folder, &self.model, self.dimensions)?;
        Ok(())
    }

    /// Removes the file. Its mapping stays readable until it's dropped.
    pub(crate) fn remove(folder: &Path, model: &str, dimensions: usize) {
        // A file that can't be removed only takes up space. The next start tries again.
        let _ = std::fs::remove_file(folder.join(format!("{model}.{dimensions}{VECTORS_FILE_SUFFIX}")));
    }

    fn record(&self, slot: usize) -> &[u8] {
        let mapped: &[u8] = self.mapped.as_deref().unwrap_or(&[]);
        let (size, at) = (self.record_bytes(), slot * self.record_bytes());
        if at < mapped.len() { &mapped[at..at + size] } else { &self.fresh[at - mapped.len()..][..size] }
    }

    /// Returns the number of vectors.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn slot(&self, hash: u64) -> Option<usize> {
        self.slots.get(&hash).copied()
    }

    /// Appends vectors, keyed by the hashes of their texts.
    pub(crate) fn append(&mut self, all: &[(u64, Vec<f32>)]) -> Result<(), IndexError> {
        let mut bytes = Vec::new();
        for (hash, vector) in all.iter().filter(|(_, vector)| vector.len() == self.dimensions) {
            let small = QuantizedVector::quantize(vector);
            let start = bytes.len();
            bytes.extend(hash.to_le_bytes());
            bytes.extend(small.scale.to_le_bytes());
            bytes.extend(small.numbers.iter().map(|number| number.to_le_bytes()[0]));
            let sum = record_checksum(&bytes[start..]);
            bytes.extend(sum);
        }
        let fail = |error: std::io::Error| IndexError::disk("cannot keep its vectors", &error);
        let mut file = File::options().append(true).create(true).open(&self.path).map_err(fail)?;
        let before = file.metadata().map_err(fail)?.len();
        if let Err(error) = file.write_all(&bytes) {
            let _ = file.set_len(before); // a part of a record would shift all that follow
            return Err(fail(error));
        }
        let first = (self.mapped.as_ref().map_or(0, |mapped| mapped.len()) + self.fresh.len()) / self.record_bytes();
        for (number, record) in bytes.chunks_exact(self.record_bytes()).enumerate() {
            let hash = u64::from_le_bytes(record[..8].try_into().unwrap_or_default());
            self.slots.insert(hash, first + number);
            let components = &record[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + self.dimensions];
            self.signs.extend(sign_words(components));
            self.sign_factors.push(sign_factor(components));
        }
        self.fresh.extend(bytes);
        self.stamp = next_stamp();
        Ok(())
    }

    /// Returns the cosine of a stored vector and another vector.
    pub(crate) fn cosine(&self, slot: usize, to: &QuantizedVector) -> f32 {
        let record = self.record(slot);
        let scale = f32::from_le_bytes(record[8..12].try_into().unwrap_or_default());
        scale * to.scale * dot(&record[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + self.dimensions], &to.numbers)
    }

    /// Estimates from the signs of stored vectors how far they are from `to`: 0 for the same direction, 2,000 for a
    /// right angle, and 4,000 for the opposite direction.
    pub(crate) fn estimated_distances(&self, places: &[PassagePlace], to: &QuantizedVector) -> Vec<u16> {
        let query = SignQuery::new(to);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("popcnt") {
            #[allow(
                unsafe_code,
                reason = "a function for POPCNT is called where the machine was just seen to have it"
            )]
            // SAFETY: the function only requires POPCNT.
            return unsafe { query.distances_popcnt(self, places) };
        }
        query.distances(self, places)
    }

    /// Returns the vector in this slot.
    pub(crate) fn vector(&self, slot: usize) -> Vec<f32> {
        let record = self.record(slot);
        let scale = f32::from_le_bytes(record[8..12].try_into().unwrap_or_default());
        record[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + self.dimensions]
            .iter()
            .map(|byte| f32::from(i8::from_le_bytes([*byte])) * scale)
            .collect()
    }
}

/// Returns the dot product, computed with the widest instructions that the CPU supports.
#[allow(clippy::cast_precision_loss, reason = "what is lost is far below what a byte for each number loses")]
fn dot(bytes: &[u8], numbers: &[i8]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[allow(unsafe_code, reason = "a function for AVX2 is called where the machine was just seen to have it")]
        // SAFETY: the function only requires AVX2.
        return unsafe { dot_avx2(bytes, numbers) } as f32;
    }
    dot_bytes(bytes, numbers) as f32
}

/// The same as [`dot_bytes`], compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2(bytes: &[u8], numbers: &[i8]) -> i32 {
    dot_bytes(bytes, numbers)
}

/// Returns the dot product in a form that the compiler can vectorize.
#[inline(always)]
fn dot_bytes(bytes: &[u8], numbers: &[i8]) -> i32 {
    bytes.iter().zip(numbers).map(|(a, b)| i32::from(i8::from_le_bytes([*a])) * i32::from(*b)).sum()
}

/// Returns the sign bits of a record's components. A bit is set where the component is negative.
fn sign_words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(SIGN_WORD_BITS).map(|bytes| bytes.iter().rev().fold(0, |word, byte| word << 1 | u64::from(byte >> 7)))
}

/// Returns a record's length divided by the sum of its components without their signs, or 0 if all are 0.
#[allow(clippy::cast_precision_loss, reason = "components have one byte, and there are a few thousand at most")]
fn sign_factor(bytes: &[u8]) -> f32 {
    let components = || bytes.iter().map(|byte| i32::from(i8::from_le_bytes([*byte])));
    let squares: i32 = components().map(|number| number * number).sum();
    let sum: i32 = components().map(i32::abs).sum();
    if sum == 0 { 0.0 } else { (squares as f32).sqrt() / sum as f32 }
}

/// A direction, prepared to be compared with sign bits. Each of its components is one of 16 levels between the lowest
/// and the highest, so that the sum of those where a bit is set needs only bits to be counted.
struct SignQuery {
    /// For each word of signs the bits of 64 components' levels, lowest bit first.
    planes: Vec<[u64; QUERY_BITS]>,
    /// The component of level 0, and what each level adds.
    lowest: f32,
    step: f32,
    /// The sum of all components.
    sum: f32,
}

impl SignQuery {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "one byte each"
    )]
    fn new(of: &QuantizedVector) -> SignQuery {
        let squares: i32 = of.numbers.iter().map(|number| i32::from(*number).pow(2)).sum();
        let length = (squares as f32).sqrt().max(1.0);
        let components: Vec<f32> = of.numbers.iter().map(|number| f32::from(*number) / length).collect();
        let lowest = components.iter().copied().fold(f32::MAX, f32::min);
        let highest = components.iter().copied().fold(f32::MIN, f32::max);
        let step = ((highest - lowest) / ((1 << QUERY_BITS) - 1) as f32).max(f32::MIN_POSITIVE);
        let planes = components.chunks(SIGN_WORD_BITS).map(|chunk| {
            let mut planes = [0; QUERY_BITS];
            for (component, number) in chunk.iter().zip(0..) {
                let level = ((component - lowest) / step).round() as u64;
                planes.iter_mut().zip(0..).for_each(|(plane, bit)| *plane |= (level >> bit & 1) << number);
            }
            planes
        });
        SignQuery { planes: planes.collect(), lowest, step, sum: components.iter().sum() }
    }

    /// The same as [`SignQuery::distances`], compiled for POPCNT.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn distances_popcnt(&self, table: &VectorTable, places: &[PassagePlace]) -> Vec<u16> {
        self.distances(table, places)
    }

    /// Returns the estimated distances of records.
    #[inline(always)]
    fn distances(&self, table: &VectorTable, places: &[PassagePlace]) -> Vec<u16> {
        // With sizes known at compile time it takes a third of the time. 384, 512, 768 and 1,024 dimensions are common.
        match self.planes.len() {
            6 => self.distances_fixed::<6>(table, places),
            8 => self.distances_fixed::<8>(table, places),
            12 => self.distances_fixed::<12>(table, places),
            16 => self.distances_fixed::<16>(table, places),
            count => {
                let own = |place: &PassagePlace| table.signs.get(place.slot * count..(place.slot + 1) * count);
                let distance = |place| self.distance(own(place), &self.planes, table.sign_factors.get(place.slot));
                places.iter().map(distance).collect()
            }
        }
    }

    /// A version of [`SignQuery::distances`] for records of `WORDS` words.
    #[inline(always)]
    fn distances_fixed<const WORDS: usize>(&self, table: &VectorTable, places: &[PassagePlace]) -> Vec<u16> {
        let Some(planes) = self.planes.first_chunk::<WORDS>() else { return vec![0; places.len()] };
        let mut distances = Vec::with_capacity(places.len());
        // A loop, since the body of a closure isn't compiled for POPCNT unless it's small.
        for place in places {
            let own = table.signs.get(place.slot * WORDS..).and_then(<[u64]>::first_chunk::<WORDS>);
            let factor = table.sign_factors.get(place.slot);
            distances.push(self.distance(own.map(<[u64; WORDS]>::as_slice), planes, factor));
        }
        distances
    }

    /// Returns the estimated distance of a record with these signs. One without signs counts as near.
    #[inline(always)]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a vector has a few thousand components at most, and the distance is in 0 to 4,000"
    )]
    fn distance(&self, signs: Option<&[u64]>, planes: &[[u64; QUERY_BITS]], factor: Option<&f32>) -> u16 {
        let (Some(signs), Some(factor)) = (signs, factor) else { return 0 };
        let (mut negative, mut levels) = (0, 0);
        for (word, planes) in signs.iter().zip(planes) {
            negative += word.count_ones();
            for (plane, bit) in planes.iter().zip(0..) {
                levels += (word & plane).count_ones() << bit;
            }
        }
        let with_signs = self.sum - 2.0 * (self.lowest * negative as f32 + self.step * levels as f32);
        ((1.0 - with_signs * factor) * RIGHT_ANGLE_STEPS).round().clamp(0.0, f32::from(MAX_ESTIMATED_DISTANCE)) as u16
    }
}

fn next_stamp() -> u64 {
    static NEXT_STAMP: AtomicU64 = AtomicU64::new(0);
    NEXT_STAMP.fetch_add(1, Ordering::Relaxed)
}

fn record_checksum(bytes: &[u8]) -> [u8; 4] {
    let hash = blake3::hash(bytes);
    let [a, b, c, d, ..] = *hash.as_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_are_estimated_at_every_length() {
        let folder = tempfile::tempdir().expect("a folder");
        for dimensions in [3_u16, 100, 384, 512, 768, 1024] {
            let mut vectors = VectorTable::open(folder.path(), "m", dimensions.into()).expect("opened");
            let vector =
                |every: u16| (0..dimensions).map(|i| if i % every == 0 { -1.0 } else { 1.0 }).collect::<Vec<f32>>();
            let opposite = vector(3).iter().map(|number| -number).collect();
            vectors.append(&[(1, vector(2)), (2, vector(3)), (3, opposite)]).expect("kept");
            let places = [0, 1, 2].map(|slot| PassagePlace { doc: 0, slot });
            // Where all components have the same size, signs and levels lose nothing.
            let apart = (0..dimensions).filter(|i| (i % 2 == 0) != (i % 3 == 0)).count();
            let apart = u16::try_from((apart * 4000 + usize::from(dimensions) / 2) / usize::from(dimensions));
            let apart = apart.expect("small");
            let near = |every| vectors.estimated_distances(&places, &QuantizedVector::quantize(&vector(every)));
            for (found, wanted) in [(near(2), [0, apart, 4000 - apart]), (near(3), [apart, 0, 4000])] {
                let close = found.iter().zip(wanted).all(|(found, wanted)| found.abs_diff(wanted) <= 1);
                assert!(close, "{found:?} for {wanted:?} with {dimensions} dimensions");
            }
        }
    }

    #[test]
    fn vectors_without_length_have_a_distance() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut vectors = VectorTable::open(folder.path(), "m", 384).expect("opened");
        vectors.append(&[(1, vec![0.0; 384]), (2, vec![1.0; 384])]).expect("kept");
        let places = [0, 1].map(|slot| PassagePlace { doc: 0, slot });
        let zero = QuantizedVector::quantize(&[0.0; 384]);
        assert_eq!(vectors.estimated_distances(&places, &zero), [2000, 2000]);
        let ones = QuantizedVector::quantize(&[1.0; 384]);
        assert_eq!(vectors.estimated_distances(&places, &ones), [2000, 0]);
    }

    #[test]
    fn vectors_last_and_damage_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let vector = |seed: u16| -> Vec<f32> {
            let values: Vec<f32> = (0..384_u16).map(|i| f32::from((i * seed) % 17) - 8.0).collect();
            let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
            values.into_iter().map(|value| value / length).collect()
        };
        let open = || VectorTable::open(folder.path(), "m", 384).expect("opened");
        let mut vectors = open();
        vectors.append(&[(1, vector(1)), (2, vector(2))]).expect("kept");
        let near = vectors.cosine(vectors.slot(1).expect("there"), &QuantizedVector::quantize(&vector(1)));
        assert!((near - 1.0).abs() < 0.01, "{near}");
        drop(vectors);
        let file = folder.path().join("m.384.vectors");
        let mut bytes = std::fs::read(&file).expect("read");
        bytes[30] ^= 1;
        bytes.extend([7; 100]);
        std::fs::write(&file, bytes).expect("written");
        let mut vectors = open();
        assert_eq!((vectors.slot(1), vectors.slot(2)), (None, Some(1)));
        vectors.append(&[(3, vector(3))]).expect("kept");
        drop(vectors);
        let mut vectors = open();
        assert_eq!(VectorTable::stored_models(folder.path()), [("m".to_owned(), 384, 3 * (384 + 16))]);
        vectors.compact(folder.path(), &HashSet::from([3, 9])).expect("compacted");
        assert_eq!((vectors.len(), vectors.slot(2), vectors.slot(3)), (1, None, Some(0)));
        let third = vectors.vector(vectors.slot(3).expect("there"));
        assert!(third.iter().zip(vector(3)).all(|(a, b)| (a - b).abs() < 0.01));
    }
}
