//! Reads a Jupyter kernel's `kernel.json` and starts its process.

use jupyter_protocol::connection_info::{ConnectionInfo, Transport};
use jupyter_protocol::{JupyterKernelspec, JupyterMessage, KernelInfoRequest};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use store::BlobHash;
use store::disk::BlobHasher;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Message for a kernel that isn't started because it differs from what the user approved.
const CHANGED_MESSAGE: &str = "it has changed since it was allowed; choose the kernel again to allow it as it is";
/// Environment variable that makes Python look for modules among those installed, not in its start folder.
const SAFE_PATH_ENV: [(&str, &str); 1] = [("PYTHONSAFEPATH", "1")];
/// Python code that sets up figures and data frames in a Python kernel. Its JSON string is also a valid Python string.
const DISPLAY_SETUP: &str =
    concat!(include_str!("../../python/src/frames.py"), "\n\n", include_str!("ipython_setup.py"));
/// Python expression for a type whose objects IPython displays as JSON, with the given value as the member `found`.
const FOUND_TYPE: &str = "type('Found', (), {'__init__': lambda self, found: setattr(self, 'found', found), \
                          '_repr_json_': lambda self: {'found': self.found}})";

/// Why a kernel can't be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KernelStartError {
    #[error("the kernel cannot be read: {source}: {}", path.display())]
    SpecUnreadable { source: std::io::Error, path: PathBuf },
    #[error("the kernel cannot be read: {source}: {}", path.display())]
    SpecInvalid { source: serde_json::Error, path: PathBuf },
    #[error("the kernel cannot be read: {CHANGED_MESSAGE}: {}", path.display())]
    SpecChanged { path: PathBuf },
    #[error("the kernel cannot be read: it names no program: {}", path.display())]
    NoProgram { path: PathBuf },
    #[error("the kernel is not started: {source}: {}", path.display())]
    ProgramUnreadable { source: std::io::Error, path: PathBuf },
    #[error("the kernel is not started: {CHANGED_MESSAGE}: {}", path.display())]
    ProgramChanged { path: PathBuf },
    #[error("there is no room for the kernel's connection: {0}")]
    ConnectionFolder(#[source] std::io::Error),
    #[error("{title} cannot be started: {source}: {}", program.display())]
    Spawn { title: String, source: std::io::Error, program: PathBuf },
}

/// A kernel as its `kernel.json` describes it.
pub(crate) struct JupyterKernel {
    /// The kernel's display name.
    pub(crate) title: String,
    /// Whether the kernel is interrupted by a message instead of a signal.
    pub(crate) interrupts_by_message: bool,
    name: String,
    folder: PathBuf,
    kernelspec: JupyterKernelspec,
    allowed: Option<Value>,
}

/// Folder that holds the connection of a kernel and its client. Other users can't read it.
pub(crate) struct ConnectionFolder {
    /// Address and key of the kernel.
    pub(crate) info: ConnectionInfo,
    /// Session ID of this client.
    pub(crate) session: String,
    file: PathBuf,
    /// Deletes the folder when this value is dropped.
    _folder: TempDir,
}

impl JupyterKernel {
    /// Reads a `kernel.json` and checks it against what the user approved.
    ///
    /// `allowed` is what the user approved: `content`, the hash of this file, and `program`, the program's path. For a
    /// program that others can change, it also has `real`, the path it resolved to, and `hash`, the program's hash.
    /// Anything else isn't started.
    pub(crate) fn read(path: &Path, allowed: Option<Value>) -> Result<JupyterKernel, KernelStartError> {
        let unreadable = |source| KernelStartError::SpecUnreadable { source, path: path.to_owned() };
        let text = std::fs::read(path).map_err(unreadable)?;
        if let Some(allowed) = &allowed
            && allowed["content"] != BlobHash::of(&text).to_string()
        {
            return Err(KernelStartError::SpecChanged { path: path.to_owned() });
        }
        let invalid = |source| KernelStartError::SpecInvalid { source, path: path.to_owned() };
        let kernelspec: JupyterKernelspec = serde_json::from_slice(&text).map_err(invalid)?;
        if kernelspec.argv.is_empty() {
            return Err(KernelStartError::NoProgram { path: path.to_owned() });
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(JupyterKernel {
            title: kernelspec.display_name.clone(),
            interrupts_by_message: kernelspec.interrupt_mode.as_deref() == Some("message"),
            name,
            folder,
            kernelspec,
            allowed,
        })
    }

    /// Starts the kernel's process with this process's working folder and environment.
    pub(crate) fn spawn(&self, room: &ConnectionFolder) -> Result<Child, KernelStartError> {
        let words = self.command_line(&room.file);
        let allowed = self.allowed.as_ref();
        let program = match allowed.and_then(|allowed| allowed["program"].as_str()) {
            Some(program) => PathBuf::from(program),
            None => self.resolve_program(&words[0]),
        };
        // The file stays open, so that the checked program is the one that's started.
        let guarded = allowed.filter(|allowed| allowed["real"].is_string()).map(open_verified_program).transpose()?;
        let mut command = Command::new(guarded.as_ref().map_or(program.as_path(), |(path, _)| path));
        #[cfg(unix)]
        command.arg0(&program);
        command
            .args(&words[1..])
            .envs(self.kernelspec.env.iter().flatten())
            // A module with the kernel's name next to the note must not replace the kernel.
            .envs(SAFE_PATH_ENV)
            .stdin(Stdio::null())
            // Standard output isn't part of the protocol; the last lines on standard error are reported.
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        if guarded.is_some() {
            // The modules it imports must stay as they were approved.
            command.env("PYTHONDONTWRITEBYTECODE", "1");
        }
        if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
            // R reads these files from its start folder unless these variables are set.
            for (name, file) in [("R_PROFILE_USER", ".Rprofile"), ("R_ENVIRON_USER", ".Renviron")] {
                if std::env::var_os(name).is_none() {
                    command.env(name, home.join(file));
                }
            }
        }
        command.spawn().map_err(|source| KernelStartError::Spawn { title: self.title.clone(), source, program })
    }

    /// Returns code that a Python kernel runs first, so that programs started by cells get the user's environment.
    pub(crate) fn startup_code(&self) -> Option<&'static str> {
        self.is_python().then_some("__import__('os').environ.pop('PYTHONSAFEPATH', None)")
    }

    /// Returns an expression that makes a Python kernel show matplotlib figures and data frames like the other kernels.
    /// It binds no name; if it fails, the kernel is unchanged.
    pub(crate) fn display_setup(&self) -> Option<String> {
        let setup = serde_json::to_string(DISPLAY_SETUP).ok()?;
        let backend = serde_json::to_string(include_str!("../../python/src/matplotlib_backend.py")).ok()?;
        let space = format!("{{'__name__': '_tracebook_setup', 'BACKEND_SOURCE': {backend}}}");
        self.is_python().then(|| format!("exec(compile({setup}, '<tracebook>', 'exec'), {space})"))
    }

    fn is_python(&self) -> bool {
        self.kernelspec.language.eq_ignore_ascii_case("python")
    }

    /// Returns the command line to start, with its placeholders filled in.
    fn command_line(&self, file: &Path) -> Vec<String> {
        let (file, folder) = (file.to_string_lossy(), self.folder.to_string_lossy());
        let fill = |word: &String| word.replace("{connection_file}", &file).replace("{resource_dir}", &folder);
        self.kernelspec.argv.iter().map(fill).collect()
    }

    /// Resolves the program of a command line. A bare name means the program in the environment where the kernel is
    /// installed, if there is one: the program on `PATH` may be another Python, without the kernel.
    fn resolve_program(&self, word: &str) -> PathBuf {
        let bare = Path::new(word).components().count() == 1;
        let prefix = self.folder.ancestors().nth(4).filter(|_| bare); // PREFIX/share/jupyter/kernels/NAME
        let places = [Path::new("bin").join(word), Path::new("Scripts").join(format!("{word}.exe"))];
        let own = prefix.and_then(|prefix| places.iter().map(|place| prefix.join(place)).find(|path| path.is_file()));
        own.unwrap_or_else(|| PathBuf::from(word))
    }

    /// Returns an expression for the kernel's variables, or for the values of `names`. Its value is an object that is
    /// displayed as JSON. `None` if the kernel isn't Python.
    pub(crate) fn variables_expression(&self, names: Option<&Value>) -> Option<String> {
        // The embedded kernel's code, in a namespace of its own. A JSON string is also a valid Python string.
        let code = serde_json::to_string(include_str!("../../python/src/variables.py")).ok()?;
        let asked = match names {
            Some(names) => {
                let names: Vec<&str> = names.as_array()?.iter().filter_map(Value::as_str).collect();
                format!("space['values'](globals(), {})", serde_json::to_string(&names).ok()?)
            }
            None => "space['variables'](globals())".to_owned(),
        };
        let run = format!("(lambda space: (exec({code}, space), {FOUND_TYPE}({asked}))[1])({{}})");
        self.is_python().then_some(run)
    }

    /// Returns an expression for a shown figure of matplotlib with other limits, as [`Self::variables_expression`] does
    /// for variables. `asked` has the figure's ID and the limits.
    pub(crate) fn redraw_expression(&self, asked: &Value) -> Option<String> {
        let figure = serde_json::to_string(asked["figure"].as_str()?).ok()?;
        let limits = serde_json::to_string(&asked["limits"].to_string()).ok()?;
        let drawn = format!(
            "__import__('sys').modules['tracebook_backend'].redraw({figure}, __import__('json').loads({limits}))"
        );
        self.is_python().then(|| format!("{FOUND_TYPE}({drawn})"))
    }

    /// Returns an expression for rows of a shown data frame, as [`Self::variables_expression`] does for variables.
    /// `asked` has the frame's ID and the number of the first row.
    pub(crate) fn frame_rows_expression(&self, asked: &Value) -> Option<String> {
        let frame = serde_json::to_string(asked["frame"].as_str()?).ok()?;
        let first = asked["first"].as_u64()?;
        let rows = format!("__import__('IPython').get_ipython()._tracebook_frame_rows({frame}, {first})");
        self.is_python().then(|| format!("{FOUND_TYPE}({rows})"))
    }

    /// Returns code that removes names from a Python kernel's namespace. `None` for other languages or without names.
    pub(crate) fn forget_expression(&self, names: &Value) -> Option<String> {
        let plain = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let names: Vec<&str> = names.as_array()?.iter().filter_map(Value::as_str).filter(plain).collect();
        let list: Vec<String> = names.iter().map(|name| format!("'{name}',")).collect();
        (self.is_python() && !names.is_empty())
            .then(|| format!("[globals().pop(name, None) for name in ({})]", list.concat()))
    }
}

/// Opens the approved program and compares it with its approved state.
fn open_verified_program(allowed: &Value) -> Result<(PathBuf, File), KernelStartError> {
    let real = PathBuf::from(allowed["real"].as_str().unwrap_or_default());
    let unreadable = |source| KernelStartError::ProgramUnreadable { source, path: real.clone() };
    let mut file = File::open(&real).map_err(unreadable)?;
    let (mut hasher, mut block, mut first) = (BlobHasher::default(), vec![0; 1 << 16], None);
    loop {
        match file.read(&mut block).map_err(unreadable)? {
            0 => break,
            count => {
                first.get_or_insert(block[..count.min(2)].to_vec());
                hasher.update(&block[..count]);
            }
        }
    }
    if allowed["hash"] != hasher.finish().to_string() {
        return Err(KernelStartError::ProgramChanged { path: real });
    }
    // A script's interpreter opens it again by its path, so it keeps the path.
    #[cfg(target_os = "linux")]
    if first.as_deref() != Some(b"#!") {
        use std::os::fd::AsRawFd;
        return Ok((PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), file));
    }
    Ok((real, file))
}

impl ConnectionFolder {
    /// Creates the folder and the file that tells the kernel where to listen.
    pub(crate) fn create(spec: &JupyterKernel) -> Result<ConnectionFolder, KernelStartError> {
        let folder = tempfile::Builder::new().prefix("tb").tempdir().map_err(KernelStartError::ConnectionFolder)?;
        // Unguessable: random bytes of the operating system, as the protocol crate uses them for its IDs.
        let chance = || JupyterMessage::new(KernelInfoRequest {}, None).header.msg_id;
        let (transport, ip, ports) = address(folder.path()).map_err(KernelStartError::ConnectionFolder)?;
        let info = ConnectionInfo {
            ip,
            transport,
            shell_port: ports[0],
            iopub_port: ports[1],
            stdin_port: ports[2],
            control_port: ports[3],
            hb_port: ports[4],
            key: format!("{}{}", chance(), chance()),
            signature_scheme: "hmac-sha256".to_owned(),
            kernel_name: Some(spec.name.clone()),
        };
        let file = folder.path().join("connection.json");
        std::fs::write(&file, serde_json::to_vec(&info).unwrap_or_default())
            .map_err(KernelStartError::ConnectionFolder)?;
        Ok(ConnectionFolder { info, session: chance(), file, _folder: folder })
    }
}

/// Returns the address of sockets in `folder`: they need no port, and no other user's programs can reach them.
#[cfg(unix)]
fn address(folder: &Path) -> std::io::Result<(Transport, String, [u16; 5])> {
    Ok((Transport::IPC, folder.join("k").to_string_lossy().into_owned(), [1, 2, 3, 4, 5]))
}

/// Returns free local ports. Another program may take one before the kernel does; then the kernel reports it and ends.
#[cfg(not(unix))]
fn address(_: &Path) -> std::io::Result<(Transport, String, [u16; 5])> {
    let mut held = Vec::new();
    let mut ports = [0; 5];
    for port in &mut ports {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok((Transport::TCP, "127.0.0.1".to_owned(), ports))
}

#[cfg(test)]
mod tests {
    use super::JupyterKernel;
    use serde_json::json;

    #[test]
    fn a_kernel_is_started_by_the_python_that_it_belongs_to() {
        let prefix = tempfile::tempdir().expect("a folder");
        let folder = prefix.path().join("share/jupyter/kernels/python3");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::create_dir_all(prefix.path().join("bin")).expect("made");
        std::fs::write(prefix.path().join("bin/python"), "").expect("written");
        let spec = |argv: serde_json::Value| {
            let text = json!({"argv": argv, "display_name": "P", "language": "python"}).to_string();
            std::fs::write(folder.join("kernel.json"), text).expect("written");
            JupyterKernel::read(&folder.join("kernel.json"), None)
        };
        let own = spec(json!(["python", "-f", "{connection_file}", "{resource_dir}/x"])).expect("read");
        assert_eq!(own.resolve_program("python"), prefix.path().join("bin/python"));
        assert_eq!(own.resolve_program("other"), std::path::Path::new("other"));
        assert_eq!(own.resolve_program("/usr/bin/python"), std::path::Path::new("/usr/bin/python"));
        let words = own.command_line(std::path::Path::new("/tmp/c.json"));
        assert_eq!(words[1..3], ["-f", "/tmp/c.json"]);
        assert!(words[3].ends_with("python3/x") && !words[3].contains('{'));
        assert_eq!(
            own.forget_expression(&json!(["a", "b c"])).as_deref(),
            Some("[globals().pop(name, None) for name in ('a',)]")
        );
        assert_eq!(own.forget_expression(&json!([])), None);
        assert!(spec(json!([])).is_err_and(|why| why.to_string().contains("names no program")));
    }
}
