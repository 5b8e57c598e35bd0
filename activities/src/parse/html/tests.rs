use encoding_rs::{UTF_8, WINDOWS_1250};

use super::*;
use crate::spec::Class;

fn page(body: &str) -> Page {
    Page::read(format!("<html><body>{body}</body></html>").as_bytes(), None, UTF_8).expect("a page")
}

fn class(body: &[u8]) -> Class {
    Page::read(body, None, UTF_8).expect_err("no page").class
}

#[test]
fn broken_pages_have_errors_of_their_own() {
    assert_eq!(class(b""), Class::Unavailable);
    assert_eq!(class(b" \n"), Class::Unavailable);
    assert_eq!(class(b"<html><body><p>half"), Class::Unavailable);
    assert_eq!(class(b"<html><body></html"), Class::Unavailable);
    assert_eq!(class(b"{\"a\":1}"), Class::BadShape);
    assert_eq!(class(b"[]"), Class::BadShape);
    assert_eq!(class(b"Account is suspended"), Class::BadShape);
    assert!(Page::read(b"\xef\xbb\xbf\n<HTML><p>x</HTML >\n<!-- served by 3 -->", None, UTF_8).is_ok());
}

#[test]
fn pages_that_would_take_a_browser_for_ever_are_refused_at_once() {
    let all = |open: &str, times: usize| format!("<html>{}</html>", open.repeat(times)).into_bytes();
    assert_eq!(class(&all("<div>", 100_000)), Class::BadShape);
    assert_eq!(class(&all("<table><tr><td>", 1_000)), Class::BadShape);
    assert_eq!(class(&all("<br>", 100_000)), Class::BadShape);
    assert_eq!(class(&all("<i>x", 500)), Class::BadShape);
    let reopened: String = (0..50).map(|n| format!("<b id={n}>")).collect();
    assert_eq!(class(&all(&format!("<p>{reopened}</p>"), 1)), Class::BadShape);
    assert_eq!(class(&all("x", 5_000_000)), Class::BadShape);
    let long = all("<tr><td>a<td><b>b</b></tr>", 5_000);
    assert!(Page::read(&long, None, UTF_8).is_ok(), "many rows are no reason");
    let icons: String = (0..40).map(|n| format!("<i class=icon-{}></i>", n % 20)).collect();
    assert!(Page::read(&all(&icons, 100), None, UTF_8).is_ok(), "nor are pictures");
    let icons: String = (0..40).map(|n| format!("<i class=icon-{n}></i>")).collect();
    assert_eq!(class(&all(&icons, 1)), Class::BadShape);
    // The worst that is let through: it must end, and soon.
    let open: String = (0..FORMATS).map(|n| format!("<b id={n}>")).collect();
    let worst = format!("<html><p>{open}{}</html>", "<p>x".repeat(TAGS - 20));
    assert!(Page::read(worst.as_bytes(), None, UTF_8).is_ok());
    let worst = format!("<html>{}x{}</html>", "<div>".repeat(DEPTH - 2), "<div></div>".repeat(TAGS / 2 - 300));
    assert!(Page::read(worst.as_bytes(), None, UTF_8).is_ok());
}

#[test]
fn the_encoding_is_the_one_that_is_named_nearest() {
    let czech = "Š\u{160}tatutárny orgán žluťoučký";
    let (bytes, _, _) = WINDOWS_1250.encode(czech);
    assert_eq!(decode(&bytes, None, WINDOWS_1250), czech);
    assert_eq!(decode(&bytes, Some("text/html; charset=\"Windows-1250\""), UTF_8), czech);
    let meta = "<meta http-equiv='Content-Type' content='text/html; charset = windows-1250'>";
    let (page, _, _) = WINDOWS_1250.encode("<meta charset=windows-1250>ž");
    assert!(decode(&page, None, UTF_8).ends_with('ž'));
    assert!(decode(&[meta.as_bytes(), &bytes].concat(), Some("text/html"), UTF_8).ends_with(czech));
    assert_eq!(decode("ž".as_bytes(), Some("text/html; charset=UTF-8"), WINDOWS_1250), "ž");
    assert_eq!(decode("\u{feff}ž".as_bytes(), Some("charset=windows-1250"), WINDOWS_1250), "ž", "its own mark wins");
    assert_eq!(decode("ž".as_bytes(), Some("charset=klingon"), UTF_8), "ž", "an unknown name is none");
}

#[test]
fn cells_are_found_by_their_label() {
    let page = page(
        "<table><tr><td><table><tr><td>Name:&nbsp;</td><td>One<br/> Two&nbsp; Three <i class=since>Since 1</i></td></tr>
         </table></td></tr><tr><th>Numéro d’entreprise<td>7<script>var x = '<td>';</script></table>",
    );
    let cell = page.root().labelled(&["nothing", "NAME"]).expect("a cell");
    assert_eq!(cell.text(), "One Two Three Since 1");
    assert_eq!(cell.lines_without("since"), ["One", "Two Three"]);
    assert_eq!(cell.of_class("since").map(Element::text).as_deref(), Some("Since 1"));
    assert_eq!(page.root().labelled(&["Numéro d'entreprise"]).map(Element::text).as_deref(), Some("7"));
    assert!(page.root().labelled(&["One"]).is_none());
    let rows: Vec<_> = page.root().rows().map(|row| row.text(0)).collect();
    assert_eq!(rows, [Some("Name:".to_owned()), Some("Numéro d’entreprise".to_owned())], "without the one around");
}

#[test]
fn sections_end_where_the_next_begins() {
    let page = page(
        "<table><tr><td colspan=2><h2>A</h2></td></tr><tr><td>1</td><td></td></tr>
         <tr><td><h2>B</h2></td></tr><tr><td>2</td><td>3</td></tr></table>",
    );
    let rows = |title: &str| page.root().section(&[title]).iter().map(|row| row.text(0)).collect::<Vec<_>>();
    assert_eq!(rows("a"), [Some("1".to_owned())]);
    assert_eq!(rows("B"), [Some("2".to_owned())]);
    assert!(rows("C").is_empty());
    assert_eq!(page.root().section(&["A"])[0].text(1), None);
    assert_eq!(page.root().section(&["B"])[0].cells().len(), 2);
}

#[test]
fn links_give_their_parameters() {
    let page = page("<a href=' ./x?subjektId=42&amp;typ=A%20B&amp;e=#subjektId=7'>L <b>k</b></a><a name=x>no link</a>");
    let links: Vec<_> = page.root().links().collect();
    assert_eq!((links.len(), links[0].text.as_str()), (1, "L k"));
    assert_eq!(links[0].parameter("subjektId"), Some("42"));
    assert_eq!((links[0].parameter("typ"), links[0].parameter("e"), links[0].parameter("Id")), (None, None, None));
}
