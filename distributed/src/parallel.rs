//! `DataParallel`: one model on all ranks, each of which differentiates the loss of its own rows.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use autograd_core::nn::{Module, StateDict};
use autograd_core::{AnyTensor, Float, Tensor, TensorId};

use crate::buckets::{Numbers, Slot, Spare, divide};
use crate::error::{Error, Result};
use crate::exact_step::Exact;
use crate::reducer::Reducer;
use crate::shards::Shards;
use crate::world::World;

/// A model whose gradients are those of the rows of all ranks.
///
/// Each rank has its own copy of the model and an optimizer of its own. All copies start with the values of rank 0,
/// and as each rank gets the same gradients, they stay equal, bit for bit.
///
/// ```
/// use autograd_core::nn::{Linear, Module};
/// use autograd_core::{Tensor, optim};
/// use autograd_mpi::{DataParallel, Result, Shards, World};
///
/// fn train(world: &World) -> Result<()> {
///     autograd_core::seed(1);
///     let (x, y) = (Tensor::<f32>::randn([50, 3]), Tensor::<f32>::randn([50, 1]));
///     let net = Linear::new(3, 1);
///     let mut parallel = DataParallel::new(world, &net)?;
///     let mut sgd = optim::Optimizer::new(&net, optim::Sgd::new(0.1));
///     let shards = Shards { rows: 50, batch: 8, seed: 1 };
///     for epoch in 0..3 {
///         for rows in parallel.epoch(&shards, epoch) {
///             let report = parallel.step(&rows, |rows| {
///                 net.forward(&x.index_select(0, rows)).try_mse_loss(&y.index_select(0, rows))
///             })?;
///             assert!(report.items <= 8);
///             sgd.step()?;
///             sgd.clear_grad();
///         }
///     }
///     parallel.check_in_step(&net.state_dict())
/// }
///
/// fn main() -> Result<()> {
///     World::init()?.run(train)
/// }
/// ```
///
/// # Gradients
///
/// A loss must be the *mean* over its items. Gradients of the ranks are weighted by their numbers of items, so they
/// are those of the mean over all items, whatever the parts are; a rank without items takes part with `items` 0.
/// They are added to `.grad`, as by [`Tensor::backward`]. A parameter that no rank has used keeps its `.grad`, and
/// [`Report::unused`] names it; one that some ranks have used gets the mean over all.
///
/// Gradients are sent in buckets while the walk goes on, the last parameters' first. Hooks on a parameter see the
/// gradient of the rank, before the mean; callbacks of [`after_backward`](autograd_core::after_backward) see the
/// mean. Leaves that are not part of the model get the gradient of their rank's loss.
///
/// # Errors on one rank
///
/// An error in a backward on one rank is an error on all, which names that rank; no rank writes a gradient, and what
/// was accumulated is dropped. A panic in a backward ends the processes of all ranks.
pub struct DataParallel<'w> {
    pub(crate) world: &'w World,
    pub(crate) slots: Vec<Slot>,
    pub(crate) places: HashMap<TensorId, usize>,
    /// Parameters that wanted no gradient when this was made.
    pub(crate) frozen: HashMap<TensorId, String>,
    buffers: Vec<(String, AnyTensor)>,
    pub(crate) numbers: Vec<Numbers>,
    pub(crate) overlap: bool,
    pub(crate) reducer: Option<Reducer>,
    pub(crate) exact: Option<Exact>,
    pub(crate) pending: Pending,
    pub(crate) spare: Spare,
}

/// What this rank has accumulated beside gradients.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) items: usize,
    pub(crate) micro_batches: usize,
    /// The sum of the losses of the items.
    pub(crate) loss: f64,
    /// For each slot, whether it has a gradient.
    pub(crate) used: Vec<bool>,
    /// Gradients of leaves that are not part of the model.
    pub(crate) others: Vec<(AnyTensor, AnyTensor)>,
    /// The number of buckets that were sent during the walk.
    pub(crate) sent: usize,
}

/// What a backward of all ranks has done; the same on all of them but for the times.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The parameters that no rank has used, in the order of the model.
    pub unused: Vec<String>,
    /// The number of items of all ranks.
    pub items: usize,
    /// The mean loss of all items; NaN of none.
    pub loss: f64,
    /// The time in which gradients were computed, and in [`DataParallel::step`] losses.
    pub walk: Duration,
    /// The time after that, until the gradients of all ranks were there.
    pub wait: Duration,
}

const FIRST_BUCKET: usize = 1 << 20;
const OTHER_BUCKETS: usize = 25 << 20;

impl<'w> DataParallel<'w> {
    /// Checks that the model is the same on all ranks by names, shapes and element types, and copies the parameters
    /// and buffers of rank 0 to all. A parameter that wants no gradient now must not want one later.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module};
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// autograd_core::seed(world.rank() as u64); // another model on each rank
    /// let net = Linear::<f32>::new(3, 1);
    /// let parallel = DataParallel::new(&world, &net)?;
    /// parallel.check_in_step(&net.state_dict())?;
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Differs`] on a rank whose model differs from that of rank 0, with the first difference, and
    /// [`Error::Rank`] with the same on all others.
    pub fn new(world: &'w World, module: &(impl Module + ?Sized)) -> Result<Self> {
        const OP: &str = "DataParallel::new";
        let parameters = module.distinct_parameters();
        let buffers = module.named_buffers();
        let describe = |kind: &str, (name, tensor): &(String, AnyTensor)| {
            let frozen = if tensor.stop_gradient() { ", frozen" } else { "" };
            let has = format!("{:?} of {}", tensor.shape(), tensor.dtype());
            (format!("{kind} `{name}`"), has + if kind == "buffer" { "" } else { frozen })
        };
        let all = parameters.iter().map(|p| describe("parameter", p));
        let all: Vec<_> = all.chain(buffers.iter().map(|b| describe("buffer", b))).collect();
        world.same_as_root(OP, &all)?;
        for (_, tensor) in parameters.iter().chain(&buffers) {
            world.broadcast_any(tensor, 0)?;
        }
        let (frozen, learned): (Vec<_>, Vec<_>) =
            parameters.into_iter().partition(|(_, tensor)| tensor.stop_gradient());
        let frozen = frozen.into_iter().map(|(name, tensor)| (tensor.id(), name)).collect();
        let mut parallel = Self {
            world,
            slots: Vec::new(),
            places: HashMap::new(),
            frozen,
            buffers,
            numbers: Vec::new(),
            overlap: true,
            reducer: None,
            exact: None,
            pending: Pending::default(),
            spare: Spare::default(),
        };
        parallel.divide(learned, FIRST_BUCKET, OTHER_BUCKETS);
        Ok(parallel)
    }

    fn divide(&mut self, learned: Vec<(String, AnyTensor)>, first: usize, others: usize) {
        (self.slots, self.numbers) = divide(learned, first, others);
        let ids = self.slots.iter().enumerate();
        self.places = ids.map(|(at, slot)| (slot.tensor.id(), at)).collect();
        self.pending = Pending { used: vec![false; self.slots.len()], ..Pending::default() };
        if let Some(exact) = &mut self.exact {
            *exact = Exact::new(exact.micro_batch, &self.slots);
        }
    }

    /// Sets the size of the first bucket and of the others, in bytes: 1 MiB and 25 MiB unless set. Small ones start
    /// earlier, large ones have less overhead. Drops what was accumulated. To be set alike on all ranks.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// let w = parameter(Tensor::from([2.0]));
    /// let mut parallel = DataParallel::new(&world, &w)?.buckets(64 << 10, 4 << 20);
    /// parallel.backward(&(&w * 3.0).mean(), 1)?;
    /// assert_eq!(w.grad().unwrap().to_vec(), [3.0]);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    #[must_use]
    pub fn buckets(mut self, first: usize, others: usize) -> Self {
        let slots = std::mem::take(&mut self.slots).into_iter().rev();
        let learned = slots.map(|slot| (slot.name, slot.tensor)).collect();
        self.divide(learned, first, others);
        self
    }

    /// Whether buckets are sent while the walk goes on, by a thread of its own, as they are unless set. A model of
    /// one bucket has nothing to overlap, and no thread.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// let w = parameter(Tensor::from([2.0]));
    /// let mut parallel = DataParallel::new(&world, &w)?.overlap(false);
    /// parallel.backward(&(&w * 3.0).mean(), 1)?;
    /// assert_eq!(w.grad().unwrap().to_vec(), [3.0]);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    #[must_use]
    pub fn overlap(mut self, on: bool) -> Self {
        self.overlap = on;
        self
    }

    /// Makes the gradients independent of the number of ranks, bit for bit. Each global batch is cut into
    /// micro-batches of `micro_batch` rows, the last of which may be smaller. Each is differentiated by itself, as
    /// on one rank, and the gradients are added as integers, exactly, so their order and owners do not matter.
    ///
    /// Take the rows from [`epoch`](DataParallel::epoch), which cuts batches between micro-batches only, and compute
    /// the loss in [`step`](DataParallel::step). Random numbers that the loss draws depend on the rows and on the
    /// process-wide generator, whose state must be equal on all ranks: call `autograd_core::seed` with one number.
    /// Rounding changes the gradient of a micro-batch by at most 2⁻⁴⁷ of the largest element in that parameter's
    /// gradient; the mean is rounded to the element type. The gradients of all micro-batches of a rank, and 8 bytes
    /// for each element, are in memory until the last is done; nothing is sent before. Buffers that a loss changes,
    /// as running means of [`BatchNorm`](autograd_core::nn::BatchNorm), are not summed: they depend on the rows of
    /// the rank. At most 65,535 micro-batches are possible in a batch.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// let w = parameter(Tensor::from([2.0]));
    /// let x = Tensor::from([1.0, 2.0, 3.0, 4.0, 5.0]);
    /// let mut parallel = DataParallel::new(&world, &w)?.reproducible(2);
    /// let mut lens = Vec::new();
    /// parallel.step(&Tensor::arange(5), |rows| {
    ///     lens.push(rows.len());
    ///     Ok((&w * x.index_select(0, rows)).mean())
    /// })?;
    /// assert_eq!((lens, w.grad().unwrap().to_vec()), (vec![2, 2, 1], vec![3.0]));
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    #[must_use]
    pub fn reproducible(mut self, micro_batch: usize) -> Self {
        self.exact = Some(Exact::new(micro_batch.max(1), &self.slots));
        self
    }

    /// Returns this rank's rows of each batch of epoch `n`; see [`Shards::epoch`].
    ///
    /// ```
    /// use autograd_core::nn::Linear;
    /// use autograd_mpi::{DataParallel, Shards, World};
    ///
    /// let world = World::init()?;
    /// let parallel = DataParallel::new(&world, &Linear::<f32>::new(3, 1))?;
    /// let shards = Shards { rows: 10, batch: 4, seed: 7 };
    /// let parts: Vec<_> = parallel.epoch(&shards, 0).map(|rows| rows.len()).collect();
    /// assert_eq!(parts, [4, 4, 2]); // without `mpirun`
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    pub fn epoch(&self, shards: &Shards, n: u64) -> impl Iterator<Item = Tensor<i64>> + use<> {
        let multiple = self.exact.as_ref().map_or(1, |exact| exact.micro_batch);
        shards.of_rank(self.world.rank(), self.world.size(), n, multiple)
    }

    /// Computes the loss of this rank's rows, which may be none, and its gradients, and adds the mean gradients of
    /// all ranks to `.grad`. `loss` gets all rows at once, or each micro-batch if the gradients are
    /// [`reproducible`](DataParallel::reproducible), and returns the mean loss of these.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// let w = parameter(Tensor::from([2.0]));
    /// let x = Tensor::from([1.0, 2.0, 3.0, 4.0]);
    /// let mut parallel = DataParallel::new(&world, &w)?;
    /// let report = parallel
    ///     .step(&Tensor::from([0, 3]), |rows| Ok((&w * x.index_select(0, rows)).mean()))?;
    /// assert_eq!((report.items, report.loss), (2, 5.0)); // the mean of 2 * 1 and 2 * 4
    /// assert_eq!(w.grad().unwrap().to_vec(), [2.5]);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`backward`](DataParallel::backward). An error of `loss` is one on all ranks.
    pub fn step<T: Float>(
        &mut self,
        rows: &Tensor<i64>,
        mut loss: impl FnMut(&Tensor<i64>) -> autograd_core::Result<Tensor<T>>,
    ) -> Result<Report> {
        self.finish("step", |parallel| match &parallel.exact {
            Some(_) => parallel.walk_micro_batches(&rows.to_vec(), loss),
            None if rows.is_empty() => Ok(()),
            None => parallel.walk(&loss(rows)?, rows.len()),
        })
    }

    /// Computes the gradients of a loss, the mean over `items` items, and adds the mean gradients of all ranks, with
    /// those that were [accumulated](DataParallel::accumulate), to `.grad`. With 0 items the loss is not looked at.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// let w = parameter(Tensor::from([2.0]));
    /// let mut parallel = DataParallel::new(&world, &w)?;
    /// let loss = (&w * Tensor::from([1.0, 4.0])).mean();
    /// let report = parallel.backward(&loss, 2)?;
    /// assert_eq!((report.items, report.loss), (2 * world.size(), 5.0));
    /// assert_eq!(w.grad().unwrap().to_vec(), [2.5]);
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of a backward, [`Error::Argument`] for a loss without one element and a parameter that was frozen at the
    /// start; [`Error::Rank`] if another rank has one of these. No gradient is written then.
    pub fn backward<T: Float>(&mut self, loss: &Tensor<T>, items: usize) -> Result<Report> {
        self.finish("backward", |parallel| match items {
            0 => Ok(()),
            _ => parallel.walk(loss, items),
        })
    }

    /// Computes the gradients of a loss, the mean over `items` items, and keeps them for the next
    /// [`backward`](DataParallel::backward) or [`step`](DataParallel::step), without communication and without a
    /// change of `.grad`. Ranks may accumulate different numbers of losses.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::parameter;
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// let w = parameter(Tensor::from([2.0]));
    /// let mut parallel = DataParallel::new(&world, &w)?;
    /// parallel.accumulate(&(&w * Tensor::from([1.0, 2.0, 3.0])).mean(), 3)?;
    /// assert!(w.grad().is_none());
    /// parallel.backward(&(&w * Tensor::from([10.0])).mean(), 1)?;
    /// assert_eq!(w.grad().unwrap().to_vec(), [4.0]); // the mean of 1, 2, 3 and 10
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of a backward, on this rank only. Nothing is kept of that loss then.
    pub fn accumulate<T: Float>(&mut self, loss: &Tensor<T>, items: usize) -> Result<()> {
        if items == 0 {
            return Ok(());
        }
        match &self.exact {
            Some(_) => self.add_exactly(loss, items),
            None => self.add_later(loss, items),
        }
    }

    /// Copies the buffers of rank 0, as running means, to all ranks: before they are saved or used in evaluation.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::{BatchNorm1d, Module};
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// let net = BatchNorm1d::<f32>::new(3);
    /// let parallel = DataParallel::new(&world, &net)?;
    /// net.forward(&Tensor::randn([8, 3])); // changes the running means, on each rank differently
    /// parallel.sync_buffers()?;
    /// parallel.check_in_step(&net.state_dict())?;
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`World::barrier`].
    pub fn sync_buffers(&self) -> Result<()> {
        self.buffers.iter().try_for_each(|(_, buffer)| self.world.broadcast_any(buffer, 0))
    }

    /// Checks that tensors have the same bits on all ranks.
    ///
    /// ```
    /// use autograd_core::nn::{Linear, Module};
    /// use autograd_mpi::{DataParallel, World};
    ///
    /// let world = World::init()?;
    /// let net = Linear::<f32>::new(3, 1);
    /// let parallel = DataParallel::new(&world, &net)?;
    /// parallel.check_in_step(&net.state_dict())?; // an error if an element differs on a rank
    /// # Ok::<(), autograd_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Differs`] on a rank that differs from rank 0, with the first name, [`Error::Rank`] on the others.
    pub fn check_in_step(&self, state: &StateDict) -> Result<()> {
        let all: Vec<_> = state
            .iter()
            .map(|(name, tensor)| {
                let bits = checksum(tensor);
                let has = format!("{:?} of {}, with bits {bits:x}", tensor.shape(), tensor.dtype());
                (format!("`{name}`"), has)
            })
            .collect();
        self.world.same_as_root("check_in_step", &all)
    }
}

fn checksum(tensor: &AnyTensor) -> u64 {
    let mut hasher = DefaultHasher::new();
    match tensor {
        AnyTensor::Float32(x) => x.to_vec().iter().for_each(|x| x.to_bits().hash(&mut hasher)),
        AnyTensor::Float64(x) => x.to_vec().iter().for_each(|x| x.to_bits().hash(&mut hasher)),
        AnyTensor::Int32(x) => x.to_vec().hash(&mut hasher),
        AnyTensor::Int64(x) => x.to_vec().hash(&mut hasher),
        AnyTensor::UInt8(x) => x.to_vec().hash(&mut hasher),
        AnyTensor::Bool(x) => x.to_vec().hash(&mut hasher),
        other => other.to_string().hash(&mut hasher),
    }
    hasher.finish()
}

/// The loss as a number.
pub(crate) fn value_of<T: Float>(loss: &Tensor<T>) -> Result<f64> {
    if loss.len() != 1 {
        return Err(Error::Argument {
            op: "backward",
            parameter: "loss",
            expected: "of one element, the mean over the items".into(),
            found: format!("shape {:?}", loss.shape()),
        });
    }
    Ok(loss.try_item()?.into_f64())
}
