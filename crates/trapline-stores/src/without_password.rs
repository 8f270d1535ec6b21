//! A store's URL as people may see it: in messages, reports and logs.

/// A URL without what is, or may be, a password in it. Rather too much of a URL that is wrong is left out than too little.
pub fn without_password(url: &str) -> String {
    // A folder may be called anything, and nobody logs in to one.
    if url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("disk:")) {
        return url.to_owned();
    }
    let Some((scheme, rest)) = url.split_once("://") else { return of_no_url(url) };
    let rest = match rest.rsplit_once('@') {
        Some((credentials, behind)) => {
            let user = credentials.split([':', '/', '?']).next().unwrap_or_default();
            format!("{user}@{behind}")
        }
        // Somebody may have forgotten the host: what stands where a port should is shown only if it is one.
        None => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (hosts, behind) = rest.split_at(end);
            let hosts = hosts.split(',').map(|host| match host.rsplit_once(':') {
                Some((name, port)) if !port.bytes().all(|b| b.is_ascii_digit()) && !host.ends_with(']') => {
                    name
                }
                _ => host,
            });
            hosts.collect::<Vec<_>>().join(",") + behind
        }
    };
    let (place, options) = rest.split_once('?').unwrap_or((&rest, ""));
    let options: Vec<_> = options.split('&').filter(|option| !says_password(option)).collect();
    let options = options.join("&");
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{scheme}://{place}{mark}{options}")
}

fn says_password(option: &str) -> bool {
    option.split('=').next().unwrap_or_default().to_ascii_lowercase().contains("pass")
}

/// Of something without `://`, such as `postgres:USER:PASSWORD@HOST`, `USER:PASSWORD@HOST`, or `host=HOST password=PASSWORD`.
fn of_no_url(text: &str) -> String {
    let shown = match (text.split_once(':'), text.rsplit_once('@')) {
        (Some((before, _)), Some((credentials, behind))) if before.len() < credentials.len() => {
            format!("{before}:…@{behind}")
        }
        _ => text.to_owned(),
    };
    match shown.to_ascii_lowercase().find("pass") {
        Some(at) => shown[..at].to_owned() + "…",
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_nowhere() {
        for url in [
            "postgres://u:hush@h/d",
            "postgres://u:hush@h,i:1/d?x=y",
            "postgres://u:hu@sh@h/d",
            "postgres://u:hu/sh@h/d",
            "postgres://u:hu?sh@h/d",
            "postgres://:hush@h/d",
            "postgres://u:hush",
            "postgres://u:hush/d",
            "postgres://u@h/d?a=b&password=hush",
            "postgres://u@h/d?a=b&Password=hush",
            "postgre://u:hush@h/d",
            "postgres:u:hush@h/d",
            "postgres:/u:hush@h/d",
            "postgres:db?password=hush",
            "//u:hush@h/d",
            "u:hush@h/d",
            "u:hu:sh@h",
            "host=h password=hush dbname=d",
            "host=h PASSWORD='hu sh'",
        ] {
            assert!(!without_password(url).contains("sh"), "{url}: {}", without_password(url));
        }
        assert_eq!(without_password("postgres://u:hush@h/d?pool=2"), "postgres://u@h/d?pool=2");
        assert_eq!(without_password("u:hush@h/d"), "u:…@h/d");
    }

    #[test]
    fn what_has_none_is_shown_as_it_is() {
        for url in [
            "postgres://u@h:1/d?pool=2",
            "postgres://[::1]:5432/d",
            "postgres://[::1]/d",
            "disk:a@b",
            "disk:pass:a@b",
            "Disk:pass:a@b",
            "memory:",
            "http://x",
            "crawl",
            "u@h",
            "",
            "ä",
        ] {
            assert_eq!(without_password(url), url);
        }
    }
}
