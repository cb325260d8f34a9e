//! Ops as users may write them: each module must compile without a warning, under the lints that it denies
//! besides, and run.
//! Code that must not compile is in `ui`.
//!
//! A module that denies lints on exported items is public, so that the lints apply.
#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    unnameable_test_items,
    clippy::all,
    clippy::todo,
    reason = "each module says which of these it demands"
)]
#![deny(warnings)]
// Lints for whole crates.
#![deny(future_incompatible, non_ascii_idents)]

// For `block/renamed_crate.rs`.
extern crate autograd_core as renamed;

/// The test of a module: the gradients of an op's sum at leaves of one number each.
macro_rules! compiles_and_runs {
    ($op:expr, $at:expr => $gradients:expr) => {
        #[test]
        fn compiles_and_runs() {
            assert_eq!(support::gradients($op, $at), $gradients);
        }
    };
}

mod arity {
    mod alias_of_a_tuple;
    mod aliases_of_gradients;
    mod by_name;
    mod by_name_with_none;
    mod by_name_without_literal;
    mod lists_of_options;
    mod options_in_a_tuple;
    mod own_type_called_grads;
    mod self_grads;
}

mod attributes {
    mod docs_on_parameters;
    mod no_false_warnings;
    mod silenced_warnings;
}

pub mod block {
    mod cfg_variants;
    mod crate_path;
    pub mod derived;
    mod expectations;
    mod fragments;
    mod helpers_and_constants;
    mod in_a_function;
    mod made_by_a_macro;
    mod no_grad;
    mod once_differentiable;
    mod public_in_a_module;
    mod question_marks;
    mod renamed_crate;
    mod still_a_stub;
    mod types_by_self;
}

mod check_arg {
    mod forms;
    mod values_evaluated_once;
}

mod context {
    mod another_name;
    mod attributes;
    mod helpers;
    mod macros_in_bodies;
    mod marks;
    mod marks_before_a_rebinding;
    mod materialize;
    mod needs_in_forward;
    mod rebound_names;
    mod save_on_each_path;
    mod saved_forms;
    mod saves_its_own_output;
    mod values_are_shown;
}

pub mod elementwise {
    pub mod forms;
    mod names_of_others;
    mod static_parameters;
}

mod generics {
    mod associated_types;
    mod bounds_and_defaults;
    mod closures;
    mod constants;
    mod not_sized;
    mod several;
    mod where_clauses;
}

pub mod inputs {
    mod array;
    mod every_kind;
    mod explicit_lifetimes;
    mod generic_of_forward;
    mod hidden_lifetime;
    pub mod hidden_lifetimes_everywhere;
    mod integer_and_bool;
    mod lists;
    mod optional;
    mod patterns_and_mut;
    mod plain;
    mod qualified_and_default;
    mod raw_identifiers;
    mod sixteen;
    mod sixteen_by_name;
    mod stop_gradient;
}

mod jvp {
    mod forms;
}

pub mod lints {
    pub mod every_group;
    pub mod missing_docs;
    pub mod names_in_another_style;
}

mod names {
    mod as_functions;
    mod defaults;
    mod like_generated_items;
    mod like_the_builder_s;
    mod like_the_lane_s;
    mod like_the_mask_s;
    mod of_another_op;
}

mod outputs {
    mod array;
    mod input_returned;
    mod integers_and_bools;
    mod list;
    mod result;
    mod result_of_the_library;
    mod results;
    mod same_twice;
    mod tuple_with_plain;
}

mod py_func {
    mod blocks;
    mod generic;
}

mod surroundings {
    mod blanket_methods;
    mod hostile;
    mod shadowed_library;
}
