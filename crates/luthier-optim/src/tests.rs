//! Tests of all minimisers on problems with known optima.

#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;

type Function = fn(&[f64], &mut [f64]) -> f64;
type Minimiser = fn(&mut dyn Objective, &mut [f64], Limit, &mut Watch<'_>) -> Ended;
type Product = fn(&[f64], &[f64], &mut [f64]);

/// A test function with gradient and Hessian-vector product, a starting point, its minimum and its minimiser.
struct Problem {
    name: &'static str,
    f: Function,
    product: Product,
    start: Vec<f64>,
    least: f64,
    at: Vec<f64>,
}

struct Run<'a> {
    problem: &'a Problem,
    at: Vec<f64>,
}

impl Objective for Run<'_> {
    fn dim(&self) -> usize {
        self.problem.start.len()
    }
    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
        self.at = w.to_vec();
        (self.problem.f)(w, gradient)
    }
    fn curve(&mut self, v: &[f64], out: &mut [f64]) -> bool {
        (self.problem.product)(&self.at, v, out);
        true
    }
}

fn problems() -> Vec<Problem> {
    vec![
        Problem {
            name: "a bowl",
            f: |x, g| {
                g.copy_from_slice(&[8.0 * x[0] + x[1], x[0] + 2.0 * x[1], 2.0 * x[2] + 6.0]);
                4.0 * x[0] * x[0] + x[0] * x[1] + x[1] * x[1] + x[2] * x[2] + 6.0 * x[2] + 5.0
            },
            product: |_, v, out| out.copy_from_slice(&[8.0 * v[0] + v[1], v[0] + 2.0 * v[1], 2.0 * v[2]]),
            start: vec![8.0; 3],
            least: -4.0,
            at: vec![0.0, 0.0, -3.0],
        },
        Problem {
            name: "a bowl a million times as long as wide",
            f: |x, g| {
                let mut value = 0.0;
                for (i, (x, g)) in x.iter().zip(g).enumerate() {
                    let c = 10f64.powf(i as f64);
                    *g = 2.0 * c * (x - 1.0);
                    value += c * (x - 1.0) * (x - 1.0);
                }
                value
            },
            product: |_, v, out| {
                for (i, (v, o)) in v.iter().zip(out).enumerate() {
                    *o = 2.0 * 10f64.powf(i as f64) * v;
                }
            },
            start: vec![0.0; 7],
            least: 0.0,
            at: vec![1.0; 7],
        },
        Problem {
            name: "Rosenbrock's valley",
            f: |x, g| {
                let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
                g.copy_from_slice(&[-2.0 * a - 400.0 * x[0] * b, 200.0 * b]);
                a * a + 100.0 * b * b
            },
            product: |x, v, out| {
                let xx = 2.0 - 400.0 * (x[1] - 3.0 * x[0] * x[0]);
                out.copy_from_slice(&[xx * v[0] - 400.0 * x[0] * v[1], -400.0 * x[0] * v[0] + 200.0 * v[1]]);
            },
            start: vec![-1.2, 1.0],
            least: 0.0,
            at: vec![1.0, 1.0],
        },
        Problem {
            // x²/2 + log(1 + e^{−2x}), plus max(0, 1 − y)² + y²/2, whose minimum 1/3 is at y = 2/3.
            name: "logistic and squared hinge",
            f: |x, g| {
                let p = 1.0 / (1.0 + (2.0 * x[0]).exp());
                let h = (1.0 - x[1]).max(0.0);
                g.copy_from_slice(&[x[0] - 2.0 * p, x[1] - 2.0 * h]);
                0.5 * (x[0] * x[0] + x[1] * x[1]) + (-2.0 * x[0]).exp().ln_1p() + h * h
            },
            product: |x, v, out| {
                let p = 1.0 / (1.0 + (2.0 * x[0]).exp());
                let active = f64::from(u8::from(x[1] < 1.0));
                out.copy_from_slice(&[v[0] * (1.0 + 4.0 * p * (1.0 - p)), v[1] * (1.0 + 2.0 * active)]);
            },
            start: vec![-5.0, 30.0],
            // The root of x = 2/(1 + e^{2x}), found by bisection.
            least: 0.5 * 0.521_298_457_000_278_9_f64.powi(2)
                + (-2.0 * 0.521_298_457_000_278_9_f64).exp().ln_1p()
                + 1.0 / 3.0,
            at: vec![0.521_298_457_000_278_9, 2.0 / 3.0],
        },
    ]
}

#[test]
fn known_optima() {
    let limit = Limit { tolerance: 1e-11, steps: 500 };
    for (name, minimise) in [("lbfgs", lbfgs as Minimiser), ("newton", newton)] {
        for problem in problems() {
            let mut w = problem.start.clone();
            let mut last = f64::INFINITY;
            let ended =
                minimise(&mut Run { problem: &problem, at: Vec::new() }, &mut w, limit, &mut |_, v, _| {
                    assert!(v <= last, "{name} climbs on {}", problem.name);
                    last = v;
                });
            assert!(ended.converged, "{name} on {}: {ended:?}", problem.name);
            assert!((ended.value - problem.least).abs() < 1e-9, "{name} on {}: {ended:?}", problem.name);
            for (x, y) in w.iter().zip(&problem.at) {
                assert!((x - y).abs() < 1e-5, "{name} on {}: {w:?}", problem.name);
            }
        }
    }
}

/// Examples with two features.
struct Points(Vec<[f64; 2]>);

impl Examples for Points {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        dot(&self.0[i], w)
    }
    fn square(&self, i: usize) -> f64 {
        dot(&self.0[i], &self.0[i])
    }
    fn add(&self, i: usize, a: f64, w: &mut [f64]) {
        axpy(a, &self.0[i], w);
    }
}

/// A linear congruential generator of numbers below n.
fn draws() -> impl FnMut(usize) -> usize {
    let mut state = 1u64;
    move |n| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    }
}

#[test]
fn dual_coordinate_descent_by_hand() {
    let mut draw = draws();
    // One example of norm 2: w = x/4 attains the margin 1, if C is large enough.
    let mut w = vec![0.0; 2];
    let found = dual(&Points(vec![[2.0, 0.0]]), &mut w, 10.0, Accuracy::Gap(1e-12), 100, &mut draw);
    assert!(found.gap <= 1e-12 && (w[0] - 0.5).abs() < 1e-12 && (found.alpha[0] - 0.25).abs() < 1e-12);
    let mut w = vec![0.0; 2];
    dual(&Points(vec![[2.0, 0.0]]), &mut w, 0.1, Accuracy::Gap(1e-12), 100, &mut draw);
    assert!((w[0] - 0.2).abs() < 1e-12);
    // From another w₀ only the missing margin is added; an example without features does not prevent convergence.
    let mut w = vec![0.25, 7.0];
    let found =
        dual(&Points(vec![[2.0, 0.0], [0.0, 0.0]]), &mut w, 10.0, Accuracy::Gap(1e-12), 100, &mut draw);
    assert!(found.gap <= 1e-12 && (w[0] - 0.5).abs() < 1e-12 && w[1] == 7.0);
    assert_eq!(dual(&Points(Vec::new()), &mut w, 1.0, Accuracy::Gap(1e-12), 100, &mut draw).gap, 0.0);
}

/// The primal and dual values agree, which proves optimality.
#[test]
fn dual_coordinate_descent_closes_the_gap() {
    let mut draw = draws();
    for round in 0..20 {
        let mut unit = || draw(1000) as f64 / 500.0 - 1.0;
        let points = Points((0..60).map(|_| [unit() + 0.3, unit()]).collect());
        let c = [0.01, 0.1, 1.0, 10.0][round % 4];
        let mut w = vec![0.0; 2];
        let found = dual(&points, &mut w, c, Accuracy::Gap(1e-9), 100_000, &mut draw);
        let half = 0.5 * dot(&w, &w);
        let hinge: f64 = points.0.iter().map(|x| (1.0 - dot(x, &w)).max(0.0)).sum();
        let (primal, dual) = (half + c * hinge, found.alpha.iter().sum::<f64>() - half);
        assert!(
            found.relative_gap() <= 1e-9 && (primal - dual).abs() < 1e-8 * primal,
            "{primal} {dual} {found:?}"
        );
        // Newton's method finds the same point, also for another w₀.
        let mut v = vec![0.0; 2];
        let newton = dual_newton(&points, &mut v, c, Accuracy::Gap(1e-7), 1000);
        assert!(newton.relative_gap() <= 1e-7, "{newton:?}");
        assert!(v.iter().zip(&w).all(|(v, w)| (v - w).abs() < 1e-3 * (1.0 + w.abs())), "{v:?} {w:?}");
        assert!(newton.alpha.iter().all(|a| (0.0..=c).contains(a)));
        let (mut w, mut v) = (vec![0.7, -2.0], vec![0.7, -2.0]);
        super::dual(&points, &mut w, c, Accuracy::Gap(1e-9), 100_000, &mut draw);
        let newton = dual_newton(&points, &mut v, c, Accuracy::Gap(1e-7), 1000);
        assert!(newton.relative_gap() <= 1e-7, "{newton:?}");
        assert!(v.iter().zip(&w).all(|(v, w)| (v - w).abs() < 1e-3 * (1.0 + w.abs())), "{v:?} {w:?}");
    }
    let mut w = vec![1.0];
    assert_eq!(dual_newton(&Points(Vec::new()), &mut w, 1.0, Accuracy::Gap(1e-9), 10).gap, 0.0);
}

/// With one shared slack variable, primal and dual values agree, too.
#[test]
fn shared_slack_closes_the_gap() {
    let mut draw = draws();
    let mut bound = 0;
    for round in 0..40 {
        let mut unit = || draw(1000) as f64 / 500.0 - 1.0;
        let points = Points((0..60).map(|_| [unit() + [0.3, 1.5][round / 4 % 2], unit()]).collect());
        let origin = [unit(), unit()];
        let c = [0.01, 0.1, 1.0, 10.0][round % 4];
        let mut w = origin.to_vec();
        let found = dual_simplex(&points, &mut w, c, Accuracy::Gap(1e-9), 10_000);
        let moved: Vec<f64> = w.iter().zip(&origin).map(|(w, o)| w - o).collect();
        let half = 0.5 * dot(&moved, &moved);
        let worst = points.0.iter().map(|x| 1.0 - dot(x, &w)).fold(0.0, f64::max);
        let sum: f64 = found.alpha.iter().sum();
        let (primal, dual) = (half + c * worst, sum - dot(&origin, &moved) - half);
        assert!((primal - dual).abs() <= 2e-9 * primal, "{round}: {primal} {dual} {found:?}");
        assert!(found.alpha.iter().all(|a| *a >= 0.0) && sum <= c * (1.0 + 1e-12));
        bound += usize::from((sum - c).abs() < 1e-9);
    }
    assert!((10..40).contains(&bound), "{bound}");
    let mut w = vec![1.0, 1.0];
    assert_eq!(dual_simplex(&Points(Vec::new()), &mut w, 1.0, Accuracy::Gap(1e-9), 10).gap, 0.0);
}
