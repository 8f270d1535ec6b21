//! Ports behind which something else than a web server listens.
//!
//! A request sent there is read by a mail server, a database or an orchestrator as if it were meant for it. The first
//! list is that of the Fetch Standard ("bad ports"), which browsers refuse; the second adds services
//! of data centres that take commands from whoever reaches them.

/// The Fetch Standard's bad ports.
const FETCH_STANDARD: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
    515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723,
    2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Services that are none of a crawler's business, by port.
const SERVICES: &[(u16, &str)] = &[
    (445, "SMB"),
    (873, "rsync"),
    (1433, "SQL Server"),
    (1521, "Oracle"),
    (1883, "MQTT"),
    (2181, "ZooKeeper"),
    (2375, "Docker"),
    (2376, "Docker"),
    (2377, "Docker Swarm"),
    (2379, "etcd"),
    (2380, "etcd"),
    (3306, "MySQL"),
    (3389, "remote desktop"),
    (4369, "Erlang port mapper"),
    (5432, "PostgreSQL"),
    (5671, "AMQP"),
    (5672, "AMQP"),
    (5900, "VNC"),
    (5985, "WinRM"),
    (5986, "WinRM"),
    (6379, "Redis"),
    (6443, "Kubernetes"),
    (9042, "Cassandra"),
    (9092, "Kafka"),
    (9100, "printers"),
    (9200, "Elasticsearch"),
    (9300, "Elasticsearch"),
    (10250, "Kubernetes kubelet"),
    (10255, "Kubernetes kubelet"),
    (11211, "memcached"),
    (27017, "MongoDB"),
    (27018, "MongoDB"),
    (27019, "MongoDB"),
];

/// What is to be expected at a port that is refused (`Redis`, `no web server`); none for ports that are open.
pub fn dangerous_port(port: u16) -> Option<&'static str> {
    if let Ok(place) = SERVICES.binary_search_by_key(&port, |(port, _)| *port) {
        return Some(SERVICES[place].1);
    }
    FETCH_STANDARD.binary_search(&port).is_ok().then_some("no web server")
}

/// All ports that are refused unless the operator opens them, in order.
pub fn dangerous_ports() -> Vec<u16> {
    (0..=u16::MAX).filter(|port| dangerous_port(*port).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order_so_that_they_can_be_searched() {
        assert!(FETCH_STANDARD.is_sorted_by(|a, b| a < b));
        assert!(SERVICES.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(dangerous_ports().len(), FETCH_STANDARD.len() + SERVICES.len());
    }

    #[test]
    fn web_and_proxy_ports_are_open_and_services_are_not() {
        for port in
            [80, 443, 81, 591, 1080, 3000, 3128, 4443, 5000, 8000, 8008, 8080, 8443, 8888, 9000, 65535]
        {
            assert_eq!(dangerous_port(port), None, "{port}");
        }
        for port in [0, 22, 25, 2375, 5432, 6379, 6667, 9200, 10250, 11211, 27017] {
            assert!(dangerous_port(port).is_some(), "{port}");
        }
    }
}
