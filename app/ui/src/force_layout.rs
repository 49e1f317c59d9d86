//! Force-directed layout of a graph's nodes: links attract, everything repels, and a little gravity keeps the graph
//! together. Repulsion uses a quadtree (Barnes and Hut), so that a step with many thousand nodes is fast. Pure
//! computation.

/// Ideal distance of linked notes.
const IDEAL_EDGE_LENGTH: f32 = 30.0;
/// Strength of the repulsion between notes.
const REPULSION_STRENGTH: f32 = IDEAL_EDGE_LENGTH * IDEAL_EDGE_LENGTH * 0.25;
/// Gravity towards the center; stronger for notes without links, which nothing else holds.
const CENTER_GRAVITY: f32 = 0.02;
const UNLINKED_CENTER_GRAVITY: f32 = 0.1;
/// Maximum depth of the quadtree, since nodes may be in the same place.
const MAX_QUADTREE_DEPTH: usize = 20;

/// A layout in progress.
pub struct ForceLayout<'a> {
    places: Vec<[f32; 2]>,
    edges: &'a [(u32, u32)],
    degrees: Vec<f32>,
    push: Vec<[f32; 2]>,
}

impl<'a> ForceLayout<'a> {
    /// Creates the initial layout: along a spiral, so that it's deterministic.
    #[allow(clippy::cast_precision_loss, reason = "counts of notes and links")]
    pub fn new(nodes: usize, edges: &'a [(u32, u32)]) -> ForceLayout<'a> {
        let place = |node: usize| {
            let (radius, angle) = (IDEAL_EDGE_LENGTH * 0.6 * (node as f32).sqrt(), node as f32 * 2.399_963);
            [radius * angle.cos(), radius * angle.sin()]
        };
        let mut degrees = vec![1.0; nodes];
        for (from, to) in edges {
            degrees[*from as usize] += 1.0;
            degrees[*to as usize] += 1.0;
        }
        ForceLayout { places: (0..nodes).map(place).collect(), edges, degrees, push: vec![[0.0; 2]; nodes] }
    }

    /// Returns the positions of the nodes.
    pub fn node_positions(&self) -> &[[f32; 2]] {
        &self.places
    }

    /// Performs step number `step` of `steps`; later steps move less.
    #[allow(clippy::cast_precision_loss, reason = "a few hundred steps")]
    pub fn step(&mut self, step: usize, steps: usize) {
        let tree = Quadtree::of(&self.places);
        let mut open = Vec::new();
        for ((place, degree), push) in self.places.iter().zip(&self.degrees).zip(&mut self.push) {
            let [x, y] = tree.repulsion(*place, &mut open);
            let gravity = if *degree > 1.0 { CENTER_GRAVITY } else { UNLINKED_CENTER_GRAVITY };
            *push = [x - place[0] * gravity, y - place[1] * gravity];
        }
        for (from, to) in self.edges {
            let (from, to) = (*from as usize, *to as usize);
            let (one, other) = (self.places[from], self.places[to]);
            // A node with many links is moved less by each.
            let pull = 8.0 / IDEAL_EDGE_LENGTH / self.degrees[from].min(self.degrees[to]).sqrt();
            for axis in 0..2 {
                let by = (other[axis] - one[axis]) * pull;
                self.push[from][axis] += by;
                self.push[to][axis] -= by;
            }
        }
        let most = IDEAL_EDGE_LENGTH * (1.0 - step as f32 / steps as f32).max(0.02);
        for (place, push) in self.places.iter_mut().zip(&self.push) {
            let length = push[0].hypot(push[1]).max(0.001);
            let by = (length * 0.5).min(most) / length;
            place[0] += push[0] * by;
            place[1] += push[1] * by;
        }
    }
}

/// A square of the quadtree: number and position sum of its nodes, and the indices of its four quarters (0: none).
#[derive(Clone, Copy, Default)]
struct QuadtreeNode {
    mass: f32,
    sum: [f32; 2],
    quarters: [u32; 4],
}

struct Quadtree {
    all: Vec<QuadtreeNode>,
    corner: [f32; 2],
    size: f32,
}

impl Quadtree {
    fn of(places: &[[f32; 2]]) -> Quadtree {
        let (mut low, mut high) = ([f32::MAX; 2], [f32::MIN; 2]);
        for place in places {
            for axis in 0..2 {
                low[axis] = low[axis].min(place[axis]);
                high[axis] = high[axis].max(place[axis]);
            }
        }
        let size = (high[0] - low[0]).max(high[1] - low[1]).max(1.0);
        let mut tree = Quadtree { all: vec![QuadtreeNode::default()], corner: low, size };
        places.iter().for_each(|place| tree.enter(*place));
        tree
    }

    /// Adds a note to every square that contains it, down to the first that is empty.
    fn enter(&mut self, place: [f32; 2]) {
        let (mut at, mut corner, mut size) = (0, self.corner, self.size);
        for depth in 0..MAX_QUADTREE_DEPTH {
            let was = self.all[at];
            self.all[at].mass += 1.0;
            self.all[at].sum = [was.sum[0] + place[0], was.sum[1] + place[1]];
            if was.mass == 0.0 {
                return;
            }
            // The node that was alone here moves down along with the new one.
            if was.mass == 1.0 && depth + 1 < MAX_QUADTREE_DEPTH {
                let below = self.below(at, quarter(corner, size, was.sum).0);
                self.all[below] = QuadtreeNode { mass: 1.0, sum: was.sum, quarters: [0; 4] };
            }
            let (which, inner) = quarter(corner, size, place);
            (corner, size) = (inner, size / 2.0);
            at = self.below(at, which);
        }
    }

    fn below(&mut self, at: usize, which: usize) -> usize {
        if self.all[at].quarters[which] == 0 {
            self.all[at].quarters[which] = u32::try_from(self.all.len()).unwrap_or(0);
            self.all.push(QuadtreeNode::default());
        }
        self.all[at].quarters[which] as usize
    }

    /// Returns the repulsion of a note by all others. Distant notes are treated as one.
    fn repulsion(&self, place: [f32; 2], open: &mut Vec<(u32, f32)>) -> [f32; 2] {
        let mut push = [0.0; 2];
        open.push((0, self.size));
        while let Some((at, size)) = open.pop() {
            let quadrant = &self.all[at as usize];
            if quadrant.mass == 0.0 {
                continue;
            }
            let away = [place[0] - quadrant.sum[0] / quadrant.mass, place[1] - quadrant.sum[1] / quadrant.mass];
            let square = away[0] * away[0] + away[1] * away[1];
            if quadrant.quarters != [0; 4] && size * size > square {
                let below = quadrant.quarters.iter().filter(|below| **below != 0);
                open.extend(below.map(|below| (*below, size / 2.0)));
            } else if square > 0.01 {
                let by = REPULSION_STRENGTH * quadrant.mass / square;
                push = [push[0] + away[0] * by, push[1] + away[1] * by];
            }
        }
        push
    }
}

/// Returns the quarter that contains a position, and that quarter's corner.
fn quarter(corner: [f32; 2], size: f32, place: [f32; 2]) -> (usize, [f32; 2]) {
    let half = size / 2.0;
    let (right, below) = (place[0] > corner[0] + half, place[1] > corner[1] + half);
    let at = [corner[0] + if right { half } else { 0.0 }, corner[1] + if below { half } else { 0.0 }];
    (usize::from(right) + 2 * usize::from(below), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadrants_push_like_all_notes_one_by_one() {
        let places: Vec<[f32; 2]> = ForceLayout::new(500, &[]).node_positions().to_vec();
        let tree = Quadtree::of(&places);
        for place in places.iter().step_by(50) {
            let mut push = [0.0_f32; 2];
            for other in &places {
                let away = [place[0] - other[0], place[1] - other[1]];
                let square = away[0] * away[0] + away[1] * away[1];
                if square > 0.01 {
                    push = [
                        push[0] + away[0] * REPULSION_STRENGTH / square,
                        push[1] + away[1] * REPULSION_STRENGTH / square,
                    ];
                }
            }
            let near = tree.repulsion(*place, &mut Vec::new());
            let wrong = (near[0] - push[0]).hypot(near[1] - push[1]);
            assert!(wrong < 0.15 * push[0].hypot(push[1]) + 20.0, "{push:?} is not {near:?}");
        }
    }

    #[test]
    fn what_is_linked_comes_near() {
        let edges: Vec<(u32, u32)> = (1..20).map(|node| (0, node)).collect();
        let mut layout = ForceLayout::new(60, &edges);
        (0..200).for_each(|step| layout.step(step, 200));
        let places = layout.node_positions();
        assert!(places.iter().flatten().all(|number| number.is_finite()));
        let far = |node: usize| (places[node][0] - places[0][0]).hypot(places[node][1] - places[0][1]);
        let linked = (1..20).map(far).sum::<f32>() / 19.0;
        let others = (20..60).map(far).sum::<f32>() / 40.0;
        assert!(linked < 0.7 * others, "{linked} {others}");
        let mut same = ForceLayout::new(3, &[]);
        same.places = vec![[1.0, 1.0]; 3];
        same.step(0, 10);
        assert!(same.node_positions().iter().flatten().all(|number| number.is_finite()), "all in one place");
    }
}
