use super::*;

fn shape(s: &[usize]) -> Shape {
    Shape::from_slice(s)
}

#[test]
fn small_values_stand_inline_and_large_ones_do_not() {
    assert!(Value::from_vec(shape(&[2, 4]), vec![1.0_f64; 8]).is_inline());
    assert!(!Value::from_vec(shape(&[9]), vec![1.0_f64; 9]).is_inline());
}

#[test]
fn views_read_what_they_should() {
    let n = 60;
    let v = Value::from_vec(shape(&[5, 12]), (0..n).map(f64::from).collect());
    let t = v.restrided(shape(&[12, 5]), shape(&[1, 12]), 0);
    assert_eq!(t.view()[[3, 2]], 27.0);
    assert_eq!(t.contiguous().view()[[3, 2]], 27.0);
    let b = Value::scalar(7.0).broadcast_to(&[3, 4, 5]);
    assert_eq!(b.to_vec(), vec![7.0; 60]);
    assert_eq!(b.raw().len(), 8);
    let empty = Value::<f64>::from_vec(shape(&[0, 3]), vec![]);
    assert_eq!(empty.restrided(shape(&[3, 0]), shape(&[1, 3]), 0).view().shape(), [3, 0]);
}

#[test]
fn a_shared_buffer_is_not_written() {
    let mut a = Value::from_vec(shape(&[20]), vec![1.0_f32; 20]);
    let b = a.clone();
    assert!(a.as_mut_slice().is_none());
    drop(b);
    assert!(a.as_mut_slice().is_some());
}

#[test]
fn what_is_shown_as_many_is_uniform() {
    assert_eq!(Value::scalar(7.0).broadcast_to(&[3, 4, 5]).uniform(), Some(7.0));
    assert_eq!(Value::from_vec(shape(&[1, 1]), vec![7.0]).uniform(), Some(7.0));
    assert_eq!(Value::from_vec(shape(&[20]), vec![7.0; 20]).uniform(), None);
    let rows = Value::from_vec(shape(&[1, 20]), vec![7.0; 20]).broadcast_to(&[9, 20]);
    assert_eq!(rows.uniform(), None);
    assert_eq!(Value::scalar(7.0).broadcast_to(&[0, 20]).uniform(), None);
}
