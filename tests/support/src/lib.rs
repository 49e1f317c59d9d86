//! What tests and benchmarks share: clocks and counters of the machine, folders that go away, simulated devices for a
//! hub, and the least that a text or a commit costs, to compare with. Nothing of it is in the program.

mod baseline_database;
pub mod hub_load;
pub mod hub_probe;
pub mod measure;
mod plain_text;
mod stub_embedder;
pub mod typing_clients;

pub use baseline_database::BaselineDatabase;
pub use plain_text::PlainText;
