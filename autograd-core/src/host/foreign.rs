//! Memory of somebody else as a tensor, and a tensor as memory for somebody else.

use crate::array::{DType, Shape, Value};
use crate::graph::{AnyTensor, Element, Tensor, for_any};

impl<T: Element> Tensor<T> {
    /// A tensor over memory that somebody else has allocated, like that of a NumPy array. It is only read: an op that
    /// changes the tensor in place copies the elements first, and no buffer of this library takes the memory over.
    /// `strides` count elements. Up to 64 bytes, data that is not aligned, and negative strides are copied, and
    /// `owner` is dropped at once; otherwise it is dropped with the last tensor that reads the memory, which may be
    /// on another thread.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use autograd_core::Tensor;
    ///
    /// let memory: Arc<[f32]> = (0..600).map(|i| i as f32).collect();
    /// let owner = Box::new(Arc::clone(&memory));
    /// // SAFETY: the owner keeps 600 numbers, and nobody writes them.
    /// let x = unsafe { Tensor::from_foreign(&[300, 2], &[2, 1], memory.as_ptr(), owner) };
    /// assert_eq!(x.sum().item(), 179_700.0);
    /// drop(x);
    /// assert_eq!(Arc::strong_count(&memory), 1);
    /// ```
    ///
    /// # Safety
    ///
    /// The element with index `i` is at `data` plus the sum of `i[axis] * strides[axis]` elements, inside of one
    /// allocation; all elements in between are initialized too. None changes before `owner` is dropped. `shape` and
    /// `strides` have the same length.
    ///
    /// # Panics
    ///
    /// If `shape` and `strides` differ in length.
    #[must_use]
    pub unsafe fn from_foreign(
        shape: &[usize],
        strides: &[isize],
        data: *const T,
        owner: Box<dyn Send + Sync>,
    ) -> Self {
        assert_eq!(shape.len(), strides.len(), "from_foreign: one stride for each axis");
        let shape = Shape::from_slice(shape);
        // SAFETY: as of this function.
        Self::from_value(unsafe { Value::foreign(shape, strides, data, owner) })
    }
}

/// The memory of a tensor, for somebody else: row-major, and not shared with any tensor, so that it may be written.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::host::Memory;
///
/// let memory = Memory::of(Tensor::from([[1_u8, 2], [3, 4]]).into());
/// // SAFETY: the memory has so many bytes, and nothing writes them.
/// let bytes = unsafe { std::slice::from_raw_parts(memory.data(), memory.bytes()) };
/// assert_eq!(bytes, [1, 2, 3, 4]);
/// ```
#[derive(Debug)]
pub struct Memory {
    tensor: AnyTensor,
    data: *mut u8,
}

// SAFETY: the pointer is into the tensor, which is `Send` and `Sync`, and which nobody else holds.
unsafe impl Send for Memory {}
// SAFETY: as above; `data` only returns the pointer.
unsafe impl Sync for Memory {}

impl Memory {
    /// Takes the memory of a tensor of any shape. Copies it if other tensors share it, or if it is not contiguous or
    /// foreign.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::host::Memory;
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// let copied = Memory::of(x.clone().into());
    /// // SAFETY: the memory holds two numbers of type f64, and nothing else reads them.
    /// unsafe { copied.data().cast::<f64>().write(5.0) };
    /// assert_eq!(copied.into_tensor().downcast::<f64>().unwrap().to_vec(), [5.0, 2.0]);
    /// assert_eq!(x.to_vec(), [1.0, 2.0]);
    /// ```
    #[must_use]
    pub fn of(tensor: AnyTensor) -> Self {
        fn data<T: Element>(tensor: &mut Tensor<T>) -> *mut u8 {
            if T::elements(tensor).is_none() {
                *tensor =
                    Tensor::from_value(Value::from_slice(tensor.shape_owned(), &tensor.to_vec()));
            }
            T::elements(tensor).map_or(std::ptr::null_mut(), |data| data.as_mut_ptr().cast())
        }
        let mut tensor = tensor;
        let data = for_any!(&mut tensor, t => data(t));
        Self { tensor, data }
    }

    /// The tensor again, of the same shape, now the only one with this memory.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::host::Memory;
    ///
    /// let memory = Memory::of(Tensor::from([[1.0_f32, 2.0]]).into());
    /// assert_eq!(memory.into_tensor().downcast::<f32>().unwrap().to_vec(), [1.0, 2.0]);
    /// ```
    #[must_use]
    pub fn into_tensor(self) -> AnyTensor {
        self.tensor
    }

    /// The first element. The memory is valid as long as this value.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::host::Memory;
    ///
    /// let memory = Memory::of(Tensor::from([[1.0_f32, 2.0]]).into());
    /// // SAFETY: the memory holds two numbers of type f32.
    /// assert_eq!(unsafe { memory.data().cast::<f32>().add(1).read() }, 2.0);
    /// ```
    #[must_use]
    pub fn data(&self) -> *mut u8 {
        self.data
    }

    /// The lengths of the axes.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::host::Memory;
    ///
    /// let memory = Memory::of(Tensor::from([[1.0_f32, 2.0]]).into());
    /// assert_eq!(memory.shape(), [1, 2]);
    /// ```
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.tensor.shape()
    }

    /// The element type.
    ///
    /// ```
    /// use autograd_core::host::Memory;
    /// use autograd_core::{DType, Tensor};
    ///
    /// let memory = Memory::of(Tensor::from([1.0_f32]).into());
    /// assert_eq!(memory.dtype(), DType::Float32);
    /// ```
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// The number of bytes.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::host::Memory;
    ///
    /// let memory = Memory::of(Tensor::from([[1.0_f32, 2.0]]).into());
    /// assert_eq!(memory.bytes(), 2 * 4);
    /// ```
    #[must_use]
    pub fn bytes(&self) -> usize {
        let size = match self.dtype() {
            DType::Float32 | DType::Int32 => 4,
            DType::Float64 | DType::Int64 => 8,
            DType::UInt8 | DType::Bool => 1,
        };
        self.tensor.len() * size
    }
}
