//! Extended attributes, which Landlock does not see: only the user's own, and none of a guarded file.

use super::{CallingThread, SupervisorResult, ZERO_RESULT, descriptor_path, errno_number};
use crate::raw_syscalls;
use libc::{EINVAL, EOPNOTSUPP};
use rustix::fs::{FileType, XattrFlags, removexattr, setxattr};
use std::ffi::CString;
use std::os::fd::OwnedFd;

/// The longest value of an extended attribute.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

impl CallingThread<'_> {
    /// The name of an attribute that is the user's to give.
    fn read_attribute_name(&self, address: u64) -> Result<CString, i32> {
        let name = self.read_text(address)?;
        if !name.starts_with(b"user.") {
            return Err(EOPNOTSUPP);
        }
        CString::new(name).map_err(|_| EINVAL)
    }

    pub(super) fn set_attribute(
        &self,
        file: &OwnedFd,
        name: u64,
        (value, size): (u64, u64),
        flags: i32,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let (file, about) = self.open_changeable(file, waits)?;
        if FileType::from_raw_mode(about.st_mode) == FileType::Symlink {
            return Err(EOPNOTSUPP);
        }
        let size = usize::try_from(size).ok().filter(|size| *size <= MAX_ATTRIBUTE_BYTES).ok_or(libc::E2BIG)?;
        let value = if size == 0 { Vec::new() } else { raw_syscalls::read_bytes(self.pid, value, size)? };
        let flags = XattrFlags::from_bits_retain(flags.cast_unsigned());
        setxattr(descriptor_path(file), self.read_attribute_name(name)?.as_c_str(), &value, flags)
            .map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    pub(super) fn remove_attribute(
        &self,
        file: &OwnedFd,
        name: u64,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let (file, about) = self.open_changeable(file, waits)?;
        if FileType::from_raw_mode(about.st_mode) == FileType::Symlink {
            return Err(EOPNOTSUPP);
        }
        removexattr(descriptor_path(file), self.read_attribute_name(name)?.as_c_str()).map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }
}
