//! Address of a receiver.

use std::{fmt, str::FromStr};

use hyper::Uri;

/// Port of receivers of OTLP over HTTP.
const PORT: u16 = 4318;

/// Receiver, by the URL that paths are appended to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name or address, as a resolver takes it.
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port, as a header has them.
    pub(super) authority: String,
    /// Path before that of a request; without a slash at its end.
    base: String,
}

impl Endpoint {
    /// Returns the path of a request.
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected the URL of a receiver of OTLP over HTTP, such as http://127.0.0.1:4318";
        let uri: Uri = text.parse().map_err(|error| format!("{error}: {expected}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err("https is not spoken here: send to a collector of OpenTelemetry on this host by http, which \
                            forwards by https"
                    .into());
            }
            _ => return Err(expected.into()),
        }
        if uri.query().is_some() || uri.authority().is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(format!("{expected}, without a user and without a query"));
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(expected)?;
        // A port out of range is none to `Uri`.
        let written = uri.authority().and_then(|authority| authority.as_str().strip_prefix(host));
        let port = match written.and_then(|rest| rest.strip_prefix(':')) {
            None => PORT,
            Some(port) => port.parse().ok().filter(|&port: &u16| port > 0).ok_or_else(|| {
                format!("{port:?} is not a port, which is a number from 1 to 65535; {expected}")
            })?,
        };
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            authority: format!("{host}:{port}"),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_appended() {
        let parsed = |text: &str| text.parse::<Endpoint>();
        let plain = parsed("http://board").unwrap();
        assert_eq!(
            (plain.to_string(), plain.path("/v1/traces")),
            ("http://board:4318".into(), "/v1/traces".into())
        );
        let based = parsed("http://[::1]:80/otlp/").unwrap();
        assert_eq!((based.host.as_str(), based.port, based.path("/v1/x")), ("::1", 80, "/otlp/v1/x".into()));
        assert!(parsed("https://x").unwrap_err().contains("by http"));
        for wrong in [
            "",
            "x",
            "localhost:4318",
            "ftp://x",
            "http://",
            "http://u:p@x",
            "http://x?y=z",
            "http://x y",
            "http://x:99999",
            "http://x:0",
            "http://[::1]:65536",
            "http://x:",
        ] {
            assert!(parsed(wrong).is_err_and(|error| error.contains("such as http://")), "{wrong}");
        }
    }
}
