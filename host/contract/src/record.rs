//! What a call did at its walls: what left through the network gate, and what was turned down.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::Timestamp;
use crate::interface::LimitHit;

/// One exchange over the network, each hop of a redirect for itself. Secrets are scrubbed from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The method.
    pub method: String,
    /// The URL, in canonical form.
    pub url: String,
    /// The URL that was asked for, where a redirect led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// When it left.
    pub at: Timestamp,
    /// How long it took.
    pub ms: u64,
    /// The request's body.
    pub sent: Digest,
    /// Its size.
    pub sent_bytes: u64,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// The answer's headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The answer's body, after decompression; `None` where it was not read to its end.
    pub body: Option<Digest>,
    /// Its size, or how much of it was read.
    pub body_bytes: u64,
    /// Why there was no answer, or no whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Which wall turned something down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wall {
    /// No network rule allows the request.
    Network,
    /// The address is a special one that no rule names.
    Address,
    /// Raw sockets and name lookups are never allowed.
    Socket,
    /// A file operation that no guest may do.
    File,
    /// The quota of `/work`.
    Quota,
    /// A secret that could not be set.
    Secret,
    /// A header that no guest may set, or a request that cannot be sent.
    Request,
    /// A limit that refuses without ending the call.
    Limit,
}

impl Wall {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Wall::Network => "network",
            Wall::Address => "address",
            Wall::Socket => "socket",
            Wall::File => "file",
            Wall::Quota => "quota",
            Wall::Secret => "secret",
            Wall::Request => "request",
            Wall::Limit => "limit",
        }
    }
}

/// Something that a guest tried and was refused; the same thing once, with a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// By which wall.
    pub wall: Wall,
    /// What it tried, and why not.
    pub what: String,
    /// The smallest grant that would allow it, as it stands in a configuration under
    /// `[grant.NAME]`; `None` if nothing would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// How often.
    pub count: u64,
}

/// What a granted folder held when a call began, so that the call can be executed again elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderSeen {
    /// The folder, as granted.
    pub path: String,
    /// A blob that lists its files; see [`FolderFile`]. `None` where it was not recorded.
    pub files: Option<Digest>,
    /// What was not recorded, and why: all of it, or, beside a list, what of it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// One line of the list that [`FolderSeen::files`] names: a JSON array of these, in the order of paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderFile {
    /// Relative to the folder.
    pub path: String,
    /// Its content; `None` is a folder.
    pub digest: Option<Digest>,
}

/// Different denials that one call's record keeps.
pub const DENIALS_MAX: usize = 100;

/// What a call did at its walls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// What left, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
    /// What was turned down.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Denials beyond [`DENIALS_MAX`].
    #[serde(skip_serializing_if = "is_zero")]
    pub more_denials: u64,
    /// What the granted folders held when the call began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FolderSeen>,
    /// The limit that ended a trigger, a verification or a recovery; what ended a call stands in its
    /// ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitHit>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Record {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        let quiet = self.exchanges.is_empty() && self.denials.is_empty() && self.folders.is_empty();
        quiet && self.more_denials == 0 && self.limit.is_none()
    }

    /// Counts a denial.
    pub fn deny(&mut self, wall: Wall, what: String, grant: Option<String>) {
        let same = |known: &&mut Denial| known.wall == wall && known.what == what;
        if let Some(known) = self.denials.iter_mut().find(same) {
            known.count += 1;
        } else if self.denials.len() < DENIALS_MAX {
            self.denials.push(Denial { wall, what, grant, count: 1 });
        } else {
            self.more_denials += 1;
        }
    }

    /// The blobs that it names.
    pub fn blobs(&self) -> impl Iterator<Item = Digest> + '_ {
        let exchanged = self.exchanges.iter().flat_map(|one| one.body.into_iter().chain([one.sent]));
        exchanged.chain(self.folders.iter().filter_map(|folder| folder.files))
    }

    /// Whether a request for this URL was answered with a success (2xx) and a whole body that is not
    /// empty, there or where its redirects led. A place on the way of a redirect is no source: it
    /// only named another. Nor is what was asked for by HEAD: nobody read it.
    pub fn fetched(&self, url: &str) -> bool {
        let target = crate::network::Target::parse(url).ok();
        target.is_some_and(|target| {
            let url = target.to_string();
            let good = |status: u16| (200..300).contains(&status);
            self.exchanges.iter().any(|exchange| {
                let here = exchange.url == url || exchange.asked.as_deref() == Some(&url);
                let read = exchange.method != "HEAD" && exchange.body.is_some() && exchange.body_bytes > 0;
                here && read && exchange.status.is_some_and(good)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(url: &str, asked: Option<&str>, status: u16, whole: bool) -> Exchange {
        Exchange {
            method: "GET".to_owned(),
            url: url.to_owned(),
            asked: asked.map(str::to_owned),
            at: Timestamp(0),
            ms: 1,
            sent: Digest::ZERO,
            sent_bytes: 0,
            status: Some(status),
            headers: Vec::new(),
            body: whole.then_some(Digest::ZERO),
            body_bytes: 2,
            error: None,
        }
    }

    #[test]
    fn only_what_answered_whole_was_fetched() {
        let record = Record {
            exchanges: vec![
                exchange("https://a.org/moved", None, 302, true),
                exchange("https://b.org/new", Some("https://a.org/moved"), 200, true),
                exchange("https://a.org/missing", None, 404, true),
                exchange("https://a.org/cut", None, 200, false),
            ],
            ..Record::default()
        };
        for url in ["https://a.org/moved", "https://b.org/new", "HTTPS://B.org:443/new#part"] {
            assert!(record.fetched(url), "{url}");
        }
        for url in [
            "https://a.org/missing",
            "https://a.org/cut",
            "https://a.org/",
            "https://b.org/new?x",
            "b.org/new",
            "",
        ] {
            assert!(!record.fetched(url), "{url}");
        }
    }

    #[test]
    fn a_source_is_something_that_was_read() {
        let page = "https://a.org/page";
        let fetched =
            |exchange: Exchange| Record { exchanges: vec![exchange], ..Record::default() }.fetched(page);
        let whole = exchange(page, None, 200, true);
        assert!(fetched(whole.clone()));
        assert!(fetched(Exchange { method: "POST".to_owned(), ..whole.clone() }));
        assert!(!fetched(Exchange { method: "HEAD".to_owned(), ..whole.clone() }));
        assert!(!fetched(Exchange { body_bytes: 0, ..whole.clone() }));
        // Where redirects led, the same.
        let led = exchange("https://b.org/", Some(page), 200, true);
        assert!(fetched(led.clone()));
        assert!(!fetched(Exchange { method: "HEAD".to_owned(), ..led.clone() }));
        assert!(!fetched(Exchange { body_bytes: 0, ..led }));
    }

    #[test]
    fn a_place_on_the_way_of_a_redirect_is_no_source() {
        let (first, middle, last) = ("https://a.org/", "https://b.org/", "https://c.org/");
        let record = Record {
            exchanges: vec![
                exchange(first, None, 302, true),
                exchange(middle, Some(first), 302, true),
                exchange(last, Some(first), 200, true),
            ],
            ..Record::default()
        };
        assert_eq!([first, middle, last].map(|url| record.fetched(url)), [true, false, true]);
    }

    #[test]
    fn a_record_reads_back_and_an_old_one_is_read() {
        assert_eq!(serde_json::from_str::<Record>("{}").unwrap(), Record::default());
        assert_eq!(serde_json::to_string(&Record::default()).unwrap(), "{}");
        let hit = LimitHit { limit: "fuel".to_owned(), allowed: 1, used: 2 };
        let record = Record { limit: Some(hit), ..Record::default() };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        assert!(!record.is_empty());
    }

    #[test]
    fn denials_are_counted_and_bounded() {
        let mut record = Record::default();
        for index in 0..DENIALS_MAX + 5 {
            record.deny(Wall::Network, format!("GET https://a.org/{index}"), None);
            record.deny(Wall::File, "link".to_owned(), None);
        }
        let links = record.denials.iter().find(|denial| denial.wall == Wall::File).unwrap();
        assert_eq!(links.count, (DENIALS_MAX + 5) as u64);
        assert_eq!((record.denials.len(), record.more_denials), (DENIALS_MAX, 6));
    }
}
