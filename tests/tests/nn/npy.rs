//! NumPy's files: read as NumPy wrote them, written so that they can be read again, and fully checked.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use autograd_core::npy::{read_npy, read_npz, write_npy, write_npz};
use autograd_core::{AnyTensor, Element, Error, Tensor};

use crate::Scratch;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

/// An `.npy` file with this descriptor and shape, and so many bytes of data.
fn file(descriptor: &str, shape: &str, data: usize) -> Vec<u8> {
    let header =
        format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

#[track_caller]
fn is<T: Element>(found: &AnyTensor, shape: &[usize], data: &[T]) {
    let found = found.downcast_ref::<T>().unwrap();
    assert_eq!((found.shape(), &found.to_vec()[..]), (shape, data));
    assert!(found.stop_gradient());
}

fn check_all(all: &BTreeMap<String, AnyTensor>) {
    is(&all["float64"], &[2, 2], &[0.1, -2.5, 1e300, -0.0]);
    is(&all["float32"], &[3], &[1.5_f32, f32::INFINITY, -3.25e-20]);
    is(&all["int64"], &[2], &[i64::MIN, i64::MAX]);
    is(&all["int32"], &[2, 1], &[i32::MIN, 7]);
    is(&all["uint8"], &[3], &[0_u8, 255, 3]);
    is(&all["bool"], &[1, 3], &[true, false, true]);
    is(&all["scalar"], &[], &[4.0_f32]);
    is::<f32>(&all["empty"], &[0, 3], &[]);
    is(&all["layer.weight"], &[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(all.len(), 9);
}

#[test]
fn files_of_numpy_are_read_and_written_again() {
    is(&read_npy(golden("fortran.npy")).unwrap(), &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    for name in ["arrays.npz", "compressed.npz"] {
        let all = read_npz(golden(name)).unwrap();
        check_all(&all);
        let folder = Scratch::new(&format!("again-{name}"));
        let path = folder.0.join(name);
        fs::write(&path, b"an old file").unwrap();
        write_npz(&path, &all).unwrap();
        let bytes = fs::read(&path).unwrap();
        check_all(&read_npz(&path).unwrap());
        write_npz(&path, &all).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_view_is_written_in_its_own_order() {
    let x = Tensor::from([[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]]).transpose();
    let folder = Scratch::new("view");
    let path = folder.0.join("view.npy");
    write_npy(&path, &x).unwrap();
    is(&read_npy(&path).unwrap(), &[3, 2], &[1.0_f32, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

#[test]
fn errors_name_the_file_and_what_is_wrong_with_it() {
    let cases = [
        ("half", file("<f2", "(3,)", 6), "its elements are of type '<f2'; float32, float64, int32"),
        ("big", file(">f8", "(1,)", 8), "its elements are big-endian; in NumPy, save `x.astype("),
        ("short", file("<f4", "(3,)", 8), "missing 4 bytes"),
        ("long", file("<f4", "(3,)", 16), "had 4 extra bytes"),
        // Much more than the available memory.
        ("huge", file("<f8", "(100000000000, 1000)", 8), "missing 799999999999992 bytes"),
        ("overflow", file("<i8", "(10000000000, 10000000000)", 8), "overflow"),
        ("no_bool", [file("|b1", "(1,)", 0), vec![7]].concat(), "invalid"),
        ("text", b"hello, not an array".to_vec(), "start does not match magic string"),
    ];
    for (name, bytes, words) in cases {
        let folder = Scratch::new("bad");
        let path = folder.0.join(format!("{name}.npy"));
        fs::write(&path, bytes).unwrap();
        let error = read_npy(&path).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(words) && text.contains(name), "{text}");
        assert!(matches!(error, Error::File { op: "read_npy", .. }), "{error:?}");
    }
    let missing = read_npz("no/such.npz").unwrap_err();
    assert!(matches!(missing, Error::File { op: "read_npz", kind: ErrorKind::NotFound, .. }));
    let lost = write_npy("no/folder/x.npy", &Tensor::from([1.0])).unwrap_err();
    assert!(matches!(lost, Error::File { op: "write_npy", kind: ErrorKind::NotFound, .. }));
}

#[test]
fn a_damaged_file_is_an_error_or_an_array_and_never_a_panic() {
    for (name, step) in [("fortran.npy", 1), ("arrays.npz", 17)] {
        let whole = fs::read(golden(name)).unwrap();
        let folder = Scratch::new(&format!("damaged-{name}"));
        let path = folder.0.join(name);
        let read = || match name {
            "fortran.npy" => read_npy(&path).map(|_| ()),
            _ => read_npz(&path).map(|_| ()),
        };
        for at in (0..whole.len()).step_by(step) {
            fs::write(&path, &whole[..at]).unwrap();
            assert!(read().is_err(), "{name} of {at} bytes");
            let mut changed = whole.clone();
            changed[at] ^= 0x15;
            fs::write(&path, changed).unwrap();
            let _ = read();
        }
    }
}

#[test]
fn what_fails_half_way_leaves_the_old_file_and_nothing_else() {
    let folder = Scratch::new("half");
    let path = folder.0.join("a.npz");
    let (x, long) = (Tensor::<f64>::ones([10_000]), "x".repeat(100_000));
    write_npz(&path, &BTreeMap::from([("a".to_owned(), x.clone().into())])).unwrap();
    let before = fs::read(&path).unwrap();
    let tensors = BTreeMap::from([("a".to_owned(), x.clone().into()), (long, x.into())]);
    let error = write_npz(&path, &tensors).unwrap_err().to_string();
    assert!(error.ends_with("a name of 100000 bytes is too long for an archive"), "{error}");
    assert!(fs::read(&path).unwrap() == before);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}
