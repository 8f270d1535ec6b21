//! A request as nginx saw it: a line of its access log.

/// How nginx writes it, between tabs.
pub(crate) const FORMAT: &str = "$msec\\t$request_time\\t$connection\\t$server_name\\t$status\\t$request_method\\t$request_uri\\t$http_user_agent";

/// A request that a site got.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Visit {
    /// The site's name, whatever the request called it.
    pub site: String,
    /// The method.
    pub method: String,
    /// Path and query, as they were asked for.
    pub path: String,
    /// The status that was answered; 499 if the client hung up first.
    pub status: u16,
    /// The number of its connection.
    pub connection: u64,
    /// When its first byte came, by the server's clock.
    pub began_ms: u64,
    /// When the last byte of its answer was given away.
    pub ended_ms: u64,
    /// What the client calls itself.
    pub agent: String,
}

impl Visit {
    /// Reads a line of the log.
    pub(crate) fn read(line: &str) -> Result<Self, String> {
        let unreadable = || format!("nginx wrote a line that nobody can read: {line}");
        let fields: Vec<&str> = line.split('\t').collect();
        let [ended, took, connection, site, status, method, path, agent] = fields[..] else {
            return Err(unreadable());
        };
        let ended_ms = milliseconds(ended).ok_or_else(unreadable)?;
        let took_ms = milliseconds(took).ok_or_else(unreadable)?;
        Ok(Self {
            site: site.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            status: status.parse().map_err(|_| unreadable())?,
            connection: connection.parse().map_err(|_| unreadable())?,
            began_ms: ended_ms.saturating_sub(took_ms),
            ended_ms,
            agent: agent.to_owned(),
        })
    }
}

/// Reads seconds with three digits after the point.
fn milliseconds(seconds: &str) -> Option<u64> {
    let (whole, part) = seconds.split_once('.')?;
    let part = (part.len() == 3).then(|| part.parse::<u64>().ok())??;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_a_request_began_and_ended() {
        let line = "1700000000.250\t0.120\t7\ta.example\t200\tGET\t/a?b=c\ttrapline/1";
        let visit = Visit::read(line).unwrap();
        assert_eq!((visit.began_ms, visit.ended_ms), (1_700_000_000_130, 1_700_000_000_250));
        assert_eq!((visit.site.as_str(), visit.path.as_str(), visit.status), ("a.example", "/a?b=c", 200));
    }

    #[test]
    fn other_lines_are_errors() {
        for line in ["", "1.5\t0.120\t7\ta\t200\tGET\t/\tx", "1700000000.250\t0.120\t7\ta\t-\tGET\t/\tx"] {
            assert!(Visit::read(line).unwrap_err().contains("nobody can read"), "{line}");
        }
    }
}
