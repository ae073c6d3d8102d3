//! The scripted greedy decoder from Rust, over the C interface of its exported model:
//!
//!     rustc -O examples/deploy/seq2seq.rs -L MODELS/decoder -l decoder -C link-arg=-Wl,-rpath,MODELS/decoder -o seq2seq
//!     seq2seq decoder.weights LIMIT ID ID ID ID ID
//!
//! Prints the symbols that it chose, and the logits of the last step.

use std::ffi::{c_char, c_int, c_void, CStr, CString};

const MAX_RANK: usize = 8;
const INT64: i32 = 5;

/// `decoder_tensor` of decoder.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawTensor {
    data: *mut c_void,
    dtype: i32,
    rank: i32,
    sizes: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
}

impl RawTensor {
    const EMPTY: RawTensor =
        RawTensor { data: std::ptr::null_mut(), dtype: 0, rank: 0, sizes: [0; MAX_RANK], strides: [0; MAX_RANK] };
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawList {
    items: *const RawValue,
    count: usize,
}

#[repr(C)]
union RawPayload {
    integer: i64,
    real: f64,
    tensor: RawTensor,
    list: RawList,
}

/// `decoder_value` of decoder.h.
#[repr(C)]
struct RawValue {
    kind: i32,
    payload: RawPayload,
}

enum Handle {}

extern "C" {
    fn decoder_create(weights: *const c_char, model: *mut *mut Handle, message: *mut c_char, room: usize) -> c_int;
    fn decoder_destroy(model: *mut Handle);
    fn decoder_error(model: *const Handle) -> *const c_char;
    fn decoder_forward(
        model: *mut Handle, ids: *const RawTensor, limit: i64, logits: *mut RawTensor, chosen: *mut RawValue,
    ) -> c_int;
}

/// A handle of the model; it may move to another thread, and is used by one at a time.
struct Decoder(*mut Handle);

unsafe impl Send for Decoder {}

impl Drop for Decoder {
    fn drop(&mut self) {
        unsafe { decoder_destroy(self.0) }
    }
}

/// What one call gives: the symbols, and for each step the logits of all symbols.
struct Decoded {
    chosen: Vec<i64>,
    logits: Vec<Vec<f32>>,
}

impl Decoder {
    fn open(weights: &str) -> Result<Decoder, String> {
        let path = CString::new(weights).map_err(|error| error.to_string())?;
        let mut handle = std::ptr::null_mut();
        let mut message = [0 as c_char; 512];
        let status = unsafe { decoder_create(path.as_ptr(), &mut handle, message.as_mut_ptr(), message.len()) };
        if status != 0 {
            return Err(unsafe { CStr::from_ptr(message.as_ptr()) }.to_string_lossy().into_owned());
        }
        Ok(Decoder(handle))
    }

    fn decode(&mut self, ids: &[i64], limit: i64) -> Result<Decoded, String> {
        let mut given = RawTensor { data: ids.as_ptr() as *mut c_void, dtype: INT64, rank: 2, ..RawTensor::EMPTY };
        given.sizes[..2].copy_from_slice(&[1, ids.len() as i64]);
        given.strides[..2].copy_from_slice(&[ids.len() as i64, 1]);
        let mut logits = RawTensor::EMPTY;
        let mut chosen = RawValue { kind: 0, payload: RawPayload { tensor: RawTensor::EMPTY } };
        unsafe {
            if decoder_forward(self.0, &given, limit, &mut logits, &mut chosen) != 0 {
                return Err(CStr::from_ptr(decoder_error(self.0)).to_string_lossy().into_owned());
            }
            // Results are memory of the handle until its next run: copied here.
            let list = chosen.payload.list;
            let chosen = (0..list.count).map(|place| (*list.items.add(place)).payload.integer).collect();
            let data = logits.data as *const f32;
            let at = |step, symbol| *data.offset((step * logits.strides[1] + symbol * logits.strides[2]) as isize);
            let row = |step| (0..logits.sizes[2]).map(|symbol| at(step, symbol)).collect();
            Ok(Decoded { chosen, logits: (0..logits.sizes[1]).map(row).collect() })
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().collect();
    if words.len() < 4 {
        return Err("seq2seq decoder.weights LIMIT ID...".to_string());
    }
    let number = |word: &String| word.parse::<i64>().map_err(|error| format!("{word}: {error}"));
    let ids = words[3..].iter().map(number).collect::<Result<Vec<i64>, String>>()?;
    let decoded = Decoder::open(&words[1])?.decode(&ids, number(&words[2])?)?;
    let joined = |texts: Vec<String>| texts.join(" ");
    println!("{}", joined(decoded.chosen.iter().map(i64::to_string).collect()));
    if let Some(last) = decoded.logits.last() {
        println!("{}", joined(last.iter().map(|logit| format!("{logit:.6}")).collect()));
    }
    Ok(())
}

fn main() {
    if let Err(message) = run() {
        eprintln!("seq2seq: {message}");
        std::process::exit(1);
    }
}
