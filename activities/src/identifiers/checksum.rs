//! The check-digit methods. Each takes a text of the right form; anything else fails the check rather than panic.

/// The digits of a text, or `None` if it contains anything else.
pub(super) fn digits(text: &str) -> Option<Vec<u32>> {
    text.chars().map(|c| c.to_digit(10)).collect()
}

/// The number a text of digits stands for, modulo `m`.
pub(super) fn modulo(text: &str, m: u32) -> Option<u32> {
    Some(digits(text)?.into_iter().fold(0, |rest, digit| (rest * 10 + digit) % m))
}

/// Digits times weights, summed over the shorter of the two.
pub(super) fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

/// ISO 7064 MOD 97-10: letters count as 10 to 35, the whole number must be 1 modulo 97.
pub(super) fn mod_97_10(text: &str) -> bool {
    let rest = text.chars().try_fold(0u32, |rest, c| {
        let value = c.to_digit(36)?;
        Some((rest * if value < 10 { 10 } else { 100 } + value) % 97)
    });
    rest == Some(1)
}

/// ISO 7064 MOD 11,10: the German VAT number.
pub(super) fn mod_11_10(text: &str) -> bool {
    let Some((check, body)) = digits(text).and_then(|d| d.split_last().map(|(check, body)| (*check, body.to_vec())))
    else {
        return false;
    };
    let rest = body.into_iter().fold(5, |check, digit| {
        let sum = if check == 0 { 10 } else { check } * 2 % 11 + digit;
        sum % 10
    });
    let sum = if rest == 0 { 10 } else { rest } * 2 % 11 + check;
    sum % 10 == 1
}

/// Luhn: every second digit from the right is doubled.
pub(super) fn luhn(text: &str) -> bool {
    let Some(digits) = digits(text) else { return false };
    let sum: u32 = digits.iter().rev().enumerate().map(|(i, d)| if i % 2 == 1 { d * 2 % 10 + d / 5 } else { *d }).sum();
    sum.is_multiple_of(10)
}

/// Weighted sum divisible by eleven.
pub(super) fn eleven(text: &str, weights: &[u32]) -> bool {
    digits(text).is_some_and(|digits| weighted(&digits, weights).is_multiple_of(11))
}

/// Belgian numbers: the last two digits are 97 minus the rest modulo 97.
pub(super) fn belgian(text: &str) -> bool {
    let Some((body, check)) = text.split_at_checked(8) else { return false };
    modulo(body, 97).zip(modulo(check, 100)).is_some_and(|(rest, check)| 97 - rest == check)
}

/// Czech and Slovak IČO.
pub(super) fn ico(text: &str) -> bool {
    let Some(digits) = digits(text).filter(|digits| digits.len() == 8) else { return false };
    let check = match (11 - weighted(&digits, &[8, 7, 6, 5, 4, 3, 2]) % 11) % 11 {
        0 => 1,
        other => other % 10,
    };
    digits[7] == check
}

/// The Czech birth number that sole traders use as a tax number, and the numbers of nine digits that begin with 6. A birth
/// number begins with a date; those before 1954 have nine digits and no check digit.
pub(super) fn birth_number(text: &str) -> bool {
    let Some(all) = digits(text) else { return false };
    match (all.len(), all.first()) {
        (9, Some(6)) => {
            let rest = weighted(&all[1..8], &[8, 7, 6, 5, 4, 3, 2]) % 11;
            (18 - (21 - rest) % 11) % 10 == all[8]
        }
        (9, _) => is_birthday(&all),
        (10, _) => is_birthday(&all) && modulo(&text[..9], 11).is_some_and(|rest| rest % 10 == all[9]),
        _ => false,
    }
}

/// True if six digits are year, month and day. Women's months are higher by 50; where numbers ran out, 20 more.
fn is_birthday(all: &[u32]) -> bool {
    let pair = |at: usize| i16::try_from(all[at] * 10 + all[at + 1]).unwrap_or_default();
    let (short, month, day) = (pair(0), pair(2) % 50 % 20, pair(4));
    let year = match all.len() {
        9 if short >= 80 => 1800 + short,
        9 if short > 53 => return false,
        10 if short < 54 => 2000 + short,
        _ => 1900 + short,
    };
    let narrow = |number: i16| i8::try_from(number).unwrap_or_default();
    jiff::civil::Date::new(year, narrow(month), narrow(day)).is_ok()
}

/// SIRET: Luhn over the whole and over the SIREN in it, except for the branches of La Poste, whose digits add up to a multiple of five.
pub(super) fn siret(text: &str) -> bool {
    let post = text.starts_with("356000000")
        && digits(text).is_some_and(|digits| digits.iter().sum::<u32>().is_multiple_of(5));
    (luhn(text) && text.get(..9).is_some_and(luhn)) || post
}

/// French VAT number without its prefix: two key characters and a SIREN.
pub(super) fn tva(text: &str) -> bool {
    const ALPHABET: &str = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ";
    let Some((key, siren)) = text.split_at_checked(2) else { return false };
    let Some(rest) = modulo(siren, 97) else { return false };
    if !luhn(siren) && !siren.starts_with("000") {
        return false; // numbers with 000 are Monaco's, and no SIREN
    }
    if let Ok(key) = key.parse::<u32>() {
        return (12 + 3 * rest) % 97 == key;
    }
    let place = |c: char| ALPHABET.find(c).and_then(|i| u32::try_from(i).ok());
    let mut key = key.chars();
    let (Some(first), Some(second)) = (key.next().and_then(place), key.next().and_then(place)) else { return false };
    let (factor, offset) = if first < 10 { (24, 10) } else { (34, 100) };
    let Some(check) = (first * factor + second).checked_sub(offset) else { return false };
    modulo(siren, 11).is_some_and(|rest| (rest + 1 + check / 11) % 11 == check % 11)
}

/// Dutch RSIN: the eleven-proof with a negative last weight.
pub(super) fn rsin(text: &str) -> bool {
    // -1 is 10 modulo 11.
    eleven(text, &[9, 8, 7, 6, 5, 4, 3, 2, 10])
}

/// Dutch VAT number without its prefix: a RSIN inside, or since 2020 MOD 97-10 over the whole.
pub(super) fn btw(text: &str) -> bool {
    text.get(..9).is_some_and(rsin) || mod_97_10(&format!("NL{text}"))
}

/// Romanian CUI: weights aligned to the right.
pub(super) fn cui(text: &str) -> bool {
    let Some(digits) = digits(text) else { return false };
    let Some((check, body)) = digits.split_last() else { return false };
    let reversed: Vec<_> = body.iter().rev().copied().collect();
    let sum = weighted(&reversed, &[2, 3, 5, 7, 1, 2, 3, 5, 7]);
    body.len() <= 9 && 10 * sum % 11 % 10 == *check
}

/// The nine digits of a Swiss UID.
pub(super) fn uid(text: &str) -> bool {
    let Some(digits) = digits(text).filter(|digits| digits.len() == 9) else { return false };
    (11 - weighted(&digits, &[5, 4, 3, 2, 7, 6, 5, 4]) % 11) % 11 == digits[8]
}

/// Estonian register code.
pub(super) fn registrikood(text: &str) -> bool {
    let Some(digits) = digits(text).filter(|digits| digits.len() == 8) else { return false };
    let check = match weighted(&digits, &[1, 2, 3, 4, 5, 6, 7]) % 11 {
        10 => weighted(&digits, &[3, 4, 5, 6, 7, 8, 9]) % 11 % 10,
        first => first,
    };
    digits[7] == check
}

/// Estonian VAT number without its prefix.
pub(super) fn kmkr(text: &str) -> bool {
    digits(text).is_some_and(|digits| weighted(&digits, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10))
}
