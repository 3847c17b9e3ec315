//! Plots as SVG, without fonts or libraries: error surfaces and learning curves.

use luthier::{
    core::math,
    metric::Metric,
    tune::mert::{Smoothing, Surface},
};
use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;

/// Plots the score along a search direction as a step function of the step size, with its smoothed values (Cer et al.
/// 2008) if a smoothing is given.
///
/// Most boundaries between plateaus are close together and a few are far away, so the x axis covers the middle 90 %
/// of the boundaries, and always 0.
pub(crate) fn surface(surface: &Surface, smoothing: Smoothing, metric: &Metric, title: &str) -> String {
    let shown = |values: &[f64]| values.iter().map(|&v| metric.display_score(v)).collect::<Vec<f64>>();
    let scores = shown(&surface.scores);
    let n = surface.bounds.len();
    let (low, high) = match n {
        0 => (-1.0, 1.0),
        _ => (surface.bounds[n / 20].min(0.0), surface.bounds[n - 1 - n / 20].max(0.0)),
    };
    let margin = 0.05 * (high - low).max(1e-6);
    let (low, high) = (low - margin, high + margin);
    let first = surface.bounds.partition_point(|&x| x <= low);
    let last = surface.bounds.partition_point(|&x| x < high);
    let seen = &scores[first..=last];
    let bottom = seen.iter().copied().fold(f64::INFINITY, f64::min);
    let top = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let frame = Frame { x: (low, high), y: widen(bottom, top) };
    let mut out = frame.open(title, "step", 0.0);
    out += &frame.steps(&surface.bounds[first..last], seen, "#1d4ed8", 1.2);
    if !smoothing.is_none() {
        let smoothed = shown(&surface.smoothed(smoothing));
        out += &frame.steps(&surface.bounds[first..last], &smoothed[first..=last], "#c2410c", 1.2);
        let (blue, red) =
            (r##"<tspan fill="#1d4ed8">true</tspan>"##, r##"<tspan fill="#c2410c">smoothed</tspan>"##);
        let _ = writeln!(out, r#"<text x="{}" y="20" text-anchor="end">{blue} {red}</text>"#, WIDTH - RIGHT);
    }
    let _ = writeln!(
        out,
        r##"<line x1="{0:.1}" y1="{TOP}" x2="{0:.1}" y2="{1:.1}" stroke="#666" stroke-dasharray="4 3"/>"##,
        frame.px(0.0),
        HEIGHT - BOTTOM
    );
    out + "</svg>\n"
}

/// A curve of a plot.
pub(crate) struct Curve {
    /// Name in the legend.
    pub(crate) name: String,
    /// Coordinates of the points that are joined, from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Colours of curves, distinguishable in print and with most colour vision deficiencies.
const COLOURS: [&str; 10] = [
    "#1d4ed8", "#c2410c", "#15803d", "#7e22ce", "#b91c1c", "#0e7490", "#a16207", "#be185d", "#4d7c0f",
    "#475569",
];

/// Plots curves over a common x axis, with a legend below.
pub(crate) fn curves(curves: &[Curve], title: &str, axis: &str) -> String {
    let points = || curves.iter().flat_map(|c| &c.points);
    let ends = |of: fn(&(f64, f64)) -> f64| {
        points().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
    };
    let (x, y) = (ends(|p| p.0), ends(|p| p.1));
    if points().next().is_none() {
        return Frame { x: (0.0, 1.0), y: (0.0, 1.0) }.open(title, axis, 0.0) + "</svg>\n";
    }
    let frame = Frame { x: if x.1 > x.0 { x } else { (x.0 - 0.5, x.0 + 0.5) }, y: widen(y.0, y.1) };
    let mut out = frame.open(title, axis, 18.0 * curves.len().div_ceil(2) as f64);
    for (i, curve) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let dashes = ["", "6 3", "2 2"][i / COLOURS.len() % 3];
        let at = |p: &(f64, f64)| format!("{:.1} {:.1}", frame.px(p.0), frame.py(p.1));
        let path: Vec<String> = curve.points.iter().map(at).collect();
        let _ = writeln!(
            out,
            r#"<path d="M{}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dashes}"/>"#,
            path.join("L")
        );
        let (x, y) = (LEFT + (i % 2) as f64 * 345.0, HEIGHT + 8.0 + 18.0 * (i / 2) as f64);
        let _ = writeln!(
            out,
            r#"<path d="M{x} {:.1}h22" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/><text x="{}" y="{y:.1}">{}</text>"#,
            y - 4.0,
            x + 28.0,
            escape(&curve.name)
        );
    }
    out + "</svg>\n"
}

/// Widens a range by a margin at both ends.
fn widen(low: f64, high: f64) -> (f64, f64) {
    let room = if high > low { 0.06 * (high - low) } else { 0.5 };
    (low - room, high + room)
}

/// Coordinate system of a plot.
struct Frame {
    /// Range of the x axis.
    x: (f64, f64),
    /// Range of the y axis.
    y: (f64, f64),
}

impl Frame {
    /// Returns the horizontal position of an x value, in pixels.
    fn px(&self, x: f64) -> f64 {
        LEFT + (x - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Returns the vertical position of a y value, in pixels.
    fn py(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - (y - self.y.0) / (self.y.1 - self.y.0) * (HEIGHT - TOP - BOTTOM)
    }

    /// Returns the beginning of the SVG: title, axes and tick labels, with `below` pixels of space for a legend.
    fn open(&self, title: &str, axis: &str, below: f64) -> String {
        let mut out = format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {0}" width="{WIDTH}" height="{0}" font-family="sans-serif" font-size="12" fill="#222">
<rect width="100%" height="100%" fill="#fff"/>
<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{1}</text>
"##,
            HEIGHT + below,
            escape(title)
        );
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for y in ticks(self.y.0, self.y.1) {
            let at = self.py(y);
            let _ = writeln!(
                out,
                r##"<line x1="{LEFT}" y1="{at:.1}" x2="{right}" y2="{at:.1}" stroke="#ddd"/><text x="{}" y="{:.1}" text-anchor="end">{}</text>"##,
                LEFT - 6.0,
                at + 4.0,
                short(y)
            );
        }
        for x in ticks(self.x.0, self.x.1) {
            let at = self.px(x);
            let _ = writeln!(
                out,
                r##"<line x1="{at:.1}" y1="{bottom}" x2="{at:.1}" y2="{}" stroke="#222"/><text x="{at:.1}" y="{}" text-anchor="middle">{}</text>"##,
                bottom + 4.0,
                bottom + 17.0,
                short(x)
            );
        }
        let _ = writeln!(
            out,
            r##"<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#222"/><text x="{:.1}" y="{}" text-anchor="middle">{}</text>"##,
            f64::midpoint(LEFT, right),
            HEIGHT - 8.0,
            escape(axis)
        );
        out
    }

    /// Returns a path of horizontal steps that change at the boundaries, over the whole width of the plot.
    fn steps(&self, bounds: &[f64], values: &[f64], colour: &str, width: f64) -> String {
        let mut path = format!("M{LEFT:.1} {:.1}", self.py(values[0]));
        for (x, y) in bounds.iter().zip(&values[1..]) {
            let _ = write!(path, "H{:.1}V{:.1}", self.px(*x), self.py(*y));
        }
        let end = WIDTH - RIGHT;
        format!("<path d=\"{path}H{end:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n")
    }
}

/// Returns round numbers in a range as tick positions, at most twenty.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let raw = (high - low) / 5.0;
    let power = math::powf(10.0, math::log10(raw).floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|s| *s >= raw).unwrap_or(power * 10.0);
    let first = (low / step).ceil() as i64;
    (first..).map(|i| i as f64 * step).take_while(|x| *x <= high).take(20).collect()
}

/// Formats a number with up to six decimals, without trailing zeros.
fn short(x: f64) -> String {
    let text = format!("{x:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Escapes a text for XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
