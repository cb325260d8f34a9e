//! Modules, optimizers, and files of tensors.

mod layers;
mod modules;
mod npy;
mod optim;
mod safetensors;
mod training;
