//! The values of secrets: set on the way out, scrubbed on every way back, in no log and no error.

use std::collections::BTreeMap;
use std::fmt;

/// Secrets by name. No component, trace or message ever holds a value.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// These secrets, as name and value.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        Secrets(secrets.into_iter().collect())
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The value of one.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
