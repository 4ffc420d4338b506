//! The commands as their users meet them: real files, real processes, whole replies.

mod example;
mod hive;
mod init;
mod layers;
mod readme;
