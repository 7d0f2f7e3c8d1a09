//! The host's own downloads, through the same gate as those of guests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use checkrein_contract::grant::Granted;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::network::Rule;
use checkrein_contract::record::Record;

use super::{Clear, NoAnswer, Pass, Request};
use crate::Sandbox;
use crate::meter::FAR;
use crate::recorder::Recorder;

/// Why there is no download.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// It may not leave, or not in the clear.
    #[error("{0}")]
    Denied(String),
    /// The limit `wall` was up.
    #[error("`{url}` was not there after {}", LimitKey::Wall.show(*.ms))]
    TimedOut {
        /// What was asked for.
        url: String,
        /// The limit, in milliseconds.
        ms: u64,
    },
    /// It has more than the limit `http-in`.
    #[error("`{url}` has more than {}", LimitKey::HttpIn.show(*.bytes))]
    TooLarge {
        /// What was asked for.
        url: String,
        /// The limit.
        bytes: u64,
    },
    /// The server answered with something else than a success.
    #[error("`{url}` answered {status}")]
    Status {
        /// Where redirects led.
        url: String,
        /// What it answered.
        status: u16,
    },
    /// The network or the server failed.
    #[error("{0}")]
    Failed(String),
}

impl Sandbox {
    /// Downloads a file of the host's own: what `rules` allow; by https, or in the clear from an
    /// address that a rule names. Both hold for each hop of a redirect. Of the limits, `http-calls`,
    /// `http-in` and `wall` hold. Also says what it did, whether or not it came to an end.
    pub async fn download(
        &self,
        url: &str,
        rules: &[Rule],
        limits: &Limits,
    ) -> (Result<Bytes, DownloadError>, Record) {
        let recorder = Recorder::default();
        let downloaded = self.fetch_file(url, rules, limits, recorder.clone()).await;
        let downloaded = match recorder.failed() {
            Some(error) => Err(DownloadError::Failed(error.to_string())),
            None => downloaded,
        };
        (downloaded, recorder.take())
    }

    async fn fetch_file(
        &self,
        url: &str,
        rules: &[Rule],
        limits: &Limits,
        recorder: Recorder,
    ) -> Result<Bytes, DownloadError> {
        if self.0.dry {
            return Err(DownloadError::Denied(format!(
                "nothing leaves a dry run, so `{url}` was not asked for"
            )));
        }
        let time = Duration::from_millis(limits.get(LimitKey::Wall));
        let granted = Granted { network: rules.to_vec(), ..Granted::default() };
        let now = Instant::now();
        let deadline = now.checked_add(time).unwrap_or(now + FAR);
        let (granted, blobs) = (&granted, Arc::clone(&self.0.blobs));
        let pass = Pass { granted, limits, deadline, clear: Clear::Addresses, recorder, blobs };
        let gate = self.0.way_out.gate(pass);
        let request = Request {
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            timeout: Some(time),
            follow: true,
        };
        let response = gate.fetch(request).await.map_err(|denied| match denied {
            NoAnswer::Denied(why) | NoAnswer::Invalid(why) => DownloadError::Denied(why),
            NoAnswer::TimedOut => {
                DownloadError::TimedOut { url: url.to_owned(), ms: limits.get(LimitKey::Wall) }
            }
            NoAnswer::TooLarge(bytes) => DownloadError::TooLarge { url: url.to_owned(), bytes },
            NoAnswer::Transport(why) => DownloadError::Failed(why),
        })?;
        if (200..300).contains(&response.status) {
            Ok(response.body)
        } else {
            Err(DownloadError::Status { url: response.url, status: response.status })
        }
    }
}
