//! Sentence models beyond the one that ships: those of `fastembed`, and endpoints that speak OpenAI's embeddings.
