//! Random numbers bit for bit as Paddle's, and as those of the C++ library where Paddle calls it.

use autograd_core::{Float, Generator, Tensor};

/// Reads `-0x1.8p-3` as C and Python write it.
fn hex(text: &str) -> f64 {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text),
    };
    let (mantissa, exponent) = digits["0x1.".len()..].split_once('p').unwrap();
    let fraction = u64::from_str_radix(mantissa, 16).unwrap() as f64;
    let scale = f64::from(16).powi(-(mantissa.len() as i32));
    let exponent: i32 = exponent.parse().unwrap();
    sign * (1.0 + fraction * scale) * f64::from(2).powi(exponent)
}

fn hex_list(text: &str) -> Vec<f64> {
    text.split_whitespace().map(hex).collect()
}

/// The elements of a tensor that is drawn from a generator.
fn drawn<T: Float>(generator: &mut Generator, draw: impl FnOnce() -> Tensor<T>) -> Vec<f64> {
    generator.run(draw).to_vec().into_iter().map(T::into_f64).collect()
}

fn integers(seed: u64, len: usize, low: i64, high: i64) -> Vec<i64> {
    Generator::new(seed).run(|| Tensor::randint([len], low, high)).to_vec()
}

#[test]
fn outputs_are_those_of_the_seeded_cpp_engine() {
    for (seed, output_10_000) in
        [(2023, 7682097116054031652), (0, 8055424658763770904), (42, 1151119327527906236)]
    {
        let mut generator = Generator::new(seed);
        let found = (0..10_000).map(|_| generator.next_u64()).last();
        assert_eq!(found, Some(output_10_000), "seed {seed}");
    }
}

#[test]
fn only_the_low_half_of_a_seed_counts() {
    let start = |seed| Generator::new(seed).next_u64();
    assert_eq!(start(7), start((1 << 40) + 7));
    assert_eq!(start(u64::MAX), start(u64::from(u32::MAX)));
    assert_ne!(start(7), start(8));
    assert_ne!(start(0), start(1 << 31));
}

#[test]
fn normal_numbers_are_those_of_paddle() {
    fn check<T: Float>(fills: [&str; 2]) {
        let mut generator = Generator::new(2023);
        for fill in fills.map(hex_list) {
            assert_eq!(drawn(&mut generator, || Tensor::<T>::randn([fill.len()])), fill);
        }
    }
    check::<f64>([
        "0x1.f659ba72c5e9ap-5 0x1.1d0e11d774897p+0 0x1.ad1eb9dd785e7p-2
         -0x1.fd189c97f2595p-3 -0x1.da08901ca41dp+0 -0x1.80f288f68a9ep+0",
        "0x1.bd52d544598a9p+0 0x1.1107ef631a7a2p-3 0x1.a9e17a36eedep+0",
    ]);
    check::<f32>([
        "0x1.f659b4p-5 0x1.1d0e12p+0 0x1.ad1eb4p-2 -0x1.fd1898p-3 -0x1.da089p+0 -0x1.80f286p+0",
        "0x1.bd52d4p+0 0x1.1108p-3 0x1.a9e178p+0",
    ]);
    // Scaled after they are drawn.
    let generator = || Generator::new(2023);
    assert_eq!(
        drawn(&mut generator(), || Tensor::<f64>::normal([5], 0.25, 1.5)),
        hex_list(
            "0x1.5e30d2f5851bdp-2 0x1.eb951ac32ece2p+0 0x1.c1d70b661a46dp-1
             -0x1.f749d5c7d70cp-4 -0x1.43866c157b15cp+1"
        )
    );
    assert_eq!(
        drawn(&mut generator(), || Tensor::<f32>::normal([5], 0.3, 1.7)),
        hex_list("0x1.9df31p-2 0x1.18b25cp+1 0x1.032d0cp+0 -0x1.f62068p-4 -0x1.6c8748p+1")
    );
}

#[test]
fn an_odd_fill_drops_its_spare_number() {
    let normals =
        |generator: &mut Generator, n: usize| drawn(generator, || Tensor::<f64>::randn([n]));
    let six = normals(&mut Generator::new(7), 6);
    let mut generator = Generator::new(7);
    let [first, second] = [3, 3].map(|n| normals(&mut generator, n));
    assert_eq!(first, six[..3]);
    assert_ne!(second, six[3..]);
    assert_eq!(second[..2], six[4..], "the next pair begins the next fill");
}

#[test]
fn uniform_numbers_are_those_of_paddle() {
    fn check<T: Float>(low: f64, high: f64, right: &str) {
        let found = drawn(&mut Generator::new(2023), || Tensor::<T>::uniform([4], low, high));
        assert_eq!(found, hex_list(right));
    }
    check::<f32>(0.0, 1.0, "0x1.bb4eep-1 0x1.0a50bcp-1 0x1.09d70ap-2 0x1.cf7d5ap-1");
    check::<f32>(-0.3, 0.1, "0x1.7b926p-5 -0x1.789744p-4 -0x1.91ba6p-3 0x1.fcbbdp-5");
    check::<f64>(
        -0.5,
        0.25,
        "0x1.31eca06c52e78p-3 -0x1.c21b973ab5868p-4 -0x1.389eb7ed1d0d3p-2 0x1.6e780dcb60b58p-3",
    );
    assert_eq!(
        drawn(&mut Generator::new(2023), || Tensor::<f64>::rand([3])),
        [0.8658361476971708, 0.5201472082270565, 0.25960938282361545]
    );
}

#[test]
fn integers_are_those_of_paddle() {
    assert_eq!(integers(2023, 12, 0, 100), [86, 52, 25, 90, 42, 40, 97, 74, 51, 73, 97, 4]);
    assert_eq!(integers(2023, 6, -5, 7), [5, 1, -2, 5, 0, -1]);
    assert_eq!(
        integers(2023, 6, 0, i64::from(i32::MAX)),
        [1859368968, 1117007623, 557506904, 1944016506, 910534989, 872765019]
    );
    assert_eq!(integers(2023, 2, 0, 1), [0, 0]);
}

#[test]
fn integers_of_the_widest_range_are_those_of_cpp() {
    // A quarter of all draws is too large for this range and is repeated.
    assert_eq!(
        integers(2023, 6, -3 << 61, 3 << 61),
        [
            5061364342111137719,
            -3325818144580389948,
            5606701956993560030,
            -1051452022833701402,
            -1294783198219528505,
            6505367782659447363
        ]
    );
    assert_eq!(
        integers(2023, 4, i64::MIN, i64::MAX),
        [6748485789481516958, 371650393964247207, -4434424192773853264, 7475602609324746706]
    );
}

#[test]
fn permutations_are_those_of_paddle() {
    let cases: [(usize, &[i64]); 8] = [
        (0, &[]),
        (1, &[0]),
        (2, &[0, 1]),
        (3, &[0, 1, 2]),
        (5, &[4, 1, 3, 2, 0]),
        (8, &[0, 5, 7, 1, 2, 4, 6, 3]),
        (9, &[4, 5, 8, 6, 0, 1, 2, 7, 3]),
        (10, &[0, 5, 7, 8, 2, 4, 6, 3, 9, 1]),
    ];
    for (n, order) in cases {
        assert_eq!(Generator::new(2023).randperm(n), order, "n = {n}");
    }
}

#[test]
fn a_permutation_draws_once_for_two_numbers() {
    // The number after a permutation of 3 or of 10 shows how many were drawn.
    let after = |n| {
        let mut generator = Generator::new(2023);
        generator.randperm(n);
        let mut next = [0];
        generator.fill_randint(&mut next, 0, 1000);
        next[0]
    };
    assert_eq!([1, 2, 3, 5, 9, 10, 20].map(after), [865, 520, 520, 259, 424, 406, 977]);
}

#[test]
fn a_permutation_has_every_number_once() {
    for n in [4, 7, 100, 1001] {
        let mut order = Generator::new(5).randperm(n);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..n as i64), "n = {n}");
    }
}

#[test]
#[should_panic(expected = "`low` below `high`, but `low` is 5 and `high` is 5")]
fn an_empty_range_of_integers_is_refused() {
    Generator::new(1).fill_randint(&mut [], 5, 5);
}
