// a plain parameter's type hides its lifetimes, as in any function
use std::collections::HashMap;
use std::panic::Location;

use autograd_core::prelude::*;

pub struct Names<'a>(&'a str);

pub struct Pair<'a, 'b>(&'a str, &'b str);

pub type Count = usize;
pub type Weights = [f64];
pub type Map = fn(&Tensor<f64>) -> Tensor<f64>;

#[derive(Clone, Copy)]
pub enum Reduction {
    Sum,
    Mean,
}

#[py_layer]
impl Named {
    pub fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        names: Names,
        more: Option<Names>,
        pair: &Pair,
        table: &HashMap<&str, Names>,
        #[default(2)] times: usize,
    ) -> autograd_core::Result<(Tensor<f64>, String)> {
        let more = more.map_or("", |more| more.0);
        let text = format!("{}{more}{}{}{}", names.0, pair.0, pair.1, table["z"].0);
        Ok((x * times as f64, text))
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

// A type without hidden lifetimes is converted as before.
#[py_layer]
impl<T: Float> Plain<T> {
    pub fn forward<F: Fn(&Tensor<T>) -> Tensor<T>>(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        count: Count,
        weights: &Weights,
        map: Map,
        reduction: Reduction,
        own: F,
        maybe: Option<&[Reduction]>,
    ) -> Tensor<T> {
        let _ = (map(&Tensor::from(1.0)), maybe);
        let scale = match reduction {
            Reduction::Sum => 1.0,
            Reduction::Mean => 0.5,
        };
        own(x) * (count as f64 * weights[0] * scale)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy.clone()
    }
}

// A default may hide them too; parameters that only the caller can give may be given by name.
#[py_layer]
impl Defaulted {
    pub fn forward<K: Kind, const N: usize>(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[default(Names("default"))] names: Names,
        #[default(&Pair("a", "b"))] pair: &Pair,
        #[default(Reduction::Mean)] reduction: Reduction,
        by: impl Fn(f64) -> f64,
    ) -> (Tensor<f64>, usize) {
        let count = names.0.len() + pair.0.len() + pair.1.len() + N;
        let factor = if matches!(reduction, Reduction::Mean) { K::FACTOR } else { 0.0 };
        (x * by(factor), count)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

pub trait Kind {
    const FACTOR: f64;
}

impl Kind for u8 {
    const FACTOR: f64 = 8.0;
}

#[py_layer]
impl Chosen {
    pub fn forward<K: Kind>(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * K::FACTOR
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 8.0
    }
}

// Both functions of the builder know the location of the call.
#[py_layer]
impl Refuses {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, names: Names) -> Tensor<f64> {
        x * names.0.len() as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        Tensor::ones([dy.shape().len() + 7])
    }
}

#[test]
fn compiles_and_runs() {
    let text = String::from("ab");
    let (x, names, pair) = (Tensor::from(3.0), Names(&text), Pair(&text, "cd"));
    x.set_stop_gradient(false);
    let table = HashMap::from([("z", Names(&text))]);
    let (y, text) = Named::apply(&x, Names("1"), None, &pair, &table, 3).unwrap();
    assert_eq!((y.item(), text.as_str()), (9.0, "1abcdab"));
    let call = Named::with().names(names).pair(&pair).table(&table);
    let (y, text) = call.more(Some(Names("+"))).x(&x).apply().unwrap();
    assert_eq!((y.item(), text.as_str()), (6.0, "ab+abcdab"));
    y.backward().unwrap();
    assert_eq!(x.grad().unwrap().item(), 2.0);

    let weights = vec![2.0];
    let call = Plain::with().count(3).weights(&weights).map(Tensor::tanh);
    let call = call.reduction(Reduction::Sum).maybe(Some(&[Reduction::Mean])).own(|x| x + 1.0);
    assert_eq!(call.x(&x).apply().item(), 24.0);
    let call = Plain::with().count(1).weights(&[1.0]).map(|x| x.exp()).reduction(Reduction::Mean);
    assert_eq!(call.maybe(None).own(Tensor::square).x(&x).try_apply().unwrap().item(), 4.5);

    let own = String::from("own");
    let (y, count) = Defaulted::apply::<u8, 1>(&x, Names(&own), &pair, Reduction::Sum, |f| f + 1.0);
    assert_eq!((y.item(), count), (3.0, 8));
    let call = Defaulted::with().x(&x).names(Names(&own)).pair(&pair).by(|f| f);
    let (y, count) = call.try_apply::<u8, 1, _>().unwrap();
    assert_eq!((y.item(), count), (24.0, 8));
    let call = Defaulted::with().x(&x).reduction(Reduction::Sum).by(|f| f);
    let (y, count) = call.apply::<u8, 2, _>();
    assert_eq!((y.item(), count), (0.0, 11));
    assert_eq!(Chosen::with().x(&x).apply::<u8>().item(), 24.0);

    let text = "abc".to_owned();
    let line = Location::caller().line() + 1;
    let y = Refuses::with().names(Names(&text)).x(&x).apply();
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains(&format!(":{line}:")), "{error}");
    let line = Location::caller().line() + 1;
    let error = Refuses::apply(&x, Names("a")).backward().unwrap_err().to_string();
    assert!(error.contains(&format!(":{line}:")), "{error}");
}
