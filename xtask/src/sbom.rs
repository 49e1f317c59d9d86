//! Writes the software bill of materials: the crates linked into the program, as CycloneDX 1.5 JSON.

use crate::linked_crates::{CrateId, LinkedCrate, LinkedCrates};
use crate::package_files::ReleaseInfo;
use anyhow::Result;
use serde_json::{Value, json};

/// Returns the software bill of materials of a program.
pub(crate) fn bill_of_materials(crates: &LinkedCrates, release: &ReleaseInfo) -> Result<String> {
    let program = crates.all().find(|((name, _), _)| name == "tracebook");
    let components = crates.all().filter(|((name, _), _)| name != "tracebook");
    let bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.timestamp(),
            "tools": {"components": [{"type": "application", "name": "cargo xtask dist", "version": release.version}]},
            "component": program.map(|(id, found)| component(id, found, "application")),
            "properties": [{"name": "cdx:rustc:sbom:target:triple", "value": release.target}],
        },
        "components": components.map(|(id, found)| component(id, found, "library")).collect::<Vec<_>>(),
        "dependencies": crates.all().map(|(id, found)| json!({
            "ref": package_url(id),
            "dependsOn": found.uses.iter().map(package_url).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&bill)? + "\n")
}

fn component(id: &CrateId, found: &LinkedCrate, kind: &str) -> Value {
    let (name, version) = id;
    let mut component = json!({
        "type": kind,
        "bom-ref": package_url(id),
        "name": name,
        "version": version,
        "licenses": [{"expression": found.license}],
        "purl": package_url(id),
    });
    if let Some(checksum) = &found.checksum {
        component["scope"] = json!("required");
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(description) = &found.description {
        component["description"] = json!(description);
    }
    if let Some(repository) = &found.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// Returns the package URL of a crate. A `+` in it would mean a space.
fn package_url((name, version): &CrateId) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_component_is_described_and_every_reference_leads_to_one() {
        let target = crate::host_target().expect("rustc is there");
        let crates = LinkedCrates::read(&crate::checkout_folder(), &target).expect("Cargo knows the checkout");
        let release = ReleaseInfo::new(crates.version.clone(), 1_700_000_000, target).expect("a release");
        let text = bill_of_materials(&crates, &release).expect("a bill");
        assert_eq!(text, bill_of_materials(&crates, &release).expect("a bill"), "it is the same every time");
        let bill: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(bill["metadata"]["component"]["name"], "tracebook");
        assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        let components = bill["components"].as_array().expect("components");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let mut known: BTreeSet<String> = components.iter().map(|one| text(&one["bom-ref"])).collect();
        known.insert(text(&bill["metadata"]["component"]["bom-ref"]));
        assert_eq!(known.len(), components.len() + 1, "no component is there twice");
        assert!(components.len() > 300, "{}", components.len());
        for one in components {
            assert!(one["licenses"][0]["expression"].is_string() && one["version"].is_string(), "{one}");
            assert!(one["hashes"][0]["content"].as_str().is_none_or(|hash| hash.len() == 64), "{one}");
        }
        for one in bill["dependencies"].as_array().expect("dependencies") {
            let named = one["dependsOn"].as_array().expect("a list").iter().chain([&one["ref"]]);
            named.for_each(|named| assert!(known.contains(&text(named)), "{named} is no component"));
        }
    }
}
