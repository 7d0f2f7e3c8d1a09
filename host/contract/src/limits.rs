//! Every limit of a call: its key, its unit, its default.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units;

/// In what a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Millis,
}

macro_rules! limits {
    ($($(#[$doc:meta])* $variant:ident = $key:literal, $unit:ident, $default:expr;)*) => {
        /// A limit of a call, by its configuration key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LimitKey { $($(#[$doc])* $variant,)* }

        impl LimitKey {
            /// Every limit there is.
            pub const ALL: &'static [LimitKey] = &[$(LimitKey::$variant,)*];

            /// The configuration key.
            pub fn as_str(self) -> &'static str {
                match self { $(LimitKey::$variant => $key,)* }
            }

            /// In what it counts.
            pub fn unit(self) -> Unit {
                match self { $(LimitKey::$variant => Unit::$unit,)* }
            }

            /// The value without any configuration.
            pub fn default_value(self) -> u64 {
                match self { $(LimitKey::$variant => $default,)* }
            }
        }
    };
}

/// Elements of one table that the engine is laid out for. A call's limit counts all of its tables
/// together, and one of them may be all that it has.
const TABLE_ELEMENTS_MOST: u64 = 100_000;

limits! {
    /// Units of wasmtime fuel.
    Fuel = "fuel", Count, 50_000_000_000;
    /// Time inside the poll of the call's future.
    Cpu = "cpu", Millis, 10_000;
    /// Time from instantiation to the end of the call.
    Wall = "wall", Millis, 30_000;
    /// All linear memories of the call together.
    Memory = "memory", Bytes, 128 << 20;
    /// Elements of all tables together.
    TableElements = "table-elements", Count, 20_000;
    /// Tables.
    Tables = "tables", Count, 32;
    /// Core instances.
    Instances = "instances", Count, 64;
    /// Linear memories.
    Memories = "memories", Count, 8;
    /// The guest's stack.
    Stack = "stack", Bytes, 1 << 20;
    /// Content of an outcome or verdict, facts included.
    Outcome = "outcome", Bytes, 1 << 20;
    /// Draft facts of one outcome.
    Facts = "facts", Count, 1_000;
    /// Log, stdout and stderr together; more is cut, not refused.
    Log = "log", Bytes, 256 << 10;
    /// Calls of this host's own imports.
    HostCalls = "host-calls", Count, 10_000;
    /// Calls of WASI.
    WasiCalls = "wasi-calls", Count, 1_000_000;
    /// HTTP exchanges.
    HttpCalls = "http-calls", Count, 32;
    /// Bytes copied by one host call or one result.
    Transfer = "transfer", Bytes, 16 << 20;
    /// Component handles.
    Handles = "handles", Count, 10_000;
    /// Random bytes of one request.
    Random = "random", Bytes, 1 << 20;
    /// Bytes of HTTP responses, after decompression.
    HttpIn = "http-in", Bytes, 8 << 20;
    /// Bytes of HTTP requests.
    HttpOut = "http-out", Bytes, 1 << 20;
    /// Bytes of `/work`.
    WorkBytes = "work-bytes", Bytes, 256 << 20;
    /// Files of `/work`.
    WorkFiles = "work-files", Count, 4_096;
    /// Bytes of the component.
    Component = "component", Bytes, 64 << 20;
}

impl LimitKey {
    /// The limit with this key.
    pub fn parse(key: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|limit| limit.as_str() == key)
    }

    /// The most that a grant can give, unless the operator's own file says otherwise.
    pub fn default_ceiling(self) -> u64 {
        match self {
            LimitKey::Fuel => 10_000_000_000_000,
            LimitKey::Cpu => 30 * 60_000,
            LimitKey::Wall => 2 * 3_600_000,
            LimitKey::Memory => 4 << 30,
            LimitKey::TableElements => TABLE_ELEMENTS_MOST,
            LimitKey::Outcome => 64 << 20,
            LimitKey::Facts => 100_000,
            LimitKey::Log => 64 << 20,
            LimitKey::HostCalls => 10_000_000,
            LimitKey::WasiCalls => 1_000_000_000,
            LimitKey::HttpCalls => 10_000,
            LimitKey::Transfer => 1 << 30,
            LimitKey::Handles => 1_000_000,
            LimitKey::Random => 64 << 20,
            LimitKey::HttpIn | LimitKey::HttpOut => 1 << 30,
            LimitKey::WorkBytes => 16 << 30,
            LimitKey::WorkFiles => 1_000_000,
            LimitKey::Tables
            | LimitKey::Instances
            | LimitKey::Memories
            | LimitKey::Stack
            | LimitKey::Component => self.default_value(),
        }
    }

    /// Whether the engine or the loader holds it for all calls alike, so that nothing changes it.
    pub fn is_fixed(self) -> bool {
        matches!(self, LimitKey::Stack | LimitKey::Component)
    }

    /// Whether it can be lowered and not raised: the engine is laid out for its default.
    pub fn is_most(self) -> bool {
        matches!(self, LimitKey::Tables | LimitKey::Instances | LimitKey::Memories)
    }

    /// The most that it can be, whatever the operator says: what the engine is laid out for. `None`
    /// if only the operator's ceiling bounds it.
    pub fn most(self) -> Option<u64> {
        match self {
            LimitKey::TableElements => Some(TABLE_ELEMENTS_MOST),
            key if key.is_most() || key.is_fixed() => Some(key.default_value()),
            _ => None,
        }
    }

    /// A value as a configuration writes it, exactly: `"256 MiB"`, `"30000 ms"`, `1000`.
    pub fn write(self, value: u64) -> String {
        let whole = |unit: u64| value > 0 && value.is_multiple_of(unit);
        match self.unit() {
            Unit::Count => value.to_string(),
            Unit::Bytes if whole(1 << 30) => format!("\"{} GiB\"", value >> 30),
            Unit::Bytes if whole(1 << 20) => format!("\"{} MiB\"", value >> 20),
            Unit::Bytes if whole(1 << 10) => format!("\"{} KiB\"", value >> 10),
            Unit::Bytes => format!("\"{value} B\""),
            Unit::Millis if whole(60_000) => format!("\"{} min\"", value / 60_000),
            Unit::Millis if whole(1_000) => format!("\"{} s\"", value / 1_000),
            Unit::Millis => format!("\"{value} ms\""),
        }
    }

    /// A value as a person writes it, such as `256 MiB`.
    pub fn parse_value(self, text: &str) -> Option<u64> {
        match self.unit() {
            Unit::Count => units::count(text),
            Unit::Bytes => units::bytes(text),
            Unit::Millis => units::millis(text),
        }
    }

    /// A value for people.
    pub fn show(self, value: u64) -> String {
        match self.unit() {
            Unit::Count => units::show_count(value),
            Unit::Bytes => units::show_bytes(value),
            Unit::Millis => units::show_millis(value),
        }
    }

    /// What a value looks like, for messages.
    pub fn expected(self) -> &'static str {
        match self.unit() {
            Unit::Count => "a count such as 1000 or \"5e10\"",
            Unit::Bytes => "a size such as \"256 MiB\"",
            Unit::Millis => "a time such as \"10 s\"",
        }
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The limits in force for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits(BTreeMap<LimitKey, u64>);

impl Default for Limits {
    fn default() -> Self {
        Limits(LimitKey::ALL.iter().map(|key| (*key, key.default_value())).collect())
    }
}

impl Limits {
    /// The value of one limit.
    pub fn get(&self, key: LimitKey) -> u64 {
        self.0.get(&key).copied().unwrap_or_else(|| key.default_value())
    }

    /// These limits with one changed.
    #[must_use]
    pub fn with(mut self, key: LimitKey, value: u64) -> Self {
        self.0.insert(key, value);
        self
    }

    /// These limits with some changed.
    #[must_use]
    pub fn overlay(mut self, changes: &LimitChanges) -> Self {
        self.0.extend(changes.0.iter().map(|(key, value)| (*key, *value)));
        self
    }
}

/// Some limits with other values: what a manifest asks for, or a grant gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitChanges(pub BTreeMap<LimitKey, u64>);

macro_rules! serde_as_map {
    ($type:ident, $missing:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(key, value)| (key.as_str(), value)))
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let named = BTreeMap::<String, u64>::deserialize(deserializer)?;
                // A log of a newer version may name limits that this one does not have.
                let known = named
                    .into_iter()
                    .filter_map(|(key, value)| LimitKey::parse(&key).map(|key| (key, value)));
                let mut limits: $type = $missing;
                limits.0.extend(known);
                Ok(limits)
            }
        }
    };
}

serde_as_map!(Limits, Limits::default());
serde_as_map!(LimitChanges, LimitChanges::default());

/// What a call used, on whatever way it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Fuel; exact on return, `unreachable` and out of fuel, else a floor within one yield interval (10⁶).
    pub fuel: u64,
    /// Time inside the poll of the call's future.
    pub cpu_ms: u64,
    /// Time from instantiation to the end.
    pub wall_ms: u64,
    /// The peak of all linear memories together.
    pub memory_bytes: u64,
    /// Calls of this host's own imports.
    pub host_calls: u64,
    /// Calls of WASI, and of the engine's own helpers (growth of memories, looks at the clock).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wasi_calls: u64,
    /// HTTP exchanges, each hop of a redirect for itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub http_calls: u64,
    /// Bytes of HTTP responses, after decompression.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub http_in_bytes: u64,
    /// Bytes of HTTP requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub http_out_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_parse_back() {
        for key in LimitKey::ALL {
            assert_eq!(LimitKey::parse(key.as_str()), Some(*key));
        }
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        for key in LimitKey::ALL {
            for value in [0, 1, 999, 1_000, 1 << 10, 60_000, 1_500 << 20, 4 << 30, key.default_ceiling()] {
                let text = key.write(value);
                assert_eq!(key.parse_value(text.trim_matches('"')), Some(value), "{key} {text}");
            }
            assert!(key.default_ceiling() >= key.default_value(), "{key}");
        }
    }

    #[test]
    fn no_ceiling_is_above_what_the_engine_is_laid_out_for() {
        for key in LimitKey::ALL {
            assert!(key.most().is_none_or(|most| key.default_ceiling() <= most), "{key}");
        }
        assert_eq!(LimitKey::TableElements.most(), Some(100_000));
        assert_eq!((LimitKey::Tables.most(), LimitKey::Memory.most()), (Some(32), None));
    }

    #[test]
    fn limits_survive_json() {
        let limits = Limits::default().with(LimitKey::Fuel, 7);
        let text = serde_json::to_string(&limits).unwrap();
        assert_eq!(serde_json::from_str::<Limits>(&text).unwrap(), limits);
    }
}
