//! Positions of boxes: rows from top to bottom, with few crossings and bends.

use std::iter::once;

use crate::array::shape::sorted;

/// A box to place, or a bend of a line that passes a row.
pub(super) struct Spot {
    pub(super) width: f64,
    /// The position of its middle.
    pub(super) x: f64,
    pub(super) row: usize,
    /// The connected spots: above, and below.
    linked: [Vec<usize>; 2],
}

pub(super) struct Line {
    pub(super) spots: Vec<usize>,
    /// How often one box uses the other.
    pub(super) count: usize,
}

pub(super) struct Layout {
    pub(super) spots: Vec<Spot>,
    pub(super) lines: Vec<Line>,
    pub(super) rows: usize,
    pub(super) width: f64,
}

const GAP: f64 = 18.0;
const BEND: f64 = 6.0;

/// The number of passes over all rows, down and up in turn. The first half of them also sorts the rows.
const SWEEPS: usize = 80;

/// Places boxes of these `widths`; `inputs` of a box come before it.
pub(super) fn place(widths: &[f64], inputs: &[Vec<usize>]) -> Layout {
    let spot = |width, row| Spot { width, x: 0.0, row, linked: Default::default() };
    let boxes = widths.iter().zip(rows(inputs));
    let mut spots: Vec<Spot> = boxes.map(|(&width, row)| spot(width, row)).collect();
    let mut lines = Vec::new();
    for (to, inputs) in inputs.iter().enumerate() {
        let order = sorted(inputs.len(), &|a, b| inputs[a].cmp(&inputs[b]));
        for same in order.chunk_by(|&a, &b| inputs[a] == inputs[b]) {
            let (from, count) = (inputs[same[0]], same.len());
            let (first, passed) = (spots.len(), spots[from].row + 1..spots[to].row);
            spots.extend(passed.map(|row| spot(BEND, row)));
            let path: Vec<usize> = once(from).chain(first..spots.len()).chain(once(to)).collect();
            for pair in path.windows(2) {
                spots[pair[0]].linked[1].push(pair[1]);
                spots[pair[1]].linked[0].push(pair[0]);
            }
            lines.push(Line { spots: path, count });
        }
    }
    let mut rows = vec![Vec::new(); spots.iter().map(|spot| spot.row + 1).max().unwrap_or(0)];
    spots.iter().enumerate().for_each(|(i, spot)| rows[spot.row].push(i));
    for sweep in 0..SWEEPS {
        let (down, sorts) = (sweep % 2 == 0, sweep < SWEEPS / 2);
        for step in 0..rows.len() {
            let row = if down { step } else { rows.len() - 1 - step };
            let mut wanted: Vec<(f64, usize)> =
                rows[row].iter().map(|&i| (wanted(&spots, i, down, !sorts), i)).collect();
            if sorts {
                let order = sorted(wanted.len(), &|a, b| wanted[a].0.total_cmp(&wanted[b].0));
                wanted = order.into_iter().map(|at| wanted[at]).collect();
                rows[row] = wanted.iter().map(|&(_, i)| i).collect();
            }
            set_apart(&mut spots, &wanted);
        }
    }
    let left = spots.iter().map(|spot| spot.x - spot.width / 2.0).fold(f64::MAX, f64::min);
    spots.iter_mut().for_each(|spot| spot.x -= left);
    let width = spots.iter().map(|spot| spot.x + spot.width / 2.0).fold(0.0, f64::max);
    Layout { spots, lines, rows: rows.len(), width }
}

/// A box is below its inputs; one without inputs is just above the first box that uses it.
fn rows(inputs: &[Vec<usize>]) -> Vec<usize> {
    let mut rows = vec![0; inputs.len()];
    let mut nearest = vec![usize::MAX; inputs.len()];
    for (item, inputs) in inputs.iter().enumerate() {
        rows[item] = inputs.iter().map(|&input| rows[input] + 1).max().unwrap_or(0);
        inputs.iter().for_each(|&input| nearest[input] = nearest[input].min(rows[item]));
    }
    for (item, nearest) in nearest.into_iter().enumerate() {
        if inputs[item].is_empty() && nearest != usize::MAX {
            rows[item] = nearest - 1;
        }
    }
    rows
}

/// The best position of a spot: the mean of the spots that it is connected with on one side, or on both.
fn wanted(spots: &[Spot], i: usize, down: bool, both: bool) -> f64 {
    let [above, below] = &spots[i].linked;
    let (one, other) = if down { (above, below) } else { (below, above) };
    let connected = match one.is_empty() {
        _ if both => [above.as_slice(), below],
        true => [other.as_slice(), &[]],
        false => [one.as_slice(), &[]],
    };
    let x: Vec<f64> = connected.into_iter().flatten().map(|&other| spots[other].x).collect();
    if x.is_empty() { spots[i].x } else { x.iter().sum::<f64>() / x.len() as f64 }
}

/// Moves the spots of a row apart, to the mean of pushing them to the right and pushing them to the left.
fn set_apart(spots: &mut [Spot], wanted: &[(f64, usize)]) {
    let room = |n: usize| {
        let [a, b] = [wanted[n - 1].1, wanted[n].1];
        (spots[a].width + spots[b].width) / 2.0 + GAP
    };
    let mut right: Vec<f64> = wanted.iter().map(|&(x, _)| x).collect();
    let mut left = right.clone();
    for n in 1..wanted.len() {
        right[n] = right[n].max(right[n - 1] + room(n));
    }
    for n in (1..wanted.len()).rev() {
        left[n - 1] = left[n - 1].min(left[n] - room(n));
    }
    for (n, &(_, i)) in wanted.iter().enumerate() {
        spots[i].x = (right[n] + left[n]) / 2.0;
    }
}
