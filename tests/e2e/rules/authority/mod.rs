//! Only a person can say yes: each test here is named after a finding about who version 0.1.0 took for an operator, and
//! what an approval covered.

mod attacked;
mod attacker;
mod audit;
mod bound;
mod commands;
mod intake;
mod keys;
mod names;
mod programs;
mod settings;
mod signed;
mod stop;
mod tampered;
