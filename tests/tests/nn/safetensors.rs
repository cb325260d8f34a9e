//! Files of tensors: the same bytes as Python's, and full checks of a file's contents.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use autograd_core::safetensors::{Half, SafeTensors};
use autograd_core::{AnyTensor, Error, Tensor};
use proptest::prelude::*;

use crate::Scratch;

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    fs::read(folder.join(name)).unwrap()
}

/// A file with this header, without padding, and so many bytes of data.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// The error for these bytes.
fn refusal(bytes: &[u8]) -> String {
    match SafeTensors::from_bytes(bytes) {
        Err(Error::File { path: None, kind: ErrorKind::InvalidData, why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn python_s_bytes_are_read_and_written_again() {
    let bytes = golden("all_types.safetensors");
    let file = SafeTensors::from_bytes(&bytes).unwrap();
    assert_eq!(file.metadata, BTreeMap::from([("format".into(), "np\t\u{1}é".into())]));
    assert_eq!(file.get::<f64>("float64").unwrap().to_vec(), [0.1, -2.5, 1e300, -0.0]);
    assert_eq!(file.get::<f64>("float64").unwrap().shape(), [2, 2]);
    assert_eq!(file.get::<f32>("float32").unwrap().to_vec(), [1.5, f32::INFINITY, -3.25e-20]);
    assert_eq!(file.get::<i64>("int64").unwrap().to_vec(), [i64::MIN, i64::MAX]);
    assert_eq!(file.get::<i32>("int32").unwrap().to_vec(), [i32::MIN, 7]);
    assert_eq!(file.get::<u8>("uint8").unwrap().to_vec(), [0, 255, 3]);
    assert_eq!(file.get::<bool>("bool").unwrap().to_vec(), [true, false, true]);
    assert_eq!(file.get::<f32>("scalar").unwrap().item(), 4.0);
    assert_eq!(file.get::<f32>("empty").unwrap().shape(), [0, 3]);
    assert_eq!(file.get::<f32>("b.weight \"quoted\" \\ \n ω").unwrap().to_vec(), [1.0, 2.0]);
    assert_eq!(file.tensors.len(), 9);
    assert_eq!(file.to_bytes().unwrap(), bytes);

    let nothing = golden("nothing.safetensors");
    assert!(SafeTensors::from_bytes(&nothing).unwrap().tensors.is_empty());
    assert_eq!(SafeTensors::new().to_bytes().unwrap(), nothing);
}

#[test]
fn floats_of_16_bits_are_those_of_pytorch() {
    let bytes = golden("halves.safetensors");
    let file = SafeTensors::from_bytes(&bytes).unwrap();
    let numbers = file.get::<f32>("numbers").unwrap();
    for (name, half) in [("f16", Half::F16), ("bf16", Half::BF16)] {
        // Conversions give the same bits as PyTorch's.
        let theirs = file.get::<f32>(name).unwrap();
        assert_eq!(theirs.shape(), numbers.shape());
        for numbers in [AnyTensor::from(numbers.clone()), numbers.cast::<f64>().into()] {
            let mut ours = SafeTensors::new();
            ours.insert("x", numbers);
            ours.insert("other", Tensor::from([0.1_f32, 0.2]));
            ours.store_as(half, |name| name == "x");
            let bytes = ours.to_bytes().unwrap();
            let again = SafeTensors::from_bytes(&bytes).unwrap();
            let bits =
                |x: &Tensor<f32>| x.to_vec().into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(&again.get("x").unwrap()), bits(&theirs), "{name}");
            assert_eq!(again.get::<f32>("other").unwrap().to_vec(), [0.1, 0.2]);
            // Conversion happens on reading, and not again on writing.
            let floats = again.to_bytes().unwrap();
            assert!(floats.len() > bytes.len());
        }
    }
    // A whole file, written again: the bytes of PyTorch.
    let mut again = file.clone();
    again.store_as(Half::F16, |name| name == "f16");
    again.store_as(Half::BF16, |name| name == "bf16");
    assert_eq!(again.to_bytes().unwrap(), bytes);
    // Other types are not converted, nor are tensors that are added later.
    let mut file = SafeTensors::new();
    file.insert("count", Tensor::from([1_i64 << 40]));
    file.store_as(Half::F16, |_| true);
    file.insert("later", Tensor::from([0.1_f64]));
    let again = SafeTensors::from_bytes(&file.to_bytes().unwrap()).unwrap();
    assert_eq!(again.get::<i64>("count").unwrap().to_vec(), [1 << 40]);
    assert_eq!(again.get::<f64>("later").unwrap().to_vec(), [0.1]);
}

#[test]
fn every_number_of_16_bits_comes_back_and_the_nearest_is_taken() {
    // The bits that numbers get in a file.
    let stored = |half: Half, numbers: Vec<f64>| -> Vec<u16> {
        let len = 2 * numbers.len();
        let mut file = SafeTensors::new();
        file.insert("x", Tensor::from(numbers));
        file.store_as(half, |_| true);
        let bytes = file.to_bytes().unwrap();
        bytes[bytes.len() - len..].as_chunks().0.iter().map(|&x| u16::from_le_bytes(x)).collect()
    };
    for (name, half, infinity) in [("F16", Half::F16, 0x7c00), ("BF16", Half::BF16, 0x7f80)] {
        let header =
            format!(r#"{{"x":{{"dtype":"{name}","shape":[65536],"data_offsets":[0,131072]}}}}"#);
        let mut bytes = file(&header, 0);
        bytes.extend((0..=u16::MAX).flat_map(u16::to_le_bytes));
        let numbers = SafeTensors::from_bytes(&bytes).unwrap().get::<f32>("x").unwrap();
        let numbers = numbers.cast::<f64>().to_vec();
        for (bits, again) in (0..).zip(stored(half, numbers.clone())) {
            assert_eq!(numbers[bits].is_nan(), bits & 0x7fff > infinity, "{name} {bits:#x}");
            assert!(again as usize == bits || numbers[again as usize].is_nan(), "{name} {bits:#x}");
        }
        // Of two numbers at the same distance, the even one; for both signs.
        for sign in [0, 0x8000] {
            let low = || (sign..sign + infinity - 1).map(|bits| (bits, numbers[bits]));
            let middles: Vec<f64> = low().map(|(bits, x)| (x + numbers[bits + 1]) / 2.0).collect();
            let beside = |step: f64| middles.iter().map(move |x| x * (1.0 + step)).collect();
            let [at, below, above] = [middles.clone(), beside(-1e-9), beside(1e-9)];
            let [at, below, above] = [at, below, above].map(|all| stored(half, all));
            for (i, (bits, _)) in low().enumerate() {
                let [at, below, above] = [at[i], below[i], above[i]].map(usize::from);
                assert_eq!(
                    [at, below, above],
                    [bits + bits % 2, bits, bits + 1],
                    "{name} {bits:#x}"
                );
            }
        }
    }
}

#[test]
fn tensors_of_other_types_are_left_out_and_named() {
    let file = SafeTensors::from_bytes(&golden("other_types.safetensors")).unwrap();
    let unread = [("a.float8", "F8_E4M3"), ("int16", "I16"), ("scalar", "U16")];
    let unread = unread.map(|(name, dtype)| (name.to_owned(), dtype.to_owned()));
    assert_eq!(file.unread, BTreeMap::from(unread));
    assert_eq!(file.get::<f32>("a.float32").unwrap().to_vec(), [1.0, 2.0, 3.0]);
    assert_eq!(file.get::<bool>("z").unwrap().to_vec(), [true, false]);
    assert_eq!(file.tensors.len(), 2);
    let words = file.get::<f32>("a.float8").unwrap_err().to_string();
    assert_eq!(words, "get: `a.float8` is of elements F8_E4M3, which cannot be read");
    assert!(file.get::<f32>("none").unwrap_err().to_string().contains("missing: `none`"));

    // Types that do not exist yet, of any size.
    let header = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
        "b":{"dtype":"Q4_0","shape":[7,9],"data_offsets":[2,5]},
        "c":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}}"#;
    let bytes = self::file(header, 8);
    let read = SafeTensors::from_bytes(&bytes).unwrap();
    assert_eq!(read.unread["b"], "Q4_0");
    assert_eq!(read.get::<u8>("c").unwrap().len(), 3);
    assert!(refusal(&bytes[..bytes.len() - 4]).ends_with("it was cut"));
}

#[test]
fn every_layout_is_saved_as_it_is_read() {
    let x = Tensor::<f32>::arange(20_000).reshape([100, 200]);
    let mut file = SafeTensors::new();
    let views = [
        ("plain", x.clone()),
        ("transposed", x.transpose()),
        ("broadcast", x.narrow(0, 3, 1).broadcast_to([5, 200])),
        ("flipped", x.flip(1)),
        ("sliced", x.slice_axis(1, 1, 200, 3)),
    ];
    for (name, view) in &views {
        file.insert(*name, view.clone());
    }
    let changed = Tensor::<i64>::zeros([40_000]);
    changed.fill(7).unwrap();
    file.insert("changed in place", changed.clone());
    let again = SafeTensors::from_bytes(&file.to_bytes().unwrap()).unwrap();
    for (name, view) in views {
        let read = again.get::<f32>(name).unwrap();
        assert_eq!(read.shape(), view.shape(), "{name}");
        assert_eq!(read.to_vec(), view.to_vec(), "{name}");
        assert!(read.stop_gradient());
    }
    assert_eq!(again.get::<i64>("changed in place").unwrap().to_vec(), changed.to_vec());
}

#[test]
fn what_is_not_there_or_of_another_type_is_reported() {
    let mut file = SafeTensors::new();
    file.insert("x", Tensor::from(1_i64));
    let error = file.get::<i64>("y").unwrap_err();
    assert_eq!(error.to_string(), "get: the tensors are not those that are needed\n  missing: `y`");
    let error = file.get::<f32>("x").unwrap_err();
    assert_eq!(error.to_string(), "get: `x` must have element type float32, found int64");
}

#[test]
fn parts_share_a_file_under_their_prefixes() {
    let part = |x: f32| BTreeMap::from([("w".into(), AnyTensor::from(Tensor::from(x)))]);
    let mut file = SafeTensors::new();
    file.insert_under("a", part(1.0));
    file.insert_under("a.b", part(2.0));
    file.insert_under("ab", part(3.0));
    assert_eq!(file.under("a").keys().collect::<Vec<_>>(), ["b.w", "w"]);
    assert_eq!(file.under("ab").keys().collect::<Vec<_>>(), ["w"]);
    assert!(file.under("b").is_empty());
}

#[test]
fn sizes_that_lie_are_refused_before_memory_is_asked_for() {
    assert!(refusal(&[]).ends_with("has 0 bytes"));
    let claims = |size: u64| refusal(&[&size.to_le_bytes()[..], b"{}"].concat());
    let words = "the header claims 18446744073709551615 bytes, but at most 2 are possible in a file \
                 of 10 bytes; this is no safetensors file, or it was cut";
    assert_eq!(claims(u64::MAX), words);
    assert!(claims(3).starts_with("the header claims 3 bytes"));
    assert_eq!(claims(0), "header: it must start with `{`");
    assert_eq!(claims(1), "header: EOF while parsing an object at line 1 column 1");

    let entry = |dtype: &str, shape: &str, begin: u64, end: u64| {
        let header = format!(
            r#"{{"a":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{begin},{end}]}}}}"#
        );
        refusal(&file(&header, 8))
    };
    let terabytes = entry("F32", "1099511627776", 0, 4398046511104);
    let words =
        "the tensors take 4398046511104 bytes, but the file has 8 bytes of data; it was cut";
    assert_eq!(terabytes, words);
    let words = "tensor `a`: shape [3] of F32 takes 12 bytes, but its data goes from 0 to 8";
    assert_eq!(entry("F32", "3", 0, 8), words);
    let huge = "18446744073709551615,18446744073709551615";
    assert!(entry("F32", huge, 0, 8).contains("takes too many bytes"));
    assert!(entry("F32", "4611686018427387905", 0, 4).contains("takes too many bytes"));
    assert!(entry("F32", "18446744073709551615,2,0", 0, 0).contains("takes too many bytes"));
    assert!(entry("F32", "0,18446744073709551615,2", 0, 0).contains("takes too many bytes"));
    assert!(entry("U8", "0,4294967296,4294967296", 0, 0).contains("takes too many bytes"));
    assert!(entry("F32", "2", 8, 0).contains("its data goes from 8 to 0"));
    assert_eq!(
        entry("F32", "1", 0, 4),
        "the tensors take 4 bytes, but the file has 8 bytes of data"
    );
    assert_eq!(entry("F32", "1", 4, 8), "header: invalid offset for tensor `a`");
    // The size is checked for types that are not read too, if it is known.
    let words = "tensor `a`: shape [3] of F8_E4M3 takes 3 bytes, but its data goes from 0 to 8";
    assert_eq!(entry("F8_E4M3", "3", 0, 8), words);
    assert!(entry("F4", "17", 0, 8).contains("takes 9 bytes"));
    assert!(entry("U16", "18446744073709551615", 0, 8).contains("takes too many bytes"));
    assert_eq!(entry("Q4", "4", 8, 0), "tensor `a`: its data goes from 8 to 0");
    assert_eq!(entry("Q4", "4", 4, 8), "header: invalid offset for tensor `a`");
    assert_eq!(
        entry("Q4", "4", 0, 4),
        "the tensors take 4 bytes, but the file has 8 bytes of data"
    );
    assert!(
        entry("Q4", "-1", 0, 8).starts_with("tensor `a`: unknown variant `Q4`, expected one of")
    );
    // Together they have as many bytes as a u64 can count, so that adding to them overflows.
    let most = |i: u64| if i == 63 { u64::MAX } else { (i + 1) << 58 };
    let entries = (0..64_u64).map(|i| {
        let (begin, end) = (i << 58, most(i));
        let n = end - begin;
        format!(r#""{i}":{{"dtype":"U8","shape":[{n}],"data_offsets":[{begin},{end}]}}"#)
    });
    let entries = entries.collect::<Vec<_>>().join(",");
    let words = "the tensors take 18446744073709551615 bytes, but the file has 8 bytes of data; it \
                 was cut";
    assert_eq!(refusal(&file(&format!("{{{entries}}}"), 8)), words);
}

#[test]
fn overlaps_and_repeats_are_refused() {
    let two = |names: [&str; 2], places: [[u64; 2]; 2]| {
        let entry = |i: usize| {
            let (name, [begin, end]) = (names[i], places[i]);
            let n = end - begin;
            format!(r#""{name}":{{"dtype":"U8","shape":[{n}],"data_offsets":[{begin},{end}]}}"#)
        };
        file(&format!("{{{},{}}}", entry(0), entry(1)), 8)
    };
    let overlaps = "header: invalid offset for tensor `b`";
    assert_eq!(refusal(&two(["a", "b"], [[0, 8], [0, 8]])), overlaps);
    assert_eq!(refusal(&two(["a", "b"], [[0, 5], [4, 8]])), overlaps);
    assert_eq!(refusal(&two(["b", "a"], [[4, 8], [0, 5]])), overlaps);
    assert_eq!(refusal(&two(["a", "b"], [[0, 3], [4, 8]])), overlaps);
    let twice = refusal(&two(["a", "a"], [[0, 4], [4, 8]]));
    assert_eq!(twice, "header: `a` appears twice at line 1 column 105");
    let whole = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    let twice = format!(r#"{{"a":{whole},"a":{whole}}}"#);
    assert_eq!(refusal(&file(&twice, 0)), "header: `a` appears twice at line 1 column 105");
    assert!(SafeTensors::from_bytes(&two(["b", "a"], [[4, 8], [0, 4]])).is_ok());

    let twice = r#"{"__metadata__":{"n":"1","n":"2"}}"#;
    let words = "header: `__metadata__`: `n` appears twice at line 1 column 17";
    assert_eq!(refusal(&file(twice, 0)), words);
    let twice = r#"{"__metadata__":{},"__metadata__":{}}"#;
    let words = "header: `__metadata__` appears twice at line 1 column 37";
    assert_eq!(refusal(&file(twice, 0)), words);
    let twice = r#"{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
    assert_eq!(refusal(&file(twice, 0)), "tensor `a`: `dtype` appears twice at line 1 column 26");
}

#[test]
fn headers_of_another_form_are_refused() {
    for (header, words) in [
        (" {}", "header: it must start with `{`"),
        ("[]", "header: it must start with `{`"),
        ("{} x", "header: trailing characters at line 1 column 4"),
        ("{\0}", "header: key must be a string at line 1 column 2"),
        ("{}\0", "header: trailing characters at line 1 column 3"),
        (
            r#"{"a":7}"#,
            "tensor `a`: invalid type: integer `7`, expected an object at line 1 column 1",
        ),
        (
            r#"{"a":["U8",[0],[0,0]]}"#,
            "tensor `a`: invalid type: sequence, expected an object at line 1 column 0",
        ),
        (r#"{"a":{}}"#, "tensor `a`: missing field `dtype` at line 1 column 2"),
        (
            r#"{"a":{"dtype":"U8","shape":[0]}}"#,
            "tensor `a`: missing field `data_offsets` at line 1 column 26",
        ),
        (
            r#"{"a":{"dtype":"U8","data_offsets":[0,0]}}"#,
            "tensor `a`: missing field `shape` at line 1 column 35",
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}}"#,
            "tensor `a`: invalid length 1, expected a tuple of size 2 at line 1 column 44",
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":0}}"#,
            "tensor `a`: `more` is none of data_offsets, dtype, shape",
        ),
        (
            r#"{"__metadata__":{"a":1}}"#,
            "header: `__metadata__`: invalid type: integer `1`, expected a string at line 1 column 1",
        ),
    ] {
        assert_eq!(refusal(&file(header, 0)), words, "{header}");
    }
    assert_eq!(
        refusal(&[&[2, 0, 0, 0, 0, 0, 0, 0][..], b"{\xff"].concat()),
        "header: invalid utf-8 sequence of 1 bytes from index 1"
    );
    let bool = r#"{"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}"#;
    let mut bytes = file(bool, 1);
    *bytes.last_mut().unwrap() = 2;
    assert_eq!(refusal(&bytes), "tensor `a`: 2 is no bool; they are 0 and 1");
}

#[test]
fn deep_nesting_costs_no_stack() {
    for open in ["{\"a\":", "[", "{\"__metadata__\":{\"a\":", "{\"a\":{\"shape\":["] {
        let why = refusal(&file(&open.repeat(1_000_000), 0));
        assert!(why.starts_with("header: ") || why.starts_with("tensor "), "{why}");
    }
    let axes = "1,".repeat(100_000);
    let header = format!(r#"{{"a":{{"dtype":"U8","shape":[{axes}1],"data_offsets":[0,1]}}}}"#);
    let read = SafeTensors::from_bytes(&file(&header, 1)).unwrap();
    assert_eq!(read.get::<u8>("a").unwrap().shape().len(), 100_001);
}

#[test]
fn every_cut_of_a_file_is_refused() {
    let bytes = golden("all_types.safetensors");
    for len in 0..bytes.len() {
        refusal(&bytes[..len]);
    }
    refusal(&[&bytes[..], &[0]].concat());
}

#[test]
fn saving_replaces_a_file_whole_or_not_at_all() {
    let folder = Scratch::new("whole");
    let path = folder.0.join("a.safetensors");
    let mut file = SafeTensors::new();
    file.insert("x", Tensor::from(vec![1.0_f32, 2.0]));
    file.save(&path).unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(before, file.to_bytes().unwrap());

    file.insert("__metadata__", Tensor::from(1.0_f32));
    let error = file.save(&path).unwrap_err();
    let words = "the name `__metadata__` is kept for notes; no tensor may have it";
    assert_eq!(error.to_string(), format!("save: {}: {words}", path.display()));
    assert_eq!(fs::read(&path).unwrap(), before);
    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["a.safetensors"], "nothing is left over");

    let missing = folder.0.join("no/a.safetensors");
    let kind = |error: Error| match error {
        Error::File { kind, path: Some(_), .. } => kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(SafeTensors::new().save(&missing).unwrap_err()), ErrorKind::NotFound);
    assert_eq!(kind(SafeTensors::load(&missing).unwrap_err()), ErrorKind::NotFound);
    assert_eq!(kind(SafeTensors::load(&folder.0).unwrap_err()), ErrorKind::InvalidInput);
}

#[test]
fn what_cannot_be_replaced_is_refused_and_what_was_left_behind_is_no_obstacle() {
    let folder = Scratch::new("refused");
    let path = folder.0.join("a.safetensors");
    let refused = |path: &Path| match SafeTensors::new().save(path).unwrap_err() {
        Error::File { why, .. } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&folder.0), "not a regular file");
    assert_eq!(refused(Path::new("")), "not the name of a file");
    // Drafts of a killed program with the same process id.
    for count in 0..100 {
        let draft = format!(".a.safetensors.{}-{count}.tmp", std::process::id());
        fs::write(folder.0.join(draft), "").unwrap();
    }
    SafeTensors::new().save(&path).unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    assert_eq!(refused(&path), "the file is read-only");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Scratch::new("links");
    let (path, link) = (folder.0.join("a"), folder.0.join("link"));
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("a", &link).unwrap();
    SafeTensors::new().save(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&path).unwrap(), SafeTensors::new().to_bytes().unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let device = SafeTensors::new().save("/dev/null").unwrap_err();
    assert!(device.to_string().ends_with("not a regular file"), "{device}");
}

/// A read-only folder, for a user to whom permissions apply.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_keeps_the_old_file() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, id};
    const INSIDE: &str = "SAFETENSORS_UNWRITABLE";
    let mut file = SafeTensors::new();
    file.insert("x", Tensor::from(vec![1.0_f32, 2.0]));
    if let Some(folder) = std::env::var_os(INSIDE) {
        let path = Path::new(&folder).join("a.safetensors");
        file.insert("y", Tensor::from(3.0));
        let error = file.save(&path).unwrap_err();
        assert!(matches!(error, Error::File { kind: ErrorKind::PermissionDenied, .. }), "{error}");
        return;
    }
    let folder = std::env::temp_dir().join(format!("unwritable-{}", id()));
    fs::create_dir_all(&folder).unwrap();
    file.save(folder.join("a.safetensors")).unwrap();
    fs::set_permissions(folder.join("a.safetensors"), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    // Permissions do not apply to root, so root runs this as nobody.
    let root = fs::write(folder.join("probe"), "").is_ok();
    let _ = fs::remove_file(folder.join("probe"));
    let mut again = Command::new("/proc/self/exe");
    if !Path::new("/proc/self/exe").exists() {
        again = Command::new(std::env::current_exe().unwrap());
    }
    if root {
        again.uid(65534).gid(65534);
    }
    let name = "safetensors::a_folder_that_cannot_be_written_keeps_the_old_file";
    let output = again.args([name, "--exact"]).env(INSIDE, &folder).current_dir("/").output();
    let output = output.unwrap();
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    let kept = SafeTensors::load(folder.join("a.safetensors")).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert_eq!(kept.tensors.len(), 1);
    assert_eq!(names, ["a.safetensors"], "nothing is left over");
}

/// A disk of 256 KiB; `cargo test -p tests --test nn -- --ignored`.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "mounts a small disk, which needs user namespaces or root"]
fn a_full_disk_keeps_the_old_file() {
    use std::process::{Command, id};
    const INSIDE: &str = "SAFETENSORS_FULL";
    if let Some(folder) = std::env::var_os(INSIDE) {
        let path = Path::new(&folder).join("a.safetensors");
        let mut file = SafeTensors::new();
        file.insert("x", Tensor::<u8>::full([100_000], 7));
        file.save(&path).unwrap();
        let before = fs::read(&path).unwrap();
        file.insert("y", Tensor::<u8>::full([200_000], 8));
        let error = file.save(&path).unwrap_err();
        assert!(matches!(error, Error::File { kind: ErrorKind::StorageFull, .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left over");
        file.tensors.remove("y");
        file.save(&path).unwrap();
        return;
    }
    let folder = std::env::temp_dir().join(format!("full-{}", id()));
    fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=256k none '{0}' && {INSIDE}='{0}' '{1}' --ignored --exact \
         safetensors::a_full_disk_keeps_the_old_file",
        folder.display(),
        std::env::current_exe().unwrap().display()
    );
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let texts = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned());
    assert!(output.status.success() && texts[0].contains("1 passed"), "{texts:?}");
}

#[test]
fn saving_and_loading_at_once_never_meets_half_a_file() {
    let folder = Scratch::new("at-once");
    let path = folder.0.join("a.safetensors");
    let version = |i: i64| {
        let mut file = SafeTensors::new();
        file.insert("x", Tensor::<i64>::full([10_000], i));
        file
    };
    version(0).save(&path).unwrap();
    std::thread::scope(|scope| {
        for writer in 1..=2 {
            let (path, version) = (&path, &version);
            scope.spawn(move || (0..20).for_each(|_| version(writer).save(path).unwrap()));
        }
        for _ in 0..50 {
            let x = SafeTensors::load(&path).unwrap().get::<i64>("x").unwrap().to_vec();
            assert!(x.iter().all(|&i| i == x[0]));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// A file with a few bytes changed, inserted or removed is read or refused, never more; a file
    /// that is read can be written as one that reads the same.
    #[test]
    fn changed_files_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..5),
        ascii in any::<bool>(),
    ) {
        let mut bytes = golden("all_types.safetensors");
        for (at, what, byte) in changes {
            let at = at.index(bytes.len());
            let byte = if ascii { b"0123456789[]{},:\"\\ aU8F"[usize::from(byte) % 23] } else { byte };
            match what {
                0 => bytes.insert(at, byte),
                1 if bytes.len() > 1 => { bytes.remove(at); }
                2 => { bytes.truncate(at.max(1)); }
                _ => bytes[at] = byte,
            }
        }
        match SafeTensors::from_bytes(&bytes) {
            Ok(file) => {
                let again = file.to_bytes().unwrap();
                prop_assert_eq!(SafeTensors::from_bytes(&again).unwrap().to_bytes().unwrap(), again);
            }
            Err(Error::File { kind: ErrorKind::InvalidData, .. }) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    /// The same for a header with a correct length, so that the changes are reached.
    #[test]
    fn changed_headers_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 1..4),
    ) {
        let whole = golden("all_types.safetensors");
        let size = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
        let mut header = whole[8..8 + size].to_vec();
        for (at, what, byte) in changes {
            let at = at.index(header.len());
            let byte = b"0123456789[]{},:\"\\u aU8F-."[usize::from(byte) % 26];
            match what {
                0 => header.insert(at, byte),
                1 => { header.remove(at); }
                _ => header[at] = byte,
            }
        }
        let bytes = [&(header.len() as u64).to_le_bytes()[..], &header, &whole[8 + size..]].concat();
        if let Err(error) = SafeTensors::from_bytes(&bytes) {
            prop_assert!(matches!(error, Error::File { kind: ErrorKind::InvalidData, .. }), "{}", error);
        }
    }
}
