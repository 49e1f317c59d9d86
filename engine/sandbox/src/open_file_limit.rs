//! Resource limits of this process that it may raise itself.

/// Raises the limit of open files and connections to the maximum that the system allows, and returns it.
///
/// The shell's default is low.
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

/// Returns a fixed number, because other systems have no such limit.
#[cfg(not(unix))]
pub fn raise_open_file_limit() -> usize {
    1 << 20
}
