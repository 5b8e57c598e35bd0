use super::*;

fn score(a: &str, b: &str) -> f64 {
    let read = |text: &str| Name::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let (there, back) = (read(a).compare(&read(b)), read(b).compare(&read(a)));
    assert_eq!(there.as_ref().map(|it| it.score), back.map(|it| it.score), "{a} / {b}: not the same both ways");
    there.map_or(0.0, |it| it.score)
}

#[test]
fn spellings_of_one_name_match() {
    let pairs = [
        ("Société Générale S.A.", "SOCIETE GENERALE SA"),
        ("Soci\u{e9}t\u{e9} G\u{e9}n\u{e9}rale", "Socie\u{301}te\u{301} Ge\u{301}ne\u{301}rale"),
        ("Example Trading Ltd", "EXAMPLE TRADING LIMITED"),
        ("OOO Romashka", "Romashka LLC"),
        ("Romashka Ltd", "ООО «Ромашка»"),
        ("PJSC Gazprom", "Gazprom"),
        ("ПАО Газпром", "Gazprom PJSC"),
        ("Großhandel Weiß GmbH", "GROSSHANDEL WEISS GMBH"),
        ("Müller Maschinen GmbH", "Mueller Maschinen G.m.b.H."),
        ("Müller Maschinen GmbH", "Muller Maschinen Gesellschaft mit beschränkter Haftung"),
        ("Ørsted A/S", "Orsted AS"),
        ("Nordøst-Frakt", "Nordoest Frakt"),
        ("Łódź Energia sp. z o.o.", "LODZ ENERGIA Sp. z o. o."),
        ("Alza.cz a.s.", "ALZA CZ, akciová společnost"),
        ("VÚB, a. s. v likvidácii", "VUB a.s."),
        ("Marks & Spencer plc", "Marks and Spencer PLC"),
        ("The Example Company, Inc.", "Example Company Inc"),
        ("Jean Exemple", "EXEMPLE, Jean"),
        ("ＦＵＬＬＷＩＤＴＨ ＴＲＡＤＩＮＧ", "Fullwidth Trading"),
        ("Αθηνά Εμπορική Α.Ε.", "ΑΘΗΝΑ ΕΜΠΟΡΙΚΗ ΑΕ"),
    ];
    for (a, b) in pairs {
        assert!(score(a, b) >= MATCH, "{a} / {b}: {}", score(a, b));
    }
}

#[test]
fn other_names_do_not_match() {
    let pairs = [
        ("Gazprom", "Gazprom Neft"),
        ("Example Trading BV", "Example Shipping BV"),
        ("Jan Voorbeeld", "Jan Jansen"),
        ("ABC Ltd", "ABD Ltd"),
        ("AS", "AB"),
        ("Alpha GmbH", "Beta GmbH"),
        ("Limited", "Example Limited"),
        ("1234567 Canada Inc", "1234568 Canada Inc"),
    ];
    for (a, b) in pairs {
        assert!(score(a, b) < MATCH, "{a} / {b}: {}", score(a, b));
    }
}

#[test]
fn what_differs_lowers_the_score_and_is_named() {
    let why = |a: &str, b: &str| Name::read(a).expect(a).compare(&Name::read(b).expect(b)).expect("alike");
    assert_eq!(why("Example Trading BV", "Example Trading").why, ["the same words", "one name has no legal form"]);
    let (same, class, other) =
        (why("X One Ltd", "X One Limited"), why("X One Ltd", "X One GmbH"), why("X One Ltd", "X One AG"));
    assert!(same.score > class.score && class.score > other.score && other.score >= MATCH);
    assert_eq!(other.why, ["the same words", "another legal form"]);
    let part = why("Example Trading Rotterdam BV", "Example Trading");
    assert!((0.7..MATCH).contains(&part.score), "{part:?}");
    let typo = why("Exampel Trading", "Example Trading");
    assert!(typo.score >= MATCH && typo.score < 1.0, "{typo:?}");
    let initial = why("J. Exemple", "Jean Exemple");
    assert!((0.7..MATCH).contains(&initial.score), "{initial:?}");
}

#[test]
fn names_without_substance_are_refused() {
    for (text, refused) in [("", Unsearchable::Empty), ("+/-", Unsearchable::Empty), ("X", Unsearchable::OneLetter)] {
        assert_eq!(Name::read(text), Err(refused), "{text}");
    }
    assert!(Name::read("X Ltd").is_err() && Name::read("3M").is_ok() && Name::read("Limited").is_ok());
    assert!(Name::read("3M").expect("a name").is_short());
}

#[test]
fn names_that_are_alike_share_a_key() {
    for (a, b) in [("Exampel Trading", "Example Trading"), ("Müller", "Mueller AG"), ("Coca-Cola", "CocaCola")] {
        let keys: Vec<_> = Name::read(a).expect(a).keys().collect();
        assert!(Name::read(b).expect(b).keys().any(|key| keys.contains(&key)), "{a} / {b}");
    }
}
