//! The minimum of a define-by-run engine: one allocation for a tensor with inline data, one for a node,
//! one for its boxed pullback; no shapes, one input for each node, no checks.

use std::sync::Arc;

use kit::{CHAIN, SCALARS, Work, input};

type Block = [f64; 6];

struct Data {
    block: Block,
    node: Option<Arc<Node>>,
}

struct Node {
    input: Option<Arc<Node>>,
    pull: Box<dyn Fn(Block) -> Block + Send + Sync>,
}

#[derive(Clone)]
struct Tensor(Arc<Data>);

impl Tensor {
    fn leaf(block: Block) -> Self {
        let node = Node { input: None, pull: Box::new(|dy| dy) };
        Self(Arc::new(Data { block, node: Some(Arc::new(node)) }))
    }

    fn new(block: Block) -> Self {
        Self(Arc::new(Data { block, node: None }))
    }

    fn record(
        &self,
        y: Self,
        pull: impl Fn(&Self, Block) -> Block + Send + Sync + 'static,
    ) -> Self {
        let input = self.0.node.clone();
        let saved = y.clone();
        let pull = Box::new(move |dy| pull(&saved, dy));
        Self(Arc::new(Data { block: y.0.block, node: Some(Arc::new(Node { input, pull })) }))
    }

    fn tanh(&self) -> Self {
        let y = Self::new(self.0.block.map(f64::tanh));
        self.record(y, |y, dy| std::array::from_fn(|i| dy[i] * (1.0 - y.0.block[i].powi(2))))
    }

    fn backward(&self, mut dy: Block) -> Block {
        let mut next = self.0.node.clone();
        while let Some(node) = next {
            dy = (node.pull)(dy);
            next = node.input.clone();
        }
        dy
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut next = self.input.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.input.take();
        }
    }
}

pub fn chain(backward: bool) -> Option<Work> {
    let x = Tensor::leaf(input(6).try_into().expect("six numbers"));
    let work = move || {
        let mut y = x.tanh();
        for _ in 1..CHAIN {
            y = y.tanh();
        }
        if backward { y.backward([1.0 / 6.0; 6]) } else { y.0.block }
    };
    Work::new(work, |dx| dx.to_vec())
}

pub fn scalar_chain(n: usize) -> Option<Work> {
    let x = Tensor::leaf([1.0; 6]);
    let [a, b] = SCALARS;
    let factor = Tensor::new([a; 6]);
    let work = move || {
        let mut y = x.clone();
        for i in 0..n {
            y = if i % 2 == 0 {
                let (factor, result) = (factor.clone(), Tensor::new(y.0.block.map(|v| v * a)));
                y.record(result, move |_, dy| dy.map(|d| d * factor.0.block[0]))
            } else {
                y.record(Tensor::new(y.0.block.map(|v| v + b)), |_, dy| dy)
            };
        }
        y.backward([1.0; 6])[0]
    };
    Work::new(work, |dx| vec![dx])
}
