//! The walk: what a crawl of a generated web has to reach, found out without a frontier.

use std::collections::VecDeque;

use trapline_core::Timestamp;

use crate::ending::Endings;
use crate::web::{Response, Web};

/// What can be reached from a web's seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Pages, by how they end.
    pub endings: Endings,
    /// Hosts of which at least one page was reached.
    pub hosts: u64,
}

/// Walks a web breadth first, from its seeds along every link and redirect, each page once and in no time.
pub fn walk(web: &Web) -> Reach {
    let mut reached = vec![false; web.pages()];
    let mut hosts = vec![false; web.hosts().len()];
    let mut endings = Endings::default();
    let mut ahead: VecDeque<String> = web.seeds().collect();
    while let Some(url) = ahead.pop_front() {
        let page = web.find(&url).expect("links lead to pages of this web");
        if std::mem::replace(&mut reached[web.ordinal(page)], true) {
            continue;
        }
        hosts[page.host as usize] = true;
        let response = web.look(page, Timestamp::ZERO);
        endings.count(response.ending().expect("a page that is looked at, not asked for, has an end"));
        match response {
            Response::Page { links, .. } => ahead.extend(links),
            Response::Redirect { to } => ahead.push_back(to),
            _ => {}
        }
    }
    Reach { endings, hosts: hosts.into_iter().filter(|reached| *reached).count() as u64 }
}
