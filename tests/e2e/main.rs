//! The commands as their users meet them: real files, real processes, whole replies.

mod agree;
mod append;
mod backup;
mod batch;
mod caches;
mod crash;
mod decide;
mod example;
mod hf;
mod hive;
mod index;
mod init;
mod layers;
mod lineage;
mod lives;
mod log;
mod manual;
mod model;
mod output;
mod policy;
mod project;
mod readme;
mod refuse;
mod require;
mod task;
mod verify;
