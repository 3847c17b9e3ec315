#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;
use crate::random::{Purpose, Stream};

/// Position of a number in the order of all numbers, so that neighbours differ by 1.
fn position(x: f64) -> i64 {
    let bits = x.to_bits().cast_signed();
    if bits < 0 { i64::MIN - bits } else { bits }
}

/// Number of steps between two numbers.
fn distance(a: f64, b: f64) -> u64 {
    position(a).abs_diff(position(b))
}

/// Arguments of all magnitudes, and special values.
fn arguments() -> Vec<f64> {
    let mut s = Stream::new(5, Purpose::Test, 0, 0);
    let mut x = vec![0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, -5e-324];
    x.extend([f64::MAX, f64::MIN, f64::MIN_POSITIVE, 709.78, 709.79, 710.5, -708.5, -745.1, -745.2, -746.5]);
    for size in [1e-300, 1e-17, 1e-8, 1e-3, 0.3, 1.0, 40.0, 700.0, 1e5, 1e300] {
        x.extend((0..2000).map(|_| s.uniform(-size, size)));
    }
    x
}

/// The references are correctly rounded values, see `reference.py`.
#[test]
fn errors_are_below_one_ulp() {
    let mut seen = 0;
    for line in include_str!("reference.txt").lines().filter(|l| !l.starts_with('#')) {
        let (name, bits) = line.split_once(' ').unwrap();
        let x: Vec<f64> =
            bits.split(' ').map(|b| f64::from_bits(u64::from_str_radix(b, 16).unwrap())).collect();
        let found = match name {
            "exp" => exp(x[0]),
            "exp_m1" => exp_m1(x[0]),
            "ln" => ln(x[0]),
            "ln_1p" => ln_1p(x[0]),
            "log10" => log10(x[0]),
            "powf" => powf(x[0], x[1]),
            _ => unreachable!("{name}"),
        };
        let expected = *x.last().unwrap();
        assert!(distance(found, expected) <= 1, "{name} of {x:?}: {found:e}, expected {expected:e}");
        seen += 1;
    }
    assert!(seen > 800);
}

/// The errors of std are below 1 ulp on the platforms that we know.
#[test]
fn near_std() {
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function, Function); 5] = [
        ("exp", exp, f64::exp),
        ("exp_m1", exp_m1, f64::exp_m1),
        ("ln", ln, f64::ln),
        ("ln_1p", ln_1p, f64::ln_1p),
        ("log10", log10, f64::log10),
    ];
    for (name, ours, std) in functions {
        for x in arguments() {
            let (ours, std) = (ours(x), std(x));
            let same = ours.is_nan() && std.is_nan() || distance(ours, std) <= 2;
            assert!(same, "{name}({x:e}): {ours:e}, std has {std:e}");
        }
    }
    for x in arguments() {
        for y in [-3.0, -0.25, 0.0, 0.25, 0.5, 1.0, 4.0, 17.3] {
            let (ours, std) = (powf(x, y), x.powf(y));
            let same = ours.is_nan() && std.is_nan() || distance(ours, std) <= 2;
            assert!(same, "powf({x:e}, {y}): {ours:e}, std has {std:e}");
        }
    }
}

#[test]
fn special_values() {
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(-0.0), 1.0);
    assert_eq!(exp(f64::NEG_INFINITY), 0.0);
    assert!(exp(f64::NEG_INFINITY).is_sign_positive());
    assert_eq!(exp(f64::INFINITY), f64::INFINITY);
    assert!(exp(f64::NAN).is_nan());
    // ln of the largest number, of half the smallest, and their neighbours.
    assert!(exp(709.782712893384) < f64::INFINITY);
    assert_eq!(exp(709.7827128933841), f64::INFINITY);
    assert_eq!(exp(-745.1332191019411), 5e-324);
    assert_eq!(exp(-745.1332191019412), 0.0);
    assert_eq!(exp(-745.2), 0.0);

    assert!(ln(1.0).to_bits() == 0);
    assert_eq!(ln(0.0), f64::NEG_INFINITY);
    assert_eq!(ln(-0.0), f64::NEG_INFINITY);
    assert!(ln(-5e-324).is_nan());
    assert!(ln(f64::NEG_INFINITY).is_nan());
    assert_eq!(ln(f64::INFINITY), f64::INFINITY);
    assert!(ln(f64::NAN).is_nan());
    assert_eq!(ln(5e-324), -744.4400719213812);

    assert_eq!(ln_1p(0.0), 0.0);
    assert_eq!(ln_1p(5e-324), 5e-324);
    assert_eq!(ln_1p(-1.0), f64::NEG_INFINITY);
    assert!(ln_1p(-1.0000000000000002).is_nan());
    assert_eq!(ln_1p(f64::INFINITY), f64::INFINITY);
    assert!(ln_1p(f64::NAN).is_nan());
    // Six significant digits of a table, and ticks of a plot, take the number of digits from the logarithm.
    for n in -20..=22 {
        assert_eq!(log10(format!("1e{n}").parse().unwrap()), f64::from(n));
    }
    for n in 0..=22 {
        assert_eq!(powf(10.0, f64::from(n)), format!("1e{n}").parse().unwrap());
    }
}

/// Neighbouring arguments around 0, where the polynomials begin, and around the borders of their ranges.
#[test]
fn increasing() {
    let next = |x: f64, step: i64| {
        let at = position(x) + step;
        f64::from_bits(if at < 0 { (i64::MIN - at).cast_unsigned() } else { at.cast_unsigned() })
    };
    let half = 0.5 * std::f64::consts::LN_2;
    for centre in [0.0, 1e-300, 1e-16, -1e-16, 1e-8, -1e-8, half, -half, 3.0 * half, -708.0, -40.0] {
        for step in -2000..2000 {
            let (x, y) = (next(centre, step), next(centre, step + 1));
            assert!(exp(x) <= exp(y), "exp({x:e})");
        }
    }
    let (low, high) = (std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::SQRT_2);
    for centre in [0.0, 1e-300, 1e-16, -1e-16, 1e-8, -1e-8, low - 1.0, high - 1.0] {
        for step in -2000..2000 {
            let (x, y) = (next(centre, step), next(centre, step + 1));
            assert!(ln_1p(x) <= ln_1p(y), "ln_1p({x:e})");
        }
    }
    for centre in [f64::MIN_POSITIVE, low, 1.0, high, 2.0] {
        for step in -2000..2000 {
            let (x, y) = (next(centre, step), next(centre, step + 1));
            assert!(ln(x) <= ln(y), "ln({x:e})");
        }
    }
}

/// Checks that a function of slices has the bits of the scalar function, for all lengths and positions.
fn agree(scalar: fn(f64) -> f64, slice: fn(&mut [f64])) {
    let x = arguments();
    let bits = |y: f64| if y.is_nan() { f64::NAN.to_bits() } else { y.to_bits() };
    let check = |x: &[f64]| {
        let mut y = x.to_vec();
        slice(&mut y);
        for (x, y) in x.iter().zip(y) {
            assert_eq!(bits(scalar(*x)), bits(y), "{x:e}");
        }
    };
    for length in 0..=40 {
        x.windows(length.max(1)).step_by(7).for_each(|x| check(&x[..length]));
    }
    check(&x);
}

#[test]
fn slices_have_the_bits_of_scalars() {
    agree(exp, exp_in_place);
    agree(ln_1p, ln_1p_in_place);
}

/// The bits of all functions at many arguments, which must be the same on all processors and in all builds.
#[test]
fn pinned_bits() {
    let pin = |f: fn(f64) -> f64| {
        let values = arguments().into_iter().map(f).filter(|y| !y.is_nan());
        values.fold(crate::Fingerprint::default(), |all, y| all.word(y.to_bits())).finish() as u64
    };
    let functions: [fn(f64) -> f64; 6] = [exp, exp_m1, ln, ln_1p, log10, |x| powf(x.abs(), 0.3)];
    let found = functions.map(pin);
    let pinned = [
        0x05263b40076a071c,
        0x3f9f2935d6f06c21,
        0x1de6814a6c279c54,
        0xa405d1df0ab4f421,
        0x723a780529a01b6f,
        0x49b6c02e3465fc35,
    ];
    assert_eq!(found, pinned, "exp, exp_m1, ln, ln_1p, log10, powf");
}
