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

/// Spellings that rigour does not know or puts elsewhere, and why we keep them.
#[rustfmt::skip] // a table
const AGAINST_RIGOUR: &[(&str, &str)] = &[
    ("Co., Limited", "the comma"), ("Company Limited", "the long form of Co. Ltd"), ("Co Ltd", "a form of its own there"),
    ("Pte Ltd", "a form of its own there"), ("Pvt Ltd", "a form of its own there"), ("Private Limited", "a form of its own there"),
    ("Ltda", "a form of its own there"), ("Lda", "a form of its own there"), ("gGmbH", "a GmbH for the common good"),
    ("UG (haftungsbeschränkt)", "the brackets"), ("Unternehmergesellschaft", "unknown there"), ("Sàrl", "the accent"),
    ("SASU", "a SAS with one partner"), ("SPRL", "the French name of BVBA"),
    ("Société privée à responsabilité limitée", "the French name of BVBA"), ("S.L.U.", "an S.L. with one partner"),
    ("Sociedad Limitada", "unknown there"), ("IVS", "an ApS with little capital"), ("s. r. o.", "the spaces"),
    ("spol. s r.o.", "as Czech registers write it"), ("spol. s r. o.", "as Slovak registers write it"),
    ("spoločnosť s ručením obmedzeným", "Slovak"), ("Sp. z o. o.", "the spaces"), ("EOOD", "an OOD with one partner"),
    ("P.L.C.", "the dots"), ("S. A.", "the spaces"), ("Sociedad Anónima", "unknown there"), ("A/S", "the slash"), ("akc. spol.", "short for a.s."),
    ("Aksjeselskap", "Norwegian"), ("Nyrt", "a Zrt on the stock exchange"), ("K/S", "the slash"), ("GmbH und Co. KG", "und"),
    ("GmbH Co KG", "without &"), ("C.V.", "the dots"), ("v.o.s.", "Czech for SNC"), ("VOF", "Dutch for SNC"), ("I/S", "Danish for SNC"),
    ("ИП", "Russian for e.K."), ("eingetragener Verein", "unknown there"), ("VZW", "Dutch for ASBL"), ("o.p.s.", "Czech"),
    ("z.s.", "Czech"), ("Stichting", "Dutch"), ("Foundation", "English"), ("š.p.", "Slovak"), ("s.p.", "ambiguous"),
    ("Limitada", "a form of its own there"), ("S.L.", "the dots"), ("TOV", "ТОВ in Latin letters"), ("TOO", "ТОО in Latin letters"),
    ("ТОО", "unknown there"), ("Corporation", "unknown there"), ("Allmennaksjeselskap", "unknown there"), ("a.d.", "the dots"),
    // Russian law renamed these forms; rigour takes all of them for AO, and we keep them apart where their names do.
    ("АО", "JSC"), ("AO", "JSC"), ("Акционерное общество", "JSC"), ("ПАО", "PJSC"), ("PAO", "PJSC"),
    ("Публичное акционерное общество", "PJSC"), ("ОАО", "OJSC"), ("OAO", "OJSC"), ("ЗАО", "CJSC"), ("ZAO", "CJSC"),
];

#[test]
fn legal_forms_agree_with_rigour() {
    let program = "import sys\nfrom rigour.names.org_types import replace_org_types_compare as c\n\
        for line in sys.stdin: print(c('acme ' + line.strip().casefold()))";
    let known = |spelling: &&&str| !AGAINST_RIGOUR.iter().any(|(other, _)| other == *spelling);
    let rows: Vec<Vec<&str>> =
        forms::FORMS.iter().map(|form| form.spellings.iter().filter(known).copied().collect()).collect();
    let lines: Vec<String> = rows.iter().flatten().map(|spelling| (*spelling).to_owned()).collect();
    let Some(answers) = crate::oracle::ask(program, &lines) else { return };
    let mut answers = answers.into_iter();
    let mut wrong = Vec::new();
    for row in &rows {
        let theirs: Vec<_> = row.iter().map(|spelling| (*spelling, answers.next().expect("an answer"))).collect();
        if theirs.iter().any(|(_, answer)| *answer != theirs[0].1) {
            wrong.push(theirs);
        }
    }
    assert!(wrong.is_empty(), "spellings of one form that rigour tells apart: {wrong:#?}");
}

/// Letters that we fold in another way than rigour: its apostrophe is another character, and both go from words.
const OTHER_LETTERS: &[char] = &['ŉ'];

#[test]
fn latin_letters_agree_with_rigour() {
    let program = "import sys\nfrom rigour._core import maybe_ascii\n\
        for line in sys.stdin: print(maybe_ascii(line.rstrip('\\n').casefold()) or '')";
    let letters: Vec<char> =
        ('\u{c0}'..='\u{17f}').filter(|c| c.is_alphabetic() && !OTHER_LETTERS.contains(c)).collect();
    let lines: Vec<String> = letters.iter().map(char::to_string).collect();
    let Some(answers) = crate::oracle::ask(program, &lines) else { return };
    let ours = letters.iter().map(|letter| fold::fold(&letter.to_string(), Umlauts::Dropped));
    let wrong: Vec<_> = letters.iter().zip(ours.zip(answers)).filter(|(_, (ours, theirs))| ours != theirs).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
