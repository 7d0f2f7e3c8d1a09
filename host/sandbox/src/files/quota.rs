//! What a call may write: bytes and files of all its writable folders together.
//!
//! What counts is the logical length, so a sparse file counts whole. Nothing is given back within
//! a call: a file that was removed may still be open. So what was reserved is never less than what
//! is there, whichever of several writes comes first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::record::Wall;

use crate::recorder::Recorder;

/// Something of which there is only so much.
#[derive(Debug)]
pub(crate) struct Account {
    limit: u64,
    used: AtomicU64,
}

impl Account {
    pub(crate) fn new(limit: u64) -> Self {
        Account { limit, used: AtomicU64::new(0) }
    }

    fn take(&self, more: u64) -> bool {
        let within = |used: u64| used.checked_add(more).filter(|after| *after <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    fn give_back(&self, less: u64) {
        self.used.fetch_sub(less, Ordering::Relaxed);
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

/// A share of an account, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    account: Arc<Account>,
    share: u64,
}

impl Held {
    /// The share, if there is as much left.
    pub(crate) fn take(account: &Arc<Account>, share: u64) -> Option<Self> {
        account.take(share).then(|| Held { account: Arc::clone(account), share })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.give_back(self.share);
    }
}

/// The quota of one call. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Quota(Arc<Accounts>);

#[derive(Debug)]
struct Accounts {
    bytes: Account,
    files: Account,
    recorder: Recorder,
}

/// The quota is used up. It is recorded already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsedUp;

impl Quota {
    pub(crate) fn new(limits: &Limits, recorder: Recorder) -> Self {
        let account = |key| Account::new(limits.get(key));
        let (bytes, files) = (account(LimitKey::WorkBytes), account(LimitKey::WorkFiles));
        Quota(Arc::new(Accounts { bytes, files, recorder }))
    }

    /// Reserves growth of a file.
    pub(crate) fn grow(&self, bytes: u64) -> Result<(), UsedUp> {
        self.take(LimitKey::WorkBytes, &self.0.bytes, bytes)
    }

    /// Gives back what [`Quota::grow`] reserved for a write that was not done.
    pub(crate) fn not_grown(&self, bytes: u64) {
        self.0.bytes.give_back(bytes);
    }

    /// Reserves one file or folder.
    pub(crate) fn create(&self) -> Result<(), UsedUp> {
        self.take(LimitKey::WorkFiles, &self.0.files, 1)
    }

    /// Gives back what [`Quota::create`] reserved for a file that was not made.
    pub(crate) fn not_created(&self) {
        self.0.files.give_back(1);
    }

    fn take(&self, key: LimitKey, account: &Account, more: u64) -> Result<(), UsedUp> {
        if account.take(more) {
            return Ok(());
        }
        let (limit, used) = (account.limit, account.used());
        let what = format!(
            "`{key}` is used up: {} allowed, {} written so far in all, and more was wanted",
            key.show(limit),
            key.show(used)
        );
        let grant = used.checked_add(more).and_then(u64::checked_next_power_of_two).map(|enough| {
            // A size in bytes that no rounding makes smaller.
            format!("limits = {{ {key} = \"{enough}\" }}")
        });
        self.0.recorder.deny(Wall::Quota, what, grant);
        Err(UsedUp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(bytes: u64, files: u64) -> (Quota, Recorder) {
        let limits = Limits::default().with(LimitKey::WorkBytes, bytes).with(LimitKey::WorkFiles, files);
        let recorder = Recorder::default();
        (Quota::new(&limits, recorder.clone()), recorder)
    }

    #[test]
    fn the_last_byte_and_the_last_file_are_given_and_no_more() {
        let (quota, recorder) = quota(100, 2);
        assert!(quota.grow(60).is_ok() && quota.grow(40).is_ok() && quota.grow(0).is_ok());
        assert_eq!(quota.grow(1), Err(UsedUp));
        assert_eq!(quota.grow(u64::MAX), Err(UsedUp));
        assert!(quota.create().is_ok() && quota.create().is_ok());
        assert_eq!(quota.create(), Err(UsedUp));
        let denials = recorder.take().denials;
        let told: Vec<_> = denials.iter().map(|denial| (denial.what.as_str(), denial.count)).collect();
        let bytes =
            "`work-bytes` is used up: 100 B allowed, 100 B written so far in all, and more was wanted";
        let files = "`work-files` is used up: 2 allowed, 2 written so far in all, and more was wanted";
        assert_eq!(told, [(bytes, 2), (files, 1)]);
        let grants: Vec<_> = denials.iter().map(|denial| denial.grant.as_deref()).collect();
        assert_eq!(
            grants,
            [Some("limits = { work-bytes = \"128\" }"), Some("limits = { work-files = \"4\" }")]
        );
        for (denial, key) in denials.iter().zip([LimitKey::WorkBytes, LimitKey::WorkFiles]) {
            let value = denial.grant.as_ref().unwrap().split('"').nth(1).unwrap();
            assert!(key.parse_value(value).is_some(), "{value}");
        }
    }

    #[test]
    fn what_was_held_is_given_back() {
        let account = Arc::new(Account::new(2));
        let one = Held::take(&account, 2).unwrap();
        assert!(Held::take(&account, 1).is_none());
        drop(one);
        assert!(Held::take(&account, 2).is_some());
    }
}
