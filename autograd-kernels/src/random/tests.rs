use super::{Generator, RandomFloat, polar};

#[test]
fn uniform_numbers_stay_below_one() {
    assert_eq!(f32::canonical(u64::MAX), 1.0_f32.next_down());
    assert_eq!(f64::canonical(u64::MAX), 1.0_f64.next_down());
    assert_eq!(f32::canonical(0), 0.0);
}

#[test]
fn uniform_numbers_round_all_64_bits_once() {
    let two_pow_64 = 2.0_f64.powi(64);
    let mut generator = Generator::new(3);
    // Numbers of every magnitude, and around ties.
    let random = (0..64_000).map(|i| generator.next_u64() >> (i % 64));
    let ties = (0..64).flat_map(|top| {
        (0..top).flat_map(move |low| {
            let tie = 1_u64 << top | 1 << low;
            [tie - 1, tie, tie + 1, tie | 2 << low]
        })
    });
    for bits in random.chain(ties).chain([0, 1, u64::MAX]) {
        let single = bits as f32 / two_pow_64 as f32;
        let double = bits as f64 / two_pow_64;
        assert_eq!(f32::canonical(bits), single.min(1.0_f32.next_down()), "{bits:#x}");
        assert_eq!(f64::canonical(bits), double.min(1.0_f64.next_down()), "{bits:#x}");
    }
}

#[test]
fn points_off_the_circle_give_no_normal_numbers() {
    assert!(polar::<f64>(0.5, 0.5).is_none(), "the centre, whose logarithm is infinite");
    assert!(polar::<f64>(0.0, 0.0).is_none(), "a corner");
    assert!(polar::<f32>(0.5, 0.0).is_some(), "the circle itself");
}

#[test]
fn generators_that_nobody_seeded_differ() {
    let starts = [(); 4].map(|()| [(); 4].map(|()| Generator::from_entropy().next_u64()));
    assert!(starts.iter().any(|other| other != &starts[0]), "32 bits agree four times by chance");
}
