//! Exponentials, logarithms and powers that give the same bits on every processor and with every C library.
//!
//! The functions of `std` call the C library, which selects an implementation with or without fused multiply-add
//! (FMA) at run time, so that last digits differ between processors. The functions of this module consist of IEEE
//! additions, multiplications and divisions, which Rust never fuses. The square root is exact by IEEE 754 and is used
//! from `std`.
//!
//! [`exp`], [`ln`] and [`ln_1p`] have no tables and no branches, so that [`exp_in_place`] and [`ln_1p_in_place`] can
//! compute several elements per instruction; an element has the same bits as the scalar function. [`exp_m1`],
//! [`log10`] and [`powf`], which no hot loop uses, come from the crate `libm` without its processor-specific
//! code. All errors are below 1 ulp (unit in the last place).
//!
//! ```
//! use luthier_core::math;
//! let mut p = [0.0, -1.0, f64::NEG_INFINITY];
//! math::exp_in_place(&mut p);
//! assert_eq!(p, [1.0, math::exp(-1.0), 0.0]);
//! ```

#![expect(
    clippy::inline_always,
    reason = "a function that is called, not inlined, is not compiled for the instruction set of its caller"
)]

/// Number of elements of a slice that are computed together: one vector of AVX-512, two of AVX2. Shorter slices are
/// computed one element at a time.
const LANES: usize = 8;

/// 1.5·2⁵²: adding it to a number below 2⁵¹ rounds to an integer, which the low bits of the sum then hold.
const ROUND: f64 = 6755399441055744.0;

/// ln 2 without its last 20 bits, so that multiplication by an exponent is exact; [`LN_2_LOW`] is the rest.
const LN_2_HIGH: f64 = 0.6931471804855391;
/// ln 2 − [`LN_2_HIGH`].
const LN_2_LOW: f64 = 7.440617110012397e-11;

/// Polynomial P of degree 10 that minimises the error of eʳ ≈ 1 + r + r²·P(r) relative to eʳ for |r| ≤ ½ ln 2, which
/// is 2⁻⁶⁰; lowest degree first.
const EXP: [f64; 11] = [
    0.5,
    0.16666666666666688,
    0.041666666666666845,
    0.008333333333312985,
    0.0013888888888757233,
    0.0001984126990618626,
    2.4801587629663474e-5,
    2.7557225312062384e-6,
    2.755697899025938e-7,
    2.5115277714210792e-8,
    2.101424149412515e-9,
];

/// Returns eˣ: 0 below −745.2, ∞ above 709.8, NaN for NaN. The error is below 0.65 ulp.
///
/// With x = k ln 2 + r, |r| ≤ ½ ln 2, eˣ = 2ᵏ·eʳ, and eʳ is computed by a polynomial. The sum 1 + r keeps its rounding
/// error, which would otherwise be as large as that of the result.
#[inline]
pub fn exp(x: f64) -> f64 {
    if x.abs() < 708.0 {
        // The bits of the kernel with less work: multiplication by a power of two is exact within the normal range.
        let (k, e) = exp_parts(x);
        e * power_of_2(k)
    } else {
        exp_kernel(x)
    }
}

/// Replaces each element by [`exp`] of it, with the same bits.
#[inline]
pub fn exp_in_place(x: &mut [f64]) {
    if x.len() < LANES {
        for x in x {
            *x = exp(*x);
        }
    } else {
        exp_slice(x);
    }
}

/// Returns the natural logarithm ln x: −∞ at 0, NaN below 0. The error is below 0.9 ulp.
///
/// With x = 2ᵏ(1 + f), √½ ≤ 1 + f < √2, ln x = k ln 2 + ln(1 + f).
#[inline]
pub fn ln(x: f64) -> f64 {
    // Multiplied by 2⁵⁴, subnormal numbers have all bits of their mantissa.
    let subnormal = x < f64::MIN_POSITIVE;
    let normal = if subnormal { x * 18014398509481984.0 } else { x };
    let (k, m) = split(normal);
    let k = if subnormal { k - 54.0 } else { k };
    logarithm(x, 0.0, ln_sum(k, m - 1.0, 0.0))
}

/// Returns ln(1 + x), also accurate for small x: −∞ at −1, NaN below −1. The error is below 0.9 ulp.
#[inline]
pub fn ln_1p(x: f64) -> f64 {
    ln_1p_kernel(x)
}

/// Replaces each element by [`ln_1p`] of it, with the same bits.
#[inline]
pub fn ln_1p_in_place(x: &mut [f64]) {
    if x.len() < LANES {
        for x in x {
            *x = ln_1p(*x);
        }
    } else {
        ln_1p_slice(x);
    }
}

/// Returns eˣ − 1, also accurate for small x.
pub fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}

/// Returns the logarithm of x to base 10: −∞ at 0, NaN below 0.
pub fn log10(x: f64) -> f64 {
    libm::log10(x)
}

/// Returns xʸ.
pub fn powf(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// [`exp`] of each element. Compiled for several instruction sets, which give the same bits because no fused
/// multiply-add is used.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn exp_slice(x: &mut [f64]) {
    by_lanes(x, exp_kernel);
}

/// [`ln_1p`] of each element. Compiled for several instruction sets, which give the same bits because no fused
/// multiply-add is used.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn ln_1p_slice(x: &mut [f64]) {
    by_lanes(x, ln_1p_kernel);
}

/// Applies `f` to all elements, [`LANES`] at a time; there must be at least as many.
#[inline(always)]
fn by_lanes(x: &mut [f64], f: impl Fn(f64) -> f64) {
    // The last block overlaps the one before it, so its values are computed before they are overwritten. Padding it
    // instead takes longer, and so does `array::map`, which the compiler does not turn into vector instructions.
    let Some(&(mut last)) = x.last_chunk::<LANES>() else { return };
    last = std::array::from_fn(|i| f(last[i]));
    for block in x.as_chunks_mut::<LANES>().0 {
        *block = std::array::from_fn(|i| f(block[i]));
    }
    if let Some(block) = x.last_chunk_mut::<LANES>() {
        *block = last;
    }
}

/// [`exp`] without branches.
#[inline(always)]
fn exp_kernel(x: f64) -> f64 {
    // Computed for 0 instead of −∞: processors are slow where a product underflows.
    let vanishes = x < -746.0;
    let y = if vanishes { 0.0 } else { x };
    let y = if y > 710.0 { 710.0 } else { y };
    let (k, e) = exp_parts(y);
    // Two factors, because 2ᵏ itself may be outside the range of normal numbers.
    let half = (k * 0.5 + ROUND) - ROUND;
    let e = (e * power_of_2(half)) * power_of_2(k - half);
    if vanishes { 0.0 } else { e }
}

/// Returns k and e with exp(x) = 2ᵏ·e, for −746 ≤ x ≤ 710; k is an integer and √½ < e < √2, but for rounding.
#[inline(always)]
fn exp_parts(x: f64) -> (f64, f64) {
    let k = (x * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let high = x - k * LN_2_HIGH;
    let low = k * LN_2_LOW;
    let r = high - low;
    let r_error = (high - r) - low;

    let [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10] = EXP;
    let r2 = r * r;
    let r4 = r2 * r2;
    let p0 = (c0 + c1 * r) + (c2 + c3 * r) * r2;
    let p1 = (c4 + c5 * r) + (c6 + c7 * r) * r2;
    let p2 = (c8 + c9 * r) + c10 * r2;
    let p = p0 + (p1 + p2 * r4) * r4;

    let sum = 1.0 + r;
    let sum_error = r - (sum - 1.0);
    (k, sum + (sum_error + (r2 * p + r_error)))
}

/// Returns 2ᵏ for an integer k from −1022 to 1023.
#[inline(always)]
fn power_of_2(k: f64) -> f64 {
    f64::from_bits((k + (ROUND + 1023.0)).to_bits() << 52)
}

/// [`ln_1p`] without branches.
#[inline(always)]
fn ln_1p_kernel(x: f64) -> f64 {
    let u = 1.0 + x;
    // The rounding error of u, exactly (Knuth's two-sum).
    let x_part = u - 1.0;
    let error = (1.0 - (u - x_part)) + (x - x_part);
    let (k, m) = split(u);
    let (f, correction) = if k == 0.0 { (x, 0.0) } else { (m - 1.0, error / u) };
    logarithm(x, -1.0, ln_sum(k, f, correction))
}

/// Returns k and m with x = 2ᵏ·m and √½ ≤ m < √2, for a positive normal number x; k is an integer.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    const ROOT: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits().wrapping_add(1f64.to_bits() - ROOT);
    // The biased exponent in the low bits of 2⁵², because SSE2 and AVX2 cannot convert 64-bit integers.
    let k = f64::from_bits((bits >> 52) | 4503599627370496f64.to_bits()) - (4503599627370496.0 + 1023.0);
    (k, f64::from_bits((bits & MANTISSA) + ROOT))
}

/// Returns k ln 2 + ln(1 + f) + `correction`, for √½ ≤ 1 + f < √2.
///
/// With s = f/(2 + f), ln(1 + f) = ln(1 + s) − ln(1 − s) = 2s + s·R(s²) = f − (f²/2 − s·(f²/2 + R)). The polynomial is
/// that of fdlibm (`e_log.c`, Sun Microsystems 1993); its error is 2⁻⁵⁸.
#[inline(always)]
fn ln_sum(k: f64, f: f64, correction: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373));
    let odd = z
        * (0.6666666666666735
            + w * (0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)));
    let half_square = 0.5 * f * f;
    let series = s * (half_square + (even + odd));
    k * LN_2_HIGH - ((half_square - (series + (k * LN_2_LOW + correction))) - f)
}

/// Returns the value y of a logarithm at x, or its special value: `pole` is the x where it is −∞.
#[inline(always)]
fn logarithm(x: f64, pole: f64, y: f64) -> f64 {
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x == pole { f64::NEG_INFINITY } else { y };
    if x < pole { f64::NAN } else { y }
}

#[cfg(test)]
mod tests;
