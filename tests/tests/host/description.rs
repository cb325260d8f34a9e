//! What an exported op says of itself.

use autograd_core::DType;
use autograd_core::host::Form;

use super::ops::*;

#[test]
fn an_op_is_described() {
    let gate = Gate::EXPORT.description();
    assert_eq!(gate.name, "Gate");
    assert_eq!(gate.docs, "The square of `by` times the rows of `x` at `rows`.");
    assert!(gate.keeps_attrs && gate.has_backward && !gate.is_formula);
    assert_eq!(gate.shapes.expect("a line").to_string(), "x: [n, m], rows: [k] -> [k, m]");
    let parameters = gate.parameters.iter().map(|of| (of.name, of.form, of.rust, of.default));
    let expected = [
        ("x", Form::One, "&Tensor<f32>", None),
        ("rows", Form::One, "&Tensor<i64>", None),
        ("by", Form::Plain, "f64", Some("2.0")),
    ];
    assert_eq!(parameters.collect::<Vec<_>>(), expected);
    let differentiable = gate.parameters.iter().map(|of| of.differentiable);
    assert_eq!(differentiable.collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(gate.parameters[1].elements, [DType::Int64]);
    assert_eq!((gate.outputs[0].rust, gate.outputs[0].is_list), ("Tensor<f32>", false));
}

#[test]
fn the_element_types_of_a_generic_op_and_of_a_formula_are_known() {
    let floats = [DType::Float32, DType::Float64];
    let scale = Scale::EXPORT.description();
    assert_eq!(
        (scale.parameters[0].elements, scale.outputs[0].elements),
        (&floats[..], &floats[..])
    );
    assert_eq!(scale.parameters[1].form, Form::Optional);
    let cubic = Cubic::EXPORT.description();
    let elements = cubic.parameters.iter().map(|of| of.elements);
    let expected = [&floats[..], &floats[..], &[DType::Bool], &[]];
    assert_eq!(elements.collect::<Vec<_>>(), expected);
    assert!(cubic.is_formula && !cubic.parameters[2].differentiable);
    assert_eq!(Total::EXPORT.description().parameters[0].form, Form::List);
    assert!(!Above::EXPORT.description().has_backward);
    assert!(Above::EXPORT.description().parameters.iter().all(|of| !of.differentiable));
}
