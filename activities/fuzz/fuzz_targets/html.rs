#![no_main]
//! Answers in HTML, as registers without an interface for programs write it.

libfuzzer_sys::fuzz_target!(|data: &[u8]| osint_activities_fuzz::answer(data));
