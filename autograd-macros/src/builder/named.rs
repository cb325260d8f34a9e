//! A parameter's type as the builder writes it: with names for what is anonymous in it.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{GenericArgument, Lifetime, PathArguments, Type, TypeParamBound};

use crate::model::{PRIMITIVES, Param, ParamKind, bare, held};
use crate::tokens::is_one_of;

pub(super) struct Named {
    pub(super) ty: TokenStream,
    pub(super) hidden: Hidden,
    pub(super) lifetimes: Vec<Lifetime>,
    pub(super) types: Vec<TokenStream>,
    pub(super) outlives: Vec<TokenStream>,
}

/// Whether a type may have lifetimes that are not written, as `Names` where it is `Names<'a>`. They
/// cannot be named, so its lifetimes stay as they are, and the type stands only where that is legal:
/// among the parameters of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hidden {
    No,
    /// The only lifetime of the type, so what a function returns may hide it too.
    Alone,
    AmongOthers,
}

impl Named {
    /// `parameters`: the type parameters in scope; `taken`: the lifetimes that the user wrote.
    pub(super) fn new(
        param: &Param,
        position: usize,
        parameters: &[String],
        taken: &[String],
        may_hide: bool,
    ) -> Self {
        let mut ty = param.ty.clone();
        let hidden = match &param.kind {
            ParamKind::Plain { .. } if may_hide => Hidden::of(&ty, parameters),
            _ => Hidden::No,
        };
        let names = hidden == Hidden::No;
        let (lifetimes, types, outlives) = (Vec::new(), Vec::new(), Vec::new());
        let mut namer = Namer { position, parameters, taken, names, lifetimes, types, outlives };
        namer.ty(&mut ty);
        let Namer { lifetimes, types, outlives, .. } = namer;
        Self { ty: ty.to_token_stream(), hidden, lifetimes, types, outlives }
    }
}

impl Hidden {
    fn of(ty: &Type, parameters: &[String]) -> Self {
        let mut found = Found { hidden: 0, written: 0 };
        found.look(ty, parameters);
        match found {
            Found { hidden: 0, .. } => Self::No,
            Found { hidden: 1, written: 0 } => Self::Alone,
            _ => Self::AmongOthers,
        }
    }
}

struct Found {
    /// Types that may hide some.
    hidden: usize,
    /// Those that are seen, be they named or not.
    written: usize,
}

impl Found {
    fn look(&mut self, ty: &Type, parameters: &[String]) {
        match bare(ty) {
            Type::Reference(_) => self.written += 1,
            Type::Path(path) if path.qself.is_none() => self.path(&path.path, parameters),
            _ => {}
        }
        held(ty).into_iter().for_each(|ty| self.look(ty, parameters));
    }

    fn path(&mut self, path: &syn::Path, parameters: &[String]) {
        let (Some(first), Some(last)) = (path.segments.first(), path.segments.last()) else {
            return;
        };
        let lifetimes = match &last.arguments {
            PathArguments::AngleBracketed(arguments) => {
                let of = |of: &&GenericArgument| matches!(of, GenericArgument::Lifetime(_));
                arguments.args.iter().filter(of).count()
            }
            _ => 0,
        };
        self.written += lifetimes;
        let names = |of: &Ident| is_one_of(of, WITHOUT_LIFETIME) || is_one_of(of, PRIMITIVES);
        let known = names(&last.ident)
            || names(&first.ident)
            || parameters.iter().any(|parameter| first.ident == parameter);
        if !known && lifetimes == 0 {
            self.hidden += 1;
        }
    }
}

/// Types by whose names it is known that they have no lifetime, beside the primitive ones.
const WITHOUT_LIFETIME: &str = "Self String Vec Option Result Box Rc Arc Cell RefCell Mutex RwLock \
    HashMap HashSet BTreeMap BTreeSet Range RangeInclusive Duration Instant Path PathBuf PhantomData Tensor";

/// The type of the value given for the parameter at this position, whatever it hides.
pub(super) fn of(position: usize) -> Ident {
    format_ident!("Given{position}")
}

/// The same of the `impl Trait` at this place in it.
pub(super) fn implemented(position: usize, place: usize) -> Ident {
    format_ident!("Given{position}_{place}")
}

/// Names what is anonymous in a type: lifetimes, and `impl Trait`.
struct Namer<'a> {
    position: usize,
    parameters: &'a [String],
    taken: &'a [String],
    names: bool,
    lifetimes: Vec<Lifetime>,
    types: Vec<TokenStream>,
    outlives: Vec<TokenStream>,
}

impl Namer<'_> {
    /// A short name: the compiler offers it where a type hides its lifetime.
    fn lifetime(&mut self) -> Lifetime {
        let letter = u8::try_from(self.position).ok().filter(|position| *position < 26);
        let mut name = match letter {
            Some(position) => format!("'{}", char::from(b'a' + position)),
            None => format!("'a{}", self.position),
        };
        if !self.lifetimes.is_empty() {
            name = format!("{name}_{}", self.lifetimes.len());
        }
        while self.taken.contains(&name) {
            name.push('_');
        }
        let lifetime = Lifetime::new(&name, Span::mixed_site());
        self.lifetimes.push(lifetime.clone());
        lifetime
    }

    /// Lifetimes and type parameters behind a reference must outlive it.
    fn outlive(&mut self, tokens: TokenStream, reference: &Lifetime) {
        let mut quoted = false;
        for tree in tokens {
            match tree {
                TokenTree::Punct(punct) => quoted = punct.as_char() == '\'',
                TokenTree::Ident(name) => {
                    let text = name.to_string();
                    if quoted && text != "static" {
                        let lifetime = Lifetime { apostrophe: name.span(), ident: name };
                        self.outlives.push(quote!(#lifetime: #reference));
                    } else if !quoted
                        && (self.parameters.contains(&text) || text.starts_with("Given"))
                    {
                        self.outlives.push(quote!(#name: #reference));
                    }
                    quoted = false;
                }
                TokenTree::Group(group) => {
                    // What functions take and return lives by itself.
                    if group.delimiter() != proc_macro2::Delimiter::Parenthesis {
                        self.outlive(group.stream(), reference);
                    }
                    quoted = false;
                }
                TokenTree::Literal(_) => quoted = false,
            }
        }
    }

    fn ty(&mut self, ty: &mut Type) {
        match ty {
            Type::Reference(reference) => {
                let unnamed = reference.lifetime.as_ref().is_none_or(|name| name.ident == "_");
                let anonymous = self.names && unnamed;
                if anonymous {
                    reference.lifetime = Some(self.lifetime());
                }
                self.ty(&mut reference.elem);
                if let (true, Some(lifetime)) = (anonymous, &reference.lifetime) {
                    self.outlive(reference.elem.to_token_stream(), lifetime);
                }
            }
            Type::Slice(slice) => self.ty(&mut slice.elem),
            Type::Array(array) => self.ty(&mut array.elem),
            Type::Paren(paren) => self.ty(&mut paren.elem),
            Type::Group(group) => self.ty(&mut group.elem),
            Type::Ptr(pointer) => self.ty(&mut pointer.elem),
            Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(|ty| self.ty(ty)),
            Type::Path(path) => {
                if let Some(qself) = &mut path.qself {
                    self.ty(&mut qself.ty);
                }
                self.path(&mut path.path);
            }
            Type::TraitObject(object) => self.bounds(object.bounds.iter_mut()),
            Type::ImplTrait(object) => {
                self.bounds(object.bounds.iter_mut());
                let bounds = &object.bounds;
                let ident = implemented(self.position, self.types.len());
                self.types.push(quote!(#ident: #bounds));
                *ty = Type::Path(syn::TypePath {
                    attrs: Vec::new(),
                    qself: None,
                    path: ident.into(),
                });
            }
            _ => {}
        }
    }

    fn bounds<'b>(&mut self, bounds: impl Iterator<Item = &'b mut TypeParamBound>) {
        for bound in bounds {
            match bound {
                TypeParamBound::Trait(bound) => self.path(&mut bound.path),
                TypeParamBound::Lifetime(lifetime) if self.names && lifetime.ident == "_" => {
                    *lifetime = self.lifetime();
                }
                _ => {}
            }
        }
    }

    /// What functions take and return (`Fn(&T) -> &U`) has rules of its own, and stays.
    fn path(&mut self, path: &mut syn::Path) {
        for segment in &mut path.segments {
            let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else { continue };
            for argument in &mut arguments.args {
                match argument {
                    GenericArgument::Type(ty) => self.ty(ty),
                    GenericArgument::Lifetime(lifetime) if self.names && lifetime.ident == "_" => {
                        *lifetime = self.lifetime();
                    }
                    GenericArgument::AssocType(assoc) => self.ty(&mut assoc.ty),
                    _ => {}
                }
            }
        }
    }
}
