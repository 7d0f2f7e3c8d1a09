//! Sizes and durations as people write them: `256 MiB`, `10 s`, `5e10`.

/// Bytes of `text`: a number and `B`, `KiB`, `MiB` or `GiB` (also `kB`, `MB`, `GB` by thousands).
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" | "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return None,
    };
    whole(number * factor)
}

/// Milliseconds of `text`: a number and `ms`, `s`, `min`, `h` or `d`.
pub fn millis(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "ms" => 1.0,
        "s" => 1e3,
        "min" => 6e4,
        "h" => 3.6e6,
        "d" => 8.64e7,
        _ => return None,
    };
    whole(number * factor)
}

/// A count: `1000`, `1_000`, `5e10`.
pub fn count(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    if unit.is_empty() { whole(number) } else { None }
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || matches!(c, '.' | '_' | ',') || (c == 'e' && at > 0)))
        .map_or(text.len(), |(at, _)| at);
    let number = text[..end].replace(['_', ','], "").parse().ok()?;
    Some((number, text[end..].trim()))
}

fn whole(number: f64) -> Option<u64> {
    // 2^53: beyond it a float no longer holds every whole number.
    (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
}

/// `bytes` for people, such as `1.5 MiB`.
pub fn show_bytes(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) if bytes.is_multiple_of(*size) => format!("{} {unit}", bytes / size),
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / *size as f64),
        None => format!("{bytes} B"),
    }
}

/// `millis` for people, such as `1.5 s`.
pub fn show_millis(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..120_000 => format!("{:.1} s", millis as f64 / 1e3),
        120_000..7_200_000 => format!("{:.1} min", millis as f64 / 6e4),
        _ => format!("{:.1} h", millis as f64 / 3.6e6),
    }
}

/// `count` for people, with a thin grouping of thousands: `14,599`.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        assert_eq!(bytes("256 MiB"), Some(256 << 20));
        assert_eq!(bytes("1.5KiB"), Some(1536));
        assert_eq!(bytes("10 s"), None);
        assert_eq!(millis("10 min"), Some(600_000));
        assert_eq!(millis("300ms"), Some(300));
        assert_eq!(millis("10"), None);
        assert_eq!(count("5e10"), Some(50_000_000_000));
        assert_eq!(count("1_000"), Some(1000));
        assert_eq!(count("-1"), None);
        assert_eq!(bytes("0.3 B"), None);
    }

    #[test]
    fn what_people_read() {
        assert_eq!(show_count(14599), "14,599");
        assert_eq!(show_bytes(1536), "1.5 KiB");
        assert_eq!(show_millis(1500), "1.5 s");
    }
}
