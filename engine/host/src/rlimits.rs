//! Limits of this process that the system lets it raise.

/// Lets this process have as many files and connections open as the system allows: shells give few by default. Gives
/// how many that are.
#[cfg(unix)]
pub fn raise_open_file_limit() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, later operations fail with a message.
    let _ = setrlimit(Resource::Nofile, limit);
    let files = getrlimit(Resource::Nofile).current;
    files.map_or(1 << 20, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub fn raise_open_file_limit() -> usize {
    1 << 20
}
