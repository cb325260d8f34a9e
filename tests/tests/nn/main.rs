//! Modules, optimizers, and files of tensors.

mod modules;
mod optim;
mod safetensors;
