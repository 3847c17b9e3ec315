//! Student's t and the F distribution for whole degrees of freedom, through the regularised incomplete beta function
//! `I_x(a, b)` with a = m/2 and b = n/2. Only sums, products, quotients and square roots are used, so that results are
//! the same on all machines. A value costs m + n steps and a continued fraction of a few dozen terms.

/// Returns `I_x(m/2, n/2)` for x from 0 to 1: the continued fraction of Lentz (Press et al. 2007, section 6.4).
fn beta(x: f64, m: u32, n: u32) -> f64 {
    let (a, b) = (f64::from(m) / 2.0, f64::from(n) / 2.0);
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges quickly below the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        factor(x, m, n) / a * fraction(x, a, b)
    } else {
        1.0 - factor(1.0 - x, n, m) / b * fraction(1.0 - x, b, a)
    }
}

/// Returns x^a (1 − x)^b / B(a, b) with a = m/2 and b = n/2, from B(½, ½) = π, B(½, 1) = 2 and B(1, 1) = 1 by
/// B(a, b) = B(a + 1, b) (a + b)/a. Steps in a and b alternate, so that nothing overflows.
fn factor(x: f64, m: u32, n: u32) -> f64 {
    let odd = |k: u32| k % 2 == 1;
    let power = |x: f64, k: u32| if odd(k) { x.sqrt() } else { x };
    let base = match (odd(m), odd(n)) {
        (true, true) => std::f64::consts::PI,
        (true, false) | (false, true) => 2.0,
        (false, false) => 1.0,
    };
    let mut value = power(x, m) * power(1.0 - x, n) / base;
    let first = |k: u32| if odd(k) { 0.5 } else { 1.0 };
    let (mut a, mut b) = (first(m), first(n));
    let (end_a, end_b) = (f64::from(m) / 2.0, f64::from(n) / 2.0);
    while a < end_a || b < end_b {
        if a < end_a {
            value *= x * (a + b) / a;
            a += 1.0;
        }
        if b < end_b {
            value *= (1.0 - x) * (a + b) / b;
            b += 1.0;
        }
    }
    value
}

/// Returns the continued fraction of `I_x(a, b)`.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for i in 1..1000 {
        let k = f64::from(i);
        let even = k * (b - k) * x / ((a + 2.0 * k - 1.0) * (a + 2.0 * k));
        let odd = -(a + k) * (a + b + k) * x / ((a + 2.0 * k) * (a + 2.0 * k + 1.0));
        let before = value;
        for step in [even, odd] {
            d = 1.0 / away(1.0 + step * d);
            c = away(1.0 + step / c);
            value *= c * d;
        }
        if value == before {
            break;
        }
    }
    value
}

/// Returns the x with `I_x(m/2, n/2)` = p, by bisection to the last bit.
fn inverse(p: f64, m: u32, n: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if beta(middle, m, n) < p { low = middle } else { high = middle }
    }
}

/// Returns the probability that the absolute value of Student's t with `degrees` degrees of freedom is at least
/// |`t`|.
pub(super) fn student_p(t: f64, degrees: u32) -> f64 {
    let n = f64::from(degrees);
    beta(n / (n + t * t), degrees, 1)
}

/// Returns the value that the absolute value of Student's t with `degrees` degrees of freedom exceeds with probability
/// `p`.
pub(super) fn student_bound(p: f64, degrees: u32) -> f64 {
    let x = inverse(p, degrees, 1);
    (f64::from(degrees) * (1.0 - x) / x).sqrt()
}

/// Returns the probability that a value of the F distribution with `m` and `n` degrees of freedom is at most `f`.
pub(super) fn fisher(f: f64, m: u32, n: u32) -> f64 {
    let part = f64::from(m) * f;
    beta(part / (part + f64::from(n)), m, n)
}

/// Returns the quantile of order `p` of the F distribution with `m` and `n` degrees of freedom.
pub(super) fn fisher_quantile(p: f64, m: u32, n: u32) -> f64 {
    let x = inverse(p, m, n);
    f64::from(n) * x / (f64::from(m) * (1.0 - x))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * expected.abs().max(1e-3), "{found}, expected {expected}");
    }

    /// Closed forms: for t with 1 degree of freedom, P(|t| ≥ 1) = ½ and the bound for p is cot(πp/2); with 2 degrees,
    /// P(|t| ≥ x) = 1 − x/√(2 + x²). F with (2, n) degrees has P(F ≤ x) = 1 − (1 + 2x/n)^(−n/2). F(1, n) is t²(n).
    #[test]
    fn closed_forms() {
        near(student_p(1.0, 1), 0.5);
        near(student_bound(0.05, 1), 1.0 / (std::f64::consts::PI * 0.025).tan());
        for x in [0.1, 1.0, 4.302652729911275, 40.0] {
            near(student_p(x, 2), 1.0 - x / (2.0 + x * x).sqrt());
        }
        near(student_bound(0.05, 2), 4.302652729911275);
        for n in [1, 2, 5, 12, 301] {
            for x in [0.05, 0.9, 1.1, 7.0] {
                let expected = 1.0 - (1.0 + 2.0 * x / f64::from(n)).powf(-f64::from(n) / 2.0);
                near(fisher(x, 2, n), expected);
                near(fisher_quantile(expected, 2, n), x);
                near(1.0 - fisher(x * x, 1, n), student_p(x, n));
            }
        }
    }

    /// The distributions against integrals of their densities by the midpoint rule.
    #[test]
    fn integrals() {
        let steps = 200_000;
        for (m, n) in [(3, 4), (4, 7), (5, 12), (8, 8)] {
            let density = |x: f64| {
                let (m, n) = (f64::from(m), f64::from(n));
                x.powf(m / 2.0 - 1.0) * (1.0 + m / n * x).powf(-f64::midpoint(m, n))
            };
            // x = u/(1 − u) maps (0, 1) to all positive numbers.
            let sum = |to: f64| {
                let step = to / f64::from(steps);
                let at = |i: i32| {
                    let u = (f64::from(i) + 0.5) * step;
                    density(u / (1.0 - u)) / ((1.0 - u) * (1.0 - u)) * step
                };
                (0..steps).map(at).sum::<f64>()
            };
            let all = sum(1.0);
            for f in [0.3, 1.0, 2.5] {
                let expected = sum(f / (1.0 + f)) / all;
                assert!((fisher(f, m, n) - expected).abs() < 1e-6, "F({m}, {n}) at {f}");
            }
        }
    }

    /// Many degrees of freedom do not overflow; t is then nearly normal.
    #[test]
    fn many_degrees() {
        assert!((student_bound(0.05, 100_000) - 1.95999).abs() < 1e-4);
        assert!((fisher(1.0, 3000, 3000) - 0.5).abs() < 1e-9);
    }
}
