//! macOS sandbox ("seatbelt"), entered by the one call that programs use there to restrict themselves.

use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};

unsafe extern "C" {
    /// From `<sandbox.h>`: with `flags` 0, the profile is text in the sandbox's language.
    fn sandbox_init(profile: *const c_char, flags: u64, error: *mut *mut c_char) -> c_int;
    fn sandbox_free_error(error: *mut c_char);
}

/// Restricts this process permanently. Returns whether the sandbox is in force.
pub(crate) fn stand(write: &[PathBuf], read: &[PathBuf], network: bool) -> bool {
    let Some(profile) = profile(write, read, network).and_then(|profile| CString::new(profile).ok()) else {
        return false;
    };
    let mut error: *mut c_char = std::ptr::null_mut();
    #[allow(unsafe_code, reason = "std has no wrapper for sandbox_init")]
    // SAFETY: the profile is a C string that outlives the call, and the error is freed by the call made for that.
    unsafe {
        let stands = sandbox_init(profile.as_ptr(), 0, &raw mut error) == 0;
        if !error.is_null() {
            sandbox_free_error(error);
        }
        stands
    }
}

/// Returns the sandbox profile: everything else is denied, including new processes. `None` if a path isn't valid UTF-8.
fn profile(write: &[PathBuf], read: &[PathBuf], network: bool) -> Option<String> {
    let mut profile = String::from(
        "(version 1)(deny default)(allow signal (target self))(allow sysctl-read)(allow file-read-metadata)\
         (allow file-read* (subpath \"/usr/lib\") (subpath \"/usr/share\") (subpath \"/System\")\
         (subpath \"/private/var/db/timezone\") (literal \"/private/etc/localtime\")\
         (literal \"/private/etc/apache2/mime.types\"))\
         (allow file-read* file-write* (literal \"/dev/null\"))\
         (allow file-read* (literal \"/dev/random\") (literal \"/dev/urandom\") (literal \"/dev/zero\"))",
    );
    let below = |path: &Path| {
        let path = std::fs::canonicalize(path).ok()?;
        let path = path.to_str()?.replace('\\', "\\\\").replace('"', "\\\"");
        Some(format!("(subpath \"{path}\")"))
    };
    for path in read {
        profile += &format!("(allow file-read* {})", below(path)?);
    }
    for path in write {
        profile += &format!("(allow file-read* file-write* {})", below(path)?);
    }
    // Deny writing files that other programs execute. The last matching rule wins.
    for pattern in ::sandbox::guarded_patterns(false) {
        profile += &format!("(deny file-write* (regex #\"{pattern}\"))");
    }
    if network {
        profile += "(allow network-outbound)(allow system-socket)(allow mach-lookup\
                    (global-name \"com.apple.dnssd.service\"))(allow file-read* (subpath \"/private/etc/ssl\")\
                    (literal \"/private/etc/hosts\") (literal \"/private/etc/resolv.conf\"))";
    }
    Some(profile)
}
