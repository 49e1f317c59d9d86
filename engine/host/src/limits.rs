//! Limits of this process that the system lets it raise.

/// Lets this process have as many files and connections open as the system allows: shells give few by default.
#[cfg(unix)]
pub fn many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it is refused, what does not fit is refused later, in words.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Elsewhere there is no such limit.
#[cfg(not(unix))]
pub fn many_files() {}
