//! Tests of secrets in real files, without the keyring of the user who runs them.

use super::*;

const VALUE: &str = "sk-planted-5c0ffee";

/// Opens secrets without a keyring and with a cheap key derivation.
fn secrets(folder: &Path) -> UserSecrets {
    UserSecrets {
        folder: folder.to_owned(),
        keyring: None,
        passphrase: None,
        hung: AtomicBool::new(false),
        read: Mutex::default(),
        cost: vault::KdfCost([64, 1, 1]),
    }
}

fn secret(text: &str) -> SecretValue {
    SecretValue::new(text.to_owned()).expect("a secret")
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let all = std::fs::read_dir(folder).expect("a folder").flatten();
    all.map(|file| (file.path(), std::fs::read(file.path()).expect("read"))).collect()
}

#[test]
fn what_is_kept_comes_back_and_stands_nowhere() {
    for passphrase in [None, Some("correct horse")] {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            let one = secrets(folder.path());
            match passphrase {
                Some(phrase) => one.with_passphrase(phrase.to_owned()),
                None => one,
            }
        };
        let kept = open();
        let place = kept.set("TB_TEST_KEY", &secret(&format!("{VALUE}\n"))).expect("kept");
        assert_eq!(place, if passphrase.is_some() { SecretStore::Passphrase } else { SecretStore::KeyFile });
        assert_eq!(kept.get("TB_TEST_KEY").expect("read"), Some((secret(VALUE), place)));
        kept.set("TB_TEST_OTHER", &secret("second")).expect("kept");
        // Stands for another process.
        let other = open();
        assert_eq!(other.get("TB_TEST_KEY").expect("read"), Some((secret(VALUE), place)));
        assert_eq!(
            other.list().expect("listed"),
            [("TB_TEST_KEY".to_owned(), place), ("TB_TEST_OTHER".to_owned(), place)]
        );
        assert_eq!(other.get("TB_TEST_NONE").expect("read"), None);
        for (path, bytes) in files(folder.path()) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("planted") && !text.contains("second"), "{}", path.display());
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let mode = std::fs::metadata(&path).expect("there").permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{}", path.display());
            }
        }
        // A change by the other process is visible even to readers that have cached the value.
        std::thread::sleep(Duration::from_millis(20));
        other.set("TB_TEST_KEY", &secret("newer")).expect("kept");
        assert_eq!(kept.get("TB_TEST_KEY").expect("read"), Some((secret("newer"), place)));
        assert!(other.remove("TB_TEST_KEY").expect("removed"));
        assert!(!other.remove("TB_TEST_KEY").expect("nothing to do"));
        assert_eq!(open().get("TB_TEST_KEY").expect("read"), None);
        assert_eq!(open().get("TB_TEST_OTHER").expect("read"), Some((secret("second"), place)));
    }
}

#[test]
fn nothing_prints_a_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = secrets(folder.path()).with_passphrase("phrase-planted".to_owned());
    let value = secret(VALUE);
    assert_eq!(format!("{value:?} {:?}", Some((&value, SecretStore::KeyFile))), "Secret(…) Some((Secret(…), KeyFile))");
    assert!(!format!("{kept:?}").contains("planted"));
    for wrong in ["", "  \n", "a\nb", "a\u{7}"] {
        assert!(SecretValue::new(wrong.to_owned()).is_err());
    }
    let long = SecretValue::new("planted".repeat(MAX_SECRET_BYTES)).expect_err("too long");
    assert!(!long.to_string().contains("planted"));
    for wrong in ["", "A B", "1A", "A-B", "../x", "Ä", &"A".repeat(200)] {
        assert!(kept.set(wrong, &value).is_err() && kept.get(wrong).is_err() && kept.remove(wrong).is_err());
    }
}

#[test]
fn another_passphrase_and_damage_are_said_and_destroy_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let right = secrets(folder.path()).with_passphrase("right".to_owned());
    right.set("TB_TEST_KEY", &secret(VALUE)).expect("kept");
    let wrong = secrets(folder.path()).with_passphrase("wrong".to_owned());
    assert!(wrong.get("TB_TEST_KEY").expect_err("closed").to_string().contains("the passphrase is another"));
    assert!(wrong.set("TB_TEST_B", &secret("b")).is_err(), "what cannot be opened is not written over");
    let none = secrets(folder.path());
    assert!(none.get("TB_TEST_KEY").expect_err("closed").to_string().contains(PASSPHRASE_VARIABLE));
    let path = folder.path().join(SEALED_SECRETS_FILE);
    let good = std::fs::read(&path).expect("there");
    // Every byte is authenticated, and no number in the header can use excessive memory or time.
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        std::fs::write(&path, &bad).expect("written");
        let again = secrets(folder.path()).with_passphrase("right".to_owned());
        assert!(again.get("TB_TEST_KEY").is_err(), "byte {at}");
    }
    for cut in [0, 1, 8, 60, good.len() - 1] {
        std::fs::write(&path, &good[..cut]).expect("written");
        assert!(secrets(folder.path()).with_passphrase("right".to_owned()).get("TB_TEST_KEY").is_err());
    }
    std::fs::write(&path, &good).expect("written");
    assert!(secrets(folder.path()).with_passphrase("right".to_owned()).get("TB_TEST_KEY").expect("read").is_some());
    std::fs::write(folder.path().join(SECRET_NAMES_FILE), "{").expect("written");
    assert!(right.list().is_err());
}

#[test]
fn a_key_file_that_is_gone_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    secrets(folder.path()).set("TB_TEST_KEY", &secret(VALUE)).expect("kept");
    std::fs::remove_file(folder.path().join(SECRETS_KEY_FILE)).expect("removed");
    let why = secrets(folder.path()).get("TB_TEST_KEY").expect_err("closed");
    assert!(why.to_string().contains("the key file is gone"), "{why}");
    assert!(secrets(folder.path()).set("TB_TEST_B", &secret("b")).is_err());
}

#[test]
fn the_environment_goes_first() {
    let folder = tempfile::tempdir().expect("a folder");
    // `PATH` is a variable that every process has.
    let (value, place) = secrets(folder.path()).get("PATH").expect("read").expect("there");
    assert_eq!(place, SecretStore::Environment);
    assert!(!value.expose().is_empty());
    assert!(!folder.path().join(SECRET_NAMES_FILE).exists(), "nothing is written by reading");
}

#[test]
fn many_at_once_lose_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = folder.path();
            scope.spawn(move || {
                secrets(path).set(&format!("TB_TEST_{number}"), &secret(&format!("value {number}"))).expect("kept");
            });
        }
    });
    let kept = secrets(folder.path());
    assert_eq!(kept.list().expect("listed").len(), 8);
    for number in 0..8 {
        let (value, _) = kept.get(&format!("TB_TEST_{number}")).expect("read").expect("there");
        assert_eq!(value.expose(), format!("value {number}"));
    }
}

#[test]
fn a_keyring_that_does_not_answer_costs_little_time() {
    let folder = tempfile::tempdir().expect("a folder");
    // Works with any keyring of this machine, even none or a locked one. The name is unused, and is removed again.
    let kept = UserSecrets { keyring: Some("tracebook-tests"), ..secrets(folder.path()) };
    // Others may have the machine for a moment, so one fast attempt is enough; what is slow is slow in each.
    let is_fast = (0..5).any(|_| {
        let began = std::time::Instant::now();
        let place = kept.set("TB_TEST_RING", &secret(VALUE)).expect("kept somewhere");
        assert!(matches!(place, SecretStore::Keyring | SecretStore::KeyFile));
        began.elapsed() < Duration::from_secs(4)
    });
    assert!(is_fast);
    assert_eq!(kept.get("TB_TEST_RING").expect("read").map(|(value, _)| value), Some(secret(VALUE)));
    assert!(kept.remove("TB_TEST_RING").expect("removed"));
}
