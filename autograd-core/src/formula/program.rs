//! A formula as data: evaluated over any lane, which differentiates it, and run block by block.
//!
//! Programs serve what has no compiled form: closures ([`fuse`](crate::fuse)), derivatives of
//! derivatives, forward mode, and angles beyond the straight-line reduction. A block of each step's
//! result stays in the first cache, so memory is passed over once here too.

use super::functions::functions;
use super::lane::Lane;
use super::pass::{Block, Formula, Written, block_of};
use super::real::{Mask, Real};
use crate::array::Storable;
use crate::array::math::{Math, angles_in_range};
use crate::array::simd::{Kernel, dispatch};

/// What two numbers are made into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    Pow,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compare {
    Less,
    LessOrEqual,
    Equal,
}

/// One step of a program; operands are earlier steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// An input.
    Real(u32),
    /// An input that is a mask.
    Mask(u32),
    /// The bits of an `f64`.
    Lit(u64),
    Known(bool),
    Function(Function, u32),
    Binary(Binary, u32, u32),
    MulAdd(u32, u32, u32),
    Compare(Compare, u32, u32),
    Not(u32),
    And(u32, u32),
    Or(u32, u32),
    Select(u32, u32, u32),
}

impl Step {
    fn operands(self) -> ([u32; 3], usize) {
        match self {
            Self::Real(_) | Self::Mask(_) | Self::Lit(_) | Self::Known(_) => ([0; 3], 0),
            Self::Function(_, a) | Self::Not(a) => ([a, 0, 0], 1),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) | Self::And(a, b) | Self::Or(a, b) => {
                ([a, b, 0], 2)
            }
            Self::MulAdd(a, b, c) | Self::Select(a, b, c) => ([a, b, c], 3),
        }
    }

    fn renumbered(self, to: &[u32]) -> Self {
        let of = |step: u32| to[step as usize];
        match self {
            Self::Real(_) | Self::Mask(_) | Self::Lit(_) | Self::Known(_) => self,
            Self::Function(f, a) => Self::Function(f, of(a)),
            Self::Not(a) => Self::Not(of(a)),
            Self::Binary(f, a, b) => Self::Binary(f, of(a), of(b)),
            Self::Compare(f, a, b) => Self::Compare(f, of(a), of(b)),
            Self::And(a, b) => Self::And(of(a), of(b)),
            Self::Or(a, b) => Self::Or(of(a), of(b)),
            Self::MulAdd(a, b, c) => Self::MulAdd(of(a), of(b), of(c)),
            Self::Select(a, b, c) => Self::Select(of(a), of(b), of(c)),
        }
    }

    /// Whether it computes a number.
    fn is_number(self) -> bool {
        matches!(self, Self::Function(..) | Self::Binary(..) | Self::MulAdd(..) | Self::Select(..))
    }

    fn is_mask(self) -> bool {
        matches!(
            self,
            Self::Mask(_)
                | Self::Known(_)
                | Self::Compare(..)
                | Self::Not(_)
                | Self::And(..)
                | Self::Or(..)
        )
    }
}

/// A formula written down.
#[derive(Clone, Debug)]
pub struct Program {
    steps: Vec<Step>,
    outputs: Vec<u32>,
    /// The buffer that holds each step's result; inputs have none.
    places: Vec<u32>,
    /// How many buffers of numbers and of masks there are.
    buffers: [usize; 2],
}

impl Program {
    /// Drops what no output needs, and finds a buffer for each step.
    pub(super) fn new(steps: Vec<Step>, outputs: Vec<u32>) -> Self {
        let mut needed = vec![false; steps.len()];
        outputs.iter().for_each(|&output| needed[output as usize] = true);
        for (i, step) in steps.iter().enumerate().rev() {
            if needed[i] {
                let (operands, n) = step.operands();
                operands[..n].iter().for_each(|&operand| needed[operand as usize] = true);
            }
        }
        let mut to = vec![0; steps.len()];
        let mut kept = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            if needed[i] {
                to[i] = kept.len() as u32;
                kept.push(step.renumbered(&to));
            }
        }
        let outputs: Vec<u32> = outputs.iter().map(|&output| to[output as usize]).collect();
        let (places, buffers) = place(&kept, &outputs);
        Self { steps: kept, outputs, places, buffers }
    }

    /// The program over numbers of any kind.
    pub(crate) fn eval<L: Lane>(&self, reals: &[Real<L>], masks: &[Mask<L>]) -> Vec<Real<L>> {
        enum Found<L: Lane> {
            Real(L),
            Mask(L::Bool),
        }
        let mut found: Vec<Found<L>> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let real = |i: u32| match &found[i as usize] {
                Found::Real(x) => *x,
                Found::Mask(_) => unreachable!("programs are written by typed formulas"),
            };
            let mask = |i: u32| match &found[i as usize] {
                Found::Mask(m) => *m,
                Found::Real(_) => unreachable!("programs are written by typed formulas"),
            };
            let result = match *step {
                Step::Real(i) => Found::Real(reals[i as usize].0),
                Step::Mask(i) => Found::Mask(masks[i as usize].0),
                Step::Lit(bits) => Found::Real(L::lit(f64::from_bits(bits))),
                Step::Known(holds) => Found::Mask(L::known(holds)),
                Step::Function(f, a) => Found::Real(f.of(real(a))),
                Step::Binary(f, a, b) => {
                    let (a, b) = (real(a), real(b));
                    Found::Real(match f {
                        Binary::Add => a.add(b),
                        Binary::Sub => a.sub(b),
                        Binary::Mul => a.mul(b),
                        Binary::Div => a.div(b),
                        Binary::Min => a.min(b),
                        Binary::Max => a.max(b),
                        Binary::Pow => a.pow(b),
                    })
                }
                Step::MulAdd(a, b, c) => Found::Real(real(a).mul_add(real(b), real(c))),
                Step::Compare(f, a, b) => {
                    let (a, b) = (real(a), real(b));
                    Found::Mask(match f {
                        Compare::Less => a.less(b),
                        Compare::LessOrEqual => a.less_or_equal(b),
                        Compare::Equal => a.equal(b),
                    })
                }
                Step::Not(a) => Found::Mask(L::not(mask(a))),
                Step::And(a, b) => Found::Mask(L::and(mask(a), mask(b))),
                Step::Or(a, b) => Found::Mask(L::or(mask(a), mask(b))),
                Step::Select(m, a, b) => Found::Real(L::select(mask(m), real(a), real(b))),
            };
            found.push(result);
        }
        self.outputs
            .iter()
            .map(|&output| match &found[output as usize] {
                Found::Real(x) => Real(*x),
                Found::Mask(_) => unreachable!("outputs are numbers"),
            })
            .collect()
    }

    /// The inputs that its outputs depend on.
    pub(crate) fn reads(&self) -> Vec<u32> {
        let read = |step: &Step| match step {
            Step::Real(i) => Some(*i),
            _ => None,
        };
        self.steps.iter().filter_map(read).collect()
    }

    /// Whether great angles are reduced in it: by blocks, so that the last bits of its figures may
    /// follow where a block begins.
    pub(crate) fn reduces_angles(&self) -> bool {
        let angle = |step: &Step| {
            matches!(step, Step::Function(Function::Sin | Function::Cos | Function::Tan, _))
        };
        self.steps.iter().any(angle)
    }

    /// The same program with some of its outputs only.
    pub(crate) fn with_outputs(&self, wanted: &[bool]) -> Self {
        let outputs = self.outputs.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        Self::new(self.steps.clone(), outputs.map(|(&output, _)| output).collect())
    }
}

/// Which buffer holds each step, and how many there are: a buffer serves again when its step was
/// read for the last time. Constants keep theirs, and are written once.
fn place(steps: &[Step], outputs: &[u32]) -> (Vec<u32>, [usize; 2]) {
    let mut last = vec![0; steps.len()];
    for (i, step) in steps.iter().enumerate() {
        let (operands, n) = step.operands();
        operands[..n].iter().for_each(|&operand| last[operand as usize] = i);
    }
    outputs.iter().for_each(|&output| last[output as usize] = usize::MAX);
    let mut places = vec![u32::MAX; steps.len()];
    let mut free: [Vec<u32>; 2] = Default::default();
    let mut count = [0_usize; 2];
    for (i, step) in steps.iter().enumerate() {
        if matches!(step, Step::Real(_) | Step::Mask(_)) {
            continue;
        }
        let kind = usize::from(step.is_mask());
        let constant = matches!(step, Step::Lit(_) | Step::Known(_));
        let reused = if constant { None } else { free[kind].pop() };
        places[i] = reused.unwrap_or_else(|| {
            count[kind] += 1;
            (count[kind] - 1) as u32
        });
        let (operands, n) = step.operands();
        let mut freed: Vec<u32> = operands[..n].to_vec();
        freed.sort_unstable();
        freed.dedup();
        for operand in freed {
            let of = steps[operand as usize];
            let held = !matches!(of, Step::Real(_) | Step::Mask(_) | Step::Lit(_) | Step::Known(_));
            if held && last[operand as usize] == i {
                free[usize::from(of.is_mask())].push(places[operand as usize]);
            }
        }
    }
    (places, count)
}

/// Elements that a step does at once: the buffers of a program stay in the first cache.
const BLOCK: usize = 512;

/// The buffers of a program while it runs.
#[derive(Default)]
pub struct Scratch<T> {
    numbers: Vec<Vec<T>>,
    masks: Vec<Vec<bool>>,
}

impl<T: Storable + Math> Formula<T> for Program {
    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn run(&self, block: &mut Block<'_, T>) -> bool {
        let Block { len, reals, masks, out, scratch } = block;
        let stride = block_of(self.outputs.len());
        if scratch.numbers.is_empty() && scratch.masks.is_empty() {
            // The first block is the longest.
            let most = BLOCK.min(*len);
            scratch.numbers = vec![vec![T::lit(0.0); most]; self.buffers[0]];
            scratch.masks = vec![vec![false; most]; self.buffers[1]];
            for (step, &place) in self.steps.iter().zip(&self.places) {
                match *step {
                    Step::Lit(bits) => {
                        scratch.numbers[place as usize].fill(T::lit(f64::from_bits(bits)));
                    }
                    Step::Known(holds) => scratch.masks[place as usize].fill(holds),
                    _ => {}
                }
            }
        }
        let mut start = 0;
        while start < *len {
            let n = BLOCK.min(*len - start);
            // All steps lead to the only output, so it is the last one, and computed in its place.
            let direct =
                self.outputs.len() == 1 && self.steps[self.outputs[0] as usize].is_number();
            for i in 0..self.steps.len() - usize::from(direct) {
                self.step(i, start, n, reals, masks, scratch);
            }
            if direct {
                let last = self.steps[self.outputs[0] as usize];
                self.number(last, start, n, reals, masks, scratch, &mut out[start..start + n]);
            } else {
                for (k, &output) in self.outputs.iter().enumerate() {
                    let from = self.numbers(output, start, n, reals, &scratch.numbers);
                    out[k * stride + start..][..n].copy_from_slice(from);
                }
            }
            start += n;
        }
        false
    }
}

impl Written for Program {
    fn program(&self) -> Program {
        self.clone()
    }
}

impl Program {
    fn numbers<'a, T>(
        &self,
        step: u32,
        start: usize,
        n: usize,
        reals: &[&'a [T]],
        buffers: &'a [Vec<T>],
    ) -> &'a [T] {
        match self.steps[step as usize] {
            Step::Real(i) => &reals[i as usize][start..][..n],
            _ => &buffers[self.places[step as usize] as usize][..n],
        }
    }

    fn conditions<'a>(
        &self,
        step: u32,
        start: usize,
        n: usize,
        masks: &[&'a [bool]],
        buffers: &'a [Vec<bool>],
    ) -> &'a [bool] {
        match self.steps[step as usize] {
            Step::Mask(i) => &masks[i as usize][start..][..n],
            _ => &buffers[self.places[step as usize] as usize][..n],
        }
    }

    fn step<T: Storable + Math>(
        &self,
        i: usize,
        start: usize,
        n: usize,
        reals: &[&[T]],
        masks: &[&[bool]],
        scratch: &mut Scratch<T>,
    ) {
        let step = self.steps[i];
        let place = self.places[i] as usize;
        match step {
            Step::Real(_) | Step::Mask(_) | Step::Lit(_) | Step::Known(_) => {}
            Step::Function(..) | Step::Binary(..) | Step::MulAdd(..) | Step::Select(..) => {
                let mut out = std::mem::take(&mut scratch.numbers[place]);
                self.number(step, start, n, reals, masks, scratch, &mut out[..n]);
                scratch.numbers[place] = out;
            }
            Step::Compare(f, a, b) => {
                let mut out = std::mem::take(&mut scratch.masks[place]);
                let of = |k| self.numbers(k, start, n, reals, &scratch.numbers);
                dispatch(CompareKernel(f, of(a), of(b), &mut out[..n]));
                scratch.masks[place] = out;
            }
            Step::Not(_) | Step::And(..) | Step::Or(..) => {
                let mut out = std::mem::take(&mut scratch.masks[place]);
                let of = |k| self.conditions(k, start, n, masks, &scratch.masks);
                let to = out[..n].iter_mut();
                match step {
                    Step::Not(a) => to.zip(of(a)).for_each(|(to, a)| *to = !a),
                    Step::And(a, b) => {
                        to.zip(of(a)).zip(of(b)).for_each(|((to, a), b)| *to = a & b);
                    }
                    Step::Or(a, b) => {
                        to.zip(of(a)).zip(of(b)).for_each(|((to, a), b)| *to = a | b);
                    }
                    _ => unreachable!("the arm above lists them"),
                }
                scratch.masks[place] = out;
            }
        }
    }
}

impl Program {
    /// Computes a step that gives numbers.
    #[allow(clippy::too_many_arguments, reason = "one block of one step")]
    fn number<T: Storable + Math>(
        &self,
        step: Step,
        start: usize,
        n: usize,
        reals: &[&[T]],
        masks: &[&[bool]],
        scratch: &Scratch<T>,
        to: &mut [T],
    ) {
        let of = |k| self.numbers(k, start, n, reals, &scratch.numbers);
        let literal = |k: u32| match self.steps[k as usize] {
            Step::Lit(bits) => Some(T::lit(f64::from_bits(bits))),
            _ => None,
        };
        match step {
            Step::Function(f, a) => dispatch(FunctionKernel(f, of(a), to)),
            Step::Binary(f, a, b) if f.is_arithmetic() => match (literal(a), literal(b)) {
                (Some(a), _) => dispatch(LeftKernel(f, a, of(b), to)),
                (None, Some(b)) => dispatch(RightKernel(f, of(a), b, to)),
                (None, None) => dispatch(BinaryKernel(f, of(a), of(b), to)),
            },
            Step::Binary(f, a, b) => dispatch(BinaryKernel(f, of(a), of(b), to)),
            Step::MulAdd(a, b, c) => dispatch(MulAddKernel(of(a), of(b), of(c), to)),
            Step::Select(m, a, b) => {
                let m = self.conditions(m, start, n, masks, &scratch.masks);
                dispatch(SelectKernel(m, of(a), of(b), to));
            }
            _ => unreachable!("the caller has seen that it gives numbers"),
        }
    }
}

impl Binary {
    fn is_arithmetic(self) -> bool {
        matches!(self, Self::Add | Self::Sub | Self::Mul | Self::Div)
    }
}

macro_rules! function_kernel {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $slope:tt;
    )*) => {
        /// A function of one number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Function {
            Neg,
            $($variant,)*
        }

        impl Function {
            fn of<L: Lane>(self, x: L) -> L {
                match self {
                    Self::Neg => x.neg(),
                    $(Self::$variant => x.$method(),)*
                }
            }
        }

        struct FunctionKernel<'a, T>(Function, &'a [T], &'a mut [T]);

        impl<T: Math> Kernel for FunctionKernel<'_, T> {
            type Output = ();

            #[inline(always)]
            fn run<const FMA: bool>(self) {
                let Self(function, x, to) = self;
                let pairs = to.iter_mut().zip(x);
                match function {
                    Function::Neg => pairs.for_each(|(to, x)| *to = -*x),
                    Function::Sin if !angles_in_range(x) => {
                        pairs.for_each(|(to, x)| *to = x.v_sin_large());
                    }
                    Function::Cos if !angles_in_range(x) => {
                        pairs.for_each(|(to, x)| *to = x.v_cos_large());
                    }
                    Function::Tan if !angles_in_range(x) => {
                        pairs.for_each(|(to, x)| *to = x.v_tan_large());
                    }
                    $(Function::$variant => {
                        for (to, x) in pairs {
                            *to = x.$kernel::<FMA>();
                        }
                    })*
                }
            }
        }
    };
}

functions! { function_kernel }

struct BinaryKernel<'a, T>(Binary, &'a [T], &'a [T], &'a mut [T]);

impl<T: Math> Kernel for BinaryKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(function, a, b, to) = self;
        macro_rules! each {
            (|$a:ident, $b:ident| $body:expr) => {
                for ((to, &$a), &$b) in to.iter_mut().zip(a).zip(b) {
                    *to = $body;
                }
            };
        }
        match function {
            Binary::Add => each!(|a, b| a + b),
            Binary::Sub => each!(|a, b| a - b),
            Binary::Mul => each!(|a, b| a * b),
            Binary::Div => each!(|a, b| a / b),
            Binary::Min => each!(|a, b| a.v_min::<FMA>(b)),
            Binary::Max => each!(|a, b| a.v_max::<FMA>(b)),
            Binary::Pow => each!(|a, b| a.v_pow::<FMA>(b)),
        }
    }
}

/// Arithmetic with a literal on one side.
macro_rules! literal_kernels {
    ($($name:ident($($field:ident: $ty:ty),*), |$x:ident in $slice:ident| $a:ident $b:ident;)*) => {$(
        struct $name<'a, T>(Binary, $($ty,)* &'a mut [T]);

        impl<T: Math> Kernel for $name<'_, T> {
            type Output = ();

            #[inline(always)]
            fn run<const FMA: bool>(self) {
                let Self(function, $($field,)* to) = self;
                macro_rules! each {
                    ($operator:tt) => {
                        for (to, &$x) in to.iter_mut().zip($slice) {
                            *to = $a $operator $b;
                        }
                    };
                }
                match function {
                    Binary::Add => each!(+),
                    Binary::Sub => each!(-),
                    Binary::Mul => each!(*),
                    Binary::Div => each!(/),
                    _ => unreachable!("the caller has seen that it is arithmetic"),
                }
            }
        }
    )*};
}

literal_kernels! {
    LeftKernel(literal: T, slice: &'a [T]), |x in slice| literal x;
    RightKernel(slice: &'a [T], literal: T), |x in slice| x literal;
}

struct MulAddKernel<'a, T>(&'a [T], &'a [T], &'a [T], &'a mut [T]);

impl<T: Math> Kernel for MulAddKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(a, b, c, to) = self;
        for (((to, a), &b), &c) in to.iter_mut().zip(a).zip(b).zip(c) {
            *to = a.v_mul_add::<FMA>(b, c);
        }
    }
}

struct CompareKernel<'a, T>(Compare, &'a [T], &'a [T], &'a mut [bool]);

impl<T: Math> Kernel for CompareKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(compare, a, b, to) = self;
        macro_rules! each {
            ($method:ident) => {
                for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
                    *to = a.$method(b);
                }
            };
        }
        match compare {
            Compare::Less => each!(lt),
            Compare::LessOrEqual => each!(le),
            Compare::Equal => each!(eq),
        }
    }
}

struct SelectKernel<'a, T>(&'a [bool], &'a [T], &'a [T], &'a mut [T]);

impl<T: Math> Kernel for SelectKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(mask, a, b, to) = self;
        for (((to, &m), &a), &b) in to.iter_mut().zip(mask).zip(a).zip(b) {
            *to = T::v_select(m, a, b);
        }
    }
}
