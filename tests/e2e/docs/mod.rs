//! What is written down is what happens: the manual, the README, the form of replies, recorded transcripts,
//! completions, scripts, the example vault, and the layers of the source.

mod completion;
mod corpus;
mod embedding;
mod example_vault;
mod examples;
mod guide;
mod heartbeat;
mod hooks;
mod json;
pub mod layers;
mod manual;
mod output;
mod readme;
mod scripts;
mod security;
