//! What `check(..)` of an elementwise op is, for the tests that are generated.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use super::model::{Forward, Kind, Op, Param};
use crate::args::Args;
use crate::check_arg::{self, Form, Parameter, Subject, Tensor, refuse};
use crate::errors::Errors;
use crate::library::private_path;
use crate::tokens::replace_ident;

/// Holds the checks of an elementwise op against its forward.
pub(super) fn check(op: &Op, args: &Args, errors: &mut Errors) {
    let checks = &args.checks;
    if args.surrogate.is_some() {
        return refuse(checks, &check_arg::messages::surrogate(), errors);
    }
    let Some(forward) = &op.forward else { return };
    let parameters = of_formula(op, forward, args);
    if errors.is_empty() {
        checks.iter().for_each(|check| check.check(&parameters, errors));
    }
}

/// The tests of an elementwise op.
pub(super) fn tests(op: &Op, args: &Args) -> TokenStream {
    let checks = &args.checks;
    let Some(forward) = op.forward.as_ref().filter(|_| !checks.is_empty()) else {
        return TokenStream::new();
    };
    let subject = Subject {
        name: &op.name,
        ty: op.name.to_token_stream(),
        private: private_path(args.krate.as_ref()),
        cfg: op.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect(),
        parameters: of_formula(op, forward, args),
        elements: vec!["T".to_owned()],
        fallible: false,
        outputs: vec![true; forward.outputs.len()],
        tuple: forward.tuple,
        once_differentiable: false,
        derived: op.backward.is_some(),
    };
    subject.tests(checks)
}

fn of_formula(op: &Op, forward: &Forward, args: &Args) -> Vec<Parameter> {
    let p = private_path(args.krate.as_ref());
    let parameter = |param: &Param| {
        let tensor = |ty: TokenStream, element: &str| {
            let differentiable = param.kind == Kind::Real && !param.stop_gradient;
            check_arg::Kind::Tensor(Tensor {
                form: Form::One,
                ty,
                element: element.to_owned(),
                differentiable,
            })
        };
        let kind = match param.kind {
            Kind::Real => tensor(quote!(#p::Tensor<T>), "T"),
            Kind::Mask => tensor(quote!(#p::Tensor<bool>), "bool"),
            Kind::Plain | Kind::Wrong => check_arg::Kind::Plain {
                default: param.default.as_ref().map(|default| {
                    let op = op.name.to_token_stream();
                    replace_ident(default.to_token_stream(), "Self", &quote!(<#op>))
                }),
            },
        };
        Parameter { ident: param.ident.clone(), kind }
    };
    forward.params.iter().map(parameter).collect()
}
