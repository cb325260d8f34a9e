//! Named tensors in a file: the [safetensors](https://github.com/huggingface/safetensors) format,
//! which Python's `safetensors` package reads and writes for PyTorch, Paddle and NumPy.
//!
//! A [`StateDict`] has tensors by name; [`SafeTensors`] adds notes, and converts to a file or to bytes.
//!
//! ```
//! use autograd_core::Tensor;
//! use autograd_core::safetensors::SafeTensors;
//!
//! let mut file = SafeTensors::new();
//! file.insert("weight", Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
//! file.metadata.insert("epoch".into(), "3".into());
//!
//! let path = std::env::temp_dir().join(format!("doc-{}.safetensors", std::process::id()));
//! file.save(&path)?;
//! let again = SafeTensors::load(&path)?;
//! assert_eq!(again.get::<f64>("weight")?.to_vec(), [1.0, 2.0, 3.0, 4.0]);
//! assert_eq!(again.metadata["epoch"], "3");
//! # std::fs::remove_file(path).ok();
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! # Resuming a training run
//!
//! A run that is stopped and resumed computes what one run does, to the last bit, if the file has the model, the
//! optimizer's state, the position in the data and the state of the random numbers. A loader whose data draws
//! numbers needs the seed of [`shuffle`](crate::data::DataLoader::shuffle); without one, an epoch's numbers follow
//! the state at its start:
//!
//! ```standalone_crate
//! use autograd_core::data::DataLoader;
//! use autograd_core::nn::{Dropout, Linear, Module, Sequential, Tanh};
//! use autograd_core::optim::{AdamW, Optimizer};
//! use autograd_core::safetensors::SafeTensors;
//! use autograd_core::{Generator, Result, Tensor, rng_state, set_rng_state};
//!
//! /// Trains up to a number of steps, from the file if there is one; writes the file.
//! fn train(path: &std::path::Path, steps: usize) -> Result<Vec<f32>> {
//!     autograd_core::seed(1);
//!     let x = Tensor::<f32>::randn([40, 3]);
//!     let loader = DataLoader::new((x.clone(), x.sin()), 8).shuffle(7).in_background();
//!     let net = Sequential::new().then(Linear::new(3, 16)).then(Tanh).then(Dropout::new(0.1));
//!     let net = net.then(Linear::new(16, 3));
//!     let mut adam = Optimizer::new(&net, AdamW::new(0.02));
//!     let mut step = 0;
//!     if path.exists() {
//!         let file = SafeTensors::load(path)?;
//!         net.load_state_dict(&file.under("net"))?;
//!         adam.load_state_dict(&file.under("adam"))?;
//!         step = file.metadata["step"].parse().expect("a number");
//!         // Last, as creating the layers draws.
//!         set_rng_state(&Generator::try_from(&file.get("random")?)?);
//!     }
//!     while step < steps {
//!         // A schedule of learning rates too is a function of the step.
//!         let (epoch, used) = (step / loader.len(), step % loader.len());
//!         for batch in loader.epoch(epoch as u64).skip(used).take(steps - step) {
//!             let (x, y) = batch?;
//!             net.forward(&x).mse_loss(&y).backward()?;
//!             adam.step()?;
//!             adam.clear_grad();
//!             step += 1;
//!         }
//!     }
//!     let mut file = SafeTensors::new();
//!     file.insert_under("net", net.state_dict());
//!     file.insert_under("adam", adam.state_dict());
//!     file.insert("random", rng_state());
//!     file.metadata.insert("step".into(), step.to_string());
//!     file.save(path)?;
//!     Ok(net.state_dict().values().flat_map(|w| w.downcast_ref::<f32>().unwrap().to_vec()).collect())
//! }
//!
//! # let folder = std::env::temp_dir();
//! # let file = |name: &str| folder.join(format!("{name}-{}.safetensors", std::process::id()));
//! # let (once, twice) = (file("doc-once"), file("doc-twice"));
//! train(&twice, 7)?;
//! assert_eq!(train(&twice, 20)?, train(&once, 20)?);
//! # [once, twice].iter().for_each(|path| std::fs::remove_file(path).unwrap());
//! # Ok::<(), autograd_core::Error>(())
//! ```
//!
//! # Guarantees
//!
//! - Saving is atomic: a new file is written in the same folder, synced to disk and then renamed. A
//!   full disk, a crash or Ctrl-C leaves the old one (a crash perhaps a `.tmp` file beside it).
//! - A file is not trusted: every length, offset and name is checked, and memory is allocated only as far as
//!   the file's own size justifies it. A malformed file returns nothing but an error.
//! - Equal tensors and notes give equal bytes.
//!
//! # The format
//!
//! Eight bytes with the header's length, little-endian; the header, a JSON object with the `dtype`, `shape`
//! and `data_offsets` of each name, padded with spaces to a multiple of eight; then the elements of all
//! tensors, row-major and little-endian, without a gap. `__metadata__` in the header has strings by name.
//! Element types are F64, F32, I64, I32, U8 and BOOL; F16 and BF16 are read as `f32`, and written if
//! [`SafeTensors::store_as`] says so. Tensors of other types are [`unread`](SafeTensors::unread).

mod format;

pub use format::Half;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::file::{self, failed, malformed};
use crate::graph::{AnyTensor, Element, Tensor};

/// Tensors by name: the type of [`Module::state_dict`](crate::nn::Module::state_dict).
///
/// ```
/// use autograd_core::safetensors::{SafeTensors, StateDict};
/// use autograd_core::{AnyTensor, Tensor};
///
/// fn elements(state: &StateDict) -> usize {
///     state.values().map(AnyTensor::len).sum()
/// }
///
/// let mut file = SafeTensors::new();
/// file.insert("net.weight", Tensor::from([1.0, 2.0]));
/// file.insert("net.bias", Tensor::from([3.0]));
/// assert_eq!(elements(&file.under("net")), 3);
/// ```
pub type StateDict = BTreeMap<String, AnyTensor>;

/// Tensors by name, with notes: the contents of a safetensors file. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct SafeTensors {
    /// The tensors.
    pub tensors: StateDict,
    /// Notes by name, for readers and programs: strings only.
    pub metadata: BTreeMap<String, String>,
    /// The names of float tensors that are written in 16 bits; see [`SafeTensors::store_as`].
    pub halves: BTreeMap<String, Half>,
    /// The names and element types of tensors in the file that were left out, because this crate has no
    /// such type: `F8_E4M3`, for example. They are not written again.
    pub unread: BTreeMap<String, String>,
}

impl SafeTensors {
    /// Creates an empty set of tensors and notes.
    ///
    /// ```
    /// use autograd_core::safetensors::SafeTensors;
    ///
    /// let file = SafeTensors::new();
    /// assert!(file.tensors.is_empty() && file.metadata.is_empty());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor of any shape; replaces one of the same name.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::safetensors::SafeTensors;
    ///
    /// let mut file = SafeTensors::new();
    /// file.insert("weight", Tensor::from([1.0]));
    /// file.insert("weight", Tensor::from([[2.0, 3.0]]));
    /// assert_eq!(file.tensors["weight"].shape(), [1, 2]);
    /// ```
    pub fn insert(&mut self, name: impl Into<String>, tensor: impl Into<AnyTensor>) {
        self.tensors.insert(name.into(), tensor.into());
    }

    /// Selects, by name, present float tensors to be written in 16 bits: each element as the nearest
    /// number, numbers beyond the range as infinities. The tensors themselves stay unchanged.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::safetensors::{Half, SafeTensors};
    ///
    /// let mut file = SafeTensors::new();
    /// file.insert("weight", Tensor::from([1.0_f32, 0.1]));
    /// file.store_as(Half::F16, |name| !name.contains("norm"));
    /// let again = SafeTensors::from_bytes(&file.to_bytes()?)?;
    /// assert_eq!(again.get::<f32>("weight")?.to_vec(), [1.0, 0.099975586]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn store_as(&mut self, half: Half, which: impl Fn(&str) -> bool) {
        let floats = self.tensors.iter().filter(|(_, tensor)| tensor.dtype().is_float());
        let picked = floats.filter(|(name, _)| which(name));
        self.halves.extend(picked.map(|(name, _)| (name.clone(), half)));
    }

    /// Adds tensors, with `prefix` and a dot before their names: several parts in one file.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{Linear, Module};
    /// use autograd_core::safetensors::SafeTensors;
    ///
    /// let model = Linear::<f32>::new(3, 2);
    /// let mut file = SafeTensors::new();
    /// file.insert_under("model", model.state_dict());
    /// assert!(file.tensors.contains_key("model.weight"));
    /// model.load_state_dict(&file.under("model"))?;
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn insert_under(&mut self, prefix: &str, tensors: StateDict) {
        let named = tensors.into_iter().map(|(name, tensor)| (format!("{prefix}.{name}"), tensor));
        self.tensors.extend(named);
    }

    /// Returns the tensors whose names begin with `prefix` and a dot, without that beginning. An unknown prefix
    /// gives none, and to load none is an error.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::safetensors::SafeTensors;
    ///
    /// let mut file = SafeTensors::new();
    /// file.insert("net.fc.weight", Tensor::from([1.0]));
    /// assert_eq!(file.under("net").keys().collect::<Vec<_>>(), ["fc.weight"]);
    /// assert!(file.under("ne").is_empty());
    /// ```
    pub fn under(&self, prefix: &str) -> StateDict {
        let inside = |name: &str| Some(name.strip_prefix(prefix)?.strip_prefix('.')?.to_owned());
        let found = self.tensors.iter();
        found.filter_map(|(name, tensor)| Some((inside(name)?, tensor.clone()))).collect()
    }

    /// Returns the tensor with a name, of elements `T`, in the shape of the file or as it was inserted.
    ///
    /// ```
    /// use autograd_core::safetensors::SafeTensors;
    /// use autograd_core::{Error, Tensor};
    ///
    /// let mut file = SafeTensors::new();
    /// file.insert("weight", Tensor::from([1.0_f64, 2.0]));
    /// assert_eq!(file.get::<f64>("weight")?.to_vec(), [1.0, 2.0]);
    /// assert!(matches!(file.get::<f32>("weight"), Err(Error::ElementType { .. })));
    /// assert!(matches!(file.get::<f64>("bias"), Err(Error::StateDict { .. })));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::StateDict`] if there is no such name, [`Error::ElementType`] if the elements are of
    /// another type, [`Error::Unsupported`] if the tensor is [`unread`](SafeTensors::unread).
    pub fn get<T: Element>(&self, name: &str) -> Result<Tensor<T>> {
        let Some(tensor) = self.tensors.get(name) else {
            if let Some(dtype) = self.unread.get(name) {
                let why = format!("`{name}` is of elements {dtype}, which cannot be read");
                return Err(Error::Unsupported { op: "get", why });
            }
            let (missing, unexpected, different) = (vec![name.to_owned()], vec![], vec![]);
            return Err(Error::StateDict { op: "get", missing, unexpected, different });
        };
        tensor.downcast_ref().cloned().ok_or_else(|| Error::ElementType {
            op: "get",
            parameter: name.into(),
            expected: T::DTYPE,
            found: tensor.dtype(),
        })
    }

    /// Writes everything to a file, which is replaced atomically.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::safetensors::SafeTensors;
    ///
    /// let mut file = SafeTensors::new();
    /// file.insert("weight", Tensor::from([1.0, 2.0]));
    /// let path = std::env::temp_dir().join(format!("save-{}.safetensors", std::process::id()));
    /// file.save(&path)?;
    /// assert_eq!(std::fs::read(&path).unwrap(), file.to_bytes()?);
    /// # std::fs::remove_file(path).ok();
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::File`] if a tensor is called `__metadata__`, or the file cannot be written. An existing file is
    /// unchanged then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        file::replace("save", path.as_ref(), |out| format::write(self, out))
    }

    /// Reads a file. The tensors want no gradient;
    /// [`Module::load_state_dict`](crate::nn::Module::load_state_dict) puts them into a model.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::safetensors::SafeTensors;
    ///
    /// let mut file = SafeTensors::new();
    /// file.insert("weight", Tensor::from([1.0, 2.0]));
    /// let path = std::env::temp_dir().join(format!("load-{}.safetensors", std::process::id()));
    /// assert!(SafeTensors::load(&path).is_err());
    /// file.save(&path)?;
    /// assert_eq!(SafeTensors::load(&path)?.get::<f64>("weight")?.to_vec(), [1.0, 2.0]);
    /// # std::fs::remove_file(path).ok();
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read, or is not a whole and well-formed safetensors file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let read = |file, len| format::read(&mut io::BufReader::new(file), len);
        file::read("load", path.as_ref(), read)
    }

    /// Returns the bytes of a file.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::safetensors::SafeTensors;
    ///
    /// let mut file = SafeTensors::new();
    /// file.insert("weight", Tensor::from([1.0, 2.0]));
    /// let again = SafeTensors::from_bytes(&file.to_bytes()?)?;
    /// assert_eq!(again.get::<f64>("weight")?.to_vec(), [1.0, 2.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::File`] if a tensor is called `__metadata__`.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let written = format::write(self, &mut bytes);
        written.map_err(|error| failed("to_bytes", None, &error)).map(|()| bytes)
    }

    /// Reads the bytes of a file.
    ///
    /// ```
    /// use autograd_core::safetensors::SafeTensors;
    ///
    /// let error = SafeTensors::from_bytes(&[1, 2, 3]).unwrap_err();
    /// let words = "from_bytes: a safetensors file starts with 8 bytes that give its header's length, \
    ///              but this one has 3 bytes";
    /// assert_eq!(error.to_string(), words);
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::File`] as [`SafeTensors::load`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self> {
        let len = bytes.len() as u64;
        format::read(&mut bytes, len).map_err(|error| failed("from_bytes", None, &error))
    }
}
