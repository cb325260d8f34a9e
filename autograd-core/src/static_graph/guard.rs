//! The default programs of a thread.

use std::cell::RefCell;

use super::program::Program;

thread_local! {
    static DEFAULT: Program = Program::new();
    static GUARDED: RefCell<Vec<(Program, Program)>> = const { RefCell::new(Vec::new()) };
}

/// The program that a [`program_guard`] of this thread names, or else the thread's own.
pub fn default_main_program() -> Program {
    let guarded = GUARDED.with_borrow(|guarded| guarded.last().map(|(main, _)| main.clone()));
    guarded.unwrap_or_else(|| DEFAULT.with(Program::clone))
}

/// The startup program beside [`default_main_program`].
pub fn default_startup_program() -> Program {
    let guarded = GUARDED.with_borrow(|guarded| guarded.last().map(|(_, startup)| startup.clone()));
    guarded.unwrap_or_else(|| default_main_program().startup())
}

/// The startup program of a program, where a guard of this thread names one.
pub(super) fn guarded_startup(program: &Program) -> Option<Program> {
    GUARDED.with_borrow(|guarded| {
        guarded.iter().rev().find(|(main, _)| main.is(program)).map(|(_, startup)| startup.clone())
    })
}

/// While it lives, the default programs of its thread are others. Made by [`program_guard`].
#[must_use = "the default programs are others only while the guard lives"]
pub struct ProgramGuard(std::marker::PhantomData<*const ()>);

/// Makes these the default programs of this thread until the guard is dropped; guards nest.
///
/// ```
/// use autograd_core::static_graph::{Program, default_main_program, program_guard};
///
/// let (main, startup) = (Program::new(), Program::new());
/// let guard = program_guard(&main, &startup);
/// assert_eq!(default_main_program(), main);
/// drop(guard);
/// assert_ne!(default_main_program(), main);
/// ```
pub fn program_guard(main: &Program, startup: &Program) -> ProgramGuard {
    GUARDED.with_borrow_mut(|guarded| guarded.push((main.clone(), startup.clone())));
    ProgramGuard(std::marker::PhantomData)
}

impl Drop for ProgramGuard {
    fn drop(&mut self) {
        GUARDED.with_borrow_mut(|guarded| drop(guarded.pop()));
    }
}
