//! From bytes to links.

use async_trait::async_trait;
use trapline_extract::{Head, Limits, Page, Sitemap, SitemapLimits};

use super::Visit;
use crate::chain::{Flow, Processor};

/// Finds links and facts in what came.
pub(super) struct Extract;

#[async_trait]
impl Processor<Visit> for Extract {
    fn name(&self) -> &'static str {
        "extract"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        let Some(response) = visit.response.as_ref().filter(|response| !response.not_modified) else {
            return Flow::Next;
        };
        let url = &visit.request.url;
        if visit.is_sitemap() && response.status == Some(200) {
            visit.sitemap = Some(Sitemap::read(url, &response.body, &SitemapLimits::default()));
            return Flow::Next;
        }
        let head = Head {
            content_type: response.header("content-type"),
            content_language: response.header("content-language"),
            refresh: response.header("refresh"),
            x_robots_tag: response.all_headers("x-robots-tag").collect(),
            link: response.all_headers("link").collect(),
        };
        visit.page = Some(Page::read(url, &head, &Limits::default(), &response.body));
        Flow::Next
    }
}
