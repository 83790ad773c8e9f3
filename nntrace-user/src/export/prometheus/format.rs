//! Formats of metrics, and which of them a server asks for.

/// Format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus's text, version 0.0.4, with classic histograms.
    Text,
    /// Text of OpenMetrics, version 1.0.0, with classic histograms.
    OpenMetrics,
    /// Messages `io.prometheus.client.MetricFamily`, each after its length, with native histograms and classic ones.
    Protobuf,
}

impl Format {
    /// Returns the format that a header `Accept` prefers; the text where it names none of them.
    #[must_use]
    pub fn accepted(header: &str) -> Self {
        let mut best = (Self::Text, 0.0);
        for range in header.split(',') {
            let (format, quality) = media_range(range);
            // Of equal ones the first: a server names its favourite first.
            if let Some(format) = format.filter(|_| quality > best.1) {
                best = (format, quality);
            }
        }
        best.0
    }

    /// Returns the value of a header `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// Returns the format that a part of the header takes, and how much that is wanted.
fn media_range(range: &str) -> (Option<Format>, f32) {
    let mut parts = range.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let (mut quality, mut version, mut message, mut encoding) = (1.0, "", "", "");
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => quality = value.parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0),
            "version" => version = value,
            "proto" => message = value,
            "encoding" => encoding = value,
            _ => {}
        }
    }
    let format = match media_type.as_str() {
        "application/vnd.google.protobuf"
            if message == "io.prometheus.client.MetricFamily" && encoding == "delimited" =>
        {
            Some(Format::Protobuf)
        }
        "application/openmetrics-text" if matches!(version, "" | "1.0.0") => Some(Format::OpenMetrics),
        "text/plain" if matches!(version, "" | "0.0.4") => Some(Format::Text),
        "text/*" | "*/*" => Some(Format::Text),
        _ => None,
    };
    (format, quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_chooses() {
        const PROTOBUF: &str =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let cases = [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("text/html, image/png", Format::Text),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1,text/plain;q=0.1", Format::Text),
            ("application/openmetrics-text; version=1.0.0,*/*;q=0.1", Format::OpenMetrics),
            ("application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.5", Format::Text),
            ("application/openmetrics-text;q=7,text/plain;q=0.01", Format::Text),
            ("application/openmetrics-text;q=NaN,text/plain;q=0", Format::Text),
            (PROTOBUF, Format::Protobuf),
            (
                &format!("{PROTOBUF},application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1"),
                Format::Protobuf,
            ),
            (&format!("{PROTOBUF};q=0.1,Text/Plain;version=\"0.0.4\";q=0.5"), Format::Text),
            ("application/vnd.google.protobuf;proto=another.Message;encoding=delimited", Format::Text),
            (",;,=;;q=,\u{7f}", Format::Text),
        ];
        for (header, expected) in cases {
            assert_eq!(Format::accepted(header), expected, "{header}");
        }
    }
}
