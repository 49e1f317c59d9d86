//! (words to come)
