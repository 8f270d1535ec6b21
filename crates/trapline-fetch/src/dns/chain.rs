//! Which addresses in an answer belong to the name that was asked for.
//!
//! Answers are hostile input: they may hold records of other names, chains without end and circles. Only what the
//! chain of aliases leads to counts. Asking is not done here.

use std::net::IpAddr;

use hickory_resolver::proto::rr::{Name, RData, Record};

/// What an answer says of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chain {
    /// Addresses, and for how many seconds they and the aliases on the way hold.
    Addresses(Vec<IpAddr>, u32),
    /// The chain ends without an address.
    Nothing,
    /// The chain is longer than allowed, or a circle.
    TooLong,
}

/// Follows the aliases of a name through the records of an answer, over `links_max` of them, up to `addresses_max`
/// addresses.
pub(super) fn follow(asked: &Name, records: &[Record], links_max: usize, addresses_max: usize) -> Chain {
    let mut name = asked;
    let mut ttl = u32::MAX;
    for _ in 0..=links_max {
        let own = || records.iter().filter(|record| record.name == *name);
        let mut addresses = Vec::new();
        for record in own() {
            if let Some(address) = record.data.ip_addr() {
                ttl = ttl.min(record.ttl);
                if !addresses.contains(&address) && addresses.len() < addresses_max {
                    addresses.push(address);
                }
            }
        }
        if !addresses.is_empty() {
            return Chain::Addresses(addresses, ttl);
        }
        let alias = own().find_map(|record| match &record.data {
            RData::CNAME(target) => Some((&target.0, record.ttl)),
            _ => None,
        });
        let Some((target, alias_ttl)) = alias else { return Chain::Nothing };
        name = target;
        ttl = ttl.min(alias_ttl);
    }
    Chain::TooLong
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hickory_resolver::proto::rr::rdata::{A, CNAME};

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn address(owner: &str, ttl: u32, last: u8) -> Record {
        Record::from_rdata(name(owner), ttl, RData::A(A(Ipv4Addr::new(192, 0, 2, last))))
    }

    fn alias(owner: &str, ttl: u32, target: &str) -> Record {
        Record::from_rdata(name(owner), ttl, RData::CNAME(CNAME(name(target))))
    }

    fn addresses(last: &[u8], ttl: u32) -> Chain {
        let addresses = last.iter().map(|last| Ipv4Addr::new(192, 0, 2, *last).into()).collect();
        Chain::Addresses(addresses, ttl)
    }

    #[test]
    fn only_what_the_name_leads_to_counts() {
        let records = [
            address("other.example.", 1, 9),
            alias("a.example.", 50, "b.example."),
            address("b.example.", 60, 1),
            address("B.example.", 70, 2),
            address("b.example.", 60, 1),
        ];
        assert_eq!(follow(&name("A.example."), &records, 8, 8), addresses(&[1, 2], 50));
        assert_eq!(follow(&name("b.example."), &records, 8, 8), addresses(&[1, 2], 60));
        assert_eq!(follow(&name("b.example."), &records, 8, 1), addresses(&[1], 60));
        assert_eq!(follow(&name("c.example."), &records, 8, 8), Chain::Nothing);
    }

    #[test]
    fn chains_end() {
        let mut records: Vec<Record> =
            (0..9).map(|link| alias(&format!("n{link}."), 60, &format!("n{}.", link + 1))).collect();
        records.push(address("n9.", 60, 1));
        assert_eq!(follow(&name("n1."), &records, 8, 8), addresses(&[1], 60));
        assert_eq!(follow(&name("n0."), &records, 8, 8), Chain::TooLong);
        let circle = [alias("a.", 60, "b."), alias("b.", 60, "a.")];
        assert_eq!(follow(&name("a."), &circle, 8, 8), Chain::TooLong);
    }
}
