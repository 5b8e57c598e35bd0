//! Which addresses are followed that somebody else has written: a company's website, a link in an answer.
//!
//! Such an address may lead back into our own network, to a neighbour without a password or to the service that hands out
//! the machine's credentials. So it is judged three times: as it is written, by the addresses its name stands for at the
//! moment of connecting, and again after each redirect. What the operator has configured is not judged: a base address on
//! this machine is a choice, not a trap.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

/// Why an address is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Cannot be read as one.
    #[error("is no web address")]
    Unreadable,
    /// Neither http nor https.
    #[error("is neither http nor https")]
    Scheme,
    /// Carries a user name or a password.
    #[error("contains a user name or a password")]
    UserInfo,
    /// Another port than that of its scheme.
    #[error("names a port of its own")]
    Port,
    /// Written so that a reader takes it for another one: numbers in odd bases, backslashes, control characters.
    #[error("is written in a misleading way")]
    Disguise,
    /// This machine, its network, or no machine.
    #[error("does not lead to the public internet")]
    Private,
}

/// Networks that are not the public internet: first address and length of the prefix.
#[rustfmt::skip]
const RESERVED: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),          // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),         // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),      // carrier-grade NAT, and one cloud's metadata
    (Ipv4Addr::new(127, 0, 0, 0), 8),        // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32),   // a cloud's own agent, on a public number
    (Ipv4Addr::new(169, 254, 0, 0), 16),     // link-local, and most clouds' metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),      // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),       // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),       // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),     // relays of 6to4
    (Ipv4Addr::new(192, 168, 0, 0), 16),     // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),      // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),    // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),     // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),        // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),        // reserved, broadcast
];

/// Of the one public block of IPv6 (2000::/3), what is not public all the same.
#[rustfmt::skip]
const RESERVED_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),      // protocol assignments, Teredo among them
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),  // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),      // 6to4: an IPv4 address in disguise
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),      // documentation
];

/// Ends of names that mean something only inside a network.
const INSIDE: [&str; 11] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "in-addr.arpa",
];

/// True for an address on the public internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !RESERVED.iter().any(|(net, bits)| {
            let shift = 32 - bits;
            address.to_bits() >> shift == net.to_bits() >> shift
        }),
        IpAddr::V6(address) => match address.segments() {
            // A translator turns these into IPv4. Other ways to embed one (mapped, compatible) lie outside 2000::/3.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                is_public(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into())
            }
            [first, ..] => {
                first >> 13 == 1
                    && !RESERVED_V6.iter().any(|(net, bits)| {
                        let shift = 128 - bits;
                        address.to_bits() >> shift == net.to_bits() >> shift
                    })
            }
        },
    }
}

/// Reads an address that somebody else has written. What its name stands for is another question, see [`Names`].
///
/// # Errors
/// If it is not followed.
pub fn admit(text: &str) -> Result<Url, Refusal> {
    let text = text.trim();
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(Refusal::Disguise);
    }
    let url = Url::parse(text).map_err(|_| Refusal::Unreadable)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refusal::Scheme);
    }
    // The parser forgives missing or superfluous slashes; others may then see another host.
    let rest = text.get(url.scheme().len()..).and_then(|rest| rest.strip_prefix("://")).ok_or(Refusal::Disguise)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(Refusal::UserInfo);
    }
    if url.port().is_some() {
        return Err(Refusal::Port);
    }
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        // 2130706433, 0x7f.1 and 127.1 are all read as 127.0.0.1: who writes so has something to hide.
        if address.is_ipv4() && authority.split(':').next() != Some(host) {
            return Err(Refusal::Disguise);
        }
        return if is_public(address) { Ok(url) } else { Err(Refusal::Private) };
    }
    let inside = |end: &&str| host.strip_suffix(*end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if !host.contains('.') || INSIDE.iter().any(inside) {
        return Err(Refusal::Private);
    }
    if authority.contains('%') {
        return Err(Refusal::Disguise);
    }
    Ok(url)
}

/// What names stand for.
#[derive(Clone)]
pub struct Names(Arc<dyn Resolve>);

impl Names {
    /// As this machine resolves them.
    #[must_use]
    pub fn of_system() -> Self {
        Self(Arc::new(System))
    }

    /// Nothing: for a world that is simulated, whose addresses are numbers.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::new(Nowhere))
    }

    /// As `resolver` does.
    #[must_use]
    pub fn new(resolver: impl Resolve + 'static) -> Self {
        Self(Arc::new(resolver))
    }

    /// The same without anything that is not public, except for `passed`: a proxy may well be in our own network.
    #[must_use]
    pub fn public_only(self, passed: Vec<String>) -> Self {
        Self(Arc::new(PublicOnly { names: self, passed }))
    }

    /// Whether a name stands for anything that is not public. A name that cannot be looked up stands for nothing.
    pub async fn lead_inside(&self, name: &str) -> bool {
        let Ok(name) = name.parse() else { return false };
        self.0.resolve(name).await.is_ok_and(|mut found| found.any(|address| !is_public(address.ip())))
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names")
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        self.0.resolve(name)
    }
}

struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

struct Nowhere;

impl Resolve for Nowhere {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async { Err(std::io::Error::from(std::io::ErrorKind::NotFound).into()) })
    }
}

struct PublicOnly {
    names: Names,
    passed: Vec<String>,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let passed = self.passed.iter().any(|passed| passed.eq_ignore_ascii_case(name.as_str()));
        let looked_up = self.names.resolve(name);
        Box::pin(async move {
            let found: Vec<_> = looked_up.await?.filter(|address| passed || is_public(address.ip())).collect();
            if found.is_empty() {
                return Err(Refusal::Private.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The hosts of the proxies that the environment names; `lookup` reads a variable.
#[must_use]
pub fn proxies(lookup: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].map(|name| [name.to_owned(), name.to_lowercase()]);
    let host = |text: String| {
        let text = if text.contains("://") { text } else { format!("http://{text}") };
        Url::parse(&text).ok()?.host_str().map(str::to_owned)
    };
    names.iter().flatten().filter_map(|name| lookup(name)).filter_map(host).collect()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[rustfmt::skip]
    const PUBLIC: &[&str] = &[
        "http://example.com", "https://www.equinor.com/en/about?x=1#y", "HTTPS://Example.COM/", "https://example.com:443/",
        "http://example.com:80", "https://8.8.8.8/", "http://172.15.0.1", "http://172.32.0.1", "http://100.63.255.255",
        "http://100.128.0.1", "http://[2606:4700::1111]/", "http://[64:ff9b::808:808]/", "https://例え.jp/", "https://example.com./",
        "https://example.com/?next=http://127.0.0.1/", "https://example.com/@home", "http://local.example.com",
    ];

    #[rustfmt::skip]
    const REFUSED: &[(&str, Refusal)] = &[
        // Ourselves, our network, and the services that hand out credentials.
        ("http://127.0.0.1/", Refusal::Private), ("http://127.255.0.9", Refusal::Private), ("http://0.0.0.0/", Refusal::Private),
        ("http://10.1.2.3", Refusal::Private), ("http://172.16.0.1", Refusal::Private), ("http://172.31.255.255", Refusal::Private),
        ("http://192.168.1.1", Refusal::Private), ("http://100.64.0.1", Refusal::Private), ("http://100.100.100.200", Refusal::Private),
        ("http://169.254.169.254/latest/meta-data/", Refusal::Private), ("http://192.0.0.192", Refusal::Private),
        ("http://168.63.129.16", Refusal::Private), ("http://198.18.0.1", Refusal::Private), ("http://224.0.0.1", Refusal::Private),
        ("http://255.255.255.255", Refusal::Private), ("http://203.0.113.9", Refusal::Private), ("http://240.0.0.1", Refusal::Private),
        ("http://localhost", Refusal::Private), ("http://LOCALHOST./", Refusal::Private), ("http://a.localhost", Refusal::Private),
        ("http://metadata.google.internal/", Refusal::Private), ("http://printer.local", Refusal::Private),
        ("http://crawl4ai/", Refusal::Private), ("http://db.corp", Refusal::Private), ("http://router.home.arpa", Refusal::Private),
        ("http://\u{24db}ocalhost/", Refusal::Private),
        // The same in IPv6.
        ("http://[::1]/", Refusal::Private), ("http://[::]/", Refusal::Private), ("http://[fd00:ec2::254]/", Refusal::Private),
        ("http://[fe80::1]/", Refusal::Private), ("http://[fec0::1]/", Refusal::Private), ("http://[ff02::1]/", Refusal::Private),
        ("http://[::ffff:127.0.0.1]/", Refusal::Private), ("http://[::ffff:8.8.8.8]/", Refusal::Private),
        ("http://[::127.0.0.1]/", Refusal::Private), ("http://[0:0:0:0:0:ffff:a9fe:a9fe]/", Refusal::Private),
        ("http://[64:ff9b::a9fe:a9fe]/", Refusal::Private), ("http://[64:ff9b:1::1]/", Refusal::Private),
        ("http://[2002:7f00:1::]/", Refusal::Private), ("http://[2001::1]/", Refusal::Private),
        ("http://[2001:db8::1]/", Refusal::Private), ("http://[100::1]/", Refusal::Private), ("http://[3fff::1]/", Refusal::Private),
        // Numbers that do not look like what they are.
        ("http://2130706433/", Refusal::Disguise), ("http://0x7f000001/", Refusal::Disguise), ("http://017700000001/", Refusal::Disguise),
        ("http://0x7f.1/", Refusal::Disguise), ("http://127.1/", Refusal::Disguise), ("http://0177.0.0.1/", Refusal::Disguise),
        ("http://134744072/", Refusal::Disguise), ("http://127\u{3002}0\u{3002}0\u{3002}1/", Refusal::Disguise),
        ("http://\u{ff11}27.0.0.1/", Refusal::Disguise), ("http://%31%32%37.0.0.1/", Refusal::Disguise),
        ("http://127.0.0.1./", Refusal::Disguise), ("http://ex%61mple.com/", Refusal::Disguise),
        // Hosts that are not where a reader looks for them.
        ("http://example.com\\@127.0.0.1/", Refusal::Disguise), ("http:\\\\127.0.0.1\\", Refusal::Disguise),
        ("http:127.0.0.1", Refusal::Disguise), ("http:/example.com", Refusal::Disguise), ("http://127.0.0.1\t/", Refusal::Disguise),
        ("ht\ntp://127.0.0.1/", Refusal::Disguise), ("http://exa mple.com", Refusal::Disguise),
        ("http://example.com@127.0.0.1/", Refusal::UserInfo), ("http://user:secret@example.com/", Refusal::UserInfo),
        ("http://@example.com/", Refusal::UserInfo), ("http://a@b@example.com", Refusal::UserInfo),
        // Other services, other protocols, no address at all.
        ("http://example.com:22", Refusal::Port), ("https://example.com:80", Refusal::Port), ("http://example.com:6379/", Refusal::Port),
        ("ftp://example.com", Refusal::Scheme), ("file:///etc/passwd", Refusal::Scheme), ("gopher://example.com", Refusal::Scheme),
        ("javascript:alert(1)", Refusal::Scheme), ("data:text/html,x", Refusal::Scheme), ("mailto:a@example.com", Refusal::Scheme),
        ("", Refusal::Unreadable), ("example.com", Refusal::Unreadable), ("http://", Refusal::Unreadable),
        ("http://1.2.3.4.5/", Refusal::Unreadable), ("http://[::1", Refusal::Unreadable), ("//example.com", Refusal::Unreadable),
        ("http://256.256.256.256", Refusal::Unreadable),
    ];

    #[test]
    fn addresses_as_they_are_written() {
        for text in PUBLIC {
            assert!(admit(text).is_ok(), "{text}: {:?}", admit(text));
        }
        for (text, refusal) in REFUSED {
            assert_eq!(admit(text), Err(*refusal), "{text}");
        }
    }

    #[test]
    fn reserved_networks_are_inside_from_first_to_last_address() {
        for (net, bits) in RESERVED {
            let last = net.to_bits() | u32::MAX.checked_shr(*bits).unwrap_or(0);
            assert!(!is_public((*net).into()) && !is_public(Ipv4Addr::from_bits(last).into()), "{net}/{bits}");
            assert_eq!(net.to_bits() & u32::MAX.checked_shr(*bits).unwrap_or(0), 0, "{net}/{bits} begins elsewhere");
        }
        for public in ["1.0.0.0", "9.255.255.255", "11.0.0.0", "126.255.255.255", "169.253.255.255", "223.255.255.255"]
        {
            assert!(is_public(public.parse().expect(public)), "{public}");
        }
    }

    /// Every name stands for these.
    struct Standing(&'static [&'static str]);

    impl Resolve for Standing {
        fn resolve(&self, _: Name) -> Resolving {
            let found: Vec<SocketAddr> =
                self.0.iter().map(|ip| SocketAddr::new(ip.parse().expect("an address"), 0)).collect();
            Box::pin(async move { Ok(Box::new(found.into_iter()) as Addrs) })
        }
    }

    async fn looked_up(ips: &'static [&'static str], passed: &[&str]) -> Option<Vec<String>> {
        let names = Names::new(Standing(ips)).public_only(passed.iter().map(|&name| name.into()).collect());
        let found = names.resolve("proxy.example".parse().expect("a name")).await.ok()?;
        Some(found.map(|address| address.ip().to_string()).collect())
    }

    #[tokio::test]
    async fn names_stand_for_their_public_addresses_only() {
        assert_eq!(looked_up(&["8.8.8.8", "127.0.0.1"], &[]).await, Some(vec!["8.8.8.8".to_owned()]));
        for inside in
            [&["127.0.0.1"][..], &["169.254.169.254"], &["fd00:ec2::254"], &["::ffff:10.0.0.1", "10.0.0.1"], &[]]
        {
            assert_eq!(looked_up(inside, &[]).await, None, "{inside:?}");
        }
        assert_eq!(looked_up(&["10.0.0.1"], &["Proxy.Example"]).await, Some(vec!["10.0.0.1".to_owned()]));
        assert!(Names::new(Standing(&["8.8.8.8", "10.0.0.1"])).lead_inside("example.com").await);
        assert!(!Names::new(Standing(&["8.8.8.8"])).lead_inside("example.com").await);
        assert!(!Names::new(Standing(&[])).lead_inside("example.com").await);
        assert!(!Names::none().lead_inside("example.com").await);
    }

    #[test]
    fn proxies_are_known_by_their_hosts() {
        let named = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://user:secret@proxy.corp:3128".to_owned()),
            "http_proxy" => Some("cache:8080".to_owned()),
            _ => None,
        };
        assert_eq!(proxies(named), ["cache", "proxy.corp"]);
    }
}
