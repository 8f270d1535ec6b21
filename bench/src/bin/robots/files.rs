//! The files: one like those of large shops and newspapers, and the worst that 500 KiB and a path of 8 KB allow, as far as
//! we could think of them.

const FILE_BYTES: usize = 500 * 1024;
const PATH_BYTES: usize = 8 * 1024;

pub struct Case {
    pub name: &'static str,
    pub file: String,
    pub path: String,
}

/// A file, and paths to ask about.
pub fn typical() -> (String, Vec<String>) {
    let mut file = String::new();
    for bot in ["AdsBot", "ImageBot", "ScraperBot", "SeoBot", "ArchiveBot", "PriceBot"] {
        file += &format!("User-agent: {bot}\nDisallow: /\n\n");
    }
    file += "User-agent: *\n";
    let sections = [
        "account",
        "admin",
        "ajax",
        "api",
        "basket",
        "cart",
        "cgi-bin",
        "checkout",
        "compare",
        "customer",
        "download",
        "feed",
        "gift",
        "help/internal",
        "includes",
        "js/private",
        "login",
        "logout",
        "mail",
        "media/tmp",
        "members",
        "my",
        "newsletter",
        "order",
        "payment",
        "preview",
        "print",
        "private",
        "profile",
        "register",
        "report",
        "review/write",
        "search",
        "secure",
        "session",
        "staff",
        "stats",
        "subscribe",
        "tag",
        "test",
        "track",
        "user",
        "wishlist",
        "wp-admin",
        "wp-login.php",
        "xmlrpc.php",
    ];
    for section in sections {
        file += &format!("Disallow: /{section}/\n");
    }
    for pattern in [
        "/*?sort=",
        "/*&sort=",
        "/*?sessionid=",
        "/*?*utm_",
        "/*.pdf$",
        "/*.php$",
        "/*/print$",
        "/*/amp/",
        "/*?filter*=",
        "/*?page=*&size=",
        "/search?*q=",
        "/*/comments/feed",
        "/*.json$",
        "/*/embed$",
        "/catalog/*/compare",
        "/*?print=1",
        "/*;jsessionid",
        "/*/tag/*/page/",
        "/*?replytocom",
        "/*/trackback$",
        "/de/*/intern/",
        "/*.inc$",
        "/*?dir=",
        "/*?limit=",
    ] {
        file += &format!("Disallow: {pattern}\n");
    }
    for open in [
        "/ajax/menu",
        "/wp-admin/admin-ajax.php",
        "/search/about",
        "/media/tmp/logo.png",
        "/*.pdf?public",
        "/my/story",
        "/*.js$",
        "/*.css$",
    ] {
        file += &format!("Allow: {open}\n");
    }
    file += "Crawl-delay: 1\n\nSitemap: https://www.example.com/sitemap.xml\n";
    let mut draw = Draw(1);
    let words = [
        "shoes",
        "women",
        "garden",
        "tools",
        "2026",
        "05",
        "news",
        "politics",
        "review",
        "how-to-choose-a-tent",
        "p",
        "item",
        "de",
        "blog",
    ];
    let paths = (0..2_000).map(|number| {
        let mut path = String::new();
        for _ in 0..1 + draw.below(4) {
            path += &format!("/{}", words[draw.below(words.len())]);
        }
        path += &format!("/{number}-{}", words[draw.below(words.len())]);
        path += ["", "", "", "/", ".html", ".html", ".pdf", "?page=2", "?sort=price&dir=up", "/print"]
            [draw.below(10)];
        if draw.below(10) == 0 { format!("/{}{path}", sections[draw.below(sections.len())]) } else { path }
    });
    (file, paths.collect())
}

pub fn worst() -> Vec<Case> {
    let a = format!("/{}", "a".repeat(PATH_BYTES - 1));
    let alphabet: String = "zyxwvutsrqponmlkjihgfedcba".chars().cycle().take(PATH_BYTES - 1).collect();
    let alphabet = format!("/{alphabet}");
    let mut draw = Draw(2);
    let few = draw.text(4, PATH_BYTES - 1);
    let few = format!("/{few}");
    let many = format!("/{}", draw.text(26, PATH_BYTES - 1));
    let case = |name, path: &str, rule: &mut dyn FnMut(usize) -> String| Case {
        name,
        file: full(rule),
        path: path.to_owned(),
    };
    let grams = |text: &str, half: usize, number: usize, length: usize| {
        let start = 1 + half * PATH_BYTES / 2 + number % (PATH_BYTES / 2 - 16);
        text[start..start + length].to_owned()
    };
    let mut other = Draw(3);
    vec![
        case("one wildcard, 40,000 times", &a, &mut |_| "*a*a*a$".to_owned()),
        case("prefixes, none of it", &a, &mut |number| format!("/{}", letters(number, 4))),
        case("prefixes, one in another", &a, &mut |number| format!("/{}b", "a".repeat(number % 900))),
        case("ends that differ", &a, &mut |number| format!("*a*a*{}$", letters(number + 1, 4))),
        case("ends that fit", &a, &mut |number| format!("*{}b*{}$", letters(number, 4), "a".repeat(4))),
        case("many stars", &a, &mut |number| format!("{}*aba", "*a".repeat(number % 700))),
        case("many stars, nothing fits", &few, &mut |_| {
            format!("*{}*e", other.text(4, 700).chars().map(String::from).collect::<Vec<_>>().join("*"))
        }),
        case("many stars, all but one fit", &few, &mut |number| {
            let word =
                Draw(number as u64).text(4, 700).chars().map(String::from).collect::<Vec<_>>().join("*");
            format!("*{word}*{}", Draw(number as u64).text(4, 12))
        }),
        case("three letters, all there", &alphabet, &mut |number| format!("*{}", letters(number, 3))),
        case("four letters, none there", &many, &mut |number| {
            format!("*{}q*{}zq", letters(number, 3), letters(number, 3))
        }),
        case("in the wrong order", &many, &mut |number| {
            format!("*{}*{}", grams(&many, 1, number, 5), grams(&many, 0, number * 7, 5))
        }),
        case("behind the last one", &format!("{}!!", &many[..PATH_BYTES - 2]), &mut |number| {
            format!("*!!*{}", letters(number, 3))
        }),
        case("nine letters of four", &few, &mut |number| {
            let word = Draw(number as u64 + 9).text(4, 9);
            format!("*{}*{word}*{word}", &word[..4])
        }),
        case("six letters of four, twice", &few, &mut |number| {
            let word = Draw(number as u64 + 9).text(4, 6);
            format!("*{word}*{word}*{word}*{word}*{word}*{word}*dacb{word}")
        }),
        case("runs with a flaw", &a, &mut |number| {
            format!("*{}b{}", "a".repeat(1 + number % 400), "a".repeat(1 + number % 7))
        }),
        case("runs in runs", &format!("{}b", &a[..PATH_BYTES - 1]), &mut |number| {
            format!("*{}b*{}", "a".repeat(1 + number % 400), "a".repeat(1 + number % 7))
        }),
        case("long runs twice", &format!("{}ba", &a[..PATH_BYTES - 2]), &mut |number| {
            format!("*{}*{}ba*a", "a".repeat(3_900 - number), "a".repeat(3_900 + number))
        }),
    ]
}

/// As many rules as there is room for, with the shortest name.
fn full(rule: &mut dyn FnMut(usize) -> String) -> String {
    // With something disallowed: where nothing is, the answer is known without looking.
    let mut file = String::from("User-agent: *\nDisallow: /\n");
    for number in 0.. {
        let pattern = rule(number);
        if file.len() + pattern.len() + "allow:\n".len() > FILE_BYTES {
            return file;
        }
        file += &format!("allow:{pattern}\n");
    }
    file
}

fn letters(mut number: usize, count: usize) -> String {
    let mut text = String::new();
    for _ in 0..count {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    text
}

/// Numbers that look random and are the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn text(&mut self, letters: usize, length: usize) -> String {
        (0..length).map(|_| char::from(b'a' + self.below(letters) as u8)).collect()
    }
}
