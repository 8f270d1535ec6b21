//! The methods of the service, by the paths they are called at: which of them only read, and under which names they are counted.

use crate::tokens::Access;

/// The service that tells whether there is one: open to all.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// A method, and what a caller must be allowed to do.
pub(crate) struct Method {
    pub(crate) path: &'static str,
    pub(crate) needs: Access,
}

const fn reads(path: &'static str) -> Method {
    Method { path, needs: Access::Read }
}

const fn writes(path: &'static str) -> Method {
    Method { path, needs: Access::Full }
}

/// Every method there is. What is not here needs full access, and is counted as `other`.
pub(crate) const METHODS: [Method; 39] = [
    writes("/trapline.v1.Frontier/Admit"),
    writes("/trapline.v1.Frontier/AdmitStream"),
    writes("/trapline.v1.Frontier/Claim"),
    writes("/trapline.v1.Frontier/Settle"),
    writes("/trapline.v1.Frontier/SettleStream"),
    writes("/trapline.v1.Frontier/Steer"),
    reads("/trapline.v1.Frontier/Scan"),
    reads("/trapline.v1.Frontier/Stats"),
    writes("/trapline.v1.Frontier/Flush"),
    reads("/trapline.v1.Frontier/Now"),
    writes("/trapline.v1.Crawler/SubmitUrls"),
    reads("/trapline.v1.Crawler/StreamResults"),
    reads("/trapline.v1.Crawler/GetStatus"),
    writes("/trapline.v1.Crawler/SetCrawlerState"),
    writes("/trapline.v1.Crawler/UpsertDomainPolicy"),
    writes("/trapline.v1.Crawler/ForceRecrawl"),
    reads("/urlfrontier.URLFrontier/ListNodes"),
    reads("/urlfrontier.URLFrontier/ListCrawls"),
    writes("/urlfrontier.URLFrontier/DeleteCrawl"),
    reads("/urlfrontier.URLFrontier/ListQueues"),
    writes("/urlfrontier.URLFrontier/GetURLs"),
    writes("/urlfrontier.URLFrontier/PutURLs"),
    writes("/urlfrontier.URLFrontier/PutDiscovered"),
    reads("/urlfrontier.URLFrontier/GetStats"),
    writes("/urlfrontier.URLFrontier/DeleteQueue"),
    writes("/urlfrontier.URLFrontier/BlockQueueUntil"),
    writes("/urlfrontier.URLFrontier/SetActive"),
    reads("/urlfrontier.URLFrontier/GetActive"),
    writes("/urlfrontier.URLFrontier/SetDelay"),
    writes("/urlfrontier.URLFrontier/SetLogLevel"),
    writes("/urlfrontier.URLFrontier/SetCrawlLimit"),
    reads("/urlfrontier.URLFrontier/GetURLStatus"),
    reads("/urlfrontier.URLFrontier/ListURLs"),
    reads("/urlfrontier.URLFrontier/CountURLs"),
    writes("/urlfrontier.URLFrontier/PurgeURLs"),
    reads("/grpc.health.v1.Health/Check"),
    reads("/grpc.health.v1.Health/Watch"),
    reads("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
    reads("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"),
];

/// Where a method is in [`METHODS`]; its length for one that is not.
pub(crate) fn index(path: &str) -> usize {
    METHODS.iter().position(|method| method.path == path).unwrap_or(METHODS.len())
}

/// What a caller at a path must be allowed to do; None if anybody may call.
pub(crate) fn needs(path: &str) -> Option<Access> {
    if path.starts_with(HEALTH) {
        return None;
    }
    Some(METHODS.get(index(path)).map_or(Access::Full, |method| method.needs))
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn every_method_of_our_services_is_known() {
        let files = FileDescriptorSet::decode(crate::proto::DESCRIPTORS).unwrap();
        let mut count = 0;
        for file in &files.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    assert!(index(&path) < METHODS.len(), "{path} is not in the list");
                    count += 1;
                }
            }
        }
        assert_eq!(count + 4, METHODS.len(), "health and reflection are not ours");
    }

    #[test]
    fn what_is_not_known_needs_full_access() {
        let check = |path: &str, expected| assert_eq!(needs(path), expected, "{path}");
        check("/trapline.v1.Frontier/Admit", Some(Access::Full));
        check("/trapline.v1.Frontier/Claim", Some(Access::Full));
        check("/trapline.v1.Frontier/Scan", Some(Access::Read));
        check("/trapline.v1.Frontier/scan", Some(Access::Full));
        check("/trapline.v1.Frontier/Scan/", Some(Access::Full));
        check("/urlfrontier.URLFrontier/GetURLs", Some(Access::Full));
        check("/urlfrontier.URLFrontier/ListURLs", Some(Access::Read));
        check("/", Some(Access::Full));
        check("/grpc.health.v1.Health/Check", None);
        check("/grpc.health.v1.Healthy/Check", Some(Access::Full));
    }
}
