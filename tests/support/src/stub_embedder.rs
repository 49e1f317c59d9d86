//! A stand-in for an embedding model, for measurements with very many notes that would take the real one hours: an
//! endpoint on loopback whose vectors only encode which words a text contains.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Numbers of a vector, as many as the embedded model has.
const STAND_IN_DIMENSIONS: usize = 384;

/// Starts it. Gives how the index takes it for its model; it ends with the process.
///
/// # Errors
/// There is no port.
pub fn start_stub_embedder() -> Result<String, String> {
    let say = |error: std::io::Error| format!("no port for the stand-in of the sentence model ({error})");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(say)?;
    let address = listener.local_addr().map_err(say)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve_connection(stream));
        }
    });
    Ok(format!("http://{address}/v1#stand-in"))
}

/// Answers one caller until it goes.
fn serve_connection(mut stream: TcpStream) -> Option<()> {
    // What waits for an answer to its first half takes 40 ms (Nagle's algorithm and delayed acknowledgements).
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            match line.trim().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().ok()?
                }
                Some(_) => {}
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let asked: Value = serde_json::from_slice(&body).ok()?;
        let texts = asked["input"].as_array()?.iter().filter_map(Value::as_str);
        let data: Vec<Value> = texts.map(|text| json!({"embedding": text_vector(text)})).collect();
        let told = json!({"data": data}).to_string();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", told.len())
            .ok()?;
        stream.write_all(told.as_bytes()).ok()?;
    }
}

/// Every word has its own direction; a text has those of its words.
fn text_vector(text: &str) -> Vec<i32> {
    let mut sum = vec![0_i32; STAND_IN_DIMENSIONS];
    for word in text.split_whitespace() {
        let hash = store::BlobHash::of(word.to_lowercase().as_bytes());
        for (place, number) in sum.iter_mut().enumerate() {
            // A sign for each number, drawn from the word.
            let bit = hash.0[place / 8 % 32] >> (place % 8) ^ hash.0[place % 32];
            *number += if bit & 1 == 1 { 1 } else { -1 };
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_the_same_words_are_near() {
        let dot = |a: &str, b: &str| text_vector(a).iter().zip(text_vector(b)).map(|(a, b)| a * b).sum::<i32>();
        let near = dot("one two three", "three two one");
        assert_eq!(near, dot("one two three", "one two three"));
        assert!(dot("one two three", "four five six").abs() < near / 3);
    }
}
