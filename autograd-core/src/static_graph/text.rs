//! A program as text: its variables that come from outside, and a line an operator.

use std::fmt;

use super::ir::{Graph, Op, PHASES, Phase, ROLES, Role, VarId, name_of};

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for var in self.vars.iter().filter(|var| var.role != Role::Computed) {
            writeln!(f, "{} {var}", name_of(ROLES, var.role))?;
        }
        let mut phase = Phase::Forward;
        for op in &self.ops {
            if op.phase != phase {
                phase = op.phase;
                writeln!(f, "# {}", name_of(PHASES, phase))?;
            }
            self.write_op(f, op)?;
        }
        Ok(())
    }
}

impl Graph {
    pub(super) fn names(&self, vars: &[VarId]) -> String {
        let names: Vec<&str> = vars.iter().map(|&var| self.vars[var].name.as_str()).collect();
        names.join(", ")
    }

    /// `tanh_0: float32 [-1, 8] = tanh(fc_0.out)`
    fn write_op(&self, f: &mut fmt::Formatter<'_>, op: &Op) -> fmt::Result {
        let outputs = op.outputs.iter().map(|&id| self.vars[id].to_string());
        let outputs: Vec<String> = outputs.collect();
        if !outputs.is_empty() {
            write!(f, "{} = ", outputs.join(", "))?;
        }
        write!(f, "{}({})", op.kind, self.names(&op.inputs))?;
        let attributes = op.kind.attributes();
        if !attributes.is_empty() {
            write!(f, " {{{attributes}}}")?;
        }
        if !op.writes.is_empty() {
            write!(f, " -> {}", self.names(&op.writes))?;
        }
        writeln!(f)
    }
}
