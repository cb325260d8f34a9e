//! Modules, optimizers, and files of tensors.

mod layers;
mod modules;
mod optim;
mod safetensors;
mod training;
