//! What is special in the expansion of an elementwise op: the functions of the block, the formulas, `try_apply`.

mod apply;
mod formula;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::GenericParam;

use crate::attributes::is;
use crate::check::types::is_primitive;
use crate::elementwise::bodies::Names;
use crate::elementwise::parse::Kind;
use crate::expand::with_arguments;
use crate::expansion::{Expansion, Mode};
use crate::fallback;
use crate::generics::generated;
use crate::library::private;
use crate::model::{Function, allow_by_value, allow_many};
use crate::tokens::{is_punct, mentions, regroup};

pub(crate) use apply::TRY_DOC;

impl Expansion<'_> {
    /// The user's function: always inlined into the loops, and made generic if the user left that out.
    pub(crate) fn formula_function(&self, function: &Function) -> TokenStream {
        if let Mode::Reported(reported) = &self.mode {
            let mut function = self.with_lane(function);
            let names = Names::of(&function);
            function.body = regroup(&function.body, names.corrected(function.body.stream()));
            return fallback::with_error_types(reported, &function, self.absent(&function));
        }
        let Function { vis, sig, mut body, .. } = self.completed(function);
        if function.sig.ident == "forward"
            && let Some(read) = self.read_by_backward(&body.stream())
        {
            body = regroup(&body, read);
        }
        let (hidden, attrs) = (self.layer.hidden(function), function.own_attributes());
        let inlined = attrs.iter().any(|attr| is(attr, &["inline"]));
        let inline = (!inlined)
            .then(|| quote!(#[cfg_attr(clippy, inline)] #[cfg_attr(not(clippy), inline(always))]));
        let unused = matches!(self.mode, Mode::Refused).then(|| quote!(#[allow(unused_variables)]));
        let many = allow_many(sig.inputs.len());
        let mut plain = self.layer.forward.iter().flat_map(|forward| forward.of(Kind::Plain));
        let by_value = plain.any(|param| !is_primitive(&param.ty)).then(allow_by_value);
        quote!(#(#attrs)* #hidden #inline #unused #many #by_value #vis #sig #body)
    }

    /// Forward's body with a use of the parameters that only backward reads: it gets them by their names.
    fn read_by_backward(&self, body: &TokenStream) -> Option<TokenStream> {
        let forward = self.layer.forward.as_ref()?;
        let given = self.layer.backward.as_ref()?.params.iter().filter_map(|of| of.name.as_ref());
        let unread: Vec<_> = given
            .filter(|name| !mentions(body, &name.to_string()))
            .filter_map(|name| forward.params.iter().find(|param| param.ident == *name))
            .map(|param| &param.ident)
            .collect();
        let is_plain =
            !unread.is_empty() && !is_punct(body.clone().into_iter().next().as_ref(), '#');
        is_plain.then(|| quote!(let _ = (#(&#unread,)*); #body))
    }

    /// `fn forward(x: Real) -> Real` becomes `fn forward<L: Lane>(x: Real<L>) -> Real<L>`.
    fn with_lane(&self, function: &Function) -> Function {
        let mut function = function.clone();
        let own = function.sig.generics.type_params().next().map(|param| param.ident.clone());
        let lane = own.clone().unwrap_or_else(|| self.lane());
        if add_arguments(&mut function, "Real Mask", &lane) && own.is_none() {
            let p = private();
            let parameter: GenericParam = syn::parse_quote!(#lane: #p::elementwise::Lane);
            function.sig.generics.params.push(parameter);
        }
        function
    }

    /// The function with its lane, and in backward with the lane of `Grads`.
    fn completed(&self, function: &Function) -> Function {
        let mut function = self.with_lane(function);
        let mut backward = self.layer.backward.iter().map(|of| of.returns.by_name());
        let by_name = function.sig.ident == "backward" && backward.any(|of| of.is_some());
        let lane = function.sig.generics.type_params().next().map(|param| param.ident.clone());
        if let Some(lane) = lane.filter(|_| by_name) {
            add_arguments(&mut function, "Grads", &lane);
        }
        function
    }

    fn lane(&self) -> Ident {
        let forward = self.layer.forward.as_ref().map(|forward| self.written(forward));
        let plain = forward.into_iter().flat_map(|forward| forward.of(Kind::Plain));
        let named = self.layer.rules().any(|rule| rule.trees().mentions("L"));
        self.layer.parameter(if named { "__L" } else { "L" }, plain.map(|param| &param.ty))
    }

    fn struct_name(&self, which: &str) -> Ident {
        generated(&self.layer.name, which)
    }
}

/// Writes `Real<L>` for `Real`, and so on. Returns whether the signature had such a name.
fn add_arguments(function: &mut Function, names: &str, lane: &Ident) -> bool {
    let arguments = quote!(<#lane>);
    let sig = with_arguments(function.sig.to_token_stream(), names, &arguments);
    let Some(Ok(sig)) = sig.map(syn::parse2) else { return false };
    function.sig = sig;
    if let Some(body) = with_arguments(function.body.stream(), names, &arguments) {
        function.body = regroup(&function.body, body);
    }
    true
}
