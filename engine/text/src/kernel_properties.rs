//! The properties of a note that choose its kernel: which one, its packages, and whether its variables are saved.

use crate::properties;

/// Name of the built-in kernel.
pub const EMBEDDED_KERNEL: &str = "embedded";
/// Another name of the built-in kernel.
pub const INSTANT_KERNEL: &str = "instant";
/// Name of the kernel that runs the science pack. It can save its state.
pub const SCIENCE_KERNEL: &str = "science";
/// Name of the kernel that runs this machine's Python with the note's own packages.
pub const ENVIRONMENT_KERNEL: &str = "environment";
/// Short name of [`ENVIRONMENT_KERNEL`].
const ENVIRONMENT_KERNEL_SHORT: &str = "env";

/// Kind of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// The built-in Python, which needs no installation.
    BuiltIn,
    /// CPython with numpy, pandas and more in WebAssembly.
    Science,
    /// This machine's CPython with the note's packages.
    Environment,
    /// One of the user's Jupyter kernels.
    Jupyter,
}

impl KernelKind {
    /// Returns the kind of the kernel with this name; `None` means the built-in kernel.
    pub fn of(name: Option<&str>) -> KernelKind {
        match name {
            None | Some(EMBEDDED_KERNEL | INSTANT_KERNEL | "builtin" | "built-in") => KernelKind::BuiltIn,
            Some(SCIENCE_KERNEL) => KernelKind::Science,
            Some(ENVIRONMENT_KERNEL | ENVIRONMENT_KERNEL_SHORT) => KernelKind::Environment,
            Some(_) => KernelKind::Jupyter,
        }
    }

    /// Returns whether the kernel runs Python in Tracebook's sandbox, so that it needs no approval.
    pub fn is_confined(self) -> bool {
        self != KernelKind::Jupyter
    }

    /// Returns whether the kernel's variables outlive its process.
    pub fn saves_state(self) -> bool {
        self == KernelKind::Science
    }
}

/// The property that names a note's kernel.
pub const KERNEL_PROPERTY: &str = "kernel";

/// The property that sets whether cells of a note with saved states run as if from top to bottom.
const FAITHFUL_PROPERTY: &str = "faithful";

/// The property that sets whether a note's variables are saved.
const STATE_PROPERTY: &str = "state";

/// Returns whether the front matter of this text switches the property off.
fn is_switched_off(text: &str, key: &str) -> bool {
    let stated = properties::read(text).and_then(Result::ok).unwrap_or_default();
    let stated = stated.iter().find(|property| property.key == key).and_then(|property| property.values.first());
    stated.is_some_and(|(value, _)| matches!(value.as_str(), "false" | "off"))
}

/// Returns whether the cells of a note with this front matter run in the state that the cells above left.
pub fn is_faithful(text: &str) -> bool {
    !is_switched_off(text, FAITHFUL_PROPERTY)
}

/// Returns whether the front matter of this text allows the note's variables to be saved.
pub fn may_save_states(text: &str) -> bool {
    !is_switched_off(text, STATE_PROPERTY)
}

/// Returns whether the properties of this text name a kernel.
pub fn names_kernel(text: &str) -> bool {
    text.starts_with("---")
        && properties::read(text)
            .and_then(Result::ok)
            .is_some_and(|stated| stated.iter().any(|property| property.key == KERNEL_PROPERTY))
}

/// The property that sets the Python versions for a note's cells, named as in PEP 723.
pub const REQUIRES_PYTHON_PROPERTY: &str = "requires-python";
/// The property that lists the packages for a note's cells, named as in PEP 723.
pub const DEPENDENCIES_PROPERTY: &str = "dependencies";

/// The environment that a note's cells need, as declared in its properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotePackages {
    /// Required Python versions, such as `>=3.11`.
    pub requires_python: Option<String>,
    /// Packages with their versions, such as `polars>=1`; as written, without validation.
    pub dependencies: Vec<String>,
}

impl NotePackages {
    /// Reads the packages from the front matter of this text. `None` if the note needs no environment.
    pub fn read(text: &str) -> Option<NotePackages> {
        text.starts_with("---").then(|| NotePackages::of(&properties::read(text)?.ok()?)).flatten()
    }

    fn of(properties: &[properties::Property]) -> Option<NotePackages> {
        let values = |key: &str| {
            let stated = properties.iter().find(|property| property.key == key);
            stated.map(|stated| stated.values.iter().map(|(value, _)| value.clone()).collect::<Vec<_>>())
        };
        let requires_python = values(REQUIRES_PYTHON_PROPERTY).and_then(|values| values.into_iter().next());
        let dependencies = values(DEPENDENCIES_PROPERTY).unwrap_or_default();
        // A list of links refers to notes, not packages.
        let is_about_notes = dependencies.iter().any(|value| value.starts_with("[["));
        let dependencies = if is_about_notes { Vec::new() } else { dependencies };
        let is_stated = requires_python.is_some() || !dependencies.is_empty();
        is_stated.then_some(NotePackages { requires_python, dependencies })
    }
}

/// Returns the kernel that the properties of this text name, unless it's the built-in one.
pub fn named_kernel(text: &str) -> Option<String> {
    if !text.starts_with("---") {
        return None;
    }
    let properties = properties::read(text)?.ok()?;
    let Some(stated) = properties.iter().find(|property| property.key == KERNEL_PROPERTY) else {
        return NotePackages::of(&properties).map(|_| ENVIRONMENT_KERNEL.to_owned());
    };
    let (name, _) = stated.values.first()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    (KernelKind::of(Some(name)) != KernelKind::BuiltIn
        && !name.is_empty()
        && name.len() <= 200
        && name.chars().all(plain))
    .then(|| name.clone())
}

/// Returns why the cells of a note that names a Jupyter kernel don't run yet.
pub fn kernel_not_allowed_message(kernel: &str) -> String {
    format!(
        "this note asks for your own kernel {kernel}, which runs with all your rights, outside of the sandbox; choose \
         it once to allow that (Choose kernel, or --kernel {kernel})"
    )
}

#[cfg(test)]
mod tests {
    use super::named_kernel;

    #[test]
    fn a_note_names_its_kernel_in_its_properties() {
        assert_eq!(named_kernel("---\nkernel: python3\n---\n").as_deref(), Some("python3"));
        assert_eq!(named_kernel("---\nkernel: science\n---\n").as_deref(), Some("science"));
        assert_eq!(named_kernel("---\nkernel: embedded\n---\n"), None);
        assert_eq!(named_kernel("---\nkernel: instant\n---\n"), None);
        assert_eq!(named_kernel("---\nkernel: the one of Linux\n---\n"), None);
        assert_eq!(named_kernel("kernel: python3\n"), None);
        assert_eq!(named_kernel("---\ntitle: x\n---\n"), None);
        assert_eq!(named_kernel("---\ndependencies: [six]\n---\n").as_deref(), Some("environment"));
        assert_eq!(named_kernel("---\nkernel: instant\ndependencies: [six]\n---\n"), None);
        assert_eq!(named_kernel("---\ndependencies: [\"[[Other note]]\"]\n---\n"), None);
    }
}
