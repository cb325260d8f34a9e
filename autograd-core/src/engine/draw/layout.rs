//! Places for boxes: rows from top to bottom, with as few crossings and bends as possible.

/// A box to place, or a bend of a line that passes a row.
pub(super) struct Spot {
    /// The box; `None` for a bend.
    pub(super) item: Option<usize>,
    pub(super) width: f64,
    /// Its middle.
    pub(super) x: f64,
    pub(super) row: usize,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// A line from one box to another, by way of bends.
pub(super) struct Line {
    pub(super) spots: Vec<usize>,
    /// How often the one box uses the other.
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

/// `widths` and `inputs` of boxes, inputs before those that use them.
pub(super) fn place(widths: &[f64], inputs: &[Vec<usize>]) -> Layout {
    let rows = rows(inputs);
    let mut layout = Layout {
        spots: Vec::new(),
        lines: Vec::new(),
        rows: rows.iter().max().map_or(0, |last| last + 1),
        width: 0.0,
    };
    for (item, (&width, &row)) in widths.iter().zip(&rows).enumerate() {
        layout.add(Some(item), width, row);
    }
    for (item, inputs) in inputs.iter().enumerate() {
        let mut distinct: Vec<usize> = inputs.clone();
        distinct.sort_unstable();
        distinct.dedup();
        for input in distinct {
            let count = inputs.iter().filter(|&&other| other == input).count();
            layout.connect(input, item, count);
        }
    }
    let mut order = layout.order();
    layout.uncross(&mut order);
    layout.straighten(&order);
    layout
}

/// A box stands below its inputs; one without inputs just above the first that uses it.
fn rows(inputs: &[Vec<usize>]) -> Vec<usize> {
    let mut rows = vec![0; inputs.len()];
    for (item, inputs) in inputs.iter().enumerate() {
        rows[item] = inputs.iter().map(|&input| rows[input] + 1).max().unwrap_or(0);
    }
    let mut nearest = vec![usize::MAX; inputs.len()];
    for (item, inputs) in inputs.iter().enumerate() {
        for &input in inputs {
            nearest[input] = nearest[input].min(rows[item]);
        }
    }
    for (item, nearest) in nearest.into_iter().enumerate() {
        if inputs[item].is_empty() && nearest != usize::MAX {
            rows[item] = nearest - 1;
        }
    }
    rows
}

impl Layout {
    fn add(&mut self, item: Option<usize>, width: f64, row: usize) -> usize {
        let (above, below) = (Vec::new(), Vec::new());
        self.spots.push(Spot { item, width, x: 0.0, row, above, below });
        self.spots.len() - 1
    }

    fn connect(&mut self, from: usize, to: usize, count: usize) {
        let mut spots = vec![from];
        for row in self.spots[from].row + 1..self.spots[to].row {
            let bend = self.add(None, BEND, row);
            spots.push(bend);
        }
        spots.push(to);
        for pair in spots.windows(2) {
            self.spots[pair[0]].below.push(pair[1]);
            self.spots[pair[1]].above.push(pair[0]);
        }
        self.lines.push(Line { spots, count });
    }

    /// The spots of each row, as they come.
    fn order(&self) -> Vec<Vec<usize>> {
        let mut order = vec![Vec::new(); self.rows];
        for (i, spot) in self.spots.iter().enumerate() {
            order[spot.row].push(i);
        }
        order
    }

    /// Orders each row by the middle of what its spots are connected with, up and down in turn.
    fn uncross(&self, order: &mut [Vec<usize>]) {
        let mut best = (usize::MAX, order.to_vec());
        for turn in 0..24 {
            let down = turn % 2 == 0;
            let mut position = vec![0.0; self.spots.len()];
            for row in order.iter() {
                note(&mut position, row);
            }
            for step in 0..order.len() {
                let row = &mut order[if down { step } else { self.rows - 1 - step }];
                let middle = |&i: &usize| {
                    let spot = &self.spots[i];
                    let others = if down { &spot.above } else { &spot.below };
                    mean(others.iter().map(|&other| position[other])).unwrap_or(position[i])
                };
                let mut keyed: Vec<(f64, usize)> = row.iter().map(|i| (middle(i), *i)).collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                *row = keyed.into_iter().map(|(_, i)| i).collect();
                note(&mut position, row);
            }
            let crossings = self.crossings(order);
            if crossings < best.0 {
                best = (crossings, order.to_vec());
            }
        }
        order.clone_from_slice(&best.1);
    }

    fn crossings(&self, order: &[Vec<usize>]) -> usize {
        let mut position = vec![0; self.spots.len()];
        order.iter().for_each(|row| row.iter().enumerate().for_each(|(at, &i)| position[i] = at));
        let crossed = |row: &Vec<usize>| {
            let ends: Vec<(usize, usize)> = row
                .iter()
                .flat_map(|&i| self.spots[i].below.iter().map(move |&j| (i, j)))
                .map(|(i, j)| (position[i], position[j]))
                .collect();
            let pairs = ends.iter().enumerate().flat_map(|(n, a)| {
                ends[n + 1..]
                    .iter()
                    .map(move |b| (a.0 < b.0 && a.1 > b.1) || (a.0 > b.0 && a.1 < b.1))
            });
            pairs.filter(|&crossed| crossed).count()
        };
        order.iter().map(crossed).sum()
    }

    /// Moves spots towards what they are connected with, without changing their order.
    fn straighten(&mut self, order: &[Vec<usize>]) {
        for row in order {
            let mut x = 0.0;
            for &i in row {
                x += self.spots[i].width / 2.0;
                self.spots[i].x = x;
                x += self.spots[i].width / 2.0 + GAP;
            }
        }
        for turn in 0..80 {
            let down = turn % 2 == 0;
            for step in 0..self.rows {
                let row = &order[if down { step } else { self.rows - 1 - step }];
                let wanted = row.iter().map(|&i| self.wanted(i, down, turn)).collect();
                self.set_apart(row, wanted);
            }
        }
        self.align_bends(order);
        let left = self.spots.iter().map(|s| s.x - s.width / 2.0).fold(f64::MAX, f64::min);
        for spot in &mut self.spots {
            spot.x -= left;
            self.width = self.width.max(spot.x + spot.width / 2.0);
        }
    }

    /// Puts the bends of each line one below the other, as far as there is room.
    fn align_bends(&mut self, order: &[Vec<usize>]) {
        for _ in 0..60 {
            let mut wanted: Vec<f64> = self.spots.iter().map(|spot| spot.x).collect();
            for line in &self.lines {
                let bends = &line.spots[1..line.spots.len() - 1];
                if let Some(middle) = mean(bends.iter().map(|&i| self.spots[i].x)) {
                    bends.iter().for_each(|&i| wanted[i] = middle);
                }
            }
            for row in order {
                self.set_apart(row, row.iter().map(|&i| wanted[i]).collect());
            }
        }
    }

    /// Where a spot would stand best: with one side at first, with both at last.
    fn wanted(&self, i: usize, down: bool, turn: usize) -> f64 {
        let spot = &self.spots[i];
        let x = |&other: &usize| self.spots[other].x;
        let (one, other) =
            if down { (&spot.above, &spot.below) } else { (&spot.below, &spot.above) };
        let both = if turn >= 40 { &other[..] } else { &[] };
        mean(one.iter().chain(both).map(x)).or_else(|| mean(other.iter().map(x))).unwrap_or(spot.x)
    }

    /// Moves the spots of a row to the nearest places that do not overlap: the middle between pushing to
    /// the right and pushing to the left.
    fn set_apart(&mut self, row: &[usize], wanted: Vec<f64>) {
        let room = |a: usize, b: usize| (self.spots[a].width + self.spots[b].width) / 2.0 + GAP;
        let mut right = wanted.clone();
        for n in 1..row.len() {
            right[n] = right[n].max(right[n - 1] + room(row[n - 1], row[n]));
        }
        let mut left = wanted;
        for n in (1..row.len()).rev() {
            left[n - 1] = left[n - 1].min(left[n] - room(row[n - 1], row[n]));
        }
        for (&i, (r, l)) in row.iter().zip(right.iter().zip(left)) {
            self.spots[i].x = (r + l) / 2.0;
        }
    }
}

fn note(position: &mut [f64], row: &[usize]) {
    // From 0 to 1, so that long and short rows can be compared.
    for (at, &i) in row.iter().enumerate() {
        position[i] = (at as f64 + 0.5) / row.len() as f64;
    }
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), x| (sum + x, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
