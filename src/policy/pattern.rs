//! Patterns of commands that require approval.

/// Whether one of these patterns matches a command; `*` matches anything. The patterns catch slips, not intent.
pub fn matches_any(patterns: &[String], words: &[String]) -> bool {
    let Some(program) = words.first() else { return false };
    let plain = words.join(" ");
    let name = program.rsplit('/').next().unwrap_or_default();
    let by_name = std::iter::once(name).chain(words[1..].iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    // A script given to a shell is matched by itself, too.
    let script = match (name, words.get(1).map(String::as_str)) {
        ("sh" | "bash" | "dash" | "ksh" | "zsh", Some("-c")) => words.get(2).map(|script| script.trim()),
        _ => None,
    };
    let matches_any_form = |pattern: &String| {
        matches_pattern(pattern, &plain)
            || matches_pattern(pattern, &by_name)
            || script.is_some_and(|script| matches_pattern(pattern, script))
    };
    patterns.iter().any(matches_any_form)
}

/// Whether a text matches a pattern in which `*` matches anything.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(found) = last.replace(part).filter(|found| !found.is_empty()) {
            match rest.find(found) {
                Some(at) => rest = &rest[at + found.len()..],
                None => return false,
            }
        }
    }
    match last {
        None => rest.is_empty(),
        Some(end) => rest.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_anything() {
        for (pattern, text) in [
            ("rm *", "rm -rf /"),
            ("*", ""),
            ("*", "x"),
            ("git push*", "git push"),
            ("git * --force*", "git push origin --force"),
            ("*prod*", "deploy to prod now"),
            ("true", "true"),
        ] {
            assert!(matches_pattern(pattern, text), "{pattern} / {text}");
        }
        for (pattern, text) in [
            ("rm *", "rmdir x"),
            ("true", "true x"),
            ("git * --force", "git push --force-with-lease"),
            ("*ab*ab", "ab"),
            ("", "x"),
        ] {
            assert!(!matches_pattern(pattern, text), "{pattern} / {text}");
        }
    }
}
