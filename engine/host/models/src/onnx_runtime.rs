//! Finds the ONNX Runtime library before loading, because the loader aborts the program if it's missing.

#[cfg(feature = "onnx")]
use crate::OnnxLibraryError;
use crate::OnnxRuntimeError;
#[cfg(feature = "onnx")]
use ort::environment::Environment;
use std::path::{Path, PathBuf};
#[cfg(feature = "onnx")]
use std::sync::{Mutex, PoisonError};

/// The conventional environment variable with the library's path.
pub const ORT_LIBRARY_VAR: &str = "ORT_DYLIB_PATH";

/// An ONNX Runtime library that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnnxRuntime {
    /// Path of the library.
    pub path: PathBuf,
    /// Which setting or package provided the library.
    pub origin: &'static str,
}

impl OnnxRuntime {
    /// Finds the library in the user's settings, the environment variable, the system's folders or Python's packages,
    /// in that order.
    ///
    /// # Errors
    /// Returns an error that names the searched places and how to install the library.
    pub fn find(named: Option<&Path>) -> Result<OnnxRuntime, OnnxRuntimeError> {
        let variable = std::env::var_os(ORT_LIBRARY_VAR).map(PathBuf::from);
        let named = named.map(Path::to_path_buf).filter(|path| !path.as_os_str().is_empty());
        for (path, from) in [(named, "the settings"), (variable, ORT_LIBRARY_VAR)] {
            if let Some(path) = path {
                return find_library_in(&path)
                    .map(|path| OnnxRuntime { path, origin: from })
                    .ok_or(OnnxRuntimeError::NotAtPath { origin: from, path });
            }
        }
        let places = system_library_dirs().into_iter().map(|place| (place, "the system"));
        let places = places.chain(python_package_dirs().into_iter().map(|place| (place, "a Python package")));
        let found = places
            .into_iter()
            .find_map(|(place, from)| find_library_in(&place).map(|path| OnnxRuntime { path, origin: from }));
        found.ok_or(OnnxRuntimeError::NotFound)
    }
}

/// Returns the path itself if it's a file, or the newest library in a folder.
fn find_library_in(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_path_buf());
    }
    let is_one = |name: &str| {
        if cfg!(target_os = "windows") {
            name.eq_ignore_ascii_case("onnxruntime.dll")
        } else if cfg!(target_os = "macos") {
            name.starts_with("libonnxruntime.") && name.ends_with(".dylib")
        } else {
            name == "libonnxruntime.so" || name.starts_with("libonnxruntime.so.")
        }
    };
    let entries = std::fs::read_dir(path).ok()?.flatten();
    entries.map(|entry| entry.path()).filter(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(is_one)).max()
}

/// Returns the folders where a system keeps its libraries.
fn system_library_dirs() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> =
        std::env::var_os("LD_LIBRARY_PATH").map(|all| std::env::split_paths(&all).collect()).unwrap_or_default();
    places.retain(|place| place.is_absolute());
    let machine = std::env::consts::ARCH;
    for place in ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/opt/homebrew/lib", "/opt/onnxruntime/lib"] {
        places.push(place.into());
        places.push(Path::new(place).join(format!("{machine}-linux-gnu")));
    }
    places
}

/// Returns the folders where pip and other tools install the package `onnxruntime`.
fn python_package_dirs() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut roots: Vec<PathBuf> = [variable("VIRTUAL_ENV"), variable("CONDA_PREFIX")].into_iter().flatten().collect();
    roots.extend(variable("HOME").map(|home| home.join(".local")));
    roots.extend(["/usr/local", "/usr"].map(PathBuf::from));
    let mut places = Vec::new();
    for root in roots {
        let library = root.join("lib");
        let versions = std::fs::read_dir(&library).into_iter().flatten().flatten().map(|entry| entry.path());
        let pythons = versions.filter(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
        });
        let mut pythons: Vec<PathBuf> = pythons.collect();
        pythons.sort();
        for python in pythons.into_iter().rev() {
            for packages in ["site-packages", "dist-packages"] {
                places.push(python.join(packages).join("onnxruntime/capi"));
            }
        }
    }
    if let Some(windows) = variable("LOCALAPPDATA") {
        places.push(windows.join("Programs/Python/Lib/site-packages/onnxruntime/capi"));
    }
    places
}

/// The environment shared by the process, once it's created.
#[cfg(feature = "onnx")]
static ONNX_ENVIRONMENT: Mutex<Option<Environment>> = Mutex::new(None);

/// Returns the environment in which models run. The first call loads the library.
#[cfg(feature = "onnx")]
pub(crate) fn shared_environment(named: Option<&Path>) -> Result<Environment, OnnxRuntimeError> {
    let mut made = ONNX_ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = &*made {
        return Ok(environment.clone());
    }
    let runtime = OnnxRuntime::find(named)?;
    // Loading panics if the file is a different library than its name says.
    let built = std::panic::catch_unwind(|| {
        let builder = ort::init_from(&runtime.path).map_err(|error| OnnxLibraryError::Refused(error.to_string()))?;
        builder.with_telemetry(false).build().map_err(|error| OnnxLibraryError::Refused(error.to_string()))
    });
    let environment = built
        .unwrap_or(Err(OnnxLibraryError::LoadPanicked))
        .map_err(|source| OnnxRuntimeError::Unusable { origin: runtime.origin, path: runtime.path.clone(), source })?;
    *made = Some(environment.clone());
    Ok(environment)
}

#[cfg(all(test, feature = "onnx"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_and_missing_is_a_sentence() {
        let missing = OnnxRuntime::find(Some(Path::new("/nowhere/libonnxruntime.so")));
        assert!(missing.as_ref().is_err_and(|why| why.to_string().contains("/nowhere")), "{missing:?}");
        let folder = tempfile::tempdir().expect("a folder");
        assert!(OnnxRuntime::find(Some(folder.path())).is_err());
        let file = folder.path().join("libonnxruntime.so.1.24.0");
        std::fs::write(&file, b"not a library").expect("written");
        if cfg!(target_os = "linux") {
            assert_eq!(OnnxRuntime::find(Some(folder.path())).map(|found| found.path), Ok(file.clone()));
        }
        // A file that isn't a library is reported, and doesn't abort the program.
        let wrong = shared_environment(Some(&file));
        assert!(wrong.is_err_and(|why| why.to_string().contains("can't be used")));
    }
}
