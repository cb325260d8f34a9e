//! Where expansions find the library: the path that was said, or the name in `Cargo.toml`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;
use std::{env, fs};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};

use crate::expand::{first_span, respanned};

const PACKAGE: &str = "autograd-core";

/// What an expansion calls the library's insides.
#[derive(Clone)]
pub(crate) enum Private {
    /// By a name that it imports. Not a stream: each that is put into another one is a call of the
    /// compiler.
    Name(Ident),
    Path(TokenStream),
}

impl Private {
    pub(crate) fn imported() -> Self {
        Self::Name(Ident::new("__autograd", Span::call_site()))
    }

    /// Placed where an error is to be shown.
    pub(crate) fn at(&self, span: Span) -> Self {
        match self {
            Self::Name(name) => Self::Name(Ident::new(&name.to_string(), span)),
            Self::Path(path) => Self::Path(respanned(path.clone(), span)),
        }
    }
}

impl ToTokens for Private {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Name(name) => name.to_tokens(tokens),
            Self::Path(path) => path.to_tokens(tokens),
        }
    }
}

/// One name for what expansions call: a wrong path is reported once, where it stands.
pub(crate) fn import(said: Option<&syn::Path>) -> TokenStream {
    let (path, mut name) = (private_path(said), Private::imported());
    if let Some(last) = said.and_then(|said| said.segments.last()) {
        name = name.at(last.ident.span());
    }
    let Some(said) = said else {
        return quote!(use #path::{self as #name, Unknown as _};);
    };
    let uses = Ident::new("use", first_span(said));
    quote! {
        #[allow(unused_imports)]
        #uses #path as #name;
        #[allow(unused_imports)]
        use #name::Unknown as _;
    }
}

/// The path of what expansions call.
pub(crate) fn private_path(said: Option<&syn::Path>) -> TokenStream {
    if let Some(path) = said {
        // A path that is not the library's is reported where it stands, by a name that says what misses.
        let place = path.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
        let private = Ident::new("path_of_autograd_core", place);
        return quote!(#path::#private);
    }
    let name = name().unwrap_or_else(|| "autograd_core".to_owned());
    let name = Ident::new(&name, Span::call_site());
    quote!(::#name::private)
}

/// What was found in which manifest, of which time.
struct Found {
    manifest: PathBuf,
    written: SystemTime,
    name: Option<String>,
}

/// The name under which the crate that is compiled knows the library, if it is another than its
/// own. Every op asks, so the answer is kept.
fn name() -> Option<String> {
    static LAST: Mutex<Option<Found>> = Mutex::new(None);
    let manifest = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("Cargo.toml");
    let written = fs::metadata(&manifest).and_then(|data| data.modified()).ok()?;
    let mut last = LAST.lock().ok()?;
    if let Some(last) = &*last
        && last.manifest == manifest
        && last.written == written
    {
        return last.name.clone();
    }
    let text = fs::read_to_string(&manifest).ok()?;
    let name = renamed(&text, || workspace(&manifest)).map(|name| name.replace('-', "_"));
    let name = name.filter(|name| syn::parse_str::<Ident>(name).is_ok());
    *last = Some(Found { manifest, written, name: name.clone() });
    name
}

/// The manifest of the workspace: the next one above that has a table of this name.
fn workspace(manifest: &Path) -> Option<String> {
    let folders = manifest.ancestors().skip(1);
    let mut texts = folders.filter_map(|at| fs::read_to_string(at.join("Cargo.toml")).ok());
    texts.find(|text| text.lines().any(|line| line.trim_start().starts_with("[workspace")))
}

/// The dependency whose package is the library, in the text of a manifest.
fn renamed(manifest: &str, workspace: impl Fn() -> Option<String>) -> Option<String> {
    let own = |entry: &Entry<'_>| !matches!(entry.root, "workspace" | "patch");
    let entries: Vec<Entry<'_>> = entries(manifest).filter(own).collect();
    if let Some(entry) = entries.iter().find(|entry| entry.is_library()) {
        return Some(entry.dependency.to_owned());
    }
    let mut inherited = entries.iter().filter(|entry| entry.field("workspace").is_some());
    let workspace = inherited.clone().next().and_then(|_| workspace())?;
    let shared: Vec<Entry<'_>> =
        self::entries(&workspace).filter(|entry| entry.root == "workspace").collect();
    let found = inherited.find(|entry| {
        shared.iter().any(|other| other.dependency == entry.dependency && other.is_library())
    });
    found.map(|entry| entry.dependency.to_owned())
}

/// `dependency.key = value` in a table of dependencies.
struct Entry<'a> {
    /// The first part of the table's name.
    root: &'a str,
    dependency: &'a str,
    key: &'a str,
    value: &'a str,
}

impl<'a> Entry<'a> {
    /// What the entry says of this, alone or between braces.
    fn field(&self, name: &str) -> Option<&'a str> {
        if self.key == name {
            return Some(unquoted(self.value));
        }
        let inline = self.value.strip_prefix('{')?.split('}').next()?;
        let mut fields = inline.split(',').filter_map(|field| field.split_once('='));
        fields.find(|(key, _)| unquoted(key) == name).map(|(_, value)| unquoted(value))
    }

    fn is_library(&self) -> bool {
        self.field("package") == Some(PACKAGE)
    }
}

/// The entries of all tables of dependencies, a line each, as manifests are written.
fn entries(manifest: &str) -> impl Iterator<Item = Entry<'_>> {
    let mut table = "";
    manifest.lines().map(str::trim).filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[') {
            table = name.split(']').next().unwrap_or(name);
            return None;
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        let mut parts = table.split('.').map(unquoted);
        let root = parts.clone().next()?;
        parts.find(|part| matches!(*part, "dependencies" | "dev-dependencies"))?;
        let (dependency, key) = match parts.next() {
            Some(dependency) => (dependency, key),
            None => key.split_once('.').unwrap_or((key, "")),
        };
        let (dependency, key) = (unquoted(dependency), unquoted(key));
        Some(Entry { root, dependency, key, value: value.trim() })
    })
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::renamed;

    #[test]
    fn names_are_found_in_every_form() {
        let found = |manifest: &str| renamed(manifest, || None);
        let ag = Some("ag".to_owned());
        assert_eq!(found("[dependencies]\nautograd-core = \"0.1\""), None);
        assert_eq!(found("[dependencies]\nother = { package = \"autograd-core-2\" }"), None);
        assert_eq!(found("[features]\nag = { package = \"autograd-core\" }"), None);
        assert_eq!(found("[dependencies]\n# ag = { package = \"autograd-core\" }"), None);
        for manifest in [
            "[dependencies]\nag = { package = \"autograd-core\", version = \"0.1\" }",
            "[ dependencies ]\n\"ag\" = {version='0.1',package='autograd-core'} # the library",
            "[dev-dependencies]\nserde = \"1\"\nag = { path = \"..\", package = \"autograd-core\" }",
            "[dependencies.ag]\nversion = \"0.1\"\npackage = \"autograd-core\"",
            "[dependencies]\nag.package = \"autograd-core\"\nag.version = \"0.1\"",
            "[target.'cfg(unix)'.dependencies]\nag = { package = \"autograd-core\" }",
        ] {
            assert_eq!(found(manifest), ag, "{manifest}");
        }
    }

    #[test]
    fn names_are_inherited() {
        let workspace = "[workspace.dependencies]\nag = { package = \"autograd-core\" }";
        for manifest in [
            "[dependencies]\nag = { workspace = true }",
            "[dependencies]\nag.workspace = true",
            "[dependencies.ag]\nworkspace = true",
        ] {
            assert_eq!(
                renamed(manifest, || Some(workspace.to_owned())),
                Some("ag".to_owned()),
                "{manifest}"
            );
        }
        let other = "[dependencies]\nserde = { workspace = true }";
        assert_eq!(renamed(other, || Some(workspace.to_owned())), None);
        // A manifest that is a workspace too has dependencies of its own.
        assert_eq!(renamed(workspace, || None), None);
    }
}
