//! What a feature has and is off: the compiler names the feature.

#[test]
fn a_feature_that_is_off_is_named() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}
