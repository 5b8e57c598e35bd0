//! SOAP: an envelope with an answer or a fault in it. The status of HTTP says nothing about which: faults come with 200 too.

use super::xml::{Element, Node, escape};
use crate::spec::SourceError;

/// An envelope around one element of a namespace, with these children. Services differ in whether the children are in the
/// namespace as well: those whose schema is *qualified* are.
#[must_use]
pub fn request(namespace: &str, element: &str, qualified: bool, children: &[(&str, &str)]) -> String {
    let prefix = if qualified { "t:" } else { "" };
    let children: String =
        children.iter().map(|(name, value)| format!("<{prefix}{name}>{}</{prefix}{name}>", escape(value))).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>\
         <t:{element} xmlns:t=\"{namespace}\">{children}</t:{element}></s:Body></s:Envelope>"
    )
}

/// The answer of that name in an envelope.
///
/// # Errors
/// If there is a fault in its place, what `fault` makes of the fault's text; a bad shape if there is neither.
pub fn answer<'a>(
    envelope: &'a Element,
    name: &str,
    fault: impl FnOnce(&str) -> SourceError,
) -> Result<Node<'a>, SourceError> {
    let body = envelope.root().require("Body")?;
    let failed = body.get("Fault");
    if failed.exists() {
        let text = failed.get("faultstring").text().or_else(|| failed.at("Reason.Text").text());
        return Err(fault(text.unwrap_or_default()));
    }
    body.require(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse::xml, spec::Class};

    fn read(content: &str) -> Result<Option<String>, SourceError> {
        let body = format!("<e:Envelope xmlns:e='x'><e:Header/><e:Body>{content}</e:Body></e:Envelope>");
        let envelope = xml::parse(body.as_bytes())?;
        let answer = answer(&envelope, "answer", |text| SourceError::business(text.to_owned()))?;
        Ok(answer.text().map(str::to_owned))
    }

    #[test]
    fn there_is_an_answer_or_a_fault_or_neither() {
        assert_eq!(read("<n:answer>7</n:answer>").expect("an answer").as_deref(), Some("7"));
        let old = read("<e:Fault><faultcode>e:Server</faultcode><faultstring>BUSY</faultstring></e:Fault>");
        let new = read("<e:Fault><e:Reason><e:Text xml:lang='en'>BUSY</e:Text></e:Reason></e:Fault>");
        for fault in [old, new] {
            assert_eq!(fault.expect_err("a fault").reason, "BUSY");
        }
        assert_eq!(read("<e:Fault/>").expect_err("a fault").class, Class::Business, "a fault without words is one");
        assert_eq!(read("<other/>").expect_err("neither").class, Class::BadShape);
    }

    #[test]
    fn requests_are_well_formed_whatever_is_asked() {
        for qualified in [true, false] {
            let text = request("urn:x", "ask", qualified, &[("name", "A & B <é>"), ("n", "1")]);
            let envelope = xml::parse(text.as_bytes()).expect("XML");
            let asked = envelope.root().at("Body.ask");
            assert_eq!((asked.get("name").text(), asked.get("n").text()), (Some("A & B <é>"), Some("1")));
            assert_eq!(text.contains("<t:name>"), qualified);
        }
    }
}
