//! Where a command reads from. Answers to what a run asks come from a person at a terminal; what is piped into the
//! command is text, and a line of it must not allow a call.

use clap::ArgMatches;
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Read};

/// Option of the commands that ask about a run: standard input holds the answers.
const ANSWERS_OPTION: &str = "answers-stdin";

/// Returns what opens the inputs of a command, in the order in which it reads them.
pub(crate) fn inputs_of_command(args: &ArgMatches) -> host::socket::OpenInputs {
    let Ok(Some(are_answers)) = args.try_get_one::<bool>(ANSWERS_OPTION) else { return open_standard_input };
    if *are_answers || io::stdin().is_terminal() {
        return open_standard_input;
    }
    match args.try_get_one::<String>("TEXT") {
        Ok(Some(text)) if text == "-" => open_text_and_terminal,
        _ => open_terminal,
    }
}

fn open_standard_input() -> Vec<Box<dyn Read>> {
    vec![Box::new(io::stdin())]
}

fn open_text_and_terminal() -> Vec<Box<dyn Read>> {
    open_standard_input().into_iter().chain(open_terminal()).collect()
}

/// Opens the terminal of this process, if its user sees there what is asked.
fn open_terminal() -> Vec<Box<dyn Read>> {
    io::stderr().is_terminal().then(host::socket::open_terminal).flatten().into_iter().collect()
}

/// Inputs that are read one after the other: each of them has an end.
pub(crate) struct ConsecutiveInputs(VecDeque<Box<dyn Read>>);

impl ConsecutiveInputs {
    pub(crate) fn new(inputs: Vec<Box<dyn Read>>) -> ConsecutiveInputs {
        ConsecutiveInputs(inputs.into())
    }
}

impl Read for ConsecutiveInputs {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(input) = self.0.front_mut() else { return Ok(0) };
        let count = input.read(buffer)?;
        // A terminal can be read again after its end.
        if count == 0 && !buffer.is_empty() && self.0.len() > 1 {
            self.0.pop_front();
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_has_an_end() {
        let inputs: [&'static [u8]; 2] = [b"text\ny\n", b"n\n"];
        let mut all = ConsecutiveInputs::new(inputs.map(|input| Box::new(input) as Box<dyn Read>).into());
        for expected in ["text\ny\n", "n\n", ""] {
            let mut text = String::new();
            all.read_to_string(&mut text).expect("read");
            assert_eq!(text, expected);
        }
    }
}
