#![no_main]
//! Answers in JSON.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = osint_activities::parse::json::parse(data);
    osint_activities_fuzz::answer(data);
});
