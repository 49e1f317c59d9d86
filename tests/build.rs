//! Links the program under test at fixed addresses. A debug build has 1.3 million addresses to relocate, which took a
//! third of the CPU time of a short command, and tests run thousands of them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bin=tracebook-under-test=-no-pie");
    }
}
