//! What is static in a call by XLA, as a text. Compiled programs are kept on disk and read by other processes, so it
//! says everything, and refers to nothing of this process.
//!
//! The text has lines: the op; `again` or `saved`; the tensors that want gradients, as `1` and `0`; the arguments,
//! separated by spaces; the element types and shapes of the tensors.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use autograd_core::host::{Arg, DynOp, Kept};
use autograd_core::{AnyTensor, DType, Error, Result, Tensor};

use crate::errors::running;

static OPS: OnceLock<HashMap<&'static str, &'static dyn DynOp>> = OnceLock::new();

pub(crate) fn register(ops: &'static [&'static dyn DynOp]) {
    OPS.get_or_init(|| ops.iter().map(|op| (op.description().name, *op)).collect());
}

pub(crate) struct Plan {
    pub(crate) op: &'static dyn DynOp,
    /// Whether backward runs forward again, as what the op keeps is not tensors alone.
    pub(crate) again: bool,
    pub(crate) needs: Vec<bool>,
    args: Vec<Given>,
    tensors: Vec<(DType, Vec<usize>)>,
    skeleton: OnceLock<Result<(Kept, usize)>>,
}

enum Given {
    Tensor,
    List(usize),
    Other(Arg),
}

impl Plan {
    /// The plan of a text, which is parsed once.
    pub(crate) fn of(text: &str) -> Result<Arc<Self>, String> {
        static KNOWN: Mutex<Option<HashMap<String, Arc<Plan>>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(plan) = known.get(text) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(Self::parse(text)?);
        known.insert(text.to_owned(), Arc::clone(&plan));
        Ok(plan)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines: Vec<&str> = text.split('\n').collect();
        let [op, mode, needs, args, tensors] = lines[..] else {
            return Err(format!("not the plan of a call: {text:?}"));
        };
        let Some(op) = OPS.get().and_then(|ops| ops.get(op)) else {
            return Err(format!("there is no op `{op}` in this module"));
        };
        let broken = || format!("not the plan of a call of {}: {text:?}", op.description().name);
        let words = |line: &str| {
            line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let args: Vec<String> = words(args);
        let tensors: Vec<String> = words(tensors);
        Ok(Self {
            op: *op,
            again: mode == "again",
            needs: needs.chars().map(|c| c == '1').collect(),
            args: args.iter().map(|word| given(word)).collect::<Option<_>>().ok_or_else(broken)?,
            tensors: tensors
                .iter()
                .map(|word| form(word))
                .collect::<Option<_>>()
                .ok_or_else(broken)?,
            skeleton: OnceLock::new(),
        })
    }

    /// The arguments of a call with these tensors.
    pub(crate) fn args(&self, tensors: impl IntoIterator<Item = AnyTensor>) -> Vec<Arg> {
        let mut tensors = tensors.into_iter();
        let each = self.args.iter().map(|given| match given {
            Given::Tensor => tensors.next().map_or(Arg::Absent, Arg::One),
            Given::List(length) => Arg::List(tensors.by_ref().take(*length).collect()),
            Given::Other(arg) => arg.clone(),
        });
        each.collect()
    }

    pub(crate) fn run_on_zeros(&self) -> Result<(Vec<AnyTensor>, Kept)> {
        let args = self.args(self.tensors.iter().map(|(dtype, shape)| zeros(*dtype, shape)));
        running(|| self.op.forward(&args, &self.needs))
    }

    /// The number of tensors among the arguments.
    pub(crate) fn tensors(&self) -> usize {
        self.tensors.len()
    }

    /// The element type and shape of a tensor among the arguments.
    pub(crate) fn form(&self, tensor: usize) -> (DType, &[usize]) {
        let (dtype, shape) = &self.tensors[tensor];
        (*dtype, shape)
    }

    /// What a call keeps, without tensors, and the number of outputs.
    pub(crate) fn skeleton(&self) -> Result<(&Kept, usize)> {
        let made = self.skeleton.get_or_init(|| {
            let (outputs, kept) = self.run_on_zeros()?;
            Ok((kept.skeleton(), outputs.len()))
        });
        made.as_ref().map(|(kept, outputs)| (kept, *outputs)).map_err(Error::clone)
    }
}

pub(crate) fn zeros(dtype: DType, shape: &[usize]) -> AnyTensor {
    match dtype {
        DType::Float32 => Tensor::<f32>::zeros(shape).into(),
        DType::Float64 => Tensor::<f64>::zeros(shape).into(),
        DType::Int32 => Tensor::<i32>::zeros(shape).into(),
        DType::Int64 => Tensor::<i64>::zeros(shape).into(),
        DType::UInt8 => Tensor::<u8>::zeros(shape).into(),
        DType::Bool => Tensor::<bool>::full(shape, false).into(),
        other => unreachable!("no plan has {other}"),
    }
}

fn form(word: &str) -> Option<(DType, Vec<usize>)> {
    let (name, shape) = word.split_once(':')?;
    let all =
        [DType::Float32, DType::Float64, DType::Int32, DType::Int64, DType::UInt8, DType::Bool];
    let dtype = all.into_iter().find(|dtype| dtype.name() == name)?;
    let lengths = shape.split(',').filter(|length| !length.is_empty());
    Some((dtype, lengths.map(|length| length.parse().ok()).collect::<Option<_>>()?))
}

/// `t`, `l3`, `-` for an absent tensor, `d` for a default, `f1.5`, `i3`, `b1`, or `s` with the bytes in hexadecimal.
fn given(word: &str) -> Option<Given> {
    let value = word.get(1..)?;
    Some(match word.chars().next()? {
        't' => Given::Tensor,
        'l' => Given::List(value.parse().ok()?),
        '-' => Given::Other(Arg::Absent),
        'd' => Given::Other(Arg::Omitted),
        'f' => Given::Other(Arg::Float(value.parse().ok()?)),
        'i' => Given::Other(Arg::Int(value.parse().ok()?)),
        'b' => Given::Other(Arg::Bool(value == "1")),
        's' => {
            let byte = |at| u8::from_str_radix(value.get(at..at + 2)?, 16).ok();
            let bytes = (0..value.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?;
            Given::Other(Arg::Text(String::from_utf8(bytes).ok()?))
        }
        _ => return None,
    })
}
