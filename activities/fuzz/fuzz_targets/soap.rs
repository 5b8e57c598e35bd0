#![no_main]
//! Answers in XML, as SOAP services write it.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = osint_activities::parse::xml::parse(data);
    osint_activities_fuzz::answer(data);
});
