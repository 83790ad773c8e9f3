//! Marks of all kinds: what programs write, how they write it, and what becomes of it.

mod atrace;
mod calls;
mod contract_rows;
mod dlopen;
mod emitters;
mod emitters_matrix;
mod itt;
mod mark_windows;
mod nnapi_conformance;
mod no_harm;
mod rounded_times;
mod single_sections;
mod trace_marker;
mod untouched_texts;
