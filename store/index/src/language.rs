//! The languages whose words are stemmed, how a text's language is recognized, and its stop words.

use crate::analyzer::{fold_text, split_words};
use frostem::{Algorithm, Stemmer};
use std::collections::HashSet;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use whatlang::{Detector, Lang};

/// The language of a text is recognized by its first bytes.
const MAX_DETECTED_BYTES: usize = 2_000;
/// Number of stop words by which a short text's language is believed.
const MIN_STOP_WORDS: usize = 2;
/// Shorter words have no stem.
const MIN_STEMMED_CHARS: usize = 3;

/// A language whose words are stemmed, by its row in the table of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StemLanguage(u8);

/// What is known about a language: its ISO 639-1 code, its stemmer, and its name in the detector.
type LanguageRow = (&'static str, Algorithm, Lang);

/// The first one is the language of texts whose language isn't recognized. The index stores positions in this table:
/// a change of it needs a new index format.
const LANGUAGES: [LanguageRow; 20] = [
    ("en", Algorithm::English, Lang::Eng),
    ("ar", Algorithm::Arabic, Lang::Ara),
    ("ca", Algorithm::Catalan, Lang::Cat),
    ("cs", Algorithm::Czech, Lang::Ces),
    ("da", Algorithm::Danish, Lang::Dan),
    ("de", Algorithm::German, Lang::Deu),
    ("el", Algorithm::Greek, Lang::Ell),
    ("es", Algorithm::Spanish, Lang::Spa),
    ("fi", Algorithm::Finnish, Lang::Fin),
    ("fr", Algorithm::French, Lang::Fra),
    ("hu", Algorithm::Hungarian, Lang::Hun),
    ("it", Algorithm::Italian, Lang::Ita),
    ("nl", Algorithm::Dutch, Lang::Nld),
    ("no", Algorithm::Norwegian, Lang::Nob),
    ("pl", Algorithm::Polish, Lang::Pol),
    ("pt", Algorithm::Portuguese, Lang::Por),
    ("ro", Algorithm::Romanian, Lang::Ron),
    ("ru", Algorithm::Russian, Lang::Rus),
    ("sv", Algorithm::Swedish, Lang::Swe),
    ("tr", Algorithm::Turkish, Lang::Tur),
];

/// Languages without a stemmer here that would be taken for one of the others.
const OTHER_LANGUAGES: [Lang; 11] = [
    Lang::Bel,
    Lang::Bul,
    Lang::Cmn,
    Lang::Heb,
    Lang::Hin,
    Lang::Jpn,
    Lang::Kor,
    Lang::Mkd,
    Lang::Pes,
    Lang::Ukr,
    Lang::Vie,
];

/// The stop words of each language, folded.
static STOP_WORDS: LazyLock<Vec<HashSet<String>>> = LazyLock::new(|| {
    let of = |code: &str| stop_words::lookup(code).unwrap_or_default().iter().map(|word| fold_text(word)).collect();
    LANGUAGES.iter().map(|(code, ..)| of(code)).collect()
});

static DETECTOR: LazyLock<Detector> = LazyLock::new(|| {
    let known = LANGUAGES.iter().map(|(_, _, lang)| *lang);
    Detector::with_allowlist(known.chain(OTHER_LANGUAGES).collect())
});

impl StemLanguage {
    /// English: the language of code, and of texts whose language isn't recognized.
    pub const ENGLISH: StemLanguage = StemLanguage(0);

    /// Returns all languages.
    pub fn all() -> impl Iterator<Item = StemLanguage> {
        (0..).take(LANGUAGES.len()).map(StemLanguage)
    }

    /// Recognizes the language of a text. Returns `None` if the text is too short or has no known language: code and
    /// names look like any language.
    pub fn detect(text: &str) -> Option<StemLanguage> {
        let text = &text[..text.floor_char_boundary(MAX_DETECTED_BYTES)];
        let found = DETECTOR.detect(text)?;
        let language = StemLanguage::all().find(|language| language.row().2 == found.lang())?;
        let is_clear = found.is_reliable() || {
            let words = split_words(text);
            let count = |of: StemLanguage| words.iter().filter(|word| of.is_stop_word(&word.text)).count();
            let own = count(language);
            own >= MIN_STOP_WORDS && (language == StemLanguage::ENGLISH || own > count(StemLanguage::ENGLISH))
        };
        is_clear.then_some(language)
    }

    /// Returns the language with this number in the index.
    pub(crate) fn from_index_number(number: u64) -> StemLanguage {
        StemLanguage::all().find(|language| language.to_index_number() == number).unwrap_or(StemLanguage::ENGLISH)
    }

    pub(crate) fn to_index_number(self) -> u64 {
        self.0.into()
    }

    fn row(self) -> &'static LanguageRow {
        LANGUAGES.get(usize::from(self.0)).unwrap_or(&LANGUAGES[0])
    }

    /// Returns the ISO 639-1 code.
    pub fn code(self) -> &'static str {
        self.row().0
    }

    /// Whether a folded word is so common in this language that it says little.
    pub fn is_stop_word(self, word: &str) -> bool {
        STOP_WORDS.get(usize::from(self.0)).is_some_and(|words| words.contains(word))
    }

    /// Returns the language's stemmer.
    pub fn stemmer(self) -> LanguageStemmer {
        LanguageStemmer { language: self, stemmer: Stemmer::new(self.row().1) }
    }
}

/// The stemmer of a language.
pub struct LanguageStemmer {
    language: StemLanguage,
    stemmer: Stemmer,
}

impl LanguageStemmer {
    /// Returns the stem of a word as it's written, folded. What isn't a word, such as an identifier, is only folded.
    pub fn stem(&self, source: &str) -> String {
        let folded = fold_text(source);
        if folded.chars().count() < MIN_STEMMED_CHARS || !folded.chars().all(char::is_alphabetic) {
            return folded;
        }
        if source.is_ascii() || self.language == StemLanguage::ENGLISH {
            return fold_text(&self.stemmer.stem(&folded));
        }
        // Stemmers know accents, so these are folded afterwards. A letter with its accent is one character for them.
        let written: String = source.nfc().filter(|c| !matches!(c, '\'' | '\u{2019}')).collect();
        fold_text(&self.stemmer.stem(&written.to_lowercase()))
    }

    /// Returns the stem as a term of the index. Stems of different languages are different terms: a passage is only
    /// found by the stems of its own language.
    pub fn stem_term(&self, source: &str) -> String {
        format!("{}:{}", self.language.code(), self.stem(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn languages_are_recognized_by_sentences() {
        for (code, text) in [
            ("en", "The index can be rebuilt from the documents at any time."),
            ("ar", "يمكن إعادة بناء الفهرس من المستندات في أي وقت."),
            ("ca", "L'índex es pot reconstruir a partir dels documents en qualsevol moment."),
            ("cs", "Index lze kdykoli znovu vytvořit z dokumentů, které jsou uloženy na disku."),
            ("da", "Indekset kan altid genopbygges ud fra dokumenterne, hvis det bliver slettet."),
            ("de", "Der Index kann jederzeit aus den Dokumenten neu aufgebaut werden."),
            ("el", "Το ευρετήριο μπορεί να ξαναχτιστεί από τα έγγραφα ανά πάσα στιγμή."),
            ("es", "El índice se puede reconstruir a partir de los documentos en cualquier momento."),
            ("fi", "Hakemisto voidaan rakentaa uudelleen asiakirjoista milloin tahansa."),
            ("fr", "L'index peut être reconstruit à tout moment à partir des documents."),
            ("hu", "Az index bármikor újra felépíthető a dokumentumokból."),
            ("it", "L'indice può essere ricostruito in qualsiasi momento a partire dai documenti."),
            ("nl", "De index kan op elk moment opnieuw worden opgebouwd uit de documenten."),
            ("no", "Indeksen kan når som helst bygges opp igjen fra dokumentene, også etter at den er slettet."),
            ("pl", "Indeks można w każdej chwili odbudować z dokumentów, które są na dysku."),
            ("pt", "O índice pode ser reconstruído a partir dos documentos a qualquer momento."),
            ("ro", "Indexul poate fi reconstruit oricând din documentele care sunt pe disc."),
            ("ru", "Индекс можно в любое время построить заново из документов."),
            ("sv", "Indexet kan när som helst byggas om från dokumenten, även om det har tagits bort."),
            ("tr", "Bu kitaplar masanın üzerinde duruyor ve onları kimse okumuyor."),
        ] {
            assert_eq!(StemLanguage::detect(text).map(StemLanguage::code), Some(code), "{text}");
        }
        for text in
            ["", "x", "Berlin", "fn read_file(path: &Path) -> Vec<u8> { std::fs::read(path) }", "索引可以随时重建。"]
        {
            let found = StemLanguage::detect(text).map(StemLanguage::code);
            assert!(matches!(found, None | Some("en")), "{text}: {found:?}");
        }
    }

    #[test]
    fn stems_ignore_accents_and_keep_identifiers() {
        let stem = |code: &str, word: &str| {
            let language = StemLanguage::all().find(|language| language.code() == code).expect(code);
            language.stemmer().stem(word)
        };
        for (code, one, other) in [
            ("en", "running", "Runs"),
            ("de", "Häuser", "Haus"),
            ("de", "Ha\u{308}user", "Hauses"),
            ("es", "canciones", "canción"),
            ("fr", "chevaux", "cheval"),
            ("ru", "документов", "документы"),
            ("tr", "belgelerden", "belgeler"),
            ("el", "έγγραφα", "εγγραφα"),
        ] {
            assert_eq!(stem(code, one), stem(code, other), "{code}");
        }
        assert_eq!((stem("de", "ERR_0x1F"), stem("fr", "東京")), ("err_0x1f".to_owned(), "東京".to_owned()));
        assert_eq!(stem("en", "naïvely"), stem("en", "naively"));
    }

    #[test]
    fn stop_words_belong_to_a_language() {
        let german = StemLanguage::detect("Das ist ein Satz, und er ist nicht lang.").expect("German");
        assert!(german.is_stop_word("und") && german.is_stop_word("fur") && !german.is_stop_word("the"));
        assert!(StemLanguage::ENGLISH.is_stop_word("the") && !StemLanguage::ENGLISH.is_stop_word("die"));
        let without = StemLanguage::all().filter(|one| stop_words::lookup(one.code()).is_none());
        assert_eq!(without.map(StemLanguage::code).collect::<Vec<_>>(), ["cs", "pl"]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = StemLanguage::detect(&text);
            for language in StemLanguage::all() {
                prop_assert!(language.stemmer().stem_term(&text).starts_with(language.code()));
            }
        }
    }
}
