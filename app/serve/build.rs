//! Makes the Rust code of the gRPC services from their descriptions, without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "grpc")]
    {
        println!("cargo::rerun-if-changed=proto");
        let mut compiler = protox::Compiler::new(["proto"])?;
        compiler.include_source_info(true).include_imports(true);
        let own = ["attachments", "collections", "history", "memory", "tracebook"];
        compiler.open_files(["mixagent.proto".to_owned()])?;
        compiler.open_files(own.map(|name| format!("tracebook/v1/{name}.proto")))?;
        let place = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("services.bin");
        std::fs::write(place, compiler.encode_file_descriptor_set())?;
        let code = tonic_prost_build::configure().build_client(false).build_transport(false);
        code.emit_rerun_if_changed(false).compile_fds(compiler.file_descriptor_set())?;
    }
    Ok(())
}
