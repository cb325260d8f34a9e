//! The table of a line, and the code that compares the lengths in a call.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use super::parse::{Axis, Length, Line, TensorShape};
use super::rules::integers;
use crate::library::private;
use crate::model::{Form, Forward, Layer, output_form};
use crate::tokens::{local, plain_name};

/// The checks of a call.
pub(crate) struct Checks {
    /// Before forward.
    pub(crate) before: TokenStream,
    /// The outputs, after forward. `None` if the line says nothing of them.
    pub(crate) after: Option<TokenStream>,
}

/// The constant with the table.
pub(crate) fn table(layer: &Layer, line: &Line) -> TokenStream {
    let Some(forward) = &layer.forward else { return TokenStream::new() };
    let p = private();
    let (op, text) = (plain_name(&layer.name), line.to_string());
    let integers = used_integers(layer, forward, line);
    let integers = integers.iter().map(plain_name);
    let inputs = forward.inputs().map(|(param, input)| {
        let (name, shape) = (plain_name(&param.ident), line.of(&param.ident));
        let shape = shape.map(|shape| tensor_shape(shape, input.form));
        quote!((#name, #shape))
    });
    let outputs = line.outputs.iter().zip(&forward.outputs.parts).map(|(shape, part)| {
        tensor_shape(shape, output_form(part).map_or(Form::One, |(form, _)| form))
    });
    quote! {{
        use #p::shapes::{Axis, Form, Length, Shapes, TensorShape};
        &Shapes {
            op: #op, line: #text, inputs: &[#(#inputs),*], integers: &[#(#integers),*], outputs: &[#(#outputs),*],
        }
    }}
}

/// The code of a shape in the table.
fn tensor_shape(shape: &TensorShape, form: Form) -> TokenStream {
    let form = match form {
        Form::One => quote!(One),
        Form::Optional => quote!(Optional),
        Form::List => quote!(List),
    };
    let axes = match &shape.axes {
        None => quote!(::core::option::Option::None),
        Some(axes) => {
            let axes = axes.iter().map(|axis| match axis {
                Axis::One(length) => {
                    let length = tabled(length);
                    quote!(Axis::One(#length))
                }
                Axis::Many(name) => {
                    let name = plain_name(name);
                    quote!(Axis::Many(#name))
                }
                Axis::Broadcast(a, b) => {
                    let (a, b) = (plain_name(a), plain_name(b));
                    quote!(Axis::Broadcast(#a, #b))
                }
            });
            quote!(::core::option::Option::Some(&[#(#axes),*]))
        }
    };
    let count = shape.count.as_ref().map_or_else(|| quote!(Length::Any), tabled);
    quote!(TensorShape { form: Form::#form, axes: #axes, count: #count })
}

fn tabled(length: &Length) -> TokenStream {
    match length {
        Length::Any(_) => quote!(Length::Any),
        Length::Number(number, _) => quote!(Length::Number(#number)),
        Length::Name(name) => {
            let name = plain_name(name);
            quote!(Length::Name(#name))
        }
        Length::Computed(left, sign, right) => {
            let (left, right) = (tabled(left), tabled(right));
            quote!(Length::Computed(&#left, #sign, &#right))
        }
    }
}

impl Line {
    pub(crate) fn of(&self, input: &Ident) -> Option<&TensorShape> {
        let is_it = |(name, _): &&(Ident, TensorShape)| plain_name(name) == plain_name(input);
        self.inputs.iter().find(is_it).map(|(_, shape)| shape)
    }

    /// The names of all lengths.
    pub(crate) fn names(&self) -> Vec<Ident> {
        let mut names: Vec<Ident> = Vec::new();
        self.lengths().for_each(|length| {
            length.names(&mut |name| {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            });
        });
        names
    }

    /// Whether a length names this parameter.
    pub(crate) fn mentions(&self, name: &Ident) -> bool {
        let (mut found, text) = (false, plain_name(name));
        self.lengths().for_each(|length| length.names(&mut |of| found |= plain_name(of) == text));
        found
    }

    /// All lengths, of axes and of lists.
    fn lengths(&self) -> impl Iterator<Item = &Length> {
        let shapes = self.inputs.iter().map(|(_, shape)| shape).chain(&self.outputs);
        shapes.flat_map(|shape| {
            let axes = shape.axes.iter().flatten().filter_map(|axis| match axis {
                Axis::One(length) => Some(length),
                Axis::Many(_) | Axis::Broadcast(..) => None,
            });
            axes.chain(&shape.count)
        })
    }
}

/// The integers that the line mentions.
fn used_integers(layer: &Layer, forward: &Forward, line: &Line) -> Vec<Ident> {
    let mut integers = integers(layer, forward);
    integers.retain(|integer| line.mentions(integer));
    integers
}

/// The code of a call's checks. `inputs` are its tensors; `returned` is the result of forward with its outputs.
pub(crate) fn checks(
    layer: &Layer,
    forward: &Forward,
    line: &Line,
    inputs: &Ident,
    returned: &Ident,
) -> Checks {
    let p = private();
    let (integers, bound) = (local("integers"), local("bound"));
    let given = used_integers(layer, forward, line);
    let mut code = Code::default();
    for (position, integer) in given.iter().enumerate() {
        let place = code.bind(integer);
        code.on(quote!(#integers[#position]), quote!(::core::option::Option::Some(#place)));
    }
    let tensors: Vec<_> = forward
        .inputs()
        .filter_map(|(param, of)| Some((param, of.form, line.of(&param.ident)?)))
        .collect();
    let of = |form| tensors.iter().filter(move |(_, of, _)| *of == form);
    for (param, _, shape) in of(Form::One) {
        let ident = &param.ident;
        if let Some(axes) = &shape.axes {
            let pattern = code.pattern(axes);
            code.on(quote!(#ident.shape()), pattern);
        }
    }
    for (param, _, shape) in of(Form::List) {
        code.list(&param.ident, shape);
    }
    code.solve();
    for (param, _, shape) in of(Form::List) {
        let ident = &param.ident;
        let all = shape.axes.as_ref().map(|axes| code.each(axes));
        code.tests.extend(all.map(|all| quote!(#ident.iter().all(#all))));
    }
    for (param, _, shape) in of(Form::Optional) {
        let ident = &param.ident;
        let Some(axes) = &shape.axes else { continue };
        let test = match code.knows(axes) {
            true => {
                let each = code.each(axes);
                quote!(#ident.as_ref().is_none_or(#each))
            }
            // The table compares what only optional inputs have.
            false => quote!(#ident.is_none()),
        };
        code.tests.push(test);
    }
    let (names, groups) = code.used_by(line);
    let values: Vec<_> = names.iter().chain(&groups).map(|(_, value)| value.clone()).collect();
    let Code { scrutinees, patterns, tests, .. } = &code;
    let table = quote!(Self::SHAPES);
    let lengths = given.iter().map(|integer| quote!(#p::shapes::length(#integer)));
    let captured = local("captured");
    let end = ended(forward, &captured);
    let is_run = end.as_ref().map(|_| quote!(!#p::shapes::is_capturing()));
    let guards: Vec<_> = tests.iter().chain(&is_run).collect();
    let guard = (!guards.is_empty()).then(|| quote!(if #(#guards)&&*));
    let check = quote!(#p::shapes::check_inputs(#table, #inputs, &#integers)?);
    let none = quote!(::core::option::Option::None);
    let otherwise = match end {
        Some(end) => quote!(match #check {
            #none => #none,
            ::core::option::Option::Some(#captured) => return #end,
        }),
        None => quote!({ #check; #none }),
    };
    let before = quote! {
        let #integers = [#(#lengths),*];
        let #bound = match (#(#scrutinees,)*) {
            (#(#patterns,)*) #guard => ::core::option::Option::Some((#(#values,)*)),
            _ => #otherwise,
        };
    };
    let mut code = Code { names: names.clone(), groups: groups.clone(), ..Code::default() };
    let mut places = Vec::new();
    for (_, value) in code.names.iter_mut().chain(&mut code.groups) {
        let place = local(&format!("known{}", places.len()));
        *value = place.to_token_stream();
        places.push(place);
    }
    let (out, fits) = (local("out"), local("fits"));
    let (mut conditions, mut shapes) = (Vec::new(), Vec::new());
    for (position, (shape, part)) in line.outputs.iter().zip(&forward.outputs.parts).enumerate() {
        let position = forward.outputs.tuple.then(|| syn::Index::from(position)).into_iter();
        let part_of = quote!(#out #(.#position)*);
        let (Some(axes), Some((form, _))) = (&shape.axes, output_form(part)) else {
            shapes.push(quote!(#p::Vec::new()));
            continue;
        };
        let borrowed = forward.outputs.tuple.then(|| quote!(&));
        shapes.push(quote!(#p::shapes::OutputShapes::shapes(#borrowed #part_of)));
        if form != Form::List {
            conditions.push(code.fits(&part_of, axes));
            continue;
        }
        let each = code.each(axes);
        conditions.push(quote!(#part_of.iter().all(#each)));
        if let Some(count) = shape.count.as_ref().filter(|count| !matches!(count, Length::Any(_))) {
            let count = code.value(count, &mut Vec::new());
            conditions.push(quote!(#part_of.len() == #count));
        }
    }
    let after = (!conditions.is_empty()).then(|| {
        let check = quote! {
            let #fits = match #bound {
                ::core::option::Option::Some((#(#places,)*)) => #(#conditions)&&*,
                ::core::option::Option::None => false,
            };
            if !#fits {
                #p::shapes::check_outputs(#table, #inputs, &#integers, &[#(#shapes),*])?;
            }
        };
        let of_output = match forward.outputs.fallible {
            true => quote!(if let ::core::option::Option::Some(#out) = #p::Fallible::output(#out) { #check }),
            false => check,
        };
        quote!(if let ::core::result::Result::Ok(#out) = &#returned { #of_output })
    });
    Checks { before, after }
}

/// What a call returns that shows only its line. Programs have ops whose outputs are single tensors.
fn ended(forward: &Forward, captured: &Ident) -> Option<TokenStream> {
    let outputs = &forward.outputs;
    let is_one = |part| matches!(output_form(part), Some((Form::One, _)));
    if !outputs.parts.iter().all(is_one) || outputs.parts.is_empty() {
        return None;
    }
    let parts = outputs.parts.iter().map(|_| quote!(#captured.output()));
    let whole = if outputs.tuple { quote!((#(#parts,)*)) } else { quote!(#(#parts)*) };
    let p = private();
    let whole = match outputs.fallible {
        true => quote!(#p::Fallible::of(::core::result::Result::Ok(#whole))),
        false => whole,
    };
    Some(quote!(::core::result::Result::Ok(#whole)))
}

/// Names, each with an expression.
type Values = Vec<(String, TokenStream)>;

/// Code that compares lengths.
#[derive(Default)]
struct Code {
    names: Values,
    groups: Values,
    scrutinees: Vec<TokenStream>,
    patterns: Vec<TokenStream>,
    tests: Vec<TokenStream>,
    /// Computed lengths that are not compared yet, each with the length of the axis.
    computed: Vec<(TokenStream, Length)>,
    places: usize,
}

fn value_of<'a>(values: &'a [(String, TokenStream)], name: &Ident) -> Option<&'a TokenStream> {
    let name = plain_name(name);
    values.iter().find(|(of, _)| *of == name).map(|(_, value)| value)
}

impl Code {
    fn place(&mut self) -> Ident {
        self.places += 1;
        local(&format!("length{}", self.places))
    }

    fn bind(&mut self, name: &Ident) -> Ident {
        let place = self.place();
        self.names.push((plain_name(name), place.to_token_stream()));
        place
    }

    fn on(&mut self, scrutinee: TokenStream, pattern: TokenStream) {
        self.scrutinees.push(scrutinee);
        self.patterns.push(pattern);
    }

    /// The pattern of a shape. New names are bound, known ones are compared.
    fn pattern(&mut self, axes: &[Axis]) -> TokenStream {
        let p = private();
        let axes: Vec<_> = axes
            .iter()
            .map(|axis| match axis {
                Axis::One(Length::Any(_)) => quote!(_),
                Axis::One(length) => self.length(length),
                Axis::Many(name) => {
                    let place = self.place();
                    match value_of(&self.groups, name) {
                        Some(known) => {
                            let test = quote!(#p::shapes::same(#place, #known));
                            self.tests.push(test);
                        }
                        None => self.groups.push((plain_name(name), place.to_token_stream())),
                    }
                    quote!(ref #place @ ..)
                }
                // Reported before: an input has no such axes.
                Axis::Broadcast(..) => quote!(..),
            })
            .collect();
        quote!(&[#(#axes),*])
    }

    /// The pattern of one length.
    fn length(&mut self, length: &Length) -> TokenStream {
        match length {
            Length::Any(_) => quote!(_),
            Length::Number(number, _) => number.to_token_stream(),
            Length::Name(name) => match value_of(&self.names, name).cloned() {
                Some(known) => {
                    let place = self.place();
                    self.tests.push(quote!(#place == #known));
                    place.to_token_stream()
                }
                None => self.bind(name).to_token_stream(),
            },
            Length::Computed(..) => {
                let place = self.place();
                self.computed.push((place.to_token_stream(), length.clone()));
                place.to_token_stream()
            }
        }
    }

    /// The number of tensors of a list, and the names that its first tensor has.
    fn list(&mut self, list: &Ident, shape: &TensorShape) {
        if let Some(count) = &shape.count {
            let pattern = self.length(count);
            self.on(quote!(#list.len()), pattern);
        }
        if let Some(axes) = shape.axes.as_ref().filter(|axes| !self.knows(axes)) {
            let tensor = local("tensor");
            let pattern = self.pattern(axes);
            let first = quote!(#list.first().map(|#tensor| #tensor.shape()));
            self.on(first, quote!(::core::option::Option::Some(#pattern)));
        }
    }

    /// Whether each name in the shape is known.
    fn knows(&self, axes: &[Axis]) -> bool {
        axes.iter().all(|axis| match axis {
            Axis::One(length) => self.has(length),
            Axis::Many(name) => value_of(&self.groups, name).is_some(),
            Axis::Broadcast(..) => true,
        })
    }

    fn has(&self, length: &Length) -> bool {
        let mut all = true;
        length.names(&mut |name| all &= value_of(&self.names, name).is_some());
        all
    }

    /// A closure: whether a tensor has the shape.
    fn each(&self, axes: &[Axis]) -> TokenStream {
        let tensor = local("tensor");
        let fits = self.fits(&tensor.to_token_stream(), axes);
        quote!(|#tensor| #fits)
    }

    /// Whether a tensor has the shape, whose names are known.
    fn fits(&self, tensor: &TokenStream, axes: &[Axis]) -> TokenStream {
        let p = private();
        let mut tests = Vec::new();
        let mut values = |axes: &[Axis]| {
            let values = axes.iter().filter_map(|axis| match axis {
                Axis::One(Length::Any(_)) => Some(quote!(#p::shapes::ANY)),
                Axis::One(length) => Some(self.value(length, &mut tests)),
                Axis::Many(_) | Axis::Broadcast(..) => None,
            });
            values.collect::<Vec<_>>()
        };
        let at = axes.iter().position(|axis| !matches!(axis, Axis::One(_)));
        let (before, after) = axes.split_at(at.unwrap_or(axes.len()));
        let (before, after) = (values(before), values(after));
        let known = |name| value_of(&self.groups, name);
        let fits = match at.map(|at| &axes[at]) {
            Some(Axis::Many(name)) => {
                let group = known(name);
                quote!(#p::shapes::fits(#tensor.shape(), &[#(#before),*], #group, &[#(#after),*]))
            }
            Some(Axis::Broadcast(a, b)) => {
                let (a, b) = (known(a), known(b));
                quote!(#p::shapes::fits_broadcast(#tensor.shape(), &[#(#before),*], #a, #b, &[#(#after),*]))
            }
            _ => quote!(#p::shapes::fits(#tensor.shape(), &[#(#before),*], &[], &[])),
        };
        quote!(#(#tests &&)* #fits)
    }

    /// Finds the names that stand only in computed lengths, and compares the others.
    fn solve(&mut self) {
        loop {
            let computed = std::mem::take(&mut self.computed);
            let mut solved = false;
            for (found, length) in computed {
                match self.solved(&length, &found) {
                    Some((name, value)) if !solved => {
                        self.names.push((name, value));
                        solved = true;
                    }
                    _ => self.computed.push((found, length)),
                }
            }
            if !solved {
                break;
            }
        }
        self.compare_computed();
    }

    fn compare_computed(&mut self) {
        for (found, length) in std::mem::take(&mut self.computed) {
            let mut tests = Vec::new();
            let value = self.value(&length, &mut tests);
            self.tests.append(&mut tests);
            self.tests.push(quote!(#found == #value));
        }
    }

    /// The only name without a value in the length, and the value that this axis gives it.
    fn solved(&mut self, length: &Length, found: &TokenStream) -> Option<(String, TokenStream)> {
        let (left, sign, right) = match length {
            Length::Name(name) if value_of(&self.names, name).is_none() => {
                return Some((plain_name(name), found.clone()));
            }
            Length::Computed(left, sign, right) => (left, *sign, right),
            _ => return None,
        };
        let (side, other) = match (self.has(left), self.has(right)) {
            (false, true) => (left, right),
            (true, false) => (right, left),
            _ => return None,
        };
        let mut tests = Vec::new();
        let other = self.value(other, &mut tests);
        let of_left = self.has(right);
        let value = match (sign, of_left) {
            ('+', _) => {
                tests.push(quote!(#found >= #other));
                quote!((#found - #other))
            }
            ('-', true) => quote!((#found).wrapping_add(#other)),
            ('-', false) => {
                tests.push(quote!(#other >= #found));
                quote!((#other - #found))
            }
            ('*', _) => {
                tests.push(quote!(#other != 0 && #found % #other == 0));
                quote!((#found / #other))
            }
            _ => return None,
        };
        let solved = self.solved(side, &value)?;
        // An inner test uses the value that these tests allow.
        self.tests.splice(0..0, tests);
        Some(solved)
    }

    /// The value of a length whose names are known. `tests`: what must hold for it.
    fn value(&self, length: &Length, tests: &mut Vec<TokenStream>) -> TokenStream {
        match length {
            Length::Any(_) => quote!(0),
            Length::Number(number, _) => number.to_token_stream(),
            Length::Name(name) => value_of(&self.names, name).cloned().unwrap_or_default(),
            Length::Computed(left, sign, right) => {
                let (a, b) = (self.value(left, tests), self.value(right, tests));
                match sign {
                    '+' => quote!((#a).wrapping_add(#b)),
                    '*' => quote!((#a).wrapping_mul(#b)),
                    '-' => {
                        tests.push(quote!(#a >= #b));
                        quote!((#a).wrapping_sub(#b))
                    }
                    _ => {
                        tests.push(quote!(#b != 0));
                        quote!((#a / #b))
                    }
                }
            }
        }
    }

    /// The names and groups that the outputs need, with their values. Computed lengths must not be negative.
    fn used_by(&mut self, line: &Line) -> (Values, Values) {
        let (mut names, mut groups): (Vec<&Ident>, Vec<&Ident>) = (Vec::new(), Vec::new());
        for shape in &line.outputs {
            let mut lengths: Vec<&Length> = shape.count.iter().collect();
            for axis in shape.axes.iter().flatten() {
                match axis {
                    Axis::One(length) => lengths.push(length),
                    Axis::Many(name) => groups.push(name),
                    Axis::Broadcast(a, b) => {
                        let p = private();
                        let both = [a, b].map(|name| value_of(&self.groups, name).cloned());
                        let [of_a, of_b] = both.map(Option::unwrap_or_default);
                        self.tests.push(quote!(#p::shapes::can_broadcast(#of_a, #of_b)));
                        groups.extend([a, b]);
                    }
                }
            }
            for length in lengths {
                length.names(&mut |name| names.push(name));
                let mut tests = Vec::new();
                self.value(length, &mut tests);
                self.tests.append(&mut tests);
            }
        }
        let values = |names: Vec<&Ident>, known: &[(String, TokenStream)]| {
            let mut used: Values = Vec::new();
            for name in names {
                let text = plain_name(name);
                if !used.iter().any(|(of, _)| *of == text) {
                    used.extend(value_of(known, name).map(|value| (text, value.clone())));
                }
            }
            used
        };
        (values(names, &self.names), values(groups, &self.groups))
    }
}
