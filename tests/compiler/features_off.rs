// What a feature has that is off is an error that names the feature.

use autograd_core::nn::Linear;
use autograd_core::optim::Sgd;
use autograd_core::safetensors::SafeTensors;
use autograd_core::static_graph::{Program, py_func};
use autograd_core::verify_layers;

fn main() {}
