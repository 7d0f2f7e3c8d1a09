//! The `checkrein` binary.

fn main() -> std::process::ExitCode {
    checkrein::main()
}
