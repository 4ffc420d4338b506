//! hf-job: commands that outlive their caller, and what becomes of them.

mod approval;
mod detached;
mod end;
mod failure;
mod fire;
mod held;
mod hooks;
mod lost;
mod order;
mod output;
mod retry;
mod tree;
mod vault_gone;
mod waiting;
