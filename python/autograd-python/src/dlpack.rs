//! The structs of DLPack, in the order of its header, for tensors of the CPU.

use std::ffi::{CStr, c_void};

use autograd_core::DType;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) kind: i32,
    pub(crate) id: i32,
}

pub(crate) const CPU: Device = Device { kind: 1, id: 0 };

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Type {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

#[repr(C)]
pub(crate) struct DlTensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: Device,
    pub(crate) ndim: i32,
    pub(crate) dtype: Type,
    pub(crate) shape: *mut i64,
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

/// The form of capsules before version 1.
#[repr(C)]
pub(crate) struct Managed {
    pub(crate) tensor: DlTensor,
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
pub(crate) struct Versioned {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    pub(crate) flags: u64,
    pub(crate) tensor: DlTensor,
}

/// The functions of a framework that exchange its tensors without a capsule: the head of `DLPackExchangeAPI`.
#[repr(C)]
pub(crate) struct ExchangeApi {
    major: u32,
    minor: u32,
    before: *const ExchangeApi,
    allocate: *const c_void,
    /// From a framework's tensor; the lock is held. Not 0 after an error, which is set.
    pub(crate) from_object: unsafe extern "C" fn(*mut c_void, *mut *mut Versioned) -> i32,
    /// To a new tensor of the framework, which owns the memory then.
    pub(crate) to_object: unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> i32,
}

impl ExchangeApi {
    pub(crate) fn is_known(&self) -> bool {
        self.major == 1
    }
}

/// The name of a capsule with an [`ExchangeApi`].
pub(crate) const EXCHANGE: &CStr = c"dlpack_exchange_api";

/// The names of capsules: to be taken, and taken.
pub(crate) const OLD: [&CStr; 2] = [c"dltensor", c"used_dltensor"];
pub(crate) const NEW: [&CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];

/// The element types, each with DLPack's code and bits.
const TYPES: [(DType, u8, u8); 6] = [
    (DType::Float32, 2, 32),
    (DType::Float64, 2, 64),
    (DType::Int32, 0, 32),
    (DType::Int64, 0, 64),
    (DType::UInt8, 1, 8),
    (DType::Bool, 6, 8),
];

impl Type {
    pub(crate) fn of(dtype: DType) -> Option<Self> {
        let (_, code, bits) = TYPES.into_iter().find(|(of, ..)| *of == dtype)?;
        Some(Self { code, bits, lanes: 1 })
    }

    pub(crate) fn dtype(self) -> Option<DType> {
        let fits = |(_, code, bits): &(DType, u8, u8)| {
            (self.code, self.bits, self.lanes) == (*code, *bits, 1)
        };
        TYPES.into_iter().find(fits).map(|(dtype, ..)| dtype)
    }

    pub(crate) fn words(self) -> String {
        let kind = match self.code {
            0 => "int",
            1 => "uint",
            2 => "float",
            4 => "bfloat",
            5 => "complex",
            6 => "bool",
            _ => return "of an unknown kind".to_owned(),
        };
        format!("{kind}{}", self.bits)
    }
}
