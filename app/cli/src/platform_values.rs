//! What `doctor --json` says of the platform as values, for programs. Its sentences are for people.

use host::MachineCapability;
use host::maintenance::platform::PlatformRuntime;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Returns the values of the platform. `null` is what the system doesn't tell. `folder` is on the disk that's measured.
fn platform_values(platform: &impl PlatformRuntime, folder: &Path) -> Map<String, Value> {
    let known = |bytes: u64| (bytes > 0).then_some(bytes);
    let count = std::thread::available_parallelism().ok().map(std::num::NonZero::get);
    let disk = platform.disk_usage(folder).map(|(free, total)| json!({"free_bytes": free, "total_bytes": total}));
    let (total, used) = (known(platform.max_memory()), known(platform.memory_usage()));
    let values = [
        ("platform", json!(platform.platform().as_str())),
        ("arch", json!(platform.arch())),
        ("root", json!(platform.root_path().display().to_string())),
        ("temp", json!(platform.temp_path().display().to_string())),
        ("memory", json!({"total_bytes": total, "used_bytes": used})),
        ("cpu", json!({"count": count, "load": platform.cpu_usage()})),
        ("disk", json!(disk)),
        ("docker", json!(platform.has_docker())),
        ("gpu", json!(platform.has_gpu())),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the lines of `doctor` as JSON. The line about the system also has the platform's values.
pub(super) fn lines_as_json(offers: &[MachineCapability], platform: &impl PlatformRuntime, folder: &Path) -> Value {
    let mut lines: Vec<Value> = offers.iter().filter_map(|offer| serde_json::to_value(offer).ok()).collect();
    let system = lines.iter_mut().find(|line| line["area"] == "platform" && line["name"] == "system");
    if let Some(Value::Object(system)) = system {
        system.extend(platform_values(platform, folder));
    }
    Value::from(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::maintenance::platform::PlatformKind;
    use std::path::PathBuf;
    use std::process::Output;

    /// A phone that tells little.
    struct Phone;

    impl PlatformRuntime for Phone {
        fn platform(&self) -> PlatformKind {
            PlatformKind::Termux
        }

        fn arch(&self) -> &'static str {
            "aarch64"
        }

        fn root_path(&self) -> PathBuf {
            PathBuf::from("/p/usr")
        }

        fn temp_path(&self) -> PathBuf {
            PathBuf::from("/p/usr/tmp")
        }

        fn execute(&self, program: &str, _arguments: &[&str]) -> std::io::Result<Output> {
            Err(std::io::Error::other(format!("nothing starts {program}")))
        }

        fn memory_usage(&self) -> u64 {
            0
        }

        fn cpu_usage(&self) -> Option<f64> {
            None
        }

        fn disk_usage(&self, folder: &Path) -> Option<(u64, u64)> {
            (folder == Path::new("/w")).then_some((3, 7))
        }

        fn has_docker(&self) -> bool {
            false
        }

        fn has_gpu(&self) -> bool {
            true
        }

        fn max_memory(&self) -> u64 {
            8 << 30
        }
    }

    #[test]
    fn the_line_about_the_system_has_the_values_and_keeps_its_words() {
        let offer = |area: &'static str, name: &str| MachineCapability {
            area,
            name: name.to_owned(),
            there: true,
            note: "a sentence".to_owned(),
        };
        let offers = [offer("display", "system"), offer("platform", "system"), offer("platform", "disk")];
        let lines = lines_as_json(&offers, &Phone, Path::new("/w"));
        let system = &lines[1];
        let words = ["area", "name", "there", "note"].map(|key| &system[key]);
        assert_eq!(words, [&json!("platform"), &json!("system"), &json!(true), &json!("a sentence")]);
        let paths = ["platform", "arch", "root", "temp"].map(|key| system[key].as_str());
        assert_eq!(paths, [Some("termux"), Some("aarch64"), Some("/p/usr"), Some("/p/usr/tmp")]);
        assert_eq!(system["memory"], json!({"total_bytes": 8_u64 << 30, "used_bytes": null}));
        assert_eq!(system["cpu"]["load"], Value::Null);
        assert_eq!(system["disk"], json!({"free_bytes": 3, "total_bytes": 7}));
        assert_eq!((&system["docker"], &system["gpu"]), (&json!(false), &json!(true)));
        for other in [&lines[0], &lines[2]] {
            assert_eq!(other.as_object().map(Map::len), Some(4), "{other}");
        }
        assert_eq!(lines_as_json(&offers, &Phone, Path::new("/x"))[1]["disk"], Value::Null);
    }
}
