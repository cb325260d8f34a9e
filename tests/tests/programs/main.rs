//! Static graphs.

mod chains;
mod files;
mod graph;
mod lengths;
mod masks;
mod methods;
mod norm;
mod py_func;
mod rules;
mod shapes;
mod trace;
mod two_lengths;
mod words;
