//! The straight line that is nearest to points, by least squares.

/// A line, and how well it fits.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Where it meets zero.
    pub intercept: f64,
    /// How much it rises for each unit.
    pub slope: f64,
    /// The share of the variance it explains, R squared.
    pub fit: f64,
}

/// The line through two points or more.
pub fn line(points: &[(f64, f64)]) -> Option<Line> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        xx += (x - mean_x).powi(2);
        xy += (x - mean_x) * (y - mean_y);
        yy += (y - mean_y).powi(2);
    }
    if points.len() < 2 || xx == 0.0 {
        return None;
    }
    let slope = xy / xx;
    let fit = if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) };
    Some(Line { intercept: mean_y - slope * mean_x, slope, fit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_itself_and_a_cloud_does_not() {
        let found = line(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]).expect("three points");
        assert!((found.slope - 2.0).abs() < 1e-9 && (found.intercept - 3.0).abs() < 1e-9, "{found:?}");
        assert!(found.fit > 0.999, "{found:?}");
        let cloud = line(&[(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]).expect("four points");
        assert!(cloud.fit < 0.01, "{cloud:?}");
        assert!(line(&[(1.0, 1.0)]).is_none() && line(&[(1.0, 1.0), (1.0, 2.0)]).is_none());
    }
}
