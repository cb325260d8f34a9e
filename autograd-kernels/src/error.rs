//! Errors of kernels. autograd-core has a variant of the same name for each.

#[derive(Debug)]
pub enum Error {
    Broadcast { op: &'static str, left: Vec<usize>, right: Vec<usize> },
    Axis { op: &'static str, axis: isize, rank: usize, why: &'static str },
    TooLarge { op: &'static str, shape: Vec<usize> },
    Overflow { op: &'static str, element: &'static str, found: Option<String> },
}

pub type Result<T> = std::result::Result<T, Error>;
