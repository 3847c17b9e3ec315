//! The address of the server, and the Host headers that name it.

use axum::http::uri::Authority;
use luthier::core::Error;
use std::{
    fmt,
    net::{IpAddr, SocketAddr, TcpListener},
    str::FromStr,
};

/// An address to listen on: a host name or an IP address, and a port.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// Name or IP address as typed; an IPv6 address is in brackets.
    host: String,
    port: u16,
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected ADDRESS:PORT, such as 127.0.0.1:7878 or [::1]:0";
        let found: Authority = text.parse().map_err(|_| EXPECTED)?;
        let port = found.port_u16().ok_or(EXPECTED)?;
        if found.host().is_empty() || text.contains('@') {
            return Err(EXPECTED);
        }
        Ok(Address { host: found.host().to_ascii_lowercase(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Address {
    /// Binds a socket to the address. Fails if the name is unknown, or if the port cannot be used.
    pub(super) fn bind(&self) -> Result<TcpListener, Error> {
        TcpListener::bind(self.to_string()).map_err(|e| {
            let hint = "give another address with --listen; port 0 selects a free port";
            Error::io(self.to_string(), "listen on it", &e).hint(hint)
        })
    }

    /// Returns the address for a browser, with the port that the system has selected.
    pub(super) fn url(&self, port: u16) -> String {
        let host = match self.host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() => "localhost",
            _ => &self.host,
        };
        format!("http://{host}:{port}")
    }
}

/// The Host headers that are accepted. Others are refused, so that a foreign web page cannot reach the server under a name of
/// its own (DNS rebinding).
pub(super) struct Hosts {
    names: Vec<String>,
    /// Whether every IP address is accepted: the server listens on all of them.
    any_ip: bool,
    port: u16,
}

impl Hosts {
    pub(super) fn new(address: &Address, local: SocketAddr) -> Self {
        let ip = local.ip();
        let literal = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
        let mut names = vec![address.host.clone(), literal];
        if ip.is_loopback() || ip.is_unspecified() {
            names.push("localhost".to_owned());
        }
        Hosts { names, any_ip: ip.is_unspecified(), port: local.port() }
    }

    /// Whether a Host header names this server.
    pub(super) fn accepts(&self, header: &str) -> bool {
        let Ok(found) = header.parse::<Authority>() else { return false };
        let host = found.host().to_ascii_lowercase();
        let is_ip = || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        found.port_u16().unwrap_or(80) == self.port
            && !header.contains('@')
            && (self.names.contains(&host) || (self.any_ip && is_ip()))
    }

    /// Returns the header that clients should send.
    pub(super) fn expected(&self) -> String {
        format!("{}:{}", self.names[0], self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_address_is_accepted() {
        let hosts = |listen: &str, local: &str| {
            Hosts::new(&listen.parse().unwrap(), format!("{local}:7878").parse().unwrap())
        };
        let all = [
            "127.0.0.1:7878",
            "localhost:7878",
            "LOCALHOST:7878",
            "[::1]:7878",
            "10.1.2.3:7878",
            "mt.test:7878",
        ];
        let accepted = |hosts: Hosts| all.map(|h| u8::from(hosts.accepts(h)));
        assert_eq!(accepted(hosts("127.0.0.1:0", "127.0.0.1")), [1, 1, 1, 0, 0, 0]);
        assert_eq!(accepted(hosts("[::1]:0", "[::1]")), [0, 1, 1, 1, 0, 0]);
        assert_eq!(accepted(hosts("mt.test:0", "10.1.2.3")), [0, 0, 0, 0, 1, 1]);
        assert_eq!(accepted(hosts("0.0.0.0:0", "0.0.0.0")), [1, 1, 1, 1, 1, 0]);
        let local = hosts("127.0.0.1:0", "127.0.0.1");
        for wrong in [
            "",
            "127.0.0.1",
            "127.0.0.1:1",
            "evil.test:7878",
            "a@127.0.0.1:7878",
            "127.0.0.1:7878, evil.test",
        ] {
            assert!(!local.accepts(wrong), "{wrong}");
        }
        for wrong in ["", "7878", "127.0.0.1", "127.0.0.1:", ":7878", "a b:1", "127.0.0.1:99999"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
