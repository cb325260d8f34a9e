//! Where elements start in a vector: with a cache line, where there are enough for that to count.

/// Buffers of so many bytes start with a cache line: of vectors that lie across two, each costs two.
const ALIGNED_BYTES: usize = 1024;
pub(super) const LINE: usize = 64;

/// Elements to have room for beside `len`.
pub(super) const fn spare<T>(len: usize) -> usize {
    if len * size_of::<T>() < ALIGNED_BYTES { 0 } else { LINE / size_of::<T>() }
}

/// How many elements to leave out at the beginning of a vector for `len`, which has room for [`spare`]
/// more.
pub(super) fn start<T>(data: &[T], len: usize) -> usize {
    match spare::<T>(len) {
        0 => 0,
        _ => (data.as_ptr().addr().wrapping_neg() % LINE) / size_of::<T>(),
    }
}

/// `len` elements of a vector that start so; it is made longer where it is too short.
pub(super) fn part<T: Copy + Default>(data: &mut Vec<T>, len: usize) -> &mut [T] {
    if data.len() < len + spare::<T>(len) {
        data.resize(len + spare::<T>(len), T::default());
    }
    let start = start(data, len);
    &mut data[start..start + len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_parts_of_a_vector_start_with_a_cache_line() {
        let mut data = Vec::new();
        for len in [1000, 5000, 300] {
            let part = part::<f64>(&mut data, len);
            assert_eq!((part.len(), part.as_ptr().addr() % LINE), (len, 0));
            part.fill(1.0);
        }
        assert!(part::<f64>(&mut data, 0).is_empty());
    }
}
