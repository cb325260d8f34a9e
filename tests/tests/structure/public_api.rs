//! The public names that `golden/public_api.txt` recorded at the last release: none may be removed or
//! change its signature without a breaking version. New names are allowed.
//!
//! The sources are read, not a compiled form: the lint `unreachable_pub` proves that every `pub` item
//! can be reached. `UPDATE_API=1 cargo test -p tests --test structure public_api` records the names again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::Token;
use syn::parse::ParseStream;
use syn::token::Brace;
use syn::visit::{self, Visit};

/// Public items, one line each.
#[derive(Default)]
struct Listing {
    module: String,
    lines: BTreeSet<String>,
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

fn is_hidden(attributes: &[syn::Attribute]) -> bool {
    let text = |attribute: &syn::Attribute| attribute.to_token_stream().to_string();
    let says = |text: String| text.contains("hidden") || text.contains("cfg (test)");
    // The text of a doc comment does not hide an item.
    attributes
        .iter()
        .filter(|attribute| attribute.meta.require_name_value().is_err())
        .map(text)
        .any(says)
}

fn text(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string()
}

/// A line in a normal form, for signatures that can be written in several ways.
fn plain(line: &str) -> String {
    let line = line.replace(" ,)", ")").replace("(mut self", "(self");
    line.strip_suffix(" ,").unwrap_or(&line).to_owned()
}

fn shown(field: &syn::Field) -> String {
    format!("{} : {}", text(&field.ident), text(&field.ty))
}

/// The variants of the macro `errors`, with the fields that it adds.
fn errors(input: ParseStream<'_>) -> syn::Result<Vec<String>> {
    syn::Attribute::parse_outer(input)?;
    input.parse::<syn::Visibility>()?;
    input.parse::<Token![enum]>()?;
    let name: syn::Ident = input.parse()?;
    let variants;
    syn::braced!(variants in input);
    let mut found = Vec::new();
    while !variants.is_empty() {
        syn::Attribute::parse_outer(&variants)?;
        let variant: syn::Ident = variants.parse()?;
        let mut added = String::new();
        if variants.peek(syn::token::Paren) {
            added = variants.parse::<TokenTree>()?.to_string();
        }
        let mut fields: Vec<String> =
            variants.parse::<syn::FieldsNamed>()?.named.iter().map(shown).collect();
        if !added.is_empty() {
            fields.insert(0, "op : & 'static str".to_owned());
        }
        if added.contains("location") {
            fields.push("location : & 'static Location < 'static >".to_owned());
        }
        found.push(format!("{name}::{variant} {{ {} }}", fields.join(", ")));
        variants.parse::<Token![=]>()?;
        variants.parse::<TokenTree>()?;
        variants.parse::<Token![,]>()?;
    }
    Ok(found)
}

impl Listing {
    fn add(&mut self, line: &str) {
        self.lines.insert(plain(&format!("{}: {line}", self.module)));
    }

    fn add_enum(&mut self, item: &syn::ItemEnum) {
        if is_public(&item.vis) && !is_hidden(&item.attrs) {
            for variant in &item.variants {
                let fields: Vec<String> = variant.fields.iter().map(shown).collect();
                self.add(&format!("{}::{} {{ {} }}", item.ident, variant.ident, fields.join(", ")));
            }
        }
    }
}

/// The bounds of a method, as they are written after its signature.
fn bounds(input: ParseStream<'_>) -> syn::Result<String> {
    let bounds = input.parse::<Option<syn::WhereClause>>()?;
    Ok(bounds.map_or(String::new(), |bounds| format!(" {}", text(&bounds))))
}

/// The methods that the macros `pairs`, `losses`, `options`, `parts` and `methods` generate.
fn made(input: ParseStream<'_>) -> syn::Result<Vec<String>> {
    let mut found = Vec::new();
    while !input.is_empty() {
        syn::Attribute::parse_outer(input)?;
        if input.parse::<Option<Token![let]>>()?.is_some() {
            while input.parse::<Option<Token![;]>>()?.is_none() {
                input.parse::<TokenTree>()?;
            }
            continue;
        }
        input.parse::<Option<Token![pub]>>()?;
        input.parse::<Token![fn]>()?;
        let mut names: Vec<syn::Ident> = Vec::new();
        while !input.peek(Token![<]) && !input.peek(syn::token::Paren) {
            names.push(input.parse()?);
            input.parse::<Option<Token![,]>>()?;
        }
        let generics = text(&input.parse::<syn::Generics>()?);
        let generics = if generics.is_empty() { generics } else { format!("{generics} ") };
        let given;
        syn::parenthesized!(given in input);
        let mut inputs = Vec::new();
        while !given.is_empty() && !given.peek(Token![;]) {
            inputs.push(text(&given.parse::<syn::FnArg>()?));
            given.parse::<Option<Token![,]>>()?;
        }
        let inputs = inputs.join(" , ");
        // Further arguments of `losses`.
        given.parse::<TokenStream>()?;
        if let [name] = &names[..] {
            let (own, output) = match input.parse::<Option<Token![->]>>()? {
                Some(_) => ("", text(&input.parse::<syn::Type>()?)),
                None if name == "new" => ("", "Self".to_owned()),
                None => ("self , ", "Self".to_owned()),
            };
            while !input.peek(Token![where]) && !input.peek(Token![;]) && !input.peek(Brace) {
                input.parse::<TokenTree>()?;
            }
            let bounds = bounds(input)?;
            found.push(format!("fn {name} {generics}({own}{inputs}) -> {output}{bounds}"));
            input.parse::<TokenTree>()?;
            continue;
        }
        input.parse::<Token![->]>()?;
        let output = text(&input.parse::<syn::Type>()?);
        while !input.peek(Token![where]) && !input.peek(Brace) {
            input.parse::<TokenTree>()?;
        }
        let bounds = bounds(input)?;
        input.parse::<syn::Block>()?;
        for (pair, names) in names.chunks(2).enumerate() {
            let more = if pair == 0 { "" } else { " , reduction : LossReduction" };
            for (name, output) in names.iter().zip([&output, &format!("Result < {output} >")]) {
                found.push(format!("fn {name} {generics}({inputs}{more}) -> {output}{bounds}"));
            }
        }
    }
    Ok(found)
}

/// A type and its methods that the macro `rule` generates.
fn made_of_type(input: ParseStream<'_>) -> syn::Result<(syn::Ident, Vec<String>)> {
    syn::Attribute::parse_outer(input)?;
    input.parse::<Token![pub]>()?;
    input.parse::<Token![struct]>()?;
    let name = input.parse()?;
    input.parse::<Token![;]>()?;
    let mut methods = made(input)?;
    methods.push("fn learning_rate (self , learning_rate : f64) -> Self".to_owned());
    Ok((name, methods))
}

impl<'ast> Visit<'ast> for Listing {
    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if item.mac.path.is_ident("errors") {
            let variants = item.mac.parse_body_with(errors).unwrap();
            variants.iter().for_each(|variant| self.add(variant));
        } else if let Ok((name, methods)) = item.mac.parse_body_with(made_of_type) {
            self.add(&format!("struct {name}  {{  }}"));
            methods.iter().for_each(|method| self.add(&format!("{name}::{method}")));
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_hidden(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_public(&item.vis) && !is_hidden(&item.attrs) {
            self.add(&text(&item.sig));
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if is_public(&item.vis) && !is_hidden(&item.attrs) {
            let fields = item.fields.iter().filter(|field| is_public(&field.vis));
            let fields: Vec<String> = fields.map(shown).collect();
            let (name, generics) = (&item.ident, text(&item.generics));
            self.add(&format!("struct {name} {generics} {{ {} }}", fields.join(", ")));
        }
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_enum(item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if is_public(&item.vis) && !is_hidden(&item.attrs) {
            self.add(&format!("trait {} : {}", item.ident, text(&item.supertraits)));
            for part in &item.items {
                if let syn::TraitItem::Fn(function) = part
                    && !is_hidden(&function.attrs)
                {
                    self.add(&format!("{}::{}", item.ident, text(&function.sig)));
                }
            }
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_hidden(&item.attrs) || item.trait_.is_some() {
            return;
        }
        let owner = text(&item.self_ty);
        for part in &item.items {
            match part {
                syn::ImplItem::Fn(function)
                    if is_public(&function.vis) && !is_hidden(&function.attrs) =>
                {
                    self.add(&format!("{owner}::{}", text(&function.sig)));
                }
                syn::ImplItem::Macro(part) => {
                    for method in part.mac.parse_body_with(made).unwrap_or_default() {
                        self.add(&format!("{owner}::{method}"));
                    }
                }
                _ => {}
            }
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if is_public(&item.vis) && !is_hidden(&item.attrs) {
            let mut names = BTreeSet::new();
            leaves(&item.tree, &mut names);
            for name in names {
                self.add(&format!("use {name}"));
            }
        }
    }
}

/// The items that a file re-exports from the kernels, as `module: name`.
#[derive(Default)]
struct Reexported(BTreeSet<String>);

impl<'ast> Visit<'ast> for Reexported {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let syn::UseTree::Path(path) = &item.tree
            && let syn::UseTree::Path(below) = &*path.tree
            && path.ident == "autograd_kernels"
            && is_public(&item.vis)
        {
            let mut names = BTreeSet::new();
            leaves(&below.tree, &mut names);
            self.0.extend(names.into_iter().map(|name| format!("{}: {name}", below.ident)));
        }
    }
}

/// The item of a line: that of `formula: Real < L >::fn log (self) -> Self` is `formula: Real`.
fn about(line: &str) -> String {
    let (module, item) = line.split_once(": ").unwrap_or_default();
    let kind = ["struct ", "trait ", "use "].iter().find_map(|kind| item.strip_prefix(kind));
    let name = kind.unwrap_or(item).split(|c: char| !c.is_alphanumeric()).next();
    format!("{module}: {}", name.unwrap_or_default())
}

/// The names that a `use` introduces.
fn leaves(tree: &syn::UseTree, names: &mut BTreeSet<String>) {
    match tree {
        syn::UseTree::Path(path) => leaves(&path.tree, names),
        syn::UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        syn::UseTree::Rename(name) => drop(names.insert(name.rename.to_string())),
        syn::UseTree::Glob(_) => drop(names.insert("*".into())),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, names)),
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.ends_with("private.rs") || path.ends_with("tests.rs") => {}
            false => found.push(path),
        }
    }
}

fn parsed(path: &Path) -> syn::File {
    syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap()
}

fn public_items(root: &Path, reexported: &mut Reexported) -> Listing {
    let mut files = Vec::new();
    sources(root, &mut files);
    let mut listing = Listing::default();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        // By the module only: items may move within it.
        let inside = path.strip_prefix(root).unwrap();
        let module = inside.iter().next().unwrap().to_string_lossy();
        listing.module = module.trim_end_matches(".rs").to_owned();
        let file = parsed(path);
        listing.visit_file(&file);
        reexported.visit_file(&file);
    }
    listing
}

#[test]
fn nothing_public_went_or_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut reexported = Reexported::default();
    reexported.visit_file(&parsed(&folder.join("../autograd-core/src/private.rs")));
    let mut listing = public_items(&folder.join("../autograd-core/src"), &mut reexported);
    // The kernels' items that users can see.
    let below = public_items(&folder.join("../autograd-kernels/src"), &mut Reexported::default());
    let seen = below.lines.into_iter().filter(|line| reexported.0.contains(&about(line)));
    listing.lines.extend(seen);
    let record = folder.join("golden/public_api.txt");
    if std::env::var_os("UPDATE_API").is_some() {
        let lines: Vec<String> = listing.lines.iter().cloned().collect();
        fs::write(&record, lines.join("\n") + "\n").unwrap();
    }
    let record = fs::read_to_string(record).unwrap();
    let gone: Vec<&str> =
        record.lines().filter(|line| !listing.lines.contains(&plain(line))).collect();
    assert!(record.lines().count() > 500, "the record is too short to be one");
    assert!(
        gone.is_empty(),
        "gone or changed since the record, which is a breaking change; if it is meant, record anew \
         with UPDATE_API=1 and say so in CHANGELOG.md:\n{}",
        gone.join("\n")
    );
}
